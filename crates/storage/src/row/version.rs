//! One version of a row in its block (hot path: 10 instructions to read a header).
//!
//! `[word: 8][stamp: 8][row or statement: 4][stored image ...]`. The word holds the location of the next
//! older version (40 bits), the length of the stored image (15 bits) and two flags. A stamped version is
//! committed: its stamp is the commit number, followed by its row id, which compaction needs to move the
//! version. The stamp of an unstamped version is its transaction, followed by its statement number.

use junctor_model::id::{CommitNumber, RowId, StatementNumber, TransactionId};
use junctor_model::row::FLAG_OVERFLOW;

use super::Writer;
use crate::invariant::require;
use crate::page::Location;

/// Bytes of a version before its stored image.
pub const VERSION_HEADER_BYTES: usize = 20;

const LENGTH_SHIFT: u32 = Location::BITS;
const LENGTH_MASK: u64 = (1 << 15) - 1;
const DELETED: u64 = 1 << 55;
const COMMITTED: u64 = 1 << 56;

/// One version of a row, borrowed from its partition.
#[derive(Clone, Copy)]
pub struct RowVersion<'a> {
    word: u64,
    stamp: u64,
    location: Location,
    /// The bytes from the start of the version to the end of its page.
    bytes: &'a [u8],
}

impl<'a> RowVersion<'a> {
    #[inline]
    pub(crate) fn read(location: Location, bytes: &'a [u8]) -> RowVersion<'a> {
        let header = bytes.first_chunk::<VERSION_HEADER_BYTES>().expect("a block holds a version");
        RowVersion { word: u64_at(header, 0), stamp: u64_at(header, 8), location, bytes }
    }

    /// Whether the version holds its commit number. An unstamped version may be committed all the same: see
    /// `RowStore::state`.
    #[inline]
    pub(super) fn is_stamped(&self) -> bool {
        self.word & COMMITTED != 0
    }

    /// Whether the row does not exist in this version.
    #[inline]
    pub fn is_deleted(&self) -> bool {
        self.word & DELETED != 0
    }

    /// The commit number of a stamped version.
    #[inline]
    pub(super) fn stamped_number(&self) -> Option<CommitNumber> {
        self.is_stamped().then_some(CommitNumber(self.stamp))
    }

    /// The transaction of an unstamped version.
    #[inline]
    pub(super) fn unstamped_transaction(&self) -> Option<TransactionId> {
        (!self.is_stamped()).then_some(TransactionId(self.stamp))
    }

    /// The statement that wrote an unstamped version.
    pub(crate) fn statement(&self) -> Option<StatementNumber> {
        (!self.is_stamped()).then(|| StatementNumber(self.row_or_statement()))
    }

    /// Whether the reader sees this version because it is stamped within the snapshot, or because it is the
    /// reader's own. If not, the version may still be committed within the snapshot and unstamped.
    #[inline]
    pub(crate) fn is_seen_by(&self, snapshot: CommitNumber, own: Option<TransactionId>) -> bool {
        match self.is_stamped() {
            // One compare decides for committed versions, because the stamp is the commit number itself.
            true => self.stamp <= snapshot.0,
            false => own.is_some_and(|own| own.0 == self.stamp),
        }
    }

    /// Whether long values of the image are in overflow pages, so that it must be reassembled before it is
    /// read.
    #[inline]
    pub fn has_overflow(&self) -> bool {
        has_overflow_values(self.stored())
    }

    /// The image as stored: whole unless `has_overflow`, and empty for a deletion.
    #[inline]
    pub fn stored(&self) -> &'a [u8] {
        let length = (self.word >> LENGTH_SHIFT & LENGTH_MASK) as usize;
        &self.bytes[VERSION_HEADER_BYTES..VERSION_HEADER_BYTES + length]
    }

    #[inline]
    pub(crate) fn location(&self) -> Location {
        self.location
    }

    #[inline]
    pub(crate) fn older(&self) -> Location {
        Location::from_bits(self.word)
    }

    pub(crate) fn row_or_statement(&self) -> u32 {
        u32::from_le_bytes(self.bytes[16..20].try_into().expect("4 bytes"))
    }

    /// Whether this is an unstamped version of the transaction.
    pub(crate) fn is_of(&self, transaction: TransactionId) -> bool {
        !self.is_stamped() && self.stamp == transaction.0
    }
}

/// Whether long values of a stored image are in overflow pages.
#[inline]
pub(super) fn has_overflow_values(stored: &[u8]) -> bool {
    stored.first().is_some_and(|flags| flags & FLAG_OVERFLOW != 0)
}

/// Writes an uncommitted version without an older one.
pub(crate) fn write_version(block: &mut [u8], stored: Option<&[u8]>, writer: Writer) {
    let bytes = stored.unwrap_or_default();
    require!(bytes.len() as u64 <= LENGTH_MASK, "the length of a stored image fits its 15 bits");
    let deleted = if stored.is_none() { DELETED } else { 0 };
    let word = Location::NONE.bits() | (bytes.len() as u64 & LENGTH_MASK) << LENGTH_SHIFT | deleted;
    block[..8].copy_from_slice(&word.to_le_bytes());
    block[8..16].copy_from_slice(&writer.transaction.0.to_le_bytes());
    block[16..20].copy_from_slice(&writer.statement.0.to_le_bytes());
    block[VERSION_HEADER_BYTES..VERSION_HEADER_BYTES + bytes.len()].copy_from_slice(bytes);
}

/// Turns an uncommitted version into a committed one.
pub(crate) fn write_commit(block: &mut [u8], row: RowId, commit_number: CommitNumber) {
    require!(word_of(block) & COMMITTED == 0, "a version of row {row} gets its commit number once");
    // The link and the length stay; only the owner of the exclusive guard runs here, so the three stores need
    // no order.
    let word = word_of(block) | COMMITTED;
    block[..8].copy_from_slice(&word.to_le_bytes());
    block[8..16].copy_from_slice(&commit_number.0.to_le_bytes());
    block[16..20].copy_from_slice(&row.0.to_le_bytes());
}

pub(crate) fn write_older(block: &mut [u8], older: Location) {
    let word = word_of(block) & !((1 << Location::BITS) - 1) | older.bits();
    block[..8].copy_from_slice(&word.to_le_bytes());
}

#[inline]
fn word_of(block: &[u8]) -> u64 {
    u64_at(block, 0)
}

#[inline]
fn u64_at(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(block[at..at + 8].try_into().expect("8 bytes"))
}
