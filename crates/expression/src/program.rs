//! The bound and typed tree of an expression. It is made by the constructors in `construct`, which apply MySQL's typing
//! rules, and never changes afterwards.

use junctor_model::collation::CollationId;
use junctor_model::id::ColumnIndex;
use junctor_model::value::Value;

use crate::function::Function;
use crate::result_type::ResultType;

/// A typed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it does.
    pub node: Node,
    /// What it gives: NULL or a value of `result.kind`.
    pub result: ResultType,
}

/// What an expression does. Operands are converted to the domain that the node names when it is evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A column of the row.
    Column {
        /// Its position in the row.
        index: ColumnIndex,
        /// How messages name it.
        name: Box<str>,
    },
    /// A value given with each execution.
    Parameter(u16),
    /// A value fixed in the statement.
    Constant(Value),
    /// DEFAULT of a column that has none: error 1364 under strict rules, else a warning and the value that stands for nothing.
    MissingDefault {
        /// The name of the column.
        column: Box<str>,
        /// What the column gets where that is a warning.
        value: Value,
    },
    /// The operand's value as this node's kind, as assignments between kinds do it.
    Convert(Box<Expression>),
    /// CAST and CONVERT.
    Cast(CastTarget, Box<Expression>),
    /// COLLATE: the operand's value under another collation.
    Collate(Box<Expression>),
    /// A comparison of two operands.
    Compare(CompareOperator, Domain, Box<[Expression; 2]>),
    /// True if all are.
    And(Box<[Expression]>),
    /// True if one is.
    Or(Box<[Expression]>),
    /// True if exactly one is.
    Xor(Box<[Expression; 2]>),
    /// True if the operand is false.
    Not(Box<Expression>),
    /// IS [NOT] NULL, TRUE, FALSE; never NULL itself.
    Is {
        /// What is asked.
        test: IsTest,
        /// IS NOT.
        negated: bool,
        /// The operand.
        operand: Box<Expression>,
    },
    /// BETWEEN: value, low and high, with the domains of both comparisons.
    Between {
        /// NOT BETWEEN.
        negated: bool,
        /// How the value compares with low and with high.
        domains: [Domain; 2],
        /// Value, low, high.
        operands: Box<[Expression; 3]>,
    },
    /// IN with a list of expressions, each with the domain in which it is compared.
    InList {
        /// NOT IN.
        negated: bool,
        /// The value looked for.
        operand: Box<Expression>,
        /// Where it is looked for.
        list: Box<[(Domain, Expression)]>,
    },
    /// IN with a folded list: one parameter holds all the values.
    InParameters {
        /// NOT IN.
        negated: bool,
        /// How the value compares with those of the list.
        domain: Domain,
        /// The value looked for.
        operand: Box<Expression>,
        /// The ordinal of the parameter.
        parameter: u16,
    },
    /// LIKE.
    Like {
        /// NOT LIKE.
        negated: bool,
        /// Which characters are equal.
        collation: CollationId,
        /// The escape character; none when ESCAPE ''.
        escape: Option<char>,
        /// Text and pattern.
        operands: Box<[Expression; 2]>,
    },
    /// + - * / DIV %; the domain of the calculation is the kind of the result (of the operands for DIV).
    Arithmetic(ArithmeticOperator, Box<[Expression; 2]>),
    /// Unary minus.
    Negate(Box<Expression>),
    /// & | ^ << >> on unsigned integers of 64 bits.
    Bits(BitOperator, Box<[Expression; 2]>),
    /// ~.
    BitNot(Box<Expression>),
    /// CASE without operand: conditions with results, and the ELSE.
    Case {
        /// WHEN and THEN.
        branches: Box<[(Expression, Expression)]>,
        /// ELSE; NULL when missing.
        otherwise: Option<Box<Expression>>,
    },
    /// The first that is not NULL.
    Coalesce(Box<[Expression]>),
    /// NULL when both are equal in the domain, else the first.
    NullIf(Domain, Box<[Expression; 2]>),
    /// A function of the table.
    Call(&'static Function, Box<[Expression]>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// As integers, signed or not, exactly.
    Integer,
    /// As exact numbers.
    Decimal,
    /// As doubles.
    Double,
    /// As numbers of whatever kind the values turn out to be; a text that is an integer is compared exactly.
    Number,
    /// As strings of a collation.
    String(CollationId),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOperator {
    /// =
    Equal,
    /// <=>: equal, where NULL equals NULL; never NULL itself.
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

/// What IS asks.
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
        /// All digits, 1 to 65.
        precision: u8,
        /// Digits after the point, 0 to 30.
        scale: u8,
    },
    /// CHAR, cut to `length` characters.
    Char {
        /// Characters at most.
        length: Option<u32>,
        /// The collation of the result.
        collation: CollationId,
    },
    /// BINARY, cut or filled with zero bytes to `length` bytes.
    Binary {
        /// Bytes exactly.
        length: Option<u32>,
    },
}

impl CompareOperator {
    /// The sign as SQL writes it.
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

    /// The operator that gives the same with both operands exchanged.
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
    /// The sign as SQL writes it.
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
    /// The sign as SQL writes it.
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
    /// The column that this is, when it is nothing else.
    #[inline]
    pub fn as_column(&self) -> Option<ColumnIndex> {
        match &self.node {
            Node::Column { index, .. } => Some(*index),
            _ => None,
        }
    }

    /// Calls `visit` for this expression and every one within it, outer ones first.
    pub fn visit<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(self);
        self.for_each_operand(&mut |operand| operand.visit(visit));
    }

    /// Whether the value is the same for every row and execution.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.visit(&mut |expression| {
            constant &= match &expression.node {
                Node::Column { .. } | Node::Parameter(_) | Node::InParameters { .. } | Node::MissingDefault { .. } => {
                    false
                }
                Node::Call(function, _) => function.is_deterministic,
                _ => true,
            };
        });
        constant
    }

    /// Calls `visit` for each direct operand in the order of evaluation.
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
}

#[cfg(test)]
mod tests;
