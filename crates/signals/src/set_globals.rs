//! SET GLOBAL: from sql to main, which passes the new values on to every sql block, so that all of them see the changes of
//! different sessions in one order. Each block answers the one that asked.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_model::value::Value;

use crate::read_rows::OperationId;

/// New values of the server's variables, each with the number of its variable.
pub type GlobalValues = Arc<[(u16, Value)]>;

/// Pass the values on.
#[derive(Debug)]
pub struct SetGlobals {
    /// Goes back in the replies.
    pub operation: OperationId,
    /// Who gets a reply of every sql block.
    pub reply_to: Address,
    /// The values.
    pub values: GlobalValues,
}

/// Take the values, for sessions to come and for whoever asks for the server's values.
#[derive(Debug)]
pub struct ApplyGlobals {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// The values.
    pub values: GlobalValues,
}

/// The answer: this block has them.
#[derive(Debug)]
pub struct ApplyGlobalsReply {
    /// From the request.
    pub operation: OperationId,
}
