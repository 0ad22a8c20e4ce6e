//! Conditions on the hidden columns of prefix indexes.

use junctor_expression::{CompareDomain, CompareOperator, Expression, Node};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::key::KeyPart;
use junctor_model::schema::TableDefinition;
use junctor_model::value::Value;

use super::operand::is_fixed;

/// A filter with conditions that follow from its own ones, for the choice of an index.
pub(super) struct WithPrefixes {
    pub filter: Option<Expression>,
    /// Positions of the conjuncts that the others imply. No row needs to be tested for them.
    pub implied: std::ops::Range<usize>,
}

/// Adds to an equality of a text column the equality of its prefix, for each index of prefixes. Equal texts
/// have equal weights, so the first bytes of the weights are equal, too; in some collations the first
/// characters are. Errors: those of the constructors.
pub(super) fn with_prefixes(filter: Option<Expression>, definition: &TableDefinition) -> Result<WithPrefixes> {
    let Some(filter) = filter else { return Ok(WithPrefixes { filter, implied: 0..0 }) };
    let mut conjuncts = Vec::new();
    for (position, column) in definition.columns.iter().enumerate().filter(|(_, column)| column.hidden) {
        let Some(prefix) = column.key_prefix() else { continue };
        let Some(base) = definition.column(prefix.column) else { continue };
        let KeyPart::Text(collation) = definition.columns[usize::from(base.0)].column_type.key_part() else { continue };
        if !prefix.by_weights && !collation.has_one_weight_a_character() {
            continue;
        }
        // A text of another set has other characters, and no weights in the collation: bytes beside a text,
        // or a text beside a column of texts that became one of bytes.
        let has_weights = |value: &&Expression| {
            collation == CollationId::BINARY && !prefix.by_weights
                || value.result.collation.character_set() == collation.character_set()
        };
        let values = filter.conjuncts().iter().filter_map(|conjunct| equal_to(conjunct, base, collation));
        for value in values.filter(has_weights) {
            let hidden = Expression::column(ColumnNumber(position as u16), column, "");
            let (bytes, value) = match prefix.by_weights {
                true => {
                    let value = Expression::collate(value.clone(), collation)?;
                    (column.column_type.length(), Expression::call("WEIGHT_STRING", vec![value])?)
                }
                false => (prefix.length, value.clone()),
            };
            let bytes = Expression::constant(Value::Int(bytes.into()), CollationId::BINARY);
            let value = Expression::call("LEFT", vec![value, bytes])?;
            conjuncts.push(Expression::comparison(CompareOperator::Equal, hidden, value)?);
        }
    }
    if conjuncts.is_empty() {
        return Ok(WithPrefixes { filter: Some(filter), implied: 0..0 });
    }
    let mut all = filter.conjuncts().to_vec();
    let first = all.len();
    all.extend(conjuncts);
    Ok(WithPrefixes { implied: first..all.len(), filter: Some(Expression::and(all)) })
}

/// The value of `column = value` in the column's collation.
fn equal_to(conjunct: &Expression, column: ColumnNumber, collation: CollationId) -> Option<&Expression> {
    let Node::Compare(CompareOperator::Equal, CompareDomain::String(of), operands) = &conjunct.node else {
        return None;
    };
    let [left, right] = &**operands;
    let value = match (left.as_column() == Some(column), right.as_column() == Some(column)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    (*of == collation && value.result.is_text() && is_fixed(value)).then_some(value)
}
