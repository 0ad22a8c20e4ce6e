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
fn a_deadlock_through_a_lock_upgrade_is_found() {
    holds("stale_blockers");
}

#[test]
fn dropping_a_partition_does_not_block_a_commit() {
    holds("dropped_replica");
}
