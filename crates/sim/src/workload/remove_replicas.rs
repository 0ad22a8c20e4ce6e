//! Replicas that were added to node groups are removed again, one after the other, while other sessions read
//! and write. A removal that does not end is given up, and the node stays. Tables are made and changed
//! meanwhile, and have their rows at every node.

use junctor_kernel::{Duration, Random};

use super::{DEADLOCK, Step, Workload, succeeded};
use crate::statement::{Reply, Statement};

/// MySQL's errors for wrong arguments, a failure that passes, a lock wait timeout, a changed definition.
const REFUSED: u16 = 1210;
const PASSES: u16 = 1296;
const LOCK_WAIT: u16 = 1205;
const CHANGED: u16 = 1412;
/// MySQL's error for a table that exists.
const TABLE_EXISTS: u16 = 1050;

/// The data nodes that were added as replicas: each with its group, which is NULL without one, and its state.
const REPLICAS: &str = "SELECT node_id, state, node_group FROM junctor_info.nodes WHERE roles LIKE '%added:%' ORDER BY \
                        node_id DESC";
/// Maximum number of looks for a replica that serves.
const LOOKS_MAX: u32 = 400;
/// Maximum number of steps of a removal until it is given up.
const STEPS_MAX: u32 = 300;

/// The state of the removal of the next replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// One that serves is awaited.
    Await,
    /// A table is made.
    Create,
    /// It is to leave.
    Leave,
    /// It is to stay after all.
    Stay,
    Done,
}

/// The statement under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Replicas,
    Create,
    Mark,
}

/// The workload `remove_replicas`, of one session.
#[derive(Debug)]
pub struct RemoveReplicas {
    /// Number of removals that are left.
    left: u32,
    phase: Phase,
    awaited: Awaited,
    looks_left: u32,
    steps_left: u32,
    /// Numbers and states of the added replicas, as the session has read them last.
    replicas: Vec<(String, String)>,
    /// The replica that is to leave or to stay.
    chosen: String,
}

impl RemoveReplicas {
    /// Creates the workload with this number of removals.
    pub fn new(rounds: u32) -> Self {
        Self {
            left: rounds,
            phase: Phase::Await,
            awaited: Awaited::Replicas,
            looks_left: LOOKS_MAX,
            steps_left: STEPS_MAX,
            replicas: Vec::new(),
            chosen: String::new(),
        }
    }

    fn run(&mut self, awaited: Awaited, text: impl Into<String>) -> Step {
        self.awaited = awaited;
        Step::Run(Statement::plain(text.into()))
    }

    fn state_of(&self, node: &str) -> Option<&str> {
        self.replicas.iter().find(|(id, _)| id == node).map(|(_, state)| state.as_str())
    }

    fn note_replicas(&mut self, reply: &Reply) -> Result<(), String> {
        let text = |cell: &Option<String>| cell.clone().unwrap_or_default();
        self.replicas = reply.rows()?.iter().map(|row| (text(&row[0]), text(&row[1]))).collect();
        let state = self.state_of(&self.chosen);
        let is_over = match self.phase {
            Phase::Leave => state == Some("REMOVED"),
            Phase::Stay => matches!(state, Some("REMOVED" | "SERVING")),
            _ => false,
        };
        if is_over {
            self.left -= 1;
            self.phase = if self.left == 0 { Phase::Done } else { Phase::Await };
        }
        Ok(())
    }
}

impl Workload for RemoveReplicas {
    fn name(&self) -> &'static str {
        "remove_replicas"
    }

    fn setup(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn sessions(&self) -> usize {
        1
    }

    fn next(&mut self, _session: usize, random: &mut Random) -> Step {
        if random.one_in(2) {
            return Step::Pause(Duration::from_micros(random.below(20_000)));
        }
        match self.phase {
            Phase::Await => {
                let serving: Vec<&(String, String)> =
                    self.replicas.iter().filter(|(_, state)| state == "SERVING").collect();
                let chosen = serving.get(random.below(serving.len().max(1) as u64) as usize).map(|it| it.0.clone());
                match chosen {
                    Some(chosen) => {
                        (self.chosen, self.phase, self.steps_left) = (chosen, Phase::Create, STEPS_MAX);
                        Step::Pause(Duration::from_micros(1))
                    }
                    None if self.looks_left == 0 => Step::Done,
                    None => {
                        self.looks_left -= 1;
                        self.run(Awaited::Replicas, REPLICAS)
                    }
                }
            }
            Phase::Create => {
                let text = format!("CREATE TABLE made_{} (id INT PRIMARY KEY, u INT, UNIQUE (u))", self.left);
                self.run(Awaited::Create, text)
            }
            Phase::Leave | Phase::Stay => {
                self.steps_left = self.steps_left.saturating_sub(1);
                if self.steps_left == 0 && self.phase == Phase::Leave {
                    self.phase = Phase::Stay;
                }
                if random.one_in(2) {
                    return self.run(Awaited::Replicas, REPLICAS);
                }
                let word = if self.phase == Phase::Leave { "LEAVE" } else { "STAY" };
                let text = format!("ALTER NODE {} {word}", self.chosen);
                self.run(Awaited::Mark, text)
            }
            Phase::Done => Step::Done,
        }
    }

    fn on_reply(&mut self, _session: usize, reply: &Reply) -> Result<(), String> {
        match (self.awaited, reply.errno()) {
            (_, PASSES | CHANGED | LOCK_WAIT | DEADLOCK) => {}
            // It is removed already.
            (Awaited::Mark, REFUSED) => {}
            (Awaited::Replicas, _) => self.note_replicas(reply)?,
            // An answer was lost.
            (Awaited::Create, TABLE_EXISTS) => self.phase = Phase::Leave,
            (Awaited::Create, _) => {
                succeeded(reply)?;
                self.phase = Phase::Leave;
            }
            (Awaited::Mark, _) => succeeded(reply)?,
        }
        Ok(())
    }

    fn on_closed(&mut self, _session: usize) {}

    fn audit(&self) -> Vec<Statement> {
        vec![Statement::plain(REPLICAS)]
    }

    fn on_audit(&mut self, _position: usize, reply: &Reply) -> Result<(), String> {
        for row in reply.rows()? {
            let state = row[1].as_deref().unwrap_or_default();
            if !matches!(state, "SERVING" | "REMOVED") || (state == "SERVING") != row[2].is_some() {
                return Err(format!("replica {row:?} neither serves nor is removed"));
            }
        }
        Ok(())
    }
}
