//! A toy tc: transactions that write some rows, prepare, take a number and answer their client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use junctor_cluster::epoch::mirror::Mirror;
use junctor_cluster::membership::Membership;
use junctor_kernel::NodeId;
use junctor_model::id::{CommitNumber, Epoch, GlobalTransactionId, Incarnation};
use junctor_signals::commit_transaction::TransactionPart;
use junctor_signals::take_number::Participant;

use super::message::{Bug, Images, Row, ToBlock, ldm_of};
use super::partition::Sent;

/// The answer to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Committed { number: CommitNumber, is_durable: bool },
    RolledBack,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Writing,
    /// Waits for the chains of these partitions, or for the number.
    Preparing {
        epoch: Epoch,
        left: BTreeSet<u8>,
    },
    Numbered(CommitNumber),
}

#[derive(Clone, Debug)]
struct Record {
    rows: Vec<Row>,
    next: usize,
    /// The primaries of the rows that were sent so far.
    primaries: BTreeMap<u8, (NodeId, Incarnation)>,
    awaits_disk: bool,
    phase: Phase,
}

#[derive(Debug)]
pub struct Tc {
    pub life: (u8, Incarnation),
    pub bug: Bug,
    pub membership: Arc<Membership>,
    pub epoch: Epoch,
    next: u64,
    records: BTreeMap<GlobalTransactionId, Record>,
    pub answers: Vec<(GlobalTransactionId, Answer)>,
}

impl Tc {
    pub fn new(life: (u8, Incarnation), membership: Arc<Membership>, bug: Bug) -> Tc {
        let records = BTreeMap::new();
        Tc { life, bug, membership, epoch: Epoch(0), next: 0, records, answers: Vec::new() }
    }

    pub fn open(&self) -> usize {
        self.records.len()
    }

    /// The transaction that was begun last.
    pub fn last(&self) -> GlobalTransactionId {
        let (node, incarnation) = self.life;
        GlobalTransactionId { counter: self.next, incarnation, tc: 0, node }
    }

    /// Transactions whose clients wait for the outcome of a COMMIT.
    pub fn committing(&self) -> impl Iterator<Item = GlobalTransactionId> {
        self.records.iter().filter(|(_, it)| it.phase != Phase::Writing).map(|(it, _)| *it)
    }

    pub fn begin(&mut self, rows: Vec<Row>, awaits_disk: bool, sent: &mut Vec<Sent>) {
        self.next += 1;
        let (node, incarnation) = self.life;
        let transaction = GlobalTransactionId { counter: self.next, incarnation, tc: 0, node };
        let record = Record { rows, next: 0, primaries: BTreeMap::new(), awaits_disk, phase: Phase::Writing };
        self.records.insert(transaction, record);
        self.advance(transaction, sent);
    }

    fn advance(&mut self, transaction: GlobalTransactionId, sent: &mut Vec<Sent>) {
        let Tc { records, membership, epoch, .. } = self;
        let Some(record) = records.get_mut(&transaction) else { return };
        let Some(row) = record.rows.get(record.next).copied() else { return self.prepare(transaction, sent) };
        let Some(primary) = membership.primary(usize::from(row.0)) else { return };
        let incarnation = membership.record(primary).expect("a member").incarnation;
        record.primaries.insert(row.0, (primary, incarnation));
        sent.push(Sent::ToNode(primary, ldm_of(row.0), ToBlock::Write { epoch: *epoch, transaction, row }));
    }

    fn prepare(&mut self, transaction: GlobalTransactionId, sent: &mut Vec<Sent>) {
        let Tc { records, membership, epoch, .. } = self;
        let Some(record) = records.get_mut(&transaction) else { return };
        let partitions: BTreeSet<u8> = record.primaries.keys().copied().collect();
        let mut participants: Vec<Participant> = Vec::new();
        for partition in &partitions {
            for node in &membership.chains[usize::from(*partition)] {
                let participant = Participant { node: *node, part: TransactionPart::Rows, ldm: ldm_of(*partition) };
                if !participants.contains(&participant) {
                    participants.push(participant);
                }
            }
        }
        let images = Images { participants, asks: partitions.len() == 1, awaits_disk: record.awaits_disk };
        let ldms: BTreeSet<(NodeId, u16)> =
            record.primaries.iter().map(|(partition, (node, _))| (*node, ldm_of(*partition))).collect();
        for (node, ldm) in ldms {
            let images = images.clone();
            sent.push(Sent::ToNode(node, ldm, ToBlock::Prepare { epoch: *epoch, transaction, images }));
        }
        record.phase = Phase::Preparing { epoch: *epoch, left: partitions };
    }

    pub fn on_message(&mut self, message: ToBlock, sent: &mut Vec<Sent>) {
        match message {
            ToBlock::WriteReply { transaction, is_written } => {
                let Some(record) = self.records.get_mut(&transaction).filter(|it| it.phase == Phase::Writing) else {
                    return;
                };
                record.next += 1;
                if is_written { self.advance(transaction, sent) } else { self.roll_back(transaction, sent) }
            }
            ToBlock::Prepared { epoch, transaction, partition } => {
                let Tc { records, membership, .. } = self;
                let Some(record) = records.get_mut(&transaction) else { return };
                let Phase::Preparing { epoch: own, left } = &mut record.phase else { return };
                if epoch == *own && left.remove(&partition) && left.is_empty() {
                    let mut participants = Vec::new();
                    for partition in record.primaries.keys() {
                        participants.extend(membership.chains[usize::from(*partition)].iter().map(|node| {
                            Participant { node: *node, part: TransactionPart::Rows, ldm: ldm_of(*partition) }
                        }));
                    }
                    participants.sort_unstable_by_key(|it| (it.node, it.ldm));
                    participants.dedup();
                    let images = Images { participants, asks: true, awaits_disk: record.awaits_disk };
                    sent.push(Sent::Request { epoch, transaction, images });
                }
            }
            other => panic!("a tc gets no {other:?}"),
        }
    }

    fn roll_back(&mut self, transaction: GlobalTransactionId, sent: &mut Vec<Sent>) {
        let Some(record) = self.records.remove(&transaction) else { return };
        let lives: BTreeSet<(NodeId, Incarnation, u16)> =
            record.primaries.iter().map(|(partition, (node, life))| (*node, *life, ldm_of(*partition))).collect();
        for (node, incarnation, ldm) in lives {
            if self.membership.has(node, incarnation) {
                sent.push(Sent::ToNode(node, ldm, ToBlock::Rollback { epoch: self.epoch, transaction }));
            }
        }
        self.answers.push((transaction, Answer::RolledBack));
    }

    pub fn on_number(&mut self, transaction: GlobalTransactionId, number: CommitNumber) {
        let Some(record) = self.records.get_mut(&transaction) else {
            panic!("a transaction that was rolled back gets no number: {transaction} {number}")
        };
        assert!(matches!(record.phase, Phase::Preparing { .. }), "a transaction gets one number: {transaction}");
        record.phase = Phase::Numbered(number);
    }

    pub fn start_epoch(&mut self, membership: &Arc<Membership>, sent: &mut Vec<Sent>) {
        self.membership = Arc::clone(membership);
        self.epoch = membership.epoch;
        let bug = self.bug;
        let is_undone = |record: &Record| {
            let mut primaries = record.primaries.values();
            match record.phase {
                Phase::Writing if bug == Bug::SurvivesItsPrimary => false,
                Phase::Writing => !primaries.all(|(node, incarnation)| membership.has(*node, *incarnation)),
                Phase::Preparing { .. } => true,
                Phase::Numbered(_) => false,
            }
        };
        let undone: Vec<GlobalTransactionId> =
            self.records.iter().filter(|(_, record)| is_undone(record)).map(|(it, _)| *it).collect();
        undone.into_iter().for_each(|transaction| self.roll_back(transaction, sent));
    }

    /// Answers what the mirror's numbers cover.
    pub fn answer(&mut self, mirror: &Mirror) {
        let covered = match self.bug {
            Bug::AnswerAtOwnStable => mirror.stable(),
            Bug::AnswerAtApplied => mirror.applied(),
            _ => mirror.confirmed(),
        };
        let durable = mirror.durable_everywhere();
        let Tc { records, answers, .. } = self;
        records.retain(|transaction, record| match record.phase {
            Phase::Numbered(number) if number <= covered && (!record.awaits_disk || number <= durable) => {
                answers.push((*transaction, Answer::Committed { number, is_durable: record.awaits_disk }));
                false
            }
            _ => true,
        });
    }

    /// An evicted tc gives up: its clients learn what is certain.
    pub fn give_up(&mut self) {
        for (transaction, record) in std::mem::take(&mut self.records) {
            let is_undone = record.phase == Phase::Writing || self.bug == Bug::EvictedSaysAborted;
            if is_undone && !matches!(record.phase, Phase::Numbered(_)) {
                self.answers.push((transaction, Answer::RolledBack));
            }
        }
    }
}
