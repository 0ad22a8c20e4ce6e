//! Connections: the login, statements given as text, and the cache of prepared statements.

use std::fmt;
use std::io;
use std::net::ToSocketAddrs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::batch::Batch;
use super::error::{Error, Result};
use super::key_reader::KeyReader;
use super::login::{LoggedIn, log_in};
use super::pipeline::{PendingReply, Pipeline};
use super::row::{Outcome, Rows};
use super::statement::Statement;
use super::table::Table;
use super::tls::Tls;
use super::transaction::{Transaction, TransactionOptions};
use super::transport::{TcpTransport, Transport};
use super::value::ToValue;
use junctor_wire::Request;
use junctor_wire::reply::STATUS_IN_TRANSACTION;

/// Maximum number of statements in a connection's cache of prepared statements.
const STATEMENTS_MAX: usize = 32;
/// Default of [`Options::reply_bytes_max`].
const REPLY_BYTES_MAX_DEFAULT: usize = 1 << 30;
/// Maximum number of attempts of [`Connection::transact`].
const ATTEMPTS_MAX: u32 = 100;
/// Maximum number of attempts after a lock wait timeout. It is lower, since each attempt has already waited
/// long.
const LOCK_WAIT_ATTEMPTS_MAX: u32 = 3;
/// Maximum pause before an attempt in milliseconds.
const PAUSE_MS_MAX: u64 = 50;
// Error numbers of the node: it does not have this prepared statement, or has the maximum number of them.
const UNKNOWN_STATEMENT: u16 = 1243;
const TOO_MANY_STATEMENTS: u16 = 1461;

/// User, password and settings of a connection.
#[derive(Clone)]
pub struct Options {
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) database: String,
    reply_bytes_max: usize,
    pub(crate) tls: Option<Tls>,
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Options");
        shown
            .field("user", &self.user)
            .field("database", &self.database)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Options for a user without a password. The user `root` exists on every node and may connect from the
    /// same machine.
    pub fn new(user: &str) -> Options {
        let (password, database) = (String::new(), String::new());
        Options { user: user.into(), password, database, reply_bytes_max: REPLY_BYTES_MAX_DEFAULT, tls: None }
    }

    /// Sets the user's password; empty by default.
    pub fn password(self, password: &str) -> Options {
        Options { password: password.into(), ..self }
    }

    /// Sets the session's default database; none by default.
    pub fn database(self, database: &str) -> Options {
        Options { database: database.into(), ..self }
    }

    /// Encrypts the connection; not by default. A node without TLS is refused.
    pub fn tls(self, tls: &Tls) -> Options {
        Options { tls: Some(tls.clone()), ..self }
    }

    /// Sets the maximum size of a reply in bytes; 1 GiB by default. The driver discards a longer reply and
    /// returns error 2036, although the node has run the statement.
    pub fn reply_bytes_max(self, reply_bytes_max: usize) -> Options {
        Options { reply_bytes_max, ..self }
    }
}

/// A session on a node.
///
/// Dropping the connection closes the session, and the node rolls back an open transaction. Afterwards,
/// statements and key readers of the connection return error 2013.
#[derive(Debug)]
pub struct Connection {
    pub(crate) pipeline: Arc<Pipeline>,
    id: u32,
    server_version: Box<str>,
    /// Cached prepared statements by their text, the most recently used last.
    statements: Mutex<Vec<(Box<str>, Arc<Statement>)>>,
    handles: HandleSequence,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.pipeline.close();
    }
}

/// Generates the handles of statements and key readers.
#[derive(Debug, Default)]
pub(crate) struct HandleSequence(std::sync::atomic::AtomicU32);

impl HandleSequence {
    pub(crate) fn next(&self) -> u32 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

impl Connection {
    /// Connects over TCP to a node that listens for the native protocol (`junctor serve --native-port`).
    /// Resolving a host name blocks the calling thread.
    ///
    /// # Errors
    /// 2003 if the node cannot be reached, 1045 for a wrong user or password, 1049 for an unknown database,
    /// 1040 if the node has too many connections, 2026 if TLS fails. 2061 if the node must see the
    /// password of an account with `caching_sha2_password`, and the connection is not private: use
    /// [`Options::tls`].
    pub async fn connect(address: impl ToSocketAddrs, options: &Options) -> Result<Connection> {
        let addresses = address.to_socket_addrs().map_err(|error| Error::not_connected(&error))?;
        let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match TcpTransport::connect(address).await {
                Ok(transport) => return Connection::open(Box::new(transport), options).await,
                Err(error) => failure = error,
            }
        }
        Err(Error::not_connected(&failure))
    }

    /// Logs in over a transport.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub async fn open(transport: Box<dyn Transport>, options: &Options) -> Result<Connection> {
        let LoggedIn { transport, received, id, server_version, status } = log_in(transport, options).await?;
        let pipeline = Arc::new(Pipeline::new(transport, received, options.reply_bytes_max));
        pipeline.note_status(status);
        let handles = HandleSequence::default();
        Ok(Connection { pipeline, id, server_version, statements: Mutex::default(), handles })
    }

    /// The connection's id, as in CONNECTION_ID() and KILL.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The node's version, as in VERSION().
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Whether a transaction was open when the node sent its last reply.
    pub fn is_in_transaction(&self) -> bool {
        self.pipeline.status() & STATUS_IN_TRANSACTION != 0
    }

    /// Checks that the node replies.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn ping(&self) -> Result<()> {
        self.request(&Request::Ping).await.map(drop)
    }

    /// Executes a statement that returns rows. Each `?` in its text is a parameter. A statement with
    /// parameters is prepared once; the connection caches up to 32 prepared statements.
    ///
    /// # Errors
    /// The error of the statement.
    pub async fn query(&self, statement: &str, parameters: &[&dyn ToValue]) -> Result<Rows> {
        if parameters.is_empty() {
            return self.request(&Request::RunText(statement)).await;
        }
        let (result, was_cached) = self.query_cached(statement, parameters).await;
        match result {
            Err(error) if may_prepare_again(&error, was_cached) => self.query_cached(statement, parameters).await.0,
            result => result,
        }
    }

    /// Executes a statement with parameters. Returns the result, and whether the statement was in the cache.
    /// An error for which `evict_after` evicts the statement means that the node did not execute it.
    async fn query_cached(&self, statement: &str, parameters: &[&dyn ToValue]) -> (Result<Rows>, bool) {
        let (mut was_cached, mut is_refused) = (false, false);
        let result = async {
            self.pipeline.wait_for_space().await?;
            let (prepared, preparing) = self.find_or_begin_preparing(statement)?;
            was_cached = preparing.is_none();
            // The execution is sent together with the preparation, so that a new statement costs one round
            // trip.
            let executing = prepared.begin(parameters);
            if let Some(preparing) = preparing {
                let answer = preparing.await?;
                prepared.finish_preparing(answer).inspect_err(|_| is_refused = true)?;
            }
            self.rows_of(executing?).await
        }
        .await;
        if let Err(error) = &result {
            self.evict_after(statement, is_refused, error);
        }
        (result, was_cached)
    }

    /// Evicts a statement from the cache if its preparation failed or the node does not have it. If the node
    /// has too many prepared statements, evicts all of them.
    pub(crate) fn evict_after(&self, statement: &str, is_refused: bool, error: &Error) {
        match error.errno() {
            TOO_MANY_STATEMENTS => self.evict_all(),
            UNKNOWN_STATEMENT => self.evict(statement),
            _ if is_refused => self.evict(statement),
            _ => {}
        }
    }

    /// Executes a statement that returns no rows. Each `?` in its text is a parameter.
    ///
    /// # Errors
    /// The error of the statement.
    pub async fn execute(&self, statement: &str, parameters: &[&dyn ToValue]) -> Result<Outcome> {
        self.query(statement, parameters).await.map(Rows::into_outcome)
    }

    /// Prepares a statement. If the node has too many prepared statements, the connection empties its cache
    /// and tries once more.
    ///
    /// # Errors
    /// The error of the preparation.
    pub async fn prepare(&self, statement: &str) -> Result<Statement> {
        match self.try_prepare(statement).await {
            Err(error) if error.errno() == TOO_MANY_STATEMENTS => self.evict_all(),
            result => return result,
        }
        self.try_prepare(statement).await
    }

    async fn try_prepare(&self, statement: &str) -> Result<Statement> {
        self.pipeline.wait_for_space().await?;
        let (prepared, answer) = Statement::begin_preparing(&self.pipeline, self.handles.next(), statement)?;
        prepared.finish_preparing(answer.await?)?;
        Ok(prepared)
    }

    /// An empty batch of statements that will be sent together.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Operations on a table. `name` is the table's name or `database.table`.
    pub fn table<'c>(&'c self, name: &str) -> Table<'c> {
        Table::new(self, name)
    }

    /// Prepares a reader by primary key that returns `columns`. `table` is the table's name or
    /// `database.table`.
    ///
    /// # Errors
    /// 1146 and 1054 for a table or column that does not exist; 1059 for a name that is too long; 1235 for a
    /// table without a primary key, and in SERIALIZABLE transactions.
    pub async fn key_reader(&self, table: &str, columns: &[&str]) -> Result<KeyReader> {
        match KeyReader::prepare(&self.pipeline, self.handles.next(), table, columns).await {
            Err(error) if error.errno() == TOO_MANY_STATEMENTS => self.evict_all(),
            result => return result,
        }
        KeyReader::prepare(&self.pipeline, self.handles.next(), table, columns).await
    }

    /// Begins a transaction with the session's isolation level.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn begin(&mut self) -> Result<Transaction<'_>> {
        Transaction::begin(self, TransactionOptions::default()).await
    }

    /// Begins a transaction with options.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn begin_with(&mut self, options: TransactionOptions) -> Result<Transaction<'_>> {
        Transaction::begin(self, options).await
    }

    /// Runs `work` in a transaction and commits. After a transient error ([`Error::is_retryable`]), such as a
    /// deadlock, it rolls back and runs `work` again, up to 100 attempts in total, or 3 after a lock wait
    /// timeout (1205). After any other error it rolls back and returns the error. A pause of 1 ms to 50 ms,
    /// growing with the attempts, precedes each attempt from the third on.
    ///
    /// ```no_run
    /// # use junctor_client::{Connection, Result, params};
    /// # async fn example(connection: &mut Connection) -> Result<()> {
    /// connection
    ///     .transact(async |transaction| {
    ///         transaction.execute("UPDATE account SET balance = balance - ? WHERE id = ?", params![10, 1]).await?;
    ///         transaction.execute("UPDATE account SET balance = balance + ? WHERE id = ?", params![10, 2]).await
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of `work` or of the commit in the last attempt.
    pub async fn transact<T>(&mut self, work: impl AsyncFn(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut attempt = 1;
        loop {
            let transaction = self.begin().await?;
            let result = match work(&transaction).await {
                Ok(value) => transaction.commit().await.map(|()| value),
                Err(error) => transaction.rollback().await.and(Err(error)),
            };
            match result {
                Err(error) if error.is_retryable() && attempt < attempts_max(&error) => attempt += 1,
                result => return result,
            }
            if attempt > 2 {
                let pause_ms = (1 << (attempt - 3).min(6)).min(PAUSE_MS_MAX);
                async_io::Timer::after(Duration::from_millis(pause_ms)).await;
            }
        }
    }

    /// Resets the session to its state after the login, for connection pools. The node rolls back an open
    /// transaction, resets variables and deallocates prepared statements. The caller's statements and key
    /// readers no longer work afterwards.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn reset(&mut self) -> Result<()> {
        self.evict_all();
        self.request(&Request::Reset).await.map(drop)
    }

    /// Sends a request and waits for its rows.
    pub(crate) async fn request(&self, request: &Request<'_>) -> Result<Rows> {
        self.pipeline.wait_for_space().await?;
        let answer = self.pipeline.enqueue(|number, out| request.encode(number, out))?;
        self.rows_of(answer).await
    }

    pub(crate) async fn rows_of(&self, answer: PendingReply) -> Result<Rows> {
        let (rows, status) = Rows::parse(answer.await?)?;
        self.pipeline.note_status(status);
        Ok(rows)
    }

    /// The cached prepared statement for `text`. If it is not in the cache, begins to prepare it and also
    /// returns the pending reply.
    pub(crate) fn find_or_begin_preparing(&self, text: &str) -> Result<(Arc<Statement>, Option<PendingReply>)> {
        let mut statements = self.lock_statements();
        if let Some(position) = statements.iter().rposition(|(known, _)| **known == *text) {
            statements[position..].rotate_left(1);
            let (_, statement) = &statements[statements.len() - 1];
            return Ok((Arc::clone(statement), None));
        }
        let (prepared, answer) = Statement::begin_preparing(&self.pipeline, self.handles.next(), text)?;
        let prepared = Arc::new(prepared);
        let oldest = (statements.len() >= STATEMENTS_MAX).then(|| statements.remove(0));
        statements.push((text.into(), Arc::clone(&prepared)));
        // Dropping a statement sends a request, possibly with a system call: release the lock first.
        drop(statements);
        drop(oldest);
        Ok((prepared, Some(answer)))
    }

    pub(crate) fn evict(&self, text: &str) {
        let mut statements = self.lock_statements();
        let position = statements.iter().position(|(known, _)| **known == *text);
        let evicted = position.map(|position| statements.remove(position));
        drop(statements);
        drop(evicted);
    }

    fn evict_all(&self) {
        let evicted = std::mem::take(&mut *self.lock_statements());
        drop(evicted);
    }

    fn lock_statements(&self) -> std::sync::MutexGuard<'_, Vec<(Box<str>, Arc<Statement>)>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a statement that failed with this error was not executed and may succeed if it is prepared again.
pub(crate) fn may_prepare_again(error: &Error, was_cached: bool) -> bool {
    match error.errno() {
        // The cache has the statement from the start of its preparation. A call that finds it there may
        // execute it although the preparation fails.
        UNKNOWN_STATEMENT => was_cached,
        TOO_MANY_STATEMENTS => true,
        _ => false,
    }
}

fn attempts_max(error: &Error) -> u32 {
    const LOCK_WAIT_TIMEOUT: u16 = 1205;
    if error.errno() == LOCK_WAIT_TIMEOUT { LOCK_WAIT_ATTEMPTS_MAX } else { ATTEMPTS_MAX }
}
