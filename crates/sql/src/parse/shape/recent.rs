//! Hot path: at most 6 instructions per byte of a short statement.
//!
//! A cache of recently scanned statements. It recognises a statement by comparing the bytes between the
//! literals, so only the literals must be read anew.
//!
//! The scanner's decisions depend only on the bytes around the literals and on the first byte of each string.
//! If a text differs from a scanned one only in digits of integers and in later bytes of strings, both texts
//! therefore have the same shape. Statements with lists and rows vary in length and are not cached.

use super::scanner::{SAFE_DIGITS, read_digits};
use super::{LiteralClass, ScannedLiteral, Shape, Slot};
use crate::parse::lexer::quoted_end;
use crate::parse::literal::starts_with_literal;

/// Maximum length of a cached statement, in bytes.
const TEXT_BYTES_MAX: usize = 512;
/// Bytes at the start of a statement that select its set. Shorter statements are always scanned.
const START_BYTES: usize = 24;
/// Maximum number of literals of a cached statement.
const LITERALS_MAX: usize = 8;
/// Number of sets. A statement is compared with all `SET_ENTRIES` statements of its set.
const SETS: usize = 16;
const SET_ENTRIES: usize = 4;

/// Recently scanned statements, found by the start of their text.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    sets: [Set; SETS],
}

#[derive(Clone, Debug, Default)]
struct Set {
    entries: [RecentStatement; SET_ENTRIES],
    /// Position of the entry that is overwritten next.
    next: usize,
}

/// A scanned statement. An empty `text` marks an unused entry.
#[derive(Clone, Debug, Default)]
struct RecentStatement {
    text: Vec<u8>,
    literals: Vec<ScannedLiteral>,
    normalised: Vec<u8>,
    hash: [u64; 2],
}

impl Shape {
    /// If the text differs from a cached statement only in its literals, fills the empty shape and returns
    /// true.
    #[inline]
    pub(super) fn recall(&mut self, text: &[u8]) -> bool {
        let Some(set) = set_of(text) else { return false };
        let Shape { recent, literals, slots, normalised, .. } = self;
        for known in &recent.sets[set].entries {
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

    /// Caches the statement that was just scanned, if all its literals are plain (see `is_plain`).
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
        let known = &mut set.entries[set.next];
        set.next = (set.next + 1) % SET_ENTRIES;
        known.text.clear();
        known.text.extend_from_slice(text);
        known.literals.clone_from(&self.literals);
        known.normalised.clear();
        known.normalised.extend_from_slice(&self.normalised[..self.normalised_length]);
        known.hash = self.hash;
    }
}

impl RecentStatement {
    /// Appends the literals of `text`. Returns `None` if `text` is a different statement, possibly after some
    /// literals were appended.
    #[inline]
    fn read_literals(&self, text: &[u8], literals: &mut Vec<ScannedLiteral>) -> Option<()> {
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
            let mut literal = ScannedLiteral { start: at as u32, ..*known };
            if known.class == LiteralClass::Integer {
                let (magnitude, count) = read_digits(text, at);
                if count == 0 || count > SAFE_DIGITS {
                    return None;
                }
                literal.class_detail = magnitude;
                at += count;
            } else {
                if text.get(at) != self.text.get(known.start as usize) {
                    return None;
                }
                let inside = at + 1;
                (at, literal.has_escapes) = quoted_end(text, at)?;
                // After LIKE, a pattern that does not begin with a literal character has another mark than
                // other strings, so the shape differs.
                let known_inside = self.text.get(known.start as usize + 1..known.end as usize - 1)?;
                if starts_with_literal(&text[inside..at - 1]) != starts_with_literal(known_inside) {
                    return None;
                }
            }
            literal.end = at as u32;
            literals.push(literal);
        }
        (text.get(at..)? == self.text.get(copied..)?).then_some(())
    }
}

/// Whether recall can read the literal: an unsigned integer of at most [`SAFE_DIGITS`] digits, or a string.
fn is_plain(literal: &ScannedLiteral) -> bool {
    let digits = (literal.end - literal.start) as usize;
    match literal.class {
        LiteralClass::Integer => !literal.negative && digits <= SAFE_DIGITS,
        LiteralClass::String => true,
        LiteralClass::Decimal | LiteralClass::Double => false,
    }
}

/// The set of a statement; `None` for a text shorter than [`START_BYTES`].
#[inline]
fn set_of(text: &[u8]) -> Option<usize> {
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let words = text.first_chunk::<START_BYTES>()?.as_chunks::<8>().0;
    let mixed =
        words.iter().fold(0u64, |mixed, word| (mixed ^ u64::from_le_bytes(*word)).wrapping_mul(SPREAD).rotate_left(29));
    Some(mixed as usize % SETS)
}
