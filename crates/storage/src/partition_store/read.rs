//! Point reads (hot path, budget 150 instructions a read by integer key with its hash; about 140 counted).

use std::ops::ControlFlow;

use junctor_model::id::{CommitNumber, RowId, TransactionId};
use junctor_model::limit;
use junctor_model::row::RowView;

use super::{PartitionStore, key_view};
use crate::page::Location;
use crate::row::RowVersion;

/// An id that no row has.
const NO_CANDIDATE: RowId = RowId(u32::MAX);

impl PartitionStore {
    /// The row with that primary key in any version that is still kept: it may be deleted or not committed.
    #[inline]
    pub fn find_primary(&self, key: &[u8], hash: u64) -> Option<RowId> {
        self.hash.find(hash, |row| self.newest_with_primary(row, key).map(|_| row))
    }

    /// The version of the row with that primary key that the reader sees.
    #[inline]
    pub fn read_primary(
        &self,
        key: &[u8],
        hash: u64,
        snapshot: CommitNumber,
        own: Option<TransactionId>,
    ) -> Option<(RowId, RowVersion<'_>)> {
        let (row, newest) =
            self.hash.find(hash, |row| self.newest_with_primary(row, key).map(|newest| (row, newest)))?;
        Some((row, self.rows.visible_from(newest, snapshot, own)?))
    }

    /// Reads up to `limit::ROWS_PER_HOLD_MAX` keys (with their hashes) so that their cache misses overlap; keys beyond
    /// that many are left out. `visit` gets for each key in turn the row and the version that the reader sees, until it
    /// breaks.
    #[inline]
    pub fn read_batch<'a>(
        &'a self,
        keys: &[(&[u8], u64)],
        snapshot: CommitNumber,
        own: Option<TransactionId>,
        mut visit: impl FnMut(Option<(RowId, RowVersion<'a>)>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let keys = &keys[..keys.len().min(limit::ROWS_PER_HOLD_MAX)];
        let mut candidates = [(NO_CANDIDATE, Location::NONE); limit::ROWS_PER_HOLD_MAX];
        for (_, hash) in keys {
            self.hash.prefetch(*hash);
        }
        for ((_, hash), (candidate, _)) in keys.iter().zip(&mut candidates) {
            if let Some(row) = self.hash.find(*hash, Some) {
                *candidate = row;
                self.rows.prefetch_entry(row);
            }
        }
        for (row, location) in &mut candidates[..keys.len()] {
            *location = self.rows.map().get(*row);
            self.rows.prefetch_at(*location);
        }
        for ((key, hash), (row, location)) in keys.iter().zip(candidates) {
            let newest = self.rows.at(location).filter(|newest| self.is_of_primary(newest, key));
            let found = match newest {
                Some(newest) => Some((row, newest)),
                None if row == NO_CANDIDATE => None,
                // Two keys with equal 32 bits of hash.
                None => self.hash.find(*hash, |row| self.newest_with_primary(row, key).map(|newest| (row, newest))),
            };
            visit(found.and_then(|(row, newest)| Some((row, self.rows.visible_from(newest, snapshot, own)?))))?;
        }
        ControlFlow::Continue(())
    }

    /// The version of a row that the reader sees.
    #[inline]
    pub fn visible(&self, row: RowId, snapshot: CommitNumber, own: Option<TransactionId>) -> Option<RowVersion<'_>> {
        self.rows.visible(row, snapshot, own)
    }

    /// The newest version of a row, committed or not, deleted or not.
    #[inline]
    pub fn newest(&self, row: RowId) -> Option<RowVersion<'_>> {
        self.rows.newest(row)
    }

    /// The newest committed version of a row, deleted or not.
    #[inline]
    pub fn newest_committed(&self, row: RowId) -> Option<RowVersion<'_>> {
        self.rows.newest_committed(row)
    }

    /// All versions of a row, the newest first.
    pub fn versions(&self, row: RowId) -> impl Iterator<Item = RowVersion<'_>> {
        self.rows.versions(row)
    }

    /// The row of a version that is no deletion; `scratch` takes the image when long values must be fetched.
    #[inline]
    pub fn view<'a>(&'a self, version: &RowVersion<'a>, scratch: &'a mut Vec<u8>) -> RowView<'a> {
        RowView::new(self.format(), self.rows.image(version, scratch))
    }

    /// Ids from this one on are not in use.
    pub fn row_end(&self) -> RowId {
        self.rows.map().end()
    }

    /// Whether the newest version of a row exists and has exactly that primary key: to be asked again after waiting for
    /// the row's lock, because the id may have been given to another row meanwhile.
    pub fn is_row_of(&self, row: RowId, key: &[u8]) -> bool {
        self.newest_with_primary(row, key).is_some_and(|newest| !newest.is_deleted())
    }

    /// The newest version of a row (which may be a deletion) if the row has that primary key.
    #[inline(always)]
    fn newest_with_primary(&self, row: RowId, key: &[u8]) -> Option<RowVersion<'_>> {
        self.rows.newest(row).filter(|newest| self.is_of_primary(newest, key))
    }

    /// Whether a version, which may be a deletion, is of the row with that primary key.
    #[inline(always)]
    fn is_of_primary(&self, newest: &RowVersion<'_>, key: &[u8]) -> bool {
        let is_equal = match newest.is_deleted() {
            false => self.primary.stored_matches(newest.stored(), key),
            true => None,
        };
        is_equal.unwrap_or_else(|| self.has_primary(newest, key))
    }

    #[inline(never)]
    fn has_primary(&self, newest: &RowVersion<'_>, key: &[u8]) -> bool {
        // A deletion has no key; the version below it has.
        let mut keyed = *newest;
        while keyed.is_deleted() {
            match self.rows.older(&keyed) {
                Some(older) => keyed = older,
                None => return false,
            }
        }
        let mut scratch = Vec::new();
        let view = key_view(&self.rows, self.format(), &self.primary, &keyed, &mut scratch);
        self.primary.matches(self.definitions(), view, key)
    }
}
