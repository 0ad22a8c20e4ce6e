//! Hot path, with the budget of instructions in `mod.rs`.
//!
//! One pass over the text of a statement.

use super::{LiteralClass, ScannedLiteral, Shape, Slot, UniformRows};
use crate::parse::expression::ParameterNumber;
use crate::parse::lexer::{is_blank_byte, is_word_byte, quoted_end};
use crate::parse::limit::{SHAPE_LITERALS_MAX, STATEMENT_BYTES_MAX};
use crate::parse::literal::{decode_integer, starts_with_literal};

/// The kind of token that a byte begins.
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
    /// Not understood: the statement is not cacheable.
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

/// Whether a byte continues a word. A table, because the loop over words is hot.
const WORD: [bool; 256] = bytes_of_words(false);

/// Whether a byte that follows digits makes the token something other than an integer.
const NUMBER_GOES_ON: [bool; 256] = bytes_of_words(true);

const fn bytes_of_words(with_dot: bool) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_word_byte(byte as u8) || with_dot && byte == b'.' as usize;
        byte += 1;
    }
    table
}

/// The mark of a lifted literal in the normalised text: a control character. Outside quotes no other control
/// character occurs there, except a scale after the mark of a decimal.
const fn mark(class: LiteralClass, is_list: bool) -> u8 {
    let single = match class {
        LiteralClass::Integer => 1,
        LiteralClass::Decimal => 2,
        LiteralClass::Double => 3,
        LiteralClass::String => 4,
    };
    if is_list { single + 4 } else { single }
}

/// Mark of a single string.
const STRING_MARK: u8 = mark(LiteralClass::String, false);

/// Mark of a LIKE pattern without a literal prefix.
const OPEN_PATTERN_MARK: u8 = 14;

/// Stands for the last byte of a word where only the kind of the previous token matters.
const WORD_MARK: u8 = b'a';

/// Byte that stands for every scale above 30, the largest scale of an exact number.
const SCALE_BYTE_MAX: u8 = 31;

/// Maximum length of a decimal that is exact whatever its digits: 65 digits and the decimal point.
const EXACT_BYTES_MAX: usize = 66;

/// Largest number of digits whose value always fits in 64 bits.
pub(super) const SAFE_DIGITS: usize = 19;

/// A pass over one statement. Methods return `None` when the statement is not cacheable. Unchanged text is
/// copied in runs as long as possible.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    /// Bytes of `text` before this offset have been copied or deliberately skipped.
    copied: usize,
    out: &'a mut [u8],
    /// Bytes written to `out`.
    length: usize,
    literals: &'a mut Vec<ScannedLiteral>,
    slots: &'a mut Vec<Slot>,
    rows: &'a mut Option<UniformRows>,
    /// Whether the rows of VALUES may still follow.
    expects_rows: bool,
}

impl<'a> Scanner<'a> {
    #[inline]
    pub(super) fn new(text: &'a [u8], shape: &'a mut Shape) -> Scanner<'a> {
        let trimmed = text.iter().rposition(|byte| !is_blank_byte(*byte) && *byte != b';').map_or(0, |last| last + 1);
        Scanner {
            text: &text[..trimmed],
            copied: 0,
            out: &mut shape.normalised,
            length: 0,
            literals: &mut shape.literals,
            slots: &mut shape.slots,
            rows: &mut shape.rows,
            expects_rows: false,
        }
    }

    /// Scans the statement and returns the length of the normalised text.
    #[inline]
    pub(super) fn run(mut self) -> Option<usize> {
        if self.text.len() > STATEMENT_BYTES_MAX {
            return None;
        }
        let start = skip_blanks(self.text, 0)?;
        self.copied = start;
        let mut at = word_end(self.text, start);
        let first = &self.text[start..at];
        match first.first()?.to_ascii_lowercase() {
            b's' if first.eq_ignore_ascii_case(b"SELECT") => at = select_list(self.text, at)?,
            b'i' if first.eq_ignore_ascii_case(b"INSERT") => self.expects_rows = true,
            b'r' if first.eq_ignore_ascii_case(b"REPLACE") => self.expects_rows = true,
            b'u' if first.eq_ignore_ascii_case(b"UPDATE") => {}
            b'd' if first.eq_ignore_ascii_case(b"DELETE") => {}
            b'b' if first.eq_ignore_ascii_case(b"BEGIN") => {}
            b's' if first.eq_ignore_ascii_case(b"START") => {}
            b'c' if first.eq_ignore_ascii_case(b"COMMIT") => {}
            b'r' if first.eq_ignore_ascii_case(b"ROLLBACK") => {}
            _ => return None,
        }
        let end = self.tokens::<false>(at)?;
        self.copy_to(end)?;
        Some(self.length)
    }

    /// Scans tokens from byte `at` to the end of the text; in a row, up to the row's closing parenthesis.
    /// Returns the offset after them.
    fn tokens<const IN_ROW: bool>(&mut self, mut at: usize) -> Option<usize> {
        let text = self.text;
        let mut depth = 0u32;
        // The last byte of the previous token, and the offset of the last word.
        let (mut before, mut last_word) = (0u8, at);
        while let Some(byte) = text.get(at).copied() {
            match CLASSES[usize::from(byte)] {
                Class::Word => {
                    last_word = at;
                    at = word_end(text, at);
                    before = WORD_MARK;
                    if at - last_word == 2 && !IN_ROW && text[last_word..at].eq_ignore_ascii_case(b"IN") {
                        at = self.list(last_word, at)?;
                    } else if !IN_ROW && self.expects_rows && depth == 0 {
                        at = self.rows_after(last_word, at)?;
                    }
                }
                Class::Blank => at = self.blank(at)?,
                Class::Digit => {
                    // `@1` is the name of a user variable.
                    if text[at - 1] == b'@' {
                        return None;
                    }
                    let begins_member = IN_ROW && depth == 1 && matches!(before, b'(' | b',');
                    (at, before) = self.lift::<IN_ROW>(at, read_number(text, at)?, begins_member)?;
                }
                Class::Quote => {
                    (at, before) = self.lift::<IN_ROW>(at, read_string(text, at, before, last_word)?, false)?;
                }
                Class::Dot if byte_at(text, at + 1).is_ascii_digit() => {
                    // After a name, the dot joins a second name, as in `t.1a`.
                    if WORD[usize::from(text[at - 1])] || text[at - 1] == b'`' {
                        return None;
                    }
                    let begins_member = IN_ROW && depth == 1 && matches!(before, b'(' | b',');
                    (at, before) = self.lift::<IN_ROW>(at, read_number(text, at)?, begins_member)?;
                }
                Class::Minus if is_line_comment(text, at) => at = self.blank(at)?,
                Class::Minus if IN_ROW && depth == 1 && matches!(before, b'(' | b',') => {
                    (at, before) = self.sign_in_row(at)?;
                }
                Class::Slash if byte_at(text, at + 1) == b'*' => at = self.blank(at)?,
                Class::Hash => at = self.blank(at)?,
                Class::Backtick => (at, before) = (quoted_end(text, at)?.0, byte),
                Class::Open => {
                    depth += 1;
                    (at, before) = (at + 1, byte);
                }
                Class::Close => {
                    depth = depth.checked_sub(1)?;
                    (at, before) = (at + 1, byte);
                    if IN_ROW && depth == 0 {
                        return Some(at);
                    }
                }
                Class::Bad => return None,
                _ => (at, before) = (at + 1, byte),
            }
        }
        if IN_ROW { None } else { Some(at) }
    }

    /// Copies the pending text up to byte `end`.
    #[inline]
    fn copy_to(&mut self, end: usize) -> Option<()> {
        let source = &self.text[self.copied..end];
        self.out.get_mut(self.length..self.length + source.len())?.copy_from_slice(source);
        self.length += source.len();
        self.copied = end;
        Some(())
    }

    #[inline]
    fn emit(&mut self, byte: u8) -> Option<()> {
        *self.out.get_mut(self.length)? = byte;
        self.length += 1;
        Some(())
    }

    /// Replaces blanks and comments by one space. A single space needs no replacement and stays in the
    /// pending text.
    #[inline]
    fn blank(&mut self, at: usize) -> Option<usize> {
        let next = CLASSES[usize::from(byte_at(self.text, at + 1))];
        if self.text[at] == b' ' && matches!(next, Class::Word | Class::Digit | Class::Operator | Class::Quote) {
            return Some(at + 1);
        }
        self.long_blank(at)
    }

    #[inline(never)]
    fn long_blank(&mut self, at: usize) -> Option<usize> {
        let end = skip_blanks(self.text, at)?;
        if end == at + 1 && self.text[at] == b' ' {
            return Some(end);
        }
        self.copy_to(at)?;
        self.emit(b' ')?;
        self.copied = end;
        Some(end)
    }

    /// Records a literal that begins at byte `at` and writes its mark. Returns the offset after the literal,
    /// and the mark. The scale of a decimal follows its mark. It is omitted if the literal is by itself a
    /// value of a row, so that rows with different scales have the same form.
    #[inline]
    fn lift<const IN_ROW: bool>(
        &mut self,
        at: usize,
        literal: ScannedLiteral,
        begins_member: bool,
    ) -> Option<(usize, u8)> {
        let index = self.literals.len() as u32;
        self.push_literal(literal)?;
        // `rows` is set after the first row, so only that row creates slots.
        if !IN_ROW {
            self.slots.push(Slot::Literal { literal: index });
        } else if self.rows.is_none() {
            self.slots.push(Slot::RowLiteral { literal: index });
        }
        self.copy_to(at)?;
        self.copied = literal.end as usize;
        let mark = mark(literal.class, false);
        self.emit(if literal.is_open_pattern() { OPEN_PATTERN_MARK } else { mark })?;
        if literal.class == LiteralClass::Decimal && !(begins_member && self.ends_member(self.copied)) {
            // Every scale byte is less than the space character, so it cannot be confused with text after a
            // mark without a scale.
            self.emit(literal.scale().min(SCALE_BYTE_MAX))?;
        }
        Some((self.copied, mark))
    }

    /// Whether a row's value ends at byte `at`, apart from blanks.
    fn ends_member(&self, at: usize) -> bool {
        matches!(byte_at(self.text, skip_plain_blanks(self.text, at)), b',' | b')')
    }

    #[inline]
    fn push_literal(&mut self, literal: ScannedLiteral) -> Option<()> {
        if self.literals.len() >= SHAPE_LITERALS_MAX {
            return None;
        }
        self.literals.push(literal);
        Some(())
    }

    /// Handles a minus sign at the beginning of a row's value. The sign is part of the number if the two
    /// together are the whole value.
    fn sign_in_row(&mut self, at: usize) -> Option<(usize, u8)> {
        let first = byte_at(self.text, at + 1);
        if !first.is_ascii_digit() && first != b'.' {
            return Some((at + 1, b'-'));
        }
        let literal = read_number(self.text, at + 1)?;
        if !self.ends_member(literal.end as usize) {
            return Some((at + 1, b'-'));
        }
        self.lift::<true>(at, ScannedLiteral { start: at as u32, negative: true, ..literal }, true)
    }

    /// Replaces `(literal, ...)` after an IN that ends at byte `at` by one mark. If other text follows,
    /// consumes nothing, and the text is scanned as usual.
    fn list(&mut self, word: usize, at: usize) -> Option<usize> {
        let open = skip_plain_blanks(self.text, at);
        if byte_at(self.text, open) != b'(' || is_qualified(self.text, word) {
            return Some(at);
        }
        let first = self.literals.len();
        let (end, fit_in_63_bits) = match integer_members(self.text, open + 1, self.literals) {
            Some(end) => (end, true),
            None => {
                // The fast path may have recorded members before it failed.
                self.literals.truncate(first);
                let Some(end) = self.list_members(open + 1) else {
                    self.literals.truncate(first);
                    return Some(at);
                };
                (end, false)
            }
        };
        let class = self.literals[first].class;
        let count = (self.literals.len() - first) as u32;
        self.slots.push(Slot::List { first: first as u32, count, fit_in_63_bits });
        self.copy_to(at)?;
        self.copied = end;
        self.emit(b'(')?;
        self.emit(mark(class, true))?;
        self.emit(b')')?;
        Some(end)
    }

    /// Records the members of a list from byte `at` on. Returns the offset after the closing parenthesis, or
    /// `None` if the members are not literals of one class.
    fn list_members(&mut self, mut at: usize) -> Option<usize> {
        let text = self.text;
        let mut class = None;
        loop {
            let mut byte = *text.get(at)?;
            if byte <= b' ' {
                at = skip_plain_blanks(text, at);
                byte = byte_at(text, at);
            }
            let literal = match CLASSES[usize::from(byte)] {
                Class::Digit | Class::Dot => read_number(text, at)?,
                Class::Minus => {
                    let literal = read_number(text, at + 1)?;
                    ScannedLiteral { start: at as u32, negative: true, ..literal }
                }
                Class::Quote => read_string(text, at, 0, at)?,
                _ => return None,
            };
            if *class.get_or_insert(literal.class) != literal.class {
                return None;
            }
            self.push_literal(literal)?;
            at = literal.end as usize;
            let mut after = *text.get(at)?;
            if after <= b' ' {
                at = skip_plain_blanks(text, at);
                after = byte_at(text, at);
            }
            at += 1;
            match after {
                b',' => {}
                b')' => return Some(at),
                _ => return None,
            }
        }
    }

    /// Scans the rows if the word before byte `at` is VALUES.
    fn rows_after(&mut self, word: usize, at: usize) -> Option<usize> {
        let name = &self.text[word..at];
        let is_values = name.eq_ignore_ascii_case(b"VALUES") || name.eq_ignore_ascii_case(b"VALUE");
        if !is_values || is_qualified(self.text, word) {
            return Some(at);
        }
        let start = skip_blanks(self.text, at)?;
        if byte_at(self.text, start) != b'(' {
            return Some(at);
        }
        self.copy_to(at)?;
        self.value_rows(start)
    }

    /// Scans the rows of VALUES. Each must have the same form as the first row. Only the first stays in the
    /// normalised text.
    fn value_rows(&mut self, start: usize) -> Option<usize> {
        self.expects_rows = false;
        let first = ParameterNumber(self.slots.len() as u32);
        let form = self.length;
        let mut end = self.row(start)?;
        let form_end = self.length;
        let width = self.slots.len() as u32 - first.0;
        let mut rows = UniformRows { start: start as u32, end: end as u32, first, width, count: 1 };
        loop {
            *self.rows = Some(rows);
            let comma = skip_blanks(self.text, end)?;
            if byte_at(self.text, comma) != b',' {
                self.copied = comma;
                if comma < self.text.len() {
                    self.emit(b' ')?;
                }
                return Some(comma);
            }
            let open = skip_blanks(self.text, comma + 1)?;
            if byte_at(self.text, open) != b'(' {
                return None;
            }
            // A later row is written after the first row, compared with it and discarded.
            end = self.row(open)?;
            if self.out[form..form_end] != self.out[form_end..self.length] {
                return None;
            }
            self.length = form_end;
            rows.count += 1;
            rows.end = end as u32;
        }
    }

    /// Scans one row including its parentheses.
    #[inline]
    fn row(&mut self, open: usize) -> Option<usize> {
        self.copied = open;
        let end = self.tokens::<true>(open)?;
        self.copy_to(end)?;
        Some(end)
    }
}

/// The byte at offset `at`; zero past the end of the text.
#[inline]
fn byte_at(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// The end of the run of word bytes that begins at byte `at`.
#[inline]
fn word_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    at + rest.iter().position(|byte| !WORD[usize::from(*byte)]).unwrap_or(rest.len())
}

/// Whether the word at byte `word` is the second part of a name, or the name of a variable.
#[inline]
fn is_qualified(text: &[u8], word: usize) -> bool {
    word > 0 && matches!(text[word - 1], b'.' | b'@')
}

/// Whether `--` at byte `at` begins a comment.
#[inline]
fn is_line_comment(text: &[u8], at: usize) -> bool {
    let after = byte_at(text, at + 2);
    byte_at(text, at + 1) == b'-' && (after.is_ascii_control() || is_blank_byte(after))
}

/// Skips blanks and comments. Returns `None` for an executable comment, an optimizer hint and an unclosed
/// comment.
fn skip_blanks(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match byte_at(text, at) {
            blank if is_blank_byte(blank) => at += 1,
            b'#' => at = line_end(text, at),
            b'-' if is_line_comment(text, at) => at = line_end(text, at),
            b'/' if byte_at(text, at + 1) == b'*' => {
                let kind = byte_at(text, at + 2);
                if matches!(kind, b'!' | b'+') || kind == b'M' && byte_at(text, at + 3) == b'!' {
                    return None;
                }
                at += text[at + 2..].windows(2).position(|pair| pair == b"*/")? + 4;
            }
            _ => return Some(at),
        }
    }
}

fn line_end(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| **byte != b'\n').count()
}

/// Skips blanks but no comments.
#[inline]
fn skip_plain_blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|byte| is_blank_byte(*byte)) {
        at += 1;
    }
    at
}

/// The end of the select list that begins at byte `at`: after a FROM outside parentheses, or the end of the
/// text. The list is kept unchanged. A comment in it would become part of a column's name, so such a
/// statement is not cacheable.
fn select_list(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0u32;
    while let Some(byte) = text.get(at).copied() {
        match CLASSES[usize::from(byte)] {
            Class::Word | Class::Digit => {
                let word = at;
                at = word_end(text, at);
                let is_from = at - word == 4 && text[word..at].eq_ignore_ascii_case(b"FROM");
                if is_from && depth == 0 && !is_qualified(text, word) {
                    return Some(at);
                }
            }
            Class::Quote | Class::Backtick => at = quoted_end(text, at)?.0,
            Class::Open => {
                depth += 1;
                at += 1;
            }
            Class::Close => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            Class::Slash if byte_at(text, at + 1) == b'*' => return None,
            Class::Minus if byte_at(text, at + 1) == b'-' => return None,
            Class::Hash | Class::Bad => return None,
            _ => at += 1,
        }
    }
    Some(at)
}

/// Reads the string that opens at byte `at`. Returns `None` if the string is unclosed or may be part of a
/// larger token. `before` is the last byte of the previous token, `last_word` the offset of the last word.
#[inline]
fn read_string(text: &[u8], at: usize, before: u8, last_word: usize) -> Option<ScannedLiteral> {
    // Adjacent strings form one string.
    let is_adjacent = before == STRING_MARK;
    // The name of a variable, or a string with a prefix such as `x'41'`.
    let is_prefixed = text[at - 1] == b'@' || WORD[usize::from(text[at - 1])];
    let is_introduced = before == WORD_MARK && text[last_word] == b'_';
    if is_adjacent || is_prefixed || is_introduced {
        return None;
    }
    let (end, has_escapes) = quoted_end(text, at)?;
    let is_pattern = before == WORD_MARK && is_like(text, last_word);
    let class_detail = u64::from(is_pattern && !starts_with_literal(&text[at + 1..end - 1]));
    let (start, end, class) = (at as u32, end as u32, LiteralClass::String);
    Some(ScannedLiteral { start, end, class_detail, class, negative: false, has_escapes })
}

/// Whether the word at byte `word` is LIKE.
#[inline]
fn is_like(text: &[u8], word: usize) -> bool {
    text.get(word..word + 4).is_some_and(|name| name.eq_ignore_ascii_case(b"LIKE"))
        && !WORD[usize::from(byte_at(text, word + 4))]
}

/// Reads the unsigned number that begins at byte `at`. Returns `None` if the token may be something else.
#[inline(always)]
fn read_number(text: &[u8], at: usize) -> Option<ScannedLiteral> {
    let (magnitude, count) = read_digits(text, at);
    let end = at + count;
    if count == 0 || count > SAFE_DIGITS || NUMBER_GOES_ON[usize::from(byte_at(text, end))] {
        return read_long_number(text, at);
    }
    let (start, end, class) = (at as u32, end as u32, LiteralClass::Integer);
    Some(ScannedLiteral { start, end, class_detail: magnitude, class, negative: false, has_escapes: false })
}

/// The fast path of [`Scanner::list_members`] for the most frequent lists: unsigned integers of at most 18
/// digits, with at most one space after each comma.
#[inline(never)]
fn integer_members(text: &[u8], at: usize, literals: &mut Vec<ScannedLiteral>) -> Option<usize> {
    let mut keep = |rest: &[u8], count: usize, magnitude: u64| {
        if literals.len() == literals.capacity() {
            more_room(literals)?;
        }
        let start = (text.len() - rest.len()) as u32;
        let (end, class) = (start + count as u32, LiteralClass::Integer);
        literals.push(ScannedLiteral {
            start,
            end,
            class_detail: magnitude,
            class,
            negative: false,
            has_escapes: false,
        });
        Some(())
    };
    let mut rest = text.get(at..)?;
    let at = loop {
        // If the text is long enough and the number is short, one window contains the digits and the bytes
        // after them.
        if let Some(window) = rest.first_chunk::<10>() {
            let (magnitude, count) = eight_digits(u64::from_le_bytes(*window.first_chunk()?));
            // The bound of the number comes first, so that the compiler leaves out those of the window.
            if (1..8).contains(&count) && window[count] == b',' {
                keep(rest, count, magnitude)?;
                rest = &rest[count + 1 + usize::from(window[count + 1] == b' ')..];
                continue;
            }
        }
        let (magnitude, count) = read_digits(rest, 0);
        if count == 0 || count >= SAFE_DIGITS {
            return None;
        }
        keep(rest, count, magnitude)?;
        rest = &rest[count..];
        match byte_at(rest, 0) {
            b',' => rest = &rest[1 + usize::from(byte_at(rest, 1) == b' ')..],
            b')' => break text.len() - rest.len() + 1,
            _ => return None,
        }
    };
    (literals.len() <= SHAPE_LITERALS_MAX).then_some(at)
}

/// Room for more literals, at most twice the allowed number.
#[cold]
fn more_room(literals: &mut Vec<ScannedLiteral>) -> Option<()> {
    (literals.len() < SHAPE_LITERALS_MAX).then(|| literals.reserve(literals.len().max(16)))
}

/// The value and number of the digits at byte `at`. Reads the first eight digits in one step. The value wraps
/// if there are more than [`SAFE_DIGITS`].
#[inline(always)]
pub(super) fn read_digits(text: &[u8], at: usize) -> (u64, usize) {
    let (mut value, mut count) = (0u64, 0);
    if let Some(chunk) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        (value, count) = eight_digits(u64::from_le_bytes(*chunk));
        if count < 8 {
            return (value, count);
        }
    }
    for byte in text.get(at + count..).unwrap_or(&[]) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        count += 1;
    }
    (value, count)
}

/// The value and number of the leading digits of eight bytes, the first of which is the lowest byte.
#[inline(always)]
fn eight_digits(bytes: u64) -> (u64, usize) {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const TO_HIGH_BIT: u64 = 0x7676_7676_7676_7676;
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    // Each byte becomes its digit, or a value above nine. The test is exact up to and including the first
    // non-digit; a carry can spoil only later bytes.
    let digits = bytes ^ ZEROS;
    let others = (digits.wrapping_add(TO_HIGH_BIT) | digits) & HIGH_BITS;
    let count = (others.trailing_zeros() / 8) as usize;
    // Two shifts, because the total is 64 if there is no digit, and a single shift by 64 overflows.
    let digits = digits << (32 - 4 * count) << (32 - 4 * count);
    let pairs = (digits.wrapping_mul(10).wrapping_add(digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100).wrapping_add(pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let value = (fours.wrapping_mul(10_000).wrapping_add(fours >> 32)) & 0xffff_ffff;
    (value, count)
}

/// [`read_number`] for numbers with a decimal point, an exponent or many digits.
#[cold]
fn read_long_number(text: &[u8], at: usize) -> Option<ScannedLiteral> {
    let mut end = at;
    let digits = |end: &mut usize| {
        let begin = *end;
        while byte_at(text, *end).is_ascii_digit() {
            *end += 1;
        }
        *end - begin
    };
    let whole = digits(&mut end);
    let magnitude = decode_integer(&text[at..end]);
    let mut class = if magnitude.is_some() { LiteralClass::Integer } else { LiteralClass::Decimal };
    let mut scale = 0;
    if byte_at(text, end) == b'.' {
        end += 1;
        scale = digits(&mut end);
        if scale + whole == 0 {
            return None;
        }
        class = LiteralClass::Decimal;
    } else if whole == 0 {
        return None;
    }
    if matches!(byte_at(text, end), b'e' | b'E') {
        end += 1 + usize::from(matches!(byte_at(text, end + 1), b'+' | b'-'));
        if digits(&mut end) == 0 {
            return None;
        }
        class = LiteralClass::Double;
        // A value beyond the range of doubles is an error, which the parser reports.
        let number = std::str::from_utf8(&text[at..end]).ok().and_then(|text| text.parse::<f64>().ok());
        if !number.is_some_and(f64::is_finite) {
            return None;
        }
    }
    if NUMBER_GOES_ON[usize::from(byte_at(text, end))] {
        // A name that begins with a digit, a hexadecimal number, or a malformed token.
        return None;
    }
    if class == LiteralClass::Decimal && end - at > EXACT_BYTES_MAX {
        // The number may have too many digits, which the binder refuses.
        return None;
    }
    let class_detail = match class {
        LiteralClass::Integer => magnitude.unwrap_or(0),
        LiteralClass::Decimal => scale as u64,
        LiteralClass::Double | LiteralClass::String => 0,
    };
    let (start, end) = (at as u32, end as u32);
    Some(ScannedLiteral { start, end, class_detail, class, negative: false, has_escapes: false })
}
