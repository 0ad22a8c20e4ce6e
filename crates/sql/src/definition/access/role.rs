//! GRANT and REVOKE of roles, and default roles.

use std::collections::BTreeSet;

use junctor_model::access::{AccountDefinition, AccountName, Privilege};
use junctor_model::error::{Error, ErrorCode, Result};

use super::edit::{AccessEdit, lacks};
use crate::parse::account::{AccountReference, RoleChoice};

impl AccessEdit<'_> {
    pub(super) fn grant_roles(
        &mut self,
        roles: &[AccountReference],
        to: &[AccountReference],
        admin: bool,
    ) -> Result<()> {
        let roles = self.names_of(roles)?;
        self.check_role_admin(&roles)?;
        let with_system_user = role_with_system_user(&roles, |name| self.account(name)).is_some();
        if with_system_user && !self.context.rights.has(Privilege::SystemUser) {
            return Err(lacks("SYSTEM_USER"));
        }
        for name in self.names_of(to)? {
            if with_system_user {
                self.refuse_system_user(&name)?;
            }
            if self.account(&name).is_none() {
                return Err(unknown(&name));
            }
            for role in &roles {
                if self.account(role).is_none() {
                    return Err(unknown(role));
                }
                if *role == name || self.reaches(role, &name) {
                    let (grantee, granted) = (quoted(&name), quoted(role));
                    let message = format!(
                        "User account {grantee} is directly or indirectly granted to the role {granted}. The GRANT would create a loop"
                    );
                    return Err(Error::new(ErrorCode::RoleGrantedToItself, message));
                }
            }
            self.require_power_over(&name)?;
            self.change(&name, |account| {
                for role in &roles {
                    *account.roles.entry(role.clone()).or_default() |= admin;
                }
            });
        }
        Ok(())
    }

    pub(super) fn revoke_roles(
        &mut self,
        roles: &[AccountReference],
        from: &[AccountReference],
        if_exists: bool,
    ) -> Result<()> {
        let roles = self.names_of(roles)?;
        self.check_role_admin(&roles)?;
        for name in self.names_of(from)? {
            if self.account(&name).is_none() {
                if !if_exists {
                    return Err(unknown(&name));
                }
                self.warn(ErrorCode::UnknownAuthorizationId, format!("Unknown authorization ID {}", quoted(&name)));
                continue;
            }
            for role in &roles {
                self.refuse_mandatory(role)?;
                if self.account(role).is_none() && !if_exists {
                    return Err(unknown(role));
                }
            }
            self.require_power_over(&name)?;
            self.change(&name, |account| {
                for role in &roles {
                    account.roles.remove(role);
                    account.default_roles.remove(role);
                }
            });
        }
        Ok(())
    }

    pub(super) fn set_default_roles(&mut self, choice: &RoleChoice, to: &[AccountReference]) -> Result<()> {
        for name in self.names_of(to)? {
            if name != *self.context.own {
                self.require(&[Privilege::CreateUser])?;
            }
            let Some(account) = self.account(&name) else { return Err(unknown(&name)) };
            let mandatory = self.context.mandatory_roles.iter();
            let granted: BTreeSet<AccountName> = account.roles.keys().chain(mandatory).cloned().collect();
            let chosen: BTreeSet<AccountName> = match choice {
                RoleChoice::None | RoleChoice::Default => BTreeSet::new(),
                RoleChoice::All => granted,
                RoleChoice::AllExcept(except) => {
                    let except = self.names_of(except)?;
                    granted.into_iter().filter(|role| !except.contains(role)).collect()
                }
                RoleChoice::Named(roles) => {
                    let roles: BTreeSet<AccountName> = self.names_of(roles)?.into_iter().collect();
                    if let Some(role) = roles.iter().find(|role| !granted.contains(role)) {
                        return Err(role_not_granted(role, &name));
                    }
                    roles
                }
            };
            self.require_power_over(&name)?;
            self.change(&name, |account| account.default_roles = chosen);
        }
        Ok(())
    }

    /// Error 3897 for a mandatory role, which would give SYSTEM_USER to everybody.
    pub(super) fn refuse_system_user(&self, name: &AccountName) -> Result<()> {
        // Roles may contain the account.
        let is_in = |role: &AccountName| role == name || self.reaches(role, name);
        let Some(role) = self.context.mandatory_roles.iter().find(|role| is_in(role)) else { return Ok(()) };
        let message = format!(
            "AuthID {}@{} is set as mandatory_roles. Cannot grant the 'SYSTEM_USER' privilege.",
            role.user, role.host
        );
        Err(Error::new(ErrorCode::SystemUserForMandatoryRole, message))
    }

    /// Error 1227 unless the session may grant the roles.
    fn check_role_admin(&self, roles: &[AccountName]) -> Result<()> {
        let rights = self.context.rights;
        if rights.has_dynamic(Privilege::RoleAdmin) {
            return Ok(());
        }
        let own = self.account(self.context.own);
        let may = |role: &AccountName| own.is_some_and(|account| account.roles.get(role) == Some(&true));
        match roles.iter().all(may) {
            true => Ok(()),
            false => Err(lacks("WITH ADMIN, ROLE_ADMIN, SUPER")),
        }
    }

    /// Whether a role contains another one.
    fn reaches(&self, role: &AccountName, other: &AccountName) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![role.clone()];
        while let Some(next) = open.pop() {
            if next == *other {
                return true;
            }
            if seen.insert(next.clone())
                && let Some(account) = self.account(&next)
            {
                open.extend(account.roles.keys().cloned());
            }
        }
        false
    }
}

/// The first of these roles that has SYSTEM_USER, or contains a role that has it.
pub(crate) fn role_with_system_user<'a>(
    roles: &[AccountName],
    find: impl Fn(&AccountName) -> Option<&'a AccountDefinition>,
) -> Option<&AccountName> {
    roles.iter().find(|role| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![*role]);
        while let Some(next) = open.pop() {
            if seen.insert(next)
                && let Some(account) = find(next)
            {
                if account.global.has(Privilege::SystemUser) {
                    return true;
                }
                open.extend(account.roles.keys());
            }
        }
        false
    })
}

/// 3530: an account that lacks a role.
pub(crate) fn role_not_granted(role: &AccountName, name: &AccountName) -> Box<Error> {
    Error::new(ErrorCode::RoleNotGranted, format!("{} is not granted to {}", quoted(role), quoted(name)))
}

fn unknown(name: &AccountName) -> Box<Error> {
    Error::new(ErrorCode::UnknownAuthorizationId, format!("Unknown authorization ID {}", quoted(name)))
}

fn quoted(name: &AccountName) -> String {
    format!("`{}`@`{}`", name.user, name.host)
}

/// The names in the text of `mandatory_roles`; `None` for a wrong text.
pub(crate) fn parse_role_list(text: &str) -> Option<Vec<AccountName>> {
    let unquoted = |text: &str| {
        let text = text.trim();
        let quote = text.chars().next().filter(|letter| matches!(letter, '\'' | '"' | '`'));
        match quote {
            Some(quote) => text.strip_prefix(quote)?.strip_suffix(quote).map(str::to_owned),
            None => Some(text.to_owned()),
        }
    };
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (user, host) = part.rsplit_once('@').unwrap_or((part, "%"));
            let (user, host) = (unquoted(user)?, unquoted(host)?);
            (!user.is_empty()).then(|| AccountName::new(&user, &host))
        })
        .collect()
}
