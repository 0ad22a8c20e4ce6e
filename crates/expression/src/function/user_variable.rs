//! User variables that the statement itself assigns. The value of other variables is an implicit parameter.

use junctor_model::error::Result;
use junctor_model::user_value::UserValue;
use junctor_model::value::ValueRef;

use super::{Call, Function, TypedCall, Volatility, function};
use crate::evaluate::to_kind;
use crate::program::Expression;
use crate::result_type::{Coercibility, Kind, ResultType};

/// The first argument is the variable's name in lower case, the second the new value, or the value before the
/// statement.
pub(super) const TABLE: &[Function] = &[
    function("USER VARIABLE :=", 2, 2, resolve, assign).volatile(Volatility::Stateful),
    function("USER VARIABLE", 2, 2, resolve, read).volatile(Volatility::Stateful),
];

/// Maximum number of characters of a variable without a value, as clients see it.
const TEXT_CHARACTERS: u32 = 65_535;

fn resolve(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let value = arguments[1].result;
    let result = match value.kind {
        // A variable without a value is text.
        Kind::Null => {
            let collation = arguments[0].result.collation;
            ResultType::string(collation, Coercibility::Implicit, TEXT_CHARACTERS).with_nullable(true)
        }
        Kind::String => ResultType { coercibility: Coercibility::Implicit, ..value },
        _ => value,
    };
    Ok(TypedCall { result: result.with_nullable(true), arguments })
}

fn assign(call: Call<'_>) -> Result<ValueRef<'_>> {
    let value = call.rounded(1)?;
    if let Some(name) = call.text(0)? {
        let collation = call.arguments[1].result.collation;
        call.scratch().assign(&String::from_utf8_lossy(name), UserValue::new(value.to_value(), collation));
    }
    Ok(value)
}

fn read(call: Call<'_>) -> Result<ValueRef<'_>> {
    let name = call.text(0)?.unwrap_or_default();
    match call.scratch().assigned(&String::from_utf8_lossy(name))? {
        Some(value) => to_kind(value, call.result, call.scratch()),
        None => to_kind(call.rounded(1)?, call.result, call.scratch()),
    }
}
