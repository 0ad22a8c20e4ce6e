//! The grammar, by recursive descent over the lexer's tokens.
//!
//! - `parser`: the token window, names, limits and the way in;
//! - `statement`: which statement a text is;
//! - `operator`, `primary`, `function`: expressions;
//! - `select`, `modify`: queries and changes of rows;
//! - `define`, `column`, `foreign_key`, `alter`: tables, indexes, databases and types;
//! - `set`, `show`, `control`: the session.

mod alter;
mod column;
mod control;
mod define;
mod foreign_key;
mod function;
mod modify;
mod operator;
mod parser;
mod primary;
mod select;
mod set;
mod show;
mod statement;

pub use parser::{Parameterised, Parsed, first_statement_end, parse, parse_next, parse_with_parameters};
