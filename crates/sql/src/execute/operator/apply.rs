//! The value of a subquery for each row. Values are kept by the values of the outer row, so that a subquery
//! runs once for each of them, unless it changes or reads the state of the session.

use std::sync::Arc;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::{Value, ValueRef};

use super::batch::Batch;
use super::key_table::KeyTable;
use super::{Input, Operator, Run, Step, append_key, open_block};
use crate::plan::tree::{ApplyForm, ApplyPlan};

/// The result of the subquery for some outer values.
#[derive(Debug, Default)]
struct Answer {
    rows: Vec<Vec<Value>>,
}

#[derive(Debug)]
pub(super) struct Apply {
    input: Input,
    plan: Arc<ApplyPlan>,
    batch: Option<Batch>,
    row: usize,
    /// The subquery that runs, with the rows so far.
    running: Option<(Input, Answer)>,
    answers: Vec<Answer>,
    known: KeyTable,
    /// Bytes of the answers.
    held: usize,
}

impl Apply {
    pub fn new(input: Input, plan: &Arc<ApplyPlan>) -> Apply {
        Apply {
            input,
            plan: Arc::clone(plan),
            batch: None,
            row: 0,
            running: None,
            answers: Vec::new(),
            known: KeyTable::default(),
            held: 0,
        }
    }

    /// Runs the subquery to its end. Returns false if it waits.
    fn advance(&mut self, run: &mut Run<'_, '_, '_>) -> Result<bool> {
        let Some((input, answer)) = &mut self.running else { return Ok(true) };
        loop {
            let batch = match input.next(run)? {
                Step::Batch(batch) => batch,
                Step::Wait => return Ok(false),
                Step::Done => return Ok(true),
            };
            for row in 0..batch.len() {
                if matches!(self.plan.form, ApplyForm::Exists) {
                    answer.rows.push(Vec::new());
                    return Ok(true);
                }
                run.scratch.reset();
                let mut values = Vec::with_capacity(self.plan.block.values.len());
                for value in &self.plan.block.values {
                    values.push(value.evaluate(None, batch.row(row), run.scratch)?.to_value());
                }
                answer.rows.push(values);
            }
            let is_single = matches!(self.plan.form, ApplyForm::Value | ApplyForm::Row { .. });
            if is_single && answer.rows.len() > 1 {
                return Err(Error::new(ErrorCode::SubqueryRows, "Subquery returns more than 1 row"));
            }
            run.reserve(batch.memory())?;
            self.held += batch.memory();
            if run.is_spent(batch.len()) {
                return Ok(false);
            }
        }
    }

    /// The value for a row, given the answer of the subquery.
    fn value(&self, run: &mut Run<'_, '_, '_>, batch: &Batch, answer: usize) -> Result<Value> {
        let rows = &self.answers[answer].rows;
        let (condition, slots, all) = match &self.plan.form {
            ApplyForm::Value => return Ok(rows.first().and_then(|row| row.first()).cloned().unwrap_or(Value::Null)),
            ApplyForm::Exists => return Ok(Value::Int(i64::from(!rows.is_empty()))),
            ApplyForm::Quantified { all, condition, slots } => (condition, slots, *all),
            ApplyForm::Row { condition, slots } => {
                if rows.is_empty() {
                    return Ok(Value::Null);
                }
                (condition, slots, true)
            }
        };
        let mut is_unknown = false;
        for values in rows {
            let mut pair = Batch::of_row(batch, self.row);
            for (slot, value) in slots.iter().zip(values) {
                pair.set(0, *slot, value.as_ref());
            }
            run.scratch.reset();
            run.is_spent(1);
            match condition.evaluate(None, pair.row(0), run.scratch)? {
                ValueRef::Null => is_unknown = true,
                ValueRef::Int(0) if all => return Ok(Value::Int(0)),
                ValueRef::Int(0) => {}
                _ if !all => return Ok(Value::Int(1)),
                _ => {}
            }
        }
        Ok(if is_unknown { Value::Null } else { Value::Int(i64::from(all)) })
    }
}

impl Operator for Apply {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let mut batch = match self.batch.take() {
            Some(batch) => batch,
            None => match self.input.next(run)? {
                Step::Batch(batch) => {
                    self.row = 0;
                    batch
                }
                other => return Ok(other),
            },
        };
        let mut key = Vec::new();
        while self.row < batch.len() {
            key.clear();
            run.scratch.reset();
            let mut outer = Vec::new();
            for (slot, value) in &self.plan.block.outer {
                let bound = value.evaluate(None, batch.row(self.row), run.scratch)?;
                // Values that are equal in a collation may still differ for the subquery.
                append_key(bound, junctor_model::collation::CollationId::BINARY, &mut key);
                outer.push((*slot, bound.to_value()));
            }
            let answer = match self.known.get(&key) {
                Some(answer) => answer as usize,
                None => {
                    if self.running.is_none() {
                        let input = open_block(run, &self.plan.block, &outer);
                        self.running = Some((input, Answer::default()));
                    }
                    if !self.advance(run)? {
                        self.batch = Some(batch);
                        return Ok(Step::Wait);
                    }
                    let answer = self.running.take().map_or_else(Answer::default, |(_, answer)| answer);
                    if self.plan.block.is_stateful {
                        self.answers.clear();
                    } else {
                        let before = self.known.memory();
                        self.known.insert(&key, self.answers.len() as u32);
                        run.reserve(self.known.memory() - before)?;
                    }
                    self.answers.push(answer);
                    self.answers.len() - 1
                }
            };
            let value = self.value(run, &batch, answer)?;
            batch.set(self.row, self.plan.slot, value.as_ref());
            self.row += 1;
            if self.plan.block.is_stateful {
                *run.memory = run.memory.saturating_sub(std::mem::take(&mut self.held));
            }
            if run.is_spent(1) && self.row < batch.len() {
                self.batch = Some(batch);
                return Ok(Step::Wait);
            }
        }
        Ok(Step::Batch(batch))
    }
}
