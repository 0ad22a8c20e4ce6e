//! Results of sessions, in the protocol that their clients speak.

use junctor_model::error::{Error, Result};
use junctor_model::row_encoding::ResultColumn;
use junctor_sql::result::{Completion, KeyRows, ResultHeader, ResultSink};

use crate::mysql::PacketSink;
use crate::mysql::wire::capability::Capabilities;
use crate::native::NativeSink;

/// What a session's client speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dialect {
    /// The MySQL protocol, with what client and server agreed on.
    MySql(Capabilities),
    /// The native protocol.
    Native {
        /// The number of the request under way.
        number: u32,
    },
}

/// Appends results to the output of one command.
#[derive(Debug)]
pub(crate) enum AnswerSink<'a> {
    MySql(PacketSink<'a>),
    Native(NativeSink<'a>),
}

impl<'a> AnswerSink<'a> {
    /// Over an output in which the result under way begins at `result_start`, if nothing of it has left.
    #[inline]
    pub(crate) fn new(dialect: Dialect, out: &'a mut Vec<u8>, result_start: Option<usize>) -> AnswerSink<'a> {
        match dialect {
            Dialect::MySql(capabilities) => AnswerSink::MySql(PacketSink { out, capabilities, result_start }),
            Dialect::Native { number } => AnswerSink::Native(NativeSink { out, number, result_start, prepared: None }),
        }
    }

    /// In the native protocol, the answer is one to the request of that number; 0 for what nobody has asked.
    pub(crate) fn set_number(&mut self, number: u32) {
        if let AnswerSink::Native(sink) = self {
            sink.number = number;
        }
    }

    /// The next result begins here.
    pub(crate) fn begin_result(&mut self) {
        match self {
            AnswerSink::MySql(sink) => sink.result_start = Some(sink.out.len()),
            AnswerSink::Native(sink) => sink.result_start = Some(sink.out.len()),
        }
    }

    #[inline]
    fn sink(&mut self) -> &mut dyn ResultSink {
        match self {
            AnswerSink::MySql(sink) => sink,
            AnswerSink::Native(sink) => sink,
        }
    }
}

impl ResultSink for AnswerSink<'_> {
    fn header(&mut self, header: &ResultHeader, completion: &Completion) {
        self.sink().header(header, completion);
    }

    fn row_packets(&mut self, packets: &[u8]) {
        self.sink().row_packets(packets);
    }

    fn output(&mut self) -> &mut Vec<u8> {
        match self {
            AnswerSink::MySql(sink) => sink.out,
            AnswerSink::Native(sink) => sink.out,
        }
    }

    fn end_rows(&mut self, completion: &Completion) {
        self.sink().end_rows(completion);
    }

    fn complete(&mut self, completion: &Completion) {
        self.sink().complete(completion);
    }

    fn error(&mut self, error: &Error) {
        self.sink().error(error);
    }

    fn prepared(&mut self, statement: u32, parameters: u16, header: &ResultHeader, completion: &Completion) {
        self.sink().prepared(statement, parameters, header, completion);
    }

    fn field_list(&mut self, columns: &[(ResultColumn, Option<Vec<u8>>)], completion: &Completion) {
        self.sink().field_list(columns, completion);
    }

    fn begin_key_rows(&mut self, output: &mut Vec<u8>) {
        self.sink().begin_key_rows(output);
    }

    fn key_rows(&mut self, rows: &mut KeyRows, completion: &Completion) -> Result<()> {
        self.sink().key_rows(rows, completion)
    }

    fn plain_text(&mut self, text: &str) {
        self.sink().plain_text(text);
    }

    fn pending_bytes(&self) -> usize {
        match self {
            AnswerSink::MySql(sink) => sink.out.len(),
            AnswerSink::Native(sink) => sink.out.len(),
        }
    }
}
