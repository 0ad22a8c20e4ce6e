//! Schema changes. The session commits its open transaction, then asks the main block for the change.

use std::sync::Arc;

use junctor_gateway::threads::Time;
use junctor_gateway::{Event, SchemaRequest};
use junctor_model::access::AccountName;
use junctor_model::alteration::Alteration;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::TableId;
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::end_transaction::Ending;
use junctor_signals::program::RowProtocol;
use junctor_signals::read_rows::OperationId;

use super::completion::{ChangeCounts, fail, finish_ok, send_table};
use super::context::StatementContext;
use super::engine::Engine;
use super::resume::unexpected;
use super::retry::{RetryInput, RetryState};
use super::session::Session;
use super::state::Execution;
use super::transaction::{AfterTransactionEnd, start_ending};
use crate::access::AccountUsage;
use crate::mysql_catalog::show::{VirtualTable, WarningLevel};
use crate::parse::Statement;
use crate::parse::account::AccountStatement;
use crate::plan::QueryPlan;
use crate::result::Progress;

/// Multiplier of the numbers of private keys: odd and without a pattern, so that a key is never that of other
/// settings.
const PRIVATE_KEY_FACTOR: u64 = 0xD6E8_FEB8_6659_FD93;

/// How often a statement is repeated because others have changed the accounts or the table meanwhile.
const TRIES_MAX: u32 = 1000;

/// Warnings or notes, as (errno, message).
type Notes = Vec<(u16, Box<str>)>;

/// A schema change of the session. The main block carries it out.
#[derive(Debug)]
pub(crate) struct SchemaState {
    pub operation: OperationId,
    waits: ChangeWait,
    /// The table that the session alters.
    altered: Option<TableId>,
    affected_rows: u64,
    has_info: bool,
    /// Whether the change is one of the session's own tables.
    is_own: bool,
    then: AfterSchemaChange,
}

/// The action that follows a schema change.
#[derive(Debug)]
pub(crate) enum AfterSchemaChange {
    /// The statement's answer.
    Answer,
    /// The answer of a statement that alters a table; or the statement again, if others have changed the
    /// table meanwhile.
    Alter(Box<DefinitionRetry>),
    /// Another change.
    Change(Box<SchemaChange>),
    /// The rows of a query are inserted into the new table.
    Fill(Box<FillTable>),
    /// The answer of a CREATE TABLE ... SELECT: counts, and the text for the client.
    Filled(FilledTable, ChangeCounts, String),
    /// The error for which a CREATE TABLE ... SELECT is undone.
    Fail(Box<Error>),
    /// The answer of a statement about accounts, with its rows; or the statement again, if others have
    /// changed the accounts meanwhile.
    Access(Box<(AccessRetry, AccessOutcome)>),
}

/// What follows a change of accounts that has succeeded.
#[derive(Debug, Default)]
pub(crate) struct AccessOutcome {
    /// The rows of the answer.
    pub rows: Option<VirtualTable>,
    /// Accounts whose figures begin again.
    pub recounted: Vec<AccountName>,
    /// Accounts whose locks after failed logins end.
    pub unlocked: Vec<AccountName>,
}

impl AccessOutcome {
    fn apply(&self, usage: &AccountUsage) {
        for name in &self.recounted {
            usage.reset_account(name);
        }
        if !self.unlocked.is_empty() {
            usage.failed_logins().unlock(|name| self.unlocked.contains(name));
        }
    }
}

/// A statement about accounts, for a repetition.
#[derive(Debug)]
pub(crate) struct AccessRetry {
    pub statement: Arc<AccountStatement>,
    pub protocol: RowProtocol,
    /// How often others have changed the accounts meanwhile.
    pub tries: u32,
}

/// A statement that alters a table, for a repetition.
#[derive(Debug)]
pub(crate) struct DefinitionRetry {
    pub statement: Statement,
    /// How often others have changed the table meanwhile.
    pub tries: u32,
    /// The counts of warnings and of errors, and the number of diagnostics, before the statement's own.
    pub noted: (u16, u16, usize),
}

/// A CREATE TABLE ... SELECT whose table is being created.
#[derive(Debug)]
pub(crate) struct FillTable {
    /// The database and the name of the table.
    pub name: (Box<str>, Box<str>),
    pub is_temporary: bool,
    pub query: QueryPlan,
    pub ignores: bool,
    pub replaces: bool,
    /// The statement's parameters.
    pub parameters: Vec<u8>,
}

/// The table that a CREATE TABLE ... SELECT fills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilledTable {
    pub table: TableId,
    pub is_temporary: bool,
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

    /// Whether other sessions may have to finish their use of tables first, or rows may have to be read. No
    /// other session uses the own tables of the session.
    pub(crate) fn may_take_long(&self) -> bool {
        !self.is_own || self.altered.is_some()
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
    let after = AfterTransactionEnd::Schema {
        change: Box::new(change),
        notes,
        existence_notes: Vec::new(),
        then: AfterSchemaChange::Answer,
    };
    start_ending(context, Ending::Commit, after)
}

/// Starts a change of accounts by committing the open transaction.
pub(crate) fn start_access_change(
    context: &mut StatementContext<'_, '_>,
    change: SchemaChange,
    then: AfterSchemaChange,
) -> Progress {
    let after =
        AfterTransactionEnd::Schema { change: Box::new(change), notes: Vec::new(), existence_notes: Vec::new(), then };
    start_ending(context, Ending::Commit, after)
}

/// Asks the main block for the change. No transaction may be open, unless the change is one of the session's
/// own tables. `notes` are warnings.
pub(crate) fn send_schema_change(
    context: &mut StatementContext<'_, '_>,
    change: SchemaChange,
    (notes, existence_notes): (Notes, Notes),
    then: AfterSchemaChange,
) -> Progress {
    add_notes(context.session, existence_notes);
    if let SchemaChange::AlterTable { alteration, .. } = &change
        && alteration.rename.is_none()
        && only_renames(alteration)
    {
        // Main would wait for the lock that the session itself may hold.
        add_notes(context.session, notes);
        return finish_ok(context, ChangeCounts::default());
    }
    for (errno, message) in notes {
        let level = if NOTES.contains(&errno) { WarningLevel::Note } else { WarningLevel::Warning };
        context.session.warn(level, errno, message);
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
    let is_own = match &change {
        SchemaChange::CreateOwnTable { .. } | SchemaChange::DropOwnTables { .. } => true,
        SchemaChange::AlterTable { table, .. } => context
            .engine
            .gateway
            .catalog()
            .dictionary
            .table(*table)
            .is_some_and(|layout| layout.definition.is_temporary()),
        _ => false,
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
            let state = SchemaState { operation, waits, altered, affected_rows, has_info, is_own, then };
            context.session.execution = Execution::Schema(Box::new(state));
            Progress::Waiting
        }
        Err(error) => fail(context, &error),
    }
}

/// Whether an ALTER TABLE only renames or changes nothing. Its OK packet then counts no records.
fn only_renames(alteration: &Alteration) -> bool {
    Alteration { rename: None, needs_parents: false, planned_for: None, ..alteration.clone() } == Alteration::default()
}

/// Writes the text of the OK packet of a change that has processed `rows` rows.
fn write_records_info(context: &mut StatementContext<'_, '_>, rows: u64) {
    use std::fmt::Write;
    let warnings = context.session.warning_count;
    let info = &mut context.engine.work.info;
    info.clear();
    // Writing to a String cannot fail.
    let _ = write!(info, "Records: {rows}  Duplicates: 0  Warnings: {warnings}");
}

/// Records that the change begins or ends a wait for other sessions.
pub(crate) fn note_change_wait(session: &mut Session, waits: bool, now: Time) {
    if let Execution::Schema(state) = &mut session.execution {
        state.waits = if waits { ChangeWait::Since(now) } else { ChangeWait::Over };
    }
}

/// Ends a schema change with the main block's reply.
pub(super) fn resume_schema(context: &mut StatementContext<'_, '_>, state: SchemaState, event: Event) -> Progress {
    let Event::SchemaChanged { notes, rows, diagnostics, error, .. } = event else {
        unexpected("a schema change", &event)
    };
    add_notes(context.session, notes);
    if let Some(diagnostics) = diagnostics {
        context.session.note_diagnostics(WarningLevel::Warning, *diagnostics);
    }
    if state.is_own {
        context.engine.note_own_tables(context.session);
    } else {
        context.engine.finish_table_locks(context.session, error.is_none());
    }
    let error = match (state.then, error) {
        (AfterSchemaChange::Access(access), Some(error)) => {
            let (retry, _) = *access;
            if error.code != ErrorCode::TableDefinitionChanged || retry.tries >= TRIES_MAX {
                return fail(context, &error);
            }
            context.session.execution = Execution::Retry(Box::new(RetryState::of_input(RetryInput::Access(retry))));
            return Progress::Waiting;
        }
        (AfterSchemaChange::Access(access), None) => {
            let (retry, outcome) = *access;
            outcome.apply(&context.engine.settings.usage);
            return match outcome.rows {
                Some(table) => send_table(context, table, retry.protocol),
                None => finish_ok(context, ChangeCounts::default()),
            };
        }
        (AfterSchemaChange::Alter(retry), Some(error)) => {
            let is_over = retry.tries >= TRIES_MAX || context.session.interrupted;
            if error.code != ErrorCode::TableDefinitionChanged || is_over {
                return fail(context, &error);
            }
            let (warnings, errors, diagnostics) = retry.noted;
            (context.session.warning_count, context.session.error_count) = (warnings, errors);
            context.session.diagnostics.truncate(diagnostics);
            context.session.execution = Execution::Retry(Box::new(RetryState::of_input(RetryInput::Definition(retry))));
            return Progress::Waiting;
        }
        (AfterSchemaChange::Fail(error), _) => Some(error),
        (AfterSchemaChange::Filled(filled, ..), Some(error)) => return undo_creation(context, filled, error),
        (_, Some(error)) => Some(error),
        (AfterSchemaChange::Answer | AfterSchemaChange::Alter(_), None) => None,
        (AfterSchemaChange::Change(change), None) => {
            return send_schema_change(context, *change, Default::default(), AfterSchemaChange::Answer);
        }
        (AfterSchemaChange::Fill(fill), None) => {
            context.session.execution = Execution::Retry(Box::new(RetryState::of_input(RetryInput::Fill(fill))));
            return Progress::Waiting;
        }
        (AfterSchemaChange::Filled(_, counts, info), None) => {
            context.engine.work.info = info;
            return finish_ok(context, counts);
        }
    };
    if let Some(error) = error {
        return fail(context, &error);
    }
    let SchemaState { affected_rows, has_info, .. } = state;
    if has_info {
        write_records_info(context, rows);
    }
    finish_ok(context, ChangeCounts { affected_rows: affected_rows + rows, has_info, ..ChangeCounts::default() })
}

/// Continues a CREATE TABLE ... SELECT whose rows are inserted and committed. The text for the client is in
/// the workspace.
pub(super) fn finish_filled(
    context: &mut StatementContext<'_, '_>,
    filled: FilledTable,
    counts: ChangeCounts,
) -> Progress {
    if filled.is_temporary {
        return finish_ok(context, counts);
    }
    let then = AfterSchemaChange::Filled(filled, counts, std::mem::take(&mut context.engine.work.info));
    send_schema_change(context, SchemaChange::FinishTable { table: filled.table }, Default::default(), then)
}

/// Drops the table of a CREATE TABLE ... SELECT that has failed with this error.
pub(crate) fn undo_creation(
    context: &mut StatementContext<'_, '_>,
    filled: FilledTable,
    error: Box<Error>,
) -> Progress {
    let change = SchemaChange::DropOwnTables { tables: vec![filled.table] };
    send_schema_change(context, change, Default::default(), AfterSchemaChange::Fail(error))
}

impl Engine {
    /// Must be called when the session's temporary tables have changed: its plans are then others.
    fn note_own_tables(&mut self, session: &mut Session) {
        let mut own = self.gateway.catalog().dictionary.tables_owned_by(session.owner);
        session.private_key = match own.any(|layout| layout.definition.is_temporary()) {
            true => {
                self.private_count += 1;
                self.private_count.wrapping_mul(PRIVATE_KEY_FACTOR)
            }
            false => 0,
        };
    }
}

/// What MySQL notes of a definition, rather than warns of: a converted column, a repeated member.
const NOTES: [u16; 2] = [1246, 1291];

fn add_notes(session: &mut Session, notes: Vec<(u16, Box<str>)>) {
    for (errno, message) in notes {
        session.warn(WarningLevel::Note, errno, message);
    }
}
