//! ALTER TABLE of columns, of the primary key, of partitioning and of options: the complete new definition.
//!
//! If the existing rows have the form of the new definition, it takes effect at once, and indexes and foreign
//! keys of the same statement are added to it like those of any other ALTER TABLE. Otherwise the definition
//! contains all changes of the statement, and the rows are copied.

use junctor_model::alteration::{Alteration, ColumnSource, Redefinition};
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::{ForeignKey, check_parent, check_set_null, supporting_index};
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::limit::{COLUMNS_MAX, INDEXES_MAX, PARTITIONS_PER_TABLE_MAX};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, IndexState, TableDefinition};
use junctor_model::scratch::Scratch;
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::temporal::ValueRules;
use junctor_model::value::Value;

use super::create_table::{self, Options};
use super::structure::DefinitionContext;
use super::{column, default_value, foreign_key, index, message};
use crate::mysql_catalog::variable::{Note, collation_of};
use crate::parse::definition as ast;
use crate::parse::definition::{ColumnPlace, TableChange};
use crate::parse::expression::Expression;

/// MySQL's number for a warning without a number of its own.
const UNKNOWN_ERROR: u16 = 1105;

/// Whether a change concerns columns, the primary key, partitioning or options.
pub(super) fn redefines(change: &TableChange) -> bool {
    match change {
        TableChange::AddColumn { .. }
        | TableChange::ChangeColumn { .. }
        | TableChange::DropColumn(_)
        | TableChange::RenameColumn(..)
        | TableChange::SetDefault(..)
        | TableChange::Options(_)
        | TableChange::ConvertTo { .. }
        | TableChange::PartitionBy(_)
        | TableChange::RemovePartitioning
        | TableChange::AddPartitions(_)
        | TableChange::CoalescePartitions(_)
        | TableChange::OrderBy
        | TableChange::Force => true,
        TableChange::AddIndex(index) => index.kind == ast::IndexKind::Primary,
        TableChange::DropIndex(name) => name.eq_ignore_ascii_case(index::PRIMARY),
        TableChange::Rename(_)
        | TableChange::AddForeignKey(_)
        | TableChange::RenameIndex(..)
        | TableChange::DropForeignKey(_)
        | TableChange::DropConstraint(_)
        | TableChange::SwitchKeys => false,
    }
}

/// A column of the new table.
struct NewColumn {
    definition: ColumnDefinition,
    /// The column of the old table whose values it has.
    old: Option<ColumnNumber>,
    /// DEFAULT as written, if the statement defines the column.
    written: Option<WrittenColumn>,
}

struct WrittenColumn {
    default: Option<Expression>,
    on_update: Option<Expression>,
    nullable: Option<bool>,
}

/// The table as far as the changes of a statement are processed.
pub(super) struct Draft<'a> {
    old: &'a TableDefinition,
    columns: Vec<NewColumn>,
    collation: CollationId,
    comment: Box<str>,
    rules: ValueRules,
    auto_increment: Option<u64>,
    partitioning: Partitioning,
    /// Keys among the attributes of new columns.
    pub keys: Vec<TableChange>,
}

enum Partitioning {
    Kept,
    Removed,
    Count(u64),
    By(ast::PartitionByKey),
}

/// The changes of indexes and foreign keys, collected by name.
pub(super) struct KeyChanges<'a> {
    /// The drops and renames of the statement.
    pub alteration: &'a Alteration,
    /// Its added indexes, in order.
    pub indexes: Vec<&'a ast::IndexDefinition>,
    /// Its added foreign keys, in order.
    pub foreign_keys: Vec<&'a ast::ForeignKey>,
}

impl<'a> Draft<'a> {
    /// Processes the changes of columns, options and partitioning.
    ///
    /// # Errors
    /// 1054 for an unknown column, 1060 for a duplicate one, 1091 for an unknown one that is dropped, 1090 if
    /// none is left, and the errors of columns and options of CREATE TABLE.
    pub fn new(
        changes: &[TableChange],
        old: &'a TableDefinition,
        context: &DefinitionContext<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<Draft<'a>> {
        let is_visible = |(_, column): &(usize, &ColumnDefinition)| !column.hidden;
        let columns = old.columns.iter().enumerate().filter(is_visible).map(|(position, column)| NewColumn {
            definition: column.clone(),
            old: Some(ColumnNumber(position as u16)),
            written: None,
        });
        let mut draft = Draft {
            old,
            columns: columns.collect(),
            collation: old.collation,
            comment: old.comment.clone(),
            rules: context.rules,
            auto_increment: None,
            partitioning: Partitioning::Kept,
            keys: Vec::new(),
        };
        for change in changes {
            if let TableChange::DropColumn(name) = change {
                let position = draft.old_column(name).ok_or_else(|| cannot_drop(name))?;
                draft.columns.remove(position);
            }
        }
        for change in changes {
            draft.apply(change, context, notes)?;
        }
        draft.check_columns()?;
        Ok(draft)
    }

    fn apply(&mut self, change: &TableChange, context: &DefinitionContext<'_>, notes: &mut Vec<Note>) -> Result<()> {
        match change {
            TableChange::AddColumn { column: written, place } => {
                let definition = self.define(written, notes)?;
                let added = NewColumn { definition, old: None, written: Some(WrittenColumn::of(written)) };
                self.columns.push(added);
                self.place(self.columns.len() - 1, place.as_ref())?;
            }
            TableChange::ChangeColumn { from, column: written, place } => {
                let position = self.old_column(from).ok_or_else(|| self.unknown_column(from))?;
                let definition = self.define(written, notes)?;
                self.columns[position].definition = definition;
                self.columns[position].written = Some(WrittenColumn::of(written));
                if place.is_some() {
                    self.place(position, place.as_ref())?;
                }
            }
            TableChange::RenameColumn(from, to) => {
                super::structure::check_name(to, ErrorCode::WrongFieldSpecification, "column")?;
                let position = self.old_column(from).ok_or_else(|| self.unknown_column(from))?;
                self.columns[position].definition.name = to.as_str().into();
            }
            TableChange::SetDefault(name, default) => {
                let position = self.old_column(name).ok_or_else(|| self.unknown_column(name))?;
                let definition = &mut self.columns[position].definition;
                match default {
                    None => (definition.default, definition.default_now) = (None, false),
                    Some(written) => default_value::set_default(definition, Some(written), context.rules)?,
                }
            }
            TableChange::Options(options) => self.set_options(options, context, notes)?,
            TableChange::ConvertTo { character_set, collation } => {
                let collation = collation_of(character_set.as_deref(), collation.as_deref(), self.collation)?;
                if collation.character_set() != CharacterSet::Utf8mb4 {
                    return Err(Error::not_supported("CONVERT TO CHARACTER SET of this character set"));
                }
                self.collation = collation;
                for column in &mut self.columns {
                    column.definition.column_type = column.definition.column_type.converted_to(collation);
                }
            }
            TableChange::PartitionBy(written) => self.partitioning = Partitioning::By(written.clone()),
            TableChange::RemovePartitioning => self.partitioning = Partitioning::Removed,
            TableChange::AddPartitions(0) => {
                let text = "At least one partition must be added";
                return Err(Error::new(ErrorCode::NoPartitionAdded, text));
            }
            TableChange::AddPartitions(count) => {
                let count = u64::from(self.partitioned_count()?).saturating_add(*count);
                self.partitioning = Partitioning::Count(count);
            }
            TableChange::CoalescePartitions(count) => {
                let before = u64::from(self.partitioned_count()?);
                if *count == 0 || *count >= before {
                    let text = "Cannot remove all partitions, use DROP TABLE instead";
                    return Err(Error::new(ErrorCode::DropLastPartition, text));
                }
                self.partitioning = Partitioning::Count(before - count);
            }
            TableChange::OrderBy => {
                let text = format!(
                    "ORDER BY ignored as there is a user-defined clustered index in the table '{}'",
                    self.old.name
                );
                notes.push((UNKNOWN_ERROR, text.into()));
            }
            _ => {}
        }
        Ok(())
    }

    /// Defines a column of the statement, and collects the keys among its attributes.
    fn define(&mut self, written: &ast::ColumnDefinition, notes: &mut Vec<Note>) -> Result<ColumnDefinition> {
        let definition = column::define(written, self.collation, notes)?;
        let keys = create_table::keys_of_column(written).into_iter().map(TableChange::AddIndex);
        self.keys.extend(keys);
        self.keys.extend(foreign_key::of_column(written).map(TableChange::AddForeignKey));
        Ok(definition)
    }

    fn set_options(
        &mut self,
        options: &[ast::TableOption],
        context: &DefinitionContext<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<()> {
        let read = Options::read((&self.old.name, options), self.collation, context, notes)?;
        self.collation = read.collation;
        for option in options {
            match option {
                ast::TableOption::Comment(_) => self.comment = read.comment.clone(),
                ast::TableOption::AutoIncrement(_) => self.auto_increment = Some(read.auto_increment),
                _ => {}
            }
        }
        Ok(())
    }

    /// Error 1505 for a table without a PARTITION BY clause.
    fn partitioned_count(&self) -> Result<u16> {
        if self.old.has_partition_clause {
            return Ok(self.old.partition_count);
        }
        let text = "Partition management on a not partitioned table is not possible";
        Err(Error::new(ErrorCode::NotPartitioned, text))
    }

    /// The position of a column that the old table has under this name, and that is not dropped.
    fn old_column(&self, name: &str) -> Option<usize> {
        let number = self.old.column(name)?;
        self.columns.iter().position(|column| column.old == Some(number))
    }

    #[cold]
    fn unknown_column(&self, name: &str) -> Box<Error> {
        Error::new(ErrorCode::UnknownColumn, format!("Unknown column '{name}' in '{}'", self.old.name))
    }

    fn place(&mut self, position: usize, place: Option<&ColumnPlace>) -> Result<()> {
        let column = self.columns.remove(position);
        let to = match place {
            None => position,
            Some(ColumnPlace::First) => 0,
            Some(ColumnPlace::After(name)) => {
                let is_it = |other: &NewColumn| other.definition.name.eq_ignore_ascii_case(name);
                let found = self.columns.iter().position(is_it).or_else(|| self.old_column(name));
                found.ok_or_else(|| self.unknown_column(name))? + 1
            }
        };
        self.columns.insert(to, column);
        Ok(())
    }

    fn check_columns(&self) -> Result<()> {
        if self.columns.is_empty() {
            let text = "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
            return Err(Error::new(ErrorCode::CannotDropAllColumns, text));
        }
        if self.columns.len() > COLUMNS_MAX {
            return Err(Error::new(ErrorCode::TooManyColumns, "Too many columns"));
        }
        let mut names = std::collections::BTreeSet::new();
        for column in &self.columns {
            if !names.insert(column.definition.name.to_ascii_lowercase()) {
                return Err(message::duplicate_column(&column.definition.name));
            }
        }
        Ok(())
    }

    /// Whether the rows of the old table have the form of the new one, if no key of the statement changes the
    /// primary key.
    fn keeps_rows(&self) -> bool {
        let visible = self.old.columns.iter().filter(|column| !column.hidden).count();
        let is_kept = |(position, new): (usize, &NewColumn)| {
            let Some(old) = new.old.filter(|old| usize::from(old.0) == position) else { return false };
            let old = &self.old.columns[usize::from(old.0)];
            let new = &new.definition;
            old.nullable == new.nullable
                && old.auto_increment == new.auto_increment
                && new.column_type.has_values_of(&old.column_type)
        };
        matches!(self.partitioning, Partitioning::Kept)
            && self.columns.len() == visible
            && self.columns.iter().enumerate().all(is_kept)
    }

    /// The column of the new table that has the values of a column of the old one.
    fn new_number(&self, old: ColumnNumber) -> Option<ColumnNumber> {
        if self.old.columns[usize::from(old.0)].hidden {
            return Some(ColumnNumber(self.columns.len() as u16));
        }
        let position = self.columns.iter().position(|column| column.old == Some(old))?;
        Some(ColumnNumber(position as u16))
    }

    /// The definition, if the rows keep their form. Indexes and foreign keys are the old ones.
    pub fn in_place(&mut self, changes_primary: bool) -> Result<Option<Redefinition>> {
        if changes_primary {
            return Ok(None);
        }
        for column in &mut self.columns {
            // The columns of the primary key are NOT NULL, whatever the statement says.
            let is_primary = column.old.is_some_and(|old| self.old.primary().columns.contains(&old));
            if column.written.as_ref().is_some_and(|written| is_primary && written.nullable == Some(true)) {
                return Err(message::primary_null());
            }
            column.definition.nullable &= !is_primary;
        }
        if !self.keeps_rows() {
            return Ok(None);
        }
        self.set_defaults()?;
        let hidden = self.old.columns.iter().filter(|column| column.hidden).cloned();
        let columns: Vec<ColumnDefinition> =
            self.columns.iter().map(|column| column.definition.clone()).chain(hidden).collect();
        check_rows_and_keys(&columns, &self.old.indexes)?;
        let mut new =
            TableDefinition { columns, collation: self.collation, comment: self.comment.clone(), ..self.old.clone() };
        let renamed_columns = self.renamed_columns();
        rename_own_parents(&mut new, &renamed_columns);
        Ok(Some(self.redefinition(new, None, renamed_columns)))
    }

    fn redefinition(
        &self,
        new: TableDefinition,
        copy: Option<Vec<ColumnSource>>,
        renamed_columns: Vec<(Box<str>, Box<str>)>,
    ) -> Redefinition {
        Redefinition {
            old: self.old.clone(),
            new,
            copy,
            renamed_columns,
            auto_increment: self.auto_increment,
            rules: self.rules,
        }
    }

    fn renamed_columns(&self) -> Vec<(Box<str>, Box<str>)> {
        let renamed = self.columns.iter().filter_map(|column| {
            let old = &self.old.columns[usize::from(column.old?.0)];
            (old.name != column.definition.name).then(|| (old.name.clone(), column.definition.name.clone()))
        });
        renamed.collect()
    }

    fn set_defaults(&mut self) -> Result<()> {
        for column in &mut self.columns {
            if let Some(written) = &column.written {
                default_value::set_default(&mut column.definition, written.default.as_ref(), self.rules)?;
                column.definition.on_update_now =
                    default_value::is_clock_of(&column.definition, written.on_update.as_ref())?;
            }
        }
        Ok(())
    }

    /// The definition with all changes of the statement, for rows that are copied.
    ///
    /// # Errors
    /// The errors of CREATE TABLE, and 1091, 1176, 1553, 1828 and 1832 for keys and their columns.
    pub fn with_copy(
        mut self,
        keys: &KeyChanges<'_>,
        context: &DefinitionContext<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<(Redefinition, Vec<ForeignKey>)> {
        let mut columns: Vec<ColumnDefinition> = self.columns.iter().map(|column| column.definition.clone()).collect();
        let mut indexes = self.kept_indexes(keys.alteration)?;
        let has_hidden_key = self.define_primary(&mut columns, &mut indexes, keys, notes)?;
        for written in keys.indexes.iter().filter(|written| written.kind != ast::IndexKind::Primary) {
            indexes.push(index::define(written, &columns, &indexes, notes)?);
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
            definition.on_update_now = column.definition.on_update_now;
        }
        create_table::check_auto_increment(&columns, &indexes)?;
        let (clause, partition_columns) = self.partition_clause(&columns, &indexes[0], has_hidden_key)?;
        let partition_count = match &self.partitioning {
            Partitioning::Kept => self.old.partition_count,
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
        Ok((self.redefinition(new, Some(sources), renamed_columns), added))
    }

    /// The indexes that the statement does not drop, over the new columns. An index loses the columns that
    /// are dropped, and disappears with its last one. Hidden keys are not among them.
    fn kept_indexes(&self, alteration: &Alteration) -> Result<Vec<IndexDefinition>> {
        let has_hidden_key = self.old.columns.last().is_some_and(|column| column.hidden);
        let mut indexes: Vec<IndexDefinition> = self.old.indexes[usize::from(has_hidden_key)..].to_vec();
        for name in &alteration.drop_indexes {
            let found = indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name));
            indexes.remove(found.ok_or_else(|| cannot_drop(name))?);
        }
        for (from, to) in &alteration.rename_indexes {
            let is_it = |index: &&mut IndexDefinition| index.name.eq_ignore_ascii_case(from);
            let Some(renamed) = indexes.iter_mut().find(is_it).filter(|index| !is_primary(index)) else {
                let text = format!("Key '{from}' doesn't exist in table '{}'", self.old.name);
                return Err(Error::new(ErrorCode::KeyDoesNotExist, text));
            };
            renamed.name = to.clone();
        }
        for index in &mut indexes {
            index.columns = index.columns.iter().filter_map(|column| self.new_number(*column)).collect();
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
            let position = usize::from(part.0);
            let written = self.columns[position].written.as_ref();
            if written.is_some_and(|written| written.nullable == Some(true)) {
                return Err(message::primary_null());
            }
            columns[position].nullable = false;
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
        let is_kept = matches!(self.partitioning, Partitioning::Kept | Partitioning::Count(_));
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
            let old = self.old.columns.iter().position(|column| column.hidden);
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

impl WrittenColumn {
    fn of(written: &ast::ColumnDefinition) -> WrittenColumn {
        WrittenColumn {
            default: written.default.clone(),
            on_update: written.on_update.clone(),
            nullable: written.nullable,
        }
    }
}

impl NewColumn {
    fn source(&self, context: &DefinitionContext<'_>) -> Result<ColumnSource> {
        let definition = &self.definition;
        Ok(match (self.old, &definition.default) {
            (Some(old), _) => ColumnSource::Column(old),
            (None, _) if definition.auto_increment => ColumnSource::Numbers,
            (None, Some(default)) => ColumnSource::Value(default.clone()),
            (None, None) if definition.default_now => {
                let scratch = Scratch::new();
                scratch.set_value_rules(context.rules);
                scratch.set_now(context.now_us);
                let target = StoreTarget { column: definition, row_number: 1, mode: StoreMode::Strict };
                let now = target.convert(scratch.now(definition.column_type.scale()), &scratch)?;
                ColumnSource::Value(now.to_value())
            }
            (None, None) if definition.nullable => ColumnSource::Value(Value::Null),
            (None, None) => ColumnSource::Value(definition.column_type.implicit_default()),
        })
    }
}

fn is_primary(index: &IndexDefinition) -> bool {
    matches!(index.kind, IndexKind::Primary { .. })
}

/// Renames columns in the foreign keys with which a table references itself.
fn rename_own_parents(table: &mut TableDefinition, renamed: &[(Box<str>, Box<str>)]) {
    let own = (table.database.clone(), table.name.clone());
    let keys = table.foreign_keys.iter_mut().filter(|key| key.parent == own);
    for name in keys.flat_map(|key| &mut key.parent_columns) {
        if let Some((_, to)) = renamed.iter().find(|(from, _)| from.eq_ignore_ascii_case(name)) {
            *name = to.clone();
        }
    }
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

/// Errors 1118, 1170 and 1071 for rows and keys that are too long.
fn check_rows_and_keys(columns: &[ColumnDefinition], indexes: &[IndexDefinition]) -> Result<()> {
    create_table::check_row_bytes(columns)?;
    for index in indexes {
        let parts = index.columns.iter().map(|part| &columns[usize::from(part.0)]);
        index::check_key_bytes(parts.map(|part| (&*part.name, &part.column_type)))?;
    }
    Ok(())
}

#[cold]
fn cannot_drop(name: &str) -> Box<Error> {
    Error::new(ErrorCode::CannotDropKey, format!("Can't DROP '{name}'; check that column/key exists"))
}
