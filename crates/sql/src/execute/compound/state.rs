//! The state of a compound statement between its steps.

use std::ops::Range;
use std::sync::Arc;

use junctor_gateway::gateway::NO_OPERATION;
use junctor_model::error::Error;
use junctor_model::id::StatementNumber;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::locked_rows::LockedRows;
use super::modify::TargetRows;
use super::returned::Returned;
use super::rows::RowList;
use super::source::Source;
use crate::execute::insert::InsertedNumbers;
use crate::execute::retry::RetryInput;
use crate::execute::schema::FilledTable;
use crate::plan::{ChangePlan, InsertPlan, ModifyPlan, Plan};

/// A compound statement: one that writes in several steps.
#[derive(Debug)]
pub(crate) struct CompoundState {
    pub(super) steps: StepState,
    pub(super) work: Work,
}

/// The part of the state that all kinds of compound statements share.
#[derive(Debug)]
pub(super) struct StepState {
    pub operation: OperationId,
    pub protocol: RowProtocol,
    pub step: Step,
    /// Whether the statement opened the transaction itself and must end it.
    pub owns_transaction: bool,
    /// The number of the transaction's last statement before this one. A failure rolls back all later ones.
    pub before: StatementNumber,
    /// The statement's parameters.
    pub parameters: Vec<u8>,
    /// The copy of the input, as long as the statement may start again: with another plan before its first
    /// write, and after the loss of a node once its own transaction is rolled back. `None` when it has done
    /// what no rollback takes back, such as a call of SLEEP.
    pub retry: RetryInput,
    /// Whether the statement must fail with error 1317 before its next step.
    pub is_stopped: bool,
    /// Whether the client has been asked for the next part of the file of LOAD DATA LOCAL, and has not sent
    /// it.
    pub awaits_input: bool,
    /// Whether the client has been asked for a file and has not sent its end.
    pub is_receiving: bool,
    /// The table that a CREATE TABLE ... SELECT fills.
    pub fills: Option<FilledTable>,
}

impl StepState {
    /// The state of a statement that begins with its query.
    pub fn selecting(protocol: RowProtocol, parameters: Vec<u8>) -> StepState {
        StepState {
            operation: NO_OPERATION,
            protocol,
            step: Step::Select,
            owns_transaction: false,
            before: StatementNumber::default(),
            parameters,
            retry: RetryInput::None,
            is_stopped: false,
            awaits_input: false,
            is_receiving: false,
            fills: None,
        }
    }
}

impl CompoundState {
    /// Whether the statement waits for a reply of this operation.
    pub(crate) fn awaits(&self, operation: OperationId) -> bool {
        self.steps.operation == operation || self.work.awaits(operation)
    }

    pub(crate) fn plan(&self) -> Plan {
        match &self.work {
            Work::Insert(plan, _) => Plan::Insert(Arc::clone(plan)),
            Work::Change(plan, _) => Plan::Change(Arc::clone(plan)),
            Work::Modify(plan, _) => Plan::Modify(Arc::clone(plan)),
        }
    }

    /// The number of rows that a LOAD DATA has taken from its file; `None` for other statements.
    pub(crate) fn rows_loaded(&self) -> Option<u64> {
        self.work.source().filter(|source| source.load.is_some()).map(|source| source.rows_before)
    }

    /// Whether the statement, if it is stopped, must end in a step of its own, because no reply comes soon.
    /// It waits for its client, or for rows or the file of its query.
    pub(crate) fn ends_in_step(&self) -> bool {
        matches!(self.steps.step, Step::Select) && !self.work.source().is_some_and(Source::can_be_interrupted)
    }

    /// Whether the query waits for a call of SLEEP or of a user-level lock.
    pub(crate) fn awaits_call(&self) -> bool {
        self.work.source().is_some_and(Source::awaits_call)
    }

    /// The text of SHOW PROCESSLIST while the query waits for such a call.
    pub(crate) fn call_name(&self) -> Option<&'static str> {
        self.work.source()?.call_name()
    }

    /// Makes the statement fail before its next step, unless it is already committing or rolling back.
    /// Returns the operation that may be waiting for a lock.
    pub(crate) fn stop(&mut self) -> Option<OperationId> {
        if matches!(self.steps.step, Step::Commit | Step::Undo(_)) {
            return None;
        }
        self.steps.is_stopped = true;
        match (&self.steps.step, &self.work) {
            (Step::Numbers { .. }, _) => None,
            (Step::Select, work) => work.source().and_then(|source| source.statement()),
            _ => Some(self.steps.operation),
        }
    }
}

/// The pending step, whose reply is awaited.
#[derive(Debug)]
pub(super) enum Step {
    /// The query of the statement, or the next part of the file of LOAD DATA.
    Select,
    /// AUTO_INCREMENT values for the rows of a batch are being reserved.
    Numbers { needed: u64, beyond: u64 },
    /// The insert of all rows, or of one batch, in one step.
    Batch,
    /// The locking read of one key of the current row. The number is its position among the plan's keys.
    Key(usize),
    /// The locking read of the only conflicting row of a REPLACE, which may equal the current row.
    Same,
    /// The delete of the existing row with the key at this position, if the row has expired.
    Expired(usize),
    /// The insert of the current row.
    Insert,
    /// The delete of the existing rows that have keys of the current row.
    Delete,
    /// The update of the existing row that has a key of the current row.
    Update,
    /// The locking read of all rows of an UPDATE or DELETE.
    Lock,
    /// The locked rows are being sorted, or many are to be written. The session waits for a step that it has
    /// requested, not for a reply.
    ContinueRows,
    /// The write of all rows by the statement's condition.
    WriteAll,
    /// The write of one or several locked rows by their keys.
    WriteRows,
    /// The commit of the statement's own transaction.
    Commit,
    /// The rollback of the statement's own transaction, or of the statement alone. The error is sent when it
    /// is complete.
    Undo(Box<Error>),
}

/// The statement's plan and its progress.
#[derive(Debug)]
pub(super) enum Work {
    Insert(Arc<InsertPlan>, InsertWork),
    Change(Arc<ChangePlan>, ChangeWork),
    Modify(Arc<ModifyPlan>, ModifyWork),
}

impl Work {
    /// Whether the statement's query waits for a reply of this operation.
    pub(super) fn awaits(&self, operation: OperationId) -> bool {
        self.source().is_some_and(|source| source.awaits(operation))
    }

    /// The query of the statement, until it has ended.
    fn source(&self) -> Option<&Source> {
        match self {
            Work::Insert(_, work) => work.source.as_deref(),
            Work::Modify(_, work) => work.source.as_deref(),
            Work::Change(..) => None,
        }
    }

    /// Takes the query of the statement, to end it.
    pub(super) fn take_source(&mut self) -> Option<Box<Source>> {
        match self {
            Work::Insert(_, work) => work.source.take(),
            Work::Modify(_, work) => work.source.take(),
            Work::Change(..) => None,
        }
    }
}

/// The progress of an INSERT.
#[derive(Debug, Default)]
pub(super) struct InsertWork {
    pub rows: RowList,
    /// Position of the current row.
    pub next: usize,
    /// Partition and primary key of the existing rows that have keys of the current row.
    pub found: Vec<(u16, Vec<u8>)>,
    /// Number of times that the keys of the current row have been read.
    pub attempts: u32,
    /// The time of the statement, in microseconds since 1970 in UTC.
    pub now_us: u64,
    /// Whether a row that lives has a key of the current row, so that its insert fails.
    pub meets_living_row: bool,
    /// The first generated AUTO_INCREMENT value of an inserted row, or 0.
    pub first_number: u64,
    /// The AUTO_INCREMENT value for the OK packet if none was generated.
    pub explicit_number: u64,
    /// The AUTO_INCREMENT values of the rows that one step inserts.
    pub numbered: InsertedNumbers,
    pub counts: Counts,
    /// The rows of RETURNING.
    pub returned: Returned,
    /// The query of INSERT ... SELECT.
    pub source: Option<Box<Source>>,
}

/// The progress of an UPDATE or DELETE whose rows a query finds.
#[derive(Debug, Default)]
pub(super) struct ModifyWork {
    /// The query, until it has ended.
    pub source: Option<Box<Source>>,
    /// The rows of each table.
    pub targets: Vec<TargetRows>,
    /// The table that is being written.
    pub target: usize,
    /// Number of rows in the pending write, and of those written since the last step.
    pub writing: usize,
    pub written: usize,
    pub matched: u64,
    pub changed: u64,
}

/// Counts for the statement's answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Rows inserted or changed in place, and rows that REPLACE found equal to the new ones.
    pub written: u64,
    /// Existing rows that REPLACE deleted.
    pub deleted: u64,
    /// Existing rows that received different values.
    pub updated: u64,
    /// Existing rows that ON DUPLICATE KEY UPDATE found, whether or not their values changed.
    pub touched: u64,
}

/// The progress of an UPDATE or DELETE.
#[derive(Debug)]
pub(super) struct ChangeWork {
    /// The locked rows that are not among `rows` yet; `None` if no rows were locked.
    pub locked: Option<LockedRows>,
    /// Partition and primary key of the next locked rows, in the order of the writes.
    pub rows: Vec<(u16, Vec<u8>)>,
    /// The part of `rows` that the pending step writes.
    pub writing: Range<usize>,
    /// Maximum number of rows to write.
    pub limit: u64,
    /// Maximum number of rows to lock in one partition.
    pub locked_max: u32,
    pub matched: u64,
    pub changed: u64,
    /// The rows of RETURNING, one buffer for each partition, or one buffer for all if they were locked first.
    pub outputs: Vec<Vec<u8>>,
}
