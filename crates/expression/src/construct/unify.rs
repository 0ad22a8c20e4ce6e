//! The common type of several results, for CASE, COALESCE and LEAST.

use junctor_model::error::Result;
use junctor_model::value::Value;

use super::collation::aggregate_collations;
use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, Kind, ResultType};
use crate::rules::{Merged, merged};

/// Maximum length of an unsigned integer type whose values always fit a signed BIGINT.
const SAFE_UNSIGNED_DIGITS: u32 = 10;

/// The common type of the expressions: [`merged`] from left to right. NULL if all are NULL. Error: 1267 for
/// an illegal mix of collations.
pub(crate) fn unify<'e>(
    operation: &str,
    operands: impl IntoIterator<Item = &'e Expression> + Clone,
) -> Result<ResultType> {
    let types = || operands.clone().into_iter().map(|operand| operand.result);
    let nullable = types().any(|result| result.nullable);
    let mut kind = Kind::Null;
    for result in types() {
        kind = unified_kind(kind, result.kind, types());
    }
    let fits_float =
        |result: ResultType| matches!(result.kind, Kind::Null | Kind::Float | Kind::Year) || result.is_narrow;
    if kind == Kind::Double && types().all(fits_float) {
        kind = Kind::Float;
    }
    let of_kind = || types().filter(|result| result.kind != Kind::Null);
    let length = of_kind().map(|result| result.length).max().unwrap_or(0);
    let result = match kind {
        Kind::Null => ResultType::null(),
        Kind::Int | Kind::UInt => {
            let is_narrow = of_kind().all(|result| result.kind == kind && result.is_narrow);
            ResultType { is_narrow, ..ResultType::integer(kind == Kind::UInt, length) }
        }
        Kind::Decimal => {
            let scale = of_kind().map(|result| result.scale()).max().unwrap_or(0);
            let integer_digits = of_kind().map(|result| result.integer_digits()).max().unwrap_or(0);
            let is_unsigned = of_kind().all(|result| result.has_no_sign());
            ResultType { is_unsigned, ..ResultType::decimal(integer_digits + u32::from(scale), scale) }
        }
        Kind::Double | Kind::Float => {
            // A double without a fixed number of digits has 31.
            let decimals = of_kind().map(|result| result.decimals).max().unwrap_or(0);
            let double = ResultType { decimals, ..ResultType::double() };
            if kind == Kind::Float { ResultType { kind, length: 12, ..double } } else { double }
        }
        Kind::Year | Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp => {
            ResultType::temporal(kind, of_kind().map(|result| result.scale()).max().unwrap_or(0))
        }
        Kind::Bit => ResultType { kind, ..ResultType::integer(true, length) },
        Kind::Json => ResultType::json(),
        Kind::Geometry => ResultType::geometry(),
        // Only one operand is not NULL.
        Kind::Enum | Kind::Set | Kind::String => {
            let all_text = of_kind().all(|result| result.is_text());
            let collation = aggregate_collations(operation, operands.clone())?;
            let coercibility = match collation.coercibility {
                // Strings converted from numbers have the coercibility of literals, so other strings prevail.
                Coercibility::Ignorable if !all_text => Coercibility::Coercible,
                coercibility => coercibility,
            };
            ResultType::string(collation.collation, coercibility, length)
        }
    };
    let result = match kind {
        Kind::Enum | Kind::Set if of_kind().count() == 1 => ResultType { kind, ..result },
        _ => result,
    };
    Ok(result.with_nullable(nullable))
}

/// Converts the expression to the kind of `result`. A constant is converted now if that loses nothing.
pub(crate) fn convert_to(expression: Expression, result: ResultType) -> Expression {
    let expression = if result.kind == Kind::String { expression.in_collation(result.collation) } else { expression };
    let kind = expression.result.kind;
    let same = kind == result.kind
        && (kind == Kind::Bit || expression.result.scale() == result.scale() || kind.is_text() || kind == Kind::Double);
    if same || kind == Kind::Null {
        return expression;
    }
    let nullable = expression.result.nullable;
    let converted = match (&expression.node, result.kind) {
        (Node::Constant(Value::Int(value)), Kind::Double) => Some(Value::Double(*value as f64)),
        (Node::Constant(Value::UInt(value)), Kind::Double) => Some(Value::Double(*value as f64)),
        (Node::Constant(Value::Decimal(value)), Kind::Double) => Some(Value::Double(value.to_double())),
        _ => None,
    };
    let node = match converted {
        Some(value) => Node::Constant(value),
        None => Node::Convert(Box::new(expression)),
    };
    Expression { node, result: result.with_nullable(nullable) }
}

/// Converts an operand of CASE and its kin to the kind of `result`. An exact number keeps its own digits
/// after the point, which the text of a column shows; elsewhere the choice has those of its type.
pub(crate) fn as_chosen(operand: Expression, result: ResultType) -> Expression {
    match (operand.result.kind, result.kind) {
        (Kind::Decimal, Kind::Decimal) => operand,
        (_, Kind::Decimal) => convert_to(operand, ResultType { decimals: 0, ..result }),
        _ => convert_to(operand, result),
    }
}

fn unified_kind(left: Kind, right: Kind, mut types: impl Iterator<Item = ResultType>) -> Kind {
    match merged(left, right) {
        Merged::Kind(kind) => kind,
        // BIT is unsigned, and a decimal beside a signed integer, however few bits it has.
        Merged::Signs => match types.all(|result| match result.kind {
            Kind::Bit => false,
            Kind::UInt => result.length <= SAFE_UNSIGNED_DIGITS,
            _ => true,
        }) {
            true => Kind::Int,
            false => Kind::Decimal,
        },
    }
}
