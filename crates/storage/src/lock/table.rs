//! The lock table, in one file because requests, queues and releases share its records. Hot path: a request
//! for a free row, and its release, 540 instructions together.
//!
//! Each lock has a list of holders and a queue of waiters, and each transaction has a list of its requests.
//! Records are linked by their numbers. Waiters are served in order of arrival, with one exception: a holder
//! that requests a stronger mode goes to the front. All others in the queue wait for that holder anyway,
//! directly or through others.

use foldhash::fast::FixedState;
use hashbrown::{HashSet, HashTable};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};

use junctor_model::id::{IndexId, PartitionId, RowId, TransactionId};

use crate::index::RangeBounds;
use crate::invariant::{require, verify};
use crate::sharded_table::ShardedTable;

use super::pool::{NONE, Pool};
use super::queues::Queues;
use super::range::{IndexPartition, NewKey, RangeEntry, RangeTable};

/// Maximum number of locks, and of requests for locks, of one ldm.
pub const LOCKS_MAX: usize = 1 << 20;
/// When the table is full, a request first releases locks of ended transactions, in steps of at most this
/// many.
const ROOM_MADE_MAX: usize = 256;
/// An empty table keeps memory for this many requests, and frees the memory beyond.
const RECORDS_KEPT: usize = 1 << 16;

/// A row that can be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockKey {
    /// The partition of the row.
    pub partition: PartitionId,
    /// The row in its partition.
    pub row: RowId,
}

impl Hash for LockKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // A single word, for one step of the hasher. Partitions of one table differ in the upper bits.
        let PartitionId { table, index } = self.partition;
        state.write_u64(u64::from(self.row.0) ^ (u64::from(table.0) << 32) ^ (u64::from(index) << 48));
    }
}

/// The mode of a lock, the weaker one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Compatible with other shared locks.
    Shared,
    /// Incompatible with every other lock.
    Exclusive,
}

/// A value that the caller chooses. The table returns it when a waiting request is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterToken(pub u64);

/// Identifies a waiting request. After the request is granted or cancelled, the id is invalid, even if its
/// record is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaiterId(Waiter);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Waiter {
    /// A request for a row.
    Row { request: u32, generation: u32 },
    /// Keys of new index entries that wait for locked ranges. Contains the number of the wait; a row's key is
    /// [`LockKey`].
    Key(u64),
}

/// The reply to a lock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockReply {
    /// The transaction holds the lock.
    Granted,
    /// The request is queued; `LockTable::blockers_of` returns the transactions for which it waits.
    Waiting(WaiterId),
}

/// The table has no free record: error 1206 for the statement. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockTableFull;

impl fmt::Display for LockTableFull {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("The total number of locks exceeds the lock table size")
    }
}

impl std::error::Error for LockTableFull {}

/// A row of the status table of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockEntry {
    /// The locked row.
    pub key: LockKey,
    /// The transaction that holds the lock or waits for it.
    pub transaction: TransactionId,
    /// The mode held or asked for.
    pub mode: LockMode,
    /// False for a waiting request.
    pub is_granted: bool,
}

/// All locks of one ldm.
#[derive(Debug)]
pub struct LockTable {
    /// The numbers of the locks.
    by_key: ShardedTable<u32>,
    by_transaction: HashTable<(TransactionId, u32)>,
    locks: Pool<Lock>,
    requests: Pool<Request>,
    hasher: FixedState,
    waiter_count: usize,
    queues: Queues,
    generation: u32,
    ranges: RangeTable,
    /// Transactions that are over and still have rows in the table. Their locks count as free: a request for
    /// such a row releases its lock first. Nobody waits for them.
    ended: HashSet<TransactionId, FixedState>,
    #[cfg(test)]
    pub(super) visited: std::cell::Cell<usize>,
}

/// Waiting requests whose blockers change when another one is cancelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followers {
    /// An exclusive request that loses the cancelled request, which is a shared one, as a blocker. Its other
    /// blockers stay.
    pub fewer: Option<WaiterToken>,
    /// Requests with new blockers.
    pub others: Vec<WaiterToken>,
}

#[derive(Debug)]
struct Lock {
    key: LockKey,
    holders: List,
    waiters: List,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Request {
    lock: u32,
    /// Number of times that the holder has requested the lock.
    count: u32,
    transaction: TransactionId,
    token: WaiterToken,
    generation: u32,
    mode: LockMode,
    is_granted: bool,
    /// Neighbours among the holders or waiters of the lock.
    previous: u32,
    next: u32,
    /// Neighbours among the requests of the transaction.
    transaction_previous: u32,
    transaction_next: u32,
}

const EMPTY: List = List { first: NONE, last: NONE };

impl LockTable {
    /// An empty table for at most `capacity` locks and as many requests. `seed` is the seed of its hash
    /// function.
    pub fn new(seed: u64, capacity: usize) -> LockTable {
        LockTable {
            by_key: ShardedTable::default(),
            by_transaction: HashTable::new(),
            locks: Pool::new(capacity),
            requests: Pool::new(capacity),
            hasher: FixedState::with_seed(seed),
            waiter_count: 0,
            queues: Queues::default(),
            generation: 0,
            ranges: RangeTable::default(),
            ended: HashSet::with_hasher(FixedState::with_seed(seed)),
            #[cfg(test)]
            visited: std::cell::Cell::default(),
        }
    }

    /// Whether any range of the partition is locked. Costs one comparison if no ranges exist at all.
    #[inline]
    pub fn has_ranges(&self, partition: PartitionId) -> bool {
        !self.ranges.is_empty() && self.ranges.indexes_of(partition).next().is_some()
    }

    /// The indexes of a partition that have locked ranges.
    pub fn locked_indexes(&self, partition: PartitionId) -> impl Iterator<Item = IndexId> {
        self.ranges.indexes_of(partition)
    }

    /// Locks a range of keys until the transaction ends: other transactions cannot add keys to it. Never
    /// waits.
    pub fn lock_range(
        &mut self,
        place: IndexPartition,
        bounds: RangeBounds<'_>,
        transaction: TransactionId,
        mode: LockMode,
    ) -> Result<(), LockTableFull> {
        self.ranges.lock(place, bounds, transaction, mode)
    }

    /// Whether another transaction holds a range that contains the key.
    pub fn is_range_locked_by_other(&self, place: IndexPartition, key: &[u8], transaction: TransactionId) -> bool {
        self.ranges.blocks(place, key, transaction)
    }

    /// Waits until no other transaction holds a range with one of these keys. Then `token` is returned, and
    /// the caller must check again, because another range may have been locked since.
    pub fn wait_for_ranges(
        &mut self,
        partition: PartitionId,
        keys: Vec<NewKey>,
        transaction: TransactionId,
        token: WaiterToken,
    ) -> WaiterId {
        WaiterId(Waiter::Key(self.ranges.wait(partition, keys, transaction, token)))
    }

    /// Returns the waiters that are blocked, in addition to their former blockers, by ranges locked since the
    /// last call. The caller must report their new blockers to the deadlock search.
    #[inline]
    pub fn take_newly_blocked(&mut self) -> Vec<WaiterToken> {
        if self.ranges.is_empty() { Vec::new() } else { self.ranges.take_newly_blocked() }
    }

    /// Requests a lock. A holder may request it again any number of times. `token` is returned when a waiting
    /// request is granted.
    pub fn request(
        &mut self,
        key: LockKey,
        transaction: TransactionId,
        mode: LockMode,
        token: WaiterToken,
    ) -> Result<LockReply, LockTableFull> {
        require!(transaction.is_some(), "a lock is requested by a transaction");
        if !self.ended.is_empty() {
            self.release_ended_at(key);
        }
        if self.requests.is_full() && !self.make_room() {
            return Err(LockTableFull);
        }
        let lock = self.lock_of(key)?;
        if let Some(holder) = self.holder_of(lock, transaction) {
            if self.requests[holder].mode < mode && !self.is_only_holder(lock, holder) {
                // Two holders that both upgrade wait for each other. The deadlock search resolves that, not
                // the table.
                let request = self.add_request(lock, transaction, mode, token);
                return Ok(self.wait(request, true));
            }
            self.strengthen(holder, mode);
            return Ok(LockReply::Granted);
        }
        // Even a compatible request queues behind waiters. Otherwise a stream of shared locks would starve an
        // exclusive one.
        if self.locks[lock].waiters.first == NONE && self.is_compatible(lock, mode) {
            let request = self.add_request(lock, transaction, mode, token);
            self.add_holder(request);
            return Ok(LockReply::Granted);
        }
        let request = self.add_request(lock, transaction, mode, token);
        Ok(self.wait(request, false))
    }

    /// Releases one request of a holder. Appends the tokens of the requests that this grants.
    pub fn release(&mut self, key: LockKey, transaction: TransactionId, granted: &mut Vec<WaiterToken>) {
        let hash = self.hash_of_key(&key);
        let found = self.by_key.find(hash, |lock| self.locks[*lock].key == key).copied();
        let holder = found.and_then(|lock| self.holder_of(lock, transaction));
        let holder = holder.expect("a lock is released by a transaction that holds it");
        require!(self.requests[holder].count > 0, "a lock is released as often as it was granted");
        self.requests[holder].count -= 1;
        if self.requests[holder].count == 0 {
            self.unlink_from_transaction(holder);
            self.drop_request(holder, granted);
        }
    }

    /// Releases everything that a transaction holds or waits for. Appends the tokens of the requests that
    /// this grants.
    pub fn release_all(&mut self, transaction: TransactionId, granted: &mut Vec<WaiterToken>) {
        self.release_some(transaction, usize::MAX, granted);
    }

    /// Releases at most `count_max` of the locks and requests of a transaction. Returns whether any are left.
    /// Appends the tokens of the requests that this grants. While requests are left, the transaction must not
    /// request anything more. A waiting request of its own may still be granted meanwhile, if no step has
    /// reached the request yet.
    pub fn release_some(
        &mut self,
        transaction: TransactionId,
        count_max: usize,
        granted: &mut Vec<WaiterToken>,
    ) -> bool {
        let has_more = self.release_rows(transaction, count_max, granted);
        if has_more || self.ranges.request_count() == 0 {
            return has_more;
        }
        self.ranges.release_some(transaction, count_max, granted)
    }

    /// Releases at most `count_max` of the ranges of a transaction. Returns whether any are left.
    #[inline]
    pub fn release_ranges(
        &mut self,
        transaction: TransactionId,
        count_max: usize,
        granted: &mut Vec<WaiterToken>,
    ) -> bool {
        self.ranges.request_count() > 0 && self.ranges.release_some(transaction, count_max, granted)
    }

    /// Ends a transaction that has no ranges and waits for nothing: its locks count as free from now on.
    /// `waiters` must be all waiting requests. Releases the locks for which they wait, and appends the tokens
    /// of the requests that this grants. The caller releases the other locks with `release_ended`.
    pub fn end_transaction(
        &mut self,
        transaction: TransactionId,
        waiters: impl Iterator<Item = WaiterId>,
        granted: &mut Vec<WaiterToken>,
    ) {
        self.ended.insert(transaction);
        for waiter in waiters {
            let Some(lock) = self.waiting(waiter).map(|request| request.lock) else { continue };
            if let Some(holder) = self.holder_of(lock, transaction) {
                self.unlink_from_transaction(holder);
                self.drop_request(holder, granted);
            }
        }
    }

    /// Releases at most `count_max` locks of an ended transaction. Returns whether any are left.
    pub fn release_ended(&mut self, transaction: TransactionId, count_max: usize) -> bool {
        let mut granted = Vec::new();
        let has_more = self.release_rows(transaction, count_max, &mut granted);
        require!(granted.is_empty(), "nobody waits for a lock of an ended transaction: {transaction}");
        if !has_more {
            self.ended.remove(&transaction);
        }
        has_more
    }

    /// Releases the locks of ended transactions on a row.
    #[cold]
    fn release_ended_at(&mut self, key: LockKey) {
        let find = |table: &LockTable| {
            let lock = *table.by_key.find(table.hash_of_key(&key), |lock| table.locks[*lock].key == key)?;
            let mut holders = table.walk(table.locks[lock].holders.first);
            holders.find(|holder| table.ended.contains(&table.requests[*holder].transaction))
        };
        let mut granted = Vec::new();
        // Look the lock up each time, because it is freed with its last request.
        while let Some(holder) = find(self) {
            self.unlink_from_transaction(holder);
            self.drop_request(holder, &mut granted);
        }
        require!(granted.is_empty(), "nobody waits for a lock of an ended transaction: {key:?}");
    }

    /// Releases some locks of ended transactions. Returns false if they have none.
    #[cold]
    fn make_room(&mut self) -> bool {
        while let Some(transaction) = self.ended.iter().next().copied() {
            self.release_ended(transaction, ROOM_MADE_MAX);
            if !self.requests.is_full() {
                return true;
            }
        }
        false
    }

    fn release_rows(&mut self, transaction: TransactionId, count_max: usize, granted: &mut Vec<WaiterToken>) -> bool {
        let hash = self.hash_of_transaction(transaction);
        let Ok(entry) = self.by_transaction.find_entry(hash, |(owner, _)| *owner == transaction) else { return false };
        let ((_, mut request), _) = entry.remove();
        // The requests of this step leave their queues first, so that the releases below do not grant them.
        let mut waiting = request;
        let mut left = count_max;
        // Bounded by `count_max`, like the release itself, so that each step of a large transaction stays
        // short.
        while waiting != NONE && left > 0 {
            left -= 1;
            if !self.requests[waiting].is_granted {
                self.leave_queue(waiting);
            }
            waiting = self.requests[waiting].transaction_next;
        }
        let mut left = count_max;
        while request != NONE && left > 0 {
            left -= 1;
            let Request { transaction_next, is_granted, lock, .. } = self.requests[request];
            if is_granted {
                unlink(&mut self.requests, &mut self.locks[lock].holders, request);
            }
            self.free_request(request);
            self.grant_or_free(lock, granted);
            request = transaction_next;
        }
        if request == NONE {
            self.trim();
            return false;
        }
        self.requests[request].transaction_previous = NONE;
        let LockTable { by_transaction, hasher, .. } = self;
        by_transaction.insert_unique(hash, (transaction, request), |(owner, _)| hasher.hash_one(owner));
        true
    }

    /// Frees part of the memory that a transaction with many rows has left behind.
    fn trim(&mut self) {
        if self.requests.allocated() > RECORDS_KEPT && self.requests.used() == 0 {
            self.requests.trim(RECORDS_KEPT);
            self.locks.trim(RECORDS_KEPT);
            self.by_key.trim();
        }
    }

    /// Cancels a waiting request. Returns false if it was no longer waiting. Appends the tokens of the
    /// requests that this grants.
    pub fn cancel(&mut self, waiter: WaiterId, granted: &mut Vec<WaiterToken>) -> bool {
        match waiter.0 {
            Waiter::Key(number) => self.ranges.cancel(number),
            Waiter::Row { request, .. } => {
                if self.waiting(waiter).is_none() {
                    return false;
                }
                self.unlink_from_transaction(request);
                self.drop_request(request, granted);
                true
            }
        }
    }

    /// The transactions for which a waiting request waits. A blocker that is itself waiting for this lock
    /// comes with its token.
    ///
    /// The list ends at the nearest waiter ahead that requests exclusive mode, because that waiter waits for
    /// everybody before it. Without such a waiter, the list includes the holders. A shared request has one
    /// blocker. An exclusive one has the shared ones just ahead, too; the next exclusive request has none of
    /// these. A queue of any length thus has about as many blockers as waiters. When a waiting request is
    /// cancelled, the blockers of its `followers_of` change.
    pub fn blockers_of(&self, waiter: WaiterId) -> Vec<(TransactionId, Option<WaiterToken>)> {
        if let Waiter::Key(number) = waiter.0 {
            return self.ranges.blockers_of(number).into_iter().map(|holder| (holder, None)).collect();
        }
        let mut blockers = Vec::new();
        let (Some(own), Waiter::Row { request, .. }) = (self.waiting(waiter), waiter.0) else { return blockers };
        let is_other = |number: &u32| self.requests[*number].transaction != own.transaction;
        let exclusive = self.queues.exclusive_before(own.lock, request).inspect(|_| self.visit()).find(is_other);
        let named = |number: u32| (self.requests[number].transaction, Some(self.requests[number].token));
        if own.mode == LockMode::Exclusive {
            let ahead = self.walk_back(own.previous).inspect(|_| self.visit());
            blockers.extend(ahead.take_while(|number| Some(*number) != exclusive).filter(is_other).map(named));
        }
        if let Some(number) = exclusive {
            blockers.push(named(number));
            return blockers;
        }
        let first = self.locks[own.lock].holders.first;
        // Several holders have shared mode, which excludes no shared request.
        if own.mode == LockMode::Exclusive || first != NONE && self.requests[first].mode == LockMode::Exclusive {
            let holders = self.walk(first).inspect(|_| self.visit()).filter(is_other);
            blockers.extend(holders.map(|number| (self.requests[number].transaction, None)));
        }
        blockers
    }

    /// The waiting requests whose `blockers_of` name this waiting request.
    pub fn followers_of(&self, waiter: WaiterId) -> Followers {
        let (Some(own), Waiter::Row { request, .. }) = (self.waiting(waiter), waiter.0) else {
            return Followers::default();
        };
        let is_other = |number: &u32| self.requests[*number].transaction != own.transaction;
        let mut exclusive = self.queues.exclusive_after(own.lock, request).inspect(|_| self.visit());
        if own.mode == LockMode::Shared {
            let fewer = exclusive.find(is_other).map(|number| self.requests[number].token);
            return Followers { fewer, others: Vec::new() };
        }
        let last = exclusive.find(is_other);
        let later = self.walk(own.next).inspect(|_| self.visit());
        let mut others: Vec<WaiterToken> = Vec::new();
        for number in later {
            others.push(self.requests[number].token);
            if Some(number) == last {
                break;
            }
        }
        Followers { fewer: None, others }
    }

    /// Counts a request that a search for blockers or followers visits, for the tests of its cost.
    #[inline]
    fn visit(&self) {
        #[cfg(test)]
        self.visited.set(self.visited.get() + 1);
    }

    /// Whether the transaction may hold or wait for anything else.
    pub fn has_other_requests(&self, waiter: WaiterId) -> bool {
        match waiter.0 {
            // The rows that the transaction inserted are locked without entries in this table.
            Waiter::Key(_) => true,
            Waiter::Row { .. } => self.waiting(waiter).is_some_and(|own| {
                let has_rows = (own.transaction_previous, own.transaction_next) != (NONE, NONE);
                has_rows || self.ranges.is_holder(own.transaction)
            }),
        }
    }

    /// Whether the request is still waiting.
    pub fn is_waiting(&self, waiter: WaiterId) -> bool {
        match waiter.0 {
            Waiter::Key(number) => self.ranges.is_waiting(number),
            Waiter::Row { .. } => self.waiting(waiter).is_some(),
        }
    }

    /// The row that a request waits for; `None` if it is not waiting for a row.
    pub fn awaited_row(&self, waiter: WaiterId) -> Option<LockKey> {
        self.waiting(waiter).map(|request| self.locks[request.lock].key)
    }

    /// Whether the row has no holder and no waiter.
    pub fn is_free(&mut self, key: LockKey) -> bool {
        if !self.ended.is_empty() {
            self.release_ended_at(key);
        }
        self.by_key.find(self.hash_of_key(&key), |lock| self.locks[*lock].key == key).is_none()
    }

    /// The mode in which a transaction holds a lock.
    pub fn mode_held(&self, key: LockKey, transaction: TransactionId) -> Option<LockMode> {
        let lock = *self.by_key.find(self.hash_of_key(&key), |lock| self.locks[*lock].key == key)?;
        self.holder_of(lock, transaction).map(|holder| self.requests[holder].mode)
    }

    /// All requests held and waiting, grouped by lock.
    pub fn locks(&self) -> impl Iterator<Item = LockEntry> {
        self.by_key.iter().flat_map(move |number| {
            let lock = &self.locks[*number];
            let requests = self.walk(lock.holders.first).chain(self.walk(lock.waiters.first));
            let requests = requests.filter(|request| !self.ended.contains(&self.requests[*request].transaction));
            requests.map(move |request| {
                let Request { transaction, mode, is_granted, .. } = self.requests[request];
                LockEntry { key: lock.key, transaction, mode, is_granted }
            })
        })
    }

    /// All ranges held, and the keys that wait for ranges.
    pub fn ranges(&self) -> impl Iterator<Item = RangeEntry> {
        self.ranges.entries()
    }

    /// Number of rows that are locked.
    pub fn lock_count(&self) -> usize {
        self.locks.used()
    }

    /// Number of requests held and waiting, those of ranges included.
    pub fn request_count(&self) -> usize {
        self.requests.used() + self.ranges.request_count()
    }

    /// Number of waiting requests, those for ranges included.
    pub fn waiter_count(&self) -> usize {
        self.waiter_count + self.ranges.waiter_count()
    }

    fn lock_of(&mut self, key: LockKey) -> Result<u32, LockTableFull> {
        let hash = self.hash_of_key(&key);
        let LockTable { by_key, locks, hasher, .. } = self;
        if let Some(lock) = by_key.find(hash, |lock| locks[*lock].key == key) {
            return Ok(*lock);
        }
        if locks.is_full() {
            return Err(LockTableFull);
        }
        let lock = locks.add(Lock { key, holders: EMPTY, waiters: EMPTY });
        by_key.insert_unique(hash, lock, |lock| hasher.hash_one(locks[*lock].key));
        Ok(lock)
    }

    fn holder_of(&self, lock: u32, transaction: TransactionId) -> Option<u32> {
        self.walk(self.locks[lock].holders.first).find(|holder| self.requests[*holder].transaction == transaction)
    }

    fn is_only_holder(&self, lock: u32, holder: u32) -> bool {
        let holders = self.locks[lock].holders;
        holders.first == holder && holders.last == holder
    }

    /// Whether a transaction that is not a holder may get the lock in addition to the present holders.
    fn is_compatible(&self, lock: u32, mode: LockMode) -> bool {
        match self.locks[lock].holders.first {
            NONE => true,
            first => mode == LockMode::Shared && self.requests[first].mode == LockMode::Shared,
        }
    }

    fn strengthen(&mut self, holder: u32, mode: LockMode) {
        let Request { mode: held, lock, .. } = self.requests[holder];
        require!(
            mode <= held || self.is_only_holder(lock, holder),
            "a lock becomes exclusive only for its only holder"
        );
        let request = &mut self.requests[holder];
        request.count = request.count.saturating_add(1);
        request.mode = request.mode.max(mode);
    }

    /// Creates a request record and links it into its transaction's list.
    fn add_request(&mut self, lock: u32, transaction: TransactionId, mode: LockMode, token: WaiterToken) -> u32 {
        let hash = self.hash_of_transaction(transaction);
        // A freed record has generation 0, which no waiter id has.
        self.generation = self.generation.wrapping_add(1).max(1);
        let generation = self.generation;
        let LockTable { by_transaction, requests, hasher, .. } = self;
        let request = requests.add(Request {
            lock,
            count: 1,
            transaction,
            token,
            generation,
            mode,
            is_granted: false,
            previous: NONE,
            next: NONE,
            transaction_previous: NONE,
            transaction_next: NONE,
        });
        match by_transaction.find_mut(hash, |(owner, _)| *owner == transaction) {
            Some((_, first)) => {
                requests[request].transaction_next = *first;
                requests[*first].transaction_previous = request;
                *first = request;
            }
            None => {
                by_transaction.insert_unique(hash, (transaction, request), |(owner, _)| hasher.hash_one(owner));
            }
        }
        request
    }

    fn add_holder(&mut self, request: u32) {
        let Request { lock, mode, .. } = self.requests[request];
        verify!(self.is_compatible(lock, mode), "a lock is granted only in a mode compatible with its holders");
        self.requests[request].is_granted = true;
        push_back(&mut self.requests, &mut self.locks[lock].holders, request);
    }

    fn wait(&mut self, request: u32, is_upgrade: bool) -> LockReply {
        let lock = self.requests[request].lock;
        match is_upgrade {
            true => push_front(&mut self.requests, &mut self.locks[lock].waiters, request),
            false => push_back(&mut self.requests, &mut self.locks[lock].waiters, request),
        }
        self.waiter_count += 1;
        self.queues.add((lock, request), self.requests[request].mode, is_upgrade);
        LockReply::Waiting(WaiterId(Waiter::Row { request, generation: self.requests[request].generation }))
    }

    /// Removes a request from its lock, but not from its transaction. Grants the requests that can then be
    /// granted.
    fn drop_request(&mut self, request: u32, granted: &mut Vec<WaiterToken>) {
        let lock = self.requests[request].lock;
        match self.requests[request].is_granted {
            true => unlink(&mut self.requests, &mut self.locks[lock].holders, request),
            false => self.leave_queue(request),
        }
        self.free_request(request);
        self.grant_or_free(lock, granted);
    }

    /// Called after a request has left the lock. Grants the requests that can be granted, or frees the lock
    /// if it has no requests.
    fn grant_or_free(&mut self, lock: u32, granted: &mut Vec<WaiterToken>) {
        self.grant(lock, granted);
        let Lock { key, holders, waiters } = self.locks[lock];
        if holders.first == NONE && waiters.first == NONE {
            let hash = self.hash_of_key(&key);
            let entry = self.by_key.find_entry(hash, |other| *other == lock);
            entry.expect("a lock that was held is found by its key").remove();
            self.locks.remove(lock);
        }
    }

    fn grant(&mut self, lock: u32, granted: &mut Vec<WaiterToken>) {
        loop {
            let waiter = self.locks[lock].waiters.first;
            if waiter == NONE {
                return;
            }
            let Request { transaction, mode, token, .. } = self.requests[waiter];
            let holder = self.holder_of(lock, transaction);
            let can_have = match holder {
                Some(holder) => self.requests[holder].mode >= mode || self.is_only_holder(lock, holder),
                None => self.is_compatible(lock, mode),
            };
            if !can_have {
                return;
            }
            self.leave_queue(waiter);
            match holder {
                Some(holder) => {
                    self.strengthen(holder, mode);
                    self.unlink_from_transaction(waiter);
                    self.free_request(waiter);
                }
                None => self.add_holder(waiter),
            }
            granted.push(token);
        }
    }

    fn unlink_from_transaction(&mut self, request: u32) {
        let Request { transaction, transaction_previous, transaction_next, .. } = self.requests[request];
        if transaction_next != NONE {
            self.requests[transaction_next].transaction_previous = transaction_previous;
        }
        if transaction_previous != NONE {
            self.requests[transaction_previous].transaction_next = transaction_next;
            return;
        }
        let hash = self.hash_of_transaction(transaction);
        // `release_rows` removes the entry while it frees the requests of a transaction.
        let Ok(mut entry) = self.by_transaction.find_entry(hash, |(owner, _)| *owner == transaction) else { return };
        match transaction_next {
            NONE => drop(entry.remove()),
            next => entry.get_mut().1 = next,
        }
    }

    /// Takes a waiting request out of the queue of its lock.
    fn leave_queue(&mut self, request: u32) {
        require!(self.waiter_count > 0, "a request that leaves a queue was counted as waiting");
        self.waiter_count -= 1;
        let lock = self.requests[request].lock;
        unlink(&mut self.requests, &mut self.locks[lock].waiters, request);
        self.queues.remove((lock, request));
    }

    fn free_request(&mut self, request: u32) {
        require!(self.requests[request].generation != 0, "a request record is freed once");
        self.requests[request].generation = 0;
        self.requests.remove(request);
    }

    fn waiting(&self, waiter: WaiterId) -> Option<&Request> {
        let Waiter::Row { request, generation } = waiter.0 else { return None };
        let request = self.requests.get(request)?;
        (request.generation == generation && !request.is_granted).then_some(request)
    }

    fn walk(&self, first: u32) -> impl Iterator<Item = u32> {
        let some = |number: u32| (number != NONE).then_some(number);
        std::iter::successors(some(first), move |number| some(self.requests[*number].next))
    }

    fn walk_back(&self, last: u32) -> impl Iterator<Item = u32> {
        let some = |number: u32| (number != NONE).then_some(number);
        std::iter::successors(some(last), move |number| some(self.requests[*number].previous))
    }

    #[inline]
    fn hash_of_key(&self, key: &LockKey) -> u64 {
        self.hasher.hash_one(key)
    }

    #[inline]
    fn hash_of_transaction(&self, transaction: TransactionId) -> u64 {
        self.hasher.hash_one(transaction)
    }
}

fn push_back(requests: &mut Pool<Request>, list: &mut List, request: u32) {
    requests[request].previous = list.last;
    requests[request].next = NONE;
    match list.last {
        NONE => list.first = request,
        last => requests[last].next = request,
    }
    list.last = request;
}

fn push_front(requests: &mut Pool<Request>, list: &mut List, request: u32) {
    requests[request].previous = NONE;
    requests[request].next = list.first;
    match list.first {
        NONE => list.last = request,
        first => requests[first].previous = request,
    }
    list.first = request;
}

fn unlink(requests: &mut Pool<Request>, list: &mut List, request: u32) {
    let Request { previous, next, .. } = requests[request];
    match previous {
        NONE => list.first = next,
        previous => requests[previous].next = next,
    }
    match next {
        NONE => list.last = previous,
        next => requests[next].previous = previous,
    }
}
