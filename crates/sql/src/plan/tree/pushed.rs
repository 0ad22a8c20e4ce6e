//! Conditions on the rows of a query in FROM that are tested inside it, before its groups, windows and set
//! operations.
//!
//! A block is planned, and its conditions are bound, before it is known which of them its queries can test.
//! If there are any, the block is planned again, and the queries get their conditions as values of their
//! select lists. A condition passes if it neither fails nor warns, because it is tested for other rows than
//! before. It passes groups, DISTINCT, windows and set operations if it is true for all or none of the rows
//! that they take for equal.

use std::cell::Cell;
use std::collections::BTreeMap;

use junctor_expression::{CompareDomain, Expression, IsTest, Kind, Node, ResultType};
use junctor_model::id::ColumnNumber;

use super::block::{CommonTables, Lists};
use super::factor::is_silent;
use super::from::SourcePlan;
use super::join::JoinNode;
use super::{BlockPlan, TreePlanner};
use crate::bind::block::{BlockScope, BlockView, SlotOwner, SlotSpace};
use crate::bind::window::WindowFunction;
use crate::parse::statement::Select;

/// Number of queries inside each other, in FROM or elsewhere, up to which a block is planned again. Each
/// planning plans the queries in it, so that the number of plannings must be bounded.
const NESTING_MAX: u8 = 4;

/// The conditions on a value of a block that its rows can be tested for before the block is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Passage {
    /// No condition.
    #[default]
    Closed,
    /// Conditions that are the same for equal values.
    Classes,
    /// All conditions.
    Open,
}

/// The conditions of a block that its queries test: for each relation, by its position in FROM, conditions
/// over the values of the query, by their positions.
#[derive(Debug, Default)]
pub(super) struct Pushed(BTreeMap<usize, Vec<Expression>>);

/// The scope in which the relations of FROM are planned.
#[derive(Clone, Copy)]
pub(super) struct FromScope<'s> {
    pub space: &'s SlotSpace,
    pub tables: &'s CommonTables<'s>,
    pub outer: &'s BlockView<'s>,
    pub pushed: &'s Pushed,
}

/// The number of queries around the one that is being planned.
#[derive(Debug, Default)]
pub(super) struct QueryDepth(Cell<u8>);

/// The bound parts of a block that decide which conditions its values pass.
struct Passing<'p, 'a> {
    select: &'p Select,
    is_grouped: bool,
    lists: &'p Lists,
    windows: &'p [WindowFunction],
    block: &'p BlockScope<'a>,
    sources: &'p [SourcePlan<'a>],
}

impl Pushed {
    /// No conditions.
    pub const NONE: &'static Pushed = &Pushed(BTreeMap::new());

    /// The conditions for a relation.
    pub fn of(&self, relation: usize) -> &[Expression] {
        self.0.get(&relation).map_or(&[], Vec::as_slice)
    }

    /// Takes the conditions of WHERE and of FROM that queries in FROM can test: all, or those in `known`.
    fn take(
        scope: (&BlockScope<'_>, &[SourcePlan<'_>]),
        conditions: &mut Vec<Expression>,
        from: Option<&mut JoinNode>,
        known: Option<&Pushed>,
    ) -> Pushed {
        let mut pushed = Pushed::default();
        let is_inner = |relation: usize| !scope.0.relations[relation].is_nullable;
        pushed.take_of(conditions, &is_inner, scope, known);
        match from {
            Some(JoinNode::Inner { conditions, members, .. }) => {
                pushed.take_of(conditions, &is_inner, scope, known);
                members.iter_mut().for_each(|member| pushed.take_outer(member, scope, known));
            }
            Some(node) => pushed.take_outer(node, scope, known),
            None => {}
        }
        pushed
    }

    /// Takes the conditions of LEFT JOIN on its right query.
    fn take_outer(&mut self, node: &mut JoinNode, scope: (&BlockScope<'_>, &[SourcePlan<'_>]), known: Option<&Pushed>) {
        if let JoinNode::Outer { right, conditions, .. } = node
            && let JoinNode::Relation(of) = **right
        {
            self.take_of(conditions, &|relation| relation == of, scope, known);
        }
    }

    fn take_of(
        &mut self,
        conditions: &mut Vec<Expression>,
        may_test: &dyn Fn(usize) -> bool,
        scope: (&BlockScope<'_>, &[SourcePlan<'_>]),
        known: Option<&Pushed>,
    ) {
        conditions.retain(|condition| {
            let Some((relation, inner)) = of_query(condition, scope) else { return true };
            let is_tested = known.is_none_or(|known| known.of(relation).contains(&inner));
            if !may_test(relation) || !is_tested {
                return true;
            }
            self.0.entry(relation).or_default().push(inner);
            false
        });
    }
}

/// The position of the query that a condition can be pushed into, and the condition over its values.
fn of_query(
    condition: &Expression,
    (block, sources): (&BlockScope<'_>, &[SourcePlan<'_>]),
) -> Option<(usize, Expression)> {
    if !is_silent(condition) || may_convert_list(condition) {
        return None;
    }
    let mut columns = Vec::new();
    condition.visit(&mut |inner| columns.extend(inner.as_column()));
    let owned = columns.into_iter().map(|slot| match block.space.owner(slot) {
        Some(SlotOwner::Column(relation, column)) => Some((relation, column)),
        _ => None,
    });
    let owned: Vec<(u16, ColumnNumber)> = owned.collect::<Option<_>>()?;
    let (first, _) = owned.first()?;
    let relation = block.relations.iter().position(|relation| relation.id == *first)?;
    let SourcePlan::Query(query) = &sources[relation] else { return None };
    let passes = |(of, column): &(u16, ColumnNumber)| match query.passage(*column) {
        Passage::Closed => false,
        Passage::Classes => of == first && is_of_classes(condition),
        Passage::Open => of == first,
    };
    if !owned.iter().all(passes) {
        return None;
    }
    let mut inner = condition.clone();
    inner.rewrite(&mut |value| match block.space.owner(value.as_column()?)? {
        SlotOwner::Column(_, column) => Some(Expression::column_of_type(column, value.result, "")),
        _ => None,
    });
    Some((relation, inner))
}

/// Whether the values of a list are perhaps texts that become numbers or days, for which they may warn.
fn may_convert_list(condition: &Expression) -> bool {
    let mut converts = false;
    condition.visit(&mut |inner| {
        if let Node::InParameters { domain, .. } = &inner.node {
            converts |= !matches!(domain, CompareDomain::Integer | CompareDomain::Decimal | CompareDomain::String(_));
        }
    });
    converts
}

/// Whether a condition is the same for all values that groups, DISTINCT and set operations take for equal.
fn is_of_classes(condition: &Expression) -> bool {
    let fits = |domain: &CompareDomain, operands: &[&Expression]| {
        operands.iter().filter(|operand| operand.as_column().is_some()).all(|column| match domain {
            CompareDomain::String(collation) => {
                column.result.kind == Kind::String && column.result.collation == *collation
            }
            // Zeros with and without a sign are equal doubles.
            _ => matches!(column.result.kind, Kind::Int | Kind::UInt | Kind::Decimal | Kind::Date | Kind::DateTime),
        })
    };
    match &condition.node {
        Node::And(operands) | Node::Or(operands) => operands.iter().all(is_of_classes),
        Node::Not(operand) => is_of_classes(operand),
        Node::Compare(_, domain, operands) => fits(domain, &[&operands[0], &operands[1]]),
        Node::Between { domains, operands, .. } => {
            fits(&domains[0], &[&operands[0], &operands[1]]) && fits(&domains[1], &[&operands[0], &operands[2]])
        }
        Node::InList { operand, list, .. } => list.iter().all(|(domain, item)| fits(domain, &[operand, item])),
        Node::InParameters { domain, operand, .. } => fits(domain, &[operand]),
        Node::Is { test: IsTest::Null, .. } => true,
        _ => false,
    }
}

impl BlockPlan {
    /// The conditions that a value passes.
    fn passage(&self, value: ColumnNumber) -> Passage {
        self.passages.get(usize::from(value.0)).copied().unwrap_or_default()
    }

    /// The conditions that a value passes as a value of this type, which all queries of a set operation have.
    pub(super) fn passage_as(&self, place: usize, result: &ResultType) -> Passage {
        let value = &self.values[place];
        let passage = self.passage(ColumnNumber(place as u16));
        // The classes of a text are those of the collation by which this query groups.
        let has_other_classes = result.kind == Kind::String && value.result.collation != result.collation;
        match passage {
            Passage::Classes if has_other_classes => Passage::Closed,
            _ if value.clone().converted(*result) == *value => passage,
            _ => Passage::Closed,
        }
    }
}

impl Passing<'_, '_> {
    /// What each value of the block passes.
    fn passages(&self) -> Box<[Passage]> {
        let select = self.select;
        let is_closed = select.limit.is_some()
            || select.with_rollup
            || !select.locks.is_empty()
            || select.is_stateful()
            || self.is_grouped && self.lists.keys.is_empty();
        if is_closed {
            return Box::default();
        }
        self.lists.projection.values.iter().map(|value| self.passage(value)).collect()
    }

    fn passage(&self, value: &Expression) -> Passage {
        let Some(SlotOwner::Column(id, column)) = value.as_column().and_then(|slot| self.block.space.owner(slot))
        else {
            return Passage::Closed;
        };
        let is_equal_in_windows = self.windows.iter().all(|function| function.window.partition.contains(value));
        if self.is_grouped && !self.lists.keys.contains(value) || !is_equal_in_windows {
            return Passage::Closed;
        }
        let own = match self.is_grouped || self.select.distinct || !self.windows.is_empty() {
            true => Passage::Classes,
            false => Passage::Open,
        };
        let relation = self.block.relations.iter().position(|relation| relation.id == id);
        let of_source = match relation.map(|relation| &self.sources[relation]) {
            // Rows that the source cannot test are tested before the groups or windows of this block.
            Some(_) if own == Passage::Classes => Passage::Open,
            Some(SourcePlan::Table(..) | SourcePlan::Virtual(_)) => Passage::Open,
            Some(SourcePlan::Query(query)) => query.passage(column),
            Some(SourcePlan::Working(_)) | None => Passage::Closed,
        };
        own.min(of_source)
    }
}

/// The conditions that a block has received, over its own rows.
pub(super) fn over_rows(received: &[Expression], values: &[Expression]) -> Vec<Expression> {
    let over = |condition: &Expression| {
        let mut condition = condition.clone();
        condition.rewrite(&mut |value| values.get(usize::from(value.as_column()?.0)).cloned());
        condition
    };
    received.iter().map(over).collect()
}

impl TreePlanner<'_> {
    /// Plans a query inside another one.
    pub(super) fn inside<T>(&self, plan: impl FnOnce() -> T) -> T {
        let depth = self.query_depth.0.get();
        self.query_depth.0.set(depth.saturating_add(1));
        let planned = plan();
        self.query_depth.0.set(depth);
        planned
    }

    /// Takes the conditions of WHERE and of FROM that queries in FROM test. Returns them if these queries do
    /// not know them yet, so that the block must be planned again.
    pub(super) fn push(
        &self,
        scope: (&BlockScope<'_>, &[SourcePlan<'_>]),
        (conditions, from): (&mut Vec<Expression>, Option<&mut JoinNode>),
        known: Option<&Pushed>,
    ) -> Option<Pushed> {
        if self.query_depth.0.get() >= NESTING_MAX {
            return None;
        }
        let pushed = Pushed::take(scope, conditions, from, known);
        (known.is_none() && !pushed.0.is_empty()).then_some(pushed)
    }

    /// What each value of a block passes.
    pub(super) fn passages(
        &self,
        (select, is_grouped): (&Select, bool),
        (lists, windows): (&Lists, &[WindowFunction]),
        (block, sources): (&BlockScope<'_>, &[SourcePlan<'_>]),
    ) -> Box<[Passage]> {
        Passing { select, is_grouped, lists, windows, block, sources }.passages()
    }
}
