//! DEFAULT clauses: converts literals to values of the column's type.

use junctor_model::collation::CharacterSet;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::number::parse_decimal;
use junctor_model::schema::{ColumnDefinition, ColumnExpression, ExpressionKind};
use junctor_model::scratch::Scratch;
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::temporal::{TemporalKind, ValueRules};
use junctor_model::types::Form;
use junctor_model::value::Value;

use super::expression::{self, Purpose};
use super::message;
use crate::bind::text_behind_introducer;
use crate::parse::definition::DefaultValue;
use crate::parse::expression::{Expression, Literal};

/// Sets the default of a column whose type and nullability are known: the written value, otherwise NULL for a
/// nullable column.
///
/// # Errors
/// 1067 for a value outside the column's type, 1101 for any value of TEXT or BLOB, and the errors of
/// [`expression::normal_form`].
pub(super) fn set_default(
    column: &mut ColumnDefinition,
    written: Option<&DefaultValue>,
    rules: ValueRules,
) -> Result<()> {
    if column.is_generated() {
        return Ok(());
    }
    column.expression = None;
    let written = match written {
        None => None,
        Some(DefaultValue::Plain(value)) => Some(value),
        Some(DefaultValue::Computed(_)) if column.auto_increment => return Err(message::invalid_default(&column.name)),
        Some(DefaultValue::Computed(value)) => {
            let text = expression::normal_form(Purpose::Default(&column.name), value)?;
            column.expression = Some(ColumnExpression { text, kind: ExpressionKind::Default });
            (column.default, column.default_now) = (None, false);
            return Ok(());
        }
    };
    column.default_now = is_clock_of(column, written.filter(|written| is_clock(written)))?;
    column.default = if column.default_now { None } else { default_of(column, written, rules)? };
    Ok(())
}

/// Whether ON UPDATE is CURRENT_TIMESTAMP with the digits of the column. Error 1294 for a column of another
/// type or number of digits.
pub(super) fn is_updated_by_clock(column: &ColumnDefinition, written: Option<&Expression>) -> Result<bool> {
    let name = &column.name;
    is_clock_of(column, written)
        .map_err(|_| Error::new(ErrorCode::InvalidOnUpdate, format!("Invalid ON UPDATE clause for '{name}' column")))
}

/// Whether DEFAULT is CURRENT_TIMESTAMP with the digits of the column. Error 1067 for a column of another
/// type or number of digits.
fn is_clock_of(column: &ColumnDefinition, written: Option<&Expression>) -> Result<bool> {
    let Some(Expression::Function(call)) = written else { return Ok(false) };
    let digits = match call.arguments.as_slice() {
        [] => Some(0),
        [Expression::Literal(Literal::Integer(digits))] => u8::try_from(*digits).ok(),
        _ => None,
    };
    let is_instant =
        matches!(column.column_type.form(), Form::Temporal(TemporalKind::DateTime | TemporalKind::Timestamp));
    match is_instant && digits == Some(column.column_type.scale()) {
        true => Ok(true),
        false => Err(message::invalid_default(&column.name)),
    }
}

fn default_of(column: &ColumnDefinition, written: Option<&Expression>, rules: ValueRules) -> Result<Option<Value>> {
    let name = &column.name;
    let Some(expression) = written else {
        return Ok(column.nullable.then_some(Value::Null));
    };
    let literal = match expression {
        Expression::Literal(literal) => literal,
        _ => return Err(message::invalid_default(name)),
    };
    if column.auto_increment {
        return Err(message::invalid_default(name));
    }
    if *literal == Literal::Null {
        return if column.nullable { Ok(Some(Value::Null)) } else { Err(message::invalid_default(name)) };
    }
    if column.column_type.is_text_or_blob() {
        return Err(message::blob_default(name));
    }
    let Some(value) = value_of(literal, column.column_type.form())? else { return Err(message::invalid_default(name)) };
    let target = StoreTarget { column, row_number: 1, mode: StoreMode::Strict };
    let scratch = Scratch::new();
    scratch.set_value_rules(rules);
    match target.convert(value.as_ref(), &scratch) {
        Ok(stored) => Ok(Some(stored.to_value())),
        Err(_) => Err(message::invalid_default(name)),
    }
}

/// Whether the function is CURRENT_TIMESTAMP or a synonym, which only a temporal column may have as default.
fn is_clock(expression: &Expression) -> bool {
    matches!(expression, Expression::Function(call) if call.is_current_timestamp())
}

/// The value of a literal for a column of this form; `None` if the form has no such values. Errors: 1115 and
/// 1235 for the character set of an introducer.
fn value_of(literal: &Literal, form: Form) -> Result<Option<Value>> {
    let text = |text: &[u8]| Some(Value::Bytes(text.to_vec()));
    Ok(match literal {
        Literal::Null => None,
        Literal::Boolean(value) => Some(Value::Int(i64::from(*value))),
        Literal::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => Some(Value::Int(value)),
            (_, Ok(value)) => Some(Value::UInt(value)),
            _ => text(value.to_string().as_bytes()),
        },
        Literal::Decimal(digits) => match parse_decimal(digits.as_bytes()).value {
            Some(value) => Some(Value::Decimal(value)),
            None => text(digits.as_bytes()),
        },
        Literal::Double(value) => Some(Value::Double(*value)),
        Literal::String(string) => {
            if let Some(set) = &string.character_set {
                let set = CharacterSet::named(set)?;
                // The bytes that a client has sent for other characters depend on its character set.
                if set.is_recoded() && !string.is_raw && !string.bytes.is_ascii() {
                    return Err(Error::not_supported("a character set introducer in DEFAULT"));
                }
                return Ok(Some(Value::Bytes(text_behind_introducer(string, CharacterSet::Utf8mb4, set)?)));
            }
            text(&string.bytes)
        }
        Literal::Hexadecimal(bytes) | Literal::Bits(bytes) if form == Form::Bytes => text(bytes),
        Literal::Hexadecimal(bytes) | Literal::Bits(bytes) => big_endian(bytes).map(Value::UInt),
        Literal::Temporal { text: written, .. } if matches!(form, Form::Bytes | Form::Temporal(_)) => text(written),
        Literal::Temporal { .. } => None,
    })
}

fn big_endian(bytes: &[u8]) -> Option<u64> {
    let significant = bytes.iter().position(|byte| *byte != 0).map_or(&[][..], |start| &bytes[start..]);
    (significant.len() <= 8).then(|| significant.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use junctor_model::collation::CollationId;
    use junctor_model::types::DataType;

    use super::*;

    fn default(column_type: DataType, literal: Literal) -> Option<Value> {
        let column = ColumnDefinition::new("c", column_type);
        default_of(&column, Some(&Expression::Literal(literal)), ValueRules::DEFAULT).ok().flatten()
    }

    #[test]
    fn decimal_defaults_of_integers_round_without_loss_of_digits() {
        let cases = [
            ("18446744073709551614.6", Some(18_446_744_073_709_551_615)),
            ("10000000000000000001.4", Some(10_000_000_000_000_000_001)),
            ("9007199254740993.4", Some(9_007_199_254_740_993)),
            ("0.49999999999999999999", Some(0)),
            ("2.5", Some(3)),
            ("-0.1", None),
            (".5", Some(1)),
            ("4.", Some(4)),
            ("00000000000000000000000001.2", Some(1)),
            ("0.000000000000000000000000000000000000000000000000000000000009", Some(0)),
            ("18446744073709551615.5", None),
            ("100000000000000000000000000000000000000000000000000.0", None),
        ];
        for (text, expected) in cases {
            let found = default(DataType::integer(8, true), Literal::Decimal(text.into()));
            assert_eq!(found, expected.map(Value::UInt), "{text}");
        }
    }

    #[test]
    fn a_default_is_what_the_column_would_store() {
        let int = || DataType::integer(4, false);
        let varchar = || DataType::varchar(3, CollationId::DEFAULT);
        let cases = [
            (int(), Literal::Double(12.5), Some(Value::Int(12))),
            (int(), Literal::Boolean(true), Some(Value::Int(1))),
            (int(), Literal::Hexadecimal(vec![0, 0, 0, 0, 0, 0, 0, 1, 2]), Some(Value::Int(258))),
            (int(), Literal::Integer(1 << 31), None),
            (DataType::double(), Literal::Decimal("0.1".into()), Some(Value::Double(0.1))),
            (varchar(), Literal::Decimal(".5".into()), Some(Value::Bytes(b"0.5".to_vec()))),
            (varchar(), Literal::Integer(-12), Some(Value::Bytes(b"-12".to_vec()))),
            (varchar(), Literal::Integer(1234), None),
            (varchar(), Literal::Hexadecimal(b"ab".to_vec()), Some(Value::Bytes(b"ab".to_vec()))),
            (DataType::char(3, CollationId::BINARY), Literal::Bits(vec![7]), Some(Value::Bytes(vec![7, 0, 0]))),
            (DataType::text_or_blob(2, CollationId::DEFAULT), Literal::Integer(1), None),
        ];
        for (column_type, literal, expected) in cases {
            let shown = format!("{column_type:?} {literal:?}");
            assert_eq!(default(column_type, literal), expected, "{shown}");
        }
    }
}
