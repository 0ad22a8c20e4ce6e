//! What answers are made from.

use junctor_model::id::TableId;
use junctor_model::schema::Dictionary;

use crate::mysql_catalog::variable::SessionFacts;

/// Figures of a table that change without its definition. What is not known is 0 or `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableNumbers {
    /// Rows, as far as known.
    pub rows: u64,
    /// Bytes of the rows.
    pub data_bytes: u64,
    /// Bytes of the indexes.
    pub index_bytes: u64,
    /// The next AUTO_INCREMENT value.
    pub auto_increment: Option<u64>,
}

/// How bad a warning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WarningLevel {
    Note,
    Warning,
    Error,
}

/// What a statement had to say beside its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// How bad it is.
    pub level: WarningLevel,
    /// MySQL's number.
    pub code: u16,
    /// MySQL's text.
    pub message: Box<str>,
}

impl WarningLevel {
    /// MySQL's name of the level.
    pub fn name(self) -> &'static str {
        match self {
            WarningLevel::Note => "Note",
            WarningLevel::Warning => "Warning",
            WarningLevel::Error => "Error",
        }
    }
}

/// Everything that answers are made from.
#[derive(Clone, Copy)]
pub struct ShowFacts<'a> {
    /// Tables and databases.
    pub dictionary: &'a Dictionary,
    /// The session and its variables.
    pub session: &'a SessionFacts<'a>,
    /// Figures of a table.
    pub numbers: &'a dyn Fn(TableId) -> TableNumbers,
    /// Counters of SHOW STATUS: name and value.
    pub status: &'a [(&'a str, String)],
    /// Warnings of the last statement.
    pub warnings: &'a [Warning],
}
