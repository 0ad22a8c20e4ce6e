//! COMMIT and ROLLBACK: from the gateway of a sql block to the transaction's tc.

use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::id::TransactionId;

use crate::read_rows::OperationId;

/// The requested end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// COMMIT: answered when the commit number is stable.
    Commit,
    /// ROLLBACK.
    Rollback,
}

/// Ends a transaction.
#[derive(Debug)]
pub struct EndTransaction {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The transaction to end.
    pub transaction: TransactionId,
    /// COMMIT or ROLLBACK.
    pub ending: Ending,
}

/// The reply to [`EndTransaction`].
#[derive(Debug)]
pub struct EndTransactionReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Why a commit failed; the transaction is rolled back then.
    pub error: Option<Box<Error>>,
}
