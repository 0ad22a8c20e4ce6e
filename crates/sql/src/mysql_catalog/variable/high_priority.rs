//! The values of `thread_pool_high_prio_mode` (`docs/decisions/0040-thread-pool.md`).

/// Which statements the thread pool lets pass others (`thread_pool_high_prio_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HighPriorityMode {
    /// Statements of transactions under way, which keep their slots.
    #[default]
    Transactions,
    /// All. Each needs a slot of its own.
    Statements,
    /// None. Each needs a slot of its own.
    None,
}

impl HighPriorityMode {
    /// The values of the system variable, in the order of the variants.
    pub(crate) const NAMES: &'static [&'static str] = &["transactions", "statements", "none"];

    /// The value of the system variable.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The mode of that name.
    pub(crate) fn named(name: &str) -> Option<HighPriorityMode> {
        [Self::Transactions, Self::Statements, Self::None].into_iter().find(|mode| mode.name() == name)
    }
}
