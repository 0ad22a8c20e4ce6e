//! Arrays under multi-valued indexes. Rows come, change and go while one session adds and drops such indexes.
//! Each question about an element gets the rows that have it, in the same snapshot, and each element of the
//! unique index belongs to at most one row. The ledger knows all values, so nothing is lost by a crash.

use std::collections::BTreeMap;

use junctor_kernel::{Duration, Random};

use super::{DEADLOCK, DUPLICATE, Step, Workload, changed, succeeded};
use crate::ledger::{Durability, EntryId, Ledger};
use crate::statement::{Reply, Statement, integer};

/// MySQL's error for a lock wait timeout. It undoes the statement only.
const LOCK_WAIT: u16 = 1205;
/// MySQL's error for a table that was changed after the snapshot of the transaction.
const TABLE_CHANGED: u16 = 1412;
/// MySQL's errors for an index that exists already, or does not exist.
const WRONG_INDEX: [u16; 2] = [1061, 1091];
/// Number of elements for which rows compete.
const SEATS: i64 = 16;
/// Values are numbers times this, plus a seat. Values from `SEATS` on have no seat.
const SEATS_OF_VALUES: i64 = 2 * SEATS;
/// Number of different tags.
const TAGS: i64 = 7;
/// The ids from this one on belong to the audit.
const PROBES: i64 = 1_000_000;
/// Added to a key, it is an element that all values of that key have.
const KEY_ELEMENT: i64 = 1_000_000_000;
const SCAN: &str = "SELECT id, v, doc FROM tagged WHERE id < 1000000";

/// The workload `multi_valued`, whose first session changes the indexes, and `multi_valued_rows`, in which
/// all sessions write.
#[derive(Debug)]
pub struct MultiValued {
    ledger: Ledger,
    sessions: Vec<Session>,
    /// Keys of each session.
    keys: i64,
    next_number: i64,
    /// For each index of [`INDEXES`] whether it exists; `None` after a lost connection.
    exists: [Option<bool>; INDEXES.len()],
    alters: bool,
    /// The rows of the scan of the running check, by key.
    scanned: BTreeMap<i64, i64>,
}

/// The indexes that come and go: name, and what ADD names.
const INDEXES: [(&str, &str); 2] = [
    ("names", "KEY names (touched, (CAST(doc->'$.names' AS CHAR(20) ARRAY)))"),
    ("again", "UNIQUE KEY again ((CAST(doc->'$.own' AS SIGNED ARRAY)))"),
];

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    work: Vec<Task>,
    /// Tasks answered.
    done: usize,
    /// The writes of the transaction.
    writes: Vec<(i64, Option<i64>)>,
    /// Set while the outcome of the writes is open.
    entry: Option<EntryId>,
    /// The rows of the scan of the transaction.
    scanned: BTreeMap<i64, i64>,
    /// Number of rows that the last [`Task::Touch`] changed.
    touched: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    Begin,
    /// The value of a key before and after.
    Write(i64, Option<i64>, Option<i64>),
    Scan,
    Ask(Question),
    /// Marks the rows that have one of two tags. The number marks them.
    Touch(i64, i64),
    /// Counts the rows with this mark without an index.
    CountTouched(i64, i64),
    Commit,
    Rollback,
    /// Adds or drops an index of this position, or copies the rows.
    Change(Option<(usize, bool)>),
}

/// A condition that a multi-valued index serves.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Question {
    Tag(i64),
    OneOf(i64, i64),
    AllOf(i64, i64),
    Name(String),
    Own(i64),
}

impl Question {
    fn draw(random: &mut Random) -> Self {
        let mut tag = || random.below(TAGS as u64) as i64;
        let (one, other) = (tag(), tag());
        match random.below(6) {
            0 | 1 => Self::Tag(one),
            2 => Self::OneOf(one, other),
            3 => Self::AllOf(one, other),
            4 => Self::Name(format!("n{one}")),
            _ => Self::Own(random.below(SEATS as u64) as i64),
        }
    }

    fn statement(&self) -> Statement {
        let array = |one: &i64, other: &i64| format!("[{one}, {other}]");
        let (condition, value) = match self {
            Self::Tag(tag) => ("? MEMBER OF (doc->'$.tags')", (*tag).into()),
            Self::OneOf(one, other) => ("JSON_OVERLAPS(doc->'$.tags', ?)", array(one, other).into()),
            Self::AllOf(one, other) => ("JSON_CONTAINS(doc->'$.tags', ?)", array(one, other).into()),
            Self::Name(name) => ("? MEMBER OF (doc->'$.names')", name.clone().into()),
            Self::Own(element) => ("? MEMBER OF (doc->'$.own')", (*element).into()),
        };
        Statement::with(format!("{SCAN} AND {condition}"), [value])
    }

    fn matches(&self, key: i64, value: i64) -> bool {
        let tags = tags_of(value);
        match self {
            Self::Tag(tag) => tags.contains(tag),
            Self::OneOf(one, other) => tags.contains(one) || tags.contains(other),
            // A scalar contains no array.
            Self::AllOf(one, other) => !is_scalar(value) && tags.contains(one) && tags.contains(other),
            Self::Name(name) => names_of(value).contains(name),
            Self::Own(element) => own_of(key, value).contains(element),
        }
    }

    fn check(&self, rows: &BTreeMap<i64, i64>, found: &BTreeMap<i64, i64>) -> Result<(), String> {
        let expected = rows.iter().filter(|&(&key, &value)| self.matches(key, value));
        let expected: BTreeMap<i64, i64> = expected.map(|(&key, &value)| (key, value)).collect();
        match *found == expected {
            true => Ok(()),
            false => Err(format!("{self:?} found {found:?} instead of {expected:?}")),
        }
    }
}

fn number_of(value: i64) -> i64 {
    value / SEATS_OF_VALUES
}

/// Whether the tag of the value is no array.
fn is_scalar(value: i64) -> bool {
    number_of(value) % 5 == 1
}

/// Up to four tags, in some values with one of them twice.
fn tags_of(value: i64) -> Vec<i64> {
    let number = number_of(value);
    let mut tags: Vec<i64> = (0..number % 5).map(|position| (number + 2 * position) % TAGS).collect();
    if number % 3 == 0 && !is_scalar(value) {
        tags.extend(tags.first().copied());
    }
    tags
}

fn names_of(value: i64) -> Vec<String> {
    let number = number_of(value);
    match number % 4 {
        0 => Vec::new(),
        kind => vec![format!("n{}", number % TAGS), format!("m{kind}")],
    }
}

/// The elements of the unique indexes: one of the value alone, one that the row keeps, and a seat.
fn own_of(key: i64, value: i64) -> Vec<i64> {
    let number = number_of(value);
    if number % 9 == 0 {
        return Vec::new();
    }
    let mut own = vec![1000 + number, KEY_ELEMENT + key];
    own.extend(Some(value % SEATS_OF_VALUES).filter(|&seat| seat < SEATS));
    own
}

/// The document as the server writes it. Some have no member `names`.
fn document(key: i64, value: i64) -> String {
    let numbers = |elements: Vec<i64>| elements.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let (own, tags) = (numbers(own_of(key, value)), numbers(tags_of(value)));
    let tags = if is_scalar(value) { tags } else { format!("[{tags}]") };
    let names = match names_of(value).as_slice() {
        [] => String::new(),
        names => format!(", \"names\": [\"{}\"]", names.join("\", \"")),
    };
    format!("{{\"own\": [{own}], \"tags\": {tags}{names}}}")
}

/// The value of each key. Checks the documents, which follow from the values.
fn rows_of(reply: &Reply) -> Result<BTreeMap<i64, i64>, String> {
    let mut found = BTreeMap::new();
    for row in reply.rows()? {
        let (key, value) = (integer(&row[0])?, integer(&row[1])?);
        if row[2].as_deref() != Some(document(key, value).as_str()) {
            return Err(format!("row {row:?} was never written in this form"));
        }
        if found.insert(key, value).is_some() {
            return Err(format!("key {key} was returned twice"));
        }
    }
    Ok(found)
}

impl MultiValued {
    /// Creates the workload with this number of sessions, rounds of each session, and keys of each session.
    pub fn new(alters: bool, sessions: usize, rounds: u32, keys: i64) -> Self {
        let session = |_| Session {
            rounds_left: rounds,
            work: Vec::new(),
            done: 0,
            writes: Vec::new(),
            entry: None,
            scanned: BTreeMap::new(),
            touched: 0,
        };
        Self {
            ledger: Ledger::default(),
            sessions: (0..sessions).map(session).collect(),
            keys: keys.max(1),
            next_number: 0,
            exists: [Some(!alters); INDEXES.len()],
            alters,
            scanned: BTreeMap::new(),
        }
    }

    fn draw(&mut self, session: usize, random: &mut Random) -> Vec<Task> {
        if session == 0 && self.alters {
            let position = random.below(INDEXES.len() as u64) as usize;
            let adds = self.exists[position].map_or_else(|| random.one_in(2), |exists| !exists);
            return vec![Task::Change((!random.one_in(8)).then_some((position, adds)))];
        }
        let mark = self.next_number + 1;
        let tag = random.below(TAGS as u64) as i64;
        match random.below(8) {
            0 | 1 => {
                let questions = (0..1 + random.below(3)).map(|_| Task::Ask(Question::draw(random)));
                [Task::Begin, Task::Scan].into_iter().chain(questions).chain([Task::Commit]).collect()
            }
            2 => {
                self.next_number = mark;
                vec![Task::Begin, Task::Touch(mark, tag), Task::CountTouched(mark, tag), Task::Commit]
            }
            _ => self.draw_writes(session, random),
        }
    }

    fn draw_writes(&mut self, session: usize, random: &mut Random) -> Vec<Task> {
        let step = self.sessions.len() as i64;
        let own = (0..self.keys).map(|number| number * step + session as i64);
        // A statement of an earlier connection may still change an uncertain key.
        let mut certain: Vec<(i64, Option<i64>)> =
            own.filter_map(|key| Some((key, self.ledger.certain_value(key)?))).collect();
        let mut writes = Vec::new();
        for _ in 0..1 + random.below(3) {
            if certain.is_empty() {
                break;
            }
            let (key, before) = certain.swap_remove(random.below(certain.len() as u64) as usize);
            let deletes = before.is_some() && random.one_in(4);
            self.next_number += 1;
            let value = self.next_number * SEATS_OF_VALUES + random.below(SEATS_OF_VALUES as u64) as i64;
            writes.push(Task::Write(key, before, (!deletes).then_some(value)));
        }
        match (writes.len(), random.below(6)) {
            (0, _) => Vec::new(),
            (1, 0..4) => writes,
            (_, end) => {
                let end = if end == 5 { Task::Rollback } else { Task::Commit };
                [Task::Begin].into_iter().chain(writes).chain([end]).collect()
            }
        }
    }

    /// The questions of a check, each about the rows of one scan.
    fn questions() -> Vec<Question> {
        let tags = (0..TAGS).map(Question::Tag);
        let pairs = (0..TAGS).map(|tag| Question::OneOf(tag, (tag + 3) % TAGS));
        let all = (0..TAGS).map(|tag| Question::AllOf(tag, (tag + 2) % TAGS));
        let names = (0..TAGS).map(|name| Question::Name(format!("n{name}")));
        tags.chain(pairs).chain(all).chain(names).chain((0..SEATS).map(Question::Own)).collect()
    }

    /// The session goes on after an error, which ends its transaction.
    fn give_up(&mut self, session: usize, errno: u16) {
        let state = &mut self.sessions[session];
        let in_transaction = state.work.len() > 1;
        state.work.clear();
        state.writes.clear();
        state.done = 0;
        if in_transaction && errno != DEADLOCK {
            state.work.push(Task::Rollback);
        }
        if let Some(entry) = state.entry.take() {
            self.ledger.fail(entry);
        }
    }

    fn on_change(&mut self, change: Option<(usize, bool)>, reply: &Reply) -> Result<(), String> {
        let Some((position, adds)) = change else { return succeeded(reply) };
        if WRONG_INDEX.contains(&reply.errno()) && self.exists[position].is_none() {
            // The change of a connection that was lost may still be under way.
            return Ok(());
        }
        succeeded(reply).map_err(|fault| format!("{fault}, {change:?}"))?;
        self.exists[position] = Some(adds);
        Ok(())
    }
}

impl Task {
    fn statement(&self) -> Statement {
        match self {
            Self::Begin => Statement::plain("BEGIN"),
            Self::Commit => Statement::plain("COMMIT"),
            Self::Rollback => Statement::plain("ROLLBACK"),
            Self::Scan => Statement::plain(SCAN),
            Self::Ask(question) => question.statement(),
            Self::Write(key, None, Some(value)) => Statement::with(
                "INSERT INTO tagged (id, v, doc) VALUES (?, ?, ?)",
                [(*key).into(), (*value).into(), document(*key, *value).into()],
            ),
            Self::Write(key, _, Some(value)) => Statement::with(
                "UPDATE tagged SET v = ?, doc = ? WHERE id = ?",
                [(*value).into(), document(*key, *value).into(), (*key).into()],
            ),
            Self::Write(key, _, None) => Statement::with("DELETE FROM tagged WHERE id = ?", [(*key).into()]),
            Self::Touch(mark, tag) => Statement::with(
                "UPDATE tagged SET touched = ? WHERE JSON_OVERLAPS(doc->'$.tags', ?)",
                [(*mark).into(), format!("[{tag}, {}]", (tag + 1) % TAGS).into()],
            ),
            Self::CountTouched(mark, tag) => Statement::with(
                "SELECT COUNT(*) FROM tagged IGNORE INDEX (tags) WHERE touched = ? AND JSON_OVERLAPS(doc->'$.tags', ?)",
                [(*mark).into(), format!("[{tag}, {}]", (tag + 1) % TAGS).into()],
            ),
            Self::Change(None) => Statement::plain("ALTER TABLE tagged FORCE, ALGORITHM=COPY"),
            Self::Change(Some((index, true))) => {
                Statement::plain(format!("ALTER TABLE tagged ADD {}", INDEXES[*index].1))
            }
            Self::Change(Some((index, false))) => {
                Statement::plain(format!("ALTER TABLE tagged DROP KEY {}", INDEXES[*index].0))
            }
        }
    }
}

impl Workload for MultiValued {
    fn name(&self) -> &'static str {
        if self.alters { "multi_valued" } else { "multi_valued_rows" }
    }

    fn setup(&self) -> Vec<Statement> {
        let more: String = INDEXES.iter().filter(|_| !self.alters).map(|(_, index)| format!(", {index}")).collect();
        vec![Statement::plain(format!(
            "CREATE TABLE tagged (id INT NOT NULL PRIMARY KEY, v BIGINT NOT NULL, touched BIGINT NOT NULL DEFAULT 0, \
             doc JSON NOT NULL, UNIQUE KEY own ((CAST(doc->'$.own' AS UNSIGNED ARRAY))), \
             KEY tags ((CAST(doc->'$.tags' AS UNSIGNED ARRAY))){more}) PARTITION BY KEY (id) PARTITIONS 3",
        ))]
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        if self.sessions[session].done >= self.sessions[session].work.len() {
            if self.sessions[session].rounds_left == 0 {
                return Step::Done;
            }
            if random.one_in(6) {
                return Step::Pause(Duration::from_micros(random.below(3_000)));
            }
            self.sessions[session].rounds_left -= 1;
            let work = self.draw(session, random);
            let state = &mut self.sessions[session];
            (state.work, state.done) = (work, 0);
            state.writes.clear();
            if state.work.is_empty() {
                return Step::Pause(Duration::from_micros(random.below(3_000)));
            }
        }
        let state = &mut self.sessions[session];
        let task = state.work[state.done].clone();
        if let Task::Write(key, _, value) = task {
            state.writes.push((key, value));
        }
        let ends = task == Task::Commit || state.work.len() == 1;
        if ends && !state.writes.is_empty() {
            state.entry = Some(self.ledger.send(&state.writes));
        }
        Step::Run(task.statement())
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let state = &mut self.sessions[session];
        let Some(task) = state.work.get(state.done).cloned() else {
            return Err("an answer without a statement".to_owned());
        };
        let errno = reply.errno();
        let may_fail = match task {
            Task::Write(_, _, value) => {
                matches!(errno, DEADLOCK | LOCK_WAIT | TABLE_CHANGED) || errno == DUPLICATE && value.is_some()
            }
            Task::Scan | Task::Ask(_) | Task::Touch(..) | Task::CountTouched(..) | Task::Change(_) => {
                matches!(errno, DEADLOCK | LOCK_WAIT | TABLE_CHANGED)
            }
            Task::Begin | Task::Commit | Task::Rollback => false,
        };
        if may_fail {
            self.give_up(session, errno);
            return Ok(());
        }
        match &task {
            Task::Write(..) => changed(reply, 1)?,
            Task::Scan => state.scanned = rows_of(reply)?,
            Task::Ask(question) => question.check(&state.scanned, &rows_of(reply)?)?,
            Task::Touch(..) => state.touched = reply.affected_rows()?,
            Task::CountTouched(..) if reply.integers()? != [[state.touched as i64]] => {
                return Err(format!("{} rows were changed, but {reply:?} have the mark", state.touched));
            }
            Task::Change(change) => self.on_change(*change, reply)?,
            Task::CountTouched(..) | Task::Begin | Task::Commit | Task::Rollback => succeeded(reply)?,
        }
        let state = &mut self.sessions[session];
        state.done += 1;
        if let Some(entry) = state.entry.take() {
            self.ledger.acknowledge(entry);
        }
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        let state = &mut self.sessions[session];
        if let Some(Task::Change(Some((position, _)))) = state.work.get(state.done) {
            self.exists[*position] = None;
        }
        state.work.clear();
        state.writes.clear();
        state.done = 0;
        if let Some(entry) = state.entry.take() {
            self.ledger.leave_unknown(entry);
        }
    }

    fn audit(&self) -> Vec<Statement> {
        let remove = || Statement::plain(format!("DELETE FROM tagged WHERE id >= {PROBES}"));
        let mut statements = vec![remove(), Statement::plain("START TRANSACTION"), Statement::plain(SCAN)];
        statements.extend(Self::questions().iter().map(Question::statement));
        statements.push(Statement::plain("COMMIT"));
        // A seat can be taken if and only if no row has it.
        statements.extend((0..SEATS).map(|seat| {
            let text = format!("INSERT IGNORE INTO tagged (id, v, doc) VALUES ({}, 0, ?)", PROBES + seat);
            Statement::with(text, [format!("{{\"own\": [{seat}, {}]}}", SEATS + seat).into()])
        }));
        statements.push(remove());
        statements
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        let questions = Self::questions();
        let commit = 3 + questions.len();
        match position {
            2 => self.scanned = rows_of(reply)?,
            3.. if position < commit => questions[position - 3].check(&self.scanned, &rows_of(reply)?)?,
            _ if position == commit => {
                succeeded(reply)?;
                self.ledger.check(&self.scanned, Durability::Disk)?;
            }
            _ if (commit + 1..=commit + SEATS as usize).contains(&position) => {
                let seat = (position - commit - 1) as i64;
                let holders = self.scanned.iter().filter(|&(&key, &value)| own_of(key, value).contains(&seat));
                let holders: Vec<i64> = holders.map(|(&key, _)| key).collect();
                if holders.len() > 1 || reply.affected_rows()? != u64::from(holders.is_empty()) {
                    return Err(format!("seat {seat} is held by {holders:?}, but another row got {reply:?}"));
                }
            }
            _ => succeeded(reply)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(i64, i64)]) -> Reply {
        let cells = |&(key, value): &(i64, i64)| [key.to_string(), value.to_string(), document(key, value)];
        Reply::Rows(rows.iter().map(|row| cells(row).map(Some).to_vec()).collect())
    }

    #[test]
    fn a_row_that_an_index_misses_or_finds_wrongly_or_twice_is_a_violation() {
        // Numbers 9, 7 and 11: the tags 2, 4, 6 and 1; 0 and 2; 4.
        let found = rows_of(&rows(&[(1, 9 * SEATS_OF_VALUES), (2, 7 * SEATS_OF_VALUES), (3, 11 * SEATS_OF_VALUES)]));
        let all = found.unwrap();
        assert_eq!(tags_of(all[&1])[..4], [2, 4, 6, 1]);
        assert_eq!((tags_of(all[&2]), tags_of(all[&3])), (vec![0, 2], vec![4]));
        let answer = |keys: &[i64]| -> BTreeMap<i64, i64> { keys.iter().map(|key| (*key, all[key])).collect() };
        let holds = |question: Question, keys: &[i64]| question.check(&all, &answer(keys)).is_ok();
        assert!(
            holds(Question::Tag(2), &[1, 2]) && !holds(Question::Tag(2), &[1]) && !holds(Question::Tag(2), &[1, 2, 3])
        );
        assert!(holds(Question::OneOf(0, 4), &[1, 2, 3]) && !holds(Question::OneOf(0, 4), &[1, 3]));
        assert!(holds(Question::AllOf(4, 4), &[1]) && !holds(Question::AllOf(4, 4), &[1, 3]));
        let fault = rows_of(&rows(&[(1, 40), (1, 40)])).unwrap_err();
        assert!(fault.contains("twice"), "{fault}");
        let torn = Reply::Rows(vec![vec![Some("1".to_owned()), Some("40".to_owned()), Some("{}".to_owned())]]);
        assert!(rows_of(&torn).unwrap_err().contains("never written"));
    }

    #[test]
    fn a_seat_without_an_entry_and_an_entry_without_a_seat_are_violations() {
        let verdict = |is_held: bool, affected_rows: u64| {
            let mut workload = MultiValued::new(true, 2, 1, 1);
            let value = SEATS_OF_VALUES + if is_held { 0 } else { SEATS };
            let entry = workload.ledger.send(&[(5, Some(value))]);
            workload.ledger.acknowledge(entry);
            workload.on_audit(2, &rows(&[(5, value)])).unwrap();
            let position = 4 + MultiValued::questions().len();
            workload
                .on_audit(position - 1, &Reply::Done { affected_rows: 0, insert_id: 0, in_transaction: false })
                .unwrap();
            workload.on_audit(position, &Reply::Done { affected_rows, insert_id: 0, in_transaction: false })
        };
        assert_eq!((verdict(true, 0), verdict(false, 1)), (Ok(()), Ok(())));
        assert!(verdict(true, 1).is_err() && verdict(false, 0).is_err());
    }
}
