//! The MySQL client/server protocol: packets, the login exchange, commands, results.

pub mod wire;

pub mod login;
mod compression;
mod link;

mod statement_parameters;
mod result_encoding;
mod session;
mod sink;

pub(crate) use link::Link;
pub(crate) use session::SessionState;
