//! ROLLBACK TO SAVEPOINT: from a client of the data plane to its tc, which has every participant undo what later statements
//! did. Locks stay, and the transaction goes on.

use junctor_kernel::Address;
use junctor_model::id::{StatementNumber, TransactionId};

use crate::read_rows::OperationId;

/// Undo the statements of a transaction after one of them.
#[derive(Debug)]
pub struct UndoStatements {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// The transaction.
    pub transaction: TransactionId,
    /// The last statement whose changes stay; 0 for none.
    pub newer_than: StatementNumber,
}

/// The answer: everything is undone. Undoing cannot fail.
#[derive(Debug)]
pub struct UndoStatementsReply {
    /// From the request.
    pub operation: OperationId,
}
