//! Estimates of the rows and the duration of planned operators.

use super::cost::BUILD_NS;
use super::selectivity::UNKNOWN_ROWS;
use super::{PlanNode, TreePlanner};

/// The assumed number of groups for each row.
pub(super) const GROUPS_SHARE: f64 = 0.2;

/// The work of an operator and all below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Rows that it returns.
    pub rows: f64,
    /// Duration up to the last row in nanoseconds of one thread.
    pub cost_ns: f64,
}

impl TreePlanner<'_> {
    /// The work of an operator. A correlated subquery runs for each row, because it is not known how many of
    /// them have equal values.
    pub(super) fn work_of(&self, node: &PlanNode) -> Work {
        let of_each = |left: Work, each: Work| left.cost_ns + left.rows.max(1.0) * each.cost_ns;
        let of_both = |left: &PlanNode, right: &PlanNode| {
            let (left, right) = (self.work_of(left), self.work_of(right));
            Work { rows: left.rows + right.rows, cost_ns: left.cost_ns + right.cost_ns }
        };
        // The operator puts all rows into a table, or in order.
        let kept = |from: Work| Work { cost_ns: from.cost_ns + from.rows * BUILD_NS, ..from };
        match node {
            PlanNode::Scan(leaf) => {
                let leaf = &self.leaves.borrow()[*leaf];
                Work { rows: leaf.rows.unwrap_or(UNKNOWN_ROWS), cost_ns: leaf.cost_ns }
            }
            PlanNode::Project(block, _) => Work { rows: block.rows, ..self.work_of(&block.root) },
            PlanNode::Values(rows, _) => Work { rows: rows.len() as f64, cost_ns: 0.0 },
            PlanNode::Filter(from, _)
            | PlanNode::Compute(from, _)
            | PlanNode::Single(from)
            | PlanNode::Materialize(from)
            | PlanNode::Limit(from, _) => self.work_of(from),
            PlanNode::Apply(from, plan) => {
                let (from, subquery) = (self.work_of(from), self.work_of(&plan.block.root));
                let cost_ns = match plan.block.outer.is_empty() {
                    true => from.cost_ns + subquery.cost_ns,
                    false => of_each(from, subquery),
                };
                Work { cost_ns, ..from }
            }
            PlanNode::Join(_, _, plan) => Work { rows: plan.rows, cost_ns: plan.cost_ns },
            PlanNode::Lateral(left, plan) => {
                let (left, right) = (self.work_of(left), self.work_of(&plan.block.root));
                Work { rows: left.rows * right.rows.max(1.0), cost_ns: of_each(left, right) }
            }
            PlanNode::Aggregate(from, plan) => {
                let from = self.work_of(from);
                let rows = if plan.keys.is_empty() { 1.0 } else { (from.rows * GROUPS_SHARE).max(1.0) };
                // Partitions make the groups instead of sending the rows.
                let cost_ns = if plan.partials.is_some() { from.cost_ns } else { kept(from).cost_ns };
                Work { rows, cost_ns }
            }
            PlanNode::Distinct(from, _) | PlanNode::Sort(from, ..) | PlanNode::Window(from, _) => {
                kept(self.work_of(from))
            }
            PlanNode::Concat(left, right) => of_both(left, right),
            PlanNode::Set(left, right, _) => kept(of_both(left, right)),
            PlanNode::Recursion(plan) => plan.members.iter().fold(self.work_of(&plan.seed), |all, member| {
                let member = self.work_of(&member.root);
                Work { rows: all.rows + member.rows, cost_ns: all.cost_ns + member.cost_ns }
            }),
            _ => Work { rows: 1.0, cost_ns: 0.0 },
        }
    }
}
