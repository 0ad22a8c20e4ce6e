//! String collations: the order and equality of texts, and weight keys that give the same order as plain bytes.
//!
//! For every collation `compare(a, b)` equals the byte comparison of the weight keys of `a` and `b`, so an index that
//! holds weight keys never needs to know a collation, and texts that are equal have equal keys and thus equal hashes.
//!
//! | number | collation | weights | padding |
//! |---|---|---|---|
//! | 45 | `utf8mb4_general_ci` | one per character; all supplementary characters share one | trailing spaces do not count |
//! | 46 | `utf8mb4_bin` | the code point | trailing spaces do not count |
//! | 63 | `binary` | the byte | none |
//! | 255 | `utf8mb4_0900_ai_ci` | primary weights of UCA 9.0.0, 0 to 18 per character | none |
//!
//! Text that is not UTF-8 is ordered too: each byte that is no part of a character counts as one character after all
//! real ones (in `utf8mb4_bin` bytes simply have byte order).

mod character;
mod general_ci;
mod identity;
mod letter_case;
mod like;
mod padding;
mod rule;
mod table;
mod unicode_primary;

#[cfg(test)]
mod tests;

pub use character::is_valid_utf8mb4;
pub use identity::{CharacterSet, CollationId, CollationLookupError};
