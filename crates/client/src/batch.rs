//! Batches: several statements in one round trip.

use std::ops::Range;
use std::sync::Arc;

use junctor_model::value::Value;

use super::connection::{self, Connection};
use super::error::Result;
use super::row::{Outcome, Rows};
use super::statement::Statement;
use super::value::ToValue;

/// Statements that are sent together and cost one round trip. They run in the order in which they were added.
/// A failed statement does not prevent the later ones from running. A batch is atomic only within a
/// transaction, if the caller rolls back after an error.
///
/// The node may refuse to run a statement because it no longer has the prepared statement (1243) or because
/// it has too many of them (1461). The driver sends a refused statement once more if the node refused all
/// later statements for the same reasons. Otherwise the statement keeps its error: statements must not run
/// out of order, since even a SELECT may take locks and set variables.
#[derive(Debug)]
#[must_use]
pub struct Batch<'c> {
    connection: &'c Connection,
    statements: Vec<(Source, Vec<Value>)>,
}

#[derive(Debug)]
enum Source {
    Text(Box<str>),
    Prepared(Arc<Statement>),
}

/// The result of a statement.
#[derive(Debug)]
struct Execution {
    result: Result<Rows>,
    /// The statement did not run, and may succeed if it is prepared again.
    may_prepare_again: bool,
}

impl<'c> Batch<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Batch<'c> {
        Batch { connection, statements: Vec::new() }
    }

    /// Adds a statement. Each `?` in its text is a parameter.
    pub fn add(&mut self, statement: &str, parameters: &[&dyn ToValue]) -> &mut Batch<'c> {
        self.statements.push((Source::Text(statement.into()), owned_values(parameters)));
        self
    }

    /// Adds an execution of a prepared statement.
    pub fn add_prepared(&mut self, statement: &Arc<Statement>, parameters: &[&dyn ToValue]) -> &mut Batch<'c> {
        self.statements.push((Source::Prepared(Arc::clone(statement)), owned_values(parameters)));
        self
    }

    /// Number of statements.
    pub fn len(&self) -> usize {
        self.statements.len()
    }

    /// Whether the batch has no statements.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Runs the statements. Returns the rows or the error of each.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn run_all(self) -> Result<Vec<Result<Rows>>> {
        let all = self.statements.len();
        let mut executions = self.send(0..all).await?;
        // The position after the last statement that ran or failed for another reason.
        let retry_from = executions.iter().rposition(|one| !one.may_prepare_again).map_or(0, |last| last + 1);
        if retry_from < all {
            executions.truncate(retry_from);
            executions.extend(self.send(retry_from..all).await?);
        }
        Ok(executions.into_iter().map(|one| one.result).collect())
    }

    /// Sends the statements at `positions` and waits for their results.
    async fn send(&self, positions: Range<usize>) -> Result<Vec<Execution>> {
        let connection = self.connection;
        let mut answers = Vec::with_capacity(positions.len());
        for (text, values) in &self.statements[positions] {
            // Waits before each statement, so that a batch of any size queues a bounded number of bytes.
            connection.pipeline.wait_for_space().await?;
            let parameters: Vec<&dyn ToValue> = values.iter().map(|value| value as &dyn ToValue).collect();
            answers.push(match text {
                Source::Prepared(statement) => (None, statement.begin(&parameters)),
                Source::Text(text) => match connection.find_or_begin_preparing(text) {
                    Ok((statement, preparing)) => {
                        let executing = statement.begin(&parameters);
                        (Some((statement, text, preparing)), executing)
                    }
                    // This statement was not sent, but the replies to the earlier ones must still be read.
                    Err(error) => (None, Err(error)),
                },
            });
        }
        let mut results = Vec::with_capacity(answers.len());
        for (preparing, executing) in answers {
            let (cached, preparing) = match preparing {
                Some((statement, text, answer)) => (Some((statement, text)), answer),
                None => (None, None),
            };
            let was_cached = cached.is_some() && preparing.is_none();
            let is_prepared = match (&cached, preparing) {
                (Some((statement, _)), Some(answer)) => statement.finish_preparing(answer.await?),
                _ => Ok(()),
            };
            let is_refused = is_prepared.is_err();
            // After a failed preparation the execution fails too, with 1243. Report the error of the
            // preparation, which has the cause; dropping `executing` discards the other error.
            let result = match (is_prepared, executing) {
                (Ok(()), Ok(answer)) => connection.rows_of(answer).await,
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
            let mut may_prepare_again = false;
            if let (Some((_, text)), Err(error)) = (&cached, &result) {
                connection.evict_after(text, is_refused, error);
                may_prepare_again = connection::may_prepare_again(error, was_cached);
            }
            results.push(Execution { result, may_prepare_again });
        }
        Ok(results)
    }

    /// Runs the statements. Returns the outcome of each, or the first error.
    ///
    /// # Errors
    /// The error of the first statement that failed. The later statements ran nevertheless.
    pub async fn run(self) -> Result<Vec<Outcome>> {
        let results = self.run_all().await?;
        results.into_iter().map(|result| result.map(Rows::into_outcome)).collect()
    }
}

fn owned_values(parameters: &[&dyn ToValue]) -> Vec<Value> {
    parameters.iter().map(|value| value.to_value().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use crate::scripted::{ScriptedNode, connected, poll};

    const READ: &str = "(select a FROM t WHERE b = ?)";
    const LOCK: &str = "SELECT a FROM t WHERE b = ? FOR UPDATE";
    const WRITE: &str = "UPDATE t SET a = ?";

    /// Runs a batch on a node that refuses a statement with the given error number the first time. Returns
    /// the final error number of each statement, or 0, and how many statements were sent again.
    fn run(statements: &[(&str, Option<u16>)]) -> (Vec<u16>, usize) {
        let (node, connection) = connected();
        let mut batch = connection.batch();
        for (number, (text, refusal)) in statements.iter().enumerate() {
            batch.add(&format!("{text} -- {number}"), &[&1]);
            match refusal {
                Some(errno) => [*errno, 1243].into_iter().for_each(|errno| node.answer(ScriptedNode::failed(errno))),
                None => [ScriptedNode::prepared, ScriptedNode::done].into_iter().for_each(|answer| node.answer(answer)),
            }
        }
        let mut running = pin!(batch.run_all());
        let mut sent_again = 0;
        let results = loop {
            if let Some(results) = poll(running.as_mut()) {
                break results.expect("the connection is there");
            }
            // The batch waits, so it has sent a statement again.
            sent_again += 1;
            assert!(sent_again <= statements.len());
            [ScriptedNode::prepared, ScriptedNode::done].into_iter().for_each(|answer| node.answer(answer));
        };
        (results.into_iter().map(|result| result.map_or_else(|error| error.errno(), |_| 0)).collect(), sent_again)
    }

    #[test]
    fn refused_statements_are_sent_again_if_no_later_one_ran() {
        const FULL: Option<u16> = Some(1461);
        assert_eq!(run(&[(READ, FULL), (READ, FULL)]), (vec![0, 0], 2));
        assert_eq!(run(&[(WRITE, None), (WRITE, FULL), (READ, FULL)]), (vec![0, 0, 0], 2));
        assert_eq!(run(&[(READ, FULL), (READ, None), (LOCK, FULL)]), (vec![1461, 0, 0], 1));
        // A later statement ran, so the refused statement must not be sent again.
        assert_eq!(run(&[(READ, FULL), (WRITE, None)]), (vec![1461, 0], 0));
        assert_eq!(run(&[(WRITE, FULL), (READ, None)]), (vec![1461, 0], 0));
        assert_eq!(run(&[(READ, FULL), (WRITE, FULL), (READ, None)]), (vec![1461, 1461, 0], 0));
        assert_eq!(run(&[(READ, Some(1146)), (WRITE, None)]), (vec![1146, 0], 0));
    }

    #[test]
    fn a_locking_read_does_not_run_after_a_later_statement() {
        const FULL: Option<u16> = Some(1461);
        assert_eq!(run(&[(LOCK, FULL), (READ, None)]), (vec![1461, 0], 0));
        assert_eq!(run(&[(READ, FULL), (LOCK, None)]), (vec![1461, 0], 0));
        assert_eq!(run(&[(LOCK, None), (LOCK, FULL), (LOCK, None)]), (vec![0, 1461, 0], 0));
    }

    #[test]
    fn a_statement_that_cannot_be_sent_does_not_prevent_others_from_running() {
        let (node, connection) = connected();
        let mut batch = connection.batch();
        let too_long = "x".repeat(1 << 24);
        batch.add(READ, &[&1]).add(&too_long, &[&1]).add(READ, &[&2]);
        [ScriptedNode::prepared, ScriptedNode::done, ScriptedNode::done]
            .into_iter()
            .for_each(|answer| node.answer(answer));
        let results = poll(pin!(batch.run_all())).expect("it is answered").expect("the connection is there");
        let errors: Vec<u16> =
            results.into_iter().map(|result| result.map_or_else(|error| error.errno(), |_| 0)).collect();
        assert_eq!(errors, [0, 2020, 0]);
    }
}
