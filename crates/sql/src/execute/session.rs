//! What the server remembers of one connection.

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

/// What a login settled.
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

/// A connection's state. What a statement needs stands together and comes first, so that among thousands of sessions it reads few
/// cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Session {
    pub(crate) connection: ConnectionId,
    /// Where in the text of the command the statements begin that come after the one under way; 0 when there are none.
    pub(crate) rest_at: u32,
    /// How many transactions have begun, so that one can be told from the next.
    pub(crate) transactions: u32,
    pub(crate) next_statement: u32,
    pub(crate) warning_count: u16,
    pub(crate) error_count: u16,
    /// Whether a transaction of several statements is open.
    pub(crate) is_open: bool,
    /// Whether writes are refused in it.
    pub(crate) is_read_only: bool,
    /// The client is gone; what is under way is finished without an answer.
    pub(crate) interrupted: bool,
    /// KILL came when the statement under way could not be stopped any more: it stops those after it.
    pub(crate) rest_is_stopped: bool,
    /// Whether a text may hold several statements.
    pub(crate) multi_statements: bool,
    pub(crate) found_rows_wanted: bool,
    pub(crate) is_interactive: bool,
    /// GET_LOCK has succeeded.
    pub(crate) holds_user_locks: bool,
    /// The wire form of the rows of statements that come as text.
    pub(crate) text_protocol: RowProtocol,
    /// What the statement under way is measured as.
    pub(crate) operation: OperationKind,
    pub(crate) statements: PreparedStatements,
    /// What LAST_INSERT_ID(expression) was given by the statement under way, for its answer.
    pub(crate) insert_id_argument: Option<u64>,
    pub(crate) row_count: i64,
    pub(crate) found_rows: u64,
    pub(crate) last_insert_id: u64,
    pub(crate) database: Option<Box<str>>,
    /// What LOCK TABLES has got, or waits for.
    pub(crate) table_locks: Option<Box<TableLocks>>,
    pub(crate) transaction: Transaction,
    pub(crate) variables: SessionVariables,
    pub(crate) execution: Execution,
    /// The tables that the open transaction has used.
    pub(crate) tables: Vec<TableUse>,
    /// How many schema changes had asked for tables when it began to use some.
    pub(crate) tables_since: u64,
    /// In the order in which they were set.
    pub(crate) savepoints: Vec<Savepoint>,
    pub(crate) diagnostics: Vec<Warning>,
    /// Readers of rows by primary key, by the client's numbers.
    pub(crate) key_readers: BTreeMap<u32, Box<KeyReader>>,
    pub(crate) user: Box<str>,
    pub(crate) host: Box<str>,
}

// Thousands of idle connections are to be cheap.
const _: () = assert!(size_of::<Session>() <= 1024);

impl Session {
    /// The connection.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// What the client library knows of the session's transaction.
    pub fn transaction_mut(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Whether the data plane holds locks or uncommitted rows for the session, which others may wait for.
    pub fn holds_locks(&self) -> bool {
        self.transaction.has_begun()
    }

    /// What an OK packet without news says.
    pub fn completion(&self) -> Completion {
        Completion {
            warnings: self.warning_count,
            autocommit: self.variables.autocommit,
            in_transaction: self.is_open,
            has_more: self.rest_at != 0,
            ..Completion::default()
        }
    }

    /// Whether statements of the same text come after the one under way, or the one that was done last.
    #[inline]
    pub fn has_more_statements(&self) -> bool {
        self.rest_at != 0
    }

    /// Whether a text may hold several statements.
    pub fn allows_several_statements(&self) -> bool {
        self.multi_statements
    }

    /// Whether the session waits for others to leave a table, or changes one: it is not in the data plane meanwhile.
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

    /// A new statement forgets what was said of the one before.
    #[inline]
    pub(crate) fn clear_diagnostics(&mut self) {
        self.diagnostics.clear();
        self.warning_count = 0;
        self.error_count = 0;
        self.insert_id_argument = None;
    }

    /// Whether the statement before has left something to be forgotten.
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

    /// Notes what evaluations had to say besides their values. Warnings of which there is no text are only counted.
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

    /// Notes what is in the scratch memory of evaluations that were made here.
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

    /// The transaction has ended: statements commit by themselves again unless autocommit is off.
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

    /// Another transaction begins that behaves as the one that has ended.
    pub(crate) fn chain_transaction(&mut self) {
        self.is_open = true;
        self.transaction.explicit = true;
    }

    /// Before a statement on tables: with autocommit off, the first one begins a transaction; otherwise it is one.
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

    /// What plans depend on besides text, tables and database.
    #[inline]
    pub(crate) fn plan_settings(&self) -> u64 {
        // The constant is odd and without a pattern, so that the two keys of a session meet no other's.
        self.variables.plan_key().wrapping_add(u64::from(self.locks_reads()).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Whether a query locks what it reads, shared, because its transaction of several statements is SERIALIZABLE. A query
    /// that is a transaction by itself has its snapshot.
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
