//! The workloads: what sessions do, as state machines without IO. A workload yields the next statement of
//! each session and checks the answer.
//!
//! The driver has one thread and virtual time is a total order. A workload therefore knows two bounds for
//! every statement: the statement must see everything that was acknowledged before it was sent, and nothing
//! that was not attempted before its answer came.

use std::cell::RefCell;
use std::rc::Rc;

use junctor_history::level::Level;
use junctor_kernel::{Duration, Random};

use crate::backup_program::BackupProgram;
use crate::ledger::Durability;
use crate::statement::{Reply, Statement};

mod added_columns;
mod alteration;
mod auto_increment;
mod backup;
mod bank_transfer;
mod multi_step_write;
mod multi_valued;
mod counter;
mod deadlock_storm;
mod durable_rows;
mod read_while_write;
mod history;
mod failed_change;
mod grouped_query;
mod foreign_key;
mod interruption;
mod long_transaction;
mod index_while_update;
mod persisted_settings;
mod phantom;
mod remove_groups;
mod remove_replicas;
mod schema_change;
mod script;
mod spread_tables;
mod unique_race;
mod user_lock;

pub use added_columns::AddedColumns;
pub use alteration::Alteration;
pub use auto_increment::AutoIncrement;
pub use backup::Backup;
pub use bank_transfer::BankTransfer;
pub use counter::Counter;
pub use deadlock_storm::DeadlockStorm;
pub use durable_rows::DurableRows;
pub use failed_change::FailedChange;
pub use foreign_key::ForeignKey;
pub use grouped_query::GroupedQuery;
pub use history::Histories;
pub use index_while_update::IndexWhileUpdate;
pub use interruption::Interruption;
pub use long_transaction::LongTransaction;
pub use multi_step_write::MultiStepWrite;
pub use multi_valued::MultiValued;
pub use persisted_settings::PersistedSettings;
pub use phantom::Phantom;
pub use read_while_write::ReadWhileWrite;
pub use remove_groups::RemoveGroups;
pub use remove_replicas::RemoveReplicas;
pub use schema_change::SchemaChange;
pub use script::{Audit, Diagnosis, Script};
pub use spread_tables::SpreadTables;
pub use unique_race::UniqueRace;
pub use user_lock::UserLock;

/// MySQL's error for a deadlock: the server rolled back the whole transaction.
pub const DEADLOCK: u16 = 1213;
/// MySQL's error for a value that a unique key already contains.
pub const DUPLICATE: u16 = 1062;

/// The next step of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a statement and wait for its answer.
    Run(Statement),
    /// Do nothing for this time.
    Pause(Duration),
    /// End the session.
    Done,
}

/// Sessions with a common purpose, and the checks of their answers.
pub trait Workload {
    /// The name in plans and reports.
    fn name(&self) -> &'static str;

    /// The statements that create its tables and rows. They run in order before any session begins.
    fn setup(&self) -> Vec<Statement>;

    /// Number of sessions.
    fn sessions(&self) -> usize;

    /// The next step of an idle session.
    fn next(&mut self, session: usize, random: &mut Random) -> Step;

    /// Checks the answer to the last statement of the session.
    ///
    /// # Errors
    /// A description of what is wrong with the answer.
    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String>;

    /// Handles the end of the session's connection. It is unknown whether a statement in flight took effect;
    /// a transaction without COMMIT did not.
    fn on_closed(&mut self, session: usize);

    /// The statements to run after a restart of durable nodes, before the sessions go on.
    fn recheck(&self) -> Vec<Statement> {
        Vec::new()
    }

    /// Checks the answer to the statement of [`Workload::recheck`] at this position. Most workloads check the
    /// same as in the audit.
    ///
    /// # Errors
    /// A description of what is wrong with the answer.
    fn on_recheck(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        self.on_audit(position, reply)
    }

    /// The statements to run after all sessions have ended.
    fn audit(&self) -> Vec<Statement>;

    /// Checks the answer to the audit statement at this position.
    ///
    /// # Errors
    /// A description of what is wrong with the answer.
    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String>;

    /// Whether sessions handle error 1021. The others give up their connection after it.
    fn expects_full_disk(&self) -> bool {
        false
    }

    /// The program whose copies a session of the workload protects.
    fn backup_program(&self) -> Option<Rc<RefCell<BackupProgram>>> {
        None
    }
}

/// Creates the workload with this name. Names of the form `history_LEVEL` select an isolation level of
/// [`Histories`].
pub fn by_name(name: &str, sessions: usize, rounds: u32, rows: i64) -> Option<Box<dyn Workload>> {
    Some(match name {
        "bank_transfer" => Box::new(BankTransfer::new(sessions, rounds, rows)),
        "read_while_write" => Box::new(ReadWhileWrite::new(sessions, rounds, rows)),
        "index_while_update" => Box::new(IndexWhileUpdate::new(sessions, rounds, rows)),
        "unique_race" => Box::new(UniqueRace::new(sessions, rounds, rows)),
        "durable_long_rows" => Box::new(DurableRows::new(Durability::Disk, sessions, rounds, rows).with_long_rows()),
        "durable_rows" => Box::new(DurableRows::new(Durability::Disk, sessions, rounds, rows)),
        "auto_increment" => Box::new(AutoIncrement::new(sessions, rounds)),
        "schema_change" => Box::new(SchemaChange::new(sessions, rounds, rows)),
        "persisted_settings" => Box::new(PersistedSettings::new(sessions, rounds)),
        "added_columns" => Box::new(AddedColumns::new(sessions, rounds, rows)),
        "multi_valued" => Box::new(MultiValued::new(true, sessions, rounds, rows)),
        "multi_valued_rows" => Box::new(MultiValued::new(false, sessions, rounds, rows)),
        "alteration" => Box::new(Alteration::new(sessions, rounds, rows)),
        "failed_change" => Box::new(FailedChange::new(sessions, rounds)),
        "backup" => Box::new(Backup::new(rounds)),
        "phantom" => Box::new(Phantom::new(sessions, rounds, rows)),
        "foreign_key" => Box::new(ForeignKey::new(sessions, rounds, rows)),
        "deadlock_storm" => Box::new(DeadlockStorm::new(sessions, rounds, rows)),
        "multi_step_write" => Box::new(MultiStepWrite::new(sessions, rounds, rows)),
        "grouped_query" => Box::new(GroupedQuery::new(sessions, rounds, rows)),
        "interruption" => Box::new(Interruption::new(sessions, rounds, rows)),
        "remove_groups" => Box::new(RemoveGroups::new(rounds)),
        "remove_replicas" => Box::new(RemoveReplicas::new(rounds)),
        "spread_tables" => Box::new(SpreadTables::new(sessions, rounds)),
        "user_lock" => Box::new(UserLock::new(sessions, rounds, rows)),
        "long_transaction" => Box::new(LongTransaction::new(sessions, rounds, rows)),
        _ => Box::new(Histories::new(Level::from_name(name.strip_prefix("history_")?)?, sessions, rounds, rows)),
    })
}

/// INSERT statements of up to 16 rows each. `row` returns the values of a row without parentheses.
fn inserts(table: &str, ids: std::ops::Range<i64>, row: impl Fn(i64) -> String) -> Vec<Statement> {
    const ROWS_MAX: usize = 16;
    let ids: Vec<i64> = ids.collect();
    let statement = |ids: &[i64]| {
        let rows: Vec<String> = ids.iter().map(|&id| format!("({})", row(id))).collect();
        Statement::plain(format!("INSERT INTO {table} VALUES {}", rows.join(", ")))
    };
    ids.chunks(ROWS_MAX).map(statement).collect()
}

/// Checks that the statement succeeded.
fn succeeded(reply: &Reply) -> Result<(), String> {
    match reply {
        Reply::Failed { errno, message } => Err(format!("error {errno}: {message}")),
        _ => Ok(()),
    }
}

/// Checks that the statement succeeded and changed this number of rows.
fn changed(reply: &Reply, rows: u64) -> Result<(), String> {
    match reply.affected_rows()? {
        changed if changed == rows => Ok(()),
        changed => Err(format!("{changed} rows changed instead of {rows}")),
    }
}

#[cfg(test)]
mod tests;
