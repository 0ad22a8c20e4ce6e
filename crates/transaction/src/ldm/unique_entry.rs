//! Follow-ups of changed rows, which are writes in other partitions: entries of unique indexes, which tc
//! keeps in hidden tables, and foreign keys.

use std::collections::BTreeMap;

use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::key::append_row_key;
use junctor_model::key_list::{for_each_entry, list_among};
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
        if list_among(&definition.columns, columns).is_some() {
            update_elements(definition, (*index, columns), partition, (old, new, is_rekeyed), follow_ups);
            continue;
        }
        let old_key = entry_key(definition, columns, old);
        let new_key = entry_key(definition, columns, new);
        if old_key == new_key && !is_rekeyed {
            continue;
        }
        // The delete comes first, because both entries may have the same key if only the row reference
        // changed.
        if let Some(key) = old_key {
            follow_ups.push(FollowUp::DeleteEntry { index: *index, key });
        }
        if let Some(key) = new_key {
            let row_reference = row_reference(definition, partition, new);
            let shown = shown(definition, columns, new, None);
            follow_ups.push(FollowUp::InsertEntry { index: *index, key, row_reference, shown });
        }
    }
}

/// As [`updated`], for a multi-valued index. Elements that both rows have keep their entries.
fn update_elements(
    definition: &TableDefinition,
    (index, columns): (IndexId, &[ColumnNumber]),
    partition: u16,
    (old, new, is_rekeyed): (RowView<'_>, RowView<'_>, bool),
    follow_ups: &mut Vec<FollowUp>,
) {
    let entries_of = |row: RowView<'_>| {
        let mut entries = BTreeMap::new();
        for_each_entry(&definition.columns, columns, row, |key, element| {
            entries.insert(key, element.map(<[u8]>::to_vec));
        });
        entries
    };
    let (old_entries, new_entries) = (entries_of(old), entries_of(new));
    for key in old_entries.keys().filter(|key| is_rekeyed || !new_entries.contains_key(*key)) {
        follow_ups.push(FollowUp::DeleteEntry { index, key: key.clone() });
    }
    for (key, element) in new_entries {
        if is_rekeyed || !old_entries.contains_key(&key) {
            let row_reference = row_reference(definition, partition, new);
            let shown = shown(definition, columns, new, element.as_deref());
            follow_ups.push(FollowUp::InsertEntry { index, key, row_reference, shown });
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

/// The key of an entry. A row with NULL in one of the columns has no entry.
fn entry_key(definition: &TableDefinition, columns: &[ColumnNumber], row: RowView<'_>) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    let has_null = append_row_key(&definition.columns, columns, row, &mut key);
    (!has_null).then_some(key)
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
