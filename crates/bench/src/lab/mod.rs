//! `junctor lab`: experiments with thread pipelines. It runs the same statements in turn against several
//! setups of threads and routing rules, and checks every reply.
//!
//! In reading order:
//! - [`setup`]: the setups; [`workload`]: the workloads, a table to extend; [`operation`]: their statements;
//!   [`data`]: the tables;
//! - [`client`]: a client; [`node`]: a node; [`thread_figures`], [`counter`], [`routing_figures`]: figures of
//!   its threads;
//! - [`calm`]: disturbance by other programs; [`record`]: one measurement; [`verdict`]: comparison of the
//!   setups; [`page`]: text tables; [`plots`]: charts;
//! - [`session`]: the whole run; [`code_size`]: the amount of code that threads execute, a separate command.

pub mod calm;
pub mod client;
pub mod code_size;
pub mod counter;
pub mod data;
pub mod node;
pub mod operation;
pub mod page;
pub mod plots;
pub mod record;
pub mod routing_figures;
pub mod session;
pub mod setup;
pub mod thread_figures;
pub mod verdict;
pub mod workload;

use std::path::PathBuf;

pub use session::run;

/// Measures setups of threads and routing rules against each other on this machine.
#[derive(Debug, clap::Args)]
pub struct LabOptions {
    /// Short form: every workload and setup within 10 minutes on 2 CPUs
    #[arg(long)]
    pub quick: bool,
    /// Write every measurement to this file, as a JSON array
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw charts as SVG files in this folder
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Workloads to run [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub workloads: Vec<String>,
    /// Setups to run [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub setups: Vec<String>,
    /// Seconds per measurement [default: 4; quick 1]; a workload with phases runs whole rounds of them
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Repetitions of each measurement [default: 7; quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: Option<u32>,
    /// Concurrent clients [default: 4 per CPU, at most 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub clients: Option<u32>,
    /// Number of rows of the table
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..=3_000_000))]
    pub rows: u64,
    /// Binary of the node [default: this program]
    #[arg(long, value_name = "FILE")]
    pub junctor: Option<PathBuf>,
    /// Print the workloads and setups, and exit
    #[arg(long)]
    pub list: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.05..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("from 0.05 to 3600".into()),
    }
}

/// Formats the list of all workloads and setups.
fn list_page() -> String {
    let mut page = String::from("workloads\n");
    for workload in workload::WORKLOADS {
        page += &format!("  {:<14} {}\n", workload.name, workload.meaning);
    }
    page += "setups\n";
    for setup in setup::setups(setup::cpu_count()) {
        let threads = setup.thread_config.as_deref().unwrap_or("automatic");
        page += &format!(
            "  {:<14} {}\n  {:14} {threads}; read_routing = {}\n",
            setup.name, setup.meaning, "", setup.routing
        );
    }
    page
}

/// Reports the disturbance by other programs.
fn disturbance_line(records: &[record::Record]) -> String {
    let disturbed = records.iter().filter(|record| record.others_cpu_percent > calm::DISTURBED_PERCENT).count();
    format!(
        "Other programs used more than {} per cent of the CPUs during {disturbed} of {} measurements.",
        calm::DISTURBED_PERCENT,
        records.len()
    )
}

/// Reports whether hardware counters were available.
fn hardware_line(records: &[record::Record]) -> &'static str {
    let mut threads = records.iter().flat_map(|record| &record.threads);
    match threads.any(|thread| thread.instructions_per_cycle.is_some()) {
        true => "Hardware counters of each thread are in the file of --json.",
        false => "IPC, frequency, misses of caches, of code addresses and of branches: not available on this machine.",
    }
}
