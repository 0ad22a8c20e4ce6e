//! Hot path: at most 350 instructions per statement and 22 per byte of words, 10 per byte of IN lists, 9 per
//! byte of rows; no allocation after warm-up.
//!
//! Counted with callgrind: 1,070 for a point select of 35 bytes, 7,500 for an IN list of 100 keys of four
//! digits, 81,000 for 50 rows of sysbench (9,815 bytes).
//!
//! The shape of a statement is its text with literals replaced by marks. (MySQL calls it a digest.)
//! Statements that differ only in these literals share one plan, in which the literals are parameters. A
//! literal that was replaced is called lifted.
//!
//! The scanner reads the text once. It recognises only quotes, comments, numbers, parentheses and a few
//! words. If it is unsure about anything, the statement is [`ShapeOutcome::NotCacheable`] and goes to the
//! parser.
//!
//! Rules of lifting:
//! - Literals are lifted in SELECT, INSERT, REPLACE, UPDATE and DELETE. BEGIN, START, COMMIT and ROLLBACK
//!   also have a shape, without literals. No other statement is cacheable.
//! - The select list up to FROM stays byte for byte, including literals and spaces, because it names the
//!   result columns.
//! - Elsewhere integers, decimals, doubles and strings are lifted, each class with its own mark. NULL, TRUE
//!   and similar words stay. Integers of up to 64 bits are one class. The mark of a decimal is followed by
//!   its scale, which determines the scale of computed results; the scale is omitted for a decimal that is by
//!   itself a value of a VALUES row. LIKE patterns without a literal prefix have a mark of their own, because
//!   no key range can be derived from them and their plans differ.
//! - `IN (...)` with literals of one class becomes one mark, whatever its length. In such a list, a sign is
//!   part of its literal.
//! - The rows of VALUES become one row, whatever their number, if all have the same form: their texts are
//!   equal apart from the literals. A sign is part of its literal there, too. A statement whose rows differ
//!   in form is not cacheable.
//! - A literal whose text matters for more than its value (a column number in ORDER BY, a length, an alias,
//!   an argument of a function) is lifted by the scanner too. The parser then restores it: see
//!   [`super::lift`]. Such a literal is called kept.
//! - A run of blanks and comments becomes one space. Executable comments, optimizer hints, `?` parameters,
//!   prefixed strings (`x'..'`, `_utf8mb4'..'`) and adjacent strings are not cacheable.
//!
//! Two statements differ only in values if their normalised texts and the texts of their kept literals are
//! equal. Hashes can collide, so a cache compares both after a hash match.

mod hash;
mod recent;
mod scanner;

use super::expression::ParameterNumber;
use super::limit::SHAPE_BYTES_MAX;
use super::literal::decode_string;

/// Whether the scanner has found a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeOutcome {
    /// The shape is valid and can be looked up.
    Cacheable,
    /// The statement must be parsed. The contents of the shape are unspecified.
    NotCacheable,
}

/// The class of a literal. Each class has its own mark in the normalised text.
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
pub struct ScannedLiteral {
    /// Byte offset in the text of its first byte: the sign, first digit or opening quote.
    pub start: u32,
    /// Byte offset in the text of the byte after it.
    pub end: u32,
    /// A detail that the plan needs, by class. Integer: its absolute value. Decimal: the number of digits
    /// after the decimal point. String: 1 for a LIKE pattern without a literal prefix, otherwise 0. Double:
    /// 0.
    class_detail: u64,
    /// The class, which determines the mark.
    pub class: LiteralClass,
    /// Whether the literal includes a minus sign.
    pub negative: bool,
    /// Whether a string contains escapes or doubled quotes, so that its value differs from its bytes.
    pub has_escapes: bool,
}

/// The literals of one parameter, as positions in [`Shape::literals`]. An IN list is one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A single literal.
    Literal {
        /// Position of the literal.
        literal: u32,
    },
    /// The literals of an IN list.
    List {
        /// Position of the first literal.
        first: u32,
        /// Number of literals; at least one.
        count: u32,
        /// Whether all are known to be unsigned integers of at most 63 bits. False if unknown.
        fit_in_63_bits: bool,
    },
    /// A literal of the first row of VALUES. The corresponding literal of row `n` (from 0) follows
    /// `n` × [`UniformRows::width`] positions later.
    RowLiteral {
        /// Position of the first row's literal.
        literal: u32,
    },
}

/// The rows of VALUES, which all have the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformRows {
    /// Byte offset of the first row's opening parenthesis.
    pub start: u32,
    /// Byte offset after the last row's closing parenthesis.
    pub end: u32,
    /// Parameter number of the first literal of a row; the other literals of the row follow it.
    pub first: ParameterNumber,
    /// Number of literals in a row.
    pub width: u32,
    /// Number of rows; at least one.
    pub count: u32,
}

/// The shape of a statement and its literals. One `Shape` is reused for many statements and keeps its
/// buffers.
#[derive(Clone, Debug)]
pub struct Shape {
    seed: u64,
    hash: [u64; 2],
    normalised: Vec<u8>,
    normalised_length: usize,
    literals: Vec<ScannedLiteral>,
    slots: Vec<Slot>,
    rows: Option<UniformRows>,
    recent: Box<recent::Recent>,
}

/// Scans a statement into `shape`. Ignores leading and trailing blanks, leading comments and trailing
/// semicolons.
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

    /// The 128-bit hash of the normalised text.
    #[inline]
    pub fn hash(&self) -> [u64; 2] {
        self.hash
    }

    /// The text with lifted literals replaced by marks. A cache compares it after a hash match.
    #[inline]
    pub fn normalised(&self) -> &[u8] {
        &self.normalised[..self.normalised_length]
    }

    /// All lifted literals in the order of the text, including those of lists and of every row.
    #[inline]
    pub fn literals(&self) -> &[ScannedLiteral] {
        &self.literals
    }

    /// Number of parameters. Parameter numbers begin at 0.
    #[inline]
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Appends the first part of the plan cache key of a statement with kept literals: the normalised text,
    /// then the text of each kept literal, preceded by its length as a little-endian u32.
    pub fn append_with_kept(&self, text: &[u8], kept: &[ParameterNumber], out: &mut Vec<u8>) {
        out.extend_from_slice(self.normalised());
        for ordinal in kept {
            let bytes = self.text_of(*ordinal, text);
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }

    /// The hash of a plan cache key that begins with the bytes of [`Shape::append_with_kept`].
    pub fn hash_of(&self, key: &[u8]) -> [u64; 2] {
        hash::of(key, self.seed)
    }

    /// The text of a parameter's literals: for a list from its first to its last member, for a VALUES column
    /// that of the first row. Empty for an unknown parameter.
    fn text_of<'a>(&self, ordinal: ParameterNumber, text: &'a [u8]) -> &'a [u8] {
        let (first, last) = match self.slot(ordinal) {
            Some(Slot::Literal { literal } | Slot::RowLiteral { literal }) => (literal, literal),
            Some(Slot::List { first, count, .. }) => (first, first + count - 1),
            None => return &[],
        };
        let (first, last) = (&self.literals[first as usize], &self.literals[last as usize]);
        &text[first.start as usize..last.end as usize]
    }

    /// The literals of a parameter; `None` for an unknown parameter.
    #[inline]
    pub fn slot(&self, ordinal: ParameterNumber) -> Option<Slot> {
        self.slots.get(ordinal.0 as usize).copied()
    }

    /// The rows of VALUES; `None` for a statement without VALUES.
    #[inline]
    pub fn rows(&self) -> Option<UniformRows> {
        self.rows
    }

    /// The literal of a parameter; for a VALUES column, the one in row `row` (from 0). Returns `None` for a
    /// list, an unknown parameter, and a row past the last.
    #[inline]
    pub fn literal(&self, ordinal: ParameterNumber, row: u32) -> Option<&ScannedLiteral> {
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

    /// The members of a list; empty for a parameter that is not a list.
    #[inline]
    pub fn list(&self, ordinal: ParameterNumber) -> &[ScannedLiteral] {
        match self.slot(ordinal) {
            Some(Slot::List { first, count, .. }) => &self.literals[first as usize..(first + count) as usize],
            _ => &[],
        }
    }

    /// The number of the parameter whose first literal begins at byte `start` of the text.
    pub fn slot_at(&self, start: u32) -> Option<ParameterNumber> {
        let first_literal = |slot: &Slot| match *slot {
            Slot::Literal { literal } | Slot::RowLiteral { literal } => literal,
            Slot::List { first, .. } => first,
        };
        let index =
            self.slots.binary_search_by_key(&start, |slot| self.literals[first_literal(slot) as usize].start).ok()?;
        Some(ParameterNumber(index as u32))
    }
}

impl ScannedLiteral {
    /// The literal's bytes in the text, without the quotes of a string.
    #[inline]
    pub fn bytes<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let bytes = &text[self.start as usize..self.end as usize];
        if self.class == LiteralClass::String { &bytes[1..bytes.len() - 1] } else { bytes }
    }

    /// Appends the value of a string to `value`, with escapes resolved.
    pub fn decode(&self, text: &[u8], value: &mut Vec<u8>) {
        if self.has_escapes {
            decode_string(self.bytes(text), text[self.start as usize], value);
        } else {
            value.extend_from_slice(self.bytes(text));
        }
    }

    /// The absolute value of an integer; meaningless for other classes.
    #[inline]
    pub fn magnitude(&self) -> u64 {
        self.class_detail
    }

    /// Digits after the decimal point of a decimal, at most 255; 0 for other classes.
    #[inline]
    pub fn scale(&self) -> u8 {
        if self.class == LiteralClass::Decimal { self.class_detail.min(255) as u8 } else { 0 }
    }

    /// Whether the literal is a LIKE pattern without a literal prefix: it is empty, or begins with a wildcard
    /// or a backslash. No key range can be derived from such a pattern.
    #[inline]
    pub fn is_open_pattern(&self) -> bool {
        self.class == LiteralClass::String && self.class_detail != 0
    }

    /// The value of an integer. Outside lists and rows of VALUES, a minus sign is an operator in the
    /// normalised text and not part of this value.
    #[inline]
    pub fn integer(&self) -> i128 {
        let magnitude = i128::from(self.class_detail);
        if self.negative { -magnitude } else { magnitude }
    }
}

#[cfg(test)]
mod tests;
