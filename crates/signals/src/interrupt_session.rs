//! KILL. Only the sql block that owns a session knows the session. The killing session's sql block therefore
//! asks every sql block of the node.

use junctor_kernel::Address;
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
}

/// The reply to [`InterruptSession`], sent immediately. Undoing the interrupted statement may take longer.
#[derive(Debug)]
pub struct InterruptSessionReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Whether this block owns the session.
    pub is_known: bool,
}
