//! Addresses of the internet protocols.

use std::net::{Ipv4Addr, Ipv6Addr};

use junctor_model::collation::CollationId;
use junctor_model::error::{ErrorCode, Result};
use junctor_model::scratch::excerpt;
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, function, generated_text, resolve_integer};
use crate::program::Expression;
use crate::result_type::{Coercibility, ResultType};

pub(super) const TABLE: &[Function] = &[
    function("INET_ATON", 1, 1, resolve_aton, inet_aton),
    function("INET_NTOA", 1, 1, resolve_ntoa, inet_ntoa).of_numbers(),
    function("INET6_ATON", 1, 1, resolve_6_aton, inet6_aton),
    function("INET6_NTOA", 1, 1, resolve_6_ntoa, inet6_ntoa),
    function("IS_IPV4", 1, 1, resolve_integer::<1>, |call| test_text(call, |text| ipv4(text).is_some())),
    function("IS_IPV6", 1, 1, resolve_integer::<1>, |call| test_text(call, |text| ipv6(text).is_some())),
    function("IS_IPV4_COMPAT", 1, 1, resolve_integer::<1>, |call| test_bytes(call, is_compatible)),
    function("IS_IPV4_MAPPED", 1, 1, resolve_integer::<1>, |call| {
        test_bytes(call, |bytes| bytes[..10] == [0; 10] && bytes[10..12] == [0xFF; 2])
    }),
];

fn resolve_aton(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(true, 21).with_nullable(true) })
}

/// NULL and warning 1411 for text that is no address. Missing groups are zero, as in `127.1`.
fn inet_aton(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    match number_of_address(text) {
        Some(number) => Ok(ValueRef::UInt(number)),
        None => {
            wrong_value(call, text)?;
            Ok(ValueRef::Null)
        }
    }
}

/// An empty group is 0, and more than four groups continue the number, as in MySQL.
fn number_of_address(text: &[u8]) -> Option<u64> {
    let (mut number, mut group, mut points) = (0u64, 0u64, 0);
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                group = group * 10 + u64::from(byte - b'0');
                if group > 255 {
                    return None;
                }
            }
            b'.' => {
                points += 1;
                number = number << 8 | group;
                group = 0;
            }
            _ => return None,
        }
    }
    let missing = match points {
        1 => 2,
        2 => 1,
        _ => 0,
    };
    let is_address = text.last().is_some_and(u8::is_ascii_digit);
    is_address.then_some(number << (8 * missing) << 8 | group)
}

/// A number of 0 to 255, with leading zeros.
fn short_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0u64, |number, digit| (number * 10 + u64::from(digit - b'0')).min(256));
    (number < 256).then_some(number)
}

fn resolve_ntoa(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, 15)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn inet_ntoa(call: Call<'_>) -> Result<ValueRef<'_>> {
    let number = match call.value(0)? {
        ValueRef::Null => return Ok(ValueRef::Null),
        value => crate::evaluate::to_integer(value, call.scratch())?,
    };
    match u32::try_from(number) {
        Ok(number) => call.build(|buffer| buffer.extend_from_slice(Ipv4Addr::from(number).to_string().as_bytes())),
        Err(_) => {
            wrong_value(call, number.to_string().as_bytes())?;
            Ok(ValueRef::Null)
        }
    }
}

fn resolve_6_aton(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = ResultType::string(CollationId::BINARY, Coercibility::Coercible, 16);
    Ok(TypedCall { arguments, result: result.with_nullable(true) })
}

fn inet6_aton(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    if let Some(address) = ipv4(text) {
        return call.build(|buffer| buffer.extend_from_slice(&address.octets()));
    }
    if let Some(address) = ipv6(text) {
        return call.build(|buffer| buffer.extend_from_slice(&address.octets()));
    }
    wrong_value(call, text)?;
    Ok(ValueRef::Null)
}

fn resolve_6_ntoa(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, 39)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn inet6_ntoa(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(bytes) = call.text(0)? else { return Ok(ValueRef::Null) };
    let is_binary = super::is_bytes(&call.arguments[0]);
    let text = match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
        (Ok(octets), _) if is_binary => Ipv4Addr::from(octets).to_string(),
        (_, Ok(octets)) if is_binary => text_of_ipv6(&octets),
        _ => {
            wrong_value(call, bytes)?;
            return Ok(ValueRef::Null);
        }
    };
    call.build(|buffer| buffer.extend_from_slice(text.as_bytes()))
}

/// The shortest form. The last four bytes of compatible and mapped addresses are those of an IPv4 address.
fn text_of_ipv6(octets: &[u8; 16]) -> String {
    let last = Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]);
    match octets[..12] {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] => format!("::ffff:{last}"),
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] if octets[12] | octets[13] != 0 => format!("::{last}"),
        _ => words_of_ipv6(Ipv6Addr::from(*octets).segments()),
    }
}

/// The words of an address. As in MySQL, `::` stands for the first of the longest runs of zeros, also for a
/// single zero, which the standard library prints.
fn words_of_ipv6(words: [u16; 8]) -> String {
    let (mut gap, mut start) = (0..0, 0);
    for (position, word) in words.iter().enumerate() {
        if *word != 0 {
            start = position + 1;
        } else if position + 1 - start > gap.len() {
            gap = start..position + 1;
        }
    }
    let shown = |words: &[u16]| words.iter().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(":");
    match gap.is_empty() {
        true => shown(&words),
        false => format!("{}::{}", shown(&words[..gap.start]), shown(&words[gap.end..])),
    }
}

fn test_text(call: Call<'_>, test: fn(&[u8]) -> bool) -> Result<ValueRef<'_>> {
    Ok(call.text(0)?.map_or(ValueRef::Null, |text| ValueRef::Int(test(text).into())))
}

fn test_bytes(call: Call<'_>, test: fn(&[u8; 16]) -> bool) -> Result<ValueRef<'_>> {
    let Some(bytes) = call.text(0)? else { return Ok(ValueRef::Null) };
    let is_address = <&[u8; 16]>::try_from(bytes).is_ok_and(test);
    Ok(ValueRef::Int((is_address && super::is_bytes(&call.arguments[0])).into()))
}

/// `::a.b.c.d`, but neither `::` nor `::1`.
fn is_compatible(bytes: &[u8; 16]) -> bool {
    bytes[..12] == [0; 12] && u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) > 1
}

/// Four groups of one to three digits, which MySQL reads as decimal although they begin with zero.
fn ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut groups = text.split(|byte| *byte == b'.');
    for octet in &mut octets {
        *octet = groups.next().filter(|group| group.len() <= 3).and_then(short_number)? as u8;
    }
    groups.next().is_none().then(|| octets.into())
}

fn ipv6(text: &[u8]) -> Option<Ipv6Addr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cold]
fn wrong_value(call: Call<'_>, text: &[u8]) -> Result<()> {
    let name = match &call.expression.node {
        crate::program::Node::Call(function, _) => function.name.to_ascii_lowercase(),
        _ => String::new(),
    };
    let message = || format!("Incorrect string value: '{}' for function {name}", excerpt(text));
    call.scratch().warn(ErrorCode::WrongValueForFunction, message)
}
