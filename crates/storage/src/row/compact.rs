//! Emptying sparse pages, so that memory of deleted rows serves any table. Versions are moved to other pages of their
//! size; only the map and the version above know where one is.

use junctor_model::id::RowId;

use super::store::RowStore;
use super::version::{RowVersion, write_older};
use crate::page::Location;

/// Versions of one row that are walked to find the one above the version to move.
const WALK_MAX: usize = 256;

/// Where the emptying of pages stands.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    /// The next page to look at.
    position: usize,
    draining: Option<usize>,
    blocks: Vec<Location>,
}

enum Above {
    Map,
    Version(Location),
}

impl RowStore {
    /// Moves at most `budget` versions out of sparse pages, looking at as many pages. False at the end of a pass over
    /// all pages; the next call begins another.
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
            self.blocks.end_drain(page);
        } else {
            self.compaction.draining = Some(page);
        }
        true
    }

    /// False when the version cannot be moved now: it is not committed, or too deep below its row, or there is no room.
    fn move_version(&mut self, location: Location) -> bool {
        let version = RowVersion::read(location, self.blocks.at(location));
        if !version.is_committed() {
            return false;
        }
        let row = RowId(version.owner());
        let Some(above) = self.above(row, location) else { return false };
        let Some(moved) = self.blocks.move_block(location) else { return false };
        match above {
            Above::Map => self.map.set(row, moved),
            Above::Version(above) => write_older(self.blocks.at_mut(above), moved),
        }
        true
    }

    fn above(&self, row: RowId, location: Location) -> Option<Above> {
        if self.map.get(row) == location {
            return Some(Above::Map);
        }
        let above = self.versions(row).take(WALK_MAX).find(|version| version.older() == location)?;
        Some(Above::Version(above.location()))
    }
}
