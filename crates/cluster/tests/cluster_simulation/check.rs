//! The promises, judged by all that happened in a run.

use std::collections::{BTreeMap, BTreeSet};

use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId};

use super::coordinator::Answer;
use super::message::Row;

#[derive(Debug, Default)]
pub struct Oracle {
    /// The decisions that some mirror has passed, without void ones.
    decided: BTreeMap<CommitNumber, GlobalTransactionId>,
    numbers: BTreeMap<GlobalTransactionId, CommitNumber>,
    versions: BTreeMap<Row, BTreeSet<CommitNumber>>,
    /// Transactions that were begun and are not answered, with their rows.
    open: BTreeMap<GlobalTransactionId, Vec<Row>>,
    rolled_back: BTreeSet<GlobalTransactionId>,
    committed: BTreeMap<GlobalTransactionId, CommitNumber>,
    pub newest_answered: CommitNumber,
    newest_durable: CommitNumber,
    newest_snapshot: CommitNumber,
    /// The largest stable number of any node.
    pub newest_stable: CommitNumber,
    /// Decisions below are forgotten.
    purged: CommitNumber,
    /// The last epoch whose start was decided.
    epoch: Epoch,
    pub counts: Counts,
}

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub commits: u64,
    pub rollbacks: u64,
    pub learned: u64,
    pub snapshots: u64,
    pub void: u64,
    pub epochs: u64,
    pub joins: u64,
    pub durable_marks: u64,
    pub blackouts: u64,
    /// Of leaders of the voters.
    pub elections: u64,
    /// Of voters.
    pub restarts: u64,
}

impl Oracle {
    pub fn begin(&mut self, transaction: GlobalTransactionId, rows: Vec<Row>) {
        self.open.insert(transaction, rows);
    }

    /// A mirror has passed a decision.
    pub fn on_passed(&mut self, number: CommitNumber, transaction: GlobalTransactionId) {
        if let Some(known) = self.decided.get(&number) {
            assert_eq!(*known, transaction, "a number belongs to one transaction: {number}");
            return;
        }
        if number.epoch() < self.epoch || number < self.purged {
            // An evicted node goes on alone. The next epoch has voided the number.
            return;
        }
        let rolled_back = self.rolled_back.contains(&transaction);
        assert!(!rolled_back, "a transaction that was answered as rolled back stays so: {transaction} {number}");
        let before = self.numbers.insert(transaction, number);
        assert_eq!(before, None, "a transaction has one number: {transaction} {number}");
        assert!(number > self.newest_snapshot, "a number is above every snapshot: {number} {}", self.newest_snapshot);
        self.decided.insert(number, transaction);
        for row in self.open.get(&transaction).into_iter().flatten() {
            self.versions.entry(*row).or_default().insert(number);
        }
    }

    /// An epoch starts. Numbers that no member knows are void.
    pub fn on_start(&mut self, epoch: Epoch, knows: &dyn Fn(GlobalTransactionId) -> bool) {
        self.epoch = self.epoch.max(epoch);
        self.counts.epochs += 1;
        let candidates = self.decided.range(CommitNumber(self.newest_stable.0 + 1)..);
        let void: Vec<_> = candidates.filter(|(_, transaction)| !knows(**transaction)).map(|(it, _)| *it).collect();
        for number in void {
            self.forget(number);
            self.counts.void += 1;
        }
    }

    fn forget(&mut self, number: CommitNumber) {
        assert!(number > self.newest_snapshot, "nothing seen is rolled back: {number}");
        let Some(transaction) = self.decided.remove(&number) else { return };
        assert!(!self.committed.contains_key(&transaction), "nothing answered is lost: {transaction} {number}");
        self.numbers.remove(&transaction);
        self.versions.values_mut().for_each(|numbers| _ = numbers.remove(&number));
    }

    /// A client gets its answer.
    pub fn on_answer(&mut self, transaction: GlobalTransactionId, answer: Answer) {
        assert!(!self.rolled_back.contains(&transaction), "a transaction is answered once: {transaction}");
        match answer {
            Answer::RolledBack => {
                let number = self.numbers.get(&transaction);
                assert_eq!(number, None, "a transaction that is answered as rolled back has no number: {transaction}");
                self.rolled_back.insert(transaction);
                self.open.remove(&transaction);
                self.counts.rollbacks += 1;
            }
            Answer::Committed { number, is_durable } => {
                let known = self.numbers.get(&transaction);
                assert_eq!(known, Some(&number), "a commit that is answered is decided: {transaction}");
                let before = self.committed.insert(transaction, number);
                assert_eq!(before, None, "a transaction is answered once: {transaction}");
                self.open.remove(&transaction);
                self.newest_answered = self.newest_answered.max(number);
                if is_durable {
                    self.newest_durable = self.newest_durable.max(number);
                }
                self.counts.commits += 1;
            }
        }
    }

    pub fn is_open(&self, transaction: &GlobalTransactionId) -> bool {
        self.open.contains_key(transaction)
    }

    /// A node chooses a snapshot for a request that was sent after all answers so far.
    pub fn on_snapshot(&mut self, snapshot: CommitNumber, node: u8) {
        let answered = self.newest_answered;
        assert!(snapshot >= answered, "a snapshot covers what was answered before: {snapshot} at {node}, {answered}");
        self.newest_snapshot = self.newest_snapshot.max(snapshot);
        self.counts.snapshots += 1;
    }

    /// The number of the version that a snapshot must show.
    pub fn expected(&self, row: Row, snapshot: CommitNumber) -> CommitNumber {
        let versions = self.versions.get(&row);
        versions.and_then(|it| it.range(..=snapshot).next_back().copied()).unwrap_or_default()
    }

    /// All nodes restart at a cut.
    pub fn on_restart(&mut self, cut: CommitNumber, epoch: Epoch) {
        assert!(self.newest_durable <= cut, "a durable commit survives: {} at the cut {cut}", self.newest_durable);
        self.newest_snapshot = self.newest_snapshot.min(cut);
        self.newest_answered = self.newest_answered.min(cut);
        self.newest_stable = self.newest_stable.min(cut);
        self.committed.retain(|_, number| *number <= cut);
        let lost: Vec<CommitNumber> = self.decided.range(CommitNumber(cut.0 + 1)..).map(|(it, _)| *it).collect();
        lost.into_iter().for_each(|number| self.forget(number));
        self.open.clear();
        self.epoch = epoch;
        self.purged = self.purged.min(cut);
        self.counts.blackouts += 1;
    }

    /// Drops what no snapshot from here on can show.
    pub fn purge(&mut self, horizon: CommitNumber) {
        self.purged = self.purged.max(horizon);
        for numbers in self.versions.values_mut() {
            while numbers.range(..=horizon).count() > 8 {
                numbers.pop_first();
            }
        }
        let old: Vec<_> = self.committed.iter().filter(|(_, it)| **it < horizon).map(|(it, _)| *it).collect();
        for transaction in old {
            self.committed.remove(&transaction);
            let number = self.numbers.remove(&transaction);
            number.map(|number| self.decided.remove(&number));
        }
        while self.rolled_back.len() > 4096 {
            self.rolled_back.pop_first();
        }
    }
}
