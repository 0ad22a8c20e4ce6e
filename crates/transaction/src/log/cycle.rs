//! Cycles: collect, write, sync, publish.

use std::collections::VecDeque;

use junctor_kernel::{
    Context, Duration, FileBuffer, FileError, FileOutcome, FileResult, Outbox, Time, WorldRequest, require,
};
use junctor_model::id::CommitNumber;
use junctor_model::planted_bug::PlantedBug;
use junctor_signals::append_records::{AppendRecordsReply, AwaitDurableReply, DeliverRecords, LogSpace};
use junctor_signals::start_log::StartLog;
use junctor_signals::{LdmSignal, MainSignal, Module, Signal, TcSignal, crash_point};
use junctor_storage::log::{
    BLOCK_BYTES, GROUP_BYTES_MAX, GROUP_HEADER_BYTES, GroupHeader, GroupKind, PIECE_HEADER_BYTES, Piece, chunk_headers,
    encode_group, group_blocks, record_blocks,
};

use super::append_records::CYCLE_BYTES;
use super::block::{LogBlock, Pending};

/// Groups that are written before a sync. More records take several syncs, and only the last one makes the
/// cycle's number durable.
pub(super) const GROUPS_PER_CYCLE_MAX: usize = 16;
/// Groups that are encoded and not yet written. The disk has one while the next is encoded, and no turn
/// encodes more than these.
const GROUPS_UNDER_WAY_MAX: usize = 2;

/// The log keeps this distance between the ceiling and the numbers taken, so that the sequence never waits
/// for a group.
const CEILING_DISTANCE: u64 = 1 << 32;
const CEILING_DISTANCE_MIN: u64 = 1 << 31;

/// Time without a group after which a closing group confirms that the last one is synced.
const CLOSE_AFTER_MS: u64 = 100;
/// Time between two attempts to write a group to a full disk.
const RETRY_MS: u64 = 1000;

pub(super) const SYNC_TIMER: u64 = 1;
pub(super) const CLOSE_TIMER: u64 = 2;
pub(super) const RETRY_TIMER: u64 = 3;
pub(super) const SEGMENT_TIMER: u64 = 4;
pub(super) const GATHER_TIMER: u64 = 5;

/// What a file answer belongs to; the upper byte of its token.
pub(super) const WRITE: u64 = 1;
pub(super) const SYNC: u64 = 2;
pub(super) const SEGMENT: u64 = 3;
pub(super) const RECOVER: u64 = 4;
pub(super) const TOKEN_KIND_SHIFT: u32 = 56;

/// The step of the cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// The log has not been started.
    #[default]
    Stopped,
    /// No cycle runs.
    Idle,
    /// Streams have formed records that are on their way.
    Collecting,
    /// Groups wait for their segment, or are being written.
    Writing,
    /// Every group is written.
    Syncing,
    /// A write or a sync has failed. The node stops; until then nothing more may become durable.
    Failed,
}

/// The cycle that runs, and the end of the chain of groups.
#[derive(Debug, Default)]
pub(super) struct Cycle {
    pub phase: Phase,
    /// The stable number that the cycle makes durable.
    stable: CommitNumber,
    /// The count that each stream must have delivered.
    wanted: Vec<u64>,
    /// The records that the cycle writes, with the position of their stream.
    collected: VecDeque<(usize, Pending)>,
    /// Bytes that are delivered and not collected.
    pub bytes_waiting: usize,
    /// The kind of the last group of the cycle.
    kind: Option<GroupKind>,
    /// Number of groups that may be encoded before the next sync.
    groups_left: usize,
    /// Groups that are encoded and not requested yet: their segment is being prepared, or the disk is full.
    unwritten: VecDeque<(u64, FileBuffer)>,
    /// Requested writes without an answer.
    writes: usize,
    /// Requested syncs without an answer.
    syncs: usize,
    /// Segments with unsynced groups.
    unsynced: Vec<u64>,
    /// Whether a write of the cycle found the disk full.
    is_full: bool,
    /// The room that the blocks that write know of.
    pub reported: LogSpace,
    spare: Vec<FileBuffer>,
    /// The pieces of the group that is being encoded.
    cuts: Vec<Cut>,
    /// Blocks that were reserved for the chunks, and undos of chunks, in the groups of the cycle.
    chunk_blocks: u64,

    log_id: u64,
    life: u64,
    incarnation: u32,
    previous_cut: CommitNumber,
    previous_checksum: u32,
    ceiling: CommitNumber,
    /// The stable number of the last group.
    last_stable: CommitNumber,
    /// The position behind the last group.
    pub position: u64,
    /// The position up to which the log is synced.
    pub synced: u64,
    /// The position at which this life began.
    pub start_position: u64,
    /// Mean duration of recent writes with their syncs, in microseconds; 0 before the first.
    pub sync_us: u32,
    /// The shortest mean since the start; 0 before the first.
    pub sync_us_min: u32,
    /// Duration of all writes with their syncs since the start, in microseconds.
    pub syncs_us: u64,
    /// Syncs requested since the start.
    pub syncs_total: u64,
    /// When the groups under way were encoded.
    write_begun: Time,
    /// Whether a group under way had to wait for a segment or for room on the device.
    is_delayed: bool,
    /// Whether the last group is a closing one.
    is_closed: bool,
    pub sync_timer_runs: bool,
    close_timer_runs: bool,
    retry_timer_runs: bool,
    /// Whether the node stops after the running cycle.
    is_stopping: bool,
}

/// A piece of a group.
#[derive(Debug)]
struct Cut {
    /// The buffer, by its position in `collected`.
    position: usize,
    /// Where the piece begins in the buffer.
    start: usize,
    length: usize,
    first_record: Option<u32>,
}

impl Cut {
    fn of<'a>(&self, pending: &'a Pending) -> &'a [u8] {
        &pending.bytes[self.start..self.start + self.length]
    }
}

impl Cycle {
    /// Continues the chain with a new incarnation.
    pub fn begin_life(&mut self, start: &StartLog) {
        self.log_id = start.log_id;
        self.life = start.life;
        self.incarnation = start.incarnation;
        self.previous_cut = start.last_commit_kept;
        self.previous_checksum = start.previous_checksum;
        self.stable = start.highest_number;
        self.last_stable = start.highest_number;
        self.ceiling = CommitNumber(start.highest_number.0 + CEILING_DISTANCE);
        self.position = start.position;
        self.start_position = self.position;
        self.synced = start.position;
    }

    /// Whether another group precedes the next sync.
    fn has_groups(&self) -> bool {
        self.groups_left > 0 && (!self.collected.is_empty() || self.kind.is_some())
    }

    fn groups_under_way(&self) -> usize {
        self.unwritten.len() + self.writes
    }

    /// Measures the writes and syncs that end, unless they had to wait for more than the disk.
    fn end_write(&mut self, now: Time) {
        if std::mem::take(&mut self.is_delayed) {
            return;
        }
        let sample = now.since(self.write_begun).as_micros().clamp(1, u64::from(u32::MAX)) as u32;
        self.syncs_us += u64::from(sample);
        let mean = if self.sync_us == 0 { sample } else { self.sync_us - self.sync_us / 8 + sample / 8 };
        self.sync_us = mean.max(1);
        self.sync_us_min = if self.sync_us_min == 0 { mean } else { self.sync_us_min.min(mean) };
    }
}

impl LogBlock {
    /// Writes the start group, once its segment is ready.
    pub(super) fn begin_start(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        outbox.crash_point(crash_point::LOG_START.before());
        self.cycle.kind = Some(GroupKind::Start);
        self.write_groups(context, outbox);
    }

    /// Begins a cycle if a block awaits one, unless more commits are expected soon.
    pub(super) fn begin_if_gathered(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        if self.cycle.phase != Phase::Idle || self.waiting.is_empty() {
            return;
        }
        let formed = || (0..self.streams.len()).map(|stream| self.shared.formed.count(stream)).sum::<u64>();
        match self.gathering.wait(context.turn_start, formed) {
            Some(after) if !self.cycle.is_stopping => {
                if !std::mem::replace(&mut self.gathering.timer_runs, true) {
                    outbox.request(WorldRequest::StartTimer { after, token: GATHER_TIMER });
                }
            }
            _ => self.begin_cycle(GroupKind::Data, context, outbox),
        }
    }

    /// Begins a cycle, whose last group has this kind.
    pub(super) fn begin_cycle(&mut self, kind: GroupKind, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        require!(self.cycle.phase == Phase::Idle, "one cycle runs at a time");
        outbox.crash_point(crash_point::LOG_COLLECT.before());
        // The order matters: every commit up to the stable number has its records counted by now.
        self.cycle.stable = self.shared.sequence.stable();
        self.space.begin_cycle();
        self.cycle.wanted.clear();
        self.cycle.wanted.extend((0..self.streams.len()).map(|stream| self.shared.formed.count(stream)));
        if PlantedBug::IgnoreFormedRecords.is_planted() {
            self.cycle.wanted.fill(0);
        }
        self.cycle.phase = Phase::Collecting;
        self.cycle.kind = Some(kind);
        self.shared.formed.set_awaited(!self.waiting.is_empty());
        self.ask_for_records(outbox);
        self.collect(context, outbox);
    }

    /// Asks the ldms that have not delivered what the cycle wants. Block main delivers without being asked.
    fn ask_for_records(&self, outbox: &mut Outbox<Signal>) {
        for (stream, wanted) in self.streams.iter().zip(&self.cycle.wanted) {
            if let Some(ldm) = stream.ldm.filter(|_| stream.received < *wanted) {
                outbox.send(ldm, Signal::Ldm(LdmSignal::DeliverRecords(DeliverRecords {})));
            }
        }
    }

    /// Goes on once every stream has delivered what it had formed.
    pub(super) fn collect(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let delivered = self.streams.iter().zip(&self.cycle.wanted).all(|(stream, wanted)| stream.received >= *wanted);
        if !delivered {
            return;
        }
        for (index, stream) in self.streams.iter_mut().enumerate() {
            self.cycle.collected.extend(stream.buffers.drain(..).map(|pending| (index, pending)));
        }
        self.cycle.bytes_waiting = 0;
        self.gathering.collect();
        if PlantedBug::StableAfterCollecting.is_planted() {
            self.cycle.stable = self.shared.sequence.stable();
        }
        outbox.crash_point(crash_point::LOG_COLLECT.after());
        self.write_groups(context, outbox);
    }

    /// Begins to write the groups before the next sync.
    fn write_groups(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.cycle.phase = Phase::Writing;
        self.cycle.write_begun = context.turn_start;
        self.cycle.groups_left = GROUPS_PER_CYCLE_MAX;
        self.continue_writing(context, outbox);
    }

    /// Encodes some groups, requests the writes whose segments are ready, and the syncs once no group is
    /// left. The answers to the writes continue.
    fn continue_writing(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        // A group that found the disk full is written before the groups after it.
        while self.cycle.has_groups() && !self.cycle.is_full && self.cycle.groups_under_way() < GROUPS_UNDER_WAY_MAX {
            self.cycle.groups_left -= 1;
            self.encode_next_group(context, outbox);
        }
        self.request_writes(outbox);
    }

    fn encode_next_group(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let LogBlock { cycle, groups, streams, shared, configuration, space, .. } = self;
        let position = cycle.position;
        // A group ends with its segment at the latest, so that no block remains unused.
        let blocks_max = (GROUP_BYTES_MAX / BLOCK_BYTES) as u64;
        let blocks_max = blocks_max.min(configuration.segment_size.blocks_left(position)) as usize;
        let mut room = blocks_max * BLOCK_BYTES - GROUP_HEADER_BYTES;
        cycle.cuts.clear();
        for (position, (stream, pending)) in cycle.collected.iter_mut().enumerate() {
            if room <= PIECE_HEADER_BYTES {
                break;
            }
            let cutter = &mut streams[*stream].cutter;
            let (length, first_record) = cutter.cut(&pending.bytes[pending.written..], room - PIECE_HEADER_BYTES);
            if length == 0 {
                break;
            }
            cycle.cuts.push(Cut { position, start: pending.written, length, first_record });
            pending.written += length;
            room -= PIECE_HEADER_BYTES + length;
            if pending.written < pending.bytes.len() {
                break;
            }
        }
        let is_last = cycle.collected.iter().all(|(_, pending)| pending.written == pending.bytes.len());
        let kind = if is_last { cycle.kind.take() } else { None };
        let blocks = group_blocks(cycle.cuts.len(), cycle.cuts.iter().map(|cut| cut.length).sum());
        // Read after the records were collected, so that it covers all of them.
        let taken = shared.sequence.taken();
        if taken.0 + CEILING_DISTANCE_MIN > cycle.ceiling.0 {
            cycle.ceiling = CommitNumber(taken.0 + CEILING_DISTANCE);
        }
        // Only the last group holds the records of every commit up to the cycle's stable number.
        let stable = if is_last { cycle.stable } else { cycle.last_stable };
        let header = GroupHeader {
            kind: kind.unwrap_or(GroupKind::Data),
            position,
            log_id: cycle.log_id,
            life: cycle.life,
            incarnation: cycle.incarnation,
            previous_checksum: cycle.previous_checksum,
            stable,
            taken,
            ceiling: cycle.ceiling,
            synced: cycle.synced,
            previous_cut: cycle.previous_cut,
            wall_clock_us: context.wall_clock_us,
        };
        groups.add_group(position, taken);
        for cut in &cycle.cuts {
            let (stream, pending) = &cycle.collected[cut.position];
            // Only chunks need this: other records are found by their numbers.
            if let Some(first) = cut.first_record {
                for (header, length) in chunk_headers(&cut.of(pending)[first as usize..]) {
                    groups.add_chunk_record(position, *stream, &header);
                    if header.number.0 == 0 {
                        cycle.chunk_blocks += record_blocks(length);
                    }
                }
            }
        }
        let mut bytes = cycle.spare.pop().unwrap_or_default();
        bytes.set_length(blocks as usize * BLOCK_BYTES);
        let pieces = cycle.cuts.iter().map(|cut| {
            let (stream, pending) = &cycle.collected[cut.position];
            Piece { stream: streams[*stream].id, first_record: cut.first_record, bytes: cut.of(pending) }
        });
        cycle.previous_checksum = encode_group(&header, pieces, &mut bytes);
        cycle.last_stable = stable;
        cycle.position = position + blocks;
        cycle.is_closed = header.kind == GroupKind::Closing;
        space.write(blocks, !cycle.cuts.is_empty());
        if is_last {
            // The blocks of all chunks are in use now, and no longer reserved.
            space.release(std::mem::take(&mut cycle.chunk_blocks));
        }
        cycle.unwritten.push_back((position, bytes));
        self.give_back_written(outbox);
    }

    /// Returns the buffers whose records are all in groups.
    fn give_back_written(&mut self, outbox: &mut Outbox<Signal>) {
        while let Some((_, pending)) = self.cycle.collected.front()
            && pending.written == pending.bytes.len()
        {
            let Some((_, Pending { from, bytes, .. })) = self.cycle.collected.pop_front() else { return };
            let reply = AppendRecordsReply { bytes };
            outbox.send(
                from,
                match from.module == Module::Ldm {
                    true => Signal::Ldm(LdmSignal::AppendRecordsReply(reply)),
                    false => Signal::Main(MainSignal::AppendRecordsReply(reply)),
                },
            );
        }
    }

    /// Requests the writes whose segments are ready, and the syncs once no group is left.
    fn request_writes(&mut self, outbox: &mut Outbox<Signal>) {
        let size = self.configuration.segment_size;
        while let Some((position, _)) = self.cycle.unwritten.front()
            && let Some(file) = self.segments.file_at(size.segment_of(*position))
        {
            let Some((position, bytes)) = self.cycle.unwritten.pop_front() else { break };
            outbox.crash_point(crash_point::LOG_WRITE.before());
            let segment = size.segment_of(position);
            if !self.cycle.unsynced.contains(&segment) {
                self.cycle.unsynced.push(segment);
            }
            self.cycle.writes += 1;
            let (offset, token) = (size.offset_of(position), WRITE << TOKEN_KIND_SHIFT | position);
            outbox.request(WorldRequest::WriteFile { file, offset, bytes, token });
        }
        if let Some((position, _)) = self.cycle.unwritten.front() {
            self.cycle.is_delayed = true;
            self.segments.prepare(size.segment_of(*position), outbox);
            // The segment may have failed long before the log needs it.
            if self.segments.has_failed() {
                self.report_space(LogSpace::DeviceFull, outbox);
                self.start_retry_timer(outbox);
            }
            return;
        }
        if self.cycle.is_full || self.cycle.has_groups() {
            return;
        }
        if PlantedBug::AcknowledgeBeforeSync.is_planted() && self.cycle.collected.is_empty() {
            self.durable = self.cycle.stable;
            self.answer_waiting(outbox);
        }
        // A file carries out its requests in order, so the sync need not wait for the answers to the writes.
        outbox.crash_point(crash_point::LOG_SYNC.before());
        self.cycle.phase = Phase::Syncing;
        let Cycle { unsynced, syncs, syncs_total, .. } = &mut self.cycle;
        for segment in unsynced.drain(..) {
            let Some(file) = self.segments.file_at(segment) else {
                junctor_kernel::invariant::fail("a segment stays open until it is synced", format_args!("{segment}"))
            };
            *syncs += 1;
            *syncs_total += 1;
            outbox.request(WorldRequest::SyncFile { file, token: SYNC << TOKEN_KIND_SHIFT | segment });
        }
        // The next segment is ready by the time this one is full.
        self.segments.prepare_ahead(size.segment_of(self.cycle.position) + 1, outbox);
    }

    pub(super) fn on_file_done(
        &mut self,
        (token, result, bytes): (u64, FileResult, FileBuffer),
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        let value = token & ((1 << TOKEN_KIND_SHIFT) - 1);
        match token >> TOKEN_KIND_SHIFT {
            WRITE => {
                self.on_written(value, &result, bytes, outbox);
                if self.cycle.phase == Phase::Writing && !self.cycle.is_full && self.cycle.has_groups() {
                    self.continue_writing(context, outbox);
                }
            }
            SYNC => self.on_synced(&result, outbox),
            RECOVER => return self.on_recovery_file((value, result, bytes), outbox),
            _ => {
                self.segments.on_file_done(value, &result, outbox);
                if self.starting.is_some() && self.cycle.phase == Phase::Stopped && self.segments.is_ready() {
                    self.begin_start(context, outbox);
                } else if self.cycle.phase == Phase::Writing {
                    self.continue_writing(context, outbox);
                }
            }
        }
        if self.cycle.writes == 0 && self.cycle.syncs == 0 {
            match self.cycle.phase {
                Phase::Writing | Phase::Syncing if self.cycle.is_full || self.needs_segment() => {
                    self.report_space(LogSpace::DeviceFull, outbox);
                    self.start_retry_timer(outbox);
                }
                Phase::Syncing => self.end_sync(context, outbox),
                Phase::Writing | Phase::Stopped | Phase::Idle | Phase::Collecting | Phase::Failed => {}
            }
        }
    }

    fn on_written(&mut self, position: u64, result: &FileResult, bytes: FileBuffer, outbox: &mut Outbox<Signal>) {
        require!(self.cycle.writes > 0, "a write is answered once: {position}");
        self.cycle.writes -= 1;
        match result {
            Ok(FileOutcome::Written { length, .. }) => {
                require!(*length as usize == bytes.len(), "a group is written whole: {length} bytes at {position}");
                if self.cycle.spare.len() < GROUPS_UNDER_WAY_MAX {
                    self.cycle.spare.push(bytes);
                }
            }
            Err(FileError::DiskFull) => {
                // Nothing is lost: the group is written again. Its sync proves nothing now.
                (self.cycle.is_full, self.cycle.is_delayed) = (true, true);
                let at = self.cycle.unwritten.partition_point(|(other, _)| *other < position);
                self.cycle.unwritten.insert(at, (position, bytes));
            }
            other => self.fail("write", other, outbox),
        }
    }

    fn on_synced(&mut self, result: &FileResult, outbox: &mut Outbox<Signal>) {
        require!(self.cycle.syncs > 0, "a sync is answered once");
        self.cycle.syncs -= 1;
        if !matches!(result, Ok(FileOutcome::Synced)) && !PlantedBug::RetryFailedSync.is_planted() {
            // The operating system may have dropped the pages and may report success for the next sync.
            self.fail("sync", result, outbox);
        }
    }

    /// Stops the node: what is on disk is unknown, so nothing more may be acknowledged.
    #[cold]
    fn fail(&mut self, action: &str, result: &FileResult, outbox: &mut Outbox<Signal>) {
        self.cycle.phase = Phase::Failed;
        let reason = failure(result);
        let message = format!("cannot {action} the log: {reason}; going on could lose commits");
        outbox.request(WorldRequest::Halt { message: message.into() });
    }

    /// Everything that was written is on disk.
    fn end_sync(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        outbox.crash_point(crash_point::LOG_WRITE.after());
        outbox.crash_point(crash_point::LOG_SYNC.after());
        self.cycle.synced = self.cycle.position;
        self.cycle.end_write(context.turn_start);
        self.groups.end_sync();
        self.segments.close_before(self.configuration.segment_size.segment_of(self.cycle.position), outbox);
        if !self.cycle.collected.is_empty() || self.cycle.kind.is_some() {
            return self.write_groups(context, outbox);
        }
        self.space.end_cycle();
        self.report_space(self.space_below_limit(), outbox);
        self.cycle.phase = Phase::Idle;
        outbox.crash_point(crash_point::LOG_PUBLISH.before());
        require!(self.durable <= self.cycle.stable, "the durable number never falls: {}", self.durable);
        self.durable = self.cycle.stable;
        if self.starting.is_some() {
            outbox.crash_point(crash_point::LOG_START.after());
            self.finish_start(outbox);
        }
        self.answer_waiting(outbox);
        outbox.crash_point(crash_point::LOG_PUBLISH.after());
        self.gathering.end_cycle(context.turn_start, self.cycle.sync_us);
        if !self.waiting.is_empty() {
            self.begin_if_gathered(context, outbox);
            return self.grant_blocks_or_sync(context, outbox);
        }
        self.grant_blocks_or_sync(context, outbox);
        if self.cycle.phase != Phase::Idle {
            return;
        }
        if self.cycle.is_closed {
            outbox.crash_point(crash_point::LOG_CLOSE.after());
        }
        if self.cycle.is_stopping {
            return self.close_before_stop(context, outbox);
        }
        // An ldm whose untaken records have reached their bound sends no more that could begin a cycle.
        if self.cycle.bytes_waiting >= CYCLE_BYTES {
            return self.begin_cycle(GroupKind::Data, context, outbox);
        }
        self.start_close_timer(outbox);
        if self.cycle.bytes_waiting > 0 {
            self.start_sync_timer(outbox);
        }
    }

    /// Answers the blocks whose commits are durable.
    pub(super) fn answer_waiting(&mut self, outbox: &mut Outbox<Signal>) {
        let durable = self.durable;
        self.waiting.retain(|to, number| {
            let is_waiting = *number > durable;
            if !is_waiting {
                let reply = AwaitDurableReply { durable };
                let signal = match to.module == Module::Tc {
                    true => Signal::Tc(TcSignal::AwaitDurableReply(reply)),
                    false => Signal::Main(MainSignal::AwaitDurableReply(reply)),
                };
                outbox.send(*to, signal);
            }
            is_waiting
        });
    }

    pub(super) fn on_timer(&mut self, token: u64, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        match token {
            SYNC_TIMER => {
                self.cycle.sync_timer_runs = false;
                if self.cycle.phase == Phase::Idle && self.cycle.bytes_waiting > 0 {
                    self.begin_cycle(GroupKind::Data, context, outbox);
                }
            }
            CLOSE_TIMER => {
                self.cycle.close_timer_runs = false;
                // While records wait, the log is not idle. A log without space goes without the group.
                let is_idle =
                    self.cycle.phase == Phase::Idle && self.waiting.is_empty() && self.cycle.bytes_waiting == 0;
                if is_idle && !self.cycle.is_closed && self.space.has_surplus() {
                    self.close(context, outbox);
                }
            }
            GATHER_TIMER => {
                self.gathering.timer_runs = false;
                self.begin_if_gathered(context, outbox);
            }
            RETRY_TIMER => {
                self.cycle.retry_timer_runs = false;
                self.retry_writes(context, outbox);
            }
            _ => self.segments.on_timer(outbox),
        }
    }

    /// Writes a closing group, which tells a later scan that the groups before it were synced.
    fn close(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        outbox.crash_point(crash_point::LOG_CLOSE.before());
        self.begin_cycle(GroupKind::Closing, context, outbox);
    }

    pub(super) fn on_stopping(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.cycle.is_stopping = true;
        self.close_before_stop(context, outbox);
        // A stop waits for no timer.
        self.retry_writes(context, outbox);
    }

    /// Writes what waits and a closing group, if the log is idle.
    pub(super) fn close_before_stop(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let is_written = self.cycle.is_closed && self.cycle.bytes_waiting == 0;
        if self.cycle.phase == Phase::Idle && self.cycle.is_stopping && !is_written {
            self.close(context, outbox);
        }
    }

    /// Writes again what a full disk has refused.
    fn retry_writes(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let is_waiting = self.cycle.writes == 0 && self.cycle.syncs == 0 && self.cycle.phase != Phase::Failed;
        // The segment's own timer may have found room already.
        if is_waiting && (self.cycle.is_full || self.needs_segment()) {
            self.cycle.is_full = false;
            self.cycle.phase = Phase::Writing;
            self.segments.retry(outbox);
            self.continue_writing(context, outbox);
        }
    }

    pub(super) fn start_close_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.cycle.is_closed && !std::mem::replace(&mut self.cycle.close_timer_runs, true) {
            let after = Duration::from_millis(CLOSE_AFTER_MS);
            outbox.request(WorldRequest::StartTimer { after, token: CLOSE_TIMER });
        }
    }

    /// Whether a group waits for a segment that could not be created.
    fn needs_segment(&self) -> bool {
        !self.cycle.unwritten.is_empty() && self.segments.has_failed()
    }

    pub(super) fn start_retry_timer(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.cycle.retry_timer_runs {
            self.cycle.retry_timer_runs = true;
            let after = Duration::from_millis(RETRY_MS);
            outbox.request(WorldRequest::StartTimer { after, token: RETRY_TIMER });
        }
    }
}

/// Why a request failed, for users.
pub(super) fn failure(result: &FileResult) -> String {
    match result {
        Ok(outcome) => format!("unexpected answer {outcome:?}"),
        Err(error) => error.to_string(),
    }
}
