//! The change to a new epoch: reports of all members, void numbers, missing decisions.

use junctor_kernel::Time;

use super::*;
use crate::epoch::EpochChange;

fn report(epoch: u32, passed: CommitNumber, decisions: Vec<Decision>) -> Installed {
    Installed { epoch: Epoch(epoch), passed, durable: CommitNumber(0), decisions }
}

/// Node 3 of three replicas is evicted, in epoch 2.
fn two_of_three() -> Arc<Membership> {
    let nodes = [(NodeId(1), 0), (NodeId(2), 0), (NodeId(3), 0)];
    let created = noted(&Membership::create(&nodes, vec![[1, 2, 3].map(NodeId).to_vec()], NodeId(3)));
    let nodes = [NodeId(3)].into_iter().collect();
    change(&created, &MembershipChange::Evict { nodes, avoid: None })
}

fn installed(
    epoch_change: &mut EpochChange,
    node: u8,
    report: Installed,
) -> Option<crate::epoch::epoch_change::EpochStart> {
    let incarnation = Incarnation(u32::from(node));
    epoch_change.on_installed(NodeId(node), incarnation, report, Time(0))
}

#[test]
fn an_epoch_starts_with_what_any_member_knows() {
    let mut epoch_change = EpochChange::new(two_of_three());
    let known = |counters: &[u64]| counters.iter().map(|it| numbered(number(1, *it), &[1, 2])).collect::<Vec<_>>();
    assert!(installed(&mut epoch_change, 1, report(2, number(1, 3), known(&[1, 3]))).is_none());
    assert_eq!(epoch_change.missing().collect::<Vec<_>>(), [NodeId(2)]);
    let start = installed(&mut epoch_change, 2, report(2, number(1, 1), known(&[1]))).unwrap();
    // Nobody knows number 2: it is void.
    assert_eq!(start.prefix, number(1, 3));
    let missing: Vec<_> = start.messages.iter().map(|(node, it)| (node.0, numbers(&it.missing))).collect();
    assert_eq!(missing, [(1, vec![]), (2, vec![number(1, 3)])]);
    assert_eq!(start.sequencer.last_number(), number(2, 0));
}

#[test]
fn a_member_gets_only_decisions_that_concern_it() {
    let mut epoch_change = EpochChange::new(two_of_three());
    let decisions = vec![numbered(number(1, 1), &[1, 3])];
    installed(&mut epoch_change, 1, report(2, number(1, 1), decisions));
    let start = installed(&mut epoch_change, 2, report(2, CommitNumber(0), Vec::new())).unwrap();
    assert_eq!(start.messages[1].1.missing, []);
}

#[test]
fn reports_of_other_epochs_of_other_lives_and_repeated_ones_are_ignored() {
    let mut epoch_change = EpochChange::new(two_of_three());
    assert!(installed(&mut epoch_change, 2, report(1, number(1, 9), Vec::new())).is_none());
    assert!(installed(&mut epoch_change, 3, report(2, number(1, 9), Vec::new())).is_none());
    let other_life = Incarnation(9);
    epoch_change.on_installed(NodeId(1), other_life, report(2, number(1, 9), Vec::new()), Time(0));
    installed(&mut epoch_change, 1, report(2, number(1, 1), Vec::new()));
    installed(&mut epoch_change, 1, report(2, number(1, 8), Vec::new()));
    let start = installed(&mut epoch_change, 2, report(2, number(1, 2), Vec::new())).unwrap();
    assert_eq!(start.prefix, number(1, 2));
}

#[test]
fn a_decision_of_an_earlier_life_does_not_reach_the_next_one() {
    // Node 3 is admitted in epoch 3. The decision of epoch 1 names its earlier life.
    let mut epoch_change = EpochChange::new(with_joining());
    let decisions = || vec![numbered(number(1, 1), &[1, 2, 3])];
    installed(&mut epoch_change, 1, report(3, number(1, 1), decisions()));
    installed(&mut epoch_change, 2, report(3, number(1, 1), decisions()));
    let joined = Incarnation(4);
    let start = epoch_change.on_installed(NodeId(3), joined, report(3, CommitNumber(0), Vec::new()), Time(0)).unwrap();
    assert!(start.messages.iter().all(|(_, message)| message.missing.is_empty()));
}
