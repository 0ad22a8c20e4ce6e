//! Binds the columns of a result: their values and their names.

use junctor_expression::Expression;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::ResultColumn;
use junctor_signals::program::{Aggregate, Projection};

use super::{Aggregation, Binder, Clause, RowSource, message};
use crate::parse::expression as ast;
use crate::parse::statement::SelectItem;

/// Maximum number of columns in a result, as in MySQL. The protocol of prepared statements counts them in 16
/// bits.
const RESULT_COLUMNS_MAX: usize = 4096;
/// Bytes of a name that the text of an expression gives, as in MySQL.
const NAME_BYTES_MAX: usize = 255;

/// A bound select list.
#[derive(Clone, Debug)]
pub struct SelectList {
    /// The values and the columns that describe them.
    pub projection: Projection,
    /// The aggregates that the values refer to as parameters; empty for a query without aggregates.
    pub aggregates: Vec<Aggregate>,
}

/// Binds a select list. Its aggregates become parameters, numbered from `first_parameter` on.
///
/// # Errors
/// 1140 for columns outside aggregates in a query with aggregates under ONLY_FULL_GROUP_BY, 1051 for an
/// unknown table before `.*`, and the errors of [`Binder::bind`].
pub fn bind_select_list(binder: &mut Binder<'_>, items: &[SelectItem], first_parameter: u16) -> Result<SelectList> {
    let mut projection = Projection::new(Vec::with_capacity(items.len()), Vec::new());
    let mut first_plain = None;
    binder.aggregation = Aggregation::Allowed { first_parameter, aggregates: Vec::new() };
    for (position, item) in items.iter().enumerate() {
        binder.first_bare_column = None;
        match item {
            SelectItem::All(table) => {
                bind_all_columns(
                    binder,
                    table.as_ref().map(|table| (table.database.as_deref(), &*table.name)),
                    &mut projection,
                )?;
            }
            SelectItem::Expression { expression, alias, text } => {
                let name = alias.as_deref().unwrap_or(text);
                let (value, column) = bind_item(binder, Clause::FieldList, expression, (name, alias.is_some()))?;
                projection.values.push(value);
                projection.columns.push(column);
            }
        }
        if first_plain.is_none() {
            first_plain = binder.first_bare_column.take().map(|column| (position + 1, column));
        }
    }
    let aggregates = match std::mem::replace(&mut binder.aggregation, Aggregation::Forbidden) {
        Aggregation::Allowed { aggregates, .. } => aggregates,
        _ => Vec::new(),
    };
    check_columns(&projection)?;
    match (aggregates.is_empty() || binder.wraps_bare_columns, first_plain) {
        (false, Some((position, column))) if binder.environment.modes.only_full_group_by => {
            Err(message::mix_of_group_functions(position, &column))
        }
        (false, Some(_)) => {
            // Whether the list has aggregates is known only at its end, so the columns are bound a second
            // time, now wrapped in ANY_VALUE.
            binder.wraps_bare_columns = true;
            let list = bind_select_list(binder, items, first_parameter);
            binder.wraps_bare_columns = false;
            list
        }
        _ => Ok(SelectList { projection, aggregates }),
    }
}

/// Binds the list of RETURNING, which does not allow aggregates.
///
/// # Errors
/// 1111 for an aggregate, 1051 for an unknown table before `.*`, and the errors of [`Binder::bind`].
pub fn bind_returning_list(binder: &mut Binder<'_>, items: &[SelectItem]) -> Result<Projection> {
    let mut projection = Projection::new(Vec::with_capacity(items.len()), Vec::new());
    for item in items {
        match item {
            SelectItem::All(table) => {
                let table = table.as_ref().map(|table| (table.database.as_deref(), &*table.name));
                bind_all_columns(binder, table, &mut projection)?;
            }
            SelectItem::Expression { expression, alias, text } => {
                let name = alias.as_deref().unwrap_or(text);
                let (value, column) = bind_item(binder, Clause::Returning, expression, (name, alias.is_some()))?;
                projection.values.push(value);
                projection.columns.push(column);
            }
        }
    }
    check_columns(&projection)?;
    Ok(projection)
}

fn check_columns(projection: &Projection) -> Result<()> {
    if projection.columns.len() > RESULT_COLUMNS_MAX {
        return Err(Error::new(ErrorCode::TooManyColumns, "Too many columns"));
    }
    Ok(())
}

fn bind_all_columns(
    binder: &mut Binder<'_>,
    table: Option<(Option<&str>, &str)>,
    projection: &mut Projection,
) -> Result<()> {
    if let Some((database, table)) = table
        && !binder.scope.is_named(database, table)
    {
        return Err(message::unknown_table(table));
    }
    if matches!(binder.scope.source, RowSource::Nothing) {
        return Err(Error::new(ErrorCode::NoTablesUsed, "No tables used"));
    }
    for index in binder.scope.visible_columns() {
        let found = binder.scope.column(index);
        binder.environment.note_read_by_star(&found);
        if binder.first_bare_column.is_none() {
            binder.first_bare_column =
                Some(format!("{}.{}.{}", binder.scope.database, binder.scope.table, found.column.org_name));
        }
        let mut value = binder.wrap_bare_column(&found.expression).unwrap_or(found.expression);
        if binder.environment.modes.pads_char {
            value = binder.padded(index, value)?;
        }
        projection.values.push(value);
        projection.columns.push(found.column);
    }
    Ok(())
}

/// The value of a select item and the column that describes it. Errors: those of [`Binder::bind`].
pub(crate) fn bind_item(
    binder: &mut Binder<'_>,
    clause: Clause,
    expression: &ast::Expression,
    (name, is_alias): (&str, bool),
) -> Result<(Expression, ResultColumn)> {
    let value = binder.bind_in(clause, expression)?;
    let column = match expression {
        ast::Expression::Column(reference) => {
            let mut column = binder.scope.resolve(reference, clause.name())?.column;
            // MySQL implements these tables as views, whose columns keep their own letter case. In the
            // database `mysql` it has tables.
            let is_table = binder.scope.database.eq_ignore_ascii_case("mysql");
            let keeps_case = matches!(binder.scope.source, RowSource::Virtual { .. }) && !is_table;
            match (is_alias, keeps_case) {
                (true, _) => column.name = name.into(),
                (false, true) => {}
                (false, false) => column.name = reference.name.as_str().into(),
            }
            column
        }
        _ => value.result.result_column(&column_name(expression, name, is_alias)),
    };
    Ok((value, column))
}

/// The name of a result column: its alias, the value of a plain string literal, or otherwise the text as
/// written.
fn column_name(expression: &ast::Expression, text: &str, is_alias: bool) -> String {
    match expression {
        ast::Expression::Literal(ast::Literal::String(literal)) if !is_alias && literal.character_set.is_none() => {
            String::from_utf8_lossy(&literal.bytes).into_owned()
        }
        ast::Expression::Literal(ast::Literal::Null) if !is_alias => "NULL".to_owned(),
        _ if is_alias || text.len() <= NAME_BYTES_MAX => text.to_owned(),
        _ => text[..text.floor_char_boundary(NAME_BYTES_MAX)].to_owned(),
    }
}

/// The value of the select item that a name in `clause` refers to. `None` if no item has the name as its
/// alias; the name then refers to a column of the table.
///
/// # Errors
/// 1052 if the columns of the result that have the name have different values. The alias of an expression
/// that is not a column takes precedence, as in MySQL.
pub fn item_named<'p>(
    items: &[SelectItem],
    projection: &'p Projection,
    name: &str,
    clause: Clause,
) -> Result<Option<&'p Expression>> {
    let is_alias = |item: &SelectItem| matches!(item, SelectItem::Expression { alias: Some(alias), .. } if alias.eq_ignore_ascii_case(name));
    if !items.iter().any(is_alias) {
        return Ok(None);
    }
    // An item `*` yields several values, so positions in the items and in the values differ. The lookup
    // therefore uses the columns of the result.
    let mut found: Option<&Expression> = None;
    for (value, column) in projection.values.iter().zip(&projection.columns) {
        if !column.name.eq_ignore_ascii_case(name) {
            continue;
        }
        if column.org_name.is_empty() {
            return Ok(Some(value));
        }
        if found.is_some_and(|found| found != value) {
            return Err(message::ambiguous_column(name, clause.name()));
        }
        found = Some(value);
    }
    Ok(found)
}
