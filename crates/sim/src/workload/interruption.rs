//! Transactions with savepoints that KILL interrupts at any moment. An interrupted statement or transaction
//! is undone completely, and committed writes exist. Ended connections leave nothing behind.

use junctor_kernel::Random;

use super::{Counter, DEADLOCK, Step, Workload, changed, inserts};
use crate::statement::{Reply, Statement};

/// MySQL's error for an interrupted statement.
const INTERRUPTED: u16 = 1317;
/// MySQL's error for an unknown connection id.
const NO_SUCH_THREAD: u16 = 1094;

/// The workload `interruption`.
#[derive(Debug)]
pub struct Interruption {
    rows: Vec<Counter>,
    sessions: Vec<Session>,
    /// The connection id of each session, if it has asked for it.
    connections: Vec<Option<i64>>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// The connection is new and its id unknown.
    NewConnection,
    Idle,
    /// KILL was sent.
    Killing,
    Transaction(Transaction),
}

#[derive(Debug)]
struct Transaction {
    /// Number of increments of each row.
    raised: Vec<u32>,
    savepoint: Option<Vec<u32>>,
    sent: Sent,
    statements_left: u64,
    has_begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Nothing,
    Begin,
    One(usize),
    All,
    Savepoint,
    Back,
    Commit,
    Rollback,
}

impl Interruption {
    /// Creates the workload with this number of sessions, rounds of each session, and rows.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        let session = |_| Session { rounds_left: rounds, work: Work::NewConnection };
        Self {
            rows: vec![Counter::default(); rows.max(2) as usize],
            sessions: (0..sessions).map(session).collect(),
            connections: vec![None; sessions],
        }
    }

    fn kill(&self, random: &mut Random) -> Option<Statement> {
        let connection = self.connections[random.below(self.connections.len() as u64) as usize]?;
        let what = if random.one_in(4) { "CONNECTION" } else { "QUERY" };
        Some(Statement::plain(format!("KILL {what} {connection}")))
    }

    fn attempt(&mut self, raised: &[u32]) {
        for (row, times) in self.rows.iter_mut().zip(raised) {
            (0..*times).for_each(|_| row.attempt());
        }
    }
}

impl Transaction {
    fn draw(row_count: usize, random: &mut Random) -> Self {
        Self {
            raised: vec![0; row_count],
            savepoint: None,
            sent: Sent::Nothing,
            statements_left: 1 + random.below(6),
            has_begun: false,
        }
    }

    fn next(&mut self, random: &mut Random) -> Statement {
        self.sent = match random.below(8) {
            _ if !self.has_begun => Sent::Begin,
            0 if self.statements_left == 0 => Sent::Rollback,
            _ if self.statements_left == 0 => Sent::Commit,
            0 => Sent::All,
            1 | 2 => Sent::Savepoint,
            3 if self.savepoint.is_some() => Sent::Back,
            _ => Sent::One(random.below(self.raised.len() as u64) as usize),
        };
        self.statements_left -= u64::from(self.has_begun && self.statements_left > 0);
        match self.sent {
            Sent::Nothing | Sent::Begin => Statement::plain("BEGIN"),
            Sent::One(row) => Statement::with("UPDATE stopped SET v = v + 1 WHERE id = ?", [(row as i64).into()]),
            Sent::All => Statement::plain("UPDATE stopped SET v = v + 1, u = u + 1000"),
            Sent::Savepoint => Statement::plain("SAVEPOINT here"),
            Sent::Back => Statement::plain("ROLLBACK TO here"),
            Sent::Commit => Statement::plain("COMMIT"),
            Sent::Rollback => Statement::plain("ROLLBACK"),
        }
    }

    /// Records the success of the last statement. Returns whether the transaction continues.
    fn succeed(&mut self, reply: &Reply) -> Result<bool, String> {
        match self.sent {
            Sent::Nothing => return Err("an answer without a statement".to_owned()),
            Sent::Begin => self.has_begun = true,
            Sent::One(row) => {
                changed(reply, 1)?;
                self.raised[row] += 1;
            }
            Sent::All => {
                changed(reply, self.raised.len() as u64)?;
                self.raised.iter_mut().for_each(|times| *times += 1);
            }
            Sent::Savepoint => self.savepoint = Some(self.raised.clone()),
            Sent::Back => self.raised.clone_from(self.savepoint.as_ref().ok_or("no savepoint was set")?),
            Sent::Commit | Sent::Rollback => return Ok(false),
        }
        Ok(true)
    }
}

impl Workload for Interruption {
    fn name(&self) -> &'static str {
        "interruption"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![Statement::plain(
            "CREATE TABLE stopped (id INT NOT NULL PRIMARY KEY, v BIGINT NOT NULL, u BIGINT NOT NULL, UNIQUE KEY u (u)) \
             PARTITION BY KEY (id) PARTITIONS 3",
        )];
        statements.extend(inserts("stopped", 0..self.rows.len() as i64, |id| format!("{id}, 0, {id}")));
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        let row_count = self.rows.len();
        let state = &mut self.sessions[session];
        match &mut state.work {
            Work::NewConnection => return Step::Run(Statement::plain("SELECT CONNECTION_ID()")),
            Work::Idle | Work::Killing if state.rounds_left == 0 => return Step::Done,
            Work::Idle | Work::Killing => {
                state.rounds_left -= 1;
                state.work = Work::Killing;
                if random.one_in(3)
                    && let Some(statement) = self.kill(random)
                {
                    return Step::Run(statement);
                }
                self.sessions[session].work = Work::Transaction(Transaction::draw(row_count, random));
            }
            Work::Transaction(_) => {}
        }
        let Work::Transaction(transaction) = &mut self.sessions[session].work else { return Step::Done };
        let statement = transaction.next(random);
        if transaction.sent == Sent::Commit {
            let raised = transaction.raised.clone();
            self.attempt(&raised);
        }
        Step::Run(statement)
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let state = &mut self.sessions[session];
        match (&mut state.work, reply.errno()) {
            (Work::NewConnection, INTERRUPTED) => {}
            (Work::NewConnection, _) => {
                let connection = reply.integers()?.first().and_then(|row| row.first().copied());
                self.connections[session] = Some(connection.ok_or("a session has no connection")?);
                state.work = Work::Idle;
            }
            (Work::Idle, _) => return Err("an answer without a statement".to_owned()),
            (Work::Killing, 0 | NO_SUCH_THREAD | INTERRUPTED) => state.work = Work::Idle,
            // The interrupted statement had no effect, even a COMMIT: only waiting for admission is
            // interruptible.
            (Work::Transaction(transaction), INTERRUPTED) => {
                if transaction.sent == Sent::Commit {
                    for (row, times) in self.rows.iter_mut().zip(&transaction.raised) {
                        (0..*times).for_each(|_| row.withdraw());
                    }
                }
            }
            (Work::Transaction(transaction), DEADLOCK) if transaction.sent != Sent::Commit => {
                state.work = Work::Idle;
            }
            (Work::Transaction(transaction), 0) => {
                if transaction.succeed(reply)? {
                    return Ok(());
                }
                if transaction.sent == Sent::Commit {
                    for (row, times) in self.rows.iter_mut().zip(&transaction.raised) {
                        (0..*times).for_each(|_| row.acknowledge());
                    }
                }
                state.work = Work::Idle;
            }
            (_, errno) => return Err(format!("error {errno}: {reply:?}")),
        }
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        self.sessions[session].work = Work::NewConnection;
        self.connections[session] = None;
    }

    fn audit(&self) -> Vec<Statement> {
        vec![
            Statement::plain("SELECT id, v FROM stopped ORDER BY id"),
            Statement::plain("SELECT COUNT(*) FROM stopped WHERE u >= 0"),
            Statement::plain("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep'"),
        ]
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        let rows = reply.integers()?;
        let wanted = self.rows.len();
        match position {
            0 if rows.len() != wanted => Err(format!("{} rows instead of {wanted}", rows.len())),
            0 => {
                let check = |(counter, row): (&Counter, &Vec<i64>)| {
                    counter.check(&format!("the value of row {}", row[0]), row[1], counter.acknowledged())
                };
                self.rows.iter().zip(&rows).try_for_each(check)
            }
            1 if rows[0][0] != wanted as i64 => {
                Err(format!("{} rows through the unique index instead of {wanted}", rows[0][0]))
            }
            2 if rows[0][0] != 1 => Err(format!("{} other statements are running", rows[0][0] - 1)),
            _ => Ok(()),
        }
    }
}
