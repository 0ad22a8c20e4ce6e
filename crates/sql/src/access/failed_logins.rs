//! Delays and locks after failed logins, by account name and in bounded memory.

use std::collections::BTreeMap;

use junctor_model::access::AccountName;

/// Accounts whose failures are counted. Beyond it, the one whose last failure is the oldest is forgotten.
const NAMES_MAX: usize = 8192;

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

/// The failures by account. A client that no account matches counts under the name that it claims.
#[derive(Debug, Default)]
pub struct FailedLogins {
    names: BTreeMap<AccountName, Failures>,
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
    pub fn note_failure(&mut self, name: &AccountName, now_us: u64) {
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(name) {
            let oldest = self.names.iter().min_by_key(|(_, failures)| failures.last_us).map(|(name, _)| name.clone());
            oldest.map(|name| self.names.remove(&name));
        }
        let failures = self.names.entry(name.clone()).or_default();
        failures.count += 1;
        failures.wrong_passwords += 1;
        failures.last_us = now_us;
    }

    /// A login has succeeded.
    pub fn forget(&mut self, name: &AccountName) {
        self.names.remove(name);
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
        for (_, failures) in self.names.iter_mut().filter(|(name, _)| is_unlocked(name)) {
            (failures.wrong_passwords, failures.locked_us) = (0, None);
        }
    }

    /// The delay of the next answer to this name, in milliseconds: one unit for each failure above the
    /// threshold.
    pub fn delay_ms(&self, name: &AccountName, threshold: u64, unit_ms: u64, max_ms: u64) -> u64 {
        if threshold == 0 {
            return 0;
        }
        let count = self.names.get(name).map_or(0, |failures| failures.count);
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
        let failures = self.names.get_mut(name)?;
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
        self.names.iter().map(|(name, failures)| (name.clone(), failures.count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_with_failures_and_end_with_a_login() {
        let mut failed = FailedLogins::default();
        let name = AccountName::new("u", "%");
        let mut delays = Vec::new();
        for now in 0..6 {
            delays.push(failed.delay_ms(&name, 3, 1000, 2500));
            failed.note_failure(&name, now);
        }
        assert_eq!(delays, [0, 0, 0, 1000, 2000, 2500]);
        assert_eq!(failed.delay_ms(&name, 0, 1000, 2500), 0);
        failed.forget(&name);
        assert_eq!(failed.delay_ms(&name, 3, 1000, 2500), 0);
    }

    #[test]
    fn a_lock_begins_with_the_last_failure_and_ends_after_its_days() {
        let mut failed = FailedLogins::default();
        let name = AccountName::new("u", "%");
        failed.note_failure(&name, 5);
        assert_eq!(failed.block(&name, 2, 2, 5), None);
        failed.note_failure(&name, 6);
        assert_eq!(failed.block(&name, 2, 2, DAY_US), Some(Block { failures: 2, days: 2, days_left: 2 }));
        assert_eq!(failed.block(&name, 2, 2, DAY_US + 6), Some(Block { failures: 2, days: 2, days_left: 1 }));
        assert_eq!(failed.block(&name, 2, -1, 900 * DAY_US).map(|block| block.days), Some(-1));
        assert_eq!(failed.block(&name, 2, 2, 2 * DAY_US + 6), None);
        assert_eq!(failed.block(&name, 2, 2, 2 * DAY_US + 6), None, "the count has begun again");
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let mut failed = FailedLogins::default();
        for number in 0..NAMES_MAX as u64 + 10 {
            failed.note_failure(&AccountName::new(&format!("u{number}"), "%"), number);
        }
        assert_eq!(failed.names.len(), NAMES_MAX);
        assert!(!failed.names.contains_key(&AccountName::new("u0", "%")));
    }
}
