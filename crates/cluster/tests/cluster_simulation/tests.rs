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

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(seed: u64, bug: Bug, steps: u64) -> Counts {
    junctor_kernel::invariant::panic_on_failure();
    let mut simulation = Simulation::new(seed, bug);
    simulation.run(steps);
    simulation.settle();
    simulation.oracle.counts
}

#[test]
fn every_promise_holds_under_faults() {
    let steps = variable("JUNCTOR_STEPS").unwrap_or(STEPS);
    let first = variable("JUNCTOR_SEED").unwrap_or(1);
    let count = variable("JUNCTOR_SEED").map_or(variable("JUNCTOR_SEEDS").unwrap_or(SEEDS), |_| 1);
    let mut all = Counts::default();
    for seed in first..first + count {
        println!("seed {seed}");
        let counts = run(seed, Bug::None, steps);
        println!("seed {seed}: {counts:?}");
        all.commits += counts.commits;
        all.void += counts.void;
        all.joins += counts.joins;
        all.learned += counts.learned;
        all.durable_marks += counts.durable_marks;
        all.blackouts += counts.blackouts;
    }
    println!("{count} seeds of {steps} steps: {all:?}");
    if count >= SEEDS {
        let occurs = [all.commits, all.void, all.joins, all.learned, all.durable_marks, all.blackouts];
        assert!(occurs.iter().all(|count| *count > 0), "every situation occurs: {all:?}");
    }
}

/// Planted bugs that a few seeds notice.
const PLANTED: &[Bug] = &[
    Bug::AnswerAtOwnStable,
    Bug::AnswerAtApplied,
    Bug::SnapshotAtApplied,
    Bug::LeasesOverAtOnce,
    Bug::LeaseFromReceipt,
    Bug::GrantAfterEviction,
    Bug::ClockBeforeInput,
    Bug::NumberForOldRequest,
    Bug::PrepareWithoutEpoch,
    Bug::StartWithoutOne,
    Bug::UnionForgotten,
    Bug::PrefixEndsAtApplied,
    Bug::CounterWithoutEpoch,
    Bug::ImagesNotParked,
    Bug::ImageNamesNodesNumber,
    Bug::ImageSurvivesStart,
    Bug::SurvivesItsPrimary,
    Bug::SurvivesItsCoordinator,
    Bug::BackupsNotAwaited,
    Bug::OutcomeUnconfirmed,
    Bug::OutcomeBeforeStart,
    Bug::EvictedSaysAborted,
    Bug::CopyBeforeStart,
    Bug::CopyReplacesAll,
    Bug::MarkedBeforeCheckpoint,
    Bug::CutIsMaximum,
];

/// Planted bugs that need more seeds: `make models` looks for them.
const PLANTED_RARE: &[Bug] = &[
    Bug::ObeysOldSequencer,
    Bug::OneGrantIsEnough,
    Bug::ClocksBeyondDrift,
    Bug::ForgotForJoining,
    Bug::CommittedEpochCounts,
    Bug::FreshNodeServes,
    Bug::ImageAppliedAgain,
    Bug::HorizonWithoutSnapshots,
    Bug::CutsIgnored,
    Bug::LastDurableForgotten,
    Bug::CutNotCommitted,
    Bug::OutcomeOfYoungMember,
];

#[test]
fn every_planted_bug_is_noticed() {
    let is_long = std::env::var("JUNCTOR_MODELS").is_ok_and(|value| value == "long");
    let named = std::env::var("JUNCTOR_BUG").ok();
    let rare = PLANTED_RARE.iter().filter(|_| is_long || named.is_some());
    let wanted = |bug: &&Bug| named.as_ref().is_none_or(|named| *named == format!("{bug:?}"));
    // The panics of this thread are expected.
    let (own, report) = (std::thread::current().id(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() != own {
            report(panic);
        }
    }));
    let unnoticed: Vec<Bug> =
        PLANTED.iter().chain(rare).filter(wanted).copied().filter(|bug| !is_noticed(*bug)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}

fn is_noticed(bug: Bug) -> bool {
    let caught = (1..=SEEDS_PLANTED).find_map(|seed| {
        let run = catch_unwind(AssertUnwindSafe(|| run(seed, bug, STEPS_PLANTED)));
        let message = run.err()?;
        let text = message.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| message.downcast_ref::<&str>().copied()).unwrap_or_default();
        Some((seed, text.chars().take(140).collect::<String>()))
    });
    match &caught {
        Some((seed, text)) => println!("{bug:?}: seed {seed}: {text}"),
        None => println!("{bug:?}: not noticed"),
    }
    caught.is_some()
}
