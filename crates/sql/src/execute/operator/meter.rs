//! Measures operators for EXPLAIN ANALYZE.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use junctor_gateway::threads::Time;
use junctor_model::error::Result;

use super::{Input, Operator, Run, Step};
use crate::plan::OperatorMeasure;
use crate::plan::tree::{BlockPlan, PlanNode};

/// Measurements of an operator so far. The counters are atomic because sessions move between threads.
#[derive(Debug, Default)]
struct Meter {
    loops: AtomicU64,
    rows: AtomicU64,
    batches: AtomicU64,
    first_ns: AtomicU64,
    total_ns: AtomicU64,
    spills: AtomicU64,
    spilled_bytes: AtomicU64,
}

/// The meters of the operators of a plan, by the addresses of its nodes.
#[derive(Debug)]
pub(in crate::execute) struct Meters {
    by_node: BTreeMap<usize, Arc<Meter>>,
}

impl Meters {
    pub fn new(root: &BlockPlan) -> Meters {
        let mut by_node = BTreeMap::new();
        root.root.visit(&mut |node| {
            by_node.insert(address(node), Arc::default());
        });
        Meters { by_node }
    }

    /// The measurements of an operator.
    pub fn of(&self, node: &PlanNode) -> OperatorMeasure {
        let Some(meter) = self.by_node.get(&address(node)) else { return OperatorMeasure::default() };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        OperatorMeasure {
            loops: read(&meter.loops),
            rows: read(&meter.rows),
            batches: read(&meter.batches),
            first_ns: read(&meter.first_ns),
            total_ns: read(&meter.total_ns),
            spills: read(&meter.spills),
            spilled_bytes: read(&meter.spilled_bytes),
        }
    }

    /// The operator of a node with its meter.
    pub fn metered(&self, node: &PlanNode, input: Input) -> Input {
        match self.by_node.get(&address(node)) {
            Some(meter) => {
                Box::new(Metered { input, meter: Arc::clone(meter), start: None, has_row: false, counted_ns: 0 })
            }
            None => input,
        }
    }
}

fn address(node: &PlanNode) -> usize {
    std::ptr::from_ref(node).addr()
}

/// An operator that is measured.
#[derive(Debug)]
struct Metered {
    input: Input,
    meter: Arc<Meter>,
    start: Option<Time>,
    has_row: bool,
    counted_ns: u64,
}

impl Operator for Metered {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step> {
        let add = |counter: &AtomicU64, more: u64| counter.fetch_add(more, Ordering::Relaxed);
        let start = match self.start {
            Some(start) => start,
            None => {
                add(&self.meter.loops, 1);
                *self.start.insert(run.context.turn.clock_now())
            }
        };
        // The records of the operators below are theirs.
        let above = std::mem::take(&mut run.spilled);
        let step = self.input.next(run);
        let (spills, bytes) = std::mem::replace(&mut run.spilled, above);
        add(&self.meter.spills, spills);
        add(&self.meter.spilled_bytes, bytes);
        let step = step?;
        if matches!(step, Step::Wait) {
            return Ok(step);
        }
        let elapsed = run.context.turn.clock_now().since(start).0;
        add(&self.meter.total_ns, elapsed.saturating_sub(self.counted_ns));
        self.counted_ns = elapsed;
        if let Step::Batch(batch) = &step {
            if !std::mem::replace(&mut self.has_row, true) {
                add(&self.meter.first_ns, elapsed);
            }
            add(&self.meter.rows, batch.len() as u64);
            add(&self.meter.batches, 1);
        }
        Ok(step)
    }
}
