//! Plans the calls of GET_LOCK and related functions: checks them and collects what must be carried out
//! before the statement.

use std::sync::Arc;

use junctor_expression::Scratch;
use junctor_gateway::TurnContext;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::Value;

use crate::execute::Engine;
use crate::execute::Session;
use crate::execute::{
    Benchmark, LockCallMode, OuterCall, StatementContext, StatementInput, action_of, fail,
    lock_call_in_table_statement, start_table_statistics, start_user_locks,
};
use crate::mysql_catalog::show::WarningLevel;
use crate::mysql_catalog::variable::{SessionContext, text_of};
use crate::parse::Expression;
use crate::parse::expression::FunctionCall;
use crate::plan::Plan;
use crate::result::Progress;

/// The function that reads a file.
const LOAD_FILE: &str = "LOAD_FILE";

/// The functions and their number of arguments.
const FUNCTIONS: [(&str, usize); 8] = [
    ("GET_LOCK", 2),
    ("RELEASE_LOCK", 1),
    ("RELEASE_ALL_LOCKS", 0),
    ("IS_FREE_LOCK", 1),
    ("IS_USED_LOCK", 1),
    ("SLEEP", 1),
    ("BENCHMARK", 2),
    (LOAD_FILE, 1),
];

/// Whether an expression is a call of one of the functions.
pub(super) fn is_lock_call(expression: &Expression) -> bool {
    let Expression::Function(call) = expression else { return false };
    call.database.is_none() && FUNCTIONS.iter().any(|(name, _)| name.eq_ignore_ascii_case(&call.name))
}

impl StatementContext<'_, '_> {
    /// Requests the inputs that a newly planned statement needs from other blocks: the statistics of tables,
    /// or else the results of its lock calls. Returns `progress` unchanged if the statement needs neither or
    /// has already ended.
    pub(super) fn request_inputs(&mut self, progress: Progress, input: StatementInput<'_>) -> Progress {
        let calls = self.engine.lock_calls.get_mut();
        let must_ask = progress == Progress::Waiting && calls.has_unanswered();
        let actions = std::mem::take(&mut calls.actions);
        calls.set_mode(LockCallMode::Refused);
        if progress == Progress::Waiting && self.engine.table_statistics.are_missing() {
            let input = input.copy(&self.engine.work.parameters, self.turn);
            return start_table_statistics(self, input);
        }
        if !must_ask {
            return progress;
        }
        // A retry is allowed even for a statement that has already started again with statistics: its lock
        // calls have not been sent yet, and are sent only once.
        let input = StatementInput { may_retry: true, ..input }.keep(false, &self.engine.work.parameters, self.turn);
        start_user_locks(self, actions, input)
    }
}

impl StatementContext<'_, '_> {
    /// Adds the diagnostics of the calls that were carried out before the statement.
    pub(super) fn note_calls(&mut self) {
        for diagnostics in std::mem::take(&mut self.engine.lock_calls.get_mut().diagnostics) {
            self.session.note_diagnostics(WarningLevel::Warning, diagnostics);
        }
    }
}

impl Engine {
    /// The value of a call of one of the functions; `None` for every other expression.
    ///
    /// # Errors
    /// 1582 for a wrong number of arguments, 3057 for an invalid name, 1235 where lock calls are not
    /// supported.
    pub(super) fn evaluate_lock_call(
        &self,
        session: &Session,
        facts: &SessionContext<'_>,
        expression: &Expression,
    ) -> Result<Option<Value>> {
        let Expression::Function(call) = expression else { return Ok(None) };
        let known = FUNCTIONS.iter().find(|(name, _)| call.database.is_none() && name.eq_ignore_ascii_case(&call.name));
        let Some((name, arguments)) = known else { return Ok(None) };
        if call.arguments.len() != *arguments {
            let message = format!("Incorrect parameter count in the call to native function '{name}'");
            return Err(Error::new(ErrorCode::WrongParameterCount, message));
        }
        if *name == LOAD_FILE {
            return self.load_file(session, facts, &call.arguments[0]).map(Some);
        }
        if let Some(value) = self.lock_calls.borrow_mut().next_value(name)? {
            return Ok(Some(value));
        }
        // A lock call inside an argument of another one is refused.
        self.lock_calls.borrow_mut().mode = LockCallMode::Refused;
        let action = self.lock_action(name, call, session, facts)?;
        let mut calls = self.lock_calls.borrow_mut();
        calls.mode = LockCallMode::Collected;
        calls.actions.push(action);
        Ok(Some(Value::Int(1)))
    }

    /// The value of a call of LOAD_FILE. NULL stands for it while the calls are collected. Error: 1235 for a
    /// name that depends on a row or changes with each evaluation.
    fn load_file(&self, session: &Session, facts: &SessionContext<'_>, argument: &Expression) -> Result<Value> {
        if !self.may_load_files(session) {
            return Ok(Value::Null);
        }
        let mode = self.lock_calls.borrow().mode;
        match mode {
            LockCallMode::Refused => return Err(Error::not_supported("LOAD_FILE here")),
            LockCallMode::Described => return Ok(Value::Null),
            LockCallMode::Collected | LockCallMode::Answered => {}
        }
        // A call inside the argument is refused.
        self.lock_calls.borrow_mut().mode = LockCallMode::Refused;
        let name = self.evaluate(facts, session, argument, &Scratch::new());
        let mut calls = self.lock_calls.borrow_mut();
        calls.mode = mode;
        let name = name.map_err(|error| match error.code {
            ErrorCode::UnknownColumn => Error::not_supported("LOAD_FILE of a name that depends on a row"),
            _ => error,
        })?;
        if name.is_null() {
            return Ok(Value::Null);
        }
        let name = text_of(&name);
        if mode == LockCallMode::Answered {
            return calls.copy_of_file(&name);
        }
        let is_same = |action: &OuterCall| matches!(action, OuterCall::File(known) if **known == *name);
        if !calls.actions.iter().any(is_same) {
            calls.actions.push(OuterCall::File(name.into()));
        }
        Ok(Value::Null)
    }

    fn lock_action(
        &self,
        function: &str,
        call: &FunctionCall,
        session: &Session,
        facts: &SessionContext<'_>,
    ) -> Result<OuterCall> {
        if let ("BENCHMARK", [count, expression]) = (function, call.arguments.as_slice()) {
            return self.benchmark(session, facts, (count, expression));
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.evaluate(facts, session, argument, &Scratch::new())?);
        }
        action_of(function, &arguments).map(OuterCall::Lock)
    }

    /// A call of BENCHMARK. NULL and, with warning 1411, a negative count give NULL.
    fn benchmark(
        &self,
        session: &Session,
        facts: &SessionContext<'_>,
        (count, expression): (&Expression, &Expression),
    ) -> Result<OuterCall> {
        let mut scratch = Scratch::new();
        scratch.set_value_rules(session.variables.value_rules().at(facts.now_us()));
        scratch.set_warnings_max(session.variables.warnings_max);
        let remaining = match self.evaluate(facts, session, count, &scratch)? {
            Value::Null => None,
            Value::UInt(count) => Some(count),
            value => {
                // The cast saturates, so an excessive number becomes the maximum.
                let count = match &value {
                    Value::Int(count) => *count,
                    Value::Bytes(_) => text_of(&value).trim().parse().unwrap_or(0.0_f64).round_ties_even() as i64,
                    number => number.as_ref().to_double().unwrap_or(0.0).round_ties_even() as i64,
                };
                if count < 0 {
                    scratch.warn(ErrorCode::WrongValueForFunction, || {
                        format!("Incorrect count value: '{count}' for function benchmark")
                    })?;
                }
                u64::try_from(count).ok()
            }
        };
        let expression = self.bind_alone(facts, session, expression)?;
        let mut calls = self.lock_calls.borrow_mut();
        let parameters = calls.parameters.get_or_insert_with(|| self.work.parameters.as_slice().into());
        let parameters = Arc::clone(parameters);
        Ok(OuterCall::Benchmark(Box::new(Benchmark { remaining, expression, parameters, scratch })))
    }

    /// Releases the locks of a session that ends or is reset.
    pub(super) fn release_user_locks(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        if std::mem::take(&mut session.holds_user_locks) {
            self.gateway.release_user_locks(session.connection, turn);
        }
    }
}

/// Fails a statement that has lock calls and uses a table. A statement without a table may continue.
pub(super) fn refuse_lock_calls(context: &mut StatementContext<'_, '_>, plan: &Plan) -> Progress {
    let awaits_files = context.engine.lock_calls.get_mut().awaits_files();
    match plan.table() {
        Some(_) if !awaits_files => fail(context, &lock_call_in_table_statement()),
        _ => {
            context.limit_query(plan);
            Progress::Waiting
        }
    }
}
