//! Role assembly: which blocks run on which threads, from a configuration. The simulator assembles nodes by the same code.
#![forbid(unsafe_code)]

pub mod setting;
pub mod config_file;
pub mod machine;
pub mod role;
pub mod start;

pub use config_file::ConfigError;
pub use role::{NodeHost, Shared};
pub use setting::NodeConfig;
pub use start::{RunningServer, StartError, start};
