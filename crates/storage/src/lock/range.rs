//! Range locks: until a transaction ends, they keep new keys out of the ranges that it has read.
//!
//! A range belongs to an index of one partition. Locking a range never waits, neither for other ranges nor
//! for inserts: two readers of a range do not conflict, and existing rows are locked as rows. A transaction
//! that adds a key to an index, by an insert or by an update of key columns, waits while others hold ranges
//! that contain the key. Waiters do not exclude each other. They are released in order of arrival and then
//! check again.
//!
//! A range of one key, or of all keys with a common prefix, is found by one lookup for each prefix length in
//! use. All other ranges are scanned. A list of many single keys therefore hardly slows inserts down.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use junctor_model::id::{IndexId, PartitionId, TransactionId};

use crate::index::RangeBounds;
use crate::invariant::require;

use super::table::{LockMode, LockTableFull, WaiterToken};

/// Maximum number of ranges of one ldm.
pub const RANGES_MAX: usize = 1 << 17;
/// Maximum total number of bytes of the keys of these ranges.
pub const RANGE_BYTES_MAX: usize = 64 << 20;
/// Maximum number of ranges, other than prefixes, in one index of one partition. Every insert scans all of
/// these.
pub const WIDE_RANGES_MAX: usize = 4096;

/// The part of an index that belongs to one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexPartition {
    /// The partition.
    pub partition: PartitionId,
    /// The index. The primary key's index also serves to lock every row.
    pub index: IndexId,
}

/// A key to be added to an index.
pub type NewKey = (IndexId, Box<[u8]>);

/// A row of the status table of range locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeEntry {
    /// The part of the index that the range belongs to.
    pub place: IndexPartition,
    /// The lower end of the range.
    pub lower: Bound<Arc<[u8]>>,
    /// The upper end of the range. For a waiting insert both ends are its key.
    pub upper: Bound<Arc<[u8]>>,
    /// The transaction that holds the range or waits.
    pub transaction: TransactionId,
    /// The mode in which the range's rows are locked.
    pub mode: LockMode,
    /// False for a waiting insert.
    pub is_granted: bool,
}

/// All range locks of one ldm, and the inserts that wait for them.
#[derive(Debug, Default)]
pub(super) struct RangeTable {
    indexes: BTreeMap<IndexPartition, IndexRanges>,
    by_transaction: BTreeMap<TransactionId, Vec<HeldRange>>,
    /// In order of arrival.
    waiters: BTreeMap<u64, Waiter>,
    next_waiter: u64,
    /// Waiters that a new range blocks, in addition to the ranges for which they already waited.
    newly_blocked: Vec<WaiterToken>,
    count: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct IndexRanges {
    /// For each prefix, the holders of the range of all keys that begin with it.
    prefixes: BTreeMap<Arc<[u8]>, Vec<(TransactionId, LockMode)>>,
    /// Number of prefixes of each length.
    lengths: BTreeMap<usize, u32>,
    wide: Vec<WideRange>,
}

#[derive(Debug)]
struct WideRange {
    lower: Bound<Arc<[u8]>>,
    upper: Bound<Arc<[u8]>>,
    transaction: TransactionId,
    mode: LockMode,
}

/// One or more ranges that a transaction holds.
#[derive(Debug)]
enum HeldRange {
    Prefix(IndexPartition, Arc<[u8]>),
    /// All of the transaction's wide ranges in this index: one or more.
    Wide(IndexPartition),
}

#[derive(Debug)]
struct Waiter {
    partition: PartitionId,
    keys: Vec<NewKey>,
    transaction: TransactionId,
    token: WaiterToken,
}

impl RangeTable {
    /// Whether no range is locked.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a transaction holds a range.
    #[inline]
    pub fn is_holder(&self, transaction: TransactionId) -> bool {
        self.by_transaction.contains_key(&transaction)
    }

    /// The indexes of a partition that have locked ranges.
    pub fn indexes_of(&self, partition: PartitionId) -> impl Iterator<Item = IndexId> {
        let place = |index| IndexPartition { partition, index };
        self.indexes.range(place(IndexId(0))..=place(IndexId(u16::MAX))).map(|(place, _)| place.index)
    }

    /// Locks a range. A transaction may lock the same range again.
    pub fn lock(
        &mut self,
        place: IndexPartition,
        bounds: RangeBounds<'_>,
        transaction: TransactionId,
        mode: LockMode,
    ) -> Result<(), LockTableFull> {
        if self.indexes.get_mut(&place).is_some_and(|ranges| ranges.strengthen_held(bounds, transaction, mode)) {
            return Ok(());
        }
        require!(transaction.is_some(), "a range is locked by a transaction");
        let bytes = bytes_of(bounds);
        let ranges = self.indexes.get(&place);
        // Every insert compares its keys with all wide ranges of the index, so their number must stay small.
        let is_crowded =
            prefix_of(bounds).is_none() && ranges.is_some_and(|ranges| ranges.wide.len() >= WIDE_RANGES_MAX);
        if self.count >= RANGES_MAX || self.bytes + bytes > RANGE_BYTES_MAX || is_crowded {
            return Err(LockTableFull);
        }
        self.count += 1;
        self.bytes += bytes;
        let ranges = self.indexes.entry(place).or_default();
        let held = self.by_transaction.entry(transaction).or_default();
        match prefix_of(bounds) {
            Some(prefix) => held.push(HeldRange::Prefix(place, ranges.add_prefix(prefix, transaction, mode))),
            None => {
                if ranges.add_wide(bounds, transaction, mode) {
                    // One entry stands for all wide ranges of the transaction in the index, because they are
                    // released together.
                    held.push(HeldRange::Wide(place));
                }
            }
        }
        // Deadlock detection must learn that these waiters now wait for one more transaction.
        let is_blocked = |waiter: &&Waiter| {
            let lies_within = |(index, key): &NewKey| *index == place.index && bounds.contains(key);
            waiter.partition == place.partition
                && waiter.transaction != transaction
                && waiter.keys.iter().any(lies_within)
        };
        self.newly_blocked.extend(self.waiters.values().filter(is_blocked).map(|waiter| waiter.token));
        Ok(())
    }

    /// Whether another transaction holds a range that contains the key.
    pub fn blocks(&self, place: IndexPartition, key: &[u8], transaction: TransactionId) -> bool {
        self.indexes.get(&place).is_some_and(|ranges| !ranges.all_holders(key, &mut |holder| holder == transaction))
    }

    /// Adds a waiter. It waits until no other transaction holds a range with one of the keys.
    pub fn wait(
        &mut self,
        partition: PartitionId,
        keys: Vec<NewKey>,
        transaction: TransactionId,
        token: WaiterToken,
    ) -> u64 {
        require!(!keys.is_empty(), "a waiter waits with at least one key, or nothing would release it");
        self.next_waiter += 1;
        self.waiters.insert(self.next_waiter, Waiter { partition, keys, transaction, token });
        self.next_waiter
    }

    /// The transactions that a waiter waits for, each once.
    pub fn blockers_of(&self, waiter: u64) -> Vec<TransactionId> {
        let mut blockers = Vec::new();
        if let Some(waiter) = self.waiters.get(&waiter) {
            self.all_blockers(waiter, &mut |holder| {
                blockers.push(holder);
                true
            });
        }
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// Whether the waiter is still waiting.
    pub fn is_waiting(&self, waiter: u64) -> bool {
        self.waiters.contains_key(&waiter)
    }

    /// Removes a waiter. Returns false if it was no longer waiting.
    pub fn cancel(&mut self, waiter: u64) -> bool {
        self.waiters.remove(&waiter).is_some()
    }

    /// Returns the waiters that new ranges have blocked since the last call of this function.
    pub fn take_newly_blocked(&mut self) -> Vec<WaiterToken> {
        std::mem::take(&mut self.newly_blocked)
    }

    /// Releases the transaction's waits and at most `count_max` of its ranges; all its wide ranges of an
    /// index count as one. Returns whether it has more. Appends the tokens of the waiters that no range
    /// blocks any more.
    pub fn release_some(
        &mut self,
        transaction: TransactionId,
        count_max: usize,
        granted: &mut Vec<WaiterToken>,
    ) -> bool {
        // First remove the transaction's own waits, so that nothing is granted to a transaction that is
        // ending.
        self.waiters.retain(|_, waiter| waiter.transaction != transaction);
        let Some(held) = self.by_transaction.get_mut(&transaction) else { return false };
        // Take entries from the end, where nothing has to be moved.
        let given_back = held.split_off(held.len().saturating_sub(count_max));
        let has_more = !held.is_empty();
        if !has_more {
            self.by_transaction.remove(&transaction);
        }
        for held in given_back {
            let (HeldRange::Prefix(place, _) | HeldRange::Wide(place)) = held;
            let ranges = self.indexes.get_mut(&place).expect("an index keeps its ranges until their holders end");
            let (count, bytes) = match held {
                HeldRange::Prefix(_, prefix) => ranges.remove_prefix(&prefix, transaction),
                HeldRange::Wide(_) => ranges.remove_wide(transaction),
            };
            require!(
                count > 0 && count <= self.count && bytes <= self.bytes,
                "{count} ranges of {bytes} bytes that are released were counted when they were locked"
            );
            self.count -= count;
            self.bytes -= bytes;
            if ranges.is_empty() {
                self.indexes.remove(&place);
            }
        }
        let is_free = |waiter: &Waiter| self.all_blockers(waiter, &mut |_| false);
        let free: Vec<u64> =
            self.waiters.iter().filter(|(_, waiter)| is_free(waiter)).map(|(number, _)| *number).collect();
        granted.extend(free.into_iter().filter_map(|number| self.waiters.remove(&number)).map(|waiter| waiter.token));
        has_more
    }

    /// Whether `visit` is true for all holders of the ranges that block a waiter. Stops at the first false.
    fn all_blockers(&self, waiter: &Waiter, visit: &mut dyn FnMut(TransactionId) -> bool) -> bool {
        waiter.keys.iter().all(|(index, key)| {
            let place = IndexPartition { partition: waiter.partition, index: *index };
            let ranges = self.indexes.get(&place);
            ranges.is_none_or(|ranges| {
                ranges.all_holders(key, &mut |holder| holder == waiter.transaction || visit(holder))
            })
        })
    }

    /// Number of ranges held and of waiters.
    pub fn request_count(&self) -> usize {
        self.count + self.waiters.len()
    }

    /// Number of waiting inserts.
    pub fn waiter_count(&self) -> usize {
        self.waiters.len()
    }

    /// All ranges held, then all keys that wait.
    pub fn entries(&self) -> impl Iterator<Item = RangeEntry> {
        let held = self.indexes.iter().flat_map(|(place, ranges)| ranges.entries(*place));
        let waiting = self.waiters.values().flat_map(|waiter| {
            waiter.keys.iter().map(|(index, key)| {
                let key: Arc<[u8]> = key.as_ref().into();
                RangeEntry {
                    place: IndexPartition { partition: waiter.partition, index: *index },
                    lower: Bound::Included(Arc::clone(&key)),
                    upper: Bound::Included(key),
                    transaction: waiter.transaction,
                    mode: LockMode::Exclusive,
                    is_granted: false,
                }
            })
        });
        held.chain(waiting)
    }
}

impl IndexRanges {
    fn is_empty(&self) -> bool {
        self.prefixes.is_empty() && self.wide.is_empty()
    }

    /// Whether the transaction already holds this range, or a range of all keys. If so, that range takes the
    /// stronger of the two modes.
    fn strengthen_held(&mut self, bounds: RangeBounds<'_>, transaction: TransactionId, mode: LockMode) -> bool {
        if let Some(prefix) = prefix_of(bounds)
            && let Some(holders) = self.prefixes.get_mut(prefix)
            && let Some((_, held)) = holders.iter_mut().find(|(holder, _)| *holder == transaction)
        {
            *held = mode.max(*held);
            return true;
        }
        let same = self.wide.iter_mut().find(|range| {
            let covers = |own: &Bound<Arc<[u8]>>, asked| *own == Bound::Unbounded || as_slice(own) == asked;
            range.transaction == transaction && covers(&range.lower, bounds.lower) && covers(&range.upper, bounds.upper)
        });
        same.map(|range| range.mode = mode.max(range.mode)).is_some()
    }

    fn add_prefix(&mut self, prefix: &[u8], transaction: TransactionId, mode: LockMode) -> Arc<[u8]> {
        if let Some((known, _)) = self.prefixes.get_key_value(prefix) {
            let known = Arc::clone(known);
            self.prefixes.entry(Arc::clone(&known)).or_default().push((transaction, mode));
            return known;
        }
        let prefix: Arc<[u8]> = prefix.into();
        *self.lengths.entry(prefix.len()).or_default() += 1;
        self.prefixes.insert(Arc::clone(&prefix), vec![(transaction, mode)]);
        prefix
    }

    /// Adds a wide range. Returns whether it is the transaction's first wide range in this index.
    fn add_wide(&mut self, bounds: RangeBounds<'_>, transaction: TransactionId, mode: LockMode) -> bool {
        let is_first = self.wide.iter().all(|range| range.transaction != transaction);
        let (lower, upper) = (to_owned(bounds.lower), to_owned(bounds.upper));
        self.wide.push(WideRange { lower, upper, transaction, mode });
        is_first
    }

    /// Removes a prefix range. Returns the number of ranges and of bytes removed.
    fn remove_prefix(&mut self, prefix: &Arc<[u8]>, transaction: TransactionId) -> (usize, usize) {
        let holders = self.prefixes.get_mut(prefix).expect("a prefix is locked until its last holder ends");
        let before = holders.len();
        holders.retain(|(holder, _)| *holder != transaction);
        require!(before == holders.len() + 1, "a transaction holds a prefix once");
        if holders.is_empty() {
            self.prefixes.remove(prefix);
            let count = self.lengths.get_mut(&prefix.len()).expect("a locked prefix has its length counted");
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&prefix.len());
            }
        }
        (1, prefix.len())
    }

    fn remove_wide(&mut self, transaction: TransactionId) -> (usize, usize) {
        let (mut count, mut bytes) = (0, 0);
        self.wide.retain(|range| {
            if range.transaction == transaction {
                count += 1;
                bytes += bytes_of(range.bounds());
            }
            range.transaction != transaction
        });
        (count, bytes)
    }

    /// Whether `visit` is true for all holders of ranges that contain the key. Stops at the first false.
    fn all_holders(&self, key: &[u8], visit: &mut dyn FnMut(TransactionId) -> bool) -> bool {
        let wide = self.wide.iter().filter(|range| range.bounds().contains(key));
        for range in wide {
            if !visit(range.transaction) {
                return false;
            }
        }
        // A prefix range contains the key if the key's first bytes are exactly the prefix.
        for length in self.lengths.keys().take_while(|length| **length <= key.len()) {
            let holders = self.prefixes.get(&key[..*length]).into_iter().flatten();
            for (holder, _) in holders {
                if !visit(*holder) {
                    return false;
                }
            }
        }
        true
    }

    fn entries(&self, place: IndexPartition) -> impl Iterator<Item = RangeEntry> {
        let wide = self.wide.iter().map(move |range| RangeEntry {
            place,
            lower: range.lower.clone(),
            upper: range.upper.clone(),
            transaction: range.transaction,
            mode: range.mode,
            is_granted: true,
        });
        let prefixes = self.prefixes.iter().flat_map(move |(prefix, holders)| {
            holders.iter().map(move |(transaction, mode)| RangeEntry {
                place,
                lower: Bound::Included(Arc::clone(prefix)),
                upper: Bound::Included(Arc::clone(prefix)),
                transaction: *transaction,
                mode: *mode,
                is_granted: true,
            })
        });
        wide.chain(prefixes)
    }
}

impl WideRange {
    fn bounds(&self) -> RangeBounds<'_> {
        RangeBounds { lower: as_slice(&self.lower), upper: as_slice(&self.upper) }
    }
}

/// The prefix that all keys of the range have and no other key has; `None` for a wide range.
fn prefix_of(bounds: RangeBounds<'_>) -> Option<&[u8]> {
    match (bounds.lower, bounds.upper) {
        (Bound::Included(lower), Bound::Included(upper)) if lower == upper => Some(lower),
        _ => None,
    }
}

fn bytes_of(bounds: RangeBounds<'_>) -> usize {
    let length = |bound| match bound {
        Bound::Included(key) | Bound::Excluded(key) => <[u8]>::len(key),
        Bound::Unbounded => 0,
    };
    match prefix_of(bounds) {
        Some(prefix) => prefix.len(),
        None => length(bounds.lower) + length(bounds.upper),
    }
}

fn as_slice(bound: &Bound<Arc<[u8]>>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

fn to_owned(bound: Bound<&[u8]>) -> Bound<Arc<[u8]>> {
    bound.map(Arc::from)
}
