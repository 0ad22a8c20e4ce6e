//! Statements as written: queries, changes of rows, and what concerns the session. Definitions of tables and
//! databases are in [`super::definition`].

use super::definition::{AlterTable, CreateDatabase, CreateIndex, CreateTable, DropDatabase, DropIndex, DropTable};
use super::expression::{ColumnReference, Expression, Ordinal, StringLiteral, VariableScope};

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Statement {
    /// Nothing but comments.
    Empty,
    Select(Box<Select>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    CreateTable(Box<CreateTable>),
    CreateIndex(Box<CreateIndex>),
    AlterTable(Box<AlterTable>),
    CreateDatabase(CreateDatabase),
    DropTable(DropTable),
    DropIndex(DropIndex),
    DropDatabase(DropDatabase),
    TruncateTable(ObjectName),
    /// What each table is called and is to be called, one after the other.
    RenameTables(Vec<(ObjectName, ObjectName)>),
    /// `USE database`
    Use(String),
    Show(Box<Show>),
    Describe(Box<Describe>),
    Explain(Box<Explain>),
    /// One or more assignments, made from left to right.
    Set(Vec<SetItem>),
    StartTransaction(StartTransaction),
    Commit(TransactionEnd),
    Rollback(TransactionEnd),
    Savepoint(String),
    RollbackToSavepoint(String),
    ReleaseSavepoint(String),
    LockTables(Vec<TableLock>),
    UnlockTables,
    Kill(Box<Kill>),
    /// `DO expression, ...`
    Do(Vec<Expression>),
    /// Recognised, and refused by the binder with error 1235 and this name.
    Unsupported(Unsupported),
}

/// The name of a part of MySQL that is recognised but not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The name for error 1235.
    pub what: &'static str,
}

/// `[database.]name`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The database if written; else the session's.
    pub database: Option<String>,
    /// The name.
    pub name: String,
}

/// A query of at most one table.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Select {
    /// Whether equal rows are returned once.
    pub distinct: bool,
    /// Whether FOUND_ROWS() is to count without the limit.
    pub calc_found_rows: bool,
    /// What is returned.
    pub projection: Vec<SelectItem>,
    /// Where from; `None` without FROM and for DUAL.
    pub from: Option<TableReference>,
    /// WHERE.
    pub filter: Option<Expression>,
    /// GROUP BY; the direction is only there because MySQL once allowed it.
    pub group_by: Vec<Expression>,
    /// WITH ROLLUP.
    pub with_rollup: bool,
    /// HAVING.
    pub having: Option<Expression>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// LIMIT.
    pub limit: Option<Limit>,
    /// FOR UPDATE and its kin.
    pub lock: Option<LockingClause>,
    /// The tables of FOR UPDATE OF; empty without OF.
    pub lock_names: Vec<ObjectName>,
}

/// A member of a select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`, or `table.*`
    All(Option<ObjectName>),
    /// An expression.
    Expression {
        /// Its value.
        expression: Expression,
        /// `AS alias`
        alias: Option<String>,
        /// The expression as written, which names the column if there is no alias and it is no column.
        text: String,
    },
}

/// A table in FROM, UPDATE or DELETE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReference {
    /// The table.
    pub name: ObjectName,
    /// The name it has in this statement.
    pub alias: Option<String>,
    /// USE, FORCE and IGNORE INDEX.
    pub index_hints: Vec<IndexHint>,
}

/// `USE|FORCE|IGNORE INDEX [FOR ...] (names)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHint {
    /// Which of the three.
    pub kind: IndexHintKind,
    /// The indexes; `PRIMARY` is the primary key. Empty only for USE.
    pub indexes: Vec<String>,
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
    /// An expression, or an integer literal that counts select items from 1.
    pub expression: Expression,
    /// DESC.
    pub descending: bool,
}

/// `LIMIT [offset,] count`, `LIMIT count [OFFSET offset]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Most rows.
    pub count: LimitValue,
    /// Rows to pass first.
    pub offset: Option<LimitValue>,
}

/// A number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LimitValue {
    Rows(u64),
    Parameter(Ordinal),
}

/// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockingClause {
    /// Whether the rows are locked for update, else for share.
    pub exclusive: bool,
    /// What happens if a row is locked by somebody else.
    pub when_locked: WhenLocked,
}

/// What a locking read does with a row that is locked by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WhenLocked {
    Wait,
    /// NOWAIT: error 3572.
    Fail,
    /// SKIP LOCKED.
    Skip,
}

/// INSERT or REPLACE.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// REPLACE: rows with the same key are deleted first.
    pub replace: bool,
    /// IGNORE: errors of rows become warnings.
    pub ignore: bool,
    /// Into which table.
    pub table: ObjectName,
    /// The columns if written, which they always are for `SET column = value`.
    pub columns: Option<Vec<String>>,
    /// What is inserted.
    pub source: InsertSource,
    /// `AS name [(columns)]` after VALUES.
    pub row_alias: Option<RowAlias>,
    /// ON DUPLICATE KEY UPDATE; empty without it.
    pub on_duplicate: Vec<Assignment>,
    /// RETURNING; empty without it.
    pub returning: Vec<SelectItem>,
}

/// What INSERT inserts.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// VALUES lists or SET. A member may be [`Expression::Default`]; a row may be empty (all defaults).
    Rows(Vec<Vec<Expression>>),
    /// Any number of rows of literals of the same classes, which come with the execution. Parameters of `row` whose
    /// ordinals begin at `first` stand for the first row; the others follow as [`super::shape::Shape`] describes.
    FoldedRows {
        /// The form of each row.
        row: Vec<Expression>,
        /// The ordinal of the first lifted literal of the row.
        first: Ordinal,
        /// How many literals of a row are lifted.
        width: u32,
    },
    /// INSERT ... SELECT.
    Select(Box<Select>),
}

/// The name of the new row in ON DUPLICATE KEY UPDATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowAlias {
    /// The row's name.
    pub name: String,
    /// Names of its columns; empty if they keep theirs.
    pub columns: Vec<String>,
}

/// `column = value`
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The column that changes.
    pub column: ColumnReference,
    /// What it becomes; [`Expression::Default`] for DEFAULT.
    pub value: Expression,
}

/// UPDATE of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// IGNORE: errors of rows become warnings.
    pub ignore: bool,
    /// The table.
    pub table: TableReference,
    /// SET, from left to right.
    pub assignments: Vec<Assignment>,
    /// WHERE.
    pub filter: Option<Expression>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// LIMIT.
    pub limit: Option<LimitValue>,
}

/// DELETE from one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// IGNORE: errors of rows become warnings.
    pub ignore: bool,
    /// The table.
    pub table: TableReference,
    /// WHERE.
    pub filter: Option<Expression>,
    /// ORDER BY.
    pub order_by: Vec<OrderItem>,
    /// LIMIT.
    pub limit: Option<LimitValue>,
    /// RETURNING; empty without it.
    pub returning: Vec<SelectItem>,
}

/// SHOW.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Show {
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
        engine: String,
    },
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
    /// Of an account if written, else the session's.
    Grants {
        account: Option<String>,
    },
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

/// `LIKE 'pattern'` or `WHERE condition` of SHOW.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowFilter {
    /// The pattern, matched without case against the first column.
    Like(StringLiteral),
    /// A condition on the columns of the answer.
    Where(Expression),
}

/// `DESCRIBE table [column]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Describe {
    /// The table.
    pub table: ObjectName,
    /// The column, or a LIKE pattern of columns.
    pub column: Option<String>,
}

/// EXPLAIN of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    /// Whether the statement is run and measured.
    pub analyze: bool,
    /// FORMAT, as written.
    pub format: Option<String>,
    /// The statement.
    pub statement: Statement,
}

/// A part of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// A system variable.
    SystemVariable {
        /// The scope as written; the session's without one.
        scope: Option<VariableScope>,
        /// The name as written.
        name: String,
        /// `None` for DEFAULT. A bare word is a string.
        value: Option<Expression>,
    },
    /// A variable of the session's own.
    UserVariable {
        /// The name without `@`.
        name: String,
        /// Its value.
        value: Expression,
    },
    /// `NAMES name [COLLATE collation]`
    Names {
        /// The character set; `None` for DEFAULT.
        character_set: Option<String>,
        /// The collation.
        collation: Option<String>,
    },
    /// `CHARACTER SET name`; `None` for DEFAULT.
    CharacterSet(Option<String>),
    /// `[SESSION|GLOBAL] TRANSACTION ...`
    Transaction {
        /// `None` is the next transaction only.
        scope: Option<VariableScope>,
        /// The isolation level if written.
        isolation: Option<IsolationLevel>,
        /// READ ONLY or READ WRITE if written.
        access: Option<AccessMode>,
    },
}

/// Isolation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// What a transaction may do.
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

/// What follows COMMIT or ROLLBACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TransactionEnd {
    /// `AND [NO] CHAIN` if written.
    pub chain: Option<bool>,
    /// `[NO] RELEASE` if written.
    pub release: Option<bool>,
}

/// A member of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLock {
    /// The table.
    pub table: ObjectName,
    /// Its alias.
    pub alias: Option<String>,
    /// Whether it is locked for writing.
    pub write: bool,
    /// READ LOCAL.
    pub local: bool,
}

/// `KILL [CONNECTION|QUERY] id`
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// Whether only the statement ends and the connection stays.
    pub query_only: bool,
    /// The connection's number.
    pub connection: Expression,
}
