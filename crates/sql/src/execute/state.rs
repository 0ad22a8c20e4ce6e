//! What a session waits for.

use std::sync::Arc;

use junctor_expression::aggregate::Accumulator;
use junctor_expression::{ParametersBuilder, Scratch};
use junctor_gateway::{PartitionInputs, TurnContext, threads::Time};
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::compound::CompoundState;
use super::insert::InsertState;
use super::interrupt::KillState;
use super::key::KeyMaker;
use super::keys::KeyReadState;
use super::packets::Window;
use super::schema::SchemaState;
use super::sorter::{IdleSorters, Sorter};
use super::transaction::AfterEnding;
use crate::bind::ParameterKind;
use crate::engine::TableUse;
use crate::engine::UserLockState;
use crate::plan::Plan;
use crate::result::KeyRows;

/// The state record of a session.
#[derive(Debug, Default)]
pub(crate) enum Execution {
    /// Nothing is under way.
    #[default]
    Idle,
    /// Rows of a read come.
    Read(ReadState),
    /// Rows come that were asked for by their keys.
    Keys(KeyReadState),
    /// A write or locking read was sent.
    Write(WriteState),
    /// AUTO_INCREMENT numbers are fetched for an INSERT.
    Numbers(Box<InsertState>),
    /// COMMIT or ROLLBACK was sent.
    Ending(OperationId, AfterEnding),
    /// ROLLBACK TO SAVEPOINT was sent.
    Undoing(OperationId),
    /// KILL was sent.
    Killing(KillState),
    /// SET GLOBAL was sent; with `commits` the transaction ends then.
    SettingGlobals { operation: OperationId, commits: bool },
    /// A write of several steps is under way.
    Compound(Box<CompoundState>),
    /// Main was asked for a user-level lock.
    UserLock(Box<UserLockState>),
    /// The schema changes.
    Schema(Box<SchemaState>),
    /// Rows of a status table come.
    Status(Box<StatusState>),
    /// A schema change keeps the statement from a table; it has not begun.
    Tables(Box<TableWait>),
    /// Everything is here, sorted, and waits for room in the output.
    Sorted(SortedState),
}

impl Execution {
    /// What SHOW PROCESSLIST calls it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Execution::Idle => "",
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

    /// Whether an answer to this operation is awaited. What is awaited while an index is filled changes with every step.
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
            Execution::Schema(state) => state.operation == operation,
            Execution::Status(state) => state.operation == operation,
            Execution::Idle | Execution::Tables(_) | Execution::Sorted(_) => false,
        }
    }

    /// The tables of the statement that runs.
    pub(crate) fn table_uses(&self) -> impl Iterator<Item = TableUse> + '_ {
        let plan = match self {
            Execution::Read(state) => Some(&state.plan),
            Execution::Keys(state) => Some(&state.plan),
            Execution::Write(state) => Some(&state.plan),
            Execution::Numbers(state) => Some(&state.plan),
            Execution::Compound(state) => Some(&state.plan),
            _ => None,
        };
        let altered = match self {
            Execution::Schema(state) => state.used_table(),
            _ => None,
        };
        let of_plan = plan.into_iter().flat_map(|plan| plan.table_uses());
        of_plan.chain(altered)
    }
}

/// A statement that waits for tables.
#[derive(Debug)]
pub(crate) struct TableWait {
    pub origin: Origin,
    /// Whether the statement may be done again when its table changes once more.
    pub repeats: bool,
    pub since: Time,
}

/// A read under way.
#[derive(Debug)]
pub(crate) struct ReadState {
    pub plan: Arc<Plan>,
    pub operation: OperationId,
    pub protocol: RowProtocol,
    /// Whether entries of a unique index are read first.
    pub is_lookup: bool,
    /// Whether the columns have been said.
    pub header_said: bool,
    /// Bytes of the columns that stand before the rows of the reply that has them.
    pub header_bytes: usize,
    /// Every partition has answered and some have more; the output has no room.
    pub awaits_room: bool,
    /// Rows that are wanted of each partition at most; `u32::MAX` for all.
    pub rows_max: u32,
    pub window: Window,
    /// Rows said, or for FOUND_ROWS without limit, found.
    pub rows: u64,
    pub gather: GatherState,
    /// The parameters, where a later step needs them; row references found by a lookup.
    pub parameters: Vec<u8>,
    pub references: Vec<u8>,
    pub origin: Origin,
}

/// What the session makes of the rows.
#[derive(Debug)]
pub(crate) enum GatherState {
    Stream,
    Sort(Box<Sorter>),
    Aggregate(Vec<Accumulator>),
}

/// A write under way.
#[derive(Debug)]
pub(crate) struct WriteState {
    pub plan: Arc<Plan>,
    pub operation: OperationId,
    pub protocol: RowProtocol,
    pub window: Window,
    /// The first AUTO_INCREMENT number that the statement made, or 0.
    pub first_number: u64,
    /// The number that the answer names: the first one made, or else the last one that a row gave itself.
    pub answer_number: u64,
    /// Rows of an INSERT.
    pub rows: u64,
    /// The parameters, where the answer needs them.
    pub parameters: Vec<u8>,
    pub origin: Origin,
}

/// A query of a status table under way.
#[derive(Debug)]
pub(crate) struct StatusState {
    pub plan: Arc<Plan>,
    pub operation: OperationId,
    pub protocol: RowProtocol,
    pub parameters: Vec<u8>,
}

/// A sorted result that is being said.
#[derive(Debug)]
pub(crate) struct SortedState {
    pub sorter: Box<Sorter>,
    /// What is left of OFFSET and LIMIT, and what was asked.
    pub window: Window,
    pub asked: Window,
    /// Number of rows without a LIMIT, as SQL_CALC_FOUND_ROWS asks, where it is known before the rows are merged.
    pub counted: Option<u64>,
    /// Whether every row of the result is counted, also behind the window.
    pub counts_all: bool,
    /// The client has not taken the last part.
    pub awaits_room: bool,
    /// The session has sent itself a `ContinueStatement`.
    pub step_requested: bool,
}

/// What the execution was asked with, so that it can be planned again when the table's definition has changed.
#[derive(Debug, Default)]
pub(crate) enum Origin {
    /// It cannot be done again.
    #[default]
    None,
    /// A text statement.
    Text(Vec<u8>),
    /// A prepared statement and its parameters.
    Prepared(u32, Vec<u8>),
    /// A reader of keys, and the keys.
    Keys(u32, Vec<u8>),
}

/// How a plan is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub protocol: RowProtocol,
    /// The text of which the engine's shape was scanned.
    pub shaped_text: Option<&'a [u8]>,
    pub again: Again<'a>,
}

/// What doing it again needs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Again<'a> {
    /// It is not done again.
    No,
    /// This text.
    Text(&'a [u8]),
    /// This prepared statement, with the parameters at hand.
    Prepared(u32),
    /// This text, which is not done again once it has begun.
    TextOnce(&'a [u8]),
    /// This prepared statement, likewise.
    PreparedOnce(u32),
    /// These keys by this reader.
    Keys(u32, &'a [u8]),
    /// These keys by this reader, likewise.
    KeysOnce(u32, &'a [u8]),
}

/// Bytes of the longest statement that is kept to be done again.
const AGAIN_BYTES_MAX: usize = 16 * 1024;

impl Again<'_> {
    /// A copy that lasts, outside transactions, where doing it again is right.
    pub(crate) fn keep(self, explicit: bool, parameters: &[u8], turn: &mut TurnContext<'_>) -> Origin {
        let mut copy = |bytes: &[u8]| {
            let mut buffer = turn.buffers.take(bytes.len());
            buffer.extend_from_slice(bytes);
            buffer
        };
        match self {
            Again::Text(text) if !explicit && text.len() <= AGAIN_BYTES_MAX => Origin::Text(copy(text)),
            Again::Prepared(statement) if !explicit && parameters.len() <= AGAIN_BYTES_MAX => {
                Origin::Prepared(statement, copy(parameters))
            }
            Again::Keys(reader, keys) if !explicit && keys.len() <= AGAIN_BYTES_MAX => Origin::Keys(reader, copy(keys)),
            _ => Origin::None,
        }
    }

    /// A copy for a statement that has not begun, however long it is, and whether it may be done again after that.
    pub(crate) fn copy(self, parameters: &[u8], turn: &mut TurnContext<'_>) -> Option<(Origin, bool)> {
        let mut copy = |bytes: &[u8]| {
            let mut buffer = turn.buffers.take(bytes.len());
            buffer.extend_from_slice(bytes);
            buffer
        };
        Some(match self {
            Again::No => return None,
            Again::Text(text) => (Origin::Text(copy(text)), true),
            Again::TextOnce(text) => (Origin::Text(copy(text)), false),
            Again::Prepared(statement) => (Origin::Prepared(statement, copy(parameters)), true),
            Again::PreparedOnce(statement) => (Origin::Prepared(statement, copy(parameters)), false),
            Again::Keys(reader, keys) => (Origin::Keys(reader, copy(keys)), true),
            Again::KeysOnce(reader, keys) => (Origin::Keys(reader, copy(keys)), false),
        })
    }
}

impl Origin {
    /// Gives the memory back.
    pub(crate) fn release(self, turn: &mut TurnContext<'_>) {
        match self {
            Origin::None => {}
            Origin::Text(buffer) | Origin::Prepared(_, buffer) | Origin::Keys(_, buffer) => turn.buffers.give(buffer),
        }
    }
}

/// Memory that statements of all sessions use, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub inputs: PartitionInputs,
    pub builder: ParametersBuilder,
    /// The parameters of the execution at hand.
    pub parameters: Vec<u8>,
    pub kinds: Vec<ParameterKind>,
    /// The key of a statement whose shape keeps literals.
    pub variant: Vec<u8>,
    pub decoded: Vec<u8>,
    pub scratch: Scratch,
    /// Sorters that no statement uses.
    pub sorters: IdleSorters,
    pub keys: KeyMaker,
    /// Rows by keys that no read uses.
    pub key_rows: Vec<KeyRows>,
    pub row_parameters: Vec<u8>,
    pub strings: Vec<u8>,
    pub string_ends: Vec<usize>,
    pub image: Vec<u8>,
    pub key: Vec<u8>,
    pub partition_key: Vec<u8>,
    pub info: String,
}
