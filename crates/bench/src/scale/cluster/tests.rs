use super::costs::Costs;
use super::simulation::{Load, Report, Setup, Simulation};
use super::{CPUS, REPLICAS, reads_per_s};

fn run(nodes: u8, load: Load, costs: &Costs) -> Report {
    run_for(10_000_000, nodes, load, costs)
}

fn run_for(measured_ns: u64, nodes: u8, load: Load, costs: &Costs) -> Report {
    let warm_up_ns = 5_000_000;
    Simulation::run(Setup { nodes, replicas: REPLICAS, cpus: CPUS, load, warm_up_ns, measured_ns, seed: 3 }, costs)
}

/// Nothing costs anything but the way between nodes.
fn only_network() -> Costs {
    Costs {
        statement: 0,
        write: 0,
        image: 0,
        commit: 0,
        signal: 0,
        frame: 0,
        turn: 0,
        request: 0,
        destination: 0,
        decision: 0,
        report: 0,
        ..Costs::MEASURED
    }
}

#[test]
fn a_commit_of_two_nodes_takes_the_hops_of_the_specification() {
    let costs = only_network();
    // Commits hardly ever meet, so no message waits until the node has answered others.
    let report = run_for(5_000_000_000, 2, Load::PerSecond(100.0), &costs);
    assert!(report.commits > 300, "{}", report.commits);
    let hops = |per_mille| (report.latencies.percentile(per_mille) + costs.network / 2) / costs.network;
    // Tc at the sequencer and the primary: image, prepared, decision, report.
    assert_eq!(hops(1), 4);
    // Both elsewhere: the write and its answer, the request for the number and the confirmation, too.
    assert_eq!(hops(900), 8);
}

#[test]
fn equal_seeds_give_equal_runs() {
    let figures = |report: Report| (report.commits, report.latencies.percentile(990), report.frames.to_bits());
    let twice = [0; 2].map(|_| figures(run(4, Load::Clients(8), &Costs::MEASURED)));
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn transactions_that_come_at_random_are_all_answered() {
    let report = run(8, Load::PerSecond(100_000.0), &Costs::MEASURED);
    assert!((report.per_s / 100_000.0 - 1.0).abs() < 0.1, "{}", report.per_s);
    assert!(report.workers_busy > 0.0 && report.workers_busy < 0.5, "{}", report.workers_busy);
}

#[test]
fn reads_at_a_node_with_the_row_grow_with_the_nodes() {
    let [any, best] = reads_per_s(2, &Costs::MEASURED);
    assert!((any - best).abs() < 1.0, "both nodes have all rows");
    let [any_of_64, best_of_64] = reads_per_s(64, &Costs::MEASURED);
    assert!((best_of_64 / best - 32.0).abs() < 0.01 && any_of_64 < best_of_64);
}
