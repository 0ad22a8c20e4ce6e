//! Writes of several steps (upserts, copies, ordered writes) in autocommit mode, in transactions and several
//! in one text, which KILL interrupts at any moment. Each write changes every row, so a reader sees equal
//! values only: interrupted writes are undone completely. Finished transactions leave nothing behind.

use std::collections::BTreeMap;

use junctor_kernel::Random;

use super::{Counter, DEADLOCK, Step, Workload, inserts};
use crate::statement::{Reply, Statement};

/// MySQL's error for an interrupted statement.
const INTERRUPTED: u16 = 1317;
/// MySQL's error for an unknown connection id.
const NO_SUCH_THREAD: u16 = 1094;
/// Number of values of the unique column `mark` that are reserved for each log, and thus the maximum number
/// of rows.
const MARKS: i64 = 1_000;

/// The workload `multi_step_write`.
#[derive(Debug)]
pub struct MultiStepWrite {
    rows: i64,
    raised: Counter,
    shifted: Counter,
    /// For each log, the contents that it may have: every row with the same round, or no rows (`None`). The
    /// last certain content comes first, then those of the writes whose outcome is still open.
    logs: BTreeMap<i64, Vec<Option<i64>>>,
    next_round: i64,
    sessions: Vec<Session>,
    /// The connection id of each session, if it has asked for it.
    connections: Vec<Option<i64>>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    /// The log of the connection. Each connection has a new one, because the last write of an old connection
    /// may still be running.
    log: i64,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// The connection is new and its id unknown.
    NewConnection,
    Idle,
    /// KILL was sent.
    Killing,
    /// A query is in flight.
    Reading,
    /// Autocommit writes are in flight, sent as one text.
    Autocommit(Vec<Write>),
    Transaction(Transaction),
}

#[derive(Debug, Default)]
struct Transaction {
    done: Tally,
    sent: Sent,
    writes_left: u64,
    has_begun: bool,
}

#[derive(Debug, Default)]
enum Sent {
    #[default]
    Begin,
    Writes(Vec<Write>),
    Commit,
    Rollback,
}

/// A compound write, which changes every row.
#[derive(Clone, Copy, Debug)]
enum Write {
    Values,
    Copy,
    Ordered,
    Shift,
    Log(i64),
    Purge,
}

/// The combined effect of several writes.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    raised: u32,
    shifted: u32,
    log: Option<Option<i64>>,
}

impl Write {
    fn text(self, rows: i64, log: i64) -> String {
        match self {
            Self::Values => {
                let values: Vec<String> = (0..rows).map(|id| format!("({id}, 1, {id})")).collect();
                format!("INSERT INTO stepped VALUES {} ON DUPLICATE KEY UPDATE v = v + 1", values.join(", "))
            }
            Self::Copy => {
                "INSERT INTO stepped SELECT id, 1, id FROM stepped_source ON DUPLICATE KEY UPDATE v = v + 1".into()
            }
            Self::Ordered => format!("UPDATE stepped SET v = v + 1 ORDER BY v DESC, id LIMIT {rows}"),
            Self::Shift => "UPDATE stepped SET v = v + 1, u = u + 1 ORDER BY u DESC".into(),
            Self::Log(round) if round % 2 == 0 => {
                let values: Vec<String> =
                    (0..rows).map(|id| format!("({log}, {id}, {round}, {})", log * MARKS + id)).collect();
                format!("REPLACE INTO stepped_log VALUES {}", values.join(", "))
            }
            Self::Log(round) => {
                let mark = log * MARKS;
                format!("REPLACE INTO stepped_log SELECT {log}, id, {round}, {mark} + id FROM stepped_source")
            }
            Self::Purge => format!("DELETE FROM stepped_log WHERE log = {log} ORDER BY round, id DESC LIMIT {rows}"),
        }
    }

    fn check(self, reply: &Reply, rows: i64) -> Result<(), String> {
        let (changed, rows) = (reply.affected_rows()?, rows as u64);
        let is_right = match self {
            Self::Values | Self::Copy => changed == 2 * rows,
            Self::Ordered | Self::Shift => changed == rows,
            Self::Log(_) => changed == rows || changed == 2 * rows,
            Self::Purge => changed == 0 || changed == rows,
        };
        if is_right { Ok(()) } else { Err(format!("{self:?} changed {changed} of {rows} rows")) }
    }
}

impl Tally {
    fn of(write: Write) -> Self {
        let mut tally = Self::default();
        tally.add(write);
        tally
    }

    fn add(&mut self, write: Write) {
        match write {
            Write::Values | Write::Copy | Write::Ordered => self.raised += 1,
            Write::Shift => (self.raised, self.shifted) = (self.raised + 1, self.shifted + 1),
            Write::Log(round) => self.log = Some(Some(round)),
            Write::Purge => self.log = Some(None),
        }
    }
}

impl MultiStepWrite {
    /// Creates the workload with this number of sessions, rounds of each session, and rows.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        let session = |_| Session { rounds_left: rounds, log: 0, work: Work::NewConnection };
        Self {
            rows: rows.clamp(2, MARKS),
            raised: Counter::default(),
            shifted: Counter::default(),
            logs: BTreeMap::new(),
            next_round: 1,
            sessions: (0..sessions).map(session).collect(),
            connections: vec![None; sessions],
        }
    }

    fn kill(&self, random: &mut Random) -> Option<Statement> {
        let connection = self.connections[random.below(self.connections.len() as u64) as usize]?;
        let what = if random.one_in(6) { "CONNECTION" } else { "QUERY" };
        Some(Statement::plain(format!("KILL {what} {connection}")))
    }

    /// Draws a few writes, to be sent as one text.
    fn draw(&mut self, random: &mut Random) -> Vec<Write> {
        let count = if random.one_in(3) { 2 + random.below(3) } else { 1 };
        (0..count)
            .map(|_| match random.below(8) {
                0 => Write::Values,
                1 | 2 => Write::Copy,
                3 => Write::Ordered,
                4 | 5 => Write::Shift,
                6 => Write::Purge,
                _ => {
                    self.next_round += 1;
                    Write::Log(self.next_round)
                }
            })
            .collect()
    }

    fn text_of(&self, writes: &[Write], log: i64) -> Statement {
        let texts: Vec<String> = writes.iter().map(|write| write.text(self.rows, log)).collect();
        Statement::plain(texts.join("; "))
    }

    fn attempt(&mut self, tally: Tally, log: i64) {
        (0..tally.raised).for_each(|_| self.raised.attempt());
        (0..tally.shifted).for_each(|_| self.shifted.attempt());
        if let Some(round) = tally.log {
            self.logs.entry(log).or_insert_with(|| vec![None]).push(round);
        }
    }

    fn acknowledge(&mut self, tally: Tally, log: i64) {
        (0..tally.raised).for_each(|_| self.raised.acknowledge());
        (0..tally.shifted).for_each(|_| self.shifted.acknowledge());
        if let (Some(_), Some(possible)) = (tally.log, self.logs.get_mut(&log)) {
            // The attempted content has replaced the previous one.
            possible.remove(0);
        }
    }

    fn withdraw(&mut self, tally: Tally, log: i64) {
        (0..tally.raised).for_each(|_| self.raised.withdraw());
        (0..tally.shifted).for_each(|_| self.shifted.withdraw());
        if let (Some(_), Some(possible)) = (tally.log, self.logs.get_mut(&log)) {
            possible.pop();
        }
    }

    /// Checks the results of a text. Returns the number of successful writes and the error that ended it, or
    /// 0.
    fn check_text(&self, writes: &[Write], reply: &Reply) -> Result<(usize, u16), String> {
        let results = reply.results();
        let mut done = 0;
        for (write, result) in writes.iter().zip(results) {
            if let Reply::Failed { errno, .. } = result {
                let is_last = results.len() == done + 1;
                return if is_last { Ok((done, *errno)) } else { Err(format!("more results after error {errno}")) };
            }
            write.check(result, self.rows)?;
            done += 1;
        }
        match (done == writes.len(), results.len() == writes.len()) {
            (true, true) => Ok((done, 0)),
            _ => Err(format!("{} results for {} statements", results.len(), writes.len())),
        }
    }

    fn on_autocommit(&mut self, session: usize, writes: &[Write], reply: &Reply) -> Result<(), String> {
        let (done, errno) = self.check_text(writes, reply)?;
        let log = self.sessions[session].log;
        for (position, write) in writes.iter().enumerate() {
            match position < done {
                true => self.acknowledge(Tally::of(*write), log),
                false => self.withdraw(Tally::of(*write), log),
            }
        }
        self.sessions[session].work = Work::Idle;
        if matches!(errno, 0 | INTERRUPTED | DEADLOCK) { Ok(()) } else { Err(format!("error {errno}: {reply:?}")) }
    }

    fn on_transaction(
        &mut self,
        session: usize,
        mut transaction: Transaction,
        reply: &Reply,
    ) -> Result<Option<Transaction>, String> {
        let log = self.sessions[session].log;
        match (&transaction.sent, reply.errno()) {
            (Sent::Writes(writes), _) => {
                let (done, errno) = self.check_text(writes, reply)?;
                writes[..done].iter().for_each(|write| transaction.done.add(*write));
                match errno {
                    0 | INTERRUPTED => Ok(Some(transaction)),
                    DEADLOCK => Ok(None),
                    errno => Err(format!("error {errno}: {reply:?}")),
                }
            }
            (Sent::Begin, 0) => Ok(Some(Transaction { has_begun: true, ..transaction })),
            (Sent::Commit, 0) => {
                self.acknowledge(transaction.done, log);
                Ok(None)
            }
            (Sent::Commit, INTERRUPTED) => {
                // The COMMIT was interrupted while it waited for admission, so it had no effect.
                self.withdraw(transaction.done, log);
                Ok(Some(transaction))
            }
            (Sent::Rollback, 0) => Ok(None),
            (_, INTERRUPTED) => Ok(Some(transaction)),
            (_, errno) => Err(format!("error {errno}: {reply:?}")),
        }
    }

    fn next_of(&mut self, session: usize, mut transaction: Transaction, random: &mut Random) -> Statement {
        let log = self.sessions[session].log;
        transaction.sent = match random.below(6) {
            _ if !transaction.has_begun => Sent::Begin,
            0 if transaction.writes_left == 0 => Sent::Rollback,
            _ if transaction.writes_left == 0 => Sent::Commit,
            _ => Sent::Writes(self.draw(random)),
        };
        let statement = match &transaction.sent {
            Sent::Begin => Statement::plain("BEGIN"),
            Sent::Writes(writes) => {
                transaction.writes_left -= 1;
                self.text_of(writes, log)
            }
            Sent::Commit => {
                self.attempt(transaction.done, log);
                Statement::plain("COMMIT")
            }
            Sent::Rollback => Statement::plain("ROLLBACK"),
        };
        self.sessions[session].work = Work::Transaction(transaction);
        statement
    }

    /// Checks that all rows were incremented and shifted equally often.
    fn check_rows(&self, reply: &Reply, floors: (i64, i64)) -> Result<(), String> {
        let rows = reply.integers()?;
        let Some(first) = rows.first().filter(|_| rows.len() as i64 == self.rows) else {
            return Err(format!("{} rows instead of {}", rows.len(), self.rows));
        };
        let (value, shift) = (first[1], first[2] - first[0]);
        if let Some(row) = rows.iter().find(|row| row[1] != value || row[2] - row[0] != shift) {
            return Err(format!("half a statement: {row:?} next to {first:?}"));
        }
        self.raised.check("the value of every row", value, floors.0)?;
        self.shifted.check("the shift of every row", shift, floors.1)
    }

    fn check_logs(&self, reply: &Reply) -> Result<(), String> {
        let mut seen: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for row in reply.integers()? {
            seen.entry(row[0]).or_default().push(row[1]);
        }
        if let Some((log, rounds)) =
            seen.iter().find(|(_, rounds)| rounds.len() as i64 != self.rows || rounds[0] != rounds[rounds.len() - 1])
        {
            return Err(format!("half a statement: log {log} has {rounds:?}"));
        }
        for (log, possible) in &self.logs {
            let round = seen.get(log).map(|rounds| rounds[0]);
            if !possible.contains(&round) {
                return Err(format!("log {log} has round {round:?}, not one of {possible:?}"));
            }
        }
        Ok(())
    }
}

impl Workload for MultiStepWrite {
    fn name(&self) -> &'static str {
        "multi_step_write"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![
            Statement::plain(
                "CREATE TABLE stepped (id INT NOT NULL PRIMARY KEY, v BIGINT NOT NULL, u BIGINT NOT NULL, UNIQUE KEY u (u)) \
                 PARTITION BY KEY (id) PARTITIONS 3",
            ),
            Statement::plain(
                "CREATE TABLE stepped_source (id INT NOT NULL PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 2",
            ),
            Statement::plain(
                "CREATE TABLE stepped_log (log INT NOT NULL, id INT NOT NULL, round BIGINT NOT NULL, mark BIGINT NOT NULL, \
                 PRIMARY KEY (log, id), UNIQUE KEY mark (mark))",
            ),
        ];
        statements.extend(inserts("stepped", 0..self.rows, |id| format!("{id}, 0, {id}")));
        statements.extend(inserts("stepped_source", 0..self.rows, |id| id.to_string()));
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        let state = &mut self.sessions[session];
        match std::mem::replace(&mut state.work, Work::Idle) {
            Work::NewConnection => {
                state.work = Work::NewConnection;
                return Step::Run(Statement::plain("SELECT CONNECTION_ID()"));
            }
            Work::Transaction(transaction) => return Step::Run(self.next_of(session, transaction, random)),
            _ if state.rounds_left == 0 => return Step::Done,
            _ => state.rounds_left -= 1,
        }
        let log = state.log;
        if random.one_in(3)
            && let Some(statement) = self.kill(random)
        {
            self.sessions[session].work = Work::Killing;
            return Step::Run(statement);
        }
        match random.below(6) {
            0 => {
                self.sessions[session].work = Work::Reading;
                Step::Run(Statement::plain("SELECT id, v, u FROM stepped"))
            }
            1 | 2 => {
                let transaction = Transaction { writes_left: 1 + random.below(3), ..Transaction::default() };
                Step::Run(self.next_of(session, transaction, random))
            }
            _ => {
                let writes = self.draw(random);
                writes.iter().for_each(|write| self.attempt(Tally::of(*write), log));
                let statement = self.text_of(&writes, log);
                self.sessions[session].work = Work::Autocommit(writes);
                Step::Run(statement)
            }
        }
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        match (std::mem::replace(&mut self.sessions[session].work, Work::Idle), reply.errno()) {
            (Work::NewConnection, INTERRUPTED) => self.sessions[session].work = Work::NewConnection,
            (Work::NewConnection, _) => {
                let connection = reply.integers()?.first().and_then(|row| row.first().copied());
                self.connections[session] = Some(connection.ok_or("a session has no connection")?);
                self.sessions[session].log = self.logs.len() as i64 + 1;
                self.logs.insert(self.sessions[session].log, vec![None]);
            }
            (Work::Killing, 0 | NO_SUCH_THREAD | INTERRUPTED) | (Work::Reading, INTERRUPTED) => {}
            (Work::Reading, _) => self.check_rows(reply, (0, 0))?,
            (Work::Autocommit(writes), _) => self.on_autocommit(session, &writes, reply)?,
            (Work::Transaction(transaction), _) => {
                if let Some(transaction) = self.on_transaction(session, transaction, reply)? {
                    self.sessions[session].work = Work::Transaction(transaction);
                }
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
            Statement::plain("SELECT id, v, u FROM stepped ORDER BY id"),
            Statement::plain("SELECT id, v, u FROM stepped WHERE u >= 0 ORDER BY u"),
            Statement::plain("SELECT log, round FROM stepped_log ORDER BY log, round"),
            Statement::plain("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep'"),
        ]
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        match position {
            0 | 1 => self.check_rows(reply, (self.raised.acknowledged(), self.shifted.acknowledged())),
            2 => self.check_logs(reply),
            _ => match reply.integers()?[0][0] {
                1 => Ok(()),
                running => Err(format!("{} other statements are running", running - 1)),
            },
        }
    }
}
