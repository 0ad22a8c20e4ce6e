//! COMMIT and ROLLBACK: from a client of the data plane to its tc.

use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::id::TransactionId;

use crate::read_rows::OperationId;

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// COMMIT: answered when the stable number has reached the commit's.
    Commit,
    /// ROLLBACK.
    Rollback,
}

/// End a transaction.
#[derive(Debug)]
pub struct EndTransaction {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// The transaction.
    pub transaction: TransactionId,
    /// How.
    pub ending: Ending,
}

/// The answer.
#[derive(Debug)]
pub struct EndTransactionReply {
    /// From the request.
    pub operation: OperationId,
    /// Why a commit failed; the transaction is rolled back then.
    pub error: Option<Box<Error>>,
}
