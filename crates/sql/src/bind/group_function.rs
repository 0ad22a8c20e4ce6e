//! Aggregates of query blocks with groups.

use junctor_expression::aggregate::AggregateKind;
use junctor_expression::{ArithmeticOperator, CastTarget, Coercibility, Expression, Kind, Node, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::Value;
use junctor_signals::program::SortKey;

use super::block::SlotSpace;
use super::literal::{among_numbers, literal_among_numbers};
use super::window::WindowFunction;
use super::{Aggregation, Binder, message};
use crate::parse::expression::{self as ast, FunctionCall};

/// The aggregates of a block.
#[derive(Debug, Default)]
pub struct GroupFunctions {
    /// The aggregates.
    pub functions: Vec<GroupFunction>,
    /// The calls of GROUPING: their arguments and the slot of the result.
    pub groupings: Vec<(Vec<Expression>, u16)>,
    /// The window functions, which run after the groups.
    pub windows: Vec<WindowFunction>,
}

/// An aggregate of a block.
#[derive(Clone, Debug)]
pub struct GroupFunction {
    /// The function.
    pub kind: GroupFunctionKind,
    /// Its arguments; empty for COUNT(*). Bits have integers, and variances doubles.
    pub arguments: Vec<Expression>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY of GROUP_CONCAT.
    pub order: Vec<SortKey>,
    /// SEPARATOR of GROUP_CONCAT.
    pub separator: Vec<u8>,
    /// Maximum length of the text of GROUP_CONCAT in bytes.
    pub length_max: u64,
    /// The result: a column that the aggregation fills.
    pub result: Expression,
}

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFunctionKind {
    /// COUNT, SUM, AVG, MIN, MAX and ANY_VALUE.
    Plain(AggregateKind),
    /// BIT_AND.
    BitAnd,
    /// BIT_OR.
    BitOr,
    /// BIT_XOR.
    BitXor,
    /// STDDEV and VARIANCE in their forms.
    Variance {
        /// Divides by one less than the number of values.
        is_sample: bool,
        /// The square root of the variance.
        is_deviation: bool,
    },
    /// GROUP_CONCAT.
    Concat,
    /// JSON_ARRAYAGG. The argument is an array of one element.
    JsonArray,
    /// JSON_OBJECTAGG. The argument is an object of one member.
    JsonObject,
}

impl GroupFunctionKind {
    /// Whether a hexadecimal literal is a number as the argument.
    fn takes_numbers(self) -> bool {
        match self {
            GroupFunctionKind::Plain(kind) => kind.takes_numbers(),
            GroupFunctionKind::BitAnd
            | GroupFunctionKind::BitOr
            | GroupFunctionKind::BitXor
            | GroupFunctionKind::Variance { .. } => true,
            _ => false,
        }
    }
}

impl Binder<'_> {
    /// Binds a call of an aggregate. Error: 1111 where none is allowed.
    pub(super) fn group_function(&mut self, call: &FunctionCall, space: &SlotSpace) -> Result<Expression> {
        let outside = std::mem::replace(&mut self.aggregation, Aggregation::Forbidden);
        self.is_in_aggregate = true;
        let bound = self.bind_group_function(call, space);
        self.is_in_aggregate = false;
        self.aggregation = outside;
        let function = bound?;
        let Aggregation::Grouped { functions: GroupFunctions { functions, .. }, .. } = &mut self.aggregation else {
            return Err(message::invalid_use_of_group());
        };
        let is_same = |known: &GroupFunction| {
            known.kind == function.kind
                && known.arguments == function.arguments
                && known.distinct == function.distinct
                && known.order.is_empty()
                && function.order.is_empty()
                && known.separator == function.separator
        };
        if let Some(known) = functions.iter().find(|known| is_same(known)) {
            return Ok(known.result.clone());
        }
        let result = space.computed(function.result.result, &shown_call(call))?;
        functions.push(GroupFunction { result: result.clone(), ..function });
        Ok(result)
    }

    pub(super) fn bind_group_function(&mut self, call: &FunctionCall, space: &SlotSpace) -> Result<GroupFunction> {
        let name = call.name.to_ascii_uppercase();
        let mut kind = match name.as_str() {
            "COUNT" if call.star => GroupFunctionKind::Plain(AggregateKind::CountRows),
            "COUNT" => GroupFunctionKind::Plain(AggregateKind::Count),
            "SUM" => GroupFunctionKind::Plain(AggregateKind::Sum),
            "AVG" => GroupFunctionKind::Plain(AggregateKind::Average(self.environment.division_increment)),
            "MIN" => GroupFunctionKind::Plain(AggregateKind::Minimum),
            "MAX" => GroupFunctionKind::Plain(AggregateKind::Maximum),
            "ANY_VALUE" => GroupFunctionKind::Plain(AggregateKind::AnyValue),
            "BIT_AND" => GroupFunctionKind::BitAnd,
            "BIT_OR" => GroupFunctionKind::BitOr,
            "BIT_XOR" => GroupFunctionKind::BitXor,
            "GROUP_CONCAT" => GroupFunctionKind::Concat,
            "JSON_ARRAYAGG" => GroupFunctionKind::JsonArray,
            "JSON_OBJECTAGG" => GroupFunctionKind::JsonObject,
            "STD" | "STDDEV" | "STDDEV_POP" => GroupFunctionKind::Variance { is_sample: false, is_deviation: true },
            "STDDEV_SAMP" => GroupFunctionKind::Variance { is_sample: true, is_deviation: true },
            "VARIANCE" | "VAR_POP" => GroupFunctionKind::Variance { is_sample: false, is_deviation: false },
            "VAR_SAMP" => GroupFunctionKind::Variance { is_sample: true, is_deviation: false },
            _ => return Err(Error::not_supported(&name)),
        };
        let takes_many = matches!(kind, GroupFunctionKind::Concat) || name == "COUNT" && call.distinct;
        let is_object = kind == GroupFunctionKind::JsonObject;
        let takes_wrong = match is_object {
            true => call.arguments.len() != 2,
            false => !call.star && (call.arguments.is_empty() || call.arguments.len() > 1 && !takes_many),
        };
        if takes_wrong {
            let message = format!("Incorrect parameter count in the call to native function '{name}'");
            return Err(Error::new(ErrorCode::WrongParameterCount, message));
        }
        let mut arguments = match kind {
            GroupFunctionKind::JsonArray => vec![self.function(&document("JSON_ARRAY", call))?],
            GroupFunctionKind::JsonObject => vec![self.function(&document("JSON_OBJECT", call))?],
            kind if kind.takes_numbers() => {
                // Distinct texts are read like those of columns.
                let as_number = if call.distinct { literal_among_numbers } else { among_numbers };
                let bind = |argument| Ok(as_number(argument, self.bind(argument)?));
                call.arguments.iter().map(bind).collect::<Result<_>>()?
            }
            _ => self.bind_all(&call.arguments)?,
        };
        let mut distinct = call.distinct && !matches!(name.as_str(), "MIN" | "MAX");
        let mut order = Vec::new();
        let result = match kind {
            GroupFunctionKind::Plain(kind) => {
                if distinct && matches!(kind, AggregateKind::Sum | AggregateKind::Average(_)) {
                    // Numbers are distinct, not the texts that they are read from.
                    let is_text = |value: &Expression| value.result.is_text() || value.result.kind == Kind::Json;
                    let number = |value| if is_text(&value) { double(value) } else { value };
                    arguments = arguments.into_iter().map(number).collect();
                }
                let operand = arguments.first().map_or_else(ResultType::null, |argument| argument.result);
                kind.result_type(&operand)
            }
            GroupFunctionKind::BitAnd | GroupFunctionKind::BitOr | GroupFunctionKind::BitXor => {
                if arguments.iter().any(|argument| argument.result.is_bytes()) {
                    return Err(Error::not_supported("bit aggregates of binary strings"));
                }
                let signed_differences = self.environment.modes.no_unsigned_subtraction;
                let bits = |value| bits(value, signed_differences);
                arguments = arguments.into_iter().map(bits).collect::<Result<_>>()?;
                ResultType::integer(true, 21)
            }
            GroupFunctionKind::Variance { .. } => {
                arguments = arguments.into_iter().map(double).collect();
                ResultType::double().with_nullable(true)
            }
            GroupFunctionKind::JsonArray | GroupFunctionKind::JsonObject => ResultType::json().with_nullable(true),
            GroupFunctionKind::Concat => {
                for item in &call.order {
                    let value = match &item.expression {
                        ast::Expression::Literal(ast::Literal::Integer(number)) => {
                            let place = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                            let argument = place.and_then(|place| arguments.get(place));
                            let unknown = || message::unknown_column(&number.to_string(), "order clause");
                            argument.cloned().ok_or_else(unknown)?
                        }
                        expression => self.bind(expression)?,
                    };
                    order.push(SortKey { value, descending: item.descending, is_in_result: false });
                }
                let texts = self.bind_call("CONCAT", arguments)?;
                let result = texts.result;
                arguments = vec![texts];
                let collation = if result.is_text() { result.collation } else { self.environment.collation };
                let characters = u32::try_from(self.environment.concat_bytes_max).unwrap_or(u32::MAX);
                ResultType::string(collation, Coercibility::Implicit, characters).with_nullable(true)
            }
        };
        if let (GroupFunctionKind::Plain(AggregateKind::Count), [only], true) = (kind, &*arguments, distinct)
            && only.result.kind != Kind::Null
        {
            kind = GroupFunctionKind::Plain(AggregateKind::CountDistinct);
            distinct = false;
        }
        let separator = call.separator.clone().unwrap_or_else(|| b",".to_vec());
        let result = Expression::column_of_type(junctor_model::id::ColumnNumber(space.width() as u16), result, "");
        let length_max = self.environment.concat_bytes_max;
        Ok(GroupFunction { kind, arguments, distinct, order, separator, length_max, result })
    }

    /// Binds GROUPING(expression, ...).
    pub(super) fn grouping(&mut self, call: &FunctionCall, space: &SlotSpace) -> Result<Expression> {
        let arguments = self.bind_all(&call.arguments)?;
        let result = space.computed(ResultType::integer(false, 1), "GROUPING")?;
        let Aggregation::Grouped { functions, .. } = &mut self.aggregation else {
            return Err(message::invalid_use_of_group());
        };
        let Some(slot) = result.as_column() else { return Ok(result) };
        functions.groupings.push((arguments, slot.0));
        Ok(result)
    }
}

/// The document that an aggregate of JSON makes of a row.
fn document(function: &str, call: &FunctionCall) -> ast::Expression {
    ast::Expression::call(function, call.arguments.clone())
}

/// The value as the integer whose bits an aggregate combines. `signed_differences` is the mode
/// NO_UNSIGNED_SUBTRACTION.
fn bits(value: Expression, signed_differences: bool) -> Result<Expression> {
    match value.result.kind {
        Kind::String => Expression::call("TEXT BITS", vec![value]),
        // An unsigned number has the bits of all 64.
        Kind::Decimal if value.result.is_unsigned => Ok(unsigned_bits(value)),
        // As in MySQL, a difference of unsigned numbers has their type, and no bits below zero.
        Kind::Decimal if !signed_differences && is_of_unsigned(&value) => {
            let zero = Expression::constant(Value::Int(0), CollationId::BINARY);
            Ok(unsigned_bits(Expression::call("GREATEST", vec![value, zero])?))
        }
        _ => Ok(Expression::cast(CastTarget::Signed, value)),
    }
}

fn unsigned_bits(value: Expression) -> Expression {
    Expression::cast(CastTarget::Signed, Expression::cast(CastTarget::Unsigned, value))
}

/// Whether a number is unsigned, or computed from unsigned ones.
fn is_of_unsigned(value: &Expression) -> bool {
    match &value.node {
        Node::Arithmetic(ArithmeticOperator::Remainder, operands) => is_of_unsigned(&operands[0]),
        Node::Arithmetic(_, operands) => operands.iter().all(is_of_unsigned),
        _ => value.result.has_no_sign(),
    }
}

/// The value as a double.
fn double(value: Expression) -> Expression {
    let zero = Expression::constant(Value::Double(0.0), CollationId::BINARY);
    Expression::arithmetic(ArithmeticOperator::Add, value, zero)
}

fn shown_call(call: &FunctionCall) -> String {
    format!("{}(0)", call.name.to_ascii_lowercase())
}
