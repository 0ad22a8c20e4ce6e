//! A pool with a maximum number of records. A handle to a removed record finds nothing, even after the
//! record's slot is reused.

use std::fmt;
use std::marker::PhantomData;

/// Identifies a record of a [`Pool`]. Once that record is removed, the handle finds nothing.
pub struct Handle<T> {
    /// The slot in the pool.
    pub index: u32,
    /// Odd number that distinguishes the records that have used this slot.
    pub generation: u32,
    record: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// A handle of these parts.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation, record: PhantomData }
    }

    /// Both parts in one word, the generation in the high half. Never 0 for a handle that a pool returned.
    pub const fn to_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// Reverses [`Handle::to_u64`]. Accepts any word; a handle that no pool has returned finds nothing.
    pub const fn from_u64(word: u64) -> Self {
        Self::new(word as u32, (word >> 32) as u32)
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.to_u64() == other.to_u64()
    }
}

impl<T> Eq for Handle<T> {}

impl<T> PartialOrd for Handle<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Handle<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.to_u64().cmp(&other.to_u64())
    }
}

impl<T> std::hash::Hash for Handle<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.to_u64().hash(state);
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.index, self.generation)
    }
}

/// All records of the pool are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFull;

impl std::error::Error for PoolFull {}

impl fmt::Display for PoolFull {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the pool is full")
    }
}

#[derive(Debug)]
struct Slot<T> {
    /// Odd while the slot holds a record.
    generation: u32,
    content: Content<T>,
}

#[derive(Debug)]
enum Content<T> {
    Free { next: u32 },
    Record(T),
}

const NO_SLOT: u32 = u32::MAX;

/// At most `capacity` records. The pool allocates memory when records are first needed, and keeps it.
#[derive(Debug)]
pub struct Pool<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    len: u32,
    high_water: u32,
    capacity: u32,
    /// The generation of the first record in a new slot. Odd.
    first_generation: u32,
}

impl<T> Pool<T> {
    /// An empty pool of at most `capacity` records.
    pub fn new(capacity: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: NO_SLOT,
            len: 0,
            high_water: 0,
            capacity: capacity.min(NO_SLOT - 1),
            first_generation: 1,
        }
    }

    /// Sets the first generation of slots that were never used: `generation`, or the next number if that is
    /// even. With a random number, handles differ from those of earlier runs of the node.
    pub fn begin_generations_at(&mut self, generation: u32) {
        self.first_generation = generation | 1;
    }

    /// Stores a record, or fails if all are in use.
    #[inline]
    pub fn insert(&mut self, record: T) -> Result<Handle<T>, PoolFull> {
        let index = self.free;
        if index == NO_SLOT {
            return self.insert_at_end(record);
        }
        let slot = &mut self.slots[index as usize];
        if let Content::Free { next } = slot.content {
            self.free = next;
        }
        slot.generation = slot.generation.wrapping_add(1);
        slot.content = Content::Record(record);
        let generation = slot.generation;
        Ok(self.inserted(index, generation))
    }

    fn insert_at_end(&mut self, record: T) -> Result<Handle<T>, PoolFull> {
        let index = self.slots.len() as u32;
        if index >= self.capacity {
            return Err(PoolFull);
        }
        let generation = self.first_generation;
        self.slots.push(Slot { generation, content: Content::Record(record) });
        Ok(self.inserted(index, generation))
    }

    fn inserted(&mut self, index: u32, generation: u32) -> Handle<T> {
        self.len += 1;
        self.high_water = self.high_water.max(self.len);
        Handle::new(index, generation)
    }

    /// The record; `None` if it was removed.
    #[inline]
    pub fn get(&self, handle: Handle<T>) -> Option<&T> {
        match self.slots.get(handle.index as usize) {
            Some(Slot { generation, content: Content::Record(record) }) if *generation == handle.generation => {
                Some(record)
            }
            _ => None,
        }
    }

    /// The record; `None` if it was removed.
    #[inline]
    pub fn get_mut(&mut self, handle: Handle<T>) -> Option<&mut T> {
        match self.slots.get_mut(handle.index as usize) {
            Some(Slot { generation, content: Content::Record(record) }) if *generation == handle.generation => {
                Some(record)
            }
            _ => None,
        }
    }

    /// Drops the record where it is and frees its slot. Returns false if it was removed before.
    #[inline]
    pub fn discard(&mut self, handle: Handle<T>) -> bool {
        if self.get(handle).is_none() {
            return false;
        }
        let slot = &mut self.slots[handle.index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.content = Content::Free { next: self.free };
        self.free = handle.index;
        self.len -= 1;
        true
    }

    /// Removes the record and frees its slot; `None` if it was removed before.
    #[inline]
    pub fn remove(&mut self, handle: Handle<T>) -> Option<T> {
        self.get(handle)?;
        let slot = &mut self.slots[handle.index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        let content = std::mem::replace(&mut slot.content, Content::Free { next: self.free });
        self.free = handle.index;
        self.len -= 1;
        match content {
            Content::Record(record) => Some(record),
            Content::Free { .. } => None,
        }
    }

    /// The handle of the record now in slot `index`; `None` if the slot is free.
    pub fn handle_at(&self, index: u32) -> Option<Handle<T>> {
        match self.slots.get(index as usize) {
            Some(Slot { generation, content: Content::Record(_) }) => Some(Handle::new(index, *generation)),
            _ => None,
        }
    }

    /// All records with their handles, in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (Handle<T>, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| match &slot.content {
            Content::Record(record) => Some((Handle::new(index as u32, slot.generation), record)),
            Content::Free { .. } => None,
        })
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the pool holds no record.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Highest number of records at any time so far.
    pub fn high_water(&self) -> usize {
        self.high_water as usize
    }

    /// Maximum number of records.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_record_is_not_found_by_its_old_handle() {
        let mut pool = Pool::new(2);
        let first = pool.insert("first").unwrap();
        assert_eq!(pool.remove(first), Some("first"));
        let second = pool.insert("second").unwrap();
        assert_eq!(second.index, first.index);
        assert_eq!(pool.get(first), None);
        assert_eq!(pool.remove(first), None);
        assert_eq!(pool.get(Handle::from_u64(second.to_u64())), Some(&"second"));
    }

    #[test]
    fn generations_begin_at_the_given_value_and_stay_odd() {
        let mut pool = Pool::new(2);
        pool.begin_generations_at(0xFFFF_FFFE);
        let first = pool.insert(1).unwrap();
        assert_eq!(first.generation, 0xFFFF_FFFF);
        pool.remove(first);
        assert_eq!(pool.insert(2).map(|handle| handle.generation), Ok(1));
    }

    #[test]
    fn a_full_pool_refuses_until_a_record_is_removed() {
        let mut pool = Pool::new(2);
        let first = pool.insert(1).unwrap();
        pool.insert(2).unwrap();
        assert_eq!(pool.insert(3), Err(PoolFull));
        pool.remove(first);
        assert!(pool.insert(3).is_ok());
        assert_eq!((pool.len(), pool.high_water()), (2, 2));
        assert_eq!(pool.iter().map(|(_, &record)| record).collect::<Vec<_>>(), [3, 2]);
    }

    #[test]
    fn words_that_are_no_handles_find_nothing() {
        let mut pool = Pool::new(4);
        pool.insert(7).unwrap();
        for word in [0, 1, u64::MAX, 1 << 33, 5] {
            assert_eq!(pool.get(Handle::from_u64(word)), None);
        }
    }
}
