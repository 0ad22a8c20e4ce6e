//! ALTER TABLE of columns, of the primary key, of partitioning and of options: the complete new definition.
//!
//! If the existing rows have the form of the new definition, it takes effect at once, and indexes and foreign
//! keys of the same statement are added to it like those of any other ALTER TABLE. Otherwise the definition
//! contains all changes of the statement, and the rows are copied.

mod copy;
mod dropped;
mod unstored;

use junctor_model::alteration::{Alteration, ColumnSource, Redefinition};
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::limit::{ADDED_COLUMNS_MAX, COLUMNS_MAX};
use junctor_model::row::{AddedColumn, is_valid_addition};
use junctor_model::schema::{
    CheckConstraint, ColumnDefinition, ExpressionKind, IndexDefinition, IndexKind, KeyPrefix, TableDefinition,
};
use junctor_model::table_options::KeptOptions;
use junctor_model::temporal::ValueRules;
use junctor_model::value::Value;

pub(super) use copy::CopiedTable;
pub(super) use unstored::needs_stored;
use unstored::{can_be_unstored, can_leave_unstored};

use super::create_table::{self, Options};
use super::structure::DefinitionContext;
use super::{check, column, default_value, expression, foreign_key, index, key_expression, message, time_to_live};
use crate::mysql_catalog::variable::{Note, collation_of};
use crate::parse::definition as ast;
use crate::parse::definition::{AlterAlgorithm, ColumnPlace, DefaultValue, TableChange};
use crate::parse::expression::Expression;

/// MySQL's number for a warning without a number of its own.
const UNKNOWN_ERROR: u16 = 1105;

/// Whether a change concerns columns, the primary key, CHECK constraints, partitioning or options.
pub(super) fn redefines(change: &TableChange, table: &TableDefinition) -> bool {
    match change {
        TableChange::AddColumn { .. }
        | TableChange::ChangeColumn { .. }
        | TableChange::DropColumn(_)
        | TableChange::RenameColumn(..)
        | TableChange::SetDefault(..)
        | TableChange::SetVisible(..)
        | TableChange::AddCheck(_)
        | TableChange::DropCheck(_)
        | TableChange::AlterCheck { .. }
        | TableChange::Options(_)
        | TableChange::ConvertTo { .. }
        | TableChange::PartitionBy(_)
        | TableChange::RemovePartitioning
        | TableChange::AddPartitions(_)
        | TableChange::CoalescePartitions(_)
        | TableChange::ReorganizePartitions
        | TableChange::OrderBy
        | TableChange::Force => true,
        TableChange::AddIndex(index) => {
            index.kind == ast::IndexKind::Primary || index::has_prefixes(index) || needs_stored(change, table)
        }
        TableChange::AddForeignKey(_) => needs_stored(change, table),
        TableChange::DropIndex(name) => name.eq_ignore_ascii_case(index::PRIMARY) || has_hidden_parts(table, name),
        TableChange::DropConstraint(name) => {
            check::position(&table.checks, name).is_some() || has_hidden_parts(table, name)
        }
        TableChange::Rename(_)
        | TableChange::RenameIndex(..)
        | TableChange::ShowIndex(..)
        | TableChange::DropForeignKey(_)
        | TableChange::SwitchKeys => false,
    }
}

/// A column of the new table.
#[derive(Clone)]
struct NewColumn {
    definition: ColumnDefinition,
    /// The column of the old table whose values it has.
    old: Option<ColumnNumber>,
    /// DEFAULT as written, if the statement defines the column.
    written: Option<WrittenColumn>,
}

#[derive(Clone)]
struct WrittenColumn {
    default: Option<DefaultValue>,
    on_update: Option<Expression>,
    nullable: Option<bool>,
}

/// The table as far as the changes of a statement are processed.
pub(super) struct Draft<'a> {
    old: &'a TableDefinition,
    columns: Vec<NewColumn>,
    collation: CollationId,
    comment: Box<str>,
    options: KeptOptions,
    rules: ValueRules,
    now_us: u64,
    is_strict: bool,
    /// Whether `sql_mode` has no strict mode.
    is_lenient: bool,
    auto_increment: Option<u64>,
    partitioning: Partitioning,
    /// The CHECK constraints: the first `kept_checks` are the old ones.
    checks: Vec<CheckConstraint>,
    kept_checks: usize,
    /// The names of the indexes that the statement drops.
    dropped_indexes: Vec<String>,
    /// Hidden columns with prefixes, each with the column that takes its place in keys.
    whole_parts: Vec<(ColumnNumber, ColumnNumber)>,
    /// Whether the rows must be checked, because the statement enforces a constraint.
    checks_rows: bool,
    /// Whether FORCE or ENGINE asks for a copy of rows that columns were added to or dropped from.
    is_forced: bool,
    /// Keys among the attributes of new columns.
    pub keys: Vec<TableChange>,
}

enum Partitioning {
    Kept,
    Removed,
    Count(u64),
    /// Over all node groups, from this number of them.
    Spread {
        from: u16,
    },
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
        let is_visible = |(_, column): &(usize, &ColumnDefinition)| !column.is_hidden_key() && !column.is_dropped();
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
            options: old.options.clone(),
            rules: context.rules,
            now_us: context.now_us,
            is_strict: !context.environment.modes.is_lenient,
            is_lenient: context.environment.modes.is_lenient,
            auto_increment: None,
            partitioning: Partitioning::Kept,
            checks: old.checks.clone(),
            kept_checks: 0,
            dropped_indexes: Vec::new(),
            whole_parts: Vec::new(),
            checks_rows: false,
            is_forced: changes.contains(&TableChange::Force),
            keys: Vec::new(),
        };
        // A column takes its constraints with it, also those that the statement drops by name.
        let is_column = |change: &&TableChange| matches!(change, TableChange::DropColumn(_));
        for change in changes.iter().filter(|change| !is_column(change)).chain(changes.iter().filter(is_column)) {
            draft.drop(change)?;
        }
        draft.kept_checks = draft.checks.len();
        for change in changes {
            draft.apply(change, context, notes)?;
        }
        draft.update_prefixes(context)?;
        for change in changes {
            if let TableChange::AddIndex(written) = change {
                let columns: Vec<ColumnDefinition> =
                    draft.columns.iter().map(|column| column.definition.clone()).collect();
                let hidden = index::hidden_columns(written, &columns, context)?.into_iter();
                draft.columns.extend(hidden.map(|definition| NewColumn { definition, old: None, written: None }));
            }
        }
        draft.check_columns()?;
        Ok(draft)
    }

    /// Removes the hidden columns of indexes and columns that are dropped, and defines those of changed
    /// columns again. An expression over a dropped column stays, and is refused later.
    fn update_prefixes(&mut self, context: &DefinitionContext<'_>) -> Result<()> {
        let (old, dropped) = (self.old, &self.dropped_indexes);
        let is_kept = |index: &&IndexDefinition| !dropped.iter().any(|name| index.name.eq_ignore_ascii_case(name));
        let used: Vec<ColumnNumber> =
            old.indexes.iter().filter(is_kept).flat_map(|index| index.columns.iter().copied()).collect();
        let columns = std::mem::take(&mut self.columns);
        let now: Vec<(Option<ColumnNumber>, ColumnDefinition)> =
            columns.iter().map(|column| (column.old, column.definition.clone())).collect();
        let visible: Vec<ColumnDefinition> =
            now.iter().filter(|(_, column)| !column.hidden).map(|(_, column)| column.clone()).collect();
        let mut failure = None;
        let whole_parts = &mut self.whole_parts;
        self.columns = columns
            .into_iter()
            .filter_map(|mut column| {
                if column.definition.key_expression().is_some() {
                    column.old.filter(|column| used.contains(column))?;
                    match key_expression::column_of(&column.definition, &visible, context) {
                        Ok(definition) => column.definition = definition,
                        Err(error) if error.code == ErrorCode::UnknownColumn => {}
                        Err(error) => failure = Some(error),
                    }
                    return Some(column);
                }
                let Some(prefix) = column.definition.key_prefix() else { return Some(column) };
                let old_base = old.column(prefix.column)?;
                let (_, base) = now.iter().find(|(old, _)| *old == Some(old_base))?;
                let part = column.old.filter(|column| used.contains(column))?;
                if index::becomes_whole(prefix, base) {
                    whole_parts.push((part, old_base));
                    return None;
                }
                column.definition = index::prefix_column(prefix, base);
                Some(column)
            })
            .collect();
        failure.map_or(Ok(()), Err)
    }

    /// Drops a column or a CHECK constraint; ignores other changes.
    fn drop(&mut self, change: &TableChange) -> Result<()> {
        match change {
            TableChange::DropColumn(name) => {
                let position = self.old_column(name).ok_or_else(|| cannot_drop(name))?;
                self.columns.remove(position);
                // A constraint of this column only goes with it.
                let mut kept = Vec::with_capacity(self.checks.len());
                for check in self.checks.drain(..) {
                    let used = expression::columns_of_text(&check.expression)?;
                    if used.is_empty() || used.iter().any(|used| !used.eq_ignore_ascii_case(name)) {
                        kept.push(check);
                    }
                }
                self.checks = kept;
            }
            TableChange::DropCheck(name) => {
                let position = check::position(&self.checks, name).ok_or_else(|| check::not_found(name))?;
                self.checks.remove(position);
            }
            TableChange::DropConstraint(name) => {
                if let Some(position) = check::position(&self.checks, name) {
                    self.checks.remove(position);
                }
                self.dropped_indexes.push(name.clone());
            }
            TableChange::DropIndex(name) => self.dropped_indexes.push(name.clone()),
            _ => {}
        }
        Ok(())
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
                if is_virtual(&definition) != is_virtual(&self.columns[position].definition) {
                    let text = "'Changing the STORED status' is not supported for generated columns.";
                    return Err(Error::new(ErrorCode::UnsupportedOnGeneratedColumn, text));
                }
                self.columns[position].definition = definition;
                self.columns[position].written = Some(WrittenColumn::of(written));
                if place.is_some() {
                    self.place(position, place.as_ref())?;
                }
            }
            TableChange::RenameColumn(from, to) => {
                super::structure::check_name(to, ErrorCode::WrongColumnName, "column")?;
                let position = self.old_column(from).ok_or_else(|| self.unknown_column(from))?;
                self.columns[position].definition.name = to.as_str().into();
            }
            TableChange::SetDefault(name, default) => {
                let position = self.old_column(name).ok_or_else(|| self.unknown_column(name))?;
                let definition = &mut self.columns[position].definition;
                if definition.is_generated() {
                    let text = "Incorrect usage of DEFAULT and generated column";
                    return Err(Error::new(ErrorCode::WrongUsage, text));
                }
                match default {
                    None => {
                        (definition.default, definition.default_now) = (None, false);
                        definition.expression = None;
                    }
                    Some(written) => default_value::set_default(definition, Some(written), context.rules)?,
                }
            }
            TableChange::SetVisible(name, visible) => {
                let position = self.old_column(name).ok_or_else(|| self.unknown_column(name))?;
                self.columns[position].definition.invisible = !visible;
            }
            TableChange::AddCheck(written) => {
                check::add(written, self.old, &mut self.checks, context)?;
                self.checks_rows |= written.enforced;
            }
            TableChange::AlterCheck { name, enforced, any_constraint } => {
                let Some(position) = check::position(&self.checks, name) else {
                    return Err(self.no_check(name, *any_constraint));
                };
                self.checks_rows |= *enforced && !self.checks[position].enforced;
                self.checks[position].enforced = *enforced;
            }
            TableChange::Options(options) => self.set_options(options, context, notes)?,
            TableChange::ConvertTo { character_set, collation } => {
                let collation = collation_of(character_set.as_deref(), collation.as_deref(), self.collation)?;
                if collation.character_set() == CharacterSet::Binary {
                    return Err(Error::not_supported("CONVERT TO CHARACTER SET binary"));
                }
                self.convert_to(collation);
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
            TableChange::ReorganizePartitions => {
                let groups = self.old.placement.map_or(1, |placement| u16::from(placement.groups));
                // Entries of unique indexes that were placed apart from their table move to it.
                if groups != context.node_groups || self.has_entries_elsewhere(context) {
                    self.partitioning = Partitioning::Spread { from: groups };
                }
            }
            TableChange::OrderBy if self.old.columns.last().is_none_or(|column| !column.is_hidden_key()) => {
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

    /// Gives the table and all its texts another collation.
    fn convert_to(&mut self, collation: CollationId) {
        self.collation = collation;
        for column in &mut self.columns {
            column.definition.column_type = column.definition.column_type.converted_to(collation);
            column.definition.has_collation = false;
        }
    }

    /// Defines a column of the statement, and collects the keys among its attributes.
    fn define(&mut self, written: &ast::ColumnDefinition, notes: &mut Vec<Note>) -> Result<ColumnDefinition> {
        let definition = column::define(written, (self.collation, self.is_lenient), notes)?;
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
        let before = (self.collation, std::mem::take(&mut self.options));
        let read = Options::read((&self.old.name, options), before, context, notes)?;
        self.collation = read.collation;
        self.options = read.kept;
        for option in options {
            match option {
                ast::TableOption::Comment(_) => self.comment = read.comment.clone(),
                ast::TableOption::AutoIncrement(_) => self.auto_increment = Some(read.auto_increment),
                ast::TableOption::Engine(_) => self.is_forced = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the entries of a unique index are in other node groups than the table.
    fn has_entries_elsewhere(&self, context: &DefinitionContext<'_>) -> bool {
        let is_elsewhere = |index: &IndexDefinition| match index.kind {
            IndexKind::Unique { entries, .. } => {
                let entries = context.dictionary.table(entries);
                entries.is_some_and(|entries| entries.definition.placement != self.old.placement)
            }
            IndexKind::Primary { .. } | IndexKind::Ordered => false,
        };
        self.old.indexes.iter().any(is_elsewhere)
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

    /// Error 3821, 3940 or 3941 for a constraint that is no CHECK.
    #[cold]
    fn no_check(&self, name: &str, any_constraint: bool) -> Box<Error> {
        let is_index = self.old.index_named(name).is_some_and(IndexDefinition::is_unique);
        let is_key = self.old.foreign_keys.iter().any(|key| key.name.eq_ignore_ascii_case(name));
        match any_constraint {
            false => check::not_found(name),
            true if is_index || is_key => {
                let text = format!(
                    "Altering constraint enforcement is not supported for the constraint '{name}'. Enforcement state \
                     alter is not supported for the PRIMARY, UNIQUE and FOREIGN KEY type constraints."
                );
                Error::new(ErrorCode::NotAlterableConstraint, text)
            }
            true => Error::new(ErrorCode::NoSuchConstraint, format!("Constraint '{name}' does not exist.")),
        }
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
        let is_gone = |name: &str| {
            let Some(number) = self.old.column(name) else { return false };
            let now = self.columns.iter().find(|column| column.old == Some(number));
            now.is_none_or(|now| !now.definition.name.eq_ignore_ascii_case(name))
        };
        let kept = self.columns.iter().filter(|column| column.written.is_none() && column.old.is_some());
        let kept = kept.map(|column| &column.definition);
        expression::check_dependants(&self.old.name, kept, &self.checks[..self.kept_checks], &is_gone)
    }

    /// Whether the rows of the old table have the form of the new one, if no key of the statement changes the
    /// primary key. Columns that come or go do not change it if the statement `may_change_columns`.
    fn keeps_rows(&self, may_change_columns: bool, context: &DefinitionContext<'_>) -> bool {
        let is_kept = |(number, new): (ColumnNumber, &NewColumn)| {
            let old = &self.old.columns[usize::from(number.0)];
            let new = &new.definition;
            let is_computed = old.is_generated() || new.is_generated();
            old.nullable == new.nullable
                && (!is_computed || old.expression == new.expression || self.has_same_prefixes(old, new))
                && old.auto_increment == new.auto_increment
                && new.column_type.has_values_of(&old.column_type)
        };
        let users = self.old.columns.iter().filter(|column| !column.is_hidden_key() && !column.is_dropped()).count();
        let kept = || self.columns.iter().filter_map(|column| Some((column.old?, column)));
        let has_same_columns = self.columns.len() == users && kept().count() == users;
        matches!(self.partitioning, Partitioning::Kept)
            && !self.checks_rows
            && !(self.is_forced && self.has_old_rows())
            && (has_same_columns || (may_change_columns && self.can_leave_dropped(context.dictionary)))
            && kept().is_sorted_by_key(|(old, _)| old)
            && kept().all(is_kept)
    }

    /// Whether two hidden columns have the same prefixes of the same column, which may have another name now.
    fn has_same_prefixes(&self, old: &ColumnDefinition, new: &ColumnDefinition) -> bool {
        let (Some(before), Some(after)) = (old.key_prefix(), new.key_prefix()) else { return false };
        let base = self.columns.iter().find(|column| *column.definition.name == *after.column);
        KeyPrefix { column: before.column, ..after } == before
            && base.is_some_and(|base| base.old.is_some() && base.old == self.old.column(before.column))
    }

    /// Gives each new column the value of rows that do not have one. Returns false if the rows must be
    /// copied.
    ///
    /// # Errors
    /// 4092 for INSTANT if the table has too many added or dropped columns.
    fn add_columns(&mut self, algorithm: AlterAlgorithm, context: &DefinitionContext<'_>) -> Result<bool> {
        for column in &mut self.columns {
            let old = column.old.map(|old| &self.old.columns[usize::from(old.0)]);
            column.definition.added = old.and_then(|old| old.added.clone());
        }
        let added = self.old.columns.iter().filter_map(|column| column.added.as_ref());
        let (count, orders) =
            (added.clone().count(), added.map(|added| added.order.saturating_add(1)).max().unwrap_or(0)..);
        let has_room_for_dropped = self.has_room_for_dropped();
        let new = self.columns.iter_mut().filter(|column| column.old.is_none());
        let mut has_room = has_room_for_dropped;
        for (order, (column, position)) in orders.zip(new.zip(count..)) {
            let value = match column.source(context)? {
                ColumnSource::Value(value) => value,
                // Reads compute its values.
                ColumnSource::Computed if can_be_unstored(&column.definition) => Value::Null,
                _ => return Ok(false),
            };
            let has_value = column.definition.nullable || column.definition.default.is_some();
            let is_known = has_value || column.definition.default_now || column.allows(&value, context);
            if !is_known || !is_valid_addition(&column.definition, &value) {
                return Ok(false);
            }
            has_room &= position < ADDED_COLUMNS_MAX;
            column.definition.added = Some(Box::new(AddedColumn { order, value }));
        }
        match has_room || algorithm != AlterAlgorithm::Instant {
            true => Ok(has_room),
            false => Err(message::too_many_row_forms(&self.old.database, &self.old.name)),
        }
    }

    /// The column of the new table that has the values of a column of the old one.
    fn new_number(&self, old: ColumnNumber) -> Option<ColumnNumber> {
        if self.old.columns[usize::from(old.0)].is_hidden_key() {
            return Some(ColumnNumber(self.columns.len() as u16));
        }
        let whole = self.whole_parts.iter().find(|(part, _)| *part == old);
        let old = whole.map_or(old, |(_, base)| *base);
        let position = self.columns.iter().position(|column| column.old == Some(old))?;
        Some(ColumnNumber(position as u16))
    }

    /// The definition, if the rows keep their form. Indexes and foreign keys are the old ones. If the
    /// statement `may_change_columns`, new columns need no values in the rows, and dropped ones keep theirs.
    pub fn in_place(
        &mut self,
        (may_change_columns, algorithm): (bool, AlterAlgorithm),
        context: &DefinitionContext<'_>,
    ) -> Result<Option<Redefinition>> {
        for column in &mut self.columns {
            // The columns of the primary key are NOT NULL, whatever the statement says.
            let is_part = |old: ColumnNumber, part: &ColumnNumber| {
                old == *part || index::base_of(&self.old.columns, *part) == usize::from(old.0)
            };
            let is_primary =
                column.old.is_some_and(|old| self.old.primary().columns.iter().any(|part| is_part(old, part)));
            if column.written.as_ref().is_some_and(|written| is_primary && written.nullable == Some(true)) {
                return Err(message::primary_null());
            }
            column.definition.nullable &= !is_primary;
        }
        if !self.keeps_rows(may_change_columns, context) {
            return Ok(None);
        }
        self.set_defaults()?;
        if !self.add_columns(algorithm, context)? {
            return Ok(None);
        }
        let columns_of_copy = self.columns.clone();
        self.leave_dropped();
        let hidden = self.old.columns.iter().filter(|column| column.is_hidden_key()).cloned();
        let columns: Vec<ColumnDefinition> =
            self.columns.iter().map(|column| column.definition.clone()).chain(hidden).collect();
        let renumbered = |columns: &[ColumnNumber]| -> Vec<ColumnNumber> {
            columns.iter().filter_map(|column| self.new_number(*column)).collect()
        };
        let mut indexes = self.old.indexes.clone();
        for index in &mut indexes {
            index.columns = renumbered(&index.columns);
            index.attributes.descending = renumbered(&index.attributes.descending);
        }
        let mut foreign_keys = self.old.foreign_keys.clone();
        for key in &mut foreign_keys {
            key.columns = renumbered(&key.columns);
        }
        create_table::check_visible(&columns)?;
        check_rows_and_keys(&columns, &indexes)?;
        let mut new = TableDefinition {
            columns,
            indexes,
            partition_columns: renumbered(&self.old.partition_columns),
            foreign_keys,
            collation: self.collation,
            comment: self.comment.clone(),
            options: self.options.clone(),
            checks: self.checks.clone(),
            ..self.old.clone()
        };
        let renamed_columns = self.renamed_columns();
        rename_own_parents(&mut new, &renamed_columns);
        expression::check_table(&new, context)?;
        time_to_live::check(&new, context)?;
        if !can_leave_unstored(&new, context)? {
            self.columns = columns_of_copy;
            return Ok(None);
        }
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
            now_us: self.now_us,
            is_strict: self.is_strict,
        }
    }

    fn renamed_columns(&self) -> Vec<(Box<str>, Box<str>)> {
        let renamed = self.columns.iter().filter_map(|column| {
            let old = &self.old.columns[usize::from(column.old?.0)];
            let is_renamed = old.name != column.definition.name && !column.definition.hidden;
            is_renamed.then(|| (old.name.clone(), column.definition.name.clone()))
        });
        renamed.collect()
    }

    fn set_defaults(&mut self) -> Result<()> {
        for column in &mut self.columns {
            if let Some(written) = &column.written {
                default_value::set_default(&mut column.definition, written.default.as_ref(), self.rules)?;
                column.definition.on_update_now =
                    default_value::is_updated_by_clock(&column.definition, written.on_update.as_ref())?;
            }
        }
        Ok(())
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

/// Errors 1118, 1170 and 1071 for rows and keys that are too long.
fn check_rows_and_keys(columns: &[ColumnDefinition], indexes: &[IndexDefinition]) -> Result<()> {
    create_table::check_row_bytes(columns)?;
    for index in indexes {
        index::check_key_bytes(index.columns.iter().map(|part| &columns[usize::from(part.0)]))?;
    }
    Ok(())
}

/// Whether an index has a part that is no column of users.
fn has_hidden_parts(table: &TableDefinition, name: &str) -> bool {
    let is_hidden = |part: &ColumnNumber| table.columns[usize::from(part.0)].hidden;
    table.index_named(name).is_some_and(|index| index.columns.iter().any(is_hidden))
}

fn is_virtual(column: &ColumnDefinition) -> bool {
    column.expression.as_ref().is_some_and(|expression| expression.kind == ExpressionKind::Virtual)
}

#[cold]
fn cannot_drop(name: &str) -> Box<Error> {
    Error::new(ErrorCode::CannotDropKey, format!("Can't DROP '{name}'; check that column/key exists"))
}
