//! The order in which the parts of an inner join are joined.

use std::collections::BTreeMap;

use junctor_expression::Expression;

use super::JoinKey;
use super::cost::{self, Joining, Link, Way};
use super::equality_class::Classes;
use super::join::{Joins, Part, RelationSet, SEMIJOIN_SHARE};
use super::join_key::{join_key, relations_of};
use super::lookup::Lookup;
use super::selectivity::Estimates;
use super::subquery::SemiJoin;
use crate::parse::hint::JoinOrderKind;

impl Joins<'_> {
    /// The order in which to join parts.
    pub(super) fn order(&self, parts: &[Option<Part>], conditions: &[Expression]) -> Vec<usize> {
        let equals = self.estimates().equal_columns(conditions);
        let estimates = Estimates { equals: &equals, ..self.estimates() };
        let mut costs = Vec::with_capacity(parts.len());
        for part in parts.iter().flatten() {
            let mut cost = part.cost;
            let early = self.early.borrow();
            let is_ready = |(used, _): &&(RelationSet, SemiJoin<'_>)| used.is_subset(&part.relations);
            cost.rows *= SEMIJOIN_SHARE.powi(early.iter().filter(is_ready).count() as i32);
            costs.push(cost);
        }
        let mut links = Vec::new();
        let mut of_link = Vec::new();
        // For each part, the keys by which others may lead to its rows, and their links.
        let mut keys: Vec<(Vec<JoinKey>, Vec<usize>)> = parts.iter().map(|_| Default::default()).collect();
        let classes = Classes::of(conditions);
        for condition in conditions {
            let Some(used) = relations_of(condition, self.block.space) else { continue };
            let class = classes.number_of(condition);
            let mut link = Link { parts: 0, selectivity: 0.0, is_equality: false, class };
            for (place, part) in parts.iter().enumerate().take(64) {
                let Some(part) = part.as_ref().filter(|part| !part.relations.is_disjoint(&used)) else { continue };
                link.parts |= 1 << place;
                let others = used.difference(&part.relations).copied().collect();
                if let Some(key) = join_key(condition, self.block.space, (&others, &part.relations)) {
                    link.is_equality = true;
                    keys[place].0.push(key);
                    keys[place].1.push(links.len());
                }
            }
            if link.parts != 0 {
                link.selectivity = estimates.selectivity(condition);
                links.push(link);
                of_link.push(condition);
            }
        }
        // Conditions on the same parts may depend on each other. Each gets its share of that.
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (place, link) in links.iter().enumerate() {
            groups.entry(link.parts).or_default().push(place);
        }
        for together in groups.values().filter(|together| together.len() > 1) {
            let conditions: Vec<&Expression> = together.iter().map(|link| of_link[*link]).collect();
            let product: f64 = together.iter().map(|link| links[*link].selectivity).product();
            let factor = (estimates.joint(&conditions) / product.max(f64::MIN_POSITIVE)).max(1.0);
            let of_each = factor.powf(1.0 / together.len() as f64);
            together.iter().for_each(|link| links[*link].selectivity *= of_each);
        }
        let ways_of = |(part, (keys, of_keys)): (&Option<Part>, &(Vec<JoinKey>, Vec<usize>))| {
            let lookups = part.iter().flat_map(|part| self.lookups(part, keys));
            let way = |lookup: Lookup| {
                let links_of = |keys: &Vec<usize>| keys.iter().map(|key| of_keys[*key]).collect();
                Way { links: lookup.columns.iter().map(links_of).collect(), lookup_ns: lookup.ns }
            };
            lookups.map(way).collect()
        };
        let ways: Vec<Vec<Way>> = parts.iter().zip(&keys).map(ways_of).collect();
        Joining { parts: &costs, links: &links, ways: &ways, before: &self.before(parts) }.order()
    }

    /// For each part, the parts that hints want to be joined before it, as bits. A hint that contradicts
    /// those before it is ignored.
    fn before(&self, parts: &[Option<Part>]) -> Vec<u64> {
        let count = parts.len().min(64);
        let mut before = vec![0_u64; count];
        for (kind, names) in self.clauses.orders {
            let has = |part: &Option<Part>, name: &String| {
                let mut relations = self.block.relations.iter();
                let relation = relations.find(|relation| relation.name.eq_ignore_ascii_case(name));
                part.iter().any(|part| relation.is_some_and(|relation| part.relations.contains(&relation.id)))
            };
            let mut places: Vec<usize> = Vec::new();
            for place in names.iter().filter_map(|name| parts[..count].iter().position(|part| has(part, name))) {
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            let named = places.iter().fold(0_u64, |bits, place| bits | 1 << place);
            let mut wanted = before.clone();
            for pair in places.windows(2) {
                wanted[pair[1]] |= 1 << pair[0];
            }
            for (place, needs) in wanted.iter_mut().enumerate() {
                let is_named = named & 1 << place != 0;
                match kind {
                    JoinOrderKind::Prefix if !is_named => *needs |= named,
                    JoinOrderKind::Suffix if is_named => *needs |= !named & cost::all_bits(count),
                    _ => {}
                }
            }
            if cost::is_possible(&wanted) {
                before = wanted;
            }
        }
        before
    }
}
