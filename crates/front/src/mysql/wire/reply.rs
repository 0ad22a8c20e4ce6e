//! Hot path: at most 90 instructions per OK packet with its header; no allocation, no formatting.
//!
//! The server's short replies: OK, ERR, EOF, the number of columns, and the header of a prepared statement.

use super::capability::Capabilities;
use super::error::ProtocolError;
use super::field::{FieldReader, put_length_encoded_bytes, put_length_encoded_integer, put_u16, put_u32};
use super::status::StatusFlags;

/// Maximum length of an error's text in bytes. Longer texts are truncated, because clients have buffers of
/// this size.
pub const ERROR_MESSAGE_BYTES_MAX: usize = 511;

/// Largest integer that is its own length-encoded form.
const ONE_BYTE_INTEGER_MAX: u64 = 0xfa;

/// First byte of an OK packet.
pub const OK_HEADER: u8 = 0x00;
/// First byte of an EOF packet.
pub const EOF_HEADER: u8 = 0xfe;
/// First byte of a request for a file.
pub const FILE_REQUEST_HEADER: u8 = 0xfb;
/// First byte of an error packet.
pub const ERROR_HEADER: u8 = 0xff;

/// The reply to a successful statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OkReply<'a> {
    /// Number of rows changed, or matched if the client set FOUND_ROWS.
    pub affected_rows: u64,
    /// First value generated for an AUTO_INCREMENT column; 0 for none.
    pub last_insert_id: u64,
    /// State of the session after the statement.
    pub status: StatusFlags,
    /// Number of warnings of the statement, at most 65,535.
    pub warning_count: u16,
    /// A text such as `Rows matched: 1  Changed: 1  Warnings: 0`; empty for none.
    pub info: &'a [u8],
}

impl<'a> OkReply<'a> {
    /// Appends the payload.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_with_header(OK_HEADER, out);
    }

    /// Appends the payload in the form that ends a result for clients with DEPRECATE_EOF.
    #[inline]
    pub fn encode_as_result_end(&self, out: &mut Vec<u8>) {
        self.encode_with_header(EOF_HEADER, out);
    }

    /// Appends the payload with changes of the session's state, which `status` must announce. The text then
    /// has a length even if it is empty.
    pub fn encode_with_changes(&self, changes: &[u8], out: &mut Vec<u8>) {
        self.encode_changes(OK_HEADER, changes, out);
    }

    /// As [`Self::encode_with_changes`], in the form that ends a result for clients with DEPRECATE_EOF.
    pub fn encode_as_result_end_with_changes(&self, changes: &[u8], out: &mut Vec<u8>) {
        self.encode_changes(EOF_HEADER, changes, out);
    }

    fn encode_changes(&self, header: u8, changes: &[u8], out: &mut Vec<u8>) {
        self.encode_with_header(header, out);
        if self.info.is_empty() {
            out.push(0);
        }
        put_length_encoded_bytes(out, changes);
    }

    /// The text always has a length prefix, even if the session's state is not tracked, because client
    /// libraries expect it.
    fn encode_with_header(&self, header: u8, out: &mut Vec<u8>) {
        let [status_low, status_high] = self.status.bits().to_le_bytes();
        let [warnings_low, warnings_high] = self.warning_count.to_le_bytes();
        if self.affected_rows <= ONE_BYTE_INTEGER_MAX && self.last_insert_id <= ONE_BYTE_INTEGER_MAX {
            let (rows, id) = (self.affected_rows as u8, self.last_insert_id as u8);
            out.extend_from_slice(&[header, rows, id, status_low, status_high, warnings_low, warnings_high]);
        } else {
            out.push(header);
            put_length_encoded_integer(out, self.affected_rows);
            put_length_encoded_integer(out, self.last_insert_id);
            out.extend_from_slice(&[status_low, status_high, warnings_low, warnings_high]);
        }
        if !self.info.is_empty() {
            put_length_encoded_bytes(out, self.info);
        }
    }

    /// Decodes either form, as a client does.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if the payload is a different packet.
    pub fn parse(payload: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut fields = FieldReader::new(payload);
        let header = fields.u8("header")?;
        if header != OK_HEADER && header != EOF_HEADER {
            return Err(ProtocolError::Malformed { field: "header" });
        }
        let affected_rows = fields.length_encoded_integer("affected_rows")?;
        let last_insert_id = fields.length_encoded_integer("last_insert_id")?;
        let status = StatusFlags::from_bits(fields.u16("status")?);
        let warning_count = fields.u16("warning_count")?;
        let info = if fields.is_empty() { &[] } else { fields.length_encoded_bytes("info")? };
        Ok(Self { affected_rows, last_insert_id, status, warning_count, info })
    }
}

/// The reply to a failed statement or login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorReply<'a> {
    /// MySQL error number.
    pub errno: u16,
    /// SQLSTATE class and subclass.
    pub sqlstate: [u8; 5],
    /// Text in the connection's character set.
    pub message: &'a [u8],
}

impl<'a> ErrorReply<'a> {
    /// The reply to a protocol violation.
    pub const fn from_protocol_error(error: ProtocolError) -> ErrorReply<'static> {
        ErrorReply { errno: error.errno(), sqlstate: error.sqlstate(), message: error.message().as_bytes() }
    }

    /// Appends the payload. A text longer than [`ERROR_MESSAGE_BYTES_MAX`] is truncated between two
    /// characters.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(ERROR_HEADER);
        put_u16(out, self.errno);
        out.push(b'#');
        out.extend_from_slice(&self.sqlstate);
        out.extend_from_slice(cut_between_characters(self.message, ERROR_MESSAGE_BYTES_MAX));
    }

    /// Decodes the payload, as a client does. Before the login a server may omit the SQLSTATE.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if the payload is a different packet.
    pub fn parse(payload: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut fields = FieldReader::new(payload);
        if fields.u8("header")? != ERROR_HEADER {
            return Err(ProtocolError::Malformed { field: "header" });
        }
        let errno = fields.u16("errno")?;
        let rest = fields.rest();
        match rest.split_first_chunk::<6>() {
            Some(([b'#', sqlstate @ ..], message)) => Ok(Self { errno, sqlstate: *sqlstate, message }),
            _ => Ok(Self { errno, sqlstate: *b"HY000", message: rest }),
        }
    }
}

/// The end of column definitions, of rows, or of a field list. It has two forms: EOF, and OK with header
/// 0xFE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResultEnd {
    /// State of the session.
    pub status: StatusFlags,
    /// Number of warnings of the statement.
    pub warning_count: u16,
}

impl ResultEnd {
    /// Appends the payload that ends rows or a field list, in the form that the client negotiated.
    #[inline]
    pub fn encode(&self, capabilities: Capabilities, out: &mut Vec<u8>) {
        if capabilities.contains(Capabilities::DEPRECATE_EOF) {
            let ok = OkReply { status: self.status, warning_count: self.warning_count, ..OkReply::default() };
            return ok.encode_as_result_end(out);
        }
        self.encode_eof(out);
    }

    /// Appends an EOF payload. Between column definitions and rows it is sent only if [`columns_have_end`].
    #[inline]
    pub fn encode_eof(&self, out: &mut Vec<u8>) {
        let [warnings_low, warnings_high] = self.warning_count.to_le_bytes();
        let [status_low, status_high] = self.status.bits().to_le_bytes();
        out.extend_from_slice(&[EOF_HEADER, warnings_low, warnings_high, status_low, status_high]);
    }

    /// Decodes an EOF payload, as a client does.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if the payload is a different packet.
    pub fn parse_eof(payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut fields = FieldReader::new(payload);
        if fields.u8("header")? != EOF_HEADER || payload.len() != 5 {
            return Err(ProtocolError::Malformed { field: "header" });
        }
        let warning_count = fields.u16("warning_count")?;
        Ok(Self { status: StatusFlags::from_bits(fields.u16("status")?), warning_count })
    }
}

/// Whether an EOF packet follows column definitions: those of a result, and those of a prepared statement's
/// columns and parameters, if it has any.
#[inline]
pub const fn columns_have_end(capabilities: Capabilities) -> bool {
    !capabilities.contains(Capabilities::DEPRECATE_EOF)
}

/// Appends the payload that starts a result: the number of column definitions that follow.
#[inline]
pub fn encode_column_count(column_count: u16, out: &mut Vec<u8>) {
    put_length_encoded_integer(out, u64::from(column_count));
}

/// Appends the payload that asks the client for a file, for LOAD DATA LOCAL.
pub fn encode_file_request(name: &[u8], out: &mut Vec<u8>) {
    out.push(FILE_REQUEST_HEADER);
    out.extend_from_slice(name);
}

/// The header of the reply to COM_STMT_PREPARE. The definitions of parameters and then of columns follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareReply {
    /// Id of the statement on this connection.
    pub statement_id: u32,
    /// Number of columns of the statement's result; 0 if it has none.
    pub column_count: u16,
    /// Number of the statement's parameters.
    pub parameter_count: u16,
    /// Number of warnings of the preparation.
    pub warning_count: u16,
}

impl PrepareReply {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(OK_HEADER);
        put_u32(out, self.statement_id);
        put_u16(out, self.column_count);
        put_u16(out, self.parameter_count);
        out.push(0);
        put_u16(out, self.warning_count);
    }

    /// Decodes the payload, as a client does.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if the payload is a different packet.
    pub fn parse(payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut fields = FieldReader::new(payload);
        if fields.u8("header")? != OK_HEADER {
            return Err(ProtocolError::Malformed { field: "header" });
        }
        let statement_id = fields.u32("statement_id")?;
        let column_count = fields.u16("column_count")?;
        let parameter_count = fields.u16("parameter_count")?;
        fields.u8("filler")?;
        let warning_count = fields.u16("warning_count")?;
        Ok(Self { statement_id, column_count, parameter_count, warning_count })
    }
}

/// The longest prefix of `text` that has at most `bytes_max` bytes and does not end inside a UTF-8 character.
pub fn cut_between_characters(text: &[u8], bytes_max: usize) -> &[u8] {
    if text.len() <= bytes_max {
        return text;
    }
    let mut end = bytes_max;
    while end > 0 && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &text[..end]
}
