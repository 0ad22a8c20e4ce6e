//! Foreign keys relate tables. Changing one table affects the plans of related tables, and must not leave
//! children without a parent table.

use std::collections::BTreeSet;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::{ForeignKey, check_foreign_key, check_parent, shown};
use junctor_model::id::TableId;
use junctor_model::schema::{Dictionary, TableDefinition};
use junctor_signals::change_schema::Catalog;

use super::state::{AlterationStep, TableName, Task};

/// Whether the plans of related tables stay valid. Plans choose their indexes when they are made, so a new
/// index invalidates none of them.
pub(super) fn keeps_relations(task: &Task) -> bool {
    let Task::Step { step, alteration, .. } = task else { return false };
    match step {
        AlterationStep::CreateIndexes
        | AlterationStep::BuildIndexes
        | AlterationStep::CreateReplacement
        | AlterationStep::Undo => true,
        AlterationStep::Finish => alteration.only_adds_indexes(),
        AlterationStep::BlockWrites => false,
    }
}

/// The parents and children of the named tables. A named table is included if it is a parent or child of
/// another named table. `keys` are the foreign keys of a new table.
pub(super) fn related(dictionary: &Dictionary, names: &[TableName], keys: &[ForeignKey]) -> BTreeSet<TableId> {
    let mut related = BTreeSet::new();
    let parent_of = |key: &ForeignKey| dictionary.table_named(&key.parent.0, &key.parent.1);
    related.extend(keys.iter().filter_map(parent_of).map(|layout| layout.definition.id));
    for (database, name) in names {
        if let Some(layout) = dictionary.table_named(database, name) {
            let parents = layout.definition.foreign_keys.iter().filter_map(parent_of);
            related.extend(parents.map(|layout| layout.definition.id));
        }
        related.extend(dictionary.referencing_keys(database, name).map(|(layout, _)| layout.definition.id));
    }
    related
}

/// Increments the versions of the related tables that still exist, so that their plans are remade.
pub(super) fn with_new_versions(catalog: &mut Catalog, related: &BTreeSet<TableId>) -> Vec<TableDefinition> {
    let mut renewed = Vec::new();
    for table in related {
        let Some(layout) = catalog.dictionary.table(*table) else { continue };
        let mut definition = layout.definition.clone();
        definition.version.0 += 1;
        catalog.dictionary.put_table(definition.clone());
        renewed.push(definition);
    }
    renewed
}

/// Error 3730 for dropping a table that other tables reference.
pub(super) fn check_drop(dictionary: &Dictionary, tables: &[TableId]) -> Result<()> {
    for id in tables {
        let Some(layout) = dictionary.table(*id) else { continue };
        let own = &layout.definition;
        let mut children = dictionary.children_of(own);
        let referencing = children.find(|(child, _)| !tables.contains(&child.definition.id));
        if let Some((child, key)) = referencing {
            let message = format!(
                "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.",
                own.name, key.name, child.definition.name
            );
            return Err(Error::new(ErrorCode::DropReferenced, message));
        }
    }
    Ok(())
}

/// Error 1701 for truncating a table that other tables reference.
pub(super) fn check_truncate(dictionary: &Dictionary, table: &TableDefinition) -> Result<()> {
    let mut children = dictionary.children_of(table);
    match children.find(|(child, _)| child.definition.id != table.id) {
        Some((child, key)) => {
            let shown = shown(&child.definition, key);
            let message = format!("Cannot truncate a table referenced in a foreign key constraint ({shown})");
            Err(Error::new(ErrorCode::TruncateReferenced, message))
        }
        None => Ok(()),
    }
}

/// Refuses a new table that references a missing parent, or that does not fit the existing foreign keys which
/// reference it.
pub(super) fn check_create(dictionary: &Dictionary, table: &TableDefinition, checks: bool) -> Result<()> {
    for (place, key) in table.foreign_keys.iter().enumerate() {
        check_foreign_key(dictionary, table, &table.foreign_keys[..place], key, checks)?;
    }
    let children = dictionary.children_of(table);
    for (child, key) in children.filter(|_| checks) {
        check_parent(key, &child.definition, table, true)?;
    }
    Ok(())
}

/// Renames columns of a parent in the foreign keys of its children. The new definition `own` of the parent
/// has the new names already where it references itself.
pub(super) fn rename_parent_columns(
    catalog: &mut Catalog,
    (parent, own): (&TableName, TableId),
    renamed: &[(Box<str>, Box<str>)],
) {
    if renamed.is_empty() {
        return;
    }
    let children = catalog.dictionary.referencing_keys(&parent.0, &parent.1);
    let children = children.filter(|(layout, _)| layout.definition.id != own);
    let ids: BTreeSet<TableId> = children.map(|(layout, _)| layout.definition.id).collect();
    for id in &ids {
        let Some(layout) = catalog.dictionary.table(*id) else { continue };
        let mut definition = layout.definition.clone();
        let keys = definition.foreign_keys.iter_mut().filter(|key| key.parent == *parent);
        for name in keys.flat_map(|key| &mut key.parent_columns) {
            if let Some((_, to)) = renamed.iter().find(|(from, _)| from.eq_ignore_ascii_case(name)) {
                *name = to.clone();
            }
        }
        catalog.dictionary.put_table(definition);
    }
}

/// Renames a parent in the foreign keys of its children. Returns the tables whose definitions changed.
pub(super) fn rename_parent(catalog: &mut Catalog, from: &TableName, to: &TableName) -> BTreeSet<TableId> {
    let children = catalog.dictionary.referencing_keys(&from.0, &from.1);
    let ids: BTreeSet<TableId> = children.map(|(layout, _)| layout.definition.id).collect();
    for id in &ids {
        let Some(layout) = catalog.dictionary.table(*id) else { continue };
        let mut definition = layout.definition.clone();
        for key in definition.foreign_keys.iter_mut().filter(|key| key.parent == *from) {
            key.parent = to.clone();
        }
        catalog.dictionary.put_table(definition);
    }
    ids
}
