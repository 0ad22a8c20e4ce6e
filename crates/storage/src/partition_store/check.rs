//! Verification of a whole partition, for tests and the simulator.

use std::collections::BTreeSet;

use junctor_model::id::RowId;
use junctor_model::partition::key_hash;

use super::{LocalIndex, PartitionStore, key_view};

impl PartitionStore {
    /// Verifies every invariant: versions and links, hash index against rows, every ordered index against
    /// rows, and counts. The error names the broken invariant. Takes time and memory in proportion to the
    /// partition.
    pub fn check(&self) -> Result<(), String> {
        if self.is_replaying {
            // Free ids are not linked yet, and rows have no index entries.
            return Ok(());
        }
        self.rows.check()?;
        self.check_hash()?;
        for entry in &self.ordered {
            self.check_ordered(entry).map_err(|problem| format!("index {}: {problem}", entry.id))?;
        }
        let is_live = |row: &RowId| self.rows.newest_stamped(*row).is_some_and(|version| !version.is_deleted());
        let live = (0..self.row_id_limit().0).map(RowId).filter(is_live).count() as u64;
        if live != self.live_rows {
            return Err(format!("{live} live rows, counted {}", self.live_rows));
        }
        Ok(())
    }

    fn check_hash(&self) -> Result<(), String> {
        let mut entries = 0;
        let mut seen = BTreeSet::new();
        self.hash.check(|hash, row| {
            entries += 1;
            let image = self.versions(row).find(|version| !version.is_deleted());
            let image = image.ok_or_else(|| format!("the hash index has row {row}, which has no key"))?;
            let (mut scratch, mut key) = (Vec::new(), Vec::new());
            let view = key_view(&self.rows, self.format(), &self.primary, &image, &mut scratch);
            self.primary.append(self.definitions(), view, &mut key);
            if key_hash(&key) as u32 != hash {
                return Err(format!("the hash index has another hash for row {row}"));
            }
            if !seen.insert(key) {
                return Err(format!("row {row} has the primary key of another row"));
            }
            Ok(())
        })?;
        if entries != self.rows.map().used() {
            return Err(format!("{entries} entries in the hash index for {} rows", self.rows.map().used()));
        }
        Ok(())
    }

    fn check_ordered(&self, entry: &LocalIndex) -> Result<(), String> {
        let mut allowed: BTreeSet<(Vec<u8>, RowId)> = BTreeSet::new();
        let mut required = BTreeSet::new();
        let (mut scratch, mut key) = (Vec::new(), Vec::new());
        for row in (0..self.row_id_limit().0).map(RowId) {
            let mut is_reachable = true;
            for version in self.versions(row) {
                if !version.is_deleted() {
                    let view = key_view(&self.rows, self.format(), &entry.shape, &version, &mut scratch);
                    entry.shape.for_each_key(self.definitions(), view, &mut key, |key| {
                        let key = entry.tree.truncated(key).to_vec();
                        if is_reachable {
                            required.insert((key.clone(), row));
                        }
                        allowed.insert((key, row));
                    });
                }
                // Versions below the one that the oldest snapshot sees wait for the purge. Their index
                // entries may already be gone.
                is_reachable &= !self.rows.is_committed_within(&version, self.purge_horizon);
            }
        }
        entry.tree.check(|key, row| {
            let entry = (key.to_vec(), row);
            required.remove(&entry);
            match allowed.contains(&entry) {
                true => Ok(()),
                false => Err(format!("an entry for row {row} that no version has")),
            }
        })?;
        match required.first() {
            Some((_, row)) if entry.is_complete => Err(format!("row {row} has a version without an entry")),
            _ => Ok(()),
        }
    }
}
