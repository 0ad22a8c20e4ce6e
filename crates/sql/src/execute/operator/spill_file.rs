//! The temporary file of a query, with the rows that do not fit into its memory.
//!
//! A record is `[length u32][crc32c u32][batches]`. Records are appended to a buffer, which is written when
//! it is full, while the operators go on. Operators take their input one after the other, so at most one of
//! them waits for a record. The file begins again from its start when no operator has records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use junctor_gateway::TurnContext;
use junctor_gateway::file::{FileAnswer, FileBuffer, FileError, FileStep};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_signals::read_rows::OperationId;

use super::batch::{Batch, Frame};
use crate::execute::context::StatementContext;
use crate::execute::engine::Engine;
use crate::execute::memory::{QueryResources, out_of_memory};
use crate::execute::server_file::{FileAttempt, file_error};

/// Maximum of the bytes from which the buffer is written. A write has all records of the buffer, so it can
/// have more; one may be under way.
const WRITE_BYTES_MAX: usize = 256 << 10;
/// Number of bytes of the node's temporary space that a query books at a time.
const BOOKED_BYTES: u64 = 256 << 10;
const HEADER_BYTES: usize = 8;
/// Maximum bytes of a record, which are those of one read. Beyond it, because of long rows, the query fails
/// with error 1041.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// The place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execute) struct Place {
    offset: u64,
    bytes: u32,
}

/// Bytes of records that operators still have.
pub(in crate::execute) type LiveBytes = Arc<AtomicU64>;

/// The request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    None,
    Open,
    Write,
    Read,
}

/// A record that an operator waits for, with its bytes once they are read.
#[derive(Debug)]
struct Wanted {
    place: Place,
    bytes: Option<FileBuffer>,
}

/// The temporary file of one execution of a query. It is opened when the first record is written.
#[derive(Debug)]
pub(in crate::execute) struct SpillFile {
    resources: Arc<QueryResources>,
    /// Maximum bytes of the temporary files of all queries of the node; 0 if queries may write none.
    space_max: u64,
    /// Bytes from which the buffer is written, and from which an operator ends a record.
    write_bytes: usize,
    pub record_bytes: usize,
    operation: Option<OperationId>,
    request: Request,
    /// Records that no write has, and their place in the file.
    tail: Vec<u8>,
    tail_start: u64,
    wanted: Option<Wanted>,
    buffer: FileBuffer,
    live: LiveBytes,
    booked: u64,
    /// Bytes of all records so far.
    pub written: u64,
}

impl SpillFile {
    /// The file of a query whose operators spill beyond `spill_from` bytes of memory.
    pub fn new(resources: &Arc<QueryResources>, space_max: u64, spill_from: u64) -> SpillFile {
        // A join has up to 32 unfinished records. They are not in its account: they add a quarter of its
        // memory, and the buffer of the file as much.
        let share = |parts: u64, least: usize, most: usize| ((spill_from / parts) as usize).clamp(least, most);
        SpillFile {
            resources: Arc::clone(resources),
            space_max,
            write_bytes: share(8, 4096, WRITE_BYTES_MAX),
            record_bytes: share(128, 512, 128 << 10),
            operation: None,
            request: Request::None,
            tail: Vec::new(),
            tail_start: 0,
            wanted: None,
            buffer: FileBuffer::new(),
            live: Arc::default(),
            booked: 0,
            written: 0,
        }
    }

    /// Whether the file waits for an answer of this operation.
    pub fn awaits(&self, operation: OperationId) -> bool {
        self.operation == Some(operation)
    }

    /// Whether the query may write a file.
    pub fn is_allowed(&self) -> bool {
        self.space_max > 0
    }

    /// Whether a request is under way.
    pub fn is_busy(&self) -> bool {
        self.request != Request::None
    }

    /// Whether an operator must wait before it appends more records.
    pub fn is_full(&self) -> bool {
        self.tail.len() >= 2 * self.write_bytes
    }

    /// Counts the bytes of records that operators still have.
    pub fn live(&self) -> LiveBytes {
        Arc::clone(&self.live)
    }

    /// Appends a record. Errors: 1041 if queries may write no files; 1114 if the node has no temporary space
    /// left; 1 with the number of the operating system.
    pub fn append(&mut self, context: &mut StatementContext<'_, '_>, batches: &[&Batch]) -> Result<Place> {
        self.open(context)?;
        if self.live.load(Ordering::Relaxed) == 0 && self.request == Request::None {
            self.tail.clear();
            (self.tail_start, self.wanted) = (0, None);
        }
        let start = self.tail.len();
        self.tail.extend_from_slice(&[0; HEADER_BYTES]);
        for batch in batches {
            batch.append_to(&mut self.tail);
        }
        let record = &mut self.tail[start..];
        if record.len() > RECORD_BYTES_MAX {
            return Err(out_of_memory());
        }
        let bytes = record.len() as u32;
        let checksum = crc32c::crc32c(&record[HEADER_BYTES..]);
        record[..4].copy_from_slice(&bytes.to_le_bytes());
        record[4..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        let place = Place { offset: self.tail_start + start as u64, bytes };
        let end = place.offset + u64::from(bytes);
        if end > self.booked {
            let more = (end - self.booked).next_multiple_of(BOOKED_BYTES);
            if !self.resources.book_space(more, self.space_max) {
                return Err(self.full(context.engine));
            }
            self.booked += more;
        }
        self.written += u64::from(bytes);
        context.engine.counters.temporary_bytes += u64::from(bytes);
        self.live.fetch_add(u64::from(bytes), Ordering::Relaxed);
        self.request_next(context);
        Ok(place)
    }

    /// The batches of a record, which have these frames. `None` if they must be read; the operator then
    /// waits. Error: 2 if the record is damaged.
    pub fn load<const BATCHES: usize>(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        place: Place,
        frames: [&Arc<Frame>; BATCHES],
    ) -> Result<Option<[Batch; BATCHES]>> {
        if place.offset >= self.tail_start {
            let start = (place.offset - self.tail_start) as usize;
            let record = self.tail.get(start..start + place.bytes as usize).unwrap_or_default();
            return decoded(record, frames).map(Some).ok_or_else(|| self.damaged(context.engine));
        }
        match self.wanted.take() {
            Some(Wanted { place: found, bytes: Some(record) }) if found == place => {
                let batches = decoded(&record, frames).ok_or_else(|| self.damaged(context.engine))?;
                self.buffer = record;
                return Ok(Some(batches));
            }
            // The operator that waited for another record has ended. Its read must end first.
            Some(other) if other.bytes.is_none() && self.request == Request::Read => self.wanted = Some(other),
            _ => self.wanted = Some(Wanted { place, bytes: None }),
        }
        self.request_next(context);
        Ok(None)
    }

    /// Takes an answer about the file. Errors: 1, 2 and 3 with the number of the operating system, 1114 if
    /// the device is full.
    pub fn on_answer(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        answer: FileAnswer,
        bytes: FileBuffer,
    ) -> Result<()> {
        let attempt = match std::mem::replace(&mut self.request, Request::None) {
            Request::Open => FileAttempt::Create,
            Request::Read => FileAttempt::Read,
            Request::Write | Request::None => FileAttempt::Write,
        };
        match answer {
            Ok(FileStep::Read) => {
                if let Some(wanted) = &mut self.wanted {
                    wanted.bytes = Some(bytes);
                }
            }
            Ok(_) => self.buffer = bytes,
            Err(error) => {
                if attempt == FileAttempt::Create {
                    // The operation has ended.
                    self.operation = None;
                }
                return Err(self.error(context.engine, attempt, error));
            }
        }
        self.request_next(context);
        Ok(())
    }

    /// Closes the file and gives its space back. Its operators are gone.
    pub fn end(&mut self, engine: &mut Engine, turn: &mut TurnContext<'_>) {
        if let Some(operation) = self.operation.take() {
            engine.gateway.discard_file(operation, false, turn);
        }
        self.resources.release_space(std::mem::take(&mut self.booked));
    }

    fn open(&mut self, context: &mut StatementContext<'_, '_>) -> Result<()> {
        if self.operation.is_some() {
            return Ok(());
        }
        let Some(prefix) = context.engine.settings.temporary_files.clone().filter(|_| self.is_allowed()) else {
            return Err(out_of_memory());
        };
        let opened = context.engine.gateway.open_temporary(context.session.connection, &prefix, context.turn);
        let operation = opened.map_err(|error| self.error(context.engine, FileAttempt::Create, error))?;
        context.engine.counters.temporary_files += 1;
        (self.operation, self.request) = (Some(operation), Request::Open);
        Ok(())
    }

    /// Sends the next request, if none is under way.
    fn request_next(&mut self, context: &mut StatementContext<'_, '_>) {
        let (Some(operation), Request::None) = (self.operation, self.request) else { return };
        let gateway = &mut context.engine.gateway;
        if let Some(Wanted { place, bytes: None }) = self.wanted {
            let buffer = std::mem::take(&mut self.buffer);
            gateway.read_temporary(operation, (place.offset, place.bytes), buffer, context.turn);
            self.request = Request::Read;
        } else if self.tail.len() >= self.write_bytes {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            buffer.extend_from_slice(&self.tail);
            gateway.write_temporary(operation, self.tail_start, buffer, context.turn);
            self.tail_start += self.tail.len() as u64;
            self.tail.clear();
            self.request = Request::Write;
        }
    }

    fn error(&self, engine: &Engine, attempt: FileAttempt, error: FileError) -> Box<Error> {
        match error {
            FileError::DiskFull => self.full(engine),
            error => file_error(None, prefix_of(engine), attempt, error),
        }
    }

    #[cold]
    fn full(&self, engine: &Engine) -> Box<Error> {
        Error::new(ErrorCode::TableFull, format!("The table '{}' is full", prefix_of(engine)))
    }

    #[cold]
    fn damaged(&self, engine: &Engine) -> Box<Error> {
        let text = format!("Error reading file '{}': a record is damaged", prefix_of(engine));
        Error::new(ErrorCode::ReadFileFailed, text)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.resources.release_space(self.booked);
    }
}

/// The beginning of the path of all temporary files.
fn prefix_of(engine: &Engine) -> &str {
    engine.settings.temporary_files.as_deref().unwrap_or_default()
}

impl Place {
    /// Bytes of the record.
    pub fn bytes(self) -> u64 {
        u64::from(self.bytes)
    }
}

/// The batches of a record; `None` if it is damaged.
fn decoded<const BATCHES: usize>(record: &[u8], frames: [&Arc<Frame>; BATCHES]) -> Option<[Batch; BATCHES]> {
    let (header, mut rest) = record.split_at_checked(HEADER_BYTES)?;
    let length = u32::from_le_bytes(header[..4].try_into().ok()?);
    let checksum = u32::from_le_bytes(header[4..].try_into().ok()?);
    if length as usize != record.len() || checksum != crc32c::crc32c(rest) {
        return None;
    }
    let mut batches = frames.map(Batch::new);
    for batch in &mut batches {
        rest = batch.read_from(rest)?;
    }
    rest.is_empty().then_some(batches)
}

#[cfg(test)]
mod tests {
    use junctor_expression::{Parameters, ParametersBuilder};
    use junctor_model::value::ValueRef;

    use super::*;

    #[test]
    fn a_record_has_its_batches_and_damage_is_found() {
        let mut own = ParametersBuilder::new();
        own.push(ValueRef::Bytes(b"parameter"));
        let mut bytes = Vec::new();
        own.append_to(&mut bytes).expect("parameters");
        let rows = Arc::new(Frame::new(Parameters::from_bytes(&bytes), 3));
        let keys = Arc::new(Frame::new(Parameters::default(), 1));
        let (mut row_batch, mut key_batch) = (Batch::new(&rows), Batch::new(&keys));
        for number in 0..5_i64 {
            row_batch.push();
            row_batch.set(number as usize, 2, ValueRef::Int(number));
            key_batch.push();
            key_batch.set(number as usize, 0, ValueRef::Bytes(&[number as u8; 3]));
        }
        let mut record = vec![0; HEADER_BYTES];
        row_batch.append_to(&mut record);
        key_batch.append_to(&mut record);
        let length = record.len() as u32;
        record[..4].copy_from_slice(&length.to_le_bytes());
        let checksum = crc32c::crc32c(&record[HEADER_BYTES..]);
        record[4..8].copy_from_slice(&checksum.to_le_bytes());
        let [found, found_keys] = decoded(&record, [&rows, &keys]).expect("a record");
        assert_eq!((found.len(), found_keys.len()), (5, 5));
        for row in 0..5 {
            assert_eq!(found.row(row).get(0), ValueRef::Bytes(b"parameter"));
            assert_eq!(found.row(row).get(1), ValueRef::Null);
            assert_eq!(found.row(row).get(2), ValueRef::Int(row as i64));
            assert_eq!(found_keys.row(row).get(0), ValueRef::Bytes(&[row as u8; 3]));
        }
        for at in 0..record.len() {
            record[at] ^= 1;
            assert!(decoded(&record, [&rows, &keys]).is_none(), "byte {at}");
            record[at] ^= 1;
        }
        for end in 0..record.len() {
            assert!(decoded(&record[..end], [&rows, &keys]).is_none(), "{end} bytes");
        }
    }
}
