//! The native protocol's side of the server: frames and logins for the block recv, requests and answers for the block sql. The bytes
//! themselves are in `junctor_wire`, which clients use too. A session behaves as one of the MySQL protocol does; its rows
//! are always binary, and it may read rows by their keys without a statement.

mod login;
pub(crate) mod command;
mod key_rows;
mod sink;

pub(crate) use login::{emit_refusal, log_in};
pub(crate) use sink::{NativeSink, NativeStatements};

/// The position of the native protocol's listener in the node's list.
pub const NATIVE_LISTENER: u16 = 1;
