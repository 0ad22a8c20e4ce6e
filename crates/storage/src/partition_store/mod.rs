//! One partition: its rows, the hash index of the primary key and the ordered indexes, kept consistent with
//! each other.
//!
//! The store is plain owned data: readers need `&self` and the owner `&mut self`. The partition guard grants
//! these. An operation that fails has no effect: it first reserves all the memory that it may need, and after
//! that nothing can fail.

mod check;
mod checkpoint;
mod commit;
mod copy;
mod digest;
mod index_change;
mod purge;
mod read;
mod remove_version;
mod replay;
mod scan;
mod write;

pub use checkpoint::{CheckpointCursor, CheckpointStep};
pub use copy::CopyError;
pub use purge::PurgeProgress;
pub use read::Batch;
pub use replay::{IndexRebuild, ReplayError};
pub use scan::{ScanCursor, ScanEnd, ScanRange};
pub use write::WriteError;

use checkpoint::CheckpointedPages;

pub use crate::row::{Reader, VersionState, Writer};

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use junctor_model::id::{CommitNumber, IndexId, RowId, TransactionId};
use junctor_model::key::KeyPart;
use junctor_model::row::{RowFormat, RowView};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, TableLayout};

use crate::index::{HashIndex, KeyShape, OrderedIndex, RowKeys};
use crate::page::PagePool;
use crate::row::{RowStore, RowVersion};

/// The rows and indexes of one partition.
#[derive(Debug)]
pub struct PartitionStore {
    layout: Arc<TableLayout>,
    pool: Arc<PagePool>,
    rows: RowStore,
    hash: HashIndex,
    primary: KeyShape,
    ordered: Vec<LocalIndex>,
    /// Rows with a version that a later commit superseded, by the number of that commit.
    purge_queue: VecDeque<(CommitNumber, RowId)>,
    /// Rows of committed transactions whose versions are not stamped yet, in the order of the commits.
    stamping: VecDeque<StampList>,
    /// The highest horizon of a purge so far. No snapshot below it is in use.
    purge_horizon: CommitNumber,
    /// The highest commit number that was applied here since the node started.
    newest_commit: CommitNumber,
    /// Snapshots below this floor cannot be read here any more, because versions that they need were given
    /// up.
    snapshot_floor: CommitNumber,
    /// The same for versions that a copy of the rows has left out. Unlike the other floor, it lets purge
    /// nothing.
    copy_floor: CommitNumber,
    /// The number of the rows that are being copied from another replica.
    copied_at: Option<CommitNumber>,
    /// Cache of recently purged rows with long version chains, each with the commit number of the oldest
    /// version that was kept.
    purged_deep: Box<[(RowId, CommitNumber)]>,
    /// Rows whose newest stamped version is not a deletion. A long transaction changes it with its stamps.
    live_rows: u64,
    /// Whether recovery has put rows whose index entries are missing.
    is_replaying: bool,
    /// Rows that were missing when replay met edits of them, and that no later operation has put or deleted.
    without_base: BTreeSet<RowId>,
    checkpointed: CheckpointedPages,
    scratch: Scratch,
}

/// The rows of one committed transaction that wait for their stamps.
#[derive(Debug)]
struct StampList {
    transaction: TransactionId,
    number: CommitNumber,
    /// May name a row several times, and rows that a writer or a purge has stamped already.
    rows: Vec<RowId>,
    /// The first row that is not examined yet.
    next: usize,
}

/// Counts and sizes of one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionStatistics {
    /// Rows whose newest committed version is not a deletion. Rows of a long transaction count with a delay.
    pub live_rows: u64,
    /// Versions of all rows, uncommitted versions and deletions included.
    pub versions: u64,
    /// Entries of the purge queue.
    pub purge_queue: u64,
    /// Rows of committed transactions that wait for their stamps.
    pub unstamped: u64,
    /// Bytes of pages with row versions.
    pub row_bytes: u64,
    /// Bytes of the map from row ids to locations.
    pub row_map_bytes: u64,
    /// Bytes of overflow pages.
    pub overflow_bytes: u64,
    /// Bytes of the hash index.
    pub hash_bytes: u64,
    /// Bytes of all ordered indexes.
    pub ordered_bytes: u64,
}

#[derive(Debug)]
struct LocalIndex {
    id: IndexId,
    shape: KeyShape,
    tree: OrderedIndex,
    /// Whether every row has its entries; false while the index is being built.
    is_complete: bool,
}

/// Maximum number of bytes that a buffer of the writer keeps between writes.
pub(crate) const SCRATCH_BYTES_KEPT: usize = 256 * 1024;

/// Buffers of the writer, kept so that a write allocates nothing.
#[derive(Debug, Default)]
struct Scratch {
    image: Vec<u8>,
    other_image: Vec<u8>,
    key: Vec<u8>,
    other_key: Vec<u8>,
    /// The keys that a write adds, one after another.
    added_keys: Vec<u8>,
    /// For each added key: the position of its index in `ordered`, and the end of the key in `added_keys`.
    added: Vec<(usize, usize)>,
    /// Keys of a row and of another version in a multi-valued index.
    row_keys: RowKeys,
    other_keys: RowKeys,
}

impl PartitionStore {
    /// An empty partition of a table. It takes no page before the first row.
    pub fn new(layout: Arc<TableLayout>, pool: Arc<PagePool>) -> PartitionStore {
        let primary = KeyShape::new(&layout.definition.columns, &layout.definition.primary().columns);
        let mut store = PartitionStore {
            rows: RowStore::new(Arc::clone(&pool)),
            hash: HashIndex::new(Arc::clone(&pool)),
            primary,
            ordered: Vec::new(),
            purge_queue: VecDeque::new(),
            stamping: VecDeque::new(),
            purge_horizon: CommitNumber(0),
            newest_commit: CommitNumber(0),
            snapshot_floor: CommitNumber(0),
            copy_floor: CommitNumber(0),
            copied_at: None,
            purged_deep: Box::default(),
            live_rows: 0,
            is_replaying: false,
            without_base: BTreeSet::new(),
            checkpointed: CheckpointedPages::default(),
            scratch: Scratch::default(),
            pool,
            layout: Arc::clone(&layout),
        };
        // Adds the table's ordered indexes. They are complete, because no row exists.
        store.replace_layout(layout);
        store
    }

    /// The table's definition and row format.
    #[inline]
    pub fn layout(&self) -> &Arc<TableLayout> {
        &self.layout
    }

    /// The format of row images.
    #[inline]
    pub fn format(&self) -> &RowFormat {
        &self.layout.row_format
    }

    /// The lowest snapshot that can still be read here.
    #[inline]
    pub fn snapshot_floor(&self) -> CommitNumber {
        self.snapshot_floor.max(self.copy_floor)
    }

    /// Counts and sizes for the status tables.
    pub fn statistics(&self) -> PartitionStatistics {
        let (row_bytes, row_map_bytes, overflow_bytes) = self.rows.bytes();
        PartitionStatistics {
            live_rows: self.live_rows,
            versions: self.rows.version_count(),
            purge_queue: self.purge_queue.len() as u64,
            unstamped: self.stamping.iter().map(|list| (list.rows.len() - list.next) as u64).sum(),
            row_bytes,
            row_map_bytes,
            overflow_bytes,
            hash_bytes: self.hash.bytes(),
            ordered_bytes: self.ordered.iter().map(|entry| entry.tree.bytes()).sum(),
        }
    }

    fn definitions(&self) -> &[ColumnDefinition] {
        &self.layout.definition.columns
    }
}

impl Scratch {
    /// Frees the memory that very long rows have left behind.
    #[inline]
    fn trim(&mut self) {
        for buffer in [&mut self.image, &mut self.other_image] {
            if buffer.capacity() > SCRATCH_BYTES_KEPT {
                *buffer = Vec::new();
            }
        }
        self.row_keys.trim(SCRATCH_BYTES_KEPT);
        self.other_keys.trim(SCRATCH_BYTES_KEPT);
    }
}

impl PartitionStatistics {
    /// Bytes of all pages in use.
    pub fn total_bytes(&self) -> u64 {
        self.row_bytes + self.row_map_bytes + self.overflow_bytes + self.hash_bytes + self.ordered_bytes
    }
}

impl LocalIndex {
    fn new(definition: &IndexDefinition, columns: &[ColumnDefinition], pool: Arc<PagePool>) -> LocalIndex {
        // The bound decides the node size. A key that exceeds it is truncated, not refused.
        let bytes = definition.columns.iter().map(|column| key_bytes_max(&columns[usize::from(column.0)])).sum();
        LocalIndex {
            id: definition.id,
            shape: KeyShape::of_index(columns, definition),
            tree: OrderedIndex::new(pool, bytes),
            is_complete: true,
        }
    }

    /// Collects the keys of a row, as the tree stores them: sorted and distinct. `key` is working memory.
    fn keys_of(&self, columns: &[ColumnDefinition], row: RowView<'_>, key: &mut Vec<u8>, keys: &mut RowKeys) {
        keys.clear();
        self.shape.for_each_key(columns, row, key, |key| keys.push(self.tree.truncated(key)));
        keys.sort();
    }
}

/// The row of a version, as far as the key columns of `shape` need it. `scratch` receives the image if that
/// must be reassembled.
#[inline]
fn key_view<'a>(
    rows: &'a RowStore,
    format: &'a RowFormat,
    shape: &KeyShape,
    version: &RowVersion<'a>,
    scratch: &'a mut Vec<u8>,
) -> RowView<'a> {
    // Columns of the fixed part have the same offsets in a stored image whose long values are in overflow
    // pages.
    let image = if shape.is_fixed() { version.stored() } else { rows.image(version, scratch) };
    RowView::new(format, image)
}

/// Maximum number of bytes of a column's part of a key. A character has at most 18 weights of two bytes.
fn key_bytes_max(column: &ColumnDefinition) -> usize {
    const WEIGHT_BYTES_PER_CHARACTER_MAX: usize = 36;
    if let Some(list) = column.key_list() {
        // A byte of an element may be escaped.
        return 3 + 2 * usize::from(list.element_bytes);
    }
    match column.column_type.key_part() {
        KeyPart::Integer { bytes, .. } => 1 + usize::from(bytes),
        KeyPart::Double => 1 + 8,
        KeyPart::Encoded(form) => 1 + form.bytes(),
        KeyPart::Text(_) => {
            let length = column.column_type.length().min(u16::MAX.into()) as usize;
            3 + length * WEIGHT_BYTES_PER_CHARACTER_MAX
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod sample;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
