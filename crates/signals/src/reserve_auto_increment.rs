//! AUTO_INCREMENT numbers, which sql reserves from main in ranges.

use std::ops::Range;

use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::id::TableId;

use crate::read_rows::OperationId;

/// Reserves numbers.
#[derive(Debug)]
pub struct ReserveAutoIncrement {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The table with the AUTO_INCREMENT column.
    pub table: TableId,
    /// How many numbers to reserve; 0 only raises the counter.
    pub count: u64,
    /// The counter is first raised above this value.
    pub beyond: u64,
}

layout! { ReserveAutoIncrement { operation, reply_to, table, count, beyond } }

/// Gives back reserved numbers that no row has got, because the node stops or a table has changed. From sql
/// to main.
#[derive(Debug)]
pub struct ReturnAutoIncrement {
    /// The numbers, by table.
    pub numbers: Box<[ReturnedNumbers]>,
    /// Whether the node stops.
    pub is_stop: bool,
}

layout! { ReturnAutoIncrement { numbers, is_stop } }

/// Numbers of one table that a sql block gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnedNumbers {
    /// The table.
    pub table: TableId,
    /// The range that was held; may be empty.
    pub range: Range<u64>,
    /// The greatest explicit number of rows that the block has written since it first reserved numbers.
    pub explicit: u64,
}

layout! { ReturnedNumbers { table, range, explicit } }

/// The reply to [`ReserveAutoIncrement`].
#[derive(Debug)]
pub struct ReserveAutoIncrementReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// First of `count` consecutive numbers.
    pub first: u64,
    /// How many numbers were reserved; 0 at the end of the range.
    pub count: u64,
    /// 1412 when the table no longer exists, 1021 when the log is full.
    pub error: Option<Box<Error>>,
}

layout! { ReserveAutoIncrementReply { operation, first, count, error } }
