//! Values that read or change the state of the session: its user variables.
//!
//! The session evaluates such a value once for each row. In a block that is after WHERE, or, if HAVING or
//! ORDER BY reads the value, before them; otherwise the select list is evaluated last, in the order of the
//! result.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::{Error, Result};

use super::block::Lists;
use super::{BlockPlan, PlanNode};
use crate::bind::block::SlotSpace;
use crate::bind::window::WindowFunction;
use crate::parse::statement::Select;

/// Error 1235 for window functions of user variables that the statement assigns, and for such variables in a
/// subquery and beside it, because subqueries run before the other values of their row.
pub(super) fn check_stateful(windows: &[WindowFunction], is_mixed: bool) -> Result<()> {
    if windows.iter().any(|window| window.expressions().any(Expression::is_stateful)) {
        return Err(Error::not_supported("a user variable that the statement assigns, in a window function"));
    }
    match is_mixed {
        true => Err(Error::not_supported("a user variable that the statement assigns, in a subquery and beside it")),
        false => Ok(()),
    }
}

impl Lists {
    /// Whether a value or one of the conditions of WHERE changes or reads the state of the session.
    pub fn are_stateful(&self, conditions: &[Expression]) -> bool {
        let in_functions = self.functions.functions.iter().flat_map(|function| &function.arguments);
        let values = self.projection.values.iter().chain(&self.keys).chain(&self.having).chain(conditions);
        values.chain(self.sort.iter().map(|key| &key.value)).chain(in_functions).any(Expression::is_stateful)
    }

    /// Error 1235 for a stateful subquery of the select list whose value HAVING, ORDER BY and DISTINCT do not
    /// read, because subqueries run before HAVING, ORDER BY and LIMIT.
    pub fn check_subqueries(&self, select: &Select, is_stateful: impl Fn(&Expression) -> bool) -> Result<()> {
        let has_clause = !self.sort.is_empty() || select.limit.is_some() || self.having.is_some();
        if !has_clause || select.distinct {
            return Ok(());
        }
        let read_before = || self.having.iter().chain(self.sort.iter().map(|key| &key.value));
        for value in &self.projection.values {
            let mut is_late = false;
            value.visit(&mut |inner| {
                is_late |= is_stateful(inner) && !read_before().any(|reader| contains(reader, inner));
            });
            if is_late {
                let what =
                    "a subquery of the select list that assigns a user variable, beside HAVING, ORDER BY or LIMIT";
                return Err(Error::not_supported(what));
            }
        }
        Ok(())
    }

    /// Computes the stateful keys of groups before the groups are made.
    pub fn compute_keys(&mut self, node: PlanNode, space: &SlotSpace) -> Result<PlanNode> {
        let mut computed = Vec::new();
        for place in 0..self.keys.len() {
            if !self.keys[place].is_stateful() {
                continue;
            }
            let slot = space.computed(self.keys[place].result, "")?;
            let key = std::mem::replace(&mut self.keys[place], slot.clone());
            let replace = |value: &mut Expression| value.rewrite(&mut |inner| (*inner == key).then(|| slot.clone()));
            self.projection.values.iter_mut().chain(&mut self.having).for_each(replace);
            self.sort.iter_mut().for_each(|sort| replace(&mut sort.value));
            computed.push((key, slot));
        }
        Ok(computing(node, computed))
    }

    /// Computes the stateful values of the select list, if HAVING reads one of them. Error: 1235 with window
    /// functions, which run after HAVING.
    pub fn compute_for_having(&mut self, node: PlanNode, has_windows: bool, space: &SlotSpace) -> Result<PlanNode> {
        let reads = |value: &Expression| self.having.as_ref().is_some_and(|having| contains(having, value));
        if !self.projection.values.iter().any(|value| value.is_stateful() && reads(value)) {
            return Ok(node);
        }
        if has_windows {
            let what = "a user variable that the statement assigns, in HAVING beside window functions";
            return Err(Error::not_supported(what));
        }
        let stateful = self.stateful();
        self.compute_values(node, &stateful, space)
    }

    /// Computes the values of the select list that DISTINCT or ORDER BY reads, so that each has one value for
    /// both. All others are left for the rows in order, of which LIMIT may leave few. The stateful ones are
    /// computed together.
    pub fn compute_for_sort(&mut self, mut node: PlanNode, distinct: bool, space: &SlotSpace) -> Result<PlanNode> {
        let needed = self.read_in_sort(distinct);
        let is_needed = |(value, needed): (&Expression, &bool)| *needed && value.is_stateful();
        if self.projection.values.iter().zip(&needed).any(is_needed) {
            let stateful = self.stateful();
            node = self.compute_values(node, &stateful, space)?;
        }
        let needed = self.read_in_sort(distinct);
        self.compute_values(node, &needed, space)
    }

    /// Which values of the select list DISTINCT or ORDER BY reads.
    fn read_in_sort(&self, distinct: bool) -> Vec<bool> {
        let reads = |value: &Expression| self.sort.iter().any(|key| contains(&key.value, value));
        self.projection.values.iter().map(|value| distinct || reads(value)).collect()
    }

    /// Which values of the select list are stateful.
    fn stateful(&self) -> Vec<bool> {
        self.projection.values.iter().map(Expression::is_stateful).collect()
    }

    /// Computes some values of the select list, except columns and constants. HAVING and ORDER BY read the
    /// computed ones.
    fn compute_values(&mut self, node: PlanNode, needed: &[bool], space: &SlotSpace) -> Result<PlanNode> {
        let mut computed = Vec::new();
        for (value, _) in self.projection.values.iter_mut().zip(needed).filter(|(_, needed)| **needed) {
            if value.as_column().is_some() || value.as_constant().is_some() {
                continue;
            }
            let slot = space.computed(value.result, "")?;
            let replace = |reader: &mut Expression| reader.rewrite(&mut |inner| (inner == value).then(|| slot.clone()));
            self.having.iter_mut().for_each(replace);
            self.sort.iter_mut().for_each(|key| replace(&mut key.value));
            computed.push((std::mem::replace(value, slot.clone()), slot));
        }
        Ok(computing(node, computed))
    }
}

/// Whether an expression is a part of another one, or the whole.
fn contains(whole: &Expression, part: &Expression) -> bool {
    let mut found = false;
    whole.visit(&mut |inner| found |= inner == part);
    found
}

/// The rows of `node` with values in slots; one by one if a value is stateful.
fn computing(node: PlanNode, values: Vec<(Expression, Expression)>) -> PlanNode {
    if values.is_empty() {
        return node;
    }
    let is_stateful = values.iter().any(|(value, _)| value.is_stateful());
    let node = if is_stateful { PlanNode::Single(Box::new(node)) } else { node };
    let number = |slot: Expression| slot.as_column().map_or(0, |column| column.0);
    let values: Vec<(Expression, u16)> = values.into_iter().map(|(value, slot)| (value, number(slot))).collect();
    PlanNode::Compute(Box::new(node), Arc::from(values))
}

/// Adds slots for the stateful values of a query that nothing reads. They are evaluated from left to right.
pub(super) fn with_unread(block: &BlockPlan, slots: &mut Vec<(usize, u16)>, space: &SlotSpace) -> Result<()> {
    for (place, value) in block.values.iter().enumerate() {
        if value.is_stateful() && slots.iter().all(|(known, _)| *known != place) {
            let slot = space.computed(value.result, "")?;
            slots.extend(slot.as_column().map(|column| (place, column.0)));
        }
    }
    slots.sort_unstable();
    Ok(())
}

/// The order of the parts of a join, with the queries at its end that set user variables without reading a
/// table. Each join reads such a right side first. These queries thus run before all others, in the order of
/// FROM.
pub(super) fn with_initial_last(mut order: Vec<usize>, is_initial: &dyn Fn(usize) -> bool) -> Vec<usize> {
    let mut initial: Vec<usize> = (0..order.len()).rev().filter(|place| is_initial(*place)).collect();
    order.retain(|place| !is_initial(*place));
    order.append(&mut initial);
    order
}
