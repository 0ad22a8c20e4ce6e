//! Hot path: at most 60 instructions per key.
//!
//! Reads rows by primary key and returns one answer for each key, in the order of the keys.

use std::sync::Arc;

use junctor_gateway::event::Next;
use junctor_gateway::{RowBound, TurnContext, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::key::IntegerKeys;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::TableDefinition;
use junctor_model::scratch::Scratch;
use junctor_model::temporal::{DIGITS_MAX, Zone};
use junctor_model::value::ValueRef;
use junctor_signals::program::{ReadProgram, RowProtocol};
use junctor_signals::read_rows::OperationId;
use junctor_wire::KeyValues;
use junctor_wire::field::{FieldReader, Malformed};
use junctor_wire::value::read_value;

use super::bound::{KeyFit, append_key_floor};
use super::completion::fail;
use super::context::StatementContext;
use super::engine::Engine;
use super::key::{InputWriter, partition_of_key};
use super::read::HEADERS_MAX;
use super::retry::{RetryInput, RetryState, StatementInput};
use super::state::{Execution, Workspace};
use crate::plan::SelectPlan;
use crate::result::{KeyRows, NO_PARTITION, Progress};

/// Maximum number of idle row buffers kept for reuse.
const IDLE_MAX: usize = 64;
/// Maximum number of bytes that are reserved for rows in advance. A longer output is reallocated.
const ROOM_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of an answer in bytes. A longer one is error 1153.
const ANSWER_BYTES_MAX: usize = 15 << 20;
/// Maximum length of a key in bytes. A longer key matches no row.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// The plan of a key reader.
#[derive(Debug)]
pub(crate) struct KeyReadPlan {
    /// A query without a condition, which defines the table and the columns.
    pub plan: Arc<SelectPlan>,
    /// The same read, restricted to given primary keys.
    pub program: Arc<ReadProgram>,
}

/// A prepared key reader.
#[derive(Debug)]
pub(crate) struct KeyReader {
    /// The text of the query without a condition, from which the reader was planned.
    pub text: Box<str>,
    /// The database for names that contain none.
    pub database: Option<Box<str>>,
    pub plan: Arc<SelectPlan>,
    /// The same read, restricted to given primary keys.
    pub program: Arc<ReadProgram>,
    pub settings: u64,
    pub dictionary_version: u64,
}

/// A key read that waits for rows.
#[derive(Debug)]
pub(crate) struct KeyReadState {
    pub plan: Arc<SelectPlan>,
    pub operation: OperationId,
    pub retry: RetryInput,
    rows: KeyRows,
    /// Total bytes of the rows received.
    bytes: usize,
}

pub(crate) fn start_key_read(
    context: &mut StatementContext<'_, '_>,
    read: KeyReadPlan,
    keys: KeyValues<'_>,
    input: StatementInput<'_>,
) -> Progress {
    context.session.enter_statement();
    let mut rows = context.engine.work.key_rows.pop().unwrap_or_default();
    require!(
        rows.partition_of_key.is_empty() && rows.parts.is_empty(),
        "an idle row collection holds no rows of another session"
    );
    match send_key_read(context, &read, keys, &mut rows, input) {
        Ok(Some((operation, retry))) => {
            let state = KeyReadState { plan: read.plan, operation, retry, rows, bytes: 0 };
            context.session.execution = Execution::Keys(state);
            Progress::Waiting
        }
        Ok(None) => finish_key_read(context, rows),
        Err(error) => {
            context.engine.work.inputs.clear(context.turn.buffers);
            release(context.engine, rows, context.turn);
            fail(context, &error)
        }
    }
}

/// Sends the read. Returns `None` if no row can have any of the keys.
fn send_key_read(
    context: &mut StatementContext<'_, '_>,
    read: &KeyReadPlan,
    keys: KeyValues<'_>,
    rows: &mut KeyRows,
    input: StatementInput<'_>,
) -> Result<Option<(OperationId, RetryInput)>> {
    let KeyReadPlan { plan, program } = read;
    let now_us = context.session.variables.timestamp_us.unwrap_or(context.turn.wall_clock_us);
    let now = program.reads_parameters.then_some(now_us);
    let (work, definition) = (&mut context.engine.work, &plan.table.definition);
    work.scratch.set_value_rules(context.session.variables.value_rules());
    push_keys(work, (definition, now), keys, &mut rows.partition_of_key, context.turn)?;
    require!(rows.partition_of_key.len() == keys.len(), "each key has an answer");
    let Some(first) = context.engine.work.inputs.last() else { return Ok(None) };
    let input_count = context.engine.work.inputs.len();
    // With many partitions, each reply has space for its own rows only.
    let together = if input_count > HEADERS_MAX { 1 } else { input_count };
    let room = context.engine.gateway.reply_room(program, first) * together + rows.partition_of_key.len() * 4;
    let mut output = context.turn.buffers.take(room.min(ROOM_BYTES_MAX));
    context.sink.begin_key_rows(&mut output);
    rows.head_bytes = output.len();
    context.engine.work.inputs.set_output(output);
    let retry = input.keep(context.session.transaction.explicit, &[], context.turn);
    match context.send_read(program, RowProtocol::Binary, RowBound::Partition(u32::MAX)) {
        Ok(operation) => Ok(Some((operation, retry))),
        Err(error) => {
            retry.release(context.turn);
            Err(error)
        }
    }
}

/// Writes the keys into the inputs of their partitions, and adds the partition of each key to `order`. If the
/// rows expire, the time of the read is its parameter.
fn push_keys(
    work: &mut Workspace,
    (definition, now_us): (&TableDefinition, Option<u64>),
    keys: KeyValues<'_>,
    order: &mut Vec<u16>,
    turn: &mut TurnContext<'_>,
) -> Result<()> {
    let Workspace { inputs, key, partition_key, builder, parameters, scratch, .. } = work;
    let partition_count = definition.partition_count;
    inputs.begin(partition_count, turn.buffers);
    if let Some(now_us) = now_us {
        builder.clear();
        builder.push(ValueRef::Temporal(Zone::UTC.date_time_at(now_us, DIGITS_MAX)));
        parameters.clear();
        builder.append_to(parameters)?;
        let mut writer = InputWriter { inputs, turn, parameters };
        return push_values(&mut writer, definition, keys, (key, partition_key, scratch), order);
    }
    let mut writer = InputWriter { inputs, turn, parameters: &[] };
    let primary = &definition.primary().columns;
    let by_hash = definition.partition_columns == *primary;
    if let (KeyValues::Integers(integers), [column], true) = (keys, primary.as_slice(), by_hash) {
        let column = &definition.columns[usize::from(column.0)];
        if let (Some((bytes, unsigned)), false) = (column.column_type.as_integer(), column.nullable) {
            let encoding = IntegerKeys::new(bytes, unsigned);
            match bytes {
                8 => push_integers::<8>(&mut writer, encoding, integers, partition_count, order),
                4 => push_integers::<4>(&mut writer, encoding, integers, partition_count, order),
                3 => push_integers::<3>(&mut writer, encoding, integers, partition_count, order),
                2 => push_integers::<2>(&mut writer, encoding, integers, partition_count, order),
                _ => push_integers::<1>(&mut writer, encoding, integers, partition_count, order),
            }
            return Ok(());
        }
    }
    push_values(&mut writer, definition, keys, (key, partition_key, scratch), order)
}

#[inline(never)]
fn push_integers<const BYTES: usize>(
    writer: &mut InputWriter<'_, '_>,
    encoding: IntegerKeys,
    integers: &[[u8; 8]],
    partition_count: u16,
    order: &mut Vec<u16>,
) {
    order.extend(integers.iter().map(|integer| {
        let Some(key) = encoding.key::<BYTES>(i64::from_le_bytes(*integer)) else { return NO_PARTITION };
        let hash = key_hash(&key);
        let partition = partition_of(hash, partition_count);
        writer.inputs.push_hashed_key_at(partition, hash, &key, writer.turn.buffers);
        partition
    }));
}

/// Does the work of [`push_integers`] for keys of all types.
fn push_values(
    writer: &mut InputWriter<'_, '_>,
    definition: &TableDefinition,
    keys: KeyValues<'_>,
    (key, partition_key, scratch): (&mut Vec<u8>, &mut Vec<u8>, &Scratch),
    order: &mut Vec<u16>,
) -> Result<()> {
    let primary = &definition.primary().columns;
    let (mut fields, mut integers) = match keys {
        KeyValues::Values { values, .. } => (FieldReader::new(values), [].iter()),
        KeyValues::Integers(integers) if primary.len() == 1 => (FieldReader::new(&[]), integers.iter()),
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
            is_possible = is_possible && append_key_floor(column, value, scratch, key) == KeyFit::Exact;
        }
        if !is_possible || key.len() > KEY_BYTES_MAX {
            order.push(NO_PARTITION);
            continue;
        }
        let partition = partition_of_key(definition, primary, key, partition_key);
        match writer.parameters.is_empty() {
            true => writer.inputs.push_hashed_key_at(partition, key_hash(key), key, writer.turn.buffers),
            false => writer.inputs.push_key_at(partition, key, writer.parameters, writer.turn.buffers),
        }
        order.push(partition);
    }
    fields.expect_end().map_err(malformed)
}

#[cold]
fn number_for_string(column: &str) -> Box<Error> {
    let message =
        format!("Incorrect value for key column '{column}': the column is a string and the value is a number");
    Error::new(ErrorCode::WrongValueForType, message)
}

#[cold]
fn malformed(error: Malformed) -> Box<Error> {
    Error::new(ErrorCode::MalformedPacket, error.to_string())
}

/// Continues a key read with the reply of one partition: its number, whether the bytes of `begin_key_rows`
/// precede the rows, and the output.
pub(crate) fn resume_key_read(
    context: &mut StatementContext<'_, '_>,
    mut state: KeyReadState,
    (partition, is_prefixed, output): (u16, bool, Vec<u8>),
    next: Next,
) -> Progress {
    state.bytes += output.len();
    state.rows.parts.push((partition, is_prefixed, output));
    if state.bytes > ANSWER_BYTES_MAX {
        if next != Next::Done {
            context.engine.gateway.end_read(state.operation, context.turn);
        }
        abandon_key_read(context.engine, state, context.turn);
        let message = "The rows of these keys are longer than one answer may be: read fewer at once";
        return fail(context, &Error::new(ErrorCode::PacketTooLarge, message));
    }
    if next == Next::Done {
        state.retry.release(context.turn);
        return finish_key_read(context, state.rows);
    }
    if next == Next::MoreRows {
        context.engine.gateway.continue_read(state.operation, &context.session.transaction, context.turn);
    }
    context.session.execution = Execution::Keys(state);
    Progress::Waiting
}

/// Sends the answer.
fn finish_key_read(context: &mut StatementContext<'_, '_>, mut rows: KeyRows) -> Progress {
    context.session.execution = Execution::Idle;
    context.session.row_count = -1;
    let sent = match context.session.interrupted {
        true => Ok(()),
        false => context.sink.key_rows(&mut rows, &context.session.completion()),
    };
    release(context.engine, rows, context.turn);
    match sent {
        Ok(()) => Progress::Done,
        Err(error) => fail(context, &error),
    }
}

/// Fails a read, or starts it again if its table definition changed meanwhile.
pub(crate) fn fail_key_read(
    context: &mut StatementContext<'_, '_>,
    mut state: KeyReadState,
    error: &Error,
) -> Progress {
    let input = std::mem::take(&mut state.retry);
    if !context.session.interrupted && !input.is_none() && context.may_succeed_after(error) {
        abandon_key_read(context.engine, state, context.turn);
        context.session.execution = Execution::Retry(Box::new(RetryState::after(error, input)));
        return Progress::Waiting;
    }
    input.release(context.turn);
    abandon_key_read(context.engine, state, context.turn);
    fail(context, error)
}

/// Releases a read whose rows are no longer wanted. The data plane has ended it or was asked to.
pub(crate) fn abandon_key_read(engine: &mut Engine, state: KeyReadState, turn: &mut TurnContext<'_>) {
    state.retry.release(turn);
    release(engine, state.rows, turn);
}

fn release(engine: &mut Engine, mut rows: KeyRows, turn: &mut TurnContext<'_>) {
    rows.partition_of_key.clear();
    rows.parts.drain(..).for_each(|(_, _, bytes)| turn.buffers.give(bytes));
    if engine.work.key_rows.len() < IDLE_MAX {
        engine.work.key_rows.push(rows);
    }
}
