//! A model of commit numbers, explored over every order of its signals: two tcs, two partitions, one
//! sequencer, one reading session, and a crash of one tc at any moment.
//! `docs/decisions/0001-commit-numbers.md` states the rules. Each deliberately broken variant shows that the
//! model would detect that error.
//!
//! The sequencer replies by signals, as it does in a cluster. On a single node, a number is taken by one
//! atomic operation. This is a subset of the orders explored here: those in which the reply directly follows
//! the request.
//!
//! Run with `cargo test -p junctor-storage --test commit_number_model -- --nocapture` to see the state
//! counts.
#![cfg(not(any(loom, shuttle)))]

use stateright::{Checker, HasDiscoveries, Model, Property};

/// Maximum number of transactions in one configuration of the model.
const TRANSACTIONS: usize = 3;
const PARTITIONS: usize = 2;
const KEYS: usize = 4;
/// The sequencer's bit in [`TakeOver::waiting`], after the partition bits.
const SEQUENCER_BIT: u8 = 1 << PARTITIONS;
const EVERY_PARTITION: u8 = (1 << PARTITIONS) - 1;

/// Keys 0 and 1 live in partition 0, keys 2 and 3 in partition 1.
const fn partition_of(key: usize) -> usize {
    key / 2
}

/// The designed protocol, or the rule that a broken variant breaks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Designed,
    /// Stable is the last number taken, applied or not.
    StableIsLastTaken,
    /// The sequencer still gives numbers to the dead tc after it has replied to the survivor.
    SequencerHearsDead,
    /// Partitions still obey the dead tc after they have replied to the survivor.
    PartitionsHearDead,
    /// The survivor undoes every prepared transaction without asking for the dead tc's numbers.
    RecordIgnored,
    /// A transaction takes its number before its prepares have succeeded.
    NumberBeforePrepare,
}

#[derive(Clone, Debug)]
struct Plan {
    home: u8,
    keys: &'static [usize],
}

#[derive(Clone, Debug)]
struct CommitModel {
    plans: Vec<Plan>,
    may_crash: bool,
    snapshots: u8,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Party {
    Tc(u8),
    Partition(u8),
    Sequencer,
}
use Party::{Partition, Sequencer, Tc};

/// A signal in flight. Signals are neither lost nor duplicated, but arrive in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Signal {
    from: Party,
    to: Party,
    body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Body {
    Prepare {
        transaction: u8,
    },
    PrepareReply {
        transaction: u8,
        prepared: bool,
    },
    Abort {
        transaction: u8,
    },
    TakeNumber {
        transaction: u8,
    },
    TakeNumberReply {
        transaction: u8,
        number: u8,
    },
    Commit {
        transaction: u8,
        number: u8,
    },
    CommitReply {
        transaction: u8,
    },
    MarkApplied {
        number: u8,
    },
    StableReached {
        transaction: u8,
    },
    TcFailed,
    Fence {
        dead: u8,
    },
    /// From a partition: the transactions of the dead tc that are prepared there, one bit each.
    FencePartitionReply {
        prepared: u8,
    },
    /// From the sequencer: for each transaction, the number that the dead tc took and did not report as
    /// applied; 0 means none.
    FenceSequencerReply {
        numbers: [u8; TRANSACTIONS],
    },
}

/// The coordinating tc's progress with a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Preparing {
        waiting: u8,
        prepared: u8,
    },
    TakingNumber {
        prepared: u8,
    },
    Committing {
        number: u8,
        waiting: u8,
    },
    Applied,
    Aborted,
    /// The coordinator is dead, and its record is lost.
    Orphaned,
}

/// The state of one transaction in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Version {
    Absent,
    Prepared,
    Stamped(u8),
}

/// The sequencer's record of one number; the number is the position plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Record {
    transaction: u8,
    owner: u8,
    applied: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TakeOver {
    waiting: u8,
    prepared: [u8; PARTITIONS],
    numbers: [u8; TRANSACTIONS],
}

/// A session that takes snapshots one after another and reads the partitions in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Reader {
    snapshots_taken: u8,
    snapshot: Option<u8>,
    snapshot_before: u8,
    /// Transactions acknowledged before the snapshot was taken, one bit each.
    acknowledged: u8,
    partitions_read: u8,
    /// By key, the commit number of the version read; 0 is the version that precedes all transactions.
    seen: [u8; KEYS],
}

/// Violations seen so far, one bit each; each bit belongs to one property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Faults(u8);

impl Faults {
    const HALF_SEEN: u8 = 1;
    const UNDECIDED_MET: u8 = 2;
    const ACKNOWLEDGED_UNSEEN: u8 = 4;
    const SESSION_WENT_BACK: u8 = 8;
    const NOT_THE_PREFIX: u8 = 16;
    const STAMPED_OUT_OF_ORDER: u8 = 32;
    const NUMBERED_UNDONE: u8 = 64;
    const STAMPED_UNPREPARED: u8 = 128;

    fn note(&mut self, fault: u8, happened: bool) {
        if happened {
            self.0 |= fault;
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Sorted, so that equal sets of signals are equal states.
    signals: Vec<Signal>,
    phases: [Phase; TRANSACTIONS],
    versions: [[Version; TRANSACTIONS]; PARTITIONS],
    records: Vec<Record>,
    stable: u8,
    dead: Option<u8>,
    take_over: Option<TakeOver>,
    acknowledged: u8,
    /// Transactions of the dead tc that the survivor committed or undid, one bit each.
    adopted: u8,
    undone: u8,
    reader: Reader,
    faults: Faults,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Deliver(Signal),
    Crash(u8),
    TakeSnapshot,
    ReadPartition(u8),
}

impl State {
    fn send(&mut self, from: Party, to: Party, body: Body) {
        if self.dead.is_some_and(|dead| to == Tc(dead)) {
            return;
        }
        let signal = Signal { from, to, body };
        let position = self.signals.binary_search(&signal).unwrap_or_else(|position| position);
        self.signals.insert(position, signal);
    }

    fn number_of(&self, transaction: u8) -> Option<u8> {
        self.records.iter().position(|record| record.transaction == transaction).map(|index| index as u8 + 1)
    }

    /// Stops listening to the dead tc. Its signals in flight to this listener would be dropped on arrival.
    /// Dropping them now is equivalent and needs fewer states.
    fn fence(&mut self, dead: u8, listener: Party) {
        self.signals.retain(|signal| signal.from != Tc(dead) || signal.to != listener);
    }

    fn is_quiet(&self) -> bool {
        self.signals.is_empty()
    }
}

/// A partition's reply to a prepare.
#[derive(Clone, Copy)]
struct Vote {
    partition: u8,
    succeeded: bool,
}

/// A transaction with the commit number that the sequencer gave it.
#[derive(Clone, Copy)]
struct Numbered {
    transaction: u8,
    number: u8,
}

impl CommitModel {
    fn transactions(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.plans.len() as u8
    }

    fn writes(&self, transaction: u8, key: usize) -> bool {
        self.plans[transaction as usize].keys.contains(&key)
    }

    fn participants(&self, transaction: u8) -> u8 {
        self.plans[transaction as usize].keys.iter().fold(0, |bits, &key| bits | 1 << partition_of(key))
    }

    fn meet(&self, partition: u8, one: u8, other: u8) -> bool {
        (0..KEYS).any(|key| partition_of(key) == partition as usize && self.writes(one, key) && self.writes(other, key))
    }

    fn on_signal(&self, state: &mut State, signal: Signal) {
        let Signal { from, to, body } = signal;
        match to {
            Partition(partition) => self.on_partition_signal(state, partition, from, body),
            Sequencer => self.on_sequencer_signal(state, from, body),
            Tc(tc) => self.on_tc_signal(state, tc, from, body),
        }
    }

    fn on_partition_signal(&self, state: &mut State, partition: u8, from: Party, body: Body) {
        let here = partition as usize;
        match body {
            Body::Prepare { transaction } => {
                let locked = self.transactions().any(|other| {
                    state.versions[here][other as usize] == Version::Prepared
                        && self.meet(partition, transaction, other)
                });
                if !locked {
                    state.versions[here][transaction as usize] = Version::Prepared;
                }
                state.send(Partition(partition), from, Body::PrepareReply { transaction, prepared: !locked });
            }
            Body::Abort { transaction } => {
                let numbered = state.number_of(transaction).is_some();
                state.faults.note(Faults::NUMBERED_UNDONE, numbered);
                state.versions[here][transaction as usize] = Version::Absent;
            }
            Body::Commit { transaction, number } => {
                let before = state.versions[here][transaction as usize];
                let out_of_order = self.transactions().any(|other| {
                    matches!(state.versions[here][other as usize], Version::Stamped(newer) if newer > number)
                        && self.meet(partition, transaction, other)
                });
                state.faults.note(Faults::STAMPED_OUT_OF_ORDER, out_of_order);
                state.faults.note(Faults::STAMPED_UNPREPARED, before == Version::Absent);
                state.versions[here][transaction as usize] = Version::Stamped(number);
                state.send(Partition(partition), from, Body::CommitReply { transaction });
            }
            Body::Fence { dead } => {
                if self.rule != Rule::PartitionsHearDead {
                    state.fence(dead, Partition(partition));
                }
                let prepared = self.transactions().filter(|&transaction| {
                    self.plans[transaction as usize].home == dead
                        && state.versions[here][transaction as usize] == Version::Prepared
                });
                let prepared = prepared.fold(0, |bits, transaction| bits | 1 << transaction);
                state.send(Partition(partition), from, Body::FencePartitionReply { prepared });
            }
            other => unreachable!("no partition receives {other:?}"),
        }
    }

    fn on_sequencer_signal(&self, state: &mut State, from: Party, body: Body) {
        let Tc(tc) = from else { unreachable!("only a tc talks to the sequencer") };
        match body {
            Body::TakeNumber { transaction } => {
                state.records.push(Record { transaction, owner: tc, applied: false });
                let number = state.records.len() as u8;
                state.send(Sequencer, from, Body::TakeNumberReply { transaction, number });
            }
            Body::MarkApplied { number } => state.records[number as usize - 1].applied = true,
            Body::Fence { dead } => {
                if self.rule != Rule::SequencerHearsDead {
                    state.fence(dead, Sequencer);
                }
                let mut numbers = [0; TRANSACTIONS];
                for (index, record) in state.records.iter_mut().enumerate() {
                    if record.owner == dead && !record.applied {
                        record.owner = tc;
                        numbers[record.transaction as usize] = index as u8 + 1;
                    }
                }
                state.send(Sequencer, from, Body::FenceSequencerReply { numbers });
            }
            other => unreachable!("the sequencer does not receive {other:?}"),
        }
        self.advance_stable(state);
    }

    fn advance_stable(&self, state: &mut State) {
        while let Some(&record) = state.records.get(state.stable as usize) {
            if !record.applied && self.rule != Rule::StableIsLastTaken {
                break;
            }
            state.stable += 1;
            let body = Body::StableReached { transaction: record.transaction };
            state.send(Sequencer, Tc(record.owner), body);
        }
    }

    fn on_tc_signal(&self, state: &mut State, tc: u8, from: Party, body: Body) {
        match (body, from) {
            (Body::PrepareReply { transaction, prepared }, Partition(partition)) => {
                self.on_prepare_reply(state, tc, transaction, Vote { partition, succeeded: prepared })
            }
            (Body::TakeNumberReply { transaction, number }, _) => {
                let Phase::TakingNumber { prepared } = state.phases[transaction as usize] else {
                    unreachable!("a number nobody asked for")
                };
                self.send_commits(state, tc, Numbered { transaction, number }, prepared);
            }
            (Body::CommitReply { transaction }, Partition(partition)) => {
                let Phase::Committing { number, waiting } = state.phases[transaction as usize] else {
                    unreachable!("a commit reply nobody waits for")
                };
                let waiting = waiting & !(1 << partition);
                state.phases[transaction as usize] = Phase::Committing { number, waiting };
                if waiting == 0 {
                    state.phases[transaction as usize] = Phase::Applied;
                    state.send(Tc(tc), Sequencer, Body::MarkApplied { number });
                }
            }
            (Body::StableReached { transaction }, _) => {
                // The client of a dead tc has lost its connection too, so nobody needs a notification.
                if self.plans[transaction as usize].home == tc {
                    state.acknowledged |= 1 << transaction;
                }
            }
            (Body::TcFailed, Tc(dead)) => {
                let waiting = EVERY_PARTITION | SEQUENCER_BIT;
                state.take_over = Some(TakeOver { waiting, prepared: [0; PARTITIONS], numbers: [0; TRANSACTIONS] });
                state.send(Tc(tc), Sequencer, Body::Fence { dead });
                for partition in 0..PARTITIONS as u8 {
                    state.send(Tc(tc), Partition(partition), Body::Fence { dead });
                }
            }
            (Body::FencePartitionReply { prepared }, Partition(partition)) => {
                self.on_fence_reply(state, tc, 1 << partition, |take_over| {
                    take_over.prepared[partition as usize] = prepared
                });
            }
            (Body::FenceSequencerReply { numbers }, _) => {
                self.on_fence_reply(state, tc, SEQUENCER_BIT, |take_over| take_over.numbers = numbers);
            }
            other => unreachable!("no tc receives {other:?}"),
        }
    }

    fn on_prepare_reply(&self, state: &mut State, tc: u8, transaction: u8, vote: Vote) {
        let Vote { partition, succeeded } = vote;
        let Phase::Preparing { waiting, mut prepared } = state.phases[transaction as usize] else {
            unreachable!("a prepare reply nobody waits for")
        };
        let waiting = waiting & !(1 << partition);
        prepared |= u8::from(succeeded) << partition;
        state.phases[transaction as usize] = Phase::Preparing { waiting, prepared };
        if waiting != 0 {
            return;
        }
        if prepared != self.participants(transaction) {
            state.phases[transaction as usize] = Phase::Aborted;
            self.send_to_partitions(state, tc, prepared, Body::Abort { transaction });
        } else if self.rule == Rule::NumberBeforePrepare {
            let number = state.number_of(transaction).unwrap_or_else(|| unreachable!("numbered at the start"));
            self.send_commits(state, tc, Numbered { transaction, number }, prepared);
        } else {
            state.phases[transaction as usize] = Phase::TakingNumber { prepared };
            state.send(Tc(tc), Sequencer, Body::TakeNumber { transaction });
        }
    }

    fn on_fence_reply(&self, state: &mut State, tc: u8, answered: u8, keep: impl FnOnce(&mut TakeOver)) {
        let Some(mut take_over) = state.take_over else { unreachable!("a fence reply nobody waits for") };
        take_over.waiting &= !answered;
        keep(&mut take_over);
        state.take_over = Some(take_over);
        if take_over.waiting == 0 {
            self.decide_orphans(state, tc, &take_over);
            // The answers are no longer needed. Forgetting them merges equivalent states.
            state.take_over = None;
        }
    }

    /// The take-over rule: a transaction with a number is committed with it, one without is undone.
    fn decide_orphans(&self, state: &mut State, tc: u8, take_over: &TakeOver) {
        for transaction in self.transactions() {
            let prepared = (0..PARTITIONS).filter(|&partition| take_over.prepared[partition] & 1 << transaction != 0);
            let prepared = prepared.fold(0, |bits, partition| bits | 1 << partition);
            let number = take_over.numbers[transaction as usize];
            if number != 0 && self.rule != Rule::RecordIgnored {
                state.adopted |= 1 << transaction;
                self.send_commits(state, tc, Numbered { transaction, number }, prepared);
            } else if prepared != 0 {
                state.undone |= 1 << transaction;
                state.phases[transaction as usize] = Phase::Aborted;
                self.send_to_partitions(state, tc, prepared, Body::Abort { transaction });
            }
        }
    }

    /// Stamps the partitions given as bits. No bit means that all of them are already stamped.
    fn send_commits(&self, state: &mut State, tc: u8, numbered: Numbered, partitions: u8) {
        let Numbered { transaction, number } = numbered;
        if partitions == 0 {
            state.phases[transaction as usize] = Phase::Applied;
            state.send(Tc(tc), Sequencer, Body::MarkApplied { number });
        } else {
            state.phases[transaction as usize] = Phase::Committing { number, waiting: partitions };
            self.send_to_partitions(state, tc, partitions, Body::Commit { transaction, number });
        }
    }

    fn send_to_partitions(&self, state: &mut State, tc: u8, partitions: u8, body: Body) {
        for partition in (0..PARTITIONS as u8).filter(|partition| partitions & 1 << partition != 0) {
            state.send(Tc(tc), Partition(partition), body);
        }
    }

    fn crash(&self, state: &mut State, dead: u8) {
        state.dead = Some(dead);
        // Signals in flight to the dead tc are lost; signals that it sent may still arrive.
        state.signals.retain(|signal| signal.to != Tc(dead));
        for transaction in self.transactions() {
            if self.plans[transaction as usize].home == dead {
                state.phases[transaction as usize] = Phase::Orphaned;
            }
        }
        state.send(Tc(dead), Tc(1 - dead), Body::TcFailed);
    }

    fn take_snapshot(&self, state: &mut State) {
        let snapshot = state.stable;
        let reader = &mut state.reader;
        state.faults.note(Faults::SESSION_WENT_BACK, snapshot < reader.snapshot_before);
        reader.snapshots_taken += 1;
        reader.snapshot = Some(snapshot);
        reader.acknowledged = state.acknowledged;
    }

    fn read_partition(&self, state: &mut State, snapshot: u8, partition: u8) {
        let here = state.versions[partition as usize];
        let undecided = self.transactions().any(|transaction| {
            here[transaction as usize] == Version::Prepared
                && state.number_of(transaction).is_some_and(|number| number <= snapshot)
        });
        state.faults.note(Faults::UNDECIDED_MET, undecided);
        for key in (0..KEYS).filter(|&key| partition_of(key) == partition as usize) {
            let stamped = self.transactions().filter_map(|transaction| match here[transaction as usize] {
                Version::Stamped(number) if number <= snapshot && self.writes(transaction, key) => Some(number),
                _ => None,
            });
            state.reader.seen[key] = stamped.max().unwrap_or(0);
        }
        state.reader.partitions_read |= 1 << partition;
        if state.reader.partitions_read == EVERY_PARTITION {
            self.judge_reader(state, snapshot);
            let snapshots_taken = state.reader.snapshots_taken;
            state.reader = Reader { snapshots_taken, snapshot_before: snapshot, ..Reader::default() };
        }
    }

    fn judge_reader(&self, state: &mut State, snapshot: u8) {
        let reader = state.reader;
        for transaction in self.transactions() {
            let Some(number) = state.number_of(transaction) else { continue };
            let keys = self.plans[transaction as usize].keys;
            let keys_seen = keys.iter().filter(|&&key| reader.seen[key] >= number).count();
            let acknowledged = reader.acknowledged & 1 << transaction != 0;
            state.faults.note(Faults::HALF_SEEN, keys_seen != 0 && keys_seen != keys.len());
            state.faults.note(Faults::ACKNOWLEDGED_UNSEEN, acknowledged && keys_seen != keys.len());
            state.faults.note(Faults::NOT_THE_PREFIX, (number <= snapshot) != (keys_seen == keys.len()));
        }
    }

    /// Whether every number up to stable is applied at all its participants, checked at the partitions
    /// themselves.
    fn has_no_hole(&self, state: &State) -> bool {
        (1..=state.stable).all(|number| {
            let transaction = state.records[number as usize - 1].transaction;
            (0..PARTITIONS)
                .filter(|&partition| self.participants(transaction) & 1 << partition != 0)
                .all(|partition| state.versions[partition][transaction as usize] == Version::Stamped(number))
        })
    }

    fn is_settled(&self, state: &State) -> bool {
        let unsettled = |version: &Version| *version == Version::Prepared;
        let acknowledged = self.transactions().all(|transaction| {
            state.phases[transaction as usize] != Phase::Applied
                || state.dead == Some(self.plans[transaction as usize].home)
                || state.acknowledged & 1 << transaction != 0
        });
        state.stable as usize == state.records.len() && acknowledged && !state.versions.iter().flatten().any(unsettled)
    }
}

impl Model for CommitModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            signals: Vec::new(),
            phases: [Phase::Aborted; TRANSACTIONS],
            versions: [[Version::Absent; TRANSACTIONS]; PARTITIONS],
            records: Vec::new(),
            stable: 0,
            dead: None,
            take_over: None,
            acknowledged: 0,
            adopted: 0,
            undone: 0,
            reader: Reader::default(),
            faults: Faults::default(),
        };
        for transaction in self.transactions() {
            let home = self.plans[transaction as usize].home;
            let waiting = self.participants(transaction);
            state.phases[transaction as usize] = Phase::Preparing { waiting, prepared: 0 };
            self.send_to_partitions(&mut state, home, waiting, Body::Prepare { transaction });
            if self.rule == Rule::NumberBeforePrepare {
                state.records.push(Record { transaction, owner: home, applied: false });
            }
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(state.signals.iter().copied().map(Action::Deliver));
        if self.may_crash && state.dead.is_none() {
            actions.extend([Action::Crash(0), Action::Crash(1)]);
        }
        match state.reader.snapshot {
            Some(_) => {
                let unread = (0..PARTITIONS as u8).filter(|place| state.reader.partitions_read & 1 << place == 0);
                actions.extend(unread.map(Action::ReadPartition));
            }
            None if state.reader.snapshots_taken < self.snapshots => actions.push(Action::TakeSnapshot),
            None => {}
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Deliver(signal) => {
                let position = state.signals.binary_search(&signal).ok()?;
                state.signals.remove(position);
                self.on_signal(&mut state, signal);
            }
            Action::Crash(tc) => self.crash(&mut state, tc),
            Action::TakeSnapshot => self.take_snapshot(&mut state),
            Action::ReadPartition(partition) => {
                let snapshot = state.reader.snapshot?;
                self.read_partition(&mut state, snapshot, partition);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let without = |name, condition| Property::<Self>::always(name, condition);
        let mut properties = vec![
            without(HALF, |_, state| state.faults.0 & Faults::HALF_SEEN == 0),
            without(UNDECIDED, |_, state| state.faults.0 & Faults::UNDECIDED_MET == 0),
            without(ACKNOWLEDGED, |_, state| state.faults.0 & Faults::ACKNOWLEDGED_UNSEEN == 0),
            without(FORWARD, |_, state| state.faults.0 & Faults::SESSION_WENT_BACK == 0),
            without(PREFIX, |_, state| state.faults.0 & Faults::NOT_THE_PREFIX == 0),
            without(ORDER, |_, state| state.faults.0 & Faults::STAMPED_OUT_OF_ORDER == 0),
            without(NUMBERED, |_, state| state.faults.0 & Faults::NUMBERED_UNDONE == 0),
            without(PREPARED, |_, state| state.faults.0 & Faults::STAMPED_UNPREPARED == 0),
            Property::always(HOLE, |model: &Self, state| model.has_no_hole(state)),
            // Every run ends, because each step uses up a signal, the crash or a read. This property
            // therefore states that every block finally learns the stable number. Unlike an "eventually"
            // property, it also covers paths that merge.
            Property::always(SETTLED, |model: &Self, state: &State| !state.is_quiet() || model.is_settled(state)),
            Property::eventually(REACHED, |model: &Self, state: &State| state.is_quiet() && model.is_settled(state)),
            Property::sometimes(ALL_COMMIT, |model: &Self, state: &State| state.stable as usize == model.plans.len()),
        ];
        if self.may_crash {
            properties.push(Property::sometimes(ADOPTED, |_, state: &State| state.adopted != 0 && state.is_quiet()));
            properties.push(Property::sometimes(UNDONE, |_, state: &State| state.undone != 0 && state.is_quiet()));
        }
        properties
    }
}

const HALF: &str = "no snapshot sees half of a transaction";
const UNDECIDED: &str = "no snapshot meets an undecided version that belongs to it";
const ACKNOWLEDGED: &str = "every later snapshot sees an acknowledged commit";
const FORWARD: &str = "the snapshots of a session never go backward";
const PREFIX: &str = "a snapshot sees exactly the transactions up to its number";
const ORDER: &str = "versions of a key are stamped in the order of their numbers";
const NUMBERED: &str = "a numbered transaction is never undone";
const PREPARED: &str = "only a prepared version is stamped";
const HOLE: &str = "stable never passes a hole";
const SETTLED: &str = "when no signal is under way stable is the last number taken and nothing is left prepared";
const REACHED: &str = "stable reaches every taken number";
const ALL_COMMIT: &str = "every transaction commits";
const ADOPTED: &str = "the survivor commits a numbered transaction of the dead";
const UNDONE: &str = "the survivor undoes an unnumbered transaction of the dead";

/// Two transactions that conflict on key 0. Both write in both partitions.
fn two_that_meet() -> Vec<Plan> {
    vec![Plan { home: 0, keys: &[0, 2] }, Plan { home: 1, keys: &[0, 3] }]
}

/// The two of [`two_that_meet`], and a small one in partition 1.
fn three() -> Vec<Plan> {
    let mut plans = two_that_meet();
    plans.push(Plan { home: 0, keys: &[3] });
    plans
}

fn check_holds(name: &str, model: CommitModel) {
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{name}: {} states, depth {}", checker.unique_state_count(), checker.max_depth());
    assert!(checker.is_done());
    checker.assert_properties();
}

/// Asserts that each of these properties detects the broken rule.
fn check_caught(model: CommitModel, expected: &[&'static str]) {
    let rule = model.rule;
    let wanted = HasDiscoveries::AllOf(expected.iter().copied().collect());
    let checker = model.checker().threads(2).finish_when(wanted).spawn_bfs().join();
    println!("{rule:?}: {} states until caught", checker.unique_state_count());
    for &property in expected {
        let path = checker.discovery(property);
        assert!(path.is_some(), "{rule:?} was not caught by: {property}");
    }
}

#[test]
fn three_transactions_without_a_crash_keep_every_promise() {
    check_holds(
        "three transactions, no crash, two snapshots",
        CommitModel { plans: three(), may_crash: false, snapshots: 2, rule: Rule::Designed },
    );
}

#[test]
fn two_transactions_and_a_crash_keep_every_promise() {
    check_holds(
        "two transactions, one crash, two snapshots",
        CommitModel { plans: two_that_meet(), may_crash: true, snapshots: 2, rule: Rule::Designed },
    );
}

#[test]
fn three_transactions_and_a_crash_keep_every_promise() {
    check_holds(
        "three transactions, one crash, one snapshot",
        CommitModel { plans: three(), may_crash: true, snapshots: 1, rule: Rule::Designed },
    );
}

#[test]
fn the_model_catches_a_stable_number_beyond_unapplied_commits() {
    check_caught(
        CommitModel { plans: two_that_meet(), may_crash: false, snapshots: 1, rule: Rule::StableIsLastTaken },
        &[HALF, UNDECIDED, ACKNOWLEDGED, PREFIX, HOLE],
    );
}

#[test]
fn the_model_catches_a_sequencer_that_accepts_signals_of_dead_nodes() {
    check_caught(
        CommitModel { plans: two_that_meet(), may_crash: true, snapshots: 0, rule: Rule::SequencerHearsDead },
        &[NUMBERED, SETTLED],
    );
}

#[test]
fn the_model_catches_partitions_that_accept_signals_of_dead_nodes() {
    check_caught(
        CommitModel { plans: two_that_meet(), may_crash: true, snapshots: 0, rule: Rule::PartitionsHearDead },
        &[SETTLED],
    );
}

#[test]
fn the_model_catches_a_survivor_that_ignores_numbers_of_dead_nodes() {
    check_caught(
        CommitModel { plans: two_that_meet(), may_crash: true, snapshots: 0, rule: Rule::RecordIgnored },
        &[NUMBERED, SETTLED],
    );
}

#[test]
fn the_model_catches_a_number_taken_before_all_prepares() {
    check_caught(
        CommitModel { plans: two_that_meet(), may_crash: false, snapshots: 0, rule: Rule::NumberBeforePrepare },
        &[ORDER, SETTLED],
    );
}
