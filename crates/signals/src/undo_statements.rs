//! ROLLBACK TO SAVEPOINT, from the gateway of a sql block to the transaction's tc. The tc has every
//! participant undo the statements after the savepoint. Locks stay, and the transaction continues.

use junctor_kernel::Address;
use junctor_model::id::{StatementNumber, TransactionId};

use crate::read_rows::OperationId;

/// Undoes the latest statements of a transaction: those with a number above `newer_than`.
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

layout! { UndoStatements { operation, reply_to, transaction, newer_than } }

/// The reply to [`UndoStatements`]: everything is undone. Undoing cannot fail.
#[derive(Debug)]
pub struct UndoStatementsReply {
    /// Copied from the request.
    pub operation: OperationId,
}

layout! { UndoStatementsReply { operation } }
