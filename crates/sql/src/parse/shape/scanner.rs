//! Hot path: see the budget in `shape.rs`. One pass over a statement's text.

use super::{FoldedRows, LiftedLiteral, LiteralClass, Shape, Slot};
use crate::parse::expression::Ordinal;
use crate::parse::lexer::{is_blank_byte, is_word_byte, quoted_end};
use crate::parse::limit::{SHAPE_LITERALS_MAX, STATEMENT_BYTES_MAX};

/// What a byte begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Word,
    Digit,
    Quote,
    Backtick,
    Dot,
    Minus,
    Slash,
    Hash,
    Open,
    Close,
    Comma,
    Operator,
    /// Nothing the scanner understands.
    Bad,
}

const CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut classes = [Class::Bad; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => Class::Digit,
            b'\'' | b'"' => Class::Quote,
            b'`' => Class::Backtick,
            b'.' => Class::Dot,
            b'-' => Class::Minus,
            b'/' => Class::Slash,
            b'#' => Class::Hash,
            b'(' => Class::Open,
            b')' => Class::Close,
            b',' => Class::Comma,
            b'=' | b'<' | b'>' | b'+' | b'*' | b'%' | b'&' | b'|' | b'^' | b'~' | b'!' | b'@' | b':' => Class::Operator,
            blank if is_blank_byte(blank) => Class::Blank,
            word if is_word_byte(word) => Class::Word,
            _ => Class::Bad,
        };
        byte += 1;
    }
    classes
}

/// Whether a byte continues a word, as a table for the copying loop.
const WORD: [bool; 256] = word_bytes();

const fn word_bytes() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_word_byte(byte as u8);
        byte += 1;
    }
    table
}

/// Marks of lifted literals in the normalised text: control characters, which cannot stand in it otherwise except
/// within quotes.
const fn mark(class: LiteralClass, is_list: bool) -> u8 {
    let single = match class {
        LiteralClass::Integer => 1,
        LiteralClass::Decimal => 2,
        LiteralClass::Double => 3,
        LiteralClass::String => 4,
    };
    if is_list { single + 4 } else { single }
}

/// The mark of a string.
const STRING_MARK: u8 = mark(LiteralClass::String, false);

/// A pass over one statement. Methods return `None` when the statement is not cacheable.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    /// The next byte to look at.
    at: usize,
    out: &'a mut [u8],
    /// How much of `out` is written.
    length: usize,
    literals: &'a mut Vec<LiftedLiteral>,
    slots: &'a mut Vec<Slot>,
    rows: &'a mut Option<FoldedRows>,
    /// Where the last word begins in `out`.
    last_word: usize,
    /// Blanks or a comment were passed since the last token.
    blank_pending: bool,
    /// Open brackets.
    depth: u32,
    /// Whether the rows of VALUES may come.
    expects_rows: bool,
    /// Whether the place is within a row of VALUES.
    in_row: bool,
}

impl<'a> Scanner<'a> {
    #[inline]
    pub(super) fn new(text: &'a [u8], shape: &'a mut Shape) -> Scanner<'a> {
        let trimmed = text.iter().rposition(|byte| !is_blank_byte(*byte) && *byte != b';').map_or(0, |last| last + 1);
        Scanner {
            text: &text[..trimmed],
            at: 0,
            out: &mut shape.normalised,
            length: 0,
            literals: &mut shape.literals,
            slots: &mut shape.slots,
            rows: &mut shape.rows,
            last_word: 0,
            blank_pending: false,
            depth: 0,
            expects_rows: false,
            in_row: false,
        }
    }

    /// The length of the normalised text.
    #[inline]
    pub(super) fn run(mut self) -> Option<usize> {
        if self.text.len() > STATEMENT_BYTES_MAX {
            return None;
        }
        self.skip_blanks()?;
        self.blank_pending = false;
        let first = self.copy_word()?;
        match first.len() {
            6 if first.eq_ignore_ascii_case(b"SELECT") => self.select_list()?,
            6 if first.eq_ignore_ascii_case(b"INSERT") => self.expects_rows = true,
            7 if first.eq_ignore_ascii_case(b"REPLACE") => self.expects_rows = true,
            6 if first.eq_ignore_ascii_case(b"UPDATE") || first.eq_ignore_ascii_case(b"DELETE") => {}
            5 if first.eq_ignore_ascii_case(b"BEGIN") || first.eq_ignore_ascii_case(b"START") => {}
            6 if first.eq_ignore_ascii_case(b"COMMIT") => {}
            8 if first.eq_ignore_ascii_case(b"ROLLBACK") => {}
            _ => return None,
        }
        while self.at < self.text.len() {
            self.token()?;
        }
        Some(self.length)
    }

    /// The byte `ahead` of the current one, or zero at the end.
    #[inline]
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Whether the byte before the current one can end a name.
    #[inline]
    fn follows_name(&self) -> bool {
        self.at > 0 && (WORD[usize::from(self.text[self.at - 1])] || self.text[self.at - 1] == b'`')
    }

    /// The byte written last, or zero.
    #[inline]
    fn written(&self) -> u8 {
        if self.length == 0 { 0 } else { self.out[self.length - 1] }
    }

    #[inline]
    fn emit(&mut self, byte: u8) -> Option<()> {
        *self.out.get_mut(self.length)? = byte;
        self.length += 1;
        Some(())
    }

    /// Writes the space that blanks before a token beginning with `byte` leave: none beside brackets and commas.
    #[inline]
    fn settle_blank(&mut self, byte: u8) -> Option<()> {
        if self.blank_pending {
            self.blank_pending = false;
            if !matches!(self.written(), b'(' | b',' | 0) && !matches!(byte, b')' | b',') {
                self.emit(b' ')?;
            }
        }
        Some(())
    }

    /// One token of the main part.
    #[inline]
    fn token(&mut self) -> Option<()> {
        let byte = self.text[self.at];
        match CLASSES[usize::from(byte)] {
            Class::Blank => self.skip_blanks(),
            Class::Word => self.word(),
            Class::Digit => self.number(self.at),
            Class::Quote => self.string(),
            Class::Dot => {
                if !self.byte(1).is_ascii_digit() {
                    return self.operator(byte);
                }
                if self.follows_name() {
                    return None;
                }
                self.number(self.at)
            }
            Class::Minus => self.minus(),
            Class::Slash if self.byte(1) == b'*' => self.skip_blanks(),
            Class::Hash => self.skip_blanks(),
            Class::Open => {
                self.depth += 1;
                self.operator(byte)
            }
            Class::Close => {
                self.depth = self.depth.checked_sub(1)?;
                self.operator(byte)
            }
            Class::Backtick => self.backticks(),
            Class::Slash | Class::Comma | Class::Operator => self.operator(byte),
            Class::Bad => None,
        }
    }

    #[inline]
    fn operator(&mut self, byte: u8) -> Option<()> {
        self.settle_blank(byte)?;
        self.at += 1;
        self.emit(byte)
    }

    fn backticks(&mut self) -> Option<()> {
        self.settle_blank(b'`')?;
        let (end, _) = quoted_end(self.text, self.at)?;
        self.copy_until(end)
    }

    fn copy_until(&mut self, end: usize) -> Option<()> {
        let source = &self.text[self.at..end];
        self.out.get_mut(self.length..self.length + source.len())?.copy_from_slice(source);
        self.length += source.len();
        self.at = end;
        Some(())
    }

    /// Copies a run of word bytes and returns it.
    #[inline]
    fn copy_word(&mut self) -> Option<&'a [u8]> {
        let source = &self.text[self.at..];
        let target = &mut self.out[self.length..];
        let mut count = 0;
        for (from, to) in source.iter().zip(target.iter_mut()) {
            if !WORD[usize::from(*from)] {
                break;
            }
            *to = *from;
            count += 1;
        }
        if count == target.len() {
            return None;
        }
        self.last_word = self.length;
        self.length += count;
        self.at += count;
        Some(&source[..count])
    }

    #[inline]
    fn word(&mut self) -> Option<()> {
        self.settle_blank(b'a')?;
        let is_qualified = self.written() == b'.' || self.written() == b'@';
        let word = self.copy_word()?;
        if is_qualified {
            return Some(());
        }
        match word.len() {
            2 if word.eq_ignore_ascii_case(b"IN") && !self.in_row => self.list(),
            5 | 6 if self.expects_rows && self.depth == 0 => {
                let is_values = word.eq_ignore_ascii_case(b"VALUES") || word.eq_ignore_ascii_case(b"VALUE");
                if is_values { self.value_rows() } else { Some(()) }
            }
            _ => Some(()),
        }
    }

    /// A minus sign: a comment's beginning, a sign of a literal in a row, or an operator.
    #[inline]
    fn minus(&mut self) -> Option<()> {
        if self.byte(1) == b'-' && (self.byte(2).is_ascii_control() || is_blank_byte(self.byte(2))) {
            return self.skip_blanks();
        }
        let begins_value = self.in_row && self.depth == 1 && matches!(self.written(), b'(' | b',');
        if begins_value && (self.byte(1).is_ascii_digit() || self.byte(1) == b'.') {
            return self.row_number();
        }
        self.operator(b'-')
    }

    /// A signed number that may be all of a row's member; otherwise the sign is an operator.
    fn row_number(&mut self) -> Option<()> {
        let literal = read_number(self.text, self.at + 1)?;
        let mut after = literal.end as usize;
        while self.text.get(after).is_some_and(|byte| is_blank_byte(*byte)) {
            after += 1;
        }
        if !matches!(self.text.get(after), Some(b',' | b')')) {
            return self.operator(b'-');
        }
        self.blank_pending = false;
        let start = self.at as u32;
        self.lift(LiftedLiteral { start, negative: true, ..literal })
    }

    #[inline]
    fn number(&mut self, at: usize) -> Option<()> {
        if self.written() == b'@' && !self.blank_pending {
            return None;
        }
        let literal = read_number(self.text, at)?;
        self.settle_blank(b'1')?;
        self.lift(literal)
    }

    #[inline]
    fn string(&mut self) -> Option<()> {
        let before = self.written();
        if before == STRING_MARK {
            // Adjacent strings are one.
            return None;
        }
        if before == b'@' || WORD[usize::from(before)] && (!self.blank_pending || self.out[self.last_word] == b'_') {
            // A variable's name, or a string with a prefix.
            return None;
        }
        let (end, has_escapes) = quoted_end(self.text, self.at)?;
        self.settle_blank(b'\'')?;
        self.lift(LiftedLiteral {
            start: self.at as u32,
            end: end as u32,
            magnitude: 0,
            class: LiteralClass::String,
            negative: false,
            has_escapes,
        })
    }

    /// Records a literal, writes its mark and goes to its end.
    #[inline]
    fn lift(&mut self, literal: LiftedLiteral) -> Option<()> {
        let index = self.literals.len() as u32;
        self.push_literal(literal)?;
        if !self.in_row {
            self.slots.push(Slot::Literal { literal: index });
        } else if self.rows.is_none_or(|rows| rows.count == 0) {
            self.slots.push(Slot::RowLiteral { literal: index });
        }
        self.at = literal.end as usize;
        self.emit(mark(literal.class, false))
    }

    #[inline]
    fn push_literal(&mut self, literal: LiftedLiteral) -> Option<()> {
        if self.literals.len() >= SHAPE_LITERALS_MAX {
            return None;
        }
        self.literals.push(literal);
        Some(())
    }

    /// Passes blanks and comments; `None` if a comment has a meaning or is not closed.
    #[inline]
    fn skip_blanks(&mut self) -> Option<()> {
        self.blank_pending = true;
        loop {
            match self.byte(0) {
                blank if is_blank_byte(blank) => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if self.byte(1) == b'-' && (self.byte(2).is_ascii_control() || is_blank_byte(self.byte(2))) => {
                    self.skip_line();
                }
                b'/' if self.byte(1) == b'*' => {
                    if matches!(self.byte(2), b'!' | b'+') || self.byte(2) == b'M' && self.byte(3) == b'!' {
                        return None;
                    }
                    let body = &self.text[self.at + 2..];
                    self.at += body.windows(2).position(|pair| pair == b"*/")? + 4;
                }
                _ => return Some(()),
            }
        }
    }

    fn skip_line(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|byte| **byte != b'\n').count();
    }

    /// Copies the select list, up to FROM outside brackets, without any change.
    fn select_list(&mut self) -> Option<()> {
        while self.at < self.text.len() {
            let byte = self.text[self.at];
            match CLASSES[usize::from(byte)] {
                Class::Word | Class::Digit => {
                    let is_qualified = self.written() == b'.';
                    let word = self.copy_word()?;
                    if word.len() == 4 && self.depth == 0 && !is_qualified && word.eq_ignore_ascii_case(b"FROM") {
                        return Some(());
                    }
                }
                Class::Quote | Class::Backtick => {
                    let (end, _) = quoted_end(self.text, self.at)?;
                    self.copy_until(end)?;
                }
                Class::Open => {
                    self.depth += 1;
                    self.copy_until(self.at + 1)?;
                }
                Class::Close => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.copy_until(self.at + 1)?;
                }
                Class::Slash if self.byte(1) == b'*' => return None,
                Class::Minus if self.byte(1) == b'-' => return None,
                Class::Hash | Class::Bad => return None,
                _ => {
                    self.emit(byte)?;
                    self.at += 1;
                }
            }
        }
        Some(())
    }

    /// `(literal, ...)` after IN as one mark. If it is anything else, nothing is consumed and the ordinary way follows.
    #[inline]
    fn list(&mut self) -> Option<()> {
        let open = skip_plain_blanks(self.text, self.at);
        if self.text.get(open) != Some(&b'(') {
            return Some(());
        }
        let first = self.literals.len();
        let Some(end) = self.list_members(open + 1) else {
            self.literals.truncate(first);
            return Some(());
        };
        if self.literals.len() >= SHAPE_LITERALS_MAX {
            return None;
        }
        let class = self.literals[first].class;
        self.slots.push(Slot::List { first: first as u32, count: (self.literals.len() - first) as u32 });
        self.at = end;
        self.emit(b'(')?;
        self.emit(mark(class, true))?;
        self.emit(b')')
    }

    /// Records the members of a list from byte `at` on; the byte after its closing bracket, or `None` if the list is
    /// not of literals of one class.
    #[inline]
    fn list_members(&mut self, mut at: usize) -> Option<usize> {
        let mut class = None;
        loop {
            at = skip_plain_blanks(self.text, at);
            let start = at;
            let negative = *self.text.get(at)? == b'-';
            at += usize::from(negative);
            let literal = match CLASSES[usize::from(*self.text.get(at)?)] {
                Class::Digit | Class::Dot => read_number(self.text, at)?,
                Class::Quote if !negative => {
                    let (end, has_escapes) = quoted_end(self.text, at)?;
                    let class = LiteralClass::String;
                    LiftedLiteral { start: 0, end: end as u32, magnitude: 0, class, negative, has_escapes }
                }
                _ => return None,
            };
            if *class.get_or_insert(literal.class) != literal.class {
                return None;
            }
            self.push_literal(LiftedLiteral { start: start as u32, negative, ..literal })?;
            at = skip_plain_blanks(self.text, literal.end as usize);
            match *self.text.get(at)? {
                b',' => at += 1,
                b')' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// The rows of VALUES. Each must have the form of the first, which alone is kept.
    fn value_rows(&mut self) -> Option<()> {
        self.skip_blanks()?;
        if self.byte(0) != b'(' {
            return Some(());
        }
        self.blank_pending = false;
        self.expects_rows = false;
        let first = Ordinal(self.slots.len() as u32);
        let start = self.at as u32;
        let form = self.length;
        self.row()?;
        let form_end = self.length;
        let width = self.slots.len() as u32 - first.0;
        let mut rows = FoldedRows { start, end: self.at as u32, first, width, count: 1 };
        loop {
            *self.rows = Some(rows);
            self.skip_blanks()?;
            if self.byte(0) != b',' {
                return Some(());
            }
            self.at += 1;
            self.skip_blanks()?;
            if self.byte(0) != b'(' {
                return None;
            }
            self.blank_pending = false;
            self.row()?;
            if self.out[form..form_end] != self.out[form_end..self.length] {
                return None;
            }
            self.length = form_end;
            rows.count += 1;
            rows.end = self.at as u32;
        }
    }

    /// One row with its brackets.
    #[inline]
    fn row(&mut self) -> Option<()> {
        self.in_row = true;
        loop {
            if self.at >= self.text.len() {
                return None;
            }
            self.token()?;
            if self.depth == 0 {
                break;
            }
        }
        self.in_row = false;
        Some(())
    }
}

/// Passes blanks, not comments.
#[inline]
fn skip_plain_blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|byte| is_blank_byte(*byte)) {
        at += 1;
    }
    at
}

/// The number that begins at byte `at` without a sign; `None` if what begins there may be something else.
#[inline]
fn read_number(text: &[u8], at: usize) -> Option<LiftedLiteral> {
    let mut end = at;
    let mut magnitude = 0u64;
    let mut fits = true;
    let digits = |end: &mut usize| {
        let begin = *end;
        while text.get(*end).is_some_and(u8::is_ascii_digit) {
            *end += 1;
        }
        *end - begin
    };
    while let Some(digit) = text.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9) {
        let next = magnitude.checked_mul(10).and_then(|product| product.checked_add(u64::from(digit)));
        fits &= next.is_some();
        magnitude = next.unwrap_or(0);
        end += 1;
    }
    let mut class = if fits { LiteralClass::Integer } else { LiteralClass::Decimal };
    if text.get(end) == Some(&b'.') {
        let whole = end - at;
        end += 1;
        if digits(&mut end) + whole == 0 {
            return None;
        }
        class = LiteralClass::Decimal;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        end += 1 + usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        if digits(&mut end) == 0 {
            return None;
        }
        class = LiteralClass::Double;
    }
    if text.get(end).is_some_and(|byte| WORD[usize::from(*byte)] || *byte == b'.') {
        // A name that begins with a digit, a hexadecimal number, or nothing at all.
        return None;
    }
    let magnitude = if class == LiteralClass::Integer { magnitude } else { 0 };
    Some(LiftedLiteral { start: at as u32, end: end as u32, magnitude, class, negative: false, has_escapes: false })
}
