//! AUTO_INCREMENT numbers: sql takes them from main in ranges.

use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::id::TableId;

use crate::read_rows::OperationId;

/// Take numbers.
#[derive(Debug)]
pub struct ReserveAutoIncrement {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// The table.
    pub table: TableId,
    /// How many; 0 only raises the counter.
    pub count: u64,
    /// The counter is first raised to be beyond this value.
    pub beyond: u64,
}

/// The answer.
#[derive(Debug)]
pub struct ReserveAutoIncrementReply {
    /// From the request.
    pub operation: OperationId,
    /// The first number; `count` follow each other.
    pub first: u64,
    /// How many were given; 0 when the counter has reached its end.
    pub count: u64,
    /// Why there are none.
    pub error: Option<Box<Error>>,
}
