//! The session of `junctor admin` with a node that serves clients.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use super::Result;
use super::table::{Cell, Table};
use crate::cli::first_line;

/// Time to connect.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Time to wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// MySQL's error for a server that stops.
const SHUTDOWN: u16 = 1053;

/// How to log in to a node that serves clients.
#[derive(Clone, Debug, Args)]
pub struct LoginOptions {
    /// Address of a node that serves clients
    #[arg(long, default_value = "127.0.0.1", value_name = "HOST")]
    host: String,
    /// Port of the node for MySQL clients
    #[arg(long, default_value_t = 3306, value_name = "N")]
    port: u16,
    /// Unix socket of the node, instead of address and port
    #[arg(long, value_name = "PATH")]
    socket: Option<String>,
    /// User
    #[arg(long, default_value = "root", value_name = "NAME")]
    user: String,
    /// Password [default: the variable MYSQL_PWD, which other users of the machine cannot see]
    #[arg(long, value_name = "PASSWORD", conflicts_with = "password_file")]
    password: Option<String>,
    /// File with the password; its first line counts
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// An error that the server has answered. All other errors are of the connection.
#[derive(Debug)]
pub struct ServerError(mysql::MySqlError);

impl ServerError {
    #[cfg(test)]
    pub fn of(code: u16) -> ServerError {
        ServerError(mysql::MySqlError { state: "HY000".into(), message: String::new(), code })
    }

    /// MySQL's error number.
    pub fn code(&self) -> u16 {
        self.0.code
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "error {}: {}", self.0.code, self.0.message)
    }
}

impl std::error::Error for ServerError {}

/// A session. It connects again when its connection is lost.
pub struct Session {
    login: Opts,
    connection: Option<Conn>,
}

impl Session {
    /// Logs in.
    ///
    /// # Errors
    /// The node cannot be reached, or refuses the login.
    pub fn open(options: &LoginOptions) -> Result<Session> {
        Session::open_for(options, ANSWER_MAX)
    }

    /// As [`Session::open`], for statements that take up to this time.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_for(options: &LoginOptions, answer_max: Duration) -> Result<Session> {
        let password = match &options.password_file {
            Some(file) => Some(first_line(file)?),
            None => options.password.clone().or_else(|| std::env::var("MYSQL_PWD").ok()),
        };
        let login = OptsBuilder::new()
            .ip_or_hostname(Some(&options.host))
            .tcp_port(options.port)
            .socket(options.socket.as_deref())
            .prefer_socket(options.socket.is_some())
            .user(Some(&options.user))
            .pass(password)
            .tcp_connect_timeout(Some(CONNECT_MAX))
            .read_timeout(Some(answer_max))
            .write_timeout(Some(ANSWER_MAX));
        let mut session = Session { login: login.into(), connection: None };
        session.connect()?;
        Ok(session)
    }

    fn connect(&mut self) -> Result<&mut Conn> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Conn::new(self.login.clone()).map_err(told)?,
        };
        Ok(self.connection.insert(connection))
    }

    /// The rows of a query.
    ///
    /// # Errors
    /// The error of the query, or the connection is lost. The next call connects again.
    pub fn query(&mut self, query: &str) -> Result<Table> {
        let result = self.connect()?.query_iter(query);
        let result = result.and_then(|result| {
            let columns = result.columns().as_ref().iter().map(|column| column.name_str().into_owned()).collect();
            let is_numeric = |column: &mysql::Column| column.column_type().is_numeric_type();
            let are_numeric: Vec<bool> = result.columns().as_ref().iter().map(is_numeric).collect();
            let cells = |row: mysql::Row| row.unwrap().into_iter().zip(&are_numeric).map(|(it, is)| Cell::of(it, *is));
            let rows: mysql::Result<Vec<Vec<Cell>>> = result.map(|row| Ok(cells(row?).collect())).collect();
            Ok(Table { columns, rows: rows? })
        });
        self.check(result)
    }

    /// Executes a statement without rows.
    ///
    /// # Errors
    /// As [`Session::query`].
    pub fn execute(&mut self, statement: &str) -> Result<()> {
        let result = self.connect()?.query_drop(statement);
        self.check(result)
    }

    /// Whether the node takes no new connections any more.
    ///
    /// # Errors
    /// The node answers, and refuses the login for another reason than its stop.
    pub fn has_ended(&mut self) -> Result<bool> {
        self.connection = None;
        match Conn::new(self.login.clone()) {
            Ok(_) => Ok(false),
            Err(mysql::Error::MySqlError(error)) if error.code == SHUTDOWN => Ok(false),
            Err(error @ mysql::Error::MySqlError(_)) => Err(told(error)),
            Err(_) => Ok(true),
        }
    }

    /// Drops the connection unless the error came from the statement.
    fn check<T>(&mut self, result: mysql::Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(|error| !matches!(error, mysql::Error::MySqlError(_))) {
            self.connection = None;
        }
        result.map_err(told)
    }
}

fn told(error: mysql::Error) -> Box<dyn std::error::Error> {
    match error {
        mysql::Error::MySqlError(error) => ServerError(error).into(),
        other => other.into(),
    }
}
