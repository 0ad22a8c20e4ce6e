//! Clusters of 2 to 64 data nodes: the load of the sequencer, the latency of commits, reads a second, and
//! where it breaks.
//!
//! In reading order: [`costs`], [`simulation`].

pub mod costs;
pub mod simulation;
#[cfg(test)]
mod tests;

use costs::Costs;
use simulation::{Load, Report, Setup, Simulation};

use crate::Outcome;
use crate::plot::{Labels, LineChart, Point, Scale, Series};
use crate::report::Table;

const NODES: [u8; 6] = [2, 4, 8, 16, 32, 64];
const REPLICAS: u8 = 2;
/// CPUs of a node, with that of main.
const CPUS: u32 = 16;
/// Clients at each node that keep its CPUs busy.
const CLIENTS_MAX: u32 = 256;
const WARM_UP_NS: u64 = 20_000_000;
const MEASURED_NS: u64 = 60_000_000;

/// A cluster with one client at each node, with as many as it can serve, and at half of that.
pub struct Study {
    /// Number of data nodes.
    pub nodes: u8,
    /// With one client at each node.
    pub light: Report,
    /// With more clients than it can serve at once.
    pub full: Report,
    /// With half of that throughput.
    pub half: Report,
}

/// Simulates all sizes.
pub fn simulate(costs: &Costs, is_quick: bool) -> Vec<Study> {
    let measured_ns = if is_quick { MEASURED_NS / 6 } else { MEASURED_NS };
    let study = |nodes: u8| {
        let run = |load| {
            let (replicas, cpus, warm_up_ns, seed) = (REPLICAS, CPUS, WARM_UP_NS, u64::from(nodes));
            let setup = Setup { nodes, replicas, cpus, load, warm_up_ns, measured_ns, seed };
            Simulation::run(setup, costs)
        };
        let (light, full) = (run(Load::Clients(1)), run(Load::Clients(CLIENTS_MAX)));
        let half = run(Load::PerSecond(full.per_s / 2.0));
        Study { nodes, light, full, half }
    };
    NODES.into_iter().map(study).collect()
}

/// Reads by key a second of a cluster that does nothing else, if clients connect to any node, and if each
/// read goes to a node that has the row.
pub fn reads_per_s(nodes: u8, costs: &Costs) -> [f64; 2] {
    let here = f64::from(REPLICAS) / f64::from(nodes);
    let each = costs.read as f64 + (1.0 - here) * costs.read_elsewhere as f64;
    let all = f64::from(nodes) * f64::from(CPUS) * 1e9;
    [all / each, all / costs.read as f64]
}

/// The tables, in Markdown. The second studies are those of [`Costs::with_helpers`].
pub fn tables([plain, helped]: &[Vec<Study>; 2]) -> String {
    let mut costs = Table::new(&["cost", "ns", "from"]);
    for measured in Costs::MEASURED.table() {
        costs.row(vec![measured.name.into(), measured.nanoseconds.to_string(), measured.source.into()]);
    }
    let [plain, helped] = [commits(plain), commits(helped)];
    let mut reads = Table::new(&["nodes", "reads/s, any node", "reads/s, a node with the row"]);
    for nodes in NODES {
        let cells = reads_per_s(nodes, &Costs::MEASURED).map(|per_s| format!("{:.1} million", per_s / 1e6));
        reads.row([nodes.to_string()].into_iter().chain(cells).collect());
    }
    format!(
        "# Figures of simulated clusters\n\nPrinted by `junctor-bench scale`: {CPUS} CPUs a node, {REPLICAS} \
         replicas.\n\n## Costs\n\n{costs}\n## Commits, one thread for all links of the sequencer\n\n{plain}\n\
         ## Commits, several threads share the links\n\n{helped}\n## Reads\n\n{reads}"
    )
}

/// The commits of clusters of all sizes.
fn commits(studies: &[Study]) -> Table {
    let columns = [
        "nodes",
        "one client a node: p50 us",
        "p99 us",
        "most commits/s",
        "main of the sequencer busy %",
        "other mains %",
        "other CPUs %",
        "decisions a message",
        "frames of main a commit",
        "half load: p50 us",
        "p99 us",
        "sequencer %",
    ];
    let mut commits = Table::new(&columns);
    for study in studies {
        let mut cells = vec![study.nodes.to_string()];
        let latency = |report: &Report, per_mille| format!("{:.0}", report.latencies.percentile_us(per_mille));
        let per_cent = |part: f64| format!("{:.0}", part * 100.0);
        cells.extend([latency(&study.light, 500), latency(&study.light, 990)]);
        cells.push(format!("{:.0}", study.full.per_s));
        cells.extend([study.full.sequencer_busy, study.full.main_busy, study.full.workers_busy].map(per_cent));
        cells.extend([format!("{:.1}", study.full.batch), format!("{:.2}", study.full.frames)]);
        cells.extend([latency(&study.half, 500), latency(&study.half, 990), per_cent(study.half.sequencer_busy)]);
        commits.row(cells);
    }
    commits
}

/// Latencies by the number of nodes.
///
/// # Errors
/// The plot cannot be laid out.
pub fn plot(studies: &[Study]) -> Outcome<String> {
    let series = |name: &str, of: &dyn Fn(&Study) -> f64| Series {
        name: name.into(),
        points: studies.iter().map(|study| Point::new(f64::from(study.nodes), of(study))).collect(),
    };
    let chart = LineChart {
        labels: Labels {
            title: format!("Latency of a commit by data nodes, {REPLICAS} replicas (simulated)"),
            x_label: "data nodes".into(),
            y_label: "microseconds".into(),
            ..Labels::default()
        },
        y_scale: Scale::Logarithmic,
        series: vec![
            series("one client a node, p50", &|study| study.light.latencies.percentile_us(500)),
            series("half load, p50", &|study| study.half.latencies.percentile_us(500)),
            series("half load, p99", &|study| study.half.latencies.percentile_us(990)),
        ],
        ..LineChart::default()
    };
    chart.svg()
}
