//! How many sockets each owner has, for placing new connections.

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of open sockets of each instance of [`crate::ModuleId::SOCKETS`] on a node.
#[derive(Debug)]
pub(super) struct SocketCounts(pub(super) Vec<AtomicU32>);

impl SocketCounts {
    pub(super) fn total(&self) -> u32 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// The owner with the fewest sockets; among equals, the first after `last`.
    pub(super) fn least_loaded_after(&self, last: usize) -> usize {
        let instances = self.0.len().max(1);
        let turn = (1..=instances).map(|step| (last + step) % instances);
        turn.min_by_key(|&instance| self.0.get(instance).map_or(0, |count| count.load(Ordering::Relaxed))).unwrap_or(0)
    }
}
