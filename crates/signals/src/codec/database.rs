//! Addresses, identifiers, values, errors and warnings.

use junctor_expression::Warning;
use junctor_expression::parameter::{append_value, read_value};
use junctor_kernel::{Address, DecodeError, NodeId};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::*;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::stored_settings::PersistedSettings;
use junctor_model::temporal::ValueRules;
use junctor_model::value::Value;

use super::page::Page;
#[cfg(test)]
use super::sample::{COLUMNS, Draw};
use super::wire::{Reader, Result, Wire, Writer};
use crate::diagnostics::Diagnostics;
use crate::read_rows::OperationId;

identifiers! {
    CommitNumber ConnectionId Epoch Incarnation NodeId OperationId RowId SchemaVersion StatementNumber TableId
    TableOwner TransactionId ValueRules
}

layout! { PartitionId { table, index } }
layout! { GlobalTransactionId { counter, incarnation, tc, node } }
layout! { Error { code, message } }
layout! { Warning { code, message } }
layout! { Diagnostics { warnings, count, last_insert_id } }
layout! {
    ResultColumn {
        name, org_name, table, org_table, database, wire_type, flags, charset, length, decimals,
    }
}

impl Wire for Address {
    #[inline(always)]
    fn encode(&self, writer: &mut Writer<'_>) {
        self.to_bits().encode(writer);
    }

    #[inline(always)]
    fn decode(reader: &mut Reader<'_>) -> Result<Address> {
        Address::from_bits(u32::decode(reader)?).ok_or(DecodeError::Invalid("address"))
    }

    fn describe(page: &mut Page) -> String {
        page.add("Address", |_| "u32: node, module u8, instance u16, from the lowest byte on".into())
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Address {
        let bits = draw.number() as u32 & 0xFFFF_0FFF;
        Address::from_bits(bits).expect("the module is below 16")
    }
}

/// Identifiers whose samples must be small, so that they name a column or an index of a sampled table.
macro_rules! positions {
    ($($name:ident below $bound:expr;)*) => {$(
        impl Wire for $name {
            #[inline(always)]
            fn encode(&self, writer: &mut Writer<'_>) {
                self.0.encode(writer);
            }

            #[inline(always)]
            fn decode(reader: &mut Reader<'_>) -> Result<$name> {
                u16::decode(reader).map($name)
            }

            fn describe(page: &mut Page) -> String {
                page.add(stringify!($name), |_| "u16".into())
            }

            #[cfg(test)]
            fn sample(draw: &mut Draw) -> $name {
                $name(draw.below($bound) as u16)
            }
        }
    )*};
}

positions! {
    ColumnNumber below COLUMNS.into();
    IndexId below 2;
}

impl Wire for CollationId {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.number().encode(writer);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<CollationId> {
        CollationId::from_number(u16::decode(reader)?).map_err(|_| DecodeError::Invalid("collation"))
    }

    fn describe(page: &mut Page) -> String {
        page.add("CollationId", |_| "u16: MySQL's number".into())
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> CollationId {
        CollationId::ALL[draw.below(CollationId::ALL.len() as u64) as usize]
    }
}

impl Wire for Value {
    fn encode(&self, writer: &mut Writer<'_>) {
        append_value(self.as_ref(), writer.out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Value> {
        let (value, rest) = read_value(reader.rest()).ok_or(DecodeError::Invalid("value"))?;
        let value = value.to_value();
        reader.take_until(rest.len());
        Ok(value)
    }

    fn describe(page: &mut Page) -> String {
        let text = "a tag byte and its content: 0 NULL; 1 i64; 2 u64; 3 double; 4 decimal: scale u8 and i128; 5 length \
                    u32 and bytes; 13 decimal of more than 38 digits: scale u8, sign u8 and 36 bytes";
        page.add("Value", |_| text.into())
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Value {
        match draw.below(6) {
            0 => Value::Null,
            1 => Value::Int(draw.number() as i64),
            2 => Value::UInt(draw.number()),
            3 => Value::Double(draw.number() as f64 / 7.0),
            4 => {
                let (number, scale) = (i128::from(draw.number() as i64), draw.below(31) as u8);
                let factor = if draw.below(2) == 0 { 1 } else { i128::from(u64::MAX) };
                Value::Decimal(junctor_model::decimal::new(number * factor, scale))
            }
            _ => Value::Bytes(Vec::sample(draw)),
        }
    }
}

/// The position of a code among those with the same number.
fn ordinal(code: ErrorCode) -> u8 {
    let before = ErrorCode::ALL.iter().take_while(|other| **other != code);
    before.filter(|other| other.errno() == code.errno()).count() as u8
}

impl Wire for ErrorCode {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.errno().encode(writer);
        ordinal(*self).encode(writer);
    }

    /// A code that only the peer's release knows becomes error 1105; its message stays.
    fn decode(reader: &mut Reader<'_>) -> Result<ErrorCode> {
        let (errno, ordinal) = (u16::decode(reader)?, u8::decode(reader)?);
        let mut codes = ErrorCode::ALL.iter().filter(|code| code.errno() == errno);
        Ok(codes.nth(ordinal.into()).copied().unwrap_or(ErrorCode::UnknownError))
    }

    fn describe(page: &mut Page) -> String {
        let text = "MySQL's number u16, position u8 among the codes with this number in the order of \
                    `crates/model/src/error.rs`; an unknown one becomes 1105";
        page.add("ErrorCode", |_| text.into())
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> ErrorCode {
        ErrorCode::ALL[draw.below(ErrorCode::ALL.len() as u64) as usize]
    }
}

/// Persisted settings have the form in which the data directory keeps them.
impl Wire for PersistedSettings {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.bytes(&PersistedSettings::encode(self));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<PersistedSettings> {
        PersistedSettings::decode(reader.bytes()?).map_err(|_| DecodeError::Invalid("settings"))
    }

    fn describe(page: &mut Page) -> String {
        page.add("PersistedSettings", |_| "bytes: settings (`docs/format.md`, \"Settings\")".into())
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> PersistedSettings {
        PersistedSettings { values: Vec::sample(draw).into_iter().collect() }
    }
}
