//! Finds and classifies the cycles of a graph.

use std::collections::VecDeque;

use crate::graph::{COMMITS, Dependencies, Dependency, Edge, Granularity, Graph, Vertex};
use crate::level::Anomaly;

/// Maximum number of vertices of a component to try as the start of a short cycle.
const STARTS_MAX: usize = 64;

/// A cycle and its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The anomaly that the cycle proves.
    pub anomaly: Anomaly,
    /// The edges, in order. The last one ends where the first one begins.
    pub cycle: Vec<Edge>,
}

/// Finds cycles. If the dependencies that order commits form cycles, returns a short one for each strongly
/// connected component. Otherwise, returns a cycle for each anti-dependency that goes back in commit order,
/// and those that need several anti-dependencies.
pub fn find(graph: &Graph, granularity: Granularity) -> Vec<Finding> {
    const WRITES: Dependencies = Dependencies::of(&[Dependency::WriteWrite]);
    const INFORMATION: Dependencies =
        Dependencies::of(&[Dependency::WriteWrite, Dependency::WriteRead, Dependency::WriteReadLocking]);
    const LOCKS: Dependencies = Dependencies::of(&[
        Dependency::WriteWrite,
        Dependency::WriteRead,
        Dependency::WriteReadLocking,
        Dependency::LockedReadWrite,
    ]);
    let Some(ranks) = graph.ranks() else {
        let stronger = [
            (WRITES, Anomaly::DirtyWrite),
            (INFORMATION, Anomaly::CircularInformation),
            (LOCKS, Anomaly::LockedReadOvertaken),
            (COMMITS, Anomaly::RealTimeViolation),
        ];
        // The first set of dependencies that has a cycle determines the anomaly. Each set contains the one
        // before it.
        for (dependencies, anomaly) in stronger {
            let components = components(graph, dependencies);
            if !components.is_empty() {
                let finding =
                    |component: &Vec<u32>| Finding { anomaly, cycle: shortest(graph, component, dependencies) };
                return components.iter().map(finding).collect();
            }
        }
        return Vec::new();
    };
    let mut findings = find_single(graph, granularity, &ranks);
    if granularity == Granularity::Transactions {
        find_several(graph, &mut findings);
    }
    findings
}

/// Finds cycles with one anti-dependency. That edge goes back in commit order, and a path of other edges
/// leads from its end to its start.
fn find_single(graph: &Graph, granularity: Granularity, ranks: &[u32]) -> Vec<Finding> {
    let mut search = Search::new(graph);
    let mut findings = Vec::new();
    for &edge in graph.edges() {
        // Edges that order commits lead to higher ranks, so they can close a cycle only over an edge that
        // goes back.
        let goes_back = ranks[edge.to as usize] < ranks[edge.from as usize];
        if edge.dependency.orders_commits() || !goes_back {
            continue;
        }
        let allowed =
            |step: &Edge| step.dependency.orders_commits() && ranks[step.to as usize] <= ranks[edge.from as usize];
        let enters = |step: &Edge| step.to == edge.from;
        // Prefer a path that enters the reader through its snapshot: it proves more than the other paths.
        let by_snapshot = |step: &Edge| allowed(step) && (!enters(step) || step.dependency.orders_snapshot());
        let is_single = |step: &Edge| allowed(step) && !step.dependency.is_anti_dependency();
        let overwrites_read = |step: &Edge| {
            is_single(step) && (!enters(step) || (step.dependency == Dependency::WriteWrite && step.key == edge.key))
        };
        let (path, anomaly) = if let Some(path) = search.path(edge.to, edge.from, by_snapshot) {
            (path, if granularity == Granularity::Statements { Anomaly::StatementSkew } else { Anomaly::ReadSkew })
        } else if let Some(path) = search.path(edge.to, edge.from, overwrites_read) {
            (path, Anomaly::LostUpdate)
        } else if let Some(path) = search.path(edge.to, edge.from, is_single) {
            (path, Anomaly::SingleAntiDependency)
        } else {
            continue;
        };
        findings.push(Finding { anomaly, cycle: [vec![edge], path].concat() });
    }
    findings
}

/// Finds cycles that need several anti-dependencies, one for each strongly connected component.
fn find_several(graph: &Graph, findings: &mut Vec<Finding>) {
    const ITEMS: Dependencies = Dependencies::of(&[
        Dependency::WriteWrite,
        Dependency::WriteRead,
        Dependency::WriteReadLocking,
        Dependency::LockedReadWrite,
        Dependency::RealTime,
        Dependency::ReadWrite,
    ]);
    const ALL: Dependencies = ITEMS.with(Dependency::PredicateReadWrite);
    let mut search = Search::new(graph);
    for (dependencies, dependency, anomaly) in
        [(ITEMS, Dependency::ReadWrite, Anomaly::WriteSkew), (ALL, Dependency::PredicateReadWrite, Anomaly::Phantom)]
    {
        for component in components(graph, dependencies) {
            let mut is_inside = vec![false; graph.vertices.len()];
            for &vertex in &component {
                is_inside[vertex as usize] = true;
            }
            let edges = component.iter().flat_map(|&vertex| graph.from(vertex));
            let starts =
                edges.filter(|edge| edge.dependency == dependency && is_inside[edge.to as usize]).take(STARTS_MAX);
            let allowed = |step: &Edge| dependencies.has(step.dependency) && is_inside[step.to as usize];
            for &edge in starts {
                let path = search.path_with_fewest_anti_dependencies(edge.to, edge.from, allowed);
                if let Some(path) = path.filter(|path| path.iter().any(|step| step.dependency.is_anti_dependency())) {
                    findings.push(Finding { anomaly, cycle: [vec![edge], path].concat() });
                    break;
                }
            }
        }
    }
}

/// A short cycle in a component. It tries only some starts, so it need not be the shortest.
fn shortest(graph: &Graph, component: &[u32], dependencies: Dependencies) -> Vec<Edge> {
    let mut search = Search::new(graph);
    let mut best: Vec<Edge> = Vec::new();
    for &vertex in
        component.iter().filter(|&&vertex| graph.vertices[vertex as usize] != Vertex::Moment).take(STARTS_MAX)
    {
        for &edge in graph.from(vertex).iter().filter(|edge| dependencies.has(edge.dependency)) {
            if let Some(path) = search.path(edge.to, vertex, |step| dependencies.has(step.dependency))
                && (best.is_empty() || path.len() + 1 < best.len())
            {
                best = [vec![edge], path].concat();
            }
        }
    }
    best
}

/// The strongly connected components of more than one vertex, over the given kinds of edges (Tarjan 1972,
/// made iterative).
fn components(graph: &Graph, dependencies: Dependencies) -> Vec<Vec<u32>> {
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
                match dependencies.has(edge.dependency) {
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

/// Path searches in one graph. Reusing the memory makes many small searches cheap.
struct Search<'a> {
    graph: &'a Graph,
    /// For each vertex, the last search that reached it, and the edge by which it did.
    reached: Vec<(u32, Option<Edge>)>,
    searches: u32,
    queue: VecDeque<u32>,
    /// Edges that cost one step, followed when no free edge is left.
    later: Vec<Edge>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Self {
        let reached = vec![(0, None); graph.vertices.len()];
        Self { graph, reached, searches: 0, queue: VecDeque::new(), later: Vec::new() }
    }

    /// A shortest path along allowed edges.
    fn path(&mut self, from: u32, to: u32, allowed: impl Fn(&Edge) -> bool) -> Option<Vec<Edge>> {
        self.walk(from, to, allowed, |_| true)
    }

    /// A path along allowed edges with the fewest anti-dependencies.
    fn path_with_fewest_anti_dependencies(
        &mut self,
        from: u32,
        to: u32,
        allowed: impl Fn(&Edge) -> bool,
    ) -> Option<Vec<Edge>> {
        self.walk(from, to, allowed, |edge| !edge.dependency.is_anti_dependency())
    }

    /// A path along allowed edges with the fewest edges that are not free (0-1 breadth-first search).
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
        let mut path = Vec::new();
        let mut vertex = to;
        while let Some(edge) = self.reached[vertex as usize].1 {
            path.push(edge);
            vertex = edge.from;
        }
        path.reverse();
        path
    }
}
