//! Assigns values to columns: converts them to the column's type, or rejects them in a strict `sql_mode`.

use std::fmt::Write;

use crate::error::{Error, ErrorCode, Result};
use crate::schema::ColumnDefinition;
use crate::scratch::Scratch;
use crate::value::ValueRef;

/// Maximum number of bytes of an invalid string that a message shows.
const WRONG_BYTES_SHOWN: usize = 6;

const TRUNCATED: &str = "Data truncated for column";

/// The treatment of a value that does not fit its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// The statement fails (strict `sql_mode`).
    Strict,
    /// The nearest value is stored, with a warning (IGNORE, or a `sql_mode` that is not strict).
    Lenient,
    /// As `Lenient`, but NULL in a NOT NULL column fails: an INSERT of one row without IGNORE and without a
    /// strict `sql_mode`.
    LenientExceptNull,
}

/// The target of an assignment.
#[derive(Clone, Copy, Debug)]
pub struct StoreTarget<'c> {
    /// The column to store to.
    pub column: &'c ColumnDefinition,
    /// The number of the row within the statement, from 1, for messages.
    pub row_number: u64,
    /// The treatment of a value that does not fit.
    pub mode: StoreMode,
}

impl StoreTarget<'_> {
    /// The value as the column stores it: an integer of the column's signedness, a double, or bytes. CHAR
    /// loses its trailing spaces, and BINARY is padded with zero bytes. New strings live in the scratch
    /// memory.
    ///
    /// Errors in strict mode, warnings in lenient mode: 1048 for NULL in a NOT NULL column, 1264 for a number
    /// out of range, 1265 for a string that is only partly a number, 1366 for a string that is not a number
    /// or not valid in the character set, 1406 for a string that is too long.
    pub fn convert<'r>(&self, value: ValueRef<'r>, scratch: &'r Scratch) -> Result<ValueRef<'r>> {
        if value.is_null() {
            return self.null(scratch);
        }
        self.column.column_type.store(value, self, scratch)
    }

    /// The error of a column of this table. MySQL names the table only where a text is no document.
    #[cold]
    pub fn error_in(&self, table: &str, mut error: Box<Error>) -> Box<Error> {
        let end = format!("'{}'.", self.column.name);
        if error.code == ErrorCode::InvalidJsonText
            && let Some(text) = error.message.strip_suffix(end.as_str())
        {
            error.message = format!("{text}'{table}.{}'.", self.column.name).into();
        }
        error
    }

    /// The value for NULL. In lenient mode a NOT NULL column stores 0 or the empty string instead.
    fn null<'r>(&self, scratch: &'r Scratch) -> Result<ValueRef<'r>> {
        if self.column.nullable {
            return Ok(ValueRef::Null);
        }
        let message = || format!("Column '{}' cannot be null", self.column.name);
        // A spatial type has no empty value.
        if self.mode != StoreMode::Lenient || self.column.column_type.geometry_kind().is_some() {
            return Err(Error::new(ErrorCode::ColumnNotNull, message()));
        }
        scratch.note(ErrorCode::ColumnNotNull, message);
        scratch.keep_until_next_row(&self.column.column_type.implicit_default())
    }

    fn message(&self, what: &str) -> String {
        format!("{what} '{}' at row {}", self.column.name, self.row_number)
    }

    /// Error or warning 1264.
    #[cold]
    pub(crate) fn out_of_range(&self, scratch: &Scratch) -> Result<()> {
        self.fail_or_warn(ErrorCode::OutOfRange, "Out of range value for column", scratch)
    }

    /// Error or warning 1299.
    #[cold]
    pub(crate) fn invalid_timestamp(&self, scratch: &Scratch) -> Result<()> {
        self.fail_or_warn(ErrorCode::InvalidTimestamp, "Invalid TIMESTAMP value in column", scratch)
    }

    /// Whether values that do not fit are errors.
    pub(crate) fn is_strict(&self) -> bool {
        self.mode == StoreMode::Strict
    }

    /// Error 1292 for a value that is no day or time.
    #[cold]
    pub(crate) fn wrong_temporal(&self, type_name: &str, value: &str) -> Result<()> {
        let what = format!("Incorrect {type_name} value: '{value}' for column");
        Err(Error::new(ErrorCode::TruncatedWrongValue, self.message(&what)))
    }

    /// Error 1406 or warning 1265.
    #[cold]
    pub(crate) fn too_long(&self, scratch: &Scratch) -> Result<()> {
        match self.mode {
            StoreMode::Strict => self.fail_or_warn(ErrorCode::DataTooLong, "Data too long for column", scratch),
            StoreMode::Lenient | StoreMode::LenientExceptNull => self.truncated(scratch),
        }
    }

    /// Error or warning 1265.
    #[cold]
    pub(crate) fn truncated(&self, scratch: &Scratch) -> Result<()> {
        self.fail_or_warn(ErrorCode::DataTruncated, TRUNCATED, scratch)
    }

    /// Note 1265, also in strict mode.
    #[cold]
    pub(crate) fn note_truncation(&self, scratch: &Scratch) {
        scratch.note(ErrorCode::TruncationNote, || self.message(TRUNCATED));
    }

    /// Error or warning 1366 for a value of this type.
    #[cold]
    pub(crate) fn wrong_value(&self, type_name: &str, value: &str, scratch: &Scratch) -> Result<()> {
        let what = format!("Incorrect {type_name} value: '{value}' for column");
        self.fail_or_warn(ErrorCode::WrongValueForType, &what, scratch)
    }

    /// Error or warning 1366 for the bytes from the first one that is not valid in the character set.
    #[cold]
    pub(crate) fn wrong_bytes(&self, bytes: &[u8], scratch: &Scratch) -> Result<()> {
        self.wrong_value("string", &shown_bytes(bytes), scratch)
    }

    fn fail_or_warn(&self, code: ErrorCode, what: &str, scratch: &Scratch) -> Result<()> {
        if self.mode == StoreMode::Strict {
            return Err(Error::new(code, self.message(what)));
        }
        scratch.note(code, || self.message(what));
        Ok(())
    }
}

/// The first bytes of an invalid string for a message: printable characters unchanged, others as `\xF0`.
fn shown_bytes(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes.iter().take(WRONG_BYTES_SHOWN) {
        match byte {
            b' '..=b'~' => out.push(*byte as char),
            other => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\x{other:02X}");
            }
        }
    }
    if bytes.len() > WRONG_BYTES_SHOWN {
        out.push_str("...");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collation::CollationId;
    use crate::types::DataType;

    fn column(column_type: DataType, nullable: bool) -> ColumnDefinition {
        ColumnDefinition { nullable, ..ColumnDefinition::new("price", column_type) }
    }

    fn message(column_type: DataType, value: ValueRef<'_>) -> String {
        let column = column(column_type, false);
        let target = StoreTarget { column: &column, row_number: 3, mode: StoreMode::Strict };
        target.convert(value, &Scratch::new()).unwrap_err().to_string()
    }

    const TINY: DataType = DataType::integer(1, false);
    const NAME: DataType = DataType::varchar(2, CollationId::DEFAULT);

    #[test]
    fn errors_have_mysqls_texts() {
        let cases = [
            (TINY, ValueRef::Int(128), "ERROR 1264 (22003): Out of range value for column 'price' at row 3"),
            (TINY, ValueRef::Null, "ERROR 1048 (23000): Column 'price' cannot be null"),
            (
                TINY,
                ValueRef::Bytes(b"x"),
                "ERROR 1366 (HY000): Incorrect integer value: 'x' for column 'price' at row 3",
            ),
            (TINY, ValueRef::Bytes(b"1x"), "ERROR 1265 (01000): Data truncated for column 'price' at row 3"),
            (NAME, ValueRef::Bytes(b"abc"), "ERROR 1406 (22001): Data too long for column 'price' at row 3"),
            (
                NAME,
                ValueRef::Bytes(b"a\xF0\x9F1234567"),
                "ERROR 1366 (HY000): Incorrect string value: '\\xF0\\x9F1234...' for column 'price' at row 3",
            ),
        ];
        for (column_type, value, expected) in cases {
            assert_eq!(message(column_type, value), expected);
        }
    }

    #[test]
    fn in_lenient_mode_null_in_a_not_null_column_becomes_zero_or_empty() {
        let scratch = Scratch::new();
        let stored = |column_type: DataType| {
            let column = column(column_type, false);
            let target = StoreTarget { column: &column, row_number: 1, mode: StoreMode::Lenient };
            target.convert(ValueRef::Null, &scratch).unwrap().to_value()
        };
        let bytes = |text: &[u8]| crate::value::Value::Bytes(text.to_vec());
        assert_eq!(stored(TINY).as_ref(), ValueRef::Int(0));
        assert_eq!(stored(DataType::integer(8, true)).as_ref(), ValueRef::UInt(0));
        assert_eq!(stored(NAME), bytes(b""));
        assert_eq!(stored(DataType::char(2, CollationId::BINARY)), bytes(&[0, 0]));
        assert_eq!(scratch.warning_count(), 4);
    }

    /// An invalid document ends the replay that reads it.
    #[test]
    fn a_column_refuses_a_document_that_no_replay_accepts() {
        let column = ColumnDefinition::new("price", DataType::json());
        let target = StoreTarget { column: &column, row_number: 1, mode: StoreMode::Lenient };
        let mut document = Vec::new();
        crate::json::append_value(ValueRef::Int(1), &mut document);
        for depth in 0..=crate::json::DEPTH_MAX {
            let scratch = Scratch::new();
            assert!(target.convert(ValueRef::Json(&document), &scratch).is_ok(), "{depth}");
            let inner = std::mem::take(&mut document);
            crate::json::append_array([inner.as_slice()], &mut document);
        }
        let scratch = Scratch::new();
        assert_eq!(target.convert(ValueRef::Json(&document), &scratch).unwrap_err().code.errno(), 3140);
        let mut binary = Vec::new();
        crate::json::append_value(ValueRef::Bytes(&[0xFF]), &mut binary);
        assert_eq!(target.convert(ValueRef::Json(&binary), &scratch).unwrap_err().code.errno(), 3140);
    }

    #[test]
    fn in_lenient_mode_a_long_text_is_truncated_between_characters() {
        let column = column(DataType::text_or_blob(1, CollationId::DEFAULT), false);
        let target = StoreTarget { column: &column, row_number: 1, mode: StoreMode::Lenient };
        let scratch = Scratch::new();
        let text = "€".repeat(86);
        let ValueRef::Bytes(stored) = target.convert(ValueRef::Bytes(text.as_bytes()), &scratch).unwrap() else {
            panic!("a string")
        };
        assert_eq!(stored.len(), 255);
        assert!(std::str::from_utf8(stored).is_ok());
        let text = "a".to_owned() + &"€".repeat(86);
        let ValueRef::Bytes(stored) = target.convert(ValueRef::Bytes(text.as_bytes()), &scratch).unwrap() else {
            panic!("a string")
        };
        assert_eq!(stored.len(), 253);
    }
}
