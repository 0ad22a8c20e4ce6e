//! The tests of rows of tables with a time to live. No statement can name these functions; planning adds
//! them.

use junctor_model::error::Result;
use junctor_model::time_to_live::{is_expired, utc_microseconds};
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, function};
use crate::program::Expression;
use crate::result_type::ResultType;

/// The arguments are the column, the time of the statement as DATETIME in UTC, and the seconds that a row
/// lives.
pub(super) const TABLE: &[Function] =
    &[function("ROW EXPIRED", 3, 3, resolve, expired), function("ROW LIVES", 3, 3, resolve, lives)];

fn resolve(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 1) })
}

fn expired(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(ValueRef::Int(i64::from(has_expired(&call)?)))
}

fn lives(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(ValueRef::Int(i64::from(!has_expired(&call)?)))
}

fn has_expired(call: &Call<'_>) -> Result<bool> {
    // The stored value, because the time zone of the session must not matter.
    let value = match (call.arguments[0].as_column(), call.context.row) {
        (Some(column), Some(row)) => row.column(column),
        _ => call.value(0)?,
    };
    let ValueRef::Temporal(now) = call.value(1)? else { return Ok(false) };
    let seconds = call.integer(2)?.unwrap_or(0);
    Ok(is_expired(value, seconds, utc_microseconds(now)))
}
