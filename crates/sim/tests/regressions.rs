//! Plans that failed in the past, each with the seeds that found the failure.

use std::path::Path;

use junctor_sim::ci::read_plan;
use junctor_sim::run::run;

/// Checks that every seed of the plan passes.
fn holds(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(name).with_extension("toml");
    let plan = read_plan(&path).unwrap();
    for seed in 1..=plan.ci_seeds {
        let outcome = run(&plan, seed);
        assert!(outcome.violations.is_empty(), "{name} seed {seed}: {outcome}");
    }
}

#[test]
fn a_circle_of_waits_through_a_stronger_lock_is_found() {
    holds("stale_blockers");
}

#[test]
fn a_partition_that_is_dropped_keeps_no_commit_from_its_end() {
    holds("dropped_replica");
}
