//! Scans: by an ordered index in key order, and by row id.

use std::borrow::Cow;
use std::ops::{Bound, ControlFlow};

use junctor_model::id::{CommitNumber, IndexId, RowId, TransactionId};
use junctor_model::key::complement_descending;
use junctor_model::row::RowView;

use super::{LocalIndex, PartitionStore, Reader};
use crate::index::{Direction, RangeBounds};
use crate::invariant::require;
use crate::row::RowVersion;

/// A range of an index, the direction of the scan, and how far one call scans.
#[derive(Clone, Copy, Debug)]
pub struct ScanRange<'a> {
    /// An ordered index of the table.
    pub index: IndexId,
    /// The range of keys.
    pub bounds: RangeBounds<'a>,
    /// Ascending or descending key order.
    pub direction: Direction,
    /// Maximum number of index entries that one call examines.
    pub budget_entries: usize,
}

/// The position of a scan: after this key and row. A default cursor is before the first entry.
#[derive(Clone, Debug, Default)]
pub struct ScanCursor {
    /// The key of the last entry examined.
    pub key: Vec<u8>,
    /// The row of the last entry examined; `None` before the first.
    pub row: Option<RowId>,
}

/// Why a scan returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// The range has no further entries.
    Exhausted,
    /// The budget is used up; the cursor has the position to continue from.
    Budget,
    /// The visitor stopped the scan at the row in the cursor.
    Stopped,
}

/// Which versions a scan examines.
#[derive(Clone, Copy)]
enum Visibility {
    /// Versions committed up to a number, and those of the reader's own transaction.
    Snapshot(Reader),
    /// The newest versions, committed or not.
    Writer(TransactionId),
}

/// The key of an index entry, as the tree stores it.
#[derive(Clone, Copy)]
struct EntryKey<'a> {
    index: &'a LocalIndex,
    key: &'a [u8],
}

/// Buffers of one scan.
#[derive(Default)]
struct ScanScratch {
    image: Vec<u8>,
    whole_key: Vec<u8>,
}

impl PartitionStore {
    /// Calls `visit` for each row of the range that the reader sees, in key order. Each row is visited once,
    /// under the key of the version that the reader sees. `None` if the index does not exist here or is being
    /// built.
    pub fn scan(
        &self,
        range: ScanRange<'_>,
        cursor: &mut ScanCursor,
        reader: Reader,
        visit: impl FnMut(RowId, RowView<'_>) -> ControlFlow<()>,
    ) -> Option<ScanEnd> {
        self.scan_with(range, cursor, Visibility::Snapshot(reader), visit)
    }

    /// Like [`Self::scan`], for a writer. It also visits rows that have an uncommitted version of another
    /// transaction with the key, so that the writer can wait for them. The caller must reread the row under
    /// its lock.
    pub fn scan_for_write(
        &self,
        range: ScanRange<'_>,
        cursor: &mut ScanCursor,
        own: TransactionId,
        visit: impl FnMut(RowId, RowView<'_>) -> ControlFlow<()>,
    ) -> Option<ScanEnd> {
        self.scan_with(range, cursor, Visibility::Writer(own), visit)
    }

    #[inline]
    fn scan_with(
        &self,
        range: ScanRange<'_>,
        cursor: &mut ScanCursor,
        visibility: Visibility,
        mut visit: impl FnMut(RowId, RowView<'_>) -> ControlFlow<()>,
    ) -> Option<ScanEnd> {
        let entry = self.ordered.iter().find(|entry| entry.id == range.index && entry.is_complete)?;
        // The index stores only the first bytes of a very long key, so it cannot decide such a bound exactly.
        let is_long =
            |bound| matches!(bound, Bound::Included(key) | Bound::Excluded(key) if entry.tree.truncated(key) != key);
        let check_bounds = is_long(range.bounds.lower) || is_long(range.bounds.upper);
        let mut budget = range.budget_entries;
        let mut end = ScanEnd::Exhausted;
        let mut last = ScanCursor::default();
        let mut scratch = ScanScratch::default();
        let start_after = cursor.row.map(|row| (&cursor.key[..], row));
        let flow = entry.tree.scan(range.bounds, range.direction, start_after, |key, row| {
            if budget == 0 {
                end = ScanEnd::Budget;
                return ControlFlow::Break(());
            }
            budget -= 1;
            let accepted = self.accept(EntryKey { index: entry, key }, row, visibility, &mut scratch);
            let is_stopped = match accepted {
                Some(view) if !check_bounds || self.lies_within(entry, (key, view), range.bounds) => {
                    visit(row, view).is_break()
                }
                _ => false,
            };
            if is_stopped {
                end = ScanEnd::Stopped;
            }
            if is_stopped || budget == 0 {
                // The position to continue from. The next entry, if any, ends the scan.
                last.key.clear();
                last.key.extend_from_slice(key);
                last.row = Some(row);
            }
            if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        require!(
            flow.is_break() == (end != ScanEnd::Exhausted),
            "a scan that breaks off has entries left, and one that does not has none"
        );
        if last.row.is_some() {
            *cursor = last;
        }
        Some(end)
    }

    /// Calls `visit` for each row that the reader sees, by row id from `from` on. Examines at most
    /// `budget_rows` ids. Returns the id to continue with; `None` at the end. If the visitor stops the scan,
    /// the last row counts as visited.
    pub fn scan_rows(
        &self,
        from: RowId,
        reader: Reader,
        budget_rows: usize,
        visit: impl FnMut(RowId, RowView<'_>) -> ControlFlow<()>,
    ) -> Option<RowId> {
        self.scan_rows_with(from, Visibility::Snapshot(reader), budget_rows, visit)
    }

    /// Calls `visit` for each row that two snapshots see differently: with its versions in the earlier one
    /// and in the later one. Both snapshots must be active. Examines and continues like [`Self::scan_rows`].
    pub fn scan_changes(
        &self,
        from: RowId,
        (since, until): (CommitNumber, CommitNumber),
        budget_rows: usize,
        mut visit: impl FnMut(Option<RowView<'_>>, Option<RowView<'_>>) -> ControlFlow<()>,
    ) -> Option<RowId> {
        let (mut old_image, mut new_image) = (Vec::new(), Vec::new());
        let end = self.row_id_limit().0;
        let stop = u64::from(from.0).saturating_add(budget_rows as u64).min(u64::from(end)) as u32;
        for row in (from.0..stop).map(RowId) {
            let Some(newest) = self.rows.newest(row) else { continue };
            if newest.is_seen_by(since, None) {
                continue;
            }
            let new = self.rows.visible_from(newest, until, None);
            let is_old = |version: &RowVersion<'_>| self.rows.is_committed_within(version, since);
            let old = match &new {
                Some(version) if is_old(version) => continue,
                _ => self.rows.visible_from(newest, since, None),
            };
            if old.is_none() && new.is_none() {
                continue;
            }
            let old = old.map(|version| self.view(&version, &mut old_image));
            let new = new.map(|version| self.view(&version, &mut new_image));
            if visit(old, new).is_break() {
                return (row.0 + 1 < end).then_some(RowId(row.0 + 1));
            }
        }
        (stop < end).then_some(RowId(stop))
    }

    /// Like [`Self::scan_rows`], for a writer: it also visits rows that other transactions have inserted but
    /// not committed.
    pub fn scan_rows_for_write(
        &self,
        from: RowId,
        own: TransactionId,
        budget_rows: usize,
        visit: impl FnMut(RowId, RowView<'_>) -> ControlFlow<()>,
    ) -> Option<RowId> {
        self.scan_rows_with(from, Visibility::Writer(own), budget_rows, visit)
    }

    #[inline]
    fn scan_rows_with(
        &self,
        from: RowId,
        visibility: Visibility,
        budget_rows: usize,
        mut visit: impl FnMut(RowId, RowView<'_>) -> ControlFlow<()>,
    ) -> Option<RowId> {
        let mut scratch = Vec::new();
        let end = self.row_id_limit().0;
        let stop = u64::from(from.0).saturating_add(budget_rows as u64).min(u64::from(end)) as u32;
        for row in (from.0..stop).map(RowId) {
            let Some(newest) = self.rows.newest(row) else { continue };
            let Some(version) = self.candidate(newest, visibility) else { continue };
            if visit(row, self.view(&version, &mut scratch)).is_break() {
                return (row.0 + 1 < end).then_some(RowId(row.0 + 1));
            }
        }
        (stop < end).then_some(RowId(stop))
    }

    /// The version that the reader sees of an index entry's row, if it has the entry's key.
    #[inline(always)]
    fn accept<'a>(
        &'a self,
        entry: EntryKey<'_>,
        row: RowId,
        visibility: Visibility,
        scratch: &'a mut ScanScratch,
    ) -> Option<RowView<'a>> {
        let newest = self.rows.newest(row)?;
        let version = self.candidate(newest, visibility)?;
        // A row with one version has exactly that version's entries, so the key need not be compared.
        if newest.older().is_none() {
            return Some(RowView::new(self.format(), self.rows.image(&version, &mut scratch.image)));
        }
        self.accept_one_of_several(entry, (newest, version), visibility, scratch)
    }

    #[inline(never)]
    fn accept_one_of_several<'a>(
        &'a self,
        entry: EntryKey<'_>,
        (newest, mut version): (RowVersion<'a>, RowVersion<'a>),
        visibility: Visibility,
        scratch: &'a mut ScanScratch,
    ) -> Option<RowView<'a>> {
        // The row has several versions, and the entry may belong to another one.
        if !self.has_key(entry, &version, scratch) {
            let Visibility::Writer(own) = visibility else { return None };
            // The entry may belong to the committed version below another transaction's uncommitted version.
            version = self.rows.visible_from(newest, CommitNumber(u64::MAX), Some(own))?;
            if !self.has_key(entry, &version, scratch) {
                return None;
            }
        }
        Some(RowView::new(self.format(), self.rows.image(&version, &mut scratch.image)))
    }

    /// The version of a row to examine first.
    #[inline(always)]
    fn candidate<'a>(&'a self, newest: RowVersion<'a>, visibility: Visibility) -> Option<RowVersion<'a>> {
        match visibility {
            Visibility::Snapshot(reader) => self.rows.visible_from(newest, reader.snapshot, reader.own),
            Visibility::Writer(_) if !newest.is_deleted() => Some(newest),
            Visibility::Writer(own) => self.rows.visible_from(newest, CommitNumber(u64::MAX), Some(own)),
        }
    }

    #[inline]
    fn has_key(&self, entry: EntryKey<'_>, version: &RowVersion<'_>, scratch: &mut ScanScratch) -> bool {
        let ScanScratch { image, whole_key } = scratch;
        let LocalIndex { shape, tree, .. } = entry.index;
        let view = RowView::new(self.format(), self.rows.image(version, image));
        if shape.is_multi_valued() {
            let mut is_found = false;
            shape.for_each_key(self.definitions(), view, whole_key, |key| is_found |= tree.truncated(key) == entry.key);
            return is_found;
        }
        whole_key.clear();
        shape.append(self.definitions(), view, whole_key);
        tree.truncated(whole_key) == entry.key
    }

    /// Whether a key of the row that the index stores as this entry lies within the bounds.
    #[cold]
    fn lies_within(&self, entry: &LocalIndex, (stored, view): (&[u8], RowView<'_>), bounds: RangeBounds<'_>) -> bool {
        let mut is_within = false;
        entry.shape.for_each_key(self.definitions(), view, &mut Vec::new(), |key| {
            is_within |= entry.tree.truncated(key) == stored && bounds.contains(key);
        });
        is_within
    }

    /// A primary key in the form of the entries of its ordered index, if it has one: descending parts are
    /// complemented there.
    pub fn ordered_primary_key<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        let primary = self.layout().definition.primary();
        let mut key = Cow::Borrowed(key);
        if !primary.attributes.descending.is_empty() && self.ordered.iter().any(|entry| entry.id == primary.id) {
            complement_descending(self.definitions(), primary, key.to_mut());
        }
        key
    }

    /// Calls `visit` with each key of the row in an index of this partition: one, or any number of keys in a
    /// multi-valued index. Returns false if the index does not exist here. `key` is working memory.
    pub fn for_each_index_key(
        &self,
        index: IndexId,
        row: RowView<'_>,
        key: &mut Vec<u8>,
        visit: impl FnMut(&[u8]),
    ) -> bool {
        let Some(entry) = self.ordered.iter().find(|entry| entry.id == index) else { return false };
        entry.shape.for_each_key(self.definitions(), row, key, visit);
        true
    }

    /// Whether a row can have several entries in an index, or none.
    pub fn is_multi_valued(&self, index: IndexId) -> bool {
        self.ordered.iter().any(|entry| entry.id == index && entry.shape.is_multi_valued())
    }
}
