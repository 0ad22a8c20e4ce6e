//! Hot path: at most 400 instructions per write of one row, not counting storage.
//!
//! A write works in batches: it finds, locks and evaluates rows under the owner's read access, then applies
//! the changes under the guard.

use std::collections::BTreeSet;

use junctor_kernel::{Buffer, Context, Outbox, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{CommitNumber, Epoch, RowId, TransactionId};
use junctor_model::limit::FOLLOW_UPS_MAX;
use junctor_signals::input::InputReader;
use junctor_signals::program::{Access, WriteAction};
use junctor_signals::write_rows::{WriteRows, WriteRowsReply};
use junctor_signals::{LdmSignal, Signal, TcSignal};
use junctor_storage::lock::WaiterId;
use junctor_storage::log::ONE_PHASE_BLOCKS_MAX;
use junctor_storage::partition_store::ScanCursor;

use super::block::LdmBlock;
use super::deferred::Deferred;
use super::participant_table::ParticipantHandle;
use super::partition_table::SlotIndex;
use super::state::WriteWork;

/// Maximum number of batches of one write in one turn.
const BATCHES_PER_TURN_MAX: usize = 4;

/// Maximum capacity in bytes that a recycled batch keeps.
const BATCH_BYTES_KEPT: usize = 64 * 1024;

/// Maximum number of bytes of rows that a locking read, or a write with RETURNING, returns from one
/// partition.
pub(super) const OUTPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How a step of a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepEnd {
    /// The write is complete.
    Done,
    /// More rows are left.
    More,
    /// A reader is inside the guard.
    Busy,
    /// A lock was not granted immediately.
    Waiting(WaiterId),
}

impl LdmBlock {
    pub(super) fn on_write_rows(&mut self, request: WriteRows, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        if self.records.is_behind() {
            self.records.held_writes.push_back(request);
            return;
        }
        self.begin_write_rows(request, context, outbox);
    }

    pub(super) fn begin_write_rows(
        &mut self,
        mut request: WriteRows,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        require!(request.transaction.is_some(), "a write belongs to a transaction");
        require!(
            request.savepoint < request.first && request.first <= request.statement,
            "a step of a statement comes after its first one, and a savepoint keeps earlier ones"
        );
        // The tc means an earlier life of this node, and has given the write up since.
        if request.epoch < self.admitted && request.epoch > Epoch(0) {
            return junctor_kernel::WireSignal::recycle(Signal::Ldm(LdmSignal::WriteRows(request)), context.buffers);
        }
        if self.epoch == Epoch(0) && request.epoch > Epoch(0) {
            return self.held_writes.push(request);
        }
        let slot = match self.writable_slot(&request) {
            Ok(slot) => slot,
            Err(error) => return refuse(request, error, outbox),
        };
        if !self.slot(slot).takes_writes() {
            return self.held_writes.push(request);
        }
        let Some(participant) = self.join_transaction(request.transaction, slot) else {
            return refuse(request, too_many_participants(), outbox);
        };
        if matches!(request.program.action, WriteAction::LockRead { .. }) || request.program.returning.is_some() {
            request.output = context.buffers.take(512);
        }
        let mut work = WriteWork {
            slot,
            participant,
            item: InputReader::new(&request.input).position(),
            cursor: ScanCursor::default(),
            next_row: RowId(0),
            locked_item: None,
            pending: None,
            pending_insert: None,
            found: BTreeSet::new(),
            is_exhausted: false,
            matched: 0,
            changed: 0,
            diagnostics: None,
            seen: CommitNumber(0),
            follow_ups: Vec::new(),
            follow_ups_sent: 0,
            batch: self.memory.spare_batches.pop().unwrap_or_default(),
            accumulators: Vec::new(),
            request,
        };
        if let WriteAction::LockRead { output, .. } = &work.request.program.action {
            if let Err(error) = self.memory.reader.emitter.begin(output) {
                return self.finish_write(work, Some(error), outbox);
            }
            self.memory.reader.emitter.exchange(&mut work.accumulators);
        }
        self.run_write(work, outbox);
    }

    /// The partition, if the request's plan may write it.
    fn writable_slot(&mut self, request: &WriteRows) -> Result<SlotIndex> {
        let Some(index) = self.partitions.find(request.partition) else {
            return Err(Error::table_definition_changed());
        };
        let slot = self.slot(index);
        let program = &request.program;
        if program.table.definition.version < slot.writers_version {
            return Err(Error::table_definition_changed());
        }
        let has_index = match program.access {
            Access::IndexRanges { index, .. } => slot.guard.owner_read(&slot.token, |store| store.has_index(index)),
            Access::PrimaryKeys | Access::AllRows => true,
        };
        if has_index { Ok(index) } else { Err(Error::table_definition_changed()) }
    }

    /// The record of the transaction, which now touches the partition. `None` if the pool of records is full.
    fn join_transaction(&mut self, transaction: TransactionId, slot: SlotIndex) -> Option<ParticipantHandle> {
        let handle = self.participants.find_or_insert(transaction)?;
        let participant = self.participant(handle);
        if !participant.touched.contains(&slot) {
            participant.touched.push(slot);
            self.slot(slot).enter();
        }
        Some(handle)
    }

    /// Continues a write until it ends, waits for a lock, or has used its share of the turn.
    pub(super) fn run_write(&mut self, mut work: WriteWork, outbox: &mut Outbox<Signal>) {
        // During a wait, the table may have been dropped, or may have got a unique index that the plan does
        // not know.
        let version = work.request.program.table.definition.version;
        let slot = self.slot(work.slot);
        let is_stale = version < slot.writers_version || slot.is_dropped;
        if is_stale || self.is_interrupted(&work) {
            // The write may have kept new readers out while it waited for those inside.
            let slot = self.slot(work.slot);
            slot.guard.cancel_write(&mut slot.token);
            let error = if is_stale { Error::table_definition_changed() } else { Error::query_interrupted() };
            return self.finish_write(work, Some(error), outbox);
        }
        for _ in 0..BATCHES_PER_TURN_MAX {
            let stepped = self.step_write(&mut work);
            self.report_newly_blocked(outbox);
            match stepped {
                Ok(StepEnd::Done) => return self.finish_write(work, None, outbox),
                Ok(StepEnd::More) if work.follow_ups_sent + work.follow_ups.len() > FOLLOW_UPS_MAX => {
                    return self.finish_write(work, Some(too_many_follow_ups()), outbox);
                }
                Ok(StepEnd::More) => {}
                Ok(StepEnd::Busy) => {
                    self.counted.guard_waits += 1;
                    break;
                }
                Ok(StepEnd::Waiting(waiter)) => return self.park(work, waiter, outbox),
                Err(error) => return self.finish_write(work, Some(error), outbox),
            }
        }
        send_follow_ups(&mut work, outbox);
        self.defer(Deferred::Write(Box::new(work)), outbox);
    }

    /// Runs one batch.
    fn step_write(&mut self, work: &mut WriteWork) -> Result<StepEnd> {
        if matches!(work.request.program.action, WriteAction::Insert | WriteAction::InsertOrClaim) {
            return self.insert_batch(work);
        }
        if work.batch.is_done() {
            if work.is_exhausted {
                return Ok(StepEnd::Done);
            }
            work.batch.clear();
            if let StepEnd::Waiting(waiter) = self.evaluate_batch(work)? {
                // Changes that were evaluated before the awaited row are applied after the wait, in order.
                return Ok(StepEnd::Waiting(waiter));
            }
        }
        match work.batch.is_done() {
            true if work.is_exhausted => Ok(StepEnd::Done),
            true => Ok(StepEnd::More),
            false => self.write_batch(work),
        }
    }

    /// Ends a write. The write may have seen commits that are applied here but not stable. tc waits until
    /// they are stable before it answers the client, so that the next statement, even a read without locks,
    /// sees these commits too.
    pub(super) fn finish_write(&mut self, work: WriteWork, mut error: Option<Box<Error>>, outbox: &mut Outbox<Signal>) {
        let newest = match work.request.program.access {
            Access::PrimaryKeys => work.seen,
            // A deleted row leaves no trace in a range, so the result may depend on any commit that is
            // applied here.
            Access::IndexRanges { .. } | Access::AllRows => self.applied,
        };
        let has_follow_ups = work.has_follow_ups();
        self.count_write(&work);
        let WriteWork { mut request, slot, participant, matched, changed, diagnostics, follow_ups, .. } = work;
        let mut batch = work.batch;
        let is_written = batch.is_done();
        batch.clear();
        if batch.bytes.capacity() <= BATCH_BYTES_KEPT {
            self.memory.spare_batches.push(batch);
        }
        let mut accumulators = work.accumulators;
        if let WriteAction::LockRead { output, .. } = &request.program.action {
            self.memory.reader.emitter.exchange(&mut accumulators);
            if error.is_none() {
                error = self.memory.reader.emitter.end(output, &mut request.output).err();
            }
            if error.is_none() && request.output.len() > OUTPUT_BYTES_MAX {
                error = Some(output_too_long());
            }
        }
        let is_whole = is_written || error.is_some();
        require!(is_whole, "a write that succeeds has made all its changes: {}", request.transaction);
        let has_log = self.records.is_enabled();
        let record = self.participant(participant);
        if changed > 0 && !record.written.contains(&slot) {
            record.written.push(slot);
        }
        let log_blocks = if has_log { record.log_blocks() } else { 0 };
        let is_short = !record.is_long() && u64::from(log_blocks) <= ONE_PHASE_BLOCKS_MAX;
        let commits = request.one_phase && error.is_none() && !has_follow_ups && is_short;
        let reply = WriteRowsReply {
            operation: request.operation,
            transaction: request.transaction,
            partition: request.partition,
            matched,
            changed,
            diagnostics,
            newest,
            input: request.input,
            output: request.output,
            follow_ups: follow_ups.into_boxed_slice(),
            is_part: false,
            is_long: record.is_long(),
            log_blocks,
            is_committed: commits,
            error,
        };
        if commits {
            record.one_phase_reply = Some((request.reply_to, reply));
            return self.commit_one_phase(participant, outbox);
        }
        outbox.send(request.reply_to, Signal::Tc(TcSignal::WriteRowsReply(reply)));
    }
}

impl LdmBlock {
    #[inline]
    fn count_write(&mut self, work: &WriteWork) {
        let counted = &mut self.counted;
        counted.writes += 1;
        match work.request.program.action {
            WriteAction::Insert | WriteAction::InsertOrClaim => counted.rows_inserted += u64::from(work.changed),
            WriteAction::Update { .. } => counted.rows_updated += u64::from(work.changed),
            WriteAction::Delete { .. } => counted.rows_deleted += u64::from(work.changed),
            WriteAction::LockRead { .. } => counted.rows_locked += u64::from(work.matched),
        }
    }
}

/// Sends the follow-ups of this turn ahead of the reply, so that neither ldm nor tc handles too many at a
/// time.
fn send_follow_ups(work: &mut WriteWork, outbox: &mut Outbox<Signal>) {
    if work.follow_ups.is_empty() {
        return;
    }
    work.follow_ups_sent += work.follow_ups.len();
    let follow_ups = std::mem::take(&mut work.follow_ups).into_boxed_slice();
    let request = &work.request;
    let reply = WriteRowsReply { follow_ups, is_part: true, ..empty_reply(request) };
    outbox.send(request.reply_to, Signal::Tc(TcSignal::WriteRowsReply(reply)));
}

pub(super) fn refuse(request: WriteRows, error: Box<Error>, outbox: &mut Outbox<Signal>) {
    let reply_to = request.reply_to;
    let empty = empty_reply(&request);
    let reply = WriteRowsReply { input: request.input, output: request.output, error: Some(error), ..empty };
    outbox.send(reply_to, Signal::Tc(TcSignal::WriteRowsReply(reply)));
}

/// A reply that reports no row, to be completed.
fn empty_reply(request: &WriteRows) -> WriteRowsReply {
    WriteRowsReply {
        operation: request.operation,
        transaction: request.transaction,
        partition: request.partition,
        matched: 0,
        changed: 0,
        diagnostics: None,
        newest: CommitNumber(0),
        input: Buffer::new(),
        output: Buffer::new(),
        follow_ups: Box::default(),
        is_part: false,
        is_long: false,
        log_blocks: 0,
        is_committed: false,
        error: None,
    }
}

#[cold]
fn too_many_participants() -> Box<Error> {
    Error::new(ErrorCode::TemporaryOverload, "Got temporary error: too many transactions at once")
}

#[cold]
fn too_many_follow_ups() -> Box<Error> {
    let message = format!("Out of resources; a statement changes more than {FOLLOW_UPS_MAX} unique keys");
    Error::new(ErrorCode::OutOfResources, message)
}

#[cold]
pub(super) fn output_too_long() -> Box<Error> {
    Error::new(ErrorCode::OutOfResources, "Out of memory; a statement that writes or locks answers with too many rows")
}
