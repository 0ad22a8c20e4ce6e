//! Hot path: at most 30 instructions per column.
//!
//! Builds the new image of a row from its assignments, from left to right.

use junctor_expression::program::Node;
use junctor_expression::{Expression, Parameters, Scratch};
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::key::append_row_key;
use junctor_model::partition::{key_hash, partition_of};
use junctor_model::row::RowView;
use junctor_model::schema::TableLayout;
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::value::ValueRef;
use junctor_signals::program::{Assignment, AssignmentKind};

/// Maximum number of columns for which a row's values are encoded from the stack.
const COLUMNS_ON_STACK: usize = 32;

/// Reused memory for building new images.
#[derive(Debug, Default)]
pub(super) struct RowBuilder {
    /// An image reassembled from overflow pages.
    pub image: Vec<u8>,
    /// The image before it, likewise, and their difference.
    pub base: Vec<u8>,
    pub edits: Vec<u8>,
    /// The row after the assignments so far.
    pub current: Vec<u8>,
    next: Vec<u8>,
    /// The new primary key, or another key to compare.
    pub key: Vec<u8>,
    old_key: Vec<u8>,
}

/// Everything except the row that assignments need: how values are computed, and how they are stored.
#[derive(Clone, Copy)]
pub(super) struct AssignmentContext<'a> {
    pub table: &'a TableLayout,
    pub parameters: Parameters<'a>,
    pub scratch: &'a Scratch,
    pub mode: StoreMode,
    /// Number of the row within the statement, from 1, for messages.
    pub row_number: u64,
}

/// The effect of the assignments on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpdatedRow {
    /// No value changed.
    Same,
    /// The image changed, the primary key did not.
    Changed,
    /// The primary key changed, and the row stays in this partition.
    Rekeyed { hash: u64 },
    /// The row now belongs to another partition.
    Moved { partition: u16, hash: u64 },
}

impl RowBuilder {
    /// Makes `current` the image of the row after all assignments. Each assignment sees the effects of the
    /// earlier ones.
    ///
    /// # Errors
    /// An expression fails or, in strict mode, a conversion.
    pub fn assign(
        &mut self,
        assignments: &[Assignment],
        original: RowView<'_>,
        context: &AssignmentContext<'_>,
    ) -> Result<()> {
        let mut rest = assignments;
        let mut is_first = true;
        while !rest.is_empty() {
            if rest[0].kind != AssignmentKind::Always {
                let is_same = is_first || self.current == original.image();
                if is_same || rest[0].kind == AssignmentKind::Check {
                    if !is_same {
                        self.check(rest, context)?;
                    }
                    break;
                }
            }
            let (together, after) = rest.split_at(independent(rest));
            rest = after;
            let view = if is_first { original } else { RowView::new(&context.table.row_format, &self.current) };
            self.next.clear();
            assign_together(together, view, context, &mut self.next)?;
            std::mem::swap(&mut self.current, &mut self.next);
            is_first = false;
        }
        if is_first {
            self.current.clear();
            self.current.extend_from_slice(original.image());
        }
        Ok(())
    }

    /// Checks the constraints of the changed row. Error 3819.
    #[cold]
    fn check(&self, checks: &[Assignment], context: &AssignmentContext<'_>) -> Result<()> {
        let row = RowView::new(&context.table.row_format, &self.current);
        for check in checks {
            check.value.evaluate(Some(row), context.parameters, context.scratch)?;
        }
        Ok(())
    }

    /// Length of a row's primary key.
    pub fn primary_key_bytes(&mut self, table: &TableLayout, row: RowView<'_>) -> usize {
        let definition = &table.definition;
        self.old_key.clear();
        append_row_key(&definition.columns, &definition.primary().columns, row, &mut self.old_key);
        self.old_key.len()
    }

    /// Compares `current` with the original row. A changed row loses its values of dropped columns. If the
    /// primary key changed, `key` holds the new one.
    pub fn updated(
        &mut self,
        table: &TableLayout,
        assignments: &[Assignment],
        original: RowView<'_>,
        own_partition: u16,
    ) -> UpdatedRow {
        if self.current == original.image() {
            return UpdatedRow::Same;
        }
        // Rows with equal values are equal whatever they have of dropped columns, so this comes after the
        // comparison.
        if table.row_format.has_dropped_columns() {
            self.next.clear();
            if table.row_format.append_without_dropped(&self.current, &mut self.next) {
                std::mem::swap(&mut self.current, &mut self.next);
            }
        }
        let definition = &table.definition;
        let primary = &definition.primary().columns;
        // Most updates leave the primary key unchanged, so no keys need to be built.
        if !assignments.iter().any(|assignment| primary.contains(&assignment.column)) {
            return UpdatedRow::Changed;
        }
        let new = RowView::new(&table.row_format, &self.current);
        self.key.clear();
        self.old_key.clear();
        append_row_key(&definition.columns, primary, new, &mut self.key);
        append_row_key(&definition.columns, primary, original, &mut self.old_key);
        if self.key == self.old_key {
            return UpdatedRow::Changed;
        }
        let hash = key_hash(&self.key);
        let partition_hash = if definition.partition_columns == *primary {
            hash
        } else {
            self.old_key.clear();
            append_row_key(&definition.columns, &definition.partition_columns, new, &mut self.old_key);
            key_hash(&self.old_key)
        };
        let partition = partition_of(partition_hash, definition.partition_count);
        if partition == own_partition { UpdatedRow::Rekeyed { hash } } else { UpdatedRow::Moved { partition, hash } }
    }
}

/// Counts the leading assignments that can be evaluated together: none of them reads or sets a column that an
/// earlier one sets.
fn independent(assignments: &[Assignment]) -> usize {
    let is_free = |end: &usize| {
        let before = &assignments[..*end];
        let is_set = |column: ColumnNumber| before.iter().any(|assignment| assignment.column == column);
        assignments[*end].kind == assignments[0].kind
            && !is_set(assignments[*end].column)
            && !reads_any(&assignments[*end].value, &is_set)
    };
    1 + (1..assignments.len()).take_while(is_free).count()
}

fn reads_any(expression: &Expression, is_set: &dyn Fn(ColumnNumber) -> bool) -> bool {
    let mut reads = false;
    expression.visit(&mut |part| {
        if let Node::Column { index, .. } = &part.node {
            reads |= is_set(*index);
        }
    });
    reads
}

fn assign_together(
    assignments: &[Assignment],
    view: RowView<'_>,
    context: &AssignmentContext<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let AssignmentContext { table, parameters, scratch, mode, row_number } = *context;
    let columns = &table.definition.columns;
    let mut on_stack = [ValueRef::Null; COLUMNS_ON_STACK];
    let mut on_heap = Vec::new();
    let values = match on_stack.get_mut(..columns.len()) {
        Some(values) => values,
        None => {
            on_heap.resize(columns.len(), ValueRef::Null);
            &mut on_heap[..]
        }
    };
    for (position, value) in values.iter_mut().enumerate() {
        *value = view.column(ColumnNumber(position as u16));
    }
    for Assignment { column, value, .. } in assignments {
        let position = usize::from(column.0);
        let target = StoreTarget { column: &columns[position], row_number, mode };
        let value = value.evaluate_unrounded(Some(view), parameters, scratch)?;
        let stored = target.convert(value, scratch);
        values[position] = stored.map_err(|error| target.error_in(&table.definition.name, error))?;
    }
    table.row_format.encode(values, out)
}
