//! The execution states of a session: the reply that a statement waits for, and the data that it needs when
//! the reply arrives.

use std::sync::Arc;

use junctor_expression::aggregate::Accumulator;
use junctor_expression::{ParametersBuilder, Scratch};
use junctor_gateway::PartitionInputs;
use junctor_gateway::threads::Time;
use junctor_model::collation::CollationId;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::benchmark::BenchmarkState;
use super::compound::{CompoundState, DiscardState};
use super::compute::ComputeState;
use super::insert::{InsertState, InsertedNumbers};
use super::interrupt::KillState;
use super::into::IntoState;
use super::key::KeyBuilder;
use super::key_read::KeyReadState;
use super::lending::LentQuery;
use super::load_file::LoadFileState;
use super::packets::Window;
use super::received::ReceivedState;
use super::retry::{RetryInput, RetryState, StatementInput};
use super::schema::SchemaState;
use super::sorter::{IdleSorters, Sorter};
use super::table_statistics::TableStatisticsState;
use super::transaction::AfterTransactionEnd;
use super::tree::TreeState;
use super::unique_key::UniqueKeyState;
use super::user_lock::{UserLockState, state_name};
use crate::bind::ParameterKind;
use crate::plan::{ChangePlan, ComputePlan, InsertPlan, Plan, SelectPlan, TableUse};
use crate::result::KeyRows;

/// The execution state of a session. Each variant that waits for a reply contains the operation of that
/// reply.
#[derive(Debug, Default)]
pub(crate) enum Execution {
    /// No statement runs.
    #[default]
    Idle,
    /// Waits for rows of a query.
    Read(ReadState),
    /// Waits for rows that were requested by primary key.
    Keys(KeyReadState),
    /// Waits for the outcome of a write or locking read.
    Write(WriteState),
    /// Waits for a step of an UPDATE or DELETE by a unique key.
    UniqueKey(UniqueKeyState),
    /// Waits for AUTO_INCREMENT values for an INSERT.
    Numbers(Box<InsertState>),
    /// Waits for the end of COMMIT or ROLLBACK.
    Ending(OperationId, AfterTransactionEnd),
    /// Waits for the end of ROLLBACK TO SAVEPOINT; ROLLBACK itself is `Ending`.
    Undoing(OperationId),
    /// Waits until all sql blocks have replied to KILL.
    Killing(KillState),
    /// Waits until every sql block has applied SET GLOBAL. With `commits` the transaction is then committed.
    SettingGlobals { operation: OperationId, commits: bool },
    /// Waits for a step of a compound statement.
    Compound(Box<CompoundState>),
    /// Waits for rows of SELECT ... INTO.
    Into(Box<IntoState>),
    /// Waits for a step of a tree of operators.
    Tree(Box<TreeState>),
    /// Discards the rest of the file that the client sends, before the error of its LOAD DATA is sent.
    Discarding(DiscardState),
    /// Waits for a lock call's result from the main block.
    UserLock(Box<UserLockState>),
    /// Evaluates the expression of BENCHMARK in steps.
    Benchmark(Box<BenchmarkState>),
    /// Waits for a file of LOAD_FILE.
    LoadFile(Box<LoadFileState>),
    /// Waits until the main block has taken or released the backup lock.
    BackupLock(OperationId),
    /// Waits until a node has begun to stop, has stopped a session, or has taken a step of a backup.
    ControllingNode(OperationId),
    /// Waits until every sql block has forgotten its statement digests.
    ForgettingDigests(OperationId),
    /// Waits for a step of a schema change.
    Schema(Box<SchemaState>),
    /// Waits for the rows of a status table.
    Status(Box<StatusState>),
    /// Evaluates and sends in steps a query over rows of the session.
    Computing(Box<ComputeState>),
    /// Waits for the statistics of tables, to start again with them.
    TableStatistics(Box<TableStatisticsState>),
    /// Waits before its first step for the sql block that will run it.
    Lent(Box<LentQuery>),
    /// Waits before its first step for a metadata lock: a schema change blocks one of its tables.
    Tables(Box<TableWait>),
    /// Processes in steps the rows of a locking read or of RETURNING, all of which have arrived.
    Received(Box<ReceivedState>),
    /// The sorted result is complete and is sent in parts.
    Sorted(SortedState),
    /// The step requests that the statement start again. This state never outlives the call that set it.
    Retry(Box<RetryState>),
}

impl Execution {
    /// The text of the state in SHOW PROCESSLIST.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Execution::Idle | Execution::Retry(_) => "",
            Execution::Received(_) | Execution::Sorted(_) => "sending",
            Execution::Read(state) if state.awaits_room => "sending",
            Execution::Read(_)
            | Execution::Keys(_)
            | Execution::Write(_)
            | Execution::UniqueKey(_)
            | Execution::Numbers(_)
            | Execution::Status(_)
            | Execution::Computing(_)
            | Execution::TableStatistics(_)
            | Execution::Discarding(_)
            | Execution::Into(_)
            | Execution::Benchmark(_)
            | Execution::LoadFile(_)
            | Execution::Lent(_) => "executing",
            Execution::Tree(state) => state.call_name().unwrap_or("executing"),
            Execution::Compound(state) => state.call_name().unwrap_or("executing"),
            Execution::Ending(..) => "ending the transaction",
            Execution::Undoing(_) => "undoing to a savepoint",
            Execution::Killing(_) => "killing",
            Execution::UserLock(state) => state_name(state.is_sleep),
            Execution::BackupLock(_) => "Waiting for backup lock",
            Execution::ControllingNode(_) => "asking a node",
            Execution::ForgettingDigests(_) => "truncating",
            Execution::SettingGlobals { .. } => "setting variables",
            Execution::Tables(_) => "Waiting for table metadata lock",
            Execution::Schema(state) => state.name(),
        }
    }

    /// Whether the state waits for a reply of this operation. All other replies are stale: their statement
    /// was stopped.
    #[inline]
    pub(crate) fn awaits(&self, operation: OperationId) -> bool {
        match self {
            Execution::Read(state) => state.operation == operation,
            Execution::Keys(state) => state.operation == operation,
            Execution::Write(state) => state.operation == operation,
            Execution::UniqueKey(state) => state.operation == operation,
            Execution::Numbers(state) => state.operation == operation,
            Execution::Compound(state) => state.awaits(operation),
            Execution::Into(state) => state.awaits(operation),
            Execution::Tree(state) => state.awaits(operation),
            Execution::Ending(awaited, _)
            | Execution::Undoing(awaited)
            | Execution::BackupLock(awaited)
            | Execution::ControllingNode(awaited)
            | Execution::ForgettingDigests(awaited) => *awaited == operation,
            Execution::Killing(state) => state.operation == operation,
            Execution::SettingGlobals { operation: awaited, .. } => *awaited == operation,
            Execution::UserLock(state) => state.operation == operation,
            Execution::LoadFile(state) => state.operation == operation,
            Execution::Schema(state) => state.operation == operation,
            Execution::Status(state) => state.operation == operation,
            Execution::TableStatistics(state) => state.operation == operation,
            Execution::Idle
            | Execution::Lent(_)
            | Execution::Tables(_)
            | Execution::Benchmark(_)
            | Execution::Computing(_)
            | Execution::Received(_)
            | Execution::Sorted(_)
            | Execution::Discarding(_)
            | Execution::Retry(_) => false,
        }
    }

    /// Whether the statement could send more if the client had received its output.
    pub(crate) fn awaits_room(&self) -> bool {
        match self {
            Execution::Read(state) => state.awaits_room,
            Execution::Received(state) => state.awaits_room,
            Execution::Sorted(state) => state.awaits_room,
            Execution::Tree(state) => state.awaits_room,
            Execution::Computing(state) => state.awaits_room,
            _ => false,
        }
    }

    /// Whether the session has requested the next step of the statement; `None` if the statement does not run
    /// in steps of its own.
    pub(crate) fn step_requested(&mut self) -> Option<&mut bool> {
        match self {
            Execution::Received(state) => Some(&mut state.step_requested),
            Execution::Sorted(state) => Some(&mut state.step_requested),
            Execution::Into(state) => state.step_requested(),
            Execution::Tree(state) => Some(&mut state.step_requested),
            Execution::Benchmark(state) => Some(&mut state.step_requested),
            Execution::Computing(state) => Some(&mut state.step_requested),
            _ => None,
        }
    }

    /// The tables that the running statement uses.
    pub(crate) fn table_uses(&self) -> Vec<TableUse> {
        let plan = match self {
            Execution::Read(state) => Plan::Select(Arc::clone(&state.plan)),
            Execution::Keys(state) => Plan::Select(Arc::clone(&state.plan)),
            Execution::Write(state) => state.form.plan(),
            Execution::UniqueKey(state) => Plan::Change(Arc::clone(&state.plan)),
            Execution::Numbers(state) => Plan::Insert(Arc::clone(&state.plan)),
            Execution::Compound(state) => state.plan(),
            Execution::Into(state) => return state.table_uses(),
            Execution::Tree(state) => Plan::Tree(Arc::clone(&state.plan)),
            _ => return Vec::new(),
        };
        plan.table_uses().collect()
    }
}

/// A statement that waits until a schema change releases its tables.
#[derive(Debug)]
pub(crate) struct TableWait {
    /// The input from which the statement starts once the tables are free.
    pub input: RetryInput,
    /// Whether the statement may start again if the table definition changes once more.
    pub may_retry: bool,
    pub since: Time,
}

/// A query that waits for rows.
#[derive(Debug)]
pub(crate) struct ReadState {
    pub plan: Arc<SelectPlan>,
    pub operation: OperationId,
    pub protocol: RowProtocol,
    /// Whether this is the first of two reads: it returns entries of a unique index, which refer to the rows
    /// that the second read returns.
    pub is_lookup: bool,
    pub header_sent: bool,
    /// Length of the encoded header in front of the rows of one reply, in bytes.
    pub header_bytes: usize,
    /// Whether partitions that have replied have more rows, which are not requested because the output is
    /// full. The query is suspended once every partition has replied.
    pub awaits_room: bool,
    /// Maximum number of rows that each partition returns; `u32::MAX` for all.
    pub rows_max: u32,
    pub window: Window,
    /// Number of rows sent; with SQL_CALC_FOUND_ROWS, number of rows found, including those beyond LIMIT.
    pub rows: u64,
    pub final_step: FinalStepState,
    /// The statement's parameters if a later step needs them, otherwise empty.
    pub parameters: Vec<u8>,
    /// References of the rows that the lookup found, each as `[length u16] reference`.
    pub references: Vec<u8>,
    pub retry: RetryInput,
}

/// The state of combining the partitions' rows into the result.
#[derive(Debug)]
pub(crate) enum FinalStepState {
    Stream,
    Sort(Box<Sorter>),
    Aggregate(Vec<Accumulator>),
}

/// A statement that waits for the outcome of one write or locking read.
#[derive(Debug)]
pub(crate) struct WriteState {
    pub operation: OperationId,
    pub form: WriteForm,
    pub retry: RetryInput,
}

/// The kind of a statement that writes or locks in one step.
#[derive(Debug)]
pub(crate) enum WriteForm {
    /// UPDATE or DELETE.
    Change(Arc<ChangePlan>),
    /// An INSERT. Its answer needs only the values that were generated for it.
    Insert(Arc<InsertPlan>, InsertedNumbers),
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

/// A locking query. Its rows are part of the outcome.
#[derive(Debug)]
pub(crate) struct LockReadState {
    pub plan: Arc<SelectPlan>,
    pub protocol: RowProtocol,
    pub window: Window,
    /// The statement's parameters if the result row needs them, otherwise empty.
    pub parameters: Vec<u8>,
}

/// A query of a status table that waits for the rows.
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
    /// The remaining OFFSET and LIMIT. `asked` has their values in the statement.
    pub window: Window,
    pub asked: Window,
    /// Number of rows without LIMIT, for SQL_CALC_FOUND_ROWS, if it is known before the rows are merged.
    pub counted: Option<u64>,
    /// Whether every row of the result is counted, including those beyond the window.
    pub counts_all: bool,
    /// Whether the rows are those of RETURNING. The statement has written its rows, so KILL comes too late.
    pub has_written: bool,
    /// Whether the session waits until the client has received the last part.
    pub awaits_room: bool,
    /// Whether the session has sent itself a `ContinueStatement` signal.
    pub step_requested: bool,
}

/// The circumstances under which a plan is executed. The parameters are in the workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanInput<'a> {
    /// The encoding of the rows.
    pub protocol: RowProtocol,
    /// The statement's text with its literals, from which `Engine::shape` (the text without literals) was
    /// scanned. `None` if the statement has no shape or was not received as text.
    pub shaped_text: Option<&'a [u8]>,
    pub input: StatementInput<'a>,
}

/// Buffers that the statements of all sessions share. Data that a statement needs after the current step is
/// copied into the statement's state.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub inputs: PartitionInputs,
    pub builder: ParametersBuilder,
    /// The parameters of the statement that starts.
    pub parameters: Vec<u8>,
    pub kinds: Vec<ParameterKind>,
    /// The texts of EXECUTE ... USING whose collation is not that of the connection, by the numbers of their
    /// parameters; empty for other statements.
    pub parameter_collations: Vec<(u16, CollationId)>,
    /// The literals of the statement that is being planned, as tagged values.
    pub planning_values: Vec<u8>,
    /// The parameters of the prepared statement that is being planned for an execution, as tagged values.
    pub execution_values: Vec<u8>,
    /// The values that only the session knows, such as `NOW()`. They are parameters, numbered after the
    /// literals of the shape or the parameters of the prepared statement.
    pub session_values: Vec<junctor_model::value::Value>,
    /// The exact types of these values.
    pub session_kinds: Vec<ParameterKind>,
    /// The plan cache key of a statement whose shape keeps some literals (see `parse::lift`).
    pub variant: Vec<u8>,
    pub decoded: Vec<u8>,
    pub scratch: Scratch,
    pub sorters: IdleSorters,
    pub key_builder: KeyBuilder,
    /// Idle row buffers of key reads.
    pub key_rows: Vec<KeyRows>,
    pub row_parameters: Vec<u8>,
    pub strings: Vec<u8>,
    pub string_ends: Vec<usize>,
    pub image: Vec<u8>,
    /// Memory for the image of a row with computed columns.
    pub computed_image: Vec<u8>,
    pub key: Vec<u8>,
    pub partition_key: Vec<u8>,
    /// The text of the OK packet; empty if the statement has none.
    pub info: String,
}
