//! The collations of latin1. A character has one weight; in `latin1_german2_ci` ä, ö, ü and ß have two.

use super::character::INVALID_FIRST;
use super::character_set::latin1_byte;
use super::padded_units::{UNITS_MAX, Units};

/// The weights of all bytes, one table after the other.
static TABLES: &[u8; 8 * 256] = include_bytes!("tables/latin1.bin");

/// One of the collations: the position of its weights, and of second weights, among the tables.
#[derive(Clone, Copy)]
pub(super) enum Latin1 {
    Swedish = 0,
    German1 = 1,
    Danish = 2,
    GeneralCi = 3,
    GeneralCs = 4,
    Spanish = 5,
    German2 = 6,
    Bin = 8,
}

/// The table of second weights of `latin1_german2_ci`; 0 for none.
const GERMAN2_SECOND: usize = 7;

impl Units for Latin1 {
    /// A character that is not in latin1 weighs more than those that are.
    #[inline]
    fn of(self, code: u32, buffer: &mut [u32; UNITS_MAX]) -> usize {
        let Some(byte) = latin1_byte(code) else {
            buffer[0] = if code < INVALID_FIRST { (0x100 + code).min(0xFFFF) } else { code };
            return 1;
        };
        let weight = |table: usize| u32::from(TABLES[table << 8 | usize::from(byte)]);
        if let Latin1::Bin = self {
            buffer[0] = byte.into();
            return 1;
        }
        buffer[0] = weight(self as usize);
        match self {
            Latin1::German2 if weight(GERMAN2_SECOND) > 0 => {
                buffer[1] = weight(GERMAN2_SECOND);
                2
            }
            _ => 1,
        }
    }
}

/// The capital form. As in MySQL, only letters above 0xC0 have one beside those of ASCII.
pub(super) fn to_upper(letter: char) -> char {
    mapped(letter, super::letter_case::to_upper)
}

/// The small form.
pub(super) fn to_lower(letter: char) -> char {
    mapped(letter, super::letter_case::to_lower)
}

fn mapped(letter: char, map: fn(char) -> char) -> char {
    let is_own = |letter: char| letter.is_ascii() || ('\u{C0}'..='\u{FF}').contains(&letter);
    let other = map(letter);
    if is_own(letter) && is_own(other) { other } else { letter }
}

/// Whether every byte is the byte of its character.
#[cfg(test)]
pub(super) fn bytes_are_those_of_characters() -> bool {
    use super::character_set::latin1_character;
    (0..=u8::MAX).all(|byte| latin1_byte(u32::from(latin1_character(byte))) == Some(byte))
}
