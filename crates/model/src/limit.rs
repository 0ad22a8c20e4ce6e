//! Every maximum of the database in one table. Reaching one gives the user a defined reply, never a lost
//! request.

/// Partitions of one table.
pub const PARTITIONS_PER_TABLE_MAX: u16 = 256;
/// Columns of one table.
pub const COLUMNS_MAX: usize = 1017;
/// Columns of one table that ALTER TABLE added without touching the rows. A read of such a column passes over
/// the values of those added before it.
pub const ADDED_COLUMNS_MAX: usize = 64;
/// Columns of one table that ALTER TABLE dropped without touching the rows. New rows have blanks for them.
pub const DROPPED_COLUMNS_MAX: usize = 64;
/// Indexes of one table, the primary key included.
pub const INDEXES_MAX: usize = 64;
/// Columns of one index.
pub const INDEX_COLUMNS_MAX: usize = 16;
/// Bytes of the columns of one index, as declared.
pub const INDEX_KEY_BYTES_MAX: usize = 3072;
/// Characters of an identifier.
pub const IDENTIFIER_CHARACTERS_MAX: usize = 64;
/// Bytes of a row that stay in its page. Longer rows have their longest variable values moved to overflow
/// pages.
pub const ROW_INLINE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of one value above which it is always in overflow pages.
pub const VALUE_INLINE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a whole row image, overflow values included.
pub const ROW_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Rows that may be read or changed during one acquisition of a partition's guard (its lock).
pub const ROWS_PER_HOLD_MAX: usize = 64;
/// Reader slots of a read group: threads that may read the partitions of all owners of the group. Before it
/// writes, an owner checks every slot.
pub const READER_SLOTS_MAX: usize = 16;
/// Transactions with writes or locks at one time on a node (`MaxNoOfConcurrentTransactions`).
pub const TRANSACTIONS_MAX: usize = 32_768;
/// Follow-up writes of one statement in one partition: changes of unique entries, and rows that move to other
/// partitions.
pub const FOLLOW_UPS_MAX: usize = 1 << 20;
/// Follow-up writes of one statement over all partitions, keys of foreign keys included.
pub const FOLLOW_UPS_OF_STATEMENT_MAX: usize = 1 << 23;
/// Bytes of the keys and rows of one statement's follow-up writes.
pub const FOLLOW_UP_BYTES_MAX: usize = 1 << 30;
/// Statements of one transaction, steps of their foreign keys included. Beyond it the transaction accepts no
/// statement.
pub const STATEMENTS_MAX: u32 = 1 << 31;
/// Bytes of rows in one reply of a scan, after which the reader must request the next batch.
pub const REPLY_BYTES_MAX: usize = 64 * 1024;
/// Prepared statements of one server (`max_prepared_stmt_count`).
pub const PREPARED_STATEMENTS_MAX: usize = 16_382;
/// Parameters of one prepared statement.
pub const PARAMETERS_MAX: usize = 65_535;

const _: () = assert!(ROW_INLINE_BYTES_MAX >= VALUE_INLINE_BYTES_MAX);
