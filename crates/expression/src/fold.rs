//! Folding: operands that read no column have the same value in all rows of a read.

use junctor_model::scratch::Scratch;

use crate::parameter::Parameters;
use crate::program::{Expression, Node};

impl Expression {
    /// The expression with a constant in the place of each operand that computes a value without columns.
    /// `None` if it has no such operand. An operand whose evaluation fails or warns stays as it is, because
    /// not every row evaluates it.
    pub fn folded(&self, parameters: Parameters<'_>, scratch: &Scratch) -> Option<Expression> {
        if !has_foldable(self) {
            return None;
        }
        let mut folded = self.clone();
        folded.rewrite(&mut |operand| {
            if is_leaf(operand) || !is_pure(operand) {
                return None;
            }
            let mark = scratch.warning_mark();
            let warnings = scratch.warning_count();
            let value = operand.evaluate(None, parameters, scratch).ok().map(|value| value.to_value());
            if scratch.warning_count() != warnings {
                scratch.forget_warnings_after(mark);
                return None;
            }
            Some(Expression { node: Node::Constant(value?), result: operand.result })
        });
        Some(folded)
    }
}

fn is_leaf(expression: &Expression) -> bool {
    matches!(expression.node, Node::Constant(_) | Node::Parameter(_))
}

/// Whether an operand computes a value without columns.
fn has_foldable(expression: &Expression) -> bool {
    if is_leaf(expression) {
        return false;
    }
    if is_pure(expression) {
        return true;
    }
    let mut found = false;
    expression.for_each_operand(&mut |operand| found |= has_foldable(operand));
    found
}

/// Whether the value depends on parameters alone. Lists are left out, because their constants would be long.
fn is_pure(expression: &Expression) -> bool {
    let mut is_pure = match &expression.node {
        Node::Call(function, _) => function.is_immutable(),
        Node::Column { .. } | Node::MissingDefault { .. } | Node::InParameters { .. } | Node::InList { .. } => false,
        _ => true,
    };
    expression.for_each_operand(&mut |operand| is_pure = is_pure && self::is_pure(operand));
    is_pure
}

#[cfg(test)]
mod tests {
    use junctor_model::collation::CollationId;
    use junctor_model::id::ColumnNumber;
    use junctor_model::value::Value;

    use super::*;
    use crate::program::{ArithmeticOperator, CompareOperator};
    use crate::result_type::ResultType;

    fn number(value: i64) -> Expression {
        Expression::constant(Value::Int(value), CollationId::BINARY)
    }

    fn column() -> Expression {
        Expression::column_of_type(ColumnNumber(0), ResultType::integer(false, 11), "c")
    }

    #[test]
    fn operands_without_columns_become_constants() {
        let sum = Expression::arithmetic(ArithmeticOperator::Add, number(2), number(3));
        let condition = Expression::comparison(CompareOperator::Less, column(), sum).unwrap();
        let folded = condition.folded(Parameters::NONE, &Scratch::new()).unwrap();
        assert_eq!(folded.describe(Parameters::NONE), "(c < 5)");
        assert_eq!(folded.folded(Parameters::NONE, &Scratch::new()), None);
    }

    #[test]
    fn what_fails_or_warns_is_left_to_the_rows() {
        let scratch = Scratch::new();
        let fails = Expression::arithmetic(ArithmeticOperator::Add, number(i64::MAX), number(1));
        let warns = Expression::arithmetic(ArithmeticOperator::Divide, number(1), number(0));
        for operand in [fails, warns] {
            let condition = Expression::comparison(CompareOperator::Less, column(), operand).unwrap();
            assert_eq!(condition.folded(Parameters::NONE, &scratch), Some(condition));
            assert_eq!(scratch.warning_count(), 0);
        }
    }
}
