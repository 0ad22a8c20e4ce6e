//! TINYTEXT to LONGTEXT, and TINYBLOB to LONGBLOB.

use super::string::valid_text;
use super::{DataType, Family, Form, TypeDescriptor, WireType};
use crate::collation::CollationId;
use crate::error::Result;
use crate::row::SlotKind;
use crate::row_encoding::{column_flag, wire_type};
use crate::scratch::Scratch;
use crate::store::StoreTarget;
use crate::stored_type::StoredType;
use crate::value::{Value, ValueRef};

/// TEXT or BLOB, with the names by the bytes of the stored length.
pub(super) struct TextOrBlob {
    names: [&'static str; 4],
}

pub(super) static TEXT: TextOrBlob = TextOrBlob { names: ["tinytext", "text", "mediumtext", "longtext"] };
pub(super) static BLOB: TextOrBlob = TextOrBlob { names: ["tinyblob", "blob", "mediumblob", "longblob"] };

impl DataType {
    /// A TEXT, or a BLOB with the collation binary, whose stored length has 1 to 4 bytes: TINYTEXT, TEXT,
    /// MEDIUMTEXT, LONGTEXT.
    pub const fn text_or_blob(length_bytes: u8, collation: CollationId) -> DataType {
        let family = if collation.is_binary() { Family::Blob } else { Family::Text };
        let length = u32::MAX >> (32 - 8 * length_bytes as u32);
        let mut data_type = DataType::plain(family);
        data_type.bytes = length_bytes;
        data_type.length = length;
        data_type.collation = collation;
        data_type
    }

    /// The smallest TEXT or BLOB for a length that a statement declares, in characters.
    pub fn declared_text_or_blob(length: u32, collation: CollationId) -> DataType {
        let length_bytes = match u64::from(length) * collation.max_bytes_per_character() as u64 {
            // MySQL ignores a length of 0: TEXT(0) is TEXT.
            0 => 2,
            1..=0xFF => 1,
            0x100..=0xFFFF => 2,
            0x1_0000..=0xFF_FFFF => 3,
            _ => 4,
        };
        DataType::text_or_blob(length_bytes, collation)
    }
}

impl TypeDescriptor for TextOrBlob {
    fn name(&self, data_type: &DataType) -> &'static str {
        self.names[usize::from(data_type.bytes) - 1]
    }

    fn form(&self, _: &DataType) -> Form {
        Form::Bytes
    }

    fn slot(&self, _: &DataType) -> SlotKind {
        SlotKind::Variable
    }

    fn key_bytes(&self, _: &DataType) -> Option<usize> {
        None
    }

    fn row_bytes(&self, data_type: &DataType) -> usize {
        // A length prefix and a pointer.
        usize::from(data_type.bytes) + 8
    }

    fn wire(&self, data_type: &DataType) -> WireType {
        let length = data_type.length.saturating_mul(data_type.collation.max_bytes_per_character() as u32);
        WireType { code: wire_type::BLOB, length, decimals: 0, flags: column_flag::BLOB }
    }

    fn text_lengths(&self, data_type: &DataType) -> Option<(i64, i64)> {
        // MySQL shows bytes for both.
        Some((data_type.length.into(), data_type.length.into()))
    }

    fn implicit_default(&self, _: &DataType) -> Value {
        Value::Bytes(Vec::new())
    }

    fn store<'r>(
        &self,
        data_type: &DataType,
        value: ValueRef<'r>,
        target: &StoreTarget<'_>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let bytes_max = data_type.length as usize;
        let text = valid_text(value, data_type.collation, target, scratch)?;
        if text.len() <= bytes_max {
            return Ok(ValueRef::Bytes(text));
        }
        let characters = data_type.collation.character_set();
        if characters.is_recoded() {
            let kept = characters.prefix(text, bytes_max);
            if kept.len() < text.len() {
                target.too_long(scratch)?;
            }
            return Ok(ValueRef::Bytes(kept));
        }
        // Never split a character: a character that crosses the limit is dropped.
        let is_text = !data_type.collation.is_binary();
        let mut cut = bytes_max;
        while is_text && cut > 0 && text[cut] & 0xC0 == 0x80 {
            cut -= 1;
        }
        target.too_long(scratch)?;
        Ok(ValueRef::Bytes(&text[..cut]))
    }

    fn stored(&self, data_type: &DataType) -> StoredType {
        StoredType::Text { length_bytes: data_type.bytes, collation: data_type.collation.name().into() }
    }
}
