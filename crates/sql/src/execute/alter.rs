//! The steps of ALTER TABLE that the session executes itself: filling new unique indexes, and checking that
//! all rows have parents for new foreign keys.
//!
//! The main block creates the new indexes, and the session fills the unique ones while other sessions use the
//! table. The main block then blocks writes to the table and its parent tables, the session checks the rows,
//! and the main block applies all other changes in one step. If any step fails, the main block drops the new
//! indexes. The whole alteration is a single gateway operation, which is opened before the first step. Ending
//! the alteration can therefore never fail for lack of an operation.

use std::sync::Arc;

use junctor_gateway::require;
use junctor_model::alteration::{Alteration, building_indexes};
use junctor_model::error::Error;
use junctor_model::id::{IndexId, TableId};
use junctor_model::schema::{IndexDefinition, TableLayout};
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::read_rows::OperationId;

use super::completion::{ChangeCounts, fail, finish_ok};
use super::context::StatementContext;
use super::foreign_key_check::start_check;
use super::index_backfill::start_backfill;
use super::schema::{ChangeWait, SchemaStep, ask_main, wait_for_main, write_records_info};
use crate::plan::TableUse;
use crate::result::Progress;

/// The state of an alteration.
#[derive(Debug)]
pub(crate) struct AlterationState {
    operation: OperationId,
    /// Database and table name. Each step looks the table up by name, because a concurrent TRUNCATE gives it
    /// a new id.
    name: (Box<str>, Box<str>),
    pub(super) table: TableId,
    pub(super) alteration: Arc<Alteration>,
    step: AlterStep,
    /// The unique indexes whose backfill has begun or is complete.
    backfilled: Vec<IndexId>,
    /// Number of new foreign keys checked so far.
    pub(super) checked: usize,
    /// Number of rows checked so far.
    pub(super) rows: u64,
    /// Whether the main block has blocked writes to the tables.
    is_held: bool,
    /// The error because of which the alteration is rolled back.
    error: Option<Box<Error>>,
}

/// The pending step of the main block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AlterStep {
    Beginning,
    Holding,
    Ending,
}

impl AlterationState {
    /// The table that the alteration uses, once it has begun. The alteration counts as a reader until the
    /// main block has blocked writes, because two alterations of related tables that counted as writers would
    /// wait for each other.
    pub(super) fn used_table(&self) -> Option<TableUse> {
        let has_begun = self.step != AlterStep::Beginning && (self.is_held || self.has_indexes());
        has_begun.then_some(TableUse { table: self.table, writes: self.is_held })
    }

    pub(super) fn is_cancellable(&self) -> bool {
        self.step != AlterStep::Ending
    }

    fn has_indexes(&self) -> bool {
        !self.alteration.add_indexes.is_empty()
    }
}

/// Starts an alteration in which the session takes part.
pub(super) fn start_alteration(
    context: &mut StatementContext<'_, '_>,
    table: TableId,
    alteration: Arc<Alteration>,
) -> Progress {
    let Some(layout) = context.engine.gateway.catalog().dictionary.table(table).cloned() else {
        return fail(context, &Error::table_definition_changed());
    };
    let operation = match context.engine.gateway.open_schema(context.session.connection, true) {
        Ok(operation) => operation,
        Err(error) => return fail(context, &error),
    };
    let definition = &layout.definition;
    let mut altering = AlterationState {
        operation,
        name: (definition.database.clone(), definition.name.clone()),
        table,
        alteration: Arc::clone(&alteration),
        step: AlterStep::Beginning,
        backfilled: Vec::new(),
        checked: 0,
        rows: 0,
        is_held: false,
        error: None,
    };
    if !altering.has_indexes() {
        altering.step = AlterStep::Holding;
        return request_step(context, altering, SchemaChange::BlockWrites { table, alteration });
    }
    request_step(context, altering, SchemaChange::AlterTable { table, alteration })
}

fn request_step(context: &mut StatementContext<'_, '_>, altering: AlterationState, change: SchemaChange) -> Progress {
    let operation = altering.operation;
    ask_main(context, operation, change);
    // If the tables are already blocked, the step does not wait.
    let waits = if altering.is_held { ChangeWait::Over } else { ChangeWait::Since(context.turn.turn_start) };
    wait_for_main(context.session, operation, SchemaStep::Altering(Box::new(altering)), waits)
}

/// Continues an alteration with the main block's reply to a step.
pub(super) fn resume_alteration(
    context: &mut StatementContext<'_, '_>,
    mut altering: AlterationState,
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
        (AlterStep::Holding, Some(error)) => undo_alteration(context, altering, error),
        (step, None) => {
            altering.is_held |= step == AlterStep::Holding;
            let (database, name) = &altering.name;
            match context.engine.gateway.catalog().dictionary.table_named(database, name) {
                Some(layout) => altering.table = layout.definition.id,
                None => return undo_alteration(context, altering, Error::table_definition_changed()),
            }
            continue_alteration(context, altering)
        }
    }
}

/// Continues with the next outstanding step.
pub(super) fn continue_alteration(context: &mut StatementContext<'_, '_>, mut altering: AlterationState) -> Progress {
    require!(altering.step != AlterStep::Ending, "an alteration that main ends has no steps left");
    let Some(layout) = context.engine.gateway.catalog().dictionary.table(altering.table).cloned() else {
        return undo_alteration(context, altering, Error::table_definition_changed());
    };
    if let Some(index) = unfilled(&layout, &altering.backfilled) {
        altering.backfilled.push(index);
        return start_backfill(context, altering, layout, index);
    }
    let (table, alteration) = (altering.table, Arc::clone(&altering.alteration));
    if alteration.validates_rows() && !altering.is_held {
        altering.step = AlterStep::Holding;
        return request_step(context, altering, SchemaChange::BlockWrites { table, alteration });
    }
    if alteration.validates_rows() && altering.checked < alteration.add_foreign_keys.len() {
        return start_check(context, altering, layout);
    }
    altering.step = AlterStep::Ending;
    request_step(context, altering, SchemaChange::FinishAlteration { table, alteration })
}

fn unfilled(layout: &TableLayout, filled: &[IndexId]) -> Option<IndexId> {
    let is_unfilled = |index: &&IndexDefinition| index.is_unique() && !filled.contains(&index.id);
    building_indexes(&layout.definition).find(is_unfilled).map(|index| index.id)
}

/// Asks the main block to drop the new indexes of a failed alteration.
pub(super) fn undo_alteration(
    context: &mut StatementContext<'_, '_>,
    mut altering: AlterationState,
    error: Box<Error>,
) -> Progress {
    altering.error = Some(error);
    if !altering.has_indexes() {
        return close(context, altering);
    }
    altering.step = AlterStep::Ending;
    let table = altering.table;
    request_step(context, altering, SchemaChange::UndoAlteration { table })
}

/// Ends the alteration, which is complete or rolled back.
fn close(context: &mut StatementContext<'_, '_>, altering: AlterationState) -> Progress {
    context.engine.gateway.close_schema(altering.operation);
    if altering.is_held {
        context.engine.gateway.unlock_tables(context.session.connection, context.turn);
    }
    match altering.error {
        Some(error) => fail(context, &error),
        None => {
            write_records_info(context, altering.rows);
            finish_ok(context, ChangeCounts { affected_rows: altering.rows, has_info: true, ..ChangeCounts::default() })
        }
    }
}
