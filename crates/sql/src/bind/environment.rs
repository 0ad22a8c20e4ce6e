//! The input of binding, other than the statement.

use junctor_expression::{Kind, ResultType};
use junctor_model::access::Privilege;
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{ColumnNumber, TableOwner};
use junctor_model::schema::{Dictionary, SYSTEM_DATABASES, TableDefinition, TableLayout};
use junctor_model::temporal::ValueRules;
use junctor_model::value::Value;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::block::MergedView;
use super::scope::{ColumnOwner, FoundColumn};
use crate::access::{NeedsCollector, TableAccess, denied_database, invalid_view};
use crate::parse::expression::Expression;
use crate::parse::statement::ObjectName;
use crate::statistics::TableProfile;

/// The constant that replaces a session function or variable when a statement is bound.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionConstant {
    /// The value at this execution.
    pub value: Value,
    /// The type of the value, which follows from the function or variable.
    pub result: ResultType,
    /// Whether another execution may see another value. If so, the plan is valid for this execution only.
    pub is_volatile: bool,
    /// Whether the value is a count of the diagnostics of the statement before.
    pub is_of_diagnostics: bool,
}

/// The kind of a parameter's values, as far as a plan depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterKind {
    /// The kind of the value, or of every member of a list.
    pub kind: Kind,
    /// Digits after the decimal point of a decimal; 0 for other kinds and for lists.
    pub scale: u8,
    /// Whether the parameter is a list of values (a lifted IN list).
    pub is_list: bool,
    /// For a string that may be a LIKE pattern: whether the pattern begins with a literal character.
    pub prefix: PatternPrefix,
    /// The complete type (not only the kind), for a value that only the session knows. The plan is valid for
    /// this type only.
    pub exact: Option<ResultType>,
    /// Whether the value is the time of the statement in UTC, with six digits.
    pub is_statement_time: bool,
    /// Whether the value is a count of the diagnostics of the statement before. Planning the statement again
    /// finds another one.
    pub is_of_diagnostics: bool,
}

/// For a string that may be a LIKE pattern: whether the pattern begins with a literal character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatternPrefix {
    /// The value is not a pattern, or nothing is known of it.
    #[default]
    Unknown,
    /// The pattern begins with a literal character, so a key range can be derived from it.
    Present,
    /// The pattern is empty, or begins with a wildcard or the default escape character. No key range can be
    /// derived from it.
    Absent,
}

impl ParameterKind {
    /// The kind of a single value that is not a decimal.
    pub const fn of(kind: Kind) -> ParameterKind {
        ParameterKind {
            kind,
            scale: 0,
            is_list: false,
            prefix: PatternPrefix::Unknown,
            exact: None,
            is_statement_time: false,
            is_of_diagnostics: false,
        }
    }

    /// A single value of exactly this type.
    pub fn exactly(result: ResultType) -> ParameterKind {
        ParameterKind { exact: Some(result), ..ParameterKind::of(result.kind) }
    }

    /// Whether a plan made for this kind is valid for values of the other kind.
    #[inline]
    pub fn serves(&self, other: &ParameterKind) -> bool {
        (self.kind, self.scale, self.is_list) == (other.kind, other.scale, other.is_list)
            && (self.prefix == PatternPrefix::Unknown || self.prefix == other.prefix)
    }

    /// Whether a plan for this kind serves every signed integer.
    #[inline]
    pub fn is_integer(&self) -> bool {
        (self.kind, self.scale, self.is_list, self.prefix) == (Kind::Int, 0, false, PatternPrefix::Unknown)
    }

    /// Like [`Self::serves`], but the exact types must be equal too. Only implicit parameters have an exact
    /// type: session values such as `NOW()`, which are parameters of the plan.
    pub fn serves_exactly(&self, other: &ParameterKind) -> bool {
        self.exact == other.exact && self.serves(other)
    }
}

impl PatternPrefix {
    /// The prefix of a pattern, given its bytes without quotes.
    #[inline]
    pub fn of(pattern: &[u8]) -> PatternPrefix {
        if crate::parse::literal::starts_with_literal(pattern) { PatternPrefix::Present } else { PatternPrefix::Absent }
    }
}

/// The parts of `sql_mode` that determine the meaning of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// ONLY_FULL_GROUP_BY: a column outside an aggregate is an error in a query with aggregates.
    pub only_full_group_by: bool,
    /// NO_UNSIGNED_SUBTRACTION: a difference of integers is signed.
    pub no_unsigned_subtraction: bool,
    /// NO_BACKSLASH_ESCAPES: LIKE without ESCAPE has no escape character.
    pub no_backslash_escapes: bool,
    /// Neither STRICT_TRANS_TABLES nor STRICT_ALL_TABLES: a value that does not fit its column is adjusted.
    pub is_lenient: bool,
    /// ERROR_FOR_DIVISION_BY_ZERO: a division by zero is a warning, and an error in strict writes.
    pub warns_of_division_by_zero: bool,
    /// PAD_CHAR_TO_FULL_LENGTH: values of CHAR columns in results have their full length.
    pub pads_char: bool,
}

impl Default for Modes {
    fn default() -> Modes {
        Modes {
            only_full_group_by: true,
            no_unsigned_subtraction: false,
            no_backslash_escapes: false,
            is_lenient: false,
            warns_of_division_by_zero: true,
            pads_char: false,
        }
    }
}

/// How AUTO_INCREMENT columns get their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRules {
    /// NO_AUTO_VALUE_ON_ZERO: 0 is stored as 0, and only NULL requests a number.
    pub keeps_zero: bool,
    /// The distance of two numbers (`auto_increment_increment`).
    pub increment: u16,
    /// The first number (`auto_increment_offset`). As in MySQL, it has no effect above the distance.
    pub offset: u16,
}

impl Default for NumberRules {
    fn default() -> NumberRules {
        NumberRules { keeps_zero: false, increment: 1, offset: 1 }
    }
}

impl NumberRules {
    /// The least number from `least` on that these rules permit.
    #[inline]
    pub fn aligned(self, least: u64) -> u64 {
        let increment = u64::from(self.increment);
        if increment <= 1 {
            return least;
        }
        let offset = if self.offset > self.increment { 0 } else { u64::from(self.offset) };
        match least.saturating_sub(offset) % increment {
            _ if least <= offset => offset,
            0 => least,
            beyond => least.saturating_add(increment - beyond),
        }
    }

    /// The value behind one that the variable `insert_id` has begun, as MySQL's handler computes it: unlike
    /// [`Self::aligned`], it heeds an offset above the distance. At the end of the numbers it is the
    /// greatest.
    pub fn after(self, number: u64) -> u64 {
        let (increment, offset) = (u64::from(self.increment), u64::from(self.offset));
        if increment <= 1 {
            return number.saturating_add(1);
        }
        let steps = number.wrapping_add(increment).wrapping_sub(offset) / increment;
        let next = steps.wrapping_mul(increment).wrapping_add(offset);
        if next > number { next } else { u64::MAX }
    }
}

/// The errors and texts of the warnings of planning.
pub type PlanNotes = RefCell<Vec<(ErrorCode, Box<str>)>>;

/// The parts of the schema, the session's settings and the parameters that determine the meaning of a
/// statement.
pub struct Environment<'a> {
    /// The databases and tables.
    pub dictionary: &'a Dictionary,
    /// The session, if it may have temporary tables. They hide other tables of the same name.
    pub owner: Option<TableOwner>,
    /// The session's database, if one is selected.
    pub database: Option<&'a str>,
    /// The collation of literals (`collation_connection`).
    pub collation: CollationId,
    /// The character set of the statement's text (`character_set_client`).
    pub client: CharacterSet,
    /// The kinds of the parameters, by number.
    pub parameters: &'a [ParameterKind],
    /// Returns the value of a session function or variable (`VERSION()`, `@@autocommit`), and `None` for any
    /// other expression.
    pub session_constant: &'a dyn Fn(&Expression) -> Result<Option<SessionConstant>>,
    /// Whether queries lock the rows that they read.
    pub locks_reads: bool,
    /// Whether queries of one table sort by operators, which can use temporary files.
    pub sorts_with_files: bool,
    /// Whether an UPDATE of one table locks the rows of other tables that it reads.
    pub locks_sources: bool,
    /// Whether writes check foreign keys (`foreign_key_checks`).
    pub foreign_key_checks: bool,
    /// The parts of `sql_mode` that determine the meaning of a statement.
    pub modes: Modes,
    /// Number of digits that a division adds after the decimal point (`div_precision_increment`).
    pub division_increment: u8,
    /// Maximum length of the text of GROUP_CONCAT, in bytes (`group_concat_max_len`).
    pub concat_bytes_max: u64,
    /// How AUTO_INCREMENT columns get their numbers.
    pub numbers: NumberRules,
    /// Whether the statement writes in strict mode: truncation of data and division by zero are errors.
    pub is_strict: bool,
    /// IGNORE: a subquery with more than one row is NULL with a warning.
    pub ignores: bool,
    /// The session's rules for days and times.
    pub rules: ValueRules,
    /// The number of rows of a table, as last reported; `None` if it has not been.
    pub row_estimate: &'a dyn Fn(&TableDefinition) -> Option<u64>,
    /// The statistics of the values in a table; `None` without a sample.
    pub profile: &'a dyn Fn(&TableDefinition) -> Option<Arc<TableProfile>>,
    /// The values of the parameters in the first execution, as tagged values; empty if they are not known.
    /// They decide how the statement is executed, but never its rows.
    pub parameter_values: &'a [u8],
    /// The values of the parameters in the execution for which the statement is planned, as tagged values;
    /// empty if there is none yet. A plan that uses them is valid for this execution only.
    pub execution_values: &'a [u8],
    /// Whether the parameters have the numbers that they have in the execution for which the statement is
    /// planned. Virtual tables read only such parameters.
    pub numbers_of_execution: bool,
    /// Whether the statement sees expired rows only, as the purge of them does. Others see the rows that
    /// live.
    pub purges: bool,
    /// Counts the nodes that the expressions of unstored columns add to the statement; `None` outside of
    /// statements.
    pub added_nodes: Option<&'a Cell<usize>>,
    /// Set if the statement reads a count of diagnostics that is not a parameter; `None` outside of
    /// statements.
    pub reads_diagnostics: Option<&'a Cell<bool>>,
    /// Collects the warnings of planning; `None` where nobody reads them.
    pub notes: Option<&'a PlanNotes>,
    /// Collects the rights that the statement needs; `None` for expressions that need none.
    pub(crate) access: Option<&'a NeedsCollector<'a>>,
}

impl<'a> Environment<'a> {
    /// Number of the parameters whose values virtual tables can read.
    pub fn readable_parameters(&self) -> u16 {
        if self.numbers_of_execution { self.parameters.len() as u16 } else { 0 }
    }

    /// Whether what has been bound reads the counts of the diagnostics of the statement before.
    pub fn has_read_diagnostics(&self) -> bool {
        self.parameters.iter().any(|kind| kind.is_of_diagnostics) || self.reads_diagnostics.is_some_and(Cell::get)
    }

    /// The environment of a session with default settings whose values are unknown.
    pub fn plain(dictionary: &'a Dictionary) -> Environment<'a> {
        Environment {
            dictionary,
            owner: None,
            database: None,
            collation: CollationId::DEFAULT,
            client: CharacterSet::Utf8mb4,
            parameters: &[],
            session_constant: &|_| Ok(None),
            locks_reads: false,
            sorts_with_files: false,
            locks_sources: true,
            foreign_key_checks: true,
            modes: Modes::default(),
            division_increment: 4,
            concat_bytes_max: 1024,
            numbers: NumberRules::default(),
            is_strict: true,
            ignores: false,
            rules: ValueRules::DEFAULT,
            row_estimate: &|_| None,
            profile: &|_| None,
            parameter_values: &[],
            execution_values: &[],
            numbers_of_execution: false,
            purges: false,
            added_nodes: None,
            reads_diagnostics: None,
            notes: None,
            access: None,
        }
    }

    /// Adds a warning of planning. Each is given once.
    pub(crate) fn warn(&self, warning: &Error) {
        let Some(notes) = self.notes else { return };
        let mut notes = notes.borrow_mut();
        if !notes.iter().any(|(known, text)| *known == warning.code && *text == warning.message) {
            notes.push((warning.code, warning.message.clone()));
        }
    }

    /// Notes that the statement reads a column.
    pub(crate) fn note_read(&self, found: &FoundColumn) {
        let Some(access) = self.access else { return };
        match &found.owner {
            ColumnOwner::Table => access.read_column(&found.column),
            ColumnOwner::View(view, column) => {
                let definition = &view.definition;
                let name = &definition.columns[usize::from(column.0)].name;
                access.use_column((&definition.database, &definition.name), name, Privilege::Select);
            }
            ColumnOwner::Query => {}
        }
    }

    /// Notes that `*` stands for a column.
    pub(crate) fn note_read_by_star(&self, found: &FoundColumn) {
        let Some(access) = self.access else { return };
        match &found.owner {
            ColumnOwner::Table => access.read_all((&found.column.database, &found.column.org_table)),
            ColumnOwner::View(view, _) => access.read_all((&view.definition.database, &view.definition.name)),
            ColumnOwner::Query => {}
        }
        self.note_read(found);
    }

    /// Notes that a statement changes a table through a view. The session needs the right on
    /// the view, and the view's subject on what is beneath it. Error: 1142 for the view, 1356 beneath it.
    pub(crate) fn note_changed_view(&self, view: &MergedView, table_access: TableAccess) -> Result<()> {
        self.note_table(&view.view.definition, table_access)?;
        let mut level = view;
        loop {
            let beneath = level.below.as_deref();
            let definition = beneath.map_or(&level.layout, |below| &below.view);
            self.acting_as(level.subject, || self.note_table(&definition.definition, table_access)).map_err(
                |error| match error.code {
                    ErrorCode::TableAccessDenied => {
                        invalid_view(&view.view.definition.database, &view.view.definition.name)
                    }
                    _ => error,
                },
            )?;
            match beneath {
                Some(below) => level = below,
                None => return Ok(()),
            }
        }
    }

    /// Notes that the statement assigns a column of a view.
    pub(crate) fn note_assigned_through(&self, view: &MergedView, column: &str, privilege: Privilege) {
        let Some(access) = self.access else { return };
        let mut level = view;
        let mut name = column;
        access.use_column((&view.view.definition.database, &view.view.definition.name), name, privilege);
        loop {
            let beneath = level.below.as_deref();
            let definition = &beneath.map_or(&level.layout, |below| &below.view).definition;
            let found = level.columns.iter().find(|known| known.name.eq_ignore_ascii_case(name));
            let Some(below) = found.and_then(|column| column.below.as_deref()) else { return };
            // The table has the right name, whatever its case is in the view.
            let stored = definition.column(below).map_or(below, |place| &definition.columns[usize::from(place.0)].name);
            self.acting_as(level.subject, || {
                access.use_column((&definition.database, &definition.name), stored, privilege);
            });
            match beneath {
                Some(below) => (level, name) = (below, stored),
                None => return,
            }
        }
    }

    /// Runs a function that notes rights of another subject.
    pub(crate) fn acting_as<T>(&self, subject: crate::access::SubjectNumber, run: impl FnOnce() -> T) -> T {
        let before = self.access.map(|access| access.act_as(subject));
        let result = run();
        if let (Some(access), Some(before)) = (self.access, before) {
            access.act_as(before);
        }
        result
    }

    /// Notes that the statement assigns a column of a table.
    pub(crate) fn note_assigned(&self, table: &TableDefinition, column: ColumnNumber, privilege: Privilege) {
        if let Some(access) = self.access {
            let name = &table.columns[usize::from(column.0)].name;
            access.use_column((&table.database, &table.name), name, privilege);
        }
    }

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

    /// The view that a name refers to, if it is one.
    pub fn view(&self, name: &ObjectName) -> Option<&'a Arc<TableLayout>> {
        let database = name.database.as_deref().or(self.database)?;
        let found = self.dictionary.table_seen_by(self.owner, database, &name.name)?;
        found.definition.view.is_some().then_some(found)
    }

    /// Notes that the statement uses a table or view. Error: 1142.
    pub(crate) fn note_table(&self, table: &TableDefinition, table_access: TableAccess) -> Result<()> {
        match self.access.filter(|_| !table.is_temporary()) {
            Some(access) => access.use_table(&table.database, &table.name, table_access),
            None => Ok(()),
        }
    }

    /// The table that a name refers to. Errors: 1347 for a view, 1046, 1142 if the session lacks the right,
    /// 1049 if the database is unknown, 1146 if the table is.
    pub fn table(&self, name: &ObjectName, table_access: TableAccess) -> Result<&'a Arc<TableLayout>> {
        let database = self.database_of(name)?;
        let found = self.dictionary.table_seen_by(self.owner, database, &name.name);
        let is_temporary = found.is_some_and(|table| table.definition.is_temporary());
        if let Some(access) = self.access.filter(|_| !is_temporary) {
            access.use_table(database, &name.name, table_access)?;
        }
        if let Some(table) = found {
            return match table.definition.view {
                None => Ok(table),
                Some(_) => Err(super::message::wrong_object(database, &name.name, "BASE TABLE")),
            };
        }
        // Their tables are computed, so no statement changes them.
        if SYSTEM_DATABASES.iter().any(|known| known.eq_ignore_ascii_case(database)) {
            return Err(denied_database(self.access.map_or("''@''", NeedsCollector::who), database));
        }
        if self.dictionary.database(database).is_none() {
            return Err(super::message::unknown_database(database));
        }
        Err(super::message::no_such_table(database, &name.name))
    }
}
