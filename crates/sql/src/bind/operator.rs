//! Operators, IN with its row constructors, and casts.

use junctor_expression::result_type::DECIMAL_PRECISION_MAX;
use junctor_expression::{ArithmeticOperator, BitOperator, CastTarget, CompareOperator, Expression, Kind, ResultType};
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::decimal::DECIMAL_SCALE_MAX;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::temporal::DIGITS_MAX;
use junctor_model::value::Value;

use super::binder::compare_operator;
use super::literal::{
    among_numbers, are_plain_numbers, as_condition, as_truth, beside, literal_among_numbers, number_of_literal,
};
use super::{Binder, SubqueryForm, message};
use crate::parse::expression as ast;
use crate::parse::expression::BinaryOperator as Operator;
use crate::parse::expression_text;

/// The precision of a DECIMAL without one, in digits.
const DECIMAL_PRECISION_DEFAULT: u32 = 10;
/// Maximum number of bits of the mantissa with which FLOAT(bits) is FLOAT.
const FLOAT_BITS_MAX: u32 = 24;
/// Maximum number of bits of the mantissa in FLOAT(bits). Above [`FLOAT_BITS_MAX`] it is DOUBLE.
const DOUBLE_BITS_MAX: u32 = 53;

/// Maximum number of members in an ordered comparison of rows. Each member adds two levels to the expression.
const ROW_MEMBERS_MAX: usize = 32;

impl Binder<'_> {
    pub(super) fn unary(&mut self, operator: ast::UnaryOperator, operand: &ast::Expression) -> Result<Expression> {
        let bound = self.bind(operand)?;
        let operand = match operator {
            ast::UnaryOperator::Not => as_condition(operand, bound)?,
            ast::UnaryOperator::Minus | ast::UnaryOperator::BitNot => among_numbers(operand, bound),
        };
        Ok(match operator {
            ast::UnaryOperator::Minus => Expression::negate(operand),
            ast::UnaryOperator::BitNot if operand.result.is_bytes() => {
                return Expression::call("BYTES ~", vec![operand]);
            }
            ast::UnaryOperator::BitNot => Expression::bit_not(operand),
            ast::UnaryOperator::Not => Expression::logical_not(operand),
        })
    }

    pub(super) fn binary(
        &mut self,
        operator: Operator,
        left: &ast::Expression,
        right: &ast::Expression,
    ) -> Result<Expression> {
        if let (ast::Expression::Row(left), ast::Expression::Row(right)) = (left, right) {
            return self.compare_rows(operator, left, right);
        }
        match (left, right) {
            (ast::Expression::Row(members), ast::Expression::Subquery(query)) if operator.is_comparison() => {
                let form = SubqueryForm::Row(compare_operator(operator)?, self.bind_all(members)?, query);
                return self.subquery(form);
            }
            (ast::Expression::Subquery(query), ast::Expression::Row(members)) if operator.is_comparison() => {
                let form = SubqueryForm::Row(compare_operator(operator)?.mirrored(), self.bind_all(members)?, query);
                return self.subquery(form);
            }
            (ast::Expression::Row(members), _) if operator.is_comparison() => {
                return Err(message::operand_columns(members.len()));
            }
            _ => {}
        }
        let (mut bound_left, mut bound_right) = (self.bind(left)?, self.bind(right)?);
        if let Some(operator) = bit_operator(operator)
            && has_bytes((operator, left, right), [&bound_left, &bound_right])
        {
            return Expression::call(Expression::function_of_bytes(operator), vec![bound_left, bound_right]);
        }
        if operator == Operator::Xor {
            (bound_left, bound_right) = (as_condition(left, bound_left)?, as_condition(right, bound_right)?);
        }
        // A hexadecimal literal compares as a string unless the other operand is a number.
        if operator.is_comparison() {
            bound_left = beside(&bound_right.result, left, bound_left);
            bound_right = beside(&bound_left.result, right, bound_right);
        } else {
            bound_left = among_numbers(left, bound_left);
            bound_right = among_numbers(right, bound_right);
        }
        let (left, mut right) = (bound_left, bound_right);
        let divides = matches!(operator, Operator::Divide | Operator::IntegerDivide | Operator::Modulo);
        if divides && !self.environment.modes.warns_of_division_by_zero {
            // A NULL divisor gives NULL without a warning.
            let zero = Expression::constant(Value::Int(0), self.environment.collation);
            right = Expression::null_if(right, zero)?;
        }
        let compare = |operator, left, right| Expression::comparison(operator, left, right);
        match operator {
            Operator::Xor => Ok(Expression::xor(left, right)),
            Operator::Equal => compare(CompareOperator::Equal, left, right),
            Operator::NullSafeEqual => compare(CompareOperator::NullSafeEqual, left, right),
            Operator::NotEqual => compare(CompareOperator::NotEqual, left, right),
            Operator::Less => compare(CompareOperator::Less, left, right),
            Operator::LessOrEqual => compare(CompareOperator::LessOrEqual, left, right),
            Operator::Greater => compare(CompareOperator::Greater, left, right),
            Operator::GreaterOrEqual => compare(CompareOperator::GreaterOrEqual, left, right),
            Operator::BitOr => Ok(Expression::bits(BitOperator::Or, left, right)),
            Operator::BitAnd => Ok(Expression::bits(BitOperator::And, left, right)),
            Operator::ShiftLeft => Ok(Expression::bits(BitOperator::ShiftLeft, left, right)),
            Operator::ShiftRight => Ok(Expression::bits(BitOperator::ShiftRight, left, right)),
            Operator::BitXor => Ok(Expression::bits(BitOperator::Xor, left, right)),
            Operator::Add => Ok(Expression::arithmetic(ArithmeticOperator::Add, left, right)),
            Operator::Subtract => {
                let mut difference = Expression::arithmetic(ArithmeticOperator::Subtract, left, right);
                if self.environment.modes.no_unsigned_subtraction && difference.result.is_integer() {
                    difference.result = ResultType { kind: Kind::Int, ..difference.result };
                }
                Ok(difference)
            }
            Operator::Multiply => Ok(Expression::arithmetic(ArithmeticOperator::Multiply, left, right)),
            Operator::Divide => Ok(Expression::divide(left, right, self.environment.division_increment)),
            Operator::IntegerDivide => Ok(Expression::arithmetic(ArithmeticOperator::DivideInteger, left, right)),
            Operator::Modulo => Ok(Expression::arithmetic(ArithmeticOperator::Remainder, left, right)),
        }
    }

    /// Expands a comparison of rows. `(a, b) = (c, d)` becomes `a = c AND b = d`, and likewise for `<=>`.
    /// `<>` negates `=`. `(a, b) < (c, d)` becomes `a < c OR a = c AND b < d`.
    fn compare_rows(
        &mut self,
        operator: Operator,
        left: &[ast::Expression],
        right: &[ast::Expression],
    ) -> Result<Expression> {
        match operator {
            Operator::Equal | Operator::NullSafeEqual => self.equal_rows(operator, left, right),
            Operator::NotEqual => Ok(Expression::logical_not(self.equal_rows(Operator::Equal, left, right)?)),
            Operator::Less | Operator::LessOrEqual => self.order_rows((Operator::Less, operator), left, right),
            Operator::Greater | Operator::GreaterOrEqual => self.order_rows((Operator::Greater, operator), left, right),
            _ => Err(message::operand_columns(1)),
        }
    }

    fn equal_rows(
        &mut self,
        operator: Operator,
        left: &[ast::Expression],
        right: &[ast::Expression],
    ) -> Result<Expression> {
        if left.len() != right.len() {
            return Err(message::operand_columns(left.len()));
        }
        let mut operands = Vec::with_capacity(left.len());
        for (left, right) in left.iter().zip(right) {
            operands.push(self.binary(operator, left, right)?);
        }
        Ok(Expression::and(operands))
    }

    /// Compares rows in order: `last`, the operator as written, compares the last members, and `strict`
    /// compares the others. Works from the last member to the first, so that each member is bound only twice.
    fn order_rows(
        &mut self,
        (strict, last): (Operator, Operator),
        left: &[ast::Expression],
        right: &[ast::Expression],
    ) -> Result<Expression> {
        if left.len() != right.len() {
            return Err(message::operand_columns(left.len()));
        }
        if left.len() > ROW_MEMBERS_MAX {
            return Err(Error::not_supported("an ordering of rows of so many values"));
        }
        let mut ordered: Option<Expression> = None;
        for (left, right) in left.iter().zip(right).rev() {
            ordered = Some(match ordered {
                None => self.binary(last, left, right)?,
                Some(rest) => {
                    let equal = self.binary(Operator::Equal, left, right)?;
                    Expression::or(vec![self.binary(strict, left, right)?, Expression::and(vec![equal, rest])])
                }
            });
        }
        ordered.ok_or_else(|| message::operand_columns(1))
    }

    pub(super) fn in_list(
        &mut self,
        negated: bool,
        operand: &ast::Expression,
        list: &ast::InList,
    ) -> Result<Expression> {
        match (operand, list) {
            (ast::Expression::Row(left), ast::InList::Expressions(members)) => {
                let mut alternatives = Vec::with_capacity(members.len());
                for member in members {
                    let ast::Expression::Row(right) = member else {
                        return Err(message::operand_columns(left.len()));
                    };
                    alternatives.push(self.equal_rows(Operator::Equal, left, right)?);
                }
                let found = Expression::or(alternatives);
                Ok(if negated { Expression::logical_not(found) } else { found })
            }
            (operand, ast::InList::Expressions(members)) => {
                let mut bound = self.bind_all(members)?;
                let bound_operand = self.bind(operand)?;
                if bound_operand.result.kind == Kind::Json {
                    let members = members.iter().zip(bound);
                    bound = members.map(|(written, bound)| as_truth(written, bound).as_member()).collect();
                }
                let is_number = bound_operand.result.is_number();
                let among = bound.iter().any(|member| member.result.is_number());
                if number_of_literal(operand).is_some() && bound.iter().any(|member| member.result.is_text()) && among {
                    // The literal is a number to numbers, and bytes to texts.
                    let equals = bound.into_iter().map(|member| {
                        let left = match member.result.is_number() {
                            true => literal_among_numbers(operand, bound_operand.clone()),
                            false => bound_operand.clone(),
                        };
                        Expression::comparison(CompareOperator::Equal, left, member)
                    });
                    let found = Expression::or(equals.collect::<Result<_>>()?);
                    return Ok(if negated { Expression::logical_not(found) } else { found });
                }
                let is_plain = are_plain_numbers(bound.iter().chain([&bound_operand]));
                let as_number = if is_plain { among_numbers } else { literal_among_numbers };
                let operand = if among { as_number(operand, bound_operand) } else { bound_operand };
                if is_number {
                    bound = members.iter().zip(bound).map(|(member, bound)| as_number(member, bound)).collect();
                }
                let members = bound;
                Expression::in_list(negated, operand, members)
            }
            (operand, ast::InList::Parameters(ordinal)) => {
                let operand = self.bind(operand)?;
                let kind = self.environment.parameters.get(ordinal.0 as usize);
                let (Some(kind), Ok(ordinal)) = (kind, u16::try_from(ordinal.0)) else {
                    return Err(Error::not_supported("so many lists"));
                };
                let item = Expression::parameter(ordinal, kind.kind, kind.scale, self.environment.collation).result;
                Expression::in_parameters(negated, operand, ordinal, item)
            }
        }
    }

    pub(super) fn cast(&mut self, written: &ast::Expression, target: &ast::CastTarget) -> Result<Expression> {
        if let ast::CastTarget::Array(_) = target {
            return Err(message::array_outside_index());
        }
        let mut bound = self.bind(written)?;
        bound = match target {
            ast::CastTarget::Binary(_) | ast::CastTarget::Char { .. } => bound,
            // MySQL reads an integer from the text of DATE_ADD, but other numbers from its day or time.
            ast::CastTarget::Double | ast::CastTarget::Float(_) => among_numbers(written, bound),
            ast::CastTarget::Decimal { .. } => literal_among_numbers(written, bound).decimal_of_moment(),
            ast::CastTarget::Json => as_truth(written, bound),
            _ => literal_among_numbers(written, bound),
        };
        let operand = bound;
        let target = match target {
            ast::CastTarget::Signed => CastTarget::Signed,
            ast::CastTarget::Unsigned => CastTarget::Unsigned,
            ast::CastTarget::Double => CastTarget::Double,
            ast::CastTarget::Binary(length) => CastTarget::Binary { length: *length },
            ast::CastTarget::Char { length, character_set } => {
                let collation = match character_set {
                    Some(name) => CharacterSet::named(name)?.default_collation(),
                    None => self.environment.collation,
                };
                CastTarget::Char { length: *length, collation }
            }
            ast::CastTarget::Decimal { precision, scale } => {
                let precision = precision.filter(|precision| *precision > 0).unwrap_or(DECIMAL_PRECISION_DEFAULT);
                let scale = scale.unwrap_or(0);
                check_digits(written, precision, scale)?;
                CastTarget::Decimal { precision: precision as u8, scale: scale as u8 }
            }
            ast::CastTarget::Float(None | Some(0..=FLOAT_BITS_MAX)) => {
                return Expression::call("CAST FLOAT", vec![operand]);
            }
            ast::CastTarget::Float(Some(0..=DOUBLE_BITS_MAX)) => CastTarget::Double,
            ast::CastTarget::Float(Some(bits)) => {
                let message = format!("Too-big precision {bits} specified for 'CAST'. Maximum is {DOUBLE_BITS_MAX}.");
                return Err(Error::new(ErrorCode::TooBigPrecision, message));
            }
            ast::CastTarget::Date => return Expression::call("CAST DATE", vec![operand]),
            ast::CastTarget::Time(digits) => return cast_temporal("CAST TIME", operand, *digits),
            ast::CastTarget::DateTime(digits) => return cast_temporal("CAST DATETIME", operand, *digits),
            ast::CastTarget::Year => return cast_temporal("CAST YEAR", operand, None),
            ast::CastTarget::Json => return Expression::call("CAST JSON", vec![operand]),
            ast::CastTarget::Array(_) => return Err(message::array_outside_index()),
        };
        Ok(Expression::cast(target, operand))
    }

    pub(super) fn convert_using(&mut self, operand: &ast::Expression, character_set: &str) -> Result<Expression> {
        let collation = CharacterSet::named(character_set)?.default_collation();
        let operand = self.bind(operand)?;
        Ok(Expression::cast(CastTarget::Char { length: None, collation }, operand))
    }
}

fn bit_operator(operator: Operator) -> Option<BitOperator> {
    match operator {
        Operator::BitAnd => Some(BitOperator::And),
        Operator::BitOr => Some(BitOperator::Or),
        Operator::BitXor => Some(BitOperator::Xor),
        Operator::ShiftLeft => Some(BitOperator::ShiftLeft),
        Operator::ShiftRight => Some(BitOperator::ShiftRight),
        _ => None,
    }
}

/// Whether a bit operator works on binary strings: the left operand of a shift is one; both operands of
/// another operator are, and not both literals of digits.
fn has_bytes(
    (operator, left, right): (BitOperator, &ast::Expression, &ast::Expression),
    [bound_left, bound_right]: [&Expression; 2],
) -> bool {
    let is_literal = |operand| number_of_literal(operand).is_some();
    match operator {
        BitOperator::ShiftLeft | BitOperator::ShiftRight => bound_left.result.is_bytes() && !is_literal(left),
        _ => bound_left.result.is_bytes() && bound_right.result.is_bytes() && !(is_literal(left) && is_literal(right)),
    }
}

/// Errors of CAST to DECIMAL: 1427 for more digits after the point than there are, 1426 for more than 65
/// digits, 1425 for more than 30 after the point.
fn check_digits(operand: &ast::Expression, precision: u32, scale: u32) -> Result<()> {
    let name = match operand {
        ast::Expression::Literal(_) | ast::Expression::Column(_) => expression_text(operand).unwrap_or_default(),
        _ => String::new(),
    };
    let name = name.trim_matches('`');
    if scale > precision {
        let message = "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '').";
        return Err(Error::new(ErrorCode::ScaleAbovePrecision, message));
    }
    if precision > DECIMAL_PRECISION_MAX {
        let message =
            format!("Too-big precision {precision} specified for '{name}'. Maximum is {DECIMAL_PRECISION_MAX}.");
        return Err(Error::new(ErrorCode::TooBigPrecision, message));
    }
    if scale > u32::from(DECIMAL_SCALE_MAX) {
        let message = format!("Too big scale {scale} specified for column '{name}'. Maximum is {DECIMAL_SCALE_MAX}.");
        return Err(Error::new(ErrorCode::TooBigScale, message));
    }
    Ok(())
}

/// A cast to a type with digits after the point of the seconds. Error 1426 for more than 6.
fn cast_temporal(function: &str, operand: Expression, digits: Option<u32>) -> Result<Expression> {
    let digits = digits.unwrap_or(0);
    if digits > u32::from(DIGITS_MAX) {
        let message = format!("Too-big precision {digits} specified for 'CAST'. Maximum is 6.");
        return Err(Error::new(ErrorCode::TooBigPrecision, message));
    }
    let digits = Expression::constant(Value::Int(digits.into()), CollationId::BINARY);
    Expression::call(function, vec![operand, digits])
}
