//! [`api`]: the client for programs in Rust. Start there.
//!
//! All else is the node's own: the typed way of its sessions into the data plane, where what a session asks becomes signals and replies
//! become events. The choice of where a read runs is in `route`, nowhere else. [`wire`] has the bytes of the native protocol.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod api;
pub mod wire;

#[doc(hidden)]
pub mod door;
#[doc(hidden)]
pub mod transaction;
#[doc(hidden)]
pub mod operation;
#[doc(hidden)]
pub mod event;
#[doc(hidden)]
pub mod keys;
#[doc(hidden)]
pub mod route;
#[doc(hidden)]
pub mod client;
mod read;
mod schema;

#[doc(hidden)]
pub use client::Client;
#[doc(hidden)]
pub use door::Door;
#[doc(hidden)]
pub use event::Event;
#[doc(hidden)]
pub use junctor_kernel::{SendAssistance, SendSettings, SendStatus};
#[doc(hidden)]
pub use keys::{PartitionInputs, PartitionScope};
#[doc(hidden)]
pub use operation::RowBound;
#[doc(hidden)]
pub use transaction::Transaction;

#[doc(hidden)]
pub use junctor_kernel::scheduler::load::ThreadState;
#[doc(hidden)]
pub use junctor_kernel::{SpinChoice, SpinMethod, Time, Usage as ThreadUsage, Window};
#[doc(hidden)]
pub use junctor_signals::counter;
#[doc(hidden)]
pub use junctor_signals::program;
#[doc(hidden)]
pub use junctor_signals::read_rows::OperationId;
#[doc(hidden)]
pub use junctor_signals::remarks;
#[doc(hidden)]
pub use junctor_signals::set_globals::GlobalValues;
#[doc(hidden)]
pub use junctor_signals::use_user_lock::UserLockAction;
#[doc(hidden)]
pub use junctor_signals::{block_tables, change_schema, end_transaction::Ending, input, read_status::StatusTable};

/// The signals between recv and sql, and the inboxes, for the blocks of crate `front`.
#[doc(hidden)]
pub mod block_signals {
    pub use junctor_signals::block_tables::*;
    pub use junctor_signals::client_command::*;
    pub use junctor_signals::inbox::{ContinueWork, RecvSignal, Signal, SqlSignal};
    pub use junctor_signals::interrupt_session::*;
    pub use junctor_signals::read_status::*;
    pub use junctor_signals::set_globals::*;
}
