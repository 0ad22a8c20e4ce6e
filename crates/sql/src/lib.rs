//! MySQL statements: parse, bind, plan, execute through the client.

#![forbid(unsafe_code)]

pub mod parse;
