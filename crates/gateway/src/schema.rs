//! Schema changes, and the table locks that sessions hold against them.

use junctor_kernel::{Address, Handle};
use junctor_model::error::Result;
use junctor_model::id::{ConnectionId, TransactionId};
use junctor_signals::Module;
use junctor_signals::block_tables::{BlockTablesReply, CancelSchemaChange, NoteTableWait, RecallTables, UnlockTables};
use junctor_signals::change_schema::{ChangeSchema, SchemaChange};
use junctor_signals::read_rows::OperationId;
use junctor_signals::{MainSignal, Signal, TcSignal};

use crate::gateway::Gateway;
use crate::operation::Work;
use crate::turn_context::TurnContext;

/// A schema change, with the settings of the session that requests it.
#[derive(Debug)]
pub struct SchemaRequest {
    /// The requesting session.
    pub session: ConnectionId,
    /// The change.
    pub change: SchemaChange,
    /// Maximum time to wait until other sessions stop using the tables, in milliseconds.
    pub wait_ms: u64,
    /// Whether foreign keys are checked.
    pub foreign_key_checks: bool,
}

impl Gateway {
    /// Opens the operation that all changes of one statement share. With `stays`, the operation stays open
    /// after an answer until [`Gateway::close_schema`], so that a statement that has begun can always finish.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn open_schema(&mut self, session: ConnectionId, stays: bool) -> Result<OperationId> {
        self.open(session, Work::Schema { stays })
    }

    /// Closes an operation that was opened with `stays`.
    pub fn close_schema(&mut self, operation: OperationId) {
        self.operations.remove(Handle::from_u64(operation.0));
    }

    /// Changes the schema once no other session uses the tables. Waits for that at most `wait_ms`.
    /// [`Event::SchemaChanged`] is the answer.
    pub fn change_schema(&mut self, operation: OperationId, request: SchemaRequest, turn: &mut TurnContext<'_>) {
        let SchemaRequest { session, change, wait_ms, foreign_key_checks } = request;
        let request = ChangeSchema {
            operation,
            reply_to: self.own,
            connection: session,
            wait_ms,
            foreign_key_checks,
            change: Box::new(change),
        };
        turn.outbox.send(self.main, Signal::Main(MainSignal::ChangeSchema(request)));
    }

    /// Cancels a schema change that has not begun. Its answer still arrives.
    pub fn cancel_schema_change(&mut self, operation: OperationId, turn: &mut TurnContext<'_>) {
        let request = CancelSchemaChange { operation, reply_to: self.own };
        turn.outbox.send(self.main, Signal::Main(MainSignal::CancelSchemaChange(request)));
    }

    /// Reports to main that no session uses the tables of a change.
    pub fn tables_are_free(&mut self, change: OperationId, turn: &mut TurnContext<'_>) {
        let reply = BlockTablesReply { operation: change };
        turn.outbox.send(self.main, Signal::Main(MainSignal::BlockTablesReply(reply)));
    }

    /// Notifies every tc that a transaction waits for tables, or no longer waits.
    pub fn note_table_wait(
        &mut self,
        connection: ConnectionId,
        transaction: TransactionId,
        waits: bool,
        turn: &mut TurnContext<'_>,
    ) {
        let signal = NoteTableWait { transaction, connection, from: self.own, waits };
        for instance in 0..self.tc_instances {
            let to = Address::new(self.own.node, Module::Tc, instance);
            turn.outbox.send(to, Signal::Tc(TcSignal::NoteTableWait(signal)));
        }
    }

    /// Asks main to repeat its request, because an older transaction is about to use a table.
    pub fn recall_tables(&mut self, change: OperationId, turn: &mut TurnContext<'_>) {
        let signal = RecallTables { operation: change, from: self.own };
        turn.outbox.send(self.main, Signal::Main(MainSignal::RecallTables(signal)));
    }

    /// Releases the tables that a session locked by LOCK TABLES.
    pub fn unlock_tables(&mut self, session: ConnectionId, turn: &mut TurnContext<'_>) {
        let signal = UnlockTables { connection: session };
        turn.outbox.send(self.main, Signal::Main(MainSignal::UnlockTables(signal)));
    }
}
