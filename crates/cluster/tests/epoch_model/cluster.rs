//! The state of the modelled cluster: nodes, transactions and epochs.

pub const NODES: usize = 4;
pub const TRANSACTIONS: usize = 2;
pub const PARTITIONS: usize = 2;

/// A commit number: the epoch in the upper four bits, a counter in the lower four. Zero is no number.
pub type Number = u8;

pub const fn number(epoch: u8, counter: u8) -> Number {
    epoch << 4 | counter
}

pub const fn epoch_of(number: Number) -> u8 {
    number >> 4
}

pub const fn counter_of(number: Number) -> usize {
    (number & 15) as usize
}

/// Shifted by a partition: its written primary has gone, and tc did not notice.
pub const LOST: u8 = 1 << PARTITIONS;

/// The nodes of a bit mask, ascending.
pub fn nodes_of(mask: u8) -> impl Iterator<Item = usize> + Clone {
    (0..NODES).filter(move |node| mask & 1 << node != 0)
}

/// The designed protocol, or the rule that a broken variant breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Designed,
    /// PrepareTransaction carries no epoch, as cluster-protocol.md has it.
    PrepareWithoutEpoch,
    /// A data node tells a client that lost its tc about a commit before all nodes have confirmed the commit.
    OutcomeUnconfirmed,
    /// A data node tells a client that lost its tc that it knows no decision, before it has started the
    /// epoch.
    OutcomeBeforeStart,
    /// The prefix that the new epoch keeps ends at the largest applied number, not at the largest passed one.
    PrefixEndsAtApplied,
    /// An image names the applied number of its node and waits for that, not for the row.
    ImageNamesNodesNumber,
    /// An image names the newest number that its ldm has applied and waits for that, not for the row.
    ImageNamesAppliedNumber,
    /// A member forgets decisions up to its stable number, although joining nodes may lack them.
    ForgotForJoining,
    /// A member that joined before the tc was lost counts for "rolled back", although it has the rows of
    /// earlier commits from its copy, and not their decisions.
    OutcomeOfYoungMember,
    /// A node that becomes serving chooses snapshots before its stable number is one of that epoch.
    FreshNodeServes,
    /// A group may keep only a node that serves from an epoch on that has not started everywhere.
    CommittedEpochCounts,
    /// A sequencer of the new epoch takes requests of the old one.
    NumberForOldRequest,
    /// A node that has installed an epoch still obeys the sequencer of the epoch before.
    ObeysOldSequencer,
    /// A new sequencer continues the counter of the epoch before.
    NumberReused,
    /// The sequencer starts the epoch without the report of one member.
    StartWithoutOne,
    /// The sequencer starts the epoch with the decisions of its own node only.
    UnionForgotten,
    /// Replicas keep undecided images at the start of an epoch.
    ImageSurvivesStart,
    /// A transaction whose written primary has changed goes on.
    SurvivesItsPrimary,
    /// Participants keep transactions whose tc is gone.
    SurvivesItsCoordinator,
    /// Backups place images in the order of arrival.
    ImagesNotParked,
    /// tc asks for a number when the primaries have prepared.
    BackupsNotAwaited,
    /// tc answers when its own node's stable number reaches the commit.
    AnswerAtOwnStable,
    /// tc answers when its own node has applied the commit.
    AnswerAtApplied,
    /// tc answers in the new epoch while evicted nodes may hold leases.
    LeasesIgnored,
    /// Snapshots are chosen at the node's applied number.
    SnapshotAtApplied,
    /// An evicted tc tells its client that a transaction in prepare is rolled back.
    EvictedSaysAborted,
}

/// The state of a transaction at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Part {
    #[default]
    Nothing,
    /// Written and locked at the primary.
    Active,
    /// Prepared at the primary, or an image at a backup.
    Prepared,
    Applied,
    Undone,
}

impl Part {
    pub const fn is_undecided(self) -> bool {
        matches!(self, Self::Active | Self::Prepared)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub is_alive: bool,
    /// Whether the node may still hold a lease. Only an evicted node can lose it.
    pub has_lease: bool,
    pub installed: u8,
    pub started: u8,
    /// The last number whose decision the mirror has passed to the blocks.
    pub passed: Number,
    /// A of the specification.
    pub applied: Number,
    /// M of the specification.
    pub stable: Number,
    pub decisions: [Number; TRANSACTIONS],
    pub parts: [Part; TRANSACTIONS],
    /// Transactions plus one with a version of the node's row, the oldest first.
    pub versions: [u8; TRANSACTIONS],
    /// The node was admitted, and has no copy yet.
    pub awaits_copy: bool,
    /// A bit for each transaction whose rows came with the copy. The node does not know of its decision.
    pub copied: u8,
}

impl Node {
    pub const fn new() -> Self {
        Self {
            is_alive: true,
            has_lease: true,
            installed: 0,
            started: 0,
            passed: 0,
            applied: 0,
            stable: 0,
            decisions: [0; TRANSACTIONS],
            parts: [Part::Nothing; TRANSACTIONS],
            versions: [0; TRANSACTIONS],
            awaits_copy: false,
            copied: 0,
        }
    }

    /// The number of the transaction, if the node knows the decision.
    pub const fn known(&self, transaction: usize) -> Number {
        if self.copied & 1 << transaction != 0 { 0 } else { self.decisions[transaction] }
    }

    /// Puts a version from a copy below the others.
    pub fn place_copy(&mut self, transaction: usize, number: Number) {
        self.parts[transaction] = Part::Applied;
        self.decisions[transaction] = number;
        self.copied |= 1 << transaction;
        self.versions.rotate_right(1);
        self.versions[0] = transaction as u8 + 1;
    }

    pub fn place(&mut self, transaction: usize, part: Part) {
        self.parts[transaction] = part;
        if let Some(free) = self.versions.iter_mut().find(|it| **it == 0) {
            *free = transaction as u8 + 1;
        }
    }

    pub fn undo(&mut self, transaction: usize) {
        self.parts[transaction] = Part::Undone;
        let kept = self.versions.into_iter().filter(|it| *it != 0 && *it != transaction as u8 + 1);
        let mut versions = [0; TRANSACTIONS];
        versions.iter_mut().zip(kept).for_each(|(to, from)| *to = from);
        self.versions = versions;
    }

    /// The newest number that the node's ldm has applied.
    pub fn newest_applied(&self) -> Number {
        let applied = |transaction: usize| self.parts[transaction] == Part::Applied;
        (0..TRANSACTIONS).filter(|it| applied(*it)).map(|it| self.decisions[it]).max().unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coordinator {
    Active,
    Preparing,
    Undone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    None,
    Committed,
    Aborted,
    /// The client gets 1180.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transaction {
    pub coordinator: Coordinator,
    /// A bit for each written partition.
    pub written: u8,
    /// The epoch in which tc sent PrepareTransaction.
    pub prepare_sent: Option<u8>,
    /// The epoch in which the sequencer was asked for a number.
    pub asked: Option<u8>,
    /// For each partition, the number that its images name in broken variants.
    pub marks: [Number; PARTITIONS],
    /// A bit for each partition whose images a backup could not keep.
    pub refused: u8,
    pub answer: Answer,
    /// When the client sent COMMIT, this epoch had started everywhere.
    pub started_before: u8,
}

/// The decision of a sequencer how an epoch starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    /// H of the specification.
    pub prefix: Number,
    pub decisions: [Number; TRANSACTIONS],
}

/// A committed membership, and the work of its sequencer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Epoch {
    pub serving: u8,
    pub joining: u8,
    pub sequencer: usize,
    /// The first number after the start of the epoch.
    pub base: Number,
    /// Transactions plus one in the order of their numbers.
    pub numbers: [u8; TRANSACTIONS],
    pub start: Option<Start>,
}

impl Epoch {
    pub const fn members(&self) -> u8 {
        self.serving | self.joining
    }

    pub const fn has(&self, node: usize) -> bool {
        self.members() & 1 << node != 0
    }

    pub fn taken(&self) -> usize {
        self.numbers.iter().take_while(|it| **it != 0).count()
    }

    /// The transactions with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, Number)> {
        let taken = self.numbers.iter().take_while(|it| **it != 0);
        taken.enumerate().map(|(index, it)| (*it as usize - 1, self.base + 1 + index as u8))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub nodes: [Node; NODES],
    pub transactions: [Transaction; TRANSACTIONS],
    pub epochs: Vec<Epoch>,
    /// The newest snapshot that any node has chosen.
    pub newest_snapshot: Number,
    /// Crashes and evictions of live nodes that may still happen.
    pub faults_left: u8,
}

impl State {
    pub fn latest(&self) -> &Epoch {
        &self.epochs[self.epochs.len() - 1]
    }

    pub fn latest_index(&self) -> u8 {
        self.epochs.len() as u8 - 1
    }

    /// The last epoch that all its members have started.
    pub fn started_everywhere(&self) -> u8 {
        let has_started =
            |epoch: &u8| nodes_of(self.epoch(*epoch).members()).all(|it| self.nodes[it].started >= *epoch);
        (0..=self.latest_index()).rev().find(has_started).unwrap_or_default()
    }

    /// The epoch that admitted a member.
    pub fn admitted(&self, node: usize) -> u8 {
        (0..=self.latest_index()).find(|it| self.epoch(*it).has(node)).unwrap_or_default()
    }

    pub fn epoch(&self, index: u8) -> &Epoch {
        &self.epochs[index as usize]
    }

    /// Whether the node serves in the epoch that it has started and in the latest one.
    pub fn serves(&self, node: usize) -> bool {
        self.epoch(self.nodes[node].started).serving & self.latest().serving & 1 << node != 0
    }

    /// Whether `to` accepts frames that `from` has sent, also before its end.
    pub fn accepts(&self, to: usize, from: usize) -> bool {
        self.nodes[to].is_alive && self.epoch(self.nodes[to].installed).has(from)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The node of the transaction's tc.
    pub home: usize,
    /// A bit for each partition that it writes; a transaction without one does not exist. Transactions that
    /// write a partition write the same row.
    pub partitions: u8,
}

impl Plan {
    pub fn writes(self, partition: usize) -> bool {
        self.partitions & 1 << partition != 0
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Cluster {
    pub chains: [&'static [usize]; PARTITIONS],
    pub serving: u8,
    pub joining: u8,
    /// Nodes that the raft leader may admit later. They have nothing but the copy that they get.
    pub admits: u8,
    pub sequencer: usize,
    pub plans: [Plan; TRANSACTIONS],
    pub faults: u8,
    /// Blocks apply a decision some time after the mirror has passed it.
    pub blocks_are_slow: bool,
    /// Backups may lack memory for images, so that tc rolls back a transaction in prepare.
    pub prepares_fail: bool,
    pub rule: Rule,
}

impl Cluster {
    /// The replicas of a partition in an epoch, the primary first.
    pub fn chain<'a>(&self, epoch: &'a Epoch, partition: usize) -> impl Iterator<Item = usize> + 'a {
        self.chains[partition].iter().copied().filter(|node| epoch.has(*node))
    }

    pub fn primary(&self, epoch: &Epoch, partition: usize) -> Option<usize> {
        self.chain(epoch, partition).next()
    }

    pub fn partition_at(&self, node: usize) -> Option<usize> {
        (0..PARTITIONS).find(|it| self.chains[*it].contains(&node))
    }

    pub fn partitions_of(&self, transaction: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        let plan = self.plans[transaction];
        (0..PARTITIONS).filter(move |it| plan.writes(*it))
    }

    /// Whether the node holds a replica that the transaction writes.
    pub fn has_part(&self, node: usize, transaction: usize) -> bool {
        self.partition_at(node).is_some_and(|it| self.plans[transaction].writes(it))
    }

    /// Whether a decision on the transaction is sent to the node.
    pub fn hears_of(&self, node: usize, transaction: usize) -> bool {
        self.plans[transaction].home == node || self.has_part(node, transaction)
    }

    /// Whether the node may choose snapshots. A node without a lease waits for the next one, which an evicted
    /// node never gets.
    pub fn may_choose(&self, state: &State, node: usize) -> bool {
        let own = &state.nodes[node];
        let serves = |epoch: u8| state.epoch(epoch).serving & 1 << node != 0;
        if !own.is_alive || !own.has_lease || !serves(own.started) {
            return false;
        }
        let first = (0..=own.started).find(|it| serves(*it)).unwrap_or_default();
        own.stable >= number(first, 0) || self.rule == Rule::FreshNodeServes
    }

    pub fn snapshot_of(&self, state: &State, node: usize) -> Number {
        match self.rule {
            Rule::SnapshotAtApplied => state.nodes[node].applied,
            _ => state.nodes[node].stable,
        }
    }
}
