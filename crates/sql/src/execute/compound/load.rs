//! LOAD DATA and LOAD XML: reads the lines or rows of a file and inserts them in batches, like the rows of a
//! query.
//!
//! The client of LOAD DATA LOCAL sends the file in packets, each at the server's request, so that at most one
//! packet and an incomplete line are in memory. The client sends the file to its end whatever happens. After
//! an error the session therefore discards the rest of the file and then answers. A file of the server is
//! read in parts, each when the lines of the last one are inserted.

use junctor_expression::ParametersBuilder;
use junctor_gateway::file::{FileAnswer, FileBuffer, FileStep, FileUse};
use junctor_gateway::gateway::NO_OPERATION;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::ColumnDefinition;
use junctor_model::store::StoreMode;
use junctor_model::user_value::UserValue;
use junctor_model::value::{Value, ValueRef};
use junctor_signals::read_rows::OperationId;

use super::drive::{Next, continue_steps, unexpected_step};
use super::insert::Insert;
use super::line_values::{LINES_MAX, LineStep, LineValues, compute_lines};
use super::lines::{Line, LineOutcome, LineReader};
use super::source::{BATCH_ROWS_MAX, SelectedRows, make_batch};
use super::state::{CompoundState, Step, Work};
use super::xml_rows::XmlReader;
use crate::execute::completion::{fail, interrupted};
use crate::execute::context::StatementContext;
use crate::execute::server_file::{FILE_STEP_BYTES, FileAttempt};
use crate::execute::state::Execution;
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::{FileEncoding, InsertPlan, LoadPlan, LoadTarget};
use crate::result::Progress;

/// Maximum bytes of a line. A longer line is error 1153.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

/// The file of a LOAD DATA.
#[derive(Debug)]
pub(super) struct LoadInput {
    reader: Reader,
    line: Line,
    /// A field in UTF-8.
    converted: Vec<u8>,
    /// Lines that are still to be skipped.
    skipped_lines: u64,
    has_ended: bool,
    /// The values of the variables among the fields, from the last line.
    variables: Vec<(Box<str>, Value)>,
    /// The file of the server; `None` if the client sends the file.
    server_file: Option<OperationId>,
    /// Memory for the next part of the file of the server.
    buffer: FileBuffer,
    /// The error of a line, while those before it are inserted.
    pub failed: Option<Box<Error>>,
    /// Whether the file of the server has been opened.
    was_opened: bool,
    /// The lines whose values of SET queries compute.
    pub queries: LineValues,
}

/// The reader of a file's format.
#[derive(Debug)]
enum Reader {
    Lines(LineReader),
    Xml(XmlReader),
}

impl Reader {
    fn of(plan: &LoadPlan) -> Reader {
        match &plan.xml {
            None => Reader::Lines(LineReader::new(&plan.format, &plan.widths)),
            Some(names) => Reader::Xml(XmlReader::new(&names.row, names.fields.iter().cloned())),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self {
            Reader::Lines(lines) => lines.push(bytes),
            Reader::Xml(rows) => rows.push(bytes),
        }
    }

    fn end(&mut self) {
        match self {
            Reader::Lines(lines) => lines.end(),
            Reader::Xml(rows) => rows.end(),
        }
    }

    fn unread_bytes(&self) -> usize {
        match self {
            Reader::Lines(lines) => lines.unread_bytes(),
            Reader::Xml(rows) => rows.unread_bytes(),
        }
    }

    fn skip(&mut self, line: &mut Line) -> LineOutcome {
        match self {
            Reader::Lines(lines) => lines.skip_line(line),
            Reader::Xml(rows) => rows.next_row(line),
        }
    }

    /// Reads the next line, of which at most `count` fields are kept.
    fn next(&mut self, count: usize, line: &mut Line) -> LineOutcome {
        match self {
            Reader::Lines(lines) => lines.next_line(count, line),
            Reader::Xml(rows) => rows.next_row(line),
        }
    }
}

impl LoadInput {
    /// `server_file` is the file of the server; `None` if the client sends the file.
    pub fn new(plan: &LoadPlan, server_file: Option<OperationId>) -> LoadInput {
        LoadInput {
            reader: Reader::of(plan),
            line: Line::default(),
            converted: Vec::new(),
            skipped_lines: plan.skipped_lines,
            has_ended: false,
            variables: Vec::new(),
            server_file,
            buffer: FileBuffer::new(),
            failed: None,
            was_opened: false,
            queries: LineValues::default(),
        }
    }

    /// Closes the file of the server, if it is open.
    pub fn close(&mut self, context: &mut StatementContext<'_, '_>) {
        if let Some(operation) = self.server_file.take() {
            context.engine.gateway.discard_file(operation, false, context.turn);
        }
    }
}

/// The rest of a file that a client sends although its statement has failed.
#[derive(Debug)]
pub(crate) struct DiscardState {
    /// The error of the statement.
    pub error: Box<Error>,
}

/// Opens the file of the server, or requests the file of LOAD DATA LOCAL from the client. Returns the
/// operation of a file of the server. Errors: 3948; those of files of the server.
pub(super) fn request_file(context: &mut StatementContext<'_, '_>, plan: &LoadPlan) -> Result<Option<OperationId>> {
    if !plan.is_local {
        return context.open_server_file(&String::from_utf8_lossy(&plan.file), FileUse::Read).map(Some);
    }
    let is_allowed = context.engine.globals.value_named("local_infile") == Value::Int(1);
    if !is_allowed || !context.sink.request_file(&plan.file) {
        let message = "Loading local data is disabled; this must be enabled on both the client and server sides";
        return Err(Error::new(ErrorCode::LocalFilesDisabled, message));
    }
    Ok(None)
}

/// Continues a LOAD DATA with an answer about its file of the server.
pub(super) fn resume_file(
    context: &mut StatementContext<'_, '_>,
    mut state: Box<CompoundState>,
    step: FileAnswer,
    bytes: FileBuffer,
) -> Progress {
    let CompoundState { steps, work: Work::Insert(plan, work) } = &mut *state else {
        unexpected_step("bytes of a file for a statement that loads none")
    };
    let source = work.source.as_mut().and_then(|source| source.load.as_mut()).zip(plan.load.as_ref());
    let Some((input, load)) = source else { unexpected_step("bytes of a file that is not open") };
    steps.operation = NO_OPERATION;
    let taken = match step {
        Ok(FileStep::Read) => {
            if !bytes.is_empty() {
                input.reader.push(&bytes);
            }
            // Fewer bytes than were asked for are the last ones.
            if bytes.len() < FILE_STEP_BYTES {
                input.reader.end();
            }
            input.buffer = bytes;
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) => {
            let attempt = if input.was_opened { FileAttempt::Read } else { FileAttempt::Open };
            Err(context.server_file_error(&String::from_utf8_lossy(&load.file), attempt, error))
        }
    };
    input.was_opened = true;
    let next = match steps.is_stopped {
        true => Err(interrupted()),
        false => taken.and_then(|()| advance_load(context, &mut Insert { plan, steps, work })),
    };
    continue_steps(context, state, next)
}

/// Continues a LOAD DATA with bytes of its file. Empty bytes are the end of the file.
pub(crate) fn receive_file(context: &mut StatementContext<'_, '_>, bytes: &[u8]) -> Progress {
    match std::mem::take(&mut context.session.execution) {
        Execution::Compound(mut state) if state.steps.awaits_input => {
            state.steps.awaits_input = false;
            state.steps.is_receiving = !bytes.is_empty();
            let CompoundState { steps, work: Work::Insert(plan, work) } = &mut *state else {
                unexpected_step("bytes of a file for a statement that loads none")
            };
            if !matches!(steps.step, Step::Select) {
                // The statement is being rolled back.
                context.session.execution = Execution::Compound(state);
                return Progress::Waiting;
            }
            if let Some(load) = work.source.as_mut().and_then(|source| source.load.as_mut()) {
                match bytes.is_empty() {
                    true => load.reader.end(),
                    false => load.reader.push(bytes),
                }
            }
            let next = match steps.is_stopped {
                true => Err(interrupted()),
                false => advance_load(context, &mut Insert { plan, steps, work }),
            };
            continue_steps(context, state, next)
        }
        Execution::Discarding(state) if bytes.is_empty() => fail(context, &state.error),
        Execution::Discarding(state) => {
            context.session.execution = Execution::Discarding(state);
            Progress::AwaitsInput
        }
        other => {
            context.session.execution = other;
            Progress::Waiting
        }
    }
}

/// Inserts the next lines, or requests more of the file. No insert may be pending.
pub(super) fn advance_load(context: &mut StatementContext<'_, '_>, insert: &mut Insert<'_>) -> Result<Next> {
    insert.steps.step = Step::Select;
    insert.steps.operation = NO_OPERATION;
    loop {
        let Some(source) = insert.work.source.as_deref_mut() else { unexpected_step("a file without a source") };
        let (Some(load), Some(plan)) = (source.load.as_mut(), insert.plan.load.as_ref()) else {
            unexpected_step("a file that the statement does not load")
        };
        if !load.queries.has_lines()
            && let Some(error) = load.failed.take()
        {
            return Err(error);
        }
        if load.queries.has_lines() {
            match compute_lines(context, insert)? {
                LineStep::Wait => return Ok(Next::Wait),
                LineStep::Batch => match make_batch(context, insert)? {
                    Some(next) => return Ok(next),
                    None => continue,
                },
            }
        }
        let session_values = junctor_expression::Parameters::from_bytes(&insert.steps.parameters);
        let mut rows = RowMaker { plan: insert.plan, load: plan, session_values, batch: &mut source.batch };
        rows.batch.clear();
        let outcome = rows.read_lines(context, load, source.rows_before);
        if source.batch.len() > 0 && !plan.queries.queries.is_empty() {
            load.failed = outcome.err();
            load.queries.begin(std::mem::take(&mut source.batch));
            continue;
        }
        if source.batch.len() > 0 {
            // An error of a line is reported when the lines before it are inserted, which may fail, too.
            load.failed = outcome.err();
            if let Some(next) = make_batch(context, insert)? {
                return Ok(next);
            }
            continue;
        }
        if outcome? == LineOutcome::End {
            load.has_ended = true;
            load.close(context);
            let collation = plan.encoding.collation();
            for (name, value) in load.variables.drain(..) {
                let value = UserValue::new(value, collation);
                context.session.variables.put_user_variable(&name, value)?;
            }
            return Ok(Next::Done);
        }
        if let Some(operation) = load.server_file {
            let buffer = std::mem::take(&mut load.buffer);
            context.engine.gateway.read_file(operation, FILE_STEP_BYTES as u32, buffer, context.turn);
            insert.steps.operation = operation;
            return Ok(Next::Wait);
        }
        insert.steps.awaits_input = true;
        return Ok(Next::AwaitInput);
    }
}

/// Makes rows of lines.
struct RowMaker<'a> {
    plan: &'a InsertPlan,
    load: &'a LoadPlan,
    session_values: junctor_expression::Parameters<'a>,
    batch: &'a mut SelectedRows,
}

impl RowMaker<'_> {
    /// Reads lines until the batch is full or the file is used up. A line with warnings is the last one of
    /// its batch, so that the warnings are in the order of the lines.
    fn read_lines(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        input: &mut LoadInput,
        rows_before: u64,
    ) -> Result<LineOutcome> {
        let scratch = &mut context.engine.work.scratch;
        scratch.set_now(context.session.variables.timestamp_us.unwrap_or(context.turn.wall_clock_us));
        while input.skipped_lines > 0 {
            match input.reader.skip(&mut input.line) {
                LineOutcome::Line => input.skipped_lines -= 1,
                other => return input.check_length(other),
            }
        }
        let rows_max = if self.load.queries.queries.is_empty() { BATCH_ROWS_MAX } else { LINES_MAX };
        while self.batch.len() < rows_max {
            match input.reader.next(self.load.fields.len(), &mut input.line) {
                LineOutcome::Line => {}
                other => return input.check_length(other),
            }
            let row_number = rows_before + self.batch.len() as u64 + 1;
            let warnings_before = context.session.warning_count;
            self.push_row(context, input, row_number)?;
            if context.session.warning_count != warnings_before {
                break;
            }
        }
        Ok(LineOutcome::Line)
    }

    /// Adds the row of the current line to the batch.
    fn push_row(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        input: &mut LoadInput,
        row_number: u64,
    ) -> Result<()> {
        let mut builder = std::mem::take(&mut context.engine.work.builder);
        builder.clear();
        let made = self.add_values(context, input, row_number, &mut builder);
        let made = made.and_then(|()| self.batch.append(&mut builder));
        context.engine.work.builder = builder;
        made
    }

    fn add_values(
        &mut self,
        context: &mut StatementContext<'_, '_>,
        input: &mut LoadInput,
        row_number: u64,
        builder: &mut ParametersBuilder,
    ) -> Result<()> {
        let add_session_values = |builder: &mut ParametersBuilder| {
            (0..self.session_values.count()).for_each(|number| builder.push(self.session_values.get(number as u16)));
        };
        if self.load.session_values_first {
            add_session_values(builder);
        }
        input.variables.clear();
        let LoadInput { line, variables, converted, .. } = input;
        let mut start = 0;
        for (position, target) in self.load.fields.iter().enumerate() {
            let field = line.fields.get(position).copied();
            let value = match field {
                None => None,
                Some((end, is_null)) => {
                    let mut bytes = &line.bytes[start..end];
                    start = end;
                    converted.clear();
                    if self.load.encoding.convert(bytes, converted) {
                        bytes = converted;
                    }
                    Some(if is_null { ValueRef::Null } else { ValueRef::Bytes(bytes) })
                }
            };
            match target {
                LoadTarget::Variable(name) => {
                    let value = value.unwrap_or(ValueRef::Null);
                    builder.push(value);
                    // With queries, the variables get their values before those of each line begin.
                    if self.load.queries.queries.is_empty() {
                        variables.retain(|(known, _)| known != name);
                        variables.push((name.clone(), value.to_value()));
                    }
                }
                LoadTarget::Column(column) => {
                    let column = &self.plan.table.definition.columns[usize::from(column.0)];
                    self.add_column(context, (column, value), row_number, builder)?;
                }
            }
        }
        if line.has_more {
            let message =
                format!("Row {row_number} was truncated; it contained more data than there were input columns");
            self.warn(context, ErrorCode::TooManyFields, message)?;
        }
        if !self.load.session_values_first {
            add_session_values(builder);
        }
        Ok(())
    }

    /// Adds the value of a field for a column. `None` is a field that the line does not have.
    fn add_column(
        &self,
        context: &mut StatementContext<'_, '_>,
        (column, value): (&ColumnDefinition, Option<ValueRef<'_>>),
        row_number: u64,
        builder: &mut ParametersBuilder,
    ) -> Result<()> {
        match value {
            Some(ValueRef::Null) if !column.nullable && !column.auto_increment => {
                let name = &column.name;
                let message = format!(
                    "Column set to default value; NULL supplied to NOT NULL column '{name}' at row {row_number}"
                );
                self.warn(context, ErrorCode::LoadedNull, message)?;
                builder.push(column.column_type.implicit_default().as_ref());
            }
            // As in MySQL, also with IGNORE and where no `sql_mode` is strict.
            Some(ValueRef::Bytes(_)) if self.load.encoding == FileEncoding::Binary && column.column_type.is_json() => {
                return Err(Error::binary_document());
            }
            Some(value) => builder.push(value),
            None => {
                let message = format!("Row {row_number} doesn't contain data for all columns");
                self.warn(context, ErrorCode::TooFewFields, message)?;
                match column.default_now {
                    true => builder.push(context.engine.work.scratch.now(column.column_type.scale())),
                    false if column.auto_increment => builder.push(ValueRef::Null),
                    false => {
                        let value = column.value_before_assignment();
                        // As in MySQL, no field of a row of a fixed size is NULL.
                        let is_null = value.is_null() && !self.load.widths.is_empty();
                        let value = if is_null { column.column_type.implicit_default() } else { value };
                        builder.push(value.as_ref());
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a warning, which is an error in a strict mode.
    fn warn(&self, context: &mut StatementContext<'_, '_>, code: ErrorCode, message: String) -> Result<()> {
        if self.plan.mode == StoreMode::Strict {
            return Err(Error::new(code, message));
        }
        context.session.warn(WarningLevel::Warning, code.errno(), message.into());
        Ok(())
    }
}

impl LoadInput {
    fn check_length(&self, outcome: LineOutcome) -> Result<LineOutcome> {
        let is_unfinished = outcome == LineOutcome::NeedsMore && self.reader.unread_bytes() > LINE_BYTES_MAX;
        if is_unfinished || outcome == LineOutcome::TooLong {
            return Err(Error::new(ErrorCode::PacketTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes"));
        }
        Ok(outcome)
    }
}
