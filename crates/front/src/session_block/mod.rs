//! The sql block: sessions of every protocol. Crate `junctor-sql` executes their statements.
//!
//! - **Owns** the sessions of its connections, the session half of each protocol, and their thread group.
//! - **In**: *OpenSession*, *ExecuteCommand*, *ContinueCommand*, *CloseSession* from recv;
//!   *InterruptSession*, *TakeSession*, *ReturnSession* and *ReadStatus* from other sql blocks; changes of
//!   schema and settings; the replies of the data plane.
//! - **Out**: *CommandReply* to recv, and the signals that the gateway sends for the sessions.
//! - **Never** touches storage or sockets.

mod block;
mod state;

mod client_command;
mod multi_statement;
mod log_statement;
mod metadata_lock;
mod interrupt_session;
mod lend_session;
mod thread_group;
mod stopping;
mod timeout_sweep;
mod statistics_refresh;
mod ttl_purge;
mod read_status;
mod read_digests;
mod read_processes;
mod remote_snapshot;

pub use block::SqlBlock;
