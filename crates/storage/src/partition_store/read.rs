//! Point reads (hot path, budget 150 instructions for a read by an integer key whose hash is given; about 140
//! measured).

use arrayvec::ArrayVec;
use junctor_model::id::{CommitNumber, RowId, TransactionId};
use junctor_model::limit;
use junctor_model::row::RowView;

use super::{PartitionStore, key_view};
use crate::invariant::require;
use crate::page::Location;
use crate::row::{RowVersion, VersionState};

/// A value for each key of a batch.
pub type Batch<T> = ArrayVec<T, { limit::ROWS_PER_HOLD_MAX }>;

/// An id that no row can have.
const NO_CANDIDATE: RowId = RowId(u32::MAX);

impl PartitionStore {
    /// The row that has the given primary key in any version that is still stored. The row may be deleted or
    /// uncommitted.
    #[inline]
    pub fn find_primary(&self, key: &[u8], hash: u64) -> Option<RowId> {
        self.hash.find(hash, |row| self.newest_with_primary(row, key).map(|_| row))
    }

    /// The version of the row with the given primary key that the reader sees.
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

    /// Reads up to `limit::ROWS_PER_HOLD_MAX` keys, each given with its hash, with overlapping cache misses;
    /// further keys are not consumed. For each key, appends to `images` the stored image that the reader sees
    /// (see [`PartitionStore::view_stored`]), or an empty slice if it sees no row. `images` must be empty.
    #[inline]
    pub fn read_batch<'a, 'k>(
        &'a self,
        keys: impl Iterator<Item = (&'k [u8], u64)>,
        snapshot: CommitNumber,
        own: Option<TransactionId>,
        images: &mut Batch<&'a [u8]>,
    ) {
        require!(images.is_empty(), "`images` is empty before a batch is read");
        let mut sought = Batch::<(&[u8], u64, usize)>::new();
        for (key, hash) in keys.take(limit::ROWS_PER_HOLD_MAX) {
            let home = self.hash.home_of(hash);
            self.hash.prefetch(home);
            sought.push((key, hash, home));
        }
        // Each phase prefetches for all keys before the next phase touches memory for the first one.
        let mut rows = Batch::<RowId>::new();
        for (_, hash, home) in &sought {
            let row = self.hash.find_from(*home, *hash, Some).unwrap_or(NO_CANDIDATE);
            self.rows.prefetch_entry(row);
            rows.push(row);
        }
        let mut locations = Batch::<Location>::new();
        for row in &rows {
            let location = self.rows.map().get(*row);
            self.rows.prefetch_at(location);
            locations.push(location);
        }
        for ((key, hash, _), location) in sought.iter().zip(&locations) {
            images.push(match self.rows.at(*location) {
                Some(newest) if newest.is_seen_by(snapshot, own) && self.is_live_with_key(&newest, *location, key) => {
                    newest.stored()
                }
                Some(_) => self.read_single(key, *hash, snapshot, own),
                None => &[],
            });
        }
    }

    /// Whether a version is not a deletion and belongs to the row with this key.
    #[inline(always)]
    fn is_live_with_key(&self, version: &RowVersion<'_>, location: Location, key: &[u8]) -> bool {
        !version.is_deleted()
            && match self.primary.stored_matches(version.stored(), key) {
                Some(matches) => matches,
                None => self.has_primary_at(location, key),
            }
    }

    #[inline(never)]
    fn has_primary_at(&self, location: Location, key: &[u8]) -> bool {
        self.rows.at(location).is_some_and(|version| self.has_primary(&version, key))
    }

    /// Reads a key of a batch again, if the reader does not see its newest version, or if another row shares
    /// its hash.
    #[inline(never)]
    fn read_single(&self, key: &[u8], hash: u64, snapshot: CommitNumber, own: Option<TransactionId>) -> &[u8] {
        self.read_primary(key, hash, snapshot, own).map_or(&[], |(_, version)| version.stored())
    }

    /// The row of a non-empty image from [`PartitionStore::read_batch`]. `scratch` receives the whole image
    /// if long values must be fetched.
    #[inline(always)]
    pub fn view_stored<'a>(&'a self, stored: &'a [u8], scratch: &'a mut Vec<u8>) -> RowView<'a> {
        RowView::new(self.format(), self.rows.whole(stored, scratch))
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

    /// The state of a row's newest version.
    #[inline]
    pub fn newest_state(&self, row: RowId) -> Option<VersionState> {
        self.rows.newest(row).map(|newest| self.rows.state(&newest))
    }

    /// Whether a version is committed, and with which number.
    #[inline]
    pub fn state(&self, version: &RowVersion<'_>) -> VersionState {
        self.rows.state(version)
    }

    /// The newest committed version of a row, deleted or not.
    #[inline]
    pub fn newest_committed(&self, row: RowId) -> Option<RowVersion<'_>> {
        self.rows.newest_committed(row)
    }

    /// All versions of a row, newest first.
    pub fn versions(&self, row: RowId) -> impl Iterator<Item = RowVersion<'_>> {
        self.rows.versions(row)
    }

    /// The row of a version that is not a deletion. `scratch` receives the image if long values must be
    /// fetched.
    #[inline]
    pub fn view<'a>(&'a self, version: &RowVersion<'a>, scratch: &'a mut Vec<u8>) -> RowView<'a> {
        RowView::new(self.format(), self.rows.image(version, scratch))
    }

    /// One past the largest row id in use.
    pub fn row_id_limit(&self) -> RowId {
        self.rows.map().end()
    }

    /// Whether the newest version of a row has this primary key and is not a deletion. Check it after waiting
    /// for the row's lock, because another row may have got the id in the meantime.
    pub fn is_row_of(&self, row: RowId, key: &[u8]) -> bool {
        self.newest_with_primary(row, key).is_some_and(|newest| !newest.is_deleted())
    }

    /// The newest version of a row, possibly a deletion, if the row has this primary key.
    #[inline(always)]
    fn newest_with_primary(&self, row: RowId, key: &[u8]) -> Option<RowVersion<'_>> {
        self.rows.newest(row).filter(|newest| self.is_of_primary(newest, key))
    }

    /// Whether a version, possibly a deletion, belongs to the row with this primary key.
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
        // A deletion has no key, but the version below it has.
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;

    use junctor_model::collation::CollationId;
    use junctor_model::id::StatementNumber;
    use junctor_model::key::append_value;
    use junctor_model::partition::HashedKey;
    use junctor_model::row::check_image;
    use junctor_model::schema::IndexKind;
    use junctor_model::types::DataType;
    use junctor_model::value::ValueRef;

    use super::*;
    use crate::page::{PAGE_BYTES, PagePool};
    use crate::partition_store::Writer;
    use crate::partition_store::sample::{INT, column, image, index, table};

    const INSERTING: TransactionId = TransactionId(1);
    const OPEN: TransactionId = TransactionId(2);
    const LATER: TransactionId = TransactionId(9);
    const ONE: StatementNumber = StatementNumber(1);
    /// Number of stored rows. The tests also look up the same number of keys that have no row.
    const STORED: usize = 30;

    /// A store whose keys have only three distinct hashes, with ten rows each: more than a bucket holds.
    struct Colliding {
        store: PartitionStore,
        keys: Vec<(Vec<u8>, u64)>,
    }

    impl Colliding {
        fn new(key_type: DataType) -> Colliding {
            let body = DataType::text_or_blob(4, CollationId::DEFAULT);
            let columns = vec![column("id", key_type.clone(), false), column("body", body, true)];
            let layout = table(columns, vec![index(0, IndexKind::Primary { ordered: true }, &[0])]);
            let pool = PagePool::new(8192 * PAGE_BYTES).expect("address space");
            let mut store = PartitionStore::new(Arc::clone(&layout), pool);
            let texts: Vec<String> = (0..2 * STORED).map(|number| format!("k{number}")).collect();
            let value = |number: usize| match key_type == INT {
                true => ValueRef::Int(number as i64 - 20),
                false => ValueRef::Bytes(texts[number].as_bytes()),
            };
            let key = |number: usize| {
                let mut key = Vec::new();
                append_value(key_type.key_part(), false, value(number), &mut key);
                (key, ((number as u64) << 40) | (number as u64 % 3))
            };
            let keys: Vec<(Vec<u8>, u64)> = (0..2 * STORED).map(key).collect();
            let long = vec![b'z'; 30_000];
            for (number, (key, hash)) in keys[..STORED].iter().enumerate() {
                let body = match number % 4 {
                    0 => ValueRef::Null,
                    1 => ValueRef::Bytes(&long),
                    _ => ValueRef::Bytes(b""),
                };
                let row = store
                    .insert(
                        HashedKey { hash: *hash, key },
                        &image(&layout, &[value(number), body]),
                        Writer { transaction: INSERTING, statement: ONE },
                    )
                    .unwrap();
                store.commit(row, INSERTING, CommitNumber(1));
            }
            for (number, (key, hash)) in keys[..STORED].iter().enumerate() {
                let row = store.find_primary(key, *hash).unwrap();
                let changed = |body| image(&layout, &[value(number), ValueRef::Bytes(body)]);
                match number % 5 {
                    0 => store.update(row, &changed(b"open"), Writer { transaction: OPEN, statement: ONE }).unwrap(),
                    1 => store.delete(row, Writer { transaction: OPEN, statement: ONE }).unwrap(),
                    2 => store
                        .update(row, &changed(b"committed"), Writer { transaction: LATER, statement: ONE })
                        .unwrap(),
                    3 => store.delete(row, Writer { transaction: LATER, statement: ONE }).unwrap(),
                    _ => {}
                }
                if matches!(number % 5, 2 | 3) {
                    store.commit(row, LATER, CommitNumber(5));
                }
            }
            Colliding { store, keys }
        }

        /// Returns the number of rows that a reader finds in one batch. Checks that each equals the result of
        /// a single read.
        fn found(&self, snapshot: u64, own: Option<TransactionId>) -> usize {
            let mut images = Batch::new();
            let wanted_keys = self.keys.iter().map(|(key, hash)| (&key[..], *hash));
            self.store.read_batch(wanted_keys, CommitNumber(snapshot), own, &mut images);
            assert_eq!(images.len(), self.keys.len());
            for ((key, hash), stored) in self.keys.iter().zip(&images) {
                let single = self.store.read_primary(key, *hash, CommitNumber(snapshot), own);
                assert_eq!(single.map_or(&[][..], |(_, version)| version.stored()), *stored);
                if !stored.is_empty() {
                    let mut scratch = Vec::new();
                    let view = self.store.view_stored(stored, &mut scratch);
                    assert!(check_image(view.format(), view.image()));
                }
            }
            images.iter().filter(|stored| !stored.is_empty()).count()
        }
    }

    #[test]
    fn a_batch_of_keys_with_equal_hashes_finds_each_readers_rows() {
        let name = DataType::varchar(40, CollationId::DEFAULT);
        for key_type in [INT, name] {
            let colliding = Colliding::new(key_type.clone());
            // Of every five rows, one has an uncommitted deletion and one a deletion by commit 5.
            for (snapshot, own, count) in [
                (0, None, 0),
                (0, Some(OPEN), 6),
                (1, None, 30),
                (1, Some(OPEN), 24),
                (4, Some(INSERTING), 30),
                (5, None, 24),
                (5, Some(INSERTING), 24),
                (5, Some(OPEN), 18),
            ] {
                assert_eq!(colliding.found(snapshot, own), count, "{key_type:?}, snapshot {snapshot}, {own:?}");
            }
        }
    }
}
