//! The handling of rows that INSERT and REPLACE cannot insert because one of their unique keys exists.

use std::ops::Range;
use std::sync::Arc;

use junctor_expression::{Expression, Node, ResultType};
use junctor_model::error::Result;
use junctor_model::foreign_key::{ForeignKeyWork, RowWrite};
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::key_list::list_among;
use junctor_model::schema::{Dictionary, IndexDefinition, IndexKind, TableDefinition, TableLayout};
use junctor_signals::program::{
    Access, Assignment, LockMode, Output, Projection, Returning, WhenLocked, WriteAction, WriteProgram,
};

use super::change::{bind_assignments, changed_columns, foreign_keys, unique_entries};
use crate::bind::{Binder, Environment, InsertedRow, ParameterKind, Scope, SelectedRow, UnstoredColumns, message};
use crate::parse::statement::Insert;

/// The action for a row with a unique key that exists already.
#[derive(Debug)]
pub enum Conflict {
    /// Plain INSERT: the statement fails with 1062.
    Fail,
    /// INSERT IGNORE: the row is skipped with a warning.
    Skip,
    /// REPLACE: all existing rows that have a key of the new row are deleted first.
    Replace {
        /// The delete by primary key.
        delete: Arc<WriteProgram>,
        /// The locking read of a row by primary key. REPLACE leaves an existing row unchanged if the row
        /// equals the new one and the last key is the only key that was found. If that key is not the
        /// primary key, this read fetches the row for the comparison. `None` if the delete involves foreign
        /// keys.
        row_lock: Option<Arc<WriteProgram>>,
        /// The keys, in the order in which they are checked.
        keys: Vec<KeyLock>,
    },
    /// ON DUPLICATE KEY UPDATE: the keys of the new row are checked in order. The first existing row that has
    /// one of them is updated.
    Update {
        /// The update by primary key. Its parameters include the columns of the new row.
        update: Arc<WriteProgram>,
        /// Parameter number of the first column of the new row.
        first_parameter: u16,
        /// INSERT ... SELECT: the columns of the query that the assignments read, as a range of the query's
        /// result columns. They follow the columns of the new row as parameters.
        selected: Range<u16>,
        /// Whether the update reads parameters of the statement.
        reads_parameters: bool,
        /// IGNORE: a row whose update would violate a key stays as it is, with a warning.
        ignore: bool,
        /// The keys, in the order in which they are checked.
        keys: Vec<KeyLock>,
    },
}

/// How the row with a certain key is found and locked.
#[derive(Debug)]
pub struct KeyLock {
    /// The unique index; `None` for the primary key.
    pub index: Option<IndexId>,
    /// The columns of the key, in key order.
    pub columns: Vec<ColumnNumber>,
    /// The locking read, which returns images: of the row by primary key, or of the index entry by unique
    /// key.
    pub lock: Arc<WriteProgram>,
}

impl KeyLock {
    /// Whether a row can have several entries of the key.
    pub fn has_list(&self, table: &TableDefinition) -> bool {
        list_among(&table.columns, &self.columns).is_some()
    }
}

impl Conflict {
    /// The keys to check before a row is written; empty if the write itself detects a duplicate.
    pub fn keys(&self) -> &[KeyLock] {
        match self {
            Conflict::Fail | Conflict::Skip => &[],
            Conflict::Replace { keys, .. } | Conflict::Update { keys, .. } => keys,
        }
    }

    /// Whether the action reads parameters of the statement.
    pub(super) fn reads_parameters(&self) -> bool {
        matches!(self, Conflict::Update { reads_parameters: true, .. })
    }

    /// Whether the action reads columns of the query in addition to the inserted ones.
    pub fn reads_selected(&self) -> bool {
        matches!(self, Conflict::Update { selected, .. } if !selected.is_empty())
    }

    /// Checks and actions of foreign keys for the existing rows.
    pub(super) fn foreign_keys(&self) -> Option<&Arc<ForeignKeyWork>> {
        match self {
            Conflict::Fail | Conflict::Skip => None,
            Conflict::Replace { delete, .. } => delete.foreign_keys.as_ref(),
            Conflict::Update { update, .. } => update.foreign_keys.as_ref(),
        }
    }

    /// The write action for the new rows.
    pub(super) fn action(&self) -> WriteAction {
        match self {
            Conflict::Fail | Conflict::Skip => WriteAction::Insert,
            Conflict::Replace { .. } | Conflict::Update { .. } => WriteAction::InsertOrClaim,
        }
    }
}

/// The planned conflict handling, with its effects on the rest of the plan.
pub(super) struct PlannedConflict {
    pub conflict: Conflict,
    /// Whether the plan is valid for one execution only.
    pub is_volatile: bool,
    /// The columns that the query must return after the inserted ones.
    pub selected_columns: Vec<ColumnNumber>,
}

impl From<Conflict> for PlannedConflict {
    fn from(conflict: Conflict) -> PlannedConflict {
        PlannedConflict { conflict, is_volatile: false, selected_columns: Vec::new() }
    }
}

/// The table of an INSERT and the columns that get values.
#[derive(Clone, Copy)]
pub(super) struct InsertTarget<'a> {
    pub layout: &'a Arc<TableLayout>,
    pub columns: &'a [ColumnNumber],
    /// Number of columns of the query before those for the assignments.
    pub given: usize,
    /// The types of the subqueries in the assignments. They are parameters after the columns of the new row,
    /// and columns of the query after the given ones.
    pub subqueries: &'a [ResultType],
}

/// Plans the handling of rows with existing keys. `source` is the table of the INSERT's query, whose columns
/// the assignments may name. `returned` is the RETURNING list.
///
/// # Errors
/// Errors of binding the assignments; a wrong number of columns in the alias of the row.
pub(super) fn plan_conflict(
    environment: &Environment<'_>,
    insert: &Insert,
    InsertTarget { layout, columns: targets, given, subqueries }: InsertTarget<'_>,
    source: Option<Scope<'_>>,
    returned: Option<&Projection>,
) -> Result<PlannedConflict> {
    let definition = &layout.definition;
    if insert.replace {
        let delete = WriteProgram {
            unique_entries: unique_entries(environment.dictionary, definition, None)?,
            foreign_keys: foreign_keys(environment, definition, RowWrite::Delete),
            ..WriteProgram::new(layout, WriteAction::Delete { ignore: false }, Access::PrimaryKeys)
        };
        let keys = key_locks(environment.dictionary, layout)?;
        let row_lock = delete.foreign_keys.is_none().then(|| lock_program(layout));
        return Ok(Conflict::Replace { delete: Arc::new(delete), row_lock, keys }.into());
    }
    if insert.on_duplicate.is_empty() {
        return Ok(if insert.ignore { Conflict::Skip } else { Conflict::Fail }.into());
    }
    let first_parameter = environment.parameters.len() as u16;
    let kinds: Vec<ParameterKind>;
    let mut assigning = Environment { ..*environment };
    if !subqueries.is_empty() {
        let of_row = definition.columns.iter().map(ResultType::of_column);
        let more = of_row.chain(subqueries.iter().copied()).map(ParameterKind::exactly);
        kinds = environment.parameters.iter().copied().chain(more).collect();
        assigning.parameters = &kinds;
    }
    let mut binder = Binder::new(&assigning, Scope::of_table(layout, None));
    binder.inserted = Some(InsertedRow { first_parameter, alias: insert.row_alias.as_ref() });
    let first_selected = first_parameter.saturating_add((definition.columns.len() + subqueries.len()) as u16);
    binder.selected = source.map(|scope| SelectedRow { scope, first_parameter: first_selected, columns: Vec::new() });
    let name_of = |column: &ColumnNumber| definition.columns[usize::from(column.0)].name.to_string();
    binder.inserted_names = targets.iter().map(name_of).collect();
    if insert.row_alias.as_ref().is_some_and(|alias| !alias.columns.is_empty() && alias.columns.len() != targets.len())
    {
        return Err(message::alias_column_count());
    }
    let mut assignments = bind_assignments(&mut binder, layout, &insert.on_duplicate)?;
    let unstored = UnstoredColumns::of(&assigning, layout)?;
    unstored.put_into_assignments(&mut assignments)?;
    for assignment in &mut assignments {
        unstored.put_into_inserted(&mut assignment.value, first_parameter)?;
    }
    let is_given = |inner: &Expression| matches!(inner.node, Node::Parameter(ordinal) if ordinal < first_parameter);
    let mut reads_parameters = false;
    for Assignment { value, .. } in &assignments {
        value.visit(&mut |inner| reads_parameters |= is_given(inner));
    }
    let changed = changed_columns(&assignments);
    let update = WriteProgram {
        table: Arc::clone(layout),
        action: WriteAction::Update { assignments, ignore: insert.ignore || environment.modes.is_lenient },
        access: Access::PrimaryKeys,
        filter: None,
        reads_parameters: true,
        rules: environment.rules,
        unique_entries: unique_entries(environment.dictionary, definition, Some(&changed))?,
        foreign_keys: foreign_keys(environment, definition, RowWrite::Update(&changed)),
        returning: returned.map(|rows| Returning {
            output: Output::Packets(rows.clone().with_format(&layout.row_format)),
            is_strict: !insert.ignore && !environment.modes.is_lenient,
        }),
    };
    let keys = key_locks(environment.dictionary, layout)?;
    let selected_columns = binder.selected.map_or(Vec::new(), |selected| selected.columns);
    let (given, named) = (given as u16, (subqueries.len() + selected_columns.len()) as u16);
    let conflict = Conflict::Update {
        update: Arc::new(update),
        first_parameter,
        selected: given..given.saturating_add(named),
        reads_parameters,
        ignore: insert.ignore,
        keys,
    };
    Ok(PlannedConflict { conflict, is_volatile: binder.is_volatile, selected_columns })
}

/// The keys of a table in MySQL's order: the primary key, then unique keys without nullable columns, then the
/// other unique keys.
pub(super) fn key_locks(dictionary: &Dictionary, layout: &Arc<TableLayout>) -> Result<Vec<KeyLock>> {
    let definition = &layout.definition;
    let mut keys = Vec::new();
    let primary = definition.primary();
    if !has_hidden_key(definition) {
        keys.push(KeyLock { index: None, columns: primary.columns.clone(), lock: lock_program(layout) });
    }
    let entries = unique_entries(dictionary, definition, None)?;
    let mut unique: Vec<(&IndexDefinition, &Arc<TableLayout>)> =
        entries.iter().filter_map(|(id, entries)| definition.index(*id).map(|index| (index, entries))).collect();
    unique.sort_by_key(|(index, _)| has_nullable(definition, index));
    for (index, entries) in unique {
        keys.push(KeyLock { index: Some(index.id), columns: index.columns.clone(), lock: lock_program(entries) });
    }
    Ok(keys)
}

/// The exclusive locking read of rows by primary key, which returns their images.
pub(super) fn lock_program(table: &Arc<TableLayout>) -> Arc<WriteProgram> {
    let action = WriteAction::LockRead {
        mode: LockMode::Exclusive,
        when_locked: WhenLocked::Wait,
        output: Output::Images,
        is_strict: false,
    };
    Arc::new(WriteProgram::new(table, action, Access::PrimaryKeys))
}

fn has_nullable(definition: &TableDefinition, index: &IndexDefinition) -> bool {
    index.columns.iter().any(|column| definition.columns[usize::from(column.0)].nullable)
}

/// Whether the primary key is the hidden number of a table that declares no primary key.
fn has_hidden_key(definition: &TableDefinition) -> bool {
    definition.primary().columns.iter().all(|column| definition.columns[usize::from(column.0)].is_hidden_key())
}

/// The columns of MySQL's clustered key: the primary key, else the first unique key without nullable columns,
/// else the hidden number.
pub(super) fn clustered_columns(definition: &TableDefinition) -> &[ColumnNumber] {
    let is_unique_not_null =
        |index: &&IndexDefinition| matches!(index.kind, IndexKind::Unique { .. }) && !has_nullable(definition, index);
    match has_hidden_key(definition) {
        true => definition.indexes.iter().find(is_unique_not_null).unwrap_or(definition.primary()),
        false => definition.primary(),
    }
    .columns
    .as_slice()
}

/// Whether an assignment to these columns can collide with the key of another row.
pub(super) fn touches_unique(definition: &TableDefinition, changed: &[ColumnNumber]) -> bool {
    let is_key = |index: &&IndexDefinition| matches!(index.kind, IndexKind::Primary { .. } | IndexKind::Unique { .. });
    let mut keys = definition.indexes.iter().filter(is_key);
    keys.any(|index| index.columns.iter().any(|column| changed.contains(column)))
}
