//! Configurations in which the promises hold, and the broken variants.

use super::checking;
use super::cluster::{Cluster, Plan, Rule};
use super::properties::*;
use stateright::{Checker, Expectation, Model};

const fn plan(home: usize, partitions: u8) -> Plan {
    Plan { home, partitions }
}

/// A group of two replicas and a group of one, which must live. The first transaction writes both groups.
const TWO_GROUPS: Cluster = Cluster {
    chains: [&[0, 1], &[2]],
    serving: 0b111,
    joining: 0,
    admits: 0,
    sequencer: 0,
    plans: [plan(2, 0b11), plan(1, 0b01)],
    faults: 1,
    blocks_are_slow: false,
    prepares_fail: false,
    rule: Rule::Designed,
};

/// Each block applies a decision some time after the mirror has passed it.
const SLOW: Cluster = Cluster { blocks_are_slow: true, ..TWO_GROUPS };

/// The sequencer has tcs elsewhere.
const DISTANT: Cluster = Cluster { sequencer: 2, plans: [plan(2, 0b11), plan(0, 0b01)], ..TWO_GROUPS };

/// Two groups of two replicas.
const FOUR_NODES: Cluster = Cluster { chains: [&[0, 1], &[2, 3]], serving: 0b1111, ..TWO_GROUPS };

/// One group of three replicas.
const ONE_GROUP: Cluster = Cluster { chains: [&[0, 1, 2], &[]], plans: [plan(1, 0b01), plan(2, 0b01)], ..TWO_GROUPS };

/// Backups refuse images, so that transactions are rolled back within an epoch.
const REFUSING: Cluster = Cluster { prepares_fail: true, ..ONE_GROUP };

/// A replica joins. The sequencer is on a node of another group.
const JOINING: Cluster = Cluster {
    chains: [&[0, 1], &[]],
    serving: 0b101,
    joining: 0b010,
    sequencer: 2,
    plans: [plan(0, 0b01), plan(0, 0b01)],
    ..TWO_GROUPS
};

/// A node joins at any time. Tc, sequencer and the only other replica of one transaction are on one node.
const ADMITTING: Cluster =
    Cluster { chains: [&[0, 1], &[]], serving: 0b001, admits: 0b010, plans: [plan(0, 0b01), plan(0, 0)], ..TWO_GROUPS };

/// Steps within which a short run explores the large configurations.
const DEPTH: usize = 13;

fn check_large(name: &str, cluster: Cluster) {
    if checking::is_long() {
        checking::assert_holds(name, cluster);
    } else {
        check_to_depth(name, cluster);
    }
}

/// Asserts that every state within [`DEPTH`] steps keeps the promises.
fn check_to_depth(name: &str, cluster: Cluster) {
    let checker = cluster.checker().threads(checking::THREADS).target_max_depth(DEPTH).spawn_bfs().join();
    println!("{name}: {} states to depth {}", checker.unique_state_count(), checker.max_depth());
    for property in cluster.properties() {
        if matches!(property.expectation, Expectation::Always) {
            checker.assert_no_discovery(property.name);
        }
    }
}

fn check_caught(rule: Rule, cluster: Cluster, property: &'static str) {
    checking::assert_caught(&format!("{rule:?}"), Cluster { rule, ..cluster }, property);
}

#[test]
fn two_groups_keep_every_promise() {
    checking::assert_holds("two groups, three nodes, one fault", TWO_GROUPS);
    check_large("two groups, three nodes, slow blocks, one fault", SLOW);
    check_large("two groups, three nodes, distant sequencer, one fault", DISTANT);
    check_large("two groups, four nodes, one fault", FOUR_NODES);
    if checking::is_long() {
        checking::assert_holds("two groups, four nodes, two faults", Cluster { faults: 2, ..FOUR_NODES });
    }
}

#[test]
fn one_group_keeps_every_promise() {
    check_large("one group, three replicas, one fault", ONE_GROUP);
    check_large("one group, three replicas, backups refuse images, one fault", REFUSING);
    if checking::is_long() {
        checking::assert_holds("one group, three replicas, two faults", Cluster { faults: 2, ..ONE_GROUP });
    }
}

#[test]
fn a_joining_replica_keeps_every_promise() {
    check_large("one group, a replica joins, one fault", JOINING);
    checking::assert_holds("one group, a replica is admitted, one fault", ADMITTING);
}

#[test]
fn the_model_catches_gaps_of_the_specification() {
    check_caught(Rule::PrepareWithoutEpoch, ONE_GROUP, UNDONE);
    check_caught(Rule::OutcomeUnconfirmed, TWO_GROUPS, EXTERNAL);
    check_caught(Rule::PrefixEndsAtApplied, SLOW, UNDONE);
    check_caught(Rule::ImageNamesNodesNumber, SLOW, ORDER);
    check_caught(Rule::ImageNamesAppliedNumber, REFUSING, ORDER);
    check_caught(Rule::EvictedSaysAborted, TWO_GROUPS, UNDONE);
    check_caught(Rule::ForgotForJoining, JOINING, EQUAL);
    check_caught(Rule::FreshNodeServes, JOINING, EXTERNAL);
    check_caught(Rule::OutcomeOfYoungMember, ADMITTING, UNDONE);
}

#[test]
fn the_model_catches_missing_fences() {
    check_caught(Rule::NumberForOldRequest, ONE_GROUP, IMAGES);
    check_caught(Rule::ObeysOldSequencer, ONE_GROUP, UNDONE);
    check_caught(Rule::NumberReused, TWO_GROUPS, UNIQUE);
    check_caught(Rule::OutcomeBeforeStart, TWO_GROUPS, UNDONE);
    check_caught(Rule::LeasesIgnored, TWO_GROUPS, EXTERNAL);
}

#[test]
fn the_model_catches_epochs_that_start_wrongly() {
    check_caught(Rule::StartWithoutOne, ONE_GROUP, UNDONE);
    check_caught(Rule::UnionForgotten, ONE_GROUP, UNDONE);
    check_caught(Rule::ImageSurvivesStart, ONE_GROUP, UNDONE);
    check_caught(Rule::SurvivesItsPrimary, TWO_GROUPS, IMAGES);
    check_caught(Rule::SurvivesItsCoordinator, TWO_GROUPS, SETTLED);
    check_caught(Rule::CommittedEpochCounts, JOINING, KEPT);
}

#[test]
fn the_model_catches_early_answers_and_snapshots() {
    check_caught(Rule::AnswerAtOwnStable, TWO_GROUPS, EXTERNAL);
    check_caught(Rule::AnswerAtApplied, TWO_GROUPS, KEPT);
    check_caught(Rule::SnapshotAtApplied, TWO_GROUPS, PREFIX);
    check_caught(Rule::BackupsNotAwaited, TWO_GROUPS, IMAGES);
    check_caught(Rule::ImagesNotParked, TWO_GROUPS, ORDER);
}
