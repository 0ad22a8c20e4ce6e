//! ALTER TABLE, CREATE INDEX and DROP INDEX: several changes of one table, all or nothing, and the resulting
//! table.
//!
//! The session computes the result when it plans the statement, so that errors precede any effect. Block main
//! computes it again when the change's turn comes, because the schema may have changed since.

use crate::error::{Error, ErrorCode, Result};
use crate::foreign_key::{
    ForeignKey, check_foreign_key, check_key_name, columns_named, foreign_keys_of_expiring_rows, supporting_index,
};
use crate::id::{ColumnNumber, IndexId};
use crate::limit::INDEXES_MAX;
use crate::schema::{Dictionary, IndexDefinition, IndexKind, IndexState, TableDefinition};
use crate::temporal::ValueRules;
use crate::value::Value;

/// The changes of one table. Drops precede additions, so a dropped name can be reused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alteration {
    /// Names of indexes to drop.
    pub drop_indexes: Vec<Box<str>>,
    /// Indexes to rename: the old and the new name of each.
    pub rename_indexes: Vec<(Box<str>, Box<str>)>,
    /// Indexes whose visibility changes: the name, and whether plans may use it.
    pub show_indexes: Vec<(Box<str>, bool)>,
    /// Indexes to add, without ids and hidden tables.
    pub add_indexes: Vec<IndexDefinition>,
    /// Names of foreign keys to drop.
    pub drop_foreign_keys: Vec<Box<str>>,
    /// Foreign keys to add.
    pub add_foreign_keys: Vec<ForeignKey>,
    /// The new (database, table) name.
    pub rename: Option<(Box<str>, Box<str>)>,
    /// Whether new foreign keys need their parents: the tables, and a row for every child.
    pub needs_parents: bool,
    /// Changes of columns, of the primary key and of options.
    pub redefinition: Option<Box<Redefinition>>,
    /// The table for which the numbers of columns in new indexes and foreign keys were found, if there are
    /// any and no redefinition tells it. The alteration is refused if the table has other columns now.
    pub planned_for: Option<Box<TableDefinition>>,
}

/// Changes of columns, of the primary key and of options, as the complete result.
#[derive(Clone, Debug, PartialEq)]
pub struct Redefinition {
    /// The table before all changes. The alteration is refused if it is no longer like this.
    pub old: TableDefinition,
    /// The table after all changes but that of its name. If the rows are copied, it has the indexes and
    /// foreign keys of the result, and the other fields of the alteration only tell which foreign keys are
    /// new. Otherwise it has the old indexes and foreign keys.
    pub new: TableDefinition,
    /// The rows are copied to a table of the new form. Otherwise the existing rows have the new form. New
    /// columns are then among those that rows need not have, and the alteration adds and drops no indexes.
    pub copy: Option<Vec<ColumnSource>>,
    /// The old and the new name of each renamed column.
    pub renamed_columns: Vec<(Box<str>, Box<str>)>,
    /// The next AUTO_INCREMENT number, if it is given.
    pub auto_increment: Option<u64>,
    /// The session's rules for converted values.
    pub rules: ValueRules,
    /// The time of the statement, in microseconds since 1970 (UTC).
    pub now_us: u64,
    /// Whether a value that does not fit ends the alteration, because the session's `sql_mode` is strict.
    /// Otherwise the nearest value is stored, with a warning.
    pub is_strict: bool,
}

/// The values of a column of the new table.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnSource {
    /// The values of a column of the old table, converted to the new type.
    Column(ColumnNumber),
    /// The same value for each row. It has the type of the column.
    Value(Value),
    /// Ascending numbers from 1.
    Numbers,
    /// An expression over the new row.
    Computed,
}

impl Alteration {
    /// Whether the only changes are added indexes.
    pub fn only_adds_indexes(&self) -> bool {
        let rest = Alteration { add_indexes: Vec::new(), needs_parents: false, planned_for: None, ..self.clone() };
        rest == Alteration::default()
    }

    /// Whether the changes drop or rename something that plans of other statements name: an index, a column
    /// or the table.
    pub fn has_drops_or_renames(&self) -> bool {
        let redefines = self.redefinition.is_some();
        let of_indexes = !self.rename_indexes.is_empty() || !self.show_indexes.is_empty();
        redefines || !self.drop_indexes.is_empty() || of_indexes || self.rename.is_some()
    }

    /// Whether the existing rows must be checked for their parents.
    pub fn validates_rows(&self) -> bool {
        self.needs_parents && !self.add_foreign_keys.is_empty()
    }

    /// Whether the rows are copied to a new table.
    pub fn copies_rows(&self) -> bool {
        self.copy().is_some()
    }

    /// The changes that need a copy of the rows, and the sources of the new columns.
    pub fn copy(&self) -> Option<(&Redefinition, &[ColumnSource])> {
        let redefinition = self.redefinition.as_deref()?;
        Some((redefinition, redefinition.copy.as_deref()?))
    }

    /// Whether the alteration takes several steps: it copies rows, fills new indexes, or checks rows.
    pub fn has_several_steps(&self) -> bool {
        !self.add_indexes.is_empty() || self.validates_rows() || self.copies_rows()
    }
}

/// The table after the changes, without a new version. Indexes of `old` in the state `Building` are the added
/// ones: they keep their ids and come online.
///
/// # Errors
/// 1049, 1050, 1061, 1069, 1075, 1091, 1176, 1235, 1553, those of [`check_foreign_key`], and 1412 if the
/// change was planned for another definition of the table.
pub fn altered(dictionary: &Dictionary, old: &TableDefinition, alteration: &Alteration) -> Result<TableDefinition> {
    if alteration.planned_for.as_ref().is_some_and(|planned| planned.columns != old.columns) {
        return Err(Error::table_definition_changed());
    }
    let mut table = match &alteration.redefinition {
        None => old.clone(),
        Some(redefinition) => redefined(dictionary, old, redefinition)?,
    };
    if let Some((redefinition, _)) = alteration.copy() {
        for key in &alteration.add_foreign_keys {
            let others: Vec<ForeignKey> =
                redefinition.new.foreign_keys.iter().filter(|other| other.name != key.name).cloned().collect();
            check_foreign_key(dictionary, &table, &others, key, alteration.needs_parents)?;
        }
        if let Some(to) = &alteration.rename {
            rename(dictionary, &mut table, to)?;
        }
        return Ok(table);
    }
    // Removed first and added again at the end, in the order of the statement, with the ids that they already
    // have.
    let building: Vec<IndexDefinition> =
        table.indexes.extract_if(.., |index| index.state == IndexState::Building).collect();
    apply_drops(&mut table, alteration)?;
    rename_indexes(&mut table.indexes, &table.name, &alteration.rename_indexes)?;
    show_indexes(&mut table.indexes, &table.name, &alteration.show_indexes)?;
    add_indexes(&mut table, building, &alteration.add_indexes)?;
    check_automatic(old, &table)?;
    check_needed(dictionary, old, &table, alteration)?;
    for key in &alteration.add_foreign_keys {
        check_foreign_key(dictionary, &table, &table.foreign_keys, key, alteration.needs_parents)?;
        if supporting_index(&table, &key.columns).is_none() {
            return Err(Error::table_definition_changed());
        }
        table.foreign_keys.push(key.clone());
    }
    if let Some(to) = &alteration.rename {
        rename(dictionary, &mut table, to)?;
    }
    Ok(table)
}

/// The table with the changes of a redefinition, under its old name.
fn redefined(dictionary: &Dictionary, old: &TableDefinition, redefinition: &Redefinition) -> Result<TableDefinition> {
    let without_building = without_building(old).0;
    let planned = TableDefinition { version: old.version, next_index: old.next_index, ..redefinition.old.clone() };
    if planned != without_building {
        return Err(Error::table_definition_changed());
    }
    check_parent_columns(dictionary, old, redefinition)?;
    Ok(match redefinition.copy {
        Some(_) => redefinition.new.clone(),
        // The numbers of the columns may be others.
        None if redefinition.new.columns.len() != old.columns.len() => {
            if building_indexes(old).next().is_some() {
                return Err(Error::table_definition_changed());
            }
            TableDefinition { version: old.version, next_index: old.next_index, ..redefinition.new.clone() }
        }
        // The indexes in state Building belong to the same alteration.
        None => TableDefinition {
            version: old.version,
            indexes: old.indexes.clone(),
            next_index: old.next_index,
            ..redefinition.new.clone()
        },
    })
}

/// Refuses a result that no longer serves the children of the table: error 1829 for a column that is gone,
/// 1553 for a key that is gone, 1833 for a column with another type.
fn check_parent_columns(dictionary: &Dictionary, old: &TableDefinition, redefinition: &Redefinition) -> Result<()> {
    let Redefinition { new, renamed_columns, .. } = redefinition;
    for (child, key) in dictionary.children_of(old) {
        if child.definition.id == old.id {
            continue;
        }
        let mut columns = Vec::with_capacity(key.parent_columns.len());
        for name in &key.parent_columns {
            let renamed = renamed_columns.iter().find(|(from, _)| from.eq_ignore_ascii_case(name));
            let now = renamed.map_or(name, |(_, to)| to);
            let (Some(before), Some(after)) = (old.column(name), new.column(now)) else {
                let message = format!(
                    "Cannot drop column '{name}': needed in a foreign key constraint '{}' of table '{}'",
                    key.name, child.definition.name
                );
                return Err(Error::new(ErrorCode::ColumnNeededByChild, message));
            };
            let type_of = |table: &TableDefinition, column: ColumnNumber| {
                table.columns[usize::from(column.0)].column_type.clone()
            };
            if type_of(old, before) != type_of(new, after) {
                let message = format!(
                    "Cannot change column '{name}': used in a foreign key constraint '{}' of table '{}'",
                    key.name, child.definition.name
                );
                return Err(Error::new(ErrorCode::ColumnUsedByChild, message));
            }
            columns.push(after);
        }
        let is_whole = |index: &IndexDefinition| index.is_unique() && index.columns == columns;
        if !new.indexes.iter().any(is_whole) && supporting_index(new, &columns).is_none() {
            let message = format!("Cannot drop index '{}': needed in a foreign key constraint", old.primary().name);
            return Err(Error::new(ErrorCode::IndexNeededByForeignKey, message));
        }
    }
    Ok(())
}

/// Applies the drops.
///
/// # Errors
/// 1091, 1235.
pub fn apply_drops(table: &mut TableDefinition, alteration: &Alteration) -> Result<()> {
    for name in &alteration.drop_indexes {
        let position = index_position(table, name).ok_or_else(|| cannot_drop(name))?;
        if position == 0 {
            return Err(Error::not_supported("DROP PRIMARY KEY"));
        }
        table.indexes.remove(position);
    }
    for name in &alteration.drop_foreign_keys {
        let is_match = |key: &ForeignKey| key.name.eq_ignore_ascii_case(name);
        let position = table.foreign_keys.iter().position(is_match).ok_or_else(|| cannot_drop(name))?;
        table.foreign_keys.remove(position);
    }
    Ok(())
}

/// The position of a visible index with this name.
fn index_position(table: &TableDefinition, name: &str) -> Option<usize> {
    let position = table.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name))?;
    let is_hidden = position == 0 && table.columns[usize::from(table.primary().columns[0].0)].is_hidden_key();
    (!is_hidden).then_some(position)
}

/// Renames indexes, all at once, so that two of them may exchange their names. Errors: 1176 for an unknown
/// index and for the primary key, 1061 for a name that is taken.
pub fn rename_indexes(indexes: &mut [IndexDefinition], table: &str, renames: &[(Box<str>, Box<str>)]) -> Result<()> {
    let mut renamed = Vec::with_capacity(renames.len());
    for (from, to) in renames {
        let is_it = |index: &IndexDefinition| {
            index.name.eq_ignore_ascii_case(from) && !matches!(index.kind, IndexKind::Primary { .. })
        };
        let position = indexes.iter().position(is_it).filter(|position| renamed.iter().all(|(it, _)| it != position));
        let Some(position) = position else {
            let message = format!("Key '{from}' doesn't exist in table '{table}'");
            return Err(Error::new(ErrorCode::KeyDoesNotExist, message));
        };
        renamed.push((position, to));
    }
    for (position, to) in &renamed {
        indexes[*position].name = (*to).clone();
        // It is an index of the user's now, and does not give way to another one.
        indexes[*position].attributes.of_foreign_key = false;
    }
    for (position, to) in renamed {
        let is_taken =
            |(other, index): (usize, &IndexDefinition)| other != position && index.name.eq_ignore_ascii_case(to);
        if indexes.iter().enumerate().any(is_taken) {
            return Err(duplicate_key_name(to));
        }
    }
    Ok(())
}

/// Changes whether plans may use indexes. Errors: 1176, and 3522 for the primary key.
pub fn show_indexes(indexes: &mut [IndexDefinition], table: &str, changes: &[(Box<str>, bool)]) -> Result<()> {
    for (name, visible) in changes {
        let Some(index) = indexes.iter_mut().find(|index| index.name.eq_ignore_ascii_case(name)) else {
            let message = format!("Key '{name}' doesn't exist in table '{table}'");
            return Err(Error::new(ErrorCode::KeyDoesNotExist, message));
        };
        if matches!(index.kind, IndexKind::Primary { .. }) && !visible {
            return Err(invisible_primary());
        }
        index.attributes.invisible = !visible;
    }
    Ok(())
}

/// Error 3522.
#[cold]
pub fn invisible_primary() -> Box<Error> {
    Error::new(ErrorCode::InvisiblePrimaryKey, "A primary key index cannot be invisible")
}

fn add_indexes(
    table: &mut TableDefinition,
    building: Vec<IndexDefinition>,
    additions: &[IndexDefinition],
) -> Result<()> {
    if table.indexes.len() + additions.len() > INDEXES_MAX {
        let message = format!("Too many keys specified; max {INDEXES_MAX} keys allowed");
        return Err(Error::new(ErrorCode::TooManyKeys, message));
    }
    // In that case, the indexes under construction belong to another statement.
    if !building.is_empty() && building.len() != additions.len() {
        return Err(Error::table_definition_changed());
    }
    let mut built = building.into_iter();
    for addition in additions {
        if table.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(&addition.name)) {
            return Err(duplicate_key_name(&addition.name));
        }
        let index = built.next().unwrap_or_else(|| {
            let id = table.next_index;
            table.next_index.0 += 1;
            IndexDefinition { id, ..addition.clone() }
        });
        table.indexes.push(IndexDefinition { state: IndexState::Online, ..index });
    }
    Ok(())
}

/// Checks that an AUTO_INCREMENT column still has a key that begins with it.
fn check_automatic(old: &TableDefinition, new: &TableDefinition) -> Result<()> {
    let Some(automatic) = old.auto_increment_column().filter(|column| !old.columns[usize::from(column.0)].hidden)
    else {
        return Ok(());
    };
    if new.indexes.iter().any(|index| index.columns[0] == automatic) {
        return Ok(());
    }
    let message = "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    Err(Error::new(ErrorCode::WrongAutoKey, message))
}

/// Refuses to drop an index that is the only way to find children or parents of a remaining foreign key:
/// error 1553.
fn check_needed(
    dictionary: &Dictionary,
    old: &TableDefinition,
    new: &TableDefinition,
    alteration: &Alteration,
) -> Result<()> {
    let Some(first) = alteration.drop_indexes.first() else { return Ok(()) };
    let serves_parents = |table: &TableDefinition, columns: &[ColumnNumber]| {
        let is_whole = |index: &IndexDefinition| index.is_unique() && index.columns == columns;
        table.indexes.iter().any(is_whole) || supporting_index(table, columns).is_some()
    };
    let lost_by_child = |key: &ForeignKey| {
        (supporting_index(old, &key.columns).is_some() && supporting_index(new, &key.columns).is_none())
            .then(|| key.columns.clone())
    };
    let of_children = new.foreign_keys.iter().find_map(lost_by_child);
    let lost_by_parent = |key: &ForeignKey| {
        let columns = columns_named(old, &key.parent_columns)?;
        (serves_parents(old, &columns) && !serves_parents(new, &columns)).then_some(columns)
    };
    let mut children = dictionary.children_of(old);
    let is_dropped =
        |key: &ForeignKey| alteration.drop_foreign_keys.iter().any(|name| key.name.eq_ignore_ascii_case(name));
    let of_parents = || {
        // A key of the table on itself may be dropped together with the index.
        children.find_map(|(child, key)| {
            let is_dropped_too = child.definition.id == old.id && is_dropped(key);
            if is_dropped_too { None } else { lost_by_parent(key) }
        })
    };
    let Some(columns) = of_children.or_else(of_parents) else { return Ok(()) };
    let mut names = alteration.drop_indexes.iter();
    let serves = |name: &str| old.index_named(name).is_some_and(|index| index.columns.starts_with(&columns));
    let name = names.find(|name| serves(name)).unwrap_or(first);
    let message = format!("Cannot drop index '{name}': needed in a foreign key constraint");
    Err(Error::new(ErrorCode::IndexNeededByForeignKey, message))
}

fn rename(dictionary: &Dictionary, table: &mut TableDefinition, to: &(Box<str>, Box<str>)) -> Result<()> {
    if dictionary.database(&to.0).is_none() {
        return Err(Error::new(ErrorCode::UnknownDatabase, format!("Unknown database '{}'", to.0)));
    }
    let other = match table.sharing.owner() {
        Some(owner) => dictionary.owned_table(owner, &to.0, &to.1),
        None => dictionary.table_named(&to.0, &to.1),
    };
    if other.is_some_and(|other| other.definition.id != table.id) {
        return Err(Error::new(ErrorCode::TableExists, format!("Table '{}' already exists", to.1)));
    }
    let from = (table.database.clone(), table.name.clone());
    for key in table.foreign_keys.iter_mut().filter(|key| key.parent == from) {
        key.parent = to.clone();
    }
    set_table_name(table, to);
    if table.time_to_live().is_some() && dictionary.children_of(table).next().is_some() {
        return Err(foreign_keys_of_expiring_rows());
    }
    let keys = std::mem::take(&mut table.foreign_keys);
    for key in &keys {
        check_key_name(dictionary, table, &[], key)?;
    }
    table.foreign_keys = keys;
    Ok(())
}

/// Renames a table, and its constraints whose names derive from the table's.
pub fn set_table_name(table: &mut TableDefinition, to: &(Box<str>, Box<str>)) {
    let prefix = format!("{}_chk_", table.name);
    for check in &mut table.checks {
        if let Some(number) = check.name.strip_prefix(&prefix) {
            check.name = format!("{}_chk_{number}", to.1).into();
        }
    }
    let prefix = format!("{}_ibfk_", table.name);
    for key in &mut table.foreign_keys {
        if let Some(number) = key.name.strip_prefix(&prefix) {
            key.name = format!("{}_ibfk_{number}", to.1).into();
        }
    }
    (table.database, table.name) = to.clone();
}

/// The indexes that are being built.
pub fn building_indexes(table: &TableDefinition) -> impl Iterator<Item = &IndexDefinition> {
    table.indexes.iter().filter(|index| index.state == IndexState::Building)
}

/// The table without the indexes that are being built, and the ids of those indexes.
pub fn without_building(table: &TableDefinition) -> (TableDefinition, Vec<IndexId>) {
    let mut table = table.clone();
    let removed = table.indexes.extract_if(.., |index| index.state == IndexState::Building);
    let removed = removed.map(|index| index.id).collect();
    (table, removed)
}

#[cold]
fn cannot_drop(name: &str) -> Box<Error> {
    Error::new(ErrorCode::CannotDropKey, format!("Can't DROP '{name}'; check that column/key exists"))
}

#[cold]
fn duplicate_key_name(name: &str) -> Box<Error> {
    Error::new(ErrorCode::DuplicateKeyName, format!("Duplicate key name '{name}'"))
}
