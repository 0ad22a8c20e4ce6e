//! Mathematical functions, except those that round (see `round`).

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;

use super::function;
use super::{Call, Function, TypedCall, any_nullable, resolve_double, resolve_integer};
use crate::decimal;
use crate::evaluate::to_double;
use crate::program::Expression;
use crate::result_type::{Kind, ResultType};

pub(super) const TABLE: &[Function] = &[
    function("ABS", 1, 1, resolve_abs, abs).of_numbers(),
    function("SIGN", 1, 1, resolve_integer::<2>, sign).of_numbers(),
    function("POW", 2, 2, resolve_double, pow).of_numbers(),
    function("POWER", 2, 2, resolve_double, pow).of_numbers(),
    function("SQRT", 1, 1, resolve_double, sqrt).of_numbers(),
    function("EXP", 1, 1, resolve_double, exp).of_numbers(),
    function("LN", 1, 1, resolve_double, ln).of_numbers(),
    function("LOG", 1, 2, resolve_double, log).of_numbers(),
    function("LOG2", 1, 1, resolve_double, log2).of_numbers(),
    function("LOG10", 1, 1, resolve_double, log10).of_numbers(),
    function("PI", 0, 0, resolve_pi, pi).of_numbers(),
    function("CAST FLOAT", 1, 1, resolve_float, cast_float).of_numbers(),
];

fn resolve_float(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::float().with_nullable(true) })
}

/// CAST to FLOAT. Error: 1690 for a number beyond the range of the type.
fn cast_float(call: Call<'_>) -> Result<ValueRef<'_>> {
    let Some(number) = call.double(0)? else { return Ok(ValueRef::Null) };
    if number.abs() > f64::from(f32::MAX) {
        let operand = call.arguments[0].describe(call.context.parameters);
        let text = format!("DOUBLE value is out of range in 'cast({operand} as float)'");
        return Err(Error::new(ErrorCode::NumericOutOfRange, text));
    }
    Ok(ValueRef::Float(number as f32))
}

/// PI() prints six digits after the point; calculations have all.
fn resolve_pi(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    Ok(TypedCall { arguments, result: ResultType::pi() })
}

fn resolve_abs(_: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    let operand = arguments[0].result;
    let result = match operand.kind {
        Kind::Int | Kind::UInt | Kind::Decimal | Kind::Bit | Kind::Year => operand.as_number(),
        _ => ResultType { decimals: operand.decimals, ..ResultType::double() },
    };
    Ok(TypedCall { result: result.with_nullable(any_nullable(&arguments)), arguments })
}

fn abs(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match call.integer_or_value(0)? {
        ValueRef::Null => ValueRef::Null,
        ValueRef::Int(value) => match value.checked_abs() {
            Some(value) => ValueRef::Int(value),
            None => return Err(call.expression.out_of_range("BIGINT", &call.context)),
        },
        ValueRef::UInt(value) => ValueRef::UInt(value),
        ValueRef::Decimal(value) if value.is_negative() => ValueRef::Decimal(decimal::negate(value)),
        ValueRef::Decimal(value) => ValueRef::Decimal(value),
        other => ValueRef::Double(to_double(other, call.scratch())?.abs()),
    })
}

fn sign(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match call.value(0)? {
        ValueRef::Null => ValueRef::Null,
        ValueRef::Int(value) => ValueRef::Int(value.signum()),
        ValueRef::UInt(value) => ValueRef::Int(i64::from(value > 0)),
        ValueRef::Decimal(value) => ValueRef::Int(value.clamped_mantissa().signum() as i64),
        other => {
            let number = to_double(other, call.scratch())?;
            ValueRef::Int(i64::from(number > 0.0) - i64::from(number < 0.0))
        }
    })
}

fn pow(call: Call<'_>) -> Result<ValueRef<'_>> {
    let (Some(base), Some(exponent)) = (call.double(0)?, call.double(1)?) else { return Ok(ValueRef::Null) };
    finite(call, base.powf(exponent))
}

fn exp(call: Call<'_>) -> Result<ValueRef<'_>> {
    match call.double(0)? {
        Some(value) => finite(call, value.exp()),
        None => Ok(ValueRef::Null),
    }
}

fn sqrt(call: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(match call.double(0)? {
        Some(value) if value >= 0.0 => ValueRef::Double(value.sqrt()),
        _ => ValueRef::Null,
    })
}

fn ln(call: Call<'_>) -> Result<ValueRef<'_>> {
    logarithm(call, call.double(0)?, f64::ln)
}

fn log2(call: Call<'_>) -> Result<ValueRef<'_>> {
    logarithm(call, call.double(0)?, f64::log2)
}

fn log10(call: Call<'_>) -> Result<ValueRef<'_>> {
    logarithm(call, call.double(0)?, f64::log10)
}

/// LOG(x) or LOG(base, x).
fn log(call: Call<'_>) -> Result<ValueRef<'_>> {
    if call.count() == 1 {
        return ln(call);
    }
    let Some(base) = call.double(0)? else { return Ok(ValueRef::Null) };
    if base <= 0.0 {
        return invalid_logarithm(call);
    }
    let Some(value) = call.double(1)? else { return Ok(ValueRef::Null) };
    if base == 1.0 {
        return invalid_logarithm(call);
    }
    logarithm(call, Some(value), |value| value.ln() / base.ln())
}

fn logarithm(call: Call<'_>, value: Option<f64>, of: impl FnOnce(f64) -> f64) -> Result<ValueRef<'_>> {
    match value {
        None => Ok(ValueRef::Null),
        Some(value) if value <= 0.0 => invalid_logarithm(call),
        Some(value) => finite(call, of(value)),
    }
}

fn pi(_: Call<'_>) -> Result<ValueRef<'_>> {
    Ok(ValueRef::Double(std::f64::consts::PI))
}

#[cold]
fn invalid_logarithm(call: Call<'_>) -> Result<ValueRef<'_>> {
    call.scratch().warn(ErrorCode::InvalidLogarithm, || "Invalid argument for logarithm".into())?;
    Ok(ValueRef::Null)
}

pub(super) fn finite(call: Call<'_>, value: f64) -> Result<ValueRef<'_>> {
    if !value.is_finite() {
        return Err(call.expression.out_of_range("DOUBLE", &call.context));
    }
    Ok(ValueRef::Double(value))
}
