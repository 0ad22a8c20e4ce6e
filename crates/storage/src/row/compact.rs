//! Compaction: empties sparse pages, so that memory of deleted rows becomes available to every table.
//! Versions move to other pages of their size class. Only the row map and the next newer version refer to a
//! version, so only these change.

use junctor_model::id::RowId;

use super::store::RowStore;
use super::version::{RowVersion, write_older};
use crate::page::Location;

/// Maximum number of versions of one row that are walked to find the version that points to the one to move.
/// Deeper versions are not moved.
const WALK_MAX: usize = 256;

/// Progress of the compaction.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    /// The next page to examine.
    position: usize,
    draining: Option<usize>,
    blocks: Vec<Location>,
}

/// What points to a version: the row map, or the next newer version.
enum Referrer {
    Map,
    Version(Location),
}

impl RowStore {
    /// Moves at most `budget` versions out of sparse pages, and examines at most `budget` pages. Returns
    /// false at the end of a pass over all pages. The next call begins another pass.
    pub(crate) fn compact_step(&mut self, budget: usize) -> bool {
        let mut left = budget;
        let draining = self.compaction.draining.take().filter(|page| self.blocks.is_draining(*page));
        let page = match draining {
            Some(page) => page,
            None => {
                let (found, next) = self.blocks.find_sparse_page(self.compaction.position, budget);
                self.compaction.position = found.map_or(next.unwrap_or(0), |page| page + 1);
                let Some(page) = found else { return next.is_some() };
                self.blocks.begin_drain(page);
                page
            }
        };
        let mut blocks = std::mem::take(&mut self.compaction.blocks);
        blocks.clear();
        self.blocks.blocks_in(page, &mut blocks);
        let mut is_stuck = false;
        for location in &blocks {
            if left == 0 {
                break;
            }
            left -= 1;
            if !self.move_version(*location) {
                is_stuck = true;
                break;
            }
        }
        self.compaction.blocks = blocks;
        if is_stuck {
            // If one version cannot move, emptying the page is pointless. Its free blocks become usable
            // again.
            self.blocks.end_drain(page);
        } else {
            self.compaction.draining = Some(page);
        }
        true
    }

    /// Returns false if the version cannot move now: it is unstamped, too deep in its row's chain, or no
    /// other page has a free block.
    fn move_version(&mut self, location: Location) -> bool {
        let version = RowVersion::read(location, self.blocks.at(location));
        // The header of an unstamped version holds its statement instead of its row id, so its row is
        // unknown.
        if !version.is_stamped() {
            return false;
        }
        let row = RowId(version.row_or_statement());
        let Some(referrer) = self.referrer_of(row, location) else { return false };
        let Some(moved) = self.blocks.move_block(location) else { return false };
        match referrer {
            Referrer::Map => self.map.set(row, moved),
            Referrer::Version(referrer) => write_older(self.blocks.at_mut(referrer), moved),
        }
        true
    }

    fn referrer_of(&self, row: RowId, location: Location) -> Option<Referrer> {
        if self.map.get(row) == location {
            return Some(Referrer::Map);
        }
        let referrer = self.versions(row).take(WALK_MAX).find(|version| version.older() == location)?;
        Some(Referrer::Version(referrer.location()))
    }
}
