//! Runs of the models of the cluster, and the assertions on them.

use stateright::{Checker, HasDiscoveries, Model};
use std::fmt::Debug;
use std::hash::Hash;

/// The variable that asks for the larger configurations.
const LONG_VARIABLE: &str = "JUNCTOR_MODELS";
pub const THREADS: usize = 2;

/// Whether to run the larger configurations, which take minutes in a release build: `make models`.
pub fn is_long() -> bool {
    std::env::var(LONG_VARIABLE).is_ok_and(|value| value == "long")
}

/// Asserts that every state keeps the promises, and that the expected situations occur.
pub fn assert_holds<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let checker = model.checker().threads(THREADS).spawn_bfs().join();
    println!("{name}: {} states, depth {}", checker.unique_state_count(), checker.max_depth());
    assert!(checker.is_done());
    checker.assert_properties();
}

/// Asserts that the property detects the broken rule of the model.
pub fn assert_caught<M>(name: &str, model: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let wanted = HasDiscoveries::AllOf([property].into());
    let checker = model.checker().threads(THREADS).finish_when(wanted).spawn_bfs().join();
    println!("{name}: {} states until caught by: {property}", checker.unique_state_count());
    assert!(checker.discovery(property).is_some(), "{name} was not caught by: {property}");
}
