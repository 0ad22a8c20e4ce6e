//! The digest of a statement: its normalised text, by which executions are counted, and the work that its
//! plan tells of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::select::FinalStep;
use super::tree::PlanNode;
use super::{ComputeSource, OperationKind, Plan, QueryPlan, TreePlan};

/// A digest within its sql block. The block may no longer know the number; 0 is no digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestNumber(pub u64);

/// The properties that all statements of a digest have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DigestKey {
    /// The session's current database.
    pub database: Option<Box<str>>,
    /// The normalised text.
    pub text: Box<str>,
}

/// The digest of a prepared statement.
#[derive(Debug)]
pub(crate) struct PreparedDigest {
    /// The digest; `None` for a text without tokens.
    pub key: Option<Arc<DigestKey>>,
    number: AtomicU64,
}

impl PreparedDigest {
    pub fn new(key: Option<Arc<DigestKey>>, number: DigestNumber) -> PreparedDigest {
        PreparedDigest { key, number: AtomicU64::new(number.0) }
    }

    /// The number under which its sql block has counted it last.
    #[inline]
    pub fn number(&self) -> DigestNumber {
        // Relaxed: one sql block at a time uses the statement.
        DigestNumber(self.number.load(Ordering::Relaxed))
    }

    pub fn set_number(&self, number: DigestNumber) {
        self.number.store(number.0, Ordering::Relaxed);
    }
}

impl Clone for PreparedDigest {
    fn clone(&self) -> PreparedDigest {
        PreparedDigest::new(self.key.clone(), self.number())
    }
}

/// Number of the counts in [`PlanWork`].
pub(crate) const WORK_COUNTS: usize = 7;

/// The counts that each execution of a plan adds to its digest, in the order of the columns of
/// `performance_schema`: SELECT_FULL_JOIN, SELECT_FULL_RANGE_JOIN, SELECT_RANGE, SELECT_SCAN, SORT_RANGE,
/// SORT_SCAN, NO_INDEX_USED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlanWork(pub [u8; WORK_COUNTS]);

const FULL_JOIN: usize = 0;
const FULL_RANGE_JOIN: usize = 1;
const RANGE: usize = 2;
const SCAN: usize = 3;
const SORT_RANGE: usize = 4;
const SORT_SCAN: usize = 5;
const NO_INDEX_USED: usize = 6;

impl PlanWork {
    /// The work of a plan. As in MySQL, UPDATE and DELETE count in none of the columns.
    pub fn of(plan: &Plan) -> PlanWork {
        match plan.unhinted() {
            Plan::Select(plan) => Self::of_query(&QueryPlan::Select(Arc::clone(plan))),
            Plan::Compute(plan) => Self::of_query(&QueryPlan::Compute(Arc::clone(plan))),
            Plan::Tree(plan) => Self::of_tree(plan),
            Plan::Into(plan) => Self::of_query(&plan.query),
            Plan::Insert(_) | Plan::Change(_) | Plan::Modify(_) | Plan::Control(_) | Plan::Hinted(_) => {
                PlanWork::default()
            }
        }
    }

    fn of_query(query: &QueryPlan) -> PlanWork {
        let mut work = PlanWork::default();
        match query {
            QueryPlan::Tree(plan) => return Self::of_tree(plan),
            query => work.add_read(query, true),
        }
        if let QueryPlan::Select(plan) = query
            && let FinalStep::Sort { ordered: false, .. } = plan.final_step
        {
            work.add_sort();
        }
        work
    }

    fn of_tree(plan: &TreePlan) -> PlanWork {
        let mut work = PlanWork::default();
        for (position, leaf) in plan.leaves.iter().enumerate() {
            work.add_read(&leaf.query, position == 0);
        }
        if sorts(&plan.root.root) {
            work.add_sort();
        }
        work
    }

    fn add_read(&mut self, query: &QueryPlan, is_first: bool) {
        let operation = match query {
            QueryPlan::Select(plan) => plan.operation,
            QueryPlan::Compute(plan) if matches!(plan.source, ComputeSource::Nothing) => return,
            QueryPlan::Compute(_) => OperationKind::Scan,
            QueryPlan::Tree(_) => return,
        };
        match operation {
            OperationKind::Scan => {
                self.add(if is_first { SCAN } else { FULL_JOIN });
                self.0[NO_INDEX_USED] = 1;
            }
            OperationKind::RangeRead => self.add(if is_first { RANGE } else { FULL_RANGE_JOIN }),
            _ => {}
        }
    }

    fn add_sort(&mut self) {
        self.add(if self.0[RANGE] != 0 { SORT_RANGE } else { SORT_SCAN });
    }

    fn add(&mut self, count: usize) {
        self.0[count] = self.0[count].saturating_add(1);
    }

    /// Whether the result is sorted.
    pub fn has_sort(self) -> bool {
        self.0[SORT_RANGE] + self.0[SORT_SCAN] != 0
    }
}

/// Whether the rows of the outermost block are sorted.
fn sorts(node: &PlanNode) -> bool {
    match node {
        PlanNode::Sort(..) => true,
        PlanNode::Filter(input, _)
        | PlanNode::Compute(input, _)
        | PlanNode::Apply(input, _)
        | PlanNode::Lateral(input, _)
        | PlanNode::Aggregate(input, _)
        | PlanNode::Distinct(input, _)
        | PlanNode::Single(input)
        | PlanNode::Materialize(input)
        | PlanNode::Limit(input, _)
        | PlanNode::Window(input, _) => sorts(input),
        _ => false,
    }
}
