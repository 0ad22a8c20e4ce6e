//! Hot path: at most 20 instructions per value.
//!
//! Rows, decoded directly in the received bytes.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use junctor_model::number::parse_decimal;
use junctor_model::row_encoding::{column_flag, wire_type};
use junctor_model::temporal::{Parts, Temporal, TemporalKind};
use junctor_model::value::{Bit, Decimal, ValueRef};

use super::error::{Error, Result};
use super::value::FromValue;
use junctor_wire::reply::ColumnView;
use junctor_wire::{self, Frame, Malformed, Reply, frame, next_frame};

/// Name and type of a result column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMetadata {
    name: Box<str>,
    wire_type: u8,
    flags: u16,
    charset: u16,
    /// Size of a value in bytes; 0 if each value carries its own length.
    bytes: u8,
    /// Digits after the point.
    decimals: u8,
}

impl ColumnMetadata {
    fn new(column: ColumnView<'_>) -> ColumnMetadata {
        let bytes = match column.wire_type {
            wire_type::TINY => 1,
            wire_type::SHORT | wire_type::YEAR => 2,
            wire_type::LONG | wire_type::INT24 | wire_type::FLOAT => 4,
            wire_type::LONGLONG | wire_type::DOUBLE => 8,
            _ => 0,
        };
        let ColumnView { wire_type, flags, charset, decimals, name, .. } = column;
        ColumnMetadata { name: name.into(), wire_type, flags, charset, bytes, decimals }
    }

    /// The column's name or alias.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The SQL name of the type, without length or sign.
    pub fn type_name(&self) -> &'static str {
        match (self.wire_type, self.charset) {
            (wire_type::TINY, _) => "TINYINT",
            (wire_type::SHORT, _) => "SMALLINT",
            (wire_type::INT24, _) => "MEDIUMINT",
            (wire_type::LONG, _) => "INT",
            (wire_type::LONGLONG, _) => "BIGINT",
            (wire_type::DOUBLE, _) => "DOUBLE",
            (wire_type::FLOAT, _) => "FLOAT",
            (wire_type::YEAR, _) => "YEAR",
            (wire_type::DATE, _) => "DATE",
            (wire_type::TIME, _) => "TIME",
            (wire_type::DATETIME, _) => "DATETIME",
            (wire_type::TIMESTAMP, _) => "TIMESTAMP",
            (wire_type::BIT, _) => "BIT",
            (wire_type::JSON, _) => "JSON",
            (wire_type::GEOMETRY, _) => "GEOMETRY",
            (wire_type::VECTOR, _) => "VECTOR",
            (wire_type::NEWDECIMAL, _) => "DECIMAL",
            (wire_type::NULL, _) => "NULL",
            (wire_type::BLOB, 63) => "BLOB",
            (wire_type::BLOB, _) => "TEXT",
            (wire_type::STRING, 63) => "BINARY",
            (wire_type::STRING, _) => "CHAR",
            (_, 63) => "VARBINARY",
            _ => "VARCHAR",
        }
    }

    /// Whether the column is an unsigned integer.
    pub fn is_unsigned(&self) -> bool {
        self.flags & column_flag::UNSIGNED != 0
    }

    /// Whether the column cannot be NULL.
    pub fn is_never_null(&self) -> bool {
        self.flags & column_flag::NOT_NULL != 0
    }
}

/// The columns of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    columns: Box<[ColumnMetadata]>,
    /// Bytes of a row before its values: a header byte and the bitmap of NULLs.
    head_bytes: usize,
}

impl Columns {
    pub(crate) fn new(columns: junctor_wire::Columns<'_>) -> Columns {
        let columns: Box<[_]> = columns.iter().map(ColumnMetadata::new).collect();
        // MySQL's binary rows reserve the first two bits of the bitmap.
        let head_bytes = 1 + (columns.len() + 2).div_ceil(8);
        Columns { columns, head_bytes }
    }

    /// The columns in their order.
    pub fn iter(&self) -> impl Iterator<Item = &ColumnMetadata> {
        self.columns.iter()
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether the result has no columns, as for a statement that returns no rows.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// Identifies a result column by its position, from 0, or by its name in any case.
pub trait ColumnIndex: fmt::Display {
    /// The column's position; `None` if the result has no such column.
    fn position(&self, columns: &Columns) -> Option<usize>;
}

impl ColumnIndex for usize {
    #[inline]
    fn position(&self, columns: &Columns) -> Option<usize> {
        (*self < columns.len()).then_some(*self)
    }
}

impl ColumnIndex for &str {
    fn position(&self, columns: &Columns) -> Option<usize> {
        columns.iter().position(|column| column.name.eq_ignore_ascii_case(self))
    }
}

/// A row, borrowed from its result.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    columns: &'a Columns,
    bytes: &'a [u8],
}

impl<'a> Row<'a> {
    #[inline]
    pub(crate) fn new(columns: &'a Columns, bytes: &'a [u8]) -> Row<'a> {
        Row { columns, bytes }
    }

    /// The columns of the row.
    pub fn columns(&self) -> &'a Columns {
        self.columns
    }

    /// The value of a column, given by position or name, as a Rust type.
    ///
    /// # Errors
    /// The column does not exist, or the value cannot be converted to the type.
    #[inline]
    pub fn get<T: FromValue<'a>>(&self, column: impl ColumnIndex) -> Result<T> {
        let position = column.position(self.columns).ok_or_else(|| no_column(&column))?;
        T::from_value(self.value(position)?)
    }

    /// The value of the column at `position`, from 0. Decoding skips all earlier columns, so the cost grows
    /// with the position.
    ///
    /// # Errors
    /// The column does not exist, or the row is malformed.
    #[inline]
    pub fn value(&self, position: usize) -> Result<ValueRef<'a>> {
        let columns = &*self.columns.columns;
        let wanted = columns.get(position).ok_or_else(|| no_column(&position))?;
        let nulls = self.bytes.get(1..self.columns.head_bytes).ok_or(MALFORMED)?;
        let is_null = |position: usize| {
            let bit = position + 2;
            nulls[bit / 8] >> (bit % 8) & 1 != 0
        };
        if is_null(position) {
            return Ok(ValueRef::Null);
        }
        let mut rest = &self.bytes[self.columns.head_bytes..];
        for (before, column) in columns[..position].iter().enumerate() {
            if !is_null(before) {
                rest = skip(column, rest)?;
            }
        }
        Ok(read_value(wanted, rest)?)
    }

    /// The values of all columns.
    ///
    /// # Errors
    /// The row is malformed.
    pub fn values(&self) -> Result<Vec<ValueRef<'a>>> {
        (0..self.columns.len()).map(|position| self.value(position)).collect()
    }
}

impl fmt::Debug for Row<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values =
            self.columns.iter().enumerate().map(|(position, column)| (column.name(), self.value(position).ok()));
        formatter.debug_map().entries(values).finish()
    }
}

const MALFORMED: Malformed = Malformed { field: "row" };

#[cold]
fn no_column(column: &dyn fmt::Display) -> Error {
    Error::value(format!("The result has no column {column}"))
}

#[inline]
fn skip<'a>(column: &ColumnMetadata, bytes: &'a [u8]) -> std::result::Result<&'a [u8], Malformed> {
    match (column.bytes, column.wire_type) {
        (0, wire_type::NULL) => Ok(bytes),
        (0, _) => length_encoded(bytes).map(|(_, rest)| rest),
        (count, _) => bytes.get(usize::from(count)..).ok_or(MALFORMED),
    }
}

/// Splits a length-encoded string from the bytes after it.
#[inline]
fn length_encoded(bytes: &[u8]) -> std::result::Result<(&[u8], &[u8]), Malformed> {
    let (&first, rest) = bytes.split_first().ok_or(MALFORMED)?;
    let (length, rest) = match first {
        0..251 => (usize::from(first), rest),
        _ => long_length(first, rest)?,
    };
    rest.split_at_checked(length).ok_or(MALFORMED)
}

fn long_length(first: u8, rest: &[u8]) -> std::result::Result<(usize, &[u8]), Malformed> {
    let count = match first {
        0xFC => 2,
        0xFD => 3,
        0xFE => 8,
        _ => return Err(MALFORMED),
    };
    let (length, rest) = rest.split_at_checked(count).ok_or(MALFORMED)?;
    let mut word = [0; 8];
    word[..count].copy_from_slice(length);
    Ok((usize::try_from(u64::from_le_bytes(word)).map_err(|_| MALFORMED)?, rest))
}

#[inline]
fn read_value<'a>(column: &ColumnMetadata, bytes: &'a [u8]) -> std::result::Result<ValueRef<'a>, Malformed> {
    fn first<const N: usize>(bytes: &[u8]) -> std::result::Result<[u8; N], Malformed> {
        bytes.first_chunk().copied().ok_or(MALFORMED)
    }
    let integer = |signed: i64, unsigned: u64| match column.is_unsigned() {
        true => ValueRef::UInt(unsigned),
        false => ValueRef::Int(signed),
    };
    Ok(match column.wire_type {
        wire_type::LONG | wire_type::INT24 => {
            let value = u32::from_le_bytes(first(bytes)?);
            integer(i64::from(value as i32), u64::from(value))
        }
        wire_type::LONGLONG => {
            let value = u64::from_le_bytes(first(bytes)?);
            integer(value as i64, value)
        }
        wire_type::SHORT => {
            let value = u16::from_le_bytes(first(bytes)?);
            integer(i64::from(value as i16), u64::from(value))
        }
        wire_type::TINY => {
            let [value] = first(bytes)?;
            integer(i64::from(value as i8), u64::from(value))
        }
        wire_type::DOUBLE => ValueRef::Double(f64::from_le_bytes(first(bytes)?)),
        wire_type::NULL => ValueRef::Null,
        wire_type::FLOAT => ValueRef::Float(f32::from_le_bytes(first(bytes)?)),
        wire_type::YEAR => ValueRef::Temporal(Temporal::year(u16::from_le_bytes(first(bytes)?))),
        wire_type::DATE | wire_type::DATETIME | wire_type::TIMESTAMP | wire_type::TIME => {
            let (_, fields) = bytes.split_first().ok_or(MALFORMED)?;
            ValueRef::Temporal(temporal(column, &fields[..usize::from(bytes[0]).min(fields.len())])?)
        }
        wire_type::NEWDECIMAL => ValueRef::Decimal(decimal(length_encoded(bytes)?.0)?),
        wire_type::BIT => ValueRef::Bit(bit(length_encoded(bytes)?.0)?),
        _ => ValueRef::Bytes(length_encoded(bytes)?.0),
    })
}

/// Reads a day, a time or both: the fields up to the last one that is not 0.
fn temporal(column: &ColumnMetadata, fields: &[u8]) -> std::result::Result<Temporal, Malformed> {
    let mut padded = [0; 12];
    padded.get_mut(..fields.len()).ok_or(MALFORMED)?.copy_from_slice(fields);
    let word = |at: usize| u32::from_le_bytes([padded[at], padded[at + 1], padded[at + 2], padded[at + 3]]);
    let (kind, parts) = match column.wire_type {
        wire_type::TIME => {
            let hour = word(1).saturating_mul(24).saturating_add(padded[5].into());
            let (minute, second, microsecond) = (padded[6], padded[7], word(8));
            let hour = u16::try_from(hour).map_err(|_| MALFORMED)?;
            let negative = padded[0] != 0;
            (TemporalKind::Time, Parts { negative, hour, minute, second, microsecond, ..Parts::default() })
        }
        wire_type => {
            let year = u16::from_le_bytes([padded[0], padded[1]]);
            let (month, day, hour) = (padded[2], padded[3], padded[4].into());
            let (minute, second, microsecond) = (padded[5], padded[6], word(7));
            let kind = if wire_type == wire_type::DATE { TemporalKind::Date } else { TemporalKind::DateTime };
            (kind, Parts { negative: false, year, month, day, hour, minute, second, microsecond })
        }
    };
    let value = Temporal::from_parts(kind, column.decimals.min(6), &parts);
    if value.is_valid() { Ok(value) } else { Err(MALFORMED) }
}

/// Parses a decimal number.
fn decimal(text: &[u8]) -> std::result::Result<Decimal, Malformed> {
    let parsed = parse_decimal(text);
    if parsed.is_truncated { Err(MALFORMED) } else { parsed.value.ok_or(MALFORMED) }
}

fn bit(bytes: &[u8]) -> std::result::Result<Bit, Malformed> {
    let mut word = [0; 8];
    let at = word.len().checked_sub(bytes.len()).filter(|&at| at < word.len()).ok_or(MALFORMED)?;
    word[at..].copy_from_slice(bytes);
    Ok(Bit { number: u64::from_be_bytes(word), bytes: bytes.len() as u8 })
}

/// The result of a statement, apart from its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of rows that the statement inserted, changed or deleted. A row that matched but kept its values
    /// does not count.
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that the statement generated, or 0.
    pub last_insert_id: u64,
    /// Number of warnings. SHOW WARNINGS returns them.
    pub warnings: u16,
    /// MySQL's text about the result, for example "Rows matched: ..."; often empty.
    pub info: Box<str>,
}

/// The rows of a statement and its outcome.
#[derive(Debug, Default)]
pub struct Rows {
    columns: Arc<Columns>,
    bytes: Vec<u8>,
    /// The range of each row in `bytes`.
    ranges: Vec<Range<usize>>,
    outcome: Outcome,
}

impl Rows {
    /// Parses a whole reply. Also returns the session's status, bits of `STATUS_...`.
    pub(crate) fn parse(mut bytes: Vec<u8>) -> Result<(Rows, u8)> {
        let mut columns = Columns::default();
        let mut ranges = Vec::new();
        let mut long_row: Option<Vec<u8>> = None;
        let mut long_rows: Vec<Vec<u8>> = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some((Frame { kind, payload }, after)) = next_frame(rest) {
            let end = bytes.len() - after.len();
            rest = after;
            match Reply::parse(Frame { kind, payload })?.1 {
                Reply::Row(part) if long_row.is_some() || part.len() == frame::PAYLOAD_BYTES_MAX => {
                    let mut row = long_row.take().unwrap_or_default();
                    row.extend_from_slice(part);
                    match part.len() == frame::PAYLOAD_BYTES_MAX {
                        true => long_row = Some(row),
                        false => {
                            // A placeholder that is resolved below: the row's index in `long_rows`.
                            ranges.push(usize::MAX..long_rows.len());
                            long_rows.push(row);
                        }
                    }
                }
                Reply::Row(row) => ranges.push(end - row.len()..end),
                Reply::Columns(described) => columns = Columns::new(described),
                Reply::Done(done) => {
                    let outcome = Outcome {
                        affected_rows: done.affected_rows,
                        last_insert_id: done.last_insert_id,
                        warnings: done.warnings,
                        info: done.info.into(),
                    };
                    let status = done.status;
                    // Copy each row that spans several frames to the end of the buffer, where its bytes are
                    // contiguous.
                    for range in ranges.iter_mut().filter(|range| range.start == usize::MAX) {
                        let row = &long_rows[range.end];
                        *range = bytes.len()..bytes.len() + row.len();
                        bytes.extend_from_slice(row);
                    }
                    return Ok((Rows { columns: Arc::new(columns), bytes, ranges, outcome }, status));
                }
                Reply::Failed { errno, sqlstate, message } => return Err(Error::server(errno, sqlstate, message)),
                Reply::Prepared { .. } | Reply::KeyRows(_) => return Err(Error::protocol("kind")),
            }
        }
        Err(Error::protocol("end"))
    }

    /// The columns of the rows.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the result has no rows.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The row at `position`, from 0.
    pub fn get(&self, position: usize) -> Option<Row<'_>> {
        let range = self.ranges.get(position)?;
        Some(Row::new(&self.columns, &self.bytes[range.clone()]))
    }

    /// The rows in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.ranges.iter().map(|range| Row::new(&self.columns, &self.bytes[range.clone()]))
    }

    /// The outcome of the statement: affected rows, warnings and so on.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        self.outcome
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = Row<'a>;
    type IntoIter = RowsIter<'a>;

    fn into_iter(self) -> RowsIter<'a> {
        RowsIter { rows: self, position: 0 }
    }
}

/// Iterator over the rows of a result.
#[derive(Debug)]
pub struct RowsIter<'a> {
    rows: &'a Rows,
    position: usize,
}

impl<'a> Iterator for RowsIter<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        let row = self.rows.get(self.position)?;
        self.position += 1;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parsing_of_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok((rows, _)) = Rows::parse(bytes) {
                for row in &rows {
                    let _ = row.values();
                }
            }
        }
    }
}
