//! CREATE and DROP DATABASE; DROP, TRUNCATE and RENAME TABLE.

use junctor_model::alteration::without_building;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::{Sharing, TableDefinition};
use junctor_signals::change_schema::{SchemaChange, TableRename};

use super::structure::{CheckedDefinition, DefinitionContext, check_name};
use super::{check, own_table};
use crate::mysql_catalog::variable::collation_of;
use crate::parse::definition as ast;
use crate::parse::statement::ObjectName;

/// Checks CREATE DATABASE. The main block decides whether the database exists.
///
/// # Errors
/// 1059 and 1102 for the name, 1044 for a system database, and the errors of [`collation_of`].
pub fn create_database(statement: &ast::CreateDatabase, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    check_name(&statement.name, ErrorCode::WrongDatabaseName, "database")?;
    context.check_writable(&statement.name)?;
    let (set, collation) = (statement.character_set.as_deref(), statement.collation.as_deref());
    let change = SchemaChange::CreateDatabase {
        name: statement.name.as_str().into(),
        collation: collation_of(set, collation, CollationId::DEFAULT)?,
        if_not_exists: statement.if_not_exists,
    };
    Ok(CheckedDefinition::plain(change))
}

/// Checks ALTER DATABASE.
///
/// # Errors
/// 1046 without a database, 1044 for a system database, 1049 for an unknown one, and the errors of
/// [`collation_of`].
pub fn alter_database(statement: &ast::AlterDatabase, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    let Some(name) = statement.name.as_deref().or(context.database) else {
        return Err(Error::new(ErrorCode::NoDatabaseSelected, "No database selected"));
    };
    context.check_writable(name)?;
    let Some(database) = context.dictionary.database(name) else {
        return Err(Error::new(ErrorCode::UnknownDatabase, format!("Unknown database '{name}'")));
    };
    let (set, collation) = (statement.character_set.as_deref(), statement.collation.as_deref());
    let collation = collation_of(set, collation, database.collation)?;
    Ok(CheckedDefinition::plain(SchemaChange::AlterDatabase { name: name.into(), collation }))
}

/// Checks CREATE TABLE ... LIKE. The new table has the columns, indexes, partitions and options of the
/// source, but neither its foreign keys nor its AUTO_INCREMENT number.
///
/// # Errors
/// 1046, 1044, 1049, 1103 and 1146 for the tables.
pub fn create_table_like(
    statement: &ast::CreateTableLike,
    context: &DefinitionContext<'_>,
) -> Result<CheckedDefinition> {
    let database = context.known_database(&statement.name)?;
    check_name(&statement.name.name, ErrorCode::WrongTableName, "table")?;
    let source = without_building(&context.table(&statement.source)?.definition).0;
    let definition = TableDefinition {
        database: database.name.clone(),
        name: statement.name.name.as_str().into(),
        foreign_keys: Vec::new(),
        sharing: Sharing::Shared,
        checks: check::copied(&source.checks, &statement.name.name),
        ..source
    };
    let if_not_exists = statement.if_not_exists;
    if statement.temporary {
        return own_table::temporary(definition, if_not_exists, (1, Vec::new()), context);
    }
    let change = SchemaChange::CreateTable { definition: Box::new(definition), if_not_exists, auto_increment: 1 };
    Ok(CheckedDefinition::plain(change))
}

/// Checks DROP DATABASE. The main block decides whether the database exists.
///
/// # Errors
/// 1059 and 1102 for the name, 1044 for a system database.
pub fn drop_database(statement: &ast::DropDatabase, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    check_name(&statement.name, ErrorCode::WrongDatabaseName, "database")?;
    context.check_removable(&statement.name)?;
    let change = SchemaChange::DropDatabase { name: statement.name.as_str().into(), if_exists: statement.if_exists };
    Ok(CheckedDefinition::plain(change))
}

/// Checks DROP TABLE. The main block decides whether the tables exist.
///
/// # Errors
/// 1046, 1044, 1066 for a table named twice; 1051 for a missing temporary table.
pub fn drop_tables(statement: &ast::DropTable, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    let mut names: Vec<(Box<str>, Box<str>)> = Vec::with_capacity(statement.tables.len());
    let (mut own, mut missing) = (Vec::new(), Vec::new());
    let mut seen = std::collections::BTreeSet::new();
    for table in &statement.tables {
        let name = (Box::from(context.database_of(table)?), Box::from(table.name.as_str()));
        if !seen.insert(name.clone()) {
            let text = format!("Not unique table/alias: '{}'", table.name);
            return Err(Error::new(ErrorCode::NonUniqueTable, text));
        }
        match context.temporary_table(table)? {
            Some(layout) => own.push(layout.definition.id),
            None if statement.temporary => missing.push(format!("{}.{}", name.0, name.1)),
            None => names.push(name),
        }
    }
    if !statement.temporary && own.is_empty() {
        return Ok(CheckedDefinition::plain(SchemaChange::DropTables { names, if_exists: statement.if_exists }));
    }
    if !statement.temporary {
        let drop_own = SchemaChange::DropOwnTables { tables: own };
        return Ok(match names.is_empty() {
            true => CheckedDefinition::plain(drop_own),
            false => CheckedDefinition {
                then: Some(drop_own),
                ..CheckedDefinition::plain(SchemaChange::DropTables { names, if_exists: statement.if_exists })
            },
        });
    }
    if !missing.is_empty() && !statement.if_exists {
        return Err(Error::new(ErrorCode::UnknownTable, format!("Unknown table '{}'", missing.join(","))));
    }
    let note = |name: String| (ErrorCode::UnknownTable.errno(), format!("Unknown table '{name}'").into());
    Ok(CheckedDefinition {
        existence_notes: missing.into_iter().map(note).collect(),
        commits: false,
        ..CheckedDefinition::plain(SchemaChange::DropOwnTables { tables: own })
    })
}

/// Checks TRUNCATE TABLE.
///
/// # Errors
/// 1046, 1044, 1146.
pub fn truncate_table(table: &ObjectName, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    let table = context.table(table)?.definition.id;
    Ok(CheckedDefinition::plain(SchemaChange::TruncateTable { table }))
}

/// Checks RENAME TABLE. The main block decides whether the tables exist, because each rename sees the result
/// of the previous one: `a TO b, c TO a` is valid.
///
/// # Errors
/// 1046, 1044, 1059 and 1103 for the new names.
pub fn rename_tables(
    written: &[(ObjectName, ObjectName)],
    context: &DefinitionContext<'_>,
) -> Result<CheckedDefinition> {
    let mut renames = Vec::with_capacity(written.len());
    for (from, to) in written {
        check_name(&to.name, ErrorCode::WrongTableName, "table")?;
        let (database_from, database_to) = (context.database_left(from)?, context.database_of(to)?);
        let full = |database: &str, name: &ObjectName| (Box::from(database), Box::from(name.name.as_str()));
        renames.push(TableRename { from: full(database_from, from), to: full(database_to, to) });
    }
    Ok(CheckedDefinition::plain(SchemaChange::RenameTables { renames }))
}
