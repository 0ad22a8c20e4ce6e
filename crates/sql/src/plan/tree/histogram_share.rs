//! The shares of rows for which conditions on sampled columns are true, from their histograms.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_expression::{CompareOperator, Expression, IsTest, Kind, Node, Scratch};
use junctor_model::id::ColumnNumber;
use junctor_model::value::{Value, ValueRef};

use super::from::SourcePlan;
use super::selectivity::Estimates;
use crate::bind::block::SlotOwner;
use crate::statistics::{ColumnStatistics, Position, TableProfile, position_of};

/// A share of fewer rows than the sample can show.
const RARE_ROWS: f64 = 0.5;
/// The share of different values among all from which on a column counts as unique.
const NEARLY_UNIQUE: f64 = 0.9;
/// The number of values that a list is assumed to have whose values are not known.
const LIST_VALUES: f64 = 3.0;

/// A column whose values were sampled.
pub(super) struct SampledColumn {
    profile: Arc<TableProfile>,
    column: ColumnNumber,
}

impl SampledColumn {
    fn statistics(&self) -> Option<&ColumnStatistics> {
        self.profile.columns.get(&self.column)
    }

    /// The number of different values in a table that now has so many rows.
    pub fn distinct(&self, rows: f64) -> f64 {
        self.profile.distinct(&[self.column], rows).unwrap_or(1.0)
    }
}

impl Estimates<'_> {
    /// The column that an expression is, if its values were sampled.
    pub(super) fn sampled(&self, value: &Expression) -> Option<SampledColumn> {
        let SlotOwner::Column(id, column) = self.block.space.owner(value.as_column()?)? else { return None };
        let relation = self.block.relations.iter().position(|relation| relation.id == id)?;
        let SourcePlan::Table(layout, ..) = &self.sources[relation] else { return None };
        let profile = (self.profile)(&layout.definition)?;
        profile.columns.contains_key(&column).then_some(SampledColumn { profile, column })
    }

    /// The share of rows for which a condition on a sampled column is true; `None` for other conditions.
    pub(super) fn sampled_share(&self, condition: &Expression) -> Option<f64> {
        let share = match &condition.node {
            Node::Compare(operator, _, operands) => {
                let [left, right] = &**operands;
                match self.sampled(left) {
                    Some(column) => self.compared(*operator, (left, &column), right)?,
                    None => self.compared(operator.mirrored(), (right, &self.sampled(right)?), left)?,
                }
            }
            Node::Between { negated, operands, .. } => {
                let column = self.sampled(&operands[0])?;
                let statistics = column.statistics()?;
                let from = self.position(&operands[1], &operands[0], statistics)?;
                let to = self.position(&operands[2], &operands[0], statistics)?;
                let histogram = &statistics.histogram;
                let inside = (histogram.below(&to) + histogram.equal(&to) - histogram.below(&from)).max(0.0);
                if *negated { 1.0 - statistics.nulls - inside } else { inside }
            }
            Node::InList { negated, operand, list, .. } => {
                let column = self.sampled(operand)?;
                let of_item =
                    |(_, item): &(_, Expression)| self.compared(CompareOperator::Equal, (operand, &column), item);
                let inside = list.iter().map(of_item).sum::<Option<f64>>()?.min(1.0);
                if *negated { 1.0 - column.statistics()?.nulls - inside } else { inside }
            }
            Node::InParameters { negated, operand, .. } => {
                let column = self.sampled(operand)?;
                let statistics = column.statistics()?;
                let inside = (LIST_VALUES * (1.0 - statistics.nulls) / statistics.distinct.max(1.0)).min(1.0);
                if *negated { 1.0 - statistics.nulls - inside } else { inside }
            }
            Node::Is { test: IsTest::Null, negated, operand } => {
                let nulls = self.sampled(operand)?.statistics()?.nulls;
                if *negated { 1.0 - nulls } else { nulls }
            }
            Node::Like { negated, escape, operands, .. } => {
                let column = self.sampled(&operands[0])?;
                let statistics = column.statistics()?;
                let inside = self.like(&operands[0], &operands[1], *escape, statistics)?;
                if *negated { 1.0 - statistics.nulls - inside } else { inside }
            }
            _ => return None,
        };
        // A value that the sample lacks may still have rows.
        let rare = |sampled: &Expression| {
            let column = self.sampled(sampled)?;
            let rows = column.profile.rows as f64 * column.profile.sampling_rate;
            Some((RARE_ROWS / rows.max(1.0)).min(1.0 / column.statistics()?.distinct.max(1.0)))
        };
        let mut least: f64 = 0.0;
        condition.for_each_operand(&mut |operand| least = least.max(rare(operand).unwrap_or(0.0)));
        Some(share.clamp(least.min(1.0), 1.0))
    }

    /// The factor by which the share of both bounds of ranges exceeds the product of their shares.
    pub(super) fn range_dependence(&self, conditions: &[&Expression]) -> f64 {
        use CompareOperator::{Greater, GreaterOrEqual, Less, LessOrEqual};
        let mut bounds: BTreeMap<ColumnNumber, (&Expression, [f64; 2])> = BTreeMap::new();
        for condition in conditions {
            let Node::Compare(operator, _, operands) = &condition.node else { continue };
            let [left, right] = &**operands;
            let (column, operator) = match self.sampled(left) {
                Some(_) => (left, *operator),
                None => (right, operator.mirrored()),
            };
            let side = match operator {
                Greater | GreaterOrEqual => 0,
                Less | LessOrEqual => 1,
                _ => continue,
            };
            if let (Some(slot), Some(share)) = (column.as_column(), self.sampled_share(condition)) {
                let of_side = &mut bounds.entry(slot).or_insert((column, [1.0; 2])).1[side];
                *of_side = of_side.min(share);
            }
        }
        let factor = |(column, [low, high]): (&Expression, [f64; 2])| {
            let sampled = self.sampled(column)?;
            let known = 1.0 - sampled.statistics()?.nulls;
            if low >= known || high >= known {
                return None;
            }
            let rows = sampled.profile.rows as f64 * sampled.profile.sampling_rate;
            let inside = (low + high - known).max(RARE_ROWS / rows.max(1.0));
            Some(inside / (low * high).max(f64::MIN_POSITIVE))
        };
        bounds.into_values().filter_map(factor).product()
    }

    /// The share of rows in which a column compares in this way with a value.
    fn compared(
        &self,
        operator: CompareOperator,
        (column, sampled): (&Expression, &SampledColumn),
        value: &Expression,
    ) -> Option<f64> {
        let statistics = sampled.statistics()?;
        let known = 1.0 - statistics.nulls;
        let histogram = &statistics.histogram;
        let Some(position) = self.position(value, column, statistics) else {
            // The value is not known, or is one of another table.
            let is_fixed = !reads_columns(value);
            return match operator {
                CompareOperator::Equal if is_fixed => Some(known / statistics.distinct.max(1.0)),
                CompareOperator::NotEqual if is_fixed => Some(known * (1.0 - 1.0 / statistics.distinct.max(1.0))),
                _ => None,
            };
        };
        let is_nearly_unique = statistics.distinct > NEARLY_UNIQUE * known * sampled.profile.rows as f64;
        Some(match operator {
            CompareOperator::Equal | CompareOperator::NullSafeEqual if is_nearly_unique => {
                known / self.distinct(column).unwrap_or(statistics.distinct).max(1.0)
            }
            CompareOperator::Equal | CompareOperator::NullSafeEqual => histogram.equal(&position),
            CompareOperator::NotEqual => known - histogram.equal(&position),
            CompareOperator::Less => histogram.below(&position),
            CompareOperator::LessOrEqual => histogram.below(&position) + histogram.equal(&position),
            CompareOperator::Greater => known - histogram.below(&position) - histogram.equal(&position),
            CompareOperator::GreaterOrEqual => known - histogram.below(&position),
        })
    }

    /// The share of rows that begin as a pattern does. `None` if it begins with a wildcard.
    fn like(
        &self,
        column: &Expression,
        pattern: &Expression,
        escape: Option<char>,
        statistics: &ColumnStatistics,
    ) -> Option<f64> {
        let Value::Bytes(pattern) = self.fixed(pattern)? else { return None };
        let is_special =
            |byte: &u8| matches!(byte, b'%' | b'_') || escape.is_some_and(|escape| *byte as char == escape);
        let prefix = &pattern[..pattern.iter().position(is_special).unwrap_or(pattern.len())];
        if prefix.is_empty() {
            return None;
        }
        let mut lower = Vec::new();
        column.result.collation.append_prefix_key(prefix, &mut lower);
        let mut upper = lower.clone();
        upper.extend_from_slice(&[0xFF; 8]);
        let histogram = &statistics.histogram;
        Some((histogram.below(&Position::Text(upper.into())) - histogram.below(&Position::Text(lower.into()))).max(0.0))
    }

    /// The place of a value among those of a column, if it is known and comparable with them.
    fn position(&self, value: &Expression, column: &Expression, statistics: &ColumnStatistics) -> Option<Position> {
        let kind = column.result.kind;
        let is_temporal = matches!(kind, Kind::Date | Kind::DateTime | Kind::Time | Kind::Timestamp | Kind::Year);
        let found = self.fixed(value)?;
        let found = match kind {
            _ if matches!(found, Value::Null) => return None,
            _ if is_temporal && !matches!(found, Value::Temporal(_)) => {
                self.fixed(&value.clone().converted(column.result))?
            }
            Kind::String if !matches!(found, Value::Bytes(_)) => return None,
            Kind::String => found,
            _ => match found {
                Value::Bytes(text) => Value::Double(std::str::from_utf8(&text).ok()?.trim().parse().ok()?),
                other => other,
            },
        };
        let position = position_of(found.as_ref(), column.result.collation)?;
        statistics.histogram.has_place(&position).then_some(position)
    }

    /// The value of an expression that does not depend on rows, if it is known.
    fn fixed(&self, value: &Expression) -> Option<Value> {
        let mut is_known = true;
        value.visit(&mut |inner| {
            is_known &= match &inner.node {
                Node::Column { .. } | Node::MissingDefault { .. } | Node::InParameters { .. } => false,
                Node::Parameter(ordinal) => usize::from(*ordinal) < self.values.count(),
                Node::Call(function, _) => function.is_immutable(),
                _ => true,
            };
        });
        if !is_known {
            return None;
        }
        let scratch = Scratch::new();
        let found = value.evaluate(None, self.values, &scratch).ok()?;
        Some(match found {
            ValueRef::Choice(_) | ValueRef::Json(_) => return None,
            found => found.to_value(),
        })
    }
}

fn reads_columns(value: &Expression) -> bool {
    let mut reads = false;
    value.visit(&mut |inner| reads |= matches!(inner.node, Node::Column { .. }));
    reads
}
