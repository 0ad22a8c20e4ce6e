//! Hot path: at most 100 instructions per answer, not counting the rows; no allocation once a plan's header
//! is encoded.
//!
//! Encodes results as MySQL packets with sequence number 0; the link numbers them.

use junctor_model::error::Error;
use junctor_model::row_encoding::ResultColumn;
use junctor_sql::result::{Completion, ResultHeader, ResultSink, StateChange};

use super::wire::capability::Capabilities;
use super::wire::column::{ColumnDefault, ColumnDefinition, ColumnFlags};
use super::wire::field::put_length_encoded_bytes;
use super::wire::packet::PacketWriter;
use super::wire::parameter_type::ColumnType;
use super::wire::reply::{
    ErrorReply, OkReply, PrepareReply, ResultEnd, columns_have_end, encode_column_count, encode_file_request,
};
use super::wire::status::StatusFlags;

/// The types of changes in OK packets.
const TRACK_SYSTEM_VARIABLES: u8 = 0;
const TRACK_SCHEMA: u8 = 1;
const TRACK_STATE_CHANGE: u8 = 2;

/// Maximum length of a single copy in bytes.
const COPY_BYTES_MAX: usize = 1024;

/// Appends results to the output of one command.
#[derive(Debug)]
pub struct PacketSink<'a> {
    /// The packets encoded so far.
    pub out: &'a mut Vec<u8>,
    /// The capabilities of the connection.
    pub capabilities: Capabilities,
    /// Start of the current result in `out`, if no part of it has been sent. An error then replaces the
    /// result, because some clients wait forever for more rows if an error follows the first rows.
    pub result_start: Option<usize>,
}

impl PacketSink<'_> {
    fn packet(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        PacketWriter::new(self.out, 0).packet(encode);
    }

    /// Ends a result with another status flag.
    fn end_with(&mut self, completion: &Completion, flag: StatusFlags) {
        let ResultEnd { status, warning_count } = result_end(completion);
        let end = ResultEnd { status: status | flag, warning_count };
        let capabilities = self.capabilities;
        self.packet(|out| end.encode(capabilities, out));
    }
}

impl ResultSink for PacketSink<'_> {
    fn header(&mut self, header: &ResultHeader, completion: &Completion) {
        let encoded = header.encoded.get_or_init(|| encode_header(header));
        self.out.extend_from_slice(encoded);
        if columns_have_end(self.capabilities) {
            self.packet(|out| result_end(completion).encode_eof(out));
        }
    }

    fn row_packets(&mut self, packets: &[u8]) {
        self.out.reserve(packets.len());
        // A longer copy would use the processor's string instruction, which is slow to start.
        for part in packets.chunks(COPY_BYTES_MAX) {
            self.out.extend_from_slice(part);
        }
    }

    fn output(&mut self) -> &mut Vec<u8> {
        self.out
    }

    fn end_rows(&mut self, completion: &Completion) {
        let capabilities = self.capabilities;
        self.packet(|out| result_end(completion).encode(capabilities, out));
    }

    fn cursor_opened(&mut self, header: &ResultHeader, completion: &Completion) {
        let encoded = header.encoded.get_or_init(|| encode_header(header));
        self.out.extend_from_slice(encoded);
        self.end_with(completion, StatusFlags::CURSOR_EXISTS);
    }

    fn end_fetch(&mut self, completion: &Completion, is_end: bool) {
        self.end_with(completion, if is_end { StatusFlags::LAST_ROW_SENT } else { StatusFlags::CURSOR_EXISTS });
    }

    fn complete(&mut self, completion: &Completion) {
        let reply = OkReply {
            affected_rows: completion.affected_rows,
            last_insert_id: completion.last_insert_id,
            status: status_flags(completion),
            warning_count: completion.warnings,
            info: completion.info.as_bytes(),
        };
        if completion.state_changes.is_empty() {
            return self.packet(|out| reply.encode(out));
        }
        let changes = encode_state_changes(&completion.state_changes);
        let status = reply.status | StatusFlags::SESSION_STATE_CHANGED;
        self.packet(|out| OkReply { status, ..reply }.encode_with_changes(&changes, out));
    }

    fn error(&mut self, error: &Error) {
        let state = error.code.sqlstate().as_bytes();
        let mut sqlstate = *b"HY000";
        sqlstate.copy_from_slice(&state[..5]);
        if let Some(start) = self.result_start {
            self.out.truncate(start);
        }
        let reply = ErrorReply { errno: error.code.errno(), sqlstate, message: error.message.as_bytes() };
        self.packet(|out| reply.encode(out));
    }

    fn prepared(&mut self, statement: u32, parameters: u16, header: &ResultHeader, completion: &Completion) {
        let columns = header.columns.len() as u16;
        let reply = PrepareReply {
            statement_id: statement,
            column_count: columns,
            parameter_count: parameters,
            warning_count: completion.warnings,
        };
        self.packet(|out| reply.encode(out));
        for _ in 0..parameters {
            self.packet(|out| PARAMETER_DEFINITION.encode(out));
        }
        if parameters > 0 && columns_have_end(self.capabilities) {
            self.packet(|out| result_end(completion).encode_eof(out));
        }
        for column in &header.columns {
            self.packet(|out| definition(column).encode(out));
        }
        if columns > 0 && columns_have_end(self.capabilities) {
            self.packet(|out| result_end(completion).encode_eof(out));
        }
    }

    fn field_list(&mut self, columns: &[(ResultColumn, Option<Vec<u8>>)], completion: &Completion) {
        for (column, default) in columns {
            let default = default.as_deref().map_or(ColumnDefault::Null, ColumnDefault::Text);
            self.packet(|out| definition(column).encode_with_default(default, out));
        }
        self.end_rows(completion);
    }

    fn request_file(&mut self, name: &[u8]) -> bool {
        let sends_files = self.capabilities.contains(Capabilities::LOCAL_FILES);
        if sends_files {
            self.packet(|out| encode_file_request(name, out));
        }
        sends_files
    }

    fn plain_text(&mut self, text: &str) {
        self.packet(|out| out.extend_from_slice(text.as_bytes()));
    }

    fn pending_bytes(&self) -> usize {
        self.out.len()
    }
}

/// The definition that is sent for every parameter of a prepared statement. Like MySQL, it does not depend on
/// how the statement uses the parameter.
const PARAMETER_DEFINITION: ColumnDefinition<'static> = ColumnDefinition {
    schema: b"",
    table: b"",
    org_table: b"",
    name: b"?",
    org_name: b"",
    charset: 63,
    length_bytes: 0,
    column_type: ColumnType::VarString,
    flags: ColumnFlags::BINARY,
    decimals: 0,
};

fn encode_header(header: &ResultHeader) -> Box<[u8]> {
    let mut out = Vec::new();
    PacketWriter::new(&mut out, 0).packet(|out| encode_column_count(header.columns.len() as u16, out));
    for column in &header.columns {
        PacketWriter::new(&mut out, 0).packet(|out| definition(column).encode(out));
    }
    out.into_boxed_slice()
}

fn definition(column: &ResultColumn) -> ColumnDefinition<'_> {
    ColumnDefinition {
        schema: column.database.as_bytes(),
        table: column.table.as_bytes(),
        org_table: column.org_table.as_bytes(),
        name: column.name.as_bytes(),
        org_name: column.org_name.as_bytes(),
        charset: column.charset,
        length_bytes: column.length,
        column_type: ColumnType::from_code(column.wire_type).unwrap_or(ColumnType::VarString),
        flags: ColumnFlags::from_bits(column.flags),
        decimals: column.decimals,
    }
}

#[inline]
fn status_flags(completion: &Completion) -> StatusFlags {
    // A flag is a power of two, so the compiler turns each multiplication into a shift.
    let flag = |flag: StatusFlags, on: bool| StatusFlags::from_bits(flag.bits() * u16::from(on));
    flag(StatusFlags::AUTOCOMMIT, completion.autocommit)
        | flag(StatusFlags::IN_TRANSACTION, completion.in_transaction)
        | flag(StatusFlags::MORE_RESULTS_EXIST, completion.has_more)
        | flag(StatusFlags::NO_BACKSLASH_ESCAPES, completion.no_backslash_escapes)
}

/// The changes in the form of OK packets: each a type, a length and its data.
fn encode_state_changes(changes: &[StateChange]) -> Vec<u8> {
    let mut out = Vec::new();
    for change in changes {
        let mut data = Vec::new();
        let kind = match change {
            StateChange::Variable(name, value) => {
                put_length_encoded_bytes(&mut data, name.as_bytes());
                put_length_encoded_bytes(&mut data, value.as_bytes());
                TRACK_SYSTEM_VARIABLES
            }
            StateChange::Database(name) => {
                put_length_encoded_bytes(&mut data, name.as_bytes());
                TRACK_SCHEMA
            }
            StateChange::Any => {
                put_length_encoded_bytes(&mut data, b"1");
                TRACK_STATE_CHANGE
            }
        };
        out.push(kind);
        put_length_encoded_bytes(&mut out, &data);
    }
    out
}

#[inline]
fn result_end(completion: &Completion) -> ResultEnd {
    ResultEnd { status: status_flags(completion), warning_count: completion.warnings }
}

#[cfg(test)]
mod tests {
    use junctor_model::error::ErrorCode;

    use super::*;

    /// A row packet that precedes the error.
    const ROW: &[u8] = b"\x02\0\0\0\x015";

    fn answer_with_error(before: &[u8], is_sent: bool) -> Vec<u8> {
        let mut out = before.to_vec();
        let result_start = (!is_sent).then_some(out.len());
        let mut sink = PacketSink { out: &mut out, capabilities: Capabilities::NONE, result_start };
        sink.row_packets(ROW);
        sink.error(&Error::new(ErrorCode::DivisionByZero, "Division by 0"));
        out
    }

    #[test]
    fn an_error_replaces_rows_that_have_not_been_sent() {
        let [whole, part] = [false, true].map(|is_sent| answer_with_error(&[], is_sent));
        assert_eq!(whole.get(4), Some(&0xff));
        assert_eq!(part, [ROW, &whole].concat());
    }

    #[test]
    fn an_error_keeps_the_results_before_it() {
        let error = answer_with_error(&[], false);
        assert_eq!(answer_with_error(ROW, false), [ROW, &error].concat());
    }

    fn payloads(mut packets: &[u8]) -> Vec<&[u8]> {
        let mut payloads = Vec::new();
        while let Some((header, rest)) = packets.split_first_chunk::<4>() {
            let (payload, rest) = rest.split_at(usize::from(header[0]));
            payloads.push(payload);
            packets = rest;
        }
        payloads
    }

    #[test]
    fn every_result_but_the_last_announces_another() {
        for has_more in [false, true] {
            let completion = Completion { has_more, ..Completion::default() };
            let expected = StatusFlags::NONE.with(StatusFlags::MORE_RESULTS_EXIST, has_more);
            let encoded = |capabilities, encode: fn(&mut PacketSink<'_>, &Completion)| {
                let mut out = Vec::new();
                encode(&mut PacketSink { out: &mut out, capabilities, result_start: Some(0) }, &completion);
                out
            };
            let rows = |sink: &mut PacketSink<'_>, completion: &Completion| {
                sink.header(&ResultHeader::default(), completion);
                sink.end_rows(completion);
            };
            let old = encoded(Capabilities::NONE, rows);
            let ends: Vec<_> =
                payloads(&old)[1..].iter().map(|end| ResultEnd::parse_eof(end).unwrap().status).collect();
            assert_eq!(ends, [expected; 2]);
            let new = encoded(Capabilities::DEPRECATE_EOF, rows);
            let ends: Vec<_> = payloads(&new)[1..].iter().map(|end| OkReply::parse(end).unwrap().status).collect();
            assert_eq!(ends, [expected]);
            let done = encoded(Capabilities::NONE, |sink, completion| sink.complete(completion));
            assert_eq!(OkReply::parse(payloads(&done)[0]).unwrap().status, expected);
        }
    }
}
