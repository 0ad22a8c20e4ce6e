//! Columns that ALTER TABLE adds and drops without touching the rows, while sessions write. Rows from before
//! the change have the default of each column, writes of others keep its values, and a restart keeps both.
//! Some of the columns are virtual: each read finds the value of their expression. A statement that replaces
//! a column does it whole or not at all.

use std::collections::BTreeSet;

use junctor_kernel::Random;

use super::{DEADLOCK, Step, Workload, inserts, succeeded};
use crate::statement::{Reply, Statement};

/// MySQL's error for a lock wait timeout.
const LOCK_WAIT: u16 = 1205;
/// MySQL's error for a column that does not exist: its drop took effect although its connection was lost.
const NO_COLUMN: u16 = 1091;
/// Columns with values of their own from which on the oldest may be dropped.
const COLUMNS_KEPT: usize = 3;
/// From this number on it is dropped. All of them together are shorter than the limit of a row.
const COLUMNS_MAX: usize = 6;
/// Rows that come and go.
const PASSING_ROWS: u64 = 8;

/// The workload `added_columns`. The first session adds and drops columns; of the others, every third one
/// reads.
#[derive(Debug)]
pub struct AddedColumns {
    rows: i64,
    rounds_left: Vec<u32>,
    altering: Altering,
    generation: u32,
    /// The columns that exist and have all of their values.
    filled: BTreeSet<u32>,
    /// The old and the new column of replacements whose connection was lost: exactly one of the two exists.
    unclear: Vec<(u32, u32)>,
    /// For each session whether it waits for the reply to a counted write.
    is_writing: Vec<bool>,
    /// Number of writes that succeeded.
    written: i64,
    /// Number of writes whose connection was lost. They may have succeeded.
    unknown: i64,
}

/// The statement under way of the session that alters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Altering {
    Idle,
    Adding(u32),
    /// Every third row gets a value of its own.
    Filling(u32),
    Checking(u32),
    Dropping(u32),
    /// The first column goes and the second one comes.
    Replacing(u32, u32),
    /// The rows are copied, which frees the values of dropped columns.
    Copying,
}

impl AddedColumns {
    /// Creates the workload with this number of sessions, rounds of each session, and rows.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        Self {
            rows: rows.max(3),
            rounds_left: vec![rounds; sessions],
            altering: Altering::Idle,
            generation: 0,
            filled: BTreeSet::new(),
            unclear: Vec::new(),
            is_writing: vec![false; sessions],
            written: 0,
            unknown: 0,
        }
    }

    fn next_change(&mut self, random: &mut Random) -> Statement {
        if self.altering == Altering::Idle {
            self.rounds_left[0] -= 1;
            let oldest = self.filled.first().copied().filter(|_| self.filled.len() >= COLUMNS_KEPT);
            self.altering = match oldest {
                Some(oldest) if self.filled.len() >= COLUMNS_MAX || random.one_in(2) => {
                    // Its connection may be lost while it takes effect.
                    self.filled.remove(&oldest);
                    match random.one_in(2) {
                        true => Altering::Dropping(oldest),
                        false => {
                            self.generation += 1;
                            Altering::Replacing(oldest, self.generation)
                        }
                    }
                }
                _ if random.one_in(6) => Altering::Copying,
                _ => {
                    self.generation += 1;
                    Altering::Adding(self.generation)
                }
            };
        }
        Statement::plain(match self.altering {
            Altering::Idle => unreachable!("a change has begun"),
            Altering::Adding(column) => format!("ALTER TABLE grown {}, ALGORITHM=INSTANT", addition(column)),
            Altering::Filling(column) => {
                // Rows with several long values have overflow pages.
                let padding = if is_text(column) { "REPEAT('x', 2900)" } else { "''" };
                format!("UPDATE grown SET c_{column} = CONCAT(id + 1000, {padding}) WHERE id % 3 = 1")
            }
            Altering::Checking(column) => wrong_values(column),
            Altering::Dropping(column) => format!("ALTER TABLE grown DROP COLUMN c_{column}"),
            Altering::Replacing(old, new) => format!("ALTER TABLE grown DROP COLUMN c_{old}, {}", addition(new)),
            Altering::Copying => "ALTER TABLE grown FORCE".to_owned(),
        })
    }

    fn on_change(&mut self, reply: &Reply) -> Result<(), String> {
        let errno = reply.errno();
        self.altering = match self.altering {
            state if matches!(errno, LOCK_WAIT | DEADLOCK) => state,
            Altering::Dropping(_) if matches!(errno, 0 | NO_COLUMN) => Altering::Idle,
            Altering::Copying if errno == 0 => Altering::Idle,
            Altering::Adding(column) | Altering::Replacing(_, column) if errno == 0 && is_virtual(column) => {
                Altering::Checking(column)
            }
            Altering::Adding(column) | Altering::Replacing(_, column) if errno == 0 => Altering::Filling(column),
            Altering::Filling(column) if errno == 0 => Altering::Checking(column),
            Altering::Checking(column) if errno == 0 => {
                expect_no_wrong_values(column, reply)?;
                self.filled.insert(column);
                Altering::Idle
            }
            state => return Err(format!("{state:?} failed: {reply:?}")),
        };
        Ok(())
    }

    fn draw_write(&self, random: &mut Random) -> (Statement, bool) {
        let passing = 3 * (self.rows + random.below(PASSING_ROWS) as i64);
        match random.below(4) {
            0 => {
                let text = "INSERT INTO grown (id, writes) VALUES (?, 0) ON DUPLICATE KEY UPDATE writes = writes + 1";
                (Statement::with(text, [passing.into()]), false)
            }
            1 => (Statement::with("DELETE FROM grown WHERE id = ?", [passing.into()]), false),
            _ => {
                let id = random.below(self.rows as u64) as i64;
                (Statement::with("UPDATE grown SET writes = writes + 1 WHERE id = ?", [id.into()]), true)
            }
        }
    }
}

fn is_text(column: u32) -> bool {
    column % 2 == 1
}

fn is_virtual(column: u32) -> bool {
    column % 4 == 2
}

fn addition(column: u32) -> String {
    let place = ["", " FIRST", " AFTER id"][column as usize % 3];
    if is_virtual(column) {
        return format!("ADD COLUMN c_{column} BIGINT AS ({}) VIRTUAL{place}", expression(column));
    }
    let column_type = if is_text(column) { "VARCHAR(3000) CHARACTER SET latin1" } else { "BIGINT" };
    format!("ADD COLUMN c_{column} {column_type} NOT NULL DEFAULT '{column}'{place}")
}

/// The expression of a virtual column.
fn expression(column: u32) -> String {
    format!("id * 3 + writes + {column}")
}

/// The number of rows without their value in an added column.
fn wrong_values(column: u32) -> String {
    if is_virtual(column) {
        return format!("SELECT COUNT(*) FROM grown WHERE NOT (c_{column} <=> {})", expression(column));
    }
    let value = format!("SUBSTRING_INDEX(c_{column}, 'x', 1)");
    format!("SELECT COUNT(*) FROM grown WHERE {value} <> IF(id % 3 = 1, id + 1000, {column})")
}

fn expect_no_wrong_values(column: u32, reply: &Reply) -> Result<(), String> {
    match reply.integers()? == [[0]] {
        true => Ok(()),
        false => Err(format!("rows have wrong values of column {column}: {reply:?}")),
    }
}

impl Workload for AddedColumns {
    fn name(&self) -> &'static str {
        "added_columns"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![Statement::plain(
            "CREATE TABLE grown (id INT PRIMARY KEY, note VARCHAR(20), writes INT NOT NULL, KEY (writes)) \
             PARTITION BY KEY (id) PARTITIONS 3",
        )];
        statements.extend(inserts("grown", 0..self.rows, |id| format!("{id}, 'row {id}', 0")));
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
        if session == 0 {
            return Step::Run(self.next_change(random));
        }
        self.rounds_left[session] -= 1;
        if session.is_multiple_of(3) {
            return Step::Run(Statement::plain(format!(
                "SELECT id FROM grown WHERE writes >= 0 AND id < {}",
                self.rows
            )));
        }
        let (statement, is_counted) = self.draw_write(random);
        self.is_writing[session] = is_counted;
        Step::Run(statement)
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let errno = reply.errno();
        self.written += i64::from(std::mem::take(&mut self.is_writing[session]) && errno == 0);
        match session {
            0 => self.on_change(reply),
            _ if matches!(errno, DEADLOCK | LOCK_WAIT) => Ok(()),
            _ if session.is_multiple_of(3) => match reply.rows()?.len() as i64 == self.rows {
                true => Ok(()),
                false => Err(format!("wrong rows: {reply:?}")),
            },
            _ => succeeded(reply),
        }
    }

    fn on_closed(&mut self, session: usize) {
        self.unknown += i64::from(std::mem::take(&mut self.is_writing[session]));
        if session != 0 {
            return;
        }
        match self.altering {
            // It is unknown whether the column exists.
            Altering::Adding(_) | Altering::Dropping(_) | Altering::Copying => self.altering = Altering::Idle,
            Altering::Replacing(old, new) => {
                self.unclear.push((old, new));
                self.altering = Altering::Idle;
            }
            Altering::Idle | Altering::Filling(_) | Altering::Checking(_) => {}
        }
    }

    fn recheck(&self) -> Vec<Statement> {
        self.audit()
    }

    fn on_recheck(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        self.on_audit(position, reply)
    }

    fn audit(&self) -> Vec<Statement> {
        let rows = format!("SELECT id FROM grown WHERE id < {} AND note = CONCAT('row ', id)", self.rows);
        let writes = format!("SELECT SUM(writes) FROM grown WHERE id < {}", self.rows);
        let columns = self.filled.iter().map(|column| wrong_values(*column));
        let replacements = self.unclear.iter().map(|(old, new)| {
            format!(
                "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_NAME = 'grown' AND COLUMN_NAME IN \
                 ('c_{old}', 'c_{new}')"
            )
        });
        [rows, writes].into_iter().chain(columns).chain(replacements).map(Statement::plain).collect()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        succeeded(reply)?;
        match position {
            0 if reply.rows()?.len() as i64 != self.rows => Err(format!("wrong rows: {reply:?}")),
            0 => Ok(()),
            1 => {
                let found = reply.integers()?.first().and_then(|row| row.first().copied()).unwrap_or_default();
                match (self.written..=self.written + self.unknown).contains(&found) {
                    true => Ok(()),
                    false => Err(format!(
                        "{found} writes are in the table; {} succeeded, and {} may have",
                        self.written, self.unknown
                    )),
                }
            }
            _ => match self.filled.iter().nth(position - 2) {
                Some(column) => expect_no_wrong_values(*column, reply),
                None if reply.integers()? == [[1]] => Ok(()),
                None => Err(format!("a column was replaced in part: {reply:?}")),
            },
        }
    }
}
