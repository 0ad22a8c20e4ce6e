//! Tests of lexer and grammar; those of the shape scanner are beside it.

mod corpus;
mod expressions;
mod hostile;
mod lexing;
mod statements;

use super::expression::Expression;
use super::statement::{Select, SelectItem, Statement};
use super::{ParseErrorKind, parse};

/// The statement that `text` is.
pub(super) fn statement(text: &str) -> Statement {
    match parse(text.as_bytes()) {
        Ok(parsed) => parsed.statement,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// The query that `text` is.
pub(super) fn select(text: &str) -> Select {
    match statement(text) {
        Statement::Select(select) => *select,
        other => panic!("{text}: {other:?}"),
    }
}

/// The expression that `text` is.
pub(super) fn expression(text: &str) -> Expression {
    match select(&format!("SELECT {text}")).projection.remove(0) {
        SelectItem::Expression { expression, .. } => expression,
        other => panic!("{text}: {other:?}"),
    }
}

/// Why `text` is refused, and where.
pub(super) fn error_of(text: &str) -> (ParseErrorKind, usize) {
    match parse(text.as_bytes()) {
        Ok(parsed) => panic!("{text}: {:?}", parsed.statement),
        Err(error) => (error.kind, error.position),
    }
}

/// What `text` needs that is not there yet.
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
