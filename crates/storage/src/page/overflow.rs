//! Long values as chains of blocks: `[next block: 8][bytes ...]`. The last block is as short as possible.

use std::sync::Arc;

use crate::invariant::require;

use super::block_store::{BLOCK_BYTES_MAX, BlockStore, Location};
use super::pool::{MemoryNeed, OutOfMemory, PageKind, PagePool};

const CHAIN_BYTES: usize = 8;
const PAYLOAD_BYTES_MAX: usize = BLOCK_BYTES_MAX - 8 - CHAIN_BYTES;

/// The long values of one partition.
#[derive(Debug)]
pub struct OverflowStore {
    blocks: BlockStore,
}

impl OverflowStore {
    /// An empty store that takes its pages from `pool`.
    pub fn new(pool: Arc<PagePool>) -> OverflowStore {
        OverflowStore { blocks: BlockStore::new(pool, PageKind::Overflow) }
    }

    /// Stores `value`, which must not be empty, and returns its location. If memory runs out, stores nothing.
    pub(crate) fn put(&mut self, value: &[u8], need: MemoryNeed) -> Result<Location, OutOfMemory> {
        // From the last block to the first, so that the location of each block's successor is known.
        let mut next = Location::NONE;
        let mut end = value.len();
        require!(end > 0, "a long value is not empty");
        while end > 0 {
            let start = (end - 1) / PAYLOAD_BYTES_MAX * PAYLOAD_BYTES_MAX;
            let payload = &value[start..end];
            let location = match self.blocks.allocate(CHAIN_BYTES + payload.len(), need) {
                Ok(location) => location,
                Err(OutOfMemory) => {
                    self.free(next);
                    return Err(OutOfMemory);
                }
            };
            let block = self.blocks.at_mut(location);
            block[..CHAIN_BYTES].copy_from_slice(&next.bits().to_le_bytes());
            block[CHAIN_BYTES..CHAIN_BYTES + payload.len()].copy_from_slice(payload);
            next = location;
            end = start;
        }
        Ok(next)
    }

    /// Appends the `length` bytes of the value at `location` to `out`.
    pub(crate) fn append_to(&self, mut location: Location, length: usize, out: &mut Vec<u8>) {
        let mut left = length;
        while left > 0 {
            require!(!location.is_none(), "a chain of overflow blocks holds all {length} bytes of its value");
            let block = self.blocks.at(location);
            let payload = left.min(PAYLOAD_BYTES_MAX);
            out.extend_from_slice(&block[CHAIN_BYTES..CHAIN_BYTES + payload]);
            left -= payload;
            location = next_of(block);
        }
        require!(location.is_none(), "a chain of overflow blocks ends with its value of {length} bytes");
    }

    /// Frees a value's blocks; `Location::NONE` is ignored.
    pub(crate) fn free(&mut self, mut location: Location) {
        while !location.is_none() {
            let next = next_of(self.blocks.at(location));
            self.blocks.free(location);
            location = next;
        }
    }

    /// Number of blocks of the value at `location`; for checks.
    pub(crate) fn blocks_of(&self, mut location: Location) -> usize {
        let mut count = 0;
        while !location.is_none() {
            count += 1;
            location = next_of(self.blocks.at(location));
        }
        count
    }

    /// Bytes of the pages in use.
    pub fn bytes(&self) -> u64 {
        self.blocks.bytes()
    }

    pub(crate) fn used_blocks(&self) -> usize {
        self.blocks.used_blocks()
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.blocks.check()
    }
}

fn next_of(block: &[u8]) -> Location {
    Location::from_bits(u64::from_le_bytes(block[..CHAIN_BYTES].try_into().expect("8 bytes")))
}
