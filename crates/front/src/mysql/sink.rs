//! Hot path: at most 100 instructions per answer, not counting the rows; no allocation once a plan's header
//! is encoded.
//!
//! Encodes results as MySQL packets with sequence number 0; the link numbers them.

use junctor_model::error::Error;
use junctor_model::row_encoding::ResultColumn;
use junctor_sql::result::{Completion, ResultHeader, ResultSink, StateChange};

use super::result_encoding::ResultEncoding;
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
const TRACK_CHARACTERISTICS: u8 = 4;
const TRACK_TRANSACTION: u8 = 5;

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
    /// The character set of the results.
    encoding: &'a mut ResultEncoding,
    /// End of what needs no recoding in `out`.
    recoded_bytes: usize,
}

impl Drop for PacketSink<'_> {
    /// The engine may have written rows to the output.
    #[inline]
    fn drop(&mut self) {
        self.recode();
    }
}

impl<'a> PacketSink<'a> {
    /// A sink that appends to `out`.
    #[inline]
    pub fn new(
        out: &'a mut Vec<u8>,
        capabilities: Capabilities,
        encoding: &'a mut ResultEncoding,
        result_start: Option<usize>,
    ) -> PacketSink<'a> {
        let recoded_bytes = out.len();
        PacketSink { out, capabilities, result_start, encoding, recoded_bytes }
    }

    #[inline]
    fn packet(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        PacketWriter::new(self.out, 0).packet(encode);
    }

    /// Recodes the rows that have been written since the last call.
    #[inline]
    fn recode(&mut self) {
        if self.encoding.recodes_rows() {
            self.recode_rows();
        }
    }

    #[cold]
    fn recode_rows(&mut self) {
        if self.recoded_bytes < self.out.len() {
            self.encoding.recode_rows(self.out, self.recoded_bytes);
        }
        self.recoded_bytes = self.out.len();
    }

    /// Ends the rows, before a packet that is none.
    #[inline]
    fn finish_rows(&mut self) {
        if self.encoding.recodes_rows() {
            self.recode_rows();
            self.encoding.end_rows();
        }
    }

    /// Appends the packets that describe the columns.
    #[inline(always)]
    fn describe(&mut self, header: &ResultHeader, completion: &Completion) {
        self.finish_rows();
        self.encoding.set_wanted(completion.results);
        let (wanted, encoded) =
            header.encoded.get_or_init(|| (completion.results, encode_header(header, self.encoding)));
        match *wanted == completion.results {
            true => self.out.extend_from_slice(encoded),
            false => self.out.extend_from_slice(&encode_header(header, self.encoding)),
        }
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
        self.describe(header, completion);
        if columns_have_end(self.capabilities) {
            self.packet(|out| result_end(completion).encode_eof(out));
        }
        self.encoding.begin_rows(&header.columns);
        self.recoded_bytes = self.out.len();
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
        self.finish_rows();
        let capabilities = self.capabilities;
        if completion.state_changes.is_empty() {
            return self.packet(|out| result_end(completion).encode(capabilities, out));
        }
        let changes = encode_state_changes(&completion.state_changes);
        let status = status_flags(completion) | StatusFlags::SESSION_STATE_CHANGED;
        let ok = OkReply { status, warning_count: completion.warnings, ..OkReply::default() };
        self.packet(|out| ok.encode_as_result_end_with_changes(&changes, out));
    }

    fn ends_rows_with_changes(&self) -> bool {
        self.capabilities.contains(Capabilities::DEPRECATE_EOF)
    }

    fn cursor_opened(&mut self, header: &ResultHeader, completion: &Completion) {
        self.describe(header, completion);
        self.end_with(completion, StatusFlags::CURSOR_EXISTS);
        self.encoding.begin_rows(&header.columns);
        self.encoding.keep_for_cursor();
    }

    fn end_fetch(&mut self, completion: &Completion, is_end: bool) {
        self.finish_rows();
        self.end_with(completion, if is_end { StatusFlags::LAST_ROW_SENT } else { StatusFlags::CURSOR_EXISTS });
    }

    fn complete(&mut self, completion: &Completion) {
        self.encoding.set_wanted(completion.results);
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
        self.finish_rows();
        if let Some(start) = self.result_start {
            self.out.truncate(start);
        }
        let message = self.encoding.text(&error.message);
        let reply = ErrorReply { errno: error.code.errno(), sqlstate, message: &message };
        PacketWriter::new(self.out, 0).packet(|out| reply.encode(out));
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
        self.encoding.set_wanted(completion.results);
        for column in &header.columns {
            let encoding = &*self.encoding;
            PacketWriter::new(self.out, 0).packet(|out| encode_definition(column, encoding, None, out));
        }
        if columns > 0 && columns_have_end(self.capabilities) {
            self.packet(|out| result_end(completion).encode_eof(out));
        }
    }

    fn field_list(&mut self, columns: &[(ResultColumn, Option<Vec<u8>>)], completion: &Completion) {
        self.encoding.set_wanted(completion.results);
        for (column, default) in columns {
            let default = default.as_deref().map_or(ColumnDefault::Null, ColumnDefault::Text);
            let encoding = &*self.encoding;
            PacketWriter::new(self.out, 0).packet(|out| encode_definition(column, encoding, Some(default), out));
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

fn encode_header(header: &ResultHeader, encoding: &ResultEncoding) -> Box<[u8]> {
    let mut out = Vec::new();
    PacketWriter::new(&mut out, 0).packet(|out| encode_column_count(header.columns.len() as u16, out));
    for column in &header.columns {
        PacketWriter::new(&mut out, 0).packet(|out| encode_definition(column, encoding, None, out));
    }
    out.into_boxed_slice()
}

/// Appends the definition of a column in the client's character set.
fn encode_definition(
    column: &ResultColumn,
    encoding: &ResultEncoding,
    default: Option<ColumnDefault<'_>>,
    out: &mut Vec<u8>,
) {
    let names = [&column.database, &column.table, &column.org_table, &column.name, &column.org_name];
    let [schema, table, org_table, name, org_name] = names.map(|name| encoding.text(name));
    let (charset, length_bytes) = column.described_for(encoding.wanted());
    let definition = ColumnDefinition {
        schema: &schema,
        table: &table,
        org_table: &org_table,
        name: &name,
        org_name: &org_name,
        charset,
        length_bytes,
        column_type: ColumnType::from_code(column.wire_type).unwrap_or(ColumnType::VarString),
        flags: ColumnFlags::from_bits(column.flags),
        decimals: column.decimals,
    };
    match default {
        Some(default) => definition.encode_with_default(default, out),
        None => definition.encode(out),
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
            StateChange::TransactionState(letters) => {
                put_length_encoded_bytes(&mut data, letters);
                TRACK_TRANSACTION
            }
            StateChange::TransactionCharacteristics(statements) => {
                put_length_encoded_bytes(&mut data, statements.as_bytes());
                TRACK_CHARACTERISTICS
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
        let mut encoding = ResultEncoding::default();
        let mut sink = PacketSink::new(&mut out, Capabilities::NONE, &mut encoding, result_start);
        sink.row_packets(ROW);
        sink.error(&Error::new(ErrorCode::DivisionByZero, "Division by 0"));
        drop(sink);
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
                let mut encoding = ResultEncoding::default();
                encode(&mut PacketSink::new(&mut out, capabilities, &mut encoding, Some(0)), &completion);
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
