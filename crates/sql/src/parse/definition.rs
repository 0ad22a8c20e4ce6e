//! Definitions of tables, indexes and databases as written.

use super::expression::Expression;
use super::statement::{ObjectName, Unsupported};

/// CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The table's name.
    pub name: ObjectName,
    /// The columns in order.
    pub columns: Vec<ColumnDefinition>,
    /// Keys declared beside the columns, in order; PRIMARY KEY and UNIQUE of a column are in the column.
    pub indexes: Vec<IndexDefinition>,
    /// Foreign keys declared beside the columns, in order; those of a column are in the column.
    pub foreign_keys: Vec<ForeignKey>,
    /// Checks and other parts that have no meaning yet, by name.
    pub unsupported: Vec<Unsupported>,
    /// What follows the brackets.
    pub options: Vec<TableOption>,
    /// PARTITION BY KEY.
    pub partitioning: Option<PartitionByKey>,
}

/// A column of CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// NULL or NOT NULL if written.
    pub nullable: Option<bool>,
    /// DEFAULT if written.
    pub default: Option<Expression>,
    /// `ON UPDATE CURRENT_TIMESTAMP`, as a call of that function.
    pub on_update: Option<Expression>,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// `[PRIMARY] KEY` in the column.
    pub primary_key: bool,
    /// `UNIQUE [KEY]` in the column.
    pub unique: bool,
    /// INVISIBLE.
    pub invisible: bool,
    /// COMMENT, escapes replaced.
    pub comment: Option<Vec<u8>>,
    /// STORAGE: true for DISK, false for MEMORY.
    pub on_disk: Option<bool>,
    /// REFERENCES in the column.
    pub references: Option<References>,
}

/// A foreign key of CREATE TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// The constraint's name.
    pub name: Option<String>,
    /// The name of the index that is made for it if there is none.
    pub index_name: Option<String>,
    /// The columns, at least one.
    pub columns: Vec<String>,
    /// The parent.
    pub references: References,
}

/// What a foreign key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    /// The parent.
    pub table: ObjectName,
    /// Its columns, at least one.
    pub columns: Vec<String>,
    /// ON DELETE if written.
    pub on_delete: Option<ReferentialAction>,
    /// ON UPDATE if written.
    pub on_update: Option<ReferentialAction>,
}

/// What becomes of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ReferentialAction {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// A type with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// The type.
    pub kind: TypeKind,
    /// UNSIGNED; ZEROFILL implies it.
    pub unsigned: bool,
    /// ZEROFILL.
    pub zerofill: bool,
    /// CHARACTER SET; `utf8mb3` for NCHAR and its kin, `latin1` and `ucs2` for ASCII and UNICODE.
    pub character_set: Option<String>,
    /// COLLATE.
    pub collation: Option<String>,
    /// The attribute BINARY of a character type: the binary collation of its character set.
    pub binary_collation: bool,
}

/// The types of columns. Lengths are in characters for character types and in bytes for binary ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TypeKind {
    /// BOOL is TINYINT(1).
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
    /// With a precision alone it is in bits and chooses between FLOAT and DOUBLE.
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
    Year,
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
    /// A length chooses the smallest size that holds it.
    Text {
        size: LongSize,
        length: Option<u32>,
    },
    Blob {
        size: LongSize,
        length: Option<u32>,
    },
    Enum(Vec<Vec<u8>>),
    Set(Vec<Vec<u8>>),
    Json,
    /// GEOMETRY, POINT and so on, by name.
    Geometry(&'static str),
}

/// The integer types; in bytes 1, 2, 3, 4 and 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IntegerSize {
    Tiny,
    Small,
    Medium,
    Int,
    Big,
}

/// The TEXT and BLOB types; their lengths have 8, 16, 24 and 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LongSize {
    Tiny,
    Normal,
    Medium,
    Long,
}

/// A key of CREATE TABLE, or the index of CREATE INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDefinition {
    /// What the index promises.
    pub kind: IndexKind,
    /// Its name; for a constraint without an index name, the constraint's name.
    pub name: Option<String>,
    /// USING.
    pub algorithm: Option<IndexAlgorithm>,
    /// The columns in order, at least one.
    pub columns: Vec<IndexColumn>,
    /// COMMENT, escapes replaced.
    pub comment: Option<Vec<u8>>,
    /// INVISIBLE.
    pub invisible: bool,
}

/// Kinds of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexKind {
    Primary,
    Unique,
    Plain,
}

/// What USING names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexAlgorithm {
    Hash,
    Ordered,
}

/// A column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexColumn {
    /// The column's name.
    pub name: String,
    /// How much of the value is indexed, in characters or bytes as the column counts.
    pub prefix_length: Option<u32>,
    /// DESC.
    pub descending: bool,
}

/// What follows the brackets of CREATE TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableOption {
    /// ENGINE.
    Engine(String),
    /// CHARACTER SET; `None` for DEFAULT.
    CharacterSet(Option<String>),
    /// COLLATE; `None` for DEFAULT.
    Collation(Option<String>),
    /// The next value of AUTO_INCREMENT.
    AutoIncrement(u64),
    /// COMMENT, escapes replaced.
    Comment(Vec<u8>),
    /// ROW_FORMAT.
    RowFormat(String),
    /// TABLESPACE.
    Tablespace(String),
    /// STORAGE: true for DISK, false for MEMORY.
    OnDisk(bool),
    /// Any other option, as written.
    Other {
        /// The option in capitals.
        name: String,
        /// Its value as written.
        value: String,
    },
}

/// `PARTITION BY [LINEAR] KEY (columns) [PARTITIONS count]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionByKey {
    /// The columns; empty means the primary key.
    pub columns: Vec<String>,
    /// How many partitions if written, at least 1.
    pub partitions: Option<u64>,
    /// LINEAR.
    pub linear: bool,
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateIndex {
    /// On which table.
    pub table: ObjectName,
    /// The index; it has a name and is not primary.
    pub index: IndexDefinition,
}

/// DROP INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropIndex {
    /// On which table.
    pub table: ObjectName,
    /// The index's name.
    pub name: String,
}

/// ALTER TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterTable {
    /// Which table.
    pub table: ObjectName,
    /// What becomes of it, in the order written.
    pub changes: Vec<TableChange>,
}

/// One change of ALTER TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableChange {
    /// RENAME TO.
    Rename(ObjectName),
    /// ADD of a key.
    AddIndex(IndexDefinition),
    /// ADD FOREIGN KEY.
    AddForeignKey(ForeignKey),
    /// DROP INDEX; DROP PRIMARY KEY by its name.
    DropIndex(String),
    /// RENAME INDEX: the old and the new name.
    RenameIndex(String, String),
    /// DROP FOREIGN KEY.
    DropForeignKey(String),
    /// DROP CONSTRAINT.
    DropConstraint(String),
    /// DISABLE KEYS or ENABLE KEYS, which mean nothing here.
    SwitchKeys,
}

/// DROP TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropTable {
    /// TEMPORARY: only temporary tables.
    pub temporary: bool,
    /// IF EXISTS: a missing table is a note.
    pub if_exists: bool,
    /// At least one table.
    pub tables: Vec<ObjectName>,
}

/// CREATE DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateDatabase {
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The database's name.
    pub name: String,
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
