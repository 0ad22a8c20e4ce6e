//! The hash index of the primary key (hot path: `HashIndex::find`, 60 instructions, comparison of the key not
//! counted).
//!
//! Linear hashing (Litwin, 1980): one bucket is split at a time, so growth never pauses a statement. A bucket
//! is one cache line: 7 hashes of 32 bits, 7 row ids, the count, and the next bucket of an overflow chain.
//! The lower 32 bits of the key hash choose the bucket. The bucket stores them, so a split need not read the
//! rows, and neither need a comparison with most unequal keys.

use std::sync::Arc;

use junctor_model::id::RowId;

use super::words::equal_words;
use crate::invariant::require;
use crate::page::{MemoryNeed, OutOfMemory, PAGE_BYTES, Page, PageKind, PagePool};

const BUCKET_BYTES: usize = 64;
const ENTRIES_PER_BUCKET: usize = 7;
const BUCKETS_PER_PAGE: usize = PAGE_BYTES / BUCKET_BYTES;
const COUNT_AT: usize = 28;
const ROWS_AT: usize = 32;
const LINK_AT: usize = 60;
/// Mean number of entries per bucket above which a bucket is split.
const ENTRIES_PER_BUCKET_MEAN: usize = 5;
const LEVEL_MIN: u32 = BUCKETS_PER_PAGE.trailing_zeros();
const NO_BUCKET: u32 = u32::MAX;

type Bucket = [u8; BUCKET_BYTES];

/// A map from key hashes to row ids. A hash may have several rows.
#[derive(Debug)]
pub struct HashIndex {
    /// The buckets that hashes select; empty while the index is empty.
    home: Vec<Page>,
    /// Overflow ("spill") buckets, chained from the home buckets.
    spill: Vec<Page>,
    spill_fresh: u32,
    spill_free: u32,
    /// Hashes select one of `2^level` buckets. If the selected bucket is below `split`, one more bit of the
    /// hash counts.
    level: u32,
    split: usize,
    entries: usize,
    moving: Vec<(u32, u32)>,
    pool: Arc<PagePool>,
}

#[derive(Clone, Copy)]
enum BucketLocation {
    Home(usize),
    Spill(u32),
}

impl HashIndex {
    /// An empty index.
    pub fn new(pool: Arc<PagePool>) -> HashIndex {
        HashIndex {
            home: Vec::new(),
            spill: Vec::new(),
            spill_fresh: 0,
            spill_free: NO_BUCKET,
            level: LEVEL_MIN,
            split: 0,
            entries: 0,
            moving: Vec::new(),
            pool,
        }
    }

    /// Calls `accept` for the rows with this hash until it returns a value, and returns that value.
    #[inline]
    pub fn find<T>(&self, hash: u64, accept: impl FnMut(RowId) -> Option<T>) -> Option<T> {
        self.find_from(self.home_of(hash), hash, accept)
    }

    /// Like `find`, with the bucket from [`HashIndex::home_of`].
    #[inline]
    pub(crate) fn find_from<T>(&self, home: usize, hash: u64, mut accept: impl FnMut(RowId) -> Option<T>) -> Option<T> {
        // The index compares the lower 32 bits only; `accept` compares the key.
        let hash = hash as u32;
        let mut bucket = bucket_in(self.home.get(home / BUCKETS_PER_PAGE)?, home % BUCKETS_PER_PAGE);
        loop {
            let mut matches = slots_with(bucket, hash);
            while matches != 0 {
                let slot = matches.trailing_zeros() as usize;
                let found = accept(RowId(row_at(bucket, slot)));
                if found.is_some() {
                    return found;
                }
                matches &= matches - 1;
            }
            let link = link_of(bucket);
            if link == 0 {
                return None;
            }
            bucket = self.spill_bucket(link - 1);
        }
    }

    /// Prefetches a bucket.
    #[inline]
    pub(crate) fn prefetch(&self, bucket: usize) {
        if let Some(page) = self.home.get(bucket / BUCKETS_PER_PAGE) {
            page.prefetch(bucket % BUCKETS_PER_PAGE * BUCKET_BYTES);
        }
    }

    /// Reserves the memory that the next `insert` of this hash needs.
    pub(crate) fn reserve(&mut self, hash: u64, need: MemoryNeed) -> Result<(), OutOfMemory> {
        if self.home.is_empty() {
            let page = self.empty_page(need)?;
            self.home.push(page);
        }
        let bucket = self.home_bucket(self.home_of(hash));
        let is_full = usize::from(bucket[COUNT_AT]) == ENTRIES_PER_BUCKET;
        let has_spill =
            self.spill_free != NO_BUCKET || (self.spill_fresh as usize) < self.spill.len() * BUCKETS_PER_PAGE;
        if is_full && !has_spill {
            let page = self.empty_page(need)?;
            self.spill.push(page);
        }
        Ok(())
    }

    /// Adds an entry. The caller has reserved its memory.
    pub(crate) fn insert(&mut self, hash: u64, row: RowId) {
        require!(!self.home.is_empty(), "room for an entry of the hash index was reserved");
        self.add(hash as u32, row.0);
        self.entries += 1;
        // At most one split per insertion bounds its cost.
        if self.entries > self.bucket_count() * ENTRIES_PER_BUCKET_MEAN {
            self.split_one();
        }
    }

    /// Removes an entry. Returns false if it does not exist.
    pub(crate) fn remove(&mut self, hash: u64, row: RowId) -> bool {
        if self.home.is_empty() {
            return false;
        }
        let hash = hash as u32;
        let (mut location, mut before) = (BucketLocation::Home(self.home_of(u64::from(hash))), None);
        let mut found = None;
        loop {
            let bucket = self.bucket(location);
            if found.is_none() {
                let mut slots = 0..usize::from(bucket[COUNT_AT]);
                found = slots.find(|slot| row_at(bucket, *slot) == row.0).map(|slot| (location, slot));
            }
            match link_of(bucket) {
                0 => break,
                link => {
                    before = Some(location);
                    location = BucketLocation::Spill(link - 1);
                }
            }
        }
        let Some((hole, slot)) = found else { return false };
        // The last entry of the chain fills the gap, so that only the last bucket of a chain is not full.
        let last = self.bucket_mut(location);
        require!(last[COUNT_AT] > 0, "the last bucket of a chain with entries has an entry");
        last[COUNT_AT] -= 1;
        let end = usize::from(last[COUNT_AT]);
        let (last_hash, last_row) = (hash_at(last, end), row_at(last, end));
        set_entry(self.bucket_mut(hole), slot, last_hash, last_row);
        if let (0, Some(before), BucketLocation::Spill(number)) = (end, before, location) {
            set_link(self.bucket_mut(before), 0);
            self.free_spill(number);
        }
        self.entries -= 1;
        if self.entries == 0 {
            self.clear();
        }
        true
    }

    /// Takes at most `budget_pages` of the pages that an index of `entries` entries needs, so that insertions
    /// split no bucket. The index is empty and gets no entry before the last page. Returns false if pages are
    /// missing.
    pub(crate) fn grow_step(&mut self, entries: usize, budget_pages: usize) -> Result<bool, OutOfMemory> {
        require!(self.entries == 0, "a hash index is sized before it has entries");
        let buckets = entries.div_ceil(ENTRIES_PER_BUCKET_MEAN).max(BUCKETS_PER_PAGE);
        self.level = buckets.ilog2();
        self.split = buckets - (1 << self.level);
        let pages = buckets.div_ceil(BUCKETS_PER_PAGE);
        for _ in 0..budget_pages.min(pages - self.home.len()) {
            let page = self.empty_page(MemoryNeed::Growth)?;
            self.home.push(page);
        }
        Ok(self.home.len() == pages)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether the index has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of the pages in use.
    pub fn bytes(&self) -> u64 {
        (self.home.len() + self.spill.len()) as u64 * PAGE_BYTES as u64
    }

    /// Verifies that every entry is in the bucket that its hash chooses, and calls `visit` for each.
    pub(crate) fn check(&self, mut visit: impl FnMut(u32, RowId) -> Result<(), String>) -> Result<(), String> {
        let (mut entries, mut spilled) = (0, 0);
        for home in 0..if self.home.is_empty() { 0 } else { self.bucket_count() } {
            let mut location = BucketLocation::Home(home);
            loop {
                let bucket = self.bucket(location);
                let count = usize::from(bucket[COUNT_AT]);
                let link = link_of(bucket);
                if link != 0 && count != ENTRIES_PER_BUCKET {
                    return Err(format!("hash bucket {home}: a bucket with {count} entries has a next one"));
                }
                for slot in 0..count {
                    if self.home_of(u64::from(hash_at(bucket, slot))) != home {
                        return Err(format!("hash bucket {home}: an entry belongs elsewhere"));
                    }
                    visit(hash_at(bucket, slot), RowId(row_at(bucket, slot)))?;
                    entries += 1;
                }
                if link == 0 {
                    break;
                }
                spilled += 1;
                location = BucketLocation::Spill(link - 1);
            }
        }
        let (mut free, mut next) = (0, self.spill_free);
        while next != NO_BUCKET {
            free += 1;
            next = link_of(self.spill_bucket(next));
        }
        if spilled + free != self.spill_fresh {
            return Err(format!("{spilled} linked and {free} free spill buckets of {}", self.spill_fresh));
        }
        if entries != self.entries {
            return Err(format!("the hash index has {entries} entries, counted {}", self.entries));
        }
        Ok(())
    }

    fn add(&mut self, hash: u32, row: u32) {
        let mut location = BucketLocation::Home(self.home_of(u64::from(hash)));
        loop {
            let bucket = self.bucket_mut(location);
            let count = usize::from(bucket[COUNT_AT]);
            if count < ENTRIES_PER_BUCKET {
                bucket[COUNT_AT] += 1;
                set_entry(bucket, count, hash, row);
                return;
            }
            match link_of(bucket) {
                0 => {
                    let number = self.take_spill();
                    set_link(self.bucket_mut(location), number + 1);
                    location = BucketLocation::Spill(number);
                }
                link => location = BucketLocation::Spill(link - 1),
            }
        }
    }

    /// Splits the next bucket in order. Without memory for a new bucket, the index stays as it is and only
    /// becomes slower.
    #[cold]
    fn split_one(&mut self) {
        let target = self.bucket_count();
        if target / BUCKETS_PER_PAGE == self.home.len() {
            let Ok(page) = self.empty_page(MemoryNeed::Growth) else { return };
            self.home.push(page);
        }
        let mut moving = std::mem::take(&mut self.moving);
        let mut location = BucketLocation::Home(self.split);
        loop {
            let bucket = self.bucket_mut(location);
            moving.extend((0..usize::from(bucket[COUNT_AT])).map(|slot| (hash_at(bucket, slot), row_at(bucket, slot))));
            let link = link_of(bucket);
            bucket[COUNT_AT] = 0;
            set_link(bucket, 0);
            if let BucketLocation::Spill(number) = location {
                self.free_spill(number);
            }
            match link {
                0 => break,
                link => location = BucketLocation::Spill(link - 1),
            }
        }
        self.split += 1;
        if self.split == 1 << self.level {
            self.level += 1;
            self.split = 0;
        }
        // The two buckets together need at most as many overflow buckets as the old one did, so no memory is
        // needed.
        for (hash, row) in moving.drain(..) {
            self.add(hash, row);
        }
        require!(
            self.spill_fresh as usize <= self.spill.len() * BUCKETS_PER_PAGE,
            "the spill buckets in use lie in pages of the index"
        );
        self.moving = moving;
    }

    fn clear(&mut self) {
        self.home = Vec::new();
        self.spill = Vec::new();
        self.spill_fresh = 0;
        self.spill_free = NO_BUCKET;
        self.level = LEVEL_MIN;
        self.split = 0;
    }

    fn bucket_count(&self) -> usize {
        (1 << self.level) + self.split
    }

    /// The bucket that a hash chooses.
    #[inline]
    pub(crate) fn home_of(&self, hash: u64) -> usize {
        let hash = hash as u32 as usize;
        let narrow = hash & ((1 << self.level) - 1);
        if narrow < self.split { hash & ((2 << self.level) - 1) } else { narrow }
    }

    #[inline]
    fn home_bucket(&self, bucket: usize) -> &Bucket {
        bucket_in(&self.home[bucket / BUCKETS_PER_PAGE], bucket % BUCKETS_PER_PAGE)
    }

    #[inline]
    fn spill_bucket(&self, number: u32) -> &Bucket {
        let number = number as usize;
        bucket_in(&self.spill[number / BUCKETS_PER_PAGE], number % BUCKETS_PER_PAGE)
    }

    fn bucket(&self, location: BucketLocation) -> &Bucket {
        match location {
            BucketLocation::Home(bucket) => self.home_bucket(bucket),
            BucketLocation::Spill(number) => self.spill_bucket(number),
        }
    }

    fn bucket_mut(&mut self, location: BucketLocation) -> &mut Bucket {
        let (pages, number) = match location {
            BucketLocation::Home(bucket) => (&mut self.home, bucket),
            BucketLocation::Spill(number) => (&mut self.spill, number as usize),
        };
        let offset = number % BUCKETS_PER_PAGE * BUCKET_BYTES;
        let page = &mut pages[number / BUCKETS_PER_PAGE];
        page[offset..].first_chunk_mut().expect("a bucket lies within its page")
    }

    fn take_spill(&mut self) -> u32 {
        let number = match self.spill_free {
            NO_BUCKET => {
                require!(
                    (self.spill_fresh as usize) < self.spill.len() * BUCKETS_PER_PAGE,
                    "room for a spill bucket was reserved"
                );
                self.spill_fresh += 1;
                self.spill_fresh - 1
            }
            number => {
                self.spill_free = link_of(self.spill_bucket(number));
                number
            }
        };
        self.bucket_mut(BucketLocation::Spill(number)).fill(0);
        number
    }

    fn free_spill(&mut self, number: u32) {
        let next = self.spill_free;
        set_link(self.bucket_mut(BucketLocation::Spill(number)), next);
        self.spill_free = number;
    }

    fn empty_page(&self, need: MemoryNeed) -> Result<Page, OutOfMemory> {
        let mut page = self.pool.take(PageKind::HashIndex, need)?;
        page.fill(0);
        Ok(page)
    }
}

#[inline]
fn bucket_in(page: &Page, bucket: usize) -> &Bucket {
    page[bucket * BUCKET_BYTES..].first_chunk().expect("a bucket lies within its page")
}

/// A bit for each slot in use that has this hash.
#[inline(always)]
fn slots_with(bucket: &Bucket, hash: u32) -> u32 {
    equal_words(bucket.first_chunk().expect("a bucket has more words"), hash) & ((1 << bucket[COUNT_AT]) - 1)
}

#[inline]
fn u32_at(bucket: &Bucket, at: usize) -> u32 {
    u32::from_le_bytes(*bucket[at..].first_chunk().expect("4 bytes of a bucket"))
}

#[inline]
fn hash_at(bucket: &Bucket, slot: usize) -> u32 {
    u32_at(bucket, slot * 4)
}

#[inline]
fn row_at(bucket: &Bucket, slot: usize) -> u32 {
    u32_at(bucket, ROWS_AT + slot * 4)
}

#[inline]
fn link_of(bucket: &Bucket) -> u32 {
    u32_at(bucket, LINK_AT)
}

fn set_entry(bucket: &mut Bucket, slot: usize, hash: u32, row: u32) {
    bucket[slot * 4..slot * 4 + 4].copy_from_slice(&hash.to_le_bytes());
    bucket[ROWS_AT + slot * 4..ROWS_AT + slot * 4 + 4].copy_from_slice(&row.to_le_bytes());
}

fn set_link(bucket: &mut Bucket, link: u32) {
    bucket[LINK_AT..].copy_from_slice(&link.to_le_bytes());
}
