//! A small blocking client of the MySQL protocol. It uses the packets and messages of
//! [`junctor_front::mysql::wire`].
//!
//! In reading order:
//! - [`connection`]: a blocking connection;
//! - [`request`]: packets of commands;
//! - [`reply`]: finds the end of a reply in a byte stream;
//! - [`value`]: the values of both row formats, as text.

pub mod connection;
pub mod reply;
pub mod request;
pub mod value;

pub use connection::{ClientError, Connection, Rows, Statement};
pub use reply::ReplyScanner;
