//! INSERT and REPLACE through views.

use junctor_expression::Expression;
use junctor_model::access::Privilege;
use junctor_model::error::{Error, ErrorCode, Result};

use super::FindVirtual;
use super::tree::{checks_of, merged_target, stored_number};
use crate::access::TableAccess;
use crate::bind::Environment;
use crate::bind::block::MergedView;
use crate::parse::expression as ast;
use crate::parse::statement::{Insert, InsertSource, LoadField, ObjectName};

/// An INSERT through a view as an INSERT into its table, and the checks of the new rows. `None` if the target
/// is not a view.
///
/// # Errors
/// 1471 and 1348 for a view or column whose rows cannot be inserted, 1235 for an alias of the new row.
pub(super) fn through_view(
    environment: &Environment<'_>,
    insert: &Insert,
    find_virtual: &FindVirtual<'_>,
) -> Result<Option<(Insert, Vec<Expression>)>> {
    let Some(view) = merged_target(environment, &insert.table, find_virtual)? else { return Ok(None) };
    let not_insertable = || {
        let text = format!("The target table {} of the INSERT is not insertable-into", insert.table.name);
        Error::new(ErrorCode::NonInsertableTable, text)
    };
    if !view.is_plain() {
        return Err(not_insertable());
    }
    let mut numbers: Vec<_> = view.columns.iter().filter_map(|column| column.value.as_column()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() != view.columns.len() {
        return Err(not_insertable());
    }
    if !insert.returning.is_empty() {
        return Err(Error::not_supported("RETURNING of an INSERT into a view"));
    }
    let definition = &view.layout.definition;
    note_written(environment, insert, &view)?;
    let stored = |name: &str| -> Result<String> {
        let number = stored_number(&view, name)?;
        Ok(definition.columns[usize::from(number.0)].name.to_string())
    };
    let mut into = insert.clone();
    into.table = ObjectName { database: Some(definition.database.to_string()), name: definition.name.to_string() };
    let is_empty = matches!(&insert.columns, Some(columns) if columns.is_empty());
    if !is_empty && !matches!(insert.source, InsertSource::Load(_)) {
        let names: Vec<String> = match &insert.columns {
            Some(columns) => columns.iter().map(|name| stored(name)).collect::<Result<_>>()?,
            None => view.columns.iter().map(|column| stored(&column.name)).collect::<Result<_>>()?,
        };
        into.columns = Some(names);
    }
    match &mut into.source {
        InsertSource::Rows(rows) => rows.iter_mut().flatten().try_for_each(|value| to_table(value, &view, insert))?,
        InsertSource::UniformRows { row, .. } => row.iter_mut().try_for_each(|value| to_table(value, &view, insert))?,
        InsertSource::Select(_) => {}
        InsertSource::Load(load) => {
            let fields = load
                .fields
                .take()
                .unwrap_or_else(|| view.columns.iter().map(|column| LoadField::Column(column.name.clone())).collect());
            let fields = fields.into_iter().map(|field| match field {
                LoadField::Column(name) => stored(&name).map(LoadField::Column),
                variable @ LoadField::Variable(_) => Ok(variable),
            });
            load.fields = Some(fields.collect::<Result<_>>()?);
            for assignment in &mut load.assignments {
                assignment.column.name = stored(&assignment.column.name)?;
                to_table(&mut assignment.value, &view, insert)?;
            }
        }
    }
    if into.row_alias.is_some() && !into.on_duplicate.is_empty() {
        return Err(Error::not_supported("an alias of the new row of an INSERT into a view"));
    }
    for assignment in &mut into.on_duplicate {
        assignment.column.name = stored(&assignment.column.name)?;
        assignment.column.table = None;
        assignment.column.database = None;
        to_table(&mut assignment.value, &view, insert)?;
    }
    let checks = checks_of(&view)?;
    if !checks.is_empty() && !into.on_duplicate.is_empty() {
        return Err(Error::not_supported("ON DUPLICATE KEY UPDATE through a view WITH CHECK OPTION"));
    }
    Ok(Some((into, checks)))
}

/// Notes the rights that the statement needs on the view, and those that whoever is beneath it needs.
fn note_written(environment: &Environment<'_>, insert: &Insert, view: &MergedView) -> Result<()> {
    let mut uses = vec![TableAccess::Insert];
    uses.extend(insert.replace.then_some(TableAccess::Replace));
    uses.extend((!insert.on_duplicate.is_empty()).then_some(TableAccess::Update));
    uses.into_iter().try_for_each(|table_access| environment.note_changed_view(view, table_access))?;
    let assigned = |name: &str, privilege| environment.note_assigned_through(view, name, privilege);
    match (&insert.columns, &insert.source) {
        (_, InsertSource::Load(load)) => match &load.fields {
            None => view.columns.iter().for_each(|column| assigned(&column.name, Privilege::Insert)),
            Some(fields) => fields.iter().for_each(|field| match field {
                LoadField::Column(name) => assigned(name, Privilege::Insert),
                LoadField::Variable(_) => {}
            }),
        },
        (Some(columns), _) => columns.iter().for_each(|name| assigned(name, Privilege::Insert)),
        (None, _) => view.columns.iter().for_each(|column| assigned(&column.name, Privilege::Insert)),
    }
    if let InsertSource::Load(load) = &insert.source {
        load.assignments.iter().for_each(|assignment| assigned(&assignment.column.name, Privilege::Insert));
    }
    for assignment in &insert.on_duplicate {
        assigned(&assignment.column.name, Privilege::Update);
        assignment.value.visit(&mut |inner| {
            let ast::Expression::Column(reference) = inner else { return };
            if reference.table.as_ref().is_none_or(|table| *table == insert.table.name) {
                read(environment, view, &reference.name);
            }
        });
    }
    if let Some(access) = environment.access {
        let mut lowest = view;
        while let Some(below) = &lowest.below {
            lowest = below;
        }
        access.write_as(lowest.subject, &view.layout.definition);
    }
    Ok(())
}

/// Notes that a column of the view is read. Other names are columns of the query.
fn read(environment: &Environment<'_>, view: &MergedView, name: &str) {
    let definition = &view.view.definition;
    if let (Some(access), Some(column)) = (environment.access, definition.column(name)) {
        let name = &definition.columns[usize::from(column.0)].name;
        access.use_column((&definition.database, &definition.name), name, Privilege::Select);
    }
}

/// Replaces columns of the view in an expression by those of its table.
fn to_table(value: &mut ast::Expression, view: &MergedView, insert: &Insert) -> Result<()> {
    let mut failed = None;
    value.replace(&mut |inner| {
        let reference = match inner {
            ast::Expression::Column(reference) | ast::Expression::InsertedValue(reference) => reference,
            ast::Expression::Default(Some(reference)) => reference,
            _ => return false,
        };
        if reference.table.as_ref().is_some_and(|table| *table != insert.table.name) {
            return false;
        }
        match stored_number(view, &reference.name) {
            Ok(number) => {
                reference.name = view.layout.definition.columns[usize::from(number.0)].name.to_string();
                reference.table = None;
                reference.database = None;
            }
            // A column of the query of INSERT ... SELECT.
            Err(_) if matches!(insert.source, InsertSource::Select(_)) => {}
            Err(error) => failed = Some(error),
        }
        false
    });
    failed.map_or(Ok(()), Err)
}
