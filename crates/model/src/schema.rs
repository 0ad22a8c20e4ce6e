//! The definitions of tables and the dictionary, an immutable snapshot of all of them, in one long file
//! because the dictionary answers from the definitions, whose parts refer to each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::access::AccessControl;
use crate::collation::{CharacterSet, CollationId};
use crate::error::{Error, Result};
use crate::foreign_key::ForeignKey;
use crate::id::{ColumnNumber, IndexId, SchemaVersion, TableId, TableOwner};
use crate::number::parse_integer;
use crate::row::AddedColumn;
use crate::row_encoding::{append_text, append_text_in};
use crate::scratch::{Scratch, to_text};
use crate::table_options::KeptOptions;
use crate::temporal::TemporalKind;
use crate::time_to_live::TimeToLive;
use crate::types::{DataType, Form};
use crate::value::{Value, ValueRef};

/// The databases that have only virtual tables, sorted.
pub const SYSTEM_DATABASES: [&str; 5] = ["information_schema", "junctor_info", "mysql", "performance_schema", "sys"];

/// Whether every session may read most tables of a database: those of `information_schema` have the rows that
/// the session may see, and those of `performance_schema` its own variables and the figures of the server, as
/// in MySQL.
pub fn is_open_database(name: &str) -> bool {
    ["information_schema", "performance_schema"].iter().any(|open| open.eq_ignore_ascii_case(name))
}

/// The tables of `performance_schema` that every session may read, as in MySQL. The others need a right.
const OPEN_TABLES: [&str; 7] = [
    "global_status",
    "global_variables",
    "persisted_variables",
    "processlist",
    "session_status",
    "session_variables",
    "variables_info",
];

/// Whether every session may read a table.
pub fn is_open_table(database: &str, table: &str) -> bool {
    database.eq_ignore_ascii_case("information_schema")
        || is_open_database(database) && OPEN_TABLES.iter().any(|open| open.eq_ignore_ascii_case(table))
}

/// The definition of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// The name as written.
    pub name: Box<str>,
    /// The type, with its collation if it is a string.
    pub column_type: DataType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// The default value; `None` if a NOT NULL column has none.
    pub default: Option<Value>,
    /// Whether the default is the time of the statement: DEFAULT CURRENT_TIMESTAMP. `default` is then absent.
    pub default_now: bool,
    /// The expression of the default or of a generated column. `default` is then absent.
    pub expression: Option<ColumnExpression>,
    /// Whether a change of another column sets the time of the statement: ON UPDATE CURRENT_TIMESTAMP.
    pub on_update_now: bool,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// Whether no statement can name the column: the key of a table without a primary key, the prefixes of
    /// another column, for an index, or a dropped column.
    pub hidden: bool,
    /// INVISIBLE: only a statement that names the column sees it.
    pub invisible: bool,
    /// COMMENT.
    pub comment: Box<str>,
    /// The display width as written (`INT(11)`). SHOW and ZEROFILL use it.
    pub display_width: Option<u16>,
    /// Whether COLLATE was written. SHOW CREATE TABLE then prints the collation also if it is the table's.
    pub has_collation: bool,
    /// Set if ALTER TABLE added the column without touching the rows.
    pub added: Option<Box<AddedColumn>>,
}

impl ColumnDefinition {
    /// The width up to which zeros precede a number; 0 without ZEROFILL.
    pub fn zero_fill(&self) -> u8 {
        self.column_type.zero_fill(self.display_width)
    }

    /// A value of this column that ALTER TABLE assigns to a column of another type. Text has the leading
    /// zeros and the fixed digits of a number's type, also as a member of an ENUM or SET. BIT becomes the
    /// digits of its number in CHAR and VARCHAR, and its bytes in TEXT and BLOB. Text becomes the number of
    /// its digits in BIT. The member of an ENUM becomes the document that its text is. Errors: 1041 when the
    /// strings of the row are too long, 3144 for a binary string in a JSON column.
    pub fn copied_to<'r>(
        &self,
        target: &ColumnDefinition,
        value: ValueRef<'r>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let is_text = target.column_type.collation().is_some();
        match target.column_type.form() {
            Form::Bit => {
                return Ok(match value {
                    ValueRef::Bytes(text) => {
                        let number = parse_integer(text, false).value;
                        let signed = i64::try_from(number).map(ValueRef::Int);
                        signed.unwrap_or(ValueRef::UInt(number.clamp(0, u64::MAX.into()) as u64))
                    }
                    // Seconds are rounded with their carry. A negative number has all bits, a negative
                    // decimal none.
                    ValueRef::Temporal(moment) => moment.as_rounded_number(),
                    ValueRef::Double(number) => ValueRef::Double(number.round_ties_even()),
                    ValueRef::Float(number) => ValueRef::Double(f64::from(number).round_ties_even()),
                    value => value,
                });
            }
            Form::Temporal(kind)
                if kind != TemporalKind::Year && matches!(value, ValueRef::Float(_) | ValueRef::Double(_)) =>
            {
                let decimals = self.column_type.wire().decimals;
                return scratch.build_text(|text| append_text_in(value, decimals, 0, text)).map(ValueRef::Bytes);
            }
            // The number 0 of an empty SET would be the value of an ENUM that is no member.
            Form::Enum if self.column_type.form() == Form::Set && matches!(value, ValueRef::Choice(_)) => {
                return to_text(value, scratch).map(ValueRef::Bytes);
            }
            Form::Json
                if matches!(value, ValueRef::Bytes(_)) && self.column_type.collation() == Some(CollationId::BINARY) =>
            {
                return Err(Error::binary_document());
            }
            Form::Json if matches!(value, ValueRef::Choice(_)) => {
                return to_text(value, scratch).map(ValueRef::Bytes);
            }
            _ => {}
        }
        match value {
            ValueRef::Bit(_) if target.column_type.form() != Form::Bytes => Ok(value),
            ValueRef::Bit(bit) if !target.column_type.is_text_or_blob() => {
                scratch.build_text(|text| append_text(ValueRef::UInt(bit.number), text)).map(ValueRef::Bytes)
            }
            ValueRef::Temporal(year) if is_text && year.kind == TemporalKind::Year => {
                to_text(value, scratch).map(ValueRef::Bytes)
            }
            ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Decimal(_) | ValueRef::Double(_) | ValueRef::Float(_)
                if is_text =>
            {
                let decimals = self.column_type.wire().decimals;
                let text = scratch.build_text(|text| append_text_in(value, decimals, self.zero_fill(), text))?;
                Ok(ValueRef::Bytes(text))
            }
            ValueRef::Bytes(_) | ValueRef::Choice(_) => self.recoded_for(target, value, scratch),
            value => Ok(value),
        }
    }

    /// A text as the bytes of its character set for a binary column, and bytes as the text that they are in
    /// the character set of the other column.
    fn recoded_for<'r>(
        &self,
        target: &ColumnDefinition,
        value: ValueRef<'r>,
        scratch: &'r Scratch,
    ) -> Result<ValueRef<'r>> {
        let set_of = |column: &ColumnDefinition| column.column_type.collation().map(CollationId::character_set);
        let recoded = match (set_of(self), set_of(target)) {
            (Some(own), Some(CharacterSet::Binary)) if own.is_recoded() => {
                let text = to_text(value, scratch)?;
                scratch.build_text(|bytes| {
                    own.encode(text, bytes);
                })?
            }
            (Some(CharacterSet::Binary), Some(wanted)) if wanted.is_recoded() => {
                let bytes = to_text(value, scratch)?;
                scratch.build_text(|text| wanted.decode(bytes, text))?
            }
            _ => return Ok(value),
        };
        Ok(ValueRef::Bytes(recoded))
    }

    /// The value of the column in a new row until the statement has assigned one.
    pub fn value_before_assignment(&self) -> Value {
        match &self.default {
            Some(value) => value.clone(),
            None if self.nullable => Value::Null,
            None => self.column_type.implicit_default(),
        }
    }

    /// A NOT NULL column without a default value or any other attribute.
    pub fn new(name: &str, column_type: DataType) -> ColumnDefinition {
        ColumnDefinition {
            name: name.into(),
            column_type,
            nullable: false,
            default: None,
            default_now: false,
            expression: None,
            on_update_now: false,
            auto_increment: false,
            hidden: false,
            invisible: false,
            comment: "".into(),
            display_width: None,
            has_collation: false,
            added: None,
        }
    }

    /// Whether no statement can give the column a value: GENERATED ALWAYS AS.
    pub fn is_generated(&self) -> bool {
        self.expression.as_ref().is_some_and(|expression| expression.kind != ExpressionKind::Default)
    }

    /// Whether the column is the key of a table without a primary key.
    pub fn is_hidden_key(&self) -> bool {
        self.hidden && self.expression.is_none() && !self.is_dropped()
    }

    /// The prefix of another column that the column has for an index.
    pub fn key_prefix(&self) -> Option<KeyPrefix<'_>> {
        let name = self.name.strip_prefix(PREFIX_NAME).filter(|_| self.hidden)?;
        let (length, rest) = name.split_once(' ')?;
        let by_weights = rest.starts_with('w');
        Some(KeyPrefix { column: rest.get(2..)?, length: length.parse().ok()?, by_weights })
    }

    /// The text of the expression that the column has for a functional part of an index.
    pub fn key_expression(&self) -> Option<&str> {
        let text = self.name.strip_prefix(EXPRESSION_NAME).filter(|_| self.hidden);
        text.or_else(|| self.key_list().map(|list| list.text))
    }

    /// The array whose elements the column has for a multi-valued index.
    pub fn key_list(&self) -> Option<KeyList<'_>> {
        if !self.hidden {
            return None;
        }
        let name = self.name.strip_prefix(ELEMENTS_NAME)?;
        let (element_bytes, text) = name.split_once(' ')?;
        Some(KeyList { text, element_bytes: element_bytes.parse().ok()? })
    }

    /// The text of DEFAULT (expression).
    pub fn default_expression(&self) -> Option<&str> {
        self.expression.as_ref().filter(|expression| expression.kind == ExpressionKind::Default).map(|it| &*it.text)
    }
}

/// The beginning of the names of columns with prefixes.
const PREFIX_NAME: &str = "!prefix ";

/// The beginning of the names of columns with the values of an expression, in an index. The text of the
/// expression follows.
pub const EXPRESSION_NAME: &str = "!expression ";

/// The beginning of the names of columns with the elements of an array, in an index. The maximum number of
/// bytes of an element follows, then the text of the expression.
const ELEMENTS_NAME: &str = "!elements ";

/// The array of a multi-valued index. Its elements are in a hidden generated column, as a list
/// ([`crate::key_list`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyList<'n> {
    /// The text of `cast(... as ... array)`.
    pub text: &'n str,
    /// Maximum number of bytes of an encoded element.
    pub element_bytes: u16,
}

impl KeyList<'_> {
    /// The name of the hidden column.
    pub fn column_name(&self) -> String {
        format!("{ELEMENTS_NAME}{} {}", self.element_bytes, self.text)
    }
}

/// The prefixes of a column, in an index. The values are in a hidden generated column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPrefix<'n> {
    /// The name of the indexed column.
    pub column: &'n str,
    /// The length in characters, or in bytes of a binary string.
    pub length: u32,
    /// Whether the values are the first bytes of the column's collation weights instead of its first
    /// characters. Equal texts may have different first characters, but no different weights.
    pub by_weights: bool,
}

impl KeyPrefix<'_> {
    /// The name of the hidden column.
    pub fn column_name(&self) -> String {
        let by = if self.by_weights { 'w' } else { 'c' };
        format!("{PREFIX_NAME}{} {by} {}", self.length, self.column)
    }
}

/// An expression in the definition of a column, in MySQL's normal form. Statements parse and bind the text
/// when they are planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnExpression {
    /// The expression without the parentheses around it.
    pub text: Box<str>,
    /// The purpose of the value.
    pub kind: ExpressionKind,
}

/// The purpose of the value of a column's expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionKind {
    /// DEFAULT (expression).
    Default,
    /// GENERATED ALWAYS AS (expression) VIRTUAL. The value is in the row, as that of a stored one.
    Virtual,
    /// GENERATED ALWAYS AS (expression) STORED.
    Stored,
}

/// A condition that each row of a table meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckConstraint {
    /// Unique among the CHECK constraints of the database.
    pub name: Box<str>,
    /// The condition in MySQL's normal form, without the parentheses around it.
    pub expression: Box<str>,
    /// ENFORCED. Otherwise no row is checked.
    pub enforced: bool,
}

/// The kind of an index, which determines where its entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// The primary key: the partition's hash index, and an ordered index unless `USING HASH`.
    Primary {
        /// Whether the ordered index exists too.
        ordered: bool,
    },
    /// UNIQUE: entries in a hidden table of its own, and an ordered index in each partition unless `USING
    /// HASH`.
    Unique {
        /// Whether the ordered index exists too.
        ordered: bool,
        /// The hidden table: column 0 holds the key bytes, column 1 the reference to the base row.
        entries: TableId,
    },
    /// A non-unique ordered index in each partition.
    Ordered,
}

/// Whether readers may use an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// Writers maintain it, but readers must not use it yet.
    Building,
    /// Readers may use it.
    Online,
}

/// The definition of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDefinition {
    /// Unique within the table and never reused; 0 is the primary key.
    pub id: IndexId,
    /// The name; `PRIMARY` for the primary key.
    pub name: Box<str>,
    /// The kind, with the hidden table of a unique index.
    pub kind: IndexKind,
    /// The key columns in order.
    pub columns: Vec<ColumnNumber>,
    /// Whether readers may use it.
    pub state: IndexState,
    /// Attributes that storage does not need.
    pub attributes: IndexAttributes,
}

/// Attributes of an index that concern plans and SHOW only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexAttributes {
    /// INVISIBLE: no plan uses the index.
    pub invisible: bool,
    /// The key columns with DESC. Their order within the index is ascending: reads go in both directions.
    pub descending: Vec<ColumnNumber>,
    /// COMMENT.
    pub comment: Box<str>,
    /// USING BTREE was written. The type HASH is part of the kind.
    pub names_btree: bool,
    /// KEY_BLOCK_SIZE; 0 if it was not written.
    pub key_block_size: u32,
    /// Whether a foreign key added it. A later index that begins with its columns replaces it, as in InnoDB.
    pub of_foreign_key: bool,
}

impl IndexDefinition {
    /// An index that readers may use.
    pub fn new(id: IndexId, name: &str, kind: IndexKind, columns: Vec<ColumnNumber>) -> IndexDefinition {
        IndexDefinition {
            id,
            name: name.into(),
            kind,
            columns,
            state: IndexState::Online,
            attributes: IndexAttributes::default(),
        }
    }

    /// Whether it has an ordered index in each partition.
    pub fn is_ordered(&self) -> bool {
        match self.kind {
            IndexKind::Primary { ordered } | IndexKind::Unique { ordered, .. } => ordered,
            IndexKind::Ordered => true,
        }
    }

    /// Whether rows with equal keys are refused, NULLs excepted.
    pub fn is_unique(&self) -> bool {
        !matches!(self.kind, IndexKind::Ordered)
    }
}

/// The purpose of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// A table that users see.
    Base,
    /// The entries of a unique index of `base`: column 0 VARBINARY is the key, column 1 VARBINARY the row
    /// reference (the partition as big-endian u16, then the primary key bytes).
    UniqueEntries {
        /// The table that the index belongs to.
        base: TableId,
        /// The index whose entries these are.
        index: IndexId,
    },
    /// The new form of `of`, to which an ALTER TABLE copies the rows. It becomes a base table when the copy
    /// is complete.
    Replacement {
        /// The table that is altered.
        of: TableId,
    },
    /// A view: it has columns but no rows of its own.
    View,
}

/// The query of a view, and how statements use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewDefinition {
    /// The query. Names of tables without a database belong to the view's database.
    pub query: Box<str>,
    /// ALGORITHM.
    pub algorithm: ViewAlgorithm,
    /// DEFINER as `user@host`.
    pub definer: Box<str>,
    /// SQL SECURITY INVOKER; DEFINER is the default.
    pub is_invoker: bool,
    /// WITH CHECK OPTION.
    pub check: Option<ViewCheck>,
    /// Whether the statement named the columns.
    pub has_columns: bool,
    /// Whether rows can be changed through the view.
    pub is_updatable: bool,
    /// `collation_connection` of the session that created the view.
    pub collation: CollationId,
}

/// The ALGORITHM of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewAlgorithm {
    /// The server chooses.
    #[default]
    Undefined,
    /// The view's query is merged into that of the statement.
    Merge,
    /// The view's rows are computed first.
    Temptable,
}

impl ViewAlgorithm {
    /// The name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            ViewAlgorithm::Undefined => "UNDEFINED",
            ViewAlgorithm::Merge => "MERGE",
            ViewAlgorithm::Temptable => "TEMPTABLE",
        }
    }
}

/// WITH CHECK OPTION of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewCheck {
    /// Rows must also fulfil the conditions of the views below.
    Cascaded,
    /// Rows must fulfil the view's own condition.
    Local,
}

impl ViewCheck {
    /// The name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            ViewCheck::Cascaded => "CASCADED",
            ViewCheck::Local => "LOCAL",
        }
    }
}

/// The sessions that can find a table, or the table of a unique index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// All sessions.
    #[default]
    Shared,
    /// One session: a temporary table. Neither its definition nor its rows are in the log or in checkpoints.
    Temporary(TableOwner),
    /// One session, which fills the new table with the rows of a query. A restart drops the table.
    Unfinished(TableOwner),
}

impl Sharing {
    /// The session that alone can find the table.
    pub fn owner(self) -> Option<TableOwner> {
        match self {
            Sharing::Shared => None,
            Sharing::Temporary(owner) | Sharing::Unfinished(owner) => Some(owner),
        }
    }
}

/// The node groups of a cluster that have the partitions of a table. They take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The group of the first partition.
    pub first: u8,
    /// Number of groups, at least 1. Groups that were added later have nothing of the table.
    pub groups: u8,
}

impl Placement {
    /// The group of a partition.
    pub fn group_of(self, partition: u16) -> u8 {
        ((u32::from(self.first) + u32::from(partition)) % u32::from(self.groups.max(1))) as u8
    }

    /// The first place from `position` on at which it is the turn of the group of the first partition.
    pub fn next_turn(self, position: usize) -> usize {
        let (first, groups) = (usize::from(self.first), usize::from(self.groups.max(1)));
        position + (first + groups - position % groups) % groups
    }
}

/// The definition of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDefinition {
    /// Never reused.
    pub id: TableId,
    /// Incremented by every change of the definition.
    pub version: SchemaVersion,
    /// The name of its database.
    pub database: Box<str>,
    /// The name as written.
    pub name: Box<str>,
    /// A table of users, or the entries of a unique index.
    pub kind: TableKind,
    /// The sessions that can find the table.
    pub sharing: Sharing,
    /// The columns in order, a hidden key column last.
    pub columns: Vec<ColumnDefinition>,
    /// The indexes; the first is the primary key.
    pub indexes: Vec<IndexDefinition>,
    /// The columns whose key bytes choose the partition: a subset of the primary key.
    pub partition_columns: Vec<ColumnNumber>,
    /// Number of partitions, from 1 to `limit::PARTITIONS_PER_TABLE_MAX`.
    pub partition_count: u16,
    /// Whether the definition has a PARTITION BY clause. SHOW CREATE TABLE repeats the clause.
    pub has_partition_clause: bool,
    /// The node groups of the partitions; `None` on a node alone, and before main has placed the table.
    pub placement: Option<Placement>,
    /// The default collation of its string columns.
    pub collation: CollationId,
    /// COMMENT.
    pub comment: Box<str>,
    /// The options that are kept for SHOW CREATE TABLE.
    pub options: KeptOptions,
    /// The id of the next index to be added.
    pub next_index: IndexId,
    /// The foreign keys in the order written.
    pub foreign_keys: Vec<ForeignKey>,
    /// The CHECK constraints in the order written.
    pub checks: Vec<CheckConstraint>,
    /// The query of a view; `None` for a table.
    pub view: Option<Box<ViewDefinition>>,
}

impl TableDefinition {
    /// Version 1 of a base table with one partition, which is chosen by the primary key. `indexes` begins
    /// with the primary key and has the ids from 0 on.
    pub fn new(
        id: TableId,
        (database, name): (&str, &str),
        columns: Vec<ColumnDefinition>,
        indexes: Vec<IndexDefinition>,
    ) -> TableDefinition {
        TableDefinition {
            id,
            version: SchemaVersion(1),
            database: database.into(),
            name: name.into(),
            kind: TableKind::Base,
            sharing: Sharing::Shared,
            columns,
            partition_columns: indexes[0].columns.clone(),
            partition_count: 1,
            has_partition_clause: false,
            placement: None,
            collation: CollationId::DEFAULT,
            comment: "".into(),
            options: KeptOptions::default(),
            next_index: IndexId(indexes.len() as u16),
            indexes,
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            view: None,
        }
    }

    /// A view with these columns, without an id. It has no partitions, and no statement uses its index.
    pub fn of_view(names: (&str, &str), columns: Vec<ColumnDefinition>, view: ViewDefinition) -> TableDefinition {
        let kind = IndexKind::Primary { ordered: false };
        let index = IndexDefinition::new(IndexId(0), "PRIMARY", kind, Vec::new());
        TableDefinition {
            kind: TableKind::View,
            partition_count: 0,
            collation: view.collation,
            view: Some(Box::new(view)),
            ..TableDefinition::new(TableId::default(), names, columns, vec![index])
        }
    }

    /// The primary key, which every table has.
    pub fn primary(&self) -> &IndexDefinition {
        &self.indexes[0]
    }

    /// The visible column with this name, case-insensitive.
    pub fn column(&self, name: &str) -> Option<ColumnNumber> {
        let position = self.columns.iter().position(|column| !column.hidden && column.name.eq_ignore_ascii_case(name));
        position.map(|position| ColumnNumber(position as u16))
    }

    /// The index with this name, case-insensitive.
    pub fn index_named(&self, name: &str) -> Option<&IndexDefinition> {
        self.indexes.iter().find(|index| index.name.eq_ignore_ascii_case(name))
    }

    /// The index with this id.
    pub fn index(&self, id: IndexId) -> Option<&IndexDefinition> {
        self.indexes.iter().find(|index| index.id == id)
    }

    /// When rows expire. Statements refuse a wrong option, so one that is found here has no effect.
    pub fn time_to_live(&self) -> Option<TimeToLive> {
        match self.kind {
            TableKind::Base => TimeToLive::of_comment(&self.comment, &self.columns).ok().flatten(),
            TableKind::UniqueEntries { .. } | TableKind::Replacement { .. } | TableKind::View => None,
        }
    }

    /// Whether the table is temporary, so that nothing of it is written to disk.
    #[inline]
    pub fn is_temporary(&self) -> bool {
        matches!(self.sharing, Sharing::Temporary(_))
    }

    /// The columns that get their values from the counter: the AUTO_INCREMENT column and the hidden key
    /// beside it.
    pub fn counted_columns(&self) -> impl Iterator<Item = ColumnNumber> {
        let automatic = self.columns.iter().enumerate().filter(|(_, column)| column.auto_increment);
        automatic.map(|(position, _)| ColumnNumber(position as u16))
    }

    /// The AUTO_INCREMENT column.
    pub fn auto_increment_column(&self) -> Option<ColumnNumber> {
        self.counted_columns().next()
    }
}

/// The definition of a database.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseDefinition {
    /// The name, case-sensitive.
    pub name: Box<str>,
    /// The default collation of its tables.
    pub collation: CollationId,
}

/// All databases and tables at one moment. A published dictionary never changes; a change makes a new one.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    /// Incremented by every change.
    pub version: u64,
    /// The accounts and their rights.
    pub access: Arc<AccessControl>,
    databases: BTreeMap<Box<str>, DatabaseDefinition>,
    tables: BTreeMap<TableId, Arc<TableLayout>>,
    names: BTreeMap<(Box<str>, Box<str>), TableId>,
    /// The tables of single sessions: (owner, database, table).
    owned: BTreeMap<(TableOwner, Box<str>, Box<str>), TableId>,
}

/// A table's definition and the row format derived from it.
#[derive(Clone, Debug)]
pub struct TableLayout {
    /// The definition that the format is derived from.
    pub definition: TableDefinition,
    /// The position of each column in a row image.
    pub row_format: crate::row::RowFormat,
    /// When rows expire, as the comment says; `None` if they do not.
    pub time_to_live: Option<TimeToLive>,
}

impl TableLayout {
    /// Derives the row format.
    pub fn new(definition: TableDefinition) -> TableLayout {
        let row_format = crate::row::RowFormat::new(&definition.columns);
        let time_to_live = definition.time_to_live();
        TableLayout { definition, row_format, time_to_live }
    }
}

impl Dictionary {
    /// The database with exactly this name.
    pub fn database(&self, name: &str) -> Option<&DatabaseDefinition> {
        self.databases.get(name)
    }

    /// All databases, by name.
    pub fn databases(&self) -> impl Iterator<Item = &DatabaseDefinition> {
        self.databases.values()
    }

    /// The table with exactly this name. Names of databases and tables are case-sensitive.
    pub fn table_named(&self, database: &str, name: &str) -> Option<&Arc<TableLayout>> {
        // The map's key owns its strings, so a lookup must allocate one. A lookup happens once per statement
        // shape, off the hot path.
        let id = self.names.get(&(Box::from(database), Box::from(name)))?;
        self.tables.get(id)
    }

    /// The table that a session finds under this name: its temporary table, or the one of all sessions.
    pub fn table_seen_by(&self, owner: Option<TableOwner>, database: &str, name: &str) -> Option<&Arc<TableLayout>> {
        let temporary = owner.and_then(|owner| self.owned_table(owner, database, name));
        let temporary = temporary.filter(|layout| layout.definition.is_temporary());
        temporary.or_else(|| self.table_named(database, name))
    }

    /// The table of one session with this name, temporary or unfinished.
    pub fn owned_table(&self, owner: TableOwner, database: &str, name: &str) -> Option<&Arc<TableLayout>> {
        if self.owned.is_empty() {
            return None;
        }
        let id = self.owned.get(&(owner, Box::from(database), Box::from(name)))?;
        self.tables.get(id)
    }

    /// The tables of one session, by name.
    pub fn tables_owned_by(&self, owner: TableOwner) -> impl Iterator<Item = &Arc<TableLayout>> {
        let from = (owner, Box::from(""), Box::from(""));
        let own = self.owned.range(from..).take_while(move |(key, _)| key.0 == owner);
        own.filter_map(|(_, id)| self.tables.get(id))
    }

    /// The tables of a database that only one session finds.
    pub fn owned_tables_of<'a>(&'a self, database: &'a str) -> impl Iterator<Item = &'a Arc<TableLayout>> {
        self.owned.iter().filter(move |(key, _)| &*key.1 == database).filter_map(|(_, id)| self.tables.get(id))
    }

    /// The table with this id.
    pub fn table(&self, id: TableId) -> Option<&Arc<TableLayout>> {
        self.tables.get(&id)
    }

    /// The tables of a database that users see, by name.
    pub fn tables_of<'a>(&'a self, database: &'a str) -> impl Iterator<Item = &'a Arc<TableLayout>> {
        let first = (Box::from(database), Box::from(""));
        let of_database = self.names.range(first..).take_while(move |(key, _)| &*key.0 == database);
        of_database.filter_map(|(_, id)| self.tables.get(id))
    }

    /// The foreign keys that reference a table, with the tables that declare them.
    pub fn referencing_keys<'a>(
        &'a self,
        database: &'a str,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<TableLayout>, &'a ForeignKey)> {
        let with_keys = self.tables.values().filter(|layout| !layout.definition.foreign_keys.is_empty());
        let keys = with_keys.flat_map(|layout| layout.definition.foreign_keys.iter().map(move |key| (layout, key)));
        keys.filter(move |(_, key)| &*key.parent.0 == database && &*key.parent.1 == name)
    }

    /// The foreign keys that reference this table, with the tables that declare them. A table of one session
    /// is no parent, even if a parent has its name.
    pub fn children_of<'a>(
        &'a self,
        table: &'a TableDefinition,
    ) -> impl Iterator<Item = (&'a Arc<TableLayout>, &'a ForeignKey)> {
        let is_shared = table.sharing == Sharing::Shared;
        self.referencing_keys(&table.database, &table.name).filter(move |_| is_shared)
    }

    /// All tables by id, hidden ones included.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableLayout>> {
        self.tables.values()
    }

    /// The tables with this id and higher ones, in the order of their ids.
    pub fn tables_from(&self, first: TableId) -> impl Iterator<Item = &Arc<TableLayout>> {
        self.tables.range(first..).map(|(_, layout)| layout)
    }

    /// The highest table id, hidden tables included. Tables created later have higher ids.
    pub fn newest_table(&self) -> TableId {
        self.tables.last_key_value().map_or(TableId::default(), |(id, _)| *id)
    }

    /// Adds or replaces a database.
    pub fn put_database(&mut self, database: DatabaseDefinition) {
        self.databases.insert(database.name.clone(), database);
    }

    /// Removes a database, which must have no tables.
    pub fn remove_database(&mut self, name: &str) {
        self.databases.remove(name);
    }

    /// Adds or replaces a table.
    pub fn put_table(&mut self, table: TableDefinition) {
        self.put_layout(Arc::new(TableLayout::new(table)));
    }

    /// Adds or replaces a table whose layout is shared.
    pub fn put_layout(&mut self, layout: Arc<TableLayout>) {
        let table = &layout.definition;
        // Hidden tables are found by id only; their names may not hide a user's table.
        if matches!(table.kind, TableKind::Base | TableKind::View) {
            let (database, name) = (table.database.clone(), table.name.clone());
            match table.sharing.owner() {
                None => self.names.insert((database, name), table.id),
                Some(owner) => self.owned.insert((owner, database, name), table.id),
            };
        }
        self.tables.insert(table.id, layout);
    }

    /// Removes a table.
    pub fn remove_table(&mut self, id: TableId) {
        if let Some(layout) = self.tables.remove(&id) {
            let definition = &layout.definition;
            if let Some(owner) = definition.sharing.owner() {
                let name = (owner, definition.database.clone(), definition.name.clone());
                if self.owned.get(&name) == Some(&id) {
                    self.owned.remove(&name);
                }
                return;
            }
            let name = (definition.database.clone(), definition.name.clone());
            // A hidden table has no name here, but a user's table may have the same one.
            if self.names.get(&name) == Some(&id) {
                self.names.remove(&name);
            }
        }
    }
}
