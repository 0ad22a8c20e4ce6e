//! The privileges of MySQL 8.0, and sets of them.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The smallest kind of object for which a static privilege can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrivilegeLevel {
    /// The server only.
    Server,
    /// Databases and the server.
    Database,
    /// Tables, databases and the server.
    Table,
    /// Columns, and everything above.
    Column,
}

macro_rules! privileges {
    (
        static { $($name:ident $text:literal $level:ident $context:literal $comment:literal;)* }
        dynamic { $($dynamic:ident $dynamic_text:literal;)* }
    ) => {
        /// A privilege. The static ones come first, in the order of `mysql.user`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Privilege {
            $($name,)*
            $($dynamic,)*
        }

        impl Privilege {
            /// Every privilege.
            pub const ALL: &'static [Privilege] = &[$(Privilege::$name,)* $(Privilege::$dynamic,)*];
            /// Number of static privileges.
            pub const STATIC_COUNT: usize = [$(Privilege::$name,)*].len();

            /// The name in GRANT, in upper case.
            pub fn name(self) -> &'static str {
                match self {
                    $(Privilege::$name => $text,)*
                    $(Privilege::$dynamic => $dynamic_text,)*
                }
            }

            /// The smallest kind of object for which it can be granted.
            pub fn level(self) -> PrivilegeLevel {
                match self {
                    $(Privilege::$name => PrivilegeLevel::$level,)*
                    $(Privilege::$dynamic => PrivilegeLevel::Server,)*
                }
            }

            /// The columns Context and Comment of SHOW PRIVILEGES.
            pub fn description(self) -> (&'static str, &'static str) {
                match self {
                    $(Privilege::$name => ($context, $comment),)*
                    $(Privilege::$dynamic => ("Server Admin", ""),)*
                }
            }
        }
    };
}

privileges! {
    static {
        Select "SELECT" Column "Tables" "Read rows of tables and views";
        Insert "INSERT" Column "Tables" "Add rows to tables";
        Update "UPDATE" Column "Tables" "Change rows of tables";
        Delete "DELETE" Table "Tables" "Remove rows from tables";
        Create "CREATE" Table "Databases,Tables,Indexes" "Make databases and tables";
        Drop "DROP" Table "Databases,Tables" "Remove databases, tables and views, and empty tables";
        Reload "RELOAD" Server "Server Admin" "Execute FLUSH";
        Shutdown "SHUTDOWN" Server "Server Admin" "Stop the server";
        Process "PROCESS" Server "Server Admin" "See the sessions and statements of all accounts";
        File "FILE" Server "File access on server" "Read and write files of the server, if `secure_file_priv` names a folder";
        References "REFERENCES" Column "Databases,Tables" "Name a table as the parent of a foreign key";
        Index "INDEX" Table "Tables" "Add and remove indexes of tables";
        Alter "ALTER" Table "Tables" "Change the definitions of tables";
        ShowDatabases "SHOW DATABASES" Server "Server Admin" "See the names of all databases";
        Super "SUPER" Server "Server Admin" "Administer the server: stands for most dynamic privileges";
        CreateTemporaryTables "CREATE TEMPORARY TABLES" Database "Databases" "Make temporary tables";
        LockTables "LOCK TABLES" Database "Databases" "Lock tables that the account may read";
        Execute "EXECUTE" Database "Functions,Procedures" "Call stored routines; there are none";
        ReplicationSlave "REPLICATION SLAVE" Server "Server Admin" "Read the binary log; there is none";
        ReplicationClient "REPLICATION CLIENT" Server "Server Admin" "See the state of replication";
        CreateView "CREATE VIEW" Table "Tables" "Make views";
        ShowView "SHOW VIEW" Table "Tables" "See the queries of views";
        CreateRoutine "CREATE ROUTINE" Database "Databases" "Make stored routines; there are none";
        AlterRoutine "ALTER ROUTINE" Database "Functions,Procedures" "Change and remove stored routines; there are none";
        CreateUser "CREATE USER" Server "Server Admin" "Make, change and remove accounts";
        Event "EVENT" Database "Server Admin" "Make and remove events; there are none";
        Trigger "TRIGGER" Table "Tables" "Make and remove triggers; there are none";
        CreateTablespace "CREATE TABLESPACE" Server "Server Admin" "Make and remove tablespaces; there are none";
        CreateRole "CREATE ROLE" Server "Server Admin" "Make roles";
        DropRole "DROP ROLE" Server "Server Admin" "Remove roles";
        GrantOption "GRANT OPTION" Table "Databases,Tables,Functions,Procedures"
            "Pass on one's own privileges";
    }
    dynamic {
        ApplicationPasswordAdmin "APPLICATION_PASSWORD_ADMIN";
        AuditAbortExempt "AUDIT_ABORT_EXEMPT";
        AuditAdmin "AUDIT_ADMIN";
        AuthenticationPolicyAdmin "AUTHENTICATION_POLICY_ADMIN";
        BackupAdmin "BACKUP_ADMIN";
        BinlogAdmin "BINLOG_ADMIN";
        BinlogEncryptionAdmin "BINLOG_ENCRYPTION_ADMIN";
        CloneAdmin "CLONE_ADMIN";
        ConnectionAdmin "CONNECTION_ADMIN";
        EncryptionKeyAdmin "ENCRYPTION_KEY_ADMIN";
        FirewallExempt "FIREWALL_EXEMPT";
        FlushOptimizerCosts "FLUSH_OPTIMIZER_COSTS";
        FlushStatus "FLUSH_STATUS";
        FlushTables "FLUSH_TABLES";
        FlushUserResources "FLUSH_USER_RESOURCES";
        GroupReplicationAdmin "GROUP_REPLICATION_ADMIN";
        GroupReplicationStream "GROUP_REPLICATION_STREAM";
        InnodbRedoLogArchive "INNODB_REDO_LOG_ARCHIVE";
        InnodbRedoLogEnable "INNODB_REDO_LOG_ENABLE";
        PasswordlessUserAdmin "PASSWORDLESS_USER_ADMIN";
        PersistRoVariablesAdmin "PERSIST_RO_VARIABLES_ADMIN";
        ReplicationApplier "REPLICATION_APPLIER";
        ReplicationSlaveAdmin "REPLICATION_SLAVE_ADMIN";
        ResourceGroupAdmin "RESOURCE_GROUP_ADMIN";
        ResourceGroupUser "RESOURCE_GROUP_USER";
        RoleAdmin "ROLE_ADMIN";
        SensitiveVariablesObserver "SENSITIVE_VARIABLES_OBSERVER";
        ServiceConnectionAdmin "SERVICE_CONNECTION_ADMIN";
        SessionVariablesAdmin "SESSION_VARIABLES_ADMIN";
        SetUserId "SET_USER_ID";
        ShowRoutine "SHOW_ROUTINE";
        SystemUser "SYSTEM_USER";
        SystemVariablesAdmin "SYSTEM_VARIABLES_ADMIN";
        TableEncryptionAdmin "TABLE_ENCRYPTION_ADMIN";
        TelemetryLogAdmin "TELEMETRY_LOG_ADMIN";
        XaRecoverAdmin "XA_RECOVER_ADMIN";
    }
}

impl Privilege {
    /// Whether it is a dynamic privilege, which exists on the server only.
    pub fn is_dynamic(self) -> bool {
        self as usize >= Privilege::STATIC_COUNT
    }

    /// The privilege with this name, in any case.
    pub fn from_name(name: &str) -> Option<Privilege> {
        Privilege::ALL.iter().copied().find(|privilege| privilege.name().eq_ignore_ascii_case(name))
    }
}

/// A set of privileges.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Privileges(u128);

const _: () = assert!(Privilege::ALL.len() <= 128);

impl Privileges {
    /// No privilege.
    pub const NONE: Privileges = Privileges(0);
    /// All static privileges, GRANT OPTION included.
    pub const STATIC: Privileges = Privileges((1 << Privilege::STATIC_COUNT) - 1);
    /// All dynamic privileges.
    pub const DYNAMIC: Privileges = Privileges(((1 << Privilege::ALL.len()) - 1) & !Privileges::STATIC.0);

    /// The privileges of a list.
    pub const fn of(list: &[Privilege]) -> Privileges {
        let mut bits = 0;
        let mut position = 0;
        while position < list.len() {
            bits |= 1 << list[position] as u8;
            position += 1;
        }
        Privileges(bits)
    }

    /// All static privileges that can be granted for objects of this kind, without GRANT OPTION.
    pub fn all_of(level: PrivilegeLevel) -> Privileges {
        let is_grantable = |it: &&Privilege| !it.is_dynamic() && it.level() >= level && **it != Privilege::GrantOption;
        Privilege::ALL.iter().filter(is_grantable).copied().collect()
    }

    /// Whether the set has this privilege.
    #[inline]
    pub const fn has(self, privilege: Privilege) -> bool {
        self.0 >> privilege as u8 & 1 == 1
    }

    /// Whether the set has all of these privileges.
    #[inline]
    pub const fn has_all(self, wanted: Privileges) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// Whether the set has one of these privileges.
    #[inline]
    pub const fn has_any(self, wanted: Privileges) -> bool {
        self.0 & wanted.0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set without these privileges.
    #[must_use]
    pub const fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// The privileges in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        Privilege::ALL.iter().copied().filter(move |privilege| self.has(*privilege))
    }

    /// The names, separated by this text.
    pub fn names(self, separator: &str) -> String {
        let names: Vec<&str> = self.iter().map(Privilege::name).collect();
        names.join(separator)
    }
}

impl From<Privilege> for Privileges {
    fn from(privilege: Privilege) -> Privileges {
        Privileges::of(&[privilege])
    }
}

impl FromIterator<Privilege> for Privileges {
    fn from_iter<I: IntoIterator<Item = Privilege>>(privileges: I) -> Privileges {
        privileges.into_iter().fold(Privileges::NONE, |set, privilege| set | privilege.into())
    }
}

impl BitOr for Privileges {
    type Output = Privileges;

    fn bitor(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
}

impl BitOrAssign for Privileges {
    fn bitor_assign(&mut self, other: Privileges) {
        self.0 |= other.0;
    }
}

impl BitAnd for Privileges {
    type Output = Privileges;

    fn bitand(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }
}

impl Not for Privileges {
    type Output = Privileges;

    fn not(self) -> Privileges {
        (Privileges::STATIC | Privileges::DYNAMIC).without(self)
    }
}

impl std::fmt::Debug for Privileges {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{{{}}}", self.names(", "))
    }
}

/// Stored as a list of names. The order of the declaration is no part of the format.
impl Serialize for Privileges {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Privilege::name))
    }
}

impl<'de> Deserialize<'de> for Privileges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Privileges, D::Error> {
        let names: Vec<String> = Vec::deserialize(deserializer)?;
        let known = |name: &String| {
            Privilege::from_name(name).ok_or_else(|| serde::de::Error::custom(format!("privilege {name} is unknown")))
        };
        names.iter().map(known).collect()
    }
}
