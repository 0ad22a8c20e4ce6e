//! Schema changes. The session commits its open transaction, then asks the main block for the change.

use junctor_gateway::threads::Time;
use junctor_gateway::{Event, SchemaRequest};
use junctor_model::alteration::Alteration;
use junctor_model::id::TableId;
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::end_transaction::Ending;
use junctor_signals::read_rows::OperationId;

use super::completion::{ChangeCounts, fail, finish_ok};
use super::context::StatementContext;
use super::resume::unexpected;
use super::session::Session;
use super::state::Execution;
use super::transaction::{AfterTransactionEnd, start_ending};
use crate::mysql_catalog::show::WarningLevel;
use crate::result::Progress;

/// A schema change of the session. The main block carries it out.
#[derive(Debug)]
pub(crate) struct SchemaState {
    pub operation: OperationId,
    waits: ChangeWait,
    /// The table that the session alters.
    altered: Option<TableId>,
    affected_rows: u64,
    has_info: bool,
}

/// Whether a change waits for other sessions to stop using its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeWait {
    /// The change has been waiting since this time.
    Since(Time),
    /// The wait is over, or none was necessary.
    Over,
}

impl SchemaState {
    /// The time since which the change has been waiting for other sessions.
    pub(crate) fn waits_since(&self) -> Option<Time> {
        match self.waits {
            ChangeWait::Since(since) => Some(since),
            ChangeWait::Over => None,
        }
    }

    /// The table that the change alters, once the alteration has begun and while it does not wait.
    pub(crate) fn table_in_use(&self) -> Option<TableId> {
        self.altered.filter(|_| self.waits == ChangeWait::Over)
    }

    /// The text of the state in SHOW PROCESSLIST.
    pub(crate) fn name(&self) -> &'static str {
        match self.waits {
            ChangeWait::Since(_) => "Waiting for table metadata lock",
            ChangeWait::Over => "changing the schema",
        }
    }
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
    let affected_rows = match &change {
        SchemaChange::CreateDatabase { .. } | SchemaChange::AlterDatabase { .. } => 1,
        SchemaChange::DropDatabase { name, .. } => {
            context.engine.gateway.catalog().dictionary.tables_of(name).count() as u64
        }
        _ => 0,
    };
    let has_info = matches!(&change, SchemaChange::AlterTable { alteration, .. } if !only_renames(alteration));
    let altered = match &change {
        SchemaChange::AlterTable { table, .. } => Some(*table),
        _ => None,
    };
    let variables = &context.session.variables;
    let request = SchemaRequest {
        session: context.session.connection,
        change,
        wait_ms: variables.table_wait_seconds().saturating_mul(1000),
        lock_wait_ms: variables.lock_wait_seconds.saturating_mul(1000),
        foreign_key_checks: variables.foreign_key_checks,
    };
    match context.engine.gateway.change_schema(request, context.turn) {
        Ok(operation) => {
            let waits = ChangeWait::Since(context.turn.turn_start);
            let state = SchemaState { operation, waits, altered, affected_rows, has_info };
            context.session.execution = Execution::Schema(Box::new(state));
            Progress::Waiting
        }
        Err(error) => fail(context, &error),
    }
}

/// Whether an ALTER TABLE only renames or changes nothing. Its OK packet then counts no records.
fn only_renames(alteration: &Alteration) -> bool {
    Alteration { rename: None, needs_parents: false, ..alteration.clone() } == Alteration::default()
}

/// Writes the text of the OK packet of a change that has processed `rows` rows.
fn write_records_info(context: &mut StatementContext<'_, '_>, rows: u64) {
    use std::fmt::Write;
    let info = &mut context.engine.work.info;
    info.clear();
    // Writing to a String cannot fail.
    let _ = write!(info, "Records: {rows}  Duplicates: 0  Warnings: 0");
}

/// Records that the change begins or ends a wait for other sessions.
pub(crate) fn note_change_wait(session: &mut Session, waits: bool, now: Time) {
    if let Execution::Schema(state) = &mut session.execution {
        state.waits = if waits { ChangeWait::Since(now) } else { ChangeWait::Over };
    }
}

/// Ends a schema change with the main block's reply.
pub(super) fn resume_schema(context: &mut StatementContext<'_, '_>, state: SchemaState, event: Event) -> Progress {
    let Event::SchemaChanged { notes, rows, error, .. } = event else { unexpected("a schema change", &event) };
    add_notes(context.session, notes);
    context.engine.finish_table_locks(context.session, error.is_none());
    if let Some(error) = error {
        return fail(context, &error);
    }
    let SchemaState { affected_rows, has_info, .. } = state;
    if has_info {
        write_records_info(context, rows);
    }
    finish_ok(context, ChangeCounts { affected_rows: affected_rows + rows, has_info, ..ChangeCounts::default() })
}

fn add_notes(session: &mut Session, notes: Vec<(u16, Box<str>)>) {
    for (errno, message) in notes {
        session.warn(WarningLevel::Note, errno, message);
    }
}
