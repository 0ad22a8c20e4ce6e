//! The mirror: decisions to the blocks, reports to the sequencer, the end and the start of epochs.

use super::*;
use junctor_signals::ask_outcome::Outcome;

use crate::epoch::Mirror;
use crate::epoch::mirror::Order;

fn start(epoch: u32, prefix: CommitNumber, missing: Vec<Decision>) -> StartEpoch {
    StartEpoch { epoch: Epoch(epoch), prefix, missing }
}

/// A mirror of node 2 that has started the epoch of `membership`.
fn mirror(membership: &Arc<Membership>) -> Mirror {
    let record = membership.record(NodeId(2)).unwrap();
    let mut mirror = Mirror::new(NodeId(2), record.incarnation, CommitNumber(0));
    assert!(mirror.on_install_membership(membership).is_some());
    mirror.on_start_epoch(start(membership.epoch.0, CommitNumber(0), Vec::new()), &mut Vec::new());
    mirror
}

fn decide(batch: u64, upto: u64, decisions: Vec<Decision>) -> Decide {
    Decide {
        epoch: Epoch(1),
        batch,
        batch_numbered: 0,
        upto: number(1, upto),
        others: CommitNumber(0),
        least_applied: CommitNumber(0),
        confirmed: CommitNumber(0),
        durable: CommitNumber(0),
        horizon: CommitNumber(0),
        wanted_on_disk: CommitNumber(0),
        decisions,
    }
}

fn on_decide(mirror: &mut Mirror, mut message: Decide) -> Vec<Order> {
    let mut orders = Vec::new();
    mirror.on_decide(&mut message, &mut orders);
    orders
}

fn positions(orders: &[Order]) -> Vec<u64> {
    let position = |order: &Order| match order {
        Order::CommitTransaction { position, .. } => Some(*position),
        _ => None,
    };
    orders.iter().filter_map(position).collect()
}

#[test]
fn decisions_pass_to_the_ldms_and_to_the_tc_of_the_node() {
    let membership = Arc::new(two_nodes());
    let mut mirror = mirror(&membership);
    let own = GlobalTransactionId { counter: 5, incarnation: Incarnation(2), tc: 3, node: 2 };
    let lock_only = Participant { node: NodeId(2), part: TransactionPart::Locks, ldm: 6 };
    let writer = Participant { node: NodeId(2), part: TransactionPart::Rows, ldm: 4 };
    let participants = Participants::new(&[writer, lock_only]);
    let decision = Decision { transaction: own, participants, ..numbered(number(1, 2), &[]) };
    let earlier_life = GlobalTransactionId { incarnation: Incarnation(1), ..own };
    let other = Decision { transaction: earlier_life, ..numbered(number(1, 3), &[2]) };
    let orders = on_decide(&mut mirror, decide(1, 3, vec![decision, other]));
    let commit = |ldm, position, transaction, counter, part| Order::CommitTransaction {
        ldm,
        position,
        transaction,
        number: number(1, counter),
        participants: 1,
        part,
    };
    let expected = [
        commit(4, 0, own, 2, TransactionPart::Rows),
        commit(6, 0, own, 2, TransactionPart::Locks),
        Order::NumberTaken { tc: 3, transaction: own, number: number(1, 2) },
        commit(0, 1, earlier_life, 3, TransactionPart::Rows),
    ];
    assert_eq!(orders, expected);
}

#[test]
fn applied_is_below_the_first_decision_that_an_ldm_has_not_applied() {
    let mut mirror = mirror(&Arc::new(two_nodes()));
    assert_eq!(mirror.applied(), number(1, 0));
    let decisions = [3, 5].map(|counter| numbered(number(1, counter), &[2])).to_vec();
    let orders = on_decide(&mut mirror, decide(1, 8, decisions));
    assert_eq!(mirror.applied(), number(1, 2));
    let [first, second] = positions(&orders)[..] else { panic!("{orders:?}") };
    mirror.on_ldm_applied(second);
    assert_eq!(mirror.applied(), number(1, 2));
    mirror.on_ldm_applied(first);
    assert_eq!(mirror.applied(), number(1, 8));
}

#[test]
fn stable_is_the_least_of_the_own_applied_number_and_of_the_others() {
    let mut mirror = mirror(&Arc::new(two_nodes()));
    on_decide(&mut mirror, Decide { others: number(1, 3), ..decide(1, 5, Vec::new()) });
    assert_eq!((mirror.applied(), mirror.stable()), (number(1, 5), number(1, 3)));
    on_decide(&mut mirror, Decide { others: number(1, 9), ..decide(2, 5, Vec::new()) });
    assert_eq!(mirror.stable(), number(1, 5));
}

#[test]
fn old_and_repeated_messages_are_ignored() {
    let membership = Arc::new(two_nodes());
    let mut mirror = mirror(&membership);
    let message = decide(1, 1, vec![numbered(number(1, 1), &[2])]);
    assert_eq!(on_decide(&mut mirror, message.clone()).len(), 1);
    assert_eq!(on_decide(&mut mirror, message), []);
    let nodes = [NodeId(1)].into_iter().collect();
    let next = change(&noted(&membership), &MembershipChange::Evict { nodes, avoid: None });
    mirror.on_install_membership(&next);
    // The sequencer of the epoch before may be alive.
    assert_eq!(on_decide(&mut mirror, decide(2, 2, vec![numbered(number(1, 2), &[2])])), []);
    assert_eq!(mirror.next_applied(), None);
}

#[test]
fn a_report_is_sent_for_news_or_for_a_second_message_without_an_answer() {
    let mut mirror = mirror(&Arc::new(two_nodes()));
    assert_eq!(mirror.next_applied().map(|it| it.applied), Some(number(1, 0)));
    assert_eq!(mirror.next_applied(), None);
    on_decide(&mut mirror, Decide { confirmed: number(1, 0), ..decide(1, 0, Vec::new()) });
    assert_eq!(mirror.next_applied(), None);
    on_decide(&mut mirror, decide(2, 0, Vec::new()));
    assert_eq!(mirror.next_applied().map(|it| it.received), Some(2));
    on_decide(&mut mirror, decide(3, 4, Vec::new()));
    assert_eq!(mirror.next_applied().map(|it| (it.received, it.applied)), Some((3, number(1, 4))));
}

#[test]
fn the_end_of_a_snapshot_is_reported_with_the_next_news_or_when_everything_is_told() {
    let mut mirror = mirror(&Arc::new(two_nodes()));
    on_decide(&mut mirror, Decide { others: number(1, 9), ..decide(1, 5, Vec::new()) });
    mirror.set_oldest_snapshot(Some(number(1, 2)));
    assert_eq!(mirror.next_applied().map(|it| it.oldest_snapshot), Some(number(1, 2)));
    mirror.set_oldest_snapshot(Some(number(1, 4)));
    assert_eq!(mirror.next_applied(), None);
    mirror.tell_all();
    assert_eq!(mirror.next_applied().map(|it| it.oldest_snapshot), Some(number(1, 4)));
    mirror.tell_all();
    assert_eq!(mirror.next_applied(), None, "nothing is new");
    mirror.set_oldest_snapshot(Some(number(1, 5)));
    on_decide(&mut mirror, Decide { others: number(1, 9), ..decide(2, 6, Vec::new()) });
    assert_eq!(mirror.next_applied().map(|it| (it.applied, it.oldest_snapshot)), Some((number(1, 6), number(1, 5))));
}

#[test]
fn one_batch_of_requests_is_under_way_and_requests_of_other_epochs_are_dropped() {
    let membership = Arc::new(two_nodes());
    let mut mirror = mirror(&membership);
    mirror.request_number(Epoch(0), decision(1, &[2]));
    assert_eq!(mirror.next_take_number(), None);
    mirror.request_number(Epoch(1), decision(2, &[2]));
    assert_eq!(mirror.next_take_number().map(|it| (it.batch, it.requests.len())), Some((1, 1)));
    mirror.request_number(Epoch(1), decision(3, &[2]));
    mirror.request_number(Epoch(1), decision(4, &[2]));
    assert_eq!(mirror.next_take_number(), None);
    on_decide(&mut mirror, Decide { batch_numbered: 1, ..decide(1, 0, Vec::new()) });
    assert_eq!(mirror.next_take_number().map(|it| (it.batch, it.requests.len())), Some((2, 2)));
    mirror.request_number(Epoch(1), decision(5, &[2]));
    let nodes = [NodeId(1)].into_iter().collect();
    let next = change(&noted(&membership), &MembershipChange::Evict { nodes, avoid: None });
    mirror.on_install_membership(&next);
    mirror.on_start_epoch(start(2, number(1, 0), Vec::new()), &mut Vec::new());
    assert_eq!(mirror.next_take_number(), None);
}

#[test]
fn the_report_of_an_installed_membership_has_what_others_may_lack() {
    let membership = noted(&two_nodes());
    let mut mirror = mirror(&membership);
    let decisions: Vec<Decision> = (1..=3).map(|counter| numbered(number(1, counter), &[2])).collect();
    let orders = on_decide(&mut mirror, decide(1, 3, decisions));
    mirror.on_ldm_applied(positions(&orders)[0]);
    mirror.on_ldm_applied(positions(&orders)[1]);
    on_decide(&mut mirror, Decide { least_applied: number(1, 1), ..decide(2, 4, Vec::new()) });
    let nodes = [NodeId(1)].into_iter().collect();
    let next = change(&membership, &MembershipChange::Evict { nodes, avoid: None });
    let report = mirror.on_install_membership(&next).unwrap();
    // The last passed number counts, although A is behind it.
    assert_eq!((report.passed, mirror.applied()), (number(1, 4), number(1, 2)));
    assert_eq!(numbers(&report.decisions), [number(1, 2), number(1, 3)]);
    assert_eq!(mirror.on_install_membership(&next), None);
    assert_eq!(mirror.on_install_membership(&membership), None);
}

#[test]
fn an_epoch_starts_behind_the_missing_decisions() {
    let membership = noted(&two_nodes());
    let mut mirror = mirror(&membership);
    let passed = on_decide(&mut mirror, decide(1, 1, vec![numbered(number(1, 1), &[2])]));
    let nodes = [NodeId(1)].into_iter().collect();
    let next = change(&membership, &MembershipChange::Evict { nodes, avoid: None });
    mirror.on_install_membership(&next);
    let mut orders = Vec::new();
    mirror.on_start_epoch(start(1, number(1, 1), Vec::new()), &mut orders);
    assert_eq!(orders, []);
    mirror.on_start_epoch(start(2, number(1, 3), vec![numbered(number(1, 2), &[2])]), &mut orders);
    assert_eq!(orders.len(), 2);
    assert_eq!(orders[1], Order::StartEpoch { epoch: Epoch(2), prefix: number(1, 3) });
    let mut again = Vec::new();
    mirror.on_start_epoch(start(2, number(1, 3), Vec::new()), &mut again);
    assert_eq!((again, mirror.started()), (Vec::new(), Epoch(2)));
    // A is one of the new epoch when the decisions of the old one are applied.
    assert_eq!(mirror.applied(), number(1, 0));
    mirror.on_ldm_applied(positions(&orders)[0]);
    mirror.on_ldm_applied(positions(&passed)[0]);
    assert_eq!(mirror.applied(), number(2, 0));
}

#[test]
fn a_node_chooses_no_snapshot_before_its_stable_number_is_one_of_its_first_serving_epoch() {
    let joining = with_joining();
    let record = joining.record(NodeId(3)).unwrap();
    let mut mirror = Mirror::new(NodeId(3), record.incarnation, number(1, 4));
    mirror.on_install_membership(&joining);
    mirror.on_start_epoch(start(3, number(1, 9), Vec::new()), &mut Vec::new());
    let message = |epoch, others| Decide { epoch: Epoch(epoch), others, ..decide(1, 0, Vec::new()) };
    on_decide(&mut mirror, Decide { upto: number(3, 0), ..message(3, number(3, 0)) });
    assert_eq!((mirror.stable(), mirror.snapshot()), (number(3, 0), None));
    let joining = noted(&joining);
    let serving = change(&joining, &MembershipChange::Serve { node: NodeId(3), epoch: joining.epoch });
    mirror.on_install_membership(&serving);
    mirror.on_start_epoch(start(4, number(3, 0), Vec::new()), &mut Vec::new());
    assert_eq!(mirror.snapshot(), None);
    on_decide(&mut mirror, Decide { upto: number(4, 2), ..message(4, number(4, 1)) });
    assert_eq!(mirror.snapshot(), Some(number(4, 1)));
}

#[test]
fn an_evicted_life_reports_nothing() {
    let membership = noted(&two_nodes());
    let mut mirror = mirror(&membership);
    let nodes = [NodeId(2)].into_iter().collect();
    let next = change(&membership, &MembershipChange::Evict { nodes, avoid: None });
    assert_eq!(mirror.on_install_membership(&next), None);
}

#[test]
#[should_panic(expected = "no snapshot is below the horizon")]
fn a_snapshot_below_the_horizon_stops_the_node() {
    junctor_kernel::invariant::panic_on_failure();
    let mut mirror = mirror(&Arc::new(two_nodes()));
    mirror.set_oldest_snapshot(Some(number(1, 2)));
    on_decide(&mut mirror, Decide { horizon: number(1, 3), ..decide(1, 5, Vec::new()) });
}

#[test]
fn a_node_that_joins_has_no_snapshot_below_the_horizon_whatever_its_log_had() {
    junctor_kernel::invariant::panic_on_failure();
    let joining = with_joining();
    let record = joining.record(NodeId(3)).unwrap();
    let mut mirror = Mirror::new(NodeId(3), record.incarnation, number(1, 4));
    mirror.on_install_membership(&joining);
    mirror.on_start_epoch(start(3, number(2, 9), Vec::new()), &mut Vec::new());
    mirror.set_oldest_snapshot(Some(number(1, 4)));
    // A serving node has not applied the start of the epoch for so long that the horizon follows the others.
    let message = Decide { epoch: Epoch(3), upto: number(3, 0), horizon: number(2, 9), ..decide(1, 0, Vec::new()) };
    on_decide(&mut mirror, message);
    assert_eq!((mirror.horizon(), mirror.snapshot()), (number(2, 9), None));
    // It serves later, and its first snapshot is above.
    let joining = noted(&joining);
    let serving = change(&joining, &MembershipChange::Serve { node: NodeId(3), epoch: joining.epoch });
    mirror.on_install_membership(&serving);
    mirror.on_start_epoch(start(4, number(3, 0), Vec::new()), &mut Vec::new());
    mirror.set_oldest_snapshot(Some(number(1, 4)));
    assert_eq!(mirror.snapshot(), None);
}

#[test]
fn a_node_tells_the_next_sequencer_what_is_wanted_on_disk() {
    let membership = noted(&two_nodes());
    let mut mirror = mirror(&membership);
    on_decide(&mut mirror, Decide { wanted_on_disk: number(1, 4), ..decide(1, 5, Vec::new()) });
    assert_eq!(mirror.next_applied().unwrap().wanted_on_disk, CommitNumber(0), "the sequencer knows it");
    let nodes = [NodeId(1)].into_iter().collect();
    let next = change(&membership, &MembershipChange::Evict { nodes, avoid: None });
    mirror.on_install_membership(&next);
    mirror.on_start_epoch(start(next.epoch.0, number(1, 5), Vec::new()), &mut Vec::new());
    assert_eq!(mirror.next_applied().unwrap().wanted_on_disk, number(1, 4));
}

/// A client whose tc was at node 1 asks node 2 (rule 3).
#[test]
fn the_outcome_of_a_commit_is_told_once_every_snapshot_shows_it() {
    let membership = Arc::new(two_nodes());
    let mut mirror = mirror(&membership);
    let [decided, void] = [2, 3].map(|counter| numbered(number(1, counter), &[2]).transaction);
    let after = number(1, 1);
    let orders = on_decide(&mut mirror, decide(1, 2, vec![numbered(number(1, 2), &[2])]));
    assert_eq!(mirror.outcome(decided, after), None, "another node may choose a snapshot without it");
    assert_eq!(mirror.outcome(void, after), None, "its tc may still ask for a number");
    positions(&orders).into_iter().for_each(|position| mirror.on_ldm_applied(position));
    let nodes = [NodeId(1)].into_iter().collect();
    let next = change(&noted(&membership), &MembershipChange::Evict { nodes, avoid: None });
    mirror.on_install_membership(&next);
    mirror.on_start_epoch(start(2, number(1, 2), Vec::new()), &mut Vec::new());
    assert_eq!(mirror.outcome(decided, after), None, "the leases of node 1 may be in force");
    assert_eq!(mirror.outcome(void, after), Some(Outcome::RolledBack));
    assert_eq!(mirror.outcome(void, CommitNumber(0)), Some(Outcome::Unknown), "node 2 may have joined since");
    let upto = CommitNumber::start_of(Epoch(2));
    let over = Decide { epoch: Epoch(2), upto, others: upto, confirmed: upto, ..decide(1, 0, Vec::new()) };
    on_decide(&mut mirror, over);
    assert_eq!(mirror.outcome(decided, after), Some(Outcome::Committed));
}

#[test]
fn the_outcome_of_a_commit_that_awaits_the_disk_is_told_once_all_disks_have_it() {
    let membership = Arc::new(two_nodes());
    let mut mirror = mirror(&membership);
    let decision = Decision { awaits_disk: true, ..numbered(number(1, 2), &[2]) };
    let (transaction, after) = (decision.transaction, number(1, 1));
    let orders = on_decide(&mut mirror, decide(1, 2, vec![decision]));
    positions(&orders).into_iter().for_each(|position| mirror.on_ldm_applied(position));
    let confirmed = number(1, 2);
    let nodes = [NodeId(1)].into_iter().collect();
    let next = change(&noted(&membership), &MembershipChange::Evict { nodes, avoid: None });
    mirror.on_install_membership(&next);
    mirror.on_start_epoch(start(2, confirmed, Vec::new()), &mut Vec::new());
    let upto = CommitNumber::start_of(Epoch(2));
    let over = Decide { epoch: Epoch(2), upto, others: upto, confirmed: upto, ..decide(1, 0, Vec::new()) };
    on_decide(&mut mirror, over.clone());
    assert_eq!(mirror.outcome(transaction, after), None, "a restart of all nodes would lose it");
    on_decide(&mut mirror, Decide { durable: confirmed, batch: 2, ..over });
    assert_eq!(mirror.outcome(transaction, after), Some(Outcome::Committed));
}
