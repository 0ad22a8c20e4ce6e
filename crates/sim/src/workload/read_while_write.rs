//! Families of rows that are always written together, with columns that are always equal, while other
//! sessions read them through every access path.
//!
//! The rows that a read returns reveal each anomaly:
//! - different columns in a row: the row was read half-written;
//! - different rows in a family: the read saw the middle of a transaction;
//! - a negative generation: the read returned values that were never committed;
//! - a generation lower than one acknowledged before the read: the read was stale, or a commit is lost;
//! - different generations in one REPEATABLE READ transaction: the read was not repeatable.

use junctor_kernel::{Duration, Random};

use super::{Counter, DEADLOCK, Step, Workload, changed, inserts, succeeded};
use crate::statement::{Cell, Reply, Statement, integer};

/// The workload `read_while_write`. Every second session owns a family and writes it, the others read.
#[derive(Debug)]
pub struct ReadWhileWrite {
    rows_per_family: i64,
    /// The generation of each family.
    families: Vec<Counter>,
    sessions: Vec<Session>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    work: Option<Work>,
}

#[derive(Debug)]
struct Work {
    family: usize,
    statements: Vec<(Statement, Expected)>,
    position: usize,
    /// The acknowledged generation when the first read was sent. A read must not return a lower one.
    floor: i64,
    /// The generation that the first read returned.
    seen: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Success,
    Changes(i64),
    /// The statement that makes the next generation visible, and the number of rows that this statement
    /// changes.
    Commit(i64),
    /// A read of rows of the family. Contains the number of rows that it must return.
    Family(i64),
}

impl ReadWhileWrite {
    /// Creates the workload with this number of sessions, rounds of each session, and total rows.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        let writers = sessions.div_ceil(2).max(1);
        Self {
            rows_per_family: (rows / writers as i64).max(2),
            families: vec![Counter::default(); writers],
            sessions: (0..sessions).map(|_| Session { rounds_left: rounds, work: None }).collect(),
        }
    }

    /// Every second family has a single row, which makes its writes single-partition transactions.
    fn ids(&self, family: usize) -> std::ops::Range<i64> {
        let first = family as i64 * self.rows_per_family;
        first..first + self.count(family)
    }

    fn count(&self, family: usize) -> i64 {
        if family % 2 == 1 { 1 } else { self.rows_per_family }
    }

    fn draw_write(&self, family: usize, random: &mut Random) -> Vec<(Statement, Expected)> {
        let generation = self.families[family].acknowledged() + 1;
        let rows = self.count(family);
        let by_family = |generation: i64| {
            let text = "UPDATE pairs SET a = ?, b = ?, c = ? WHERE family = ?";
            Statement::with(
                text,
                [generation.into(), generation.into(), payload(generation).into(), (family as i64).into()],
            )
        };
        let plain = |text: &str| (Statement::plain(text), Expected::Success);
        match random.below(4) {
            _ if rows == 1 && random.one_in(2) => {
                let text = "UPDATE pairs SET a = ?, b = ?, c = ? WHERE id = ?";
                let id = self.ids(family).start;
                let values = [generation.into(), generation.into(), payload(generation).into(), id.into()];
                let read_back = Statement::with("SELECT family, a, b, c FROM pairs WHERE id = ?", [id.into()]);
                vec![(Statement::with(text, values), Expected::Commit(1)), (read_back, Expected::Family(1))]
            }
            0 => vec![(by_family(generation), Expected::Commit(rows))],
            1 => {
                let never = -1 - generation;
                vec![plain("BEGIN"), (by_family(never), Expected::Changes(rows)), plain("ROLLBACK")]
            }
            2 => {
                let text = "UPDATE pairs SET a = a + 1, b = a, c = ? WHERE id BETWEEN ? AND ?";
                let (first, last) = (self.ids(family).start, self.ids(family).end - 1);
                let statement = Statement::with(text, [payload(generation).into(), first.into(), last.into()]);
                vec![plain("BEGIN"), (statement, Expected::Changes(rows)), (commit(), Expected::Commit(0))]
            }
            _ => {
                let mut statements = vec![plain("BEGIN")];
                for id in self.ids(family) {
                    let text = "UPDATE pairs SET a = ?, b = ?, c = ? WHERE id = ?";
                    let values = [generation.into(), generation.into(), payload(generation).into(), id.into()];
                    statements.push((Statement::with(text, values), Expected::Changes(1)));
                }
                statements.push((self.select(family, random), Expected::Family(rows)));
                statements.push((commit(), Expected::Commit(0)));
                statements
            }
        }
    }

    fn draw_read(&self, family: usize, random: &mut Random) -> Vec<(Statement, Expected)> {
        let rows = self.count(family);
        if random.one_in(3) {
            let id = self.ids(family).start + random.below(rows as u64) as i64;
            let point = Statement::with("SELECT family, a, b, c FROM pairs WHERE id = ?", [id.into()]);
            return vec![(point, Expected::Family(1))];
        }
        if random.one_in(2) {
            return vec![(self.select(family, random), Expected::Family(rows))];
        }
        let mut statements = vec![(Statement::plain("BEGIN"), Expected::Success)];
        for _ in 0..2 + random.below(2) {
            statements.push((self.select(family, random), Expected::Family(rows)));
        }
        statements.push((Statement::plain("ROLLBACK"), Expected::Success));
        statements
    }

    /// A read of a whole family through a random access path.
    fn select(&self, family: usize, random: &mut Random) -> Statement {
        let ids = self.ids(family);
        let columns = "SELECT family, a, b, c FROM pairs WHERE";
        match random.below(4) {
            0 => Statement::with(format!("{columns} family = ?"), [(family as i64).into()]),
            1 => Statement::with(format!("{columns} id BETWEEN ? AND ?"), [ids.start.into(), (ids.end - 1).into()]),
            2 => {
                let marks = vec!["?"; ids.clone().count()].join(", ");
                Statement::with(format!("{columns} id IN ({marks})"), ids.map(Into::into))
            }
            // No index supports this condition, so it scans every partition.
            _ => Statement::with(format!("{columns} family + 0 = ?"), [(family as i64).into()]),
        }
    }

    /// The generation in the rows of one statement. All rows must agree.
    fn check_rows(&self, family: usize, rows: &[Vec<Cell>], count: i64) -> Result<i64, String> {
        if rows.len() as i64 != count {
            return Err(format!("{} rows of family {family} instead of {count}", rows.len()));
        }
        let mut generation = None;
        for row in rows {
            let (of, a, b) = (integer(&row[0])?, integer(&row[1])?, integer(&row[2])?);
            if of != family as i64 || a != b || row[3].as_deref() != Some(payload(a).as_str()) {
                return Err(format!("a row of family {family} that was never written in this form: {row:?}"));
            }
            if *generation.get_or_insert(a) != a {
                return Err(format!("fractured read: family {family} returned {rows:?}"));
            }
        }
        generation.ok_or_else(|| format!("no row of family {family}"))
    }
}

fn commit() -> Statement {
    Statement::plain("COMMIT")
}

/// A string that encodes the generation and is long enough to be torn. In one of seven generations it is long
/// enough for an overflow page.
fn payload(generation: i64) -> String {
    let length = if generation.rem_euclid(7) == 3 { 9_000 } else { 20 + generation.rem_euclid(40) };
    format!("{generation}:{}", "x".repeat(length as usize))
}

impl Workload for ReadWhileWrite {
    fn name(&self) -> &'static str {
        "read_while_write"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![Statement::plain(
            "CREATE TABLE pairs (id INT NOT NULL, family INT NOT NULL, a BIGINT NOT NULL, b BIGINT NOT NULL, \
             c TEXT NOT NULL, PRIMARY KEY (id), KEY family_index (family)) PARTITION BY KEY (id) PARTITIONS 4",
        )];
        for family in 0..self.families.len() {
            statements
                .extend(inserts("pairs", self.ids(family), |id| format!("{id}, {family}, 0, 0, '{}'", payload(0))));
        }
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        if self.sessions[session].work.is_none() {
            if self.sessions[session].rounds_left == 0 {
                return Step::Done;
            }
            if random.one_in(8) {
                return Step::Pause(Duration::from_micros(random.below(2_000)));
            }
            self.sessions[session].rounds_left -= 1;
            let writes = session.is_multiple_of(2);
            let family = if writes { session / 2 } else { random.below(self.families.len() as u64) as usize };
            // A generation with an unknown outcome cannot be increased, so the session reads instead.
            let writes = writes && self.families[family].is_certain();
            let statements = if writes { self.draw_write(family, random) } else { self.draw_read(family, random) };
            self.sessions[session].work = Some(Work { family, statements, position: 0, floor: 0, seen: None });
        }
        let Some(work) = &mut self.sessions[session].work else { return Step::Done };
        let (statement, expected) = work.statements[work.position].clone();
        match expected {
            Expected::Commit(_) => self.families[work.family].attempt(),
            Expected::Family(_) if work.seen.is_none() => work.floor = self.families[work.family].acknowledged(),
            _ => {}
        }
        Step::Run(statement)
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let Some(mut work) = self.sessions[session].work.take() else {
            return Err("an answer without a statement".to_owned());
        };
        let expected = work.statements[work.position].1;
        if reply.errno() == DEADLOCK {
            if let Expected::Commit(_) = expected {
                self.families[work.family].withdraw();
            }
            return Ok(());
        }
        succeeded(reply)?;
        match expected {
            Expected::Success => {}
            Expected::Changes(rows) => changed(reply, rows as u64)?,
            Expected::Commit(rows) => {
                changed(reply, rows as u64)?;
                self.families[work.family].acknowledge();
            }
            Expected::Family(count) => {
                let generation = self.check_rows(work.family, reply.rows()?, count)?;
                let own = work.statements.iter().any(|(_, expected)| matches!(expected, Expected::Changes(_)));
                let family = &self.families[work.family];
                if own {
                    let right = family.acknowledged() + 1;
                    if generation != right {
                        return Err(format!("generation {generation} instead of its own write {right}"));
                    }
                } else {
                    family.check(&format!("the generation of family {}", work.family), generation, work.floor)?;
                }
                if *work.seen.get_or_insert(generation) != generation {
                    return Err(format!("non-repeatable read: generation {:?}, then {generation}", work.seen));
                }
            }
        }
        work.position += 1;
        if work.position < work.statements.len() {
            self.sessions[session].work = Some(work);
        }
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        self.sessions[session].work = None;
    }

    fn audit(&self) -> Vec<Statement> {
        let text = "SELECT family, a, b, c FROM pairs WHERE family = ?";
        (0..self.families.len() as i64).map(|family| Statement::with(text, [family.into()])).collect()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        let generation = self.check_rows(position, reply.rows()?, self.count(position))?;
        let family = &self.families[position];
        family.check(&format!("the generation of family {position}"), generation, family.acknowledged())
    }
}
