//! The rule that uses all blocks in turn.

use junctor_kernel::Address;

/// Number of consecutive reads that go to the same query block, so that they share a wake-up and warm caches.
const READS_PER_TURN: usize = 4;

/// Uses the owner and the query blocks in turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns(usize);

impl Turns {
    /// The block for the next read.
    #[inline]
    pub fn next(&mut self, owner: Address, queries: &[Address]) -> Address {
        self.0 = (self.0 + 1) % ((queries.len() + 1) * READS_PER_TURN);
        queries.get(self.0 / READS_PER_TURN).copied().unwrap_or(owner)
    }
}
