//! The clauses CHARACTER SET and COLLATE.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};

/// The collation that a definition's CHARACTER SET and COLLATE clauses select; `default` without either.
///
/// # Errors
/// 1115 and 1273 for unknown names, 1235 for unsupported ones, 1253 for a collation of another character set.
pub fn collation_of(character_set: Option<&str>, collation: Option<&str>, default: CollationId) -> Result<CollationId> {
    let set = character_set.map(CharacterSet::named).transpose()?;
    let found = match (set, collation) {
        (_, Some(name)) => CollationId::named(name)?,
        (Some(set), None) => return Ok(set.default_collation()),
        (None, None) => return Ok(default),
    };
    if let Some(set) = set {
        check_character_set(found, set)?;
    }
    Ok(found)
}

/// Error 1253 if the collation is of another character set.
pub fn check_character_set(collation: CollationId, set: CharacterSet) -> Result<()> {
    if collation.character_set() == set {
        return Ok(());
    }
    let text = format!("COLLATION '{}' is not valid for CHARACTER SET '{}'", collation.name(), set.name());
    Err(Error::new(ErrorCode::CollationCharacterSetMismatch, text))
}
