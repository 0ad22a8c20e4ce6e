//! CASE, IF, IFNULL and COALESCE.

use junctor_model::error::Result;

use super::unify::{as_chosen, convert_to, unify};
use crate::function::{MOMENT_DECIMAL, MOMENT_NUMBER};
use crate::program::{Expression, Node};
use crate::result_type::{Kind, ResultType};

impl Expression {
    /// CASE with a condition and a value of each branch. There must be at least one branch. Error: 1267 for
    /// an illegal mix of collations.
    pub fn case(branches: Vec<(Expression, Expression)>, otherwise: Option<Expression>) -> Result<Expression> {
        let results = branches.iter().map(|(_, result)| result).chain(&otherwise);
        let mut result = unify("case", results)?;
        result.nullable |= otherwise.is_none();
        let mut typed = Vec::with_capacity(branches.len());
        for (condition, value) in branches {
            typed.push((condition, as_chosen(value, result)));
        }
        let otherwise = otherwise.map(|otherwise| Box::new(as_chosen(otherwise, result)));
        Ok(Expression { node: Node::Case { branches: typed.into(), otherwise }, result })
    }

    /// IF(condition, then, otherwise). Error: 1267 for an illegal mix of collations.
    pub fn choose(condition: Expression, then: Expression, otherwise: Expression) -> Result<Expression> {
        Expression::case(vec![(condition, then)], Some(otherwise))
    }

    /// COALESCE and IFNULL. There must be at least one operand. Error: 1267 for an illegal mix of collations.
    pub fn coalesce(operands: Vec<Expression>) -> Result<Expression> {
        let mut result = unify("coalesce", &operands)?;
        result.nullable = operands.iter().all(|operand| operand.result.nullable);
        let operands = operands.into_iter().map(|operand| as_chosen(operand, result)).collect();
        Ok(Expression { node: Node::Coalesce(operands), result })
    }

    /// The type of a column whose values are those of all these expressions, as in UNION. Error: 1267 for an
    /// illegal mix of collations.
    pub fn common_type(operands: &[Expression]) -> Result<ResultType> {
        unify("union", operands)
    }

    /// The operand where a number is wanted. The text of DATE_ADD and its kin is the number of its day or
    /// time.
    pub fn number_of_moment(self) -> Expression {
        self.moment(MOMENT_NUMBER)
    }

    /// As [`Expression::number_of_moment`], exactly.
    pub fn decimal_of_moment(self) -> Expression {
        self.moment(MOMENT_DECIMAL)
    }

    fn moment(self, name: &'static str) -> Expression {
        let is_moment = matches!(&self.node, Node::Call(function, _) if function.gives_moment());
        if !is_moment || self.result.kind != Kind::String {
            return self;
        }
        Expression::call(name, vec![self.clone()]).unwrap_or(self)
    }

    /// The expression with values of this type.
    pub fn converted(self, result: ResultType) -> Expression {
        convert_to(self, result)
    }
}
