use std::collections::BTreeMap;

use junctor_gateway::route::ReadRule;

use super::demand::{Change, Demand, Demands};
use super::engine::{Engine, Event, From, Hops, Task};
use super::layout::{Candidate, Layout};
use super::node::{Node, Phase, RunOptions};
use super::request::{Step, Workload};
use crate::random::Random;

fn exponential(random: &mut Random, mean_ns: f64) -> u64 {
    let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    (-mean_ns * (1.0 - uniform).ln()) as u64
}

fn task(request: u32, service_ns: u64) -> Task {
    Task { request, step: 0, kind: 0, service_ns, hop_ns: 0 }
}

#[test]
fn one_server_with_random_arrivals_has_the_mean_wait_of_the_textbook() {
    let (arrival_ns, service_ns) = (1_000.0, 700.0);
    let (mut engine, mut random) = (Engine::new(1, Hops::default()), Random::new(1));
    let mut began = BTreeMap::new();
    let (mut next, mut ended, mut total_ns) = (0_u32, 0_u64, 0_u64);
    engine.delay(next, exponential(&mut random, arrival_ns));
    while ended < 400_000 {
        match engine.next_event().expect("arrivals go on") {
            Event::Arrived(request) => {
                began.insert(request, engine.now_ns());
                let service = exponential(&mut random, service_ns);
                engine.submit(From::Network, 0, task(request, service));
                next += 1;
                engine.delay(next, exponential(&mut random, arrival_ns));
            }
            Event::Done(thread, task) => {
                total_ns += engine.now_ns() - began.remove(&task.request).expect("it had come");
                ended += 1;
                engine.go_on(thread);
            }
            Event::Tick => {}
        }
    }
    // M/M/1: service / (1 - utilisation).
    let expected = service_ns / (1.0 - service_ns / arrival_ns);
    let mean = total_ns as f64 / ended as f64;
    assert!((mean / expected - 1.0).abs() < 0.05, "{mean} instead of {expected}");
    let busy = engine.busy_ns(0)[0] as f64 / engine.now_ns() as f64;
    assert!((busy - 0.7).abs() < 0.01, "{busy}");
}

/// Throughput of a closed network of single servers by mean value analysis (Reiser and Lavenberg, 1980), in
/// operations per nanosecond.
fn mean_value_analysis(demands_ns: &[f64], delay_ns: f64, clients: usize) -> f64 {
    let mut queues = vec![0.0; demands_ns.len()];
    let mut throughput = 0.0;
    for count in 1..=clients {
        let waits: Vec<f64> = demands_ns.iter().zip(&queues).map(|(demand, queue)| demand * (1.0 + queue)).collect();
        throughput = count as f64 / (delay_ns + waits.iter().sum::<f64>());
        queues = waits.iter().map(|wait| throughput * wait).collect();
    }
    throughput
}

#[test]
fn a_closed_network_has_the_throughput_of_mean_value_analysis() {
    let demands_ns = [400.0, 700.0, 550.0];
    for clients in [1, 3, 10] {
        let (mut engine, mut random) = (Engine::new(demands_ns.len(), Hops::default()), Random::new(2));
        (0..clients).for_each(|client| engine.delay(client, 0));
        let mut ended = 0_u64;
        while ended < 200_000 {
            match engine.next_event().expect("clients go on") {
                Event::Arrived(request) => {
                    let service_ns = exponential(&mut random, demands_ns[0]);
                    engine.submit(From::Network, 0, task(request, service_ns));
                }
                Event::Done(thread, done) => {
                    match demands_ns.get(thread + 1) {
                        Some(demand_ns) => {
                            let service_ns = exponential(&mut random, *demand_ns);
                            engine.submit(From::Thread(thread), thread + 1, task(done.request, service_ns));
                        }
                        None => {
                            ended += 1;
                            engine.delay(done.request, exponential(&mut random, 1_000.0));
                        }
                    }
                    engine.go_on(thread);
                }
                Event::Tick => {}
            }
        }
        let throughput = ended as f64 / engine.now_ns() as f64;
        let expected = mean_value_analysis(&demands_ns, 1_000.0, clients as usize);
        assert!((throughput / expected - 1.0).abs() < 0.02, "{clients} clients: {throughput} instead of {expected}");
    }
}

#[test]
fn a_hop_costs_both_threads_time_and_wakes_a_sleeper_first() {
    let hops = Hops { out_ns: 10, in_ns: 20, wake_ns: 100, wake_latency_ns: 1_000 };
    let mut engine = Engine::new(2, hops);
    engine.submit(From::Network, 0, task(1, 500));
    assert_eq!(engine.next_event(), Some(Event::Done(0, task(1, 500))));
    assert_eq!(engine.now_ns(), 1_500);
    engine.submit(From::Thread(0), 1, task(1, 300));
    engine.go_on(0);
    assert!(matches!(engine.next_event(), Some(Event::Done(1, _))));
    assert_eq!(engine.now_ns(), 1_500 + 1_000 + 20 + 300);
    engine.go_on(1);
    assert_eq!(engine.next_event(), None);
    let busy = |thread: usize| engine.busy_ns(thread).iter().sum::<u64>();
    assert_eq!((busy(0), busy(1)), (500 + 10 + 100, 300 + 20));
}

fn options(rule: ReadRule) -> RunOptions {
    RunOptions { rule, sample_interval_ns: 200_000, seed: 7 }
}

fn run(cpus: u32, workload: Workload, rule: ReadRule, clients: usize) -> (f64, Vec<f64>, u64, (usize, usize)) {
    let layout = Layout::new(&Candidate::automatic(cpus), cpus).expect("the automatic placement");
    let demands = Demands::measured();
    let mut node = Node::new(&layout, &demands, clients, 16, options(rule));
    node.begin_phase(Phase::even(workload, &demands, clients, 16));
    node.warm_up(2_000_000);
    let report = node.measure(3_000, 1_000_000_000);
    (report.per_s, report.busy, report.latencies.percentile(500), node.in_flight_and_inactive())
}

#[test]
fn equal_seeds_give_equal_runs_by_every_rule() {
    for rule in ReadRule::ALL {
        let once = run(16, Workload::Range, rule, 64);
        assert_eq!(once, run(16, Workload::Range, rule, 64), "{}", rule.name());
    }
}

#[test]
fn no_request_is_lost_or_invented() {
    for workload in Workload::ALL {
        let (per_s, busy, _, (under_way, resting)) = run(16, workload, ReadRule::Adaptive, 100);
        assert!(per_s > 0.0, "{}", workload.name());
        assert_eq!((under_way, resting), (100, 0));
        assert!(busy.iter().all(|part| *part < 1.05), "{busy:?}");
    }
}

#[test]
fn a_single_client_waits_only_for_its_own_steps() {
    let demands = Demands::measured();
    let steps = Workload::Point.steps(&demands);
    let own_ns: u64 = steps
        .iter()
        .map(|step| match step {
            Step::Receive(ns) | Step::Execute(ns) | Step::Coordinate(ns) | Step::Reply(ns) | Step::Send(ns) => *ns,
            Step::Read(parts) | Step::Write(parts) => parts.service_ns,
        })
        .sum();
    // Below 8 CPUs, one thread does all the work of a request. The latency is then the network, one wake-up,
    // and the steps.
    let (_, _, median_ns, _) = run(4, Workload::Point, ReadRule::Local, 1);
    let expected = (super::node::NETWORK_NS + demands.ns(Demand::WakeLatency) + own_ns) as f64;
    assert!((median_ns as f64 / expected - 1.0).abs() < 0.1, "{median_ns} instead of {expected}");
}

#[test]
fn idle_clients_begin_again_in_the_next_phase() {
    let layout = Layout::new(&Candidate::automatic(16), 16).expect("the automatic placement");
    let demands = Demands::measured();
    let mut node = Node::new(&layout, &demands, 50, 8, options(ReadRule::Owner));
    node.begin_phase(Phase::even(Workload::Point, &demands, 10, 8));
    node.warm_up(3_000_000);
    assert_eq!(node.in_flight_and_inactive(), (10, 40));
    node.begin_phase(Phase::even(Workload::Range, &demands, 50, 8));
    node.warm_up(3_000_000);
    assert_eq!(node.in_flight_and_inactive(), (50, 0));
}

#[test]
fn each_demand_changes_alone_and_with_all_others_in_both_directions() {
    let changes = Change::all();
    assert_eq!(changes.len(), 1 + 2 * (Demand::ALL.len() + 1));
    let demands = Demands::measured();
    for change in changes {
        let changed = demands.changed(change);
        for demand in Demand::ALL {
            let is_changed = change.per_cent != 100 && change.demand.is_none_or(|changed| changed == demand);
            assert_eq!(changed.ns(demand) != demands.ns(demand), is_changed, "{change}: {}", demand.name());
        }
    }
}

#[test]
fn a_layout_equals_that_of_the_real_code_for_the_table() {
    let layout = Layout::new(&Candidate::automatic(64), 64).expect("the automatic placement");
    let candidate = Candidate::automatic(64);
    use junctor_node::placement::Module;
    assert_eq!(layout.ldm.len() as u32, candidate.count(Module::Ldm));
    assert_eq!((layout.sql.clone(), layout.tc.clone()), (layout.recv.clone(), layout.recv.clone()));
    assert_eq!(layout.recv.len() as u32, candidate.count(Module::Recv));
    // Only threads of a partition's read group read it, and the group has at most 16.
    assert!(layout.readers.iter().all(|readers| !readers.is_empty() && readers.len() <= 16));
    let reading = Candidate { recv_reads: true, ..candidate };
    let reading = Layout::new(&reading, 64).expect("the automatic placement");
    assert!(layout.recv.iter().all(|thread| !layout.has_query[*thread] && reading.has_query[*thread]));
    let folded = Layout::new(&Candidate::automatic(4), 4).expect("the automatic placement");
    assert_eq!((folded.recv.clone(), folded.send.len()), (folded.ldm, 0));
}
