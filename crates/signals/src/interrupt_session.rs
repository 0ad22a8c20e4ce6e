//! KILL. Only the sql block that owns a session knows the session. The killing session's sql block therefore
//! asks every sql block of the node.

use junctor_kernel::Address;
use junctor_model::access::AccountName;
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
#[derive(Debug)]
pub enum KillReach {
    /// Every session.
    All,
    /// Sessions whose accounts lack SYSTEM_USER, and those of this account.
    AllButSystemUsers(Box<AccountName>),
    /// Sessions of this account.
    Own(Box<AccountName>),
}

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
