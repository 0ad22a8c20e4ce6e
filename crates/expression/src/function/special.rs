//! Functions that are not calls in a program: those that become other nodes, and those whose value the
//! session computes.

use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::registry::{Function, TypedCall, built, function, session};
use super::{ANY, Call, wrong_count};
use crate::evaluate::order_in_domain;
use crate::program::{ArithmeticOperator, CompareDomain, Expression, IsTest};
use crate::result_type::ResultType;

/// Control functions, and functions that are operators.
pub(super) const CONTROL: &[Function] = &[
    built("IF", 3, 3, build_if).numbers_at(0b1),
    built("IFNULL", 2, 2, Expression::coalesce),
    built("COALESCE", 1, ANY, Expression::coalesce),
    built("NULLIF", 2, 2, |arguments| two(arguments, Expression::null_if)),
    built("ISNULL", 1, 1, |arguments| one(arguments, |operand| Ok(Expression::is(IsTest::Null, false, operand)))),
    built("MOD", 2, 2, |arguments| {
        two(arguments, |left, right| Ok(Expression::arithmetic(ArithmeticOperator::Remainder, left, right)))
    }),
    built("NAME_CONST", 2, 2, |arguments| two(arguments, |_, value| Ok(value))),
    function("INTERVAL", 2, ANY, resolve_interval, interval).of_numbers(),
    built("ANY_VALUE", 1, 1, |arguments| one(arguments, Ok)),
];

/// Functions of the session.
pub(super) const SESSION: &[Function] = &[
    session("VERSION", 0, 0),
    session("DATABASE", 0, 0),
    session("SCHEMA", 0, 0),
    session("USER", 0, 0),
    session("SESSION_USER", 0, 0),
    session("SYSTEM_USER", 0, 0),
    session("CURRENT_USER", 0, 0),
    session("CURRENT_ROLE", 0, 0),
    session("CONNECTION_ID", 0, 0),
    session("PS_CURRENT_THREAD_ID", 0, 0),
    session("PS_THREAD_ID", 1, 1),
    session("MYSQL_QUERY_ATTRIBUTE_STRING", 1, 1),
    session("STATEMENT_DIGEST", 1, 1),
    session("STATEMENT_DIGEST_TEXT", 1, 1),
    session("ICU_VERSION", 0, 0),
    session("ROLES_GRAPHML", 0, 0),
    session("RANDOM SEED", 0, 0),
    session("CLOCK MICROSECONDS", 0, 0),
    session("ROW_COUNT", 0, 0),
    session("FOUND_ROWS", 0, 0),
];

/// Functions of the clock.
pub(super) const CLOCK: &[Function] = &[
    session("NOW", 0, 1),
    session("CURRENT_TIMESTAMP", 0, 1),
    session("LOCALTIME", 0, 1),
    session("LOCALTIMESTAMP", 0, 1),
    session("SYSDATE", 0, 1),
    session("CURDATE", 0, 0),
    session("CURRENT_DATE", 0, 0),
    session("CURTIME", 0, 1),
    session("CURRENT_TIME", 0, 1),
    session("UTC_DATE", 0, 0),
    session("UTC_TIME", 0, 1),
    session("UTC_TIMESTAMP", 0, 1),
];

fn resolve_interval(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::integer(false, 2) })
}

/// The number of arguments after the first that are not greater than it; they must be ascending. -1 for NULL.
fn interval(call: Call<'_>) -> Result<ValueRef<'_>> {
    let all_exact = call.arguments.iter().all(|argument| argument.result.is_exact());
    let first = call.value(0)?;
    if first.is_null() {
        return Ok(ValueRef::Int(-1));
    }
    let domain = if all_exact { CompareDomain::Decimal } else { CompareDomain::Double };
    // The arguments are ascending, so the first greater one ends the search. NULL counts as not greater.
    for position in 1..call.count() {
        let value = call.value(position)?;
        if !value.is_null() && order_in_domain(domain, value, first, call.scratch())?.is_gt() {
            return Ok(ValueRef::Int(position as i64 - 1));
        }
    }
    Ok(ValueRef::Int(call.count() as i64 - 1))
}

fn build_if(arguments: Vec<Expression>) -> Result<Expression> {
    match <[Expression; 3]>::try_from(arguments) {
        Ok([condition, then, otherwise]) => Expression::choose(condition, then, otherwise),
        Err(_) => Err(wrong_count("IF")),
    }
}

fn one(arguments: Vec<Expression>, build: fn(Expression) -> Result<Expression>) -> Result<Expression> {
    match <[Expression; 1]>::try_from(arguments) {
        Ok([operand]) => build(operand),
        Err(_) => Err(wrong_count("")),
    }
}

fn two(arguments: Vec<Expression>, build: fn(Expression, Expression) -> Result<Expression>) -> Result<Expression> {
    match <[Expression; 2]>::try_from(arguments) {
        Ok([left, right]) => build(left, right),
        Err(_) => Err(wrong_count("")),
    }
}
