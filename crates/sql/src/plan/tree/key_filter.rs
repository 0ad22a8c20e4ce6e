//! Which scan leaves out rows that a join would find no partner for.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_signals::key_filter::KeyFilter;
use junctor_signals::program::Output;

use super::{JoinKey, JoinKeyFilter, NullMatch, PlanNode, TreePlanner};
use crate::plan::statement::QueryPlan;
use crate::plan::{AccessPath, FinalStep};

impl TreePlanner<'_> {
    /// Lets the scan from which the left rows of a join come test one of its keys, after the right rows were
    /// read. The join must have no rows for a left row without a partner.
    pub(super) fn key_filter(&self, left: &PlanNode, keys: &[JoinKey]) -> Option<JoinKeyFilter> {
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
        let (key, value) = keys.iter().enumerate().find_map(|(place, key)| {
            let slot = key.left.as_column().filter(|_| key.nulls == NullMatch::Nothing)?;
            let column = plan.slots.iter().position(|known| *known == Some(slot.0))?;
            Some((place, projection.values[column].clone()))
        })?;
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
