//! Hot path, budget 20 instructions a key: rows by their primary keys, many at once.

use std::fmt;
use std::sync::Arc;

use junctor_model::value::Value;

use super::error::{Error, Result};
use super::pipeline::Pipeline;
use super::row::{Columns, Row};
use super::statement::{is_number, parse_prepared};
use super::value::ToValue;
use junctor_wire::reply::{KEY_ROWS_HEAD_BYTES, NOT_FOUND};
use junctor_wire::request::begin_integer_keys;
use junctor_wire::value::put_value;
use junctor_wire::{KEYS_MAX, KeyValues, READER_COLUMNS_MAX, Reply, Request, frame, next_frame};

/// A primary key: an integer, a string, or a tuple of those with a value for each column in the key's order.
pub trait Key {
    /// The key where all keys of the type are one signed integer.
    const IS_INTEGER: bool = false;

    /// The integer, if [`Key::IS_INTEGER`].
    fn integer(&self) -> i64 {
        0
    }

    /// The values of the columns, one after the other.
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
    ($($type:ident $place:tt),*) => {
        impl<$($type: ToValue),*> Key for ($($type,)*) {
            fn values(&self, push: &mut dyn FnMut(&dyn ToValue)) {
                $(push(&self.$place);)*
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

/// Reads rows of one table by primary key; made by [`Connection::key_reader`](crate::Connection::key_reader).
///
/// This is the cheapest way to read: neither a statement nor a plan is looked at, keys are hashed and looked up in batches, and the rows
/// are read in place, out of the buffer in which the node has put them. It belongs to its connection: within a transaction it sees
/// what the transaction sees, its own writes too.
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
        if let Some(name) = [database, table].iter().chain(columns).find(is_too_long) {
            return Err(Error::name_too_long(name));
        }
        pipeline.room().await?;
        let request = Request::PrepareReader { reader, database, table, columns: columns.to_vec() };
        let answer = pipeline.begin(|number, out| request.emit(number, out))?;
        let (parameters, columns) = parse_prepared(&answer.await?)?;
        let (columns, key_columns) = (Arc::new(columns), usize::from(parameters));
        Ok(KeyReader { pipeline: Arc::clone(pipeline), reader, columns, key_columns })
    }

    /// The columns that are read.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// How many columns the primary key has.
    pub fn key_columns(&self) -> usize {
        self.key_columns
    }

    /// Reads the rows of up to 16,384 keys at one moment; for each key, in their order, the row or nothing. The same key may be given
    /// several times.
    ///
    /// # Errors
    /// 1153 for too many keys, or when their rows take more than 15 MiB; 1615 when the columns are not what they were (prepare
    /// another reader); 2036 (1835 for integers) for keys of another number of columns; 1366 for a number where the key has a string; 1412 and others of reads.
    pub async fn read_many<K: Key>(&self, keys: &[K]) -> Result<FoundRows> {
        if keys.len() > KEYS_MAX {
            return Err(Error::server(1153, *b"08S01", "Too many keys in one read"));
        }
        let values = if K::IS_INTEGER { Vec::new() } else { self.values_of(keys)? };
        self.pipeline.room().await?;
        let answer = self.pipeline.begin(|number, out| self.emit(number, keys, &values, out))?.await?;
        let found = self.found(answer)?;
        match found.len() == keys.len() {
            true => Ok(found),
            false => Err(Error::protocol("keys")),
        }
    }

    #[inline]
    fn emit<K: Key>(&self, number: u32, keys: &[K], values: &[u8], out: &mut Vec<u8>) -> bool {
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
        Request::ReadKeys { reader: self.reader, keys }.emit(number, out)
    }

    /// The values of keys; each key has one for every column, or the keys behind it would be others.
    fn values_of<K: Key>(&self, keys: &[K]) -> Result<Vec<u8>> {
        let mut values = Vec::with_capacity(keys.len() * 16);
        let mut is_finite = true;
        for key in keys {
            let mut count = 0;
            key.values(&mut |value| {
                let value = value.to_value();
                count += 1;
                is_finite &= is_number(value);
                put_value(value, &mut values);
            });
            if count != self.key_columns {
                let columns = self.key_columns;
                return Err(Error::value(format!("A key has {count} values, and the primary key {columns} columns")));
            }
        }
        match is_finite {
            true => Ok(values),
            false => Err(Error::value("A value is NaN or infinite".into())),
        }
    }

    fn found(&self, answer: Vec<u8>) -> Result<FoundRows> {
        let (frame, _) = next_frame(&answer).ok_or(Error::protocol("end"))?;
        let (status, body_end, keys) = match Reply::parse(frame)?.1 {
            Reply::KeyRows(rows) => (rows.status, KEY_ROWS_HEAD_BYTES + rows.body.len(), rows.index.len()),
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
        self.pipeline.begin_and_forget(|number, out| request.emit(number, out));
    }
}

/// The rows of some keys, in the order of the keys.
pub struct FoundRows {
    pipeline: Arc<Pipeline>,
    columns: Arc<Columns>,
    bytes: Vec<u8>,
    /// Where the rows end and the places of the keys' rows begin.
    body_end: usize,
    keys: usize,
}

impl FoundRows {
    /// How many keys there were.
    pub fn len(&self) -> usize {
        self.keys
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// The columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The row of the key at a position; `None` when no row has the key.
    #[inline]
    pub fn get(&self, position: usize) -> Option<Row<'_>> {
        let place = self.bytes.get(self.body_end + position * 4..)?.first_chunk()?;
        self.row_at(u32::from_le_bytes(*place))
    }

    /// For each key its row, or `None`.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<Row<'_>>> {
        let places = self.bytes.get(self.body_end..).unwrap_or(&[]).as_chunks().0;
        places.iter().map(|place| self.row_at(u32::from_le_bytes(*place)))
    }

    #[inline]
    fn row_at(&self, place: u32) -> Option<Row<'_>> {
        if place == NOT_FOUND {
            return None;
        }
        // A place beyond the rows is the node's mistake; what is read there is no whole frame.
        let rows = self.bytes.get(KEY_ROWS_HEAD_BYTES..self.body_end)?;
        let (frame, _) = next_frame(rows.get(place as usize..)?)?;
        Some(Row::new(&self.columns, frame.payload))
    }
}

impl Drop for FoundRows {
    fn drop(&mut self) {
        self.pipeline.give(std::mem::take(&mut self.bytes));
    }
}

impl fmt::Debug for FoundRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}
