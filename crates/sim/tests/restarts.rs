//! Restarts of nodes: the sessions continue afterwards, and a run depends on nothing but its plan and its
//! seed.

use std::path::Path;

use junctor_sim::ci::read_plan;
use junctor_sim::run::run;

#[test]
fn sessions_continue_after_every_restart_and_equal_seeds_give_equal_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/fast/restarts.toml");
    let plan = read_plan(&path).unwrap();
    let outcomes: Vec<_> = (1..=4).map(|seed| run(&plan, seed)).collect();
    for outcome in &outcomes {
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.ends.total() > 0 && outcome.clients.disconnects > 0, "{outcome}");
    }
    assert!(outcomes.iter().any(|outcome| outcome.ends.stops > 0));
    assert!(outcomes.iter().any(|outcome| outcome.ends.moments > 0));
    assert_eq!(run(&plan, 1), outcomes[0]);
}

#[test]
fn nodes_go_on_from_backups_that_were_taken_while_they_worked() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/fast/crash_points.toml");
    let plan = read_plan(&path).unwrap();
    let outcomes: Vec<_> = (1..=2).map(|seed| run(&plan, seed)).collect();
    for outcome in &outcomes {
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.ends.restores > 0, "{outcome}");
        assert!(outcome.crash_points.contains_key("backup.pin.after"), "{outcome}");
    }
    assert_eq!(run(&plan, 1), outcomes[0]);
}

#[test]
fn sessions_of_durable_nodes_continue_where_they_were() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/fast/durability.toml");
    let plan = read_plan(&path).unwrap();
    for seed in 1..=2 {
        let outcome = run(&plan, seed);
        assert_eq!(outcome.violations, Vec::<String>::new());
        assert!(outcome.ends.total() > 1 && outcome.clients.disconnects > 5, "{outcome}");
    }
}
