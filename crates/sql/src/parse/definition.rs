//! The syntax tree of definitions of tables, indexes and databases.

use junctor_model::schema::{ViewAlgorithm, ViewCheck};

use super::expression::Expression;
use super::statement::{ObjectName, Select, Unsupported};

/// UPDATE HISTOGRAM or DROP HISTOGRAM of ANALYZE TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramChange {
    /// The columns.
    pub columns: Vec<String>,
    /// The number of buckets of UPDATE HISTOGRAM; `None` for DROP HISTOGRAM.
    pub buckets: Option<u64>,
}

/// CREATE TABLE without LIKE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The new table's name.
    pub name: ObjectName,
    /// The columns in order; at least one without a query.
    pub columns: Vec<ColumnDefinition>,
    /// Keys that are separate items of the statement, in order. Keys that are attributes of a column are in
    /// [`ColumnDefinition`].
    pub indexes: Vec<IndexDefinition>,
    /// Foreign keys that are separate items of the statement, in order. Foreign keys that are attributes of a
    /// column are in [`ColumnDefinition`].
    pub foreign_keys: Vec<ForeignKey>,
    /// The CHECK constraints of columns and of the table, in order.
    pub checks: Vec<Check>,
    /// Parts that are recognised but not supported, by name.
    pub unsupported: Vec<Unsupported>,
    /// The table options after the closing parenthesis.
    pub options: Vec<TableOption>,
    /// PARTITION BY KEY.
    pub partitioning: Option<PartitionByKey>,
    /// The query whose rows are inserted.
    pub select: Option<CreateSelect>,
}

/// CREATE VIEW and ALTER VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// OR REPLACE.
    pub or_replace: bool,
    /// ALTER VIEW: the view must exist.
    pub alters: bool,
    /// ALGORITHM; `None` keeps that of an altered view.
    pub algorithm: Option<ViewAlgorithm>,
    /// DEFINER as `user@host`; `None` for the session's account.
    pub definer: Option<String>,
    /// Whether SQL SECURITY is INVOKER, if it is written.
    pub is_invoker: Option<bool>,
    /// The view.
    pub name: ObjectName,
    /// The names of the columns; empty if they are those of the query.
    pub columns: Vec<String>,
    /// The query.
    pub query: Box<Select>,
    /// The text of the query.
    pub text: String,
    /// WITH CHECK OPTION.
    pub check: Option<ViewCheck>,
}

/// DROP VIEW.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropView {
    /// IF EXISTS.
    pub if_exists: bool,
    /// The views.
    pub views: Vec<ObjectName>,
}

/// The query of CREATE TABLE ... SELECT.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSelect {
    /// The query.
    pub query: Box<Select>,
    /// IGNORE: a row with an existing unique key is left out.
    pub ignore: bool,
    /// REPLACE: it replaces the existing row.
    pub replace: bool,
}

/// CREATE TABLE ... LIKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTableLike {
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The new table's name.
    pub name: ObjectName,
    /// The table whose definition is copied.
    pub source: ObjectName,
}

/// A column of CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// The column's name.
    pub name: String,
    /// The column's type with its attributes.
    pub column_type: ColumnType,
    /// True for NULL, false for NOT NULL, `None` if not written.
    pub nullable: Option<bool>,
    /// The value of DEFAULT if written.
    pub default: Option<DefaultValue>,
    /// GENERATED ALWAYS AS.
    pub generated: Option<GeneratedColumn>,
    /// `ON UPDATE CURRENT_TIMESTAMP` as a call of that function.
    pub on_update: Option<Expression>,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// `[PRIMARY] KEY` among the column's attributes.
    pub primary_key: bool,
    /// `UNIQUE [KEY]` among the column's attributes.
    pub unique: bool,
    /// INVISIBLE.
    pub invisible: bool,
    /// COMMENT, with escapes replaced.
    pub comment: Option<Vec<u8>>,
    /// STORAGE: true for DISK, false for MEMORY, `None` if not written or DEFAULT.
    pub on_disk: Option<bool>,
    /// SRID of a spatial type.
    pub srid: Option<u32>,
    /// REFERENCES among the column's attributes.
    pub references: Option<References>,
}

impl ColumnDefinition {
    /// A column without attributes.
    pub fn new(name: String, column_type: ColumnType) -> ColumnDefinition {
        ColumnDefinition {
            name,
            column_type,
            nullable: None,
            default: None,
            generated: None,
            on_update: None,
            auto_increment: false,
            primary_key: false,
            unique: false,
            invisible: false,
            comment: None,
            on_disk: None,
            srid: None,
            references: None,
        }
    }
}

/// The value of DEFAULT.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// A literal, or a call such as CURRENT_TIMESTAMP.
    Plain(Expression),
    /// An expression in parentheses.
    Computed(Expression),
}

/// GENERATED ALWAYS AS (expression).
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedColumn {
    /// The value of the column.
    pub expression: Expression,
    /// STORED instead of VIRTUAL.
    pub stored: bool,
}

/// A CHECK constraint of CREATE TABLE or ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The constraint's name if written.
    pub name: Option<String>,
    /// The condition.
    pub expression: Expression,
    /// Not NOT ENFORCED.
    pub enforced: bool,
    /// The column among whose attributes it is.
    pub column: Option<String>,
}

/// A foreign key of CREATE TABLE or ALTER TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// The constraint's name if written.
    pub name: Option<String>,
    /// The name for the index that is created if no existing index fits.
    pub index_name: Option<String>,
    /// The child's columns, at least one.
    pub columns: Vec<String>,
    /// The parent's table and columns, and the actions.
    pub references: References,
}

/// The parent of a foreign key, and the actions on its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    /// The parent table.
    pub table: ObjectName,
    /// The parent's columns, at least one.
    pub columns: Vec<String>,
    /// ON DELETE if written.
    pub on_delete: Option<ReferentialAction>,
    /// ON UPDATE if written.
    pub on_update: Option<ReferentialAction>,
}

/// The effect on child rows when their parent row is deleted or its key changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ReferentialAction {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// A column type with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// The type without its attributes.
    pub kind: TypeKind,
    /// UNSIGNED, which ZEROFILL implies.
    pub unsigned: bool,
    /// ZEROFILL.
    pub zerofill: bool,
    /// CHARACTER SET; `utf8mb3` for NCHAR and the other national types, `latin1` for ASCII, `ucs2` for
    /// UNICODE.
    pub character_set: Option<String>,
    /// COLLATE.
    pub collation: Option<String>,
    /// BINARY as an attribute of a character type: the binary collation of its character set.
    pub binary_collation: bool,
}

/// The types of columns. Lengths count characters for character types and bytes for binary types.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TypeKind {
    /// `BOOL` is `TINYINT(1)`.
    Integer {
        size: IntegerSize,
        display_width: Option<u32>,
    },
    Bit {
        length: Option<u32>,
    },
    Decimal {
        precision: Option<u32>,
        scale: Option<u32>,
    },
    /// A precision without a scale is in bits. It decides between FLOAT and DOUBLE.
    Float {
        precision: Option<u32>,
        scale: Option<u32>,
    },
    Double {
        precision: Option<u32>,
        scale: Option<u32>,
    },
    Date,
    Time {
        fraction_digits: u32,
    },
    DateTime {
        fraction_digits: u32,
    },
    Timestamp {
        fraction_digits: u32,
    },
    /// The digits are written as in YEAR(4).
    Year {
        digits: Option<u32>,
    },
    Char {
        length: Option<u32>,
    },
    VarChar {
        length: u32,
    },
    Binary {
        length: Option<u32>,
    },
    VarBinary {
        length: u32,
    },
    /// If a length is given, the type is the smallest one with at least that length.
    Text {
        size: LongSize,
        length: Option<u64>,
    },
    Blob {
        size: LongSize,
        length: Option<u64>,
    },
    Enum(Vec<Vec<u8>>),
    Set(Vec<Vec<u8>>),
    Json,
    Vector {
        entries: Option<u32>,
    },
    /// GEOMETRY, POINT and the other spatial types, by name.
    Geometry(&'static str),
}

/// The integer types, of 1, 2, 3, 4 and 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IntegerSize {
    Tiny,
    Small,
    Medium,
    Int,
    Big,
}

/// The sizes of TEXT and BLOB types, whose lengths have 8, 16, 24 and 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LongSize {
    Tiny,
    Normal,
    Medium,
    Long,
}

/// A key of CREATE TABLE or ALTER TABLE, or the index of CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDefinition {
    /// The uniqueness that the index guarantees.
    pub kind: IndexKind,
    /// The index's name; for a constraint without an index name, the constraint's name.
    pub name: Option<String>,
    /// USING if written.
    pub algorithm: Option<IndexAlgorithm>,
    /// The columns in order, at least one.
    pub columns: Vec<IndexColumn>,
    /// COMMENT, with escapes replaced.
    pub comment: Option<Vec<u8>>,
    /// INVISIBLE.
    pub invisible: bool,
    /// KEY_BLOCK_SIZE; 0 if it is not written.
    pub key_block_size: u64,
}

/// The kinds of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexKind {
    Primary,
    Unique,
    Plain,
}

/// The index types of USING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexAlgorithm {
    Hash,
    Ordered,
}

/// A part of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexColumn {
    /// The column's name; empty for an expression.
    pub name: String,
    /// The expression of a functional part.
    pub expression: Option<Box<Expression>>,
    /// The length of the indexed prefix, in characters for character columns and in bytes for binary columns.
    pub prefix_length: Option<u32>,
    /// DESC.
    pub descending: bool,
}

/// A table option after the closing parenthesis of CREATE TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableOption {
    /// ENGINE.
    Engine(String),
    /// CHARACTER SET; `None` for DEFAULT.
    CharacterSet(Option<String>),
    /// COLLATE; `None` for DEFAULT.
    Collation(Option<String>),
    /// The first value of AUTO_INCREMENT.
    AutoIncrement(u64),
    /// COMMENT, with escapes replaced.
    Comment(Vec<u8>),
    /// ROW_FORMAT in upper case.
    RowFormat(String),
    /// TABLESPACE.
    Tablespace(String),
    /// STORAGE: true for DISK, false for MEMORY.
    OnDisk(bool),
    /// Any other option, uninterpreted.
    Other {
        /// The option's name in upper case.
        name: String,
        /// The option's value as written.
        value: String,
    },
}

/// `PARTITION BY [LINEAR] KEY (columns) [PARTITIONS count]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionByKey {
    /// The columns; empty for the primary key.
    pub columns: Vec<String>,
    /// The number of partitions if written, at least 1.
    pub partitions: Option<u64>,
    /// LINEAR.
    pub linear: bool,
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// The table to index.
    pub table: ObjectName,
    /// The index, which has a name and is not primary.
    pub index: IndexDefinition,
    /// ALGORITHM and LOCK.
    pub manner: AlterManner,
}

/// DROP INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropIndex {
    /// The index's table.
    pub table: ObjectName,
    /// The index's name.
    pub name: String,
    /// ALGORITHM and LOCK.
    pub manner: AlterManner,
}

/// How a table change may be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlterManner {
    /// ALGORITHM.
    pub algorithm: AlterAlgorithm,
    /// LOCK.
    pub lock: AlterLock,
    /// WITH VALIDATION: the values of new virtual columns are computed and checked.
    pub validates: bool,
}

/// ALGORITHM of a table change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlterAlgorithm {
    /// DEFAULT.
    #[default]
    Default,
    /// INSTANT: no row is read or written.
    Instant,
    /// INPLACE: sessions read the table meanwhile.
    InPlace,
    /// COPY.
    Copy,
}

/// LOCK of a table change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlterLock {
    /// DEFAULT.
    #[default]
    Default,
    /// NONE: sessions read and write the table meanwhile.
    None,
    /// SHARED: sessions read the table meanwhile.
    Shared,
    /// EXCLUSIVE.
    Exclusive,
}

/// ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// The table to alter.
    pub table: ObjectName,
    /// The changes, in the order of the statement.
    pub changes: Vec<TableChange>,
    /// ALGORITHM and LOCK.
    pub manner: AlterManner,
}

impl AlterTable {
    /// RENAME TO.
    pub fn new_name(&self) -> Option<&ObjectName> {
        self.changes.iter().find_map(|change| match change {
            TableChange::Rename(name) => Some(name),
            _ => None,
        })
    }

    /// The parents of new foreign keys.
    pub fn parents(&self) -> impl Iterator<Item = &ObjectName> {
        self.changes.iter().filter_map(|change| match change {
            TableChange::AddForeignKey(key) => Some(&key.references.table),
            _ => None,
        })
    }

    /// Whether the statement has no effect besides warnings.
    pub fn changes_nothing(&self) -> bool {
        self.changes.iter().all(|change| *change == TableChange::SwitchKeys)
    }
}

/// The position of a column among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnPlace {
    /// FIRST.
    First,
    /// AFTER a column.
    After(String),
}

/// One change of ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub enum TableChange {
    /// ADD COLUMN; without a place, the column is the last one.
    AddColumn {
        /// The new column.
        column: Box<ColumnDefinition>,
        /// Its place.
        place: Option<ColumnPlace>,
    },
    /// MODIFY COLUMN or CHANGE COLUMN.
    ChangeColumn {
        /// The present name.
        from: String,
        /// The new name and definition.
        column: Box<ColumnDefinition>,
        /// The new place, if the column moves.
        place: Option<ColumnPlace>,
    },
    /// DROP COLUMN.
    DropColumn(String),
    /// RENAME COLUMN: the old name and the new one.
    RenameColumn(String, String),
    /// ALTER COLUMN ... SET DEFAULT; `None` for DROP DEFAULT.
    SetDefault(String, Option<DefaultValue>),
    /// ALTER INDEX ... VISIBLE or INVISIBLE.
    ShowIndex(String, bool),
    /// ALTER COLUMN ... SET VISIBLE or INVISIBLE.
    SetVisible(String, bool),
    /// ADD CHECK.
    AddCheck(Check),
    /// DROP CHECK.
    DropCheck(String),
    /// ALTER CHECK and ALTER CONSTRAINT.
    AlterCheck {
        /// The constraint's name.
        name: String,
        /// ENFORCED or NOT ENFORCED.
        enforced: bool,
        /// CONSTRAINT: the name may be that of a key.
        any_constraint: bool,
    },
    /// Table options.
    Options(Vec<TableOption>),
    /// CONVERT TO CHARACTER SET.
    ConvertTo {
        /// The character set; `None` for DEFAULT.
        character_set: Option<String>,
        /// COLLATE.
        collation: Option<String>,
    },
    /// PARTITION BY KEY.
    PartitionBy(PartitionByKey),
    /// REMOVE PARTITIONING.
    RemovePartitioning,
    /// ADD PARTITION PARTITIONS, as the number of partitions to add.
    AddPartitions(u64),
    /// COALESCE PARTITION, as the number of partitions to remove.
    CoalescePartitions(u64),
    /// REORGANIZE PARTITION without names: spreads the rows over all node groups.
    ReorganizePartitions,
    /// ORDER BY, which has no effect here.
    OrderBy,
    /// FORCE, which has no effect here.
    Force,
    /// RENAME TO.
    Rename(ObjectName),
    /// ADD KEY, ADD INDEX, ADD UNIQUE or ADD PRIMARY KEY.
    AddIndex(IndexDefinition),
    /// ADD FOREIGN KEY.
    AddForeignKey(ForeignKey),
    /// DROP INDEX, or DROP PRIMARY KEY as the name `PRIMARY`.
    DropIndex(String),
    /// RENAME INDEX: the old name and the new one.
    RenameIndex(String, String),
    /// DROP FOREIGN KEY.
    DropForeignKey(String),
    /// DROP CONSTRAINT.
    DropConstraint(String),
    /// DISABLE KEYS or ENABLE KEYS, which have no effect here.
    SwitchKeys,
}

/// DROP TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropTable {
    /// TEMPORARY: only temporary tables are dropped.
    pub temporary: bool,
    /// IF EXISTS: a missing table causes a note instead of an error.
    pub if_exists: bool,
    /// The tables to drop, at least one.
    pub tables: Vec<ObjectName>,
}

/// CREATE DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateDatabase {
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The new database's name.
    pub name: String,
    /// CHARACTER SET; `None` if not written or DEFAULT.
    pub character_set: Option<String>,
    /// COLLATE; `None` if not written or DEFAULT.
    pub collation: Option<String>,
}

/// ALTER DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterDatabase {
    /// The database; `None` for the session's.
    pub name: Option<String>,
    /// CHARACTER SET; `None` if not written or DEFAULT.
    pub character_set: Option<String>,
    /// COLLATE; `None` if not written or DEFAULT.
    pub collation: Option<String>,
}

/// DROP DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropDatabase {
    /// IF EXISTS.
    pub if_exists: bool,
    /// The database's name.
    pub name: String,
}
