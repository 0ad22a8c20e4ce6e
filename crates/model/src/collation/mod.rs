//! String collations: order and equality of strings, and weight keys with the same order as byte strings.
//!
//! For every collation, `compare(a, b)` equals the byte comparison of the weight keys of `a` and `b`. An
//! index over weight keys therefore needs no collation. Equal strings have equal keys, and thus equal hashes.
//!
//! | collation | weights | padding |
//! |---|---|---|
//! | `binary`, `utf8mb4_0900_bin` | the byte | none |
//! | `utf8mb4_0900_ai_ci` | primary weights of UCA 9.0.0, 0 to 18 per character | none |
//! | `utf8mb4_0900_as_ci`, `utf8mb4_0900_as_cs` | its weights of two and three levels | none |
//! | `utf8mb4_..._0900_ai_ci`, `_as_cs` of languages | the same, other letters in the order of the language | none |
//! | `utf8mb4_ja_0900_as_cs`, `_ks`, `utf8mb4_zh_0900_as_cs` | the same, ideographs in their order | none |
//! | `..._general_ci` of Unicode and ASCII | one per character, one for supplementary ones | trailing spaces ignored |
//! | `..._unicode_ci`, `..._unicode_520_ci` | primary weights of UCA 4.0.0 and 5.2.0 | trailing spaces ignored |
//! | `utf8mb4_swedish_ci` and the like | those of 4.0.0, other letters in the order of the language | trailing spaces ignored |
//! | `latin1_...` | one per character, two for four letters of `latin1_german2_ci` | trailing spaces ignored |
//! | `..._bin` of text | the code point; in latin1 the byte | trailing spaces ignored |
//!
//! Text is UTF-8 in every character set (`docs/decisions/0042-character-sets.md`).
//! Text that is not UTF-8 has an order too: a byte that belongs to no character counts as a character above
//! all real ones. In `utf8mb4_bin` such bytes simply have byte order.

mod character;
mod character_set;
mod east_asian;
mod general_ci;
mod identity;
mod ideographs;
mod language;
mod language_rules;
mod latin1;
mod letter_case;
mod lookup;
mod like;
mod like_pattern;
mod padded_language;
mod padded_units;
mod padding;
mod rule;
mod scripts;
mod table;
mod tailoring;
mod unicode_levels;
mod unicode_padded;
mod unicode_primary;

#[cfg(test)]
mod tests;

pub use character::is_valid_utf8mb4;
pub use character_set::CharacterSet;
pub use identity::{CollationId, CollationLookupError};
pub use like_pattern::LikePattern;
