//! Figures about the channels to other nodes. The thread that owns a channel writes its words, and any thread
//! may read them. No word publishes other data, so relaxed order suffices.

use std::sync::{Arc, OnceLock};

use crate::address::NodeId;
use crate::context::{Duration, Time};
use crate::sync::CachePadded;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Time between two looks at the round trip of a connection.
pub(crate) const ROUND_TRIP_EVERY: Duration = Duration::from_seconds(1);

/// The figures of a channel. Counts begin with the process.
#[derive(Debug, Default)]
pub(crate) struct ChannelWords {
    /// Whether it has a connection.
    pub is_connected: AtomicU32,
    /// Bytes of frames and of their answers.
    pub sent_bytes: AtomicU64,
    pub received_bytes: AtomicU64,
    /// Frames with signals, also those that are sent again after a reset.
    pub sent_frames: AtomicU64,
    pub sent_signals: AtomicU64,
    /// Bytes of frames that wait for an acknowledgement.
    pub unacknowledged_bytes: AtomicU64,
    /// Bytes that signals which start work may still use.
    pub credit_bytes: AtomicU64,
    /// As the system measures it, in nanoseconds; 0 if unknown.
    pub round_trip_ns: AtomicU64,
}

/// The figures of a channel, as its thread counts them.
pub(crate) struct ChannelFigures {
    pub words: Arc<CachePadded<ChannelWords>>,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub sent_frames: u64,
    pub sent_signals: u64,
    /// When the round trip is looked at again.
    pub round_trip_at: Time,
}

impl ChannelFigures {
    pub fn new(words: Arc<CachePadded<ChannelWords>>) -> Self {
        let (sent_bytes, received_bytes, sent_frames, sent_signals) = (0, 0, 0, 0);
        Self { words, sent_bytes, received_bytes, sent_frames, sent_signals, round_trip_at: Time(0) }
    }
}

/// The channels to one node.
type PeerChannels = (NodeId, Vec<Arc<CachePadded<ChannelWords>>>);

/// Where a node's links write their figures, once the node runs.
#[derive(Clone, Debug, Default)]
pub struct LinkFigures(Arc<OnceLock<Vec<PeerChannels>>>);

/// The figures of all channels to one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerFigures {
    /// Number of channels.
    pub channels: u32,
    /// Number of those with a connection.
    pub connections: u32,
    /// Bytes sent since this process began.
    pub sent_bytes: u64,
    /// Bytes received since this process began.
    pub received_bytes: u64,
    /// Frames with signals sent since this process began.
    pub sent_frames: u64,
    /// Signals sent since this process began.
    pub sent_signals: u64,
    /// Bytes sent that the other node has not acknowledged.
    pub unacknowledged_bytes: u64,
    /// Bytes of signals that start work which the other node still takes.
    pub credit_bytes: u64,
    /// The shortest round trip that the system has measured on one of the connections lately.
    pub round_trip: Option<Duration>,
}

impl LinkFigures {
    /// Makes the words of all channels. Does nothing at later calls.
    pub(crate) fn begin(&self, peers: &[NodeId], channels: u8) {
        let words = |_| Arc::<CachePadded<ChannelWords>>::default();
        self.0.get_or_init(|| peers.iter().map(|peer| (*peer, (0..channels).map(words).collect())).collect());
    }

    /// The words of a channel.
    pub(crate) fn channel(&self, peer: NodeId, channel: u8) -> Arc<CachePadded<ChannelWords>> {
        let channels = self.0.get().into_iter().flatten().find(|(node, _)| *node == peer);
        channels.and_then(|(_, words)| words.get(usize::from(channel)).cloned()).unwrap_or_default()
    }

    /// The figures about the channels to a node; `None` before the start, and for a node without links.
    pub fn of(&self, peer: NodeId) -> Option<PeerFigures> {
        let (_, channels) = self.0.get()?.iter().find(|(node, _)| *node == peer)?;
        let mut sum = PeerFigures { channels: channels.len() as u32, ..PeerFigures::default() };
        for words in channels {
            let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
            sum.sent_bytes += load(&words.0.sent_bytes);
            sum.received_bytes += load(&words.0.received_bytes);
            sum.sent_frames += load(&words.0.sent_frames);
            sum.sent_signals += load(&words.0.sent_signals);
            if words.0.is_connected.load(Ordering::Relaxed) == 0 {
                continue;
            }
            sum.connections += 1;
            sum.unacknowledged_bytes += load(&words.0.unacknowledged_bytes);
            sum.credit_bytes += load(&words.0.credit_bytes);
            let measured = Some(Duration(load(&words.0.round_trip_ns))).filter(|time| *time > Duration::ZERO);
            sum.round_trip = sum.round_trip.into_iter().chain(measured).min();
        }
        Some(sum)
    }
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_connected_channels_are_added() {
        let figures = LinkFigures::default();
        assert_eq!(figures.of(NodeId(2)), None);
        figures.begin(&[NodeId(2), NodeId(3)], 3);
        let set = |word: &AtomicU64, value| word.store(value, Ordering::Relaxed);
        for (channel, is_connected) in [(0, 1), (1, 1), (2, 0)] {
            let words = figures.channel(NodeId(2), channel);
            words.0.is_connected.store(is_connected, Ordering::Relaxed);
            set(&words.0.sent_bytes, 10);
            set(&words.0.received_bytes, 100);
            set(&words.0.sent_frames, 2);
            set(&words.0.sent_signals, 5);
            set(&words.0.unacknowledged_bytes, 1000);
            set(&words.0.credit_bytes, 7);
            set(&words.0.round_trip_ns, 50 * u64::from(channel));
        }
        let expected = PeerFigures {
            channels: 3,
            connections: 2,
            sent_bytes: 30,
            received_bytes: 300,
            sent_frames: 6,
            sent_signals: 15,
            unacknowledged_bytes: 2000,
            credit_bytes: 14,
            round_trip: Some(Duration(50)),
        };
        assert_eq!(figures.of(NodeId(2)), Some(expected));
        let idle = PeerFigures { channels: 3, ..PeerFigures::default() };
        assert_eq!((figures.of(NodeId(3)), figures.of(NodeId(4))), (Some(idle), None));
    }
}
