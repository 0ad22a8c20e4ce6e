//! ROLLBACK TO SAVEPOINT, from a client of the data plane to its tc, which has every participant undo later
//! statements. Locks stay, and the transaction continues.

use junctor_kernel::Address;
use junctor_model::id::{StatementNumber, TransactionId};

use crate::read_rows::OperationId;

/// Undoes the statements of a transaction after one of them.
#[derive(Debug)]
pub struct UndoStatements {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The open transaction.
    pub transaction: TransactionId,
    /// The last statement to keep; 0 keeps none.
    pub newer_than: StatementNumber,
}

/// The reply to [`UndoStatements`]: everything is undone. Undoing cannot fail.
#[derive(Debug)]
pub struct UndoStatementsReply {
    /// Copied from the request.
    pub operation: OperationId,
}
