//! KILL: from the sql block of who asks to every sql block of the node, since only the one that has the session knows it.

use junctor_kernel::Address;
use junctor_model::id::ConnectionId;

use crate::read_rows::OperationId;

/// Stop what a session does.
#[derive(Debug)]
pub struct InterruptSession {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// The connection of the session.
    pub connection: ConnectionId,
    /// Whether the connection ends too, and not its statement alone.
    pub ends: bool,
}

/// The answer, at once: what was stopped may take a while to be undone.
#[derive(Debug)]
pub struct InterruptSessionReply {
    /// From the request.
    pub operation: OperationId,
    /// Whether this block has the session.
    pub is_known: bool,
}
