//! Hot path: at most 5 instructions per call, not counting the functions of each collation.
//!
//! The operations of a collation on text: comparison, weight keys, LIKE, letter case, lengths.

use std::cmp::Ordering;

use super::east_asian::EastAsian;
use super::language::Language;
use super::latin1::Latin1;
use super::padded_language::PaddedLanguage;
use super::unicode_levels::Level;
use super::unicode_padded::Version;
use super::{
    CharacterSet, CollationId, character, east_asian, general_ci, language, latin1, letter_case, like, padded_units,
    padding, unicode_levels, unicode_primary,
};

/// The ways to order text, selected by [`CollationId`].
#[derive(Clone, Copy)]
enum Rule {
    /// One weight a character; also `ascii_general_ci`, whose characters have the same weights.
    GeneralCi,
    /// The order of the bytes, padded; for UTF-8 that of the code points.
    PaddedBytes,
    UnicodePrimary,
    Language(Language),
    EastAsian(EastAsian),
    UnicodeLevels(&'static [Level]),
    UnicodePadded(Version),
    PaddedLanguage(PaddedLanguage),
    Latin1(Latin1),
    /// The order of the bytes, in characters of UTF-8.
    CodePoints,
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
            Rule::PaddedBytes => padding::compare_bytes(left, right),
            Rule::UnicodePrimary => unicode_primary::compare(left, right),
            Rule::Language(language) => language::compare(language, left, right),
            Rule::EastAsian(language) => east_asian::compare(language, left, right),
            Rule::UnicodeLevels(levels) => unicode_levels::compare(levels, left, right),
            Rule::UnicodePadded(version) => padded_units::compare(version, left, right),
            Rule::PaddedLanguage(language) => padded_units::compare(language, left, right),
            Rule::Latin1(table) => padded_units::compare(table, left, right),
            Rule::Binary | Rule::CodePoints => left.cmp(right),
        }
    }

    /// Whether two strings are equal, that is whether their weight keys are.
    #[inline]
    pub fn equal(self, left: &[u8], right: &[u8]) -> bool {
        match self.rule() {
            Rule::Binary | Rule::CodePoints => left == right,
            _ => self.compare(left, right) == Ordering::Equal,
        }
    }

    /// Whether equal texts have, one by one, characters of equal weight, but for spaces at their ends. Their
    /// first characters are then equal, too.
    pub fn has_one_weight_a_character(self) -> bool {
        matches!(self.rule(), Rule::GeneralCi | Rule::PaddedBytes | Rule::CodePoints | Rule::Binary)
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
            Rule::GeneralCi | Rule::PaddedBytes => {
                let end = prefix.iter().position(|byte| matches!(*byte, padding::SPACE | padding::BELOW_SPACE));
                self.append_weights(&prefix[..end.unwrap_or(prefix.len())], out);
                out.truncate(out.len() - padding::END_BYTES);
            }
            Rule::UnicodePrimary | Rule::Binary | Rule::CodePoints => {
                self.append_weights(prefix, out);
            }
            Rule::Language(language) => language::append_prefix_key(language, prefix, out),
            Rule::EastAsian(language) => east_asian::append_prefix_key(language, prefix, out),
            // The weights of the other levels follow those of the rest of the text.
            Rule::UnicodeLevels(_) => {
                unicode_primary::append_weight_key(prefix, out);
            }
            Rule::UnicodePadded(version) => padded_units::append_prefix_key(version, prefix, out),
            Rule::PaddedLanguage(language) => padded_units::append_prefix_key(language, prefix, out),
            Rule::Latin1(table) => padded_units::append_prefix_key(table, prefix, out),
        }
    }

    /// Like [`append_weight_key`](Self::append_weight_key), but returns whether the key may contain a zero
    /// byte: false means that it certainly has none.
    pub(crate) fn append_weights(self, text: &[u8], out: &mut Vec<u8>) -> bool {
        match self.rule() {
            Rule::UnicodePrimary => unicode_primary::append_weight_key(text, out),
            Rule::GeneralCi => general_ci::append_weight_key(text, out),
            Rule::PaddedBytes => padding::append_bytes_key(text, out),
            Rule::Language(language) => {
                language::append_weight_key(language, text, out);
                true
            }
            Rule::EastAsian(language) => {
                east_asian::append_weight_key(language, text, out);
                true
            }
            Rule::UnicodeLevels(levels) => {
                unicode_levels::append_weight_key(levels, text, out);
                true
            }
            Rule::UnicodePadded(version) => {
                padded_units::append_key(version, text, out);
                true
            }
            Rule::PaddedLanguage(language) => {
                padded_units::append_key(language, text, out);
                true
            }
            Rule::Latin1(table) => {
                padded_units::append_key(table, text, out);
                true
            }
            Rule::Binary | Rule::CodePoints => {
                out.extend_from_slice(text);
                true
            }
        }
    }

    /// Maximum number of bytes of the weight key of any text with this many characters.
    pub fn weight_key_bytes_max(self, characters: usize) -> usize {
        match self.rule() {
            Rule::GeneralCi => characters.saturating_mul(3).saturating_add(padding::END_BYTES),
            Rule::PaddedBytes => characters.saturating_mul(4).saturating_add(padding::END_BYTES),
            Rule::UnicodePrimary => characters.saturating_mul(unicode_primary::KEY_BYTES_PER_CHARACTER_MAX),
            Rule::Language(language) => {
                let bytes = characters.saturating_mul(language.key_bytes_per_character_max());
                bytes.saturating_add(language.separator_bytes())
            }
            Rule::EastAsian(language) => {
                let bytes = characters.saturating_mul(language.key_bytes_per_character_max());
                bytes.saturating_add(language.separator_bytes())
            }
            Rule::UnicodeLevels(levels) => characters
                .saturating_mul(unicode_levels::KEY_BYTES_PER_CHARACTER_MAX)
                .saturating_add(levels.len() * unicode_levels::SEPARATOR_BYTES),
            Rule::UnicodePadded(_) | Rule::PaddedLanguage(_) | Rule::Latin1(_) => {
                characters.saturating_mul(3 * padded_units::UNITS_MAX).saturating_add(padding::END_BYTES)
            }
            Rule::CodePoints => characters.saturating_mul(4),
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
            Rule::PaddedBytes | Rule::CodePoints => {
                like::matches(text, pattern, escape, character::decode, |a, b| a == b)
            }
            Rule::UnicodePrimary => {
                like::matches(text, pattern, escape, character::decode, unicode_primary::same_character)
            }
            Rule::Language(language) => {
                like::matches(text, pattern, escape, character::decode, |a, b| language::same_character(language, a, b))
            }
            Rule::EastAsian(language) => like::matches(text, pattern, escape, character::decode, |a, b| {
                east_asian::same_character(language, a, b)
            }),
            Rule::UnicodeLevels(levels) => like::matches(text, pattern, escape, character::decode, |a, b| {
                unicode_levels::same_character(levels, a, b)
            }),
            Rule::UnicodePadded(version) => like::matches(text, pattern, escape, character::decode, |a, b| {
                padded_units::same_character(version, a, b)
            }),
            Rule::PaddedLanguage(language) => like::matches(text, pattern, escape, character::decode, |a, b| {
                padded_units::same_character(language, a, b)
            }),
            Rule::Latin1(table) => like::matches(text, pattern, escape, character::decode, |a, b| {
                padded_units::same_character(table, a, b)
            }),
            Rule::Binary => like::matches(text, pattern, escape, like::decode_byte, |a, b| a == b),
        }
    }

    /// Appends `text` in upper case to `out`, one character for each. Bytes of a binary string are not
    /// changed.
    pub fn append_upper(self, text: &[u8], out: &mut Vec<u8>) {
        match self.character_set() {
            CharacterSet::Binary => out.extend_from_slice(text),
            CharacterSet::Latin1 => letter_case::append_mapped(text, out, latin1::to_upper),
            _ if self == Self::UTF8MB4_TURKISH_CI => {
                letter_case::append_mapped(text, out, letter_case::to_turkish_upper)
            }
            _ => letter_case::append_mapped(text, out, letter_case::to_upper),
        }
    }

    /// Appends `text` in lower case to `out`, one character for each. Bytes of a binary string are not
    /// changed.
    pub fn append_lower(self, text: &[u8], out: &mut Vec<u8>) {
        match self.character_set() {
            CharacterSet::Binary => out.extend_from_slice(text),
            CharacterSet::Latin1 => letter_case::append_mapped(text, out, latin1::to_lower),
            _ if self == Self::UTF8MB4_TURKISH_CI => {
                letter_case::append_mapped(text, out, letter_case::to_turkish_lower)
            }
            _ => letter_case::append_mapped(text, out, letter_case::to_lower),
        }
    }

    /// Whether LIKE takes characters for equal only if their bytes are equal.
    pub(super) fn likes_bytes(self) -> bool {
        matches!(self.rule(), Rule::PaddedBytes | Rule::CodePoints | Rule::Binary)
    }

    #[inline]
    fn rule(self) -> Rule {
        match self {
            Self::UTF8MB4_GENERAL_CI => Rule::GeneralCi,
            Self::UTF8MB4_BIN => Rule::PaddedBytes,
            Self::UTF8MB4_0900_AI_CI => Rule::UnicodePrimary,
            Self::BINARY => Rule::Binary,
            _ => self.rarer_rule(),
        }
    }

    fn rarer_rule(self) -> Rule {
        match self.number() {
            5 => Rule::Latin1(Latin1::German1),
            8 => Rule::Latin1(Latin1::Swedish),
            11 | 33 => Rule::GeneralCi,
            15 => Rule::Latin1(Latin1::Danish),
            31 => Rule::Latin1(Latin1::German2),
            47 => Rule::Latin1(Latin1::Bin),
            48 => Rule::Latin1(Latin1::GeneralCi),
            49 => Rule::Latin1(Latin1::GeneralCs),
            94 => Rule::Latin1(Latin1::Spanish),
            65 | 83 => Rule::PaddedBytes,
            192 | 224 => Rule::UnicodePadded(Version::Four),
            214 | 246 => Rule::UnicodePadded(Version::FiveTwo),
            278 => Rule::UnicodeLevels(&[Level::Accents, Level::Case]),
            305 => Rule::UnicodeLevels(&[Level::Accents]),
            309 => Rule::CodePoints,
            number => match (Language::of_number(number), PaddedLanguage::of_number(number)) {
                (Some(language), _) => Rule::Language(language),
                (None, Some(language)) => Rule::PaddedLanguage(language),
                (None, None) => EastAsian::of_number(number).map_or(Rule::Binary, Rule::EastAsian),
            },
        }
    }
}
