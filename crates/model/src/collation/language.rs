//! `utf8mb4_<language>_0900_ai_ci` and `_as_cs`: the weights of `utf8mb4_0900_ai_ci` and `_as_cs` with the
//! letters of a language in its order.
//!
//! The rules are those of CLDR 30, on which MySQL's collations rest (`language_rules.rs`). As in MySQL, a
//! letter that moves gets the weights of the letter before it and one more weight, above those of all letters
//! of the default table: a primary, secondary or tertiary one. A letter may be a sequence of characters, such
//! as ch. The longest sequence counts. A composed letter whose base has moved moves with it; a letter with a
//! combining mark after it does not become the composed one.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::character::decode;
use super::language_rules::RULES;
use super::tailoring::{Tailoring, Unit};
use super::unicode_levels::{self, Level, SEPARATOR_BYTES};
use super::unicode_primary;

/// A language with rules of its own, and whether its collation has three levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Language {
    place: usize,
    has_levels: bool,
}

/// The least and the greatest number of a collation with rules.
const FIRST_NUMBER: u16 = 256;
const LAST_NUMBER: u16 = 323;

/// The languages by the numbers of their collations.
const LANGUAGES: [Option<Language>; (LAST_NUMBER - FIRST_NUMBER + 1) as usize] = {
    let mut languages = [None; (LAST_NUMBER - FIRST_NUMBER + 1) as usize];
    let mut place = 0;
    while place < RULES.len() {
        let [primary, levels] = RULES[place].numbers;
        languages[(primary - FIRST_NUMBER) as usize] = Some(Language { place, has_levels: false });
        languages[(levels - FIRST_NUMBER) as usize] = Some(Language { place, has_levels: true });
        place += 1;
    }
    languages
};

/// The levels below the first.
const LEVELS: [Level; 2] = [Level::Accents, Level::Case];

impl Language {
    /// The language of the collation with this number.
    pub const fn of_number(number: u16) -> Option<Language> {
        match number {
            FIRST_NUMBER..=LAST_NUMBER => LANGUAGES[(number - FIRST_NUMBER) as usize],
            _ => None,
        }
    }

    /// Maximum number of key bytes of one character, without the marks between levels. A letter of several
    /// characters has fewer weights for each.
    pub fn key_bytes_per_character_max(self) -> usize {
        match self.has_levels {
            true => unicode_levels::KEY_BYTES_PER_CHARACTER_MAX,
            false => unicode_primary::KEY_BYTES_PER_CHARACTER_MAX,
        }
    }

    /// The bytes between the levels of a key.
    pub fn separator_bytes(self) -> usize {
        if self.has_levels { LEVELS.len() * SEPARATOR_BYTES } else { 0 }
    }

    fn levels(self) -> &'static [Level] {
        if self.has_levels { &LEVELS } else { &[] }
    }

    fn tailoring(self) -> &'static Tailoring {
        static TAILORINGS: [OnceLock<Tailoring>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];
        TAILORINGS[self.place].get_or_init(|| Tailoring::of(RULES[self.place].text, RULES[self.place].order))
    }
}

/// Whether two characters have the same weights.
pub(super) fn same_character(language: Language, left: u32, right: u32) -> bool {
    let tailoring = language.tailoring();
    let same = |level: Option<Level>| {
        tailoring.weights_of(Unit::Character(left), level).eq(tailoring.weights_of(Unit::Character(right), level))
    };
    left == right || same(None) && language.levels().iter().all(|level| same(Some(*level)))
}

/// The order of two texts.
pub(super) fn compare(language: Language, left: &[u8], right: &[u8]) -> Ordering {
    let tailoring = language.tailoring();
    let mut order = tailoring.weights(left, None).cmp(tailoring.weights(right, None));
    for level in language.levels() {
        order = order.then_with(|| tailoring.weights(left, Some(*level)).cmp(tailoring.weights(right, Some(*level))));
    }
    order
}

/// Appends the weight key of `text`.
pub(super) fn append_weight_key(language: Language, text: &[u8], out: &mut Vec<u8>) {
    let tailoring = language.tailoring();
    append(tailoring.weights(text, None), out);
    for level in language.levels() {
        out.extend_from_slice(&[0; SEPARATOR_BYTES]);
        append(tailoring.weights(text, Some(*level)), out);
    }
}

/// Appends the primary weights that all texts have whose first characters have those of `prefix`, one by one.
/// They end before the first character with which a letter of several characters may begin.
pub(super) fn append_prefix_key(language: Language, prefix: &[u8], out: &mut Vec<u8>) {
    let tailoring = language.tailoring();
    let mut rest = prefix;
    while let Some((code, bytes)) = decode(rest) {
        if tailoring.may_begin_sequence(code) {
            break;
        }
        rest = &rest[bytes..];
    }
    append(tailoring.weights(&prefix[..prefix.len() - rest.len()], None), out);
}

fn append(weights: impl Iterator<Item = u16>, out: &mut Vec<u8>) {
    for weight in weights {
        out.extend_from_slice(&weight.to_be_bytes());
    }
}
