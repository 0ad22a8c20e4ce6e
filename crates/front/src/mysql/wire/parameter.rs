//! Hot path: at most 70 instructions per execution and 70 per number in it; no allocation once types are
//! bound.
//!
//! The parameters of COM_STMT_EXECUTE, and query attributes, which have the same form.

use super::error::ProtocolError;
use super::field::{FieldReader, put_length_encoded_bytes, put_u16, put_u32, put_u64};
pub use super::parameter_type::{ColumnType, ParameterType};

/// Maximum number of parameters of one statement; the protocol counts them in 16 bits.
pub const PARAMETER_COUNT_MAX: usize = 65_535;

/// The value of a parameter. Dates and times are as the client sent them, and may not exist in the calendar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParameterValue<'a> {
    /// NULL.
    Null,
    /// An integer of any width, bound as signed.
    Signed(i64),
    /// An integer of any width, bound as unsigned.
    Unsigned(u64),
    /// A FLOAT.
    Float(f32),
    /// A DOUBLE.
    Double(f64),
    /// A decimal number as text.
    Decimal(&'a [u8]),
    /// Characters in the connection's character set.
    Text(&'a [u8]),
    /// Bytes without a character set.
    Blob(&'a [u8]),
    /// A DATE.
    Date(DateValue),
    /// A DATETIME or TIMESTAMP.
    DateTime(DateTimeValue),
    /// A TIME.
    Time(TimeValue),
}

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateValue {
    /// Year, 0 in the zero date.
    pub year: u16,
    /// Month, 1 to 12 when valid.
    pub month: u8,
    /// Day of the month, 1 to 31 when valid.
    pub day: u8,
}

/// A day and a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateTimeValue {
    /// The day.
    pub date: DateValue,
    /// Hour of the day.
    pub hour: u8,
    /// Minute of the hour.
    pub minute: u8,
    /// Second of the minute.
    pub second: u8,
    /// Microseconds of the second.
    pub microsecond: u32,
}

/// A signed duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeValue {
    /// Whether the duration is negative.
    pub negative: bool,
    /// Whole days.
    pub days: u32,
    /// Hours in addition to the days.
    pub hours: u8,
    /// Minutes in addition to the hours.
    pub minutes: u8,
    /// Seconds in addition to the minutes.
    pub seconds: u8,
    /// Microseconds in addition to the seconds.
    pub microseconds: u32,
}

/// The undecoded part of COM_STMT_EXECUTE. Decoding needs the statement, which knows its number of
/// parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterBlock<'a> {
    /// Null bitmap, types and values.
    pub bytes: &'a [u8],
    /// Whether QUERY_ATTRIBUTES was negotiated. The block then has parameter names and a count.
    pub named: bool,
}

/// Decodes the parameters of one execution and passes each, in order, to `sink`.
///
/// `bound_types` are the types of this statement's last execution (empty at the first). New types from the
/// client replace them. `long_data` returns the parameters that arrived by COM_STMT_SEND_LONG_DATA; the block
/// has no values for these. Query attributes after the parameters are
/// left to `query_attributes`.
///
/// # Errors
/// [`ProtocolError::Malformed`] if a field is truncated, a type is unknown, or no types were ever sent. The
/// caller must drop the values that `sink` already received.
pub fn decode_parameters<'a>(
    block: &ParameterBlock<'a>,
    parameter_count: usize,
    bound_types: &mut Vec<ParameterType>,
    long_data: impl Fn(usize) -> Option<&'a [u8]>,
    sink: &mut impl FnMut(usize, ParameterValue<'a>),
) -> Result<(), ProtocolError> {
    if parameter_count == 0 {
        bound_types.clear();
        return Ok(());
    }
    let mut fields = FieldReader::new(block.bytes);
    let sent_count = if block.named { read_count(&mut fields)? } else { parameter_count };
    if sent_count < parameter_count {
        return Err(ProtocolError::Malformed { field: "parameter_count" });
    }
    let null_bitmap = fields.bytes(sent_count.div_ceil(8), "null_bitmap")?;
    match fields.u8("new_types")? {
        0 if bound_types.len() == parameter_count && sent_count == parameter_count => {}
        // Many clients send the same types with each execution.
        1 if !block.named && bound_types.len() == parameter_count && repeats(&mut fields, bound_types) => {}
        1 => read_types(&mut fields, block.named, sent_count, parameter_count, bound_types)?,
        _ => return Err(ProtocolError::Malformed { field: "new_types" }),
    }
    for (index, parameter_type) in bound_types.iter().enumerate() {
        let value = if let Some(bytes) = long_data(index) {
            bytes_value(parameter_type.column_type, bytes)
        } else if null_bitmap[index / 8] & (1 << (index % 8)) != 0 {
            ParameterValue::Null
        } else {
            read_value(&mut fields, *parameter_type)?
        };
        sink(index, value);
    }
    Ok(())
}

pub(super) fn read_count(fields: &mut FieldReader<'_>) -> Result<usize, ProtocolError> {
    const FIELD: &str = "parameter_count";
    match usize::try_from(fields.length_encoded_integer(FIELD)?) {
        Ok(count) if count <= PARAMETER_COUNT_MAX => Ok(count),
        _ => Err(ProtocolError::Malformed { field: FIELD }),
    }
}

/// Reads the types if they are those that are bound already, and nothing otherwise.
#[inline]
fn repeats(fields: &mut FieldReader<'_>, bound_types: &[ParameterType]) -> bool {
    let mut sent = *fields;
    for bound in bound_types {
        if sent.array("parameter_type") != Ok(bound.to_bytes()) {
            return false;
        }
    }
    *fields = sent;
    true
}

/// Reads the types. Checks that the bytes of all of them are present before it allocates, so a false count
/// costs no memory.
fn read_types(
    fields: &mut FieldReader<'_>,
    named: bool,
    sent_count: usize,
    parameter_count: usize,
    bound_types: &mut Vec<ParameterType>,
) -> Result<(), ProtocolError> {
    if fields.remaining_bytes() < sent_count * 2 {
        return Err(ProtocolError::Malformed { field: "parameter_type" });
    }
    bound_types.clear();
    bound_types.reserve_exact(parameter_count);
    for index in 0..sent_count {
        let parameter_type = ParameterType::from_bytes(fields.array("parameter_type")?)?;
        if named {
            fields.length_encoded_bytes("parameter_name")?;
        }
        if index < parameter_count {
            bound_types.push(parameter_type);
        }
    }
    Ok(())
}

#[inline]
pub(super) fn read_value<'a>(
    fields: &mut FieldReader<'a>,
    parameter_type: ParameterType,
) -> Result<ParameterValue<'a>, ProtocolError> {
    const FIELD: &str = "parameter_value";
    let unsigned = parameter_type.unsigned;
    Ok(match parameter_type.column_type {
        ColumnType::Null => ParameterValue::Null,
        ColumnType::Tiny => match fields.u8(FIELD)? {
            value if unsigned => ParameterValue::Unsigned(u64::from(value)),
            value => ParameterValue::Signed(i64::from(value as i8)),
        },
        ColumnType::Short | ColumnType::Year => match fields.u16(FIELD)? {
            value if unsigned => ParameterValue::Unsigned(u64::from(value)),
            value => ParameterValue::Signed(i64::from(value as i16)),
        },
        ColumnType::Long | ColumnType::Int24 => match fields.u32(FIELD)? {
            value if unsigned => ParameterValue::Unsigned(u64::from(value)),
            value => ParameterValue::Signed(i64::from(value as i32)),
        },
        ColumnType::LongLong => match fields.u64(FIELD)? {
            value if unsigned => ParameterValue::Unsigned(value),
            value => ParameterValue::Signed(value as i64),
        },
        ColumnType::Float => ParameterValue::Float(f32::from_le_bytes(fields.array(FIELD)?)),
        ColumnType::Double => ParameterValue::Double(f64::from_le_bytes(fields.array(FIELD)?)),
        ColumnType::Date => ParameterValue::Date(read_date_time(fields)?.date),
        ColumnType::DateTime | ColumnType::Timestamp => ParameterValue::DateTime(read_date_time(fields)?),
        ColumnType::Time => ParameterValue::Time(read_time(fields)?),
        column_type => bytes_value(column_type, fields.length_encoded_bytes(FIELD)?),
    })
}

#[inline]
fn bytes_value(column_type: ColumnType, bytes: &[u8]) -> ParameterValue<'_> {
    match column_type {
        ColumnType::Decimal | ColumnType::NewDecimal => ParameterValue::Decimal(bytes),
        ColumnType::Varchar
        | ColumnType::VarString
        | ColumnType::String
        | ColumnType::Enum
        | ColumnType::Set
        | ColumnType::Json => ParameterValue::Text(bytes),
        _ => ParameterValue::Blob(bytes),
    }
}

/// Reads a date of 0, 4, 7 or 11 bytes. Fields omitted at the end are zero.
fn read_date_time(fields: &mut FieldReader<'_>) -> Result<DateTimeValue, ProtocolError> {
    const FIELD: &str = "date_value";
    let length = fields.u8(FIELD)?;
    let mut value = DateTimeValue::default();
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(ProtocolError::Malformed { field: FIELD });
    }
    if length >= 4 {
        let year = fields.u16(FIELD)?;
        let [month, day] = fields.array(FIELD)?;
        value.date = DateValue { year, month, day };
    }
    if length >= 7 {
        [value.hour, value.minute, value.second] = fields.array(FIELD)?;
    }
    if length == 11 {
        value.microsecond = fields.u32(FIELD)?;
    }
    Ok(value)
}

/// Reads a duration of 0, 8 or 12 bytes. Fields omitted at the end are zero.
fn read_time(fields: &mut FieldReader<'_>) -> Result<TimeValue, ProtocolError> {
    const FIELD: &str = "time_value";
    let length = fields.u8(FIELD)?;
    let mut value = TimeValue::default();
    if !matches!(length, 0 | 8 | 12) {
        return Err(ProtocolError::Malformed { field: FIELD });
    }
    if length >= 8 {
        value.negative = fields.u8(FIELD)? != 0;
        value.days = fields.u32(FIELD)?;
        [value.hours, value.minutes, value.seconds] = fields.array(FIELD)?;
    }
    if length == 12 {
        value.microseconds = fields.u32(FIELD)?;
    }
    Ok(value)
}

/// Appends a parameter block without names, as a client does: NULL bitmap, types if `send_types`, and values.
pub fn encode_parameters(parameters: &[(ParameterType, ParameterValue<'_>)], send_types: bool, out: &mut Vec<u8>) {
    if parameters.is_empty() {
        return;
    }
    let bitmap = out.len();
    out.resize(bitmap + parameters.len().div_ceil(8), 0);
    for (index, (_, value)) in parameters.iter().enumerate() {
        if *value == ParameterValue::Null {
            out[bitmap + index / 8] |= 1 << (index % 8);
        }
    }
    out.push(u8::from(send_types));
    if send_types {
        for (parameter_type, _) in parameters {
            out.extend_from_slice(&parameter_type.to_bytes());
        }
    }
    for (parameter_type, value) in parameters {
        encode_value(parameter_type.column_type, value, out);
    }
}

fn encode_value(column_type: ColumnType, value: &ParameterValue<'_>, out: &mut Vec<u8>) {
    match *value {
        ParameterValue::Null => {}
        ParameterValue::Signed(value) => encode_integer(column_type, value as u64, out),
        ParameterValue::Unsigned(value) => encode_integer(column_type, value, out),
        ParameterValue::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
        ParameterValue::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
        ParameterValue::Decimal(bytes) | ParameterValue::Text(bytes) | ParameterValue::Blob(bytes) => {
            put_length_encoded_bytes(out, bytes);
        }
        ParameterValue::Date(date) => {
            out.push(4);
            encode_date(date, out);
        }
        ParameterValue::DateTime(value) => {
            out.push(11);
            encode_date(value.date, out);
            out.extend_from_slice(&[value.hour, value.minute, value.second]);
            put_u32(out, value.microsecond);
        }
        ParameterValue::Time(value) => {
            out.extend_from_slice(&[12, u8::from(value.negative)]);
            put_u32(out, value.days);
            out.extend_from_slice(&[value.hours, value.minutes, value.seconds]);
            put_u32(out, value.microseconds);
        }
    }
}

fn encode_integer(column_type: ColumnType, value: u64, out: &mut Vec<u8>) {
    match column_type {
        ColumnType::Tiny => out.push(value as u8),
        ColumnType::Short | ColumnType::Year => put_u16(out, value as u16),
        ColumnType::Long | ColumnType::Int24 => put_u32(out, value as u32),
        _ => put_u64(out, value),
    }
}

fn encode_date(date: DateValue, out: &mut Vec<u8>) {
    put_u16(out, date.year);
    out.extend_from_slice(&[date.month, date.day]);
}
