//! The tables of `information_schema` about privileges and roles. A session sees its own account, and all of
//! them with SELECT on the database `mysql`.

use std::collections::BTreeSet;

use junctor_model::access::{AccountDefinition, AccountName, Privilege, Privileges, TableGrant};
use junctor_model::value::Value;

use super::fact::ShowContext;
use super::layout::{bytes, yes_no};

/// The only catalog, as in MySQL.
const CATALOG: &str = "def";

fn shown<'a>(facts: &ShowContext<'a>) -> impl Iterator<Item = (&'a AccountName, &'a AccountDefinition)> {
    let sees_all = facts.rights.on_database("mysql").has(Privilege::Select);
    let own = facts.session.account;
    let accounts = facts.dictionary.access.accounts().map(|(name, account)| (name, &**account));
    accounts.filter(move |(name, _)| sees_all || *name == own)
}

/// A row for each privilege without GRANT OPTION, or one of USAGE.
fn items(granted: Privileges) -> Vec<&'static str> {
    let granted = granted.without(Privilege::GrantOption.into());
    let names: Vec<&str> = granted.iter().map(Privilege::name).collect();
    if names.is_empty() { vec!["USAGE"] } else { names }
}

pub(super) fn user_privileges(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (name, account) in shown(facts) {
        let has_option = account.global.has(Privilege::GrantOption);
        for item in items(account.global) {
            let is_dynamic = Privilege::from_name(item).is_some_and(Privilege::is_dynamic);
            let grantable = match Privilege::from_name(item).filter(|_| is_dynamic) {
                Some(privilege) => account.grantable_dynamic.has(privilege),
                None => has_option,
            };
            rows.push(vec![bytes(name.to_string()), bytes(CATALOG), bytes(item), yes_no(grantable)]);
        }
    }
    rows
}

pub(super) fn schema_privileges(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (name, account) in shown(facts) {
        for (database, granted) in &account.databases {
            let grantable = yes_no(granted.has(Privilege::GrantOption));
            for item in items(*granted) {
                let mut row: Vec<Value> =
                    [&*name.to_string(), CATALOG, database, item].into_iter().map(bytes).collect();
                row.push(grantable.clone());
                rows.push(row);
            }
        }
    }
    rows
}

pub(super) fn table_privileges(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (name, account) in shown(facts) {
        for ((database, table), grant) in &account.tables {
            if grant.privileges.is_empty() {
                continue;
            }
            let grantable = yes_no(grant.privileges.has(Privilege::GrantOption));
            for item in items(grant.privileges) {
                let names = [&*name.to_string(), CATALOG, database, table, item];
                let mut row: Vec<Value> = names.into_iter().map(bytes).collect();
                row.push(grantable.clone());
                rows.push(row);
            }
        }
    }
    rows
}

pub(super) fn column_privileges(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (name, account) in shown(facts) {
        for ((database, table), grant) in &account.tables {
            let grantable = yes_no(grant.privileges.has(Privilege::GrantOption));
            for (column, granted) in &grant.columns {
                for privilege in granted.iter() {
                    let names = [&*name.to_string(), CATALOG, database, table, column, privilege.name()];
                    let mut row: Vec<Value> = names.into_iter().map(bytes).collect();
                    row.push(grantable.clone());
                    rows.push(row);
                }
            }
        }
    }
    rows
}

pub(super) fn user_attributes(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |(name, account): (&AccountName, &AccountDefinition)| {
        vec![bytes(&name.user), bytes(&name.host), account.attributes.as_ref().map_or(Value::Null, bytes)]
    };
    shown(facts).map(row).collect()
}

/// The roles that the session has, directly or through others, with the grantee.
fn edges<'a>(facts: &ShowContext<'a>) -> Vec<(&'a AccountName, &'a AccountName, bool)> {
    let access = &facts.dictionary.access;
    let own = facts.session.account;
    let Some((own, account)) = access.accounts().find(|(name, _)| *name == own) else { return Vec::new() };
    let mut grantees: BTreeSet<&AccountName> = access.roles_within(account.roles.keys());
    grantees.insert(own);
    let mut edges = Vec::new();
    for grantee in grantees {
        let roles = access.account(grantee).into_iter().flat_map(|account| &account.roles);
        edges.extend(roles.map(|(role, admin)| (grantee, role, *admin)));
    }
    edges
}

pub(super) fn applicable_roles(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let own = facts.session.account;
    let defaults =
        facts.dictionary.access.account(own).map(|account| account.default_roles.clone()).unwrap_or_default();
    let row = |(grantee, role, admin): (&AccountName, &AccountName, bool)| {
        vec![
            bytes(&own.user),
            bytes(&own.host),
            bytes(&grantee.user),
            bytes(&grantee.host),
            bytes(&role.user),
            bytes(&role.host),
            yes_no(admin),
            yes_no(defaults.contains(role)),
            yes_no(false),
        ]
    };
    edges(facts).into_iter().map(row).collect()
}

pub(super) fn administrable_roles(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = applicable_roles(facts);
    rows.retain(|row| row[6] == yes_no(true));
    rows
}

/// The active roles of the session, and those within them, with their accounts.
fn active_roles<'a>(facts: &ShowContext<'a>) -> Vec<(&'a AccountName, &'a AccountDefinition)> {
    let access = &facts.dictionary.access;
    let active = access.roles_within(facts.session.roles);
    access.accounts().filter(|(name, _)| active.contains(name)).map(|(name, account)| (name, &**account)).collect()
}

/// `user@host` of a grantor as two values; NULL if it is not known.
fn grantor_values(grantor: &str) -> [Value; 2] {
    match grantor.rsplit_once('@') {
        Some((user, host)) => [bytes(user), bytes(host)],
        None => [Value::Null, Value::Null],
    }
}

/// The privileges of a list as MySQL's SET columns have them: `Select,Create View`.
fn set_of(granted: Privileges) -> Value {
    let granted = granted.without(Privilege::GrantOption.into());
    let word = |word: &str| format!("{}{}", &word[..1], word[1..].to_lowercase());
    let name = |privilege: Privilege| privilege.name().split(' ').map(word).collect::<Vec<_>>().join(" ");
    bytes(granted.iter().map(name).collect::<Vec<_>>().join(","))
}

/// A row of ROLE_TABLE_GRANTS or ROLE_COLUMN_GRANTS: `names` are table and column.
fn role_grant(role: &AccountName, grant: &TableGrant, names: &[&str], granted: Privileges) -> Vec<Value> {
    let mut row = grantor_values(&grant.grantor).to_vec();
    row.extend([&role.user, &role.host].map(bytes));
    row.push(bytes(CATALOG));
    row.extend(names.iter().map(bytes));
    row.extend([set_of(granted), yes_no(grant.privileges.has(Privilege::GrantOption))]);
    row
}

pub(super) fn role_table_grants(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let rows = active_roles(facts).into_iter().flat_map(|(role, account)| {
        let grants = account.tables.iter().filter(|(_, grant)| !grant.privileges.is_empty());
        grants.map(|((database, table), grant)| role_grant(role, grant, &[database, table], grant.privileges))
    });
    rows.collect()
}

pub(super) fn role_column_grants(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (role, account) in active_roles(facts) {
        for ((database, table), grant) in &account.tables {
            let columns = grant.columns.iter();
            rows.extend(columns.map(|(column, granted)| role_grant(role, grant, &[database, table, column], *granted)));
        }
    }
    rows
}

pub(super) fn enabled_roles(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let own = facts.session.account;
    let defaults =
        facts.dictionary.access.account(own).map(|account| account.default_roles.clone()).unwrap_or_default();
    let active = facts.dictionary.access.roles_within(facts.session.roles);
    let row =
        |role: &AccountName| vec![bytes(&role.user), bytes(&role.host), yes_no(defaults.contains(role)), yes_no(false)];
    active.into_iter().map(row).collect()
}
