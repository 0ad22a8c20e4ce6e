//! Blocks within pages (hot path: `BlockStore::at`, 8 instructions).
//!
//! A page holds blocks of one size class. A class has `32 KiB / k` bytes, so nothing is lost at the end of a
//! page. Neighbouring classes differ by at most 1/32 (where 32 KiB / k allows it), so about 1.5 per cent is
//! lost inside a block. Taking and freeing a block take constant time. A page returns to the pool when its
//! last block is freed.

use std::sync::Arc;

use crate::invariant::require;

use super::pool::{MemoryNeed, OutOfMemory, PAGE_BYTES, Page, PageKind, PagePool};

/// Bytes of the largest block.
pub const BLOCK_BYTES_MAX: usize = PAGE_BYTES;

const BLOCK_BYTES_MIN: usize = 24;
const CLASS_COUNT: usize = class_count();
const CLASS_BYTES: [u16; CLASS_COUNT] = class_bytes();
const CLASS_OF_UNITS: [u8; PAGE_BYTES / 8 + 1] = class_of_units();
const CLASS_BLOCKS: [u16; CLASS_COUNT] = class_blocks();
const NO_PAGE: u32 = u32::MAX;
const NO_BLOCK: u16 = u16::MAX;
/// If a store has fewer pages than this, it uses a block of up to twice the size before it takes a page for a
/// new size class. Otherwise a small table with rows of many sizes would need a page for each size.
const SMALL_STORE_PAGES: usize = 16;

const fn next_block_count(count: usize) -> usize {
    count + 1 + count / 32
}

const fn class_count() -> usize {
    let (mut classes, mut count) = (0, 1);
    while PAGE_BYTES / count >= BLOCK_BYTES_MIN {
        classes += 1;
        count = next_block_count(count);
    }
    classes
}

/// Block bytes by class, ascending. 32,768 does not fit in a u16 and is stored as 32,760.
const fn class_bytes() -> [u16; CLASS_COUNT] {
    let mut bytes = [0; CLASS_COUNT];
    let (mut class, mut count) = (CLASS_COUNT, 1);
    while class > 0 {
        class -= 1;
        let block = (PAGE_BYTES / count) & !7;
        bytes[class] = if block == PAGE_BYTES { (PAGE_BYTES - 8) as u16 } else { block as u16 };
        count = next_block_count(count);
    }
    bytes
}

const fn class_of_units() -> [u8; PAGE_BYTES / 8 + 1] {
    let mut classes = [0; PAGE_BYTES / 8 + 1];
    let (mut units, mut class) = (0, 0);
    while units < classes.len() {
        while class + 1 < CLASS_COUNT && (CLASS_BYTES[class] as usize) < units * 8 {
            class += 1;
        }
        classes[units] = class as u8;
        units += 1;
    }
    classes
}

const fn class_blocks() -> [u16; CLASS_COUNT] {
    let mut blocks = [0; CLASS_COUNT];
    let mut class = 0;
    while class < CLASS_COUNT {
        blocks[class] = (PAGE_BYTES / CLASS_BYTES[class] as usize) as u16;
        class += 1;
    }
    blocks
}

const _: () = assert!(CLASS_COUNT < 256);

/// The location of a block: the page's index within its store, and the offset in units of 8 bytes; 40 bits in
/// total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location(u64);

impl Location {
    /// No block.
    pub const NONE: Location = Location((1 << Location::BITS) - 1);
    /// Number of bits of a location.
    pub const BITS: u32 = 40;

    const PAGES_MAX: usize = (1 << 28) - 1;

    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Location {
        Location(bits & ((1 << Location::BITS) - 1))
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self == Location::NONE
    }

    #[inline]
    pub(crate) fn new(page: usize, offset: usize) -> Location {
        Location(((page as u64) << 12) | (offset as u64 / 8))
    }

    #[inline]
    pub(crate) fn page(self) -> usize {
        (self.0 >> 12) as usize
    }

    #[inline]
    pub(crate) fn offset(self) -> usize {
        (self.0 & 0xFFF) as usize * 8
    }
}

#[derive(Clone, Copy, Debug)]
struct PageState {
    class: u8,
    /// Number of blocks in use.
    used: u16,
    /// Blocks from this one on have not been used since the page was taken.
    fresh: u16,
    /// The first freed block, in units of 8 bytes. Each freed block begins with the next one.
    free: u16,
    previous: u32,
    next: u32,
    /// Whether the page is being emptied. It is then in no list, and its free blocks are not counted.
    is_draining: bool,
}

#[derive(Clone, Copy, Debug)]
struct ClassState {
    /// The first page with free blocks.
    first: u32,
    free_blocks: u32,
}

/// The blocks of one structure of one partition.
#[derive(Debug)]
pub struct BlockStore {
    pages: Vec<Option<Page>>,
    states: Vec<PageState>,
    empty_slots: Vec<u32>,
    /// Empty until the first page is taken, so that an empty partition uses no memory.
    classes: Vec<ClassState>,
    page_count: usize,
    kind: PageKind,
    pool: Arc<PagePool>,
}

impl BlockStore {
    /// An empty store that takes its pages from `pool`.
    pub fn new(pool: Arc<PagePool>, kind: PageKind) -> BlockStore {
        BlockStore {
            pages: Vec::new(),
            states: Vec::new(),
            empty_slots: Vec::new(),
            classes: Vec::new(),
            page_count: 0,
            kind,
            pool,
        }
    }

    /// The bytes from the block to the end of its page. The block must be in use.
    #[inline]
    pub(crate) fn at(&self, location: Location) -> &[u8] {
        let page = self.pages[location.page()].as_ref().expect("a location names a page in use");
        &page[location.offset()..]
    }

    /// The bytes from the block to the end of its page, for writing. The block must be in use.
    #[inline]
    pub(crate) fn at_mut(&mut self, location: Location) -> &mut [u8] {
        let page = self.pages[location.page()].as_mut().expect("a location names a page in use");
        &mut page[location.offset()..]
    }

    /// Prefetches the first cache line of a block.
    #[inline]
    pub(crate) fn prefetch(&self, location: Location) {
        if let Some(Some(page)) = self.pages.get(location.page()) {
            page.prefetch(location.offset());
        }
    }

    /// Takes a block of at least `bytes` bytes, at most `BLOCK_BYTES_MAX - 8`. Its contents are undefined.
    pub(crate) fn allocate(&mut self, bytes: usize, need: MemoryNeed) -> Result<Location, OutOfMemory> {
        require!(bytes <= BLOCK_BYTES_MAX - 8, "a block of {bytes} bytes fits in a page");
        let class = self.class_with_room(bytes, need)?;
        Ok(self.take_block(class))
    }

    /// Takes a block of a class that has a page with free blocks.
    #[inline]
    fn take_block(&mut self, class: usize) -> Location {
        let page_number = self.classes[class].first as usize;
        let block_bytes = usize::from(CLASS_BYTES[class]);
        let page = self.pages[page_number].as_mut().expect("a page with room is in use");
        let state = &mut self.states[page_number];
        let offset = if state.free != NO_BLOCK {
            let offset = usize::from(state.free) * 8;
            state.free = u16::from_le_bytes([page[offset], page[offset + 1]]);
            offset
        } else {
            state.fresh += 1;
            usize::from(state.fresh - 1) * block_bytes
        };
        require!(
            usize::from(state.class) == class && usize::from(state.used) < blocks_per_page(class),
            "a page in the list of class {class} has that class and a free block"
        );
        state.used += 1;
        self.classes[class].free_blocks -= 1;
        if usize::from(state.used) == blocks_per_page(class) {
            self.unlink(page_number);
        }
        Location::new(page_number, offset)
    }

    /// Ensures that the next `count` allocations of `bytes` bytes succeed.
    pub(crate) fn reserve(&mut self, bytes: usize, count: usize, need: MemoryNeed) -> Result<(), OutOfMemory> {
        while self.free_blocks(bytes) < count {
            self.add_page(class_of(bytes), need)?;
        }
        Ok(())
    }

    /// Number of blocks of the size class of `bytes` that need no new page.
    #[inline]
    pub(crate) fn free_blocks(&self, bytes: usize) -> usize {
        self.classes.get(class_of(bytes)).map_or(0, |state| state.free_blocks as usize)
    }

    /// Frees a block.
    pub(crate) fn free(&mut self, location: Location) {
        let page_number = location.page();
        let page = self.pages[page_number].as_mut().expect("a location names a page in use");
        let state = &mut self.states[page_number];
        let class = usize::from(state.class);
        let was_full = usize::from(state.used) == blocks_per_page(class);
        let offset = location.offset();
        require!(
            state.used > 0 && offset < usize::from(state.fresh) * usize::from(CLASS_BYTES[class]),
            "a block at {offset} of page {page_number} that is freed was taken"
        );
        require!(usize::from(state.free) != offset / 8, "a block at {offset} of page {page_number} is freed once");
        state.used -= 1;
        page[offset..offset + 2].copy_from_slice(&state.free.to_le_bytes());
        state.free = (offset / 8) as u16;
        let (is_empty, is_draining) = (state.used == 0, state.is_draining);
        if !is_draining {
            self.classes[class].free_blocks += 1;
            if was_full {
                self.link(page_number);
            }
        }
        // Even while it is being emptied, since that is what emptying is for.
        if is_empty {
            self.remove_page(page_number);
        }
    }

    /// Returns pages without blocks in use to the pool. A reservation can leave such pages behind.
    pub(crate) fn trim(&mut self) {
        for page_number in 0..self.pages.len() {
            if self.pages[page_number].is_some() && self.states[page_number].used == 0 {
                self.remove_page(page_number);
            }
        }
    }

    /// Searches `budget` pages from index `from` on for a sparse page: at most half full, with blocks that
    /// fit in other pages of its class without filling those. The second value is the index to continue with;
    /// `None` after the last page.
    pub(crate) fn find_sparse_page(&self, from: usize, budget: usize) -> (Option<usize>, Option<usize>) {
        let end = self.pages.len().min(from.saturating_add(budget));
        let is_sparse = |number: &usize| {
            let state = self.states[*number];
            let (used, all) = (usize::from(state.used), blocks_per_page(usize::from(state.class)));
            let free_elsewhere =
                (self.classes[usize::from(state.class)].free_blocks as usize).saturating_sub(all - used);
            // Requires twice the needed number of free blocks. Otherwise moving the blocks would fill other
            // pages and make new ones necessary.
            let is_in_use = self.pages[*number].is_some() && used > 0 && !state.is_draining;
            is_in_use && used * 2 <= all && free_elsewhere >= used * 2
        };
        let found = (from..end).find(is_sparse);
        (found, (end < self.pages.len()).then_some(end))
    }

    /// Begins to empty a page: no new block is taken from it.
    pub(crate) fn begin_drain(&mut self, page_number: usize) {
        let PageState { class, used, is_draining, .. } = self.states[page_number];
        require!(!is_draining && used > 0, "page {page_number} has blocks and is not being emptied already");
        self.unlink(page_number);
        self.classes[usize::from(class)].free_blocks -= blocks_per_page(usize::from(class)) as u32 - u32::from(used);
        self.states[page_number].is_draining = true;
    }

    /// Ends the emptying of a page that still has blocks. New blocks may then be taken from it again.
    pub(crate) fn end_drain(&mut self, page_number: usize) {
        let PageState { class, used, is_draining, .. } = self.states[page_number];
        require!(is_draining, "page {page_number} is being emptied when that ends");
        self.states[page_number].is_draining = false;
        self.classes[usize::from(class)].free_blocks += blocks_per_page(usize::from(class)) as u32 - u32::from(used);
        self.link(page_number);
    }

    /// Whether a page is being emptied and still exists.
    pub(crate) fn is_draining(&self, page_number: usize) -> bool {
        self.states.get(page_number).is_some_and(|state| state.is_draining)
            && self.pages.get(page_number).is_some_and(Option::is_some)
    }

    /// Appends the locations of a page's blocks in use.
    pub(crate) fn blocks_in(&self, page_number: usize, out: &mut Vec<Location>) {
        let Some(page) = &self.pages[page_number] else { return };
        let state = self.states[page_number];
        let block_bytes = usize::from(CLASS_BYTES[usize::from(state.class)]);
        // Freed blocks are linked in no order; the bit map gives the blocks in use in one pass.
        let mut is_free = [0u64; (PAGE_BYTES / BLOCK_BYTES_MIN).div_ceil(64)];
        let mut block = state.free;
        while block != NO_BLOCK {
            let offset = usize::from(block) * 8;
            is_free[offset / block_bytes / 64] |= 1 << (offset / block_bytes % 64);
            block = u16::from_le_bytes([page[offset], page[offset + 1]]);
        }
        let used = (0..usize::from(state.fresh)).filter(|block| is_free[block / 64] & (1 << (block % 64)) == 0);
        out.extend(used.map(|block| Location::new(page_number, block * block_bytes)));
    }

    /// Moves a block out of a page that is being emptied to another page of its class, and frees the old
    /// block. `None` if no other page has a free block.
    pub(crate) fn move_block(&mut self, from: Location) -> Option<Location> {
        // A page that is being emptied is in no list, so the new block cannot be in it.
        require!(self.states[from.page()].is_draining, "blocks move only out of a page that is being emptied");
        let class = usize::from(self.states[from.page()].class);
        if self.classes[class].first == NO_PAGE {
            return None;
        }
        let to = self.take_block(class);
        let Ok([Some(source), Some(target)]) = self.pages.get_disjoint_mut([from.page(), to.page()]) else {
            unreachable!("a block moves between two pages in use");
        };
        let bytes = usize::from(CLASS_BYTES[class]);
        target[to.offset()..to.offset() + bytes].copy_from_slice(&source[from.offset()..from.offset() + bytes]);
        self.free(from);
        Some(to)
    }

    /// Bytes of the pages in use.
    pub fn bytes(&self) -> u64 {
        self.page_count as u64 * PAGE_BYTES as u64
    }

    /// Number of blocks in use, counted page by page, for checks.
    pub(crate) fn used_blocks(&self) -> usize {
        let in_use = self.pages.iter().zip(&self.states).filter(|(page, _)| page.is_some());
        in_use.map(|(_, state)| usize::from(state.used)).sum()
    }

    /// Verifies the lists of pages and of freed blocks.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut free_blocks = vec![0usize; self.classes.len()];
        for (number, (page, state)) in self.pages.iter().zip(&self.states).enumerate() {
            let Some(page) = page else { continue };
            let (mut freed, mut block) = (0, state.free);
            while block != NO_BLOCK {
                freed += 1;
                if freed > blocks_per_page(usize::from(state.class)) {
                    return Err(format!("page {number}: the list of freed blocks has a ring"));
                }
                let offset = usize::from(block) * 8;
                block = u16::from_le_bytes([page[offset], page[offset + 1]]);
            }
            if usize::from(state.used) + freed != usize::from(state.fresh) {
                return Err(format!("page {number}: {} used and {freed} freed of {} blocks", state.used, state.fresh));
            }
            free_blocks[usize::from(state.class)] +=
                blocks_per_page(usize::from(state.class)) - usize::from(state.used);
        }
        for (class, state) in self.classes.iter().enumerate() {
            if state.free_blocks as usize != free_blocks[class] {
                return Err(format!(
                    "class {class}: {} free blocks, counted {}",
                    state.free_blocks, free_blocks[class]
                ));
            }
        }
        Ok(())
    }

    /// Finds a class for a block of `bytes` that has at least one page with a free block.
    #[inline]
    fn class_with_room(&mut self, bytes: usize, need: MemoryNeed) -> Result<usize, OutOfMemory> {
        let class = class_of(bytes);
        if self.classes.get(class).is_some_and(|state| state.first != NO_PAGE) {
            return Ok(class);
        }
        let wider = |store: &BlockStore| {
            let is_near = |candidate: &usize| usize::from(CLASS_BYTES[*candidate]) <= bytes.max(32) * 2;
            let mut candidates = (class + 1..store.classes.len()).take_while(is_near);
            candidates.find(|candidate| store.classes[*candidate].first != NO_PAGE)
        };
        if self.page_count < SMALL_STORE_PAGES
            && let Some(wider) = wider(self)
        {
            return Ok(wider);
        }
        // Without a free page, a wider block is better than a refused statement.
        match self.add_page(class, need) {
            Ok(()) => Ok(class),
            Err(OutOfMemory) => wider(self).ok_or(OutOfMemory),
        }
    }

    #[cold]
    fn add_page(&mut self, class: usize, need: MemoryNeed) -> Result<(), OutOfMemory> {
        if self.pages.len() >= Location::PAGES_MAX && self.empty_slots.is_empty() {
            return Err(OutOfMemory);
        }
        let page = self.pool.take(self.kind, need)?;
        if self.classes.is_empty() {
            self.classes = vec![ClassState { first: NO_PAGE, free_blocks: 0 }; CLASS_COUNT];
        }
        let state = PageState {
            class: class as u8,
            used: 0,
            fresh: 0,
            free: NO_BLOCK,
            previous: NO_PAGE,
            next: NO_PAGE,
            is_draining: false,
        };
        let page_number = match self.empty_slots.pop() {
            Some(slot) => {
                self.pages[slot as usize] = Some(page);
                self.states[slot as usize] = state;
                slot as usize
            }
            None => {
                self.pages.push(Some(page));
                self.states.push(state);
                self.pages.len() - 1
            }
        };
        self.page_count += 1;
        self.classes[class].free_blocks += blocks_per_page(class) as u32;
        self.link(page_number);
        Ok(())
    }

    #[cold]
    fn remove_page(&mut self, page_number: usize) {
        require!(self.states[page_number].used == 0, "page {page_number} goes back to the pool with no block in use");
        if !self.states[page_number].is_draining {
            self.unlink(page_number);
            let class = usize::from(self.states[page_number].class);
            self.classes[class].free_blocks -= blocks_per_page(class) as u32;
        }
        self.pages[page_number] = None;
        self.page_count -= 1;
        self.empty_slots.push(page_number as u32);
        if self.page_count == 0 {
            // An empty store has no page indexes to preserve, so the tables are freed too.
            self.pages = Vec::new();
            self.states = Vec::new();
            self.empty_slots = Vec::new();
        }
    }

    fn link(&mut self, page_number: usize) {
        let class = usize::from(self.states[page_number].class);
        let first = self.classes[class].first;
        self.states[page_number].previous = NO_PAGE;
        self.states[page_number].next = first;
        if first != NO_PAGE {
            self.states[first as usize].previous = page_number as u32;
        }
        self.classes[class].first = page_number as u32;
    }

    fn unlink(&mut self, page_number: usize) {
        let PageState { class, previous, next, .. } = self.states[page_number];
        match previous {
            NO_PAGE => {
                let first = self.classes[usize::from(class)].first;
                require!(first as usize == page_number, "page {page_number}, which is first of its list, is in it");
                self.classes[usize::from(class)].first = next;
            }
            previous => self.states[previous as usize].next = next,
        }
        if next != NO_PAGE {
            self.states[next as usize].previous = previous;
        }
    }
}

#[inline]
fn class_of(bytes: usize) -> usize {
    usize::from(CLASS_OF_UNITS[bytes.div_ceil(8)])
}

#[inline]
fn blocks_per_page(class: usize) -> usize {
    usize::from(CLASS_BLOCKS[class])
}
