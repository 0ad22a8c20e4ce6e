//! Calls in an expression that the session carries out: SLEEP, BENCHMARK and those of user-level locks.
//!
//! An evaluation that meets such a call is given up. The session carries out the call, which may take any
//! time, and evaluates the row again from its beginning, with the results of the calls so far. A call whose
//! value is not needed, such as one in another branch of CASE, is therefore never carried out.

use std::cell::{Cell, RefCell};

use crate::scratch::{WARNINGS_KEPT_DEFAULT, Warning};
use crate::value::Value;

/// A call that the session carries out.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionCall {
    /// The name of the function in upper case.
    pub function: &'static str,
    /// The values of the arguments.
    pub arguments: Vec<Value>,
}

/// The calls of one row.
#[derive(Debug, Default)]
pub struct SessionCalls {
    /// The calls that have been carried out, in the order of the evaluation, with their results.
    done: RefCell<Vec<(SessionCall, Value)>>,
    /// The number of those that the current evaluation has met.
    met: Cell<usize>,
    wanted: RefCell<Option<SessionCall>>,
    /// How often BENCHMARK has evaluated its expression, if it is the next call.
    repetitions: Cell<u64>,
    /// The warnings of these evaluations.
    warnings: RefCell<Vec<Warning>>,
}

impl SessionCalls {
    /// The result of a call; `None` if it must be carried out first. The evaluation is then given up.
    pub fn meet(&self, call: SessionCall) -> Option<Value> {
        if let Some(value) = self.met_before(&call) {
            return Some(value);
        }
        // The evaluation has taken another way than before.
        self.done.borrow_mut().truncate(self.met.get());
        *self.wanted.borrow_mut() = Some(call);
        None
    }

    /// The result of a call, if it has been carried out.
    pub fn met_before(&self, call: &SessionCall) -> Option<Value> {
        let done = self.done.borrow();
        let (_, value) = done.get(self.met.get()).filter(|(known, _)| known == call)?;
        self.met.set(self.met.get() + 1);
        Some(value.clone())
    }

    /// The number of evaluations of a BENCHMARK that has begun.
    pub fn repetitions(&self) -> u64 {
        self.repetitions.get()
    }

    /// Adds warnings of BENCHMARK, which count when it is at its end.
    pub fn keep_warnings(&self, new: Vec<Warning>) {
        let mut warnings = self.warnings.borrow_mut();
        let room = usize::from(WARNINGS_KEPT_DEFAULT).saturating_sub(warnings.len());
        warnings.extend(new.into_iter().take(room));
    }

    /// Takes the warnings of BENCHMARK.
    pub fn take_warnings(&self) -> Vec<Warning> {
        self.warnings.take()
    }

    /// Notes that BENCHMARK has evaluated its expression so often, and is not at its end.
    pub fn pause_at(&self, repetitions: u64, call: SessionCall) {
        self.repetitions.set(repetitions);
        *self.wanted.borrow_mut() = Some(call);
    }

    /// Notes the result of a call that the evaluation itself has carried out.
    pub fn finish(&self, call: SessionCall, value: Value) {
        self.repetitions.set(0);
        let mut done = self.done.borrow_mut();
        done.truncate(self.met.get());
        done.push((call, value));
        self.met.set(done.len());
    }

    /// Whether the evaluation was given up because of a call.
    pub fn is_wanting(&self) -> bool {
        self.wanted.borrow().is_some()
    }

    /// Takes the call that must be carried out.
    pub fn take_wanted(&mut self) -> Option<SessionCall> {
        self.wanted.get_mut().take()
    }

    /// Adds the result of the call that was wanted.
    pub fn answer(&mut self, call: SessionCall, value: Value) {
        self.done.get_mut().push((call, value));
    }

    /// Begins an evaluation of the row.
    pub fn begin(&self) {
        self.met.set(0);
    }

    /// Forgets the calls of a row that is evaluated.
    pub fn end(&self) {
        self.met.set(0);
        self.repetitions.set(0);
        self.warnings.borrow_mut().clear();
        self.done.borrow_mut().clear();
        self.wanted.borrow_mut().take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: &'static str, argument: i64) -> SessionCall {
        SessionCall { function, arguments: vec![Value::Int(argument)] }
    }

    #[test]
    fn each_evaluation_of_a_row_gets_the_results_of_its_calls_in_their_order() {
        let mut calls = SessionCalls::default();
        assert_eq!(calls.meet(call("GET_LOCK", 1)), None);
        assert!(calls.is_wanting());
        let wanted = calls.take_wanted().expect("a call is wanted");
        calls.answer(wanted, Value::Int(7));
        calls.begin();
        assert_eq!(calls.meet(call("GET_LOCK", 1)), Some(Value::Int(7)));
        assert_eq!(calls.meet(call("GET_LOCK", 1)), None, "the second call is another one");
        let wanted = calls.take_wanted().expect("a call is wanted");
        calls.answer(wanted, Value::Int(8));
        calls.begin();
        assert_eq!(calls.meet(call("GET_LOCK", 1)), Some(Value::Int(7)));
        assert_eq!(calls.meet(call("GET_LOCK", 1)), Some(Value::Int(8)));
        calls.end();
        assert_eq!(calls.meet(call("GET_LOCK", 1)), None, "the next row has its own calls");
    }

    #[test]
    fn a_call_that_the_evaluation_no_longer_meets_is_forgotten() {
        let mut calls = SessionCalls::default();
        calls.answer(call("SLEEP", 1), Value::Int(0));
        calls.answer(call("SLEEP", 2), Value::Int(0));
        assert_eq!(calls.meet(call("SLEEP", 3)), None);
        assert_eq!(calls.take_wanted(), Some(call("SLEEP", 3)));
        calls.answer(call("SLEEP", 3), Value::Int(1));
        calls.begin();
        assert_eq!(calls.meet(call("SLEEP", 3)), Some(Value::Int(1)));
        assert_eq!(calls.meet(call("SLEEP", 2)), None);
    }
}
