//! The tokens of MySQL's SQL, for a sql_mode without ANSI_QUOTES, NO_BACKSLASH_ESCAPES and IGNORE_SPACE.
//!
//! The lexer allocates nothing and never fails: bytes that form no token become [`TokenKind::Bad`], which no
//! rule of the grammar accepts.

use super::dialect::Dialect;
use super::keyword::Keyword;
use super::limit::COMMENT_VERSION;

/// A token and its position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token's kind; the bytes of names and literals stay in the text.
    pub kind: TokenKind,
    /// Byte offset of its first byte.
    pub start: u32,
    /// Byte offset after its last byte.
    pub end: u32,
}

/// The kinds of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// The end of the text.
    End,
    /// Bytes that form no token: an unclosed quote or comment, a control character, an incomplete hexadecimal
    /// literal.
    Bad,
    /// An unquoted word that is in the keyword table, reserved or not.
    Keyword(Keyword),
    /// Any other unquoted word, or any word directly after a dot.
    Name,
    /// A name in backticks, which are part of the token.
    QuotedName,
    /// A string in single or double quotes, which are part of the token.
    String,
    /// `N'...'`.
    NationalString,
    /// Decimal digits.
    Integer,
    /// Digits with a decimal point and no exponent.
    Decimal,
    /// A number with an exponent.
    Double,
    /// `x'...'` or `0x...`.
    Hexadecimal,
    /// `b'...'` or `0b...`.
    Bits,
    /// `?`
    Parameter,
    /// `@name`; the name may be in quotes.
    UserVariable,
    /// `@@`
    AtAt,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// `,`
    Comma,
    /// `.`
    Dot,
    /// `;`
    Semicolon,
    /// `=`
    Equal,
    /// `<=>`
    NullSafeEqual,
    /// `<>` or `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `&`
    Ampersand,
    /// `|`
    Bar,
    /// `^`
    Caret,
    /// `~`
    Tilde,
    /// `!`
    Exclamation,
    /// `||`
    BarBar,
    /// `&&`
    AmpersandAmpersand,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `:=`
    Assign,
    /// `->`
    Arrow,
    /// `->>`
    LongArrow,
}

/// Reads tokens from a text. The parser copies the lexer to look further ahead, so the lexer is small and
/// `Copy`.
#[derive(Clone, Copy, Debug)]
pub struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    in_executable_comment: bool,
    saw_comment: bool,
    after_dot: bool,
    dialect: Dialect,
}

/// Whether a byte can be part of an unquoted name. Every byte of a multi-byte character can.
pub const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Whether a byte is white space between tokens.
pub const fn is_blank_byte(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

impl<'a> Lexer<'a> {
    /// A lexer that begins at byte `at` of `text`.
    pub fn new(text: &'a [u8], at: usize, dialect: Dialect) -> Lexer<'a> {
        Lexer { text, at, in_executable_comment: false, saw_comment: false, after_dot: false, dialect }
    }

    /// Whether the lexer has read a comment. MySQL accepts a text that contains only comments as an empty
    /// statement.
    pub fn saw_comment(&self) -> bool {
        self.saw_comment
    }

    /// Whether the last token is inside an executable comment.
    pub fn is_in_executable_comment(&self) -> bool {
        self.in_executable_comment
    }

    /// Continues at byte `at`, which must be between two tokens and outside any comment.
    pub fn seek(&mut self, at: usize) {
        self.at = at;
        self.after_dot = false;
    }

    /// The next token. At the end of the text every call returns [`TokenKind::End`].
    pub fn next_token(&mut self) -> Token {
        // After a dot every word is a name, reserved or not: `t.select` is a column.
        let directly_after_dot = std::mem::take(&mut self.after_dot) && is_word_byte(self.byte(0));
        let start = if directly_after_dot { self.at } else { return self.next_ordinary() };
        self.at += self.word_length(0);
        self.token(TokenKind::Name, start)
    }

    fn next_ordinary(&mut self) -> Token {
        if !self.skip_blanks() {
            let start = self.at;
            self.at = self.text.len();
            return self.token(TokenKind::Bad, start);
        }
        let start = self.at;
        let Some(first) = self.text.get(start).copied() else {
            // The text ends inside an executable comment.
            let kind = if self.in_executable_comment { TokenKind::Bad } else { TokenKind::End };
            return self.token(kind, start);
        };
        let kind = match first {
            b'0'..=b'9' => self.number(),
            // In `t.1a` the dot separates names; in `x = .5` it begins a number.
            b'.' if self.byte(1).is_ascii_digit() && !self.follows_name() => self.number(),
            b'"' if self.dialect.ansi_quotes => self.quoted(0, TokenKind::QuotedName),
            b'\'' | b'"' => self.quoted(0, TokenKind::String),
            b'`' => self.quoted(0, TokenKind::QuotedName),
            b'x' | b'X' if self.byte(1) == b'\'' => self.quoted_digits(TokenKind::Hexadecimal),
            b'b' | b'B' if self.byte(1) == b'\'' => self.quoted_digits(TokenKind::Bits),
            b'n' | b'N' if self.byte(1) == b'\'' => self.quoted(1, TokenKind::NationalString),
            b'@' => self.variable(),
            byte if is_word_byte(byte) => self.word(),
            _ => self.symbol(first),
        };
        self.after_dot = kind == TokenKind::Dot;
        self.token(kind, start)
    }

    fn token(&self, kind: TokenKind, start: usize) -> Token {
        Token { kind, start: start as u32, end: self.at as u32 }
    }

    /// The byte `ahead` bytes after the current one, or zero beyond the end of the text.
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn follows_name(&self) -> bool {
        self.at > 0 && (is_word_byte(self.text[self.at - 1]) || self.text[self.at - 1] == b'`')
    }

    fn word_length(&self, ahead: usize) -> usize {
        self.text[self.at + ahead..].iter().take_while(|byte| is_word_byte(**byte)).count()
    }

    fn word(&mut self) -> TokenKind {
        let length = self.word_length(0);
        let word = &self.text[self.at..self.at + length];
        self.at += length;
        Keyword::find(word).map_or(TokenKind::Name, TokenKind::Keyword)
    }

    fn digits_length(&self, ahead: usize, is_digit: impl Fn(&u8) -> bool) -> usize {
        self.text[(self.at + ahead).min(self.text.len())..].iter().take_while(|byte| is_digit(byte)).count()
    }

    /// A number, or a name that begins with a digit.
    fn number(&mut self) -> TokenKind {
        let digits = self.digits_length(0, u8::is_ascii_digit);
        if digits == 1 && self.byte(0) == b'0' {
            if self.byte(1) == b'x' && self.prefixed_digits(u8::is_ascii_hexdigit) {
                return TokenKind::Hexadecimal;
            }
            if self.byte(1) == b'b' && self.prefixed_digits(|byte| matches!(byte, b'0' | b'1')) {
                return TokenKind::Bits;
            }
        }
        if let Some(exponent) = self.exponent_length(digits) {
            self.at += digits + exponent;
            return TokenKind::Double;
        }
        if self.byte(digits) == b'.' {
            let length = digits + 1 + self.digits_length(digits + 1, u8::is_ascii_digit);
            let exponent = self.exponent_length(length);
            self.at += length + exponent.unwrap_or(0);
            return if exponent.is_some() { TokenKind::Double } else { TokenKind::Decimal };
        }
        if is_word_byte(self.byte(digits)) {
            self.at += self.word_length(0);
            return TokenKind::Name;
        }
        self.at += digits;
        TokenKind::Integer
    }

    /// Consumes `0x` or `0b` with its digits, unless further bytes of a word follow and make it a name.
    fn prefixed_digits(&mut self, is_digit: impl Fn(&u8) -> bool) -> bool {
        let length = self.digits_length(2, is_digit);
        let is_literal = length > 0 && !is_word_byte(self.byte(2 + length));
        if is_literal {
            self.at += 2 + length;
        }
        is_literal
    }

    fn exponent_length(&self, ahead: usize) -> Option<usize> {
        if !matches!(self.byte(ahead), b'e' | b'E') {
            return None;
        }
        let sign = usize::from(matches!(self.byte(ahead + 1), b'+' | b'-'));
        let digits = self.digits_length(ahead + 1 + sign, u8::is_ascii_digit);
        (digits > 0).then_some(1 + sign + digits)
    }

    /// Consumes a quoted token whose opening quote is `ahead` bytes after the current one.
    fn quoted(&mut self, ahead: usize, kind: TokenKind) -> TokenKind {
        let is_plain = self.dialect.no_backslash_escapes || kind == TokenKind::QuotedName;
        let end = match is_plain {
            true => plain_quoted_end(self.text, self.at + ahead),
            false => quoted_end(self.text, self.at + ahead).map(|(end, _)| end),
        };
        match end {
            Some(end) => {
                self.at = end;
                kind
            }
            None => {
                self.at = self.text.len();
                TokenKind::Bad
            }
        }
    }

    fn quoted_digits(&mut self, kind: TokenKind) -> TokenKind {
        let start = self.at + 2;
        let kind = self.quoted(1, kind);
        let inside = self.text.get(start..self.at - 1).unwrap_or(&[]);
        let is_valid = match kind {
            TokenKind::Hexadecimal => inside.len().is_multiple_of(2) && inside.iter().all(u8::is_ascii_hexdigit),
            _ => inside.iter().all(|byte| matches!(byte, b'0' | b'1')),
        };
        if is_valid { kind } else { TokenKind::Bad }
    }

    fn variable(&mut self) -> TokenKind {
        match self.byte(1) {
            b'@' => {
                self.at += 2;
                TokenKind::AtAt
            }
            b'\'' | b'"' | b'`' => self.quoted(1, TokenKind::UserVariable),
            _ => {
                let length = self.digits_length(1, |byte| is_word_byte(*byte) || *byte == b'.');
                self.at += 1 + length;
                if length > 0 { TokenKind::UserVariable } else { TokenKind::Bad }
            }
        }
    }

    fn symbol(&mut self, first: u8) -> TokenKind {
        let (length, kind) = match (first, self.byte(1), self.byte(2)) {
            (b'<', b'=', b'>') => (3, TokenKind::NullSafeEqual),
            (b'-', b'>', b'>') => (3, TokenKind::LongArrow),
            (b'<', b'=', _) => (2, TokenKind::LessOrEqual),
            (b'<', b'>', _) | (b'!', b'=', _) => (2, TokenKind::NotEqual),
            (b'<', b'<', _) => (2, TokenKind::ShiftLeft),
            (b'>', b'=', _) => (2, TokenKind::GreaterOrEqual),
            (b'>', b'>', _) => (2, TokenKind::ShiftRight),
            (b'|', b'|', _) => (2, TokenKind::BarBar),
            (b'&', b'&', _) => (2, TokenKind::AmpersandAmpersand),
            (b':', b'=', _) => (2, TokenKind::Assign),
            (b'-', b'>', _) => (2, TokenKind::Arrow),
            _ => (1, single_symbol(first)),
        };
        self.at += length;
        kind
    }

    /// Skips white space and comments. At an unclosed comment it returns false and stays at the comment's
    /// first byte.
    fn skip_blanks(&mut self) -> bool {
        loop {
            match (self.byte(0), self.byte(1)) {
                (blank, _) if is_blank_byte(blank) => self.at += 1,
                (b'#', _) => self.skip_line(),
                (b'-', b'-') if self.byte(2).is_ascii_whitespace() || self.byte(2).is_ascii_control() => {
                    self.skip_line();
                }
                (b'*', b'/') if self.in_executable_comment => {
                    self.in_executable_comment = false;
                    self.at += 2;
                }
                (b'/', b'*') => {
                    if !self.skip_comment() {
                        return false;
                    }
                }
                _ => return true,
            }
        }
    }

    fn skip_line(&mut self) {
        self.saw_comment = true;
        self.at += self.text[self.at..].iter().take_while(|byte| **byte != b'\n').count();
    }

    /// Skips a comment; of an executable comment, only its head. Returns false if the comment is not closed.
    fn skip_comment(&mut self) -> bool {
        self.saw_comment = true;
        let head = if self.byte(2) == b'!' && !self.in_executable_comment { self.executable_head() } else { None };
        if let Some(length) = head {
            self.in_executable_comment = true;
            self.at += length;
            return true;
        }
        let body = &self.text[self.at + 2..];
        match body.windows(2).position(|pair| pair == b"*/") {
            Some(length) => {
                self.at += length + 4;
                true
            }
            None => false,
        }
    }

    /// The length of `/*!` and its version number; `None` if a server of [`COMMENT_VERSION`] does not execute
    /// the comment.
    fn executable_head(&self) -> Option<usize> {
        let digits = self.digits_length(3, u8::is_ascii_digit);
        // MySQL reads five or six digits as a version; fewer digits belong to the comment's content.
        if digits < 5 {
            return Some(3);
        }
        let digits = digits.min(6);
        let version = self.text[self.at + 3..self.at + 3 + digits]
            .iter()
            .fold(0u32, |version, digit| version * 10 + u32::from(digit - b'0'));
        (version <= COMMENT_VERSION).then_some(3 + digits)
    }
}

fn single_symbol(byte: u8) -> TokenKind {
    match byte {
        b'?' => TokenKind::Parameter,
        b'(' => TokenKind::Open,
        b')' => TokenKind::Close,
        b'{' => TokenKind::OpenBrace,
        b'}' => TokenKind::CloseBrace,
        b',' => TokenKind::Comma,
        b'.' => TokenKind::Dot,
        b';' => TokenKind::Semicolon,
        b'=' => TokenKind::Equal,
        b'<' => TokenKind::Less,
        b'>' => TokenKind::Greater,
        b'+' => TokenKind::Plus,
        b'-' => TokenKind::Minus,
        b'*' => TokenKind::Star,
        b'/' => TokenKind::Slash,
        b'%' => TokenKind::Percent,
        b'&' => TokenKind::Ampersand,
        b'|' => TokenKind::Bar,
        b'^' => TokenKind::Caret,
        b'~' => TokenKind::Tilde,
        b'!' => TokenKind::Exclamation,
        _ => TokenKind::Bad,
    }
}

/// Finds the end of the quoted token that opens at byte `open` of `text`. Returns the offset after its
/// closing quote and whether it contains escapes (a backslash or a doubled quote), or `None` if it is not
/// closed. A backslash between backticks is not an escape.
#[inline]
pub fn quoted_end(text: &[u8], open: usize) -> Option<(usize, bool)> {
    let quote = *text.get(open)?;
    let mut at = open + 1;
    let mut has_escapes = false;
    loop {
        at += plain_length(&text[at.min(text.len())..], quote);
        match *text.get(at)? {
            b'\\' if quote != b'`' => {
                has_escapes = true;
                at += 2;
            }
            byte if byte != quote => at += 1,
            _ if text.get(at + 1) == Some(&quote) => {
                has_escapes = true;
                at += 2;
            }
            _ => return Some((at + 1, has_escapes)),
        }
    }
}

/// Like [`quoted_end`], where a backslash is an ordinary character.
fn plain_quoted_end(text: &[u8], open: usize) -> Option<usize> {
    let quote = *text.get(open)?;
    let mut at = open + 1;
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte == quote)? + 1;
        if text.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}

/// The number of bytes before the first `quote` or backslash. Reads eight bytes at a time.
#[inline]
fn plain_length(text: &[u8], quote: u8) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let quotes = LOW * u64::from(quote);
    let backslashes = LOW * u64::from(b'\\');
    let (chunks, rest) = text.as_chunks::<8>();
    let mut length = 0;
    for chunk in chunks {
        let word = u64::from_le_bytes(*chunk);
        let (quote_zero, backslash_zero) = (word ^ quotes, word ^ backslashes);
        // The lowest set bit marks the first zero byte exactly. A carry can only corrupt the marks of later
        // bytes.
        let found =
            (quote_zero.wrapping_sub(LOW) & !quote_zero | backslash_zero.wrapping_sub(LOW) & !backslash_zero) & HIGH;
        if found != 0 {
            return length + (found.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    length + rest.iter().take_while(|byte| **byte != quote && **byte != b'\\').count()
}
