//! The client side of a node: connections, sessions, admission, and the client protocols.
//!
//! A protocol depends neither on another protocol nor on the two blocks. The blocks reach the protocols only
//! through `protocol_table`.
#![forbid(unsafe_code)]

pub mod account;
mod protocol;
pub mod mysql;
mod native;
mod protocol_table;
mod connection;
pub mod admission;
mod session_block;

pub use connection::{Networks, NotANetwork, Readiness, RecvBlock, RecvSettings, proxy_header};
pub use protocol_table::{EXTRA_LISTENER, INTERNAL_LISTENER, Protocol};
pub use session_block::SqlBlock;
