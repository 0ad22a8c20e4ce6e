use std::sync::Arc;

use junctor_kernel::scheduler::load::ThreadState;
use junctor_kernel::{Address, Directory, LoadBoard, NodeId, NodeLayout, ThreadLoad, Time, Usage};
use junctor_model::id::{ColumnNumber, IndexId, TableId};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, TableDefinition, TableLayout};
use junctor_model::types::DataType;
use junctor_signals::Module;
use junctor_signals::program::{Access, Output, ReadProgram};

use super::adaptive::{Candidate, Controller, Decision, Load, Measurement, ReadLocation, RemoteCandidates};
use super::choice::{Route, RoutedRead};
use super::estimate::Mean;
use super::rule::ReadRule;
use super::weighted::{ThreadBusy, WEIGHT_MAX, WeightedRule, Weights};

const KIND: u8 = 3;
const OWN: u16 = 0;
const OTHER: u16 = 1;

fn candidate(thread: u16) -> Candidate {
    Candidate { thread, queue_length: 0, state: ThreadState::Executing }
}

fn both() -> RemoteCandidates {
    RemoteCandidates { owner: Some(candidate(OTHER)), query: None }
}

/// A simulated node with two threads: how long a read takes on each, and how late an answer arrives.
#[derive(Clone, Copy)]
struct World {
    here_ns: u64,
    away_ns: u64,
    latency_ns: u64,
    busy_per_mille: [u32; 2],
}

/// Makes this many decisions, each after the answer to the previous one, and reports the requested
/// measurements to the controller. Returns the share of reads that stayed on the own thread, in thousandths.
fn run(controller: &mut Controller, world: World, decisions: u64, from: u64) -> u64 {
    let mut stayed = 0;
    for turn in from..from + decisions {
        if turn % 100 == 0 {
            for (thread, busy) in [OWN, OTHER].into_iter().zip(world.busy_per_mille) {
                controller.set_load(thread, &Load { busy_per_mille: busy, signal_ns: 500 }, 100_000_000, 16);
            }
        }
        let decision = controller.choose(KIND, 1, true, both);
        controller.release(decision.booked_cost);
        let is_here = decision.location == ReadLocation::Here;
        stayed += u64::from(is_here);
        if decision.is_sampled {
            let service_ns = if is_here { world.here_ns } else { world.away_ns };
            let total_ns = if is_here { service_ns } else { service_ns + world.latency_ns };
            let away = (!is_here).then_some(OTHER);
            controller.observe(&Measurement {
                kind: KIND,
                units: 1,
                away,
                state: ThreadState::Executing,
                service_ns,
                waiting_ns: 0,
                total_ns,
            });
        }
    }
    stayed * 1000 / decisions
}

const EQUAL: World = World { here_ns: 1_000, away_ns: 1_000, latency_ns: 5_000, busy_per_mille: [300, 300] };

#[test]
fn a_read_stays_local_if_handing_it_over_takes_longer() {
    let mut controller = Controller::new(OWN, 2);
    assert!(run(&mut controller, EQUAL, 10_000, 0) > 980);
    let figures = controller.kind(KIND);
    assert_eq!(figures.chosen.iter().sum::<u64>(), 10_000);
    assert!(figures.explored > 0 && figures.explored < 40, "{figures:?}");
}

#[test]
fn a_saturated_thread_hands_over_to_an_idle_one() {
    let mut controller = Controller::new(OWN, 2);
    let world = World { here_ns: 5_000, away_ns: 5_000, busy_per_mille: [990, 100], ..EQUAL };
    assert!(run(&mut controller, world, 10_000, 0) < 30);
}

#[test]
fn equally_busy_threads_keep_their_reads_unless_another_is_faster_by_more_than_a_hand_over() {
    let saturated = World { busy_per_mille: [990, 990], ..EQUAL };
    let mut controller = Controller::new(OWN, 2);
    assert!(run(&mut controller, saturated, 10_000, 0) > 950);
    // The other thread has the code in its caches: saving 30 per cent of a long read is worth more than two
    // signals.
    let mut controller = Controller::new(OWN, 2);
    let faster = World { here_ns: 40_000, away_ns: 28_000, ..saturated };
    assert!(run(&mut controller, faster, 10_000, 0) < 50);
    // For a short read, saving a fifth is worth less than two signals.
    let mut controller = Controller::new(OWN, 2);
    let short = World { here_ns: 500, away_ns: 400, ..saturated };
    assert!(run(&mut controller, short, 10_000, 0) > 950);
}

#[test]
fn the_choice_follows_the_load_within_two_refreshes() {
    let mut controller = Controller::new(OWN, 2);
    run(&mut controller, EQUAL, 10_000, 0);
    let overloaded = World { here_ns: 5_000, away_ns: 5_000, busy_per_mille: [990, 50], ..EQUAL };
    run(&mut controller, overloaded, 400, 10_000);
    assert!(run(&mut controller, overloaded, 1_000, 10_400) < 50);
    run(&mut controller, EQUAL, 400, 11_400);
    assert!(run(&mut controller, EQUAL, 1_000, 11_800) > 950);
}

#[test]
fn an_old_estimate_is_measured_again() {
    // At first the other thread seems slow. Then it becomes fast, which only trying can show.
    let mut controller = Controller::new(OWN, 2);
    let slow = World { here_ns: 20_000, away_ns: 25_000, latency_ns: 1_000, busy_per_mille: [500, 500] };
    assert!(run(&mut controller, slow, 5_000, 0) > 900);
    let fast = World { away_ns: 2_000, ..slow };
    run(&mut controller, fast, 5_000, 5_000);
    assert!(run(&mut controller, fast, 1_000, 10_000) < 100);
}

#[test]
fn the_parts_of_a_long_read_are_spread_over_idle_threads() {
    let mut controller = Controller::new(OWN, 2);
    let long = World { here_ns: 100_000, away_ns: 100_000, latency_ns: 20_000, busy_per_mille: [100, 100] };
    run(&mut controller, long, 10_000, 0);
    let locations: Vec<ReadLocation> = (0..4).map(|_| controller.choose(KIND, 1, true, both).location).collect();
    assert_eq!(locations.iter().filter(|location| **location == ReadLocation::Here).count(), 2, "{locations:?}");
    // Short reads are not spread.
    let mut controller = Controller::new(OWN, 2);
    run(&mut controller, World { here_ns: 1_000, away_ns: 1_000, ..long }, 10_000, 0);
    let locations: Vec<ReadLocation> = (0..4).map(|_| controller.choose(KIND, 1, true, both).location).collect();
    assert!(locations.iter().all(|location| *location == ReadLocation::Here), "{locations:?}");
}

#[test]
fn long_reads_go_to_the_thread_with_the_least_unanswered_work() {
    let mut controller = Controller::new(OWN, 2);
    let long = World { here_ns: 200_000, away_ns: 200_000, latency_ns: 20_000, busy_per_mille: [500, 500] };
    run(&mut controller, long, 10_000, 0);
    let mut outstanding: Vec<_> = (0..8).map(|_| controller.choose(KIND, 1, true, both)).collect();
    let count_here = |all: &[Decision]| all.iter().filter(|one| one.location == ReadLocation::Here).count();
    assert!((4..=5).contains(&count_here(&outstanding)), "{outstanding:?}");
    // Every answer makes room for the next read at its location, in whatever order answers arrive.
    for answered in [0, 3, 3, 5, 1, 1, 6] {
        let answered = outstanding.remove(answered);
        controller.release(answered.booked_cost);
        outstanding.push(controller.choose(KIND, 1, true, both));
        assert!((4..=5).contains(&count_here(&outstanding)), "{outstanding:?}");
    }
    outstanding.iter().for_each(|one| controller.release(one.booked_cost));
    assert_eq!([OWN, OTHER].map(|thread| controller.under_way_ns(thread)), [0, 0]);
}

#[test]
fn short_reads_avoid_a_thread_with_long_local_reads() {
    let (short, long) = (KIND, KIND + 1);
    let mut controller = Controller::new(OWN, 2);
    let keys = World { here_ns: 1_000, away_ns: 1_000, latency_ns: 5_000, busy_per_mille: [500, 500] };
    run(&mut controller, keys, 10_000, 0);
    for _ in 0..100 {
        let (service_ns, total_ns, state) = (300_000, 300_000, ThreadState::Executing);
        let away = None;
        controller.observe(&Measurement { kind: long, units: 1, away, state, service_ns, waiting_ns: 0, total_ns });
    }
    let scans: Vec<_> = (0..8).map(|_| controller.choose(long, 1, true, RemoteCandidates::default)).collect();
    assert!(controller.under_way_ns(OWN) > 2_000_000);
    let mut stayed = 0;
    for _ in 0..1_000 {
        let decision = controller.choose(short, 1, true, both);
        stayed += u32::from(decision.location == ReadLocation::Here);
        controller.release(decision.booked_cost);
    }
    assert!(stayed > 980, "{stayed}");
    scans.iter().for_each(|scan| controller.release(scan.booked_cost));
    assert_eq!(controller.under_way_ns(OWN), 0);
}

#[test]
fn time_behind_earlier_requests_does_not_count_as_latency() {
    let long = World { here_ns: 200_000, away_ns: 200_000, latency_ns: 20_000, busy_per_mille: [500, 500] };
    // The time may include a wait behind earlier work. That makes a hand-over neither expensive nor free.
    for (waiting_ns, total_ns, goes) in
        [(200_000, 420_000, true), (2_000_000, 2_220_000, true), (900_000, 220_000, false)]
    {
        let mut controller = Controller::new(OWN, 2);
        run(&mut controller, World { latency_ns: if goes { 20_000 } else { 400_000 }, ..long }, 10_000, 0);
        for _ in 0..100 {
            let (service_ns, away, state) = (200_000, Some(OTHER), ThreadState::Executing);
            controller.observe(&Measurement { kind: KIND, units: 1, away, state, service_ns, waiting_ns, total_ns });
        }
        let locations: Vec<ReadLocation> = (0..2).map(|_| controller.choose(KIND, 1, true, both).location).collect();
        assert_eq!(locations.contains(&ReadLocation::Owner), goes, "{waiting_ns} {locations:?}");
    }
}

#[test]
fn a_thread_that_sleeps_or_has_a_queue_is_avoided() {
    let mut controller = Controller::new(OWN, 3);
    let world = World { here_ns: 50_000, away_ns: 50_000, latency_ns: 2_000, busy_per_mille: [960, 200] };
    run(&mut controller, world, 10_000, 0);
    let query = Candidate { thread: 2, queue_length: 0, state: ThreadState::Executing };
    let owner = Candidate { queue_length: 1_000, ..candidate(OTHER) };
    let waiting = RemoteCandidates { owner: Some(owner), query: Some(query) };
    assert_eq!(controller.choose(KIND, 1, true, || waiting).location, ReadLocation::Query);
    let sleeping =
        RemoteCandidates { owner: Some(Candidate { state: ThreadState::Sleeping, ..candidate(OTHER) }), query: None };
    let idle = RemoteCandidates { query: Some(query), ..sleeping };
    assert_eq!(controller.choose(KIND, 1, true, || idle).location, ReadLocation::Query);
}

#[test]
fn a_choice_exists_whatever_the_states_of_threads() {
    let states = [
        ThreadState::Executing,
        ThreadState::Sending,
        ThreadState::Spinning,
        ThreadState::Sleeping,
        ThreadState::BufferFull,
    ];
    assert_eq!(states.len(), ThreadState::COUNT);
    let mut controller = Controller::new(OWN, 2);
    for state in states {
        let (service_ns, waiting_ns, total_ns) = (50_000, 0, 60_000);
        let away = Some(OTHER);
        controller.observe(&Measurement { kind: KIND, units: 1, away, state, service_ns, waiting_ns, total_ns });
        let away = || RemoteCandidates { owner: Some(Candidate { state, ..candidate(OTHER) }), query: None };
        assert_eq!(controller.choose(KIND, 100, false, away).location, ReadLocation::Owner);
    }
}

#[test]
fn a_high_first_sample_is_soon_forgotten() {
    let mut mean = Mean::guessed(1_000);
    [10_000_000, 12_000, 11_000].into_iter().for_each(|sample| mean.add(sample));
    assert_eq!(mean.value(), 11_000);
}

#[test]
fn the_same_measurements_give_the_same_decisions() {
    let run = || {
        let mut controller = Controller::new(OWN, 2);
        let stayed: Vec<u64> = (0..20).map(|round| run(&mut controller, EQUAL, 100, round * 100)).collect();
        (stayed, controller.kind(KIND).chosen)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_mean_follows_its_samples_but_one_outlier_hardly_moves_it() {
    let mut mean = Mean::guessed(7);
    mean.add(1_000);
    assert_eq!(mean.value(), 1_000);
    mean.add(50_000_000);
    assert!(mean.value() <= 1_400, "{mean:?}");
    (0..40).for_each(|_| mean.add(3_000));
    assert!((2_900..=3_000).contains(&mean.value()), "{mean:?}");
    (0..60).for_each(|_| mean.add(0));
    assert!(mean.value() <= 3, "{mean:?}");
    (0..60).for_each(|_| mean.add(u64::MAX));
    assert!(mean.value() > 1_000_000, "{mean:?}");
}

fn threads(busy: [u32; 3]) -> [ThreadBusy; 3] {
    let one = |busy_per_mille, keeps_free| ThreadBusy {
        busy_per_mille,
        signals_per_turn: 4,
        keeps_free,
        reads: true,
        owns: !keeps_free,
    };
    [one(busy[0], true), one(busy[1], false), one(busy[2], false)]
}

#[test]
fn weights_keep_recv_less_busy_than_others_and_recover_when_load_is_low() {
    let mut weights = Weights::default();
    weights.adjust(&threads([100, 100, 100]));
    let first = [0, 1, 2].map(|thread| weights.weight(thread));
    assert_eq!(first, [4, 8, 8]);
    for _ in 0..20 {
        weights.adjust(&threads([900, 500, 500]));
    }
    assert_eq!((weights.weight(0), weights.weight(1)), (1, WEIGHT_MAX));
    assert!(weights.factor(0) > 40 && weights.factor(1) == 16);
    weights.adjust(&threads([100, 100, 100]));
    assert_eq!(([0, 1, 2].map(|thread| weights.weight(thread)), weights.factor(0)), (first, 16));
}

#[test]
fn reads_are_spread_by_weight_four_keys_at_a_time() {
    let mut weights = Weights::default();
    weights.adjust(&threads([100, 100, 100]));
    let mut rule = WeightedRule::default();
    let mut counts = [0; 3];
    let mut last = (u16::MAX, 0);
    for _ in 0..20_000 {
        let thread = rule.choose(&mut weights, 1, &[0, 1, 2], false);
        counts[usize::from(thread)] += 1;
        if last.0 != thread && last.0 != u16::MAX {
            assert_eq!(last.1 % 4, 0, "a run of {} reads", last.1);
        }
        last = if last.0 == thread { (thread, last.1 + 1) } else { (thread, 1) };
    }
    // 4, 8 and 8 of 20.
    assert!((3_600..4_400).contains(&counts[0]) && counts[1] > 7_000 && counts[2] > 7_000, "{counts:?}");
    let scans: Vec<u16> = (0..40).map(|_| rule.choose(&mut weights, 1, &[0, 1, 2], true)).collect();
    assert!([0, 1, 2].iter().all(|thread| scans.contains(thread)), "{scans:?}");
}

/// Reads of single keys of a table with one column.
fn key_reads() -> ReadProgram {
    let column = ColumnDefinition::new("id", DataType::integer(4, false));
    let kind = IndexKind::Primary { ordered: false };
    let primary = IndexDefinition::new(IndexId(0), "PRIMARY", kind, vec![ColumnNumber(0)]);
    let definition = TableDefinition::new(TableId(1), ("test", "t"), vec![column], vec![primary]);
    ReadProgram::new(&Arc::new(TableLayout::new(definition)), Access::PrimaryKeys, Output::Images)
}

#[test]
fn only_threads_of_the_owners_read_group_read_its_partitions() {
    let layout = NodeLayout::new(&[
        &[(Module::Recv, 0), (Module::Sql, 0), (Module::Query, 0)],
        &[(Module::Ldm, 0)],
        &[(Module::Query, 1)],
    ]);
    let directory = Directory::new(NodeId(1), &layout).unwrap();
    let address = |module, instance| directory.address(module, instance);
    let (owner, outside) = (address(Module::Ldm, 0), address(Module::Query, 0));
    let loads = LoadBoard::new(3);
    let program = key_reads();
    for (rule, reads_inside) in [(ReadRule::Adaptive, true), (ReadRule::Local, true), (ReadRule::Owner, false)] {
        let mut route = Route::new(rule, address(Module::Sql, 0), &directory, &vec![vec![1]]);
        for turn in 1..1_000 {
            let to = route.choose(RoutedRead { program: &program, units: 1 }, owner, &loads, Time(turn * 1_000)).to;
            assert_ne!(to, outside, "{rule:?}");
        }
        let mut inside = Route::new(rule, address(Module::Sql, 0), &directory, &vec![vec![0, 1]]);
        let all: Vec<_> = (1..1_000)
            .map(|turn| inside.choose(RoutedRead { program: &program, units: 1 }, owner, &loads, Time(turn * 1_000)).to)
            .collect();
        assert_eq!(all.contains(&outside), reads_inside, "{rule:?}");
    }
}

/// Query blocks that the tests below choose among.
const QUERIES: usize = 4;

/// Number of blocks that choose, each on its own thread.
const CHOOSERS: usize = 4;

/// Addresses of the owner and the routes of the sql blocks. The threads are those of the sql blocks, then the
/// owner, then the query blocks.
fn choosers() -> (Address, Vec<Route>) {
    let sql: Vec<[(Module, u16); 1]> = (0..CHOOSERS as u16).map(|instance| [(Module::Sql, instance)]).collect();
    let queries: Vec<[(Module, u16); 1]> = (0..QUERIES as u16).map(|instance| [(Module::Query, instance)]).collect();
    let mut threads: Vec<&[(Module, u16)]> = sql.iter().map(|modules| modules.as_slice()).collect();
    threads.push(&[(Module::Ldm, 0)]);
    threads.extend(queries.iter().map(|modules| modules.as_slice()));
    let directory = Directory::new(NodeId(1), &NodeLayout::new(&threads)).unwrap();
    let readers = vec![(0..QUERIES as u16).collect()];
    let route =
        |instance| Route::new(ReadRule::Adaptive, directory.address(Module::Sql, instance), &directory, &readers);
    (directory.address(Module::Ldm, 0), (0..CHOOSERS as u16).map(route).collect())
}

/// A load board on which all threads are equally busy. Each query block has the given number of waiting
/// signals; the owner has many.
fn queues(lengths: [u32; QUERIES]) -> LoadBoard {
    let moment = Usage { executing_ns: 10_000_000, sleeping_ns: 40_000_000, signals: 10_000, ..Usage::default() };
    let thread = |queue_length| ThreadLoad { queue_length, moment, ..ThreadLoad::default() };
    let others = [0; CHOOSERS].into_iter().chain([100_000]);
    LoadBoard::of(&others.chain(lengths).map(thread).collect::<Vec<_>>())
}

/// Chooses for `reads` reads of one key, the first one in turn `from`. Returns the query blocks that got
/// them, without reads that explore the owner.
fn chosen_queries(route: &mut Route, owner: Address, lengths: [u32; QUERIES], from: u64, reads: u64) -> Vec<usize> {
    let (program, loads) = (key_reads(), queues(lengths));
    // Prices are computed in the first turn and not again.
    let to = (from..from + reads).map(|turn| {
        route.choose(RoutedRead { program: &program, units: 1 }, owner, &loads, Time(1_000_000_000 + turn)).to
    });
    to.filter(|to| to.module == Module::Query).map(|to| usize::from(to.instance)).collect()
}

#[test]
fn the_query_block_with_the_shorter_queue_is_chosen_and_kept() {
    let (owner, mut routes) = choosers();
    for (turn, lengths) in [[90, 40, 10, 60], [90, 40, 50, 60], [0, 40, 50, 1]].into_iter().enumerate() {
        let from = turn as u64 * 100;
        let shortest = (0..QUERIES).min_by_key(|query| lengths[*query]).unwrap();
        chosen_queries(&mut routes[0], owner, lengths, from, QUERIES as u64);
        let kept = chosen_queries(&mut routes[0], owner, lengths, from + 50, 50);
        assert!(kept.len() > 40 && kept.iter().all(|query| *query == shortest), "{lengths:?} {kept:?}");
    }
}

#[test]
fn an_equally_long_queue_is_no_reason_to_change_the_query_block() {
    let (owner, mut routes) = choosers();
    for present in 0..QUERIES {
        let mut lengths = [7; QUERIES];
        lengths[present] = 6;
        let from = present as u64 * 1_000;
        chosen_queries(&mut routes[0], owner, lengths, from, 50);
        let kept = chosen_queries(&mut routes[0], owner, [7; QUERIES], from + 100, 50);
        assert!(kept.len() > 40 && kept.iter().all(|query| *query == present), "{present} {kept:?}");
    }
}

#[test]
fn many_choosers_do_not_all_choose_the_same_query_block() {
    const ROUNDS: u64 = 500;
    let (owner, mut routes) = choosers();
    let (mut lengths, mut counts, mut alike, mut longest) = ([0_u32; QUERIES], [0_u32; QUERIES], 0, 0);
    for round in 0..ROUNDS {
        // All of them see the queues as they were at the end of the previous round.
        let seen = lengths;
        let before = counts;
        for route in &mut routes {
            for query in chosen_queries(route, owner, seen, round * 10, 3) {
                lengths[query] += 1;
                counts[query] += 1;
            }
        }
        alike += u64::from((0..QUERIES).filter(|query| counts[*query] > before[*query]).count() == 1);
        longest = longest.max(*lengths.iter().max().unwrap());
        lengths.iter_mut().for_each(|length| *length = length.saturating_sub(3));
    }
    let all: u32 = counts.iter().sum();
    assert!(counts.iter().all(|count| (all / 5..all / 3).contains(count)), "{counts:?} of {all}");
    assert!(alike <= ROUNDS / 20 && longest <= 15, "{alike} {longest}");
}
