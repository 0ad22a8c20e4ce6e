//! The forms of a UUID: 36 characters with dashes, 32 digits, braces, and 16 bytes.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::scratch::excerpt;
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, function, generated_text, resolve_integer};
use crate::program::Expression;
use crate::result_type::{Coercibility, ResultType};

pub(super) const TABLE: &[Function] = &[
    function("IS_UUID", 1, 1, resolve_integer::<1>, is_uuid),
    function("UUID_TO_BIN", 1, 2, resolve_to_bin, uuid_to_bin),
    function("BIN_TO_UUID", 1, 2, resolve_from_bin, bin_to_uuid),
];

fn resolve_to_bin(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, 16);
    Ok(TypedCall { arguments, result: result.with_nullable(true) })
}

fn resolve_from_bin(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, 36)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn is_uuid(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.text(0)?.map_or(ValueRef::Null, |text| ValueRef::Int(parsed(text).is_some().into())))
}

/// With a second argument that is true, the groups with the time are in the order of their significance.
fn uuid_to_bin(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let Some(mut bytes) = parsed(text) else { return Err(wrong_value(text, "uuid_to_bin")) };
    if swaps(call)? {
        bytes = [&bytes[6..8], &bytes[4..6], &bytes[..4], &bytes[8..]].concat().try_into().unwrap_or(bytes);
    }
    call.build(|buffer| buffer.extend_from_slice(&bytes))
}

fn bin_to_uuid(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(given) = call.text(0)? else { return Ok(ValueRef::Null) };
    let Ok(mut bytes) = <[u8; 16]>::try_from(given) else { return Err(wrong_value(given, "bin_to_uuid")) };
    if swaps(call)? {
        bytes = [&bytes[4..8], &bytes[2..4], &bytes[..2], &bytes[8..]].concat().try_into().unwrap_or(bytes);
    }
    call.build(|buffer| append_uuid(&bytes, buffer))
}

/// Appends the form of 36 characters.
pub(super) fn append_uuid(bytes: &[u8; 16], buffer: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            buffer.push(b'-');
        }
        buffer.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

fn swaps(call: Call<'_>) -> Result<bool> {
    Ok(call.count() > 1 && call.integer(1)?.is_some_and(|swap| swap != 0))
}

fn parsed(text: &[u8]) -> Option<[u8; 16]> {
    let text = match text.len() {
        38 => text.strip_prefix(b"{")?.strip_suffix(b"}")?,
        _ => text,
    };
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let digits: Vec<u8> = match text.len() {
        32 => text.to_vec(),
        36 if (0..36).all(|at| is_dash(at) == (text[at] == b'-')) => {
            text.iter().copied().filter(|byte| *byte != b'-').collect()
        }
        _ => return None,
    };
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        for digit in pair {
            *byte = *byte << 4 | (*digit as char).to_digit(16)? as u8;
        }
    }
    Some(bytes)
}

fn wrong_value(text: &[u8], name: &str) -> Box<Error> {
    let message = format!("Incorrect string value: '{}' for function {name}", excerpt(text));
    Error::new(ErrorCode::WrongValueForFunction, message)
}
