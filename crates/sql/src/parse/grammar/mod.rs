//! The grammar: a recursive descent over the lexer's tokens.
//!
//! - `parser`: the entry points, the token window, names and limits;
//! - `statement`: recognises a statement by its first words;
//! - `operator`, `primary`, `function`: expressions;
//! - `select`, `modify`, `load`: queries and changes of rows;
//! - `define`, `column`, `foreign_key`, `alter`: tables, indexes, databases and column types;
//! - `set`, `show`, `control`: session statements.

mod account;
mod alter;
mod column;
mod control;
mod define;
mod foreign_key;
mod function;
mod grant;
mod json_table;
mod json_value;
mod load;
mod modify;
mod operator;
mod parser;
mod primary;
mod query;
mod select;
mod set;
mod show;
mod statement;
mod view;
mod window;

pub use parser::{
    Parameterised, Parsed, first_statement_end, parse, parse_expression, parse_in, parse_next, parse_with_parameters,
};
