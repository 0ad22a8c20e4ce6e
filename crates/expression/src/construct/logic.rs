//! AND, OR, XOR, NOT and IS, in three-valued logic.

use crate::program::{Expression, IsTest, Node};
use crate::result_type::ResultType;

impl Expression {
    /// The conjunction of the operands; nested conjunctions are flattened. A single operand is returned
    /// unchanged. Without operands the result is true.
    pub fn and(operands: Vec<Expression>) -> Expression {
        let flat = flatten(operands, |node| match node {
            Node::And(inner) => Ok(inner),
            other => Err(other),
        });
        junction(flat, Node::And)
    }

    /// The disjunction of the operands; nested disjunctions are flattened. A single operand is returned
    /// unchanged. Without operands the result is false.
    pub fn or(operands: Vec<Expression>) -> Expression {
        let flat = flatten(operands, |node| match node {
            Node::Or(inner) => Ok(inner),
            other => Err(other),
        });
        junction(flat, Node::Or)
    }

    /// True if exactly one of the two is true.
    pub fn xor(left: Expression, right: Expression) -> Expression {
        let nullable = left.result.nullable || right.result.nullable;
        let node = Node::Xor(Box::new([left, right]));
        Expression { node, result: ResultType::boolean().with_nullable(nullable) }
    }

    /// Logical NOT.
    pub fn logical_not(operand: Expression) -> Expression {
        let nullable = operand.result.nullable;
        Expression { node: Node::Not(Box::new(operand)), result: ResultType::boolean().with_nullable(nullable) }
    }

    /// IS [NOT] NULL, TRUE or FALSE.
    pub fn is(test: IsTest, negated: bool, operand: Expression) -> Expression {
        Expression { node: Node::Is { test, negated, operand: Box::new(operand) }, result: ResultType::boolean() }
    }

    /// The operands of a conjunction. Any other expression counts as its own single operand.
    pub fn conjuncts(&self) -> &[Expression] {
        match &self.node {
            Node::And(operands) => operands,
            _ => std::slice::from_ref(self),
        }
    }
}

fn flatten(operands: Vec<Expression>, inner: fn(Node) -> Result<Box<[Expression]>, Node>) -> Vec<Expression> {
    let mut flat = Vec::with_capacity(operands.len());
    for operand in operands {
        let result = operand.result;
        match inner(operand.node) {
            Ok(operands) => flat.extend(operands),
            Err(node) => flat.push(Expression { node, result }),
        }
    }
    flat
}

fn junction(mut operands: Vec<Expression>, node: fn(Box<[Expression]>) -> Node) -> Expression {
    if operands.len() == 1
        && let Some(only) = operands.pop()
    {
        return only;
    }
    let nullable = operands.iter().any(|operand| operand.result.nullable);
    Expression { node: node(operands.into()), result: ResultType::boolean().with_nullable(nullable) }
}
