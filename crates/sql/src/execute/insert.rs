//! Hot path: at most 150 instructions per value. One long file, because all steps share the encoder of rows.
//!
//! INSERT. Rows are converted, encoded and assigned to partitions. The AUTO_INCREMENT values that they need
//! are reserved first, so that no row is encoded twice.

use std::sync::Arc;

use junctor_expression::{Parameters, ParametersBuilder, Scratch};
use junctor_gateway::{PartitionInputs, TurnContext, require};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::key::{append_row_key, append_value};
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::row::RowView;
use junctor_model::schema::{ColumnDefinition, TableDefinition};
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::value::{Value, ValueRef};
use junctor_signals::diagnostics;
use junctor_signals::input::{HashedKey, KeyedImage};
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;
use junctor_signals::row_expressions::RowTarget;

use super::completion::{ChangeCounts, fail, finish_ok};
use super::compound::{RowList, RowRef, SelectedRows, start_insert_rows, start_insert_select};
use super::context::StatementContext;
use super::engine::Engine;
use super::numbers::{
    AutoIncrementRange, AutoIncrementRequest, ForcedNumbers, InsertId, number_of_column, numbers_exhausted,
    numbers_of_rows,
};
use super::retry::StatementInput;
use super::session::Session;
use super::state::{Execution, PlanInput, Workspace, WriteForm, WriteState};
use super::write::{check_writable, write_options};
use crate::bind::NumberRules;
use crate::mysql_catalog::show::WarningLevel;
use crate::parse::shape::ScannedLiteral;
use crate::parse::{ParameterNumber, Shape};
use crate::plan::{AutoColumn, InsertPlan, InsertValue, RowSteps, UniformRowForm};
use crate::plan::{fill_from_shape, literal_value, plain_literal_value};
use crate::result::Progress;

/// An INSERT that waits for AUTO_INCREMENT values.
#[derive(Debug)]
pub(crate) struct InsertState {
    pub plan: Arc<InsertPlan>,
    pub operation: OperationId,
    pub protocol: RowProtocol,
    /// The statement's text and its shape if the plan reads the rows from the text.
    pub text: Option<(Vec<u8>, Shape)>,
    pub parameters: Vec<u8>,
    request: AutoIncrementRequest,
}

/// The rows of one execution.
#[derive(Clone, Copy)]
struct Rows<'a> {
    plan: &'a InsertPlan,
    parameters: Parameters<'a>,
    uniform_rows: Option<UniformRowsText<'a>>,
    /// The rows that the query of INSERT ... SELECT returned.
    selected: Option<&'a SelectedRows>,
    /// Number of the statement's rows before these. Messages contain row numbers.
    first_row: u64,
    /// Number of assignments of a LOAD DATA that are carried out.
    assignments: usize,
}

/// Rows that are read from the text of the statement. They differ from the first row only in their literals.
#[derive(Clone, Copy)]
struct UniformRowsText<'a> {
    form: UniformRowForm,
    text: &'a [u8],
    shape: &'a Shape,
}

/// The AUTO_INCREMENT values that the block holds for the table.
struct HeldNumbers<'n> {
    range: &'n mut AutoIncrementRange,
    /// Number of values to reserve together when the range is empty.
    prefetch: u64,
}

/// Encodes the rows of one execution. The buffers have the row that is being encoded.
struct RowEncoder<'a> {
    /// Receives a copy of the rows if a later step may need them.
    kept: Option<&'a mut RowList>,
    builder: &'a mut ParametersBuilder,
    row_parameters: &'a mut Vec<u8>,
    decoded: &'a mut Vec<u8>,
    strings: &'a mut Vec<u8>,
    string_ends: &'a mut Vec<usize>,
    scratch: &'a mut Scratch,
    image: &'a mut Vec<u8>,
    computed_image: &'a mut Vec<u8>,
    key: &'a mut Vec<u8>,
    partition_key: &'a mut Vec<u8>,
}

/// Maximum number of columns for which a row's values are kept on the stack.
const COLUMNS_ON_STACK: usize = 16;

/// The AUTO_INCREMENT values of the encoded rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InsertedNumbers {
    pub rows: u64,
    /// The first generated value, or 0.
    pub first_number: u64,
    /// The insert id of the OK packet: the first generated value; if none was generated, the last explicit
    /// one.
    pub answer_number: u64,
}

/// The outcome of encoding rows.
pub(super) enum EncodeOutcome {
    /// AUTO_INCREMENT values must be reserved first.
    NeedsNumbers(AutoIncrementRequest),
    /// The rows are in the inputs.
    Rows(InsertedNumbers),
}

/// Starts an INSERT. The parameters are in the workspace. If the plan reads the rows from the text, the
/// engine's shape must be that of the text.
pub(crate) fn start_insert(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<InsertPlan>,
    input: &PlanInput<'_>,
) -> Progress {
    if plan.select.is_some() || plan.load.is_some() {
        return start_insert_select(context, plan, input, None);
    }
    match send_insert(context, plan, input) {
        Ok(Started::Sent) => Progress::Waiting,
        Ok(Started::Kept(rows, numbered)) => start_insert_rows(context, plan, input, (rows, numbered)),
        Err(error) => {
            context.session.note_evaluated(level_of_mode(plan.mode), &mut context.engine.work.scratch);
            context.engine.work.inputs.clear(context.turn.buffers);
            fail(context, &error)
        }
    }
}

/// The result of starting an INSERT.
enum Started {
    /// The rows were sent, or AUTO_INCREMENT values were requested for them.
    Sent,
    /// The rows are in the inputs. They are also in the list, because a later step may need them.
    Kept(RowList, InsertedNumbers),
}

fn send_insert(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<InsertPlan>,
    input: &PlanInput<'_>,
) -> Result<Started> {
    check_writable(context.session, &plan.table)?;
    context.session.enter_statement();
    let Engine { work, shape, ranges, settings, .. } = &mut *context.engine;
    require!(plan.uniform_rows.is_none() || input.shaped_text.is_some(), "rows that come with the text have a text");
    let uniform_rows =
        plan.uniform_rows.zip(input.shaped_text).map(|(form, text)| UniformRowsText { form, text, shape });
    let rows = Rows { plan, parameters: Parameters::NONE, uniform_rows, selected: None, first_row: 0, assignments: 0 };
    let is_kept = !plan.refuses_duplicates() || plan.returning.is_some();
    let mut kept = is_kept.then(RowList::default);
    work.scratch.set_warnings_max(context.session.variables.warnings_max);
    work.scratch.set_value_rules(context.session.variables.value_rules());
    work.scratch.set_now(context.session.variables.timestamp_us.unwrap_or(context.turn.wall_clock_us));
    let table = plan.table.definition.id;
    if let Some((insert_id, rules)) = plan.insert_id(context.session) {
        ranges.begin_forced(table, insert_id, (true, Some(rows.count() as u64)), rules);
    }
    let numbers = HeldNumbers { range: ranges.of(table), prefetch: settings.auto_increment_prefetch };
    let encoded = encode_or_request_numbers(rows, numbers, kept.as_mut(), work, context.turn);
    ranges.end_forced(table, &mut context.session.insert_id);
    let numbered = match encoded? {
        EncodeOutcome::NeedsNumbers(request) => {
            return request_numbers(context, plan, input, request).map(|()| Started::Sent);
        }
        EncodeOutcome::Rows(numbered) => numbered,
    };
    if context.engine.work.scratch.has_diagnostics() || !plan.warnings.is_empty() {
        add_warnings(context.session, plan, &mut context.engine.work.scratch);
    }
    if let Some(kept) = kept {
        return Ok(Started::Kept(kept, numbered));
    }
    let in_transaction = context.session.transaction.explicit;
    let retry = input.input.keep(in_transaction, &context.engine.work.parameters, context.turn);
    let options = write_options(context, input.protocol);
    let operation = context.send_write(&plan.program, options)?;
    let form = WriteForm::Insert(Arc::clone(plan), numbered);
    context.session.execution = Execution::Write(WriteState { operation, form, retry });
    Ok(Started::Sent)
}

/// Encodes the rows that the statement's query returned. `first_row` is the number of earlier rows.
pub(super) fn encode_selected_rows(
    context: &mut StatementContext<'_, '_>,
    plan: &InsertPlan,
    (selected, first_row): (&SelectedRows, u64),
    kept: &mut RowList,
) -> Result<EncodeOutcome> {
    let Engine { work, ranges, settings, .. } = &mut *context.engine;
    let rows = Rows::of_selected(plan, (selected, first_row), usize::MAX);
    work.scratch.set_warnings_max(context.session.variables.warnings_max);
    work.scratch.set_value_rules(context.session.variables.value_rules());
    work.scratch.set_now(context.session.variables.timestamp_us.unwrap_or(context.turn.wall_clock_us));
    let table = plan.table.definition.id;
    if let Some((insert_id, rules)) = plan.insert_id(context.session) {
        let rows_of_values = plan.is_values.then_some(plan.rows.len() as u64);
        ranges.begin_forced(table, insert_id, (first_row == 0, rows_of_values), rules);
    }
    let numbers = HeldNumbers { range: ranges.of(table), prefetch: settings.auto_increment_prefetch };
    let made = encode_or_request_numbers(rows, numbers, Some(kept), work, context.turn);
    ranges.end_forced(table, &mut context.session.insert_id);
    let made = made?;
    if let EncodeOutcome::Rows(_) = made
        && (work.scratch.has_diagnostics() || first_row == 0 && !plan.warnings.is_empty())
    {
        add_warnings(context.session, plan, &mut work.scratch);
    }
    Ok(made)
}

/// Adds the values that columns of the row of a line have after this number of the assignments of its LOAD
/// DATA. Warnings are left out, because they occur again when the row is encoded. `line` has one row.
pub(super) fn values_before(
    context: &mut StatementContext<'_, '_>,
    plan: &InsertPlan,
    (line, first_row): (&SelectedRows, u64),
    (assignments, columns): (usize, &[ColumnNumber]),
    out: &mut ParametersBuilder,
) -> Result<()> {
    let Some(assigned) = plan.steps.as_ref().and_then(|steps| steps.assigned_columns.as_deref()) else {
        return Ok(());
    };
    let work = &mut context.engine.work;
    work.scratch.set_value_rules(context.session.variables.value_rules());
    work.scratch.set_strict(plan.mode == StoreMode::Strict);
    let rows = Rows::of_selected(plan, (line, first_row), assignments);
    let made = RowEncoder::of(work, None).0.values_column_by_column(&rows, 0, assigned);
    work.scratch.set_strict(false);
    diagnostics::take(&mut work.scratch);
    let (values, _) = made?;
    columns.iter().for_each(|column| out.push(values[usize::from(column.0)].as_ref()));
    Ok(())
}

/// Adds the warnings of the rows. A strict write notes that trailing spaces were removed; IGNORE warns of
/// every value that was adjusted.
#[cold]
fn add_warnings(session: &mut Session, plan: &InsertPlan, scratch: &mut Scratch) {
    let level = level_of_mode(plan.mode);
    for (code, message) in &plan.warnings {
        session.warn(level, code.errno(), message.clone());
    }
    session.note_evaluated(level, scratch);
}

/// The level of the warnings of rows that are stored in this mode.
pub(super) fn level_of_mode(mode: StoreMode) -> WarningLevel {
    if mode == StoreMode::Strict { WarningLevel::Note } else { WarningLevel::Warning }
}

/// Requests AUTO_INCREMENT values from the main block and keeps the input of the rows.
fn request_numbers(
    context: &mut StatementContext<'_, '_>,
    plan: &Arc<InsertPlan>,
    input: &PlanInput<'_>,
    request: AutoIncrementRequest,
) -> Result<()> {
    let operation = context.reserve_numbers(plan.table.definition.id, request)?;
    let text = plan.uniform_rows.and(input.shaped_text).map(|text| {
        let mut copy = context.turn.buffers.take(text.len());
        copy.extend_from_slice(text);
        (copy, context.engine.take_shape())
    });
    let parameters = context.copy_parameters();
    context.session.execution = Execution::Numbers(Box::new(InsertState {
        plan: Arc::clone(plan),
        operation,
        protocol: input.protocol,
        text,
        parameters,
        request,
    }));
    Ok(())
}

/// Continues an INSERT with the values that the main block has reserved.
pub(crate) fn resume_insert(
    context: &mut StatementContext<'_, '_>,
    state: InsertState,
    (first, count): (u64, u64),
    error: Option<Box<Error>>,
) -> Progress {
    let InsertState { plan, protocol, text, parameters, request, .. } = state;
    let error = error.or_else(|| (count < request.needed).then(numbers_exhausted));
    if error.is_none() {
        context.engine.ranges.of(plan.table.definition.id).add(first, count, request.beyond);
    }
    context.engine.work.parameters.clear();
    context.engine.work.parameters.extend_from_slice(&parameters);
    context.turn.buffers.give(parameters);
    let (text, shape) = text.unzip();
    if let Some(shape) = shape {
        context.engine.return_shape(shape);
    }
    let progress = match error {
        Some(error) => fail(context, &error),
        None if context.session.interrupted => finish_ok(context, ChangeCounts::default()),
        None => {
            let input = PlanInput { protocol, shaped_text: text.as_deref(), input: StatementInput::NONE };
            start_insert(context, &plan, &input)
        }
    };
    if let Some(text) = text {
        context.turn.buffers.give(text);
    }
    progress
}

/// Encodes the rows into the inputs, and also into the list if one is given. If AUTO_INCREMENT values are
/// missing, encodes nothing and returns the request for them. Rows that are not from a query use the
/// parameters of the workspace.
fn encode_or_request_numbers(
    rows: Rows<'_>,
    mut numbers: HeldNumbers<'_>,
    kept: Option<&mut RowList>,
    work: &mut Workspace,
    turn: &mut TurnContext<'_>,
) -> Result<EncodeOutcome> {
    let (mut encoder, inputs, parameters) = RowEncoder::of(work, kept);
    let encoder = &mut encoder;
    let rows = match rows.selected {
        Some(_) => &rows,
        None => &Rows { parameters: Parameters::from_bytes(parameters), ..rows },
    };
    // An attempt that ended with a request for AUTO_INCREMENT values left warnings, which the next attempt
    // repeats.
    diagnostics::take(encoder.scratch);
    encoder.scratch.set_strict(rows.plan.mode == StoreMode::Strict);
    let outcome = match missing_numbers(rows, &mut numbers, encoder) {
        Ok(Some(request)) => Ok(EncodeOutcome::NeedsNumbers(request)),
        Ok(None) => encode_rows(rows, numbers.range, encoder, inputs, turn),
        Err(error) => Err(error),
    };
    encoder.scratch.set_strict(false);
    outcome
}

fn encode_rows(
    rows: &Rows<'_>,
    range: &mut AutoIncrementRange,
    encoder: &mut RowEncoder<'_>,
    inputs: &mut PartitionInputs,
    turn: &mut TurnContext<'_>,
) -> Result<EncodeOutcome> {
    let definition = &rows.plan.table.definition;
    inputs.begin(definition.partition_count, turn.buffers);
    let mut first_number = 0;
    let mut left_out = 0;
    for row in 0..rows.count() {
        let forced = range.forced();
        let generated = match encoder.row(rows, row, range) {
            Ok(generated) => generated,
            Err(error) => {
                range.give_back(forced);
                leave_out(rows.plan, &error, encoder.scratch).ok_or(error)?;
                left_out += 1;
                continue;
            }
        };
        if let (Some(_), None, Some(auto)) = (forced, generated, rows.plan.auto) {
            range.pass(encoder.encoded_number(rows.plan, auto), auto.rules);
        }
        if let (0, Some(number)) = (first_number, generated) {
            first_number = number;
        }
        if encoder.key.len() > usize::from(u16::MAX) {
            return Err(Error::new(ErrorCode::KeyTooLong, "Specified key was too long; max key length is 3072 bytes"));
        }
        let hash = key_hash(encoder.key);
        let partition = match rows.plan.key_is_partition {
            true => partition_of(hash, definition.partition_count),
            false => partition_of(key_hash(encoder.partition_key), definition.partition_count),
        };
        let image = KeyedImage { key: HashedKey { hash, key: encoder.key }, image: encoder.image };
        inputs.push_image(partition, image, &[], turn.buffers);
        if encoder.kept.is_some() {
            encoder.keep_row(rows, row, (hash, partition), generated)?;
        }
    }
    let count = rows.count() as u64 - left_out;
    let visible = rows.plan.auto.filter(|auto| !auto.is_hidden);
    let Some(auto) = visible else {
        return Ok(EncodeOutcome::Rows(InsertedNumbers { rows: count, first_number: 0, answer_number: 0 }));
    };
    let mut answer_number = first_number;
    if answer_number == 0 && count > 0 {
        let noted = encoder.scratch.warning_mark();
        answer_number = encoder.explicit_number(rows, rows.count() - 1, auto)?.unwrap_or(0);
        encoder.scratch.forget_warnings_after(noted);
    }
    Ok(EncodeOutcome::Rows(InsertedNumbers { rows: count, first_number, answer_number }))
}

/// Notes that IGNORE leaves out a row that violates a CHECK constraint. `None` for other errors.
#[cold]
fn leave_out(plan: &InsertPlan, error: &Error, scratch: &Scratch) -> Option<()> {
    let leaves_out = plan.steps.as_ref().is_some_and(|steps| steps.leaves_out);
    if !leaves_out || !matches!(error.code, ErrorCode::CheckViolated | ErrorCode::ViewCheckFailed) {
        return None;
    }
    scratch.note(error.code, || error.message.to_string());
    Some(())
}

/// The request for the AUTO_INCREMENT values that the rows need; `None` if the block holds enough.
fn missing_numbers(
    rows: &Rows<'_>,
    numbers: &mut HeldNumbers<'_>,
    encoder: &mut RowEncoder<'_>,
) -> Result<Option<AutoIncrementRequest>> {
    let Some(auto) = rows.plan.auto else { return Ok(None) };
    let (mut needed, mut explicit, mut explicit_max) = (0, 0, 0);
    let noted = encoder.scratch.warning_mark();
    let position = usize::from(auto.index.0);
    if rows.uniform_rows.is_some() && matches!(rows.form(0).get(position), Some(InsertValue::Generated)) {
        needed = rows.count() as u64;
    } else {
        for row in 0..rows.count() {
            match encoder.explicit_number(rows, row, auto) {
                Ok(None) => needed += 1,
                Ok(Some(number)) => {
                    explicit += 1;
                    // As in MySQL, a value beyond those that can be generated does not raise the counter.
                    explicit_max = explicit_max.max(if number <= auto.number_max { number } else { 0 });
                }
                // Encoding reports the error, unless a column that is evaluated earlier has one.
                Err(_) => {}
            }
        }
    }
    if let Some(forced) = numbers.range.forced() {
        let (last, of_table) = forced_numbers(rows, (forced, auto), encoder);
        explicit += needed;
        explicit_max = explicit_max.max(if last <= auto.number_max { last } else { 0 });
        needed = of_table;
    }
    let hidden = if auto.hidden_key.is_some() { explicit } else { 0 };
    let needed = numbers_of_rows(needed, auto.rules).saturating_add(hidden);
    // When the row is encoded later, these warnings and the LAST_INSERT_ID(expression) occur again.
    if encoder.scratch.has_diagnostics() {
        encoder.scratch.forget_warnings_after(noted);
        encoder.scratch.take_last_insert_id();
    }
    Ok(numbers.range.missing(needed, explicit_max, numbers.prefetch))
}

/// The last value from that of the variable `insert_id` on that the rows need, and the number of the table's
/// own values behind them.
#[cold]
fn forced_numbers(
    rows: &Rows<'_>,
    (mut forced, auto): (ForcedNumbers, AutoColumn),
    encoder: &mut RowEncoder<'_>,
) -> (u64, u64) {
    let (mut last, mut of_table) = (0, 0);
    for row in 0..rows.count() {
        match encoder.explicit_number(rows, row, auto) {
            Ok(Some(number)) => forced.pass(number, auto.rules),
            Ok(None) => match forced.take(auto.rules) {
                Some(number) => last = number,
                None => of_table += 1,
            },
            Err(_) => {}
        }
    }
    (last, of_table)
}

impl InsertPlan {
    /// The variable `insert_id`, if it is set, and the rules of the numbers. It does not concern hidden keys.
    #[inline]
    fn insert_id(&self, session: &Session) -> Option<(InsertId, NumberRules)> {
        let auto = self.auto.filter(|auto| !auto.is_hidden)?;
        (session.insert_id.first != 0).then_some((session.insert_id, auto.rules))
    }
}

impl<'a> Rows<'a> {
    /// The rows that are made from those of a query or file. `first_row` is the number of earlier rows.
    fn of_selected(plan: &'a InsertPlan, (selected, first_row): (&'a SelectedRows, u64), assignments: usize) -> Self {
        let selected = Some(selected);
        Rows { plan, parameters: Parameters::NONE, uniform_rows: None, selected, first_row, assignments }
    }

    fn count(&self) -> usize {
        match (&self.uniform_rows, self.selected) {
            (Some(uniform_rows), _) => uniform_rows.shape.rows().map_or(0, |rows| rows.count as usize),
            (None, Some(selected)) => selected.len() * self.plan.rows.len(),
            (None, None) => self.plan.rows.len(),
        }
    }

    /// The treatment of values that do not fit. Whether the statement has one row is known only here if the
    /// rows are read from the text.
    fn mode(&self) -> StoreMode {
        match self.plan.mode {
            StoreMode::Lenient if self.plan.refuses_null && self.uniform_rows.is_some() && self.count() == 1 => {
                StoreMode::LenientExceptNull
            }
            mode => mode,
        }
    }

    /// The parameters from which a row is made, unless the row is read from the text.
    fn parameters_of(&self, row: usize) -> Parameters<'a> {
        self.selected.map_or(self.parameters, |selected| Parameters::from_bytes(selected.row(self.selected_row(row))))
    }

    /// The row of the query from which a row is made. With VALUES, one row of the query makes all rows.
    fn selected_row(&self, row: usize) -> usize {
        row / self.plan.rows.len().max(1)
    }

    fn form(&self, row: usize) -> &'a [InsertValue] {
        let row = if self.uniform_rows.is_some() { 0 } else { row % self.plan.rows.len().max(1) };
        self.plan.rows.get(row).map_or(&[], Vec::as_slice)
    }

    /// The literal that a parameter denotes in a row that is read from the text.
    #[inline]
    fn literal(&self, ordinal: u16, row: usize) -> Option<(&'a [u8], &'a ScannedLiteral)> {
        let uniform_rows = self.uniform_rows.as_ref()?;
        let is_of_row =
            ordinal >= uniform_rows.form.first && ordinal - uniform_rows.form.first < uniform_rows.form.width;
        if !is_of_row {
            return None;
        }
        uniform_rows
            .shape
            .literal(ParameterNumber(u32::from(ordinal)), row as u32)
            .map(|literal| (uniform_rows.text, literal))
    }
}

impl<'a> RowEncoder<'a> {
    /// The encoder with the buffers of the workspace, its inputs and its parameters.
    #[inline]
    fn of(work: &'a mut Workspace, kept: Option<&'a mut RowList>) -> (Self, &'a mut PartitionInputs, &'a [u8]) {
        let encoder = RowEncoder {
            kept,
            builder: &mut work.builder,
            row_parameters: &mut work.row_parameters,
            decoded: &mut work.decoded,
            strings: &mut work.strings,
            string_ends: &mut work.string_ends,
            scratch: &mut work.scratch,
            image: &mut work.image,
            computed_image: &mut work.computed_image,
            key: &mut work.key,
            partition_key: &mut work.partition_key,
        };
        (encoder, &mut work.inputs, &work.parameters)
    }
}

impl RowEncoder<'_> {
    /// The explicit value of a row's AUTO_INCREMENT column; `None` if a value must be generated.
    fn explicit_number(&mut self, rows: &Rows<'_>, row: usize, auto: AutoColumn) -> Result<Option<u64>> {
        let position = usize::from(auto.index.0);
        let column = &rows.plan.table.definition.columns[position];
        let target = StoreTarget { column, row_number: rows.first_row + row as u64 + 1, mode: rows.mode() };
        if let Some(RowSteps { assigned_columns: Some(columns), computes_number: true, .. }) =
            rows.plan.steps.as_deref()
        {
            let (values, keeps_zero) = self.values_column_by_column(rows, row, columns)?;
            let value = values[position].as_ref();
            return Ok(number_of(value).or((keeps_zero && is_zero(value)).then_some(0)));
        }
        self.scratch.reset();
        let value = match rows.form(row).get(position) {
            Some(InsertValue::Generated | InsertValue::Now(_)) | None => return Ok(None),
            Some(InsertValue::Stored(value) | InsertValue::Deferred(value)) => {
                let zero = (auto.rules.keeps_zero && *value != Value::Null).then_some(0);
                return Ok(number_of(value.as_ref()).or(zero));
            }
            Some(InsertValue::Parameter(ordinal)) => match rows.literal(*ordinal, row) {
                Some((text, literal)) => literal_value(text, literal, self.decoded),
                None => rows.parameters_of(row).get(*ordinal),
            },
            Some(InsertValue::Computed(expression)) => {
                self.fill_row(rows, row)?;
                let parameters = match rows.uniform_rows {
                    Some(_) => Parameters::from_bytes(self.row_parameters),
                    None => rows.parameters_of(row),
                };
                expression.evaluate(None, parameters, self.scratch)?
            }
        };
        if value.is_null() {
            return Ok(None);
        }
        let zero = auto.rules.keeps_zero.then_some(0);
        Ok(number_of(target.convert(value, self.scratch)?).or(zero))
    }

    /// The number in the AUTO_INCREMENT column of the row that has been encoded.
    #[cold]
    fn encoded_number(&self, plan: &InsertPlan, auto: AutoColumn) -> u64 {
        number_of(RowView::new(&plan.table.row_format, self.image).column(auto.index)).unwrap_or(0)
    }

    /// Collects the parameters of one row for the expressions that read them.
    fn fill_row(&mut self, rows: &Rows<'_>, row: usize) -> Result<()> {
        self.row_parameters.clear();
        let Some(uniform_rows) = rows.uniform_rows else { return Ok(()) };
        fill_from_shape(uniform_rows.text, uniform_rows.shape, row as u32, self.decoded, self.builder);
        // Values that only the session knows follow the literals and are the same for all rows.
        for ordinal in uniform_rows.shape.slot_count()..rows.parameters.count() {
            self.builder.push(rows.parameters.get(ordinal as u16));
        }
        self.builder.append_to(self.row_parameters)
    }

    /// Encodes the image and key of a row. Returns the AUTO_INCREMENT value that was generated for it.
    fn row(&mut self, rows: &Rows<'_>, row: usize, range: &mut AutoIncrementRange) -> Result<Option<u64>> {
        if let Some(steps) = &rows.plan.steps {
            return self.row_in_steps(rows, row, steps, range);
        }
        self.plain_row(rows, row, range)
    }

    /// Does the work of [`RowEncoder::row`] for a row whose values depend on each other.
    #[cold]
    fn row_in_steps(
        &mut self,
        rows: &Rows<'_>,
        row: usize,
        steps: &RowSteps,
        range: &mut AutoIncrementRange,
    ) -> Result<Option<u64>> {
        let generated = match &steps.assigned_columns {
            Some(columns) => self.row_column_by_column(rows, row, columns, range)?,
            None => self.plain_row(rows, row, range)?,
        };
        if steps.expressions.is_empty() {
            return Ok(generated);
        }
        let (table, form) = (&rows.plan.table, rows.form(row));
        let target = RowTarget { table, mode: rows.mode(), row_number: rows.first_row + row as u64 + 1 };
        let is_deferred =
            |column: ColumnNumber| matches!(form.get(usize::from(column.0)), Some(InsertValue::Deferred(_)));
        let images = (&mut *self.image, &mut *self.computed_image);
        steps.expressions.complete(target, &is_deferred, images, self.scratch)?;
        let definition = &table.definition;
        let view = RowView::new(&table.row_format, self.image);
        self.key.clear();
        append_row_key(&definition.columns, &definition.primary().columns, view, self.key);
        if !rows.plan.key_is_partition {
            self.partition_key.clear();
            append_row_key(&definition.columns, &definition.partition_columns, view, self.partition_key);
        }
        Ok(generated)
    }

    #[inline]
    fn plain_row(&mut self, rows: &Rows<'_>, row: usize, range: &mut AutoIncrementRange) -> Result<Option<u64>> {
        let form = rows.form(row);
        self.scratch.reset();
        if form.iter().any(|value| matches!(value, InsertValue::Computed(_))) {
            self.fill_row(rows, row)?;
        }
        self.decode_strings(rows, row, form);
        let RowEncoder { row_parameters, strings, string_ends, scratch, image, key, .. } = self;
        let scratch: &Scratch = scratch;
        let row_parameters =
            if rows.uniform_rows.is_some() { Parameters::from_bytes(row_parameters) } else { rows.parameters_of(row) };
        let decoded = Decoded { bytes: strings, ends: string_ends, start: 0 };
        let row_number = rows.first_row + row as u64 + 1;
        let mut given = GivenValues { rows, row, row_number, row_parameters, scratch, decoded, range, generated: None };
        let mut on_stack = [ValueRef::Null; COLUMNS_ON_STACK];
        // The values borrow from the row, so the memory of earlier rows cannot be reused. Only wide rows
        // allocate.
        let mut on_heap = Vec::new();
        let values = match form.len() <= COLUMNS_ON_STACK {
            true => &mut on_stack[..form.len()],
            false => {
                on_heap.resize(form.len(), ValueRef::Null);
                &mut on_heap[..]
            }
        };
        match &rows.plan.order {
            None => {
                for ((value, source), column) in values.iter_mut().zip(form).zip(&rows.plan.table.definition.columns) {
                    *value = given.value(source, column)?;
                }
            }
            Some(order) => given.values_in_order(order, form, values)?,
        }
        let generated = given.generated;
        encode_row(rows.plan, values, image, key, self.partition_key)?;
        Ok(generated)
    }

    /// Does the work of [`RowEncoder::row`] for a row whose values are computed from other columns.
    fn row_column_by_column(
        &mut self,
        rows: &Rows<'_>,
        row: usize,
        columns: &[ColumnNumber],
        range: &mut AutoIncrementRange,
    ) -> Result<Option<u64>> {
        let (mut values, keeps_zero) = self.values_column_by_column(rows, row, columns)?;
        let row_number = rows.first_row + row as u64 + 1;
        let mut generated = None;
        let automatic = rows.plan.auto.map(|auto| [Some(auto.index), auto.hidden_key]);
        for position in automatic.into_iter().flatten().flatten().map(|column| usize::from(column.0)) {
            let column = &rows.plan.table.definition.columns[position];
            if !is_zero(values[position].as_ref()) || keeps_zero && !column.hidden {
                continue;
            }
            let number = number_of_column((column, rows.plan.auto), range, &mut generated)?;
            let target = StoreTarget { column, row_number, mode: rows.mode() };
            values[position] = target.convert(ValueRef::UInt(number), self.scratch)?.to_value();
        }
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        encode_row(rows.plan, &values, self.image, self.key, self.partition_key)?;
        Ok(generated)
    }

    /// The values of a row before AUTO_INCREMENT values are generated, and whether a 0 in that column is its
    /// value. As in MySQL, each column has its default until its own value is computed, in the order of the
    /// statement.
    fn values_column_by_column(
        &mut self,
        rows: &Rows<'_>,
        row: usize,
        columns: &[ColumnNumber],
    ) -> Result<(Vec<Value>, bool)> {
        self.scratch.reset();
        self.fill_row(rows, row)?;
        let RowEncoder { row_parameters, decoded, scratch, image, .. } = self;
        let scratch: &Scratch = scratch;
        let parameters =
            if rows.uniform_rows.is_some() { Parameters::from_bytes(row_parameters) } else { rows.parameters_of(row) };
        let (table, form) = (&rows.plan.table, rows.form(row));
        let row_number = rows.first_row + row as u64 + 1;
        let before = |(column, source): (&ColumnDefinition, &InsertValue)| match source {
            InsertValue::Stored(value) | InsertValue::Deferred(value) => value.clone(),
            _ => column.value_before_assignment(),
        };
        let mut values: Vec<Value> = table.definition.columns.iter().zip(form).map(before).collect();
        for column in columns {
            let position = usize::from(column.0);
            values[position] = table.definition.columns[position].value_before_assignment();
        }
        let mut keeps_zero = false;
        // Columns that the statement does not name have their defaults from the beginning.
        let is_omitted = |position: usize| !columns.iter().any(|column| usize::from(column.0) == position);
        for (position, source) in form.iter().enumerate().filter(|(position, _)| is_omitted(*position)) {
            let column = &table.definition.columns[position];
            let target = StoreTarget { column, row_number, mode: rows.plan.mode };
            let given = match source {
                InsertValue::Now(digits) => scratch.now(*digits),
                InsertValue::Computed(expression) => expression.evaluate(None, Parameters::NONE, scratch)?,
                _ => continue,
            };
            let stored =
                target.convert(given, scratch).map_err(|error| target.error_in(&table.definition.name, error))?;
            values[position] = stored.to_value();
        }
        let assignments = rows.plan.load.iter().flat_map(|load| &load.assignments).take(rows.assignments);
        let assignments = assignments.map(|(column, value)| (column, value));
        for (column, source) in columns.iter().map(|column| (column, &form[usize::from(column.0)])).chain(assignments) {
            let position = usize::from(column.0);
            let column = &table.definition.columns[position];
            let target = StoreTarget { column, row_number, mode: rows.mode() };
            let given = match source {
                InsertValue::Stored(stored) => {
                    values[position] = stored.clone();
                    keeps_zero |= column.auto_increment;
                    continue;
                }
                // The value is generated once the rest of the row is known to be valid.
                InsertValue::Generated => ValueRef::Null,
                InsertValue::Deferred(_) => continue,
                InsertValue::Now(digits) => scratch.now(*digits),
                InsertValue::Parameter(ordinal) => match rows.literal(*ordinal, row) {
                    Some((text, literal)) => literal_value(text, literal, decoded),
                    None => rows.parameters_of(row).get(*ordinal),
                },
                InsertValue::Computed(expression) => {
                    image.clear();
                    let known: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
                    table.row_format.encode(&known, image)?;
                    expression.evaluate_unrounded(Some(RowView::new(&table.row_format, image)), parameters, scratch)?
                }
            };
            if column.auto_increment && given.is_null() {
                (values[position], keeps_zero) = (column.value_before_assignment(), false);
                continue;
            }
            let stored =
                target.convert(given, scratch).map_err(|error| target.error_in(&table.definition.name, error))?;
            values[position] = stored.to_value();
            keeps_zero |= column.auto_increment && rows.plan.auto.is_some_and(|auto| auto.rules.keeps_zero);
        }
        Ok((values, keeps_zero))
    }

    /// Adds the last encoded row to the list, with the parameters that ON DUPLICATE KEY UPDATE may need.
    fn keep_row(
        &mut self,
        rows: &Rows<'_>,
        row: usize,
        (hash, partition): (u64, u16),
        generated: Option<u64>,
    ) -> Result<()> {
        if rows.uniform_rows.is_some() {
            self.fill_row(rows, row)?;
        }
        let image = KeyedImage { key: HashedKey { hash, key: self.key }, image: self.image };
        let parameters: &[u8] = match (rows.uniform_rows, rows.selected) {
            (Some(_), _) => self.row_parameters,
            (None, Some(selected)) if rows.plan.conflict.reads_selected() => selected.row(rows.selected_row(row)),
            _ => &[],
        };
        let generated = generated.unwrap_or(0);
        if let Some(kept) = self.kept.as_deref_mut() {
            kept.push(RowRef { partition, image, parameters, generated });
        }
        Ok(())
    }

    /// Decodes all escaped strings of a row into one buffer, before values borrow from the buffer.
    fn decode_strings(&mut self, rows: &Rows<'_>, row: usize, form: &[InsertValue]) {
        self.strings.clear();
        self.string_ends.clear();
        if rows.uniform_rows.is_none() {
            return;
        }
        match &rows.plan.order {
            None => form.iter().for_each(|value| self.decode_string(rows, row, value)),
            Some(order) => order.iter().for_each(|column| self.decode_string(rows, row, &form[usize::from(column.0)])),
        }
    }

    #[inline]
    fn decode_string(&mut self, rows: &Rows<'_>, row: usize, value: &InsertValue) {
        if let InsertValue::Parameter(ordinal) = value
            && let Some((text, literal)) = rows.literal(*ordinal, row)
            && literal.has_escapes
        {
            literal.decode(text, self.strings);
            self.string_ends.push(self.strings.len());
        }
    }
}

/// Converts the values of one row that depend on no other column.
struct GivenValues<'v, 'r> {
    rows: &'v Rows<'v>,
    row: usize,
    row_number: u64,
    row_parameters: Parameters<'v>,
    scratch: &'v Scratch,
    decoded: Decoded<'v>,
    range: &'r mut AutoIncrementRange,
    /// The AUTO_INCREMENT value that was generated.
    generated: Option<u64>,
}

impl<'v> GivenValues<'v, '_> {
    /// The value that a column gets.
    #[inline(always)]
    fn value(&mut self, source: &'v InsertValue, column: &'v ColumnDefinition) -> Result<ValueRef<'v>> {
        let (rows, scratch) = (self.rows, self.scratch);
        let target = StoreTarget { column, row_number: self.row_number, mode: rows.mode() };
        let given = match source {
            InsertValue::Stored(stored) | InsertValue::Deferred(stored) => return Ok(stored.as_ref()),
            InsertValue::Generated => ValueRef::Null,
            InsertValue::Now(digits) => scratch.now(*digits),
            InsertValue::Parameter(ordinal) => match rows.literal(*ordinal, self.row) {
                Some((_, literal)) if literal.has_escapes => ValueRef::Bytes(self.decoded.next()),
                Some((text, literal)) => plain_literal_value(text, literal),
                None => rows.parameters_of(self.row).get(*ordinal),
            },
            InsertValue::Computed(expression) => expression.evaluate_unrounded(None, self.row_parameters, scratch)?,
        };
        let asks = column.auto_increment && given.is_null();
        let converted = match asks {
            true => ValueRef::Null,
            false => {
                let table = &rows.plan.table.definition.name;
                target.convert(given, scratch).map_err(|error| target.error_in(table, error))?
            }
        };
        let replaces_zero = || rows.plan.auto.is_some_and(|auto| !auto.rules.keeps_zero);
        match asks || column.auto_increment && is_zero(converted) && replaces_zero() {
            false => Ok(converted),
            true => {
                let number = number_of_column((column, rows.plan.auto), self.range, &mut self.generated)?;
                target.convert(ValueRef::UInt(number), scratch)
            }
        }
    }

    /// The values of the columns, which are evaluated in this order.
    #[cold]
    fn values_in_order(
        &mut self,
        order: &[ColumnNumber],
        form: &'v [InsertValue],
        values: &mut [ValueRef<'v>],
    ) -> Result<()> {
        let columns = &self.rows.plan.table.definition.columns;
        for position in order.iter().map(|column| usize::from(column.0)) {
            values[position] = self.value(&form[position], &columns[position])?;
        }
        Ok(())
    }
}

/// The decoded strings of a row, in the order in which the columns are evaluated.
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

/// Encodes a row and its keys.
fn encode_row(
    plan: &InsertPlan,
    values: &[ValueRef<'_>],
    image: &mut Vec<u8>,
    key: &mut Vec<u8>,
    partition_key: &mut Vec<u8>,
) -> Result<()> {
    let definition = &plan.table.definition;
    image.clear();
    plan.table.row_format.encode(values, image)?;
    append_key(definition, &definition.primary().columns, values, key);
    if !plan.key_is_partition {
        append_key(definition, &definition.partition_columns, values, partition_key);
    }
    Ok(())
}

/// Encodes the key of the given columns, whose values are those of the row.
fn append_key(definition: &TableDefinition, columns: &[ColumnNumber], values: &[ValueRef<'_>], key: &mut Vec<u8>) {
    key.clear();
    for index in columns {
        let column = &definition.columns[usize::from(index.0)];
        append_value(column.column_type.key_part(), column.nullable, values[usize::from(index.0)], key);
    }
}

fn is_zero(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Int(value) => value == 0,
        ValueRef::UInt(value) => value == 0,
        ValueRef::Double(value) => value == 0.0,
        ValueRef::Float(value) => value == 0.0,
        _ => false,
    }
}

/// The explicit AUTO_INCREMENT value; `None` for zero or NULL, for which a value is generated.
pub(super) fn number_of(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Int(0) | ValueRef::UInt(0) | ValueRef::Null => None,
        ValueRef::UInt(value) => Some(value),
        // Negative values do not raise the counter.
        ValueRef::Int(value) => Some(value.max(0) as u64),
        ValueRef::Double(0.0) => None,
        ValueRef::Double(value) => Some(value.max(0.0) as u64),
        ValueRef::Float(0.0) => None,
        ValueRef::Float(value) => Some(value.max(0.0) as u64),
        _ => Some(0),
    }
}
