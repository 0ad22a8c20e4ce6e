//! The declaration of a system variable: name, scope, kind with default and bounds, and storage slot.

use super::table::{ALIASES, TABLE};

/// Identifies a system variable by its position in [`TABLE`]. Not stable between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableId(pub u16);

/// Whether the server, each session or both have a value of a variable, and whether SET may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The server has a value, and a new session copies it. SET may change both.
    Both,
    /// The server has a value, which SET GLOBAL may change. Sessions read the server's value and cannot
    /// change it.
    SessionFixed,
    /// Only sessions have a value; SET may change it.
    Session,
    /// Only sessions have a value; SET fails with error 1238.
    SessionReadOnly,
    /// Only the server has a value; SET GLOBAL may change it.
    Global,
    /// Only the server has a value; SET fails with error 1238.
    GlobalReadOnly,
}

/// The values that a variable accepts, and its default.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// ON or OFF; 1 or 0 in expressions. The field is the default.
    Flag(bool),
    /// An integer.
    Number {
        /// Default.
        default: u64,
        /// Minimum. A smaller value becomes the minimum with warning 1292, or is error 1231 with
        /// STRICT_ALL_TABLES.
        min: u64,
        /// Maximum, with the same rule.
        max: u64,
    },
    /// A non-negative number with a fraction; negative values become 0. The field is the default.
    Real(f64),
    /// A string of at most 4 KiB. If the default is `None`, the variable accepts NULL and NULL is its
    /// default.
    Text(Option<&'static str>),
    /// One of these words, or its position from 0. The first word is the default.
    Choice(&'static [&'static str]),
    /// As [`Kind::Choice`], with the default at this position.
    ChoiceFrom(&'static [&'static str], usize),
    /// A comma-separated list of at least one of these words, or their bits. The word at this position is the
    /// default.
    Set(&'static [&'static str], usize),
    /// A comma-separated list of `name=on` and `name=off`; the field has the default of each switch.
    Switches(&'static [(&'static str, bool)]),
    /// A comma-separated list of SQL modes, or their bits as a number.
    SqlMode,
    /// An isolation level, by name or by MySQL's number.
    Isolation,
    /// A character set. The field is true if the variable accepts NULL.
    CharacterSet(bool),
    /// A collation of a connection.
    Collation,
    /// `SYSTEM`, `UTC` or an offset such as `+02:00`.
    TimeZone,
    /// A locale, by name or by MySQL's number.
    Locale,
}

/// Where the session's value is stored: in the sparse list, in a field of the session, or nowhere because it
/// is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Slot {
    /// In the sorted list of values that differ from the default.
    Stored,
    Autocommit,
    Isolation,
    ReadOnly,
    KeepsToSnapshot,
    CommitDurability,
    SqlMode,
    LockWait,
    WaitTimeout,
    TransactionTimeout,
    HighPriorityMode,
    HighPriorityTickets,
    ForeignKeyChecks,
    SelectLimit,
    MaxErrorCount,
    SqlNotes,
    ExecutionTime,
    CharacterSetClient,
    CharacterSetResults,
    /// The character set of `collation_connection`.
    CharacterSetConnection,
    CollationConnection,
    /// Computed from the current database, like the next variant.
    CharacterSetDatabase,
    CollationDatabase,
    LastInsertId,
    InsertId,
    WarningCount,
    ErrorCount,
    Timestamp,
}

/// A system variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Name in lower case.
    pub name: &'static str,
    /// Owner of the value, and whether SET may change it.
    pub scope: Scope,
    /// Accepted values and default.
    pub kind: Kind,
    /// Storage of the session's value.
    pub slot: Slot,
}

impl Variable {
    /// Whether sessions have a value.
    pub fn has_session_value(&self) -> bool {
        !matches!(self.scope, Scope::Global | Scope::GlobalReadOnly)
    }

    /// Whether the server has a value.
    pub fn has_global_value(&self) -> bool {
        !matches!(self.scope, Scope::Session | Scope::SessionReadOnly)
    }

    pub(super) const fn at(mut self, slot: Slot) -> Variable {
        self.slot = slot;
        self
    }
}

impl VariableId {
    /// The variable's declaration.
    pub fn variable(self) -> &'static Variable {
        &TABLE[usize::from(self.0)]
    }
}

/// Finds a variable by name, ignoring case. Names of MySQL before 8.0 and of MariaDB are aliases.
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
