//! Several statements in one go.

use std::sync::Arc;

use junctor_model::value::Value;

use super::connection::Connection;
use super::error::Result;
use super::row::{Outcome, Rows};
use super::statement::Statement;
use super::value::ToValue;

/// Statements that are sent together, so that they cost one way to the node and back. They run one after the other; one that fails does
/// not keep those behind it from running. In a transaction they are all or nothing, as far as the caller rolls back after an error.
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
        let connection = self.connection;
        let mut answers = Vec::with_capacity(self.statements.len());
        for (text, values) in &self.statements {
            connection.pipeline.room().await?;
            let parameters: Vec<&dyn ToValue> = values.iter().map(|value| value as &dyn ToValue).collect();
            answers.push(match text {
                Text::Prepared(statement) => (None, statement.begin(&parameters)),
                Text::Written(text) => {
                    let (statement, preparing) = connection.kept(text)?;
                    let executing = statement.begin(&parameters);
                    (Some((statement, text, preparing)), executing)
                }
            });
        }
        let mut results = Vec::with_capacity(answers.len());
        for (preparing, executing) in answers {
            let (kept, preparing) = match preparing {
                Some((statement, text, answer)) => (Some((statement, text)), answer),
                None => (None, None),
            };
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
            if let (Some((_, text)), Err(error)) = (&kept, &result) {
                connection.note_failure(text, is_refused, error);
            }
            results.push(result);
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
