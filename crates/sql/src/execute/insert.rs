//! Hot path, budget 150 instructions a value: INSERT. Rows are converted, encoded and sorted into partitions; the AUTO_INCREMENT
//! numbers they need are fetched before, so that no row is made twice.

use std::sync::Arc;

use hashbrown::HashMap;
use junctor_client::input::{HashedKey, KeyedImage};
use junctor_client::{Door, OperationId, PartitionInputs};
use junctor_expression::store::{StoreMode, StoreTarget};
use junctor_expression::{Parameters, ParametersBuilder, Scratch};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnIndex, TableId};
use junctor_model::key::append_value;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::schema::{Dictionary, TableDefinition};
use junctor_model::value::ValueRef;

use super::completion::fail;
use super::packets::Window;
use super::parameters::{fill_from_shape, literal_value, plain_literal_value};
use super::read::wrong_plan;
use super::state::{Again, Execution, Run, WriteState};
use super::write::{check_writable, send};
use crate::engine::Engine;
use crate::parse::shape::LiftedLiteral;
use crate::parse::{Ordinal, Shape};
use crate::plan::{AutoColumn, FoldedForm, InsertPlan, InsertValue, Plan};
use crate::result::{Progress, ResultSink};
use crate::session::Session;
use crate::show::WarningLevel;

/// AUTO_INCREMENT numbers that this block holds.
#[derive(Debug)]
pub(crate) struct NumberRanges {
    ranges: HashMap<TableId, NumberRange, foldhash::fast::FixedState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct NumberRange {
    next: u64,
    end: u64,
    /// The table's counter is known to be beyond this.
    known: u64,
}

impl NumberRanges {
    /// None.
    pub(crate) fn new() -> NumberRanges {
        NumberRanges { ranges: HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0x6e75_6d62_6572_7321)) }
    }

    /// Forgets the numbers of tables that are gone.
    pub(crate) fn forget_missing(&mut self, dictionary: &Dictionary) {
        self.ranges.retain(|table, _| dictionary.table(*table).is_some());
    }

    /// Gives up the numbers of a table that are at hand: the next ones come from its counter.
    pub(crate) fn forget_held(&mut self, table: TableId) {
        let range = self.of(table);
        range.next = range.end;
    }

    /// The next number that this block would give; `None` when it holds none.
    pub(crate) fn next_of(&self, table: TableId) -> Option<u64> {
        self.ranges.get(&table).filter(|range| range.next > 0).map(|range| range.next)
    }

    fn of(&mut self, table: TableId) -> &mut NumberRange {
        self.ranges.entry(table).or_default()
    }
}

/// An INSERT that waits for numbers.
#[derive(Debug)]
pub(crate) struct InsertState {
    pub plan: Arc<Plan>,
    pub operation: OperationId,
    pub protocol: junctor_client::program::RowProtocol,
    /// The statement, for rows that come with the execution, and the shape that was scanned of it.
    pub text: Option<(Vec<u8>, Shape)>,
    pub parameters: Vec<u8>,
    asked: Asked,
}

/// What main is asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Numbers that the rows need.
    needed: u64,
    /// Numbers asked for, some of them for later statements; 0 only raises the counter.
    count: u64,
    /// The counter is to be beyond this.
    beyond: u64,
}

/// The rows of one execution.
#[derive(Clone, Copy)]
struct Rows<'a> {
    plan: &'a InsertPlan,
    parameters: Parameters<'a>,
    folded: Option<Folded<'a>>,
}

/// Rows that come with the execution.
#[derive(Clone, Copy)]
struct Folded<'a> {
    form: FoldedForm,
    text: &'a [u8],
    shape: &'a Shape,
}

/// Memory for rows that are being made.
struct RowMaker<'a> {
    builder: &'a mut ParametersBuilder,
    row_parameters: &'a mut Vec<u8>,
    decoded: &'a mut Vec<u8>,
    strings: &'a mut Vec<u8>,
    string_ends: &'a mut Vec<usize>,
    scratch: &'a mut Scratch,
    image: &'a mut Vec<u8>,
    key: &'a mut Vec<u8>,
    partition_key: &'a mut Vec<u8>,
}

/// Columns whose values of one row stay on the stack.
const COLUMNS_ON_STACK: usize = 16;

/// Rows that were made.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    rows: u64,
    /// The first number that was generated, or 0.
    first_number: u64,
    /// The first one, or the last number that a row gave itself.
    answer_number: u64,
}

/// What trying to make the rows came to.
enum Made {
    /// Numbers are needed first.
    Asks(Asked),
    /// The rows are in the inputs.
    Rows(Numbered),
}

/// Starts an INSERT. The parameters are in the engine's workspace; for folded rows the engine's shape is that of the text.
pub(crate) fn start_insert(
    engine: &mut Engine,
    session: &mut Session,
    plan: &Arc<Plan>,
    run: &Run<'_>,
    door: &mut Door<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    match try_insert(engine, session, plan, run, door) {
        Ok(()) => Progress::Waiting,
        Err(error) => {
            engine.work.inputs.clear(door.buffers);
            fail(session, &error, sink)
        }
    }
}

fn try_insert(
    engine: &mut Engine,
    session: &mut Session,
    plan: &Arc<Plan>,
    run: &Run<'_>,
    door: &mut Door<'_>,
) -> Result<()> {
    let Plan::Insert(insert) = &**plan else { return Err(wrong_plan()) };
    check_writable(session)?;
    session.enter_statement();
    let Engine { work, shape, ranges, settings, .. } = engine;
    let folded = match (insert.folded, run.shaped_text) {
        (Some(form), Some(text)) => Some(Folded { form, text, shape }),
        (Some(_), None) => return Err(wrong_plan()),
        (None, _) => None,
    };
    let rows = Rows { plan: insert, parameters: Parameters::from_bytes(&work.parameters), folded };
    let mut maker = RowMaker {
        builder: &mut work.builder,
        row_parameters: &mut work.row_parameters,
        decoded: &mut work.decoded,
        strings: &mut work.strings,
        string_ends: &mut work.string_ends,
        scratch: &mut work.scratch,
        image: &mut work.image,
        key: &mut work.key,
        partition_key: &mut work.partition_key,
    };
    let range = ranges.of(insert.table.definition.id);
    match make(&rows, range, settings.auto_increment_prefetch, &mut maker, &mut work.inputs, door)? {
        Made::Asks(asked) => fetch_numbers(engine, session, plan, run, asked, door),
        Made::Rows(Numbered { rows, first_number, answer_number }) => {
            if engine.work.scratch.warning_count() != 0 {
                say_warnings(session, &mut engine.work.scratch);
            }
            let origin = run.again.keep(session.transaction.explicit, &engine.work.parameters, door);
            let operation = send(engine, session, &insert.program, run.protocol, door)?;
            session.execution = Execution::Write(WriteState {
                plan: Arc::clone(plan),
                operation,
                protocol: run.protocol,
                window: Window::ALL,
                first_number,
                answer_number,
                rows,
                parameters: Vec::new(),
                origin,
            });
            Ok(())
        }
    }
}

/// What a strict write may only say by the way: spaces that a column had no room for.
#[cold]
fn say_warnings(session: &mut Session, scratch: &mut Scratch) {
    for warning in scratch.take_warnings() {
        session.warn(WarningLevel::Note, warning.code.errno(), warning.message);
    }
}

/// Asks main for numbers and keeps what the rows are made of.
fn fetch_numbers(
    engine: &mut Engine,
    session: &mut Session,
    plan: &Arc<Plan>,
    run: &Run<'_>,
    asked: Asked,
    door: &mut Door<'_>,
) -> Result<()> {
    let Plan::Insert(insert) = &**plan else { return Err(wrong_plan()) };
    let table = insert.table.definition.id;
    let operation = engine.client.reserve_auto_increment(session.connection, table, asked.count, asked.beyond, door)?;
    let text = match (insert.folded, run.shaped_text) {
        (Some(_), Some(text)) => {
            let mut copy = door.buffers.take(text.len());
            copy.extend_from_slice(text);
            Some((copy, engine.take_shape()))
        }
        _ => None,
    };
    let mut parameters = door.buffers.take(engine.work.parameters.len());
    parameters.extend_from_slice(&engine.work.parameters);
    session.execution = Execution::Numbers(Box::new(InsertState {
        plan: Arc::clone(plan),
        operation,
        protocol: run.protocol,
        text,
        parameters,
        asked,
    }));
    Ok(())
}

/// Numbers arrived: the rows can be made.
pub(crate) fn on_numbers(
    engine: &mut Engine,
    session: &mut Session,
    (first, count): (u64, u64),
    error: Option<Box<Error>>,
    door: &mut Door<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let Execution::Numbers(state) = std::mem::take(&mut session.execution) else { return Progress::Waiting };
    let InsertState { plan, protocol, text, parameters, asked, .. } = *state;
    let error = error.or_else(|| (count < asked.needed).then(numbers_exhausted));
    if let Plan::Insert(insert) = &*plan
        && error.is_none()
    {
        engine.ranges.of(insert.table.definition.id).add(first, count, asked.beyond);
    }
    engine.work.parameters.clear();
    engine.work.parameters.extend_from_slice(&parameters);
    door.buffers.give(parameters);
    let (text, shape) = text.unzip();
    if let Some(shape) = shape {
        engine.give_shape(shape);
    }
    let progress = match error {
        Some(error) => fail(session, &error, sink),
        None if session.interrupted => super::completion::ok(session, super::completion::Changed::default(), sink),
        None => {
            let run = Run { protocol, shaped_text: text.as_deref(), again: Again::No };
            start_insert(engine, session, &plan, &run, door, sink)
        }
    };
    if let Some(text) = text {
        door.buffers.give(text);
    }
    progress
}

impl NumberRange {
    /// What must be asked of main for rows that need so many numbers and give themselves numbers up to a maximum; `None` when
    /// the numbers at hand are enough and the counter is beyond the maximum.
    fn missing(&mut self, needed: u64, explicit_max: u64, prefetch: u64) -> Option<Asked> {
        if explicit_max >= self.next && explicit_max < self.end {
            self.next = explicit_max + 1;
        }
        if explicit_max <= self.known && self.end.saturating_sub(self.next) >= needed {
            return None;
        }
        let count = if needed == 0 { 0 } else { needed.max(prefetch) };
        Some(Asked { needed, count, beyond: explicit_max })
    }

    /// Takes in numbers that main gave.
    fn add(&mut self, first: u64, count: u64, beyond: u64) {
        self.known = self.known.max(beyond).max(first.saturating_sub(1));
        if count == 0 {
            // Numbers held from before are below what rows have now.
            if self.end <= beyond {
                self.next = self.end;
            }
            return;
        }
        let end = first.saturating_add(count);
        if first != self.end || self.next <= beyond {
            self.next = first;
        }
        self.end = end;
        self.known = self.known.max(end - 1);
    }
}

/// Makes the rows into the inputs, or says which numbers are missing.
fn make(
    rows: &Rows<'_>,
    range: &mut NumberRange,
    prefetch: u64,
    maker: &mut RowMaker<'_>,
    inputs: &mut PartitionInputs,
    door: &mut Door<'_>,
) -> Result<Made> {
    if maker.scratch.warning_count() != 0 {
        maker.scratch.take_warnings();
    }
    maker.scratch.set_strict(true);
    let outcome = match missing_numbers(rows, range, prefetch, maker) {
        Ok(Some(asked)) => Ok(Made::Asks(asked)),
        Ok(None) => make_rows(rows, range, maker, inputs, door),
        Err(error) => Err(error),
    };
    maker.scratch.set_strict(false);
    outcome
}

fn make_rows(
    rows: &Rows<'_>,
    range: &mut NumberRange,
    maker: &mut RowMaker<'_>,
    inputs: &mut PartitionInputs,
    door: &mut Door<'_>,
) -> Result<Made> {
    let definition = &rows.plan.table.definition;
    inputs.begin(definition.partition_count, door.buffers);
    let mut first_number = 0;
    for row in 0..rows.count() {
        let generated = maker.row(rows, row, range)?;
        if let (0, Some(number)) = (first_number, generated) {
            first_number = number;
        }
        if maker.key.len() > usize::from(u16::MAX) {
            return Err(Error::new(ErrorCode::KeyTooLong, "Specified key was too long; max key length is 3072 bytes"));
        }
        let hash = key_hash(maker.key);
        let partition = match rows.plan.key_is_partition {
            true => partition_of(hash, definition.partition_count),
            false => partition_of(key_hash(maker.partition_key), definition.partition_count),
        };
        let image = KeyedImage { key: HashedKey { hash, key: maker.key }, image: maker.image };
        inputs.push_image(partition, image, &[], door.buffers);
    }
    let count = rows.count() as u64;
    let visible = rows.plan.auto.filter(|auto| !auto.is_hidden);
    let Some(auto) = visible else {
        return Ok(Made::Rows(Numbered { rows: count, first_number: 0, answer_number: 0 }));
    };
    let mut answer_number = first_number;
    if answer_number == 0 && count > 0 {
        answer_number = maker.explicit_number(rows, rows.count() - 1, auto)?.unwrap_or(0);
    }
    Ok(Made::Rows(Numbered { rows: count, first_number, answer_number }))
}

/// Counts the numbers that the rows need; `None` when they are at hand.
fn missing_numbers(
    rows: &Rows<'_>,
    range: &mut NumberRange,
    prefetch: u64,
    maker: &mut RowMaker<'_>,
) -> Result<Option<Asked>> {
    let Some(auto) = rows.plan.auto else { return Ok(None) };
    let mut numbers = 0;
    let mut explicit_max = 0;
    let position = usize::from(auto.index.0);
    if rows.folded.is_some() && matches!(rows.form(0).get(position), Some(InsertValue::Generated)) {
        numbers = rows.count() as u64;
    } else {
        for row in 0..rows.count() {
            match maker.explicit_number(rows, row, auto)? {
                None => numbers += 1,
                Some(number) => explicit_max = explicit_max.max(number),
            }
        }
    }
    Ok(range.missing(numbers, explicit_max, prefetch))
}

impl<'a> Rows<'a> {
    fn count(&self) -> usize {
        match &self.folded {
            Some(folded) => folded.shape.rows().map_or(0, |rows| rows.count as usize),
            None => self.plan.rows.len(),
        }
    }

    fn form(&self, row: usize) -> &'a [InsertValue] {
        let row = if self.folded.is_some() { 0 } else { row };
        self.plan.rows.get(row).map_or(&[], Vec::as_slice)
    }

    /// The literal that a parameter stands for in a row that comes with the execution.
    #[inline]
    fn literal(&self, ordinal: u16, row: usize) -> Option<(&'a [u8], &'a LiftedLiteral)> {
        let folded = self.folded.as_ref()?;
        let is_of_row = ordinal >= folded.form.first && ordinal - folded.form.first < folded.form.width;
        if !is_of_row {
            return None;
        }
        folded.shape.literal(Ordinal(u32::from(ordinal)), row as u32).map(|literal| (folded.text, literal))
    }
}

impl RowMaker<'_> {
    /// The number that a row gives the AUTO_INCREMENT column itself; `None` when one is to be generated.
    fn explicit_number(&mut self, rows: &Rows<'_>, row: usize, auto: AutoColumn) -> Result<Option<u64>> {
        let position = usize::from(auto.index.0);
        let column = &rows.plan.table.definition.columns[position];
        let target = StoreTarget { column, row_number: row as u64 + 1, mode: StoreMode::Strict };
        self.scratch.reset();
        let value = match rows.form(row).get(position) {
            Some(InsertValue::Generated) | None => return Ok(None),
            Some(InsertValue::Stored(value)) => return Ok(number_of(value.as_ref())),
            Some(InsertValue::Parameter(ordinal)) => match rows.literal(*ordinal, row) {
                Some((text, literal)) => literal_value(text, literal, self.decoded),
                None => rows.parameters.get(*ordinal),
            },
            Some(InsertValue::Computed(expression)) => {
                self.fill_row(rows, row)?;
                let parameters = match rows.folded {
                    Some(_) => Parameters::from_bytes(self.row_parameters),
                    None => rows.parameters,
                };
                expression.evaluate(None, parameters, self.scratch)?
            }
        };
        if value.is_null() {
            return Ok(None);
        }
        Ok(number_of(target.convert(value, self.scratch)?))
    }

    /// Makes the parameters of one row, for values that are computed from them.
    fn fill_row(&mut self, rows: &Rows<'_>, row: usize) -> Result<()> {
        self.row_parameters.clear();
        let Some(folded) = rows.folded else { return Ok(()) };
        fill_from_shape(folded.text, folded.shape, row as u32, self.decoded, self.builder);
        self.builder.append_to(self.row_parameters)
    }

    /// Makes the image and key of a row. Gives the number that was generated for it.
    fn row(&mut self, rows: &Rows<'_>, row: usize, range: &mut NumberRange) -> Result<Option<u64>> {
        let form = rows.form(row);
        self.scratch.reset();
        if form.iter().any(|value| matches!(value, InsertValue::Computed(_))) {
            self.fill_row(rows, row)?;
        }
        self.decode_strings(rows, row, form);
        let RowMaker { row_parameters, strings, string_ends, scratch, image, key, .. } = self;
        let scratch: &Scratch = scratch;
        let row_parameters =
            if rows.folded.is_some() { Parameters::from_bytes(row_parameters) } else { rows.parameters };
        let mut decoded = Decoded { bytes: strings, ends: string_ends, start: 0 };
        let mut on_stack = [ValueRef::Null; COLUMNS_ON_STACK];
        // The values borrow from the row, so wide tables pay for memory of their own.
        let mut on_heap = Vec::new();
        let values = match form.len() <= COLUMNS_ON_STACK {
            true => &mut on_stack[..form.len()],
            false => {
                on_heap.resize(form.len(), ValueRef::Null);
                &mut on_heap[..]
            }
        };
        let definition = &rows.plan.table.definition;
        let mut generated = None;
        for ((value, source), column) in values.iter_mut().zip(form).zip(&definition.columns) {
            let target = StoreTarget { column, row_number: row as u64 + 1, mode: StoreMode::Strict };
            let given = match source {
                InsertValue::Stored(stored) => {
                    *value = stored.as_ref();
                    continue;
                }
                InsertValue::Generated => ValueRef::Null,
                InsertValue::Parameter(ordinal) => match rows.literal(*ordinal, row) {
                    Some((_, literal)) if literal.has_escapes => ValueRef::Bytes(decoded.next()),
                    Some((text, literal)) => plain_literal_value(text, literal),
                    None => rows.parameters.get(*ordinal),
                },
                InsertValue::Computed(expression) => expression.evaluate(None, row_parameters, scratch)?,
            };
            let wants_number = column.auto_increment && (given.is_null() || is_zero(target.convert(given, scratch)?));
            *value = match wants_number {
                false => target.convert(given, scratch)?,
                true => {
                    let number = next_number(range, rows.plan.auto)?;
                    generated = Some(number);
                    target.convert(ValueRef::UInt(number), scratch)?
                }
            };
        }
        image.clear();
        rows.plan.table.row_format.encode(values, image)?;
        append_key(definition, &definition.primary().columns, values, key);
        if !rows.plan.key_is_partition {
            append_key(definition, &definition.partition_columns, values, self.partition_key);
        }
        Ok(generated)
    }

    /// Decodes the strings of a row that have escapes, one after the other.
    fn decode_strings(&mut self, rows: &Rows<'_>, row: usize, form: &[InsertValue]) {
        self.strings.clear();
        self.string_ends.clear();
        if rows.folded.is_none() {
            return;
        }
        for value in form {
            if let InsertValue::Parameter(ordinal) = value
                && let Some((text, literal)) = rows.literal(*ordinal, row)
                && literal.has_escapes
            {
                literal.decode(text, self.strings);
                self.string_ends.push(self.strings.len());
            }
        }
    }
}

/// Strings of a row that were decoded, in the order of the columns.
struct Decoded<'d> {
    bytes: &'d [u8],
    ends: &'d [usize],
    start: usize,
}

impl<'d> Decoded<'d> {
    fn next(&mut self) -> &'d [u8] {
        let Some((end, rest)) = self.ends.split_first() else { return &[] };
        let bytes = &self.bytes[self.start..*end];
        self.start = *end;
        self.ends = rest;
        bytes
    }
}

/// The key bytes of columns that have these values.
fn append_key(definition: &TableDefinition, columns: &[ColumnIndex], values: &[ValueRef<'_>], key: &mut Vec<u8>) {
    key.clear();
    for index in columns {
        let column = &definition.columns[usize::from(index.0)];
        append_value(column.column_type, column.nullable, values[usize::from(index.0)], key);
    }
}

/// Takes the next number. Error: 1467 when the column can hold no more.
fn next_number(range: &mut NumberRange, auto: Option<AutoColumn>) -> Result<u64> {
    let number_max = auto.map_or(u64::MAX, |auto| auto.number_max);
    if range.next >= range.end || range.next > number_max {
        return Err(numbers_exhausted());
    }
    range.next += 1;
    Ok(range.next - 1)
}

fn numbers_exhausted() -> Box<Error> {
    Error::new(ErrorCode::AutoIncrementExhausted, "Failed to read auto-increment value from storage engine")
}

fn is_zero(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Int(value) => value == 0,
        ValueRef::UInt(value) => value == 0,
        ValueRef::Double(value) => value == 0.0,
        _ => false,
    }
}

/// The number that a stored value is, for the counter; `None` for zero, which asks for a number.
fn number_of(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Int(0) | ValueRef::UInt(0) | ValueRef::Null => None,
        ValueRef::UInt(value) => Some(value),
        // Negative numbers do not move the counter.
        ValueRef::Int(value) => Some(value.max(0) as u64),
        ValueRef::Double(0.0) => None,
        ValueRef::Double(value) => Some(value.max(0.0) as u64),
        ValueRef::Decimal(_) | ValueRef::Bytes(_) => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(range: &mut NumberRange) -> u64 {
        next_number(range, None).expect("there are numbers")
    }

    #[test]
    fn numbers_are_asked_for_in_advance_and_follow_each_other() {
        let mut range = NumberRange::default();
        let asked = range.missing(1, 0, 32).expect("none are at hand");
        assert_eq!((asked.needed, asked.count, asked.beyond), (1, 32, 0));
        range.add(1, 32, 0);
        for number in 1..=32 {
            assert!(range.missing(1, 0, 32).is_none());
            assert_eq!(take(&mut range), number);
        }
        let asked = range.missing(100, 0, 32).expect("all are used");
        assert_eq!(asked.count, 100);
        range.add(33, 100, 0);
        assert_eq!(take(&mut range), 33);
    }

    #[test]
    fn a_remainder_is_kept_when_the_next_numbers_follow_it() {
        let mut range = NumberRange { next: 5, end: 8, known: 7 };
        range.add(8, 10, 0);
        assert_eq!((take(&mut range), range.end), (5, 18));
        let mut apart = NumberRange { next: 5, end: 8, known: 7 };
        apart.add(100, 10, 0);
        assert_eq!((take(&mut apart), apart.end), (100, 110));
    }

    #[test]
    fn a_number_that_a_row_gives_itself_is_never_made_again() {
        let mut range = NumberRange { next: 5, end: 20, known: 19 };
        assert!(range.missing(0, 10, 32).is_none(), "it is among the numbers at hand");
        assert_eq!(take(&mut range), 11);
        assert!(range.missing(1, 3, 32).is_none(), "it is below them");
        let asked = range.missing(0, 500, 32).expect("the counter does not know it");
        assert_eq!((asked.count, asked.beyond), (0, 500));
        range.add(501, 0, 500);
        assert!(range.missing(0, 500, 32).is_none());
        let asked = range.missing(1, 0, 32).expect("the numbers at hand are below the row's");
        range.add(501, asked.count, asked.beyond);
        assert_eq!(take(&mut range), 501);
    }

    #[test]
    fn the_end_of_all_numbers_is_an_error_and_no_endless_asking() {
        let mut range = NumberRange::default();
        range.add(u64::MAX, 0, u64::MAX);
        assert!(range.missing(0, u64::MAX, 32).is_none());
        let error = next_number(&mut range, None).expect_err("there is none left");
        assert_eq!(error.code, ErrorCode::AutoIncrementExhausted);
        let mut tiny = NumberRange { next: 128, end: 160, known: 159 };
        let auto = AutoColumn { index: ColumnIndex(0), is_hidden: false, number_max: 127 };
        assert!(next_number(&mut tiny, Some(auto)).is_err());
    }
}
