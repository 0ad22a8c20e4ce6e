//! Alterations of several steps that KILL, duplicates and missing parents stop while sessions write. An
//! alteration takes effect as a whole or not at all, even if the node ends meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use junctor_kernel::{Duration, Random};

use super::{DEADLOCK, DUPLICATE, Step, Workload, inserts, succeeded};
use crate::statement::{Reply, Statement};

/// MySQL's error for a lock wait timeout.
const LOCK_WAIT: u16 = 1205;
/// MySQL's error for an interrupted statement.
const INTERRUPTED: u16 = 1317;
/// MySQL's error for a child without a parent.
const NO_PARENT: u16 = 1452;
/// MySQL's error for an unknown connection id.
const NO_SUCH_THREAD: u16 = 1094;

/// MySQL's error for an index that does not exist: an alteration of a lost connection was undone.
const NOT_THERE: u16 = 1091;

const PARENTS: u64 = 4;
const INDEX_NAMES: &str = "SELECT index_name FROM information_schema.statistics WHERE table_name = 'altered'";
const COLUMN_NAMES: &str = "SELECT column_name FROM information_schema.columns WHERE table_name = 'altered'";

/// Whether an alteration of this generation also adds a column, so that the rows are copied.
fn copies(generation: u32) -> bool {
    generation.is_multiple_of(2)
}

/// The workload `alteration`. The first session alters, the second kills the first one's statements, the
/// others write.
#[derive(Debug)]
pub struct Alteration {
    rows: i64,
    rounds_left: Vec<u32>,
    altering: Altering,
    /// The connection of the first session, if it has asked for it.
    connection: Option<i64>,
    /// Part of the names of indexes and columns.
    generation: u32,
    /// The generations whose indexes the audit has found.
    audited: BTreeSet<u32>,
    /// For each session whether it waits for the reply to a write.
    is_writing: Vec<bool>,
    /// Number of writes that succeeded.
    written: i64,
    /// Number of writes whose connection was lost. They may have succeeded.
    unknown: i64,
}

/// The statement under way of the session that alters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Altering {
    NewConnection,
    /// Nothing yet.
    Idle,
    Adding,
    /// Reads the names of indexes; `Some` if it is known whether the last addition took effect.
    Looking(Option<bool>),
    /// Reads all rows by the new index.
    Reading,
    /// Drops what the named generation has added.
    Dropping(u32),
    /// Removes duplicates and children without a parent, so that the next addition may succeed.
    Repairing,
}

impl Alteration {
    /// Creates the workload with this number of sessions, rounds of each session, and rows.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        Self {
            rows: rows.max(2),
            rounds_left: vec![rounds; sessions],
            altering: Altering::NewConnection,
            connection: None,
            generation: 0,
            audited: BTreeSet::new(),
            is_writing: vec![false; sessions],
            written: 0,
            unknown: 0,
        }
    }

    fn draw_write(&self, random: &mut Random) -> Statement {
        let id = random.below(self.rows as u64) as i64;
        // Another row may have the same value, and the parent may be missing.
        let owner = if random.one_in(20) { random.below(self.rows as u64) as i64 } else { id };
        let unique = owner * 10 + random.below(3) as i64;
        let parent = if random.one_in(40) { PARENTS } else { random.below(PARENTS) } as i64;
        match random.below(4) {
            0 => Statement::with(
                "INSERT INTO altered (id, u, p, writes) VALUES (?, ?, ?, 0) ON DUPLICATE KEY UPDATE p = 0, writes = writes + 1",
                [id.into(), (id * 10).into(), 0.into()],
            ),
            1 => Statement::with(
                "UPDATE altered SET p = ?, writes = writes + 1 WHERE id = ?",
                [parent.into(), id.into()],
            ),
            _ => Statement::with(
                "UPDATE altered SET u = ?, writes = writes + 1 WHERE id = ?",
                [unique.into(), id.into()],
            ),
        }
    }

    /// The generations whose indexes exist. Error: one of the two indexes of a generation is missing.
    fn generations(&self, reply: &Reply) -> Result<BTreeSet<u32>, String> {
        let mut found = BTreeMap::<u32, BTreeSet<String>>::new();
        for row in reply.rows()? {
            let name = row.first().cloned().flatten().unwrap_or_default();
            if let Some((kind, generation)) = name.split_once('_') {
                let generation = generation.parse().map_err(|_| format!("unknown index {name}"))?;
                found.entry(generation).or_default().insert(kind.to_owned());
            }
        }
        match found.iter().find(|(_, kinds)| kinds.len() != 2) {
            Some((generation, kinds)) => Err(format!("alteration {generation} took effect in part: {kinds:?}")),
            None => Ok(found.into_keys().collect()),
        }
    }

    /// The generations whose columns exist.
    fn generations_of_columns(reply: &Reply) -> Result<BTreeSet<u32>, String> {
        let mut found = BTreeSet::new();
        for row in reply.rows()? {
            let name = row.first().cloned().flatten().unwrap_or_default();
            if let Some(generation) = name.strip_prefix("x_") {
                found.insert(generation.parse().map_err(|_| format!("unknown column {name}"))?);
            }
        }
        Ok(found)
    }

    fn on_alter_reply(&mut self, reply: &Reply) -> Result<(), String> {
        let errno = reply.errno();
        self.altering = match self.altering {
            // The next statement reads the connection again, or looks again.
            state if errno == INTERRUPTED && !matches!(state, Altering::Adding) => state,
            Altering::NewConnection => {
                self.connection = reply.integers()?.first().and_then(|row| row.first().copied());
                Altering::Looking(None)
            }
            Altering::Adding => match errno {
                0 => Altering::Looking(Some(true)),
                DUPLICATE | NO_PARENT | INTERRUPTED | LOCK_WAIT | DEADLOCK => Altering::Looking(Some(false)),
                _ => return Err(format!("an alteration failed: {reply:?}")),
            },
            Altering::Looking(expected) => {
                let found = self.generations(reply)?;
                if let Some(expected) = expected.filter(|expected| found.contains(&self.generation) != *expected) {
                    return Err(format!("alteration {} took effect: {}", self.generation, !expected));
                }
                match found.last() {
                    Some(generation) if *generation == self.generation && expected == Some(true) => Altering::Reading,
                    Some(generation) => Altering::Dropping(*generation),
                    None if expected == Some(false) => Altering::Repairing,
                    None => Altering::Idle,
                }
            }
            Altering::Reading => {
                let count = reply.rows()?.len();
                if count as i64 != self.rows {
                    return Err(format!("the new index returns {count} of {} rows", self.rows));
                }
                Altering::Dropping(self.generation)
            }
            Altering::Dropping(_) if matches!(errno, 0 | LOCK_WAIT | NOT_THERE) => Altering::Looking(None),
            Altering::Repairing if matches!(errno, 0 | DUPLICATE | DEADLOCK | LOCK_WAIT) => Altering::Idle,
            Altering::Dropping(_) | Altering::Repairing | Altering::Idle => {
                return Err(format!("an alteration failed: {reply:?}"));
            }
        };
        Ok(())
    }
}

impl Workload for Alteration {
    fn name(&self) -> &'static str {
        "alteration"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![
            Statement::plain("CREATE TABLE altered_parent (id INT PRIMARY KEY)"),
            Statement::plain(
                "CREATE TABLE altered (id INT PRIMARY KEY, u INT, p INT, writes INT NOT NULL) \
                 PARTITION BY KEY (id) PARTITIONS 3",
            ),
        ];
        statements.extend(inserts("altered_parent", 0..PARENTS as i64, |id| id.to_string()));
        statements.extend(inserts("altered", 0..self.rows, |id| format!("{id}, {}, 0, 0", id * 10)));
        statements
    }

    fn sessions(&self) -> usize {
        self.rounds_left.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        let may_end = session != 0 || self.altering == Altering::Idle;
        if self.rounds_left[session] == 0 && may_end {
            return Step::Done;
        }
        match session {
            0 => {}
            1 => {
                self.rounds_left[1] -= 1;
                return match self.connection {
                    Some(connection) if random.one_in(2) => {
                        Step::Run(Statement::plain(format!("KILL QUERY {connection}")))
                    }
                    _ => Step::Pause(Duration::from_micros(1 + random.below(3_000))),
                };
            }
            _ => {
                self.rounds_left[session] -= 1;
                self.is_writing[session] = true;
                return Step::Run(self.draw_write(random));
            }
        }
        if self.altering == Altering::Idle {
            self.rounds_left[0] -= 1;
            self.generation += 1;
            self.altering = Altering::Adding;
        }
        let number = self.generation;
        Step::Run(Statement::plain(match self.altering {
            Altering::NewConnection => "SELECT CONNECTION_ID()".to_owned(),
            Altering::Looking(_) => INDEX_NAMES.to_owned(),
            Altering::Reading => "SELECT id FROM altered WHERE u >= 0".to_owned(),
            Altering::Repairing => "UPDATE altered SET u = id * 10, p = 0".to_owned(),
            Altering::Dropping(number) => {
                let column =
                    if copies(number) { format!(", DROP COLUMN x_{number}, MODIFY u INT") } else { String::new() };
                format!(
                    "ALTER TABLE altered DROP FOREIGN KEY f_{number}, DROP INDEX k_{number}, DROP INDEX \
                     u_{number}{column}"
                )
            }
            Altering::Idle | Altering::Adding => {
                let column = match copies(number) {
                    true => format!("ADD COLUMN x_{number} VARCHAR(9) NOT NULL DEFAULT 'x' FIRST, MODIFY u BIGINT, "),
                    false => String::new(),
                };
                format!(
                    "ALTER TABLE altered {column}ADD INDEX k_{number} (p), ADD UNIQUE KEY u_{number} (u), ADD \
                     CONSTRAINT f_{number} FOREIGN KEY (p) REFERENCES altered_parent (id)"
                )
            }
        }))
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        if std::mem::take(&mut self.is_writing[session]) && reply.errno() == 0 {
            self.written += 1;
        }
        match (session, reply.errno()) {
            (0, _) => self.on_alter_reply(reply),
            (1, 0 | NO_SUCH_THREAD) => Ok(()),
            (2.., 0 | DUPLICATE | NO_PARENT | DEADLOCK | LOCK_WAIT) => Ok(()),
            _ => Err(format!("a statement failed: {reply:?}")),
        }
    }

    fn on_closed(&mut self, session: usize) {
        self.unknown += i64::from(std::mem::take(&mut self.is_writing[session]));
        if session == 0 {
            self.connection = None;
            self.altering = Altering::NewConnection;
        }
    }

    fn recheck(&self) -> Vec<Statement> {
        self.audit()
    }

    fn on_recheck(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        self.on_audit(position, reply)
    }

    fn audit(&self) -> Vec<Statement> {
        let copied = "SELECT id FROM altered WHERE u IS NULL OR u NOT BETWEEN 0 AND 1000000";
        let writes = "SELECT SUM(writes) FROM altered";
        let statements = ["SELECT id FROM altered", INDEX_NAMES, COLUMN_NAMES, writes, copied];
        statements.into_iter().map(Statement::plain).collect()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        succeeded(reply)?;
        match position {
            0 if reply.rows()?.len() as i64 != self.rows => Err(format!("wrong rows: {reply:?}")),
            0 => Ok(()),
            1 => {
                self.audited = self.generations(reply)?;
                Ok(())
            }
            2 => {
                let columns = Self::generations_of_columns(reply)?;
                let expected: BTreeSet<u32> = self.audited.iter().copied().filter(|it| copies(*it)).collect();
                match columns == expected {
                    true => Ok(()),
                    false => Err(format!("the indexes of {:?} have the columns of {columns:?}", self.audited)),
                }
            }
            3 => {
                let found = reply.integers()?.first().and_then(|row| row.first().copied()).unwrap_or_default();
                match (self.written..=self.written + self.unknown).contains(&found) {
                    true => Ok(()),
                    false => Err(format!(
                        "{found} writes are in the table; {} succeeded, and {} may have",
                        self.written, self.unknown
                    )),
                }
            }
            _ if !reply.rows()?.is_empty() => Err(format!("a copy changed values: {reply:?}")),
            _ => Ok(()),
        }
    }
}
