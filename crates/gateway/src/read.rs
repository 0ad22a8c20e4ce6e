//! Hot path: at most 150 instructions per read, not counting the keys; no allocation for a read that one
//! reply answers.
//!
//! A read has a part for each partition. Each part is sent to the block that runs it.

use std::sync::Arc;

use junctor_kernel::{Address, invariant, require};
use junctor_model::error::{Error, Result};
use junctor_model::id::{ConnectionId, PartitionId, TableId, TransactionId};
use junctor_model::limit::REPLY_BYTES_MAX;
use junctor_signals::Module;
use junctor_signals::program::{Access, ReadProgram};
use junctor_signals::read_rows::{OperationId, ReadRows, ReadRowsReply};
use junctor_signals::start_epoch::has_node;
use junctor_signals::{LdmSignal, QuerySignal, Signal};

use crate::epoch::node_has_left;
use crate::event::{Event, Next};
use crate::gateway::{Gateway, ReadOptions};
use crate::keys::PartitionInputs;
use crate::operation::{Operation, ReadWork, RowBound, StoppedPart, Work};
use crate::route::{Choice, RoutedRead, is_long};
use crate::transaction::{Isolation, Transaction};
use crate::turn_context::TurnContext;

/// Number of remembered reply lengths. Tables share them by hash.
pub(crate) const REPLY_BYTES_PLACES: usize = 64;
/// Number of bytes reserved for the reply to a read of one key, and the minimum for any read.
const POINT_REPLY_BYTES: usize = 512;
/// Maximum length in bytes of an input that is taken for a single key.
const POINT_INPUT_BYTES_MAX: usize = 64;

/// A read to start.
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// What each partition reads.
    pub program: &'a Arc<ReadProgram>,
    /// The settings of the session that apply.
    pub options: ReadOptions,
    /// The input of each partition that takes part. Sending empties it.
    pub inputs: &'a mut PartitionInputs,
}

/// A part of a read that could be measured.
struct SampledPart<'a> {
    operation: OperationId,
    partition: PartitionId,
    input: &'a [u8],
    choice: &'a Choice,
}

impl Gateway {
    /// Expected bytes of a partition's reply to `input`.
    #[inline]
    pub fn reply_room(&self, program: &ReadProgram, input: &[u8]) -> usize {
        let is_point = input.len() <= POINT_INPUT_BYTES_MAX && program.access == Access::PrimaryKeys;
        let recent_bytes = self.reply_bytes[reply_place(program.table.definition.id)] as usize;
        if is_point { POINT_REPLY_BYTES } else { recent_bytes.max(POINT_REPLY_BYTES) }
    }

    /// Reads what is committed now and what the transaction has written, whatever the isolation level. Takes
    /// no snapshot for the transaction. Otherwise as [`Gateway::read`].
    ///
    /// # Errors
    /// As [`Gateway::read`].
    pub fn read_latest(
        &mut self,
        session: ConnectionId,
        transaction: &mut Transaction,
        request: ReadRequest<'_>,
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId> {
        let isolation = std::mem::replace(&mut transaction.isolation, Isolation::ReadCommitted);
        let snapshot = transaction.snapshot.take();
        let operation = self.read(session, transaction, request, turn);
        transaction.snapshot = snapshot;
        transaction.isolation = isolation;
        operation
    }

    /// Reads rows of every partition in the request's `inputs`. The answers are [`Event::Rows`], until their
    /// `next` is `Done`, or [`Event::ReadFailed`].
    ///
    /// # Errors
    /// `TemporaryFailure` or `OutOfResources`; nothing was started.
    pub fn read(
        &mut self,
        session: ConnectionId,
        transaction: &mut Transaction,
        request: ReadRequest<'_>,
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId> {
        let ReadRequest { program, options, inputs } = request;
        require!(!inputs.is_empty(), "a read has at least one part, whose reply ends it");
        if self.has_lost_nodes(transaction) {
            self.check_writes(transaction, turn)?;
        }
        let (snapshot, own_snapshot) = self.snapshot_of(transaction)?;
        let work = ReadWork {
            program: Arc::clone(program),
            options,
            snapshot,
            own_snapshot,
            transaction: transaction.id,
            outstanding: inputs.len() as u32,
            prefixed: if inputs.has_output() { inputs.len() as u32 } else { 0 },
            stopped: Vec::new(),
            remote: Vec::new(),
            sample: None,
            abandoned: false,
        };
        let operation = self.open(session, Work::Read(work))?;
        let table = program.table.definition.id;
        let several = inputs.len() > 1 && self.route.is_adaptive();
        let mut goes_away = false;
        while let Some((index, input)) = inputs.pop() {
            let partition = PartitionId { table, index };
            let own_writes = transaction.id.is_some() && transaction.has_written(partition);
            let reader = if own_writes { self.primary(partition) } else { self.reader(partition) };
            let Some(reader) = reader else {
                // The plan is older than the catalog. The owner would refuse the read, too.
                turn.buffers.give(input);
                self.fail_part(operation, partition, Error::table_definition_changed(), turn);
                continue;
            };
            let choice = match own_writes || reader.node != self.own.node {
                true => Choice::of(reader),
                false => {
                    let read = RoutedRead { program, units: units_of(program, &input) };
                    self.route.choose(read, reader, turn.loads, turn.turn_start)
                }
            };
            let Choice { to, booked_cost, .. } = choice;
            if to.node != self.own.node {
                self.note_remote(operation, index, to.node);
            }
            let is_sampled = choice.is_sampled
                && self.note_sample(SampledPart { operation, partition, input: &input, choice: &choice }, turn);
            let output = inputs.take_output(turn.buffers);
            let output = output.unwrap_or_else(|| turn.buffers.take(self.reply_room(program, &input)));
            let request = ReadRows {
                operation,
                reply_to: self.own,
                partition,
                protocol: options.protocol,
                rows_max: options.bound.rows_left(0),
                warnings_max: options.warnings_max,
                is_sampled,
                booked_cost,
                program: Arc::clone(program),
                snapshot,
                transaction: if own_writes { transaction.id } else { TransactionId::default() },
                output,
                input,
                resume: None,
            };
            goes_away |= send_part(to, request, several, (&self.here, &mut self.held), turn);
        }
        if several {
            self.send_held(goes_away, turn);
        }
        Ok(operation)
    }

    /// Whether partitions have answered, and have more rows, so that `continue_read` may request these. The
    /// others may not have answered yet.
    pub fn may_continue(&self, operation: OperationId) -> bool {
        match self.operations.get(self.handle_of(operation)) {
            // Which reply begins with the header is known only as long as no partition answers twice.
            Some(Operation { work: Work::Read(work), .. }) => !work.stopped.is_empty() && work.prefixed == 0,
            _ => false,
        }
    }

    /// Requests the next batch of the transaction's read from every partition that has answered and has more
    /// rows.
    pub fn continue_read(&mut self, operation: OperationId, transaction: &Transaction, turn: &mut TurnContext<'_>) {
        let (own, gone) = (self.own, self.gone);
        let mut lost = Vec::new();
        let Some(Operation { work: Work::Read(work), .. }) = self.operations.get_mut(self.handle_of(operation)) else {
            invariant::fail("a session continues a read only while it is in progress", format_args!("{}", operation.0));
        };
        require!(!work.stopped.is_empty(), "a read continues when parts have answered and have more rows");
        require!(
            work.outstanding == 0 || work.prefixed == 0,
            "every part whose reply begins with the header has answered"
        );
        work.outstanding += work.stopped.len() as u32;
        let several = work.stopped.len() > 1 && self.route.is_adaptive();
        let mut goes_away = false;
        for StoppedPart { partition, to, booked_cost, input, resume } in work.stopped.drain(..) {
            // The owner, or a backup, may also have run a read of what others have written.
            let own_writes = to.module == Module::Ldm && transaction.has_written(partition);
            if to.node != own.node && has_node(&gone, to.node) {
                turn.buffers.give(input);
                lost.push(partition);
                continue;
            }
            if to.node != own.node {
                work.remote.push((partition.index, to.node));
            }
            self.route.book(booked_cost);
            let request = ReadRows {
                operation,
                reply_to: own,
                partition,
                protocol: work.options.protocol,
                rows_max: work.options.bound.rows_left(resume.rows),
                warnings_max: work.options.warnings_max,
                is_sampled: false,
                booked_cost,
                program: Arc::clone(&work.program),
                snapshot: work.snapshot,
                transaction: if own_writes { work.transaction } else { TransactionId::default() },
                output: turn.buffers.take(self.reply_bytes[reply_place(partition.table)] as usize),
                input,
                resume: Some(resume),
            };
            goes_away |= send_part(to, request, several, (&self.here, &mut self.held), turn);
        }
        if several {
            self.send_held(goes_away, turn);
        }
        for partition in lost {
            self.fail_part(operation, partition, node_has_left(), turn);
        }
    }

    /// Ends a read early. Outstanding replies are dropped.
    pub fn end_read(&mut self, operation: OperationId, turn: &mut TurnContext<'_>) {
        let handle = self.handle_of(operation);
        let Some(Operation { work: Work::Read(work), .. }) = self.operations.get_mut(handle) else { return };
        work.abandoned = true;
        for part in work.stopped.drain(..) {
            turn.buffers.give(part.input);
        }
        if work.outstanding == 0 {
            self.close(operation);
        }
    }

    /// Handles the reply of one part.
    pub fn on_read_rows_reply(
        &mut self,
        reply: ReadRowsReply,
        from: Address,
        turn: &mut TurnContext<'_>,
    ) -> Option<(ConnectionId, Event)> {
        let ReadRowsReply {
            operation,
            partition,
            rows,
            service_ns,
            booked_cost,
            input,
            output,
            resume,
            diagnostics,
            error,
        } = reply;
        self.route.release(booked_cost);
        let is_remote = from.node != self.own.node;
        if is_remote && self.is_gone(from.node) {
            return None;
        }
        let handle = self.handle_of(operation);
        let Some(Operation { session, work: Work::Read(work) }) = self.operations.get_mut(handle) else {
            turn.buffers.give(input);
            turn.buffers.give(output);
            return None;
        };
        let session = *session;
        require!(work.outstanding > 0, "every part of a read answers once");
        work.outstanding -= 1;
        if is_remote {
            work.remote.retain(|(index, _)| *index != partition.index);
        }
        if service_ns > 0
            && let Some(sample) = work.sample.take_if(|sample| sample.0 == partition.index)
        {
            self.route.observe(&sample.1, from, u64::from(service_ns), turn.turn_clock.now(turn.turn_start));
        }
        match resume {
            Some(mut resume) if !work.abandoned && work.options.bound.rows_left(resume.rows) > 0 => {
                if let RowBound::Sample { skip, .. } = work.options.bound {
                    resume.row.0 = resume.row.0.saturating_add(skip);
                }
                let booked_cost = self.route.booked_cost_at(booked_cost, from);
                work.stopped.push(StoppedPart { partition, to: from, booked_cost, input, resume })
            }
            _ => turn.buffers.give(input),
        }
        if output.len() > POINT_REPLY_BYTES {
            let recent_bytes = &mut self.reply_bytes[reply_place(partition.table)];
            *recent_bytes = (*recent_bytes - *recent_bytes / 16).max(output.len().min(REPLY_BYTES_MAX) as u32);
        }
        let outstanding = work.outstanding;
        let is_prefixed = work.prefixed > 0;
        work.prefixed -= u32::from(is_prefixed);
        if work.abandoned || error.is_some() {
            let reported = error.filter(|_| !work.abandoned);
            turn.buffers.give(output);
            self.end_read(operation, turn);
            return reported.map(|error| (session, Event::ReadFailed { operation, diagnostics, error }));
        }
        let next = match (outstanding, work.stopped.is_empty()) {
            (0, true) => Next::Done,
            (0, false) => Next::MoreRows,
            _ => Next::MoreReplies,
        };
        if next == Next::Done {
            self.close(operation);
        }
        Some((
            session,
            Event::Rows { operation, output, is_prefixed, rows, partition: partition.index, diagnostics, next },
        ))
    }

    /// Sends the parts that run on this thread. If other parts went to other threads, these parts run after
    /// the others are published, so that all threads work in parallel.
    fn send_held(&mut self, after_publishing: bool, turn: &mut TurnContext<'_>) {
        for (to, request) in self.held.drain(..) {
            match after_publishing {
                true => turn.outbox.send_next_turn(to, read_signal(to, request)),
                false => send_read(to, request, turn),
            }
        }
    }

    /// Records which part of a read is measured. At most one part is.
    #[cold]
    fn note_sample(&mut self, part: SampledPart<'_>, turn: &mut TurnContext<'_>) -> bool {
        let SampledPart { operation, partition, input, choice } = part;
        let found = self.operations.get_mut(self.handle_of(operation));
        let Some(Operation { work: Work::Read(work), .. }) = found else { return false };
        if work.sample.is_some() {
            return false;
        }
        let read = RoutedRead { program: &work.program, units: units_of(&work.program, input) };
        let sample = self.route.sample(read, choice, turn.loads, turn.clock_now());
        work.sample = Some(Box::new((partition.index, sample)));
        true
    }
}

fn reply_place(table: TableId) -> usize {
    table.0 as usize % REPLY_BYTES_PLACES
}

#[inline]
fn send_read(to: Address, request: ReadRows, turn: &mut TurnContext<'_>) {
    let is_inline_eligible = request.is_inline_eligible();
    turn.outbox.send(to, read_signal(to, request));
    if !is_inline_eligible {
        turn.outbox.mark_heavy(to);
    }
}

/// Sends a part of a read. If the part runs on this thread, a long part is queued as long-running work, and
/// one of several parts is held until the others are sent. Returns whether one of several parts went to
/// another thread.
#[inline]
fn send_part(
    to: Address,
    request: ReadRows,
    several: bool,
    (here, held): (&[Address], &mut Vec<(Address, ReadRows)>),
    turn: &mut TurnContext<'_>,
) -> bool {
    let is_long = is_long(request.booked_cost) || request.is_long();
    if !(several || is_long) || !here.contains(&to) {
        send_read(to, request, turn);
        return several;
    }
    match is_long {
        true => turn.outbox.send_long_running(to, read_signal(to, request)),
        false => held.push((to, request)),
    }
    false
}

#[inline]
fn read_signal(to: Address, request: ReadRows) -> Signal {
    match to.module == Module::Query {
        true => Signal::Query(QuerySignal::ReadRows(request)),
        false => Signal::Ldm(LdmSignal::ReadRows(request)),
    }
}

/// Units of work in a part: keys, estimated at sixteen bytes each, or 1 for any number of ranges.
#[inline]
fn units_of(program: &ReadProgram, input: &[u8]) -> u32 {
    match program.access {
        Access::PrimaryKeys => (input.len() as u32 >> 4).max(1),
        Access::IndexRanges { .. } | Access::AllRows => 1,
    }
}
