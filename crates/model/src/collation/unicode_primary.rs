//! Hot path: at most 10 instructions per character of ASCII.
//!
//! `utf8mb4_0900_ai_ci`: the primary weights of the Unicode collation algorithm 9.0.0, without padding.
//!
//! The weights are those of the default table (DUCET) of UTS #10 revision 34, with no character ignored as
//! "variable", and with implicit weights by section 10.1.3. As in MySQL 8.0, text is not normalised, and the
//! table's contractions (868 sequences, nearly all Thai, Lao, Tai Viet and New Tai Lue) are not applied.
//! Weights therefore depend on single characters, and the key of a text begins with the key of each of its
//! prefixes.
//!
//! A key is a sequence of 16-bit weights, most significant byte first. A byte outside any character has the
//! weights 0xFFFE and itself; no character has 0xFFFE.

use std::cmp::Ordering;

use super::character::{INVALID_FIRST, all_within, decode, skip_equal_ascii};
use super::table::{self, Shape};

static BLOB: &[u8] = include_bytes!("tables/uca_0900_primary.bin");
const SHAPE: Shape = Shape::of(BLOB);
static INDEX: [u16; SHAPE.index_count] = table::decode_numbers(BLOB, SHAPE.index_start());
static PAGES: [u16; SHAPE.page_number_count()] = table::decode_numbers(BLOB, SHAPE.pages_start());
static EXPANSIONS: [u16; SHAPE.expansion_count] = table::decode_numbers(BLOB, SHAPE.expansions_start());
static ASCII: [u16; 128] = ascii_weights();
/// The weight of every ASCII character as key bytes; 0 for characters without a weight, and for other bytes.
static STEP: [[u8; 2]; 256] = step_weights();

/// First of the printable ASCII characters. Each of them has exactly one weight, and no byte of it is 0.
const PLAIN_FIRST: u8 = b' ';
/// Last of the printable ASCII characters.
const PLAIN_LAST: u8 = b'~';

const _: () = {
    let mut byte = PLAIN_FIRST;
    while byte <= PLAIN_LAST {
        let [high, low] = ascii_weights()[byte as usize].to_be_bytes();
        assert!(high != 0 && low != 0, "a printable character has a weight, and no byte of it is 0");
        byte += 1;
    }
};

const fn step_weights() -> [[u8; 2]; 256] {
    let ascii = ascii_weights();
    let mut steps = [[0; 2]; 256];
    let mut byte = 0;
    while byte < ascii.len() {
        steps[byte] = ascii[byte].to_be_bytes();
        byte += 1;
    }
    steps
}

/// Maximum number of key bytes of one character.
pub(super) const KEY_BYTES_PER_CHARACTER_MAX: usize = 2 * SHAPE.weights_per_character_max;

/// Entries below the flag are the only weight of a character, 0 for none. The flag marks a position in the
/// expansions.
const EXPANSION_FLAG: u16 = 0x8000;
/// The entry of a code point that the default table does not list.
const NOT_LISTED: u16 = 0xFFFF;
const INVALID_WEIGHT: u16 = 0xFFFE;

/// The weights of one character: a slice of the table, or computed.
#[derive(Clone, Copy)]
struct Weights {
    expansion: &'static [u16],
    computed: [u16; 3],
    computed_count: usize,
}

impl Weights {
    const NONE: Self = Self { expansion: &[], computed: [0; 3], computed_count: 0 };

    fn listed(expansion: &'static [u16]) -> Self {
        Self { expansion, ..Self::NONE }
    }

    fn computed(computed: [u16; 3], computed_count: usize) -> Self {
        Self { computed, computed_count, ..Self::NONE }
    }

    fn as_slice(&self) -> &[u16] {
        if self.expansion.is_empty() { &self.computed[..self.computed_count] } else { self.expansion }
    }
}

/// Whether two characters have the same weights.
pub(super) fn same_character(left: u32, right: u32) -> bool {
    left == right || weights(left).as_slice() == weights(right).as_slice()
}

/// The weights of a character.
pub(super) fn weights_of_character(code: u32) -> impl Iterator<Item = u16> {
    let weights = weights(code);
    (0..weights.as_slice().len()).map(move |place| weights.as_slice()[place])
}

/// The order of two texts.
pub(super) fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let (mut left, mut right) = (Cursor::new(left), Cursor::new(right));
    loop {
        if left.is_between_characters() && right.is_between_characters() {
            (left.rest, right.rest) = skip_equal_ascii(left.rest, right.rest);
        }
        match (left.next_weight(), right.next_weight()) {
            (Some(a), Some(b)) if a == b => {}
            // `None` is the end of the text, and is less than every weight.
            (a, b) if a != b => return a.cmp(&b),
            _ => return Ordering::Equal,
        }
    }
}

/// Appends the weight key of `text`. Returns false if the key certainly has no zero byte.
pub(super) fn append_weight_key(text: &[u8], out: &mut Vec<u8>) -> bool {
    if all_within(text, PLAIN_FIRST, PLAIN_LAST) {
        append_plain(text, out);
        return false;
    }
    out.reserve(2 * text.len());
    let mut rest = append_ascii_steps(text, out);
    while let Some((code, bytes)) = decode(rest) {
        rest = &rest[bytes..];
        if code < 0x80 {
            let weight = ASCII[code as usize];
            if weight != 0 {
                out.extend_from_slice(&weight.to_be_bytes());
            }
            continue;
        }
        for weight in weights(code).as_slice() {
            out.extend_from_slice(&weight.to_be_bytes());
        }
        rest = append_ascii_steps(rest, out);
    }
    true
}

/// Appends the weights of printable ASCII text.
#[inline]
fn append_plain(text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 2 * text.len(), 0);
    let (steps, rest) = text.as_chunks::<8>();
    let (places, rest_places) = out[start..].as_chunks_mut::<16>();
    for (step, place) in steps.iter().zip(places) {
        for (byte, place) in step.iter().zip(place.as_chunks_mut::<2>().0) {
            *place = STEP[usize::from(*byte)];
        }
    }
    for (byte, place) in rest.iter().zip(rest_places.as_chunks_mut::<2>().0) {
        *place = STEP[usize::from(*byte)];
    }
}

/// Appends the weights of the ASCII prefix of `text`, in whole steps of eight characters that all have a
/// weight. Returns the rest of `text`.
#[inline]
fn append_ascii_steps<'t>(mut text: &'t [u8], out: &mut Vec<u8>) -> &'t [u8] {
    while let Some((step, rest)) = text.split_first_chunk::<8>() {
        let mut key = [0; 16];
        let mut all_weigh = true;
        for (byte, place) in step.iter().zip(key.chunks_exact_mut(2)) {
            // A byte outside ASCII has no entry here, which ends the steps.
            let weight = STEP[usize::from(*byte)];
            all_weigh &= weight != [0, 0];
            place.copy_from_slice(&weight);
        }
        if !all_weigh {
            break;
        }
        out.extend_from_slice(&key);
        text = rest;
    }
    text
}

/// An iterator over the weights of a text.
struct Cursor<'t> {
    rest: &'t [u8],
    pending: Weights,
    pending_at: usize,
}

impl<'t> Cursor<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { rest: text, pending: Weights::NONE, pending_at: 0 }
    }

    fn is_between_characters(&self) -> bool {
        self.pending_at == self.pending.as_slice().len()
    }

    fn next_weight(&mut self) -> Option<u16> {
        loop {
            if let Some(&weight) = self.pending.as_slice().get(self.pending_at) {
                self.pending_at += 1;
                return Some(weight);
            }
            let (code, bytes) = decode(self.rest)?;
            self.rest = &self.rest[bytes..];
            if code < 0x80 {
                match ASCII[code as usize] {
                    0 => continue,
                    weight => return Some(weight),
                }
            }
            self.pending = weights(code);
            self.pending_at = 0;
        }
    }
}

fn weights(code: u32) -> Weights {
    if code >= INVALID_FIRST {
        return Weights::computed([INVALID_WEIGHT, (code - INVALID_FIRST) as u16, 0], 2);
    }
    match PAGES[table::position_in(INDEX[table::page_of(code)], code)] {
        0 => Weights::NONE,
        NOT_LISTED => computed_weights(code),
        weight if weight < EXPANSION_FLAG => Weights::computed([weight, 0, 0], 1),
        entry => {
            let at = usize::from(entry & !EXPANSION_FLAG);
            let count = usize::from(EXPANSIONS[at]);
            Weights::listed(&EXPANSIONS[at + 1..at + 1 + count])
        }
    }
}

/// The weights of Hangul syllables, which are those of their letters, and the implicit weights of unlisted
/// code points.
fn computed_weights(code: u32) -> Weights {
    if let Some((leading, vowel, trailing)) = letters_of_syllable(code) {
        let letter = |code: u32| PAGES[table::position_in(INDEX[table::page_of(code)], code)];
        let first_two = [letter(leading), letter(vowel)];
        return match trailing {
            None => Weights::computed([first_two[0], first_two[1], 0], 2),
            Some(trailing) => Weights::computed([first_two[0], first_two[1], letter(trailing)], 3),
        };
    }
    let block = |base: u16| (base + (code >> 15) as u16, (code & 0x7FFF) as u16 | 0x8000);
    let (first, second) = match code {
        // Tangut and its components.
        0x1_7000..=0x1_8AFF => (0xFB00, (code - 0x1_7000) as u16 | 0x8000),
        // Unified ideographs of the main block. The compatibility block is listed.
        0x4E00..=0x9FD5 => block(0xFB40),
        // Unified ideographs of extensions A to E.
        0x3400..=0x4DB5 | 0x2_0000..=0x2_A6D6 | 0x2_A700..=0x2_B734 | 0x2_B740..=0x2_B81D | 0x2_B820..=0x2_CEA1 => {
            block(0xFB80)
        }
        _ => block(0xFBC0),
    };
    Weights::computed([first, second, 0], 2)
}

/// The letters of a Hangul syllable: always a leading consonant and a vowel. `None` for other characters.
pub(super) fn letters_of_syllable(code: u32) -> Option<(u32, u32, Option<u32>)> {
    let 0xAC00..=0xD7A3 = code else { return None };
    let syllable = code - 0xAC00;
    let (leading, vowel, trailing) = (syllable / 588, syllable % 588 / 28, syllable % 28);
    Some((0x1100 + leading, 0x1161 + vowel, (trailing > 0).then_some(0x11A7 + trailing)))
}

/// The weights of ASCII characters, at most one each.
const fn ascii_weights() -> [u16; 128] {
    let mut weights = [0; 128];
    let mut code = 0;
    while code < 128 {
        let weight = PAGES[table::position_in(INDEX[table::page_of(code)], code)];
        assert!(weight < EXPANSION_FLAG, "an ASCII character has one weight at most");
        weights[code as usize] = weight;
        code += 1;
    }
    weights
}
