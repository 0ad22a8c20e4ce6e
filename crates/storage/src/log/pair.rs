//! Pair files: two files of which one always holds the newest content that was written completely.
//!
//! Generation g overwrites file g mod 2. A file holds its content twice. A torn write loses the new
//! generation only, and a damaged copy is repaired from the other.

use std::fmt;

use super::group::BLOCK_BYTES;
use crate::bytes::{checksum_without, set_u16, set_u32, set_u64, u16_at, u32_at, u64_at};
use crate::invariant::require;

/// Maximum size of the content in bytes.
pub const PAIR_CONTENT_BYTES_MAX: usize = 1 << 30;

const MAGIC: u32 = u32::from_le_bytes(*b"JPAR");
const VERSION: u16 = 1;
const CHECKSUM_AT: usize = 4;
const HEADER_BYTES: usize = 32;

/// The valid content of one file of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairSlot {
    /// Counts the contents that were written, from 1.
    pub generation: u64,
    /// The content.
    pub content: Vec<u8>,
    /// The copy that is damaged, if one is.
    pub damaged: Option<PairCopy>,
}

/// One of the two copies of a slot inside one file of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairCopy {
    /// At the start of the file.
    First,
    /// After the first.
    Second,
}

/// The bytes of the file that holds this generation: two copies, each in whole blocks. `kind` distinguishes
/// files of different use, so that a file under a wrong name is noticed.
pub fn encode_slot(kind: u16, generation: u64, content: &[u8]) -> Vec<u8> {
    require!(content.len() <= PAIR_CONTENT_BYTES_MAX, "content fits a pair file: {} bytes", content.len());
    require!(generation > 0, "generations count from 1");
    let mut bytes = vec![0; 2 * copy_bytes(content.len())];
    let half = bytes.len() / 2;
    let (first, second) = bytes.split_at_mut(half);
    set_u32(first, 0, MAGIC);
    set_u16(first, 8, VERSION);
    set_u16(first, 10, kind);
    set_u32(first, 12, content.len() as u32);
    set_u64(first, 16, generation);
    first[HEADER_BYTES..HEADER_BYTES + content.len()].copy_from_slice(content);
    let checksum = checksum_without(first, CHECKSUM_AT);
    set_u32(first, CHECKSUM_AT, checksum);
    second.copy_from_slice(first);
    bytes
}

/// A file of a pair has a format version that this program does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPairVersion(pub u16);

impl fmt::Display for UnknownPairVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the file has the unknown version {}", self.0)
    }
}

impl std::error::Error for UnknownPairVersion {}

/// The content of a file of a pair. `None` if no copy is whole, which is normal for the file that was being
/// written at a crash.
///
/// # Errors
/// A whole copy has an unknown version: a later release wrote the file.
pub fn decode_slot(kind: u16, bytes: &[u8]) -> Result<Option<PairSlot>, UnknownPairVersion> {
    // The copies have equal length, so the second begins in the middle.
    let first = decode_copy(kind, bytes)?;
    let second = decode_copy(kind, &bytes[bytes.len() / 2..])?;
    Ok(match (first, second) {
        (Some(first), Some(second)) if first.0 == second.0 => Some(slot(first, None)),
        // A torn write leaves the new content in one copy and the old in the other. Both are whole; the file
        // holds the newer.
        (Some(first), Some(second)) => match first.0 > second.0 {
            true => Some(slot(first, Some(PairCopy::Second))),
            false => Some(slot(second, Some(PairCopy::First))),
        },
        (Some(first), None) => Some(slot(first, Some(PairCopy::Second))),
        (None, Some(second)) => Some(slot(second, Some(PairCopy::First))),
        (None, None) => None,
    })
}

/// The newest content of a pair, from its files 0 and 1. `None` stands for a file without a whole copy.
pub fn newest_slot(zero: Option<PairSlot>, one: Option<PairSlot>) -> Option<PairSlot> {
    match (zero, one) {
        (Some(zero), Some(one)) => Some(if zero.generation > one.generation { zero } else { one }),
        (zero, one) => zero.or(one),
    }
}

fn slot((generation, content): (u64, &[u8]), damaged: Option<PairCopy>) -> PairSlot {
    PairSlot { generation, content: content.to_vec(), damaged }
}

fn decode_copy(kind: u16, bytes: &[u8]) -> Result<Option<(u64, &[u8])>, UnknownPairVersion> {
    if bytes.len() < HEADER_BYTES || u32_at(bytes, 0) != MAGIC {
        return Ok(None);
    }
    let length = u32_at(bytes, 12) as usize;
    let Some(copy) = bytes.get(..copy_bytes(length)) else { return Ok(None) };
    if u32_at(copy, CHECKSUM_AT) != checksum_without(copy, CHECKSUM_AT) || u16_at(copy, 10) != kind {
        return Ok(None);
    }
    match u16_at(copy, 8) {
        VERSION => Ok(Some((u64_at(copy, 16), &copy[HEADER_BYTES..HEADER_BYTES + length]))),
        version => Err(UnknownPairVersion(version)),
    }
}

/// Size in bytes of a copy of content of this length.
const fn copy_bytes(content_bytes: usize) -> usize {
    (HEADER_BYTES + content_bytes).next_multiple_of(BLOCK_BYTES)
}
