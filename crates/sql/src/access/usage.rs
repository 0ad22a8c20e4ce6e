//! How much of their resources accounts have used: statements, changes and logins within an hour, and open
//! connections. Each node counts for itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use junctor_model::access::{AccountName, ResourceLimits};
use junctor_model::error::{Error, ErrorCode, Result};

use super::failed_logins::FailedLogins;

/// Length of a period in microseconds.
const HOUR_US: u64 = 3_600_000_000;

/// Accounts whose figures are kept. Beyond it, those without connections are forgotten.
const ACCOUNTS_MAX: usize = 32_768;

/// The figures of one account.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// Start of the hour, in microseconds since 1970.
    since_us: u64,
    queries: u32,
    updates: u32,
    connections: u32,
    open: u32,
}

/// The figures of all accounts that have limits or connections. Threads share them; logins use them, and the
/// statements of accounts with limits.
#[derive(Debug, Default)]
pub struct AccountUsage {
    accounts: Mutex<BTreeMap<AccountName, Usage>>,
    failed_logins: Mutex<FailedLogins>,
    /// Answers to logins that have waited.
    delays: AtomicU64,
}

impl AccountUsage {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<AccountName, Usage>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The failed logins of accounts.
    pub fn failed_logins(&self) -> MutexGuard<'_, FailedLogins> {
        self.failed_logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a login waits.
    pub fn note_delay(&self) {
        self.delays.fetch_add(1, Ordering::Relaxed);
    }

    /// How many answers to logins have waited.
    pub fn delays(&self) -> u64 {
        self.delays.load(Ordering::Relaxed)
    }

    /// Counts a login.
    ///
    /// # Errors
    /// 1226 if a limit of the account is reached.
    pub fn begin_connection(&self, name: &AccountName, limits: &ResourceLimits, now_us: u64) -> Result<()> {
        let mut accounts = self.lock();
        if accounts.len() >= ACCOUNTS_MAX {
            accounts.retain(|_, usage| usage.open > 0);
        }
        let usage = accounts.entry(name.clone()).or_default();
        usage.begin_hour(now_us);
        if limits.user_connections != 0 && usage.open >= limits.user_connections {
            return Err(exceeded(name, "max_user_connections", usage.open));
        }
        if limits.connections_per_hour != 0 && usage.connections >= limits.connections_per_hour {
            return Err(exceeded(name, "max_connections_per_hour", usage.connections));
        }
        usage.connections = usage.connections.saturating_add(1);
        usage.open += 1;
        Ok(())
    }

    /// A connection of the account has ended.
    pub fn end_connection(&self, name: &AccountName) {
        if let Some(usage) = self.lock().get_mut(name) {
            usage.open = usage.open.saturating_sub(1);
        }
    }

    /// Counts a statement.
    ///
    /// # Errors
    /// 1226 if a limit is reached.
    pub fn count_statement(
        &self,
        name: &AccountName,
        limits: &ResourceLimits,
        changes: bool,
        now_us: u64,
    ) -> Result<()> {
        let mut accounts = self.lock();
        let usage = accounts.entry(name.clone()).or_default();
        usage.begin_hour(now_us);
        if limits.queries_per_hour != 0 && usage.queries >= limits.queries_per_hour {
            return Err(exceeded(name, "max_questions", usage.queries));
        }
        if changes && limits.updates_per_hour != 0 && usage.updates >= limits.updates_per_hour {
            return Err(exceeded(name, "max_updates", usage.updates));
        }
        usage.queries = usage.queries.saturating_add(1);
        usage.updates = usage.updates.saturating_add(u32::from(changes));
        Ok(())
    }

    /// FLUSH USER_RESOURCES: all figures begin at 0, except the open connections.
    pub fn reset(&self) {
        let mut accounts = self.lock();
        accounts.retain(|_, usage| usage.open > 0);
        accounts.values_mut().for_each(|usage| *usage = Usage { open: usage.open, ..Usage::default() });
    }

    /// GRANT and ALTER USER reset the figures of an account.
    pub fn reset_account(&self, name: &AccountName) {
        if let Some(usage) = self.lock().get_mut(name) {
            *usage = Usage { open: usage.open, ..Usage::default() };
        }
    }
}

impl Usage {
    fn begin_hour(&mut self, now_us: u64) {
        if now_us.saturating_sub(self.since_us) >= HOUR_US {
            *self = Usage { since_us: now_us, open: self.open, ..Usage::default() };
        }
    }
}

fn exceeded(name: &AccountName, resource: &str, value: u32) -> Box<Error> {
    let user = &name.user;
    let message = format!("User '{user}' has exceeded the '{resource}' resource (current value: {value})");
    Error::new(ErrorCode::UserLimitReached, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_for_an_hour_and_for_open_connections() {
        let usage = AccountUsage::default();
        let name = AccountName::new("u", "%");
        let limits =
            ResourceLimits { queries_per_hour: 2, updates_per_hour: 1, connections_per_hour: 3, user_connections: 2 };
        let login = |now| usage.begin_connection(&name, &limits, now).map_err(|error| error.code.errno());
        assert_eq!([login(HOUR_US), login(HOUR_US), login(HOUR_US)], [Ok(()), Ok(()), Err(1226)]);
        usage.end_connection(&name);
        assert_eq!(login(HOUR_US + 1), Ok(()));
        usage.end_connection(&name);
        assert_eq!(login(HOUR_US + 1), Err(1226), "three logins in an hour");
        assert_eq!(login(3 * HOUR_US), Ok(()));
        let run =
            |changes, now| usage.count_statement(&name, &limits, changes, now).map_err(|error| error.code.errno());
        let now = 4 * HOUR_US;
        assert_eq!(
            [run(true, now), run(true, now), run(false, now), run(false, now)],
            [Ok(()), Err(1226), Ok(()), Err(1226)]
        );
        usage.reset();
        assert_eq!(run(true, now), Ok(()));
        assert_eq!(login(now), Err(1226), "two are open");
    }
}
