//! String collations: order and equality of strings, and weight keys with the same order as byte strings.
//!
//! For every collation, `compare(a, b)` equals the byte comparison of the weight keys of `a` and `b`. An
//! index over weight keys therefore needs no collation. Equal strings have equal keys, and thus equal hashes.
//!
//! | number | collation | weights | padding |
//! |---|---|---|---|
//! | 45 | `utf8mb4_general_ci` | one per character, one for supplementary ones | trailing spaces ignored |
//! | 46 | `utf8mb4_bin` | the code point | trailing spaces ignored |
//! | 63 | `binary` | the byte | none |
//! | 255 | `utf8mb4_0900_ai_ci` | primary weights of UCA 9.0.0, 0 to 18 per character | none |
//!
//! Text that is not UTF-8 has an order too: a byte that belongs to no character counts as a character above
//! all real ones. In `utf8mb4_bin` such bytes simply have byte order.

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
