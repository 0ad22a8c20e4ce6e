//! The data plane's blocks of one or more nodes in one thread, for tests. A [`Delivery`] passes signals
//! between them one at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_kernel::simulated::{Delivery, InFlight};
use junctor_kernel::{Address, Buffer, Directory, Duration, NodeId, NodeLayout, Random, WorldRequest};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{
    ColumnNumber, CommitNumber, Epoch, IndexId, PartitionId, StatementNumber, TableId, TransactionId,
};
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::row::RowView;
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, TableDefinition, TableKind, TableLayout};
use junctor_model::types::DataType;
use junctor_model::value::{Value, ValueRef};
use junctor_signals::Module;
use junctor_signals::append_records::{AppendRecords, AppendRecordsReply};
use junctor_signals::change_schema::{Catalog, ChangePartition, PartitionChange, PublishCatalog};
use junctor_signals::commit_transaction::coordinator;
use junctor_signals::end_transaction::{CommitDurability, EndTransaction, EndTransactionReply, Ending};
use junctor_signals::execute_statement::{ExecuteStatement, ExecuteStatementReply, Parts, Reading};
use junctor_signals::input::{self, HashedKey, KeyRange, KeyedImage};
use junctor_signals::program::{Access, ReadProgram, RowProtocol, WriteAction, WriteProgram};
use junctor_signals::read_rows::{BookedCost, OperationId, ReadRows, ReadRowsReply};
use junctor_signals::read_status::{ReadStatus, StatusTable};
use junctor_signals::recover_log::{BuildIndexes, ReplayRows, ReplayRowsReply};
use junctor_signals::undo_statements::UndoStatements;
use junctor_signals::{LdmSignal, LogSignal, MainSignal, QuerySignal, Signal, SqlSignal, TcSignal};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::guard::{ReadGroup, ReaderSlot};
use junctor_storage::log::FormedRecords;
use junctor_storage::page::PagePool;
use junctor_storage::snapshot::SnapshotRegistry;

use crate::GuardedPartition;
use crate::ldm::{LdmBlock, LdmShared, LdmWork, LogTarget};
use crate::query::QueryBlock;
use crate::tc::TcBlock;

pub(crate) struct Harness {
    nodes: Vec<Node>,
    pub delivery: Delivery<Signal>,
    pub replies: Vec<SqlSignal>,
    pub main_replies: Vec<MainSignal>,
    /// The largest commit number that a reply to a write has named.
    pub newest_seen: CommitNumber,
    /// File requests, in order, if the delivery returns them.
    pub file_requests: Vec<(Address, WorldRequest)>,
    pub catalog: Catalog,
    next_operation: u64,
    /// How statements read rows.
    pub reading: Reading,
    /// The newest statement that the transactions' newest savepoint keeps.
    pub savepoint: StatementNumber,
    /// Maximum number of follow-ups seen in one reply to a write.
    pub follow_ups_max: usize,
    /// A reader slot that the query block does not use, to read partitions from a test.
    pub spare_slot: ReaderSlot,
    pub guards: BTreeMap<PartitionId, Arc<GuardedPartition>>,
    /// The log records of the first node.
    pub records: Vec<u8>,
    /// Whether buffers of records stay with the log.
    pub holds_records: bool,
    held_records: Vec<AppendRecords>,
    /// Draws which prepares fail.
    failing: Option<Random>,
    replay_replies: Vec<ReplayRowsReply>,
}

struct Node {
    shared: LdmShared,
    tcs: Vec<TcBlock>,
    ldms: Vec<LdmBlock>,
    queries: Vec<QueryBlock>,
}

pub(crate) fn sql() -> Address {
    Address::new(NodeId(1), Module::Sql, 0)
}

fn main() -> Address {
    Address::new(NodeId(1), Module::Main, 0)
}

pub fn log() -> Address {
    Address::new(NodeId(1), Module::Log, 0)
}

impl Harness {
    pub fn new(nodes: u8, tcs: u16, ldms: u16) -> Harness {
        Harness::with_memory(nodes, tcs, ldms, 64 << 20)
    }

    pub fn with_memory(nodes: u8, tcs: u16, ldms: u16, bytes: usize) -> Harness {
        Harness::with_size(nodes, NodeSize { tcs, ldms, data_bytes: bytes, taken: CommitNumber(0) })
    }

    /// One node whose new commits get numbers above `taken`, as after a restart.
    pub fn restarted(ldms: u16, taken: CommitNumber, bytes: usize) -> Harness {
        Harness::with_size(1, NodeSize { tcs: 2, ldms, data_bytes: bytes, taken })
    }

    fn with_size(nodes: u8, size: NodeSize) -> Harness {
        junctor_kernel::invariant::panic_on_failure();
        let mut slots = Vec::new();
        let mut delivery = Delivery::new();
        let nodes = (1..=nodes).map(|node| Node::new(NodeId(node), size, &mut slots, &mut delivery));
        let mut harness = Harness {
            nodes: nodes.collect(),
            delivery,
            replies: Vec::new(),
            main_replies: Vec::new(),
            newest_seen: CommitNumber(0),
            file_requests: Vec::new(),
            catalog: Catalog::default(),
            next_operation: 1,
            reading: Reading::default(),
            savepoint: StatementNumber(0),
            follow_ups_max: 0,
            spare_slot: slots.remove(0),
            guards: BTreeMap::new(),
            records: Vec::new(),
            holds_records: false,
            held_records: Vec::new(),
            failing: None,
            replay_replies: Vec::new(),
        };
        harness.run();
        harness
    }

    /// From now on, delivers signals in a random order that depends on the seed.
    pub fn shuffle(&mut self, seed: u64) {
        self.delivery.random = Some(Random::new(seed));
    }

    /// From now on, every fourth prepare fails, drawn from the seed.
    pub fn fail_prepares(&mut self, seed: u64) {
        self.failing = Some(Random::new(seed));
    }

    pub fn send(&mut self, to: Address, from: Address, signal: Signal) {
        self.delivery.send(to, from, signal);
    }

    /// Delivers until no signal is in flight.
    pub fn run(&mut self) {
        while self.step() {}
    }

    /// Delivers one signal. Returns false if none is in flight.
    pub fn step(&mut self) -> bool {
        let Some(InFlight { to, from, signal }) = self.delivery.take_next() else { return false };
        self.deliver(to, from, signal);
        true
    }

    fn deliver(&mut self, to: Address, from: Address, mut signal: Signal) {
        if let Signal::Tc(TcSignal::PrepareTransactionReply(reply)) = &mut signal
            && self.failing.as_mut().is_some_and(|random| random.one_in(4))
        {
            reply.error = Some(Error::new(ErrorCode::TemporaryFailure, "a backup fails"));
        }
        let signal = match signal {
            Signal::Sql(signal) => return self.replies.push(signal),
            Signal::Main(signal) => return self.main_replies.push(signal),
            Signal::Log(LogSignal::AppendRecords(append)) => return self.append_records(append),
            Signal::Log(LogSignal::ReplayRowsReply(reply)) => return self.replay_replies.push(reply),
            signal => signal,
        };
        if let Signal::Query(QuerySignal::OpenPartition(open)) = &signal {
            let guard = open.handle.clone().and_then(|handle| Arc::downcast::<GuardedPartition>(handle.0).ok());
            self.guards.extend(guard.map(|guard| (open.partition, guard)));
        }
        if let Signal::Tc(TcSignal::WriteRowsReply(reply)) = &signal {
            self.follow_ups_max = self.follow_ups_max.max(reply.follow_ups.len());
            self.newest_seen = self.newest_seen.max(reply.newest);
        }
        let node = &mut self.nodes[usize::from(to.node.0) - 1];
        let instance = usize::from(to.instance);
        let requests = self.delivery.handle(to, |context, outbox| match (Module::of(to.module), signal) {
            (Module::Tc, Signal::Tc(signal)) => node.tcs[instance].handle(signal, from, context, outbox),
            (Module::Tc, Signal::World(event)) => node.tcs[instance].on_world(event, context, outbox),
            (Module::Ldm, Signal::Ldm(signal)) => {
                node.ldms[instance].handle(signal, from, context, outbox);
                node.ldms[instance].before_publish(outbox);
            }
            (Module::Ldm, Signal::World(event)) => node.ldms[instance].on_world(event, context, outbox),
            (Module::Query, Signal::Query(signal)) => node.queries[instance].handle(signal, from, context, outbox),
            (Module::Query, Signal::World(event)) => node.queries[instance].on_world(event, context, outbox),
            (module, signal) => panic!("{module} does not take {signal:?}"),
        });
        assert!(requests.is_empty() || self.delivery.returns_files, "{to} asked for {requests:?}");
        self.file_requests.extend(requests.into_iter().map(|request| (to, request)));
    }

    /// Takes records as a log would, and gives the buffer back unless the test holds buffers.
    fn append_records(&mut self, append: AppendRecords) {
        if append.from.node == NodeId(1) {
            self.records.extend_from_slice(&append.bytes);
        }
        match self.holds_records {
            true => self.held_records.push(append),
            false => self.take_records(append),
        }
    }

    fn take_records(&mut self, append: AppendRecords) {
        let reply = AppendRecordsReply { bytes: append.bytes };
        let log = Address::new(append.from.node, Module::Log, 0);
        self.delivery.send(append.from, log, Signal::Ldm(LdmSignal::AppendRecordsReply(reply)));
    }

    /// Tells the first node's blocks whether commits wait for the log.
    pub fn set_awaited(&self, is_awaited: bool) {
        if let Some(log) = &self.nodes[0].shared.log {
            log.formed.set_awaited(is_awaited);
        }
    }

    /// Gives back the buffers that were held.
    pub fn release_records(&mut self) {
        self.holds_records = false;
        for append in std::mem::take(&mut self.held_records) {
            self.take_records(append);
        }
    }

    /// Applies batches of replay at the ldm blocks that they name, as the log block does. Returns the errors.
    pub fn replay(&mut self, batches: Vec<(Address, Buffer)>) -> Vec<Box<str>> {
        let count = batches.len();
        let reply_to = log();
        for (ldm, sections) in batches {
            self.send(ldm, reply_to, Signal::Ldm(LdmSignal::ReplayRows(ReplayRows { reply_to, sections })));
        }
        self.run();
        let replies = std::mem::take(&mut self.replay_replies);
        assert_eq!(replies.len(), count, "each batch is answered once");
        replies.into_iter().filter_map(|reply| reply.error).collect()
    }

    /// Builds the indexes of all partitions of the first node after replay. Returns the errors.
    pub fn build_indexes(&mut self) -> Vec<Box<str>> {
        let ldms = self.first_node().into_iter().filter(|block| Module::of(block.module) == Module::Ldm);
        let ldms: Vec<Address> = ldms.collect();
        self.main_replies.clear();
        for ldm in &ldms {
            self.send(*ldm, main(), Signal::Ldm(LdmSignal::BuildIndexes(BuildIndexes { reply_to: main() })));
        }
        self.run();
        let mut errors = Vec::new();
        let mut answered = Vec::new();
        for reply in std::mem::take(&mut self.main_replies) {
            if let MainSignal::BuildIndexesReply(reply) = reply {
                answered.push(reply.from);
                errors.extend(reply.error);
            }
        }
        answered.sort_unstable();
        assert_eq!(answered, ldms, "each ldm answers once");
        errors
    }

    /// Moves time on. Timers fire in order, and every signal that follows from one is delivered before the
    /// next.
    pub fn advance(&mut self, duration: Duration) {
        let end = self.delivery.now.plus(duration);
        self.publish_to_backups();
        while self.delivery.fire_timer_until(end) {
            self.run();
        }
        self.delivery.now = end;
    }

    /// Gives the other nodes the stable number and the horizon of the first one, as their mirrors will.
    fn publish_to_backups(&self) {
        let Some((first, backups)) = self.nodes.split_first() else { return };
        let (stable, horizon) = (first.shared.sequence.stable(), first.shared.snapshots.horizon());
        for backup in backups {
            backup.shared.sequence.publish(stable, stable);
            backup.shared.snapshots.limit_horizon(horizon);
        }
    }

    /// The blocks of the first node.
    fn first_node(&self) -> Vec<Address> {
        self.delivery.blocks().into_iter().filter(|block| block.node == NodeId(1)).collect()
    }

    /// Creates the partitions of the tables, each with a chain over all nodes, and publishes the tables.
    pub fn create_tables(&mut self, tables: &[&Arc<TableLayout>]) {
        self.create_tables_at(self.nodes.len() as u8, tables);
    }

    /// As [`Harness::create_tables`], with chains over the first nodes only.
    pub fn create_tables_at(&mut self, last: u8, tables: &[&Arc<TableLayout>]) {
        let ldms = self.nodes[0].ldms.len() as u16;
        for layout in tables {
            for index in 0..layout.definition.partition_count {
                let partition = PartitionId { table: layout.definition.id, index };
                let chain: Vec<Address> =
                    (1..=last).map(|node| Address::new(NodeId(node), Module::Ldm, index % ldms)).collect();
                self.catalog.distribution.put(partition, chain.clone());
                for member in &chain {
                    let change = PartitionChange::Create { chain: chain.clone() };
                    self.change_partition(*member, partition, layout, change);
                }
            }
            self.catalog.dictionary.put_table(layout.definition.clone());
        }
        self.run();
        self.publish();
    }

    pub fn change_partition(
        &mut self,
        to: Address,
        partition: PartitionId,
        layout: &Arc<TableLayout>,
        change: PartitionChange,
    ) {
        let operation = OperationId(0);
        let signal = ChangePartition {
            operation,
            reply_to: main(),
            partition,
            layout: Arc::clone(layout),
            change,
            epoch: Epoch(0),
        };
        self.send(to, main(), Signal::Ldm(LdmSignal::ChangePartition(signal)));
    }

    /// Publishes the catalog to the blocks of the first node.
    pub fn publish(&mut self) {
        self.publish_from(main());
    }

    /// As `publish`, from the main block of this node.
    pub fn publish_from(&mut self, main: Address) {
        let catalog = Arc::new(self.catalog.clone());
        let (operation, epoch) = (OperationId(0), Epoch(0));
        for to in self.first_node() {
            let signal = PublishCatalog { operation, reply_to: main, epoch, catalog: Arc::clone(&catalog) };
            let signal = match Module::of(to.module) {
                Module::Tc => Signal::Tc(TcSignal::PublishCatalog(signal)),
                Module::Ldm => Signal::Ldm(LdmSignal::PublishCatalog(signal)),
                _ => Signal::Query(QuerySignal::PublishCatalog(signal)),
            };
            self.send(to, main, signal);
        }
        self.run();
    }

    pub fn owner(&self, partition: PartitionId) -> Address {
        self.catalog.distribution.owner(partition).expect("a published partition")
    }

    fn operation(&mut self) -> OperationId {
        self.next_operation += 1;
        OperationId(self.next_operation)
    }

    /// Sends a statement to a tc, without delivering it.
    pub fn begin_execute(
        &mut self,
        session: TestSession,
        program: &Arc<WriteProgram>,
        parts: BTreeMap<u16, Buffer>,
    ) -> OperationId {
        let TestSession { tc, transaction, autocommit } = session;
        let operation = self.operation();
        let tc = if transaction.is_some() { transaction.tc() } else { tc };
        let mut parts: Vec<(u16, Buffer)> = parts.into_iter().collect();
        let parts = match parts.len() {
            1 => parts.pop().map(|(partition, input)| Parts::One(partition, input)).expect("one part"),
            _ => Parts::Many(parts.into_boxed_slice()),
        };
        let signal = ExecuteStatement {
            operation,
            reply_to: sql(),
            epoch: Epoch(0),
            transaction,
            autocommit,
            durability: CommitDurability::Disk,
            protocol: RowProtocol::Text,
            lock_wait_ms: 50_000,
            timeout_ends: false,
            reading: self.reading,
            savepoint: self.savepoint,
            program: Arc::clone(program),
            parts,
        };
        self.send(Address::new(NodeId(1), Module::Tc, tc), sql(), Signal::Tc(TcSignal::ExecuteStatement(signal)));
        operation
    }

    /// Executes a statement to its end.
    pub fn execute(
        &mut self,
        transaction: TransactionId,
        autocommit: bool,
        program: &Arc<WriteProgram>,
        parts: BTreeMap<u16, Buffer>,
    ) -> ExecuteStatementReply {
        let operation = self.begin_execute(TestSession { tc: 0, transaction, autocommit }, program, parts);
        self.run();
        self.statement(operation).expect("the statement is answered")
    }

    /// The reply of a statement, if it has arrived.
    pub fn statement(&mut self, operation: OperationId) -> Option<ExecuteStatementReply> {
        let is_it =
            |reply: &SqlSignal| matches!(reply, SqlSignal::ExecuteStatementReply(it) if it.operation == operation);
        let position = self.replies.iter().position(is_it)?;
        match self.replies.remove(position) {
            SqlSignal::ExecuteStatementReply(reply) => Some(reply),
            _ => None,
        }
    }

    pub fn begin_end(&mut self, transaction: TransactionId, ending: Ending) -> OperationId {
        let operation = self.operation();
        let signal =
            EndTransaction { operation, reply_to: sql(), transaction, ending, durability: CommitDurability::Disk };
        let tc = coordinator(transaction);
        self.send(tc, sql(), Signal::Tc(TcSignal::EndTransaction(signal)));
        operation
    }

    pub fn end(&mut self, transaction: TransactionId, ending: Ending) -> EndTransactionReply {
        let operation = self.begin_end(transaction, ending);
        self.run();
        let is_it =
            |reply: &SqlSignal| matches!(reply, SqlSignal::EndTransactionReply(it) if it.operation == operation);
        let position = self.replies.iter().position(is_it).expect("the end is answered");
        match self.replies.remove(position) {
            SqlSignal::EndTransactionReply(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// Undoes the statements of a transaction that follow statement `newer_than`.
    pub fn undo_statements(&mut self, transaction: TransactionId, newer_than: StatementNumber) {
        let operation = self.operation();
        let signal = UndoStatements { operation, reply_to: sql(), transaction, newer_than };
        let tc = coordinator(transaction);
        self.send(tc, sql(), Signal::Tc(TcSignal::UndoStatements(signal)));
        self.run();
        let is_it =
            |reply: &SqlSignal| matches!(reply, SqlSignal::UndoStatementsReply(it) if it.operation == operation);
        let position = self.replies.iter().position(is_it).expect("the undo is answered");
        self.replies.remove(position);
    }

    /// The snapshots of the first node.
    pub fn snapshots(&self) -> Arc<SnapshotRegistry> {
        Arc::clone(&self.nodes[0].shared.snapshots)
    }

    pub fn stable(&self) -> CommitNumber {
        self.nodes[0].shared.sequence.stable()
    }

    /// Reads parts of a table completely: at the owners within a transaction, otherwise at the query block.
    pub fn read(
        &mut self,
        program: &Arc<ReadProgram>,
        parts: BTreeMap<u16, Buffer>,
        snapshot: CommitNumber,
        transaction: TransactionId,
    ) -> Vec<ReadRowsReply> {
        let mut replies = Vec::new();
        for (index, input) in parts {
            let partition = PartitionId { table: program.table.definition.id, index };
            let mut resume = None;
            let mut input = Some(input);
            loop {
                let operation = self.operation();
                let request = ReadRows {
                    operation,
                    reply_to: sql(),
                    partition,
                    protocol: RowProtocol::Text,
                    rows_max: 100,
                    warnings_max: 2,
                    is_sampled: false,
                    booked_cost: BookedCost::default(),
                    program: Arc::clone(program),
                    snapshot,
                    transaction,
                    input: input.take().expect("the input comes back"),
                    output: Buffer::new(),
                    resume: resume.take(),
                };
                let query = Address::new(NodeId(1), Module::Query, 0);
                match transaction.is_some() {
                    true => self.send(self.owner(partition), sql(), Signal::Ldm(LdmSignal::ReadRows(request))),
                    false => self.send(query, sql(), Signal::Query(QuerySignal::ReadRows(request))),
                }
                self.run();
                let position = self.replies.iter().position(|reply| matches!(reply, SqlSignal::ReadRowsReply(_)));
                let Some(SqlSignal::ReadRowsReply(reply)) = position.map(|position| self.replies.remove(position))
                else {
                    panic!("the read is answered");
                };
                input = Some(reply.input.clone());
                resume = reply.resume.clone();
                replies.push(reply);
                if resume.is_none() {
                    break;
                }
            }
        }
        replies
    }

    /// Requests one batch of the first part from the query block, without delivering the request.
    pub fn begin_read(
        &mut self,
        program: &Arc<ReadProgram>,
        parts: BTreeMap<u16, Buffer>,
        snapshot: CommitNumber,
    ) -> OperationId {
        let operation = self.operation();
        let (index, input) = parts.into_iter().next().expect("a part");
        let request = ReadRows {
            operation,
            reply_to: sql(),
            partition: PartitionId { table: program.table.definition.id, index },
            protocol: RowProtocol::Text,
            rows_max: 100,
            warnings_max: 2,
            is_sampled: false,
            booked_cost: BookedCost::default(),
            program: Arc::clone(program),
            snapshot,
            transaction: TransactionId::default(),
            input,
            output: Buffer::new(),
            resume: None,
        };
        let query = Address::new(NodeId(1), Module::Query, 0);
        self.send(query, sql(), Signal::Query(QuerySignal::ReadRows(request)));
        operation
    }

    /// The rows of a read, if they have arrived.
    pub fn rows_read(&mut self, operation: OperationId) -> Option<Buffer> {
        let is_it = |reply: &SqlSignal| matches!(reply, SqlSignal::ReadRowsReply(it) if it.operation == operation);
        let position = self.replies.iter().position(is_it)?;
        match self.replies.remove(position) {
            SqlSignal::ReadRowsReply(reply) => Some(reply.output),
            _ => None,
        }
    }

    /// The rows of a status table from every block of the first node.
    pub fn status(&mut self, table: StatusTable) -> Vec<Vec<Value>> {
        for to in self.first_node() {
            let request = ReadStatus { operation: OperationId(0), reply_to: sql(), table, only: [].into() };
            match (Module::of(to.module), table) {
                (Module::Tc, StatusTable::Transactions | StatusTable::LockWaits) => {
                    self.send(to, sql(), Signal::Tc(TcSignal::ReadStatus(request)));
                }
                (Module::Ldm, StatusTable::Locks | StatusTable::MemoryUsage) => {
                    self.send(to, sql(), Signal::Ldm(LdmSignal::ReadStatus(request)));
                }
                _ => {}
            }
        }
        self.run();
        let mut rows = Vec::new();
        self.replies.retain_mut(|reply| match reply {
            SqlSignal::ReadStatusReply(reply) => {
                rows.append(&mut reply.rows);
                false
            }
            _ => true,
        });
        rows
    }

    /// The rows visible at a snapshot. The query block reads them while no signal in flight is delivered.
    pub fn peek(
        &mut self,
        program: &Arc<ReadProgram>,
        parts: BTreeMap<u16, Buffer>,
        snapshot: CommitNumber,
    ) -> Vec<Buffer> {
        let in_flight = std::mem::take(&mut self.delivery.in_flight);
        let random = self.delivery.random.take();
        let replies = self.read(program, parts, snapshot, TransactionId::default());
        self.delivery.in_flight = in_flight;
        self.delivery.random = random;
        replies.into_iter().map(|reply| reply.output).collect()
    }

    pub fn ldm(&self, address: Address) -> &LdmBlock {
        &self.nodes[usize::from(address.node.0) - 1].ldms[usize::from(address.instance)]
    }

    /// The ldms of a node have lost everything. Returns the data that they share.
    pub fn empty_node(&mut self, node: u8) -> LdmShared {
        let Node { ldms, shared, .. } = &mut self.nodes[usize::from(node) - 1];
        for (instance, ldm) in (0..).zip(ldms) {
            *ldm = LdmBlock::new(Address::new(NodeId(node), Module::Ldm, instance), shared.clone(), 7);
        }
        shared.clone()
    }

    /// The data that the ldms of the first node share.
    pub fn shared(&self) -> &LdmShared {
        &self.nodes[0].shared
    }

    pub fn ldm_mut(&mut self, address: Address) -> &mut LdmBlock {
        &mut self.nodes[usize::from(address.node.0) - 1].ldms[usize::from(address.instance)]
    }

    /// Starts an epoch at a tc or an ldm.
    pub fn start_epoch(&mut self, at: Address, epoch: Epoch) {
        let node = &mut self.nodes[usize::from(at.node.0) - 1];
        let instance = usize::from(at.instance);
        self.delivery.handle(at, |context, outbox| match Module::of(at.module) {
            Module::Tc => node.tcs[instance].start_epoch(epoch),
            _ => node.ldms[instance].start_epoch(epoch, context, outbox),
        });
    }

    pub fn transactions_open(&self) -> usize {
        self.nodes.iter().flat_map(|node| &node.tcs).map(TcBlock::transactions_open).sum()
    }

    /// Asserts that nothing remains of any transaction, that partitions are consistent, and that replicas are
    /// equal.
    pub fn check_idle(&self) {
        assert_eq!(self.transactions_open(), 0, "transactions are left");
        for ldm in self.nodes.iter().flat_map(|node| &node.ldms) {
            assert_eq!(ldm.work(), LdmWork::default());
        }
        self.check();
        let first = &self.nodes[0];
        for (instance, ldm) in first.ldms.iter().enumerate() {
            for partition in ldm.partitions() {
                let rows = ldm.committed_rows(partition);
                for node in &self.nodes[1..] {
                    assert_eq!(node.ldms[instance].committed_rows(partition), rows, "replicas of {partition:?} differ");
                }
            }
        }
        assert_eq!(first.shared.sequence.stable(), first.shared.sequence.taken(), "a commit never became stable");
    }

    pub fn check(&self) {
        for ldm in self.nodes.iter().flat_map(|node| &node.ldms) {
            ldm.check().expect("partitions are whole");
        }
    }
}

/// The transaction state of the session that sends a statement.
#[derive(Clone, Copy)]
pub(crate) struct TestSession {
    /// The tc that runs a statement without a transaction.
    pub tc: u16,
    pub transaction: TransactionId,
    pub autocommit: bool,
}

impl TestSession {
    /// Each statement is a separate transaction.
    pub fn autocommit(tc: u16) -> TestSession {
        TestSession { tc, transaction: TransactionId::default(), autocommit: true }
    }

    /// The statement begins a transaction.
    pub fn begin(tc: u16) -> TestSession {
        TestSession { tc, transaction: TransactionId::default(), autocommit: false }
    }

    /// The statement belongs to an open transaction.
    pub fn within(transaction: TransactionId) -> TestSession {
        TestSession { tc: transaction.tc(), transaction, autocommit: false }
    }
}

/// The blocks and the data memory of a node.
#[derive(Clone, Copy)]
struct NodeSize {
    tcs: u16,
    ldms: u16,
    data_bytes: usize,
    /// The last commit number of earlier lives.
    taken: CommitNumber,
}

impl Node {
    fn new(
        node: NodeId,
        NodeSize { tcs, ldms, data_bytes, taken }: NodeSize,
        spare_slots: &mut Vec<ReaderSlot>,
        delivery: &mut Delivery<Signal>,
    ) -> Node {
        let mut threads: Vec<Vec<(Module, u16)>> = vec![vec![(Module::Query, 0)]];
        threads.extend((0..tcs).map(|instance| vec![(Module::Tc, instance)]));
        threads.extend((0..ldms).map(|instance| vec![(Module::Ldm, instance)]));
        let threads: Vec<&[(Module, u16)]> = threads.iter().map(Vec::as_slice).collect();
        let layout = NodeLayout::new(&threads);
        let directory = Directory::new(node, &layout).expect("a layout without gaps");
        let sequence = Arc::new(CommitSequence::starting_after(taken));
        let (readers, mut slots) = ReadGroup::new(2);
        spare_slots.extend(slots.pop());
        let shared = LdmShared {
            sequence: Arc::clone(&sequence),
            snapshots: Arc::new(SnapshotRegistry::new(Arc::clone(&sequence), 1)),
            pages: PagePool::new(data_bytes).expect("address space"),
            readers,
            log: Some(LogTarget {
                log: Address::new(node, Module::Log, 0),
                formed: Arc::new(FormedRecords::new(usize::from(ldms))),
            }),
            progress: Arc::default(),
        };
        let address = |module, instance| Address::new(node, module, instance);
        for (module, count) in [(Module::Tc, tcs), (Module::Ldm, ldms), (Module::Query, 1)] {
            for own in (0..count).map(|instance| address(module, instance)) {
                delivery.add_block(own, &layout, u64::from(own.to_bits())).expect("a layout without gaps");
            }
        }
        let tc = |instance| TcBlock::new(address(Module::Tc, instance), &directory, Arc::clone(&sequence));
        let ldm = |instance| LdmBlock::new(address(Module::Ldm, instance), shared.clone(), 7);
        Node {
            tcs: (0..tcs).map(tc).collect(),
            ldms: (0..ldms).map(ldm).collect(),
            queries: slots.into_iter().map(QueryBlock::new).collect(),
            shared,
        }
    }
}

/// The sample table: id INT PRIMARY KEY, k INT with ordered index 1, u INT NULL with unique index 2, and a
/// text.
#[derive(Clone, Debug)]
pub(crate) struct SampleTable {
    pub layout: Arc<TableLayout>,
    pub entries: Arc<TableLayout>,
}

pub(crate) const ID: ColumnNumber = ColumnNumber(0);
pub(crate) const K: ColumnNumber = ColumnNumber(1);
pub(crate) const U: ColumnNumber = ColumnNumber(2);
pub(crate) const INDEX_K: IndexId = IndexId(1);
pub(crate) const INDEX_U: IndexId = IndexId(2);

fn column(name: &str, column_type: DataType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition { nullable, ..ColumnDefinition::new(name, column_type) }
}

fn index(id: u16, name: &str, kind: IndexKind, column: u16) -> IndexDefinition {
    IndexDefinition::new(IndexId(id), name, kind, vec![ColumnNumber(column)])
}

fn table(
    (id, name): (u32, &str),
    kind: TableKind,
    columns: Vec<ColumnDefinition>,
    indexes: Vec<IndexDefinition>,
    partitions: u16,
) -> Arc<TableLayout> {
    Arc::new(TableLayout::new(TableDefinition {
        kind,
        partition_count: partitions,
        ..TableDefinition::new(TableId(id), ("test", name), columns, indexes)
    }))
}

/// A program that inserts rows and has no follow-ups.
pub(crate) fn insert_program(table: &Arc<TableLayout>) -> Arc<WriteProgram> {
    Arc::new(WriteProgram::new(table, WriteAction::Insert, Access::PrimaryKeys))
}

impl SampleTable {
    pub fn new(partitions: u16) -> SampleTable {
        let int = DataType::integer(4, false);
        let text = DataType::text_or_blob(4, CollationId::DEFAULT);
        let bytes = DataType::varchar(u16::MAX, CollationId::BINARY);
        let columns = vec![
            column("id", int.clone(), false),
            column("k", int.clone(), false),
            column("u", int, true),
            column("text", text, false),
        ];
        let indexes = vec![
            index(0, "PRIMARY", IndexKind::Primary { ordered: true }, 0),
            index(1, "k", IndexKind::Ordered, 1),
            index(2, "u", IndexKind::Unique { ordered: true, entries: TableId(2) }, 2),
        ];
        let entries_columns = vec![column("key", bytes.clone(), false), column("row", bytes, false)];
        let entries_kind = TableKind::UniqueEntries { base: TableId(1), index: INDEX_U };
        let primary = vec![index(0, "PRIMARY", IndexKind::Primary { ordered: false }, 0)];
        SampleTable {
            layout: table((1, "t"), TableKind::Base, columns, indexes, partitions),
            entries: table((2, "t.u"), entries_kind, entries_columns, primary, partitions),
        }
    }

    /// The partition, key and hash of a row.
    pub fn key(&self, id: i64) -> (u16, Vec<u8>, u64) {
        let mut key = Vec::new();
        let int = DataType::integer(4, false);
        junctor_model::key::append_value(int.key_part(), false, ValueRef::Int(id), &mut key);
        let hash = key_hash(&key);
        (partition_of(hash, self.layout.definition.partition_count), key, hash)
    }

    pub fn image(&self, id: i64, k: i64, u: Option<i64>, text: &str) -> Vec<u8> {
        let mut image = Vec::new();
        let u = u.map_or(ValueRef::Null, ValueRef::Int);
        let values = [ValueRef::Int(id), ValueRef::Int(k), u, ValueRef::Bytes(text.as_bytes())];
        self.layout.row_format.encode(&values, &mut image).expect("values of the column types");
        image
    }

    /// Inputs of an insert, by partition.
    pub fn images(&self, rows: &[(i64, i64, Option<i64>)]) -> BTreeMap<u16, Buffer> {
        self.images_with_text(rows, "text")
    }

    /// Inputs of an insert of rows with this text, by partition.
    pub fn images_with_text(&self, rows: &[(i64, i64, Option<i64>)], text: &str) -> BTreeMap<u16, Buffer> {
        let mut parts = BTreeMap::new();
        for (id, k, u) in rows {
            let (partition, key, hash) = self.key(*id);
            let image = self.image(*id, *k, *u, text);
            let row = KeyedImage { key: HashedKey { hash, key: &key }, image: &image };
            input::push_image(begun(&mut parts, partition), row);
        }
        parts
    }

    /// Inputs of an access by primary keys, by partition.
    pub fn keys(&self, ids: &[i64]) -> BTreeMap<u16, Buffer> {
        let mut parts = BTreeMap::new();
        for id in ids {
            let (partition, key, hash) = self.key(*id);
            input::push_key(begun(&mut parts, partition), HashedKey { hash, key: &key });
        }
        parts
    }

    /// Inputs of an access to a range of `k`, by partition.
    pub fn range(&self, low: i64, high: i64) -> BTreeMap<u16, Buffer> {
        let key = |value| self.key(value).1;
        let (low, high) = (key(low), key(high));
        let mut parts = self.everything();
        for part in parts.values_mut() {
            input::push_range(part, KeyRange { lower: Some((&low, true)), upper: Some((&high, true)) });
        }
        parts
    }

    /// The inputs of a statement that accesses all rows: one input for each partition.
    pub fn everything(&self) -> BTreeMap<u16, Buffer> {
        let mut parts = BTreeMap::new();
        for partition in 0..self.layout.definition.partition_count {
            begun(&mut parts, partition);
        }
        parts
    }

    /// The integer columns of returned row images.
    pub fn rows_of(&self, output: &[u8]) -> Vec<(i64, i64, Option<i64>)> {
        let mut rows = Vec::new();
        let mut rest = output;
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (image, after) = after.split_at(u32::from_le_bytes(*length) as usize);
            rest = after;
            let view = RowView::new(&self.layout.row_format, image);
            let int = |column| match view.column(column).to_value() {
                Value::Int(value) => Some(value),
                _ => None,
            };
            rows.push((int(ID).expect("not null"), int(K).expect("not null"), int(U)));
        }
        rows
    }
}

fn begun(parts: &mut BTreeMap<u16, Buffer>, partition: u16) -> &mut Buffer {
    parts.entry(partition).or_insert_with(|| {
        let mut bytes = Buffer::new();
        input::begin(&mut bytes, b"");
        bytes
    })
}
