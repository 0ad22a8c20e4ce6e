//! User-level locks (GET_LOCK and related functions) and the backup lock, from sql to main, which owns those
//! of the node.

use junctor_kernel::Address;
use junctor_model::error::Error;
use junctor_model::id::ConnectionId;
use junctor_model::value::Value;

use crate::read_rows::OperationId;

/// An action on user-level locks. Names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserLockAction {
    /// GET_LOCK: 1, or 0 after a timeout. Error 3058 when waiting would close a cycle.
    Get {
        /// Name of the lock.
        name: Box<str>,
        /// Maximum wait in milliseconds; `None` waits without limit.
        wait_ms: Option<u64>,
    },
    /// RELEASE_LOCK: 1, 0 when another session holds the lock, or NULL when nobody does.
    Release {
        /// Name of the lock.
        name: Box<str>,
    },
    /// RELEASE_ALL_LOCKS: number of locks released; one acquired twice counts twice.
    ReleaseAll,
    /// IS_FREE_LOCK: 1 or 0.
    IsFree {
        /// Name of the lock.
        name: Box<str>,
    },
    /// IS_USED_LOCK: the connection that holds it, or NULL.
    IsUsed {
        /// Name of the lock.
        name: Box<str>,
    },
    /// LOCK INSTANCE FOR BACKUP. Any number of sessions may hold this lock.
    LockForBackup,
    /// UNLOCK INSTANCE. Error if main has released the lock, because the log was getting full.
    UnlockForBackup,
    /// SLEEP: 0 after this time.
    Sleep {
        /// Milliseconds.
        wait_ms: u64,
    },
    /// From main of another node: the session holds this lock already. Has no reply.
    Hold {
        /// Name of the lock.
        name: Box<str>,
        /// How often the session has acquired it.
        count: u64,
    },
}

choices! {
    UserLockAction {
        0 Get { name, wait_ms };
        1 Release { name };
        2 ReleaseAll;
        3 IsFree { name };
        4 IsUsed { name };
        5 LockForBackup;
        6 UnlockForBackup;
        7 Sleep { wait_ms };
        8 Hold { name, count };
    }
}

/// Performs an action for a session that waits for no other lock.
#[derive(Debug)]
pub struct UseUserLock {
    /// Returned in the reply.
    pub operation: OperationId,
    /// Receiver of the reply.
    pub reply_to: Address,
    /// Connection of the session.
    pub connection: ConnectionId,
    /// The function to execute.
    pub action: UserLockAction,
}

layout! { UseUserLock { operation, reply_to, connection, action } }

/// The reply to [`UseUserLock`].
#[derive(Debug)]
pub struct UseUserLockReply {
    /// Copied from the request.
    pub operation: OperationId,
    /// Value of the function.
    pub value: Value,
    /// Why the function failed.
    pub error: Option<Box<Error>>,
}

layout! { UseUserLockReply { operation, value, error } }

/// Cancels a session's wait: its request answers with error 1317, unless it has its lock already.
#[derive(Debug)]
pub struct CancelUserLock {
    /// Connection of the session.
    pub connection: ConnectionId,
}

layout! { CancelUserLock { connection } }

/// Releases all locks of a session that has ended, the backup lock included. Has no reply.
#[derive(Debug)]
pub struct ReleaseUserLocks {
    /// Connection of the session.
    pub connection: ConnectionId,
}

layout! { ReleaseUserLocks { connection } }
