//! A small client of the MySQL protocol: what the drivers ask, and nothing more.

pub mod connection;
pub mod reply;
pub mod value;
pub mod wire;

pub use connection::{ClientError, Connection, Rows, Statement};
pub use reply::ReplyScanner;
