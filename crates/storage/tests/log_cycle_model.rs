//! A model of the log's cycle, explored over every order of its steps and a crash at every moment. It has two
//! streams and two kinds of transactions. Short transactions form one record in each stream at their commit.
//! Long ones form a chunk before they take their number, and commit in constant time. Each deliberately
//! broken variant shows that the model would detect that error.
//!
//! Run with `cargo test -p junctor-storage --test log_cycle_model -- --nocapture` to see the state counts.
#![cfg(not(any(loom, shuttle)))]

use stateright::{Checker, HasDiscoveries, Model, Property};

const STREAMS: usize = 2;
/// Maximum number of transactions in one configuration of the model.
const TRANSACTIONS: usize = 3;

/// The designed protocol, or the rule that a broken variant breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Designed,
    /// The log collects what has been delivered, whatever the streams have formed.
    FormedIgnored,
    /// The log reads the stable number after it has collected.
    StableReadLast,
    /// The log reads the formed counts before the stable number.
    FormedReadFirst,
    /// Commits are acknowledged when their group is written, not when it is synced.
    AcknowledgedUnsynced,
    /// A participant marks a commit as applied before it forms the record.
    MarkedBeforeFormed,
    /// A long transaction takes its number before its chunks are formed.
    ChunkAfterNumber,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    /// A bit for each stream with a participant.
    streams: u8,
    is_long: bool,
}

#[derive(Clone, Debug)]
struct LogModel {
    plans: Vec<Plan>,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Record {
    Chunk { transaction: u8 },
    Commit { transaction: u8 },
}

/// The state of a transaction at one participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Participant {
    has_chunk: bool,
    has_record: bool,
    is_applied: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Stream {
    /// Every record of the stream, in the order of its forming.
    records: Vec<Record>,
    /// Records counted in the shared word.
    formed: u8,
    /// Records delivered to the log block.
    delivered: u8,
}

/// The end of each stream in a group, and the stable number of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Group {
    stable: u8,
    ends: [u8; STREAMS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Cycle {
    Idle,
    /// The cycle has read the stable number or the formed counts, but not both.
    Reading {
        stable: Option<u8>,
        wanted: Option<[u8; STREAMS]>,
    },
    Written(Group),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Position plus one is the commit number.
    numbers: Vec<u8>,
    participants: [[Participant; STREAMS]; TRANSACTIONS],
    streams: [Stream; STREAMS],
    cycle: Cycle,
    synced: Group,
    durable: u8,
    acknowledged: u8,
    /// The log that a crash left; `None` before the crash.
    left: Option<Group>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    FormChunk {
        transaction: u8,
        stream: usize,
    },
    TakeNumber {
        transaction: u8,
    },
    FormRecord {
        transaction: u8,
        stream: usize,
    },
    Mark {
        transaction: u8,
        stream: usize,
    },
    Deliver {
        stream: usize,
    },
    ReadStable,
    ReadFormed,
    Write,
    Sync,
    Acknowledge {
        transaction: u8,
    },
    /// With a group that was written and not synced, the crash may keep it or lose it.
    Crash {
        keeps_written: bool,
    },
}

impl LogModel {
    fn participants(&self) -> impl Iterator<Item = (u8, usize)> + use<'_> {
        let streams = |(transaction, plan): (usize, &Plan)| {
            let plan = *plan;
            (0..STREAMS).filter(move |stream| plan.streams & 1 << stream != 0).map(move |it| (transaction as u8, it))
        };
        self.plans.iter().enumerate().flat_map(streams)
    }

    fn number_of(&self, state: &State, transaction: u8) -> Option<u8> {
        state.numbers.iter().position(|taken| *taken == transaction).map(|index| index as u8 + 1)
    }

    /// The largest number up to which every commit is applied at all its participants.
    fn stable(&self, state: &State) -> u8 {
        let is_applied = |transaction: u8| {
            let mut own = self.participants().filter(|(other, _)| *other == transaction);
            own.all(|(_, stream)| state.participants[transaction as usize][stream].is_applied)
        };
        state.numbers.iter().take_while(|transaction| is_applied(**transaction)).count() as u8
    }

    fn participant_actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (transaction, stream) in self.participants() {
            let plan = self.plans[transaction as usize];
            let own = state.participants[transaction as usize][stream];
            let has_number = self.number_of(state, transaction).is_some();
            let chunk_is_late = self.rule == Rule::ChunkAfterNumber;
            if plan.is_long && !own.has_chunk && (has_number || !chunk_is_late) {
                actions.push(Action::FormChunk { transaction, stream });
            }
            if !has_number {
                continue;
            }
            let may_mark = own.has_record || self.rule == Rule::MarkedBeforeFormed;
            if !own.has_record {
                actions.push(Action::FormRecord { transaction, stream });
            }
            if may_mark && !own.is_applied {
                actions.push(Action::Mark { transaction, stream });
            }
        }
        for transaction in 0..self.plans.len() as u8 {
            let mut own = self.participants().filter(|(other, _)| *other == transaction);
            let is_prepared = own.all(|(_, stream)| {
                let has_chunk = state.participants[transaction as usize][stream].has_chunk;
                !self.plans[transaction as usize].is_long || has_chunk || self.rule == Rule::ChunkAfterNumber
            });
            if is_prepared && self.number_of(state, transaction).is_none() {
                actions.push(Action::TakeNumber { transaction });
            }
        }
    }

    fn log_actions(&self, state: &State, actions: &mut Vec<Action>) {
        for stream in 0..STREAMS {
            if (state.streams[stream].delivered as usize) < state.streams[stream].records.len() {
                actions.push(Action::Deliver { stream });
            }
        }
        match state.cycle {
            Cycle::Idle => actions.push(match self.rule {
                Rule::FormedReadFirst | Rule::StableReadLast => Action::ReadFormed,
                _ => Action::ReadStable,
            }),
            Cycle::Reading { wanted: None, .. } => actions.push(Action::ReadFormed),
            Cycle::Reading { stable: None, .. } if self.rule == Rule::FormedReadFirst => {
                actions.push(Action::ReadStable);
            }
            Cycle::Reading { wanted: Some(wanted), .. } => {
                let is_there = |stream: usize| state.streams[stream].delivered >= wanted[stream];
                if self.rule == Rule::FormedIgnored || (0..STREAMS).all(is_there) {
                    actions.push(Action::Write);
                }
            }
            Cycle::Written(_) => actions.push(Action::Sync),
        }
        for transaction in 0..self.plans.len() as u8 {
            let is_durable = self.number_of(state, transaction).is_some_and(|number| number <= state.durable);
            if is_durable && state.acknowledged & 1 << transaction == 0 {
                actions.push(Action::Acknowledge { transaction });
            }
        }
    }

    fn on_log_action(&self, state: &mut State, action: Action) {
        let (stable, wanted) = match state.cycle {
            Cycle::Reading { stable, wanted } => (stable, wanted),
            _ => (None, None),
        };
        match action {
            Action::ReadStable => state.cycle = Cycle::Reading { stable: Some(self.stable(state)), wanted },
            Action::ReadFormed => {
                let wanted = Some([0, 1].map(|stream: usize| state.streams[stream].formed));
                state.cycle = Cycle::Reading { stable, wanted };
            }
            Action::Write => {
                let stable = match self.rule {
                    Rule::StableReadLast => self.stable(state),
                    _ => stable.unwrap_or_default(),
                };
                let ends = [0, 1].map(|stream: usize| state.streams[stream].delivered);
                if self.rule == Rule::AcknowledgedUnsynced {
                    state.durable = stable;
                }
                state.cycle = Cycle::Written(Group { stable, ends });
            }
            Action::Sync => {
                if let Cycle::Written(group) = state.cycle {
                    state.synced = group;
                    state.durable = group.stable;
                }
                state.cycle = Cycle::Idle;
            }
            other => unreachable!("{other:?} is no action of the log"),
        }
    }

    /// Whether the records that the log keeps of a transaction are all of them.
    fn is_whole(&self, state: &State, left: &Group, transaction: u8) -> bool {
        let kept = |stream: usize, record: Record| {
            state.streams[stream].records[..left.ends[stream] as usize].contains(&record)
        };
        let mut own = self.participants().filter(|(other, _)| *other == transaction);
        own.all(|(_, stream)| {
            let has_chunk = !self.plans[transaction as usize].is_long || kept(stream, Record::Chunk { transaction });
            has_chunk && kept(stream, Record::Commit { transaction })
        })
    }

    fn transactions(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.plans.len() as u8
    }

    fn keeps_acknowledged(&self, state: &State) -> bool {
        let Some(left) = state.left else { return true };
        let is_kept = |transaction: u8| self.number_of(state, transaction).is_some_and(|number| number <= left.stable);
        self.transactions().all(|it| state.acknowledged & 1 << it == 0 || is_kept(it))
    }

    fn keeps_whole(&self, state: &State) -> bool {
        let Some(left) = state.left else { return true };
        state.numbers.iter().take(left.stable as usize).all(|it| self.is_whole(state, &left, *it))
    }
}

impl Model for LogModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            numbers: Vec::new(),
            participants: [[Participant::default(); STREAMS]; TRANSACTIONS],
            streams: [Stream::default(), Stream::default()],
            cycle: Cycle::Idle,
            synced: Group::default(),
            durable: 0,
            acknowledged: 0,
            left: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.left.is_some() {
            return;
        }
        self.participant_actions(state, actions);
        self.log_actions(state, actions);
        actions.push(Action::Crash { keeps_written: false });
        if matches!(state.cycle, Cycle::Written(_)) {
            actions.push(Action::Crash { keeps_written: true });
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::FormChunk { transaction, stream } => {
                state.participants[transaction as usize][stream].has_chunk = true;
                state.streams[stream].records.push(Record::Chunk { transaction });
                state.streams[stream].formed += 1;
            }
            Action::TakeNumber { transaction } => state.numbers.push(transaction),
            Action::FormRecord { transaction, stream } => {
                state.participants[transaction as usize][stream].has_record = true;
                state.streams[stream].records.push(Record::Commit { transaction });
                state.streams[stream].formed += 1;
            }
            Action::Mark { transaction, stream } => {
                state.participants[transaction as usize][stream].is_applied = true;
            }
            Action::Deliver { stream } => state.streams[stream].delivered += 1,
            Action::Acknowledge { transaction } => state.acknowledged |= 1 << transaction,
            Action::Crash { keeps_written } => {
                state.left = Some(match state.cycle {
                    Cycle::Written(group) if keeps_written => group,
                    _ => state.synced,
                });
            }
            Action::ReadStable | Action::ReadFormed | Action::Write | Action::Sync => {
                self.on_log_action(&mut state, action);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ACKNOWLEDGED, |model: &Self, state| model.keeps_acknowledged(state)),
            Property::always(WHOLE, |model: &Self, state| model.keeps_whole(state)),
            Property::sometimes(ALL, |model: &Self, state: &State| {
                state.acknowledged.count_ones() as usize == model.plans.len()
            }),
            Property::sometimes(LOST, |_, state: &State| {
                state.left.is_some_and(|left| (left.stable as usize) < state.numbers.len())
            }),
        ]
    }
}

const ACKNOWLEDGED: &str = "no acknowledged commit is lost";
const WHOLE: &str = "every commit up to the cut has all its records";
const ALL: &str = "every transaction is acknowledged";
const LOST: &str = "a crash loses a commit that was not acknowledged";

const fn short(streams: u8) -> Plan {
    Plan { streams, is_long: false }
}

const fn long(streams: u8) -> Plan {
    Plan { streams, is_long: true }
}

fn check_holds(name: &str, plans: Vec<Plan>) {
    let checker = LogModel { plans, rule: Rule::Designed }.checker().threads(2).spawn_bfs().join();
    println!("{name}: {} states, depth {}", checker.unique_state_count(), checker.max_depth());
    assert!(checker.is_done());
    checker.assert_properties();
}

fn check_caught(rule: Rule, plans: Vec<Plan>, expected: &[&'static str]) {
    let wanted = HasDiscoveries::AllOf(expected.iter().copied().collect());
    let checker = LogModel { plans, rule }.checker().threads(2).finish_when(wanted).spawn_bfs().join();
    println!("{rule:?}: {} states until caught", checker.unique_state_count());
    for &property in expected {
        assert!(checker.discovery(property).is_some(), "{rule:?} was not caught by: {property}");
    }
}

#[test]
fn short_transactions_survive_a_crash_whole_or_not_at_all() {
    check_holds("two short transactions", vec![short(0b11), short(0b01)]);
}

#[test]
fn a_long_transaction_survives_a_crash_whole_or_not_at_all() {
    check_holds("a long and a short transaction", vec![long(0b11), short(0b01)]);
}

#[test]
fn a_log_that_ignores_formed_records_is_caught() {
    check_caught(Rule::FormedIgnored, vec![short(0b11)], &[WHOLE]);
}

#[test]
fn a_stable_number_read_after_collecting_is_caught() {
    check_caught(Rule::StableReadLast, vec![short(0b11)], &[WHOLE]);
}

#[test]
fn formed_counts_read_before_the_stable_number_are_caught() {
    check_caught(Rule::FormedReadFirst, vec![short(0b11)], &[WHOLE]);
}

#[test]
fn an_acknowledgement_before_the_sync_is_caught() {
    check_caught(Rule::AcknowledgedUnsynced, vec![short(0b01)], &[ACKNOWLEDGED]);
}

#[test]
fn a_mark_before_the_record_is_caught() {
    check_caught(Rule::MarkedBeforeFormed, vec![short(0b01)], &[WHOLE]);
}

#[test]
fn a_chunk_formed_after_the_commit_is_caught() {
    check_caught(Rule::ChunkAfterNumber, vec![long(0b01)], &[WHOLE]);
}
