//! CHAR, BINARY, VARCHAR and VARBINARY.

use super::short_double::short_double;
use super::{DataType, Family, Form, TooLong, TypeDescriptor, WireType};
use crate::collation::{CharacterSet, CollationId};
use crate::error::Result;
use crate::row::SlotKind;
use crate::row_encoding::wire_type;
use crate::scratch::{Scratch, to_text};
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::temporal::TemporalKind;
use crate::value::{Value, ValueRef};

/// Maximum length of CHAR and BINARY.
const FIXED_LENGTH_MAX: u32 = 255;
/// Maximum bytes of VARBINARY, and of VARCHAR at the character set's maximum bytes per character.
const VARIABLE_BYTES_MAX: u32 = 65_535;

/// One of the four types.
pub(super) struct StringType {
    name: &'static str,
    wire_code: u8,
    is_variable: bool,
}

pub(super) static CHAR: StringType = StringType { name: "char", wire_code: wire_type::STRING, is_variable: false };
pub(super) static BINARY: StringType = StringType { name: "binary", wire_code: wire_type::STRING, is_variable: false };
pub(super) static VARCHAR: StringType =
    StringType { name: "varchar", wire_code: wire_type::VAR_STRING, is_variable: true };
pub(super) static VARBINARY: StringType =
    StringType { name: "varbinary", wire_code: wire_type::VAR_STRING, is_variable: true };

impl DataType {
    /// CHAR(length), stored without trailing spaces; BINARY(length) with the collation binary.
    pub const fn char(length: u16, collation: CollationId) -> DataType {
        let family = if collation.is_binary() { Family::Binary } else { Family::Char };
        let mut data_type = DataType::plain(family);
        data_type.length = length as u32;
        data_type.collation = collation;
        data_type
    }

    /// VARCHAR(length); VARBINARY(length) with the collation binary.
    pub const fn varchar(length: u16, collation: CollationId) -> DataType {
        let family = if collation.is_binary() { Family::VarBinary } else { Family::VarChar };
        let mut data_type = DataType::plain(family);
        data_type.length = length as u32;
        data_type.collation = collation;
        data_type
    }

    /// CHAR or BINARY with a length that a statement declares.
    ///
    /// # Errors
    /// The type has no such length.
    pub fn declared_char(length: u32, collation: CollationId) -> std::result::Result<DataType, TooLong> {
        if length > FIXED_LENGTH_MAX {
            return Err(TooLong { max: FIXED_LENGTH_MAX });
        }
        Ok(DataType::char(length as u16, collation))
    }

    /// VARCHAR or VARBINARY with a length that a statement declares.
    ///
    /// # Errors
    /// The type has no such length.
    pub fn declared_varchar(length: u32, collation: CollationId) -> std::result::Result<DataType, TooLong> {
        let max = VARIABLE_BYTES_MAX / collation.max_bytes_per_character() as u32;
        if length > max {
            return Err(TooLong { max });
        }
        Ok(DataType::varchar(length as u16, collation))
    }
}

impl TypeDescriptor for StringType {
    fn name(&self, _: &DataType) -> &'static str {
        self.name
    }

    fn append_attributes(&self, data_type: &DataType, _: Option<u16>, out: &mut String) {
        out.push_str(&format!("({})", data_type.length));
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Bytes
    }

    fn slot(&self, _: &DataType) -> SlotKind {
        SlotKind::Variable
    }

    fn key_bytes(&self, data_type: &DataType) -> Option<usize> {
        Some(bytes_max(data_type))
    }

    fn row_bytes(&self, data_type: &DataType) -> usize {
        let bytes = bytes_max(data_type);
        match self.is_variable {
            true => bytes + if bytes > 255 { 2 } else { 1 },
            false => bytes,
        }
    }

    fn wire(&self, data_type: &DataType) -> WireType {
        WireType { code: self.wire_code, length: bytes_max(data_type) as u32, decimals: 0, flags: 0 }
    }

    fn text_lengths(&self, data_type: &DataType) -> Option<(i64, i64)> {
        Some((data_type.length.into(), bytes_max(data_type) as i64))
    }

    fn implicit_default(&self, data_type: &DataType) -> Value {
        let is_padded = data_type.collation.is_binary() && !self.is_variable;
        Value::Bytes(vec![0; if is_padded { data_type.length as usize } else { 0 }])
    }

    /// CHAR loses its trailing spaces, and BINARY is padded with zero bytes.
    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let (text, excess) = match value {
            // MySQL copies a YEAR as an integer: the year 0000 is 0.
            ValueRef::Temporal(year) if year.kind == TemporalKind::Year => {
                fitting(data_type, year.as_number(), target, scratch)?
            }
            ValueRef::Double(number) => fitting_number(data_type, number, scratch)?,
            // MySQL converts a FLOAT to a double first.
            ValueRef::Float(number) => fitting_number(data_type, number.into(), scratch)?,
            value => fitting(data_type, value, target, scratch)?,
        };
        match excess {
            Excess::None => {}
            Excess::Spaces if self.is_variable => target.note_truncation(scratch),
            // CHAR loses these spaces with all others.
            Excess::Spaces => {}
            Excess::Data => target.too_long(scratch)?,
        }
        let length = data_type.length as usize;
        match (self.is_variable, data_type.collation.is_binary()) {
            (true, _) => Ok(ValueRef::Bytes(text)),
            (false, false) => {
                let spaces = text.iter().rev().take_while(|byte| **byte == b' ').count();
                Ok(ValueRef::Bytes(&text[..text.len() - spaces]))
            }
            (false, true) if text.len() == length => Ok(ValueRef::Bytes(text)),
            (false, true) => {
                let padded = scratch.build_text(|buffer| {
                    buffer.extend_from_slice(text);
                    buffer.resize(length, 0);
                })?;
                Ok(ValueRef::Bytes(padded))
            }
        }
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        let (length, collation) = (data_type.length as u16, data_type.collation.name().into());
        match self.is_variable {
            true => StoredType::Varchar { length, collation },
            false => StoredType::Char { length, collation },
        }
    }
}

/// The part that was cut off a string that was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excess {
    None,
    /// Only spaces of text.
    Spaces,
    Data,
}

/// The text of a number, shortened to the declared length.
fn fitting_number<'r>(data_type: &DataType, number: f64, scratch: &'r Scratch) -> Result<(&'r [u8], Excess)> {
    let length = data_type.length as usize;
    let text = to_text(ValueRef::Double(number), scratch)?;
    if text.len() <= length {
        return Ok((text, Excess::None));
    }
    if !number.is_finite() {
        return Ok((&text[..length], Excess::Data));
    }
    let short = short_double(number, length);
    let text = scratch.build_text(|buffer| buffer.extend_from_slice(&short.text))?;
    Ok((text, if short.fits { Excess::None } else { Excess::Data }))
}

/// The front of the value that has at most the declared length, valid in the character set.
fn fitting<'r>(
    data_type: &DataType,
    value: ValueRef<'r>,
    target: &StoreTarget<'_>,
    scratch: &'r Scratch,
) -> Result<(&'r [u8], Excess)> {
    let text = valid_text(value, data_type.collation, target, scratch)?;
    // At most `length` bytes are at most `length` characters.
    let length = data_type.length as usize;
    if text.len() <= length {
        return Ok((text, Excess::None));
    }
    let characters = data_type.collation.character_set();
    let kept = characters.prefix(text, length);
    let rest = &text[kept.len()..];
    let is_text = characters != CharacterSet::Binary;
    Ok(match rest {
        [] => (text, Excess::None),
        rest if is_text && rest.iter().all(|byte| *byte == b' ') => (kept, Excess::Spaces),
        _ => (kept, Excess::Data),
    })
}

/// The value as text that is valid in the character set. In lenient mode invalid text ends before its first
/// invalid byte, and `?` stands for each character that the set lacks.
pub(super) fn valid_text<'r>(
    value: ValueRef<'r>,
    collation: CollationId,
    target: &StoreTarget<'_>,
    scratch: &'r Scratch,
) -> Result<&'r [u8]> {
    let text = to_text(value, scratch)?;
    let is_bytes = matches!(value, ValueRef::Bytes(_) | ValueRef::Bit(_));
    if !is_bytes || collation.character_set().is_valid(text) {
        return Ok(text);
    }
    let characters = collation.character_set();
    let valid = characters.valid_bytes(text);
    target.wrong_bytes(&text[valid..], scratch)?;
    if std::str::from_utf8(text).is_err() {
        return Ok(&text[..valid]);
    }
    scratch.build_text(|buffer| {
        characters.append_representable(text, buffer);
    })
}

fn bytes_max(data_type: &DataType) -> usize {
    data_type.length as usize * data_type.collation.max_bytes_per_character()
}
