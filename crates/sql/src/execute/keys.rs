//! Hot path, budget 60 instructions a key: reads of rows by primary key, with an answer for each key in its order.

use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::gateway::ReadOptions;
use junctor_gateway::{PartitionInputs, RowBound, TurnContext};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::key::IntegerKeys;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::{ColumnType, TableDefinition};
use junctor_model::value::ValueRef;
use junctor_signals::program::{ReadProgram, RowProtocol};
use junctor_signals::read_rows::OperationId;
use junctor_wire::KeyValues;
use junctor_wire::field::{Fields, Malformed};
use junctor_wire::value::read_value;

use super::bound::{Place, append_place};
use super::completion::fail;
use super::context::StatementContext;
use super::key::partition_of_key;
use super::read::{HEADERS_MAX, wrong_plan};
use super::state::{Again, Execution, Origin, Workspace};
use crate::engine::Engine;
use crate::plan::Plan;
use crate::result::{KeyRows, NO_PARTITION, Progress};
use crate::session::Session;

/// States of reads that are kept for the next ones.
const IDLE_MAX: usize = 64;
/// The most room that is made in advance; what is longer grows.
const ROOM_BYTES_MAX: usize = 256 * 1024;
/// Bytes of the longest answer.
const ANSWER_BYTES_MAX: usize = 15 << 20;
/// Bytes of the longest key.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// A prepared reader, as a read uses it.
#[derive(Debug)]
pub(crate) struct KeyRead {
    pub plan: Arc<Plan>,
    pub program: Arc<ReadProgram>,
}

/// A read of keys under way.
#[derive(Debug)]
pub(crate) struct KeyReadState {
    pub plan: Arc<Plan>,
    pub operation: OperationId,
    pub origin: Origin,
    rows: KeyRows,
    bytes: usize,
}

/// Starts a read.
pub(crate) fn start_key_read(
    context: &mut StatementContext<'_, '_>,
    read: KeyRead,
    keys: KeyValues<'_>,
    again: Again<'_>,
) -> Progress {
    context.session.enter_statement();
    let mut rows = context.engine.work.key_rows.pop().unwrap_or_default();
    let started = try_start(context, read, keys, &mut rows, again);
    match started {
        Ok(Some((plan, operation, origin))) => {
            let state = KeyReadState { plan, operation, origin, rows, bytes: 0 };
            context.session.execution = Execution::Keys(state);
            Progress::Waiting
        }
        Ok(None) => say(context, rows),
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            retire(context.engine, rows, context.turn);
            fail(context, &error)
        }
    }
}

#[allow(clippy::too_many_arguments)] // The parts of one request; a record of them would be taken apart at once.
fn try_start(
    context: &mut StatementContext<'_, '_>,
    read: KeyRead,
    keys: KeyValues<'_>,
    rows: &mut KeyRows,
    again: Again<'_>,
) -> Result<Option<(Arc<Plan>, OperationId, Origin)>> {
    let KeyRead { plan, program } = read;
    let Plan::Select(select) = &*plan else { return Err(wrong_plan()) };
    push_keys(&mut context.engine.work, &select.table.definition, keys, &mut rows.order, context.turn)?;
    let Some(input) = context.engine.work.inputs.last() else { return Ok(None) };
    let inputs = context.engine.work.inputs.len();
    // Of many partitions each makes room for its own rows.
    let together = if inputs > HEADERS_MAX { 1 } else { inputs };
    let room = context.engine.gateway.reply_room(&program, input) * together + rows.order.len() * 4;
    let mut output = context.turn.buffers.take(room.min(ROOM_BYTES_MAX));
    context.sink.begin_key_rows(&mut output);
    rows.head_bytes = output.len();
    context.engine.work.inputs.set_output(output);
    let origin = again.keep(context.session.transaction.explicit, &[], context.turn);
    let options = ReadOptions {
        protocol: RowProtocol::Binary,
        bound: RowBound::Partition(u32::MAX),
        warnings_max: context.session.variables.warnings_max,
    };
    let transaction = &mut context.session.transaction;
    let sent = context.engine.gateway.read(
        context.session.connection,
        transaction,
        &program,
        options,
        &mut context.engine.work.inputs,
        context.turn,
    );
    match sent {
        Ok(operation) => Ok(Some((plan, operation, origin))),
        Err(error) => {
            origin.release(context.turn);
            Err(error)
        }
    }
}

/// Sorts the keys into inputs, and notes for each the partition that it is sent to.
fn push_keys(
    work: &mut Workspace,
    definition: &TableDefinition,
    keys: KeyValues<'_>,
    order: &mut Vec<u16>,
    turn: &mut TurnContext<'_>,
) -> Result<()> {
    let Workspace { inputs, .. } = work;
    inputs.begin(definition.partition_count, turn.buffers);
    let primary = &definition.primary().columns;
    let by_hash = definition.partition_columns == *primary;
    if let (KeyValues::Integers(integers), [column], true) = (keys, primary.as_slice(), by_hash) {
        let column = &definition.columns[usize::from(column.0)];
        if let (ColumnType::Integer { bytes, unsigned }, false) = (column.column_type, column.nullable) {
            let made = IntegerKeys::new(bytes, unsigned);
            match bytes {
                8 => push_integers::<8>(made, integers, definition.partition_count, inputs, order, turn),
                4 => push_integers::<4>(made, integers, definition.partition_count, inputs, order, turn),
                3 => push_integers::<3>(made, integers, definition.partition_count, inputs, order, turn),
                2 => push_integers::<2>(made, integers, definition.partition_count, inputs, order, turn),
                _ => push_integers::<1>(made, integers, definition.partition_count, inputs, order, turn),
            }
            return Ok(());
        }
    }
    push_values(work, definition, keys, order, turn)
}

#[inline(never)]
fn push_integers<const BYTES: usize>(
    made: IntegerKeys,
    integers: &[[u8; 8]],
    partition_count: u16,
    inputs: &mut PartitionInputs,
    order: &mut Vec<u16>,
    turn: &mut TurnContext<'_>,
) {
    order.extend(integers.iter().map(|integer| {
        let Some(key) = made.key::<BYTES>(i64::from_le_bytes(*integer)) else { return NO_PARTITION };
        let hash = key_hash(&key);
        let partition = partition_of(hash, partition_count);
        inputs.push_hashed_key_at(partition, hash, &key, turn.buffers);
        partition
    }));
}

/// As `push_keys`, for keys of every kind.
fn push_values(
    work: &mut Workspace,
    definition: &TableDefinition,
    keys: KeyValues<'_>,
    order: &mut Vec<u16>,
    turn: &mut TurnContext<'_>,
) -> Result<()> {
    let Workspace { inputs, key, partition_key, .. } = work;
    let primary = &definition.primary().columns;
    let (mut fields, mut integers) = match keys {
        KeyValues::Values { values, .. } => (Fields::new(values), [].iter()),
        KeyValues::Integers(integers) if primary.len() == 1 => (Fields::new(&[]), integers.iter()),
        KeyValues::Integers(_) => return Err(malformed(Malformed { field: "keys" })),
    };
    for _ in 0..keys.len() {
        key.clear();
        let mut is_possible = true;
        for column in primary {
            let value = match integers.next() {
                Some(integer) => ValueRef::Int(i64::from_le_bytes(*integer)),
                None => read_value(&mut fields).map_err(malformed)?,
            };
            let column = &definition.columns[usize::from(column.0)];
            let is_string = column.column_type.collation().is_some();
            if is_string && !matches!(value, ValueRef::Bytes(_) | ValueRef::Null) {
                return Err(number_for_string(&column.name));
            }
            is_possible = is_possible && append_place(column, value, key) == Place::At;
        }
        if !is_possible || key.len() > KEY_BYTES_MAX {
            order.push(NO_PARTITION);
            continue;
        }
        let partition = partition_of_key(definition, primary, key, partition_key);
        inputs.push_hashed_key_at(partition, key_hash(key), key, turn.buffers);
        order.push(partition);
    }
    fields.end().map_err(malformed)
}

#[cold]
fn number_for_string(column: &str) -> Box<Error> {
    let message = format!("Incorrect value for key column '{column}': it is a string, and the value is a number");
    Error::new(ErrorCode::WrongValueForType, message)
}

#[cold]
fn malformed(error: Malformed) -> Box<Error> {
    Error::new(ErrorCode::MalformedPacket, error.to_string())
}

/// Rows of one partition came.
pub(crate) fn on_key_rows(
    context: &mut StatementContext<'_, '_>,
    (partition, is_prefixed, output): (u16, bool, Vec<u8>),
    next: Next,
) -> Progress {
    let Execution::Keys(state) = &mut context.session.execution else {
        context.turn.buffers.give(output);
        return Progress::Waiting;
    };
    state.bytes += output.len();
    state.rows.parts.push((partition, is_prefixed, output));
    if state.bytes > ANSWER_BYTES_MAX {
        if next != Next::Done {
            context.engine.gateway.end_read(state.operation, context.turn);
        }
        let message = "The rows of these keys are longer than one answer may be: read fewer at once";
        return give_up(context, &Error::new(ErrorCode::PacketTooLarge, message));
    }
    match next {
        Next::Coming => Progress::Waiting,
        Next::Ask => {
            context.engine.gateway.continue_read(state.operation, context.turn);
            Progress::Waiting
        }
        Next::Done => {
            let Execution::Keys(state) = std::mem::take(&mut context.session.execution) else {
                return Progress::Waiting;
            };
            state.origin.release(context.turn);
            say(context, state.rows)
        }
    }
}

/// Says the rows.
fn say(context: &mut StatementContext<'_, '_>, mut rows: KeyRows) -> Progress {
    context.session.execution = Execution::Idle;
    context.session.row_count = -1;
    let said = if context.session.interrupted {
        Ok(())
    } else {
        context.sink.key_rows(&mut rows, &context.session.completion())
    };
    retire(context.engine, rows, context.turn);
    match said {
        Ok(()) => Progress::Done,
        Err(error) => fail(context, &error),
    }
}

/// A read failed: says so, unless the table was changed meanwhile and it can be done again.
pub(crate) fn on_key_read_failed(context: &mut StatementContext<'_, '_>, error: &Error) -> Progress {
    let Execution::Keys(state) = &mut context.session.execution else { return Progress::Waiting };
    if error.code == ErrorCode::TableDefinitionChanged && !context.session.interrupted {
        let origin = std::mem::take(&mut state.origin);
        if !matches!(origin, Origin::None) {
            abandon_key_read(context.engine, context.session, context.turn);
            return context.execute_again(origin);
        }
    }
    give_up(context, error)
}

fn give_up(context: &mut StatementContext<'_, '_>, error: &Error) -> Progress {
    abandon_key_read(context.engine, context.session, context.turn);
    fail(context, error)
}

/// Forgets a read whose rows nobody wants any more; the data plane has been told.
pub(crate) fn abandon_key_read(engine: &mut Engine, session: &mut Session, turn: &mut TurnContext<'_>) {
    if let Execution::Keys(state) = std::mem::take(&mut session.execution) {
        state.origin.release(turn);
        retire(engine, state.rows, turn);
    }
}

fn retire(engine: &mut Engine, mut rows: KeyRows, turn: &mut TurnContext<'_>) {
    rows.order.clear();
    rows.parts.drain(..).for_each(|(_, _, bytes)| turn.buffers.give(bytes));
    if engine.work.key_rows.len() < IDLE_MAX {
        engine.work.key_rows.push(rows);
    }
}
