//! Errors of the parser, with MySQL's numbers and texts.

use std::fmt;

use junctor_model::error::ErrorCode;

use super::dialect::Dialect;
use super::limit::NESTING_MAX;
use super::redact::{may_have_password, without_strings};

/// The error of a statement that the parser refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The reason, which determines the error number and the text.
    pub kind: ParseErrorKind,
    /// Byte offset in the text of the first byte of the offending token.
    pub position: usize,
    /// Line of `position`, counted from 1.
    pub line: usize,
    /// The text from `position` on, at most [`NEAR_CHARACTERS_MAX`] characters.
    pub near: String,
}

/// The reasons for a [`ParseError`], each with its error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// The text does not match the grammar (1064).
    Syntax,
    /// The text contains no statement and no comment (1065).
    EmptyQuery,
    /// Expressions are nested deeper than [`super::limit::NESTING_MAX`] (1436).
    NestingTooDeep,
    /// A statement has more than [`super::limit::PARAMETERS_MAX`] parameters (1390).
    TooManyParameters,
    /// A name is not valid UTF-8 (1300).
    InvalidCharacter,
    /// A name has more than [`super::limit::NAME_CHARACTERS_MAX`] characters (1059).
    NameTooLong,
    /// A query in FROM has no alias (1248).
    DerivedWithoutAlias,
    /// A query has more than 61 tables (1116).
    TooManyTables,
    /// A table function without an alias.
    TableFunctionWithoutAlias,
    /// A word after ALGORITHM of a table change that names none (1800).
    UnknownAlterAlgorithm,
    /// A word after LOCK of a table change that names none (1801).
    UnknownAlterLock,
    /// A plain name after INTO (1327).
    UndeclaredVariable,
    /// The text is longer than [`super::limit::STATEMENT_BYTES_MAX`] bytes (1153).
    StatementTooLong,
}

/// Maximum number of characters of the statement that a syntax error quotes.
pub const NEAR_CHARACTERS_MAX: usize = 80;

impl ParseError {
    /// An error at byte `position` of `text`. A position beyond the end counts as the end.
    pub fn at(kind: ParseErrorKind, text: &[u8], position: usize) -> ParseError {
        let position = position.min(text.len());
        let line = 1 + text[..position].iter().filter(|byte| **byte == b'\n').count();
        // A character takes at most four bytes. Without this bound, an error near the start of a statement
        // would convert all of it.
        let quoted = &text[position..text.len().min(position + 4 * NEAR_CHARACTERS_MAX)];
        let dialect = Dialect::default();
        let hidden = may_have_password(text, dialect).then(|| without_strings(quoted, dialect));
        let quoted = hidden.as_deref().unwrap_or(quoted);
        let near = String::from_utf8_lossy(quoted).chars().take(NEAR_CHARACTERS_MAX).collect();
        ParseError { kind, position, line, near }
    }
}

impl ParseErrorKind {
    /// The error's number and SQLSTATE.
    pub fn code(self) -> ErrorCode {
        match self {
            ParseErrorKind::Syntax => ErrorCode::SyntaxError,
            ParseErrorKind::EmptyQuery => ErrorCode::EmptyQuery,
            ParseErrorKind::NestingTooDeep => ErrorCode::StatementTooComplex,
            ParseErrorKind::TooManyParameters => ErrorCode::TooManyParameters,
            ParseErrorKind::InvalidCharacter => ErrorCode::InvalidCharacterString,
            ParseErrorKind::NameTooLong => ErrorCode::IdentifierTooLong,
            ParseErrorKind::StatementTooLong => ErrorCode::PacketTooLarge,
            ParseErrorKind::DerivedWithoutAlias => ErrorCode::DerivedWithoutAlias,
            ParseErrorKind::TooManyTables => ErrorCode::TooManyTables,
            ParseErrorKind::TableFunctionWithoutAlias => ErrorCode::TableFunctionWithoutAlias,
            ParseErrorKind::UnknownAlterAlgorithm => ErrorCode::UnknownAlterAlgorithm,
            ParseErrorKind::UnknownAlterLock => ErrorCode::UnknownAlterLock,
            ParseErrorKind::UndeclaredVariable => ErrorCode::UndeclaredVariable,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let near = &self.near;
        match self.kind {
            ParseErrorKind::Syntax => write!(
                formatter,
                "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server \
                 version for the right syntax to use near '{near}' at line {}",
                self.line
            ),
            ParseErrorKind::EmptyQuery => formatter.write_str("Query was empty"),
            ParseErrorKind::NestingTooDeep => {
                write!(formatter, "The statement is nested deeper than {NESTING_MAX} levels")
            }
            ParseErrorKind::TooManyParameters => {
                formatter.write_str("Prepared statement contains too many placeholders")
            }
            ParseErrorKind::InvalidCharacter => {
                write!(formatter, "Invalid utf8mb4 character string: '{near}'")
            }
            ParseErrorKind::NameTooLong => write!(formatter, "Identifier name '{near}' is too long"),
            ParseErrorKind::DerivedWithoutAlias => formatter.write_str("Every derived table must have its own alias"),
            ParseErrorKind::TooManyTables => {
                formatter.write_str("Too many tables; MySQL can only use 61 tables in a join")
            }
            ParseErrorKind::TableFunctionWithoutAlias => formatter.write_str("Every table function must have an alias"),
            ParseErrorKind::UnknownAlterAlgorithm => write!(formatter, "Unknown ALGORITHM '{}'", first_name(near)),
            ParseErrorKind::UndeclaredVariable => write!(formatter, "Undeclared variable: {}", first_name(near)),
            ParseErrorKind::UnknownAlterLock => write!(formatter, "Unknown LOCK type '{}'", first_name(near)),
            ParseErrorKind::StatementTooLong => {
                formatter.write_str("Got a packet bigger than 'max_allowed_packet' bytes")
            }
        }
    }
}

impl std::error::Error for ParseError {}

/// The name at the start of a text, without its quotes.
fn first_name(text: &str) -> &str {
    match text.strip_prefix('`') {
        Some(quoted) => quoted.split('`').next().unwrap_or_default(),
        None => {
            let is_end = |character: char| !(character.is_alphanumeric() || character == '_' || character == '$');
            text.split(is_end).next().unwrap_or_default()
        }
    }
}
