//! Schema changes. The session commits its open transaction, then asks the main block for the change.

use junctor_gateway::threads::Time;
use junctor_gateway::{Event, SchemaRequest};
use junctor_model::alteration::Alteration;
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::read_rows::OperationId;

use super::alter::{AlterationState, resume_alteration, start_alteration};
use super::completion::{ChangeCounts, fail, finish_ok};
use super::context::StatementContext;
use super::foreign_key_check::{ForeignKeyCheck, resume_check};
use super::index_backfill::{IndexBackfill, resume_backfill};
use super::resume::unexpected;
use super::session::Session;
use super::state::Execution;
use super::transaction::{AfterTransactionEnd, start_ending};
use crate::mysql_catalog::show::WarningLevel;
use crate::plan::TableUse;
use crate::result::Progress;
use junctor_signals::end_transaction::Ending;

/// A schema change of the session.
#[derive(Debug)]
pub(crate) struct SchemaState {
    pub operation: OperationId,
    pub step: SchemaStep,
    pub waits: ChangeWait,
}

/// Whether a change still waits for other sessions to stop using its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeWait {
    /// The change has been waiting since this time.
    Since(Time),
    /// The wait is over, or none was necessary.
    Over,
}

impl SchemaState {
    /// Whether the step waits for a reply of this operation.
    pub(super) fn awaits(&self, operation: OperationId) -> bool {
        match &self.step {
            SchemaStep::Filling(backfill) => backfill.awaits(operation),
            SchemaStep::Checking(check) => check.awaits(operation),
            SchemaStep::Changing { .. } | SchemaStep::Altering(_) => self.operation == operation,
        }
    }

    /// The table that the change uses, once it has begun.
    pub(crate) fn used_table(&self) -> Option<TableUse> {
        match &self.step {
            SchemaStep::Filling(backfill) => Some(TableUse { table: backfill.table(), writes: true }),
            SchemaStep::Checking(check) => Some(TableUse { table: check.table(), writes: true }),
            SchemaStep::Altering(altering) => altering.used_table(),
            SchemaStep::Changing { .. } => None,
        }
    }

    /// The time since which the change has been waiting for other sessions.
    pub(crate) fn waits_since(&self) -> Option<Time> {
        match self.waits {
            ChangeWait::Since(since) => Some(since),
            ChangeWait::Over => None,
        }
    }

    /// The change's number in the main block, if that block can still cancel it.
    pub(crate) fn cancellable(&self) -> Option<OperationId> {
        let is_first = match &self.step {
            SchemaStep::Changing { .. } => true,
            SchemaStep::Altering(altering) => altering.is_cancellable(),
            SchemaStep::Filling(_) | SchemaStep::Checking(_) => false,
        };
        (is_first && self.waits_since().is_some()).then_some(self.operation)
    }

    /// The text of the state in SHOW PROCESSLIST.
    pub(crate) fn name(&self) -> &'static str {
        match self.waits {
            ChangeWait::Since(_) => "Waiting for table metadata lock",
            ChangeWait::Over => "changing the schema",
        }
    }
}

/// The pending step of a schema change.
#[derive(Debug)]
pub(crate) enum SchemaStep {
    /// The main block applies the change.
    Changing { affected_rows: u64, has_info: bool },
    /// The main block applies a step of an alteration.
    Altering(Box<AlterationState>),
    /// The session makes the entries of a new unique index.
    Filling(Box<IndexBackfill>),
    /// The session checks that the rows of a new foreign key have parents.
    Checking(Box<ForeignKeyCheck>),
}

/// Starts a schema change by committing the open transaction.
pub(crate) fn start_schema_change(
    context: &mut StatementContext<'_, '_>,
    change: SchemaChange,
    notes: Vec<(u16, Box<str>)>,
) -> Progress {
    let after = AfterTransactionEnd::Schema { change: Box::new(change), notes };
    start_ending(context, Ending::Commit, after)
}

/// Asks the main block for the change. No transaction may be open.
pub(super) fn send_schema_change(
    context: &mut StatementContext<'_, '_>,
    change: SchemaChange,
    notes: Vec<(u16, Box<str>)>,
) -> Progress {
    if let SchemaChange::AlterTable { alteration, .. } = &change
        && alteration.rename.is_none()
        && only_renames(alteration)
    {
        // Main would wait for the lock that the session itself may hold.
        add_notes(context.session, notes);
        return finish_ok(context, ChangeCounts::default());
    }
    for (errno, message) in notes {
        context.session.warn(WarningLevel::Warning, errno, message);
    }
    let change = match change {
        SchemaChange::AlterTable { table, alteration } if alteration.has_session_work() => {
            return start_alteration(context, table, alteration);
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
            wait_for_main(context.session, operation, step, ChangeWait::Since(context.turn.turn_start))
        }
        Err(error) => fail(context, &error),
    }
}

/// Whether an ALTER TABLE only renames or changes nothing. Its OK packet then counts no records.
fn only_renames(alteration: &Alteration) -> bool {
    Alteration { rename: None, needs_parents: false, ..alteration.clone() } == Alteration::default()
}

/// Writes the text of the OK packet of a change that has processed `rows` rows.
pub(super) fn write_records_info(context: &mut StatementContext<'_, '_>, rows: u64) {
    use std::fmt::Write;
    let info = &mut context.engine.work.info;
    info.clear();
    // Writing to a String cannot fail.
    let _ = write!(info, "Records: {rows}  Duplicates: 0  Warnings: 0");
}

/// Suspends the session until the main block replies.
pub(super) fn wait_for_main(
    session: &mut Session,
    operation: OperationId,
    step: SchemaStep,
    waits: ChangeWait,
) -> Progress {
    session.execution = Execution::Schema(Box::new(SchemaState { operation, step, waits }));
    Progress::Waiting
}

/// Asks the main block for a change under the session's settings.
pub(super) fn ask_main(context: &mut StatementContext<'_, '_>, operation: OperationId, change: SchemaChange) {
    let wait_ms = context.session.variables.table_wait_seconds().saturating_mul(1000);
    let foreign_key_checks = context.session.variables.foreign_key_checks;
    let request = SchemaRequest { session: context.session.connection, change, wait_ms, foreign_key_checks };
    context.engine.gateway.change_schema(operation, request, context.turn);
}

/// Records that no other session uses the tables of the change any longer.
pub(crate) fn note_schema_started(session: &mut Session) {
    if let Execution::Schema(state) = &mut session.execution {
        state.waits = ChangeWait::Over;
    }
}

/// Continues a schema change with the main block's reply, or with a reply to the session's own work.
pub(super) fn resume_schema(context: &mut StatementContext<'_, '_>, state: SchemaState, event: Event) -> Progress {
    match (state.step, event) {
        (SchemaStep::Filling(backfill), event) => resume_backfill(context, *backfill, event),
        (SchemaStep::Checking(check), event) => resume_check(context, *check, event),
        (SchemaStep::Altering(altering), Event::SchemaChanged { notes, error, .. }) => {
            add_notes(context.session, notes);
            resume_alteration(context, *altering, error)
        }
        (SchemaStep::Changing { affected_rows, has_info }, Event::SchemaChanged { notes, error, .. }) => {
            add_notes(context.session, notes);
            context.engine.finish_table_locks(context.session, error.is_none());
            if let Some(error) = error {
                return fail(context, &error);
            }
            if has_info {
                write_records_info(context, 0);
            }
            finish_ok(context, ChangeCounts { affected_rows, has_info, ..ChangeCounts::default() })
        }
        (_, other) => unexpected("a schema change", &other),
    }
}

fn add_notes(session: &mut Session, notes: Vec<(u16, Box<str>)>) {
    for (errno, message) in notes {
        session.warn(WarningLevel::Note, errno, message);
    }
}
