//! Counts the instructions of the sequencer and of the mirror: for a request, for a destination, for a
//! report.
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*phase_*' target/release/examples/sequencer_cost 8 2 32 1000
//! callgrind_annotate callgrind.out.*
//! ```
//!
//! The arguments: nodes, replicas of a transaction, requests in a batch of one node, rounds. In a round,
//! every node sends a batch, gets its decisions and answers.

use std::hint::black_box;
use std::sync::Arc;

use junctor_cluster::epoch::mirror::Order;
use junctor_cluster::epoch::{Mirror, Sequencer};
use junctor_cluster::membership::Membership;
use junctor_kernel::{NodeId, Time};
use junctor_model::id::{CommitNumber, GlobalTransactionId, Incarnation};
use junctor_signals::commit_transaction::TransactionPart;
use junctor_signals::decide::{Applied, Decide};
use junctor_signals::start_epoch::StartEpoch;
use junctor_signals::take_number::{Decision, Participant, Participants, TakeNumber};

#[inline(never)]
fn phase_number(sequencer: &mut Sequencer, from: NodeId, message: TakeNumber) {
    sequencer.on_take_number(from, message);
}

#[inline(never)]
fn phase_decide(sequencer: &mut Sequencer, node: NodeId) -> Option<Decide> {
    sequencer.next_decide(node)
}

#[inline(never)]
fn phase_report(sequencer: &mut Sequencer, from: NodeId, report: &Applied) {
    sequencer.on_applied(from, report, Time(0));
}

#[inline(never)]
fn phase_mirror(mirror: &mut Mirror, message: &mut Decide, orders: &mut Vec<Order>) {
    mirror.on_decide(message, orders);
    for order in orders.drain(..) {
        if let Order::CommitTransaction { position, .. } = order {
            mirror.on_ldm_applied(position);
        }
    }
}

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|it| it.parse().ok()).collect();
    let [nodes, replicas, batch, rounds] = arguments[..] else {
        return eprintln!("arguments: nodes, replicas, requests in a batch, rounds");
    };
    let (nodes, replicas) = (nodes as u8, replicas as u8);
    let ids: Vec<(NodeId, u8)> = (0..nodes).map(|node| (NodeId(node), node / replicas)).collect();
    let chains = ids.chunks(usize::from(replicas)).map(|group| group.iter().map(|it| it.0).collect()).collect();
    let membership = Arc::new(Membership::create(&ids, chains, NodeId(0)));
    let mut sequencer = Sequencer::new(&membership, &|_| CommitNumber(0), Time(0));
    sequencer.open();
    sequencer.on_leases_over(membership.epoch);
    let mut mirrors: Vec<Mirror> = membership
        .members()
        .map(|record| {
            let mut mirror = Mirror::new(record.node, record.incarnation, CommitNumber(0));
            mirror.on_install_membership(&membership);
            let start = StartEpoch { epoch: membership.epoch, prefix: CommitNumber(0), missing: Vec::new() };
            mirror.on_start_epoch(start, &mut Vec::new());
            mirror
        })
        .collect();
    let mut orders = Vec::new();
    let mut sent = 0_u64;
    for round in 0..rounds {
        for node in 0..nodes {
            let group = node / replicas * replicas;
            let participant = |node| Participant { node: NodeId(node), part: TransactionPart::Rows, ldm: 0 };
            let participants: Vec<Participant> = (group..group + replicas).map(participant).collect();
            let request = |counter| Decision {
                number: CommitNumber(0),
                transaction: GlobalTransactionId { counter, incarnation: Incarnation(1), tc: 0, node },
                participants: Participants::new(&participants),
                awaits_disk: false,
            };
            let requests = (0..batch).map(request).collect();
            let message = TakeNumber { epoch: membership.epoch, batch: round + 1, requests };
            phase_number(&mut sequencer, NodeId(node), message);
        }
        let mut has_news = true;
        while std::mem::take(&mut has_news) {
            for node in 0..nodes {
                let mirror = &mut mirrors[usize::from(node)];
                while let Some(mut message) = phase_decide(&mut sequencer, NodeId(node)) {
                    sent += message.decisions.len() as u64;
                    phase_mirror(mirror, &mut message, &mut orders);
                    sequencer.recycle(message.decisions);
                    has_news = true;
                }
                if let Some(report) = mirror.next_applied() {
                    phase_report(&mut sequencer, NodeId(node), &report);
                }
            }
        }
    }
    black_box(&sequencer);
    println!("{} requests, {sent} destinations", rounds * batch * u64::from(nodes));
}
