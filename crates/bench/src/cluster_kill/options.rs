//! The options of `cluster-kill`.

use std::path::PathBuf;

/// Options of `cluster-kill`.
#[derive(Clone, Debug, clap::Args)]
pub struct ClusterKillOptions {
    /// Binary of the nodes [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    pub junctor: Option<PathBuf>,
    /// Instead of faults, stop each node in turn and start it with this binary of the next release; then go
    /// back in the same way
    #[arg(long, value_name = "FILE")]
    pub upgrade_to: Option<PathBuf>,
    /// Number of faults
    #[arg(long, default_value_t = 30)]
    pub kills: u32,
    /// The seed of the faults; the moments depend on the machine, too
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of data nodes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=8))]
    pub data_nodes: u8,
    /// Replicas of each partition
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=4))]
    pub replicas: u8,
    /// Number of SQL nodes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub sql_nodes: u8,
    /// Clients that transfer money
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub clients: u32,
    /// node_silence_max_ms of the nodes
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub silence_ms: u32,
    /// commit_durability of the nodes: disk or memory
    #[arg(long, default_value = "memory")]
    pub durability: String,
    /// Only these faults, such as "kill data" or "cut leader"; may be given several times
    #[arg(long, value_name = "FAULT")]
    pub only: Vec<String>,
    /// Keep the logs and files of the nodes
    #[arg(long)]
    pub keep: bool,
    /// Most milliseconds of the 99th percentile of the gap of service after a kill; 0 for no limit
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub gap_max_ms: u64,
}
