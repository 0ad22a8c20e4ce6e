//! New passwords, and the rules that they must fulfil.

use junctor_model::access::{AccountDefinition, AccountName, Authentication, AuthenticationMethod};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::password::caching_sha2::{Checked, PASSWORD_BYTES_MAX, SALT_BYTES, StoredPassword};
use junctor_model::password::native::PasswordHash;

use super::edit::AccessEdit;
use crate::parse::account::{Identification, NewPassword, Secret};

/// Former passwords that an account keeps. Each costs a full check when the password changes.
const HISTORY_MAX: usize = 64;

/// Length of a generated password in characters.
const GENERATED_CHARACTERS: usize = 20;

/// Microseconds of a day.
const DAY_US: u64 = 86_400_000_000;

impl AccessEdit<'_> {
    /// The authentication that IDENTIFIED describes. `current` is the method of the account; `None` for a new
    /// one. Generated passwords go to the result of the statement.
    pub(super) fn authentication(
        &mut self,
        name: &AccountName,
        identification: &Identification,
        current: Option<AuthenticationMethod>,
    ) -> Result<(Authentication, Option<Secret>)> {
        let method = match &identification.method {
            Some(written) => find_method(written)?,
            None => match current {
                Some(current) => current,
                None => find_method(self.context.default_method)?,
            },
        };
        let plain = match &identification.password {
            None => {
                // A new account must have a password, even if it is locked at first.
                if current.is_none() && method != AuthenticationMethod::AuthSocket {
                    self.check_strength(name, &Secret(Vec::new()))?;
                }
                return Ok((Authentication::without_password(method), None));
            }
            Some(NewPassword::Stored(stored)) => return parse_stored(method, stored).map(|stored| (stored, None)),
            Some(NewPassword::Plain(plain)) => {
                self.check_strength(name, plain)?;
                plain.clone()
            }
            Some(NewPassword::Random) => {
                let password = self.random_password();
                self.generated.push((name.clone(), password.clone()));
                Secret(password.into_bytes())
            }
        };
        Ok((self.store(method, &plain)?, Some(plain)))
    }

    /// Error 1819 if `validate_password` does not allow the password for an account.
    fn check_strength(&self, name: &AccountName, plain: &Secret) -> Result<()> {
        let password = String::from_utf8_lossy(&plain.0);
        let users = [&*self.context.own.user, &*name.user];
        match self.context.strength.is_none_or(|rules| rules.accepts(&password, &users)) {
            true => Ok(()),
            false => {
                let message = "Your password does not satisfy the current policy requirements";
                Err(Error::new(ErrorCode::NotValidPassword, message))
            }
        }
    }

    /// The stored form of a password.
    pub(super) fn store(&mut self, method: AuthenticationMethod, plain: &Secret) -> Result<Authentication> {
        if plain.0.len() > PASSWORD_BYTES_MAX {
            let message = format!("String is too long for password (should be no longer than {PASSWORD_BYTES_MAX})");
            return Err(Error::new(ErrorCode::WrongStringLength, message));
        }
        let stored = match method {
            _ if plain.0.is_empty() => Vec::new(),
            AuthenticationMethod::AuthSocket => return Err(wrong_format()),
            AuthenticationMethod::MysqlNativePassword => PasswordHash::of_password(&plain.0).encode(),
            AuthenticationMethod::CachingSha2Password => {
                let mut salt = [0; SALT_BYTES];
                for bytes in salt.chunks_mut(8) {
                    let word = (self.context.random)().to_le_bytes();
                    bytes.copy_from_slice(&word[..bytes.len()]);
                }
                StoredPassword::of_password(&plain.0, salt).encode()
            }
        };
        Ok(Authentication { method, stored })
    }

    fn random_password(&mut self) -> String {
        const ALPHABET: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!#%+:=?@_-.";
        let mut character = || ALPHABET[((self.context.random)() % ALPHABET.len() as u64) as usize] as char;
        (0..GENERATED_CHARACTERS).map(|_| character()).collect()
    }

    /// Gives an account a new password. Errors: 3638 for a former password; 3878, 3894 and 3895 for RETAIN
    /// CURRENT PASSWORD.
    pub(super) fn change_password(
        &self,
        name: &AccountName,
        account: &mut AccountDefinition,
        (new, plain): (Authentication, Option<&Secret>),
        retain: bool,
    ) -> Result<()> {
        let refused = |code, reason: &str| {
            let (user, host) = (&name.user, &name.host);
            let message = format!("Current password can not be retained for user '{user}'@'{host}' because {reason}.");
            Error::new(code, message)
        };
        if retain && new.method != account.authentication.method {
            let reason = "authentication plugin is being changed";
            return Err(refused(ErrorCode::PasswordRetainedWithPlugin, reason));
        }
        if retain && new.stored.is_empty() {
            return Err(refused(ErrorCode::PasswordRetainedEmpty, "new password is empty"));
        }
        if retain && account.authentication.stored.is_empty() {
            let message = format!("Empty password can not be retained as second password for user {name}.");
            return Err(Error::new(ErrorCode::SecondPasswordEmpty, message));
        }
        self.check_history(name, account, plain, &new)?;
        if new.method != account.authentication.method || new.stored.is_empty() {
            account.second = None;
        }
        let now = self.context.now_us;
        let before = std::mem::replace(&mut account.authentication, new);
        if !before.stored.is_empty() && self.keeps_history(account) {
            account.history.insert(0, (account.password_changed_us, before.clone()));
            let (count, days) = self.history_rules(account);
            let mut position = 0;
            account.history.retain(|(changed_us, _)| {
                position += 1;
                position <= count as usize || now.saturating_sub(*changed_us) < days.saturating_mul(DAY_US)
            });
            account.history.truncate(HISTORY_MAX);
        }
        if retain {
            account.second = Some(before);
        }
        account.password_changed_us = now;
        account.is_expired = false;
        Ok(())
    }

    /// PASSWORD HISTORY and PASSWORD REUSE INTERVAL of an account.
    fn history_rules(&self, account: &AccountDefinition) -> (u64, u64) {
        let rules = &self.context.rules;
        let own = |own: Option<u16>, server: u64| own.map_or(server, u64::from);
        (own(account.policy.history, rules.history), own(account.policy.reuse_days, rules.reuse_days))
    }

    fn keeps_history(&self, account: &AccountDefinition) -> bool {
        self.history_rules(account) != (0, 0)
    }

    /// Error 3638 if the account has had the password, the present one included.
    fn check_history(
        &self,
        name: &AccountName,
        account: &AccountDefinition,
        plain: Option<&Secret>,
        new: &Authentication,
    ) -> Result<()> {
        let (count, days) = self.history_rules(account);
        if !self.keeps_history(account) {
            return Ok(());
        }
        let current = (account.password_changed_us, account.authentication.clone());
        let all = std::iter::once(&current).chain(&account.history);
        let is_recent = |changed_us: u64| self.context.now_us.saturating_sub(changed_us) < days.saturating_mul(DAY_US);
        let barred =
            all.enumerate().filter(|(position, (changed, _))| (*position as u64) < count || is_recent(*changed));
        for (_, (_, former)) in barred {
            let is_same = match plain {
                Some(plain) => is_password(former, plain),
                None => former == new,
            };
            if is_same && !former.stored.is_empty() {
                let (user, host) = (&name.user, &name.host);
                let message = format!(
                    "Cannot use these credentials for '{user}@{host}' because they contradict the password history policy"
                );
                return Err(Error::new(ErrorCode::CredentialsContradictHistory, message));
            }
        }
        Ok(())
    }

    /// Checks REPLACE of the session's own password. Errors: 3892 if it is required and lacks, 3891 if it is
    /// wrong.
    pub(super) fn check_current(&self, account: &AccountDefinition, replace: Option<&Secret>) -> Result<()> {
        let is_required = account.policy.require_current.unwrap_or(self.context.rules.require_current);
        match replace {
            Some(given) if is_password(&account.authentication, given) => Ok(()),
            Some(_) => {
                let message = "Incorrect current password. Specify the correct password which has to be replaced.";
                Err(Error::new(ErrorCode::IncorrectCurrentPassword, message))
            }
            None if is_required && account.has_password() => {
                let message = "Current password needs to be specified in the REPLACE clause in order to change it.";
                Err(Error::new(ErrorCode::MissingCurrentPassword, message))
            }
            None => Ok(()),
        }
    }
}

/// Whether a password is the stored one.
fn is_password(stored: &Authentication, plain: &Secret) -> bool {
    if stored.stored.is_empty() {
        return plain.0.is_empty();
    }
    match stored.method {
        AuthenticationMethod::AuthSocket => false,
        AuthenticationMethod::MysqlNativePassword => {
            PasswordHash::parse(&stored.stored).is_some_and(|hash| hash.is_of(&plain.0))
        }
        AuthenticationMethod::CachingSha2Password => StoredPassword::parse(&stored.stored)
            .is_some_and(|stored| matches!(stored.check(&plain.0).step(u32::MAX), Some(Checked::Right(_)))),
    }
}

fn find_method(name: &str) -> Result<AuthenticationMethod> {
    AuthenticationMethod::from_name(name)
        .ok_or_else(|| Error::new(ErrorCode::PluginNotLoaded, format!("Plugin '{name}' is not loaded")))
}

/// Reads AS. Error 1827 if the text is no stored form of the method.
fn parse_stored(method: AuthenticationMethod, stored: &Secret) -> Result<Authentication> {
    let bytes = &stored.0;
    let is_valid = match method {
        _ if bytes.is_empty() => true,
        AuthenticationMethod::AuthSocket => true,
        AuthenticationMethod::MysqlNativePassword => PasswordHash::parse(bytes).is_some(),
        AuthenticationMethod::CachingSha2Password => StoredPassword::parse(bytes).is_some(),
    };
    match is_valid {
        true => Ok(Authentication { method, stored: bytes.clone() }),
        false => Err(wrong_format()),
    }
}

fn wrong_format() -> Box<Error> {
    Error::new(ErrorCode::PasswordFormat, "The password hash doesn't have the expected format.")
}
