//! The faults of a cluster with voters, and the supervisor that starts its nodes again. Nodes are killed,
//! stopped, paused or cut off; connections are reset; disks are lost, and groups as a whole.
//!
//! Without lost groups, each group keeps a *sound* node: a complete member that no fault has touched for a
//! while. Then nothing that was acknowledged may be missing, on disk or not.

use std::collections::BTreeMap;
use std::rc::Rc;

use junctor_cluster::membership::Membership;
use junctor_kernel::simulated::{Disk, NetworkFaults, NodeEnd};
use junctor_kernel::{ArmedCrash, Duration, NodeId, Random, Time};
use junctor_node::NodeHost;
use junctor_signals::Signal;
use junctor_signals::crash_point::{self, CrashStep};

use crate::cluster::ClusterSimulation;
use crate::fleet::TimeDriver;
use crate::members::Members;

/// The steps of a node that serves around which it crashes.
const SERVICE_STEPS: [CrashStep; 10] = [
    crash_point::IMAGES_KEEP,
    crash_point::IMAGES_APPLY,
    crash_point::EPOCH_TC,
    crash_point::NUMBER_REQUEST,
    crash_point::NUMBER_DECIDE,
    crash_point::NUMBER_PASS,
    crash_point::LOG_SYNC,
    crash_point::CHECKPOINT_BEGIN,
    crash_point::CHECKPOINT_SWITCH,
    crash_point::VOTER_WRITE,
];

/// The steps of a change of the membership around which nodes crash that stay members.
const TAKE_OVER_STEPS: [CrashStep; 6] = [
    crash_point::EPOCH_INSTALL,
    crash_point::EPOCH_GATHER,
    crash_point::EPOCH_START,
    crash_point::EPOCH_TC,
    crash_point::EPOCH_LDM,
    crash_point::VOTER_WRITE,
];

/// The steps of its return around which a node crashes again.
const RETURN_STEPS: [CrashStep; 8] = [
    crash_point::MEMBER_ADMIT,
    crash_point::COPY_SCHEMA,
    crash_point::COPY_ROWS,
    crash_point::LOG_START,
    crash_point::LOG_SYNC,
    crash_point::EPOCH_INSTALL,
    crash_point::EPOCH_LDM,
    crash_point::CHECKPOINT_BEGIN,
];

/// Time between two looks at the nodes.
const STEP: Duration = Duration::from_micros(500);
/// Maximum time between two faults, in microseconds.
const PAUSE_US_MAX: u64 = 400_000;
/// Time between two looks whether nodes were removed.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Time until a fault is tried again that no node could take.
const RETRY_AFTER: Duration = Duration::from_millis(5);
/// Maximum time until a node that is down starts again, in microseconds.
const DOWN_US_MAX: [u64; 4] = [3_000, 100_000, 700_000, 2_000_000];
/// Maximum time until an added node starts first, in microseconds.
const GROWTH_US_MAX: u64 = 400_000;
/// Maximum duration of a cut or a pause, in microseconds. Less than the silence after which a group counts as
/// lost.
const CUT_US_MAX: [u64; 4] = [5_000, 60_000, 600_000, 1_500_000];
/// A node is sound when nothing has touched it for so long. By then, the voters have decided about what
/// others noticed before.
const SOUND_AFTER: Duration = Duration::from_millis(900);
/// Time without other faults in which a node with an armed crash may reach its step. A node that returns
/// needs more than a change of the membership.
const ARMED_MAX: Duration = Duration::from_millis(400);
/// Maximum time that a clean stop may take.
const STOP_MAX: Duration = Duration::from_seconds(10);
/// Maximum time from the last fault until the cluster is whole.
const WHOLE_MAX: Duration = Duration::from_seconds(60);

/// How often each kind of fault was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Processes that were killed, at drawn moments.
    pub kills: u64,
    /// Losses of power of one node.
    pub powers: u64,
    /// Crashes at crash points.
    pub points: u64,
    /// Clean stops.
    pub stops: u64,
    /// Processes that were stopped for a while.
    pub pauses: u64,
    /// Cuts between two nodes, and of one node from all others.
    pub cuts: u64,
    /// Times in which connections between nodes are reset.
    pub resets: u64,
    /// Lost disks.
    pub disks: u64,
    /// Losses of a group, or of all nodes.
    pub groups: u64,
    /// Nodes that stopped because they were evicted, or because a group was lost.
    pub evictions: u64,
    /// Nodes that were removed, alone or with their groups.
    pub removals: u64,
}

/// A fault that is still in force.
#[derive(Debug, Default)]
struct State {
    /// Nodes that are down, and when they start again.
    down: BTreeMap<NodeId, Time>,
    /// Nodes that stop, and when they must have stopped.
    stopping: BTreeMap<NodeId, Time>,
    /// Directions that let nothing through, until a time.
    cuts: Vec<(NodeId, NodeId, Time)>,
    /// Until when connections are reset.
    resets_until: Option<Time>,
    /// The node with an armed crash point.
    armed: Option<NodeId>,
    /// When the last pause of a node ends.
    paused_until: Time,
    /// When a fault last touched each node, or will have ended.
    touched: BTreeMap<NodeId, Time>,
    /// When the driver looks next whether nodes were removed.
    next_look: Time,
}

/// Advances time, makes faults, and starts nodes again.
pub struct MemberDriver<'a> {
    members: Rc<Members>,
    random: Random,
    /// Number of faults that are left.
    left: u64,
    loses_groups: bool,
    next: Time,
    /// The kind of a fault that no node could take yet, and until when one is sought.
    wanted: Option<(u64, Time)>,
    state: State,
    counts: &'a mut FaultCounts,
    failed: Option<String>,
}

impl<'a> MemberDriver<'a> {
    /// A driver that makes this number of faults.
    pub fn new(
        members: &Rc<Members>,
        seed: u64,
        (left, loses_groups): (u64, bool),
        counts: &'a mut FaultCounts,
    ) -> Self {
        let state = State::default();
        let (random, next, wanted, failed) = (Random::new(seed), Time(0), None, None);
        Self { members: Rc::clone(members), random, left, loses_groups, next, wanted, state, counts, failed }
    }

    /// Ends all faults, and waits until the cluster is whole.
    ///
    /// # Errors
    /// A node has stopped for no reason, or the cluster does not become whole.
    pub fn finish(&mut self, simulation: &mut ClusterSimulation) -> Result<(), String> {
        self.left = 0;
        self.disarm(simulation);
        self.end_faults(simulation, true);
        let end = simulation.now().plus(WHOLE_MAX);
        loop {
            self.advance(simulation, Duration::from_millis(10));
            if let Some(fault) = &self.failed {
                return Err(fault.clone());
            }
            // A node that pauses may have been evicted without noticing it, or may be evicted soon.
            let is_settled = simulation.now() >= self.state.paused_until.plus(SOUND_AFTER);
            let missing = self.members.missing(simulation);
            if missing.is_none() && (is_settled || self.state.paused_until == Time(0)) {
                return Ok(());
            }
            if let Some(missing) = missing.filter(|_| simulation.now() >= end) {
                return Err(format!(
                    "the cluster is not whole {} ms after the last fault: {missing}",
                    WHOLE_MAX.as_millis()
                ));
            }
        }
    }

    /// Ends all nodes at once, and waits until the cluster is whole again.
    ///
    /// # Errors
    /// A node does not stop in time, or the cluster does not become whole.
    pub fn restart_all(&mut self, simulation: &mut ClusterSimulation, is_stop: bool) -> Result<(), String> {
        self.members.note(simulation.now(), if is_stop { "all nodes stop" } else { "all nodes lose power" });
        self.counts.groups += 1;
        if is_stop {
            self.members.all().collect::<Vec<_>>().into_iter().for_each(|node| self.stop(simulation, node));
            while !self.state.stopping.is_empty() && self.failed.is_none() {
                self.advance(simulation, STEP);
            }
        }
        self.members.end_all(simulation, NodeEnd::Power);
        self.state.stopping.clear();
        self.members.all().for_each(|node| _ = self.state.down.insert(node, simulation.now()));
        self.finish(simulation)
    }

    /// Ends the nodes that are added later, which were never members.
    pub fn hold_added(&self, simulation: &mut ClusterSimulation) {
        self.members.added().into_iter().for_each(|node| simulation.crash(node, NodeEnd::Process));
    }

    /// Starts the nodes that are added, each after a while.
    pub fn grow(&mut self, simulation: &mut ClusterSimulation) {
        self.members.grow();
        let now = simulation.now();
        for node in self.members.added() {
            let after = Duration::from_micros(self.random.below(GROWTH_US_MAX));
            self.state.down.insert(node, now.plus(after));
        }
    }

    /// What went wrong, if something did.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn fail(&mut self, fault: String) {
        self.failed.get_or_insert(fault);
    }

    /// Does what is due.
    fn work(&mut self, simulation: &mut ClusterSimulation) {
        let now = simulation.now();
        self.members.keep_lines(now);
        self.note_removed(simulation);
        for (node, message) in simulation.take_halts() {
            if self.members.removed().contains(node) && is_removal(node, &message) {
                // It is refused, and stays down.
                self.members.note(now, &format!("node {} has stopped: {message}", node.0));
                continue;
            }
            let is_of_group = message.starts_with("all nodes of a group are gone");
            let is_evicted = is_eviction(&message);
            if !is_evicted && !is_of_group || is_of_group && !self.loses_groups {
                self.fail(format!("node {} stopped: {message}", node.0));
            }
            self.counts.evictions += 1;
            self.members.note(now, &format!("node {} has stopped: {message}", node.0));
            self.go_down(node, now);
        }
        for (node, point) in simulation.take_crashes() {
            self.counts.points += 1;
            let name = crash_point::name(point).unwrap_or_default();
            self.members.note(now, &format!("node {} has crashed at {name}", node.0));
            self.state.armed = None;
            self.go_down(node, now);
        }
        self.end_stops(simulation);
        self.end_removed(simulation);
        self.end_faults(simulation, false);
        if self.left > 0 && now >= self.next {
            let longest = PAUSE_US_MAX / [1, 10, 100][self.random.below(3) as usize];
            self.next = now.plus(Duration::from_micros(self.random.below(longest)));
            self.left -= u64::from(self.make_fault(simulation));
            if self.wanted.is_some() {
                self.next = now.plus(RETRY_AFTER);
            }
        }
        if let Some(node) = self.state.armed
            && !self.may_lose(simulation, &[node])
        {
            self.disarm(simulation);
        }
    }

    /// A node is down, and starts again after a while.
    fn go_down(&mut self, node: NodeId, now: Time) {
        let longest = DOWN_US_MAX[self.random.below(DOWN_US_MAX.len() as u64) as usize];
        self.state.down.insert(node, now.plus(Duration::from_micros(self.random.below(longest))));
        self.state.stopping.remove(&node);
        self.touch(node, now);
    }

    fn touch(&mut self, node: NodeId, until: Time) {
        let touched = self.state.touched.entry(node).or_insert(until);
        *touched = (*touched).max(until);
    }

    /// Ends nodes that have stopped.
    fn end_stops(&mut self, simulation: &mut ClusterSimulation) {
        let now = simulation.now();
        for (node, deadline) in self.state.stopping.clone() {
            if simulation.is_idle(node) {
                simulation.crash(node, NodeEnd::Process);
                self.members.note(now, &format!("node {} has ended", node.0));
                self.go_down(node, now);
            } else if now >= deadline {
                self.state.stopping.remove(&node);
                self.fail(format!("node {} did not become idle after a request to stop", node.0));
            }
        }
    }

    fn note_removed(&mut self, simulation: &mut ClusterSimulation) {
        for node in self.members.note_removed(simulation).iter() {
            self.members.note(simulation.now(), &format!("node {} is removed", node.0));
            self.counts.removals += 1;
        }
    }

    /// Ends nodes that have stopped because they were removed. They start once more, and are refused.
    fn end_removed(&mut self, simulation: &mut ClusterSimulation) {
        let now = simulation.now();
        if now < self.state.next_look {
            return;
        }
        self.state.next_look = now.plus(LOOK_EVERY);
        // A node may stay that was about to be removed. Somebody then starts it again.
        for node in self.members.added() {
            let is_stopped = self.members.is_ending(simulation, node) && simulation.is_idle(node);
            if is_stopped && !self.state.stopping.contains_key(&node) {
                simulation.crash(node, NodeEnd::Process);
                self.members.note(now, &format!("node {} has ended", node.0));
                self.go_down(node, now);
            }
        }
    }

    /// Ends the faults that are over, or `all` of them, and starts nodes again.
    fn end_faults(&mut self, simulation: &mut ClusterSimulation, all: bool) {
        let now = simulation.now();
        let is_over = |until: Time| all || until <= now;
        let due: Vec<NodeId> = self.state.down.iter().filter(|(_, at)| is_over(**at)).map(|(node, _)| *node).collect();
        for node in due {
            self.state.down.remove(&node);
            self.touch(node, now);
            self.members.note(now, &format!("node {} starts", node.0));
            if let Err(fault) = self.members.restart(simulation, node) {
                self.fail(fault);
            }
        }
        self.state.cuts.retain(|(from, to, until)| {
            if is_over(*until) {
                simulation.heal(*from, *to);
            }
            !is_over(*until)
        });
        if self.state.resets_until.is_some_and(is_over) {
            self.state.resets_until = None;
            simulation.set_network_faults(NetworkFaults::default());
        }
    }

    fn disarm(&mut self, simulation: &mut ClusterSimulation) {
        if let Some(node) = self.state.armed.take() {
            simulation.arm_crash(node, None, NodeEnd::Process);
        }
    }

    /// Whether every group keeps a sound node if these nodes are lost, and the voters their majority. A voter
    /// whose disk was lost does not count before it has a new log.
    fn may_lose(&self, simulation: &mut ClusterSimulation, lost: &[NodeId]) -> bool {
        let is_left = |node: &NodeId| !lost.contains(node) && !self.state.stopping.contains_key(node);
        let voters = self.members.voters();
        let mut votes = |node: NodeId| simulation.is_up(node) && self.members.is_voter(simulation, node);
        let living = voters.iter().filter(|node| is_left(node) && votes(**node)).count();
        let Some(membership) = self.members.membership(simulation) else { return false };
        let now = simulation.now();
        let is_sound = |node: NodeId| {
            let is_untouched = self.state.touched.get(&node).is_none_or(|at| now >= at.plus(SOUND_AFTER));
            // A replica that leaves may be gone at any moment.
            let stays = !membership.leaving.contains(node);
            is_left(&node) && simulation.is_up(node) && is_untouched && stays && self.is_complete(&membership, node)
        };
        // A group is about to open once all of its nodes are complete.
        let is_ready = |group: &u8| {
            membership.nodes.iter().filter(|it| it.group == *group).all(|it| it.is_serving() && it.is_durable)
        };
        let mut groups = membership.groups().chain(membership.closed_group().filter(is_ready));
        let members: Vec<NodeId> =
            membership.nodes.iter().map(|record| record.node).filter(|node| is_sound(*node)).collect();
        let in_group = |node: &NodeId, group| membership.record(*node).is_some_and(|record| record.group == group);
        living > voters.len() / 2 && groups.all(|group| members.iter().any(|node| in_group(node, group)))
    }

    /// Whether the present life of a node has all rows, and a disk that counts.
    fn is_complete(&self, membership: &Membership, node: NodeId) -> bool {
        membership.record(node).is_some_and(|record| {
            record.is_serving()
                && record.is_durable
                && record.incarnation == self.members.life(node)
                && record.serving_since <= membership.started
        })
    }

    /// Makes one fault. Returns whether it did.
    fn make_fault(&mut self, simulation: &mut ClusterSimulation) -> bool {
        let now = simulation.now();
        let all: Vec<NodeId> = self.members.all().collect();
        let node = all[self.random.below(all.len() as u64) as usize];
        let (kind, until) = match self.wanted.take() {
            Some(wanted) if now < wanted.1 => wanted,
            _ => (self.random.below(if self.loses_groups { 13 } else { 11 }), now.plus(SOUND_AFTER)),
        };
        let is_free = simulation.is_up(node) && !self.state.stopping.contains_key(&node);
        match kind {
            0 | 1 if is_free && self.may_lose(simulation, &[node]) => {
                let end = if self.random.one_in(3) { NodeEnd::Power } else { NodeEnd::Process };
                self.counts.kills += u64::from(end == NodeEnd::Process);
                self.counts.powers += u64::from(end == NodeEnd::Power);
                self.kill(simulation, node, end);
            }
            3 if is_free && self.may_lose(simulation, &[node]) => self.stop(simulation, node),
            4 if is_free && self.is_calm() && self.may_lose(simulation, &[node]) => {
                self.counts.disks += 1;
                self.kill(simulation, node, NodeEnd::Power);
                if let Some(disk) = simulation.disk_mut(node) {
                    *disk = Disk::default();
                }
                self.members.note(now, &format!("node {} has lost its disk", node.0));
            }
            2 | 5 if is_free && self.may_lose(simulation, &[node]) => {
                if !self.arm(simulation, node, &all) {
                    self.wanted = Some((kind, until));
                    return false;
                }
            }
            6 => {
                let until = self.until(now);
                self.counts.pauses += 1;
                self.members.note(now, &format!("node {} pauses until {}", node.0, until.0 / 1_000_000));
                simulation.pause(node, until.since(now));
                self.state.paused_until = self.state.paused_until.max(until);
                self.touch(node, until);
            }
            7 | 8 => {
                let other = all[self.random.below(all.len() as u64) as usize];
                let others = if kind == 7 || other == node { all.clone() } else { vec![other] };
                let (until, is_one_way) = (self.until(now), self.random.one_in(3));
                self.counts.cuts += 1;
                self.members.note(now, &format!("node {} is cut off from {others:?}, one way: {is_one_way}", node.0));
                for other in others.into_iter().filter(|other| *other != node) {
                    self.cut(simulation, node, other, until);
                    if !is_one_way {
                        self.cut(simulation, other, node, until);
                    }
                }
            }
            9 | 10 => {
                let until = self.until(now);
                self.counts.resets += 1;
                self.state.resets_until = Some(until);
                let faults = NetworkFaults { reset_one_in: 20 + self.random.below(400), damage_one_in: 0 };
                simulation.set_network_faults(faults);
            }
            11 | 12 => self.lose_group(simulation, kind == 11),
            // No node may be lost yet, or not this one.
            _ => {
                self.wanted = Some((kind, until));
                return false;
            }
        }
        true
    }

    /// Lets a node crash at a step: while it serves, while the membership changes because another node is
    /// lost, or while it returns. Returns whether the node can reach such a step.
    fn arm(&mut self, simulation: &mut ClusterSimulation, node: NodeId, all: &[NodeId]) -> bool {
        let hits = simulation.crash_point_hits(node);
        let has_hit = |step: &CrashStep| hits.contains_key(&step.before());
        let steps: Vec<CrashStep>;
        let (mut lost, mut hits_max) = (None, 2);
        match self.random.below(3) {
            0 => {
                steps = SERVICE_STEPS.into_iter().filter(has_hit).collect();
                hits_max = 1 << self.random.below(6);
            }
            1 => {
                steps = TAKE_OVER_STEPS.into_iter().filter(has_hit).collect();
                let first = self.random.below(all.len() as u64) as usize;
                let others = all[first..].iter().chain(&all[..first]).filter(|other| **other != node);
                let membership = self.members.membership(simulation);
                let is_member = |other: NodeId| membership.as_ref().is_some_and(|it| it.record(other).is_some());
                lost = others.copied().find(|other| {
                    let is_free = simulation.is_up(*other) && !self.state.stopping.contains_key(other);
                    is_free && is_member(*other) && self.may_lose(simulation, &[node, *other])
                });
                if lost.is_none() {
                    return false;
                }
            }
            _ => {
                steps = RETURN_STEPS.into_iter().filter(has_hit).collect();
                lost = Some(node);
            }
        }
        if steps.is_empty() {
            return false;
        }
        let step = steps[self.random.below(steps.len() as u64) as usize];
        let point = if self.random.one_in(2) { step.before() } else { step.after() };
        let hit = 1 + self.random.below(hits_max);
        self.disarm(simulation);
        simulation.arm_crash(node, Some(ArmedCrash { point, hit }), NodeEnd::Process);
        self.state.armed = Some(node);
        // Another fault meanwhile would often leave the group without a sound node, and disarm the crash.
        self.next = self.next.max(simulation.now().plus(ARMED_MAX));
        if let Some(lost) = lost {
            self.counts.kills += 1;
            self.kill(simulation, lost, NodeEnd::Process);
        }
        true
    }

    fn until(&mut self, now: Time) -> Time {
        let longest = CUT_US_MAX[self.random.below(CUT_US_MAX.len() as u64) as usize];
        now.plus(Duration::from_micros(1 + self.random.below(longest)))
    }

    fn cut(&mut self, simulation: &mut ClusterSimulation, from: NodeId, to: NodeId, until: Time) {
        simulation.cut(from, to);
        self.state.cuts.push((from, to, until));
        self.touch(from, until);
        self.touch(to, until);
    }

    fn kill(&mut self, simulation: &mut ClusterSimulation, node: NodeId, end: NodeEnd) {
        self.members.note(simulation.now(), &format!("node {} is killed: {end:?}", node.0));
        simulation.crash(node, end);
        self.go_down(node, simulation.now());
    }

    fn stop(&mut self, simulation: &mut ClusterSimulation, node: NodeId) {
        let now = simulation.now();
        self.counts.stops += 1;
        self.members.note(now, &format!("node {} is asked to stop", node.0));
        simulation.request_stop(node);
        self.state.stopping.insert(node, now.plus(STOP_MAX));
        self.touch(node, now);
    }

    /// Kills all nodes of a group, or all nodes.
    fn lose_group(&mut self, simulation: &mut ClusterSimulation, is_all: bool) {
        let Some(membership) = self.members.membership(simulation) else { return };
        let end = if self.random.one_in(2) { NodeEnd::Power } else { NodeEnd::Process };
        let groups: Vec<u8> = membership.groups().collect();
        let group = groups.get(self.random.below(groups.len().max(1) as u64) as usize).copied();
        let in_group = |node: &NodeId| membership.record(*node).is_some_and(|record| Some(record.group) == group);
        let lost: Vec<NodeId> = self.members.all().filter(|node| is_all || in_group(node)).collect();
        self.counts.groups += 1;
        for node in lost {
            if simulation.is_up(node) {
                self.kill(simulation, node, end);
            }
        }
    }

    /// Whether no fault is in force, and all nodes run.
    fn is_calm(&self) -> bool {
        let State { down, stopping, cuts, resets_until, .. } = &self.state;
        down.is_empty() && stopping.is_empty() && cuts.is_empty() && resets_until.is_none()
    }
}

/// Whether a node has stopped with this message because it was removed.
fn is_removal(node: NodeId, message: &str) -> bool {
    message.starts_with(&format!("node {} was removed from the cluster", node.0))
}

/// Whether a node has stopped with this message because others have evicted it, or refuse it after a silence.
fn is_eviction(message: &str) -> bool {
    let (own, other) = (message.strip_prefix("this node "), message.strip_prefix("node "));
    // The number of the other node comes first.
    let other = other.map(|rest| rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    own.is_some_and(|rest| rest.starts_with("was evicted before epoch "))
        || matches!(
            other,
            Some(
                " says that this node was evicted"
                    | " refuses this node: the node's incarnation was evicted"
                    | " has been silent for so long that it has refused this node"
            )
        )
}

impl TimeDriver<Signal, NodeHost> for MemberDriver<'_> {
    fn advance(&mut self, simulation: &mut ClusterSimulation, duration: Duration) {
        let end = simulation.now().plus(duration);
        while simulation.now() < end && self.failed.is_none() {
            let step = end.since(simulation.now()).min(STEP);
            simulation.run_for(step);
            self.work(simulation);
        }
    }

    fn have_nodes_ended(&self) -> bool {
        self.failed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_another_reason_is_no_eviction() {
        for message in [
            "node 12 says that this node was evicted",
            "this node was evicted before epoch 3; it must start again",
            "node 1 refuses this node: the node's incarnation was evicted",
            "node 1 has been silent for so long that it has refused this node",
        ] {
            assert!(is_eviction(message), "{message}");
        }
        for message in [
            "node 1 refuses this node: a later incarnation of the node was accepted before",
            "node 1 refuses this node: the node does not have the cluster's key",
            "this node cannot copy the rows of the cluster: node 1 was evicted",
            "the log is refused",
        ] {
            assert!(!is_eviction(message), "{message}");
        }
    }
}
