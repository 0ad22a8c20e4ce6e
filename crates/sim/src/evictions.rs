//! Nodes that crash and are evicted, and how the others learn of it. The simulator stands for the voters.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_cluster::membership::{Membership, MembershipChange, NodeSet};
use junctor_kernel::simulated::NodeEnd;
use junctor_kernel::{Address, ArmedCrash, Duration, NodeId, Random, Time};
use junctor_signals::crash_point::{self, CrashStep};
use junctor_signals::install_membership::InstallMembership;
use junctor_signals::{MainSignal, Module, Signal};

use crate::cluster::ClusterSimulation;

/// The steps of a commit and of a take-over, around which nodes crash.
const STEPS: [CrashStep; 10] = [
    crash_point::IMAGES_KEEP,
    crash_point::IMAGES_APPLY,
    crash_point::EPOCH_INSTALL,
    crash_point::EPOCH_GATHER,
    crash_point::EPOCH_START,
    crash_point::EPOCH_TC,
    crash_point::EPOCH_LDM,
    crash_point::NUMBER_REQUEST,
    crash_point::NUMBER_DECIDE,
    crash_point::NUMBER_PASS,
];

/// Maximum time from the begin of a life, or from the eviction before, to a crash, in microseconds.
const CRASH_US_MAX: u64 = 200_000;
/// Maximum time from a crash to the new membership, in microseconds. After a long time, every session waits
/// for the node; after a short one, some have not noticed.
const DETECTION_US_MAX: [u64; 3] = [50_000, 1_000, 20];
/// Maximum time until a node learns of the new membership, in nanoseconds.
const LEARNED_NS_MAX: [u64; 3] = [5_000_000, 100_000, 1_000];

/// The evictions of a life. The next one may begin before every member has learned of the one before.
#[derive(Debug)]
pub struct Evictions {
    random: Random,
    membership: Membership,
    /// The sets of nodes that are lost together.
    waiting: Vec<NodeSet>,
    running: Vec<Eviction>,
}

/// Nodes that crash together.
#[derive(Debug)]
struct Eviction {
    nodes: NodeSet,
    /// When the nodes crash that no crash point has ended before.
    crash: Time,
    /// The membership without the nodes; known once they have crashed.
    installs: Option<Installs>,
}

/// A membership that members have yet to learn of.
#[derive(Debug)]
struct Installs {
    at: BTreeMap<NodeId, Time>,
    membership: Arc<[u8]>,
}

impl Evictions {
    /// Draws which of the nodes are lost, up to `count`, and when.
    pub fn draw(
        simulation: &mut ClusterSimulation,
        mut random: Random,
        membership: Membership,
        (mut nodes, count): (Vec<NodeId>, usize),
    ) -> Evictions {
        let mut lost = Vec::new();
        while lost.len() < count {
            let node = nodes.swap_remove(random.below(nodes.len() as u64) as usize);
            // Each group keeps a node.
            let nodes = lost.iter().copied().chain([node]).collect();
            if membership.apply(&MembershipChange::Evict { nodes, avoid: None }).is_ok() {
                lost.push(node);
            }
        }
        let mut waiting = Vec::new();
        while !lost.is_empty() {
            let together = 1 + random.below(lost.len() as u64) as usize;
            waiting.push(lost.drain(..together).collect());
        }
        let mut evictions = Evictions { random, membership, waiting, running: Vec::new() };
        evictions.begin_next(simulation);
        evictions
    }

    fn begin_next(&mut self, simulation: &mut ClusterSimulation) {
        let running = self.waiting.pop().map(|nodes: NodeSet| {
            // A node often dies in the middle of the take-over from the one before.
            let longest_us = CRASH_US_MAX / [1, 10, 100][self.random.below(3) as usize];
            let crash = simulation.now().plus(Duration::from_micros(self.random.below(longest_us)));
            for node in nodes.iter() {
                let step = STEPS[self.random.below(STEPS.len() as u64) as usize];
                let point = if self.random.one_in(2) { step.before() } else { step.after() };
                let hits = 1 << self.random.below(6);
                let hit = 1 + self.random.below(hits);
                let armed = self.random.one_in(2).then_some(ArmedCrash { point, hit });
                simulation.arm_crash(node, armed, NodeEnd::Process);
            }
            Eviction { nodes, crash, installs: None }
        });
        self.running.extend(running);
    }

    /// Whether the node is to crash, so that its end is no fault.
    pub fn expects(&self, node: NodeId) -> bool {
        self.running.iter().any(|eviction| eviction.nodes.contains(node))
    }

    /// Evicts no more nodes than those that have crashed. Returns whether some member does not know of them.
    pub fn end(&mut self, simulation: &mut ClusterSimulation) -> bool {
        self.waiting.clear();
        self.running.retain(|eviction| {
            let has_begun = eviction.nodes.iter().any(|node| !simulation.is_up(node));
            let unarmed = eviction.nodes.iter().filter(|_| !has_begun);
            unarmed.for_each(|node| simulation.arm_crash(node, None, NodeEnd::Process));
            has_begun
        });
        !self.running.is_empty()
    }

    /// Does what is due.
    pub fn advance(&mut self, simulation: &mut ClusterSimulation) {
        let now = simulation.now();
        let mut begins = false;
        for eviction in &mut self.running {
            if now >= eviction.crash {
                eviction.nodes.iter().for_each(|node| simulation.crash(node, NodeEnd::Process));
            }
            if eviction.installs.is_none() && eviction.nodes.iter().all(|node| !simulation.is_up(node)) {
                let change = MembershipChange::Evict { nodes: eviction.nodes, avoid: None };
                let Ok(next) = self.membership.apply(&change) else { continue };
                let speed = self.random.below(3) as usize;
                let detected = now.plus(Duration::from_micros(self.random.below(DETECTION_US_MAX[speed])));
                let members = next.members().map(|record| record.node);
                let mut after = || Duration(self.random.below(LEARNED_NS_MAX[speed]));
                let at = members.map(|node| (node, detected.plus(after()))).collect();
                eviction.installs = Some(Installs { at, membership: next.encode().into() });
                self.membership = next;
                begins |= self.random.one_in(2);
            }
            let Some(Installs { at, membership }) = &mut eviction.installs else { continue };
            at.retain(|node, at| {
                if now < *at {
                    return true;
                }
                let (leader, membership) = (*node, Arc::clone(membership));
                let install = InstallMembership { leader, index: 1, membership, must_restart: false, refusal: None };
                let to = Address::new(*node, Module::Main, 0);
                simulation.deliver(to, Signal::Main(MainSignal::InstallMembership(install)));
                false
            });
        }
        let before = self.running.len();
        self.running.retain(|eviction| eviction.installs.as_ref().is_none_or(|installs| !installs.at.is_empty()));
        if begins || self.running.is_empty() && before > 0 {
            self.begin_next(simulation);
        }
    }
}
