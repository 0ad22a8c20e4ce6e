//! Hot path: at most 20 instructions per key.
//!
//! Reads many rows by primary key at once.

use std::fmt;
use std::sync::Arc;

use junctor_model::value::Value;

use super::error::{Error, Result};
use super::pipeline::Pipeline;
use super::row::{Columns, Row};
use super::statement::parse_prepared;
use super::value::{ToValue, check};
use junctor_wire::reply::{KEY_ROWS_HEADER_BYTES, NOT_FOUND};
use junctor_wire::request::begin_integer_keys;
use junctor_wire::value::encode_value;
use junctor_wire::{KEYS_MAX, KeyValues, READER_COLUMNS_MAX, Reply, Request, frame, next_frame};

/// A primary key: one value, or a tuple with a value for each column in the key's order.
pub trait Key {
    /// Whether every key of the type is one integer in the range of `i64`. Such keys are sent in a more
    /// compact form.
    const IS_INTEGER: bool = false;

    /// The key's integer; used only if [`Key::IS_INTEGER`].
    fn integer(&self) -> i64 {
        0
    }

    /// Passes the value of each key column to `push`, in the key's order.
    fn values(&self, push: &mut dyn FnMut(&dyn ToValue));
}

macro_rules! key {
    ($($type:ty)*) => {
        $(impl Key for $type {
            fn values(&self, push: &mut dyn FnMut(&dyn ToValue)) {
                push(self);
            }
        })*
    };
}

macro_rules! integer_key {
    ($($type:ty)*) => {
        $(impl Key for $type {
            const IS_INTEGER: bool = true;

            #[inline]
            fn integer(&self) -> i64 {
                i64::from(*self)
            }

            fn values(&self, push: &mut dyn FnMut(&dyn ToValue)) {
                push(self);
            }
        })*
    };
}

integer_key!(i8 i16 i32 i64 u8 u16 u32);
key!(u64 f64 String &str Vec<u8> &[u8] Value);

macro_rules! key_of_several {
    ($($type:ident $index:tt),*) => {
        impl<$($type: ToValue),*> Key for ($($type,)*) {
            fn values(&self, push: &mut dyn FnMut(&dyn ToValue)) {
                $(push(&self.$index);)*
            }
        }
    };
}

key_of_several!(A 0);
key_of_several!(A 0, B 1);
key_of_several!(A 0, B 1, C 2);
key_of_several!(A 0, B 1, C 2, D 3);

impl Key for Vec<Value> {
    fn values(&self, push: &mut dyn FnMut(&dyn ToValue)) {
        self.iter().for_each(|value| push(value));
    }
}

/// Reads rows of one table by primary key. Made by [`Connection::key_reader`](crate::Connection::key_reader).
///
/// This is the cheapest way to read. A read needs no parsing and no planning, the node looks up keys in
/// batches, and the driver decodes rows directly in the received buffer. A key reader belongs to its
/// connection: within a transaction it sees what the transaction sees, including the transaction's own
/// writes. Dropping a key reader deallocates it on the node.
#[derive(Debug)]
pub struct KeyReader {
    pipeline: Arc<Pipeline>,
    reader: u32,
    columns: Arc<Columns>,
    key_columns: usize,
}

impl KeyReader {
    pub(crate) async fn prepare(
        pipeline: &Arc<Pipeline>,
        reader: u32,
        table: &str,
        columns: &[&str],
    ) -> Result<KeyReader> {
        let (database, table) = table.split_once('.').unwrap_or(("", table));
        if columns.is_empty() || columns.len() > READER_COLUMNS_MAX {
            return Err(Error::value(format!("A reader has 1 to {READER_COLUMNS_MAX} columns")));
        }
        let is_too_long = |name: &&&str| name.len() > usize::from(u16::MAX);
        // Refused here, where the message can name the name that is too long. `encode` only reports that
        // something is.
        if let Some(name) = [database, table].iter().chain(columns).find(is_too_long) {
            return Err(Error::name_too_long(name));
        }
        pipeline.wait_for_space().await?;
        let request = Request::PrepareReader { reader, database, table, columns: columns.to_vec() };
        let answer = pipeline.enqueue(|number, out| request.encode(number, out))?;
        let (parameters, columns) = parse_prepared(&answer.await?)?;
        let (columns, key_columns) = (Arc::new(columns), usize::from(parameters));
        Ok(KeyReader { pipeline: Arc::clone(pipeline), reader, columns, key_columns })
    }

    /// The columns of the returned rows.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Number of columns of the primary key.
    pub fn key_columns(&self) -> usize {
        self.key_columns
    }

    /// Reads the rows of up to 16,384 keys from one snapshot. Returns, for each key in the order of `keys`,
    /// its row or nothing. A key may occur more than once.
    ///
    /// # Errors
    /// 1153 for too many keys, or if their rows exceed 15 MiB; 1615 if the type of a column changed (prepare
    /// another reader); 2036 (1835 for integers) if the keys do not have the primary key's number of columns;
    /// 1366 for a number where the key has a string; 1412 and other errors of reads.
    pub async fn read_many<K: Key>(&self, keys: &[K]) -> Result<FoundRows> {
        if keys.len() > KEYS_MAX {
            return Err(Error::server(1153, *b"08S01", "Too many keys in one read"));
        }
        let values = if K::IS_INTEGER { Vec::new() } else { self.values_of(keys)? };
        self.pipeline.wait_for_space().await?;
        let answer = self.pipeline.enqueue(|number, out| self.encode(number, keys, &values, out))?.await?;
        let found = self.parse_found(answer)?;
        match found.len() == keys.len() {
            true => Ok(found),
            false => Err(Error::protocol("keys")),
        }
    }

    #[inline]
    fn encode<K: Key>(&self, number: u32, keys: &[K], values: &[u8], out: &mut Vec<u8>) -> bool {
        if K::IS_INTEGER {
            out.reserve(32 + keys.len() * 8);
            let start = begin_integer_keys(number, self.reader, keys.len() as u32, out);
            let at = out.len();
            out.resize(at + keys.len() * 8, 0);
            for (bytes, key) in out[at..].as_chunks_mut().0.iter_mut().zip(keys) {
                *bytes = key.integer().to_le_bytes();
            }
            return frame::end_frame(start, out);
        }
        let keys = KeyValues::Values { keys: keys.len() as u32, values };
        Request::ReadKeys { reader: self.reader, keys }.encode(number, out)
    }

    /// Encodes the values of keys. Checks the number of values of each key, because the encoding does not
    /// separate keys and a missing value would shift all later ones.
    fn values_of<K: Key>(&self, keys: &[K]) -> Result<Vec<u8>> {
        let mut values = Vec::with_capacity(keys.len() * 16);
        let mut checked = Ok(());
        for key in keys {
            let mut count = 0;
            key.values(&mut |value| {
                let value = value.to_value();
                count += 1;
                if checked.is_ok() {
                    checked = check(value.as_ref());
                }
                encode_value(value.as_ref(), &mut values);
            });
            if count != self.key_columns {
                let columns = self.key_columns;
                return Err(Error::value(format!("A key has {count} values, and the primary key {columns} columns")));
            }
        }
        checked.map(|()| values)
    }

    fn parse_found(&self, answer: Vec<u8>) -> Result<FoundRows> {
        let (frame, _) = next_frame(&answer).ok_or(Error::protocol("end"))?;
        let (status, body_end, keys) = match Reply::parse(frame)?.1 {
            Reply::KeyRows(rows) => (rows.status, KEY_ROWS_HEADER_BYTES + rows.body.len(), rows.index.len()),
            Reply::Failed { errno, sqlstate, message } => return Err(Error::server(errno, sqlstate, message)),
            _ => return Err(Error::protocol("kind")),
        };
        self.pipeline.note_status(status);
        let (pipeline, columns) = (Arc::clone(&self.pipeline), Arc::clone(&self.columns));
        Ok(FoundRows { pipeline, columns, bytes: answer, body_end, keys })
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        let request = Request::CloseReader { reader: self.reader };
        self.pipeline.enqueue_and_discard(|number, out| request.encode(number, out));
    }
}

/// The result of [`KeyReader::read_many`]: a row or nothing for each key, in the order of the keys.
pub struct FoundRows {
    pipeline: Arc<Pipeline>,
    columns: Arc<Columns>,
    bytes: Vec<u8>,
    /// Offset in `bytes` at which the rows end and the index begins. The index has, for each key, the
    /// four-byte offset of its row.
    body_end: usize,
    keys: usize,
}

impl FoundRows {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys
    }

    /// Whether the number of keys is 0.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// The columns of the rows.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The row of the key at `position`, from 0. `None` if no row has the key.
    #[inline]
    pub fn get(&self, position: usize) -> Option<Row<'_>> {
        let offset = self.bytes.get(self.body_end..)?.as_chunks().0.get(position)?;
        self.row_at(u32::from_le_bytes(*offset))
    }

    /// For each key its row, or `None` if no row has the key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<Row<'_>>> {
        let offsets = self.bytes.get(self.body_end..).unwrap_or(&[]).as_chunks().0;
        offsets.iter().map(|offset| self.row_at(u32::from_le_bytes(*offset)))
    }

    #[inline]
    fn row_at(&self, offset: u32) -> Option<Row<'_>> {
        if offset == NOT_FOUND {
            return None;
        }
        // The node sent the offset, so it is not trusted: the slice ends where the rows end, and a frame must
        // lie inside it.
        let rows = self.bytes.get(KEY_ROWS_HEADER_BYTES..self.body_end)?;
        let (frame, _) = next_frame(rows.get(offset as usize..)?)?;
        Some(Row::new(&self.columns, frame.payload))
    }
}

impl Drop for FoundRows {
    fn drop(&mut self) {
        self.pipeline.recycle_buffer(std::mem::take(&mut self.bytes));
    }
}

impl fmt::Debug for FoundRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}
