//! The value of a user variable with the collation of its text.

use crate::collation::CollationId;
use crate::value::Value;

/// The value of a user variable.
#[derive(Clone, Debug, PartialEq)]
pub struct UserValue {
    /// The value.
    pub value: Value,
    /// The collation of a text; binary for a string of bytes. Other values do not use it.
    pub collation: CollationId,
}

impl UserValue {
    /// A value whose text, if it is one, has this collation.
    pub fn new(value: Value, collation: CollationId) -> UserValue {
        UserValue { value, collation }
    }
}
