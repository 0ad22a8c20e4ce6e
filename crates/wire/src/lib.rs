//! The bytes of the native protocol, for the client in `junctor_client` and for the server's side in crate `front`.
//! `docs/format.md` describes them. Every `parse` takes bytes that nobody has vouched for: it never panics, allocates no more
//! than the bytes that it was given are long, and names the field that it could not read.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod field;
pub mod frame;
pub mod value;
pub mod request;
pub mod reply;
pub mod proof;

pub use field::{Fields, Malformed};
pub use frame::{Frame, next_frame};
pub use reply::{Columns, Reply};
pub use request::{KeyValues, Request};

/// The version of the protocol that this code speaks.
pub const VERSION: u16 = 1;
/// The first bytes that a server says.
pub const MAGIC: [u8; 4] = *b"JNTR";
/// Bytes of the challenge in the greeting.
pub const SALT_BYTES: usize = 20;
/// Bytes of a payload before the login, in either direction.
pub const LOGIN_PAYLOAD_BYTES_MAX: usize = 4096;
/// Keys of one request.
pub const KEYS_MAX: usize = 16_384;
/// Columns that one reader of keys gives.
pub const READER_COLUMNS_MAX: usize = 1024;

#[cfg(test)]
mod tests;
