//! The operations of one block, in one long file because all requests share one table of operations.
//! They are those of the sessions of a sql block, or of the alterations of main. Each request becomes
//! signals, and each reply becomes an event.

use std::sync::Arc;

use junctor_kernel::{Address, Directory, Handle, NodeId, Pool, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{CommitNumber, ConnectionId, Epoch, Incarnation, PartitionId, StatementNumber, TableId};
use junctor_signals::Module;
use junctor_signals::ask_node::{ControlNode, ControlNodeReply, NodeQuestion};
use junctor_signals::change_schema::{Catalog, ChangeSchemaReply, PublishCatalog, PublishCatalogReply};
use junctor_signals::client_command::ContinueStatement;
use junctor_signals::commit_transaction::coordinator;
use junctor_signals::end_transaction::{CommitDurability, EndTransaction, EndTransactionReply, Ending};
use junctor_signals::execute_statement::{ExecuteStatement, ExecuteStatementReply, InterruptStatement, Parts};
use junctor_signals::interrupt_session::{InterruptSession, InterruptSessionReply, KillOutcome, KillReach};
use junctor_signals::program::{RowProtocol, WriteProgram};
use junctor_signals::read_rows::{OperationId, ReadRows};
use junctor_signals::read_status::{ReadStatus, ReadStatusReply, StatusTable};
use junctor_signals::report_node::NodeWords;
use junctor_signals::reserve_auto_increment::{
    ReserveAutoIncrement, ReserveAutoIncrementReply, ReturnAutoIncrement, ReturnedNumbers,
};
use junctor_signals::set_globals::{ApplyGlobalsReply, GlobalValues, PersistedChanges, SetGlobals, SetGlobalsReply};
use junctor_signals::start_epoch::{LateNodes, lost_with_node};
use junctor_signals::undo_statements::{UndoStatements, UndoStatementsReply};
use junctor_signals::use_user_lock::{CancelUserLock, ReleaseUserLocks, UseUserLock, UseUserLockReply, UserLockAction};
use junctor_signals::{LdmSignal, MainSignal, QuerySignal, RecvSignal, Signal, SqlSignal, TcSignal};
use junctor_storage::snapshot::ActiveSnapshots;

use crate::epoch::undone;
use crate::event::Event;
use crate::keys::PartitionInputs;
use crate::operation::{Operation, ReadWork, RowBound, Work};
use crate::read::REPLY_BYTES_PLACES;
use crate::route::{ReadRule, Readers, Route};
use crate::transaction::{Isolation, Transaction};
use crate::turn_context::TurnContext;

/// The gateway of one block.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) own: Address,
    pub(crate) main: Address,
    pub(crate) tc_instances: u16,
    ldm_instances: u16,
    sql_instances: u16,
    recv_instances: u16,
    query_instances: u16,
    local_tc: Option<u16>,
    /// The tc on the thread of each ldm instance, if there is one.
    tc_of_ldm: Box<[Option<u16>]>,
    next_tc: u16,
    pub(crate) route: Route,
    /// The query and ldm blocks of this thread.
    pub(crate) here: Vec<Address>,
    /// Parts of a read that run on this thread. They wait until the other parts are sent.
    pub(crate) held: Vec<(Address, ReadRows)>,
    pub(crate) catalog: Arc<Catalog>,
    /// Nodes that have left the cluster.
    pub(crate) gone: NodeWords,
    /// The order of the others in chains.
    pub(crate) late: LateNodes,
    /// The nodes that were gone before each loss or return of nodes, and the order of the others.
    pub(crate) losses: Vec<(NodeWords, LateNodes)>,
    snapshots: ActiveSnapshots,
    /// On a node without data: where statements run, and how many tc instances that node has.
    host: Option<(NodeId, u16)>,
    /// The last life of each node that was a host.
    host_lives: Vec<(NodeId, Incarnation)>,
    /// Why statements about tables fail; empty if they may run.
    refusal: &'static str,
    /// The last epoch that this block knows.
    pub(crate) epoch: Epoch,
    pub(crate) operations: Pool<Operation>,
    /// This life of the node, and what ids of operations have of it.
    incarnation: Incarnation,
    life: u64,
    /// Number of operations with a file.
    pub(crate) files_open: usize,
    /// Number of operations with a temporary file, now and in this life of the node.
    pub(crate) temporary_files_open: usize,
    pub(crate) temporary_files_opened: u64,
    /// Recent reply lengths in bytes of longer reads, by table, so that a reply buffer is large enough from
    /// the start.
    pub(crate) reply_bytes: Box<[u32; REPLY_BYTES_PLACES]>,
}

/// Why statements on a node without data fail that has no host.
const NO_HOST: &str = "Got temporary error: no data node serves";
/// Why statements fail on a node that is not a member for certain.
const CUT_OFF: &str = "Got temporary error: this node does not hear a majority of the voters";

#[cold]
fn refused(reason: &'static str) -> Box<Error> {
    Error::new(ErrorCode::TemporaryFailure, reason)
}

/// Maximum number of operations of a gateway. Ids have the life of the node above it.
const PLACES_MAX: u32 = 1 << 16;

/// The id of no operation: requests with it get no reply that a session awaits.
pub const NO_OPERATION: OperationId = OperationId(u64::MAX);

/// Options of a read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// The encoding of the rows.
    pub protocol: RowProtocol,
    /// Maximum number of rows from each partition.
    pub bound: RowBound,
    /// Maximum number of warnings returned with text.
    pub warnings_max: u16,
}

/// Options of a writing or locking statement.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// The encoding of the rows of a locking read.
    pub protocol: RowProtocol,
    /// Maximum wait for one lock, in milliseconds.
    pub lock_wait_ms: u32,
    /// Whether a lock wait timeout rolls back the whole transaction rather than the statement.
    pub timeout_ends: bool,
    /// Whether changing a row that has changed after the transaction's snapshot is an error, as
    /// `innodb_snapshot_isolation` requests.
    pub keeps_to_snapshot: bool,
    /// Maximum number of rows that a locking read takes from each partition; `u32::MAX` for no limit.
    pub rows_max: u32,
    /// Whether scanned ranges and absent keys may be locked. The isolation level decides whether they are.
    pub locks_ranges: bool,
    /// Statement number of the newest savepoint, to which [`Gateway::undo_statements`] must be able to
    /// return; 0 without a savepoint.
    pub savepoint: StatementNumber,
    /// Maximum number of warnings returned with text.
    pub warnings_max: u16,
    /// When an autocommit statement is answered.
    pub durability: CommitDurability,
}

/// A writing or locking statement to execute.
#[derive(Debug)]
pub struct WriteRequest<'a> {
    /// What each partition does.
    pub program: &'a Arc<WriteProgram>,
    /// The settings of the session that apply.
    pub options: WriteOptions,
    /// The input of each partition that takes part. Sending empties it.
    pub inputs: &'a mut PartitionInputs,
}

/// A request for AUTO_INCREMENT numbers.
#[derive(Clone, Copy, Debug)]
pub struct AutoIncrementReservation {
    /// The table whose counter is used.
    pub table: TableId,
    /// How many numbers are needed.
    pub count: u64,
    /// All reserved numbers must be greater than this one.
    pub beyond: u64,
}

impl Gateway {
    /// Creates the gateway of the block `own`, with at most `operations_max` operations in progress.
    pub fn new(
        own: Address,
        directory: &Directory,
        (rule, readers): (ReadRule, &Readers),
        snapshots: ActiveSnapshots,
        operations_max: u32,
    ) -> Gateway {
        let tc_instances = directory.instances(Module::Tc);
        let beside = |instance: &u16| directory.share_thread((own.module, own.instance), (Module::Tc, *instance));
        let thread = directory.thread_of(own.module, own.instance);
        let here = |module| {
            let instance = thread.and_then(|thread| directory.instance_on(module, thread))?;
            Some(directory.address(module, instance))
        };
        Gateway {
            own,
            main: directory.address(Module::Main, 0),
            tc_instances,
            ldm_instances: directory.instances(Module::Ldm),
            sql_instances: directory.instances(Module::Sql),
            recv_instances: directory.instances(Module::Recv),
            query_instances: directory.instances(Module::Query),
            local_tc: (0..tc_instances).find(beside),
            tc_of_ldm: tc_of_ldm(directory),
            next_tc: own.instance,
            route: Route::new(rule, own, directory, readers),
            here: [Module::Ldm, Module::Query].into_iter().filter_map(here).collect(),
            held: Vec::new(),
            catalog: Arc::new(Catalog::default()),
            gone: NodeWords::default(),
            late: LateNodes::default(),
            losses: Vec::new(),
            snapshots,
            host: None,
            host_lives: Vec::new(),
            refusal: "",
            epoch: Epoch(0),
            operations: Pool::new(operations_max.min(PLACES_MAX)),
            incarnation: Incarnation(0),
            life: 0,
            files_open: 0,
            temporary_files_open: 0,
            temporary_files_opened: 0,
            reply_bytes: Box::new([0; REPLY_BYTES_PLACES]),
        }
    }

    /// The same gateway in this life of a node of a cluster. Ids of operations have a part of its number
    /// above their place in the pool, so that the late reply to a request of an earlier life finds no
    /// operation. The number of a life is at least that of the second in which it began: the part repeats
    /// after 18 hours.
    #[must_use]
    pub fn of_life(self, incarnation: Incarnation) -> Gateway {
        // The largest part would make an operation of `NO_OPERATION`.
        let life = u64::from(incarnation.0 % u32::from(u16::MAX)) * u64::from(PLACES_MAX);
        Gateway { incarnation, life, ..self }
    }

    /// This life of the node; 0 on a node alone.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The record of an operation; one that finds nothing if the operation is of another life of this node.
    #[inline]
    pub(crate) fn handle_of(&self, operation: OperationId) -> Handle<Operation> {
        Handle::from_u64(operation.0 ^ self.life)
    }

    /// The id of the operation with this record.
    #[inline]
    pub(crate) fn operation_at(&self, handle: Handle<Operation>) -> OperationId {
        OperationId(handle.to_u64() ^ self.life)
    }

    /// The same gateway of a node without data.
    #[must_use]
    pub fn without_data(self) -> Gateway {
        Gateway { refusal: NO_HOST, ..self }
    }

    /// On a node without data: statements run at this node, which has as many tc instances.
    pub fn use_host(&mut self, host: Option<(NodeId, u16)>, life: Incarnation) {
        self.host = host;
        if let Some((node, _)) = host {
            self.host_lives.retain(|(earlier, _)| *earlier != node);
            self.host_lives.push((node, life));
        }
        self.refusal = if host.is_some() { "" } else { NO_HOST };
    }

    /// The incarnation that the node had when statements of this node last ran there. Operations that a lost
    /// host has not answered may fail after the gateway has chosen the next host.
    pub(crate) fn host_life(&self, node: NodeId) -> Incarnation {
        let found = self.host_lives.iter().find(|(host, _)| *host == node);
        found.map_or(Incarnation(0), |(_, life)| *life)
    }

    /// Whether this node cannot know which commits were acknowledged: it has no lease, or its host has none.
    pub fn set_cut_off(&mut self, is_cut_off: bool) {
        match (is_cut_off, self.refusal) {
            (true, "") => self.refusal = CUT_OFF,
            (false, CUT_OFF) => self.refusal = "",
            _ => {}
        }
    }

    /// Whether a statement that was taken before may choose a snapshot.
    #[inline]
    pub fn has_lease(&self, turn: &mut TurnContext<'_>) -> bool {
        self.snapshots.registry().has_lease(turn.clock_now().0)
    }

    /// Whether statements need a lease.
    pub fn requires_lease(&self) -> bool {
        self.snapshots.registry().requires_lease()
    }

    /// The last epoch that this block knows.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// On a node without data: no snapshot here is older, now or later. The largest number before the first.
    pub fn oldest_snapshot(&self) -> CommitNumber {
        match self.snapshots.registry().sequence().stable() {
            CommitNumber(0) => CommitNumber(u64::MAX),
            stable => self.snapshots.oldest().map_or(stable, |oldest| oldest.min(stable)),
        }
    }

    /// On a node without data: later snapshots are at least this one.
    pub fn raise_stable(&self, number: CommitNumber) {
        self.snapshots.registry().sequence().raise(number);
    }

    /// The node whose replicas statements read, and whose tcs they use.
    pub(crate) fn data_node(&self) -> NodeId {
        self.host.map_or(self.own.node, |(node, _)| node)
    }

    /// The node whose tcs coordinate transactions of this one, and how many it has.
    pub(crate) fn tcs(&self) -> (NodeId, u16) {
        self.host.unwrap_or((self.own.node, self.tc_instances))
    }

    /// Fails on a node without data that has no host, and on one without a lease.
    #[inline]
    pub fn check_host(&self) -> Result<()> {
        if !self.refusal.is_empty() {
            return Err(refused(self.refusal));
        }
        Ok(())
    }

    /// The catalog against which new statements are planned.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The routing state, which decides where reads run, with its measurements.
    pub fn route(&mut self) -> &mut Route {
        &mut self.route
    }

    /// Number of operations in progress.
    pub fn operations_under_way(&self) -> usize {
        self.operations.len()
    }

    /// Number of snapshots held.
    pub fn snapshots_held(&self) -> usize {
        self.snapshots.count()
    }

    /// Executes a writing or locking statement. [`Event::Statement`] is the answer. Outside an explicit
    /// transaction, the statement commits.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn execute(
        &mut self,
        session: ConnectionId,
        transaction: &mut Transaction,
        request: WriteRequest<'_>,
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId> {
        let WriteRequest { program, options, inputs } = request;
        self.check_host()?;
        if !transaction.id.is_some() {
            transaction.losses = self.losses.len() as u32;
        }
        let tc = match inputs.touched() {
            [partition] if !transaction.explicit && !transaction.id.is_some() => {
                self.tc_near(PartitionId { table: program.table.definition.id, index: *partition })
            }
            _ => None,
        };
        let tc = tc.unwrap_or_else(|| self.tc_of(transaction));
        let operation = self.open(session, Work::Statement { tc, may_commit: !transaction.explicit })?;
        let parts = take_parts(inputs);
        if self.has_lost_tc(transaction) {
            self.fail_statement(operation, lost_with_node(), turn);
            return Ok(operation);
        }
        let request = ExecuteStatement {
            operation,
            reply_to: self.own,
            epoch: self.epoch,
            transaction: transaction.id,
            autocommit: !transaction.explicit,
            durability: options.durability,
            protocol: options.protocol,
            lock_wait_ms: options.lock_wait_ms,
            timeout_ends: options.timeout_ends,
            reading: transaction.reading(&options),
            savepoint: options.savepoint,
            program: Arc::clone(program),
            parts,
        };
        turn.outbox.send(tc, Signal::Tc(TcSignal::ExecuteStatement(request)));
        Ok(operation)
    }

    /// Requests another step of the session's statement, to run after the other work of this thread. `step`
    /// counts the steps that the session has requested.
    pub fn continue_later(&self, session: ConnectionId, step: u64, turn: &mut TurnContext<'_>) {
        let signal = ContinueStatement { connection: session, step };
        turn.outbox.send_long_running(self.own, Signal::Sql(SqlSignal::ContinueStatement(signal)));
    }

    /// Interrupts a statement: it is undone and fails with error 1317, unless it is already committing. Other
    /// operations continue.
    pub fn interrupt_statement(&mut self, operation: OperationId, turn: &mut TurnContext<'_>) {
        let found = self.operations.get(self.handle_of(operation));
        if let Some(Operation { work: Work::Statement { tc, .. }, .. }) = found {
            let signal = InterruptStatement { operation, reply_to: self.own };
            turn.outbox.send(*tc, Signal::Tc(TcSignal::InterruptStatement(signal)));
        }
    }

    /// Interrupts the statement of another session of this node and, with `closes_connection`, closes that
    /// session, if it is within the reach. [`Event::Interrupted`] is the answer.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn interrupt_session(
        &mut self,
        session: ConnectionId,
        (connection, closes_connection): (ConnectionId, bool),
        mut reach: impl FnMut() -> KillReach,
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId> {
        let outcome = KillOutcome::Unknown;
        let work = Work::Interrupt { outstanding: u32::from(self.sql_instances), outcome };
        let operation = self.open(session, work)?;
        for instance in 0..self.sql_instances {
            let signal =
                InterruptSession { operation, reply_to: self.own, connection, closes_connection, reach: reach() };
            let to = Address::new(self.own.node, Module::Sql, instance);
            turn.outbox.send(to, Signal::Sql(SqlSignal::InterruptSession(signal)));
        }
        Ok(operation)
    }

    /// Takes, tests or releases user-level locks. [`Event::UserLock`] is the answer.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn use_user_lock(
        &mut self,
        session: ConnectionId,
        action: UserLockAction,
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId> {
        let operation = self.open(session, Work::UserLock)?;
        let signal = UseUserLock { operation, reply_to: self.own, connection: session, action };
        turn.outbox.send(self.main, Signal::Main(MainSignal::UseUserLock(signal)));
        Ok(operation)
    }

    /// Cancels a session's wait for a user-level lock. The request fails with error 1317, unless the lock was
    /// already granted.
    pub fn cancel_user_lock(&mut self, session: ConnectionId, turn: &mut TurnContext<'_>) {
        let signal = CancelUserLock { connection: session };
        turn.outbox.send(self.main, Signal::Main(MainSignal::CancelUserLock(signal)));
    }

    /// Lets a node of the cluster do something; `None` for the own one. [`Event::NodeControlled`] is the
    /// answer.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn control_node(
        &mut self,
        session: ConnectionId,
        node: Option<u8>,
        question: NodeQuestion,
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId> {
        let operation = self.open(session, Work::ControlNode)?;
        let (reply_to, node) = (self.own, node.map(NodeId));
        let signal = ControlNode { operation, reply_to, node, question: question.into() };
        // `main` may be that of a data node, which runs the statements of a node without data.
        turn.outbox.send(Address::new(self.own.node, Module::Main, 0), Signal::Main(MainSignal::ControlNode(signal)));
        Ok(operation)
    }

    /// The instance of this block in its module.
    pub fn instance(&self) -> u16 {
        self.own.instance
    }

    /// The node of this gateway.
    pub fn node(&self) -> NodeId {
        self.own.node
    }

    /// Releases all user-level locks of a session that ends.
    pub fn release_user_locks(&mut self, session: ConnectionId, turn: &mut TurnContext<'_>) {
        let signal = ReleaseUserLocks { connection: session };
        turn.outbox.send(self.main, Signal::Main(MainSignal::ReleaseUserLocks(signal)));
    }

    /// Persists values of global variables, and publishes new ones to every sql block. [`Event::GlobalsSet`]
    /// is the answer.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn set_globals(
        &mut self,
        session: ConnectionId,
        (values, persisted): (GlobalValues, PersistedChanges),
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId> {
        let operation = self.open(session, Work::Globals { outstanding: u32::from(self.sql_instances) })?;
        let signal = SetGlobals { operation, reply_to: self.own, values, persisted };
        turn.outbox.send(self.main, Signal::Main(MainSignal::SetGlobals(signal)));
        Ok(operation)
    }

    /// Ends a transaction. [`Event::Ended`] is the answer. If tc holds nothing for the transaction, the
    /// transaction ends immediately and the result is `None`.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; the transaction continues.
    pub fn end(
        &mut self,
        session: ConnectionId,
        transaction: &mut Transaction,
        (ending, durability): (Ending, CommitDurability),
        turn: &mut TurnContext<'_>,
    ) -> Result<Option<OperationId>> {
        if !transaction.id.is_some() {
            self.forget(transaction);
            return Ok(None);
        }
        let tc = self.tc_of(transaction);
        let commits = ending == Ending::Commit;
        let after = self.snapshots.registry().sequence().stable();
        let operation = self.open(session, Work::End { tc, commits, transaction: transaction.id, after })?;
        let request = EndTransaction { operation, reply_to: self.own, transaction: transaction.id, ending, durability };
        match self.has_lost_tc(transaction) {
            true => self.end_lost(operation, commits.then(lost_with_node), turn),
            false => turn.outbox.send(tc, Signal::Tc(TcSignal::EndTransaction(request))),
        }
        self.forget(transaction);
        Ok(Some(operation))
    }

    /// Rolls back the transaction of a lost session. No event follows. Unlike [`Gateway::end`] this cannot
    /// fail, so no session leaves locks behind.
    pub fn abandon(&mut self, transaction: &mut Transaction, turn: &mut TurnContext<'_>) {
        if transaction.id.is_some() && !self.has_lost_tc(transaction) {
            self.order_rollback(transaction, turn);
        }
        self.forget(transaction);
    }

    /// Lets tc roll the transaction back. Nobody awaits the answer.
    pub(crate) fn order_rollback(&mut self, transaction: &Transaction, turn: &mut TurnContext<'_>) {
        let request = EndTransaction {
            operation: NO_OPERATION,
            reply_to: self.own,
            transaction: transaction.id,
            ending: Ending::Rollback,
            durability: CommitDurability::default(),
        };
        let tc = self.tc_of(transaction);
        turn.outbox.send(tc, Signal::Tc(TcSignal::EndTransaction(request)));
    }

    /// Undoes all statements after `newer_than`, a number that [`Transaction::statement`] returned.
    /// [`Event::Undone`] is the answer. If no such statement exists, the result is `None`.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn undo_statements(
        &mut self,
        session: ConnectionId,
        transaction: &Transaction,
        newer_than: StatementNumber,
        turn: &mut TurnContext<'_>,
    ) -> Result<Option<OperationId>> {
        if !transaction.id.is_some() || transaction.statement <= newer_than {
            return Ok(None);
        }
        let tc = self.tc_of(transaction);
        let operation = self.open(session, Work::Undo(tc))?;
        let request = UndoStatements { operation, reply_to: self.own, transaction: transaction.id, newer_than };
        match self.has_lost_tc(transaction) {
            // The next request of the transaction fails.
            true => turn.outbox.send(self.own, undone(operation)),
            false => turn.outbox.send(tc, Signal::Tc(TcSignal::UndoStatements(request))),
        }
        Ok(Some(operation))
    }

    /// Ends the transaction's snapshot and resets its state, except for the isolation level.
    pub fn forget(&mut self, transaction: &mut Transaction) {
        let isolation = transaction.isolation;
        let ended = std::mem::take(transaction);
        transaction.isolation = isolation;
        transaction.written = ended.written;
        transaction.written.clear();
        if let Some((handle, _)) = ended.snapshot {
            self.end_snapshot(handle);
        }
    }

    /// Takes the transaction's snapshot immediately, for START TRANSACTION WITH CONSISTENT SNAPSHOT.
    ///
    /// # Errors
    /// `OutOfResources` if this thread holds too many snapshots.
    pub fn take_snapshot(&mut self, transaction: &mut Transaction) -> Result<()> {
        if transaction.snapshot.is_none() {
            let handle = self.snapshots.begin().map_err(|_| too_many_snapshots())?;
            let number = handle.number();
            transaction.snapshot = Some((handle, number));
            transaction.newest_table = self.catalog.dictionary.newest_table();
        }
        Ok(())
    }

    /// Ends a snapshot that several reads of one statement shared, unless it belongs to the transaction.
    pub fn end_statement(&mut self, transaction: &mut Transaction) {
        let is_of_transaction = transaction.explicit && transaction.isolation != Isolation::ReadCommitted;
        if !is_of_transaction && let Some((handle, _)) = transaction.snapshot.take() {
            self.end_snapshot(handle);
        }
    }

    /// Reserves AUTO_INCREMENT numbers. [`Event::AutoIncrement`] is the answer.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn reserve_auto_increment(
        &mut self,
        session: ConnectionId,
        wanted: AutoIncrementReservation,
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId> {
        let AutoIncrementReservation { table, count, beyond } = wanted;
        let operation = self.open(session, Work::AutoIncrement)?;
        let request = ReserveAutoIncrement { operation, reply_to: self.own, table, count, beyond };
        turn.outbox.send(self.main, Signal::Main(MainSignal::ReserveAutoIncrement(request)));
        Ok(operation)
    }

    /// Gives back AUTO_INCREMENT numbers that no row has got.
    pub fn return_auto_increment(&self, numbers: Box<[ReturnedNumbers]>, is_stop: bool, turn: &mut TurnContext<'_>) {
        let signal = ReturnAutoIncrement { numbers, is_stop };
        turn.outbox.send(self.main, Signal::Main(MainSignal::ReturnAutoIncrement(signal)));
    }

    /// Reads a status table from every block that has rows of it. [`Event::Status`] is the answer.
    ///
    /// # Errors
    /// `OutOfResources` if no operation record is free; nothing was started.
    pub fn read_status(
        &mut self,
        session: ConnectionId,
        (table, only): (StatusTable, &[TableId]),
        turn: &mut TurnContext<'_>,
    ) -> Result<OperationId> {
        let modules: &[Module] = match table {
            StatusTable::Transactions | StatusTable::LockWaits => &[Module::Tc],
            StatusTable::Locks | StatusTable::MemoryUsage => &[Module::Ldm],
            StatusTable::TableStatistics => &[Module::Ldm, Module::Main, Module::Sql],
            // Main knows the sessions of the other nodes.
            StatusTable::Processes => &[Module::Sql, Module::Main],
            StatusTable::MetadataLocks
            | StatusTable::Routing
            | StatusTable::ThreadPoolGroups
            | StatusTable::ThreadPoolQueues
            | StatusTable::ThreadPoolStatistics
            | StatusTable::ThreadPoolWaits
            | StatusTable::OperationLatency
            | StatusTable::OperationLatencyBuckets
            | StatusTable::StatementDigests
            | StatusTable::StatementHistograms
            | StatusTable::TakenStatementDigests => &[Module::Sql],
            StatusTable::UserLocks
            | StatusTable::Checkpoints
            | StatusTable::LogSpaces
            | StatusTable::RestartInfo
            | StatusTable::NodeGroups
            | StatusTable::Links
            | StatusTable::Arbitration
            | StatusTable::Restarts
            | StatusTable::ReplicationLag
            | StatusTable::Events
            | StatusTable::Backups
            | StatusTable::Nodes => &[Module::Main],
            StatusTable::Counters => &[Module::Main, Module::Recv, Module::Sql, Module::Tc, Module::Ldm, Module::Query],
        };
        let known: Vec<_> = modules.iter().map(|module| (*module, self.instances_of(*module))).collect();
        let outstanding = known.iter().map(|(_, instances)| u32::from(*instances)).sum();
        let operation = self.open(session, Work::Status { outstanding, rows: Vec::new() })?;
        for (module, instance) in known.into_iter().flat_map(|(module, count)| (0..count).map(move |at| (module, at))) {
            let request = ReadStatus { operation, reply_to: self.own, table, only: only.into() };
            let signal = match module {
                Module::Tc => Signal::Tc(TcSignal::ReadStatus(request)),
                Module::Sql => Signal::Sql(SqlSignal::ReadStatus(request)),
                Module::Main => Signal::Main(MainSignal::ReadStatus(request)),
                Module::Recv => Signal::Recv(RecvSignal::ReadStatus(request)),
                Module::Query => Signal::Query(QuerySignal::ReadStatus(request)),
                _ => Signal::Ldm(LdmSignal::ReadStatus(request)),
            };
            turn.outbox.send(Address::new(self.own.node, module, instance), signal);
        }
        Ok(operation)
    }

    /// Number of instances of a module. Each instance has rows of status tables.
    fn instances_of(&self, module: Module) -> u16 {
        match module {
            Module::Main => 1,
            Module::Recv => self.recv_instances,
            Module::Sql => self.sql_instances,
            Module::Tc => self.tc_instances,
            Module::Ldm => self.ldm_instances,
            Module::Query => self.query_instances,
            Module::Rep | Module::Send | Module::Io | Module::Log | Module::Work => 0,
        }
    }

    /// Installs a new catalog.
    pub fn install_catalog(&mut self, catalog: Arc<Catalog>) {
        self.catalog = catalog;
    }

    /// Installs a new catalog and acknowledges it.
    pub fn on_publish_catalog(&mut self, signal: PublishCatalog, turn: &mut TurnContext<'_>) {
        self.install_catalog(signal.catalog);
        let reply = PublishCatalogReply { operation: signal.operation };
        turn.outbox.send(signal.reply_to, Signal::Main(MainSignal::PublishCatalogReply(reply)));
    }

    /// Handles the end of a statement: updates the session's view of its transaction.
    ///
    /// `transaction` belongs to the operation's session; see [`Gateway::session_of`].
    pub fn on_execute_statement_reply(
        &mut self,
        reply: ExecuteStatementReply,
        transaction: &mut Transaction,
    ) -> Option<Event> {
        let Operation { work, .. } = self.operations.remove(self.handle_of(reply.operation))?;
        require!(matches!(work, Work::Statement { .. }), "a statement's reply names the operation of a statement");
        let ExecuteStatementReply {
            operation,
            transaction: id,
            statement,
            matched,
            changed,
            diagnostics,
            outputs,
            written,
            error,
        } = reply;
        let was_open = transaction.id.is_some();
        require!(
            !was_open || !id.is_some() || transaction.id == id,
            "a statement stays in the transaction that it was sent in"
        );
        require!(
            !id.is_some() || statement >= transaction.statement || error.is_some(),
            "statement numbers of a transaction never fall"
        );
        transaction.id = id;
        if id.is_some() {
            transaction.statement = transaction.statement.max(statement);
            for partition in written {
                if !transaction.written.contains(&partition) {
                    transaction.written.push(partition);
                }
            }
        } else {
            transaction.written.clear();
            transaction.statement = StatementNumber(0);
            // A deadlock ends the transaction together with its snapshot.
            if (was_open || transaction.explicit) && error.is_some() {
                transaction.ended = true;
            }
        }
        Some(Event::Statement { operation, matched, changed, diagnostics, outputs, error })
    }

    /// Whether the last statement rolled back the whole transaction, as a deadlock does. Clears the flag.
    pub fn take_ended(&mut self, transaction: &mut Transaction) -> bool {
        std::mem::take(&mut transaction.ended)
    }

    /// The session of an operation in progress.
    pub fn session_of(&self, operation: OperationId) -> Option<ConnectionId> {
        self.operations.get(self.handle_of(operation)).map(|operation| operation.session)
    }

    /// Completes COMMIT or ROLLBACK.
    pub fn on_end_transaction_reply(&mut self, reply: EndTransactionReply) -> Option<(ConnectionId, Event)> {
        let operation = self.operations.remove(self.handle_of(reply.operation))?;
        require!(
            matches!(operation.work, Work::End { .. }),
            "the end of a transaction names the operation that ended it"
        );
        Some((operation.session, Event::Ended { operation: reply.operation, error: reply.error }))
    }

    /// Turns any other reply into an event of its session.
    pub fn on_reply(&mut self, signal: SqlSignal) -> Option<(ConnectionId, Event)> {
        match signal {
            SqlSignal::ChangeSchemaReply(reply) => {
                let ChangeSchemaReply { operation, notes, rows, diagnostics, error } = reply;
                let record = self.operations.remove(self.handle_of(operation))?;
                require!(matches!(record.work, Work::Schema), "main answers a schema change only to its operation");
                Some((record.session, Event::SchemaChanged { operation, notes, rows, diagnostics, error }))
            }
            SqlSignal::ReserveAutoIncrementReply(ReserveAutoIncrementReply { operation, first, count, error }) => {
                let record = self.operations.remove(self.handle_of(operation))?;
                require!(matches!(record.work, Work::AutoIncrement), "numbers go to the operation that reserved them");
                Some((record.session, Event::AutoIncrement { operation, first, count, error }))
            }
            SqlSignal::UndoStatementsReply(UndoStatementsReply { operation }) => {
                let record = self.operations.remove(self.handle_of(operation))?;
                require!(matches!(record.work, Work::Undo(_)), "undone statements are those of the operation");
                Some((record.session, Event::Undone { operation }))
            }
            SqlSignal::ReadStatusReply(reply) => self.on_read_status_reply(reply),
            SqlSignal::EndTransactionReply(reply) => self.on_end_transaction_reply(reply),
            SqlSignal::InterruptSessionReply(reply) => self.on_interrupt_session_reply(reply),
            SqlSignal::SetGlobalsReply(reply) => self.on_set_globals_reply(reply),
            SqlSignal::ApplyGlobalsReply(reply) => self.on_apply_globals_reply(reply),
            SqlSignal::ControlNodeReply(ControlNodeReply { operation, error }) => {
                let record = self.operations.remove(self.handle_of(operation))?;
                require!(matches!(record.work, Work::ControlNode), "the operation that asked a node gets the reply");
                Some((record.session, Event::NodeControlled { operation, error }))
            }
            SqlSignal::UseUserLockReply(UseUserLockReply { operation, value, error }) => {
                let record = self.operations.remove(self.handle_of(operation))?;
                require!(
                    matches!(record.work, Work::UserLock),
                    "a user-level lock goes to the operation that asked for it"
                );
                Some((record.session, Event::UserLock { operation, value, error }))
            }
            _ => None,
        }
    }

    fn on_interrupt_session_reply(&mut self, reply: InterruptSessionReply) -> Option<(ConnectionId, Event)> {
        let handle = self.handle_of(reply.operation);
        let Some(Operation { session, work: Work::Interrupt { outstanding, outcome } }) =
            self.operations.get_mut(handle)
        else {
            return None;
        };
        *outcome = reply.outcome.max(*outcome);
        require!(*outstanding > 0, "every block answers once");
        *outstanding -= 1;
        if *outstanding > 0 {
            return None;
        }
        let event = Event::Interrupted { operation: reply.operation, outcome: *outcome };
        let session = *session;
        self.operations.remove(handle);
        Some((session, event))
    }

    fn on_set_globals_reply(&mut self, reply: SetGlobalsReply) -> Option<(ConnectionId, Event)> {
        let SetGlobalsReply { operation, error } = reply;
        let Operation { session, .. } = self.operations.remove(self.handle_of(operation))?;
        Some((session, Event::GlobalsSet { operation, error: Some(error) }))
    }

    fn on_apply_globals_reply(&mut self, reply: ApplyGlobalsReply) -> Option<(ConnectionId, Event)> {
        let handle = self.handle_of(reply.operation);
        let Some(Operation { session, work: Work::Globals { outstanding } }) = self.operations.get_mut(handle) else {
            return None;
        };
        require!(*outstanding > 0, "every block answers once");
        *outstanding -= 1;
        if *outstanding > 0 {
            return None;
        }
        let session = *session;
        self.operations.remove(handle);
        Some((session, Event::GlobalsSet { operation: reply.operation, error: None }))
    }

    fn on_read_status_reply(&mut self, reply: ReadStatusReply) -> Option<(ConnectionId, Event)> {
        let handle = self.handle_of(reply.operation);
        let Some(Operation { session, work: Work::Status { outstanding, rows } }) = self.operations.get_mut(handle)
        else {
            return None;
        };
        rows.extend(reply.rows);
        require!(*outstanding > 0, "every block answers once");
        *outstanding -= 1;
        if *outstanding > 0 {
            return None;
        }
        let event = Event::Status { operation: reply.operation, rows: std::mem::take(rows) };
        let session = *session;
        self.operations.remove(handle);
        Some((session, event))
    }

    #[inline(always)]
    pub(crate) fn open(&mut self, session: ConnectionId, work: Work) -> Result<OperationId> {
        if self.operations.len() >= self.operations.capacity() {
            if let Work::Read(ReadWork { own_snapshot: Some(handle), .. }) = work {
                self.end_snapshot(handle);
            }
            return Err(too_many_operations());
        }
        let handle = self.operations.insert(Operation { session, work }).map_err(|_| too_many_operations())?;
        Ok(self.operation_at(handle))
    }

    pub(crate) fn close(&mut self, operation: OperationId) {
        let handle = self.handle_of(operation);
        let snapshot = match self.operations.get_mut(handle) {
            Some(Operation { work: Work::Read(work), .. }) => work.own_snapshot.take(),
            _ => None,
        };
        self.operations.discard(handle);
        if let Some(snapshot) = snapshot {
            self.end_snapshot(snapshot);
        }
    }

    fn end_snapshot(&mut self, handle: junctor_storage::snapshot::SnapshotHandle) {
        require!(
            self.snapshots.end(handle).is_ok(),
            "a snapshot is ended once, by the thread that took it: another end would let purge pass a reader"
        );
    }

    pub(crate) fn snapshot_of(
        &mut self,
        transaction: &mut Transaction,
    ) -> Result<(CommitNumber, Option<junctor_storage::snapshot::SnapshotHandle>)> {
        self.check_host()?;
        if transaction.explicit && transaction.isolation != Isolation::ReadCommitted {
            self.take_snapshot(transaction)?;
        }
        if let Some((_, number)) = &transaction.snapshot {
            return Ok((*number, None));
        }
        let handle = self.snapshots.begin().map_err(|_| too_many_snapshots())?;
        Ok((handle.number(), Some(handle)))
    }

    /// The tc on the thread that owns a partition. With this tc, an autocommit statement on one partition
    /// crosses threads only once in each direction.
    fn tc_near(&self, partition: PartitionId) -> Option<Address> {
        let owner = self.catalog.distribution.owner(partition)?;
        if owner.node != self.own.node {
            return None;
        }
        let instance = (*self.tc_of_ldm.get(usize::from(owner.instance))?)?;
        Some(Address::new(self.own.node, Module::Tc, instance))
    }

    fn tc_of(&mut self, transaction: &Transaction) -> Address {
        if transaction.id.is_some() {
            return coordinator(transaction.id);
        }
        if let Some((node, tcs)) = self.host {
            self.next_tc = (self.next_tc + 1) % tcs.max(1);
            return Address::new(node, Module::Tc, self.next_tc);
        }
        let instance = self.local_tc.unwrap_or_else(|| {
            self.next_tc = (self.next_tc + 1) % self.tc_instances.max(1);
            self.next_tc
        });
        Address::new(self.own.node, Module::Tc, instance)
    }
}

/// The tc on the thread of each ldm instance.
fn tc_of_ldm(directory: &Directory) -> Box<[Option<u16>]> {
    let near = |ldm| directory.instance_on(Module::Tc, directory.thread_of(Module::Ldm, ldm)?);
    (0..directory.instances(Module::Ldm)).map(near).collect()
}

fn too_many_operations() -> Box<Error> {
    Error::new(ErrorCode::OutOfResources, "Out of resources: too many operations at once")
}

fn too_many_snapshots() -> Box<Error> {
    Error::new(ErrorCode::OutOfResources, "Out of resources: too many snapshots at once")
}

fn take_parts(inputs: &mut PartitionInputs) -> Parts {
    if inputs.len() == 1
        && let Some((partition, input)) = inputs.pop()
    {
        return Parts::One(partition, input);
    }
    let mut parts = Vec::with_capacity(inputs.len());
    while let Some(part) = inputs.pop() {
        parts.push(part);
    }
    Parts::Many(parts.into_boxed_slice())
}

#[cfg(test)]
mod tests;
