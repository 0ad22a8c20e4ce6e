//! ANALYZE TABLE: collects a sample of a table's rows, and keeps what it tells about the table.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_model::error::Result;
use junctor_model::value::Value;

use super::batch::{Batch, Frame};
use super::{Input, Operator, Run, Step};
use crate::execute::memory::Account;
use crate::plan::tree::{AnalyzePlan, DropHistogramPlan};
use crate::statistics::{RequestedHistogram, Sampler};

#[derive(Debug)]
pub(super) struct Analyze {
    input: Option<Input>,
    plan: Arc<AnalyzePlan>,
    frame: Arc<Frame>,
    sampler: Option<Sampler>,
    /// The memory of the sample.
    account: Account,
}

impl Analyze {
    pub fn new(input: Input, plan: &Arc<AnalyzePlan>, frame: &Arc<Frame>) -> Analyze {
        let columns: Vec<_> = plan.columns.iter().map(|(_, column, collation)| (*column, *collation)).collect();
        let sampler = Sampler::new(&columns, &plan.prefixes, &plan.wanted);
        Analyze {
            input: Some(input),
            plan: Arc::clone(plan),
            frame: Arc::clone(frame),
            sampler: Some(sampler),
            account: Account::default(),
        }
    }

    fn add(&mut self, run: &mut Run<'_, '_, '_>, batch: &Batch) -> Result<()> {
        let Some(sampler) = &mut self.sampler else { return Ok(()) };
        let mut bytes = 0;
        for row in 0..batch.len() {
            if sampler.is_full() {
                break;
            }
            let values = batch.row(row);
            bytes += sampler.add(self.plan.columns.iter().map(|(slot, ..)| values.get(*slot)));
        }
        sampler.end_batch();
        self.account.hold(run.memory, bytes)
    }

    /// Keeps the statistics, and returns the rows of the result.
    fn finish(&mut self, run: &mut Run<'_, '_, '_>, sampler: Sampler) -> Batch {
        let (profile, histograms) = sampler.into_profile();
        self.account.clear();
        let requested = |(column, histogram)| {
            let nulls = profile.columns.get(&column).map_or(0.0, |column| column.nulls);
            let buckets = self.plan.wanted.get(&column).copied().unwrap_or_default();
            let made = RequestedHistogram {
                histogram,
                nulls,
                buckets,
                sampling_rate: profile.sampling_rate,
                updated_us: run.context.turn.wall_clock_us,
            };
            (column, made)
        };
        let histograms: BTreeMap<_, _> = histograms.into_iter().map(requested).collect();
        let table = (&self.plan.table.definition, run.context.turn.wall_clock_us);
        run.context.engine.settings.statistics.put(table, profile, histograms);
        run.context.engine.forget_by_statistics();
        run.context.engine.forget_by_statistics_of(run.context.session);
        let mut out = Batch::new(&self.frame);
        self.plan.messages.iter().for_each(|message| push_message(&mut out, &self.plan.slots, message));
        out
    }
}

fn push_message(out: &mut Batch, slots: &[u16; 4], message: &[Value; 4]) {
    out.push();
    let row = out.len() - 1;
    for (slot, value) in slots.iter().zip(message) {
        out.set(row, *slot, value.as_ref());
    }
}

impl Operator for Analyze {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        while let Some(input) = &mut self.input {
            let batch = match input.next(run)? {
                Step::Batch(batch) => batch,
                Step::Wait => return Ok(Step::Wait),
                Step::Done => {
                    self.input = None;
                    break;
                }
            };
            self.add(run, &batch)?;
            if run.is_spent(batch.len()) {
                return Ok(Step::Wait);
            }
        }
        let Some(mut sampler) = self.sampler.take() else { return Ok(Step::Done) };
        if !sampler.finish_step(self.plan.rows) {
            self.sampler = Some(sampler);
            // A list of the sample was merged, so the step is over.
            run.is_spent(super::STEP_ROWS as usize);
            return Ok(Step::Wait);
        }
        Ok(Step::Batch(self.finish(run, sampler)))
    }
}

/// DROP HISTOGRAM.
#[derive(Debug)]
pub(super) struct DropHistogram {
    plan: Option<Arc<DropHistogramPlan>>,
    frame: Arc<Frame>,
}

impl DropHistogram {
    pub fn new(plan: &Arc<DropHistogramPlan>, frame: &Arc<Frame>) -> DropHistogram {
        DropHistogram { plan: Some(Arc::clone(plan)), frame: Arc::clone(frame) }
    }
}

impl Operator for DropHistogram {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let Some(plan) = self.plan.take() else { return Ok(Step::Done) };
        let statistics = &run.context.engine.settings.statistics;
        let was_there = statistics.remove_histogram(&plan.table.definition, plan.column);
        let mut out = Batch::new(&self.frame);
        push_message(&mut out, &plan.slots, &plan.message(was_there));
        Ok(Step::Batch(out))
    }
}
