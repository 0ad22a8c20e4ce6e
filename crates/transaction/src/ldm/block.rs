//! The ldm block: its state, and the dispatch of its signals.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_kernel::{Address, Context, Outbox, WireSignal, WorldEvent};
use junctor_model::id::{CommitNumber, Epoch, PartitionId, TransactionId};
use junctor_signals::counter::LdmCounters;
use junctor_signals::read_rows::ReadRows;
use junctor_signals::replicate_rows::ReplicateRows;
use junctor_signals::report_node::NodeWords;
use junctor_signals::restart_progress::RestartProgress;
use junctor_signals::start_epoch::{LateNodes, has_node};
use junctor_signals::write_rows::WriteRows;
use junctor_signals::{LdmSignal, Signal};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::guard::ReadGroup;
use junctor_storage::lock::{LOCKS_MAX, LockTable};
use junctor_storage::page::PagePool;
use junctor_storage::snapshot::SnapshotRegistry;

use super::checkpoint::{CHECKPOINT_FILE, CHECKPOINT_TIMER, CheckpointWriter, TOKEN_KIND_SHIFT};
use super::copy_rows::CopyRun;
use super::deferred::DeferredWork;
use super::load_checkpoint::{CheckpointLoad, LOAD_FILE};
use super::lock_wait::LockWaits;
use super::participant_table::{ParticipantHandle, ParticipantTable};
use super::partition_table::{PartitionSlot, PartitionTable, SlotIndex};
use super::purge::PurgeQueue;
use super::record_stream::{LogTarget, RecordStream};
use super::replay::ReplayQueue;
use super::state::{Batch, Participant, PreparedImages};
use super::update_row::RowBuilder;
use crate::read::RowReader;

/// The data that the ldm instances of a node share with its other blocks. `docs/architecture.md`, invariant
/// 2, lists all data that blocks may share.
#[derive(Clone, Debug)]
pub struct LdmShared {
    /// Source of commit numbers and of the stable number.
    pub sequence: Arc<CommitSequence>,
    /// Snapshots in use. The oldest one bounds what purging may free.
    pub snapshots: Arc<SnapshotRegistry>,
    /// Pages for rows, indexes and overflow values.
    pub pages: Arc<PagePool>,
    /// The read group of every partition of the node.
    pub readers: ReadGroup,
    /// The log; `None` on a node that keeps everything in memory only.
    pub log: Option<LogTarget>,
    /// The progress of the node's start.
    pub progress: Arc<RestartProgress>,
}

/// Memory that handlers reuse. It carries nothing from one signal to the next, except the reader's counts.
#[derive(Debug)]
pub(super) struct WorkingMemory {
    pub reader: RowReader,
    pub row_builder: RowBuilder,
    pub spare_batches: Vec<Batch>,
}

/// One ldm instance.
#[derive(Debug)]
pub struct LdmBlock {
    pub(super) own: Address,
    pub(super) shared: LdmShared,
    /// The membership epoch that this instance has started; 0 on a node alone.
    pub(super) epoch: Epoch,
    /// Whether the node belongs to a cluster with voters, which admit its lives.
    pub(super) has_voters: bool,
    /// The epoch in which a cluster with voters admitted this life of the node; 0 before.
    pub(super) admitted: Epoch,
    /// Nodes that have left the cluster. Nothing waits for them.
    pub(super) gone: NodeWords,
    /// The order of the others in chains, and which of them chains do not name.
    pub(super) late: LateNodes,
    /// Set while the node copies rows: all later changes come as images.
    pub(super) copies_at: Option<CommitNumber>,
    /// The copy under way.
    pub(super) copying: Option<Box<CopyRun>>,
    /// Images for partitions that the node does not have yet.
    pub(super) unplaced: Vec<ReplicateRows>,
    /// Signals of an epoch that has not started here.
    pub(super) parked: Vec<LdmSignal>,
    /// The main block whose catalog came last.
    pub(super) publisher: Option<Address>,
    pub(super) partitions: PartitionTable,
    pub(super) participants: ParticipantTable,
    pub(super) locks: LockTable,
    pub(super) waits: LockWaits,
    pub(super) deferred: DeferredWork,
    /// Rows of transactions whose primary is at another node, while this ldm is a backup for them.
    pub(super) backed_up: BTreeMap<(TransactionId, PartitionId), PreparedImages>,
    /// Writes of partitions that may not be written yet, because an epoch has not started here, or images of
    /// the epochs before are left.
    pub(super) held_writes: Vec<WriteRows>,
    pub(super) records: RecordStream,
    pub(super) replay: ReplayQueue,
    pub(super) checkpoint: CheckpointWriter,
    /// The checkpoint that recovery loads.
    pub(super) load: Option<Box<CheckpointLoad>>,
    pub(super) purge: PurgeQueue,
    /// The largest commit number that this instance has begun to apply.
    pub(super) applied: CommitNumber,
    pub(super) memory: WorkingMemory,
    /// The counters of this block. Counts of reads are in `memory.reader`.
    pub(super) counted: LdmCounters,
}

impl LdmBlock {
    /// Creates the instance at `own`. `seed` makes its hash tables differ from start to start.
    pub fn new(own: Address, shared: LdmShared, seed: u64) -> LdmBlock {
        LdmBlock {
            own,
            epoch: Epoch(0),
            has_voters: false,
            admitted: Epoch(0),
            gone: NodeWords::default(),
            late: LateNodes::default(),
            copies_at: None,
            copying: None,
            unplaced: Vec::new(),
            parked: Vec::new(),
            publisher: None,
            partitions: PartitionTable::new(seed),
            participants: ParticipantTable::new(seed),
            locks: LockTable::new(seed, LOCKS_MAX),
            waits: LockWaits::new(),
            deferred: DeferredWork::default(),
            backed_up: BTreeMap::new(),
            held_writes: Vec::new(),
            records: RecordStream::new(own.instance, shared.log.clone()),
            replay: ReplayQueue::default(),
            checkpoint: CheckpointWriter::new(),
            load: None,
            purge: PurgeQueue::new(),
            applied: CommitNumber(0),
            shared,
            memory: WorkingMemory {
                reader: RowReader::new(),
                row_builder: RowBuilder::default(),
                spare_batches: Vec::new(),
            },
            counted: LdmCounters::default(),
        }
    }

    /// Opens partitions only to these query instances, which have a slot in the read group. On a node with
    /// several groups, the other query instances forward their requests to the owner.
    #[must_use]
    pub fn with_readers(mut self, instances: Vec<u16>) -> LdmBlock {
        self.partitions.reader_instances = Some(instances);
        self
    }

    /// A block of a cluster whose voters admit each life of a node.
    #[must_use]
    pub fn with_voters(mut self, has_voters: bool) -> LdmBlock {
        self.has_voters = has_voters;
        self
    }

    /// Sets the number of bytes not yet taken by the log from which new writes wait.
    pub fn set_untaken_record_bytes_max(&mut self, bytes: usize) {
        self.records.set_untaken_bytes_max(bytes);
    }

    /// Handles one signal.
    pub fn handle(&mut self, signal: LdmSignal, from: Address, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        // The start of an epoch has ended what was under way there. A life that was admitted since, in an
        // epoch that begins here later, may already ask for rows.
        let is_later_life = matches!(&signal, LdmSignal::CopyRows(request) if request.epoch > self.epoch);
        if self.epoch.0 > 0 && has_node(&self.gone, from.node) && !is_later_life {
            return WireSignal::recycle(Signal::Ldm(signal), context.buffers);
        }
        match signal {
            // A read at a life that is not admitted may mean the life before. It waits, and its sender learns
            // of the loss meanwhile; or all nodes start, and the sender has begun the epoch before this node.
            LdmSignal::ReadRows(ReadRows { reply_to, .. })
                if self.has_voters && self.epoch.0 == 0 && reply_to.node != self.own.node =>
            {
                self.parked.push(signal);
            }
            // Long reads of this thread's sessions wait in the same queue.
            LdmSignal::ReadRows(signal) if signal.is_long() && outbox.is_from_other_thread(from) => {
                outbox.send_long_running(self.own, Signal::Ldm(LdmSignal::ReadRows(signal)));
            }
            LdmSignal::ReadRows(signal) => self.on_read_rows(signal, context, outbox),
            LdmSignal::WriteRows(signal) => self.on_write_rows(signal, context, outbox),
            LdmSignal::InterruptWrites(signal) => self.on_interrupt_writes(signal, outbox),
            LdmSignal::PrepareTransaction(signal) => self.on_prepare_transaction(signal, context, outbox),
            LdmSignal::CommitTransaction(signal) => self.on_commit_transaction(signal, outbox),
            LdmSignal::UndoTransaction(signal) => self.on_undo_transaction(signal, context, outbox),
            LdmSignal::BeginEpoch(signal) => self.on_begin_epoch(signal, context, outbox),
            LdmSignal::ReplicateRows(signal) => self.on_replicate_rows(signal, context, outbox),
            LdmSignal::ReplicateRowsReply(signal) => self.on_replicate_rows_reply(signal, context, outbox),
            LdmSignal::CopyRows(signal) => self.on_copy_rows(signal, context, outbox),
            LdmSignal::CopyRowsReply(signal) => self.on_copy_rows_reply(signal, context, outbox),
            LdmSignal::CopyPartitions(signal) => self.on_copy_partitions(signal, outbox),
            LdmSignal::ReplayRows(signal) => self.on_replay_rows(signal, outbox),
            LdmSignal::BuildIndexes(signal) => self.on_build_indexes(signal, outbox),
            LdmSignal::WriteCheckpoint(signal) => self.on_write_checkpoint(signal, context, outbox),
            LdmSignal::SetCheckpointSpeed(signal) => self.on_set_checkpoint_speed(signal, context, outbox),
            LdmSignal::EndCheckpoint(signal) => self.on_end_checkpoint(signal, outbox),
            LdmSignal::LoadCheckpoint(signal) => self.on_load_checkpoint(signal, outbox),
            LdmSignal::AppendRecordsReply(signal) => self.on_append_records_reply(signal, context, outbox),
            LdmSignal::DeliverRecords(_) => self.records.request(),
            LdmSignal::CancelWait(signal) => self.on_cancel_wait(signal, from, outbox),
            LdmSignal::ChangePartition(signal) => self.on_change_partition(signal, context, outbox),
            LdmSignal::ReadStatus(signal) => self.on_read_status(signal, context, outbox),
            LdmSignal::PublishCatalog(signal) => self.on_publish_catalog(signal, outbox),
            LdmSignal::ContinueWork(_) => self.on_continue_work(context, outbox),
        }
        self.run_granted(outbox);
    }

    /// Handles one event of the world.
    pub fn on_world(&mut self, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        match event {
            WorldEvent::Timer { token: CHECKPOINT_TIMER } => self.on_checkpoint_timer(context, outbox),
            WorldEvent::Timer { .. } => self.on_purge_timer(outbox),
            WorldEvent::FileDone { token, result, bytes } if token >> TOKEN_KIND_SHIFT == CHECKPOINT_FILE => {
                self.on_checkpoint_file((result, bytes), context, outbox);
            }
            WorldEvent::FileDone { token, result, bytes } if token >> TOKEN_KIND_SHIFT == LOAD_FILE => {
                self.on_load_file((token, result, bytes), outbox);
            }
            WorldEvent::Stopping => {
                self.checkpoint.stop();
                self.records.request();
                self.before_publish(outbox);
            }
            WorldEvent::Started
            | WorldEvent::FileDone { .. }
            | WorldEvent::SocketOpened { .. }
            | WorldEvent::Received { .. }
            | WorldEvent::SendBlocked { .. }
            | WorldEvent::SendDrained { .. }
            | WorldEvent::SocketClosed { .. } => {}
        }
        self.run_granted(outbox);
    }

    /// The slot of a partition. A transaction that touches the partition also refers to the slot.
    pub(super) fn slot(&mut self, index: SlotIndex) -> &mut PartitionSlot {
        self.partitions.slot(index)
    }

    pub(super) fn participant(&mut self, handle: ParticipantHandle) -> &mut Participant {
        self.participants.record(handle)
    }
}
