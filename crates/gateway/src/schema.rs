//! Schema changes, and the table locks that sessions hold against them.

use junctor_kernel::Address;
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
    /// Maximum wait for a row lock while an index is filled, in milliseconds.
    pub lock_wait_ms: u32,
    /// Whether foreign keys are checked.
    pub foreign_key_checks: bool,
}

impl Gateway {
    /// Changes the schema once no other session uses the tables. Waits for that at most `wait_ms`.
    /// [`Event::SchemaChanged`] is the answer.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn change_schema(&mut self, request: SchemaRequest, turn: &mut TurnContext<'_>) -> Result<OperationId> {
        let SchemaRequest { session, change, wait_ms, lock_wait_ms, foreign_key_checks } = request;
        let operation = self.open(session, Work::Schema)?;
        let request = ChangeSchema {
            operation,
            reply_to: self.own,
            connection: session,
            wait_ms,
            lock_wait_ms,
            foreign_key_checks,
            change: Box::new(change),
        };
        turn.outbox.send(self.main, Signal::Main(MainSignal::ChangeSchema(request)));
        Ok(operation)
    }

    /// Cancels a schema change, if it can still be undone. Its answer still arrives.
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
        let (node, tc_instances) = self.tcs();
        for instance in 0..tc_instances {
            let to = Address::new(node, Module::Tc, instance);
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
