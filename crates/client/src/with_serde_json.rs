//! Feature `serde_json`: JSON as [`Value`]. A document travels as its text in both directions.

use junctor_model::value::{self, ValueRef};
use serde_json::Value;

use super::error::{Error, Result};
use super::value::{FromValue, Parameter, ToValue, mismatch};

impl ToValue for Value {
    fn to_value(&self) -> Parameter<'_> {
        Parameter::Owned(value::Value::Bytes(self.to_string().into_bytes()))
    }
}

impl<'a> FromValue<'a> for Value {
    /// A JSON document, or a string that has the text of one. A number that is neither an integer of 64 bits
    /// nor a double is rounded to a double.
    fn from_value(value: ValueRef<'a>) -> Result<Value> {
        let ValueRef::Bytes(text) = value else { return Err(mismatch(value, "a JSON document")) };
        serde_json::from_slice(text).map_err(|error| Error::value(format!("The value is no JSON document: {error}")))
    }
}
