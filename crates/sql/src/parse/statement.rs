//! The syntax tree of queries, changes of rows and session statements, in one long file because nearly all
//! users of the tree match on several of its parts. Definitions of tables and databases are in
//! [`super::definition`].

use super::account::{AccountReference, AccountStatement};
use super::definition::{
    AlterDatabase, AlterTable, CreateDatabase, CreateIndex, CreateTable, CreateTableLike, CreateView, DropDatabase,
    DropIndex, DropTable, DropView, HistogramChange,
};
use super::expression::{ColumnReference, Expression, ParameterNumber, StringLiteral, VariableScope};
use super::hint::{Hints, JoinOrderKind};
use super::query::FromItem;
use super::window::NamedWindow;

/// A statement, before names are resolved.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Statement {
    /// The text contains only comments.
    Empty,
    Select(Box<Select>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Modify(Box<Modify>),
    CreateTable(Box<CreateTable>),
    CreateTableLike(Box<CreateTableLike>),
    CreateIndex(Box<CreateIndex>),
    AlterTable(Box<AlterTable>),
    CreateDatabase(CreateDatabase),
    AlterDatabase(AlterDatabase),
    DropTable(DropTable),
    CreateView(Box<CreateView>),
    DropView(DropView),
    DropIndex(DropIndex),
    DropDatabase(DropDatabase),
    TruncateTable(ObjectName),
    /// Pairs of old and new name, renamed in this order.
    RenameTables(Vec<(ObjectName, ObjectName)>),
    /// `USE database`
    Use(String),
    Show(Box<Show>),
    Describe(Box<Describe>),
    Explain(Box<Explain>),
    /// One or more assignments. The values are evaluated before the first one.
    Set(Vec<SetItem>),
    /// SET or DO with subqueries.
    SetByQuery(Box<SetByQuery>),
    /// RESET PERSIST: removes persisted values of variables.
    ResetPersist {
        /// The variable's name as written; `None` for all.
        name: Option<String>,
        /// Whether a missing value is a warning.
        if_exists: bool,
    },
    StartTransaction(StartTransaction),
    Commit(TransactionEnd),
    Rollback(TransactionEnd),
    Savepoint(String),
    RollbackToSavepoint(String),
    ReleaseSavepoint(String),
    LockTables(Vec<TableLock>),
    UnlockTables,
    /// LOCK INSTANCE FOR BACKUP.
    LockInstance,
    /// UNLOCK INSTANCE.
    UnlockInstance,
    /// ALTER INSTANCE RELOAD TLS.
    ReloadTls,
    /// SHUTDOWN or RESTART, of this node or another one.
    Stop(StopStatement),
    /// A step of a node's part of a backup of the cluster.
    Backup(Box<BackupStatement>),
    /// `ALTER NODEGROUP number {LEAVE | STAY}`
    LeaveGroup {
        /// The node group.
        group: u8,
        /// Whether it is to be removed; otherwise it is to stay.
        leaves: bool,
    },
    /// `ALTER NODE number {LEAVE | STAY}`
    LeaveReplica {
        /// The node.
        node: u8,
        /// Whether it is to be removed; otherwise it is to stay.
        leaves: bool,
    },
    /// FLUSH of the things named.
    Flush(Vec<FlushKind>),
    Kill(Box<Kill>),
    /// `DO expression, ...`
    Do(Vec<Expression>),
    /// `PREPARE name FROM source`
    Prepare {
        /// The statement's name.
        name: String,
        /// A string literal or a user variable with the text.
        source: Box<Expression>,
    },
    /// `EXECUTE name [USING @variable, ...]`
    Execute {
        /// The statement's name.
        name: String,
        /// The names of the variables.
        using: Vec<String>,
    },
    /// `DEALLOCATE PREPARE name`
    Deallocate(String),
    /// CREATE USER, GRANT and their kin.
    Account(Box<AccountStatement>),
    /// The parser recognises the statement; the binder refuses it with error 1235 and this name.
    Unsupported(Unsupported),
}

/// `{SHUTDOWN | RESTART} [NODE number [FORCE]]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopStatement {
    /// The node; `None` for the own one.
    pub node: Option<u8>,
    /// Whether it is started again.
    pub restarts: bool,
    /// Whether it stops although its group then has no replica that serves.
    pub is_forced: bool,
}

/// `BACKUP NODE number {BEGIN 'store' AS 'name' | COPY 'name' UNTIL number | END 'name'}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupStatement {
    /// The node.
    pub node: u8,
    /// What it is to do.
    pub step: BackupPart,
}

/// A step of a node's part of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupPart {
    /// Keeps the files of the node.
    Begin {
        /// The store.
        store: String,
        /// The name of the backup.
        name: String,
    },
    /// Copies them.
    Copy {
        /// The name of the backup.
        name: String,
        /// The commit number that the copy includes.
        until: u64,
    },
    /// Lets the node go on without them.
    End {
        /// The name of the backup.
        name: String,
    },
}

/// A part of MySQL that the parser recognises but this version does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The name that error 1235 shows.
    pub what: &'static str,
}

/// `[database.]name`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The database if written, otherwise the session's.
    pub database: Option<String>,
    /// The unqualified name.
    pub name: String,
}

/// A query.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Select {
    /// DISTINCT: equal rows are returned once.
    pub distinct: bool,
    /// STRAIGHT_JOIN: tables are read in the order of FROM.
    pub keeps_order: bool,
    /// The optimizer hints after SELECT.
    pub hints: Option<Box<Hints>>,
    /// Whether this query or one in it may have hints.
    pub has_hints: bool,
    /// The hints about the order in which the tables are joined.
    pub join_orders: Vec<(JoinOrderKind, Vec<String>)>,
    /// SQL_CALC_FOUND_ROWS: FOUND_ROWS() counts rows as if there were no LIMIT.
    pub calc_found_rows: bool,
    /// The select list.
    pub projection: Vec<SelectItem>,
    /// WITH: the queries that this query and those in it may name like tables.
    pub with: Vec<CommonTable>,
    /// FROM; `None` without FROM and for DUAL.
    pub from: Option<FromItem>,
    /// WHERE.
    pub filter: Option<Expression>,
    /// GROUP BY. A direction after a member, which older versions of MySQL allow, is accepted and ignored.
    pub group_by: Vec<Expression>,
    /// WITH ROLLUP.
    pub with_rollup: bool,
    /// HAVING.
    pub having: Option<Expression>,
    /// WINDOW.
    pub windows: Vec<NamedWindow>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// LIMIT.
    pub limit: Option<Limit>,
    /// FOR UPDATE, FOR SHARE or LOCK IN SHARE MODE, as often as they are written.
    pub locks: Vec<TableLocks>,
    /// INTO.
    pub into: IntoTarget,
    /// Whether the query was in brackets, so that clauses after them do not belong to it.
    pub is_bracketed: bool,
}

/// The place for the rows of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IntoTarget {
    /// The client: the query has no INTO.
    #[default]
    None,
    /// User variables.
    Variables(Vec<String>),
    /// A new file of the server.
    File(Box<IntoFile>),
}

impl IntoTarget {
    /// Whether the query has no INTO.
    pub fn is_none(&self) -> bool {
        *self == IntoTarget::None
    }
}

/// INTO OUTFILE or INTO DUMPFILE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntoFile {
    /// The name of the file as written.
    pub file: Vec<u8>,
    /// CHARACTER SET of the file.
    pub character_set: Option<String>,
    /// FIELDS and LINES; `None` for INTO DUMPFILE, which writes the values alone.
    pub format: Option<FileFormat>,
}

/// A query of WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTable {
    /// Its name.
    pub name: String,
    /// The names of its columns; empty if they keep those of the query.
    pub columns: Vec<String>,
    /// The query.
    pub query: Select,
    /// WITH RECURSIVE.
    pub recursive: bool,
    /// The number of rounds of a recursive query, which is a variable of the session.
    pub depth: Option<Expression>,
}

/// A member of a select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`, or `table.*`
    All(Option<ObjectName>),
    /// An expression with its name in the result.
    Expression {
        /// The value of the column in the result.
        expression: Expression,
        /// `AS alias`
        alias: Option<String>,
        /// The expression as written. It names the column if no alias is given and the expression is not a
        /// column.
        text: String,
    },
}

/// A table in FROM, UPDATE or DELETE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReference {
    /// The table's name, which may be qualified.
    pub name: ObjectName,
    /// The table's name within this statement.
    pub alias: Option<String>,
    /// USE, FORCE and IGNORE INDEX.
    pub index_hints: Vec<IndexHint>,
}

/// `USE|FORCE|IGNORE INDEX [FOR ...] (names)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHint {
    /// USE, FORCE or IGNORE.
    pub kind: IndexHintKind,
    /// The indexes by name; `PRIMARY` is the primary key. Only USE may have an empty list.
    pub indexes: Vec<String>,
    /// Whether it is an optimizer hint, whose unknown indexes are no error.
    pub is_comment: bool,
}

/// The kinds of index hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexHintKind {
    Use,
    Force,
    Ignore,
}

/// A member of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// An expression, or an integer literal that refers to a select item, counted from 1.
    pub expression: Expression,
    /// DESC; ASC is the default.
    pub descending: bool,
}

/// `LIMIT [offset,] count`, `LIMIT count [OFFSET offset]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The maximum number of rows.
    pub count: LimitValue,
    /// The number of rows to skip first.
    pub offset: Option<LimitValue>,
}

/// A number of rows in LIMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LimitValue {
    Rows(u64),
    Parameter(ParameterNumber),
}

/// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockingClause {
    /// True for an exclusive lock (FOR UPDATE), false for a shared one.
    pub exclusive: bool,
    /// The reaction to a row that another transaction has locked.
    pub when_locked: WhenLocked,
}

/// A locking clause and its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct TableLocks {
    /// The locks.
    pub clause: LockingClause,
    /// The tables after OF; empty without OF, which means all tables.
    pub names: Vec<ObjectName>,
}

/// The reaction of a locking read to a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WhenLocked {
    Wait,
    /// NOWAIT: the statement fails with error 3572.
    Fail,
    /// SKIP LOCKED: the result omits the row.
    Skip,
}

/// INSERT or REPLACE.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// REPLACE: existing rows with the same key are deleted first.
    pub replace: bool,
    /// IGNORE: errors of single rows become warnings.
    pub ignore: bool,
    /// The target table.
    pub table: ObjectName,
    /// The columns if written. The form `SET column = value` always has them.
    pub columns: Option<Vec<String>>,
    /// The rows to insert.
    pub source: InsertSource,
    /// `AS name [(columns)]` after VALUES.
    pub row_alias: Option<RowAlias>,
    /// The assignments of ON DUPLICATE KEY UPDATE; empty without it.
    pub on_duplicate: Vec<Assignment>,
    /// The items of RETURNING; empty without it.
    pub returning: Vec<SelectItem>,
    /// The optimizer hints after INSERT or REPLACE.
    pub hints: Option<Box<Hints>>,
}

/// The rows of an INSERT.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// VALUES lists, or SET as a single row. A member may be [`Expression::Default`]. An empty row takes all
    /// defaults.
    Rows(Vec<Vec<Expression>>),
    /// Any number of rows with literals of the same classes in the same positions; the execution supplies
    /// their values. In `row`, the parameters from `first` on are the literals of the first row.
    /// [`super::shape::Slot`] describes where those of the other rows are.
    UniformRows {
        /// The first row, which is the form of all rows.
        row: Vec<Expression>,
        /// Parameter number of the row's first lifted literal.
        first: ParameterNumber,
        /// The number of lifted literals in each row.
        width: u32,
    },
    /// INSERT ... SELECT, with or without parentheses around the query.
    Select(Box<Select>),
    /// LOAD DATA: the lines of a file.
    Load(Box<LoadData>),
}

/// The file of LOAD DATA, and how its lines become rows.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// LOCAL: the client sends the file.
    pub is_local: bool,
    /// The name of the file as written.
    pub file: Vec<u8>,
    /// CHARACTER SET of the file.
    pub character_set: Option<String>,
    /// FIELDS and LINES.
    pub format: FileFormat,
    /// LOAD XML: the name of the elements that are rows.
    pub xml_row: Option<Vec<u8>>,
    /// Number of lines to skip at the beginning of the file.
    pub skipped_lines: u64,
    /// The target of each field; `None` for all columns of the table in their order.
    pub fields: Option<Vec<LoadField>>,
    /// Whether the statement has a list of fields. A statement without one gets the fields of a view.
    pub has_field_list: bool,
    /// The assignments of SET. The variables of `fields` become the parameters of a row: the first field is
    /// parameter 0.
    pub assignments: Vec<Assignment>,
}

/// The target of a field of LOAD DATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadField {
    /// The column of this name.
    Column(String),
    /// The user variable of this name.
    Variable(String),
}

/// The format of the text files of LOAD DATA and SELECT ... INTO OUTFILE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY.
    pub field_terminator: Vec<u8>,
    /// ENCLOSED BY; at most one byte.
    pub enclosed_by: Vec<u8>,
    /// OPTIONALLY ENCLOSED BY: only strings are enclosed.
    pub is_optionally_enclosed: bool,
    /// ESCAPED BY; at most one byte.
    pub escaped_by: Vec<u8>,
    /// LINES STARTING BY.
    pub line_start: Vec<u8>,
    /// LINES TERMINATED BY.
    pub line_terminator: Vec<u8>,
}

impl FileFormat {
    /// The format without FIELDS and LINES. With NO_BACKSLASH_ESCAPES there is no escape character.
    pub fn of_dialect(no_backslash_escapes: bool) -> FileFormat {
        FileFormat {
            field_terminator: b"\t".to_vec(),
            enclosed_by: Vec::new(),
            is_optionally_enclosed: false,
            escaped_by: if no_backslash_escapes { Vec::new() } else { b"\\".to_vec() },
            line_start: Vec::new(),
            line_terminator: b"\n".to_vec(),
        }
    }
}

/// The alias of the new row, for ON DUPLICATE KEY UPDATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowAlias {
    /// The alias of the row.
    pub name: String,
    /// Aliases of its columns; empty if the columns keep their names.
    pub columns: Vec<String>,
}

/// `column = value`
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The column to change.
    pub column: ColumnReference,
    /// The new value; [`Expression::Default`] for DEFAULT.
    pub value: Expression,
    /// Whether the column is set only if another one changes: ON UPDATE CURRENT_TIMESTAMP.
    pub if_changed: bool,
}

/// UPDATE of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// IGNORE: errors of single rows become warnings.
    pub ignore: bool,
    /// The table to change.
    pub table: TableReference,
    /// The assignments of SET, executed from left to right.
    pub assignments: Vec<Assignment>,
    /// WHERE.
    pub filter: Option<Expression>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// The maximum number of rows to change.
    pub limit: Option<LimitValue>,
    /// The optimizer hints after UPDATE.
    pub hints: Option<Box<Hints>>,
}

/// DELETE from one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// IGNORE: errors of single rows become warnings.
    pub ignore: bool,
    /// The table to delete from.
    pub table: TableReference,
    /// WHERE.
    pub filter: Option<Expression>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// The maximum number of rows to delete.
    pub limit: Option<LimitValue>,
    /// The items of RETURNING; empty without it.
    pub returning: Vec<SelectItem>,
    /// The optimizer hints after DELETE.
    pub hints: Option<Box<Hints>>,
}

/// UPDATE or DELETE of several tables, or with WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct Modify {
    /// Whether rows are deleted.
    pub is_delete: bool,
    /// IGNORE: errors of single rows become warnings.
    pub ignore: bool,
    /// WITH: the queries that the statement may name like tables.
    pub with: Vec<CommonTable>,
    /// The tables and their joins.
    pub from: FromItem,
    /// The tables to delete from, by name or alias. Empty for UPDATE, and for DELETE of the only table.
    pub targets: Vec<ObjectName>,
    /// The assignments of SET.
    pub assignments: Vec<Assignment>,
    /// WHERE.
    pub filter: Option<Expression>,
    /// ORDER BY, of one table only.
    pub order_by: Vec<OrderItem>,
    /// The maximum number of rows to change, of one table only.
    pub limit: Option<LimitValue>,
    /// The optimizer hints after UPDATE or DELETE.
    pub hints: Option<Box<Hints>>,
    /// Whether a hint says that the tables are joined in the order of FROM.
    pub keeps_order: bool,
    /// The hints about the order in which the tables are joined.
    pub join_orders: Vec<(JoinOrderKind, Vec<String>)>,
}

impl Statement {
    /// Whether it may have optimizer hints.
    pub fn has_hints(&self) -> bool {
        match self {
            Statement::Select(select) => select.has_hints,
            other => other.hints_of_change().is_some(),
        }
    }

    /// The optimizer hints of a statement that changes rows.
    pub fn hints_of_change(&self) -> Option<&Hints> {
        match self {
            Statement::Insert(insert) => insert.hints.as_deref(),
            Statement::Update(update) => update.hints.as_deref(),
            Statement::Delete(delete) => delete.hints.as_deref(),
            Statement::Modify(modify) => modify.hints.as_deref(),
            _ => None,
        }
    }
}

/// SHOW.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Show {
    /// ANALYZE, CHECK, OPTIMIZE or REPAIR TABLE.
    Maintenance {
        kind: TableMaintenance,
        tables: Vec<ObjectName>,
    },
    /// ANALYZE TABLE ... UPDATE HISTOGRAM or DROP HISTOGRAM.
    Histogram(Vec<ObjectName>, HistogramChange),
    /// CHECKSUM TABLE.
    Checksum {
        tables: Vec<ObjectName>,
        /// QUICK.
        quick: bool,
    },
    Databases {
        filter: Option<ShowFilter>,
    },
    Tables {
        full: bool,
        database: Option<String>,
        filter: Option<ShowFilter>,
    },
    TableStatus {
        database: Option<String>,
        filter: Option<ShowFilter>,
    },
    OpenTables {
        database: Option<String>,
        filter: Option<ShowFilter>,
    },
    Columns {
        full: bool,
        table: ObjectName,
        filter: Option<ShowFilter>,
    },
    Index {
        table: ObjectName,
        filter: Option<Expression>,
    },
    CreateTable(ObjectName),
    CreateView(ObjectName),
    CreateDatabase {
        if_not_exists: bool,
        name: String,
    },
    Variables {
        scope: VariableScope,
        filter: Option<ShowFilter>,
    },
    Status {
        scope: VariableScope,
        filter: Option<ShowFilter>,
    },
    Warnings {
        limit: Option<Limit>,
    },
    Errors {
        limit: Option<Limit>,
    },
    /// `SHOW COUNT(*) WARNINGS`
    WarningCount,
    /// `SHOW COUNT(*) ERRORS`
    ErrorCount,
    Engines,
    EngineStatus {
        /// `None` for ALL.
        engine: Option<String>,
    },
    /// `SHOW ENGINE ... MUTEX`, `SHOW ENGINE ... LOGS`
    EngineMutex,
    CharacterSet {
        filter: Option<ShowFilter>,
    },
    Collation {
        filter: Option<ShowFilter>,
    },
    ProcessList {
        full: bool,
    },
    Plugins,
    Privileges,
    Grants {
        account: AccountReference,
        /// USING: the roles that are taken for active.
        using: Vec<AccountReference>,
    },
    CreateUser(AccountReference),
    Triggers {
        database: Option<String>,
        filter: Option<ShowFilter>,
    },
    Events {
        database: Option<String>,
        filter: Option<ShowFilter>,
    },
    ProcedureStatus {
        filter: Option<ShowFilter>,
    },
    FunctionStatus {
        filter: Option<ShowFilter>,
    },
    MasterStatus,
    ReplicaStatus,
    BinaryLogs,
}

/// The LIKE or WHERE clause of SHOW.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowFilter {
    /// The pattern, matched case-insensitively against the first column.
    Like(StringLiteral),
    /// A condition on the columns of the result.
    Where(Expression),
}

/// The statements that check or reorganise tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TableMaintenance {
    Analyze,
    Check,
    Optimize,
    Repair,
}

/// `DESCRIBE table [column]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Describe {
    /// The table to describe.
    pub table: ObjectName,
    /// A column's name, or a LIKE pattern for several.
    pub column: Option<String>,
}

/// EXPLAIN of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// ANALYZE: the statement is executed and measured.
    pub analyze: bool,
    /// The name after FORMAT, as written.
    pub format: Option<String>,
    /// The statement to explain.
    pub statement: Statement,
}

/// SET or DO whose values need a query.
#[derive(Clone, Debug, PartialEq)]
pub struct SetByQuery {
    /// A query with one row; its columns are the values.
    pub query: Select,
    /// The assignments; empty for DO. Each value but DEFAULT is a parameter with the number of its column.
    pub items: Vec<SetItem>,
}

impl SetByQuery {
    /// The statement whose assignments are `items`, if one of their values has a subquery.
    pub(crate) fn of_items(mut items: Vec<SetItem>) -> Statement {
        let values = || items.iter().filter_map(SetItem::value);
        if !values().any(Expression::has_subquery) {
            return Statement::Set(items);
        }
        let query = query_of(values().cloned());
        for (number, value) in items.iter_mut().filter_map(SetItem::value_mut).enumerate() {
            *value = Expression::Parameter(ParameterNumber(number as u32));
        }
        Statement::SetByQuery(Box::new(SetByQuery { query, items }))
    }

    /// The statement that evaluates `values`, for DO.
    pub(crate) fn of_values(values: Vec<Expression>) -> Statement {
        match values.iter().any(Expression::has_subquery) {
            true => Statement::SetByQuery(Box::new(SetByQuery { query: query_of(values), items: Vec::new() })),
            false => Statement::Do(values),
        }
    }
}

/// A query without a table whose columns are `values`.
fn query_of(values: impl IntoIterator<Item = Expression>) -> Select {
    let column = |expression| SelectItem::Expression { expression, alias: None, text: String::new() };
    Select { projection: values.into_iter().map(column).collect(), ..Select::default() }
}

/// One assignment of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// A system variable, for the session or globally.
    SystemVariable {
        /// The scope if written, otherwise the session's.
        scope: Option<VariableScope>,
        /// The variable's name as written.
        name: String,
        /// The new value; `None` for DEFAULT. A bare word is a string.
        value: Option<Expression>,
    },
    /// A user variable of the session.
    UserVariable {
        /// The variable's name without `@`.
        name: String,
        /// The new value.
        value: Expression,
    },
    /// `NAMES name [COLLATE collation]`
    Names {
        /// The character set; `None` for DEFAULT.
        character_set: Option<String>,
        /// The collation; `None` if not written or DEFAULT.
        collation: Option<String>,
    },
    /// `CHARACTER SET name`; `None` for DEFAULT.
    CharacterSet(Option<String>),
    /// `[SESSION|GLOBAL] TRANSACTION ...`
    Transaction {
        /// `None` for the next transaction only.
        scope: Option<VariableScope>,
        /// The isolation level if written.
        isolation: Option<IsolationLevel>,
        /// READ ONLY or READ WRITE if written.
        access: Option<AccessMode>,
    },
}

impl SetItem {
    /// The new value of a variable; `None` for DEFAULT and the other forms.
    fn value(&self) -> Option<&Expression> {
        match self {
            SetItem::SystemVariable { value, .. } => value.as_ref(),
            SetItem::UserVariable { value, .. } => Some(value),
            SetItem::Names { .. } | SetItem::CharacterSet(_) | SetItem::Transaction { .. } => None,
        }
    }

    fn value_mut(&mut self) -> Option<&mut Expression> {
        match self {
            SetItem::SystemVariable { value, .. } => value.as_mut(),
            SetItem::UserVariable { value, .. } => Some(value),
            SetItem::Names { .. } | SetItem::CharacterSet(_) | SetItem::Transaction { .. } => None,
        }
    }
}

/// The isolation levels of MySQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// The access mode of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AccessMode {
    ReadOnly,
    ReadWrite,
}

/// BEGIN or START TRANSACTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StartTransaction {
    /// READ ONLY or READ WRITE if written.
    pub access: Option<AccessMode>,
    /// WITH CONSISTENT SNAPSHOT.
    pub consistent_snapshot: bool,
}

/// The options of COMMIT or ROLLBACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TransactionEnd {
    /// True for `AND CHAIN`, false for `AND NO CHAIN`, `None` if not written.
    pub chain: Option<bool>,
    /// True for `RELEASE`, false for `NO RELEASE`, `None` if not written.
    pub release: Option<bool>,
}

/// A member of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLock {
    /// The table to lock.
    pub table: ObjectName,
    /// The table's alias, by which later statements must use it.
    pub alias: Option<String>,
    /// True for WRITE, false for READ.
    pub write: bool,
    /// READ LOCAL.
    pub local: bool,
}

/// A thing that FLUSH names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushKind {
    /// HOSTS: the errors of addresses.
    Hosts,
    /// LOGS: the files of the logs are opened again.
    Logs,
    /// TABLES. No cache keeps tables, so there is nothing to close; none named means all.
    Tables(Vec<ObjectName>),
}

/// `KILL [CONNECTION|QUERY] id`
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// QUERY: only the running statement ends, and the connection stays.
    pub query_only: bool,
    /// The connection's identifier.
    pub connection: Expression,
}
