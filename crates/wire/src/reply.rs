//! What a server sends. An answer is any number of rows, perhaps after their columns, and one frame that ends it.

use junctor_model::row_encoding::ResultColumn;

use super::field::{Fields, Malformed, put_text};
use super::frame::{self, Frame, begin_frame, end_frame};
use super::{MAGIC, SALT_BYTES};

/// The kinds of frames that servers send.
pub mod kind {
    /// [`super::Greeting`], the first frame of a connection.
    pub const GREETING: u8 = 0x80;
    /// The columns of the rows that follow.
    pub const COLUMNS: u8 = 0x81;
    /// The end of an answer: done.
    pub const DONE: u8 = 0x82;
    /// The end of an answer: an error.
    pub const FAILED: u8 = 0x83;
    /// The end of an answer: a statement or a reader is prepared.
    pub const PREPARED: u8 = 0x84;
    /// The end of an answer: rows by their keys.
    pub const KEY_ROWS: u8 = 0x85;
}

/// Autocommit is on.
pub const STATUS_AUTOCOMMIT: u8 = 1;
/// A transaction is open.
pub const STATUS_IN_TRANSACTION: u8 = 2;

/// What a server says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// The newest version of the protocol that it speaks.
    pub version: u16,
    /// The connection's number, as CONNECTION_ID() and KILL know it.
    pub connection: u32,
    /// The challenge.
    pub salt: [u8; SALT_BYTES],
    /// The server's version.
    pub server_version: &'a str,
}

impl<'a> Greeting<'a> {
    /// Appends the frame.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = begin_frame(kind::GREETING, out);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.connection.to_le_bytes());
        out.extend_from_slice(&self.salt);
        out.extend_from_slice(self.server_version.as_bytes());
        // A version text is short.
        let _ = end_frame(start, out);
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// It is malformed, for one when the other side speaks another protocol.
    pub fn parse(payload: &'a [u8]) -> Result<Greeting<'a>, Malformed> {
        let mut fields = Fields::new(payload);
        if fields.array("magic")? != MAGIC {
            return Err(Malformed { field: "magic" });
        }
        let (version, connection) = (fields.u16("version")?, fields.u32("connection")?);
        let salt = fields.array("salt")?;
        Ok(Greeting { version, connection, salt, server_version: fields.last_text("server_version")? })
    }
}

/// One column of a result, as it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnView<'a> {
    /// A code of `model::row_encoding::wire_type`.
    pub wire_type: u8,
    /// Bits of `model::row_encoding::column_flag`.
    pub flags: u16,
    /// The number of the collation; 63 for numbers and bytes.
    pub charset: u16,
    /// Digits after the point; 31 when not fixed.
    pub decimals: u8,
    /// The name or alias in the result.
    pub name: &'a str,
}

/// The columns of a result, undecoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> Columns<'a> {
    fn parse(fields: &mut Fields<'a>) -> Result<Columns<'a>, Malformed> {
        let count = fields.u16("columns")?;
        let columns = Columns { count, bytes: fields.rest() };
        for _ in 0..count {
            ColumnView::parse(fields)?;
        }
        Ok(columns)
    }

    /// How many.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = ColumnView<'a>> + use<'a> {
        let mut fields = Fields::new(self.bytes);
        (0..self.count).map_while(move |_| ColumnView::parse(&mut fields).ok())
    }
}

impl<'a> ColumnView<'a> {
    fn parse(fields: &mut Fields<'a>) -> Result<ColumnView<'a>, Malformed> {
        let (wire_type, decimals) = (fields.u8("column")?, fields.u8("column")?);
        let (flags, charset) = (fields.u16("column")?, fields.u16("column")?);
        Ok(ColumnView { wire_type, flags, charset, decimals, name: fields.text("column")? })
    }
}

/// Characters of a column's name in an answer: the text of an expression may be much longer, and MySQL says as many of it.
pub const COLUMN_NAME_CHARACTERS_MAX: usize = 256;

/// Appends columns as a payload has them; of a long name the first [`COLUMN_NAME_CHARACTERS_MAX`] characters.
pub fn put_columns(columns: &[ResultColumn], out: &mut Vec<u8>) {
    let count = columns.len().min(usize::from(u16::MAX));
    out.extend_from_slice(&(count as u16).to_le_bytes());
    for column in &columns[..count] {
        out.extend_from_slice(&[column.wire_type, column.decimals]);
        out.extend_from_slice(&column.flags.to_le_bytes());
        out.extend_from_slice(&column.charset.to_le_bytes());
        let name_bytes = column.name.char_indices().nth(COLUMN_NAME_CHARACTERS_MAX).map(|(end, _)| end);
        // So few characters fit.
        let _ = put_text(&column.name[..name_bytes.unwrap_or(column.name.len())], out);
    }
}

/// What a statement came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done<'a> {
    /// Bits of `STATUS_...`.
    pub status: u8,
    /// How many warnings there were.
    pub warnings: u16,
    /// Rows changed.
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that was made, or 0.
    pub last_insert_id: u64,
    /// "Rows matched: ..." and its kin.
    pub info: &'a str,
}

/// Rows by their keys, undecoded. The rows lie one after the other as frames; where each key's row begins is in `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRows<'a> {
    /// Bits of `STATUS_...`.
    pub status: u8,
    /// The rows.
    pub body: &'a [u8],
    /// For each key in the order of the request where its row begins in the body, or [`NOT_FOUND`]; little-endian.
    pub index: &'a [[u8; 4]],
}

/// In place of a row's position: no row has the key.
pub const NOT_FOUND: u32 = u32::MAX;
/// Bytes before the body of [`KeyRows`], the frame's head among them.
pub const KEY_ROWS_HEAD_BYTES: usize = frame::HEAD_BYTES + 16;
/// Bytes of a whole frame of [`KeyRows`] beyond which it is not sent.
pub const KEY_ROWS_BYTES_MAX: usize = frame::PAYLOAD_BYTES_MAX;

/// Reserves the bytes before the body of [`KeyRows`].
#[inline]
pub fn begin_key_rows(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; KEY_ROWS_HEAD_BYTES]);
}

/// Fills in what [`begin_key_rows`] has reserved at the beginning of `out`, when body and index are behind it.
/// False when the frame is too long.
#[inline]
#[must_use]
pub fn end_key_rows(number: u32, status: u8, keys: usize, out: &mut [u8]) -> bool {
    let payload = out.len() - frame::HEAD_BYTES;
    let body = out.len() - KEY_ROWS_HEAD_BYTES - keys * 4;
    if payload >= frame::PAYLOAD_BYTES_MAX {
        return false;
    }
    let head = &mut out[..KEY_ROWS_HEAD_BYTES];
    head[..4].copy_from_slice(&(payload as u32 | u32::from(kind::KEY_ROWS) << 24).to_le_bytes());
    head[4..8].copy_from_slice(&number.to_le_bytes());
    head[8..12].copy_from_slice(&u32::from(status).to_le_bytes());
    head[12..16].copy_from_slice(&(keys as u32).to_le_bytes());
    head[16..20].copy_from_slice(&(body as u32).to_le_bytes());
    true
}

/// One frame of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A row, or the next part of one.
    Row(&'a [u8]),
    /// The columns of the rows that follow.
    Columns(Columns<'a>),
    /// Done.
    Done(Done<'a>),
    /// An error.
    Failed {
        /// MySQL's number.
        errno: u16,
        /// The SQLSTATE.
        sqlstate: [u8; 5],
        /// The text.
        message: &'a str,
    },
    /// A statement or a reader is prepared.
    Prepared {
        /// Its parameters, or the columns of the key.
        parameters: u16,
        /// The columns of its rows.
        columns: Columns<'a>,
    },
    /// Rows by their keys.
    KeyRows(KeyRows<'a>),
}

/// Whether a frame of that kind ends an answer.
#[inline]
pub fn is_last(kind: u8) -> bool {
    kind >= kind::DONE
}

impl<'a> Reply<'a> {
    /// Reads a frame: the number of the request (0 for rows) and what it says.
    ///
    /// # Errors
    /// It is malformed, or of an unknown kind.
    pub fn parse(frame: Frame<'a>) -> Result<(u32, Reply<'a>), Malformed> {
        if frame.kind == frame::ROW {
            return Ok((0, Reply::Row(frame.payload)));
        }
        let mut fields = Fields::new(frame.payload);
        let number = fields.u32("number")?;
        let reply = match frame.kind {
            kind::KEY_ROWS => return Ok((number, Reply::KeyRows(parse_key_rows(fields)?))),
            kind::COLUMNS => Reply::Columns(Columns::parse(&mut fields)?),
            kind::DONE => Reply::Done(Done {
                status: fields.u8("status")?,
                warnings: fields.u16("warnings")?,
                affected_rows: fields.u64("affected_rows")?,
                last_insert_id: fields.u64("last_insert_id")?,
                info: fields.last_text("info")?,
            }),
            kind::FAILED => Reply::Failed {
                errno: fields.u16("errno")?,
                sqlstate: fields.array("sqlstate")?,
                message: fields.last_text("message")?,
            },
            kind::PREPARED => {
                Reply::Prepared { parameters: fields.u16("parameters")?, columns: Columns::parse(&mut fields)? }
            }
            _ => return Err(Malformed { field: "kind" }),
        };
        fields.end()?;
        Ok((number, reply))
    }
}

fn parse_key_rows(mut fields: Fields<'_>) -> Result<KeyRows<'_>, Malformed> {
    let status = fields.u32("status")? as u8;
    let (keys, body) = (fields.u32("keys")? as usize, fields.u32("body")? as usize);
    let body = fields.bytes(body, "body")?;
    let index = fields.bytes(keys.saturating_mul(4), "index")?;
    fields.end()?;
    Ok(KeyRows { status, body, index: index.as_chunks().0 })
}

/// Appends [`Reply::Done`]; of a very long text the beginning.
pub fn emit_done(number: u32, done: &Done<'_>, out: &mut Vec<u8>) {
    let start = begin_frame(kind::DONE, out);
    out.extend_from_slice(&number.to_le_bytes());
    out.push(done.status);
    out.extend_from_slice(&done.warnings.to_le_bytes());
    out.extend_from_slice(&done.affected_rows.to_le_bytes());
    out.extend_from_slice(&done.last_insert_id.to_le_bytes());
    out.extend_from_slice(cut(done.info).as_bytes());
    let _ = end_frame(start, out);
}

/// Appends [`Reply::Failed`]; of a very long text the beginning.
pub fn emit_failed(number: u32, errno: u16, sqlstate: [u8; 5], message: &str, out: &mut Vec<u8>) {
    let start = begin_frame(kind::FAILED, out);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&errno.to_le_bytes());
    out.extend_from_slice(&sqlstate);
    out.extend_from_slice(cut(message).as_bytes());
    let _ = end_frame(start, out);
}

/// Appends [`Reply::Prepared`].
pub fn emit_prepared(number: u32, parameters: u16, columns: &[ResultColumn], out: &mut Vec<u8>) {
    let start = begin_frame(kind::PREPARED, out);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&parameters.to_le_bytes());
    put_columns(columns, out);
    let _ = end_frame(start, out);
}

/// Appends [`Reply::Columns`] with the payload that [`put_columns`] has made.
pub fn emit_columns(number: u32, columns: &[u8], out: &mut Vec<u8>) {
    let start = begin_frame(kind::COLUMNS, out);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(columns);
    let _ = end_frame(start, out);
}

/// At most 64 KiB of a text.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(64 * 1024)]
}
