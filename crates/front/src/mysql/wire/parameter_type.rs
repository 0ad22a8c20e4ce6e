//! The types of columns and parameters, with their codes in the protocol.

use super::error::ProtocolError;

/// The type of a column or parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ColumnType {
    /// DECIMAL in its old form, sent as text.
    Decimal = 0,
    /// 1-byte integer.
    Tiny = 1,
    /// 2-byte integer.
    Short = 2,
    /// 4-byte integer.
    Long = 3,
    /// 4-byte floating point number.
    Float = 4,
    /// 8-byte floating point number.
    Double = 5,
    /// Always NULL.
    Null = 6,
    /// TIMESTAMP.
    Timestamp = 7,
    /// 8-byte integer.
    LongLong = 8,
    /// 3-byte integer, sent in 4 bytes.
    Int24 = 9,
    /// DATE.
    Date = 10,
    /// TIME, a signed duration.
    Time = 11,
    /// DATETIME.
    DateTime = 12,
    /// YEAR, sent in 2 bytes.
    Year = 13,
    /// VARCHAR in parameters.
    Varchar = 15,
    /// BIT, sent as bytes.
    Bit = 16,
    /// VECTOR, sent as bytes.
    Vector = 242,
    /// JSON, sent as text.
    Json = 245,
    /// DECIMAL, sent as text.
    NewDecimal = 246,
    /// ENUM, sent as text.
    Enum = 247,
    /// SET, sent as text.
    Set = 248,
    /// TINYBLOB or TINYTEXT.
    TinyBlob = 249,
    /// MEDIUMBLOB or MEDIUMTEXT.
    MediumBlob = 250,
    /// LONGBLOB or LONGTEXT.
    LongBlob = 251,
    /// BLOB or TEXT.
    Blob = 252,
    /// VARCHAR or VARBINARY in results.
    VarString = 253,
    /// CHAR or BINARY.
    String = 254,
    /// A geometry, sent as bytes.
    Geometry = 255,
}

impl ColumnType {
    /// The type with this code, if it exists.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Decimal,
            1 => Self::Tiny,
            2 => Self::Short,
            3 => Self::Long,
            4 => Self::Float,
            5 => Self::Double,
            6 => Self::Null,
            7 => Self::Timestamp,
            8 => Self::LongLong,
            9 => Self::Int24,
            10 => Self::Date,
            11 => Self::Time,
            12 => Self::DateTime,
            13 => Self::Year,
            15 => Self::Varchar,
            16 => Self::Bit,
            242 => Self::Vector,
            245 => Self::Json,
            246 => Self::NewDecimal,
            247 => Self::Enum,
            248 => Self::Set,
            249 => Self::TinyBlob,
            250 => Self::MediumBlob,
            251 => Self::LongBlob,
            252 => Self::Blob,
            253 => Self::VarString,
            254 => Self::String,
            255 => Self::Geometry,
            _ => return None,
        })
    }

    /// The code of the type.
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// The type of a parameter as the client bound it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterType {
    /// How the value is encoded.
    pub column_type: ColumnType,
    /// Whether an integer is unsigned.
    pub unsigned: bool,
}

impl ParameterType {
    const UNSIGNED_FLAG: u8 = 0x80;

    /// Decodes the two bytes of a bound type.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if no type has this code.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 2]) -> Result<Self, ProtocolError> {
        match ColumnType::from_code(bytes[0]) {
            Some(column_type) => Ok(Self { column_type, unsigned: bytes[1] & Self::UNSIGNED_FLAG != 0 }),
            None => Err(ProtocolError::Malformed { field: "parameter_type" }),
        }
    }

    /// The two bytes of the bound type.
    #[inline]
    pub const fn to_bytes(self) -> [u8; 2] {
        [self.column_type.code(), if self.unsigned { Self::UNSIGNED_FLAG } else { 0 }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use junctor_model::row_encoding::wire_type;

    #[test]
    fn every_type_of_a_result_column_reaches_clients_under_its_code() {
        for code in [wire_type::VECTOR, wire_type::JSON, wire_type::NEWDECIMAL, wire_type::BLOB, wire_type::GEOMETRY] {
            assert_eq!(ColumnType::from_code(code).map(ColumnType::code), Some(code));
        }
    }
}
