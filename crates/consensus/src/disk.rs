//! The two files of a voter. A file is a sequence of chunks, each in blocks of its own, so that a torn write
//! damages no chunk that was synced. The first chunk of a file is the whole log, and the others are changes.
//! When a file has become long, the log goes to the other file as its first chunk, with a higher generation.
//! `docs/format.md` has the layout.

use std::fmt;

use crate::bytes::{Reader, put_u64};
use crate::log::{Change, Log};
use crate::voter::VoterId;

/// Chunks begin at multiples of this number of bytes.
pub(crate) const BLOCK_BYTES: usize = 4096;
const MAGIC: u32 = u32::from_le_bytes(*b"JCNS");
/// `[magic u32][checksum u32][length u32][voter u64][generation u64][sequence u64]`. The checksum covers
/// everything after itself; the length counts the bytes after the header.
const HEADER_BYTES: usize = 4 + 4 + 4 + 8 + 8 + 8;
const CHECKED_FROM: usize = 8;

/// The place of a chunk: file of a voter, and position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkId {
    pub voter: VoterId,
    /// Number of first chunks written before, in both files.
    pub generation: u64,
    /// Number of chunks before it in its file.
    pub sequence: u64,
}

/// Files whose content was synced and has changed since. The voter cannot take part in votes any longer. It
/// comes back under a new id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile(pub String);

impl fmt::Display for DamagedFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the consensus log is damaged: {}", self.0)
    }
}

impl std::error::Error for DamagedFile {}

/// The log that two files contain.
#[derive(Clone, Debug)]
pub struct Recovered {
    pub(crate) log: Log,
    pub(crate) generation: u64,
    /// Sequence of the next chunk of the file.
    pub(crate) sequence: u64,
    /// Position of the file among the two, 0 or 1.
    pub file: usize,
    /// Where the next chunk of this file belongs. What follows there is a torn write.
    pub end: usize,
}

/// A chunk with its padding.
pub(crate) fn encode_chunk(id: ChunkId, change: &Change) -> Vec<u8> {
    let mut out = vec![0; HEADER_BYTES];
    change.encode(&mut out);
    let length = u32::try_from(out.len() - HEADER_BYTES).expect("the log is far below 4 GiB");
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(&MAGIC.to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&length.to_le_bytes());
    put_u64(&mut header, id.voter.0);
    put_u64(&mut header, id.generation);
    put_u64(&mut header, id.sequence);
    out[..HEADER_BYTES].copy_from_slice(&header);
    let checksum = crc32c::crc32c(&out[CHECKED_FROM..]);
    out[4..CHECKED_FROM].copy_from_slice(&checksum.to_le_bytes());
    out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
    out
}

/// The chunk at the front of these bytes, with the number of its bytes in whole blocks. `None` if there is no
/// valid one.
fn decode_chunk(bytes: &[u8]) -> Option<(ChunkId, &[u8], usize)> {
    let mut header = Reader::new(bytes);
    if header.u32().ok()? != MAGIC {
        return None;
    }
    let checksum = header.u32().ok()?;
    let end = HEADER_BYTES.checked_add(header.u32().ok()? as usize)?;
    let checked = bytes.get(CHECKED_FROM..end)?;
    if crc32c::crc32c(checked) != checksum {
        return None;
    }
    let (voter, generation, sequence) = (header.u64().ok()?, header.u64().ok()?, header.u64().ok()?);
    let id = ChunkId { voter: VoterId(voter), generation, sequence };
    Some((id, &bytes[HEADER_BYTES..end], end.next_multiple_of(BLOCK_BYTES)))
}

/// The voter to which two files belong. `None` if neither has a valid first chunk.
pub fn voter_of(files: [&[u8]; 2]) -> Option<VoterId> {
    files.into_iter().find_map(|bytes| decode_chunk(bytes)).map(|(id, ..)| id.voter)
}

/// Reads the two files of a voter. A file that does not exist is empty. `None` if the voter has never written
/// a log.
///
/// A write that was not synced may be torn; only the last chunk can be one. A valid chunk after an invalid
/// one therefore proves damage. Damage of the very last chunk looks like a torn write, and is not found.
///
/// # Errors
/// The files are damaged, or belong to another voter.
pub fn recover(voter: VoterId, files: [&[u8]; 2]) -> Result<Option<Recovered>, DamagedFile> {
    let mut newest: Option<Recovered> = None;
    let mut strays = Vec::new();
    for (file, bytes) in files.into_iter().enumerate() {
        let (found, stray) =
            recover_file(voter, bytes).map_err(|reason| DamagedFile(format!("file {file}: {reason}")))?;
        strays.extend(stray.map(|stray| (file, stray)));
        if let Some(found) = found
            && newest.as_ref().is_none_or(|newest| newest.generation < found.generation)
        {
            newest = Some(Recovered { file, ..found });
        }
    }
    for (file, stray) in strays {
        // Chunks of older generations are the remains of an earlier use of the file.
        let known = newest.as_ref().map(|newest| (newest.generation, newest.sequence));
        if known.is_none_or(|known| (stray.generation, stray.sequence) >= known) {
            let ChunkId { generation, sequence, .. } = stray;
            let reason = format!("file {file}: chunk {sequence} of generation {generation} follows an invalid chunk");
            return Err(DamagedFile(reason));
        }
    }
    Ok(newest)
}

/// The log at the front of a file, and the newest of the valid chunks that do not continue it.
fn recover_file(voter: VoterId, bytes: &[u8]) -> Result<(Option<Recovered>, Option<ChunkId>), String> {
    let mut recovered: Option<Recovered> = None;
    let mut position = 0;
    while let Some((id, payload, length)) = bytes.get(position..).and_then(decode_chunk) {
        let expected = recovered.as_ref().map_or((id.generation, 0), |it| (it.generation, it.sequence));
        if (id.generation, id.sequence) != expected {
            break;
        }
        if id.voter != voter {
            return Err(format!("it belongs to voter {}, not to voter {voter}", id.voter));
        }
        let malformed = |error| format!("chunk {}: {error}", id.sequence);
        let change = Change::decode(payload).map_err(malformed)?;
        let mut log = recovered.take().map_or_else(Log::default, |it| it.log);
        log.apply(&change).map_err(malformed)?;
        position += length;
        recovered =
            Some(Recovered { log, generation: id.generation, sequence: id.sequence + 1, file: 0, end: position });
    }
    let blocks = (position..bytes.len()).step_by(BLOCK_BYTES);
    let strays = blocks.filter_map(|start| decode_chunk(&bytes[start..]).map(|(id, ..)| id));
    let newest_stray = strays.filter(|id| id.voter == voter).max_by_key(|id| (id.generation, id.sequence));
    Ok((recovered, newest_stray))
}
