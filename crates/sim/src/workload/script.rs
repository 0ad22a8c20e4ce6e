//! Statements in order in one session: for setup, audits and diagnosis.

use junctor_kernel::Random;

use super::{Step, Workload, succeeded};
use crate::statement::{Reply, Statement};

/// Statements that must all succeed. It ends at the first error or when the connection ends.
#[derive(Debug, Default)]
pub struct Script {
    statements: Vec<Statement>,
    done: usize,
    was_closed: bool,
}

impl Script {
    /// A script of these statements.
    pub fn new(statements: Vec<Statement>) -> Self {
        Self { statements, done: 0, was_closed: false }
    }

    /// Whether all statements succeeded.
    pub fn is_complete(&self) -> bool {
        self.done == self.statements.len()
    }

    fn next(&self) -> Step {
        match self.statements.get(self.done) {
            Some(statement) if !self.was_closed => Step::Run(statement.clone()),
            _ => Step::Done,
        }
    }
}

impl Workload for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn setup(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn sessions(&self) -> usize {
        1
    }

    fn next(&mut self, _session: usize, _random: &mut Random) -> Step {
        Script::next(self)
    }

    fn on_reply(&mut self, _session: usize, reply: &Reply) -> Result<(), String> {
        self.done += 1;
        succeeded(reply)
    }

    fn on_closed(&mut self, _session: usize) {
        self.was_closed = true;
    }

    fn audit(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn on_audit(&mut self, _position: usize, _reply: &Reply) -> Result<(), String> {
        Ok(())
    }
}

/// Statements whose answers are kept as text, even errors. Used to diagnose a cluster after a violation.
#[derive(Debug, Default)]
pub struct Diagnosis {
    script: Script,
    lines: Vec<String>,
}

impl Diagnosis {
    /// A diagnosis with these statements.
    pub fn new(statements: Vec<Statement>) -> Self {
        Self { script: Script::new(statements), lines: Vec::new() }
    }

    /// The answers, one line for each row.
    pub fn into_lines(self) -> Vec<String> {
        self.lines
    }
}

impl Workload for Diagnosis {
    fn name(&self) -> &'static str {
        "diagnosis"
    }

    fn setup(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn sessions(&self) -> usize {
        1
    }

    fn next(&mut self, _session: usize, _random: &mut Random) -> Step {
        self.script.next()
    }

    fn on_reply(&mut self, _session: usize, reply: &Reply) -> Result<(), String> {
        let Step::Run(statement) = self.script.next() else { return Err("an answer without a statement".to_owned()) };
        let name = statement.text;
        match reply {
            Reply::Rows(rows) => self.lines.extend(rows.iter().map(|row| {
                let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
                format!("{name}: {}", cells.join(" "))
            })),
            other => self.lines.push(format!("{name}: {other:?}")),
        }
        self.script.done += 1;
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        self.script.on_closed(session);
    }

    fn audit(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn on_audit(&mut self, _position: usize, _reply: &Reply) -> Result<(), String> {
        Ok(())
    }
}

/// Runs the audit or the recheck of a workload as a session.
pub struct Audit<'a> {
    workload: &'a mut dyn Workload,
    script: Script,
    is_recheck: bool,
}

impl<'a> Audit<'a> {
    /// The audit of this workload.
    pub fn new(workload: &'a mut dyn Workload) -> Self {
        let script = Script::new(workload.audit());
        Self { workload, script, is_recheck: false }
    }

    /// The recheck of this workload.
    pub fn recheck(workload: &'a mut dyn Workload) -> Self {
        let script = Script::new(workload.recheck());
        Self { workload, script, is_recheck: true }
    }

    /// Whether all statements were answered.
    pub fn is_complete(&self) -> bool {
        self.script.is_complete()
    }
}

impl Workload for Audit<'_> {
    fn name(&self) -> &'static str {
        self.workload.name()
    }

    fn setup(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn sessions(&self) -> usize {
        1
    }

    fn next(&mut self, _session: usize, _random: &mut Random) -> Step {
        self.script.next()
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        self.script.on_reply(session, reply)?;
        let position = self.script.done - 1;
        let (name, checked) = match self.is_recheck {
            true => ("recheck", self.workload.on_recheck(position, reply)),
            false => ("audit", self.workload.on_audit(position, reply)),
        };
        checked.map_err(|fault| format!("{name}: {fault}"))
    }

    fn on_closed(&mut self, session: usize) {
        self.script.on_closed(session);
    }

    fn audit(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn on_audit(&mut self, _position: usize, _reply: &Reply) -> Result<(), String> {
        Ok(())
    }
}
