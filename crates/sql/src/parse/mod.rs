//! The front half of SQL: from the bytes of a statement to a tree of our own, in MySQL's dialect.
//!
//! [`shape`] recognises a statement that differs from a known one in its literals only, without parsing it;
//! everything else goes through [`lexer`] and [`grammar`]. Nothing here knows tables, types or sessions.

pub mod definition;
pub mod error;
pub mod expression;
pub mod grammar;
pub mod keyword;
pub mod lexer;
pub(crate) mod lift;
pub mod limit;
pub mod literal;
pub mod shape;
pub mod statement;

#[cfg(test)]
mod tests;

pub use error::{ParseError, ParseErrorKind};
pub use expression::{Expression, Literal, Ordinal};
pub use grammar::{Parameterised, Parsed, first_statement_end, parse, parse_next, parse_with_parameters};
pub use shape::{Shape, ShapeOutcome, scan};
pub use statement::Statement;
