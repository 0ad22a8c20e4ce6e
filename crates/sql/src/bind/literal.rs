//! Binds literals as constants.

use junctor_expression::{CastTarget, Coercibility, CompareOperator, Expression, IsTest, Kind, ResultType};
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::decimal::{self, DECIMAL_PRECISION_MAX, DECIMAL_SCALE_MAX, NARROW_DIGITS_MAX};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::number::parse_decimal;
use junctor_model::schema::ColumnDefinition;
use junctor_model::temporal::{self as model, Temporal, Zone};
use junctor_model::types::Form;
use junctor_model::value::{Decimal, Value};

use super::environment::Environment;
use crate::parse::expression::{self as ast, Literal, StringLiteral, TemporalKind};
use crate::parse::literal::read_temporal;

/// Maximum number of bytes of a wrong text that a message shows.
const WRONG_BYTES_SHOWN: usize = 6;

/// Converts a literal into a constant. A string without a character set introducer gets the collation of the
/// connection.
pub(super) fn bind_literal(literal: &Literal, environment: &Environment<'_>) -> Result<Expression> {
    let collation = environment.collation;
    let constant = |value: Value| Expression::constant(value, collation);
    Ok(match literal {
        Literal::Null => Expression::null(),
        Literal::Boolean(value) => constant(Value::Int(i64::from(*value))),
        Literal::Integer(value) => constant(integer(*value)),
        // MySQL takes the largest number of 65 digits for one with more than 81 before the point.
        Literal::Decimal(text) => constant(Value::Decimal(
            decimal_of_text(text.as_bytes())
                .unwrap_or_else(|| decimal::largest(DECIMAL_PRECISION_MAX, 0, text.starts_with('-'))),
        )),
        Literal::Double(value) if value.is_finite() => constant(Value::Double(*value)),
        Literal::Double(_) => {
            return Err(Error::new(ErrorCode::IllegalValue, "Illegal double value found during parsing"));
        }
        Literal::String(text) => string(text, environment)?,
        Literal::Hexadecimal(bytes) | Literal::Bits(bytes) => {
            Expression::constant(Value::Bytes(bytes.clone()), CollationId::BINARY)
        }
        Literal::Temporal { kind, text } => constant(Value::Temporal(temporal(*kind, text, environment.rules.zone())?)),
    })
}

/// The value of a DATE, TIME or TIMESTAMP literal. Error 1525 for a text that is none.
fn temporal(kind: TemporalKind, text: &[u8], zone: Zone) -> Result<Temporal> {
    let name = match kind {
        TemporalKind::Date => "DATE",
        TemporalKind::Time => "TIME",
        TemporalKind::Timestamp => "DATETIME",
    };
    read_temporal(kind, text, zone).ok_or_else(|| {
        let shown = String::from_utf8_lossy(text);
        Error::new(ErrorCode::WrongLiteral, format!("Incorrect {name} value: '{shown}'"))
    })
}

/// Converts an operand that is used together with numbers. There a hexadecimal or bit literal is an unsigned
/// number: its last eight bytes, most significant first. Any other operand stays as `bound`.
pub(crate) fn literal_among_numbers(operand: &ast::Expression, bound: Expression) -> Expression {
    match number_of_literal(operand) {
        Some(number) => Expression::constant(Value::UInt(number), CollationId::BINARY),
        None => bound,
    }
}

/// As [`literal_among_numbers`]. The text of DATE_ADD and its kin is the number of its day or time.
pub(crate) fn among_numbers(operand: &ast::Expression, bound: Expression) -> Expression {
    literal_among_numbers(operand, bound).number_of_moment()
}

/// An operand that is compared with one of this type: as a number with a number, but as it is with a day or
/// time.
pub(super) fn beside(other: &ResultType, operand: &ast::Expression, bound: Expression) -> Expression {
    match other.kind {
        Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp => literal_among_numbers(operand, bound),
        kind if kind.is_number() => among_numbers(operand, bound),
        Kind::Json => as_truth(operand, bound).as_member(),
        _ => bound,
    }
}

/// The literals TRUE and FALSE as truth values, which they are in documents, and not as numbers.
pub(super) fn as_truth(written: &ast::Expression, bound: Expression) -> Expression {
    match written {
        ast::Expression::Literal(ast::Literal::Boolean(_)) => Expression::is(IsTest::True, false, bound),
        _ => bound,
    }
}

/// Whether some of the operands of BETWEEN or IN are numbers, and none is a day or time.
pub(super) fn are_plain_numbers<'e>(mut operands: impl Iterator<Item = &'e Expression>) -> bool {
    let is_moment = |kind| matches!(kind, Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp);
    let mut has_number = false;
    operands.all(|operand| {
        has_number |= operand.result.is_number();
        !is_moment(operand.result.kind)
    }) && has_number
}

/// A condition of WHERE, HAVING, ON, of a logical operator, IS TRUE or IS FALSE. A hexadecimal literal is a
/// number there. A document is compared with the document 0, so that all others are true, also `false`.
pub(crate) fn as_condition(written: &ast::Expression, bound: Expression) -> Result<Expression> {
    let bound = among_numbers(written, bound);
    if bound.result.kind != Kind::Json {
        return Ok(bound);
    }
    let zero = Expression::constant(Value::Int(0), CollationId::BINARY);
    Expression::comparison(CompareOperator::NotEqual, bound, zero)
}

/// Two operands that are compared, as they are written and bound. A hexadecimal or bit literal is a number
/// beside a number, and bytes beside a text.
pub(crate) fn compared(
    (left, bound_left): (&ast::Expression, Expression),
    (right, bound_right): (&ast::Expression, Expression),
) -> (Expression, Expression) {
    let left = beside(&bound_right.result, left, bound_left);
    let right = beside(&left.result, right, bound_right);
    (left, right)
}

/// The value that is assigned to a column. A hexadecimal or bit literal is a number in a column of numbers,
/// and bytes in others, such as TIME.
pub(crate) fn as_stored(column: &ColumnDefinition, value: &ast::Expression, bound: Expression) -> Expression {
    if column.column_type.form() == Form::Json {
        return bound.for_json_column();
    }
    // Another column's moment is a number in a BIT, a computed one its text.
    let is_moment = bound.result.kind.has_day() || bound.result.kind == Kind::Time;
    if column.column_type.form() == Form::Bit && is_moment && bound.as_column().is_some() {
        return Expression::cast(CastTarget::Signed, bound);
    }
    // A text becomes its bytes in a binary column, and bytes become text of the column's character set.
    let bound = match column.column_type.collation() {
        Some(collation) => bound.in_collation(collation),
        None => bound,
    };
    // An empty SET, or a computed ENUM that is no member, is the member '' of an ENUM that has one. The
    // number 0 would be no member. Another column's ENUM keeps it.
    let is_computed = bound.result.kind == Kind::Enum && bound.as_column().is_none();
    if column.column_type.form() == Form::Enum && (bound.result.kind == Kind::Set || is_computed) {
        let result = bound.result;
        let text = ResultType::string(result.collation, Coercibility::Coercible, result.length);
        return bound.converted(text.with_nullable(result.nullable));
    }
    match column.column_type.collation() {
        None if takes_bytes(column) => bound,
        None => literal_among_numbers(value, bound),
        // A computed FLOAT is stored as the double that it is; one of a column has the digits of a FLOAT.
        Some(_) if bound.as_column().is_none() && bound.result.kind == Kind::Float => {
            let nullable = bound.result.nullable;
            bound.converted(ResultType::double().with_nullable(nullable))
        }
        Some(_) if bound.as_column().is_none() => bound,
        // Another column's number has the leading zeros and fixed digits of its type in TEXT and BLOB only,
        // and its bits are digits in the other types only.
        Some(collation) if column.column_type.is_text_or_blob() && bound.result.is_formatted() => {
            let nullable = bound.result.nullable;
            let text = ResultType::string(collation, Coercibility::Coercible, bound.result.length);
            bound.converted(text.with_nullable(nullable))
        }
        Some(_) if !column.column_type.is_text_or_blob() && bound.result.kind == Kind::Bit => {
            let number = bound.result.as_number();
            bound.converted(number)
        }
        Some(_) => bound,
    }
}

/// Whether bytes are a text for this column, although it has no collation.
pub(crate) fn takes_bytes(column: &ColumnDefinition) -> bool {
    match column.column_type.form() {
        Form::Temporal(kind) => kind != model::TemporalKind::Year,
        form => form == Form::Json,
    }
}

/// The number that a hexadecimal or bit literal denotes in numeric context; `None` for any other operand.
pub(crate) fn number_of_literal(operand: &ast::Expression) -> Option<u64> {
    let ast::Expression::Literal(Literal::Hexadecimal(bytes) | Literal::Bits(bytes)) = operand else { return None };
    let last = &bytes[bytes.len().saturating_sub(8)..];
    Some(last.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
}

/// A string. Behind an introducer its bytes, as the client has sent them, are text of that character set.
/// Error 1300 if they are not.
fn string(text: &StringLiteral, environment: &Environment<'_>) -> Result<Expression> {
    let Some(name) = &text.character_set else {
        let set = environment.collation.character_set();
        let mut bytes = text.bytes.clone();
        if !environment.client.is_within(set) && !set.is_valid(&bytes) {
            bytes.clear();
            set.append_representable(&text.bytes, &mut bytes);
        }
        return Ok(Expression::constant(Value::Bytes(bytes), environment.collation));
    };
    let set = CharacterSet::named(name)?;
    let text = text_behind_introducer(text, environment.client, set)?;
    let own = environment.collation;
    let collation = if own.character_set() == set { own } else { set.default_collation() };
    Ok(Expression::constant(Value::Bytes(text), collation))
}

/// The text of a literal with an introducer. Error 1300 for bytes that are no text of the character set.
pub(crate) fn text_behind_introducer(
    literal: &StringLiteral,
    client: CharacterSet,
    set: CharacterSet,
) -> Result<Vec<u8>> {
    let text = &literal.bytes;
    let mut sent = Vec::with_capacity(text.len());
    match client.is_recoded() && !literal.is_raw {
        true => {
            client.encode(text, &mut sent);
        }
        false => sent.extend_from_slice(text),
    }
    let mut decoded = Vec::with_capacity(sent.len());
    set.decode(&sent, &mut decoded);
    if set.is_valid(&decoded) {
        return Ok(decoded);
    }
    let wrong = &decoded[set.valid_bytes(&decoded)..];
    let shown: String = wrong.iter().take(WRONG_BYTES_SHOWN).map(|byte| format!("{byte:02X}")).collect();
    Err(Error::new(ErrorCode::InvalidCharacterString, format!("Invalid {} character string: '{shown}'", set.name())))
}

fn integer(value: i128) -> Value {
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => Value::Int(value),
        (_, Ok(value)) => Value::UInt(value),
        _ => Value::Decimal(decimal::from_integer(value)),
    }
}

/// The value of decimal digits with an optional sign and at most one decimal point, rounded half away from
/// zero to 30 digits after the point. `None` for more than 81 digits before the point.
pub fn decimal_of_text(text: &[u8]) -> Option<Decimal> {
    let (mut mantissa, mut digits, mut scale) = (0i128, 0, 0);
    let mut has_point = false;
    for byte in text {
        match byte {
            b'0'..=b'9' if scale == DECIMAL_SCALE_MAX => {
                mantissa += i128::from(*byte >= b'5');
                break;
            }
            b'0'..=b'9' => {
                digits += u8::from(digits > 0 || *byte != b'0');
                if digits > NARROW_DIGITS_MAX {
                    return parse_decimal(text).value;
                }
                mantissa = mantissa * 10 + i128::from(byte - b'0');
                scale += u8::from(has_point);
            }
            b'.' => has_point = true,
            _ => {}
        }
    }
    let mantissa = if text.first() == Some(&b'-') { -mantissa } else { mantissa };
    Some(decimal::new(mantissa, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_has_its_own_scale_up_to_thirty_digits_and_at_most_81_digits() {
        let of = |text: &str| {
            decimal_of_text(text.as_bytes()).map(|value| {
                let mut shown = Vec::new();
                value.append_text(&mut shown);
                String::from_utf8(shown).unwrap()
            })
        };
        for text in
            ["-12.50", &"9".repeat(38), &"9".repeat(39), &"9".repeat(81), "123456789.000000000000000000000000000000"]
        {
            assert_eq!(of(text).as_deref(), Some(text));
        }
        assert_eq!(of("000.5").as_deref(), Some("0.5"));
        assert_eq!(of(&"9".repeat(82)), None);
        assert_eq!(of("0.0000000000000000000000000000015").as_deref(), Some("0.000000000000000000000000000002"));
        assert_eq!(of("-0.00000000000000000000000000000149").as_deref(), Some("-0.000000000000000000000000000001"));
        // 70 digits before the point leave one group of nine after it.
        let (whole, fraction) = ("9".repeat(70), "123456789");
        assert_eq!(of(&format!("{whole}.{fraction}999")), Some(format!("{whole}.{fraction}")));
    }
}
