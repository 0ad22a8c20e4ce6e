//! GET_LOCK and its kin. A statement that calls them is planned to see that it is right and what it asks for; then main is asked
//! for one after the other, and the statement is executed again with what they gave in the place of the calls. So they are called
//! once in a statement, from left to right, before anything else of it.

use std::collections::VecDeque;

use junctor_expression::Scratch;
use junctor_gateway::TurnContext;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::Value;
use junctor_signals::read_rows::OperationId;
use junctor_signals::use_user_lock::UserLockAction;

use super::Engine;
use crate::execute::StatementContext;
use crate::execute::{Again, Execution, Origin, fail};
use crate::mysql_catalog::variable::{SessionFacts, text_of};
use crate::parse::Expression;
use crate::parse::expression::FunctionCall;
use crate::plan::Plan;
use crate::result::Progress;
use crate::session::Session;

/// Characters of a lock's name.
const NAME_CHARACTERS_MAX: usize = 64;

/// The functions, with the number of their arguments.
const FUNCTIONS: [(&str, usize); 5] =
    [("GET_LOCK", 2), ("RELEASE_LOCK", 1), ("RELEASE_ALL_LOCKS", 0), ("IS_FREE_LOCK", 1), ("IS_USED_LOCK", 1)];

/// The calls of the statement that is planned or executed.
#[derive(Debug, Default)]
pub(super) struct LockCalls {
    mode: LockCallMode,
    /// How many calls were met.
    met: usize,
    actions: Vec<UserLockAction>,
    results: Vec<Value>,
}

/// What a call comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LockCallMode {
    /// An error: nobody would ask main.
    #[default]
    Refused,
    /// A number, since only its type is wanted.
    Described,
    /// A number, while it is noted what main is to be asked for.
    Collected,
    /// What main has answered.
    Answered,
}

/// Answers of main that a session waits for.
#[derive(Debug)]
pub(crate) struct UserLockState {
    pub operation: OperationId,
    is_get: bool,
    rest: VecDeque<UserLockAction>,
    results: Vec<Value>,
    origin: Origin,
}

impl LockCalls {
    /// A statement is planned: its calls are met from the first one on.
    pub(super) fn restart(&mut self) {
        self.met = 0;
        self.actions.clear();
    }
}

impl StatementContext<'_, '_> {
    /// A statement was planned, and executed unless main is to be asked before.
    pub(super) fn after_lock_calls(&mut self, progress: Progress, again: Again<'_>) -> Progress {
        let is_to_ask = progress == Progress::Waiting && self.engine.has_unanswered_lock_calls();
        let actions = std::mem::take(&mut self.engine.lock_calls.get_mut().actions);
        self.engine.set_lock_calls(LockCallMode::Refused);
        if !is_to_ask {
            return progress;
        }
        let origin = again.keep(false, &self.engine.work.parameters, self.turn);
        self.start_user_locks(actions, origin)
    }

    /// Asks main for the locks of a statement, which is executed then.
    pub(super) fn start_user_locks(&mut self, actions: Vec<UserLockAction>, origin: Origin) -> Progress {
        if matches!(origin, Origin::None) {
            return fail(self, &Error::not_supported("GET_LOCK in a statement of more than 16 KiB"));
        }
        self.ask_for_lock(actions.into(), Vec::new(), origin)
    }

    fn ask_for_lock(&mut self, mut rest: VecDeque<UserLockAction>, results: Vec<Value>, origin: Origin) -> Progress {
        let Some(action) = rest.pop_front() else {
            *self.engine.lock_calls.get_mut() =
                LockCalls { mode: LockCallMode::Answered, results, ..LockCalls::default() };
            let progress = self.execute_again(origin);
            *self.engine.lock_calls.get_mut() = LockCalls::default();
            return progress;
        };
        let is_get = matches!(action, UserLockAction::Get { .. });
        match self.engine.gateway.use_user_lock(self.session.connection, action, self.turn) {
            Ok(operation) => {
                let state = UserLockState { operation, is_get, rest, results, origin };
                self.session.execution = Execution::UserLock(Box::new(state));
                Progress::Waiting
            }
            Err(error) => {
                origin.release(self.turn);
                fail(self, &error)
            }
        }
    }

    /// Main has answered.
    pub(super) fn on_user_lock(&mut self, value: Value, error: Option<Box<Error>>) -> Progress {
        let Execution::UserLock(state) = std::mem::take(&mut self.session.execution) else { return Progress::Waiting };
        let UserLockState { is_get, rest, mut results, origin, .. } = *state;
        if let Some(error) = error {
            origin.release(self.turn);
            return fail(self, &error);
        }
        self.session.holds_user_locks |= is_get && value == Value::Int(1);
        if self.session.interrupted {
            origin.release(self.turn);
            return Progress::Done;
        }
        results.push(value);
        self.ask_for_lock(rest, results, origin)
    }
}

impl Engine {
    /// From now on calls come to that, unless there are answers for those of the statement.
    pub(super) fn set_lock_calls(&mut self, mode: LockCallMode) {
        let calls = self.lock_calls.get_mut();
        if calls.mode != LockCallMode::Answered {
            calls.mode = mode;
            calls.restart();
        }
    }

    /// Whether main is to be asked before the statement planned last is executed.
    pub(super) fn has_unanswered_lock_calls(&mut self) -> bool {
        let calls = self.lock_calls.get_mut();
        calls.mode != LockCallMode::Answered && !calls.actions.is_empty()
    }

    /// The value of a call of one of the functions; `None` for every other expression.
    ///
    /// # Errors
    /// 1582 for a wrong number of arguments, 3057 for a wrong name, 1235 where such a call cannot stand.
    pub(super) fn fold_lock_call(
        &self,
        session: &Session,
        facts: &SessionFacts<'_>,
        expression: &Expression,
    ) -> Result<Option<Value>> {
        let Expression::Function(call) = expression else { return Ok(None) };
        let known = FUNCTIONS.iter().find(|(name, _)| call.database.is_none() && name.eq_ignore_ascii_case(&call.name));
        let Some((name, arguments)) = known else { return Ok(None) };
        if call.arguments.len() != *arguments {
            let message = format!("Incorrect parameter count in the call to native function '{name}'");
            return Err(Error::new(ErrorCode::WrongParameterCount, message));
        }
        {
            let mut calls = self.lock_calls.borrow_mut();
            calls.met += 1;
            match calls.mode {
                LockCallMode::Refused => return Err(Error::not_supported(&format!("{name} here"))),
                LockCallMode::Described => return Ok(Some(Value::Int(1))),
                LockCallMode::Answered => {
                    return Ok(Some(calls.results.get(calls.met - 1).cloned().unwrap_or(Value::Null)));
                }
                // An argument that calls one of the functions is refused.
                LockCallMode::Collected => calls.mode = LockCallMode::Refused,
            }
        }
        let action = self.lock_action(name, call, session, facts)?;
        let mut calls = self.lock_calls.borrow_mut();
        calls.mode = LockCallMode::Collected;
        calls.actions.push(action);
        Ok(Some(Value::Int(1)))
    }

    fn lock_action(
        &self,
        function: &str,
        call: &FunctionCall,
        session: &Session,
        facts: &SessionFacts<'_>,
    ) -> Result<UserLockAction> {
        let Some(argument) = call.arguments.first() else { return Ok(UserLockAction::ReleaseAll) };
        let name = lock_name(&self.evaluate(facts, session, argument, &Scratch::new())?)?;
        Ok(match (function, call.arguments.get(1)) {
            ("GET_LOCK", Some(seconds)) => {
                let wait_ms = wait_ms_of(&self.evaluate(facts, session, seconds, &Scratch::new())?);
                UserLockAction::Get { name, wait_ms }
            }
            ("RELEASE_LOCK", _) => UserLockAction::Release { name },
            ("IS_FREE_LOCK", _) => UserLockAction::IsFree { name },
            _ => UserLockAction::IsUsed { name },
        })
    }

    /// Gives back what a session holds that ends or begins anew.
    pub(super) fn release_user_locks(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        if std::mem::take(&mut session.holds_user_locks) {
            self.gateway.release_user_locks(session.connection, turn);
        }
    }
}

/// A statement of a table may have to be begun more than once, and a lock is to be got once.
pub(super) fn refuse_lock_calls(context: &mut StatementContext<'_, '_>, plan: &Plan) -> Progress {
    match plan.table() {
        None => Progress::Waiting,
        Some(_) => fail(context, &Error::not_supported("GET_LOCK in a statement of a table")),
    }
}

/// A name in small letters, as they are compared without regard to case.
fn lock_name(value: &Value) -> Result<Box<str>> {
    let text = text_of(value);
    let is_good = !value.is_null() && !text.is_empty() && text.chars().count() <= NAME_CHARACTERS_MAX;
    if !is_good {
        let message = format!("Incorrect user-level lock name '{text}'.");
        return Err(Error::new(ErrorCode::WrongUserLockName, message));
    }
    Ok(text.to_lowercase().into())
}

/// Whole seconds, rounded; less than 0 is for ever, and what is no number is 0.
fn wait_ms_of(value: &Value) -> Option<u64> {
    let seconds = match value {
        Value::Null => 0.0,
        Value::Int(value) => *value as f64,
        Value::UInt(value) => *value as f64,
        Value::Double(value) => value.round(),
        Value::Decimal(value) => value.to_double().round(),
        Value::Bytes(_) => text_of(value).trim().parse().unwrap_or(0.0_f64).round(),
    };
    // A number beyond every other is taken for the greatest one.
    (seconds >= 0.0).then_some((seconds * 1000.0) as u64)
}
