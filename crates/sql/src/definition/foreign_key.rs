//! Foreign keys of CREATE and ALTER TABLE: names, columns, parents, and the index that the child needs.

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::{ForeignKey, ReferentialAction, check_foreign_key, check_parent, supporting_index};
use junctor_model::id::IndexId;
use junctor_model::limit::{IDENTIFIER_CHARACTERS_MAX, INDEXES_MAX};
use junctor_model::schema::{IndexAttributes, IndexDefinition, IndexKind, IndexState, TableDefinition};

use super::structure::DefinitionContext;
use super::{index, message};
use crate::parse::definition as ast;

/// Adds the foreign keys to an otherwise complete table. If no index begins with the columns of a foreign
/// key, a non-unique index is added.
///
/// # Errors
/// 1072, 1215, 1239, 1822, 1824, 1826, 1830, 3734, 3780.
pub(super) fn add_foreign_keys(
    written: &ast::CreateTable,
    table: &mut TableDefinition,
    context: &DefinitionContext<'_>,
) -> Result<()> {
    for key in declared_foreign_keys(written) {
        let key = define(&key, table, context)?;
        table.foreign_keys.push(key);
    }
    check_referencing_children(table, context)
}

/// The foreign keys of the statement: column attributes first, then table constraints.
fn declared_foreign_keys(written: &ast::CreateTable) -> Vec<ast::ForeignKey> {
    let of_columns = written.columns.iter().filter_map(of_column);
    of_columns.chain(written.foreign_keys.iter().cloned()).collect()
}

/// The foreign key among the attributes of a column.
pub(super) fn of_column(column: &ast::ColumnDefinition) -> Option<ast::ForeignKey> {
    let references = column.references.clone()?;
    Some(ast::ForeignKey { name: None, index_name: None, columns: vec![column.name.clone()], references })
}

/// Defines one foreign key. Adds a non-unique index to the table if no index begins with the foreign key's
/// columns.
pub(super) fn define(
    written: &ast::ForeignKey,
    table: &mut TableDefinition,
    context: &DefinitionContext<'_>,
) -> Result<ForeignKey> {
    let name = name_of(written, table)?;
    let mut columns = Vec::with_capacity(written.columns.len());
    for column in &written.columns {
        let found = table.column(column).ok_or_else(|| message::key_column_missing(column))?;
        if columns.contains(&found) {
            return Err(message::duplicate_column(column));
        }
        columns.push(found);
    }
    let references = &written.references;
    if columns.len() != references.columns.len() {
        let text =
            format!("Incorrect foreign key definition for '{name}': Key reference and table reference don't match");
        return Err(Error::new(ErrorCode::WrongForeignKey, text));
    }
    let database = match (&references.table.database, context.database) {
        (Some(database), _) => database.as_str(),
        (None, _) => &table.database,
    };
    let key = ForeignKey {
        name: name.as_str().into(),
        columns,
        parent: (database.into(), references.table.name.as_str().into()),
        parent_columns: references.columns.iter().map(|column| column.as_str().into()).collect(),
        on_delete: action_of(references.on_delete)?,
        on_update: action_of(references.on_update)?,
    };
    check_foreign_key(context.dictionary, table, &table.foreign_keys, &key, context.foreign_key_checks)?;
    if supporting_index(table, &key.columns).is_none() {
        add_index(written, &key, table)?;
    }
    Ok(key)
}

/// The name in the statement. If it has none, InnoDB's `<table>_ibfk_<n>`, where `n` is one above the highest
/// number in use. Error: 1059.
fn name_of(written: &ast::ForeignKey, table: &TableDefinition) -> Result<String> {
    let name = match &written.name {
        Some(name) => name.clone(),
        None => {
            let prefix = format!("{}_ibfk_", table.name);
            let numbers =
                table.foreign_keys.iter().filter_map(|key| key.name.strip_prefix(&prefix)?.parse::<u32>().ok());
            format!("{prefix}{}", numbers.max().unwrap_or(0) + 1)
        }
    };
    if name.chars().count() > IDENTIFIER_CHARACTERS_MAX {
        return Err(message::identifier_too_long(&name));
    }
    Ok(name)
}

fn action_of(written: Option<ast::ReferentialAction>) -> Result<ReferentialAction> {
    match written {
        None | Some(ast::ReferentialAction::NoAction) => Ok(ReferentialAction::NoAction),
        Some(ast::ReferentialAction::Restrict) => Ok(ReferentialAction::Restrict),
        Some(ast::ReferentialAction::Cascade) => Ok(ReferentialAction::Cascade),
        Some(ast::ReferentialAction::SetNull) => Ok(ReferentialAction::SetNull),
        Some(ast::ReferentialAction::SetDefault) => {
            Err(Error::new(ErrorCode::CannotAddForeignKey, "Cannot add foreign key constraint"))
        }
    }
}

/// Checks the foreign keys of existing tables that reference this one. Such tables exist because
/// `foreign_key_checks = OFF` lets a child be created before its parent. Does nothing while
/// `foreign_key_checks` is off. Errors: 1822, 3734, 3780.
fn check_referencing_children(table: &TableDefinition, context: &DefinitionContext<'_>) -> Result<()> {
    let children = context.dictionary.children_of(table);
    for (child, key) in children.filter(|_| context.foreign_key_checks) {
        check_parent(key, &child.definition, table, true)?;
    }
    Ok(())
}

fn add_index(written: &ast::ForeignKey, key: &ForeignKey, table: &mut TableDefinition) -> Result<()> {
    if table.indexes.len() >= INDEXES_MAX {
        return Err(message::too_many_keys());
    }
    let chosen = written.name.as_ref().or(written.index_name.as_ref());
    let parts: Vec<_> = key.columns.iter().map(|column| &table.columns[usize::from(column.0)]).collect();
    let name = index::generated_name(chosen.map_or(&*parts[0].name, |name| name.as_str()), &table.indexes);
    index::check_key_bytes(parts.iter().copied())?;
    table.indexes.push(IndexDefinition {
        id: IndexId(table.indexes.len() as u16),
        name: name.into(),
        kind: IndexKind::Ordered,
        columns: key.columns.clone(),
        state: IndexState::Online,
        attributes: IndexAttributes { of_foreign_key: true, ..IndexAttributes::default() },
    });
    Ok(())
}
