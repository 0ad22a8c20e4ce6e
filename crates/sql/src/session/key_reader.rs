//! Hot path: at most 100 instructions per read, not counting its keys.
//!
//! Key readers, which read rows by primary key without a statement. A key reader is planned once, as a query
//! of its table without a condition. Each read then provides keys, and needs neither parsing nor planning.

use std::sync::Arc;

use junctor_gateway::invariant;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::quoted_name::push_quoted_name;
use junctor_model::row_encoding::ResultColumn;
use junctor_signals::program::{Access, Output, ReadProgram};
use junctor_wire::field::FieldReader;
use junctor_wire::request::parse_keys;
use junctor_wire::{KEYS_MAX, KeyValues};

use crate::bind::message;
use crate::execute::Session;
use crate::execute::{Engine, KeyReader};
use crate::execute::{InputForm, KeyReadPlan, PlanInput, StatementContext, StatementInput, fail, start_key_read};
use crate::parse::parse;
use crate::plan::{AccessPath, FinalStep, OperationKind, Plan, SelectPlan, living_at_parameter};
use crate::result::Progress;
use junctor_signals::program::RowProtocol;

/// The table and columns of a new key reader.
#[derive(Clone, Copy, Debug)]
pub struct KeyReaderRequest<'a> {
    /// The reader's number, which the client chooses. An existing reader of that number is replaced.
    pub reader: u32,
    /// The name of the database; empty for the session's.
    pub database: &'a str,
    /// The name of the table.
    pub table: &'a str,
    /// The names of the columns to return, in that order.
    pub columns: &'a [&'a str],
}

/// One read by a prepared reader.
#[derive(Clone, Copy, Debug)]
pub struct KeyReadRequest<'a> {
    /// The number of the reader.
    pub reader: u32,
    /// The decoded keys.
    pub keys: KeyValues<'a>,
    /// The keys as received, preceded by their form and count; kept for a retry.
    pub bytes: &'a [u8],
}

impl StatementContext<'_, '_> {
    /// Prepares a reader under the number that the client has chosen.
    pub(super) fn prepare_reader(&mut self, request: &KeyReaderRequest<'_>) -> Progress {
        let reader = request.reader;
        self.engine.counters.prepares += 1;
        self.session.clear_diagnostics();
        self.engine.close_reader(self.session, reader);
        match self.try_prepare_reader(request) {
            Ok(prepared) => {
                let plan = &prepared.plan;
                let columns = plan.table.definition.primary().columns.len() as u16;
                self.sink.prepared(reader, columns, &plan.header, &self.session.completion());
                self.session.key_readers.insert(reader, Box::new(prepared));
                self.engine.prepared_count += 1;
                Progress::Done
            }
            Err(error) => fail(self, &error),
        }
    }

    /// Reads rows by their keys.
    #[inline]
    pub(super) fn execute_read_keys(&mut self, request: KeyReadRequest<'_>) -> Progress {
        let KeyReadRequest { reader, keys, bytes } = request;
        self.engine.counters.questions += 1;
        self.engine.counters.selects += 1;
        self.execute_key_read(reader, keys, StatementInput::new(InputForm::Keys(reader, bytes)))
    }

    /// Starts a read again after it has waited, or after its table definition has changed.
    pub(super) fn retry_key_read(&mut self, reader: u32, input: StatementInput<'_>, bytes: &[u8]) -> Progress {
        match parse_keys(&mut FieldReader::new(bytes)) {
            Ok(keys) => self.execute_key_read(reader, keys, input),
            Err(error) => invariant::fail("keys that were parsed once are well-formed", format_args!("{error}")),
        }
    }

    fn execute_key_read(&mut self, reader: u32, keys: KeyValues<'_>, input: StatementInput<'_>) -> Progress {
        if self.session.has_diagnostics() {
            self.session.clear_diagnostics();
        }
        if keys.len() > KEYS_MAX {
            return fail(self, &Error::new(ErrorCode::PacketTooLarge, "Too many keys in one read"));
        }
        let read = match self.current_reader(reader) {
            Ok(read) => read,
            Err(error) => return fail(self, &error),
        };
        if read.plan.rights.checked() != self.session.rights_number
            && let Err(error) = self.check_plan(&Plan::Select(Arc::clone(&read.plan)), &input)
        {
            return fail(self, &error);
        }
        if self.session.transaction.explicit || self.engine.tables.any() {
            // If the read must wait, the workspace's parameters are copied with it. A key read has none, so
            // they are cleared.
            self.engine.work.parameters.clear();
            let plan = Plan::Select(Arc::clone(&read.plan));
            let input = PlanInput { protocol: RowProtocol::Binary, shaped_text: None, input };
            if let Some(progress) = self.enter_tables(&plan, &input) {
                return progress;
            }
        }
        self.session.operation = if keys.len() > 1 { OperationKind::BatchRead } else { OperationKind::PointRead };
        start_key_read(self, read, keys, input)
    }

    /// The plan of a reader for the current schema and settings. Errors: 1243; 1615 if its columns differ
    /// from those that the client knows; 1235 in SERIALIZABLE transactions, because their reads lock.
    #[inline]
    fn current_reader(&mut self, reader: u32) -> Result<KeyReadPlan> {
        let settings = self.session.plan_settings();
        let dictionary = &self.engine.gateway.catalog().dictionary;
        let Some(known) = self.session.key_readers.get_mut(&reader) else { return Err(unknown_reader(reader)) };
        let is_current = known.dictionary_version == dictionary.version || known.plan.is_current(dictionary);
        if is_current && known.settings == settings {
            known.dictionary_version = dictionary.version;
            return Ok(KeyReadPlan { plan: Arc::clone(&known.plan), program: Arc::clone(&known.program) });
        }
        self.replan_reader(reader)
    }

    #[cold]
    fn replan_reader(&mut self, reader: u32) -> Result<KeyReadPlan> {
        let Some(known) = self.session.key_readers.get(&reader) else { return Err(unknown_reader(reader)) };
        let planned = self.plan_reader(&known.text, known.database.as_deref())?;
        let same = |left: &ResultColumn, right: &ResultColumn| {
            (left.wire_type, left.flags, left.charset) == (right.wire_type, right.flags, right.charset)
        };
        let (before, now) = (&known.plan.header.columns, &planned.plan.header.columns);
        let is_same = before.len() == now.len() && before.iter().zip(now).all(|(before, now)| same(before, now));
        if !is_same || !have_same_keys(&known.plan, &planned.plan) {
            return Err(Error::new(ErrorCode::NeedsReprepare, "Prepared statement needs to be re-prepared"));
        }
        let read = KeyReadPlan { plan: Arc::clone(&planned.plan), program: Arc::clone(&planned.program) };
        self.session.key_readers.insert(reader, Box::new(planned));
        Ok(read)
    }

    fn try_prepare_reader(&self, request: &KeyReaderRequest<'_>) -> Result<KeyReader> {
        if self.engine.prepared_count >= self.engine.settings.prepared_statements_max {
            return Err(message::too_many_prepared(self.engine.settings.prepared_statements_max));
        }
        let mut text = String::from("SELECT ");
        for (position, column) in request.columns.iter().enumerate() {
            text.push_str(if position > 0 { ", " } else { "" });
            push_quoted_name(column, &mut text);
        }
        text.push_str(" FROM ");
        if !request.database.is_empty() {
            push_quoted_name(request.database, &mut text);
            text.push('.');
        }
        push_quoted_name(request.table, &mut text);
        self.plan_reader(&text, self.session.database())
    }

    fn plan_reader(&self, text: &str, database: Option<&str>) -> Result<KeyReader> {
        let parsed = parse(text.as_bytes()).map_err(|error| message::of_parse_error(&error))?;
        let planned = self.plan_without_parameters(&parsed.statement, database)?;
        let plan = match planned.map(|planned| planned.plan) {
            Some(Plan::Select(plan)) => plan,
            _ => return Err(Error::not_supported("reads by key of a virtual table")),
        };
        let program = Arc::new(by_keys(&plan)?);
        Ok(KeyReader {
            text: text.into(),
            database: database.map(Box::from),
            program,
            plan,
            settings: self.session.plan_settings(),
            dictionary_version: self.engine.gateway.catalog().dictionary.version,
        })
    }
}

impl Engine {
    /// Removes a reader.
    pub fn close_reader(&mut self, session: &mut Session, reader: u32) {
        if session.key_readers.remove(&reader).is_some() {
            self.prepared_count = self.prepared_count.saturating_sub(1);
        }
    }
}

/// Restricts the query without a condition to given keys.
fn by_keys(select: &SelectPlan) -> Result<ReadProgram> {
    if select.locking_program.is_some() {
        return Err(Error::not_supported("reads by key in SERIALIZABLE transactions"));
    }
    let definition = &select.table.definition;
    let primary = &definition.primary().columns;
    let is_hidden = primary.iter().any(|column| definition.columns[usize::from(column.0)].hidden);
    let has_row_plan = matches!(&select.program.output, Output::Packets(projection) if projection.row_plan.is_some());
    // The time of each read is its parameter, and the condition on it the only filter.
    let filter = living_at_parameter(&select.table, 0)?;
    let is_plain = matches!(select.final_step, FinalStep::Stream)
        && matches!(select.path, AccessPath::AllRows(_))
        && select.program.filter.is_some() == filter.is_some();
    if !has_row_plan {
        return Err(Error::not_supported(
            "reads by key of a TIMESTAMP column, or of a virtual column that ALTER TABLE added",
        ));
    }
    if is_hidden || !is_plain {
        return Err(Error::not_supported("reads by key of a table without a primary key"));
    }
    Ok(ReadProgram {
        access: Access::PrimaryKeys,
        reads_parameters: filter.is_some(),
        filter,
        marks_missing: true,
        ..ReadProgram::clone(&select.program)
    })
}

/// Whether the columns of the primary key have kept their names and types.
fn have_same_keys(before: &SelectPlan, now: &SelectPlan) -> bool {
    let (before, now) = (&before.table.definition, &now.table.definition);
    let (keys_before, keys_now) = (&before.primary().columns, &now.primary().columns);
    keys_before.len() == keys_now.len()
        && keys_before.iter().zip(keys_now).all(|(left, right)| {
            let (left, right) = (&before.columns[usize::from(left.0)], &now.columns[usize::from(right.0)]);
            left.name == right.name && left.column_type == right.column_type
        })
}

fn unknown_reader(reader: u32) -> Box<Error> {
    Error::new(ErrorCode::UnknownPreparedStatement, format!("Unknown reader of keys ({reader})"))
}
