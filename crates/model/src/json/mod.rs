//! JSON documents in binary form: what a JSON column stores, and what expressions compute with.
//!
//! A document is one value. A value is a tag byte and its content; integers are little-endian:
//!
//! | tag | value | content |
//! |---|---|---|
//! | 0, 1, 2 | null, false, true | |
//! | 3, 4 | signed and unsigned integer | 8 bytes |
//! | 5 | double | 8 bytes |
//! | 6 | string | u32 length, UTF-8 |
//! | 7 | array | u32 number of elements, u32 bytes of the elements, the elements |
//! | 8 | object | u32 number of members, u32 bytes of the members, for each its key (u32 length, UTF-8) and value |
//! | 9 | decimal | u8 scale, 16 bytes |
//! | 10 | year, day, time or both | u8 kind, u8 digits, 8 bytes |
//! | 11 | bytes of another type | u8 wire type, u32 length, the bytes |
//! | 12 | decimal of more than 38 digits | u8 scale, u8 sign, 36 bytes |
//!
//! The members of an object are sorted by the length of their keys, then by the bytes of the keys, and no key
//! occurs twice.

mod compare;
mod parse;
mod print;

use crate::decimal::{MANTISSA_LIMIT, Wide};
use crate::row_encoding::wire_type;
use crate::temporal::{Temporal, TemporalKind};
use crate::value::{Decimal, ValueRef};

pub use compare::{append_sort_key, compare};
pub use parse::{JsonError, parse};
pub use print::{append_quoted, append_text};

/// Maximum depth of arrays and objects in each other.
pub const DEPTH_MAX: usize = 100;

const TAG_NULL: u8 = 0;
const TAG_FALSE: u8 = 1;
const TAG_TRUE: u8 = 2;
const TAG_INT: u8 = 3;
const TAG_UINT: u8 = 4;
const TAG_DOUBLE: u8 = 5;
const TAG_STRING: u8 = 6;
const TAG_ARRAY: u8 = 7;
const TAG_OBJECT: u8 = 8;
const TAG_DECIMAL: u8 = 9;
const TAG_TEMPORAL: u8 = 10;
const TAG_OPAQUE: u8 = 11;
const TAG_WIDE_DECIMAL: u8 = 12;

/// The kinds of temporal values, by their number in a document.
const TEMPORAL_KINDS: [TemporalKind; 4] =
    [TemporalKind::Year, TemporalKind::Date, TemporalKind::Time, TemporalKind::DateTime];

/// A value of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Json<'a> {
    Null,
    Boolean(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(Decimal),
    String(&'a [u8]),
    Array(Elements<'a>),
    Object(Members<'a>),
    Temporal(Temporal),
    Opaque { wire_type: u8, bytes: &'a [u8] },
}

/// The elements of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elements<'a> {
    count: u32,
    bytes: &'a [u8],
}

/// The members of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Members<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Json<'a> {
    /// The value of a document that [`is_valid`] accepts; null for other bytes.
    pub fn of(document: &'a [u8]) -> Json<'a> {
        read(document).map_or(Json::Null, |(value, _)| value)
    }

    /// The name that JSON_TYPE returns.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "NULL",
            Json::Boolean(_) => "BOOLEAN",
            Json::Int(_) => "INTEGER",
            Json::UInt(_) => "UNSIGNED INTEGER",
            Json::Double(_) => "DOUBLE",
            Json::Decimal(_) => "DECIMAL",
            Json::String(_) => "STRING",
            Json::Array(_) => "ARRAY",
            Json::Object(_) => "OBJECT",
            Json::Temporal(value) => match value.kind {
                TemporalKind::Date => "DATE",
                TemporalKind::Time => "TIME",
                _ => "DATETIME",
            },
            Json::Opaque { wire_type: wire_type::BIT, .. } => "BIT",
            // VARCHAR, and all strings and BLOBs.
            Json::Opaque { wire_type: 15 | 249..=254, .. } => "BLOB",
            Json::Opaque { .. } => "OPAQUE",
        }
    }

    /// The SQL value of a scalar as a number or text; `None` for null, arrays and objects.
    pub fn as_scalar(&self) -> Option<ValueRef<'a>> {
        Some(match *self {
            Json::Boolean(value) => ValueRef::Int(value.into()),
            Json::Int(value) => ValueRef::Int(value),
            Json::UInt(value) => ValueRef::UInt(value),
            Json::Double(value) => ValueRef::Double(value),
            Json::Decimal(value) => ValueRef::Decimal(value),
            Json::String(text) => ValueRef::Bytes(text),
            Json::Temporal(value) => ValueRef::Temporal(value),
            Json::Opaque { bytes, .. } => ValueRef::Bytes(bytes),
            Json::Null | Json::Array(_) | Json::Object(_) => return None,
        })
    }

    /// Appends the value in binary form.
    pub fn append(&self, out: &mut Vec<u8>) {
        let mut tagged = |tag: u8, bytes: &[u8]| {
            out.push(tag);
            out.extend_from_slice(bytes);
        };
        match self {
            Json::Null => tagged(TAG_NULL, &[]),
            Json::Boolean(value) => tagged(if *value { TAG_TRUE } else { TAG_FALSE }, &[]),
            Json::Int(value) => tagged(TAG_INT, &value.to_le_bytes()),
            Json::UInt(value) => tagged(TAG_UINT, &value.to_le_bytes()),
            Json::Double(value) => tagged(TAG_DOUBLE, &value.to_le_bytes()),
            Json::Decimal(Decimal::Narrow { mantissa, scale }) => {
                tagged(TAG_DECIMAL, &[*scale]);
                out.extend_from_slice(&mantissa.to_le_bytes());
            }
            Json::Decimal(Decimal::Wide(wide)) => {
                tagged(TAG_WIDE_DECIMAL, &[wide.scale()]);
                out.extend_from_slice(&wide.to_bytes());
            }
            Json::String(text) => {
                tagged(TAG_STRING, &(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text);
            }
            Json::Array(Elements { count, bytes }) => {
                tagged(TAG_ARRAY, &count.to_le_bytes());
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
            Json::Object(Members { count, bytes }) => {
                tagged(TAG_OBJECT, &count.to_le_bytes());
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
            Json::Temporal(value) => {
                let kind = TEMPORAL_KINDS.iter().position(|kind| *kind == value.kind).unwrap_or(0) as u8;
                tagged(TAG_TEMPORAL, &[kind, value.digits]);
                out.extend_from_slice(&value.packed.to_le_bytes());
            }
            Json::Opaque { wire_type, bytes } => {
                tagged(TAG_OPAQUE, &[*wire_type]);
                out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// Appends a SQL value as a scalar: text as a string, a document unchanged.
pub fn append_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let scalar = match value {
        ValueRef::Null => Json::Null,
        ValueRef::Int(value) => Json::Int(value),
        ValueRef::UInt(value) => Json::UInt(value),
        ValueRef::Double(value) => Json::Double(value),
        ValueRef::Float(value) => Json::Double(value.into()),
        ValueRef::Decimal(value) => Json::Decimal(value),
        ValueRef::Bytes(text) => Json::String(text),
        ValueRef::Temporal(value) if value.kind == TemporalKind::Year => Json::UInt(value.packed as u64),
        ValueRef::Temporal(value) => Json::Temporal(value),
        ValueRef::Bit(bit) => {
            let mut bytes = Vec::new();
            bit.append_text(&mut bytes);
            return Json::Opaque { wire_type: wire_type::BIT, bytes: &bytes }.append(out);
        }
        ValueRef::Choice(choice) => return Json::String(&choice.to_choice().text).append(out),
        ValueRef::Json(document) => return out.extend_from_slice(document),
    };
    scalar.append(out);
}

/// Appends an array of these values in binary form.
pub fn append_array<'v>(values: impl IntoIterator<Item = &'v [u8]>, out: &mut Vec<u8>) {
    let start = begin(TAG_ARRAY, out);
    let mut count = 0u32;
    for value in values {
        out.extend_from_slice(value);
        count += 1;
    }
    end(start, count, out);
}

/// Appends an object of keys and values in binary form. Of members with one key, the last remains.
pub fn append_object(mut members: Vec<(&[u8], &[u8])>, out: &mut Vec<u8>) {
    // A stable sort keeps members of one key in their order.
    members.sort_by(|left, right| order_of_keys(left.0, right.0));
    let start = begin(TAG_OBJECT, out);
    let mut count = 0u32;
    for (position, (key, value)) in members.iter().enumerate() {
        if members.get(position + 1).is_some_and(|next| next.0 == *key) {
            continue;
        }
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        out.extend_from_slice(key);
        out.extend_from_slice(value);
        count += 1;
    }
    end(start, count, out);
}

/// Whether bytes are one whole document.
pub fn is_valid(bytes: &[u8]) -> bool {
    check(bytes, 0).is_some_and(<[u8]>::is_empty)
}

impl<'a> Elements<'a> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The element at a position from 0, in binary form.
    pub fn get(&self, position: usize) -> Option<&'a [u8]> {
        (*self).into_iter().nth(position)
    }
}

impl<'a> IntoIterator for Elements<'a> {
    type Item = &'a [u8];
    type IntoIter = ElementIterator<'a>;

    fn into_iter(self) -> ElementIterator<'a> {
        ElementIterator { rest: self.bytes }
    }
}

/// Iterates over elements in binary form.
#[derive(Clone, Debug)]
pub struct ElementIterator<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for ElementIterator<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (_, rest) = read(self.rest)?;
        let value = &self.rest[..self.rest.len() - rest.len()];
        self.rest = rest;
        Some(value)
    }
}

impl<'a> Members<'a> {
    /// The number of members.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The value of a key, in binary form.
    pub fn get(&self, key: &[u8]) -> Option<&'a [u8]> {
        (*self).into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

impl<'a> IntoIterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);
    type IntoIter = MemberIterator<'a>;

    fn into_iter(self) -> MemberIterator<'a> {
        MemberIterator { rest: self.bytes }
    }
}

/// Iterates over keys and values in binary form.
#[derive(Clone, Debug)]
pub struct MemberIterator<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for MemberIterator<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (key, rest) = read_bytes(self.rest)?;
        let (_, after) = read(rest)?;
        let value = &rest[..rest.len() - after.len()];
        self.rest = after;
        Some((key, value))
    }
}

/// The order of the members of an object.
fn order_of_keys(left: &[u8], right: &[u8]) -> std::cmp::Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// Begins an array or object. Returns where its header is.
fn begin(tag: u8, out: &mut Vec<u8>) -> usize {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    start
}

fn end(start: usize, count: u32, out: &mut [u8]) {
    let bytes = (out.len() - start - 8) as u32;
    out[start..start + 4].copy_from_slice(&count.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&bytes.to_le_bytes());
}

fn read_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// The value at the front, and the bytes after it. Nested values are not read.
fn read(bytes: &[u8]) -> Option<(Json<'_>, &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let eight = || rest.split_first_chunk::<8>();
    Some(match *tag {
        TAG_NULL => (Json::Null, rest),
        TAG_FALSE => (Json::Boolean(false), rest),
        TAG_TRUE => (Json::Boolean(true), rest),
        TAG_INT => eight().map(|(bytes, rest)| (Json::Int(i64::from_le_bytes(*bytes)), rest))?,
        TAG_UINT => eight().map(|(bytes, rest)| (Json::UInt(u64::from_le_bytes(*bytes)), rest))?,
        TAG_DOUBLE => eight().map(|(bytes, rest)| (Json::Double(f64::from_le_bytes(*bytes)), rest))?,
        TAG_STRING => read_bytes(rest).map(|(text, rest)| (Json::String(text), rest))?,
        TAG_ARRAY | TAG_OBJECT => {
            let (count, rest) = rest.split_first_chunk()?;
            let count = u32::from_le_bytes(*count);
            let (bytes, rest) = read_bytes(rest)?;
            match *tag {
                TAG_ARRAY => (Json::Array(Elements { count, bytes }), rest),
                _ => (Json::Object(Members { count, bytes }), rest),
            }
        }
        TAG_DECIMAL => {
            let (scale, rest) = rest.split_first()?;
            let (bytes, rest) = rest.split_first_chunk()?;
            if *scale > crate::decimal::DECIMAL_SCALE_MAX {
                return None;
            }
            (Json::Decimal(Decimal::Narrow { mantissa: i128::from_le_bytes(*bytes), scale: *scale }), rest)
        }
        TAG_WIDE_DECIMAL => {
            let (scale, rest) = rest.split_first()?;
            let (bytes, rest) = rest.split_first_chunk()?;
            (Json::Decimal(Wide::from_bytes(bytes, *scale)?), rest)
        }
        TAG_TEMPORAL => {
            let ([kind, digits], rest) = rest.split_first_chunk::<2>()?;
            let (packed, rest) = rest.split_first_chunk()?;
            let kind = *TEMPORAL_KINDS.get(usize::from(*kind))?;
            (Json::Temporal(Temporal { kind, digits: *digits, packed: i64::from_le_bytes(*packed) }), rest)
        }
        TAG_OPAQUE => {
            let (wire_type, rest) = rest.split_first()?;
            let (bytes, rest) = read_bytes(rest)?;
            (Json::Opaque { wire_type: *wire_type, bytes }, rest)
        }
        _ => return None,
    })
}

/// The bytes after a valid value with all nested values.
fn check(bytes: &[u8], depth: usize) -> Option<&[u8]> {
    let (value, rest) = read(bytes)?;
    let is_text = |text: &[u8]| std::str::from_utf8(text).is_ok();
    let is_valid = match value {
        Json::Double(value) => value.is_finite(),
        Json::String(text) => is_text(text),
        Json::Decimal(value) => value.narrow_mantissa().is_none_or(|mantissa| mantissa.unsigned_abs() < MANTISSA_LIMIT),
        Json::Temporal(value) => value.digits <= crate::temporal::DIGITS_MAX && value.is_valid(),
        Json::Array(elements) => {
            let mut inside = elements.bytes;
            let mut count = 0;
            while !inside.is_empty() && depth < DEPTH_MAX {
                inside = check(inside, depth + 1)?;
                count += 1;
            }
            inside.is_empty() && count == elements.count
        }
        Json::Object(members) => {
            let mut inside = members.bytes;
            let mut count = 0;
            let mut before: Option<&[u8]> = None;
            while !inside.is_empty() && depth < DEPTH_MAX {
                let (key, value) = read_bytes(inside)?;
                let is_sorted = before.is_none_or(|before| order_of_keys(before, key).is_lt());
                if !is_sorted || !is_text(key) {
                    return None;
                }
                before = Some(key);
                inside = check(value, depth + 1)?;
                count += 1;
            }
            inside.is_empty() && count == members.count
        }
        _ => true,
    };
    is_valid.then_some(rest)
}

#[cfg(test)]
mod tests;
