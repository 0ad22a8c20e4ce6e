//! Follow-ups of changed rows, which are writes in other partitions: entries of unique indexes, which tc
//! keeps in hidden tables, and foreign keys.

use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::key::append_row_key;
use junctor_model::key_list::for_each_entry;
use junctor_model::row::RowView;
use junctor_model::schema::TableDefinition;
use junctor_model::value::ValueRef;
use junctor_signals::program::WriteProgram;
use junctor_signals::write_rows::FollowUp;

use super::foreign_key;

/// Maximum number of characters of a key in error 1062. Longer keys are truncated.
const SHOWN_CHARACTERS_MAX: usize = 64;

/// Adds the follow-ups of an inserted row.
pub(super) fn inserted(program: &WriteProgram, partition: u16, row: RowView<'_>, follow_ups: &mut Vec<FollowUp>) {
    if let Some(work) = &program.foreign_keys {
        foreign_key::inserted(work, row, follow_ups);
    }
    let definition = &program.table.definition;
    for (index, _) in &program.unique_entries {
        let columns = columns_of(definition, *index);
        for_each_entry(&definition.columns, columns, row, |key, element| {
            let row_reference = row_reference(definition, partition, row);
            let shown = shown(definition, columns, row, element);
            follow_ups.push(FollowUp::InsertEntry { index: *index, key, row_reference, shown });
        });
    }
}

/// Adds the follow-ups of a deleted row.
pub(super) fn deleted(program: &WriteProgram, row: RowView<'_>, follow_ups: &mut Vec<FollowUp>) {
    if let Some(work) = &program.foreign_keys {
        foreign_key::deleted(work, row, follow_ups);
    }
    delete_entries(program, row, follow_ups);
}

/// Adds the follow-ups of a row that moves to another partition. The insert there will add its new entries.
pub(super) fn moved(program: &WriteProgram, (old, new): (RowView<'_>, RowView<'_>), follow_ups: &mut Vec<FollowUp>) {
    if let Some(work) = &program.foreign_keys {
        foreign_key::updated(work, (old, new), follow_ups);
    }
    delete_entries(program, old, follow_ups);
}

fn delete_entries(program: &WriteProgram, row: RowView<'_>, follow_ups: &mut Vec<FollowUp>) {
    let definition = &program.table.definition;
    for (index, _) in &program.unique_entries {
        let columns = columns_of(definition, *index);
        for_each_entry(&definition.columns, columns, row, |key, _| {
            follow_ups.push(FollowUp::DeleteEntry { index: *index, key });
        });
    }
}

/// Adds the follow-ups of a row updated from `old` to `new`. If the primary key changed, every entry is
/// replaced.
pub(super) fn updated(
    program: &WriteProgram,
    partition: u16,
    (old, new): (RowView<'_>, RowView<'_>),
    is_rekeyed: bool,
    follow_ups: &mut Vec<FollowUp>,
) {
    if let Some(work) = &program.foreign_keys {
        foreign_key::updated(work, (old, new), follow_ups);
    }
    let definition = &program.table.definition;
    for (index, _) in &program.unique_entries {
        let columns = columns_of(definition, *index);
        let (mut old_keys, mut new_keys) = (Vec::new(), Vec::new());
        for_each_entry(&definition.columns, columns, old, |key, _| old_keys.push(key));
        for_each_entry(&definition.columns, columns, new, |key, element| {
            new_keys.push((key, element.map(<[u8]>::to_vec)));
        });
        if !is_rekeyed {
            // Both are in the order of the elements, if a row has several keys.
            let is_new = |key: &Vec<u8>| new_keys.binary_search_by(|(new, _)| new.cmp(key)).is_err();
            let added: Vec<bool> = new_keys.iter().map(|(key, _)| old_keys.binary_search(key).is_err()).collect();
            old_keys.retain(is_new);
            let mut added = added.into_iter();
            new_keys.retain(|_| added.next() == Some(true));
        }
        // The deletes come first, because both entries may have the same key if only the row reference changed.
        for key in old_keys {
            follow_ups.push(FollowUp::DeleteEntry { index: *index, key });
        }
        for (key, element) in new_keys {
            let row_reference = row_reference(definition, partition, new);
            let shown = shown(definition, columns, new, element.as_deref());
            follow_ups.push(FollowUp::InsertEntry { index: *index, key, row_reference, shown });
        }
    }
}

/// The columns of a unique index. Skipping an unknown index would let duplicates in.
fn columns_of(definition: &TableDefinition, index: IndexId) -> &[ColumnNumber] {
    match definition.index(index) {
        Some(index) => &index.columns,
        None => junctor_kernel::invariant::fail(
            "a unique index of a plan is in the plan's table",
            format_args!("index {index} of table {:?}", definition.id),
        ),
    }
}

fn row_reference(definition: &TableDefinition, partition: u16, row: RowView<'_>) -> Vec<u8> {
    let mut reference = partition.to_be_bytes().to_vec();
    append_row_key(&definition.columns, &definition.primary().columns, row, &mut reference);
    reference
}

/// Error 1062 for the primary key of a row.
#[cold]
pub(super) fn duplicate_primary(definition: &TableDefinition, row: RowView<'_>) -> Box<Error> {
    let shown = shown(definition, &definition.primary().columns, row, None);
    let message = format!("Duplicate entry '{shown}' for key '{}.PRIMARY'", definition.name);
    Error::new(ErrorCode::DuplicateEntry, message)
}

/// Formats key values for error 1062: joined by hyphens, truncated to 64 characters, with bytes that are not
/// UTF-8 as `\xNN`. In place of a list, it has the element.
fn shown(definition: &TableDefinition, columns: &[ColumnNumber], row: RowView<'_>, element: Option<&[u8]>) -> Box<str> {
    let mut text = String::new();
    for (position, column) in columns.iter().enumerate() {
        if position > 0 {
            text.push('-');
        }
        match row.column(*column) {
            _ if definition.columns[usize::from(column.0)].key_list().is_some() => {
                push_bytes(element.unwrap_or_default(), &mut text);
            }
            ValueRef::Null => text.push_str("NULL"),
            ValueRef::Bytes(bytes) => push_bytes(bytes, &mut text),
            value => {
                let mut bytes = Vec::new();
                junctor_model::row_encoding::append_text(value, &mut bytes);
                push_bytes(&bytes, &mut text);
            }
        }
    }
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => text[..end].into(),
        None => text.into(),
    }
}

fn push_bytes(bytes: &[u8], text: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(valid) => text.push_str(valid),
        Err(_) => bytes.iter().take(SHOWN_CHARACTERS_MAX).for_each(|byte| text.push_str(&format!("\\x{byte:02X}"))),
    }
}
