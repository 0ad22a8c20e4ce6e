//! A client as a state machine without IO: it says the next statement, takes the answer, and records what it did and saw.

use std::collections::BTreeMap;

use crate::draw::{Drawer, Lock, Options, Planned};
use crate::history::{Key, Operation, Outcome, Seen, Statement, Transaction};

/// MySQL's number for a deadlock: the whole transaction was undone.
const DEADLOCK: u16 = 1213;
/// MySQL's number for a row that changed after the snapshot.
const CHANGED: u16 = 1020;

/// Rows of one statement that fills the tables.
const FILL_ROWS: u32 = 100;

/// A statement with a `?` for each parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The text.
    pub text: String,
    /// The values, in the order of the marks.
    pub parameters: Vec<i64>,
}

/// A value of a row as text; `None` is NULL.
pub type Cell = Option<String>;

/// What a server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// It changed so many rows.
    Done {
        /// Rows.
        affected_rows: u64,
    },
    /// Its rows.
    Rows(&'a [Vec<Cell>]),
    /// It failed.
    Failed {
        /// MySQL's number.
        errno: u16,
    },
}

/// The statements that make the tables of a level.
pub fn create_tables(options: &Options) -> Vec<String> {
    let level = options.level.name();
    vec![
        format!(
            "CREATE TABLE {level}_lists (id INT NOT NULL PRIMARY KEY, elements TEXT NOT NULL) \
             PARTITION BY KEY (id) PARTITIONS 4"
        ),
        format!(
            "CREATE TABLE {level}_registers (id INT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, \
             value BIGINT NOT NULL, KEY value_1 (value)) PARTITION BY KEY (id) PARTITIONS 4"
        ),
        format!(
            "CREATE TABLE {level}_members (element BIGINT NOT NULL, family INT NOT NULL, \
             PRIMARY KEY (element, family), KEY family_1 (family)) PARTITION BY KEY (element) PARTITIONS 4"
        ),
    ]
}

/// The statements that put the objects of a run into the tables.
pub fn fill_tables(options: &Options) -> Vec<String> {
    let level = options.level.name();
    let ids: Vec<u32> = (options.first_id..options.first_id + options.objects).collect();
    let mut statements = Vec::new();
    for ids in ids.chunks(FILL_ROWS as usize) {
        let rows = |row: fn(&u32) -> String| ids.iter().map(row).collect::<Vec<_>>().join(", ");
        statements.push(format!("INSERT INTO {level}_lists VALUES {}", rows(|id| format!("({id}, '')"))));
        statements.push(format!("INSERT INTO {level}_registers VALUES {}", rows(|id| format!("({id}, 0, 0)"))));
    }
    statements
}

/// The statements that read all objects of a run, in the order that [`take_finals`] expects.
pub fn final_statements(options: &Options) -> Vec<Request> {
    let level = options.level.name();
    let range = [i64::from(options.first_id), i64::from(options.first_id + options.objects)];
    [
        format!("SELECT id, elements FROM {level}_lists WHERE id >= ? AND id < ?"),
        format!("SELECT id, version, value FROM {level}_registers WHERE id >= ? AND id < ?"),
        format!("SELECT family, element FROM {level}_members WHERE family >= ? AND family < ?"),
    ]
    .map(|text| Request { text, parameters: range.to_vec() })
    .to_vec()
}

/// Takes the answer to the final statement at this position.
///
/// # Errors
/// What came in place of the rows, as a sentence.
pub fn take_finals(
    options: &Options,
    position: usize,
    rows: &[Vec<Cell>],
    finals: &mut BTreeMap<Key, Seen>,
) -> Result<(), String> {
    let ids = options.first_id..options.first_id + options.objects;
    match position {
        0 => finals.extend(lists(rows)?),
        1 => finals.extend(registers(rows)?),
        _ => {
            let mut families: BTreeMap<u32, Vec<u64>> = ids.clone().map(|id| (id, Vec::new())).collect();
            for row in rows {
                let [family, element] = row.as_slice() else { return Err(format!("a member is {row:?}")) };
                families.entry(number(family)? as u32).or_default().push(number(element)?);
            }
            finals.extend(families.into_iter().map(|(id, values)| (Key::family(id), Seen::Values(values))));
        }
    }
    if position < 2 && rows.len() != ids.len() {
        return Err(format!("{} rows of {} are there at the end", rows.len(), ids.len()));
    }
    Ok(())
}

/// A session.
#[derive(Debug)]
pub struct Session {
    options: Options,
    number: u32,
    /// Transactions begun.
    done: u32,
    next_value: u64,
    /// Statements that give the connection its level and are not sent yet.
    level_left: usize,
    current: Option<Current>,
    transactions: Vec<Transaction>,
}

#[derive(Debug)]
struct Current {
    plan: Vec<Planned>,
    position: usize,
    /// The value of the write that is under way.
    value: u64,
    /// A write of a register is read back for its version, in a transaction of several statements.
    reads_back: Option<u32>,
    record: Transaction,
}

impl Session {
    /// A session of the run by its number, from 0 on.
    pub fn new(options: Options, number: u32) -> Self {
        Self {
            options,
            number,
            done: 0,
            next_value: u64::from(number) + 1,
            level_left: options.level.statements().len(),
            current: None,
            transactions: Vec::new(),
        }
    }

    /// The next statement, sent at this stamp; `None` at the end. `below(n)` gives a random number from 0 to n - 1.
    pub fn next(&mut self, stamp: u64, below: &mut dyn FnMut(u64) -> u64) -> Option<Request> {
        if self.level_left > 0 {
            let statements = self.options.level.statements();
            let text = statements[statements.len() - self.level_left].to_owned();
            return Some(Request { text, parameters: Vec::new() });
        }
        if self.current.is_none() {
            if self.done == self.options.transactions {
                return None;
            }
            let plan = Drawer::new(&self.options, self.done, below).transaction();
            self.done += 1;
            let record = Transaction { session: self.number, statements: Vec::new(), outcome: Outcome::Aborted };
            self.current = Some(Current { plan, position: 0, value: 0, reads_back: None, record });
        }
        let current = self.current.as_mut()?;
        current.record.statements.push(Statement { sent: stamp, answered: u64::MAX, operations: Vec::new() });
        let planned = &current.plan[current.position];
        if current.reads_back.is_none() && matches!(planned, Planned::Append(..) | Planned::Set(..) | Planned::Add(..))
        {
            current.value = self.next_value;
            self.next_value += u64::from(self.options.sessions);
        }
        Some(current.request(self.options.level.name()))
    }

    /// Takes the answer to the statement sent last.
    ///
    /// # Errors
    /// An answer that no level allows, as a sentence.
    pub fn on_answer(&mut self, answer: Answer<'_>, stamp: u64) -> Result<(), String> {
        if self.level_left > 0 {
            self.level_left -= 1;
            return match answer {
                Answer::Failed { errno } => Err(format!("the level was refused with error {errno}")),
                _ => Ok(()),
            };
        }
        let Some(mut current) = self.current.take() else { return Err("an answer to nothing".to_owned()) };
        if let Some(statement) = current.record.statements.last_mut() {
            statement.answered = stamp;
        }
        let is_last = current.position + 1 == current.plan.len() && current.reads_back.is_none();
        match answer {
            Answer::Failed { errno: DEADLOCK } if current.plan[current.position] != Planned::Commit => {
                self.transactions.push(current.record);
                return Ok(());
            }
            Answer::Failed { errno: CHANGED } => {
                let is_alone = current.plan.len() == 1;
                current.plan = vec![Planned::Rollback];
                current.position = 0;
                current.reads_back = None;
                if is_alone {
                    self.transactions.push(current.record);
                } else {
                    self.current = Some(current);
                }
                return Ok(());
            }
            Answer::Failed { errno } => return Err(format!("error {errno}")),
            answer => current.take(answer)?,
        }
        if current.reads_back.is_none() {
            current.position += 1;
        }
        if is_last && current.reads_back.is_none() {
            if current.plan.last() != Some(&Planned::Rollback) {
                current.record.outcome = Outcome::Committed;
            }
            self.transactions.push(current.record);
        } else {
            self.current = Some(current);
        }
        Ok(())
    }

    /// The connection was lost, with the statement sent last or none under way.
    pub fn on_closed(&mut self) {
        self.level_left = self.options.level.statements().len();
        let Some(mut current) = self.current.take() else { return };
        let is_under_way = current.record.statements.last().is_some_and(|statement| statement.answered == u64::MAX);
        let may_commit = current.plan.len() == 1 || current.plan[current.position] == Planned::Commit;
        if is_under_way && may_commit && current.plan[current.position] != Planned::Rollback {
            current.record.outcome = Outcome::Unknown;
            // Its write may have been made.
            current.note_write();
        }
        self.transactions.push(current.record);
    }

    /// What was recorded.
    pub fn into_transactions(self) -> Vec<Transaction> {
        self.transactions
    }
}

impl Current {
    fn request(&self, level: &str) -> Request {
        let (value, plain) = (self.value as i64, |text: &str| (text.to_owned(), Vec::new()));
        if let Some(id) = self.reads_back {
            return read(&format!("SELECT id, version, value FROM {level}_registers"), &[id], Lock::None);
        }
        let (text, parameters) = match &self.plan[self.position] {
            Planned::Begin => plain("BEGIN"),
            Planned::BeginWithSnapshot => plain("START TRANSACTION WITH CONSISTENT SNAPSHOT"),
            Planned::ReadLists(ids, lock) => {
                return read(&format!("SELECT id, elements FROM {level}_lists"), ids, *lock);
            }
            Planned::ReadRegisters(ids, lock) => {
                return read(&format!("SELECT id, version, value FROM {level}_registers"), ids, *lock);
            }
            Planned::ReadFamily(id) => {
                (format!("SELECT element FROM {level}_members WHERE family = ?"), vec![i64::from(*id)])
            }
            Planned::Append(id, _) => {
                let text = format!("UPDATE {level}_lists SET elements = CONCAT(elements, ',', ?) WHERE id = ?");
                (text, vec![value, i64::from(*id)])
            }
            Planned::Set(id, _) => {
                let text = format!("UPDATE {level}_registers SET value = ?, version = version + 1 WHERE id = ?");
                (text, vec![value, i64::from(*id)])
            }
            Planned::Add(id, _) => (format!("INSERT INTO {level}_members VALUES (?, ?)"), vec![value, i64::from(*id)]),
            Planned::Savepoint => plain("SAVEPOINT here"),
            Planned::BackToSavepoint => plain("ROLLBACK TO SAVEPOINT here"),
            Planned::Commit => plain("COMMIT"),
            Planned::Rollback => plain("ROLLBACK"),
        };
        Request { text, parameters }
    }

    fn take(&mut self, answer: Answer<'_>) -> Result<(), String> {
        if let Some(id) = self.reads_back.take() {
            return self.take_read(answer, &[id], false, registers);
        }
        match self.plan[self.position].clone() {
            Planned::ReadLists(ids, lock) => self.take_read(answer, &ids, lock != Lock::None, lists),
            Planned::ReadRegisters(ids, lock) => self.take_read(answer, &ids, lock != Lock::None, registers),
            Planned::ReadFamily(id) => {
                let Answer::Rows(rows) = answer else { return Err(format!("{answer:?} in place of members")) };
                let values = rows.iter().map(|row| row.iter().map(number).next().unwrap_or(Ok(0)));
                let seen = Seen::Values(values.collect::<Result<_, _>>()?);
                self.note(Operation::Read { key: Key::family(id), seen, locks: false });
                Ok(())
            }
            planned @ (Planned::Append(..) | Planned::Set(..) | Planned::Add(..)) => {
                if !matches!(answer, Answer::Done { affected_rows: 1 }) {
                    return Err(format!("{answer:?} to a write of one row"));
                }
                self.note_write();
                // What is taken back has a version that others get.
                if let Planned::Set(id, false) = planned
                    && self.plan.len() > 1
                {
                    self.reads_back = Some(id);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_read(
        &mut self,
        answer: Answer<'_>,
        ids: &[u32],
        locks: bool,
        parse: fn(&[Vec<Cell>]) -> Parsed,
    ) -> Result<(), String> {
        let Answer::Rows(rows) = answer else { return Err(format!("{answer:?} in place of rows")) };
        let found = parse(rows)?;
        if rows.len() != ids.len() || !found.keys().map(|key| key.id).eq(ids.iter().copied()) {
            return Err(format!("{:?} in place of {ids:?}", found.keys()));
        }
        for (key, seen) in found {
            self.note(Operation::Read { key, seen, locks });
        }
        Ok(())
    }

    fn note_write(&mut self) {
        let (key, is_undone) = match self.plan[self.position] {
            Planned::Append(id, is_undone) => (Key::list(id), is_undone),
            Planned::Set(id, is_undone) => (Key::register(id), is_undone),
            Planned::Add(id, is_undone) => (Key::family(id), is_undone),
            _ => return,
        };
        self.note(Operation::Write { key, value: self.value, is_undone });
    }

    fn note(&mut self, operation: Operation) {
        if let Some(statement) = self.record.statements.last_mut() {
            statement.operations.push(operation);
        }
    }
}

/// A read of rows by their ids.
fn read(select: &str, ids: &[u32], lock: Lock) -> Request {
    let marks = vec!["?"; ids.len()].join(", ");
    let lock = match lock {
        Lock::None => "",
        Lock::Share => " FOR SHARE",
        Lock::Update => " FOR UPDATE",
    };
    let text = match ids {
        [_] => format!("{select} WHERE id = ?{lock}"),
        _ => format!("{select} WHERE id IN ({marks}){lock}"),
    };
    Request { text, parameters: ids.iter().map(|&id| i64::from(id)).collect() }
}

/// What rows say, or what is wrong with them.
type Parsed = Result<BTreeMap<Key, Seen>, String>;

fn lists(rows: &[Vec<Cell>]) -> Parsed {
    let list = |row: &Vec<Cell>| {
        let [id, Some(elements)] = row.as_slice() else { return Err(format!("a list is {row:?}")) };
        // Every element has a comma before it.
        let parts = elements.split(',').skip(1).map(|part| part.parse::<u64>().map_err(|_| format!("{row:?}")));
        let values = parts.collect::<Result<_, _>>()?;
        Ok((Key::list(number(id)? as u32), Seen::Values(values)))
    };
    rows.iter().map(list).collect()
}

fn registers(rows: &[Vec<Cell>]) -> Parsed {
    let register = |row: &Vec<Cell>| {
        let [id, version, value] = row.as_slice() else { return Err(format!("a register is {row:?}")) };
        let seen = Seen::Version { version: number(version)?, value: number(value)? };
        Ok((Key::register(number(id)? as u32), seen))
    };
    rows.iter().map(register).collect()
}

fn number(cell: &Cell) -> Result<u64, String> {
    let text = cell.as_deref().unwrap_or("NULL");
    text.parse().map_err(|_| format!("{text} in place of a number"))
}
