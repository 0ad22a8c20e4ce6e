//! CHECK constraints of tables, and CHECK OPTION of views.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, function};
use crate::program::Expression;
use crate::result_type::ResultType;

pub(super) const TABLE: &[Function] =
    &[function("CHECK CONSTRAINT", 2, 2, resolve, check), function("CHECK OPTION", 2, 2, resolve, check_option)];

fn resolve(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 1) })
}

/// The arguments are the condition and the name of the constraint. Error 3819 if the condition is false; a
/// condition that is NULL is met.
fn check(call: Call<'_>) -> Result<ValueRef<'_>> {
    if call.arguments[0].truth(&call.context)? != Some(false) {
        return Ok(ValueRef::Int(1));
    }
    let name = call.text(1)?.unwrap_or_default();
    let message = format!("Check constraint '{}' is violated.", String::from_utf8_lossy(name));
    Err(Error::new(ErrorCode::CheckViolated, message))
}

/// The arguments are the condition and the name of a view. Error 1369 unless the condition is true.
fn check_option(call: Call<'_>) -> Result<ValueRef<'_>> {
    if call.arguments[0].truth(&call.context)? == Some(true) {
        return Ok(ValueRef::Int(1));
    }
    let name = call.text(1)?.unwrap_or_default();
    let message = format!("CHECK OPTION failed '{}'", String::from_utf8_lossy(name));
    Err(Error::new(ErrorCode::ViewCheckFailed, message))
}
