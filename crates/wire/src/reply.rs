//! Replies of a server. A reply has an optional frame of columns, any number of rows, and exactly one frame
//! that ends it (see [`is_last`]).

use junctor_model::row_encoding::ResultColumn;

use super::field::{FieldReader, Malformed, encode_text};
use super::frame::{self, Frame, begin_frame, end_frame};
use super::{MAGIC, SALT_BYTES};

/// Kinds of the frames that servers send. All except rows are 0x80 or above.
pub mod kind {
    /// [`super::Greeting`], the first frame of a connection.
    pub const GREETING: u8 = 0x80;
    /// The columns of the rows that follow.
    pub const COLUMNS: u8 = 0x81;
    /// End of a reply: the statement succeeded.
    pub const DONE: u8 = 0x82;
    /// End of a reply: an error.
    pub const FAILED: u8 = 0x83;
    /// End of a reply: a statement or a key reader is prepared.
    pub const PREPARED: u8 = 0x84;
    /// End of a reply: the rows of a `ReadKeys` request.
    pub const KEY_ROWS: u8 = 0x85;
}

/// Status bit: autocommit is on.
pub const STATUS_AUTOCOMMIT: u8 = 1;
/// Status bit: a transaction is open.
pub const STATUS_IN_TRANSACTION: u8 = 2;

/// The first frame of a connection, sent by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// The newest protocol version that the server supports.
    pub version: u16,
    /// The connection's id, as in CONNECTION_ID() and KILL.
    pub connection: u32,
    /// Random challenge for [`password_proof`](crate::proof::password_proof).
    pub salt: [u8; SALT_BYTES],
    /// The server's version, as in VERSION().
    pub server_version: &'a str,
}

impl<'a> Greeting<'a> {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = begin_frame(kind::GREETING, out);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.connection.to_le_bytes());
        out.extend_from_slice(&self.salt);
        out.extend_from_slice(self.server_version.as_bytes());
        end_bounded_frame(start, out);
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// The payload is malformed, or does not begin with [`MAGIC`] because the peer speaks another protocol.
    pub fn parse(payload: &'a [u8]) -> Result<Greeting<'a>, Malformed> {
        let mut fields = FieldReader::new(payload);
        if fields.array("magic")? != MAGIC {
            return Err(Malformed { field: "magic" });
        }
        let (version, connection) = (fields.u16("version")?, fields.u32("connection")?);
        let salt = fields.array("salt")?;
        Ok(Greeting { version, connection, salt, server_version: fields.last_text("server_version")? })
    }
}

/// A decoded result column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnView<'a> {
    /// A code of `model::row_encoding::wire_type`.
    pub wire_type: u8,
    /// Bits of `model::row_encoding::column_flag`.
    pub flags: u16,
    /// MySQL's collation id; 63 (binary) for numbers and byte strings.
    pub charset: u16,
    /// Digits after the decimal point; 31 if not fixed.
    pub decimals: u8,
    /// The column's name or alias, truncated to [`COLUMN_NAME_CHARACTERS_MAX`].
    pub name: &'a str,
}

/// The columns of a result, checked but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> Columns<'a> {
    fn parse(fields: &mut FieldReader<'a>) -> Result<Columns<'a>, Malformed> {
        let count = fields.u16("columns")?;
        let columns = Columns { count, bytes: fields.rest() };
        // Checked here, since `iter` has no way to report an error.
        for _ in 0..count {
            ColumnView::parse(fields)?;
        }
        Ok(columns)
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether the number of columns is 0.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Decodes the columns in their order.
    pub fn iter(&self) -> impl Iterator<Item = ColumnView<'a>> + use<'a> {
        let mut fields = FieldReader::new(self.bytes);
        (0..self.count).map_while(move |_| ColumnView::parse(&mut fields).ok())
    }
}

impl<'a> ColumnView<'a> {
    fn parse(fields: &mut FieldReader<'a>) -> Result<ColumnView<'a>, Malformed> {
        let (wire_type, decimals) = (fields.u8("column")?, fields.u8("column")?);
        let (flags, charset) = (fields.u16("column")?, fields.u16("column")?);
        Ok(ColumnView { wire_type, flags, charset, decimals, name: fields.text("column")? })
    }
}

/// Maximum length of a column's name in characters. The name of a column without an alias is the text of its
/// expression, which MySQL truncates to the same length.
pub const COLUMN_NAME_CHARACTERS_MAX: usize = 256;

/// Appends columns in the form that [`Columns`] decodes. Truncates each name to
/// [`COLUMN_NAME_CHARACTERS_MAX`] characters.
pub fn encode_columns(columns: &[ResultColumn], out: &mut Vec<u8>) {
    let count = columns.len().min(usize::from(u16::MAX));
    out.extend_from_slice(&(count as u16).to_le_bytes());
    for column in &columns[..count] {
        out.extend_from_slice(&[column.wire_type, column.decimals]);
        out.extend_from_slice(&column.flags.to_le_bytes());
        out.extend_from_slice(&column.charset.to_le_bytes());
        let name_bytes = column.name.char_indices().nth(COLUMN_NAME_CHARACTERS_MAX).map(|(end, _)| end);
        // Cannot fail: 256 characters have at most 1,024 bytes.
        let _ = encode_text(&column.name[..name_bytes.unwrap_or(column.name.len())], out);
    }
}

/// The result of a successful statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done<'a> {
    /// Bits of `STATUS_...`.
    pub status: u8,
    /// Number of warnings.
    pub warnings: u16,
    /// Number of rows that the statement inserted, changed or deleted.
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that the statement generated, or 0.
    pub last_insert_id: u64,
    /// MySQL's text about the result, for example "Rows matched: ..."; often empty.
    pub info: &'a str,
}

/// The undecoded rows of a `ReadKeys` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRows<'a> {
    /// Bits of `STATUS_...`.
    pub status: u8,
    /// The rows as consecutive frames.
    pub body: &'a [u8],
    /// For each key of the request, in its order: the offset in bytes of the key's row in `body`, or
    /// [`NOT_FOUND`]. Little-endian and not checked against the length of `body`.
    pub index: &'a [[u8; 4]],
}

/// Replaces a row's offset if no row has the key.
pub const NOT_FOUND: u32 = u32::MAX;
/// Bytes before the body of [`KeyRows`], including the frame's header.
pub const KEY_ROWS_HEADER_BYTES: usize = frame::HEADER_BYTES + 16;
/// Maximum size of a frame of [`KeyRows`] in bytes, including its header.
pub const KEY_ROWS_BYTES_MAX: usize = frame::PAYLOAD_BYTES_MAX;

/// Reserves [`KEY_ROWS_HEADER_BYTES`] for [`end_key_rows`]. The caller then appends the body and the index.
#[inline]
pub fn begin_key_rows(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; KEY_ROWS_HEADER_BYTES]);
}

/// Fills in the bytes that [`begin_key_rows`] reserved at the start of `out`, once body and index are
/// complete. Returns false if the frame is too long to be sent.
#[inline]
#[must_use]
pub fn end_key_rows(number: u32, status: u8, keys: usize, out: &mut [u8]) -> bool {
    let payload = out.len() - frame::HEADER_BYTES;
    let body = out.len() - KEY_ROWS_HEADER_BYTES - keys * 4;
    if payload >= frame::PAYLOAD_BYTES_MAX {
        return false;
    }
    let header = &mut out[..KEY_ROWS_HEADER_BYTES];
    header[..4].copy_from_slice(&(payload as u32 | u32::from(kind::KEY_ROWS) << 24).to_le_bytes());
    header[4..8].copy_from_slice(&number.to_le_bytes());
    header[8..12].copy_from_slice(&u32::from(status).to_le_bytes());
    header[12..16].copy_from_slice(&(keys as u32).to_le_bytes());
    header[16..20].copy_from_slice(&(body as u32).to_le_bytes());
    true
}

/// One frame of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A row, or a part of a row of [`frame::PAYLOAD_BYTES_MAX`] bytes or more.
    Row(&'a [u8]),
    /// The columns of the rows that follow.
    Columns(Columns<'a>),
    /// The end of a successful statement.
    Done(Done<'a>),
    /// The end of a failed request.
    Failed {
        /// MySQL's error number.
        errno: u16,
        /// The SQLSTATE, in ASCII.
        sqlstate: [u8; 5],
        /// The error's text.
        message: &'a str,
    },
    /// A statement or a key reader is prepared.
    Prepared {
        /// Number of the statement's parameters, or of the primary key's columns.
        parameters: u16,
        /// The columns of the rows; empty for a statement without rows.
        columns: Columns<'a>,
    },
    /// The end of a `ReadKeys` request.
    KeyRows(KeyRows<'a>),
}

/// Whether a frame of this kind ends a reply.
#[inline]
pub fn is_last(kind: u8) -> bool {
    kind >= kind::DONE
}

impl<'a> Reply<'a> {
    /// Reads a frame. Returns the number of the request, which is 0 for rows, and the decoded frame.
    ///
    /// # Errors
    /// The payload is malformed, or the kind is unknown.
    pub fn parse(frame: Frame<'a>) -> Result<(u32, Reply<'a>), Malformed> {
        if frame.kind == frame::ROW {
            return Ok((0, Reply::Row(frame.payload)));
        }
        let mut fields = FieldReader::new(frame.payload);
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
        fields.expect_end()?;
        Ok((number, reply))
    }
}

fn parse_key_rows(mut fields: FieldReader<'_>) -> Result<KeyRows<'_>, Malformed> {
    let status = fields.u32("status")? as u8;
    let (keys, body) = (fields.u32("keys")? as usize, fields.u32("body")? as usize);
    let body = fields.bytes(body, "body")?;
    let index = fields.bytes(keys.saturating_mul(4), "index")?;
    fields.expect_end()?;
    Ok(KeyRows { status, body, index: index.as_chunks().0 })
}

/// Appends [`Reply::Done`]. Truncates `info` to 64 KiB.
pub fn encode_done(number: u32, done: &Done<'_>, out: &mut Vec<u8>) {
    let start = begin_frame(kind::DONE, out);
    out.extend_from_slice(&number.to_le_bytes());
    out.push(done.status);
    out.extend_from_slice(&done.warnings.to_le_bytes());
    out.extend_from_slice(&done.affected_rows.to_le_bytes());
    out.extend_from_slice(&done.last_insert_id.to_le_bytes());
    out.extend_from_slice(text_prefix(done.info).as_bytes());
    end_bounded_frame(start, out);
}

/// Appends [`Reply::Failed`]. Truncates `message` to 64 KiB.
pub fn encode_failed(number: u32, errno: u16, sqlstate: [u8; 5], message: &str, out: &mut Vec<u8>) {
    let start = begin_frame(kind::FAILED, out);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&errno.to_le_bytes());
    out.extend_from_slice(&sqlstate);
    out.extend_from_slice(text_prefix(message).as_bytes());
    end_bounded_frame(start, out);
}

/// Appends [`Reply::Prepared`].
pub fn encode_prepared(number: u32, parameters: u16, columns: &[ResultColumn], out: &mut Vec<u8>) {
    let start = begin_frame(kind::PREPARED, out);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&parameters.to_le_bytes());
    encode_columns(columns, out);
    end_bounded_frame(start, out);
}

/// Appends [`Reply::Columns`]. `columns` comes from [`encode_columns`].
pub fn encode_columns_frame(number: u32, columns: &[u8], out: &mut Vec<u8>) {
    let start = begin_frame(kind::COLUMNS, out);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(columns);
    end_bounded_frame(start, out);
}

/// Ends a frame whose contents are bounded. If the frame were dropped, the client would wait forever for the
/// end of its reply.
fn end_bounded_frame(start: usize, out: &mut Vec<u8>) {
    let fits = end_frame(start, out);
    assert!(fits, "a reply other than rows fits into one frame");
}

/// The first 64 KiB of a text.
fn text_prefix(text: &str) -> &str {
    &text[..text.floor_char_boundary(64 * 1024)]
}
