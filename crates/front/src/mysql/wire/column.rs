//! Column definitions: the metadata of a result column, of a statement's parameter, or of a table's column.

use super::bit_set::bit_set;
use super::error::ProtocolError;
use super::field::{FieldReader, NULL_MARK, put_length_encoded_bytes, put_u16, put_u32};
use super::parameter_type::ColumnType;

const CATALOG: &[u8] = b"def";
const FIXED_BYTES: u64 = 12;

/// The flags of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ColumnFlags(u16);

impl ColumnFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Never NULL.
    pub const NOT_NULL: Self = Self(1);
    /// Part of the primary key.
    pub const PRIMARY_KEY: Self = Self(1 << 1);
    /// Part of a unique key.
    pub const UNIQUE_KEY: Self = Self(1 << 2);
    /// First column of a key that is not unique.
    pub const MULTIPLE_KEY: Self = Self(1 << 3);
    /// A BLOB or TEXT.
    pub const BLOB: Self = Self(1 << 4);
    /// An unsigned number.
    pub const UNSIGNED: Self = Self(1 << 5);
    /// Shown with leading zeros.
    pub const ZEROFILL: Self = Self(1 << 6);
    /// Compares as bytes.
    pub const BINARY: Self = Self(1 << 7);
    /// An ENUM.
    pub const ENUM: Self = Self(1 << 8);
    /// Filled from an AUTO_INCREMENT sequence.
    pub const AUTO_INCREMENT: Self = Self(1 << 9);
    /// A TIMESTAMP.
    pub const TIMESTAMP: Self = Self(1 << 10);
    /// A SET.
    pub const SET: Self = Self(1 << 11);
    /// Has no default, so INSERT must give a value.
    pub const NO_DEFAULT_VALUE: Self = Self(1 << 12);
    /// UPDATE sets it to the current time.
    pub const ON_UPDATE_NOW: Self = Self(1 << 13);
    /// A number.
    pub const NUMBER: Self = Self(1 << 15);
}

bit_set!(ColumnFlags, u16);

/// The definition of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    /// Name of the database; empty for an expression.
    pub schema: &'a [u8],
    /// Alias of the table in the statement, or its name; empty for an expression.
    pub table: &'a [u8],
    /// Name of the table itself.
    pub org_table: &'a [u8],
    /// Alias of the column in the statement, or its name.
    pub name: &'a [u8],
    /// Name of the column itself; empty for an expression.
    pub org_name: &'a [u8],
    /// Id of the collation; 63 for bytes and numbers.
    pub charset: u16,
    /// Maximum length of a value as text, in bytes.
    pub length_bytes: u32,
    /// Type of the values.
    pub column_type: ColumnType,
    /// Flags of the column.
    pub flags: ColumnFlags,
    /// Digits after the decimal point; 31 if their number is not fixed, 0 for integers and strings.
    pub decimals: u8,
}

/// The default of a column. Only replies to COM_FIELD_LIST contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnDefault<'a> {
    /// No default, or NULL.
    Null,
    /// The default as text.
    Text(&'a [u8]),
}

impl<'a> ColumnDefinition<'a> {
    /// Appends the payload for a result or a prepared statement.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_length_encoded_bytes(out, CATALOG);
        put_length_encoded_bytes(out, self.schema);
        put_length_encoded_bytes(out, self.table);
        put_length_encoded_bytes(out, self.org_table);
        put_length_encoded_bytes(out, self.name);
        put_length_encoded_bytes(out, self.org_name);
        out.push(FIXED_BYTES as u8);
        put_u16(out, self.charset);
        put_u32(out, self.length_bytes);
        out.push(self.column_type.code());
        put_u16(out, self.flags.bits());
        out.extend_from_slice(&[self.decimals, 0, 0]);
    }

    /// Appends the payload for a reply to COM_FIELD_LIST.
    pub fn encode_with_default(&self, default: ColumnDefault<'_>, out: &mut Vec<u8>) {
        self.encode(out);
        match default {
            ColumnDefault::Null => out.push(NULL_MARK),
            ColumnDefault::Text(text) => put_length_encoded_bytes(out, text),
        }
    }

    /// Decodes either form, as a client does. The default is `None` in the form without one.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if a field is truncated or the type is unknown.
    pub fn parse(payload: &'a [u8]) -> Result<(Self, Option<ColumnDefault<'a>>), ProtocolError> {
        let mut fields = FieldReader::new(payload);
        fields.length_encoded_bytes("catalog")?;
        let schema = fields.length_encoded_bytes("schema")?;
        let table = fields.length_encoded_bytes("table")?;
        let org_table = fields.length_encoded_bytes("org_table")?;
        let name = fields.length_encoded_bytes("name")?;
        let org_name = fields.length_encoded_bytes("org_name")?;
        if fields.length_encoded_integer("fixed_length")? != FIXED_BYTES {
            return Err(ProtocolError::Malformed { field: "fixed_length" });
        }
        let charset = fields.u16("charset")?;
        let length_bytes = fields.u32("length_bytes")?;
        let column_type = ColumnType::from_code(fields.u8("column_type")?)
            .ok_or(ProtocolError::Malformed { field: "column_type" })?;
        let flags = ColumnFlags::from_bits(fields.u16("flags")?);
        let decimals = fields.u8("decimals")?;
        fields.bytes(2, "filler")?;
        let default = match fields.is_empty() {
            true => None,
            false => Some(match fields.length_encoded_nullable("default")? {
                Some(text) => ColumnDefault::Text(text),
                None => ColumnDefault::Null,
            }),
        };
        let definition =
            Self { schema, table, org_table, name, org_name, charset, length_bytes, column_type, flags, decimals };
        Ok((definition, default))
    }
}
