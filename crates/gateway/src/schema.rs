//! Changes of the schema, and the tables that sessions keep for them.

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

impl Gateway {
    /// Takes the operation that the changes of one statement share; with `stays` it is there after an answer too, until
    /// [`Gateway::close_schema`], so that a statement that has begun can always be ended.
    ///
    /// # Errors
    /// `OutOfResources`; nothing is under way then.
    pub fn open_schema(&mut self, session: ConnectionId, stays: bool) -> Result<OperationId> {
        self.open(session, Work::Schema { stays })
    }

    /// Gives back an operation that stays.
    pub fn close_schema(&mut self, operation: OperationId) {
        self.operations.remove(Handle::from_u64(operation.0));
    }

    /// Changes the schema once nobody else uses the tables; waits for that at most `wait_ms`. Answered by
    /// [`Event::SchemaChanged`].
    pub fn change_schema(
        &mut self,
        operation: OperationId,
        session: ConnectionId,
        change: SchemaChange,
        wait_ms: u64,
        foreign_key_checks: bool,
        turn: &mut TurnContext<'_>,
    ) {
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

    /// Gives a schema change up that has not begun; it is answered all the same.
    pub fn cancel_schema_change(&mut self, operation: OperationId, turn: &mut TurnContext<'_>) {
        let request = CancelSchemaChange { operation, reply_to: self.own };
        turn.outbox.send(self.main, Signal::Main(MainSignal::CancelSchemaChange(request)));
    }

    /// Tells main that no session uses the tables of a change.
    pub fn tables_are_free(&mut self, change: OperationId, turn: &mut TurnContext<'_>) {
        let reply = BlockTablesReply { operation: change };
        turn.outbox.send(self.main, Signal::Main(MainSignal::BlockTablesReply(reply)));
    }

    /// Tells every tc that a transaction waits for tables, or does no more.
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

    /// Asks main to ask again, for an older transaction would use a table.
    pub fn recall_tables(&mut self, change: OperationId, turn: &mut TurnContext<'_>) {
        let signal = RecallTables { operation: change, from: self.own };
        turn.outbox.send(self.main, Signal::Main(MainSignal::RecallTables(signal)));
    }

    /// Gives back the tables that a session has locked by LOCK TABLES.
    pub fn unlock_tables(&mut self, session: ConnectionId, turn: &mut TurnContext<'_>) {
        let signal = UnlockTables { connection: session };
        turn.outbox.send(self.main, Signal::Main(MainSignal::UnlockTables(signal)));
    }
}
