//! Sets of global transaction identifiers, as texts: `uuid:1-5:8, uuid:3`.

use std::collections::BTreeMap;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, Volatility, function, generated_text, resolve_integer};
use crate::program::Expression;
use crate::result_type::ResultType;

pub(super) const TABLE: &[Function] = &[
    function("GTID_SUBSET", 2, 2, resolve_integer::<1>, subset),
    function("GTID_SUBTRACT", 2, 2, resolve_text, subtract),
    function("MASTER_POS_WAIT", 2, 4, resolve_wait, wait_for_position).volatile(Volatility::Row),
    function("SOURCE_POS_WAIT", 2, 4, resolve_wait, wait_for_position).volatile(Volatility::Row),
    function("WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS", 1, 3, resolve_wait, wait_until_after).volatile(Volatility::Row),
    function("WAIT_FOR_EXECUTED_GTID_SET", 1, 2, resolve_wait, wait_for_set).volatile(Volatility::Row),
];

/// Characters of a UUID with hyphens.
const UUID_CHARACTERS: usize = 36;
/// Characters of a set as text, as clients see it.
const TEXT_CHARACTERS: u32 = u32::MAX / 4;

/// The numbers of each source, as ranges with their end excluded: sorted, apart from each other, not empty.
type Set = BTreeMap<Vec<u8>, Vec<(u64, u64)>>;

fn resolve_text(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut resolved = generated_text(name, arguments, TEXT_CHARACTERS)?;
    resolved.result.nullable = true;
    Ok(resolved)
}

fn resolve_wait(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 21).with_nullable(true) })
}

/// NULL, as on a server of MySQL that replicates from none. Error: 1210 for a negative number of seconds.
fn wait_for_position(call: Call<'_>) -> Result<ValueRef<'_>> {
    check_seconds(&call, 2)
}

/// NULL, as on a server of MySQL that replicates from none. Errors: 1772, and 1210 for a negative number of
/// seconds.
fn wait_until_after(call: Call<'_>) -> Result<ValueRef<'_>> {
    if let Some(set) = call.text(0)? {
        read(set)?;
    }
    check_seconds(&call, 1)
}

/// Error 3062: there are no global transaction identifiers.
fn wait_for_set(_: Call<'_>) -> Result<ValueRef<'_>> {
    let message = "The server can't use wait_for_executed_gtid_set when @@GLOBAL.GTID_MODE = OFF.";
    Err(Error::new(ErrorCode::GtidModeOff, message))
}

fn check_seconds<'r>(call: &Call<'r>, position: usize) -> Result<ValueRef<'r>> {
    let seconds = if call.count() > position { call.double(position)? } else { None };
    match seconds {
        Some(seconds) if seconds < 0.0 => {
            let message = format!("Incorrect arguments to {}.", call.function_name());
            Err(Error::new(ErrorCode::WrongArguments, message))
        }
        _ => Ok(ValueRef::Null),
    }
}

/// The two sets; `None` if one is NULL. Error: 1772.
fn sets(call: &Call<'_>) -> Result<Option<(Set, Set)>> {
    let (Some(left), Some(right)) = (call.text(0)?, call.text(1)?) else { return Ok(None) };
    Ok(Some((read(left)?, read(right)?)))
}

fn subset(call: Call<'_>) -> Result<ValueRef<'_>> {
    let sets = sets(&call)?;
    Ok(sets.map_or(ValueRef::Null, |(left, right)| ValueRef::Int(difference(left, &right).is_empty().into())))
}

fn subtract(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some((left, right)) = sets(&call)? else { return Ok(ValueRef::Null) };
    let difference = difference(left, &right);
    call.build(|buffer| {
        for (place, (source, ranges)) in difference.iter().enumerate() {
            buffer.extend_from_slice(if place > 0 { b",\n" } else { b"" });
            buffer.extend_from_slice(source);
            for (start, end) in ranges {
                let text = if end - start == 1 { format!(":{start}") } else { format!(":{start}-{}", end - 1) };
                buffer.extend_from_slice(text.as_bytes());
            }
        }
    })
}

/// The transactions of the first set that are not in the second.
fn difference(mut left: Set, right: &Set) -> Set {
    for (source, ranges) in &mut left {
        for &(start, end) in right.get(source).map_or(&[][..], Vec::as_slice) {
            let parts = ranges.iter().flat_map(|&(from, to)| [(from, to.min(start)), (from.max(end), to)]);
            *ranges = parts.filter(|(from, to)| from < to).collect();
        }
    }
    left.retain(|_, ranges| !ranges.is_empty());
    left
}

/// Reads a set. White space may be around each part, and commas without a set between them are no error.
fn read(text: &[u8]) -> Result<Set> {
    let mut set = Set::new();
    for source in text.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|source| !source.is_empty()) {
        let ranges = source.split_at_checked(UUID_CHARACTERS).and_then(|(uuid, rest)| {
            let ranges = read_ranges(rest)?;
            is_uuid(uuid).then(|| set.entry(uuid.to_ascii_lowercase()).or_default().extend(ranges))
        });
        ranges.ok_or_else(|| malformed(text))?;
    }
    set.values_mut().for_each(merge);
    Ok(set)
}

fn is_uuid(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// The ranges behind a UUID: each a colon, a number, and the last number behind a hyphen. A range that ends
/// before it starts is empty.
fn read_ranges(text: &[u8]) -> Option<Vec<(u64, u64)>> {
    let mut parts = text.split(|byte| *byte == b':');
    // Only white space precedes the first colon.
    if !parts.next()?.trim_ascii().is_empty() {
        return None;
    }
    let ranges = parts.map(|part| {
        let mut ends = part.splitn(2, |byte| *byte == b'-').map(|number| read_number(number.trim_ascii()));
        let start = ends.next()?.filter(|start| *start > 0)?;
        let end = ends.next().unwrap_or(Some(start))?;
        Some((start, end + 1))
    });
    ranges.collect()
}

/// A number below 2^63 - 1.
fn read_number(digits: &[u8]) -> Option<u64> {
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (digits[0] != b'+' && number < i64::MAX as u64).then_some(number)
}

/// Sorts ranges and joins those that touch.
fn merge(ranges: &mut Vec<(u64, u64)>) {
    ranges.retain(|(start, end)| start < end);
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let touches = next.0 <= kept.1;
        kept.1 = if touches { kept.1.max(next.1) } else { kept.1 };
        touches
    });
}

#[cold]
fn malformed(text: &[u8]) -> Box<Error> {
    let text = String::from_utf8_lossy(text);
    Error::new(ErrorCode::MalformedTransactionSet, format!("Malformed GTID set specification '{text}'."))
}
