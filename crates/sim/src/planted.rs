//! The proof that the plans notice what they are meant to notice: each planted bug must make a run of its
//! plan fail.

use std::path::Path;

use junctor_model::planted_bug::PlantedBug;

use crate::ci::read_plan;
use crate::run::run;

/// A bug, the plan that finds it, and the number of seeds that this may take.
type Expected = (PlantedBug, &'static str, u64);

const EXPECTED: [Expected; PlantedBug::ALL.len()] = [
    (PlantedBug::AcknowledgeBeforeSync, "durability", 60),
    (PlantedBug::IgnoreFormedRecords, "durability", 60),
    (PlantedBug::StableAfterCollecting, "durability", 60),
    (PlantedBug::CutTooFar, "durability", 60),
    (PlantedBug::ReplayBeyondCut, "durability", 60),
    (PlantedBug::TakeRotForTail, "failing_disks", 60),
    (PlantedBug::SkipResync, "failing_disks", 60),
    (PlantedBug::ForgetSettledEarly, "durability", 60),
    (PlantedBug::WriteAboveUnstamped, "durability", 60),
    (PlantedBug::PublishSchemaEarly, "durability", 60),
    (PlantedBug::EarlyManifest, "checkpoints", 60),
    (PlantedBug::TrimPastChunks, "checkpoints", 60),
    (PlantedBug::ReplayFromEnd, "checkpoints", 60),
    (PlantedBug::CounterBeyondMark, "durability", 60),
    (PlantedBug::SkipFolderSync, "durability", 60),
    (PlantedBug::RetryFailedSync, "failing_disks", 60),
    (PlantedBug::ReuseNumbers, "durability", 60),
];

/// Plants each bug, or only the one with this name, and runs its plan of `folder` until a run fails. Calls
/// `report` with one line for each bug. Returns whether all were found.
///
/// # Errors
/// A message if no bug has the name, a plan cannot be read, or the program was built without the bugs.
pub fn find_all(folder: &Path, name: Option<&str>, mut report: impl FnMut(&str)) -> Result<bool, String> {
    let expected: Vec<Expected> =
        EXPECTED.into_iter().filter(|(bug, ..)| name.is_none_or(|name| name == bug.name())).collect();
    if expected.is_empty() {
        return Err(format!("no planted bug is named '{}'", name.unwrap_or_default()));
    }
    let mut all_found = true;
    for (bug, plan, seeds) in expected {
        PlantedBug::plant(Some(bug));
        if !bug.is_planted() {
            return Err("build the simulator with --features planted_bugs".to_owned());
        }
        let plan_of_bug = read_plan(&folder.join(plan).with_extension("toml"))?;
        let found = (1..=seeds).find_map(|seed| Some((seed, run(&plan_of_bug, seed).violations.into_iter().next()?)));
        let name = bug.name();
        match &found {
            Some((seed, violation)) => report(&format!("{name}: found by {plan}, seed {seed}: {violation}")),
            None => report(&format!("FAILED {name}: no seed of {seeds} of {plan} has found it")),
        }
        all_found &= found.is_some();
    }
    PlantedBug::plant(None);
    Ok(all_found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planted_bug_has_a_plan() {
        for bug in PlantedBug::ALL {
            assert!(EXPECTED.iter().any(|(expected, ..)| expected == bug), "{}", bug.name());
        }
        assert_eq!(find_all(Path::new(""), Some("none"), |_| ()), Err("no planted bug is named 'none'".to_owned()));
    }
}
