//! The interface of a client protocol. It has two parts, because the socket and the session of a connection
//! belong to two blocks that may run on different threads:
//!
//! - [`ProtocolLink`] in the recv block: framing and login, from bytes to commands and back.
//! - [`ProtocolSession`] in the sql block: decodes commands, calls the SQL engine, encodes answers.
//!
//! The folder of a protocol exports `Link` and `SessionState`, which implement these traits, and has a row in
//! `protocol_table.rs`. Dispatch is a match over that table, never a `dyn` call and never an allocation.

mod link;
mod session;
mod decoded_parameters;

pub(crate) use crate::account::Refusal;
pub(crate) use decoded_parameters::DecodedParameters;
pub(crate) use link::{Input, LinkContext, LinkOpening, LoggedIn, ProtocolLink};
pub(crate) use session::{CommandContext, ProtocolSession, SessionTraits};
