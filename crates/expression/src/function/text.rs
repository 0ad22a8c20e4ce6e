//! Concatenation, substrings, letter case, repetition and padding.

use junctor_model::collation::CharacterSet;
use junctor_model::error::Result;
use junctor_model::value::{Value, ValueRef};

use super::{
    ANY, BuildOutcome, Call, Function, TypedCall, function, generated_text, resolve_first, resolve_integer,
    resolve_together,
};
use crate::construct::aggregate_collations;
use crate::program::Expression;
use crate::result_type::ResultType;
use crate::scratch::STRING_BYTES_MAX;

pub(super) const TABLE: &[Function] = &[
    function("CONCAT", 1, ANY, resolve_together, concat),
    function("CONCAT_WS", 2, ANY, resolve_concat_ws, concat_ws),
    function("LENGTH", 1, 1, resolve_integer::<10>, length).of_bytes(),
    function("OCTET_LENGTH", 1, 1, resolve_integer::<10>, length).of_bytes(),
    function("BIT_LENGTH", 1, 1, resolve_integer::<11>, bit_length).of_bytes(),
    function("CHAR_LENGTH", 1, 1, resolve_integer::<10>, char_length),
    function("CHARACTER_LENGTH", 1, 1, resolve_integer::<10>, char_length),
    function("UPPER", 1, 1, resolve_first, upper),
    function("UCASE", 1, 1, resolve_first, upper),
    function("LOWER", 1, 1, resolve_first, lower),
    function("LCASE", 1, 1, resolve_first, lower),
    function("SUBSTRING", 2, 3, resolve_first, substring).numbers_at(0b110),
    function("SUBSTR", 2, 3, resolve_first, substring).numbers_at(0b110),
    function("MID", 3, 3, resolve_first, substring).numbers_at(0b110),
    function("LEFT", 2, 2, resolve_first, left).numbers_at(0b10),
    function("RIGHT", 2, 2, resolve_first, right).numbers_at(0b10),
    function("REVERSE", 1, 1, resolve_first, reverse),
    function("REPEAT", 2, 2, resolve_long, repeat).numbers_at(0b10),
    function("SPACE", 1, 1, resolve_long, space).of_numbers(),
    function("LPAD", 3, 3, resolve_long, pad_left).numbers_at(0b10),
    function("RPAD", 3, 3, resolve_long, pad_right).numbers_at(0b10),
    // The value of a CHAR column under PAD_CHAR_TO_FULL_LENGTH.
    function("PAD CHAR", 2, 2, resolve_pad_char, pad_char),
];

fn resolve_concat_ws(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let separators = arguments[0].result.length.saturating_mul(arguments.len() as u32);
    let nullable = arguments[0].result.nullable;
    let mut resolved = resolve_together(name, arguments)?;
    resolved.result.length = resolved.result.length.saturating_add(separators);
    resolved.result.nullable = nullable;
    Ok(resolved)
}

/// Resolves REPEAT, SPACE, LPAD and RPAD. A constant count or length determines the result's declared length.
/// Without one, the declared length is the maximum. The result is nullable, because execution returns NULL
/// for a string longer than [`STRING_BYTES_MAX`].
fn resolve_long(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let count = match arguments[usize::from(name != "SPACE")].as_constant() {
        Some(Value::Int(count)) => Some(u32::try_from((*count).max(0)).unwrap_or(u32::MAX)),
        _ => None,
    };
    let repeated = if name == "REPEAT" { arguments[0].result.length } else { 1 };
    let length_max = (STRING_BYTES_MAX / 4) as u32;
    let mut resolved = match name {
        "REPEAT" => resolve_first(name, arguments)?,
        "SPACE" => generated_text(name, arguments, 0)?,
        _ => {
            // The length takes no part in the collation.
            let collation = aggregate_collations(&name.to_ascii_lowercase(), [&arguments[0], &arguments[2]])?;
            TypedCall { result: ResultType::string(collation.collation, collation.coercibility, 0), arguments }
        }
    };
    resolved.result.length = count.map_or(length_max, |count| count.saturating_mul(repeated).min(length_max));
    resolved.result.nullable = true;
    Ok(resolved)
}

fn concat(call: Call<'_>) -> Result<ValueRef<'_>> {
    call.build_bounded("concat", |buffer| {
        for position in 0..call.count() {
            let value = call.rounded(position)?;
            if value.is_null() {
                return Ok(BuildOutcome::Null);
            }
            call.append(position, value, buffer);
            if buffer.len() > STRING_BYTES_MAX {
                return Ok(BuildOutcome::TooLong);
            }
        }
        Ok(BuildOutcome::Text)
    })
}

fn concat_ws(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(separator) = call.text(0)? else { return Ok(ValueRef::Null) };
    call.build_bounded("concat_ws", |buffer| {
        let mut is_first = true;
        for position in 1..call.count() {
            let value = call.rounded(position)?;
            if value.is_null() {
                continue;
            }
            if !is_first {
                buffer.extend_from_slice(separator);
            }
            is_first = false;
            call.append(position, value, buffer);
            if buffer.len() > STRING_BYTES_MAX {
                return Ok(BuildOutcome::TooLong);
            }
        }
        Ok(BuildOutcome::Text)
    })
}

fn length(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.text(0)?.map_or(ValueRef::Null, |text| ValueRef::Int(text.len() as i64)))
}

fn bit_length(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.text(0)?.map_or(ValueRef::Null, |text| ValueRef::Int(text.len() as i64 * 8)))
}

fn char_length(call: Call<'_>) -> Result<ValueRef<'_>> {
    let count = |text| call.character_set(0).character_count(text) as i64;
    Ok(call.text(0)?.map_or(ValueRef::Null, |text| ValueRef::Int(count(text))))
}

fn upper(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    call.build(|buffer| call.result.collation.append_upper(text, buffer))
}

fn lower(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    call.build(|buffer| call.result.collation.append_lower(text, buffer))
}

/// Positions count characters from 1; negative ones count from the end. Position 0 yields the empty string.
fn substring(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (text, position) = (call.text(0)?, call.integer(1)?);
    let length = if call.count() > 2 { call.integer(2)? } else { Some(i64::MAX) };
    let (Some(text), Some(position), Some(length)) = (text, position, length) else { return Ok(ValueRef::Null) };
    if position == 0 || length <= 0 {
        return Ok(ValueRef::Bytes(b""));
    }
    let characters = call.result.collation.character_set();
    let skip = match usize::try_from(position) {
        Ok(position) => position - 1,
        Err(_) => {
            let back = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
            match characters.character_count(text).checked_sub(back) {
                Some(skip) => skip,
                None => return Ok(ValueRef::Bytes(b"")),
            }
        }
    };
    let rest = &text[characters.prefix(text, skip).len()..];
    Ok(ValueRef::Bytes(characters.prefix(rest, usize::try_from(length).unwrap_or(usize::MAX))))
}

fn left(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(text), Some(length)) = (call.text(0)?, call.integer(1)?) else { return Ok(ValueRef::Null) };
    let length = usize::try_from(length.max(0)).unwrap_or(usize::MAX);
    Ok(ValueRef::Bytes(call.result.collation.character_set().prefix(text, length)))
}

fn right(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(text), Some(length)) = (call.text(0)?, call.integer(1)?) else { return Ok(ValueRef::Null) };
    let length = usize::try_from(length.max(0)).unwrap_or(usize::MAX);
    let characters = call.result.collation.character_set();
    let skip = characters.character_count(text).saturating_sub(length);
    Ok(ValueRef::Bytes(&text[characters.prefix(text, skip).len()..]))
}

fn reverse(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let is_binary = call.result.collation.character_set() == CharacterSet::Binary;
    call.build(|buffer| {
        let mut end = text.len();
        while end > 0 {
            let mut start = end - 1;
            // In UTF-8 the bytes after the first one of a character are 10xxxxxx, and there are at most
            // three.
            while !is_binary && start > 0 && end - start < 4 && text[start] & 0xC0 == 0x80 {
                start -= 1;
            }
            buffer.extend_from_slice(&text[start..end]);
            end = start;
        }
    })
}

fn repeat(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(text), Some(count)) = (call.text(0)?, call.integer(1)?) else { return Ok(ValueRef::Null) };
    repeated(call, "repeat", text, count)
}

fn space(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(count) = call.integer(0)? else { return Ok(ValueRef::Null) };
    repeated(call, "space", b" ", count)
}

fn repeated<'r>(call: Call<'r>, name: &str, text: &[u8], count: i64) -> Result<ValueRef<'r>> {
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    if text.len().saturating_mul(count) > STRING_BYTES_MAX {
        return call.too_long(name);
    }
    if text.is_empty() {
        return Ok(ValueRef::Bytes(b""));
    }
    call.build(|buffer| (0..count).for_each(|_| buffer.extend_from_slice(text)))
}

fn pad_left(call: Call<'_>) -> Result<ValueRef<'_>> {
    padded(call, "lpad", |text, padding, buffer| {
        padding(buffer);
        buffer.extend_from_slice(text);
    })
}

fn pad_right(call: Call<'_>) -> Result<ValueRef<'_>> {
    padded(call, "rpad", |text, padding, buffer| {
        buffer.extend_from_slice(text);
        padding(buffer);
    })
}

/// The text truncated to a length, or padded to it by repeating the pad. `join` concatenates text and padding
/// in the right order.
fn padded<'r>(
    call: Call<'r>,
    name: &str,
    join: impl FnOnce(&[u8], &dyn Fn(&mut Vec<u8>), &mut Vec<u8>),
) -> Result<ValueRef<'r>> {
    let (Some(text), Some(length), Some(pad)) = (call.text(0)?, call.integer(1)?, call.text(2)?) else {
        return Ok(ValueRef::Null);
    };
    let Ok(length) = usize::try_from(length) else { return Ok(ValueRef::Null) };
    let characters = call.result.collation.character_set();
    let count = characters.character_count(text);
    if length <= count {
        return Ok(ValueRef::Bytes(characters.prefix(text, length)));
    }
    let pad_count = characters.character_count(pad);
    if pad_count == 0 {
        return Ok(ValueRef::Null);
    }
    let missing = length - count;
    if missing.saturating_mul(characters.max_bytes_per_character()) > STRING_BYTES_MAX {
        return call.too_long(name);
    }
    let padding = |buffer: &mut Vec<u8>| {
        (0..missing / pad_count).for_each(|_| buffer.extend_from_slice(pad));
        buffer.extend_from_slice(characters.prefix(pad, missing % pad_count));
    };
    call.build(|buffer| join(text, &padding, buffer))
}

/// The length of the result is that of the CHAR column, the second argument.
fn resolve_pad_char(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = resolve_first(name, arguments)?;
    resolved.result.coercibility = crate::result_type::Coercibility::Implicit;
    Ok(resolved)
}

/// Characters of the longest CHAR.
const PADDING_MAX: usize = 255;

fn pad_char(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(text), Some(length)) = (call.text(0)?, call.integer(1)?) else { return Ok(ValueRef::Null) };
    let count = call.result.collation.character_set().character_count(text);
    let missing = usize::try_from(length).unwrap_or(0).saturating_sub(count).min(PADDING_MAX);
    call.build(|buffer| {
        buffer.extend_from_slice(text);
        buffer.resize(buffer.len() + missing, b' ');
    })
}
