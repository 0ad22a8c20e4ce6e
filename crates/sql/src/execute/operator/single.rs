//! Rows one by one.

use junctor_model::error::Result;

use super::batch::Batch;
use super::{Input, Operator, Run, Step};

/// Returns batches of one row. The operators above are done with a row before they ask for the next, so what
/// they change in the state of the session is in the order of the rows.
#[derive(Debug)]
pub(super) struct Single {
    input: Input,
    /// The rows that are not returned yet, from `next` on.
    batch: Option<Batch>,
    next: usize,
}

impl Single {
    pub fn new(input: Input) -> Single {
        Single { input, batch: None, next: 0 }
    }
}

impl Operator for Single {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            if let Some(batch) = self.batch.as_ref().filter(|batch| self.next < batch.len()) {
                self.next += 1;
                return Ok(Step::Batch(Batch::of_row(batch, self.next - 1)));
            }
            match self.input.next(run)? {
                Step::Batch(batch) => (self.batch, self.next) = (Some(batch), 0),
                other => return Ok(other),
            }
        }
    }
}
