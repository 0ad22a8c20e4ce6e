//! What INSERT does with a row of which a key exists already.

use std::ops::Range;
use std::sync::Arc;

use junctor_expression::{Expression, Node};
use junctor_model::error::Result;
use junctor_model::foreign_key::{ForeignKeyWork, RowWrite};
use junctor_model::id::{ColumnIndex, IndexId};
use junctor_model::schema::{Dictionary, IndexDefinition, IndexKind, TableDefinition, TableLayout};
use junctor_signals::program::{
    Access, Assignment, LockMode, Output, Projection, Returning, WhenLocked, WriteAction, WriteProgram,
};

use super::change::{bind_assignments, foreign_keys, unique_entries};
use crate::bind::{Binder, Environment, InsertedRow, Scope, SelectedRow, message};
use crate::parse::statement::Insert;

/// What happens to a row of which a key exists already.
#[derive(Debug)]
pub enum Conflict {
    /// The statement fails: 1062.
    Fail,
    /// IGNORE: the row is left out, with a warning.
    Skip,
    /// REPLACE: the rows that have its keys are deleted.
    Replace {
        /// The delete, by primary key.
        delete: Arc<WriteProgram>,
        /// The locking read of a row by primary key, to tell whether the row that has the last of the keys is
        /// the very one that is made: then it stays. `None` for a table that others refer to.
        row_lock: Option<Arc<WriteProgram>>,
        /// The keys, in the order in which they are looked at.
        keys: Vec<KeyLock>,
    },
    /// ON DUPLICATE KEY UPDATE: the row that has the first of its keys that exists is changed.
    Update {
        /// The update, by primary key. The columns of the row that was to be inserted are its parameters.
        update: Arc<WriteProgram>,
        /// The ordinal of the first of these parameters.
        first_parameter: u16,
        /// The columns of the query's row that are its parameters after those.
        selected: Range<u16>,
        /// Whether it reads parameters of the statement.
        reads_parameters: bool,
        /// IGNORE: a row that cannot be changed because of its keys is left as it is, with a warning.
        ignore: bool,
        /// The keys, in the order in which they are looked at.
        keys: Vec<KeyLock>,
    },
}

/// How the row that has a key is found and locked.
#[derive(Debug)]
pub struct KeyLock {
    /// The unique index; `None` is the primary key.
    pub index: Option<IndexId>,
    /// The columns of the key.
    pub columns: Vec<ColumnIndex>,
    /// The locking read: of the row by its primary key, or of the unique entry by its key. It answers with
    /// images.
    pub lock: Arc<WriteProgram>,
}

impl Conflict {
    /// The keys that are looked at before a row is written.
    pub fn keys(&self) -> &[KeyLock] {
        match self {
            Conflict::Fail | Conflict::Skip => &[],
            Conflict::Replace { keys, .. } | Conflict::Update { keys, .. } => keys,
        }
    }

    /// Whether parameters of the statement are computed with.
    pub(super) fn reads_parameters(&self) -> bool {
        matches!(self, Conflict::Update { reads_parameters: true, .. })
    }

    /// Whether columns of a query's rows are needed for more than the rows that are inserted.
    pub fn reads_selected(&self) -> bool {
        matches!(self, Conflict::Update { selected, .. } if !selected.is_empty())
    }

    /// What foreign keys ask of the rows that have the keys.
    pub(super) fn foreign_keys(&self) -> Option<&Arc<ForeignKeyWork>> {
        match self {
            Conflict::Fail | Conflict::Skip => None,
            Conflict::Replace { delete, .. } => delete.foreign_keys.as_ref(),
            Conflict::Update { update, .. } => update.foreign_keys.as_ref(),
        }
    }

    /// The action on rows with new keys.
    pub(super) fn action(&self) -> WriteAction {
        match self {
            Conflict::Fail | Conflict::Skip => WriteAction::Insert,
            Conflict::Replace { .. } | Conflict::Update { .. } => WriteAction::InsertOrClaim,
        }
    }
}

/// What plans of rows whose keys exist come to.
pub(super) struct PlannedConflict {
    pub conflict: Conflict,
    /// Whether the plan is good for one execution only.
    pub is_volatile: bool,
    /// The columns that the query must give after those that are inserted.
    pub selected_columns: Vec<ColumnIndex>,
}

impl From<Conflict> for PlannedConflict {
    fn from(conflict: Conflict) -> PlannedConflict {
        PlannedConflict { conflict, is_volatile: false, selected_columns: Vec::new() }
    }
}

/// Plans what INSERT does with rows whose keys exist; `source` is the table of its query, whose columns may
/// be named, and `returned` what RETURNING says of a row.
///
/// # Errors
/// Errors of binding the assignments.
pub(super) fn plan_conflict(
    environment: &Environment<'_>,
    insert: &Insert,
    layout: &Arc<TableLayout>,
    targets: &[ColumnIndex],
    source: Option<Scope<'_>>,
    returned: Option<&Projection>,
) -> Result<PlannedConflict> {
    let definition = &layout.definition;
    if insert.replace {
        let delete = WriteProgram {
            table: Arc::clone(layout),
            action: WriteAction::Delete,
            access: Access::PrimaryKeys,
            filter: None,
            reads_parameters: false,
            unique_entries: unique_entries(environment.dictionary, definition, None)?,
            foreign_keys: foreign_keys(environment, definition, RowWrite::Delete),
            returning: None,
        };
        let keys = key_locks(environment.dictionary, layout)?;
        let row_lock = delete.foreign_keys.is_none().then(|| lock_of(layout));
        return Ok(Conflict::Replace { delete: Arc::new(delete), row_lock, keys }.into());
    }
    if insert.on_duplicate.is_empty() {
        return Ok(if insert.ignore { Conflict::Skip } else { Conflict::Fail }.into());
    }
    let first_parameter = environment.parameters.len() as u16;
    let mut binder = Binder::new(environment, Scope::of_table(layout, None));
    binder.inserted = Some(InsertedRow { first_parameter, alias: insert.row_alias.as_ref() });
    let first_selected = first_parameter.saturating_add(definition.columns.len() as u16);
    binder.selected = source.map(|scope| SelectedRow { scope, first_parameter: first_selected, columns: Vec::new() });
    let name_of = |column: &ColumnIndex| definition.columns[usize::from(column.0)].name.to_string();
    binder.inserted_names = targets.iter().map(name_of).collect();
    if insert.row_alias.as_ref().is_some_and(|alias| !alias.columns.is_empty() && alias.columns.len() != targets.len())
    {
        return Err(message::alias_column_count());
    }
    let assignments = bind_assignments(&mut binder, layout, &insert.on_duplicate)?;
    let is_given = |inner: &Expression| matches!(inner.node, Node::Parameter(ordinal) if ordinal < first_parameter);
    let mut reads_parameters = false;
    for Assignment { value, .. } in &assignments {
        value.visit(&mut |inner| reads_parameters |= is_given(inner));
    }
    let changed: Vec<ColumnIndex> = assignments.iter().map(|Assignment { column, .. }| *column).collect();
    let update = WriteProgram {
        table: Arc::clone(layout),
        action: WriteAction::Update { assignments, ignore: insert.ignore },
        access: Access::PrimaryKeys,
        filter: None,
        reads_parameters: true,
        unique_entries: unique_entries(environment.dictionary, definition, Some(&changed))?,
        foreign_keys: foreign_keys(environment, definition, RowWrite::Update(&changed)),
        returning: returned.map(|rows| Returning {
            output: Output::Packets(rows.clone().with_format(&layout.row_format)),
            is_strict: !insert.ignore,
        }),
    };
    let keys = key_locks(environment.dictionary, layout)?;
    let selected_columns = binder.selected.map_or(Vec::new(), |selected| selected.columns);
    let (given, named) = (targets.len() as u16, selected_columns.len() as u16);
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

/// The keys of a table in MySQL's order: the primary key, unique keys without NULL, other unique keys.
fn key_locks(dictionary: &Dictionary, layout: &Arc<TableLayout>) -> Result<Vec<KeyLock>> {
    let definition = &layout.definition;
    let mut keys = Vec::new();
    let primary = definition.primary();
    if !has_hidden_key(definition) {
        keys.push(KeyLock { index: None, columns: primary.columns.clone(), lock: lock_of(layout) });
    }
    let entries = unique_entries(dictionary, definition, None)?;
    let mut unique: Vec<(&IndexDefinition, &Arc<TableLayout>)> =
        entries.iter().filter_map(|(id, entries)| definition.index(*id).map(|index| (index, entries))).collect();
    unique.sort_by_key(|(index, _)| has_nullable(definition, index));
    for (index, entries) in unique {
        keys.push(KeyLock { index: Some(index.id), columns: index.columns.clone(), lock: lock_of(entries) });
    }
    Ok(keys)
}

/// The exclusive locking read of rows by primary key, which answers with images.
fn lock_of(table: &Arc<TableLayout>) -> Arc<WriteProgram> {
    Arc::new(WriteProgram {
        table: Arc::clone(table),
        action: WriteAction::LockRead {
            mode: LockMode::Exclusive,
            when_locked: WhenLocked::Wait,
            output: Output::Images,
            is_strict: false,
        },
        access: Access::PrimaryKeys,
        filter: None,
        reads_parameters: false,
        unique_entries: Vec::new(),
        foreign_keys: None,
        returning: None,
    })
}

fn has_nullable(definition: &TableDefinition, index: &IndexDefinition) -> bool {
    index.columns.iter().any(|column| definition.columns[usize::from(column.0)].nullable)
}

/// Whether the primary key is a number that no row gives itself.
fn has_hidden_key(definition: &TableDefinition) -> bool {
    definition.primary().columns.iter().all(|column| definition.columns[usize::from(column.0)].hidden)
}

/// The columns of the key that MySQL keeps rows by: the primary key, or else the first unique key without
/// NULL, or else the number that each row gets.
pub(super) fn clustered_columns(definition: &TableDefinition) -> &[ColumnIndex] {
    let is_whole =
        |index: &&IndexDefinition| matches!(index.kind, IndexKind::Unique { .. }) && !has_nullable(definition, index);
    match has_hidden_key(definition) {
        true => definition.indexes.iter().find(is_whole).unwrap_or(definition.primary()),
        false => definition.primary(),
    }
    .columns
    .as_slice()
}

/// Whether an assignment of these columns may meet the keys of another row.
pub(super) fn touches_unique(definition: &TableDefinition, changed: &[ColumnIndex]) -> bool {
    let is_key = |index: &&IndexDefinition| matches!(index.kind, IndexKind::Primary { .. } | IndexKind::Unique { .. });
    let mut keys = definition.indexes.iter().filter(is_key);
    keys.any(|index| index.columns.iter().any(|column| changed.contains(column)))
}
