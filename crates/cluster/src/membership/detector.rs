//! Which nodes to evict: nodes that do not hear each other, and nodes that stand still.

use junctor_kernel::{Duration, NodeId, Time};
use junctor_model::id::CommitNumber;
use junctor_signals::report_node::SlowNode;

use super::NodeSet;

/// Steps of the search for the fewest evictions. A search that needs more evicts greedily: some nodes more
/// than necessary, in a network with so many cuts that hardly any set of nodes is connected.
const SEARCH_STEPS_MAX: u32 = 20_000;

/// The nodes that a node hears, by its last heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeardBy {
    /// The node.
    pub node: NodeId,
    /// The nodes that it hears. `None` if its list is unknown: then only the lists of the others count.
    pub hears: Option<NodeSet>,
}

/// Which members hear each other.
#[derive(Clone, Debug)]
pub struct Hearing<'a> {
    /// The members, in ascending order.
    pub heard: &'a [HeardBy],
    /// Members that are certainly dead: their node refuses connections, or has another incarnation.
    pub dead: NodeSet,
    /// The node that numbers commits.
    pub sequencer: NodeId,
}

impl Hearing<'_> {
    /// The fewest nodes whose eviction leaves nodes that all hear each other. Among several such sets the one
    /// that keeps the sequencer, then the one that keeps the lowest node. Sets that `is_allowed` refuses do
    /// not count; `None` if no set is left.
    pub fn to_evict(&self, is_allowed: &dyn Fn(NodeSet) -> bool) -> Option<NodeSet> {
        let alive: Vec<&HeardBy> = self.heard.iter().filter(|it| !self.dead.contains(it.node)).collect();
        let hears = |from: &HeardBy, to: NodeId| from.hears.is_none_or(|hears| hears.contains(to));
        let mut search = Search { best: None, sequencer: self.sequencer, is_allowed, steps: 0, broken: Vec::new() };
        for (index, one) in alive.iter().enumerate() {
            let broken = alive[index + 1..].iter().filter(|it| !hears(one, it.node) || !hears(it, one.node));
            search.broken.extend(broken.map(|it| (one.node, it.node)));
        }
        search.run(self.dead);
        search.best.map(|best| best.evicted)
    }
}

struct Candidate {
    evicted: NodeSet,
    evicts_sequencer: bool,
}

/// A search for the smallest set of nodes that has one node of each broken pair.
struct Search<'a> {
    broken: Vec<(NodeId, NodeId)>,
    best: Option<Candidate>,
    sequencer: NodeId,
    is_allowed: &'a dyn Fn(NodeSet) -> bool,
    steps: u32,
}

impl Search<'_> {
    fn run(&mut self, evicted: NodeSet) {
        self.steps += 1;
        if self.best.as_ref().is_some_and(|best| best.evicted.len() < evicted.len()) {
            return;
        }
        let Some(busiest) = self.busiest(evicted) else { return self.propose(evicted) };
        let mut with_busiest = evicted;
        with_busiest.insert(busiest);
        self.run(with_busiest);
        // Otherwise every node that is cut off from it leaves.
        if self.steps < SEARCH_STEPS_MAX {
            let is_open = |pair: &&(NodeId, NodeId)| !evicted.contains(pair.0) && !evicted.contains(pair.1);
            let pairs = self.broken.iter().filter(is_open);
            let others = pairs.filter_map(|&(one, other)| match (one == busiest, other == busiest) {
                (true, _) => Some(other),
                (_, true) => Some(one),
                _ => None,
            });
            let without_busiest = evicted.union(&others.collect());
            self.run(without_busiest);
        }
    }

    /// The node in most broken pairs that are left; among equal ones the highest.
    fn busiest(&self, evicted: NodeSet) -> Option<NodeId> {
        let mut counts = [0_u32; 256];
        for (one, other) in &self.broken {
            if !evicted.contains(*one) && !evicted.contains(*other) {
                counts[usize::from(one.0)] += 1;
                counts[usize::from(other.0)] += 1;
            }
        }
        let busiest = (0..=u8::MAX).max_by_key(|node| counts[usize::from(*node)])?;
        (counts[usize::from(busiest)] > 0).then_some(NodeId(busiest))
    }

    fn propose(&mut self, evicted: NodeSet) {
        let evicts_sequencer = evicted.contains(self.sequencer);
        let is_better = self.best.as_ref().is_none_or(|best| {
            let (own, other) = (evicted.len(), best.evicted.len());
            let order = own.cmp(&other).then(evicts_sequencer.cmp(&best.evicts_sequencer));
            order.then_with(|| keeps_lowest(evicted, best.evicted)).is_lt()
        });
        if is_better && (self.is_allowed)(evicted) {
            self.best = Some(Candidate { evicted, evicts_sequencer });
        }
    }
}

/// Less if the first set keeps the lowest node in which the two differ.
fn keeps_lowest(one: NodeSet, other: NodeSet) -> std::cmp::Ordering {
    let lowest = one.union(&other).without(&one.intersection(&other)).iter().next();
    lowest.map_or(std::cmp::Ordering::Equal, |node| one.contains(node).cmp(&other.contains(node)))
}

/// How far a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The last number that it has applied.
    pub applied: CommitNumber,
    /// The last number that it has synced, but none above the one that all must sync: later ones come when
    /// they come. `None` for a node that does not count as durable.
    pub durable: Option<CommitNumber>,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    progress: Progress,
    applied_since: Time,
    durable_since: Time,
}

/// Notices nodes that stand still while others advance.
#[derive(Clone, Debug, Default)]
pub struct SlowNodes {
    watches: Vec<(NodeId, Watch)>,
    looked: Time,
}

impl SlowNodes {
    /// Takes the progress of every serving node into account, and returns a node that has stood still for
    /// `limit`. Between two calls at most a quarter of it may pass; otherwise the observer stood still
    /// itself, and starts anew.
    pub fn observe(&mut self, now: Time, limit: Duration, nodes: &[(NodeId, Progress)]) -> Option<SlowNode> {
        let has_stalled = now.since(self.looked) > Duration(limit.0 / 4);
        self.looked = now;
        let applied = nodes.iter().map(|(_, it)| it.applied).max().unwrap_or_default();
        let durable = nodes.iter().filter_map(|(_, it)| it.durable).max();
        let watched = std::mem::take(&mut self.watches);
        for &(node, progress) in nodes {
            let before = watched.iter().find(|(other, _)| *other == node).map(|(_, watch)| *watch);
            let before = before.filter(|_| !has_stalled);
            // A node that lacks nothing does not stand still, however long nothing happens.
            let lags_behind = progress.durable.is_some() && progress.durable < durable;
            let applied_since =
                before.filter(|it| progress.applied < applied && it.progress.applied == progress.applied);
            let durable_since = before.filter(|it| lags_behind && it.progress.durable == progress.durable);
            let watch = Watch {
                progress,
                applied_since: applied_since.map_or(now, |before| before.applied_since),
                durable_since: durable_since.map_or(now, |before| before.durable_since),
            };
            self.watches.push((node, watch));
        }
        self.watches.iter().find_map(|(node, watch)| {
            let is_over = |since: Time| now.since(since) >= limit;
            if watch.progress.applied < applied && is_over(watch.applied_since) {
                return Some(SlowNode { node: *node, is_disk: false });
            }
            let is_behind = watch.progress.durable.is_some() && watch.progress.durable < durable;
            (is_behind && is_over(watch.durable_since)).then_some(SlowNode { node: *node, is_disk: true })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(1000);

    fn set(nodes: &[u8]) -> NodeSet {
        nodes.iter().map(|node| NodeId(*node)).collect()
    }

    /// All of `nodes` hear each other, except `from` that do not hear `to`.
    fn evicted(nodes: &[u8], cut: &[(u8, u8)], sequencer: u8) -> Option<NodeSet> {
        let heard: Vec<HeardBy> = nodes
            .iter()
            .map(|node| {
                let mut hears = set(nodes);
                let lost = cut.iter().filter(|(from, _)| from == node);
                lost.for_each(|(_, to)| hears.remove(NodeId(*to)));
                HeardBy { node: NodeId(*node), hears: Some(hears) }
            })
            .collect();
        let hearing = Hearing { heard: &heard, dead: NodeSet::EMPTY, sequencer: NodeId(sequencer) };
        hearing.to_evict(&|_| true)
    }

    #[test]
    fn nobody_leaves_a_full_mesh() {
        assert_eq!(evicted(&[1, 2, 3], &[], 1), Some(NodeSet::EMPTY));
    }

    #[test]
    fn a_silent_node_leaves() {
        assert_eq!(evicted(&[1, 2, 3], &[(1, 2), (3, 2)], 1), Some(set(&[2])));
    }

    #[test]
    fn of_two_nodes_the_sequencer_stays_otherwise_the_lower_one() {
        assert_eq!(evicted(&[1, 2, 3], &[(1, 2)], 2), Some(set(&[1])));
        assert_eq!(evicted(&[1, 2, 3], &[(1, 2)], 3), Some(set(&[2])));
    }

    #[test]
    fn the_smaller_side_of_a_split_leaves() {
        let cut: Vec<(u8, u8)> = [1, 2].into_iter().flat_map(|one| [3, 4, 5].map(|other| (one, other))).collect();
        assert_eq!(evicted(&[1, 2, 3, 4, 5], &cut, 1), Some(set(&[1, 2])));
    }

    #[test]
    fn halves_of_sixty_four_nodes_are_parted_quickly() {
        let nodes: Vec<u8> = (0..64).collect();
        let cut: Vec<(u8, u8)> = (0..32).flat_map(|one| (32..64).map(move |other| (one, other))).collect();
        assert_eq!(evicted(&nodes, &cut, 40).map(|it| it.contains(NodeId(0))), Some(true));
    }

    #[test]
    fn a_set_that_ends_a_group_is_not_chosen() {
        let heard = [1, 2].map(|node| HeardBy { node: NodeId(node), hears: Some(set(&[node])) });
        let hearing = Hearing { heard: &heard, dead: NodeSet::EMPTY, sequencer: NodeId(1) };
        assert_eq!(hearing.to_evict(&|it| !it.contains(NodeId(2))), Some(set(&[1])));
        assert_eq!(hearing.to_evict(&|_| false), None);
    }

    #[test]
    fn dead_nodes_leave_and_an_unknown_list_is_no_witness() {
        let mut heard = [1, 2, 3].map(|node| HeardBy { node: NodeId(node), hears: Some(set(&[1, 2, 3])) });
        heard[1].hears = None;
        let hearing = Hearing { heard: &heard, dead: set(&[3]), sequencer: NodeId(1) };
        assert_eq!(hearing.to_evict(&|_| true), Some(set(&[3])));
    }

    #[test]
    fn a_node_that_stands_still_while_others_advance_is_slow() {
        let mut slow = SlowNodes::default();
        let progress = |applied: u64| Progress { applied: CommitNumber(applied), durable: None };
        let mut found = Vec::new();
        for tick in 0..=60 {
            let now = Time(0).plus(Duration::from_millis(20 * tick));
            let nodes = [(NodeId(1), progress(100 + tick)), (NodeId(2), progress(100)), (NodeId(3), progress(160))];
            found.extend(slow.observe(now, LIMIT, &nodes).map(|it| (tick, it)));
        }
        assert_eq!(found.first(), Some(&(50, SlowNode { node: NodeId(2), is_disk: false })));
        // An observer that stood still itself accuses nobody.
        let later = Time(0).plus(Duration::from_millis(20_000));
        assert_eq!(slow.observe(later, LIMIT, &[(NodeId(1), progress(500)), (NodeId(2), progress(100))]), None);
    }

    #[test]
    fn the_first_commit_after_a_quiet_time_accuses_nobody() {
        let mut slow = SlowNodes::default();
        let mut observe = |tick: u64, first: u64, second: u64| {
            let progress = |number| Progress { applied: CommitNumber(number), durable: Some(CommitNumber(number)) };
            let now = Time(0).plus(Duration::from_millis(20 * tick));
            slow.observe(now, LIMIT, &[(NodeId(1), progress(first)), (NodeId(2), progress(second))])
        };
        assert!((0..100).all(|tick| observe(tick, 7, 7).is_none()));
        // One node is ahead for a moment.
        assert_eq!(observe(100, 8, 7), None);
        assert_eq!(observe(101, 8, 8), None);
    }

    #[test]
    fn a_node_whose_log_stands_still_is_slow() {
        let mut slow = SlowNodes::default();
        let progress = |durable: u64| Progress { applied: CommitNumber(9), durable: Some(CommitNumber(durable)) };
        let mut found = None;
        for tick in 0..=50 {
            let now = Time(0).plus(Duration::from_millis(20 * tick));
            found = slow.observe(now, LIMIT, &[(NodeId(1), progress(9)), (NodeId(2), progress(3))]);
        }
        assert_eq!(found, Some(SlowNode { node: NodeId(2), is_disk: true }));
        // Nobody is slow when nobody is ahead.
        let nodes = [(NodeId(1), progress(9)), (NodeId(2), progress(9))];
        assert_eq!(slow.observe(Time(0).plus(Duration::from_millis(1010)), LIMIT, &nodes), None);
    }
}
