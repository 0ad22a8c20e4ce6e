//! Types of columns as they lie on disk (`docs/format.md`, "Schema").

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::decimal::{DECIMAL_PRECISION_MAX, DECIMAL_SCALE_MAX};
use crate::geometry::{GeometryKind, ReferenceSystem};
use crate::stored_schema::{StoredSchemaError, collation, invalid, is_false};
use crate::types::{BITS_MAX, DataType, ENUM_MEMBERS_MAX, Members, SET_MEMBERS_MAX, VECTOR_ENTRIES_MAX};

/// A type. CHAR, VARCHAR and TEXT with the collation binary are BINARY, VARBINARY and BLOB.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum StoredType {
    Integer {
        bytes: u8,
        unsigned: bool,
        #[serde(default, skip_serializing_if = "is_false")]
        zerofill: bool,
    },
    Double {
        #[serde(default, skip_serializing_if = "is_false")]
        unsigned: bool,
        #[serde(default, skip_serializing_if = "is_false")]
        zerofill: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digits: Option<(u8, u8)>,
    },
    Char {
        length: u16,
        collation: Box<str>,
    },
    Varchar {
        length: u16,
        collation: Box<str>,
    },
    Text {
        length_bytes: u8,
        collation: Box<str>,
    },
    Year {},
    Date {},
    Time {
        digits: u8,
    },
    Datetime {
        digits: u8,
    },
    Timestamp {
        digits: u8,
    },
    Decimal {
        precision: u8,
        scale: u8,
        unsigned: bool,
        #[serde(default, skip_serializing_if = "is_false")]
        zerofill: bool,
    },
    Float {
        #[serde(default, skip_serializing_if = "is_false")]
        unsigned: bool,
        #[serde(default, skip_serializing_if = "is_false")]
        zerofill: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digits: Option<(u8, u8)>,
    },
    Json {},
    Vector {
        entries: u16,
    },
    Geometry {
        class: Box<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        srid: Option<u32>,
    },
    Bit {
        bits: u8,
    },
    Enum {
        members: Vec<Box<str>>,
        collation: Box<str>,
    },
    Set {
        members: Vec<Box<str>>,
        collation: Box<str>,
    },
}

fn members_of(names: Vec<Box<str>>, max: usize) -> Result<Arc<Members>, StoredSchemaError> {
    if names.is_empty() || names.len() > max {
        return Err(invalid(format_args!("no type has {} members", names.len())));
    }
    Ok(Arc::new(Members::new(names.into_iter().map(|name| name.into_string().into_bytes().into()).collect())))
}

fn filled(number: DataType, zerofill: bool) -> DataType {
    if zerofill { number.zero_filled() } else { number }
}

impl TryFrom<StoredType> for DataType {
    type Error = StoredSchemaError;

    fn try_from(stored: StoredType) -> Result<DataType, StoredSchemaError> {
        Ok(match stored {
            StoredType::Integer { bytes, unsigned, zerofill } if matches!(bytes, 1..=4 | 8) => {
                filled(DataType::integer(bytes, unsigned), zerofill)
            }
            StoredType::Text { length_bytes, collation: name } if matches!(length_bytes, 1..=4) => {
                DataType::text_or_blob(length_bytes, collation(&name)?)
            }
            StoredType::Integer { bytes, .. } | StoredType::Text { length_bytes: bytes, .. } => {
                return Err(invalid(format_args!("no type has {bytes} bytes")));
            }
            StoredType::Double { unsigned, zerofill, digits } => {
                filled(DataType::floating(true, digits, unsigned), zerofill)
            }
            StoredType::Year {} => DataType::year(),
            StoredType::Date {} => DataType::date(),
            StoredType::Time { digits: 7.. }
            | StoredType::Datetime { digits: 7.. }
            | StoredType::Timestamp { digits: 7.. } => {
                return Err(invalid("seconds have at most 6 digits after the point"));
            }
            StoredType::Time { digits } => DataType::time(digits),
            StoredType::Datetime { digits } => DataType::date_time(digits),
            StoredType::Timestamp { digits } => DataType::timestamp(digits),
            StoredType::Decimal { precision, scale, unsigned, zerofill } => match precision {
                1..=DECIMAL_PRECISION_MAX if scale <= precision.min(DECIMAL_SCALE_MAX) => {
                    filled(DataType::decimal(precision, scale, unsigned), zerofill)
                }
                _ => return Err(invalid(format_args!("there is no DECIMAL({precision},{scale})"))),
            },
            StoredType::Float { unsigned, zerofill, digits } => {
                filled(DataType::floating(false, digits, unsigned), zerofill)
            }
            StoredType::Json {} => DataType::json(),
            StoredType::Vector { entries } => match u32::from(entries) {
                1..=VECTOR_ENTRIES_MAX => DataType::vector(entries),
                _ => return Err(invalid(format_args!("there is no VECTOR({entries})"))),
            },
            StoredType::Geometry { class, srid } => match GeometryKind::of_name(&class) {
                Some(kind) if srid.is_none_or(ReferenceSystem::is_known) => DataType::geometry(kind, srid),
                _ => return Err(invalid(format_args!("there is no type {class} SRID {}", srid.unwrap_or(0)))),
            },
            StoredType::Bit { bits } => match bits {
                1..=BITS_MAX => DataType::bit(bits),
                _ => return Err(invalid(format_args!("there is no BIT({bits})"))),
            },
            StoredType::Enum { members, collation: name } => {
                DataType::enumeration(members_of(members, ENUM_MEMBERS_MAX)?, collation(&name)?)
            }
            StoredType::Set { members, collation: name } => {
                DataType::set(members_of(members, SET_MEMBERS_MAX)?, collation(&name)?)
            }
            StoredType::Char { length, collation: name } => DataType::char(length, collation(&name)?),
            StoredType::Varchar { length, collation: name } => DataType::varchar(length, collation(&name)?),
        })
    }
}
