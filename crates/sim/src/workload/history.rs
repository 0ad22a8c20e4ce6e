//! Transactions on lists, registers and growing families of rows at one isolation level. All checks happen at
//! the end, on the dependency graph of the whole history.

use std::collections::BTreeMap;

use junctor_history::check::check;
use junctor_history::draw::Options;
use junctor_history::history::{History, Key, ReadValue};
use junctor_history::level::Level;
use junctor_history::session::{
    Answer, Request, Session, create_tables, final_reads, populate_tables, record_final_read,
};
use junctor_history::survival::{Durability, Survival, judge};
use junctor_kernel::{Duration, Random};

use super::{Step, Workload};
use crate::statement::{Reply, Statement};

/// The workloads `history_read_committed`, `history_repeatable_read`, `history_snapshot` and
/// `history_serializable`.
#[derive(Debug)]
pub struct Histories {
    options: Options,
    sessions: Vec<Session>,
    /// Grows with every statement and every answer, so that time stamps reflect their order.
    stamp: u64,
    history: History,
    durability: Durability,
    /// Number of transactions of the history that have survived a restart.
    settled: usize,
    /// The objects that the running recheck has found.
    found: BTreeMap<Key, ReadValue>,
    audited: usize,
}

impl Histories {
    /// Creates the workload with this number of sessions, transactions of each session, and objects of each
    /// kind.
    pub fn new(level: Level, sessions: usize, transactions: u32, objects: i64) -> Self {
        let objects = u32::try_from(objects).unwrap_or(u32::MAX).clamp(1, 10_000);
        let sessions = sessions as u32;
        let options = Options { level, first_id: 1, objects, window: objects.min(4), sessions, transactions };
        Self {
            options,
            sessions: (0..sessions).map(|number| Session::new(options, number)).collect(),
            stamp: 0,
            history: History::default(),
            durability: Durability::Disk,
            settled: 0,
            found: BTreeMap::new(),
            audited: 0,
        }
    }

    fn stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// Checks the objects found after a restart, and removes from the history the transactions that the
    /// database has lost.
    fn judge_restart(&mut self) -> Result<(), String> {
        let found = std::mem::take(&mut self.found);
        let recorded = self.sessions.iter_mut().flat_map(Session::take_transactions);
        self.history.transactions.extend(recorded);
        let Survival { faults, forgotten } = judge(&self.history.transactions, self.settled, &found, self.durability);
        if !faults.is_empty() {
            return Err(faults.join("\n"));
        }
        let mut position = 0;
        self.history.transactions.retain(|_| {
            position += 1;
            !forgotten.contains(&(position - 1))
        });
        self.settled = self.history.transactions.len();
        Ok(())
    }
}

fn statement(request: Request) -> Statement {
    Statement::with(request.text, request.parameters.into_iter().map(Into::into))
}

impl Workload for Histories {
    fn name(&self) -> &'static str {
        match self.options.level {
            Level::ReadCommitted => "history_read_committed",
            Level::RepeatableRead => "history_repeatable_read",
            Level::Snapshot => "history_snapshot",
            Level::Serializable => "history_serializable",
        }
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = create_tables(&self.options);
        statements.extend(populate_tables(&self.options));
        statements.into_iter().map(Statement::plain).collect()
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        if random.one_in(16) {
            return Step::Pause(Duration::from_micros(random.below(3_000)));
        }
        let stamp = self.stamp();
        match self.sessions[session].next(stamp, &mut |count| random.below(count)) {
            Some(request) => Step::Run(statement(request)),
            None => Step::Done,
        }
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let stamp = self.stamp();
        let answer = match reply {
            Reply::Done { affected_rows, .. } => Answer::Done { affected_rows: *affected_rows },
            Reply::Rows(rows) => Answer::Rows(rows),
            Reply::Failed { errno, .. } => Answer::Failed { errno: *errno },
            Reply::Several(_) => return Err("several results of one statement".to_owned()),
        };
        self.sessions[session].on_answer(answer, stamp)
    }

    fn on_closed(&mut self, session: usize) {
        self.sessions[session].on_closed();
    }

    fn recheck(&self) -> Vec<Statement> {
        self.audit()
    }

    fn on_recheck(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        record_final_read(&self.options, position, reply.rows()?, &mut self.found)?;
        if position + 1 < final_reads(&self.options).len() {
            return Ok(());
        }
        self.judge_restart()
    }

    fn audit(&self) -> Vec<Statement> {
        final_reads(&self.options).into_iter().map(statement).collect()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        record_final_read(&self.options, position, reply.rows()?, &mut self.history.finals)?;
        self.audited += 1;
        if self.audited < final_reads(&self.options).len() {
            return Ok(());
        }
        let sessions = std::mem::take(&mut self.sessions);
        self.history.transactions.extend(sessions.into_iter().flat_map(Session::into_transactions));
        match check(&self.history, self.options.level) {
            report if report.forbidden == 0 => Ok(()),
            report => Err(report.to_string()),
        }
    }
}
