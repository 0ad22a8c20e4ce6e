//! The parts of a plan from which each execution computes its keys, bounds and limits.

use junctor_expression::{Expression, Node};
use junctor_model::error::Result;
use junctor_model::value::Value;

use crate::bind::message;
use crate::parse::statement::{Limit, LimitValue};

/// A value that does not depend on a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A parameter of the statement.
    Parameter(u16),
    /// A constant of the statement.
    Constant(Value),
    /// An expression of parameters and constants, evaluated at each execution.
    Computed(Box<Expression>),
}

impl Operand {
    /// The operand for an expression; `None` if it reads a column.
    pub fn of(expression: &Expression) -> Option<Operand> {
        match &expression.node {
            Node::Parameter(ordinal) => Some(Operand::Parameter(*ordinal)),
            Node::Constant(value) => Some(Operand::Constant(value.clone())),
            _ if needs_row(expression) => None,
            _ => Some(Operand::Computed(Box::new(expression.clone()))),
        }
    }
}

/// Whether an expression reads a column.
pub fn needs_row(expression: &Expression) -> bool {
    let mut needs = false;
    expression.visit(&mut |inner| needs |= matches!(inner.node, Node::Column { .. }));
    needs
}

/// Whether an expression has the same value for all rows of one execution.
pub fn is_fixed(expression: &Expression) -> bool {
    let mut fixed = true;
    expression.visit(&mut |inner| {
        fixed &= match &inner.node {
            Node::Column { .. } => false,
            Node::Call(function, _) => function.is_immutable(),
            _ => true,
        };
    });
    fixed
}

/// Whether an expression reads a parameter.
pub fn reads_parameter(expression: &Expression) -> bool {
    let mut reads = false;
    expression.visit(&mut |inner| reads |= matches!(inner.node, Node::Parameter(_) | Node::InParameters { .. }));
    reads
}

/// The values that one column of a key can have.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyValues {
    /// One value. If it is NULL, no key matches, because NULL equals nothing.
    One(Operand),
    /// Any of these values.
    List(Vec<Operand>),
    /// Any value of the list that is this parameter.
    Parameters(u16),
    /// The values of the list that is this parameter, one for each key: the other parts of the key have the
    /// value at the same place of their lists.
    Parallel(u16),
    /// NULL itself (IS NULL).
    Null,
}

impl KeyValues {
    /// Whether every execution has exactly one value here.
    pub fn is_single(&self) -> bool {
        matches!(self, KeyValues::One(_) | KeyValues::Null)
    }

    /// The number of lists that the parts of a key combine. Parallel lists are one.
    pub fn lists(parts: &[KeyValues]) -> usize {
        let independent = |part: &&KeyValues| matches!(part, KeyValues::List(_) | KeyValues::Parameters(_));
        let has_parallel = parts.iter().any(|part| matches!(part, KeyValues::Parallel(_)));
        parts.iter().filter(independent).count() + usize::from(has_parallel)
    }
}

/// A range of values of one column; a missing bound leaves that end open.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Interval {
    /// The lower bound, and whether it is inclusive.
    pub lower: Option<(Operand, bool)>,
    /// The upper bound, and whether it is inclusive.
    pub upper: Option<(Operand, bool)>,
}

/// A set of values that a condition allows for a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSet {
    /// Single values.
    Values(KeyValues),
    /// A range of values.
    Interval(Interval),
    /// The strings that begin with the part of a LIKE pattern before its first wildcard.
    Prefix {
        /// The whole pattern.
        pattern: Operand,
        /// The escape character; `None` if there is none.
        escape: Option<char>,
    },
}

/// A number of rows, which may be known only at execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A number in the statement.
    Rows(u64),
    /// A parameter.
    Parameter(u16),
}

/// LIMIT and OFFSET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitTemplate {
    /// Rows to skip.
    pub offset: Quantity,
    /// Maximum number of rows to return.
    pub count: Quantity,
}

impl Quantity {
    /// The quantity for a value of LIMIT. Error: 1210 for a parameter's ordinal beyond 65,535.
    pub fn of(value: LimitValue) -> Result<Quantity> {
        match value {
            LimitValue::Rows(rows) => Ok(Quantity::Rows(rows)),
            LimitValue::Parameter(ordinal) => match u16::try_from(ordinal.0) {
                Ok(ordinal) => Ok(Quantity::Parameter(ordinal)),
                Err(_) => Err(message::wrong_arguments("LIMIT")),
            },
        }
    }
}

impl LimitTemplate {
    /// The template for a LIMIT clause. Error: 1210, as for [`Quantity::of`].
    pub fn of(limit: Limit) -> Result<LimitTemplate> {
        let offset = limit.offset.map_or(Ok(Quantity::Rows(0)), Quantity::of)?;
        Ok(LimitTemplate { offset, count: Quantity::of(limit.count)? })
    }
}
