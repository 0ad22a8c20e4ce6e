//! What an account may do with its active roles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::account::AccountDefinition;
use super::control::AccessControl;
use super::name::{AccountName, is_pattern_match};
use super::privilege::{Privilege, PrivilegeLevel, Privileges};
use crate::schema::SYSTEM_DATABASES;

/// The rights of a session: those of its account and of the active roles, with all roles that these have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rights {
    global: Privileges,
    grantable_dynamic: Privileges,
    /// The global privileges that are lacking in a database.
    restricted: BTreeMap<Box<str>, Privileges>,
    /// The databases of each account and role. If several patterns of one grantee match, only the most
    /// specific one counts.
    databases: Vec<BTreeMap<Box<str>, Privileges>>,
    tables: BTreeMap<(Box<str>, Box<str>), TableRights>,
    /// Whether names of databases in grants are patterns. They are none with partial revokes.
    has_patterns: bool,
}

/// The rights on one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableRights {
    /// On the whole table.
    pub table: Privileges,
    /// On single columns, by name in lower case.
    pub columns: BTreeMap<Box<str>, Privileges>,
}

impl TableRights {
    /// The privileges on the table or on any of its columns.
    pub fn any(&self) -> Privileges {
        self.columns.values().fold(self.table, |all, column| all | *column)
    }

    /// The privileges on a column.
    pub fn on_column(&self, column: &str) -> Privileges {
        let own = match self.columns.is_empty() {
            true => Privileges::NONE,
            false => self.columns.get(column.to_lowercase().as_str()).copied().unwrap_or_default(),
        };
        self.table | own
    }
}

impl AccessControl {
    /// The roles of an account, and the roles of these, without the account itself.
    pub fn roles_within<'a>(&'a self, roles: impl IntoIterator<Item = &'a AccountName>) -> BTreeSet<&'a AccountName> {
        let mut found = BTreeSet::new();
        let mut open: VecDeque<&AccountName> = roles.into_iter().collect();
        while let Some(name) = open.pop_front() {
            if let Some(role) = self.account(name)
                && found.insert(name)
            {
                open.extend(role.roles.keys());
            }
        }
        found
    }

    /// The rights of an account with these active roles. An account that does not exist has none.
    pub fn rights_of<'a>(
        &'a self,
        name: &'a AccountName,
        active: impl IntoIterator<Item = &'a AccountName>,
        partial_revokes: bool,
    ) -> Rights {
        let mut grantees = self.roles_within(active);
        grantees.insert(name);
        let accounts: Vec<&AccountDefinition> =
            grantees.into_iter().filter_map(|grantee| self.account(grantee)).map(|account| &**account).collect();
        Rights::of(&accounts, partial_revokes)
    }
}

impl Rights {
    /// The rights without a check: those of `--skip-grant-tables`.
    pub fn unlimited() -> Rights {
        Rights {
            global: Privileges::STATIC | Privileges::DYNAMIC,
            grantable_dynamic: Privileges::DYNAMIC,
            ..Rights::default()
        }
    }

    /// The rights of the node's own sessions, which read its figures.
    pub fn internal() -> Rights {
        let figures = BTreeMap::from([(Box::from(SYSTEM_DATABASES[1]), Privilege::Select.into())]);
        Rights { databases: vec![figures], ..Rights::default() }
    }

    /// The union of the rights of accounts and roles.
    fn of(accounts: &[&AccountDefinition], partial_revokes: bool) -> Rights {
        let mut rights = Rights { has_patterns: !partial_revokes, ..Rights::default() };
        for account in accounts {
            rights.global |= account.global;
            rights.grantable_dynamic |= account.grantable_dynamic;
            if !account.databases.is_empty() {
                rights.databases.push(account.databases.clone());
            }
            for (name, grant) in &account.tables {
                let table = rights.tables.entry(name.clone()).or_default();
                table.table |= grant.privileges;
                for (column, privileges) in &grant.columns {
                    *table.columns.entry(column.to_lowercase().into()).or_default() |= *privileges;
                }
            }
        }
        // A restriction holds only if no other grantee has the privilege without it.
        for database in accounts.iter().flat_map(|account| account.restrictions.keys()) {
            let of_account = |account: &&AccountDefinition| {
                account.global.without(account.restrictions.get(database).copied().unwrap_or_default())
            };
            let left = accounts.iter().map(of_account).fold(Privileges::NONE, |all, one| all | one);
            let lacking = rights.global.without(left);
            if !lacking.is_empty() {
                rights.restricted.insert(database.clone(), lacking);
            }
        }
        rights
    }

    /// The global privileges.
    pub fn global(&self) -> Privileges {
        self.global
    }

    /// The global privileges that are lacking in single databases.
    pub fn restrictions(&self) -> impl Iterator<Item = (&str, Privileges)> {
        self.restricted.iter().map(|(database, lacking)| (&**database, *lacking))
    }

    /// Whether a global privilege is there.
    #[inline]
    pub fn has(&self, privilege: Privilege) -> bool {
        self.global.has(privilege)
    }

    /// Whether a dynamic privilege, or SUPER, which contains most of them, is there.
    pub fn has_dynamic(&self, privilege: Privilege) -> bool {
        self.global.has(privilege) || self.global.has(Privilege::Super)
    }

    /// Whether a global privilege may be passed on.
    pub fn can_grant_global(&self, privilege: Privilege) -> bool {
        match privilege.is_dynamic() {
            true => self.grantable_dynamic.has(privilege),
            false => self.global.has_all(Privileges::of(&[privilege, Privilege::GrantOption])),
        }
    }

    /// The privileges on every object of a database.
    pub fn on_database(&self, database: &str) -> Privileges {
        let lacking = self.restricted.get(database).copied().unwrap_or_default();
        let mut privileges = self.global.without(lacking);
        for granted in &self.databases {
            privileges |= match granted.get(database) {
                Some(exact) => *exact,
                None if self.has_patterns => best_pattern(granted, database),
                None => Privileges::NONE,
            };
        }
        privileges
    }

    /// The privileges on a table and its columns.
    pub fn on_table(&self, database: &str, table: &str) -> TableRights {
        let on_database = self.on_database(database);
        // The key of the map owns its strings. The caller is off the hot path.
        let own = match self.tables.is_empty() {
            true => None,
            false => self.tables.get(&(Box::from(database), Box::from(table))),
        };
        let mut rights = own.cloned().unwrap_or_default();
        rights.table |= on_database;
        rights
    }

    /// Whether some right exists within a database, so that the session may see and select it.
    pub fn can_see_database(&self, database: &str) -> bool {
        let of_objects = Privileges::all_of(PrivilegeLevel::Database) | Privilege::GrantOption.into();
        self.on_database(database).has_any(of_objects) || self.tables.keys().any(|(name, _)| **name == *database)
    }

    /// Whether some right exists on a table or its columns, so that the session may see it.
    pub fn can_see_table(&self, database: &str, table: &str) -> bool {
        let of_tables = Privileges::all_of(PrivilegeLevel::Table) | Privilege::GrantOption.into();
        self.on_table(database, table).any().has_any(of_tables)
    }
}

/// The privileges of the most specific pattern that matches: the one with the longest literal beginning.
fn best_pattern(granted: &BTreeMap<Box<str>, Privileges>, database: &str) -> Privileges {
    let literal = |pattern: &str| {
        let mut letters = 0;
        let mut escaped = false;
        for letter in pattern.chars() {
            if !escaped && matches!(letter, '%' | '_') {
                break;
            }
            escaped = !escaped && letter == '\\';
            letters += usize::from(!escaped);
        }
        letters
    };
    let matching = granted.iter().filter(|(pattern, _)| is_database_match(pattern, database));
    matching.max_by_key(|(pattern, _)| literal(pattern)).map_or(Privileges::NONE, |(_, privileges)| *privileges)
}

/// Names of databases compare with case, other than those of hosts.
fn is_database_match(pattern: &str, database: &str) -> bool {
    let is_literal = !pattern.contains(['%', '_', '\\']);
    if is_literal { pattern == database } else { is_pattern_match(pattern, database) }
}
