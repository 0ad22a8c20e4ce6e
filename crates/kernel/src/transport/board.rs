//! The words about links that all threads of a node share.
//!
//! Each channel has an owner, which writes its words. The words about a node's incarnations and epoch only
//! grow, and any thread may raise them. No word publishes other data, so relaxed order suffices.

use crate::address::{Address, NodeId};
use crate::context::{Duration, Time};
use crate::random::mix;
use crate::sync::CachePadded;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::detection::{HEARTBEAT_EVERY, SUSPECT_AFTER};
use super::hello::Refusal;
use super::link::Death;

/// Maximum number of channels between two nodes.
pub const CHANNELS_MAX: usize = 32;

/// Maximum number of nodes of a cluster.
const NODES: usize = 256;

/// News of links for the block that watches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkNews {
    /// All channels to an incarnation of a node are open for the first time.
    Up {
        /// The node.
        node: NodeId,
        /// Its incarnation.
        incarnation: u32,
        /// The version of the signals' encoding: the newest that both nodes speak.
        version: u16,
    },
    /// An incarnation is dead for this node's links. Signals to it that had not arrived are dropped.
    Dead {
        /// The node.
        node: NodeId,
        /// Its incarnation.
        incarnation: u32,
        /// The cause.
        death: Death,
    },
    /// A node is silent.
    Suspected {
        /// The node.
        node: NodeId,
        /// The longest gap between its frames lately.
        longest_gap: Duration,
    },
    /// The system of a silent node answers no connection, although it did before: the network or the machine
    /// has failed, and not the process. Sent again as long as it answers none.
    Unreachable {
        /// The node.
        node: NodeId,
    },
    /// The system of a node answers again that was unreachable. The node may be silent still.
    Reachable {
        /// The node.
        node: NodeId,
    },
    /// A suspected node was heard.
    Heard {
        /// The node.
        node: NodeId,
    },
    /// A hello of this node or for this node was refused. Sent once for each cause until the link is up.
    Refused {
        /// The other node, as it names itself.
        node: NodeId,
        /// The cause.
        refusal: Refusal,
        /// Whether this node refused.
        is_own: bool,
    },
    /// A node with the cluster's key says that this incarnation of the own node was evicted.
    Evicted {
        /// The node that says so.
        node: NodeId,
    },
    /// A signal was dropped, because the program of the other node is too old to know it.
    Unknown {
        /// The other node.
        node: NodeId,
        /// The signal or the part of it.
        name: &'static str,
    },
}

/// A change of the membership, for the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipChange {
    /// Frames carry this epoch from now on, unless they already carry a later one.
    Epoch(u32),
    /// This incarnation of a node and earlier ones are evicted: their connections are closed and refused.
    Evict {
        /// The node.
        node: NodeId,
        /// The incarnation.
        incarnation: u32,
    },
}

/// Which thread owns which channel. The same on both ends: the receiver's module and instance choose the
/// channel.
#[derive(Debug)]
pub(crate) struct LinkRoutes {
    /// By channel.
    threads: Vec<u16>,
}

impl LinkRoutes {
    /// At least one thread, and at most [`CHANNELS_MAX`].
    pub(crate) fn new(threads: Vec<u16>) -> Self {
        crate::require!((1..=CHANNELS_MAX).contains(&threads.len()), "{} channels are possible", threads.len());
        Self { threads }
    }

    /// Number of channels to each node.
    pub(crate) fn channels(&self) -> u8 {
        self.threads.len() as u8
    }

    /// The channel for signals to a block.
    pub(crate) fn channel_of(&self, to: Address) -> u8 {
        // Instances of one module are spread evenly; different modules begin at different channels.
        let first = mix(u64::from(to.module.number())) % self.threads.len() as u64;
        ((first + u64::from(to.instance)) % self.threads.len() as u64) as u8
    }

    /// The thread that owns the channel for signals to a block.
    pub(crate) fn thread_of(&self, to: Address) -> u16 {
        self.threads[usize::from(self.channel_of(to))]
    }

    /// The thread that owns a channel.
    pub(crate) fn owner(&self, channel: u8) -> Option<u16> {
        self.threads.get(usize::from(channel)).copied()
    }
}

/// The words about one other node.
#[derive(Debug)]
struct PeerWords {
    /// Lower incarnations are dead or evicted.
    incarnation_min: AtomicU32,
    /// This incarnation and lower ones are evicted.
    evicted: AtomicU32,
    /// The incarnation with which each channel is connected; 0 if it is not.
    connected: [AtomicU32; CHANNELS_MAX],
    /// The last incarnation with which any channel was connected.
    known: AtomicU32,
    /// The last incarnation whose channels were all open.
    announced: AtomicU32,
    /// When any channel last heard the node, and the longest gap before a frame since somebody asked.
    heard: AtomicU64,
    gap: AtomicU64,
    epoch: AtomicU32,
    /// Refusals told since the link was last up, one bit for each cause and side.
    refusals_told: AtomicU32,
}

/// The shared words about all links of a node.
#[derive(Debug)]
pub(crate) struct LinkBoard {
    peers: Box<[CachePadded<PeerWords>]>,
    epoch: AtomicU32,
}

impl LinkBoard {
    pub(crate) fn new() -> Self {
        let words = || PeerWords {
            incarnation_min: AtomicU32::new(1),
            evicted: AtomicU32::new(0),
            connected: std::array::from_fn(|_| AtomicU32::new(0)),
            known: AtomicU32::new(0),
            announced: AtomicU32::new(0),
            heard: AtomicU64::new(0),
            gap: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            refusals_told: AtomicU32::new(0),
        };
        Self { peers: (0..NODES).map(|_| CachePadded(words())).collect(), epoch: AtomicU32::new(0) }
    }

    fn peer(&self, node: NodeId) -> &PeerWords {
        &self.peers[usize::from(node.0)].0
    }

    /// This node's membership epoch.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Takes over a change of the membership.
    pub(crate) fn change(&self, change: MembershipChange) {
        match change {
            MembershipChange::Epoch(epoch) => {
                self.epoch.fetch_max(epoch, Ordering::Relaxed);
            }
            MembershipChange::Evict { node, incarnation } => {
                self.peer(node).evicted.fetch_max(incarnation, Ordering::Relaxed);
            }
        }
    }

    /// This incarnation of a node and lower ones are evicted.
    pub(crate) fn evicted(&self, node: NodeId) -> u32 {
        self.peer(node).evicted.load(Ordering::Relaxed)
    }

    /// The lowest incarnation of a node that may have channels.
    pub(crate) fn incarnation_min(&self, node: NodeId) -> u32 {
        self.peer(node).incarnation_min.load(Ordering::Relaxed)
    }

    /// An incarnation is dead for one channel, and so for all. True for the first channel that says so.
    pub(crate) fn bury(&self, node: NodeId, incarnation: u32) -> bool {
        self.peer(node).incarnation_min.fetch_max(incarnation + 1, Ordering::Relaxed) <= incarnation
    }

    /// A channel is connected with an incarnation, or with 0 if it has lost it. True if all `channels` are
    /// now connected with that incarnation for the first time.
    pub(crate) fn connect(&self, node: NodeId, channel: u8, incarnation: u32, channels: u8) -> bool {
        let peer = self.peer(node);
        if incarnation != 0 {
            peer.refusals_told.store(0, Ordering::Relaxed);
            peer.known.fetch_max(incarnation, Ordering::Relaxed);
        }
        // The order of the stores and loads of two channels matters: the later one must see both.
        peer.connected[usize::from(channel)].store(incarnation, Ordering::SeqCst);
        let mut connected = peer.connected[..usize::from(channels)].iter();
        incarnation != 0
            && connected.all(|word| word.load(Ordering::SeqCst) == incarnation)
            && peer.announced.fetch_max(incarnation, Ordering::SeqCst) < incarnation
    }

    /// Whether some channel to a node has been connected with an incarnation that is not dead. A connection
    /// that was lost since does not count as dead: the channel resumes.
    pub(crate) fn is_known(&self, node: NodeId) -> bool {
        let least = self.incarnation_min(node).max(self.evicted(node) + 1);
        self.peer(node).known.load(Ordering::Relaxed) >= least
    }

    /// A hello was refused. True for the first of its kind since the link was last up.
    pub(crate) fn refuse(&self, node: NodeId, refusal: Refusal, is_own: bool) -> bool {
        let bit = 1 << (refusal as u32 * 2 + u32::from(is_own));
        self.peer(node).refusals_told.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// A node was heard with this epoch.
    pub(crate) fn hear(&self, node: NodeId, now: Time, epoch: u32) {
        let peer = self.peer(node);
        let before = peer.heard.fetch_max(now.0, Ordering::Relaxed);
        let gap = now.0.saturating_sub(before);
        if before != 0 && gap > HEARTBEAT_EVERY.0 {
            peer.gap.fetch_max(gap, Ordering::Relaxed);
        }
        peer.epoch.fetch_max(epoch, Ordering::Relaxed);
    }

    /// The longest gap between frames of a node since the last call, if one was longer than between
    /// heartbeats.
    pub(crate) fn take_gap(&self, node: NodeId) -> Duration {
        let gap = &self.peer(node).gap;
        Duration(if gap.load(Ordering::Relaxed) == 0 { 0 } else { gap.swap(0, Ordering::Relaxed) })
    }

    /// When a node was last heard.
    pub(crate) fn heard(&self, node: NodeId) -> Time {
        Time(self.peer(node).heard.load(Ordering::Relaxed))
    }

    /// The nodes heard recently, one bit for each.
    pub(crate) fn hears(&self, now: Time) -> [u8; 32] {
        let mut nodes = [0; 32];
        for (node, peer) in self.peers.iter().enumerate() {
            let heard = peer.0.heard.load(Ordering::Relaxed);
            if heard != 0 && now.since(Time(heard)) < SUSPECT_AFTER {
                nodes[node / 8] |= 1 << (node % 8);
            }
        }
        nodes
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use crate::module::ModuleId;

    #[test]
    fn instances_of_a_module_are_spread_over_all_channels() {
        for channels in 1..=8_u16 {
            let routes = LinkRoutes::new((0..channels).collect());
            for module in (0..16).map(ModuleId::new) {
                let mut counts = vec![0; usize::from(channels)];
                for instance in 0..channels * 3 {
                    counts[usize::from(routes.channel_of(Address::new(NodeId(1), module, instance)))] += 1;
                }
                assert!(counts.iter().all(|&count| count == 3));
            }
        }
    }

    #[test]
    fn an_incarnation_is_announced_once_and_buried_once() {
        let (board, node) = (LinkBoard::new(), NodeId(3));
        assert!(!board.connect(node, 0, 7, 2));
        assert!(board.connect(node, 1, 7, 2));
        assert!(!board.connect(node, 1, 0, 2));
        assert!(board.is_known(node), "a lost connection is no death");
        assert!(!board.connect(node, 1, 7, 2), "it resumes");
        assert!(board.bury(node, 7));
        assert!(!board.is_known(node));
        assert!(!board.bury(node, 7));
        assert_eq!(board.incarnation_min(node), 8);
        assert!(!board.connect(node, 0, 8, 2));
        assert!(board.connect(node, 1, 8, 2));
    }
}
