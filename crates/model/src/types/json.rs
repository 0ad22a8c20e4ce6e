//! JSON.

use super::{DataType, Family, Form, TypeDescriptor, WireType};
use crate::error::{Error, ErrorCode, Result};
use crate::json::{JsonError, is_valid, parse};
use crate::row::SlotKind;
use crate::row_encoding::{column_flag, wire_type};
use crate::scratch::{Scratch, to_text};
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::value::{Value, ValueRef};

pub(super) struct JsonType;

impl DataType {
    /// JSON.
    pub const fn json() -> DataType {
        DataType::plain(Family::Json)
    }
}

impl TypeDescriptor for JsonType {
    fn name(&self, _: &DataType) -> &'static str {
        "json"
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Json
    }

    fn slot(&self, _: &DataType) -> SlotKind {
        SlotKind::Json
    }

    fn key_bytes(&self, _: &DataType) -> Option<usize> {
        None
    }

    fn row_bytes(&self, _: &DataType) -> usize {
        // A length prefix and a pointer.
        4 + 8
    }

    fn wire(&self, _: &DataType) -> WireType {
        let flags = column_flag::BLOB | column_flag::BINARY;
        WireType { code: wire_type::JSON, length: u32::MAX, decimals: 0, flags }
    }

    /// The document null.
    fn implicit_default(&self, _: &DataType) -> Value {
        Value::Json([0].into())
    }

    fn store<'r>(
        &self,
        _: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let document = match value {
            // Replay refuses a row with an invalid document, and the partition would not load.
            ValueRef::Json(document) if !is_valid(document) => {
                return Err(wrong_text(JsonError::Invalid("Invalid value.", 0), &target.column.name));
            }
            ValueRef::Json(document) => document,
            ValueRef::Bytes(_) | ValueRef::Choice(_) => {
                let text = to_text(value, scratch)?;
                let mut outcome = Ok(());
                let document = scratch.build_text(|buffer| outcome = parse(text, buffer))?;
                outcome.map_err(|defect| wrong_text(defect, &target.column.name))?;
                document
            }
            // As in MySQL, only a cast makes a document of a number, a truth value, a day or a time.
            _ => return Err(wrong_text(JsonError::Invalid("not a JSON text, may need CAST", 0), &target.column.name)),
        };
        Ok(ValueRef::Json(document))
    }

    fn stored(&self, _: &DataType) -> StoredType {
        StoredType::Json {}
    }
}

/// Error 3140 or 3157, also in lenient mode.
#[cold]
fn wrong_text(defect: JsonError, column: &str) -> Box<Error> {
    match defect {
        JsonError::Invalid(what, position) => {
            let text = format!("Invalid JSON text: \"{what}\" at position {position} in value for column '{column}'.");
            Error::new(ErrorCode::InvalidJsonText, text)
        }
        JsonError::TooDeep => Error::new(ErrorCode::JsonTooDeep, "The JSON document exceeds the maximum depth."),
    }
}
