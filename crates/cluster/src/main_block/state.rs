//! A schema change as stages: each is sent to many blocks, and the next begins when all have answered.

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{Address, Time};
use junctor_model::error::Error;
use junctor_model::id::{ConnectionId, IndexId, PartitionId, TableId};
use junctor_model::schema::TableLayout;
use junctor_signals::block_tables::{BlockedTable, TableUsers};
use junctor_signals::change_schema::{Catalog, ChangePartition, SchemaChange};
use junctor_signals::read_rows::OperationId;

/// Who asked for a change, and what the answer depends on besides the change.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub operation: OperationId,
    pub reply_to: Address,
    pub connection: ConnectionId,
    pub wait_ms: u64,
    pub foreign_key_checks: bool,
    /// Why a change before this one failed, which takes it back: told in the end.
    pub cause: Option<Box<Error>>,
}

/// Database and name of a table.
pub(super) type TableName = (Box<str>, Box<str>);

/// A change that has not begun. Those that concern a table begin in the order in which they came.
#[derive(Debug)]
pub(super) struct WaitingChange {
    /// What sql blocks know the change by.
    pub number: OperationId,
    pub asker: Asker,
    pub change: Box<SchemaChange>,
    /// The tables that it concerns, those that it makes too.
    pub names: Vec<TableName>,
    pub users: TableUsers,
    pub deadline: Time,
    pub state: WaitState,
    /// The tables that others are asked to leave.
    pub tables: Arc<[BlockedTable]>,
}

/// What a change waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitState {
    /// Changes before it.
    Queued,
    /// So many sql blocks whose sessions use the tables.
    Asking { outstanding: usize },
    /// Its turn.
    Ready,
}

/// The change that is under way.
#[derive(Debug)]
pub(super) struct Change {
    pub number: OperationId,
    pub asker: Asker,
    pub names: Vec<TableName>,
    /// The tables that others are kept from.
    pub tables: Arc<[BlockedTable]>,
    /// What takes back what changes before this one did, when this one fails.
    pub fallback: Option<SchemaChange>,
    /// What comes next, before the answer.
    pub following: Option<SchemaChange>,
    pub notes: Vec<(u16, Box<str>)>,
    /// What is left to do.
    pub stages: VecDeque<Stage>,
    /// What takes back the stages that were begun, in the order in which it is to be done.
    pub undo: VecDeque<StageWork>,
    /// Why the change failed; from then on only `undo` is run.
    pub error: Option<Box<Error>>,
    /// Signals of this stage that are not sent yet.
    pub unsent: VecDeque<(Address, ChangePartition)>,
    /// Answers that this stage still waits for.
    pub outstanding: usize,
}

/// One stage and how to take it back.
#[derive(Debug)]
pub(super) struct Stage {
    pub work: StageWork,
    pub undo: Option<StageWork>,
}

/// What a stage does.
#[derive(Clone, Debug)]
pub(super) enum StageWork {
    /// Changes partitions, at every member of their chains.
    Partitions(Vec<PartitionWork>),
    /// Makes this the catalog of every block.
    Publish(Arc<Catalog>),
}

/// The change of one partition.
#[derive(Clone, Debug)]
pub(super) struct PartitionWork {
    pub partition: PartitionId,
    pub layout: Arc<TableLayout>,
    pub chain: Vec<Address>,
    pub kind: PartitionWorkKind,
}

/// As `PartitionChange`, but to be sent more than once.
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
    /// First AUTO_INCREMENT values of tables that are made.
    pub counters: Vec<(TableId, u64)>,
    /// How many tables ids were given to.
    pub tables_made: u32,
    /// How many partitions were placed.
    pub partitions_placed: usize,
    /// What comes when the stages are done, before the answer.
    pub following: Option<SchemaChange>,
    /// What takes back what changes before this one did, when a stage fails.
    pub fallback: Option<SchemaChange>,
}

impl Plan {
    /// Adds a stage.
    pub fn then(&mut self, work: StageWork, undo: Option<StageWork>) {
        self.stages.push(Stage { work, undo });
    }
}

/// Changes that wait, in the order in which they came.
pub(super) type WaitingChanges = VecDeque<WaitingChange>;
