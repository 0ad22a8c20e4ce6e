//! ALTER TABLE, CREATE INDEX and DROP INDEX: each becomes one [`Alteration`] of one table.

use std::sync::Arc;

use junctor_model::alteration::{Alteration, altered, apply_drops, rename_indexes, without_building};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::ForeignKey;
use junctor_model::id::ColumnNumber;
use junctor_model::schema::{IndexAttributes, IndexDefinition, IndexKind, TableDefinition};
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::row_expressions::RowExpressions;

use super::redefine::{self, CopiedTable, Draft, KeyChanges};
use super::structure::{CheckedDefinition, DefinitionContext, check_name};
use super::{check, expression, foreign_key, index, manner, own_table};
use crate::mysql_catalog::variable::Note;
use crate::parse::definition as ast;
use crate::parse::definition::{AlterAlgorithm, AlterManner, TableChange};

/// MySQL's number for "Table storage engine ... doesn't have this option".
const OPTION_UNKNOWN_TO_ENGINE: u16 = 1031;

/// Checks ALTER TABLE. All drops apply before all other changes, whatever their order in the statement.
///
/// # Errors
/// The errors of CREATE TABLE and of [`altered`]; 1046, 1044 and 1146 for the table; 3939 for an ambiguous
/// and 3940 for an unknown DROP CONSTRAINT; 1215 and 1562 for a temporary table; 1221, 1845 and 1846 for
/// ALGORITHM and LOCK.
pub fn alter_table(statement: &ast::AlterTable, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    manner::check_combination(statement.manner)?;
    let statement = &without_same_indexes(statement, &context.table(&statement.table)?.definition);
    let checked = checked(statement, context)?;
    if let SchemaChange::AlterTable { alteration, .. } = &checked.change {
        manner::check(statement, alteration)?;
    }
    Ok(checked)
}

fn checked(statement: &ast::AlterTable, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    let table = &context.table(&statement.table)?.definition;
    let mut changes = Changes {
        table: without_building(table).0,
        alteration: Alteration { needs_parents: context.foreign_key_checks, ..Alteration::default() },
        expressions: RowExpressions::default(),
        notes: Vec::new(),
    };
    if table.is_temporary() && statement.changes.iter().any(|change| matches!(change, TableChange::PartitionBy(_))) {
        return Err(own_table::partitions());
    }
    for change in &statement.changes {
        changes.drop(change)?;
    }
    // A statement that renames, shows or hides indexes keeps those of foreign keys.
    let names_index =
        |change: &TableChange| matches!(change, TableChange::RenameIndex(..) | TableChange::ShowIndex(..));
    if !statement.changes.iter().any(names_index) {
        statement.changes.iter().filter_map(as_index).for_each(|index| changes.drop_replaced(index));
    }
    let mut written = statement.changes.clone();
    if written.iter().any(|change| redefine::redefines(change, table)) {
        match changes.redefine(&mut written, statement.manner, context)? {
            Redefined::WithCopy => return changes.defined(table, context),
            Redefined::InPlace => {}
        }
    }
    apply_drops(&mut changes.table, &changes.alteration)?;
    // Renames come first, because an added index may have a name that they free. Foreign keys come last, so
    // that they can use indexes of the same statement.
    let is_rename = |change: &TableChange| matches!(change, TableChange::RenameIndex(..));
    let is_key = |change: &TableChange| matches!(change, TableChange::AddForeignKey(_));
    for change in written.iter().filter(|change| is_rename(change)) {
        changes.add(change, context)?;
    }
    rename_indexes(&mut changes.table.indexes, &table.name, &changes.alteration.rename_indexes)?;
    for change in written.iter().filter(|change| !is_rename(change) && !is_key(change)) {
        changes.add(change, context)?;
    }
    for change in written.iter().filter(|change| is_key(change)) {
        changes.add(change, context)?;
    }
    changes.defined(table, context)
}

/// The statement without indexes that it drops and adds again as they are: the change of an index to another
/// type is none between the types of the same index here.
fn without_same_indexes(statement: &ast::AlterTable, table: &TableDefinition) -> ast::AlterTable {
    let changes = &statement.changes;
    let is_of_index = |change: &TableChange| matches!(change, TableChange::DropIndex(_) | TableChange::AddIndex(_));
    let is_same = |name: &str| {
        let named = |written: &&ast::IndexDefinition| {
            written.name.as_deref().is_some_and(|written| written.eq_ignore_ascii_case(name))
        };
        let mut added = changes.iter().filter_map(as_index).filter(named);
        let (Some(written), None, Some(old)) = (added.next(), added.next(), table.index_named(name)) else {
            return false;
        };
        let others: Vec<IndexDefinition> = table.indexes.iter().filter(|other| other.id != old.id).cloned().collect();
        let Ok(new) = index::define(written, &table.columns, &others, &mut Vec::new()) else { return false };
        let has_kind = match (old.kind, new.kind) {
            (IndexKind::Unique { ordered: old, .. }, IndexKind::Unique { ordered: new, .. }) => old == new,
            (old, new) => old == new && old == IndexKind::Ordered,
        };
        let IndexAttributes { of_foreign_key, names_btree, .. } = old.attributes;
        let attributes = IndexAttributes { of_foreign_key, names_btree, ..new.attributes };
        has_kind && old.name == new.name && old.columns == new.columns && old.attributes == attributes
    };
    let mut kept = statement.clone();
    if changes.iter().all(is_of_index) {
        kept.changes.retain(|change| match change {
            TableChange::DropIndex(name) => !is_same(name),
            TableChange::AddIndex(written) => !written.name.as_deref().is_some_and(|name| {
                let is_drop = |change: &TableChange| match change {
                    TableChange::DropIndex(dropped) => dropped.eq_ignore_ascii_case(name),
                    _ => false,
                };
                changes.iter().any(is_drop) && is_same(name)
            }),
            _ => true,
        });
    }
    kept
}

/// Checks CREATE INDEX, which is ALTER TABLE with one added index.
///
/// # Errors
/// The errors of a key in CREATE TABLE, and 1146.
pub fn create_index(statement: &ast::CreateIndex, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    let change = TableChange::AddIndex(statement.index.clone());
    let (table, manner) = (statement.table.clone(), statement.manner);
    alter_table(&ast::AlterTable { table, changes: vec![change], manner }, context)
}

/// Checks DROP INDEX, which is ALTER TABLE with one dropped index.
///
/// # Errors
/// 1146, 1091 for an unknown index, 1075 for the last key of an AUTO_INCREMENT column, 1235 for the primary
/// key, 1553 for an index that a foreign key needs.
pub fn drop_index(statement: &ast::DropIndex, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
    let change = TableChange::DropIndex(statement.name.clone());
    let (table, manner) = (statement.table.clone(), statement.manner);
    alter_table(&ast::AlterTable { table, changes: vec![change], manner }, context)
}

/// The alteration that results from the changes processed so far.
struct Changes {
    /// The table after the changes processed so far. Later changes resolve names and columns against it.
    table: TableDefinition,
    alteration: Alteration,
    /// What the new table computes for the copied rows.
    expressions: RowExpressions,
    notes: Vec<Note>,
}

/// How the changes of columns and options are made.
enum Redefined {
    /// The rows keep their form. Indexes and foreign keys remain to be processed.
    InPlace,
    /// The rows are copied. The redefinition contains all changes of the statement.
    WithCopy,
}

fn as_index(change: &TableChange) -> Option<&ast::IndexDefinition> {
    if let TableChange::AddIndex(index) = change { Some(index) } else { None }
}

fn as_foreign_key(change: &TableChange) -> Option<&ast::ForeignKey> {
    if let TableChange::AddForeignKey(key) = change { Some(key) } else { None }
}

impl Changes {
    /// Processes the changes of columns and options. Adds the keys among the attributes of new columns to
    /// `written`.
    fn redefine(
        &mut self,
        written: &mut Vec<TableChange>,
        AlterManner { algorithm, validates, .. }: AlterManner,
        context: &DefinitionContext<'_>,
    ) -> Result<Redefined> {
        let old = self.table.clone();
        let mut draft = Draft::new(written, &old, context, &mut self.notes)?;
        written.splice(0..0, std::mem::take(&mut draft.keys));
        let changes_primary =
            written.iter().any(|change| match change {
                TableChange::AddIndex(index) => index.kind == ast::IndexKind::Primary,
                _ => false,
            }) || self.alteration.drop_indexes.iter().any(|name| name.eq_ignore_ascii_case(index::PRIMARY));
        // An index is built before the last step of an alteration, so its columns must be there. INPLACE and
        // COPY write rows with the columns of the new table, as in MySQL.
        let changes_keys = !self.alteration.drop_indexes.is_empty()
            || written.iter().any(|change| as_index(change).is_some() || as_foreign_key(change).is_some());
        let is_automatic = matches!(algorithm, AlterAlgorithm::Default | AlterAlgorithm::Instant);
        let may_change_columns = !changes_keys && is_automatic && !validates;
        let needs_stored = written.iter().any(|change| redefine::needs_stored(change, &old));
        let in_place = match changes_primary || needs_stored {
            true => None,
            false => draft.in_place((may_change_columns, algorithm), context)?,
        };
        if let Some(redefinition) = in_place {
            self.table = redefinition.new.clone();
            self.alteration.redefinition = Some(Box::new(redefinition));
            return Ok(Redefined::InPlace);
        }
        for change in written.iter() {
            match change {
                TableChange::Rename(_) | TableChange::SwitchKeys | TableChange::ShowIndex(..) => {
                    self.add(change, context)?
                }
                TableChange::RenameIndex(from, to) => {
                    index::check_explicit_name(to)?;
                    self.alteration.rename_indexes.push((from.as_str().into(), to.as_str().into()));
                }
                _ => {}
            }
        }
        let keys = KeyChanges {
            alteration: &self.alteration,
            indexes: written.iter().filter_map(as_index).collect(),
            foreign_keys: written.iter().filter_map(as_foreign_key).collect(),
        };
        let CopiedTable { redefinition, added_keys, expressions } = draft.with_copy(&keys, context, &mut self.notes)?;
        self.expressions = expressions;
        self.alteration = Alteration {
            rename: self.alteration.rename.take(),
            needs_parents: self.alteration.needs_parents,
            add_foreign_keys: added_keys,
            redefinition: Some(Box::new(redefinition)),
            ..Alteration::default()
        };
        Ok(Redefined::WithCopy)
    }

    /// Collects the drop of an index or constraint; ignores other changes.
    fn drop(&mut self, change: &TableChange) -> Result<()> {
        let Alteration { drop_indexes, drop_foreign_keys, .. } = &mut self.alteration;
        match change {
            TableChange::DropIndex(name) => drop_indexes.push(name.as_str().into()),
            TableChange::DropForeignKey(name) => drop_foreign_keys.push(name.as_str().into()),
            TableChange::DropConstraint(name) => {
                let is_index = |index: &IndexDefinition| index.is_unique() && index.name.eq_ignore_ascii_case(name);
                let is_key = |key: &ForeignKey| key.name.eq_ignore_ascii_case(name);
                let is_check = check::position(&self.table.checks, name).is_some();
                let is_index = self.table.indexes.iter().any(is_index);
                match (is_index, self.table.foreign_keys.iter().any(is_key), is_check) {
                    (true, true, _) | (true, _, true) | (_, true, true) => {
                        let text = format!(
                            "Table has multiple constraints with the name '{name}'. Please use constraint specific 'DROP' \
                             clause."
                        );
                        return Err(Error::new(ErrorCode::AmbiguousConstraint, text));
                    }
                    (true, false, false) => drop_indexes.push(name.as_str().into()),
                    (false, true, false) => drop_foreign_keys.push(name.as_str().into()),
                    // The redefinition drops it.
                    (false, false, true) => {}
                    (false, false, false) => {
                        let text = format!("Constraint '{name}' does not exist.");
                        return Err(Error::new(ErrorCode::NoSuchConstraint, text));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Drops the indexes that foreign keys added, if a new index begins with their columns. The new one may
    /// have the name of such an index.
    fn drop_replaced(&mut self, new: &ast::IndexDefinition) {
        let is_hashed = new.algorithm == Some(ast::IndexAlgorithm::Hash);
        if is_hashed || new.kind == ast::IndexKind::Primary {
            return;
        }
        let columns = &self.table.columns;
        let is_same = |(written, old): (&ast::IndexColumn, &ColumnNumber)| {
            written.prefix_length.is_none() && written.name.eq_ignore_ascii_case(&columns[usize::from(old.0)].name)
        };
        let is_replaced = |old: &&IndexDefinition| {
            old.attributes.of_foreign_key
                && new.columns.len() >= old.columns.len()
                && new.columns.iter().zip(&old.columns).all(is_same)
        };
        let dropped = &mut self.alteration.drop_indexes;
        let replaced = self.table.indexes.iter().filter(is_replaced).map(|old| old.name.clone());
        let replaced: Vec<Box<str>> = replaced.filter(|name| !dropped.contains(name)).collect();
        dropped.extend(replaced);
    }

    /// Collects an addition or a rename; ignores drops.
    fn add(&mut self, change: &TableChange, context: &DefinitionContext<'_>) -> Result<()> {
        match change {
            TableChange::AddIndex(written) => {
                let index = index::define(written, &self.table.columns, &self.table.indexes, &mut self.notes)?;
                let table = (&*self.table.database, &*self.table.name);
                index::note_duplicate(&index, &self.table.indexes, table, &mut self.notes);
                self.alteration.add_indexes.push(index.clone());
                self.table.indexes.push(index);
            }
            TableChange::RenameIndex(from, to) => {
                index::check_explicit_name(to)?;
                self.alteration.rename_indexes.push((from.as_str().into(), to.as_str().into()));
            }
            TableChange::ShowIndex(name, visible) => {
                self.alteration.show_indexes.push((name.as_str().into(), *visible));
            }
            TableChange::AddForeignKey(written) => {
                let before = self.table.indexes.len();
                let key = foreign_key::define(written, &mut self.table, context)?;
                self.alteration.add_indexes.extend_from_slice(&self.table.indexes[before..]);
                self.table.foreign_keys.push(key.clone());
                self.alteration.add_foreign_keys.push(key);
            }
            TableChange::Rename(to) => {
                check_name(&to.name, ErrorCode::WrongTableName, "table")?;
                self.alteration.rename = Some((context.database_of(to)?.into(), to.name.as_str().into()));
            }
            TableChange::SwitchKeys => {
                let text = format!("Table storage engine for '{}' doesn't have this option", self.table.name);
                self.notes.push((OPTION_UNKNOWN_TO_ENGINE, text.into()));
            }
            // Drops and changes of columns are processed before.
            _ => {}
        }
        Ok(())
    }

    fn defined(mut self, table: &TableDefinition, context: &DefinitionContext<'_>) -> Result<CheckedDefinition> {
        if table.is_temporary() && !self.alteration.add_foreign_keys.is_empty() {
            return Err(own_table::foreign_key());
        }
        let own = (table.database.clone(), table.name.clone());
        if self.alteration.rename.as_ref() == Some(&own) {
            self.alteration.rename = None;
        }
        let names_columns = !self.alteration.add_indexes.is_empty() || !self.alteration.add_foreign_keys.is_empty();
        if names_columns && self.alteration.redefinition.is_none() {
            self.alteration.planned_for = Some(Box::new(without_building(table).0));
        }
        // The main block applies the alteration again. This trial run reports errors before any work starts.
        let after = altered(context.dictionary, &without_building(table).0, &self.alteration)?;
        // New foreign keys may change columns that expressions read.
        expression::check_table(&after, context)?;
        let (alteration, expressions) = (Arc::new(self.alteration), Arc::new(self.expressions));
        let change = SchemaChange::AlterTable { table: table.id, alteration, expressions };
        Ok(CheckedDefinition { notes: self.notes, ..CheckedDefinition::plain(change) })
    }
}
