//! Functions of vectors: lists of little-endian numbers of 32 bits, as the type VECTOR stores them.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::scratch::excerpt;
use junctor_model::types::{VECTOR_ENTRIES_MAX, VECTOR_ENTRY_BYTES};
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, any_nullable, function, generated_text};
use crate::program::Expression;
use crate::result_type::{Coercibility, Kind, ResultType};

pub(super) const TABLE: &[Function] = &[
    function("STRING_TO_VECTOR", 1, 1, resolve_from_text, string_to_vector),
    function("TO_VECTOR", 1, 1, resolve_from_text, string_to_vector),
    function("VECTOR_TO_STRING", 1, 1, resolve_to_text, vector_to_string),
    function("FROM_VECTOR", 1, 1, resolve_to_text, vector_to_string),
    function("VECTOR_DIM", 1, 1, resolve_dimensions, vector_dim),
    function("DISTANCE", 3, 3, resolve_distance, distance),
    function("VECTOR_DISTANCE", 3, 3, resolve_distance, distance),
];

/// Characters of an entry in the text of a vector, and the comma after it.
const ENTRY_CHARACTERS: u32 = 16;

fn resolve_from_text(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let is_number = arguments[0].result.is_number() || arguments[0].result.kind == Kind::Json;
    if is_number {
        return Err(wrong_arguments("to_vector"));
    }
    let length = VECTOR_ENTRIES_MAX * VECTOR_ENTRY_BYTES;
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, length).with_nullable(true);
    Ok(TypedCall { arguments, result })
}

fn resolve_to_text(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    check_vector(&arguments[0], "from_vector")?;
    let mut resolved = generated_text(name, arguments, VECTOR_ENTRIES_MAX * ENTRY_CHARACTERS)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn resolve_dimensions(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    check_vector(&arguments[0], "vector_dim")?;
    let result = ResultType::integer(false, 10).with_nullable(any_nullable(&arguments));
    Ok(TypedCall { arguments, result })
}

fn resolve_distance(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    arguments[..2].iter().try_for_each(|argument| check_vector(argument, "distance"))?;
    Ok(TypedCall { arguments, result: ResultType::double().with_nullable(true) })
}

/// Error 1210 for an argument other than NULL and binary strings.
fn check_vector(argument: &Expression, name: &str) -> Result<()> {
    match argument.result.kind {
        Kind::Null => Ok(()),
        Kind::String if argument.result.collation.is_binary() => Ok(()),
        _ => Err(wrong_arguments(name)),
    }
}

#[cold]
fn wrong_arguments(name: &str) -> Box<Error> {
    Error::new(ErrorCode::WrongArguments, format!("Incorrect arguments to {name}"))
}

#[cold]
fn no_vector(text: &[u8]) -> Box<Error> {
    // MySQL quotes up to the first zero byte.
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let message = format!("Data cannot be converted to a valid vector: '{}'", excerpt(&text[..end]));
    Error::new(ErrorCode::NoVector, message)
}

#[cold]
fn too_many(text: &str, name: &str) -> Box<Error> {
    Error::new(ErrorCode::NumericOutOfRange, format!("{text} value is out of range in '{name}'"))
}

/// The entries of an argument; `None` for NULL. Error for bytes that are no vector.
fn entries<'r>(call: &Call<'r>, position: usize) -> Result<Option<&'r [[u8; 4]]>> {
    let Some(bytes) = call.text(position)? else { return Ok(None) };
    let (entries, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || entries.is_empty() {
        return Err(no_vector(bytes));
    }
    Ok(Some(entries))
}

fn string_to_vector(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let inner = std::str::from_utf8(text).ok().and_then(|text| {
        let list = text.trim_matches(is_blank);
        list.strip_prefix('[')?.strip_suffix(']')
    });
    let Some(inner) = inner else { return Err(no_vector(text)) };
    let mut outcome = Ok(());
    let built = call.build(|buffer| {
        for (position, entry) in inner.split(',').enumerate() {
            if position >= VECTOR_ENTRIES_MAX as usize {
                outcome = Err(too_many(&format!("{}... ", &inner_head(text)), "to_vector"));
                return;
            }
            match parsed(entry.trim_matches(is_blank)) {
                Some(number) => buffer.extend_from_slice(&number.to_le_bytes()),
                None => {
                    outcome = Err(no_vector(text));
                    return;
                }
            }
        }
    });
    outcome?;
    built
}

/// The first bytes of a text, for an error.
fn inner_head(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(32)]).into_owned()
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

/// A decimal number that is finite as a number of 32 bits, and not smaller than the smallest normal one.
fn parsed(text: &str) -> Option<f32> {
    // The parser of the language knows words for infinity and NaN, which no vector has.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    let number: f32 = text.parse().ok().filter(|_| is_number)?;
    let is_zero = number == 0.0 && text.parse().is_ok_and(|exact: f64| exact == 0.0);
    (number.is_normal() || is_zero).then_some(number)
}

fn vector_to_string(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(entries) = entries(&call, 0)? else { return Ok(ValueRef::Null) };
    if entries.len() > VECTOR_ENTRIES_MAX as usize {
        let text = String::from_utf8_lossy(entries[0].split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
        return Err(too_many(&text, "from_vector"));
    }
    call.build(|buffer| {
        buffer.push(b'[');
        for (position, entry) in entries.iter().enumerate() {
            if position > 0 {
                buffer.push(b',');
            }
            append_entry(f32::from_le_bytes(*entry), buffer);
        }
        buffer.push(b']');
    })
}

/// Six digits and an exponent of at least two, as C prints `%.5e`.
fn append_entry(number: f32, buffer: &mut Vec<u8>) {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if !number.is_finite() {
        let word = if number.is_nan() { "nan" } else { "inf" };
        return buffer.extend_from_slice(format!("{sign}{word}").as_bytes());
    }
    let text = format!("{number:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (exponent_sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    buffer.extend_from_slice(format!("{mantissa}e{exponent_sign}{digits:0>2}").as_bytes());
}

fn vector_dim(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(entries(&call, 0)?.map_or(ValueRef::Null, |entries| ValueRef::Int(entries.len() as i64)))
}

/// The distance of two vectors of equal length by the named measure: COSINE, DOT or EUCLIDEAN. NULL for the
/// angle to a vector of zeros, and for a number that is not finite.
fn distance(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(left), Some(right)) = (entries(&call, 0)?, entries(&call, 1)?) else { return Ok(ValueRef::Null) };
    let Some(measure) = call.text(2)? else { return Ok(ValueRef::Null) };
    if left.len() != right.len() {
        return Err(wrong_arguments("distance"));
    }
    let number = |entry: &[u8; 4]| f64::from(f32::from_le_bytes(*entry));
    let pairs = || left.iter().map(number).zip(right.iter().map(number));
    let dot = || pairs().map(|(left, right)| left * right).sum::<f64>();
    let distance = if measure.eq_ignore_ascii_case(b"DOT") {
        dot()
    } else if measure.eq_ignore_ascii_case(b"EUCLIDEAN") {
        pairs().map(|(left, right)| (left - right) * (left - right)).sum::<f64>().sqrt()
    } else if measure.eq_ignore_ascii_case(b"COSINE") {
        let squares: (f64, f64) =
            pairs().fold((0.0, 0.0), |(one, other), (left, right)| (one + left * left, other + right * right));
        1.0 - dot() / (squares.0.sqrt() * squares.1.sqrt())
    } else {
        return Err(wrong_arguments("distance"));
    };
    Ok(if distance.is_finite() { ValueRef::Double(distance) } else { ValueRef::Null })
}
