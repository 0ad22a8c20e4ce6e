//! Hot path: at most 15 instructions per operation.
//!
//! Sums and products of short exact numbers.

use junctor_expression::{ArithmeticOperator, Expression, Kind, Node, Parameters, Scratch};
use junctor_model::decimal::{DECIMAL_SCALE_MAX, MANTISSA_LIMIT};
use junctor_model::row::{NumberForm, NumberPlace, RowFormat, RowView};
use junctor_model::value::{Decimal, Value, ValueRef};

use super::constant_of;

/// Maximum number of operands that wait for their operation.
const STACK_MAX: usize = 8;

/// An expression in postfix form. All numbers have fixed scales, so only their mantissas are computed.
#[derive(Debug)]
pub(in crate::read) struct NumberKernel {
    steps: Vec<Step>,
    /// Digits after the point of the value.
    scale: u8,
    /// Whether the value is that of an integer column, which is no decimal.
    is_integer: bool,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Column(NumberPlace),
    Constant(i128),
    /// Multiplies the last operand, for more digits after the point.
    Scale(i128),
    Add,
    Subtract,
    Multiply,
}

/// The value of an expression for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Computed {
    /// The number times ten to the kernel's scale. It has at most 38 digits.
    Number(i128),
    Null,
    /// A number is too large for the kernel, or an operand of several is NULL: the expression must be
    /// evaluated.
    Unknown,
}

/// Where the columns and constants of an expression come from.
#[derive(Clone, Copy)]
struct Compiler<'c> {
    format: &'c RowFormat,
    parameters: Parameters<'c>,
    scratch: &'c Scratch,
}

impl NumberKernel {
    /// Compiles a column or arithmetic on decimals for rows of a format. `None` for other expressions.
    pub fn new(
        expression: &Expression,
        format: &RowFormat,
        parameters: Parameters<'_>,
        scratch: &Scratch,
    ) -> Option<NumberKernel> {
        let mut steps = Vec::new();
        let scale = Compiler { format, parameters, scratch }.append(expression, &mut steps)?;
        let (mut depth, mut deepest) = (0_usize, 0);
        for step in &steps {
            match step {
                Step::Column(_) | Step::Constant(_) => depth += 1,
                Step::Scale(_) => {}
                Step::Add | Step::Subtract | Step::Multiply => depth -= 1,
            }
            deepest = deepest.max(depth);
        }
        let is_integer = matches!(&*steps, [Step::Column(place)] if place.form() == NumberForm::Integer);
        // The value of constants alone has the form of the constant.
        let has_column = steps.iter().any(|step| matches!(step, Step::Column(_)));
        (has_column && deepest <= STACK_MAX).then_some(NumberKernel { steps, scale, is_integer })
    }

    /// Digits after the point of the value.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// The value for a row, as [`Expression::evaluate_unrounded`] returns it; `None` if the expression must
    /// be evaluated.
    #[inline]
    pub fn value(&self, row: RowView<'_>) -> Option<ValueRef<'static>> {
        match self.evaluate(row) {
            Computed::Number(mantissa) if self.is_integer => i64::try_from(mantissa).ok().map(ValueRef::Int),
            Computed::Number(mantissa) => Some(ValueRef::Decimal(Decimal::Narrow { mantissa, scale: self.scale })),
            Computed::Null => Some(ValueRef::Null),
            Computed::Unknown => None,
        }
    }

    /// The number for a row.
    #[inline]
    pub fn evaluate(&self, row: RowView<'_>) -> Computed {
        let image = row.image();
        if let [Step::Column(place)] = &*self.steps {
            return place.read(image).map_or(Computed::Null, |number| Computed::Number(number.into()));
        }
        let mut stack = [0_i128; STACK_MAX];
        let mut depth = 0;
        for step in &self.steps {
            match step {
                Step::Column(place) => {
                    // The expression may fail in an operand after NULL.
                    let Some(number) = place.read(image) else { return Computed::Unknown };
                    stack[depth] = number.into();
                    depth += 1;
                    continue;
                }
                Step::Constant(number) => {
                    stack[depth] = *number;
                    depth += 1;
                    continue;
                }
                Step::Scale(factor) => {
                    let Some(scaled) = times(stack[depth - 1], *factor) else { return Computed::Unknown };
                    stack[depth - 1] = scaled;
                    continue;
                }
                Step::Add | Step::Subtract | Step::Multiply => {}
            }
            depth -= 1;
            let (left, right) = (stack[depth - 1], stack[depth]);
            let result = match step {
                Step::Multiply => times(left, right),
                Step::Subtract => left.checked_sub(right),
                _ => left.checked_add(right),
            };
            let Some(result) = result else { return Computed::Unknown };
            stack[depth - 1] = result;
        }
        let number = stack[0];
        if number.unsigned_abs() < MANTISSA_LIMIT { Computed::Number(number) } else { Computed::Unknown }
    }
}

impl Compiler<'_> {
    /// Appends the steps of an expression. Returns the scale of its value.
    fn append(self, expression: &Expression, steps: &mut Vec<Step>) -> Option<u8> {
        if let Some(column) = expression.as_column() {
            let place = self.format.number_place(column)?;
            steps.push(Step::Column(place));
            return match place.form() {
                // The value of an unsigned column has another form.
                NumberForm::Integer if expression.result.kind != Kind::UInt => Some(0),
                NumberForm::Decimal { scale, .. } => Some(scale),
                _ => None,
            };
        }
        match &expression.node {
            Node::Arithmetic(operator, operands) if expression.result.kind == Kind::Decimal => {
                let (left, right) = (self.append(&operands[0], steps)?, steps.len());
                let others = self.append(&operands[1], steps)?;
                if *operator == ArithmeticOperator::Multiply {
                    steps.push(Step::Multiply);
                    return Some(left + others).filter(|scale| *scale <= DECIMAL_SCALE_MAX);
                }
                let operation = match operator {
                    ArithmeticOperator::Add => Step::Add,
                    ArithmeticOperator::Subtract => Step::Subtract,
                    _ => return None,
                };
                let scale = left.max(others);
                if others < scale {
                    steps.push(Step::Scale(10_i128.checked_pow((scale - others).into())?));
                }
                if left < scale {
                    steps.insert(right, Step::Scale(10_i128.checked_pow((scale - left).into())?));
                }
                steps.push(operation);
                Some(scale)
            }
            _ => {
                let (mantissa, scale) = match constant_of(expression, self.parameters, self.scratch)? {
                    Value::Int(value) => (value.into(), 0),
                    Value::UInt(value) => (value.into(), 0),
                    Value::Decimal(Decimal::Narrow { mantissa, scale }) => (mantissa, scale),
                    _ => return None,
                };
                steps.push(Step::Constant(mantissa));
                Some(scale)
            }
        }
    }
}

/// The product, if 128 bits hold it. Most factors have 64.
#[inline]
fn times(left: i128, right: i128) -> Option<i128> {
    match (i64::try_from(left), i64::try_from(right)) {
        (Ok(left), Ok(right)) => Some(i128::from(left) * i128::from(right)),
        _ => left.checked_mul(right),
    }
}
