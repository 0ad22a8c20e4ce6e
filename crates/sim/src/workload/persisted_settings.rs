//! SET PERSIST and RESET PERSIST: after a restart, each variable has the value of the last acknowledged
//! statement, or of a later one whose outcome is unknown.

use std::collections::BTreeSet;

use junctor_kernel::Random;

use super::{Step, Workload};
use crate::statement::{Reply, Statement, integer};

/// Variables without influence on the other workloads, one for each session.
const VARIABLES: [&str; 3] = ["wait_timeout", "interactive_timeout", "lock_wait_timeout"];
/// The lowest value in seconds, which is longer than a run.
const VALUE_MIN: i64 = 100_000;

/// The workload `persisted_settings`.
#[derive(Debug)]
pub struct PersistedSettings {
    sessions: Vec<Session>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    next_value: i64,
    /// The persisted values that are possible now; `None` is the absence of a value.
    possible: BTreeSet<Option<i64>>,
    /// What the statement under way sets.
    sent: Option<Option<i64>>,
    /// Whether a statement of unknown outcome may still take effect.
    is_uncertain: bool,
}

impl PersistedSettings {
    /// Creates the workload with this number of sessions and rounds of each session.
    pub fn new(sessions: usize, rounds: u32) -> Self {
        let session = |_| Session {
            rounds_left: rounds,
            next_value: VALUE_MIN,
            possible: BTreeSet::from([None]),
            sent: None,
            is_uncertain: false,
        };
        Self { sessions: (0..sessions.min(VARIABLES.len())).map(session).collect() }
    }
}

impl Workload for PersistedSettings {
    fn name(&self) -> &'static str {
        "persisted_settings"
    }

    fn expects_full_disk(&self) -> bool {
        true
    }

    fn setup(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        let state = &mut self.sessions[session];
        if state.rounds_left == 0 {
            return Step::Done;
        }
        state.rounds_left -= 1;
        state.next_value += 1;
        let value = (!random.one_in(4)).then_some(state.next_value);
        state.sent = Some(value);
        state.possible.insert(value);
        let variable = VARIABLES[session];
        Step::Run(Statement::plain(match value {
            Some(value) => format!("SET PERSIST {variable} = {value}"),
            None => format!("RESET PERSIST IF EXISTS {variable}"),
        }))
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let state = &mut self.sessions[session];
        let sent = state.sent.take().ok_or("an answer without a statement")?;
        match reply {
            // The disk may be full or broken. The file may have the new value all the same.
            Reply::Failed { errno: 1021 | 1026, .. } => state.is_uncertain = true,
            Reply::Failed { errno, message } => return Err(format!("error {errno}: {message}")),
            _ if !state.is_uncertain => state.possible = BTreeSet::from([sent]),
            _ => {}
        }
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        let state = &mut self.sessions[session];
        state.is_uncertain |= state.sent.take().is_some();
    }

    fn recheck(&self) -> Vec<Statement> {
        self.audit()
    }

    fn audit(&self) -> Vec<Statement> {
        let text = "SELECT variable_value FROM performance_schema.persisted_variables WHERE variable_name =";
        let variables = VARIABLES.iter().take(self.sessions.len());
        variables.map(|variable| Statement::plain(format!("{text} '{variable}'"))).collect()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        let state = &mut self.sessions[position];
        let found = reply.rows()?.first().map(|row| integer(&row[0])).transpose()?;
        if !state.possible.contains(&found) {
            let (variable, possible) = (VARIABLES[position], &state.possible);
            return Err(format!("{variable} is persisted as {found:?}, but only {possible:?} are possible"));
        }
        state.possible = BTreeSet::from([found]);
        state.is_uncertain = false;
        Ok(())
    }
}
