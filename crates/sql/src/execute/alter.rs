//! Alterations of a table that the session has a part in: unique indexes are filled, and rows are looked at for the parents of new
//! foreign keys.
//!
//! Main makes the new indexes; the session fills the unique ones while others use the table. Then main keeps writers from
//! the table and from the parents, the session looks at the rows, and main does all the rest at once. Whatever fails on the way,
//! main takes the new indexes away. All of it is one operation of the client, taken at the beginning: what has begun
//! can always be ended.

use std::sync::Arc;

use junctor_model::alteration::{Alteration, building_indexes};
use junctor_model::error::Error;
use junctor_model::id::{IndexId, TableId};
use junctor_model::schema::{IndexDefinition, TableLayout};
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::read_rows::OperationId;

use super::check_rows::begin_check;
use super::completion::{Changed, fail, ok};
use super::context::StatementContext;
use super::fill::begin_fill;
use super::schema::{ChangeWait, SchemaStep, ask_main, index_is_gone, wait_for_main, write_records_info};
use crate::engine::TableUse;
use crate::result::Progress;

/// An alteration under way.
#[derive(Debug)]
pub(crate) struct Altering {
    operation: OperationId,
    /// (database, table): truncated meanwhile, it has another id when its turn comes.
    name: (Box<str>, Box<str>),
    pub(super) table: TableId,
    pub(super) alteration: Arc<Alteration>,
    step: AlterStep,
    filled: Vec<IndexId>,
    /// Foreign keys whose rows were looked at.
    pub(super) checked: usize,
    /// Rows that were looked at.
    pub(super) rows: u64,
    is_held: bool,
    /// Why it is taken back.
    error: Option<Box<Error>>,
}

/// What main is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AlterStep {
    Beginning,
    Holding,
    Ending,
}

impl Altering {
    /// The table, once the alteration has begun. What waits for main writes nothing, as its indexes are filled by then: two
    /// alterations whose tables are related would wait for each other for ever otherwise.
    pub(super) fn used_table(&self) -> Option<TableUse> {
        let has_begun = self.step != AlterStep::Beginning && (self.is_held || self.has_indexes());
        has_begun.then_some(TableUse { table: self.table, writes: self.is_held })
    }

    pub(super) fn may_be_cancelled(&self) -> bool {
        self.step != AlterStep::Ending
    }

    fn has_indexes(&self) -> bool {
        !self.alteration.add_indexes.is_empty()
    }
}

/// Begins an alteration that the session has a part in.
pub(super) fn begin_alteration(
    context: &mut StatementContext<'_, '_>,
    table: TableId,
    alteration: Arc<Alteration>,
) -> Progress {
    let Some(layout) = context.engine.gateway.catalog().dictionary.table(table).cloned() else {
        return fail(context, &index_is_gone());
    };
    let operation = match context.engine.gateway.open_schema(context.session.connection, true) {
        Ok(operation) => operation,
        Err(error) => return fail(context, &error),
    };
    let definition = &layout.definition;
    let mut altering = Altering {
        operation,
        name: (definition.database.clone(), definition.name.clone()),
        table,
        alteration: Arc::clone(&alteration),
        step: AlterStep::Beginning,
        filled: Vec::new(),
        checked: 0,
        rows: 0,
        is_held: false,
        error: None,
    };
    if !altering.has_indexes() {
        altering.step = AlterStep::Holding;
        return ask(context, altering, SchemaChange::HoldTables { table, alteration });
    }
    ask(context, altering, SchemaChange::AlterTable { table, alteration })
}

fn ask(context: &mut StatementContext<'_, '_>, altering: Altering, change: SchemaChange) -> Progress {
    let operation = altering.operation;
    ask_main(context, operation, change);
    // What is kept already is not waited for.
    let waits = if altering.is_held { ChangeWait::Over } else { ChangeWait::Since(context.turn.now) };
    wait_for_main(context.session, operation, SchemaStep::Altering(Box::new(altering)), waits)
}

/// Main has done a step, or cannot do it.
pub(super) fn on_altered(
    context: &mut StatementContext<'_, '_>,
    mut altering: Altering,
    error: Option<Box<Error>>,
) -> Progress {
    match (altering.step, error) {
        (AlterStep::Ending, error) => {
            altering.error = altering.error.take().or(error);
            close(context, altering)
        }
        (AlterStep::Beginning, Some(error)) => {
            altering.error = Some(error);
            close(context, altering)
        }
        (AlterStep::Holding, Some(error)) => take_back(context, altering, error),
        (step, None) => {
            altering.is_held |= step == AlterStep::Holding;
            let (database, name) = &altering.name;
            match context.engine.gateway.catalog().dictionary.table_named(database, name) {
                Some(layout) => altering.table = layout.definition.id,
                None => return take_back(context, altering, index_is_gone()),
            }
            next_step(context, altering)
        }
    }
}

/// Goes on with what is left to do.
pub(super) fn next_step(context: &mut StatementContext<'_, '_>, mut altering: Altering) -> Progress {
    let Some(layout) = context.engine.gateway.catalog().dictionary.table(altering.table).cloned() else {
        return take_back(context, altering, index_is_gone());
    };
    if let Some(index) = unfilled(&layout, &altering.filled) {
        altering.filled.push(index);
        return begin_fill(context, altering, layout, index);
    }
    let (table, alteration) = (altering.table, Arc::clone(&altering.alteration));
    if alteration.checks_rows() && !altering.is_held {
        altering.step = AlterStep::Holding;
        return ask(context, altering, SchemaChange::HoldTables { table, alteration });
    }
    if alteration.checks_rows() && altering.checked < alteration.add_foreign_keys.len() {
        return begin_check(context, altering, layout);
    }
    altering.step = AlterStep::Ending;
    ask(context, altering, SchemaChange::FinishAlteration { table, alteration })
}

fn unfilled(layout: &TableLayout, filled: &[IndexId]) -> Option<IndexId> {
    let is_left = |index: &&IndexDefinition| index.is_unique() && !filled.contains(&index.id);
    building_indexes(&layout.definition).find(is_left).map(|index| index.id)
}

/// The alteration fails.
pub(super) fn take_back(context: &mut StatementContext<'_, '_>, mut altering: Altering, error: Box<Error>) -> Progress {
    altering.error = Some(error);
    if !altering.has_indexes() {
        return close(context, altering);
    }
    altering.step = AlterStep::Ending;
    let table = altering.table;
    ask(context, altering, SchemaChange::UndoAlteration { table })
}

/// Everything is done, or taken back.
fn close(context: &mut StatementContext<'_, '_>, altering: Altering) -> Progress {
    context.engine.gateway.close_schema(altering.operation);
    if altering.is_held {
        context.engine.gateway.unlock_tables(context.session.connection, context.turn);
    }
    match altering.error {
        Some(error) => fail(context, &error),
        None => {
            write_records_info(context, altering.rows);
            ok(context, Changed { affected_rows: altering.rows, has_info: true, ..Changed::default() })
        }
    }
}
