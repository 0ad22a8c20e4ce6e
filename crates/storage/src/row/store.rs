//! Rows and their versions (hot path: `visible`, 35 instructions for a row with one version).

use std::sync::Arc;

use junctor_model::id::{CommitNumber, RowId, StatementNumber, TransactionId};
use junctor_model::row::RowFormat;

use super::compact::Compaction;
use super::map::RowMap;
use super::overflow_value::{free_overflow, is_inline, move_to_overflow, overflow_blocks, reassemble_image};
use super::settled::SettledTransactions;
use super::version::{RowVersion, VERSION_HEADER_BYTES, has_overflow_values, write_commit, write_older, write_version};
use super::{VersionState, Writer};
use crate::invariant::require;
use crate::page::{BLOCK_BYTES_MAX, BlockStore, Location, MemoryNeed, OutOfMemory, OverflowStore, PageKind, PagePool};

/// Maximum number of bytes of a version in its page. The long values of a longer image are first moved to
/// overflow pages.
const STORED_BYTES_MAX: usize = BLOCK_BYTES_MAX - 8;

/// The rows of one partition.
#[derive(Debug)]
pub struct RowStore {
    pub(super) map: RowMap,
    pub(super) blocks: BlockStore,
    pub(super) compaction: Compaction,
    overflow: OverflowStore,
    settled: SettledTransactions,
    version_count: u64,
    /// Receives the stored form of an image while its long values move to overflow pages.
    scratch: Vec<u8>,
}

impl RowStore {
    /// A store without rows.
    pub fn new(pool: Arc<PagePool>) -> RowStore {
        RowStore {
            map: RowMap::new(Arc::clone(&pool)),
            blocks: BlockStore::new(Arc::clone(&pool), PageKind::Rows),
            overflow: OverflowStore::new(pool),
            settled: SettledTransactions::new(),
            compaction: Compaction::default(),
            version_count: 0,
            scratch: Vec::new(),
        }
    }

    /// The newest version, committed or not, deleted or not.
    #[inline]
    pub fn newest(&self, row: RowId) -> Option<RowVersion<'_>> {
        self.at(self.map.get(row))
    }

    /// The next older version.
    #[inline]
    pub fn older(&self, version: &RowVersion<'_>) -> Option<RowVersion<'_>> {
        self.at(version.older())
    }

    /// The newest version that is committed within the snapshot, deleted or not, and whether a newer one lies
    /// above it.
    #[inline]
    pub(crate) fn committed_within<'a>(
        &'a self,
        newest: RowVersion<'a>,
        snapshot: CommitNumber,
    ) -> (Option<RowVersion<'a>>, bool) {
        if newest.is_seen_by(snapshot, None) {
            return (Some(newest), false);
        }
        let mut version = newest;
        let mut has_newer = false;
        while !self.is_committed_within(&version, snapshot) {
            has_newer = true;
            match self.older(&version) {
                Some(older) => version = older,
                None => return (None, true),
            }
        }
        (Some(version), has_newer)
    }

    /// The version that the reader sees; `None` if the row does not exist for it.
    #[inline]
    pub fn visible(&self, row: RowId, snapshot: CommitNumber, own: Option<TransactionId>) -> Option<RowVersion<'_>> {
        self.visible_from(self.newest(row)?, snapshot, own)
    }

    /// Like `visible`, starting from the newest version.
    #[inline(always)]
    pub(crate) fn visible_from<'a>(
        &'a self,
        newest: RowVersion<'a>,
        snapshot: CommitNumber,
        own: Option<TransactionId>,
    ) -> Option<RowVersion<'a>> {
        if !newest.is_seen_by(snapshot, own) {
            return self.visible_below(newest, snapshot, own);
        }
        (!newest.is_deleted()).then_some(newest)
    }

    #[inline(never)]
    fn visible_below<'a>(
        &'a self,
        newest: RowVersion<'a>,
        snapshot: CommitNumber,
        own: Option<TransactionId>,
    ) -> Option<RowVersion<'a>> {
        let mut version = newest;
        // If a settled transaction (committed, with unstamped versions) has several versions of the row, the
        // newest one comes first, and only that one is committed.
        while !version.is_seen_by(snapshot, own) && !self.is_settled_within(&version, snapshot) {
            version = self.older(&version)?;
        }
        (!version.is_deleted()).then_some(version)
    }

    /// Whether an unstamped version (without its commit number) belongs to a transaction that committed
    /// within the snapshot.
    #[inline]
    fn is_settled_within(&self, version: &RowVersion<'_>, snapshot: CommitNumber) -> bool {
        self.settled_stamp(version).is_some_and(|(_, number)| number <= snapshot)
    }

    /// The transaction and commit number with which an unstamped version is committed.
    #[inline]
    pub(crate) fn settled_stamp(&self, version: &RowVersion<'_>) -> Option<(TransactionId, CommitNumber)> {
        let transaction = version.unstamped_transaction()?;
        Some((transaction, self.settled.number(transaction)?))
    }

    /// Whether a version is committed, and with which number.
    #[inline]
    pub fn state(&self, version: &RowVersion<'_>) -> VersionState {
        if let Some(number) = version.stamped_number() {
            return VersionState::Committed(number);
        }
        match self.settled_stamp(version) {
            Some((_, number)) => VersionState::Committed(number),
            None => {
                let transaction = version.unstamped_transaction().unwrap_or_default();
                VersionState::Open(transaction, version.statement().unwrap_or_default())
            }
        }
    }

    /// Whether a version is committed within the snapshot, stamped or not.
    pub(crate) fn is_committed_within(&self, version: &RowVersion<'_>, snapshot: CommitNumber) -> bool {
        version.is_seen_by(snapshot, None) || self.is_settled_within(version, snapshot)
    }

    /// Whether any version may be committed and unstamped.
    #[inline]
    pub(crate) fn has_settled(&self) -> bool {
        !self.settled.is_empty()
    }

    /// Whether the transaction is committed here, with unstamped versions.
    pub(crate) fn is_settled(&self, transaction: TransactionId) -> bool {
        self.settled.number(transaction).is_some()
    }

    /// Commits all versions of a transaction. Each of them must be stamped before `forget_settled`.
    pub(crate) fn settle(&mut self, transaction: TransactionId, number: CommitNumber) {
        self.settled.insert(transaction, number);
    }

    /// Called when every version of a settled transaction is stamped.
    pub(crate) fn forget_settled(&mut self, transaction: TransactionId) {
        self.settled.remove(transaction);
    }

    /// The newest committed version, deleted or not.
    #[inline]
    pub fn newest_committed(&self, row: RowId) -> Option<RowVersion<'_>> {
        let mut version = self.newest(row)?;
        while self.state(&version).commit_number().is_none() {
            version = self.older(&version)?;
        }
        Some(version)
    }

    /// The newest version that has its commit number, deleted or not.
    #[inline]
    pub(crate) fn newest_stamped(&self, row: RowId) -> Option<RowVersion<'_>> {
        let mut version = self.newest(row)?;
        while !version.is_stamped() {
            version = self.older(&version)?;
        }
        Some(version)
    }

    /// Whether a version of the transaction may lie on top of the row: nothing lies above an unstamped
    /// version of another transaction.
    pub(crate) fn is_open_to(&self, row: RowId, transaction: TransactionId) -> bool {
        self.newest(row).is_none_or(|newest| newest.is_stamped() || newest.is_of(transaction))
    }

    /// The version below the newest one.
    #[inline]
    pub(crate) fn second(&self, row: RowId) -> Option<RowVersion<'_>> {
        self.older(&self.newest(row)?)
    }

    /// The version at a location and the one below it.
    #[inline]
    pub(crate) fn version_and_below(&self, location: Location) -> (RowVersion<'_>, Option<RowVersion<'_>>) {
        let version = RowVersion::read(location, self.blocks.at(location));
        (version, self.older(&version))
    }

    /// All versions of a row, newest first.
    pub fn versions(&self, row: RowId) -> impl Iterator<Item = RowVersion<'_>> {
        std::iter::successors(self.newest(row), |version| self.older(version))
    }

    /// The whole image of a version that is not a deletion. `scratch` receives it if values are in overflow
    /// pages.
    #[inline]
    pub fn image<'a>(&'a self, version: &RowVersion<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        self.whole(version.stored(), scratch)
    }

    /// The whole image of a stored image.
    #[inline]
    pub(crate) fn whole<'a>(&'a self, stored: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if !has_overflow_values(stored) {
            return stored;
        }
        reassemble_image(stored, &self.overflow, scratch);
        scratch
    }

    /// Prefetches a row's entry in the map.
    #[inline]
    pub(crate) fn prefetch_entry(&self, row: RowId) {
        self.map.prefetch(row);
    }

    /// Prefetches the version at a location; `Location::NONE` is ignored.
    #[inline]
    pub(crate) fn prefetch_at(&self, location: Location) {
        self.blocks.prefetch(location);
    }

    /// The row map.
    pub fn map(&self) -> &RowMap {
        &self.map
    }

    pub(crate) fn map_mut(&mut self) -> &mut RowMap {
        &mut self.map
    }

    /// Number of versions of all rows.
    pub fn version_count(&self) -> u64 {
        self.version_count
    }

    /// Bytes of the pages with versions, of the row map, and of the pages with long values.
    pub fn bytes(&self) -> (u64, u64, u64) {
        (self.blocks.bytes(), self.map.bytes(), self.overflow.bytes())
    }

    /// Writes an uncommitted version that is not in a chain yet. `None` writes a deletion.
    pub(crate) fn make_version(
        &mut self,
        format: &RowFormat,
        image: Option<&[u8]>,
        writer: Writer,
        need: MemoryNeed,
    ) -> Result<Location, OutOfMemory> {
        require!(image.is_none_or(|image| !image.is_empty()), "a row image has at least its flags");
        let RowStore { blocks, overflow, scratch, .. } = self;
        let stored = match image {
            Some(image) if !is_inline(image) => {
                move_to_overflow(format, image, overflow, need, scratch)?;
                Some(&scratch[..])
            }
            image => image,
        };
        let bytes = VERSION_HEADER_BYTES + stored.map_or(0, <[u8]>::len);
        let allocated = if bytes <= STORED_BYTES_MAX { blocks.allocate(bytes, need) } else { Err(OutOfMemory) };
        let Ok(location) = allocated else {
            if let (Some(image), Some(stored)) = (image, stored)
                && !is_inline(image)
            {
                free_overflow(stored, overflow);
            }
            return Err(OutOfMemory);
        };
        write_version(blocks.at_mut(location), stored, writer);
        if scratch.capacity() > STORED_BYTES_MAX {
            *scratch = Vec::new();
        }
        self.version_count += 1;
        Ok(location)
    }

    /// Frees a version that is no longer in a chain.
    pub(crate) fn free_version(&mut self, location: Location) {
        let version = RowVersion::read(location, self.blocks.at(location));
        if version.has_overflow() {
            free_overflow(version.stored(), &mut self.overflow);
        }
        self.blocks.free(location);
        require!(self.version_count > 0, "a version that is freed was counted when it was made");
        self.version_count -= 1;
    }

    /// Puts a version from `make_version` on top of a row's chain.
    pub(crate) fn push(&mut self, row: RowId, location: Location) {
        let older = self.map.get(row);
        require!(older != location, "row {row} has a version only once in its chain");
        write_older(self.blocks.at_mut(location), older);
        // Link first, then the map: the new version must never be reachable without the older ones.
        self.map.set(row, location);
        self.map.touch(row);
    }

    /// Removes and frees the newest version of a row. The map's entry becomes `Location::NONE` if no version
    /// is left.
    pub(crate) fn pop(&mut self, row: RowId) {
        let location = self.map.get(row);
        require!(!location.is_none(), "row {row} has a version to take off");
        let older = RowVersion::read(location, self.blocks.at(location)).older();
        self.map.set(row, older);
        self.free_version(location);
    }

    /// Removes and frees the version below `location`.
    pub(crate) fn remove_below(&mut self, location: Location) {
        let below = RowVersion::read(location, self.blocks.at(location)).older();
        require!(!below.is_none(), "there is a version below the one that stays");
        let rest = RowVersion::read(below, self.blocks.at(below)).older();
        write_older(self.blocks.at_mut(location), rest);
        self.free_version(below);
    }

    /// Commits the newest version of a row.
    pub(crate) fn stamp(&mut self, row: RowId, commit_number: CommitNumber) {
        let location = self.map.get(row);
        write_commit(self.blocks.at_mut(location), row, commit_number);
    }

    /// During replay, makes `image` the only version of a row. Returns whether the row existed. After an
    /// error the row is unchanged.
    pub(crate) fn replay_put(
        &mut self,
        format: &RowFormat,
        row: RowId,
        image: &[u8],
        commit_number: CommitNumber,
    ) -> Result<bool, OutOfMemory> {
        self.map.reserve_at(row, MemoryNeed::Growth)?;
        // The final header replaces the writer below.
        let writer = Writer { transaction: TransactionId(0), statement: StatementNumber(0) };
        let location = self.make_version(format, Some(image), writer, MemoryNeed::Growth)?;
        write_commit(self.blocks.at_mut(location), row, commit_number);
        let before = self.map.replay_set(row, location);
        self.free_replayed(before);
        Ok(!before.is_none())
    }

    /// During replay, removes a row. Returns whether it existed.
    pub(crate) fn replay_delete(&mut self, row: RowId) -> bool {
        let before = self.map.get(row);
        if before.is_none() {
            return false;
        }
        self.map.replay_free(row);
        self.free_replayed(before);
        true
    }

    fn free_replayed(&mut self, location: Location) {
        let Some(version) = self.at(location) else { return };
        require!(version.is_stamped() && version.older().is_none(), "a row has one version during replay");
        self.free_version(location);
    }

    /// Verifies links, order and counts: newest versions first, uncommitted ones on top, no block lost.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.map.check()?;
        self.blocks.check()?;
        self.overflow.check()?;
        let (mut versions, mut overflow) = (0, 0);
        for row in (0..self.map.end().0).map(RowId) {
            let mut newer: Option<RowVersion<'_>> = None;
            for version in self.versions(row) {
                versions += 1;
                if version.has_overflow() {
                    overflow += overflow_blocks(version.stored(), &self.overflow);
                }
                if version.is_stamped() && version.row_or_statement() != row.0 {
                    return Err(format!("row {row}: a version names row {} as its own", version.row_or_statement()));
                }
                if let Some(newer) = newer {
                    check_order(row, &newer, &version)?;
                }
                newer = Some(version);
            }
        }
        if versions != self.version_count || self.blocks.used_blocks() as u64 != versions {
            return Err(format!(
                "{versions} versions are linked, {} counted, {} blocks used",
                self.version_count,
                self.blocks.used_blocks()
            ));
        }
        if overflow != self.overflow.used_blocks() {
            return Err(format!("{overflow} overflow blocks are linked, {} used", self.overflow.used_blocks()));
        }
        Ok(())
    }

    /// The version at a location; `None` for `Location::NONE`.
    #[inline]
    pub(crate) fn at(&self, location: Location) -> Option<RowVersion<'_>> {
        if location.is_none() {
            return None;
        }
        Some(RowVersion::read(location, self.blocks.at(location)))
    }
}

fn check_order(row: RowId, newer: &RowVersion<'_>, older: &RowVersion<'_>) -> Result<(), String> {
    let in_order = match (newer.stamped_number(), older.stamped_number()) {
        (Some(newer), Some(older)) => newer > older,
        (None, Some(_)) => true,
        (Some(_), None) => false,
        // A deletion keeps the version of its own statement below it, because some version must have the
        // row's key.
        (None, None) if newer.is_deleted() && newer.statement() == older.statement() => true,
        (None, None) => {
            newer.unstamped_transaction() == older.unstamped_transaction() && newer.statement() > older.statement()
        }
    };
    if in_order { Ok(()) } else { Err(format!("row {row}: a version lies above a newer one")) }
}
