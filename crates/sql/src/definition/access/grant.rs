//! GRANT and REVOKE of privileges.

use std::collections::BTreeMap;

use junctor_model::access::privilege::PrivilegeLevel;
use junctor_model::access::{AccountDefinition, AccountName, Privilege, Privileges};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::schema::SYSTEM_DATABASES;

use super::edit::{AccessEdit, lacks};
use crate::parse::account::{AccountReference, Grant, GrantObject, PrivilegeList, Revoke};

/// The objects of a statement, with names completed.
enum Target {
    Server,
    Database(Box<str>),
    Table((Box<str>, Box<str>)),
}

/// The privileges of a statement.
#[derive(Default)]
struct Wanted {
    /// On the whole object.
    privileges: Privileges,
    /// On single columns.
    columns: BTreeMap<Box<str>, Privileges>,
}

impl AccessEdit<'_> {
    pub(super) fn grant(&mut self, grant: &Grant) -> Result<()> {
        let target = self.target_of(&grant.on)?;
        let mut wanted = wanted(&grant.privileges, &target)?;
        let own_option = Privileges::from(Privilege::GrantOption);
        self.check_may_pass_on(&wanted, &target)?;
        let asks_option = grant.grant_option || wanted.privileges.has(Privilege::GrantOption);
        wanted.privileges = wanted.privileges.without(own_option);
        self.check_columns(&wanted, &target)?;
        let names = self.names_of(&grant.to)?;
        let missing: Vec<&AccountName> = names.iter().filter(|name| self.account(name).is_none()).collect();
        if !missing.is_empty() {
            let message = "You are not allowed to create a user with GRANT";
            return Err(Error::new(ErrorCode::CannotCreateUserWithGrant, message));
        }
        let (now, grantor) = (self.context.now_us, self.context.own.to_string());
        let lacking: BTreeMap<Box<str>, Privileges> =
            self.context.rights.restrictions().map(|(database, it)| (database.into(), it)).collect();
        let gives_system_user = matches!(target, Target::Server) && wanted.privileges.has(Privilege::SystemUser);
        for name in names {
            self.require_power_over(&name)?;
            if gives_system_user {
                self.refuse_system_user(&name)?;
            }
            let option = if asks_option { own_option } else { Privileges::NONE };
            self.change(&name, |account| match &target {
                Target::Server => {
                    let dynamic = wanted.privileges & Privileges::DYNAMIC;
                    restrict(account, wanted.privileges, &lacking);
                    account.global |= wanted.privileges;
                    // WITH GRANT OPTION of dynamic privileges alone concerns only these.
                    if asks_option && (dynamic.is_empty() || wanted.privileges.has_any(Privileges::STATIC)) {
                        account.global |= option;
                    }
                    if asks_option {
                        account.grantable_dynamic |= dynamic;
                    }
                }
                Target::Database(database) => {
                    *account.databases.entry(database.clone()).or_default() |= wanted.privileges | option;
                    if let Some(restricted) = account.restrictions.get_mut(database) {
                        *restricted = restricted.without(wanted.privileges);
                        if restricted.is_empty() {
                            account.restrictions.remove(database);
                        }
                    }
                    account.databases.retain(|_, privileges| !privileges.is_empty());
                }
                Target::Table(table) => {
                    let entry = account.tables.entry(table.clone()).or_default();
                    entry.privileges |= wanted.privileges | option;
                    for (column, privileges) in &wanted.columns {
                        *entry.columns.entry(column.clone()).or_default() |= *privileges;
                    }
                    if entry.grantor.is_empty() {
                        entry.grantor = grantor.trim_matches('\'').replace("'@'", "@").into();
                    }
                    entry.changed_us = now;
                    account.tables.retain(|_, grant| !grant.any().is_empty());
                }
            });
        }
        Ok(())
    }

    pub(super) fn revoke(&mut self, revoke: &Revoke) -> Result<()> {
        let target = self.target_of(&revoke.on)?;
        let wanted = wanted(&revoke.privileges, &target)?;
        self.check_may_pass_on(&wanted, &target)?;
        for name in self.names_of(&revoke.from)? {
            let Some(account) = self.account(&name).cloned() else {
                let (user, host) = (&name.user, &name.host);
                if revoke.ignore_unknown {
                    self.warn(ErrorCode::UserDoesNotExist, format!("Authorization ID {name} does not exist."));
                    continue;
                }
                let message = format!("There is no such grant defined for user '{user}' on host '{host}'");
                return Err(Error::new(ErrorCode::NonexistingGrant, message));
            };
            self.require_power_over(&name)?;
            let mut account = account;
            match self.revoke_from(&name, &mut account, &wanted, &target) {
                Ok(()) => self.put(name, account),
                Err(error) if revoke.if_exists => self.warn(error.code, error.message.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn revoke_from(
        &self,
        name: &AccountName,
        account: &mut AccountDefinition,
        wanted: &Wanted,
        target: &Target,
    ) -> Result<()> {
        let (user, host) = (&name.user, &name.host);
        match target {
            Target::Server => {
                account.global = account.global.without(wanted.privileges);
                account.grantable_dynamic = account.grantable_dynamic.without(wanted.privileges);
                for restricted in account.restrictions.values_mut() {
                    *restricted = restricted.without(wanted.privileges);
                }
                account.restrictions.retain(|_, restricted| !restricted.is_empty());
            }
            Target::Database(database) => {
                let granted = account.databases.get_mut(database);
                let had = granted.as_ref().is_some_and(|granted| granted.has_any(wanted.privileges));
                if let Some(granted) = granted {
                    *granted = granted.without(wanted.privileges);
                }
                account.databases.retain(|_, privileges| !privileges.is_empty());
                let restricted = account.global & wanted.privileges;
                if self.context.partial_revokes && !restricted.is_empty() {
                    *account.restrictions.entry(database.clone()).or_default() |= restricted;
                } else if !had {
                    let message = format!("There is no such grant defined for user '{user}' on host '{host}'");
                    return Err(Error::new(ErrorCode::NonexistingGrant, message));
                }
            }
            Target::Table(table) => {
                let missing = || {
                    let table = &table.1;
                    let message =
                        format!("There is no such grant defined for user '{user}' on host '{host}' on table '{table}'");
                    Error::new(ErrorCode::NonexistingTableGrant, message)
                };
                let granted = account.tables.get_mut(table).ok_or_else(missing)?;
                let mut had = granted.privileges.has_any(wanted.privileges);
                granted.privileges = granted.privileges.without(wanted.privileges);
                for (column, privileges) in &wanted.columns {
                    if let Some((_, own)) =
                        granted.columns.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(column))
                    {
                        had |= own.has_any(*privileges);
                        *own = own.without(*privileges);
                    }
                }
                // A privilege on the table contains that on its columns.
                for own in granted.columns.values_mut() {
                    had |= own.has_any(wanted.privileges);
                    *own = own.without(wanted.privileges);
                }
                granted.columns.retain(|_, privileges| !privileges.is_empty());
                granted.changed_us = self.context.now_us;
                account.tables.retain(|_, grant| !grant.any().is_empty());
                if !had {
                    return Err(missing());
                }
            }
        }
        Ok(())
    }

    /// REVOKE ALL PRIVILEGES, GRANT OPTION.
    pub(super) fn revoke_all(&mut self, from: &[AccountReference], if_exists: bool) -> Result<()> {
        if !self.context.rights.has(Privilege::CreateUser) {
            return Err(lacks("CREATE USER"));
        }
        for name in self.names_of(from)? {
            self.require_power_over(&name)?;
            if self.account(&name).is_none() {
                if !if_exists {
                    let message = "Can't revoke all privileges for one or more of the requested users";
                    return Err(Error::new(ErrorCode::RevokeGrants, message));
                }
                self.warn(ErrorCode::UserDoesNotExist, format!("Authorization ID {name} does not exist."));
                continue;
            }
            self.change(&name, |account| {
                account.global = Privileges::NONE;
                account.grantable_dynamic = Privileges::NONE;
                account.restrictions.clear();
                account.databases.clear();
                account.tables.clear();
            });
        }
        Ok(())
    }

    fn target_of(&self, on: &GrantObject) -> Result<Target> {
        let database = |written: Option<&str>| match written.or(self.context.database) {
            Some(name) => Ok(Box::from(name)),
            None => Err(Error::new(ErrorCode::NoDatabaseSelected, "No database selected")),
        };
        let target = match on {
            GrantObject::Server => Target::Server,
            GrantObject::Database(name) => Target::Database(database(name.as_deref())?),
            GrantObject::Table(table) => {
                Target::Table((database(table.database.as_deref())?, table.name.as_str().into()))
            }
        };
        if let Target::Database(name) | Target::Table((name, _)) = &target
            && name.eq_ignore_ascii_case(SYSTEM_DATABASES[0])
        {
            return Err(self.denied_database(name));
        }
        Ok(target)
    }

    fn denied_database(&self, database: &str) -> Box<Error> {
        let own = self.context.own;
        let message = format!("Access denied for user {own} to database '{database}'");
        Error::new(ErrorCode::DatabaseAccessDenied, message)
    }

    /// Checks that the session has GRANT OPTION and the privileges themselves. Errors: 1045, 1044, 1142 and
    /// 1227, by the kind of object.
    fn check_may_pass_on(&self, wanted: &Wanted, target: &Target) -> Result<()> {
        let rights = self.context.rights;
        let option = Privilege::GrantOption;
        match target {
            Target::Server => {
                if wanted.privileges.iter().any(|it| it.is_dynamic() && !rights.can_grant_global(it)) {
                    return Err(lacks("GRANT OPTION"));
                }
                let fixed = wanted.privileges & Privileges::STATIC;
                let has_only_dynamic = fixed.is_empty() && !wanted.privileges.is_empty();
                if !has_only_dynamic && !rights.global().has_all(fixed | option.into()) {
                    let message = format!("Access denied for user {} (using password: YES)", self.context.session);
                    return Err(Error::new(ErrorCode::AccessDenied, message));
                }
            }
            Target::Database(database) => {
                let own = rights.on_database(&unescaped(database));
                if !own.has_all(wanted.privileges | option.into()) {
                    return Err(self.denied_database(database));
                }
            }
            Target::Table((database, table)) => {
                let own = rights.on_table(database, table);
                let lacking = wanted.privileges.without(own.table);
                let may_columns = wanted.columns.iter().all(|(column, it)| own.on_column(column).has_all(*it));
                if !own.table.has(option) || !lacking.is_empty() || !may_columns {
                    let missing = match own.table.has(option) {
                        true => lacking,
                        false => lacking | option.into(),
                    };
                    let names = missing.names(", ").replace("GRANT OPTION", "GRANT");
                    let session = self.context.session;
                    let message = format!("{names} command denied to user {session} for table '{table}'");
                    return Err(Error::new(ErrorCode::TableAccessDenied, message));
                }
            }
        }
        Ok(())
    }

    /// Checks that the table and the columns exist. Errors: 1146 and 1054. GRANT CREATE needs no table.
    fn check_columns(&self, wanted: &Wanted, target: &Target) -> Result<()> {
        let Target::Table((database, table)) = target else { return Ok(()) };
        let Some(columns) = (self.context.find_table)(database, table) else {
            if wanted.privileges.has(Privilege::Create) && wanted.columns.is_empty() {
                return Ok(());
            }
            let message = format!("Table '{database}.{table}' doesn't exist");
            return Err(Error::new(ErrorCode::NoSuchTable, message));
        };
        let is_known = |column: &str| columns.iter().any(|known| known.eq_ignore_ascii_case(column));
        match wanted.columns.keys().find(|column| !is_known(column)) {
            Some(column) => {
                let message = format!("Unknown column '{column}' in '{table}'");
                Err(Error::new(ErrorCode::UnknownColumn, message))
            }
            None => Ok(()),
        }
    }
}

/// Changes the partial revokes of an account that gets global privileges. A privilege that the grantor lacks
/// in a database does not come to a grantee that has not had it there.
fn restrict(account: &mut AccountDefinition, granted: Privileges, lacking: &BTreeMap<Box<str>, Privileges>) {
    for (database, restricted) in &mut account.restrictions {
        let of_grantor = lacking.get(database).copied().unwrap_or_default();
        *restricted = restricted.without(granted.without(of_grantor));
    }
    for (database, of_grantor) in lacking {
        let new = (granted & *of_grantor).without(account.global);
        *account.restrictions.entry(database.clone()).or_default() |= new;
    }
    account.restrictions.retain(|_, restricted| !restricted.is_empty());
}

/// The name of a database without the escapes of a pattern.
fn unescaped(pattern: &str) -> String {
    pattern.replace("\\_", "_").replace("\\%", "%")
}

/// The privileges of a list for this kind of object. Errors: 1144, 1221, 3619 and 3929 for those that do not
/// exist there.
fn wanted(list: &PrivilegeList, target: &Target) -> Result<Wanted> {
    let level = match target {
        Target::Server => PrivilegeLevel::Server,
        Target::Database(_) => PrivilegeLevel::Database,
        Target::Table(_) => PrivilegeLevel::Table,
    };
    let mut wanted = Wanted::default();
    let items = match list {
        PrivilegeList::All => {
            wanted.privileges = Privileges::all_of(level);
            if matches!(target, Target::Server) {
                wanted.privileges |= Privileges::DYNAMIC;
            }
            return Ok(wanted);
        }
        PrivilegeList::Unknown(name) if level == PrivilegeLevel::Server => {
            let message = format!("Dynamic privilege '{name}' is not registered with the server.");
            return Err(Error::new(ErrorCode::UnknownPrivilege, message));
        }
        PrivilegeList::Unknown(name) => return Err(illegal_level(name)),
        PrivilegeList::Items(items) => items,
    };
    for item in items {
        let privilege = item.privilege;
        if !item.columns.is_empty() && level != PrivilegeLevel::Table {
            return Err(illegal_grant());
        }
        if privilege.is_dynamic() && level != PrivilegeLevel::Server {
            return Err(illegal_level(privilege.name()));
        }
        if privilege.level() < level {
            return Err(match target {
                Target::Table(_) => illegal_grant(),
                _ => Error::new(ErrorCode::WrongUsage, "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES"),
            });
        }
        if item.columns.is_empty() {
            wanted.privileges |= privilege.into();
            continue;
        }
        for column in &item.columns {
            *wanted.columns.entry(column.as_str().into()).or_default() |= privilege.into();
        }
    }
    Ok(wanted)
}

/// 3619.
fn illegal_level(privilege: &str) -> Box<Error> {
    Error::new(ErrorCode::IllegalPrivilegeLevel, format!("Illegal privilege level specified for {privilege}"))
}

/// 1144.
fn illegal_grant() -> Box<Error> {
    let message = "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
    Error::new(ErrorCode::IllegalGrantForTable, message)
}
