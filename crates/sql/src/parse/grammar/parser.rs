//! The entry points of the parser, its token window, names and limits.

use std::cell::Cell;

use crate::parse::deprecation::{DEPRECATIONS_MAX, Deprecation};
use crate::parse::dialect::Dialect;
use crate::parse::error::{ParseError, ParseErrorKind};
use crate::parse::expression::Expression;
use crate::parse::expression::ParameterNumber;
use crate::parse::hint::{Hints, read_hints};
use crate::parse::keyword::Keyword;
use crate::parse::lexer::{Lexer, Token, TokenKind, is_blank_byte};
use crate::parse::lift::{can_keep, kept_literals};
use crate::parse::limit::{
    ALIAS_CHARACTERS_MAX, NAME_CHARACTERS_MAX, NESTING_MAX, PARAMETERS_MAX, STATEMENT_BYTES_MAX,
};
use crate::parse::literal::{decode_plain_string, decode_string};
use crate::parse::shape::{Shape, Slot};
use crate::parse::statement::{ObjectName, Statement, Unsupported};

/// A statement and its end in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The statement.
    pub statement: Statement,
    /// The number of `?` in the statement.
    pub parameter_count: u32,
    /// Byte offset after the statement and its semicolon.
    pub end: usize,
    /// The deprecated syntax in the statement, in the order of the text.
    pub deprecations: Vec<Deprecation>,
}

/// The outcome of parsing a statement with lifted literals.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameterised {
    /// A statement whose lifted literals are parameters.
    Statement {
        /// The parameterised statement.
        statement: Statement,
        /// The numbers of the parameters that remain literals of the statement, in ascending order, because
        /// the statement's meaning depends on their text (see [`crate::parse::lift`]). The parsed statement
        /// is valid for all texts of its shape in which these literals are equal.
        kept: Vec<ParameterNumber>,
        /// The deprecated syntax in the statement, in the order of the text.
        deprecations: Vec<Deprecation>,
    },
    /// Statements of this shape cannot share a plan, because their meaning depends on the literals. They must
    /// be parsed at each execution.
    LiteralsMatter,
}

/// Parses a text that is a single statement. Blanks and semicolons may follow the statement.
pub fn parse(text: &[u8]) -> Result<Parsed, ParseError> {
    parse_in(text, Dialect::default())
}

/// Like [`parse`], in the dialect of a session.
pub fn parse_in(text: &[u8], dialect: Dialect) -> Result<Parsed, ParseError> {
    let parsed = parse_next(text, 0, dialect)?;
    if parsed.end < text.len() {
        let token = Lexer::new(text, parsed.end, dialect).next_token();
        return Err(ParseError::at(ParseErrorKind::Syntax, without_end(text), token.start as usize));
    }
    Ok(parsed)
}

/// Parses a text that is an expression, in the default dialect.
pub fn parse_expression(text: &str) -> Result<Expression, ParseError> {
    let mut parser = Parser::new(text.as_bytes(), 0, None, Dialect::default());
    let end = |parser: &Parser<'_>| parser.current.start as usize;
    match parser.expression() {
        Ok(expression) if parser.current.kind == TokenKind::End => Ok(expression),
        Err(Stop::Error(kind, position)) => Err(ParseError::at(kind, text.as_bytes(), position as usize)),
        _ => Err(ParseError::at(ParseErrorKind::Syntax, text.as_bytes(), end(&parser))),
    }
}

/// Parses the statement that begins at byte `from` of a text of several. Error positions count from the
/// beginning of the text. If only blanks and semicolons follow the statement, its end is the end of the text.
pub fn parse_next(text: &[u8], from: usize, dialect: Dialect) -> Result<Parsed, ParseError> {
    if text.len() > STATEMENT_BYTES_MAX {
        return Err(ParseError::at(ParseErrorKind::StatementTooLong, text, 0));
    }
    let trimmed = without_end(text);
    let mut parser = Parser::new(trimmed, from.min(trimmed.len()), None, dialect);
    let mut parsed = match parser.whole_statement() {
        Ok(statement) => parser.parsed(statement),
        Err(stop) => parser.after_stop(stop)?,
    };
    if parser.current.kind == TokenKind::End {
        parsed.end = text.len();
    }
    Ok(parsed)
}

/// The byte offset after the semicolon that ends the first of several statements; `None` if the text has only
/// one. Blanks and semicolons at the end of a text do not count as a statement, but a comment does.
pub fn first_statement_end(text: &[u8], dialect: Dialect) -> Option<usize> {
    let trimmed = without_end(text);
    if text.len() > STATEMENT_BYTES_MAX || !trimmed.contains(&b';') {
        return None;
    }
    let mut lexer = Lexer::new(trimmed, 0, dialect);
    loop {
        let token = lexer.next_token();
        match token.kind {
            TokenKind::End | TokenKind::Bad => return None,
            TokenKind::Semicolon => return (!lexer.is_in_executable_comment()).then_some(token.end as usize),
            _ => {}
        }
    }
}

/// Parses the text from which `shape` was scanned. A lifted literal becomes the parameter of the same number,
/// if a plan depends only on the literal's class and scale.
pub fn parse_with_parameters(text: &[u8], shape: &Shape, dialect: Dialect) -> Result<Parameterised, ParseError> {
    if text.len() > STATEMENT_BYTES_MAX {
        return Err(ParseError::at(ParseErrorKind::StatementTooLong, text, 0));
    }
    let mut kept = Vec::new();
    loop {
        let mut parser = Parser::new(without_end(text), 0, Some(shape), dialect);
        parser.kept = &kept;
        let statement = match parser.whole_statement() {
            Ok(_) if parser.current.kind != TokenKind::End || !parser.used_rows() => {
                return Ok(Parameterised::LiteralsMatter);
            }
            Ok(statement) => statement,
            Err(Stop::LiteralsMatter) => return Ok(Parameterised::LiteralsMatter),
            Err(stop) => {
                let Parsed { statement, deprecations, .. } = parser.after_stop(stop)?;
                return Ok(Parameterised::Statement { statement, kept, deprecations });
            }
        };
        // Only the syntax tree shows whether a literal is an operand, so literals that must be kept need a
        // second pass.
        let found = kept_literals(&statement, shape);
        if found == kept {
            let deprecations = parser.deprecations;
            return Ok(Parameterised::Statement { statement, kept, deprecations });
        }
        // At most two passes: if the second pass finds other literals to keep, no fixed set of parameters
        // fits the shape.
        if !kept.is_empty() || !can_keep(&found, shape) {
            return Ok(Parameterised::LiteralsMatter);
        }
        kept = found;
    }
}

/// The text without the blanks and semicolons at its end.
fn without_end(text: &[u8]) -> &[u8] {
    let last = text.iter().rposition(|byte| !is_blank_byte(*byte) && *byte != b';');
    &text[..last.map_or(0, |last| last + 1)]
}

/// The reason why parsing ended early.
pub(super) enum Stop {
    /// The statement is wrong at this byte offset.
    Error(ParseErrorKind, u32),
    /// The statement uses a part of MySQL that is recognised but not supported.
    Unsupported(&'static str),
    /// Outcome [`Parameterised::LiteralsMatter`].
    LiteralsMatter,
}

/// The result of a grammar rule.
pub(super) type Parse<T> = Result<T, Stop>;

/// What [`Parser::inner_brackets_hold`] has read.
#[derive(Clone, Copy)]
struct BracketScan {
    /// The first token behind the brackets.
    start: u32,
    /// The number of innermost brackets that hold.
    held: u32,
    /// Whether the next one does not.
    has_failed: bool,
}

/// The state of one parse: a window of two tokens, the nesting depth, and the shape if literals are lifted.
pub(super) struct Parser<'a> {
    text: &'a [u8],
    lexer: Lexer<'a>,
    /// The token to consume next.
    pub(super) current: Token,
    /// The token after `current`.
    pub(super) next: Token,
    /// Byte offset after the last token consumed.
    pub(super) previous_end: u32,
    /// The number of open calls of the expression rule, at most [`NESTING_MAX`].
    depth: u32,
    /// Height of the highest expression that the open call of the expression rule has built.
    pub(super) height: u32,
    parameter_count: u32,
    shape: Option<&'a Shape>,
    /// Lifted literals that are nevertheless parsed as literals, in ascending order.
    kept: &'a [ParameterNumber],
    rows_used: bool,
    /// The number of queries so far.
    pub(super) query_count: u32,
    /// The number of open queries.
    pub(super) query_depth: u32,
    /// The number of members of FROM of the innermost open query.
    pub(super) joined_tables: u32,
    /// Whether RETURNING may end the statement.
    pub(super) may_return: bool,
    /// Whether the query may have INTO.
    pub(super) may_select_into: bool,
    /// A byte offset, and the number of its line, counted from 1.
    line: (u32, u32),
    /// Whether optimizer hints have been read.
    pub(super) has_hints: bool,
    /// Whether ON DUPLICATE KEY UPDATE is being read.
    pub(super) is_upsert: bool,
    /// The deprecated syntax so far.
    deprecations: Vec<Deprecation>,
    bracket_scan: Cell<Option<BracketScan>>,
    /// How the text is read.
    pub(super) dialect: Dialect,
}

impl<'a> Parser<'a> {
    fn new(text: &'a [u8], from: usize, shape: Option<&'a Shape>, dialect: Dialect) -> Parser<'a> {
        let mut lexer = Lexer::new(text, from, dialect);
        let current = lexer.next_token();
        let next = lexer.next_token();
        Parser {
            text,
            lexer,
            current,
            next,
            previous_end: from as u32,
            depth: 0,
            height: 0,
            parameter_count: 0,
            shape,
            kept: &[],
            rows_used: false,
            query_count: 0,
            query_depth: 0,
            joined_tables: 0,
            may_return: false,
            may_select_into: true,
            line: (0, 1),
            has_hints: false,
            is_upsert: false,
            deprecations: Vec::new(),
            bracket_scan: Cell::new(None),
            dialect,
        }
    }

    /// A statement with the semicolon or end of text after it.
    fn whole_statement(&mut self) -> Parse<Statement> {
        if matches!(self.current.kind, TokenKind::End | TokenKind::Semicolon) {
            return match self.current.kind {
                TokenKind::Semicolon => self.syntax(),
                _ if self.lexer.saw_comment() => Ok(Statement::Empty),
                _ => Err(Stop::Error(ParseErrorKind::EmptyQuery, self.current.start)),
            };
        }
        let statement = self.statement()?;
        if !self.accept(TokenKind::Semicolon) && self.current.kind != TokenKind::End {
            return self.syntax();
        }
        Ok(statement)
    }

    fn parsed(&mut self, statement: Statement) -> Parsed {
        let deprecations = std::mem::take(&mut self.deprecations);
        Parsed { statement, parameter_count: self.parameter_count, end: self.previous_end as usize, deprecations }
    }

    /// Notes a use of deprecated syntax.
    pub(super) fn note(&mut self, deprecation: Deprecation) {
        if self.deprecations.len() < DEPRECATIONS_MAX {
            self.deprecations.push(deprecation);
        }
    }

    /// Notes deprecated syntax, if there is any.
    pub(super) fn note_if(&mut self, deprecation: Option<Deprecation>) {
        if let Some(deprecation) = deprecation {
            self.note(deprecation);
        }
    }

    /// Converts an early end of parsing into a result. The remainder of an unsupported statement must at
    /// least consist of valid tokens.
    fn after_stop(&mut self, stop: Stop) -> Result<Parsed, ParseError> {
        match stop {
            Stop::Error(kind, position) => Err(ParseError::at(kind, self.text, position as usize)),
            // Only a parser with a shape stops this way, and its caller handles that before.
            Stop::LiteralsMatter => Err(ParseError::at(ParseErrorKind::Syntax, self.text, self.current.start as usize)),
            Stop::Unsupported(what) => {
                while self.current.kind != TokenKind::End {
                    if self.current.kind == TokenKind::Bad {
                        let position = self.current.start as usize;
                        return Err(ParseError::at(ParseErrorKind::Syntax, self.text, position));
                    }
                    self.advance();
                }
                self.previous_end = self.text.len() as u32;
                Ok(self.parsed(Statement::Unsupported(Unsupported { what })))
            }
        }
    }

    /// Consumes the current token.
    pub(super) fn advance(&mut self) {
        self.previous_end = self.current.end;
        self.current = self.next;
        self.next = self.lexer.next_token();
    }

    /// Continues at byte `at`, as if all tokens before it had been consumed.
    fn seek(&mut self, at: u32) {
        self.lexer.seek(at as usize);
        self.previous_end = at;
        self.current = self.lexer.next_token();
        self.next = self.lexer.next_token();
    }

    /// The kinds of the three tokens after `next`.
    pub(super) fn peek_three(&self) -> [TokenKind; 3] {
        let mut ahead = self.lexer;
        [ahead.next_token().kind, ahead.next_token().kind, ahead.next_token().kind]
    }

    /// Whether `first` accepts the two tokens after the brackets that begin at `next`, and `after` accepts
    /// the token that follows each of them. The answer is kept, so that nested brackets are read once.
    pub(super) fn inner_brackets_hold(
        &self,
        first: impl Fn(TokenKind, TokenKind) -> bool,
        after: impl Fn(TokenKind) -> bool,
    ) -> bool {
        let mut ahead = self.lexer;
        let mut depth = 1;
        let mut token = ahead.next_token();
        while token.kind == TokenKind::Open {
            depth += 1;
            token = ahead.next_token();
        }
        let mut behind = ahead;
        if !first(token.kind, behind.next_token().kind) {
            return false;
        }
        let start = token.start;
        match self.bracket_scan.get() {
            Some(scan) if scan.start == start && (depth <= scan.held || scan.has_failed) => return depth <= scan.held,
            _ => {}
        }
        // Brackets before the first token that are still open; the one at `current` is not among them.
        let leading = depth;
        let mut held = 0;
        let mut has_failed = false;
        while held < leading && !has_failed {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth -= 1,
                // An executable comment without an end is bad again and again.
                TokenKind::End | TokenKind::Bad => has_failed = true,
                _ => {}
            }
            token = ahead.next_token();
            if depth + held < leading {
                has_failed = !after(token.kind);
                held += u32::from(!has_failed);
            }
        }
        self.bracket_scan.set(Some(BracketScan { start, held, has_failed }));
        !has_failed
    }

    /// The optimizer hints between the last token consumed and the current one.
    pub(super) fn hints(&mut self) -> Option<Box<Hints>> {
        let gap = &self.text[self.previous_end as usize..self.current.start as usize];
        if !gap.contains(&b'/') {
            return None;
        }
        // Lines are counted once, however many queries the text has.
        let (counted, line) = self.line;
        let more = self.text.get(counted as usize..self.previous_end as usize).unwrap_or(&[]);
        let line = line + more.iter().filter(|byte| **byte == b'\n').count() as u32;
        self.line = (self.previous_end.max(counted), line);
        let hints = read_hints(gap, line, self.dialect);
        self.has_hints |= hints.is_some();
        hints
    }

    /// The bytes of a token.
    pub(super) fn bytes(&self, token: Token) -> &'a [u8] {
        &self.text[token.start as usize..token.end as usize]
    }

    /// The text from byte `start` to the end of the last token consumed.
    pub(super) fn text_since(&self, start: u32) -> String {
        let end = self.previous_end.max(start);
        String::from_utf8_lossy(&self.text[start as usize..end as usize]).into_owned()
    }

    /// The syntax error at the current token.
    pub(super) fn syntax<T>(&self) -> Parse<T> {
        Err(Stop::Error(ParseErrorKind::Syntax, self.current.start))
    }

    /// The syntax error at an earlier token.
    pub(super) fn syntax_at<T>(&self, token: Token) -> Parse<T> {
        Err(Stop::Error(ParseErrorKind::Syntax, token.start))
    }

    /// Ends parsing because of the unsupported part that error 1235 will name.
    pub(super) fn unsupported<T>(&self, what: &'static str) -> Parse<T> {
        Err(Stop::Unsupported(what))
    }

    /// Consumes the current token if it is of this kind. Returns whether it is.
    pub(super) fn accept(&mut self, kind: TokenKind) -> bool {
        let found = self.current.kind == kind;
        if found {
            self.advance();
        }
        found
    }

    /// Consumes a token of this kind; any other is a syntax error.
    pub(super) fn expect(&mut self, kind: TokenKind) -> Parse<()> {
        if self.accept(kind) { Ok(()) } else { self.syntax() }
    }

    /// Whether the current token is this keyword.
    pub(super) fn at_word(&self, keyword: Keyword) -> bool {
        self.current.kind == TokenKind::Keyword(keyword)
    }

    /// Whether the token after the current one is this keyword.
    pub(super) fn next_is_word(&self, keyword: Keyword) -> bool {
        self.next.kind == TokenKind::Keyword(keyword)
    }

    /// The keyword at the current token.
    pub(super) fn word(&self) -> Option<Keyword> {
        match self.current.kind {
            TokenKind::Keyword(keyword) => Some(keyword),
            _ => None,
        }
    }

    /// Consumes the current token if it is this keyword. Returns whether it is.
    pub(super) fn accept_word(&mut self, keyword: Keyword) -> bool {
        self.accept(TokenKind::Keyword(keyword))
    }

    /// Consumes both keywords if they are the next two tokens, otherwise neither.
    pub(super) fn accept_words(&mut self, first: Keyword, second: Keyword) -> bool {
        let found = self.at_word(first) && self.next_is_word(second);
        if found {
            self.advance();
            self.advance();
        }
        found
    }

    /// Consumes this keyword; any other token is a syntax error.
    pub(super) fn expect_word(&mut self, keyword: Keyword) -> Parse<()> {
        self.expect(TokenKind::Keyword(keyword))
    }

    /// Consumes the current token if it is one of these keywords, and returns the keyword.
    pub(super) fn accept_any(&mut self, keywords: &[Keyword]) -> Option<Keyword> {
        let keyword = self.word().filter(|keyword| keywords.contains(keyword))?;
        self.advance();
        Some(keyword)
    }

    /// Whether the token can be a name: a quoted name, or a word that is not reserved.
    pub(super) fn is_name(token: Token) -> bool {
        match token.kind {
            TokenKind::Name | TokenKind::QuotedName => true,
            TokenKind::Keyword(keyword) => !keyword.is_reserved(),
            _ => false,
        }
    }

    /// A name of up to [`NAME_CHARACTERS_MAX`] characters.
    pub(super) fn name(&mut self) -> Parse<String> {
        if Self::is_name(self.current) { self.any_word() } else { self.syntax() }
    }

    /// A name, or a string instead of a name.
    pub(super) fn name_or_string(&mut self) -> Parse<String> {
        if self.current.kind == TokenKind::String { self.string_as_name() } else { self.name() }
    }

    /// A string that serves as a name.
    pub(super) fn string_as_name(&mut self) -> Parse<String> {
        let start = self.current.start;
        let bytes = self.string()?;
        self.utf8(bytes, start)
    }

    /// An alias of up to [`ALIAS_CHARACTERS_MAX`] characters, or a string instead of it.
    pub(super) fn alias(&mut self) -> Parse<String> {
        match self.current.kind {
            TokenKind::String => self.string_as_name(),
            _ if Self::is_name(self.current) => self.any_word_of(ALIAS_CHARACTERS_MAX),
            _ => self.syntax(),
        }
    }

    /// The current token as a name, even if it is a reserved word.
    pub(super) fn any_word(&mut self) -> Parse<String> {
        self.any_word_of(NAME_CHARACTERS_MAX)
    }

    fn any_word_of(&mut self, characters_max: usize) -> Parse<String> {
        let token = self.current;
        let bytes = self.bytes(token);
        let bytes = match token.kind {
            TokenKind::QuotedName => {
                let mut name = Vec::with_capacity(bytes.len());
                decode_plain_string(&bytes[1..bytes.len() - 1], bytes[0], &mut name);
                name
            }
            TokenKind::Name | TokenKind::Keyword(_) => bytes.to_vec(),
            _ => return self.syntax(),
        };
        if bytes.is_empty() {
            return self.syntax();
        }
        let name = self.utf8(bytes, token.start)?;
        if name.len() > characters_max && name.chars().count() > characters_max {
            return Err(Stop::Error(ParseErrorKind::NameTooLong, token.start));
        }
        self.advance();
        Ok(name)
    }

    /// The bytes as UTF-8, or an error at `position`.
    pub(super) fn utf8(&self, bytes: Vec<u8>, position: u32) -> Parse<String> {
        String::from_utf8(bytes).map_err(|_| Stop::Error(ParseErrorKind::InvalidCharacter, position))
    }

    /// `name` or `database.name`
    pub(super) fn object_name(&mut self) -> Parse<ObjectName> {
        let name = self.name()?;
        if self.accept(TokenKind::Dot) {
            return Ok(ObjectName { database: Some(name), name: self.any_word()? });
        }
        Ok(ObjectName { database: None, name })
    }

    /// The value of a string, with escapes replaced and adjacent strings joined.
    pub(super) fn string(&mut self) -> Parse<Vec<u8>> {
        if self.current.kind != TokenKind::String {
            return self.syntax();
        }
        let mut value = Vec::new();
        while self.current.kind == TokenKind::String {
            let bytes = self.bytes(self.current);
            self.decode(&bytes[1..bytes.len() - 1], bytes[0], &mut value);
            self.advance();
        }
        Ok(value)
    }

    /// Appends the value of a quoted literal to `value`.
    pub(super) fn decode(&self, inside: &[u8], quote: u8, value: &mut Vec<u8>) {
        match self.dialect.no_backslash_escapes {
            true => decode_plain_string(inside, quote, value),
            false => decode_string(inside, quote, value),
        }
    }

    /// One or more members with commas between them.
    pub(super) fn comma_list<T>(&mut self, mut member: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut members = vec![member(self)?];
        while self.accept(TokenKind::Comma) {
            members.push(member(self)?);
        }
        Ok(members)
    }

    /// Enters a nesting level. Error: [`ParseErrorKind::NestingTooDeep`] beyond [`NESTING_MAX`].
    /// [`Parser::leave`] must follow unless parsing ends.
    pub(super) fn enter(&mut self) -> Parse<()> {
        if self.depth >= NESTING_MAX {
            return Err(Stop::Error(ParseErrorKind::NestingTooDeep, self.current.start));
        }
        self.depth += 1;
        Ok(())
    }

    /// Leaves a nesting level.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Counts a node on top of the expressions that the open call of the expression rule has built.
    pub(super) fn grow(&mut self) -> Parse<()> {
        self.height += 1;
        self.check_height()
    }

    /// Error: [`ParseErrorKind::NestingTooDeep`] if the expression is higher than [`NESTING_MAX`].
    pub(super) fn check_height(&self) -> Parse<()> {
        if self.height > NESTING_MAX {
            return Err(Stop::Error(ParseErrorKind::NestingTooDeep, self.current.start));
        }
        Ok(())
    }

    /// Consumes a `?` and returns its number.
    pub(super) fn parameter(&mut self) -> Parse<ParameterNumber> {
        // The shape scanner refuses texts with `?`, so a statement never has both `?` and lifted literals.
        if self.shape.is_some() {
            return Err(Stop::LiteralsMatter);
        }
        if self.parameter_count >= PARAMETERS_MAX {
            return Err(Stop::Error(ParseErrorKind::TooManyParameters, self.current.start));
        }
        let ordinal = ParameterNumber(self.parameter_count);
        self.parameter_count += 1;
        self.advance();
        Ok(ordinal)
    }

    /// Consumes the lifted literal that begins at the current token; `None` if none does.
    pub(super) fn lifted_literal(&mut self) -> Option<ParameterNumber> {
        let (shape, ordinal) = self.slot_here()?;
        match shape.slot(ordinal)? {
            Slot::List { .. } => return None,
            Slot::Literal { literal } | Slot::RowLiteral { literal } => {
                self.seek(shape.literals()[literal as usize].end);
            }
        }
        Some(ordinal)
    }

    /// Consumes the lifted list of literals that begins at the current token; `None` if none does.
    pub(super) fn lifted_list(&mut self) -> Option<ParameterNumber> {
        let (shape, ordinal) = self.slot_here()?;
        let Slot::List { first, count, .. } = shape.slot(ordinal)? else { return None };
        self.seek(shape.literals()[(first + count - 1) as usize].end);
        Some(ordinal)
    }

    /// If the scanner found that all VALUES rows have one form, skips the rows after the first, which began
    /// at `start` and has just been parsed. Returns the parameter number of a row's first literal, and the
    /// number of literals in each row.
    pub(super) fn skip_uniform_rows(&mut self, start: u32) -> Option<(ParameterNumber, u32)> {
        let rows = self.shape?.rows().filter(|rows| rows.start == start)?;
        self.rows_used = true;
        self.seek(rows.end);
        Some((rows.first, rows.width))
    }

    /// The slot that begins at the current token, unless its literal is kept.
    fn slot_here(&self) -> Option<(&'a Shape, ParameterNumber)> {
        let shape = self.shape?;
        let ordinal = shape.slot_at(self.current.start)?;
        self.kept.binary_search(&ordinal).is_err().then_some((shape, ordinal))
    }

    /// Whether lifted literals become parameters.
    pub(super) fn is_lifting(&self) -> bool {
        self.shape.is_some()
    }

    /// Whether the grammar has found the uniform rows where the scanner did. Otherwise the values of all but
    /// the first row would be lost.
    fn used_rows(&self) -> bool {
        self.shape.is_none_or(|shape| self.rows_used == shape.rows().is_some())
    }
}
