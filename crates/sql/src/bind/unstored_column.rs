//! Virtual columns whose values are not in the rows (`docs/decisions/0076-unstored-virtual-columns.md`). A
//! statement is bound as if they were, and its programs then get their expressions.

use std::cell::Cell;
use std::sync::Arc;

use junctor_expression::{Expression, Node};
use junctor_model::error::{Error, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::schema::TableLayout;
use junctor_signals::program::{Assignment, AssignmentKind, Output, Projection};
use junctor_signals::row_expressions::RowExpressions;

use super::{Environment, StoredExpressions};

/// Maximum number of nodes in the expression of an unstored column, with those of the unstored columns that
/// it reads.
const NODES_MAX: usize = 256;
/// Maximum number of levels of such an expression. An expression of a statement has at most 256, and signals
/// carry 384.
const LEVELS_MAX: usize = 64;
/// Maximum number of nodes that unstored columns add to a statement. A statement may name a column once every
/// few bytes.
const ADDED_NODES_MAX: usize = 65_536;

/// The unstored columns of a table.
pub(crate) struct UnstoredColumns<'a> {
    layout: &'a TableLayout,
    /// Each column with its expression, in which the unstored columns before it are columns.
    values: Vec<(ColumnNumber, Expression)>,
    /// Number of nodes that the statement has got; `None` if these columns alone count.
    added_nodes_of_statement: Option<&'a Cell<usize>>,
    own_added_nodes: Cell<usize>,
}

/// What takes the place of the other columns.
type Leaf<'l> = &'l dyn Fn(ColumnNumber) -> Option<Expression>;

impl<'a> UnstoredColumns<'a> {
    /// Errors: those of binding.
    pub fn of(environment: &Environment<'a>, layout: &'a Arc<TableLayout>) -> Result<UnstoredColumns<'a>> {
        let mut unstored = UnstoredColumns {
            layout,
            values: Vec::new(),
            added_nodes_of_statement: environment.added_nodes,
            own_added_nodes: Cell::new(0),
        };
        let columns = layout.definition.columns.iter().zip(0..);
        let mut columns = columns.filter(|(column, _)| column.is_unstored()).peekable();
        if columns.peek().is_none() {
            return Ok(unstored);
        }
        let mut stored = StoredExpressions::new(environment, layout);
        for (column, number) in columns {
            if let Some(value) = stored.value_of(column)? {
                unstored.values.push((ColumnNumber(number), value));
            }
        }
        Ok(unstored)
    }

    /// Whether the expressions are small enough to take the place of the columns.
    pub fn are_small(&self) -> bool {
        let mut sizes: Vec<(ColumnNumber, usize, usize)> = Vec::with_capacity(self.values.len());
        for (column, value) in &self.values {
            let size_of = |read: ColumnNumber| sizes.iter().find(|(known, ..)| *known == read);
            let mut nodes = 2usize;
            value.visit(&mut |inner| {
                let read = inner.as_column().and_then(size_of);
                nodes = nodes.saturating_add(read.map_or(1, |(_, nodes, _)| *nodes));
            });
            let levels = 1 + levels(value, &|read| size_of(read).map_or(1, |(.., levels)| *levels));
            if nodes > NODES_MAX || levels > LEVELS_MAX {
                return false;
            }
            sizes.push((*column, nodes, levels));
        }
        true
    }

    /// Puts the expressions of the columns in their place.
    ///
    /// # Errors
    /// 1235 if the statement becomes too long.
    pub fn put_into(&self, expression: &mut Expression) -> Result<()> {
        if self.values.is_empty() {
            return Ok(());
        }
        self.put(expression, &|_| None)
    }

    /// As [`Self::put_into`], for several expressions.
    pub fn put_into_all<'e>(&self, expressions: impl IntoIterator<Item = &'e mut Expression>) -> Result<()> {
        expressions.into_iter().try_for_each(|expression| self.put_into(expression))
    }

    /// As [`Self::put_into`], for what a program returns.
    pub fn put_into_output(&self, output: &mut Output) -> Result<()> {
        match output {
            Output::Packets(projection) => self.put_into_projection(projection),
            Output::Entries { projection, sort, .. } => {
                self.put_into_projection(projection)?;
                self.put_into_all(sort.iter_mut().map(|key| &mut key.value))
            }
            Output::Aggregates(aggregates) => {
                self.put_into_all(aggregates.iter_mut().filter_map(|aggregate| aggregate.argument.as_mut()))
            }
            Output::Images => Ok(()),
            Output::Groups { projection, keys, aggregates } => {
                self.put_into_projection(projection)?;
                self.put_into_all(keys.iter_mut())?;
                self.put_into_all(aggregates.iter_mut().filter_map(|aggregate| aggregate.argument.as_mut()))
            }
        }
    }

    /// As [`Self::put_into`], for the values of a result row.
    pub fn put_into_projection(&self, projection: &mut Projection) -> Result<()> {
        if projection.values.iter().any(|value| self.is_in(value)) {
            // It copies columns out of the rows.
            projection.row_plan = None;
            self.put_into_all(projection.values.iter_mut())?;
        }
        Ok(())
    }

    /// As [`Self::put_into`], for the expressions of new rows.
    pub fn put_into_rows(&self, expressions: &mut RowExpressions) -> Result<()> {
        self.put_into_all(expressions.columns.iter_mut().map(|computed| &mut computed.value))?;
        self.put_into_all(&mut expressions.checks)
    }

    /// As [`Self::put_into`], for assignments. Assigned values read unstored columns as they were before the
    /// statement, so such an assignment comes before those of the columns that the expression reads.
    ///
    /// # Errors
    /// 1235 if that would change the meaning of another assignment, and the errors of [`Self::put_into`].
    pub fn put_into_assignments(&self, assignments: &mut [Assignment]) -> Result<()> {
        if self.values.is_empty() {
            return Ok(());
        }
        for place in 0..assignments.len() {
            if assignments[place].kind == AssignmentKind::Always && self.is_in(&assignments[place].value) {
                self.move_forward(assignments, place)?;
            }
        }
        self.put_into_all(assignments.iter_mut().map(|assignment| &mut assignment.value))
    }

    /// As [`Self::put_into`], for the columns of the row that INSERT tried to insert: parameters from
    /// `first` on.
    pub fn put_into_inserted(&self, expression: &mut Expression, first: u16) -> Result<()> {
        if self.values.is_empty() {
            return Ok(());
        }
        let definitions = &self.layout.definition.columns;
        let parameter = |column: ColumnNumber| {
            let own = &definitions[usize::from(column.0)];
            let result = Expression::column(column, own, "").result;
            Some(Expression::parameter_of_type(first.saturating_add(column.0), result.with_nullable(true)))
        };
        let mut failure = Ok(());
        expression.rewrite(&mut |inner| {
            let Node::Parameter(ordinal) = inner.node else { return None };
            let column = ColumnNumber(ordinal.checked_sub(first)?);
            match self.value(column, "", &parameter)? {
                Ok(value) => Some(value),
                Err(error) => {
                    failure = Err(error);
                    None
                }
            }
        });
        failure
    }

    fn put(&self, expression: &mut Expression, leaf: Leaf<'_>) -> Result<()> {
        let mut failure = Ok(());
        expression.rewrite(&mut |inner| {
            let Node::Column { index, name } = &inner.node else { return None };
            match self.value(*index, name, leaf) {
                Some(Ok(value)) => Some(value),
                Some(Err(error)) => {
                    failure = Err(error);
                    None
                }
                None => leaf(*index),
            }
        });
        failure
    }

    /// The value of a column; `None` if it is in the rows. Error: 1235.
    fn value(&self, column: ColumnNumber, name: &str, leaf: Leaf<'_>) -> Option<Result<Expression>> {
        let (_, value) = self.values.iter().find(|(known, _)| *known == column)?;
        let mut value = value.clone();
        let added_nodes = self.added_nodes_of_statement.unwrap_or(&self.own_added_nodes);
        let mut nodes = added_nodes.get();
        value.visit(&mut |_| nodes += 1);
        added_nodes.set(nodes);
        if nodes > ADDED_NODES_MAX {
            return Some(Err(too_complex()));
        }
        let put = self.put(&mut value, leaf);
        let definition = &self.layout.definition.columns[usize::from(column.0)];
        let column = Expression::column(column, definition, name);
        Some(put.map(|()| Expression::virtual_column(value, column)))
    }

    fn is_in(&self, expression: &Expression) -> bool {
        let mut is_in = false;
        expression.visit(&mut |inner| is_in |= inner.as_column().is_some_and(|column| self.is_unstored(column)));
        is_in
    }

    fn is_unstored(&self, column: ColumnNumber) -> bool {
        self.values.iter().any(|(known, _)| *known == column)
    }

    /// Whether an expression reads a column, itself or by an unstored column.
    fn reads(&self, expression: &Expression, column: ColumnNumber) -> bool {
        self.reads_beneath(expression, column) || reads_directly(expression, column)
    }

    /// Whether an expression reads a column by an unstored column.
    fn reads_beneath(&self, expression: &Expression, column: ColumnNumber) -> bool {
        let mut reads = false;
        expression.visit(&mut |inner| {
            let read = inner.as_column().and_then(|read| self.values.iter().find(|(known, _)| *known == read));
            reads |= read.is_some_and(|(_, value)| self.reads(value, column));
        });
        reads
    }

    /// Moves an assignment before those of the columns that its unstored columns read.
    fn move_forward(&self, assignments: &mut [Assignment], place: usize) -> Result<()> {
        let (before, rest) = assignments.split_at(place);
        let moved = &rest[0];
        let Some(first) = before.iter().position(|set| self.reads_beneath(&moved.value, set.column)) else {
            return Ok(());
        };
        let is_free = |passed: &Assignment| {
            passed.column != moved.column
                && !reads_directly(&moved.value, passed.column)
                && !self.reads(&passed.value, moved.column)
        };
        if moved.value.is_volatile() || !before[first..].iter().all(is_free) {
            return Err(Error::not_supported(
                "an assignment of a virtual column that ALTER TABLE added, after one of a column that it reads",
            ));
        }
        assignments[first..=place].rotate_right(1);
        Ok(())
    }
}

fn reads_directly(expression: &Expression, column: ColumnNumber) -> bool {
    let mut reads = false;
    expression.visit(&mut |inner| reads |= inner.as_column() == Some(column));
    reads
}

/// The levels of an expression, with those of each column.
fn levels(expression: &Expression, of_column: &dyn Fn(ColumnNumber) -> usize) -> usize {
    let mut deepest = expression.as_column().map_or(0, |column| of_column(column) - 1);
    expression.for_each_operand(&mut |operand| deepest = deepest.max(levels(operand, of_column)));
    1 + deepest
}

#[cold]
fn too_complex() -> Box<Error> {
    Error::not_supported("so many uses of virtual columns that ALTER TABLE added")
}
