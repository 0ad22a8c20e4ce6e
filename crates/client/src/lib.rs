//! The typed way into the data plane: what a session asks becomes signals, replies become events.
//! The choice of where a read runs is in `route`, nowhere else.
#![forbid(unsafe_code)]

pub mod door;
pub mod api;
pub mod wire;
pub mod transaction;
pub mod operation;
pub mod event;
pub mod keys;
pub mod route;
pub mod client;
mod read;
mod schema;

pub use client::Client;
pub use door::Door;
pub use event::Event;
pub use keys::{PartitionInputs, PartitionScope};
pub use operation::RowBound;
pub use transaction::Transaction;

pub use junctor_kernel::{SpinChoice, SpinMethod, Time, Usage as ThreadUsage, Window};
pub use junctor_signals::counter;
pub use junctor_signals::program;
pub use junctor_signals::read_rows::OperationId;
pub use junctor_signals::remarks;
pub use junctor_signals::set_globals::GlobalValues;
pub use junctor_signals::use_user_lock::UserLockAction;
pub use junctor_signals::{block_tables, change_schema, end_transaction::Ending, input, read_status::StatusTable};

/// The signals between recv and sql, and the inboxes, for the blocks of crate `front`.
pub mod block_signals {
    pub use junctor_signals::block_tables::*;
    pub use junctor_signals::client_command::*;
    pub use junctor_signals::inbox::{ContinueWork, RecvSignal, Signal, SqlSignal};
    pub use junctor_signals::interrupt_session::*;
    pub use junctor_signals::read_status::*;
    pub use junctor_signals::set_globals::*;
}
