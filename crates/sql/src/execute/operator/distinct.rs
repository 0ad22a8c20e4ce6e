//! One of several rows with equal values.
//!
//! If the values exceed the memory of the query, rows with values that are not known go to the temporary
//! file, divided by their values. Each part is then processed in the same way.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::Result;

use super::batch::{Batch, Frame};
use super::key_table::KeyTable;
use super::spool::{Parts, Spool, Spooled, key_at};
use super::{Input, Operator, Run, Step, key_of};
use crate::execute::memory::Account;

#[derive(Debug)]
pub(super) struct Distinct {
    /// The input, until it has ended.
    input: Option<Input>,
    values: Arc<[Expression]>,
    frame: Arc<Frame>,
    known: KeyTable,
    /// Rows whose values do not fit into memory; `None` as long as all fit.
    others: Option<Parts>,
    /// The parts that are left, with how often they were divided. The last one is read.
    parts: Vec<(Spool, u32)>,
    account: Account,
}

impl Distinct {
    pub fn new(input: Input, values: &Arc<[Expression]>, frame: &Arc<Frame>) -> Distinct {
        Distinct {
            input: Some(input),
            values: Arc::clone(values),
            frame: Arc::clone(frame),
            known: KeyTable::default(),
            others: None,
            parts: Vec::new(),
            account: Account::default(),
        }
    }

    /// Whether a row is the first one with its key. A row that cannot be judged goes to a part.
    fn is_first(
        &mut self,
        run: &mut Run<'_, '_, '_>,
        (batch, row): (&Batch, usize),
        (key, division): (&[u8], u32),
    ) -> Result<bool> {
        if let Some(others) = &mut self.others {
            if self.known.get(key).is_none() {
                others.push(run, Some((batch, row)), key)?;
            }
            return Ok(false);
        }
        let before = self.known.memory();
        if !self.known.insert(key, 0).1 {
            return Ok(false);
        }
        let bytes = self.known.memory() - before;
        if !self.account.try_hold(run.memory, bytes) {
            self.account.take(run.memory, bytes);
            self.others = Some(Parts::new(&self.frame, division));
        }
        Ok(true)
    }

    /// The first rows with their values among the next rows of the last part; `None` at its end.
    fn next_of_part(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Option<Step>> {
        let Some((spool, division)) = self.parts.last_mut() else { return Ok(None) };
        let division = *division;
        let (mut rows, keys) = match spool.take(run)? {
            Spooled::Rows([rows, keys]) => (rows, keys),
            Spooled::Wait => return Ok(Some(Step::Wait)),
            Spooled::End => return Ok(None),
        };
        let mut keep = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            keep.push(self.is_first(run, (&rows, row), (key_at(&keys, row), division))?);
        }
        run.is_spent(keep.len());
        rows.retain(&keep);
        Ok(Some(Step::Batch(rows)))
    }

    /// Ends the input or the last part. Returns false if nothing is left.
    fn begin_part(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        if self.input.take().is_none() {
            self.parts.pop();
        }
        if let Some(others) = self.others.take() {
            let (spools, division) = others.seal(run)?;
            self.parts.extend(spools.into_iter().filter(|spool| !spool.is_empty()).map(|spool| (spool, division)));
        }
        self.known = KeyTable::default();
        self.account.clear();
        Ok(!self.parts.is_empty())
    }
}

impl Operator for Distinct {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        loop {
            if run.spill.is_full() {
                return Ok(Step::Wait);
            }
            let Some(input) = &mut self.input else {
                match self.next_of_part(run)? {
                    Some(step) => return Ok(step),
                    None if self.begin_part(run)? => continue,
                    None => return Ok(Step::Done),
                }
            };
            let mut batch = match input.next(run)? {
                Step::Batch(batch) => batch,
                Step::Done if self.begin_part(run)? => continue,
                other => return Ok(other),
            };
            let mut key = Vec::new();
            let mut keep = Vec::with_capacity(batch.len());
            for row in 0..batch.len() {
                key_of(&self.values, batch.row(row), run.scratch, &mut key)?;
                keep.push(self.is_first(run, (&batch, row), (&key, 0))?);
            }
            run.is_spent(keep.len());
            batch.retain(&keep);
            return Ok(Step::Batch(batch));
        }
    }
}
