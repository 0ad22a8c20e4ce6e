//! The log block: its state and its inbox.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use junctor_kernel::{Address, Buffer, Context, NodeId, Outbox, WorldEvent, require};
use junctor_model::id::CommitNumber;
use junctor_signals::restart_progress::RestartProgress;
use junctor_signals::start_log::{StartLog, StartLogReply};
use junctor_signals::{LogSignal, MainSignal, Module, Signal};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::log::{FormedRecords, MAIN_STREAM, SegmentSize, StreamCutter, StreamId};

use super::cycle::{Cycle, Phase};
use super::gathering::Gathering;
use super::group_index::GroupIndex;
use super::recover_log::Recovery;
use super::segment::Segments;
use super::space::SpaceAccount;

/// Shared with the blocks whose records the log writes: part of the closed list of invariant 2.
#[derive(Clone, Debug)]
pub struct LogShared {
    /// Source of commit numbers and of the stable number.
    pub sequence: Arc<CommitSequence>,
    /// How many records each stream has formed.
    pub formed: Arc<FormedRecords>,
    /// The progress of the node's start.
    pub progress: Arc<RestartProgress>,
    /// Whether groups wait for room on the device of the log. Log writes the word, and the thread that stops
    /// the node reads it.
    pub waits_for_room: Arc<AtomicBool>,
}

/// Maximum number of segments, unless configured otherwise.
pub const SEGMENTS_MAX_DEFAULT: u64 = 16;

/// Configuration of the log.
#[derive(Clone, Debug)]
pub struct LogConfiguration {
    /// Folder of the segments, absolute or relative to the node's data folder.
    pub folder: Box<str>,
    /// Size of a segment.
    pub segment_size: SegmentSize,
    /// The stream of each position in `FormedRecords`.
    pub streams: Vec<StreamId>,
    /// The blocks that learn when the device is full: every tc, and main.
    pub writers: Vec<Address>,
    /// Maximum time in milliseconds that records wait for a sync that no commit awaits.
    pub sync_interval_ms: u64,
    /// Maximum number of segments. Writes wait for a checkpoint before the log would exceed it.
    pub segments_max: u64,
    /// Whether transactions of other nodes write records to this log.
    pub is_shared: bool,
}

/// The one instance of log.
#[derive(Debug)]
pub struct LogBlock {
    pub(super) shared: LogShared,
    pub(super) configuration: LogConfiguration,
    pub(super) streams: Vec<Stream>,
    pub(super) segments: Segments,
    pub(super) cycle: Cycle,
    pub(super) space: SpaceAccount,
    pub(super) gathering: Gathering,
    /// The groups that recovery would replay.
    pub(super) groups: GroupIndex,
    /// The last number whose commits survive a crash.
    pub(super) durable: CommitNumber,
    /// The blocks that await a number above `durable`.
    pub(super) waiting: BTreeMap<Address, CommitNumber>,
    /// The start under way.
    pub(super) starting: Option<StartLog>,
    /// The readings before the start.
    pub(super) recovery: Recovery,
}

/// The records of one block that are not written yet.
#[derive(Debug)]
pub(super) struct Stream {
    pub id: StreamId,
    /// The ldm that forms the records; `None` for block main.
    pub ldm: Option<Address>,
    /// Records delivered in this life.
    pub received: u64,
    /// Buffers in the order of delivery.
    pub buffers: VecDeque<Pending>,
    pub cutter: StreamCutter,
}

/// A delivered buffer.
#[derive(Debug)]
pub(super) struct Pending {
    pub from: Address,
    pub bytes: Buffer,
    /// Bytes of it that are in groups.
    pub written: usize,
}

impl LogBlock {
    /// The instance of a node. It writes nothing before `StartLog`.
    pub fn new(shared: LogShared, configuration: LogConfiguration) -> LogBlock {
        require!(shared.formed.len() == configuration.streams.len(), "each stream has a count of formed records");
        let node = configuration.writers.first().map_or(NodeId::default(), |writer| writer.node);
        let streams = configuration.streams.iter().map(|id| Stream {
            id: *id,
            ldm: (*id != MAIN_STREAM).then(|| Address::new(node, Module::Ldm, id.0)),
            received: 0,
            buffers: VecDeque::new(),
            cutter: StreamCutter::new(),
        });
        LogBlock {
            shared,
            streams: streams.collect(),
            segments: Segments::new(&configuration),
            space: SpaceAccount::of(&configuration),
            configuration,
            cycle: Cycle::default(),
            gathering: Gathering::default(),
            groups: GroupIndex::default(),
            durable: CommitNumber(0),
            waiting: BTreeMap::new(),
            starting: None,
            recovery: Recovery::default(),
        }
    }

    /// Sets the maximum number of segments, before the log is started.
    #[cfg(test)]
    pub(super) fn set_segments_max(&mut self, segments: u64) {
        self.configuration.segments_max = segments;
        self.segments = Segments::new(&self.configuration);
    }

    /// The last number whose commits survive a crash. For checkers.
    pub fn durable(&self) -> CommitNumber {
        self.durable
    }

    /// Handles one signal.
    pub fn handle(&mut self, signal: LogSignal, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        match signal {
            LogSignal::AppendRecords(signal) => self.on_append_records(signal, context, outbox),
            LogSignal::AwaitDurable(signal) => self.on_await_durable(signal, context, outbox),
            LogSignal::ReserveLogSpace(signal) => self.on_reserve_log_space(signal, context, outbox),
            LogSignal::StartLog(signal) => self.on_start_log(signal, outbox),
            LogSignal::RecoverLog(signal) => self.on_recover_log(signal, outbox),
            LogSignal::ReplayLog(signal) => self.on_replay_log(signal, outbox),
            LogSignal::ReplayRowsReply(signal) => self.on_replay_rows_reply(signal, outbox),
            LogSignal::BeginCheckpoint(signal) => self.on_begin_checkpoint(signal, outbox),
            LogSignal::TrimLog(signal) => self.on_trim_log(signal, context, outbox),
            LogSignal::ReadLogUsage(signal) => self.on_read_log_usage(signal, outbox),
        }
    }

    /// Handles one event of the world.
    pub fn on_world(&mut self, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        match event {
            WorldEvent::Timer { token } => self.on_timer(token, context, outbox),
            WorldEvent::FileDone { token, result, bytes, .. } => {
                self.on_file_done((token, result, bytes), context, outbox);
            }
            WorldEvent::Stopping => self.on_stopping(context, outbox),
            WorldEvent::Started
            | WorldEvent::SocketOpened { .. }
            | WorldEvent::Received { .. }
            | WorldEvent::SendBlocked { .. }
            | WorldEvent::SendDrained { .. }
            | WorldEvent::SocketClosed { .. } => {}
        }
    }

    fn on_start_log(&mut self, signal: StartLog, outbox: &mut Outbox<Signal>) {
        require!(self.starting.is_none() && self.cycle.phase == Phase::Stopped, "the log is started once");
        self.cycle.begin_life(&signal);
        self.space = SpaceAccount::of(&self.configuration);
        self.space.begin_life(self.used_blocks());
        self.durable = signal.highest_number;
        self.segments.open_first(self.cycle.position, outbox);
        self.starting = Some(signal);
    }

    /// Answers main once the start group is durable.
    pub(super) fn finish_start(&mut self, outbox: &mut Outbox<Signal>) {
        if let Some(start) = self.starting.take() {
            self.segments.delete_surplus(outbox);
            self.grant_first_blocks(outbox);
            outbox.send(start.reply_to, Signal::Main(MainSignal::StartLogReply(StartLogReply {})));
        }
    }
}
