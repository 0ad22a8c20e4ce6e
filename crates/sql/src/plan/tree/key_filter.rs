//! Which scan leaves out rows that a join would find no partner for.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_signals::key_filter::KeyFilter;
use junctor_signals::program::Output;

use super::{JoinKey, JoinKeyFilter, NullMatch, PlanNode, TreePlanner};
use crate::plan::statement::QueryPlan;
use crate::plan::{AccessPath, FinalStep};

/// A filter is worth its tests if not more than this share of the rows has a partner.
const SHARE_MAX: f64 = 0.7;

impl TreePlanner<'_> {
    /// Lets the scan from which the left rows of a join come test one of its keys, after the right rows were
    /// read. The join must have no rows for a left row without a partner. `share` is the share of left rows
    /// that have a partner by a key; the key with the least is tested.
    pub(super) fn key_filter(
        &self,
        left: &PlanNode,
        keys: &[JoinKey],
        share: &dyn Fn(&JoinKey) -> f64,
    ) -> Option<JoinKeyFilter> {
        let leaf = first_scan(left)?;
        let plan = &mut self.leaves.borrow_mut()[leaf];
        if plan.locks || plan.lists > 0 {
            return None;
        }
        let QueryPlan::Select(select) = &mut plan.query else { return None };
        let is_scan = matches!(select.path, AccessPath::AllRows(_) | AccessPath::Ranges { .. })
            && matches!(select.final_step, FinalStep::Stream)
            && select.limit.is_none()
            && select.sample.is_none();
        if !is_scan {
            return None;
        }
        let program = Arc::get_mut(&mut Arc::get_mut(select)?.program)?;
        let Output::Packets(projection) = &program.output else { return None };
        let tested = keys.iter().enumerate().filter_map(|(place, key)| {
            let slot = key.left.as_column().filter(|_| key.nulls == NullMatch::Nothing)?;
            let column = plan.slots.iter().position(|known| *known == Some(slot.0))?;
            let share = Some(share(key)).filter(|share| *share <= SHARE_MAX)?;
            Some((place, projection.values[column].clone(), share))
        });
        let (key, value, _) = tested.min_by(|left, right| left.2.total_cmp(&right.2))?;
        let parameter = self.environment.parameters.len() + plan.parameters.len() + plan.key_filters;
        let collation = keys[key].collation;
        program.key_filters.push(KeyFilter { value, collation, parameter: parameter as u16 });
        program.reads_parameters = true;
        plan.key_filters += 1;
        Some(JoinKeyFilter { key, leaf, number: plan.key_filters - 1 })
    }
}

/// The scan whose rows an operator passes on one by one, with more values or without some of the rows.
fn first_scan(node: &PlanNode) -> Option<usize> {
    match node {
        PlanNode::Scan(leaf) => Some(*leaf),
        PlanNode::Join(left, ..) => first_scan(left),
        PlanNode::Filter(from, conditions) if !conditions.iter().any(Expression::is_stateful) => first_scan(from),
        PlanNode::Compute(from, values) if !values.iter().any(|(value, _)| value.is_stateful()) => first_scan(from),
        _ => None,
    }
}

/// Whether rows may come from the right side of a join as well as from the left: nothing computes values from
/// row to row, and all their slots are columns of relations.
pub(super) fn is_movable(node: &PlanNode) -> bool {
    match node {
        PlanNode::Scan(_) => true,
        PlanNode::Project(block, _) => !block.is_stateful,
        PlanNode::Join(left, right, plan) => {
            is_movable(left) && is_movable(right) && !plan.conditions.iter().any(Expression::is_stateful)
        }
        PlanNode::Filter(from, conditions) => is_movable(from) && !conditions.iter().any(Expression::is_stateful),
        _ => false,
    }
}
