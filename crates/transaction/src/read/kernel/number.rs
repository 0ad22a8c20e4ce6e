//! Hot path: at most 25 instructions per operation.
//!
//! Sums and products of short exact numbers.

use junctor_expression::{ArithmeticOperator, Expression, Kind, Node, Parameters, Scratch};
use junctor_model::decimal::{DECIMAL_SCALE_MAX, MANTISSA_LIMIT};
use junctor_model::row::{NumberForm, NumberPlace, RowFormat, RowView};
use junctor_model::value::{Decimal, Value, ValueRef};

use super::constant_of;

/// Maximum number of operands that wait for their operation.
const STACK_MAX: usize = 8;

/// An expression in postfix form.
#[derive(Debug)]
pub(in crate::read) struct NumberKernel {
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Column(NumberPlace),
    Constant(Number),
    Add,
    Subtract,
    Multiply,
}

/// `mantissa / 10^scale`, with a mantissa of at most 38 digits.
#[derive(Clone, Copy, Debug, Default)]
struct Number {
    mantissa: i128,
    scale: u8,
}

/// The value of an expression.
pub(in crate::read) enum Computed {
    Value(ValueRef<'static>),
    /// A number is too large for the kernel, or NULL: the expression must be evaluated.
    Unknown,
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
        append(expression, format, (parameters, scratch), &mut steps)?;
        let (mut depth, mut deepest) = (0_usize, 0);
        for step in &steps {
            match step {
                Step::Column(_) | Step::Constant(_) => depth += 1,
                Step::Add | Step::Subtract | Step::Multiply => depth -= 1,
            }
            deepest = deepest.max(depth);
        }
        (deepest <= STACK_MAX).then_some(NumberKernel { steps })
    }

    /// The value for a row, as [`Expression::evaluate_unrounded`] returns it.
    #[inline]
    pub fn evaluate(&self, row: RowView<'_>) -> Computed {
        let image = row.image();
        if let [Step::Column(place)] = &*self.steps {
            return Computed::Value(match (place.read(image), place.form()) {
                (None, _) => ValueRef::Null,
                (Some(number), NumberForm::Integer) => ValueRef::Int(number),
                (Some(number), _) => ValueRef::Decimal(place.decimal_of(number)),
            });
        }
        let mut stack = [Number::default(); STACK_MAX];
        let mut depth = 0;
        for step in &self.steps {
            match step {
                Step::Column(place) => {
                    // The expression may fail in an operand after NULL.
                    let Some(number) = place.read(image) else { return Computed::Unknown };
                    let scale = match place.form() {
                        NumberForm::Decimal { scale, .. } => scale,
                        _ => 0,
                    };
                    stack[depth] = Number { mantissa: number.into(), scale };
                    depth += 1;
                }
                Step::Constant(number) => {
                    stack[depth] = *number;
                    depth += 1;
                }
                operation => {
                    depth -= 1;
                    let (left, right) = (stack[depth - 1], stack[depth]);
                    let result = match operation {
                        Step::Multiply => left.times(right),
                        Step::Subtract => left.plus(Number { mantissa: -right.mantissa, ..right }),
                        _ => left.plus(right),
                    };
                    let Some(result) = result else { return Computed::Unknown };
                    stack[depth - 1] = result;
                }
            }
        }
        let Number { mantissa, scale } = stack[0];
        Computed::Value(ValueRef::Decimal(Decimal::Narrow { mantissa, scale }))
    }
}

fn append(
    expression: &Expression,
    format: &RowFormat,
    (parameters, scratch): (Parameters<'_>, &Scratch),
    steps: &mut Vec<Step>,
) -> Option<()> {
    if let Some(column) = expression.as_column() {
        let place = format.number_place(column)?;
        let is_unsigned = expression.result.kind == Kind::UInt;
        return match place.form() {
            // The value of an unsigned column has another form.
            NumberForm::Integer if !is_unsigned => Some(steps.push(Step::Column(place))),
            NumberForm::Decimal { .. } => Some(steps.push(Step::Column(place))),
            _ => None,
        };
    }
    match &expression.node {
        Node::Arithmetic(operator, operands) if expression.result.kind == Kind::Decimal => {
            let operation = match operator {
                ArithmeticOperator::Add => Step::Add,
                ArithmeticOperator::Subtract => Step::Subtract,
                ArithmeticOperator::Multiply => Step::Multiply,
                _ => return None,
            };
            for operand in &**operands {
                append(operand, format, (parameters, scratch), steps)?;
            }
            steps.push(operation);
        }
        _ => {
            let (mantissa, scale) = match constant_of(expression, parameters, scratch)? {
                Value::Int(value) => (value.into(), 0),
                Value::UInt(value) => (value.into(), 0),
                Value::Decimal(Decimal::Narrow { mantissa, scale }) => (mantissa, scale),
                _ => return None,
            };
            steps.push(Step::Constant(Number { mantissa, scale }));
        }
    }
    Some(())
}

impl Number {
    #[inline]
    fn plus(self, other: Number) -> Option<Number> {
        let scale = self.scale.max(other.scale);
        Number { mantissa: self.at(scale)?.checked_add(other.at(scale)?)?, scale }.checked()
    }

    #[inline]
    fn times(self, other: Number) -> Option<Number> {
        let scale = self.scale + other.scale;
        let mantissa = match (i64::try_from(self.mantissa), i64::try_from(other.mantissa)) {
            (Ok(left), Ok(right)) => i128::from(left) * i128::from(right),
            _ => self.mantissa.checked_mul(other.mantissa)?,
        };
        if scale > DECIMAL_SCALE_MAX { None } else { Number { mantissa, scale }.checked() }
    }

    /// The mantissa with more digits after the point.
    #[inline]
    fn at(self, scale: u8) -> Option<i128> {
        match scale - self.scale {
            0 => Some(self.mantissa),
            more => self.mantissa.checked_mul(10_i128.checked_pow(more.into())?),
        }
    }

    /// The number, unless it has more than 38 digits.
    #[inline]
    fn checked(self) -> Option<Number> {
        (self.mantissa.unsigned_abs() < MANTISSA_LIMIT).then_some(self)
    }
}
