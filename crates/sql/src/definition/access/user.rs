//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD, and roles as objects.

use junctor_model::access::{AccountDefinition, AccountName, AuthenticationMethod, Privilege};
use junctor_model::error::{Error, ErrorCode, Result};

use super::edit::{AccessEdit, failed, lacks};
use crate::parse::account::{
    AccountOptions, AccountReference, AlterUser, CreateUser, Identification, NewPassword, SetPassword,
};

impl AccessEdit<'_> {
    pub(super) fn create_users(&mut self, create: &CreateUser) -> Result<()> {
        self.require(&[Privilege::CreateUser])?;
        let mut existing = Vec::new();
        for user in &create.users {
            let name = self.name_of(&user.account)?;
            if !name.has_valid_host() {
                return Err(failed("CREATE USER", &[name]));
            }
            if self.account(&name).is_some() {
                existing.push(name);
                continue;
            }
            let (authentication, _) = self.authentication(&name, &user.identification, None)?;
            let mut account = AccountDefinition {
                authentication,
                password_changed_us: self.context.now_us,
                ..AccountDefinition::default()
            };
            apply_options(&mut account, &create.options)?;
            self.put(name.clone(), account);
            if !create.default_roles.is_empty() {
                let roles = self.names_of(&create.default_roles)?;
                self.grant_roles(&create.default_roles, &[named(&name)], false)?;
                self.change(&name, |account| account.default_roles = roles.iter().cloned().collect());
            }
        }
        self.refuse_or_note(&existing, ("CREATE USER", create.if_not_exists), true)
    }

    pub(super) fn create_roles(&mut self, roles: &[AccountReference], if_not_exists: bool) -> Result<()> {
        self.require(&[Privilege::CreateRole, Privilege::CreateUser])?;
        let mut existing = Vec::new();
        for name in self.names_of(roles)? {
            if name.user.is_empty() {
                return Err(failed("CREATE ROLE", &[name]));
            }
            if self.account(&name).is_some() {
                existing.push(name);
                continue;
            }
            let role = AccountDefinition {
                is_role: true,
                is_locked: true,
                is_expired: true,
                password_changed_us: self.context.now_us,
                ..AccountDefinition::default()
            };
            self.put(name, role);
        }
        self.refuse_or_note(&existing, ("CREATE ROLE", if_not_exists), true)
    }

    pub(super) fn drop_users(&mut self, accounts: &[AccountReference], if_exists: bool) -> Result<()> {
        self.require(&[Privilege::CreateUser])?;
        self.drop_accounts(accounts, ("DROP USER", if_exists))
    }

    pub(super) fn drop_roles(&mut self, roles: &[AccountReference], if_exists: bool) -> Result<()> {
        self.require(&[Privilege::DropRole, Privilege::CreateUser])?;
        self.drop_accounts(roles, ("DROP ROLE", if_exists))
    }

    fn drop_accounts(&mut self, accounts: &[AccountReference], operation: (&str, bool)) -> Result<()> {
        let mut missing = Vec::new();
        for name in self.names_of(accounts)? {
            if self.account(&name).is_none() {
                missing.push(name);
                continue;
            }
            self.refuse_mandatory(&name)?;
            self.require_power_over(&name)?;
            self.remove(&name);
            self.change_all(|account| {
                let had_role = account.roles.remove(&name).is_some();
                account.default_roles.remove(&name) || had_role
            });
        }
        self.refuse_or_note(&missing, operation, false)
    }

    pub(super) fn rename_users(&mut self, renames: &[(AccountReference, AccountReference)]) -> Result<()> {
        self.require(&[Privilege::CreateUser])?;
        for (from, to) in renames {
            let (from, to) = (self.name_of(from)?, self.name_of(to)?);
            self.refuse_mandatory(&from)?;
            // The account would give its privileges to everybody.
            self.refuse_mandatory(&to)?;
            self.require_power_over(&from)?;
            let account = self.account(&from).filter(|_| self.account(&to).is_none() && to.has_valid_host()).cloned();
            let Some(account) = account else { return Err(failed("RENAME USER", &[from])) };
            self.remove(&from);
            self.put(to.clone(), account);
            self.change_all(|account| {
                let admin = account.roles.remove(&from);
                let is_default = account.default_roles.remove(&from);
                if let Some(admin) = admin {
                    account.roles.insert(to.clone(), admin);
                }
                if is_default {
                    account.default_roles.insert(to.clone());
                }
                admin.is_some() || is_default
            });
        }
        Ok(())
    }

    pub(super) fn set_password(&mut self, set: &SetPassword) -> Result<()> {
        let identification = Identification {
            password: Some(set.password.clone().map_or(NewPassword::Random, NewPassword::Plain)),
            replace: set.replace.clone(),
            retain: set.retain,
            ..Identification::default()
        };
        let name = self.name_of(&set.account)?;
        if self.account(&name).is_none() {
            return Err(Error::new(ErrorCode::PasswordNoMatch, "Can't find any matching row in the user table"));
        }
        self.identify(&name, &identification)
    }

    pub(super) fn alter_users(&mut self, alter: &AlterUser) -> Result<()> {
        let changes_options = alter.options != AccountOptions::default();
        let mut missing = Vec::new();
        for user in &alter.users {
            let name = self.name_of(&user.account)?;
            if self.account(&name).is_none() {
                missing.push(name);
                continue;
            }
            if name != *self.context.own || changes_options {
                self.require(&[Privilege::CreateUser])?;
            }
            self.identify(&name, &user.identification)?;
            if let Some(choice) = &alter.default_roles {
                self.set_default_roles(choice, &[named(&name)])?;
            }
            if changes_options {
                self.require_power_over(&name)?;
                let mut account = self.account(&name).cloned().unwrap_or_default();
                apply_options(&mut account, &alter.options)?;
                self.put(name.clone(), account);
                let options = &alter.options;
                if options.lock == Some(false) || options.failed_logins_max.is_some() || options.lock_days.is_some() {
                    self.unlocked.push(name.clone());
                }
                self.recounted.push(name);
            }
        }
        self.refuse_or_note(&missing, ("ALTER USER", alter.if_exists), false)
    }

    /// Changes how an account proves its identity, if the clause says something.
    fn identify(&mut self, name: &AccountName, identification: &Identification) -> Result<()> {
        if *identification == Identification::default() {
            return Ok(());
        }
        let is_own = name == self.context.own;
        let has_admin = self.context.rights.has(Privilege::CreateUser);
        if !is_own && !has_admin {
            return Err(lacks("CREATE USER"));
        }
        if (identification.retain || identification.discard)
            && !has_admin
            && !self.context.rights.has(Privilege::ApplicationPasswordAdmin)
        {
            return Err(lacks("CREATE USER, APPLICATION_PASSWORD_ADMIN"));
        }
        self.require_power_over(name)?;
        let mut account = self.account(name).cloned().unwrap_or_default();
        if identification.discard {
            account.second = None;
            self.put(name.clone(), account);
            return Ok(());
        }
        if identification.replace.is_some() && !is_own {
            let message = "Do not specify the current password while changing it for other users.";
            return Err(Error::new(ErrorCode::CurrentPasswordNotRequired, message));
        }
        if is_own && (!has_admin || identification.replace.is_some()) {
            self.check_current(&account, identification.replace.as_ref())?;
        }
        let current = account.authentication.method;
        let (new, plain) = self.authentication(name, identification, Some(current))?;
        let expires = new.stored.is_empty() && identification.password.is_none();
        self.change_password(name, &mut account, (new, plain.as_ref()), identification.retain)?;
        // A change of the method alone leaves the account without a password, which must be set.
        account.is_expired = expires && account.authentication.method != AuthenticationMethod::AuthSocket;
        self.put(name.clone(), account);
        Ok(())
    }

    pub(super) fn change(&mut self, name: &AccountName, change: impl FnOnce(&mut AccountDefinition)) {
        if let Some(mut account) = self.account(name).cloned() {
            change(&mut account);
            self.put(name.clone(), account);
        }
    }

    /// Error 1396 for accounts that exist or are missing, or a note for each with IF [NOT] EXISTS.
    fn refuse_or_note(
        &mut self,
        names: &[AccountName],
        (operation, as_note): (&str, bool),
        exists: bool,
    ) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        if !as_note {
            return Err(failed(operation, names));
        }
        for name in names {
            match exists {
                true => self.note(ErrorCode::UserAlreadyExists, format!("Authorization ID {name} already exists.")),
                false => self.note(ErrorCode::UserDoesNotExist, format!("Authorization ID {name} does not exist.")),
            }
        }
        Ok(())
    }

    pub(super) fn refuse_mandatory(&self, name: &AccountName) -> Result<()> {
        if !self.context.mandatory_roles.contains(name) {
            return Ok(());
        }
        let message = format!(
            "The role `{}`@`{}` is a mandatory role and can't be revoked or dropped. The restriction can be lifted by \
             excluding the role identifier from the global variable mandatory_roles.",
            name.user, name.host
        );
        Err(Error::new(ErrorCode::MandatoryRole, message))
    }
}

fn named(name: &AccountName) -> AccountReference {
    AccountReference::Named { user: name.user.to_string(), host: Some(name.host.to_string()) }
}

fn apply_options(account: &mut AccountDefinition, options: &AccountOptions) -> Result<()> {
    if let Some(tls) = &options.tls {
        account.tls = tls.clone();
    }
    for (limit, value) in &options.limits {
        limit.set(&mut account.limits, *value);
    }
    let policy = &mut account.policy;
    policy.lifetime = options.lifetime.unwrap_or(policy.lifetime);
    policy.history = options.history.unwrap_or(policy.history);
    policy.reuse_days = options.reuse_days.unwrap_or(policy.reuse_days);
    policy.require_current = options.require_current.unwrap_or(policy.require_current);
    policy.failed_logins_max = options.failed_logins_max.unwrap_or(policy.failed_logins_max);
    policy.lock_days = options.lock_days.unwrap_or(policy.lock_days);
    account.is_locked = options.lock.unwrap_or(account.is_locked);
    account.is_expired |= options.expire_now;
    if let Some(comment) = &options.comment {
        account.set_comment(comment);
    }
    if let Some(attribute) = &options.attribute
        && !account.merge_attributes(attribute)
    {
        let message = "The user attribute must be a valid JSON object";
        return Err(Error::new(ErrorCode::InvalidUserAttribute, message));
    }
    Ok(())
}
