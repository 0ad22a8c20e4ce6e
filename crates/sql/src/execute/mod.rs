//! Executes plans. A session's execution is an explicit state record, and every reply of the data plane is one step, so no
//! statement ever blocks its thread.
//!
//! One verb for each layer: `start_*` begins a statement by its form, `send_*` sends a request to the data plane,
//! `resume_*` continues a state with a reply, `finish_*` sends the rest of the answer, `fail` sends an error.
//!
//! In reading order:
//! - [`context`], what every step works with; [`state`], the states; [`retry`], statements that start again; [`resume`],
//!   from a reply to its state; [`completion`], how statements end;
//! - [`key`], [`bound`] and [`parameters`]: keys, ranges and parameters of one execution; [`packets`], [`sorter`]: rows;
//! - by form: [`read`], [`keys`], [`compute`], [`write`], [`insert`] with [`numbers`], [`compound`], [`transaction`],
//!   [`savepoint`], [`interrupt`], [`user_lock`];
//! - schema changes: [`schema`], [`alter`], [`index_backfill`], [`foreign_key_check`].

mod alter;
mod bound;
mod completion;
mod compound;
mod compute;
mod context;
mod foreign_key_check;
mod index_backfill;
mod insert;
mod interrupt;
mod key;
mod keys;
mod numbers;
mod packets;
mod parameters;
mod read;
mod resume;
mod retry;
mod savepoint;
mod schema;
mod sorter;
mod state;
mod transaction;
mod user_lock;
mod write;

pub(crate) use completion::{Changed, fail, finish_ok, finish_rows, interrupted};
pub(crate) use compute::start_compute;
pub(crate) use context::StatementContext;
pub(crate) use insert::start_insert;
pub(crate) use interrupt::no_such_thread;
pub(crate) use keys::{KeyReadPlan, start_key_read};
pub(crate) use numbers::NumberRanges;
pub(crate) use packets::append_row;
pub(crate) use parameters::{fill_from_shape, fits_class, kind_of_value, kinds_of_shape};
pub(crate) use read::start_select;
pub(crate) use resume::{continue_output, continue_statement, resume};
pub(crate) use retry::{InputForm, RetryInput, RetryState, StatementInput};
pub(crate) use savepoint::{Savepoint, release_savepoint, set_savepoint, start_rollback_to};
pub(crate) use schema::{note_schema_started, start_schema_change};
pub(crate) use state::{Execution, PlanInput, TableWait, Workspace};
pub(crate) use transaction::{AfterEnding, finish_set, start_control, start_ending};
pub(crate) use user_lock::{LockCallMode, LockCalls, lock_call_in_table_statement, start_user_locks};
pub(crate) use write::{in_read_only_transaction, start_change};
