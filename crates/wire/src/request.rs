//! Requests of a client. Each has a number, which its reply repeats. Each gets exactly one reply.

use junctor_model::value::ValueRef;

use super::field::{FieldReader, Malformed, encode_text};
use super::frame::{begin_frame, end_frame};
use super::value::{encode_value, read_value};
use super::{KEYS_MAX, READER_COLUMNS_MAX, VERSION};

/// Kinds of the frames that clients send. All are below 0x80.
pub mod kind {
    /// [`super::Login`], a client's first frame.
    pub const LOGIN: u8 = 0x01;
    /// Checks that the server replies.
    pub const PING: u8 = 0x10;
    /// Executes a statement given as text.
    pub const RUN_TEXT: u8 = 0x11;
    /// Prepares a statement.
    pub const PREPARE: u8 = 0x12;
    /// Executes a prepared statement.
    pub const EXECUTE: u8 = 0x13;
    /// Deallocates a prepared statement.
    pub const CLOSE: u8 = 0x14;
    /// Prepares a key reader, which reads rows by primary key.
    pub const PREPARE_READER: u8 = 0x15;
    /// Reads rows by primary key.
    pub const READ_KEYS: u8 = 0x16;
    /// Deallocates a key reader.
    pub const CLOSE_READER: u8 = 0x17;
    /// Resets the session to its state after the login.
    pub const RESET: u8 = 0x18;
}

/// The login request, a client's reply to the greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Login<'a> {
    /// The client's protocol version.
    pub version: u16,
    /// The user name, up to 65,535 bytes.
    pub user: &'a str,
    /// The proof of the password, up to 255 bytes; empty for an empty password.
    pub proof: &'a [u8],
    /// The session's initial default database; empty for none.
    pub database: &'a str,
}

impl<'a> Login<'a> {
    /// Appends the frame. Returns false and appends nothing if a text has more than 65,535 bytes or the proof
    /// more than 255.
    #[must_use]
    pub fn encode(&self, out: &mut Vec<u8>) -> bool {
        let Ok(proof_bytes) = u8::try_from(self.proof.len()) else { return false };
        encode(kind::LOGIN, 0, out, |out| {
            out.extend_from_slice(&self.version.to_le_bytes());
            out.push(proof_bytes);
            out.extend_from_slice(self.proof);
            encode_text(self.user, out) && encode_text(self.database, out)
        })
    }

    /// Reads the payload. If the version is not [`VERSION`], all other fields are empty: their format is
    /// unknown, and the caller refuses the version.
    ///
    /// # Errors
    /// The payload is malformed.
    pub fn parse(payload: &'a [u8]) -> Result<Login<'a>, Malformed> {
        let mut fields = FieldReader::new(payload);
        fields.u32("number")?;
        let version = fields.u16("version")?;
        if version != VERSION {
            return Ok(Login { version, user: "", proof: b"", database: "" });
        }
        let proof_bytes = usize::from(fields.u8("proof")?);
        let proof = fields.bytes(proof_bytes, "proof")?;
        let user = fields.text("user")?;
        let database = fields.text("database")?;
        fields.expect_end()?;
        Ok(Login { version, user, proof, database })
    }
}

/// The keys of a `ReadKeys` request. Each key has a value for every column of the primary key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyValues<'a> {
    /// Keys of one integer column: eight bytes each, signed, little-endian.
    Integers(&'a [[u8; 8]]),
    /// Keys of any columns.
    Values {
        /// Number of keys, as the client claims it; at most [`KEYS_MAX`] after [`parse_keys`].
        keys: u32,
        /// The undecoded values, key by key; see [`read_value`].
        values: &'a [u8],
    },
}

impl KeyValues<'_> {
    /// Number of keys. For [`KeyValues::Values`] this is the client's claim, which the values may contradict.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            KeyValues::Integers(keys) => keys.len(),
            KeyValues::Values { keys, .. } => *keys as usize,
        }
    }

    /// Whether the number of keys is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// The form byte of `KeyValues`.
const INTEGERS: u8 = 0;
const VALUES: u8 = 1;

/// A request after the login.
#[derive(Clone, Debug, PartialEq)]
pub enum Request<'a> {
    /// Checks that the server replies.
    Ping,
    /// Executes a statement given as text.
    RunText(&'a str),
    /// Prepares a statement. It replaces the statement that has the same handle.
    Prepare {
        /// Chosen by the client.
        handle: u32,
        /// The statement, with `?` for parameters.
        text: &'a str,
    },
    /// Executes a prepared statement.
    Execute {
        /// From `Prepare`.
        handle: u32,
        /// Number of parameters.
        count: u16,
        /// The undecoded parameter values; see [`parse_values`].
        values: &'a [u8],
    },
    /// Deallocates a prepared statement.
    Close {
        /// From `Prepare`.
        handle: u32,
    },
    /// Prepares a key reader. It replaces the key reader that has the same number.
    PrepareReader {
        /// Chosen by the client.
        reader: u32,
        /// The table's database; empty for the session's default database.
        database: &'a str,
        /// Name of the table.
        table: &'a str,
        /// Names of the columns to return, from 1 to [`READER_COLUMNS_MAX`].
        columns: Vec<&'a str>,
    },
    /// Reads rows by primary key.
    ReadKeys {
        /// From `PrepareReader`.
        reader: u32,
        /// At most [`KEYS_MAX`].
        keys: KeyValues<'a>,
    },
    /// Deallocates a key reader.
    CloseReader {
        /// From `PrepareReader`.
        reader: u32,
    },
    /// Resets the session to its state after the login.
    Reset,
}

impl<'a> Request<'a> {
    /// Reads a frame. Returns the request's number, or 0 if the payload is too short for one, and the
    /// request. The request is `None` if its kind is unknown.
    ///
    /// # Errors
    /// The payload is malformed.
    #[inline]
    pub fn parse(kind: u8, payload: &'a [u8]) -> (u32, Result<Option<Request<'a>>, Malformed>) {
        let mut fields = FieldReader::new(payload);
        match fields.u32("number") {
            Ok(number) => (number, Self::parse_fields(kind, fields)),
            Err(error) => (0, Err(error)),
        }
    }

    fn parse_fields(kind: u8, mut fields: FieldReader<'a>) -> Result<Option<Request<'a>>, Malformed> {
        let request = match kind {
            kind::READ_KEYS => {
                let reader = fields.u32("reader")?;
                let keys = parse_keys(&mut fields)?;
                Request::ReadKeys { reader, keys }
            }
            kind::EXECUTE => {
                let (handle, count) = (fields.u32("handle")?, fields.u16("count")?);
                // The values stay undecoded: `parse_values` decodes them into their destination.
                let values = fields.rest();
                return Ok(Some(Request::Execute { handle, count, values }));
            }
            kind::PING => Request::Ping,
            kind::RESET => Request::Reset,
            kind::RUN_TEXT => Request::RunText(fields.last_text("statement")?),
            kind::PREPARE => {
                let handle = fields.u32("handle")?;
                Request::Prepare { handle, text: fields.last_text("statement")? }
            }
            kind::CLOSE => Request::Close { handle: fields.u32("handle")? },
            kind::CLOSE_READER => Request::CloseReader { reader: fields.u32("reader")? },
            kind::PREPARE_READER => {
                let reader = fields.u32("reader")?;
                let (database, table) = (fields.text("database")?, fields.text("table")?);
                let count = usize::from(fields.u16("columns")?);
                if count == 0 || count > READER_COLUMNS_MAX {
                    return Err(Malformed { field: "columns" });
                }
                let columns = (0..count).map(|_| fields.text("columns")).collect::<Result<_, _>>()?;
                Request::PrepareReader { reader, database, table, columns }
            }
            _ => return Ok(None),
        };
        fields.expect_end()?;
        Ok(Some(request))
    }

    /// Appends the frame. Returns false and appends nothing if the request exceeds a frame, a name exceeds
    /// 65,535 bytes, or a reader has more than [`READER_COLUMNS_MAX`] columns.
    #[must_use]
    pub fn encode(&self, number: u32, out: &mut Vec<u8>) -> bool {
        encode(self.kind(), number, out, |out| self.encode_contents(out))
    }

    fn encode_contents(&self, out: &mut Vec<u8>) -> bool {
        match self {
            Request::Ping | Request::Reset => {}
            Request::RunText(text) => out.extend_from_slice(text.as_bytes()),
            Request::Prepare { handle, text } => {
                out.extend_from_slice(&handle.to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
            Request::Execute { handle, count, values } => {
                out.extend_from_slice(&handle.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
                out.extend_from_slice(values);
            }
            Request::Close { handle: number } | Request::CloseReader { reader: number } => {
                out.extend_from_slice(&number.to_le_bytes());
            }
            Request::PrepareReader { reader, database, table, columns } => {
                out.extend_from_slice(&reader.to_le_bytes());
                if columns.len() > READER_COLUMNS_MAX || !encode_text(database, out) || !encode_text(table, out) {
                    return false;
                }
                out.extend_from_slice(&(columns.len() as u16).to_le_bytes());
                return columns.iter().all(|column| encode_text(column, out));
            }
            Request::ReadKeys { reader, keys } => {
                out.extend_from_slice(&reader.to_le_bytes());
                let form = if matches!(keys, KeyValues::Integers(_)) { INTEGERS } else { VALUES };
                out.push(form);
                out.extend_from_slice(&(keys.len() as u32).to_le_bytes());
                match keys {
                    KeyValues::Integers(keys) => out.extend_from_slice(keys.as_flattened()),
                    KeyValues::Values { values, .. } => out.extend_from_slice(values),
                }
            }
        }
        true
    }

    fn kind(&self) -> u8 {
        match self {
            Request::Ping => kind::PING,
            Request::RunText(_) => kind::RUN_TEXT,
            Request::Prepare { .. } => kind::PREPARE,
            Request::Execute { .. } => kind::EXECUTE,
            Request::Close { .. } => kind::CLOSE,
            Request::PrepareReader { .. } => kind::PREPARE_READER,
            Request::ReadKeys { .. } => kind::READ_KEYS,
            Request::CloseReader { .. } => kind::CLOSE_READER,
            Request::Reset => kind::RESET,
        }
    }
}

/// Reads the keys of a `ReadKeys` request: their form, their number and the values.
///
/// # Errors
/// The form is unknown, there are more than [`KEYS_MAX`] keys, or fewer integers than the number says.
#[inline]
pub fn parse_keys<'a>(fields: &mut FieldReader<'a>) -> Result<KeyValues<'a>, Malformed> {
    let (form, count) = (fields.u8("form")?, fields.u32("keys")?);
    // The client chooses this number freely, and the server does work for each key that it counts.
    if count as usize > KEYS_MAX {
        return Err(Malformed { field: "keys" });
    }
    match form {
        INTEGERS => {
            let bytes = fields.bytes(count as usize * 8, "keys")?;
            Ok(KeyValues::Integers(bytes.as_chunks().0))
        }
        VALUES => {
            let values = fields.rest();
            fields.bytes(values.len(), "keys")?;
            Ok(KeyValues::Values { keys: count, values })
        }
        _ => Err(Malformed { field: "form" }),
    }
}

/// Begins a `ReadKeys` request with keys of one integer column. The caller appends `count` keys of eight
/// bytes, then calls [`end_frame`] with the returned position.
#[inline]
pub fn begin_integer_keys(number: u32, reader: u32, count: u32, out: &mut Vec<u8>) -> usize {
    let start = begin_frame(kind::READ_KEYS, out);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&reader.to_le_bytes());
    out.push(INTEGERS);
    out.extend_from_slice(&count.to_le_bytes());
    start
}

/// Decodes `count` parameter values and passes each to `push`.
///
/// # Errors
/// `values` has more or fewer than `count` values, or one of them is malformed.
pub fn parse_values(count: u16, values: &[u8], push: &mut dyn FnMut(ValueRef<'_>)) -> Result<(), Malformed> {
    let mut fields = FieldReader::new(values);
    for _ in 0..count {
        push(read_value(&mut fields)?);
    }
    fields.expect_end()
}

/// Appends parameter values in the form of [`Request::Execute`].
pub fn encode_values<'v>(values: impl IntoIterator<Item = ValueRef<'v>>, out: &mut Vec<u8>) {
    values.into_iter().for_each(|value| encode_value(value, out));
}

fn encode(kind: u8, number: u32, out: &mut Vec<u8>, contents: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
    let start = begin_frame(kind, out);
    out.extend_from_slice(&number.to_le_bytes());
    if !contents(out) {
        out.truncate(start);
        return false;
    }
    end_frame(start, out)
}
