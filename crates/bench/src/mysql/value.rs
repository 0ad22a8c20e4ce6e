//! The values of result rows as text, so that results of both protocols (text and binary) can be compared.

use junctor_front::mysql::wire::ProtocolError;
use junctor_front::mysql::wire::column::{ColumnDefinition, ColumnFlags};
use junctor_front::mysql::wire::field::FieldReader;
use junctor_front::mysql::wire::parameter::ColumnType;

/// A value as text; `None` is NULL.
pub type Value = Option<String>;

/// The part of a column definition that is needed to decode rows.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name or alias.
    pub name: String,
    /// Encoding of the values in the binary protocol.
    pub column_type: ColumnType,
    /// Whether the integers are unsigned.
    pub is_unsigned: bool,
    /// Maximum length of a value as text, in bytes.
    pub length_bytes: u32,
    /// Digits after the decimal point; 31 if their number is not fixed.
    pub decimals: u8,
    /// The flags of the column definition.
    pub flags: ColumnFlags,
}

impl Column {
    /// Reads a column definition.
    ///
    /// # Errors
    /// The payload is not a column definition.
    pub fn parse(payload: &[u8]) -> Result<Column, ProtocolError> {
        let (definition, _) = ColumnDefinition::parse(payload)?;
        let is_unsigned = definition.flags.contains(ColumnFlags::UNSIGNED);
        Ok(Column {
            name: text(definition.name),
            column_type: definition.column_type,
            is_unsigned,
            length_bytes: definition.length_bytes,
            decimals: definition.decimals,
            flags: definition.flags,
        })
    }
}

/// Decodes a row of the text protocol.
///
/// # Errors
/// The payload is too short.
pub fn text_row(payload: &[u8], columns: &[Column]) -> Result<Vec<Value>, ProtocolError> {
    let mut fields = FieldReader::new(payload);
    columns.iter().map(|_| Ok(fields.length_encoded_nullable("value")?.map(text))).collect()
}

/// Decodes a row of the binary protocol.
///
/// # Errors
/// The payload is too short.
pub fn binary_row(payload: &[u8], columns: &[Column]) -> Result<Vec<Value>, ProtocolError> {
    // A row does not use the first two bits of its NULL bitmap.
    const BITMAP_OFFSET: usize = 2;
    let mut fields = FieldReader::new(payload);
    fields.u8("header")?;
    let nulls = fields.bytes((columns.len() + BITMAP_OFFSET).div_ceil(8), "null_bitmap")?;
    let is_null = |index: usize| nulls[index / 8] >> (index % 8) & 1 == 1;
    let values = columns.iter().enumerate().map(|(index, column)| {
        if is_null(index + BITMAP_OFFSET) { Ok(None) } else { binary_value(&mut fields, column).map(Some) }
    });
    values.collect()
}

fn binary_value(fields: &mut FieldReader<'_>, column: &Column) -> Result<String, ProtocolError> {
    let is_unsigned = column.is_unsigned;
    Ok(match column.column_type {
        ColumnType::Tiny => integer(fields.u8("value")?.into(), u8::BITS, is_unsigned),
        ColumnType::Short | ColumnType::Year => integer(fields.u16("value")?.into(), u16::BITS, is_unsigned),
        ColumnType::Long | ColumnType::Int24 => integer(fields.u32("value")?.into(), u32::BITS, is_unsigned),
        ColumnType::LongLong => integer(fields.u64("value")?, u64::BITS, is_unsigned),
        ColumnType::Float => f32::from_bits(fields.u32("value")?).to_string(),
        ColumnType::Double => f64::from_bits(fields.u64("value")?).to_string(),
        ColumnType::Date | ColumnType::DateTime | ColumnType::Timestamp | ColumnType::Time => {
            day_or_time(fields.length_encoded_bytes("value")?, column)?
        }
        _ => text(fields.length_encoded_bytes("value")?),
    })
}

/// The text of a day, a time or both. Fields at the end that are 0 are absent.
fn day_or_time(present: &[u8], column: &Column) -> Result<String, ProtocolError> {
    let mut bytes = present.to_vec();
    bytes.resize(12, 0);
    let mut fields = FieldReader::new(&bytes);
    let mut out = if column.column_type == ColumnType::Time {
        let sign = if fields.u8("sign")? == 1 { "-" } else { "" };
        let (days, hour) = (fields.u32("days")?, fields.u8("hour")?);
        format!("{sign}{:02}", days * 24 + u32::from(hour))
    } else {
        let year = fields.u16("year")?;
        let date = format!("{year:04}-{:02}-{:02}", fields.u8("month")?, fields.u8("day")?);
        if column.column_type == ColumnType::Date {
            return Ok(date);
        }
        format!("{date} {:02}", fields.u8("hour")?)
    };
    out.push_str(&format!(":{:02}:{:02}", fields.u8("minute")?, fields.u8("second")?));
    if column.decimals > 0 {
        let microseconds = format!("{:06}", fields.u32("microsecond")?);
        out.push('.');
        out.push_str(&microseconds[..usize::from(column.decimals.min(6))]);
    }
    Ok(out)
}

fn integer(number: u64, bits: u32, is_unsigned: bool) -> String {
    if is_unsigned {
        return number.to_string();
    }
    let unused = u64::BITS - bits;
    ((number << unused) as i64 >> unused).to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(column_type: ColumnType, is_unsigned: bool) -> Column {
        let flags = ColumnFlags::default();
        Column { name: String::new(), column_type, is_unsigned, length_bytes: 0, decimals: 0, flags }
    }

    #[test]
    fn both_protocols_show_the_same_values() {
        let columns = [
            column(ColumnType::Long, false),
            column(ColumnType::Long, true),
            column(ColumnType::VarString, false),
            column(ColumnType::LongLong, false),
        ];
        let text = text_row(b"\x02-1\x0a4294967295\x02ab\xfb", &columns);
        let binary = binary_row(b"\0\x20\xff\xff\xff\xff\xff\xff\xff\xff\x02ab", &columns);
        let expected = vec![Some("-1".into()), Some("4294967295".into()), Some("ab".into()), None];
        assert_eq!(text, Ok(expected.clone()));
        assert_eq!(binary, Ok(expected));
    }

    #[test]
    fn a_short_row_is_an_error() {
        assert!(text_row(b"\x05ab", &[column(ColumnType::VarString, false)]).is_err());
        assert!(binary_row(b"\0\0\x01", &[column(ColumnType::Long, false)]).is_err());
    }
}
