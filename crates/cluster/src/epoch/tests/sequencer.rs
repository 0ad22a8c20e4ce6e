//! The sequencer: numbers, batches, what all have applied, confirmed and synced.

use junctor_kernel::{Duration, Time};

use super::*;
use crate::epoch::Sequencer;
use crate::epoch::sequencer::{HORIZON_FROZEN, KEPT_MAX};

fn sequencer_of(membership: &Membership) -> Sequencer {
    let mut sequencer = Sequencer::new(membership, &|_| CommitNumber(0), Time(0));
    sequencer.open();
    sequencer
}

fn request(sequencer: &mut Sequencer, from: u8, batch: u64, requests: Vec<Decision>) {
    let epoch = sequencer.epoch();
    sequencer.on_take_number(NodeId(from), TakeNumber { epoch, batch, requests });
}

fn applied(sequencer: &mut Sequencer, from: u8, received: u64, applied: u64, stable: u64) {
    let epoch = sequencer.epoch();
    let (applied, stable) = (CommitNumber::new(epoch, applied), CommitNumber::new(epoch, stable));
    let report = Applied { epoch, received, applied, stable, oldest_snapshot: stable, ..Applied::default() };
    sequencer.on_applied(NodeId(from), &report, Time(0));
}

/// Delivers everything to a node, which applies nothing yet.
fn deliver(sequencer: &mut Sequencer, node: u8) {
    while let Some(message) = sequencer.next_decide(NodeId(node)) {
        let report = Applied { epoch: sequencer.epoch(), received: message.batch, ..Applied::default() };
        sequencer.on_applied(NodeId(node), &report, Time(0));
    }
}

fn synced(sequencer: &mut Sequencer, from: u8, durable: CommitNumber) {
    let start = CommitNumber::start_of(sequencer.epoch());
    let report = Applied { epoch: sequencer.epoch(), applied: start, stable: start, durable, ..Applied::default() };
    sequencer.on_applied(NodeId(from), &report, Time(0));
}

fn decide(sequencer: &mut Sequencer, node: u8) -> Decide {
    sequencer.next_decide(NodeId(node)).unwrap()
}

#[test]
fn requests_get_numbers_in_the_order_of_arrival_and_each_node_its_decisions() {
    let mut sequencer = sequencer_of(&two_nodes());
    request(&mut sequencer, 2, 1, vec![decision(7, &[1, 2]), decision(8, &[2])]);
    request(&mut sequencer, 1, 1, vec![decision(9, &[1])]);
    let to_first = decide(&mut sequencer, 1);
    // The tc of all three is on node 1.
    assert_eq!(numbers(&to_first.decisions), [number(1, 1), number(1, 2), number(1, 3)]);
    assert_eq!(to_first.decisions[0].transaction.counter, 7);
    let to_second = decide(&mut sequencer, 2);
    assert_eq!(numbers(&to_second.decisions), [number(1, 1), number(1, 2)]);
    assert_eq!((to_second.upto, to_second.batch_numbered), (number(1, 3), 1));
}

#[test]
fn a_node_has_at_most_three_unanswered_messages_and_the_rest_forms_the_next() {
    let mut sequencer = sequencer_of(&two_nodes());
    for batch in 1..=5 {
        request(&mut sequencer, 2, batch, vec![decision(batch, &[1, 2])]);
        assert_eq!(sequencer.next_decide(NodeId(1)).is_some(), batch <= 3);
    }
    applied(&mut sequencer, 1, 1, 1, 0);
    let fourth = decide(&mut sequencer, 1);
    assert_eq!((numbers(&fourth.decisions), fourth.batch), (vec![number(1, 4), number(1, 5)], 4));
    assert!(sequencer.next_decide(NodeId(1)).is_none());
}

#[test]
fn a_message_that_says_nothing_new_is_not_sent() {
    let mut sequencer = sequencer_of(&two_nodes());
    assert!(sequencer.next_decide(NodeId(2)).is_some());
    assert!(sequencer.next_decide(NodeId(2)).is_none());
}

/// The tc of the commit is at node 1.
#[test]
fn what_nobody_waits_for_goes_with_the_next_message() {
    let mut sequencer = sequencer_of(&two_nodes());
    sequencer.on_leases_over(Epoch(1));
    (1..=2).for_each(|node| deliver(&mut sequencer, node));
    (1..=2).for_each(|node| applied(&mut sequencer, node, 0, 0, 0));
    (1..=2).for_each(|node| deliver(&mut sequencer, node));
    request(&mut sequencer, 1, 1, vec![decision(1, &[1, 2])]);
    (1..=2).for_each(|node| deliver(&mut sequencer, node));
    (1..=2).for_each(|node| applied(&mut sequencer, node, 0, 1, 0));
    (1..=2).for_each(|node| assert_eq!(decide(&mut sequencer, node).others, number(1, 1)));
    let late = Time(0).plus(HORIZON_FROZEN);
    for node in [1, 2] {
        let one = number(1, 1);
        let report = Applied {
            epoch: Epoch(1),
            received: 9,
            applied: one,
            stable: one,
            oldest_snapshot: one,
            ..Applied::default()
        };
        sequencer.on_applied(NodeId(node), &report, late);
    }
    assert_eq!((sequencer.confirmed(), sequencer.horizon()), (number(1, 1), number(1, 1)));
    assert_eq!(decide(&mut sequencer, 1).confirmed, number(1, 1));
    assert!(sequencer.next_decide(NodeId(2)).is_none(), "no tc of node 2 waits");
    sequencer.tell_all();
    let message = decide(&mut sequencer, 2);
    assert_eq!((message.confirmed, message.least_applied, message.horizon), (number(1, 1), number(1, 1), number(1, 1)));
    assert!((1..=2).all(|node| sequencer.next_decide(NodeId(node)).is_none()));
}

#[test]
fn messages_of_other_epochs_repeated_batches_and_strangers_are_ignored() {
    let mut sequencer = sequencer_of(&two_nodes());
    request(&mut sequencer, 2, 1, vec![decision(1, &[1, 2])]);
    request(&mut sequencer, 2, 1, vec![decision(1, &[1, 2])]);
    request(&mut sequencer, 3, 1, vec![decision(2, &[1, 2])]);
    let old = TakeNumber { epoch: Epoch(0), batch: 2, requests: vec![decision(3, &[1, 2])] };
    sequencer.on_take_number(NodeId(2), old);
    assert_eq!(sequencer.last_number(), number(1, 1));
}

#[test]
fn nothing_is_numbered_before_the_own_node_has_started() {
    let mut sequencer = Sequencer::new(&two_nodes(), &|_| CommitNumber(0), Time(0));
    request(&mut sequencer, 2, 1, vec![decision(1, &[1, 2])]);
    assert_eq!(sequencer.last_number(), number(1, 0));
    sequencer.open();
    assert_eq!(sequencer.last_number(), number(1, 1));
}

#[test]
fn each_node_hears_the_least_of_the_other_serving_nodes() {
    let membership = with_joining();
    let mut sequencer = sequencer_of(&membership);
    request(&mut sequencer, 2, 1, (1..=5).map(|counter| decision(counter, &[1, 2, 3])).collect());
    (1..=2).for_each(|node| deliver(&mut sequencer, node));
    applied(&mut sequencer, 1, 0, 4, 0);
    applied(&mut sequencer, 2, 0, 2, 0);
    assert_eq!(decide(&mut sequencer, 1).others, number(3, 2));
    assert_eq!(decide(&mut sequencer, 2).others, number(3, 4));
    // The joining node counts only for the least of all members.
    let to_joining = decide(&mut sequencer, 3);
    assert_eq!((to_joining.others, to_joining.least_applied), (number(3, 2), CommitNumber(0)));
    assert_eq!(numbers(&to_joining.decisions).len(), 5);
    applied(&mut sequencer, 3, 1, 1, 0);
    sequencer.tell_all();
    assert_eq!(decide(&mut sequencer, 1).least_applied, number(3, 1));
    assert!(sequencer.have_all_started());
}

#[test]
fn a_node_that_has_not_started_holds_back_the_others() {
    let mut sequencer = sequencer_of(&two_nodes());
    applied(&mut sequencer, 1, 0, 0, 0);
    assert_eq!(decide(&mut sequencer, 1).others, CommitNumber(0));
    assert_eq!(decide(&mut sequencer, 2).others, number(1, 0));
    assert!(!sequencer.have_all_started());
}

#[test]
fn confirmed_is_the_least_stable_number_of_the_epoch_once_leases_are_over() {
    let mut sequencer = sequencer_of(&with_joining());
    request(&mut sequencer, 2, 1, vec![decision(1, &[1, 2, 3])]);
    (1..=2).for_each(|node| deliver(&mut sequencer, node));
    applied(&mut sequencer, 1, 0, 1, 1);
    applied(&mut sequencer, 2, 0, 1, 0);
    assert_eq!(sequencer.confirmed(), CommitNumber(0));
    sequencer.on_leases_over(Epoch(2));
    assert_eq!(sequencer.confirmed(), CommitNumber(0));
    sequencer.on_leases_over(Epoch(3));
    assert_eq!(sequencer.confirmed(), number(3, 0));
    applied(&mut sequencer, 2, 0, 1, 1);
    assert_eq!(decide(&mut sequencer, 1).confirmed, number(3, 1));
}

#[test]
fn requests_wait_unnumbered_while_too_many_decisions_are_kept() {
    let mut sequencer = sequencer_of(&two_nodes());
    let batch = 1 << 13;
    for index in 0..8 {
        request(&mut sequencer, 1, index + 1, (0..batch).map(|counter| decision(counter, &[1, 2])).collect());
    }
    request(&mut sequencer, 2, 1, vec![decision(1, &[1, 2]), decision(2, &[1, 2])]);
    assert_eq!(sequencer.last_number(), number(1, KEPT_MAX));
    (1..=2).for_each(|node| deliver(&mut sequencer, node));
    applied(&mut sequencer, 1, 0, 1, 1);
    applied(&mut sequencer, 2, 0, 1, 1);
    assert_eq!(sequencer.last_number(), number(1, KEPT_MAX + 1));
    assert_eq!(sequencer.lagging_joiner(), None);
    // The batch is answered when all of it has numbers.
    assert_eq!(decide(&mut sequencer, 2).batch_numbered, 0);
    applied(&mut sequencer, 1, 0, 2, 2);
    applied(&mut sequencer, 2, 0, 2, 2);
    assert_eq!(decide(&mut sequencer, 2).batch_numbered, 1);
}

#[test]
fn a_joining_node_that_holds_up_requests_is_found() {
    let mut sequencer = sequencer_of(&with_joining());
    request(&mut sequencer, 1, 1, (0..=KEPT_MAX).map(|counter| decision(counter, &[1, 2, 3])).collect());
    assert_eq!(sequencer.lagging_joiner(), None);
    (1..=2).for_each(|node| deliver(&mut sequencer, node));
    applied(&mut sequencer, 1, 0, 9, 9);
    applied(&mut sequencer, 2, 0, 9, 9);
    assert_eq!(sequencer.lagging_joiner(), Some(NodeId(3)));
}

#[test]
fn long_lists_are_sent_in_parts_that_end_at_their_last_decision() {
    let mut sequencer = sequencer_of(&two_nodes());
    request(&mut sequencer, 1, 1, (0..5000).map(|counter| decision(counter, &[1, 2])).collect());
    let first = decide(&mut sequencer, 2);
    assert_eq!((first.decisions.len(), first.upto), (4096, number(1, 4096)));
    let second = decide(&mut sequencer, 2);
    assert_eq!((second.decisions.len(), second.upto), (904, number(1, 5000)));
}

#[test]
fn the_horizon_is_the_least_snapshot_and_stands_still_after_the_start() {
    let mut sequencer = sequencer_of(&two_nodes());
    request(&mut sequencer, 1, 1, (0..9).map(|counter| decision(counter, &[1, 2])).collect());
    (1..=2).for_each(|node| deliver(&mut sequencer, node));
    applied(&mut sequencer, 1, 0, 9, 9);
    applied(&mut sequencer, 2, 0, 9, 4);
    assert_eq!(sequencer.horizon(), CommitNumber(0));
    let report = Applied { epoch: Epoch(1), oldest_snapshot: number(1, 5), ..Applied::default() };
    sequencer.on_applied(NodeId(2), &report, Time(0).plus(Duration(HORIZON_FROZEN.0 - 1)));
    assert_eq!(sequencer.horizon(), CommitNumber(0));
    sequencer.on_applied(NodeId(2), &report, Time(0).plus(HORIZON_FROZEN));
    assert_eq!(sequencer.horizon(), number(1, 5));
}

/// Node 2 has joined again and serves; only node 1 is durable.
fn with_one_durable() -> Arc<Membership> {
    let nodes = [NodeId(2)].into_iter().collect();
    let evicted = noted(&change(&noted(&two_nodes()), &MembershipChange::Evict { nodes, avoid: None }));
    let joining = noted(&change(&evicted, &MembershipChange::Admit { node: NodeId(2), incarnation: Incarnation(4) }));
    change(&joining, &MembershipChange::Serve { node: NodeId(2), epoch: joining.epoch })
}

#[test]
fn a_joined_node_counts_as_durable_once_its_syncs_have_reached_the_others() {
    let mut sequencer = sequencer_of(&with_one_durable());
    synced(&mut sequencer, 1, number(3, 9));
    assert_eq!(sequencer.durable(), number(3, 9));
    synced(&mut sequencer, 2, number(4, 0));
    // A restart could cut at (3,9), below the copy of node 2.
    assert_eq!(sequencer.durable_candidates().len(), 0);
    synced(&mut sequencer, 1, number(4, 0));
    assert_eq!(sequencer.durable_candidates(), [NodeId(2)].into_iter().collect());
    // From now on the durable number waits for it, although raft has not marked it.
    synced(&mut sequencer, 1, number(4, 3));
    assert_eq!(sequencer.durable(), number(4, 0));
    synced(&mut sequencer, 2, number(4, 2));
    assert_eq!(sequencer.durable(), number(4, 2));
}

#[test]
fn a_joined_node_whose_syncs_are_behind_does_not_count() {
    let mut sequencer = sequencer_of(&with_one_durable());
    synced(&mut sequencer, 1, number(4, 0));
    synced(&mut sequencer, 2, number(3, 7));
    assert_eq!((sequencer.durable(), sequencer.durable_candidates().len()), (number(4, 0), 0));
}

#[test]
fn a_group_without_a_durable_node_has_no_durable_number_until_raft_has_marked_one() {
    let serving = noted(&with_one_durable());
    let nodes = [NodeId(1)].into_iter().collect();
    let without = noted(&change(&serving, &MembershipChange::Evict { nodes, avoid: None }));
    let mut sequencer = Sequencer::new(&without, &|_| CommitNumber(0), Time(0));
    synced(&mut sequencer, 2, number(4, 9));
    assert_eq!(sequencer.durable_candidates().len(), 0);
    synced(&mut sequencer, 2, number(5, 0));
    assert_eq!((sequencer.durable_candidates().len(), sequencer.durable()), (1, CommitNumber(0)));
    let nodes = sequencer.durable_candidates();
    let marked = change(&without, &MembershipChange::MarkDurable { nodes, epoch: without.epoch });
    let mut sequencer = Sequencer::new(&marked, &|_| number(5, 0), Time(0));
    assert_eq!(sequencer.durable(), CommitNumber(0));
    synced(&mut sequencer, 2, number(5, 0));
    assert_eq!(sequencer.durable(), number(5, 0));
}

#[test]
fn groups_that_lost_their_durable_nodes_get_their_candidates_together() {
    let nodes = [(NodeId(1), 0), (NodeId(2), 0), (NodeId(3), 1), (NodeId(4), 1)];
    let chains = [[1, 2], [3, 4]].map(|chain| chain.map(NodeId).to_vec()).to_vec();
    let mut membership = noted(&Membership::create(&nodes, chains, NodeId(1)));
    for node in [2, 4].map(NodeId) {
        let nodes = [node].into_iter().collect();
        membership = noted(&change(&membership, &MembershipChange::Evict { nodes, avoid: None }));
        membership = noted(&change(&membership, &MembershipChange::Admit { node, incarnation: Incarnation(9) }));
        let epoch = membership.epoch;
        membership = noted(&change(&membership, &MembershipChange::Serve { node, epoch }));
    }
    let nodes = [NodeId(1), NodeId(3)].into_iter().collect();
    membership = change(&membership, &MembershipChange::Evict { nodes, avoid: None });
    let start = CommitNumber::start_of(membership.epoch);
    let mut sequencer = sequencer_of(&membership);
    synced(&mut sequencer, 2, start);
    assert!(sequencer.durable_candidates().is_empty());
    // The checkpoint of its copies has commits up to here.
    let newest = CommitNumber(start.0 + 5);
    synced(&mut sequencer, 4, newest);
    assert!(sequencer.durable_candidates().is_empty(), "a restart would cut below the copies of node 4");
    synced(&mut sequencer, 2, newest);
    assert_eq!(sequencer.durable_candidates(), [NodeId(2), NodeId(4)].into_iter().collect());
}

#[test]
fn a_node_of_a_group_without_a_mark_gets_one_beside_the_marks_of_other_groups() {
    let nodes = [(NodeId(1), 0), (NodeId(2), 0), (NodeId(3), 1)];
    let chains = vec![[1, 2].map(NodeId).to_vec(), vec![NodeId(3)]];
    let membership = noted(&Membership::create(&nodes, chains, NodeId(1)));
    let evict = |membership: &Membership, node| {
        let nodes = [NodeId(node)].into_iter().collect();
        noted(&change(membership, &MembershipChange::Evict { nodes, avoid: None }))
    };
    let admit = MembershipChange::Admit { node: NodeId(2), incarnation: Incarnation(9) };
    let joining = noted(&change(&evict(&membership, 2), &admit));
    let serving = noted(&change(&joining, &MembershipChange::Serve { node: NodeId(2), epoch: joining.epoch }));
    let membership = evict(&serving, 1);
    let mut sequencer = sequencer_of(&membership);
    let newest = CommitNumber(CommitNumber::start_of(membership.epoch).0 + 5);
    synced(&mut sequencer, 3, CommitNumber::start_of(membership.epoch));
    synced(&mut sequencer, 2, newest);
    assert!(sequencer.durable_candidates().is_empty());
    assert_eq!(sequencer.durable(), CommitNumber(0), "group 0 has no disk that counts");
    synced(&mut sequencer, 3, newest);
    assert_eq!(sequencer.durable_candidates(), [NodeId(2)].into_iter().collect());
}

#[test]
fn every_disk_is_wanted_also_that_of_a_node_without_a_part() {
    let mut sequencer = sequencer_of(&two_nodes());
    let awaiting = |counter| Decision { awaits_disk: true, ..decision(counter, &[1]) };
    request(&mut sequencer, 1, 1, vec![awaiting(7), decision(8, &[1])]);
    let message = decide(&mut sequencer, 2);
    assert_eq!((message.decisions.len(), message.wanted_on_disk), (0, number(1, 1)));
    // A node waits for its checkpoint.
    let report = Applied { epoch: Epoch(1), received: 1, wanted_on_disk: number(1, 2), ..Applied::default() };
    sequencer.on_applied(NodeId(2), &report, Time(0));
    assert_eq!(decide(&mut sequencer, 1).wanted_on_disk, number(1, 2));
}

#[test]
fn a_number_is_durable_when_the_disks_of_all_groups_have_it() {
    let nodes = [(NodeId(1), 0), (NodeId(2), 1)];
    let chains = vec![vec![NodeId(1)], vec![NodeId(2)]];
    let mut sequencer = sequencer_of(&Membership::create(&nodes, chains, NodeId(1)));
    synced(&mut sequencer, 1, number(1, 0));
    assert_eq!(sequencer.durable(), CommitNumber(0));
    synced(&mut sequencer, 2, number(1, 0));
    assert_eq!(sequencer.durable(), number(1, 0));
}
