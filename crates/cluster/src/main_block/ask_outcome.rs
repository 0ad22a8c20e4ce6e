//! The outcomes of commits whose tc is lost (rule 3 of `docs/decisions/0016-cluster-models.md`). Main of a
//! node without data asks the data nodes; main of a data node answers from the last decisions of its mirror.

use junctor_kernel::{Address, Duration, NodeId, Outbox, Time};
use junctor_model::id::{GlobalTransactionId, TransactionId};
use junctor_signals::ask_outcome::{AskOutcome, AskOutcomeReply, Outcome, ResolveCommit, ResolveCommitReply};
use junctor_signals::{MainSignal, Module, Signal, SqlSignal};

use super::block::MainBlock;
use crate::membership::NodeSet;

/// Maximum number of commits that wait for their outcome at a node. Further ones stay unknown.
const WAITING_MAX: usize = 1024;
/// Time between two requests.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// Time after which an outcome stays unknown.
const ANSWER_WAIT_MAX: Duration = Duration::from_seconds(10);
/// Maximum number of requests that one signal or timer sends.
const SENT_MAX: usize = 24;

/// The commits whose outcome somebody wants to know.
#[derive(Debug, Default)]
pub(super) struct AskedOutcomes {
    /// Of sessions of this node.
    own: Vec<OwnCommit>,
    last_id: u64,
    /// On a data node: the requests of other nodes that cannot be answered yet.
    pub(super) others: Vec<(NodeId, AskOutcome)>,
}

#[derive(Debug)]
struct OwnCommit {
    ask: AskOutcome,
    asked_by: ResolveCommit,
    since: Time,
    sent: Time,
    answered: NodeSet,
    /// The nodes that would know it and do not.
    without: NodeSet,
    /// Number of node groups when it was asked. A group that is removed since may have had a part in it.
    groups: u8,
}

impl AskedOutcomes {
    pub fn new(first_number: u64) -> AskedOutcomes {
        AskedOutcomes { last_id: first_number, ..AskedOutcomes::default() }
    }
}

impl MainBlock {
    /// A sql block of this node wants to know an outcome.
    pub(super) fn on_resolve_commit(&mut self, signal: ResolveCommit, now: Time, outbox: &mut Outbox<Signal>) {
        if self.outcomes.own.len() >= WAITING_MAX {
            return resolve(&signal, Outcome::Unknown, outbox);
        }
        self.outcomes.last_id += 1;
        let transaction = GlobalTransactionId {
            counter: signal.transaction.0 & ((1 << TransactionId::COUNTER_BITS) - 1),
            incarnation: signal.incarnation,
            tc: signal.transaction.tc(),
            node: signal.transaction.node(),
        };
        let ask = AskOutcome { id: self.outcomes.last_id, transaction, after: signal.after };
        let (answered, without) = (NodeSet::EMPTY, NodeSet::EMPTY);
        let groups = self.membership().map_or(0, |membership| membership.open_groups);
        let own = OwnCommit { ask, asked_by: signal, since: now, sent: now, answered, without, groups };
        self.outcomes.own.push(own);
        let last = self.outcomes.own.len() - 1;
        self.ask_outcome(last, now, outbox);
    }

    /// Asks the data nodes that serve and are linked. Returns how many.
    fn ask_outcome(&mut self, index: usize, now: Time, outbox: &mut Outbox<Signal>) -> usize {
        let Some((member, membership)) = self.member.as_ref().zip(self.membership().cloned()) else { return 0 };
        let usable = membership.serving().filter(|it| member.linked_life(it.node) == Some(it.incarnation));
        let asked: NodeSet = usable.map(|it| it.node).collect();
        let commit = &mut self.outcomes.own[index];
        commit.sent = now;
        let mut count = 0;
        for node in asked.without(&commit.answered).iter() {
            let to = Address::new(node, Module::Main, 0);
            outbox.send(to, Signal::Main(MainSignal::AskOutcome(commit.ask)));
            count += 1;
        }
        count
    }

    /// Asks again, because nodes may have left or come, and gives up what has waited for long.
    pub(super) fn ask_outcomes_again(&mut self, now: Time, outbox: &mut Outbox<Signal>) {
        let mut sent = 0;
        for index in (0..self.outcomes.own.len()).rev() {
            let commit = &self.outcomes.own[index];
            if sent >= SENT_MAX {
                return;
            }
            if now.since(commit.since) >= ANSWER_WAIT_MAX {
                sent += 1;
                let commit = self.outcomes.own.swap_remove(index);
                resolve(&commit.asked_by, Outcome::Unknown, outbox);
            } else if now.since(commit.sent) >= ASK_AGAIN {
                sent += self.ask_outcome(index, now, outbox);
            }
        }
    }

    /// A data node has told what it knows.
    pub(super) fn on_ask_outcome_reply(&mut self, from: NodeId, reply: AskOutcomeReply, outbox: &mut Outbox<Signal>) {
        let Some(membership) = self.membership().cloned() else { return };
        let Some(index) = self.outcomes.own.iter().position(|commit| commit.ask.id == reply.id) else { return };
        let commit = &mut self.outcomes.own[index];
        commit.answered.insert(from);
        if reply.outcome == Outcome::RolledBack {
            commit.without.insert(from);
        }
        let is_known = |group| membership.nodes.iter().any(|it| it.group == group && commit.without.contains(it.node));
        let outcome = match reply.outcome {
            Outcome::Committed => Outcome::Committed,
            // Each group that may have a part in it must say so.
            _ if membership.open_groups >= commit.groups && membership.groups().all(is_known) => Outcome::RolledBack,
            _ if membership.serving().all(|it| commit.answered.contains(it.node)) => Outcome::Unknown,
            _ => return,
        };
        let commit = self.outcomes.own.swap_remove(index);
        resolve(&commit.asked_by, outcome, outbox);
    }

    /// Another node wants to know an outcome.
    pub(super) fn on_ask_outcome(&mut self, from: NodeId, ask: AskOutcome, outbox: &mut Outbox<Signal>) {
        let others = &mut self.outcomes.others;
        others.retain(|(node, earlier)| (*node, earlier.id) != (from, ask.id));
        if others.len() < WAITING_MAX {
            others.push((from, ask));
        }
        self.schedule_epochs(outbox);
    }
}

fn resolve(signal: &ResolveCommit, outcome: Outcome, outbox: &mut Outbox<Signal>) {
    let reply = ResolveCommitReply { operation: signal.operation, outcome };
    outbox.send(signal.reply_to, Signal::Sql(SqlSignal::ResolveCommitReply(reply)));
}
