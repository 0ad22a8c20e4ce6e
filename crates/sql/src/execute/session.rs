//! The record of one session: its transaction, variables, diagnostics and execution state.

use std::collections::BTreeMap;

use junctor_expression::Scratch;
use junctor_gateway::Transaction;
use junctor_gateway::transaction::Isolation;
use junctor_model::error::Error;
use junctor_model::id::ConnectionId;
use junctor_signals::diagnostics::{self, Diagnostics};
use junctor_signals::program::RowProtocol;

use super::key_read::KeyReader;
use super::lock_tables::TableLocks;
use super::savepoint::Savepoint;
use super::state::Execution;
use crate::mysql_catalog::show::{Warning, WarningLevel};
use crate::mysql_catalog::variable::SessionVariables;
use crate::plan::{OperationKind, PreparedStatements, TableUse};
use crate::result::Completion;

/// The outcome of a login.
#[derive(Clone, Copy, Debug)]
pub struct SessionOpening<'a> {
    /// The connection.
    pub connection: ConnectionId,
    /// The user name.
    pub user: &'a str,
    /// The client's address.
    pub host: &'a str,
    /// The database to begin with.
    pub database: Option<&'a str>,
    /// Whether affected rows are those found (CLIENT_FOUND_ROWS).
    pub found_rows: bool,
    /// Whether a text may hold several statements (CLIENT_MULTI_STATEMENTS).
    pub multi_statements: bool,
    /// The client's collation, by number.
    pub character_set: u16,
    /// The wire form of the rows of statements that come as text.
    pub text_protocol: RowProtocol,
    /// Whether a person types the statements, so that `interactive_timeout` counts (CLIENT_INTERACTIVE).
    pub is_interactive: bool,
}

/// The state of a session. The fields that every statement needs come first, so that a statement among
/// thousands of sessions touches few cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Session {
    pub(crate) connection: ConnectionId,
    /// Byte position in the command's text of the statements after the current one; 0 when there are none.
    pub(crate) rest_at: u32,
    /// Number of transactions that have begun, which identifies the open one.
    pub(crate) transactions: u32,
    pub(crate) next_statement: u32,
    pub(crate) warning_count: u16,
    pub(crate) error_count: u16,
    /// Whether a transaction of several statements is open.
    pub(crate) is_open: bool,
    /// Whether writes are refused in it.
    pub(crate) is_read_only: bool,
    /// Whether the client is gone. The current statement then ends without an answer.
    pub(crate) interrupted: bool,
    /// Whether KILL arrived too late to stop the current statement, so that it stops the statements after
    /// it.
    pub(crate) rest_is_stopped: bool,
    /// Whether a text may hold several statements.
    pub(crate) multi_statements: bool,
    pub(crate) found_rows_wanted: bool,
    pub(crate) is_interactive: bool,
    /// GET_LOCK has succeeded.
    pub(crate) holds_user_locks: bool,
    /// The wire form of the rows of statements that come as text.
    pub(crate) text_protocol: RowProtocol,
    /// The kind of the current statement, for its latency.
    pub(crate) operation: OperationKind,
    pub(crate) statements: PreparedStatements,
    /// The argument of LAST_INSERT_ID(expression) in the current statement, for its answer.
    pub(crate) insert_id_argument: Option<u64>,
    pub(crate) row_count: i64,
    pub(crate) found_rows: u64,
    pub(crate) last_insert_id: u64,
    pub(crate) database: Option<Box<str>>,
    /// What LOCK TABLES holds or waits for.
    pub(crate) table_locks: Option<Box<TableLocks>>,
    pub(crate) transaction: Transaction,
    pub(crate) variables: SessionVariables,
    pub(crate) execution: Execution,
    /// The tables that the open transaction has used.
    pub(crate) tables: Vec<TableUse>,
    /// Number of schema changes that had blocked tables when it first used one.
    pub(crate) tables_since: u64,
    /// In the order in which they were set.
    pub(crate) savepoints: Vec<Savepoint>,
    pub(crate) diagnostics: Vec<Warning>,
    /// Key readers, by the numbers that the client chose.
    pub(crate) key_readers: BTreeMap<u32, Box<KeyReader>>,
    pub(crate) user: Box<str>,
    pub(crate) host: Box<str>,
}

// Thousands of idle sessions must be cheap.
const _: () = assert!(size_of::<Session>() <= 1024);

impl Session {
    /// The connection.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// The session's transaction, as the gateway knows it.
    pub fn transaction_mut(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Whether the data plane holds locks or uncommitted rows of the session, for which others may wait.
    pub fn holds_locks(&self) -> bool {
        self.transaction.has_begun()
    }

    /// The status of an OK packet without rows, numbers or text.
    pub fn completion(&self) -> Completion {
        Completion {
            warnings: self.warning_count,
            autocommit: self.variables.autocommit,
            in_transaction: self.is_open,
            has_more: self.rest_at != 0,
            ..Completion::default()
        }
    }

    /// Whether the same text has statements after the current or last one.
    #[inline]
    pub fn has_more_statements(&self) -> bool {
        self.rest_at != 0
    }

    /// Whether a text may hold several statements.
    pub fn allows_several_statements(&self) -> bool {
        self.multi_statements
    }

    /// Whether the session waits for a table or changes the schema. It occupies no admission ticket
    /// meanwhile.
    pub fn waits_for_tables(&self) -> bool {
        matches!(self.execution, Execution::Tables(_) | Execution::Schema(_))
    }

    /// The user name of the login.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The client's address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Seconds without a command after which the connection ends.
    pub fn wait_timeout_s(&self) -> u32 {
        self.variables.wait_timeout_s
    }

    /// Seconds after which a transaction is ended with its connection; 0 for never.
    pub fn transaction_timeout_s(&self) -> u32 {
        self.variables.transaction_timeout_s
    }

    /// The number of the open transaction in this session; `None` when none is open.
    pub fn open_transaction(&self) -> Option<u32> {
        self.is_open.then_some(self.transactions)
    }

    /// The text of a prepared statement, at most 4,096 bytes of it.
    pub fn statement_text(&self, statement: u32) -> Option<&[u8]> {
        self.statements.get(statement).map(|statement| &*statement.text)
    }

    /// The session's database.
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// Clears the diagnostics of the statement before.
    #[inline]
    pub(crate) fn clear_diagnostics(&mut self) {
        self.diagnostics.clear();
        self.warning_count = 0;
        self.error_count = 0;
        self.insert_id_argument = None;
    }

    /// Whether the statement before has left diagnostics to clear.
    #[inline]
    pub(crate) fn has_diagnostics(&self) -> bool {
        self.warning_count != 0 || self.insert_id_argument.is_some()
    }

    /// Notes a warning.
    pub(crate) fn warn(&mut self, level: WarningLevel, code: u16, message: Box<str>) {
        if level == WarningLevel::Note && !self.variables.takes_notes {
            return;
        }
        self.warning_count = self.warning_count.saturating_add(1);
        self.keep(Warning { level, code, message });
    }

    /// Adds the diagnostics of evaluations. Warnings without text are only counted.
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
            self.warn(level, warning.code.errno(), warning.message);
        }
        self.warning_count = self.warning_count.saturating_add(u16::try_from(untold).unwrap_or(u16::MAX));
    }

    /// Adds the diagnostics in the scratch memory of evaluations in this block.
    #[inline]
    pub(crate) fn note_evaluated(&mut self, level: WarningLevel, scratch: &mut Scratch) {
        if let Some(diagnostics) = diagnostics::take(scratch) {
            self.note_diagnostics(level, *diagnostics);
        }
    }

    /// Notes that the statement failed.
    pub(crate) fn note_error(&mut self, error: &Error) {
        self.warning_count = self.warning_count.saturating_add(1);
        self.error_count = self.error_count.saturating_add(1);
        self.row_count = -1;
        let message = error.message.clone();
        self.keep(Warning { level: WarningLevel::Error, code: error.code.errno(), message });
    }

    fn keep(&mut self, diagnostic: Warning) {
        if self.diagnostics.len() < usize::from(self.variables.warnings_max) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Ends the transaction: statements commit by themselves again unless autocommit is off.
    pub(crate) fn transaction_ended(&mut self) {
        self.is_open = false;
        self.savepoints.clear();
        self.tables.clear();
        self.transaction.explicit = !self.variables.autocommit;
    }

    /// A transaction of several statements begins.
    pub(crate) fn begin_transaction(&mut self, read_only: Option<bool>) {
        let characteristics = self.variables.begin_transaction();
        self.transactions = self.transactions.wrapping_add(1);
        self.is_open = true;
        self.is_read_only = read_only.unwrap_or(characteristics.read_only);
        self.transaction.explicit = true;
        self.transaction.isolation = characteristics.isolation.isolation();
    }

    /// Begins another transaction with the characteristics of the one that has ended.
    pub(crate) fn chain_transaction(&mut self) {
        self.is_open = true;
        self.transaction.explicit = true;
    }

    /// Called before a statement on tables. With autocommit off the first one begins a transaction;
    /// otherwise the statement is a transaction by itself.
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

    /// Whether the transaction, or the one that the next statement is or begins, only reads.
    #[inline]
    pub(crate) fn only_reads(&self) -> bool {
        if self.is_open { self.is_read_only } else { self.variables.next_transaction().read_only }
    }

    /// Whether the open transaction has used the table, and written it if the use does.
    pub(crate) fn has_used(&self, used: TableUse) -> bool {
        self.tables.iter().any(|known| known.table == used.table && (known.writes || !used.writes))
    }

    /// The settings on which plans depend, as one number.
    #[inline]
    pub(crate) fn plan_settings(&self) -> u64 {
        // The constant is odd and without a pattern, so that the two keys of a session meet no other's.
        self.variables.plan_key().wrapping_add(u64::from(self.locks_reads()).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Whether a query locks what it reads, shared, because its transaction of several statements is
    /// SERIALIZABLE. A query that is a transaction by itself has its snapshot.
    #[inline]
    pub(crate) fn locks_reads(&self) -> bool {
        if !self.transaction.explicit {
            return false;
        }
        let isolation = match self.is_open {
            true => self.transaction.isolation,
            false => self.variables.next_transaction().isolation.isolation(),
        };
        isolation == Isolation::Serializable
    }
}

/// The wire form of a command's rows.
pub(crate) const TEXT: RowProtocol = RowProtocol::Text;
