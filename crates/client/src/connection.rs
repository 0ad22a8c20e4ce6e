//! Connections: the login, statements as text, and what is made from a connection.

use std::io;
use std::net::ToSocketAddrs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::batch::Batch;
use super::error::{Error, Result};
use super::key_reader::KeyReader;
use super::pipeline::{Answer, Pipeline};
use super::row::{Outcome, Rows};
use super::statement::Statement;
use super::table::Table;
use super::transaction::{Transaction, TransactionOptions};
use super::transport::{TcpTransport, Transport};
use super::value::ToValue;
use junctor_wire::proof::password_proof;
use junctor_wire::reply::{Greeting, STATUS_IN_TRANSACTION};
use junctor_wire::request::Login;
use junctor_wire::{LOGIN_PAYLOAD_BYTES_MAX, Reply, Request, VERSION, frame, next_frame, reply};

/// Statements with parameters that a connection keeps prepared.
const STATEMENTS_MAX: usize = 32;
/// Bytes of one answer, unless the options say otherwise.
const ANSWER_BYTES_MAX: usize = 1 << 30;
/// How often [`Connection::transact`] tries, and how often when a lock was not granted in time, which has taken long already.
const ATTEMPTS_MAX: u32 = 100;
const WAITS_MAX: u32 = 3;
/// The longest pause before an attempt, in milliseconds.
const PAUSE_MS_MAX: u64 = 50;
/// Errors: an unknown prepared statement; too many of them.
const UNKNOWN_STATEMENT: u16 = 1243;
const TOO_MANY_STATEMENTS: u16 = 1461;

/// Who connects, and how.
#[derive(Clone, Debug)]
pub struct Options {
    user: String,
    password: String,
    database: String,
    answer_bytes_max: usize,
}

impl Options {
    /// As this user, without a password. The user `root` exists on every node and may connect from the same machine.
    pub fn new(user: &str) -> Options {
        let (password, database) = (String::new(), String::new());
        Options { user: user.into(), password, database, answer_bytes_max: ANSWER_BYTES_MAX }
    }

    /// The password.
    pub fn password(self, password: &str) -> Options {
        Options { password: password.into(), ..self }
    }

    /// The database that names of tables without one mean.
    pub fn database(self, database: &str) -> Options {
        Options { database: database.into(), ..self }
    }

    /// Bytes of the longest answer that is taken; of a longer one the statement's result is an error on this side. 1 GiB unless said.
    pub fn answer_bytes_max(self, answer_bytes_max: usize) -> Options {
        Options { answer_bytes_max, ..self }
    }
}

/// A session of a node.
///
/// Dropping it closes it: a transaction that is open is rolled back, and statements and readers that are left are of no use.
#[derive(Debug)]
pub struct Connection {
    pub(crate) pipeline: Arc<Pipeline>,
    id: u32,
    server_version: Box<str>,
    /// Prepared statements by their text, those used last at the end.
    statements: Mutex<Vec<(Box<str>, Arc<Statement>)>>,
    numbers: Numbers,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.pipeline.close();
    }
}

/// The next numbers of statements and readers.
#[derive(Debug, Default)]
pub(crate) struct Numbers(std::sync::atomic::AtomicU32);

impl Numbers {
    pub(crate) fn next(&self) -> u32 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

impl Connection {
    /// Connects over TCP to a node that listens for the native protocol (`junctor serve --native-port`). A host name is looked up while
    /// the calling thread waits.
    ///
    /// # Errors
    /// 2003 when the node cannot be reached, 1045 for a wrong user or password, 1049 for an unknown database, 1040 when there are
    /// too many connections.
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

    /// Logs in over a stream.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub async fn open(mut transport: Box<dyn Transport>, options: &Options) -> Result<Connection> {
        if options.user.len() + options.database.len() > LOGIN_PAYLOAD_BYTES_MAX / 2 {
            return Err(Error::value("The names of the user and the database are too long".into()));
        }
        let (greeting, rest) = receive_greeting(&mut *transport).await?;
        let frame = next_frame(&greeting).ok_or(Error::protocol("greeting"))?.0;
        let greeting = match frame.kind {
            reply::kind::GREETING => Greeting::parse(frame.payload)?,
            _ => return Err(refusal_of(&greeting)),
        };
        let proof = password_proof(options.password.as_bytes(), &greeting.salt);
        let login = Login { version: VERSION, user: &options.user, proof: &proof, database: &options.database };
        let (id, server_version) = (greeting.connection, greeting.server_version.into());
        let pipeline = Arc::new(Pipeline::new(transport, rest, options.answer_bytes_max));
        let answer = pipeline.begin(|_, out| login.emit(out))?;
        let connection =
            Connection { pipeline, id, server_version, statements: Mutex::default(), numbers: Numbers::default() };
        connection.rows_of(answer).await?;
        Ok(connection)
    }

    /// The number of the session, as CONNECTION_ID() and KILL know it.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The version of the node, as VERSION() says it.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Whether a transaction is open, as the last answer said.
    pub fn is_in_transaction(&self) -> bool {
        self.pipeline.status() & STATUS_IN_TRANSACTION != 0
    }

    /// Asks for an answer.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn ping(&self) -> Result<()> {
        self.request(&Request::Ping).await.map(drop)
    }

    /// Executes a statement that gives rows. `?` stands for a parameter; a statement with parameters is prepared and kept for the
    /// next time.
    ///
    /// # Errors
    /// What the statement fails with.
    pub async fn query(&self, statement: &str, parameters: &[&dyn ToValue]) -> Result<Rows> {
        if parameters.is_empty() {
            return self.request(&Request::RunText(statement)).await;
        }
        let (result, was_kept) = self.query_kept(statement, parameters).await;
        match result {
            Err(error) if may_prepare_again(&error, was_kept) => self.query_kept(statement, parameters).await.0,
            result => result,
        }
    }

    /// Executes a statement with parameters; and whether it was prepared before. Nothing was done after an error that `note_failure`
    /// knows.
    async fn query_kept(&self, statement: &str, parameters: &[&dyn ToValue]) -> (Result<Rows>, bool) {
        let (mut was_kept, mut is_refused) = (false, false);
        let result = async {
            self.pipeline.room().await?;
            let (prepared, preparing) = self.kept(statement)?;
            was_kept = preparing.is_none();
            let executing = prepared.begin(parameters);
            if let Some(preparing) = preparing {
                let answer = preparing.await?;
                prepared.finish_preparing(answer).inspect_err(|_| is_refused = true)?;
            }
            self.rows_of(executing?).await
        }
        .await;
        if let Err(error) = &result {
            self.note_failure(statement, is_refused, error);
        }
        (result, was_kept)
    }

    /// Forgets a kept statement if its preparation was refused or it is not there, or all of them if there are too many.
    pub(crate) fn note_failure(&self, statement: &str, is_refused: bool, error: &Error) {
        match error.errno() {
            TOO_MANY_STATEMENTS => self.forget_all(),
            UNKNOWN_STATEMENT => self.forget(statement),
            _ if is_refused => self.forget(statement),
            _ => {}
        }
    }

    /// Executes a statement that gives no rows.
    ///
    /// # Errors
    /// What the statement fails with.
    pub async fn execute(&self, statement: &str, parameters: &[&dyn ToValue]) -> Result<Outcome> {
        self.query(statement, parameters).await.map(Rows::into_outcome)
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// What is wrong with the statement.
    pub async fn prepare(&self, statement: &str) -> Result<Statement> {
        match self.try_prepare(statement).await {
            Err(error) if error.errno() == TOO_MANY_STATEMENTS => self.forget_all(),
            result => return result,
        }
        self.try_prepare(statement).await
    }

    async fn try_prepare(&self, statement: &str) -> Result<Statement> {
        self.pipeline.room().await?;
        let (prepared, answer) = Statement::begin_preparing(&self.pipeline, self.numbers.next(), statement)?;
        prepared.finish_preparing(answer.await?)?;
        Ok(prepared)
    }

    /// Several statements that are sent together.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Operations on a table: its name, or `database.table`.
    pub fn table<'c>(&'c self, name: &str) -> Table<'c> {
        Table::new(self, name)
    }

    /// Prepares a reader of these columns of a table (its name, or `database.table`) by primary key.
    ///
    /// # Errors
    /// 1146 and 1054 for a table or column that does not exist; 1059 for a name that is too long; 1235 for a table without a primary key, and in SERIALIZABLE
    /// transactions.
    pub async fn key_reader(&self, table: &str, columns: &[&str]) -> Result<KeyReader> {
        match KeyReader::prepare(&self.pipeline, self.numbers.next(), table, columns).await {
            Err(error) if error.errno() == TOO_MANY_STATEMENTS => self.forget_all(),
            result => return result,
        }
        KeyReader::prepare(&self.pipeline, self.numbers.next(), table, columns).await
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn begin(&mut self) -> Result<Transaction<'_>> {
        Transaction::begin(self, TransactionOptions::default()).await
    }

    /// Begins a transaction with an isolation level or as read-only.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn begin_with(&mut self, options: TransactionOptions) -> Result<Transaction<'_>> {
        Transaction::begin(self, options).await
    }

    /// Does some work in a transaction and commits it. After a failure that passes ([`Error::is_retryable`]), such as a deadlock, it is
    /// rolled back and done again, up to a hundred times in all, and three times when a lock was not granted in time (1205); after any
    /// other it is rolled back. From the third attempt on there is a pause before it, which grows up to 50 ms.
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
    /// What the work, or the commit, failed with the last time.
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

    /// Begins the session anew: a transaction is rolled back, variables and prepared statements are forgotten. For pools of
    /// connections. Statements and readers that the caller has kept are of no use afterwards.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn reset(&mut self) -> Result<()> {
        self.forget_all();
        self.request(&Request::Reset).await.map(drop)
    }

    /// Makes a request and waits for rows.
    pub(crate) async fn request(&self, request: &Request<'_>) -> Result<Rows> {
        self.pipeline.room().await?;
        let answer = self.pipeline.begin(|number, out| request.emit(number, out))?;
        self.rows_of(answer).await
    }

    pub(crate) async fn rows_of(&self, answer: Answer) -> Result<Rows> {
        let (rows, status) = Rows::parse(answer.await?)?;
        self.pipeline.note_status(status);
        Ok(rows)
    }

    /// The prepared statement of that text; when it is new, the answer to its preparation is still to come.
    pub(crate) fn kept(&self, text: &str) -> Result<(Arc<Statement>, Option<Answer>)> {
        let mut statements = self.lock_statements();
        if let Some(position) = statements.iter().rposition(|(known, _)| **known == *text) {
            statements[position..].rotate_left(1);
            let (_, statement) = &statements[statements.len() - 1];
            return Ok((Arc::clone(statement), None));
        }
        let (prepared, answer) = Statement::begin_preparing(&self.pipeline, self.numbers.next(), text)?;
        let prepared = Arc::new(prepared);
        let oldest = (statements.len() >= STATEMENTS_MAX).then(|| statements.remove(0));
        statements.push((text.into(), Arc::clone(&prepared)));
        // Dropping one makes a request.
        drop(statements);
        drop(oldest);
        Ok((prepared, Some(answer)))
    }

    pub(crate) fn forget(&self, text: &str) {
        let mut statements = self.lock_statements();
        let position = statements.iter().position(|(known, _)| **known == *text);
        let forgotten = position.map(|position| statements.remove(position));
        drop(statements);
        drop(forgotten);
    }

    fn forget_all(&self) {
        let forgotten = std::mem::take(&mut *self.lock_statements());
        drop(forgotten);
    }

    fn lock_statements(&self) -> std::sync::MutexGuard<'_, Vec<(Box<str>, Arc<Statement>)>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a statement with parameters that failed so was not executed, and is if it is prepared again.
pub(crate) fn may_prepare_again(error: &Error, was_kept: bool) -> bool {
    match error.errno() {
        // Whoever began to prepare it did not see that it failed.
        UNKNOWN_STATEMENT => was_kept,
        TOO_MANY_STATEMENTS => true,
        _ => false,
    }
}

fn attempts_max(error: &Error) -> u32 {
    const LOCK_WAIT_TIMEOUT: u16 = 1205;
    if error.errno() == LOCK_WAIT_TIMEOUT { WAITS_MAX } else { ATTEMPTS_MAX }
}

/// The first frame of a node, and what came behind it.
async fn receive_greeting(transport: &mut dyn Transport) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut received = Vec::new();
    loop {
        if let Some((_, length)) = frame::head(&received) {
            if length > LOGIN_PAYLOAD_BYTES_MAX {
                return Err(Error::protocol("greeting"));
            }
            if received.len() >= frame::HEAD_BYTES + length {
                let rest = received.split_off(frame::HEAD_BYTES + length);
                return Ok((received, rest));
            }
        }
        let bytes = std::future::poll_fn(|context| transport.poll_receive(context)).await;
        let bytes = bytes.map_err(|error| Error::lost(&error.to_string()))?;
        if bytes.is_empty() {
            return Err(Error::lost("it was closed before the login"));
        }
        received.extend_from_slice(&bytes);
        transport.give(bytes);
    }
}

fn refusal_of(bytes: &[u8]) -> Error {
    match next_frame(bytes).map(|(frame, _)| Reply::parse(frame)) {
        Some(Ok((_, Reply::Failed { errno, sqlstate, message }))) => Error::server(errno, sqlstate, message),
        _ => Error::protocol("greeting"),
    }
}
