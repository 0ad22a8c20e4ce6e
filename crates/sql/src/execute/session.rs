//! The state of one session: its transaction, variables, diagnostics and execution state.

use std::collections::BTreeMap;

use junctor_expression::Scratch;
use junctor_gateway::Transaction;
use junctor_gateway::threads::Time;
use junctor_gateway::transaction::Isolation;
use junctor_model::access::AccountName;
use junctor_model::collation::CharacterSet;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{ConnectionId, Epoch, TableOwner};
use junctor_model::value::Value;
use junctor_signals::diagnostics::{self, Diagnostics};
use junctor_signals::program::RowProtocol;

use super::identity::Identity;
use super::into::Cursor;
use super::key_read::KeyReader;
use super::lock_tables::TableLocks;
use super::numbers::InsertId;
use super::retry::KeptInput;
use super::savepoint::Savepoint;
use super::state::Execution;
use super::track_transaction::TransactionTracker;
use crate::mysql_catalog::variable::{HighPriorityMode, QueryAttribute, find};
use crate::parse::{Deprecation, Dialect};
use junctor_gateway::Agreed;

use crate::mysql_catalog::show::{Warning, WarningLevel};
use crate::mysql_catalog::variable::{Note, SessionVariables};
use crate::plan::{DigestNumber, OperationKind, PreparedStatements, TableUse};
use crate::result::{Completion, StateChange};

/// The properties of a session that its login determines.
#[derive(Clone, Copy, Debug)]
pub struct SessionOpening<'a> {
    /// The connection's number, which is also the session's.
    pub connection: ConnectionId,
    /// The user name of the login.
    pub user: &'a str,
    /// The client's address, as text.
    pub host: &'a str,
    /// The account that the client has proven.
    pub account: &'a AccountName,
    /// Whether the session may only change its password.
    pub is_expired: bool,
    /// The initial database.
    pub database: Option<&'a str>,
    /// Whether an UPDATE reports the rows found, instead of the rows changed, as affected
    /// (CLIENT_FOUND_ROWS).
    pub found_rows: bool,
    /// Whether a text may contain several statements (CLIENT_MULTI_STATEMENTS).
    pub multi_statements: bool,
    /// Number of the client's collation.
    pub character_set: u16,
    /// The encoding of rows for statements that arrive as text.
    pub text_protocol: RowProtocol,
    /// Whether `interactive_timeout` applies instead of `wait_timeout` (CLIENT_INTERACTIVE).
    pub is_interactive: bool,
    /// Whether OK packets report changes of the session's state (CLIENT_SESSION_TRACK).
    pub tracks_state: bool,
    /// The parameters of the connection's TLS; `None` without TLS.
    pub tls: Option<Agreed>,
    /// The name of the connection's compressor; `None` without compression.
    pub compression: Option<&'static str>,
}

/// The state of a session. Thousands of sessions do not fit into the CPU's caches, so the fields that every
/// statement needs come first and share few cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Session {
    pub(crate) connection: ConnectionId,
    /// Byte offset in the command's text of the statements after the current one; 0 if none follow.
    pub(crate) next_statement_at: u32,
    /// The number of the open or last transaction of this session, counted from 1.
    pub(crate) transaction_number: u32,
    pub(crate) next_prepared_number: u32,
    /// Number of steps that the session's statements have requested from the gateway (`request_step`).
    pub(crate) steps_requested: u64,
    pub(crate) warning_count: u16,
    pub(crate) error_count: u16,
    /// Whether a transaction of several statements is open.
    pub(crate) is_open: bool,
    /// Whether the open transaction refuses writes.
    pub(crate) is_read_only: bool,
    /// Whether the client has disconnected; KILL does not set this. The current statement then ends without
    /// an answer.
    pub(crate) interrupted: bool,
    /// Whether the connection closes after the current statement, because of KILL or a time limit.
    pub(crate) is_closing: bool,
    /// Whether the current statement counts in the limits of its account already. It may start again.
    pub(crate) is_counted: bool,
    /// The error of the current statement in place of 1317, if the connection closes because of a time limit.
    pub(crate) closing_reason: Option<Box<Error>>,
    /// Whether KILL arrived too late to stop the current statement and must stop the statements after it.
    /// Whether a tree of operators holds the snapshot that its reads share.
    pub(crate) shares_snapshot: bool,
    pub(crate) next_statements_stopped: bool,
    /// Whether a text may contain several statements.
    pub(crate) multi_statements: bool,
    pub(crate) found_rows_wanted: bool,
    pub(crate) is_interactive: bool,
    /// Whether GET_LOCK has succeeded, so that locks must be released at the end of the session.
    pub(crate) holds_user_locks: bool,
    /// The encoding of rows for statements that arrive as text.
    pub(crate) text_protocol: RowProtocol,
    /// The kind of the current statement, under which its latency is recorded.
    pub(crate) operation: OperationKind,
    /// Whether the current statement has failed.
    pub(crate) has_failed: bool,
    /// The digest under which the current statement counts.
    pub(crate) digest: DigestNumber,
    /// The number of the prepared statement for which the next query opens a cursor; 0 for none.
    pub(crate) cursor_wanted: u32,
    pub(crate) statements: PreparedStatements,
    /// The version of the statistics whose plans the prepared statements have.
    pub(crate) statistics_version: u64,
    /// Identifies the session's rights within its sql block: a plan that has this number may be executed. 0
    /// if they must be looked up first, or if each statement is checked.
    pub(crate) rights_number: u64,
    /// The argument of LAST_INSERT_ID(expression) in the current statement, for its OK packet.
    pub(crate) insert_id_argument: Option<u64>,
    pub(crate) row_count: i64,
    pub(crate) found_rows: u64,
    pub(crate) last_insert_id: u64,
    pub(crate) insert_id: InsertId,
    /// The numbers of the statements of PREPARE, by their names in lower case.
    pub(crate) named_statements: BTreeMap<Box<str>, u32>,
    /// When the query reaches its time limit. The next statement clears it.
    pub(crate) query_deadline: Option<Time>,
    /// The session's entry in the engine's `query_limits`.
    pub(crate) limit_entry: Option<Time>,
    /// A random number that each execution draws, for RAND() and UUID().
    pub(crate) seed: u64,
    pub(crate) database: Option<Box<str>>,
    /// The table locks that LOCK TABLES holds or requests.
    pub(crate) table_locks: Option<Box<TableLocks>>,
    pub(crate) transaction: Transaction,
    pub(crate) variables: SessionVariables,
    pub(crate) execution: Execution,
    /// The tables that the open transaction has used.
    pub(crate) tables: Vec<TableUse>,
    /// The `BlockingChange::number` of this sql block's newest schema change at the time when the transaction
    /// first used a table.
    pub(crate) tables_since: u64,
    /// The last epoch of the membership because of which a statement started again, and how often.
    pub(crate) repeated_in: (Epoch, u8),
    pub(crate) kept_input: KeptInput,
    /// Distinguishes the plans of a session with temporary tables from all others; 0 without such tables.
    pub(crate) private_key: u64,
    /// The savepoints, in the order in which they were set.
    pub(crate) savepoints: Vec<Savepoint>,
    pub(crate) diagnostics: Vec<Warning>,
    /// Whether OK packets report changes of the session's state.
    pub(crate) tracks_state: bool,
    /// The parameters of the connection's TLS; `None` without TLS.
    pub(crate) tls: Option<Agreed>,
    /// The name of the connection's compressor; `None` without compression.
    pub(crate) compression: Option<&'static str>,
    /// The changes that the next OK packet reports.
    pub(crate) state_changes: Vec<StateChange>,
    /// The variables that SET_VAR has set for the current statement.
    pub(crate) hinted: Option<Box<HintedVariables>>,
    /// The transaction, for a client that wants to know it.
    pub(crate) tracker: Option<Box<TransactionTracker>>,
    /// The query attributes of the current command.
    pub(crate) query_attributes: Option<Box<QueryAttributes>>,
    /// The open cursors of prepared statements.
    pub(crate) cursors: Vec<Cursor>,
    /// Key readers by the numbers that the client chose.
    pub(crate) key_readers: BTreeMap<u32, Box<KeyReader>>,
    pub(crate) user: Box<str>,
    pub(crate) host: Box<str>,
    /// The account, and what it may do.
    pub(crate) identity: Box<Identity>,
    /// The number under which the session's own tables are found.
    pub(crate) owner: TableOwner,
}

/// The query attributes of a command. Few commands have some, so a session has only a pointer.
#[derive(Debug)]
pub(crate) struct QueryAttributes(pub Vec<QueryAttribute>);

/// The variables before a statement with SET_VAR.
#[derive(Debug)]
pub(crate) struct HintedVariables {
    pub before: SessionVariables,
    /// The variable `insert_id` before the statement, if a hint has set it.
    pub insert_id: Option<InsertId>,
    /// The numbers and texts of the warnings of the hints.
    pub warnings: Vec<Note>,
}

// Thousands of idle sessions must fit into memory.
const _: () = assert!(size_of::<Session>() <= 1024);

impl Session {
    /// The number of the session's connection.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Notes that the connection closes after the current statement. A client that is sending a file is then
    /// not waited for. If the statement is stopped, it fails with `reason`.
    pub fn note_closing(&mut self, reason: Option<Error>) {
        self.is_closing = true;
        self.closing_reason = reason.map(Box::new);
    }

    /// `'user'@'host'` in errors about tables and columns.
    pub(crate) fn who(&self) -> String {
        format!("'{}'@'{}'", self.identity.account.user, self.host)
    }

    /// The account that the client has proven.
    pub fn account(&self) -> &AccountName {
        &self.identity.account
    }

    /// The rights of accounts have changed, so those of the session are looked up before its next statement.
    pub fn forget_rights(&mut self) {
        self.rights_number = 0;
        self.identity.rights = None;
    }

    /// The session's transaction, for calls of the gateway.
    pub fn transaction_mut(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Whether this is the step that the session has requested last. Earlier requests belong to statements
    /// that were killed.
    pub fn awaits_step(&self, step: u64) -> bool {
        step == self.steps_requested
    }

    /// Whether the data plane holds locks or uncommitted rows of the session, for which other sessions may
    /// wait.
    pub fn holds_locks(&self) -> bool {
        self.transaction.has_begun()
    }

    /// The status of an OK packet without row count, insert id and text.
    pub fn completion(&self) -> Completion {
        Completion {
            warnings: self.warning_count,
            autocommit: self.variables.autocommit,
            in_transaction: self.is_open,
            has_more: self.next_statement_at != 0,
            results: self.variables.character_set_results,
            no_backslash_escapes: self.variables.dialect().no_backslash_escapes,
            ..Completion::default()
        }
    }

    /// Sets the state of the statement. The state before is mostly `Idle`, whose drop would cost a call.
    #[inline]
    pub(crate) fn set_execution(&mut self, execution: Execution) {
        match self.execution {
            Execution::Idle => std::mem::forget(std::mem::replace(&mut self.execution, execution)),
            _ => self.execution = execution,
        }
    }

    /// Sets the query attributes of the command that is executed next.
    #[inline]
    pub fn set_query_attributes(&mut self, attributes: Vec<QueryAttribute>) {
        if self.query_attributes.is_some() || !attributes.is_empty() {
            self.query_attributes = (!attributes.is_empty()).then(|| Box::new(QueryAttributes(attributes)));
        }
    }

    /// The character set of the client's texts (`character_set_client`).
    #[inline]
    pub fn client_character_set(&self) -> CharacterSet {
        self.variables.character_set_client
    }

    /// Whether statements follow the current or last one in the same text.
    #[inline]
    pub fn has_more_statements(&self) -> bool {
        self.next_statement_at != 0
    }

    /// Whether a text may contain several statements.
    pub fn allows_multi_statements(&self) -> bool {
        self.multi_statements
    }

    /// Whether the session waits for a table, for another sql block, or for a change of the schema that may
    /// take long. During that time it holds no admission ticket.
    #[inline]
    pub fn waits_for_tables(&self) -> bool {
        match &self.execution {
            Execution::Tables(_) | Execution::Lent(_) => true,
            Execution::Schema(state) => state.may_take_long(),
            _ => false,
        }
    }

    /// The user name of the login.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The client's address, as text.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Idle time in seconds after which the connection is closed.
    pub fn wait_timeout_s(&self) -> u32 {
        self.variables.wait_timeout_s
    }

    /// Seconds that the session waits for its client in a command: `net_read_timeout` for a part of a file,
    /// `net_write_timeout` until it reads.
    pub fn net_timeout_s(&self, is_read: bool) -> u32 {
        let name = if is_read { "net_read_timeout" } else { "net_write_timeout" };
        match find(name).map(|id| self.variables.value(id)) {
            Some(Value::UInt(seconds)) => u32::try_from(seconds).unwrap_or(u32::MAX),
            _ => u32::MAX,
        }
    }

    /// `thread_pool_high_prio_mode`.
    #[inline]
    pub fn high_priority_mode(&self) -> HighPriorityMode {
        self.variables.high_priority_mode
    }

    /// `thread_pool_high_prio_tickets`.
    #[inline]
    pub fn high_priority_tickets(&self) -> u32 {
        self.variables.high_priority_tickets
    }

    /// Maximum age of a transaction in seconds; its connection is then closed. 0 means no limit.
    pub fn transaction_timeout_s(&self) -> u32 {
        self.variables.transaction_timeout_s
    }

    /// The number of the open transaction within this session; `None` if none is open.
    pub fn open_transaction(&self) -> Option<u32> {
        self.is_open.then_some(self.transaction_number)
    }

    /// The text of a prepared statement, truncated to 4,096 bytes.
    pub fn statement_text(&self, statement: u32) -> Option<&[u8]> {
        self.statements.get(statement).map(|statement| &*statement.text)
    }

    /// The session's default database.
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// How the session's texts are read.
    pub fn dialect(&self) -> Dialect {
        self.variables.dialect()
    }

    /// `long_query_time` in microseconds.
    pub fn long_query_us(&self) -> u64 {
        self.variables.long_query_us()
    }

    /// Number of rows of the last statement's answer.
    pub fn rows_sent(&self) -> u64 {
        if self.row_count == -1 && self.last_error() == 0 { self.found_rows } else { 0 }
    }

    /// LAST_INSERT_ID() after the last statement.
    pub fn last_insert_id(&self) -> u64 {
        self.last_insert_id
    }

    /// The number of the error with which the last statement failed; 0 if it did not.
    pub fn last_error(&self) -> u16 {
        let error = self.diagnostics.iter().find(|warning| warning.level == WarningLevel::Error);
        error.map_or(0, |warning| warning.code)
    }

    /// Removes the diagnostics of the previous statement.
    #[inline]
    pub(crate) fn clear_diagnostics(&mut self) {
        self.diagnostics.clear();
        self.warning_count = 0;
        self.error_count = 0;
        // A statement that starts again may have failed before.
        self.has_failed = false;
        self.insert_id_argument = None;
    }

    /// Whether the previous statement has left diagnostics that must be removed.
    #[inline]
    pub(crate) fn has_diagnostics(&self) -> bool {
        self.warning_count != 0 || self.insert_id_argument.is_some()
    }

    /// Adds a warning. Notes are dropped unless `sql_notes` is on.
    pub(crate) fn warn(&mut self, level: WarningLevel, code: u16, message: Box<str>) {
        if level == WarningLevel::Note && !self.variables.takes_notes {
            return;
        }
        self.warning_count = self.warning_count.saturating_add(1);
        self.keep_diagnostic(Warning { level, code, message });
    }

    /// Warns of deprecated syntax.
    pub(crate) fn warn_of(&mut self, deprecations: &[Deprecation]) {
        for deprecation in deprecations {
            self.warn(WarningLevel::Warning, deprecation.code().errno(), deprecation.text().into());
        }
    }

    /// Adds the diagnostics of evaluated rows. Warnings without text are only counted.
    #[cold]
    pub(crate) fn note_diagnostics(&mut self, level: WarningLevel, diagnostics: Diagnostics) {
        let Diagnostics { warnings, count, last_insert_id } = diagnostics;
        if let Some(number) = last_insert_id {
            self.last_insert_id = number;
            self.insert_id_argument = last_insert_id;
        }
        if level == WarningLevel::Note && !self.variables.takes_notes {
            return;
        }
        let untold = count.saturating_sub(warnings.len() as u64);
        for warning in warnings {
            let is_note = warning.code == ErrorCode::TruncationNote;
            self.warn(if is_note { WarningLevel::Note } else { level }, warning.code.errno(), warning.message);
        }
        self.warning_count = self.warning_count.saturating_add(u16::try_from(untold).unwrap_or(u16::MAX));
    }

    /// Adds the diagnostics of expressions that this block has evaluated.
    #[inline]
    pub(crate) fn note_evaluated(&mut self, level: WarningLevel, scratch: &mut Scratch) {
        if let Some(diagnostics) = diagnostics::take(scratch) {
            self.note_diagnostics(level, *diagnostics);
        }
        if scratch.has_assigned() {
            self.keep_assigned(scratch);
        }
    }

    #[cold]
    fn keep_assigned(&mut self, scratch: &mut Scratch) {
        for (name, value) in scratch.take_assigned() {
            if let Err(error) = self.variables.put_user_variable(&name, value) {
                self.warn(WarningLevel::Warning, error.code.errno(), error.message);
            }
        }
    }

    /// Adds the error of the failed statement to the diagnostics.
    pub(crate) fn note_error(&mut self, error: &Error) {
        self.warning_count = self.warning_count.saturating_add(1);
        self.error_count = self.error_count.saturating_add(1);
        self.row_count = -1;
        let message = error.message.clone();
        self.keep_diagnostic(Warning { level: WarningLevel::Error, code: error.code.errno(), message });
    }

    fn keep_diagnostic(&mut self, diagnostic: Warning) {
        if self.diagnostics.len() < usize::from(self.variables.warnings_max) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Ends the transaction. From then on each statement commits by itself, unless autocommit is off.
    pub(crate) fn transaction_ended(&mut self) {
        self.is_open = false;
        self.savepoints.clear();
        self.tables.clear();
        self.transaction.explicit = !self.variables.autocommit;
        if let Some(tracker) = &mut self.tracker {
            tracker.end();
        }
    }

    /// Begins a transaction of several statements.
    pub(crate) fn begin_transaction(&mut self, read_only: Option<bool>) {
        if let Some(tracker) = &mut self.tracker {
            let (isolation, access) = self.variables.next_choices();
            tracker.begin((isolation, read_only.or(access)));
        }
        let characteristics = self.variables.begin_transaction();
        self.transaction_number = self.transaction_number.wrapping_add(1);
        self.is_open = true;
        self.is_read_only = read_only.unwrap_or(characteristics.read_only);
        self.transaction.explicit = true;
        self.transaction.isolation = characteristics.isolation.isolation();
    }

    /// Begins another transaction with the characteristics of the previous one.
    pub(crate) fn chain_transaction(&mut self) {
        self.is_open = true;
        self.transaction.explicit = true;
        if let Some(tracker) = &mut self.tracker {
            tracker.begin_explicitly(false);
        }
    }

    /// Must be called before a statement that uses tables. With autocommit off, the first such statement
    /// begins a transaction; otherwise each statement is a transaction by itself.
    #[inline]
    pub(crate) fn enter_statement(&mut self) {
        if self.is_open {
            return;
        }
        match self.variables.autocommit {
            true => self.transaction.isolation = self.variables.begin_transaction().isolation.isolation(),
            false => self.begin_transaction(None),
        }
    }

    /// As [`Self::end_hinted`], for a statement that may have no hints.
    #[inline]
    pub(crate) fn end_hinted_statement(&mut self) {
        if self.hinted.is_some() {
            self.end_hinted();
        }
    }

    /// Gives the variables that SET_VAR has set for a statement their values from before it.
    #[cold]
    pub(crate) fn end_hinted(&mut self) {
        if let Some(hinted) = self.hinted.take() {
            self.variables.restore(hinted.before);
            self.insert_id = hinted.insert_id.unwrap_or(self.insert_id);
        }
    }

    /// Whether the open transaction is READ ONLY; if none is open, whether the next one will be.
    #[inline]
    pub(crate) fn only_reads(&self) -> bool {
        if self.is_open { self.is_read_only } else { self.variables.next_transaction().read_only }
    }

    /// Whether the open transaction has used the table before. If the new use writes, only an earlier write
    /// counts.
    pub(crate) fn has_used(&self, used: TableUse) -> bool {
        self.tables.iter().any(|known| known.table == used.table && (known.writes || !used.writes))
    }

    /// The settings on which plans depend, combined into one number.
    #[inline]
    pub(crate) fn plan_settings(&self) -> u64 {
        // The constant is odd and without a pattern, so that the two keys of a session do not collide with
        // those of other sessions.
        let common = self.variables.plan_key().wrapping_add(self.private_key);
        common.wrapping_add(u64::from(self.locks_reads()).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// The number of the session's temporary tables; `None` if it has none.
    #[inline]
    pub(crate) fn temporary_owner(&self) -> Option<TableOwner> {
        (self.private_key != 0).then_some(self.owner)
    }

    /// Whether queries take shared locks on the rows that they read, because a SERIALIZABLE transaction of
    /// several statements is open. A query that is a transaction by itself reads from its snapshot.
    #[inline]
    pub(crate) fn locks_reads(&self) -> bool {
        self.transaction.explicit && self.isolation() == Isolation::Serializable
    }

    /// Whether a statement that writes locks the rows that it reads for that.
    pub(crate) fn locks_sources(&self) -> bool {
        self.isolation() != Isolation::ReadCommitted
    }

    /// The level of the open transaction; if none is open, of the next one.
    fn isolation(&self) -> Isolation {
        match self.is_open {
            true => self.transaction.isolation,
            false => self.variables.next_transaction().isolation.isolation(),
        }
    }
}
