//! User variables (`@name`) of a session.

use std::collections::BTreeMap;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::limit::IDENTIFIER_CHARACTERS_MAX;
use junctor_model::user_value::UserValue;
use junctor_model::value::Value;

/// Maximum number of user variables of one session. More give error 1041.
pub const USER_VARIABLES_MAX: usize = 512;
/// Maximum bytes of the names and values of one session's user variables. More give error 1041.
pub const USER_VARIABLES_BYTES_MAX: usize = 1024 * 1024;

/// The user variables of one session. Names ignore case.
#[derive(Clone, Debug, Default)]
pub struct UserVariables {
    values: BTreeMap<Box<str>, UserValue>,
    bytes: usize,
}

impl UserVariables {
    /// A variable; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&UserValue> {
        self.values.get(name.to_lowercase().as_str())
    }

    /// Sets a variable.
    ///
    /// # Errors
    /// 1059 for a name above 64 characters; 1041 above [`USER_VARIABLES_MAX`] or
    /// [`USER_VARIABLES_BYTES_MAX`]. After an error, the old value stays.
    pub fn put(&mut self, name: &str, value: UserValue) -> Result<()> {
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

    /// Number of variables that are set.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no variable is set.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

fn bytes_of(value: &UserValue) -> usize {
    match &value.value {
        Value::Bytes(bytes) => size_of::<UserValue>() + bytes.len(),
        _ => size_of::<UserValue>(),
    }
}
