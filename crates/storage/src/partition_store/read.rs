//! Point reads (hot path, budget 150 instructions a read by integer key).

use junctor_model::id::{CommitNumber, RowId, TransactionId};
use junctor_model::limit;
use junctor_model::row::RowView;

use super::{PartitionStore, key_view};
use crate::row::RowVersion;

impl PartitionStore {
    /// The row with that primary key in any version that is still kept: it may be deleted or not committed.
    #[inline]
    pub fn find_primary(&self, key: &[u8], hash: u64) -> Option<RowId> {
        self.hash.find(hash, |row| self.has_primary(row, key))
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
        let row = self.find_primary(key, hash)?;
        Some((row, self.visible(row, snapshot, own)?))
    }

    /// Finds up to `limit::ROWS_PER_HOLD_MAX` keys (with their hashes) at once, so that the cache misses overlap, and appends
    /// a row for each to `found`. Keys beyond that many are left out. The newest versions found are in the cache afterwards.
    pub fn lookup_batch(&self, keys: &[(&[u8], u64)], found: &mut Vec<Option<RowId>>) {
        let keys = &keys[..keys.len().min(limit::ROWS_PER_HOLD_MAX)];
        let mut candidates = [None; limit::ROWS_PER_HOLD_MAX];
        for (_, hash) in keys {
            self.hash.prefetch(*hash);
        }
        for ((_, hash), candidate) in keys.iter().zip(&mut candidates) {
            *candidate = self.hash.find(*hash, |_| true);
            candidate.inspect(|row| self.rows.prefetch_entry(*row));
        }
        for row in candidates[..keys.len()].iter().flatten() {
            self.rows.prefetch_version(*row);
        }
        for ((key, hash), candidate) in keys.iter().zip(candidates) {
            let row = match candidate {
                Some(row) if self.has_primary(row, key) => Some(row),
                // Two keys with equal 32 bits of hash.
                Some(_) => self.find_primary(key, *hash),
                None => None,
            };
            found.push(row);
        }
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

    #[inline]
    fn has_primary(&self, row: RowId, key: &[u8]) -> bool {
        let mut version = self.rows.newest(row);
        while let Some(newer) = version
            && newer.is_deleted()
        {
            version = self.rows.older(&newer);
        }
        let Some(version) = version else { return false };
        let mut scratch = Vec::new();
        let view = key_view(&self.rows, self.format(), &self.primary, &version, &mut scratch);
        self.primary.matches(self.definitions(), view, key)
    }
}
