//! The values that keys and bounds are made of at each execution.

use junctor_expression::{Expression, Node};
use junctor_model::error::Result;
use junctor_model::value::Value;

use crate::bind::message;
use crate::parse::statement::{Limit, LimitValue};

/// A value that no row is needed for.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A parameter as it comes.
    Parameter(u16),
    /// A value of the statement.
    Constant(Value),
    /// Anything computed from these.
    Computed(Box<Expression>),
}

impl Operand {
    /// The operand that an expression is; `None` if it needs a row.
    pub fn of(expression: &Expression) -> Option<Operand> {
        match &expression.node {
            Node::Parameter(ordinal) => Some(Operand::Parameter(*ordinal)),
            Node::Constant(value) => Some(Operand::Constant(value.clone())),
            _ if needs_row(expression) => None,
            _ => Some(Operand::Computed(Box::new(expression.clone()))),
        }
    }
}

/// Whether an expression names a column.
pub fn needs_row(expression: &Expression) -> bool {
    let mut needs = false;
    expression.visit(&mut |inner| needs |= matches!(inner.node, Node::Column { .. }));
    needs
}

/// Whether an expression has one value in each execution, whatever the row.
pub fn is_fixed(expression: &Expression) -> bool {
    let mut fixed = true;
    expression.visit(&mut |inner| {
        fixed &= match &inner.node {
            Node::Column { .. } => false,
            Node::Call(function, _) => function.is_deterministic,
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

/// What one column of a key is to be equal to.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyValues {
    /// One value. NULL equals nothing.
    One(Operand),
    /// Any of several.
    List(Vec<Operand>),
    /// Any of a folded list.
    Parameters(u16),
    /// NULL itself (IS NULL).
    Null,
}

impl KeyValues {
    /// Whether there is exactly one value in every execution.
    pub fn is_single(&self) -> bool {
        matches!(self, KeyValues::One(_) | KeyValues::Null)
    }
}

/// A range of one column's values.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Interval {
    /// The lower bound and whether it belongs to the range.
    pub lower: Option<(Operand, bool)>,
    /// The upper bound and whether it belongs to the range.
    pub upper: Option<(Operand, bool)>,
}

/// A part of what a condition allows one column to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Some values.
    Values(KeyValues),
    /// A range.
    Interval(Interval),
    /// What begins as a LIKE pattern does before its first wildcard.
    Prefix {
        /// The pattern.
        pattern: Operand,
        /// The escape character.
        escape: Option<char>,
    },
}

/// A number of rows that may come with the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Known.
    Rows(u64),
    /// A parameter.
    Parameter(u16),
}

/// LIMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitTemplate {
    /// Rows to pass.
    pub offset: Quantity,
    /// Rows to give.
    pub count: Quantity,
}

impl Quantity {
    /// The quantity that a LIMIT names. Error: 1210 for a parameter beyond what there can be.
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
    /// The template of a LIMIT clause. Error: 1210.
    pub fn of(limit: Limit) -> Result<LimitTemplate> {
        let offset = limit.offset.map_or(Ok(Quantity::Rows(0)), Quantity::of)?;
        Ok(LimitTemplate { offset, count: Quantity::of(limit.count)? })
    }
}
