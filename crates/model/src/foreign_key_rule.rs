//! The rules for declaring a foreign key: its name, its columns, its parent.

use crate::error::{Error, ErrorCode, Result};
use crate::foreign_key::{ForeignKey, ReferentialAction, columns_named, supporting_index};
use crate::id::ColumnNumber;
use crate::key::KeyPart;
use crate::schema::{Dictionary, IndexDefinition, TableDefinition};
use crate::types::DataType;

/// Checks whether a table may have a foreign key; `before` are the keys that it already has. With
/// `needs_parent` the parent must exist and must have an index to find rows by.
///
/// # Errors
/// 1235, 1822, 1824, 1826, 1830, 3734, 3780.
pub fn check_foreign_key(
    dictionary: &Dictionary,
    table: &TableDefinition,
    before: &[ForeignKey],
    key: &ForeignKey,
    needs_parent: bool,
) -> Result<()> {
    check_key_name(dictionary, table, before, key)?;
    if table.time_to_live().is_some() {
        return Err(foreign_keys_of_expiring_rows());
    }
    check_set_null(key, table)?;
    // A table that references itself may not be in the dictionary yet, or only with its old definition.
    let is_own = key.parent.0 == table.database && key.parent.1 == table.name;
    let parent = match is_own {
        true => Some(table),
        false => dictionary.table_named(&key.parent.0, &key.parent.1).map(|layout| &layout.definition),
    };
    match parent {
        Some(parent) => check_parent(key, table, parent, needs_parent),
        None if needs_parent => {
            let text = format!("Failed to open the referenced table '{}'", key.parent.1);
            Err(Error::new(ErrorCode::ForeignKeyWithoutParent, text))
        }
        None => Ok(()),
    }
}

/// Checks that no other foreign key of the database, `before` included, has the same name.
///
/// # Errors
/// 1826.
pub fn check_key_name(
    dictionary: &Dictionary,
    table: &TableDefinition,
    before: &[ForeignKey],
    key: &ForeignKey,
) -> Result<()> {
    let tables = dictionary.tables().map(|layout| &layout.definition);
    // MySQL's constraint names are unique per database, not per table.
    let others = tables.filter(|other| other.database == table.database && other.id != table.id);
    let mut all = others.flat_map(|other| &other.foreign_keys).chain(before);
    if all.any(|other| other.name.eq_ignore_ascii_case(&key.name)) {
        let text = format!("Duplicate foreign key constraint name '{}'", key.name);
        return Err(Error::new(ErrorCode::DuplicateForeignKeyName, text));
    }
    Ok(())
}

/// Refuses SET NULL for NOT NULL columns.
///
/// # Errors
/// 1830.
pub fn check_set_null(key: &ForeignKey, table: &TableDefinition) -> Result<()> {
    if key.on_delete != ReferentialAction::SetNull && key.on_update != ReferentialAction::SetNull {
        return Ok(());
    }
    let columns = key.columns.iter().map(|column| &table.columns[usize::from(column.0)]);
    match columns.into_iter().find(|column| !column.nullable) {
        Some(column) => {
            let text = format!(
                "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL",
                column.name, key.name
            );
            Err(Error::new(ErrorCode::ForeignKeyColumnNotNull, text))
        }
        None => Ok(()),
    }
}

/// Checks whether a table can be the parent. Without `needs_index`, its index may be added later.
///
/// # Errors
/// 1235, 1822, 3734, 3780.
pub fn check_parent(
    key: &ForeignKey,
    child: &TableDefinition,
    parent: &TableDefinition,
    needs_index: bool,
) -> Result<()> {
    if parent.time_to_live().is_some() {
        return Err(foreign_keys_of_expiring_rows());
    }
    let Some(columns) = columns_named(parent, &key.parent_columns) else {
        let mut names = key.parent_columns.iter().map(|name| &**name);
        let missing = names.find(|name| parent.column(name).is_none()).unwrap_or_default();
        let text = format!(
            "Failed to add the foreign key constraint. Missing column '{missing}' for constraint '{}' in the referenced \
             table '{}'",
            key.name, parent.name
        );
        return Err(Error::new(ErrorCode::ForeignKeyWithoutParentColumn, text));
    };
    for (own, other) in key.columns.iter().zip(&columns) {
        let (own, other) = (&child.columns[usize::from(own.0)], &parent.columns[usize::from(other.0)]);
        if !are_compatible(&own.column_type, &other.column_type) {
            let text = format!(
                "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are incompatible.",
                own.name, other.name, key.name
            );
            return Err(Error::new(ErrorCode::ForeignKeyColumnsIncompatible, text));
        }
    }
    if needs_index && !is_parent_key(parent, &columns) {
        let text = format!(
            "Failed to add the foreign key constraint. Missing index for constraint '{}' in the referenced table '{}'",
            key.name, parent.name
        );
        return Err(Error::new(ErrorCode::ForeignKeyWithoutParentIndex, text));
    }
    Ok(())
}

/// Error 1235: a row that expires is neither a child nor a parent.
#[cold]
pub fn foreign_keys_of_expiring_rows() -> Box<Error> {
    Error::not_supported("FOREIGN KEY of a table with a time to live")
}

/// Whether rows can be found by the columns: they are a complete unique key, or an ordered index begins with
/// them.
fn is_parent_key(parent: &TableDefinition, columns: &[ColumnNumber]) -> bool {
    let is_whole = |index: &IndexDefinition| index.columns == columns && index.is_unique();
    parent.indexes.iter().any(is_whole) || supporting_index(parent, columns).is_some()
}

/// Whether the types are the same numeric type, string types with the same collation, or both ENUM or both
/// SET with keys of the same size. The lengths of strings and the names of members may differ.
fn are_compatible(child: &DataType, parent: &DataType) -> bool {
    match (child.key_part(), parent.key_part()) {
        (KeyPart::Text(child), KeyPart::Text(parent)) => child == parent,
        _ if child.members().is_some() && parent.members().is_some() => {
            child.name() == parent.name() && child.fixed_bytes() == parent.fixed_bytes()
        }
        _ => child == parent,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::collation::CollationId;
    use crate::types::Members;

    #[test]
    fn enum_and_set_reference_only_their_own_type_with_the_same_size() {
        let text = CollationId::DEFAULT;
        let members = |count: usize| {
            let names = (0..count).map(|number| number.to_string().into_bytes().into());
            Arc::new(Members::new(names.collect()))
        };
        let two = DataType::enumeration(members(2), text);
        let set = DataType::set(members(2), text);
        assert!(are_compatible(&two, &DataType::enumeration(members(3), text)));
        assert!(are_compatible(&set, &DataType::set(members(8), text)));
        let others = [
            DataType::enumeration(members(300), text),
            set.clone(),
            DataType::char(1, text),
            DataType::varchar(10, text),
            DataType::integer(1, true),
        ];
        for other in others {
            assert!(!are_compatible(&two, &other) && !are_compatible(&other, &two), "{}", other.text(None));
        }
        assert!(!are_compatible(&set, &DataType::set(members(9), text)));
        assert!(!are_compatible(&set, &DataType::varchar(10, text)));
        assert!(are_compatible(&DataType::char(1, text), &DataType::varchar(10, text)));
        assert!(!are_compatible(&DataType::integer(4, false), &DataType::integer(4, true)));
    }
}
