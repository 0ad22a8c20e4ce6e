//! Inserts, updates and deletes: a new version on top of the row, and index entries for its new keys.

use std::fmt;

use junctor_model::id::{RowId, StatementNumber, TransactionId};
use junctor_model::partition::HashedKey;
use junctor_model::row::RowView;

use super::remove_version::{Remaining, remove_orphaned_keys};
use super::{LocalIndex, PartitionStore, Scratch, Writer, key_view};
use crate::invariant::{require, verify};
use crate::page::{Location, MemoryNeed, OutOfMemory};

/// Why a write was refused. A refused write has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The data memory is exhausted: error 1114.
    OutOfMemory,
    /// A row with this primary key exists: error 1062, once the caller holds the row's lock.
    Duplicate(RowId),
    /// The newest version belongs to another transaction. The caller must lock the row first.
    Uncommitted(RowId),
    /// The row does not exist, or no longer exists.
    NotFound,
}

impl From<OutOfMemory> for WriteError {
    fn from(_: OutOfMemory) -> WriteError {
        WriteError::OutOfMemory
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::OutOfMemory => OutOfMemory.fmt(formatter),
            WriteError::Duplicate(row) => write!(formatter, "row {row} has this primary key"),
            WriteError::Uncommitted(row) => {
                write!(formatter, "row {row} has an uncommitted version of another transaction")
            }
            WriteError::NotFound => formatter.write_str("the row does not exist"),
        }
    }
}

impl std::error::Error for WriteError {}

#[derive(Clone, Copy)]
enum Target {
    Existing(RowId),
    New { hash: u64, row: Option<RowId> },
}

impl PartitionStore {
    /// Inserts a row. If a deleted row with the same key is still stored for snapshots, reuses its id.
    #[inline]
    pub fn insert(&mut self, key: HashedKey<'_>, image: &[u8], writer: Writer) -> Result<RowId, WriteError> {
        let target = match self.find_stamped(key) {
            Some(row) => self.target_of_insert(row, writer.transaction)?,
            None => Target::New { hash: key.hash, row: None },
        };
        let row = self.put(target, Some(image), writer, MemoryNeed::Growth)?;
        verify!(self.find_primary(key.key, key.hash) == Some(row), "row {row} is found by its key once it is inserted");
        Ok(row)
    }

    /// Inserts a row under the id that another replica chose. If that replica has already purged a deleted
    /// row of the same id or key and this replica has not, purges that row now. The other replica may have
    /// given up a version that a snapshot still reads, so the floor rises to the deletion.
    ///
    /// # Errors
    /// Also `Uncommitted` if another row has the id, and `Duplicate` if another row has the key.
    pub fn insert_at(
        &mut self,
        row: RowId,
        key: HashedKey<'_>,
        image: &[u8],
        writer: Writer,
    ) -> Result<RowId, WriteError> {
        let mut found = self.find_stamped(key);
        self.stamp_settled(row);
        if found.is_some_and(|other| other != row && self.remove_deleted(other)) {
            found = None;
        }
        if found.is_none() {
            self.remove_deleted(row);
        }
        let target = match found {
            Some(found) if found == row => self.target_of_insert(row, writer.transaction)?,
            Some(found) => return Err(WriteError::Duplicate(found)),
            None if self.rows.newest(row).is_some() => return Err(WriteError::Uncommitted(row)),
            None => Target::New { hash: key.hash, row: Some(row) },
        };
        Ok(self.put(target, Some(image), writer, MemoryNeed::Growth)?)
    }

    /// Replaces the row's values. The primary key must not change.
    pub fn update(&mut self, row: RowId, image: &[u8], writer: Writer) -> Result<(), WriteError> {
        self.stamp_settled(row);
        self.check_writable(row, writer.transaction)?;
        verify!(self.has_same_primary(row, image), "an update of row {row} keeps its primary key");
        self.put(Target::Existing(row), Some(image), writer, MemoryNeed::Growth)?;
        Ok(())
    }

    /// Removes versions of the transaction to which no rollback can return. This keeps the chain short for a
    /// row that one transaction changes very often. A rollback of the running statement returns to the state
    /// before `first`, the number with which that statement began. ROLLBACK TO SAVEPOINT returns to the state
    /// after the statement `savepoint` or after an earlier one.
    pub fn drop_unreachable(
        &mut self,
        row: RowId,
        transaction: TransactionId,
        first: StatementNumber,
        savepoint: StatementNumber,
    ) {
        let Some(newest) = self.rows.newest(row).filter(|newest| newest.is_of(transaction)) else { return };
        let head = newest.location();
        self.drop_below(row, head, transaction, first);
        let (_, before) = self.rows.version_and_below(head);
        if let Some(before) = before.filter(|before| before.is_of(transaction)).map(|before| before.location()) {
            self.drop_below(row, before, transaction, StatementNumber(savepoint.0.saturating_add(1)));
        }
    }

    /// Removes the transaction's versions directly below `kept`, back to statement `first`. Stops at a
    /// deletion, which has no key and needs the version below it.
    fn drop_below(&mut self, row: RowId, kept: Location, transaction: TransactionId, first: StatementNumber) {
        while let (above, Some(below)) = self.rows.version_and_below(kept)
            && !above.is_deleted()
            && below.is_of(transaction)
            && below.statement() >= Some(first)
        {
            let removed = below.location();
            remove_orphaned_keys(self, row, removed, Remaining::AllOthers);
            self.rows.remove_below(kept);
        }
    }

    /// Deletes the row. May use the memory reserve.
    pub fn delete(&mut self, row: RowId, writer: Writer) -> Result<(), WriteError> {
        self.stamp_settled(row);
        self.check_writable(row, writer.transaction)?;
        self.put(Target::Existing(row), None, writer, MemoryNeed::Release)?;
        Ok(())
    }

    /// The row with this primary key. Stamps the row first (see `stamp_settled`), because only a stamped row
    /// can be written.
    #[inline]
    fn find_stamped(&mut self, key: HashedKey<'_>) -> Option<RowId> {
        let row = self.find_primary(key.key, key.hash)?;
        match self.stamp_settled(row) {
            // Stamping removes a row that one transaction inserted and deleted. Look whether the row still
            // exists.
            true => self.find_primary(key.key, key.hash),
            false => Some(row),
        }
    }

    fn has_same_primary(&self, row: RowId, image: &[u8]) -> bool {
        let mut key = Vec::new();
        self.primary.append(self.definitions(), RowView::new(self.format(), image), &mut key);
        self.is_row_of(row, &key)
    }

    /// Removes a row if its newest version is a committed deletion. Returns whether it was one.
    fn remove_deleted(&mut self, row: RowId) -> bool {
        let newest = self.rows.newest(row).filter(|newest| newest.is_deleted());
        let Some(number) = newest.and_then(|newest| self.state(&newest).commit_number()) else { return false };
        if number > self.purge_horizon {
            self.snapshot_floor = self.snapshot_floor.max(number);
        }
        self.remove_row(row);
        true
    }

    fn target_of_insert(&self, row: RowId, transaction: TransactionId) -> Result<Target, WriteError> {
        match self.check_writable(row, transaction) {
            Ok(()) => Err(WriteError::Duplicate(row)),
            Err(WriteError::NotFound) => Ok(Target::Existing(row)),
            Err(error) => Err(error),
        }
    }

    fn check_writable(&self, row: RowId, transaction: TransactionId) -> Result<(), WriteError> {
        let newest = self.rows.newest(row).ok_or(WriteError::NotFound)?;
        match self.state(&newest).transaction() {
            Some(other) if other != transaction => Err(WriteError::Uncommitted(row)),
            _ if newest.is_deleted() => Err(WriteError::NotFound),
            _ => Ok(()),
        }
    }

    fn put(
        &mut self,
        target: Target,
        image: Option<&[u8]>,
        writer: Writer,
        need: MemoryNeed,
    ) -> Result<RowId, OutOfMemory> {
        verify!(!self.is_replaying, "writes begin after replay, once the indexes are built");
        if let Target::New { hash, row } = target {
            self.hash.reserve(hash, need)?;
            match row {
                Some(row) => self.rows.map_mut().reserve_at(row, need)?,
                None => self.rows.map_mut().reserve(need)?,
            }
        }
        let location = self.rows.make_version(&self.layout.row_format, image, writer, need)?;
        if let Err(OutOfMemory) = self.reserve_added_keys(target, image, need) {
            self.rows.free_version(location);
            // An index that reserved memory before another one failed would keep an empty page.
            self.ordered.iter_mut().for_each(|entry| entry.tree.trim());
            return Err(OutOfMemory);
        }
        // Everything is reserved, so nothing can fail from here on.
        let row = match target {
            Target::Existing(row) => row,
            Target::New { hash, row } => {
                let map = self.rows.map_mut();
                let row = match row {
                    Some(row) => {
                        map.allocate_at(row, Location::NONE);
                        row
                    }
                    None => map.allocate(Location::NONE),
                };
                self.hash.insert(hash, row);
                row
            }
        };
        verify!(
            self.rows.is_open_to(row, writer.transaction),
            "row {row} is written only over a committed version or one of the same transaction"
        );
        self.rows.push(row, location);
        self.insert_added_keys(row);
        if image.is_some() {
            self.drop_replaced(row, location, writer);
        }
        if self.has_unstamped() {
            // Each write stamps a waiting row too, so the rows that wait for their stamps are never more than
            // the uncommitted rows have been at one time.
            self.stamp_step(1);
        }
        Ok(row)
    }

    /// Collects the keys of `image` that the newest version does not have, and reserves memory for them in
    /// their indexes. Entries of multi-valued indexes are inserted at once.
    fn reserve_added_keys(
        &mut self,
        target: Target,
        image: Option<&[u8]>,
        need: MemoryNeed,
    ) -> Result<(), OutOfMemory> {
        let PartitionStore { rows, ordered, layout, scratch, .. } = self;
        scratch.added.clear();
        scratch.added_keys.clear();
        let Some(image) = image else { return Ok(()) };
        let view = RowView::new(&layout.row_format, image);
        let (row, newest) = match target {
            Target::Existing(row) => (row, rows.newest(row).filter(|newest| !newest.is_deleted())),
            Target::New { row, .. } => (row.unwrap_or(rows.map().next()), None),
        };
        let mut is_multi_valued = false;
        for (position, entry) in ordered.iter_mut().enumerate() {
            if let Some(newest) = &newest {
                let old = key_view(rows, &layout.row_format, &entry.shape, newest, &mut scratch.image);
                // During a build the newest version may not have its entries yet.
                if entry.is_complete && entry.shape.has_same_values(old, view) {
                    continue;
                }
            }
            if entry.shape.is_multi_valued() {
                is_multi_valued = true;
                continue;
            }
            let start = scratch.added_keys.len();
            entry.shape.append(&layout.definition.columns, view, &mut scratch.added_keys);
            entry.tree.reserve(&scratch.added_keys[start..], row, need)?;
            scratch.added.push((position, scratch.added_keys.len()));
        }
        // These are the last, so that a failure leaves entries in no other index.
        if is_multi_valued {
            self.insert_element_keys((target, row), image, need)?;
        }
        self.scratch.trim();
        Ok(())
    }

    /// Inserts the entries of a new image into the multi-valued indexes, except those that the newest version
    /// has. Memory is reserved for one entry at a time, because a reservation for all of them would have to
    /// expect that each splits nodes of its own. A lack of memory removes what was inserted.
    #[inline(never)]
    fn insert_element_keys(
        &mut self,
        (target, row): (Target, RowId),
        image: &[u8],
        need: MemoryNeed,
    ) -> Result<(), OutOfMemory> {
        let PartitionStore { rows, ordered, layout, scratch, .. } = self;
        let (format, columns) = (&layout.row_format, &layout.definition.columns[..]);
        let newest = match target {
            Target::Existing(row) => rows.newest(row).filter(|newest| !newest.is_deleted()),
            Target::New { .. } => None,
        };
        let Scratch { image: newest_image, key, added, added_keys, row_keys, other_keys, .. } = scratch;
        let ordinary = (added.len(), added_keys.len());
        for (position, entry) in ordered.iter_mut().enumerate().filter(|(_, entry)| entry.shape.is_multi_valued()) {
            entry.keys_of(columns, RowView::new(format, image), key, row_keys);
            // During a build the newest version may not have its entries yet.
            if let Some(newest) = newest.as_ref().filter(|_| entry.is_complete) {
                entry.keys_of(columns, key_view(rows, format, &entry.shape, newest, newest_image), key, other_keys);
                row_keys.remove_all_of(other_keys);
            }
            for new in row_keys.iter() {
                if entry.tree.reserve(new, row, need).is_err() {
                    remove_inserted(ordered, (added, added_keys), ordinary, row);
                    return Err(OutOfMemory);
                }
                // An older version may have the entry already.
                if entry.tree.insert(new, row) {
                    added_keys.extend_from_slice(new);
                    added.push((position, added_keys.len()));
                }
            }
        }
        added.truncate(ordinary.0);
        added_keys.truncate(ordinary.1);
        Ok(())
    }

    fn insert_added_keys(&mut self, row: RowId) {
        let PartitionStore { ordered, scratch, .. } = self;
        let mut start = 0;
        for (position, end) in &scratch.added {
            ordered[*position].tree.insert(&scratch.added_keys[start..*end], row);
            start = *end;
        }
    }

    /// Removes versions of the same statement below the one at `location`. A rollback never returns to a
    /// state between two writes of one statement.
    fn drop_replaced(&mut self, row: RowId, location: Location, writer: Writer) {
        while let Some(below) = self.rows.second(row)
            && below.is_of(writer.transaction)
            && below.statement() == Some(writer.statement)
        {
            let removed = below.location();
            remove_orphaned_keys(self, row, removed, Remaining::AllOthers);
            self.rows.remove_below(location);
        }
    }
}

/// Removes the entries of multi-valued indexes that a write has inserted before it failed: those behind
/// `ordinary`, the number of the other keys and of their bytes.
#[cold]
fn remove_inserted(
    ordered: &mut [LocalIndex],
    (added, added_keys): (&[(usize, usize)], &[u8]),
    (ordinary, mut start): (usize, usize),
    row: RowId,
) {
    for (position, end) in &added[ordinary..] {
        let is_removed = ordered[*position].tree.remove(&added_keys[start..*end], row);
        require!(is_removed, "an entry that a failed write of row {row} has inserted is in its index");
        start = *end;
    }
}
