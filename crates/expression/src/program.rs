//! The typed tree of an expression. The constructors in `construct` build the tree and apply MySQL's typing
//! rules. A tree never changes after that.

use std::cmp::Ordering;

use junctor_model::collation::CollationId;
use junctor_model::id::ColumnNumber;
use junctor_model::value::Value;

use crate::function::Function;
use crate::result_type::{Kind, ResultType};

/// A typed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// The operation.
    pub node: Node,
    /// The type of the value: NULL or a value of `result.kind`.
    pub result: ResultType,
}

/// An operation. Evaluation converts the operands to the comparison domain or kind that the node names.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A column of the row.
    Column {
        /// The position of the column in the row.
        index: ColumnNumber,
        /// The name of the column in messages.
        name: Box<str>,
    },
    /// The number of a parameter: a value that each execution supplies.
    Parameter(u16),
    /// A value that is fixed in the statement.
    Constant(Value),
    /// DEFAULT of a column that has no default. In strict mode it fails with error 1364; otherwise it yields
    /// `value` and a warning.
    MissingDefault {
        /// The name of the column.
        column: Box<str>,
        /// The implicit default of the column's type.
        value: Value,
    },
    /// The operand converted to the kind of this node, as an assignment would.
    Convert(Box<Expression>),
    /// CAST and CONVERT.
    Cast(CastTarget, Box<Expression>),
    /// COLLATE: the operand's value with another collation.
    Collate(Box<Expression>),
    /// A comparison of two operands in a domain.
    Compare(CompareOperator, CompareDomain, Box<[Expression; 2]>),
    /// True if all operands are true.
    And(Box<[Expression]>),
    /// True if any operand is true.
    Or(Box<[Expression]>),
    /// True if exactly one operand is true.
    Xor(Box<[Expression; 2]>),
    /// True if the operand is false.
    Not(Box<Expression>),
    /// IS [NOT] NULL, TRUE or FALSE. Its result is never NULL.
    Is {
        /// The state that the operand is tested for.
        test: IsTest,
        /// IS NOT.
        negated: bool,
        /// The tested operand.
        operand: Box<Expression>,
    },
    /// BETWEEN: value, low and high, and the domains of the two comparisons.
    Between {
        /// NOT BETWEEN.
        negated: bool,
        /// The domains for comparing the value with low and with high.
        domains: [CompareDomain; 2],
        /// Value, low, high.
        operands: Box<[Expression; 3]>,
    },
    /// IN with a list of expressions, each with its comparison domain.
    InList {
        /// NOT IN.
        negated: bool,
        /// The value to search for.
        operand: Box<Expression>,
        /// The values to search.
        list: Box<[(CompareDomain, Expression)]>,
    },
    /// IN whose list is a single list parameter.
    InParameters {
        /// NOT IN.
        negated: bool,
        /// The domain for comparing the value with each element of the list.
        domain: CompareDomain,
        /// The value to search for.
        operand: Box<Expression>,
        /// The number of the list parameter.
        parameter: u16,
    },
    /// LIKE.
    Like {
        /// NOT LIKE.
        negated: bool,
        /// The collation that determines which characters are equal.
        collation: CollationId,
        /// The escape character; `None` for ESCAPE ''.
        escape: Option<char>,
        /// Text and pattern.
        operands: Box<[Expression; 2]>,
    },
    /// `+ - * / DIV %`. The kind of the result determines the arithmetic. For DIV the kinds of the operands
    /// determine it.
    Arithmetic(ArithmeticOperator, Box<[Expression; 2]>),
    /// Unary minus.
    Negate(Box<Expression>),
    /// & | ^ << >> on unsigned 64-bit integers.
    Bits(BitOperator, Box<[Expression; 2]>),
    /// ~.
    BitNot(Box<Expression>),
    /// CASE without an operand: conditions with their results, and the ELSE.
    Case {
        /// WHEN and THEN.
        branches: Box<[(Expression, Expression)]>,
        /// ELSE; NULL if absent.
        otherwise: Option<Box<Expression>>,
    },
    /// The first operand that is not NULL.
    Coalesce(Box<[Expression]>),
    /// NULL if the operands are equal in the domain, otherwise the first operand.
    NullIf(CompareDomain, Box<[Expression; 2]>),
    /// A call of a function of the function table.
    Call(&'static Function, Box<[Expression]>),
}

/// How to compare two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareDomain {
    /// As integers, signed or not, exactly.
    Integer,
    /// As exact numbers with fractions.
    Decimal,
    /// As doubles.
    Double,
    /// As doubles with this many digits after the point: two that differ by less than half a unit of the last
    /// digit are equal. A FLOAT(7,3) thus equals the number that was stored in it.
    FixedDouble(u8),
    /// As numbers whose kind is known only at execution. Two integers are compared exactly, even if one of
    /// them comes from a string. A number that meets a day is read as a day, if it is one; an integer of one
    /// or two digits that meets a year is read as a year.
    Number,
    /// As strings in a collation.
    String(CollationId),
    /// As days with times of day.
    DateTime,
    /// As times.
    Time,
    /// As JSON documents.
    Json,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOperator {
    /// =
    Equal,
    /// <=>: like =, but NULL equals NULL. Its result is never NULL.
    NullSafeEqual,
    /// <> and !=
    NotEqual,
    /// <
    Less,
    /// <=
    LessOrEqual,
    /// >
    Greater,
    /// >=
    GreaterOrEqual,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticOperator {
    /// +
    Add,
    /// -
    Subtract,
    /// *
    Multiply,
    /// /
    Divide,
    /// DIV
    DivideInteger,
    /// % and MOD
    Remainder,
}

/// A bit operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOperator {
    /// &
    And,
    /// |
    Or,
    /// ^
    Xor,
    /// <<
    ShiftLeft,
    /// >>
    ShiftRight,
}

/// The test of IS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsTest {
    /// IS NULL and IS UNKNOWN.
    Null,
    /// IS TRUE.
    True,
    /// IS FALSE.
    False,
}

/// The type of a CAST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastTarget {
    /// SIGNED.
    Signed,
    /// UNSIGNED.
    Unsigned,
    /// DOUBLE.
    Double,
    /// DECIMAL(precision, scale).
    Decimal {
        /// Total number of digits, 1 to 65.
        precision: u8,
        /// Digits after the point, 0 to 30.
        scale: u8,
    },
    /// CHAR, truncated to `length` characters.
    Char {
        /// Maximum number of characters; unlimited if absent.
        length: Option<u32>,
        /// The collation of the result.
        collation: CollationId,
    },
    /// BINARY, truncated or padded with zero bytes to `length` bytes.
    Binary {
        /// Exact number of bytes; the operand's own length if absent.
        length: Option<u32>,
    },
}

impl CompareOperator {
    /// The operator as SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOperator::Equal => "=",
            CompareOperator::NullSafeEqual => "<=>",
            CompareOperator::NotEqual => "<>",
            CompareOperator::Less => "<",
            CompareOperator::LessOrEqual => "<=",
            CompareOperator::Greater => ">",
            CompareOperator::GreaterOrEqual => ">=",
        }
    }

    /// Whether the comparison of two values in this order is true.
    #[inline]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            CompareOperator::Equal | CompareOperator::NullSafeEqual => order.is_eq(),
            CompareOperator::NotEqual => order.is_ne(),
            CompareOperator::Less => order.is_lt(),
            CompareOperator::LessOrEqual => order.is_le(),
            CompareOperator::Greater => order.is_gt(),
            CompareOperator::GreaterOrEqual => order.is_ge(),
        }
    }

    /// The operator that gives the same result with the operands exchanged.
    pub fn mirrored(self) -> CompareOperator {
        match self {
            CompareOperator::Less => CompareOperator::Greater,
            CompareOperator::LessOrEqual => CompareOperator::GreaterOrEqual,
            CompareOperator::Greater => CompareOperator::Less,
            CompareOperator::GreaterOrEqual => CompareOperator::LessOrEqual,
            same => same,
        }
    }
}

impl ArithmeticOperator {
    /// The operator as SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            ArithmeticOperator::Add => "+",
            ArithmeticOperator::Subtract => "-",
            ArithmeticOperator::Multiply => "*",
            ArithmeticOperator::Divide => "/",
            ArithmeticOperator::DivideInteger => "DIV",
            ArithmeticOperator::Remainder => "%",
        }
    }
}

impl BitOperator {
    /// The operator as SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            BitOperator::And => "&",
            BitOperator::Or => "|",
            BitOperator::Xor => "^",
            BitOperator::ShiftLeft => "<<",
            BitOperator::ShiftRight => ">>",
        }
    }
}

impl Expression {
    /// The column, if the expression consists of nothing else.
    #[inline]
    pub fn as_column(&self) -> Option<ColumnNumber> {
        match &self.node {
            Node::Column { index, .. } => Some(*index),
            _ => None,
        }
    }

    /// Whether the value is a truth value: that of a comparison, a test or a logical operator, or TRUE.
    pub fn is_condition(&self) -> bool {
        matches!(
            self.node,
            Node::Compare(..)
                | Node::And(_)
                | Node::Or(_)
                | Node::Xor(_)
                | Node::Not(_)
                | Node::Is { .. }
                | Node::Between { .. }
                | Node::InList { .. }
                | Node::InParameters { .. }
                | Node::Like { .. }
        )
    }

    /// Calls `visit` for this expression and every expression in it, parents before operands.
    pub fn visit<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(self);
        self.for_each_operand(&mut |operand| operand.visit(visit));
    }

    /// Whether this node, not its operands, reads a TIME as a moment of the day of the statement.
    pub fn needs_day(&self) -> bool {
        let (mut has_time, mut has_day, mut is_converted) = (false, false, false);
        self.for_each_operand(&mut |operand| {
            has_time |= operand.result.kind == Kind::Time;
            has_day |= operand.result.kind.has_day();
            is_converted |= operand.makes_moment();
        });
        let is_read = match &self.node {
            Node::Call(function, _) => function.reads_days(),
            _ => has_day,
        };
        has_time && is_read || is_converted || self.makes_moment()
    }

    /// Whether this is the conversion of a TIME to a day.
    fn makes_moment(&self) -> bool {
        matches!(&self.node, Node::Convert(operand) if operand.result.kind == Kind::Time && self.result.kind.has_day())
    }

    /// Whether the value depends on a column of the row.
    pub(crate) fn reads_column(&self) -> bool {
        let mut reads = false;
        self.visit(&mut |inner| reads |= matches!(inner.node, Node::Column { .. }));
        reads
    }

    /// Whether another evaluation for the same row of the same execution may give another value.
    pub fn is_volatile(&self) -> bool {
        let mut is_volatile = false;
        self.visit(&mut |inner| {
            is_volatile |= matches!(&inner.node, Node::Call(function, _) if function.is_volatile());
        });
        is_volatile
    }

    /// Whether an evaluation reads or changes the state of the session: that of its user variables. Such an
    /// expression is evaluated by the session, once for each row, in the order of the rows.
    pub fn is_stateful(&self) -> bool {
        let mut is_stateful = false;
        self.visit(&mut |inner| {
            is_stateful |= matches!(&inner.node, Node::Call(function, _) if function.is_stateful());
        });
        is_stateful
    }

    /// Whether the value is the same for every row and every execution.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.visit(&mut |expression| {
            constant &= match &expression.node {
                Node::Column { .. } | Node::Parameter(_) | Node::InParameters { .. } | Node::MissingDefault { .. } => {
                    false
                }
                Node::Call(function, _) => function.is_immutable(),
                _ => true,
            };
        });
        constant
    }

    /// Calls `change` for each direct operand, in the order of evaluation.
    pub fn for_each_operand_mut(&mut self, change: &mut dyn FnMut(&mut Expression)) {
        match &mut self.node {
            Node::Column { .. } | Node::Parameter(_) | Node::Constant(_) | Node::MissingDefault { .. } => {}
            Node::Convert(operand)
            | Node::Cast(_, operand)
            | Node::Collate(operand)
            | Node::Not(operand)
            | Node::Is { operand, .. }
            | Node::InParameters { operand, .. }
            | Node::Negate(operand)
            | Node::BitNot(operand) => change(operand),
            Node::Compare(_, _, operands)
            | Node::Xor(operands)
            | Node::Like { operands, .. }
            | Node::Arithmetic(_, operands)
            | Node::Bits(_, operands)
            | Node::NullIf(_, operands) => operands.iter_mut().for_each(change),
            Node::Between { operands, .. } => operands.iter_mut().for_each(change),
            Node::And(operands) | Node::Or(operands) | Node::Coalesce(operands) | Node::Call(_, operands) => {
                operands.iter_mut().for_each(change);
            }
            Node::InList { operand, list, .. } => {
                change(operand);
                list.iter_mut().for_each(|(_, item)| change(item));
            }
            Node::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    change(condition);
                    change(result);
                }
                if let Some(otherwise) = otherwise {
                    change(otherwise);
                }
            }
        }
    }

    /// Calls `visit` for each direct operand, in the order of evaluation.
    pub fn for_each_operand<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        match &self.node {
            Node::Column { .. } | Node::Parameter(_) | Node::Constant(_) | Node::MissingDefault { .. } => {}
            Node::Convert(operand)
            | Node::Cast(_, operand)
            | Node::Collate(operand)
            | Node::Not(operand)
            | Node::Is { operand, .. }
            | Node::InParameters { operand, .. }
            | Node::Negate(operand)
            | Node::BitNot(operand) => visit(operand),
            Node::Compare(_, _, operands)
            | Node::Xor(operands)
            | Node::Like { operands, .. }
            | Node::Arithmetic(_, operands)
            | Node::Bits(_, operands)
            | Node::NullIf(_, operands) => operands.iter().for_each(visit),
            Node::Between { operands, .. } => operands.iter().for_each(visit),
            Node::And(operands) | Node::Or(operands) | Node::Coalesce(operands) | Node::Call(_, operands) => {
                operands.iter().for_each(visit);
            }
            Node::InList { operand, list, .. } => {
                visit(operand);
                list.iter().for_each(|(_, item)| visit(item));
            }
            Node::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    visit(condition);
                    visit(result);
                }
                if let Some(otherwise) = otherwise {
                    visit(otherwise);
                }
            }
        }
    }

    /// Replaces this expression and the expressions in it, where `replace` returns another one. A replaced
    /// expression is not entered.
    pub fn rewrite(&mut self, replace: &mut dyn FnMut(&Expression) -> Option<Expression>) {
        match replace(self) {
            Some(other) => *self = other,
            None => self.for_each_operand_mut(&mut |operand| operand.rewrite(replace)),
        }
    }
}
