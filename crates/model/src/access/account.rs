//! The definition of an account or role, in the form in which the dictionary and the log keep it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::name::AccountName;
use super::privilege::{Privilege, Privileges};
use crate::stored_schema::is_false;

/// An account or role. A role is an account that nobody can log in to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccountDefinition {
    /// How the account proves its identity.
    pub authentication: Authentication,
    /// RETAIN CURRENT PASSWORD: the password before, which is still valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<Authentication>,
    /// ACCOUNT LOCK.
    #[serde(skip_serializing_if = "is_false")]
    pub is_locked: bool,
    /// Whether CREATE ROLE made it.
    #[serde(skip_serializing_if = "is_false")]
    pub is_role: bool,
    /// PASSWORD EXPIRE: the next session must change the password.
    #[serde(skip_serializing_if = "is_false")]
    pub is_expired: bool,
    /// Time of the last change of the password, in microseconds since 1970.
    pub password_changed_us: u64,
    /// The rules for passwords.
    pub policy: PasswordPolicy,
    /// REQUIRE.
    pub tls: TlsRequirement,
    /// The limits of WITH.
    pub limits: ResourceLimits,
    /// The JSON object of ATTRIBUTE and COMMENT; `None` without either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Box<str>>,
    /// Former passwords with the time of their change, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<(u64, Authentication)>,
    /// The privileges on all objects, and the dynamic ones.
    pub global: Privileges,
    /// The dynamic privileges that the account may pass on.
    pub grantable_dynamic: Privileges,
    /// The privileges that partial revokes take away, by database.
    #[serde(with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub restrictions: BTreeMap<Box<str>, Privileges>,
    /// The privileges on databases, by the name or pattern in GRANT.
    #[serde(with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub databases: BTreeMap<Box<str>, Privileges>,
    /// The privileges on tables, by database and table.
    #[serde(with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub tables: BTreeMap<(Box<str>, Box<str>), TableGrant>,
    /// The roles that are granted to the account, with ADMIN OPTION or not.
    #[serde(with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<AccountName, bool>,
    /// The roles that a login activates.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub default_roles: BTreeSet<AccountName>,
}

/// The privileges on one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableGrant {
    /// The privileges on the whole table.
    pub privileges: Privileges,
    /// The privileges on single columns.
    #[serde(default, with = "pairs", skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<Box<str>, Privileges>,
    /// The account that granted them first.
    #[serde(default)]
    pub grantor: Box<str>,
    /// Time of the last change, in microseconds since 1970.
    #[serde(default)]
    pub changed_us: u64,
}

impl TableGrant {
    /// The privileges on the table or on any of its columns.
    pub fn any(&self) -> Privileges {
        self.columns.values().fold(self.privileges, |all, column| all | *column)
    }
}

/// How an account proves its identity.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Authentication {
    /// The method.
    pub method: AuthenticationMethod,
    /// The stored form of the password, or the operating system's user of `auth_socket`; empty without one.
    #[serde(default, with = "hexadecimal", skip_serializing_if = "Vec::is_empty")]
    pub stored: Vec<u8>,
}

impl Authentication {
    /// Without a password.
    pub fn without_password(method: AuthenticationMethod) -> Authentication {
        Authentication { method, stored: Vec::new() }
    }
}

/// The stored form allows its owner to try passwords, so it is never printed.
impl fmt::Debug for Authentication {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}(..)", self.method)
    }
}

/// The authentication methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthenticationMethod {
    /// `caching_sha2_password`.
    #[default]
    CachingSha2Password,
    /// `mysql_native_password`.
    MysqlNativePassword,
    /// `auth_socket`: the user of the operating system at the other end of the Unix socket.
    AuthSocket,
}

impl AuthenticationMethod {
    /// The methods.
    pub const ALL: [AuthenticationMethod; 3] = [
        AuthenticationMethod::CachingSha2Password,
        AuthenticationMethod::MysqlNativePassword,
        AuthenticationMethod::AuthSocket,
    ];

    /// The name of the plugin.
    pub fn name(self) -> &'static str {
        match self {
            AuthenticationMethod::CachingSha2Password => "caching_sha2_password",
            AuthenticationMethod::MysqlNativePassword => "mysql_native_password",
            AuthenticationMethod::AuthSocket => "auth_socket",
        }
    }

    /// The method with this name, in any case.
    pub fn from_name(name: &str) -> Option<AuthenticationMethod> {
        AuthenticationMethod::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(name))
    }
}

/// PASSWORD EXPIRE: how long a password lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// `default_password_lifetime`.
    #[default]
    Default,
    /// For ever.
    Never,
    /// This number of days.
    Days(u16),
}

/// The rules for the passwords of an account. `None` stands for the server's variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PasswordPolicy {
    /// PASSWORD EXPIRE.
    pub lifetime: Lifetime,
    /// PASSWORD HISTORY: number of former passwords that may not be used again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<u16>,
    /// PASSWORD REUSE INTERVAL in days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse_days: Option<u16>,
    /// PASSWORD REQUIRE CURRENT: true, or OPTIONAL: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_current: Option<bool>,
    /// FAILED_LOGIN_ATTEMPTS; 0 for any number.
    pub failed_logins_max: u16,
    /// PASSWORD_LOCK_TIME in days; -1 is UNBOUNDED.
    pub lock_days: i32,
}

/// REQUIRE: the conditions on the transport.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsRequirement {
    /// NONE.
    #[default]
    None,
    /// SSL.
    Any,
    /// X509: a certificate of the client.
    X509,
    /// CIPHER, ISSUER, SUBJECT: each must be equal if it is given.
    Specified {
        /// The cipher's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cipher: Option<Box<str>>,
        /// The issuer of the client's certificate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issuer: Option<Box<str>>,
        /// The subject of the client's certificate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<Box<str>>,
    },
}

/// The limits of WITH; 0 is no limit, and for `user_connections` the server's variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceLimits {
    /// MAX_QUERIES_PER_HOUR.
    pub queries_per_hour: u32,
    /// MAX_UPDATES_PER_HOUR.
    pub updates_per_hour: u32,
    /// MAX_CONNECTIONS_PER_HOUR.
    pub connections_per_hour: u32,
    /// MAX_USER_CONNECTIONS.
    pub user_connections: u32,
}

impl ResourceLimits {
    /// Whether statements are counted.
    pub fn counts_statements(&self) -> bool {
        self.queries_per_hour != 0 || self.updates_per_hour != 0
    }
}

impl AccountDefinition {
    /// An account with all privileges.
    pub fn with_all_privileges(authentication: Authentication) -> AccountDefinition {
        AccountDefinition {
            authentication,
            global: Privileges::STATIC | Privileges::DYNAMIC,
            grantable_dynamic: Privileges::DYNAMIC,
            ..AccountDefinition::default()
        }
    }

    /// Whether somebody can log in, apart from ACCOUNT LOCK.
    pub fn has_password(&self) -> bool {
        !self.authentication.stored.is_empty()
    }

    /// COMMENT: a member of the attributes.
    pub fn set_comment(&mut self, comment: &str) {
        let object = serde_json::json!({ "comment": comment });
        self.merge_attributes(&object.to_string());
    }

    /// Merges a JSON object into the attributes. A member that is null removes the member. Returns false if
    /// the text is no JSON object.
    pub fn merge_attributes(&mut self, new: &str) -> bool {
        type Members = serde_json::Map<String, serde_json::Value>;
        let Ok(new) = serde_json::from_str::<Members>(new) else { return false };
        let before = self.attributes.as_deref().and_then(|text| serde_json::from_str::<Members>(text).ok());
        let mut members = before.unwrap_or_default();
        for (name, value) in new {
            match value.is_null() {
                true => _ = members.remove(&name),
                false => _ = members.insert(name, value),
            }
        }
        let is_empty = members.is_empty();
        self.attributes = (!is_empty).then(|| text_of(&serde_json::Value::Object(members)));
        true
    }

    /// Whether the account may pass on a global privilege.
    pub fn can_grant_global(&self, privilege: Privilege) -> bool {
        match privilege.is_dynamic() {
            true => self.grantable_dynamic.has(privilege),
            false => self.global.has_all(Privileges::of(&[privilege, Privilege::GrantOption])),
        }
    }
}

/// JSON as MySQL prints it: with a blank after each comma and colon.
fn text_of(value: &serde_json::Value) -> Box<str> {
    struct Spaced;

    impl serde_json::ser::Formatter for Spaced {
        fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }

        fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }

        fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
            out.write_all(b": ")
        }
    }

    let mut out = Vec::new();
    // A value in memory is always written.
    let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Spaced));
    String::from_utf8_lossy(&out).into()
}

/// Maps whose keys are no strings, as lists of pairs.
mod pairs {
    use super::*;

    pub fn serialize<S: Serializer, K: Serialize, V: Serialize>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, K: Deserialize<'de> + Ord, V: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        Vec::<(K, V)>::deserialize(deserializer).map(|pairs| pairs.into_iter().collect())
    }
}

/// Bytes as hexadecimal digits.
mod hexadecimal {
    use super::*;

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
        match digits {
            Some(digits) if digits.len() % 2 == 0 => {
                Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
            }
            _ => Err(serde::de::Error::custom("no hexadecimal digits")),
        }
    }
}
