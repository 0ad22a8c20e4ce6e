//! Records: what one block contributes to one commit (hot path: 40 instructions an operation beside the copy
//! and the checksum).

use std::fmt;

use junctor_model::id::{CommitNumber, PartitionId, RowId, SchemaVersion, TableId, TransactionId};
use junctor_model::limit::ROW_BYTES_MAX;
use junctor_model::row::apply_edits;

use crate::bytes::{checksum_without, set_u32, set_u64, u16_at, u32_at, u64_at};
use crate::invariant::require;

/// Size in bytes at which a long transaction begins its next chunk. A single larger operation has a chunk of
/// its own.
pub const CHUNK_BYTES_MAX: usize = 256 * 1024;
/// Maximum size of a record in bytes. A decoder refuses a longer one, so that damage cannot exhaust memory.
pub const RECORD_BYTES_MAX: usize = 1 << 30;

pub(super) const RECORD_HEADER_BYTES: usize = 32;
pub(super) const SECTION_HEADER_BYTES: usize = 16;
pub(super) const OPERATION_HEADER_BYTES: usize = 8;
const CHECKSUM_AT: usize = 4;
/// The bit of an operation's row id that marks a deletion. Row ids are below 2^31.
const DELETION: u32 = 1 << 31;
/// The bit of an operation's length that marks edits. Operations are shorter than 2^30 bytes.
const EDITS: u32 = 1 << 31;
/// Bytes of an operation with edits before them.
const EDITS_HEADER_BYTES: usize = 16;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// The whole contribution of a short participant, with its commit number.
    Commit,
    /// Part of the contribution of a long participant, formed before the transaction has a number.
    Chunk,
    /// The commit number of a transaction whose changes are in chunks.
    ChunkCommit,
    /// A schema change. Its payload is the dictionary's.
    Dictionary,
    /// The highest value that a counter, such as AUTO_INCREMENT, has reached. A restart continues above it.
    Mark,
    /// A transaction that was undone after it formed chunks. Recovery skips chunks without a commit anyway;
    /// the record lets the log be trimmed past them.
    ChunkUndo,
}

impl RecordKind {
    const fn to_byte(self) -> u8 {
        match self {
            RecordKind::Commit => 1,
            RecordKind::Chunk => 2,
            RecordKind::ChunkCommit => 3,
            RecordKind::Dictionary => 4,
            RecordKind::Mark => 5,
            RecordKind::ChunkUndo => 6,
        }
    }

    const fn from_byte(byte: u8) -> Option<RecordKind> {
        Some(match byte {
            1 => RecordKind::Commit,
            2 => RecordKind::Chunk,
            3 => RecordKind::ChunkCommit,
            4 => RecordKind::Dictionary,
            5 => RecordKind::Mark,
            6 => RecordKind::ChunkUndo,
            _ => return None,
        })
    }

    /// Whether the body consists of sections of row changes. Other bodies are opaque here.
    const fn has_sections(self) -> bool {
        matches!(self, RecordKind::Commit | RecordKind::Chunk)
    }

    const fn has_header_only(self) -> bool {
        matches!(self, RecordKind::ChunkCommit | RecordKind::ChunkUndo)
    }

    const fn has_number(self) -> bool {
        matches!(self, RecordKind::Commit | RecordKind::ChunkCommit | RecordKind::Dictionary)
    }
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The kind, which decides what the other fields mean.
    pub kind: RecordKind,
    /// Number of streams that have a record with this commit number; 0 without a number.
    pub participants: u16,
    /// The commit number; 0 for a chunk and a mark.
    pub number: CommitNumber,
    /// The transaction; 0 for main's records.
    pub transaction: TransactionId,
    /// For a chunk: its position among the chunks of its transaction in this stream, from 0. For a
    /// `ChunkCommit`: the number of these chunks.
    pub chunk: u32,
}

/// The partition that the operations of a section change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// The partition.
    pub partition: PartitionId,
    /// The cluster that the changes came from; 0 is this one.
    pub origin: u16,
    /// The version of the table's definition that the images follow.
    pub row_format: SchemaVersion,
}

/// One change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// The row has this image now.
    Put {
        /// The row's id in its partition.
        row: RowId,
        /// The whole image, long values included.
        image: &'a [u8],
    },
    /// The row has an image now that is like the one before.
    Edit {
        /// The row's id in its partition.
        row: RowId,
        /// The difference.
        edit: ImageEdit<'a>,
    },
    /// The row is deleted.
    Delete {
        /// The row's id in its partition.
        row: RowId,
        /// The bytes of its primary key.
        key: &'a [u8],
    },
}

/// How an image differs from the committed one before it, its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageEdit<'a> {
    /// The commit number of the base.
    pub base: CommitNumber,
    /// Bytes of the image.
    pub image_bytes: u32,
    /// CRC-32C of the image.
    pub checksum: u32,
    /// The edits ([`junctor_model::row::apply_edits`]).
    pub edits: &'a [u8],
}

impl<'a> ImageEdit<'a> {
    /// Makes the image of its base. `None` if the bytes are damaged or the base is another one.
    pub fn apply<'b>(&self, base: &[u8], out: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let image_bytes = self.image_bytes as usize;
        let is_made = image_bytes <= ROW_BYTES_MAX && apply_edits(base, self.edits, image_bytes, out);
        (is_made && crc32c::crc32c(out) == self.checksum).then_some(&**out)
    }

    fn decode(bytes: &'a [u8]) -> Option<ImageEdit<'a>> {
        let (header, edits) = bytes.split_at_checked(EDITS_HEADER_BYTES)?;
        let base = CommitNumber(u64_at(header, 0));
        Some(ImageEdit { base, image_bytes: u32_at(header, 8), checksum: u32_at(header, 12), edits })
    }
}

/// Records of one stream, formed in memory. The bytes are taken as a whole and written unchanged.
#[derive(Debug, Default)]
pub struct RecordBuffer {
    bytes: Vec<u8>,
    /// Start of the open record, and of its open section.
    open: Option<(usize, Option<usize>)>,
}

impl RecordBuffer {
    /// An empty buffer.
    pub fn new() -> RecordBuffer {
        RecordBuffer::default()
    }

    /// Begins a record. The caller has ended the previous one.
    pub fn begin(&mut self, header: &RecordHeader) {
        require!(self.open.is_none(), "a record is ended before the next begins");
        require!(
            header.kind.has_number() == (header.number.0 > 0) && header.kind.has_number() == (header.participants > 0),
            "records of commits, and only they, have a number and participants: {header:?}"
        );
        self.open = Some((self.bytes.len(), None));
        // Length and checksum are filled in at the end.
        self.bytes.extend_from_slice(&[0; 8]);
        self.bytes.extend_from_slice(&[header.kind.to_byte(), 0]);
        self.bytes.extend_from_slice(&header.participants.to_le_bytes());
        self.bytes.extend_from_slice(&header.number.0.to_le_bytes());
        self.bytes.extend_from_slice(&header.transaction.0.to_le_bytes());
        self.bytes.extend_from_slice(&header.chunk.to_le_bytes());
    }

    /// Begins the changes of a partition in the open record.
    pub fn begin_section(&mut self, section: &SectionHeader) {
        let (start, _) = self.open.expect("a section is part of a record");
        self.open = Some((start, Some(self.bytes.len())));
        self.bytes.extend_from_slice(&section.partition.table.0.to_le_bytes());
        self.bytes.extend_from_slice(&section.partition.index.to_le_bytes());
        self.bytes.extend_from_slice(&section.origin.to_le_bytes());
        self.bytes.extend_from_slice(&section.row_format.0.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
    }

    /// Records that a row has this image now.
    pub fn put(&mut self, row: RowId, image: &[u8]) {
        self.add(row, (row.0, 0), [&[], image]);
    }

    /// Records that these edits make the row's image of its base, the committed version `base`.
    pub fn edit(&mut self, row: RowId, base: CommitNumber, image: &[u8], edits: &[u8]) {
        let mut header = [0; EDITS_HEADER_BYTES];
        set_u64(&mut header, 0, base.0);
        set_u32(&mut header, 8, image.len() as u32);
        set_u32(&mut header, 12, crc32c::crc32c(image));
        self.add(row, (row.0, EDITS), [&header, edits]);
    }

    /// Records that a row with this primary key is deleted.
    pub fn delete(&mut self, row: RowId, key: &[u8]) {
        self.add(row, (row.0 | DELETION, 0), [&[], key]);
    }

    /// Appends to the body of a record without sections.
    pub fn append_body(&mut self, bytes: &[u8]) {
        require!(matches!(self.open, Some((_, None))), "an opaque body has no sections");
        self.bytes.extend_from_slice(bytes);
    }

    /// Ends the open record. Returns its length in bytes.
    pub fn end(&mut self) -> usize {
        let (start, _) = self.open.take().expect("a record that is ended was begun");
        let record = &mut self.bytes[start..];
        require!(record.len() <= RECORD_BYTES_MAX, "a record has at most {RECORD_BYTES_MAX} bytes: {}", record.len());
        set_u32(record, 0, record.len() as u32);
        let checksum = checksum_without(record, CHECKSUM_AT);
        set_u32(record, CHECKSUM_AT, checksum);
        record.len()
    }

    /// Bytes of the open record so far; 0 if none is open.
    pub fn open_bytes(&self) -> usize {
        self.open.map_or(0, |(start, _)| self.bytes.len() - start)
    }

    /// Size of the finished and the open records in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was formed since the last `take`.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Exchanges the finished records for `spare`, which is cleared. Buffers thus circulate between the block
    /// that forms records and the one that writes them.
    pub fn take(&mut self, mut spare: Vec<u8>) -> Vec<u8> {
        require!(self.open.is_none(), "a record is ended before it is taken");
        spare.clear();
        std::mem::replace(&mut self.bytes, spare)
    }

    fn add(&mut self, row: RowId, (row_word, length_flag): (u32, u32), [head, rest]: [&[u8]; 2]) {
        let Some((_, Some(section))) = self.open else {
            crate::invariant::fail("an operation is part of a section", format_args!("row {row}"))
        };
        require!(row.0 < DELETION, "a row id is below 2^31: {row}");
        let length = head.len() + rest.len();
        require!(length < RECORD_BYTES_MAX, "an operation fits a record: {length} bytes");
        self.bytes.extend_from_slice(&row_word.to_le_bytes());
        self.bytes.extend_from_slice(&(length as u32 | length_flag).to_le_bytes());
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(rest);
        let count = u32_at(&self.bytes, section + 12) + 1;
        set_u32(&mut self.bytes, section + 12, count);
    }
}

/// A decoded record whose checksum and structure are correct.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The header.
    pub header: RecordHeader,
    /// Everything after the header.
    pub body: &'a [u8],
}

impl<'a> Record<'a> {
    /// The changes by partition, in the order in which they were formed. Empty for kinds without sections.
    pub fn sections(&self) -> impl Iterator<Item = Section<'a>> + use<'a> {
        let mut rest = if self.header.kind.has_sections() { self.body } else { &[] };
        std::iter::from_fn(move || read_section(&mut rest))
    }
}

/// The changes of one partition in a record.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The partition.
    pub header: SectionHeader,
    /// Number of operations.
    pub operation_count: u32,
    operations: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Section<'a> {
    /// The changes in the order in which they were formed.
    pub fn operations(&self) -> impl Iterator<Item = Operation<'a>> + use<'a> {
        let mut rest = self.operations;
        (0..self.operation_count).map_while(move |_| read_operation(&mut rest))
    }

    /// The section as it lies in the record, header included. `decode` reverses it.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The section at the start of `bytes`, and what follows it. `None` if the bytes are not one.
    pub fn decode(bytes: &'a [u8]) -> Option<(Section<'a>, &'a [u8])> {
        let mut rest = bytes;
        read_section(&mut rest).map(|section| (section, rest))
    }
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The bytes end inside the record, which needs this many.
    Incomplete(usize),
    /// The checksum or the structure is wrong.
    Corrupt,
}

impl fmt::Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Incomplete(bytes) => write!(formatter, "the log record is incomplete: it needs {bytes} bytes"),
            RecordError::Corrupt => formatter.write_str("the log record is damaged"),
        }
    }
}

impl std::error::Error for RecordError {}

/// The record at the start of `bytes`, and its length.
///
/// # Errors
/// `Incomplete` if more bytes are needed; `Corrupt` if the bytes are no record.
pub fn decode_record(bytes: &[u8]) -> Result<(Record<'_>, usize), RecordError> {
    if bytes.len() < RECORD_HEADER_BYTES {
        return Err(RecordError::Incomplete(RECORD_HEADER_BYTES));
    }
    let length = u32_at(bytes, 0) as usize;
    if !(RECORD_HEADER_BYTES..=RECORD_BYTES_MAX).contains(&length) {
        return Err(RecordError::Corrupt);
    }
    let Some(record) = bytes.get(..length) else { return Err(RecordError::Incomplete(length)) };
    if u32_at(record, CHECKSUM_AT) != checksum_without(record, CHECKSUM_AT) {
        return Err(RecordError::Corrupt);
    }
    let Some(kind) = RecordKind::from_byte(record[8]).filter(|_| record[9] == 0) else {
        return Err(RecordError::Corrupt);
    };
    let header = read_header(kind, record);
    let body = &record[RECORD_HEADER_BYTES..];
    let has_number = kind.has_number();
    if (header.number.0 > 0) != has_number || (header.participants > 0) != has_number {
        return Err(RecordError::Corrupt);
    }
    // Check the whole body here, so that `sections` and `operations` cannot meet a damaged entry.
    if kind.has_sections() && !are_sections(body) || kind.has_header_only() && !body.is_empty() {
        return Err(RecordError::Corrupt);
    }
    Ok((Record { header, body }, length))
}

fn read_header(kind: RecordKind, record: &[u8]) -> RecordHeader {
    RecordHeader {
        kind,
        participants: u16_at(record, 10),
        number: CommitNumber(u64_at(record, 12)),
        transaction: TransactionId(u64_at(record, 20)),
        chunk: u32_at(record, 28),
    }
}

/// The headers and lengths of records of long transactions (chunks, their commits and undos) that begin in
/// `bytes`. The bytes must be records as [`RecordBuffer`] formed them, whole except that the last one may end
/// after its header. Nothing is checked.
pub fn chunk_headers(bytes: &[u8]) -> impl Iterator<Item = (RecordHeader, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let record = bytes.get(at..).filter(|rest| rest.len() >= RECORD_HEADER_BYTES)?;
            let length = u32_at(record, 0) as usize;
            require!(length >= RECORD_HEADER_BYTES, "a record has at least its header: {length} bytes");
            at += length;
            if let Some(kind @ (RecordKind::Chunk | RecordKind::ChunkCommit | RecordKind::ChunkUndo)) =
                RecordKind::from_byte(record[8])
            {
                return Some((read_header(kind, record), length));
            }
        }
    })
}

fn are_sections(mut body: &[u8]) -> bool {
    while !body.is_empty() {
        if read_section(&mut body).is_none() {
            return false;
        }
    }
    true
}

fn read_section<'a>(rest: &mut &'a [u8]) -> Option<Section<'a>> {
    let whole = *rest;
    let (header, operations) = whole.split_at_checked(SECTION_HEADER_BYTES)?;
    let operation_count = u32_at(header, 12);
    let mut after = operations;
    for _ in 0..operation_count {
        read_operation(&mut after)?;
    }
    *rest = after;
    let partition = PartitionId { table: TableId(u32_at(header, 0)), index: u16_at(header, 4) };
    let header = SectionHeader { partition, origin: u16_at(header, 6), row_format: SchemaVersion(u32_at(header, 8)) };
    let operations = &operations[..operations.len() - after.len()];
    Some(Section { header, operation_count, operations, bytes: &whole[..whole.len() - after.len()] })
}

fn read_operation<'a>(rest: &mut &'a [u8]) -> Option<Operation<'a>> {
    let (header, after) = rest.split_at_checked(OPERATION_HEADER_BYTES)?;
    let (row_word, length_word) = (u32_at(header, 0), u32_at(header, 4));
    let (bytes, after) = after.split_at_checked((length_word & !EDITS) as usize)?;
    *rest = after;
    let row = RowId(row_word & !DELETION);
    match (row_word & DELETION, length_word & EDITS) {
        (0, 0) => Some(Operation::Put { row, image: bytes }),
        (0, _) => ImageEdit::decode(bytes).map(|edit| Operation::Edit { row, edit }),
        (_, 0) => Some(Operation::Delete { row, key: bytes }),
        _ => None,
    }
}
