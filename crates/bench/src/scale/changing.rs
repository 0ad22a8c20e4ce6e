//! A workload on 16 CPUs that changes its phase every second. No static rule is the best one in all phases.

use junctor_gateway::route::ReadRule;
use junctor_node::placement::Module;

use super::demand::Demands;
use super::layout::{Candidate, Layout};
use super::node::{Node, Phase, RunOptions};
use super::request::{Workload, range_steps};
use crate::Outcome;

/// Number of CPUs of the simulated machine.
pub const CPUS: u32 = 16;
const TABLES: usize = 40;
const CLIENTS: usize = 256;
/// Interval of load samples, as in a node. Every second sample also renews the prices that routing puts on
/// the threads.
const SAMPLE_INTERVAL_NS: u64 = 50_000_000;
/// Width of a point in a plot.
pub const SLICE_NS: u64 = 50_000_000;
const LONG_RANGE_ROWS: u64 = 4_000;

/// The results of one setup over all phases.
pub struct Setup {
    /// Name of the placement.
    pub placement: &'static str,
    /// The rule that chooses the thread of a read.
    pub rule: ReadRule,
    /// Operations per second of each phase.
    pub per_s: Vec<f64>,
    /// Operations per second of each slice.
    pub slices: Vec<f64>,
}

impl Setup {
    /// The geometric mean, over the phases, of the throughput relative to `best`.
    pub fn score(&self, best: &[f64]) -> f64 {
        let logarithms: f64 = self.per_s.iter().zip(best).map(|(per_s, best)| (per_s / best).max(1e-9).ln()).sum();
        (logarithms / best.len() as f64).exp()
    }
}

/// The phases.
pub const PHASES: [&str; 5] = [
    "2 clients, point selects",
    "256 clients, point selects",
    "4 clients, ranges of 4,000 rows",
    "256 clients, ranges of 100 rows of one partition",
    "64 clients on 4 recv threads, ranges of 100 rows",
];

fn phases(demands: &Demands) -> Vec<Phase> {
    let range = Phase::even(Workload::Range, demands, CLIENTS, TABLES);
    let point = Phase::even(Workload::Point, demands, CLIENTS, TABLES);
    vec![
        Phase { clients: 2, ..point.clone() },
        point,
        Phase { steps: range_steps(demands, LONG_RANGE_ROWS).into(), clients: 4, ..range.clone() },
        Phase { tables: 1, hot_partition: true, ..range.clone() },
        Phase { clients: 64, recv_per_mille: 250, ..range },
    ]
}

/// The placements: recv threads that do everything; the pipeline of the automatic placement; and that
/// pipeline with query blocks in the recv threads.
fn placements() -> [(&'static str, Candidate); 3] {
    let receive = Candidate::of_counts("receive", |module| if module == Module::Recv { CPUS } else { 0 });
    let automatic = Candidate::automatic(CPUS);
    let reading = Candidate { recv_reads: true, ..automatic.clone() };
    [("receive", receive), ("automatic", automatic), ("automatic, if recv could read", reading)]
}

/// Runs every rule in every placement. Each phase lasts `phase_ns` nanoseconds.
///
/// # Errors
/// The node's placement code refuses a placement.
pub fn simulate(phase_ns: u64) -> Outcome<Vec<Setup>> {
    let demands = Demands::measured();
    let mut setups = Vec::new();
    for (placement, candidate) in placements() {
        let layout = Layout::new(&candidate, CPUS)?;
        for rule in ReadRule::ALL {
            let options = RunOptions { rule, sample_interval_ns: SAMPLE_INTERVAL_NS, seed: 3 };
            let mut node = Node::new(&layout, &demands, CLIENTS, TABLES, options);
            let mut setup = Setup { placement, rule, per_s: Vec::new(), slices: Vec::new() };
            for phase in phases(&demands) {
                node.begin_phase(phase);
                let count = (phase_ns / SLICE_NS).max(1);
                let slices: Vec<f64> = (0..count).map(|_| node.measure(u64::MAX, SLICE_NS).per_s).collect();
                setup.per_s.push(slices.iter().sum::<f64>() / count as f64);
                setup.slices.extend(slices);
            }
            setups.push(setup);
        }
    }
    Ok(setups)
}

/// The highest throughput of each phase among the static rules of a placement.
pub fn best_static(setups: &[Setup], placement: &str) -> Vec<f64> {
    let of_phase = |phase: usize| {
        let fixed = setups.iter().filter(|setup| setup.placement == placement && setup.rule != ReadRule::Adaptive);
        fixed.map(|setup| setup.per_s[phase]).fold(0.0, f64::max)
    };
    (0..PHASES.len()).map(of_phase).collect()
}
