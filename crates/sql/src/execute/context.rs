//! What every step of a statement works with.

use junctor_gateway::TurnContext;
use junctor_model::error::Result;
use junctor_model::id::StatementNumber;
use junctor_signals::end_transaction::Ending;
use junctor_signals::read_rows::OperationId;

use super::engine::Engine;
use super::session::Session;
use crate::result::ResultSink;

/// The four things that every step of a statement needs.
pub(crate) struct StatementContext<'c, 't> {
    /// What all sessions of the sql block share.
    pub engine: &'c mut Engine,
    /// The session whose statement runs.
    pub session: &'c mut Session,
    /// The block's turn: clock, buffers and outbox.
    pub turn: &'c mut TurnContext<'t>,
    /// Where the answer goes.
    pub sink: &'c mut (dyn ResultSink + 'c),
}

impl StatementContext<'_, '_> {
    /// Requests COMMIT or ROLLBACK of the session's transaction; `None` when nothing has to be asked of the
    /// data plane.
    pub(super) fn end_transaction(&mut self, ending: Ending) -> Result<Option<OperationId>> {
        let connection = self.session.connection;
        self.engine.gateway.end(connection, &mut self.session.transaction, ending, self.turn)
    }

    /// Requests the undo of all statements after `kept`; `None` when there are none.
    pub(super) fn undo_statements(&mut self, kept: StatementNumber) -> Result<Option<OperationId>> {
        let connection = self.session.connection;
        self.engine.gateway.undo_statements(connection, &self.session.transaction, kept, self.turn)
    }

    /// A copy of the workspace's parameters for the state of the statement, in a buffer of the thread.
    pub(super) fn copy_parameters(&mut self) -> Vec<u8> {
        let parameters = &self.engine.work.parameters;
        let mut copy = self.turn.buffers.take(parameters.len());
        copy.extend_from_slice(parameters);
        copy
    }
}
