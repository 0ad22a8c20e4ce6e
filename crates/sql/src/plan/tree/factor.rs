//! Disjunctions: what all alternatives have in common, and what they say about one relation.

use junctor_expression::{CompareDomain, Expression, Kind, Node};

use super::join_key::relations_of;
use crate::bind::block::SlotSpace;

/// The conjuncts of a condition. What all alternatives of a disjunction have in common becomes conjuncts of
/// its own: `a AND b OR a AND c` is `a AND (b OR c)`, also if some of them are unknown.
pub(super) fn conjuncts_of(condition: &Expression) -> Vec<Expression> {
    condition.conjuncts().iter().flat_map(factored).collect()
}

fn factored(condition: &Expression) -> Vec<Expression> {
    if condition.is_stateful() {
        return vec![condition.clone()];
    }
    let Node::Or(alternatives) = &condition.node else { return vec![condition.clone()] };
    let Some((first, others)) = alternatives.split_first() else { return vec![condition.clone()] };
    let is_common = |conjunct: &Expression| others.iter().all(|other| other.conjuncts().contains(conjunct));
    let mut common: Vec<Expression> = Vec::new();
    for conjunct in first.conjuncts().iter().filter(|conjunct| is_common(conjunct)) {
        if !common.contains(conjunct) {
            common.push(conjunct.clone());
        }
    }
    if common.is_empty() {
        return vec![condition.clone()];
    }
    let rest = |alternative: &Expression| -> Vec<Expression> {
        let own = alternative.conjuncts().iter().filter(|conjunct| !common.contains(conjunct));
        own.cloned().collect()
    };
    let rests: Vec<Vec<Expression>> = alternatives.iter().map(rest).collect();
    // An alternative without a condition of its own makes the others superfluous.
    if rests.iter().all(|rest| !rest.is_empty()) {
        common.push(Expression::or(rests.into_iter().map(Expression::and).collect()));
    }
    common
}

/// A condition on one relation that follows from a disjunction over several: for each alternative its
/// conjuncts on that relation. `None` if an alternative has none, or none whose repeated evaluation goes
/// unnoticed.
pub(super) fn implied(condition: &Expression, relation: u16, space: &SlotSpace) -> Option<Expression> {
    let Node::Or(alternatives) = &condition.node else { return None };
    let mut of_relation = Vec::with_capacity(alternatives.len());
    for alternative in alternatives {
        let is_own = |conjunct: &&Expression| {
            let used = relations_of(conjunct, space);
            used.is_some_and(|used| used.len() == 1 && used.contains(&relation)) && is_silent(conjunct)
        };
        let own: Vec<Expression> = alternative.conjuncts().iter().filter(is_own).cloned().collect();
        if own.is_empty() {
            return None;
        }
        of_relation.push(Expression::and(own));
    }
    Some(Expression::or(of_relation))
}

/// Whether an evaluation neither fails nor warns: comparisons of columns and constants of the same kind.
pub(super) fn is_silent(condition: &Expression) -> bool {
    let is_plain =
        |operand: &Expression| matches!(operand.node, Node::Column { .. } | Node::Parameter(_) | Node::Constant(_));
    is_silent_over(condition, &is_plain)
}

/// Whether an evaluation neither fails nor warns, as far as that of its plain operands does not.
pub(super) fn is_silent_over(condition: &Expression, is_plain: &dyn Fn(&Expression) -> bool) -> bool {
    let is_silent = |condition: &Expression| is_silent_over(condition, is_plain);
    let fits = |domain: &CompareDomain, operands: &[&Expression]| {
        let kinds = |allowed: &[Kind]| operands.iter().all(|operand| allowed.contains(&operand.result.kind));
        operands.iter().all(|operand| is_plain(operand))
            && match domain {
                CompareDomain::Integer => kinds(&[Kind::Int, Kind::UInt]),
                CompareDomain::Decimal => kinds(&[Kind::Int, Kind::UInt, Kind::Decimal]),
                CompareDomain::Double | CompareDomain::FixedDouble(_) => {
                    kinds(&[Kind::Int, Kind::UInt, Kind::Decimal, Kind::Double])
                }
                CompareDomain::String(_) => kinds(&[Kind::String]),
                CompareDomain::DateTime => kinds(&[Kind::Date, Kind::DateTime]),
                _ => false,
            }
    };
    match &condition.node {
        Node::And(operands) | Node::Or(operands) => operands.iter().all(is_silent),
        Node::Not(operand) => is_silent(operand),
        Node::Compare(_, domain, operands) => fits(domain, &[&operands[0], &operands[1]]),
        Node::Between { domains, operands, .. } => {
            fits(&domains[0], &[&operands[0], &operands[1]]) && fits(&domains[1], &[&operands[0], &operands[2]])
        }
        Node::InList { operand, list, .. } => list.iter().all(|(domain, item)| fits(domain, &[operand, item])),
        Node::InParameters { domain, operand, .. } => fits(domain, &[operand]),
        Node::Like { collation, operands, .. } => {
            fits(&CompareDomain::String(*collation), &[&operands[0], &operands[1]])
        }
        Node::Is { operand, .. } => is_plain(operand),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use junctor_expression::{CompareOperator, ResultType};
    use junctor_model::collation::CollationId;
    use junctor_model::id::ColumnNumber;
    use junctor_model::value::Value;

    use super::*;

    /// The condition that a column is equal to a number.
    fn equals(column: u16, number: i64) -> Expression {
        let column = Expression::column_of_type(ColumnNumber(column), ResultType::integer(false, 11), "");
        let number = Expression::constant(Value::Int(number), CollationId::BINARY);
        Expression::comparison(CompareOperator::Equal, column, number).expect("integers are comparable")
    }

    /// A disjunction of conjunctions of numbered conditions.
    fn or(alternatives: &[&[i64]]) -> Expression {
        let conjunction = |numbers: &&[i64]| Expression::and(numbers.iter().copied().map(condition).collect());
        Expression::or(alternatives.iter().map(conjunction).collect())
    }

    fn condition(number: i64) -> Expression {
        equals(number as u16, number)
    }

    #[test]
    fn common_conjuncts_leave_a_disjunction() {
        let found = conjuncts_of(&or(&[&[1, 2], &[3, 1]]));
        assert_eq!(found, [condition(1), or(&[&[2], &[3]])]);
        assert_eq!(conjuncts_of(&or(&[&[1], &[2]])), [or(&[&[1], &[2]])]);
        assert_eq!(conjuncts_of(&or(&[&[1, 2], &[1]])), [condition(1)]);
    }
}
