//! Signals between blocks: one file for each conversation, and the enum of each block's inbox. Requests are
//! `VerbNoun`, their replies `VerbNounReply`.
#![forbid(unsafe_code)]

#[macro_use]
pub mod codec;
pub mod module;
pub mod inbox;

// Clients of the node.
pub mod client_command;
pub mod connection_limits;
pub mod interrupt_session;
pub mod lend_session;
pub mod journal;
pub mod log_table;

// The data plane.
pub mod key_filter;
pub mod program;
pub mod diagnostics;
pub mod input;
pub mod read_rows;
pub mod execute_statement;
pub mod end_transaction;
pub mod undo_statements;
pub mod write_rows;
pub mod commit_transaction;
pub mod take_number;
pub mod decide;
pub mod start_epoch;
pub mod append_records;
pub mod ask_node;
pub mod ask_outcome;
pub mod ask_snapshot;
pub mod replicate_rows;
pub mod copy_rows;
pub mod lock_wait;

// The control plane.
pub mod block_tables;
pub mod counter;
pub mod crash_point;
pub mod change_schema;
pub mod checkpoint;
pub mod cluster_status;
pub mod report_node;
pub mod install_membership;
pub mod start_log;
pub mod statements_ended;
pub mod recover_log;
pub mod request_lease;
pub mod reserve_auto_increment;
pub mod row_expressions;
pub mod read_status;
pub mod restart_progress;
pub mod set_globals;
pub mod share_schema;
pub mod use_user_lock;

pub use inbox::{LdmSignal, LogSignal, MainSignal, QuerySignal, RecvSignal, Signal, SqlSignal, TcSignal};
pub use module::Module;
