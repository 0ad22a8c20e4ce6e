//! The dependency graph of a history. Its vertices are transactions, snapshots or statements, depending on
//! the granularity.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::history::{History, Key};
use crate::order::{ExternalRead, ObservedWrites, VersionOrders};

/// The kind of a dependency: why one vertex precedes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    /// Write dependency: the first wrote the version before the second's.
    WriteWrite,
    /// Read dependency: the second read a version that the first wrote.
    WriteRead,
    /// Read dependency of a locking read.
    WriteReadLocking,
    /// Anti-dependency of a locking read: the first locked the version before the second's.
    LockedReadWrite,
    /// The first was acknowledged before the second began.
    RealTime,
    /// Anti-dependency: the first read the version before the second's.
    ReadWrite,
    /// Predicate anti-dependency: the first read a family before the second added to it.
    PredicateReadWrite,
}

impl Dependency {
    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether the first committed before the second, at every isolation level. The other kinds only order a
    /// snapshot before a commit.
    pub fn orders_commits(self) -> bool {
        COMMITS.has(self)
    }

    /// Whether the second overwrote what the first had read.
    pub fn is_anti_dependency(self) -> bool {
        matches!(self, Self::LockedReadWrite | Self::ReadWrite | Self::PredicateReadWrite)
    }

    /// Whether the second's snapshot was taken after the first's commit.
    pub fn orders_snapshot(self) -> bool {
        matches!(self, Self::WriteRead | Self::RealTime)
    }
}

/// A set of dependency kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependencies(u8);

impl Dependencies {
    /// The set of the given kinds.
    pub const fn of(dependencies: &[Dependency]) -> Self {
        let mut bits = 0;
        let mut position = 0;
        while position < dependencies.len() {
            bits |= dependencies[position].bit();
            position += 1;
        }
        Self(bits)
    }

    /// The set with one more kind.
    pub const fn with(self, dependency: Dependency) -> Self {
        Self(self.0 | dependency.bit())
    }

    /// Whether the set contains the kind.
    pub fn has(self, dependency: Dependency) -> bool {
        self.0 & dependency.bit() != 0
    }
}

/// The kinds that order commits.
pub const COMMITS: Dependencies = Dependencies::of(&[
    Dependency::WriteWrite,
    Dependency::WriteRead,
    Dependency::WriteReadLocking,
    Dependency::LockedReadWrite,
    Dependency::RealTime,
]);

/// A vertex of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vertex {
    /// A transaction, by its index in the history.
    Transaction(usize),
    /// The snapshot of a transaction: all its reads without locks, even if it aborted.
    Snapshot(usize),
    /// The reads without locks of one statement.
    Statement {
        /// The index of the transaction.
        transaction: usize,
        /// The index of the statement within the transaction.
        statement: usize,
    },
    /// A point in time. Whatever was acknowledged before it precedes whatever began after it.
    Moment,
}

/// A dependency between two vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The earlier vertex.
    pub from: u32,
    /// The later vertex.
    pub to: u32,
    /// The kind of the dependency.
    pub dependency: Dependency,
    /// The object that causes the dependency; `None` for real-time order.
    pub key: Option<Key>,
}

/// The granularity of a graph: what its vertices are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Committed transactions.
    Transactions,
    /// Committed transactions for writes and locking reads, and one vertex for the snapshot of each
    /// transaction, committed or not.
    Snapshots,
    /// Like `Snapshots`, but with one vertex for the reads of each statement.
    Statements,
}

/// A dependency graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The vertices.
    pub vertices: Vec<Vertex>,
    /// All edges, sorted by origin.
    edges: Vec<Edge>,
    /// The position of each vertex's first edge in `edges`, and the total number of edges.
    starts: Vec<u32>,
    /// Time stamp of the end of each vertex.
    ended: Vec<u64>,
}

impl Graph {
    /// Builds the graph of a history.
    pub fn of(history: &History, orders: &VersionOrders, granularity: Granularity) -> Self {
        let mut builder = Builder::new(history, orders, granularity);
        builder.add_write_order();
        for read in &orders.reads {
            builder.add_read(read);
        }
        builder.add_real_time();
        builder.finish()
    }

    /// The outgoing edges of a vertex.
    pub fn from(&self, vertex: u32) -> &[Edge] {
        let vertex = vertex as usize;
        &self.edges[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }

    /// All edges, sorted by origin.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// A rank for each vertex such that every edge that orders commits leads to a higher rank; `None` if such
    /// edges form a cycle. Ranks follow real time where the edges leave a choice.
    pub fn ranks(&self) -> Option<Vec<u32>> {
        let mut waits_for = vec![0_u32; self.vertices.len()];
        for edge in self.edges.iter().filter(|edge| edge.dependency.orders_commits()) {
            waits_for[edge.to as usize] += 1;
        }
        let ready = (0..self.vertices.len()).filter(|&vertex| waits_for[vertex] == 0);
        let mut ready: BinaryHeap<_> = ready.map(|vertex| Reverse((self.ended[vertex], vertex as u32))).collect();
        let mut ranks = vec![0; self.vertices.len()];
        let mut count = 0;
        while let Some(Reverse((_, vertex))) = ready.pop() {
            ranks[vertex as usize] = count;
            count += 1;
            for edge in self.from(vertex).iter().filter(|edge| edge.dependency.orders_commits()) {
                let left = &mut waits_for[edge.to as usize];
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse((self.ended[edge.to as usize], edge.to)));
                }
            }
        }
        (count as usize == self.vertices.len()).then_some(ranks)
    }
}

struct Builder<'a> {
    history: &'a History,
    orders: &'a VersionOrders,
    granularity: Granularity,
    vertices: Vec<Vertex>,
    /// Time stamps of the begin and the end of each vertex.
    spans: Vec<(u64, u64)>,
    edges: Vec<Edge>,
    of_transaction: Vec<Option<u32>>,
    of_reads: BTreeMap<(usize, usize), u32>,
}

impl<'a> Builder<'a> {
    fn new(history: &'a History, orders: &'a VersionOrders, granularity: Granularity) -> Self {
        let mut builder = Self {
            history,
            orders,
            granularity,
            vertices: Vec::new(),
            spans: Vec::new(),
            edges: Vec::new(),
            of_transaction: vec![None; history.transactions.len()],
            of_reads: BTreeMap::new(),
        };
        for (position, record) in history.transactions.iter().enumerate() {
            if orders.is_committed[position] {
                let span = (record.began(), record.ended());
                builder.of_transaction[position] = Some(builder.add_vertex(Vertex::Transaction(position), span));
            }
        }
        builder
    }

    fn add_vertex(&mut self, vertex: Vertex, span: (u64, u64)) -> u32 {
        self.vertices.push(vertex);
        self.spans.push(span);
        self.vertices.len() as u32 - 1
    }

    fn add_edge(&mut self, from: u32, to: u32, dependency: Dependency, key: Option<Key>) {
        if from != to {
            self.edges.push(Edge { from, to, dependency, key });
        }
    }

    fn add_write_order(&mut self) {
        for (&key, writers) in &self.orders.writers {
            for pair in writers.windows(2) {
                if let [Some(first), Some(second)] = *pair
                    && let (Some(from), Some(to)) = (self.of_transaction[first], self.of_transaction[second])
                {
                    self.add_edge(from, to, Dependency::WriteWrite, Some(key));
                }
            }
        }
    }

    /// The vertex of a read. A locking read belongs to the vertex of its transaction.
    fn reader(&mut self, read: &ExternalRead) -> Option<u32> {
        if self.granularity == Granularity::Transactions || read.locks {
            return self.of_transaction[read.transaction];
        }
        self.view(read)
    }

    /// The vertex of the snapshot that a read used, which is created on first use.
    fn view(&mut self, read: &ExternalRead) -> Option<u32> {
        let transaction = read.transaction;
        let statement = if self.granularity == Granularity::Statements { read.statement } else { 0 };
        if let Some(&vertex) = self.of_reads.get(&(transaction, statement)) {
            return Some(vertex);
        }
        let record = &self.history.transactions[transaction];
        let (vertex, span) = if self.granularity == Granularity::Statements {
            let record = &record.statements[statement];
            (Vertex::Statement { transaction, statement }, (record.sent, record.answered))
        } else {
            (Vertex::Snapshot(transaction), (record.began(), record.ended()))
        };
        let vertex = self.add_vertex(vertex, span);
        self.of_reads.insert((transaction, statement), vertex);
        Some(vertex)
    }

    fn add_read(&mut self, read: &ExternalRead) {
        let reader = self.reader(read);
        let read_kind = if read.locks { Dependency::WriteReadLocking } else { Dependency::WriteRead };
        let orders = self.orders;
        match &read.observed {
            ObservedWrites::Version(version) => {
                let writers = orders.writers.get(&read.key).map_or(&[][..], Vec::as_slice);
                let vertex = |version: usize| self.of_transaction[writers.get(version).copied().flatten()?];
                let (before, after) = (version.checked_sub(1).and_then(vertex), vertex(*version));
                let missed_kind = if read.locks { Dependency::LockedReadWrite } else { Dependency::ReadWrite };
                if let Some(writer) = before {
                    if let Some(reader) = reader {
                        self.add_edge(writer, reader, read_kind, Some(read.key));
                    }
                    // In read committed, later statements observe what a locking read observed, even without
                    // a lock.
                    if read.locks
                        && self.granularity == Granularity::Statements
                        && let Some(view) = self.view(read)
                    {
                        self.add_edge(writer, view, read_kind, Some(read.key));
                    }
                }
                if let (Some(reader), Some(writer)) = (reader, after) {
                    self.add_edge(reader, writer, missed_kind, Some(read.key));
                }
            }
            ObservedWrites::Members(members) => {
                for (value, &writer) in orders.members.get(&read.key).into_iter().flatten() {
                    let (Some(reader), Some(writer)) = (reader, self.of_transaction[writer]) else { continue };
                    if members.contains(value) {
                        self.add_edge(writer, reader, read_kind, Some(read.key));
                    } else {
                        self.add_edge(reader, writer, Dependency::PredicateReadWrite, Some(read.key));
                    }
                }
            }
        }
    }

    /// Adds real-time order through `Moment` vertices. Direct edges would be quadratic in number; these are
    /// linear.
    fn add_real_time(&mut self) {
        let count = self.vertices.len() as u32;
        let mut ends: Vec<(u64, u32)> = (0..count).map(|vertex| (self.spans[vertex as usize].1, vertex)).collect();
        ends.sort_unstable();
        // For each vertex, how many vertices ended before it began.
        let over: Vec<usize> = (0..count as usize)
            .map(|vertex| ends.partition_point(|&(ended, _)| ended < self.spans[vertex].0))
            .collect();
        let mut wanted: Vec<usize> = over.iter().copied().filter(|&over| over > 0).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut moments: BTreeMap<usize, u32> = BTreeMap::new();
        let mut before = None;
        for over in wanted {
            let time = ends[over - 1].0;
            let moment = self.add_vertex(Vertex::Moment, (time, time));
            if let Some(before) = before {
                self.add_edge(before, moment, Dependency::RealTime, None);
            }
            moments.insert(over, moment);
            before = Some(moment);
        }
        for (position, &(_, vertex)) in ends.iter().enumerate() {
            if let Some((_, &moment)) = moments.range(position + 1..).next() {
                self.add_edge(vertex, moment, Dependency::RealTime, None);
            }
        }
        for vertex in 0..count {
            if let Some(&moment) = moments.get(&over[vertex as usize]) {
                self.add_edge(moment, vertex, Dependency::RealTime, None);
            }
        }
    }

    fn finish(mut self) -> Graph {
        self.edges.sort_unstable();
        self.edges.dedup();
        let mut starts = vec![0_u32; self.vertices.len() + 1];
        for edge in &self.edges {
            starts[edge.from as usize + 1] += 1;
        }
        for vertex in 0..self.vertices.len() {
            starts[vertex + 1] += starts[vertex];
        }
        let ended = self.spans.iter().map(|&(_, ended)| ended).collect();
        Graph { vertices: self.vertices, edges: self.edges, starts, ended }
    }
}
