//! Values of result rows, all shown as the text protocol shows them, so that both protocols can be compared.

use super::wire::PacketReader;

/// A value; `None` is NULL.
pub type Value = Option<String>;

/// What a row's decoding needs of a column.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name shown.
    pub name: String,
    /// The type's number.
    pub kind: u8,
    /// Whether the column is UNSIGNED.
    pub unsigned: bool,
}

impl Column {
    /// A column from its definition packet.
    pub fn parse(packet: &[u8]) -> Option<Column> {
        let mut reader = PacketReader(packet);
        for _ in 0..4 {
            reader.encoded_bytes()?;
        }
        let name = shown(reader.encoded_bytes()?);
        reader.encoded_bytes()?;
        reader.encoded_number()?;
        reader.bytes(2 + 4)?;
        let kind = reader.number(1)? as u8;
        let flags = reader.number(2)?;
        Some(Column { name, kind, unsigned: flags & 0x20 != 0 })
    }
}

/// A row of the text protocol.
pub fn text_row(packet: &[u8], columns: &[Column]) -> Option<Vec<Value>> {
    let mut reader = PacketReader(packet);
    let mut row = Vec::with_capacity(columns.len());
    for _ in columns {
        if reader.0.first() == Some(&0xfb) {
            reader.bytes(1)?;
            row.push(None);
        } else {
            row.push(Some(shown(reader.encoded_bytes()?)));
        }
    }
    Some(row)
}

/// A row of the binary protocol.
pub fn binary_row(packet: &[u8], columns: &[Column]) -> Option<Vec<Value>> {
    let mut reader = PacketReader(packet);
    reader.bytes(1)?;
    let nulls = reader.bytes((columns.len() + 9) / 8)?;
    let mut row = Vec::with_capacity(columns.len());
    for (position, column) in columns.iter().enumerate() {
        let bit = position + 2;
        let null = nulls[bit / 8] >> (bit % 8) & 1 == 1;
        row.push(if null { None } else { Some(binary_value(&mut reader, column)?) });
    }
    Some(row)
}

fn binary_value(reader: &mut PacketReader<'_>, column: &Column) -> Option<String> {
    let width = match column.kind {
        1 => 1,
        2 | 13 => 2,
        3 | 9 => 4,
        8 => 8,
        4 => return Some(f32::from_bits(reader.number(4)? as u32).to_string()),
        5 => return Some(f64::from_bits(reader.number(8)?).to_string()),
        _ => return Some(shown(reader.encoded_bytes()?)),
    };
    let number = reader.number(width)?;
    if column.unsigned {
        return Some(number.to_string());
    }
    let unused = 64 - 8 * width as u32;
    Some(((number << unused) as i64 >> unused).to_string())
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: u8, unsigned: bool) -> Column {
        Column { name: String::new(), kind, unsigned }
    }

    #[test]
    fn both_protocols_show_the_same_values() {
        let columns = [column(3, false), column(3, true), column(253, false), column(8, false)];
        let text = text_row(b"\x02-1\x0a4294967295\x02ab\xfb", &columns);
        let binary = binary_row(b"\0\x20\xff\xff\xff\xff\xff\xff\xff\xff\x02ab", &columns);
        let expected = vec![Some("-1".into()), Some("4294967295".into()), Some("ab".into()), None];
        assert_eq!(text, Some(expected.clone()));
        assert_eq!(binary, Some(expected));
    }

    #[test]
    fn a_short_row_is_none() {
        assert_eq!(text_row(b"\x05ab", &[column(253, false)]), None);
        assert_eq!(binary_row(b"\0\0\x01", &[column(3, false)]), None);
    }
}
