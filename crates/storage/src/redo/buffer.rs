//! Assembly of redo records in memory (hot path: 40 instructions an operation beside the copy and the
//! checksum).

use junctor_model::id::{CommitNumber, RowId};

use crate::invariant::require;

use super::record::{
    CHECKSUM_AT, DELETE, FLAG_CONTINUED, HEADER_BYTES, OPERATION_HEADER_BYTES, PUT, REDO_RECORD_BYTES_MAX,
    REDO_VERSION, RedoHeader, checksum,
};

/// Records on their way to the log stream of one ldm. The buffer is taken as a whole and written unchanged.
#[derive(Debug, Default)]
pub struct RedoBuffer {
    bytes: Vec<u8>,
    open: Option<Open>,
    record_count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    header: RedoHeader,
    start: usize,
    operation_count: u32,
}

impl RedoBuffer {
    /// An empty buffer.
    pub fn new() -> RedoBuffer {
        RedoBuffer::default()
    }

    /// Begins the record of a transaction's changes in a partition. Ends an open record first.
    pub fn begin(&mut self, header: RedoHeader) {
        require!(header.commit_number > CommitNumber(0), "a redo record is of a commit, numbered from 1");
        self.end();
        self.open(header);
    }

    /// Records that a row has this image now.
    ///
    /// # Panics
    /// If no record is open.
    pub fn put(&mut self, row: RowId, image: &[u8]) {
        self.add(PUT, row, image);
    }

    /// Records that a row with this primary key is deleted.
    ///
    /// # Panics
    /// If no record is open.
    pub fn delete(&mut self, row: RowId, key: &[u8]) {
        self.add(DELETE, row, key);
    }

    /// Ends the open record, if any, and fills in its length and checksum.
    pub fn end(&mut self) {
        if let Some(open) = self.open.take() {
            self.seal(open, 0);
        }
    }

    /// Ends the open record and marks that another one of the same transaction and partition follows.
    pub fn end_continued(&mut self) {
        if let Some(open) = self.open.take() {
            self.seal(open, FLAG_CONTINUED);
        }
    }

    /// The finished records.
    pub fn bytes(&self) -> &[u8] {
        match self.open {
            Some(open) => &self.bytes[..open.start],
            None => &self.bytes,
        }
    }

    /// Number of finished records.
    pub fn record_count(&self) -> usize {
        self.record_count
    }

    /// Ends the open record and exchanges the buffer for `spare`, which is cleared. The memory thus
    /// circulates between the ldm and the thread that writes the log.
    pub fn take(&mut self, mut spare: Vec<u8>) -> Vec<u8> {
        self.end();
        spare.clear();
        self.record_count = 0;
        std::mem::replace(&mut self.bytes, spare)
    }

    fn open(&mut self, header: RedoHeader) {
        let start = self.bytes.len();
        // Length and checksum, which `seal` fills in.
        self.bytes.extend_from_slice(&[0; 8]);
        self.bytes.extend_from_slice(&[REDO_VERSION, 0]);
        self.bytes.extend_from_slice(&header.partition.index.to_le_bytes());
        self.bytes.extend_from_slice(&header.partition.table.0.to_le_bytes());
        self.bytes.extend_from_slice(&header.schema_version.0.to_le_bytes());
        self.bytes.extend_from_slice(&header.participant_count.to_le_bytes());
        self.bytes.extend_from_slice(&header.commit_number.0.to_le_bytes());
        self.bytes.extend_from_slice(&header.transaction.0.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        require!(self.bytes.len() - start == HEADER_BYTES, "the header of a redo record has {HEADER_BYTES} bytes");
        self.open = Some(Open { header, start, operation_count: 0 });
    }

    fn add(&mut self, kind: u8, row: RowId, bytes: &[u8]) {
        let open = self.open.expect("a change is added between the beginning and the end of its redo record");
        require!(u32::try_from(bytes.len()).is_ok(), "the length of a redo operation fits its 32 bits");
        let length = self.bytes.len() - open.start + OPERATION_HEADER_BYTES + bytes.len();
        // A single operation larger than a record gets a record of its own.
        if open.operation_count > 0 && length > REDO_RECORD_BYTES_MAX {
            self.seal(open, FLAG_CONTINUED);
            self.open(open.header);
        }
        self.bytes.extend_from_slice(&[kind, 0, 0, 0]);
        self.bytes.extend_from_slice(&row.0.to_le_bytes());
        self.bytes.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(bytes);
        if let Some(open) = &mut self.open {
            open.operation_count += 1;
        }
    }

    fn seal(&mut self, open: Open, flags: u8) {
        let record = &mut self.bytes[open.start..];
        require!(u32::try_from(record.len()).is_ok(), "the length of a redo record fits its 32 bits");
        let length = record.len() as u32;
        record[..4].copy_from_slice(&length.to_le_bytes());
        record[9] = flags;
        record[40..44].copy_from_slice(&open.operation_count.to_le_bytes());
        let checksum = checksum(record);
        record[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        self.record_count += 1;
    }
}
