//! Character sets and collations by the names that statements give them, with MySQL's errors.

use super::{CharacterSet, CollationId, CollationLookupError};
use crate::error::{Error, ErrorCode, Result};

/// Maximum number of characters of an unknown name in an error message. Without it, a name of megabytes would
/// make a message of megabytes.
const NAME_CHARACTERS_MAX: usize = 64;

impl CharacterSet {
    /// The character set with this name, ignoring case. `utf8` is an alias of `utf8mb3`.
    ///
    /// # Errors
    /// 1235 for an unsupported and 1115 for an unknown character set.
    pub fn named(name: &str) -> Result<CharacterSet> {
        CharacterSet::from_name(name).map_err(|error| match error {
            CollationLookupError::Unsupported => {
                Error::not_supported(&format!("character set {}", name.to_ascii_lowercase()))
            }
            CollationLookupError::Unknown => {
                let text = format!("Unknown character set: '{}'", truncated(name));
                Error::new(ErrorCode::UnknownCharacterSet, text)
            }
        })
    }
}

impl CollationId {
    /// The collation with this name, ignoring case. The prefix `utf8_` stands for `utf8mb3_`.
    ///
    /// # Errors
    /// 1235 for an unsupported and 1273 for an unknown collation.
    pub fn named(name: &str) -> Result<CollationId> {
        CollationId::from_name(name).map_err(|error| match error {
            CollationLookupError::Unsupported => {
                Error::not_supported(&format!("collation {}", truncated(name).to_ascii_lowercase()))
            }
            CollationLookupError::Unknown => {
                let text = format!("Unknown collation: '{}'", truncated(name));
                Error::new(ErrorCode::UnknownCollation, text)
            }
        })
    }
}

fn truncated(name: &str) -> String {
    name.chars().take(NAME_CHARACTERS_MAX).collect()
}
