//! Expressions, as trees: the type of a node, then the node with its operands.

use junctor_expression::aggregate::AggregateKind;
use junctor_expression::function::{self, Function};
use junctor_expression::program::*;
use junctor_expression::result_type::{Coercibility, Kind, ResultType};
use junctor_kernel::{DecodeError, EncodeError};

use super::page::Page;
#[cfg(test)]
use super::sample::Draw;
use super::wire::{Reader, Result, Wire, Writer};

/// Maximum height of a tree. The parser accepts 128 levels, and a level of the syntax becomes at most two of
/// the typed tree: the node and a conversion of its value.
pub(super) const LEVELS_MAX: u32 = 384;

choices! {
    Kind {
        0 Null; 1 Int; 2 UInt; 3 Decimal; 4 Double; 5 String; 6 Float; 7 Year; 8 Bit; 9 Date; 10 Time; 11 DateTime;
        12 Timestamp; 13 Enum; 14 Set; 15 Json; 16 Geometry;
    }
}
choices! {
    Coercibility {
        0 Explicit; 1 NoCollation; 2 Implicit; 3 SystemConstant; 4 Coercible; 5 Numeric; 6 Ignorable;
    }
}
layout! { ResultType { kind, collation, coercibility, length, decimals, zero_fill, is_narrow, is_unsigned, nullable } }
choices! { CompareDomain { 0 Integer; 1 Decimal; 2 Double; 3 Number; 4 String(collation); 5 DateTime; 6 Time; 7 Json; 8 FixedDouble(decimals); } }
choices! {
    CompareOperator {
        0 Equal; 1 NullSafeEqual; 2 NotEqual; 3 Less; 4 LessOrEqual; 5 Greater; 6 GreaterOrEqual;
    }
}
choices! { ArithmeticOperator { 0 Add; 1 Subtract; 2 Multiply; 3 Divide; 4 DivideInteger; 5 Remainder; } }
choices! { BitOperator { 0 And; 1 Or; 2 Xor; 3 ShiftLeft; 4 ShiftRight; } }
choices! { IsTest { 0 Null; 1 True; 2 False; } }
choices! {
    CastTarget {
        0 Signed;
        1 Unsigned;
        2 Double;
        3 Decimal { precision, scale };
        4 Char { length, collation };
        5 Binary { length };
    }
}
choices! {
    AggregateKind {
        0 CountRows; 1 Count; 2 CountDistinct; 3 Sum; 4 Average(digits); 5 Minimum; 6 Maximum; 7 AnyValue;
    }
}
choices! {
    Node {
        0 Column { index, name };
        1 Parameter(number);
        2 Constant(value);
        3 MissingDefault { column, value };
        4 Convert(operand);
        5 Cast(target, operand);
        6 Collate(operand);
        7 Compare(operator, domain, operands);
        8 And(operands);
        9 Or(operands);
        10 Xor(operands);
        11 Not(operand);
        12 Is { test, negated, operand };
        13 Between { negated, domains, operands };
        14 InList { negated, operand, list };
        15 InParameters { negated, domain, operand, parameter };
        16 Like { negated, collation, escape, operands };
        17 Arithmetic(operator, operands);
        18 Negate(operand);
        19 Bits(operator, operands);
        20 BitNot(operand);
        21 Case { branches, otherwise };
        22 Coalesce(operands);
        23 NullIf(domain, operands);
        24 Call(function, arguments);
    }
}

impl Wire for Expression {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.levels += 1;
        match writer.levels > LEVELS_MAX {
            true => writer.refuse(EncodeError::TooLong),
            false => {
                self.result.encode(writer);
                self.node.encode(writer);
            }
        }
        writer.levels -= 1;
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Expression> {
        if reader.levels == LEVELS_MAX {
            return Err(DecodeError::TooDeep);
        }
        reader.levels += 1;
        let result = ResultType::decode(reader)?;
        let node = Node::decode(reader)?;
        reader.levels -= 1;
        check(&node, &result)?;
        Ok(Expression { node, result })
    }

    fn describe(page: &mut Page) -> String {
        page.add("Expression", |page| format!("result: {}, node: {}", ResultType::describe(page), Node::describe(page)))
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Expression {
        let result = ResultType::sample(draw);
        if draw.levels == 0 {
            return Expression { node: Node::Constant(Wire::sample(draw)), result };
        }
        draw.levels -= 1;
        let mut node = Node::sample(draw);
        if let Node::Call(function, arguments) = &mut node {
            *arguments = (0..function.arguments_min).map(|_| Expression::sample(draw)).collect();
        }
        draw.levels += 1;
        let is_valid = check(&node, &result).is_ok();
        Expression { node, result: if is_valid { result } else { ResultType::double() } }
    }
}

/// Refuses what the evaluator takes for granted about a node.
fn check(node: &Node, result: &ResultType) -> Result<()> {
    match node {
        Node::Call(function, arguments) => {
            if function.is_evaluated_with(arguments.len()) {
                Ok(())
            } else {
                Err(DecodeError::Invalid("number of arguments"))
            }
        }
        Node::Arithmetic(..) | Node::Negate(_)
            if !matches!(result.kind, Kind::Int | Kind::UInt | Kind::Decimal | Kind::Double) =>
        {
            Err(DecodeError::Invalid("type of arithmetic"))
        }
        _ => Ok(()),
    }
}

impl Wire for &'static Function {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.bytes(self.name.as_bytes());
    }

    fn decode(reader: &mut Reader<'_>) -> Result<&'static Function> {
        let name = std::str::from_utf8(reader.bytes()?).ok();
        name.and_then(function::find).ok_or(DecodeError::Invalid("function"))
    }

    fn describe(page: &mut Page) -> String {
        page.add("Function", |_| "text: the name of a function".into())
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> &'static Function {
        let names = ["CONCAT", "ABS", "ROUND", "SUBSTRING", "CRC32", "TRIM", "GREATEST", "LAST_INSERT_ID"];
        let names: Vec<_> = names.into_iter().filter_map(function::find).collect();
        names[draw.below(names.len() as u64) as usize]
    }
}
