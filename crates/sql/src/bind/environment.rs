//! The context that a statement is bound in.

use junctor_expression::{Kind, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::{Dictionary, TableLayout};
use junctor_model::value::Value;
use std::sync::Arc;

use crate::parse::expression::Expression;
use crate::parse::statement::ObjectName;

/// The value that replaces a session function or variable.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionConstant {
    /// The value at this execution.
    pub value: Value,
    /// Whether another execution may see another value. If so, the plan is valid for this execution only.
    pub is_volatile: bool,
}

/// The kind of value that a parameter's ordinal stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterKind {
    /// The kind of the value, or of every member of a list.
    pub kind: Kind,
    /// Digits after the point of a decimal; 0 for other kinds and for lists.
    pub scale: u8,
    /// Whether the parameter is a lifted list.
    pub is_list: bool,
    /// Whether a string bounds a range of keys as a LIKE pattern.
    pub prefix: PatternPrefix,
    /// The exact type of a value that only the session knows. The plan is valid for this type only.
    pub exact: Option<ResultType>,
}

/// Whether a string bounds a range of keys as a LIKE pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatternPrefix {
    /// The value is not a pattern, or nothing is known of it.
    #[default]
    Unknown,
    /// The pattern begins with a character that matches only itself, so it bounds a range of keys.
    Present,
    /// The pattern is empty, or begins with a wildcard or the default escape character: it bounds no range.
    Absent,
}

impl ParameterKind {
    /// The kind of a single value that is not a decimal.
    pub const fn of(kind: Kind) -> ParameterKind {
        ParameterKind { kind, scale: 0, is_list: false, prefix: PatternPrefix::Unknown, exact: None }
    }

    /// A single value of exactly this type.
    pub fn exactly(result: ResultType) -> ParameterKind {
        ParameterKind { exact: Some(result), ..ParameterKind::of(result.kind) }
    }

    /// Whether a plan that was made for this kind is valid for a value of the other kind.
    #[inline]
    pub fn serves(&self, other: &ParameterKind) -> bool {
        (self.kind, self.scale, self.is_list) == (other.kind, other.scale, other.is_list)
            && (self.prefix == PatternPrefix::Unknown || self.prefix == other.prefix)
    }
}

impl PatternPrefix {
    /// The prefix of a pattern, given its bytes without quotes.
    #[inline]
    pub fn of(pattern: &[u8]) -> PatternPrefix {
        if crate::parse::literal::starts_with_literal(pattern) { PatternPrefix::Present } else { PatternPrefix::Absent }
    }
}

/// The schema, the session's settings and the parameters, as far as the meaning of a statement depends on
/// them.
pub struct Environment<'a> {
    /// The databases and tables.
    pub dictionary: &'a Dictionary,
    /// The session's database, if one is selected.
    pub database: Option<&'a str>,
    /// The collation of literals (`collation_connection`).
    pub collation: CollationId,
    /// The kinds of the parameters, by ordinal.
    pub parameters: &'a [ParameterKind],
    /// Returns the value of a session function or variable (`VERSION()`, `@@autocommit`), and `None` for any
    /// other expression.
    pub session_constant: &'a dyn Fn(&Expression) -> Result<Option<SessionConstant>>,
    /// Whether queries lock the rows that they read.
    pub locks_reads: bool,
    /// Whether writes check foreign keys (`foreign_key_checks`).
    pub foreign_key_checks: bool,
    /// Whether a plain column beside aggregates is an error (`sql_mode` has ONLY_FULL_GROUP_BY).
    pub only_full_group_by: bool,
    /// Digits that a division adds after the point (`div_precision_increment`).
    pub division_increment: u8,
    /// Whether the statement writes in strict mode: truncation of data and division by zero are errors.
    pub is_strict: bool,
}

impl<'a> Environment<'a> {
    /// The database that a name refers to. Error 1046 if it is unqualified and no database is selected.
    pub fn database_of<'n>(&self, name: &'n ObjectName) -> Result<&'n str>
    where
        'a: 'n,
    {
        name.database
            .as_deref()
            .or(self.database)
            .ok_or_else(|| Error::new(ErrorCode::NoDatabaseSelected, "No database selected"))
    }

    /// The table that a name refers to. Errors: 1046, 1049 if the database is unknown, 1146 if the table is.
    pub fn table(&self, name: &ObjectName) -> Result<&'a Arc<TableLayout>> {
        let database = self.database_of(name)?;
        if let Some(table) = self.dictionary.table_named(database, &name.name) {
            return Ok(table);
        }
        if self.dictionary.database(database).is_none() {
            return Err(super::message::unknown_database(database));
        }
        Err(super::message::no_such_table(database, &name.name))
    }
}
