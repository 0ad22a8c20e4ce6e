//! The syntax tree of queries of several tables.
//!
//! Every query is a [`Select`]. A set operation, VALUES, or a query in brackets that has clauses of its own
//! after it is a [`Select`] of all columns of a derived table without a name.

use super::expression::{BinaryOperator, Expression};
use super::json_table::JsonTable;
use super::statement::{Select, SelectItem, TableReference};

/// A member of FROM: a table, a query, or a join of two members.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum FromItem {
    Table(TableReference),
    Derived(Box<DerivedTable>),
    Join(Box<Join>),
}

/// A query in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedTable {
    /// The rows.
    pub source: DerivedSource,
    /// The table's name within this statement; `None` for the operand of a statement that the parser made.
    pub alias: Option<String>,
    /// The names of the columns; empty if they keep those of the query.
    pub columns: Vec<String>,
    /// LATERAL: the query can read the members of FROM before it.
    pub lateral: bool,
}

/// The rows of a derived table.
#[derive(Clone, Debug, PartialEq)]
pub enum DerivedSource {
    /// A query.
    Select(Box<Select>),
    /// UNION, INTERSECT and EXCEPT, from left to right.
    Set {
        /// The leftmost query.
        first: Box<Select>,
        /// The others, each with the operation that combines it with all queries before it.
        rest: Vec<SetOperand>,
    },
    /// `VALUES ROW(...), ...`
    Values(Vec<Vec<Expression>>),
    /// `JSON_TABLE(...)`
    JsonTable(Box<JsonTable>),
}

/// A query that a set operation combines with those before it.
#[derive(Clone, Debug, PartialEq)]
pub struct SetOperand {
    /// The operation.
    pub operator: SetOperator,
    /// ALL: equal rows are not merged.
    pub all: bool,
    /// The query.
    pub query: Select,
}

/// The set operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// Two members of FROM.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Join {
    pub kind: JoinKind,
    pub left: FromItem,
    pub right: FromItem,
    pub condition: JoinCondition,
}

/// The kinds of join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Comma, JOIN, INNER JOIN and CROSS JOIN.
    Inner,
    /// STRAIGHT_JOIN: the left member is read first.
    Straight,
    /// LEFT JOIN.
    Left,
    /// RIGHT JOIN.
    Right,
}

/// The condition of a join.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    /// None is written.
    Always,
    /// ON.
    On(Expression),
    /// USING: columns that are equal and appear once.
    Using(Vec<String>),
    /// NATURAL: USING with all common columns.
    Natural,
}

impl Select {
    /// The table of a query of one table.
    pub fn table(&self) -> Option<&TableReference> {
        match &self.from {
            Some(FromItem::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// Whether the query reads more than one table, or has groups, subqueries or aggregates that only a tree
    /// of operators computes, or changes the state of the session.
    pub fn needs_tree(&self) -> bool {
        let in_items = |item: &SelectItem| match item {
            SelectItem::Expression { expression, .. } => expression.needs_tree(),
            SelectItem::All(_) => false,
        };
        let is_aggregate = |item: &SelectItem| match item {
            SelectItem::Expression { expression, .. } => expression.has_aggregate(),
            SelectItem::All(_) => false,
        };
        let of_group = |having: &Expression| {
            having.needs_tree() || having.has_aggregate() || self.projection.iter().any(is_aggregate)
        };
        matches!(self.from, Some(FromItem::Derived(_) | FromItem::Join(_)))
            || !self.with.is_empty()
            || !self.group_by.is_empty()
            || !self.windows.is_empty()
            || self.projection.iter().any(in_items)
            || self.filter.as_ref().is_some_and(Expression::needs_tree)
            || self.having.as_ref().is_some_and(of_group)
            || self.order_by.iter().any(|item| item.expression.needs_tree())
            || self.is_stateful()
    }
}

impl Select {
    /// The value of a query that has one row with one value in any case.
    pub fn only_value(&self) -> Option<&Expression> {
        let [SelectItem::Expression { expression, .. }] = &*self.projection else { return None };
        let is_one_row = self.from.is_none()
            && self.with.is_empty()
            && self.filter.is_none()
            && self.group_by.is_empty()
            && self.having.is_none()
            && self.limit.is_none()
            && self.into.is_none();
        (is_one_row && !expression.has_aggregate() && !expression.has_window()).then_some(expression)
    }
}

impl Expression {
    /// Calls `visit` for this expression and every expression in it, parents before operands. Subqueries are
    /// not entered.
    pub fn visit<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(self);
        self.for_each_operand(&mut |operand| operand.visit(visit));
    }

    /// Whether only a tree of operators computes the expression.
    pub fn needs_tree(&self) -> bool {
        let mut needs = false;
        self.visit(&mut |inner| {
            needs |= match inner {
                Expression::Subquery(_) | Expression::Exists(_) | Expression::Quantified { .. } => true,
                Expression::Function(call) => call.needs_tree(),
                _ => false,
            }
        });
        needs
    }

    /// Whether it has a subquery.
    pub fn has_subquery(&self) -> bool {
        let mut has = false;
        self.visit(&mut |inner| {
            has |= matches!(inner, Expression::Subquery(_) | Expression::Exists(_) | Expression::Quantified { .. });
        });
        has
    }

    /// Whether an aggregate is called outside subqueries.
    pub fn has_aggregate(&self) -> bool {
        let mut has = false;
        self.visit(&mut |inner| has |= matches!(inner, Expression::Function(call) if call.is_aggregate()));
        has
    }

    /// Whether a window function is called outside subqueries.
    pub fn has_window(&self) -> bool {
        let mut has = false;
        self.visit(&mut |inner| has |= matches!(inner, Expression::Function(call) if call.over.is_some()));
        has
    }

    /// `operand IN (query)` as a quantified comparison.
    pub fn in_query(negated: bool, operand: Box<Expression>, query: Select) -> Expression {
        let operator = if negated { BinaryOperator::NotEqual } else { BinaryOperator::Equal };
        Expression::Quantified { operator, all: negated, operand, query: Box::new(query) }
    }
}

impl FromItem {
    /// Whether a member has this alias, or this name without an alias.
    pub fn names(&self, table: &str) -> bool {
        match self {
            FromItem::Table(reference) => reference.alias.as_deref().unwrap_or(&reference.name.name) == table,
            FromItem::Derived(derived) => derived.alias.as_deref() == Some(table),
            FromItem::Join(join) => join.left.names(table) || join.right.names(table),
        }
    }

    /// Whether a member is a query, or a condition has one.
    pub fn has_query(&self) -> bool {
        match self {
            FromItem::Table(_) => false,
            FromItem::Derived(_) => true,
            FromItem::Join(join) => {
                let in_condition = matches!(&join.condition, JoinCondition::On(on) if on.needs_tree());
                in_condition || join.left.has_query() || join.right.has_query()
            }
        }
    }

    /// Whether a table of this name is read, here or in a query in FROM.
    pub fn reads(&self, table: &str) -> bool {
        let in_query = |select: &Select| select.from.as_ref().is_some_and(|from| from.reads(table));
        match self {
            FromItem::Table(reference) => {
                reference.name.database.is_none() && reference.name.name.eq_ignore_ascii_case(table)
            }
            FromItem::Join(join) => join.left.reads(table) || join.right.reads(table),
            FromItem::Derived(derived) => match &derived.source {
                DerivedSource::Select(select) => in_query(select),
                DerivedSource::Set { first, rest } => {
                    in_query(first) || rest.iter().any(|operand| in_query(&operand.query))
                }
                DerivedSource::Values(_) | DerivedSource::JsonTable(_) => false,
            },
        }
    }
}
