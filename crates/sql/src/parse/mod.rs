//! Parses the bytes of a statement in MySQL's dialect into a syntax tree.
//!
//! [`shape`] recognises, without parsing, a statement that differs from a known one only in its literals.
//! [`lexer`] and [`grammar`] parse all other statements. This folder knows nothing of tables, types or
//! sessions.

pub mod account;
pub mod definition;
pub mod deprecation;
pub mod dialect;
mod digest;
pub mod error;
pub mod expression;
pub mod grammar;
pub mod hint;
pub mod json_table;
pub mod keyword;
pub mod lexer;
pub(crate) mod lift;
pub mod limit;
pub mod literal;
pub mod print;
mod print_query;
pub mod query;
pub mod reference;
mod redact;
pub(crate) mod session_value;
pub mod shape;
pub mod statement;
mod walk;
pub mod window;

#[cfg(test)]
mod tests;

pub use deprecation::Deprecation;
pub use dialect::Dialect;
pub use digest::{digest_hash, digest_text, mysql_words};
pub use error::{ParseError, ParseErrorKind};
pub use expression::{Expression, Literal, ParameterNumber};
pub use grammar::{
    Parameterised, Parsed, first_statement_end, parse, parse_expression, parse_in, parse_next, parse_with_parameters,
};
pub use print::expression_text;
pub use print_query::query_text;
pub use redact::{audited, without_passwords};
pub use shape::{Shape, ShapeOutcome, scan};
pub use statement::Statement;
