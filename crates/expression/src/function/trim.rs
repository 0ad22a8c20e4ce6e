//! TRIM in all its forms, and REPLACE.

use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::function;
use super::{BuildOutcome, Call, Function, resolve_first, resolve_together};
use crate::scratch::STRING_BYTES_MAX;

/// `TRIM(LEADING x FROM s)` is the call `TRIM_LEADING(s, x)`; TRAILING is `TRIM_TRAILING(s, x)`, and BOTH is
/// `TRIM(s, x)`.
pub(super) const TABLE: &[Function] = &[
    function("TRIM", 1, 2, resolve_trim, trim_both),
    function("TRIM_LEADING", 1, 2, resolve_trim, trim_leading),
    function("TRIM_TRAILING", 1, 2, resolve_trim, trim_trailing),
    function("LTRIM", 1, 1, resolve_first, trim_leading),
    function("RTRIM", 1, 1, resolve_first, trim_trailing),
    function("REPLACE", 3, 3, resolve_replace, replace),
];

/// The collation is that of both texts, the length that of the first.
fn resolve_trim(name: &'static str, arguments: Vec<crate::program::Expression>) -> Result<super::TypedCall> {
    if arguments.len() == 1 {
        return resolve_first(name, arguments);
    }
    let length = arguments[0].result.length;
    let mut resolved = resolve_together("trim", arguments)?;
    resolved.result.length = length;
    Ok(resolved)
}

fn trim_both(call: Call<'_>) -> Result<ValueRef<'_>> {
    trim(call, true, true)
}

fn trim_leading(call: Call<'_>) -> Result<ValueRef<'_>> {
    trim(call, true, false)
}

fn trim_trailing(call: Call<'_>) -> Result<ValueRef<'_>> {
    trim(call, false, true)
}

fn trim(call: Call<'_>, leading: bool, trailing: bool) -> Result<ValueRef<'_>> {
    let Some(mut text) = call.text(0)? else { return Ok(ValueRef::Null) };
    let remove = if call.count() > 1 { call.text(1)? } else { Some(b" ".as_slice()) };
    let Some(remove) = remove else { return Ok(ValueRef::Null) };
    if remove.is_empty() {
        return Ok(ValueRef::Bytes(text));
    }
    while leading && let Some(rest) = text.strip_prefix(remove) {
        text = rest;
    }
    while trailing && let Some(rest) = text.strip_suffix(remove) {
        text = rest;
    }
    Ok(ValueRef::Bytes(text))
}

fn resolve_replace(name: &'static str, arguments: Vec<crate::program::Expression>) -> Result<super::TypedCall> {
    let grown = arguments[0].result.length.saturating_mul(arguments[2].result.length.max(1));
    let mut resolved = resolve_together(name, arguments)?;
    resolved.result.length = grown.min((STRING_BYTES_MAX / 4) as u32);
    resolved.result.nullable = true;
    Ok(resolved)
}

/// Replaces exact byte sequences, regardless of the collation, as MySQL does.
fn replace(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(text), Some(from), Some(to)) = (call.text(0)?, call.text(1)?, call.text(2)?) else {
        return Ok(ValueRef::Null);
    };
    if from.is_empty() || from.len() > text.len() {
        return Ok(ValueRef::Bytes(text));
    }
    call.build_bounded("replace", |buffer| {
        let mut rest = text;
        while let Some((first, tail)) = rest.split_first() {
            match rest.strip_prefix(from) {
                Some(after) => {
                    buffer.extend_from_slice(to);
                    rest = after;
                }
                None => {
                    buffer.push(*first);
                    rest = tail;
                }
            }
            if buffer.len() > STRING_BYTES_MAX {
                return Ok(BuildOutcome::TooLong);
            }
        }
        Ok(BuildOutcome::Text)
    })
}
