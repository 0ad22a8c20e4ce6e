//! Batch operators. `next` returns a batch, the end, or that the operator waits. [`scan`] waits for other
//! threads, and operators whose rows exceed the memory of the query wait for the [`spill_file`]. Every other
//! operator waits when the step has done enough, and when its input waits.

mod aggregate;
mod analyze;
mod apply;
mod batch;
mod concat_state;
mod distinct;
mod filter;
mod group_state;
mod join;
mod json_table;
mod key_table;
mod lateral;
mod limit;
mod lookup_keys;
mod meter;
mod project;
mod scan;
mod recursion;
mod set;
mod single;
mod sort;
mod spill_file;
mod spool;
mod window;

use std::sync::Arc;

use junctor_expression::aggregate::append_distinct_key;
use junctor_expression::{Expression, Parameters, Scratch};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::value::{Value, ValueRef};

use super::context::StatementContext;
use super::memory::QueryMemory;
use crate::plan::tree::{BlockPlan, PlanNode, TreePlan};

pub(super) use batch::Batch;
use batch::Frame;
pub(super) use key_table::KeyTable;
pub(super) use meter::Meters;
use recursion::WorkRows;
pub(super) use scan::Leaf;
pub(super) use spill_file::SpillFile;

/// Number of rows that one step may touch, which takes about 100 microseconds.
pub(super) const STEP_ROWS: u32 = 512;

/// The circumstances of a step.
pub(super) struct Run<'r, 'c, 't> {
    pub context: &'r mut StatementContext<'c, 't>,
    pub plan: &'r TreePlan,
    /// The statement's parameters.
    pub parameters: &'r [u8],
    pub leaves: &'r mut [Leaf],
    pub scratch: &'r mut Scratch,
    /// Number of rows that the step may still touch.
    pub rows_left: u32,
    /// Whether an operator has stopped because the step has done enough.
    pub yields: bool,
    pub memory: &'r Arc<QueryMemory>,
    pub spill: &'r mut SpillFile,
    /// Records of the temporary file that the operator has written, and their bytes.
    pub spilled: (u64, u64),
    /// The meters of EXPLAIN ANALYZE.
    pub meters: Option<&'r Arc<Meters>>,
}

/// What an operator has.
#[derive(Debug)]
pub(super) enum Step {
    Batch(Batch),
    /// The operator must be called again: a reply is missing, or the step has done enough.
    Wait,
    Done,
}

/// A source of rows.
pub(super) trait Operator: std::fmt::Debug + Send {
    fn next(&mut self, run: &mut Run<'_, '_, '_>) -> Result<Step>;
}

pub(super) type Input = Box<dyn Operator>;

impl Run<'_, '_, '_> {
    /// Spends rows of the step. Returns whether the step has done enough; the caller then waits.
    pub fn is_spent(&mut self, rows: usize) -> bool {
        self.rows_left = self.rows_left.saturating_sub(rows as u32);
        self.yields |= self.rows_left == 0;
        self.rows_left == 0
    }

    /// Counts a record that an operator has written to the temporary file.
    fn note_spilled(&mut self, bytes: u64) {
        self.spilled = (self.spilled.0 + 1, self.spilled.1 + bytes);
    }

    /// Number of bytes that operators may still reserve.
    pub fn memory_left(&self) -> usize {
        self.memory.left()
    }

    /// Evaluates something of a row that may have calls which the session carries out. `None` if one of them
    /// must be carried out first: the caller waits, and then evaluates the same again.
    pub fn with_calls<T>(&mut self, evaluate: impl FnOnce(&Scratch) -> Result<T>) -> Result<Option<T>> {
        self.scratch.reset();
        let mark = self.scratch.warning_mark();
        let assigned = self.scratch.copy_assigned();
        self.scratch.session_calls().begin();
        let outcome = evaluate(self.scratch);
        if outcome.is_err() && self.scratch.session_calls().is_wanting() {
            self.scratch.forget_warnings_after(mark);
            self.scratch.restore_assigned(assigned);
            return Ok(None);
        }
        self.scratch.session_calls().end();
        outcome.map(Some)
    }

    /// Whether all conditions are true for a row.
    pub fn all_true(&mut self, conditions: &[Expression], row: Parameters<'_>) -> Result<bool> {
        self.scratch.reset();
        all_true(conditions, row, self.scratch)
    }
}

/// Whether all conditions are true for a row.
fn all_true(conditions: &[Expression], row: Parameters<'_>, scratch: &Scratch) -> Result<bool> {
    for condition in conditions {
        if !condition.is_true(None, row, scratch)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The operators of a block over the rows of the last round of a recursive query.
fn open_round(
    run: &Run<'_, '_, '_>,
    block: &Arc<BlockPlan>,
    outer: Parameters<'_>,
    rows: &Arc<WorkRows>,
) -> Result<Input> {
    let mut frame = Frame::new(Parameters::from_bytes(run.parameters), block.width);
    for (slot, value) in &block.outer {
        frame.set(*slot, value.evaluate(None, outer, run.scratch)?);
    }
    frame.work = Some(Arc::clone(rows));
    frame.meters = run.meters.cloned();
    Ok(open(&block.root, &Arc::new(frame)))
}

/// The operators of a block for one execution. `values` are those of the outer block's row.
pub(super) fn open_block(run: &Run<'_, '_, '_>, block: &Arc<BlockPlan>, values: &[(u16, Value)]) -> Input {
    open_lookup(run, block, values, None)
}

/// As [`open_block`], with lists of keys by which a leaf reads its rows.
fn open_lookup(
    run: &Run<'_, '_, '_>,
    block: &Arc<BlockPlan>,
    values: &[(u16, Value)],
    lookup: Option<(usize, Vec<Vec<Value>>)>,
) -> Input {
    let mut frame = Frame::new(Parameters::from_bytes(run.parameters), block.width);
    for (slot, value) in values {
        frame.set(*slot, value.as_ref());
    }
    frame.meters = run.meters.cloned();
    frame.keeps_order = keeps_order(&block.root, block.is_stateful);
    frame.lookup = lookup;
    let frame = Arc::new(frame);
    open(&block.root, &frame)
}

/// Whether the joins of a block must return their rows in the order of the left rows: values of the session
/// are computed from row to row (`Single`), and nothing between sorts the rows. `is_stateful` says so about
/// the values above `node`.
fn keeps_order(node: &PlanNode, is_stateful: bool) -> bool {
    match node {
        PlanNode::Join(..) => is_stateful,
        PlanNode::Single(from) => keeps_order(from, true),
        PlanNode::Sort(from, ..) | PlanNode::Aggregate(from, _) | PlanNode::Window(from, _) => keeps_order(from, false),
        PlanNode::Filter(from, _)
        | PlanNode::Compute(from, _)
        | PlanNode::Apply(from, _)
        | PlanNode::Lateral(from, _)
        | PlanNode::Distinct(from, _)
        | PlanNode::Materialize(from)
        | PlanNode::Limit(from, _) => keeps_order(from, is_stateful),
        _ => false,
    }
}

fn open(node: &PlanNode, frame: &Arc<Frame>) -> Input {
    let opened = open_unmetered(node, frame);
    match &frame.meters {
        Some(meters) => meters.metered(node, opened),
        None => opened,
    }
}

fn open_unmetered(node: &PlanNode, frame: &Arc<Frame>) -> Input {
    let input = |node: &PlanNode| open(node, frame);
    match node {
        PlanNode::Once => Box::new(limit::Once::new(frame, true)),
        PlanNode::Nothing => Box::new(limit::Once::new(frame, false)),
        PlanNode::Scan(leaf) => Box::new(scan::Scan::new(*leaf, frame)),
        PlanNode::Project(block, slots) => Box::new(project::Project::new(block, slots, frame)),
        PlanNode::Values(rows, slots) => Box::new(project::Rows::new(rows, slots, frame)),
        PlanNode::Filter(from, conditions) => Box::new(filter::Filter::new(input(from), conditions)),
        PlanNode::Compute(from, values) => Box::new(filter::Compute::new(input(from), values)),
        PlanNode::Apply(from, plan) => Box::new(apply::Apply::new(input(from), plan)),
        PlanNode::Join(left, right, plan) => Box::new(join::Join::new((input(left), input(right)), plan, frame)),
        PlanNode::Aggregate(from, plan) => Box::new(aggregate::Aggregate::new(input(from), plan, frame)),
        PlanNode::Distinct(from, values) => Box::new(distinct::Distinct::new(input(from), values, frame)),
        PlanNode::Single(from) => Box::new(single::Single::new(input(from))),
        // Without keys, the order is that of the input.
        PlanNode::Materialize(from) => Box::new(sort::Sort::new(input(from), &Arc::default(), None, frame)),
        PlanNode::Sort(from, keys, limit) => Box::new(sort::Sort::new(input(from), keys, limit.as_ref(), frame)),
        PlanNode::Window(from, plan) => Box::new(window::Window::new(input(from), plan, frame)),
        PlanNode::Lateral(left, plan) => Box::new(lateral::Lateral::new(input(left), plan, frame)),
        PlanNode::Analyze(from, plan) => Box::new(analyze::Analyze::new(input(from), plan, frame)),
        PlanNode::DropHistogram(plan) => Box::new(analyze::DropHistogram::new(plan, frame)),
        PlanNode::JsonTable(plan) => Box::new(json_table::JsonTable::new(plan, frame)),
        PlanNode::Recursion(plan) => Box::new(recursion::Recursion::new(open(&plan.seed, frame), plan, frame)),
        PlanNode::WorkTable(slots) => Box::new(recursion::WorkTable::new(slots, frame)),
        PlanNode::Limit(from, limit) => Box::new(limit::Limit::new(input(from), limit)),
        PlanNode::Concat(left, right) => Box::new(set::Concat::new(input(left), input(right))),
        PlanNode::Set(left, right, plan) => Box::new(set::Set::new((input(left), input(right)), plan, frame)),
    }
}

/// Appends a value to a key: equal values have equal bytes, and no key is the beginning of another.
fn append_key(value: ValueRef<'_>, collation: CollationId, key: &mut Vec<u8>) {
    if value.is_null() {
        key.push(0);
        return;
    }
    key.push(1);
    let at = key.len();
    key.extend_from_slice(&[0; 4]);
    append_distinct_key(value, collation, key);
    let length = (key.len() - at - 4) as u32;
    key[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// As [`append_key`], for the values of one expression. In an ENUM, the empty text of a value that was no
/// member is not the member ''.
fn append_group_key(value: ValueRef<'_>, collation: CollationId, key: &mut Vec<u8>) {
    if let ValueRef::Choice(choice) = value {
        key.push(u8::from(choice.number == 0));
    }
    append_key(value, collation, key);
}

/// The key of the values of a row.
fn key_of(values: &[Expression], row: Parameters<'_>, scratch: &mut Scratch, key: &mut Vec<u8>) -> Result<()> {
    scratch.reset();
    key.clear();
    for value in values {
        append_key(value.evaluate(None, row, scratch)?, value.result.collation, key);
    }
    Ok(())
}
