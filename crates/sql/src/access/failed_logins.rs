//! Delays and locks after failed logins, by account name and in bounded memory.

use std::collections::{BTreeMap, VecDeque};

use junctor_model::access::AccountName;

/// Unknown names whose failures are counted. Beyond it, the one that came first is forgotten.
const UNKNOWN_NAMES_MAX: usize = 8192;

/// Microseconds of a day.
const DAY_US: u64 = 86_400_000_000;

/// The failed logins since the last successful one.
#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    /// For delays: failures of any kind.
    count: u64,
    /// For FAILED_LOGIN_ATTEMPTS: failures since the account was last unlocked.
    wrong_passwords: u64,
    /// Time of the last failure, in microseconds since 1970.
    last_us: u64,
    /// When the account was locked.
    locked_us: Option<u64>,
}

/// The name under which a login counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CountedName {
    /// An account.
    Account(AccountName),
    /// The name that a client claims, which no account matches.
    Unknown(AccountName),
}

/// The failures by account, and by name for clients that no account matches. The two are apart, so that
/// claims of unknown names cannot end the delay or the lock of an account.
#[derive(Debug, Default)]
pub struct FailedLogins {
    /// As many as accounts exist, at most: [`FailedLogins::keep_accounts`] forgets the others.
    accounts: BTreeMap<AccountName, Failures>,
    /// Number of failures.
    unknown: BTreeMap<AccountName, u64>,
    /// The unknown names, the oldest one first.
    arrivals: VecDeque<AccountName>,
    /// How often FLUSH PRIVILEGES was executed before the last login.
    flushes: u64,
}

/// A lock after failed logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Failed logins that led to it.
    pub failures: u16,
    /// Length in days; -1 without an end.
    pub days: i32,
    /// Days that are left, counted from now.
    pub days_left: u64,
}

impl FailedLogins {
    /// Counts a failed login.
    pub fn note_failure(&mut self, name: &CountedName, now_us: u64) {
        match name {
            CountedName::Account(name) => {
                let failures = self.accounts.entry(name.clone()).or_default();
                failures.count += 1;
                failures.wrong_passwords += 1;
                failures.last_us = now_us;
            }
            CountedName::Unknown(name) => match self.unknown.get_mut(name) {
                Some(count) => *count += 1,
                None => {
                    if self.unknown.len() >= UNKNOWN_NAMES_MAX
                        && let Some(oldest) = self.arrivals.pop_front()
                    {
                        self.unknown.remove(&oldest);
                    }
                    self.unknown.insert(name.clone(), 1);
                    self.arrivals.push_back(name.clone());
                }
            },
        }
    }

    /// A login with this account has succeeded.
    pub fn forget(&mut self, name: &AccountName) {
        self.accounts.remove(name);
    }

    /// Forgets accounts that no longer exist.
    pub fn keep_accounts(&mut self, exists: impl Fn(&AccountName) -> bool) {
        self.accounts.retain(|name, _| exists(name));
    }

    /// Forgets all locks if FLUSH PRIVILEGES was executed meanwhile; `flushes` counts how often it was. The
    /// counts for delays stay.
    pub fn note_flushes(&mut self, flushes: u64) {
        if std::mem::replace(&mut self.flushes, flushes) != flushes {
            self.unlock(|_| true);
        }
    }

    /// Forgets the locks of these accounts.
    pub fn unlock(&mut self, is_unlocked: impl Fn(&AccountName) -> bool) {
        for (_, failures) in self.accounts.iter_mut().filter(|(name, _)| is_unlocked(name)) {
            (failures.wrong_passwords, failures.locked_us) = (0, None);
        }
    }

    /// The delay of the next answer to this name, in milliseconds: one unit for each failure above the
    /// threshold.
    pub fn delay_ms(&self, name: &CountedName, threshold: u64, unit_ms: u64, max_ms: u64) -> u64 {
        if threshold == 0 {
            return 0;
        }
        let count = match name {
            CountedName::Account(name) => self.accounts.get(name).map_or(0, |failures| failures.count),
            CountedName::Unknown(name) => self.unknown.get(name).copied().unwrap_or(0),
        };
        match count.checked_sub(threshold) {
            Some(above) => unit_ms.saturating_mul(above + 1).min(max_ms),
            None => 0,
        }
    }

    /// Whether failed logins lock the account now. A lock whose time has passed ends.
    pub fn block(&mut self, name: &AccountName, failures_max: u16, lock_days: i32, now_us: u64) -> Option<Block> {
        if failures_max == 0 || lock_days == 0 {
            return None;
        }
        let failures = self.accounts.get_mut(name)?;
        if failures.wrong_passwords < u64::from(failures_max) {
            return None;
        }
        let since = *failures.locked_us.get_or_insert(failures.last_us);
        let days_past = now_us.saturating_sub(since) / DAY_US;
        let left = match u64::try_from(lock_days) {
            Ok(days) if days_past >= days => {
                (failures.wrong_passwords, failures.locked_us) = (0, None);
                return None;
            }
            Ok(days) => days - days_past,
            Err(_) => 0,
        };
        Some(Block { failures: failures_max, days: lock_days, days_left: left })
    }

    /// The names with failures and their number, for the table of `information_schema`.
    pub fn counts(&self) -> Vec<(AccountName, u64)> {
        let accounts = self.accounts.iter().map(|(name, failures)| (name.clone(), failures.count));
        let unknown = self.unknown.iter().map(|(name, count)| (name.clone(), *count));
        accounts.chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &AccountName) -> CountedName {
        CountedName::Account(name.clone())
    }

    #[test]
    fn delays_grow_with_failures_and_end_with_a_login() {
        let mut failed = FailedLogins::default();
        let name = AccountName::new("u", "%");
        let mut delays = Vec::new();
        for now in 0..6 {
            delays.push(failed.delay_ms(&account(&name), 3, 1000, 2500));
            failed.note_failure(&account(&name), now);
        }
        assert_eq!(delays, [0, 0, 0, 1000, 2000, 2500]);
        assert_eq!(failed.delay_ms(&account(&name), 0, 1000, 2500), 0);
        failed.forget(&name);
        assert_eq!(failed.delay_ms(&account(&name), 3, 1000, 2500), 0);
    }

    #[test]
    fn a_lock_begins_with_the_last_failure_and_ends_after_its_days() {
        let mut failed = FailedLogins::default();
        let name = AccountName::new("u", "%");
        failed.note_failure(&account(&name), 5);
        assert_eq!(failed.block(&name, 2, 2, 5), None);
        failed.note_failure(&account(&name), 6);
        assert_eq!(failed.block(&name, 2, 2, DAY_US), Some(Block { failures: 2, days: 2, days_left: 2 }));
        assert_eq!(failed.block(&name, 2, 2, DAY_US + 6), Some(Block { failures: 2, days: 2, days_left: 1 }));
        assert_eq!(failed.block(&name, 2, -1, 900 * DAY_US).map(|block| block.days), Some(-1));
        assert_eq!(failed.block(&name, 2, 2, 2 * DAY_US + 6), None);
        assert_eq!(failed.block(&name, 2, 2, 2 * DAY_US + 6), None, "the count has begun again");
    }

    #[test]
    fn very_many_unknown_names_are_bounded_and_leave_accounts_alone() {
        let mut failed = FailedLogins::default();
        let name = AccountName::new("u", "%");
        for now in 0..4 {
            failed.note_failure(&account(&name), now);
        }
        let unknown = |number: u64| CountedName::Unknown(AccountName::new(&format!("u{number}"), "%"));
        for number in 0..3 * UNKNOWN_NAMES_MAX as u64 {
            failed.note_failure(&unknown(number), 10 + number);
            failed.note_failure(&unknown(number), 10 + number);
        }
        assert_eq!((failed.unknown.len(), failed.arrivals.len()), (UNKNOWN_NAMES_MAX, UNKNOWN_NAMES_MAX));
        assert_eq!(failed.delay_ms(&unknown(0), 1, 1000, 9000), 0, "the oldest is forgotten");
        assert_eq!(failed.delay_ms(&unknown(3 * UNKNOWN_NAMES_MAX as u64 - 1), 1, 1000, 9000), 2000);
        assert_eq!(failed.delay_ms(&account(&name), 3, 1000, 9000), 2000);
        assert_eq!(failed.block(&name, 4, 1, 20).map(|block| block.days_left), Some(1));
        failed.keep_accounts(|_| false);
        assert_eq!(failed.block(&name, 4, 1, 20), None, "a dropped account");
    }
}
