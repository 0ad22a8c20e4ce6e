//! `junctor bench`: runs what an `autobench.conf` describes with the real sysbench and Lua scripts of ours.
//!
//! In reading order:
//! - [`key`]: every key; [`entry`]: the lines of a file; [`matrix`]: the file of runs of DBT2;
//! - [`configuration`]: what a file says, checked; [`test`]: the tests of `SYSBENCH_TEST`; [`binding`]: CPUs;
//! - [`plan`]: what is run with which options; [`script`]: the scripts;
//! - [`target`]: the server; [`program`]: sysbench programs; [`result`]: `final_result.txt`;
//! - [`session`]: all of it, in order.

pub mod binding;
pub mod configuration;
pub mod entry;
pub mod key;
pub mod matrix;
pub mod plan;
pub mod program;
pub mod result;
pub mod script;
pub mod session;
pub mod target;
pub mod test;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use session::run;

/// Runs the benchmark that an autobench.conf describes.
#[derive(Debug, clap::Args)]
pub struct BenchOptions {
    /// The directory with autobench.conf; results are written there
    #[arg(long, value_name = "DIR", required_unless_present = "list_keys")]
    pub default_directory: Option<PathBuf>,
    /// So many sysbench programs instead of SYSBENCH_INSTANCES
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub sysbench_instances: Option<u32>,
    /// Start no server even where DATA_DIR_BASE is given; SERVER_HOST and SERVER_PORT are servers that run
    #[arg(long)]
    pub skip_start: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The server's binary [default: this program]
    #[arg(long, value_name = "FILE")]
    pub junctor: Option<PathBuf>,
    /// Print every key of autobench.conf: name, default, meaning
    #[arg(long)]
    pub list_keys: bool,
}
