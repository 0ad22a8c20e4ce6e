//! SET GLOBAL. sql sends new values to main, which forwards them to every sql block, so that all blocks see
//! the changes of different sessions in the same order. Each block replies to the requesting block.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_model::value::Value;

use crate::read_rows::OperationId;

/// New values of global variables, each with the number of its variable.
pub type GlobalValues = Arc<[(u16, Value)]>;

/// Sets global variables on all sql blocks.
#[derive(Debug)]
pub struct SetGlobals {
    /// Returned in the replies.
    pub operation: OperationId,
    /// Receives a reply from every sql block.
    pub reply_to: Address,
    /// Values to set.
    pub values: GlobalValues,
}

/// Installs the values for new sessions and for reads of global variables.
#[derive(Debug)]
pub struct ApplyGlobals {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// Values to set.
    pub values: GlobalValues,
}

/// The reply to [`ApplyGlobals`]: this block has the values.
#[derive(Debug)]
pub struct ApplyGlobalsReply {
    /// Copied from the request.
    pub operation: OperationId,
}
