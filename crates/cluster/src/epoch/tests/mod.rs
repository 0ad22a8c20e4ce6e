//! Tests of each rule of an epoch.

mod epoch_change;
mod mirror;
mod sequencer;

use std::sync::Arc;

use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation};

use junctor_signals::commit_transaction::TransactionPart;
use junctor_signals::decide::{Applied, Decide};
use junctor_signals::start_epoch::{Installed, StartEpoch};
use junctor_signals::take_number::{Decision, Participant, Participants, TakeNumber};

use crate::membership::{Membership, MembershipChange};

/// Node 1 and 2 are replicas of a group; node 1 is the sequencer.
fn two_nodes() -> Membership {
    let nodes = [(NodeId(1), 0), (NodeId(2), 0)];
    Membership::create(&nodes, vec![vec![NodeId(1), NodeId(2)]], NodeId(1))
}

fn change(membership: &Membership, change: &MembershipChange) -> Arc<Membership> {
    Arc::new(membership.apply(change).unwrap())
}

fn noted(membership: &Membership) -> Arc<Membership> {
    change(membership, &MembershipChange::NoteStarted { epoch: membership.epoch })
}

/// Node 3 joins the group of two nodes, in epoch 2.
fn with_joining() -> Arc<Membership> {
    let nodes = [(NodeId(1), 0), (NodeId(2), 0), (NodeId(3), 0)];
    let chain = [1, 2, 3].map(NodeId).to_vec();
    let created = noted(&Membership::create(&nodes, vec![chain], NodeId(1)));
    let nodes = [NodeId(3)].into_iter().collect();
    let evicted = noted(&change(&created, &MembershipChange::Evict { nodes, avoid: None }));
    change(&evicted, &MembershipChange::Admit { node: NodeId(3), incarnation: Incarnation(4) })
}

fn number(epoch: u32, counter: u64) -> CommitNumber {
    CommitNumber::new(Epoch(epoch), counter)
}

/// A transaction of tc 0 of node 1 that has written at ldm 0 of these nodes.
fn decision(counter: u64, nodes: &[u8]) -> Decision {
    let participant = |node: &u8| Participant { node: NodeId(*node), part: TransactionPart::Rows, ldm: 0 };
    let participants: Vec<Participant> = nodes.iter().map(participant).collect();
    Decision {
        number: CommitNumber(0),
        transaction: GlobalTransactionId { counter, incarnation: Incarnation(1), tc: 0, node: 1 },
        participants: Participants::new(&participants),
        awaits_disk: false,
    }
}

fn numbered(number: CommitNumber, nodes: &[u8]) -> Decision {
    Decision { number, ..decision(number.0, nodes) }
}

fn numbers(decisions: &[Decision]) -> Vec<CommitNumber> {
    decisions.iter().map(|decision| decision.number).collect()
}

#[test]
fn participants_beyond_the_few_are_kept_too() {
    let many: Vec<Participant> =
        (0..20).map(|ldm| Participant { node: NodeId(1), part: TransactionPart::Rows, ldm }).collect();
    assert_eq!(Participants::new(&many).as_slice(), many);
    assert_eq!(Participants::new(&many[..7]).as_slice(), &many[..7]);
    assert!(!decision(1, &[]).concerns(NodeId(2)) && decision(1, &[]).concerns(NodeId(1)));
}
