//! What conditions of joins read, and which of them are keys.

use junctor_expression::{CompareDomain, CompareOperator, Expression, IsTest, Kind, Node};
use junctor_model::collation::CollationId;

use super::join::RelationSet;
use super::{JoinKey, NullMatch};
use crate::bind::block::{SlotOwner, SlotSpace};

/// The relations whose columns an expression reads; `None` if it reads a computed value or the state of the
/// session, so that it is evaluated above the joins.
pub(super) fn relations_of(expression: &Expression, space: &SlotSpace) -> Option<RelationSet> {
    let mut relations = RelationSet::new();
    let mut is_computed = false;
    expression.visit(&mut |inner| {
        is_computed |= matches!(&inner.node, Node::Call(function, _) if function.is_stateful());
        if let Some(slot) = inner.as_column() {
            match space.owner(slot) {
                Some(SlotOwner::Column(relation, _) | SlotOwner::Instant(relation, _)) => {
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
pub(super) fn join_key(
    condition: &Expression,
    space: &SlotSpace,
    sides: (&RelationSet, &RelationSet),
) -> Option<JoinKey> {
    let Node::Compare(_, _, operands) = &condition.node else { return None };
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
    key_of_equality(condition, left.clone(), right.clone())
}

/// The key of two values that an equality compares, if equal values have equal keys.
pub(super) fn key_of_equality(condition: &Expression, left: Expression, right: Expression) -> Option<JoinKey> {
    let Node::Compare(operator, domain, _) = &condition.node else { return None };
    let nulls = match operator {
        CompareOperator::Equal => NullMatch::Nothing,
        CompareOperator::NullSafeEqual => NullMatch::Null,
        _ => return None,
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
    Some(JoinKey { left, right, collation, nulls })
}

/// A key of the equality of NOT IN.
pub(super) fn null_aware(key: JoinKey) -> JoinKey {
    let is_nullable = key.left.result.nullable || key.right.result.nullable;
    JoinKey { nulls: if is_nullable { NullMatch::Anything } else { key.nulls }, ..key }
}

/// Whether a condition is not true for rows in which all columns of these relations are NULL.
pub(super) fn rejects_null(condition: &Expression, space: &SlotSpace, relations: &RelationSet) -> bool {
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
