//! SELECT ... INTO OUTFILE and INTO DUMPFILE: how rows become the bytes of a file, by MySQL's rules.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::{ResultColumn, wire_type};

use super::load::{check_format, has_separators};
use crate::parse::statement::{FileFormat, IntoFile};

/// The letters that an escape character gives another meaning. Like MySQL's, the list ends with a zero byte.
const ESCAPED_LETTERS: &[u8] = b"ntrb0ZN\0";
/// The characters of numbers.
const NUMBER_CHARACTERS: &[u8] = b".0123456789e+-\0";

/// The file of a SELECT ... INTO.
#[derive(Debug)]
pub struct OutputFile {
    /// The name as written.
    pub name: Box<str>,
    /// The form of the rows; `None` for INTO DUMPFILE, which writes the values of one row alone.
    pub lines: Option<LineWriter>,
}

/// Writes rows as lines.
#[derive(Debug)]
pub struct LineWriter {
    columns: Box<[OutputColumn]>,
    field_terminator: Box<[u8]>,
    line_start: Box<[u8]>,
    line_terminator: Box<[u8]>,
    enclosed_by: Option<u8>,
    escaped_by: Option<u8>,
    /// The first byte of FIELDS TERMINATED BY and of LINES TERMINATED BY.
    first_of_field_end: Option<u8>,
    first_of_line_end: Option<u8>,
    /// The byte that ends a field: that of ENCLOSED BY, or else the first of FIELDS TERMINATED BY.
    separator: Option<u8>,
    /// Whether the separator has another meaning after the escape character, so that it is doubled instead.
    is_separator_doubled: bool,
    /// Whether fields end with a byte that may also be a part of them (warning 1475).
    pub is_ambiguous: bool,
    /// Whether nothing separates the fields, so that each is filled with spaces up to its width.
    has_fixed_size: bool,
}

/// Columns from this width on, in bytes, have no fixed size. As in MySQL, no column of the file has one then.
const FIXED_WIDTH_MAX: u32 = 1 << 24;
/// Maximum bytes of a row of fixed size.
const FIXED_ROW_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug)]
struct OutputColumn {
    is_enclosed: bool,
    is_escaped: bool,
    /// The character set into which texts are converted.
    encoding: Option<CharacterSet>,
    /// Whether bytes from 128 on are parts of characters of several bytes, which are never escaped.
    has_long_characters: bool,
    /// Maximum bytes of a value of the column.
    width: u32,
}

impl OutputFile {
    /// Errors: 1083 for a separator of several bytes, 1115 for a character set, 1235 for rows of a fixed size
    /// that are too long.
    pub(super) fn new(file: &IntoFile, columns: &[ResultColumn]) -> Result<OutputFile> {
        let lines = match &file.format {
            Some(format) => Some(LineWriter::new(format, file.character_set.as_deref(), columns)?),
            None => None,
        };
        Ok(OutputFile { name: String::from_utf8_lossy(&file.file).into(), lines })
    }
}

impl LineWriter {
    fn new(format: &FileFormat, character_set: Option<&str>, columns: &[ResultColumn]) -> Result<LineWriter> {
        check_format(format)?;
        let wanted = character_set.map(CharacterSet::named).transpose()?.map(CharacterSet::default_collation);
        let has_fixed_size = !has_separators(format) && columns.iter().all(|column| column.length < FIXED_WIDTH_MAX);
        let row_bytes: u64 = columns.iter().map(|column| u64::from(column.length)).sum();
        if has_fixed_size && row_bytes > FIXED_ROW_BYTES_MAX {
            return Err(Error::not_supported("SELECT ... INTO OUTFILE of rows of a fixed size above 64 MiB"));
        }
        let line_terminator = match format.line_terminator.is_empty() {
            true => &format.field_terminator,
            false => &format.line_terminator,
        };
        let enclosed_by = format.enclosed_by.first().copied();
        let escaped_by = format.escaped_by.first().copied();
        let first_of_field_end = format.field_terminator.first().copied();
        let separator = enclosed_by.or(first_of_field_end);
        let is_in = |bytes: &[u8], byte: Option<u8>| byte.is_some_and(|byte| bytes.contains(&byte));
        let is_separator_doubled = is_in(ESCAPED_LETTERS, separator);
        let is_separator_unsafe = is_in(NUMBER_CHARACTERS, separator);
        let is_optional = format.is_optionally_enclosed && first_of_field_end.is_some() || enclosed_by.is_none();
        let has_texts = columns.iter().any(is_text);
        let has_numbers = columns.iter().any(|column| !is_text(column));
        let is_ambiguous = is_separator_doubled && enclosed_by.is_none() && (has_texts || is_separator_unsafe)
            || is_optional && has_numbers && is_in(NUMBER_CHARACTERS, first_of_field_end);
        let column = |column: &ResultColumn| {
            let encoding = column.recoded_for(wanted);
            let own = CollationId::from_number(column.charset).map_or(CharacterSet::Binary, CollationId::character_set);
            OutputColumn {
                is_enclosed: enclosed_by.is_some() && (!is_optional || is_text(column)),
                is_escaped: escaped_by.is_some() && (is_text(column) || is_separator_unsafe),
                encoding,
                has_long_characters: !matches!(encoding.unwrap_or(own), CharacterSet::Binary | CharacterSet::Latin1),
                width: column.length,
            }
        };
        Ok(LineWriter {
            columns: columns.iter().map(column).collect(),
            field_terminator: format.field_terminator.as_slice().into(),
            line_start: format.line_start.as_slice().into(),
            line_terminator: line_terminator.as_slice().into(),
            enclosed_by,
            escaped_by,
            first_of_field_end,
            first_of_line_end: line_terminator.first().copied(),
            separator,
            is_separator_doubled,
            is_ambiguous,
            has_fixed_size,
        })
    }

    /// Appends the line of a row. `None` is NULL.
    pub(crate) fn append<'v>(&self, values: impl Iterator<Item = Option<&'v [u8]>>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.line_start);
        let mut encoded = Vec::new();
        for (position, (value, column)) in values.zip(&self.columns).enumerate() {
            if position > 0 {
                out.extend_from_slice(&self.field_terminator);
            }
            let Some(mut value) = value else {
                match self.escaped_by {
                    _ if self.has_fixed_size => out.extend(std::iter::repeat_n(b' ', column.width as usize)),
                    Some(escape) => out.extend_from_slice(&[escape, b'N']),
                    None => out.extend_from_slice(b"NULL"),
                }
                continue;
            };
            if let Some(encoding) = column.encoding {
                encoded.clear();
                encoding.encode(value, &mut encoded);
                value = &encoded;
            }
            let width = if self.has_fixed_size { column.width as usize } else { 0 };
            if self.has_fixed_size {
                value = &value[..value.len().min(width)];
            }
            let enclosing = self.enclosed_by.filter(|_| column.is_enclosed);
            out.extend(enclosing);
            match self.escaped_by.filter(|_| column.is_escaped) {
                Some(escape) => self.append_escaped(value, (column, escape), out),
                None => out.extend_from_slice(value),
            }
            out.extend(std::iter::repeat_n(b' ', width.saturating_sub(value.len())));
            out.extend(enclosing);
        }
        out.extend_from_slice(&self.line_terminator);
    }

    fn append_escaped(&self, value: &[u8], (column, escape): (&OutputColumn, u8), out: &mut Vec<u8>) {
        let end = if column.is_enclosed { self.separator } else { self.first_of_field_end };
        // A byte that ends fields is not doubled: only ENCLOSED BY can be.
        let is_exempt = |byte: u8| !column.is_enclosed && self.is_ambiguous && self.first_of_field_end == Some(byte);
        for &byte in value {
            let is_special = byte == escape || byte == 0 || end == Some(byte) || self.first_of_line_end == Some(byte);
            if is_special && !(column.has_long_characters && byte >= 0x80) && !is_exempt(byte) {
                let is_doubled = self.is_separator_doubled && self.separator == Some(byte);
                out.push(if is_doubled { byte } else { escape });
                out.push(if byte == 0 { b'0' } else { byte });
            } else {
                out.push(byte);
            }
        }
    }
}

/// Whether the values of a column are no numbers, so that OPTIONALLY ENCLOSED BY encloses them.
fn is_text(column: &ResultColumn) -> bool {
    use wire_type::*;
    !matches!(column.wire_type, TINY | SHORT | LONG | LONGLONG | INT24 | FLOAT | DOUBLE | NEWDECIMAL | YEAR | BIT)
}

/// Warning 1475.
pub(crate) fn ambiguous_separator() -> (ErrorCode, &'static str) {
    let text = "First character of the FIELDS TERMINATED string is ambiguous; please use non-optional and non-empty \
                FIELDS ENCLOSED BY";
    (ErrorCode::AmbiguousFieldTerminator, text)
}

#[cfg(test)]
mod tests {
    use junctor_model::schema::ColumnDefinition;
    use junctor_model::types::DataType;

    use super::*;

    fn columns() -> Vec<ResultColumn> {
        let latin1 = CharacterSet::Latin1.default_collation();
        let types = [
            DataType::integer(4, false),
            DataType::varchar(20, CollationId::DEFAULT),
            DataType::varchar(20, CollationId::BINARY),
            DataType::varchar(20, latin1),
        ];
        types.map(|column| ResultColumn::of_definition(&ColumnDefinition::new("c", column))).to_vec()
    }

    fn plain() -> FileFormat {
        FileFormat::of_dialect(false)
    }

    fn line(format: &FileFormat, character_set: Option<&str>, values: [Option<&[u8]>; 4]) -> Vec<u8> {
        let writer = LineWriter::new(format, character_set, &columns()).expect("a format");
        let mut out = Vec::new();
        writer.append(values.into_iter(), &mut out);
        out
    }

    #[test]
    fn special_bytes_are_escaped_and_characters_of_several_bytes_are_not() {
        let values = [Some(&b"-12"[..]), Some("a\tb\\\n\0é".as_bytes()), Some(b"\xc3\xa9\t"), None];
        assert_eq!(line(&plain(), None, values), b"-12\ta\\\tb\\\\\\\n\\0\xc3\xa9\t\xc3\xa9\\\t\t\\N\n");
        // The separator is a byte of a character, which stays whole, and a byte of a binary string.
        let odd = FileFormat { field_terminator: b"\xa9".to_vec(), ..plain() };
        assert_eq!(line(&odd, None, values)[4..], b"a\tb\\\\\\\n\\0\xc3\xa9\xa9\xc3\\\xa9\t\xa9\\N\n"[..]);
    }

    #[test]
    fn values_are_enclosed_always_or_if_they_are_text() {
        let values = [Some(&b"1"[..]), Some(b"a\"b"), Some(b"c,d"), None];
        let csv = FileFormat { field_terminator: b",".to_vec(), enclosed_by: b"\"".to_vec(), ..plain() };
        assert_eq!(line(&csv, None, values), b"\"1\",\"a\\\"b\",\"c,d\",\\N\n");
        let optional = FileFormat { is_optionally_enclosed: true, ..csv.clone() };
        assert_eq!(line(&optional, None, values), b"1,\"a\\\"b\",\"c,d\",\\N\n");
        let doubled = FileFormat { escaped_by: b"\"".to_vec(), ..csv.clone() };
        assert_eq!(line(&doubled, None, values), b"\"1\",\"a\"\"b\",\"c,d\",\"N\n");
        let unescaped = FileFormat { escaped_by: Vec::new(), line_start: b"> ".to_vec(), ..csv };
        assert_eq!(line(&unescaped, None, values), b"> \"1\",\"a\"b\",\"c,d\",NULL\n");
    }

    #[test]
    fn a_letter_that_ends_fields_is_left_alone_and_warned_of() {
        let letters = FileFormat { field_terminator: b"n".to_vec(), ..plain() };
        let writer = LineWriter::new(&letters, None, &columns()).expect("a format");
        assert!(writer.is_ambiguous);
        assert_eq!(line(&letters, None, [Some(b"1"), Some(b"anb"), None, None]), b"1nanbn\\Nn\\N\n");
        let enclosed = FileFormat { enclosed_by: b"n".to_vec(), ..plain() };
        assert!(!LineWriter::new(&enclosed, None, &columns()).expect("a format").is_ambiguous);
        assert_eq!(line(&enclosed, None, [Some(b"1"), Some(b"anb"), None, None]), b"n1n\tnannbn\t\\N\t\\N\n");
        let digits = FileFormat { field_terminator: b"1".to_vec(), ..plain() };
        assert!(LineWriter::new(&digits, None, &columns()).expect("a format").is_ambiguous);
        assert_eq!(line(&digits, None, [Some(b"212"), Some(b"a1b"), None, None])[..7], *b"2121a1b");
    }

    #[test]
    fn texts_have_the_character_set_of_the_file_or_of_their_column() {
        let text = Some("é€".as_bytes());
        let values = [None, text, text, text];
        assert_eq!(line(&plain(), None, values), b"\\N\t\xc3\xa9\xe2\x82\xac\t\xc3\xa9\xe2\x82\xac\t\xe9\x80\n");
        assert_eq!(line(&plain(), Some("latin1"), values), b"\\N\t\xe9\x80\t\xc3\xa9\xe2\x82\xac\t\xe9\x80\n");
        assert_eq!(
            line(&plain(), Some("utf8mb4"), values),
            b"\\N\t\xc3\xa9\xe2\x82\xac\t\xc3\xa9\xe2\x82\xac\t\xc3\xa9\xe2\x82\xac\n"
        );
        assert_eq!(line(&plain(), Some("ascii"), values)[3..6], *b"??\t");
    }

    #[test]
    fn rows_of_a_fixed_size_have_spaces_up_to_the_widths_of_their_columns() {
        let fixed = FileFormat { field_terminator: Vec::new(), line_terminator: Vec::new(), ..plain() };
        let values = [Some(&b"-12"[..]), Some("a\\é".as_bytes()), None, Some("é".as_bytes())];
        let expected = [&b"-12        a\\\\\xc3\xa9"[..], &[b' '; 76 + 20], b"\xe9", &[b' '; 19]].concat();
        assert_eq!(line(&fixed, None, values), expected);
        // As in MySQL, a value in the set of the file may be longer than its column, and is cut.
        let long = "é".repeat(20);
        let line = line(&fixed, Some("utf8mb4"), [None, None, None, Some(long.as_bytes())]);
        assert_eq!((line.len(), &line[111..]), (131, "é".repeat(10).as_bytes()));
        let columns = [ResultColumn { length: 1 << 24, ..columns().remove(1) }];
        let writer = LineWriter::new(&fixed, None, &columns).expect("a format");
        assert!(!writer.has_fixed_size, "of a column that is too wide");
        let columns = vec![ResultColumn { length: (1 << 24) - 1, ..columns[0].clone() }; 5];
        assert_eq!(LineWriter::new(&fixed, None, &columns).expect_err("too wide").code, ErrorCode::NotSupportedYet);
    }

    #[test]
    fn formats_that_no_file_can_have_are_refused() {
        let error = |format: FileFormat, set| LineWriter::new(&format, set, &columns()).expect_err("refused").code;
        let long = FileFormat { enclosed_by: b"ab".to_vec(), ..plain() };
        assert_eq!(error(long, None), ErrorCode::WrongFieldTerminators);
        assert_eq!(error(plain(), Some("klingon")), ErrorCode::UnknownCharacterSet);
    }
}
