//! How results leave a session: the protocol's side implements [`ResultSink`] over its output buffer.

use std::sync::OnceLock;

use junctor_model::error::{Error, Result};
use junctor_model::row_encoding::ResultColumn;

/// The columns of a result, with room for their wire form, which is the same for every execution of a plan.
#[derive(Debug, Default)]
pub struct ResultHeader {
    /// The columns.
    pub columns: Vec<ResultColumn>,
    /// The packets of the column count and the definitions, sequence 0. Filled by the sink at first use.
    pub encoded: OnceLock<Box<[u8]>>,
    /// The columns in the native protocol, likewise.
    pub native: OnceLock<Box<[u8]>>,
}

/// Stands for the partition of a key that no row can have.
pub const NO_PARTITION: u16 = u16::MAX;

/// The rows of a read by keys.
#[derive(Debug, Default)]
pub struct KeyRows {
    /// For each key the partition that it was sent to, or [`NO_PARTITION`].
    pub order: Vec<u16>,
    /// Answers of partitions, those of one partition in their order: the partition, whether the bytes of
    /// `begin_key_rows` stand before the packets, and a packet for each key, empty for one that no row has.
    pub parts: Vec<(u16, bool, Vec<u8>)>,
    /// Number of those bytes.
    pub head_bytes: usize,
}

impl ResultHeader {
    /// The header of these columns.
    pub fn new(columns: Vec<ResultColumn>) -> ResultHeader {
        ResultHeader { columns, encoded: OnceLock::new(), native: OnceLock::new() }
    }
}

/// The content of an OK or end-of-rows packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Rows changed (or matched, if the client asked for found rows).
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that the statement made, or 0.
    pub last_insert_id: u64,
    /// Warnings of the statement.
    pub warnings: u16,
    /// "Rows matched: ..." and its kin; empty for none.
    pub info: String,
    /// Whether autocommit is on.
    pub autocommit: bool,
    /// Whether a transaction is open.
    pub in_transaction: bool,
    /// Whether another statement of the same text follows, and with it another result.
    pub has_more: bool,
}

/// Receives the answer of one command. Calls follow the protocol's order: `complete`, or `error`, or
/// `header`, rows, `end_rows`; `error` may also end rows that have begun.
pub trait ResultSink {
    /// Begins a result with rows.
    fn header(&mut self, header: &ResultHeader, completion: &Completion);
    /// Adds whole row packets, sequence 0.
    fn row_packets(&mut self, packets: &[u8]);
    /// The output itself, for row packets that are encoded here with `model::row_encoding`.
    fn output(&mut self) -> &mut Vec<u8>;
    /// Ends the rows.
    fn end_rows(&mut self, completion: &Completion);
    /// Ends the answer with OK.
    fn complete(&mut self, completion: &Completion);
    /// Ends the answer with an error.
    fn error(&mut self, error: &Error);
    /// Answers COM_STMT_PREPARE; `header` has no columns for a statement without rows.
    fn prepared(&mut self, statement: u32, parameters: u16, header: &ResultHeader, completion: &Completion);
    /// Answers COM_FIELD_LIST: columns with their defaults as text.
    fn field_list(&mut self, columns: &[(ResultColumn, Option<Vec<u8>>)], completion: &Completion);
    /// Reserves the bytes in front of the rows of a read by keys. Only protocols with such reads implement
    /// it.
    fn begin_key_rows(&mut self, _output: &mut Vec<u8>) {}
    /// Answers a read by keys, and may take the buffers of its parts. Error: 1153 when the answer is too
    /// long.
    fn key_rows(&mut self, _rows: &mut KeyRows, _completion: &Completion) -> Result<()> {
        Ok(())
    }
    /// Answers COM_STATISTICS.
    fn plain_text(&mut self, text: &str);
    /// Bytes that wait in the output. A session with more than `OUTPUT_PART_BYTES` waiting sends the rest as
    /// another part.
    fn pending_bytes(&self) -> usize;
}

/// Output beyond which a session says `MoreOutput` and waits to be asked for the rest.
pub const OUTPUT_PART_BYTES: usize = 128 * 1024;

/// The state of a session after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The answer is complete in the sink.
    Done,
    /// The session awaits the data plane. The content of the sink may be kept or sent.
    Waiting,
    /// The answer continues: call `continue_output` when the client has taken the content of the sink.
    MoreOutput,
    /// The answer is complete and the connection is to be closed.
    Close,
}
