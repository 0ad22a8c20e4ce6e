//! Transactions.

use std::ops::Deref;

use super::connection::Connection;
use super::error::Result;
use junctor_model::quoted_name::push_quoted_name;
use junctor_wire::Request;

/// The isolation level of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees the data that was committed when the statement began.
    ReadCommitted,
    /// All statements see the data that was committed when the transaction first read. This is the default of
    /// a session.
    RepeatableRead,
    /// As REPEATABLE READ, but reads also take locks, so that data that was read does not change before the
    /// transaction ends.
    Serializable,
}

/// Options of a new transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionOptions {
    isolation: Option<Isolation>,
    is_read_only: bool,
    takes_snapshot: bool,
}

impl TransactionOptions {
    /// The session's isolation level, with writes allowed.
    pub fn new() -> TransactionOptions {
        TransactionOptions::default()
    }

    /// Sets the isolation level of this transaction.
    pub fn isolation(self, isolation: Isolation) -> TransactionOptions {
        TransactionOptions { isolation: Some(isolation), ..self }
    }

    /// Makes the transaction read-only: the node refuses writes with error 1792.
    pub fn read_only(self) -> TransactionOptions {
        TransactionOptions { is_read_only: true, ..self }
    }

    /// Takes the snapshot when the transaction begins rather than at its first read.
    pub fn with_consistent_snapshot(self) -> TransactionOptions {
        TransactionOptions { takes_snapshot: true, ..self }
    }
}

/// An open transaction. It dereferences to its [`Connection`], whose methods then run in the transaction.
/// Dropping the transaction rolls it back. The ROLLBACK is sent immediately or, if the transport is busy,
/// with the connection's next request.
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
        // A future that is dropped while it waits here has sent nothing, and needs no rollback.
        connection.pipeline.wait_for_space().await?;
        // Created before the requests: if the future is dropped after sending them, it drops `transaction`,
        // which rolls back.
        let transaction = Transaction { connection, is_ended: false };
        let begun = |text| {
            let pipeline = &transaction.connection.pipeline;
            pipeline.enqueue(|number, out| Request::RunText(text).encode(number, out))
        };
        let level = level.map(begun).transpose()?;
        let begin = begun(begin)?;
        if let Some(level) = level {
            transaction.connection.rows_of(level).await?;
        }
        transaction.connection.rows_of(begin).await?;
        Ok(transaction)
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// The error of the commit; the transaction is then rolled back. If the connection is lost, the caller
    /// cannot know whether the transaction was committed.
    pub async fn commit(self) -> Result<()> {
        self.end("COMMIT").await
    }

    /// Rolls back the transaction and waits for the reply.
    ///
    /// # Errors
    /// The connection is lost; the node then rolls back by itself.
    pub async fn rollback(self) -> Result<()> {
        self.end("ROLLBACK").await
    }

    /// Sets a savepoint. It replaces a savepoint of the same name.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn savepoint(&self, name: &str) -> Result<()> {
        self.run_with_name("SAVEPOINT ", name).await
    }

    /// Rolls back all changes since a savepoint. The savepoint remains.
    ///
    /// # Errors
    /// 1305 if no savepoint has that name.
    pub async fn rollback_to(&self, name: &str) -> Result<()> {
        self.run_with_name("ROLLBACK TO SAVEPOINT ", name).await
    }

    /// Removes a savepoint and all later ones, and keeps the changes.
    ///
    /// # Errors
    /// 1305 if no savepoint has that name.
    pub async fn release(&self, name: &str) -> Result<()> {
        self.run_with_name("RELEASE SAVEPOINT ", name).await
    }

    async fn end(mut self, statement: &str) -> Result<()> {
        let pipeline = &self.connection.pipeline;
        pipeline.wait_for_space().await?;
        let answer = pipeline.enqueue(|number, out| Request::RunText(statement).encode(number, out))?;
        // From here on the queued request takes effect, even if this future is dropped, so `drop` must not
        // roll back.
        self.is_ended = true;
        self.connection.rows_of(answer).await.map(drop)
    }

    async fn run_with_name(&self, statement: &str, name: &str) -> Result<()> {
        let mut text = String::from(statement);
        push_quoted_name(name, &mut text);
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
            pipeline.enqueue_and_discard(|number, out| Request::RunText("ROLLBACK").encode(number, out));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::scripted::{ScriptedNode, connected, poll};

    /// Queues more bytes than may wait to be sent.
    fn fill(connection: &Connection) {
        let text = "x".repeat(2 << 20);
        let answer = connection.pipeline.enqueue(|number, out| Request::RunText(&text).encode(number, out));
        drop(answer.expect("it fits a request"));
    }

    fn pending_requests(connection: &Connection) -> String {
        format!("{:?}", connection.pipeline)
    }

    #[test]
    fn a_transaction_begins_when_the_queue_has_space() {
        let (node, mut connection) = connected();
        node.stop();
        fill(&connection);
        let before = pending_requests(&connection);
        assert!(poll(pin!(connection.begin())).is_none());
        assert_eq!(pending_requests(&connection), before, "neither the waiting future nor its drop makes a request");
        node.resume();
        node.answer(ScriptedNode::done);
        node.answer(ScriptedNode::done);
        let transaction = poll(pin!(connection.begin())).expect("it is answered").expect("it begins");
        drop(transaction);
        assert!(node.sent().ends_with("START TRANSACTION...ROLLBACK"), "{}", node.sent());
    }

    #[test]
    fn a_transaction_ends_when_the_queue_has_space_and_is_rolled_back_if_dropped_before() {
        for commits in [true, false] {
            let (node, mut connection) = connected();
            node.answer(ScriptedNode::done);
            let transaction = poll(pin!(connection.begin())).expect("it is answered").expect("it begins");
            node.stop();
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
                assert_eq!(format!("{pipeline:?}"), before, "a waiting future makes no request");
                if commits {
                    node.resume();
                    node.answer(ScriptedNode::done);
                    node.answer(ScriptedNode::done);
                    assert!(poll(end).expect("it is answered").is_ok());
                    assert!(node.sent().ends_with("...COMMIT"), "{}", node.sent());
                    continue;
                }
            }
            node.resume();
            node.answer(ScriptedNode::done);
            node.answer(ScriptedNode::done);
            assert!(poll(pin!(connection.ping())).is_none());
            assert!(node.sent().contains("...ROLLBACK"), "{}", node.sent());
        }
    }
}
