//! What INSERT does with a row of which a key exists already.

use std::sync::Arc;

use junctor_client::program::{Access, Assignment, LockMode, Output, WhenLocked, WriteAction, WriteProgram};
use junctor_model::error::Result;
use junctor_model::foreign_key::{ForeignKeyWork, RowWrite};
use junctor_model::id::{ColumnIndex, IndexId};
use junctor_model::schema::{Dictionary, IndexDefinition, IndexKind, TableDefinition, TableLayout};

use super::change::{bind_assignments, foreign_keys, unique_entries};
use crate::bind::{Binder, Environment, InsertedRow, Scope, message};
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
        /// The keys, in the order in which they are looked at.
        keys: Vec<KeyLock>,
    },
    /// ON DUPLICATE KEY UPDATE: the row that has the first of its keys that exists is changed.
    Update {
        /// The update, by primary key. The columns of the row that was to be inserted are its parameters.
        update: Arc<WriteProgram>,
        /// The ordinal of the first of these parameters.
        first_parameter: u16,
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
    /// The locking read: of the row by its primary key, or of the unique entry by its key. It answers with images.
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

    /// What foreign keys ask of the rows that have the keys.
    pub(super) fn foreign_keys(&self) -> Option<&Arc<ForeignKeyWork>> {
        match self {
            Conflict::Fail | Conflict::Skip => None,
            Conflict::Replace { delete, .. } => delete.foreign_keys.as_ref(),
            Conflict::Update { update, .. } => update.foreign_keys.as_ref(),
        }
    }

    /// What is done with rows of new keys.
    pub(super) fn action(&self) -> WriteAction {
        match self {
            Conflict::Fail | Conflict::Skip => WriteAction::Insert,
            Conflict::Replace { .. } | Conflict::Update { .. } => WriteAction::InsertOrClaim,
        }
    }
}

/// Plans what INSERT does with rows whose keys exist; true when the plan is good for one execution only.
///
/// # Errors
/// Those of binding the assignments.
pub(super) fn plan_conflict(
    environment: &Environment<'_>,
    insert: &Insert,
    layout: &Arc<TableLayout>,
    targets: &[ColumnIndex],
) -> Result<(Conflict, bool)> {
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
        };
        let keys = key_locks(environment.dictionary, layout)?;
        return Ok((Conflict::Replace { delete: Arc::new(delete), keys }, false));
    }
    if insert.on_duplicate.is_empty() {
        return Ok((if insert.ignore { Conflict::Skip } else { Conflict::Fail }, false));
    }
    let first_parameter = environment.parameters.len() as u16;
    let mut binder = Binder::new(environment, Scope::of_table(layout, None));
    binder.inserted = Some(InsertedRow { first_parameter, alias: insert.row_alias.as_ref() });
    let name_of = |column: &ColumnIndex| definition.columns[usize::from(column.0)].name.to_string();
    binder.inserted_names = targets.iter().map(name_of).collect();
    if insert.row_alias.as_ref().is_some_and(|alias| !alias.columns.is_empty() && alias.columns.len() != targets.len())
    {
        return Err(message::alias_column_count());
    }
    let assignments = bind_assignments(&mut binder, layout, &insert.on_duplicate)?;
    let changed: Vec<ColumnIndex> = assignments.iter().map(|Assignment { column, .. }| *column).collect();
    let update = WriteProgram {
        table: Arc::clone(layout),
        action: WriteAction::Update { assignments, ignore: insert.ignore },
        access: Access::PrimaryKeys,
        filter: None,
        reads_parameters: true,
        unique_entries: unique_entries(environment.dictionary, definition, Some(&changed))?,
        foreign_keys: foreign_keys(environment, definition, RowWrite::Update(&changed)),
    };
    let keys = key_locks(environment.dictionary, layout)?;
    let conflict = Conflict::Update { update: Arc::new(update), first_parameter, ignore: insert.ignore, keys };
    Ok((conflict, binder.is_volatile))
}

/// The keys of a table in MySQL's order: the primary key, unique keys without NULL, other unique keys.
fn key_locks(dictionary: &Dictionary, layout: &Arc<TableLayout>) -> Result<Vec<KeyLock>> {
    let definition = &layout.definition;
    let lock_of = |table: &Arc<TableLayout>| {
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
        })
    };
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

fn has_nullable(definition: &TableDefinition, index: &IndexDefinition) -> bool {
    index.columns.iter().any(|column| definition.columns[usize::from(column.0)].nullable)
}

/// Whether the primary key is a number that no row gives itself.
fn has_hidden_key(definition: &TableDefinition) -> bool {
    definition.primary().columns.iter().all(|column| definition.columns[usize::from(column.0)].hidden)
}

/// Whether an assignment of these columns may meet the keys of another row.
pub(super) fn touches_unique(definition: &TableDefinition, changed: &[ColumnIndex]) -> bool {
    let is_key = |index: &&IndexDefinition| matches!(index.kind, IndexKind::Primary { .. } | IndexKind::Unique { .. });
    let mut keys = definition.indexes.iter().filter(is_key);
    keys.any(|index| index.columns.iter().any(|column| changed.contains(column)))
}
