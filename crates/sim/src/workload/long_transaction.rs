//! Long transactions over every row of a table, while other sessions read the whole table. Every reader must
//! see all or nothing of each transaction.

use junctor_kernel::Random;

use super::{Counter, DEADLOCK, Step, Workload, changed, inserts, succeeded};
use crate::statement::{Reply, Statement};

/// The workload `long_transaction`.
#[derive(Debug)]
pub struct LongTransaction {
    rows: i64,
    /// Number of increments of every row.
    raised: Counter,
    sessions: Vec<Session>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    round: Option<Round>,
}

#[derive(Debug)]
struct Round {
    steps: &'static [Sent],
    position: usize,
    /// The acknowledged number of increments when the query was sent.
    floor: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Begin,
    Raise,
    Savepoint,
    Delete,
    Back,
    Commit,
    Rollback,
    Query,
}

/// The transactions of writers. Increments change a unique key too.
const WRITES: [&[Sent]; 3] = [
    &[Sent::Begin, Sent::Raise, Sent::Commit],
    &[Sent::Begin, Sent::Raise, Sent::Savepoint, Sent::Delete, Sent::Back, Sent::Commit],
    &[Sent::Begin, Sent::Delete, Sent::Rollback],
];

impl LongTransaction {
    /// Creates the workload with this number of sessions, rounds of each session, and rows. Odd sessions
    /// read.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        let session = |_| Session { rounds_left: rounds, round: None };
        Self { rows: rows.max(2), raised: Counter::default(), sessions: (0..sessions).map(session).collect() }
    }

    fn check(&self, reply: &Reply, floor: i64) -> Result<(), String> {
        let rows = reply.integers()?;
        let [row] = rows.as_slice() else { return Err(format!("{} rows of aggregates instead of one", rows.len())) };
        let [count, least, greatest, keys] = row.as_slice() else { return Err("wrong number of columns".to_owned()) };
        if *count != self.rows || *keys != self.rows {
            return Err(format!("{count} rows with {keys} keys instead of {}", self.rows));
        }
        if least != greatest {
            return Err(format!("half a transaction: rows were incremented {least} to {greatest} times"));
        }
        self.raised.check("the number of increments", *least, floor)
    }
}

fn query() -> Statement {
    Statement::plain("SELECT COUNT(*), MIN(v), MAX(v), COUNT(u) FROM long_rows")
}

impl Workload for LongTransaction {
    fn name(&self) -> &'static str {
        "long_transaction"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![Statement::plain(
            "CREATE TABLE long_rows (id INT NOT NULL PRIMARY KEY, v BIGINT NOT NULL, u BIGINT NOT NULL, UNIQUE KEY u (u)) \
             PARTITION BY KEY (id) PARTITIONS 3",
        )];
        statements.extend(inserts("long_rows", 0..self.rows, |id| format!("{id}, 0, {id}")));
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
            let steps = match session % 2 {
                0 => WRITES[random.below(WRITES.len() as u64) as usize],
                _ => &[Sent::Query],
            };
            state.round = Some(Round { steps, position: 0, floor: 0 });
        }
        let Some(round) = &mut state.round else { return Step::Done };
        Step::Run(match round.steps[round.position] {
            Sent::Begin => Statement::plain("BEGIN"),
            Sent::Raise => Statement::plain("UPDATE long_rows SET v = v + 1, u = u + 1000000"),
            Sent::Savepoint => Statement::plain("SAVEPOINT here"),
            Sent::Delete => Statement::plain("DELETE FROM long_rows"),
            Sent::Back => Statement::plain("ROLLBACK TO here"),
            Sent::Commit => {
                self.raised.attempt();
                Statement::plain("COMMIT")
            }
            Sent::Rollback => Statement::plain("ROLLBACK"),
            Sent::Query => {
                round.floor = self.raised.acknowledged();
                query()
            }
        })
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let Some(mut round) = self.sessions[session].round.take() else {
            return Err("an answer without a statement".to_owned());
        };
        let sent = round.steps[round.position];
        if reply.errno() == DEADLOCK && matches!(sent, Sent::Raise | Sent::Delete) {
            return Ok(());
        }
        succeeded(reply)?;
        match sent {
            Sent::Raise | Sent::Delete => changed(reply, self.rows as u64)?,
            Sent::Commit => self.raised.acknowledge(),
            Sent::Query => self.check(reply, round.floor)?,
            Sent::Begin | Sent::Savepoint | Sent::Back | Sent::Rollback => {}
        }
        round.position += 1;
        if round.position < round.steps.len() {
            self.sessions[session].round = Some(round);
        }
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        self.sessions[session].round = None;
    }

    fn audit(&self) -> Vec<Statement> {
        vec![query()]
    }

    fn on_audit(&mut self, _position: usize, reply: &Reply) -> Result<(), String> {
        self.check(reply, self.raised.acknowledged())
    }
}
