//! The accounts while a statement changes them, and who makes the change.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_model::access::name::{HOST_CHARACTERS_MAX, USER_CHARACTERS_MAX};
use junctor_model::access::{AccessChange, AccessControl, AccountDefinition, AccountName, Privilege, Rights};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::password::strength::StrengthRules;

use super::role::role_with_system_user;
use crate::parse::account::AccountReference;

/// The server's rules for passwords, for accounts without rules of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PasswordRules {
    /// `password_history`.
    pub history: u64,
    /// `password_reuse_interval` in days.
    pub reuse_days: u64,
    /// `password_require_current`.
    pub require_current: bool,
}

/// Looks up the columns of a table by database and name.
pub(crate) type FindColumns<'a> = dyn Fn(&str, &str) -> Option<Vec<Box<str>>> + 'a;

/// The session that changes accounts, and the state before.
pub(crate) struct AccessContext<'a> {
    /// The accounts before the statement.
    pub access: &'a AccessControl,
    /// The account of the session.
    pub own: &'a AccountName,
    /// The rights of the session.
    pub rights: &'a Rights,
    /// The session's user and host in the texts of errors: `'user'@'host'`.
    pub session: &'a str,
    /// The session's database.
    pub database: Option<&'a str>,
    /// The columns of a table; `None` if it does not exist.
    pub find_table: &'a FindColumns<'a>,
    /// `mandatory_roles`.
    pub mandatory_roles: &'a [AccountName],
    /// `partial_revokes`.
    pub partial_revokes: bool,
    /// The method of accounts without IDENTIFIED WITH.
    pub default_method: &'a str,
    /// The server's rules for passwords.
    pub rules: PasswordRules,
    /// The rules of `validate_password`, if it is on.
    pub strength: Option<StrengthRules>,
    /// The time in microseconds since 1970.
    pub now_us: u64,
    /// Random words that nobody can guess, for salts and passwords.
    pub random: &'a mut dyn FnMut() -> u64,
}

/// The accounts while a statement changes them.
pub(crate) struct AccessEdit<'a> {
    pub(super) context: AccessContext<'a>,
    /// New and changed accounts; `None` for dropped ones.
    accounts: BTreeMap<AccountName, Option<AccountDefinition>>,
    /// Notes and warnings, as (whether it is a warning, errno, message).
    pub notes: Vec<(bool, u16, Box<str>)>,
    /// Generated passwords.
    pub generated: Vec<(AccountName, String)>,
    /// Accounts whose use of resources is counted anew.
    pub recounted: Vec<AccountName>,
    /// Accounts whose locks after failed logins end.
    pub unlocked: Vec<AccountName>,
}

impl<'a> AccessEdit<'a> {
    pub(super) fn new(context: AccessContext<'a>) -> AccessEdit<'a> {
        AccessEdit {
            context,
            accounts: BTreeMap::new(),
            notes: Vec::new(),
            generated: Vec::new(),
            recounted: Vec::new(),
            unlocked: Vec::new(),
        }
    }

    /// The change of the statement.
    pub fn to_change(&self) -> AccessChange {
        let mut change = AccessChange { version: self.context.access.version, ..AccessChange::default() };
        for (name, account) in &self.accounts {
            match account {
                Some(account) => change.changed.push((name.clone(), Arc::new(account.clone()))),
                None => change.dropped.push(name.clone()),
            }
        }
        change
    }

    /// The account as the statement has left it so far.
    pub(super) fn account(&self, name: &AccountName) -> Option<&AccountDefinition> {
        match self.accounts.get(name) {
            Some(account) => account.as_ref(),
            None => self.context.access.account(name).map(|account| &**account),
        }
    }

    pub(super) fn put(&mut self, name: AccountName, account: AccountDefinition) {
        self.accounts.insert(name, Some(account));
    }

    pub(super) fn remove(&mut self, name: &AccountName) {
        self.accounts.insert(name.clone(), None);
    }

    /// Changes every account, for roles that are renamed or dropped.
    pub(super) fn change_all(&mut self, change: impl Fn(&mut AccountDefinition) -> bool) {
        let names: Vec<AccountName> = self.context.access.accounts().map(|(name, _)| name.clone()).collect();
        for name in names {
            if let Some(account) = self.account(&name) {
                let mut account = account.clone();
                if change(&mut account) {
                    self.put(name, account);
                }
            }
        }
    }

    /// The name that a statement refers to. Errors: 1470 for a name that is too long.
    pub(super) fn name_of(&self, reference: &AccountReference) -> Result<AccountName> {
        let (user, host) = match reference {
            AccountReference::Current => return Ok(self.context.own.clone()),
            AccountReference::Named { user, host } => (user, host.as_deref().unwrap_or("%")),
        };
        let too_long = |text: &str, what: &str, limit: usize| {
            let message = format!("String '{text}' is too long for {what} (should be no longer than {limit})");
            Error::new(ErrorCode::WrongStringLength, message)
        };
        if user.chars().count() > USER_CHARACTERS_MAX {
            return Err(too_long(user, "user name", USER_CHARACTERS_MAX));
        }
        if host.chars().count() > HOST_CHARACTERS_MAX {
            return Err(too_long(host, "host name", HOST_CHARACTERS_MAX));
        }
        Ok(AccountName::new(user, if host.is_empty() { "%" } else { host }))
    }

    pub(super) fn names_of(&self, references: &[AccountReference]) -> Result<Vec<AccountName>> {
        references.iter().map(|reference| self.name_of(reference)).collect()
    }

    /// Error 1227 unless the session has one of these privileges.
    pub(super) fn require(&self, privileges: &[Privilege]) -> Result<()> {
        if privileges.iter().any(|privilege| self.context.rights.has(*privilege)) {
            return Ok(());
        }
        let names: Vec<&str> = privileges.iter().map(|privilege| privilege.name()).collect();
        Err(lacks(&names.join(", ")))
    }

    /// Error 1227 if the account has SYSTEM_USER, by itself or through its roles, and the session has not.
    pub(super) fn require_power_over(&self, name: &AccountName) -> Result<()> {
        let is_system = role_with_system_user(std::slice::from_ref(name), |name| self.account(name)).is_some();
        match is_system && name != self.context.own && !self.context.rights.has(Privilege::SystemUser) {
            true => Err(lacks("SYSTEM_USER")),
            false => Ok(()),
        }
    }

    pub(super) fn note(&mut self, code: ErrorCode, message: String) {
        self.notes.push((false, code.errno(), message.into()));
    }

    pub(super) fn warn(&mut self, code: ErrorCode, message: String) {
        self.notes.push((true, code.errno(), message.into()));
    }
}

/// 1227 with the names of the privileges.
pub(super) fn lacks(privileges: &str) -> Box<Error> {
    let message = format!("Access denied; you need (at least one of) the {privileges} privilege(s) for this operation");
    Error::new(ErrorCode::SpecificAccessDenied, message)
}

/// 1396 with the accounts for which a statement failed.
pub(super) fn failed(operation: &str, names: &[AccountName]) -> Box<Error> {
    let names: Vec<String> = names.iter().map(AccountName::to_string).collect();
    Error::new(ErrorCode::CannotUser, format!("Operation {operation} failed for {}", names.join(",")))
}
