//! What every step of a statement works with.

use junctor_gateway::TurnContext;

use crate::engine::Engine;
use crate::result::ResultSink;
use crate::session::Session;

/// The four things that every step of a statement needs.
pub(crate) struct StatementContext<'c, 't> {
    /// What all sessions of the block share.
    pub engine: &'c mut Engine,
    /// The session whose statement runs.
    pub session: &'c mut Session,
    /// The turn of the thread: its clock, its buffers and its outbox.
    pub turn: &'c mut TurnContext<'t>,
    /// Where the answer goes.
    pub sink: &'c mut (dyn ResultSink + 'c),
}
