//! Prepared statements.

use std::sync::Arc;
use std::sync::OnceLock;

use super::error::{Error, Result};
use super::pipeline::{PendingReply, Pipeline};
use super::row::{Columns, Outcome, Rows};
use super::value::{ToValue, check};
use junctor_wire::value::encode_value;
use junctor_wire::{Reply, Request, next_frame};

/// A prepared statement. It belongs to its connection, and runs in the connection's open transaction, if any.
/// Dropping the statement deallocates it on the node.
#[derive(Debug)]
pub struct Statement {
    pipeline: Arc<Pipeline>,
    handle: u32,
    /// Number of parameters, and the columns of the rows, once the preparation has succeeded.
    prepared: OnceLock<(u16, Columns)>,
}

impl Statement {
    pub(crate) fn begin_preparing(
        pipeline: &Arc<Pipeline>,
        handle: u32,
        text: &str,
    ) -> Result<(Statement, PendingReply)> {
        let request = Request::Prepare { handle, text };
        let answer = pipeline.enqueue(|number, out| request.encode(number, out))?;
        Ok((Statement { pipeline: Arc::clone(pipeline), handle, prepared: OnceLock::new() }, answer))
    }

    pub(crate) fn finish_preparing(&self, answer: Vec<u8>) -> Result<()> {
        let prepared = parse_prepared(&answer)?;
        // Not set before: each preparation has one reply, which one caller awaits.
        let _ = self.prepared.set(prepared);
        Ok(())
    }

    /// Number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.prepared.get().map_or(0, |(count, _)| usize::from(*count))
    }

    /// Executes a statement that returns rows.
    ///
    /// # Errors
    /// The error of the statement; 1210 for a wrong number of parameters.
    pub async fn query(&self, parameters: &[&dyn ToValue]) -> Result<Rows> {
        self.pipeline.wait_for_space().await?;
        let (rows, status) = Rows::parse(self.begin(parameters)?.await?)?;
        self.pipeline.note_status(status);
        Ok(rows)
    }

    /// Executes a statement that returns no rows.
    ///
    /// # Errors
    /// As [`Statement::query`].
    pub async fn execute(&self, parameters: &[&dyn ToValue]) -> Result<Outcome> {
        self.query(parameters).await.map(Rows::into_outcome)
    }

    /// Queues the execution without waiting for its reply.
    pub(crate) fn begin(&self, parameters: &[&dyn ToValue]) -> Result<PendingReply> {
        let count = u16::try_from(parameters.len()).map_err(|_| Error::too_long())?;
        let mut values = Vec::with_capacity(parameters.len() * 16);
        for parameter in parameters {
            let value = parameter.to_value();
            check(value.as_ref())?;
            encode_value(value.as_ref(), &mut values);
        }
        let request = Request::Execute { handle: self.handle, count, values: &values };
        self.pipeline.enqueue(|number, out| request.encode(number, out))
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        let request = Request::Close { handle: self.handle };
        self.pipeline.enqueue_and_discard(|number, out| request.encode(number, out));
    }
}

/// Reads the reply to a preparation: the number of parameters or key columns, and the columns of the rows.
pub(crate) fn parse_prepared(answer: &[u8]) -> Result<(u16, Columns)> {
    let (frame, _) = next_frame(answer).ok_or(Error::protocol("end"))?;
    match Reply::parse(frame)?.1 {
        Reply::Prepared { parameters, columns } => Ok((parameters, Columns::new(columns))),
        Reply::Failed { errno, sqlstate, message } => Err(Error::server(errno, sqlstate, message)),
        _ => Err(Error::protocol("kind")),
    }
}
