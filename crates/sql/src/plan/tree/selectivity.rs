//! Estimates of how many rows conditions leave.
//!
//! [`super::histogram_share`] has the shares of conditions on columns that were sampled. Without a sample, a
//! value of a unique key has one row, values of all its columns but the last a few. For other columns, the
//! number of different values is assumed to be the square root of the number of rows, and at most the rows of
//! a unique column that must be equal to them. Ranges and patterns have fixed shares, as in other databases.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_expression::{CompareOperator, Expression, Node, Parameters};
use junctor_model::id::ColumnNumber;
use junctor_model::schema::{IndexDefinition, IndexKind, TableDefinition};

use super::JoinKey;
use super::from::SourcePlan;
use super::join_key::relations_of;
use crate::bind::block::{BlockScope, SlotOwner};
use crate::statistics::TableProfile;

/// Rows of a relation of which nothing is known.
pub(super) const UNKNOWN_ROWS: f64 = 1000.0;
const WORKING_ROWS: f64 = 10.0;
const EQUALITY: f64 = 0.1;
const RANGE: f64 = 1.0 / 3.0;
const BETWEEN: f64 = 0.1;
const PATTERN: f64 = 0.1;
const OTHER: f64 = 0.5;
/// Rows that have the values of all columns of a unique key but the last, such as the lines of an order.
const ROWS_OF_LEADING_VALUES: f64 = 8.0;

/// The relations of a block with their numbers of rows.
pub(super) struct Estimates<'e> {
    pub block: &'e BlockScope<'e>,
    pub sources: &'e [SourcePlan<'e>],
    /// The stored rows of a table.
    pub rows: &'e dyn Fn(&TableDefinition) -> Option<u64>,
    /// The statistics of the values in a table.
    pub profile: &'e dyn Fn(&TableDefinition) -> Option<Arc<TableProfile>>,
    /// The parameters of the first execution, as far as they are known.
    pub values: Parameters<'e>,
    pub equals: &'e [EqualColumns],
    /// The relations of the block around a semijoin's, whose rows have the same slots.
    pub outer: Option<(&'e BlockScope<'e>, &'e [SourcePlan<'e>])>,
}

/// Columns that are equal in all rows of a join.
pub(super) struct EqualColumns {
    slots: Vec<ColumnNumber>,
    /// The rows of the smallest table of which one of the columns is a unique key. The others have no more
    /// values that can be joined.
    distinct_max: f64,
}

impl Estimates<'_> {
    /// The rows of a relation before its conditions.
    pub fn stored(&self, relation: usize) -> f64 {
        match &self.sources[relation] {
            SourcePlan::Table(layout, ..) => {
                (self.rows)(&layout.definition).map_or(UNKNOWN_ROWS, |rows| (rows as f64).max(1.0))
            }
            SourcePlan::Virtual(_) => UNKNOWN_ROWS,
            // The rows of the last round of a recursion.
            SourcePlan::Working(_) => WORKING_ROWS,
            SourcePlan::Query(block) => block.rows.max(1.0),
        }
    }

    /// The number of different values of an expression; `None` if it is no column.
    pub(super) fn distinct(&self, value: &Expression) -> Option<f64> {
        let SlotOwner::Column(id, column) = self.block.space.owner(value.as_column()?)? else { return None };
        let Some(relation) = self.block.relations.iter().position(|relation| relation.id == id) else {
            let (block, sources) = self.outer?;
            return Estimates { block, sources, outer: None, ..*self }.distinct(value);
        };
        let rows = self.stored(relation);
        let uniqueness = self.uniqueness(relation, column);
        if uniqueness == Uniqueness::Unique {
            return Some(rows);
        }
        if let Some(sampled) = self.sampled(value) {
            return Some(sampled.distinct(rows).max(1.0));
        }
        if let Uniqueness::Leads(columns) = uniqueness {
            return Some(leading_values(rows, 1, columns));
        }
        let slot = value.as_column()?;
        let equals = self.equals.iter().find(|equals| equals.slots.contains(&slot));
        let bound = equals.map_or(f64::INFINITY, |equals| equals.distinct_max);
        Some(rows.sqrt().max(10.0).min(rows).min(bound).max(1.0))
    }

    fn uniqueness(&self, relation: usize, column: ColumnNumber) -> Uniqueness {
        match &self.sources[relation] {
            SourcePlan::Table(layout, ..) => uniqueness(&layout.definition, column),
            _ => Uniqueness::None,
        }
    }

    /// The classes of columns that these conditions make equal.
    pub fn equal_columns(&self, conditions: &[Expression]) -> Vec<EqualColumns> {
        let mut classes: Vec<EqualColumns> = Vec::new();
        for condition in conditions {
            let Node::Compare(CompareOperator::Equal, _, operands) = &condition.node else { continue };
            let (Some(left), Some(right)) = (operands[0].as_column(), operands[1].as_column()) else { continue };
            let mut joined = EqualColumns { slots: vec![left, right], distinct_max: f64::INFINITY };
            for class in std::mem::take(&mut classes) {
                match class.slots.contains(&left) || class.slots.contains(&right) {
                    true => joined.slots.extend(class.slots),
                    false => classes.push(class),
                }
            }
            classes.push(joined);
        }
        for class in &mut classes {
            let unique = class.slots.iter().filter_map(|slot| {
                let SlotOwner::Column(id, column) = self.block.space.owner(*slot)? else { return None };
                let relation = self.block.relations.iter().position(|relation| relation.id == id)?;
                (self.uniqueness(relation, column) == Uniqueness::Unique).then(|| self.stored(relation))
            });
            class.distinct_max = unique.fold(f64::INFINITY, f64::min);
        }
        classes
    }

    /// The share of rows, or of combinations of rows, for which a condition is true.
    pub fn selectivity(&self, condition: &Expression) -> f64 {
        if let Some(share) = self.sampled_share(condition) {
            return share;
        }
        match &condition.node {
            Node::And(operands) => operands.iter().map(|operand| self.selectivity(operand)).product(),
            Node::Or(operands) => {
                let none: f64 = operands.iter().map(|operand| 1.0 - self.selectivity(operand)).product();
                1.0 - none
            }
            Node::Not(operand) => 1.0 - self.selectivity(operand),
            Node::Compare(CompareOperator::Equal | CompareOperator::NullSafeEqual, _, operands) => {
                self.equality(&operands[0], &operands[1])
            }
            Node::Compare(CompareOperator::NotEqual, ..) => 1.0 - EQUALITY,
            Node::Compare(..) => RANGE,
            Node::Between { negated, .. } => negate(*negated, BETWEEN),
            Node::InList { negated, operand, list, .. } => {
                let one = self.distinct(operand).map_or(EQUALITY, |distinct| EQUALITY.max(1.0 / distinct));
                negate(*negated, (one * list.len() as f64).min(OTHER))
            }
            Node::InParameters { negated, .. } => negate(*negated, EQUALITY * 2.0),
            Node::Like { negated, .. } => negate(*negated, PATTERN),
            Node::Is { negated, .. } => negate(*negated, EQUALITY),
            _ => OTHER,
        }
    }

    /// The share of rows, or of combinations of rows, for which all conditions are true. Columns of an index
    /// whose values were counted together are not taken for independent.
    pub fn joint(&self, conditions: &[&Expression]) -> f64 {
        let product: f64 = conditions.iter().map(|condition| self.selectivity(condition)).product();
        let product = product * self.range_dependence(conditions);
        let mut equal: BTreeMap<usize, Vec<(ColumnNumber, f64)>> = BTreeMap::new();
        for condition in conditions {
            let Node::Compare(CompareOperator::Equal, _, operands) = &condition.node else { continue };
            for value in &**operands {
                let Some(SlotOwner::Column(id, column)) =
                    value.as_column().and_then(|slot| self.block.space.owner(slot))
                else {
                    continue;
                };
                let place = self.block.relations.iter().position(|relation| relation.id == id);
                if let (Some(place), Some(distinct)) = (place, self.distinct(value)) {
                    equal.entry(place).or_default().push((column, distinct));
                }
            }
        }
        let dependence = |(place, columns): (&usize, &Vec<(ColumnNumber, f64)>)| {
            let SourcePlan::Table(layout, ..) = &self.sources[*place] else { return 1.0 };
            let is_equal = |column: &&ColumnNumber| columns.iter().any(|(known, _)| known == *column);
            let counted = layout.definition.indexes.iter().filter_map(|index| {
                let count = index.columns.iter().take_while(is_equal).count();
                let together =
                    (2..=count).rev().find_map(|count| Some((count, self.prefix_share(*place, index, count)?)));
                together.map(|(count, share)| (&index.columns[..count], share))
            });
            let longest = counted.max_by_key(|(prefix, _)| prefix.len());
            longest.map_or(1.0, |(prefix, share)| {
                let of_prefix = columns.iter().filter(|(column, _)| prefix.contains(column));
                let apart: f64 = of_prefix.map(|(_, distinct)| *distinct).product();
                (apart * share).max(1.0)
            })
        };
        // A pair of tables has the dependence of one of them, not of both.
        let dependence = equal.iter().map(dependence).fold(1.0, f64::max);
        (product * dependence).min(1.0)
    }

    /// The share of combinations of rows in which two values are equal.
    pub fn equality(&self, left: &Expression, right: &Expression) -> f64 {
        let is_column =
            |value: &Expression| relations_of(value, self.block.space).is_some_and(|relations| !relations.is_empty());
        match (self.distinct(left), self.distinct(right)) {
            (Some(left), Some(right)) => 1.0 / left.max(right),
            (Some(distinct), None) if is_column(right) => 1.0 / distinct,
            (None, Some(distinct)) if is_column(left) => 1.0 / distinct,
            // With a constant: few values of a column that is not unique are frequent ones.
            (Some(distinct), None) | (None, Some(distinct)) => {
                let is_key = [left, right].into_iter().any(|side| self.is_key(side));
                if is_key { 1.0 / distinct } else { EQUALITY.max(1.0 / distinct) }
            }
            (None, None) => EQUALITY,
        }
    }

    /// The share of a table's rows that have one combination of values of the first columns of an index.
    /// `None` if nothing is known of the columns together.
    pub fn prefix_share(&self, relation: usize, index: &IndexDefinition, count: usize) -> Option<f64> {
        let SourcePlan::Table(layout, ..) = &self.sources[relation] else { return None };
        let rows = self.stored(relation);
        let (is_unique, columns) = (is_unique(index), index.columns.len());
        if is_unique && count == columns {
            return Some(1.0 / rows);
        }
        let profile = (self.profile)(&layout.definition);
        let counted = profile.and_then(|profile| profile.distinct(&index.columns[..count], rows));
        let assumed = || is_unique.then(|| leading_values(rows, count, columns));
        counted.or_else(assumed).map(|distinct| 1.0 / distinct.max(1.0))
    }

    /// The share of a table's rows that have one value of a column.
    pub fn share(&self, relation: usize, column: ColumnNumber) -> f64 {
        let id = self.block.relations[relation].id;
        let slots = self.block.space.columns_of(id);
        let slot = slots.into_iter().find(|(_, known)| *known == column);
        let SourcePlan::Table(layout, ..) = &self.sources[relation] else { return EQUALITY };
        let definition = &layout.definition.columns[usize::from(column.0)];
        let value = slot.map(|(slot, _)| Expression::column(ColumnNumber(slot), definition, ""));
        1.0 / value.and_then(|value| self.distinct(&value)).unwrap_or(1.0 / EQUALITY).max(1.0)
    }

    /// The share of combinations of rows that have the same value of a key.
    pub fn equality_of(&self, key: &JoinKey) -> f64 {
        self.equality(&key.left, &key.right)
    }

    fn is_key(&self, value: &Expression) -> bool {
        let Some(SlotOwner::Column(id, column)) = value.as_column().and_then(|slot| self.block.space.owner(slot))
        else {
            return false;
        };
        let relation = self.block.relations.iter().position(|relation| relation.id == id);
        match relation.map(|relation| &self.sources[relation]) {
            Some(SourcePlan::Table(layout, ..)) => {
                layout.definition.indexes.iter().any(|index| index.columns.first() == Some(&column))
            }
            _ => false,
        }
    }
}

fn negate(negated: bool, share: f64) -> f64 {
    if negated { 1.0 - share } else { share }
}

/// How a column takes part in the unique keys of its table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Uniqueness {
    /// The column by itself is a unique key.
    Unique,
    /// It is the first column of a unique key of so many.
    Leads(usize),
    None,
}

fn uniqueness(definition: &TableDefinition, column: ColumnNumber) -> Uniqueness {
    let keys = definition.indexes.iter().filter(|index| is_unique(index) && index.columns.first() == Some(&column));
    match keys.map(|index| index.columns.len()).min() {
        Some(1) => Uniqueness::Unique,
        Some(columns) => Uniqueness::Leads(columns),
        None => Uniqueness::None,
    }
}

fn is_unique(index: &IndexDefinition) -> bool {
    matches!(index.kind, IndexKind::Primary { .. } | IndexKind::Unique { .. })
}

/// The assumed number of different values of the first `count` columns of a unique key of `columns`.
fn leading_values(rows: f64, count: usize, columns: usize) -> f64 {
    let values = match columns - count {
        0 => rows,
        1 => rows / ROWS_OF_LEADING_VALUES,
        _ => rows.powf(count as f64 / columns as f64),
    };
    values.max(1.0)
}
