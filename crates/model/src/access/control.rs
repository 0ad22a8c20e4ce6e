//! All accounts at one moment, and the account that a client gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::account::{AccountDefinition, Authentication, AuthenticationMethod};
use super::name::{AccountName, ClientHost};

/// Accounts and roles of one server or cluster.
pub const ACCOUNTS_MAX: usize = 16_384;

/// All accounts and roles. A published one never changes; a change makes a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessControl {
    /// Incremented by every change. 0 as long as the accounts are those of a new server.
    pub version: u64,
    accounts: BTreeMap<AccountName, Arc<AccountDefinition>>,
}

/// The accounts of a new server: `root` without a password, from this machine only.
impl Default for AccessControl {
    fn default() -> AccessControl {
        let without_password = Authentication::without_password(AuthenticationMethod::CachingSha2Password);
        let root = AccountDefinition::with_all_privileges(without_password);
        let accounts = BTreeMap::from([(AccountName::new("root", "localhost"), Arc::new(root))]);
        AccessControl { version: 0, accounts }
    }
}

/// New, changed and dropped accounts, in the form in which the log keeps them and nodes send them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccessChange {
    /// `AccessControl::version`: of the accounts that were changed in a request, and after the change in the
    /// log.
    pub version: u64,
    /// New and changed accounts.
    #[serde(with = "shared", skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<(AccountName, Arc<AccountDefinition>)>,
    /// Accounts that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<AccountName>,
}

impl AccessChange {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.dropped.is_empty()
    }

    /// The change from one state to a later one. All accounts are in it if the first one is that of a new
    /// server, which is not stored.
    pub fn between(before: &AccessControl, after: &AccessControl) -> AccessChange {
        if before.version == after.version {
            return AccessChange::default();
        }
        let is_new = |(name, account): &(&AccountName, &Arc<AccountDefinition>)| {
            let old = before.accounts.get(*name).filter(|_| before.version != 0);
            old.is_none_or(|old| !Arc::ptr_eq(old, account) && old != *account)
        };
        let dropped = before.accounts.keys().filter(|name| !after.accounts.contains_key(name));
        AccessChange {
            version: after.version,
            changed: after.accounts.iter().filter(is_new).map(|(name, it)| (name.clone(), Arc::clone(it))).collect(),
            dropped: if before.version == 0 { Vec::new() } else { dropped.cloned().collect() },
        }
    }
}

impl AccessControl {
    /// The accounts of a change that has all of them.
    pub fn of(change: AccessChange) -> AccessControl {
        AccessControl { version: change.version, accounts: change.changed.into_iter().collect() }
    }

    /// All accounts, as a change of nothing.
    pub fn to_change(&self) -> AccessChange {
        let all = self.accounts.iter().map(|(name, account)| (name.clone(), Arc::clone(account)));
        AccessChange { version: self.version, changed: all.collect(), dropped: Vec::new() }
    }

    /// Makes a change of the log.
    pub fn apply(&mut self, change: AccessChange) {
        if change.version == 0 {
            return;
        }
        if self.version == 0 {
            self.accounts.clear();
        }
        self.version = change.version;
        change.dropped.iter().for_each(|name| _ = self.accounts.remove(name));
        self.accounts.extend(change.changed);
    }

    /// The state after a request of a session; `None` if the accounts have changed since the session has
    /// looked at them.
    pub fn changed_by(&self, change: AccessChange) -> Option<AccessControl> {
        if change.version != self.version {
            return None;
        }
        let mut accounts = self.accounts.clone();
        change.dropped.iter().for_each(|name| _ = accounts.remove(name));
        accounts.extend(change.changed);
        Some(AccessControl { version: self.version + 1, accounts })
    }

    /// Adds an account of the node's configuration, unless it exists.
    pub fn add_configured(&mut self, name: AccountName, account: AccountDefinition) {
        self.accounts.entry(name).or_insert_with(|| Arc::new(account));
    }

    /// Adds or replaces an account of a new server.
    pub fn put(&mut self, name: AccountName, account: AccountDefinition) {
        self.accounts.insert(name, Arc::new(account));
    }

    /// The account with exactly this name.
    pub fn account(&self, name: &AccountName) -> Option<&Arc<AccountDefinition>> {
        self.accounts.get(name)
    }

    /// All accounts by name.
    pub fn accounts(&self) -> impl Iterator<Item = (&AccountName, &Arc<AccountDefinition>)> {
        self.accounts.iter()
    }

    /// Number of accounts.
    pub fn len(&self) -> usize {
        self.accounts.len()
    }

    /// Whether there is no account.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// The account of a client: of those that match its host and its user, or match every user, the one with
    /// the most specific host.
    pub fn account_of_client(&self, user: &str, client: ClientHost) -> Option<(&AccountName, &Arc<AccountDefinition>)> {
        let of_user = |name: &str| {
            let first = AccountName { user: name.into(), host: "".into() };
            let name = first.user.clone();
            self.accounts.range(first..).take_while(move |(it, _)| it.user == name)
        };
        let anonymous = of_user("").filter(|_| !user.is_empty());
        let candidates = of_user(user).chain(anonymous).filter(|(name, _)| name.matches_host(client));
        candidates.min_by_key(|(name, _)| name.specificity())
    }
}

/// Shared definitions are stored like owned ones.
mod shared {
    use super::*;

    type Accounts = Vec<(AccountName, Arc<AccountDefinition>)>;

    pub fn serialize<S: Serializer>(accounts: &Accounts, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(accounts.iter().map(|(name, account)| (name, &**account)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Accounts, D::Error> {
        let accounts = Vec::<(AccountName, AccountDefinition)>::deserialize(deserializer)?;
        Ok(accounts.into_iter().map(|(name, account)| (name, Arc::new(account))).collect())
    }
}
