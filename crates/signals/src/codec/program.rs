//! Programs, and the foreign keys that a write checks.

use junctor_expression::Expression;
use junctor_kernel::{BufferPool, DecodeError};
use junctor_model::foreign_key::{ChildKey, ForeignKeyWork, ParentKey, ParentLookup, ParentTable, ReferentialAction};
use junctor_model::id::ColumnNumber;
use junctor_model::limit::PARTITIONS_PER_TABLE_MAX;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::TableLayout;

use super::page::Page;
#[cfg(test)]
use super::sample::Draw;
use super::wire::{Reader, Result, Wire, Writer};
use crate::execute_statement::Parts;
use crate::program::*;

choices! { Access { 0 PrimaryKeys; 1 IndexRanges { index, descending }; 2 AllRows; } }
choices! { RowProtocol { 0 Text; 1 Binary; 2 Values; } }
choices! { LockMode { 0 Shared; 1 Exclusive; } }
choices! { WhenLocked { 0 Wait; 1 Fail; 2 Skip; 3 AwaitWriter; } }
layout! { SortKey { value, descending, is_in_result } }
layout! { Aggregate { kind, argument, distinct } }
choices! {
    Output {
        0 Packets(projection);
        1 Entries { projection, sort, distinct };
        2 Aggregates(aggregates);
        3 Images;
        4 Groups { projection, keys, aggregates };
    }
}
choices! { AssignmentKind { 0 Always; 1 IfChanged; 2 Generated; 3 Check; } }
layout! { Assignment { column, value, kind } }
choices! {
    WriteAction {
        0 Insert;
        1 InsertOrClaim;
        2 Update { assignments, ignore };
        3 Delete { ignore };
        4 LockRead { mode, when_locked, output, is_strict };
    }
}
layout! { Returning { output, is_strict } }
layout! {
    defined ReadProgram {
        table, access, filter, key_filters, output, reads_parameters, is_strict, marks_missing, changed_since, rules,
    }
    check check_read
}
layout! {
    defined WriteProgram { table, action, access, filter, reads_parameters, unique_entries, foreign_keys, returning, rules }
    check check_write
}

choices! { ReferentialAction { 0 NoAction; 1 Restrict; 2 Cascade; 3 SetNull; } }
choices! { ParentLookup { 0 Primary; 1 PrimaryAnywhere; 2 Unique(layout); 3 Range(index); } }
layout! { ParentTable { layout, columns, lookup } check check_parent_table }
layout! { ParentKey { columns, watched, parent, shown } }
layout! {
    ChildKey { columns, child, child_columns, index, on_delete, on_update, is_self, shown }
    check check_child
}
layout! { defined ForeignKeyWork { parents, children, reachable } }

/// Values and columns are sent in pairs, so that there are as many of each. The row plan is not sent:
/// [`check_output`] derives it.
impl Wire for Projection {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.count(self.values.len());
        for (value, column) in self.values.iter().zip(&self.columns) {
            value.encode(writer);
            column.encode(writer);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Projection> {
        let (values, columns) = <(Expression, ResultColumn)>::decode_all(reader)?.into_iter().unzip();
        Ok(Projection::new(values, columns))
    }

    fn describe(page: &mut Page) -> String {
        page.add("Projection", Vec::<(Expression, ResultColumn)>::describe)
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Projection {
        let (values, columns) = Vec::<(Expression, ResultColumn)>::sample(draw).into_iter().unzip();
        Projection::new(values, columns)
    }
}

/// The inputs of a statement have buffers of the pool, as other inputs do.
impl Wire for Parts {
    fn encode(&self, writer: &mut Writer<'_>) {
        let parts = match self {
            Parts::One(partition, input) => {
                writer.count(1);
                partition.encode(writer);
                return writer.bytes(input);
            }
            Parts::Many(parts) => parts,
        };
        writer.count(parts.len());
        for (partition, input) in parts {
            partition.encode(writer);
            writer.bytes(input);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Parts> {
        let count = reader.count()?;
        if count == 1 {
            return Ok(Parts::One(u16::decode(reader)?, reader.buffer()?));
        }
        let mut parts = Vec::with_capacity(count.min(usize::from(PARTITIONS_PER_TABLE_MAX)));
        for _ in 0..count {
            parts.push((u16::decode(reader)?, reader.buffer()?));
        }
        Ok(Parts::Many(parts.into()))
    }

    fn recycle(self, buffers: &mut BufferPool) {
        match self {
            Parts::One(_, input) => buffers.give(input),
            Parts::Many(parts) => parts.into_iter().for_each(|(_, input)| buffers.give(input)),
        }
    }

    fn describe(page: &mut Page) -> String {
        page.add("Parts", |_| "list of (partition: u16, input: bytes)".into())
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Parts {
        let parts: Box<[(u16, Vec<u8>)]> = Wire::sample(draw);
        match <[_; 1]>::try_from(Vec::from(parts)) {
            Ok([(partition, input)]) => Parts::One(partition, input),
            Err(parts) => Parts::Many(parts.into()),
        }
    }
}

fn require_columns(layout: &TableLayout, columns: &[ColumnNumber]) -> Result<()> {
    let count = layout.definition.columns.len();
    let are_columns = columns.iter().all(|column| usize::from(column.0) < count);
    if are_columns { Ok(()) } else { Err(DecodeError::Invalid("column")) }
}

fn check_expression(layout: &TableLayout, expression: &Expression) -> Result<()> {
    let mut result = Ok(());
    expression.visit(&mut |part| {
        if let Some(column) = part.as_column() {
            result = result.and(require_columns(layout, &[column]));
        }
    });
    result
}

/// Checks the columns of the result, and derives the row plan, which is not sent.
fn check_output(layout: &TableLayout, output: &mut Output) -> Result<()> {
    let mut values: Vec<&Expression> = Vec::new();
    match &*output {
        Output::Packets(projection) => values.extend(&projection.values),
        Output::Entries { projection, sort, .. } => {
            values.extend(&projection.values);
            values.extend(sort.iter().map(|key| &key.value));
        }
        Output::Aggregates(aggregates) => values.extend(aggregates.iter().filter_map(|one| one.argument.as_ref())),
        Output::Images => {}
        Output::Groups { projection, keys, aggregates } => {
            values.extend(projection.values.iter().chain(keys));
            values.extend(aggregates.iter().filter_map(|one| one.argument.as_ref()));
        }
    }
    values.into_iter().try_for_each(|value| check_expression(layout, value))?;
    if let Output::Packets(projection) | Output::Entries { projection, .. } = output {
        let bare = Projection::new(std::mem::take(&mut projection.values), std::mem::take(&mut projection.columns));
        *projection = bare.with_format(&layout.row_format);
    }
    if let Output::Entries { projection, distinct: Some(positions), .. } = output
        && positions.iter().any(|position| usize::from(*position) >= projection.values.len())
    {
        return Err(DecodeError::Invalid("position of a distinct value"));
    }
    Ok(())
}

fn check_access(layout: &TableLayout, access: Access) -> Result<()> {
    match access {
        Access::IndexRanges { index, .. } if layout.definition.index(index).is_none() => {
            Err(DecodeError::Invalid("index"))
        }
        _ => Ok(()),
    }
}

fn check_read(program: &mut ReadProgram) -> Result<()> {
    check_access(&program.table, program.access)?;
    let is_plain = matches!((&program.access, &program.output), (Access::AllRows, Output::Images));
    if program.changed_since.is_some() && (!is_plain || program.filter.is_some() || !program.key_filters.is_empty()) {
        return Err(DecodeError::Invalid("read of changed rows"));
    }
    program.filter.iter().try_for_each(|filter| check_expression(&program.table, filter))?;
    program.key_filters.iter().try_for_each(|filter| check_expression(&program.table, &filter.value))?;
    check_output(&program.table, &mut program.output)
}

fn check_write(program: &mut WriteProgram) -> Result<()> {
    let table = &program.table;
    check_access(table, program.access)?;
    program.filter.iter().try_for_each(|filter| check_expression(table, filter))?;
    match &mut program.action {
        WriteAction::Update { assignments, .. } => {
            for assignment in assignments {
                if assignment.kind != AssignmentKind::Check {
                    require_columns(table, &[assignment.column])?;
                }
                check_expression(table, &assignment.value)?;
            }
        }
        WriteAction::LockRead { output, .. } => check_output(table, output)?,
        WriteAction::Insert | WriteAction::InsertOrClaim | WriteAction::Delete { .. } => {}
    }
    if let Some(returning) = &mut program.returning {
        check_output(table, &mut returning.output)?;
    }
    let Some(work) = &program.foreign_keys else { return Ok(()) };
    for key in &work.parents {
        require_columns(table, &key.columns)?;
        require_columns(table, &key.watched)?;
    }
    work.children.iter().try_for_each(|key| require_columns(table, &key.columns))
}

fn check_parent_table(parent: &mut ParentTable) -> Result<()> {
    require_columns(&parent.layout, &parent.columns)
}

fn check_child(key: &mut ChildKey) -> Result<()> {
    require_columns(&key.child, &key.child_columns)?;
    match key.child.definition.index(key.index) {
        Some(_) => Ok(()),
        None => Err(DecodeError::Invalid("index")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::sample::layout;
    use super::*;

    #[test]
    fn only_a_check_sets_no_column() {
        let table: Arc<TableLayout> = layout();
        let update = |assignment| {
            let action = WriteAction::Update { assignments: vec![assignment], ignore: false };
            WriteProgram::new(&table, action, Access::PrimaryKeys)
        };
        assert_eq!(check_write(&mut update(Assignment::check(Expression::null()))), Ok(()));
        let column = ColumnNumber(table.definition.columns.len() as u16);
        let assignment = Assignment { column, value: Expression::null(), kind: AssignmentKind::Always };
        assert!(check_write(&mut update(assignment)).is_err());
    }
}
