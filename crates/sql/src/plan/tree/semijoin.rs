//! Semijoins and antijoins of the rows of a block with the relations of a subquery.

use junctor_expression::{Expression, Kind};
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::schema::IndexKind;

use super::from::SourcePlan;
use super::join::{JoinClauses, JoinNode, Joins, Locks, Part, RelationSet};
use super::join_key::{join_key, relations_of};
use super::lookup::Lookup;
use super::subquery::SemiJoin;
use super::{JoinForm, JoinKey, NullMatch, TreePlanner};
use crate::bind::block::{SlotOwner, SlotSpace};
use crate::plan::select::implied_lock;

impl TreePlanner<'_> {
    /// Joins rows with the relations of a subquery.
    pub(super) fn semijoin(&self, outer: &Joins<'_>, left: Part, semijoin: SemiJoin<'_>) -> Result<Part> {
        let SemiJoin { block, sources, node, mut conditions, form } = semijoin;
        let table = match node {
            JoinNode::Relation(relation) => Some(relation),
            _ => None,
        };
        // NOT IN looks for an equality that is not false, so it is no condition of the right rows.
        let equality = if form == JoinForm::NullAwareAnti { conditions.pop() } else { None };
        // A locking clause of the query around it does not concern a subquery.
        let mut joins = {
            let locks = Locks::All(implied_lock(self.environment));
            Joins::new(self, (&block, &sources), JoinClauses::with_locks(locks))
        };
        joins.outer = Some((outer.block, outer.sources));
        let mut inner = RelationSet::new();
        node.relations(&block, &mut inner);
        let is_inner = |condition: &Expression| {
            relations_of(condition, block.space)
                .is_some_and(|relations| !relations.is_empty() && relations.is_subset(&inner))
        };
        let (own, mut on): (Vec<_>, Vec<_>) = conditions.into_iter().partition(is_inner);
        on.extend(equality);
        let node = node.simplify(&block, &own);
        let right = joins.build(node, own)?;
        if form == JoinForm::Semi && table.is_some_and(|table| joins.leads(outer, table, (&left, &right), &on)) {
            let right = joins.finish(right)?;
            return outer.pair(JoinForm::Inner, Part::planned(right.node, right.relations, right.cost), left, on);
        }
        let left = outer.finish(left)?;
        let left = Part::planned(left.node, left.relations, left.cost);
        joins.pair(form, left, right, on)
    }
}

impl Joins<'_> {
    /// Whether a semijoin with a table is an inner join that is cheaper from the table on: each row of `left`
    /// has one partner at most, and the rows of the table lead to those of `left` by keys.
    fn leads(&self, outer: &Joins<'_>, table: usize, (left, right): (&Part, &Part), on: &[Expression]) -> bool {
        let SourcePlan::Table(layout, ..) = &self.sources[table] else { return false };
        if outer.clauses.keeps_order || left.table.is_none() || self.clauses.locks.of(table).is_some() {
            return false;
        }
        let space = self.block.space;
        let keys: Vec<JoinKey> =
            on.iter().filter_map(|on| join_key(on, space, (&left.relations, &right.relations))).collect();
        let is_unique = layout.definition.indexes.iter().any(|index| {
            matches!(index.kind, IndexKind::Primary { .. } | IndexKind::Unique { .. })
                && index.columns.iter().all(|column| keys.iter().any(|key| is_exactly(key, *column, space)))
        });
        if !is_unique {
            return false;
        }
        let estimates = self.estimates();
        let to_left: Vec<JoinKey> =
            on.iter().filter_map(|on| join_key(on, space, (&right.relations, &left.relations))).collect();
        let least = |lookups: Vec<Lookup>| lookups.iter().map(|lookup| lookup.ns).min_by(f64::total_cmp);
        let Some(lookup_ns) = least(outer.lookups(left, &to_left)) else { return false };
        let share = estimates.joint(&on.iter().collect::<Vec<_>>());
        let pairs = left.cost.rows * right.cost.rows * share;
        let from_right = left.cost.join_ns((right.cost.rows, right.cost.read_ns()), pairs, Some(lookup_ns));
        let left_ns = (left.cost.rows, left.cost.read_ns());
        from_right < right.cost.join_ns(left_ns, pairs, least(self.lookups(right, &keys)))
    }
}

/// Whether the right side of a key is this column, compared as an index of the column compares it.
fn is_exactly(key: &JoinKey, column: ColumnNumber, space: &SlotSpace) -> bool {
    let slot = key.right.as_column();
    let is_it = slot.is_some_and(|slot| matches!(space.owner(slot), Some(SlotOwner::Column(_, of)) if of == column));
    let is_text = key.right.result.kind == Kind::String;
    is_it && key.nulls == NullMatch::Nothing && (!is_text || key.right.result.collation == key.collation)
}
