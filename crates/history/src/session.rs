//! A client as a state machine without IO. It yields the next statement, takes the answer, and records reads
//! and writes.

use std::collections::BTreeMap;

use crate::draw::{Generator, Lock, Options, PlannedStatement};
use crate::history::{Key, Operation, Outcome, ReadValue, Statement, Transaction};

/// MySQL's error for a deadlock: the server rolled back the whole transaction.
const DEADLOCK: u16 = 1213;
/// MySQL's error for a write of a row that changed after the snapshot.
const CHANGED: u16 = 1020;

/// Number of rows of each INSERT that populates the tables.
const FILL_ROWS: u32 = 100;

/// A statement with a `?` for each parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The SQL text.
    pub text: String,
    /// The parameter values, in the order of the `?`s.
    pub parameters: Vec<i64>,
}

/// A column value as text; `None` is NULL.
pub type Cell = Option<String>;

/// The server's answer to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// OK without rows.
    Done {
        /// Number of rows changed.
        affected_rows: u64,
    },
    /// The result rows.
    Rows(&'a [Vec<Cell>]),
    /// An error.
    Failed {
        /// MySQL's error number.
        errno: u16,
    },
}

/// The statements that create the tables for a level.
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

/// The statements that insert the objects of a run into the tables.
pub fn populate_tables(options: &Options) -> Vec<String> {
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

/// The statements that read all objects of a run, in the order that [`record_final_read`] expects.
pub fn final_reads(options: &Options) -> Vec<Request> {
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

/// Records the answer to the statement at this position of [`final_reads`].
///
/// # Errors
/// A description of an unexpected answer.
pub fn record_final_read(
    options: &Options,
    position: usize,
    rows: &[Vec<Cell>],
    finals: &mut BTreeMap<Key, ReadValue>,
) -> Result<(), String> {
    let ids = options.first_id..options.first_id + options.objects;
    match position {
        0 => finals.extend(lists(rows)?),
        1 => finals.extend(registers(rows)?),
        _ => {
            let mut families: BTreeMap<u32, Vec<u64>> = ids.clone().map(|id| (id, Vec::new())).collect();
            for row in rows {
                let [family, element] = row.as_slice() else { return Err(format!("unexpected member row {row:?}")) };
                families.entry(number(family)? as u32).or_default().push(number(element)?);
            }
            finals.extend(families.into_iter().map(|(id, values)| (Key::family(id), ReadValue::Values(values))));
        }
    }
    if position < 2 && rows.len() != ids.len() {
        return Err(format!("{} of {} rows are left at the end", rows.len(), ids.len()));
    }
    Ok(())
}

/// A session.
#[derive(Debug)]
pub struct Session {
    options: Options,
    number: u32,
    /// Number of transactions begun.
    begun: u32,
    /// The value of the next write. With n sessions, each session uses every n-th number, so that no value is
    /// written twice.
    next_value: u64,
    /// Number of statements still to send that set the connection's isolation level.
    level_statements_left: usize,
    current: Option<Current>,
    transactions: Vec<Transaction>,
}

#[derive(Debug)]
struct Current {
    plan: Vec<PlannedStatement>,
    position: usize,
    /// The value of the current write.
    value: u64,
    /// The register to read back for its version after a write, in a transaction of several statements.
    read_back: Option<u32>,
    record: Transaction,
}

impl Session {
    /// The session with this number, from 0 on.
    pub fn new(options: Options, number: u32) -> Self {
        Self {
            options,
            number,
            begun: 0,
            next_value: u64::from(number) + 1,
            level_statements_left: options.level.statements().len(),
            current: None,
            transactions: Vec::new(),
        }
    }

    /// The next statement, sent at this time stamp; `None` at the end. `below(n)` returns a random number
    /// from 0 to n - 1.
    pub fn next(&mut self, stamp: u64, below: &mut dyn FnMut(u64) -> u64) -> Option<Request> {
        if self.level_statements_left > 0 {
            let statements = self.options.level.statements();
            let text = statements[statements.len() - self.level_statements_left].to_owned();
            return Some(Request { text, parameters: Vec::new() });
        }
        if self.current.is_none() {
            if self.begun == self.options.transactions {
                return None;
            }
            let plan = Generator::new(&self.options, self.begun, below).transaction();
            self.begun += 1;
            let record = Transaction { session: self.number, statements: Vec::new(), outcome: Outcome::Aborted };
            self.current = Some(Current { plan, position: 0, value: 0, read_back: None, record });
        }
        let current = self.current.as_mut()?;
        current.record.statements.push(Statement { sent: stamp, answered: u64::MAX, operations: Vec::new() });
        let planned = &current.plan[current.position];
        if current.read_back.is_none()
            && matches!(planned, PlannedStatement::Append(..) | PlannedStatement::Set(..) | PlannedStatement::Add(..))
        {
            current.value = self.next_value;
            self.next_value += u64::from(self.options.sessions);
        }
        Some(current.request(self.options.level.name()))
    }

    /// Takes the answer to the last statement sent.
    ///
    /// # Errors
    /// A description of an answer that no level allows.
    pub fn on_answer(&mut self, answer: Answer<'_>, stamp: u64) -> Result<(), String> {
        if self.level_statements_left > 0 {
            self.level_statements_left -= 1;
            return match answer {
                Answer::Failed { errno } => Err(format!("setting the isolation level failed with error {errno}")),
                _ => Ok(()),
            };
        }
        let Some(mut current) = self.current.take() else { return Err("an answer without a statement".to_owned()) };
        if let Some(statement) = current.record.statements.last_mut() {
            statement.answered = stamp;
        }
        let is_last = current.position + 1 == current.plan.len() && current.read_back.is_none();
        match answer {
            // The server has rolled the transaction back. A COMMIT must not fail this way: its locks are all
            // granted.
            Answer::Failed { errno: DEADLOCK } if current.plan[current.position] != PlannedStatement::Commit => {
                self.transactions.push(current.record);
                return Ok(());
            }
            // Only the statement failed; the transaction still holds locks until it rolls back.
            Answer::Failed { errno: CHANGED } => {
                let is_alone = current.plan.len() == 1;
                current.plan = vec![PlannedStatement::Rollback];
                current.position = 0;
                current.read_back = None;
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
        if current.read_back.is_none() {
            current.position += 1;
        }
        if is_last && current.read_back.is_none() {
            if current.plan.last() != Some(&PlannedStatement::Rollback) {
                current.record.outcome = Outcome::Committed;
            }
            self.transactions.push(current.record);
        } else {
            self.current = Some(current);
        }
        Ok(())
    }

    /// Handles the loss of the connection, with or without a statement in flight.
    pub fn on_closed(&mut self) {
        self.level_statements_left = self.options.level.statements().len();
        let Some(mut current) = self.current.take() else { return };
        let is_under_way = current.record.statements.last().is_some_and(|statement| statement.answered == u64::MAX);
        let may_commit = current.plan.len() == 1 || current.plan[current.position] == PlannedStatement::Commit;
        if is_under_way && may_commit && current.plan[current.position] != PlannedStatement::Rollback {
            current.record.outcome = Outcome::Unknown;
            // The write may have taken effect.
            current.record_write();
        }
        self.transactions.push(current.record);
    }

    /// Removes and returns the recorded transactions, without the one that is under way.
    pub fn take_transactions(&mut self) -> Vec<Transaction> {
        std::mem::take(&mut self.transactions)
    }

    /// The recorded transactions.
    pub fn into_transactions(self) -> Vec<Transaction> {
        self.transactions
    }
}

impl Current {
    fn request(&self, level: &str) -> Request {
        let (value, plain) = (self.value as i64, |text: &str| (text.to_owned(), Vec::new()));
        if let Some(id) = self.read_back {
            return read(&format!("SELECT id, version, value FROM {level}_registers"), &[id], Lock::None);
        }
        let (text, parameters) = match &self.plan[self.position] {
            PlannedStatement::Begin => plain("BEGIN"),
            PlannedStatement::BeginWithSnapshot => plain("START TRANSACTION WITH CONSISTENT SNAPSHOT"),
            PlannedStatement::ReadLists(ids, lock) => {
                return read(&format!("SELECT id, elements FROM {level}_lists"), ids, *lock);
            }
            PlannedStatement::ReadRegisters(ids, lock) => {
                return read(&format!("SELECT id, version, value FROM {level}_registers"), ids, *lock);
            }
            PlannedStatement::ReadFamily(id) => {
                (format!("SELECT element FROM {level}_members WHERE family = ?"), vec![i64::from(*id)])
            }
            PlannedStatement::Append(id, _) => {
                let text = format!("UPDATE {level}_lists SET elements = CONCAT(elements, ',', ?) WHERE id = ?");
                (text, vec![value, i64::from(*id)])
            }
            PlannedStatement::Set(id, _) => {
                let text = format!("UPDATE {level}_registers SET value = ?, version = version + 1 WHERE id = ?");
                (text, vec![value, i64::from(*id)])
            }
            PlannedStatement::Add(id, _) => {
                (format!("INSERT INTO {level}_members VALUES (?, ?)"), vec![value, i64::from(*id)])
            }
            PlannedStatement::Savepoint => plain("SAVEPOINT here"),
            PlannedStatement::BackToSavepoint => plain("ROLLBACK TO SAVEPOINT here"),
            PlannedStatement::Commit => plain("COMMIT"),
            PlannedStatement::Rollback => plain("ROLLBACK"),
        };
        Request { text, parameters }
    }

    fn take(&mut self, answer: Answer<'_>) -> Result<(), String> {
        if let Some(id) = self.read_back.take() {
            return self.record_read(answer, &[id], false, registers);
        }
        match self.plan[self.position].clone() {
            PlannedStatement::ReadLists(ids, lock) => self.record_read(answer, &ids, lock != Lock::None, lists),
            PlannedStatement::ReadRegisters(ids, lock) => self.record_read(answer, &ids, lock != Lock::None, registers),
            PlannedStatement::ReadFamily(id) => {
                let Answer::Rows(rows) = answer else { return Err(format!("{answer:?} instead of members")) };
                let values = rows.iter().map(|row| row.iter().map(number).next().unwrap_or(Ok(0)));
                let seen = ReadValue::Values(values.collect::<Result<_, _>>()?);
                self.note(Operation::Read { key: Key::family(id), seen, locks: false });
                Ok(())
            }
            planned @ (PlannedStatement::Append(..) | PlannedStatement::Set(..) | PlannedStatement::Add(..)) => {
                if !matches!(answer, Answer::Done { affected_rows: 1 }) {
                    return Err(format!("{answer:?} to a write of one row"));
                }
                self.record_write();
                // An undone write has no version of its own: the next writer gets the same number.
                if let PlannedStatement::Set(id, false) = planned
                    && self.plan.len() > 1
                {
                    self.read_back = Some(id);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn record_read(
        &mut self,
        answer: Answer<'_>,
        ids: &[u32],
        locks: bool,
        parse: fn(&[Vec<Cell>]) -> Parsed,
    ) -> Result<(), String> {
        let Answer::Rows(rows) = answer else { return Err(format!("{answer:?} instead of rows")) };
        let found = parse(rows)?;
        if rows.len() != ids.len() || !found.keys().map(|key| key.id).eq(ids.iter().copied()) {
            return Err(format!("{:?} instead of {ids:?}", found.keys()));
        }
        for (key, seen) in found {
            self.note(Operation::Read { key, seen, locks });
        }
        Ok(())
    }

    fn record_write(&mut self) {
        let (key, is_undone) = match self.plan[self.position] {
            PlannedStatement::Append(id, is_undone) => (Key::list(id), is_undone),
            PlannedStatement::Set(id, is_undone) => (Key::register(id), is_undone),
            PlannedStatement::Add(id, is_undone) => (Key::family(id), is_undone),
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

/// A SELECT of rows by ids.
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

/// The objects in the result rows, or a description of malformed rows.
type Parsed = Result<BTreeMap<Key, ReadValue>, String>;

fn lists(rows: &[Vec<Cell>]) -> Parsed {
    let list = |row: &Vec<Cell>| {
        let [id, Some(elements)] = row.as_slice() else { return Err(format!("unexpected list row {row:?}")) };
        // A comma precedes every element.
        let parts = elements.split(',').skip(1).map(|part| part.parse::<u64>().map_err(|_| format!("{row:?}")));
        let values = parts.collect::<Result<_, _>>()?;
        Ok((Key::list(number(id)? as u32), ReadValue::Values(values)))
    };
    rows.iter().map(list).collect()
}

fn registers(rows: &[Vec<Cell>]) -> Parsed {
    let register = |row: &Vec<Cell>| {
        let [id, version, value] = row.as_slice() else { return Err(format!("unexpected register row {row:?}")) };
        let seen = ReadValue::Version { version: number(version)?, value: number(value)? };
        Ok((Key::register(number(id)? as u32), seen))
    };
    rows.iter().map(register).collect()
}

fn number(cell: &Cell) -> Result<u64, String> {
    let text = cell.as_deref().unwrap_or("NULL");
    text.parse().map_err(|_| format!("{text} instead of a number"))
}
