//! Hot path: at most 60 instructions per answer, not counting the rows.
//!
//! Encodes results of sessions as frames of the native protocol.

use junctor_model::error::{Error, Result};
use junctor_model::row_encoding::ResultColumn;
use junctor_sql::result::{Completion, KeyRows, ResultHeader, ResultSink};
use junctor_wire::reply::{self, Done};

use super::key_rows;

/// Appends results to the output of one request.
#[derive(Debug)]
pub(crate) struct NativeSink<'a> {
    /// The frames encoded so far.
    pub out: &'a mut Vec<u8>,
    /// The number of the request, which its reply repeats.
    pub number: u32,
    /// Start of the current result in `out`, if no part of it has been sent. An error then replaces the
    /// result.
    pub result_start: Option<usize>,
    /// The SQL engine's id of the statement that the request prepared.
    pub prepared: Option<u32>,
}

impl ResultSink for NativeSink<'_> {
    fn header(&mut self, header: &ResultHeader, _completion: &Completion) {
        let columns = header.native.get_or_init(|| {
            let mut encoded = Vec::new();
            reply::encode_columns(&header.columns, &mut encoded);
            encoded.into()
        });
        reply::encode_columns_frame(self.number, columns, self.out);
    }

    fn row_packets(&mut self, packets: &[u8]) {
        self.out.extend_from_slice(packets);
    }

    fn output(&mut self) -> &mut Vec<u8> {
        self.out
    }

    fn end_rows(&mut self, completion: &Completion) {
        self.complete(completion);
    }

    fn complete(&mut self, completion: &Completion) {
        let done = Done {
            status: status_of(completion),
            warnings: completion.warnings,
            affected_rows: completion.affected_rows,
            last_insert_id: completion.last_insert_id,
            info: &completion.info,
        };
        reply::encode_done(self.number, &done, self.out);
    }

    fn error(&mut self, error: &Error) {
        if let Some(start) = self.result_start {
            self.out.truncate(start);
        }
        let mut sqlstate = *b"HY000";
        sqlstate.copy_from_slice(&error.code.sqlstate().as_bytes()[..5]);
        reply::encode_failed(self.number, error.code.errno(), sqlstate, &error.message, self.out);
    }

    fn prepared(&mut self, statement: u32, parameters: u16, header: &ResultHeader, _completion: &Completion) {
        self.prepared = Some(statement);
        reply::encode_prepared(self.number, parameters, &header.columns, self.out);
    }

    fn field_list(&mut self, _columns: &[(ResultColumn, Option<Vec<u8>>)], completion: &Completion) {
        // This protocol has no request that lists fields.
        self.complete(completion);
    }

    fn begin_key_rows(&mut self, output: &mut Vec<u8>) {
        reply::begin_key_rows(output);
    }

    fn key_rows(&mut self, rows: &mut KeyRows, completion: &Completion) -> Result<()> {
        key_rows::assemble(self.number, status_of(completion), rows, self.out)
    }

    fn plain_text(&mut self, text: &str) {
        reply::encode_done(
            self.number,
            &Done { status: 0, warnings: 0, affected_rows: 0, last_insert_id: 0, info: text },
            self.out,
        );
    }

    fn pending_bytes(&self) -> usize {
        self.out.len()
    }
}

fn status_of(completion: &Completion) -> u8 {
    let flag = |flag: u8, is_set: bool| flag * u8::from(is_set);
    flag(reply::STATUS_AUTOCOMMIT, completion.autocommit)
        | flag(reply::STATUS_IN_TRANSACTION, completion.in_transaction)
}
