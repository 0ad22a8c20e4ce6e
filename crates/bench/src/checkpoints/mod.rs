//! `checkpoints`: the throughput of durable writers while the node writes a checkpoint, against that without,
//! and the speed of checkpoints and backups, against that of the disk and of the compression.
//!
//! In reading order: [`rounds`] (what the node says of its checkpoints), [`writers`] (throughput of writers),
//! [`speed`] (speed of checkpoints and backups), [`disk`] (speed of the disk).

mod disk;
mod rounds;
mod speed;
mod writers;

use std::path::PathBuf;

use crate::process::JunctorOptions;
use crate::report::print_verdicts;
use crate::{Failure, Outcome};

/// Options of `checkpoints`. The data directories are in the folder for temporary files, TMPDIR.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckpointsOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Number of rows of the table
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    rows: u64,
    /// Number of clients that write
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Measured seconds of a window
    #[arg(long, value_name = "S", default_value_t = 4)]
    seconds: u64,
    /// Windows of each node and operation; the nodes alternate
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=100))]
    windows: u32,
    /// Measurements of each speed; disk, checkpoint, compression and backup alternate
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100))]
    rounds: u32,
    /// Lines of the node's configuration file, such as "MinDiskWriteSpeed = '20M'"
    #[arg(long, value_name = "LINE")]
    setting: Vec<String>,
}

impl CheckpointsOptions {
    fn junctor(&self, settings: &[&str]) -> JunctorOptions {
        let junctor = JunctorOptions {
            binary: self.junctor.clone(),
            is_durable: true,
            settings: self.setting.clone(),
            ready_time_max_s: 600,
            ..JunctorOptions::default()
        };
        junctor.with_arguments(&["--total-memory", "4G"]).with_settings(settings)
    }
}

/// Measures both, and prints tables in Markdown.
///
/// # Errors
/// A missed target, or a server fails.
pub fn run(options: &CheckpointsOptions) -> Outcome<()> {
    let mut verdicts = Vec::new();
    if options.windows > 0 {
        verdicts.extend(writers::run(options)?);
    }
    if options.rounds > 0 {
        verdicts.extend(speed::run(options)?);
    }
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        missed => Err(Failure::new(format!("{missed} targets are missed"))),
    }
}
