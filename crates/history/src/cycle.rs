//! Cycles of a graph, and what each means.

use std::collections::VecDeque;

use crate::graph::{COMMITS, Edge, Grain, Graph, Reasons, Vertex, Why};
use crate::level::Anomaly;

/// How many vertices of a component are tried as the start of a short cycle.
const STARTS_MAX: usize = 64;

/// A cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it means.
    pub anomaly: Anomaly,
    /// Its edges; each begins where the one before ends, the first where the last ends.
    pub cycle: Vec<Edge>,
}

/// The cycles of a graph: of each component the shortest one found, and one for each anti-dependency that goes back in the
/// order of commits.
pub fn find(graph: &Graph, grain: Grain) -> Vec<Finding> {
    const WRITES: Reasons = Reasons::of(&[Why::WriteWrite]);
    const INFORMATION: Reasons = Reasons::of(&[Why::WriteWrite, Why::WriteRead, Why::WriteReadLocking]);
    const LOCKS: Reasons = Reasons::of(&[Why::WriteWrite, Why::WriteRead, Why::WriteReadLocking, Why::LockedReadWrite]);
    let Some(ranks) = graph.ranks() else {
        let stronger = [
            (WRITES, Anomaly::DirtyWrite),
            (INFORMATION, Anomaly::CircularInformation),
            (LOCKS, Anomaly::LockedReadOvertaken),
            (COMMITS, Anomaly::OutOfTime),
        ];
        for (reasons, anomaly) in stronger {
            let components = components(graph, reasons);
            if !components.is_empty() {
                let finding = |component: &Vec<u32>| Finding { anomaly, cycle: shortest(graph, component, reasons) };
                return components.iter().map(finding).collect();
            }
        }
        return Vec::new();
    };
    let mut findings = find_single(graph, grain, &ranks);
    if grain == Grain::Transactions {
        find_several(graph, &mut findings);
    }
    findings
}

/// Cycles with one anti-dependency.
fn find_single(graph: &Graph, grain: Grain, ranks: &[u32]) -> Vec<Finding> {
    let mut search = Search::new(graph);
    let mut findings = Vec::new();
    for &edge in graph.edges() {
        let goes_back = ranks[edge.to as usize] < ranks[edge.from as usize];
        if edge.why.orders_commits() || !goes_back {
            continue;
        }
        let allowed = |step: &Edge| step.why.orders_commits() && ranks[step.to as usize] <= ranks[edge.from as usize];
        let enters = |step: &Edge| step.to == edge.from;
        // The way that enters the reader by what its snapshot saw says more than any other.
        let by_snapshot = |step: &Edge| allowed(step) && (!enters(step) || step.why.orders_snapshot());
        let is_single = |step: &Edge| allowed(step) && !step.why.is_anti_dependency();
        let over_own_read =
            |step: &Edge| is_single(step) && (!enters(step) || (step.why == Why::WriteWrite && step.key == edge.key));
        let (way, anomaly) = if let Some(way) = search.way(edge.to, edge.from, by_snapshot) {
            (way, if grain == Grain::Statements { Anomaly::StatementSkew } else { Anomaly::ReadSkew })
        } else if let Some(way) = search.way(edge.to, edge.from, over_own_read) {
            (way, Anomaly::LostUpdate)
        } else if let Some(way) = search.way(edge.to, edge.from, is_single) {
            (way, Anomaly::SingleAntiDependency)
        } else {
            continue;
        };
        findings.push(Finding { anomaly, cycle: [vec![edge], way].concat() });
    }
    findings
}

/// Cycles that need several anti-dependencies, one for each component.
fn find_several(graph: &Graph, findings: &mut Vec<Finding>) {
    const ITEMS: Reasons = Reasons::of(&[
        Why::WriteWrite,
        Why::WriteRead,
        Why::WriteReadLocking,
        Why::LockedReadWrite,
        Why::RealTime,
        Why::ReadWrite,
    ]);
    const ALL: Reasons = Reasons::of(&[
        Why::WriteWrite,
        Why::WriteRead,
        Why::WriteReadLocking,
        Why::LockedReadWrite,
        Why::RealTime,
        Why::ReadWrite,
        Why::PredicateReadWrite,
    ]);
    let mut search = Search::new(graph);
    for (reasons, why, anomaly) in
        [(ITEMS, Why::ReadWrite, Anomaly::WriteSkew), (ALL, Why::PredicateReadWrite, Anomaly::Phantom)]
    {
        for component in components(graph, reasons) {
            let mut is_inside = vec![false; graph.vertices.len()];
            for &vertex in &component {
                is_inside[vertex as usize] = true;
            }
            let edges = component.iter().flat_map(|&vertex| graph.from(vertex));
            let starts = edges.filter(|edge| edge.why == why && is_inside[edge.to as usize]).take(STARTS_MAX);
            let allowed = |step: &Edge| reasons.has(step.why) && is_inside[step.to as usize];
            for &edge in starts {
                let way = search.way_of_dependencies(edge.to, edge.from, allowed);
                if let Some(way) = way.filter(|way| way.iter().any(|step| step.why.is_anti_dependency())) {
                    findings.push(Finding { anomaly, cycle: [vec![edge], way].concat() });
                    break;
                }
            }
        }
    }
}

/// A short cycle of a component.
fn shortest(graph: &Graph, component: &[u32], reasons: Reasons) -> Vec<Edge> {
    let mut search = Search::new(graph);
    let mut best: Vec<Edge> = Vec::new();
    for &vertex in
        component.iter().filter(|&&vertex| graph.vertices[vertex as usize] != Vertex::Moment).take(STARTS_MAX)
    {
        for &edge in graph.from(vertex).iter().filter(|edge| reasons.has(edge.why)) {
            if let Some(way) = search.way(edge.to, vertex, |step| reasons.has(step.why))
                && (best.is_empty() || way.len() + 1 < best.len())
            {
                best = [vec![edge], way].concat();
            }
        }
    }
    best
}

/// The components of more than one vertex by edges of these kinds (Tarjan 1972, without recursion).
fn components(graph: &Graph, reasons: Reasons) -> Vec<Vec<u32>> {
    const UNSEEN: u32 = u32::MAX;
    let count = graph.vertices.len();
    let (mut numbers, mut lowest) = (vec![UNSEEN; count], vec![0_u32; count]);
    let mut is_open = vec![false; count];
    let (mut open, mut path, mut found) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = 0;
    for root in 0..count as u32 {
        if numbers[root as usize] != UNSEEN {
            continue;
        }
        path.push((root, 0_usize));
        while let Some((vertex, position)) = path.last_mut() {
            let at = *vertex as usize;
            if *position == 0 {
                (numbers[at], lowest[at], is_open[at]) = (next, next, true);
                open.push(*vertex);
                next += 1;
            }
            if let Some(edge) = graph.from(*vertex).get(*position) {
                *position += 1;
                let to = edge.to as usize;
                match reasons.has(edge.why) {
                    true if numbers[to] == UNSEEN => path.push((edge.to, 0)),
                    true if is_open[to] => lowest[at] = lowest[at].min(numbers[to]),
                    _ => {}
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                lowest[parent as usize] = lowest[parent as usize].min(lowest[at]);
            }
            if lowest[at] == numbers[at] {
                let first = open.iter().rposition(|&vertex| vertex as usize == at).unwrap_or(0);
                let component = open.split_off(first);
                for &vertex in &component {
                    is_open[vertex as usize] = false;
                }
                if component.len() > 1 {
                    found.push(component);
                }
            }
        }
    }
    found
}

/// Searches for ways through one graph; its memory is kept from one to the next.
struct Search<'a> {
    graph: &'a Graph,
    /// The search that reached each vertex, and by which edge.
    reached: Vec<(u32, Option<Edge>)>,
    searches: u32,
    queue: VecDeque<u32>,
    /// Edges that are followed when no others are left.
    later: Vec<Edge>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Self {
        let reached = vec![(0, None); graph.vertices.len()];
        Self { graph, reached, searches: 0, queue: VecDeque::new(), later: Vec::new() }
    }

    /// A shortest way by allowed edges.
    fn way(&mut self, from: u32, to: u32, allowed: impl Fn(&Edge) -> bool) -> Option<Vec<Edge>> {
        self.walk(from, to, allowed, |_| true)
    }

    /// A way by allowed edges with the fewest anti-dependencies.
    fn way_of_dependencies(&mut self, from: u32, to: u32, allowed: impl Fn(&Edge) -> bool) -> Option<Vec<Edge>> {
        self.walk(from, to, allowed, |edge| !edge.why.is_anti_dependency())
    }

    /// A way by allowed edges with the fewest that are not free.
    fn walk(
        &mut self,
        from: u32,
        to: u32,
        allowed: impl Fn(&Edge) -> bool,
        is_free: impl Fn(&Edge) -> bool,
    ) -> Option<Vec<Edge>> {
        self.searches += 1;
        self.queue.clear();
        self.later.clear();
        self.reached[from as usize] = (self.searches, None);
        self.queue.push_back(from);
        loop {
            while let Some(vertex) = self.queue.pop_front() {
                if vertex == to {
                    return Some(self.trace(to));
                }
                for edge in self.graph.from(vertex).iter().filter(|edge| allowed(edge)) {
                    if is_free(edge) { self.reach(edge) } else { self.later.push(*edge) }
                }
            }
            if self.later.is_empty() {
                return None;
            }
            for edge in std::mem::take(&mut self.later) {
                self.reach(&edge);
            }
        }
    }

    fn reach(&mut self, edge: &Edge) {
        let mark = &mut self.reached[edge.to as usize];
        if mark.0 != self.searches {
            *mark = (self.searches, Some(*edge));
            self.queue.push_back(edge.to);
        }
    }

    fn trace(&self, to: u32) -> Vec<Edge> {
        let mut way = Vec::new();
        let mut vertex = to;
        while let Some(edge) = self.reached[vertex as usize].1 {
            way.push(edge);
            vertex = edge.from;
        }
        way.reverse();
        way
    }
}
