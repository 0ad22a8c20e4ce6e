//! Queries with joins and groups, which leave for other threads on nodes with `work` threads, while rows
//! change, and while KILL stops queries and connections at any moment. Each query sees whole transfers.

use junctor_kernel::Random;

use super::{DEADLOCK, Step, Workload, inserts};
use crate::statement::{Reply, Statement};

/// MySQL's error for an interrupted statement.
const INTERRUPTED: u16 = 1317;
/// MySQL's error for an unknown connection id.
const NO_SUCH_THREAD: u16 = 1094;
/// The value of each row at first.
const FIRST_VALUE: i64 = 100;

/// The queries. Each returns the number of rows and the sum of their values. The parameter is 0.
const QUERIES: [&str; 4] = [
    "SELECT CAST(SUM(q.n) AS SIGNED), CAST(SUM(q.s) AS SIGNED) FROM (SELECT g, COUNT(*) n, SUM(v) s FROM grouped \
     WHERE id >= ? GROUP BY g) q",
    "SELECT COUNT(*), CAST(SUM(l.v) AS SIGNED) FROM grouped l JOIN grouped r ON r.id = l.id WHERE r.id >= ?",
    "SELECT COUNT(*), CAST(SUM(l.v) AS SIGNED) FROM grouped l JOIN grouped r ON r.u = l.v * 0 + l.u AND r.g = l.g \
     WHERE r.id >= ?",
    "SELECT COUNT(*), CAST(SUM(q.v) AS SIGNED) FROM (SELECT v FROM grouped WHERE id < 3 UNION ALL SELECT v FROM grouped \
     WHERE id >= 3 + ?) q",
];

/// The workload `grouped_query`.
#[derive(Debug)]
pub struct GroupedQuery {
    rows: i64,
    sessions: Vec<Session>,
    /// The connection id of each session, if it has asked for it.
    connections: Vec<Option<i64>>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    sent: Sent,
}

#[derive(Clone, Copy, Debug)]
enum Sent {
    /// The connection is new, and its id is asked for.
    NewConnection,
    Nothing,
    Kill,
    Transfer,
    Query,
}

impl GroupedQuery {
    /// Creates the workload with this number of sessions, rounds of each session, and rows.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        let session = |_| Session { rounds_left: rounds, sent: Sent::NewConnection };
        let connections = vec![None; sessions];
        Self { rows: rows.max(4), sessions: (0..sessions).map(session).collect(), connections }
    }

    fn draw(&self, random: &mut Random) -> (Sent, Statement) {
        let mut below = |most: i64| random.below(most as u64) as i64;
        match below(6) {
            0 => {
                let victim = self.connections[below(self.connections.len() as i64) as usize];
                let what = if below(4) == 0 { "CONNECTION" } else { "QUERY" };
                (Sent::Kill, Statement::plain(format!("KILL {what} {}", victim.unwrap_or(1 << 20))))
            }
            1 | 2 => {
                let from = below(self.rows);
                let to = (from + 1 + below(self.rows - 1)) % self.rows;
                let text = "UPDATE grouped SET v = v + IF(id = ?, 1, -1) WHERE id IN (?, ?)";
                (Sent::Transfer, Statement::with(text, [from.into(), from.into(), to.into()]))
            }
            _ => {
                let text = QUERIES[below(QUERIES.len() as i64) as usize];
                (Sent::Query, Statement::with(text, [0.into()]))
            }
        }
    }

    fn check(&self, reply: &Reply) -> Result<(), String> {
        match reply.integers()?.as_slice() {
            [row] if row[..] == [self.rows, self.rows * FIRST_VALUE] => Ok(()),
            rows => Err(format!("{rows:?} instead of {} rows of {FIRST_VALUE}", self.rows)),
        }
    }
}

impl Workload for GroupedQuery {
    fn name(&self) -> &'static str {
        "grouped_query"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![Statement::plain(
            "CREATE TABLE grouped (id INT NOT NULL PRIMARY KEY, g INT NOT NULL, u INT NOT NULL, v BIGINT NOT NULL) \
             PARTITION BY KEY (id) PARTITIONS 3",
        )];
        statements.extend(inserts("grouped", 0..self.rows, |id| format!("{id}, {}, {id}, {FIRST_VALUE}", id % 5)));
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        if let Sent::NewConnection = self.sessions[session].sent {
            return Step::Run(Statement::plain("SELECT CONNECTION_ID()"));
        }
        if self.sessions[session].rounds_left == 0 {
            return Step::Done;
        }
        let (sent, statement) = self.draw(random);
        self.sessions[session].rounds_left -= 1;
        self.sessions[session].sent = sent;
        Step::Run(statement)
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let sent = std::mem::replace(&mut self.sessions[session].sent, Sent::Nothing);
        match (sent, reply.errno()) {
            (Sent::NewConnection, INTERRUPTED) => self.sessions[session].sent = Sent::NewConnection,
            (Sent::NewConnection, 0) => {
                let connection = reply.integers()?.first().and_then(|row| row.first().copied());
                self.connections[session] = Some(connection.ok_or("a session has no connection")?);
            }
            (Sent::Query, 0) => self.check(reply)?,
            (Sent::Kill, 0 | NO_SUCH_THREAD) | (Sent::Transfer, 0 | DEADLOCK) => {}
            (Sent::Kill | Sent::Transfer | Sent::Query, INTERRUPTED) => {}
            (sent, errno) => return Err(format!("error {errno} of {sent:?}: {reply:?}")),
        }
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        self.sessions[session].sent = Sent::NewConnection;
        self.connections[session] = None;
    }

    fn audit(&self) -> Vec<Statement> {
        let queries = QUERIES.iter().map(|text| Statement::with(*text, [0.into()]));
        let others = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep'";
        queries.chain([Statement::plain(others)]).collect()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        if position < QUERIES.len() {
            return self.check(reply);
        }
        match reply.integers()?[0][0] {
            1 => Ok(()),
            count => Err(format!("{} other statements are running", count - 1)),
        }
    }
}
