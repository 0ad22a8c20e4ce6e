//! Tests of the lexer, the grammar and the corpus. The shape scanner has its own.

mod corpus;
mod expressions;
mod hostile;
mod lexing;
mod statements;

use super::expression::Expression;
use super::statement::{Select, SelectItem, Statement};
use super::{ParseErrorKind, parse};

/// The statement that `text` parses to.
pub(super) fn statement(text: &str) -> Statement {
    match parse(text.as_bytes()) {
        Ok(parsed) => parsed.statement,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// The query that `text` parses to.
pub(super) fn select(text: &str) -> Select {
    match statement(text) {
        Statement::Select(select) => *select,
        other => panic!("{text}: {other:?}"),
    }
}

/// The expression that `text` parses to.
pub(super) fn expression(text: &str) -> Expression {
    match select(&format!("SELECT {text}")).projection.remove(0) {
        SelectItem::Expression { expression, .. } => expression,
        other => panic!("{text}: {other:?}"),
    }
}

/// The reason why `text` is refused, and the byte offset.
pub(super) fn error_of(text: &str) -> (ParseErrorKind, usize) {
    match parse(text.as_bytes()) {
        Ok(parsed) => panic!("{text}: {:?}", parsed.statement),
        Err(error) => (error.kind, error.position),
    }
}

/// The part of MySQL that `text` uses and the parser reports as unsupported.
pub(super) fn missing_part(text: &str) -> &'static str {
    match statement(text) {
        Statement::Unsupported(unsupported) => unsupported.what,
        other => panic!("{text}: {other:?}"),
    }
}

/// Every statement of both corpora.
pub(super) fn corpus_statements() -> Vec<String> {
    corpus::listed_statements().into_iter().chain(corpus::logged_statements()).collect()
}
