//! Columns and conditions that are computed from the other columns of a new row: generated columns, defaults
//! that are expressions, CHECK constraints.

use junctor_expression::program::Node;
use junctor_expression::{Expression, Parameters, Scratch};
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::row::RowView;
use junctor_model::schema::TableLayout;
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::value::ValueRef;

/// Maximum number of columns for which a row's values are encoded from the stack.
const COLUMNS_ON_STACK: usize = 32;

/// A column whose value is computed from the other columns of its row.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputedColumn {
    /// The column to set.
    pub column: ColumnNumber,
    /// The value, over the row as the columns before in the list left it.
    pub value: Expression,
}

/// The expressions of a table for its new rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowExpressions {
    /// The computed columns, in the order of the table.
    pub columns: Vec<ComputedColumn>,
    /// The CHECK constraints. Each fails for a row that violates it.
    pub checks: Vec<Expression>,
}

/// The storing of a computed row.
#[derive(Clone, Copy, Debug)]
pub struct RowTarget<'a> {
    /// The table of the row.
    pub table: &'a TableLayout,
    /// The treatment of values that do not fit.
    pub mode: StoreMode,
    /// Number of the row within the statement, from 1, for messages.
    pub row_number: u64,
}

impl RowExpressions {
    /// Whether rows need nothing.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty() && self.checks.is_empty()
    }

    /// Sets the columns for which `is_computed` is true in the image of a row, and checks the result. `spare`
    /// is memory for the new image.
    ///
    /// # Errors
    /// 3819, and the errors of expressions and of storing values.
    pub fn complete(
        &self,
        target: RowTarget<'_>,
        is_computed: &dyn Fn(ColumnNumber) -> bool,
        (image, spare): (&mut Vec<u8>, &mut Vec<u8>),
        scratch: &Scratch,
    ) -> Result<()> {
        let mut rest = &self.columns[..];
        while !rest.is_empty() {
            let (together, after) = rest.split_at(independent(rest));
            rest = after;
            if together.iter().any(|computed| is_computed(computed.column)) {
                spare.clear();
                compute(together, target, is_computed, (image, spare), scratch)?;
                std::mem::swap(image, spare);
            }
        }
        let row = RowView::new(&target.table.row_format, image);
        for check in &self.checks {
            check.evaluate(Some(row), Parameters::NONE, scratch)?;
        }
        Ok(())
    }
}

/// Counts the leading columns that can be computed together: none of them reads an earlier one.
fn independent(columns: &[ComputedColumn]) -> usize {
    let is_free = |end: &usize| {
        let before = &columns[..*end];
        let mut reads = false;
        columns[*end].value.visit(&mut |part| {
            reads |= matches!(&part.node, Node::Column { index, .. }
                if before.iter().any(|computed| computed.column == *index));
        });
        !reads
    };
    1 + (1..columns.len()).take_while(is_free).count()
}

/// Appends the image with the computed columns.
fn compute(
    columns: &[ComputedColumn],
    target: RowTarget<'_>,
    is_computed: &dyn Fn(ColumnNumber) -> bool,
    (image, out): (&[u8], &mut Vec<u8>),
    scratch: &Scratch,
) -> Result<()> {
    let RowTarget { table, mode, row_number } = target;
    let definitions = &table.definition.columns;
    let view = RowView::new(&table.row_format, image);
    let mut on_stack = [ValueRef::Null; COLUMNS_ON_STACK];
    let mut on_heap = Vec::new();
    let values = match on_stack.get_mut(..definitions.len()) {
        Some(values) => values,
        None => {
            on_heap.resize(definitions.len(), ValueRef::Null);
            &mut on_heap[..]
        }
    };
    for (position, value) in values.iter_mut().enumerate() {
        *value = view.column(ColumnNumber(position as u16));
    }
    for ComputedColumn { column, value } in columns.iter().filter(|computed| is_computed(computed.column)) {
        let position = usize::from(column.0);
        let target = StoreTarget { column: &definitions[position], row_number, mode };
        let value = value.evaluate(Some(view), Parameters::NONE, scratch)?;
        let stored = target.convert(value, scratch);
        values[position] = stored.map_err(|error| target.error_in(&table.definition.name, error))?;
    }
    table.row_format.encode(values, out)
}
