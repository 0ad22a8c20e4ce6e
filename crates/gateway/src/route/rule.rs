//! The rules by which a node gives reads their places.

/// A rule; all but the first are the controls of experiments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadRule {
    /// Where the predicted cost is least.
    #[default]
    Adaptive,
    /// The query block of the own thread where there is one, else by turns the owner and the query blocks.
    Local,
    /// Always the owner ldm.
    Owner,
    /// By weights of the threads, as RonDB does.
    Weights,
}

impl ReadRule {
    /// All of them.
    pub const ALL: [ReadRule; 4] = [ReadRule::Adaptive, ReadRule::Local, ReadRule::Owner, ReadRule::Weights];

    /// The word in settings and status tables.
    pub const fn name(self) -> &'static str {
        match self {
            ReadRule::Adaptive => "adaptive",
            ReadRule::Local => "local",
            ReadRule::Owner => "owner",
            ReadRule::Weights => "weights",
        }
    }

    /// The rule of that name, in any case of letters.
    pub fn named(name: &str) -> Option<ReadRule> {
        ReadRule::ALL.into_iter().find(|rule| rule.name().eq_ignore_ascii_case(name))
    }
}
