//! Rows whose indexed column changes while other sessions scan the index. Each row is returned exactly once,
//! with the key that the row itself contains, in key order.

use std::collections::BTreeSet;

use junctor_kernel::{Duration, Random};

use super::{DEADLOCK, Step, Workload, inserts, succeeded};
use crate::statement::{Reply, Statement};

/// Keys are below this value.
const KEY_MAX: i64 = 1_000;

/// The workload `index_while_update`. Every second session updates rows and inserts short-lived ones, the
/// others read.
#[derive(Debug)]
pub struct IndexWhileUpdate {
    /// Rows with ids below this number always exist.
    rows: i64,
    sessions: Vec<Session>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    work: Option<Work>,
    /// The id of the session's short-lived row. It changes after a connection loss, because the old statement
    /// may still take effect.
    own: i64,
}

#[derive(Debug)]
struct Work {
    statements: Vec<(Statement, Expected)>,
    position: usize,
    /// The (id, key) pairs that the first full read of a transaction returned.
    seen: Option<BTreeSet<(i64, i64)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expected {
    Success,
    /// At most this number of rows is changed.
    ChangesAtMost(u64),
    /// All rows, each once, in key order if `ordered`, descending if `descending`.
    All {
        ordered: bool,
        descending: bool,
    },
    /// The rows with keys in this range.
    Range(i64, i64),
    /// These rows, each once.
    Listed(Vec<i64>),
}

impl IndexWhileUpdate {
    /// Creates the workload with this number of sessions, rounds of each session, and permanent rows.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        let rows = rows.max(2);
        let session = |session| Session { rounds_left: rounds, work: None, own: rows + session as i64 };
        Self { rows, sessions: (0..sessions).map(session).collect() }
    }

    fn draw_write(&self, session: usize, random: &mut Random) -> Vec<(Statement, Expected)> {
        let id = random.below(self.rows as u64) as i64;
        let key = random.below(KEY_MAX as u64) as i64;
        let plain = |text: &str| (Statement::plain(text), Expected::Success);
        let update = |id: i64, key: i64| {
            let text = "UPDATE moving SET k = ?, same = ? WHERE id = ?";
            (Statement::with(text, [key.into(), key.into(), id.into()]), Expected::ChangesAtMost(1))
        };
        match random.below(5) {
            0 | 1 => vec![update(id, key)],
            2 => {
                let other = random.below(self.rows as u64) as i64;
                let end = if random.one_in(3) { "ROLLBACK" } else { "COMMIT" };
                vec![plain("BEGIN"), update(id, key), update(id, (key + 500) % KEY_MAX), update(other, key), plain(end)]
            }
            3 => {
                let text = "UPDATE moving SET k = k + 1, same = same + 1 WHERE k BETWEEN ? AND ? AND k < ?";
                let values = [key.into(), (key + 100).into(), (KEY_MAX - 1).into()];
                vec![(Statement::with(text, values), Expected::ChangesAtMost(u64::MAX))]
            }
            _ => {
                let own = self.sessions[session].own;
                let insert = Statement::with(
                    "INSERT INTO moving VALUES (?, ?, ?, 'short')",
                    [own.into(), key.into(), key.into()],
                );
                let delete = Statement::with("DELETE FROM moving WHERE id = ?", [own.into()]);
                let delete = (delete, Expected::ChangesAtMost(1));
                vec![delete.clone(), (insert, Expected::ChangesAtMost(1)), delete]
            }
        }
    }

    fn draw_read(&self, random: &mut Random) -> Vec<(Statement, Expected)> {
        if !random.one_in(3) {
            return vec![self.select(random)];
        }
        let plain = |text: &str| (Statement::plain(text), Expected::Success);
        let mut statements = vec![plain("BEGIN")];
        for _ in 0..2 + random.below(2) {
            statements.push(select_all(random));
        }
        statements.push(plain("COMMIT"));
        statements
    }

    fn select(&self, random: &mut Random) -> (Statement, Expected) {
        match random.below(3) {
            0 => select_all(random),
            1 => {
                let low = random.below(KEY_MAX as u64) as i64;
                let high = low + random.below(300) as i64;
                let text = "SELECT id, k, same FROM moving WHERE k BETWEEN ? AND ?";
                (Statement::with(text, [low.into(), high.into()]), Expected::Range(low, high))
            }
            _ => {
                let mut ids: Vec<i64> = (0..self.rows).filter(|_| random.one_in(2)).collect();
                ids.push(random.below(self.rows as u64) as i64);
                let marks = vec!["?"; ids.len()].join(", ");
                let text = format!("SELECT id, k, same FROM moving WHERE id IN ({marks})");
                let statement = Statement::with(text, ids.iter().map(|&id| id.into()));
                ids.sort_unstable();
                ids.dedup();
                (statement, Expected::Listed(ids))
            }
        }
    }

    fn check(&self, expected: &Expected, rows: &[Vec<i64>]) -> Result<BTreeSet<(i64, i64)>, String> {
        let mut seen = BTreeSet::new();
        for row in rows {
            let (id, key, same) = (row[0], row[1], row[2]);
            if key != same {
                return Err(format!("row {id} was found by key {key} but holds {same}"));
            }
            if seen.iter().any(|&(other, _)| other == id) {
                return Err(format!("row {id} was returned twice"));
            }
            seen.insert((id, key));
        }
        match expected {
            Expected::All { ordered, descending } => {
                let step =
                    |pair: &[Vec<i64>]| if *descending { pair[0][1] >= pair[1][1] } else { pair[0][1] <= pair[1][1] };
                if *ordered && !rows.windows(2).all(step) {
                    return Err(format!("not in key order: {rows:?}"));
                }
                self.check_complete(seen.iter().map(|&(id, _)| id), 0..self.rows)?;
            }
            Expected::Range(low, high) => {
                if let Some((id, key)) = seen.iter().find(|(_, key)| !(low..=high).contains(&key)) {
                    return Err(format!("row {id} has key {key}, outside {low} to {high}"));
                }
            }
            Expected::Listed(ids) => {
                if !seen.iter().map(|&(id, _)| id).eq(ids.iter().copied()) {
                    return Err(format!("a read of {ids:?} returned {seen:?}"));
                }
            }
            Expected::Success | Expected::ChangesAtMost(_) => {}
        }
        Ok(seen)
    }

    fn check_complete(&self, seen: impl Iterator<Item = i64>, wanted: std::ops::Range<i64>) -> Result<(), String> {
        let seen: BTreeSet<i64> = seen.collect();
        match wanted.clone().find(|id| !seen.contains(id)) {
            Some(id) => Err(format!("row {id} was missed")),
            None => Ok(()),
        }
    }
}

/// A read of every row through a random access path.
fn select_all(random: &mut Random) -> (Statement, Expected) {
    let (order, ordered, descending) = match random.below(4) {
        0 => ("", false, false),
        1 => (" WHERE k >= 0", false, false),
        2 => (" ORDER BY k", true, false),
        _ => (" WHERE k >= 0 ORDER BY k DESC", true, true),
    };
    (Statement::plain(format!("SELECT id, k, same FROM moving{order}")), Expected::All { ordered, descending })
}

impl Workload for IndexWhileUpdate {
    fn name(&self) -> &'static str {
        "index_while_update"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![Statement::plain(
            "CREATE TABLE moving (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, same INT NOT NULL, \
             pad VARCHAR(60) NOT NULL, KEY k_index (k)) PARTITION BY KEY (id) PARTITIONS 3",
        )];
        let key = |id: i64| id * 37 % KEY_MAX;
        statements.extend(inserts("moving", 0..self.rows, |id| format!("{id}, {0}, {0}, 'row {id}'", key(id))));
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
            let statements = if writes { self.draw_write(session, random) } else { self.draw_read(random) };
            self.sessions[session].work = Some(Work { statements, position: 0, seen: None });
        }
        match &self.sessions[session].work {
            Some(work) => Step::Run(work.statements[work.position].0.clone()),
            None => Step::Done,
        }
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let Some(mut work) = self.sessions[session].work.take() else {
            return Err("an answer without a statement".to_owned());
        };
        if reply.errno() == DEADLOCK {
            return Ok(());
        }
        succeeded(reply)?;
        let expected = &work.statements[work.position].1;
        match expected {
            Expected::Success => {}
            Expected::ChangesAtMost(most) if reply.affected_rows()? <= *most => {}
            Expected::ChangesAtMost(most) => return Err(format!("more than {most} rows were changed: {reply:?}")),
            expected => {
                let seen = self.check(expected, &reply.integers()?)?;
                if *work.seen.get_or_insert_with(|| seen.clone()) != seen {
                    return Err(format!("non-repeatable read: {:?}, then {seen:?}", work.seen));
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
        let step = self.sessions.len() as i64;
        self.sessions[session].work = None;
        self.sessions[session].own += step;
    }

    fn audit(&self) -> Vec<Statement> {
        let columns = "SELECT id, k, same FROM moving";
        vec![Statement::plain(format!("{columns} ORDER BY k")), Statement::plain(format!("{columns} WHERE id >= 0"))]
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        let expected = Expected::All { ordered: position == 0, descending: false };
        self.check(&expected, &reply.integers()?).map(|_| ())
    }
}
