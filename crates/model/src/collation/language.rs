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
use super::language_rules::{Order, RULES};
use super::scripts::Scripts;
use super::tailoring::{Base, Tailoring, Unit};
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
pub(super) const LEVELS: [Level; 2] = [Level::Accents, Level::Case];

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

    fn tailoring(self) -> &'static Tailoring<Scripts> {
        static TAILORINGS: [OnceLock<Tailoring<Scripts>>; RULES.len()] = [const { OnceLock::new() }; RULES.len()];
        TAILORINGS[self.place].get_or_init(|| {
            let rules = &RULES[self.place];
            Tailoring::of(rules.text, Scripts::of(rules.order), rules.order == Order::CapitalsFirst)
        })
    }
}

/// Whether two characters have the same weights.
pub(super) fn same_character(language: Language, left: u32, right: u32) -> bool {
    have_same_weights(language.tailoring(), language.levels(), left, right)
}

/// The order of two texts.
pub(super) fn compare(language: Language, left: &[u8], right: &[u8]) -> Ordering {
    compare_levels(language.tailoring(), language.levels(), left, right)
}

/// Appends the weight key of `text`.
pub(super) fn append_weight_key(language: Language, text: &[u8], out: &mut Vec<u8>) {
    append_levels(language.tailoring(), language.levels(), text, out);
}

/// Appends the primary weights that all texts have whose first characters have those of `prefix`, one by one.
pub(super) fn append_prefix_key(language: Language, prefix: &[u8], out: &mut Vec<u8>) {
    append_prefix_weights(language.tailoring(), prefix, out);
}

/// Whether two characters have the same primary weights and those of `levels`.
pub(super) fn have_same_weights<B: Base>(tailoring: &Tailoring<B>, levels: &[Level], left: u32, right: u32) -> bool {
    let same = |level: Option<Level>| {
        tailoring.weights_of(Unit::Character(left), level).eq(tailoring.weights_of(Unit::Character(right), level))
    };
    left == right || same(None) && levels.iter().all(|level| same(Some(*level)))
}

/// The order of two texts by their primary weights and those of `levels`.
pub(super) fn compare_levels<B: Base>(
    tailoring: &Tailoring<B>,
    levels: &[Level],
    left: &[u8],
    right: &[u8],
) -> Ordering {
    let mut order = tailoring.weights(left, None).cmp(tailoring.weights(right, None));
    for level in levels {
        order = order.then_with(|| tailoring.weights(left, Some(*level)).cmp(tailoring.weights(right, Some(*level))));
    }
    order
}

/// Appends the primary weights of `text` and those of `levels`, with marks between the levels.
pub(super) fn append_levels<B: Base>(tailoring: &Tailoring<B>, levels: &[Level], text: &[u8], out: &mut Vec<u8>) {
    append(tailoring.weights(text, None), out);
    for level in levels {
        out.extend_from_slice(&[0; SEPARATOR_BYTES]);
        append(tailoring.weights(text, Some(*level)), out);
    }
}

/// Appends the common primary weights of texts that begin with characters of the weights of those of
/// `prefix`. They end before the first character with which a letter of several characters may begin, and
/// before one whose weights depend on the character before it.
pub(super) fn append_prefix_weights<B: Base>(tailoring: &Tailoring<B>, prefix: &[u8], out: &mut Vec<u8>) {
    let mut rest = prefix;
    while let Some((code, bytes)) = decode(rest) {
        if tailoring.ends_prefix(code) {
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
