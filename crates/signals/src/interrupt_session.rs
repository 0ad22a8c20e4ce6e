//! KILL. Only the sql block that owns a session knows the session. The killing session's sql block therefore
//! asks every sql block of the node. For a session of another node, main of that node asks them.

use std::fmt::Display;

use junctor_kernel::Address;
use junctor_model::access::AccountName;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::ConnectionId;

use crate::read_rows::OperationId;

/// Interrupts a session.
#[derive(Debug)]
pub struct InterruptSession {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// Connection of the session to interrupt.
    pub connection: ConnectionId,
    /// True for KILL CONNECTION, false for KILL QUERY.
    pub closes_connection: bool,
    /// Which sessions the killing session may stop.
    pub reach: KillReach,
}

/// Which sessions a session may stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KillReach {
    /// Every session.
    All,
    /// Sessions whose accounts lack SYSTEM_USER, and those of this account.
    AllButSystemUsers(Box<AccountName>),
    /// Sessions of this account.
    Own(Box<AccountName>),
}

layout! { AccountName { user, host } }
choices! { KillReach { 0 All; 1 AllButSystemUsers(account); 2 Own(account); } }

/// The reply to [`InterruptSession`], sent immediately. Undoing the interrupted statement may take longer.
#[derive(Debug)]
pub struct InterruptSessionReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// What became of the session.
    pub outcome: KillOutcome,
}

/// What became of the session that KILL names. The outcomes of several blocks combine to the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum KillOutcome {
    /// No block owns it.
    #[default]
    Unknown,
    /// The killing session may not stop it.
    Denied,
    /// It was stopped.
    Stopped,
}

impl KillOutcome {
    /// The error of KILL of this connection: 1094 or 1095.
    pub fn error(self, connection: ConnectionId) -> Option<Box<Error>> {
        match self {
            KillOutcome::Unknown => Some(no_such_thread(&connection.0)),
            KillOutcome::Denied => {
                let message = format!("You are not owner of thread {}", connection.0);
                Some(Error::new(ErrorCode::KillDenied, message))
            }
            KillOutcome::Stopped => None,
        }
    }
}

/// Error 1094.
pub fn no_such_thread(connection: &dyn Display) -> Box<Error> {
    Error::new(ErrorCode::NoSuchThread, format!("Unknown thread id: {connection}"))
}
