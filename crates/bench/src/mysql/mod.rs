//! A small blocking client of the MySQL protocol, on the packets and messages of
//! [`junctor_front::mysql::wire`].
//!
//! In reading order:
//! - [`connection`]: a connection that waits for each reply;
//! - [`request`]: packets of commands;
//! - [`reply`]: the end of a reply in a stream of bytes;
//! - [`value`]: values of both row formats as text.

pub mod connection;
pub mod reply;
pub mod request;
pub mod value;

pub use connection::{ClientError, Connection, Rows, Statement};
pub use reply::ReplyScanner;
