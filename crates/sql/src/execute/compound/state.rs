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
use crate::execute::state::Origin;
use crate::plan::Plan;

/// A write of several steps under way.
#[derive(Debug)]
pub(crate) struct CompoundState {
    pub plan: Arc<Plan>,
    pub operation: OperationId,
    pub protocol: RowProtocol,
    pub(super) step: Step,
    /// Whether the transaction is the statement's own, which it ends.
    pub(super) owns_transaction: bool,
    /// The last statement of the transaction before this one; a failure goes back to it.
    pub(super) before: StatementNumber,
    /// The statement's parameters.
    pub(super) parameters: Vec<u8>,
    /// How to do it all again, as long as nothing has been done.
    pub(super) origin: Origin,
    pub(super) work: Work,
    /// The query of INSERT ... SELECT.
    pub(super) source: Option<Box<Source>>,
    /// The statement is to fail with error 1317 at its next step.
    pub(super) is_stopped: bool,
}

/// Stands for no operation: nothing is being written while a query is waited for.
pub(super) const NO_OPERATION: OperationId = OperationId(u64::MAX);

impl CompoundState {
    /// Whether an answer to this operation is awaited.
    pub(crate) fn awaits(&self, operation: OperationId) -> bool {
        self.operation == operation || self.is_of_source(operation)
    }

    /// Makes the statement fail at its next step, unless it commits or is being undone already. Gives the statement of the
    /// transaction that may wait for a lock.
    pub(crate) fn stop(&mut self) -> Option<OperationId> {
        if matches!(self.step, Step::Commit | Step::Undo(_)) {
            return None;
        }
        self.is_stopped = true;
        match (&self.step, &self.source) {
            (Step::Numbers { .. }, _) => None,
            (Step::Select, Some(source)) => source.statement(),
            _ => Some(self.operation),
        }
    }

    /// Whether it is the statement's query that awaits the answer.
    pub(crate) fn is_of_source(&self, operation: OperationId) -> bool {
        self.source.as_ref().is_some_and(|source| source.awaits(operation))
    }
}

/// What the awaited answer is about.
#[derive(Debug)]
pub(super) enum Step {
    /// The query of INSERT ... SELECT.
    Select,
    /// The numbers of a batch of rows.
    Numbers { needed: u64, beyond: u64 },
    /// The insert of all rows, or of a batch of them, at once.
    Batch,
    /// The locking read of a key of the row at hand, by its place among the plan's.
    Key(usize),
    /// The locking read of the row that has the last key of the row at hand.
    Same,
    /// The insert of the row at hand.
    Insert,
    /// The delete of the rows that have keys of the row at hand.
    Delete,
    /// The update of the row that has a key of the row at hand.
    Update,
    /// The locking read of all rows of a change.
    Lock,
    /// The write of all locked rows.
    WriteAll,
    /// The write of one locked row.
    WriteOne,
    /// The commit of the own transaction.
    Commit,
    /// The rollback of the own transaction, or the undoing of the statement; the error is said after it.
    Undo(Box<Error>),
}

/// What is done.
#[derive(Debug)]
pub(super) enum Work {
    Insert(InsertWork),
    Change(ChangeWork),
}

/// Rows on their way in.
#[derive(Debug)]
pub(super) struct InsertWork {
    pub rows: RowList,
    /// The row at hand.
    pub next: usize,
    /// The rows that have keys of the row at hand: partition and primary key.
    pub found: Vec<(u16, Vec<u8>)>,
    /// How often the keys of the row at hand were looked at.
    pub attempts: u32,
    /// The first number that was generated for a row that was inserted, or 0.
    pub first_number: u64,
    /// The number that the answer names when none was generated.
    pub explicit_number: u64,
    /// The numbers of the rows that are being inserted at once.
    pub numbered: Numbered,
    pub counts: Counts,
    /// What RETURNING answers with.
    pub returned: Returned,
}

/// What became of the rows of an INSERT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Rows inserted, and rows changed in their place.
    pub written: u64,
    /// Rows that were deleted for new ones.
    pub deleted: u64,
    /// Rows that were there and got other values.
    pub updated: u64,
    /// Rows that were there, whether or not they got other values.
    pub touched: u64,
}

/// Locked rows that are written one after the other.
#[derive(Debug)]
pub(super) struct ChangeWork {
    /// Partition and primary key of each.
    pub rows: Vec<(u16, Vec<u8>)>,
    pub next: usize,
    /// Rows to write at most.
    pub limit: u64,
    /// Rows to lock at most in one partition.
    pub locked_max: u32,
    pub matched: u64,
    pub changed: u64,
    /// What RETURNING answers with, of each partition.
    pub outputs: Vec<Vec<u8>>,
}
