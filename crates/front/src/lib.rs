//! The clients' side of a node: connections, sessions, admission, and the protocols that clients speak.
//!
//! A protocol reaches neither another protocol nor the two blocks; the blocks reach protocols through
//! `protocol_table` only.
#![forbid(unsafe_code)]

pub mod account;
mod protocol;
pub mod mysql;
mod native;
mod protocol_table;
mod connection;
pub mod admission;
mod session_block;

pub use connection::{RecvBlock, RecvSettings};
pub use protocol_table::Protocol;
pub use session_block::SqlBlock;
