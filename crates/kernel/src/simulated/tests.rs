use super::*;
use crate::address::NodeId;
use crate::context::Duration;
use crate::crash_point::{ArmedCrash, CrashPoint};
use crate::directory::NodeLayout;
use crate::limit::KernelLimits;
use crate::module::ModuleId;
use crate::toy::{AFTER_SEND, BEFORE_SEND, ECHO, PLAYER, STARTER};
use crate::toy::{ToyHost, ToyPlan, ToySignal};
use crate::transport::board::LinkNews;

type ToySimulation = Simulation<ToySignal, ToyHost>;

const NODE: NodeId = NodeId(1);

fn four_threads() -> NodeLayout {
    NodeLayout::new(&[
        &[(STARTER, 0), (PLAYER, 0)],
        &[(ModuleId::SOCKETS, 0), (PLAYER, 1)],
        &[(ECHO, 0), (PLAYER, 2)],
        &[(ModuleId::FILES, 0), (PLAYER, 3)],
    ])
}

fn start(options: SimulationOptions, layout: &NodeLayout, plan: ToyPlan) -> ToySimulation {
    let mut simulation = Simulation::new(options, move |assignment| ToyHost::new(assignment, plan));
    assert_eq!(simulation.add_node(layout).unwrap(), NODE);
    simulation
}

fn tiny_rings(seed: u64, ring_slots: u32) -> SimulationOptions {
    let mut options = SimulationOptions::new(seed);
    options.limits = KernelLimits { ring_slots, high_ring_slots: 4, ..options.limits };
    options
}

#[test]
fn many_requests_through_tiny_rings_complete() {
    for seed in 0..30 {
        let slots = if seed % 2 == 0 { 4 } else { 8 };
        let plan = ToyPlan { balls: 50, hops: 40, ..ToyPlan::default() };
        let mut simulation = start(tiny_rings(seed, slots), &four_threads(), plan);
        let all_ended = |simulation: &mut ToySimulation| simulation.host_mut(NODE, 0).unwrap().balls_ended == 200;
        assert!(simulation.run_until(Duration::from_seconds(60), all_ended), "seed {seed} stands still");
        let handled: u64 = (0..4).map(|thread| simulation.host_mut(NODE, thread).unwrap().balls_handled).sum();
        assert_eq!(handled, 200 * 40, "seed {seed} lost or doubled signals");
    }
}

#[test]
fn signals_of_one_block_to_another_stay_in_order_under_pressure() {
    for seed in 0..20 {
        let plan = ToyPlan { balls: 20, hops: 20, numbered: 60, ..ToyPlan::default() };
        let mut simulation = start(tiny_rings(seed, 4), &four_threads(), plan);
        simulation.run_for(Duration::from_seconds(1));
        for thread in 0..4 {
            let numbers = &simulation.host_mut(NODE, thread).unwrap().numbers;
            assert_eq!(numbers.values().copied().collect::<Vec<_>>(), [60; 4], "seed {seed}");
        }
    }
}

#[test]
fn no_signal_between_nodes_is_lost() {
    let plan = ToyPlan { balls: 10, hops: 30, nodes: 3, ..ToyPlan::default() };
    let mut simulation = start(tiny_rings(7, 8), &four_threads(), plan);
    for _ in 0..2 {
        simulation.add_node(&four_threads()).unwrap();
    }
    let ended = |simulation: &mut ToySimulation| {
        let nodes = (1..=3).map(NodeId);
        nodes.map(|node| simulation.host_mut(node, 0).unwrap().balls_ended).sum::<u32>() == 120
    };
    assert!(simulation.run_until(Duration::from_seconds(10), ended));
}

#[test]
fn equal_seeds_give_equal_digests_and_others_differ() {
    let run = |seed| {
        let plan = ToyPlan { balls: 20, hops: 20, ticks: 5, writes_file: true, ..ToyPlan::default() };
        let mut simulation = start(tiny_rings(seed, 8), &four_threads(), plan);
        let socket = simulation.connect(NODE, 0).unwrap();
        for line in 0..20 {
            simulation.write(socket, format!("line {line}\n").as_bytes());
            simulation.run_for(Duration::from_micros(300));
        }
        (simulation.digest(), simulation.signals(), simulation.read(socket))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn an_echo_returns_every_byte_in_order_however_reads_are_split() {
    for seed in 0..20 {
        let mut options = SimulationOptions::new(seed);
        options.sockets.short_read_one_in = 2;
        let mut simulation = start(options, &four_threads(), ToyPlan::default());
        let sockets: Vec<_> = (0..3).map(|_| simulation.connect(NODE, 0).unwrap()).collect();
        let sent: Vec<u8> = (0..10_000u32).map(|byte| (byte * 7) as u8).collect();
        for chunk in sent.chunks(900) {
            for &socket in &sockets {
                assert!(simulation.write(socket, chunk));
            }
            simulation.run_for(Duration::from_micros(50));
        }
        for &socket in &sockets {
            let mut echoed = Vec::new();
            simulation.run_until(Duration::from_seconds(1), |simulation| {
                echoed.extend(simulation.read(socket));
                echoed.len() >= sent.len()
            });
            assert_eq!(echoed, sent, "seed {seed}");
        }
    }
}

#[test]
fn a_client_that_does_not_read_blocks_its_sender_and_frees_it_by_reading() {
    let mut options = SimulationOptions::new(1);
    options.sockets.client_window_bytes = 1_000;
    options.limits.send_high_water_bytes = 4_000;
    options.limits.send_low_water_bytes = 2_000;
    let mut simulation = start(options, &four_threads(), ToyPlan::default());
    let socket = simulation.connect(NODE, 0).unwrap();
    simulation.write(socket, &[1; 8_000]);
    simulation.run_for(Duration::from_millis(10));
    let host = simulation.host_mut(NODE, 1).unwrap();
    assert_eq!((host.blocked, host.drained), (1, 0));
    let mut read = 0;
    simulation.run_until(Duration::from_seconds(1), |simulation| {
        read += simulation.read(socket).len();
        read == 8_000
    });
    let host = simulation.host_mut(NODE, 1).unwrap();
    assert_eq!((read, host.blocked, host.drained), (8_000, 1, 1));
}

#[test]
fn either_side_may_close_and_the_block_is_notified() {
    let mut simulation = start(SimulationOptions::new(1), &four_threads(), ToyPlan::default());
    let (first, second) = (simulation.connect(NODE, 0).unwrap(), simulation.connect(NODE, 0).unwrap());
    simulation.write(first, b"bye\nquit\n");
    simulation.close(second);
    simulation.run_for(Duration::from_millis(10));
    assert_eq!(simulation.read(first), b"bye\nquit\n");
    assert!(!simulation.is_open(first) && !simulation.is_open(second));
    let host = simulation.host_mut(NODE, 1).unwrap();
    assert_eq!((host.opened, host.closed), (2, 2));
    assert!(!simulation.write(first, b"more"));
}

#[test]
fn timers_fire_by_virtual_time_and_files_keep_their_bytes() {
    let plan = ToyPlan { writes_file: true, ..ToyPlan::default() };
    let mut simulation = start(SimulationOptions::new(3), &four_threads(), plan);
    simulation.run_for(Duration::from_millis(100));
    let host = simulation.host_mut(NODE, 0).unwrap();
    assert!((80..=100).contains(&host.ticks), "{} ticks in 100 ms", host.ticks);
    assert_eq!(host.file_read.as_deref(), Some(b"hello file".as_slice()));
    assert_eq!(simulation.file(NODE, "folder/toy.bin"), Some(b"hello file".as_slice()));
}

#[test]
fn a_crash_keeps_synced_bytes_and_closes_connections() {
    let plan = ToyPlan { writes_file: true, ..ToyPlan::default() };
    let mut simulation = start(SimulationOptions::new(4), &four_threads(), plan);
    let socket = simulation.connect(NODE, 0).unwrap();
    simulation.run_for(Duration::from_millis(100));
    simulation.crash(NODE, NodeEnd::Power);
    assert!(!simulation.is_open(socket) && simulation.connect(NODE, 0).is_none());
    assert_eq!(simulation.file(NODE, "folder/toy.bin"), Some(b"hello file".as_slice()));
    simulation.restart(NODE);
    let again = simulation.connect(NODE, 0).unwrap();
    simulation.write(again, b"new life");
    simulation.run_for(Duration::from_millis(10));
    assert_eq!((simulation.read(socket), simulation.read(again)), (Vec::new(), b"new life".to_vec()));
}

/// Echoes lines until the armed hit. Returns the number of lines that the client received.
fn echo_until_crash(seed: u64, point: CrashPoint) -> usize {
    let mut options = SimulationOptions::new(seed);
    // Without short reads and writes, each line hits the crash point once.
    (options.sockets.short_read_one_in, options.sockets.short_write_one_in) = (0, 0);
    let mut simulation = start(options, &four_threads(), ToyPlan::default());
    let socket = simulation.connect(NODE, 0).unwrap();
    simulation.arm_crash(NODE, Some(ArmedCrash { point, hit: 3 }), NodeEnd::Process);
    let mut echoed = Vec::new();
    for _ in 0..5 {
        simulation.write(socket, b"line\n");
        simulation.run_for(Duration::from_millis(10));
        echoed.extend(simulation.read(socket));
    }
    assert_eq!(simulation.take_crashes(), [(NODE, point)]);
    assert!(!simulation.is_up(NODE) && simulation.take_crashes().is_empty());
    assert_eq!(simulation.crash_point_hits(NODE)[&point], 3);
    simulation.restart(NODE);
    let again = simulation.connect(NODE, 0).unwrap();
    simulation.write(again, b"line\n");
    simulation.run_for(Duration::from_millis(10));
    assert_eq!(simulation.read(again), b"line\n", "the crash is disarmed after it has happened");
    assert_eq!(simulation.crash_point_hits(NODE)[&point], 4);
    assert_eq!(echoed.len() % 5, 0);
    echoed.len() / 5
}

#[test]
fn a_node_dies_at_the_armed_hit_and_only_earlier_requests_are_sent() {
    let lines = |point| (0..20).map(|seed| echo_until_crash(seed, point)).collect::<Vec<_>>();
    assert_eq!(lines(BEFORE_SEND), [2; 20]);
    let after = lines(AFTER_SEND);
    assert!(after.contains(&2) && after.contains(&3) && after.iter().all(|&lines| lines == 2 || lines == 3));
}

#[test]
fn a_single_thread_runs_every_block() {
    let layout =
        NodeLayout::new(&[&[(STARTER, 0), (ModuleId::SOCKETS, 0), (ECHO, 0), (PLAYER, 0), (ModuleId::FILES, 0)]]);
    let plan = ToyPlan { balls: 10, hops: 100, ticks: 1, writes_file: true, stops: true, ..ToyPlan::default() };
    let mut simulation = start(SimulationOptions::new(5), &layout, plan);
    let socket = simulation.connect(NODE, 0).unwrap();
    simulation.write(socket, b"echo");
    simulation.run_for(Duration::from_millis(50));
    assert_eq!(simulation.read(socket), b"echo");
    let host = simulation.host_mut(NODE, 0).unwrap();
    assert_eq!((host.balls_handled, host.balls_ended, host.stopping), (1_000, 10, true));
}

#[test]
fn long_work_makes_exactly_one_step_a_turn() {
    let layout =
        NodeLayout::new(&[&[(STARTER, 0), (ModuleId::SOCKETS, 0), (ECHO, 0), (PLAYER, 0), (ModuleId::FILES, 0)]]);
    let plan = ToyPlan { balls: 5, hops: 50, steps: 2_000, ..ToyPlan::default() };
    let mut simulation = start(SimulationOptions::new(6), &layout, plan);
    let socket = simulation.connect(NODE, 0).unwrap();
    simulation.write(socket, b"echo");
    simulation.run_for(Duration::from_millis(200));
    assert_eq!(simulation.read(socket), b"echo");
    let host = simulation.host_mut(NODE, 0).unwrap();
    assert_eq!((host.balls_ended, host.steps, host.steps_of_turn.1), (5, 2_000, 1));
}

#[test]
fn long_running_signals_are_handled_one_a_turn_whether_local_or_remote() {
    let layout =
        NodeLayout::new(&[&[(STARTER, 0), (ModuleId::SOCKETS, 0), (ECHO, 0), (ModuleId::FILES, 0)], &[(PLAYER, 0)]]);
    // At most 64 signals wait for a turn of their own; beyond that the oldest is handled without one.
    for (longs, most_of_own) in [(60, 1), (300, 300 - 64 + 1)] {
        // Meanwhile, work in steps continues, one step a turn.
        let plan = ToyPlan { longs, steps: 100, balls: 5, hops: 50, ..ToyPlan::default() };
        let mut simulation = start(SimulationOptions::new(7), &layout, plan);
        let socket = simulation.connect(NODE, 0).unwrap();
        simulation.write(socket, b"echo");
        simulation.run_for(Duration::from_millis(200));
        assert_eq!(simulation.read(socket), b"echo");
        let host = simulation.host_mut(NODE, 0).unwrap();
        assert_eq!((host.longs, host.longs_of_turn.1), (longs, most_of_own));
        assert_eq!((host.balls_ended, host.steps, host.steps_of_turn.1), (5, 100, 1));
        let other = simulation.host_mut(NODE, 1).unwrap();
        assert_eq!((other.longs, other.longs_of_turn.1), (longs, 1));
    }
}

#[test]
fn a_thread_that_sends_for_others_writes_what_they_queued() {
    let layout = NodeLayout::new(&[
        &[(STARTER, 0), (ModuleId::SOCKETS, 0), (ModuleId::FILES, 0)],
        &[(ModuleId::SEND, 0)],
        &[(ECHO, 0), (PLAYER, 0)],
    ]);
    let mut simulation = start(SimulationOptions::new(1), &layout, ToyPlan::default());
    let socket = simulation.connect(NODE, 0).unwrap();
    let sent = vec![7; 5_000];
    simulation.write(socket, &sent);
    let mut echoed = Vec::new();
    simulation.run_for(Duration::from_millis(10));
    echoed.extend(simulation.read(socket));
    assert_eq!(echoed, sent);
}

/// Nodes of four threads whose links carry signals as bytes.
fn linked(seed: u64, nodes: u8, plan: ToyPlan) -> ToySimulation {
    let mut simulation =
        Simulation::new(SimulationOptions::new(seed), move |assignment| ToyHost::new(assignment, plan));
    simulation.link_nodes(NetworkOptions { channels: 2, nodes, watcher: (PLAYER, 0) });
    let layout = NodeLayout::new(&[
        &[(STARTER, 0), (PLAYER, 0)],
        &[(ModuleId::SOCKETS, 0), (PLAYER, 1)],
        &[(ModuleId::SOCKETS, 1), (PLAYER, 2)],
    ]);
    for _ in 0..nodes {
        simulation.add_node(&layout).unwrap();
    }
    simulation
}

fn count(simulation: &mut ToySimulation, node: u8, of_thread: impl Fn(&ToyHost) -> u64) -> u64 {
    (0..3).filter_map(|thread| simulation.host_mut(NodeId(node), thread).map(|host| of_thread(host))).sum()
}

fn has_news(simulation: &mut ToySimulation, node: u8, wanted: impl Fn(&LinkNews) -> bool) -> bool {
    count(simulation, node, |host| host.news.iter().filter(|news| wanted(news)).count() as u64) > 0
}

#[test]
fn signals_between_nodes_survive_resets_and_damage() {
    for seed in 0..12 {
        // Balls go back to where they came from: a link to a third node may not be up yet.
        let plan = ToyPlan { returns: true, linked_balls: 5, linked_numbers: 200, hops: 30, ..ToyPlan::default() };
        let mut simulation = linked(seed, 3, plan);
        simulation.set_network_faults(NetworkFaults { reset_one_in: 60, damage_one_in: 40 });
        let is_done = |simulation: &mut ToySimulation| {
            let balls: u64 = (1..=3).map(|node| count(simulation, node, |host| u64::from(host.balls_ended))).sum();
            let numbers = |host: &ToyHost| host.numbers.values().map(|&number| u64::from(number)).sum();
            // Each node gets the numbers and balls of two others on three blocks.
            balls == 3 * 2 * 3 * 5 && (1..=3).all(|node| count(simulation, node, numbers) == 2 * 3 * 200)
        };
        assert!(simulation.run_until(Duration::from_seconds(120), is_done), "seed {seed}: signals are lost or stuck");
        for node in 1..=3 {
            assert!(!has_news(&mut simulation, node, |news| matches!(news, LinkNews::Dead { .. })), "seed {seed}");
        }
    }
}

#[test]
fn a_cut_is_suspected_and_healed_without_a_loss() {
    let plan = ToyPlan { nodes: 2, linked_balls: 5, hops: 1_500, ..ToyPlan::default() };
    for seed in 0..3 {
        let mut simulation = linked(seed, 2, plan);
        let is_up = |simulation: &mut ToySimulation| {
            (1..=2).all(|node| has_news(simulation, node, |news| matches!(news, LinkNews::Up { .. })))
        };
        assert!(simulation.run_until(Duration::from_seconds(5), is_up));
        assert!(!has_news(&mut simulation, 2, |news| matches!(news, LinkNews::Suspected { .. })));
        simulation.cut(NodeId(1), NodeId(2));
        simulation.run_for(Duration::from_millis(50));
        assert!(has_news(&mut simulation, 2, |news| matches!(news, LinkNews::Suspected { .. })), "seed {seed}");
        assert!(has_news(&mut simulation, 2, |news| matches!(news, LinkNews::Unreachable { .. })), "seed {seed}");
        assert!(!has_news(&mut simulation, 1, |news| matches!(news, LinkNews::Suspected { .. })), "one way is open");
        // Longer than the time after which a silent connection is closed.
        simulation.run_for(Duration::from_millis(1_500));
        simulation.heal(NodeId(1), NodeId(2));
        let is_heard =
            |simulation: &mut ToySimulation| has_news(simulation, 2, |news| matches!(news, LinkNews::Heard { .. }));
        assert!(simulation.run_until(Duration::from_seconds(5), is_heard), "seed {seed}");
        let ended = |simulation: &mut ToySimulation| {
            (1..=2).map(|node| count(simulation, node, |host| u64::from(host.balls_ended))).sum::<u64>() == 2 * 3 * 5
        };
        assert!(simulation.run_until(Duration::from_seconds(600), ended), "seed {seed}: a ball is lost");
    }
}

#[test]
fn the_end_of_a_process_is_noticed_at_once_and_that_of_a_machine_by_silence() {
    for (seed, end) in [(1, NodeEnd::Process), (2, NodeEnd::Power)] {
        let mut simulation = linked(seed, 2, ToyPlan { nodes: 2, linked_numbers: 10, ..ToyPlan::default() });
        let numbers = |host: &ToyHost| host.numbers.values().map(|&number| u64::from(number)).sum();
        let is_done = |simulation: &mut ToySimulation| (1..=2).all(|node| count(simulation, node, numbers) == 30);
        assert!(simulation.run_until(Duration::from_seconds(5), is_done));
        simulation.crash(NodeId(2), end);
        simulation.run_for(Duration::from_millis(5));
        let is_dead = |news: &LinkNews| matches!(news, LinkNews::Dead { incarnation: 1, .. });
        assert_eq!(has_news(&mut simulation, 1, is_dead), end == NodeEnd::Process);
        simulation.run_for(Duration::from_millis(40));
        let is_suspected = |news: &LinkNews| matches!(news, LinkNews::Suspected { .. });
        assert_eq!(has_news(&mut simulation, 1, is_suspected), end == NodeEnd::Power);
        let is_unreachable = |news: &LinkNews| matches!(news, LinkNews::Unreachable { .. });
        assert_eq!(has_news(&mut simulation, 1, is_unreachable), end == NodeEnd::Power);
        simulation.restart(NodeId(2));
        let is_back = |simulation: &mut ToySimulation| {
            has_news(simulation, 1, is_dead)
                && has_news(simulation, 1, |news| *news == LinkNews::Up { node: NodeId(2), incarnation: 2, version: 1 })
                && count(simulation, 2, numbers) == 30
        };
        assert!(simulation.run_until(Duration::from_seconds(10), is_back), "{end:?}");
    }
}

#[test]
fn linked_simulations_repeat() {
    let run = |seed| {
        let plan = ToyPlan { nodes: 2, linked_balls: 5, hops: 200, ..ToyPlan::default() };
        let mut simulation = linked(seed, 2, plan);
        simulation.set_network_faults(NetworkFaults { reset_one_in: 50, damage_one_in: 50 });
        simulation.run_for(Duration::from_millis(300));
        (simulation.digest(), simulation.signals())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}
