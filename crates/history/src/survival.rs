//! Checks what a restart of the database kept. Each transaction must survive as a whole or not at all, and
//! only such losses may occur as the durability allows.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Key, Kind, Operation, Outcome, ReadValue, Transaction};

/// The promise that the acknowledgement of a commit makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// An acknowledged transaction survives.
    Disk,
    /// The last transactions before a crash may be lost. If one is lost, so is every transaction that
    /// followed it.
    Memory,
}

/// The judgement of one restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survival {
    /// The rules that the restart broke, as sentences.
    pub faults: Vec<String>,
    /// The transactions to remove from the history: those that lost a write, and those that left no write but
    /// observed one that was lost.
    pub forgotten: BTreeSet<usize>,
}

/// For one transaction: a key that still has its write after the restart, and a key that has lost its write.
#[derive(Clone, Copy, Debug, Default)]
struct Traces {
    survived: Option<Key>,
    lost: Option<Key>,
}

/// Compares the objects found after a restart with the transactions before it. The first `settled`
/// transactions have survived an earlier restart and must survive this one.
pub fn judge(
    transactions: &[Transaction],
    settled: usize,
    found: &BTreeMap<Key, ReadValue>,
    durability: Durability,
) -> Survival {
    let writers = writers(transactions);
    let versions = RegisterVersions::new(transactions, &writers);
    let mut traces = vec![Traces::default(); transactions.len()];
    for (position, transaction) in transactions.iter().enumerate() {
        for operation in transaction.operations() {
            let Operation::Write { key, value, is_undone: false } = *operation else { continue };
            match survives(key, value, found.get(&key), &versions) {
                Some(true) => traces[position].survived = Some(key),
                Some(false) if transaction.outcome != Outcome::Aborted => traces[position].lost = Some(key),
                _ => {}
            }
        }
    }
    let is_lost = |position: usize| traces[position].lost.is_some();
    let mut survival = Survival::default();
    let mut first_lost: Option<(u64, usize)> = None;
    for (position, (transaction, trace)) in transactions.iter().zip(&traces).enumerate() {
        let Some(lost) = trace.lost else { continue };
        survival.forgotten.insert(position);
        if let Some(kept) = trace.survived {
            survival.faults.push(format!(
                "part of transaction {position} survived: its write of {kept}, but not that of {lost}; {transaction}"
            ));
        }
        let is_acknowledged = transaction.outcome == Outcome::Committed;
        if is_acknowledged && (durability == Durability::Disk || position < settled) {
            survival.faults.push(format!(
                "transaction {position} was acknowledged, but its write of {lost} is lost; {transaction}"
            ));
        }
        if is_acknowledged && first_lost.is_none_or(|(ended, _)| transaction.ended() < ended) {
            first_lost = Some((transaction.ended(), position));
        }
    }
    for (position, (transaction, trace)) in transactions.iter().zip(&traces).enumerate() {
        let observed = observed_writes(transaction).filter_map(|write| writers.get(&write).copied());
        let lost_writer = observed.filter(|&writer| writer != position).find(|&writer| is_lost(writer));
        if trace.survived.is_none() {
            survival.forgotten.extend(lost_writer.map(|_| position));
            continue;
        }
        if let Some(writer) = lost_writer {
            survival
                .faults
                .push(format!("transaction {position} survived, but not {writer}, whose writes it observed"));
        }
        let committed_at = transaction.statements.last().map_or(0, |statement| statement.sent);
        if let Some((_, lost)) = first_lost.filter(|&(ended, _)| ended < committed_at) {
            survival.faults.push(format!(
                "transaction {position} survived, but not {lost}, which was acknowledged before its COMMIT was sent"
            ));
        }
    }
    survival
}

/// Whether the object contains the write, perhaps overwritten; `None` if that cannot be told.
fn survives(key: Key, value: u64, found: Option<&ReadValue>, versions: &RegisterVersions) -> Option<bool> {
    match found? {
        ReadValue::Values(values) => Some(values.contains(&value)),
        ReadValue::Version { value: last, .. } if *last == value => Some(true),
        ReadValue::Version { version: last, .. } => {
            let version = *versions.of_values.get(&(key, value))?;
            if version >= *last {
                // Another value has this version number or a lower one.
                return Some(false);
            }
            // A version number that only the writer has read is free again if the writer rolls back.
            versions.committed.get(&(key, version)).map(|&committed| committed == value)
        }
    }
}

/// The transaction of each write that was not undone.
fn writers(transactions: &[Transaction]) -> BTreeMap<(Key, u64), usize> {
    let mut writers = BTreeMap::new();
    for (position, transaction) in transactions.iter().enumerate() {
        for operation in transaction.operations() {
            if let Operation::Write { key, value, is_undone: false } = *operation {
                writers.insert((key, value), position);
            }
        }
    }
    writers
}

/// The version numbers of registers that transactions have read.
#[derive(Debug, Default)]
struct RegisterVersions {
    /// The version under which each value was read, by its own writer too.
    of_values: BTreeMap<(Key, u64), u64>,
    /// The value of each version that was committed: the writer's commit was acknowledged, or else another
    /// transaction has read the value. A restart may lose what was only read, and its version number is free
    /// again.
    committed: BTreeMap<(Key, u64), u64>,
}

impl RegisterVersions {
    fn new(transactions: &[Transaction], writers: &BTreeMap<(Key, u64), usize>) -> Self {
        let mut versions = Self::default();
        let mut acknowledged = BTreeMap::new();
        for (position, transaction) in transactions.iter().enumerate() {
            for operation in transaction.operations() {
                let Operation::Read { key, seen: ReadValue::Version { version, value }, .. } = *operation else {
                    continue;
                };
                versions.of_values.insert((key, value), version);
                // A write that was undone has no writer.
                let Some(&writer) = writers.get(&(key, value)) else { continue };
                if transactions[writer].outcome == Outcome::Committed {
                    acknowledged.insert((key, version), value);
                } else if writer != position {
                    versions.committed.insert((key, version), value);
                }
            }
        }
        versions.committed.extend(acknowledged);
        versions
    }
}

fn observed_writes(transaction: &Transaction) -> impl Iterator<Item = (Key, u64)> {
    transaction.operations().flat_map(|operation| match operation {
        Operation::Read { key, seen: ReadValue::Values(values), .. } => {
            values.iter().map(|&value| (*key, value)).collect::<Vec<_>>()
        }
        Operation::Read { key, seen: ReadValue::Version { value, .. }, .. } if key.kind == Kind::Register => {
            vec![(*key, *value)]
        }
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::history::Statement;

    const X: Key = Key { kind: Kind::List, id: 1 };
    const Y: Key = Key { kind: Kind::Family, id: 2 };
    const R: Key = Key { kind: Kind::Register, id: 3 };

    fn write(key: Key, value: u64) -> Operation {
        Operation::Write { key, value, is_undone: false }
    }

    fn read(key: Key, values: &[u64]) -> Operation {
        Operation::Read { key, seen: ReadValue::Values(values.to_vec()), locks: false }
    }

    fn transaction(sent: u64, answered: u64, operations: &[Operation], outcome: Outcome) -> Transaction {
        let statements = vec![Statement { sent, answered, operations: operations.to_vec() }];
        Transaction { session: 0, statements, outcome }
    }

    fn committed(at: u64, operations: &[Operation]) -> Transaction {
        transaction(at, at + 1, operations, Outcome::Committed)
    }

    /// Two transactions that follow each other, and one that wrote both objects.
    fn three() -> Vec<Transaction> {
        vec![committed(1, &[write(X, 1)]), committed(3, &[write(X, 2), write(Y, 2)]), committed(5, &[write(Y, 3)])]
    }

    fn found(x: &[u64], y: &[u64]) -> BTreeMap<Key, ReadValue> {
        BTreeMap::from([(X, ReadValue::Values(x.to_vec())), (Y, ReadValue::Values(y.to_vec()))])
    }

    fn judged(transactions: &[Transaction], x: &[u64], y: &[u64], durability: Durability) -> (usize, Vec<usize>) {
        let survival = judge(transactions, 0, &found(x, y), durability);
        (survival.faults.len(), survival.forgotten.into_iter().collect())
    }

    #[test]
    fn with_disk_durability_every_acknowledged_transaction_survives() {
        assert_eq!(judged(&three(), &[1, 2], &[2, 3], Durability::Disk), (0, vec![]));
        assert_eq!(judged(&three(), &[1, 2], &[2], Durability::Disk), (1, vec![2]));
    }

    #[test]
    fn with_memory_durability_only_the_last_transactions_may_be_lost() {
        assert_eq!(judged(&three(), &[1, 2], &[2], Durability::Memory), (0, vec![2]));
        assert_eq!(judged(&three(), &[1], &[], Durability::Memory), (0, vec![1, 2]));
        assert_eq!(judged(&three(), &[], &[], Durability::Memory), (0, vec![0, 1, 2]));
        let survival = judge(&three(), 0, &found(&[1], &[3]), Durability::Memory);
        assert!(survival.faults[0].contains("transaction 2 survived, but not 1"), "{:?}", survival.faults);
    }

    #[test]
    fn transactions_that_survived_an_earlier_restart_survive() {
        let survival = judge(&three(), 1, &found(&[], &[]), Durability::Memory);
        assert!(survival.faults.len() == 1 && survival.faults[0].contains("transaction 0 was acknowledged"));
    }

    #[test]
    fn no_transaction_survives_in_part() {
        for durability in [Durability::Disk, Durability::Memory] {
            let survival = judge(&three(), 0, &found(&[1, 2], &[3]), durability);
            assert!(survival.faults[0].starts_with("part of transaction 1 survived"), "{:?}", survival.faults);
        }
        let unknown = vec![transaction(1, u64::MAX, &[write(X, 1), write(Y, 1)], Outcome::Unknown)];
        assert_eq!(judged(&unknown, &[], &[], Durability::Disk), (0, vec![0]));
        assert_eq!(judged(&unknown, &[1], &[1], Durability::Disk), (0, vec![]));
        assert_eq!(judged(&unknown, &[1], &[], Durability::Disk), (1, vec![0]));
    }

    #[test]
    fn a_transaction_that_observed_a_lost_one_is_lost_or_forgotten() {
        let lost = transaction(1, u64::MAX, &[write(X, 1)], Outcome::Unknown);
        let reader = committed(3, &[read(X, &[1])]);
        assert_eq!(judged(&[lost.clone(), reader], &[], &[], Durability::Disk), (0, vec![0, 1]));
        let writer = committed(3, &[read(X, &[1]), write(Y, 2)]);
        let survival = judge(&[lost, writer], 0, &found(&[], &[2]), Durability::Disk);
        assert!(survival.faults[0].contains("whose writes it observed"), "{:?}", survival.faults);
    }

    #[test]
    fn register_versions_show_which_writes_survived() {
        let version =
            |version, value| Operation::Read { key: R, seen: ReadValue::Version { version, value }, locks: false };
        let transactions =
            [committed(1, &[write(R, 10), version(1, 10)]), committed(3, &[write(R, 20), version(2, 20)])];
        let kept = |version, value| {
            let found = BTreeMap::from([(R, ReadValue::Version { version, value })]);
            judge(&transactions, 0, &found, Durability::Memory).forgotten.into_iter().collect::<Vec<_>>()
        };
        assert_eq!([kept(2, 20), kept(1, 10), kept(0, 0)], [vec![], vec![1], vec![0, 1]]);
    }
    fn set(value: u64, version: u64) -> [Operation; 2] {
        [write(R, value), Operation::Read { key: R, seen: ReadValue::Version { version, value }, locks: false }]
    }

    #[test]
    fn a_later_write_takes_the_version_number_of_a_transaction_that_rolled_back() {
        let [set_10, read_10] = set(10, 1);
        let unknown = transaction(1, u64::MAX, &[write(X, 9), set_10, read_10], Outcome::Unknown);
        let found = |version, value, list: &[u64]| {
            let register = (R, ReadValue::Version { version, value });
            BTreeMap::from([register, (X, ReadValue::Values(list.to_vec()))])
        };
        let judged = |others: &[Transaction], found: &BTreeMap<Key, ReadValue>| {
            let transactions = [slice::from_ref(&unknown), others].concat();
            let survival = judge(&transactions, 0, found, Durability::Disk);
            (survival.faults, survival.forgotten.into_iter().collect::<Vec<_>>())
        };
        // The transaction was rolled back, and later ones set versions 1 and 2. Version 1 may be unread.
        let later = [committed(3, &set(20, 1)), committed(5, &set(30, 2))];
        assert_eq!(judged(&later, &found(2, 30, &[])), (vec![], vec![0]));
        assert_eq!(judged(&later[1..], &found(2, 30, &[])), (vec![], vec![0]));
        // The list has its write, but version 1 of the register belongs to another transaction.
        assert_eq!(judged(&later, &found(2, 30, &[9])).0.len(), 1);
        // Another transaction has read its register.
        let reader = committed(3, &[read_10_again()]);
        // A restart has lost both, and the version number was free again.
        let all = [slice::from_ref(&reader), &later].concat();
        assert_eq!(judged(&all, &found(2, 30, &[])), (vec![], vec![0, 1]));
        assert_eq!(judged(&[reader, committed(5, &set(30, 2))], &found(2, 30, &[])).0.len(), 1);
        // The transaction has survived in the register alone.
        assert_eq!(judged(&[], &found(1, 10, &[])).0.len(), 1);
    }

    fn read_10_again() -> Operation {
        set(10, 1)[1].clone()
    }
}
