//! Decides which of the literals that the shape scanner replaced become parameters of the plan.
//!
//! The planner sees only a parameter's class (integer, decimal, double or string) and a decimal's scale. A
//! literal therefore becomes a parameter, or is lifted, only where nothing else about it can affect the plan:
//! - numbers as operands of a comparison, IN, BETWEEN, `+ - * /` and unary minus;
//! - strings as operands of a comparison, IN, BETWEEN and LIKE;
//! - both as an entire value of VALUES, SET or ON DUPLICATE KEY UPDATE, and in LIMIT.
//!
//! Everywhere else the text of the literal is part of the statement's meaning: it names a column, refers to a
//! select item by number, determines the length or scale of a function's result, or makes a condition
//! constant. No literal is lifted in a select list, GROUP BY, HAVING or ORDER BY, nor anywhere below a
//! function, CASE, CAST or COLLATE. The members of a row constructor are lifted where the row is compared,
//! because they are compared one by one.

use super::expression::{BinaryOperator, Expression, InList, ParameterNumber, UnaryOperator};
use super::shape::{LiteralClass, Shape, Slot};
use super::statement::{InsertSource, LimitValue, Select, Statement};

/// The context of an expression, which determines the literals that may be lifted there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandContext {
    /// An operand of a comparison, or an assigned value: a literal of any class may be lifted.
    Value,
    /// An operand of arithmetic: only numbers may be lifted.
    Number,
    /// An operand of LIKE: only strings may be lifted.
    Text,
    /// A condition: a literal is a constant truth value that the planner uses.
    Condition,
}

/// The numbers of those parameters of `shape` that must stay literals in `statement`, in ascending order.
/// `statement` must have been parsed with every literal of the shape as a parameter, except those that are
/// already known to stay literals.
pub(super) fn kept_literals(statement: &Statement, shape: &Shape) -> Vec<ParameterNumber> {
    let mut walk = Walk { shape, is_lifted: vec![false; shape.slot_count()] };
    walk.statement(statement);
    let kept = walk.is_lifted.iter().enumerate().filter(|(_, is_lifted)| !**is_lifted);
    kept.map(|(ordinal, _)| ParameterNumber(ordinal as u32)).collect()
}

struct Walk<'a> {
    shape: &'a Shape,
    is_lifted: Vec<bool>,
}

impl Walk<'_> {
    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Select(select) => self.select(select),
            Statement::Insert(insert) => {
                match &insert.source {
                    InsertSource::Rows(rows) => rows.iter().for_each(|row| self.all(row, OperandContext::Value)),
                    InsertSource::UniformRows { row, .. } => self.all(row, OperandContext::Value),
                    InsertSource::Select(select) => self.select(select),
                    // Only texts that begin with INSERT or REPLACE have lifted literals.
                    InsertSource::Load(_) => {}
                }
                for assignment in &insert.on_duplicate {
                    self.expression(&assignment.value, OperandContext::Value);
                }
            }
            Statement::Update(update) => {
                for assignment in &update.assignments {
                    self.expression(&assignment.value, OperandContext::Value);
                }
                self.condition(update.filter.as_ref());
                self.limit(update.limit);
            }
            Statement::Delete(delete) => {
                self.condition(delete.filter.as_ref());
                self.limit(delete.limit);
            }
            Statement::Modify(modify) => {
                for assignment in &modify.assignments {
                    self.expression(&assignment.value, OperandContext::Value);
                }
                self.condition(modify.filter.as_ref());
                self.limit(modify.limit);
            }
            _ => {}
        }
    }

    fn select(&mut self, select: &Select) {
        self.condition(select.filter.as_ref());
        if let Some(limit) = select.limit {
            self.limit(Some(limit.count));
            self.limit(limit.offset);
        }
    }

    fn condition(&mut self, condition: Option<&Expression>) {
        if let Some(condition) = condition {
            self.expression(condition, OperandContext::Condition);
        }
    }

    fn limit(&mut self, value: Option<LimitValue>) {
        if let Some(LimitValue::Parameter(ordinal)) = value {
            self.lift(ordinal);
        }
    }

    fn all(&mut self, expressions: &[Expression], context: OperandContext) {
        for expression in expressions {
            self.expression(expression, context);
        }
    }

    fn expression(&mut self, expression: &Expression, context: OperandContext) {
        match expression {
            Expression::Parameter(ordinal) => self.literal(*ordinal, context),
            Expression::Unary { operator: UnaryOperator::Minus, operand } => {
                let context = if context == OperandContext::Condition { context } else { OperandContext::Number };
                self.expression(operand, context);
            }
            Expression::Unary { operator: UnaryOperator::Not, operand } => {
                self.expression(operand, OperandContext::Condition);
            }
            Expression::Binary { operator, left, right } => self.binary(*operator, left, right),
            Expression::And(operands) | Expression::Or(operands) => self.all(operands, OperandContext::Condition),
            Expression::Is { operand, .. } => self.expression(operand, OperandContext::Condition),
            Expression::Between { operand, low, high, .. } => {
                for operand in [operand, low, high] {
                    self.expression(operand, OperandContext::Value);
                }
            }
            Expression::InList { operand, list, .. } => self.in_list(operand, list),
            Expression::Like { operand, pattern, .. } => {
                self.expression(operand, OperandContext::Text);
                self.expression(pattern, OperandContext::Text);
            }
            _ => {}
        }
    }

    fn binary(&mut self, operator: BinaryOperator, left: &Expression, right: &Expression) {
        use BinaryOperator::{Add, Divide, Multiply, Subtract, Xor};
        let context = match operator {
            operator if operator.is_comparison() => OperandContext::Value,
            Add | Subtract | Multiply | Divide => OperandContext::Number,
            Xor => OperandContext::Condition,
            _ => return,
        };
        for operand in [left, right] {
            match operand {
                Expression::Row(members) if context == OperandContext::Value => {
                    self.all(members, OperandContext::Value)
                }
                operand => self.expression(operand, context),
            }
        }
    }

    fn in_list(&mut self, operand: &Expression, list: &InList) {
        match operand {
            Expression::Row(members) => self.all(members, OperandContext::Value),
            operand => self.expression(operand, OperandContext::Value),
        }
        match list {
            InList::Parameters(ordinal) => self.lift(*ordinal),
            InList::Expressions(members) => {
                for member in members {
                    match member {
                        Expression::Row(members) => self.all(members, OperandContext::Value),
                        member => self.expression(member, OperandContext::Value),
                    }
                }
            }
        }
    }

    fn literal(&mut self, ordinal: ParameterNumber, context: OperandContext) {
        let is_text = self.shape.literal(ordinal, 0).is_some_and(|literal| literal.class == LiteralClass::String);
        let may_lift = match context {
            OperandContext::Value => true,
            OperandContext::Number => !is_text,
            OperandContext::Text => is_text,
            OperandContext::Condition => false,
        };
        if may_lift {
            self.lift(ordinal);
        }
    }

    fn lift(&mut self, ordinal: ParameterNumber) {
        if let Some(is_lifted) = self.is_lifted.get_mut(ordinal.0 as usize) {
            *is_lifted = true;
        }
    }
}

/// Whether one plan can contain these kept literals as constants. If VALUES has several rows, none of its
/// literals can be kept, because the plan is made from the first row only.
pub(crate) fn can_keep(kept: &[ParameterNumber], shape: &Shape) -> bool {
    let is_one_row = shape.rows().is_none_or(|rows| rows.count == 1);
    is_one_row || !kept.iter().any(|ordinal| matches!(shape.slot(*ordinal), Some(Slot::RowLiteral { .. })))
}
