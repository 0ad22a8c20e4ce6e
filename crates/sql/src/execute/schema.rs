//! Changes of the schema: the open transaction is committed, main is asked, and a new unique index is filled.

use junctor_client::change_schema::SchemaChange;
use junctor_client::{Door, OperationId, Time};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::{IndexId, TableId};
use junctor_model::schema::IndexState;

use super::completion::{Changed, fail, ok};
use super::fill::{Fill, FillEnd, begin_fill};
use super::state::Execution;
use super::transaction::{AfterEnding, end_transaction};
use crate::engine::Engine;
use crate::result::{Progress, ResultSink};
use crate::session::Session;
use crate::show::WarningLevel;
use junctor_client::Ending;

/// What clients are told of a new or dropped index: no row was copied.
const INDEX_INFO: &str = "Records: 0  Duplicates: 0  Warnings: 0";

/// A change under way.
#[derive(Debug)]
pub(crate) struct SchemaState {
    pub operation: OperationId,
    pub step: SchemaStep,
    pub waits: ChangeWait,
}

/// Whether a change waits for others to leave its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeWait {
    /// Since then.
    Since(Time),
    /// No more.
    Over,
}

impl SchemaState {
    /// The table whose index is being filled.
    pub(crate) fn filled_table(&self) -> Option<TableId> {
        match &self.step {
            SchemaStep::Filling(fill) => Some(fill.table()),
            SchemaStep::Changing { .. } | SchemaStep::Finishing { .. } => None,
        }
    }

    /// Since when the change waits for others.
    pub(crate) fn waits_since(&self) -> Option<Time> {
        match self.waits {
            ChangeWait::Since(since) => Some(since),
            ChangeWait::Over => None,
        }
    }

    /// The change as main knows it, if it has not begun to change anything.
    pub(crate) fn may_be_cancelled(&self) -> Option<OperationId> {
        let is_first = matches!(self.step, SchemaStep::Changing { .. });
        (is_first && self.waits_since().is_some()).then_some(self.operation)
    }

    /// As SHOW PROCESSLIST tells it.
    pub(crate) fn name(&self) -> &'static str {
        match self.waits {
            ChangeWait::Since(_) => "Waiting for table metadata lock",
            ChangeWait::Over => "changing the schema",
        }
    }
}

/// What of a change is under way.
#[derive(Debug)]
pub(crate) enum SchemaStep {
    /// Main makes the change; `index` is the table and name of a unique index that is to be filled then.
    Changing { index: Option<(TableId, Box<str>)>, affected_rows: u64, info: String },
    /// The entries of a new unique index are made.
    Filling(Box<Fill>),
    /// Main completes the index, or takes it away because of the error.
    Finishing { error: Option<Box<Error>> },
}

/// Starts a change: commits first.
pub(crate) fn start_schema_change(
    engine: &mut Engine,
    session: &mut Session,
    change: SchemaChange,
    notes: Vec<(u16, Box<str>)>,
    door: &mut Door<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let after = AfterEnding::Schema { change: Box::new(change), notes };
    end_transaction(engine, session, Ending::Commit, after, door, sink)
}

/// Asks main; no transaction is open.
pub(super) fn send_schema_change(
    engine: &mut Engine,
    session: &mut Session,
    change: SchemaChange,
    notes: Vec<(u16, Box<str>)>,
    door: &mut Door<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    for (errno, message) in notes {
        session.warn(WarningLevel::Warning, errno, message);
    }
    let index = match &change {
        SchemaChange::CreateIndex { table, index } if index.state == IndexState::Building => {
            Some((*table, index.name.clone()))
        }
        _ => None,
    };
    let affected_rows = match &change {
        SchemaChange::CreateDatabase { .. } => 1,
        SchemaChange::DropDatabase { name, .. } => engine.client.catalog().dictionary.tables_of(name).count() as u64,
        _ => 0,
    };
    let info = String::from(match &change {
        SchemaChange::CreateIndex { .. } | SchemaChange::DropIndex { .. } => INDEX_INFO,
        _ => "",
    });
    match ask_main(engine, session, change, door) {
        Ok(operation) => {
            let step = SchemaStep::Changing { index, affected_rows, info };
            let waits = ChangeWait::Since(door.now);
            session.execution = Execution::Schema(Box::new(SchemaState { operation, step, waits }));
            Progress::Waiting
        }
        Err(error) => fail(session, &error, sink),
    }
}

/// Asks main as the session's settings have it.
fn ask_main(engine: &mut Engine, session: &Session, change: SchemaChange, door: &mut Door<'_>) -> Result<OperationId> {
    let wait_ms = session.variables.table_wait_seconds().saturating_mul(1000);
    let checks = session.variables.foreign_key_checks;
    engine.client.change_schema(session.connection, change, wait_ms, checks, door)
}

/// The change waits for nobody any more.
pub(crate) fn on_schema_started(session: &mut Session) {
    if let Execution::Schema(state) = &mut session.execution {
        state.waits = ChangeWait::Over;
    }
}

/// Main has answered.
pub(crate) fn on_schema_changed(
    engine: &mut Engine,
    session: &mut Session,
    notes: Vec<(u16, Box<str>)>,
    error: Option<Box<Error>>,
    door: &mut Door<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let Execution::Schema(state) = std::mem::take(&mut session.execution) else { return Progress::Waiting };
    engine.settle_table_locks(session, error.is_none());
    for (errno, message) in notes {
        session.warn(WarningLevel::Note, errno, message);
    }
    match (state.step, error) {
        (SchemaStep::Finishing { error: Some(cause) }, _) => fail(session, &cause, sink),
        (_, Some(error)) => fail(session, &error, sink),
        (SchemaStep::Changing { index: Some((table, name)), .. }, None) => {
            let layout = engine.client.catalog().dictionary.table(table).cloned();
            let index = layout.as_ref().and_then(|layout| layout.definition.index_named(&name)).map(|index| index.id);
            match layout.zip(index) {
                Some((layout, index)) => begin_fill(engine, session, layout, index, door, sink),
                None => fail(session, &index_is_gone(), sink),
            }
        }
        (SchemaStep::Changing { affected_rows, mut info, .. }, None) => {
            ok(session, Changed { affected_rows, info: Some(&mut info), ..Changed::default() }, sink)
        }
        (_, None) => ok(session, Changed { info: Some(&mut INDEX_INFO.into()), ..Changed::default() }, sink),
    }
}

/// The entries of an index are complete, or cannot be made.
pub(super) fn finish_fill(
    engine: &mut Engine,
    session: &mut Session,
    (table, index): (TableId, IndexId),
    end: FillEnd,
    door: &mut Door<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let (change, error) = match end {
        FillEnd::Complete => (SchemaChange::FinishIndex { table, index }, None),
        FillEnd::Failed(error) => (SchemaChange::DropIndex { table, index }, Some(error)),
    };
    match ask_main(engine, session, change, door) {
        Ok(operation) => {
            let step = SchemaStep::Finishing { error };
            let waits = ChangeWait::Since(door.now);
            session.execution = Execution::Schema(Box::new(SchemaState { operation, step, waits }));
            Progress::Waiting
        }
        Err(refusal) => fail(session, &error.unwrap_or(refusal), sink),
    }
}

pub(super) fn index_is_gone() -> Box<Error> {
    Error::new(ErrorCode::TableDefinitionChanged, "Table definition has changed, please retry transaction")
}
