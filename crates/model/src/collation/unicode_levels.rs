//! `utf8mb4_0900_as_ci` and `utf8mb4_0900_as_cs`: the Unicode collation algorithm 9.0.0 with two and three
//! levels, without padding.
//!
//! Texts are compared by their primary weights, then by their secondary weights (accents), then by their
//! tertiary weights (letter case). A key has the weights of each level with the most significant byte first.
//! Levels are separated by 0, which is below all weights.

use std::cmp::Ordering;

use super::character::{INVALID_FIRST, decode};
use super::table::{self, Shape};
use super::unicode_primary;

static BLOB: &[u8] = include_bytes!("tables/uca_0900_accents.bin");
const SHAPE: Shape = Shape::of(BLOB);
static INDEX: [u16; SHAPE.index_count] = table::decode_numbers(BLOB, SHAPE.index_start());
static PAGES: [u16; SHAPE.page_number_count()] = table::decode_numbers(BLOB, SHAPE.pages_start());
static EXPANSIONS: [u16; SHAPE.expansion_count] = table::decode_numbers(BLOB, SHAPE.expansions_start());

const EXPANSION_FLAG: u16 = 0x8000;
const NOT_LISTED: u16 = 0xFFFF;
/// Bits of the tertiary weight in an entry; the secondary weight is above it.
const TERTIARY_BITS: u32 = 5;
/// The secondary and the tertiary weight of a character without accent and case.
const COMMON: u16 = 0x20 << TERTIARY_BITS | 2;

/// The second or the third level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Accents,
    Case,
}

/// Maximum number of key bytes of one character, without the marks between levels.
pub(super) const KEY_BYTES_PER_CHARACTER_MAX: usize =
    unicode_primary::KEY_BYTES_PER_CHARACTER_MAX + 4 * SHAPE.weights_per_character_max;

/// Bytes between two levels.
pub(super) const SEPARATOR_BYTES: usize = 2;

/// Whether two characters have the same weights in all levels.
pub(super) fn same_character(levels: &[Level], left: u32, right: u32) -> bool {
    let same = |level: &Level| entries(left).weights(*level).eq(entries(right).weights(*level));
    unicode_primary::same_character(left, right) && levels.iter().all(same)
}

/// The order of two texts.
pub(super) fn compare(levels: &[Level], left: &[u8], right: &[u8]) -> Ordering {
    let mut order = unicode_primary::compare(left, right);
    for level in levels {
        order = order.then_with(|| weights_of(left, *level).cmp(weights_of(right, *level)));
    }
    order
}

/// Appends the weight key of `text`.
pub(super) fn append_weight_key(levels: &[Level], text: &[u8], out: &mut Vec<u8>) {
    unicode_primary::append_weight_key(text, out);
    for level in levels {
        out.extend_from_slice(&[0; SEPARATOR_BYTES]);
        for weight in weights_of(text, *level) {
            out.extend_from_slice(&weight.to_be_bytes());
        }
    }
}

/// The weights of one level of a text.
pub(super) fn weights_of(mut text: &[u8], level: Level) -> impl Iterator<Item = u16> {
    let characters = std::iter::from_fn(move || {
        let (code, bytes) = decode(text)?;
        text = &text[bytes..];
        Some(code)
    });
    characters.flat_map(move |code| entries(code).weights(level))
}

/// The weights of one level of a character.
pub(super) fn weights_of_character(code: u32, level: Level) -> impl Iterator<Item = u16> {
    entries(code).weights(level)
}

/// The entries of one character: a slice of the table, or computed.
#[derive(Clone, Copy)]
struct Entries {
    listed: &'static [u16],
    computed: [u16; 3],
    computed_count: usize,
}

impl Entries {
    fn computed(computed: [u16; 3], computed_count: usize) -> Entries {
        Entries { listed: &[], computed, computed_count }
    }

    /// The weights of one level, without zeros.
    fn weights(self, level: Level) -> impl Iterator<Item = u16> {
        let weight = move |entry: u16| match level {
            Level::Accents => entry >> TERTIARY_BITS,
            Level::Case => entry & ((1 << TERTIARY_BITS) - 1),
        };
        let computed = self.computed.into_iter().take(self.computed_count);
        self.listed.iter().copied().chain(computed).map(weight).filter(|weight| *weight != 0)
    }
}

fn entries(code: u32) -> Entries {
    if code >= INVALID_FIRST {
        return Entries::computed([COMMON; 3], 1);
    }
    match entry(code) {
        NOT_LISTED => match unicode_primary::letters_of_syllable(code) {
            Some((leading, vowel, trailing)) => {
                let letters = [entry(leading), entry(vowel), trailing.map_or(0, entry)];
                Entries::computed(letters, if trailing.is_some() { 3 } else { 2 })
            }
            None => Entries::computed([COMMON; 3], 1),
        },
        single if single < EXPANSION_FLAG => Entries::computed([single; 3], usize::from(single != 0)),
        expansion => {
            let at = usize::from(expansion & !EXPANSION_FLAG);
            let listed = &EXPANSIONS[at + 1..][..usize::from(EXPANSIONS[at])];
            Entries { listed, ..Entries::computed([0; 3], 0) }
        }
    }
}

fn entry(code: u32) -> u16 {
    PAGES[table::position_in(INDEX[table::page_of(code)], code)]
}
