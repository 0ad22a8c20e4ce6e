//! The rules by which the thread of a read is chosen.

/// A routing rule. All but the first serve as controls in experiments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadRule {
    /// The location with the lowest predicted cost.
    #[default]
    Adaptive,
    /// The query block on this thread if one exists; otherwise the owner and the query blocks in turn.
    Local,
    /// Always the owner ldm.
    Owner,
    /// By weights of threads, as RonDB does.
    Weights,
}

impl ReadRule {
    /// All rules.
    pub const ALL: [ReadRule; 4] = [ReadRule::Adaptive, ReadRule::Local, ReadRule::Owner, ReadRule::Weights];

    /// Its name in settings and status tables.
    pub const fn name(self) -> &'static str {
        match self {
            ReadRule::Adaptive => "adaptive",
            ReadRule::Local => "local",
            ReadRule::Owner => "owner",
            ReadRule::Weights => "weights",
        }
    }

    /// The rule with this name, in any letter case.
    pub fn named(name: &str) -> Option<ReadRule> {
        ReadRule::ALL.into_iter().find(|rule| rule.name().eq_ignore_ascii_case(name))
    }
}
