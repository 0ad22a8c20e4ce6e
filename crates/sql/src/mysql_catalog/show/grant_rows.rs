//! SHOW GRANTS, SHOW CREATE USER, SHOW PRIVILEGES, and generated passwords.

use std::collections::BTreeSet;

use junctor_model::access::privilege::PrivilegeLevel;
use junctor_model::access::{
    AccountDefinition, AccountName, Lifetime, Privilege, Privileges, TableGrant, TlsRequirement,
};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::Value;

use super::fact::ShowContext;
use super::layout::{VirtualTable, bytes, text};
use crate::parse::account::AccountReference;

/// The passwords that CREATE USER, ALTER USER or SET PASSWORD have generated.
pub fn generated_passwords(generated: &[(AccountName, String)]) -> VirtualTable {
    let fields =
        [text("user", 32), text("host", 255), text("generated password", 256), super::layout::int("auth_factor")];
    let row = |(name, password): &(AccountName, String)| {
        vec![bytes(&name.user), bytes(&name.host), bytes(password), Value::Int(1)]
    };
    VirtualTable::of_show(&fields, generated.iter().map(row).collect())
}

pub(super) fn show_privileges() -> VirtualTable {
    let fields = [text("Privilege", 32), text("Context", 40), text("Comment", 80)];
    let shown = |privilege: &Privilege| {
        let name = privilege.name();
        let name = match privilege.is_dynamic() {
            true => name.to_owned(),
            // `Create temporary tables`.
            false => format!("{}{}", &name[..1], name[1..].to_lowercase()),
        };
        let (context, comment) = privilege.description();
        [name.as_str(), context, comment].map(bytes).to_vec()
    };
    let mut rows: Vec<Vec<Value>> = Privilege::ALL.iter().map(shown).collect();
    rows.push(["Usage", "Server Admin", "Log in, and nothing else"].map(bytes).to_vec());
    VirtualTable::of_show(&fields, rows)
}

/// The account that a statement shows. Errors: 1044 if the session may not see other accounts, 1141 if it
/// does not exist.
fn shown_account(account: &AccountReference, facts: &ShowContext<'_>) -> Result<AccountName> {
    let own = facts.session.account;
    let name = match account {
        AccountReference::Current => own.clone(),
        AccountReference::Named { user, host } => AccountName::new(user, host.as_deref().unwrap_or("%")),
    };
    if name != *own && !facts.rights.on_database("mysql").has(Privilege::Select) {
        let message = format!("Access denied for user {own} to database 'mysql'");
        return Err(Error::new(ErrorCode::DatabaseAccessDenied, message));
    }
    Ok(name)
}

fn no_such_grant(name: &AccountName) -> Box<Error> {
    let (user, host) = (&name.user, &name.host);
    let message = format!("There is no such grant defined for user '{user}' on host '{host}'");
    Error::new(ErrorCode::NonexistingGrant, message)
}

/// SHOW GRANTS [FOR account [USING roles]].
pub(super) fn show_grants(
    account: &AccountReference,
    using: &[AccountReference],
    facts: &ShowContext<'_>,
) -> Result<VirtualTable> {
    let is_own = *account == AccountReference::Current;
    let name = shown_account(account, facts)?;
    let access = &facts.dictionary.access;
    let definition = access.account(&name).ok_or_else(|| no_such_grant(&name))?;
    let mut merged = AccountDefinition::clone(definition);
    let used: BTreeSet<AccountName> = match is_own {
        true => facts.session.roles.clone(),
        false => using
            .iter()
            .map(|role| match role {
                AccountReference::Current => facts.session.account.clone(),
                AccountReference::Named { user, host } => AccountName::new(user, host.as_deref().unwrap_or("%")),
            })
            .collect(),
    };
    let is_granted = |role: &&AccountName| !definition.roles.contains_key(*role);
    if let Some(role) = used.iter().find(is_granted).filter(|_| !is_own) {
        let message = format!("`{}`@`{}` is not granted to `{}`@`{}`", role.user, role.host, name.user, name.host);
        return Err(Error::new(ErrorCode::RoleNotGranted, message));
    }
    for role in access.roles_within(&used) {
        if let Some(role) = access.account(role) {
            merge(&mut merged, role);
        }
    }
    let lines = grant_lines(&name, &merged);
    let mut table = VirtualTable::of_show(&[text("Grants", 1024)], Vec::new());
    table.columns[0].name = format!("Grants for {}@{}", name.user, name.host).into();
    table.rows = lines.into_iter().map(|line| vec![bytes(line)]).collect();
    Ok(table)
}

/// Adds the privileges of a role.
fn merge(account: &mut AccountDefinition, role: &AccountDefinition) {
    for (database, restricted) in &mut account.restrictions {
        let of_role = role.global.without(role.restrictions.get(database).copied().unwrap_or_default());
        *restricted = restricted.without(of_role);
    }
    account.restrictions.retain(|_, restricted| !restricted.is_empty());
    account.global |= role.global;
    account.grantable_dynamic |= role.grantable_dynamic;
    for (database, privileges) in &role.databases {
        *account.databases.entry(database.clone()).or_default() |= *privileges;
    }
    for (table, grant) in &role.tables {
        let own = account.tables.entry(table.clone()).or_default();
        own.privileges |= grant.privileges;
        for (column, privileges) in &grant.columns {
            *own.columns.entry(column.clone()).or_default() |= *privileges;
        }
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn quoted_account(name: &AccountName) -> String {
    format!("{}@{}", quoted(&name.user), quoted(&name.host))
}

/// The GRANT statements that make the rights of an account.
fn grant_lines(name: &AccountName, account: &AccountDefinition) -> Vec<String> {
    let to = quoted_account(name);
    let option = |granted: Privileges| if granted.has(Privilege::GrantOption) { " WITH GRANT OPTION" } else { "" };
    let without_option = |granted: Privileges| granted.without(Privilege::GrantOption.into());
    let list = |granted: Privileges, level: PrivilegeLevel| {
        let granted = without_option(granted);
        match level {
            _ if granted.is_empty() => "USAGE".to_owned(),
            PrivilegeLevel::Server => granted.names(", "),
            level if granted == Privileges::all_of(level) => "ALL PRIVILEGES".to_owned(),
            _ => granted.names(", "),
        }
    };
    let fixed = account.global & Privileges::STATIC;
    let mut lines = vec![format!("GRANT {} ON *.* TO {to}{}", list(fixed, PrivilegeLevel::Server), option(fixed))];
    let dynamic = account.global & Privileges::DYNAMIC;
    let passed_on = dynamic & account.grantable_dynamic;
    for (set, option) in [(dynamic.without(passed_on), ""), (passed_on, " WITH GRANT OPTION")] {
        if !set.is_empty() {
            lines.push(format!("GRANT {} ON *.* TO {to}{option}", set.names(",")));
        }
    }
    for (database, granted) in &account.databases {
        let privileges = list(*granted, PrivilegeLevel::Database);
        lines.push(format!("GRANT {privileges} ON {}.* TO {to}{}", quoted(database), option(*granted)));
    }
    for (database, restricted) in &account.restrictions {
        lines.push(format!("REVOKE {} ON {}.* FROM {to}", restricted.names(", "), quoted(database)));
    }
    for ((database, table), grant) in &account.tables {
        let on = format!("{}.{}", quoted(database), quoted(table));
        lines.push(format!("GRANT {} ON {on} TO {to}{}", table_list(grant), option(grant.privileges)));
    }
    for admin in [false, true] {
        let roles = account.roles.iter().filter(|(_, it)| **it == admin).map(|(role, _)| quoted_account(role));
        let roles: Vec<String> = roles.collect();
        if !roles.is_empty() {
            let option = if admin { " WITH ADMIN OPTION" } else { "" };
            lines.push(format!("GRANT {} TO {to}{option}", roles.join(",")));
        }
    }
    lines
}

/// The privileges on a table, then those on its columns.
fn table_list(grant: &TableGrant) -> String {
    let whole = grant.privileges.without(Privilege::GrantOption.into());
    if whole == Privileges::all_of(PrivilegeLevel::Table) {
        return "ALL PRIVILEGES".into();
    }
    let of_columns = grant.columns.values().fold(Privileges::NONE, |all, one| all | *one);
    let item = |privilege: Privilege| {
        let columns = grant.columns.iter().filter(|(_, own)| own.has(privilege) && !whole.has(privilege));
        let columns: Vec<String> = columns.map(|(column, _)| quoted(column)).collect();
        match columns.is_empty() {
            true => privilege.name().to_owned(),
            false => format!("{} ({})", privilege.name(), columns.join(", ")),
        }
    };
    let items: Vec<String> = (whole | of_columns).iter().map(item).collect();
    if items.is_empty() { "USAGE".into() } else { items.join(", ") }
}

/// SHOW CREATE USER.
pub(super) fn show_create_user(account: &AccountReference, facts: &ShowContext<'_>) -> Result<VirtualTable> {
    let name = shown_account(account, facts)?;
    let definition = facts.dictionary.access.account(&name);
    let Some(definition) = definition else {
        let message = format!("Operation SHOW CREATE USER failed for {name}");
        return Err(Error::new(ErrorCode::CannotUser, message));
    };
    // The stored form of a password is as good as a password for whoever wants to guess it.
    let shows_stored = facts.rights.on_database("mysql").has(Privilege::Select);
    let as_hexadecimal = facts.session.variables.flag("print_identified_with_as_hex");
    let text_of = create_user_text(&name, definition, (shows_stored, as_hexadecimal));
    let mut table = VirtualTable::of_show(&[text("CREATE USER", 4096)], vec![vec![bytes(text_of)]]);
    table.columns[0].name = format!("CREATE USER for {}@{}", name.user, name.host).into();
    Ok(table)
}

fn create_user_text(
    name: &AccountName,
    account: &AccountDefinition,
    (shows_stored, as_hexadecimal): (bool, bool),
) -> String {
    let authentication = &account.authentication;
    let mut out = format!("CREATE USER {} IDENTIFIED WITH '{}'", quoted_account(name), authentication.method.name());
    let is_printable = authentication.stored.iter().all(|byte| (32..127).contains(byte) && *byte != b'\'');
    if !authentication.stored.is_empty() && !shows_stored {
        out.push_str(" AS '<secret>'");
    } else if !authentication.stored.is_empty() && (as_hexadecimal || !is_printable) {
        let digits: String = authentication.stored.iter().map(|byte| format!("{byte:02X}")).collect();
        out.push_str(&format!(" AS 0x{digits}"));
    } else if !authentication.stored.is_empty() {
        out.push_str(&format!(" AS '{}'", String::from_utf8_lossy(&authentication.stored)));
    }
    if !account.default_roles.is_empty() {
        let roles: Vec<String> = account.default_roles.iter().map(quoted_account).collect();
        out.push_str(&format!(" DEFAULT ROLE {}", roles.join(",")));
    }
    out.push_str(" REQUIRE ");
    match &account.tls {
        TlsRequirement::None => out.push_str("NONE"),
        TlsRequirement::Any => out.push_str("SSL"),
        TlsRequirement::X509 => out.push_str("X509"),
        TlsRequirement::Specified { cipher, issuer, subject } => {
            let parts = [("SUBJECT", subject), ("ISSUER", issuer), ("CIPHER", cipher)];
            let parts = parts.iter().filter_map(|(word, value)| Some(format!("{word} '{}'", value.as_deref()?)));
            out.push_str(&parts.collect::<Vec<_>>().join(" "));
        }
    }
    let limits = &account.limits;
    let limits = [
        ("MAX_QUERIES_PER_HOUR", limits.queries_per_hour),
        ("MAX_UPDATES_PER_HOUR", limits.updates_per_hour),
        ("MAX_CONNECTIONS_PER_HOUR", limits.connections_per_hour),
        ("MAX_USER_CONNECTIONS", limits.user_connections),
    ];
    let limits: Vec<String> =
        limits.iter().filter(|(_, limit)| *limit != 0).map(|(word, limit)| format!("{word} {limit}")).collect();
    if !limits.is_empty() {
        out.push_str(&format!(" WITH {}", limits.join(" ")));
    }
    out.push_str(&policy_text(account));
    out
}

fn policy_text(account: &AccountDefinition) -> String {
    let policy = &account.policy;
    let mut out = String::from(" PASSWORD EXPIRE");
    out.push_str(&match policy.lifetime {
        _ if account.is_expired => String::new(),
        Lifetime::Default => " DEFAULT".into(),
        Lifetime::Never => " NEVER".into(),
        Lifetime::Days(days) => format!(" INTERVAL {days} DAY"),
    });
    out.push_str(if account.is_locked { " ACCOUNT LOCK" } else { " ACCOUNT UNLOCK" });
    let number = |value: Option<u16>, unit: &str| value.map_or("DEFAULT".into(), |value| format!("{value}{unit}"));
    out.push_str(&format!(" PASSWORD HISTORY {}", number(policy.history, "")));
    out.push_str(&format!(" PASSWORD REUSE INTERVAL {}", number(policy.reuse_days, " DAY")));
    out.push_str(match policy.require_current {
        None => " PASSWORD REQUIRE CURRENT DEFAULT",
        Some(true) => " PASSWORD REQUIRE CURRENT",
        Some(false) => " PASSWORD REQUIRE CURRENT OPTIONAL",
    });
    if policy.failed_logins_max != 0 || policy.lock_days != 0 {
        out.push_str(&format!(" FAILED_LOGIN_ATTEMPTS {}", policy.failed_logins_max));
        out.push_str(&match policy.lock_days {
            -1 => " PASSWORD_LOCK_TIME UNBOUNDED".into(),
            days => format!(" PASSWORD_LOCK_TIME {days}"),
        });
    }
    if let Some(attributes) = &account.attributes {
        out.push_str(&format!(" ATTRIBUTE '{}'", attributes.replace('\\', "\\\\").replace('\'', "''")));
    }
    out
}
