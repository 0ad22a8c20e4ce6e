//! LOCK TABLES: waits for its turn as a change of the schema does, and keeps others from its tables until its session gives them
//! back.

use std::sync::Arc;

use junctor_kernel::{Context, Outbox};
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::ConnectionId;
use junctor_signals::Signal;
use junctor_signals::block_tables::{BlockedTable, UnlockTables};
use junctor_signals::change_schema::{SchemaChange, TableLockRequest};
use junctor_signals::read_rows::OperationId;

use super::block::MainBlock;
use super::change_schema::reply;
use super::state::{TableName, WaitingChange};

/// Tables that a session has locked.
#[derive(Debug)]
pub(super) struct LockedTables {
    connection: ConnectionId,
    number: OperationId,
    pub requests: Vec<TableLockRequest>,
    tables: Arc<[BlockedTable]>,
}

impl MainBlock {
    /// A LOCK TABLES whose turn it is.
    pub(super) fn lock_tables(&mut self, waiting: WaitingChange, outbox: &mut Outbox<Signal>) {
        let WaitingChange { number, asker, change, tables, .. } = waiting;
        let SchemaChange::LockTables { tables: requests } = *change else { return };
        let dictionary = &self.catalog.dictionary;
        let is_missing =
            |request: &&TableLockRequest| dictionary.table_named(&request.name.0, &request.name.1).is_none();
        let missing = requests.iter().find(is_missing);
        if let Some(TableLockRequest { name: (database, table), .. }) = missing {
            let message = format!("Table '{database}.{table}' doesn't exist");
            self.let_go(number, &tables, outbox);
            return reply(asker, Vec::new(), Some(Error::new(ErrorCode::NoSuchTable, message)), outbox);
        }
        self.locked.push(LockedTables { connection: asker.connection, number, requests, tables });
        reply(asker, Vec::new(), None, outbox);
    }

    pub(super) fn on_unlock_tables(
        &mut self,
        signal: UnlockTables,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        while let Some(position) = self.locked.iter().position(|locked| locked.connection == signal.connection) {
            let LockedTables { number, tables, .. } = self.locked.swap_remove(position);
            self.let_go(number, &tables, outbox);
        }
        self.begin_changes(context.now, outbox);
    }

    /// How many sessions have locked tables, for checkers.
    pub fn table_locks_held(&self) -> usize {
        self.locked.len()
    }
}

/// Whether a change leaves a table to others that leave it so, too.
pub(super) fn shares(change: &SchemaChange, name: &TableName) -> bool {
    match change {
        SchemaChange::LockTables { tables } => tables.iter().all(|request| request.name != *name || !request.writes),
        _ => false,
    }
}
