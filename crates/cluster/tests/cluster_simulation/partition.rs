//! A toy ldm: rows with versions, images along chains, decisions, the start of an epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_cluster::epoch::Mirror;
use junctor_cluster::membership::Membership;
use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation};

use super::message::{Bug, Images, Row, ToBlock, ldm_of};

#[derive(Clone, Copy, Debug)]
pub struct Version {
    pub transaction: GlobalTransactionId,
    /// `None` while it is undecided.
    pub number: Option<CommitNumber>,
}

#[derive(Debug, Default)]
pub struct Part {
    pub rows: Vec<Row>,
    pub is_prepared: bool,
}

/// What an ldm sends.
#[derive(Debug)]
pub enum Sent {
    ToNode(NodeId, u16, ToBlock),
    ToTc(ToBlock),
    /// To the mirror of the own node: the last replica asks for a number.
    Request {
        epoch: Epoch,
        transaction: GlobalTransactionId,
        images: Images,
    },
}

#[derive(Debug)]
pub struct Ldm {
    pub node: u8,
    pub bug: Bug,
    pub membership: Arc<Membership>,
    /// The epoch that the ldm has started; 0 if none.
    pub epoch: Epoch,
    pub rows: BTreeMap<Row, Vec<Version>>,
    pub parts: BTreeMap<GlobalTransactionId, Part>,
    /// For each partition that was copied, the number of the copy.
    pub copied: BTreeMap<u8, CommitNumber>,
    parked: Vec<ToBlock>,
}

impl Ldm {
    pub fn new(node: u8, membership: Arc<Membership>, bug: Bug) -> Ldm {
        Ldm {
            node,
            bug,
            membership,
            epoch: Epoch(0),
            rows: BTreeMap::new(),
            parts: BTreeMap::new(),
            copied: BTreeMap::new(),
            parked: Vec::new(),
        }
    }

    /// Handles a message, or parks it.
    pub fn on_message(&mut self, message: ToBlock, mirror: &Mirror, sent: &mut Vec<Sent>) {
        if self.must_wait(&message, mirror) {
            self.parked.push(message);
            return;
        }
        match message {
            ToBlock::Write { transaction, row, .. } => self.on_write(transaction, row, sent),
            ToBlock::Prepare { epoch, transaction, images } => {
                self.on_prepare(transaction, (epoch, mirror.applied()), images, sent)
            }
            ToBlock::Replicate { epoch, transaction, partition, rows, mark, images } => {
                if epoch < self.epoch {
                    return;
                }
                let part = self.parts.entry(transaction).or_default();
                part.is_prepared = true;
                rows.iter().for_each(|row| {
                    self.place(transaction, *row);
                });
                self.forward(epoch, (transaction, partition, rows, mark), images, sent);
            }
            ToBlock::Rollback { transaction, .. } => {
                self.undo(transaction);
                self.revisit(mirror, sent);
            }
            ToBlock::WriteReply { .. } | ToBlock::Prepared { .. } => panic!("an ldm gets no {message:?}"),
        }
    }

    /// Handles parked messages that need not wait any more.
    pub fn revisit(&mut self, mirror: &Mirror, sent: &mut Vec<Sent>) {
        for message in std::mem::take(&mut self.parked) {
            self.on_message(message, mirror, sent);
        }
    }

    fn must_wait(&self, message: &ToBlock, mirror: &Mirror) -> bool {
        match message {
            ToBlock::Write { epoch, .. } | ToBlock::Rollback { epoch, .. } => *epoch > self.epoch,
            ToBlock::Prepare { epoch, .. } => *epoch > self.epoch && self.bug != Bug::PrepareWithoutEpoch,
            ToBlock::Replicate { epoch, transaction, rows, mark, .. } => {
                let is_behind = match self.bug {
                    Bug::ImagesNotParked => false,
                    Bug::ImageNamesNodesNumber => mirror.applied() < *mark,
                    _ => rows.iter().any(|row| self.has_open(*row, *transaction)),
                };
                *epoch > self.epoch || *epoch == self.epoch && is_behind
            }
            ToBlock::WriteReply { .. } | ToBlock::Prepared { .. } => false,
        }
    }

    fn on_write(&mut self, transaction: GlobalTransactionId, row: Row, sent: &mut Vec<Sent>) {
        let is_primary = self.membership.primary(usize::from(row.0)) == Some(NodeId(self.node));
        let is_written = is_primary && !self.has_open(row, transaction);
        if is_written {
            self.place(transaction, row);
        }
        sent.push(Sent::ToTc(ToBlock::WriteReply { transaction, is_written }));
    }

    fn on_prepare(
        &mut self,
        transaction: GlobalTransactionId,
        (epoch, applied): (Epoch, CommitNumber),
        images: Images,
        sent: &mut Vec<Sent>,
    ) {
        let own_epoch = self.epoch;
        let is_late = epoch < own_epoch && self.bug != Bug::PrepareWithoutEpoch;
        let Some(part) = self.parts.get_mut(&transaction).filter(|_| !is_late) else {
            assert!(is_late || self.bug == Bug::PrepareWithoutEpoch, "a prepared transaction is known: {transaction}");
            return;
        };
        part.is_prepared = true;
        let mut rows = part.rows.clone();
        // The ldm may be a backup of other rows of the transaction.
        rows.retain(|row| self.membership.primary(usize::from(row.0)) == Some(NodeId(self.node)));
        rows.sort_unstable();
        for rows in rows.chunk_by(|one, other| one.0 == other.0) {
            if self.bug == Bug::BackupsNotAwaited {
                self.finish_chain((transaction, rows[0].0), own_epoch, &images, sent);
            }
            self.forward(own_epoch, (transaction, rows[0].0, rows.to_vec(), applied), images.clone(), sent);
        }
    }

    /// Sends images to the next replica of the chain. The last one finishes the prepare.
    fn forward(
        &self,
        epoch: Epoch,
        (transaction, partition, rows, mark): (GlobalTransactionId, u8, Vec<Row>, CommitNumber),
        images: Images,
        sent: &mut Vec<Sent>,
    ) {
        let chain = &self.membership.chains[usize::from(partition)];
        let next = chain.iter().skip_while(|node| node.0 != self.node).nth(1);
        match next {
            Some(next) => {
                let message = ToBlock::Replicate { epoch, transaction, partition, rows, mark, images };
                sent.push(Sent::ToNode(*next, ldm_of(partition), message));
            }
            None if self.bug == Bug::BackupsNotAwaited && chain.len() > 1 => {}
            None => self.finish_chain((transaction, partition), epoch, &images, sent),
        }
    }

    fn finish_chain(
        &self,
        (transaction, partition): (GlobalTransactionId, u8),
        epoch: Epoch,
        images: &Images,
        sent: &mut Vec<Sent>,
    ) {
        if images.asks {
            sent.push(Sent::Request { epoch, transaction, images: images.clone() });
        } else {
            sent.push(Sent::ToTc(ToBlock::Prepared { epoch, transaction, partition }));
        }
    }

    /// Whether the row has an open version of another transaction, which an image of this one must follow.
    fn has_open(&self, row: Row, transaction: GlobalTransactionId) -> bool {
        let top = self.rows.get(&row).and_then(|versions| versions.last());
        top.is_some_and(|top| top.number.is_none() && top.transaction != transaction)
    }

    fn place(&mut self, transaction: GlobalTransactionId, row: Row) {
        let versions = self.rows.entry(row).or_default();
        let top = versions.last();
        let is_own = top.is_some_and(|top| top.transaction == transaction && top.number.is_none());
        if !is_own {
            let is_free = top.is_none_or(|top| top.number.is_some());
            assert!(is_free, "nothing lies above another's undecided version: {row:?} of {transaction}, {top:?}");
            versions.push(Version { transaction, number: None });
            self.parts.entry(transaction).or_default().rows.push(row);
        }
    }

    pub fn undo(&mut self, transaction: GlobalTransactionId) {
        let Some(part) = self.parts.remove(&transaction) else { return };
        for row in part.rows {
            let versions = self.rows.get_mut(&row).expect("a written row");
            versions.retain(|version| version.transaction != transaction || version.number.is_some());
        }
    }

    /// Applies a decision.
    pub fn commit(&mut self, transaction: GlobalTransactionId, number: CommitNumber) {
        let part = self.parts.remove(&transaction).filter(|part| part.is_prepared);
        let part = part.unwrap_or_else(|| panic!("a decision finds its images: {transaction} at node {}", self.node));
        for row in part.rows {
            let is_copied = self.copied.get(&row.0).is_some_and(|copied| number <= *copied);
            let versions = self.rows.get_mut(&row).expect("a written row");
            let index = versions.iter().position(|it| it.transaction == transaction && it.number.is_none());
            let index = index.expect("an undecided version");
            if is_copied && self.bug != Bug::ImageAppliedAgain {
                versions.remove(index);
                continue;
            }
            versions[index].number = Some(number);
            let ordered = versions
                .windows(2)
                .all(|pair| pair[0].number.unwrap_or_default() < pair[1].number.unwrap_or(CommitNumber(u64::MAX)));
            assert!(ordered, "versions lie in the order of their numbers: {row:?} {versions:?}");
        }
    }

    /// Starts an epoch: undoes what nobody decided.
    pub fn start_epoch(&mut self, membership: &Arc<Membership>) {
        let is_undone = |(transaction, part): &(&GlobalTransactionId, &Part)| {
            let has_tc = membership.has(NodeId(transaction.node), transaction.incarnation);
            let is_prepared = part.is_prepared && self.bug != Bug::ImageSurvivesStart;
            is_prepared || !has_tc && self.bug != Bug::SurvivesItsCoordinator
        };
        let undone: Vec<GlobalTransactionId> = self.parts.iter().filter(is_undone).map(|(it, _)| *it).collect();
        undone.into_iter().for_each(|transaction| self.undo(transaction));
        self.membership = Arc::clone(membership);
        self.epoch = membership.epoch;
    }

    /// The number of the version that a snapshot sees.
    pub fn visible(&self, row: Row, snapshot: CommitNumber) -> CommitNumber {
        let versions = self.rows.get(&row).into_iter().flatten();
        versions.filter_map(|version| version.number).filter(|number| *number <= snapshot).max().unwrap_or_default()
    }

    /// Puts a copy below the versions above it.
    pub fn take_copy(&mut self, partition: u8, at: CommitNumber, rows: &[(Row, CommitNumber)]) {
        for (row, number) in rows {
            let versions = self.rows.entry(*row).or_default();
            let keeps_above = self.bug != Bug::CopyReplacesAll;
            versions.retain(|version| version.number.is_none_or(|number| number > at && keeps_above));
            let transaction = GlobalTransactionId { incarnation: Incarnation(0), ..GlobalTransactionId::default() };
            versions.insert(0, Version { transaction, number: Some(*number) });
        }
        self.copied.insert(partition, at);
    }

    /// Frees versions that no snapshot from the horizon on can see.
    pub fn purge(&mut self, horizon: CommitNumber) {
        for versions in self.rows.values_mut() {
            let is_old = |version: &Version| version.number.is_some_and(|number| number <= horizon);
            let old = versions.iter().take_while(|version| is_old(version)).count();
            versions.drain(..old.saturating_sub(1));
        }
    }

    /// The committed versions up to a number.
    pub fn kept(&self, upto: CommitNumber) -> BTreeMap<Row, Vec<Version>> {
        let kept = |versions: &Vec<Version>| {
            versions.iter().filter(|it| it.number.is_some_and(|number| number <= upto)).copied().collect()
        };
        self.rows.iter().map(|(row, versions)| (*row, kept(versions))).collect()
    }
}
