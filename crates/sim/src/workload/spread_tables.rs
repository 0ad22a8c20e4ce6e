//! The tables of all other workloads are spread over the node groups of the cluster again and again, while
//! their sessions read and write. In the end every table is in every group.

use junctor_kernel::{Duration, Random};

use super::{DEADLOCK, Step, Workload, succeeded};
use crate::statement::{Reply, Statement};

/// MySQL's error for a lock wait timeout.
const LOCK_WAIT: u16 = 1205;
const TABLES: &str = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'sim' ORDER BY table_name";
const GROUPS: &str = "SELECT table_name, nodegroup FROM information_schema.partitions WHERE table_schema = 'sim'";
const GROUP_COUNT: &str = "SELECT COUNT(*) FROM junctor_info.node_groups WHERE state = 'SERVING'";
/// Maximum number of looks for a second group. A cluster may have none.
const LOOKS_MAX: u32 = 400;

/// The workload `spread_tables`.
#[derive(Debug)]
pub struct SpreadTables {
    rounds_left: Vec<u32>,
    /// The reply for which each session waits.
    awaited: Vec<Awaited>,
    /// Number of further looks for a second group.
    looks_left: u32,
    tables: Vec<String>,
    /// Number of node groups, as a session or the audit has read it.
    groups: i64,
}

/// The statement under way of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Groups,
    Tables,
    Spread,
}

impl SpreadTables {
    /// Creates the workload with this number of sessions, and statements of each session.
    pub fn new(sessions: usize, rounds: u32) -> Self {
        let (rounds_left, awaited) = (vec![rounds; sessions], vec![Awaited::Groups; sessions]);
        Self { rounds_left, awaited, looks_left: LOOKS_MAX, tables: Vec::new(), groups: 0 }
    }

    fn spread(table: &str) -> Statement {
        Statement::plain(format!("ALTER TABLE {table} REORGANIZE PARTITION"))
    }

    /// The groups that have partitions of each table.
    fn check_groups(&self, reply: &Reply) -> Result<(), String> {
        for table in &self.tables {
            let mut groups: Vec<&str> = Vec::new();
            let mut partitions = 0;
            for row in reply.rows()?.iter().filter(|row| row[0].as_deref() == Some(table)) {
                groups.extend(row[1].as_deref().unwrap_or_default().split(','));
                partitions += 1;
            }
            groups.sort_unstable();
            groups.dedup();
            let wanted = if partitions > 1 { self.groups.min(partitions) } else { self.groups };
            if groups.len() as i64 != wanted {
                return Err(format!("table {table} is in the node groups {groups:?} of {}", self.groups));
            }
        }
        Ok(())
    }
}

impl Workload for SpreadTables {
    fn name(&self) -> &'static str {
        "spread_tables"
    }

    fn setup(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn sessions(&self) -> usize {
        self.rounds_left.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        if self.rounds_left[session] == 0 {
            return Step::Done;
        }
        if random.one_in(2) {
            return Step::Pause(Duration::from_micros(random.below(60_000)));
        }
        if self.tables.is_empty() {
            self.awaited[session] = Awaited::Tables;
            return Step::Run(Statement::plain(TABLES));
        }
        if self.groups < 2 && self.looks_left > 0 {
            self.looks_left -= 1;
            self.awaited[session] = Awaited::Groups;
            return Step::Run(Statement::plain(GROUP_COUNT));
        }
        self.awaited[session] = Awaited::Spread;
        self.rounds_left[session] -= 1;
        let table = &self.tables[random.below(self.tables.len() as u64) as usize];
        Step::Run(Self::spread(table))
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        match (self.awaited[session], reply.errno()) {
            (Awaited::Tables, _) => self.tables = reply.rows()?.iter().filter_map(|row| row[0].clone()).collect(),
            (Awaited::Groups, _) => self.groups = reply.integers()?[0][0],
            // Sessions use the table all the time, or the cluster has lost nodes.
            (Awaited::Spread, LOCK_WAIT | DEADLOCK) => {}
            (Awaited::Spread, _) => succeeded(reply)?,
        }
        Ok(())
    }

    fn on_closed(&mut self, _session: usize) {}

    fn recheck(&self) -> Vec<Statement> {
        self.tables.iter().map(|table| Self::spread(table)).collect()
    }

    fn on_recheck(&mut self, _position: usize, reply: &Reply) -> Result<(), String> {
        succeeded(reply)
    }

    fn audit(&self) -> Vec<Statement> {
        vec![Statement::plain(GROUP_COUNT), Statement::plain(GROUPS)]
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        match position {
            0 => {
                self.groups = reply.integers()?[0][0];
                Ok(())
            }
            _ => self.check_groups(reply),
        }
    }
}
