//! Schema changes as sequences of stages. Each stage sends signals to many blocks. The next stage starts when
//! all of them have answered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use junctor_kernel::{Address, NodeId, Time};
use junctor_model::alteration::Alteration;
use junctor_model::error::Error;
use junctor_model::id::{ConnectionId, IndexId, PartitionId, TableId};
use junctor_model::schema::{TableDefinition, TableLayout};
use junctor_signals::block_tables::{BlockedTable, TableUsers};
use junctor_signals::change_schema::{Catalog, ChangePartition, ChangeSchema, SchemaChange};
use junctor_signals::crash_point::{self, CrashStep};
use junctor_signals::read_rows::OperationId;

use super::reserve_auto_increment::Counter;

/// The operation of a request of main itself, whose answer no session awaits.
pub(super) const NO_OPERATION: OperationId = OperationId(u64::MAX);
/// The operation of the change that stores the first accounts. The node cannot go on if it fails.
pub(super) const FIRST_ACCOUNTS: OperationId = OperationId(u64::MAX - 1);

/// The origin of a change, with the options of its request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requester {
    pub operation: OperationId,
    pub reply_to: Address,
    pub connection: ConnectionId,
    pub wait_ms: u64,
    pub lock_wait_ms: u32,
    pub foreign_key_checks: bool,
}

impl Requester {
    /// The origin of this request.
    pub fn of(request: &ChangeSchema) -> Requester {
        let ChangeSchema { operation, reply_to, connection, wait_ms, lock_wait_ms, foreign_key_checks, .. } = *request;
        Requester { operation, reply_to, connection, wait_ms, lock_wait_ms, foreign_key_checks }
    }

    /// Main itself. No session awaits the change, so it may wait for others without a limit.
    pub fn main(own: Address) -> Requester {
        Requester {
            operation: NO_OPERATION,
            reply_to: own,
            connection: ConnectionId(0),
            wait_ms: u64::from(u32::MAX),
            lock_wait_ms: 0,
            foreign_key_checks: false,
        }
    }

    /// The request for a change.
    pub fn request(self, change: SchemaChange) -> ChangeSchema {
        let Requester { operation, reply_to, connection, wait_ms, lock_wait_ms, foreign_key_checks } = self;
        let change = Box::new(change);
        ChangeSchema { operation, reply_to, connection, wait_ms, lock_wait_ms, foreign_key_checks, change }
    }
}

/// What waits in the queue of schema changes, or runs.
#[derive(Debug)]
pub(super) enum Task {
    /// A change of a session. A session requests `SchemaChange::AlterTable`; if the alteration has several
    /// steps, main makes it an alteration job.
    Requested(Box<SchemaChange>),
    /// A step of the alteration that the requesting session has under way.
    Step { step: AlterationStep, table: TableId, alteration: Arc<Alteration> },
}

/// The steps of an alteration that wait for other changes, and perhaps for sessions. Between them, the
/// alteration fills unique indexes and checks rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlterationStep {
    /// Creates the new indexes in state Building.
    CreateIndexes,
    /// Builds the ordered ones from the existing rows.
    BuildIndexes,
    /// Keeps other sessions from writing to the table, and to the parents of its new foreign keys, until the
    /// alteration ends.
    BlockWrites,
    /// Creates the table to which the rows are copied.
    CreateReplacement,
    /// Performs all other changes, and makes the new indexes visible, or the new table in place of the old
    /// one.
    Finish,
    /// Drops the new indexes, or the new table.
    Undo,
}

impl Task {
    /// The step and its table, if this is a step of an alteration.
    pub fn step_on_table(&self) -> Option<(AlterationStep, TableId)> {
        match self {
            Task::Requested(_) => None,
            Task::Step { step, table, .. } => Some((*step, *table)),
        }
    }

    /// The step, if this is one of an alteration.
    pub fn step(&self) -> Option<AlterationStep> {
        self.step_on_table().map(|(step, _)| step)
    }

    /// The alteration that this is, or belongs to.
    pub fn alteration(&self) -> Option<&Alteration> {
        match self {
            Task::Step { alteration, .. } => Some(alteration),
            Task::Requested(change) => match &**change {
                SchemaChange::AlterTable { alteration, .. } => Some(alteration),
                _ => None,
            },
        }
    }

    /// Whether this keeps sessions out of tables, and has no stages.
    pub fn is_lock(&self) -> bool {
        match self {
            Task::Requested(change) => matches!(**change, SchemaChange::LockTables { .. }),
            Task::Step { step, .. } => *step == AlterationStep::BlockWrites,
        }
    }
}

/// (database, table).
pub(super) type TableName = (Box<str>, Box<str>);

/// A change that has not started. Changes of the same table start in the order of arrival.
#[derive(Debug)]
pub(super) struct WaitingChange {
    /// Identifies the change at sql blocks.
    pub number: OperationId,
    pub requester: Requester,
    pub task: Task,
    /// The affected tables, including those that the change creates.
    pub names: Vec<TableName>,
    pub users: TableUsers,
    pub deadline: Time,
    pub state: WaitState,
    /// The tables for which other sessions are asked to finish their use.
    pub tables: Arc<[BlockedTable]>,
}

/// The event that a schema change waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitState {
    /// Earlier changes of the same tables.
    Queued,
    /// Answers of `outstanding` sql blocks whose sessions may use the tables.
    Asking { outstanding: usize },
    /// Nothing but the end of the running change.
    Ready,
}

/// The running change.
#[derive(Debug)]
pub(super) struct Change {
    pub number: OperationId,
    pub requester: Requester,
    pub names: Vec<TableName>,
    /// The tables from which other sessions are excluded.
    pub tables: Arc<[BlockedTable]>,
    /// The step and its table, if the change is a step of an alteration.
    pub step_on_table: Option<(AlterationStep, TableId)>,
    pub notes: Vec<(u16, Box<str>)>,
    /// A table, and the new one that takes its place with its AUTO_INCREMENT numbers.
    pub successor: Option<(TableId, TableId)>,
    /// Stages that have not started.
    pub stages: VecDeque<Stage>,
    /// Undoes the stages that have started, in this order.
    pub undo: VecDeque<StageWork>,
    /// Why the change failed. Once it is set, only `undo` runs.
    pub error: Option<Box<Error>>,
    /// Whether the change can no longer fail: its record is formed, or its catalog is published.
    pub is_decided: bool,
    /// The step of the change's log record. Tests crash the node around it.
    pub record_step: CrashStep,
    /// Signals of the current stage that are not sent yet.
    pub unsent: VecDeque<(Address, ChangePartition)>,
    /// Number of answers that the current stage waits for.
    pub outstanding: usize,
    /// How many of them other nodes owe.
    pub owed: BTreeMap<NodeId, usize>,
    /// The current stage, for tests that crash around it.
    pub step: Option<CrashStep>,
}

/// One stage, and the stage that undoes it.
#[derive(Debug)]
pub(super) struct Stage {
    pub work: StageWork,
    pub undo: Option<StageWork>,
}

/// The work of a stage.
#[derive(Clone, Debug)]
pub(super) enum StageWork {
    /// Changes partitions at every member of their chains.
    Partitions(Vec<PartitionWork>),
    /// Writes the difference between the current catalog and this one to the log. Once the record is durable,
    /// the change is decided: a restart finds it done.
    Persist(Arc<Catalog>),
    /// Publishes a catalog to every sql, tc, ldm and query block.
    Publish(Arc<Catalog>),
}

impl StageWork {
    /// The step around which tests crash. The stage `Persist` marks the steps of its record itself.
    pub fn crash_step(&self) -> Option<CrashStep> {
        Some(match self {
            StageWork::Persist(_) => return None,
            StageWork::Publish(_) => crash_point::JOB_PUBLISH,
            StageWork::Partitions(works) => match works.first().map(|work| &work.kind) {
                Some(PartitionWorkKind::BuildIndex(_)) => crash_point::JOB_BACKFILL,
                Some(PartitionWorkKind::Drop) => crash_point::JOB_FREE,
                Some(PartitionWorkKind::Create | PartitionWorkKind::ReplaceLayout) | None => crash_point::JOB_MAKE,
            },
        })
    }
}

/// A change of one partition.
#[derive(Clone, Debug)]
pub(super) struct PartitionWork {
    pub partition: PartitionId,
    pub layout: Arc<TableLayout>,
    pub chain: Vec<Address>,
    pub kind: PartitionWorkKind,
}

/// Like `PartitionChange`, but `Copy`, because every member of a chain gets one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartitionWorkKind {
    Create,
    Drop,
    ReplaceLayout,
    BuildIndex(IndexId),
}

/// The stages of a change, before the change starts.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub stages: Vec<Stage>,
    pub notes: Vec<(u16, Box<str>)>,
    /// AUTO_INCREMENT counters of new tables.
    pub counters: Vec<(TableId, Counter)>,
    /// The least next AUTO_INCREMENT numbers of existing tables.
    pub raised_counters: Vec<(TableId, u64)>,
    /// A table, and the new one that takes its place with its AUTO_INCREMENT numbers.
    pub successor: Option<(TableId, TableId)>,
    /// Number of table ids that the change assigns.
    pub tables_made: u32,
    /// Number of partitions that the change places.
    pub partitions_placed: usize,
}

impl Plan {
    /// Appends the stages that make a change durable and publish it.
    pub fn then_publish(&mut self, catalog: Catalog) {
        let catalog = Arc::new(catalog);
        self.then(StageWork::Persist(Arc::clone(&catalog)), None);
        self.then(StageWork::Publish(catalog), None);
    }

    /// Appends the stages that publish a change of one table. A temporary table has no records, but the other
    /// mains of a cluster learn the schema by one.
    pub fn then_publish_table(&mut self, catalog: Catalog, table: &TableDefinition, is_in_cluster: bool) {
        match table.is_temporary() && !is_in_cluster {
            true => self.then(StageWork::Publish(catalog.into()), None),
            false => self.then_publish(catalog),
        }
    }

    pub fn then(&mut self, work: StageWork, undo: Option<StageWork>) {
        self.stages.push(Stage { work, undo });
    }

    /// Appends a stage of work on partitions that needs no undo. Appends nothing if `works` is empty.
    pub fn then_partitions(&mut self, works: Vec<PartitionWork>) {
        if !works.is_empty() {
            self.then(StageWork::Partitions(works), None);
        }
    }
}

/// Waiting changes, in arrival order.
pub(super) type WaitingChanges = VecDeque<WaitingChange>;
