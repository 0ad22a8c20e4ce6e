//! Transactions that lock the same few rows in every order. Each must end, either with its commit or as a
//! deadlock victim. A lock wait timeout means a lost wake-up, because no session holds a lock while idle.

use junctor_kernel::Random;

use super::{Counter, DEADLOCK, Step, Workload, changed, inserts, succeeded};
use crate::statement::{Reply, Statement};

/// The workload `deadlock_storm`.
#[derive(Debug)]
pub struct DeadlockStorm {
    rows: Vec<Counter>,
    sessions: Vec<Session>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    round: Option<Round>,
}

#[derive(Debug)]
struct Round {
    /// The rows to lock, in order.
    rows: Vec<usize>,
    /// The first lock of each row: 0 is FOR UPDATE, 1 is FOR SHARE, otherwise the UPDATE itself.
    kinds: Vec<u64>,
    /// BEGIN, then one or two statements for each row, then COMMIT.
    statements: Vec<(Statement, Expected)>,
    position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Success,
    OneRow,
    OneChange,
    Commit,
}

impl DeadlockStorm {
    /// Creates the workload with this number of sessions, rounds of each session, and rows.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        Self {
            rows: vec![Counter::default(); rows.max(2) as usize],
            sessions: (0..sessions).map(|_| Session { rounds_left: rounds, round: None }).collect(),
        }
    }
}

impl Round {
    fn draw(row_count: usize, random: &mut Random) -> Self {
        let mut order: Vec<usize> = (0..row_count).collect();
        for position in (1..order.len()).rev() {
            order.swap(position, random.below(position as u64 + 1) as usize);
        }
        order.truncate(2 + random.below(row_count.min(4) as u64 - 1) as usize);
        let kinds = order.iter().map(|_| random.below(4)).collect();
        let mut round = Self { rows: order, kinds, statements: Vec::new(), position: 0 };
        round.write_statements();
        round
    }

    fn write_statements(&mut self) {
        self.statements.push((Statement::plain("BEGIN"), Expected::Success));
        for (&row, kind) in self.rows.iter().zip(&self.kinds) {
            let id = row as i64;
            let lock = match kind {
                0 => Some("SELECT v FROM storm WHERE id = ? FOR UPDATE"),
                1 => Some("SELECT v FROM storm WHERE id = ? FOR SHARE"),
                _ => None,
            };
            if let Some(lock) = lock {
                self.statements.push((Statement::with(lock, [id.into()]), Expected::OneRow));
            }
            let update = Statement::with("UPDATE storm SET v = v + 1 WHERE id = ?", [id.into()]);
            self.statements.push((update, Expected::OneChange));
        }
        self.statements.push((Statement::plain("COMMIT"), Expected::Commit));
    }
}

impl Workload for DeadlockStorm {
    fn name(&self) -> &'static str {
        "deadlock_storm"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![Statement::plain(
            "CREATE TABLE storm (id INT NOT NULL PRIMARY KEY, v BIGINT NOT NULL) PARTITION BY KEY (id) PARTITIONS 3",
        )];
        statements.extend(inserts("storm", 0..self.rows.len() as i64, |id| format!("{id}, 0")));
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        let state = &mut self.sessions[session];
        if state.round.is_none() {
            if state.rounds_left == 0 {
                return Step::Done;
            }
            state.rounds_left -= 1;
            state.round = Some(Round::draw(self.rows.len(), random));
        }
        let Some(round) = &state.round else { return Step::Done };
        let (statement, expected) = &round.statements[round.position];
        if *expected == Expected::Commit {
            for &row in &round.rows {
                self.rows[row].attempt();
            }
        }
        Step::Run(statement.clone())
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let Some(mut round) = self.sessions[session].round.take() else {
            return Err("an answer without a statement".to_owned());
        };
        let expected = round.statements[round.position].1;
        if reply.errno() == DEADLOCK && expected != Expected::Commit {
            return Ok(());
        }
        succeeded(reply)?;
        match expected {
            Expected::Success => {}
            Expected::OneRow if reply.rows()?.len() == 1 => {}
            Expected::OneRow => return Err(format!("a locking read of one row returned {reply:?}")),
            Expected::OneChange => changed(reply, 1)?,
            Expected::Commit => {
                for &row in &round.rows {
                    self.rows[row].acknowledge();
                }
                return Ok(());
            }
        }
        round.position += 1;
        self.sessions[session].round = Some(round);
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        self.sessions[session].round = None;
    }

    fn audit(&self) -> Vec<Statement> {
        vec![Statement::plain("SELECT id, v FROM storm ORDER BY id")]
    }

    fn on_audit(&mut self, _position: usize, reply: &Reply) -> Result<(), String> {
        let rows = reply.integers()?;
        if rows.len() != self.rows.len() {
            return Err(format!("{} rows instead of {}", rows.len(), self.rows.len()));
        }
        for (id, row) in rows.iter().enumerate() {
            if row[0] != id as i64 {
                return Err(format!("row {} instead of row {id}", row[0]));
            }
            let counter = &self.rows[id];
            counter.check(&format!("the value of row {id}"), row[1], counter.acknowledged())?;
        }
        Ok(())
    }
}
