//! Sessions that compete for few values of a unique key. No value is in two rows, and no session gets a
//! duplicate-key error for a value that no other row can have had.

use std::collections::BTreeMap;

use junctor_kernel::Random;

use super::{DEADLOCK, DUPLICATE, Step, Workload, inserts, succeeded};
use crate::statement::{Cell, Reply, Statement, integer};

/// The workload `unique_race`. Each session has one row, which only this session writes.
#[derive(Debug)]
pub struct UniqueRace {
    values: u64,
    sessions: Vec<Session>,
    /// Counts statements sent and answered. It orders releases and requests.
    clock: u64,
    /// When each session last released a value.
    released: BTreeMap<(u64, usize), u64>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    /// The id of the session's row. After a connection loss with an unknown outcome, the session uses a new
    /// id, because the old statement may still take effect.
    id: i64,
    /// The value of the row after the last answer; `None` if there is no row.
    holds: Option<u64>,
    /// The value that the statement in flight may have given the row.
    claim: Option<u64>,
    /// The values that rows of earlier ids may have.
    uncertain: Vec<u64>,
    running: Option<Running>,
}

#[derive(Clone, Debug)]
struct Running {
    action: Action,
    sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// INSERT with this value, or UPDATE to it.
    Take(u64),
    Delete,
    ReadAll,
    /// Reads by the unique key.
    Find(u64),
}

impl UniqueRace {
    /// Creates the workload with this number of sessions, rounds of each session, and values to compete for.
    pub fn new(sessions: usize, rounds: u32, values: i64) -> Self {
        let session = |session| Session {
            rounds_left: rounds,
            id: session as i64,
            holds: None,
            claim: None,
            uncertain: Vec::new(),
            running: None,
        };
        Self {
            values: values.max(1) as u64,
            sessions: (0..sessions).map(session).collect(),
            clock: 0,
            released: BTreeMap::new(),
        }
    }

    /// Whether another row may have had the value at any time since `sent`.
    fn may_be_taken(&self, session: usize, value: u64, sent: u64) -> bool {
        let others = self.sessions.iter().enumerate().filter(|(other, _)| *other != session);
        let has = |other: &Session| other.holds == Some(value) || other.claim == Some(value);
        let claimed = others.clone().any(|(_, other)| has(other));
        let is_uncertain = self.sessions.iter().any(|session| session.uncertain.contains(&value));
        let released = |(other, _): (usize, &Session)| self.released.get(&(value, other)).is_some_and(|&at| at >= sent);
        claimed || is_uncertain || others.into_iter().any(released)
    }

    /// Whether another session certainly has the value and no statement in flight changes that.
    fn is_surely_taken(&self, session: usize, value: u64) -> bool {
        let mut others = self.sessions.iter().enumerate().filter(|(other, _)| *other != session);
        others.any(|(_, other)| {
            let changes = other.running.as_ref().is_some_and(|running| running.action.changes());
            other.holds == Some(value) && !changes
        })
    }

    /// Records the value of the session's row now that its statement has been answered.
    fn resolve(&mut self, session: usize, holds: Option<u64>) {
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
                    return Err(format!("duplicate-key error for value {value}, which no other row can have"));
                }
                let holds = self.sessions[session].holds;
                self.resolve(session, holds);
            }
            DEADLOCK => {
                let holds = self.sessions[session].holds;
                self.resolve(session, holds);
            }
            _ => {
                super::changed(reply, 1)?;
                if self.is_surely_taken(session, value) {
                    return Err(format!("two rows have value {value}"));
                }
                self.resolve(session, Some(value));
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
                Statement::with("UPDATE uniques SET u = ? WHERE id = ?", [value_text(value).into(), id.into()])
            }
            Action::Take(value) => {
                Statement::with("INSERT INTO uniques (id, u) VALUES (?, ?)", [id.into(), value_text(value).into()])
            }
            Action::Delete => Statement::with("DELETE FROM uniques WHERE id = ?", [id.into()]),
            Action::ReadAll => Statement::plain("SELECT id, u FROM uniques"),
            Action::Find(value) => Statement::with("SELECT id, u FROM uniques WHERE u = ?", [value_text(value).into()]),
        }
    }
}

fn value_text(value: u64) -> String {
    format!("value {value}")
}

fn value_of(cell: &Cell) -> Result<u64, String> {
    let number = cell.as_deref().and_then(|text| text.strip_prefix("value ")).and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("{cell:?} was never written"))
}

/// Checks that no id and no value occurs twice. Returns the ids by value.
fn check_distinct(rows: &[Vec<Cell>]) -> Result<BTreeMap<u64, i64>, String> {
    let mut by_value = BTreeMap::new();
    let mut ids = Vec::new();
    for row in rows {
        let (id, value) = (integer(&row[0])?, value_of(&row[1])?);
        if let Some(other) = by_value.insert(value, id) {
            return Err(format!("rows {other} and {id} both have value {value}"));
        }
        if ids.contains(&id) {
            return Err(format!("row {id} occurs twice in {rows:?}"));
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
        // Rows outside the competition, which scans have to skip.
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
            return Err("an answer without a statement".to_owned());
        };
        match running.action {
            Action::Take(value) => {
                if !matches!(reply.errno(), DUPLICATE | DEADLOCK) {
                    succeeded(reply)?;
                }
                // An UPDATE to the row's current value changes nothing.
                if self.sessions[session].holds == Some(value) && reply.affected_rows() == Ok(0) {
                    self.resolve(session, Some(value));
                    return Ok(());
                }
                self.on_take(session, value, running.sent, reply)
            }
            Action::Delete if reply.errno() == DEADLOCK => Ok(()),
            Action::Delete => {
                super::changed(reply, 1)?;
                self.resolve(session, None);
                Ok(())
            }
            Action::ReadAll => check_distinct(reply.rows()?).map(|_| ()),
            Action::Find(value) => {
                let found = check_distinct(reply.rows()?)?;
                let own = &self.sessions[session];
                if found.keys().any(|&other| other != value) {
                    return Err(format!("a read by value {value} returned {found:?}"));
                }
                if own.holds == Some(value) && found.get(&value) != Some(&own.id) {
                    return Err(format!("a read by value {value} missed the session's own row: {found:?}"));
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
            state.uncertain.extend([state.holds.take(), state.claim.take()].into_iter().flatten());
            state.id += step;
        }
    }

    fn audit(&self) -> Vec<Statement> {
        vec![Statement::plain("SELECT id, u FROM uniques"), Statement::plain("SELECT id, u FROM uniques WHERE u >= ''")]
    }

    fn on_audit(&mut self, _position: usize, reply: &Reply) -> Result<(), String> {
        let by_value = check_distinct(reply.rows()?)?;
        for state in &self.sessions {
            let held = by_value.iter().find(|(_, id)| **id == state.id).map(|(value, _)| *value);
            if held != state.holds {
                return Err(format!("row {} has {held:?}, but {:?} was acknowledged", state.id, state.holds));
            }
        }
        Ok(())
    }
}
