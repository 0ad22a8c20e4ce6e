//! The page pool of a node. It reserves `TotalMemory` bytes of address space once, and hands them out in
//! pages of 32 KiB.
//!
//! A page belongs to one structure at a time and returns to one free list, so memory of deleted rows becomes
//! available to every table. The lock is taken once per page, which is once per few hundred rows.
//!
//! Invariants of the unsafe code: the mapping lives as long as the pool, and every page keeps the pool alive.
//! A page number is in one of three states: it was never handed out, it is in the free list, or it belongs to
//! exactly one `Page`, and only that `Page` gives access to the bytes.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use junctor_model::error::{Error, ErrorCode};

use crate::invariant::require;

/// Bytes of one page.
pub const PAGE_BYTES: usize = 32 * 1024;

/// Number of page kinds.
pub const PAGE_KINDS: usize = 5;

/// The use of a page, for the memory status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Row versions.
    Rows,
    /// The map from row ids to locations.
    RowMap,
    /// Hash index buckets.
    HashIndex,
    /// Ordered index nodes.
    OrderedIndex,
    /// Long values.
    Overflow,
}

impl PageKind {
    /// Every kind, in the order of the memory status.
    pub const ALL: [PageKind; PAGE_KINDS] =
        [PageKind::Rows, PageKind::RowMap, PageKind::HashIndex, PageKind::OrderedIndex, PageKind::Overflow];

    /// The name in status tables.
    pub fn name(self) -> &'static str {
        match self {
            PageKind::Rows => "rows",
            PageKind::RowMap => "row_map",
            PageKind::HashIndex => "hash_index",
            PageKind::OrderedIndex => "ordered_index",
            PageKind::Overflow => "overflow",
        }
    }
}

/// Whether a request for memory may use the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryNeed {
    /// No: the statement can fail with error 1114.
    Growth,
    /// Yes: the work eventually frees memory, as a delete does.
    Release,
}

/// The page pool is exhausted. The statement fails with error 1114 and has no other effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl OutOfMemory {
    /// Error 1114 for the user.
    #[cold]
    pub fn to_error(self, table: &str) -> Box<Error> {
        Error::new(ErrorCode::TableFull, format!("The table '{table}' is full"))
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the data memory is exhausted")
    }
}

impl std::error::Error for OutOfMemory {}

/// The memory of all rows and indexes of a node.
pub struct PagePool {
    start: NonNull<u8>,
    page_count: u32,
    reserve_pages: u32,
    state: Mutex<PoolState>,
}

struct PoolState {
    /// Pages from this number on were never handed out and are not yet backed by memory.
    fresh: u32,
    /// Returned pages. The last one is the most likely to be in the cache, and is handed out first.
    free: Vec<u32>,
    /// Number of pages in use, by kind.
    used: [u32; PAGE_KINDS],
}

// SAFETY: the pool alone owns the mapping. A page of it is reachable only through the one `Page` that was
// handed out for its number, and the state behind the mutex is the only source of numbers.
unsafe impl Send for PagePool {}
// SAFETY: as above; all shared state of the pool itself is behind the mutex.
unsafe impl Sync for PagePool {}

impl PagePool {
    /// Reserves `total_bytes` of address space, rounded down to pages and at least 8 pages, without touching
    /// it.
    ///
    /// # Errors
    /// The operating system's, if it refuses the reservation.
    pub fn new(total_bytes: usize) -> io::Result<Arc<PagePool>> {
        let page_count = u32::try_from(total_bytes / PAGE_BYTES).unwrap_or(u32::MAX - 1).max(8);
        let bytes = page_count as usize * PAGE_BYTES;
        // SAFETY: a new private anonymous mapping at an address that the kernel chooses replaces nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        // A refusal of huge pages is not an error: they only improve speed.
        // SAFETY: the range is exactly the mapping made above, and the advice does not change its contents.
        let _ = unsafe { madvise(start, bytes, Advice::LinuxHugepage) };
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let state = PoolState { fresh: 0, free: Vec::new(), used: [0; PAGE_KINDS] };
        let reserve_pages = (page_count / 64).clamp(2, 256);
        Ok(Arc::new(PagePool { start, page_count, reserve_pages, state: Mutex::new(state) }))
    }

    /// Takes one page. Its contents are undefined.
    pub fn take(self: &Arc<Self>, kind: PageKind, need: MemoryNeed) -> Result<Page, OutOfMemory> {
        let number = {
            let mut state = self.state();
            let available = state.free.len() as u32 + (self.page_count - state.fresh);
            let kept = if need == MemoryNeed::Growth { self.reserve_pages } else { 0 };
            if available <= kept {
                return Err(OutOfMemory);
            }
            state.used[kind as usize] += 1;
            match state.free.pop() {
                Some(number) => number,
                None => {
                    state.fresh += 1;
                    state.fresh - 1
                }
            }
        };
        require!(number < self.page_count, "page {number} lies within the pool of {} pages", self.page_count);
        // SAFETY: `number` is below `page_count`, so the address is inside the mapping.
        let start = unsafe { self.start.add(number as usize * PAGE_BYTES) };
        Ok(Page { start: start.cast(), kind, pool: Arc::clone(self) })
    }

    /// Bytes of all pages of the pool.
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.page_count) * PAGE_BYTES as u64
    }

    /// Bytes handed out at the moment.
    pub fn used_bytes(&self) -> u64 {
        self.state().used.iter().map(|pages| u64::from(*pages) * PAGE_BYTES as u64).sum()
    }

    /// Bytes handed out for one kind of page.
    pub fn used_bytes_of(&self, kind: PageKind) -> u64 {
        u64::from(self.state().used[kind as usize]) * PAGE_BYTES as u64
    }

    /// Bytes kept in reserve for work that frees memory.
    pub fn reserve_bytes(&self) -> u64 {
        u64::from(self.reserve_pages) * PAGE_BYTES as u64
    }

    /// Bytes that requests without access to the reserve can still get.
    pub fn available_bytes(&self) -> u64 {
        self.total_bytes().saturating_sub(self.used_bytes()).saturating_sub(self.reserve_bytes())
    }

    fn give_back(&self, start: NonNull<u8>, kind: PageKind) {
        let number = (start.as_ptr() as usize - self.start.as_ptr() as usize) / PAGE_BYTES;
        let mut state = self.state();
        require!((number as u32) < state.fresh, "page {number} comes back to the pool that handed it out");
        require!(state.used[kind as usize] > 0, "a page comes back as the kind {} that it was taken as", kind.name());
        require!(state.free.len() < state.fresh as usize, "a page comes back once");
        state.used[kind as usize] -= 1;
        state.free.push(number as u32);
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        // A panic inside the lock leaves no count half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PagePool {
    fn drop(&mut self) {
        // SAFETY: every page keeps the pool alive, so nothing can reach the mapping any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.page_count as usize * PAGE_BYTES) };
    }
}

impl fmt::Debug for PagePool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PagePool")
            .field("total_bytes", &self.total_bytes())
            .field("used_bytes", &self.used_bytes())
            .finish()
    }
}

/// One page, owned. Dropping it returns it to the pool.
pub struct Page {
    start: NonNull<[u8; PAGE_BYTES]>,
    kind: PageKind,
    pool: Arc<PagePool>,
}

// SAFETY: a page is owned bytes that no other `Page` overlaps. Like a box, it may be used from any thread.
unsafe impl Send for Page {}
// SAFETY: a shared reference gives shared access to the bytes only.
unsafe impl Sync for Page {}

impl Page {
    /// Prefetches the cache line at `offset`, which is below `PAGE_BYTES`. Has no other effect.
    #[inline]
    pub fn prefetch(&self, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let line: *const u8 = &self[offset % PAGE_BYTES];
            // SAFETY: a prefetch of any address has no effect that a program can observe.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }
}

impl Deref for Page {
    type Target = [u8; PAGE_BYTES];

    #[inline]
    fn deref(&self) -> &[u8; PAGE_BYTES] {
        // SAFETY: the page stays mapped while the pool lives, which this handle ensures. Anonymous memory is
        // initialised. No other handle of the same page exists.
        unsafe { self.start.as_ref() }
    }
}

impl DerefMut for Page {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8; PAGE_BYTES] {
        // SAFETY: as above, and the handle itself is borrowed exclusively.
        unsafe { self.start.as_mut() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.pool.give_back(self.start.cast(), self.kind);
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Page").field("kind", &self.kind).finish_non_exhaustive()
    }
}
