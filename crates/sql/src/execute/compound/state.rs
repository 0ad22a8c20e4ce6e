//! The record of a write of several steps.

use std::sync::Arc;

use junctor_model::error::Error;
use junctor_model::id::StatementNumber;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::returned::Returned;
use super::rows::RowList;
use super::source::Source;
use crate::execute::insert::Numbered;
use crate::execute::retry::RetryInput;
use crate::plan::{ChangePlan, InsertPlan, Plan};

/// A write of several steps.
#[derive(Debug)]
pub(crate) struct CompoundState {
    pub(super) steps: StepState,
    pub(super) work: Work,
}

/// Where a write of several steps stands.
#[derive(Debug)]
pub(super) struct StepState {
    pub operation: OperationId,
    pub protocol: RowProtocol,
    pub step: Step,
    /// Whether the transaction is the statement's own, which it ends.
    pub owns_transaction: bool,
    /// The last statement of the transaction before this one. A failure undoes all later ones.
    pub before: StatementNumber,
    /// The statement's parameters.
    pub parameters: Vec<u8>,
    /// Kept until the first step has succeeded; from then on a retry would write twice.
    pub retry: RetryInput,
    /// Whether the statement fails with error 1317 at its next step.
    pub is_stopped: bool,
}

/// Stands for no operation: nothing is being written while a query is awaited.
pub(super) const NO_OPERATION: OperationId = OperationId(u64::MAX);

impl CompoundState {
    /// Whether the state awaits a reply of this operation.
    pub(crate) fn awaits(&self, operation: OperationId) -> bool {
        self.steps.operation == operation || self.work.awaits(operation)
    }

    pub(crate) fn plan(&self) -> Plan {
        match &self.work {
            Work::Insert(plan, _) => Plan::Insert(Arc::clone(plan)),
            Work::Change(plan, _) => Plan::Change(Arc::clone(plan)),
        }
    }

    /// Makes the statement fail at its next step, unless it commits or is being undone already. Returns the
    /// statement of the transaction that may be waiting for a lock.
    pub(crate) fn stop(&mut self) -> Option<OperationId> {
        if matches!(self.steps.step, Step::Commit | Step::Undo(_)) {
            return None;
        }
        self.steps.is_stopped = true;
        match (&self.steps.step, &self.work) {
            (Step::Numbers { .. }, _) => None,
            (Step::Select, Work::Insert(_, work)) => work.source.as_ref().and_then(|source| source.statement()),
            _ => Some(self.steps.operation),
        }
    }
}

/// What the awaited reply answers.
#[derive(Debug)]
pub(super) enum Step {
    /// The query of INSERT ... SELECT.
    Select,
    /// The numbers of a batch of rows.
    Numbers { needed: u64, beyond: u64 },
    /// The insert of all rows, or of one batch, by one statement.
    Batch,
    /// The locking read of a key of the current row, by its position among the plan's keys.
    Key(usize),
    /// The locking read of the row that has the last key of the current row.
    Same,
    /// The insert of the current row.
    Insert,
    /// The delete of the rows that have keys of the current row.
    Delete,
    /// The update of the row that has a key of the current row.
    Update,
    /// The locking read of all rows of a change.
    Lock,
    /// The write of all locked rows.
    WriteAll,
    /// The write of one locked row.
    WriteOne,
    /// The commit of the statement's own transaction.
    Commit,
    /// The rollback of the statement's own transaction, or the undo of the statement; the error is sent
    /// after it.
    Undo(Box<Error>),
}

/// The statement's form and its progress.
#[derive(Debug)]
pub(super) enum Work {
    Insert(Arc<InsertPlan>, InsertWork),
    Change(Arc<ChangePlan>, ChangeWork),
}

impl Work {
    /// Whether the query of INSERT ... SELECT awaits a reply of this operation.
    pub(super) fn awaits(&self, operation: OperationId) -> bool {
        match self {
            Work::Insert(_, work) => work.source.as_ref().is_some_and(|source| source.awaits(operation)),
            Work::Change(..) => false,
        }
    }
}

/// The progress of an INSERT.
#[derive(Debug, Default)]
pub(super) struct InsertWork {
    pub rows: RowList,
    /// Position of the current row.
    pub next: usize,
    /// The rows that have keys of the current row: partition and primary key.
    pub found: Vec<(u16, Vec<u8>)>,
    /// How often the keys of the current row were read.
    pub attempts: u32,
    /// The first number that was generated for a row that was inserted, or 0.
    pub first_number: u64,
    /// The number in the OK packet when none was generated.
    pub explicit_number: u64,
    /// The numbers of the rows that one statement inserts together.
    pub numbered: Numbered,
    pub counts: Counts,
    /// The rows of RETURNING.
    pub returned: Returned,
    /// The query of INSERT ... SELECT.
    pub source: Option<Box<Source>>,
}

/// What the rows of an INSERT did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Rows inserted, and rows changed in their place.
    pub written: u64,
    /// Rows deleted for new ones.
    pub deleted: u64,
    /// Existing rows that got other values.
    pub updated: u64,
    /// Existing rows, whether or not they got other values.
    pub touched: u64,
}

/// The progress of a change whose rows are locked first.
#[derive(Debug)]
pub(super) struct ChangeWork {
    /// Partition and primary key of each locked row.
    pub rows: Vec<(u16, Vec<u8>)>,
    pub next: usize,
    /// Maximum number of rows to write.
    pub limit: u64,
    /// Maximum number of rows to lock in one partition.
    pub locked_max: u32,
    pub matched: u64,
    pub changed: u64,
    /// The rows of RETURNING, one buffer for each partition.
    pub outputs: Vec<Vec<u8>>,
}
