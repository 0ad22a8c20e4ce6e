//! The system variables that control how threads spin, and their initial values.

use junctor_gateway::{
    TurnContext,
    threads::{SpinChoice, SpinMethod},
};
use junctor_model::value::Value;

use crate::execute::engine::Engine;
use crate::mysql_catalog::variable::GlobalVariables;

/// The system variables of spinning.
const NAMES: [&str; 5] = [
    "spin_method",
    "scheduler_spin_timer_us",
    "enable_adaptive_spinning",
    "allowed_spin_overhead",
    "spintime_per_call_ns",
];

/// The initial values of the variables, taken from the choice.
pub(super) fn values(choice: &SpinChoice) -> [(&'static str, Value); 5] {
    let number = |number: u32| Value::UInt(u64::from(number));
    let [method, timer, adaptive, overhead, call] = NAMES;
    [
        (method, Value::Bytes(choice.method.name().into())),
        (timer, number(choice.timer_us)),
        (adaptive, Value::Int(i64::from(choice.enable_adaptive))),
        (overhead, number(choice.overhead_percent.unwrap_or(0))),
        (call, number(choice.poll_interval_ns)),
    ]
}

impl Engine {
    /// Applies the variables to all threads if `set` contains one of them.
    pub(crate) fn apply_spinning<'a>(&self, mut set: impl Iterator<Item = &'a str>, turn: &mut TurnContext<'_>) {
        if set.any(|name| NAMES.contains(&name)) {
            turn.set_spinning(choice(&self.globals).settings());
        }
    }
}

fn choice(globals: &GlobalVariables) -> SpinChoice {
    let number = |name| match globals.value_named(name) {
        Value::UInt(number) => number as u32,
        Value::Int(number) => number as u32,
        _ => 0,
    };
    let [method, timer, adaptive, overhead, call] = NAMES;
    let method = match globals.value_named(method) {
        Value::Bytes(name) => std::str::from_utf8(&name).ok().and_then(SpinMethod::named).unwrap_or_default(),
        _ => SpinMethod::default(),
    };
    SpinChoice {
        method,
        timer_us: number(timer),
        enable_adaptive: number(adaptive) != 0,
        overhead_percent: Some(number(overhead)).filter(|percent| *percent > 0),
        poll_interval_ns: number(call),
    }
}
