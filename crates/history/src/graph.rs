//! Who must come before whom: a graph of transactions, or of transactions and what they or their statements saw.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::history::{History, Key};
use crate::order::{Orders, OuterRead, Saw};

/// Why one vertex comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It wrote the version before the other's.
    WriteWrite,
    /// The other saw what it wrote.
    WriteRead,
    /// The same, by a locking read.
    WriteReadLocking,
    /// It locked the version before the other's.
    LockedReadWrite,
    /// It was acknowledged before the other began.
    RealTime,
    /// It saw the version before the other's.
    ReadWrite,
    /// It read a family to which the other added.
    PredicateReadWrite,
}

impl Why {
    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether the first has committed before the second, whatever the level. The others say only that a snapshot was
    /// taken before a commit.
    pub fn orders_commits(self) -> bool {
        COMMITS.has(self)
    }

    /// Whether the second wrote what the first had read before.
    pub fn is_anti_dependency(self) -> bool {
        matches!(self, Self::LockedReadWrite | Self::ReadWrite | Self::PredicateReadWrite)
    }

    /// Whether the second's snapshot is one that was taken after the first's commit.
    pub fn orders_snapshot(self) -> bool {
        matches!(self, Self::WriteRead | Self::RealTime)
    }
}

/// A set of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reasons(u8);

impl Reasons {
    /// The set of these.
    pub const fn of(reasons: &[Why]) -> Self {
        let mut bits = 0;
        let mut position = 0;
        while position < reasons.len() {
            bits |= reasons[position].bit();
            position += 1;
        }
        Self(bits)
    }

    /// Whether this is one of them.
    pub fn has(self, why: Why) -> bool {
        self.0 & why.bit() != 0
    }
}

/// The reasons by which one commits before another.
pub const COMMITS: Reasons =
    Reasons::of(&[Why::WriteWrite, Why::WriteRead, Why::WriteReadLocking, Why::LockedReadWrite, Why::RealTime]);

/// What stands in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vertex {
    /// A transaction of the history.
    Transaction(usize),
    /// What a transaction saw without locks, whatever became of it.
    Snapshot(usize),
    /// What one statement of a transaction saw without locks.
    Statement {
        /// The transaction.
        transaction: usize,
        /// The statement in it.
        statement: usize,
    },
    /// A moment: what was acknowledged until then comes before what began later.
    Moment,
}

/// One vertex comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Who comes first.
    pub from: u32,
    /// Who comes later.
    pub to: u32,
    /// Why.
    pub why: Why,
    /// The object, if it is about one.
    pub key: Option<Key>,
}

/// What the vertices of a graph are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Committed transactions.
    Transactions,
    /// Committed transactions for what they wrote and locked, and what each of all transactions saw.
    Snapshots,
    /// The same, but what each statement saw.
    Statements,
}

/// A graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The vertices.
    pub vertices: Vec<Vertex>,
    /// The edges, by where they come from.
    edges: Vec<Edge>,
    /// Where the edges of each vertex begin, and the end.
    starts: Vec<u32>,
    /// When each vertex was over.
    ended: Vec<u64>,
}

impl Graph {
    /// The graph of a history.
    pub fn of(history: &History, orders: &Orders, grain: Grain) -> Self {
        let mut builder = Builder::new(history, orders, grain);
        builder.add_write_order();
        for read in &orders.reads {
            builder.add_read(read);
        }
        builder.add_real_time();
        builder.finish()
    }

    /// The edges from a vertex.
    pub fn from(&self, vertex: u32) -> &[Edge] {
        let vertex = vertex as usize;
        &self.edges[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }

    /// All edges.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// A place for each vertex so that every edge of commit order goes up, near to the order of time; `None` if there is a
    /// cycle of such edges.
    pub fn ranks(&self) -> Option<Vec<u32>> {
        let mut waits_for = vec![0_u32; self.vertices.len()];
        for edge in self.edges.iter().filter(|edge| edge.why.orders_commits()) {
            waits_for[edge.to as usize] += 1;
        }
        let ready = (0..self.vertices.len()).filter(|&vertex| waits_for[vertex] == 0);
        let mut ready: BinaryHeap<_> = ready.map(|vertex| Reverse((self.ended[vertex], vertex as u32))).collect();
        let mut ranks = vec![0; self.vertices.len()];
        let mut count = 0;
        while let Some(Reverse((_, vertex))) = ready.pop() {
            ranks[vertex as usize] = count;
            count += 1;
            for edge in self.from(vertex).iter().filter(|edge| edge.why.orders_commits()) {
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
    orders: &'a Orders,
    grain: Grain,
    vertices: Vec<Vertex>,
    /// When each vertex began and was over.
    spans: Vec<(u64, u64)>,
    edges: Vec<Edge>,
    of_transaction: Vec<Option<u32>>,
    of_reads: BTreeMap<(usize, usize), u32>,
}

impl<'a> Builder<'a> {
    fn new(history: &'a History, orders: &'a Orders, grain: Grain) -> Self {
        let mut builder = Self {
            history,
            orders,
            grain,
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

    fn add_edge(&mut self, from: u32, to: u32, why: Why, key: Option<Key>) {
        if from != to {
            self.edges.push(Edge { from, to, why, key });
        }
    }

    fn add_write_order(&mut self) {
        for (&key, writers) in &self.orders.writers {
            for pair in writers.windows(2) {
                if let [Some(first), Some(second)] = *pair
                    && let (Some(from), Some(to)) = (self.of_transaction[first], self.of_transaction[second])
                {
                    self.add_edge(from, to, Why::WriteWrite, Some(key));
                }
            }
        }
    }

    /// The vertex that stands for who read; a locking read is its transaction's.
    fn reader(&mut self, read: &OuterRead) -> Option<u32> {
        if self.grain == Grain::Transactions || read.locks {
            return self.of_transaction[read.transaction];
        }
        self.view(read)
    }

    /// The vertex that stands for what was seen.
    fn view(&mut self, read: &OuterRead) -> Option<u32> {
        let transaction = read.transaction;
        let statement = if self.grain == Grain::Statements { read.statement } else { 0 };
        if let Some(&vertex) = self.of_reads.get(&(transaction, statement)) {
            return Some(vertex);
        }
        let record = &self.history.transactions[transaction];
        let (vertex, span) = if self.grain == Grain::Statements {
            let record = &record.statements[statement];
            (Vertex::Statement { transaction, statement }, (record.sent, record.answered))
        } else {
            (Vertex::Snapshot(transaction), (record.began(), record.ended()))
        };
        let vertex = self.add_vertex(vertex, span);
        self.of_reads.insert((transaction, statement), vertex);
        Some(vertex)
    }

    fn add_read(&mut self, read: &OuterRead) {
        let reader = self.reader(read);
        let seen_why = if read.locks { Why::WriteReadLocking } else { Why::WriteRead };
        let orders = self.orders;
        match &read.saw {
            Saw::Version(version) => {
                let writers = orders.writers.get(&read.key).map_or(&[][..], Vec::as_slice);
                let vertex = |version: usize| self.of_transaction[writers.get(version).copied().flatten()?];
                let (before, after) = (version.checked_sub(1).and_then(vertex), vertex(*version));
                let missed_why = if read.locks { Why::LockedReadWrite } else { Why::ReadWrite };
                if let Some(writer) = before {
                    if let Some(reader) = reader {
                        self.add_edge(writer, reader, seen_why, Some(read.key));
                    }
                    // What a statement has seen by a lock, later ones see without.
                    if read.locks
                        && self.grain == Grain::Statements
                        && let Some(view) = self.view(read)
                    {
                        self.add_edge(writer, view, seen_why, Some(read.key));
                    }
                }
                if let (Some(reader), Some(writer)) = (reader, after) {
                    self.add_edge(reader, writer, missed_why, Some(read.key));
                }
            }
            Saw::Members(members) => {
                for (value, &writer) in orders.members.get(&read.key).into_iter().flatten() {
                    let (Some(reader), Some(writer)) = (reader, self.of_transaction[writer]) else { continue };
                    if members.contains(value) {
                        self.add_edge(writer, reader, seen_why, Some(read.key));
                    } else {
                        self.add_edge(reader, writer, Why::PredicateReadWrite, Some(read.key));
                    }
                }
            }
        }
    }

    /// Moments stand between what ended and what began, so that there are few edges.
    fn add_real_time(&mut self) {
        let count = self.vertices.len() as u32;
        let mut ends: Vec<(u64, u32)> = (0..count).map(|vertex| (self.spans[vertex as usize].1, vertex)).collect();
        ends.sort_unstable();
        // How many vertices were over when each began.
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
                self.add_edge(before, moment, Why::RealTime, None);
            }
            moments.insert(over, moment);
            before = Some(moment);
        }
        for (position, &(_, vertex)) in ends.iter().enumerate() {
            if let Some((_, &moment)) = moments.range(position + 1..).next() {
                self.add_edge(vertex, moment, Why::RealTime, None);
            }
        }
        for vertex in 0..count {
            if let Some(&moment) = moments.get(&over[vertex as usize]) {
                self.add_edge(moment, vertex, Why::RealTime, None);
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
