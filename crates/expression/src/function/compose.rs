//! Functions that compose text: INSERT, ELT, MAKE_SET, EXPORT_SET, QUOTE, SOUNDEX, CHAR, SUBSTRING_INDEX, and
//! base 64.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::{ANY, BuildOutcome, Call, Function, TypedCall, any_nullable, function, resolve_first};
use crate::construct::aggregate_collations;
use crate::evaluate::to_integer;
use crate::program::Expression;
use crate::result_type::{Coercibility, ResultType};
use crate::scratch::STRING_BYTES_MAX;

pub(super) const TABLE: &[Function] = &[
    function("INSERT", 4, 4, resolve_insert, insert).numbers_at(0b110),
    function("ELT", 2, ANY, resolve_elt, elt).numbers_at(0b1),
    function("MAKE_SET", 2, ANY, resolve_make_set, make_set).numbers_at(0b1),
    function("EXPORT_SET", 3, 5, resolve_export_set, export_set).numbers_at(0b10001),
    function("QUOTE", 1, 1, resolve_quote, quote),
    function("SOUNDEX", 1, 1, resolve_soundex, soundex),
    function("CHAR", 1, ANY, resolve_char, char_of_codes).of_numbers(),
    function("SUBSTRING_INDEX", 3, 3, resolve_substring_index, substring_index).numbers_at(0b100),
    function("TO_BASE64", 1, 1, resolve_to_base64, to_base64).of_bytes(),
    function("FROM_BASE64", 1, 1, resolve_from_base64, from_base64),
];

/// Number of characters in a line of TO_BASE64.
const BASE64_LINE: usize = 76;
const BASE64_DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Maximum number of bits of EXPORT_SET and MAKE_SET.
const BITS: usize = 64;

/// Text and delimiter have a common collation.
fn resolve_substring_index(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let collation = aggregate_collations("substring_index", &arguments[..2])?;
    let result = ResultType::string(collation.collation, collation.coercibility, arguments[0].result.length);
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

fn resolve_insert(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let collation = aggregate_collations(&name.to_ascii_lowercase(), [&arguments[0], &arguments[3]])?;
    let length = arguments[0].result.length.saturating_add(arguments[3].result.length);
    let result = ResultType::string(collation.collation, collation.coercibility, length);
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

/// A position outside the text leaves it unchanged; a length beyond its end replaces all of the rest.
fn insert(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(text), Some(position), Some(length), Some(new)) =
        (call.text(0)?, call.integer(1)?, call.integer(2)?, call.text(3)?)
    else {
        return Ok(ValueRef::Null);
    };
    let characters = call.result.collation.character_set();
    let count = characters.character_count(text);
    let Some(skip) = usize::try_from(position).ok().filter(|position| (1..=count).contains(position)) else {
        return Ok(ValueRef::Bytes(text));
    };
    let before = characters.prefix(text, skip - 1);
    let rest = &text[before.len()..];
    let replaced = characters.prefix(rest, usize::try_from(length).unwrap_or(usize::MAX));
    let after = &rest[replaced.len()..];
    if before.len() + new.len() + after.len() > STRING_BYTES_MAX {
        return call.too_long("insert");
    }
    call.build(|buffer| [before, new, after].iter().for_each(|part| buffer.extend_from_slice(part)))
}

fn resolve_elt(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let collation = aggregate_collations(&name.to_ascii_lowercase(), &arguments[1..])?;
    let length = arguments[1..].iter().map(|argument| argument.result.length).max().unwrap_or(0);
    let result = ResultType::string(collation.collation, collation.coercibility, length);
    Ok(TypedCall { result: result.with_nullable(true), arguments })
}

fn elt(call: Call<'_>) -> Result<ValueRef<'_>> {
    let chosen = call.integer(0)?.and_then(|number| usize::try_from(number).ok());
    match chosen.filter(|number| (1..call.count()).contains(number)) {
        Some(number) => Ok(call.text(number)?.map_or(ValueRef::Null, ValueRef::Bytes)),
        None => Ok(ValueRef::Null),
    }
}

fn resolve_make_set(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let collation = aggregate_collations(&name.to_ascii_lowercase(), &arguments[1..])?;
    let separators = arguments.len() as u32 - 2;
    let length = arguments[1..].iter().fold(separators, |sum, argument| sum.saturating_add(argument.result.length));
    let nullable = arguments[0].result.nullable;
    let result = ResultType::string(collation.collation, collation.coercibility, length);
    Ok(TypedCall { result: result.with_nullable(nullable), arguments })
}

fn make_set(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(bits) = call.bits(0)? else { return Ok(ValueRef::Null) };
    call.build_bounded("make_set", |buffer| {
        let mut is_first = true;
        for position in 1..call.count().min(BITS + 1) {
            if bits >> (position - 1) & 1 == 0 {
                continue;
            }
            let value = call.rounded(position)?;
            if value.is_null() {
                continue;
            }
            if !is_first {
                buffer.push(b',');
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

fn resolve_export_set(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let texts = &arguments[1..arguments.len().min(4)];
    let collation = aggregate_collations(&name.to_ascii_lowercase(), texts)?;
    let length = |position: usize| arguments.get(position).map_or(1, |argument| argument.result.length);
    let length = length(1).max(length(2)).saturating_mul(64).saturating_add(length(3).saturating_mul(63));
    let result = ResultType::string(collation.collation, collation.coercibility, length);
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

/// Bits from the lowest on, each as one of two texts.
fn export_set(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(bits), Some(on), Some(off)) = (call.bits(0)?, call.text(1)?, call.text(2)?) else {
        return Ok(ValueRef::Null);
    };
    let separator = if call.count() > 3 { call.text(3)? } else { Some(b",".as_slice()) };
    let count = if call.count() > 4 { call.integer(4)? } else { Some(BITS as i64) };
    let (Some(separator), Some(count)) = (separator, count) else { return Ok(ValueRef::Null) };
    // MySQL takes the lower 32 bits of the number as unsigned, so that -1 is more than the maximum.
    let count = (count as u32 as usize).min(BITS);
    if (on.len().max(off.len()) + separator.len()).saturating_mul(count) > STRING_BYTES_MAX {
        return call.too_long("export_set");
    }
    call.build(|buffer| {
        for bit in 0..count {
            if bit > 0 {
                buffer.extend_from_slice(separator);
            }
            buffer.extend_from_slice(if bits >> bit & 1 == 1 { on } else { off });
        }
    })
}

fn resolve_quote(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let collation = aggregate_collations("", &arguments)?;
    let length = arguments[0].result.length.saturating_mul(2).saturating_add(2).max(4);
    let result = ResultType::string(collation.collation, collation.coercibility, length);
    Ok(TypedCall { arguments, result })
}

/// The text as a literal of SQL; `NULL` without quotes for NULL.
fn quote(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Bytes(b"NULL")) };
    if text.len() > STRING_BYTES_MAX / 2 {
        return call.too_long("quote");
    }
    call.build(|buffer| {
        buffer.push(b'\'');
        for byte in text {
            match byte {
                b'\\' | b'\'' => buffer.extend_from_slice(&[b'\\', *byte]),
                0 => buffer.extend_from_slice(b"\\0"),
                0x1A => buffer.extend_from_slice(b"\\Z"),
                _ => buffer.push(*byte),
            }
        }
        buffer.push(b'\'');
    })
}

fn resolve_soundex(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = resolve_first(name, arguments)?;
    resolved.result.length = resolved.result.length.max(4);
    Ok(resolved)
}

/// MySQL's form: of any length, at least four characters. Letters beyond ASCII count as vowels.
fn soundex(call: Call<'_>) -> Result<ValueRef<'_>> {
    const CODES: &[u8; 26] = b"01230120022455012623010202";
    let code = |letter: char| match letter.to_ascii_uppercase() {
        upper @ 'A'..='Z' => CODES[upper as usize - 'A' as usize],
        _ => b'0',
    };
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let characters = call.character_set(0);
    // Each byte of a binary string is a character, of which only those of ASCII can be letters.
    let text: String = match characters {
        CharacterSet::Binary => text.iter().filter(|byte| byte.is_ascii()).map(|byte| char::from(*byte)).collect(),
        _ => String::from_utf8_lossy(text).into_owned(),
    };
    let mut letters = text.chars().filter(|letter| letter.is_ascii_alphabetic() || is_wide_letter(*letter, characters));
    let Some(first) = letters.next() else { return Ok(ValueRef::Bytes(b"")) };
    call.build(|buffer| {
        let upper = if first.is_ascii() { first.to_ascii_uppercase() } else { first };
        buffer.extend_from_slice(upper.encode_utf8(&mut [0; 4]).as_bytes());
        let mut last = code(first);
        let mut count = 1;
        for letter in letters {
            let code = code(letter);
            if code != b'0' && code != last {
                buffer.push(code);
                last = code;
                count += 1;
            }
        }
        (count..4).for_each(|_| buffer.push(b'0'));
    })
}

/// Whether a character beyond ASCII counts as a letter: those of latin1 by its table, others from U+00C0 on.
fn is_wide_letter(letter: char, characters: CharacterSet) -> bool {
    match characters {
        CharacterSet::Latin1 => match letter {
            '\u{C0}'..='\u{FF}' => !matches!(letter, '×' | '÷'),
            _ => matches!(letter, 'ƒ' | 'Š' | 'Œ' | 'Ž' | 'š' | 'œ' | 'ž' | 'Ÿ'),
        },
        _ => letter >= '\u{C0}',
    }
}

fn resolve_char(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let length = (arguments.len() as u32).saturating_mul(4);
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, length);
    Ok(TypedCall { arguments, result })
}

/// The bytes of each number from the most significant that is not zero. NULL is skipped.
fn char_of_codes(call: Call<'_>) -> Result<ValueRef<'_>> {
    let built = call.scratch().build(|buffer| {
        for position in 0..call.count() {
            let value = call.value(position)?;
            if value.is_null() {
                continue;
            }
            // Only an integer or a text can be above the largest signed integer.
            let most = match value.as_number() {
                ValueRef::Double(_) | ValueRef::Decimal(_) => i64::MAX.into(),
                _ => u64::MAX.into(),
            };
            let code = to_integer(value, call.scratch())?.clamp(i64::MIN.into(), most);
            let bytes = (code as u32).to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(3);
            buffer.extend_from_slice(&bytes[zeros..]);
        }
        Ok(true)
    })?;
    Ok(built.map_or(ValueRef::Null, ValueRef::Bytes))
}

/// The text before the n-th delimiter, or after the n-th from the end if n is negative. Delimiters are
/// compared byte by byte.
fn substring_index(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(text), Some(delimiter), Some(count)) = (call.text(0)?, call.text(1)?, call.integer(2)?) else {
        return Ok(ValueRef::Null);
    };
    if text.is_empty() || delimiter.is_empty() || count == 0 {
        return Ok(ValueRef::Bytes(b""));
    }
    if count < 0 && call.result.collation.character_set() == CharacterSet::Binary {
        return Ok(ValueRef::Bytes(after_from_end(text, delimiter, count.unsigned_abs())));
    }
    // Delimiters do not overlap, and are found from the left, also if they are counted from the end.
    let starts = || {
        let mut at = 0;
        std::iter::from_fn(move || {
            while at + delimiter.len() <= text.len() {
                let start = at;
                if text[start..].starts_with(delimiter) {
                    at += delimiter.len();
                    return Some(start);
                }
                at += 1;
            }
            None
        })
    };
    let wanted = match count > 0 {
        true => usize::try_from(count - 1).ok(),
        false => usize::try_from(count.unsigned_abs()).ok().and_then(|count| starts().count().checked_sub(count)),
    };
    Ok(ValueRef::Bytes(match wanted.and_then(|wanted| starts().nth(wanted)) {
        Some(start) if count > 0 => &text[..start],
        Some(start) => &text[start + delimiter.len()..],
        None => text,
    }))
}

/// The bytes after the n-th delimiter from the end, found from the right.
fn after_from_end<'r>(text: &'r [u8], delimiter: &[u8], mut wanted: u64) -> &'r [u8] {
    let mut end = text.len();
    while end >= delimiter.len() {
        if !text[..end].ends_with(delimiter) {
            end -= 1;
            continue;
        }
        wanted -= 1;
        if wanted == 0 {
            return &text[end..];
        }
        end -= delimiter.len();
    }
    text
}

fn resolve_to_base64(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let bytes = arguments[0].result.bytes_max();
    let digits = bytes.div_ceil(3).saturating_mul(4);
    let length = digits.saturating_add(digits / BASE64_LINE as u32);
    super::generated_text(name, arguments, length)
}

fn to_base64(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(bytes) = call.text(0)? else { return Ok(ValueRef::Null) };
    if bytes.len() > STRING_BYTES_MAX / 3 * 2 {
        return call.too_long("to_base64");
    }
    call.build(|buffer| {
        let mut column = 0;
        for group in bytes.chunks(3) {
            if column == BASE64_LINE {
                buffer.push(b'\n');
                column = 0;
            }
            let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
            let word = byte(0) << 16 | byte(1) << 8 | byte(2);
            for digit in 0..4 {
                let value = BASE64_DIGITS[(word >> (18 - 6 * digit)) as usize & 63];
                buffer.push(if digit <= group.len() { value } else { b'=' });
            }
            column += 4;
        }
    })
}

fn resolve_from_base64(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let length = arguments[0].result.length.div_ceil(4).saturating_mul(3);
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, length);
    Ok(TypedCall { result: result.with_nullable(true), arguments })
}

/// NULL for text that is not base 64. White space is ignored.
fn from_base64(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let built = call.scratch().build(|buffer| {
        let mut group = (0u32, 0);
        let mut padding = 0;
        for byte in text.iter().filter(|byte| !matches!(byte, b'\t'..=b'\r' | b' ')) {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' if group.1 >= 2 && padding < 2 => {
                    padding += 1;
                    0
                }
                _ => return Ok(false),
            };
            if padding > 0 && *byte != b'=' || padding == 0 && group.1 == 4 {
                return Ok(false);
            }
            group = (group.0 << 6 | u32::from(value), group.1 + 1);
            if group.1 == 4 {
                buffer.extend_from_slice(&group.0.to_be_bytes()[1..4 - padding]);
                if padding > 0 {
                    // Nothing may follow the padding; a further byte finds a group that is too short.
                    group = (0, 0);
                    continue;
                }
                group = (0, 0);
            }
        }
        Ok(group.1 == 0)
    })?;
    Ok(built.map_or(ValueRef::Null, ValueRef::Bytes))
}
