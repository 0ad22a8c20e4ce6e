//! The tc block: its state, and the dispatch of its signals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use junctor_kernel::{Address, Context, Directory, Duration, Outbox, Pool, WireSignal, WorldEvent, require};
use junctor_model::id::{CommitNumber, ConnectionId, Epoch, TableId, TransactionId};
use junctor_model::limit::TRANSACTIONS_MAX;
use junctor_signals::Module;
use junctor_signals::change_schema::{Catalog, PublishCatalog, PublishCatalogReply};
use junctor_signals::commit_transaction::coordinator;
use junctor_signals::counter::TcCounters;
use junctor_signals::lock_wait::ProbeDeadlock;
use junctor_signals::report_node::NodeWords;
use junctor_signals::start_epoch::{LateNodes, has_node};
use junctor_signals::take_number::Participant;
use junctor_signals::{MainSignal, Signal, TcSignal};
use junctor_storage::commit_sequence::CommitSequence;

use super::await_durable::{DurableWaits, HELD_TIMER};
use super::follow_up::EntryPrograms;
use super::state::{TransactionHandle, TransactionRecord};
use junctor_storage::commit_sequence::Numbering;

/// Number of low bits of a transaction's counter that hold its index in the pool.
const INDEX_BITS: u32 = 16;

/// One tc instance.
#[derive(Debug)]
pub struct TcBlock {
    pub(super) own: Address,
    /// The membership epoch that this instance has started; 0 on a node alone.
    pub(super) epoch: Epoch,
    /// The epoch in which the cluster admitted this life of the node; 0 before.
    pub(super) admitted: Epoch,
    pub(super) sequence: Arc<CommitSequence>,
    pub(super) numbering: Numbering,
    /// Nodes that have left the cluster. Nothing waits for them.
    pub(super) gone: NodeWords,
    /// The order of the others in chains.
    pub(super) late: LateNodes,
    /// In a cluster, the last number of which main has said that it is confirmed.
    pub(super) confirmed: CommitNumber,
    pub(super) catalog: Arc<Catalog>,
    pub(super) transactions: Pool<Box<TransactionRecord>>,
    /// Records of ended transactions, kept for their memory.
    #[allow(clippy::vec_box)] // They go back into the pool as they are.
    pub(super) spare: Vec<Box<TransactionRecord>>,
    /// Transactions that wait for a number to be stable: those of this tc, and those of other instances that
    /// wait for a number taken here.
    pub(super) waiting_stable: BTreeSet<(CommitNumber, TransactionId)>,
    /// In a cluster, transactions whose statements have seen a number that was not stable at this node.
    pub(super) waiting_seen: BTreeSet<(CommitNumber, TransactionId)>,
    /// `None` on a node without a log.
    pub(super) durable_waits: Option<DurableWaits>,
    /// Reused by `request_number`: the participants of a transaction.
    pub(super) requested: Vec<Participant>,
    /// Reused by `mark_applied`: numbers that became stable, with the tc that took each.
    pub(super) became_stable: Vec<(CommitNumber, u16)>,
    /// Programs that insert and delete entries of hidden tables.
    pub(super) entry_programs: BTreeMap<TableId, EntryPrograms>,
    /// Probes to be followed within the current signal.
    pub(super) probes: Vec<ProbeDeadlock>,
    /// Transactions of the node that wait for tables, with their sql blocks and sessions.
    pub(super) table_waits: BTreeMap<TransactionId, (Address, ConnectionId)>,
    /// Whether the timer that checks deadlines of waits is running.
    pub(super) wait_timer_runs: bool,
    pub(super) counted: TcCounters,
}

impl TcBlock {
    /// Creates the instance at `own` of a node with this directory. The whole node shares `sequence`.
    pub fn new(own: Address, directory: &Directory, sequence: Arc<CommitSequence>) -> TcBlock {
        let instances = u32::from(directory.instances(Module::Tc).max(1));
        let transactions_max = (TRANSACTIONS_MAX as u32 / instances).max(1);
        const { assert!(TRANSACTIONS_MAX <= 1 << INDEX_BITS) };
        TcBlock {
            own,
            epoch: Epoch(0),
            admitted: Epoch(0),
            sequence,
            numbering: Numbering::Local,
            gone: NodeWords::default(),
            late: LateNodes::default(),
            confirmed: CommitNumber(0),
            catalog: Arc::new(Catalog::default()),
            transactions: Pool::new(transactions_max),
            spare: Vec::new(),
            waiting_stable: BTreeSet::new(),
            waiting_seen: BTreeSet::new(),
            durable_waits: None,
            requested: Vec::new(),
            became_stable: Vec::new(),
            entry_programs: BTreeMap::new(),
            probes: Vec::new(),
            table_waits: BTreeMap::new(),
            wait_timer_runs: false,
            counted: TcCounters::default(),
        }
    }

    /// Answers commits only once this log block has made them durable. Statements and commits wait for space
    /// in the log at most this long.
    #[must_use]
    pub fn with_log(self, log: Address, wait_max: Duration) -> TcBlock {
        TcBlock { durable_waits: Some(DurableWaits::new(log, wait_max)), ..self }
    }

    /// Takes commit numbers as the node does.
    #[must_use]
    pub fn with_numbering(mut self, numbering: Numbering) -> TcBlock {
        self.numbering = numbering;
        if let Some(waits) = self.durable_waits.as_mut().filter(|_| numbering == Numbering::Cluster) {
            waits.reporter = Address::new(self.own.node, Module::Main, 0);
        }
        self
    }

    /// How many transactions are open.
    pub fn transactions_open(&self) -> usize {
        self.transactions.len()
    }

    /// The version of the schema that transactions use, for checkers.
    pub fn schema_version(&self) -> u64 {
        self.catalog.dictionary.version
    }

    /// Handles one signal.
    pub fn handle(&mut self, signal: TcSignal, from: Address, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        if self.numbering == Numbering::Cluster && self.is_late(&signal, from) {
            return WireSignal::recycle(Signal::Tc(signal), context.buffers);
        }
        match signal {
            TcSignal::ExecuteStatement(signal) => self.on_execute_statement(signal, context, outbox),
            TcSignal::InterruptStatement(signal) => {
                if !self.interrupt_held(&signal, context, outbox) {
                    self.on_interrupt_statement(signal, outbox);
                }
            }
            TcSignal::EndTransaction(signal) => self.on_end_transaction(signal, outbox),
            TcSignal::UndoStatements(signal) => self.on_undo_statements(signal, outbox),
            TcSignal::WriteRowsReply(signal) => self.on_write_rows_reply(signal, from, context, outbox),
            TcSignal::PrepareTransactionReply(signal) => self.on_prepare_transaction_reply(signal, outbox),
            TcSignal::CommitTransactionReply(signal) => self.on_commit_transaction_reply(signal, context, outbox),
            TcSignal::UndoTransactionReply(signal) => self.on_undo_transaction_reply(signal, outbox),
            TcSignal::LogSpaceChanged(signal) => self.on_log_space_changed(signal),
            TcSignal::ReserveLogSpaceReply(signal) => {
                self.on_reserve_log_space_reply(signal, context.turn_start, outbox);
            }
            TcSignal::AwaitDurableReply(signal) => self.on_await_durable_reply(signal, outbox),
            TcSignal::SeenStable(signal) => self.on_seen_stable(signal.number, context, outbox),
            TcSignal::CommitStable(signal) => self.on_commit_stable(signal.number, context, outbox),
            TcSignal::AwaitStable(signal) => self.on_await_stable(signal, outbox),
            TcSignal::NumberTaken(signal) => self.on_number_taken(signal, outbox),
            TcSignal::BeginEpoch(signal) => self.on_begin_epoch(signal, context, outbox),
            TcSignal::LeaveSessions(signal) => self.on_leave_sessions(signal, outbox),
            TcSignal::LockWaitStarted(signal) => self.on_lock_wait_started(signal, context, outbox),
            TcSignal::LockWaitEnded(signal) => self.on_lock_wait_ended(signal, outbox),
            TcSignal::ProbeDeadlock(signal) => self.on_probe_deadlock(signal, outbox),
            TcSignal::NoteTableWait(signal) => self.on_note_table_wait(signal, outbox),
            TcSignal::ReadStatus(signal) => self.on_read_status(signal, context, outbox),
            TcSignal::PublishCatalog(signal) => self.on_publish_catalog(signal, outbox),
        }
    }

    /// Whether a signal concerns what has ended.
    #[inline]
    fn is_late(&self, signal: &TcSignal, from: Address) -> bool {
        // The start of an epoch has ended what was under way at nodes that are gone.
        if self.epoch.0 > 0 && has_node(&self.gone, from.node) {
            return true;
        }
        if from.node == self.own.node {
            return false;
        }
        // A node that has not noticed that the life before of this node has ended replies to it here, or
        // tells of its waits.
        let transaction = match signal {
            TcSignal::WriteRowsReply(reply) => reply.transaction,
            TcSignal::PrepareTransactionReply(reply) => reply.transaction,
            TcSignal::CommitTransactionReply(reply) => reply.transaction,
            TcSignal::UndoTransactionReply(reply) => reply.transaction,
            TcSignal::LockWaitStarted(wait) => wait.transaction,
            TcSignal::LockWaitEnded(wait) => wait.transaction,
            _ => return false,
        };
        self.find(transaction).is_none()
    }

    /// Handles a timer or the start of the node.
    pub fn on_world(&mut self, event: WorldEvent, context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        self.counted.signals += 1;
        match event {
            WorldEvent::Timer { token: HELD_TIMER } => self.on_held_timer(context, outbox),
            WorldEvent::Timer { .. } => self.on_wait_timer(context, outbox),
            // Transaction ids of an earlier run of the node may be on disk and in replies of other nodes, so
            // do not reuse them.
            WorldEvent::Started => self.transactions.begin_generations_at(context.random.word() as u32),
            WorldEvent::Stopping
            | WorldEvent::SocketOpened { .. }
            | WorldEvent::Received { .. }
            | WorldEvent::SendBlocked { .. }
            | WorldEvent::SendDrained { .. }
            | WorldEvent::SocketClosed { .. }
            | WorldEvent::FileDone { .. } => {}
        }
    }

    fn on_publish_catalog(&mut self, signal: PublishCatalog, outbox: &mut Outbox<Signal>) {
        self.catalog = signal.catalog;
        let dictionary = &self.catalog.dictionary;
        // Programs refer to table layouts, so programs of dropped tables would keep memory.
        self.entry_programs.retain(|table, _| dictionary.table(*table).is_some());
        let reply = PublishCatalogReply { operation: signal.operation };
        outbox.send(signal.reply_to, Signal::Main(MainSignal::PublishCatalogReply(reply)));
    }

    /// Begins a transaction. `None` when the pool is full.
    pub(super) fn begin(&mut self) -> Option<TransactionHandle> {
        if self.transactions.len() == self.transactions.capacity() {
            return None;
        }
        let record = self.spare.pop().unwrap_or_default();
        let handle = self.transactions.insert(record).ok()?;
        // The generation makes the id unique, so that a late signal for an ended transaction finds no record.
        let counter = u64::from(handle.generation) << INDEX_BITS | u64::from(handle.index);
        let record = self.transactions.get_mut(handle)?;
        require!(record.id.0 == 0 && record.participants.is_empty(), "a transaction begins with an empty record");
        record.id = TransactionId::new(self.own.node.0, self.own.instance, counter);
        Some(handle)
    }

    /// The record of a transaction, if it belongs to this instance and is open.
    pub(super) fn find(&self, transaction: TransactionId) -> Option<TransactionHandle> {
        let counter = transaction.0 & ((1 << TransactionId::COUNTER_BITS) - 1);
        let place = (counter & ((1 << INDEX_BITS) - 1)) as u32;
        let handle = TransactionHandle::new(place, (counter >> INDEX_BITS) as u32);
        let is_own = coordinator(transaction) == self.own;
        (is_own && self.transactions.get(handle).is_some()).then_some(handle)
    }

    /// The open transaction to which a participant's reply belongs. It stays open until all participants have
    /// answered.
    pub(super) fn awaiting(&self, transaction: TransactionId) -> TransactionHandle {
        match self.find(transaction) {
            Some(handle) => handle,
            None => junctor_kernel::invariant::fail(
                "a transaction is open until every participant has answered",
                format_args!("{transaction}"),
            ),
        }
    }

    /// The open transaction to which the reply to a prepare or a rollback belongs. `None` if an epoch has
    /// started since the order: the transaction has got another order, or has ended.
    pub(super) fn awaiting_order(&mut self, transaction: TransactionId, epoch: Epoch) -> Option<TransactionHandle> {
        let found = self.find(transaction).filter(|handle| self.record(*handle).epoch == epoch);
        require!(
            found.is_some() || epoch < self.epoch,
            "a transaction is open until every participant has answered: {transaction}"
        );
        found
    }

    pub(super) fn record(&mut self, handle: TransactionHandle) -> &mut TransactionRecord {
        record_of(&mut self.transactions, handle)
    }

    pub(super) fn tc_address(&self, instance: u16) -> Address {
        Address::new(self.own.node, Module::Tc, instance)
    }
}

pub(super) fn record_of(
    transactions: &mut Pool<Box<TransactionRecord>>,
    handle: TransactionHandle,
) -> &mut TransactionRecord {
    match transactions.get_mut(handle) {
        Some(record) => record,
        None => junctor_kernel::invariant::fail("a handle in use has its record", format_args!("{handle:?}")),
    }
}
