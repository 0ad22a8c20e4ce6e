//! Runs the simulations and prints their results.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::{changing, cluster, measure, page, study};
use crate::failure::Explain;
use crate::{Failure, Outcome};

/// The numbers of CPUs that are simulated by default.
const CPUS: [u32; 4] = [4, 16, 64, 128];
const PHASE_NS: u64 = 1_000_000_000;
const QUICK_PHASE_NS: u64 = 200_000_000;

/// Options of `scale`.
#[derive(Clone, Debug, clap::Args)]
pub struct ScaleOptions {
    /// Folder for plots and tables
    #[arg(long, value_name = "DIR", default_value = "docs/scale")]
    output: PathBuf,
    /// Numbers of CPUs to simulate
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Short form: short search, one set of CPU costs, short phases
    #[arg(long)]
    quick: bool,
    /// Simulate clusters only
    #[arg(long, conflicts_with = "measure")]
    clusters: bool,
    /// Measure the CPU cost of each step of a request on this machine, and simulate nothing
    #[arg(long)]
    measure: bool,
    /// Binary to measure [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Seconds per measurement
    #[arg(long, value_name = "S", default_value_t = 5)]
    seconds: u64,
}

/// Simulates, prints tables in Markdown, and writes tables and plots into the folder.
///
/// # Errors
/// The folder cannot be written, or a measured server fails.
pub fn run(options: &ScaleOptions) -> Outcome<()> {
    if options.measure {
        return measure::measure(options.junctor.clone(), Duration::from_secs(options.seconds));
    }
    let file = |name: &str, text: &str| {
        fs::create_dir_all(&options.output).explain(options.output.display())?;
        let file = options.output.join(name);
        fs::write(&file, text).explain(file.display())
    };
    let costs = cluster::costs::Costs::MEASURED;
    let clusters = [costs, costs.with_helpers()].map(|costs| cluster::simulate(&costs, options.quick));
    let tables = cluster::tables(&clusters);
    file("clusters.md", &tables)?;
    file("clusters.svg", &cluster::plot(&clusters[0])?)?;
    println!("{tables}");
    if options.clusters {
        return Ok(());
    }
    let cpus = if options.cpus.is_empty() { CPUS.to_vec() } else { options.cpus.clone() };
    let phase_ns = if options.quick { QUICK_PHASE_NS } else { PHASE_NS };
    let (studies, setups) = thread::scope(|scope| {
        // The longest simulation starts first, so that it does not run alone at the end.
        let workers: Vec<_> =
            cpus.iter().rev().map(|cpus| scope.spawn(|| study::study(*cpus, options.quick))).collect();
        let setups = changing::simulate(phase_ns);
        let studies: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        (studies, setups)
    });
    let mut whole = Vec::new();
    for study in studies.into_iter().rev() {
        whole.push(study.map_err(|_| Failure::new("a simulation panicked"))??);
    }
    let page = page::page(&whole, &setups?)?;
    for (name, text) in &page.plots {
        file(name, text)?;
    }
    file("figures.md", &page.tables)?;
    println!("{}", page.tables);
    Ok(())
}
