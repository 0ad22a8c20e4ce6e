//! The user variables of a session.

use std::collections::BTreeMap;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::limit::IDENTIFIER_CHARACTERS_MAX;
use junctor_model::value::Value;

/// User variables of one session.
pub const USER_VARIABLES_MAX: usize = 512;
/// Bytes of the names and values of the user variables of one session.
pub const USER_VARIABLES_BYTES_MAX: usize = 1024 * 1024;

/// Values by name; names have no letter case.
#[derive(Clone, Debug, Default)]
pub struct UserVariables {
    values: BTreeMap<Box<str>, Value>,
    bytes: usize,
}

impl UserVariables {
    /// The value of a variable; NULL if it was never set.
    pub fn get(&self, name: &str) -> Value {
        self.values.get(name.to_lowercase().as_str()).cloned().unwrap_or(Value::Null)
    }

    /// Gives a variable a value.
    ///
    /// # Errors
    /// 1059 for a name of more than 64 characters, 1041 at [`USER_VARIABLES_MAX`] or [`USER_VARIABLES_BYTES_MAX`].
    pub fn put(&mut self, name: &str, value: Value) -> Result<()> {
        if name.chars().count() > IDENTIFIER_CHARACTERS_MAX {
            return Err(Error::new(ErrorCode::IdentifierTooLong, format!("Identifier name '{name}' is too long")));
        }
        let name = name.to_lowercase();
        let old = self.values.get(name.as_str());
        let freed = old.map_or(0, |value| name.len() + bytes_of(value));
        let bytes = self.bytes - freed + name.len() + bytes_of(&value);
        if bytes > USER_VARIABLES_BYTES_MAX || old.is_none() && self.values.len() >= USER_VARIABLES_MAX {
            return Err(Error::new(ErrorCode::OutOfResources, "Too many user variables in this session"));
        }
        self.bytes = bytes;
        self.values.insert(name.into(), value);
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => size_of::<Value>() + bytes.len(),
        _ => size_of::<Value>(),
    }
}
