//! Correlated subqueries that are executed once for all outer rows.
//!
//! A subquery whose only use of the outer row is equalities has one answer for each of their values:
//! `(SELECT MAX(a) FROM t WHERE t.k = o.k)` is a row of `SELECT k, MAX(a) FROM t GROUP BY k`. The subquery is
//! planned both ways. The operator begins with one execution for each outer value, which reads few rows by
//! keys. It executes the grouped query once that costs less.
//!
//! The grouped query computes groups that no outer row needs, so its conditions and aggregates may neither
//! fail nor warn. The values of the select list are computed only for groups that an outer row has. The
//! answer for outer values without a group is that of the subquery itself, which the operator executes once.

use std::cell::Cell;
use std::sync::Arc;

use junctor_expression::aggregate::AggregateKind;
use junctor_expression::{ArithmeticOperator, CompareOperator, Expression, Kind, Node};
use junctor_model::error::Result;

use super::block::CommonTables;
use super::factor::is_silent_over;
use super::join::{JoinNode, key_of_equality};
use super::{BlockPlan, GroupedSubquery, JoinKey, TreePlanner};
use crate::bind::SubqueryForm;
use crate::bind::block::{BlockView, SlotOwner, SlotSpace};
use crate::bind::group_function::{GroupFunction, GroupFunctionKind};
use crate::parse::statement::Select;
use crate::plan::select::implied_lock;

/// How many grouped subqueries are planned one inside the other. Each is planned twice, so that their number
/// must be bounded.
const NESTING_MAX: u8 = 2;
/// Bound of the number of executions of a subquery before it is executed for all outer rows.
const RUNS_MAX: f64 = 1e6;

/// The equalities that connect a block with the outer row, while the block is planned without them.
pub(super) struct Correlation {
    has_aggregates: bool,
    /// Outer values, and the values of the block that are equal to them.
    pub keys: Vec<JoinKey>,
    outer_reads: usize,
    is_possible: bool,
}

/// The parts of a block that decide whether its rows can be grouped.
pub(super) struct CorrelatedBlock<'c> {
    pub space: &'c SlotSpace,
    pub from: Option<&'c mut JoinNode>,
    pub conditions: &'c mut Vec<Expression>,
    pub functions: &'c [GroupFunction],
    /// Whether it has subqueries or window functions of its own.
    pub has_more: bool,
}

impl Correlation {
    /// Takes the equalities with outer values out of a block. Returns the values of the block in them.
    pub fn take(&mut self, block: CorrelatedBlock<'_>) -> Vec<Expression> {
        let CorrelatedBlock { space, from, conditions, functions, has_more } = block;
        self.is_possible = !has_more
            && functions.is_empty() != self.has_aggregates
            && functions.iter().all(|function| is_silent_function(function, space));
        match from {
            Some(JoinNode::Relation(_)) => {}
            Some(JoinNode::Inner { members, conditions: on, .. })
                if members.iter().all(|member| matches!(member, JoinNode::Relation(_))) =>
            {
                self.split(on, space);
            }
            _ => self.is_possible = false,
        }
        self.split(conditions, space);
        self.keys.iter().map(|key| key.right.clone()).collect()
    }

    fn split(&mut self, conditions: &mut Vec<Expression>, space: &SlotSpace) {
        conditions.retain(|condition| {
            let Some((key, outer_reads)) = correlated_key(condition, space) else {
                let is_plain = |value: &Expression| is_fixed_or_slot(value);
                self.is_possible &= is_silent_over(condition, &is_plain);
                return true;
            };
            self.outer_reads += outer_reads;
            self.keys.push(key);
            false
        });
    }

    /// Whether the block that is planned now depends on the outer row by the equalities alone.
    fn is_complete(&self, outer_reads: usize) -> bool {
        self.is_possible && !self.keys.is_empty() && self.outer_reads == outer_reads
    }
}

/// The depth of grouped subqueries that are being planned.
#[derive(Debug, Default)]
pub(super) struct GroupedDepth(Cell<u8>);

impl TreePlanner<'_> {
    /// The execution of a correlated subquery for all outer rows, if there is one. `leaves` is the number of
    /// leaves before the subquery was planned.
    pub(super) fn grouped_subquery(
        &self,
        form: &SubqueryForm<'_>,
        (view, tables): (&BlockView<'_>, &CommonTables<'_>),
        leaves: usize,
    ) -> Result<Option<GroupedSubquery>> {
        let (query, has_aggregates) = match form {
            SubqueryForm::Value(query) => (*query, true),
            SubqueryForm::Exists(query) => (*query, false),
            SubqueryForm::Quantified(..) | SubqueryForm::Row(..) => return Ok(None),
        };
        let depth = self.grouped_depth.0.get();
        if depth >= NESTING_MAX || !is_plain_group(query) || implied_lock(self.environment).is_some() {
            return Ok(None);
        }
        let (before, tables_before) = (self.leaves.borrow().len(), self.tables.borrow().len());
        let mut correlation = Correlation { has_aggregates, keys: Vec::new(), outer_reads: 0, is_possible: false };
        self.grouped_depth.0.set(depth + 1);
        let planned = self.correlated_block(query, (view, tables), &mut correlation);
        self.grouped_depth.0.set(depth);
        let (block, outer_reads) = planned?;
        if !correlation.is_complete(outer_reads) {
            self.leaves.borrow_mut().truncate(before);
            self.tables.borrow_mut().truncate(tables_before);
            return Ok(None);
        }
        let leaves = &self.leaves.borrow()[leaves..];
        let (single, grouped) = leaves.split_at(before - (self.leaves.borrow().len() - leaves.len()));
        let cost = |leaves: &[super::LeafPlan]| leaves.iter().map(|leaf| leaf.cost_ns).sum::<f64>();
        let runs_max = (cost(grouped) / cost(single).max(1.0)).clamp(1.0, RUNS_MAX) as usize;
        let block = Arc::new(BlockPlan { outer: Vec::new(), ..block });
        Ok(Some(GroupedSubquery { block, keys: correlation.keys, runs_max }))
    }
}

/// Whether a query is the rows of its FROM and WHERE, or one group of them, and leaves the session as it is.
fn is_plain_group(query: &Select) -> bool {
    !query.is_stateful()
        && query.group_by.is_empty()
        && query.windows.is_empty()
        && query.having.is_none()
        && query.limit.is_none()
        && query.order_by.is_empty()
        && query.locks.is_empty()
        && query.with.is_empty()
        && !query.distinct
}

/// The key of an equality of a column and outer values, and the number of outer values that it reads.
fn correlated_key(condition: &Expression, space: &SlotSpace) -> Option<(JoinKey, usize)> {
    let Node::Compare(CompareOperator::Equal | CompareOperator::NullSafeEqual, _, operands) = &condition.node else {
        return None;
    };
    let is_column = |value: &Expression| {
        value.as_column().is_some_and(|slot| matches!(space.owner(slot), Some(SlotOwner::Column(..))))
    };
    let [first, second] = &**operands;
    let (outer, column) = match (is_column(first), is_column(second)) {
        (false, true) => (first, second),
        (true, false) => (second, first),
        _ => return None,
    };
    let mut outer = outer.clone();
    let (mut reads, mut is_outer) = (0, true);
    outer.rewrite(&mut |inner| match space.owner(inner.as_column()?) {
        Some(SlotOwner::Outer(value)) => {
            reads += 1;
            Some(value)
        }
        _ => {
            is_outer = false;
            None
        }
    });
    let key = key_of_equality(condition, outer, column.clone())?;
    // Groups are made by the collation of the column.
    let same_groups = key.right.result.kind != Kind::String || key.right.result.collation == key.collation;
    (is_outer && reads > 0 && same_groups).then_some((key, reads))
}

/// Whether an expression is a slot or has the same value in all rows.
fn is_fixed_or_slot(value: &Expression) -> bool {
    if matches!(value.node, Node::Column { .. }) {
        return true;
    }
    let mut is_fixed = true;
    value.visit(&mut |inner| {
        is_fixed &= match &inner.node {
            Node::Column { .. } | Node::MissingDefault { .. } => false,
            Node::Call(function, _) => function.is_immutable(),
            _ => true,
        };
    });
    is_fixed
}

/// Whether an aggregate neither fails nor warns.
fn is_silent_function(function: &GroupFunction, space: &SlotSpace) -> bool {
    let is_number =
        |value: &Expression| matches!(value.result.kind, Kind::Int | Kind::UInt | Kind::Decimal | Kind::Double);
    let allowed: fn(&Expression) -> bool = match function.kind {
        GroupFunctionKind::Plain(AggregateKind::Sum | AggregateKind::Average(_)) => is_number,
        GroupFunctionKind::Plain(_) => |_| true,
        _ => return false,
    };
    function.order.is_empty() && function.arguments.iter().all(|value| allowed(value) && is_silent_value(value, space))
}

/// Whether a value is computed without failure and warning: a column, or exact arithmetic.
fn is_silent_value(value: &Expression, space: &SlotSpace) -> bool {
    match &value.node {
        Node::Column { index, .. } => matches!(space.owner(*index), Some(SlotOwner::Column(..))),
        Node::Parameter(_) | Node::Constant(_) => true,
        Node::Arithmetic(
            ArithmeticOperator::Add | ArithmeticOperator::Subtract | ArithmeticOperator::Multiply,
            operands,
        ) => value.result.kind == Kind::Decimal && operands.iter().all(|operand| is_exact(operand, space)),
        _ => false,
    }
}

fn is_exact(value: &Expression, space: &SlotSpace) -> bool {
    matches!(value.result.kind, Kind::Int | Kind::UInt | Kind::Decimal) && is_silent_value(value, space)
}
