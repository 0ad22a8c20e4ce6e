//! The character set of results. Text is UTF-8 everywhere else; a client may want other bytes
//! (`character_set_results`). Rows are encoded as UTF-8 where they are read, and recoded here if necessary.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::row_encoding::{ResultColumn, wire_type};

use super::wire::error::ProtocolError;
use super::wire::field::{FieldReader, NULL_MARK, put_length_encoded_bytes};
use super::wire::packet::{HEADER_BYTES, PACKET_PAYLOAD_BYTES_MAX, PacketWriter};

/// Bits of the bitmap of NULLs in a binary row that belong to no column.
const BITMAP_OFFSET: usize = 2;

/// A column of rows that are recoded.
#[derive(Clone, Copy, Debug)]
struct Recoded {
    wire_type: u8,
    /// `None` for a column whose bytes stay.
    set: Option<CharacterSet>,
}

/// What a session's client wants, and the columns of the rows that it gets.
#[derive(Debug, Default)]
pub(crate) struct ResultEncoding {
    /// `character_set_results`; `None` for NULL.
    wanted: Option<CollationId>,
    /// The columns of the current result; empty if no row is recoded.
    columns: Vec<Recoded>,
    /// Whether the rows of the current command are those of a prepared statement.
    pub is_binary: bool,
    /// The prepared statement of the current command.
    pub statement: u32,
    /// The columns of open cursors whose rows are recoded.
    cursors: Vec<(u32, Vec<Recoded>)>,
}

impl ResultEncoding {
    /// Notes the session's present character set of results.
    #[inline]
    pub fn set_wanted(&mut self, wanted: Option<CollationId>) {
        self.wanted = wanted;
    }

    /// What the client wants.
    #[inline]
    pub fn wanted(&self) -> Option<CollationId> {
        self.wanted
    }

    /// Notes the columns of the rows that follow.
    #[inline]
    pub fn begin_rows(&mut self, columns: &[ResultColumn]) {
        self.columns.clear();
        if self.wanted.is_none_or(|wanted| wanted.character_set() != CharacterSet::Utf8mb4) {
            self.find_recoded(columns);
        }
    }

    #[cold]
    fn find_recoded(&mut self, columns: &[ResultColumn]) {
        if columns.iter().any(|column| column.recoded_for(self.wanted).is_some()) {
            let recoded =
                |column: &ResultColumn| Recoded { wire_type: column.wire_type, set: column.recoded_for(self.wanted) };
            self.columns = columns.iter().map(recoded).collect();
        }
    }

    /// Keeps the columns for the fetches of the statement's cursor.
    pub fn keep_for_cursor(&mut self) {
        self.forget_cursor(self.statement);
        if !self.columns.is_empty() {
            self.cursors.push((self.statement, std::mem::take(&mut self.columns)));
        }
    }

    /// Takes the columns of the statement's cursor for the rows that follow.
    pub fn begin_fetch(&mut self, statement: u32) {
        self.columns.clear();
        if let Some((_, columns)) = self.cursors.iter().find(|(known, _)| *known == statement) {
            self.columns.clone_from(columns);
        }
    }

    /// Drops what is kept for a cursor.
    pub fn forget_cursor(&mut self, statement: u32) {
        self.cursors.retain(|(known, _)| *known != statement);
    }

    /// Whether rows are recoded.
    #[inline]
    pub fn recodes_rows(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Ends the rows.
    pub fn end_rows(&mut self) {
        self.columns.clear();
    }

    /// Recodes the row packets in `out` from `start` on.
    pub fn recode_rows(&self, out: &mut Vec<u8>, start: usize) {
        let packets = out.split_off(start);
        let mut rest = packets.as_slice();
        let mut whole = Vec::new();
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            let (part, after) = after.split_at(length.min(after.len()));
            rest = after;
            whole.extend_from_slice(part);
            if length == PACKET_PAYLOAD_BYTES_MAX {
                continue;
            }
            PacketWriter::new(out, 0).packet(|out| {
                let kept = out.len();
                if self.recode_row(&whole, out).is_err() {
                    // Not a row: the packet goes as it is.
                    out.truncate(kept);
                    out.extend_from_slice(&whole);
                }
            });
            whole.clear();
        }
    }

    fn recode_row(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut fields = FieldReader::new(payload);
        let nulls = match self.is_binary {
            true => {
                let head = fields.bytes(1 + (self.columns.len() + BITMAP_OFFSET).div_ceil(8), "row")?;
                out.extend_from_slice(head);
                &head[1..]
            }
            false => &[],
        };
        for (position, column) in self.columns.iter().enumerate() {
            let bit = position + BITMAP_OFFSET;
            if nulls.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1) {
                continue;
            }
            let fixed = if self.is_binary { fixed_bytes(column.wire_type) } else { None };
            match fixed {
                Some(0) => {
                    let length = fields.u8("row")?;
                    out.push(length);
                    out.extend_from_slice(fields.bytes(usize::from(length), "row")?);
                }
                Some(length) => out.extend_from_slice(fields.bytes(length, "row")?),
                None => match (fields.length_encoded_nullable("row")?, column.set) {
                    (None, _) => out.push(NULL_MARK),
                    (Some(text), None) => put_length_encoded_bytes(out, text),
                    (Some(text), Some(set)) => put_length_encoded_bytes(out, &encoded(text, set)),
                },
            }
        }
        if fields.is_empty() { Ok(()) } else { Err(ProtocolError::Malformed { field: "row" }) }
    }

    /// A name or message for the client.
    pub fn text<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, [u8]> {
        match self.wanted {
            Some(wanted) if !wanted.is_binary() && !text.is_ascii() => match wanted.character_set() {
                CharacterSet::Utf8mb4 => text.as_bytes().into(),
                set => encoded(text.as_bytes(), set).into(),
            },
            _ => text.as_bytes().into(),
        }
    }
}

fn encoded(text: &[u8], set: CharacterSet) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    set.encode(text, &mut out);
    out
}

/// Bytes of a value in a binary row; 0 for one whose first byte is its length, `None` for a text.
fn fixed_bytes(code: u8) -> Option<usize> {
    match code {
        wire_type::TINY => Some(1),
        wire_type::SHORT | wire_type::YEAR => Some(2),
        wire_type::LONG | wire_type::INT24 | wire_type::FLOAT => Some(4),
        wire_type::LONGLONG | wire_type::DOUBLE => Some(8),
        wire_type::DATE | wire_type::DATETIME | wire_type::TIMESTAMP | wire_type::TIME => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(wire_type: u8, charset: u16) -> ResultColumn {
        ResultColumn {
            name: "c".into(),
            org_name: "".into(),
            table: "".into(),
            org_table: "".into(),
            database: "".into(),
            wire_type,
            flags: 0,
            charset,
            length: 40,
            decimals: 0,
        }
    }

    fn wanting(name: Option<&str>) -> ResultEncoding {
        let wanted = name.map(|name| CharacterSet::from_name(name).unwrap().default_collation());
        ResultEncoding { wanted, ..ResultEncoding::default() }
    }

    fn recoded(encoding: &ResultEncoding, payload: &[u8]) -> Vec<u8> {
        let mut out = b"before".to_vec();
        PacketWriter::new(&mut out, 0).packet(|out| out.extend_from_slice(payload));
        encoding.recode_rows(&mut out, 6);
        assert_eq!(usize::from(out[6]), out.len() - 6 - HEADER_BYTES);
        out[6 + HEADER_BYTES..].to_vec()
    }

    #[test]
    fn text_rows_have_the_bytes_that_the_client_wants() {
        let columns = [column(wire_type::LONG, 63), column(wire_type::VAR_STRING, 255), column(wire_type::BLOB, 63)];
        let mut encoding = wanting(Some("latin1"));
        encoding.begin_rows(&columns);
        let row = [b"\x012".as_slice(), "\x06é€?".as_bytes(), "\x02é".as_bytes()].concat();
        assert_eq!(recoded(&encoding, &row), [b"\x012\x03\xE9\x80?".as_slice(), "\x02é".as_bytes()].concat());
        assert_eq!(recoded(&encoding, b"\xFB\xFB\xFB"), b"\xFB\xFB\xFB");
        for name in [Some("utf8mb4"), Some("binary"), None] {
            encoding = wanting(name);
            encoding.begin_rows(&columns);
            assert!(!encoding.recodes_rows());
        }
        encoding = wanting(Some("utf8mb3"));
        encoding.begin_rows(&columns);
        assert_eq!(recoded(&encoding, "\x011\x04😀\x04😀".as_bytes()), "\x011\x01?\x04😀".as_bytes());
    }

    #[test]
    fn binary_rows_keep_their_numbers_and_nulls() {
        let columns = [
            column(wire_type::SHORT, 63),
            column(wire_type::VAR_STRING, 8),
            column(wire_type::DATE, 63),
            column(wire_type::STRING, 255),
            column(wire_type::DOUBLE, 63),
        ];
        let mut encoding = wanting(None);
        encoding.is_binary = true;
        encoding.begin_rows(&columns);
        // The bit of the fourth column: NULL. Without a wanted set, only the column of latin1 is recoded.
        let head = [0, 1 << 5];
        let tail = [4, 0xE8, 7, 1, 2, 1, 2, 3, 4, 5, 6, 7, 8];
        let row = [&head[..], &[5, 0], "\x02é".as_bytes(), &tail].concat();
        assert_eq!(recoded(&encoding, &row), [&head[..], &[5, 0], b"\x01\xE9", &tail].concat());
        encoding.statement = 7;
        encoding.keep_for_cursor();
        assert!(!encoding.recodes_rows());
        encoding.begin_fetch(7);
        assert!(encoding.recodes_rows());
        encoding.forget_cursor(7);
        encoding.begin_fetch(7);
        assert!(!encoding.recodes_rows());
    }
}
