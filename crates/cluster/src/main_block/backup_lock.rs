//! LOCK INSTANCE FOR BACKUP. While a session holds this lock, the files of checkpoints and the segments of
//! the log stay, so that a backup can copy them.

use std::collections::BTreeMap;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ConnectionId;

/// The sessions that hold the backup lock.
#[derive(Debug, Default)]
pub(super) struct BackupLocks {
    /// Each session, and whether its lock is still valid.
    holders: BTreeMap<ConnectionId, bool>,
}

impl BackupLocks {
    /// Gives the session a valid lock.
    pub fn lock(&mut self, session: ConnectionId) {
        self.holders.insert(session, true);
    }

    /// Releases the lock of a session. Does nothing if the session has none.
    ///
    /// # Errors
    /// The lock was revoked, so that files may be gone that the session has not copied.
    pub fn unlock(&mut self, session: ConnectionId) -> Result<()> {
        match self.holders.remove(&session) {
            Some(false) => Err(Error::new(
                ErrorCode::UnknownError,
                "The backup lock was revoked, because the log was getting full; the copy may be incomplete",
            )),
            Some(true) | None => Ok(()),
        }
    }

    /// Invalidates all locks, because the log needs the space.
    pub fn revoke(&mut self) {
        self.holders.values_mut().for_each(|is_valid| *is_valid = false);
    }

    /// Whether a session holds a valid lock.
    pub fn is_held(&self) -> bool {
        self.holders.values().any(|is_valid| *is_valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revoked_lock_is_reported_once() {
        let mut locks = BackupLocks::default();
        let [one, other] = [ConnectionId(1), ConnectionId(2)];
        assert!(!locks.is_held() && locks.unlock(one).is_ok());
        locks.lock(one);
        locks.lock(other);
        assert!(locks.unlock(other).is_ok() && locks.is_held());
        locks.revoke();
        assert!(!locks.is_held());
        assert!(locks.unlock(one).is_err() && locks.unlock(one).is_ok());
    }
}
