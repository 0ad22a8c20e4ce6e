//! How a system variable is declared: name, scope, kind with default and bounds, and where its value is kept.

use super::table::{ALIASES, TABLE};

/// A system variable, by its place in [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableId(pub u16);

/// Who has a value of the variable, and who may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The server has a value that new sessions copy; both may be changed.
    Both,
    /// As [`Scope::Both`], but only the server's value may be changed.
    SessionFixed,
    /// Only sessions have a value.
    Session,
    /// Only sessions have a value, and nobody changes it by SET.
    SessionReadOnly,
    /// Only the server has a value.
    Global,
    /// Only the server has a value, and nobody changes it by SET.
    GlobalReadOnly,
}

/// What values a variable takes, with its default.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// ON or OFF; as an expression 1 or 0.
    Flag(bool),
    /// A whole number.
    Number {
        /// The default.
        default: u64,
        /// The smallest; anything less becomes it, with a warning.
        min: u64,
        /// The greatest; anything more becomes it, with a warning.
        max: u64,
    },
    /// A number with a fraction, at least 0.
    Real(f64),
    /// A string; with the default `None`, NULL is a value too.
    Text(Option<&'static str>),
    /// One of these words, or its number; the first one is the default.
    Choice(&'static [&'static str]),
    /// A list of `name=on` and `name=off`.
    Switches(&'static [(&'static str, bool)]),
    /// Names of SQL modes.
    SqlMode,
    /// An isolation level.
    Isolation,
    /// A character set; with true NULL is a value too.
    CharacterSet(bool),
    /// A collation.
    Collation,
    /// `SYSTEM`, `UTC` or an offset of hours and minutes.
    TimeZone,
}

/// Where the session's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Slot {
    /// Among the deviations from the defaults.
    Stored,
    Autocommit,
    Isolation,
    ReadOnly,
    KeepsToSnapshot,
    SqlMode,
    LockWait,
    WaitTimeout,
    TransactionTimeout,
    ForeignKeyChecks,
    SelectLimit,
    MaxErrorCount,
    SqlNotes,
    CharacterSetClient,
    CharacterSetResults,
    /// The character set of `collation_connection`.
    CharacterSetConnection,
    CollationConnection,
    /// Told by the current database.
    CharacterSetDatabase,
    CollationDatabase,
    LastInsertId,
    WarningCount,
    ErrorCount,
    Timestamp,
}

/// A system variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name in small letters.
    pub name: &'static str,
    /// Who has a value.
    pub scope: Scope,
    /// Of what kind.
    pub kind: Kind,
    /// Where the session's value is.
    pub slot: Slot,
}

impl Variable {
    /// Whether sessions have a value of it.
    pub fn has_session_value(&self) -> bool {
        !matches!(self.scope, Scope::Global | Scope::GlobalReadOnly)
    }

    /// Whether the server has a value of it.
    pub fn has_global_value(&self) -> bool {
        !matches!(self.scope, Scope::Session | Scope::SessionReadOnly)
    }

    pub(super) const fn at(mut self, slot: Slot) -> Variable {
        self.slot = slot;
        self
    }
}

impl VariableId {
    /// Its declaration.
    pub fn variable(self) -> &'static Variable {
        &TABLE[usize::from(self.0)]
    }
}

/// The variable of that name in any letter case. The names of MySQL before 8.0 and of MariaDB find their counterparts.
pub fn find(name: &str) -> Option<VariableId> {
    let name = name.to_ascii_lowercase();
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name.as_str(), |(_, name)| name);
    let position = TABLE.binary_search_by(|variable| variable.name.cmp(name)).ok()?;
    Some(VariableId(position as u16))
}

pub(super) const fn declare(name: &'static str, scope: Scope, kind: Kind) -> Variable {
    Variable { name, scope, kind, slot: Slot::Stored }
}

pub(super) const fn flag(name: &'static str, scope: Scope, default: bool) -> Variable {
    declare(name, scope, Kind::Flag(default))
}

pub(super) const fn number(name: &'static str, scope: Scope, default: u64, min: u64, max: u64) -> Variable {
    declare(name, scope, Kind::Number { default, min, max })
}

pub(super) const fn text(name: &'static str, scope: Scope, default: &'static str) -> Variable {
    declare(name, scope, Kind::Text(Some(default)))
}

pub(super) const fn choice(name: &'static str, scope: Scope, words: &'static [&'static str]) -> Variable {
    declare(name, scope, Kind::Choice(words))
}
