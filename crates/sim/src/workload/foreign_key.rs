//! Sessions change parents, children and their keys concurrently. No snapshot may show a child without its
//! parent.

use std::collections::BTreeSet;

use junctor_kernel::Random;

use super::{DEADLOCK, DUPLICATE, Step, Workload, inserts, succeeded};
use crate::statement::{Reply, Statement};

/// MySQL's error for a lock wait timeout.
const LOCK_WAIT: u16 = 1205;
/// MySQL's errors for a parent that has children, and for a child without a parent.
const HAS_CHILDREN: u16 = 1451;
const NO_PARENT: u16 = 1452;

/// The child tables: name, referenced column of the parent, and referential actions.
const CHILDREN: [(&str, &str, &str); 4] = [
    ("child_gone", "id", "ON DELETE CASCADE ON UPDATE CASCADE"),
    ("child_null", "id", "ON DELETE SET NULL ON UPDATE SET NULL"),
    ("child_kept", "id", "ON DELETE RESTRICT"),
    ("child_code", "code", "ON DELETE CASCADE ON UPDATE CASCADE"),
];

/// The foreign key with an index that the second session adds to and drops from `child_bare`.
const ADD_KEY: &str = "ALTER TABLE child_bare ADD UNIQUE KEY bare_index (id, pid), ADD CONSTRAINT bare FOREIGN KEY (pid) REFERENCES \
                       parent (id) ON DELETE CASCADE ON UPDATE CASCADE";
const DROP_KEY: &str = "ALTER TABLE child_bare DROP FOREIGN KEY bare, DROP INDEX bare_index";

/// The workload `foreign_key`. The first session reads, the second adds and drops a foreign key, the others
/// write.
#[derive(Debug)]
pub struct ForeignKey {
    rows: i64,
    sessions: Vec<Session>,
    next_id: i64,
    /// The values that the audit has read: ids of parents, codes of parents, ids of tree nodes.
    audited: [BTreeSet<i64>; 3],
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    statements: Vec<Statement>,
    position: usize,
    /// The values that the current transaction has read: ids of parents, codes of parents, ids of tree nodes.
    seen: [BTreeSet<i64>; 3],
}

impl ForeignKey {
    /// Creates the workload with this number of sessions, rounds of each session, and parents.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        let session =
            |_| Session { rounds_left: rounds, statements: Vec::new(), position: 0, seen: Default::default() };
        let rows = rows.max(4);
        Self { rows, sessions: (0..sessions).map(session).collect(), next_id: 1_000, audited: Default::default() }
    }

    fn draw_write(&mut self, random: &mut Random) -> Statement {
        self.next_id += 1;
        let new = self.next_id;
        let parent = random.below(self.rows as u64) as i64;
        let (child, column, _) = CHILDREN[random.below(CHILDREN.len() as u64) as usize];
        let named = if column == "code" { parent + 100 } else { parent };
        if random.one_in(3) {
            return self.draw_compound(random);
        }
        match random.below(13) {
            10 | 11 => {
                let orphan = parent + 100 * i64::from(random.one_in(4));
                Statement::with("INSERT INTO child_bare VALUES (?, ?)", [new.into(), orphan.into()])
            }
            12 => Statement::with("UPDATE child_bare SET id = id + 1 WHERE pid = ?", [parent.into()]),
            0 | 1 => Statement::with(format!("INSERT INTO {child} VALUES (?, ?)"), [new.into(), named.into()]),
            2 => Statement::with(
                format!("INSERT INTO {child} VALUES (?, ?), (?, ?)"),
                [new.into(), named.into(), (-new).into(), (named + 1).into()],
            ),
            3 => {
                Statement::with(format!("UPDATE {child} SET pid = ? WHERE pid = ?"), [named.into(), (named + 1).into()])
            }
            4 => Statement::with("INSERT INTO parent VALUES (?, ?)", [parent.into(), (parent + 100).into()]),
            5 => Statement::with("DELETE FROM parent WHERE id = ?", [parent.into()]),
            6 => Statement::with("UPDATE parent SET id = ? WHERE id = ?", [(parent + 1).into(), parent.into()]),
            7 => Statement::with("UPDATE parent SET code = code + 1 WHERE id = ?", [parent.into()]),
            8 => Statement::with("INSERT INTO tree VALUES (?, ?)", [new.into(), random_node(random).into()]),
            _ => Statement::with("DELETE FROM tree WHERE id = ?", [random_node(random).into()]),
        }
    }

    /// A compound write: an upsert, a copy, or a write with ORDER BY and LIMIT.
    fn draw_compound(&mut self, random: &mut Random) -> Statement {
        self.next_id += 1;
        let parent = random.below(self.rows as u64) as i64;
        let (child, column, _) = CHILDREN[random.below(CHILDREN.len() as u64) as usize];
        let named = if column == "code" { parent + 100 } else { parent };
        let mut known = || 1_000 + random.below(60) as i64;
        let (first, second) = (known(), known());
        let two = [first.into(), named.into(), second.into(), (named + 1).into()];
        let of_parent = [parent.into(), (parent + 100).into()];
        match random.below(10) {
            0 => Statement::with(
                format!("INSERT INTO {child} VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE pid = VALUES(pid)"),
                two,
            ),
            1 => Statement::with(format!("REPLACE INTO {child} VALUES (?, ?), (?, ?)"), two),
            2 => Statement::with(format!("INSERT IGNORE INTO {child} VALUES (?, ?), (?, ?)"), two),
            3 => Statement::with(
                format!("REPLACE INTO {child} SELECT id + ?, {column} FROM parent WHERE id < ?"),
                [first.into(), parent.into()],
            ),
            4 => Statement::with("REPLACE INTO parent VALUES (?, ?)", of_parent),
            5 => Statement::with("INSERT INTO parent VALUES (?, ?) ON DUPLICATE KEY UPDATE id = id + 1", of_parent),
            6 => Statement::plain("UPDATE parent SET code = code + 1 ORDER BY code DESC LIMIT 3"),
            7 => Statement::plain("DELETE FROM parent ORDER BY code DESC LIMIT 1"),
            8 => Statement::plain("DELETE IGNORE FROM parent ORDER BY id LIMIT 2"),
            _ => Statement::with("INSERT INTO tree VALUES (?, ?) ON DUPLICATE KEY UPDATE up = VALUES(up)", {
                [first.into(), random_node(random).into()]
            }),
        }
    }

    fn draw_writes(&mut self, random: &mut Random) -> Vec<Statement> {
        if random.one_in(2) {
            return vec![self.draw_write(random)];
        }
        let mut statements = vec![Statement::plain("BEGIN")];
        for _ in 0..1 + random.below(3) {
            statements.push(self.draw_write(random));
        }
        statements.push(Statement::plain(if random.one_in(3) { "ROLLBACK" } else { "COMMIT" }));
        statements
    }
}

/// A root, or a node that may exist.
fn random_node(random: &mut Random) -> i64 {
    if random.one_in(3) { random.below(4) as i64 } else { 1_000 + random.below(60) as i64 }
}

/// Adds the foreign key, checks that every child has its parent, and drops the key.
fn alterations() -> Vec<Statement> {
    let texts = [
        ADD_KEY,
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        "SELECT id FROM parent",
        "SELECT pid FROM child_bare WHERE pid IS NOT NULL",
        "COMMIT",
        DROP_KEY,
    ];
    texts.map(Statement::plain).into()
}

/// Checks the replies to two queries. Records the parents that the first query returns. Checks that the
/// second query, which returns the references of children under a temporary foreign key, returns no others.
fn check_bare_child(seen: &mut [BTreeSet<i64>; 3], lists_parents: bool, reply: &Reply) -> Result<(), String> {
    let values: BTreeSet<i64> = reply.integers()?.into_iter().map(|row| row[0]).collect();
    if lists_parents {
        seen[0] = values;
        return Ok(());
    }
    match values.is_subset(&seen[0]) {
        true => Ok(()),
        false => {
            Err(format!("rows of child_bare reference {values:?} under a foreign key; the parents are {:?}", seen[0]))
        }
    }
}

/// The statements of a reader's transaction.
fn reads() -> Vec<Statement> {
    let mut reads = vec![
        Statement::plain("SELECT id FROM parent"),
        Statement::plain("SELECT code FROM parent"),
        Statement::plain("SELECT id FROM tree"),
        Statement::plain("SELECT up FROM tree WHERE up IS NOT NULL"),
    ];
    reads
        .extend(CHILDREN.map(|(child, ..)| Statement::plain(format!("SELECT pid FROM {child} WHERE pid IS NOT NULL"))));
    reads
}

/// Records the parents, then checks each child table against them.
fn check_read(seen: &mut [BTreeSet<i64>; 3], read: usize, reply: &Reply) -> Result<(), String> {
    let values: BTreeSet<i64> = reply.integers()?.into_iter().map(|row| row[0]).collect();
    if let Some(keys) = seen.get_mut(read) {
        *keys = values;
        return Ok(());
    }
    let (name, keys) = match read {
        3 => ("tree", &seen[2]),
        read => {
            let (child, column, _) = CHILDREN[read - 4];
            (child, &seen[usize::from(column == "code")])
        }
    };
    let orphans: Vec<i64> = values.difference(keys).copied().collect();
    match orphans.is_empty() {
        true => Ok(()),
        false => Err(format!("rows of {name} reference {orphans:?}, which do not exist; the keys are {keys:?}")),
    }
}

impl Workload for ForeignKey {
    fn name(&self) -> &'static str {
        "foreign_key"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![
            Statement::plain("CREATE TABLE parent (id INT NOT NULL PRIMARY KEY, code INT NOT NULL, UNIQUE KEY (code))"),
            Statement::plain(
                "CREATE TABLE tree (id INT NOT NULL PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) \
                 ON DELETE CASCADE)",
            ),
        ];
        statements.push(Statement::plain("CREATE TABLE child_bare (id INT NOT NULL PRIMARY KEY, pid INT)"));
        for (child, column, actions) in CHILDREN {
            statements.push(Statement::plain(format!(
                "CREATE TABLE {child} (id INT NOT NULL PRIMARY KEY, pid INT, \
                 FOREIGN KEY (pid) REFERENCES parent ({column}) {actions})"
            )));
        }
        statements.extend(inserts("parent", 0..self.rows, |id| format!("{id}, {}", id + 100)));
        statements.extend(inserts("tree", 0..4, |id| format!("{id}, NULL")));
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
                1 => alterations(),
                0 => {
                    let mut statements = vec![Statement::plain("BEGIN")];
                    statements.extend(reads());
                    statements.push(Statement::plain("COMMIT"));
                    statements
                }
                _ => self.draw_writes(random),
            };
            let state = &mut self.sessions[session];
            state.rounds_left -= 1;
            (state.statements, state.position) = (statements, 0);
        }
        let state = &self.sessions[session];
        Step::Run(state.statements[state.position].clone())
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let state = &mut self.sessions[session];
        let text = state.statements[state.position].text.clone();
        match reply.errno() {
            // Rows violate the foreign key. Empty the table, so that the key can be added next time.
            NO_PARENT | LOCK_WAIT if session == 1 && text == ADD_KEY => {
                state.statements = vec![Statement::plain("DELETE FROM child_bare")];
                state.position = 0;
                return Ok(());
            }
            LOCK_WAIT if session == 1 && text == DROP_KEY => return Ok(()),
            // A deadlock rolls back the transaction, the other errors only the statement.
            DEADLOCK if session > 0 => {
                state.statements.clear();
                state.position = 0;
                return Ok(());
            }
            LOCK_WAIT | HAS_CHILDREN | NO_PARENT | DUPLICATE if session > 0 => {
                state.position += 1;
                return Ok(());
            }
            _ => succeeded(reply).map_err(|fault| format!("{fault} from {text}"))?,
        }
        if session == 1 && (2..=3).contains(&state.position) {
            check_bare_child(&mut state.seen, state.position == 2, reply)?;
        }
        if session == 0 && (1..=reads().len()).contains(&state.position) {
            check_read(&mut state.seen, state.position - 1, reply)?;
        }
        state.position += 1;
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        let state = &mut self.sessions[session];
        state.statements.clear();
        state.position = 0;
        if session == 1 {
            // It is unknown whether the key exists, so this session stops.
            state.rounds_left = 0;
        }
    }

    fn audit(&self) -> Vec<Statement> {
        reads()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        check_read(&mut self.audited, position, reply)
    }
}
