//! Hot path: at most 350 instructions a statement and 22 a byte of words, 10 a byte of IN lists, 9 a byte of
//! rows; no allocation after warm-up. Counted with callgrind: 1,070 for a point select of 35 bytes, 7,500 for
//! an IN list of 100 keys of four digits, 81,000 for 50 rows of sysbench (9,815 bytes).
//!
//! The shape of a statement is its text with each literal replaced by a mark of its class. Statements that
//! differ only in values therefore share one plan. The scanner passes over the text once and recognises only
//! what that needs: quotes, comments, numbers, brackets and a few words. It declares every statement of which
//! it is not certain [`ShapeOutcome::NotCacheable`]; the parser then decides.
//!
//! Rules of lifting:
//! - Literals are lifted in SELECT, INSERT, REPLACE, UPDATE and DELETE. BEGIN, START, COMMIT and ROLLBACK
//!   have a shape too. No other statement is cacheable.
//! - The select list up to FROM is kept byte for byte, including literals and spaces, because it names the
//!   columns.
//! - Elsewhere integers, decimals, doubles and strings are lifted, each class with its own mark. NULL, TRUE
//!   and similar words stay text. Integers of up to 64 bits are one class. The mark of a decimal is followed
//!   by its scale, which determines the scale of computed results; a decimal that is a whole member of a row
//!   of VALUES has no scale byte. LIKE patterns that bound no range of keys have their own mark, because
//!   their plans differ.
//! - `IN (...)` with literals of one class becomes one mark whatever its length. There a sign belongs to its
//!   literal.
//! - Rows of VALUES that have the same form become one row, whatever their number. There, too, a sign belongs
//!   to its literal. Rows of different forms are not cacheable.
//! - Where more than the value of a lifted literal matters (an ordinal in ORDER BY, a length, an alias, an
//!   argument of a function), the parser keeps it as a literal: see [`super::lift`].
//! - A run of blanks and comments becomes one space. Executable comments, optimizer hints, parameters,
//!   prefixed strings (`x'..'`, `_utf8mb4'..'`) and adjacent strings are not cacheable.
//!
//! Statements with equal normalised text and equal texts of the kept literals differ only in values. Hashes
//! can collide, so a cache compares both after a hash hit.

mod hash;
mod recent;
mod scanner;

use super::expression::Ordinal;
use super::limit::SHAPE_BYTES_MAX;
use super::literal::decode_string;

/// Outcome of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeOutcome {
    /// The shape is valid and can be looked up.
    Cacheable,
    /// The statement must be parsed. The contents of the shape are meaningless.
    NotCacheable,
}

/// Classes of literals. Each has its own mark in the normalised text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralClass {
    /// Digits whose value fits in 64 bits.
    Integer,
    /// Digits with a decimal point, or digits whose value exceeds 64 bits.
    Decimal,
    /// A number with an exponent.
    Double,
    /// A string in single or double quotes.
    String,
}

/// A literal that the scanner replaced by a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiftedLiteral {
    /// Byte offset of its first byte: the sign, first digit or opening quote.
    pub start: u32,
    /// Byte offset after its last byte.
    pub end: u32,
    /// Integer: its absolute value. Decimal: the number of digits after the decimal point. String: 1 if it is
    /// a LIKE pattern that bounds no range of keys. Otherwise 0.
    pub magnitude: u64,
    /// Its class, which determines its mark.
    pub class: LiteralClass,
    /// Whether the literal includes a minus sign.
    pub negative: bool,
    /// Whether a string contains escapes or doubled quotes, so that its value differs from its bytes.
    pub has_escapes: bool,
}

/// The literals of one ordinal, as indexes into [`Shape::literals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A single literal.
    Literal {
        /// Index of the literal.
        literal: u32,
    },
    /// The literals of an IN list.
    List {
        /// Index of the first literal.
        first: u32,
        /// Number of literals; at least one.
        count: u32,
        /// Whether all are known to be unsigned integers of at most 63 bits.
        are_short_integers: bool,
    },
    /// A literal of the first row of VALUES. Its counterpart in row `n` is `n` times [`FoldedRows::width`]
    /// further.
    RowLiteral {
        /// Index of the literal in the first row.
        literal: u32,
    },
}

/// The rows of VALUES, which all have the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedRows {
    /// Byte offset of the opening bracket of the first row.
    pub start: u32,
    /// Byte offset after the closing bracket of the last row.
    pub end: u32,
    /// Ordinal of the first literal of a row; the other literals of the row follow it.
    pub first: Ordinal,
    /// Number of literals in a row.
    pub width: u32,
    /// Number of rows; at least one.
    pub count: u32,
}

/// The shape of a statement and its literals. A shape is reused for many statements and keeps its memory.
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

/// Scans a statement into `shape`. Leading and trailing blanks, leading comments and trailing semicolons are
/// ignored.
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
    /// Creates an empty shape whose hashes depend on `seed`. Shapes that are looked up in the same cache need
    /// the same seed.
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

    /// 128-bit hash of the normalised text.
    #[inline]
    pub fn hash(&self) -> [u64; 2] {
        self.hash
    }

    /// The normalised text. A cache compares it after a hash hit.
    #[inline]
    pub fn normalised(&self) -> &[u8] {
        &self.normalised[..self.normalised_length]
    }

    /// All lifted literals in the order of the text, including those of lists and of every row.
    #[inline]
    pub fn literals(&self) -> &[LiftedLiteral] {
        &self.literals
    }

    /// Number of ordinals, which count from 0.
    #[inline]
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Appends the text that identifies a plan of a shape with kept literals: the normalised text, then each
    /// kept literal as written, preceded by its length as a little-endian u32.
    pub fn append_with_kept(&self, text: &[u8], kept: &[Ordinal], out: &mut Vec<u8>) {
        out.extend_from_slice(self.normalised());
        for ordinal in kept {
            let bytes = self.text_of(*ordinal, text);
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }

    /// Hash of a plan's key text; see [`Shape::append_with_kept`].
    pub fn hash_of(&self, key: &[u8]) -> [u64; 2] {
        hash::of(key, self.seed)
    }

    /// The text of an ordinal's literals. For a list it spans all members; for a literal of rows it is that
    /// of the first row.
    fn text_of<'a>(&self, ordinal: Ordinal, text: &'a [u8]) -> &'a [u8] {
        let (first, last) = match self.slot(ordinal) {
            Some(Slot::Literal { literal } | Slot::RowLiteral { literal }) => (literal, literal),
            Some(Slot::List { first, count, .. }) => (first, first + count - 1),
            None => return &[],
        };
        let (first, last) = (&self.literals[first as usize], &self.literals[last as usize]);
        &text[first.start as usize..last.end as usize]
    }

    /// The literals of an ordinal; `None` for an unknown ordinal.
    #[inline]
    pub fn slot(&self, ordinal: Ordinal) -> Option<Slot> {
        self.slots.get(ordinal.0 as usize).copied()
    }

    /// The rows of VALUES; `None` for a statement without them.
    #[inline]
    pub fn rows(&self) -> Option<FoldedRows> {
        self.rows
    }

    /// The literal of an ordinal, taken from row `row` (from 0) if it belongs to rows. Returns `None` for a
    /// list, an unknown ordinal and a row past the last.
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

    /// The members of a list; empty for an ordinal that is not a list.
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
    /// The bytes of the literal in the text; those of a string exclude the quotes.
    #[inline]
    pub fn bytes<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let bytes = &text[self.start as usize..self.end as usize];
        if self.class == LiteralClass::String { &bytes[1..bytes.len() - 1] } else { bytes }
    }

    /// Appends the value of a string, with escapes resolved.
    pub fn decode(&self, text: &[u8], value: &mut Vec<u8>) {
        if self.has_escapes {
            decode_string(self.bytes(text), text[self.start as usize], value);
        } else {
            value.extend_from_slice(self.bytes(text));
        }
    }

    /// Digits after the decimal point of a decimal, at most 255; 0 for other classes.
    #[inline]
    pub fn scale(&self) -> u8 {
        if self.class == LiteralClass::Decimal { self.magnitude.min(255) as u8 } else { 0 }
    }

    /// Whether it is a LIKE pattern that bounds no range of keys: it is empty or begins with a wildcard or a
    /// backslash.
    #[inline]
    pub fn is_open_pattern(&self) -> bool {
        self.class == LiteralClass::String && self.magnitude != 0
    }

    /// The value of an integer. Outside lists and rows of VALUES a minus sign stays in the text as an
    /// operator.
    #[inline]
    pub fn integer(&self) -> i128 {
        let magnitude = i128::from(self.magnitude);
        if self.negative { -magnitude } else { magnitude }
    }
}

#[cfg(test)]
mod tests;
