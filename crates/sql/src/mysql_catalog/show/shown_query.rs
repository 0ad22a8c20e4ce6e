//! SHOW and DESCRIBE as queries of virtual tables. Conditions on names reach the providers of these tables as
//! those of any query do (`docs/decisions/0094-names-for-virtual-tables.md`).

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, Result};
use junctor_model::limit::IDENTIFIER_CHARACTERS_MAX;
use junctor_model::row_encoding::ResultColumn;

use super::answer::{unknown_table, virtual_table_names};
use super::fact::ShowContext;
use super::layout::VirtualTable;
use super::shown_layout::{self as layout, ShownLayout};
use super::table_rows::{check_database, database_or_current, table_of};
use super::virtual_schema::{computed_fields, schema_named};
use crate::mysql_catalog::is_system_database;
use crate::parse::expression::{ColumnReference, VariableScope};
use crate::parse::query::{DerivedSource, FromItem};
use crate::parse::statement::{ObjectName, Select, SelectItem, Show, ShowFilter};
use crate::parse::{Expression, Statement, parse};

/// A query of virtual tables that answers SHOW or DESCRIBE.
#[derive(Debug)]
pub struct CatalogQuery {
    /// The query.
    pub select: Box<Select>,
    /// The columns for clients; `None` for those of the query.
    pub columns: Option<Vec<ResultColumn>>,
    /// Whether the query is about one table, which may be a temporary one.
    pub is_of_table: bool,
}

/// Whether a statement has a query, unless it is an error.
pub fn has_query(statement: &Statement) -> bool {
    match statement {
        Statement::Describe(_) => true,
        Statement::Show(show) => matches!(
            **show,
            Show::Databases { .. }
                | Show::Tables { .. }
                | Show::TableStatus { .. }
                | Show::Columns { .. }
                | Show::Index { .. }
                | Show::Variables { .. }
                | Show::Status { .. }
                | Show::CharacterSet { .. }
                | Show::Collation { .. }
                | Show::Engines
                | Show::Plugins
                | Show::ProcessList { .. }
                | Show::OpenTables { .. }
                | Show::Triggers { .. }
                | Show::Events { .. }
                | Show::ProcedureStatus { .. }
                | Show::FunctionStatus { .. }
        ),
        _ => false,
    }
}

/// The query that answers SHOW or DESCRIBE; `None` if no virtual table has the rows.
///
/// # Errors
/// 1046, 1049 and 1146 for a missing database or table, 1109 for a missing virtual table.
pub fn catalog_query(statement: &Statement, facts: &ShowContext<'_>) -> Result<Option<CatalogQuery>> {
    let parts = match statement {
        Statement::Show(show) => match parts_of_show(show, facts)? {
            Some(parts) => parts,
            None => return Ok(None),
        },
        Statement::Describe(describe) => {
            let filter = describe.column.as_deref().map_or(Filter::None, |pattern| Filter::Like(pattern.as_bytes()));
            of_columns(&describe.table, false, filter, facts)?
        }
        _ => return Ok(None),
    };
    parts.query().map(Some)
}

/// The clause that chooses rows.
#[derive(Clone, Copy)]
enum Filter<'s> {
    None,
    /// A pattern for the first column. It ignores case, for names too.
    Like(&'s [u8]),
    /// A condition on the columns of the result.
    Where(&'s Expression),
}

impl<'s> From<&'s Option<ShowFilter>> for Filter<'s> {
    fn from(filter: &'s Option<ShowFilter>) -> Filter<'s> {
        match filter {
            None => Filter::None,
            Some(ShowFilter::Like(pattern)) => Filter::Like(&pattern.bytes),
            Some(ShowFilter::Where(condition)) => Filter::Where(condition),
        }
    }
}

/// The parts of a query.
struct Parts<'s> {
    layout: &'static ShownLayout,
    /// Number of columns of the layout that are shown.
    width: usize,
    /// The name of the first column if it depends on the statement, without the pattern of LIKE.
    first: Option<String>,
    /// Conditions on columns of the virtual table.
    conditions: Vec<String>,
    filter: Filter<'s>,
    is_of_table: bool,
}

fn parts_of_show<'s>(show: &'s Show, facts: &ShowContext<'_>) -> Result<Option<Parts<'s>>> {
    let parts = match show {
        Show::Databases { filter } => {
            Parts { first: Some("Database".to_owned()), ..Parts::of(&layout::DATABASES, filter.into()) }
        }
        Show::Tables { full, database, filter } => {
            let parts = of_database(&layout::TABLES, database.as_deref(), filter.into(), facts)?;
            let database = database_or_current(database.as_deref(), facts)?;
            Parts { width: 1 + usize::from(*full), first: Some(format!("Tables_in_{database}")), ..parts }
        }
        Show::TableStatus { database, filter } => {
            of_database(&layout::TABLE_STATUS, database.as_deref(), filter.into(), facts)?
        }
        Show::Columns { full, table, filter } => of_columns(table, *full, filter.into(), facts)?,
        Show::Index { table, filter } => {
            let filter = filter.as_ref().map_or(Filter::None, Filter::Where);
            of_table(&layout::INDEX, table_names(table, facts)?, filter)
        }
        Show::Variables { scope: VariableScope::Session, filter } => Parts::of(&layout::VARIABLES, filter.into()),
        Show::Variables { filter, .. } => Parts::of(&layout::GLOBAL_VARIABLES, filter.into()),
        Show::Status { scope: VariableScope::Session, filter } => Parts::of(&layout::STATUS, filter.into()),
        Show::Status { filter, .. } => Parts::of(&layout::GLOBAL_STATUS, filter.into()),
        Show::CharacterSet { filter } => Parts::of(&layout::CHARACTER_SET, filter.into()),
        Show::Collation { filter } => Parts::of(&layout::COLLATION, filter.into()),
        Show::Engines => Parts::of(&layout::ENGINES, Filter::None),
        Show::Plugins => Parts::of(&layout::PLUGINS, Filter::None),
        Show::ProcessList { full: true } => Parts::of(&layout::FULL_PROCESS_LIST, Filter::None),
        Show::ProcessList { full: false } => Parts::of(&layout::PROCESS_LIST, Filter::None),
        Show::OpenTables { filter, .. } => Parts::of(&layout::OPEN_TABLES, filter.into()),
        Show::Triggers { database, filter } => {
            Parts::of(&layout::TRIGGERS, filter.into()).in_database("TRIGGER_SCHEMA", database.as_deref(), facts)
        }
        Show::Events { database, filter } => {
            Parts::of(&layout::EVENTS, filter.into()).in_database("EVENT_SCHEMA", database.as_deref(), facts)
        }
        Show::ProcedureStatus { filter } => {
            Parts::of(&layout::ROUTINES, filter.into()).with_name("ROUTINE_TYPE", "PROCEDURE")
        }
        Show::FunctionStatus { filter } => {
            Parts::of(&layout::ROUTINES, filter.into()).with_name("ROUTINE_TYPE", "FUNCTION")
        }
        _ => return Ok(None),
    };
    Ok(Some(parts))
}

/// SHOW of the tables of a database. Errors: 1046, 1049.
fn of_database<'s>(
    layout: &'static ShownLayout,
    written: Option<&str>,
    filter: Filter<'s>,
    facts: &ShowContext<'_>,
) -> Result<Parts<'s>> {
    let written = database_or_current(written.or(facts.session.database), facts)?;
    let database = match schema_named(written) {
        Some(schema) => schema.name,
        None => {
            check_database(written, facts)?;
            written
        }
    };
    let mut parts = Parts::of(layout, filter).with_name("TABLE_SCHEMA", database);
    if let Filter::Like(pattern) = filter
        && let Some(name) = name_of_pattern(pattern)
    {
        // The provider makes the rows of these tables alone.
        let own = facts.dictionary.tables_of(database).map(|table| &*table.definition.name);
        let computed = virtual_table_names(database).unwrap_or_default();
        let is_wanted = |known: &&str| CollationId::UTF8MB4_GENERAL_CI.like(known.as_bytes(), pattern, Some('\\'));
        let mut names: Vec<&str> = computed.into_iter().chain(own).filter(is_wanted).collect();
        if names.is_empty() {
            names.push(&name);
        }
        let names: Vec<String> = names.into_iter().map(|name| quoted(name.as_bytes())).collect();
        parts.conditions.push(format!("TABLE_NAME IN ({})", names.join(", ")));
    }
    Ok(parts)
}

/// SHOW COLUMNS and DESCRIBE. Errors: 1046, 1049, 1109, 1146.
fn of_columns<'s>(name: &ObjectName, full: bool, filter: Filter<'s>, facts: &ShowContext<'_>) -> Result<Parts<'s>> {
    let database = database_or_current(name.database.as_deref(), facts)?;
    if is_system_database(database) && computed_fields(database, &name.name).is_none() {
        return Err(unknown_table(&name.name, database));
    }
    let layout = if full { &layout::FULL_COLUMNS } else { &layout::COLUMNS };
    Ok(of_table(layout, table_names(name, facts)?, filter))
}

fn of_table<'s>(layout: &'static ShownLayout, (database, table): (&str, &str), filter: Filter<'s>) -> Parts<'s> {
    let parts = Parts::of(layout, filter).with_name("TABLE_SCHEMA", database).with_name("TABLE_NAME", table);
    Parts { is_of_table: true, ..parts }
}

/// The names of a table's database and of the table, as virtual tables have them. Errors: 1046, 1049, 1146.
fn table_names<'a>(name: &'a ObjectName, facts: &ShowContext<'a>) -> Result<(&'a str, &'a str)> {
    let database = database_or_current(name.database.as_deref(), facts)?;
    let schema = schema_named(database);
    match schema.and_then(|schema| Some((schema.name, schema.name_of(&name.name)?))) {
        Some(computed) => Ok(computed),
        None => {
            let definition = &table_of(name, facts)?.definition;
            Ok((&definition.database, &definition.name))
        }
    }
}

impl<'s> Parts<'s> {
    fn of(layout: &'static ShownLayout, filter: Filter<'s>) -> Parts<'s> {
        let width = layout.columns.len();
        Parts { layout, width, first: None, conditions: Vec::new(), filter, is_of_table: false }
    }

    /// The same rows with this text in a column.
    fn with_name(mut self, column: &str, name: &str) -> Parts<'s> {
        self.conditions.push(format!("{column} = {}", quoted(name.as_bytes())));
        self
    }

    /// The same rows of this database, else of the session's if it has one.
    fn in_database(self, column: &str, written: Option<&str>, facts: &ShowContext<'_>) -> Parts<'s> {
        match written.or(facts.session.database) {
            Some(database) => self.with_name(column, database),
            None => self,
        }
    }

    /// The query. WHERE is about the columns of the result, so it is outside of a query that names them.
    fn query(mut self) -> Result<CatalogQuery> {
        if let Filter::Like(pattern) = self.filter {
            let (first, pattern) = (self.layout.like, quoted(pattern));
            self.conditions.push(format!("{first} COLLATE utf8mb4_general_ci LIKE {pattern} ESCAPE '\\\\'"));
        }
        let items = self.items();
        let (from, order_by) = (self.layout.from, self.layout.order_by);
        let conditions = match self.conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", self.conditions.join(" AND ")),
        };
        let mut select = match (self.filter, order_by) {
            (Filter::Where(condition), _) => {
                let names: Vec<String> =
                    self.layout.columns[..self.width].iter().map(|(field, _)| format!("`{}`", field.name)).collect();
                let names = names.join(", ");
                let (order, sorted) = match order_by {
                    Some(column) => (format!(", {column}"), " ORDER BY 1"),
                    None => (String::new(), ""),
                };
                let inner = format!("SELECT {items}{order} FROM {from}{conditions}");
                let mut select = select_of(&format!("SELECT {names} FROM ({inner}) AS `shown`{sorted}"))?;
                name_order(&mut select);
                select.filter = Some(condition.clone());
                select
            }
            (_, Some(column)) => select_of(&format!("SELECT {items} FROM {from}{conditions} ORDER BY {column}"))?,
            (_, None) => select_of(&format!("SELECT {items} FROM {from}{conditions}"))?,
        };
        if let Some(first) = &self.first {
            name_first(&mut select, first);
        }
        Ok(CatalogQuery { select, columns: self.columns(), is_of_table: self.is_of_table })
    }

    fn items(&self) -> String {
        let item = |(field, value): &(super::layout::Field, &str)| format!("{value} AS `{}`", field.name);
        let items: Vec<String> = self.layout.columns[..self.width].iter().map(item).collect();
        items.join(", ")
    }

    /// The columns for clients. As in MySQL, the pattern of LIKE is a part of a name that depends on the
    /// statement.
    fn columns(&self) -> Option<Vec<ResultColumn>> {
        if self.layout.has_columns_of_query {
            return None;
        }
        let fields: Vec<_> = self.layout.columns[..self.width].iter().map(|(field, _)| *field).collect();
        let mut columns = VirtualTable::of_show(&fields, Vec::new()).columns;
        if let (Some(first), Some(column)) = (&self.first, columns.first_mut()) {
            column.name = match self.filter {
                Filter::Like(pattern) => format!("{first} ({})", String::from_utf8_lossy(pattern)).into(),
                _ => first.as_str().into(),
            };
        }
        Some(columns)
    }
}

/// Names the first column of a query, and of the query in its FROM if it has one. The parser would refuse
/// names that are too long.
fn name_first(select: &mut Select, name: &str) {
    if let Some(FromItem::Derived(derived)) = &mut select.from
        && let DerivedSource::Select(inner) = &mut derived.source
    {
        name_first(inner, name);
        if let Some(SelectItem::Expression { expression, .. }) = select.projection.first_mut() {
            let column = ColumnReference { database: None, table: None, name: name.to_owned() };
            *expression = Expression::Column(Box::new(column));
        }
    }
    if let Some(SelectItem::Expression { alias, .. }) = select.projection.first_mut() {
        *alias = Some(name.to_owned());
    }
}

/// Names the column by which a query sorts the rows of the query in its FROM, the last one there. WHERE
/// cannot have such a name, because it is too long.
fn name_order(select: &mut Select) {
    let name = "order".repeat(IDENTIFIER_CHARACTERS_MAX);
    if let (Some(FromItem::Derived(derived)), Some(order)) = (&mut select.from, select.order_by.first_mut())
        && let DerivedSource::Select(inner) = &mut derived.source
        && let Some(SelectItem::Expression { alias, .. }) = inner.projection.last_mut()
    {
        *alias = Some(name.clone());
        order.expression = Expression::Column(Box::new(ColumnReference { database: None, table: None, name }));
    }
}

fn select_of(text: &str) -> Result<Box<Select>> {
    match parse(text.as_bytes()).map(|parsed| parsed.statement) {
        Ok(Statement::Select(select)) => Ok(select),
        _ => Err(Error::not_supported("SHOW of such a name")),
    }
}

/// A text as a literal in UTF-8.
fn quoted(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).replace('\\', "\\\\").replace('\'', "''");
    format!("_utf8mb4'{text}'")
}

/// The only name that a pattern matches, apart from its case; `None` if there are several.
fn name_of_pattern(pattern: &[u8]) -> Option<String> {
    let mut name = String::new();
    let mut letters = std::str::from_utf8(pattern).ok()?.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => name.push(letters.next().unwrap_or(letter)),
            '%' | '_' => return None,
            letter => name.push(letter),
        }
    }
    Some(name)
}
