//! Sessions that fight for few values of a unique key. Never do two rows have one value, and nobody is told of a
//! duplicate that nobody can have had.

use std::collections::BTreeMap;

use junctor_kernel::Random;

use super::{DEADLOCK, DUPLICATE, Step, Workload, inserts, succeeded};
use crate::statement::{Cell, Reply, Statement, integer};

/// The workload `unique_race`. Each session has one row, which only it writes.
#[derive(Debug)]
pub struct UniqueRace {
    values: u64,
    sessions: Vec<Session>,
    /// Counts statements sent and answered, so that it can be told what came first.
    clock: u64,
    /// When a session last gave up a claim on a value, by value and session.
    released: BTreeMap<(u64, usize), u64>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    /// The id of its row. A statement of a lost connection may still be carried out, so another id is used after each
    /// loss that leaves anything unknown.
    id: i64,
    /// The value that its row had at the last answer; `None` for no row.
    holds: Option<u64>,
    /// The value that its row may have beside `holds`, while a statement is under way.
    claim: Option<u64>,
    /// Values that its rows of earlier ids may have.
    ghosts: Vec<u64>,
    running: Option<Running>,
}

#[derive(Clone, Debug)]
struct Running {
    action: Action,
    sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// INSERT or UPDATE to this value.
    Take(u64),
    Delete,
    ReadAll,
    /// Reads by the unique key.
    Find(u64),
}

impl UniqueRace {
    /// So many sessions, rounds for each, and values to fight for.
    pub fn new(sessions: usize, rounds: u32, values: i64) -> Self {
        let session = |session| Session {
            rounds_left: rounds,
            id: session as i64,
            holds: None,
            claim: None,
            ghosts: Vec::new(),
            running: None,
        };
        Self {
            values: values.max(1) as u64,
            sessions: (0..sessions).map(session).collect(),
            clock: 0,
            released: BTreeMap::new(),
        }
    }

    /// Another session may have had the value at some time since `sent`.
    fn may_be_taken(&self, session: usize, value: u64, sent: u64) -> bool {
        let others = self.sessions.iter().enumerate().filter(|(other, _)| *other != session);
        let has = |other: &Session| other.holds == Some(value) || other.claim == Some(value);
        let claimed = others.clone().any(|(_, other)| has(other));
        let is_ghost = self.sessions.iter().any(|session| session.ghosts.contains(&value));
        let released = |(other, _): (usize, &Session)| self.released.get(&(value, other)).is_some_and(|&at| at >= sent);
        claimed || is_ghost || others.into_iter().any(released)
    }

    /// Another session certainly has the value and does nothing about it.
    fn is_surely_taken(&self, session: usize, value: u64) -> bool {
        let mut others = self.sessions.iter().enumerate().filter(|(other, _)| *other != session);
        others.any(|(_, other)| {
            let changes = other.running.as_ref().is_some_and(|running| running.action.changes());
            other.holds == Some(value) && !changes
        })
    }

    /// From now on the row of the session has this value and no other.
    fn settle(&mut self, session: usize, holds: Option<u64>) {
        let state = &mut self.sessions[session];
        let before = [state.claim.take(), state.holds];
        state.holds = holds;
        for value in before.into_iter().flatten().filter(|&value| holds != Some(value)) {
            self.released.insert((value, session), self.clock);
        }
    }

    fn on_take(&mut self, session: usize, value: u64, sent: u64, reply: &Reply) -> Result<(), String> {
        match reply.errno() {
            DUPLICATE => {
                if !self.may_be_taken(session, value, sent) {
                    return Err(format!("value {value} is called a duplicate, but nobody can have it"));
                }
                let holds = self.sessions[session].holds;
                self.settle(session, holds);
            }
            DEADLOCK => {
                let holds = self.sessions[session].holds;
                self.settle(session, holds);
            }
            _ => {
                super::changed(reply, 1)?;
                if self.is_surely_taken(session, value) {
                    return Err(format!("two rows have value {value}"));
                }
                self.settle(session, Some(value));
            }
        }
        Ok(())
    }
}

impl Action {
    fn changes(self) -> bool {
        matches!(self, Action::Take(_) | Action::Delete)
    }

    fn statement(self, id: i64, has_row: bool) -> Statement {
        match self {
            Action::Take(value) if has_row => {
                Statement::with("UPDATE uniques SET u = ? WHERE id = ?", [shown(value).into(), id.into()])
            }
            Action::Take(value) => {
                Statement::with("INSERT INTO uniques (id, u) VALUES (?, ?)", [id.into(), shown(value).into()])
            }
            Action::Delete => Statement::with("DELETE FROM uniques WHERE id = ?", [id.into()]),
            Action::ReadAll => Statement::plain("SELECT id, u FROM uniques"),
            Action::Find(value) => Statement::with("SELECT id, u FROM uniques WHERE u = ?", [shown(value).into()]),
        }
    }
}

fn shown(value: u64) -> String {
    format!("value {value}")
}

fn value_of(cell: &Cell) -> Result<u64, String> {
    let number = cell.as_deref().and_then(|text| text.strip_prefix("value ")).and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("{cell:?} was never written"))
}

/// No id and no value twice.
fn judge_distinct(rows: &[Vec<Cell>]) -> Result<BTreeMap<u64, i64>, String> {
    let mut by_value = BTreeMap::new();
    let mut ids = Vec::new();
    for row in rows {
        let (id, value) = (integer(&row[0])?, value_of(&row[1])?);
        if let Some(other) = by_value.insert(value, id) {
            return Err(format!("rows {other} and {id} both have value {value}"));
        }
        if ids.contains(&id) {
            return Err(format!("row {id} twice in {rows:?}"));
        }
        ids.push(id);
    }
    Ok(by_value)
}

impl Workload for UniqueRace {
    fn name(&self) -> &'static str {
        "unique_race"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![Statement::plain(
            "CREATE TABLE uniques (id INT NOT NULL PRIMARY KEY, u VARCHAR(30) NOT NULL, UNIQUE KEY u_index (u)) \
             PARTITION BY KEY (id) PARTITIONS 3",
        )];
        // Rows that nobody fights for, so that scans have something to pass by.
        statements.extend(inserts("uniques", 100_000..100_020, |id| format!("{id}, 'value {id}'")));
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        self.clock += 1;
        let value = random.below(self.values);
        let state = &mut self.sessions[session];
        let action = match random.below(10) {
            _ if state.rounds_left == 0 => return Step::Done,
            0 | 1 if state.holds.is_some() => Action::Delete,
            2 => Action::ReadAll,
            3 => Action::Find(value),
            _ => Action::Take(value),
        };
        state.rounds_left = state.rounds_left.saturating_sub(1);
        let (id, has_row) = (state.id, state.holds.is_some());
        if let Action::Take(value) = action {
            state.claim = Some(value);
        }
        state.running = Some(Running { action, sent: self.clock });
        Step::Run(action.statement(id, has_row))
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        self.clock += 1;
        let Some(running) = self.sessions[session].running.take() else {
            return Err("an answer to nothing".to_owned());
        };
        match running.action {
            Action::Take(value) => {
                if !matches!(reply.errno(), DUPLICATE | DEADLOCK) {
                    succeeded(reply)?;
                }
                // An UPDATE to the value that the row has already changes nothing.
                if self.sessions[session].holds == Some(value) && reply.affected_rows() == Ok(0) {
                    self.settle(session, Some(value));
                    return Ok(());
                }
                self.on_take(session, value, running.sent, reply)
            }
            Action::Delete if reply.errno() == DEADLOCK => Ok(()),
            Action::Delete => {
                super::changed(reply, 1)?;
                self.settle(session, None);
                Ok(())
            }
            Action::ReadAll => judge_distinct(reply.rows()?).map(|_| ()),
            Action::Find(value) => {
                let found = judge_distinct(reply.rows()?)?;
                let own = &self.sessions[session];
                if found.keys().any(|&other| other != value) {
                    return Err(format!("{found:?} found by value {value}"));
                }
                if own.holds == Some(value) && found.get(&value) != Some(&own.id) {
                    return Err(format!("the own row has value {value} and was not found by it: {found:?}"));
                }
                Ok(())
            }
        }
    }

    fn on_closed(&mut self, session: usize) {
        self.clock += 1;
        let step = self.sessions.len() as i64;
        let state = &mut self.sessions[session];
        let running = state.running.take();
        if running.is_some_and(|running| running.action.changes()) {
            state.ghosts.extend([state.holds.take(), state.claim.take()].into_iter().flatten());
            state.id += step;
        }
    }

    fn audit(&self) -> Vec<Statement> {
        vec![Statement::plain("SELECT id, u FROM uniques"), Statement::plain("SELECT id, u FROM uniques WHERE u >= ''")]
    }

    fn on_audit(&mut self, _position: usize, reply: &Reply) -> Result<(), String> {
        let by_value = judge_distinct(reply.rows()?)?;
        for state in &self.sessions {
            let held = by_value.iter().find(|(_, id)| **id == state.id).map(|(value, _)| *value);
            if held != state.holds {
                return Err(format!("row {} has {held:?}, although {:?} was acknowledged", state.id, state.holds));
            }
        }
        Ok(())
    }
}
