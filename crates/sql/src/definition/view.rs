//! CREATE, ALTER and DROP VIEW.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::{TableDefinition, ViewDefinition};
use junctor_signals::change_schema::SchemaChange;

use super::message;
use super::own_table::column_of;
use super::structure::{CheckedDefinition, DefinitionContext, check_name};
use crate::parse::definition as ast;
use crate::parse::expression::Expression;
use crate::parse::statement::{ObjectName, Select};
use crate::parse::{Dialect, parse_in, query_text};

/// Maximum number of characters in the name of a column.
const COLUMN_NAME_CHARACTERS_MAX: usize = 64;

/// The query of a view as it was planned.
#[derive(Clone, Copy, Debug)]
pub struct ViewQuery<'q> {
    /// The query, with names of columns instead of `*`. Tables have their database.
    pub query: &'q Select,
    /// The columns of the query.
    pub columns: &'q [ResultColumn],
    /// Whether rows can be changed through the view.
    pub is_updatable: bool,
}

/// Checks CREATE VIEW and ALTER VIEW. The main block decides whether the view exists.
///
/// # Errors
/// 1046, 1044, 1049 and 1103 for the name; 1060 and 1353 for the columns; 1368 for a useless CHECK OPTION;
/// 1235 for a query that cannot be stored.
pub fn create_view(
    view: &ast::CreateView,
    planned: &ViewQuery<'_>,
    context: &DefinitionContext<'_>,
) -> Result<CheckedDefinition> {
    let database = context.known_database(&view.name)?;
    let name = &view.name.name;
    check_name(name, ErrorCode::WrongTableName, "table")?;
    if !planned.is_updatable && view.check.is_some() {
        let text = format!("CHECK OPTION on non-updatable view '{}.{name}'", database.name);
        return Err(Error::new(ErrorCode::ViewCheckUseless, text));
    }
    let columns = columns_of(view, planned, context)?;
    let old = context.dictionary.table_named(&database.name, name).filter(|_| view.alters);
    let old = old.and_then(|layout| layout.definition.view.as_deref());
    let account = || context.account.trim_matches('\'').replacen("'@'", "@", 1).into_boxed_str();
    let definition = ViewDefinition {
        query: stored_text(planned, &database.name)?.into(),
        algorithm: view.algorithm.or(old.map(|old| old.algorithm)).unwrap_or_default(),
        definer: match (&view.definer, old) {
            (Some(definer), _) => definer.as_str().into(),
            (None, Some(old)) => old.definer.clone(),
            (None, None) => account(),
        },
        is_invoker: view.is_invoker.or(old.map(|old| old.is_invoker)).unwrap_or_default(),
        check: view.check,
        has_columns: !view.columns.is_empty(),
        is_updatable: planned.is_updatable,
        collation: context.environment.collation,
    };
    let definition = TableDefinition::of_view((&database.name, name), columns, definition);
    let (or_replace, alters) = (view.or_replace, view.alters);
    Ok(CheckedDefinition::plain(SchemaChange::CreateView { definition: Box::new(definition), or_replace, alters }))
}

/// Refuses queries that no view can have, before they are planned. Errors: 1350, 1351, 1352.
pub fn check_view_query(view: &ast::CreateView, context: &DefinitionContext<'_>) -> Result<()> {
    if !view.query.into.is_none() {
        let text = "View's SELECT contains a 'INTO' clause";
        return Err(Error::new(ErrorCode::ViewClause, text));
    }
    let mut has_variable = false;
    view.query.visit_deep(&mut |inner| {
        has_variable |= matches!(
            inner,
            Expression::UserVariable(_)
                | Expression::SystemVariable(_)
                | Expression::AssignUserVariable { .. }
                | Expression::Parameter(_)
        );
    });
    if has_variable {
        let text = "View's SELECT contains a variable or parameter";
        return Err(Error::new(ErrorCode::ViewVariable, text));
    }
    let mut temporary = None;
    let mut query = view.query.clone();
    query.for_each_table_mut(&mut Vec::new(), &mut |name: &mut ObjectName| {
        let Some(database) = name.database.as_deref().or(context.database) else { return };
        let owned =
            context.environment.owner.and_then(|owner| context.dictionary.owned_table(owner, database, &name.name));
        if owned.is_some_and(|layout| layout.definition.is_temporary()) {
            temporary = Some(name.name.clone());
        }
    });
    match temporary {
        Some(table) => {
            let text = format!("View's SELECT refers to a temporary table '{table}'");
            Err(Error::new(ErrorCode::ViewTemporaryTable, text))
        }
        None => Ok(()),
    }
}

/// The columns of a view. Errors: 1060, 1353.
fn columns_of(
    view: &ast::CreateView,
    planned: &ViewQuery<'_>,
    context: &DefinitionContext<'_>,
) -> Result<Vec<junctor_model::schema::ColumnDefinition>> {
    if !view.columns.is_empty() && view.columns.len() != planned.columns.len() {
        return Err(crate::bind::message::alias_column_count());
    }
    let mut columns: Vec<junctor_model::schema::ColumnDefinition> = Vec::with_capacity(planned.columns.len());
    for (position, column) in planned.columns.iter().enumerate() {
        let mut definition = column_of(column, context)?;
        if let Some(name) = view.columns.get(position) {
            definition.name = name.as_str().into();
        }
        if definition.name.chars().count() > COLUMN_NAME_CHARACTERS_MAX || definition.name.is_empty() {
            definition.name = format!("Name_exp_{}", position + 1).into();
        }
        if columns.iter().any(|other| other.name.eq_ignore_ascii_case(&definition.name)) {
            return Err(message::duplicate_column(&definition.name));
        }
        (definition.on_update_now, definition.hidden, definition.invisible) = (false, false, false);
        definition.comment = "".into();
        columns.push(definition);
    }
    Ok(columns)
}

/// The text of the query. Tables of the view's database have no database. Error: 1235.
fn stored_text(planned: &ViewQuery<'_>, database: &str) -> Result<String> {
    let mut query = planned.query.clone();
    query.for_each_table_mut(&mut Vec::new(), &mut |name: &mut ObjectName| {
        name.database.take_if(|of_table| of_table == database);
    });
    let refused = || Error::not_supported("a view of this query");
    let text = query_text(&query, None).ok_or_else(refused)?;
    // The text must read back as the same query.
    parse_in(text.as_bytes(), Dialect::default()).map_err(|_| refused())?;
    Ok(text)
}

/// Checks DROP VIEW. The main block decides whether the views exist.
///
/// # Errors
/// 1046, 1044, 1066 for a view named twice.
pub fn drop_views(statement: &ast::DropView, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    let mut names: Vec<(Box<str>, Box<str>)> = Vec::with_capacity(statement.views.len());
    for view in &statement.views {
        let name = (Box::from(context.database_of(view)?), Box::from(view.name.as_str()));
        if names.contains(&name) {
            let text = format!("Not unique table/alias: '{}'", view.name);
            return Err(Error::new(ErrorCode::NonUniqueTable, text));
        }
        names.push(name);
    }
    Ok(CheckedDefinition::plain(SchemaChange::DropViews { names, if_exists: statement.if_exists }))
}
