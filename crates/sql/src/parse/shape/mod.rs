//! Hot path: at most 350 instructions a statement and 22 a byte of words, 10 a byte of IN lists, 9 a byte of
//! rows; no allocation after warm-up. Counted with callgrind: 1,070 for a point select of 35 bytes, 7,500 for
//! an IN list of 100 keys of four digits, 81,000 for 50 rows of sysbench (9,815 bytes).
//!
//! The shape of a statement is its text with literals replaced by marks of their class, so that statements
//! that differ only in values share one plan. The scanner makes one pass over the text and understands just
//! enough of it: quotes, comments, numbers, brackets and a few words. Whatever it is not sure of makes the
//! statement [`ShapeOutcome::NotCacheable`]; the parser then decides.
//!
//! Rules of lifting:
//! - Only SELECT, INSERT, REPLACE, UPDATE and DELETE have literals lifted; BEGIN, START, COMMIT and ROLLBACK
//!   have a shape too; everything else is not cacheable.
//! - The select list up to FROM is kept byte for byte, literals and spaces included, because it names the
//!   columns.
//! - Elsewhere integers, decimals, doubles and strings are lifted, each class with a mark of its own. NULL,
//!   TRUE and the like stay text. Integers of all magnitudes up to 64 bits are one class. The mark of a
//!   decimal has its scale, which decides the scale of what is computed from it; one that is a whole member
//!   of a row of VALUES has none. LIKE patterns that bound no range of keys have a mark of their own, because
//!   they are planned differently.
//! - `IN (...)` of literals of one class becomes one mark whatever its length; a sign belongs to a literal
//!   there.
//! - The rows of VALUES that all have the same form become one, whatever their number; a sign belongs to a
//!   literal there too. Rows of different forms are not cacheable.
//! - Where more than the value of a lifted literal matters (an ordinal in ORDER BY, a length, an alias, an
//!   argument of a function), the parser keeps it a literal: see [`super::lift`].
//! - Blanks and comments become one space. Executable comments, optimizer hints, parameters, prefixed strings
//!   (`x'..'`, `_utf8mb4'..'`) and adjacent strings are not cacheable.
//!
//! Equal normalised text, with equal texts of the kept literals, means equal statements up to values, so a
//! cache must compare both after a hash hit.

mod hash;
mod recent;
mod scanner;

use super::expression::Ordinal;
use super::limit::SHAPE_BYTES_MAX;
use super::literal::decode_string;

/// What the scanner says of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeOutcome {
    /// The shape is valid and may be looked up.
    Cacheable,
    /// The statement must be parsed; what the shape holds means nothing.
    NotCacheable,
}

/// The classes of literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralClass {
    /// Digits whose value fits in 64 bits.
    Integer,
    /// Digits with a full stop, or more of them than fit in 64 bits.
    Decimal,
    /// A number with an exponent.
    Double,
    /// A string in single or double quotes.
    String,
}

/// A literal that was lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiftedLiteral {
    /// Byte offset in the text of its first byte: its sign, digit or opening quote.
    pub start: u32,
    /// Byte offset after its last byte.
    pub end: u32,
    /// The magnitude of an integer, the digits after the full stop of a decimal; 1 for a string after
    /// LIKE that bounds no range of keys; else 0.
    pub magnitude: u64,
    /// Its class.
    pub class: LiteralClass,
    /// Whether a minus sign is part of it.
    pub negative: bool,
    /// Whether a string has escapes or doubled quotes, so that its bytes are not its value.
    pub has_escapes: bool,
}

/// What an ordinal stands for, by index into [`Shape::literals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// One literal.
    Literal {
        /// Its index.
        literal: u32,
    },
    /// The literals of an IN list.
    List {
        /// The index of the first.
        first: u32,
        /// How many; at least one.
        count: u32,
        /// Whether they are known to be integers without a sign that fit in 63 bits.
        are_short_integers: bool,
    },
    /// A literal of the first row of VALUES; that of row `n` is `n` times [`FoldedRows::width`] further.
    RowLiteral {
        /// The index of the first row's.
        literal: u32,
    },
}

/// The rows of VALUES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedRows {
    /// Byte offset of the opening bracket of the first row.
    pub start: u32,
    /// Byte offset after the closing bracket of the last row.
    pub end: u32,
    /// The ordinal of a row's first literal; the others follow.
    pub first: Ordinal,
    /// How many literals a row has.
    pub width: u32,
    /// How many rows there are; at least one.
    pub count: u32,
}

/// The shape of a statement and its literals. Made once and used again: it keeps its memory.
#[derive(Clone, Debug)]
pub struct Shape {
    seed: u64,
    hash: [u64; 2],
    normalised: Vec<u8>,
    normalised_length: usize,
    literals: Vec<LiftedLiteral>,
    slots: Vec<Slot>,
    rows: Option<FoldedRows>,
    recent: Box<recent::Recent>,
}

/// Scans a statement, ignoring blanks and semicolons at both ends, and fills `shape` with what it finds.
pub fn scan(text: &[u8], shape: &mut Shape) -> ShapeOutcome {
    shape.clear();
    if shape.recall(text) {
        return ShapeOutcome::Cacheable;
    }
    match scanner::Scanner::new(text, shape).run() {
        Some(length) => {
            shape.normalised_length = length;
            shape.hash = hash::of(&shape.normalised[..length], shape.seed);
            shape.remember(text);
            ShapeOutcome::Cacheable
        }
        None => ShapeOutcome::NotCacheable,
    }
}

impl Shape {
    /// An empty shape whose hashes depend on `seed`. All shapes that are looked up in one cache need the same
    /// seed.
    pub fn new(seed: u64) -> Shape {
        Shape {
            seed,
            hash: [0; 2],
            normalised: vec![0; SHAPE_BYTES_MAX],
            normalised_length: 0,
            literals: Vec::new(),
            slots: Vec::new(),
            rows: None,
            recent: Box::default(),
        }
    }

    fn clear(&mut self) {
        self.normalised_length = 0;
        self.literals.clear();
        self.slots.clear();
        self.rows = None;
    }

    /// 128 bits of hash of the normalised text.
    #[inline]
    pub fn hash(&self) -> [u64; 2] {
        self.hash
    }

    /// The normalised text, which must be compared after a hash hit.
    #[inline]
    pub fn normalised(&self) -> &[u8] {
        &self.normalised[..self.normalised_length]
    }

    /// Every lifted literal in the order of the text, those of lists and of all rows among them.
    #[inline]
    pub fn literals(&self) -> &[LiftedLiteral] {
        &self.literals
    }

    /// How many ordinals there are: they count from 0.
    #[inline]
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Appends the text that makes a shape with kept literals the key of one plan: the normalised text, then
    /// the kept literals as they are written.
    pub fn append_with_kept(&self, text: &[u8], kept: &[Ordinal], out: &mut Vec<u8>) {
        out.extend_from_slice(self.normalised());
        for ordinal in kept {
            let bytes = self.text_of(*ordinal, text);
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }

    /// The hash of a key made of the shape.
    pub fn hash_of(&self, key: &[u8]) -> [u64; 2] {
        hash::of(key, self.seed)
    }

    /// The literal's text for an ordinal; for a column of several rows, the first row's.
    fn text_of<'a>(&self, ordinal: Ordinal, text: &'a [u8]) -> &'a [u8] {
        let (first, last) = match self.slot(ordinal) {
            Some(Slot::Literal { literal } | Slot::RowLiteral { literal }) => (literal, literal),
            Some(Slot::List { first, count, .. }) => (first, first + count - 1),
            None => return &[],
        };
        let (first, last) = (&self.literals[first as usize], &self.literals[last as usize]);
        &text[first.start as usize..last.end as usize]
    }

    /// What an ordinal stands for; `None` if there is no such ordinal.
    #[inline]
    pub fn slot(&self, ordinal: Ordinal) -> Option<Slot> {
        self.slots.get(ordinal.0 as usize).copied()
    }

    /// The rows of VALUES if there are any.
    #[inline]
    pub fn rows(&self) -> Option<FoldedRows> {
        self.rows
    }

    /// The literal of an ordinal, in row `row` (from 0) if it belongs to rows; `None` for lists and what is
    /// not there.
    #[inline]
    pub fn literal(&self, ordinal: Ordinal, row: u32) -> Option<&LiftedLiteral> {
        let index = match self.slot(ordinal)? {
            Slot::Literal { literal } => literal,
            Slot::RowLiteral { literal } => {
                let rows = self.rows.filter(|rows| row < rows.count)?;
                literal + row * rows.width
            }
            Slot::List { .. } => return None,
        };
        self.literals.get(index as usize)
    }

    /// The literals of an ordinal that stands for a list; empty for others.
    #[inline]
    pub fn list(&self, ordinal: Ordinal) -> &[LiftedLiteral] {
        match self.slot(ordinal) {
            Some(Slot::List { first, count, .. }) => &self.literals[first as usize..(first + count) as usize],
            _ => &[],
        }
    }

    /// The ordinal whose first literal begins at byte `start` of the text.
    pub fn slot_at(&self, start: u32) -> Option<Ordinal> {
        let first_literal = |slot: &Slot| match *slot {
            Slot::Literal { literal } | Slot::RowLiteral { literal } => literal,
            Slot::List { first, .. } => first,
        };
        let index =
            self.slots.binary_search_by_key(&start, |slot| self.literals[first_literal(slot) as usize].start).ok()?;
        Some(Ordinal(index as u32))
    }
}

impl LiftedLiteral {
    /// The bytes between the quotes of a string, or all bytes of another literal.
    #[inline]
    pub fn bytes<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let bytes = &text[self.start as usize..self.end as usize];
        if self.class == LiteralClass::String { &bytes[1..bytes.len() - 1] } else { bytes }
    }

    /// Appends the value of a string.
    pub fn decode(&self, text: &[u8], value: &mut Vec<u8>) {
        if self.has_escapes {
            decode_string(self.bytes(text), text[self.start as usize], value);
        } else {
            value.extend_from_slice(self.bytes(text));
        }
    }

    /// Digits after the full stop of a decimal, 0 for other classes; 255 for more.
    #[inline]
    pub fn scale(&self) -> u8 {
        if self.class == LiteralClass::Decimal { self.magnitude.min(255) as u8 } else { 0 }
    }

    /// Whether it is a LIKE pattern that is empty, or begins with a wildcard or a backslash.
    #[inline]
    pub fn is_open_pattern(&self) -> bool {
        self.class == LiteralClass::String && self.magnitude != 0
    }

    /// The value of an integer; the sign of a literal that is not negative may still stand before it.
    #[inline]
    pub fn integer(&self) -> i128 {
        let magnitude = i128::from(self.magnitude);
        if self.negative { -magnitude } else { magnitude }
    }
}

#[cfg(test)]
mod tests;
