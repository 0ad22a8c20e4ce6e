//! The system variables of the thread pool (`docs/decisions/0040-thread-pool.md`).

use junctor_model::value::Value;

use crate::execute::engine::Engine;
use crate::mysql_catalog::variable::HighPriorityMode;

/// The settings of the thread pool of the whole node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPoolSettings {
    /// The mode of new sessions.
    pub mode: HighPriorityMode,
    /// Number of slots; 0 if each group adapts it.
    pub transactions: u64,
    /// Maximum number of slots.
    pub threads_max: u64,
    /// Slots of stalls that a group keeps.
    pub oversubscribe: u64,
    /// Time without an admission after which a group is stalled, in milliseconds.
    pub stall_limit_ms: u64,
    /// Time after which an idle group forgets what it learnt, in seconds.
    pub idle_timeout_s: u64,
    /// Time after which a waiting command gets high priority, in milliseconds.
    pub kickup_ms: u64,
}

impl Engine {
    /// The settings of the thread pool.
    pub fn thread_pool(&self) -> ThreadPoolSettings {
        let number = |name: &str| match self.globals.value_named(name) {
            Value::UInt(number) => number,
            Value::Int(number) => u64::try_from(number).unwrap_or(0),
            _ => 0,
        };
        let mode = match self.globals.value_named("thread_pool_high_prio_mode") {
            Value::Bytes(name) => std::str::from_utf8(&name).ok().and_then(HighPriorityMode::named),
            _ => None,
        };
        ThreadPoolSettings {
            mode: mode.unwrap_or(HighPriorityMode::Transactions),
            transactions: number("thread_pool_transactions"),
            threads_max: number("thread_pool_max_threads").min(u64::from(self.settings.transactions_max)),
            oversubscribe: number("thread_pool_oversubscribe"),
            stall_limit_ms: number("thread_pool_stall_limit"),
            idle_timeout_s: number("thread_pool_idle_timeout"),
            kickup_ms: number("thread_pool_prio_kickup_timer"),
        }
    }
}
