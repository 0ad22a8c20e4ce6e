//! Hot path: at most 60 instructions a decision.
//!
//! The mirror of a data node: receives the decisions of the sequencer, passes them in order to the blocks of
//! the node, and reports what they have applied. It also collects the node's requests for numbers.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{NodeId, require};
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation};

use junctor_signals::ask_outcome::Outcome;
use junctor_signals::commit_transaction::TransactionPart;
use junctor_signals::decide::{Applied, Decide};
use junctor_signals::start_epoch::{Installed, StartEpoch};
use junctor_signals::take_number::{Decision, TakeNumber};

use super::outcomes::{Outcomes, Remembered};
use crate::membership::{Membership, NodeRecord};

/// Unanswered messages of the sequencer that the node answers even without news. The sequencer may have one
/// more on its way.
const ANSWERED_WITHOUT_NEWS: u64 = 2;

/// A decision that was passed to the blocks of the node.
#[derive(Clone, Debug)]
struct Passed {
    decision: Decision,
    /// Ldms that have written and have not applied it.
    outstanding: u16,
}

/// An order to a block of the own node. Orders reach each block in the order in which they were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// To an ldm: the transaction has this number. For an ldm with versions, [`Mirror::on_ldm_applied`] gets
    /// the position when it has applied them.
    CommitTransaction {
        /// The ldm.
        ldm: u16,
        /// Identifies the decision at the mirror.
        position: u64,
        /// The transaction.
        transaction: GlobalTransactionId,
        /// Its number.
        number: CommitNumber,
        /// Number of ldms of this node that have written, for the log records.
        participants: u16,
        /// The part that the ldm has in the transaction.
        part: TransactionPart,
    },
    /// To a tc: its transaction has this number, and commits.
    NumberTaken {
        /// The tc.
        tc: u16,
        /// The transaction.
        transaction: GlobalTransactionId,
        /// Its number.
        number: CommitNumber,
    },
    /// To every tc and ldm: the epoch starts behind all earlier orders. A transaction without a number that
    /// is in prepare, whose tc is gone, or that has written or locked where the primary has changed, is
    /// undone.
    StartEpoch {
        /// The epoch.
        epoch: Epoch,
        /// The last number of the epochs before.
        prefix: CommitNumber,
    },
}

/// The mirror of one life of a data node.
#[derive(Clone, Debug)]
pub struct Mirror {
    node: NodeId,
    incarnation: Incarnation,
    /// The membership that was installed last. Its epoch has started if it is `started`.
    installed: Option<Arc<Membership>>,
    started: Option<Arc<Membership>>,
    /// Every decision up to here that concerns the node has been passed to its blocks.
    passed: CommitNumber,
    /// The decisions that some member may not have applied.
    kept: VecDeque<Passed>,
    /// Position of the first kept decision, and of the first one that is not applied here.
    first: u64,
    unapplied: u64,
    /// A, M and D.
    applied: CommitNumber,
    stable: CommitNumber,
    durable: CommitNumber,
    wanted_on_disk: CommitNumber,
    /// The last number for which this node waits, if others do not know it from elsewhere.
    wish: CommitNumber,
    oldest_snapshot: Option<CommitNumber>,
    /// Values of the sequencer's last message in this epoch.
    others: CommitNumber,
    confirmed: CommitNumber,
    durable_everywhere: CommitNumber,
    horizon: CommitNumber,
    received: u64,
    reported: Applied,
    /// Whether a report is due although nothing in it is urgent.
    is_due: bool,
    /// Requests for numbers that are not sent.
    requests: Vec<Decision>,
    batch: u64,
    batch_numbered: u64,
    outcomes: Outcomes,
}

impl Mirror {
    /// The mirror of a node that has started no epoch in this life. `recovered` is the number to which its
    /// data is complete.
    pub fn new(node: NodeId, incarnation: Incarnation, recovered: CommitNumber) -> Mirror {
        Mirror {
            node,
            incarnation,
            installed: None,
            started: None,
            passed: CommitNumber(0),
            kept: VecDeque::new(),
            first: 0,
            unapplied: 0,
            applied: recovered,
            stable: recovered,
            durable: CommitNumber(0),
            wanted_on_disk: CommitNumber(0),
            wish: CommitNumber(0),
            oldest_snapshot: None,
            others: CommitNumber(0),
            confirmed: CommitNumber(0),
            durable_everywhere: CommitNumber(0),
            horizon: CommitNumber(0),
            received: 0,
            reported: Applied::default(),
            is_due: false,
            requests: Vec::new(),
            batch: 0,
            batch_numbered: 0,
            outcomes: Outcomes::default(),
        }
    }

    /// What this node can say about a transaction whose number is above `after`, if it has one (rule 3).
    /// `None` as long as it can say nothing. A client without its tc asks.
    pub fn outcome(&self, transaction: GlobalTransactionId, after: CommitNumber) -> Option<Outcome> {
        let started = self.started.as_ref()?;
        match self.outcomes.find(transaction, after) {
            // The next snapshot of the client, at any node, must see the commit.
            Remembered::Number(number) => {
                // Its client may wait for the disks. Earlier numbers are on disk soon, too.
                let awaits_disk = number > self.durable_everywhere && number <= self.wanted_on_disk;
                (self.confirmed >= number && !awaits_disk).then_some(Outcome::Committed)
            }
            Remembered::Forgotten => Some(Outcome::Unknown),
            Remembered::Nothing if started.has(NodeId(transaction.node), transaction.incarnation) => None,
            // The epoch without the tc has the decisions of all its members.
            Remembered::Nothing => {
                let counts = self.own_record().is_some_and(|record| record.admitted <= after.epoch());
                Some(if counts { Outcome::RolledBack } else { Outcome::Unknown })
            }
        }
    }

    /// The last epoch that the node has started; 0 if none.
    pub fn started(&self) -> Epoch {
        self.started.as_ref().map_or(Epoch(0), |membership| membership.epoch)
    }

    /// The last epoch that the node has installed; 0 if none.
    pub fn installed(&self) -> Epoch {
        self.installed.as_ref().map_or(Epoch(0), |membership| membership.epoch)
    }

    /// The membership of the epoch that the node has started.
    pub fn membership(&self) -> Option<&Arc<Membership>> {
        self.started.as_ref()
    }

    /// The last number whose decision would have been passed to the blocks.
    pub fn passed(&self) -> CommitNumber {
        self.passed
    }

    /// The last number for which a client or a node waits until it is on every disk.
    pub fn wanted_on_disk(&self) -> CommitNumber {
        self.wanted_on_disk
    }

    /// A: the node has applied all its decisions up to here.
    pub fn applied(&self) -> CommitNumber {
        self.applied
    }

    /// M: every serving node has applied its decisions up to here. The log of the node keeps commits up to
    /// here.
    pub fn stable(&self) -> CommitNumber {
        self.stable
    }

    /// C: commits up to here are answered.
    pub fn confirmed(&self) -> CommitNumber {
        self.confirmed
    }

    /// D: synced at this node.
    pub fn durable(&self) -> CommitNumber {
        self.durable
    }

    /// G: commits that wait for the disk are answered up to here.
    pub fn durable_everywhere(&self) -> CommitNumber {
        self.durable_everywhere
    }

    /// Versions that only snapshots below could see may be purged.
    pub fn horizon(&self) -> CommitNumber {
        self.horizon
    }

    /// The snapshot of a request that begins now. `None` while the node may choose none: it does not serve,
    /// or not since its stable number is one of an epoch in which it serves (rule 7). The caller checks the
    /// lease too.
    pub fn snapshot(&self) -> Option<CommitNumber> {
        let record = self.own_record()?;
        let serves = record.is_serving() && self.stable >= CommitNumber::start_of(record.serving_since);
        serves.then_some(self.stable)
    }

    fn own_record(&self) -> Option<&NodeRecord> {
        self.started.as_ref()?.record(self.node)
    }

    /// Whether a later membership is installed than started. Nothing of the epoch before counts any more.
    pub fn is_stopped(&self) -> bool {
        self.installed() > self.started()
    }

    /// Collects a request for a number. `epoch` is the one that the requesting tc or ldm has started; a
    /// request of another epoch is dropped, because the start of the next epoch undoes its transaction.
    pub fn request_number(&mut self, epoch: Epoch, request: Decision) {
        if epoch == self.started() && !self.is_stopped() {
            self.requests.push(request);
        }
    }

    /// The requests to send to the sequencer now. A node has one unanswered batch.
    pub fn next_take_number(&mut self) -> Option<TakeNumber> {
        if self.requests.is_empty() || self.batch > self.batch_numbered || self.is_stopped() {
            return None;
        }
        self.batch += 1;
        let requests = std::mem::take(&mut self.requests);
        Some(TakeNumber { epoch: self.started(), batch: self.batch, requests })
    }

    /// Passes the decisions of a message to the blocks, and takes them out of it. A message of an earlier
    /// epoch and a repeated one are ignored.
    pub fn on_decide(&mut self, message: &mut Decide, orders: &mut Vec<Order>) {
        if message.epoch != self.started() || self.is_stopped() || message.batch != self.received + 1 {
            return;
        }
        self.received = message.batch;
        self.batch_numbered = message.batch_numbered;
        for decision in message.decisions.drain(..) {
            self.pass(decision, message.upto, orders);
        }
        require!(message.upto >= self.passed, "what the sequencer has sent ascends: {}", message.upto);
        self.passed = message.upto;
        require!(message.others >= self.others, "what the others have applied ascends: {}", message.others);
        self.others = message.others;
        self.take_status(message);
        self.advance();
        self.release(message.least_applied);
    }

    fn take_status(&mut self, message: &Decide) {
        let Decide { confirmed, durable, horizon, wanted_on_disk, .. } = *message;
        let is_of_epoch = confirmed.0 == 0 || confirmed >= CommitNumber::start_of(message.epoch);
        require!(is_of_epoch, "confirmed numbers are of the epoch or begin it: {confirmed}");
        self.confirmed = self.confirmed.max(confirmed);
        self.durable_everywhere = self.durable_everywhere.max(durable);
        self.horizon = self.horizon.max(horizon);
        self.wanted_on_disk = self.wanted_on_disk.max(wanted_on_disk);
        self.check_horizon();
    }

    fn pass(&mut self, decision: Decision, upto: CommitNumber, orders: &mut Vec<Order>) {
        let Decision { number, transaction, awaits_disk, .. } = decision;
        if awaits_disk {
            self.wanted_on_disk = self.wanted_on_disk.max(number);
        }
        require!(number > self.passed && number <= upto, "decisions ascend: {number} after {}", self.passed);
        self.passed = number;
        self.outcomes.note(number, transaction);
        let position = self.first + self.kept.len() as u64;
        let own = decision.participants.as_slice().iter().filter(|it| it.node == self.node);
        let outstanding = own.clone().filter(|it| it.has_written()).count() as u16;
        orders.extend(own.map(|it| Order::CommitTransaction {
            ldm: it.ldm,
            position,
            transaction,
            number,
            participants: outstanding,
            part: it.part,
        }));
        if (NodeId(transaction.node), transaction.incarnation) == (self.node, self.incarnation) {
            orders.push(Order::NumberTaken { tc: transaction.tc, transaction, number });
        }
        self.kept.push_back(Passed { decision, outstanding });
    }

    /// An ldm has applied the decision at this position.
    pub fn on_ldm_applied(&mut self, position: u64) {
        let passed = position.checked_sub(self.first).and_then(|index| self.kept.get_mut(index as usize));
        let Some(passed) = passed.filter(|passed| passed.outstanding > 0) else {
            junctor_kernel::invariant::fail("each ldm applies a decision once", format_args!("{position}"))
        };
        passed.outstanding -= 1;
        self.advance();
    }

    /// Computes A and M.
    fn advance(&mut self) {
        let next = loop {
            match self.kept.get((self.unapplied - self.first) as usize) {
                Some(passed) if passed.outstanding == 0 => self.unapplied += 1,
                next => break next,
            }
        };
        // The number before the first decision that is not applied: numbers in between do not concern the
        // node.
        let applied = next.map_or(self.passed, |passed| CommitNumber(passed.decision.number.0 - 1));
        // Right after a start, the decisions of earlier epochs may hold A below the number to which the node
        // recovered or advanced before.
        self.applied = self.applied.max(applied);
        self.stable = self.stable.max(self.applied.min(self.others));
    }

    /// Gives up decisions that every member has applied.
    fn release(&mut self, least_applied: CommitNumber) {
        while self.first < self.unapplied && self.kept.front().is_some_and(|it| it.decision.number <= least_applied) {
            self.kept.pop_front();
            self.first += 1;
        }
    }

    /// The log of the node has synced commits up to here.
    pub fn set_durable(&mut self, durable: CommitNumber) {
        require!(durable >= self.durable && durable <= self.stable, "only stable numbers are synced: {durable}");
        self.durable = durable;
    }

    /// This node waits until the number is on every disk.
    pub fn want_on_disk(&mut self, number: CommitNumber) {
        if number > self.wanted_on_disk && number > self.durable_everywhere {
            (self.wanted_on_disk, self.wish) = (number, number);
        }
    }

    /// The oldest snapshot that the node holds for a reader, if it holds one.
    pub fn set_oldest_snapshot(&mut self, oldest: Option<CommitNumber>) {
        self.oldest_snapshot = oldest;
        self.check_horizon();
    }

    fn check_horizon(&self) {
        // A node that joins has numbers from before its admission, and no snapshot.
        let first = self.own_record().filter(|record| record.is_serving()).map(|record| record.serving_since);
        let is_snapshot = |oldest| first.is_some_and(|first| oldest >= CommitNumber::start_of(first));
        let is_kept = self.oldest_snapshot.is_none_or(|oldest| oldest >= self.horizon || !is_snapshot(oldest));
        require!(is_kept, "no snapshot is below the horizon {}: {:?}", self.horizon, self.oldest_snapshot);
    }

    /// The sequencer learns now of what was not urgent.
    pub fn tell_all(&mut self) {
        self.is_due = true;
    }

    /// The report to send to the sequencer now: if something urgent has changed, or if the sequencer waits
    /// for an answer. A message that changes nothing is answered with the next report. The end of a snapshot
    /// can wait: it only lets versions be purged.
    pub fn next_applied(&mut self) -> Option<Applied> {
        if self.is_stopped() || self.started.is_none() {
            return None;
        }
        let report = Applied {
            epoch: self.started(),
            received: self.received,
            applied: self.applied,
            stable: self.stable,
            durable: self.durable,
            oldest_snapshot: self.oldest_snapshot.map_or(self.stable, |oldest| oldest.min(self.stable)),
            wanted_on_disk: self.wish,
        };
        let known = Applied { received: report.received, ..self.reported };
        let is_due = std::mem::take(&mut self.is_due) && report != known;
        let has_news = is_due || report != Applied { oldest_snapshot: report.oldest_snapshot, ..known };
        if !has_news && self.received - self.reported.received < ANSWERED_WITHOUT_NEWS {
            return None;
        }
        self.reported = report;
        Some(report)
    }

    /// Stops the epoch, and returns the report for the sequencer of the new membership. `None` for a
    /// membership that is not newer, and for one without this life of the node.
    pub fn on_install_membership(&mut self, membership: &Arc<Membership>) -> Option<Installed> {
        let is_member = membership.has(self.node, self.incarnation);
        if membership.epoch <= self.installed() || !is_member {
            return None;
        }
        self.installed = Some(Arc::clone(membership));
        // The next epoch undoes the transactions of these requests.
        self.requests.clear();
        Some(Installed {
            epoch: membership.epoch,
            passed: self.passed,
            durable: self.durable,
            decisions: self.kept.iter().map(|passed| passed.decision.clone()).collect(),
        })
    }

    /// Starts the installed epoch. A message of an earlier epoch and a repeated one are ignored.
    pub fn on_start_epoch(&mut self, message: StartEpoch, orders: &mut Vec<Order>) {
        let StartEpoch { epoch, prefix, missing } = message;
        if epoch != self.installed() || !self.is_stopped() {
            return;
        }
        require!(prefix >= self.passed, "no passed decision is void: {} after {prefix}", self.passed);
        for decision in missing {
            self.pass(decision, prefix, orders);
        }
        orders.push(Order::StartEpoch { epoch, prefix });
        self.started = self.installed.clone();
        self.passed = CommitNumber::start_of(epoch);
        self.others = CommitNumber(0);
        (self.received, self.reported) = (0, Applied::default());
        // The sequencer before may have told this node alone.
        if self.wanted_on_disk > self.durable_everywhere {
            self.wish = self.wanted_on_disk;
        }
        (self.batch, self.batch_numbered) = (0, 0);
        self.advance();
    }
}
