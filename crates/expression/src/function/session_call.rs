//! Functions that the session carries out for a row, because they take time or use locks. An evaluation is
//! given up at a call that has no result yet (`crates/model/src/session_call.rs`).

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::session_call::SessionCall;
use junctor_model::value::{Value, ValueRef};

use super::{Call, Function, TypedCall, Volatility, function};
use crate::evaluate::Context;
use crate::program::{Expression, Node};
use crate::result_type::ResultType;
use crate::scratch::Scratch;

pub(super) const TABLE: &[Function] = &[
    function("SLEEP", 1, 1, resolve, carry_out).volatile(Volatility::Stateful),
    function("BENCHMARK", 2, 2, resolve_benchmark, benchmark).volatile(Volatility::Stateful),
    function("GET_LOCK", 2, 2, resolve, carry_out).volatile(Volatility::Stateful),
    function("RELEASE_LOCK", 1, 1, resolve, carry_out).volatile(Volatility::Stateful),
    function("RELEASE_ALL_LOCKS", 0, 0, resolve, carry_out).volatile(Volatility::Stateful),
    function("IS_FREE_LOCK", 1, 1, resolve, carry_out).volatile(Volatility::Stateful),
    function("IS_USED_LOCK", 1, 1, resolve, carry_out).volatile(Volatility::Stateful),
];

/// How often BENCHMARK evaluates its expression before the thread does other work.
const REPETITIONS_MAX: u64 = 32;

fn resolve(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let result = match name {
        "IS_USED_LOCK" => ResultType::integer(true, 10),
        "RELEASE_ALL_LOCKS" => ResultType::integer(true, 21),
        _ => ResultType::integer(false, 1),
    };
    Ok(TypedCall { result: result.with_nullable(!matches!(name, "SLEEP" | "RELEASE_ALL_LOCKS")), arguments })
}

/// Error 1235 for an expression that has calls of its own, or assigns user variables.
fn resolve_benchmark(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    match arguments[1].is_stateful() {
        true => Err(Error::not_supported("a user variable that the statement assigns, a lock or SLEEP in BENCHMARK")),
        false => resolve(name, arguments),
    }
}

/// Error 1235 where no call can be carried out; elsewhere nobody sees it.
fn carry_out(call: Call<'_>) -> Result<ValueRef<'_>> {
    let mut arguments = Vec::with_capacity(call.count());
    for place in 0..call.count() {
        arguments.push(call.rounded(place)?.to_value());
    }
    let function = name_of(&call);
    match call.scratch().session_calls().meet(SessionCall { function, arguments }) {
        Some(value) => number(&value, call),
        None => Err(Error::not_supported(&format!("{function} here"))),
    }
}

/// NULL for a count of NULL, or, with warning 1411, for a negative one; otherwise 0.
fn benchmark(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(count) = call.integer(0)? else { return Ok(ValueRef::Null) };
    let Ok(count) = u64::try_from(count) else {
        call.scratch().note(ErrorCode::WrongValueForFunction, || {
            format!("Incorrect count value: '{count}' for function benchmark")
        });
        return Ok(ValueRef::Null);
    };
    let calls = call.scratch().session_calls();
    let described = SessionCall { function: name_of(&call), arguments: vec![Value::UInt(count)] };
    if let Some(value) = calls.met_before(&described) {
        return number(&value, call);
    }
    let before = calls.repetitions();
    let repetitions = count.saturating_sub(before).min(REPETITIONS_MAX);
    repeat(&call, repetitions)?;
    match before + repetitions < count {
        true => {
            calls.pause_at(before + repetitions, described);
            Err(Error::not_supported("BENCHMARK here"))
        }
        false => {
            for warning in calls.take_warnings() {
                call.scratch().note(warning.code, || warning.message.into_string());
            }
            calls.finish(described, Value::Int(0));
            Ok(ValueRef::Int(0))
        }
    }
}

/// Evaluates the expression of BENCHMARK, with memory of its own, because that of the row grows until its
/// end.
fn repeat(call: &Call<'_>, repetitions: u64) -> Result<()> {
    let mut scratch = Scratch::new();
    scratch.set_value_rules(call.scratch().value_rules());
    scratch.set_strict(call.scratch().is_strict());
    for _ in 0..repetitions {
        scratch.reset();
        let Context { row, parameters, .. } = call.context;
        call.arguments[1].evaluate(row, parameters, &scratch)?;
    }
    call.scratch().session_calls().keep_warnings(scratch.take_warnings());
    Ok(())
}

fn number<'r>(value: &Value, call: Call<'r>) -> Result<ValueRef<'r>> {
    crate::evaluate::to_kind(
        match value {
            Value::Int(number) => ValueRef::Int(*number),
            Value::UInt(number) => ValueRef::UInt(*number),
            _ => ValueRef::Null,
        },
        call.result,
        call.scratch(),
    )
}

fn name_of(call: &Call<'_>) -> &'static str {
    match &call.expression.node {
        Node::Call(function, _) => function.name,
        _ => "",
    }
}
