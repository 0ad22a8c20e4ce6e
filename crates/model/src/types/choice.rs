//! ENUM and SET.

use std::sync::Arc;

use super::{DataType, Family, Form, Members, Packed, TypeDescriptor, WireType, packed::width_of_bits};
use crate::collation::CollationId;
use crate::error::Result;
use crate::key::KeyPart;
use crate::number::parse_integer;
use crate::row_encoding::{column_flag, wire_type};
use crate::scratch::{Scratch, to_text};
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::temporal::{Temporal, TemporalKind};
use crate::value::{Choice, ChoiceRef, ChoiceText, Value, ValueRef};

/// Maximum number of members of a SET.
pub const SET_MEMBERS_MAX: usize = 64;
/// Maximum number of members of an ENUM.
pub const ENUM_MEMBERS_MAX: usize = 65_535;

/// One of the two types.
pub(super) struct ChoiceType {
    is_set: bool,
}

pub(super) static ENUM: ChoiceType = ChoiceType { is_set: false };
pub(super) static SET: ChoiceType = ChoiceType { is_set: true };

impl DataType {
    /// ENUM with 1 to 65,535 members.
    pub fn enumeration(members: Arc<Members>, collation: CollationId) -> DataType {
        let characters = collation.character_set();
        let longest = members.names().iter().map(|name| characters.character_count(name)).max();
        let bytes = if members.names().len() < 256 { 1 } else { 2 };
        let length = longest.unwrap_or(0) as u32;
        DataType { bytes, length, collation, members: Some(members), ..DataType::plain(Family::Enum) }
    }

    /// SET with 1 to 64 members.
    pub fn set(members: Arc<Members>, collation: CollationId) -> DataType {
        let characters = collation.character_set();
        let names = members.names();
        let all: usize = names.iter().map(|name| characters.character_count(name)).sum();
        let bytes = width_of_bits(names.len() as u32);
        let length = (all + names.len().saturating_sub(1)) as u32;
        DataType { bytes, length, collation, members: Some(members), ..DataType::plain(Family::Set) }
    }
}

impl TypeDescriptor for ChoiceType {
    fn name(&self, _: &DataType) -> &'static str {
        if self.is_set { "set" } else { "enum" }
    }

    fn append_attributes(&self, data_type: &DataType, _: Option<u16>, out: &mut String) {
        out.push('(');
        for (position, name) in members(data_type).names().iter().enumerate() {
            out.push_str(if position > 0 { ",'" } else { "'" });
            for character in String::from_utf8_lossy(name).chars() {
                match character {
                    '\'' => out.push_str("''"),
                    '\\' => out.push_str("\\\\"),
                    '\0' => out.push_str("\\0"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    other => out.push(other),
                }
            }
            out.push('\'');
        }
        out.push(')');
    }

    fn form(&self, _: &DataType) -> Form {
        if self.is_set { Form::Set } else { Form::Enum }
    }

    fn packed(&self, data_type: &DataType) -> Option<Packed> {
        Some(if self.is_set { Packed::Set(data_type.bytes) } else { Packed::Enum(data_type.bytes) })
    }

    fn packed_key(&self, data_type: &DataType) -> KeyPart {
        KeyPart::Integer { bytes: data_type.bytes, unsigned: true }
    }

    fn wire(&self, data_type: &DataType) -> WireType {
        let length = data_type.length * data_type.collation.max_bytes_per_character() as u32;
        let flags = if self.is_set { column_flag::SET } else { column_flag::ENUM };
        WireType { code: wire_type::STRING, length, decimals: 0, flags }
    }

    fn text_lengths(&self, data_type: &DataType) -> Option<(i64, i64)> {
        let bytes = data_type.length as usize * data_type.collation.max_bytes_per_character();
        Some((data_type.length.into(), bytes as i64))
    }

    /// The first member of an ENUM; the empty SET.
    fn implicit_default(&self, data_type: &DataType) -> Value {
        let number = u64::from(!self.is_set);
        let text = if self.is_set { b"" } else { members(data_type).name(number) };
        Value::Choice(Choice { number, text: text.into() })
    }

    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let number = match value {
            ValueRef::Choice(choice) if choice.number == 0 => 0,
            ValueRef::Temporal(Temporal { kind: TemporalKind::Year, .. }) => {
                self.number_of_number(data_type, value.as_number(), target, scratch)?
            }
            ValueRef::Bytes(_) | ValueRef::Choice(_) | ValueRef::Temporal(_) | ValueRef::Json(_) => {
                self.number_of_text(data_type, to_text(value, scratch)?, target, scratch)?
            }
            value => self.number_of_number(data_type, value.as_number(), target, scratch)?,
        };
        let text = scratch.build_text(|buffer| match self.is_set {
            true => members(data_type).append_set(number, buffer),
            false => buffer.extend_from_slice(members(data_type).name(number)),
        })?;
        Ok(ValueRef::Choice(ChoiceRef { number, text: ChoiceText::Text(text) }))
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        let collation = data_type.collation.name().into();
        let members = members(data_type).names().iter().map(|name| String::from_utf8_lossy(name).into()).collect();
        match self.is_set {
            true => StoredType::Set { members, collation },
            false => StoredType::Enum { members, collation },
        }
    }
}

impl ChoiceType {
    /// Error or warning 1265 for a text that is no member. A text that is a number counts as the number.
    fn number_of_text(
        &self,
        data_type: &DataType,
        text: &[u8],
        target: &StoreTarget<'_>,
        scratch: &Scratch,
    ) -> Result<u64> {
        let members = members(data_type);
        let found = match self.is_set {
            true if text.is_empty() => Some(0),
            true => {
                let position = |name: &[u8]| members.position(name, data_type.collation);
                let positions = text.split(|byte| *byte == b',').map(position);
                let known = positions.clone().flatten().fold(0, |bits, position| bits | 1 << (position - 1));
                if !positions.clone().any(|position| position.is_none()) {
                    return Ok(known);
                }
                match self.numeral(data_type, text) {
                    Some(number) => Some(number),
                    None => {
                        target.truncated(scratch)?;
                        return Ok(known);
                    }
                }
            }
            false => members.position(text, data_type.collation).or_else(|| self.numeral(data_type, text)),
        };
        match found {
            Some(number) => Ok(number),
            None => {
                target.truncated(scratch)?;
                Ok(0)
            }
        }
    }

    /// The number that a text is, if the type has such a value. Spaces may precede it, and in an ENUM
    /// follow it.
    fn numeral(&self, data_type: &DataType, text: &[u8]) -> Option<u64> {
        let text = if self.is_set { text.trim_ascii_start() } else { text.trim_ascii() };
        let parsed = parse_integer(text, false);
        let is_plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        let least = u64::from(!self.is_set);
        let number = u64::try_from(parsed.value).ok().filter(|number| is_plain && *number >= least)?;
        (number <= self.greatest(data_type)).then_some(number)
    }

    fn number_of_number(
        &self,
        data_type: &DataType,
        value: ValueRef<'_>,
        target: &StoreTarget<'_>,
        scratch: &Scratch,
    ) -> Result<u64> {
        let number = match value {
            ValueRef::Int(number) => i128::from(number),
            ValueRef::UInt(number) => number.into(),
            ValueRef::Double(number) => whole(number),
            ValueRef::Decimal(number) => whole(number.to_double()),
            _ => 0,
        };
        let least = i128::from(!self.is_set);
        if (least..=self.greatest(data_type).into()).contains(&number) {
            return Ok(number as u64);
        }
        target.truncated(scratch)?;
        // The bits of unknown members are dropped.
        Ok(if self.is_set { number as u64 & self.greatest(data_type) } else { 0 })
    }

    fn greatest(&self, data_type: &DataType) -> u64 {
        let count = members(data_type).names().len();
        match self.is_set {
            true => u64::MAX >> (SET_MEMBERS_MAX - count.clamp(1, SET_MEMBERS_MAX)),
            false => count as u64,
        }
    }
}

/// The number without its fraction, which MySQL also cuts from a decimal. Beyond 64 bits it has no member's
/// bit.
fn whole(number: f64) -> i128 {
    let limit = -(i64::MIN as f64);
    if (-limit..limit).contains(&number) { number as i128 } else { i64::MIN.into() }
}

static NO_MEMBERS: std::sync::LazyLock<Members> = std::sync::LazyLock::new(|| Members::new(Vec::new()));

fn members(data_type: &DataType) -> &Members {
    data_type.members.as_deref().unwrap_or(&NO_MEMBERS)
}
