//! `unicode_ci` and `unicode_520_ci`: primary weights of the Unicode collation algorithm 4.0.0 and 5.2.0,
//! padded with spaces.
//!
//! The weights are those of MySQL and MariaDB: every character has at most 8 of them, contractions do not
//! exist, and Hangul syllables have implicit weights. In version 4.0.0 all supplementary characters share the
//! weight 0xFFFD.

use super::character::INVALID_FIRST;
use super::padded_units::{UNITS_MAX, Units};
use super::padding::SPACE;
use super::table::{self, Shape};

static BLOB_400: &[u8] = include_bytes!("tables/unicode_400.bin");
const SHAPE_400: Shape = Shape::of(BLOB_400);
static INDEX_400: [u16; SHAPE_400.index_count] = table::decode_numbers(BLOB_400, SHAPE_400.index_start());
static PAGES_400: [u16; SHAPE_400.page_number_count()] = table::decode_numbers(BLOB_400, SHAPE_400.pages_start());
static EXPANSIONS_400: [u16; SHAPE_400.expansion_count] = table::decode_numbers(BLOB_400, SHAPE_400.expansions_start());

static BLOB_520: &[u8] = include_bytes!("tables/unicode_520.bin");
const SHAPE_520: Shape = Shape::of(BLOB_520);
static INDEX_520: [u16; SHAPE_520.index_count] = table::decode_numbers(BLOB_520, SHAPE_520.index_start());
static PAGES_520: [u16; SHAPE_520.page_number_count()] = table::decode_numbers(BLOB_520, SHAPE_520.pages_start());
static EXPANSIONS_520: [u16; SHAPE_520.expansion_count] = table::decode_numbers(BLOB_520, SHAPE_520.expansions_start());

const _: () = {
    assert!(SHAPE_400.weights_per_character_max <= UNITS_MAX && SHAPE_520.weights_per_character_max <= UNITS_MAX);
};

/// The weight of all supplementary characters in version 4.0.0.
const SUPPLEMENTARY_WEIGHT: u32 = 0xFFFD;
/// The mark of a position in the expansions.
const EXPANSION_FLAG: u16 = 0x8000;
/// The entry of a code point with implicit weights.
const NOT_LISTED: u16 = 0xFFFF;

/// The two versions.
#[derive(Clone, Copy)]
pub(super) enum Version {
    Four,
    FiveTwo,
}

impl Version {
    /// What makes the unit of a weight: the unit of the space is 0x20.
    pub(super) fn offset(self) -> u32 {
        let space = match self {
            Version::Four => 0x209,
            Version::FiveTwo => 0x20A,
        };
        space - u32::from(SPACE)
    }

    fn entry(self, code: u32) -> u16 {
        match self {
            Version::Four => PAGES_400[table::position_in(INDEX_400[table::page_of(code)], code)],
            Version::FiveTwo => PAGES_520[table::position_in(INDEX_520[table::page_of(code)], code)],
        }
    }

    fn expansions(self) -> &'static [u16] {
        match self {
            Version::Four => &EXPANSIONS_400,
            Version::FiveTwo => &EXPANSIONS_520,
        }
    }
}

impl Units for Version {
    fn of(self, code: u32, buffer: &mut [u32; UNITS_MAX]) -> usize {
        if code >= INVALID_FIRST {
            buffer[0] = code;
            return 1;
        }
        let offset = self.offset();
        if code > 0xFFFF && matches!(self, Version::Four) {
            buffer[0] = SUPPLEMENTARY_WEIGHT - offset;
            return 1;
        }
        match self.entry(code) {
            0 => 0,
            NOT_LISTED => {
                let base = match code {
                    0x4E00..=0x9FA5 => 0xFB40,
                    0x3400..=0x4DB5 => 0xFB80,
                    _ => 0xFBC0,
                };
                buffer[0] = base + (code >> 15) - offset;
                buffer[1] = (code & 0x7FFF | 0x8000) - offset;
                2
            }
            weight if weight < EXPANSION_FLAG => {
                buffer[0] = u32::from(weight) - offset;
                1
            }
            entry => {
                let at = usize::from(entry & !EXPANSION_FLAG);
                let weights = &self.expansions()[at + 1..][..usize::from(self.expansions()[at])];
                for (unit, weight) in buffer.iter_mut().zip(weights) {
                    *unit = u32::from(*weight) - offset;
                }
                weights.len()
            }
        }
    }
}
