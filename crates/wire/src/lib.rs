//! Encoding and decoding of the native protocol, shared by the driver (`junctor_client`) and the server
//! (crate `front`). `docs/format.md` describes the format.
//!
//! Every `parse` takes untrusted bytes. It never panics, it allocates memory in proportion to its input and
//! not to the lengths that the input claims, and its error names the field that it could not read.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod field;
pub mod frame;
pub mod value;
pub mod request;
pub mod reply;
pub mod login;
pub mod proof;

pub use field::{FieldReader, Malformed};
pub use frame::{Frame, next_frame};
pub use reply::{Columns, Reply};
pub use request::{KeyValues, Request};

/// Protocol version of this build. A server refuses a login with any other version.
pub const VERSION: u16 = 1;
/// First bytes of the greeting's payload, by which a client recognises the protocol.
pub const MAGIC: [u8; 4] = *b"JNTR";
/// Bytes of the password challenge in the greeting.
pub const SALT_BYTES: usize = 20;
/// Maximum payload in bytes before the login is complete, in either direction. It bounds the memory that an
/// unauthenticated peer can claim.
pub const LOGIN_PAYLOAD_BYTES_MAX: usize = 4096;
/// Maximum number of keys in one `ReadKeys` request.
pub const KEYS_MAX: usize = 16_384;
/// Maximum number of columns that a key reader returns.
pub const READER_COLUMNS_MAX: usize = 1024;

#[cfg(test)]
mod tests;
