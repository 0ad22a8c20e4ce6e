//! Functions whose value differs at each evaluation: RAND, UUID, RANDOM_BYTES.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::uuid::append_uuid;
use super::{Call, Function, Setting, TypedCall, Volatility, any_nullable, function, generated_text};
use crate::evaluate::to_integer;
use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, ResultType};

pub(super) const TABLE: &[Function] = &[
    function("RAND", 0, 1, resolve_rand, rand).volatile(Volatility::Row).with(SEED).of_numbers(),
    function("UUID", 0, 0, resolve_uuid, uuid).volatile(Volatility::Row).with(SEED_AND_CLOCK),
    function("UUID_SHORT", 0, 0, resolve_uuid_short, uuid_short).volatile(Volatility::Row).with(SEED_AND_CLOCK),
    function("RANDOM_BYTES", 1, 1, resolve_bytes, random_bytes).volatile(Volatility::Row).of_numbers(),
];

const SEED: &[Setting] = &[Setting::Session("RANDOM SEED")];
const SEED_AND_CLOCK: &[Setting] = &[Setting::Session("RANDOM SEED"), Setting::Session("CLOCK MICROSECONDS")];
/// Modulus of MySQL's generator.
const MODULUS: u64 = 0x3FFF_FFFF;
/// Maximum length of RANDOM_BYTES.
const RANDOM_BYTES_MAX: i64 = 1024;
/// 1582-10-15 to 1970-01-01, in units of 100 nanoseconds.
const UUID_EPOCH: u64 = 122_192_928_000_000_000;

fn resolve_rand(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::double() })
}

/// With a constant seed, the sequence of MySQL's generator, from its beginning in each statement and
/// partition. With a seed that rows determine, the first number of the sequence of that seed.
fn rand(call: Call<'_>) -> Result<ValueRef<'_>> {
    if call.count() == 1 {
        return Ok(ValueRef::Double((unique_bits(call, 0)? >> 11) as f64 / (1u64 << 53) as f64));
    }
    let seed = match call.value(0)? {
        ValueRef::Null => 0,
        value => to_integer(value, call.scratch())? as u64,
    };
    let is_constant = matches!(call.arguments[0].node, Node::Constant(_) | Node::Parameter(_) | Node::Negate(_));
    // Each execution draws another number, so it identifies the execution.
    let execution = call.bits(1)?.unwrap_or(0);
    let first = || {
        let seed = seed as u32;
        let one = u64::from(seed.wrapping_mul(0x10001).wrapping_add(55_555_555)) % MODULUS;
        let two = u64::from(seed.wrapping_mul(0x1000_0001)) % MODULUS;
        (one, two)
    };
    let key = (std::ptr::from_ref(call.expression).addr(), execution ^ seed);
    let next = |(one, two): (u64, u64)| {
        let one = (one * 3 + two) % MODULUS;
        (one, (one + two + 33) % MODULUS)
    };
    let (one, _) = match is_constant {
        true => call.scratch().next_random(key, first, next),
        false => next(first()),
    };
    Ok(ValueRef::Double(one as f64 / MODULUS as f64))
}

fn resolve_uuid(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, 36)?;
    resolved.result.nullable = false;
    Ok(resolved)
}

/// The layout of version 1. The clock is that of the statement; sequence and node are random, with the bit
/// that marks a random node.
fn uuid(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (random, more) = (unique_bits(call, 0)?, unique_bits(call, 0)?);
    let clock = call.bits(1)?.unwrap_or(0).wrapping_mul(10).wrapping_add(UUID_EPOCH).wrapping_add(more & 7);
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&(clock as u32).to_be_bytes());
    bytes[4..6].copy_from_slice(&((clock >> 32) as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&((clock >> 48) as u16 & 0x0FFF | 0x1000).to_be_bytes());
    bytes[8..].copy_from_slice(&random.to_be_bytes());
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes[10] |= 1;
    call.build(|buffer| append_uuid(&bytes, buffer))
}

fn resolve_uuid_short(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(true, 21) })
}

/// Milliseconds of the statement above 23 random bits.
fn uuid_short(call: Call<'_>) -> Result<ValueRef<'_>> {
    let clock = call.bits(1)?.unwrap_or(0) / 1000;
    Ok(ValueRef::UInt(clock << 23 & u64::MAX >> 1 | unique_bits(call, 0)? >> 41))
}

fn resolve_bytes(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, RANDOM_BYTES_MAX as u32);
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

fn random_bytes(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(length) = call.integer(0)? else { return Ok(ValueRef::Null) };
    if !(1..=RANDOM_BYTES_MAX).contains(&length) {
        let message = "length value is out of range in 'random_bytes'";
        return Err(Error::new(ErrorCode::NumericOutOfRange, message));
    }
    let mut bytes = [0; RANDOM_BYTES_MAX as usize];
    let bytes = &mut bytes[..length as usize];
    if getrandom::fill(bytes).is_err() {
        return Err(Error::new(ErrorCode::OutOfResources, "The operating system has no random bytes"));
    }
    call.build(|buffer| buffer.extend_from_slice(bytes))
}

/// 64 bits from the seed of the execution, which is the argument at `position`, the row and the number of
/// draws of this thread: two evaluations differ in at least one of them.
fn unique_bits(call: Call<'_>, position: usize) -> Result<u64> {
    let seed = call.bits(position)?.unwrap_or(0);
    let image = call.context.row.as_ref().map_or(&[][..], |row| row.image());
    let of_row = image.chunks(8).fold(0u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mixed(hash ^ u64::from_le_bytes(word))
    });
    Ok(mixed(mixed(seed ^ of_row).wrapping_add(call.scratch().count_draw())))
}

/// The finalizer of SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}
