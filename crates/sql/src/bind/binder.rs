//! Binds expressions: resolves their names and determines their types.

use junctor_expression::{CompareOperator, Expression, IsTest, Kind, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::temporal::{Temporal, TemporalKind};
use junctor_model::value::Value;
use junctor_signals::program::{Aggregate, Projection};

use super::block::SlotSpace;
use super::column_default::default_of;
use super::group_function::GroupFunctions;
use super::literal::{among_numbers, are_plain_numbers, as_condition, bind_literal, compared, literal_among_numbers};
use super::scope::{RowSource, shown};
use super::{Environment, ParameterKind, Scope, SelectList, item_named, message};
use crate::parse::expression as ast;
use crate::parse::statement::{RowAlias, Select, SelectItem};
use crate::parse::window::NamedWindow;

/// The clause that an error message names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// The select list, SET or VALUES.
    FieldList,
    /// WHERE.
    Where,
    /// ORDER BY.
    Order,
    /// HAVING.
    Having,
    /// RETURNING.
    Returning,
    /// ON.
    On,
    /// GROUP BY.
    Group,
    /// The argument of a table function.
    From,
    /// PARTITION BY of a window.
    Partition,
    /// ORDER BY of a window.
    WindowOrder,
}

impl Clause {
    /// The clause's name in MySQL's messages.
    pub fn name(self) -> &'static str {
        match self {
            Clause::FieldList => "field list",
            Clause::Where => "where clause",
            Clause::Order => "order clause",
            Clause::Having => "having clause",
            Clause::Returning => "RETURNING",
            Clause::On => "on clause",
            Clause::Group => "group statement",
            Clause::From => "a table function argument",
            Clause::Partition => "window partition by",
            Clause::WindowOrder => "window order by",
        }
    }
}

/// Whether aggregates are allowed at the current position.
#[derive(Debug)]
pub enum Aggregation<'a> {
    /// An aggregate is error 1111.
    Forbidden,
    /// Aggregates are allowed. Each becomes a parameter, which receives the aggregate's result.
    Allowed {
        /// Number of the first aggregate's parameter. The other aggregates follow it.
        first_parameter: u16,
        /// The distinct aggregates found so far, in the order of their parameters.
        aggregates: Vec<Aggregate>,
    },
    /// Aggregates of a query block are allowed. Each becomes a slot of this space.
    Grouped {
        /// The slots of the block.
        space: &'a SlotSpace,
        /// The aggregates found so far.
        functions: GroupFunctions,
    },
}

/// Plans the subqueries of the expressions of a query block.
pub trait Subqueries {
    /// The value of a subquery. `is_in_aggregate` tells whether the rows of a group need it.
    fn bind_subquery(&self, form: SubqueryForm<'_>, is_in_aggregate: bool) -> Result<Expression>;
}

/// The use of a subquery in an expression.
#[derive(Debug)]
pub enum SubqueryForm<'q> {
    /// The value of its only row.
    Value(&'q Select),
    /// Whether it has a row.
    Exists(&'q Select),
    /// Whether the comparison of the operands holds for one of its rows, or for all.
    Quantified(CompareOperator, bool, Vec<Expression>, &'q Select),
    /// Whether the comparison of the operands holds for its only row.
    Row(CompareOperator, Vec<Expression>, &'q Select),
}

/// The row that INSERT tried to insert, to which ON DUPLICATE KEY UPDATE refers.
#[derive(Clone, Copy, Debug)]
pub struct InsertedRow<'a> {
    /// Number of the first column's parameter. The other columns follow in table order.
    pub first_parameter: u16,
    /// The alias of the row and aliases of its columns. `VALUES(column)` needs none.
    pub alias: Option<&'a RowAlias>,
}

/// A row of the query of INSERT ... SELECT. ON DUPLICATE KEY UPDATE may refer to columns of the table that
/// the query reads.
#[derive(Clone, Debug)]
pub struct SelectedRow<'a> {
    /// The query's table.
    pub scope: Scope<'a>,
    /// Number of the first referenced column's parameter. The others follow in the order of `columns`.
    pub first_parameter: u16,
    /// The columns referenced so far, each once.
    pub columns: Vec<ColumnNumber>,
}

/// Binds the expressions of one statement.
pub struct Binder<'a> {
    /// The schema, the session's settings and the parameters.
    pub environment: &'a Environment<'a>,
    /// The columns that names can refer to.
    pub scope: Scope<'a>,
    /// The clause that is being bound, for error messages.
    pub clause: Clause,
    /// Whether aggregates are allowed at the current position.
    pub aggregation: Aggregation<'a>,
    /// Whether an argument of an aggregate is being bound.
    pub is_in_aggregate: bool,
    /// The windows of WINDOW; `None` where no window function is allowed.
    pub windows: Option<&'a [NamedWindow]>,
    /// Plans subqueries; `None` where they are not supported.
    pub subqueries: Option<&'a dyn Subqueries>,
    /// The first column bound outside an aggregate since the caller cleared this field, as error messages
    /// show it.
    pub first_bare_column: Option<String>,
    /// The select list as written, with its bound values: HAVING and ORDER BY can refer to its aliases.
    /// `None` while names refer only to columns.
    pub named: Option<(&'a [SelectItem], Projection)>,
    /// The values of GROUP BY. In HAVING, a name of one of their columns is that column, not an alias.
    pub group_keys: Vec<Expression>,
    /// Whether a column outside an aggregate becomes an ANY_VALUE aggregate.
    pub wraps_bare_columns: bool,
    /// The row that INSERT tried to insert, in ON DUPLICATE KEY UPDATE.
    pub inserted: Option<InsertedRow<'a>>,
    /// The target columns of the INSERT, in the order of the row alias's columns.
    pub inserted_names: Vec<String>,
    /// The row of the INSERT's query, in ON DUPLICATE KEY UPDATE.
    pub selected: Option<SelectedRow<'a>>,
    /// Whether a constant was bound whose value may differ in another execution.
    pub is_volatile: bool,
}

impl<'a> Binder<'a> {
    /// A binder for a statement without aggregates.
    pub fn new(environment: &'a Environment<'a>, scope: Scope<'a>) -> Binder<'a> {
        Binder {
            environment,
            scope,
            clause: Clause::FieldList,
            aggregation: Aggregation::Forbidden,
            is_in_aggregate: false,
            windows: None,
            subqueries: None,
            first_bare_column: None,
            named: None,
            group_keys: Vec::new(),
            wraps_bare_columns: false,
            inserted: None,
            inserted_names: Vec::new(),
            selected: None,
            is_volatile: false,
        }
    }

    /// Binds an expression of `clause`. Error messages name this clause until the next call.
    pub fn bind_in(&mut self, clause: Clause, expression: &ast::Expression) -> Result<Expression> {
        self.clause = clause;
        self.bind(expression)
    }

    /// Binds an expression. Errors: 1054, 1111, 1235, 1241, 1267, 1305, and the errors of the expression's
    /// constructors.
    pub fn bind(&mut self, expression: &ast::Expression) -> Result<Expression> {
        let bound = self.bind_node(expression)?;
        self.is_volatile |= bound.needs_day();
        Ok(bound)
    }

    fn bind_node(&mut self, expression: &ast::Expression) -> Result<Expression> {
        use ast::Expression as Ast;
        match expression {
            Ast::Literal(literal) => bind_literal(literal, self.environment),
            Ast::Parameter(ordinal) => self.parameter(*ordinal),
            Ast::Column(reference) => self.column(reference),
            Ast::UserVariable(_) | Ast::SystemVariable(_) => self.variable(expression),
            Ast::AssignUserVariable { name, value } => self.assign_variable(name, value),
            Ast::Unary { operator, operand } => self.unary(*operator, operand),
            Ast::Binary { operator, left, right } => self.binary(*operator, left, right),
            Ast::And(operands) => Ok(Expression::and(self.conditions(operands)?)),
            Ast::Or(operands) => Ok(Expression::or(self.conditions(operands)?)),
            Ast::Between { negated, operand, low, high } => {
                let parts = [&**operand, &**low, &**high];
                let mut bound = [self.bind(operand)?, self.bind(low)?, self.bind(high)?];
                if bound.iter().any(|part| part.result.is_number()) {
                    let as_number = if are_plain_numbers(bound.iter()) { among_numbers } else { literal_among_numbers };
                    let mut parts = parts.into_iter();
                    bound = bound.map(|bound| parts.next().map_or(Expression::null(), |part| as_number(part, bound)));
                }
                let [operand, low, high] = bound;
                Expression::between(*negated, operand, low, high)
            }
            Ast::InList { negated, operand, list } => self.in_list(*negated, operand, list),
            Ast::Is { negated, operand, test } => {
                let test = match test {
                    ast::IsTest::Null | ast::IsTest::Unknown => IsTest::Null,
                    ast::IsTest::True => IsTest::True,
                    ast::IsTest::False => IsTest::False,
                };
                let bound = self.bind(operand)?;
                let operand = match test {
                    IsTest::Null => among_numbers(operand, bound),
                    IsTest::True | IsTest::False => as_condition(operand, bound)?,
                };
                match test == IsTest::Null && !*negated && self.clause == Clause::Where && has_zero_date(&operand) {
                    true => {
                        let kind = operand.result.kind;
                        let zero = Expression::constant_of_type(zero_date(kind), ResultType::temporal(kind, 0));
                        Expression::comparison(CompareOperator::Equal, operand, zero)
                    }
                    false => Ok(Expression::is(test, *negated, operand)),
                }
            }
            Ast::Like { negated, operand, pattern, escape } => {
                let escape = self.escape(escape.as_deref())?;
                let (operand, pattern) = (self.bind(operand)?, self.bind(pattern)?);
                Expression::like(*negated, operand, pattern, escape)
            }
            Ast::Case(case) => self.case(case),
            Ast::Cast { operand, target } => self.cast(operand, target),
            Ast::ConvertUsing { operand, character_set } => self.convert_using(operand, character_set),
            Ast::Collate { operand, collation } => {
                let operand = self.bind(operand)?;
                Expression::collate(operand, CollationId::named(collation)?)
            }
            Ast::Function(_) => self.function(expression),
            Ast::Trim { side, removed, operand } => self.trim(*side, removed.as_deref(), operand),
            Ast::Row(_) => Err(message::operand_columns(1)),
            Ast::Subquery(query) => match query.only_value().filter(|value| value.is_stateful()) {
                Some(value) => self.bind(value),
                None => self.subquery(SubqueryForm::Value(query)),
            },
            Ast::Exists(query) => self.subquery(SubqueryForm::Exists(query)),
            Ast::Quantified { operator, all, operand, query } => {
                let operands = match &**operand {
                    Ast::Row(members) => self.bind_all(members)?,
                    operand => vec![self.bind(operand)?],
                };
                self.subquery(SubqueryForm::Quantified(compare_operator(*operator)?, *all, operands, query))
            }
            Ast::Default(Some(reference)) => self.default_of(reference),
            Ast::Default(None) => Err(Error::not_supported("DEFAULT in expressions")),
            Ast::InsertedValue(reference) => self.inserted_value(reference),
        }
    }

    /// The value of a subquery. Error: 1235 where none is supported.
    pub(super) fn subquery(&mut self, form: SubqueryForm<'_>) -> Result<Expression> {
        match self.subqueries {
            Some(subqueries) => subqueries.bind_subquery(form, self.is_in_aggregate),
            None => Err(Error::not_supported("a subquery in this statement")),
        }
    }

    /// Binds WHERE and HAVING as one condition. Without groups, HAVING is a second WHERE that can refer to
    /// aliases of the select list. Errors: those of [`Self::bind`], and 1235 for HAVING with aggregates.
    pub fn bind_conditions(&mut self, select: &'a Select, list: &SelectList) -> Result<Option<Expression>> {
        let filter = select.filter.as_ref().map(|filter| as_condition(filter, self.bind_in(Clause::Where, filter)?));
        let filter = filter.transpose()?;
        let Some(having) = &select.having else { return Ok(filter) };
        if !list.aggregates.is_empty() {
            return Err(Error::not_supported("HAVING of aggregates"));
        }
        self.named = Some((&select.projection, list.projection.clone()));
        let bound = self.bind_in(Clause::Having, having).map_err(|error| match error.code {
            // MySQL accepts an aggregate here, so the error must not say that it is invalid.
            ErrorCode::InvalidUseOfGroup => Error::not_supported("HAVING of aggregates"),
            _ => error,
        })?;
        self.named = None;
        let having = as_condition(having, bound)?;
        Ok(Some(match filter {
            Some(filter) => Expression::and(vec![filter, having]),
            None => having,
        }))
    }

    /// Binds expressions in order; stops at the first error.
    pub fn bind_all(&mut self, expressions: &[ast::Expression]) -> Result<Vec<Expression>> {
        expressions.iter().map(|expression| self.bind(expression)).collect()
    }

    /// Binds conditions. A hexadecimal literal is a number there.
    fn conditions(&mut self, operands: &[ast::Expression]) -> Result<Vec<Expression>> {
        operands.iter().map(|operand| as_condition(operand, self.bind(operand)?)).collect()
    }

    fn parameter(&self, ordinal: ast::ParameterNumber) -> Result<Expression> {
        let kind = self.environment.parameters.get(ordinal.0 as usize).filter(|kind| !kind.is_list);
        match (kind, u16::try_from(ordinal.0)) {
            (Some(ParameterKind { exact: Some(result), .. }), Ok(ordinal)) => {
                Ok(Expression::parameter_of_type(ordinal, *result))
            }
            (Some(kind), Ok(ordinal)) => {
                Ok(Expression::parameter(ordinal, kind.kind, kind.scale, self.environment.collation))
            }
            _ => Err(Error::new(ErrorCode::UnknownError, format!("Parameter {} has no value", ordinal.0))),
        }
    }

    fn column(&mut self, reference: &ast::ColumnReference) -> Result<Expression> {
        // In an aggregate, a column of the table takes precedence over an alias.
        let is_column = || self.is_in_aggregate && self.scope.resolve(reference, self.clause.name()).is_ok();
        if self.clause == Clause::Having
            && reference.table.is_none()
            && !is_column()
            && let Some((items, projection)) = &self.named
            && let Some(item) = item_named(items, projection, &reference.name, self.clause)?
        {
            match self.grouped(reference) {
                None => return Ok(item.clone()),
                // The column in GROUP BY takes precedence over the alias.
                Some(column) if column != *item => {
                    self.environment.warn(&message::ambiguous_column(&reference.name, self.clause.name()));
                }
                Some(_) => {}
            }
        }
        if let Some(inserted) = self.inserted_column(reference)? {
            return Ok(inserted);
        }
        if let Some(selected) = self.selected_column(reference)? {
            return Ok(selected);
        }
        let found = match self.scope.resolve(reference, self.clause.name()) {
            // In an expression of ORDER BY, a column of the table takes precedence over an alias.
            Err(error) if self.clause == Clause::Order && reference.table.is_none() => {
                let Some((items, projection)) = &self.named else { return Err(error) };
                let item = item_named(items, projection, &reference.name, self.clause)?;
                return item.cloned().ok_or(error);
            }
            found => found?,
        };
        self.environment.note_read(&found);
        if self.first_bare_column.is_none() {
            let Scope { database, table, .. } = self.scope;
            self.first_bare_column = Some(format!("{database}.{table}.{}", found.column.org_name));
        }
        if let RowSource::Block(_) = self.scope.source {
            return Ok(found.expression);
        }
        let column = self.wrap_bare_column(&found.expression).unwrap_or(found.expression);
        match self.environment.modes.pads_char && self.clause == Clause::FieldList {
            true => self.padded(found.index, column),
            false => Ok(column),
        }
    }

    /// The column in GROUP BY that has the name.
    fn grouped(&self, reference: &ast::ColumnReference) -> Option<Expression> {
        if self.group_keys.is_empty() {
            return None;
        }
        let found = self.scope.resolve(reference, self.clause.name()).ok()?.expression;
        self.group_keys.contains(&found).then_some(found)
    }

    /// The value of a CHAR column in the length of its type, other values unchanged.
    pub(super) fn padded(&self, index: ColumnNumber, value: Expression) -> Result<Expression> {
        let RowSource::Table(table) = self.scope.source else { return Ok(value) };
        let column_type = &table.definition.columns[usize::from(index.0)].column_type;
        match column_type.is_char() {
            true => {
                let length = Value::Int(i64::from(column_type.length()));
                let length = Expression::constant(length, self.environment.collation);
                Expression::call("PAD CHAR", vec![value, length])
            }
            false => Ok(value),
        }
    }

    /// `VALUES(column)`; NULL outside ON DUPLICATE KEY UPDATE, as in MySQL.
    fn inserted_value(&mut self, reference: &ast::ColumnReference) -> Result<Expression> {
        let found = self.scope.resolve(reference, self.clause.name())?;
        let Some(InsertedRow { first_parameter, .. }) = self.inserted else { return Ok(Expression::null()) };
        let ordinal = first_parameter.saturating_add(found.index.0);
        Ok(Expression::parameter_of_type(ordinal, found.expression.result.with_nullable(true)))
    }

    /// A column of the row that INSERT tried to insert, by the row alias or by an alias of the column.
    fn inserted_column(&mut self, reference: &ast::ColumnReference) -> Result<Option<Expression>> {
        let Some(InsertedRow { alias: Some(alias), .. }) = self.inserted else { return Ok(None) };
        let is_qualified = match (&reference.database, &reference.table) {
            (None, Some(table)) => *table == alias.name,
            (Some(_), _) => false,
            (None, None) => !alias.columns.is_empty(),
        };
        if !is_qualified {
            return Ok(None);
        }
        let named = match alias.columns.is_empty() {
            true => Some(reference.name.clone()),
            false => {
                let place = alias.columns.iter().position(|name| name.eq_ignore_ascii_case(&reference.name));
                place.and_then(|place| self.inserted_names.get(place).cloned())
            }
        };
        match named {
            Some(name) => {
                let column = ast::ColumnReference { database: None, table: None, name };
                self.inserted_value(&column).map(Some)
            }
            None if reference.table.is_some() => Err(message::unknown_column(&shown(reference), self.clause.name())),
            None => Ok(None),
        }
    }

    /// A column of the query's row. Error 1052 if the target table has a column of that name as well.
    fn selected_column(&mut self, reference: &ast::ColumnReference) -> Result<Option<Expression>> {
        let clause = self.clause.name();
        let Some(selected) = &mut self.selected else { return Ok(None) };
        let Ok(found) = selected.scope.resolve(reference, clause) else { return Ok(None) };
        if self.scope.resolve(reference, clause).is_ok() {
            return Err(message::ambiguous_column(&shown(reference), clause));
        }
        self.environment.note_read(&found);
        let known = selected.columns.iter().position(|column| *column == found.index);
        let place = known.unwrap_or_else(|| {
            selected.columns.push(found.index);
            selected.columns.len() - 1
        });
        let ordinal = selected.first_parameter.saturating_add(place as u16);
        Ok(Some(Expression::parameter_of_type(ordinal, found.expression.result.with_nullable(true))))
    }

    /// `DEFAULT(column)`. Errors: 1054, 1364.
    fn default_of(&mut self, reference: &ast::ColumnReference) -> Result<Expression> {
        let found = self.scope.resolve(reference, self.clause.name())?;
        let table = match self.scope.source {
            RowSource::Table(table) => Some((table, found.index)),
            RowSource::Nothing | RowSource::Virtual { .. } => None,
            RowSource::Block(_) => {
                let Environment { dictionary, owner, .. } = self.environment;
                let described = &found.column;
                let table = dictionary.table_seen_by(*owner, &described.database, &described.org_table);
                table.and_then(|table| Some((table, table.definition.column(&described.org_name)?)))
            }
        };
        match table {
            Some((table, column)) => {
                default_of(&table.definition.columns[usize::from(column.0)], self.environment.rules.zone())
            }
            None => Err(Error::not_supported("DEFAULT of a column that the server computes")),
        }
    }

    /// `@name := value`. The session must evaluate it, so it cannot be part of what the partitions evaluate.
    fn assign_variable(&mut self, name: &str, value: &ast::Expression) -> Result<Expression> {
        if matches!(self.scope.source, RowSource::Table(_)) {
            return Err(Error::not_supported("assignment of user variables here"));
        }
        let name = Value::Bytes(name.to_lowercase().into_bytes());
        let name = Expression::constant(name, self.environment.collation);
        let value = self.bind(value)?;
        Expression::call("USER VARIABLE :=", vec![name, value])
    }

    /// The value of a user or system variable. Error 1235 for an unsupported one.
    fn variable(&mut self, expression: &ast::Expression) -> Result<Expression> {
        match self.session_constant(expression)? {
            Some(value) => Ok(value),
            None => Err(Error::not_supported("this variable")),
        }
    }

    /// The constant that replaces a session function or variable; `None` for any other expression.
    pub(super) fn session_constant(&mut self, expression: &ast::Expression) -> Result<Option<Expression>> {
        let Some(constant) = (self.environment.session_constant)(expression)? else { return Ok(None) };
        self.is_volatile |= constant.is_volatile;
        if constant.is_of_diagnostics
            && let Some(reads_diagnostics) = self.environment.reads_diagnostics
        {
            reads_diagnostics.set(true);
        }
        Ok(Some(Expression::constant_of_type(constant.value, constant.result)))
    }

    fn escape(&self, escape: Option<&ast::Expression>) -> Result<Option<char>> {
        let Some(escape) = escape else {
            return Ok((!self.environment.modes.no_backslash_escapes).then_some('\\'));
        };
        if let ast::Expression::Literal(ast::Literal::String(text)) = escape
            && let Ok(text) = std::str::from_utf8(&text.bytes)
        {
            let mut characters = text.chars();
            let first = characters.next();
            if characters.next().is_none() {
                return Ok(first);
            }
        }
        Err(message::wrong_arguments("ESCAPE"))
    }

    fn case(&mut self, case: &ast::Case) -> Result<Expression> {
        let operand = case.operand.as_ref().map(|operand| self.bind(operand)).transpose()?;
        let mut branches = Vec::with_capacity(case.branches.len());
        for branch in &case.branches {
            let when = self.bind(&branch.when)?;
            let condition = match case.operand.as_ref().zip(operand.as_ref()) {
                Some((written, bound)) => {
                    let (left, right) = compared((written, bound.clone()), (&branch.when, when));
                    Expression::comparison(CompareOperator::Equal, left, right)?
                }
                None => among_numbers(&branch.when, when),
            };
            branches.push((condition, self.bind(&branch.value)?));
        }
        let otherwise = case.otherwise.as_ref().map(|otherwise| self.bind(otherwise)).transpose()?;
        Ok(self.in_connection_collation(Expression::case(branches, otherwise)?))
    }
}

/// Whether this is a DATE or DATETIME column that cannot be NULL. In WHERE, MySQL takes its zero date for
/// NULL.
fn has_zero_date(operand: &Expression) -> bool {
    let result = &operand.result;
    matches!(result.kind, Kind::Date | Kind::DateTime) && !result.nullable && operand.as_column().is_some()
}

fn zero_date(kind: Kind) -> Value {
    let kind = if kind == Kind::Date { TemporalKind::Date } else { TemporalKind::DateTime };
    Value::Temporal(Temporal { kind, digits: 0, packed: 0 })
}

/// The comparison that an operator of the syntax tree denotes. Error: 1064 for another operator.
pub(super) fn compare_operator(operator: ast::BinaryOperator) -> Result<CompareOperator> {
    Ok(match operator {
        ast::BinaryOperator::Equal => CompareOperator::Equal,
        ast::BinaryOperator::NullSafeEqual => CompareOperator::NullSafeEqual,
        ast::BinaryOperator::NotEqual => CompareOperator::NotEqual,
        ast::BinaryOperator::Less => CompareOperator::Less,
        ast::BinaryOperator::LessOrEqual => CompareOperator::LessOrEqual,
        ast::BinaryOperator::Greater => CompareOperator::Greater,
        ast::BinaryOperator::GreaterOrEqual => CompareOperator::GreaterOrEqual,
        _ => return Err(Error::new(ErrorCode::SyntaxError, "You have an error in your SQL syntax")),
    })
}
