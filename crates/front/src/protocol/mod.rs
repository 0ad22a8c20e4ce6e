//! What a client protocol implements. A protocol has two halves, because a connection's socket and its
//! session belong to two blocks that may run on different threads:
//!
//! - [`ProtocolLink`] in the block recv: framing and login, from bytes to commands and back.
//! - [`ProtocolSession`] in the block sql: decodes commands, calls the SQL engine, encodes answers.
//!
//! The folder of a protocol exports `Link` and `SessionState` with these traits, and has a row in
//! `protocol_table.rs`. Dispatch is a match over that table, never a `dyn` call and never an allocation.

mod link;
mod session;
mod decoded_parameters;

pub(crate) use decoded_parameters::DecodedParameters;
pub(crate) use link::{Input, LinkContext, LinkOpening, LoggedIn, ProtocolLink};
pub(crate) use session::{CommandContext, ProtocolSession, SessionTraits};
