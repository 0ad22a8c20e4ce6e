//! The rows of status tables: from sql to the blocks that know them.

use junctor_kernel::Address;
use junctor_model::value::Value;

use crate::read_rows::OperationId;

/// A status table whose rows blocks know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusTable {
    /// `junctor_info.locks`: from every ldm.
    Locks,
    /// `junctor_info.transactions`: from every tc.
    Transactions,
    /// `junctor_info.memoryusage`: from every ldm.
    MemoryUsage,
}

/// Tell the rows.
#[derive(Debug)]
pub struct ReadStatus {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// Which table.
    pub table: StatusTable,
}

/// The answer, at most 4,096 rows.
#[derive(Debug)]
pub struct ReadStatusReply {
    /// From the request.
    pub operation: OperationId,
    /// The rows, columns in the order of the table.
    pub rows: Vec<Vec<Value>>,
}
