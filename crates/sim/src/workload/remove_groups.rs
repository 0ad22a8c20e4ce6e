//! The node groups that were added to the cluster are removed again, while other sessions read and write: all
//! tables are spread over them first, then moved off. A removal that does not end is given up, and the group
//! stays. A table with one partition has a unique index, and another one gets one before it is spread.

use junctor_kernel::{Duration, Random};

use super::{DEADLOCK, Step, Workload, inserts, succeeded};
use crate::statement::{Reply, Statement};

/// MySQL's errors for wrong arguments, a failure that passes, a lock wait timeout, a changed definition.
const REFUSED: u16 = 1210;
const PASSES: u16 = 1296;
const LOCK_WAIT: u16 = 1205;
const CHANGED: u16 = 1412;
/// MySQL's error for an index that exists.
const DUPLICATE_NAME: u16 = 1061;

const TABLES: &str = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'sim' ORDER BY table_name";
const PLACES: &str = "SELECT table_name, nodegroup FROM information_schema.partitions WHERE table_schema = 'sim'";
const GROUPS: &str = "SELECT node_group, state FROM junctor_info.node_groups ORDER BY node_group";
/// Maximum number of looks for a group that was added. A cluster may have none.
const LOOKS_MAX: u32 = 400;
/// Maximum number of steps of a removal until it is given up.
const STEPS_MAX: u32 = 600;
/// Number of rows in each of the workload's own tables.
const ROWS: i64 = 4;

/// What becomes of the last group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It is awaited.
    Await,
    /// A table that is not spread yet gets a unique index.
    Index,
    /// The tables from this position on are to be spread over it.
    Spread(usize),
    /// It is to leave.
    Leave,
    /// It is to stay after all.
    Stay,
    Done,
}

/// The statement under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Tables,
    Groups,
    Places,
    Index,
    Spread,
    Move,
    Mark,
}

/// The workload `remove_groups`, of one session.
#[derive(Debug)]
pub struct RemoveGroups {
    /// Number of removals that are left.
    left: u32,
    phase: Phase,
    awaited: Awaited,
    looks_left: u32,
    steps_left: u32,
    tables: Vec<String>,
    /// The states of the groups, as the session or the audit has read them.
    states: Vec<String>,
    /// Number of groups that the removal is to leave.
    target: usize,
    /// A table that has rows in the group that leaves.
    left_table: Option<String>,
}

impl RemoveGroups {
    /// Creates the workload with this number of removals.
    pub fn new(rounds: u32) -> Self {
        Self {
            left: rounds,
            phase: Phase::Await,
            awaited: Awaited::Groups,
            looks_left: LOOKS_MAX,
            steps_left: STEPS_MAX,
            tables: Vec::new(),
            states: Vec::new(),
            target: 0,
            left_table: None,
        }
    }

    fn run(&mut self, awaited: Awaited, text: impl Into<String>) -> Step {
        self.awaited = awaited;
        Step::Run(Statement::plain(text.into()))
    }

    fn reorganize(table: &str) -> String {
        format!("ALTER TABLE {table} REORGANIZE PARTITION")
    }

    /// Marks the last group, or looks how far it is.
    fn mark_or_look(&mut self, is_marked: bool, random: &mut Random) -> Step {
        if is_marked || random.one_in(2) {
            return self.run(Awaited::Groups, GROUPS);
        }
        let word = if self.phase == Phase::Leave { "LEAVE" } else { "STAY" };
        let group = self.target;
        self.run(Awaited::Mark, format!("ALTER NODEGROUP {group} {word}"))
    }

    /// Ends a removal that has come to its end in one way or the other.
    fn note_states(&mut self) {
        let is_leaving = self.states.last().is_some_and(|state| state == "LEAVING");
        let is_gone = self.states.len() <= self.target;
        let is_over = match self.phase {
            Phase::Leave => is_gone,
            // A group of which no node is heard is DOWN, leaving or not.
            Phase::Stay => is_gone || self.states.last().is_some_and(|state| state == "SERVING"),
            _ => false,
        };
        if is_over {
            self.left -= 1;
            (self.phase, self.steps_left) = (Phase::Await, STEPS_MAX);
            if self.left == 0 {
                self.phase = Phase::Done;
            }
        }
        if !is_leaving {
            self.left_table = None;
        }
    }

    /// Looks for a table in the last group.
    fn note_places(&mut self, reply: &Reply) -> Result<(), String> {
        let group = self.target.to_string();
        let is_there =
            |row: &&Vec<Option<String>>| row[1].as_deref().unwrap_or_default().split(',').any(|it| it == group);
        self.left_table = reply.rows()?.iter().find(is_there).and_then(|row| row[0].clone());
        Ok(())
    }
}

impl Workload for RemoveGroups {
    fn name(&self) -> &'static str {
        "remove_groups"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![
            Statement::plain(
                "CREATE TABLE few (id INT PRIMARY KEY, u INT, UNIQUE (u)) PARTITION BY KEY (id) PARTITIONS 1",
            ),
            Statement::plain("CREATE TABLE indexed_late (id INT PRIMARY KEY, u INT)"),
        ];
        for table in ["few", "indexed_late"] {
            statements.extend(inserts(table, 0..ROWS, |id| format!("{id}, {id}")));
        }
        statements
    }

    fn sessions(&self) -> usize {
        1
    }

    fn next(&mut self, _session: usize, random: &mut Random) -> Step {
        if random.one_in(2) {
            return Step::Pause(Duration::from_micros(random.below(20_000)));
        }
        if self.tables.is_empty() {
            return self.run(Awaited::Tables, TABLES);
        }
        self.steps_left = self.steps_left.saturating_sub(u32::from(self.phase != Phase::Await));
        if self.steps_left == 0 && self.phase == Phase::Leave {
            self.phase = Phase::Stay;
        }
        let last = self.states.last().map_or("", String::as_str);
        match self.phase {
            Phase::Await if self.looks_left == 0 => Step::Done,
            Phase::Await if self.states.len() > 1 && last == "SERVING" => {
                self.target = self.states.len() - 1;
                self.phase = Phase::Index;
                Step::Pause(Duration::from_micros(1))
            }
            Phase::Await => {
                self.looks_left -= 1;
                self.run(Awaited::Groups, GROUPS)
            }
            Phase::Index => {
                let text = format!("ALTER TABLE indexed_late ADD UNIQUE u_{} (u)", self.left);
                self.run(Awaited::Index, text)
            }
            Phase::Spread(position) => match self.tables.get(position).cloned() {
                Some(table) => self.run(Awaited::Spread, Self::reorganize(&table)),
                None => {
                    self.phase = Phase::Leave;
                    Step::Pause(Duration::from_micros(1))
                }
            },
            Phase::Leave if last == "LEAVING" => match self.left_table.take() {
                Some(table) => self.run(Awaited::Move, Self::reorganize(&table)),
                None if random.one_in(2) => self.run(Awaited::Places, PLACES),
                None => self.run(Awaited::Groups, GROUPS),
            },
            Phase::Leave | Phase::Stay => self.mark_or_look(last == "DOWN", random),
            Phase::Done => Step::Done,
        }
    }

    fn on_reply(&mut self, _session: usize, reply: &Reply) -> Result<(), String> {
        match (self.awaited, reply.errno()) {
            (_, PASSES | CHANGED | LOCK_WAIT | DEADLOCK) => {}
            // It is gone already, or it may never leave.
            (Awaited::Mark, REFUSED) => {
                if matches!(reply, Reply::Failed { message, .. } if message.contains("since the first start")) {
                    self.phase = Phase::Done;
                }
            }
            (Awaited::Tables, _) => self.tables = reply.rows()?.iter().filter_map(|row| row[0].clone()).collect(),
            (Awaited::Groups, _) => {
                self.states = reply.rows()?.iter().filter_map(|row| row[1].clone()).collect();
                self.note_states();
            }
            (Awaited::Places, _) => self.note_places(reply)?,
            // An answer was lost.
            (Awaited::Index, DUPLICATE_NAME) => self.phase = Phase::Spread(0),
            (Awaited::Index, _) => {
                succeeded(reply)?;
                self.phase = Phase::Spread(0);
            }
            (Awaited::Spread, _) => {
                succeeded(reply)?;
                if let Phase::Spread(position) = &mut self.phase {
                    *position += 1;
                }
            }
            (Awaited::Move | Awaited::Mark, _) => succeeded(reply)?,
        }
        Ok(())
    }

    fn on_closed(&mut self, _session: usize) {}

    fn audit(&self) -> Vec<Statement> {
        vec![Statement::plain(GROUPS), Statement::plain(PLACES)]
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        if position == 0 {
            self.states = reply.rows()?.iter().filter_map(|row| row[1].clone()).collect();
            let serve = self.states.iter().all(|state| state == "SERVING");
            return if serve { Ok(()) } else { Err(format!("the node groups are {:?}", self.states)) };
        }
        for row in reply.rows()? {
            for group in row[1].as_deref().unwrap_or_default().split(',') {
                let is_there = group.parse::<usize>().is_ok_and(|group| group < self.states.len());
                if !is_there {
                    return Err(format!("table {:?} is in node group {group} of {}", row[0], self.states.len()));
                }
            }
        }
        Ok(())
    }
}
