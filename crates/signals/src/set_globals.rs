//! SET GLOBAL and SET PERSIST. sql sends new values to main, which forwards them to every sql block, so that
//! all blocks see the changes of different sessions in the same order. Each block replies to the requesting
//! block.

use std::sync::Arc;

use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::stored_settings::PersistedSettings;
use junctor_model::value::Value;

use crate::read_rows::OperationId;

/// New values of global variables, each with the number of its variable.
pub type GlobalValues = Arc<[(u16, Value)]>;

/// Changes of persisted values: the name of a variable, in lower case, and its value at the next start.
/// `None` removes the value.
pub type PersistedChanges = Box<[(Box<str>, Option<Value>)]>;

/// Sets global variables on all sql blocks.
#[derive(Debug)]
pub struct SetGlobals {
    /// Returned in the replies.
    pub operation: OperationId,
    /// Receives a reply from every sql block.
    pub reply_to: Address,
    /// Values to set.
    pub values: GlobalValues,
    /// Persisted values to change. They are on disk before any value is set.
    pub persisted: PersistedChanges,
}

layout! { SetGlobals { operation, reply_to, values, persisted } }

/// The reply to [`SetGlobals`] if it failed. No value was set or persisted. Otherwise every sql block
/// replies.
#[derive(Debug)]
pub struct SetGlobalsReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Why the values cannot be persisted.
    pub error: Box<Error>,
}

layout! { SetGlobalsReply { operation, error } }

/// Installs the values for new sessions and for reads of global variables.
#[derive(Debug)]
pub struct ApplyGlobals {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// Values to set.
    pub values: GlobalValues,
    /// All persisted values, if they have changed.
    pub persisted: Option<Arc<PersistedSettings>>,
}

layout! { ApplyGlobals { operation, reply_to, values, persisted } }

/// Sets the persisted values at the start of the node. From main to every sql block.
#[derive(Debug)]
pub struct RestoreGlobals {
    /// Receiver of the reply.
    pub reply_to: Address,
    /// The persisted values.
    pub persisted: Arc<PersistedSettings>,
}

layout! { RestoreGlobals { reply_to, persisted } }

/// The reply to [`RestoreGlobals`].
#[derive(Debug)]
pub struct RestoreGlobalsReply {}

layout! { RestoreGlobalsReply {} }

/// The reply to [`ApplyGlobals`]: this block has the values.
#[derive(Debug)]
pub struct ApplyGlobalsReply {
    /// Copied from the request.
    pub operation: OperationId,
}

layout! { ApplyGlobalsReply { operation } }
