//! The rules that neither measure nor weigh.

use junctor_kernel::Address;

/// How many reads in a row go to the same query block: so many share a wake-up and warm caches.
const READS_PER_TURN: usize = 4;

/// The owner and the query blocks by turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns(usize);

impl Turns {
    /// The next of them.
    #[inline]
    pub fn next(&mut self, owner: Address, queries: &[Address]) -> Address {
        self.0 = (self.0 + 1) % ((queries.len() + 1) * READS_PER_TURN);
        queries.get(self.0 / READS_PER_TURN).copied().unwrap_or(owner)
    }
}
