//! The ldm block: its state and its inbox.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use junctor_kernel::{Address, Context, Outbox, Pool, WorldEvent};
use junctor_model::id::{CommitNumber, PartitionId, TransactionId};
use junctor_model::limit::TRANSACTIONS_MAX;
use junctor_signals::change_schema::{PublishCatalog, PublishCatalogReply};
use junctor_signals::counter::LdmCounters;
use junctor_signals::inbox::ContinueWork;
use junctor_signals::write_rows::WriteRows;
use junctor_signals::{LdmSignal, MainSignal, Signal};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::guard::ReadGroup;
use junctor_storage::lock::{LOCKS_MAX, LockTable, WaiterToken};
use junctor_storage::page::PagePool;
use junctor_storage::snapshot::SnapshotRegistry;

use super::purge::OLD_VERSIONS_KEPT_MIN;
use super::redo_log::RedoLog;
use super::state::{
    Batch, Deferred, KeptImages, ParkedWrite, Participant, ParticipantHandle, PartitionSlot, SlotIndex,
};
use super::update_row::RowBuilder;
use crate::read::RowReader;

/// Work that a handler does after its signal for requests that were granted by it; what is beyond waits for the next
/// turn.
const GRANTS_PER_SIGNAL_MAX: usize = 32;

/// Steps of work put off in one turn; others wait for the next one, so that what has come to the thread meanwhile goes first.
const STEPS_PER_TURN_MAX: usize = 8;

/// What all ldm instances of a node share with other blocks of it: the closed list of invariant 2.
#[derive(Clone, Debug)]
pub struct LdmShared {
    /// Commit numbers and the stable number.
    pub sequence: Arc<CommitSequence>,
    /// The snapshots that are being read.
    pub snapshots: Arc<SnapshotRegistry>,
    /// Row memory.
    pub pages: Arc<PagePool>,
    /// The readers of every partition of the node.
    pub readers: ReadGroup,
}

/// One instance of ldm.
#[derive(Debug)]
pub struct LdmBlock {
    pub(super) own: Address,
    pub(super) shared: LdmShared,
    /// The query instances that partitions are opened to; all of the node if not said otherwise.
    pub(super) readers: Option<Vec<u16>>,
    pub(super) slots: Vec<Option<PartitionSlot>>,
    pub(super) free_slots: Vec<SlotIndex>,
    pub(super) by_partition: HashMap<PartitionId, SlotIndex, FixedState>,
    pub(super) locks: LockTable,
    pub(super) participants: Pool<Box<Participant>>,
    pub(super) by_transaction: HashMap<TransactionId, ParticipantHandle, FixedState>,
    /// Records of ended participants, for their memory.
    #[allow(clippy::vec_box)] // They go back into the pool as they are.
    pub(super) spare_participants: Vec<Box<Participant>>,
    pub(super) spare_batches: Vec<Batch>,
    /// Writes that wait for a lock, by the sequence of their wait.
    pub(super) parked: BTreeMap<u64, ParkedWrite>,
    /// The sequence of the next wait.
    pub(super) next_wait: u64,
    /// Waits that were granted and not yet gone on with.
    pub(super) granted: VecDeque<WaiterToken>,
    pub(super) granted_now: Vec<WaiterToken>,
    pub(super) deferred: VecDeque<Deferred>,
    /// The largest number that was applied here.
    pub(super) applied: CommitNumber,
    /// Whether a reminder to go on is under way.
    pub(super) is_reminded: bool,
    /// Rows of transactions of other nodes that this one backs up.
    pub(super) backed_up: BTreeMap<(TransactionId, PartitionId), KeptImages>,
    pub(super) redo: RedoLog,
    /// Writes that wait until redo bytes are on their way.
    pub(super) held_back: VecDeque<WriteRows>,
    pub(super) purging: Vec<SlotIndex>,
    /// Those of them, the first ones, that this round has not come to.
    pub(super) purge_left: usize,
    /// Whether some that the round came to can be purged further at once.
    pub(super) purge_has_more: bool,
    pub(super) old_versions_kept_min: usize,
    /// Whether the timer runs that writes redo.
    pub(super) short_timer_runs: bool,
    /// Whether the timer runs that purges.
    pub(super) purge_timer_runs: bool,
    pub(super) reader: RowReader,
    pub(super) rows: RowBuilder,
    /// What the reader counts is in it.
    pub(super) counted: LdmCounters,
}

impl LdmBlock {
    /// The instance at `own`. `seed` makes its hash tables differ from start to start.
    pub fn new(own: Address, shared: LdmShared, seed: u64) -> LdmBlock {
        LdmBlock {
            own,
            shared,
            readers: None,
            slots: Vec::new(),
            free_slots: Vec::new(),
            by_partition: HashMap::with_hasher(FixedState::with_seed(seed)),
            locks: LockTable::new(seed, LOCKS_MAX),
            participants: Pool::new(TRANSACTIONS_MAX as u32),
            by_transaction: HashMap::with_hasher(FixedState::with_seed(seed)),
            spare_participants: Vec::new(),
            spare_batches: Vec::new(),
            parked: BTreeMap::new(),
            next_wait: 1,
            granted: VecDeque::new(),
            granted_now: Vec::new(),
            deferred: VecDeque::new(),
            applied: CommitNumber(0),
            is_reminded: false,
            backed_up: BTreeMap::new(),
            redo: RedoLog::new(own.instance),
            held_back: VecDeque::new(),
            purging: Vec::new(),
            purge_left: 0,
            purge_has_more: false,
            old_versions_kept_min: OLD_VERSIONS_KEPT_MIN,
            short_timer_runs: false,
            purge_timer_runs: false,
            reader: RowReader::new(),
            rows: RowBuilder::default(),
            counted: LdmCounters::default(),
        }
    }

    /// Opens partitions to these query instances only: those with a slot of the read group. On a node with several
    /// groups the others must not look inside; they pass their requests on to the owner.
    #[must_use]
    pub fn with_readers(self, instances: Vec<u16>) -> LdmBlock {
        LdmBlock { readers: Some(instances), ..self }
    }

    /// Lets so many bytes of redo wait to be written before new writes are held back.
    pub fn set_redo_bytes_waiting_max(&mut self, bytes: usize) {
        self.redo.set_waiting_bytes_max(bytes);
    }

    /// Handles one signal.
    pub fn handle(&mut self, signal: LdmSignal, from: Address, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        match signal {
            LdmSignal::ReadRows(signal) => self.on_read_rows(signal, context, outbox),
            LdmSignal::WriteRows(signal) => self.on_write_rows(signal, context, outbox),
            LdmSignal::InterruptWrites(signal) => self.on_interrupt_writes(signal, outbox),
            LdmSignal::PrepareTransaction(signal) => self.on_prepare_transaction(signal, context, outbox),
            LdmSignal::CommitTransaction(signal) => self.on_commit_transaction(signal, outbox),
            LdmSignal::UndoTransaction(signal) => self.on_undo_transaction(signal, outbox),
            LdmSignal::ReplicateRows(signal) => self.on_replicate_rows(signal, outbox),
            LdmSignal::ReplicateRowsReply(signal) => self.on_replicate_rows_reply(signal, context, outbox),
            LdmSignal::ApplyReplica(signal) => self.on_apply_replica(signal, outbox),
            LdmSignal::CancelWait(signal) => self.on_cancel_wait(signal, from, outbox),
            LdmSignal::ChangePartition(signal) => self.on_change_partition(signal, context, outbox),
            LdmSignal::ReadStatus(signal) => self.on_read_status(signal, context, outbox),
            LdmSignal::PublishCatalog(signal) => on_publish_catalog(signal, outbox),
            LdmSignal::ContinueWork(_) => self.on_continue_work(context, outbox),
        }
        self.run_granted(outbox);
    }

    /// Handles one event of the world.
    pub fn on_world(&mut self, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        match event {
            WorldEvent::Started => self.redo.start(outbox),
            WorldEvent::Timer { token } => self.on_timer(token, context, outbox),
            WorldEvent::FileDone { token, result, bytes } => self.on_file_done(token, result, bytes, context, outbox),
            WorldEvent::Stopping => self.redo.stop(outbox),
            WorldEvent::SocketOpened { .. }
            | WorldEvent::Received { .. }
            | WorldEvent::SendBlocked { .. }
            | WorldEvent::SendDrained { .. }
            | WorldEvent::SocketClosed { .. } => {}
        }
        self.run_granted(outbox);
    }

    /// The partition in that place; it is there for as long as somebody holds the place.
    pub(super) fn slot(&mut self, index: SlotIndex) -> &mut PartitionSlot {
        match self.slots.get_mut(index as usize) {
            Some(Some(slot)) => slot,
            _ => junctor_kernel::invariant::fail("a place in use has its partition", format_args!("place {index}")),
        }
    }

    pub(super) fn participant(&mut self, handle: ParticipantHandle) -> &mut Participant {
        match self.participants.get_mut(handle) {
            Some(participant) => participant,
            None => junctor_kernel::invariant::fail("a handle in use has its record", format_args!("{handle:?}")),
        }
    }

    /// Puts work off to a later turn.
    pub(super) fn defer(&mut self, work: Deferred, outbox: &mut Outbox<Signal>) {
        self.deferred.push_back(work);
        self.remind(outbox);
    }

    fn remind(&mut self, outbox: &mut Outbox<Signal>) {
        if !self.is_reminded {
            self.is_reminded = true;
            outbox.send_next_turn(self.own, Signal::Ldm(LdmSignal::ContinueWork(ContinueWork { work: 0 })));
        }
    }

    fn on_continue_work(&mut self, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.is_reminded = false;
        for _ in 0..self.deferred.len().min(STEPS_PER_TURN_MAX) {
            match self.deferred.pop_front() {
                Some(Deferred::Write(work)) => self.run_write(*work, outbox),
                Some(Deferred::Settle(participant)) => self.run_settle(participant, outbox),
                Some(Deferred::ApplyReplica(signal)) => self.on_apply_replica(signal, outbox),
                Some(Deferred::ReplicateRows(signal)) => self.on_replicate_rows(*signal, outbox),
                Some(Deferred::ChangePartition(signal)) => self.on_change_partition(*signal, context, outbox),
                Some(Deferred::BuildIndex { operation, reply_to, partition, index, from }) => {
                    self.build_index(operation, reply_to, partition, index, from, outbox);
                }
                Some(Deferred::Purge) => {
                    self.purge(outbox);
                }
                Some(Deferred::Compact(partition)) => self.compact(partition, outbox),
                None => break,
            }
        }
        if !self.deferred.is_empty() {
            self.remind(outbox);
        }
    }

    /// Goes on with writes whose locks were granted while a signal was handled.
    fn run_granted(&mut self, outbox: &mut Outbox<Signal>) {
        for _ in 0..GRANTS_PER_SIGNAL_MAX {
            let Some(token) = self.granted.pop_front() else { return };
            self.on_granted(token, outbox);
        }
        if !self.granted.is_empty() {
            self.remind(outbox);
        }
    }

    /// Takes over what the lock table granted.
    pub(super) fn note_granted(&mut self) {
        self.granted.extend(self.granted_now.drain(..));
    }
}

/// Partitions know their layouts and chains from main's `ChangePartition`, so a catalog tells nothing new.
fn on_publish_catalog(signal: PublishCatalog, outbox: &mut Outbox<Signal>) {
    let reply = PublishCatalogReply { operation: signal.operation };
    outbox.send(signal.reply_to, Signal::Main(MainSignal::PublishCatalogReply(reply)));
}
