//! Backups, each by a session that holds the backup lock while the program copies the files.

use std::cell::RefCell;
use std::rc::Rc;

use junctor_kernel::{Duration, Random};

use super::{Step, Workload, succeeded};
use crate::backup_program::{BackupProgram, CopyEnd};
use crate::statement::{Reply, Statement};

/// Maximum time between two backups, in microseconds.
const PAUSE_US_MAX: u64 = 100_000;
/// Time between two looks at the copy.
const LOOK: Duration = Duration::from_micros(500);
/// The answer to UNLOCK INSTANCE if the node has ended the protection, because its log was getting full.
const REVOKED: u16 = 1105;

/// The workload `backup`.
pub struct Backup {
    program: Rc<RefCell<BackupProgram>>,
    rounds_left: u32,
    stage: Stage,
    /// Whether the program may end at a crash point.
    may_crash: bool,
    completed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Resting,
    Locking,
    /// The program copies. The driver of the run lets it work.
    Copying,
    /// The copy has ended in this way.
    Unlocking(CopyEnd),
}

impl Backup {
    /// Creates the workload with this number of backups.
    pub fn new(rounds: u32) -> Self {
        let program = Rc::new(RefCell::new(BackupProgram::new()));
        Self { program, rounds_left: rounds, stage: Stage::Resting, may_crash: true, completed: 0 }
    }

    /// One backup by this program, which does not end before.
    pub fn once(program: Rc<RefCell<BackupProgram>>) -> Self {
        program.borrow_mut().abandon();
        Self { program, rounds_left: 1, stage: Stage::Resting, may_crash: false, completed: 0 }
    }

    /// Number of complete backups.
    pub fn completed(&self) -> u64 {
        self.completed
    }
}

impl Workload for Backup {
    fn name(&self) -> &'static str {
        "backup"
    }

    fn setup(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn sessions(&self) -> usize {
        1
    }

    fn next(&mut self, _session: usize, random: &mut Random) -> Step {
        match &self.stage {
            Stage::Resting if self.rounds_left == 0 => Step::Done,
            Stage::Resting => {
                self.rounds_left -= 1;
                self.stage = Stage::Locking;
                Step::Pause(Duration::from_micros(random.below(PAUSE_US_MAX)))
            }
            Stage::Locking => Step::Run(Statement::plain("LOCK INSTANCE FOR BACKUP")),
            Stage::Copying => match self.program.borrow_mut().take_end() {
                None => Step::Pause(LOOK),
                Some(end) => {
                    self.stage = Stage::Unlocking(end);
                    Step::Run(Statement::plain("UNLOCK INSTANCE"))
                }
            },
            Stage::Unlocking(_) => Step::Run(Statement::plain("UNLOCK INSTANCE")),
        }
    }

    fn on_reply(&mut self, _session: usize, reply: &Reply) -> Result<(), String> {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Resting) {
            Stage::Locking => {
                succeeded(reply)?;
                self.program.borrow_mut().begin(self.may_crash);
                Stage::Copying
            }
            Stage::Unlocking(_) if reply.errno() == REVOKED => Stage::Resting,
            Stage::Unlocking(end) => {
                succeeded(reply)?;
                let end = if end == CopyEnd::Copied { self.program.borrow_mut().complete() } else { end };
                match end {
                    CopyEnd::Copied => self.completed += 1,
                    CopyEnd::Crashed => {}
                    CopyEnd::Failed(error) => return Err(format!("the copy of protected files failed: {error}")),
                }
                Stage::Resting
            }
            stage => return Err(format!("{reply:?} in stage {stage:?}")),
        };
        Ok(())
    }

    fn on_closed(&mut self, _session: usize) {
        self.program.borrow_mut().abandon();
        self.stage = Stage::Resting;
    }

    fn audit(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn on_audit(&mut self, _position: usize, _reply: &Reply) -> Result<(), String> {
        Ok(())
    }

    fn backup_program(&self) -> Option<Rc<RefCell<BackupProgram>>> {
        Some(Rc::clone(&self.program))
    }
}
