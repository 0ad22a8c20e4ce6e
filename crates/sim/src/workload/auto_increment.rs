//! Inserts with generated keys: no key is generated twice, not even one of rows that were rolled back, and
//! acknowledged rows exist.

use std::collections::{BTreeMap, BTreeSet};

use junctor_kernel::Random;

use super::{Step, Workload, succeeded};
use crate::statement::{Reply, Statement};

/// The workload `auto_increment`.
#[derive(Debug)]
pub struct AutoIncrement {
    sessions: Vec<Session>,
    /// The value of every acknowledged row, by key.
    acknowledged: BTreeMap<i64, i64>,
    /// Every key that an answer named, even of rows that were rolled back.
    handed_out: BTreeSet<i64>,
    next_value: i64,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    /// The values of the statement in flight.
    values: Vec<i64>,
    /// The rows of the open transaction so far.
    pending: Option<Vec<(i64, i64)>>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Begin,
    Insert { transaction: bool },
    Commit,
    Rollback,
}

impl AutoIncrement {
    /// Creates the workload with this number of sessions and rounds of each session.
    pub fn new(sessions: usize, rounds: u32) -> Self {
        let session = |_| Session { rounds_left: rounds, values: Vec::new(), pending: None, stage: Stage::Idle };
        Self {
            sessions: (0..sessions).map(session).collect(),
            acknowledged: BTreeMap::new(),
            handed_out: BTreeSet::new(),
            next_value: 0,
        }
    }

    fn insert(&mut self, session: usize, random: &mut Random) -> Statement {
        let count = 1 + random.below(4) as i64;
        let values: Vec<i64> = (self.next_value..self.next_value + count).collect();
        self.next_value += count;
        let marks = vec!["(?)"; values.len()].join(", ");
        let statement = Statement::with(
            format!("INSERT INTO numbered (v) VALUES {marks}"),
            values.iter().map(|&value| value.into()),
        );
        self.sessions[session].values = values;
        statement
    }

    fn acknowledge(&mut self, rows: Vec<(i64, i64)>) -> Result<(), String> {
        for (key, value) in rows {
            if let Some(other) = self.acknowledged.insert(key, value) {
                return Err(format!("key {key} was generated for rows {other} and {value}"));
            }
        }
        Ok(())
    }

    fn check(&self, rows: &[Vec<i64>]) -> Result<(), String> {
        let found: BTreeMap<i64, i64> = rows.iter().map(|row| (row[0], row[1])).collect();
        if found.len() != rows.len() {
            return Err("duplicate key in the result".to_owned());
        }
        match self.acknowledged.iter().find(|(key, value)| found.get(key) != Some(value)) {
            Some((key, value)) => {
                Err(format!("row {value} was acknowledged with key {key}, which now has {:?}", found.get(key)))
            }
            None => Ok(()),
        }
    }
}

impl Workload for AutoIncrement {
    fn name(&self) -> &'static str {
        "auto_increment"
    }

    fn setup(&self) -> Vec<Statement> {
        vec![Statement::plain(
            "CREATE TABLE numbered (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL, KEY v_index (v)) \
             PARTITION BY KEY (id) PARTITIONS 3",
        )]
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        let state = &mut self.sessions[session];
        if state.stage == Stage::Idle {
            if state.rounds_left == 0 {
                return Step::Done;
            }
            state.rounds_left -= 1;
            state.stage = if random.one_in(3) { Stage::Begin } else { Stage::Insert { transaction: false } };
        }
        Step::Run(match state.stage {
            Stage::Begin => Statement::plain("BEGIN"),
            Stage::Commit => Statement::plain("COMMIT"),
            Stage::Rollback => Statement::plain("ROLLBACK"),
            Stage::Insert { .. } | Stage::Idle => self.insert(session, random),
        })
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        succeeded(reply)?;
        let state = &mut self.sessions[session];
        let mut acknowledged = Vec::new();
        state.stage = match (state.stage, reply) {
            (Stage::Begin, _) => Stage::Insert { transaction: true },
            (Stage::Insert { transaction }, Reply::Done { insert_id, affected_rows, .. }) => {
                let values = std::mem::take(&mut state.values);
                if *affected_rows != values.len() as u64 || *insert_id == 0 {
                    return Err(format!("{reply:?} to an INSERT of {} rows", values.len()));
                }
                // The keys of one statement are consecutive.
                let rows: Vec<(i64, i64)> = (*insert_id as i64..).zip(values).collect();
                if let Some((key, _)) = rows.iter().find(|(key, _)| !self.handed_out.insert(*key)) {
                    return Err(format!("key {key} was generated twice"));
                }
                if transaction {
                    state.pending = Some(rows);
                    // Replies are handled without a random generator, so the key decides.
                    if insert_id % 3 == 0 { Stage::Rollback } else { Stage::Commit }
                } else {
                    acknowledged = rows;
                    Stage::Idle
                }
            }
            (Stage::Commit, _) => {
                acknowledged = state.pending.take().unwrap_or_default();
                Stage::Idle
            }
            (Stage::Rollback, _) => {
                state.pending = None;
                Stage::Idle
            }
            (stage, reply) => return Err(format!("{reply:?} in stage {stage:?}")),
        };
        self.acknowledge(acknowledged)
    }

    fn on_closed(&mut self, session: usize) {
        let state = &mut self.sessions[session];
        state.stage = Stage::Idle;
        state.pending = None;
        state.values.clear();
    }

    fn audit(&self) -> Vec<Statement> {
        let columns = "SELECT id, v FROM numbered";
        vec![Statement::plain(columns), Statement::plain(format!("{columns} WHERE v >= 0 ORDER BY v"))]
    }

    fn on_audit(&mut self, _position: usize, reply: &Reply) -> Result<(), String> {
        self.check(&reply.integers()?)
    }
}
