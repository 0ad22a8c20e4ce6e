//! The context that every step of a statement receives.

use junctor_gateway::TurnContext;
use junctor_model::error::Result;
use junctor_model::id::StatementNumber;
use junctor_signals::end_transaction::Ending;
use junctor_signals::read_rows::OperationId;

use super::engine::Engine;
use super::session::Session;
use crate::result::ResultSink;

/// The engine, session, turn and result sink of a running statement.
pub(crate) struct StatementContext<'c, 't> {
    /// The state that all sessions of the sql block share.
    pub engine: &'c mut Engine,
    /// The session that executes the statement.
    pub session: &'c mut Session,
    /// The block's turn: clock, buffers and outbox.
    pub turn: &'c mut TurnContext<'t>,
    /// Receives the statement's result.
    pub sink: &'c mut (dyn ResultSink + 'c),
}

impl StatementContext<'_, '_> {
    /// Requests COMMIT or ROLLBACK of the session's transaction. Returns `None` if the transaction has
    /// nothing to end in the data plane.
    pub(super) fn end_transaction(&mut self, ending: Ending) -> Result<Option<OperationId>> {
        let connection = self.session.connection;
        let durability = self.session.variables.commit_durability;
        self.engine.gateway.end(connection, &mut self.session.transaction, (ending, durability), self.turn)
    }

    /// Requests the rollback of all statements after `kept`. Returns `None` if there are none.
    pub(super) fn undo_statements(&mut self, kept: StatementNumber) -> Result<Option<OperationId>> {
        let connection = self.session.connection;
        self.engine.gateway.undo_statements(connection, &self.session.transaction, kept, self.turn)
    }

    /// Copies the workspace's parameters into a buffer of the thread, to keep them in the state of a waiting
    /// statement.
    pub(super) fn copy_parameters(&mut self) -> Vec<u8> {
        let parameters = &self.engine.work.parameters;
        let mut copy = self.turn.buffers.take(parameters.len());
        copy.extend_from_slice(parameters);
        copy
    }
}
