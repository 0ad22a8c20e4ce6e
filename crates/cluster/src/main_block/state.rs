//! Schema changes as stages. Each stage sends signals to many blocks, and the next begins when all of them
//! have answered.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{Address, Time};
use junctor_model::error::Error;
use junctor_model::id::{ConnectionId, IndexId, PartitionId, TableId};
use junctor_model::schema::TableLayout;
use junctor_signals::block_tables::{BlockedTable, TableUsers};
use junctor_signals::change_schema::{Catalog, ChangePartition, SchemaChange};
use junctor_signals::read_rows::OperationId;

/// The origin of a change, with its options.
#[derive(Clone, Debug)]
pub(super) struct Requester {
    pub operation: OperationId,
    pub reply_to: Address,
    pub connection: ConnectionId,
    pub wait_ms: u64,
    pub foreign_key_checks: bool,
    /// The error that a fallback is undoing changes for; reported at the end.
    pub cause: Option<Box<Error>>,
}

impl Requester {
    /// Notes the error to report at the end, unless an earlier one is being undone.
    pub fn failed(mut self, error: Box<Error>) -> Requester {
        self.cause.get_or_insert(error);
        self
    }
}

/// (database, table).
pub(super) type TableName = (Box<str>, Box<str>);

/// A change that has not begun. Changes of the same table begin in arrival order.
#[derive(Debug)]
pub(super) struct WaitingChange {
    /// Identifies the change at sql blocks.
    pub number: OperationId,
    pub requester: Requester,
    pub change: Box<SchemaChange>,
    /// The tables concerned, including those it creates.
    pub names: Vec<TableName>,
    pub users: TableUsers,
    pub deadline: Time,
    pub state: WaitState,
    /// The tables that other sessions are asked to leave.
    pub tables: Arc<[BlockedTable]>,
}

/// The event that a schema change waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitState {
    /// Earlier changes.
    Queued,
    /// Answers of `outstanding` sql blocks whose sessions use the tables.
    Asking { outstanding: usize },
    /// Its turn to run.
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
    /// Undoes the changes that preceded this one, if this one fails.
    pub fallback: Option<SchemaChange>,
    /// Runs after this change, before the answer.
    pub following: Option<SchemaChange>,
    pub notes: Vec<(u16, Box<str>)>,
    /// Remaining stages.
    pub stages: VecDeque<Stage>,
    /// Undoes the stages that have begun, in this order.
    pub undo: VecDeque<StageWork>,
    /// Why the change failed. From then on, only `undo` runs.
    pub error: Option<Box<Error>>,
    /// Signals of this stage that are not sent yet.
    pub unsent: VecDeque<(Address, ChangePartition)>,
    /// Answers that this stage waits for.
    pub outstanding: usize,
}

/// One stage, and how to undo it.
#[derive(Debug)]
pub(super) struct Stage {
    pub work: StageWork,
    pub undo: Option<StageWork>,
}

/// Content of a stage.
#[derive(Clone, Debug)]
pub(super) enum StageWork {
    /// Changes partitions at every member of their chains.
    Partitions(Vec<PartitionWork>),
    /// Publishes a catalog to every block.
    Publish(Arc<Catalog>),
}

/// A change of one partition.
#[derive(Clone, Debug)]
pub(super) struct PartitionWork {
    pub partition: PartitionId,
    pub layout: Arc<TableLayout>,
    pub chain: Vec<Address>,
    pub kind: PartitionWorkKind,
}

/// As `PartitionChange`, but copyable for every member of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartitionWorkKind {
    Create,
    Drop,
    ReplaceLayout,
    BuildIndex(IndexId),
}

/// The stages of a change, before it runs.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub stages: Vec<Stage>,
    pub notes: Vec<(u16, Box<str>)>,
    /// First AUTO_INCREMENT values of new tables.
    pub counters: Vec<(TableId, u64)>,
    /// Number of table ids assigned.
    pub tables_made: u32,
    /// Number of partitions placed.
    pub partitions_placed: usize,
    /// Runs after the stages, before the answer.
    pub following: Option<SchemaChange>,
    /// Undoes the changes that preceded this one, if a stage fails.
    pub fallback: Option<SchemaChange>,
}

impl Plan {
    pub fn then(&mut self, work: StageWork, undo: Option<StageWork>) {
        self.stages.push(Stage { work, undo });
    }

    /// Appends a stage of work on partitions that needs no undo, if there is any.
    pub fn then_partitions(&mut self, works: Vec<PartitionWork>) {
        if !works.is_empty() {
            self.then(StageWork::Partitions(works), None);
        }
    }
}

/// Waiting changes, in arrival order.
pub(super) type WaitingChanges = VecDeque<WaitingChange>;
