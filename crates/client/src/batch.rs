//! Several statements in one go.

use std::ops::Range;
use std::sync::Arc;

use junctor_model::value::Value;

use super::connection::{self, Connection};
use super::error::Result;
use super::row::{Outcome, Rows};
use super::statement::Statement;
use super::value::ToValue;

/// Statements that are sent together, so that they cost one way to the node and back. They run one after the other; one that fails does
/// not keep those behind it from running. In a transaction they are all or nothing, as far as the caller rolls back after an error.
///
/// A statement that did not run because the node does not know it any more (1243) or keeps too many (1461) is sent once more, as when it is
/// sent alone, if all behind it did not run for the same reason. Otherwise it keeps its error, for no statement runs after one that was
/// added later: SELECTs too take locks and set variables.
#[derive(Debug)]
#[must_use]
pub struct Batch<'c> {
    connection: &'c Connection,
    statements: Vec<(Text, Vec<Value>)>,
}

#[derive(Debug)]
enum Text {
    Written(Box<str>),
    Prepared(Arc<Statement>),
}

/// What became of a statement.
#[derive(Debug)]
struct Ran {
    result: Result<Rows>,
    may_prepare_again: bool,
}

impl<'c> Batch<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Batch<'c> {
        Batch { connection, statements: Vec::new() }
    }

    /// Adds a statement.
    pub fn add(&mut self, statement: &str, parameters: &[&dyn ToValue]) -> &mut Batch<'c> {
        self.statements.push((Text::Written(statement.into()), owned(parameters)));
        self
    }

    /// Adds an execution of a prepared statement.
    pub fn add_prepared(&mut self, statement: &Arc<Statement>, parameters: &[&dyn ToValue]) -> &mut Batch<'c> {
        self.statements.push((Text::Prepared(Arc::clone(statement)), owned(parameters)));
        self
    }

    /// How many statements there are.
    pub fn len(&self) -> usize {
        self.statements.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Runs them: for each its rows or its error.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn run_all(self) -> Result<Vec<Result<Rows>>> {
        let all = self.statements.len();
        let mut ran = self.send(0..all).await?;
        // Behind the last that ran, or failed otherwise.
        let again = ran.iter().rposition(|one| !one.may_prepare_again).map_or(0, |last| last + 1);
        if again < all {
            ran.truncate(again);
            ran.extend(self.send(again..all).await?);
        }
        Ok(ran.into_iter().map(|one| one.result).collect())
    }

    /// Sends the statements at these positions, and waits for what became of each.
    async fn send(&self, positions: Range<usize>) -> Result<Vec<Ran>> {
        let connection = self.connection;
        let mut answers = Vec::with_capacity(positions.len());
        for (text, values) in &self.statements[positions] {
            connection.pipeline.room().await?;
            let parameters: Vec<&dyn ToValue> = values.iter().map(|value| value as &dyn ToValue).collect();
            answers.push(match text {
                Text::Prepared(statement) => (None, statement.begin(&parameters)),
                Text::Written(text) => match connection.kept(text) {
                    Ok((statement, preparing)) => {
                        let executing = statement.begin(&parameters);
                        (Some((statement, text, preparing)), executing)
                    }
                    // It was not sent, and those before it were.
                    Err(error) => (None, Err(error)),
                },
            });
        }
        let mut results = Vec::with_capacity(answers.len());
        for (preparing, executing) in answers {
            let (kept, preparing) = match preparing {
                Some((statement, text, answer)) => (Some((statement, text)), answer),
                None => (None, None),
            };
            let was_kept = kept.is_some() && preparing.is_none();
            let is_prepared = match (&kept, preparing) {
                (Some((statement, _)), Some(answer)) => statement.finish_preparing(answer.await?),
                _ => Ok(()),
            };
            let is_refused = is_prepared.is_err();
            // Where it is not prepared its execution fails because it is not there.
            let result = match (is_prepared, executing) {
                (Ok(()), Ok(answer)) => connection.rows_of(answer).await,
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
            let mut may_prepare_again = false;
            if let (Some((_, text)), Err(error)) = (&kept, &result) {
                connection.note_failure(text, is_refused, error);
                may_prepare_again = connection::may_prepare_again(error, was_kept);
            }
            results.push(Ran { result, may_prepare_again });
        }
        Ok(results)
    }

    /// Runs them: what each came to, or the first error.
    ///
    /// # Errors
    /// What the first one that failed failed with; those behind it have run all the same.
    pub async fn run(self) -> Result<Vec<Outcome>> {
        let results = self.run_all().await?;
        results.into_iter().map(|result| result.map(Rows::into_outcome)).collect()
    }
}

fn owned(parameters: &[&dyn ToValue]) -> Vec<Value> {
    parameters.iter().map(|value| value.to_value().to_value()).collect()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use crate::scripted::{Line, connected, poll};

    const READ: &str = "(select a FROM t WHERE b = ?)";
    const LOCK: &str = "SELECT a FROM t WHERE b = ? FOR UPDATE";
    const WRITE: &str = "UPDATE t SET a = ?";

    /// Runs a batch of these statements, of which those marked are refused for the first time: the error number of each, or 0, and how
    /// many were sent again.
    fn run(statements: &[(&str, Option<u16>)]) -> (Vec<u16>, usize) {
        let (line, connection) = connected();
        let mut batch = connection.batch();
        for (number, (text, refusal)) in statements.iter().enumerate() {
            batch.add(&format!("{text} -- {number}"), &[&1]);
            match refusal {
                Some(errno) => [*errno, 1243].into_iter().for_each(|errno| line.answer(Line::failed(errno))),
                None => [Line::prepared, Line::done].into_iter().for_each(|answer| line.answer(answer)),
            }
        }
        let mut running = pin!(batch.run_all());
        let mut sent_again = 0;
        let results = loop {
            if let Some(results) = poll(running.as_mut()) {
                break results.expect("the connection is there");
            }
            // A statement is sent again.
            sent_again += 1;
            assert!(sent_again <= statements.len());
            [Line::prepared, Line::done].into_iter().for_each(|answer| line.answer(answer));
        };
        (results.into_iter().map(|result| result.map_or_else(|error| error.errno(), |_| 0)).collect(), sent_again)
    }

    #[test]
    fn statements_that_did_not_run_are_sent_again_if_none_behind_them_ran() {
        const FULL: Option<u16> = Some(1461);
        assert_eq!(run(&[(READ, FULL), (READ, FULL)]), (vec![0, 0], 2));
        assert_eq!(run(&[(WRITE, None), (WRITE, FULL), (READ, FULL)]), (vec![0, 0, 0], 2));
        assert_eq!(run(&[(READ, FULL), (READ, None), (LOCK, FULL)]), (vec![1461, 0, 0], 1));
        // What ran behind it ran without it.
        assert_eq!(run(&[(READ, FULL), (WRITE, None)]), (vec![1461, 0], 0));
        assert_eq!(run(&[(WRITE, FULL), (READ, None)]), (vec![1461, 0], 0));
        assert_eq!(run(&[(READ, FULL), (WRITE, FULL), (READ, None)]), (vec![1461, 1461, 0], 0));
        assert_eq!(run(&[(READ, Some(1146)), (WRITE, None)]), (vec![1146, 0], 0));
    }

    #[test]
    fn a_lock_is_not_taken_after_what_it_was_to_be_taken_before() {
        const FULL: Option<u16> = Some(1461);
        assert_eq!(run(&[(LOCK, FULL), (READ, None)]), (vec![1461, 0], 0));
        assert_eq!(run(&[(READ, FULL), (LOCK, None)]), (vec![1461, 0], 0));
        assert_eq!(run(&[(LOCK, None), (LOCK, FULL), (LOCK, None)]), (vec![0, 1461, 0], 0));
    }

    #[test]
    fn a_statement_that_cannot_be_sent_keeps_no_others_from_running() {
        let (line, connection) = connected();
        let mut batch = connection.batch();
        let too_long = "x".repeat(1 << 24);
        batch.add(READ, &[&1]).add(&too_long, &[&1]).add(READ, &[&2]);
        [Line::prepared, Line::done, Line::done].into_iter().for_each(|answer| line.answer(answer));
        let results = poll(pin!(batch.run_all())).expect("it is answered").expect("the connection is there");
        let errors: Vec<u16> =
            results.into_iter().map(|result| result.map_or_else(|error| error.errno(), |_| 0)).collect();
        assert_eq!(errors, [0, 2020, 0]);
    }
}
