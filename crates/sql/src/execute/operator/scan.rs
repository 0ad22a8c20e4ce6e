//! The read of a table: a query of one table whose rows enter the tree.

use std::sync::Arc;

use junctor_expression::ParametersBuilder;
use junctor_model::error::Result;
use junctor_model::value::{Value, ValueRef};

use super::batch::{BATCH_ROWS, Batch, Frame};
use super::{Operator, Run, Step};
use crate::execute::compound::Source;
use crate::execute::compute::start_compute;
use crate::execute::packets::{RowPackets, row_start};
use crate::execute::read::start_select;
use crate::execute::resume::continue_output;
use crate::execute::retry::StatementInput;
use crate::execute::state::PlanInput;
use crate::plan::tree::leaf_parameters;
use crate::plan::{LeafMeasure, QueryPlan};
use junctor_signals::program::RowProtocol;

/// The execution of a leaf. It outlives the operators, because replies find it by its position.
#[derive(Debug, Default)]
pub(in crate::execute) struct Leaf {
    pub source: Option<Source>,
    /// Row packets that no batch has yet, from `taken` on.
    packets: Vec<u8>,
    taken: usize,
    /// The filters of joins for the next read, by their numbers.
    pub key_filters: Vec<Option<Vec<u8>>>,
    /// Measurements for EXPLAIN ANALYZE.
    pub measure: LeafMeasure,
}

/// The rows of a leaf.
#[derive(Debug)]
pub(super) struct Scan {
    leaf: usize,
    frame: Arc<Frame>,
    is_started: bool,
    /// The keys that a lookup reads: a list for each part of a key.
    keys: Vec<Vec<Value>>,
}

impl Scan {
    /// The rows of a leaf, with the keys of the frame if they are those of this leaf.
    pub fn new(leaf: usize, frame: &Arc<Frame>) -> Scan {
        let of_leaf = frame.lookup.as_ref().filter(|(of, _)| *of == leaf);
        let keys = of_leaf.map_or_else(Vec::new, |(_, keys)| keys.clone());
        Scan { leaf, frame: Arc::clone(frame), is_started: false, keys }
    }

    /// The rows with these keys: a list for each part of a key.
    pub fn of_keys(leaf: usize, frame: &Arc<Frame>, keys: Vec<Vec<Value>>) -> Scan {
        Scan { keys, ..Scan::new(leaf, frame) }
    }

    fn start(&mut self, run: &mut Run<'_, '_, '_>) -> Result<()> {
        self.is_started = true;
        let plan = &run.plan.leaves[self.leaf];
        let mut builder = ParametersBuilder::new();
        run.scratch.reset();
        for value in &plan.parameters {
            builder.push(value.evaluate(None, self.frame.row(), run.scratch)?);
        }
        for list in &self.keys {
            builder.begin_list();
            list.iter().for_each(|value| builder.push(value.as_ref()));
            builder.end_list();
        }
        for number in 0..plan.key_filters {
            // Without a filter, every row is accepted.
            match run.leaves[self.leaf].key_filters.get_mut(number).and_then(Option::take) {
                Some(filter) => builder.push(ValueRef::Bytes(&filter)),
                None => builder.push(ValueRef::Null),
            }
        }
        let parameters = leaf_parameters(run.parameters, &mut builder)?;
        let mut source = Source::new(false);
        let own = std::mem::replace(&mut run.context.engine.work.parameters, parameters);
        // SQL_SELECT_LIMIT bounds the rows sent to clients.
        let select_limit = std::mem::replace(&mut run.context.session.variables.select_limit, u64::MAX);
        source.run(run.context, |context| {
            let input = PlanInput { protocol: RowProtocol::Values, shaped_text: None, input: StatementInput::NONE };
            match &plan.query {
                QueryPlan::Select(plan) => start_select(context, plan, &input),
                QueryPlan::Compute(plan) => start_compute(context, plan, input.protocol),
                QueryPlan::Tree(_) => {
                    junctor_gateway::invariant::fail("a leaf reads one table", format_args!("it is a tree"))
                }
            }
        });
        run.context.session.variables.select_limit = select_limit;
        run.context.engine.work.parameters = own;
        let leaf = &mut run.leaves[self.leaf];
        if let Some(before) = leaf.source.replace(source) {
            before.stop(run.context);
        }
        leaf.packets.clear();
        leaf.taken = 0;
        leaf.measure.reads += 1;
        Ok(())
    }
}

impl Operator for Scan {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        if !self.is_started {
            self.start(run)?;
        }
        loop {
            let leaf = &mut run.leaves[self.leaf];
            let Some(source) = &mut leaf.source else { return Ok(Step::Done) };
            if let Some(error) = source.take_error() {
                leaf.source = None;
                return Err(error);
            }
            if leaf.taken == leaf.packets.len() {
                leaf.packets = source.take_packets();
                leaf.taken = 0;
                leaf.measure.bytes += leaf.packets.len() as u64;
                // The partitions read the next rows while the tree works with these.
                if !leaf.packets.is_empty() && source.awaits_room() {
                    source.run(run.context, continue_output);
                }
            }
            if leaf.taken < leaf.packets.len() {
                let rest = &leaf.packets[leaf.taken..];
                let mut batch = Batch::new(&self.frame);
                for row in RowPackets::new(rest).take(BATCH_ROWS) {
                    batch.push_values(&row, &run.plan.leaves[self.leaf].slots)?;
                    if batch.len() == 1 {
                        batch.reserve_like_first((rest.len() / row.len().max(1)).min(BATCH_ROWS));
                    }
                }
                leaf.taken += row_start(rest, batch.len() as u64);
                leaf.measure.rows += batch.len() as u64;
                run.is_spent(batch.len());
                return Ok(Step::Batch(batch));
            }
            if source.has_ended() {
                leaf.source = None;
                return Ok(Step::Done);
            }
            if !source.awaits_room() {
                source.request_step(run.context);
                return Ok(Step::Wait);
            }
            source.run(run.context, continue_output);
        }
    }
}
