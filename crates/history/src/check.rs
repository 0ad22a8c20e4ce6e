//! The checker: reports every anomaly in a history, and which of them a level forbids.

use std::collections::BTreeMap;
use std::fmt;

use crate::cycle::{Finding, find};
use crate::graph::{Dependency, Edge, Granularity, Graph, Vertex};
use crate::history::{History, Outcome};
use crate::level::{Anomaly, Level};
use crate::order::VersionOrders;

/// Maximum number of violations that a report explains.
const VIOLATIONS_MAX: usize = 10;

/// An anomaly that the level forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The anomaly.
    pub anomaly: Anomaly,
    /// The evidence, in lines: the dependencies of the cycle, and what each transaction did.
    pub explanation: String,
}

/// The result of checking a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of transactions that committed. One with an unknown outcome counts if its writes were observed.
    pub committed: u64,
    /// Number of transactions that were rolled back.
    pub aborted: u64,
    /// Number of transactions with an unknown outcome whose writes were not observed.
    pub unknown: u64,
    /// The number of occurrences of each anomaly, including those that the level allows. For cycles with
    /// several anti-dependencies and cycles in the commit order, each strongly connected component counts
    /// once.
    pub anomalies: BTreeMap<Anomaly, u64>,
    /// Number of anomalies that the level forbids.
    pub forbidden: u64,
    /// The first forbidden anomalies, at most 10.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Adds the report of another history.
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
        write!(out, "{} committed, {} aborted, {} unknown", self.committed, self.aborted, self.unknown)?;
        for (anomaly, count) in &self.anomalies {
            write!(out, "; {anomaly} {count}")?;
        }
        for violation in &self.violations {
            write!(out, "\n{}: {}", violation.anomaly, violation.explanation)?;
        }
        Ok(())
    }
}

/// Checks a history against a level.
pub fn check(history: &History, level: Level) -> Report {
    let orders = VersionOrders::of(history);
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
    let snapshots = if level == Level::ReadCommitted { Granularity::Statements } else { Granularity::Snapshots };
    for granularity in [Granularity::Transactions, snapshots] {
        let graph = Graph::of(history, &orders, granularity);
        let reported = report.anomalies.clone();
        for finding in find(&graph, granularity) {
            // Both graphs contain the order of the commits and the committed reads, so both may show the same
            // anomaly. Report it only once.
            if granularity == Granularity::Transactions || !reported.contains_key(&finding.anomaly) {
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
    format!("a cycle of {} dependencies\n{}", finding.cycle.len(), lines.join("\n"))
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
    match edge.dependency {
        Dependency::WriteWrite => format!("wrote {key} before"),
        Dependency::WriteRead => format!("wrote the version of {key} read by"),
        Dependency::WriteReadLocking => format!("wrote the version of {key} locked by"),
        Dependency::LockedReadWrite => format!("locked {key} before it was written by"),
        Dependency::RealTime => "was acknowledged before".to_owned(),
        Dependency::ReadWrite => format!("read {key} before it was written by"),
        Dependency::PredicateReadWrite => format!("read {key} without the member added by"),
    }
}
