//! Hot path: at most 40 instructions per comparison of integers.
//!
//! Conditions in three-valued logic. Conditions yield a truth value directly, without building a `ValueRef`.

use junctor_model::error::Result;
use junctor_model::value::ValueRef;

use super::Context;
use super::compare::{compare, compare_integers, equal_in_domain, order_in_domain, text_to_number};
use super::convert::to_double;
use crate::program::{CompareDomain, CompareOperator, Expression, IsTest, Node};
use crate::scratch::{Scratch, to_text};

impl Expression {
    /// Whether the value is true; `None` for NULL.
    #[inline]
    pub(crate) fn truth<'r>(&'r self, context: &Context<'r>) -> Result<Option<bool>> {
        match &self.node {
            Node::Compare(operator, domain, operands) => {
                let [left, right] = &**operands;
                match domain {
                    CompareDomain::Integer => {
                        let (left, right) = (left.integer(context)?, right.integer(context)?);
                        Ok(compare_integers(*operator, left, right))
                    }
                    _ => Self::compare_operands(*operator, *domain, left, right, context),
                }
            }
            Node::And(operands) => {
                let mut result = Some(true);
                for operand in operands {
                    match operand.truth(context)? {
                        Some(false) => return Ok(Some(false)),
                        None => result = None,
                        Some(true) => {}
                    }
                }
                Ok(result)
            }
            Node::Or(operands) => {
                let mut result = Some(false);
                for operand in operands {
                    match operand.truth(context)? {
                        Some(true) => return Ok(Some(true)),
                        None => result = None,
                        Some(false) => {}
                    }
                }
                Ok(result)
            }
            _ => self.truth_slow(context),
        }
    }

    fn compare_operands<'r>(
        operator: CompareOperator,
        domain: CompareDomain,
        left: &'r Expression,
        right: &'r Expression,
        context: &Context<'r>,
    ) -> Result<Option<bool>> {
        let (left, right) = (left.rounded_value(context)?, right.rounded_value(context)?);
        compare(operator, domain, left, right, context.scratch)
    }

    fn truth_slow<'r>(&'r self, context: &Context<'r>) -> Result<Option<bool>> {
        match &self.node {
            Node::Not(operand) => Ok(operand.truth(context)?.map(|truth| !truth)),
            Node::Xor(operands) => {
                let [left, right] = &**operands;
                let Some(left) = left.truth(context)? else { return Ok(None) };
                Ok(right.truth(context)?.map(|right| left != right))
            }
            Node::Is { test, negated, operand } => {
                let answer = match test {
                    IsTest::Null => operand.rounded_value(context)?.is_null(),
                    IsTest::True => operand.truth(context)? == Some(true),
                    IsTest::False => operand.truth(context)? == Some(false),
                };
                Ok(Some(answer != *negated))
            }
            Node::Between { negated, domains, operands } => {
                Ok(between(*domains, operands, context)?.map(|truth| truth != *negated))
            }
            Node::InList { negated, operand, list } => {
                Ok(in_list(operand, list, context)?.map(|truth| truth != *negated))
            }
            Node::InParameters { negated, domain, operand, parameter } => {
                Ok(in_parameters(operand, *domain, *parameter, context)?.map(|truth| truth != *negated))
            }
            Node::Like { negated, collation, escape, operands } => {
                let [text, pattern] = &**operands;
                let (text, pattern) = (text.printable_value(context)?, pattern.printable_value(context)?);
                if text.is_null() || pattern.is_null() {
                    return Ok(None);
                }
                let text = to_text(text, context.scratch)?;
                let pattern = to_text(pattern, context.scratch)?;
                Ok(Some(collation.like(text, pattern, *escape) != *negated))
            }
            _ => truth_of(self.rounded_value(context)?, context.scratch),
        }
    }
}

/// Whether a value counts as true in a condition; `None` for NULL.
fn truth_of(value: ValueRef<'_>, scratch: &Scratch) -> Result<Option<bool>> {
    Ok(match value {
        ValueRef::Null => None,
        ValueRef::Int(value) => Some(value != 0),
        ValueRef::UInt(value) => Some(value != 0),
        ValueRef::Decimal(value) => Some(!value.is_zero()),
        _ => Some(to_double(value, scratch)? != 0.0),
    })
}

fn between<'r>(
    domains: [CompareDomain; 2],
    operands: &'r [Expression; 3],
    context: &Context<'r>,
) -> Result<Option<bool>> {
    let [value, low, high] = operands;
    let mut value = value.value(context)?;
    // The bounds are not evaluated: they may warn.
    if value.is_null() {
        return Ok(None);
    }
    let low = low.value(context)?;
    if domains[0] == domains[1] && !low.is_null() {
        value = text_to_number(domains[0], value, context.scratch)?;
    }
    let above = match low.is_null() {
        true => None,
        false => Some(order_in_domain(domains[0], value, low, context.scratch)?.is_ge()),
    };
    if above == Some(false) {
        return Ok(Some(false));
    }
    let high = high.value(context)?;
    let below = match high.is_null() {
        true => None,
        false => Some(order_in_domain(domains[1], value, high, context.scratch)?.is_le()),
    };
    Ok(match (above, below) {
        (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    })
}

fn in_list<'r>(
    operand: &'r Expression,
    list: &'r [(CompareDomain, Expression)],
    context: &Context<'r>,
) -> Result<Option<bool>> {
    let value = operand.rounded_value(context)?;
    if value.is_null() {
        return Ok(None);
    }
    let mut result = Some(false);
    let mut converted = None;
    for (domain, item) in list {
        let item = item.rounded_value(context)?;
        let value = match (value, converted) {
            (ValueRef::Bytes(_), Some((known, number))) if known == *domain => number,
            (ValueRef::Bytes(_), _) if !item.is_null() => {
                let number = text_to_number(*domain, value, context.scratch)?;
                converted = Some((*domain, number));
                number
            }
            _ => value,
        };
        match equal_in_domain(*domain, value, item, context.scratch)? {
            Some(true) => return Ok(Some(true)),
            None => result = None,
            Some(false) => {}
        }
    }
    Ok(result)
}

fn in_parameters<'r>(
    operand: &'r Expression,
    domain: CompareDomain,
    parameter: u16,
    context: &Context<'r>,
) -> Result<Option<bool>> {
    let value = operand.rounded_value(context)?;
    if value.is_null() {
        return Ok(None);
    }
    let value = text_to_number(domain, value, context.scratch)?;
    let mut result = Some(false);
    for item in context.parameters.list(parameter) {
        match equal_in_domain(domain, value, item, context.scratch)? {
            Some(true) => return Ok(Some(true)),
            None => result = None,
            Some(false) => {}
        }
    }
    Ok(result)
}
