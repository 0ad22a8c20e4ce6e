//! Expressions as written, before names are resolved and types are known.

/// The place of a value that comes with the execution: the n-th `?` of the text, or the n-th literal (or list of
/// literals) that the shape scanner lifted, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ordinal(pub u32);

/// An expression. Its height is at most [`super::limit::NESTING_MAX`].
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant.
    Literal(Literal),
    /// A value that comes with the execution.
    Parameter(Ordinal),
    /// A column, possibly qualified.
    Column(Box<ColumnReference>),
    /// `@name`
    UserVariable(String),
    /// `@name := value`
    AssignUserVariable {
        /// The variable's name without `@`.
        name: String,
        /// What it becomes.
        value: Box<Expression>,
    },
    /// `@@name`, `@@session.name`, `@@global.name`
    SystemVariable(SystemVariable),
    /// An operator before its operand.
    Unary {
        /// The operator.
        operator: UnaryOperator,
        /// The operand.
        operand: Box<Expression>,
    },
    /// An operator between two operands.
    Binary {
        /// The operator.
        operator: BinaryOperator,
        /// The operand before it.
        left: Box<Expression>,
        /// The operand after it.
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
        /// What is compared.
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
        /// What is looked up; a [`Expression::Row`] for row constructors.
        operand: Box<Expression>,
        /// Where it is looked up.
        list: InList,
    },
    /// `operand IS [NOT] ...`
    Is {
        /// Whether NOT is written.
        negated: bool,
        /// What is tested.
        operand: Box<Expression>,
        /// For what.
        test: IsTest,
    },
    /// `operand [NOT] LIKE pattern [ESCAPE escape]`
    Like {
        /// Whether NOT is written.
        negated: bool,
        /// What is matched.
        operand: Box<Expression>,
        /// The pattern.
        pattern: Box<Expression>,
        /// The escape character if it is not the backslash.
        escape: Option<Box<Expression>>,
    },
    /// `operand [NOT] REGEXP pattern`
    Regexp {
        /// Whether NOT is written.
        negated: bool,
        /// What is matched.
        operand: Box<Expression>,
        /// The pattern.
        pattern: Box<Expression>,
    },
    /// `CASE [operand] WHEN ... THEN ... [ELSE ...] END`
    Case(Box<Case>),
    /// `CAST(operand AS target)`, `CONVERT(operand, target)`, `BINARY operand`
    Cast {
        /// What is converted.
        operand: Box<Expression>,
        /// Into what.
        target: CastTarget,
    },
    /// `CONVERT(operand USING character_set)`
    ConvertUsing {
        /// What is converted.
        operand: Box<Expression>,
        /// The name of the character set.
        character_set: String,
    },
    /// `operand COLLATE collation`
    Collate {
        /// What is given another collation.
        operand: Box<Expression>,
        /// The collation's name.
        collation: String,
    },
    /// A function call by name, aggregates among them.
    Function(Box<FunctionCall>),
    /// `TRIM([side] [removed FROM] operand)`
    Trim {
        /// Where characters are removed.
        side: TrimSide,
        /// What is removed if not spaces.
        removed: Option<Box<Expression>>,
        /// From what.
        operand: Box<Expression>,
    },
    /// `(a, b, ...)` or `ROW(a, b, ...)` with at least two members
    Row(Vec<Expression>),
    /// `DEFAULT` as a whole value, or `DEFAULT(column)`
    Default(Option<Box<ColumnReference>>),
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE
    InsertedValue(Box<ColumnReference>),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `NULL`
    Null,
    /// `TRUE` or `FALSE`
    Boolean(bool),
    /// An integer whose magnitude fits in 64 bits. A minus sign directly before a number is part of it.
    Integer(i128),
    /// A number with a full stop, or an integer beyond 64 bits: its text with the sign.
    Decimal(String),
    /// A number with an exponent.
    Double(f64),
    /// A string.
    String(StringLiteral),
    /// `x'...'` or `0x...`
    Hexadecimal(Vec<u8>),
    /// `b'...'` or `0b...`
    Bits(Vec<u8>),
    /// `DATE '...'`, `TIME '...'`, `TIMESTAMP '...'`
    Temporal {
        /// Which of them.
        kind: TemporalKind,
        /// What stands between the quotes, escapes replaced.
        text: Vec<u8>,
    },
}

/// A string constant, escapes replaced and adjacent strings joined.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StringLiteral {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The character set of `_charset'...'` or `N'...'` (`utf8mb3`); the connection's if there is none.
    pub character_set: Option<String>,
}

/// Kinds of temporal literal.
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
    /// The scope as written.
    pub scope: Option<VariableScope>,
    /// The name as written; with a full stop for variables of components.
    pub name: String,
}

/// The scopes of system variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    /// This session: SESSION, LOCAL.
    Session,
    /// Sessions that begin later.
    Global,
    /// Global, and kept over a restart.
    Persist,
    /// Kept over a restart only.
    PersistOnly,
}

/// Operators before their operand. There is no unary plus: it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperator {
    /// `-`
    Minus,
    /// `~`
    BitNot,
    /// `NOT` or `!`
    Not,
}

/// Operators between two operands, AND and OR apart.
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
    /// Whether it compares.
    pub fn is_comparison(self) -> bool {
        use BinaryOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, NullSafeEqual};
        matches!(self, Equal | NullSafeEqual | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual)
    }
}

/// The right side of IN.
#[derive(Clone, Debug, PartialEq)]
pub enum InList {
    /// The members as written.
    Expressions(Vec<Expression>),
    /// A list of literals of one class and any length, which comes with the execution.
    Parameters(Ordinal),
}

/// What IS tests for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IsTest {
    Null,
    True,
    False,
    /// NULL, of a truth value.
    Unknown,
}

/// A CASE expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What the branches are compared with; without it they are conditions.
    pub operand: Option<Expression>,
    /// At least one branch.
    pub branches: Vec<CaseBranch>,
    /// The value if no branch fits; NULL if not written.
    pub otherwise: Option<Expression>,
}

/// `WHEN condition THEN value`
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CaseBranch {
    pub condition: Expression,
    pub value: Expression,
}

/// The types of CAST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastTarget {
    /// `SIGNED [INTEGER]`
    Signed,
    /// `UNSIGNED [INTEGER]`
    Unsigned,
    /// `BINARY[(length)]`, and the operator BINARY; length in bytes
    Binary(Option<u32>),
    /// `CHAR[(length)] [CHARACTER SET name]`; length in characters
    Char {
        /// Greatest length in characters.
        length: Option<u32>,
        /// The character set's name.
        character_set: Option<String>,
    },
    /// `DECIMAL[(precision[, scale])]`
    Decimal {
        /// Digits in all.
        precision: Option<u32>,
        /// Digits after the full stop.
        scale: Option<u32>,
    },
    /// `DOUBLE`, `REAL`
    Double,
    /// `FLOAT[(precision)]`, in bits
    Float(Option<u32>),
    /// `DATE`
    Date,
    /// `TIME[(digits)]`
    Time(Option<u32>),
    /// `DATETIME[(digits)]`
    DateTime(Option<u32>),
    /// `YEAR`
    Year,
    /// `JSON`
    Json,
}

/// `[database.]name([DISTINCT] arguments)`
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FunctionCall {
    /// The database of a stored function.
    pub database: Option<String>,
    /// The name as written. Rewritten forms have one name: `SUBSTRING(a FROM b FOR c)` is `SUBSTRING(a, b, c)`,
    /// `POSITION(a IN b)` is `LOCATE(a, b)`; `CURRENT_TIMESTAMP` without brackets is a call without arguments.
    pub name: String,
    /// Whether DISTINCT is written, which only aggregates may have.
    pub distinct: bool,
    /// Whether the argument is `*`, as in `COUNT(*)`; there are no others then.
    pub star: bool,
    /// The arguments.
    pub arguments: Vec<Expression>,
}

/// Where TRIM removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

impl Expression {
    /// The same value with its sign changed: a number is negated, anything else gets an operator.
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
