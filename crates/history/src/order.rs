//! Recovers the order of writes of each object and what each read observed, and finds the anomalies that need
//! no graph.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{History, Key, Kind, Operation, Outcome, ReadValue};
use crate::level::Anomaly;

/// An anomaly found without a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The anomaly.
    pub anomaly: Anomaly,
    /// The evidence, as a sentence.
    pub text: String,
    /// The transaction that observed it, if any.
    pub transaction: Option<usize>,
}

/// A read of writes of other transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalRead {
    /// The index of the reading transaction.
    pub transaction: usize,
    /// The index of the statement within it.
    pub statement: usize,
    /// The object that was read.
    pub key: Key,
    /// Whether it was a locking read.
    pub locks: bool,
    /// The writes that the read observed.
    pub observed: ObservedWrites,
}

/// The writes of other transactions that a read observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedWrites {
    /// The first n writes of a list or register.
    Version(usize),
    /// These members of a family.
    Members(BTreeSet<u64>),
}

/// The version orders and the reads of a history.
#[derive(Clone, Debug, Default)]
pub struct VersionOrders {
    /// Whether each transaction committed. One with an unknown outcome did if another transaction observed
    /// its writes.
    pub is_committed: Vec<bool>,
    /// The writer of each version of a list or register, from version 1 on; `None` where it is unknown.
    pub writers: BTreeMap<Key, Vec<Option<usize>>>,
    /// The committed members of each family and their writers.
    pub members: BTreeMap<Key, BTreeMap<u64, usize>>,
    /// The reads of all transactions, whatever their outcome.
    pub reads: Vec<ExternalRead>,
    /// The anomalies found so far.
    pub faults: Vec<Fault>,
}

/// A write.
#[derive(Clone, Copy, Debug)]
struct WriteAt {
    transaction: usize,
    /// The write's position among its transaction's writes to the object that were not undone.
    place: usize,
    is_undone: bool,
    /// Whether the transaction later wrote the object again.
    is_replaced: bool,
}

impl VersionOrders {
    /// Recovers the orders of a history.
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
    /// The values of each list, in order.
    values: BTreeMap<Key, Vec<u64>>,
    orders: VersionOrders,
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
        let mut note = |writes: &BTreeMap<(Key, u64), WriteAt>, key: Key, values: &ReadValue, reader: Option<usize>| {
            let writers = values_of(values).into_iter().filter_map(|value| writes.get(&(key, value)));
            // A transaction that reads its own writes proves nothing about its commit.
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

    /// The writes of committed transactions that were not undone.
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
            // A read of an aborted transaction may end with its own appends, which have no place in the
            // order.
            for operation in record.operations().filter(|_| self.orders.is_committed[position]) {
                if let Operation::Read { key, seen: ReadValue::Values(values), .. } = operation
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
            if let (Kind::List, ReadValue::Values(values)) = (key.kind, seen) {
                orders.insert(key, values.clone());
            }
        }
        for (key, written) in self.committed_writes(Kind::List) {
            let order = orders.entry(key).or_default();
            if self.history.finals.contains_key(&key) {
                for (value, _) in written.into_iter().filter(|(value, _)| !order.contains(value)) {
                    self.fault(Anomaly::LostWrite, format!("{value}, appended to {key}, is missing at the end"), None);
                }
            }
        }
        for (&key, order) in &orders {
            let writers = self.check_order(key, order);
            self.orders.writers.insert(key, writers);
        }
        self.values = orders;
    }

    /// The writers of a list's values. Each value may occur once, and a transaction's values must be in its
    /// own order.
    fn check_order(&mut self, key: Key, order: &[u64]) -> Vec<Option<usize>> {
        let mut values_seen = BTreeSet::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        let mut writers = Vec::with_capacity(order.len());
        for &value in order {
            if !values_seen.insert(value) {
                self.fault(Anomaly::ConflictingOrder, format!("{key} contains {value} twice: {order:?}"), None);
            }
            let write = self.writes.get(&(key, value)).copied();
            if let Some(write) = write
                && places.insert(write.transaction, write.place).is_some_and(|before| before >= write.place)
            {
                let text = format!("{key} has {value} before an earlier append of the same transaction: {order:?}");
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
                let Operation::Read { key, seen: ReadValue::Version { version, value }, .. } = operation else {
                    continue;
                };
                let writer = self.writes.get(&(*key, *value)).map(|write| write.transaction);
                // The version number of an aborted write is used again by the next writer.
                if writer != Some(position) || self.orders.is_committed[position] {
                    note(*key, *version, *value, Some(position));
                }
            }
        }
        for (&key, seen) in &self.history.finals {
            if let ReadValue::Version { version, value } = *seen {
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

    /// Checks that a register ends with one version for each committed write, plus at most one for each write
    /// with an unknown outcome.
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
            let ReadValue::Version { version, .. } = *seen else { continue };
            let version_min = committed.get(&key).copied().unwrap_or(0);
            let version_max = version_min + unknown.get(&key).copied().unwrap_or(0);
            let text = format!("{key} ends with version {version} after {version_min} committed writes");
            if version < version_min {
                self.fault(Anomaly::LostWrite, text, None);
            } else if version > version_max {
                self.fault(Anomaly::InventedValue, text, None);
            }
        }
    }

    fn gather_members(&mut self) {
        for (key, written) in self.committed_writes(Kind::Family) {
            let found = self.history.finals.get(&key).map(values_of);
            for &(value, _) in &written {
                if found.as_ref().is_some_and(|found| !found.contains(&value)) {
                    self.fault(
                        Anomaly::LostWrite,
                        format!("{value}, inserted into {key}, is missing at the end"),
                        None,
                    );
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

    /// Checks the reads of a transaction against its own earlier writes and the recovered orders.
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
                        let observed = self.check_read(transaction, *key, seen, own);
                        let read = observed.map(|observed| ExternalRead {
                            transaction,
                            statement,
                            key: *key,
                            locks: *locks,
                            observed,
                        });
                        self.orders.reads.extend(read);
                    }
                }
            }
        }
    }

    fn check_read(&mut self, reader: usize, key: Key, seen: &ReadValue, own: &[u64]) -> Option<ObservedWrites> {
        match (key.kind, seen) {
            (Kind::List, ReadValue::Values(values)) => self.check_list(reader, key, values, own),
            (Kind::Register, ReadValue::Version { version, value }) => {
                self.check_register(reader, key, (*version, *value), own)
            }
            (Kind::Family, ReadValue::Values(values)) => self.check_family(reader, key, values, own),
            _ => {
                self.fault(Anomaly::InventedValue, format!("{key} was read as {seen:?}"), Some(reader));
                None
            }
        }
    }

    fn check_list(&mut self, reader: usize, key: Key, values: &[u64], own: &[u64]) -> Option<ObservedWrites> {
        let Some(before) = values.strip_suffix(own) else {
            let text = format!("{key} was read as {values:?} after its own appends {own:?}");
            self.fault(Anomaly::OwnWriteMissed, text, Some(reader));
            return None;
        };
        let order = self.values.get(&key).map_or(&[][..], Vec::as_slice);
        if !order.starts_with(before) {
            let faults = self.orders.faults.len();
            for &value in before {
                self.committed_writer(key, value, Some(reader));
            }
            // A value that must not be there explains the wrong order, so report only that.
            if self.orders.faults.len() == faults {
                let order = self.values.get(&key).cloned().unwrap_or_default();
                let text = format!("{key} was read as {before:?} but elsewhere as {order:?}");
                self.fault(Anomaly::ConflictingOrder, text, Some(reader));
            }
            return None;
        }
        if let Some(&last) = before.last() {
            self.committed_writer(key, last, Some(reader))?;
            self.check_last(reader, key, last);
        }
        // After its own write a transaction reads the newest version instead of its snapshot, so the read
        // says nothing about the snapshot.
        own.is_empty().then_some(ObservedWrites::Version(before.len()))
    }

    /// Checks a register that was read with this version and value.
    fn check_register(
        &mut self,
        reader: usize,
        key: Key,
        (version, value): (u64, u64),
        own: &[u64],
    ) -> Option<ObservedWrites> {
        if let Some(&last) = own.last() {
            if value != last {
                let text = format!("{key} was read as {value} after its own write of {last}");
                self.fault(Anomaly::OwnWriteMissed, text, Some(reader));
            }
            return None;
        }
        if version == 0 {
            if value != 0 {
                self.fault(Anomaly::InventedValue, format!("{key} had the initial value {value}"), Some(reader));
            }
            return Some(ObservedWrites::Version(0));
        }
        self.committed_writer(key, value, Some(reader))?;
        self.check_last(reader, key, value);
        Some(ObservedWrites::Version(version as usize))
    }

    fn check_family(&mut self, reader: usize, key: Key, values: &[u64], own: &[u64]) -> Option<ObservedWrites> {
        let members: BTreeSet<u64> = values.iter().copied().collect();
        if members.len() != values.len() {
            self.fault(Anomaly::ConflictingOrder, format!("{key} contains a member twice: {values:?}"), Some(reader));
        }
        if let Some(missed) = own.iter().find(|value| !members.contains(value)) {
            let text = format!("{key} was read as {values:?} after its own insert of {missed}");
            self.fault(Anomaly::OwnWriteMissed, text, Some(reader));
        }
        let others: BTreeSet<u64> = members.into_iter().filter(|value| !own.contains(value)).collect();
        for &value in &others {
            self.committed_writer(key, value, Some(reader));
        }
        Some(ObservedWrites::Members(others))
    }

    /// Checks that the last write observed is not one that its transaction later replaced.
    fn check_last(&mut self, reader: usize, key: Key, value: u64) {
        if self.writes.get(&(key, value)).is_some_and(|write| write.is_replaced) {
            let text = format!("{key} was read up to {value}, which its transaction later replaced");
            self.fault(Anomaly::IntermediateRead, text, Some(reader));
        }
    }

    /// The committed writer of an observed value. Records a fault if there is none.
    fn committed_writer(&mut self, key: Key, value: u64, reader: Option<usize>) -> Option<usize> {
        let write = self.writes.get(&(key, value)).copied();
        let (anomaly, text) = match write {
            None => (Anomaly::InventedValue, format!("{key} had {value}, which was never written")),
            Some(write) if write.is_undone => {
                (Anomaly::AbortedRead, format!("{key} had {value}, which was rolled back to a savepoint"))
            }
            Some(write) if Some(write.transaction) == reader => {
                (Anomaly::InventedValue, format!("{key} had {value} before its reader wrote it"))
            }
            Some(write) if !self.orders.is_committed[write.transaction] => {
                (Anomaly::AbortedRead, format!("{key} had {value}, written by an aborted transaction"))
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

fn values_of(seen: &ReadValue) -> Vec<u64> {
    match seen {
        ReadValue::Values(values) => values.clone(),
        ReadValue::Version { version: 0, .. } => Vec::new(),
        ReadValue::Version { value, .. } => vec![*value],
    }
}
