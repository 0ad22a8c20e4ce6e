//! LAST_INSERT_ID(expression), which sets the session's last insert id to its argument.

use junctor_model::error::{Error, Result};
use junctor_model::value::ValueRef;

use super::function;
use super::{Call, Function, TypedCall, Volatility, any_nullable};
use crate::evaluate::to_integer;
use crate::program::Expression;
use crate::result_type::ResultType;

/// The call is never constant, because each evaluation has a side effect on the session.
pub(super) const TABLE: &[Function] = &[function("LAST_INSERT_ID", 0, 1, resolve, evaluate).volatile(Volatility::Row)];

fn resolve(name: &'static str, arguments: Vec<Expression>) -> Result<TypedCall> {
    // Without an argument, the session computes the value.
    if arguments.is_empty() {
        return Err(Error::not_supported(&format!("{name}() here")));
    }
    let nullable = any_nullable(&arguments);
    let result = ResultType::integer(true, arguments[0].result.length).with_nullable(nullable);
    Ok(TypedCall { arguments, result })
}

/// NULL sets the id to 0, and a negative number sets the unsigned number with the same bits, as in MySQL.
fn evaluate(call: Call<'_>) -> Result<ValueRef<'_>> {
    if call.count() == 0 {
        return Ok(ValueRef::Null);
    }
    let value = match call.value(0)? {
        ValueRef::Null => None,
        value => {
            let integer = to_integer(value, call.scratch())?.clamp(i64::MIN.into(), u64::MAX.into());
            Some(u64::try_from(integer).unwrap_or(integer as i64 as u64))
        }
    };
    call.scratch().note_last_insert_id(value.unwrap_or(0));
    Ok(value.map_or(ValueRef::Null, ValueRef::UInt))
}

#[cfg(test)]
mod tests {
    use junctor_model::value::Value;

    use super::*;
    use crate::{Parameters, Scratch};
    use junctor_model::collation::CollationId;

    fn evaluated(argument: Value) -> (Value, Option<u64>) {
        let argument = Expression::constant(argument, CollationId::DEFAULT);
        let call = Expression::call("last_insert_id", vec![argument]).expect("it has one argument");
        assert!(!call.is_constant());
        let mut scratch = Scratch::new();
        let value = call.evaluate(None, Parameters::NONE, &scratch).expect("it is a number").to_value();
        assert!(scratch.has_diagnostics());
        (value, scratch.take_last_insert_id())
    }

    #[test]
    fn the_argument_is_recorded_as_an_unsigned_number() {
        assert_eq!(evaluated(Value::Int(7)), (Value::UInt(7), Some(7)));
        assert_eq!(evaluated(Value::Int(-1)), (Value::UInt(u64::MAX), Some(u64::MAX)));
        assert_eq!(evaluated(Value::UInt(u64::MAX)), (Value::UInt(u64::MAX), Some(u64::MAX)));
        assert_eq!(evaluated(Value::Double(3.5)).1, Some(4));
        assert_eq!(evaluated(Value::Null), (Value::Null, Some(0)));
    }

    #[test]
    fn a_recorded_id_is_taken_once() {
        let mut scratch = Scratch::new();
        assert!(!scratch.has_diagnostics());
        scratch.note_last_insert_id(5);
        assert_eq!(scratch.take_last_insert_id(), Some(5));
        assert_eq!(scratch.take_last_insert_id(), None);
        assert!(!scratch.has_diagnostics());
    }
}
