//! The row images that reads and locking statements return.

use junctor_model::error::{Error, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::row::RowView;
use junctor_model::row_encoding::append_text;
use junctor_model::value::ValueRef;

/// Maximum number of rows in a batch, all of one partition.
pub(super) const BATCH_ROWS: u32 = 256;

/// Calls `visit` with each row image of a reply.
pub(super) fn for_each_image(mut output: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<()> {
    while let Some((length, rest)) = output.split_first_chunk() {
        let (image, rest) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(Error::broken_reply)?;
        visit(image);
        output = rest;
    }
    Ok(())
}

/// The key as shown in the text of error 1062.
pub(super) fn shown_key(columns: &[ColumnNumber], row: RowView<'_>) -> String {
    let mut text = Vec::new();
    for (position, column) in columns.iter().enumerate() {
        if position > 0 {
            text.push(b'-');
        }
        match row.column(*column) {
            ValueRef::Null => text.extend_from_slice(b"NULL"),
            value => append_text(value, &mut text),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}
