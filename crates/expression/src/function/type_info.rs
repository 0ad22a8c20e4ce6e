//! Functions of the type of their argument, and forms of sizes and durations.

use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, function, generated_text};
use crate::construct::{DECODE, ENCODE};
use crate::program::Expression;
use crate::result_type::{Coercibility, Kind, ResultType};
use junctor_model::collation::CollationId;

pub(super) const TABLE: &[Function] = &[
    function("CHARSET", 1, 1, resolve_name, |call| {
        Ok(ValueRef::Bytes(call.arguments[0].result.collation.character_set().name().as_bytes()))
    }),
    function("COLLATION", 1, 1, resolve_name, |call| {
        Ok(ValueRef::Bytes(call.arguments[0].result.collation.name().as_bytes()))
    }),
    function("COERCIBILITY", 1, 1, resolve_coercibility, coercibility).of_collation(),
    function("WEIGHT_STRING", 1, 1, resolve_weights, weight_string).of_collation(),
    function("FORMAT_BYTES", 1, 1, |name, arguments| generated_text(name, arguments, 11), format_bytes),
    function("FORMAT_PICO_TIME", 1, 1, |name, arguments| generated_text(name, arguments, 11), format_pico_time),
    function(
        ENCODE,
        1,
        1,
        |_, arguments| Ok(recoded(arguments)),
        |call| {
            let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
            call.build(|buffer| {
                call.character_set(0).encode(text, buffer);
            })
        },
    )
    .of_collation(),
    function(
        DECODE,
        1,
        1,
        |_, arguments| Ok(recoded(arguments)),
        |call| {
            let Some(bytes) = call.text(0)? else { return Ok(ValueRef::Null) };
            call.build(|buffer| call.result.collation.character_set().decode_comparable(bytes, buffer))
        },
    )
    .of_collation(),
    function("LOAD_FILE", 1, 1, resolve_file, |_| Ok(ValueRef::Null)),
];

fn resolve_name(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, 64)?;
    resolved.result.nullable = false;
    // MySQL's character set of names.
    resolved.result.collation = CollationId::UTF8MB3_GENERAL_CI;
    resolved.result.coercibility = Coercibility::Coercible;
    Ok(resolved)
}

/// The type of the hidden functions between text and bytes, as a program that names them has it. Elsewhere
/// these nodes are made with their type.
fn recoded(arguments: Vec<Expression>) -> TypedCall {
    let length = arguments[0].result.bytes_max();
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, length).with_nullable(true);
    TypedCall { arguments, result }
}

fn resolve_coercibility(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 10) })
}

fn coercibility(call: Call<'_>) -> Result<ValueRef<'_>> {
    let number = match call.arguments[0].result.coercibility {
        Coercibility::Explicit => 0,
        Coercibility::NoCollation => 1,
        Coercibility::Implicit => 2,
        Coercibility::SystemConstant => 3,
        Coercibility::Coercible => 4,
        // Text that a function generates gives way to any other text, but counts as a literal.
        Coercibility::Numeric if call.arguments[0].result.kind == Kind::String => 4,
        Coercibility::Numeric => 5,
        Coercibility::Ignorable => 6,
    };
    Ok(ValueRef::Int(number))
}

fn resolve_weights(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let operand = &arguments[0].result;
    let length = operand.collation.weight_key_bytes_max(operand.length as usize);
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, length).with_nullable(true);
    Ok(TypedCall { arguments, result })
}

/// The bytes by which the text is compared; NULL for a number.
fn weight_string(call: Call<'_>) -> Result<ValueRef<'_>> {
    let operand = &call.arguments[0].result;
    if operand.kind != Kind::String {
        return Ok(ValueRef::Null);
    }
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    call.build(|buffer| operand.collation.append_weight_key(text, buffer))
}

fn format_bytes(call: Call<'_>) -> Result<ValueRef<'_>> {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(count) = call.double(0)? else { return Ok(ValueRef::Null) };
    let power = (0..UNITS.len()).rev().find(|power| count.abs() >= 1024f64.powi(*power as i32)).unwrap_or(0);
    let scaled = count / 1024f64.powi(power as i32);
    let text = match power {
        0 => format!("{:4} {}", scaled as i64, UNITS[0]),
        _ => with_unit(scaled, UNITS[power]),
    };
    call.build(|buffer| buffer.extend_from_slice(text.as_bytes()))
}

fn format_pico_time(call: Call<'_>) -> Result<ValueRef<'_>> {
    /// Units from the largest, with their picoseconds.
    const UNITS: [(&str, f64); 7] =
        [("d", 86_400e12), ("h", 3_600e12), ("min", 60e12), ("s", 1e12), ("ms", 1e9), ("us", 1e6), ("ns", 1e3)];
    let Some(time) = call.double(0)? else { return Ok(ValueRef::Null) };
    let text = match UNITS.iter().find(|(_, size)| time.abs() >= *size) {
        Some((unit, size)) => with_unit(time / size, unit),
        None => format!("{:3} ps", time as i64),
    };
    call.build(|buffer| buffer.extend_from_slice(text.as_bytes()))
}

fn with_unit(value: f64, unit: &str) -> String {
    if value.abs() < 100_000.0 {
        return format!("{value:.2} {unit}");
    }
    let text = format!("{value:.2e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{mantissa}e+{exponent:0>2} {unit}")
}

/// Files of the server are not readable, as with `secure_file_priv` NULL.
fn resolve_file(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, 16 << 20).with_nullable(true);
    Ok(TypedCall { arguments, result })
}
