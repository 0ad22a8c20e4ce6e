//! The joins of a block, and the place of each condition.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_expression::{Expression, Node, Parameters};
use junctor_model::error::{Error, ErrorCode, Result};

use super::block::{Applies, filtered};
use super::cost::PartCost;
use super::equality_class::Classes;
use super::factor::{self, is_silent};
use super::from::SourcePlan;
use super::join_key::{join_key, null_aware, rejects_null, relations_of};
use super::key_filter::is_movable;
use super::leaf::LeafAccess;
use super::selectivity::Estimates;
use super::stateful::{with_initial_last, with_unread};
use super::subquery::{SemiJoin, applied};
use super::{BlockPlan, JoinForm, JoinKey, JoinLookup, JoinPlan, LateralPlan, NullMatch, PlanNode, TreePlanner};
use crate::bind::block::BlockScope;
use crate::parse::hint::JoinOrderKind;
use crate::parse::statement::{LockingClause, Select};
use crate::plan::virtual_table::tested_name;

/// A tree of joins with bound conditions.
pub(super) enum JoinNode {
    /// A relation of the block.
    Relation(usize),
    /// Members without an order, unless `keeps_order`.
    Inner { members: Vec<JoinNode>, conditions: Vec<Expression>, keeps_order: bool },
    /// The rows of a member for which conditions that read subqueries are true.
    Applied { node: Box<JoinNode>, applies: Applies, conditions: Vec<Expression> },
    /// LEFT JOIN. The subqueries of its conditions are values of the left or the right rows.
    Outer { left: Box<JoinNode>, right: Box<JoinNode>, conditions: Vec<Expression>, applies: Box<[Applies; 2]> },
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
    pub(super) fn of(self, relation: usize) -> Option<LockingClause> {
        match self {
            Locks::All(lock) => lock,
            Locks::Each(locks) => locks.get(relation).copied().flatten(),
        }
    }
}

/// The locks of a block's tables, and the order in which the statement wants them joined.
#[derive(Clone, Copy)]
pub(super) struct JoinClauses<'l> {
    pub(super) locks: Locks<'l>,
    /// Tables are joined in the order of FROM.
    pub(super) keeps_order: bool,
    /// Hints about the order.
    pub(super) orders: &'l [(JoinOrderKind, Vec<String>)],
}

impl<'l> JoinClauses<'l> {
    /// Locks alone.
    pub fn with_locks(locks: Locks<'l>) -> JoinClauses<'l> {
        JoinClauses { locks, keeps_order: false, orders: &[] }
    }

    /// The clauses of a query. It also keeps the order of FROM if it must.
    pub fn of(select: &'l Select, locks: Locks<'l>, keeps_order: bool) -> JoinClauses<'l> {
        JoinClauses { locks, keeps_order: select.keeps_order || keeps_order, orders: &select.join_orders }
    }
}

/// A set of relations, by their numbers in the slot space.
pub(super) type RelationSet = BTreeSet<u16>;

/// The conditions of WHERE.
pub(super) struct WhereClause<'q> {
    pub conditions: Vec<Expression>,
    pub semijoins: Vec<SemiJoin<'q>>,
    /// Subqueries that are evaluated once, and conditions on their values that can neither fail nor warn.
    /// They are tested before the semijoins of tables.
    pub constants: (Applies, Vec<Expression>),
}

/// The share of rows that a semijoin is assumed to leave.
pub(super) const SEMIJOIN_SHARE: f64 = 0.3;
/// A scan gets the filter of a join's keys if it has at least this many rows.
const FILTERED_ROWS_MIN: f64 = 1000.0;
/// The cost of a key from which on its rows count as many.
const LOOKUP_NS_MAX: f64 = 100_000.0;
/// Bounds of the number of left rows whose keys are looked up: at least a batch, whatever the estimates say,
/// unless a key has many rows.
const LOOKUP_ROWS_MIN: f64 = 256.0;
const LOOKUP_ROWS_MAX: f64 = 1e9;
/// Maximum number of keys of NOT IN that may be NULL. The rows of a hash table are listed for each
/// combination of NULLs; further columns are compared row by row.
pub(crate) const NULL_AWARE_KEYS_MAX: usize = 3;

/// A planned part of the joins.
pub(super) struct Part {
    pub(super) node: PlanNode,
    pub(super) relations: RelationSet,
    /// The relation, if the part is a table whose leaf is not planned yet, with its conditions.
    pub(super) table: Option<(usize, Vec<Expression>)>,
    pub(super) cost: PartCost,
    /// The query, if it reads relations before it.
    lateral: Option<LateralPart>,
    /// The slots of subqueries that belong to the rows.
    computed: Vec<u16>,
    /// Whether the part is a query without a table that changes the state of the session.
    is_initial: bool,
}

/// A query that reads relations before it.
struct LateralPart {
    name: String,
    needs: RelationSet,
    block: Arc<BlockPlan>,
    slots: Arc<[(usize, u16)]>,
    conditions: Vec<Expression>,
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

    /// LEFT JOIN of two members. Error: 1235 for a subquery that reads both.
    pub fn outer(
        (left, right): (JoinNode, JoinNode),
        mut conditions: Vec<Expression>,
        subqueries: Vec<(Expression, Applies)>,
        block: &BlockScope<'_>,
    ) -> Result<JoinNode> {
        let (mut of_left, mut of_right) = (RelationSet::new(), RelationSet::new());
        left.relations(block, &mut of_left);
        right.relations(block, &mut of_right);
        let mut applies = Box::new([Vec::new(), Vec::new()]);
        for (condition, of_condition) in subqueries {
            let read: RelationSet = of_condition.iter().flat_map(|apply| apply.relations(block.space)).collect();
            let side = match (read.is_disjoint(&of_right), read.is_disjoint(&of_left)) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => {
                    return Err(Error::not_supported("a subquery in ON that reads both sides of an outer join"));
                }
            };
            applies[side].extend(of_condition);
            conditions.push(condition);
        }
        Ok(JoinNode::Outer { left: Box::new(left), right: Box::new(right), conditions, applies })
    }

    /// The conditions that hold for all rows of the block.
    pub fn inner_conditions(&self, of_where: &[Expression]) -> Vec<Expression> {
        let mut all = of_where.to_vec();
        if let JoinNode::Inner { conditions, .. } = self {
            all.extend(conditions.iter().cloned());
        }
        all
    }

    pub(super) fn relations(&self, block: &BlockScope<'_>, out: &mut RelationSet) {
        match self {
            JoinNode::Relation(relation) => {
                out.insert(block.relations[*relation].id);
            }
            JoinNode::Inner { members, .. } => members.iter().for_each(|member| member.relations(block, out)),
            JoinNode::Applied { node, .. } => node.relations(block, out),
            JoinNode::Outer { left, right, .. } => {
                left.relations(block, out);
                right.relations(block, out);
            }
        }
    }

    /// Turns outer joins whose null rows a condition rejects into inner joins.
    pub(super) fn simplify(self, block: &BlockScope<'_>, conditions: &[Expression]) -> JoinNode {
        match self {
            JoinNode::Relation(_) => self,
            JoinNode::Applied { node, applies, conditions: own } => {
                let node = Box::new(node.simplify(block, conditions));
                JoinNode::Applied { node, applies, conditions: own }
            }
            JoinNode::Inner { members, conditions: own, keeps_order } => {
                let mut all = conditions.to_vec();
                all.extend(own.iter().cloned());
                let members = members.into_iter().map(|member| member.simplify(block, &all)).collect();
                JoinNode::Inner { members, conditions: own, keeps_order }
            }
            JoinNode::Outer { left, right, conditions: on, applies } => {
                let mut of_right = RelationSet::new();
                right.relations(block, &mut of_right);
                let rejects = |condition: &Expression| {
                    !condition.is_stateful() && rejects_null(condition, block.space, &of_right)
                };
                let left = left.simplify(block, conditions);
                if applies.iter().all(Vec::is_empty) && conditions.iter().any(rejects) {
                    let right = right.simplify(block, conditions);
                    return JoinNode::inner(left, right, on, false);
                }
                let right = Box::new(right.simplify(block, &on));
                JoinNode::Outer { left: Box::new(left), right, conditions: on, applies }
            }
        }
    }
}

impl TreePlanner<'_> {
    /// Plans the joins of a block with the conditions of WHERE and its semijoins.
    pub(super) fn join(
        &self,
        node: JoinNode,
        WhereClause { conditions, semijoins, constants: (applies, on_constants) }: WhereClause<'_>,
        (block, sources): (&BlockScope<'_>, &[SourcePlan<'_>]),
        clauses: JoinClauses<'_>,
    ) -> Result<(PlanNode, f64)> {
        let joins = Joins::new(self, (block, sources), clauses);
        let node = node.simplify(block, &conditions);
        let mut early = Vec::new();
        let mut late = Vec::new();
        for semijoin in semijoins {
            match semijoin.is_computed() {
                true => early.push((semijoin.outer_relations(), semijoin)),
                false => late.push(semijoin),
            }
        }
        *joins.early.borrow_mut() = early;
        let node = joins.build(node, conditions)?;
        let mut node = joins.filter_early(node, true)?;
        if !applies.is_empty() {
            let share: f64 = on_constants.iter().map(|condition| joins.estimates().selectivity(condition)).product();
            let PartDone { node: of_tables, relations, mut cost } = joins.finish(node)?;
            cost.rows = (cost.rows * share).max(0.1);
            let applied = applies.into_iter().fold(of_tables, applied);
            node = Part::planned(filtered(applied, on_constants), relations, cost);
        }
        for semijoin in late {
            node = self.semijoin(&joins, node, semijoin)?;
        }
        let done = joins.finish(node)?;
        Ok((done.node, done.cost.rows))
    }
}

impl Part {
    pub(super) fn planned(node: PlanNode, relations: RelationSet, cost: PartCost) -> Part {
        Part { node, relations, table: None, cost, lateral: None, computed: Vec::new(), is_initial: false }
    }

    /// Whether the part can be joined with the rows of these relations.
    fn fits(&self, relations: &RelationSet) -> bool {
        self.needs().all(|needed| relations.contains(needed))
    }

    /// The relations that must be joined before the part.
    fn needs(&self) -> impl Iterator<Item = &u16> {
        self.lateral.iter().flat_map(|lateral| &lateral.needs)
    }
}

/// A part whose leaf is planned.
pub(super) struct PartDone {
    pub(super) node: PlanNode,
    pub(super) relations: RelationSet,
    pub(super) cost: PartCost,
}

pub(super) struct Joins<'j> {
    pub(super) planner: &'j TreePlanner<'j>,
    pub(super) block: &'j BlockScope<'j>,
    pub(super) sources: &'j [SourcePlan<'j>],
    pub(super) clauses: JoinClauses<'j>,
    /// The relations of the block around a semijoin's.
    pub(super) outer: Option<(&'j BlockScope<'j>, &'j [SourcePlan<'j>])>,
    /// Semijoins that are applied as soon as the relations that they read are joined.
    pub(super) early: RefCell<Vec<(RelationSet, SemiJoin<'j>)>>,
}

impl<'j> Joins<'j> {
    pub(super) fn new(
        planner: &'j TreePlanner<'j>,
        (block, sources): (&'j BlockScope<'j>, &'j [SourcePlan<'j>]),
        clauses: JoinClauses<'j>,
    ) -> Joins<'j> {
        Joins { planner, block, sources, clauses, outer: None, early: RefCell::default() }
    }

    pub(super) fn estimates(&self) -> Estimates<'_> {
        Estimates {
            block: self.block,
            sources: self.sources,
            rows: self.planner.environment.row_estimate,
            profile: self.planner.environment.profile,
            values: Parameters::from_bytes(self.planner.environment.parameter_values),
            equals: &[],
            outer: self.outer,
        }
    }

    /// Applies the early semijoins whose relations a part has, or all of them.
    fn filter_early(&self, mut part: Part, all: bool) -> Result<Part> {
        let mut early = self.early.borrow_mut();
        let mut place = 0;
        while place < early.len() {
            let is_ready = all || !early[place].0.is_empty() && early[place].0.is_subset(&part.relations);
            match is_ready {
                true => part = self.planner.semijoin(self, part, early.remove(place).1)?,
                false => place += 1,
            }
        }
        Ok(part)
    }

    pub(super) fn build(&self, node: JoinNode, conditions: Vec<Expression>) -> Result<Part> {
        match node {
            JoinNode::Relation(relation) => self.relation(relation, conditions),
            JoinNode::Applied { node, applies, conditions: above } => {
                let part = self.with_applies(self.build(*node, conditions)?, applies)?;
                Ok(Part { node: filtered(part.node, above), ..part })
            }
            JoinNode::Inner { members, conditions: own, keeps_order } => {
                let all: Vec<Expression> = conditions.into_iter().chain(own).collect();
                self.inner(members, all, keeps_order || self.clauses.keeps_order)
            }
            JoinNode::Outer { left, right, conditions: on, applies } => {
                let (mut of_left, mut of_right) = (RelationSet::new(), RelationSet::new());
                left.relations(self.block, &mut of_left);
                right.relations(self.block, &mut of_right);
                let (to_left, above) = self.split(conditions, &of_left);
                let known: Vec<Expression> = to_left.iter().chain(&on).cloned().collect();
                let (mut to_right, on) = self.split(on, &of_right);
                // Right rows that no left row can match need not be computed.
                let (names, _) = self.split(self.implied_names(&known), &of_right);
                to_right.extend(names);
                let [left_applies, right_applies] = *applies;
                let left = self.with_applies(self.build(*left, to_left)?, left_applies)?;
                // WHERE also judges rows that have only NULL on the right, so its semijoins cannot filter the
                // right side.
                let early = self.early.take();
                let right = self.build(*right, to_right);
                *self.early.borrow_mut() = early;
                let right = self.with_applies(right?, right_applies)?;
                let joined = self.pair(JoinForm::Left, left, right, on)?;
                let mut cost = joined.cost;
                cost.rows *= above.iter().map(|condition| self.estimates().selectivity(condition)).product::<f64>();
                Ok(Part { node: filtered(joined.node, above), cost, ..joined })
            }
        }
    }

    /// Adds the values of subqueries to the rows of a part.
    fn with_applies(&self, part: Part, applies: Applies) -> Result<Part> {
        if applies.is_empty() {
            return Ok(part);
        }
        let done = self.finish(part)?;
        let computed = applies.iter().map(|apply| apply.slot).collect();
        let node = applies.into_iter().fold(done.node, applied);
        Ok(Part { computed, ..Part::planned(node, done.relations, done.cost) })
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
        let mut cost = self.cost_of(relation, &conditions);
        let node = match &self.sources[relation] {
            SourcePlan::Table(..) => {
                let table = Some((relation, conditions));
                return Ok(Part { table, ..Part::planned(PlanNode::Nothing, relations, cost) });
            }
            SourcePlan::Virtual(source) => self.planner.virtual_leaf(source, &columns(), &conditions)?,
            SourcePlan::Working(from) => {
                let slots = columns();
                let pairs = slots.iter().map(|(slot, column)| (from[usize::from(column.0)], *slot));
                PlanNode::WorkTable(pairs.collect())
            }
            SourcePlan::Query(block) => {
                let mut slots: Vec<(usize, u16)> =
                    columns().iter().map(|(slot, column)| (usize::from(column.0), *slot)).collect();
                if block.is_stateful {
                    with_unread(block, &mut slots, self.block.space)?;
                }
                let slots: Arc<[(usize, u16)]> = slots.into();
                let read = block.outer.iter().filter_map(|(_, value)| relations_of(value, self.block.space));
                let needs: RelationSet = read.flatten().collect();
                if !needs.is_empty() {
                    let (name, block) = (self.block.relations[relation].name.clone(), Arc::clone(block));
                    cost.joined_ns = self.planner.work_of(&block.root).cost_ns;
                    let lateral = Some(LateralPart { name, needs, block, slots, conditions });
                    return Ok(Part { lateral, ..Part::planned(PlanNode::Nothing, relations, cost) });
                }
                let project = PlanNode::Project(Arc::clone(block), slots);
                if block.is_stateful { PlanNode::Materialize(Box::new(project)) } else { project }
            }
        };
        let is_initial = match &self.sources[relation] {
            SourcePlan::Query(block) => block.is_stateful && matches!(block.root, PlanNode::Once),
            _ => false,
        };
        cost.joined_ns = self.planner.work_of(&node).cost_ns;
        Ok(Part { is_initial, ..Part::planned(filtered(node, conditions), relations, cost) })
    }

    /// The rows of a relation with its conditions.
    pub(super) fn cost_of(&self, relation: usize, conditions: &[Expression]) -> PartCost {
        let estimates = self.estimates();
        let stored = estimates.stored(relation);
        let share = estimates.joint(&conditions.iter().collect::<Vec<_>>());
        let rows = (stored * share).max(0.1);
        let examined = match &self.sources[relation] {
            SourcePlan::Table(layout, reference, of_view) => {
                let table = (*layout, *reference, &of_view[..]);
                match self.planner.access(table, (self.block.space, conditions)) {
                    LeafAccess::Keys => return PartCost { rows: rows.min(1.0), stored, examined: 1.0, joined_ns: 0.0 },
                    // The conditions of the index, without the others.
                    LeafAccess::Ranges { share: None } => (2.0 * rows).min(stored),
                    LeafAccess::Ranges { share: Some(share) } => (share * stored).clamp(rows.min(stored), stored),
                    LeafAccess::Scan => stored,
                }
            }
            _ => stored,
        };
        PartCost { rows, stored, examined, joined_ns: 0.0 }
    }

    /// Plans the leaf of a part that is a table.
    pub(super) fn finish(&self, part: Part) -> Result<PartDone> {
        let Part { node, relations, table, lateral, mut cost, .. } = part;
        if let Some(lateral) = lateral {
            return Err(forbidden_lateral(&lateral.name));
        }
        let node = match table {
            Some((relation, conditions)) => {
                cost.joined_ns = cost.read_ns();
                self.scan(relation, conditions, &cost)?
            }
            None => node,
        };
        Ok(PartDone { node, relations, cost })
    }

    /// The read of a table.
    fn scan(&self, relation: usize, conditions: Vec<Expression>, cost: &PartCost) -> Result<PlanNode> {
        let SourcePlan::Table(layout, reference, of_view) = &self.sources[relation] else {
            return Ok(PlanNode::Nothing);
        };
        let columns = self.block.space.columns_of(self.block.relations[relation].id);
        let space = self.block.space;
        let table = (*layout, *reference, &of_view[..]);
        let leaf = self.planner.table_leaf(table, (space, &columns), conditions, self.clauses.locks.of(relation))?;
        let planned = &mut self.planner.leaves.borrow_mut()[leaf];
        (planned.rows, planned.cost_ns) = (Some(cost.rows), cost.read_ns());
        Ok(PlanNode::Scan(leaf))
    }

    fn inner(&self, members: Vec<JoinNode>, conditions: Vec<Expression>, keeps_order: bool) -> Result<Part> {
        let mut rest = conditions;
        rest.extend(self.implied(&rest));
        rest.extend(self.implied_equalities(&rest, &members));
        rest.extend(self.implied_names(&rest));
        let mut parts = Vec::new();
        let mut applied = Classes::default();
        for member in members {
            let mut relations = RelationSet::new();
            member.relations(self.block, &mut relations);
            let own;
            (own, rest) = self.split(rest, &relations);
            own.iter().for_each(|condition| _ = applied.add(condition));
            parts.push(Some(self.build(member, own)?));
        }
        let order = if keeps_order { (0..parts.len()).collect() } else { self.order(&parts, &rest) };
        let needed: RelationSet = parts.iter().flatten().flat_map(Part::needs).copied().collect();
        let is_initial = |place: usize| {
            parts[place].as_ref().is_some_and(|part| part.is_initial && part.relations.is_disjoint(&needed))
        };
        let order = with_initial_last(ordered(&parts, order), &is_initial);
        let mut joined: Option<Part> = None;
        for place in order {
            let Some(right) = parts[place].take() else { continue };
            let Some(left) = joined else {
                joined = Some(self.filter_early(right, false)?);
                continue;
            };
            let both: RelationSet = left.relations.union(&right.relations).copied().collect();
            let mut on;
            (on, rest) = self.split(rest, &both);
            on.retain(|condition| applied.add(condition));
            joined = Some(self.filter_early(self.pair(JoinForm::Inner, left, right, on)?, false)?);
        }
        let one = PartCost { rows: 1.0, stored: 1.0, examined: 0.0, joined_ns: 0.0 };
        let once = || Part::planned(PlanNode::Once, RelationSet::new(), one);
        let joined = joined.unwrap_or_else(once);
        if rest.is_empty() {
            return Ok(joined);
        }
        // Constant conditions.
        let done = self.finish(joined)?;
        Ok(Part::planned(filtered(done.node, rest), done.relations, done.cost))
    }

    /// Conditions on one relation that follow from conditions on several.
    fn implied(&self, conditions: &[Expression]) -> Vec<Expression> {
        let mut found = Vec::new();
        for condition in conditions {
            let used = relations_of(condition, self.block.space).filter(|used| used.len() > 1);
            for relation in used.into_iter().flatten() {
                found.extend(factor::implied(condition, relation, self.block.space));
            }
        }
        found
    }

    /// Equalities of columns of different members that follow from others.
    fn implied_equalities(&self, conditions: &[Expression], members: &[JoinNode]) -> Vec<Expression> {
        let relations = members.iter().map(|member| {
            let mut relations = RelationSet::new();
            member.relations(self.block, &mut relations);
            relations
        });
        let relations: Vec<RelationSet> = relations.collect();
        let member_of = |column: &Expression| {
            let used = relations_of(column, self.block.space)?;
            relations.iter().position(|relations| !used.is_empty() && used.is_subset(relations))
        };
        // Only columns of members are equal because of the joins.
        let is_inner = |condition: &&Expression| {
            let Node::Compare(_, _, operands) = &condition.node else { return false };
            operands.iter().all(|operand| member_of(operand).is_some())
        };
        let inner: Vec<Expression> = conditions.iter().filter(is_inner).cloned().collect();
        Classes::of(&inner).implied(&inner, &member_of)
    }

    /// Conditions on the names in virtual tables that follow from others: from `a = b` and `a = 'x'` follows
    /// `b = 'x'`. Their providers then compute fewer rows.
    fn implied_names(&self, conditions: &[Expression]) -> Vec<Expression> {
        let is_virtual = |source: &SourcePlan<'_>| matches!(source, SourcePlan::Virtual(_));
        if !self.sources.iter().any(is_virtual) {
            return Vec::new();
        }
        let of_virtual = |column: &Expression| {
            let used = relations_of(column, self.block.space).unwrap_or_default();
            let mut relations = self.block.relations.iter().zip(self.sources);
            relations.any(|(relation, source)| used.contains(&relation.id) && is_virtual(source))
        };
        let classes = Classes::of(conditions);
        let mut implied: Vec<Expression> = Vec::new();
        for condition in conditions.iter().flat_map(Expression::conjuncts).filter(|condition| is_silent(condition)) {
            let Some((domain, column)) = tested_name(condition) else { continue };
            for other in classes.equal_to(domain, column).filter(|other| of_virtual(other)) {
                let mut new = condition.clone();
                new.rewrite(&mut |inner| (inner.as_column() == Some(column)).then(|| other.clone()));
                if !conditions.contains(&new) && !implied.contains(&new) {
                    implied.push(new);
                }
            }
        }
        implied
    }

    /// Joins two parts.
    pub(super) fn pair(&self, form: JoinForm, left: Part, right: Part, conditions: Vec<Expression>) -> Result<Part> {
        let left = self.finish(left)?;
        if let Some(lateral) = right.lateral {
            return lateral_join(form, left, (lateral, right.relations, right.cost), conditions);
        }
        let key = |condition| join_key(condition, self.block.space, (&left.relations, &right.relations));
        let mut keys: Vec<JoinKey> = match (form, conditions.split_last()) {
            (JoinForm::NullAwareAnti, Some((equality, others))) => {
                let unknown = equality.conjuncts().iter().filter_map(key).map(null_aware);
                let (plain, nullable): (Vec<_>, Vec<_>) = unknown.partition(|key| key.nulls == NullMatch::Nothing);
                let nullable = nullable.into_iter().take(NULL_AWARE_KEYS_MAX);
                others.iter().filter_map(key).chain(plain).chain(nullable).collect()
            }
            _ => conditions.iter().filter_map(key).collect(),
        };
        let others = conditions.iter().filter(|condition| key(condition).is_none()).cloned().collect();
        let estimates = self.estimates();
        let share = estimates.joint(&conditions.iter().collect::<Vec<_>>());
        let (mut lookup, mut lookup_ns) = (None, None);
        let (mut left_node, is_table) = (left.node, right.table.is_some());
        let mut node = match right.table {
            Some((relation, own)) => {
                if let SourcePlan::Table(layout, reference, of_view) = &self.sources[relation] {
                    let table = (*layout, *reference, &of_view[..]);
                    let columns = self.block.space.columns_of(self.block.relations[relation].id);
                    let lock = self.clauses.locks.of(relation);
                    if let Some(best) = self.best_lookup((relation, &own, &right.cost), &keys) {
                        let rows_max = lookup_rows_max(&right.cost, best.ns);
                        let places = best.keys();
                        let of_lookup: Vec<&JoinKey> = places.iter().map(|place| &keys[*place]).collect();
                        let request = (self.block.space, &own[..], &of_lookup[..]);
                        // Locking reads lock what they read, so they prefer keys.
                        if lock.is_some() || left.cost.rows <= 2.0 * rows_max as f64 {
                            let leaf = self.planner.lookup_leaf(table, &columns, request, lock)?;
                            lookup = Some(JoinLookup { leaf, keys: places, rows_max });
                            lookup_ns = Some(best.ns);
                        }
                    }
                }
                self.scan(relation, own, &right.cost)?
            }
            None => right.node,
        };
        let slots = |relation: &u16| {
            let space = self.block.space;
            space.columns_of(*relation).into_iter().chain(space.instants_of(*relation)).map(|(slot, _)| slot)
        };
        let mut right_slots: Vec<u16> = right.relations.iter().flat_map(slots).chain(right.computed).collect();
        let mut key_filter = None;
        if lookup.is_none() && matches!(form, JoinForm::Inner | JoinForm::Semi) && !self.clauses.keeps_order {
            let estimates = &estimates;
            let share_of = |rows: f64| move |key: &JoinKey| rows * estimates.equality_of(key);
            // Of two sides of which one leaves rows of the other out, the smaller one is read first.
            let may_swap = form == JoinForm::Inner && is_table && self.clauses.orders.is_empty();
            let is_larger = right.cost.rows >= FILTERED_ROWS_MIN && right.cost.rows > left.cost.rows;
            if may_swap && is_larger && is_movable(&left_node) {
                let swapped: Vec<JoinKey> = keys.iter().cloned().map(JoinKey::swapped).collect();
                key_filter = self.planner.key_filter(&node, &swapped, &share_of(left.cost.rows));
                if key_filter.is_some() {
                    std::mem::swap(&mut left_node, &mut node);
                    (keys, right_slots) = (swapped, left.relations.iter().flat_map(slots).collect());
                }
            }
            if key_filter.is_none() && left.cost.rows >= FILTERED_ROWS_MIN {
                key_filter = self.planner.key_filter(&left_node, &keys, &share_of(right.cost.rows));
            }
        }
        let mut relations = left.relations;
        if matches!(form, JoinForm::Inner | JoinForm::Left) {
            relations.extend(&right.relations);
        }
        let rows = match form {
            JoinForm::Inner => left.cost.rows * right.cost.rows * share,
            JoinForm::Left => left.cost.rows * (right.cost.rows * share).max(1.0),
            JoinForm::Semi | JoinForm::Anti | JoinForm::NullAwareAnti => left.cost.rows * SEMIJOIN_SHARE,
        };
        let rows = rows.max(0.1);
        let pairs = if keys.is_empty() { left.cost.rows * right.cost.rows } else { rows };
        let inputs_ns = left.cost.joined_ns + right.cost.joined_ns;
        let joined_ns = right.cost.join_ns((left.cost.rows, inputs_ns), pairs, lookup_ns);
        let cost = PartCost { rows, stored: rows, examined: rows, joined_ns };
        let reads_right_first = right.is_initial || key_filter.is_some();
        let cost_ns = joined_ns;
        let plan = JoinPlan {
            form,
            keys,
            conditions,
            others,
            right_slots,
            lookup,
            key_filter,
            reads_right_first,
            rows,
            cost_ns,
        };
        let node = PlanNode::Join(Box::new(left_node), Box::new(node), Arc::new(plan));
        Ok(Part::planned(node, relations, cost))
    }
}

/// The number of left rows up to which their keys are looked up instead of reading all right rows. It is
/// small if a key has many rows: a batch of left rows would read them again and again.
fn lookup_rows_max(right: &PartCost, lookup_ns: f64) -> usize {
    let equal = right.build_ns() / lookup_ns;
    let rows_min = if lookup_ns > LOOKUP_NS_MAX { 1.0 } else { LOOKUP_ROWS_MIN };
    equal.clamp(rows_min, LOOKUP_ROWS_MAX) as usize
}

/// Joins rows with a query that reads them. Error: 3668.
fn lateral_join(
    form: JoinForm,
    left: PartDone,
    (right, of_right, right_cost): (LateralPart, RelationSet, PartCost),
    on: Vec<Expression>,
) -> Result<Part> {
    let LateralPart { name, needs, block, slots, mut conditions } = right;
    if !needs.is_subset(&left.relations) || !matches!(form, JoinForm::Inner | JoinForm::Left) {
        return Err(forbidden_lateral(&name));
    }
    conditions.extend(on);
    let mut relations = left.relations;
    relations.extend(of_right);
    let plan = LateralPlan { block, slots, conditions, is_outer: form == JoinForm::Left };
    let rows = (left.cost.rows * right_cost.rows.max(1.0)).max(0.1);
    let joined_ns = left.cost.joined_ns + left.cost.rows * right_cost.joined_ns;
    let cost = PartCost { rows, stored: rows, examined: rows, joined_ns };
    Ok(Part::planned(PlanNode::Lateral(Box::new(left.node), Arc::new(plan)), relations, cost))
}

/// An order of parts in which each query comes after the relations that it reads.
fn ordered(parts: &[Option<Part>], mut order: Vec<usize>) -> Vec<usize> {
    let mut known = RelationSet::new();
    let mut placed = Vec::with_capacity(order.len());
    while !order.is_empty() {
        let fits = |place: &usize| parts[*place].as_ref().is_none_or(|part| part.fits(&known));
        let next = order.remove(order.iter().position(fits).unwrap_or(0));
        known.extend(parts[next].iter().flat_map(|part| &part.relations));
        placed.push(next);
    }
    placed
}

/// Error 3668.
fn forbidden_lateral(name: &str) -> Box<Error> {
    let text = format!("INNER or LEFT JOIN must be used for LATERAL references made by '{name}'");
    Error::new(ErrorCode::ForbiddenLateralJoin, text)
}
