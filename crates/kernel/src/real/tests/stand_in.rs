//! Threads that do what they sent to others, with real threads, sockets and sleep.

use super::*;

/// Sends a few bytes and waits for them to come back, so often.
fn ping(address: SocketAddr, rounds: usize) {
    let mut stream = TcpStream::connect(address).unwrap();
    for round in 0..rounds {
        let sent = [round as u8; 24];
        stream.write_all(&sent).unwrap();
        let mut received = [0; 24];
        stream.read_exact(&mut received).unwrap();
        assert_eq!(received, sent);
    }
}

/// Turns of a thread that its load figures must tell of, before they are looked at.
const TURNS: u64 = 200;

/// Rounds of a client after which the figures are not waited for any more.
const ROUNDS_MAX: usize = 1_000_000;

/// Turns that others made for each thread while so many clients waited for answers one after the other, and each thread made some.
fn lent_turns(layout: &NodeLayout, clients: usize, limits: KernelLimits) -> Vec<u64> {
    let (node, _) = start(layout, ToyPlan::default(), limits);
    let (address, loads) = (node.local_addresses()[0].unwrap(), node.loads().clone());
    let totals = || (0..layout.threads.len() as u16).map(|thread| loads.thread(thread).unwrap().total);
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut rounds = 0;
                while rounds < ROUNDS_MAX && totals().any(|total| total.turns < TURNS) {
                    ping(address, 100);
                    rounds += 100;
                }
            });
        }
    });
    assert!(totals().all(|total| total.turns >= TURNS));
    let turns = totals().map(|total| total.lent_turns).collect();
    assert!(node.stop(), "the node came to rest");
    turns
}

#[test]
fn what_a_sleeping_thread_is_asked_is_done_by_who_asks() {
    let layout = NodeLayout::new(&[&[(Module::Recv, 0)], &[(Module::Tc, 0)]]);
    let turns = lent_turns(&layout, 1, KernelLimits::default());
    assert!(turns[1] > 0, "{turns:?}");
}

#[test]
fn a_thread_that_may_wait_for_disks_is_woken() {
    let layout = NodeLayout::new(&[&[(Module::Recv, 0)], &[(Module::Tc, 0), (Module::Io, 0)]]);
    let turns = lent_turns(&layout, 1, KernelLimits::default());
    assert_eq!(turns[1], 0);
}

#[test]
fn threads_that_stand_in_for_each_other_lose_nothing() {
    let layout = NodeLayout::new(&[
        &[(Module::Recv, 0), (Module::Ldm, 0)],
        &[(Module::Recv, 1), (Module::Ldm, 1)],
        &[(Module::Tc, 0), (Module::Ldm, 2)],
    ]);
    for ring_slots in [4, 0] {
        let limits = KernelLimits { ring_slots, ..KernelLimits::default() };
        let turns = lent_turns(&layout, 8, limits);
        assert!(turns.iter().sum::<u64>() > 0, "{turns:?}");
    }
}

#[test]
fn a_timer_that_is_started_by_a_lent_turn_is_not_slept_through() {
    // The blocks start their timers, each the next, in whichever thread makes the turn, and stop the node after so many.
    let layout = NodeLayout::new(&[&[(Module::Main, 0), (Module::Ldm, 0)], &[(Module::Ldm, 1)], &[(Module::Recv, 0)]]);
    let plan = ToyPlan { balls: 5, hops: 200, ticks: 20, stops: true, ..ToyPlan::default() };
    let (node, ended) = start(&layout, plan, KernelLimits::default());
    node.wait_for_stop_request();
    assert!(node.stop(), "the node came to rest");
    assert_eq!(total(&ended, |host| u64::from(host.balls_ended)), 10);
}
