//! Changes of the schema: the open transaction is committed, and main is asked.

use junctor_gateway::threads::Time;
use junctor_model::alteration::Alteration;
use junctor_model::error::Error;
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::read_rows::OperationId;

use super::alter::{Altering, begin_alteration, on_altered};
use super::check_rows::RowCheck;
use super::completion::{Changed, fail, ok};
use super::context::StatementContext;
use super::fill::Fill;
use super::state::Execution;
use super::transaction::{AfterEnding, end_transaction};
use crate::engine::TableUse;
use crate::mysql_catalog::show::WarningLevel;
use crate::result::Progress;
use crate::session::Session;
use junctor_signals::end_transaction::Ending;

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
    /// The table that the change keeps as it is, once it has begun.
    pub(crate) fn used_table(&self) -> Option<TableUse> {
        match &self.step {
            SchemaStep::Filling(fill) => Some(TableUse { table: fill.table(), writes: true }),
            SchemaStep::Checking(check) => Some(TableUse { table: check.table(), writes: true }),
            SchemaStep::Altering(altering) => altering.used_table(),
            SchemaStep::Changing { .. } => None,
        }
    }

    /// Since when the change waits for others.
    pub(crate) fn waits_since(&self) -> Option<Time> {
        match self.waits {
            ChangeWait::Since(since) => Some(since),
            ChangeWait::Over => None,
        }
    }

    /// The change as main knows it, if main may give it up.
    pub(crate) fn may_be_cancelled(&self) -> Option<OperationId> {
        let is_first = match &self.step {
            SchemaStep::Changing { .. } => true,
            SchemaStep::Altering(altering) => altering.may_be_cancelled(),
            SchemaStep::Filling(_) | SchemaStep::Checking(_) => false,
        };
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
    /// Main makes the change.
    Changing { affected_rows: u64, has_info: bool },
    /// Main does a step of an alteration.
    Altering(Box<Altering>),
    /// The entries of a new unique index are made.
    Filling(Box<Fill>),
    /// Rows are looked at for their parents.
    Checking(Box<RowCheck>),
}

/// Starts a change: commits first.
pub(crate) fn start_schema_change(
    context: &mut StatementContext<'_, '_>,
    change: SchemaChange,
    notes: Vec<(u16, Box<str>)>,
) -> Progress {
    let after = AfterEnding::Schema { change: Box::new(change), notes };
    end_transaction(context, Ending::Commit, after)
}

/// Asks main; no transaction is open.
pub(super) fn send_schema_change(
    context: &mut StatementContext<'_, '_>,
    change: SchemaChange,
    notes: Vec<(u16, Box<str>)>,
) -> Progress {
    for (errno, message) in notes {
        context.session.warn(WarningLevel::Warning, errno, message);
    }
    let change = match change {
        SchemaChange::AlterTable { table, alteration } if alteration.has_session_work() => {
            return begin_alteration(context, table, alteration);
        }
        other => other,
    };
    let affected_rows = match &change {
        SchemaChange::CreateDatabase { .. } => 1,
        SchemaChange::DropDatabase { name, .. } => {
            context.engine.gateway.catalog().dictionary.tables_of(name).count() as u64
        }
        _ => 0,
    };
    let has_info = matches!(&change, SchemaChange::AlterTable { alteration, .. } if !only_renames(alteration));
    match context.engine.gateway.open_schema(context.session.connection, false) {
        Ok(operation) => {
            ask_main(context, operation, change);
            let step = SchemaStep::Changing { affected_rows, has_info };
            wait_for_main(context.session, operation, step, ChangeWait::Since(context.turn.now))
        }
        Err(error) => fail(context, &error),
    }
}

/// Whether an ALTER TABLE does nothing but RENAME, or nothing at all, which says nothing of rows.
fn only_renames(alteration: &Alteration) -> bool {
    Alteration { rename: None, needs_parents: false, ..alteration.clone() } == Alteration::default()
}

/// What clients are told of a change that looked at so many rows.
pub(super) fn write_records_info(context: &mut StatementContext<'_, '_>, rows: u64) {
    use std::fmt::Write;
    let info = &mut context.engine.work.info;
    info.clear();
    // Writing to a String cannot fail.
    let _ = write!(info, "Records: {rows}  Duplicates: 0  Warnings: 0");
}

/// The session waits for main.
pub(super) fn wait_for_main(
    session: &mut Session,
    operation: OperationId,
    step: SchemaStep,
    waits: ChangeWait,
) -> Progress {
    session.execution = Execution::Schema(Box::new(SchemaState { operation, step, waits }));
    Progress::Waiting
}

/// Asks main as the session's settings have it.
pub(super) fn ask_main(context: &mut StatementContext<'_, '_>, operation: OperationId, change: SchemaChange) {
    let wait_ms = context.session.variables.table_wait_seconds().saturating_mul(1000);
    let checks = context.session.variables.foreign_key_checks;
    context.engine.gateway.change_schema(operation, context.session.connection, change, wait_ms, checks, context.turn);
}

/// The change waits for nobody any more.
pub(crate) fn on_schema_started(session: &mut Session) {
    if let Execution::Schema(state) = &mut session.execution {
        state.waits = ChangeWait::Over;
    }
}

/// Main has answered.
pub(crate) fn on_schema_changed(
    context: &mut StatementContext<'_, '_>,
    notes: Vec<(u16, Box<str>)>,
    error: Option<Box<Error>>,
) -> Progress {
    let Execution::Schema(state) = std::mem::take(&mut context.session.execution) else { return Progress::Waiting };
    for (errno, message) in notes {
        context.session.warn(WarningLevel::Note, errno, message);
    }
    match (state.step, error) {
        (SchemaStep::Altering(altering), error) => on_altered(context, *altering, error),
        (_, Some(error)) => {
            context.engine.settle_table_locks(context.session, false);
            fail(context, &error)
        }
        (SchemaStep::Changing { affected_rows, has_info }, None) => {
            context.engine.settle_table_locks(context.session, true);
            if has_info {
                write_records_info(context, 0);
            }
            ok(context, Changed { affected_rows, has_info, ..Changed::default() })
        }
        (step, None) => {
            // Main is asked for nothing while these run.
            context.session.execution = Execution::Schema(Box::new(SchemaState { step, ..*state }));
            Progress::Waiting
        }
    }
}

pub(super) fn index_is_gone() -> Box<Error> {
    Error::table_definition_changed()
}
