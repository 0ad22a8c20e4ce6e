//! The system variables that control how threads send, and their initial values.

use junctor_gateway::{
    TurnContext,
    threads::{SendAssistance, SendSettings},
};
use junctor_model::value::Value;

use crate::execute::engine::Engine;
use crate::mysql_catalog::variable::GlobalVariables;

/// The system variables of sending.
const NAMES: [&str; 2] = ["send_assistance", "max_send_delay_us"];

/// The initial values of the variables, taken from the settings.
pub(super) fn values(settings: &SendSettings) -> [(&'static str, Value); 2] {
    let [assistance, delay] = NAMES;
    [
        (assistance, Value::Bytes(settings.assistance.name().into())),
        (delay, Value::UInt(u64::from(settings.delay_us_max))),
    ]
}

impl Engine {
    /// Applies the variables to all threads if `set` contains one of them.
    pub(crate) fn apply_sending<'a>(&self, mut set: impl Iterator<Item = &'a str>, turn: &mut TurnContext<'_>) {
        if set.any(|name| NAMES.contains(&name)) {
            turn.set_sending(settings(&self.globals));
        }
    }
}

fn settings(globals: &GlobalVariables) -> SendSettings {
    let [assistance, delay] = NAMES;
    let assistance = match globals.value_named(assistance) {
        Value::Bytes(name) => std::str::from_utf8(&name).ok().and_then(SendAssistance::named).unwrap_or_default(),
        _ => SendAssistance::default(),
    };
    let delay_us_max = match globals.value_named(delay) {
        Value::UInt(number) => number as u32,
        Value::Int(number) => number as u32,
        _ => 0,
    };
    SendSettings { assistance, delay_us_max }
}
