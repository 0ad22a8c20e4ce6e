//! The ledger of acknowledged writes: which values each key may have after the nodes have started again.
//!
//! Every transaction is entered when its COMMIT is sent, and later acknowledged, failed or unknown. A check
//! compares the keys that were found with what the transactions have written: a transaction has survived or
//! was lost, never in part, and what was lost is what the durability allows.

use std::collections::BTreeMap;
use std::fmt;

pub use junctor_history::survival::Durability;

/// A transaction in the ledger since the last check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId(usize);

/// The transactions since the last check, and the versions that they gave to keys.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    /// The versions of each key in the order of writing. The first one is that of the last check.
    keys: BTreeMap<i64, Vec<Version>>,
    /// Counts sent commits and answers, to record their order.
    clock: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    sent: u64,
    outcome: Outcome,
    /// Each written key, with the position of the version among those of the key.
    writes: Vec<(i64, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Open,
    Acknowledged(u64),
    Failed,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    /// `None` means that the key is absent.
    value: Option<i64>,
    writer: Option<usize>,
}

/// The findings of a check about one transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Trace {
    /// A key that has the transaction's version or a later one.
    survived: Option<i64>,
    /// A key that has an earlier version.
    lost: Option<i64>,
}

impl Ledger {
    /// The present value of a key, absent being `None`, unless the outcome of a write to it is open.
    pub fn certain_value(&self, key: i64) -> Option<Option<i64>> {
        let Some(last) = self.keys.get(&key).and_then(|versions| versions.last()) else { return Some(None) };
        let is_certain =
            last.writer.is_none_or(|writer| matches!(self.entries[writer].outcome, Outcome::Acknowledged(_)));
        is_certain.then_some(last.value)
    }

    /// Enters a transaction whose COMMIT is being sent. It gives each key a value that the key never had, or
    /// makes it absent. All keys must be certain and different.
    ///
    /// # Panics
    /// The value of a key is not certain.
    pub fn send(&mut self, writes: &[(i64, Option<i64>)]) -> EntryId {
        self.clock += 1;
        let id = self.entries.len();
        let mut entry = Entry { sent: self.clock, outcome: Outcome::Open, writes: Vec::new() };
        for &(key, value) in writes {
            assert!(self.certain_value(key).is_some(), "the value of key {key} is certain when it is written");
            let versions = self.keys.entry(key).or_insert_with(|| vec![Version { value: None, writer: None }]);
            entry.writes.push((key, versions.len()));
            versions.push(Version { value, writer: Some(id) });
        }
        self.entries.push(entry);
        EntryId(id)
    }

    /// The transaction was acknowledged.
    pub fn acknowledge(&mut self, id: EntryId) {
        self.clock += 1;
        self.entries[id.0].outcome = Outcome::Acknowledged(self.clock);
    }

    /// The transaction was rolled back for certain.
    pub fn fail(&mut self, id: EntryId) {
        self.entries[id.0].outcome = Outcome::Failed;
        for (key, position) in std::mem::take(&mut self.entries[id.0].writes) {
            // No later version exists, because the key was not certain until now.
            self.keys.entry(key).and_modify(|versions| versions.truncate(position));
        }
    }

    /// The outcome of the transaction stays unknown until the next check.
    pub fn leave_unknown(&mut self, id: EntryId) {
        self.entries[id.0].outcome = Outcome::Unknown;
    }

    /// Compares the keys that exist with the transactions since the last check. If all is well, the found
    /// values become those from which the next check starts.
    ///
    /// # Errors
    /// Up to three findings: lost, torn or invented writes.
    pub fn check(&mut self, found: &BTreeMap<i64, i64>, durability: Durability) -> Result<(), String> {
        let mut faults = Vec::new();
        let mut traces = vec![Trace::default(); self.entries.len()];
        for (&key, versions) in &self.keys {
            let value = found.get(&key).copied();
            let matches = versions.iter().enumerate().filter(|(_, version)| version.value == value);
            let mut positions: Vec<usize> = matches.map(|(position, _)| position).collect();
            // If a key is absent, any of its versions without a value may be the one found. Those before a
            // version that must survive are excluded.
            let least = if durability == Durability::Disk { self.last_acknowledged(versions) } else { 0 };
            if positions.last().is_some_and(|&last| last >= least) {
                positions.retain(|&position| position >= least);
            }
            let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else {
                faults.push(format!("invented value: key {key} has {}, which no transaction wrote", show(value)));
                continue;
            };
            for (position, version) in versions.iter().enumerate() {
                let Some(writer) = version.writer else { continue };
                // A key that was absent several times proves nothing about the writes between.
                if position <= first {
                    traces[writer].survived = Some(key);
                } else if position > last {
                    traces[writer].lost = Some(key);
                }
            }
        }
        for key in found.keys().filter(|key| !self.keys.contains_key(key)) {
            faults.push(format!("invented value: key {key} exists, but no transaction wrote it"));
        }
        faults.extend(self.judge(&traces, durability));
        if !faults.is_empty() {
            faults.truncate(3);
            return Err(faults.join("; "));
        }
        let base = |&value: &i64| vec![Version { value: Some(value), writer: None }];
        self.keys = found.iter().map(|(&key, value)| (key, base(value))).collect();
        self.entries.clear();
        Ok(())
    }

    /// Position of the last version whose transaction was acknowledged; 0 if there is none.
    fn last_acknowledged(&self, versions: &[Version]) -> usize {
        let is_acknowledged = |version: &Version| {
            version.writer.is_some_and(|writer| matches!(self.entries[writer].outcome, Outcome::Acknowledged(_)))
        };
        versions.iter().rposition(is_acknowledged).unwrap_or(0)
    }

    fn judge(&self, traces: &[Trace], durability: Durability) -> Vec<String> {
        let mut faults = Vec::new();
        let mut first_lost: Option<(u64, i64)> = None;
        for (entry, trace) in self.entries.iter().zip(traces) {
            match (entry.outcome, trace) {
                (_, Trace { survived: Some(kept), lost: Some(lost) }) => {
                    faults.push(format!(
                        "part of a transaction: its write of key {kept} survived, but not that of {lost}"
                    ));
                }
                (Outcome::Acknowledged(_), Trace { lost: Some(lost), .. }) if durability == Durability::Disk => {
                    faults.push(format!("lost transaction: it was acknowledged, but its write of key {lost} is lost"));
                }
                (Outcome::Acknowledged(at), Trace { lost: Some(lost), .. })
                    if first_lost.is_none_or(|(first, _)| at < first) =>
                {
                    first_lost = Some((at, *lost));
                }
                _ => {}
            }
        }
        let Some((at, lost)) = first_lost else { return faults };
        for (entry, trace) in self.entries.iter().zip(traces) {
            if let (true, Some(kept)) = (entry.sent > at, trace.survived) {
                faults.push(format!(
                    "lost middle: a transaction with key {lost} is lost, but a later one with key {kept} survived"
                ));
            }
        }
        faults
    }
}

fn show(value: Option<i64>) -> impl fmt::Display {
    value.map_or_else(|| "no value".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests;
