//! Alterations of a table that the session has a part in: unique indexes are filled, and rows are looked at for the parents of new
//! foreign keys.
//!
//! Main makes the new indexes; the session fills the unique ones while others use the table. Then main keeps writers from
//! the table and from the parents, the session looks at the rows, and main does all the rest at once. Whatever fails on the way,
//! main takes the new indexes away. All of it is one operation of the client, taken at the beginning: what has begun
//! can always be ended.

use std::sync::Arc;

use junctor_gateway::TurnContext;
use junctor_model::alteration::{Alteration, building_indexes};
use junctor_model::error::Error;
use junctor_model::id::{IndexId, TableId};
use junctor_model::schema::{IndexDefinition, TableLayout};
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::read_rows::OperationId;

use super::check_rows::begin_check;
use super::completion::{Changed, fail, ok};
use super::fill::begin_fill;
use super::schema::{ChangeWait, SchemaStep, ask_main, index_is_gone, records_info, wait_for_main};
use crate::engine::{Engine, TableUse};
use crate::result::{Progress, ResultSink};
use crate::session::Session;

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
    engine: &mut Engine,
    session: &mut Session,
    table: TableId,
    alteration: Arc<Alteration>,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let Some(layout) = engine.gateway.catalog().dictionary.table(table).cloned() else {
        return fail(session, &index_is_gone(), sink);
    };
    let operation = match engine.gateway.open_schema(session.connection, true) {
        Ok(operation) => operation,
        Err(error) => return fail(session, &error, sink),
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
        return ask(engine, session, altering, SchemaChange::HoldTables { table, alteration }, turn);
    }
    ask(engine, session, altering, SchemaChange::AlterTable { table, alteration }, turn)
}

fn ask(
    engine: &mut Engine,
    session: &mut Session,
    altering: Altering,
    change: SchemaChange,
    turn: &mut TurnContext<'_>,
) -> Progress {
    let operation = altering.operation;
    ask_main(engine, session, operation, change, turn);
    // What is kept already is not waited for.
    let waits = if altering.is_held { ChangeWait::Over } else { ChangeWait::Since(turn.now) };
    wait_for_main(session, operation, SchemaStep::Altering(Box::new(altering)), waits)
}

/// Main has done a step, or cannot do it.
pub(super) fn on_altered(
    engine: &mut Engine,
    session: &mut Session,
    mut altering: Altering,
    error: Option<Box<Error>>,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    match (altering.step, error) {
        (AlterStep::Ending, error) => {
            altering.error = altering.error.take().or(error);
            close(engine, session, altering, turn, sink)
        }
        (AlterStep::Beginning, Some(error)) => {
            altering.error = Some(error);
            close(engine, session, altering, turn, sink)
        }
        (AlterStep::Holding, Some(error)) => take_back(engine, session, altering, error, turn, sink),
        (step, None) => {
            altering.is_held |= step == AlterStep::Holding;
            let (database, name) = &altering.name;
            match engine.gateway.catalog().dictionary.table_named(database, name) {
                Some(layout) => altering.table = layout.definition.id,
                None => return take_back(engine, session, altering, index_is_gone(), turn, sink),
            }
            next_step(engine, session, altering, turn, sink)
        }
    }
}

/// Goes on with what is left to do.
pub(super) fn next_step(
    engine: &mut Engine,
    session: &mut Session,
    mut altering: Altering,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let Some(layout) = engine.gateway.catalog().dictionary.table(altering.table).cloned() else {
        return take_back(engine, session, altering, index_is_gone(), turn, sink);
    };
    if let Some(index) = unfilled(&layout, &altering.filled) {
        altering.filled.push(index);
        return begin_fill(engine, session, altering, layout, index, turn, sink);
    }
    let (table, alteration) = (altering.table, Arc::clone(&altering.alteration));
    if alteration.checks_rows() && !altering.is_held {
        altering.step = AlterStep::Holding;
        return ask(engine, session, altering, SchemaChange::HoldTables { table, alteration }, turn);
    }
    if alteration.checks_rows() && altering.checked < alteration.add_foreign_keys.len() {
        return begin_check(engine, session, altering, layout, turn, sink);
    }
    altering.step = AlterStep::Ending;
    ask(engine, session, altering, SchemaChange::FinishAlteration { table, alteration }, turn)
}

fn unfilled(layout: &TableLayout, filled: &[IndexId]) -> Option<IndexId> {
    let is_left = |index: &&IndexDefinition| index.is_unique() && !filled.contains(&index.id);
    building_indexes(&layout.definition).find(is_left).map(|index| index.id)
}

/// The alteration fails.
pub(super) fn take_back(
    engine: &mut Engine,
    session: &mut Session,
    mut altering: Altering,
    error: Box<Error>,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    altering.error = Some(error);
    if !altering.has_indexes() {
        return close(engine, session, altering, turn, sink);
    }
    altering.step = AlterStep::Ending;
    let table = altering.table;
    ask(engine, session, altering, SchemaChange::UndoAlteration { table }, turn)
}

/// Everything is done, or taken back.
fn close(
    engine: &mut Engine,
    session: &mut Session,
    altering: Altering,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    engine.gateway.close_schema(altering.operation);
    if altering.is_held {
        engine.gateway.unlock_tables(session.connection, turn);
    }
    match altering.error {
        Some(error) => fail(session, &error, sink),
        None => {
            let mut info = records_info(altering.rows);
            ok(session, Changed { affected_rows: altering.rows, info: Some(&mut info), ..Changed::default() }, sink)
        }
    }
}
