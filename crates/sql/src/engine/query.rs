//! Hot path, budget 400 instructions a known statement besides its scan and its execution: text statements. One whose shape is
//! known is neither parsed nor planned.

use std::sync::Arc;

use junctor_gateway::TurnContext;
use junctor_model::error::Result;

use super::facts::{Facts, with_environment};
use super::user_locks::{LockCallMode, refuse_lock_calls};
use super::{Engine, OperationKind};
use crate::bind::{Environment, ParameterKind, message};
use crate::execute::{
    Again, Origin, Run, compute_now, fail, fill_from_shape, fits_class, kinds_of_shape, run_control, start_change,
    start_insert, start_select,
};
use crate::parse::{Parameterised, ShapeOutcome, Statement, first_statement_end, parse, parse_with_parameters, scan};
use crate::plan::{ChangeKind, ControlPlan, Plan, Planned, plan_statement};
use crate::result::{Progress, ResultSink};
use crate::session::Session;

impl Engine {
    /// Executes a text statement.
    pub(crate) fn query(
        &mut self,
        session: &mut Session,
        text: &[u8],
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        self.counters.questions += 1;
        self.run_text(session, text, Again::Text(text), turn, sink)
    }

    pub(super) fn run_text(
        &mut self,
        session: &mut Session,
        text: &[u8],
        again: Again<'_>,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        if scan(text, &mut self.shape) == ShapeOutcome::Cacheable {
            let found = self.cache.get(&Self::plan_key(&self.shape, session), &self.gateway.catalog().dictionary);
            let plan = match found {
                Some(plan) => Ok(Some(plan)),
                None => self.plan_shape(session, text, turn),
            };
            match plan {
                Ok(Some(plan)) if self.fill_parameters(text, &plan) => {
                    session.clear_diagnostics();
                    let run = Run { protocol: session.text_protocol, shaped_text: Some(text), again };
                    return self.run_plan(session, &plan, &run, turn, sink);
                }
                Ok(_) => {}
                Err(error) => {
                    session.clear_diagnostics();
                    return fail(session, &error, sink);
                }
            }
        }
        self.run_unshaped(session, text, again, turn, sink)
    }

    /// Plans a shape that is not known yet; `None` when its literals matter or the statement has no plan that lasts.
    #[cold]
    fn plan_shape(&mut self, session: &Session, text: &[u8], turn: &TurnContext<'_>) -> Result<Option<Arc<Plan>>> {
        let statement = match parse_with_parameters(text, &self.shape) {
            Ok(Parameterised::Statement(statement)) => statement,
            Ok(Parameterised::LiteralsMatter) => return Ok(None),
            Err(error) => return Err(message::of_parse_error(&error)),
        };
        kinds_of_shape(&self.shape, &mut self.work.kinds);
        self.set_lock_calls(LockCallMode::Described);
        let planned = self.plan(session, &statement, session.database(), turn);
        self.set_lock_calls(LockCallMode::Refused);
        let Some(planned) = planned? else { return Ok(None) };
        if planned.is_volatile {
            // Such a plan is good once, and its statement's literals are known: planning it with them is simpler.
            return Ok(None);
        }
        self.counters.plans += 1;
        let plan = Arc::new(planned.plan);
        self.cache.put(&Self::plan_key(&self.shape, session), Arc::clone(&plan), &self.gateway.catalog().dictionary);
        Ok(Some(plan))
    }

    /// Plans a statement whose parameters have the kinds of the workspace.
    pub(super) fn plan(
        &self,
        session: &Session,
        statement: &Statement,
        database: Option<&str>,
        turn: &TurnContext<'_>,
    ) -> Result<Option<Planned>> {
        self.plan_for_kinds(session, statement, database, &self.work.kinds, turn)
    }

    /// Plans a statement that has no parameters.
    pub(super) fn plan_without_parameters(
        &self,
        session: &Session,
        statement: &Statement,
        database: Option<&str>,
        turn: &TurnContext<'_>,
    ) -> Result<Option<Planned>> {
        self.plan_for_kinds(session, statement, database, &[], turn)
    }

    fn plan_for_kinds(
        &self,
        session: &Session,
        statement: &Statement,
        database: Option<&str>,
        kinds: &[ParameterKind],
        turn: &TurnContext<'_>,
    ) -> Result<Option<Planned>> {
        self.lock_calls.borrow_mut().restart();
        let facts = Facts { engine: self, session, turn };
        with_environment(&facts, database, kinds, &mut |environment: &Environment<'_>| {
            plan_statement(environment, statement, &|database, name| facts.find_virtual(database, name))
        })
    }

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

    /// Parses a statement with its literals and executes it.
    #[cold]
    fn run_unshaped(
        &mut self,
        session: &mut Session,
        text: &[u8],
        again: Again<'_>,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        if session.multi_statements
            && let Some(end) = first_statement_end(text)
        {
            return self.run_first(session, text, (0, end), turn, sink);
        }
        let parsed = match parse(text) {
            Ok(parsed) => parsed,
            Err(error) => {
                session.clear_diagnostics();
                return fail(session, &message::of_parse_error(&error), sink);
            }
        };
        if parsed.parameter_count > 0 {
            session.clear_diagnostics();
            return fail(session, &syntax_near_parameter(text), sink);
        }
        self.work.kinds.clear();
        self.work.parameters.clear();
        self.run_statement(session, &parsed.statement, again, turn, sink)
    }

    /// Plans and executes a statement once.
    pub(super) fn run_statement(
        &mut self,
        session: &mut Session,
        statement: &Statement,
        again: Again<'_>,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let database = session.database.clone();
        self.set_lock_calls(LockCallMode::Collected);
        self.counters.plans += 1;
        // It may ask how many warnings the statement before had.
        let planned = self.plan(session, statement, database.as_deref(), turn);
        if !keeps_diagnostics(statement) {
            session.clear_diagnostics();
        }
        let progress = match planned {
            Ok(Some(planned)) if self.has_unanswered_lock_calls() => refuse_lock_calls(session, &planned.plan, sink),
            Ok(Some(planned)) => {
                let run = Run { protocol: session.text_protocol, shaped_text: None, again };
                self.run_plan(session, &Arc::new(planned.plan), &run, turn, sink)
            }
            Ok(None) => self.run_without_plan(session, statement, session.text_protocol, turn, sink),
            Err(error) => fail(session, &error, sink),
        };
        self.after_lock_calls(session, progress, again, turn, sink)
    }

    /// Executes a plan with the parameters of the workspace.
    #[inline]
    pub(super) fn run_plan(
        &mut self,
        session: &mut Session,
        plan: &Arc<Plan>,
        run: &Run<'_>,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        if (session.transaction.explicit || self.tables.any())
            && let Some(progress) = self.enter_tables(session, plan, run, turn, sink)
        {
            return progress;
        }
        match &**plan {
            Plan::Select(select) => {
                session.operation = select.operation;
                self.counters.selects += 1;
                start_select(self, session, plan, run, turn, sink)
            }
            Plan::Insert(_) => {
                session.operation = OperationKind::Insert;
                self.counters.inserts += 1;
                start_insert(self, session, plan, run, turn, sink)
            }
            Plan::Change(change) => {
                session.operation = match change.kind {
                    ChangeKind::Update => OperationKind::Update,
                    ChangeKind::Delete => OperationKind::Delete,
                };
                match change.kind {
                    ChangeKind::Update => self.counters.updates += 1,
                    ChangeKind::Delete => self.counters.deletes += 1,
                }
                start_change(self, session, plan, run, turn, sink)
            }
            Plan::Compute(_) => {
                session.operation = OperationKind::Other;
                self.counters.selects += 1;
                compute_now(self, session, plan, run.protocol, turn, sink)
            }
            Plan::Control(control) => {
                session.operation = match control {
                    ControlPlan::Begin { .. } => OperationKind::Other,
                    ControlPlan::Commit(_) => OperationKind::Commit,
                    ControlPlan::Rollback(_) => OperationKind::Rollback,
                };
                match control {
                    ControlPlan::Begin { .. } => self.counters.begins += 1,
                    ControlPlan::Commit(_) => self.counters.commits += 1,
                    ControlPlan::Rollback(_) => self.counters.rollbacks += 1,
                }
                run_control(self, session, *control, turn, sink)
            }
        }
    }

    /// Executes a statement again whose table was changed between planning and execution; only once.
    pub(crate) fn execute_again(
        &mut self,
        session: &mut Session,
        origin: Origin,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        match origin {
            Origin::Text(text) => {
                let progress = self.run_text(session, &text, Again::TextOnce(&text), turn, sink);
                turn.buffers.give(text);
                progress
            }
            Origin::Prepared(statement, parameters) => {
                let progress =
                    self.run_prepared(session, statement, &parameters, Again::PreparedOnce(statement), turn, sink);
                turn.buffers.give(parameters);
                progress
            }
            Origin::Keys(reader, keys) => {
                let progress = self.read_keys_again(session, reader, &keys, false, turn, sink);
                turn.buffers.give(keys);
                progress
            }
            Origin::None => Progress::Done,
        }
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
