//! The input and the result of a checked definition statement.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::TableOwner;
use junctor_model::limit::IDENTIFIER_CHARACTERS_MAX;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::{DatabaseDefinition, Dictionary, TableLayout};
use junctor_model::temporal::ValueRules;
use junctor_signals::change_schema::SchemaChange;

use super::message;
use crate::bind::Environment;
use crate::mysql_catalog::is_system_database;
use crate::mysql_catalog::variable::Note;
use crate::parse::statement::ObjectName;

/// The dictionary and the session's settings, against which a definition statement is checked.
#[derive(Clone, Copy)]
pub struct DefinitionContext<'a> {
    /// All tables and databases, as this node knows them now.
    pub dictionary: &'a Dictionary,
    /// The number of the session for tables of its own.
    pub owner: TableOwner,
    /// The columns of the query of CREATE TABLE ... SELECT.
    pub query: Option<&'a [ResultColumn]>,
    /// The session's current database, for unqualified names.
    pub database: Option<&'a str>,
    /// Number of partitions of a table whose statement has no PARTITIONS clause.
    pub default_partition_count: u16,
    /// Number of node groups in which new tables are placed; 1 on a node alone.
    pub node_groups: u16,
    /// The account in the form of error 1044: `'user'@'host'`.
    pub account: &'a str,
    /// The session's `foreign_key_checks`: whether the parent of a new foreign key must exist and match.
    pub foreign_key_checks: bool,
    /// Whether an unknown ENGINE is replaced with a warning, because the session's `sql_mode` lacks
    /// NO_ENGINE_SUBSTITUTION. Otherwise it is error 1286.
    pub replaces_unknown_engines: bool,
    /// The session's settings, for the expressions of columns and constraints.
    pub environment: &'a Environment<'a>,
    /// The session's rules for days and times.
    pub rules: ValueRules,
    /// The time of the statement, in microseconds since 1970.
    pub now_us: u64,
}

/// A checked statement.
#[derive(Debug)]
pub struct CheckedDefinition {
    /// The request to the main block.
    pub change: SchemaChange,
    /// Warnings, as (errno, message).
    pub notes: Vec<Note>,
    /// Notes about what exists, or does not, as of IF EXISTS.
    pub existence_notes: Vec<Note>,
    /// Whether the open transaction is committed first. Only changes of temporary tables keep it open.
    pub commits: bool,
    /// Whether the table of CREATE TABLE is created, so that the rows of its query may be inserted.
    pub creates: bool,
    /// A second change.
    pub then: Option<SchemaChange>,
}

impl CheckedDefinition {
    pub(super) fn plain(change: SchemaChange) -> CheckedDefinition {
        CheckedDefinition {
            change,
            notes: Vec::new(),
            existence_notes: Vec::new(),
            commits: true,
            creates: true,
            then: None,
        }
    }
}

impl<'a> DefinitionContext<'a> {
    /// The database of a qualified or unqualified name. Errors: 1046, and 1044 for a database that statements
    /// cannot change.
    pub(super) fn database_of<'n>(&self, name: &'n ObjectName) -> Result<&'n str>
    where
        'a: 'n,
    {
        let Some(database) = name.database.as_deref().or(self.database) else {
            return Err(Error::new(ErrorCode::NoDatabaseSelected, "No database selected"));
        };
        self.check_writable(database)?;
        Ok(database)
    }

    /// The database of a name from which a table leaves. Errors: 1046, 1044.
    pub(super) fn database_left<'n>(&self, name: &'n ObjectName) -> Result<&'n str>
    where
        'a: 'n,
    {
        match name.database.as_deref().or(self.database) {
            Some(database) if self.is_stored(database) => Ok(database),
            _ => self.database_of(name),
        }
    }

    /// Error 1044 for a database that cannot be removed.
    pub(super) fn check_removable(&self, database: &str) -> Result<()> {
        if self.is_stored(database) { Ok(()) } else { self.check_writable(database) }
    }

    /// Whether users created this database. Before the system had one of the same name, they could.
    fn is_stored(&self, database: &str) -> bool {
        self.dictionary.database(database).is_some()
    }

    /// The definition of the name's database. Errors: 1046, 1044, 1049.
    pub(super) fn known_database(&self, name: &ObjectName) -> Result<&'a DatabaseDefinition> {
        let database = self.database_of(name)?;
        let unknown = || Error::new(ErrorCode::UnknownDatabase, format!("Unknown database '{database}'"));
        self.dictionary.database(database).ok_or_else(unknown)
    }

    /// The table with this name, which may be temporary. Errors: 1046, 1044, 1146.
    pub(super) fn table(&self, name: &ObjectName) -> Result<&'a TableLayout> {
        let database = self.database_of(name)?;
        match self.dictionary.table_seen_by(self.environment.owner, database, &name.name) {
            Some(layout) if layout.definition.view.is_some() => {
                Err(crate::bind::message::wrong_object(database, &name.name, "BASE TABLE"))
            }
            Some(layout) => Ok(layout),
            None => Err(message::no_such_table(database, &name.name)),
        }
    }

    /// The session's temporary table with this name. Errors: 1046, 1044.
    pub(super) fn temporary_table(&self, name: &ObjectName) -> Result<Option<&'a TableLayout>> {
        let database = self.database_of(name)?;
        let own = |owner| self.dictionary.owned_table(owner, database, &name.name);
        Ok(self.environment.owner.and_then(own).map(|layout| &**layout))
    }

    /// Error 1044 for a database whose tables are all virtual.
    pub(super) fn check_writable(&self, database: &str) -> Result<()> {
        if is_system_database(database) {
            let text = format!("Access denied for user {} to database '{database}'", self.account);
            return Err(Error::new(ErrorCode::DatabaseAccessDenied, text));
        }
        Ok(())
    }
}

/// Errors: 1059 for a name above 64 characters; `wrong` with "Incorrect ... name" for an empty name, a
/// trailing space or a zero byte.
pub(super) fn check_name(name: &str, wrong: ErrorCode, what: &str) -> Result<()> {
    if name.chars().count() > IDENTIFIER_CHARACTERS_MAX {
        return Err(message::identifier_too_long(name));
    }
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(Error::new(wrong, format!("Incorrect {what} name '{name}'")));
    }
    Ok(())
}
