//! Hot path: at most 120 instructions per row, not counting storage and expressions.
//!
//! Finds the rows of a write in their newest versions, and locks, filters and evaluates each.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{IndexId, RowId};
use junctor_model::limit::ROWS_PER_HOLD_MAX;
use junctor_model::store::StoreMode;
use junctor_signals::diagnostics;
use junctor_signals::input::InputReader;
use junctor_signals::program::{Access, Returning, WhenLocked, WriteAction, WriteProgram};
use junctor_storage::index::{Direction, RangeBounds};
use junctor_storage::lock::{LockKey, LockReply, LockTable, WaiterId, WaiterToken};
use junctor_storage::partition_store::{PartitionStore, ScanEnd, ScanRange};
use junctor_storage::row::VersionState;

use super::block::{LdmBlock, WorkingMemory};
use super::change_rows::{lock_for_inserter, lock_table_full, mode_of_writer};
use super::range_lock::{check_unchanged, lock_range, mode_of};
use super::state::{RowChange, WriteWork};
use super::unique_entry;
use super::update_row::{AssignmentContext, RowBuilder, UpdatedRow};
use super::write_rows::{OUTPUT_BYTES_MAX, StepEnd, output_too_long};
use crate::read::{Emitter, OutputRow, bounds_of, direction_of};

/// One batch of one write: the inputs that it reads, and the state that it changes.
struct Evaluation<'a> {
    store: &'a PartitionStore,
    program: &'a WriteProgram,
    parameters: Parameters<'a>,
    work: &'a mut WriteWork,
    locks: &'a mut LockTable,
    emitter: &'a mut Emitter,
    rows: &'a mut RowBuilder,
    /// The token for a lock request that may have to wait.
    token: WaiterToken,
    granted: &'a mut Vec<WaiterToken>,
    /// Whether several ranges can find one row.
    repeats_rows: bool,
}

/// The condition under which a row, once locked, still matches the access.
#[derive(Clone, Copy)]
enum Condition<'a> {
    /// The lookup found the row in this turn.
    None,
    /// The scan was at this key when it began to wait for the row's lock. The row matches if it still has the
    /// key, or has moved to a part of the range that the scan has passed. With any other key, the row has
    /// left the range, or the scan will meet it again.
    Passed { scan: PassedScan<'a>, key: &'a [u8] },
}

/// An index scan, with the ranges up to the current one.
#[derive(Clone, Copy)]
struct PassedScan<'a> {
    index: IndexId,
    direction: Direction,
    input: &'a [u8],
    /// Where the current range begins in the input.
    item: usize,
}

impl PassedScan<'_> {
    /// Whether a key lies in an earlier range, or in the current range before `at`.
    fn has_passed(&self, key: &[u8], at: &[u8]) -> bool {
        let mut reader = InputReader::new(self.input);
        while reader.position() <= self.item {
            let is_this = reader.position() == self.item;
            let Some(range) = reader.next_range() else { return false };
            let is_before = match self.direction {
                _ if !is_this => true,
                Direction::Forward => key < at,
                Direction::Backward => key > at,
            };
            if is_before && bounds_of(&range).contains(key) {
                return true;
            }
        }
        false
    }
}

/// Whether the input has more than one range.
fn has_several_ranges(input: &[u8]) -> bool {
    let mut reader = InputReader::new(input);
    reader.next_range().is_some() && reader.next_range().is_some()
}

impl LdmBlock {
    /// Evaluates rows until the batch is full, no row is left, or a lock is not granted immediately.
    pub(super) fn evaluate_batch(&mut self, work: &mut WriteWork) -> Result<StepEnd> {
        let LdmBlock { partitions, locks, memory, waits, .. } = self;
        let Some(slot) = partitions.get(work.slot) else { return Err(Error::table_definition_changed()) };
        let program = Arc::clone(&work.request.program);
        let input = std::mem::take(&mut work.request.input);
        let WorkingMemory { reader, row_builder, .. } = memory;
        let emitter = &mut reader.emitter;
        emitter.scratch.set_warnings_max(work.request.reading.warnings_max);
        emitter.scratch.set_value_rules(program.rules);
        let is_lenient = matches!(
            program.action,
            WriteAction::LockRead { is_strict: false, .. }
                | WriteAction::Update { ignore: true, .. }
                | WriteAction::Delete { ignore: true }
        );
        emitter.scratch.set_strict(!is_lenient);
        emitter.exchange(&mut work.accumulators);
        let end = slot.guard.owner_read(&slot.token, |store| {
            let mut evaluation = Evaluation {
                store,
                program: &program,
                parameters: Parameters::from_bytes(InputReader::new(&input).parameters()),
                work,
                locks,
                emitter,
                rows: row_builder,
                token: waits.next_token(),
                granted: &mut waits.granted_now,
                repeats_rows: false,
            };
            match program.access {
                Access::PrimaryKeys => evaluation.keys(&input),
                Access::IndexRanges { index, descending } => evaluation.ranges(&input, index, direction_of(descending)),
                Access::AllRows => evaluation.all_rows(),
            }
        });
        let emitter = &mut reader.emitter;
        emitter.exchange(&mut work.accumulators);
        emitter.scratch.set_strict(false);
        diagnostics::join(
            &mut work.diagnostics,
            diagnostics::take(&mut emitter.scratch),
            work.request.reading.warnings_max,
        );
        work.request.input = input;
        self.waits.queue_granted();
        if work.request.output.len() > OUTPUT_BYTES_MAX {
            return Err(output_too_long());
        }
        end
    }
}

impl Evaluation<'_> {
    fn keys(&mut self, input: &[u8]) -> Result<StepEnd> {
        let mut reader = InputReader::new(input);
        reader.seek(self.work.item);
        for _ in 0..ROWS_PER_HOLD_MAX {
            let Some(key) = reader.next_key() else {
                self.work.is_exhausted = true;
                return Ok(StepEnd::Done);
            };
            let pending = self.work.pending.take();
            let row = self.store.find_primary(key.key, key.hash);
            if let Some(pending) = pending.filter(|pending| row != Some(*pending)) {
                // The row disappeared during the wait for its lock.
                self.release(pending);
            }
            if let Some(row) = row
                && let Some(waiter) = self.lock_and_evaluate(row, pending == Some(row), Condition::None)?
            {
                return Ok(StepEnd::Waiting(waiter));
            }
            if self.work.request.reading.locks_ranges && row.is_none_or(|row| self.is_gone(row)) {
                let primary = self.store.layout().definition.primary().id;
                let key = self.store.ordered_primary_key(key.key);
                lock_range(self.locks, &self.work.request, primary, RangeBounds::prefix(&key))?;
            }
            self.work.item = reader.position();
            if self.has_enough() {
                self.work.is_exhausted = true;
                return Ok(StepEnd::More);
            }
        }
        self.work.is_exhausted = self.work.item >= input.len();
        Ok(StepEnd::More)
    }

    fn ranges(&mut self, input: &[u8], index: IndexId, direction: Direction) -> Result<StepEnd> {
        let mut reader = InputReader::new(input);
        let mut budget = ROWS_PER_HOLD_MAX;
        self.repeats_rows = self.store.is_multi_valued(index) && has_several_ranges(input);
        while budget > 0 {
            reader.seek(self.work.item);
            let Some(range) = reader.next_range() else {
                self.work.is_exhausted = true;
                return Ok(StepEnd::Done);
            };
            let bounds = bounds_of(&range);
            let is_limited = self.work.request.reading.rows_max != 0;
            if !is_limited {
                self.lock_item(index, bounds)?;
            }
            if let Some(row) = self.work.pending.take() {
                let key = std::mem::take(&mut self.work.cursor.key);
                let scan = PassedScan { index, direction, input, item: self.work.item };
                self.lock_and_evaluate(row, true, Condition::Passed { scan, key: &key })?;
                self.work.cursor.key = key;
                budget -= 1;
                if self.has_enough() {
                    self.work.is_exhausted = true;
                    return Ok(StepEnd::More);
                }
            }
            let own = self.work.request.transaction;
            let mut cursor = std::mem::take(&mut self.work.cursor);
            let mut outcome = Ok(None);
            let mut seen = 0;
            let store = self.store;
            let range = ScanRange { index, bounds, direction, budget_entries: budget };
            let end = store.scan_for_write(range, &mut cursor, own, |row, _| {
                seen += 1;
                outcome = self.lock_and_evaluate(row, false, Condition::None);
                let continues = matches!(outcome, Ok(None)) && !self.has_enough();
                if continues { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            if is_limited {
                let is_whole = end == Some(ScanEnd::Exhausted);
                self.lock_item(index, if is_whole { bounds } else { passed_part(bounds, direction, &cursor.key) })?;
            }
            if let Some(waiter) = outcome? {
                self.work.cursor = cursor;
                return Ok(StepEnd::Waiting(waiter));
            }
            if self.has_enough() {
                self.work.is_exhausted = true;
                return Ok(StepEnd::More);
            }
            match end {
                None => return Err(Error::table_definition_changed()),
                Some(ScanEnd::Exhausted) => {
                    self.work.item = reader.position();
                    budget = budget.saturating_sub(seen + 1);
                }
                Some(ScanEnd::Budget | ScanEnd::Stopped) => {
                    self.work.cursor = cursor;
                    return Ok(StepEnd::More);
                }
            }
        }
        Ok(StepEnd::More)
    }

    fn all_rows(&mut self) -> Result<StepEnd> {
        let primary = self.store.layout().definition.primary().id;
        if self.work.request.reading.rows_max == 0 {
            self.lock_item(primary, RangeBounds::ALL)?;
        }
        if let Some(row) = self.work.pending.take() {
            self.lock_and_evaluate(row, true, Condition::None)?;
            if self.has_enough() {
                self.work.is_exhausted = true;
                return Ok(StepEnd::More);
            }
        }
        let own = self.work.request.transaction;
        let mut outcome = Ok(None);
        let store = self.store;
        let next = store.scan_rows_for_write(self.work.next_row, own, ROWS_PER_HOLD_MAX, |row, _| {
            outcome = self.lock_and_evaluate(row, false, Condition::None);
            let continues = matches!(outcome, Ok(None)) && !self.has_enough();
            if continues { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        // The scan has seen the awaited row. No rows beyond the end can have appeared while it ran.
        self.work.next_row = next.unwrap_or(store.row_id_limit());
        let waiter = outcome?;
        if waiter.is_none() && self.has_enough() {
            // Enough rows are found. The limit makes further rows irrelevant, so the remainder of the range
            // stays unlocked.
            self.work.is_exhausted = true;
            return Ok(StepEnd::More);
        }
        self.lock_item(primary, RangeBounds::ALL)?;
        if let Some(waiter) = waiter {
            return Ok(StepEnd::Waiting(waiter));
        }
        self.work.is_exhausted = next.is_none();
        Ok(StepEnd::More)
    }

    /// Whether a limited locking read has accepted all its rows.
    #[inline]
    fn has_enough(&self) -> bool {
        let rows_max = self.work.request.reading.rows_max;
        rows_max != 0 && self.work.matched >= rows_max
    }

    /// Locks the current range, or its scanned part, if the transaction locks ranges. No key can enter
    /// between scanning and locking, because both happen in one turn.
    #[inline]
    fn lock_item(&mut self, index: IndexId, bounds: RangeBounds<'_>) -> Result<()> {
        let is_limited = self.work.request.reading.rows_max != 0;
        if self.work.request.reading.locks_ranges && (is_limited || self.work.locked_item != Some(self.work.item)) {
            self.work.locked_item = Some(self.work.item);
            lock_range(self.locks, &self.work.request, index, bounds)?;
        }
        Ok(())
    }

    fn is_gone(&self, row: RowId) -> bool {
        self.store.newest(row).is_none_or(|newest| newest.is_deleted())
    }

    /// Locks a row and applies the program to it. Returns the waiter if the lock is not granted immediately.
    fn lock_and_evaluate(&mut self, row: RowId, has_lock: bool, condition: Condition<'_>) -> Result<Option<WaiterId>> {
        let mode = mode_of(self.program);
        let transaction = self.work.request.transaction;
        let awaits_writer = self.when_locked() == WhenLocked::AwaitWriter;
        if self.repeats_rows && self.work.found.contains(&row) {
            return Ok(None);
        }
        if !has_lock {
            let newest = self.store.newest_state(row);
            if awaits_writer && newest.and_then(VersionState::transaction).is_none() {
                self.work.note_seen(self.store, self.store.newest(row));
                return Ok(None);
            }
            lock_for_inserter(self.locks, self.key(row), newest, transaction, self.token)?;
            let mode = mode_of_writer(newest, transaction, mode);
            match self.locks.request(self.key(row), transaction, mode, self.token) {
                Ok(LockReply::Granted) => {}
                Ok(LockReply::Waiting(waiter)) => match self.when_locked() {
                    WhenLocked::Wait | WhenLocked::AwaitWriter => {
                        self.work.pending = Some(row);
                        return Ok(Some(waiter));
                    }
                    refused => {
                        // No request has queued behind this one yet, so cancelling grants nothing.
                        self.locks.cancel(waiter, self.granted);
                        return if refused == WhenLocked::Skip { Ok(None) } else { Err(lock_not_available()) };
                    }
                },
                Err(full) => return Err(lock_table_full(full)),
            }
        }
        if awaits_writer {
            self.release(row);
            self.work.note_seen(self.store, self.store.newest(row));
            return Ok(None);
        }
        check_unchanged(self.store, row, self.work.request.reading.changed_after)?;
        self.work.note_seen(self.store, self.store.newest(row));
        let statement = self.work.request.statement;
        let newest = self.store.newest(row).filter(|newest| !newest.is_deleted());
        // This statement made the newest version itself, possibly under a key that the scan reaches later.
        let Some(newest) = newest.filter(|newest| self.store.state(newest).statement() != Some(statement)) else {
            self.release(row);
            return Ok(None);
        };
        if self.store.state(&newest).transaction().is_some_and(|other| other != transaction) {
            junctor_kernel::invariant::fail(
                "the holder of a row lock made the uncommitted version",
                format_args!("row {row}"),
            );
        }
        let mut image = std::mem::take(&mut self.rows.image);
        let view = self.store.view(&newest, &mut image);
        let evaluated = match self.meets(condition, view) {
            false => {
                self.release(row);
                Ok(())
            }
            true => self.accept(row, view),
        };
        if self.repeats_rows {
            self.work.found.insert(row);
        }
        self.rows.image = image;
        evaluated.map(|()| None)
    }

    #[inline]
    fn when_locked(&self) -> WhenLocked {
        match &self.program.action {
            WriteAction::LockRead { when_locked, .. } => *when_locked,
            _ => WhenLocked::Wait,
        }
    }

    fn meets(&mut self, condition: Condition<'_>, view: junctor_model::row::RowView<'_>) -> bool {
        match condition {
            Condition::None => true,
            Condition::Passed { scan, key: passed } => {
                let mut is_met = false;
                // The index truncates very long keys, so an entry may be a prefix of the key.
                self.store.for_each_index_key(scan.index, view, &mut self.rows.key, |key| {
                    is_met |= key.starts_with(passed) || scan.has_passed(key, passed);
                });
                is_met
            }
        }
    }

    fn accept(&mut self, row: RowId, view: junctor_model::row::RowView<'_>) -> Result<()> {
        self.emitter.scratch.reset();
        if let Some(filter) = &self.program.filter
            && !filter.is_true(Some(view), self.parameters, &self.emitter.scratch)?
        {
            return Ok(());
        }
        let work = &mut *self.work;
        let partition = work.request.partition.index;
        match &self.program.action {
            // Inserts take their images from the input and never evaluate existing rows.
            WriteAction::Insert | WriteAction::InsertOrClaim => {}
            WriteAction::LockRead { output, .. } => {
                let out = &mut work.request.output;
                let row = OutputRow { view, parameters: self.parameters, protocol: work.request.protocol };
                self.emitter.row(output, &row, out)?;
            }
            WriteAction::Delete { .. } => {
                if let Some(returning) = &self.program.returning {
                    emit_returned(self.emitter, returning, work, view, self.parameters)?;
                }
                unique_entry::deleted(self.program, view, &mut work.follow_ups);
                work.batch.key_bytes += self.rows.primary_key_bytes(&self.program.table, view);
                work.batch.changes.push(RowChange::Delete { row });
                work.changed += 1;
            }
            WriteAction::Update { assignments, ignore } => {
                let mode = if *ignore { StoreMode::Lenient } else { StoreMode::Strict };
                let row_number = u64::from(work.matched) + 1;
                let scratch = &self.emitter.scratch;
                let (table, parameters) = (&*self.program.table, self.parameters);
                let context = AssignmentContext { table, parameters, scratch, mode, row_number };
                self.rows.assign(assignments, view, &context)?;
                if let Some(returning) = &self.program.returning {
                    let new = junctor_model::row::RowView::new(&self.program.table.row_format, &self.rows.current);
                    emit_returned(self.emitter, returning, work, new, self.parameters)?;
                }
                match self.rows.updated(&self.program.table, assignments, view, partition) {
                    UpdatedRow::Same => {}
                    UpdatedRow::Changed => {
                        let image = work.batch.add_bytes(&self.rows.current);
                        let new = junctor_model::row::RowView::new(&self.program.table.row_format, &self.rows.current);
                        unique_entry::updated(self.program, partition, (view, new), false, &mut work.follow_ups);
                        work.batch.changes.push(RowChange::Update { row, image });
                        work.changed += 1;
                    }
                    UpdatedRow::Rekeyed { hash } => {
                        let image = work.batch.add_bytes(&self.rows.current);
                        let key = work.batch.add_bytes(&self.rows.key);
                        let new = junctor_model::row::RowView::new(&self.program.table.row_format, &self.rows.current);
                        unique_entry::updated(self.program, partition, (view, new), true, &mut work.follow_ups);
                        work.batch.key_bytes += self.rows.primary_key_bytes(&self.program.table, view);
                        work.batch.changes.push(RowChange::Rekey { row, hash, key, image });
                        work.changed += 1;
                    }
                    UpdatedRow::Moved { partition, hash } => {
                        let new = junctor_model::row::RowView::new(&self.program.table.row_format, &self.rows.current);
                        unique_entry::moved(self.program, (view, new), &mut work.follow_ups);
                        let (key, image) = (self.rows.key.clone(), self.rows.current.clone());
                        let moved = junctor_signals::write_rows::FollowUp::MoveRow { partition, hash, key, image };
                        work.follow_ups.push(moved);
                        work.batch.key_bytes += self.rows.primary_key_bytes(&self.program.table, view);
                        work.batch.changes.push(RowChange::Delete { row });
                        work.changed += 1;
                    }
                }
            }
        }
        self.work.matched += 1;
        Ok(())
    }

    fn key(&self, row: RowId) -> LockKey {
        LockKey { partition: self.work.request.partition, row }
    }

    /// Releases the lock of a row that does not match, because its id may be reused for another row.
    fn release(&mut self, row: RowId) {
        let key = self.key(row);
        self.locks.release(key, self.work.request.transaction, self.granted);
    }
}

/// Emits a changed row in the form that RETURNING requires.
#[cold]
fn emit_returned(
    emitter: &mut Emitter,
    returning: &Returning,
    work: &mut WriteWork,
    row: junctor_model::row::RowView<'_>,
    parameters: Parameters<'_>,
) -> Result<()> {
    let was_strict = emitter.scratch.is_strict();
    emitter.scratch.set_strict(returning.is_strict);
    let WriteWork { request, .. } = work;
    let row = OutputRow { view: row, parameters, protocol: request.protocol };
    let emitted = emitter.row(&returning.output, &row, &mut request.output);
    emitter.scratch.set_strict(was_strict);
    emitted
}

/// The part of a range that a scan has covered when it is at `at`.
fn passed_part<'a>(bounds: RangeBounds<'a>, direction: Direction, at: &'a [u8]) -> RangeBounds<'a> {
    match direction {
        Direction::Forward => RangeBounds { upper: Bound::Included(at), ..bounds },
        Direction::Backward => RangeBounds { lower: Bound::Included(at), ..bounds },
    }
}

#[cold]
fn lock_not_available() -> Box<Error> {
    let message = "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.";
    Error::new(ErrorCode::LockNotAvailable, message)
}
