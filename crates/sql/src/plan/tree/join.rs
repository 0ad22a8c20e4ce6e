//! The order of joins, and the place of each condition.

use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_expression::{CompareDomain, CompareOperator, Expression, IsTest, Kind, Node};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;

use super::block::filtered;
use super::from::SourcePlan;
use super::subquery::SemiJoin;
use super::{JoinForm, JoinKey, JoinPlan, PlanNode, TreePlanner};
use crate::bind::block::{BlockScope, SlotOwner, SlotSpace};
use crate::parse::statement::{LockingClause, Select};

/// A tree of joins with bound conditions.
pub(super) enum JoinNode {
    /// A relation of the block.
    Relation(usize),
    /// Members without an order, unless `keeps_order`.
    Inner { members: Vec<JoinNode>, conditions: Vec<Expression>, keeps_order: bool },
    /// LEFT JOIN.
    Outer { left: Box<JoinNode>, right: Box<JoinNode>, conditions: Vec<Expression> },
}

/// The locks of the tables of a block.
#[derive(Clone, Copy)]
pub(super) enum Locks<'l> {
    /// All tables have this lock.
    All(Option<LockingClause>),
    /// Each table has its own, by its position in FROM.
    Each(&'l [Option<LockingClause>]),
}

impl Locks<'_> {
    fn of(self, relation: usize) -> Option<LockingClause> {
        match self {
            Locks::All(lock) => lock,
            Locks::Each(locks) => locks.get(relation).copied().flatten(),
        }
    }
}

/// A set of relations, by their numbers in the slot space.
type RelationSet = BTreeSet<u16>;

/// A planned part of the joins.
struct Part {
    node: PlanNode,
    relations: RelationSet,
    /// The relation, if the part is a table whose leaf is not planned yet, with its conditions.
    table: Option<(usize, Vec<Expression>)>,
}

impl JoinNode {
    /// The FROM of a block without FROM: one row without columns.
    pub fn nothing() -> JoinNode {
        JoinNode::Inner { members: Vec::new(), conditions: Vec::new(), keeps_order: true }
    }

    /// An inner join. Inner joins of inner joins have one list of members.
    pub fn inner(left: JoinNode, right: JoinNode, mut conditions: Vec<Expression>, keeps: bool) -> JoinNode {
        let mut all = Vec::new();
        let mut keeps_order = keeps;
        for node in [left, right] {
            match node {
                JoinNode::Inner { members, conditions: own, keeps_order: keeps } if !keeps || all.is_empty() => {
                    all.extend(members);
                    conditions.extend(own);
                    keeps_order |= keeps;
                }
                other => all.push(other),
            }
        }
        JoinNode::Inner { members: all, conditions, keeps_order }
    }

    /// The conditions that hold for all rows of the block.
    pub fn inner_conditions(&self, of_where: &[Expression]) -> Vec<Expression> {
        let mut all = of_where.to_vec();
        if let JoinNode::Inner { conditions, .. } = self {
            all.extend(conditions.iter().cloned());
        }
        all
    }

    fn relations(&self, block: &BlockScope<'_>, out: &mut RelationSet) {
        match self {
            JoinNode::Relation(relation) => {
                out.insert(block.relations[*relation].id);
            }
            JoinNode::Inner { members, .. } => members.iter().for_each(|member| member.relations(block, out)),
            JoinNode::Outer { left, right, .. } => {
                left.relations(block, out);
                right.relations(block, out);
            }
        }
    }

    /// Turns outer joins whose null rows a condition rejects into inner joins.
    fn simplify(self, block: &BlockScope<'_>, conditions: &[Expression]) -> JoinNode {
        match self {
            JoinNode::Relation(_) => self,
            JoinNode::Inner { members, conditions: own, keeps_order } => {
                let mut all = conditions.to_vec();
                all.extend(own.iter().cloned());
                let members = members.into_iter().map(|member| member.simplify(block, &all)).collect();
                JoinNode::Inner { members, conditions: own, keeps_order }
            }
            JoinNode::Outer { left, right, conditions: on } => {
                let mut of_right = RelationSet::new();
                right.relations(block, &mut of_right);
                let rejects = |condition: &Expression| rejects_null(condition, block.space, &of_right);
                let left = left.simplify(block, conditions);
                if conditions.iter().any(rejects) {
                    let right = right.simplify(block, conditions);
                    return JoinNode::inner(left, right, on, false);
                }
                let right = Box::new(right.simplify(block, &on));
                JoinNode::Outer { left: Box::new(left), right, conditions: on }
            }
        }
    }
}

impl TreePlanner<'_> {
    /// Plans the joins of a block with the conditions of WHERE and its semijoins.
    pub(super) fn join(
        &self,
        node: JoinNode,
        (conditions, semijoins): (Vec<Expression>, Vec<SemiJoin<'_>>),
        (block, sources): (&BlockScope<'_>, &[SourcePlan<'_>]),
        locks: Locks<'_>,
    ) -> Result<PlanNode> {
        let joins = Joins { planner: self, block, sources, locks };
        let node = node.simplify(block, &conditions);
        let mut node = joins.build(node, conditions)?;
        for semijoin in semijoins {
            node = self.semijoin(joins.finish(node)?, semijoin)?;
        }
        Ok(joins.finish(node)?.node)
    }

    fn semijoin(&self, left: PartDone, semijoin: SemiJoin<'_>) -> Result<Part> {
        let SemiJoin { block, sources, node, conditions, form } = semijoin;
        // A locking clause of the query around it does not concern a subquery.
        let lock = self.locking_clause(&Select::default());
        let joins = Joins { planner: self, block: &block, sources: &sources, locks: Locks::All(lock) };
        let mut inner = RelationSet::new();
        node.relations(&block, &mut inner);
        let is_inner = |condition: &Expression| {
            form != JoinForm::NullAwareAnti
                && relations_of(condition, block.space)
                    .is_some_and(|relations| !relations.is_empty() && relations.is_subset(&inner))
        };
        let (own, on): (Vec<_>, Vec<_>) = conditions.into_iter().partition(is_inner);
        let node = node.simplify(&block, &own);
        let right = joins.build(node, own)?;
        let left = Part { node: left.node, relations: left.relations, table: None };
        joins.pair(form, left, right, on)
    }
}

/// A part whose leaf is planned.
struct PartDone {
    node: PlanNode,
    relations: RelationSet,
}

struct Joins<'j> {
    planner: &'j TreePlanner<'j>,
    block: &'j BlockScope<'j>,
    sources: &'j [SourcePlan<'j>],
    locks: Locks<'j>,
}

impl Joins<'_> {
    fn build(&self, node: JoinNode, conditions: Vec<Expression>) -> Result<Part> {
        match node {
            JoinNode::Relation(relation) => self.relation(relation, conditions),
            JoinNode::Inner { members, conditions: own, keeps_order } => {
                let all: Vec<Expression> = conditions.into_iter().chain(own).collect();
                self.inner(members, all, keeps_order)
            }
            JoinNode::Outer { left, right, conditions: on } => {
                let (mut of_left, mut of_right) = (RelationSet::new(), RelationSet::new());
                left.relations(self.block, &mut of_left);
                right.relations(self.block, &mut of_right);
                let (to_left, above) = self.split(conditions, &of_left);
                let (to_right, on) = self.split(on, &of_right);
                let (left, right) = (self.build(*left, to_left)?, self.build(*right, to_right)?);
                let joined = self.pair(JoinForm::Left, left, right, on)?;
                Ok(Part { node: filtered(joined.node, above), ..joined })
            }
        }
    }

    /// Splits off the conditions on these relations alone.
    fn split(&self, conditions: Vec<Expression>, relations: &RelationSet) -> (Vec<Expression>, Vec<Expression>) {
        conditions.into_iter().partition(|condition| {
            relations_of(condition, self.block.space).is_some_and(|used| !used.is_empty() && used.is_subset(relations))
        })
    }

    fn relation(&self, relation: usize, conditions: Vec<Expression>) -> Result<Part> {
        let id = self.block.relations[relation].id;
        let relations = RelationSet::from([id]);
        let columns = || self.block.space.columns_of(id);
        let node = match &self.sources[relation] {
            SourcePlan::Table(..) => {
                let table = Some((relation, conditions));
                return Ok(Part { node: PlanNode::Nothing, relations, table });
            }
            SourcePlan::Virtual(source) => self.planner.virtual_leaf(source, &columns())?,
            SourcePlan::Working(from) => {
                let slots = columns();
                let pairs = slots.iter().map(|(slot, column)| (from[usize::from(column.0)], *slot));
                PlanNode::WorkTable(pairs.collect())
            }
            SourcePlan::Query(block) => {
                let slots = columns().iter().map(|(slot, column)| (usize::from(column.0), *slot)).collect();
                PlanNode::Project(Arc::clone(block), slots)
            }
        };
        Ok(Part { node: filtered(node, conditions), relations, table: None })
    }

    /// Plans the leaf of a part that is a table.
    fn finish(&self, part: Part) -> Result<PartDone> {
        let Part { node, relations, table } = part;
        let node = match table {
            Some((relation, conditions)) => self.scan(relation, conditions)?,
            None => node,
        };
        Ok(PartDone { node, relations })
    }

    fn scan(&self, relation: usize, conditions: Vec<Expression>) -> Result<PlanNode> {
        let SourcePlan::Table(layout, reference) = &self.sources[relation] else { return Ok(PlanNode::Nothing) };
        let columns = self.block.space.columns_of(self.block.relations[relation].id);
        let space = self.block.space;
        let leaf =
            self.planner.table_leaf((layout, reference), (space, &columns), conditions, self.locks.of(relation))?;
        Ok(PlanNode::Scan(leaf))
    }

    fn inner(&self, members: Vec<JoinNode>, conditions: Vec<Expression>, keeps_order: bool) -> Result<Part> {
        let mut rest = conditions;
        let mut parts = Vec::new();
        for member in members {
            let mut relations = RelationSet::new();
            member.relations(self.block, &mut relations);
            let own;
            (own, rest) = self.split(rest, &relations);
            parts.push(self.build(member, own)?);
        }
        if !keeps_order && !parts.is_empty() {
            // The part with the strongest conditions of its own comes first; others keep their order.
            let first = (0..parts.len()).min_by_key(|place| (self.weight(&parts[*place]), *place)).unwrap_or(0);
            let first = parts.remove(first);
            parts.insert(0, first);
        }
        if parts.is_empty() {
            parts.push(Part { node: PlanNode::Once, relations: RelationSet::new(), table: None });
        }
        let mut left = parts.remove(0);
        while !parts.is_empty() {
            let next = match keeps_order {
                true => 0,
                false => (0..parts.len()).min_by_key(|place| self.rank(&left, &parts[*place], &rest)).unwrap_or(0),
            };
            let right = parts.remove(next);
            let both: RelationSet = left.relations.union(&right.relations).copied().collect();
            let on;
            (on, rest) = self.split(rest, &both);
            left = self.pair(JoinForm::Inner, left, right, on)?;
        }
        if rest.is_empty() {
            return Ok(left);
        }
        // Constant conditions.
        let done = self.finish(left)?;
        Ok(Part { node: filtered(done.node, rest), relations: done.relations, table: None })
    }

    /// How many rows a part has by itself, as far as its access path tells; 0 for one row.
    fn weight(&self, part: &Part) -> u8 {
        match &part.table {
            Some((relation, conditions)) => match &self.sources[*relation] {
                SourcePlan::Table(layout, reference) => {
                    self.planner.access_weight(layout, reference, (self.block.space, conditions))
                }
                _ => 4,
            },
            // The rows of the last round are few, and joined once.
            None if matches!(part.node, PlanNode::WorkTable(_)) => 1,
            None => 3,
        }
    }

    /// How well a part joins the parts before it: 0 by a key, 1 by equal values, 2 otherwise.
    fn rank(&self, left: &Part, right: &Part, conditions: &[Expression]) -> (u8, u8) {
        let mut best = 2;
        for condition in conditions {
            let Some(key) = join_key(condition, self.block.space, (&left.relations, &right.relations)) else {
                continue;
            };
            let rank = match &right.table {
                Some((relation, own)) => match &self.sources[*relation] {
                    SourcePlan::Table(layout, reference) => {
                        let request = (self.block.space, &own[..], &key);
                        u8::from(!self.planner.has_lookup(layout, reference, request))
                    }
                    _ => 1,
                },
                None => 1,
            };
            best = best.min(rank);
        }
        (best, self.weight(right))
    }

    /// Joins two parts.
    fn pair(&self, form: JoinForm, left: Part, right: Part, conditions: Vec<Expression>) -> Result<Part> {
        let left = self.finish(left)?;
        let mut keys = Vec::new();
        if form != JoinForm::NullAwareAnti {
            for condition in &conditions {
                keys.extend(join_key(condition, self.block.space, (&left.relations, &right.relations)));
            }
        }
        let mut lookup = None;
        let node = match right.table {
            Some((relation, own)) => {
                if let SourcePlan::Table(layout, reference) = &self.sources[relation] {
                    let columns = self.block.space.columns_of(self.block.relations[relation].id);
                    let request = (self.block.space, &own[..], &keys[..]);
                    lookup =
                        self.planner.lookup_leaf((layout, reference), &columns, request, self.locks.of(relation))?;
                }
                self.scan(relation, own)?
            }
            None => right.node,
        };
        let slots = |relation: &u16| self.block.space.columns_of(*relation).into_iter().map(|(slot, _)| slot);
        let right_slots = right.relations.iter().flat_map(slots).collect();
        let mut relations = left.relations;
        if matches!(form, JoinForm::Inner | JoinForm::Left) {
            relations.extend(&right.relations);
        }
        let plan = JoinPlan { form, keys, conditions, right_slots, lookup };
        Ok(Part { node: PlanNode::Join(Box::new(left.node), Box::new(node), Arc::new(plan)), relations, table: None })
    }
}

/// The relations whose columns an expression reads; `None` if it reads a computed value.
pub(super) fn relations_of(expression: &Expression, space: &SlotSpace) -> Option<RelationSet> {
    let mut relations = RelationSet::new();
    let mut is_computed = false;
    expression.visit(&mut |inner| {
        if let Some(slot) = inner.as_column() {
            match space.owner(slot) {
                Some(SlotOwner::Column(relation, _)) => {
                    relations.insert(relation);
                }
                Some(SlotOwner::Outer(_)) => {}
                Some(SlotOwner::Computed) | None => is_computed = true,
            }
        }
    });
    (!is_computed).then_some(relations)
}

/// The key of an equality of a value of the left rows and one of the right rows, if equal values have equal
/// keys.
fn join_key(condition: &Expression, space: &SlotSpace, sides: (&RelationSet, &RelationSet)) -> Option<JoinKey> {
    let Node::Compare(operator, domain, operands) = &condition.node else { return None };
    let null_safe = match operator {
        CompareOperator::Equal => false,
        CompareOperator::NullSafeEqual => true,
        _ => return None,
    };
    let is_of = |operand: &Expression, side: &RelationSet, other: &RelationSet| {
        relations_of(operand, space)
            .is_some_and(|used| !used.is_empty() && !used.is_disjoint(side) && used.is_disjoint(other))
    };
    let [first, second] = &**operands;
    let (left, right) = if is_of(first, sides.0, sides.1) && is_of(second, sides.1, sides.0) {
        (first, second)
    } else if is_of(second, sides.0, sides.1) && is_of(first, sides.1, sides.0) {
        (second, first)
    } else {
        return None;
    };
    let kinds = [left.result.kind, right.result.kind];
    let is_plain = |kind: &Kind| matches!(kind, Kind::Int | Kind::UInt | Kind::Decimal);
    let collation = match domain {
        CompareDomain::Integer | CompareDomain::Decimal if kinds.iter().all(is_plain) => CollationId::BINARY,
        CompareDomain::Double if kinds == [Kind::Double; 2] => CollationId::BINARY,
        CompareDomain::String(collation) if kinds == [Kind::String; 2] => *collation,
        CompareDomain::DateTime | CompareDomain::Integer if kinds == [Kind::Date; 2] => CollationId::BINARY,
        _ => return None,
    };
    Some(JoinKey { left: left.clone(), right: right.clone(), collation, null_safe })
}

/// Whether a condition is not true for rows in which all columns of these relations are NULL.
fn rejects_null(condition: &Expression, space: &SlotSpace, relations: &RelationSet) -> bool {
    let strict = |operand: &Expression| is_strict(operand, space, relations);
    match &condition.node {
        Node::Compare(operator, _, operands) => {
            *operator != CompareOperator::NullSafeEqual && operands.iter().any(strict)
        }
        Node::Between { negated: false, operands, .. } => operands.iter().any(strict),
        Node::InList { operand, .. } | Node::InParameters { operand, .. } => strict(operand),
        Node::Like { operands, .. } => operands.iter().any(strict),
        Node::Is { test: IsTest::Null, negated: true, operand } => strict(operand),
        Node::And(operands) => operands.iter().any(|operand| rejects_null(operand, space, relations)),
        Node::Or(operands) => operands.iter().all(|operand| rejects_null(operand, space, relations)),
        _ => false,
    }
}

/// Whether the value is NULL if all columns of these relations are.
fn is_strict(expression: &Expression, space: &SlotSpace, relations: &RelationSet) -> bool {
    match &expression.node {
        Node::Column { index, .. } => {
            matches!(space.owner(*index), Some(SlotOwner::Column(relation, _)) if relations.contains(&relation))
        }
        Node::Arithmetic(_, operands) => operands.iter().any(|operand| is_strict(operand, space, relations)),
        Node::Negate(operand) | Node::Convert(operand) => is_strict(operand, space, relations),
        _ => false,
    }
}
