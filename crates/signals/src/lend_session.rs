//! Sessions that an sql block lends to the sql block of a `work` thread for one long query.

use std::any::Any;
use std::fmt;

use junctor_model::id::ConnectionId;

use crate::interrupt_session::InterruptSession;

/// The record of a session. Only the sql blocks know its type.
pub struct SessionBox(pub Box<dyn Any + Send>);

impl fmt::Debug for SessionBox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SessionBox")
    }
}

/// Lends a session with a query that has not begun. It comes back as [`ReturnSession`] after the answer.
#[derive(Debug)]
pub struct TakeSession {
    /// The session's connection.
    pub connection: ConnectionId,
    /// The session.
    pub session: SessionBox,
}

/// Returns a lent session, which has no statement under way.
#[derive(Debug)]
pub struct ReturnSession {
    /// The session's connection.
    pub connection: ConnectionId,
    /// The session.
    pub session: SessionBox,
}

/// Passes on KILL of a lent session. A block that has just returned the session sends the signal back.
#[derive(Debug)]
pub struct InterruptLentSession {
    /// KILL.
    pub interrupt: InterruptSession,
}
