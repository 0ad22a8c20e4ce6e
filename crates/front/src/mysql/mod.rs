//! The MySQL protocol: bytes, logins, and the blocks recv and sql that speak it. Nothing here reads a socket, a clock or a
//! random source: bytes come in as signals, answers go out through the outbox.

pub mod wire;

pub mod auth;

mod recv_block;

mod sql_block;
mod session_control;
mod several_statements;
mod packet_sink;
mod statement_parameters;
mod table_waits;

pub(crate) use packet_sink::PacketSink;
pub use recv_block::{RecvBlock, RecvSettings};
pub use sql_block::SqlBlock;
