//! JSON_VALUE. Its arguments are the document and the path, and, if clauses are written, five more: NULL of
//! the type after RETURNING, and for ON EMPTY and ON ERROR each an [`Otherwise`] as a number, and the value
//! of DEFAULT.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::json::{self, Json};
use junctor_model::scratch::{Scratch, excerpt};
use junctor_model::temporal::{
    DateRules, Defects, Parts, Read, Temporal, TemporalKind, parse_date_time, parse_time, rounded,
};
use junctor_model::value::{Decimal, Value, ValueRef};

use super::super::{Call, TypedCall};
use crate::decimal;
use crate::number::{parse_decimal, parse_double, parse_integer};
use crate::program::Expression;
use crate::result_type::{Coercibility, Kind, ResultType};

/// Characters of the type without RETURNING.
const CHARACTERS_DEFAULT: u32 = 512;
/// The position of NULL of the type.
const RETURNING: usize = 2;
/// The positions of the actions. Each is followed by the value of DEFAULT.
const ON_EMPTY: usize = 3;
const ON_ERROR: usize = 5;

/// The action of ON EMPTY or ON ERROR. The numbers are arguments of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// The value is NULL.
    Null = 0,
    /// The value is that of DEFAULT.
    Default = 1,
    /// The statement fails.
    Error = 2,
}

/// Why a value does not fit the type.
pub(super) enum Misfit {
    /// It is no value of the type, or beyond its range.
    Value,
    /// A default that is no number or day, with the message's words before it.
    Text(&'static str),
    /// A default that loses digits or characters.
    Default(&'static str),
}

pub(super) type Fit<T> = std::result::Result<T, Misfit>;

/// The type is that of the third argument. Errors for a default that does not fit the type: 1292, 1690, 3141.
pub(super) fn resolve(_: &'static str, mut arguments: Vec<Expression>) -> Result<TypedCall> {
    if arguments.len() == 2 {
        let text = ResultType::string(CollationId::UTF8MB4_0900_BIN, Coercibility::Coercible, CHARACTERS_DEFAULT);
        arguments.push(Expression::constant_of_type(Value::Null, text));
        for _ in 0..2 {
            arguments.push(Expression::constant(Value::Int(0), CollationId::BINARY));
            arguments.push(Expression::null());
        }
    }
    if arguments.len() != 7 {
        return Err(super::super::wrong_count("JSON_VALUE"));
    }
    let mut result = ResultType { nullable: true, ..arguments[RETURNING].result };
    if result.kind == Kind::String {
        result.coercibility = Coercibility::Coercible;
    }
    arguments[RETURNING] = Expression::constant_of_type(Value::Null, result);
    for position in [ON_EMPTY, ON_ERROR] {
        if action(&arguments[position]) == Otherwise::Default {
            let written = match arguments[position + 1].as_constant() {
                Some(value) => value.clone(),
                None => return Err(Error::not_supported("a DEFAULT of JSON_VALUE that is no literal")),
            };
            let value = default_value(written.as_ref(), &result)?;
            arguments[position + 1] = Expression::constant_of_type(value, result);
        }
    }
    Ok(TypedCall { arguments, result })
}

/// Errors: 3144 and 3146 for a document of another type; with ERROR ON EMPTY 3966; with ERROR ON ERROR 1690
/// for a value that does not fit the type, 3141 for an invalid document, 3967 for several values.
pub(super) fn value(call: Call<'_>) -> Result<ValueRef<'_>> {
    // Errors of the argument itself are not those of reading it.
    let argument = call.rounded(0)?;
    let document = match call.document_of(argument, 0) {
        Ok(Some(document)) => document,
        Ok(None) => return Ok(ValueRef::Null),
        Err(error) if error.code == ErrorCode::InvalidJsonArgument => {
            if action(&call.arguments[ON_ERROR]) != Otherwise::Error {
                call.scratch().note(error.code, || error.message.to_string());
            }
            return instead(call, ON_ERROR, || error);
        }
        Err(error) => return Err(error),
    };
    let Some(path) = call.path(1)? else { return Ok(ValueRef::Null) };
    let (mut first, mut count) = (None, 0);
    path.find(document, &mut |value| {
        first = first.or(Some(value));
        count += 1;
    });
    let Some(found) = first else {
        return instead(call, ON_EMPTY, || {
            let message = "No value was found by 'json_value' on the specified path.";
            Error::new(ErrorCode::MissingJsonValue, message)
        });
    };
    if count > 1 {
        return instead(call, ON_ERROR, || {
            let message = "More than one value was found by 'json_value' on the specified path.";
            Error::new(ErrorCode::MultipleJsonValues, message)
        });
    }
    if Json::of(found) == Json::Null {
        return Ok(ValueRef::Null);
    }
    match fitted(found, call.result, call.scratch())? {
        Ok(value) => Ok(value),
        Err(_) => instead(call, ON_ERROR, || out_of_range(call.result)),
    }
}

/// The value of ON EMPTY or ON ERROR.
fn instead<'r>(call: Call<'r>, position: usize, error: impl FnOnce() -> Box<Error>) -> Result<ValueRef<'r>> {
    match action(&call.arguments[position]) {
        Otherwise::Null => Ok(ValueRef::Null),
        Otherwise::Default => call.value(position + 1),
        Otherwise::Error => Err(error()),
    }
}

fn action(argument: &Expression) -> Otherwise {
    match argument.as_constant() {
        Some(Value::Int(1)) => Otherwise::Default,
        Some(Value::Int(2)) => Otherwise::Error,
        _ => Otherwise::Null,
    }
}

/// Error 1690 for a value that does not fit the type.
#[cold]
fn out_of_range(result: &ResultType) -> Box<Error> {
    let what = match result.kind {
        Kind::String => "STRING",
        _ => type_name(result),
    };
    Error::new(ErrorCode::NumericOutOfRange, format!("{what} value is out of range in 'json_value'"))
}

fn type_name(result: &ResultType) -> &'static str {
    match result.kind {
        Kind::Int => "SIGNED",
        Kind::UInt => "UNSIGNED",
        Kind::Decimal => "DECIMAL",
        Kind::Double => "DOUBLE",
        Kind::Float => "FLOAT",
        Kind::Year => "YEAR",
        Kind::Date => "DATE",
        Kind::Time => "TIME",
        Kind::DateTime | Kind::Timestamp => "DATETIME",
        _ => "CHAR",
    }
}

/// A part of a document as a value of the type. Fractions are rounded. A text must be a value of the type as
/// a whole.
pub(super) fn fitted<'r>(part: &'r [u8], result: &ResultType, scratch: &'r Scratch) -> Result<Fit<ValueRef<'r>>> {
    let json = Json::of(part);
    if result.kind == Kind::Json {
        return Ok(Ok(ValueRef::Json(part)));
    }
    if result.kind == Kind::String {
        let text = text_of(part, json, scratch)?;
        return Ok(fitting_text(text, result).map(ValueRef::Bytes));
    }
    Ok(match (result.kind, json) {
        (_, Json::Array(_) | Json::Object(_) | Json::Opaque { .. } | Json::Null) => Err(Misfit::Value),
        (Kind::Date | Kind::Time | Kind::DateTime, Json::Temporal(value)) => {
            let parts = if result.kind == Kind::Time { value.to_time() } else { value.to_date_time() };
            moment(Read::from_parts(value.kind, parts.parts()), result).map(ValueRef::Temporal)
        }
        (Kind::Date | Kind::Time | Kind::DateTime, Json::String(text)) => {
            moment(read(text, result.kind), result).map(ValueRef::Temporal)
        }
        (Kind::Date | Kind::Time | Kind::DateTime, _) | (_, Json::Temporal(_)) => Err(Misfit::Value),
        (_, scalar) => number(scalar.as_scalar().unwrap_or(ValueRef::Null), result),
    })
}

/// A part as text: a string without quotes, anything else as clients see it.
fn text_of<'r>(part: &'r [u8], json: Json<'r>, scratch: &'r Scratch) -> Result<&'r [u8]> {
    if let Json::String(text) = json {
        return Ok(text);
    }
    let printed = scratch.build_text(|buffer| json::append_text(part, buffer))?;
    Ok(match json {
        Json::Temporal(_) | Json::Opaque { .. } => &printed[1..printed.len() - 1],
        _ => printed,
    })
}

fn fitting_text<'r>(text: &'r [u8], result: &ResultType) -> Fit<&'r [u8]> {
    let characters = result.collation.character_set();
    let is_short = text.len() <= result.length as usize || characters.character_count(text) <= result.length as usize;
    if is_short && characters.is_valid(text) { Ok(text) } else { Err(Misfit::Value) }
}

fn read(text: &[u8], kind: Kind) -> Read {
    if kind == Kind::Time { parse_time(text, None) } else { parse_date_time(text, DateRules::DEFAULT) }
}

/// A day or time of the type, with its digits.
fn moment(read: Read, result: &ResultType) -> Fit<Temporal> {
    let (Some(parts), true) = (read.parts, read.defects.is_none()) else { return Err(Misfit::Value) };
    let (kind, digits) = (result.kind.temporal().unwrap_or(TemporalKind::DateTime), result.scale());
    let parts = match kind {
        TemporalKind::Date => Parts { hour: 0, minute: 0, second: 0, microsecond: 0, ..parts },
        _ => rounded(kind, parts, read.nanoseconds, digits).0.ok_or(Misfit::Value)?,
    };
    Ok(Temporal::from_parts(kind, digits, &parts))
}

/// A number of the type from a number or a text.
fn number<'r>(value: ValueRef<'_>, result: &ResultType) -> Fit<ValueRef<'r>> {
    Ok(match result.kind {
        Kind::Int => ValueRef::Int(integer(value)?.try_into().map_err(|_| Misfit::Value)?),
        Kind::UInt => ValueRef::UInt(integer(value)?.try_into().map_err(|_| Misfit::Value)?),
        Kind::Year => match integer(value)? {
            year @ (0 | 1901..=2155) => ValueRef::Temporal(Temporal::year(year as u16)),
            _ => return Err(Misfit::Value),
        },
        Kind::Decimal => ValueRef::Decimal(exact(value, result)?),
        Kind::Double => ValueRef::Double(double(value)?),
        Kind::Float => match double(value)? {
            number if number.abs() <= f64::from(f32::MAX) => ValueRef::Float(number as f32),
            _ => return Err(Misfit::Value),
        },
        _ => return Err(Misfit::Value),
    })
}

fn integer(value: ValueRef<'_>) -> Fit<i128> {
    match value {
        ValueRef::Int(value) => Ok(value.into()),
        ValueRef::UInt(value) => Ok(value.into()),
        ValueRef::Double(value) => Ok(value.round_ties_even() as i128),
        ValueRef::Decimal(value) => Ok(decimal::to_integer(value)),
        ValueRef::Bytes(text) => {
            let parsed = parse_integer(text, false);
            if parsed.is_truncated { Err(Misfit::Text("")) } else { Ok(parsed.value) }
        }
        _ => Err(Misfit::Value),
    }
}

fn double(value: ValueRef<'_>) -> Fit<f64> {
    let parsed = match value.to_double() {
        Ok(number) => return Ok(number),
        Err(text) => parse_double(text),
    };
    match (parsed.is_truncated, parsed.is_out_of_range) {
        (true, _) => Err(Misfit::Text("")),
        (_, true) => Err(Misfit::Value),
        _ => Ok(parsed.value),
    }
}

fn exact(value: ValueRef<'_>, result: &ResultType) -> Fit<Decimal> {
    let number = match value {
        ValueRef::Int(value) => decimal::from_integer(value.into()),
        ValueRef::UInt(value) => decimal::from_integer(value.into()),
        ValueRef::Decimal(value) => value,
        ValueRef::Double(value) => decimal::from_double(value, None).ok_or(Misfit::Value)?,
        ValueRef::Bytes(text) => {
            let parsed = parse_decimal(text);
            if parsed.is_truncated {
                return Err(Misfit::Text(""));
            }
            parsed.value.ok_or(Misfit::Value)?
        }
        _ => return Err(Misfit::Value),
    };
    let precision = result.length.saturating_sub(1 + u32::from(result.decimals > 0)) as u8;
    let rounded = decimal::with_scale(number, result.decimals);
    rounded.filter(|rounded| decimal::fits_digits(*rounded, precision)).ok_or(Misfit::Value)
}

/// The literal after DEFAULT as a value of the type, which must not lose anything.
fn default_value(written: ValueRef<'_>, result: &ResultType) -> Result<Value> {
    let scratch = Scratch::new();
    default_fit(written, result, &scratch)?.map(|value| value.to_value()).map_err(|misfit| {
        let text = crate::scratch::to_text(written, &scratch).unwrap_or_default();
        match misfit {
            Misfit::Text(what) => {
                Error::new(ErrorCode::TruncatedWrongValue, format!("{what} value: '{}'", excerpt(text)))
            }
            Misfit::Default(what) => {
                let message = format!("{what} DEFAULT value is out of range in 'json_value'");
                Error::new(ErrorCode::NumericOutOfRange, message)
            }
            Misfit::Value => {
                let message = format!("{} value is out of range in 'json_value'", type_name(result));
                Error::new(ErrorCode::NumericOutOfRange, message)
            }
        }
    })
}

fn default_fit<'r>(written: ValueRef<'r>, result: &ResultType, scratch: &'r Scratch) -> Result<Fit<ValueRef<'r>>> {
    let name = type_name(result);
    Ok(match result.kind {
        Kind::Json => {
            let text = crate::scratch::to_text(written, scratch)?;
            let mut failure = None;
            let document = scratch.build_text(|buffer| failure = json::parse(text, buffer).err())?;
            match failure {
                None => Ok(ValueRef::Json(document)),
                Some(json::JsonError::Invalid(defect, at)) => {
                    let message = format!(
                        "Invalid JSON text in argument 1 to function json_value: \"{defect}\" at position {at}."
                    );
                    return Err(Error::new(ErrorCode::InvalidJsonArgument, message));
                }
                Some(json::JsonError::TooDeep) => {
                    let message = "The JSON document exceeds the maximum depth.";
                    return Err(Error::new(ErrorCode::JsonTooDeep, message));
                }
            }
        }
        Kind::String => {
            let text = crate::scratch::to_text(written, scratch)?;
            fitting_text(text, result).map(ValueRef::Bytes).map_err(|_| Misfit::Default(name))
        }
        Kind::Date | Kind::Time | Kind::DateTime => {
            let read = match written {
                ValueRef::Temporal(value) if result.kind == Kind::Time => {
                    Read::from_parts(TemporalKind::Time, value.to_time().parts())
                }
                ValueRef::Temporal(value) => Read::from_parts(value.kind, value.to_date_time().parts()),
                other => read(crate::scratch::to_text(other, scratch)?, result.kind),
            };
            default_moment(read, result).map(ValueRef::Temporal)
        }
        kind => number(written, result)
            .and_then(|value| match value {
                ValueRef::Decimal(kept) if !is_same(kept, written) => Err(Misfit::Value),
                value => Ok(value),
            })
            .map_err(|misfit| match (misfit, kind) {
                (Misfit::Text(_), Kind::Int) => Misfit::Text("Truncated incorrect INTEGER SIGNED"),
                (Misfit::Text(_), Kind::UInt) => Misfit::Text("Truncated incorrect INTEGER UNSIGNED"),
                (Misfit::Text(_), Kind::Year) => Misfit::Text("Truncated incorrect YEAR"),
                (Misfit::Text(_), Kind::Decimal) => Misfit::Text("Truncated incorrect DECIMAL"),
                (Misfit::Text(_), _) => Misfit::Text("Truncated incorrect DOUBLE"),
                (_, Kind::Year) => Misfit::Value,
                _ => Misfit::Default(name),
            }),
    })
}

/// A default that is a day or time. Digits that the type lacks are an error.
fn default_moment(read: Read, result: &ResultType) -> Fit<Temporal> {
    let is_time = result.kind == Kind::Time;
    if read.parts.is_none() || read.defects != Defects::default() {
        return Err(Misfit::Text(if is_time { "Truncated incorrect time" } else { "Incorrect datetime" }));
    }
    let kept = moment(read, result)?;
    let parts = read.parts.unwrap_or_default();
    let is_exact =
        read.nanoseconds == 0 && (result.kind == Kind::Date || kept.parts().microsecond == parts.microsecond);
    if is_exact { Ok(kept) } else { Err(Misfit::Default("TIME")) }
}

/// Whether a decimal has kept all digits of a literal.
fn is_same(kept: Decimal, written: ValueRef<'_>) -> bool {
    let original = match written {
        ValueRef::Decimal(value) => Some(value),
        ValueRef::Double(value) => decimal::from_double(value, None),
        ValueRef::Bytes(text) => parse_decimal(text).value,
        _ => return true,
    };
    original.is_some_and(|original| original == kept)
}
