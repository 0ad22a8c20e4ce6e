//! A run depends on nothing but its plan and its seed.

use std::path::Path;

use junctor_sim::ci::read_plan;
use junctor_sim::run::run;

#[test]
fn equal_seeds_give_equal_outcomes_and_others_differ() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/fast/lost_connections.toml");
    let plan = read_plan(&path).unwrap();
    let outcome = run(&plan, 1);
    assert_eq!(outcome.violations, Vec::<String>::new());
    assert!(outcome.clients.statements > 500 && outcome.held > 0, "{outcome}");
    assert_eq!(run(&plan, 1), outcome);
    assert_ne!(run(&plan, 2).digest, outcome.digest);
}
