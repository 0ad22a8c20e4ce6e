//! CREATE and DROP of indexes and databases; DROP, TRUNCATE and RENAME TABLE.

use junctor_client::change_schema::{SchemaChange, TableRename};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::limit::INDEXES_MAX;
use junctor_model::schema::{IndexDefinition, IndexKind, IndexState};

use super::structure::{Defined, DefinitionContext, check_name};
use super::{index, message};
use crate::parse::definition as ast;
use crate::parse::statement::ObjectName;
use crate::variable::collation_of;

/// CREATE INDEX. A unique index is `Building` until its entries are filled.
///
/// # Errors
/// As of CREATE TABLE, and 1146.
pub fn create_index(statement: &ast::CreateIndex, context: &DefinitionContext<'_>) -> Result<Defined> {
    let table = &context.table(&statement.table)?.definition;
    if table.indexes.len() >= INDEXES_MAX {
        return Err(message::too_many_keys());
    }
    let mut notes = Vec::new();
    let mut index = index::define(&statement.index, &table.columns, &table.indexes, &mut notes)?;
    if let IndexKind::Unique { .. } = index.kind {
        index.state = IndexState::Building;
    }
    index.id = table.next_index;
    Ok(Defined { change: SchemaChange::CreateIndex { table: table.id, index }, notes })
}

/// DROP INDEX.
///
/// # Errors
/// 1146, 1091 for an unknown index, 1075 for the last key of an AUTO_INCREMENT column, 1235 for the primary key.
pub fn drop_index(statement: &ast::DropIndex, context: &DefinitionContext<'_>) -> Result<Defined> {
    let table = &context.table(&statement.table)?.definition;
    let name = &statement.name;
    let hides_primary = table.columns[usize::from(table.primary().columns[0].0)].hidden;
    let found = table.index_named(name).filter(|index| index.id != table.primary().id || !hides_primary);
    let Some(dropped) = found else {
        let text = format!("Can't DROP '{name}'; check that column/key exists");
        return Err(Error::new(ErrorCode::CannotDropKey, text));
    };
    if dropped.id == table.primary().id {
        return Err(Error::not_supported("DROP PRIMARY KEY"));
    }
    let automatic = table.columns.iter().position(|column| column.auto_increment && !column.hidden);
    if let Some(automatic) = automatic {
        let serves = |index: &IndexDefinition| usize::from(index.columns[0].0) == automatic;
        let others = table.indexes.iter().filter(|index| index.id != dropped.id);
        if serves(dropped) && !others.into_iter().any(serves) {
            return Err(message::wrong_auto_key());
        }
    }
    Ok(Defined::plain(SchemaChange::DropIndex { table: table.id, index: dropped.id }))
}

/// CREATE DATABASE.
///
/// # Errors
/// 1059 and 1102 for the name, 1044 for those of computed tables, and those of character sets and collations.
pub fn create_database(statement: &ast::CreateDatabase, context: &DefinitionContext<'_>) -> Result<Defined> {
    check_name(&statement.name, ErrorCode::WrongDatabaseName, "database")?;
    context.check_writable(&statement.name)?;
    let (set, collation) = (statement.character_set.as_deref(), statement.collation.as_deref());
    let change = SchemaChange::CreateDatabase {
        name: statement.name.as_str().into(),
        collation: collation_of(set, collation, CollationId::DEFAULT)?,
        if_not_exists: statement.if_not_exists,
    };
    Ok(Defined::plain(change))
}

/// DROP DATABASE.
///
/// # Errors
/// 1059 and 1102 for the name, 1044 for those of computed tables.
pub fn drop_database(statement: &ast::DropDatabase, context: &DefinitionContext<'_>) -> Result<Defined> {
    check_name(&statement.name, ErrorCode::WrongDatabaseName, "database")?;
    context.check_writable(&statement.name)?;
    let change = SchemaChange::DropDatabase { name: statement.name.as_str().into(), if_exists: statement.if_exists };
    Ok(Defined::plain(change))
}

/// DROP TABLE. Whether the tables exist is for main to say.
///
/// # Errors
/// 1046, 1044, 1066 for a table named twice, 1235 for temporary tables.
pub fn drop_tables(statement: &ast::DropTable, context: &DefinitionContext<'_>) -> Result<Defined> {
    if statement.temporary {
        return Err(Error::not_supported("DROP TEMPORARY TABLE"));
    }
    let mut names: Vec<(Box<str>, Box<str>)> = Vec::with_capacity(statement.tables.len());
    let mut seen = std::collections::BTreeSet::new();
    for table in &statement.tables {
        let name = (Box::from(context.database_of(table)?), Box::from(table.name.as_str()));
        if !seen.insert(name.clone()) {
            let text = format!("Not unique table/alias: '{}'", table.name);
            return Err(Error::new(ErrorCode::NonUniqueTable, text));
        }
        names.push(name);
    }
    Ok(Defined::plain(SchemaChange::DropTables { names, if_exists: statement.if_exists }))
}

/// TRUNCATE TABLE.
///
/// # Errors
/// 1046, 1044, 1146.
pub fn truncate_table(table: &ObjectName, context: &DefinitionContext<'_>) -> Result<Defined> {
    let table = context.table(table)?.definition.id;
    Ok(Defined::plain(SchemaChange::TruncateTable { table }))
}

/// RENAME TABLE. Whether the tables exist when their turn comes is for main to say.
///
/// # Errors
/// 1046, 1044, 1059 and 1103 for the new names.
pub fn rename_tables(written: &[(ObjectName, ObjectName)], context: &DefinitionContext<'_>) -> Result<Defined> {
    let mut renames = Vec::with_capacity(written.len());
    for (from, to) in written {
        check_name(&to.name, ErrorCode::WrongTableName, "table")?;
        let full = |name: &ObjectName| -> Result<(Box<str>, Box<str>)> {
            Ok((context.database_of(name)?.into(), name.name.as_str().into()))
        };
        renames.push(TableRename { from: full(from)?, to: full(to)? });
    }
    Ok(Defined::plain(SchemaChange::RenameTables { renames }))
}
