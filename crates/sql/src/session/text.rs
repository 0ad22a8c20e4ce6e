//! Hot path: at most 400 instructions per known statement, not counting its scan and its execution.
//!
//! Text statements. A statement whose shape is known is neither parsed nor planned.

use std::sync::Arc;

use junctor_gateway::invariant;
use junctor_model::access::AccountName;
use junctor_model::error::{Error, ErrorCode, Result};

use super::PreparedExecution;
use super::facts::{StatementFacts, with_environment};
use super::lock_calls::refuse_lock_calls;
use crate::access::{NeedsCollector, PlanRights, RightsOfSession};
use crate::bind::{ParameterKind, message};
use crate::execute::Engine;
use crate::execute::{
    CallResults, Execution, InputForm, LockCallMode, LockCalls, PlanInput, RetryInput, RetryState, StatementContext,
    StatementInput, fail, start_change, start_compute, start_control, start_cursor, start_insert, start_into,
    start_modify, start_select, start_tree,
};
use crate::mysql_catalog::show::WarningLevel;
use crate::mysql_catalog::variable::find;
use crate::parse::{Deprecation, ParameterNumber, ShapeOutcome, Statement, first_statement_end, parse_in, scan};
use crate::plan::fill_from_shape;
use crate::plan::fits_class;
use crate::plan::{ChangeKind, ControlPlan, HintedPlan, OperationKind, Plan, Planned, QueryPlan, plan_statement};
use crate::result::Progress;

impl StatementContext<'_, '_> {
    /// Executes COM_QUERY.
    pub(super) fn execute_query(&mut self, text: &[u8]) -> Progress {
        self.engine.counters.questions += 1;
        self.execute_text(text, StatementInput::new(InputForm::Text(text)))
    }

    /// Executes a text statement.
    pub(super) fn execute_text(&mut self, text: &[u8], input: StatementInput<'_>) -> Progress {
        self.begin_input(input);
        let variables = &self.session.variables;
        let is_scannable = variables.may_scan_texts() || variables.dialect().is_scannable(text);
        if is_scannable && scan(text, &mut self.engine.shape) == ShapeOutcome::Cacheable {
            let plan = self.plan_of_shape(text);
            match plan {
                Ok(Some(plan)) if self.engine.fill_parameters(text, &plan) => {
                    self.session.clear_diagnostics();
                    let input = PlanInput { protocol: self.session.text_protocol, shaped_text: Some(text), input };
                    return self.execute_plan(&plan, &input);
                }
                Ok(_) => {}
                Err(error) => return self.fail_unplanned(error, text, &input),
            }
        }
        self.execute_unshaped(text, input)
    }

    /// Forgets how the statement before was to sort when it started again, if it ended before that.
    #[inline]
    pub(super) fn begin_input(&mut self, input: StatementInput<'_>) {
        if !input.is_restart {
            self.session.variables.sort_with_files(false);
        }
    }

    /// Fails a text that could not be planned.
    #[cold]
    fn fail_unplanned(&mut self, error: Box<Error>, text: &[u8], input: &StatementInput<'_>) -> Progress {
        self.session.clear_diagnostics();
        self.begin_count(input);
        let error = match parse_in(text, self.session.variables.dialect()) {
            Ok(parsed) => {
                self.session.warn_of(&parsed.deprecations);
                self.instead_of(error, &parsed.statement)
            }
            // Its error is that of the syntax.
            Err(_) => error,
        };
        fail(self, &error)
    }

    /// Plans a statement whose parameters have the kinds of the workspace.
    pub(super) fn plan(&self, statement: &Statement, database: Option<&str>) -> Result<Option<Planned>> {
        self.plan_for_kinds(statement, database, &self.engine.work.kinds)
    }

    /// Plans a statement that has no parameters.
    pub(super) fn plan_without_parameters(
        &self,
        statement: &Statement,
        database: Option<&str>,
    ) -> Result<Option<Planned>> {
        self.plan_for_kinds(statement, database, &[])
    }

    fn plan_for_kinds(
        &self,
        statement: &Statement,
        database: Option<&str>,
        kinds: &[ParameterKind],
    ) -> Result<Option<Planned>> {
        self.engine.lock_calls.borrow_mut().restart();
        self.engine.table_statistics.restart();
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let (rights, who) = (self.engine.rights_for(self.session), self.session.who());
        let of_account = |account: &AccountName| self.engine.rights_of_account(account);
        let session = RightsOfSession { rights: &rights, who: &who, of_account: &of_account };
        let collector = NeedsCollector::new(session);
        if let Statement::Explain(_) = statement {
            collector.explain();
        }
        let planned = with_environment(&facts, (database, Some(&collector)), kinds, &mut |environment| {
            plan_statement(environment, statement, &facts)
        })?;
        let needs = collector.finish()?;
        if let Some(rights) = planned.as_ref().and_then(|planned| planned.plan.rights()) {
            rights.set(needs);
        }
        Ok(planned)
    }

    /// Parses a statement with its literals and executes it.
    #[cold]
    fn execute_unshaped(&mut self, text: &[u8], input: StatementInput<'_>) -> Progress {
        if self.session.multi_statements
            && let Some(end) = first_statement_end(text, self.session.variables.dialect())
        {
            return self.execute_first(text, (0, end));
        }
        self.note_digest(text);
        let parsed = match parse_in(text, self.session.variables.dialect()) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.session.clear_diagnostics();
                return fail(self, &message::of_parse_error(&error));
            }
        };
        if parsed.parameter_count > 0 {
            self.session.clear_diagnostics();
            return fail(self, &syntax_near_parameter(text));
        }
        let (mut statement, deprecations) = (parsed.statement, parsed.deprecations);
        if let Some(progress) = self.execute_named(&statement, input) {
            return progress;
        }
        if statement.has_hints() {
            self.set_hinted(&statement);
        }
        let session_values = self.lift_session_values(&mut statement, ParameterNumber(0), self.session.database());
        self.engine.work.parameters.clear();
        let evaluated = self.evaluate_session_values(&session_values);
        if let Err(error) = evaluated.and_then(|()| self.engine.append_session_values(0)) {
            self.session.clear_diagnostics();
            return fail(self, &error);
        }
        let work = &mut self.engine.work;
        work.kinds.clone_from(&work.session_kinds);
        self.execute_statement(&statement, &deprecations, input)
    }

    /// Plans a statement and executes the plan once.
    fn execute_statement(
        &mut self,
        statement: &Statement,
        deprecations: &[Deprecation],
        input: StatementInput<'_>,
    ) -> Progress {
        let database = self.session.database.clone();
        self.begin_count(&input);
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Collected);
        self.engine.counters.plans += 1;
        // The statement may read the diagnostics of the previous one, so these are removed only after
        // planning.
        self.session.seed = self.turn.random.word();
        if is_shown(statement) {
            self.session.clear_diagnostics();
        }
        let planned = self.plan(statement, database.as_deref());
        if !keeps_diagnostics(statement) {
            self.session.clear_diagnostics();
            self.session.warn_of(deprecations);
        }
        self.note_calls();
        let progress = match planned {
            Ok(Some(_)) if self.engine.table_statistics.are_missing() => Progress::Waiting,
            Ok(Some(planned)) if self.engine.lock_calls.get_mut().has_unanswered() => {
                refuse_lock_calls(self, &planned.plan)
            }
            Ok(Some(planned)) => {
                self.note_plan_work(&planned.plan);
                let input = PlanInput { protocol: self.session.text_protocol, shaped_text: None, input };
                self.execute_plan(&planned.plan, &input)
            }
            Ok(None) => self.execute_without_plan(statement, self.session.text_protocol),
            // The error may be due to the value that stands for that of a file.
            Err(_) if self.engine.lock_calls.get_mut().awaits_files() => Progress::Waiting,
            Err(error) => {
                let error = self.instead_of(error, statement);
                fail(self, &error)
            }
        };
        self.request_inputs(progress, input)
    }

    /// Executes a plan with the parameters of the workspace.
    #[inline]
    pub(super) fn execute_plan(&mut self, plan: &Plan, input: &PlanInput<'_>) -> Progress {
        let checked = plan.rights().map_or(self.session.rights_number.max(1), PlanRights::checked);
        if checked != self.session.rights_number
            && let Err(error) = self.check_plan(plan, &input.input)
        {
            return fail(self, &error);
        }
        if self.session.variables.execution_time_max_ms != 0 || matches!(plan, Plan::Hinted(_)) {
            self.limit_query(plan);
        }
        if (self.session.transaction.explicit || self.engine.tables.any())
            && let Some(progress) = self.enter_tables(plan, input)
        {
            return progress;
        }
        match plan {
            Plan::Select(plan) => {
                self.session.operation = plan.operation;
                self.engine.counters.selects += 1;
                if self.session.cursor_wanted != 0 {
                    return start_cursor(self, QueryPlan::Select(Arc::clone(plan)));
                }
                start_select(self, plan, input)
            }
            Plan::Insert(plan) => {
                self.session.operation = OperationKind::Insert;
                self.engine.counters.inserts += 1;
                let progress = start_insert(self, plan, input);
                self.retry_if_requested(progress)
            }
            Plan::Change(plan) => {
                self.session.operation = match plan.kind {
                    ChangeKind::Update => OperationKind::Update,
                    ChangeKind::Delete => OperationKind::Delete,
                };
                match plan.kind {
                    ChangeKind::Update => self.engine.counters.updates += 1,
                    ChangeKind::Delete => self.engine.counters.deletes += 1,
                }
                start_change(self, plan, input)
            }
            Plan::Modify(plan) => {
                self.session.operation = match plan.kind {
                    ChangeKind::Update => OperationKind::Update,
                    ChangeKind::Delete => OperationKind::Delete,
                };
                match plan.kind {
                    ChangeKind::Update => self.engine.counters.updates += 1,
                    ChangeKind::Delete => self.engine.counters.deletes += 1,
                }
                let progress = start_modify(self, plan, input);
                self.retry_if_requested(progress)
            }
            Plan::Compute(plan) => {
                self.session.operation = OperationKind::Other;
                self.engine.counters.selects += u64::from(!plan.is_shown);
                if self.session.cursor_wanted != 0 {
                    return start_cursor(self, QueryPlan::Compute(Arc::clone(plan)));
                }
                start_compute(self, plan, input.protocol)
            }
            Plan::Tree(plan) => {
                if let Some(progress) = self.renew_plan(plan, input) {
                    return progress;
                }
                self.session.operation = OperationKind::Other;
                if self.session.cursor_wanted == 0
                    && let Some(progress) = self.lend_query(plan, input)
                {
                    return progress;
                }
                self.engine.counters.selects += u64::from(!plan.is_shown);
                if self.session.cursor_wanted != 0 {
                    return start_cursor(self, QueryPlan::Tree(Arc::clone(plan)));
                }
                let progress = start_tree(self, plan, input);
                self.retry_if_requested(progress)
            }
            Plan::Into(plan) => {
                self.session.operation = match &plan.query {
                    QueryPlan::Select(plan) => plan.operation,
                    QueryPlan::Compute(_) | QueryPlan::Tree(_) => OperationKind::Other,
                };
                self.engine.counters.selects += 1;
                start_into(self, plan)
            }
            Plan::Control(control) => {
                self.session.operation = match control {
                    ControlPlan::Begin { .. } => OperationKind::Other,
                    ControlPlan::Commit(_) => OperationKind::Commit,
                    ControlPlan::Rollback(_) => OperationKind::Rollback,
                };
                match control {
                    ControlPlan::Begin { .. } => self.engine.counters.begins += 1,
                    ControlPlan::Commit(_) => self.engine.counters.commits += 1,
                    ControlPlan::Rollback(_) => self.engine.counters.rollbacks += 1,
                }
                start_control(self, *control)
            }
            Plan::Hinted(hinted) => self.execute_hinted(hinted, input),
        }
    }

    /// Executes a statement with optimizer hints, or with warnings of its planning.
    #[cold]
    fn execute_hinted(&mut self, hinted: &HintedPlan, input: &PlanInput<'_>) -> Progress {
        self.session.warn_of(&hinted.deprecations);
        for (code, text) in &hinted.warnings {
            self.session.warn(WarningLevel::Warning, code.errno(), text.clone());
        }
        for name in &hinted.unset {
            let (code, text) = match find(name) {
                Some(_) => {
                    (ErrorCode::NotHintUpdatable, format!("Variable '{name}' cannot be set using SET_VAR hint."))
                }
                None => (ErrorCode::UnresolvedHintName, format!("Unresolved name '{name}' for SET_VAR hint")),
            };
            self.session.warn(WarningLevel::Warning, code.errno(), text.into());
        }
        let hinted_variables = self.session.hinted.as_mut().map(|hinted| std::mem::take(&mut hinted.warnings));
        for (errno, text) in hinted_variables.unwrap_or_default() {
            self.session.warn(WarningLevel::Warning, errno, text);
        }
        self.execute_plan(&hinted.plan, input)
    }

    /// Starts the statement again if its last step has requested that.
    #[inline]
    pub(super) fn retry_if_requested(&mut self, progress: Progress) -> Progress {
        match (progress, &self.session.execution) {
            (Progress::Waiting, Execution::Retry(_)) => self.retry(),
            _ => progress,
        }
    }

    #[cold]
    fn retry(&mut self) -> Progress {
        let Execution::Retry(state) = std::mem::take(&mut self.session.execution) else {
            invariant::fail("a retry has an input", format_args!("{:?}", self.session.execution))
        };
        let RetryState { input, lock_results, statistics, may_retry } = *state;
        if may_retry {
            // The statement had begun. It leaves no warnings of the attempt that failed.
            self.session.clear_diagnostics();
        }
        self.engine.table_statistics.known = statistics;
        if let Some(results) = lock_results {
            let mode = LockCallMode::Answered;
            let CallResults { values: results, files, diagnostics } = results;
            *self.engine.lock_calls.get_mut() = LockCalls { mode, results, files, diagnostics, ..LockCalls::default() };
        }
        let progress = self.execute_input(input, may_retry);
        // No later statement may use these statistics and results.
        self.engine.table_statistics.known = None;
        *self.engine.lock_calls.get_mut() = LockCalls::default();
        progress
    }

    /// Executes a statement from the copy of its input.
    pub(super) fn execute_input(&mut self, input: RetryInput, may_retry: bool) -> Progress {
        // Its text is read in the modes of the session, as before.
        self.session.end_hinted_statement();
        let again = |form| StatementInput { form, may_retry, is_restart: true };
        let mut input = match input {
            RetryInput::Fill(fill) => return self.fill_table(*fill),
            RetryInput::Access(retry) => {
                return self.change_accounts(&retry.statement, retry.protocol, retry.tries + 1);
            }
            RetryInput::Definition(retry) => return self.define_again(&retry.statement, retry.tries + 1),
            RetryInput::OfSession => self.session.kept_input.take(),
            input => input,
        };
        let progress = match &mut input {
            RetryInput::Text(text) => self.execute_text(text, again(InputForm::Text(text))),
            RetryInput::Prepared(statement, parameters) => {
                let mut own = self.client_parameters(*statement, parameters);
                let parameters = own.as_mut().unwrap_or(parameters);
                let execution = PreparedExecution { statement: *statement, parameters, wants_cursor: false };
                self.execute_prepared(execution, again(InputForm::Prepared(*statement)))
            }
            RetryInput::Keys(reader, keys) => self.retry_key_read(*reader, again(InputForm::Keys(*reader, keys)), keys),
            RetryInput::None
            | RetryInput::OfSession
            | RetryInput::Fill(_)
            | RetryInput::Access(_)
            | RetryInput::Definition(_) => invariant::fail("a retry has an input", format_args!("there is none")),
        };
        input.release(self.turn);
        progress
    }
}

impl Engine {
    /// Turns the literals of the shape into the parameters of the plan. Returns false if a literal's value is
    /// not of the kind that plans expect for its class.
    #[inline]
    fn fill_parameters(&mut self, text: &[u8], plan: &Plan) -> bool {
        let work = &mut self.work;
        work.parameters.clear();
        match plan {
            // The rows are read from the text itself.
            Plan::Insert(insert)
                if insert.uniform_rows.is_some() && insert.takes_any_kind && work.session_values.is_empty() =>
            {
                return true;
            }
            Plan::Insert(_) if !self.shape.literals().iter().all(|literal| fits_class(text, literal)) => return false,
            Plan::Control(_) => return true,
            Plan::Hinted(hinted) => return self.fill_parameters(text, &hinted.plan),
            _ => {}
        }
        let fits = fill_from_shape(text, &self.shape, 0, &mut work.decoded, &mut work.builder);
        for value in &work.session_values {
            work.builder.push(value.as_ref());
        }
        fits && work.builder.append_to(&mut work.parameters).is_ok()
    }
}

/// Whether the statement reads the diagnostics of the previous one, as SHOW WARNINGS does.
pub(super) fn keeps_diagnostics(statement: &Statement) -> bool {
    use crate::parse::statement::Show;
    match statement {
        Statement::Show(show) => {
            matches!(&**show, Show::Warnings { .. } | Show::Errors { .. } | Show::WarningCount | Show::ErrorCount)
        }
        _ => false,
    }
}

/// Whether the rows of the statement are computed when it is planned, and show the session without the
/// diagnostics of the previous statement.
pub(super) fn is_shown(statement: &Statement) -> bool {
    matches!(statement, Statement::Show(_) | Statement::Describe(_)) && !keeps_diagnostics(statement)
}

/// The error of a parameter in a text statement. As in MySQL, it is a syntax error.
fn syntax_near_parameter(text: &[u8]) -> Box<junctor_model::error::Error> {
    use crate::parse::{ParseError, ParseErrorKind};
    let position = text.iter().position(|byte| *byte == b'?').unwrap_or(0);
    message::of_parse_error(&ParseError::at(ParseErrorKind::Syntax, text, position))
}
