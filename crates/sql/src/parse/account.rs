//! The syntax tree of the statements about accounts, roles and privileges.

use std::fmt;

use junctor_model::access::{Lifetime, Privilege, ResourceLimits, TlsRequirement};

use super::statement::ObjectName;

/// An account as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountReference {
    /// CURRENT_USER, USER().
    Current,
    /// `user[@host]`
    Named {
        /// The user.
        user: String,
        /// The host if written; otherwise `%`.
        host: Option<String>,
    },
}

/// A password, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<secret>")
    }
}

/// A statement about accounts.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AccountStatement {
    CreateUser(CreateUser),
    AlterUser(AlterUser),
    DropUser {
        if_exists: bool,
        accounts: Vec<AccountReference>,
    },
    RenameUser(Vec<(AccountReference, AccountReference)>),
    SetPassword(SetPassword),
    CreateRole {
        if_not_exists: bool,
        roles: Vec<AccountReference>,
    },
    DropRole {
        if_exists: bool,
        roles: Vec<AccountReference>,
    },
    Grant(Grant),
    GrantRoles {
        roles: Vec<AccountReference>,
        to: Vec<AccountReference>,
        /// WITH ADMIN OPTION.
        admin: bool,
    },
    Revoke(Revoke),
    /// REVOKE ALL PRIVILEGES, GRANT OPTION.
    RevokeAll {
        from: Vec<AccountReference>,
        if_exists: bool,
    },
    RevokeRoles {
        roles: Vec<AccountReference>,
        from: Vec<AccountReference>,
        if_exists: bool,
    },
    SetRole(RoleChoice),
    SetDefaultRole {
        roles: RoleChoice,
        to: Vec<AccountReference>,
    },
    /// FLUSH PRIVILEGES.
    FlushPrivileges,
    /// FLUSH USER_RESOURCES.
    FlushUserResources,
}

/// The roles of SET ROLE and SET DEFAULT ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RoleChoice {
    None,
    All,
    /// ALL EXCEPT.
    AllExcept(Vec<AccountReference>),
    /// DEFAULT, of SET ROLE only.
    Default,
    Named(Vec<AccountReference>),
}

/// `IDENTIFIED ...`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identification {
    /// WITH: the name of the method.
    pub method: Option<String>,
    /// The password or its stored form.
    pub password: Option<NewPassword>,
    /// REPLACE: the current password.
    pub replace: Option<Secret>,
    /// RETAIN CURRENT PASSWORD.
    pub retain: bool,
    /// DISCARD OLD PASSWORD.
    pub discard: bool,
}

/// A new password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewPassword {
    /// BY.
    Plain(Secret),
    /// BY RANDOM PASSWORD.
    Random,
    /// AS: the stored form.
    Stored(Secret),
}

/// An account of CREATE USER or ALTER USER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSpecification {
    /// The account.
    pub account: AccountReference,
    /// IDENTIFIED; all absent without it.
    pub identification: Identification,
}

/// The options of CREATE USER and ALTER USER; `None` for those that are not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountOptions {
    /// REQUIRE.
    pub tls: Option<TlsRequirement>,
    /// WITH: limits by position in `ResourceLimits`.
    pub limits: Vec<(ResourceLimit, u32)>,
    /// PASSWORD EXPIRE without more: the password is expired.
    pub expire_now: bool,
    /// PASSWORD EXPIRE DEFAULT, NEVER or INTERVAL.
    pub lifetime: Option<Lifetime>,
    /// PASSWORD HISTORY; the inner `None` is DEFAULT.
    pub history: Option<Option<u16>>,
    /// PASSWORD REUSE INTERVAL.
    pub reuse_days: Option<Option<u16>>,
    /// PASSWORD REQUIRE CURRENT: DEFAULT, true, or OPTIONAL.
    pub require_current: Option<Option<bool>>,
    /// FAILED_LOGIN_ATTEMPTS.
    pub failed_logins_max: Option<u16>,
    /// PASSWORD_LOCK_TIME in days; -1 for UNBOUNDED.
    pub lock_days: Option<i32>,
    /// ACCOUNT LOCK or UNLOCK.
    pub lock: Option<bool>,
    /// COMMENT.
    pub comment: Option<String>,
    /// ATTRIBUTE.
    pub attribute: Option<String>,
}

/// A limit of WITH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ResourceLimit {
    Queries,
    Updates,
    Connections,
    UserConnections,
}

impl ResourceLimit {
    /// Sets the limit.
    pub fn set(self, limits: &mut ResourceLimits, value: u32) {
        *match self {
            ResourceLimit::Queries => &mut limits.queries_per_hour,
            ResourceLimit::Updates => &mut limits.updates_per_hour,
            ResourceLimit::Connections => &mut limits.connections_per_hour,
            ResourceLimit::UserConnections => &mut limits.user_connections,
        } = value;
    }
}

/// CREATE USER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateUser {
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The accounts.
    pub users: Vec<UserSpecification>,
    /// DEFAULT ROLE.
    pub default_roles: Vec<AccountReference>,
    /// The options of all accounts.
    pub options: AccountOptions,
}

/// ALTER USER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterUser {
    /// IF EXISTS.
    pub if_exists: bool,
    /// The accounts.
    pub users: Vec<UserSpecification>,
    /// DEFAULT ROLE.
    pub default_roles: Option<RoleChoice>,
    /// The options of all accounts.
    pub options: AccountOptions,
}

/// SET PASSWORD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetPassword {
    /// The account.
    pub account: AccountReference,
    /// The new password; `None` for TO RANDOM.
    pub password: Option<Secret>,
    /// REPLACE.
    pub replace: Option<Secret>,
    /// RETAIN CURRENT PASSWORD.
    pub retain: bool,
}

/// A member of the list of GRANT or REVOKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivilegeItem {
    /// The privilege.
    pub privilege: Privilege,
    /// The columns; empty for the whole object.
    pub columns: Vec<String>,
}

/// The privileges of GRANT or REVOKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivilegeList {
    /// ALL [PRIVILEGES].
    All,
    /// A list with a dynamic privilege that the server does not have.
    Unknown(String),
    /// USAGE and single privileges.
    Items(Vec<PrivilegeItem>),
}

/// The objects of GRANT or REVOKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantObject {
    /// `*.*`
    Server,
    /// `database.*`, or `*`: the session's database.
    Database(Option<String>),
    /// A table.
    Table(ObjectName),
}

/// GRANT of privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The privileges.
    pub privileges: PrivilegeList,
    /// The objects.
    pub on: GrantObject,
    /// The accounts.
    pub to: Vec<AccountReference>,
    /// WITH GRANT OPTION.
    pub grant_option: bool,
}

/// REVOKE of privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoke {
    /// IF EXISTS.
    pub if_exists: bool,
    /// The privileges.
    pub privileges: PrivilegeList,
    /// The objects.
    pub on: GrantObject,
    /// The accounts.
    pub from: Vec<AccountReference>,
    /// IGNORE UNKNOWN USER.
    pub ignore_unknown: bool,
}
