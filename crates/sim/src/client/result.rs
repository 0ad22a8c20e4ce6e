//! Parses the packets of one answer, in text or binary format.

use junctor_front::mysql::wire::Capabilities;
use junctor_front::mysql::wire::column::{ColumnDefinition, ColumnFlags};
use junctor_front::mysql::wire::field::{FieldReader, NULL_MARK};
use junctor_front::mysql::wire::parameter::ColumnType;
use junctor_front::mysql::wire::reply::{ErrorReply, OkReply, ResultEnd, columns_have_end};
use junctor_front::mysql::wire::status::StatusFlags;

use super::connection::{ClientFault, failed};
use crate::statement::{Cell, Reply};

/// Maximum length of an EOF packet, in bytes. A longer packet with the same header is a row.
const EOF_BYTES_MAX: usize = 8;

/// The parser of one answer.
#[derive(Debug)]
pub(super) struct ResultReader {
    is_binary: bool,
    has_eof: bool,
    stage: Stage,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Whether another result follows this one.
    has_more: bool,
}

#[derive(Debug)]
struct Column {
    column_type: ColumnType,
    is_unsigned: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Head,
    Columns { left: u64 },
    ColumnsEnd,
    Rows,
}

impl ResultReader {
    /// A parser for the answer to COM_QUERY.
    pub fn text(capabilities: Capabilities) -> Self {
        Self::new(false, capabilities)
    }

    /// A parser for the answer to COM_STMT_EXECUTE.
    pub fn binary(capabilities: Capabilities) -> Self {
        Self::new(true, capabilities)
    }

    fn new(is_binary: bool, capabilities: Capabilities) -> Self {
        let has_eof = columns_have_end(capabilities);
        Self { is_binary, has_eof, stage: Stage::Head, columns: Vec::new(), rows: Vec::new(), has_more: false }
    }

    /// Whether the completed result is followed by another one of the same text.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Processes a packet. Returns the reply once it is complete.
    pub fn on_packet(&mut self, payload: &[u8]) -> Result<Option<Reply>, ClientFault> {
        let header = payload.first().copied();
        if header == Some(0xff) && !matches!(self.stage, Stage::Columns { .. } | Stage::ColumnsEnd) {
            return Ok(Some(failed(&ErrorReply::parse(payload)?)));
        }
        match self.stage {
            Stage::Head if header == Some(0) => {
                let ok = OkReply::parse(payload)?;
                self.has_more = ok.status.contains(StatusFlags::MORE_RESULTS_EXIST);
                return Ok(Some(Reply::Done {
                    affected_rows: ok.affected_rows,
                    insert_id: ok.last_insert_id,
                    in_transaction: ok.status.contains(StatusFlags::IN_TRANSACTION),
                }));
            }
            Stage::Head => {
                let mut fields = FieldReader::new(payload);
                let left = fields.length_encoded_integer("column_count")?;
                check_end(&fields)?;
                self.stage = Stage::Columns { left };
            }
            Stage::Columns { left } => {
                let (definition, _) = ColumnDefinition::parse(payload)?;
                let is_unsigned = definition.flags.contains(ColumnFlags::UNSIGNED);
                self.columns.push(Column { column_type: definition.column_type, is_unsigned });
                self.stage = match (left, self.has_eof) {
                    (1, true) => Stage::ColumnsEnd,
                    (1, false) => Stage::Rows,
                    _ => Stage::Columns { left: left - 1 },
                };
            }
            Stage::ColumnsEnd => {
                ResultEnd::parse_eof(payload)?;
                self.stage = Stage::Rows;
            }
            Stage::Rows => {
                if header == Some(0xfe)
                    && let Some(end) = self.end(payload)?
                {
                    self.has_more = end.contains(StatusFlags::MORE_RESULTS_EXIST);
                    return Ok(Some(Reply::Rows(std::mem::take(&mut self.rows))));
                }
                let row = if self.is_binary { self.binary_row(payload)? } else { self.text_row(payload)? };
                self.rows.push(row);
            }
        }
        Ok(None)
    }

    /// The status flags, if the packet ends the rows.
    fn end(&self, payload: &[u8]) -> Result<Option<StatusFlags>, ClientFault> {
        Ok(match self.has_eof {
            true if payload.len() > EOF_BYTES_MAX => None,
            true => Some(ResultEnd::parse_eof(payload)?.status),
            false => Some(OkReply::parse(payload)?.status),
        })
    }

    fn text_row(&self, payload: &[u8]) -> Result<Vec<Cell>, ClientFault> {
        let mut fields = FieldReader::new(payload);
        let mut row = Vec::with_capacity(self.columns.len());
        for _ in &self.columns {
            row.push(fields.length_encoded_nullable("value")?.map(lossy_text));
        }
        check_end(&fields)?;
        Ok(row)
    }

    fn binary_row(&self, payload: &[u8]) -> Result<Vec<Cell>, ClientFault> {
        let mut fields = FieldReader::new(payload);
        if fields.u8("header")? != 0 {
            return Err(ClientFault("a binary row without a header".to_owned()));
        }
        let nulls = fields.bytes((self.columns.len() + 9) / 8, "null_bitmap")?;
        let mut row = Vec::with_capacity(self.columns.len());
        for (position, column) in self.columns.iter().enumerate() {
            let bit = position + 2;
            let is_null = nulls[bit / 8] & 1 << (bit % 8) != 0;
            row.push(if is_null { None } else { Some(column.value(&mut fields)?) });
        }
        check_end(&fields)?;
        Ok(row)
    }
}

impl Column {
    fn value(&self, fields: &mut FieldReader<'_>) -> Result<String, ClientFault> {
        const FIELD: &str = "value";
        let signed = |value: i64| value.to_string();
        Ok(match (self.column_type, self.is_unsigned) {
            (ColumnType::Tiny, true) => fields.u8(FIELD)?.to_string(),
            (ColumnType::Tiny, false) => signed(i64::from(fields.u8(FIELD)? as i8)),
            (ColumnType::Short, true) | (ColumnType::Year, _) => fields.u16(FIELD)?.to_string(),
            (ColumnType::Short, false) => signed(i64::from(fields.u16(FIELD)? as i16)),
            (ColumnType::Long | ColumnType::Int24, true) => fields.u32(FIELD)?.to_string(),
            (ColumnType::Long | ColumnType::Int24, false) => signed(i64::from(fields.u32(FIELD)? as i32)),
            (ColumnType::LongLong, true) => fields.u64(FIELD)?.to_string(),
            (ColumnType::LongLong, false) => signed(fields.u64(FIELD)? as i64),
            (ColumnType::Float, _) => f32::from_bits(fields.u32(FIELD)?).to_string(),
            (ColumnType::Double, _) => f64::from_bits(fields.u64(FIELD)?).to_string(),
            (ColumnType::Date | ColumnType::DateTime | ColumnType::Timestamp | ColumnType::Time, _) => {
                return Err(ClientFault("a date or time, which no workload selects".to_owned()));
            }
            _ => lossy_text(fields.length_encoded_bytes(FIELD)?),
        })
    }
}

fn check_end(fields: &FieldReader<'_>) -> Result<(), ClientFault> {
    match fields.remaining_bytes() {
        0 => Ok(()),
        bytes => Err(ClientFault(format!("{bytes} bytes after the last field of a packet"))),
    }
}

fn lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The NULL marker differs from the headers of EOF and ERR packets; otherwise a row could look like the end.
const _: () = assert!(NULL_MARK != 0xfe && NULL_MARK != 0xff);
