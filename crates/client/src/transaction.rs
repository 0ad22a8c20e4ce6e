//! Transactions.

use std::ops::Deref;

use super::connection::Connection;
use super::error::Result;
use super::table::push_quoted;
use junctor_wire::Request;

/// The isolation level of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what was committed when it began.
    ReadCommitted,
    /// All statements see what was committed when the first one read; the default.
    RepeatableRead,
    /// As REPEATABLE READ, and what is read stays as it is until the end.
    Serializable,
}

/// How a transaction begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionOptions {
    isolation: Option<Isolation>,
    is_read_only: bool,
    takes_snapshot: bool,
}

impl TransactionOptions {
    /// As the session's variables say.
    pub fn new() -> TransactionOptions {
        TransactionOptions::default()
    }

    /// With this isolation level.
    pub fn isolation(self, isolation: Isolation) -> TransactionOptions {
        TransactionOptions { isolation: Some(isolation), ..self }
    }

    /// Writes are refused with error 1792.
    pub fn read_only(self) -> TransactionOptions {
        TransactionOptions { is_read_only: true, ..self }
    }

    /// It sees what is committed now, and not when it reads first.
    pub fn with_snapshot(self) -> TransactionOptions {
        TransactionOptions { takes_snapshot: true, ..self }
    }
}

/// A transaction; all of its connection's methods are its own. Dropping it rolls it back: the request is sent at once, or with the next
/// one of the connection.
#[derive(Debug)]
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Transaction<'c> {
    connection: &'c mut Connection,
    is_ended: bool,
}

impl<'c> Transaction<'c> {
    pub(crate) async fn begin(connection: &'c mut Connection, options: TransactionOptions) -> Result<Transaction<'c>> {
        let level = options.isolation.map(|isolation| match isolation {
            Isolation::ReadCommitted => "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            Isolation::RepeatableRead => "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            Isolation::Serializable => "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        });
        let begin = match (options.takes_snapshot, options.is_read_only) {
            (false, false) => "START TRANSACTION",
            (true, false) => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            (false, true) => "START TRANSACTION READ ONLY",
            (true, true) => "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        };
        // Who waits for room has asked for nothing yet, so there is nothing to roll back.
        connection.pipeline.room().await?;
        // Made before the requests, so that dropping the future on the way rolls back.
        let transaction = Transaction { connection, is_ended: false };
        let begun = |text| {
            let pipeline = &transaction.connection.pipeline;
            pipeline.begin(|number, out| Request::RunText(text).emit(number, out))
        };
        let level = level.map(begun).transpose()?;
        let begin = begun(begin)?;
        if let Some(level) = level {
            transaction.connection.rows_of(level).await?;
        }
        transaction.connection.rows_of(begin).await?;
        Ok(transaction)
    }

    /// Commits.
    ///
    /// # Errors
    /// What the commit failed with; the transaction is rolled back then. When the connection is lost, it is not known whether it was
    /// committed.
    pub async fn commit(self) -> Result<()> {
        self.end("COMMIT").await
    }

    /// Rolls back, and waits until that is done.
    ///
    /// # Errors
    /// The connection is lost; the node rolls back then by itself.
    pub async fn rollback(self) -> Result<()> {
        self.end("ROLLBACK").await
    }

    /// Sets a savepoint; one of the same name is replaced.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn savepoint(&self, name: &str) -> Result<()> {
        self.run_with_name("SAVEPOINT ", name).await
    }

    /// Undoes what was done since a savepoint was set, and keeps the savepoint.
    ///
    /// # Errors
    /// 1305 when there is none of that name.
    pub async fn rollback_to(&self, name: &str) -> Result<()> {
        self.run_with_name("ROLLBACK TO SAVEPOINT ", name).await
    }

    /// Forgets a savepoint and those set after it.
    ///
    /// # Errors
    /// 1305 when there is none of that name.
    pub async fn release(&self, name: &str) -> Result<()> {
        self.run_with_name("RELEASE SAVEPOINT ", name).await
    }

    async fn end(mut self, statement: &str) -> Result<()> {
        let pipeline = &self.connection.pipeline;
        pipeline.room().await?;
        let answer = pipeline.begin(|number, out| Request::RunText(statement).emit(number, out))?;
        self.is_ended = true;
        self.connection.rows_of(answer).await.map(drop)
    }

    async fn run_with_name(&self, statement: &str, name: &str) -> Result<()> {
        let mut text = String::from(statement);
        push_quoted(name, &mut text);
        self.request(&Request::RunText(&text)).await.map(drop)
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            let pipeline = &self.connection.pipeline;
            pipeline.begin_and_forget(|number, out| Request::RunText("ROLLBACK").emit(number, out));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::scripted::{Line, connected, poll};

    /// More than may wait to be sent.
    fn fill(connection: &Connection) {
        let text = "x".repeat(2 << 20);
        let answer = connection.pipeline.begin(|number, out| Request::RunText(&text).emit(number, out));
        drop(answer.expect("it fits a request"));
    }

    fn under_way(connection: &Connection) -> String {
        format!("{:?}", connection.pipeline)
    }

    #[test]
    fn a_transaction_begins_when_there_is_room() {
        let (line, mut connection) = connected();
        line.stop();
        fill(&connection);
        let before = under_way(&connection);
        assert!(poll(pin!(connection.begin())).is_none());
        assert_eq!(under_way(&connection), before, "it has asked for nothing, and dropped it asks for nothing");
        line.go_on();
        line.answer(Line::done);
        line.answer(Line::done);
        let transaction = poll(pin!(connection.begin())).expect("it is answered").expect("it begins");
        drop(transaction);
        assert!(line.sent().ends_with("START TRANSACTION...ROLLBACK"), "{}", line.sent());
    }

    #[test]
    fn a_transaction_ends_when_there_is_room_and_dropped_on_the_way_it_is_rolled_back() {
        for commits in [true, false] {
            let (line, mut connection) = connected();
            line.answer(Line::done);
            let transaction = poll(pin!(connection.begin())).expect("it is answered").expect("it begins");
            line.stop();
            fill(&transaction);
            let pipeline = std::sync::Arc::clone(&transaction.connection.pipeline);
            let before = format!("{pipeline:?}");
            {
                let mut end = pin!(async move {
                    match commits {
                        true => transaction.commit().await,
                        false => transaction.rollback().await,
                    }
                });
                assert!(poll(end.as_mut()).is_none());
                assert_eq!(format!("{pipeline:?}"), before, "it has asked for nothing");
                if commits {
                    line.go_on();
                    line.answer(Line::done);
                    line.answer(Line::done);
                    assert!(poll(end).expect("it is answered").is_ok());
                    assert!(line.sent().ends_with("...COMMIT"), "{}", line.sent());
                    continue;
                }
            }
            line.go_on();
            line.answer(Line::done);
            line.answer(Line::done);
            assert!(poll(pin!(connection.ping())).is_none());
            assert!(line.sent().contains("...ROLLBACK"), "{}", line.sent());
        }
    }
}
