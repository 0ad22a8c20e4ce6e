//! The tc block: coordinates transactions. It knows which ldm instances take part in each, what runs there,
//! and how the transaction ends.
//!
//! - Owns: a pool of transactions, their participants, their waits for locks, and the waits for commit
//!   numbers to become stable.
//! - Takes: `ExecuteStatement`, `InterruptStatement`, `EndTransaction`, `UndoStatements`, `WriteRowsReply`,
//!   `PrepareTransactionReply`, `CommitTransactionReply`, `UndoTransactionReply`, `CommitStable`,
//!   `SeenStable`, `AwaitStable`, `AwaitDurableReply`, `LogSpaceChanged`, `ReserveLogSpaceReply`,
//!   `LockWaitStarted`, `LockWaitEnded`, `ProbeDeadlock`, `NoteTableWait`, `ReadStatus`, `PublishCatalog`.
//! - Sends: `WriteRows`, `PrepareTransaction`, `CommitTransaction`, `UndoTransaction`, `CancelWait`,
//!   `InterruptWrites` to ldm; `CommitStable`, `AwaitStable` and `ProbeDeadlock` to tc; the replies and
//!   `HastenTransaction` to sql; `AwaitDurable` and `ReserveLogSpace` to log.
//! - Never: holds rows, locks or snapshots; waits for anything but the replies it counts.
//!
//! Reading order: [`block`]; the records in [`state`]; the life of a transaction in [`execute_statement`],
//! [`follow_up`], [`foreign_key`], [`interrupt_statement`], [`undo_transaction`], [`undo_statements`],
//! [`end_transaction`], [`commit_transaction`], [`request_number`], [`begin_epoch`], [`reserve_log_space`]
//! and [`await_durable`]; then [`lock_wait`], [`note_table_wait`] and [`read_status`].

mod await_durable;
mod begin_epoch;
pub mod block;
mod commit_transaction;
mod end_transaction;
mod execute_statement;
mod follow_up;
mod foreign_key;
mod interrupt_statement;
mod last_rounds;
mod lock_wait;
mod log_credit;
mod note_table_wait;
mod read_status;
mod request_number;
mod reserve_log_space;
mod state;
mod undo_statements;
mod undo_transaction;

pub use block::TcBlock;

#[cfg(test)]
pub(crate) use log_credit::LogCredit;

#[cfg(test)]
mod tests;
