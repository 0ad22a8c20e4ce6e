//! LOCK TABLES waits in the queue of schema changes, and then excludes other sessions until its session
//! unlocks the tables. An alteration locks its tables in the same way while it checks foreign keys.

use std::sync::Arc;

use junctor_kernel::{Context, NodeId, Outbox, Time};
use junctor_model::alteration::altered;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ConnectionId;
use junctor_signals::block_tables::{BlockTables, BlockedTable, TableUsers, UnlockTables};
use junctor_signals::change_schema::{SchemaChange, TableLockRequest};
use junctor_signals::read_rows::OperationId;
use junctor_signals::{Signal, SqlSignal};

use super::block::MainBlock;
use super::change_schema::{ChangeResult, reply};
use super::state::{TableName, Task, WaitingChange};

/// Tables that a session has locked, by LOCK TABLES or during an alteration.
#[derive(Debug)]
pub(super) struct LockedTables {
    pub connection: ConnectionId,
    /// Whether an alteration of the session has locked the tables, which unlocks them at its end.
    is_of_alteration: bool,
    number: OperationId,
    /// The tables, each with a flag: whether other sessions may lock it in the same mode.
    pub claims: Vec<(TableName, bool)>,
    pub tables: Arc<[BlockedTable]>,
}

impl MainBlock {
    /// Runs LOCK TABLES, or locks the tables of an alteration.
    pub(super) fn lock_tables(&mut self, waiting: WaitingChange, now: Time, outbox: &mut Outbox<Signal>) {
        let claims = self.claims_of(&waiting);
        let WaitingChange { number, requester, tables, task, .. } = waiting;
        match claims {
            Ok(claims) => {
                let (connection, is_of_alteration) = (requester.connection, task.step().is_some());
                self.locked.push(LockedTables { connection, is_of_alteration, number, claims, tables });
                match task.step_on_table() {
                    None => reply(&requester, Ok(ChangeResult::default()), outbox),
                    Some(done) => self.on_step_done(connection, done, now, outbox),
                }
            }
            Err(error) => {
                self.unblock_tables(number, &tables, outbox);
                self.fail_change((&requester, task.step()), error, now, outbox);
            }
        }
    }

    /// The tables to lock, or the reason why they cannot be locked.
    fn claims_of(&self, waiting: &WaitingChange) -> Result<Vec<(TableName, bool)>> {
        let dictionary = &self.catalog.dictionary;
        let change = match &waiting.task {
            Task::Step { table, alteration, .. } => {
                altered(dictionary, &self.base_table(*table)?.definition, alteration)?;
                return Ok(waiting.names.iter().map(|name| (name.clone(), false)).collect());
            }
            Task::Requested(change) => &**change,
        };
        match change {
            SchemaChange::LockTables { tables } => {
                let is_missing =
                    |request: &&TableLockRequest| dictionary.table_named(&request.name.0, &request.name.1).is_none();
                if let Some(TableLockRequest { name: (database, table), .. }) = tables.iter().find(is_missing) {
                    let message = format!("Table '{database}.{table}' doesn't exist");
                    return Err(Error::new(ErrorCode::NoSuchTable, message));
                }
                Ok(tables.iter().map(|request| (request.name.clone(), !request.writes)).collect())
            }
            other => junctor_kernel::invariant::fail("only locks hold tables", format_args!("{other:?}")),
        }
    }

    /// Whether a session has locked tables. The locked tables are then reserved for that session's next
    /// change.
    pub(super) fn has_locked(&self, connection: ConnectionId) -> bool {
        self.locked.iter().any(|locked| locked.connection == connection)
    }

    pub(super) fn on_unlock_tables(
        &mut self,
        signal: UnlockTables,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.release_tables(signal.connection, false, outbox);
        self.begin_changes(context.turn_start, outbox);
    }

    /// Releases the tables that a session has locked, or those of its alteration.
    pub(super) fn release_tables(
        &mut self,
        connection: ConnectionId,
        is_of_alteration: bool,
        outbox: &mut Outbox<Signal>,
    ) {
        let is_meant =
            |locked: &LockedTables| (locked.connection, locked.is_of_alteration) == (connection, is_of_alteration);
        while let Some(position) = self.locked.iter().position(is_meant) {
            let LockedTables { number, tables, .. } = self.locked.swap_remove(position);
            self.unblock_tables(number, &tables, outbox);
        }
    }

    /// A lost session that has locked tables.
    pub(super) fn lost_table_lock(&self) -> Option<ConnectionId> {
        let of_sessions = self.locked.iter().filter(|locked| !locked.is_of_alteration);
        of_sessions.map(|locked| locked.connection).find(|connection| self.is_session_lost(*connection))
    }

    /// Keeps the sessions of a node that has just come out of the locked tables. Clients may use it already:
    /// it also introduces itself to the next node with the sequencer.
    pub(super) fn block_at(&self, node: NodeId, outbox: &mut Outbox<Signal>) {
        let blocks = self.session_blocks.iter().filter(|at| at.node == node);
        for (to, locked) in blocks.flat_map(|to| self.locked.iter().map(move |locked| (to, locked))) {
            let request = BlockTables {
                operation: locked.number,
                reply_to: self.own,
                owner: locked.connection,
                users: TableUsers::Statements,
                tables: Arc::clone(&locked.tables),
            };
            outbox.send(*to, Signal::Sql(SqlSignal::BlockTables(request)));
        }
    }

    /// Number of sessions with locked tables, for checkers.
    pub fn table_locks_held(&self) -> usize {
        self.locked.len()
    }
}

/// Whether a change tolerates other sessions that lock the table in the same mode.
pub(super) fn tolerates_locks(task: &Task, name: &TableName) -> bool {
    let Task::Requested(change) = task else { return false };
    match &**change {
        SchemaChange::LockTables { tables } => tables.iter().all(|request| request.name != *name || !request.writes),
        _ => false,
    }
}
