//! The tables of the database `mysql` that clients read: accounts, privileges, roles and logs.

use junctor_model::access::{AccountDefinition, AccountName, Lifetime, Privilege, Privileges, TlsRequirement};
use junctor_model::row_encoding::append_text;
use junctor_model::temporal::{Parts, Temporal, TemporalKind, add_seconds};
use junctor_model::value::Value;

use super::fact::ShowContext;
use super::layout::{Field, bytes, int, long, text, unsigned};
use super::log_rows::{GENERAL_LOG, SLOW_LOG, general_log, slow_log};
use super::mysql_tables;
use super::virtual_schema::{SchemaTable, VirtualSchema};

/// Every table, sorted by name, with its columns and the function that computes its rows.
const TABLES: &[SchemaTable] = &[
    ("columns_priv", COLUMNS_PRIV, columns_priv),
    ("db", DB, db),
    ("default_roles", DEFAULT_ROLES, default_roles),
    ("general_log", GENERAL_LOG, general_log),
    ("global_grants", GLOBAL_GRANTS, global_grants),
    ("password_history", PASSWORD_HISTORY, password_history),
    ("procs_priv", PROCS_PRIV, |_| Vec::new()),
    ("proxies_priv", PROXIES_PRIV, |_| Vec::new()),
    ("role_edges", ROLE_EDGES, role_edges),
    ("slow_log", SLOW_LOG, slow_log),
    ("tables_priv", TABLES_PRIV, tables_priv),
    ("user", USER, user),
];

/// The database.
pub(super) const SCHEMA: VirtualSchema = VirtualSchema { name: "mysql", parts: &[TABLES, mysql_tables::TABLES] };

const HOST: Field = text("Host", 255);
const ACCOUNT: Field = text("User", 32);
const TIME: Field = text("Timestamp", 19);

const COLUMNS_PRIV: &[Field] =
    &[HOST, text("Db", 64), ACCOUNT, text("Table_name", 64), text("Column_name", 64), TIME, text("Column_priv", 31)];

const TABLES_PRIV: &[Field] = &[
    HOST,
    text("Db", 64),
    ACCOUNT,
    text("Table_name", 64),
    text("Grantor", 288),
    TIME,
    text("Table_priv", 98),
    text("Column_priv", 31),
];

const DEFAULT_ROLES: &[Field] =
    &[text("HOST", 255), text("USER", 32), text("DEFAULT_ROLE_HOST", 255), text("DEFAULT_ROLE_USER", 32)];

const GLOBAL_GRANTS: &[Field] = &[text("USER", 32), text("HOST", 255), text("PRIV", 32), text("WITH_GRANT_OPTION", 1)];

const PASSWORD_HISTORY: &[Field] = &[HOST, ACCOUNT, text("Password_timestamp", 26), long("Password").or_null()];

/// There are no stored routines.
const PROCS_PRIV: &[Field] = &[
    HOST,
    text("Db", 64),
    ACCOUNT,
    text("Routine_name", 64),
    text("Routine_type", 9),
    text("Grantor", 288),
    text("Proc_priv", 27),
    TIME,
];

/// No account stands for another one.
const PROXIES_PRIV: &[Field] = &[
    HOST,
    ACCOUNT,
    text("Proxied_host", 255),
    text("Proxied_user", 32),
    int("With_grant"),
    text("Grantor", 288),
    TIME,
];

const ROLE_EDGES: &[Field] = &[
    text("FROM_HOST", 255),
    text("FROM_USER", 32),
    text("TO_HOST", 255),
    text("TO_USER", 32),
    text("WITH_ADMIN_OPTION", 1),
];

const fn flag(name: &'static str) -> Field {
    text(name, 1)
}

/// The columns of a table of privileges. Those in the middle have one privilege each.
macro_rules! privilege_columns {
    ($fields:ident, $privileges:ident: [$($before:expr),*] [$($column:literal $privilege:ident),* $(,)?] [$($after:expr),* $(,)?]) => {
        const $fields: &[Field] = &[$($before,)* $(flag($column),)* $($after,)*];
        /// The privileges of these columns.
        const $privileges: &[Privilege] = &[$(Privilege::$privilege,)*];
    };
}

privilege_columns! {
    DB, DB_PRIVILEGES:
    [HOST, text("Db", 64), ACCOUNT]
    [
        "Select_priv" Select,
        "Insert_priv" Insert,
        "Update_priv" Update,
        "Delete_priv" Delete,
        "Create_priv" Create,
        "Drop_priv" Drop,
        "Grant_priv" GrantOption,
        "References_priv" References,
        "Index_priv" Index,
        "Alter_priv" Alter,
        "Create_tmp_table_priv" CreateTemporaryTables,
        "Lock_tables_priv" LockTables,
        "Create_view_priv" CreateView,
        "Show_view_priv" ShowView,
        "Create_routine_priv" CreateRoutine,
        "Alter_routine_priv" AlterRoutine,
        "Execute_priv" Execute,
        "Event_priv" Event,
        "Trigger_priv" Trigger,
    ]
    []
}

privilege_columns! {
    USER, USER_PRIVILEGES:
    [HOST, ACCOUNT]
    [
        "Select_priv" Select,
        "Insert_priv" Insert,
        "Update_priv" Update,
        "Delete_priv" Delete,
        "Create_priv" Create,
        "Drop_priv" Drop,
        "Reload_priv" Reload,
        "Shutdown_priv" Shutdown,
        "Process_priv" Process,
        "File_priv" File,
        "Grant_priv" GrantOption,
        "References_priv" References,
        "Index_priv" Index,
        "Alter_priv" Alter,
        "Show_db_priv" ShowDatabases,
        "Super_priv" Super,
        "Create_tmp_table_priv" CreateTemporaryTables,
        "Lock_tables_priv" LockTables,
        "Execute_priv" Execute,
        "Repl_slave_priv" ReplicationSlave,
        "Repl_client_priv" ReplicationClient,
        "Create_view_priv" CreateView,
        "Show_view_priv" ShowView,
        "Create_routine_priv" CreateRoutine,
        "Alter_routine_priv" AlterRoutine,
        "Create_user_priv" CreateUser,
        "Event_priv" Event,
        "Trigger_priv" Trigger,
        "Create_tablespace_priv" CreateTablespace,
    ]
    [
        text("ssl_type", 9),
        long("ssl_cipher"),
        long("x509_issuer"),
        long("x509_subject"),
        unsigned("max_questions"),
        unsigned("max_updates"),
        unsigned("max_connections"),
        unsigned("max_user_connections"),
        text("plugin", 64),
        long("authentication_string").or_null(),
        flag("password_expired"),
        text("password_last_changed", 19).or_null(),
        unsigned("password_lifetime").or_null(),
        flag("account_locked"),
        flag("Create_role_priv"),
        flag("Drop_role_priv"),
        unsigned("Password_reuse_history").or_null(),
        unsigned("Password_reuse_time").or_null(),
        flag("Password_require_current").or_null(),
        long("User_attributes").or_null(),
    ]
}

fn yes(is_so: bool) -> Value {
    bytes(if is_so { "Y" } else { "N" })
}

fn flags(granted: Privileges, columns: &[Privilege]) -> impl Iterator<Item = Value> + use<'_> {
    columns.iter().map(move |privilege| yes(granted.has(*privilege)))
}

/// A time in UTC, to the second.
fn moment(us: u64) -> Value {
    match us {
        0 => Value::Null,
        us => {
            let start = Parts { year: 1970, month: 1, day: 1, ..Parts::default() };
            let parts = add_seconds(&start, (us / 1_000_000) as i64).unwrap_or(start);
            let moment = Temporal::from_parts(TemporalKind::DateTime, 0, &parts);
            let mut out = Vec::new();
            append_text(Value::Temporal(moment).as_ref(), &mut out);
            Value::Bytes(out)
        }
    }
}

/// The members of MySQL's SET columns: `Create View` for CREATE VIEW, `Grant` for GRANT OPTION.
fn set_of(granted: Privileges) -> Value {
    let name = |privilege: Privilege| match privilege {
        Privilege::GrantOption => "Grant".to_owned(),
        other => {
            let words = other.name().split(' ').map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase()));
            words.collect::<Vec<_>>().join(" ")
        }
    };
    bytes(granted.iter().map(name).collect::<Vec<_>>().join(","))
}

fn accounts<'a>(facts: &ShowContext<'a>) -> impl Iterator<Item = (&'a AccountName, &'a AccountDefinition)> {
    facts.dictionary.access.accounts().map(|(name, account)| (name, &**account))
}

fn user(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |(name, account): (&AccountName, &AccountDefinition)| {
        let number = |value: u32| Value::UInt(value.into());
        let optional = |value: Option<u16>| value.map_or(Value::Null, |value| Value::UInt(value.into()));
        let mut row = vec![bytes(&name.host), bytes(&name.user)];
        row.extend(flags(account.global, USER_PRIVILEGES));
        let none = String::new();
        let (kind, cipher, issuer, subject) = match &account.tls {
            TlsRequirement::None => ("", none.clone(), none.clone(), none),
            TlsRequirement::Any => ("ANY", none.clone(), none.clone(), none),
            TlsRequirement::X509 => ("X509", none.clone(), none.clone(), none),
            TlsRequirement::Specified { cipher, issuer, subject } => {
                let text = |part: &Option<Box<str>>| part.as_deref().unwrap_or_default().to_owned();
                ("SPECIFIED", text(cipher), text(issuer), text(subject))
            }
        };
        row.extend([bytes(kind), bytes(cipher), bytes(issuer), bytes(subject)]);
        let limits = &account.limits;
        row.extend([limits.queries_per_hour, limits.updates_per_hour].map(number));
        row.extend([limits.connections_per_hour, limits.user_connections].map(number));
        row.push(bytes(account.authentication.method.name()));
        row.push(Value::Bytes(account.authentication.stored.clone()));
        row.push(yes(account.is_expired));
        row.push(moment(account.password_changed_us));
        let policy = &account.policy;
        row.push(match policy.lifetime {
            Lifetime::Default => Value::Null,
            Lifetime::Never => Value::UInt(0),
            Lifetime::Days(days) => Value::UInt(days.into()),
        });
        row.push(yes(account.is_locked));
        row.extend(flags(account.global, &[Privilege::CreateRole, Privilege::DropRole]));
        row.extend([optional(policy.history), optional(policy.reuse_days)]);
        row.push(policy.require_current.map_or(Value::Null, yes));
        row.push(account.attributes.as_ref().map_or(Value::Null, |text| bytes(format!("{{\"metadata\": {text}}}"))));
        row
    };
    accounts(facts).map(row).collect()
}

fn db(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let rows = accounts(facts).flat_map(|(name, account)| {
        account.databases.iter().map(move |(database, granted)| {
            let mut row = vec![bytes(&name.host), bytes(database), bytes(&name.user)];
            row.extend(flags(*granted, DB_PRIVILEGES));
            row
        })
    });
    rows.collect()
}

fn tables_priv(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let rows = accounts(facts).flat_map(|(name, account)| {
        account.tables.iter().map(move |((database, table), grant)| {
            let of_columns = grant.columns.values().fold(Privileges::NONE, |all, one| all | *one);
            let names = [&*name.host, database, &name.user, table, &grant.grantor];
            let mut row: Vec<Value> = names.into_iter().map(bytes).collect();
            row.extend([moment(grant.changed_us), set_of(grant.privileges), set_of(of_columns)]);
            row
        })
    });
    rows.collect()
}

fn columns_priv(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (name, account) in accounts(facts) {
        for ((database, table), grant) in &account.tables {
            for (column, privileges) in &grant.columns {
                let names = [&*name.host, database, &name.user, table, column];
                let mut row: Vec<Value> = names.into_iter().map(bytes).collect();
                row.extend([moment(grant.changed_us), set_of(*privileges)]);
                rows.push(row);
            }
        }
    }
    rows
}

fn default_roles(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let rows = accounts(facts).flat_map(|(name, account)| {
        let roles = account.default_roles.iter();
        roles.map(move |role| [&name.host, &name.user, &role.host, &role.user].map(bytes).to_vec())
    });
    rows.collect()
}

fn role_edges(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let rows = accounts(facts).flat_map(|(name, account)| {
        account.roles.iter().map(move |(role, admin)| {
            let mut row = [&role.host, &role.user, &name.host, &name.user].map(bytes).to_vec();
            row.push(yes(*admin));
            row
        })
    });
    rows.collect()
}

fn global_grants(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let rows = accounts(facts).flat_map(|(name, account)| {
        (account.global & Privileges::DYNAMIC).iter().map(move |privilege| {
            let grantable = yes(account.grantable_dynamic.has(privilege));
            vec![bytes(&name.user), bytes(&name.host), bytes(privilege.name()), grantable]
        })
    });
    rows.collect()
}

fn password_history(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let rows = accounts(facts).flat_map(|(name, account)| {
        account.history.iter().map(move |(changed_us, former)| {
            vec![bytes(&name.host), bytes(&name.user), moment(*changed_us), Value::Bytes(former.stored.clone())]
        })
    });
    rows.collect()
}
