//! Runs of the designed protocol, and the table of planted bugs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::check::Counts;
use super::message::Bug;
use super::simulation::Simulation;

/// Seeds and steps of a short run.
const SEEDS: u64 = 24;
const STEPS: u64 = 100_000;
/// Seeds within which each planted bug is noticed.
const SEEDS_PLANTED: u64 = 400;
const STEPS_PLANTED: u64 = 60_000;
/// Enough for the horizon to move, which stands still for a second after the start of an epoch.
const STEPS_CALM: u64 = 200_000;

fn variable_text(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn variable(name: &str) -> Option<u64> {
    variable_text(name)?.parse().ok()
}

fn run(seed: u64, bug: Bug, steps: u64) -> Counts {
    junctor_kernel::invariant::panic_on_failure();
    let mut simulation = Simulation::new(seed, bug);
    simulation.run(steps);
    simulation.settle();
    Counts { elections: simulation.raft.elections, restarts: simulation.raft.restarts, ..simulation.oracle.counts }
}

#[test]
fn every_promise_holds_under_faults() {
    run_seeds(Bug::None, SEEDS);
}

#[test]
fn every_promise_holds_under_frequent_faults() {
    run_seeds(Bug::NoneAmidFaults, SEEDS / 2);
}

fn run_seeds(bug: Bug, seeds: u64) {
    let steps = variable("JUNCTOR_STEPS").unwrap_or(STEPS);
    let first = variable("JUNCTOR_SEED").unwrap_or(1);
    let count = variable("JUNCTOR_SEED").map_or(variable("JUNCTOR_SEEDS").unwrap_or(seeds), |_| 1);
    let mut all = Counts::default();
    for seed in first..first + count {
        println!("seed {seed}");
        let counts = run(seed, bug, steps);
        println!("seed {seed}: {counts:?}");
        all.commits += counts.commits;
        all.void += counts.void;
        all.joins += counts.joins;
        all.learned += counts.learned;
        all.durable_marks += counts.durable_marks;
        all.blackouts += counts.blackouts;
        all.elections += counts.elections;
        all.restarts += counts.restarts;
    }
    println!("{count} seeds of {steps} steps: {all:?}");
    if count >= seeds {
        let occurs = [
            all.commits,
            all.void,
            all.joins,
            all.learned,
            all.durable_marks,
            all.blackouts,
            all.elections,
            all.restarts,
        ];
        assert!(occurs.iter().all(|count| *count > 0), "every situation occurs: {all:?}");
    }
}

/// Each planted bug, with the first seed that notices it.
const PLANTED: &[(Bug, u64)] = &[
    (Bug::AnswerAtOwnStable, 1),
    (Bug::AnswerAtApplied, 1),
    (Bug::SnapshotAtApplied, 1),
    (Bug::LeasesOverAtOnce, 1),
    (Bug::LeaseFromReceipt, 81),
    (Bug::GrantAfterEviction, 10),
    (Bug::ClockBeforeInput, 5),
    (Bug::NumberForOldRequest, 1),
    (Bug::PrepareWithoutEpoch, 1),
    (Bug::StartWithoutOne, 1),
    (Bug::UnionForgotten, 1),
    (Bug::PrefixEndsAtApplied, 1),
    (Bug::CounterWithoutEpoch, 1),
    (Bug::ImagesNotParked, 1),
    (Bug::ImageNamesNodesNumber, 1),
    (Bug::ImageSurvivesStart, 1),
    (Bug::SurvivesItsPrimary, 7),
    (Bug::SurvivesItsCoordinator, 9),
    (Bug::BackupsNotAwaited, 1),
    (Bug::OutcomeUnconfirmed, 6),
    (Bug::OutcomeBeforeStart, 63),
    (Bug::EvictedSaysAborted, 110),
    (Bug::CopyBeforeStart, 3),
    (Bug::CopyReplacesAll, 1),
    (Bug::MarkedBeforeCheckpoint, 5),
    (Bug::CutIsMaximum, 3),
    (Bug::ObeysOldSequencer, 3),
    (Bug::OneGrantIsEnough, 162),
    (Bug::ClocksBeyondDrift, 12),
    (Bug::ForgotForJoining, 15),
    (Bug::CommittedEpochCounts, 34),
    (Bug::FreshNodeServes, 30),
    (Bug::ImageAppliedAgain, 80),
    (Bug::HorizonWithoutSnapshots, 1),
    (Bug::CutsIgnored, 505),
    (Bug::LastDurableForgotten, 27),
    (Bug::OutcomeOfYoungMember, 2),
    (Bug::AnswersBeforeSync, 15),
];

/// A change of the simulation moves the seeds. The test then finds later ones, and takes longer.
#[test]
fn every_planted_bug_is_noticed() {
    let named = variable_text("JUNCTOR_BUG");
    let first = variable("JUNCTOR_SEED");
    let wanted = |(bug, _): &&(Bug, u64)| named.as_ref().is_none_or(|named| *named == format!("{bug:?}"));
    // The panics of this thread are expected.
    let (own, report) = (std::thread::current().id(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() != own {
            report(panic);
        }
    }));
    let planted = PLANTED.iter().filter(wanted);
    let unnoticed: Vec<Bug> =
        planted.filter(|(bug, seed)| !is_noticed(*bug, first.unwrap_or(*seed))).map(|(bug, _)| *bug).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}

fn is_noticed(bug: Bug, first: u64) -> bool {
    let steps = if bug == Bug::HorizonWithoutSnapshots { STEPS_CALM } else { STEPS_PLANTED };
    let caught = (first..first + SEEDS_PLANTED).find_map(|seed| {
        let run = catch_unwind(AssertUnwindSafe(|| run(seed, bug, steps)));
        let message = run.err()?;
        let text = message.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| message.downcast_ref::<&str>().copied()).unwrap_or_default();
        Some((seed, text.chars().take(if variable("JUNCTOR_SEED").is_some() { 1000 } else { 140 }).collect::<String>()))
    });
    match &caught {
        Some((seed, text)) => println!("{bug:?}: seed {seed}: {text}"),
        None => println!("{bug:?}: not noticed"),
    }
    caught.is_some()
}
