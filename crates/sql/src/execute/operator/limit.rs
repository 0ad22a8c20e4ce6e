//! A single row, and the rows of a window.

use std::sync::Arc;

use junctor_expression::Parameters;
use junctor_model::error::Result;

use super::batch::{Batch, Frame};
use super::{Input, Operator, Run, Step};
use crate::execute::packets::Window;
use crate::execute::read::window_of;
use crate::plan::LimitTemplate;

/// One row without values, or none.
#[derive(Debug)]
pub(super) struct Once {
    frame: Arc<Frame>,
    has_row: bool,
}

impl Once {
    pub fn new(frame: &Arc<Frame>, has_row: bool) -> Once {
        Once { frame: Arc::clone(frame), has_row }
    }
}

impl Operator for Once {
    fn next(&mut self, _run: &mut Run<'_, '_, '_>) -> Result<Step> {
        if !std::mem::take(&mut self.has_row) {
            return Ok(Step::Done);
        }
        let mut batch = Batch::new(&self.frame);
        batch.push();
        Ok(Step::Batch(batch))
    }
}

/// The rows of LIMIT and OFFSET.
#[derive(Debug)]
pub(super) struct Limit {
    input: Input,
    limit: LimitTemplate,
    window: Option<Window>,
}

impl Limit {
    pub fn new(input: Input, limit: &LimitTemplate) -> Limit {
        Limit { input, limit: *limit, window: None }
    }
}

impl Operator for Limit {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let mut window = match self.window {
            Some(window) => window,
            None => window_of(Some(&self.limit), Parameters::from_bytes(run.parameters), u64::MAX)?,
        };
        while window.remaining > 0 {
            let mut batch = match self.input.next(run)? {
                Step::Batch(batch) => batch,
                other => {
                    self.window = Some(window);
                    return Ok(other);
                }
            };
            let (skipped, taken) = window.take(batch.len() as u64);
            let keep: Vec<bool> = (0..batch.len() as u64).map(|row| row >= skipped && row < skipped + taken).collect();
            batch.retain(&keep);
            if batch.len() > 0 {
                self.window = Some(window);
                return Ok(Step::Batch(batch));
            }
        }
        self.window = Some(window);
        Ok(Step::Done)
    }
}
