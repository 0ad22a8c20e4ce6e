//! Correlated subqueries that are executed once for all outer rows.
//!
//! A subquery whose only use of the outer row is equalities has one answer for each of their values:
//! `(SELECT MAX(a) FROM t WHERE t.k = o.k)` is a row of `SELECT k, MAX(a) FROM t GROUP BY k`. The subquery is
//! planned both ways. The operator begins with one execution for each outer value, which reads few rows by
//! keys. It executes the grouped query once that costs less.
//!
//! If the query reads one table, and an index finds its rows by the outer values, it is planned a third time:
//! as the grouped query of the rows with a list of such values. The operator then executes it for many outer
//! rows at once, so that each partition gets their keys in one message.
//!
//! The grouped query computes groups that no outer row needs, so its conditions may neither fail nor warn,
//! and its aggregates may not warn. A sum can exceed the range of its type, and DISTINCT the memory; then the
//! operator goes on with the subquery itself. The values of the select list are computed only for groups that
//! an outer row has. The answer for outer values without a group is that of the subquery itself, which the
//! operator executes once.

use std::cell::Cell;
use std::sync::Arc;

use junctor_expression::aggregate::AggregateKind;
use junctor_expression::{ArithmeticOperator, CompareOperator, Expression, Kind, Node};
use junctor_model::error::Result;

use super::block::CommonTables;
use super::factor::is_silent_over;
use super::from::SourcePlan;
use super::join::{JoinClauses, JoinNode, Joins, Locks};
use super::join_key::key_of_equality;
use super::{BlockPlan, GroupLookup, GroupedSubquery, JoinKey, PlanNode, PlannedSoFar, TreePlanner};
use crate::bind::SubqueryForm;
use crate::bind::block::{BlockScope, BlockView, SlotOwner, SlotSpace};
use crate::bind::group_function::{GroupFunction, GroupFunctionKind};
use crate::parse::expression as ast;
use crate::parse::statement::{Select, SelectItem};
use crate::plan::operand::is_fixed;
use crate::plan::select::implied_lock;

/// How many grouped subqueries are planned one inside the other. Each is planned twice, so that their number
/// must be bounded.
const NESTING_MAX: u8 = 2;
/// Lists of values are looked up if the subquery is expected to be executed for at least so many.
const LISTED_RUNS_MIN: usize = 4;
/// Bound of the number of executions of a subquery before it is executed for all outer rows.
const RUNS_MAX: f64 = 1e6;

/// The equalities that connect a block with the outer row, while the block is planned without them.
pub(super) struct Correlation {
    has_aggregates: bool,
    /// Outer values, and the values of the block that are equal to them.
    pub keys: Vec<JoinKey>,
    is_possible: bool,
    /// Whether the rows are read by lists of outer values.
    looks_up: bool,
    /// The read by these lists, once it is planned.
    lookup: Option<PlannedLookup>,
}

/// A read by lists of outer values.
struct PlannedLookup {
    leaf: usize,
    /// The positions of the keys of the lists.
    keys: Box<[usize]>,
    /// The cost of the rows of one key in nanoseconds of one thread.
    ns: f64,
}

/// The parts of a block that decide whether its rows can be grouped.
pub(super) struct CorrelatedBlock<'c> {
    pub space: &'c SlotSpace,
    pub sources: &'c [SourcePlan<'c>],
    pub from: Option<&'c mut JoinNode>,
    pub conditions: &'c mut Vec<Expression>,
    pub functions: &'c [GroupFunction],
    /// The values of the select list.
    pub values: &'c [Expression],
    /// Whether it has subqueries or window functions of its own.
    pub has_more: bool,
}

impl Correlation {
    fn new(has_aggregates: bool, looks_up: bool) -> Correlation {
        Correlation { has_aggregates, keys: Vec::new(), is_possible: false, looks_up, lookup: None }
    }

    /// Takes the equalities with outer values out of a block. Returns the values of the block in them. The
    /// rows can be grouped only if nothing else of the block reads the outer row.
    pub fn take(&mut self, block: CorrelatedBlock<'_>) -> Vec<Expression> {
        let CorrelatedBlock { space, sources, from, conditions, functions, values, has_more } = block;
        let reads_outer = |value: &Expression| reads_outer(value, space);
        self.is_possible = !has_more
            && functions.is_empty() != self.has_aggregates
            && functions.iter().all(|function| is_silent_function(function, space))
            && !functions.iter().flat_map(|function| &function.arguments).any(reads_outer)
            && !values.iter().any(reads_outer)
            && sources.iter().all(|source| match source {
                SourcePlan::Table(_, _, of_view) => of_view.iter().all(is_silent),
                // A query that reads other tables runs for their rows, of which single executions have fewer.
                SourcePlan::Query(block) => block.outer.is_empty(),
                SourcePlan::Virtual(_) | SourcePlan::Working(_) => true,
            });
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
        self.is_possible &= !self.keys.is_empty();
        self.keys.iter().map(|key| key.right.clone()).collect()
    }

    fn split(&mut self, conditions: &mut Vec<Expression>, space: &SlotSpace) {
        conditions.retain(|condition| {
            let Some(key) = correlated_key(condition, space) else {
                self.is_possible &= is_silent(condition) && !reads_outer(condition, space);
                return true;
            };
            self.keys.push(key);
            false
        });
    }
}

/// The depth of grouped subqueries that are being planned.
#[derive(Debug, Default)]
pub(super) struct GroupedDepth(Cell<u8>);

impl TreePlanner<'_> {
    /// The execution of a correlated subquery for all outer rows, if there is one. `first` tells what was
    /// planned before `single`, the subquery itself. The rows of a table of WITH that changes the state of
    /// the session are read once, so a subquery that has read them is not planned again.
    pub(super) fn grouped_subquery(
        &self,
        form: &SubqueryForm<'_>,
        (view, tables): (&BlockView<'_>, &CommonTables<'_>),
        (first, single): (&PlannedSoFar, &BlockPlan),
    ) -> Result<Option<GroupedSubquery>> {
        let (query, has_aggregates) = match form {
            SubqueryForm::Value(query) => (*query, true),
            SubqueryForm::Exists(query) => (*query, false),
            SubqueryForm::Quantified(..) | SubqueryForm::Row(..) => return Ok(None),
        };
        let depth = self.grouped_depth.0.get();
        let before = self.planned_so_far();
        if depth >= NESTING_MAX
            || !is_plain_group(query, has_aggregates)
            || implied_lock(self.environment).is_some()
            || before.stateful_tables != first.stateful_tables
        {
            return Ok(None);
        }
        let mut correlation = Correlation::new(has_aggregates, false);
        self.grouped_depth.0.set(depth + 1);
        let planned = self.correlated_block(query, (view, tables), &mut correlation);
        let before_lookup = self.planned_so_far();
        let lookup = match &planned {
            Ok(_) if correlation.is_possible => self.group_lookup(query, (view, tables), has_aggregates),
            _ => Ok(None),
        };
        self.grouped_depth.0.set(depth);
        let (block, lookup) = (planned?, lookup?);
        if !correlation.is_possible {
            self.discard(&before);
            return Ok(None);
        }
        let grouped_ns = self.work_of(&block.root).cost_ns;
        let runs_of = |run_ns: f64| (grouped_ns / run_ns.max(1.0)).clamp(1.0, RUNS_MAX) as usize;
        let (lookup, runs_max) = match lookup.map(|(lookup, key_ns)| (lookup, runs_of(key_ns))) {
            Some((lookup, runs_max)) if runs_max >= LISTED_RUNS_MIN => (Some(lookup), runs_max),
            _ => {
                self.discard(&before_lookup);
                (None, runs_of(self.work_of(&single.root).cost_ns))
            }
        };
        let block = Arc::new(BlockPlan { outer: Vec::new(), ..block });
        Ok(Some(GroupedSubquery { block, keys: correlation.keys, runs_max, lookup }))
    }

    /// The groups of a query of one table, whose rows are looked up by lists of outer values, and the cost of
    /// the rows of one value in nanoseconds of one thread.
    fn group_lookup(
        &self,
        query: &Select,
        (view, tables): (&BlockView<'_>, &CommonTables<'_>),
        has_aggregates: bool,
    ) -> Result<Option<(GroupLookup, f64)>> {
        if query.table().is_none() {
            return Ok(None);
        }
        let before = self.planned_so_far();
        let mut correlation = Correlation::new(has_aggregates, true);
        let block = self.correlated_block(query, (view, tables), &mut correlation)?;
        Ok(match correlation.lookup.filter(|_| correlation.is_possible) {
            Some(PlannedLookup { leaf, keys, ns }) => {
                let block = Arc::new(BlockPlan { outer: Vec::new(), ..block });
                Some((GroupLookup { block, leaf, keys }, ns))
            }
            None => {
                self.discard(&before);
                None
            }
        })
    }

    /// The rows of a block that lists of outer values find, and their number, if the block is planned for
    /// such lists, reads one table, and an index serves the values.
    pub(super) fn looked_up(
        &self,
        (from, conditions): (&JoinNode, &[Expression]),
        (block, sources): (&BlockScope<'_>, &[SourcePlan<'_>]),
        correlation: Option<&mut Correlation>,
    ) -> Result<Option<(PlanNode, f64)>> {
        let (Some(correlation), JoinNode::Relation(relation)) = (correlation, from) else { return Ok(None) };
        let SourcePlan::Table(layout, reference, of_view) = &sources[*relation] else { return Ok(None) };
        if !correlation.looks_up || !correlation.is_possible {
            return Ok(None);
        }
        // The outer values are no values of the block.
        let listed = |key: &JoinKey| JoinKey { left: Expression::parameter_of_type(0, key.left.result), ..key.clone() };
        let keys: Vec<JoinKey> = correlation.keys.iter().map(listed).collect();
        let joins = Joins::new(self, (block, sources), JoinClauses::with_locks(Locks::All(None)));
        let cost = joins.cost_of(*relation, conditions);
        let Some(best) = joins.best_lookup((*relation, conditions, &cost), &keys) else { return Ok(None) };
        let places = best.keys();
        let of_lookup: Vec<&JoinKey> = places.iter().map(|place| &keys[*place]).collect();
        let table = (*layout, *reference, &of_view[..]);
        let columns = block.space.columns_of(block.relations[*relation].id);
        let leaf = self.lookup_leaf(table, &columns, (block.space, conditions, &of_lookup), None)?;
        correlation.lookup = Some(PlannedLookup { leaf, keys: places, ns: best.ns });
        Ok(Some((PlanNode::Scan(leaf), cost.rows)))
    }
}

/// Whether a query is the rows of its FROM and WHERE, or one group of them, has no subqueries in its other
/// clauses, and leaves the session as it is.
fn is_plain_group(query: &Select, has_aggregates: bool) -> bool {
    let mut items = query.projection.iter().filter_map(|item| match item {
        SelectItem::Expression { expression, .. } => Some(expression),
        SelectItem::All(_) => None,
    });
    let has_query = |expression: &ast::Expression| expression.has_subquery() || expression.has_window();
    !query.is_stateful()
        && !items.clone().any(has_query)
        && !query.filter.as_ref().is_some_and(has_query)
        && items.any(ast::Expression::has_aggregate) == has_aggregates
        && query.group_by.is_empty()
        && query.windows.is_empty()
        && query.having.is_none()
        && query.limit.is_none()
        && query.order_by.is_empty()
        && query.locks.is_empty()
        && query.with.is_empty()
        && !query.distinct
}

/// The key of an equality of a column and a column of the outer row.
fn correlated_key(condition: &Expression, space: &SlotSpace) -> Option<JoinKey> {
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
    let key = key_of_equality(condition, outer_column(outer, space)?, column.clone())?;
    // Groups are made by the collation of the column.
    let same_groups = key.right.result.kind != Kind::String || key.right.result.collation == key.collation;
    same_groups.then_some(key)
}

/// An operand that is a column of the outer row, perhaps converted, as an expression over that row.
fn outer_column(operand: &Expression, space: &SlotSpace) -> Option<Expression> {
    let column = match &operand.node {
        Node::Convert(converted) => converted,
        _ => operand,
    };
    let Some(SlotOwner::Outer(value)) = space.owner(column.as_column()?) else { return None };
    // A column of a merged view may be an expression.
    value.as_column()?;
    let mut outer = operand.clone();
    outer.rewrite(&mut |inner| inner.as_column().map(|_| value.clone()));
    Some(outer)
}

/// Whether an expression reads the outer row.
fn reads_outer(value: &Expression, space: &SlotSpace) -> bool {
    let mut reads = false;
    value.visit(&mut |inner| {
        let owner = inner.as_column().and_then(|slot| space.owner(slot));
        reads |= matches!(owner, Some(SlotOwner::Outer(_)));
    });
    reads
}

/// Whether a condition neither fails nor warns, unless a part of it does that is the same for all rows.
fn is_silent(condition: &Expression) -> bool {
    is_silent_over(condition, &|value| value.as_column().is_some() || is_fixed(value))
}

/// Whether an aggregate never warns, and fails at most because a sum exceeds the range of its type or
/// DISTINCT the memory.
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
