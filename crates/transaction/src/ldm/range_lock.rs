//! Range locks: they keep new keys out of the ranges that a locking read or a change has scanned.

use std::collections::BTreeSet;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{CommitNumber, IndexId, PartitionId, RowId, TransactionId};
use junctor_model::row::RowView;
use junctor_signals::input::HashedKey;
use junctor_signals::program::{self, WriteAction, WriteProgram};
use junctor_signals::write_rows::WriteRows;
use junctor_storage::index::RangeBounds;
use junctor_storage::lock::{IndexPartition, LockMode, LockTable, NewKey, WaiterId, WaiterToken};
use junctor_storage::partition_store::PartitionStore;

use super::change_rows::lock_table_full;

/// Locks a range for the request's transaction, in the mode of the request's program. Does nothing if the
/// transaction locks no ranges.
///
/// # Errors
/// 1206 when the lock table is full.
pub(super) fn lock_range(
    locks: &mut LockTable,
    request: &WriteRows,
    index: IndexId,
    bounds: RangeBounds<'_>,
) -> Result<()> {
    let place = IndexPartition { partition: request.partition, index };
    let mode = mode_of(&request.program);
    locks.lock_range(place, bounds, request.transaction, mode).map_err(lock_table_full)
}

/// The mode in which a write locks rows.
#[inline]
pub(super) fn mode_of(program: &WriteProgram) -> LockMode {
    match &program.action {
        WriteAction::LockRead { mode: program::LockMode::Shared, .. } => LockMode::Shared,
        _ => LockMode::Exclusive,
    }
}

/// If a key of the new row falls into a range that another transaction has locked, registers a wait and
/// returns the waiter.
#[cold]
pub(super) fn register_insert_wait(
    locks: &mut LockTable,
    store: &PartitionStore,
    (partition, transaction, token): (PartitionId, TransactionId, WaiterToken),
    key: HashedKey<'_>,
    image: &[u8],
) -> Option<WaiterId> {
    let row = store.find_primary(key.key, key.hash).and_then(|row| store.newest(row));
    if row.is_some_and(|newest| !newest.is_deleted()) {
        // The key exists, so the insert fails as a duplicate.
        return None;
    }
    let primary = store.layout().definition.primary().id;
    let view = RowView::new(store.format(), image);
    let (mut keys, mut memory): (Vec<NewKey>, Vec<u8>) = Default::default();
    for index in locks.locked_indexes(partition) {
        let has_index = store.for_each_index_key(index, view, &mut memory, |key| keys.push((index, key.into())));
        if !has_index && index == primary {
            // The primary key has no ordered index.
            keys.push((index, key.key.into()));
        }
    }
    wait(locks, partition, keys, transaction, token)
}

/// If an index key of the new image differs from that of the newest version, and falls into a range that
/// another transaction has locked, registers a wait and returns the waiter.
#[cold]
pub(super) fn register_update_wait(
    locks: &mut LockTable,
    store: &PartitionStore,
    (partition, transaction, token): (PartitionId, TransactionId, WaiterToken),
    row: RowId,
    image: &[u8],
) -> Option<WaiterId> {
    let newest = store.newest(row).filter(|newest| !newest.is_deleted())?;
    let primary = store.layout().definition.primary().id;
    let mut scratch = Vec::new();
    let (old, new) = (store.view(&newest, &mut scratch), RowView::new(store.format(), image));
    let (mut keys, mut memory): (Vec<NewKey>, Vec<u8>) = Default::default();
    for index in locks.locked_indexes(partition).filter(|index| *index != primary) {
        let mut old_keys = BTreeSet::new();
        store.for_each_index_key(index, old, &mut memory, |key| _ = old_keys.insert(key.to_vec()));
        store.for_each_index_key(index, new, &mut memory, |key| {
            if !old_keys.contains(key) {
                keys.push((index, key.into()));
            }
        });
    }
    wait(locks, partition, keys, transaction, token)
}

fn wait(
    locks: &mut LockTable,
    partition: PartitionId,
    mut keys: Vec<NewKey>,
    transaction: TransactionId,
    token: WaiterToken,
) -> Option<WaiterId> {
    let is_blocked = |(index, key): &NewKey| {
        locks.is_range_locked_by_other(IndexPartition { partition, index: *index }, key, transaction)
    };
    if !keys.iter().any(is_blocked) {
        return None;
    }
    keys.shrink_to_fit();
    Some(locks.wait_for_ranges(partition, keys, transaction, token))
}

/// Refuses a row that a commit after the transaction's snapshot has changed: error 1020.
#[inline]
pub(super) fn check_unchanged(store: &PartitionStore, row: RowId, changed_after: CommitNumber) -> Result<()> {
    if is_changed(store, row, changed_after) { Err(record_changed(store)) } else { Ok(()) }
}

/// Whether a commit after the snapshot `changed_after` has changed a row. Always false if `changed_after` is
/// 0.
#[inline]
pub(super) fn is_changed(store: &PartitionStore, row: RowId, changed_after: CommitNumber) -> bool {
    if changed_after.0 == 0 {
        return false;
    }
    let newest = store.newest_committed(row).and_then(|newest| store.state(&newest).commit_number());
    newest.is_some_and(|newest| newest > changed_after)
}

#[cold]
pub(super) fn record_changed(store: &PartitionStore) -> Box<Error> {
    let table = &store.layout().definition.name;
    let message = format!("Record has changed since last read in table '{table}'; try restarting transaction");
    Error::new(ErrorCode::RecordChanged, message)
}
