//! The output of statements. Each protocol implements [`ResultSink`] over its output buffer.

use std::sync::OnceLock;

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, Result};
use junctor_model::row_encoding::ResultColumn;

/// The columns of a result and their encoded forms, which are the same for every execution of a plan.
#[derive(Debug, Default)]
pub struct ResultHeader {
    /// The columns, in the order of the select list.
    pub columns: Vec<ResultColumn>,
    /// The MySQL packets of the column count and the column definitions, with sequence number 0, and the
    /// character set of results for which they are. The sink fills them at first use.
    pub encoded: OnceLock<(Option<CollationId>, Box<[u8]>)>,
    /// The columns in the native protocol. The sink fills them at first use.
    pub native: OnceLock<Box<[u8]>>,
}

/// Stands in place of a partition number if no row can have the key.
pub const NO_PARTITION: u16 = u16::MAX;

/// The rows of a key read.
#[derive(Debug, Default)]
pub struct KeyRows {
    /// For each key, the partition that it was sent to, or [`NO_PARTITION`].
    pub partition_of_key: Vec<u16>,
    /// The replies as (partition, whether the bytes of `begin_key_rows` precede the packets, packets). The
    /// replies of one partition are in the order in which it sent them, with one packet for each key. The
    /// packet is empty if no row has the key.
    pub parts: Vec<(u16, bool, Vec<u8>)>,
    /// Number of bytes that `begin_key_rows` reserves.
    pub head_bytes: usize,
}

impl ResultHeader {
    /// Creates a header whose encoded forms are still empty.
    pub fn new(columns: Vec<ResultColumn>) -> ResultHeader {
        ResultHeader { columns, encoded: OnceLock::new(), native: OnceLock::new() }
    }
}

/// The content of an OK packet or of the packet that ends rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Number of rows changed, or of rows matched if the client requested found rows.
    pub affected_rows: u64,
    /// The first AUTO_INCREMENT value that the statement generated. Without one: the argument of
    /// LAST_INSERT_ID(expression), or the last explicit AUTO_INCREMENT value, or 0.
    pub last_insert_id: u64,
    /// Number of warnings of the statement.
    pub warnings: u16,
    /// Text such as "Rows matched: ..."; empty if the statement has none.
    pub info: String,
    /// Whether autocommit is on.
    pub autocommit: bool,
    /// Whether a transaction is open.
    pub in_transaction: bool,
    /// Whether the result of another statement of the same text follows.
    pub has_more: bool,
    /// The changes of the session's state, for a client that wants them.
    pub state_changes: Vec<StateChange>,
    /// The collation that stands for `character_set_results`; `None` for NULL.
    pub results: Option<CollationId>,
    /// Whether a backslash in strings of the session is an ordinary character. Clients quote strings
    /// accordingly.
    pub no_backslash_escapes: bool,
}

/// A change of a session's state, as OK packets report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// The session's database.
    Database(Box<str>),
    /// A system variable and its value.
    Variable(&'static str, Box<str>),
    /// The letters of the transaction's state.
    TransactionState([u8; 8]),
    /// The statements that begin the transaction.
    TransactionCharacteristics(Box<str>),
    /// Anything.
    Any,
}

/// Receives the answer of one command. The calls follow the order of the protocol: `complete`, or `error`, or
/// `header`, rows and `end_rows`. `error` may also end rows that have begun.
pub trait ResultSink {
    /// Begins a result with rows.
    fn header(&mut self, header: &ResultHeader, completion: &Completion);
    /// Appends whole row packets with sequence number 0.
    fn row_packets(&mut self, packets: &[u8]);
    /// The output buffer, for row packets that the caller encodes with `model::row_encoding`.
    fn output(&mut self) -> &mut Vec<u8>;
    /// Ends the rows.
    fn end_rows(&mut self, completion: &Completion);
    /// Whether the end of rows can report changes of the session's state.
    fn ends_rows_with_changes(&self) -> bool {
        false
    }
    /// Answers the execution that has opened a cursor. Only protocols with cursors implement it.
    fn cursor_opened(&mut self, _header: &ResultHeader, _completion: &Completion) {}
    /// Ends the rows of a fetch. `is_end` tells whether the cursor has no more rows.
    fn end_fetch(&mut self, _completion: &Completion, _is_end: bool) {}
    /// Ends the answer with OK.
    fn complete(&mut self, completion: &Completion);
    /// Ends the answer with an error.
    fn error(&mut self, error: &Error);
    /// Answers COM_STMT_PREPARE. `header` has no columns if the statement returns no rows.
    fn prepared(&mut self, statement: u32, parameters: u16, header: &ResultHeader, completion: &Completion);
    /// Answers COM_FIELD_LIST with the columns and their defaults as text.
    fn field_list(&mut self, columns: &[(ResultColumn, Option<Vec<u8>>)], completion: &Completion);
    /// Reserves the bytes in front of the rows of a key read. Only protocols with such reads implement it.
    fn begin_key_rows(&mut self, _output: &mut Vec<u8>) {}
    /// Answers a key read. May take ownership of the buffers of its parts. Error: 1153 if the answer is too
    /// long.
    fn key_rows(&mut self, _rows: &mut KeyRows, _completion: &Completion) -> Result<()> {
        Ok(())
    }
    /// Asks the client for the file of LOAD DATA LOCAL. Returns false if the client or its protocol sends no
    /// files.
    fn request_file(&mut self, _name: &[u8]) -> bool {
        false
    }
    /// Answers COM_STATISTICS with `text`.
    fn plain_text(&mut self, text: &str);
    /// Number of bytes in the output. If they exceed [`OUTPUT_PART_BYTES`], the session sends the remaining
    /// rows as another part.
    fn pending_bytes(&self) -> usize;
}

/// Length of the output in bytes from which a session returns [`Progress::MoreOutput`] and waits until the
/// client has received it.
pub const OUTPUT_PART_BYTES: usize = 128 * 1024;

/// The state of a session after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The answer in the sink is complete.
    Done,
    /// The session waits for the data plane. The content of the sink may be kept or sent.
    Waiting,
    /// The answer continues. `continue_output` must be called when the client has received the content of the
    /// sink.
    MoreOutput,
    /// The statement needs the next part of the file that its client sends. `receive_file` must be called
    /// with it.
    AwaitsInput,
    /// The answer is complete and the connection must be closed.
    Close,
}
