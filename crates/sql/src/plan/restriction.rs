//! Derives from a condition the values and ranges that single columns can have, in a form that an index can
//! serve.

use junctor_expression::{CompareDomain, CompareOperator, Expression, IsTest, Kind, Node};
use junctor_model::collation::CollationId;
use junctor_model::id::ColumnNumber;
use junctor_model::key::KeyPart;
use junctor_model::row_encoding::DECIMALS_NOT_FIXED;
use junctor_model::schema::TableDefinition;
use junctor_model::temporal::TemporalKind;
use junctor_model::time_to_live::last_expired;
use junctor_model::types::{Form, Packed};
use junctor_model::value::Value;

use super::multi_valued::HAS_ELEMENT;
use super::operand::{Interval, KeyValues, Operand, ValueSet};
use super::time_to_live::ROW_EXPIRED;

const TIMESTAMP: Form = Form::Temporal(TemporalKind::Timestamp);

/// A restriction of one column by one conjunct.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Restriction {
    pub column: ColumnNumber,
    /// The column's value is in at least one of these sets.
    pub value_sets: Vec<ValueSet>,
    /// Whether the value sets are equivalent to the conjunct. Rows found by them need no further test then.
    pub exact: bool,
    /// Position of the conjunct in the condition.
    pub conjunct: usize,
}

/// The restrictions that the conjuncts put on single columns. A conjunct that no index can serve yields none.
pub(super) fn restrictions_of(definition: &TableDefinition, conjuncts: &[Expression]) -> Vec<Restriction> {
    let restriction = |(conjunct, expression)| {
        let (column, value_sets, exact) = restriction_of(definition, expression)?;
        Some(Restriction { column, value_sets, exact, conjunct })
    };
    conjuncts.iter().enumerate().filter_map(restriction).collect()
}

/// The alternatives of a disjunction in which every branch binds columns to values: for each branch the
/// columns, their values, and whether these are equivalent to the branch's conjunct.
pub(super) fn alternatives_of(
    definition: &TableDefinition,
    expression: &Expression,
) -> Option<Vec<Vec<(ColumnNumber, KeyValues, bool)>>> {
    let Node::Or(branches) = &expression.node else { return None };
    let bindings = |branch: &Expression| {
        let mut bindings = Vec::new();
        for conjunct in branch.conjuncts() {
            let (column, mut value_sets, exact) = restriction_of(definition, conjunct)?;
            match (value_sets.len(), value_sets.pop()) {
                (1, Some(ValueSet::Values(values))) => bindings.push((column, values, exact)),
                _ => return None,
            }
        }
        Some(bindings)
    };
    branches.iter().map(bindings).collect()
}

fn restriction_of(
    definition: &TableDefinition,
    expression: &Expression,
) -> Option<(ColumnNumber, Vec<ValueSet>, bool)> {
    match &expression.node {
        Node::Compare(operator, domain, operands) => {
            let [left, right] = &**operands;
            comparison(definition, *operator, *domain, left, right)
                .or_else(|| comparison(definition, operator.mirrored(), *domain, right, left))
        }
        Node::Between { negated: false, domains, operands } => {
            let [value, low, high] = &**operands;
            let (column, low_exact) = indexable(definition, value, domains[0], low)?;
            let (_, high_exact) = indexable(definition, value, domains[1], high)?;
            let (low, high) = (Operand::of(low)?, Operand::of(high)?);
            let interval = Interval { lower: Some((low, true)), upper: Some((high, true)) };
            let exact = low_exact && high_exact && !is_string(definition, column);
            Some((column, vec![ValueSet::Interval(interval)], exact))
        }
        Node::InList { negated: false, operand, list } => {
            let mut values = Vec::with_capacity(list.len());
            let mut exact = true;
            let mut found = None;
            for (domain, item) in list {
                let (column, item_exact) = indexable(definition, operand, *domain, item)?;
                found = Some(column);
                exact &= item_exact;
                values.push(Operand::of(item)?);
            }
            let values = match values.len() {
                1 => KeyValues::One(values.pop()?),
                _ => KeyValues::List(values),
            };
            Some((found?, vec![ValueSet::Values(values)], exact))
        }
        Node::InParameters { negated: false, domain, operand, parameter } => {
            let column = column_of(operand)?;
            let kind = list_kind(operand.result.kind, *domain);
            let exact = fits(definition, column, *domain, kind)?;
            Some((column, vec![ValueSet::Values(KeyValues::Parameters(*parameter))], exact))
        }
        Node::Like { negated: false, collation, escape, operands } => {
            let [text, pattern] = &**operands;
            let column = column_of(text)?;
            // In every collation, strings with a common prefix have keys with a common prefix.
            let of_column = indexed_collation(definition, column)?;
            if of_column != *collation || pattern.result.kind != Kind::String {
                return None;
            }
            Some((column, vec![ValueSet::Prefix { pattern: Operand::of(pattern)?, escape: *escape }], false))
        }
        Node::Is { test: IsTest::Null, negated: false, operand } => {
            Some((column_of(operand)?, vec![ValueSet::Values(KeyValues::Null)], true))
        }
        Node::Call(function, arguments) if function.name == HAS_ELEMENT => {
            let [list, element] = &**arguments else { return None };
            let column = column_of(list)?;
            definition.columns.get(usize::from(column.0))?.key_list()?;
            Some((column, vec![ValueSet::Values(KeyValues::One(Operand::of(element)?))], false))
        }
        // The purge finds its rows by an index of the column, if there is one.
        Node::Call(function, arguments) if function.name == ROW_EXPIRED => {
            let [value, now, seconds] = &**arguments else { return None };
            let column = column_of(value)?;
            let (Value::Temporal(now), Value::Int(seconds)) = (now.as_constant()?, seconds.as_constant()?) else {
                return None;
            };
            let is_instant = definition.columns[usize::from(column.0)].column_type.form() == TIMESTAMP;
            let last = Operand::Constant(Value::Temporal(last_expired(*now, *seconds, is_instant)));
            Some((column, vec![ValueSet::Interval(Interval { lower: None, upper: Some((last, true)) })], false))
        }
        Node::Or(branches) => {
            let mut all = Vec::new();
            let mut exact = true;
            let mut found = None;
            for branch in branches {
                let (column, value_sets, branch_exact) = restriction_of(definition, branch)?;
                if found.is_some_and(|found| found != column) {
                    return None;
                }
                found = Some(column);
                exact &= branch_exact;
                all.extend(value_sets);
            }
            Some((found?, all, exact))
        }
        _ => None,
    }
}

fn comparison(
    definition: &TableDefinition,
    operator: CompareOperator,
    domain: CompareDomain,
    value: &Expression,
    bound: &Expression,
) -> Option<(ColumnNumber, Vec<ValueSet>, bool)> {
    let (column, exact) = indexable(definition, value, domain, bound)?;
    let bound = Operand::of(bound)?;
    let interval = |lower: Option<bool>, upper: Option<bool>| {
        let lower = lower.map(|inclusive| (bound.clone(), inclusive || !exact));
        let upper = upper.map(|inclusive| (bound.clone(), inclusive || !exact));
        ValueSet::Interval(Interval { lower, upper })
    };
    let set = match operator {
        CompareOperator::Equal => ValueSet::Values(KeyValues::One(bound)),
        CompareOperator::Less => interval(None, Some(false)),
        CompareOperator::LessOrEqual => interval(None, Some(true)),
        CompareOperator::Greater => interval(Some(false), None),
        CompareOperator::GreaterOrEqual => interval(Some(true), None),
        CompareOperator::NullSafeEqual | CompareOperator::NotEqual => return None,
    };
    // An index orders long strings by their first bytes only, so the rows of a range are tested again.
    let exact = exact && (operator == CompareOperator::Equal || !is_string(definition, column));
    Some((column, vec![set], exact))
}

fn is_string(definition: &TableDefinition, column: ColumnNumber) -> bool {
    definition.columns[usize::from(column.0)].column_type.collation().is_some()
}

/// The collation of the column's keys. ENUM and SET have a collation, but their keys are numbers.
fn indexed_collation(definition: &TableDefinition, column: ColumnNumber) -> Option<CollationId> {
    let column_type = &definition.columns.get(usize::from(column.0))?.column_type;
    match column_type.key_part() {
        KeyPart::Text(collation) if !column_type.is_text_or_blob() => Some(collation),
        _ => None,
    }
}

fn column_of(expression: &Expression) -> Option<ColumnNumber> {
    match expression.node {
        Node::Column { index, .. } => Some(index),
        _ => None,
    }
}

/// The restricted column, and whether its keys are equivalent to the comparison; `None` if keys cannot serve
/// it.
fn indexable(
    definition: &TableDefinition,
    value: &Expression,
    domain: CompareDomain,
    bound: &Expression,
) -> Option<(ColumnNumber, bool)> {
    let column = column_of(value)?;
    fits(definition, column, domain, bound.result.kind).map(|exact| (column, exact))
}

/// Whether index keys are equivalent to a comparison in this domain; `None` if they cannot serve it.
fn fits(definition: &TableDefinition, column: ColumnNumber, domain: CompareDomain, kind: Kind) -> Option<bool> {
    let column_type = &definition.columns.get(usize::from(column.0))?.column_type;
    if column_type.is_text_or_blob() {
        return None;
    }
    match (column_type.key_part(), domain) {
        (KeyPart::Integer { .. }, CompareDomain::Integer | CompareDomain::Decimal) => Some(!kind.is_text()),
        // A string or double that is compared with an integer is converted first. The test of the row gives
        // the warnings of that conversion.
        (KeyPart::Integer { .. }, CompareDomain::Number | CompareDomain::Double) => Some(false),
        (KeyPart::Double, CompareDomain::Double) => Some(!kind.is_text() && !column_type.is_fixed_float()),
        // A number of the statement has the key of the value that a column with fixed digits has for it.
        (KeyPart::Double, CompareDomain::FixedDouble(_)) if column_type.wire().decimals < DECIMALS_NOT_FIXED => {
            matches!(kind, Kind::Int | Kind::UInt | Kind::Decimal).then_some(false)
        }
        (KeyPart::Encoded(form), domain) => fits_encoded(form, domain, kind),
        (KeyPart::Text(collation), CompareDomain::String(of)) => (collation == of).then_some(true),
        _ => None,
    }
}

/// [`fits`] for temporal types and decimals. Texts are converted for each comparison, with their warnings.
fn fits_encoded(form: Packed, domain: CompareDomain, kind: Kind) -> Option<bool> {
    match (form, domain) {
        // A TIME is compared on the day of the statement, which a key does not know.
        (Packed::Date | Packed::DateTime(_), CompareDomain::DateTime) if kind == Kind::Time => None,
        (Packed::Date | Packed::DateTime(_), CompareDomain::DateTime) => Some(kind.has_day()),
        (Packed::Time(_), CompareDomain::Time) => Some(kind == Kind::Time),
        // The bounds of years read an integer as this domain does.
        (Packed::Year, CompareDomain::Number) => matches!(kind, Kind::Int | Kind::UInt).then_some(false),
        (Packed::Year, CompareDomain::Integer) => Some(kind == Kind::Year),
        (Packed::Decimal { .. } | Packed::WideDecimal { .. }, CompareDomain::Integer | CompareDomain::Decimal) => {
            Some(matches!(kind, Kind::Int | Kind::UInt | Kind::Decimal))
        }
        _ => None,
    }
}

/// The kind of a list's values, as far as the domain determines it. Comparison with a DOUBLE converts strings
/// to doubles, so a list of that domain may contain strings that warn when they are compared.
fn list_kind(operand: Kind, domain: CompareDomain) -> Kind {
    match domain {
        CompareDomain::Integer => Kind::Int,
        // Single keys of years find what the comparison finds also for texts.
        CompareDomain::Number if operand == Kind::Year => Kind::Int,
        CompareDomain::Decimal => Kind::Decimal,
        CompareDomain::Double
        | CompareDomain::FixedDouble(_)
        | CompareDomain::Number
        | CompareDomain::String(_)
        | CompareDomain::DateTime
        | CompareDomain::Json
        | CompareDomain::Time => Kind::String,
    }
}
