//! Hot path, budget 400 instructions a known statement besides its scan and its execution: text statements. One whose shape is
//! known is neither parsed nor planned.

use std::sync::Arc;

use junctor_model::error::Result;

use super::facts::{Facts, with_environment};
use super::user_locks::{LockCallMode, refuse_lock_calls};
use super::{Engine, OperationKind};
use crate::bind::{Environment, ParameterKind, message};
use crate::execute::StatementContext;
use crate::execute::{
    Again, Origin, Run, compute_now, fail, fill_from_shape, fits_class, run_control, start_change, start_insert,
    start_select,
};
use crate::parse::{ShapeOutcome, Statement, first_statement_end, parse, scan};
use crate::plan::{ChangeKind, ControlPlan, Plan, Planned, plan_statement};
use crate::result::Progress;

impl StatementContext<'_, '_> {
    /// Executes a text statement.
    pub(crate) fn query(&mut self, text: &[u8]) -> Progress {
        self.engine.counters.questions += 1;
        self.run_text(text, Again::Text(text))
    }

    pub(super) fn run_text(&mut self, text: &[u8], again: Again<'_>) -> Progress {
        if scan(text, &mut self.engine.shape) == ShapeOutcome::Cacheable {
            let plan = self.plan_of_shape(text);
            match plan {
                Ok(Some(plan)) if self.engine.fill_parameters(text, &plan) => {
                    self.session.clear_diagnostics();
                    let run = Run { protocol: self.session.text_protocol, shaped_text: Some(text), again };
                    return self.run_plan(&plan, &run);
                }
                Ok(_) => {}
                Err(error) => {
                    self.session.clear_diagnostics();
                    return fail(self, &error);
                }
            }
        }
        self.run_unshaped(text, again)
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
        let facts = Facts { engine: self.engine, session: self.session, turn: self.turn };
        with_environment(&facts, database, kinds, &mut |environment: &Environment<'_>| {
            plan_statement(environment, statement, &|database, name| facts.find_virtual(database, name))
        })
    }

    /// Parses a statement with its literals and executes it.
    #[cold]
    fn run_unshaped(&mut self, text: &[u8], again: Again<'_>) -> Progress {
        if self.session.multi_statements
            && let Some(end) = first_statement_end(text)
        {
            return self.run_first(text, (0, end));
        }
        let parsed = match parse(text) {
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
        self.engine.work.kinds.clear();
        self.engine.work.parameters.clear();
        self.run_statement(&parsed.statement, again)
    }

    /// Plans and executes a statement once.
    pub(super) fn run_statement(&mut self, statement: &Statement, again: Again<'_>) -> Progress {
        let database = self.session.database.clone();
        self.engine.set_lock_calls(LockCallMode::Collected);
        self.engine.counters.plans += 1;
        // It may ask how many warnings the statement before had.
        let planned = self.plan(statement, database.as_deref());
        if !keeps_diagnostics(statement) {
            self.session.clear_diagnostics();
        }
        let progress = match planned {
            Ok(Some(planned)) if self.engine.has_unanswered_lock_calls() => refuse_lock_calls(self, &planned.plan),
            Ok(Some(planned)) => {
                let run = Run { protocol: self.session.text_protocol, shaped_text: None, again };
                self.run_plan(&Arc::new(planned.plan), &run)
            }
            Ok(None) => self.run_without_plan(statement, self.session.text_protocol),
            Err(error) => fail(self, &error),
        };
        self.after_lock_calls(progress, again)
    }

    /// Executes a plan with the parameters of the workspace.
    #[inline]
    pub(super) fn run_plan(&mut self, plan: &Arc<Plan>, run: &Run<'_>) -> Progress {
        if (self.session.transaction.explicit || self.engine.tables.any())
            && let Some(progress) = self.enter_tables(plan, run)
        {
            return progress;
        }
        match &**plan {
            Plan::Select(select) => {
                self.session.operation = select.operation;
                self.engine.counters.selects += 1;
                start_select(self, plan, run)
            }
            Plan::Insert(_) => {
                self.session.operation = OperationKind::Insert;
                self.engine.counters.inserts += 1;
                start_insert(self, plan, run)
            }
            Plan::Change(change) => {
                self.session.operation = match change.kind {
                    ChangeKind::Update => OperationKind::Update,
                    ChangeKind::Delete => OperationKind::Delete,
                };
                match change.kind {
                    ChangeKind::Update => self.engine.counters.updates += 1,
                    ChangeKind::Delete => self.engine.counters.deletes += 1,
                }
                start_change(self, plan, run)
            }
            Plan::Compute(_) => {
                self.session.operation = OperationKind::Other;
                self.engine.counters.selects += 1;
                compute_now(self, plan, run.protocol)
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
                run_control(self, *control)
            }
        }
    }

    /// Executes a statement again whose table was changed between planning and execution; only once.
    pub(crate) fn execute_again(&mut self, origin: Origin) -> Progress {
        match origin {
            Origin::Text(text) => {
                let progress = self.run_text(&text, Again::TextOnce(&text));
                self.turn.buffers.give(text);
                progress
            }
            Origin::Prepared(statement, parameters) => {
                let progress = self.run_prepared(statement, &parameters, Again::PreparedOnce(statement));
                self.turn.buffers.give(parameters);
                progress
            }
            Origin::Keys(reader, keys) => {
                let progress = self.read_keys_again(reader, &keys, false);
                self.turn.buffers.give(keys);
                progress
            }
            Origin::None => Progress::Done,
        }
    }
}

impl Engine {
    /// Makes the literals of the shape the parameters of the plan. False when one does not fit its class.
    #[inline]
    fn fill_parameters(&mut self, text: &[u8], plan: &Plan) -> bool {
        let work = &mut self.work;
        work.parameters.clear();
        match plan {
            // Rows are read from the text itself.
            Plan::Insert(insert) if insert.folded.is_some() && insert.takes_any_kind => return true,
            Plan::Insert(_) if !self.shape.literals().iter().all(|literal| fits_class(text, literal)) => return false,
            Plan::Control(_) => return true,
            _ => {}
        }
        fill_from_shape(text, &self.shape, 0, &mut work.decoded, &mut work.builder)
            && work.builder.append_to(&mut work.parameters).is_ok()
    }
}

/// SHOW WARNINGS and its kin tell of the statement before them.
pub(super) fn keeps_diagnostics(statement: &Statement) -> bool {
    use crate::parse::statement::Show;
    match statement {
        Statement::Show(show) => {
            matches!(&**show, Show::Warnings { .. } | Show::Errors { .. } | Show::WarningCount | Show::ErrorCount)
        }
        _ => false,
    }
}

/// A parameter in a text statement is a syntax error, as MySQL has it.
fn syntax_near_parameter(text: &[u8]) -> Box<junctor_model::error::Error> {
    use crate::parse::{ParseError, ParseErrorKind};
    let position = text.iter().position(|byte| *byte == b'?').unwrap_or(0);
    message::of_parse_error(&ParseError::at(ParseErrorKind::Syntax, text, position))
}
