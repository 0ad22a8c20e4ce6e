//! `junctor bench`: runs the benchmark of an `autobench.conf` with the real sysbench and our own Lua scripts.
//!
//! In reading order:
//! - [`key`]: every key; [`entry`]: the lines of a file; [`matrix`]: the file of runs of DBT2;
//! - [`configuration`]: the settings of a file; [`test`]: the tests of `SYSBENCH_TEST`; [`binding`]: CPUs;
//! - [`plan`]: the runs with their options; [`script`]: the scripts;
//! - [`target`]: the server; [`program`]: sysbench programs; [`result`]: `final_result.txt`;
//! - [`session`]: the whole run.

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

/// Runs the benchmark of an autobench.conf.
#[derive(Debug, clap::Args)]
pub struct BenchOptions {
    /// Directory with autobench.conf; results are written there
    #[arg(long, value_name = "DIR", required_unless_present = "list_keys")]
    pub default_directory: Option<PathBuf>,
    /// Number of sysbench processes; overrides SYSBENCH_INSTANCES
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub sysbench_instances: Option<u32>,
    /// Use running servers at SERVER_HOST and SERVER_PORT, even if DATA_DIR_BASE is set
    #[arg(long)]
    pub skip_start: bool,
    /// Print the plan without running it
    #[arg(long)]
    pub dry_run: bool,
    /// Binary of the server [default: this program]
    #[arg(long, value_name = "FILE")]
    pub junctor: Option<PathBuf>,
    /// Print every key of autobench.conf with its default and meaning
    #[arg(long)]
    pub list_keys: bool,
}
