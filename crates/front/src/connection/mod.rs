//! The recv block: the client connections of one thread, for every protocol.
//!
//! - **Owns** sockets, received bytes, and the socket's half of each protocol (framing and login).
//! - **In**: socket events, *CommandReply*, *ReadStatus*. **Out**: *OpenSession*, *ExecuteCommand*,
//!   *ReceiveFile*, *ContinueCommand*, *CloseSession* to the sql block, bytes to sockets.
//! - **Never** waits, and never interprets a statement.

mod block;
mod client_connection;
mod login_queue;
mod networks;
pub mod proxy_header;

pub use block::{Readiness, RecvBlock, RecvSettings};
pub use networks::{Networks, NotANetwork};

#[cfg(test)]
pub(crate) mod test_encryption;
#[cfg(test)]
mod tests;
