//! Locks by name that sessions use as they like (GET_LOCK and its kin): from sql to main, which keeps those of the node.

use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::id::ConnectionId;
use junctor_model::value::Value;

use crate::read_rows::OperationId;

/// What is done with user-level locks. Names are in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserLockAction {
    /// GET_LOCK: 1, or 0 when the time is over; error 3058 when who holds it waits for the asking session.
    Get {
        /// The lock.
        name: Box<str>,
        /// Milliseconds that it is waited for; `None` for ever.
        wait_ms: Option<u64>,
    },
    /// RELEASE_LOCK: 1, 0 when another session holds it, NULL when nobody does.
    Release {
        /// The lock.
        name: Box<str>,
    },
    /// RELEASE_ALL_LOCKS: how many there were; one that was got twice counts twice.
    ReleaseAll,
    /// IS_FREE_LOCK: 1 or 0.
    IsFree {
        /// The lock.
        name: Box<str>,
    },
    /// IS_USED_LOCK: the connection that holds it, or NULL.
    IsUsed {
        /// The lock.
        name: Box<str>,
    },
}

/// Do it, for a session that waits for no other one.
#[derive(Debug)]
pub struct UseUserLock {
    /// Goes back in the reply.
    pub operation: OperationId,
    /// Who gets the reply.
    pub reply_to: Address,
    /// The session.
    pub connection: ConnectionId,
    /// What.
    pub action: UserLockAction,
}

/// The answer.
#[derive(Debug)]
pub struct UseUserLockReply {
    /// From the request.
    pub operation: OperationId,
    /// What the function gives.
    pub value: Value,
    /// Why it gives nothing.
    pub error: Option<Box<Error>>,
}

/// A session waits no more: its request is answered with error 1317, unless it has its lock already.
#[derive(Debug)]
pub struct CancelUserLock {
    /// The session.
    pub connection: ConnectionId,
}

/// A session has ended. Has no answer.
#[derive(Debug)]
pub struct ReleaseUserLocks {
    /// The session.
    pub connection: ConnectionId,
}
