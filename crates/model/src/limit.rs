//! Every maximum of the database in one table. Reaching one is a defined reply, never a lost request.

/// Partitions of one table.
pub const PARTITIONS_PER_TABLE_MAX: u16 = 256;
/// Columns of one table.
pub const COLUMNS_MAX: usize = 1017;
/// Indexes of one table, the primary key among them.
pub const INDEXES_MAX: usize = 64;
/// Columns of one index.
pub const INDEX_COLUMNS_MAX: usize = 16;
/// Bytes of the columns of one index, as declared.
pub const INDEX_KEY_BYTES_MAX: usize = 3072;
/// Characters of an identifier.
pub const IDENTIFIER_CHARACTERS_MAX: usize = 64;
/// Bytes of a row that stay in its page; longer variable values move to overflow pages.
pub const ROW_INLINE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of one value beyond which it always lives in overflow pages.
pub const VALUE_INLINE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a whole row image, overflow included.
pub const ROW_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Rows that one hold of a partition guard touches.
pub const ROWS_PER_HOLD_MAX: usize = 64;
/// Reader threads of one L3 group.
pub const READER_SLOTS_MAX: usize = 16;
/// Transactions with writes or locks at once on a node (`MaxNoOfConcurrentTransactions`).
pub const TRANSACTIONS_MAX: usize = 4096;
/// Unique entries that one statement changes by the rows of a partition, and rows that it moves out of it.
pub const FOLLOW_UPS_MAX: usize = 1 << 20;
/// Those of all partitions, keys of foreign keys among them.
pub const FOLLOW_UPS_OF_STATEMENT_MAX: usize = 1 << 23;
/// Bytes of their keys and rows.
pub const FOLLOW_UP_BYTES_MAX: usize = 1 << 30;
/// Statements of one transaction, and steps of their foreign keys, after which it takes no more.
pub const STATEMENTS_MAX: u32 = 1 << 31;
/// Bytes of rows in one reply of a scan, after which the reader asks for the next batch.
pub const REPLY_BYTES_MAX: usize = 64 * 1024;
/// Prepared statements of one server (`max_prepared_stmt_count`).
pub const PREPARED_STATEMENTS_MAX: usize = 16_382;
/// Parameters of one prepared statement.
pub const PARAMETERS_MAX: usize = 65_535;

const _: () = assert!(ROW_INLINE_BYTES_MAX >= VALUE_INLINE_BYTES_MAX);
