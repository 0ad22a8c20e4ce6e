//! Changes of indexes, tables and table names while rows are written and read. Every read returns each row
//! once through any access path, a new index contains every row, and a table keeps its definition for a
//! transaction that has used it.

use std::collections::BTreeSet;

use junctor_kernel::Random;

use super::{DEADLOCK, Step, Workload, inserts, succeeded};
use crate::statement::{Reply, Statement};

/// MySQL's error for a table that changed after the transaction first used it.
const TABLE_CHANGED: u16 = 1412;

/// MySQL's error for a lock wait timeout.
const LOCK_WAIT: u16 = 1205;

/// The workload `schema_change`. The first session changes the schema; of the others, every second one
/// writes.
#[derive(Debug)]
pub struct SchemaChange {
    rows: i64,
    sessions: Vec<Session>,
    /// Part of the names of indexes and tables. It grows after a connection loss, because the old change may
    /// still take effect.
    generation: u32,
    /// The source of distinct tags.
    next_tag: i64,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    statements: Vec<(Statement, Expected)>,
    position: usize,
    seen: Option<BTreeSet<(i64, i64)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Success,
    /// Every row of the table, once.
    All,
    /// One number.
    Count(i64),
}

impl SchemaChange {
    /// Creates the workload with this number of sessions, rounds of each session, and rows.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        let session = |_| Session { rounds_left: rounds, statements: Vec::new(), position: 0, seen: None };
        let rows = rows.max(2);
        Self { rows, sessions: (0..sessions).map(session).collect(), generation: 0, next_tag: 1_000_000 }
    }

    /// Creates something, reads it, and drops it.
    fn draw_change(&self, random: &mut Random) -> Vec<(Statement, Expected)> {
        let name = self.generation;
        let plain = |text: String| (Statement::plain(text), Expected::Success);
        match random.below(5) {
            4 => vec![
                plain(format!("ALTER TABLE shaped ADD INDEX v_{name} (v), ADD UNIQUE KEY tag_{name} (tag)")),
                select_all(random),
                plain(format!(
                    "ALTER TABLE shaped DROP INDEX v_{name}, ADD INDEX v_{name} (v, id), DROP INDEX tag_{name}"
                )),
                select_all(random),
                plain(format!("ALTER TABLE shaped RENAME INDEX v_{name} TO w_{name}, ADD UNIQUE KEY (id, v, tag)")),
                plain(format!("ALTER TABLE shaped DROP INDEX w_{name}, DROP INDEX id")),
            ],
            0 => vec![
                plain(format!("RENAME TABLE shaped TO away_{name}, twin TO shaped, away_{name} TO twin")),
                select_all(random),
            ],
            1 => vec![
                plain(format!("CREATE INDEX v_{name} ON shaped (v)")),
                select_all(random),
                plain(format!("DROP INDEX v_{name} ON shaped")),
            ],
            2 => vec![
                plain(format!("CREATE UNIQUE INDEX tag_{name} ON shaped (tag)")),
                (Statement::plain("SELECT id, v, same FROM shaped WHERE tag > 0"), Expected::All),
                plain(format!("DROP INDEX tag_{name} ON shaped")),
            ],
            _ => {
                let count = Statement::plain(format!("SELECT COUNT(*) FROM passing_{name}"));
                vec![
                    plain(format!("CREATE TABLE passing_{name} (id INT PRIMARY KEY, u INT, UNIQUE KEY u_index (u))")),
                    plain(format!("INSERT INTO passing_{name} VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)")),
                    (count.clone(), Expected::Count(5)),
                    plain(format!("TRUNCATE TABLE passing_{name}")),
                    (count, Expected::Count(0)),
                    plain(format!("INSERT INTO passing_{name} VALUES (1, 1)")),
                    plain(format!("DROP TABLE passing_{name}")),
                ]
            }
        }
    }

    fn draw_write(&mut self, random: &mut Random) -> Vec<(Statement, Expected)> {
        let id = random.below(self.rows as u64) as i64;
        let v = random.below(1_000) as i64;
        self.next_tag += 1;
        let text = "UPDATE shaped SET v = ?, same = ?, tag = ? WHERE id = ?";
        let update = Statement::with(text, [v.into(), v.into(), self.next_tag.into(), id.into()]);
        let plain = |text: &str| (Statement::plain(text), Expected::Success);
        match random.below(5) {
            // Copies and ordered writes keep the two columns of each row equal, and each tag with its row.
            0 => {
                let texts = [
                    "INSERT INTO twin SELECT * FROM shaped ON DUPLICATE KEY UPDATE v = VALUES(v), same = VALUES(same)",
                    "REPLACE INTO twin SELECT * FROM shaped",
                    "INSERT IGNORE INTO shaped SELECT * FROM twin",
                    "REPLACE INTO shaped SELECT * FROM shaped WHERE v > 500",
                    "UPDATE shaped SET v = v + 1, same = same + 1 ORDER BY v DESC LIMIT 5",
                ];
                vec![plain(texts[random.below(texts.len() as u64) as usize])]
            }
            1 => {
                let end = if random.one_in(2) { "COMMIT" } else { "ROLLBACK" };
                let other =
                    Statement::with("UPDATE twin SET v = ?, same = ? WHERE id = ?", [v.into(), v.into(), id.into()]);
                let mut updates = vec![(update, Expected::Success), (other, Expected::Success)];
                if random.one_in(2) {
                    updates.reverse();
                }
                let [first, second] = [updates.remove(0), updates.remove(0)];
                vec![plain("BEGIN"), first, second, plain(end)]
            }
            _ => vec![(update, Expected::Success)],
        }
    }

    fn draw_read(&self, random: &mut Random) -> Vec<(Statement, Expected)> {
        let plain = |text: &str| (Statement::plain(text), Expected::Success);
        match random.below(3) {
            0 => vec![plain("BEGIN"), select_all(random), select_all(random), plain("COMMIT")],
            _ => vec![select_all(random)],
        }
    }

    fn check(&self, rows: &[Vec<i64>]) -> Result<BTreeSet<(i64, i64)>, String> {
        let mut met = BTreeSet::new();
        for row in rows {
            if row[1] != row[2] {
                return Err(format!("row {} was found by {} but holds {}", row[0], row[1], row[2]));
            }
            met.insert((row[0], row[1]));
        }
        let ids: Vec<i64> = met.iter().map(|&(id, _)| id).collect();
        match ids.iter().copied().eq(0..self.rows) && rows.len() as i64 == self.rows {
            true => Ok(met),
            false => Err(format!("{} rows with the ids {ids:?}", rows.len())),
        }
    }
}

/// A read of every row. It uses an index on v if there is one.
fn select_all(random: &mut Random) -> (Statement, Expected) {
    let order = ["WHERE v >= 0", "ORDER BY v", "WHERE v < 5000 ORDER BY v DESC", ""][random.below(4) as usize];
    (Statement::plain(format!("SELECT id, v, same FROM shaped {order}")), Expected::All)
}

impl Workload for SchemaChange {
    fn name(&self) -> &'static str {
        "schema_change"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = Vec::new();
        for name in ["shaped", "twin"] {
            statements.push(Statement::plain(format!(
                "CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, v INT NOT NULL, same INT NOT NULL, tag BIGINT NOT NULL) \
                 PARTITION BY KEY (id) PARTITIONS 3",
            )));
            statements.extend(inserts(name, 0..self.rows, |id| format!("{id}, {0}, {0}, {1}", id * 7 % 100, id + 1)));
        }
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        if self.sessions[session].position >= self.sessions[session].statements.len() {
            if self.sessions[session].rounds_left == 0 {
                return Step::Done;
            }
            let statements = match session {
                0 => self.draw_change(random),
                session if session % 2 == 1 => self.draw_write(random),
                _ => self.draw_read(random),
            };
            let state = &mut self.sessions[session];
            state.rounds_left -= 1;
            (state.statements, state.position, state.seen) = (statements, 0, None);
        }
        let state = &self.sessions[session];
        Step::Run(state.statements[state.position].0.clone())
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let (statement, expected) = self.sessions[session].statements[self.sessions[session].position].clone();
        if session == 0 && self.generation > 0 && reply.errno() == TABLE_CHANGED {
            // A change of the lost connection took effect meanwhile.
            self.on_closed(session);
            return Ok(());
        }
        if session > 0 && matches!(reply.errno(), DEADLOCK | LOCK_WAIT) {
            let in_transaction = self.sessions[session].statements.len() > 1;
            let state = &mut self.sessions[session];
            state.statements.clear();
            state.position = 0;
            if in_transaction && reply.errno() == LOCK_WAIT {
                // The timeout undid only the statement, so end the transaction.
                state.statements.push((Statement::plain("ROLLBACK"), Expected::Success));
            }
            return Ok(());
        }
        succeeded(reply).map_err(|fault| format!("{fault} from {}", statement.text))?;
        match expected {
            Expected::Success => {}
            Expected::All => {
                let met = self.check(&reply.integers()?)?;
                let state = &mut self.sessions[session];
                if session > 0 && *state.seen.get_or_insert_with(|| met.clone()) != met {
                    return Err(format!("non-repeatable read: {:?}, then {met:?}", state.seen));
                }
            }
            Expected::Count(count) => {
                if reply.integers()? != [[count]] {
                    return Err(format!("{reply:?} instead of {count}"));
                }
            }
        }
        self.sessions[session].position += 1;
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        let state = &mut self.sessions[session];
        state.statements.clear();
        state.position = 0;
        self.generation += u32::from(session == 0);
    }

    fn audit(&self) -> Vec<Statement> {
        vec![Statement::plain("SELECT id, v, same FROM shaped"), Statement::plain("SELECT id, v, same FROM twin")]
    }

    fn on_audit(&mut self, _position: usize, reply: &Reply) -> Result<(), String> {
        self.check(&reply.integers()?).map(|_| ())
    }
}
