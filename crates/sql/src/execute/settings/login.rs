//! The system variables that concern logins.

use junctor_model::value::Value;
use std::sync::atomic::Ordering;

use crate::execute::engine::Engine;

impl Engine {
    /// Lets the recv blocks know the new values of variables that concern logins.
    pub(crate) fn apply_login_settings<'a>(&self, names: impl Iterator<Item = &'a str>) {
        for name in names {
            if let Some(setting) = self.settings.login.named(name) {
                let value = match self.globals.value_named(name) {
                    Value::UInt(number) => number,
                    Value::Int(number) => u64::try_from(number).unwrap_or(0),
                    _ => continue,
                };
                setting.store(value, Ordering::Relaxed);
            }
        }
    }
}
