//! The proof that the tests notice what they are meant to notice: each planted bug must make a run of its
//! plan or its test fail.

use std::path::Path;
use std::process::Command;

use junctor_model::planted_bug::{PlantedBug, VARIABLE};

use crate::ci::read_plan;
use crate::run::run;

/// The number of seeds in which a plan must find its bug.
const SEEDS: u64 = 60;

/// Where a bug is found.
#[derive(Clone, Copy, Debug)]
enum FoundBy {
    /// By the first seeds of the plan with this name.
    Plan(&'static str),
    /// By the test with this path in this crate. The simulator meets the situation too rarely.
    Test(&'static str, &'static str),
}

use FoundBy::{Plan, Test};

const EXPECTED: [(PlantedBug, FoundBy); PlantedBug::ALL.len()] = [
    (PlantedBug::AcknowledgeBeforeSync, Plan("durability")),
    (PlantedBug::IgnoreFormedRecords, Plan("durability")),
    (
        PlantedBug::StableAfterCollecting,
        Test(
            "junctor-transaction",
            "log::tests::a_commit_that_becomes_stable_while_records_are_collected_waits_for_the_next_cycle",
        ),
    ),
    (PlantedBug::CutTooFar, Plan("durability")),
    (
        PlantedBug::ReplayBeyondCut,
        Test("junctor-storage", "log::tests::commits_up_to_the_cut_are_kept_and_later_ones_are_not"),
    ),
    (
        PlantedBug::AcceptStaleGroups,
        Test("junctor-storage", "log::tests::groups_of_an_earlier_use_of_a_segment_are_not_accepted"),
    ),
    (PlantedBug::TakeRotForTail, Plan("failing_disks")),
    (
        PlantedBug::SkipResync,
        Test("junctor-transaction", "log::tests::recovery_syncs_what_no_later_group_knows_as_synced"),
    ),
    (PlantedBug::ForgetSettledEarly, Plan("durability")),
    (
        PlantedBug::WriteAboveUnstamped,
        Test("junctor-storage", "partition_store::tests::settle::a_writer_stamps_the_row_first_and_another_one"),
    ),
    (
        PlantedBug::PurgeUnstamped,
        Test("junctor-storage", "partition_store::tests::settle::purge_stamps_a_row_before_it_looks_for_its_base"),
    ),
    (PlantedBug::PublishSchemaEarly, Plan("durability")),
    (
        PlantedBug::CopyOverNewerRow,
        Test(
            "junctor-transaction",
            "ldm::tests::copy_rows::the_copy_has_the_rows_of_the_primary_whatever_others_write",
        ),
    ),
    (
        PlantedBug::ForgetDeletionInCopy,
        Test(
            "junctor-transaction",
            "ldm::tests::copy_rows::the_copy_has_the_rows_of_the_primary_whatever_others_write",
        ),
    ),
    (
        PlantedBug::EarlyManifest,
        Test(
            "junctor-cluster",
            "main_block::tests::checkpoint::a_round_switches_only_when_everything_that_it_wrote_is_durable",
        ),
    ),
    (
        PlantedBug::TrimPastChunks,
        Test(
            "junctor-transaction",
            "log::group_index::tests::chunks_hold_the_start_of_replay_until_their_commit_is_stable",
        ),
    ),
    (
        PlantedBug::ReplayFromEnd,
        Test(
            "junctor-transaction",
            "log::group_index::tests::replay_starts_with_the_first_group_that_may_hold_a_later_commit",
        ),
    ),
    (
        PlantedBug::EditNewerRow,
        Test(
            "junctor-storage",
            "partition_store::tests::replay::edits_below_the_version_of_a_checkpoint_change_nothing",
        ),
    ),
    (
        PlantedBug::ForgetOpenVersions,
        Test(
            "junctor-storage",
            "partition_store::tests::checkpoint::the_next_round_writes_a_version_that_was_open_in_this_one",
        ),
    ),
    (
        PlantedBug::ForgetEmptiedTables,
        Test("junctor-storage", "partition_store::tests::checkpoint::an_emptied_table_needs_no_frames"),
    ),
    (PlantedBug::CounterBeyondMark, Plan("durability")),
    (PlantedBug::SkipFolderSync, Plan("durability")),
    (PlantedBug::RetryFailedSync, Plan("failing_disks")),
    (PlantedBug::ReuseNumbers, Plan("durability")),
    (
        PlantedBug::OpenPromotedEarly,
        Test(
            "junctor-transaction",
            "ldm::tests::epoch::a_backup_that_becomes_primary_takes_writes_once_no_image_is_left",
        ),
    ),
    (PlantedBug::KeepOrphans, Plan("failover")),
    (
        PlantedBug::UndoDecidedImages,
        Test("junctor-transaction", "ldm::tests::epoch::what_is_decided_is_committed_at_a_backup_whose_tc_is_lost"),
    ),
    (PlantedBug::CommitLost, Plan("failover")),
    (PlantedBug::ForgetMissing, Plan("failover")),
    (PlantedBug::AnswerUnconfirmed, Plan("failover")),
    (PlantedBug::ConfirmOneGroup, Plan("groups")),
    (PlantedBug::StableInOneGroup, Plan("groups")),
    (
        PlantedBug::DurableInOneGroup,
        Test("junctor-cluster", "epoch::tests::sequencer::a_number_is_durable_when_the_disks_of_all_groups_have_it"),
    ),
    (
        PlantedBug::WakeDisksOfParts,
        Test("junctor-cluster", "epoch::tests::sequencer::every_disk_is_wanted_also_that_of_a_node_without_a_part"),
    ),
    (
        PlantedBug::CutOfOneGroup,
        Test(
            "junctor-cluster",
            "membership::membership::tests::a_restart_needs_a_durable_disk_of_every_group_and_cuts_at_the_least",
        ),
    ),
    (
        PlantedBug::ForgetFences,
        Test("junctor-cluster", "member::tests::groups::the_lives_that_a_membership_lacks_are_refused"),
    ),
    (
        PlantedBug::LeasesOverAtOnce,
        Test(
            "junctor-cluster",
            "epoch::tests::sequencer::confirmed_is_the_least_stable_number_of_the_epoch_once_leases_are_over",
        ),
    ),
    (
        PlantedBug::ForgetFloor,
        Test(
            "junctor-cluster",
            "epoch::tests::sequencer::the_horizon_is_the_least_snapshot_and_stands_still_after_the_start",
        ),
    ),
    (PlantedBug::RemoveGroupWithRows, Plan("removal")),
];

/// Plants each bug, or only the one with this name, and runs its plan of `folder` or its test until a run
/// fails. Calls `report` with one line for each bug. Returns whether all were found.
///
/// # Errors
/// A message if no bug has the name, a plan cannot be read, a test cannot be run, or the program was built
/// without the bugs.
pub fn find_all(folder: &Path, name: Option<&str>, mut report: impl FnMut(&str)) -> Result<bool, String> {
    let expected: Vec<_> = EXPECTED.into_iter().filter(|(bug, _)| name.is_none_or(|name| name == bug.name())).collect();
    if expected.is_empty() {
        return Err(format!("no planted bug is named '{}'", name.unwrap_or_default()));
    }
    let mut all_found = true;
    for (bug, found_by) in expected {
        PlantedBug::plant(Some(bug));
        if !bug.is_planted() {
            return Err("build the simulator with --features planted_bugs".to_owned());
        }
        let found = match found_by {
            Plan(plan) => find_by_plan(folder, plan)?,
            Test(package, test) => find_by_test(bug, package, test)?,
        };
        match &found {
            Some(found) => report(&format!("{}: found by {found}", bug.name())),
            None => report(&format!("FAILED {}: not found by {found_by:?}", bug.name())),
        }
        all_found &= found.is_some();
    }
    PlantedBug::plant(None);
    Ok(all_found)
}

/// The plan, the seed and the violation that show the bug that is planted; `None` if no seed does.
fn find_by_plan(folder: &Path, name: &str) -> Result<Option<String>, String> {
    let plan = read_plan(&folder.join(name).with_extension("toml"))?;
    let mut seeds = 1..=SEEDS;
    Ok(seeds.find_map(|seed| {
        let violation = run(&plan, seed).violations.into_iter().next()?;
        Some(format!("plan {name}, seed {seed}: {violation}"))
    }))
}

/// The test if it passes without the bug and fails with it; `None` if it passes with the bug.
fn find_by_test(bug: PlantedBug, package: &str, test: &str) -> Result<Option<String>, String> {
    let passes = |bug: &str| {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--quiet", "--package", package, "--features", "junctor-model/planted_bugs", "--lib"]);
        cargo.args([test, "--", "--exact"]).env(VARIABLE, bug);
        let output = cargo.output().map_err(|error| format!("cargo: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let has_run = |result: &str| text.contains(&format!("test result: {result}"));
        match (has_run("ok. 1 passed"), has_run("FAILED. 0 passed; 1 failed")) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => Err(format!("{package} {test} cannot be run: {text}{}", String::from_utf8_lossy(&output.stderr))),
        }
    };
    if !passes("")? {
        return Err(format!("{package} {test} fails without a bug"));
    }
    Ok((!passes(bug.name())?).then(|| format!("test {package} {test}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planted_bug_has_a_plan_or_a_test() {
        for bug in PlantedBug::ALL {
            assert!(EXPECTED.iter().any(|(expected, _)| expected == bug), "{}", bug.name());
        }
        assert_eq!(find_all(Path::new(""), Some("none"), |_| ()), Err("no planted bug is named 'none'".to_owned()));
    }
}
