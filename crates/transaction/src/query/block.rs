//! Hot path: at most 120 instructions per request, not counting its rows.
//!
//! The query block: its state, and the dispatch of its signals.

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use junctor_kernel::{Address, Context, Outbox, Time, WorldEvent, require, verify};
use junctor_model::error::Error;
use junctor_model::id::PartitionId;
use junctor_signals::change_schema::{Catalog, OpenPartition, PublishCatalog, PublishCatalogReply};
use junctor_signals::counter::{QueryCounters, counter_rows};
use junctor_signals::diagnostics::{self, Diagnostics};
use junctor_signals::program::{Access, Output};
use junctor_signals::read_rows::{ContinueRead, LongRead, ReadRows, ReadRowsReply};
use junctor_signals::read_status::{ReadStatus, ReadStatusReply};
use junctor_signals::{LdmSignal, MainSignal, QuerySignal, Signal, SqlSignal};
use junctor_storage::guard::ReaderSlot;

use crate::GuardedPartition;
use crate::read::{GuardedReadOutcome, LONG_READ_ROWS, ReadCounts, ReadPosition, RowReader};

/// Maximum number of steps for one reply. The rows wait for the last of them, and so does the end of a read
/// that is no longer wanted.
const STEPS_PER_REPLY_MAX: u32 = 16;

/// One query instance.
#[derive(Debug)]
pub struct QueryBlock {
    slot: ReaderSlot,
    catalog: Arc<Catalog>,
    partitions: HashMap<PartitionId, ReadablePartition, FixedState>,
    reader: RowReader,
    /// Whether the node waits for its first epoch in a cluster with voters. Its ldms then keep the requests
    /// of other nodes.
    awaits_epoch: bool,
    /// The counters of this block. Counts of reads are in `reader`.
    counted: QueryCounters,
}

#[derive(Debug)]
struct ReadablePartition {
    owner: Address,
    guard: Arc<GuardedPartition>,
}

impl QueryBlock {
    /// Creates an instance that reads through `slot`. No other reader of the node's read group may use that
    /// slot.
    pub fn new(slot: ReaderSlot) -> QueryBlock {
        QueryBlock {
            slot,
            catalog: Arc::new(Catalog::default()),
            partitions: HashMap::with_hasher(FixedState::with_seed(0)),
            reader: RowReader::new(),
            awaits_epoch: false,
            counted: QueryCounters::default(),
        }
    }

    /// An instance of a cluster whose voters admit each life of a node.
    #[must_use]
    pub fn with_voters(mut self, has_voters: bool) -> QueryBlock {
        self.awaits_epoch = has_voters;
        self
    }

    /// Handles one signal. Inlined, its frame would be part of the handling of every signal of the node.
    #[inline(never)]
    pub fn handle(
        &mut self,
        signal: QuerySignal,
        from: Address,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        self.counted.signals += 1;
        match signal {
            QuerySignal::ReadRows(signal) if self.awaits_epoch && signal.reply_to.node != context.own_address.node => {
                self.counted.reads_forwarded += 1;
                forward(&self.catalog, signal, context, outbox);
            }
            QuerySignal::BeginEpoch(signal) => {
                self.awaits_epoch = false;
                signal.answer(outbox);
            }
            // Long reads of this thread's sessions wait in the same queue.
            QuerySignal::ReadRows(signal) if signal.is_long() && outbox.is_from_other_thread(from) => {
                outbox.send_long_running(context.own_address, Signal::Query(QuerySignal::ReadRows(signal)));
            }
            QuerySignal::ReadRows(signal) => self.on_read_rows(signal, context, outbox),
            QuerySignal::ContinueRead(signal) => self.on_continue_read(signal, context, outbox),
            QuerySignal::OpenPartition(signal) => self.on_open_partition(signal),
            QuerySignal::ReadStatus(signal) => self.on_read_status(signal, context, outbox),
            QuerySignal::PublishCatalog(signal) => self.on_publish_catalog(signal, outbox),
        }
    }

    /// Handles an event; none concerns this block.
    pub fn on_world(&mut self, event: WorldEvent, _context: &mut Context<'_>, _outbox: &mut Outbox<Signal>) {
        match event {
            WorldEvent::Started
            | WorldEvent::Stopping
            | WorldEvent::Timer { .. }
            | WorldEvent::SocketOpened { .. }
            | WorldEvent::Received { .. }
            | WorldEvent::SendBlocked { .. }
            | WorldEvent::SendDrained { .. }
            | WorldEvent::SocketClosed { .. }
            | WorldEvent::FileDone { .. } => {}
        }
    }

    /// Opens the partition for reading, or closes it if the signal has no handle.
    fn on_open_partition(&mut self, signal: OpenPartition) {
        match signal.handle {
            Some(handle) => {
                let Ok(guard) = Arc::downcast::<GuardedPartition>(handle.0) else {
                    junctor_kernel::invariant::fail(
                        "a handle holds a partition",
                        format_args!("{:?}", signal.partition),
                    )
                };
                self.partitions.insert(signal.partition, ReadablePartition { owner: signal.owner, guard });
            }
            None => {
                self.partitions.remove(&signal.partition);
            }
        }
    }

    fn on_publish_catalog(&mut self, signal: PublishCatalog, outbox: &mut Outbox<Signal>) {
        self.catalog = signal.catalog;
        let reply = PublishCatalogReply { operation: signal.operation };
        outbox.send(signal.reply_to, Signal::Main(MainSignal::PublishCatalogReply(reply)));
    }

    /// Replies with the rows of `junctor_info.counters`, the only status table to which this block
    /// contributes.
    fn on_read_status(&mut self, request: ReadStatus, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let ReadCounts { reads, keys, ranges, rows_examined, rows_returned } = self.reader.counts;
        let counted = QueryCounters { reads, keys, ranges, rows_examined, rows_returned, ..self.counted };
        let rows = counter_rows(&counted, context.own_address, context.thread());
        let reply = ReadStatusReply { operation: request.operation, rows };
        outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadStatusReply(reply)));
    }

    #[inline]
    fn on_read_rows(&mut self, mut request: ReadRows, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        require!(!request.transaction.is_some(), "uncommitted versions are read at their owner only");
        let QueryBlock { slot, catalog, partitions, reader, counted, .. } = self;
        let Some(partition) = partitions.get(&request.partition) else {
            counted.reads_forwarded += 1;
            return forward(catalog, request, context, outbox);
        };
        let mut position = ReadPosition::new(&request);
        let begun = request.is_sampled.then(|| context.clock_now());
        let examined = reader.counts.examined();
        let is_read = reader.step(&mut request, &mut position, context, |reader, view, position, out| match partition
            .guard
            .read(slot, |store| reader.read_guarded(store, view, position, out))
        {
            Ok(is_done) => is_done.map(GuardedReadOutcome::ended),
            Err(_) => Ok(GuardedReadOutcome::Busy),
        });
        if reader.counts.examined() - examined >= LONG_READ_ROWS {
            // Take no more signals in this turn, so that the reply leaves before the thread starts another
            // long read.
            outbox.stop_intake();
            if matches!(is_read, Ok(true)) && is_long(&request, &position) {
                let diagnostics = diagnostics::take(&mut reader.emitter.scratch);
                if diagnostics.is_none() {
                    let long = Box::new(LongRead { request, rows: 0, steps: 0 });
                    return go_on(long, position, context, outbox);
                }
                return answer(request, position, 0, diagnostics, outbox);
            }
        }
        match is_read {
            Ok(true) => {
                let diagnostics = diagnostics::take(&mut reader.emitter.scratch);
                answer(request, position, sampled_elapsed_ns(begun, context), diagnostics, outbox);
            }
            Ok(false) => {
                counted.guard_conflicts += 1;
                forward_to_owner(partition.owner, request, outbox);
            }
            Err(error) => fail(request, error, diagnostics::take(&mut reader.emitter.scratch), outbox),
        }
    }

    /// Takes another step of a long read. If it cannot, the rows before it are the reply.
    fn on_continue_read(
        &mut self,
        ContinueRead(mut long): ContinueRead,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let QueryBlock { slot, partitions, reader, .. } = self;
        let request = &mut long.request;
        let mut position = ReadPosition::new(request);
        let output_before = request.output.len();
        let is_read = match partitions.get(&request.partition) {
            None => Ok(false),
            Some(partition) => reader.step(request, &mut position, context, |reader, view, position, out| {
                match partition.guard.read(slot, |store| reader.read_guarded(store, view, position, out)) {
                    Ok(is_done) => is_done.map(GuardedReadOutcome::ended),
                    Err(_) => Ok(GuardedReadOutcome::Busy),
                }
            }),
        };
        outbox.stop_intake();
        let mut diagnostics = diagnostics::take(&mut reader.emitter.scratch);
        if !matches!(is_read, Ok(true)) {
            // The next read repeats the step, with its warnings and its error.
            request.output.truncate(output_before);
            position = ReadPosition::new(request);
            diagnostics = None;
        } else if diagnostics.is_none() && long.steps < STEPS_PER_REPLY_MAX && is_long(request, &position) {
            return go_on(long, position, context, outbox);
        }
        position.add_rows_of_reply(long.rows);
        if matches!(request.program.output, Output::Aggregates(_)) {
            // Each step has added its partial states.
            position.rows = 1;
        }
        answer(long.request, position, 0, diagnostics, outbox);
    }
}

/// Sends a read to the ldm of this node that has the partition. Reads come here only if this node has a
/// replica, which chains do not name if it was added later. All replicas of a partition are at the same
/// instance.
fn forward(catalog: &Catalog, request: ReadRows, context: &Context<'_>, outbox: &mut Outbox<Signal>) {
    match catalog.distribution.owner(request.partition) {
        Some(owner) => {
            let own = Address { node: context.own_address.node, ..owner };
            forward_to_owner(own, request, outbox);
        }
        None => fail(request, Error::table_definition_changed(), None, outbox),
    }
}

/// Whether a read goes on in another step before it answers.
fn is_long(request: &ReadRows, position: &ReadPosition) -> bool {
    // The duration of a sampled read is that of one step.
    request.program.access != Access::PrimaryKeys && !request.is_sampled && position.wants_step(request)
}

/// Lets a read go on in another step, after the thread's other work.
#[inline(never)]
fn go_on(mut long: Box<LongRead>, position: ReadPosition, context: &Context<'_>, outbox: &mut Outbox<Signal>) {
    long.rows += position.rows;
    long.steps += 1;
    // The maximum of a reply concerns all of its steps.
    long.request.rows_max = long.request.rows_max.saturating_sub(position.rows);
    long.request.resume = position.resume();
    outbox.send_long_running(context.own_address, Signal::Query(QuerySignal::ContinueRead(ContinueRead(long))));
}

/// Forwards a read to the owner.
fn forward_to_owner(owner: Address, request: ReadRows, outbox: &mut Outbox<Signal>) {
    let is_inline_eligible = request.is_inline_eligible();
    outbox.send(owner, Signal::Ldm(LdmSignal::ReadRows(request)));
    if !is_inline_eligible {
        outbox.mark_heavy(owner);
    }
}

/// Nanoseconds since the start of a sampled read; 0 for reads that are not sampled.
#[inline]
pub(crate) fn sampled_elapsed_ns(begun: Option<Time>, context: &mut Context<'_>) -> u32 {
    begun.map_or(0, |begun| context.clock_now().since(begun).0.clamp(1, u64::from(u32::MAX)) as u32)
}

pub(crate) fn answer(
    request: ReadRows,
    position: ReadPosition,
    service_ns: u32,
    diagnostics: Option<Box<Diagnostics>>,
    outbox: &mut Outbox<Signal>,
) {
    verify!(position.rows <= 1 || !matches!(request.program.output, Output::Aggregates(_)));
    let reply = ReadRowsReply {
        operation: request.operation,
        partition: request.partition,
        rows: position.rows,
        service_ns,
        booked_cost: request.booked_cost,
        input: request.input,
        output: request.output,
        resume: position.resume(),
        diagnostics,
        error: None,
    };
    outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadRowsReply(reply)));
}

#[cold]
pub(crate) fn fail(
    mut request: ReadRows,
    error: Box<Error>,
    diagnostics: Option<Box<Diagnostics>>,
    outbox: &mut Outbox<Signal>,
) {
    request.output.clear();
    let reply = ReadRowsReply {
        operation: request.operation,
        partition: request.partition,
        rows: 0,
        service_ns: 0,
        booked_cost: request.booked_cost,
        input: request.input,
        output: request.output,
        resume: None,
        diagnostics,
        error: Some(error),
    };
    outbox.send(request.reply_to, Signal::Sql(SqlSignal::ReadRowsReply(reply)));
}
