//! In which order each object was written, what each read saw of it, and what is wrong without looking at cycles.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{History, Key, Kind, Operation, Outcome, Seen};
use crate::level::Anomaly;

/// What is wrong, without a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The anomaly.
    pub anomaly: Anomaly,
    /// What was seen, as a sentence.
    pub text: String,
    /// The transaction that saw it, if it was one.
    pub transaction: Option<usize>,
}

/// A read of what others wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OuterRead {
    /// The transaction that read.
    pub transaction: usize,
    /// Its statement.
    pub statement: usize,
    /// The object.
    pub key: Key,
    /// Whether it locked what it found.
    pub locks: bool,
    /// What it saw.
    pub saw: Saw,
}

/// What a read saw of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saw {
    /// The first so many writes of a list or register.
    Version(usize),
    /// These members of a family.
    Members(BTreeSet<u64>),
}

/// Orders and reads of a history.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Whether each transaction was committed; one whose end is unknown was, if somebody saw a write of it.
    pub is_committed: Vec<bool>,
    /// Who wrote each version of lists and registers, from version 1 on; nobody knows who wrote some.
    pub writers: BTreeMap<Key, Vec<Option<usize>>>,
    /// The committed members of families and who wrote them.
    pub members: BTreeMap<Key, BTreeMap<u64, usize>>,
    /// What transactions of every outcome saw of others.
    pub reads: Vec<OuterRead>,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

/// Where a value was written.
#[derive(Clone, Copy, Debug)]
struct WriteAt {
    transaction: usize,
    /// Its place among the lasting writes of its transaction to the object.
    place: usize,
    is_undone: bool,
    /// Whether the transaction wrote the object again afterwards.
    is_replaced: bool,
}

impl Orders {
    /// Finds the orders of a history.
    pub fn of(history: &History) -> Self {
        let mut finder = Finder { history, writes: BTreeMap::new(), values: BTreeMap::new(), orders: Self::default() };
        finder.index_writes();
        finder.decide_outcomes();
        finder.order_lists();
        finder.order_registers();
        finder.gather_members();
        for transaction in 0..history.transactions.len() {
            finder.follow_reads(transaction);
        }
        finder.orders
    }
}

struct Finder<'a> {
    history: &'a History,
    writes: BTreeMap<(Key, u64), WriteAt>,
    /// The values of lists in their order.
    values: BTreeMap<Key, Vec<u64>>,
    orders: Orders,
}

impl Finder<'_> {
    fn index_writes(&mut self) {
        for (transaction, record) in self.history.transactions.iter().enumerate() {
            let mut latest: BTreeMap<Key, (u64, usize)> = BTreeMap::new();
            for operation in record.operations() {
                let Operation::Write { key, value, is_undone } = *operation else { continue };
                let mut place = 0;
                if !is_undone {
                    if let Some((before, places)) = latest.get(&key).copied() {
                        place = places + 1;
                        if let Some(replaced) = self.writes.get_mut(&(key, before)) {
                            replaced.is_replaced = true;
                        }
                    }
                    latest.insert(key, (value, place));
                }
                let write = WriteAt { transaction, place, is_undone, is_replaced: false };
                if self.writes.insert((key, value), write).is_some() {
                    self.fault(
                        Anomaly::InventedValue,
                        format!("{value} was written to {key} twice"),
                        Some(transaction),
                    );
                }
            }
        }
    }

    fn decide_outcomes(&mut self) {
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        let mut note = |writes: &BTreeMap<(Key, u64), WriteAt>, key: Key, values: &Seen, reader: Option<usize>| {
            let writers = values_of(values).into_iter().filter_map(|value| writes.get(&(key, value)));
            seen.extend(writers.map(|write| write.transaction).filter(|&writer| Some(writer) != reader));
        };
        for (reader, record) in self.history.transactions.iter().enumerate() {
            for operation in record.operations() {
                if let Operation::Read { key, seen, .. } = operation {
                    note(&self.writes, *key, seen, Some(reader));
                }
            }
        }
        for (&key, seen) in &self.history.finals {
            note(&self.writes, key, seen, None);
        }
        let outcomes = self.history.transactions.iter().enumerate();
        self.orders.is_committed = outcomes
            .map(|(position, record)| match record.outcome {
                Outcome::Committed => true,
                Outcome::Aborted => false,
                Outcome::Unknown => seen.contains(&position),
            })
            .collect();
    }

    /// The writes that lasted, of transactions that were committed.
    fn committed_writes(&self, kind: Kind) -> BTreeMap<Key, Vec<(u64, usize)>> {
        let mut found: BTreeMap<Key, Vec<(u64, usize)>> = BTreeMap::new();
        for (&(key, value), write) in &self.writes {
            if key.kind == kind && !write.is_undone && self.orders.is_committed[write.transaction] {
                found.entry(key).or_default().push((value, write.transaction));
            }
        }
        found
    }

    fn order_lists(&mut self) {
        let mut orders: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        for (position, record) in self.history.transactions.iter().enumerate() {
            for operation in record.operations().filter(|_| self.orders.is_committed[position]) {
                if let Operation::Read { key, seen: Seen::Values(values), .. } = operation
                    && key.kind == Kind::List
                {
                    let longest = orders.entry(*key).or_default();
                    if values.len() > longest.len() {
                        longest.clone_from(values);
                    }
                }
            }
        }
        for (&key, seen) in &self.history.finals {
            if let (Kind::List, Seen::Values(values)) = (key.kind, seen) {
                orders.insert(key, values.clone());
            }
        }
        for (key, written) in self.committed_writes(Kind::List) {
            let order = orders.entry(key).or_default();
            if self.history.finals.contains_key(&key) {
                for (value, _) in written.into_iter().filter(|(value, _)| !order.contains(value)) {
                    self.fault(
                        Anomaly::LostWrite,
                        format!("{value}, appended to {key}, is not there at the end"),
                        None,
                    );
                }
            }
        }
        for (&key, order) in &orders {
            let writers = self.judge_order(key, order);
            self.orders.writers.insert(key, writers);
        }
        self.values = orders;
    }

    /// Who wrote the values of a list; each must be there once, and those of a transaction in its order.
    fn judge_order(&mut self, key: Key, order: &[u64]) -> Vec<Option<usize>> {
        let mut met = BTreeSet::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        let mut writers = Vec::with_capacity(order.len());
        for &value in order {
            if !met.insert(value) {
                self.fault(Anomaly::ConflictingOrder, format!("{key} has {value} twice: {order:?}"), None);
            }
            let write = self.writes.get(&(key, value)).copied();
            if let Some(write) = write
                && places.insert(write.transaction, write.place).is_some_and(|before| before >= write.place)
            {
                let text = format!("{key} has {value} before what its transaction appended earlier: {order:?}");
                self.fault(Anomaly::ConflictingOrder, text, None);
            }
            writers.push(self.committed_writer(key, value, None));
        }
        writers
    }

    fn order_registers(&mut self) {
        let mut versions: BTreeMap<Key, BTreeMap<u64, u64>> = BTreeMap::new();
        let mut faults = Vec::new();
        let mut note = |key: Key, version: u64, value: u64, reader: Option<usize>| {
            let before = *versions.entry(key).or_default().entry(version).or_insert(value);
            if before != value {
                faults.push((format!("version {version} of {key} was {before} and {value}"), reader));
            }
        };
        for (position, record) in self.history.transactions.iter().enumerate() {
            for operation in record.operations() {
                let Operation::Read { key, seen: Seen::Version { version, value }, .. } = operation else { continue };
                let writer = self.writes.get(&(*key, *value)).map(|write| write.transaction);
                if writer != Some(position) || self.orders.is_committed[position] {
                    note(*key, *version, *value, Some(position));
                }
            }
        }
        for (&key, seen) in &self.history.finals {
            if let Seen::Version { version, value } = *seen {
                note(key, version, value, None);
            }
        }
        for (text, reader) in faults {
            self.fault(Anomaly::ConflictingOrder, text, reader);
        }
        self.count_versions();
        for (key, versions) in versions {
            let count = versions.keys().next_back().copied().unwrap_or(0);
            let writer = |version: u64| {
                let value = versions.get(&version)?;
                Some(self.writes.get(&(key, *value))?.transaction).filter(|&writer| self.orders.is_committed[writer])
            };
            let writers = (1..=count).map(writer).collect();
            self.orders.writers.insert(key, writers);
        }
    }

    /// A register has as many versions at the end as were committed, and those whose end nobody knows at most.
    fn count_versions(&mut self) {
        let mut committed: BTreeMap<Key, u64> = BTreeMap::new();
        let mut unknown: BTreeMap<Key, u64> = BTreeMap::new();
        for (&(key, _), write) in self.writes.iter().filter(|((key, _), _)| key.kind == Kind::Register) {
            if write.is_undone {
                continue;
            }
            if self.orders.is_committed[write.transaction] {
                *committed.entry(key).or_default() += 1;
            } else if self.history.transactions[write.transaction].outcome == Outcome::Unknown {
                *unknown.entry(key).or_default() += 1;
            }
        }
        for (&key, seen) in &self.history.finals {
            let Seen::Version { version, .. } = *seen else { continue };
            let least = committed.get(&key).copied().unwrap_or(0);
            let most = least + unknown.get(&key).copied().unwrap_or(0);
            let text = format!("{key} ends with version {version} after {least} committed writes");
            if version < least {
                self.fault(Anomaly::LostWrite, text, None);
            } else if version > most {
                self.fault(Anomaly::InventedValue, text, None);
            }
        }
    }

    fn gather_members(&mut self) {
        for (key, written) in self.committed_writes(Kind::Family) {
            let found = self.history.finals.get(&key).map(values_of);
            for &(value, _) in &written {
                if found.as_ref().is_some_and(|found| !found.contains(&value)) {
                    self.fault(Anomaly::LostWrite, format!("{value}, put into {key}, is not there at the end"), None);
                }
            }
            self.orders.members.insert(key, written.into_iter().collect());
        }
        for (&key, seen) in self.history.finals.iter().filter(|(key, _)| key.kind == Kind::Family) {
            for value in values_of(seen) {
                self.committed_writer(key, value, None);
            }
        }
    }

    /// What a transaction read, judged against its own writes until then and the orders found.
    fn follow_reads(&mut self, transaction: usize) {
        let history = self.history;
        let mut own: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        for (statement, record) in history.transactions[transaction].statements.iter().enumerate() {
            for operation in &record.operations {
                match operation {
                    Operation::Write { is_undone: true, .. } => {}
                    Operation::Write { key, value, .. } => own.entry(*key).or_default().push(*value),
                    Operation::Read { key, seen, locks } => {
                        let own = own.get(key).map_or(&[][..], Vec::as_slice);
                        let saw = self.judge_read(transaction, *key, seen, own);
                        let read = saw.map(|saw| OuterRead { transaction, statement, key: *key, locks: *locks, saw });
                        self.orders.reads.extend(read);
                    }
                }
            }
        }
    }

    fn judge_read(&mut self, reader: usize, key: Key, seen: &Seen, own: &[u64]) -> Option<Saw> {
        match (key.kind, seen) {
            (Kind::List, Seen::Values(values)) => self.judge_list(reader, key, values, own),
            (Kind::Register, Seen::Version { version, value }) => {
                self.judge_register(reader, key, *version, *value, own)
            }
            (Kind::Family, Seen::Values(values)) => self.judge_family(reader, key, values, own),
            _ => {
                self.fault(Anomaly::InventedValue, format!("{key} was read as {seen:?}"), Some(reader));
                None
            }
        }
    }

    fn judge_list(&mut self, reader: usize, key: Key, values: &[u64], own: &[u64]) -> Option<Saw> {
        let Some(before) = values.strip_suffix(own) else {
            let text = format!("{key} was {values:?} after the own appends {own:?}");
            self.fault(Anomaly::OwnWriteMissed, text, Some(reader));
            return None;
        };
        let order = self.values.get(&key).map_or(&[][..], Vec::as_slice);
        if !order.starts_with(before) {
            let faults = self.orders.faults.len();
            for &value in before {
                self.committed_writer(key, value, Some(reader));
            }
            // A value that must not be there explains the wrong order.
            if self.orders.faults.len() == faults {
                let order = self.values.get(&key).cloned().unwrap_or_default();
                let text = format!("{key} was {before:?}, elsewhere {order:?}");
                self.fault(Anomaly::ConflictingOrder, text, Some(reader));
            }
            return None;
        }
        if let Some(&last) = before.last() {
            self.committed_writer(key, last, Some(reader))?;
            self.judge_last(reader, key, last);
        }
        own.is_empty().then_some(Saw::Version(before.len()))
    }

    fn judge_register(&mut self, reader: usize, key: Key, version: u64, value: u64, own: &[u64]) -> Option<Saw> {
        if let Some(&last) = own.last() {
            if value != last {
                let text = format!("{key} was {value} after the own write {last}");
                self.fault(Anomaly::OwnWriteMissed, text, Some(reader));
            }
            return None;
        }
        if version == 0 {
            if value != 0 {
                self.fault(Anomaly::InventedValue, format!("{key} began as {value}"), Some(reader));
            }
            return Some(Saw::Version(0));
        }
        self.committed_writer(key, value, Some(reader))?;
        self.judge_last(reader, key, value);
        Some(Saw::Version(version as usize))
    }

    fn judge_family(&mut self, reader: usize, key: Key, values: &[u64], own: &[u64]) -> Option<Saw> {
        let members: BTreeSet<u64> = values.iter().copied().collect();
        if members.len() != values.len() {
            self.fault(Anomaly::ConflictingOrder, format!("{key} has a member twice: {values:?}"), Some(reader));
        }
        if let Some(missed) = own.iter().find(|value| !members.contains(value)) {
            let text = format!("{key} was {values:?} after {missed} was put into it");
            self.fault(Anomaly::OwnWriteMissed, text, Some(reader));
        }
        let others: BTreeSet<u64> = members.into_iter().filter(|value| !own.contains(value)).collect();
        for &value in &others {
            self.committed_writer(key, value, Some(reader));
        }
        Some(Saw::Members(others))
    }

    /// The last write seen is not one that its transaction replaced.
    fn judge_last(&mut self, reader: usize, key: Key, value: u64) {
        if self.writes.get(&(key, value)).is_some_and(|write| write.is_replaced) {
            let text = format!("{key} was seen up to {value}, which its transaction wrote over");
            self.fault(Anomaly::IntermediateRead, text, Some(reader));
        }
    }

    /// The committed writer of a value that was seen; nobody is a fault.
    fn committed_writer(&mut self, key: Key, value: u64, reader: Option<usize>) -> Option<usize> {
        let write = self.writes.get(&(key, value)).copied();
        let (anomaly, text) = match write {
            None => (Anomaly::InventedValue, format!("{key} had {value}, which nobody wrote")),
            Some(write) if write.is_undone => {
                (Anomaly::AbortedRead, format!("{key} had {value}, which was taken back to a savepoint"))
            }
            Some(write) if Some(write.transaction) == reader => {
                (Anomaly::InventedValue, format!("{key} had {value} before its reader wrote it"))
            }
            Some(write) if !self.orders.is_committed[write.transaction] => {
                (Anomaly::AbortedRead, format!("{key} had {value} of a transaction that was undone"))
            }
            Some(write) => return Some(write.transaction),
        };
        self.fault(anomaly, text, reader);
        None
    }

    fn fault(&mut self, anomaly: Anomaly, text: String, transaction: Option<usize>) {
        self.orders.faults.push(Fault { anomaly, text, transaction });
    }
}

fn values_of(seen: &Seen) -> Vec<u64> {
    match seen {
        Seen::Values(values) => values.clone(),
        Seen::Version { version: 0, .. } => Vec::new(),
        Seen::Version { value, .. } => vec![*value],
    }
}
