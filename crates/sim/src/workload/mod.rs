//! What clients do, as state machines without IO: each says the next statement of a session and judges its answer.
//!
//! The driver is one thread and virtual time is one order, so a workload knows what was acknowledged before a statement
//! was sent (it must be seen) and what was attempted before its answer came (nothing else may be seen).

use junctor_history::level::Level;
use junctor_kernel::{Duration, Random};

use crate::statement::{Reply, Statement};

mod auto_increment;
mod bank;
mod compound_write;
mod counter;
mod deadlock_storm;
mod family;
mod history;
mod foreign_key;
mod interruption;
mod long_transaction;
mod moving_index;
mod phantom;
mod schema_change;
mod script;
mod unique_race;
mod user_lock;

pub use auto_increment::AutoIncrement;
pub use bank::BankTransfer;
pub use compound_write::CompoundWrite;
pub use counter::Counter;
pub use deadlock_storm::DeadlockStorm;
pub use family::ReadWhileWrite;
pub use foreign_key::ForeignKey;
pub use history::Histories;
pub use interruption::Interruption;
pub use long_transaction::LongTransaction;
pub use moving_index::IndexWhileUpdate;
pub use phantom::Phantom;
pub use schema_change::SchemaChange;
pub use script::{Audit, Look, Script};
pub use unique_race::UniqueRace;
pub use user_lock::UserLock;

/// MySQL's number for a deadlock: the whole transaction was undone.
pub const DEADLOCK: u16 = 1213;
/// MySQL's number for a value that a unique key has already.
pub const DUPLICATE: u16 = 1062;

/// What a session does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends a statement and waits for its answer.
    Run(Statement),
    /// Does nothing for a while.
    Pause(Duration),
    /// Ends.
    Done,
}

/// A number of sessions with one purpose, and the judge of what they see.
pub trait Workload {
    /// Its name in plans and reports.
    fn name(&self) -> &'static str;

    /// What makes its tables and rows, one statement after the other, before the sessions begin.
    fn setup(&self) -> Vec<Statement>;

    /// How many sessions it has.
    fn sessions(&self) -> usize;

    /// The next step of a session that waits for nothing.
    fn next(&mut self, session: usize, random: &mut Random) -> Step;

    /// Judges the answer to the statement sent last.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String>;

    /// The connection ended: whether a statement that was under way was carried out is unknown, except that a
    /// transaction without COMMIT was not.
    fn on_closed(&mut self, session: usize);

    /// What is asked once all sessions have ended.
    fn audit(&self) -> Vec<Statement>;

    /// Judges the answer to the statement at this position of the audit.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String>;
}

/// The workload of a plan by its name, with so many sessions that do so many rounds each.
pub fn by_name(name: &str, sessions: usize, rounds: u32, rows: i64) -> Option<Box<dyn Workload>> {
    Some(match name {
        "bank_transfer" => Box::new(BankTransfer::new(sessions, rounds, rows)),
        "read_while_write" => Box::new(ReadWhileWrite::new(sessions, rounds, rows)),
        "index_while_update" => Box::new(IndexWhileUpdate::new(sessions, rounds, rows)),
        "unique_race" => Box::new(UniqueRace::new(sessions, rounds, rows)),
        "auto_increment" => Box::new(AutoIncrement::new(sessions, rounds)),
        "schema_change" => Box::new(SchemaChange::new(sessions, rounds, rows)),
        "phantom" => Box::new(Phantom::new(sessions, rounds, rows)),
        "foreign_key" => Box::new(ForeignKey::new(sessions, rounds, rows)),
        "deadlock_storm" => Box::new(DeadlockStorm::new(sessions, rounds, rows)),
        "compound_write" => Box::new(CompoundWrite::new(sessions, rounds, rows)),
        "interruption" => Box::new(Interruption::new(sessions, rounds, rows)),
        "user_lock" => Box::new(UserLock::new(sessions, rounds, rows)),
        "long_transaction" => Box::new(LongTransaction::new(sessions, rounds, rows)),
        _ => Box::new(Histories::new(Level::from_name(name.strip_prefix("history_")?)?, sessions, rounds, rows)),
    })
}

/// Multi-row INSERT statements of at most so many rows each; `row` gives the text of a row without its parentheses.
fn inserts(table: &str, ids: std::ops::Range<i64>, row: impl Fn(i64) -> String) -> Vec<Statement> {
    const ROWS_MAX: usize = 16;
    let ids: Vec<i64> = ids.collect();
    let statement = |ids: &[i64]| {
        let rows: Vec<String> = ids.iter().map(|&id| format!("({})", row(id))).collect();
        Statement::plain(format!("INSERT INTO {table} VALUES {}", rows.join(", ")))
    };
    ids.chunks(ROWS_MAX).map(statement).collect()
}

/// The statement succeeded.
fn succeeded(reply: &Reply) -> Result<(), String> {
    match reply {
        Reply::Failed { errno, message } => Err(format!("error {errno}: {message}")),
        _ => Ok(()),
    }
}

/// The statement succeeded and changed so many rows.
fn changed(reply: &Reply, rows: u64) -> Result<(), String> {
    match reply.affected_rows()? {
        changed if changed == rows => Ok(()),
        changed => Err(format!("{changed} rows were changed, not {rows}")),
    }
}

#[cfg(test)]
mod tests;
