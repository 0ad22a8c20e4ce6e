//! Hot path, at most 6 instructions a byte of a short statement. Statements that were scanned lately, to be
//! known again by their text: what lies between the literals is compared as bytes, and only the literals are
//! read.
//!
//! The scanner decides by the bytes around a literal and by the first byte of a string, so a text that
//! differs from a scanned one only within its integers and strings, and in no such byte, has the same shape.
//! Lists and rows, whose lengths vary, are left to the scanner.

use super::scanner::{SAFE_DIGITS, read_digits};
use super::{LiftedLiteral, LiteralClass, Shape, Slot};
use crate::parse::lexer::quoted_end;
use crate::parse::literal::begins_fixed;

/// Statements of more bytes are always scanned; so are those that are shorter than the start by which they
/// are looked for.
const TEXT_BYTES_MAX: usize = 512;
const START_BYTES: usize = 24;
/// Statements with more literals are always scanned.
const LITERALS_MAX: usize = 8;
const SETS: usize = 16;
const WAYS: usize = 4;

/// The statements scanned lately, by the start of their text.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    sets: [Set; SETS],
}

#[derive(Clone, Debug, Default)]
struct Set {
    ways: [Known; WAYS],
    /// The place that is used next.
    next: usize,
}

/// A statement as it was scanned; one without text is none.
#[derive(Clone, Debug, Default)]
struct Known {
    text: Vec<u8>,
    literals: Vec<LiftedLiteral>,
    normalised: Vec<u8>,
    hash: [u64; 2],
}

impl Shape {
    /// Fills the empty shape if the text differs from a known one in its literals only.
    #[inline]
    pub(super) fn recall(&mut self, text: &[u8]) -> bool {
        let Some(set) = set_of(text) else { return false };
        let Shape { recent, literals, slots, normalised, .. } = self;
        for known in &recent.sets[set].ways {
            if known.read_literals(text, literals).is_none() {
                literals.clear();
                continue;
            }
            let length = known.normalised.len();
            normalised[..length].copy_from_slice(&known.normalised);
            slots.extend((0..literals.len()).map(|literal| Slot::Literal { literal: literal as u32 }));
            self.normalised_length = length;
            self.hash = known.hash;
            return true;
        }
        false
    }

    /// Remembers what was just scanned, if it is of the kind that is known again.
    pub(super) fn remember(&mut self, text: &[u8]) {
        let Some(set) = set_of(text) else { return };
        let is_plain = self.literals.len() <= LITERALS_MAX
            && self.slots.iter().all(|slot| matches!(slot, Slot::Literal { .. }))
            && self.rows.is_none()
            && self.literals.iter().all(is_plain);
        if text.len() > TEXT_BYTES_MAX || !is_plain {
            return;
        }
        let set = &mut self.recent.sets[set];
        let known = &mut set.ways[set.next];
        set.next = (set.next + 1) % WAYS;
        known.text.clear();
        known.text.extend_from_slice(text);
        known.literals.clone_from(&self.literals);
        known.normalised.clear();
        known.normalised.extend_from_slice(&self.normalised[..self.normalised_length]);
        known.hash = self.hash;
    }
}

impl Known {
    /// Appends the literals of the text; `None`, with some of them appended, when the text is another
    /// statement.
    #[inline]
    fn read_literals(&self, text: &[u8], literals: &mut Vec<LiftedLiteral>) -> Option<()> {
        if self.text.is_empty() {
            return None;
        }
        let (mut at, mut copied) = (0, 0);
        for known in &self.literals {
            let between = self.text.get(copied..known.start as usize)?;
            if !text.get(at..)?.starts_with(between) {
                return None;
            }
            at += between.len();
            copied = known.end as usize;
            let mut literal = LiftedLiteral { start: at as u32, ..*known };
            if known.class == LiteralClass::Integer {
                let (magnitude, count) = read_digits(text, at);
                if count == 0 || count > SAFE_DIGITS {
                    return None;
                }
                literal.magnitude = magnitude;
                at += count;
            } else {
                if text.get(at) != self.text.get(known.start as usize) {
                    return None;
                }
                let inside = at + 1;
                (at, literal.has_escapes) = quoted_end(text, at)?;
                // After LIKE its mark would be another one.
                let known_inside = self.text.get(known.start as usize + 1..known.end as usize - 1)?;
                if begins_fixed(&text[inside..at - 1]) != begins_fixed(known_inside) {
                    return None;
                }
            }
            literal.end = at as u32;
            literals.push(literal);
        }
        (text.get(at..)? == self.text.get(copied..)?).then_some(())
    }
}

/// Integers of as many digits as are read here, and strings.
fn is_plain(literal: &LiftedLiteral) -> bool {
    let digits = (literal.end - literal.start) as usize;
    match literal.class {
        LiteralClass::Integer => !literal.negative && digits <= SAFE_DIGITS,
        LiteralClass::String => true,
        LiteralClass::Decimal | LiteralClass::Double => false,
    }
}

/// Where statements with that start are; `None` for a text that is too short.
#[inline]
fn set_of(text: &[u8]) -> Option<usize> {
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let words = text.first_chunk::<START_BYTES>()?.as_chunks::<8>().0;
    let mixed =
        words.iter().fold(0u64, |mixed, word| (mixed ^ u64::from_le_bytes(*word)).wrapping_mul(SPREAD).rotate_left(29));
    Some(mixed as usize % SETS)
}
