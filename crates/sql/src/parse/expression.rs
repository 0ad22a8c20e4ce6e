//! The syntax tree of expressions, before names are resolved and types are known.

use junctor_expression::function::Setting;

use super::statement::{OrderItem, Select};
use super::window::{Over, WindowDefinition};

/// The number of a parameter, from 0. A parameter is a value that the execution supplies: the n-th `?` of the
/// text, or the n-th literal (or list of literals) that was lifted, which means replaced by a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParameterNumber(pub u32);

/// An expression in the syntax tree. The tree's height is at most [`super::limit::NESTING_MAX`], so recursion
/// over it is safe.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant of the statement's text.
    Literal(Literal),
    /// A value that the execution supplies.
    Parameter(ParameterNumber),
    /// A column, which may be qualified.
    Column(Box<ColumnReference>),
    /// `@name`
    UserVariable(String),
    /// `@name := value`
    AssignUserVariable {
        /// The variable's name without `@`.
        name: String,
        /// The value to assign, which is also the expression's value.
        value: Box<Expression>,
    },
    /// `@@name`, `@@session.name`, `@@global.name`
    SystemVariable(SystemVariable),
    /// An operator before its operand. Unary plus is dropped.
    Unary {
        /// The prefix operator.
        operator: UnaryOperator,
        /// The operand after it.
        operand: Box<Expression>,
    },
    /// An operator between two operands, except AND and OR.
    Binary {
        /// The infix operator.
        operator: BinaryOperator,
        /// The left operand.
        left: Box<Expression>,
        /// The right operand.
        right: Box<Expression>,
    },
    /// Two or more operands joined by AND.
    And(Vec<Expression>),
    /// Two or more operands joined by OR.
    Or(Vec<Expression>),
    /// `operand [NOT] BETWEEN low AND high`
    Between {
        /// Whether NOT is written.
        negated: bool,
        /// The value to compare.
        operand: Box<Expression>,
        /// Lower bound, inclusive.
        low: Box<Expression>,
        /// Upper bound, inclusive.
        high: Box<Expression>,
    },
    /// `operand [NOT] IN (...)`
    InList {
        /// Whether NOT is written.
        negated: bool,
        /// The value to find; an [`Expression::Row`] for a row constructor.
        operand: Box<Expression>,
        /// The members to compare it with.
        list: InList,
    },
    /// `operand IS [NOT] ...`
    Is {
        /// Whether NOT is written.
        negated: bool,
        /// The value to test.
        operand: Box<Expression>,
        /// The property to test for.
        test: IsTest,
    },
    /// `operand [NOT] LIKE pattern [ESCAPE escape]`
    Like {
        /// Whether NOT is written.
        negated: bool,
        /// The string to match.
        operand: Box<Expression>,
        /// The pattern, in which `%` and `_` are wildcards.
        pattern: Box<Expression>,
        /// The escape character; `None` for the backslash.
        escape: Option<Box<Expression>>,
    },
    /// `CASE [operand] WHEN ... THEN ... [ELSE ...] END`
    Case(Box<Case>),
    /// `CAST(operand AS target)`, `CONVERT(operand, target)`, `BINARY operand`
    Cast {
        /// The value to convert.
        operand: Box<Expression>,
        /// The type to convert it to.
        target: CastTarget,
    },
    /// `CONVERT(operand USING character_set)`
    ConvertUsing {
        /// The string to convert.
        operand: Box<Expression>,
        /// The name of the target character set.
        character_set: String,
    },
    /// `operand COLLATE collation`
    Collate {
        /// The string whose collation changes.
        operand: Box<Expression>,
        /// The collation's name.
        collation: String,
    },
    /// A function call by name, including aggregates.
    Function(Box<FunctionCall>),
    /// `TRIM([side] [removed FROM] operand)`
    Trim {
        /// The side to remove characters from.
        side: TrimSide,
        /// The string to remove; `None` for spaces.
        removed: Option<Box<Expression>>,
        /// The string to trim.
        operand: Box<Expression>,
    },
    /// `(a, b, ...)` or `ROW(a, b, ...)` with at least two members.
    Row(Vec<Expression>),
    /// A query in brackets: a value, or a row where rows are compared.
    Subquery(Box<Select>),
    /// `EXISTS (query)`
    Exists(Box<Select>),
    /// `operand operator ANY|ALL (query)`. IN is `= ANY`, and NOT IN is `<> ALL`.
    Quantified {
        /// The comparison.
        operator: BinaryOperator,
        /// Whether the comparison must hold for all rows, not only for one.
        all: bool,
        /// The value to compare with the rows.
        operand: Box<Expression>,
        /// The rows.
        query: Box<Select>,
    },
    /// `DEFAULT` as a whole value, or `DEFAULT(column)`.
    Default(Option<Box<ColumnReference>>),
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE.
    InsertedValue(Box<ColumnReference>),
}

/// A constant as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `NULL`
    Null,
    /// `TRUE` or `FALSE`
    Boolean(bool),
    /// An integer whose magnitude fits in 64 bits. A minus sign directly before the number is part of it.
    Integer(i128),
    /// A number with a full stop, or an integer beyond 64 bits, as text with its sign.
    Decimal(String),
    /// A number with an exponent.
    Double(f64),
    /// A string in quotes.
    String(StringLiteral),
    /// `x'...'` or `0x...`
    Hexadecimal(Vec<u8>),
    /// `b'...'` or `0b...`
    Bits(Vec<u8>),
    /// `DATE '...'`, `TIME '...'`, `TIMESTAMP '...'`
    Temporal {
        /// The keyword before the string.
        kind: TemporalKind,
        /// The text between the quotes, with escapes replaced.
        text: Vec<u8>,
    },
}

/// A string constant, with escapes replaced and adjacent strings joined.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StringLiteral {
    /// The string's bytes in its character set.
    pub bytes: Vec<u8>,
    /// The character set of `_charset'...'`, or `utf8mb3` for `N'...'`; `None` for the connection's.
    pub character_set: Option<String>,
    /// Whether `bytes` are those of the character set: behind an introducer the digits of a hexadecimal
    /// literal, and the text of `N'...'`. Otherwise they are the statement's text.
    pub is_raw: bool,
}

/// The kinds of temporal literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TemporalKind {
    Date,
    Time,
    Timestamp,
}

/// `[[database.]table.]column`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnReference {
    /// The database's name.
    pub database: Option<String>,
    /// The table's name or alias.
    pub table: Option<String>,
    /// The column's name.
    pub name: String,
}

/// A system variable as an expression or as the target of SET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemVariable {
    /// The scope if written.
    pub scope: Option<VariableScope>,
    /// The name as in the statement. The name of a component's variable contains a dot.
    pub name: String,
}

/// The scopes of system variables, as written before their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    /// SESSION or LOCAL: this session only.
    Session,
    /// GLOBAL: the default of sessions that begin later.
    Global,
    /// PERSIST: global, and kept across a restart.
    Persist,
    /// PERSIST_ONLY: takes effect after a restart.
    PersistOnly,
}

/// Prefix operators. Unary plus is missing because it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`
    Minus,
    /// `~`
    BitNot,
    /// `NOT` or `!`
    Not,
}

/// Infix operators, except AND and OR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `XOR`
    Xor,
    /// `=`
    Equal,
    /// `<=>`
    NullSafeEqual,
    /// `<>`, `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `|`
    BitOr,
    /// `&`
    BitAnd,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `DIV`
    IntegerDivide,
    /// `%`, `MOD`
    Modulo,
    /// `^`
    BitXor,
}

impl BinaryOperator {
    /// Whether the operator is a comparison.
    pub fn is_comparison(self) -> bool {
        use BinaryOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, NullSafeEqual};
        matches!(self, Equal | NullSafeEqual | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual)
    }
}

/// The right side of IN.
#[derive(Clone, Debug, PartialEq)]
pub enum InList {
    /// The members of the list as written.
    Expressions(Vec<Expression>),
    /// A lifted list of literals of one class. The execution supplies its members and their number.
    Parameters(ParameterNumber),
}

/// The tests of IS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IsTest {
    Null,
    True,
    False,
    /// NULL as a truth value.
    Unknown,
}

/// A CASE expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The value with which the WHEN values of the branches are compared. If it is `None`, these are
    /// conditions.
    pub operand: Option<Expression>,
    /// The branches in order, at least one.
    pub branches: Vec<CaseBranch>,
    /// The value if no branch matches; `None` for NULL.
    pub otherwise: Option<Expression>,
}

/// `WHEN when THEN value`
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CaseBranch {
    pub when: Expression,
    pub value: Expression,
}

/// The target types of CAST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastTarget {
    /// `SIGNED [INTEGER]`
    Signed,
    /// `UNSIGNED [INTEGER]`
    Unsigned,
    /// `BINARY[(length)]` and the operator BINARY; the length is in bytes.
    Binary(Option<u32>),
    /// `CHAR[(length)] [CHARACTER SET name]`
    Char {
        /// Maximum length in characters.
        length: Option<u32>,
        /// The character set; `None` for the connection's.
        character_set: Option<String>,
    },
    /// `DECIMAL[(precision[, scale])]`
    Decimal {
        /// Total number of digits.
        precision: Option<u32>,
        /// Number of digits after the decimal point.
        scale: Option<u32>,
    },
    /// `type ARRAY`, for a multi-valued index.
    Array(Box<CastTarget>),
    /// `DOUBLE`, `REAL`
    Double,
    /// `FLOAT[(precision)]`; the precision is in bits.
    Float(Option<u32>),
    /// `DATE`
    Date,
    /// `TIME[(digits)]`; the digits of the fraction of a second.
    Time(Option<u32>),
    /// `DATETIME[(digits)]`; the digits of the fraction of a second.
    DateTime(Option<u32>),
    /// `YEAR`
    Year,
    /// `JSON`
    Json,
}

/// `[database.]name([DISTINCT] arguments)`
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FunctionCall {
    /// The database of a stored function, if qualified.
    pub database: Option<String>,
    /// The name as written. Special forms become plain calls: `SUBSTRING(a FROM b FOR c)` is `SUBSTRING(a, b,
    /// c)`, and `POSITION(a IN b)` is `LOCATE(a, b)`. `CURRENT_TIMESTAMP` without parentheses is a call
    /// without arguments.
    pub name: String,
    /// DISTINCT, which only aggregates accept.
    pub distinct: bool,
    /// Whether the argument is `*`, as in `COUNT(*)`; `arguments` is then empty.
    pub star: bool,
    /// The arguments in order.
    pub arguments: Vec<Expression>,
    /// The values of the session that the function needs, once they are added.
    pub settings: Vec<Expression>,
    /// ORDER BY of GROUP_CONCAT.
    pub order: Vec<OrderItem>,
    /// SEPARATOR of GROUP_CONCAT; `None` for a comma.
    pub separator: Option<Vec<u8>>,
    /// OVER of a window function.
    pub over: Option<Box<Over>>,
}

/// The aggregates that queries of one table without groups compute at the partitions.
const PARTIAL_AGGREGATES: [&str; 5] = ["COUNT", "SUM", "AVG", "MIN", "MAX"];
/// The other aggregates.
const TREE_AGGREGATES: [&str; 14] = [
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "GROUPING",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
];

/// Whether this is the name of an aggregate.
pub(crate) fn is_aggregate(name: &str) -> bool {
    let mut known = PARTIAL_AGGREGATES.iter().chain(&TREE_AGGREGATES);
    known.any(|known| known.eq_ignore_ascii_case(name) && *known != "GROUPING")
}

/// The side that TRIM removes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

impl FunctionCall {
    /// Whether the call is CURRENT_TIMESTAMP or a synonym: the only function that is a default without
    /// parentheses.
    pub fn is_current_timestamp(&self) -> bool {
        let names = ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"];
        self.database.is_none() && names.iter().any(|name| self.name.eq_ignore_ascii_case(name))
    }

    /// Whether the function is an aggregate, and no window function.
    pub fn is_aggregate(&self) -> bool {
        self.database.is_none() && self.over.is_none() && is_aggregate(&self.name)
    }

    /// Whether only a tree of operators computes the function.
    pub fn needs_tree(&self) -> bool {
        let is_one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(&self.name));
        let is_plain_count = self.name.eq_ignore_ascii_case("COUNT") && self.arguments.len() == 1;
        let is_distinct = self.distinct
            && !is_plain_count
            && !["MIN", "MAX"].iter().any(|known| known.eq_ignore_ascii_case(&self.name));
        let is_in_tree = is_one_of(&TREE_AGGREGATES) || is_one_of(&PARTIAL_AGGREGATES) && is_distinct;
        self.over.is_some() || self.database.is_none() && is_in_tree
    }

    /// Adds the values of the session that the function needs.
    pub fn add_settings(&mut self) {
        let Some(function) = junctor_expression::function::find(&self.name) else { return };
        if self.settings.is_empty() && self.database.is_none() {
            self.settings = function.settings.iter().map(|setting| expression_of(*setting)).collect();
        }
    }
}

fn expression_of(setting: Setting) -> Expression {
    match setting {
        Setting::Variable(name) => Expression::SystemVariable(SystemVariable { scope: None, name: name.to_owned() }),
        Setting::Session(name) => Expression::call(name, Vec::new()),
    }
}

impl Expression {
    /// A call of a function.
    pub fn call(name: &str, arguments: Vec<Expression>) -> Expression {
        let call = FunctionCall { name: name.to_owned(), arguments, ..FunctionCall::default() };
        Expression::Function(Box::new(call))
    }

    /// Calls `visit` for each direct operand. Subqueries are not entered.
    pub fn for_each_operand<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        match self {
            Expression::Unary { operand, .. }
            | Expression::Is { operand, .. }
            | Expression::Cast { operand, .. }
            | Expression::ConvertUsing { operand, .. }
            | Expression::Collate { operand, .. } => visit(operand),
            Expression::Binary { left, right, .. } => [left, right].into_iter().for_each(|operand| visit(operand)),
            Expression::And(operands) | Expression::Or(operands) | Expression::Row(operands) => {
                operands.iter().for_each(visit);
            }
            Expression::Between { operand, low, high, .. } => {
                [operand, low, high].into_iter().for_each(|operand| visit(operand));
            }
            Expression::InList { operand, list, .. } => {
                visit(operand);
                if let InList::Expressions(members) = list {
                    members.iter().for_each(visit);
                }
            }
            Expression::Like { operand, pattern, escape, .. } => {
                [operand, pattern].into_iter().for_each(|operand| visit(operand));
                escape.iter().for_each(|escape| visit(escape));
            }
            Expression::Case(case) => {
                case.operand.iter().for_each(&mut *visit);
                for CaseBranch { when, value } in &case.branches {
                    visit(when);
                    visit(value);
                }
                case.otherwise.iter().for_each(visit);
            }
            Expression::Function(call) => {
                let order = call.order.iter().map(|item| &item.expression);
                call.arguments.iter().chain(&call.settings).chain(order).for_each(&mut *visit);
                let window = call.over.iter().filter_map(|over| over.definition());
                window.flat_map(WindowDefinition::expressions).for_each(visit);
            }
            Expression::Trim { removed, operand, .. } => {
                removed.iter().for_each(|removed| visit(removed));
                visit(operand);
            }
            Expression::AssignUserVariable { value: operand, .. } | Expression::Quantified { operand, .. } => {
                visit(operand);
            }
            Expression::Subquery(_)
            | Expression::Exists(_)
            | Expression::Literal(_)
            | Expression::Parameter(_)
            | Expression::Column(_)
            | Expression::UserVariable(_)
            | Expression::SystemVariable(_)
            | Expression::Default(_)
            | Expression::InsertedValue(_) => {}
        }
    }

    /// NOT before the expression, if `negated`.
    pub fn negated_if(self, negated: bool) -> Expression {
        match negated {
            true => Expression::Unary { operator: UnaryOperator::Not, operand: Box::new(self) },
            false => self,
        }
    }

    /// The expression with the opposite sign. A non-negative number is negated; any other expression gets the
    /// operator.
    pub fn negate(self) -> Expression {
        match self {
            Expression::Literal(Literal::Integer(value)) if value >= 0 => Expression::Literal(Literal::Integer(-value)),
            Expression::Literal(Literal::Double(value)) if value.is_sign_positive() => {
                Expression::Literal(Literal::Double(-value))
            }
            Expression::Literal(Literal::Decimal(text)) if !text.starts_with('-') => {
                Expression::Literal(Literal::Decimal(format!("-{text}")))
            }
            operand => Expression::Unary { operator: UnaryOperator::Minus, operand: Box::new(operand) },
        }
    }
}
