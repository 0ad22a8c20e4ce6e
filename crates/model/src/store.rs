//! Assigns values to columns: converts them to the column's type, or rejects them in a strict `sql_mode`.

use std::fmt::Write;

use crate::collation::{CharacterSet, CollationId};
use crate::decimal;
use crate::error::{Error, ErrorCode, Result};
use crate::number::{parse_double, parse_integer};
use crate::schema::{ColumnDefinition, ColumnType};
use crate::scratch::{Scratch, excerpt, to_text};
use crate::value::ValueRef;

/// Maximum number of bytes of an invalid string that a message shows.
const WRONG_BYTES_SHOWN: usize = 6;

/// The treatment of a value that does not fit its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// The statement fails (strict `sql_mode`).
    Strict,
    /// The nearest value is stored, with a warning (IGNORE, or a `sql_mode` that is not strict).
    Lenient,
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
        let column_type = self.column.column_type;
        match (value, column_type) {
            (ValueRef::Null, _) => self.null(scratch),
            (ValueRef::Int(number), ColumnType::Integer { bytes, unsigned }) => {
                self.integer(number.into(), bytes, unsigned, scratch)
            }
            (ValueRef::UInt(number), ColumnType::Integer { bytes, unsigned }) => {
                self.integer(number.into(), bytes, unsigned, scratch)
            }
            // A negative number is out of range even if it rounds to 0.
            (ValueRef::Decimal(number), ColumnType::Integer { bytes, unsigned: true }) if number.mantissa < 0 => {
                self.integer(-1, bytes, true, scratch)
            }
            (value, ColumnType::Integer { bytes, unsigned }) => {
                let number = self.integer_of(value, scratch)?;
                self.integer(number, bytes, unsigned, scratch)
            }
            (value, ColumnType::Double) => self.double(value, scratch).map(ValueRef::Double),
            (value, ColumnType::Char { length, collation }) => {
                let text = self.text(value, collation, usize::from(length), scratch)?;
                self.char(text, usize::from(length), collation, scratch)
            }
            (value, ColumnType::VarChar { length, collation }) => {
                self.text(value, collation, usize::from(length), scratch).map(ValueRef::Bytes)
            }
            (value, ColumnType::Text { length_bytes, collation }) => {
                let bytes_max = (1usize << (8 * u32::from(length_bytes.clamp(1, 4)))) - 1;
                let text = self.valid_text(value, collation, scratch)?;
                if text.len() <= bytes_max {
                    return Ok(ValueRef::Bytes(text));
                }
                // Never split a character: a character that crosses the limit is dropped.
                let mut cut = bytes_max;
                while collation != CollationId::BINARY && cut > 0 && text[cut] & 0xC0 == 0x80 {
                    cut -= 1;
                }
                self.fail_or_warn(ErrorCode::DataTooLong, "Data too long for column", scratch)?;
                Ok(ValueRef::Bytes(&text[..cut]))
            }
        }
    }

    /// The value for NULL. In lenient mode a NOT NULL column stores 0 or the empty string instead.
    fn null<'r>(&self, scratch: &'r Scratch) -> Result<ValueRef<'r>> {
        if self.column.nullable {
            return Ok(ValueRef::Null);
        }
        let message = || format!("Column '{}' cannot be null", self.column.name);
        if self.mode == StoreMode::Strict {
            return Err(Error::new(ErrorCode::ColumnNotNull, message()));
        }
        scratch.note(ErrorCode::ColumnNotNull, message);
        Ok(match self.column.column_type {
            ColumnType::Integer { unsigned: true, .. } => ValueRef::UInt(0),
            ColumnType::Integer { .. } => ValueRef::Int(0),
            ColumnType::Double => ValueRef::Double(0.0),
            ColumnType::Char { length, collation } => self.char(b"", usize::from(length), collation, scratch)?,
            ColumnType::VarChar { .. } | ColumnType::Text { .. } => ValueRef::Bytes(b""),
        })
    }

    #[inline]
    fn integer<'r>(&self, number: i128, bytes: u8, unsigned: bool, scratch: &Scratch) -> Result<ValueRef<'r>> {
        let bits = u32::from(bytes) * 8;
        let (low, high) = match unsigned {
            true => (0, (1i128 << bits) - 1),
            false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        };
        let stored = number.clamp(low, high);
        if stored != number {
            self.fail_or_warn(ErrorCode::OutOfRange, "Out of range value for column", scratch)?;
        }
        Ok(if unsigned { ValueRef::UInt(stored as u64) } else { ValueRef::Int(stored as i64) })
    }

    /// The value as an integer: numbers are rounded, strings are parsed.
    fn integer_of(&self, value: ValueRef<'_>, scratch: &Scratch) -> Result<i128> {
        match value {
            ValueRef::Double(value) => Ok(value.round_ties_even() as i128),
            ValueRef::Decimal(value) => Ok(decimal::to_integer(value)),
            ValueRef::Bytes(text) => {
                let parsed = parse_integer(text, true);
                if parsed.is_missing {
                    self.fail_or_warn_wrong_value("integer", &excerpt(text), scratch)?;
                } else if parsed.is_truncated {
                    self.fail_or_warn(ErrorCode::DataTruncated, "Data truncated for column", scratch)?;
                }
                Ok(parsed.value)
            }
            ValueRef::Int(value) => Ok(value.into()),
            ValueRef::UInt(value) => Ok(value.into()),
            ValueRef::Null => Ok(0),
        }
    }

    fn double(&self, value: ValueRef<'_>, scratch: &Scratch) -> Result<f64> {
        Ok(match value.to_double() {
            Ok(number) => number,
            Err(text) => {
                let parsed = parse_double(text);
                if parsed.is_truncated {
                    self.fail_or_warn(ErrorCode::DataTruncated, "Data truncated for column", scratch)?;
                } else if parsed.is_out_of_range {
                    self.fail_or_warn(ErrorCode::OutOfRange, "Out of range value for column", scratch)?;
                }
                parsed.value
            }
        })
    }

    /// The value as text that is valid in the character set. In lenient mode invalid text ends before its
    /// first invalid byte.
    fn valid_text<'r>(&self, value: ValueRef<'r>, collation: CollationId, scratch: &'r Scratch) -> Result<&'r [u8]> {
        let text = to_text(value, scratch)?;
        if !matches!(value, ValueRef::Bytes(_)) || collation.character_set().is_valid(text) {
            return Ok(text);
        }
        let valid = match std::str::from_utf8(text) {
            Ok(_) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        self.fail_or_warn_wrong_value("string", &wrong_bytes(&text[valid..]), scratch)?;
        Ok(&text[..valid])
    }

    /// Valid text of at most `length` characters. Excess spaces of a CHAR are dropped silently; other columns
    /// get a warning for them, and VARBINARY treats them as data.
    fn text<'r>(
        &self,
        value: ValueRef<'r>,
        collation: CollationId,
        length: usize,
        scratch: &'r Scratch,
    ) -> Result<&'r [u8]> {
        let text = self.valid_text(value, collation, scratch)?;
        // At most `length` bytes are at most `length` characters.
        if text.len() <= length {
            return Ok(text);
        }
        let characters = collation.character_set();
        let fitting = characters.prefix(text, length);
        let rest = &text[fitting.len()..];
        if rest.is_empty() {
            return Ok(text);
        }
        let only_spaces = characters == CharacterSet::Utf8mb4 && rest.iter().all(|byte| *byte == b' ');
        match (only_spaces, self.column.column_type) {
            (true, ColumnType::Char { .. }) => {}
            (true, _) => scratch.note(ErrorCode::DataTruncated, || self.message("Data truncated for column")),
            (false, _) => self.fail_or_warn(ErrorCode::DataTooLong, "Data too long for column", scratch)?,
        }
        Ok(fitting)
    }

    /// Removes the trailing spaces of a CHAR, or pads a BINARY with zero bytes.
    fn char<'r>(
        &self,
        text: &'r [u8],
        length: usize,
        collation: CollationId,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        if collation.character_set() == CharacterSet::Binary {
            if text.len() == length {
                return Ok(ValueRef::Bytes(text));
            }
            let filled = scratch.build_text(|buffer| {
                buffer.extend_from_slice(text);
                buffer.resize(length, 0);
            })?;
            return Ok(ValueRef::Bytes(filled));
        }
        let spaces = text.iter().rev().take_while(|byte| **byte == b' ').count();
        Ok(ValueRef::Bytes(&text[..text.len() - spaces]))
    }

    fn message(&self, what: &str) -> String {
        format!("{what} '{}' at row {}", self.column.name, self.row_number)
    }

    #[cold]
    fn fail_or_warn(&self, code: ErrorCode, what: &str, scratch: &Scratch) -> Result<()> {
        if self.mode == StoreMode::Strict {
            return Err(Error::new(code, self.message(what)));
        }
        // MySQL reports a string that is too long as error 1406 but as warning 1265.
        let code = if code == ErrorCode::DataTooLong { ErrorCode::DataTruncated } else { code };
        let what = if code == ErrorCode::DataTruncated { "Data truncated for column" } else { what };
        scratch.note(code, || self.message(what));
        Ok(())
    }

    #[cold]
    fn fail_or_warn_wrong_value(&self, type_name: &str, value: &str, scratch: &Scratch) -> Result<()> {
        let message = || self.message(&format!("Incorrect {type_name} value: '{value}' for column"));
        if self.mode == StoreMode::Strict {
            return Err(Error::new(ErrorCode::WrongValueForType, message()));
        }
        scratch.note(ErrorCode::WrongValueForType, message);
        Ok(())
    }
}

/// The first bytes of an invalid string for a message: printable characters unchanged, others as `\xF0`.
fn wrong_bytes(bytes: &[u8]) -> String {
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

    fn column(column_type: ColumnType, nullable: bool) -> ColumnDefinition {
        ColumnDefinition { nullable, ..ColumnDefinition::new("price", column_type) }
    }

    fn message(column_type: ColumnType, value: ValueRef<'_>) -> String {
        let column = column(column_type, false);
        let target = StoreTarget { column: &column, row_number: 3, mode: StoreMode::Strict };
        target.convert(value, &Scratch::new()).unwrap_err().to_string()
    }

    const TINY: ColumnType = ColumnType::Integer { bytes: 1, unsigned: false };
    const NAME: ColumnType = ColumnType::VarChar { length: 2, collation: CollationId::DEFAULT };

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
        let stored = |column_type: ColumnType| {
            let column = column(column_type, false);
            let target = StoreTarget { column: &column, row_number: 1, mode: StoreMode::Lenient };
            target.convert(ValueRef::Null, &scratch).unwrap().to_value()
        };
        let bytes = |text: &[u8]| crate::value::Value::Bytes(text.to_vec());
        assert_eq!(stored(TINY).as_ref(), ValueRef::Int(0));
        assert_eq!(stored(ColumnType::Integer { bytes: 8, unsigned: true }).as_ref(), ValueRef::UInt(0));
        assert_eq!(stored(NAME), bytes(b""));
        assert_eq!(stored(ColumnType::Char { length: 2, collation: CollationId::BINARY }), bytes(&[0, 0]));
        assert_eq!(scratch.warning_count(), 4);
    }

    #[test]
    fn in_lenient_mode_a_long_text_is_truncated_between_characters() {
        let column = column(ColumnType::Text { length_bytes: 1, collation: CollationId::DEFAULT }, false);
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
