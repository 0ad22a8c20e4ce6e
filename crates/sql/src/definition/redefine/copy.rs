//! The definition of a table whose rows are copied: all changes of the statement at once.

use std::sync::Arc;

use junctor_model::alteration::{Alteration, ColumnSource, Redefinition, rename_indexes, show_indexes};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::{ForeignKey, check_parent, check_set_null, supporting_index};
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::limit::{INDEXES_MAX, PARTITIONS_PER_TABLE_MAX};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, IndexState, TableDefinition, TableLayout};
use junctor_model::scratch::Scratch;
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::value::Value;
use junctor_signals::row_expressions::RowExpressions;

use super::super::structure::DefinitionContext;
use super::super::{create_table, expression, foreign_key, index, message, time_to_live};
use super::{Draft, KeyChanges, NewColumn, Partitioning, cannot_drop, check_rows_and_keys, rename_own_parents};
use crate::bind::StoredExpressions;
use crate::mysql_catalog::variable::Note;
use crate::parse::definition as ast;

/// A redefinition with a copy of the rows.
pub(in crate::definition) struct CopiedTable {
    pub redefinition: Redefinition,
    /// The foreign keys that the statement adds.
    pub added_keys: Vec<ForeignKey>,
    /// What the new table computes for the copied rows.
    pub expressions: RowExpressions,
}

impl Draft<'_> {
    /// The definition with all changes of the statement, for rows that are copied.
    ///
    /// # Errors
    /// The errors of CREATE TABLE, and 1091, 1176, 1553, 1828 and 1832 for keys and their columns.
    pub fn with_copy(
        mut self,
        keys: &KeyChanges<'_>,
        context: &DefinitionContext<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<CopiedTable> {
        // Every row of the copy has all columns.
        let copied = |column: &NewColumn| ColumnDefinition { added: None, ..column.definition.clone() };
        let mut columns: Vec<ColumnDefinition> = self.columns.iter().map(copied).collect();
        let mut indexes = self.kept_indexes(keys.alteration)?;
        let has_hidden_key = self.define_primary(&mut columns, &mut indexes, keys, notes)?;
        for written in keys.indexes.iter().filter(|written| written.kind != ast::IndexKind::Primary) {
            let defined = index::define(written, &columns, &indexes, notes)?;
            index::note_duplicate(&defined, &indexes, (&self.old.database, &self.old.name), notes);
            indexes.push(defined);
        }
        if indexes.len() > INDEXES_MAX {
            return Err(message::too_many_keys());
        }
        for (column, definition) in self.columns.iter_mut().zip(&columns) {
            column.definition.nullable = definition.nullable;
        }
        self.set_defaults()?;
        for (definition, column) in columns.iter_mut().zip(&mut self.columns) {
            // A column that a primary key has made NOT NULL has no default of NULL.
            if !definition.nullable && column.definition.default == Some(Value::Null) {
                column.definition.default = None;
            }
            definition.default.clone_from(&column.definition.default);
            definition.default_now = column.definition.default_now;
            definition.expression.clone_from(&column.definition.expression);
            definition.on_update_now = column.definition.on_update_now;
        }
        create_table::check_auto_increment(&columns, &indexes)?;
        let (clause, partition_columns) = self.partition_clause(&columns, &indexes[0], has_hidden_key)?;
        let partition_count = match &self.partitioning {
            _ if self.old.is_temporary() => 1,
            Partitioning::Kept => self.old.partition_count,
            Partitioning::Spread { .. } if self.old.has_partition_clause => self.old.partition_count,
            Partitioning::Spread { from } => {
                let default = create_table::partition_count(None, context.default_partition_count)?;
                // The groups that stay have no more partitions than before.
                let kept = context.node_groups.min(*from);
                let count = u32::from(self.old.partition_count) * u32::from(kept) / u32::from((*from).max(1));
                default.max(count as u16)
            }
            Partitioning::Removed => create_table::partition_count(None, context.default_partition_count)?,
            Partitioning::Count(count) if *count > u64::from(PARTITIONS_PER_TABLE_MAX) => {
                return Err(create_table::too_many_partitions());
            }
            Partitioning::Count(count) => *count as u16,
            Partitioning::By(written) => create_table::partition_count(Some(written), context.default_partition_count)?,
        };
        let sources = self.sources(has_hidden_key, context)?;
        let mut new = TableDefinition {
            columns,
            indexes,
            partition_columns,
            partition_count,
            has_partition_clause: clause,
            collation: self.collation,
            comment: self.comment.clone(),
            options: self.options.clone(),
            checks: self.checks.clone(),
            foreign_keys: self.kept_foreign_keys(keys.alteration, context)?,
            ..self.old.clone()
        };
        let renamed_columns = self.renamed_columns();
        rename_own_parents(&mut new, &renamed_columns);
        check_supported(self.old, &new)?;
        for key in &new.foreign_keys {
            check_set_null(key, &new)?;
            if key.parent == (new.database.clone(), new.name.clone()) {
                check_parent(key, &new, &new, true)?;
            }
        }
        let mut added = Vec::new();
        for written in &keys.foreign_keys {
            let key = foreign_key::define(written, &mut new, context)?;
            new.foreign_keys.push(key.clone());
            added.push(key);
        }
        for (position, index) in new.indexes.iter_mut().enumerate() {
            index.id = IndexId(position as u16);
            index.state = IndexState::Online;
        }
        check_rows_and_keys(&new.columns, &new.indexes)?;
        expression::check_table(&new, context)?;
        time_to_live::check(&new, context)?;
        let expressions = row_expressions(&new, &sources, context)?;
        let redefinition = self.redefinition(new, Some(sources), renamed_columns);
        Ok(CopiedTable { redefinition, added_keys: added, expressions })
    }

    /// The indexes that the statement does not drop, over the new columns. An index loses the columns that
    /// are dropped, and disappears with its last one. Hidden keys are not among them.
    fn kept_indexes(&self, alteration: &Alteration) -> Result<Vec<IndexDefinition>> {
        let has_hidden_key = self.old.columns.last().is_some_and(ColumnDefinition::is_hidden_key);
        let mut indexes: Vec<IndexDefinition> = self.old.indexes[usize::from(has_hidden_key)..].to_vec();
        for name in &alteration.drop_indexes {
            let found = indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name));
            indexes.remove(found.ok_or_else(|| cannot_drop(name))?);
        }
        rename_indexes(&mut indexes, &self.old.name, &alteration.rename_indexes)?;
        show_indexes(&mut indexes, &self.old.name, &alteration.show_indexes)?;
        for index in &mut indexes {
            let kept =
                |columns: &[ColumnNumber]| columns.iter().filter_map(|column| self.new_number(*column)).collect();
            (index.columns, index.attributes.descending) = (kept(&index.columns), kept(&index.attributes.descending));
        }
        indexes.retain(|index| !index.columns.is_empty());
        Ok(indexes)
    }

    /// Puts the primary key at the beginning: the old one, the one of the statement, or a hidden one. Its
    /// columns become NOT NULL. Returns whether it is hidden.
    fn define_primary(
        &self,
        columns: &mut Vec<ColumnDefinition>,
        indexes: &mut Vec<IndexDefinition>,
        keys: &KeyChanges<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<bool> {
        let mut added = keys.indexes.iter().filter(|written| written.kind == ast::IndexKind::Primary);
        let new = added.next();
        let has_old = indexes.first().is_some_and(is_primary);
        if added.next().is_some() || (has_old && new.is_some()) {
            return Err(message::multiple_primary());
        }
        if let Some(written) = new {
            let defined = index::define(written, columns, &[], notes)?;
            indexes.insert(0, defined);
        } else if !has_old {
            indexes.insert(0, create_table::hidden_key(columns));
            return Ok(true);
        }
        for part in indexes[0].columns.clone() {
            let base = index::base_of(columns, part);
            let written = self.columns[base].written.as_ref();
            if written.is_some_and(|written| written.nullable == Some(true)) {
                return Err(message::primary_null());
            }
            (columns[base].nullable, columns[usize::from(part.0)].nullable) = (false, false);
            create_table::check_primary_column(&columns[base])?;
        }
        Ok(false)
    }

    /// Whether the table has a PARTITION BY clause, and the columns that choose the partition.
    fn partition_clause(
        &self,
        columns: &[ColumnDefinition],
        primary: &IndexDefinition,
        has_hidden_key: bool,
    ) -> Result<(bool, Vec<ColumnNumber>)> {
        let is_kept =
            matches!(self.partitioning, Partitioning::Kept | Partitioning::Count(_) | Partitioning::Spread { .. });
        let old = self.old;
        if is_kept && old.has_partition_clause && old.partition_columns != old.primary().columns {
            let kept = old.partition_columns.iter().map(|column| self.new_number(*column));
            let kept: Option<Vec<ColumnNumber>> = kept.collect();
            let kept = kept.filter(|kept| kept.iter().all(|column| primary.columns.contains(column)));
            return kept.map(|kept| (true, kept)).ok_or_else(create_table::partition_key_not_primary);
        }
        let clause = match &self.partitioning {
            Partitioning::By(written) => Some(written),
            _ => None,
        };
        let chosen = create_table::partition_columns(clause, columns, primary, has_hidden_key)?;
        Ok((clause.is_some() || (is_kept && old.has_partition_clause), chosen))
    }

    fn sources(&self, has_hidden_key: bool, context: &DefinitionContext<'_>) -> Result<Vec<ColumnSource>> {
        let sources = self.columns.iter().map(|column| column.source(context));
        let mut sources = sources.collect::<Result<Vec<ColumnSource>>>()?;
        if has_hidden_key {
            let old = self.old.columns.iter().position(ColumnDefinition::is_hidden_key);
            let kept = old.map(|position| ColumnSource::Column(ColumnNumber(position as u16)));
            sources.push(kept.unwrap_or(ColumnSource::Numbers));
        }
        Ok(sources)
    }

    /// The foreign keys that the statement does not drop, over the new columns.
    fn kept_foreign_keys(&self, alteration: &Alteration, context: &DefinitionContext<'_>) -> Result<Vec<ForeignKey>> {
        let mut keys = self.old.foreign_keys.clone();
        for name in &alteration.drop_foreign_keys {
            let found = keys.iter().position(|key| key.name.eq_ignore_ascii_case(name));
            keys.remove(found.ok_or_else(|| cannot_drop(name))?);
        }
        for key in &mut keys {
            let mut columns = Vec::with_capacity(key.columns.len());
            for column in &key.columns {
                let old = &self.old.columns[usize::from(column.0)];
                let Some(new) = self.new_number(*column) else {
                    let text =
                        format!("Cannot drop column '{}': needed in a foreign key constraint '{}'", old.name, key.name);
                    return Err(Error::new(ErrorCode::ColumnNeededByForeignKey, text));
                };
                let now = &self.columns[usize::from(new.0)].definition;
                if context.foreign_key_checks && !now.column_type.has_values_of(&old.column_type) {
                    let text =
                        format!("Cannot change column '{}': used in a foreign key constraint '{}'", old.name, key.name);
                    return Err(Error::new(ErrorCode::ColumnUsedByForeignKey, text));
                }
                columns.push(new);
            }
            key.columns = columns;
        }
        Ok(keys)
    }
}

impl NewColumn {
    pub(super) fn source(&self, context: &DefinitionContext<'_>) -> Result<ColumnSource> {
        let definition = &self.definition;
        if definition.is_generated() {
            return Ok(ColumnSource::Computed);
        }
        Ok(match (self.old, &definition.default) {
            (Some(old), _) => ColumnSource::Column(old),
            (None, _) if definition.auto_increment => ColumnSource::Numbers,
            (None, _) if definition.expression.is_some() => ColumnSource::Computed,
            (None, Some(default)) => ColumnSource::Value(default.clone()),
            (None, None) if definition.default_now => {
                let scratch = scratch(context);
                let target = StoreTarget { column: definition, row_number: 1, mode: StoreMode::Strict };
                let now = target.convert(scratch.now(definition.column_type.scale()), &scratch)?;
                ColumnSource::Value(now.to_value())
            }
            (None, None) if definition.nullable => ColumnSource::Value(Value::Null),
            (None, None) => ColumnSource::Value(definition.column_type.implicit_default()),
        })
    }

    /// Whether rows may get the implied value of the type without a word: it may be a day that `sql_mode`
    /// does not allow. The copy has the errors and warnings.
    pub(super) fn allows(&self, implied: &Value, context: &DefinitionContext<'_>) -> bool {
        let scratch = scratch(context);
        let target = StoreTarget { column: &self.definition, row_number: 1, mode: StoreMode::Strict };
        let is_same = target.convert(implied.as_ref(), &scratch).is_ok_and(|stored| stored == implied.as_ref());
        is_same && scratch.warning_count() == 0
    }
}

fn scratch(context: &DefinitionContext<'_>) -> Scratch {
    let scratch = Scratch::new();
    scratch.set_value_rules(context.rules);
    scratch.set_now(context.now_us);
    scratch
}

fn is_primary(index: &IndexDefinition) -> bool {
    matches!(index.kind, IndexKind::Primary { .. })
}

/// Error 1553 if a kept foreign key has lost its index.
fn check_supported(old: &TableDefinition, new: &TableDefinition) -> Result<()> {
    let Some(key) = new.foreign_keys.iter().find(|key| supporting_index(new, &key.columns).is_none()) else {
        return Ok(());
    };
    let before = old.foreign_keys.iter().find(|before| before.name == key.name);
    let lost = before.and_then(|before| {
        let mut indexes = old.indexes.iter();
        indexes.find(|index| index.columns.starts_with(&before.columns)).map(|index| &*index.name)
    });
    let text = format!("Cannot drop index '{}': needed in a foreign key constraint", lost.unwrap_or(&key.name));
    Err(Error::new(ErrorCode::IndexNeededByForeignKey, text))
}

/// The computed columns and the CHECK constraints of the new table.
fn row_expressions(
    table: &TableDefinition,
    sources: &[ColumnSource],
    context: &DefinitionContext<'_>,
) -> Result<RowExpressions> {
    let layout = Arc::new(TableLayout::new(table.clone()));
    let mut expressions = StoredExpressions::new(context.environment, &layout);
    let mut columns = expressions.computed()?;
    columns.retain(|computed| sources[usize::from(computed.column.0)] == ColumnSource::Computed);
    Ok(RowExpressions { columns, checks: expressions.checks()? })
}
