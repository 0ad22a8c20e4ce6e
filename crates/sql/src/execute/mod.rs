//! Executes plans. A session's execution is an explicit state, and every reply of the data plane triggers one
//! step, so no statement ever blocks its thread.
//!
//! Each layer has its own verb: `start_*` begins a statement of one form, `send_*` sends a request to the
//! data plane, `resume_*` continues a suspended statement with a reply, `finish_*` sends the rest of the
//! answer, and `fail` sends an error.
//!
//! In reading order:
//! - [`session`], one connection; [`engine`] and [`settings`], the state that all sessions of a block share;
//!   [`context`], the context of every step; [`state`], the states; [`retry`], the restart of statements;
//!   [`memory`], the memory and the temporary space of queries; [`resume`], which finds the state that a
//!   reply belongs to; [`completion`] and [`turn_ends`], the end of statements; [`latency`] and
//!   [`histogram`], their durations; [`digest`], their counts by normalised text;
//! - [`key`] and [`bound`], which build the keys and key ranges of one execution; [`packets`] and [`sorter`],
//!   which handle result rows; [`received`], which processes many of them in steps;
//! - by form: [`read`], [`key_read`], [`compute`] with [`result_rows`], [`write`], [`unique_key`], [`insert`]
//!   with [`numbers`],
//!   [`compound`], [`into`], [`transaction`], [`savepoint`], [`interrupt`], [`user_lock`], [`benchmark`],
//!   [`table_statistics`], [`lock_tables`], [`schema`], [`track_transaction`]; [`table_use`], which separates
//!   statements from schema changes; [`lending`], which hands sessions with long queries over.

mod benchmark;
mod bound;
mod completion;
mod compound;
mod compute;
mod context;
mod digest;
mod engine;
mod estimates;
mod histogram;
mod identity;
mod insert;
mod interrupt;
mod into;
mod key;
mod key_read;
mod latency;
mod lending;
mod load_file;
mod lock_tables;
pub(crate) mod memory;
mod numbers;
mod operator;
mod output_file;
mod packets;
mod query_limit;
mod read;
mod received;
mod result_rows;
mod resume;
mod retry;
mod savepoint;
mod schema;
mod server_file;
mod session;
mod settings;
mod sorter;
mod state;
mod table_statistics;
mod table_use;
mod track_transaction;
mod transaction;
mod tree;
mod turn_ends;
mod unique_key;
mod user_lock;
mod write;

pub(crate) use benchmark::Benchmark;
pub(crate) use completion::{ChangeCounts, fail, finish_ok, interrupted, send_table};
pub(crate) use compound::{receive_file, start_insert_select, start_modify};
pub(crate) use compute::start_compute;
pub(crate) use context::StatementContext;
pub use digest::DigestTask;
pub(crate) use digest::{StatementDigests, TextKey};
pub use engine::Engine;
pub(crate) use engine::SHAPE_SEED;
pub(crate) use estimates::TableEstimates;
pub(crate) use identity::{Identity, granted_roles, must_change_password};
pub(crate) use insert::start_insert;
pub(crate) use into::{start_cursor, start_into};
pub(crate) use junctor_signals::interrupt_session::no_such_thread;
pub(crate) use key_read::{KeyReadPlan, KeyReader, start_key_read};
pub(crate) use latency::Latencies;
pub(crate) use lock_tables::{TableLocks, has_locked_tables};
pub(crate) use numbers::{AutoIncrementRanges, InsertId};
pub use query_limit::QUERY_LIMIT_TIMER;
pub(crate) use query_limit::QueryLimits;
pub(crate) use read::start_select;
pub(crate) use resume::{continue_output, continue_statement, resume};
pub(crate) use retry::{InputForm, RetryInput, RetryState, StatementInput};
pub(crate) use savepoint::{release_savepoint, set_savepoint, start_rollback_to};
pub(crate) use schema::{
    AccessOutcome, AccessRetry, AfterSchemaChange, DefinitionRetry, FillTable, FilledTable, note_change_wait,
    send_schema_change, start_access_change, start_schema_change, undo_creation,
};
pub(crate) use session::HintedVariables;
pub use session::{Session, SessionOpening};
pub(crate) use settings::READ_ROUTING;
pub use settings::{ServerSettings, ThreadPoolSettings};
pub(crate) use state::{Execution, PlanInput, TableWait, Workspace};
pub(crate) use table_statistics::{start_row_counts, start_table_statistics};
pub(crate) use table_use::BlockingChanges;
pub use table_use::LockReport;
pub(crate) use transaction::{AfterTransactionEnd, finish_set, start_control, start_ending};
pub(crate) use tree::start_tree;
pub(crate) use turn_ends::TurnEnds;
pub(crate) use user_lock::{
    CallResults, LockCallMode, LockCalls, OuterCall, action_of, lock_call_in_table_statement, start_user_locks,
};
pub(crate) use write::{in_read_only_transaction, start_change};
