//! Positions in strings, and comparison of strings.

use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::function;
use super::{ANY, Call, Function, TypedCall, resolve_integer};
use crate::construct::aggregate_collations;
use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, ResultType};

pub(super) const TABLE: &[Function] = &[
    function("INSTR", 2, 2, resolve_locate, instr),
    function("LOCATE", 2, 3, resolve_locate, locate).numbers_at(0b100),
    function("POSITION", 2, 2, resolve_locate, locate),
    function("STRCMP", 2, 2, resolve_strcmp, strcmp),
    function("FIELD", 2, ANY, resolve_field, field),
    function("FIND_IN_SET", 2, 2, resolve_find_in_set, find_in_set),
    function("ORD", 1, 1, resolve_integer::<21>, ord).of_bytes(),
    function("ASCII", 1, 1, resolve_integer::<3>, ascii).of_bytes(),
];

/// The two texts have a common collation.
fn resolve_locate(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    aggregate_collations(&name.to_ascii_lowercase(), &arguments[..2])?;
    resolve_integer::<11>(name, arguments)
}

fn resolve_strcmp(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    aggregate_collations("strcmp", &arguments)?;
    resolve_integer::<2>("", arguments)
}

fn resolve_field(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    // Beside a number, texts are compared as numbers.
    if arguments.iter().all(|argument| argument.result.is_compared_as_text()) {
        aggregate_collations("field", &arguments)?;
    }
    Ok(TypedCall { arguments, result: ResultType::integer(false, 3) })
}

/// The common collation of the arguments. Typing the call has already checked that they have one.
fn collation(call: Call<'_>) -> CollationId {
    match aggregate_collations("", call.arguments) {
        // Numbers and times are compared in latin1, which orders ASCII as this one does.
        Ok(aggregation) if aggregation.coercibility == Coercibility::Numeric => CollationId::UTF8MB4_GENERAL_CI,
        Ok(aggregation) => aggregation.collation,
        Err(_) => CollationId::BINARY,
    }
}

fn instr(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(text), Some(part)) = (call.text(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(find(collation(call), text, part, 1)))
}

fn locate(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(part), Some(text)) = (call.text(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    let start = if call.count() > 2 { call.integer(2)? } else { Some(1) };
    let Some(start) = start else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(find(collation(call), text, part, start)))
}

/// The position in characters, from 1, of the first occurrence of `part` at or after `start`; 0 if there is
/// none. An occurrence has the same number of characters as `part` and equals it in the collation.
fn find(collation: CollationId, text: &[u8], part: &[u8], start: i64) -> i64 {
    let characters = collation.character_set();
    let Some(skip) = usize::try_from(start).ok().and_then(|start| start.checked_sub(1)) else { return 0 };
    let before = characters.prefix(text, skip);
    if characters.character_count(before) < skip {
        return 0;
    }
    let length = characters.character_count(part);
    let mut rest = &text[before.len()..];
    let mut position = start;
    loop {
        let window = characters.prefix(rest, length);
        if collation.equal(window, part) && characters.character_count(window) == length {
            return position;
        }
        let first = characters.prefix(rest, 1).len();
        if first == 0 {
            return 0;
        }
        rest = &rest[first..];
        position += 1;
    }
}

fn strcmp(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(left), Some(right)) = (call.text(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    Ok(ValueRef::Int(collation(call).compare(left, right) as i64))
}

fn field(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(wanted) = call.text(0)? else { return Ok(ValueRef::Int(0)) };
    let all_text = is_all_text(call)?;
    let collation = collation(call);
    for position in 1..call.count() {
        let equal = match all_text {
            true => call.text(position)?.is_some_and(|text| collation.equal(text, wanted)),
            false => match (call.double(position)?, call.double(0)?) {
                (Some(number), Some(wanted)) => number == wanted,
                _ => false,
            },
        };
        if equal {
            return Ok(ValueRef::Int(position as i64));
        }
    }
    Ok(ValueRef::Int(0))
}

/// Whether all arguments are compared as texts. A parameter that is NULL has no type of its own.
fn is_all_text(call: Call<'_>) -> Result<bool> {
    for (position, argument) in call.arguments.iter().enumerate() {
        let is_parameter = matches!(argument.node, Node::Parameter(_));
        if !(argument.result.is_compared_as_text() || is_parameter && call.value(position)?.is_null()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn resolve_find_in_set(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    aggregate_collations("find_in_set", &arguments)?;
    resolve_integer::<3>("", arguments)
}

/// The position of a text in a list whose members are separated by commas.
fn find_in_set(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(wanted), Some(list)) = (call.text(0)?, call.text(1)?) else { return Ok(ValueRef::Null) };
    if list.is_empty() {
        return Ok(ValueRef::Int(0));
    }
    let collation = collation(call);
    // Trailing spaces count here, also in collations that pad.
    let spaces = |text: &[u8]| text.iter().rev().take_while(|byte| **byte == b' ').count();
    let is_equal = |member: &[u8]| collation.equal(member, wanted) && spaces(member) == spaces(wanted);
    let found = list.split(|byte| *byte == b',').position(is_equal);
    Ok(ValueRef::Int(found.map_or(0, |position| position as i64 + 1)))
}

/// The bytes of the first character as a number, the first byte most significant.
fn ord(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let first = call.character_set(0).prefix(text, 1);
    Ok(ValueRef::Int(first.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))))
}

fn ascii(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match call.text(0)? {
        None => ValueRef::Null,
        Some(text) => ValueRef::Int(i64::from(text.first().copied().unwrap_or(0))),
    })
}
