//! Hot path: at most 150 instructions per execution, not counting those of its plan.
//!
//! Prepared statements. A plan is made for the kinds of the bound values, and is reused while these kinds and
//! the schema stay the same. Values that only the session knows, such as `NOW()`, are bound by the session at
//! each execution.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use junctor_expression::{Coercibility, Kind, Parameters, ResultType};
use junctor_gateway::invariant;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::ValueRef;
use junctor_signals::program::RowProtocol;

use super::estimates::is_outdated;
use super::lock_calls::refuse_lock_calls;
use super::text::{is_shown, keeps_diagnostics};
use crate::bind::{ParameterKind, PatternPrefix, message};
use crate::execute::Engine;
use crate::execute::Session;
use crate::execute::{InputForm, LockCallMode, PlanInput, StatementContext, StatementInput, fail};
use crate::parse::session_value::SessionValue;
use crate::parse::statement::InsertSource;
use crate::parse::{ParameterNumber, Statement, parse_in};
use crate::plan::Plan;
use crate::plan::PreparedStatement;
use crate::plan::kind_of_value;
use crate::plan::{SHARED_BYTES_MAX, StatementKey};
use crate::result::{Progress, ResultHeader};

/// Maximum length of a statement that can be prepared, in bytes.
const PREPARED_BYTES_MAX: usize = 1 << 20;
/// Maximum estimated bytes of the prepared statements of all sessions of a block. More give error 1041.
const PREPARED_BYTES_ALL_MAX: usize = 256 << 20;
/// Estimated bytes of a prepared statement without its text.
const STATEMENT_BYTES: usize = 2048;
/// Estimated bytes of the syntax tree and the plan for each byte of text. A name or number of three
/// characters may already become a node in both.
const STATEMENT_BYTES_PER_TEXT_BYTE: usize = 96;
/// The assumed kind of a parameter that has had no value yet.
const UNBOUND: ParameterKind = ParameterKind::of(Kind::Int);
/// Length of the type of a text that is a parameter, in characters.
const PARAMETER_CHARACTERS: u32 = 65_535;
/// Maximum length of the text kept for SHOW PROCESSLIST, in bytes.
const SHOWN_BYTES_MAX: usize = 4096;

/// One execution of a prepared statement.
#[derive(Debug)]
pub struct PreparedExecution<'a> {
    /// The number of the statement.
    pub statement: u32,
    /// The values, encoded as `junctor_expression::Parameters`. The execution takes them, and leaves another
    /// buffer.
    pub parameters: &'a mut Vec<u8>,
    /// Whether the rows of a query stay in the session until the client fetches them.
    pub wants_cursor: bool,
}

// Shared statements are compared by their kept text, which must therefore be complete.
const _: () = assert!(SHARED_BYTES_MAX < SHOWN_BYTES_MAX);

impl StatementContext<'_, '_> {
    /// Prepares a statement and sends its number and columns.
    pub(crate) fn prepare(&mut self, text: &[u8]) -> Progress {
        self.engine.counters.prepares += 1;
        self.session.clear_diagnostics();
        match self.try_prepare(text) {
            Ok((id, plan)) => {
                let parameters = self.session.statements.get(id).map_or(0, |statement| statement.parameter_count);
                let no_columns = ResultHeader::default();
                let header = plan.as_ref().and_then(Plan::header).unwrap_or(&no_columns);
                self.sink.prepared(id, parameters, header, &self.session.completion());
                Progress::Done
            }
            Err(error) => fail(self, &error),
        }
    }

    pub(super) fn try_prepare(&mut self, text: &[u8]) -> Result<(u32, Option<Plan>)> {
        if self.engine.prepared_count >= self.engine.settings.prepared_statements_max {
            return Err(message::too_many_prepared(self.engine.settings.prepared_statements_max));
        }
        if self.engine.prepared_bytes > PREPARED_BYTES_ALL_MAX {
            let message = "Out of memory; the prepared statements of all sessions take too much";
            return Err(Error::new(ErrorCode::OutOfResources, message));
        }
        if text.len() > PREPARED_BYTES_MAX {
            return Err(Error::not_supported("a prepared statement of more than 1 MiB"));
        }
        self.session.seed = self.turn.random.word();
        let key = StatementKey { text, database: self.session.database(), settings: self.session.plan_settings() };
        let dictionary = &self.engine.gateway.catalog().dictionary;
        let is_unbound = |statement: &PreparedStatement| statement.split_kinds().0.iter().all(|kind| *kind == UNBOUND);
        if let Some(statement) = self.engine.shared_statements.get(&key, is_unbound, dictionary) {
            let plan = statement.plan.clone();
            self.session.warn_of(&statement.deprecations);
            return Ok((self.engine.keep_prepared(self.session, statement), plan));
        }
        let parsed =
            parse_in(text, self.session.variables.dialect()).map_err(|error| message::of_parse_error(&error))?;
        // The parser limits the number of parameters, so the cast loses nothing.
        let parameter_count = parsed.parameter_count as u16;
        self.session.warn_of(&parsed.deprecations);
        let source = Arc::new(parsed.statement);
        if is_unpreparable(&source) {
            let message = "This command is not supported in the prepared statement protocol yet";
            return Err(Error::new(ErrorCode::UnpreparableStatement, message));
        }
        let first = ParameterNumber(parsed.parameter_count);
        let (statement, session_values) = self.lift(&source, first, self.session.database());
        self.evaluate_session_values(&session_values)?;
        self.session.seed = self.turn.random.word();
        let key = StatementKey { text, database: self.session.database(), settings: self.session.plan_settings() };
        let work = &mut self.engine.work;
        work.kinds.clear();
        work.kinds.resize(usize::from(parameter_count), UNBOUND);
        work.kinds.extend_from_slice(&work.session_kinds);
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Described);
        let planned = self.plan(&statement, self.session.database());
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Refused);
        let planned = planned?;
        let (plan, lasting) = match planned {
            Some(planned) => {
                let plan = planned.plan;
                let lasting = (!planned.is_volatile).then(|| plan.clone());
                (Some(plan), lasting)
            }
            None => (None, None),
        };
        let statement = Arc::new(PreparedStatement {
            source,
            statement,
            session_values: session_values.into(),
            text: text[..text.len().min(SHOWN_BYTES_MAX)].into(),
            parameter_count,
            bytes: STATEMENT_BYTES + STATEMENT_BYTES_PER_TEXT_BYTE * text.len(),
            plan: lasting,
            kinds: self.engine.work.kinds.clone(),
            settings: key.settings,
            parsed_with: key.settings,
            digest: self.prepared_digest(text),
            dictionary_version: AtomicU64::new(self.engine.gateway.catalog().dictionary.version),
            database: self.session.database.clone(),
            deprecations: parsed.deprecations.into(),
        });
        self.engine.shared_statements.put(&key, &statement);
        Ok((self.engine.keep_prepared(self.session, statement), plan))
    }

    /// Executes COM_STMT_EXECUTE.
    pub(super) fn execute_command_prepared(&mut self, execution: PreparedExecution<'_>) -> Progress {
        self.engine.counters.questions += 1;
        self.engine.counters.executes += 1;
        self.session.cursor_wanted = if execution.wants_cursor { execution.statement } else { 0 };
        let input = StatementInput::new(InputForm::Prepared(execution.statement));
        self.execute_prepared(execution, input)
    }

    /// Executes a prepared statement.
    pub(super) fn execute_prepared(&mut self, execution: PreparedExecution<'_>, input: StatementInput<'_>) -> Progress {
        let PreparedExecution { statement: id, parameters, .. } = execution;
        self.begin_input(input);
        std::mem::swap(&mut self.engine.work.parameters, parameters);
        let values = Parameters::from_bytes(&self.engine.work.parameters);
        let Some(statement) = self.session.statements.get(id) else {
            let message = format!("Unknown prepared statement handler ({id}) given to mysqld_stmt_execute");
            return fail(self, &Error::new(ErrorCode::UnknownPreparedStatement, message));
        };
        if values.count() != usize::from(statement.parameter_count) {
            return fail(self, &message::wrong_arguments("mysqld_stmt_execute"));
        }
        let hinted;
        let (statement, values) = match statement.has_hints() {
            true => {
                hinted = Arc::clone(statement);
                self.set_hinted(&hinted.statement);
                (&hinted, Parameters::from_bytes(&self.engine.work.parameters))
            }
            false => (statement, values),
        };
        let settings = self.session.plan_settings();
        // EXECUTE is a text statement, so its rows are text.
        let protocol = match input.form {
            InputForm::Text(_) => self.session.text_protocol,
            _ => RowProtocol::Binary,
        };
        // EXECUTE counts under its own text.
        if let InputForm::Prepared(_) = input.form {
            let known = statement.digest.number();
            self.session.digest = match self.engine.digests.has(known) {
                true => known,
                false => {
                    let dialect = self.session.variables.dialect();
                    self.engine.digests.number_of_prepared(statement, dialect, self.turn.turn_start)
                }
            };
        }
        let input = PlanInput { protocol, shaped_text: None, input };
        if !statement.session_values.is_empty() {
            let statement = Arc::clone(statement);
            return self.execute_with_session_values(id, &statement, &input);
        }
        let dictionary = &self.engine.gateway.catalog().dictionary;
        if let Some(plan) = &statement.plan
            && statement.settings == settings
            && fits(plan, &statement.kinds, values)
            && statement.is_current(dictionary)
        {
            let plan = plan.clone();
            if self.session.has_diagnostics() {
                self.session.clear_diagnostics();
            }
            return self.execute_plan(&plan, &input);
        }
        self.plan_and_execute_prepared(id, &input)
    }

    /// Executes a prepared statement with session values. Its plan is reused if they have the types for which
    /// the plan was made.
    fn execute_with_session_values(
        &mut self,
        id: u32,
        statement: &PreparedStatement,
        input: &PlanInput<'_>,
    ) -> Progress {
        if let Err(error) = self.evaluate_session_values(&statement.session_values) {
            self.session.clear_diagnostics();
            return fail(self, &error);
        }
        let values = Parameters::from_bytes(&self.engine.work.parameters);
        let (kinds, session_kinds) = statement.split_kinds();
        let reusable = statement.plan.as_ref().filter(|plan| {
            statement.settings == self.session.plan_settings()
                && fits(plan, kinds, values)
                && session_kinds == self.engine.work.session_kinds
                && statement.is_current(&self.engine.gateway.catalog().dictionary)
        });
        let Some(plan) = reusable else { return self.plan_and_execute_prepared(id, input) };
        if let Err(error) = self.engine.append_session_values(statement.parameter_count) {
            self.session.clear_diagnostics();
            return fail(self, &error);
        }
        self.session.clear_diagnostics();
        self.execute_plan(plan, input)
    }

    /// Makes the kinds in the workspace those of the parameters of this execution.
    fn set_kinds(&mut self, prepared: &PreparedStatement) {
        let values = Parameters::from_bytes(&self.engine.work.parameters);
        let has_pattern = prepared.text.windows(4).any(|word| word.eq_ignore_ascii_case(b"LIKE"));
        self.engine.work.kinds.clear();
        for ordinal in 0..prepared.parameter_count {
            // NULL has no kind of its own, so the parameter keeps the kind of the previous plan.
            let before = prepared.kinds.get(usize::from(ordinal)).copied().unwrap_or(UNBOUND);
            let kind = kind_of_value(values.get(ordinal));
            let kind = if kind.kind == Kind::Null { before } else { kind };
            // Only plans with LIKE patterns depend on whether a string begins with a wildcard.
            let prefix = if has_pattern { kind.prefix } else { PatternPrefix::Unknown };
            self.engine.work.kinds.push(ParameterKind { prefix, exact: None, ..kind });
        }
        let work = &mut self.engine.work;
        for (ordinal, collation) in &work.parameter_collations {
            if let Some(kind) = work.kinds.get_mut(usize::from(*ordinal)) {
                let text = ResultType::string(*collation, Coercibility::Coercible, PARAMETER_CHARACTERS);
                kind.exact = Some(text.with_nullable(true));
            }
        }
    }

    /// Plans a prepared statement for the values of this execution, and executes it. Its session values are
    /// in the workspace.
    #[cold]
    fn plan_and_execute_prepared(&mut self, id: u32, input: &PlanInput<'_>) -> Progress {
        let Some(prepared) = self.session.statements.get(id).cloned() else {
            invariant::fail("a prepared statement exists while it is executed", format_args!("number {id}"))
        };
        let settings = self.session.plan_settings();
        let (statement, session_values) = match self.lift_again(&prepared, settings) {
            Ok(lifted) => lifted,
            Err(error) => {
                self.session.clear_diagnostics();
                return fail(self, &error);
            }
        };
        if session_values.is_empty() {
            self.engine.work.session_values.clear();
            self.engine.work.session_kinds.clear();
        }
        self.set_kinds(&prepared);
        let work = &mut self.engine.work;
        work.kinds.extend_from_slice(&work.session_kinds);
        if let Err(error) = self.engine.append_session_values(prepared.parameter_count) {
            self.session.clear_diagnostics();
            return fail(self, &error);
        }
        let key = StatementKey { text: &prepared.text, database: prepared.database.as_deref(), settings };
        let has_kinds = |known: &PreparedStatement| serve_all(&known.kinds, &self.engine.work.kinds);
        let has_own_collations = !self.engine.work.parameter_collations.is_empty();
        let dictionary = &self.engine.gateway.catalog().dictionary;
        let is_shared = settings == prepared.parsed_with;
        if is_shared
            && let Some(known) = self.engine.shared_statements.get(&key, has_kinds, dictionary)
            && let Some(plan) = known.plan.clone()
            && !is_outdated(&plan)
        {
            if !has_own_collations {
                self.session.statements.insert(id, known);
            }
            self.session.clear_diagnostics();
            return self.execute_plan(&plan, input);
        }
        self.engine.counters.plans += 1;
        self.begin_count(&input.input);
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Collected);
        self.session.seed = self.turn.random.word();
        let work = &mut self.engine.work;
        work.execution_values.clone_from(&work.parameters);
        if is_shown(&statement) {
            self.session.clear_diagnostics();
        }
        let progress = match self.plan(&statement, prepared.database.as_deref()) {
            Ok(Some(_)) if self.engine.table_statistics.are_missing() => Progress::Waiting,
            Ok(Some(planned)) if self.engine.lock_calls.get_mut().has_unanswered() => {
                refuse_lock_calls(self, &planned.plan)
            }
            // The error may be due to the value that stands for that of a file.
            Err(_) if self.engine.lock_calls.get_mut().awaits_files() => Progress::Waiting,
            Err(error) => {
                self.session.clear_diagnostics();
                let error = self.instead_of(error, &statement);
                fail(self, &error)
            }
            Ok(None) => {
                if !keeps_diagnostics(&statement) {
                    self.session.clear_diagnostics();
                }
                self.note_calls();
                self.execute_without_plan(&statement, input.protocol)
            }
            Ok(Some(planned)) => {
                self.session.clear_diagnostics();
                self.note_calls();
                let plan = planned.plan;
                self.note_plan_work(&plan);
                if !planned.is_volatile {
                    let statement = Arc::new(PreparedStatement {
                        source: Arc::clone(&prepared.source),
                        statement: Arc::clone(&statement),
                        session_values,
                        text: prepared.text.clone(),
                        parameter_count: prepared.parameter_count,
                        bytes: prepared.bytes,
                        plan: Some(plan.clone()),
                        kinds: self.engine.work.kinds.clone(),
                        settings,
                        parsed_with: prepared.parsed_with,
                        digest: prepared.digest.clone(),
                        dictionary_version: AtomicU64::new(self.engine.gateway.catalog().dictionary.version),
                        database: prepared.database.clone(),
                        deprecations: Arc::clone(&prepared.deprecations),
                    });
                    if is_shared {
                        self.engine.shared_statements.put(&key, &statement);
                    }
                    if !has_own_collations {
                        self.session.statements.insert(id, statement);
                    }
                }
                self.execute_plan(&plan, input)
            }
        };
        self.engine.work.execution_values.clear();
        self.request_inputs(progress, input.input)
    }

    /// A parsed statement with its session values, the first of which has the number `first`. Unqualified
    /// names are those of `database`.
    fn lift(
        &self,
        source: &Arc<Statement>,
        first: ParameterNumber,
        database: Option<&str>,
    ) -> (Arc<Statement>, Vec<SessionValue>) {
        let mut statement = Statement::clone(source);
        let session_values = self.lift_session_values(&mut statement, first, database);
        let is_same = session_values.is_empty() && statement == **source;
        (if is_same { Arc::clone(source) } else { Arc::new(statement) }, session_values)
    }

    /// The syntax tree and the session values of a statement that is planned again. Columns that get the
    /// time, and tables whose rows expire, may be others since it was prepared.
    ///
    /// # Errors
    /// The errors of new session values.
    fn lift_again(
        &mut self,
        prepared: &PreparedStatement,
        settings: u64,
    ) -> Result<(Arc<Statement>, Arc<[SessionValue]>)> {
        let version = self.engine.gateway.catalog().dictionary.version;
        if prepared.settings != settings || prepared.dictionary_version.load(Ordering::Relaxed) != version {
            let first = ParameterNumber(prepared.parameter_count.into());
            let (statement, session_values) = self.lift(&prepared.source, first, prepared.database.as_deref());
            if *session_values != *prepared.session_values {
                self.evaluate_session_values(&session_values)?;
                return Ok((statement, session_values.into()));
            }
            if statement != prepared.statement {
                return Ok((statement, Arc::clone(&prepared.session_values)));
            }
        }
        Ok((Arc::clone(&prepared.statement), Arc::clone(&prepared.session_values)))
    }
}

impl Engine {
    fn keep_prepared(&mut self, session: &mut Session, statement: Arc<PreparedStatement>) -> u32 {
        let mut id = session.next_prepared_number;
        // Numbers wrap around while old statements may still exist. 0 is never used.
        while session.statements.get(id).is_some() {
            id = id.wrapping_add(1).max(1);
        }
        session.next_prepared_number = id.wrapping_add(1).max(1);
        self.prepared_bytes += statement.bytes;
        session.statements.insert(id, statement);
        self.prepared_count += 1;
        id
    }

    /// Removes all prepared statements and key readers of a session.
    pub(super) fn forget_prepared(&mut self, session: &mut Session) {
        let count = session.statements.len() + session.key_readers.len();
        self.prepared_count = self.prepared_count.saturating_sub(count);
        self.prepared_bytes = self.prepared_bytes.saturating_sub(session.statements.bytes());
        session.statements.clear();
        self.close_cursors(session);
        session.named_statements.clear();
        session.key_readers.clear();
    }

    /// Number of parameters of a prepared statement; `None` if it does not exist.
    pub fn parameter_count(&self, session: &Session, statement: u32) -> Option<u16> {
        session.statements.get(statement).map(|statement| statement.parameter_count)
    }

    /// Removes a prepared statement.
    pub fn close_statement(&mut self, session: &mut Session, statement: u32) {
        self.close_cursor(session, statement);
        let bytes = session.statements.get(statement).map_or(0, |statement| statement.bytes);
        if session.statements.remove(statement) {
            self.prepared_bytes = self.prepared_bytes.saturating_sub(bytes);
            self.prepared_count = self.prepared_count.saturating_sub(1);
        }
    }
}

/// Whether the statement exists only as text.
fn is_unpreparable(statement: &Statement) -> bool {
    match statement {
        Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Deallocate(_) => true,
        Statement::Insert(insert) => matches!(insert.source, InsertSource::Load(_)),
        _ => false,
    }
}

/// Whether a plan that was made for the kinds `planned` is also correct for `kinds`.
fn serve_all(planned: &[ParameterKind], kinds: &[ParameterKind]) -> bool {
    planned.len() == kinds.len() && planned.iter().zip(kinds).all(|(planned, kind)| planned.serves_exactly(kind))
}

/// Whether a plan that was made for `kinds` is correct for the values.
#[inline(always)]
fn fits(plan: &Plan, kinds: &[ParameterKind], values: Parameters<'_>) -> bool {
    if matches!(plan, Plan::Insert(insert) if insert.takes_any_kind) {
        return true;
    }
    for (ordinal, planned) in kinds.iter().enumerate() {
        let value = values.get(ordinal as u16);
        if matches!(value, ValueRef::Int(_)) && planned.is_integer() {
            continue;
        }
        let kind = kind_of_value(value);
        if !planned.serves(&kind) && kind.kind != Kind::Null {
            return false;
        }
    }
    true
}
