//! Hot path: at most 5 instructions per call, not counting the functions of each collation.
//!
//! The operations of a collation on text: comparison, weight keys, LIKE, letter case, lengths.

use std::cmp::Ordering;

use super::{CharacterSet, CollationId, character, general_ci, letter_case, like, padding, unicode_primary};

/// The four ways to order text, selected by [`CollationId`].
#[derive(Clone, Copy)]
enum Rule {
    GeneralCi,
    Utf8mb4Bin,
    UnicodePrimary,
    Binary,
}

impl CollationId {
    /// The order of two strings, equal to the byte order of their weight keys. Allocates nothing.
    #[inline]
    pub fn compare(self, left: &[u8], right: &[u8]) -> Ordering {
        if left == right {
            return Ordering::Equal;
        }
        match self.rule() {
            Rule::GeneralCi => general_ci::compare(left, right),
            Rule::Utf8mb4Bin => padding::compare_bytes(left, right),
            Rule::UnicodePrimary => unicode_primary::compare(left, right),
            Rule::Binary => left.cmp(right),
        }
    }

    /// Whether two strings are equal, that is whether their weight keys are.
    #[inline]
    pub fn equal(self, left: &[u8], right: &[u8]) -> bool {
        match self.rule() {
            Rule::Binary => left == right,
            _ => self.compare(left, right) == Ordering::Equal,
        }
    }

    /// Appends the weight key of `text` to `out`: at most
    /// [`weight_key_bytes_max`](Self::weight_key_bytes_max) bytes with the order of the text. With that much
    /// spare capacity, `out` is not reallocated.
    ///
    /// One key may be a prefix of another, so a key of several parts must mark the end of each part.
    pub fn append_weight_key(self, text: &[u8], out: &mut Vec<u8>) {
        self.append_weights(text, out);
    }

    /// Appends the common prefix of the weight keys of all texts that match LIKE `prefix%`. These are the
    /// texts whose first characters have, one by one, the same weights as the characters of `prefix`. Keys of
    /// other texts may begin with the same bytes, so the caller must still check each text.
    pub fn append_prefix_key(self, prefix: &[u8], out: &mut Vec<u8>) {
        match self.rule() {
            // The key of a space depends on the characters after it, so the prefix ends before the first one.
            Rule::GeneralCi | Rule::Utf8mb4Bin => {
                let end = prefix.iter().position(|byte| matches!(*byte, padding::SPACE | padding::BELOW_SPACE));
                self.append_weights(&prefix[..end.unwrap_or(prefix.len())], out);
                out.truncate(out.len() - padding::END_BYTES);
            }
            Rule::UnicodePrimary | Rule::Binary => {
                self.append_weights(prefix, out);
            }
        }
    }

    /// Like [`append_weight_key`](Self::append_weight_key), but returns whether the key may contain a zero
    /// byte: false means that it certainly has none.
    pub(crate) fn append_weights(self, text: &[u8], out: &mut Vec<u8>) -> bool {
        match self.rule() {
            Rule::UnicodePrimary => unicode_primary::append_weight_key(text, out),
            Rule::GeneralCi => general_ci::append_weight_key(text, out),
            Rule::Utf8mb4Bin => padding::append_bytes_key(text, out),
            Rule::Binary => {
                out.extend_from_slice(text);
                true
            }
        }
    }

    /// Maximum number of bytes of the weight key of any text with this many characters.
    pub fn weight_key_bytes_max(self, characters: usize) -> usize {
        match self.rule() {
            Rule::GeneralCi => characters.saturating_mul(3).saturating_add(padding::END_BYTES),
            Rule::Utf8mb4Bin => characters.saturating_mul(4).saturating_add(padding::END_BYTES),
            Rule::UnicodePrimary => characters.saturating_mul(unicode_primary::KEY_BYTES_PER_CHARACTER_MAX),
            Rule::Binary => characters,
        }
    }

    /// `text LIKE pattern ESCAPE escape`: `%` matches any characters and `_` a single one. The escape
    /// character makes the next character literal; at the end of the pattern it is an ordinary character.
    ///
    /// Characters are compared one to one, so `'ß' LIKE 'ss'` is false although `'ß' = 'ss'` is true, and
    /// trailing spaces count in every collation. The work is bounded by the product of both lengths.
    pub fn like(self, text: &[u8], pattern: &[u8], escape: Option<char>) -> bool {
        match self.rule() {
            Rule::GeneralCi => like::matches(text, pattern, escape, character::decode, general_ci::same_character),
            Rule::Utf8mb4Bin => like::matches(text, pattern, escape, character::decode, |a, b| a == b),
            Rule::UnicodePrimary => {
                like::matches(text, pattern, escape, character::decode, unicode_primary::same_character)
            }
            Rule::Binary => like::matches(text, pattern, escape, like::decode_byte, |a, b| a == b),
        }
    }

    /// Appends `text` in upper case to `out`, one character for each. Bytes of a binary string are not
    /// changed.
    pub fn append_upper(self, text: &[u8], out: &mut Vec<u8>) {
        self.append_mapped(text, out, letter_case::to_upper);
    }

    /// Appends `text` in lower case to `out`, one character for each. Bytes of a binary string are not
    /// changed.
    pub fn append_lower(self, text: &[u8], out: &mut Vec<u8>) {
        self.append_mapped(text, out, letter_case::to_lower);
    }

    fn append_mapped(self, text: &[u8], out: &mut Vec<u8>, map: fn(char) -> char) {
        match self.character_set() {
            CharacterSet::Utf8mb4 => letter_case::append_mapped(text, out, map),
            CharacterSet::Binary => out.extend_from_slice(text),
        }
    }

    #[inline]
    fn rule(self) -> Rule {
        match self {
            Self::UTF8MB4_GENERAL_CI => Rule::GeneralCi,
            Self::UTF8MB4_BIN => Rule::Utf8mb4Bin,
            Self::UTF8MB4_0900_AI_CI => Rule::UnicodePrimary,
            _ => Rule::Binary,
        }
    }
}

impl CharacterSet {
    /// Number of characters in `text`. A byte outside any character counts as one.
    pub fn character_count(self, text: &[u8]) -> usize {
        match self {
            Self::Utf8mb4 => character::character_count(text),
            Self::Binary => text.len(),
        }
    }

    /// The longest prefix of `text` with at most `characters` characters. No character is cut.
    pub fn prefix(self, text: &[u8], characters: usize) -> &[u8] {
        match self {
            Self::Utf8mb4 => character::prefix(text, characters),
            Self::Binary => &text[..characters.min(text.len())],
        }
    }

    /// Whether `text` is well-formed in this character set.
    pub fn is_valid(self, text: &[u8]) -> bool {
        match self {
            Self::Utf8mb4 => character::is_valid_utf8mb4(text),
            Self::Binary => true,
        }
    }
}
