//! A node: its configuration, the placement of blocks on threads, and the assembly of a thread's blocks. The
//! simulator assembles its nodes with the same code.
#![forbid(unsafe_code)]

pub mod setting;
pub mod cluster_config;
pub mod config_file;
pub mod machine;
pub mod placement;
pub mod role;
pub mod start;
pub mod http;
mod journal_writer;
mod data_folder;
mod server_files;
mod temporary_files;
mod cluster_start;
mod cluster_join;
pub mod embedded;
mod memory_transport;

pub use config_file::ConfigError;
pub use embedded::{Node, NodeBuilder};
pub use junctor_cluster::{BackupDesk, PartOrder};
pub use junctor_front::Protocol;
pub use junctor_signals::restart_progress;
/// The rights that each form of statement needs.
pub use junctor_sql::{Form, FormRights, Right, RightOn};
pub use memory_transport::MemoryTransport;
pub use role::{NodeHost, Shared};
pub use setting::NodeConfig;
pub use start::{Connector, RunningServer, StartError, StopError, start, start_and_report};

/// The Rust driver, and the stream types of [`RunningServer::connect`].
pub use junctor_client as client;
pub use junctor_kernel::{ConnectError, MemoryReceiver, MemorySender, MemoryStream, StreamClosed, TrySendError};

/// The times of [`restart_progress`].
pub use junctor_kernel::Time;
