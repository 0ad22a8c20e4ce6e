//! The one table of the rights that each form of statement needs. The check reads it, the page
//! `docs/generated/privileges.md` is printed from it, and a test runs each form with and without each right.

use junctor_model::access::{Privilege, Privileges};

use crate::parse::account::AccountStatement;
use crate::parse::expression::VariableScope;
use crate::parse::statement::{FlushKind, InsertSource, SetItem, Show, Statement, TableMaintenance};

/// How a statement with a plan uses a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableAccess {
    /// Its columns are read.
    Read,
    /// A table of an UPDATE of several tables: its columns are read or assigned.
    ReadOrUpdate,
    /// Its rows are locked, too.
    LockingRead,
    /// CHECKSUM TABLE, and tables of the server.
    ReadWhole,
    /// INSERT, with rights on the columns.
    Insert,
    /// REPLACE deletes rows.
    Replace,
    /// UPDATE and ON DUPLICATE KEY UPDATE, with rights on the columns.
    Update,
    /// DELETE.
    Delete,
}

impl Form {
    /// Whether a temporary table of the session, which needs no right, can be the table that the statement
    /// names first. Other statements find the stored table of that name.
    pub fn takes_temporary(self) -> bool {
        !matches!(
            self,
            Form::CreateTable
                | Form::CreateTableLike
                | Form::CreateTableSelect
                | Form::CreateView
                | Form::ReplaceView
                | Form::DropView
                | Form::ShowCreateView
                | Form::RenameTable
                | Form::LockTables
        )
    }
}

impl TableAccess {
    /// The privileges on the whole table, one of which is needed, and those that suffice on some column.
    pub fn privileges(self) -> (Privileges, Privileges) {
        use Privilege::{Delete, Insert, LockTables, Select, Update};
        let none = Privileges::NONE;
        match self {
            TableAccess::Read => (none, Select.into()),
            // Which of both is known once the assignments are bound.
            TableAccess::ReadOrUpdate => (none, none),
            TableAccess::LockingRead => (Privileges::of(&[Update, Delete, LockTables]), Select.into()),
            TableAccess::ReadWhole => (Select.into(), none),
            TableAccess::Insert => (none, Insert.into()),
            TableAccess::Replace => (Delete.into(), none),
            TableAccess::Update => (none, Update.into()),
            TableAccess::Delete => (Delete.into(), none),
        }
    }
}

/// The object on which a right is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RightOn {
    /// The server.
    Server,
    /// The database of the statement.
    Database,
    /// Each table that the statement names first: the one that it changes or shows.
    Table,
    /// The columns of the table that the statement changes or reads.
    Column,
    /// Each table that is read.
    Source,
    /// The new name of a table.
    NewTable,
    /// The parent of a foreign key.
    Parent,
}

/// A right: one of these privileges.
#[derive(Clone, Copy, Debug)]
pub struct Right {
    /// The privileges, of which one suffices. Empty for any privilege on the object.
    pub any_of: &'static [Privilege],
    /// The object.
    pub on: RightOn,
}

/// The rights that a form of statement needs.
#[derive(Clone, Copy, Debug)]
pub struct FormRights {
    /// The form, for the page.
    pub name: &'static str,
    /// The rights. All of them are needed.
    pub rights: &'static [Right],
    /// A statement of the form for the test, over the tables `d.t (a, b)`, `d.s (a)`.
    pub example: &'static str,
    /// The errors without the rights, for the page.
    pub error: &'static str,
}

macro_rules! forms {
    ($($form:ident $name:literal [$($on:ident: $($privilege:ident)|*),*] $error:literal $example:literal;)*) => {
        /// The forms of statements that need rights, or are listed because they need none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Form {
            $($form,)*
        }

        impl Form {
            /// Every form.
            pub const ALL: &'static [Form] = &[$(Form::$form,)*];

            /// The row of the table.
            pub const fn rights(self) -> FormRights {
                match self {
                    $(Form::$form => FormRights {
                        name: $name,
                        rights: &[$(Right { any_of: &[$(Privilege::$privilege),*], on: RightOn::$on }),*],
                        example: $example,
                        error: $error,
                    },)*
                }
            }
        }
    };
}

forms! {
    Select "SELECT, WITH, TABLE, EXPLAIN" [Column: Select] "1142, 1143" "SELECT a FROM d.t";
    LockingSelect "SELECT ... FOR UPDATE, FOR SHARE" [Column: Select, Table: Update | Delete | LockTables] "1142, 1143"
        "SELECT a FROM d.t FOR UPDATE";
    SelectIntoFile "SELECT ... INTO OUTFILE, INTO DUMPFILE" [Column: Select, Server: File] "1045, 1142, 1143"
        "SELECT a FROM d.t INTO OUTFILE 'f'";
    LoadData "LOAD DATA INFILE of a file of the server" [Column: Insert, Server: File] "1045, 1142, 1143"
        "LOAD DATA INFILE 'f' INTO TABLE d.t (a)";
    Insert "INSERT" [Column: Insert] "1142, 1143" "INSERT INTO d.t (a) VALUES (7)";
    InsertSelect "INSERT ... SELECT" [Column: Insert, Source: Select] "1142, 1143"
        "INSERT INTO d.t (a) SELECT a FROM d.s WHERE a = 77";
    InsertUpdate "INSERT ... ON DUPLICATE KEY UPDATE" [Column: Insert, Column: Update] "1142, 1143"
        "INSERT INTO d.t (a) VALUES (8) ON DUPLICATE KEY UPDATE b = 1";
    InsertSubquery "INSERT with subqueries" [Column: Insert, Source: Select] "1142, 1143"
        "INSERT INTO d.t (a) VALUES ((SELECT COUNT(a) + 20 FROM d.s))";
    InsertUpdateSubquery "INSERT ... ON DUPLICATE KEY UPDATE with subqueries"
        [Column: Insert, Column: Update, Source: Select] "1142, 1143"
        "INSERT INTO d.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = (SELECT COUNT(a) FROM d.s)";
    Replace "REPLACE" [Column: Insert, Table: Delete] "1142, 1143" "REPLACE INTO d.t (a) VALUES (9)";
    Update "UPDATE" [Column: Update] "1142, 1143" "UPDATE d.t SET b = 1";
    UpdateWhere "UPDATE ... WHERE" [Column: Update, Column: Select] "1142, 1143" "UPDATE d.t SET b = 1 WHERE a = 1";
    UpdateSubquery "UPDATE with subqueries" [Column: Update, Source: Select] "1142, 1143"
        "UPDATE d.t SET b = (SELECT COUNT(a) FROM d.s)";
    UpdateTables "UPDATE of several tables" [Column: Update, Source: Select] "1142, 1143"
        "UPDATE d.t JOIN d.s SET t.b = 1 WHERE s.a = 77";
    Delete "DELETE" [Table: Delete] "1142" "DELETE FROM d.t";
    DeleteWhere "DELETE ... WHERE" [Table: Delete, Column: Select] "1142, 1143" "DELETE FROM d.t WHERE a = 70";
    DeleteSubquery "DELETE with subqueries" [Table: Delete, Source: Select] "1142, 1143"
        "DELETE FROM d.t WHERE EXISTS (SELECT a FROM d.s WHERE a = 77)";
    DeleteTables "DELETE from several tables" [Table: Delete, Column: Select, Source: Select] "1142, 1143"
        "DELETE t FROM d.t JOIN d.s ON s.a = t.a";
    Checksum "CHECKSUM TABLE" [Table: Select] "1142" "CHECKSUM TABLE d.t";
    CreateDatabase "CREATE DATABASE" [Database: Create] "1044" "CREATE DATABASE d2";
    AlterDatabase "ALTER DATABASE" [Database: Alter] "1044" "ALTER DATABASE d COLLATE utf8mb4_bin";
    DropDatabase "DROP DATABASE" [Database: Drop] "1044" "DROP DATABASE d";
    Use "USE, and the database of a login" [Database:] "1044" "USE d";
    CreateTable "CREATE TABLE" [Table: Create] "1142" "CREATE TABLE d.n (a INT)";
    CreateTemporaryTable "CREATE TEMPORARY TABLE" [Database: CreateTemporaryTables] "1044"
        "CREATE TEMPORARY TABLE d.n (a INT)";
    CreateTemporaryTableLike "CREATE TEMPORARY TABLE ... LIKE" [Database: CreateTemporaryTables, Source: Select]
        "1044, 1142" "CREATE TEMPORARY TABLE d.n LIKE d.t";
    CreateTableLike "CREATE TABLE ... LIKE" [Table: Create, Source: Select] "1142" "CREATE TABLE d.n LIKE d.t";
    CreateTableSelect "CREATE TABLE ... SELECT" [Table: Create, Table: Insert, Source: Select] "1142"
        "CREATE TABLE d.n SELECT a FROM d.t";
    References "FOREIGN KEY ... REFERENCES" [Parent: References] "1142"
        "ALTER TABLE d.s ADD FOREIGN KEY (a) REFERENCES d.t (a)";
    CreateView "CREATE VIEW" [Table: CreateView, Source: Select] "1142, 1143" "CREATE VIEW d.n AS SELECT a FROM d.s";
    ReplaceView "CREATE OR REPLACE VIEW, ALTER VIEW" [Table: CreateView, Table: Drop, Source: Select] "1142, 1143"
        "CREATE OR REPLACE VIEW d.n AS SELECT a FROM d.s";
    DropView "DROP VIEW" [Table: Drop] "1142" "DROP VIEW d.n";
    AlterTable "ALTER TABLE" [Table: Alter] "1142" "ALTER TABLE d.t COMMENT 'x'";
    AlterTableRename "ALTER TABLE ... RENAME" [Table: Alter, Table: Drop, NewTable: Create, NewTable: Insert] "1142"
        "ALTER TABLE d.t RENAME TO d.n";
    RenameTable "RENAME TABLE" [Table: Alter, Table: Drop, NewTable: Create, NewTable: Insert] "1142"
        "RENAME TABLE d.t TO d.n";
    CreateIndex "CREATE INDEX" [Table: Index] "1142" "CREATE INDEX i ON d.t (b)";
    DropIndex "DROP INDEX" [Table: Index] "1142" "DROP INDEX k ON d.t";
    DropTable "DROP TABLE" [Table: Drop] "1142" "DROP TABLE d.t";
    TruncateTable "TRUNCATE TABLE" [Table: Drop] "1142" "TRUNCATE TABLE d.t";
    LockTables "LOCK TABLES" [Database: LockTables, Table: Select] "1044, 1142" "LOCK TABLES d.t READ";
    AnalyzeTable "ANALYZE, OPTIMIZE and REPAIR TABLE" [Table: Select, Table: Insert] "1142" "ANALYZE TABLE d.t";
    CheckTable "CHECK TABLE" [Table:] "1142" "CHECK TABLE d.t";
    ShowCreateView "SHOW CREATE VIEW, SHOW CREATE TABLE of a view" [Table: Select, Table: ShowView] "1142"
        "SHOW CREATE VIEW d.v";
    ShowTable "DESCRIBE, SHOW COLUMNS, SHOW INDEX, SHOW CREATE TABLE" [Table:] "1142" "SHOW CREATE TABLE d.t";
    ShowDatabase "SHOW CREATE DATABASE, SHOW TABLES, SHOW TABLE STATUS" [Database:] "1044" "SHOW TABLES FROM d";
    ShowEngine "SHOW ENGINE ... STATUS" [Server: Process] "1227" "SHOW ENGINE innodb STATUS";
    ShowReplication "SHOW MASTER STATUS, SHOW REPLICA STATUS, SHOW BINARY LOGS" [Server: ReplicationClient | Super] "1227"
        "SHOW MASTER STATUS";
    LockInstance "LOCK INSTANCE FOR BACKUP, UNLOCK INSTANCE" [Server: BackupAdmin] "1227" "LOCK INSTANCE FOR BACKUP";
    ReloadTls "ALTER INSTANCE RELOAD TLS" [Server: ConnectionAdmin | Super] "1227" "ALTER INSTANCE RELOAD TLS";
    SetGlobal "SET GLOBAL, SET PERSIST, RESET PERSIST" [Server: SystemVariablesAdmin | Super] "1227"
        "SET GLOBAL sort_buffer_size = 262144";
    SetPersistOnly "SET PERSIST_ONLY" [Server: PersistRoVariablesAdmin, Server: SystemVariablesAdmin | Super] "1227"
        "SET PERSIST_ONLY sort_buffer_size = 262144";
    SetRestricted "SET SESSION of variables that affect other sessions or logs"
        [Server: SessionVariablesAdmin | SystemVariablesAdmin | Super] "1227" "SET sql_log_bin = 0";
    Flush "FLUSH HOSTS, FLUSH LOGS" [Server: Reload] "1227" "FLUSH HOSTS";
    Stop "SHUTDOWN, RESTART" [Server: Shutdown] "1227" "SHUTDOWN NODE 2";
    NodeGroup "ALTER NODEGROUP" [Server: Shutdown] "1227" "ALTER NODEGROUP 1 LEAVE";
    Replica "ALTER NODE" [Server: Shutdown] "1227" "ALTER NODE 3 LEAVE";
    Backup "BACKUP NODE" [Server: BackupAdmin] "1227" "BACKUP NODE 2 END 'n'";
    FlushTables "FLUSH TABLES" [Server: Reload | FlushTables] "1227" "FLUSH TABLES";
    FlushPrivileges "FLUSH PRIVILEGES" [Server: Reload] "1227" "FLUSH PRIVILEGES";
    FlushUserResources "FLUSH USER_RESOURCES" [Server: Reload | FlushUserResources] "1227" "FLUSH USER_RESOURCES";
    CreateUser "CREATE USER, ALTER USER, DROP USER, RENAME USER, REVOKE ALL" [Server: CreateUser] "1227" "CREATE USER n";
    CreateRole "CREATE ROLE" [Server: CreateRole | CreateUser] "1227" "CREATE ROLE n";
    DropRole "DROP ROLE" [Server: DropRole | CreateUser] "1227" "DROP ROLE r";
    None "All others: transactions, SET of session variables, SHOW of one's own, PREPARE, EXECUTE, DO" [] "" "SELECT 1";
}

/// The form of a statement without a plan, and of those in it. `None` for statements that only check their
/// own objects, such as GRANT.
pub fn forms_of(statement: &Statement) -> Vec<Form> {
    let form = match statement {
        Statement::CreateDatabase(_) => Form::CreateDatabase,
        Statement::AlterDatabase(_) => Form::AlterDatabase,
        Statement::DropDatabase(_) => Form::DropDatabase,
        Statement::Use(_) => Form::Use,
        Statement::CreateTable(table) => {
            let mut forms = match (table.temporary, &table.select) {
                (true, _) => vec![Form::CreateTemporaryTable],
                (false, Some(_)) => vec![Form::CreateTableSelect],
                (false, None) => vec![Form::CreateTable],
            };
            if !table.foreign_keys.is_empty() {
                forms.push(Form::References);
            }
            return forms;
        }
        Statement::CreateTableLike(like) => match like.temporary {
            true => Form::CreateTemporaryTableLike,
            false => Form::CreateTableLike,
        },
        Statement::CreateView(view) => match view.or_replace || view.alters {
            true => Form::ReplaceView,
            false => Form::CreateView,
        },
        Statement::DropView(_) => Form::DropView,
        Statement::AlterTable(alter) => {
            let mut forms = vec![match alter.new_name() {
                Some(_) => Form::AlterTableRename,
                None => Form::AlterTable,
            }];
            if alter.parents().next().is_some() {
                forms.push(Form::References);
            }
            return forms;
        }
        Statement::RenameTables(_) => Form::RenameTable,
        Statement::CreateIndex(_) => Form::CreateIndex,
        Statement::DropIndex(_) => Form::DropIndex,
        Statement::DropTable(_) => Form::DropTable,
        Statement::TruncateTable(_) => Form::TruncateTable,
        Statement::LockTables(_) => Form::LockTables,
        Statement::LockInstance | Statement::UnlockInstance => Form::LockInstance,
        Statement::ReloadTls => Form::ReloadTls,
        Statement::Flush(kinds) if kinds.iter().all(|kind| matches!(kind, FlushKind::Tables(_))) => Form::FlushTables,
        Statement::Flush(_) => Form::Flush,
        Statement::Stop(_) => Form::Stop,
        Statement::LeaveGroup { .. } => Form::NodeGroup,
        Statement::LeaveReplica { .. } => Form::Replica,
        Statement::Backup(_) => Form::Backup,
        Statement::ResetPersist { .. } => Form::SetGlobal,
        Statement::Set(items) => {
            let mut forms = Vec::new();
            forms.extend(items.iter().any(is_global).then_some(Form::SetGlobal));
            forms.extend(items.iter().any(is_persist_only).then_some(Form::SetPersistOnly));
            forms.extend(items.iter().any(is_restricted).then_some(Form::SetRestricted));
            return forms;
        }
        Statement::Describe(_) => Form::ShowTable,
        Statement::Show(show) => form_of_show(show),
        Statement::Account(account) => match **account {
            AccountStatement::FlushPrivileges => Form::FlushPrivileges,
            AccountStatement::FlushUserResources => Form::FlushUserResources,
            // Which accounts they concern decides, so they check themselves.
            _ => Form::None,
        },
        Statement::Insert(insert) => match &insert.source {
            InsertSource::Select(_) => Form::InsertSelect,
            _ if insert.replace => Form::Replace,
            _ => Form::Insert,
        },
        _ => Form::None,
    };
    vec![form]
}

fn form_of_show(show: &Show) -> Form {
    match show {
        Show::Maintenance { kind: TableMaintenance::Check, .. } => Form::CheckTable,
        Show::Maintenance { .. } | Show::Histogram(..) => Form::AnalyzeTable,
        Show::Columns { .. } | Show::Index { .. } | Show::CreateTable(_) => Form::ShowTable,
        Show::CreateView(_) => Form::ShowCreateView,
        Show::CreateDatabase { .. } | Show::Tables { .. } | Show::TableStatus { .. } => Form::ShowDatabase,
        Show::EngineStatus { .. } | Show::EngineMutex => Form::ShowEngine,
        Show::MasterStatus | Show::ReplicaStatus | Show::BinaryLogs => Form::ShowReplication,
        _ => Form::None,
    }
}

fn is_persist_only(item: &SetItem) -> bool {
    matches!(item, SetItem::SystemVariable { scope: Some(VariableScope::PersistOnly), .. })
}

fn is_global(item: &SetItem) -> bool {
    match item {
        SetItem::SystemVariable { scope, .. } => {
            matches!(scope, Some(VariableScope::Global | VariableScope::Persist))
        }
        SetItem::Transaction { scope, .. } => matches!(scope, Some(VariableScope::Global)),
        _ => false,
    }
}

/// Variables whose value for a session MySQL lets only an administrator change.
const RESTRICTED_VARIABLES: &[&str] = &[
    "binlog_direct_non_transactional_updates",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_value_options",
    "binlog_rows_query_log_events",
    "bulk_insert_buffer_size",
    "character_set_database",
    "collation_database",
    "default_collation_for_utf8mb4",
    "gtid_next",
    "histogram_generation_max_mem_size",
    "immediate_server_version",
    "innodb_strict_mode",
    "internal_tmp_mem_storage_engine",
    "original_commit_timestamp",
    "original_server_version",
    "pseudo_slave_mode",
    "pseudo_thread_id",
    "rbr_exec_mode",
    "show_create_table_skip_secondary_engine",
    "sql_log_bin",
    "sql_log_off",
    "sql_require_primary_key",
    "transaction_write_set_extraction",
];

fn is_restricted(item: &SetItem) -> bool {
    match item {
        SetItem::SystemVariable { name, .. } => {
            !is_global(item)
                && !is_persist_only(item)
                && RESTRICTED_VARIABLES.iter().any(|restricted| restricted.eq_ignore_ascii_case(name))
        }
        _ => false,
    }
}

/// The page `docs/generated/privileges.md`.
pub fn privileges_page() -> String {
    let mut page = String::from(
        "# Privileges\n\nThe rights that each form of statement needs. All rows of a form's rights are needed; of \
         privileges with \"or\", one. A right on an object may be granted on it or on what contains it. A right on \
         columns may be granted on the columns used.\n\n| statement | rights | error without |\n|---|---|---|\n",
    );
    for form in Form::ALL {
        let FormRights { name, rights, error, .. } = form.rights();
        let right = |right: &Right| {
            let names: Vec<&str> = right.any_of.iter().map(|privilege| privilege.name()).collect();
            let names = if names.is_empty() { "any privilege".to_owned() } else { names.join(" or ") };
            let on = match right.on {
                RightOn::Server => "the server",
                RightOn::Database => "the database",
                RightOn::Table => "the table",
                RightOn::Column => "the columns",
                RightOn::Source => "the tables that are read",
                RightOn::NewTable => "the new table",
                RightOn::Parent => "the parent",
            };
            format!("{names} on {on}")
        };
        let rights: Vec<String> = rights.iter().map(right).collect();
        let rights = if rights.is_empty() { "none".to_owned() } else { rights.join("; ") };
        page.push_str(&format!("| {name} | {rights} | {error} |\n"));
    }
    page.push_str("\n## All privileges\n\n| privilege | may be granted on | meaning |\n|---|---|---|\n");
    for privilege in Privilege::ALL {
        let level = match (privilege.is_dynamic(), privilege.level()) {
            (true, _) => "the server (dynamic)",
            (false, junctor_model::access::privilege::PrivilegeLevel::Server) => "the server",
            (false, junctor_model::access::privilege::PrivilegeLevel::Database) => "server, database",
            (false, junctor_model::access::privilege::PrivilegeLevel::Table) => "server, database, table",
            (false, junctor_model::access::privilege::PrivilegeLevel::Column) => "server, database, table, column",
        };
        page.push_str(&format!("| {} | {level} | {} |\n", privilege.name(), privilege.description().1));
    }
    page
}
