//! Hot path: at most 80 instructions per row, not counting storage.
//!
//! Changes under the guard: rows of a batch, whose locks are held, and inserts, which lock the rows that they
//! create.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{RowId, StatementNumber, TransactionId};
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_model::row::RowView;
use junctor_model::schema::TableKind;
use junctor_signals::input::{HashedKey, InputReader};
use junctor_signals::program::WriteAction;
use junctor_storage::lock::{LockKey, LockMode, LockReply, LockTable, LockTableFull, WaiterId, WaiterToken};
use junctor_storage::page::OutOfMemory;
use junctor_storage::partition_store::{PartitionStore, WriteError, Writer};
use junctor_storage::row::{RowVersion, VersionState};

use super::block::LdmBlock;
use super::range_lock::{is_changed, record_changed, register_insert_wait, register_update_wait};
use super::state::{RowChange, TouchedRow, WriteWork};
use super::unique_entry;
use super::write_rows::StepEnd;

/// The borrowed state of one insert.
struct Inserter<'a> {
    work: &'a mut WriteWork,
    locks: &'a mut LockTable,
    touched: &'a mut Vec<TouchedRow>,
    token: WaiterToken,
    granted: &'a mut Vec<WaiterToken>,
}

enum Inserted {
    Row,
    /// The same unique entry exists for the same row, because an index backfill and a writer of the table may
    /// both insert it.
    Same,
    Waiting(WaiterId),
}

impl LdmBlock {
    /// Applies the changes of the batch under the guard.
    pub(super) fn write_batch(&mut self, work: &mut WriteWork) -> Result<StepEnd> {
        let LdmBlock { partitions, locks, participants, waits, .. } = self;
        let Some(slot) = partitions.get_mut(work.slot) else { return Err(Error::table_definition_changed()) };
        let Some(participant) = participants.get_mut(work.participant) else {
            return Err(Error::table_definition_changed());
        };
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else { return Ok(StepEnd::Busy) };
        let (transaction, statement) = (work.request.transaction, work.request.statement);
        participant.begin_write(statement);
        let touched = &mut participant.rows;
        let (first, savepoint) = (work.request.first, work.request.savepoint);
        let partition = work.request.partition;
        while let Some(change) = work.batch.changes.get(work.batch.done).cloned() {
            if let RowChange::Update { row, image } = &change
                && locks.has_ranges(partition)
            {
                let (image, asking) = (&work.batch.bytes[image.clone()], (partition, transaction, waits.next_token()));
                if let Some(waiter) = register_update_wait(locks, &store, asking, *row, image) {
                    return Ok(StepEnd::Waiting(waiter));
                }
            }
            let written = match &change {
                RowChange::Update { row, image } => {
                    let image = &work.batch.bytes[image.clone()];
                    let updated = store.update(*row, image, Writer { transaction, statement });
                    if first.0 > 1 && updated.is_ok() {
                        store.drop_unreachable(*row, transaction, first, savepoint);
                    }
                    updated.map(|()| *row)
                }
                RowChange::Delete { row } => store.delete(*row, Writer { transaction, statement }).map(|()| *row),
                RowChange::Rekey { row, hash, key, image } => {
                    let bytes = std::mem::take(&mut work.batch.bytes);
                    let key = HashedKey { hash: *hash, key: &bytes[key.clone()] };
                    let token = waits.next_token();
                    let mut inserter = Inserter { work, locks, touched, token, granted: &mut waits.granted_now };
                    let inserted = inserter.insert(&mut store, key, &bytes[image.clone()]);
                    work.batch.bytes = bytes;
                    if let Inserted::Waiting(waiter) = inserted? {
                        return Ok(StepEnd::Waiting(waiter));
                    }
                    store.delete(*row, Writer { transaction, statement }).map(|()| *row)
                }
            };
            match written {
                Ok(row) => touched.push(TouchedRow { slot: work.slot, row, statement }),
                // The statement names the row twice, and its first change deleted the row.
                Err(WriteError::NotFound) => {}
                Err(error) => return Err(write_failed(error, work)),
            }
            work.batch.done += 1;
        }
        drop(store);
        participant.written_bytes += work.batch.bytes.len() + work.batch.key_bytes;
        self.waits.queue_granted();
        Ok(if work.is_exhausted { StepEnd::Done } else { StepEnd::More })
    }

    /// Inserts as many rows of the input as one acquisition of the guard allows.
    pub(super) fn insert_batch(&mut self, work: &mut WriteWork) -> Result<StepEnd> {
        let LdmBlock { partitions, locks, participants, waits, .. } = self;
        let Some(slot) = partitions.get_mut(work.slot) else { return Err(Error::table_definition_changed()) };
        let Some(participant) = participants.get_mut(work.participant) else {
            return Err(Error::table_definition_changed());
        };
        let Some(mut store) = slot.guard.try_enter(&mut slot.token) else { return Ok(StepEnd::Busy) };
        participant.begin_write(work.request.statement);
        let input = std::mem::take(&mut work.request.input);
        let mut reader = InputReader::new(&input);
        reader.seek(work.item);
        let start = work.item;
        let mut end = Ok(StepEnd::More);
        for _ in 0..ROWS_PER_HOLD_MAX {
            let Some(row) = reader.next_image() else {
                end = Ok(StepEnd::Done);
                break;
            };
            let token = waits.next_token();
            let mut inserter =
                Inserter { work, locks, touched: &mut participant.rows, token, granted: &mut waits.granted_now };
            match inserter.insert(&mut store, row.key, row.image) {
                Ok(Inserted::Row) => {
                    let program = &work.request.program;
                    let view = RowView::new(&program.table.row_format, row.image);
                    unique_entry::inserted(program, work.request.partition.index, view, &mut work.follow_ups);
                    work.changed += 1;
                }
                Ok(Inserted::Same) => {}
                Ok(Inserted::Waiting(waiter)) => {
                    end = Ok(StepEnd::Waiting(waiter));
                    break;
                }
                Err(error) => {
                    end = Err(error);
                    break;
                }
            }
            work.matched += 1;
            work.item = reader.position();
        }
        drop(store);
        participant.written_bytes += work.item - start;
        work.request.input = input;
        self.waits.queue_granted();
        end
    }
}

impl Inserter<'_> {
    /// Inserts a row. An existing key is an error only once the lock of its row is held, because the lock's
    /// holder may still remove the key.
    ///
    /// A new row takes no lock: its uncommitted version names its transaction. A transaction that wants the
    /// row first requests the lock on behalf of the inserter ([`lock_for_inserter`]) and then waits. An
    /// insert of a million rows therefore leaves the lock table empty.
    fn insert(&mut self, store: &mut PartitionStore, key: HashedKey<'_>, image: &[u8]) -> Result<Inserted> {
        let pending = self.work.pending_insert.take();
        let outcome = match self.wait_for_ranges(store, key, image) {
            Some(waiter) => Ok(Inserted::Waiting(waiter)),
            None => self.try_insert(store, key, image),
        };
        if let Some(row) = pending {
            self.release_unless_used(store, row, key);
        }
        outcome
    }

    /// If the row's keys fall into a range that another transaction has locked, registers a wait and returns
    /// the waiter.
    #[inline]
    fn wait_for_ranges(&mut self, store: &PartitionStore, key: HashedKey<'_>, image: &[u8]) -> Option<WaiterId> {
        let partition = self.work.request.partition;
        if !self.locks.has_ranges(partition) {
            return None;
        }
        register_insert_wait(self.locks, store, (partition, self.work.request.transaction, self.token), key, image)
    }

    fn try_insert(&mut self, store: &mut PartitionStore, key: HashedKey<'_>, image: &[u8]) -> Result<Inserted> {
        let (transaction, statement) = (self.work.request.transaction, self.work.request.statement);
        let inserted = store.insert(key, image, Writer { transaction, statement });
        match inserted {
            // The key may belong to a deleted row, whose deletion this insert depends on.
            Ok(row) => self.work.note_seen(store, store.versions(row).nth(1)),
            Err(WriteError::Duplicate(row)) => self.work.note_seen(store, store.newest(row)),
            Err(_) => {}
        }
        match inserted {
            Ok(row) if self.locks.is_free(self.key(row)) => {
                self.touched.push(TouchedRow { slot: self.work.slot, row, statement });
                Ok(Inserted::Row)
            }
            Ok(row) => match self.lock(row, LockMode::Exclusive) {
                Ok(None) => {
                    self.touched.push(TouchedRow { slot: self.work.slot, row, statement });
                    Ok(Inserted::Row)
                }
                // The new row got the id of a removed row whose lock is still held. Without that lock, remove
                // the new row.
                waiting_or_full => {
                    store.undo(row, transaction, StatementNumber(statement.0.saturating_sub(1)));
                    waiting_or_full.map(|waiter| waiter.map_or(Inserted::Row, Inserted::Waiting))
                }
            },
            Err(WriteError::Uncommitted(row)) => {
                lock_for_inserter(self.locks, self.key(row), store.newest_state(row), transaction, self.token)?;
                match self.lock(row, self.mode_behind_writer(store, row))? {
                    Some(waiter) => Ok(Inserted::Waiting(waiter)),
                    None => junctor_kernel::invariant::fail(
                        "the holder of a row lock made the uncommitted version",
                        format_args!("row {row}"),
                    ),
                }
            }
            Err(WriteError::Duplicate(row)) => {
                let asked = match self.work.request.program.action {
                    WriteAction::InsertOrClaim => LockMode::Exclusive,
                    _ => LockMode::Shared,
                };
                match self.lock(row, mode_of_writer(store.newest_state(row), transaction, asked))? {
                    Some(waiter) => Ok(Inserted::Waiting(waiter)),
                    None if is_changed(store, row, self.work.request.reading.changed_after) => {
                        Err(record_changed(store))
                    }
                    None if self.is_same_entry(store, row, image) => Ok(Inserted::Same),
                    None => {
                        let table = &self.work.request.program.table;
                        Err(unique_entry::duplicate_primary(&table.definition, RowView::new(&table.row_format, image)))
                    }
                }
            }
            Err(error) => Err(write_failed(error, self.work)),
        }
    }

    /// The mode in which to lock a row whose newest version belongs to another transaction. If that version
    /// is an update, the key exists however the transaction ends, and a shared lock is enough. Otherwise the
    /// key may become free, and several inserters with shared locks would deadlock.
    fn mode_behind_writer(&self, store: &PartitionStore, row: RowId) -> LockMode {
        let is_there = |version: &RowVersion<'_>| !version.is_deleted();
        let mut versions = store.versions(row).peekable();
        let was_there = versions.peek().is_some_and(is_there)
            && versions.find(|version| store.state(version).transaction().is_none()).as_ref().is_some_and(is_there);
        match self.work.request.program.action {
            WriteAction::Insert if was_there => LockMode::Shared,
            _ => LockMode::Exclusive,
        }
    }

    fn key(&self, row: RowId) -> LockKey {
        LockKey { partition: self.work.request.partition, row }
    }

    /// Requests the lock. Returns the waiter if the lock is not granted immediately.
    fn lock(&mut self, row: RowId, mode: LockMode) -> Result<Option<WaiterId>> {
        match self.locks.request(self.key(row), self.work.request.transaction, mode, self.token) {
            Ok(LockReply::Granted) => Ok(None),
            Ok(LockReply::Waiting(waiter)) => {
                self.work.pending_insert = Some(row);
                Ok(Some(waiter))
            }
            Err(full) => Err(lock_table_full(full)),
        }
    }

    /// Releases the lock of an awaited row, if the key now belongs to another row.
    fn release_unless_used(&mut self, store: &PartitionStore, row: RowId, key: HashedKey<'_>) {
        if store.find_primary(key.key, key.hash) != Some(row) {
            let key = LockKey { partition: self.work.request.partition, row };
            self.locks.release(key, self.work.request.transaction, self.granted);
        }
    }

    fn is_same_entry(&self, store: &PartitionStore, row: RowId, image: &[u8]) -> bool {
        if !matches!(self.work.request.program.table.definition.kind, TableKind::UniqueEntries { .. }) {
            return false;
        }
        let mut scratch = Vec::new();
        store.newest(row).is_some_and(|newest| store.view(&newest, &mut scratch).image() == image)
    }
}

/// Requests the row's lock on behalf of the open transaction that inserted it, so that another transaction
/// can wait for it. A transaction that changed an existing row already holds the lock.
///
/// # Errors
/// 1206 when the lock table is full.
pub(super) fn lock_for_inserter(
    locks: &mut LockTable,
    key: LockKey,
    newest: Option<VersionState>,
    own: TransactionId,
    token: WaiterToken,
) -> Result<()> {
    let other = newest.and_then(VersionState::transaction).filter(|other| *other != own);
    if let Some(other) = other
        && locks.mode_held(key, other).is_none()
    {
        let reply = locks.request(key, other, LockMode::Exclusive, token);
        let reply = reply.map_err(lock_table_full)?;
        junctor_kernel::require!(reply == LockReply::Granted, "the inserter of {key:?} waits for it");
    }
    Ok(())
}

/// The mode in which `own` locks a row. A row that it has written is locked exclusively, whatever `asked` is.
pub(super) fn mode_of_writer(newest: Option<VersionState>, own: TransactionId, asked: LockMode) -> LockMode {
    let is_own = newest.is_some_and(|newest| newest.transaction() == Some(own));
    if is_own { LockMode::Exclusive } else { asked }
}

/// Error 1206.
#[cold]
pub(super) fn lock_table_full(full: LockTableFull) -> Box<Error> {
    Error::new(ErrorCode::LockTableFull, full.to_string())
}

#[cold]
fn write_failed(error: WriteError, work: &WriteWork) -> Box<Error> {
    match error {
        WriteError::OutOfMemory => OutOfMemory.to_error(&work.request.program.table.definition.name),
        other => junctor_kernel::invariant::fail("a locked row can be written", format_args!("{other}")),
    }
}
