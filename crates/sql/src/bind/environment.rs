//! What a statement is bound against.

use junctor_expression::{Kind, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::{Dictionary, TableLayout};
use junctor_model::value::Value;
use std::sync::Arc;

use crate::parse::expression::Expression;
use crate::parse::statement::ObjectName;

/// A session function or variable, replaced by its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    /// The value.
    pub value: Value,
    /// Whether another execution may give another value, so that the plan is good for this one only.
    pub is_volatile: bool,
}

/// The kind of value that an ordinal of the statement stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterKind {
    /// The kind of the value, or of every value of a list.
    pub kind: Kind,
    /// Digits after the point of a decimal; 0 for other kinds and for lists.
    pub scale: u8,
    /// Whether it is a folded list.
    pub is_list: bool,
    /// What a string bounds as a LIKE pattern.
    pub prefix: PatternPrefix,
    /// The type of a value that only the session knows: the plan is for values of this type alone.
    pub exact: Option<ResultType>,
}

/// What a string bounds as a LIKE pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatternPrefix {
    /// It is no pattern, or nothing is known of it.
    #[default]
    Unknown,
    /// It begins with characters that stand for themselves: a range of keys.
    Present,
    /// It is empty, or begins with a wildcard or the usual escape character: no range.
    Absent,
}

impl ParameterKind {
    /// The kind of a single value that is no decimal.
    pub const fn of(kind: Kind) -> ParameterKind {
        ParameterKind { kind, scale: 0, is_list: false, prefix: PatternPrefix::Unknown, exact: None }
    }

    /// A value of exactly this type.
    pub fn exactly(result: ResultType) -> ParameterKind {
        ParameterKind { exact: Some(result), ..ParameterKind::of(result.kind) }
    }

    /// Whether a plan made for this kind is right for a value of the other kind.
    #[inline]
    pub fn serves(&self, other: &ParameterKind) -> bool {
        (self.kind, self.scale, self.is_list) == (other.kind, other.scale, other.is_list)
            && (self.prefix == PatternPrefix::Unknown || self.prefix == other.prefix)
    }
}

impl PatternPrefix {
    /// What this pattern bounds.
    #[inline]
    pub fn of(pattern: &[u8]) -> PatternPrefix {
        if crate::parse::literal::begins_fixed(pattern) { PatternPrefix::Present } else { PatternPrefix::Absent }
    }
}

/// The schema, the session's settings and the parameters, as far as meaning depends on them.
pub struct Environment<'a> {
    /// The tables.
    pub dictionary: &'a Dictionary,
    /// The session's database.
    pub database: Option<&'a str>,
    /// The collation of literals (`collation_connection`).
    pub collation: CollationId,
    /// The kinds of the parameters, by ordinal.
    pub parameters: &'a [ParameterKind],
    /// Gives the value of what concerns the session (`VERSION()`, `@@autocommit`), or nothing for all else.
    pub fold: &'a dyn Fn(&Expression) -> Result<Option<Folded>>,
    /// Whether queries lock what they read.
    pub locks_reads: bool,
    /// Whether writes look after foreign keys.
    pub foreign_key_checks: bool,
    /// Whether a column outside an aggregate is an error beside aggregates (`sql_mode` has ONLY_FULL_GROUP_BY).
    pub only_full_group_by: bool,
    /// Digits that a division adds after the point (`div_precision_increment`).
    pub division_increment: u8,
    /// Whether the statement writes under strict rules: what its query cuts or divides by zero is an error.
    pub is_strict: bool,
}

impl<'a> Environment<'a> {
    /// The database that a name means. Error: 1046 when none is written and none is selected.
    pub fn database_of<'n>(&self, name: &'n ObjectName) -> Result<&'n str>
    where
        'a: 'n,
    {
        name.database
            .as_deref()
            .or(self.database)
            .ok_or_else(|| Error::new(ErrorCode::NoDatabaseSelected, "No database selected"))
    }

    /// The table that a name means. Errors: 1046, 1049 for an unknown database, 1146.
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
