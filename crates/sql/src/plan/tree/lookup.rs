//! The reads of a table by the keys of other relations: values of the first columns of an index, each from a
//! key of the join or from a condition on the table alone, which may have a list of values.

use std::collections::BTreeMap;

use junctor_expression::Expression;
use junctor_model::id::ColumnNumber;
use junctor_model::schema::IndexDefinition;

use super::JoinKey;
use super::cost::PartCost;
use super::from::SourcePlan;
use super::join::{Joins, Part};
use crate::plan::access::is_usable;

/// A read of a table by keys.
pub(super) struct Lookup {
    /// For each column of the key that no condition on the table binds: the positions of the join's keys that
    /// do.
    pub columns: Vec<Vec<usize>>,
    /// The cost of the rows of one key in nanoseconds of one thread.
    pub ns: f64,
}

impl Lookup {
    /// The positions of the keys whose values are looked up.
    pub fn keys(&self) -> Box<[usize]> {
        self.columns.iter().filter_map(|keys| keys.first().copied()).collect()
    }
}

impl Joins<'_> {
    /// The reads of a part by some of these keys. None if it is no table whose leaf is still to be planned.
    pub(super) fn lookups(&self, part: &Part, keys: &[JoinKey]) -> Vec<Lookup> {
        match &part.table {
            Some((relation, own)) => self.table_lookups((*relation, own, &part.cost), keys),
            None => Vec::new(),
        }
    }

    /// The cheapest read of a table with these conditions by some of these keys.
    pub(super) fn best_lookup(&self, table: (usize, &[Expression], &PartCost), keys: &[JoinKey]) -> Option<Lookup> {
        self.table_lookups(table, keys).into_iter().min_by(|left, right| left.ns.total_cmp(&right.ns))
    }

    fn table_lookups(&self, (relation, own, cost): (usize, &[Expression], &PartCost), keys: &[JoinKey]) -> Vec<Lookup> {
        let mut found = Vec::new();
        let SourcePlan::Table(layout, reference, of_view) = &self.sources[relation] else { return found };
        let (space, table) = (self.block.space, (*layout, *reference, &of_view[..]));
        let mut of_columns: BTreeMap<ColumnNumber, Vec<usize>> = BTreeMap::new();
        for (place, key) in keys.iter().enumerate() {
            if let Some(column) = self.planner.key_column(layout, space, key) {
                of_columns.entry(column).or_default().push(place);
            }
        }
        if of_columns.is_empty() {
            return found;
        }
        let bound = self.planner.bound_columns(table, (space, own));
        let lock = self.clauses.locks.of(relation);
        let definition = &layout.definition;
        for index in definition.indexes.iter().filter(|index| is_usable(definition, index, &reference.index_hints)) {
            let mut columns: Vec<Vec<usize>> = Vec::new();
            // Several lists make ranges.
            let own_values = |column: ColumnNumber| {
                let of_column = bound.iter().filter(|(known, _)| *known == column).map(|(_, values)| *values);
                of_column.reduce(f64::min).filter(|values| *values <= 1.0 || index.is_ordered())
            };
            for (place, column) in index.columns.iter().enumerate() {
                match (own_values(*column), of_columns.get(column)) {
                    (Some(values), _) if values <= 1.0 => {}
                    (_, Some(keys)) => columns.push(keys.clone()),
                    (Some(_), None) => {}
                    (None, None) => break,
                }
                let is_whole = place + 1 == index.columns.len();
                // A longer prefix has the same keys.
                let goes_on = index.columns.get(place + 1).is_some_and(|next| {
                    own_values(*next).is_some_and(|values| values <= 1.0 || !of_columns.contains_key(next))
                });
                if columns.is_empty() || goes_on || !is_whole && !index.is_ordered() {
                    continue;
                }
                let ns = self.prefix_ns((relation, index, place + 1), (&columns, &bound), (cost, keys));
                let lookup = Lookup { columns: columns.clone(), ns };
                let of_lookup: Vec<&JoinKey> = lookup.keys().iter().map(|key| &keys[*key]).collect();
                if self.planner.serves_keys(table, (space, own, &of_lookup), lock) {
                    found.push(lookup);
                }
            }
        }
        found
    }

    /// The cost of the rows that have one combination of values of the first columns of an index.
    fn prefix_ns(
        &self,
        (relation, index, count): (usize, &IndexDefinition, usize),
        (columns, bound): (&[Vec<usize>], &[(ColumnNumber, f64)]),
        (cost, keys): (&PartCost, &[JoinKey]),
    ) -> f64 {
        let estimates = self.estimates();
        let share_of =
            |places: &Vec<usize>| places.iter().map(|place| estimates.equality_of(&keys[*place])).fold(1.0, f64::min);
        let prefix = &index.columns[..count];
        let of_prefix = || bound.iter().filter(|(column, _)| prefix.contains(column));
        let values: f64 = of_prefix().map(|(_, values)| values).product();
        let share_of_bound: f64 =
            of_prefix().map(|(column, values)| (values * estimates.share(relation, *column)).min(1.0)).product();
        let share = match (prefix, columns) {
            ([_], [places]) => share_of(places),
            _ => estimates
                .prefix_share(relation, index, count)
                .map_or_else(|| columns.iter().map(share_of).product::<f64>() * share_of_bound, |share| share * values),
        };
        let rows = (cost.stored * share).max(1.0 / cost.stored.max(1.0));
        // The conditions of the prefix leave out no row of the key.
        let left = cost.rows / cost.stored.max(1.0) / share_of_bound.max(f64::MIN_POSITIVE);
        cost.lookup_ns(rows, left)
    }
}
