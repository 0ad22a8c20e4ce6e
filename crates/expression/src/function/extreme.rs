//! LEAST and GREATEST.

use std::cmp::Ordering;

use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::function;
use super::{ANY, Call, Function, TypedCall};
use crate::construct::{as_chosen, unify};
use crate::evaluate::compare_values;
use crate::program::Expression;
use crate::result_type::{Kind, ResultType};

pub(super) const TABLE: &[Function] =
    &[function("LEAST", 2, ANY, resolve, least), function("GREATEST", 2, ANY, resolve, greatest)];

fn resolve(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let mut result = unify(&name.to_ascii_lowercase(), &arguments)?;
    // An integer and a FLOAT are compared as doubles.
    if result.kind == Kind::Float && arguments.iter().any(|argument| argument.result.is_narrow) {
        result = ResultType { decimals: result.decimals, nullable: result.nullable, ..ResultType::double() };
    }
    let arguments = arguments.into_iter().map(|argument| as_chosen(argument, result)).collect();
    Ok(TypedCall { arguments, result })
}

fn least(call: Call<'_>) -> Result<ValueRef<'_>> {
    extreme(call, Ordering::Less)
}

fn greatest(call: Call<'_>) -> Result<ValueRef<'_>> {
    extreme(call, Ordering::Greater)
}

/// The smallest or largest value, the first among equals; NULL if any value is NULL.
fn extreme(call: Call<'_>, wanted: Ordering) -> Result<ValueRef<'_>> {
    let mut best = call.value(0)?;
    for position in 1..call.count() {
        let value = call.value(position)?;
        if best.is_null() || value.is_null() {
            return Ok(ValueRef::Null);
        }
        if compare_values(call.result.collation, value, best) == wanted {
            best = value;
        }
    }
    Ok(best)
}
