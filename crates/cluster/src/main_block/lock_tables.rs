//! LOCK TABLES: waits for its turn as a change of the schema does, and keeps others from its tables until its session gives them
//! back. An alteration keeps its tables in the same way while its session looks for the parents of rows.

use std::sync::Arc;

use junctor_kernel::{Context, Outbox};
use junctor_model::alteration::altered;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ConnectionId;
use junctor_signals::Signal;
use junctor_signals::block_tables::{BlockedTable, UnlockTables};
use junctor_signals::change_schema::{SchemaChange, TableLockRequest};
use junctor_signals::read_rows::OperationId;

use super::block::MainBlock;
use super::change_schema::reply;
use super::state::{TableName, WaitingChange};

/// Tables that a session has locked, or keeps as they are while it looks at their rows.
#[derive(Debug)]
pub(super) struct LockedTables {
    pub connection: ConnectionId,
    number: OperationId,
    /// The tables, and whether others may lock them likewise.
    pub claims: Vec<(TableName, bool)>,
    tables: Arc<[BlockedTable]>,
}

impl MainBlock {
    /// A LOCK TABLES whose turn it is, or an alteration that wants its tables kept.
    pub(super) fn lock_tables(&mut self, waiting: WaitingChange, outbox: &mut Outbox<Signal>) {
        let claims = self.claims_of(&waiting);
        let WaitingChange { number, asker, tables, .. } = waiting;
        match claims {
            Ok(claims) => {
                self.locked.push(LockedTables { connection: asker.connection, number, claims, tables });
                reply(asker, Vec::new(), None, outbox);
            }
            Err(error) => {
                self.let_go(number, &tables, outbox);
                reply(asker, Vec::new(), Some(error), outbox);
            }
        }
    }

    /// What is locked, or why it cannot be.
    fn claims_of(&self, waiting: &WaitingChange) -> Result<Vec<(TableName, bool)>> {
        let dictionary = &self.catalog.dictionary;
        match &*waiting.change {
            SchemaChange::LockTables { tables } => {
                let is_missing =
                    |request: &&TableLockRequest| dictionary.table_named(&request.name.0, &request.name.1).is_none();
                if let Some(TableLockRequest { name: (database, table), .. }) = tables.iter().find(is_missing) {
                    let message = format!("Table '{database}.{table}' doesn't exist");
                    return Err(Error::new(ErrorCode::NoSuchTable, message));
                }
                Ok(tables.iter().map(|request| (request.name.clone(), !request.writes)).collect())
            }
            SchemaChange::HoldTables { table, alteration } => {
                altered(dictionary, &self.base_table(*table)?.definition, alteration)?;
                Ok(waiting.names.iter().map(|name| (name.clone(), false)).collect())
            }
            other => junctor_kernel::invariant::fail("only locks hold tables", format_args!("{other:?}")),
        }
    }

    /// Whether a session keeps tables, which its next change has to itself then.
    pub(super) fn has_locked(&self, connection: ConnectionId) -> bool {
        self.locked.iter().any(|locked| locked.connection == connection)
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
