//! The judge: a history, a level, and everything that the level forbids and the history shows.

use std::collections::BTreeMap;
use std::fmt;

use crate::cycle::{Finding, find};
use crate::graph::{Edge, Grain, Graph, Vertex, Why};
use crate::history::{History, Outcome};
use crate::level::{Anomaly, Level};
use crate::order::Orders;

/// How many violations are told in full.
const VIOLATIONS_MAX: usize = 10;

/// An anomaly that the level forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub anomaly: Anomaly,
    /// What was seen, in lines: who came before whom and why, and what each of them did.
    pub explanation: String,
}

/// What a history shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Transactions that were committed, as far as anybody knows.
    pub committed: u64,
    /// Transactions that were undone.
    pub aborted: u64,
    /// Transactions of whose end nothing is known and nothing was seen.
    pub unknown: u64,
    /// How often each anomaly was seen, those that the level allows too. Of cycles with several anti-dependencies, and of
    /// those of a broken order of commits, each component counts once.
    pub anomalies: BTreeMap<Anomaly, u64>,
    /// How many of them the level forbids.
    pub forbidden: u64,
    /// The first of those that it forbids.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Adds what another history showed.
    pub fn add(&mut self, other: Self) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.unknown += other.unknown;
        self.forbidden += other.forbidden;
        for (anomaly, count) in other.anomalies {
            *self.anomalies.entry(anomaly).or_default() += count;
        }
        self.violations.extend(other.violations);
        self.violations.truncate(VIOLATIONS_MAX);
    }

    fn note(&mut self, level: Level, anomaly: Anomaly, explain: impl FnOnce() -> String) {
        *self.anomalies.entry(anomaly).or_default() += 1;
        if level.forbids(anomaly) {
            self.forbidden += 1;
            if self.violations.len() < VIOLATIONS_MAX {
                self.violations.push(Violation { anomaly, explanation: explain() });
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} committed, {} undone, {} unknown", self.committed, self.aborted, self.unknown)?;
        for (anomaly, count) in &self.anomalies {
            write!(out, "; {anomaly} {count}")?;
        }
        for violation in &self.violations {
            write!(out, "\n{}: {}", violation.anomaly, violation.explanation)?;
        }
        Ok(())
    }
}

/// Judges a history by a level.
pub fn check(history: &History, level: Level) -> Report {
    let orders = Orders::of(history);
    let mut report = Report::default();
    for (record, &is_committed) in history.transactions.iter().zip(&orders.is_committed) {
        let count = match (is_committed, record.outcome) {
            (true, _) => &mut report.committed,
            (false, Outcome::Unknown) => &mut report.unknown,
            (false, _) => &mut report.aborted,
        };
        *count += 1;
    }
    for fault in &orders.faults {
        report.note(level, fault.anomaly, || match fault.transaction {
            Some(transaction) => format!("{}\n    {}", fault.text, history.transactions[transaction]),
            None => fault.text.clone(),
        });
    }
    let snapshots = if level == Level::ReadCommitted { Grain::Statements } else { Grain::Snapshots };
    for grain in [Grain::Transactions, snapshots] {
        let graph = Graph::of(history, &orders, grain);
        let told = report.anomalies.clone();
        for finding in find(&graph, grain) {
            // Commits are in the same order in both graphs, and committed transactions see the same.
            if grain == Grain::Transactions || !told.contains_key(&finding.anomaly) {
                report.note(level, finding.anomaly, || explain(history, &graph, &finding));
            }
        }
    }
    report
}

fn explain(history: &History, graph: &Graph, finding: &Finding) -> String {
    let mut lines = Vec::new();
    for edge in &finding.cycle {
        lines.push(format!("    {} {} {}", name(graph, edge.from), reason(edge), name(graph, edge.to)));
    }
    for edge in &finding.cycle {
        match graph.vertices[edge.from as usize] {
            Vertex::Transaction(transaction)
            | Vertex::Snapshot(transaction)
            | Vertex::Statement { transaction, .. } => {
                lines.push(format!("    {}: {}", name(graph, edge.from), history.transactions[transaction]));
            }
            Vertex::Moment => {}
        }
    }
    format!("a cycle of {}\n{}", finding.cycle.len(), lines.join("\n"))
}

fn name(graph: &Graph, vertex: u32) -> String {
    match graph.vertices[vertex as usize] {
        Vertex::Transaction(transaction) => format!("transaction {transaction}"),
        Vertex::Statement { transaction, statement } => format!("statement {statement} of transaction {transaction}"),
        Vertex::Snapshot(transaction) => format!("the snapshot of transaction {transaction}"),
        Vertex::Moment => format!("moment {vertex}"),
    }
}

fn reason(edge: &Edge) -> String {
    let key = edge.key.map(|key| key.to_string()).unwrap_or_default();
    match edge.why {
        Why::WriteWrite => format!("wrote {key} before"),
        Why::WriteRead => format!("wrote {key} as seen by"),
        Why::WriteReadLocking => format!("wrote {key} as locked by"),
        Why::LockedReadWrite => format!("locked {key} before it was written by"),
        Why::RealTime => "was over before".to_owned(),
        Why::ReadWrite => format!("saw {key} before it was written by"),
        Why::PredicateReadWrite => format!("saw {key} without what was added by"),
    }
}
