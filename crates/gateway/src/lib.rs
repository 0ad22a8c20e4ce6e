//! The node's typed access to its own data. Sessions request operations from the [`Gateway`] of their sql
//! block, and alterations of tables from that of main. The gateway turns them into signals, and turns the
//! replies into [`Event`]s.
//!
//! In reading order:
//! - [`gateway`]: the operations of one block; [`operation`]: the record of an operation in progress;
//!   [`event`]: the answers;
//! - [`file`]: files that statements read and write;
//! - [`keys`]: keys, ranges and rows of a statement, distributed over partitions;
//! - [`transaction`]: a session's view of its transaction;
//! - [`route`]: decides where a read runs; no other module does;
//! - [`turn_context`]: the resources of a session while its block handles a signal;
//! - [`threads`]: the load figures and run-time settings of the node's threads.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod epoch;
pub mod event;
pub mod file;
pub mod gateway;
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
// TLS of client connections, for callers that do not see the kernel.
pub use junctor_kernel::transport::security::{Agreed, ClientSecurity};
