//! ALTER TABLE, CREATE INDEX and DROP INDEX: several changes of one table.

use std::sync::Arc;

use junctor_model::alteration::{Alteration, altered, apply_drops, without_building};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::ForeignKey;
use junctor_model::schema::{IndexDefinition, TableDefinition};
use junctor_signals::change_schema::SchemaChange;

use super::structure::{Defined, DefinitionContext, check_name};
use super::{foreign_key, index};
use crate::mysql_catalog::variable::Note;
use crate::parse::definition as ast;
use crate::parse::definition::TableChange;

/// MySQL's number of "Table storage engine ... doesn't have this option".
const OPTION_UNKNOWN_TO_ENGINE: u16 = 1031;

/// ALTER TABLE. What goes away goes first, wherever it is written.
///
/// # Errors
/// As of CREATE TABLE; 1046, 1044, 1146; those of [`altered`]; 3939 and 3940 for DROP CONSTRAINT.
pub fn alter_table(statement: &ast::AlterTable, context: &DefinitionContext<'_>) -> Result<Defined> {
    let table = &context.table(&statement.table)?.definition;
    let mut changes = Changes {
        table: without_building(table).0,
        alteration: Alteration { needs_parents: context.foreign_key_checks, ..Alteration::default() },
        notes: Vec::new(),
    };
    for change in &statement.changes {
        changes.drop(change)?;
    }
    apply_drops(&mut changes.table, &changes.alteration)?;
    // Foreign keys come last, so that they use the indexes that come with them.
    let is_key = |change: &&TableChange| matches!(change, TableChange::AddForeignKey(_));
    for change in statement.changes.iter().filter(|change| !is_key(change)) {
        changes.add(change, context)?;
    }
    for change in statement.changes.iter().filter(is_key) {
        changes.add(change, context)?;
    }
    changes.defined(table, context)
}

/// CREATE INDEX.
///
/// # Errors
/// As of CREATE TABLE, and 1146.
pub fn create_index(statement: &ast::CreateIndex, context: &DefinitionContext<'_>) -> Result<Defined> {
    let change = TableChange::AddIndex(statement.index.clone());
    alter_table(&ast::AlterTable { table: statement.table.clone(), changes: vec![change] }, context)
}

/// DROP INDEX.
///
/// # Errors
/// 1146, 1091 for an unknown index, 1075 for the last key of an AUTO_INCREMENT column, 1235 for the primary key, 1553.
pub fn drop_index(statement: &ast::DropIndex, context: &DefinitionContext<'_>) -> Result<Defined> {
    let change = TableChange::DropIndex(statement.name.clone());
    alter_table(&ast::AlterTable { table: statement.table.clone(), changes: vec![change] }, context)
}

/// What is gathered.
struct Changes {
    /// The table as it is after the changes before, as names and columns need it.
    table: TableDefinition,
    alteration: Alteration,
    notes: Vec<Note>,
}

impl Changes {
    /// Notes what goes away.
    fn drop(&mut self, change: &TableChange) -> Result<()> {
        let Alteration { drop_indexes, drop_foreign_keys, .. } = &mut self.alteration;
        match change {
            TableChange::DropIndex(name) => drop_indexes.push(name.as_str().into()),
            TableChange::DropForeignKey(name) => drop_foreign_keys.push(name.as_str().into()),
            TableChange::DropConstraint(name) => {
                let is_index = |index: &IndexDefinition| index.is_unique() && index.name.eq_ignore_ascii_case(name);
                let is_key = |key: &ForeignKey| key.name.eq_ignore_ascii_case(name);
                match (self.table.indexes.iter().any(is_index), self.table.foreign_keys.iter().any(is_key)) {
                    (true, true) => {
                        let text = format!(
                            "Table has multiple constraints with the name '{name}'. Please use constraint specific 'DROP' \
                             clause."
                        );
                        return Err(Error::new(ErrorCode::AmbiguousConstraint, text));
                    }
                    (true, false) => drop_indexes.push(name.as_str().into()),
                    (false, true) => drop_foreign_keys.push(name.as_str().into()),
                    (false, false) => {
                        let text = format!("Constraint '{name}' does not exist.");
                        return Err(Error::new(ErrorCode::NoSuchConstraint, text));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes what comes, or is called otherwise.
    fn add(&mut self, change: &TableChange, context: &DefinitionContext<'_>) -> Result<()> {
        match change {
            TableChange::AddIndex(written) => {
                let index = index::define(written, &self.table.columns, &self.table.indexes, &mut self.notes)?;
                self.alteration.add_indexes.push(index.clone());
                self.table.indexes.push(index);
            }
            TableChange::RenameIndex(from, to) => {
                index::check_chosen_name(to)?;
                self.alteration.rename_indexes.push((from.as_str().into(), to.as_str().into()));
                let is_it = |index: &&mut IndexDefinition| index.name.eq_ignore_ascii_case(from);
                if let Some(index) = self.table.indexes.iter_mut().skip(1).find(is_it) {
                    index.name = to.as_str().into();
                }
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
            TableChange::DropIndex(_) | TableChange::DropForeignKey(_) | TableChange::DropConstraint(_) => {}
        }
        Ok(())
    }

    fn defined(mut self, table: &TableDefinition, context: &DefinitionContext<'_>) -> Result<Defined> {
        let own = (table.database.clone(), table.name.clone());
        if self.alteration.rename.as_ref() == Some(&own) {
            self.alteration.rename = None;
        }
        altered(context.dictionary, &without_building(table).0, &self.alteration)?;
        let change = SchemaChange::AlterTable { table: table.id, alteration: Arc::new(self.alteration) };
        Ok(Defined { change, notes: self.notes })
    }
}
