//! Transactions on rows of which the ledger knows every value. Each session has keys of its own and gives
//! each write a new value, so that every row found after a restart identifies the transaction that wrote it.
//! All transactions also compete for one counter.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use junctor_kernel::{Duration, Random};

use super::{Counter, DEADLOCK, Step, Workload, changed, succeeded};
use crate::ledger::{Durability, EntryId, Ledger};
use crate::statement::{Reply, Statement, integer};

/// One in this many transactions writes all keys of its session.
const LONG_ONE_IN: u64 = 10;

/// The workload `durable_rows`, or `durable_long_rows`, whose rows have long texts that change in places.
#[derive(Debug)]
pub struct DurableRows {
    durability: Durability,
    texts: Texts,
    ledger: Ledger,
    counter: Counter,
    sessions: Vec<Session>,
    /// Keys of each session.
    keys: i64,
    next_value: i64,
    /// The rows of the primary scan of the running check, by key.
    scanned: BTreeMap<i64, i64>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Idle,
    /// Reads an own key, which must have this value.
    Read {
        key: i64,
        value: Option<i64>,
    },
    Transaction(Transaction),
}

#[derive(Debug)]
struct Transaction {
    /// Each key with its value before and after.
    writes: Vec<(i64, Option<i64>, Option<i64>)>,
    counts: bool,
    ending: Ending,
    /// Statements answered, including BEGIN.
    done: usize,
    /// Set while the outcome is open.
    entry: Option<EntryId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// A single statement without BEGIN.
    Autocommit,
    Commit,
    Rollback,
}

impl DurableRows {
    /// Creates the workload with this number of sessions, rounds of each session, and keys of each session.
    /// Commits promise `durability`.
    pub fn new(durability: Durability, sessions: usize, rounds: u32, keys: i64) -> Self {
        let session = |_| Session { rounds_left: rounds, work: Work::Idle };
        Self {
            durability,
            texts: Texts::Short,
            ledger: Ledger::default(),
            counter: Counter::default(),
            sessions: (0..sessions).map(session).collect(),
            keys: keys.max(1),
            next_value: 0,
            scanned: BTreeMap::new(),
        }
    }

    /// The workload with long rows.
    pub fn with_long_rows(self) -> Self {
        Self { texts: Texts::Long, ..self }
    }

    fn draw(&mut self, session: usize, random: &mut Random) -> Option<Work> {
        let step = self.sessions.len() as i64;
        let own = (0..self.keys).map(|number| number * step + session as i64);
        // A statement of an earlier connection may still change an uncertain key.
        let mut certain: Vec<(i64, Option<i64>)> =
            own.filter_map(|key| Some((key, self.ledger.certain_value(key)?))).collect();
        if certain.is_empty() {
            return None;
        }
        if random.one_in(5) {
            let (key, value) = certain[random.below(certain.len() as u64) as usize];
            return Some(Work::Read { key, value });
        }
        let count = if random.one_in(LONG_ONE_IN) { certain.len() } else { 1 + random.below(4) as usize };
        let mut writes = Vec::new();
        while writes.len() < count && !certain.is_empty() {
            let (key, before) = certain.swap_remove(random.below(certain.len() as u64) as usize);
            let deletes = before.is_some() && random.one_in(4);
            self.next_value += 1;
            writes.push((key, before, (!deletes).then_some(self.next_value)));
        }
        let counts = random.one_in(2);
        let ending = match random.below(8) {
            0 => Ending::Rollback,
            1..4 if writes.len() == 1 && !counts => Ending::Autocommit,
            _ => Ending::Commit,
        };
        let done = usize::from(ending == Ending::Autocommit);
        Some(Work::Transaction(Transaction { writes, counts, ending, done, entry: None }))
    }

    /// The statements that check all rows in one snapshot.
    fn check_statements(&self) -> Vec<Statement> {
        let texts = [
            "START TRANSACTION",
            "SELECT id, v, k, text FROM ledger",
            "SELECT id, v, k FROM ledger WHERE k >= 0 ORDER BY k",
            "SELECT id, v, k FROM ledger WHERE v >= 0 ORDER BY v",
            "SELECT n FROM ledger_counter",
            "COMMIT",
        ];
        texts.map(Statement::plain).to_vec()
    }

    fn on_check(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        match position {
            1 => self.scanned = self.texts.rows_of(reply)?,
            2 | 3 => {
                let name = if position == 2 { "k_index" } else { "v_index" };
                let by_index = self.texts.rows_of(reply)?;
                if by_index != self.scanned {
                    return Err(format!("index {name} disagrees: {}", difference(&self.scanned, &by_index)));
                }
            }
            4 => {
                let counted = match reply.integers()?.as_slice() {
                    [row] => row[0],
                    rows => return Err(format!("the counter has {} rows", rows.len())),
                };
                let floor = if self.durability == Durability::Disk { self.counter.acknowledged() } else { 0 };
                self.counter.check("the counter", counted, floor)?;
                self.counter.settle(counted);
            }
            5 => return self.ledger.check(&std::mem::take(&mut self.scanned), self.durability),
            _ => succeeded(reply)?,
        }
        Ok(())
    }
}

/// A text without repetitions.
static WORDS: LazyLock<String> = LazyLock::new(|| (0..4_000).map(|word| format!("{word:x} ")).collect());

/// How a row's text follows from its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Texts {
    Short,
    Long,
}

impl Texts {
    fn of(self, value: i64) -> String {
        let short = format!("{value}:{}", "x".repeat(value.rem_euclid(90) as usize));
        if self == Texts::Short {
            return short;
        }
        // Rows of a page, rows with overflow pages and short rows. Changes of the length follow each other,
        // and so do changes of a few bytes.
        let bytes = [0, 1_200, 12_000, 11_950][(value.rem_euclid(160) / 40) as usize];
        format!("{}{short}{}{value}", &WORDS[..bytes / 2], &WORDS[..bytes])
    }

    /// The value of each key. Checks the other columns, which follow from the value.
    fn rows_of(self, reply: &Reply) -> Result<BTreeMap<i64, i64>, String> {
        let mut found = BTreeMap::new();
        for row in reply.rows()? {
            let (key, value) = (integer(&row[0])?, integer(&row[1])?);
            let text = row.get(3).is_none_or(|text| text.as_deref() == Some(self.of(value).as_str()));
            if integer(&row[2])? != k_of(value) || !text {
                return Err(format!("row {row:?} was never written in this form"));
            }
            if found.insert(key, value).is_some() {
                return Err(format!("key {key} occurs twice"));
            }
        }
        Ok(found)
    }
}

fn k_of(value: i64) -> i64 {
    value % 7
}

fn difference(one: &BTreeMap<i64, i64>, other: &BTreeMap<i64, i64>) -> String {
    let differing = one.keys().chain(other.keys()).find(|key| one.get(key) != other.get(key));
    differing.map_or_else(String::new, |key| {
        format!("key {key} has {:?} in the table and {:?} in the index", one.get(key), other.get(key))
    })
}

impl Transaction {
    /// Whether the next statement decides the outcome.
    fn is_ending(&self) -> bool {
        self.ending == Ending::Autocommit || self.done > self.writes.len() + usize::from(self.counts)
    }

    fn statement(&self, texts: Texts) -> Statement {
        if self.done == 0 {
            return Statement::plain("BEGIN");
        }
        match self.writes.get(self.done - 1) {
            Some(&(key, None, Some(value))) => Statement::with(
                "INSERT INTO ledger VALUES (?, ?, ?, ?)",
                [key.into(), value.into(), k_of(value).into(), texts.of(value).into()],
            ),
            Some(&(key, _, Some(value))) => Statement::with(
                "UPDATE ledger SET v = ?, k = ?, text = ? WHERE id = ?",
                [value.into(), k_of(value).into(), texts.of(value).into(), key.into()],
            ),
            Some(&(key, _, None)) => Statement::with("DELETE FROM ledger WHERE id = ?", [key.into()]),
            None if !self.is_ending() => Statement::plain("UPDATE ledger_counter SET n = n + 1 WHERE id = 0"),
            None if self.ending == Ending::Rollback => Statement::plain("ROLLBACK"),
            None => Statement::plain("COMMIT"),
        }
    }
}

impl Workload for DurableRows {
    fn name(&self) -> &'static str {
        match self.texts {
            Texts::Short => "durable_rows",
            Texts::Long => "durable_long_rows",
        }
    }

    fn setup(&self) -> Vec<Statement> {
        let texts = [
            "CREATE TABLE ledger (id INT NOT NULL PRIMARY KEY, v BIGINT NOT NULL, k INT NOT NULL, \
             text VARCHAR(200) NOT NULL, UNIQUE KEY v_index (v), KEY k_index (k)) PARTITION BY KEY (id) PARTITIONS 4",
            "CREATE TABLE ledger_counter (id INT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)",
            "INSERT INTO ledger_counter VALUES (0, 0)",
        ];
        let mut statements = texts.map(Statement::plain).to_vec();
        if self.texts == Texts::Long {
            statements.push(Statement::plain("ALTER TABLE ledger MODIFY text MEDIUMTEXT NOT NULL"));
        }
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        if let Work::Idle = self.sessions[session].work {
            if self.sessions[session].rounds_left == 0 {
                return Step::Done;
            }
            if random.one_in(6) {
                return Step::Pause(Duration::from_micros(random.below(3_000)));
            }
            self.sessions[session].rounds_left -= 1;
            let Some(work) = self.draw(session, random) else {
                return Step::Pause(Duration::from_micros(random.below(3_000)));
            };
            self.sessions[session].work = work;
        }
        match &mut self.sessions[session].work {
            Work::Transaction(transaction) => {
                if transaction.is_ending() && transaction.ending != Ending::Rollback {
                    let writes: Vec<_> = transaction.writes.iter().map(|&(key, _, value)| (key, value)).collect();
                    transaction.entry = Some(self.ledger.send(&writes));
                    if transaction.counts {
                        self.counter.attempt();
                    }
                }
                Step::Run(transaction.statement(self.texts))
            }
            Work::Read { key, .. } => {
                Step::Run(Statement::with("SELECT id, v, k, text FROM ledger WHERE id = ?", [(*key).into()]))
            }
            Work::Idle => Step::Pause(Duration::from_micros(1)),
        }
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let mut transaction = match std::mem::replace(&mut self.sessions[session].work, Work::Idle) {
            Work::Transaction(transaction) => transaction,
            Work::Read { key, value } => {
                let found = self.texts.rows_of(reply)?;
                return match found.get(&key).copied() == value && found.len() <= 1 {
                    true => Ok(()),
                    false => Err(format!("key {key} was read as {found:?} instead of {value:?}")),
                };
            }
            Work::Idle => return Err("an answer without a statement".to_owned()),
        };
        // A deadlock rolls the transaction back. A COMMIT cannot meet one, a single statement can.
        let may_fail = !transaction.is_ending() || transaction.ending == Ending::Autocommit;
        if reply.errno() == DEADLOCK && may_fail {
            if let Some(entry) = transaction.entry {
                self.ledger.fail(entry);
            }
            return Ok(());
        }
        if !transaction.is_ending() || transaction.ending == Ending::Autocommit {
            changed(reply, u64::from(transaction.done > 0))?;
        }
        succeeded(reply)?;
        if let Some(entry) = transaction.entry {
            self.ledger.acknowledge(entry);
            if transaction.counts {
                self.counter.acknowledge();
            }
        }
        if !transaction.is_ending() {
            transaction.done += 1;
            self.sessions[session].work = Work::Transaction(transaction);
        }
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        let work = std::mem::replace(&mut self.sessions[session].work, Work::Idle);
        if let Work::Transaction(Transaction { entry: Some(entry), .. }) = work {
            self.ledger.leave_unknown(entry);
        }
    }

    fn recheck(&self) -> Vec<Statement> {
        self.check_statements()
    }

    fn on_recheck(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        self.on_check(position, reply)
    }

    fn audit(&self) -> Vec<Statement> {
        self.check_statements()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        self.on_check(position, reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Cell, Parameter};

    const SESSIONS: usize = 3;

    /// How the toy database recovers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Recovery {
        Right,
        /// Loses the last transactions, as after an acknowledgement before the sync.
        LosesLast,
        LosesMiddle,
        LosesHalf,
        LosesIndexEntry,
        LosesCount,
        KeepsUncommitted,
    }

    #[derive(Clone, Copy, Debug)]
    enum Write {
        Put(i64, i64),
        Delete(i64),
        Count,
    }

    /// A database of a few lines: a log of committed transactions.
    #[derive(Default)]
    struct Toy {
        log: Vec<Vec<Write>>,
        open: [Option<Vec<Write>>; SESSIONS],
        missing_entry: Option<i64>,
    }

    impl Toy {
        fn rows(&self, session: Option<usize>) -> (BTreeMap<i64, i64>, i64) {
            let own = session.and_then(|session| self.open[session].as_ref());
            let (mut rows, mut count) = (BTreeMap::new(), 0);
            for write in self.log.iter().flatten().chain(own.into_iter().flatten()) {
                match *write {
                    Write::Put(key, value) => drop(rows.insert(key, value)),
                    Write::Delete(key) => drop(rows.remove(&key)),
                    Write::Count => count += 1,
                }
            }
            (rows, count)
        }

        fn execute(&mut self, session: usize, statement: &Statement) -> Reply {
            let number = |position: usize| match &statement.parameters[position] {
                Parameter::Integer(number) => *number,
                other => panic!("{other:?} is no integer"),
            };
            let write = match statement.text.split(' ').take(3).collect::<Vec<_>>()[..] {
                ["BEGIN"] | ["START", ..] => {
                    self.open[session] = Some(Vec::new());
                    return done(0);
                }
                ["COMMIT"] => {
                    self.log.extend(self.open[session].take());
                    return done(0);
                }
                ["ROLLBACK"] => {
                    self.open[session] = None;
                    return done(0);
                }
                ["SELECT", "n", _] => return Reply::Rows(vec![vec![Some(self.rows(None).1.to_string())]]),
                ["SELECT", ..] => {
                    let keys = (!statement.parameters.is_empty()).then(|| number(0));
                    let by_index = statement.text.contains("ORDER BY");
                    let (mut rows, _) = self.rows(Some(session));
                    rows.retain(|key, _| keys.is_none_or(|wanted| *key == wanted));
                    rows.retain(|key, _| !by_index || self.missing_entry != Some(*key));
                    let row = |(key, value): (i64, i64)| -> Vec<Cell> {
                        [key.to_string(), value.to_string(), k_of(value).to_string(), Texts::Short.of(value)]
                            .map(Some)
                            .to_vec()
                    };
                    return Reply::Rows(rows.into_iter().map(row).collect());
                }
                ["INSERT", ..] => Write::Put(number(0), number(1)),
                ["UPDATE", "ledger", _] => Write::Put(number(3), number(0)),
                ["UPDATE", ..] => Write::Count,
                _ => Write::Delete(number(0)),
            };
            match &mut self.open[session] {
                Some(open) => open.push(write),
                None => self.log.push(vec![write]),
            }
            done(1)
        }

        /// Loses what the recovery loses. Returns false if there was nothing to lose.
        fn crash(&mut self, recovery: Recovery, random: &mut Random) -> bool {
            let open: Vec<Vec<Write>> = self.open.iter_mut().filter_map(Option::take).collect();
            let (rows, count) = self.rows(None);
            match recovery {
                Recovery::Right => {}
                Recovery::LosesLast => drop(self.log.pop()),
                Recovery::LosesMiddle => drop(self.log.remove(self.log.len() / 2)),
                Recovery::LosesHalf => {
                    let torn = self.log.iter_mut().rev().find(|writes| writes.len() > 1);
                    torn.into_iter().for_each(|writes| writes.truncate(writes.len() - 1));
                }
                Recovery::LosesIndexEntry => {
                    let position = random.below(rows.len() as u64) as usize;
                    self.missing_entry = rows.keys().nth(position).copied();
                    return self.missing_entry.is_some();
                }
                Recovery::LosesCount => {
                    self.log.iter_mut().for_each(|writes| writes.retain(|write| !matches!(write, Write::Count)))
                }
                Recovery::KeepsUncommitted => self.log.extend(open),
            }
            self.rows(None) != (rows, count)
        }
    }

    fn done(affected_rows: u64) -> Reply {
        Reply::Done { affected_rows, insert_id: 0, in_transaction: false }
    }

    /// Runs sessions in a drawn order, with crashes. Returns whether anything was lost, and the verdict.
    fn run(recovery: Recovery, durability: Durability, seed: u64) -> (bool, Result<(), String>) {
        let mut workload = DurableRows::new(durability, SESSIONS, 40, 8);
        let (mut toy, mut random) = (Toy::default(), Random::new(seed));
        let mut has_lost = false;
        for _ in 0..4 {
            for _ in 0..120 {
                let session = random.below(SESSIONS as u64) as usize;
                if let Step::Run(statement) = workload.next(session, &mut random) {
                    let reply = toy.execute(session, &statement);
                    workload.on_reply(session, &reply).unwrap();
                }
            }
            // One statement is under way, and may have been executed.
            if let Step::Run(statement) = workload.next(0, &mut random)
                && random.one_in(2)
            {
                toy.execute(0, &statement);
            }
            has_lost |= toy.crash(recovery, &mut random);
            (0..SESSIONS).for_each(|session| workload.on_closed(session));
            for (position, statement) in workload.recheck().iter().enumerate() {
                let reply = toy.execute(0, statement);
                if let Err(fault) = workload.on_recheck(position, &reply) {
                    return (has_lost, Err(fault));
                }
            }
        }
        (has_lost, Ok(()))
    }

    #[test]
    fn a_correct_recovery_passes_and_every_defect_is_caught() {
        for seed in 0..30 {
            assert_eq!(run(Recovery::Right, Durability::Disk, seed).1, Ok(()), "seed {seed}");
        }
        let wrong = [
            (Recovery::LosesLast, "lost transaction"),
            (Recovery::LosesMiddle, "lost transaction"),
            (Recovery::LosesHalf, "part of a transaction"),
            (Recovery::LosesIndexEntry, "index k_index disagrees"),
            (Recovery::LosesCount, "lost update: the counter"),
            (Recovery::KeepsUncommitted, "invented value"),
        ];
        for (recovery, message) in wrong {
            let runs: Vec<_> = (0..30).map(|seed| run(recovery, Durability::Disk, seed)).collect();
            assert!(runs.iter().any(|(has_lost, _)| *has_lost), "{recovery:?}");
            let faults: Vec<&String> = runs.iter().filter_map(|(_, verdict)| verdict.as_ref().err()).collect();
            assert!(faults.len() >= 20, "{recovery:?} is caught by {} of 30 seeds", faults.len());
            assert!(faults.iter().any(|fault| fault.contains(message)), "{recovery:?}: {faults:?}");
        }
    }

    #[test]
    fn with_memory_durability_only_the_last_transactions_may_be_lost() {
        for seed in 0..30 {
            assert_eq!(run(Recovery::LosesLast, Durability::Memory, seed).1, Ok(()), "seed {seed}");
        }
        let caught = |recovery| (0..30).filter(|&seed| run(recovery, Durability::Memory, seed).1.is_err()).count();
        assert!(caught(Recovery::LosesMiddle) >= 15 && caught(Recovery::LosesHalf) >= 15);
    }
}
