//! Schema changes that fail after they have begun, because rows have equal keys. They leave no index behind,
//! not even if the node ends meanwhile.

use junctor_kernel::Random;

use super::{DUPLICATE, Step, Workload, succeeded};
use crate::statement::{Reply, Statement};

const ROWS: &str = "(1, 1, 1), (2, 1, 2), (3, 2, 3)";

/// The workload `failed_change`.
#[derive(Debug)]
pub struct FailedChange {
    sessions: Vec<Session>,
    rounds: u32,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    /// Whether the statement under way must fail.
    must_fail: bool,
}

impl FailedChange {
    /// Creates the workload with this number of sessions and rounds of each session.
    pub fn new(sessions: usize, rounds: u32) -> Self {
        let session = |_| Session { rounds_left: rounds, must_fail: false };
        Self { sessions: (0..sessions).map(session).collect(), rounds }
    }
}

impl Workload for FailedChange {
    fn name(&self) -> &'static str {
        "failed_change"
    }

    fn setup(&self) -> Vec<Statement> {
        let table = "CREATE TABLE refused (id INT PRIMARY KEY, u INT, w INT) PARTITION BY KEY (id) PARTITIONS 2";
        vec![Statement::plain(table), Statement::plain(format!("INSERT INTO refused VALUES {ROWS}"))]
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
        let name = session as u32 * self.rounds + state.rounds_left;
        state.must_fail = true;
        Step::Run(Statement::plain(match random.below(4) {
            0 => format!("CREATE UNIQUE INDEX u_{name} ON refused (u)"),
            1 => format!("ALTER TABLE refused ADD UNIQUE KEY u_{name} (u)"),
            2 => format!("ALTER TABLE refused ADD INDEX w_{name} (w), ADD UNIQUE KEY u_{name} (u)"),
            _ => {
                state.must_fail = false;
                "SELECT id FROM refused WHERE w > 0".to_owned()
            }
        }))
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        match (self.sessions[session].must_fail, reply.errno()) {
            (true, DUPLICATE) => Ok(()),
            (true, errno) => Err(format!("error {errno} instead of {DUPLICATE}")),
            (false, _) => match reply.rows()?.len() {
                3 => Ok(()),
                count => Err(format!("{count} rows instead of 3")),
            },
        }
    }

    fn on_closed(&mut self, _session: usize) {}

    fn recheck(&self) -> Vec<Statement> {
        self.audit()
    }

    fn audit(&self) -> Vec<Statement> {
        vec![
            Statement::plain("SELECT id, u, w FROM refused ORDER BY id"),
            Statement::plain("SELECT index_name FROM information_schema.statistics WHERE table_name = 'refused'"),
        ]
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        succeeded(reply)?;
        match position {
            0 if reply.integers()? != [[1, 1, 1], [2, 1, 2], [3, 2, 3]] => Err(format!("wrong rows: {reply:?}")),
            1 if reply.rows()?.len() != 1 => Err(format!("a failed change left an index: {reply:?}")),
            _ => Ok(()),
        }
    }
}
