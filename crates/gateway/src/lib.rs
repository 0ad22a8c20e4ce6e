//! The node's own typed way to its data: sessions ask operations of the [`Gateway`] of their sql block, which
//! turns them into signals, and turns the replies into [`Event`]s.
//!
//! In reading order:
//! - [`gateway`]: the operations of one sql block; [`operation`]: the record of one that is under way;
//!   [`event`]: its answers;
//! - [`keys`]: keys, ranges and rows of a statement, sorted by partition;
//! - [`transaction`]: what a session knows of its transaction;
//! - [`route`]: where a read runs, decided here and nowhere else;
//! - [`turn_context`]: what a session may use while its block handles a signal;
//! - [`threads`]: the load figures and run-time settings of the node's threads.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod gateway;
pub mod event;
pub mod keys;
pub mod operation;
mod read;
pub mod route;
mod schema;
pub mod threads;
pub mod transaction;
pub mod turn_context;

pub use event::Event;
pub use gateway::Gateway;
pub use keys::{PartitionInputs, PartitionScope};
pub use operation::RowBound;
pub use read::ReadRequest;
pub use schema::SchemaRequest;
pub use transaction::Transaction;
pub use turn_context::TurnContext;

// Checks that stop the node, for callers that do not see the kernel.
pub use junctor_kernel::{invariant, require};
