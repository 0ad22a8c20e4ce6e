//! The map from row ids to newest versions (hot path: `RowMap::get`, 10 instructions).
//!
//! An entry takes eight bytes in a page. An entry in use holds a location. A free entry has bit 63 set and
//! links to its neighbours in the list of free ids. The list is doubly linked because a backup must take the
//! id that its primary chose, wherever that id is in the list.

use std::sync::Arc;

use junctor_model::id::RowId;
use junctor_model::planted_bug::PlantedBug;

use crate::checkpoint::{ROWS_PER_CELL, ROWS_PER_PAGE};
use crate::invariant::require;
use crate::page::{Location, MemoryNeed, OutOfMemory, PAGE_BYTES, Page, PageKind, PagePool};

/// Maximum number of rows in a partition. Beyond it, an insert gets `OutOfMemory`.
pub const ROWS_PER_PARTITION_MAX: u32 = (1 << 31) - 2;

const ENTRIES_PER_PAGE: usize = PAGE_BYTES / 8;
const CELLS_PER_PAGE: u32 = ROWS_PER_PAGE / ROWS_PER_CELL;
const _: () = assert!(ENTRIES_PER_PAGE == ROWS_PER_PAGE as usize && CELLS_PER_PAGE == u64::BITS);
const FREE: u64 = 1 << 63;
/// `FREE` in the last byte of an entry.
const FREE_BYTE: u8 = 1 << 7;
const NO_ROW: u32 = (1 << 31) - 1;

/// The row ids of one partition and the locations of their newest versions.
#[derive(Debug)]
pub struct RowMap {
    pages: Vec<Page>,
    /// Ids from this one on were never used.
    fresh: u32,
    first_free: u32,
    used: u32,
    /// For each page a bit for each cell in which a version was made since a checkpoint round began. Marks
    /// outlive their pages, because a page that is gone must still be written as empty.
    touched: Vec<u64>,
    pool: Arc<PagePool>,
}

impl RowMap {
    /// A map without rows.
    pub fn new(pool: Arc<PagePool>) -> RowMap {
        RowMap { pages: Vec::new(), fresh: 0, first_free: NO_ROW, used: 0, touched: Vec::new(), pool }
    }

    /// Marks the row's cell for the next checkpoint round.
    #[inline]
    pub(crate) fn touch(&mut self, row: RowId) {
        let cell = row.0 / ROWS_PER_CELL;
        let Some(cells) = self.touched.get_mut(row.0 as usize / ENTRIES_PER_PAGE) else {
            // A missed mark would lose the row from checkpoints.
            crate::invariant::fail("a row that is written is in a page with marks", format_args!("row {row}"))
        };
        *cells |= 1 << (cell % CELLS_PER_PAGE);
    }

    /// The marks of each page.
    pub(crate) fn touched_mut(&mut self) -> &mut [u64] {
        &mut self.touched
    }

    /// Number of cells that are marked as touched.
    pub(crate) fn touched_cells(&self) -> u64 {
        self.touched.iter().map(|cells| u64::from(cells.count_ones())).sum()
    }

    /// Number of ids of a page that are in use.
    pub(crate) fn used_in_page(&self, page: usize) -> u32 {
        let Some(page) = self.pages.get(page) else { return 0 };
        page.chunks_exact(8).map(|entry| u32::from(entry[7] & FREE_BYTE == 0)).sum()
    }

    /// The location of a row's newest version; `Location::NONE` if no row has the id.
    #[inline]
    pub(crate) fn get(&self, row: RowId) -> Location {
        let index = row.0 as usize;
        let Some(page) = self.pages.get(index / ENTRIES_PER_PAGE) else { return Location::NONE };
        let offset = index % ENTRIES_PER_PAGE * 8;
        let entry = u64::from_le_bytes(page[offset..offset + 8].try_into().expect("8 bytes"));
        if entry & FREE != 0 { Location::NONE } else { Location::from_bits(entry) }
    }

    /// Prefetches a row's entry.
    #[inline]
    pub(crate) fn prefetch(&self, row: RowId) {
        let index = row.0 as usize;
        if let Some(page) = self.pages.get(index / ENTRIES_PER_PAGE) {
            page.prefetch(index % ENTRIES_PER_PAGE * 8);
        }
    }

    /// Ensures that the next `allocate` succeeds.
    pub(crate) fn reserve(&mut self, need: MemoryNeed) -> Result<(), OutOfMemory> {
        if self.first_free != NO_ROW || (self.fresh as usize) < self.pages.len() * ENTRIES_PER_PAGE {
            return Ok(());
        }
        if self.fresh >= ROWS_PER_PARTITION_MAX {
            return Err(OutOfMemory);
        }
        self.add_page(need)
    }

    /// Ensures that the next `allocate_at(row)` succeeds.
    pub(crate) fn reserve_at(&mut self, row: RowId, need: MemoryNeed) -> Result<(), OutOfMemory> {
        if row.0 >= ROWS_PER_PARTITION_MAX {
            return Err(OutOfMemory);
        }
        while self.pages.len() <= row.0 as usize / ENTRIES_PER_PAGE {
            self.add_page(need)?;
        }
        Ok(())
    }

    /// The id that the next `allocate` will return.
    pub(crate) fn next(&self) -> RowId {
        RowId(if self.first_free == NO_ROW { self.fresh } else { self.first_free })
    }

    /// Takes a free id. The caller has reserved memory for it.
    pub(crate) fn allocate(&mut self, location: Location) -> RowId {
        let row = match self.first_free {
            NO_ROW => {
                require!(self.fresh < ROWS_PER_PARTITION_MAX, "room for a row id was reserved");
                self.fresh += 1;
                RowId(self.fresh - 1)
            }
            first => {
                self.unlink(RowId(first));
                RowId(first)
            }
        };
        self.used += 1;
        self.write(row, location.bits());
        row
    }

    /// Takes the given id, which must be free. The caller has reserved memory for it.
    pub(crate) fn allocate_at(&mut self, row: RowId, location: Location) {
        while self.fresh <= row.0 {
            self.fresh += 1;
            // Ids that are skipped join the free list.
            self.link(RowId(self.fresh - 1));
        }
        self.unlink(row);
        self.used += 1;
        self.write(row, location.bits());
    }

    pub(crate) fn set(&mut self, row: RowId, location: Location) {
        let entry = self.entry_mut(row);
        require!(entry[7] & FREE_BYTE == 0, "row id {row} is in use while its row has versions");
        *entry = location.bits().to_le_bytes();
    }

    /// Frees the id of a row that has no version left.
    pub(crate) fn free(&mut self, row: RowId) {
        require!(
            self.entry(row) == Location::NONE.bits(),
            "row id {row} is in use and has no version when it is freed"
        );
        require!(self.used > 0, "a row id that is freed was counted as used");
        self.used -= 1;
        if self.used == 0 {
            // Without rows every id is free, so neither the list of free ids nor the pages are needed.
            self.pages = Vec::new();
            self.fresh = 0;
            self.first_free = NO_ROW;
            if PlantedBug::ForgetEmptiedTables.is_planted() {
                self.touched.fill(0);
            }
            return;
        }
        self.link(row);
    }

    /// Sets the location of a row's version during replay, whether or not the id is in use. Returns the
    /// location before. The caller has called `reserve_at`. From here on, the list of free ids is invalid
    /// until `relink_step` has reached its end.
    pub(crate) fn replay_set(&mut self, row: RowId, location: Location) -> Location {
        let before = self.get(row);
        self.used += u32::from(before.is_none());
        self.fresh = self.fresh.max(row.0 + 1);
        self.write(row, location.bits());
        before
    }

    /// Frees an id in use during replay. Keeps the pages even if no row is left, because replay soon needs
    /// them again.
    pub(crate) fn replay_free(&mut self, row: RowId) {
        require!(!self.get(row).is_none(), "a row id that replay frees is in use");
        self.used -= 1;
        self.write(row, FREE);
    }

    /// Links the free ids after replay: examines `budget` ids below `limit`, from the highest to the lowest,
    /// so that the lowest free id is used first. The first call has no limit. Returns the limit of the next
    /// call; `None` at the end.
    pub(crate) fn relink_step(&mut self, limit: Option<RowId>, budget: usize) -> Option<RowId> {
        let limit = limit.map_or(self.fresh, |limit| limit.0);
        if limit == self.fresh {
            self.first_free = NO_ROW;
        }
        let stop = limit.saturating_sub(u32::try_from(budget).unwrap_or(u32::MAX));
        for row in (stop..limit).rev().map(RowId) {
            if self.entry(row) & FREE == 0 {
                continue;
            }
            match row.0 + 1 == self.fresh {
                // Nothing above the id is in use, so it counts as never used.
                true => self.fresh = row.0,
                false => self.link(row),
            }
        }
        if stop > 0 {
            return Some(RowId(stop));
        }
        self.pages.truncate((self.fresh as usize).div_ceil(ENTRIES_PER_PAGE));
        None
    }

    /// Number of ids in use.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// One past the largest id in use.
    pub fn end(&self) -> RowId {
        RowId(self.fresh)
    }

    /// Bytes of the pages in use.
    pub fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES as u64
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let (mut free, mut row, mut previous) = (0u32, self.first_free, NO_ROW);
        while row != NO_ROW {
            let entry = self.entry(RowId(row));
            if entry & FREE == 0 || previous_of(entry) != previous || free > self.fresh {
                return Err(format!("row id {row}: the list of free ids is broken"));
            }
            free += 1;
            previous = row;
            row = next_of(entry);
        }
        if free + self.used != self.fresh {
            return Err(format!("{free} free and {} used row ids of {}", self.used, self.fresh));
        }
        Ok(())
    }

    fn add_page(&mut self, need: MemoryNeed) -> Result<(), OutOfMemory> {
        let mut page = self.pool.take(PageKind::RowMap, need)?;
        // A reader may look up an id that was never used. Its entry must look free.
        for entry in page.chunks_exact_mut(8) {
            entry.copy_from_slice(&FREE.to_le_bytes());
        }
        self.pages.push(page);
        if self.touched.len() < self.pages.len() {
            self.touched.push(0);
        }
        Ok(())
    }

    fn link(&mut self, row: RowId) {
        let next = self.first_free;
        self.write(row, free_entry(NO_ROW, next));
        if next != NO_ROW {
            let after = next_of(self.entry(RowId(next)));
            self.write(RowId(next), free_entry(row.0, after));
        }
        self.first_free = row.0;
    }

    fn unlink(&mut self, row: RowId) {
        let entry = self.entry(row);
        require!(entry & FREE != 0, "row id {row} is free when it is given to a row");
        let (previous, next) = (previous_of(entry), next_of(entry));
        match previous {
            NO_ROW => self.first_free = next,
            previous => {
                let before = previous_of(self.entry(RowId(previous)));
                self.write(RowId(previous), free_entry(before, next));
            }
        }
        if next != NO_ROW {
            let after = next_of(self.entry(RowId(next)));
            self.write(RowId(next), free_entry(previous, after));
        }
    }

    fn entry(&self, row: RowId) -> u64 {
        let page = &self.pages[row.0 as usize / ENTRIES_PER_PAGE];
        let offset = row.0 as usize % ENTRIES_PER_PAGE * 8;
        u64::from_le_bytes(page[offset..offset + 8].try_into().expect("8 bytes"))
    }

    fn write(&mut self, row: RowId, entry: u64) {
        *self.entry_mut(row) = entry.to_le_bytes();
    }

    #[inline]
    fn entry_mut(&mut self, row: RowId) -> &mut [u8; 8] {
        let page = &mut self.pages[row.0 as usize / ENTRIES_PER_PAGE];
        let offset = row.0 as usize % ENTRIES_PER_PAGE * 8;
        page[offset..].first_chunk_mut().expect("an entry lies within its page")
    }
}

fn free_entry(previous: u32, next: u32) -> u64 {
    FREE | u64::from(previous) << 31 | u64::from(next)
}

fn previous_of(entry: u64) -> u32 {
    (entry >> 31) as u32 & NO_ROW
}

fn next_of(entry: u64) -> u32 {
    entry as u32 & NO_ROW
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a row that is written is in a page with marks")]
    fn a_write_outside_of_all_pages_is_found() {
        let pool = PagePool::new(16 * PAGE_BYTES).expect("address space");
        RowMap::new(pool).touch(RowId(0));
    }
}
