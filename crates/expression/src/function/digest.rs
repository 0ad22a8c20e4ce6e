//! HEX, UNHEX and CRC32.

use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::temporal::{Temporal, TemporalKind};
use junctor_model::value::ValueRef;

use super::function;
use super::{Call, Function, GENERATED_TEXT_COLLATION, TypedCall, any_nullable};
use crate::evaluate::{to_double, to_integer};
use crate::program::Expression;
use crate::result_type::{Coercibility, Kind, ResultType};
use crate::scratch::STRING_BYTES_MAX;

pub(super) const TABLE: &[Function] = &[
    function("HEX", 1, 1, resolve_hex, hex).of_bytes(),
    function("UNHEX", 1, 1, resolve_unhex, unhex),
    function("CRC32", 1, 1, resolve_crc32, crc32).of_bytes(),
];

/// CRC-32 (IEEE 802.3, reflected polynomial) of every byte value.
static CRC32_TABLE: [u32; 256] = crc32_table();

fn resolve_hex(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let operand = arguments[0].result;
    let bytes = match operand.kind {
        Kind::String | Kind::Geometry => {
            operand.length.saturating_mul(operand.collation.max_bytes_per_character() as u32)
        }
        _ => 8,
    };
    let result = ResultType::string(GENERATED_TEXT_COLLATION, Coercibility::Numeric, bytes.saturating_mul(2));
    Ok(TypedCall { result: result.with_nullable(true), arguments })
}

fn resolve_unhex(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let length = arguments[0].result.length.div_ceil(2);
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, length);
    Ok(TypedCall { result: result.with_nullable(true), arguments })
}

fn resolve_crc32(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::integer(true, 10).with_nullable(any_nullable(&arguments));
    Ok(TypedCall { arguments, result })
}

/// The hexadecimal digits of a string's bytes, or of a number converted to a 64-bit integer.
fn hex(call: Call<'_>) -> Result<ValueRef<'_>> {
    match call.value(0)? {
        ValueRef::Null => Ok(ValueRef::Null),
        // Days, times, members and documents count as text, like strings.
        ValueRef::Temporal(Temporal { kind: TemporalKind::Date | TemporalKind::Time, .. })
        | ValueRef::Temporal(Temporal { kind: TemporalKind::DateTime | TemporalKind::Timestamp, .. })
        | ValueRef::Choice(_)
        | ValueRef::Json(_) => append_digits(call, call.text(0)?.unwrap_or_default()),
        ValueRef::Bytes(text) if text.len() > STRING_BYTES_MAX / 2 => call.too_long("hex"),
        ValueRef::Bytes(text) => append_digits(call, text),
        number => {
            let integer = match number {
                // HEX rounds halves away from zero, unlike other conversions of doubles.
                // A decimal is a double first.
                ValueRef::Double(_) | ValueRef::Float(_) | ValueRef::Decimal(_) => {
                    to_double(number, call.scratch())?.round() as i128
                }
                number => to_integer(number, call.scratch())?,
            };
            let bits = match integer < 0 {
                // As in MySQL, a number that is too low has the digits of one that is too high.
                true => i64::try_from(integer).map_or(u64::MAX, |integer| integer as u64),
                false => integer.min(u64::MAX.into()) as u64,
            };
            let digits = bits.checked_ilog2().unwrap_or(0) / 4 + 1;
            call.build(|buffer| {
                buffer.extend((0..digits).rev().map(|position| digit((bits >> (position * 4)) as u8 & 15)));
            })
        }
    }
}

fn append_digits<'r>(call: Call<'r>, text: &[u8]) -> Result<ValueRef<'r>> {
    call.build(|buffer| {
        for byte in text {
            buffer.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
    })
}

fn unhex(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let built = call.scratch().build(|buffer| {
        // With an odd number of digits, the first digit alone is a byte.
        let (odd, pairs) = text.split_at(text.len() % 2);
        for pair in std::iter::once(odd).filter(|odd| !odd.is_empty()).chain(pairs.chunks(2)) {
            let mut byte = 0;
            for character in pair {
                let Some(value) = (*character as char).to_digit(16) else { return Ok(false) };
                byte = byte << 4 | value as u8;
            }
            buffer.push(byte);
        }
        Ok(true)
    })?;
    Ok(built.map_or(ValueRef::Null, ValueRef::Bytes))
}

fn crc32(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let step = |state: u32, byte: &u8| CRC32_TABLE[usize::from(state as u8 ^ byte)] ^ (state >> 8);
    Ok(ValueRef::UInt(u64::from(!text.iter().fold(u32::MAX, step))))
}

fn digit(value: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(value & 15)]
}

const fn crc32_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 1 == 1 { 0xEDB8_8320 ^ (remainder >> 1) } else { remainder >> 1 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}
