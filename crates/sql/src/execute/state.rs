//! The states of a session's execution: what its statement waits for, and what it needs when the reply
//! arrives.

use std::sync::Arc;

use junctor_expression::aggregate::Accumulator;
use junctor_expression::{ParametersBuilder, Scratch};
use junctor_gateway::PartitionInputs;
use junctor_gateway::threads::Time;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::compound::CompoundState;
use super::insert::{InsertState, Numbered};
use super::interrupt::KillState;
use super::key::KeyMaker;
use super::key_read::KeyReadState;
use super::packets::Window;
use super::retry::{RetryInput, RetryState, StatementInput};
use super::schema::SchemaState;
use super::sorter::{IdleSorters, Sorter};
use super::transaction::AfterEnding;
use super::user_lock::UserLockState;
use crate::bind::ParameterKind;
use crate::plan::{ChangePlan, ComputePlan, InsertPlan, Plan, SelectPlan, TableUse};
use crate::result::KeyRows;

/// The execution state of a session. Each variant that awaits a reply names the operation that it awaits.
#[derive(Debug, Default)]
pub(crate) enum Execution {
    /// No statement runs.
    #[default]
    Idle,
    /// Awaits rows of a query.
    Read(ReadState),
    /// Awaits rows that were requested by primary key.
    Keys(KeyReadState),
    /// Awaits the outcome of a write or locking read.
    Write(WriteState),
    /// Awaits AUTO_INCREMENT numbers for an INSERT.
    Numbers(Box<InsertState>),
    /// Awaits the end of COMMIT or ROLLBACK.
    Ending(OperationId, AfterEnding),
    /// Awaits the end of ROLLBACK TO SAVEPOINT.
    Undoing(OperationId),
    /// Awaits the answers of all sql blocks to KILL.
    Killing(KillState),
    /// Awaits that every sql block has applied SET GLOBAL; with `commits` the transaction ends then.
    SettingGlobals { operation: OperationId, commits: bool },
    /// Awaits a step of a write that takes several.
    Compound(Box<CompoundState>),
    /// Awaits a user-level lock from main.
    UserLock(Box<UserLockState>),
    /// Awaits a step of a schema change.
    Schema(Box<SchemaState>),
    /// Awaits the rows of a status table.
    Status(Box<StatusState>),
    /// A schema change keeps the statement, which has not begun, from a table.
    Tables(Box<TableWait>),
    /// The sorted result is complete and waits for room in the output.
    Sorted(SortedState),
    /// The step asks that the statement start again. Never outlives the call that set it.
    Retry(Box<RetryState>),
}

impl Execution {
    /// The state as SHOW PROCESSLIST prints it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Execution::Idle | Execution::Retry(_) => "",
            Execution::Sorted(_) => "sending",
            Execution::Read(state) if state.awaits_room => "sending",
            Execution::Read(_)
            | Execution::Keys(_)
            | Execution::Write(_)
            | Execution::Numbers(_)
            | Execution::Status(_)
            | Execution::Compound(_) => "executing",
            Execution::Ending(..) => "ending the transaction",
            Execution::Undoing(_) => "undoing to a savepoint",
            Execution::Killing(_) => "killing",
            Execution::UserLock(_) => "User lock",
            Execution::SettingGlobals { .. } => "setting variables",
            Execution::Tables(_) => "Waiting for table metadata lock",
            Execution::Schema(state) => state.name(),
        }
    }

    /// Whether the state awaits a reply of this operation. Replies to others are stale: their statement was
    /// stopped.
    #[inline]
    pub(crate) fn awaits(&self, operation: OperationId) -> bool {
        match self {
            Execution::Read(state) => state.operation == operation,
            Execution::Keys(state) => state.operation == operation,
            Execution::Write(state) => state.operation == operation,
            Execution::Numbers(state) => state.operation == operation,
            Execution::Compound(state) => state.awaits(operation),
            Execution::Ending(awaited, _) | Execution::Undoing(awaited) => *awaited == operation,
            Execution::Killing(state) => state.operation == operation,
            Execution::SettingGlobals { operation: awaited, .. } => *awaited == operation,
            Execution::UserLock(state) => state.operation == operation,
            Execution::Schema(state) => state.awaits(operation),
            Execution::Status(state) => state.operation == operation,
            Execution::Idle | Execution::Tables(_) | Execution::Sorted(_) | Execution::Retry(_) => false,
        }
    }

    /// The tables that the running statement uses.
    pub(crate) fn table_uses(&self) -> Vec<TableUse> {
        let plan = match self {
            Execution::Read(state) => Plan::Select(Arc::clone(&state.plan)),
            Execution::Keys(state) => Plan::Select(Arc::clone(&state.plan)),
            Execution::Write(state) => state.form.plan(),
            Execution::Numbers(state) => Plan::Insert(Arc::clone(&state.plan)),
            Execution::Compound(state) => state.plan(),
            Execution::Schema(state) => return state.used_table().into_iter().collect(),
            _ => return Vec::new(),
        };
        plan.table_uses().collect()
    }
}

/// A statement that waits for tables.
#[derive(Debug)]
pub(crate) struct TableWait {
    /// What starts the statement once the tables are free.
    pub input: RetryInput,
    /// Whether it may be retried when the table definition changes once more.
    pub may_retry: bool,
    pub since: Time,
}

/// A query that awaits rows.
#[derive(Debug)]
pub(crate) struct ReadState {
    pub plan: Arc<SelectPlan>,
    pub operation: OperationId,
    pub protocol: RowProtocol,
    /// Whether the rows to come are entries of a unique index, which name the rows to read next.
    pub is_lookup: bool,
    pub header_sent: bool,
    /// Bytes of the encoded header in front of the rows of the reply whose output has it.
    pub header_bytes: usize,
    /// Every partition has replied, some have more rows, and the output has no room.
    pub awaits_room: bool,
    /// Maximum number of rows that each partition returns; `u32::MAX` for all.
    pub rows_max: u32,
    pub window: Window,
    /// Rows sent; for FOUND_ROWS without limit, rows found.
    pub rows: u64,
    pub gather: GatherState,
    /// The statement's parameters, where a later step needs them.
    pub parameters: Vec<u8>,
    /// References of rows that the lookup found, each as `[length u16] reference`.
    pub references: Vec<u8>,
    pub retry: RetryInput,
}

/// How the session combines the rows of the partitions.
#[derive(Debug)]
pub(crate) enum GatherState {
    Stream,
    Sort(Box<Sorter>),
    Aggregate(Vec<Accumulator>),
}

/// A statement that awaits the outcome of one write or locking read.
#[derive(Debug)]
pub(crate) struct WriteState {
    pub operation: OperationId,
    pub form: WriteForm,
    pub retry: RetryInput,
}

/// The statement that writes or locks.
#[derive(Debug)]
pub(crate) enum WriteForm {
    /// UPDATE or DELETE.
    Change(Arc<ChangePlan>),
    /// INSERT of rows whose outcome needs nothing but the numbers.
    Insert(Arc<InsertPlan>, Numbered),
    /// A locking query.
    LockRead(LockReadState),
}

impl WriteForm {
    pub(crate) fn plan(&self) -> Plan {
        match self {
            WriteForm::Change(plan) => Plan::Change(Arc::clone(plan)),
            WriteForm::Insert(plan, _) => Plan::Insert(Arc::clone(plan)),
            WriteForm::LockRead(state) => Plan::Select(Arc::clone(&state.plan)),
        }
    }
}

/// A locking query, whose rows arrive with the outcome.
#[derive(Debug)]
pub(crate) struct LockReadState {
    pub plan: Arc<SelectPlan>,
    pub protocol: RowProtocol,
    pub window: Window,
    /// The statement's parameters, where the result row needs them.
    pub parameters: Vec<u8>,
}

/// A query of a status table.
#[derive(Debug)]
pub(crate) struct StatusState {
    pub plan: Arc<ComputePlan>,
    pub operation: OperationId,
    pub protocol: RowProtocol,
    pub parameters: Vec<u8>,
}

/// A sorted result that is being sent.
#[derive(Debug)]
pub(crate) struct SortedState {
    pub sorter: Box<Sorter>,
    /// OFFSET and LIMIT, counted down; `asked` has them as the statement gave them.
    pub window: Window,
    pub asked: Window,
    /// Number of rows without a LIMIT, as SQL_CALC_FOUND_ROWS asks, where it is known before the rows are
    /// merged.
    pub counted: Option<u64>,
    /// Whether every row of the result is counted, also behind the window.
    pub counts_all: bool,
    /// The client has not taken the last part.
    pub awaits_room: bool,
    /// The session has sent itself a `ContinueStatement`.
    pub step_requested: bool,
}

/// How a plan is executed. The parameters are in the workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanInput<'a> {
    /// The wire form of the rows.
    pub protocol: RowProtocol,
    /// The text that the engine's shape was scanned from; `None` when the statement did not come as such a
    /// text.
    pub shaped_text: Option<&'a [u8]>,
    pub input: StatementInput<'a>,
}

/// Memory that the statements of all sessions share. Whatever must outlive a step is copied into its state.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub inputs: PartitionInputs,
    pub builder: ParametersBuilder,
    /// The parameters of the statement that starts.
    pub parameters: Vec<u8>,
    pub kinds: Vec<ParameterKind>,
    /// The values that only the session knows, which follow the literals of a shape as parameters.
    pub session_values: Vec<junctor_model::value::Value>,
    /// The key of a statement whose shape keeps literals.
    pub variant: Vec<u8>,
    pub decoded: Vec<u8>,
    pub scratch: Scratch,
    pub sorters: IdleSorters,
    pub keys: KeyMaker,
    /// Idle row collections of reads by key.
    pub key_rows: Vec<KeyRows>,
    pub row_parameters: Vec<u8>,
    pub strings: Vec<u8>,
    pub string_ends: Vec<usize>,
    pub image: Vec<u8>,
    pub key: Vec<u8>,
    pub partition_key: Vec<u8>,
    /// The text of the OK packet, when the statement has one.
    pub info: String,
}
