//! A minimal database that executes the statements of sessions, to test the checker. It is correct at every
//! level, or has one chosen defect.

use std::collections::{BTreeMap, BTreeSet};

use crate::draw::Options;
use crate::history::{History, Key, Kind};
use crate::level::Level;
use crate::session::{Answer, Cell, Request, Session, final_reads, record_final_read};

/// The defect of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    Nothing,
    /// Reads return uncommitted writes of others.
    DirtyReads,
    /// Reads return uncommitted writes of others, but only the first one of each transaction to an object.
    FirstWrites,
    /// Some snapshots lack the last commits.
    StaleSnapshots,
    /// Some reads miss the transaction's own writes.
    OwnWritesMissed,
    /// Some commits omit their last write.
    LostWrites,
    /// Each object after the first in a statement is read from an older snapshot.
    TornStatements,
    /// ROLLBACK TO SAVEPOINT undoes nothing.
    SavepointsForgotten,
    /// Some locks are released before the transaction ends.
    LocksDropped,
}

type Write = (Key, u64);

#[derive(Default)]
struct Active {
    is_open: bool,
    snapshot: Option<usize>,
    writes: Vec<Write>,
    savepoint: usize,
}

/// The database.
pub struct Toy {
    level: Level,
    defect: Defect,
    /// The writes of each commit, in order.
    log: Vec<Vec<Write>>,
    sessions: Vec<Active>,
    locks: BTreeMap<Key, usize>,
    turn: u64,
}

enum Reply {
    Done(u64),
    Rows(Vec<Vec<Cell>>),
    Failed(u16),
}

impl Toy {
    fn execute(&mut self, session: usize, request: &Request) -> Reply {
        self.turn += 1;
        let parameter = |position: usize| request.parameters[position] as u64;
        let ids = || request.parameters.iter().map(|&id| id as u32);
        let text = request.text.as_str();
        let locks = text.ends_with("FOR UPDATE") || text.ends_with("FOR SHARE");
        let reply = if text.starts_with("SET ") {
            return Reply::Done(0);
        } else if text.starts_with("BEGIN") || text.starts_with("START") {
            let snapshot = text.starts_with("START").then_some(self.log.len());
            self.sessions[session] = Active { is_open: true, snapshot, ..Active::default() };
            return Reply::Done(0);
        } else if text == "SAVEPOINT here" {
            self.sessions[session].savepoint = self.sessions[session].writes.len();
            return Reply::Done(0);
        } else if text == "ROLLBACK TO SAVEPOINT here" {
            if self.defect != Defect::SavepointsForgotten {
                let savepoint = self.sessions[session].savepoint;
                self.sessions[session].writes.truncate(savepoint);
            }
            return Reply::Done(0);
        } else if text == "COMMIT" {
            self.end(session, true);
            return Reply::Done(0);
        } else if text == "ROLLBACK" {
            self.end(session, false);
            return Reply::Done(0);
        } else if text.starts_with("UPDATE") {
            let id = parameter(1) as u32;
            let key = if text.contains("_lists") { Key::list(id) } else { Key::register(id) };
            self.write(session, key, parameter(0))
        } else if text.starts_with("INSERT") {
            self.write(session, Key::family(parameter(1) as u32), parameter(0))
        } else if text.contains("_lists") {
            self.read(session, ids().map(Key::list).collect(), locks)
        } else if text.contains("_registers") {
            self.read(session, ids().map(Key::register).collect(), locks)
        } else {
            self.read(session, vec![Key::family(parameter(0) as u32)], false)
        };
        if !self.sessions[session].is_open || matches!(reply, Reply::Failed(1213)) {
            self.end(session, !matches!(reply, Reply::Failed(_)));
        }
        reply
    }

    fn end(&mut self, session: usize, commits: bool) {
        let mut ended = std::mem::take(&mut self.sessions[session]);
        self.locks.retain(|_, owner| *owner != session);
        if self.defect == Defect::LostWrites && self.turn.is_multiple_of(7) {
            ended.writes.pop();
        }
        if commits && !ended.writes.is_empty() {
            self.log.push(ended.writes);
        }
    }

    fn lock(&mut self, session: usize, key: Key) -> Result<(), u16> {
        match self.locks.get(&key) {
            Some(&owner) if owner != session => return Err(1213),
            _ => self.locks.insert(key, session),
        };
        if self.defect == Defect::LocksDropped && self.turn.is_multiple_of(3) {
            self.locks.remove(&key);
        }
        let snapshot = self.sessions[session].snapshot.unwrap_or(self.log.len());
        let has_changed = self.log[snapshot..].iter().flatten().any(|&(changed, _)| changed == key);
        if self.level == Level::Snapshot && has_changed && key.kind != Kind::Family { Err(1020) } else { Ok(()) }
    }

    fn write(&mut self, session: usize, key: Key, value: u64) -> Reply {
        // Members of a family are separate rows, so writers do not conflict. At level Serializable, readers
        // lock the whole family, so writers must lock it too.
        if (key.kind != Kind::Family || self.level == Level::Serializable)
            && let Err(errno) = self.lock(session, key)
        {
            return Reply::Failed(errno);
        }
        self.sessions[session].writes.push((key, value));
        Reply::Done(1)
    }

    fn read(&mut self, session: usize, keys: Vec<Key>, locks: bool) -> Reply {
        for &key in &keys {
            if (locks || self.level == Level::Serializable)
                && let Err(errno) = self.lock(session, key)
            {
                return Reply::Failed(errno);
            }
        }
        let mut snapshot = self.log.len();
        if self.defect == Defect::StaleSnapshots && self.turn.is_multiple_of(5) {
            snapshot = snapshot.saturating_sub(2);
        }
        if matches!(self.level, Level::RepeatableRead | Level::Snapshot) {
            snapshot = *self.sessions[session].snapshot.get_or_insert(snapshot);
        }
        let mut rows = Vec::new();
        for (position, key) in keys.into_iter().enumerate() {
            let is_torn = self.defect == Defect::TornStatements && position > 0;
            let snapshot = if is_torn { snapshot.saturating_sub(2) } else { snapshot };
            rows.extend(self.rows(session, key, snapshot, locks));
        }
        Reply::Rows(rows)
    }

    fn rows(&self, session: usize, key: Key, snapshot: usize, locks: bool) -> Vec<Vec<Cell>> {
        let own = &self.sessions[session].writes;
        let is_own = own.iter().any(|&(written, _)| written == key) && key.kind != Kind::Family;
        let is_newest = locks || is_own || self.level == Level::Serializable;
        let committed = if is_newest { &self.log[..] } else { &self.log[..snapshot] };
        let mut values: Vec<u64> = of(key, committed.iter().flatten());
        if matches!(self.defect, Defect::DirtyReads | Defect::FirstWrites) && !is_newest {
            let count_max = if self.defect == Defect::FirstWrites { 1 } else { usize::MAX };
            let others = self.sessions.iter().enumerate().filter(|(other, _)| *other != session);
            values.extend(others.flat_map(|(_, other)| of(key, other.writes.iter()).into_iter().take(count_max)));
        }
        if !(self.defect == Defect::OwnWritesMissed && self.turn.is_multiple_of(3)) {
            values.extend(of(key, own.iter()));
        }
        let text = |number: u64| Some(number.to_string());
        let id = text(u64::from(key.id));
        match key.kind {
            Kind::List => vec![vec![id, Some(values.iter().map(|value| format!(",{value}")).collect())]],
            Kind::Register => vec![vec![id, text(values.len() as u64), text(values.last().copied().unwrap_or(0))]],
            Kind::Family => values.into_iter().map(|value| vec![text(value)]).collect(),
        }
    }
}

fn of<'a>(key: Key, writes: impl Iterator<Item = &'a Write>) -> Vec<u64> {
    writes.filter(|(written, _)| *written == key).map(|&(_, value)| value).collect()
}

/// A history of sessions on this database. The seed determines the order of the statements.
pub fn run(level: Level, defect: Defect, seed: u64) -> History {
    let options = Options { level, first_id: 10, objects: 8, window: 3, sessions: 5, transactions: 60 };
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = move |count: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % count
    };
    let sessions = (0..options.sessions).map(|_| Active::default()).collect();
    let mut toy = Toy { level, defect, log: Vec::new(), sessions, locks: BTreeMap::new(), turn: 0 };
    let mut sessions: Vec<Session> = (0..options.sessions).map(|number| Session::new(options, number)).collect();
    let mut running: BTreeSet<usize> = (0..sessions.len()).collect();
    let mut stamp = 0;
    while !running.is_empty() {
        let position = below(running.len() as u64) as usize;
        let Some(&number) = running.iter().nth(position) else { continue };
        let Some(request) = sessions[number].next(stamp, &mut below) else {
            running.remove(&number);
            continue;
        };
        let reply = toy.execute(number, &request);
        let answer = match &reply {
            Reply::Done(affected_rows) => Answer::Done { affected_rows: *affected_rows },
            Reply::Rows(rows) => Answer::Rows(rows),
            Reply::Failed(errno) => Answer::Failed { errno: *errno },
        };
        sessions[number].on_answer(answer, stamp + 1).unwrap();
        stamp += 2;
    }
    let mut history = History::default();
    let objects = options.first_id..options.first_id + options.objects;
    for (position, _) in final_reads(&options).iter().enumerate() {
        let mut rows = Vec::new();
        for id in objects.clone() {
            let key = [Key::list(id), Key::register(id), Key::family(id)][position];
            if key.kind == Kind::Family {
                let members = of(key, toy.log.iter().flatten());
                rows.extend(members.into_iter().map(|value| vec![Some(id.to_string()), Some(value.to_string())]));
            } else {
                toy.sessions.push(Active::default());
                rows.extend(toy.rows(toy.sessions.len() - 1, key, toy.log.len(), true));
            }
        }
        record_final_read(&options, position, &rows, &mut history.finals).unwrap();
    }
    history.transactions = sessions.into_iter().flat_map(Session::into_transactions).collect();
    history
}
