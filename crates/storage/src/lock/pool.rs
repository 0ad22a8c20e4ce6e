//! Records that are identified by small numbers. A number is reused after its record is freed.

use crate::invariant::require;

/// No record.
pub(super) const NONE: u32 = u32::MAX;

/// A growing but bounded array of records. It shrinks only in `trim`, so it allocates nothing once it has
/// grown.
#[derive(Debug)]
pub(super) struct Pool<T> {
    records: Vec<T>,
    free: Vec<u32>,
    capacity: usize,
}

impl<T> Pool<T> {
    pub(super) fn new(capacity: usize) -> Pool<T> {
        Pool { records: Vec::new(), free: Vec::new(), capacity: capacity.min(NONE as usize) }
    }

    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() && self.records.len() >= self.capacity
    }

    /// Adds a record. The caller has checked that the pool is not full.
    pub(super) fn add(&mut self, record: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                // The record that was freed last is reused first, because it is probably still in the cache.
                self.records[number as usize] = record;
                number
            }
            None => {
                require!(self.records.len() < self.capacity, "a pool that takes a record has room for it");
                self.records.push(record);
                (self.records.len() - 1) as u32
            }
        }
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.free.push(number);
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.records.get(number as usize)
    }

    pub(super) fn used(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Number of records for which memory is allocated.
    pub(super) fn allocated(&self) -> usize {
        self.records.capacity()
    }

    /// Frees the memory of at most `count_max` records, because freeing more in one call would take too long.
    /// No record may be in use.
    pub(super) fn trim(&mut self, count_max: usize) {
        require!(self.used() == 0, "a pool that is trimmed has no record in use");
        self.records.clear();
        self.free.clear();
        self.records.shrink_to(self.records.capacity().saturating_sub(count_max));
        self.free.shrink_to(self.free.capacity().saturating_sub(count_max));
    }
}

impl<T> std::ops::Index<u32> for Pool<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.records[number as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.records[number as usize]
    }
}
