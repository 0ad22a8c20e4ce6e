//! Numbers in other bases, and bits: BIN, OCT, CONV, BIT_COUNT, and the bit operators of binary strings.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, any_nullable, function, generated_text, resolve_integer};
use crate::program::Expression;
use crate::result_type::{Coercibility, Kind, ResultType};

/// The names with a space are those of operators, which no statement can call by name.
pub(super) const TABLE: &[Function] = &[
    function("BIN", 1, 1, resolve_digits, |call| from_decimal(call, 2)),
    function("OCT", 1, 1, resolve_digits, |call| from_decimal(call, 8)),
    function("CONV", 3, 3, resolve_digits, conv).numbers_at(0b110),
    function("BIT_COUNT", 1, 1, resolve_integer::<2>, bit_count).of_numbers().of_bytes(),
    function("BYTES &", 2, 2, resolve_bytes, |call| of_bytes(call, |left, right| left & right)).of_bytes(),
    function("BYTES |", 2, 2, resolve_bytes, |call| of_bytes(call, |left, right| left | right)).of_bytes(),
    function("BYTES ^", 2, 2, resolve_bytes, |call| of_bytes(call, |left, right| left ^ right)).of_bytes(),
    function("BYTES <<", 2, 2, resolve_bytes, |call| shifted(call, true)).of_bytes(),
    function("BYTES >>", 2, 2, resolve_bytes, |call| shifted(call, false)).of_bytes(),
    function("BYTES ~", 1, 1, resolve_bytes, inverted).of_bytes(),
    function("TEXT BITS", 1, 1, resolve_integer::<21>, text_bits),
];

/// Maximum number of digits: 64 bits in base 2, and a sign.
const DIGITS_MAX: u32 = 65;
const BASES: std::ops::RangeInclusive<u64> = 2..=36;

fn resolve_digits(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, DIGITS_MAX)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

/// The operand of a conversion.
enum Operand<'r> {
    Bits(u64),
    Text(&'r [u8]),
}

impl<'r> Operand<'r> {
    fn of(call: &Call<'r>) -> Result<Option<Operand<'r>>> {
        Ok(match call.arguments[0].result.kind {
            Kind::Bit => call.bits(0)?.map(Operand::Bits),
            _ => call.text(0)?.map(Operand::Text),
        })
    }
}

fn conv(call: Call<'_>) -> Result<ValueRef<'_>> {
    // The number is computed first, with its warnings, also for a base that is none.
    let operand = Operand::of(&call)?;
    match (call.integer(1)?, call.integer(2)?) {
        (Some(from), Some(to)) => converted(call, operand, from, to),
        _ => Ok(ValueRef::Null),
    }
}

/// The digits of a number in base `from`, in base `to`. A negative base means that the number is signed.
/// Digits end at the first character that is none. A number beyond 64 bits becomes the largest.
fn converted<'r>(call: Call<'r>, operand: Option<Operand<'r>>, from: i64, to: i64) -> Result<ValueRef<'r>> {
    if !BASES.contains(&from.unsigned_abs()) || !BASES.contains(&to.unsigned_abs()) {
        return Ok(ValueRef::Null);
    }
    let bits = match operand {
        Some(Operand::Bits(bits)) => bits,
        None | Some(Operand::Text(b"")) => return Ok(ValueRef::Null),
        Some(Operand::Text(text)) => parsed(text, from),
    };
    call.build(|buffer| {
        let is_negative = to < 0 && (bits as i64) < 0;
        let mut rest = if is_negative { bits.wrapping_neg() } else { bits };
        let start = buffer.len();
        loop {
            let digit = (rest % to.unsigned_abs()) as u8;
            buffer.push(if digit < 10 { b'0' + digit } else { b'A' + digit - 10 });
            rest /= to.unsigned_abs();
            if rest == 0 {
                break;
            }
        }
        if is_negative {
            buffer.push(b'-');
        }
        buffer[start..].reverse();
    })
}

fn from_decimal(call: Call<'_>, to: i64) -> Result<ValueRef<'_>> {
    let operand = Operand::of(&call)?;
    converted(call, operand, 10, to)
}

fn parsed(text: &[u8], base: i64) -> u64 {
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let radix = base.unsigned_abs();
    let mut number = 0u128;
    for byte in digits {
        let Some(digit) = (*byte as char).to_digit(radix as u32) else { break };
        number = (number * u128::from(radix) + u128::from(digit)).min(1 << 64);
    }
    if base < 0 {
        let limit = if is_negative { 1u128 << 63 } else { (1 << 63) - 1 };
        let magnitude = number.min(limit) as u64;
        return if is_negative { magnitude.wrapping_neg() } else { magnitude };
    }
    match u64::try_from(number) {
        Ok(number) if is_negative => number.wrapping_neg(),
        Ok(number) => number,
        Err(_) => u64::MAX,
    }
}

fn bit_count(call: Call<'_>) -> Result<ValueRef<'_>> {
    if super::is_bytes(&call.arguments[0]) {
        let bytes = call.text(0)?;
        let count = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(byte.count_ones())).sum();
        return Ok(bytes.map_or(ValueRef::Null, |bytes| ValueRef::Int(count(bytes))));
    }
    Ok(call.bits(0)?.map_or(ValueRef::Null, |bits| ValueRef::Int(bits.count_ones().into())))
}

fn resolve_bytes(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let length = arguments.iter().take(2).map(|argument| argument.result.length).max().unwrap_or(0);
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, length);
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

/// A text as the aggregates of bits read it.
fn text_bits(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(call.integer(0)?.map_or(ValueRef::Null, ValueRef::Int))
}

fn of_bytes(call: Call<'_>, combine: fn(u8, u8) -> u8) -> Result<ValueRef<'_>> {
    let (Some(left), Some(right)) = (call.text(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    if left.len() != right.len() {
        let message = "Binary operands of bitwise operators must be of equal length";
        return Err(Error::new(ErrorCode::BitOperandsDiffer, message));
    }
    call.build(|buffer| buffer.extend(left.iter().zip(right).map(|(left, right)| combine(*left, *right))))
}

fn shifted(call: Call<'_>, is_left: bool) -> Result<ValueRef<'_>> {
    let (Some(bytes), Some(distance)) = (call.text(0)?, call.bits(1)?) else { return Ok(ValueRef::Null) };
    let whole = usize::try_from(distance / 8).unwrap_or(usize::MAX);
    let part = (distance % 8) as u32;
    call.build(|buffer| {
        for at in 0..bytes.len() {
            // The 16 bits from which the byte comes.
            let source = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied().unwrap_or(0);
            let word = |high: u8, low: u8| u16::from(high) << 8 | u16::from(low);
            buffer.push(match is_left {
                true => {
                    let high = at.checked_add(whole);
                    (word(source(high), source(high.and_then(|high| high.checked_add(1)))) << part >> 8) as u8
                }
                false => {
                    let low = at.checked_sub(whole);
                    let high = low.and_then(|low| low.checked_sub(1));
                    (word(source(high), source(low)) >> part) as u8
                }
            });
        }
    })
}

fn inverted(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(bytes) = call.text(0)? else { return Ok(ValueRef::Null) };
    call.build(|buffer| buffer.extend(bytes.iter().map(|byte| !byte)))
}
