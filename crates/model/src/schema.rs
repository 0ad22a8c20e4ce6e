//! What a table is: columns, types, indexes, partitions; and the dictionary, an immutable snapshot of all tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::collation::CollationId;
use crate::foreign_key::ForeignKey;
use crate::id::{ColumnIndex, IndexId, SchemaVersion, TableId};
use crate::value::Value;

/// The type of a column. Lengths of character types are in characters, of binary types in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// An integer of 1, 2, 3, 4 or 8 bytes.
    Integer {
        /// Bytes: TINYINT 1, SMALLINT 2, MEDIUMINT 3, INT 4, BIGINT 8.
        bytes: u8,
        /// UNSIGNED.
        unsigned: bool,
    },
    /// DOUBLE.
    Double,
    /// CHAR(length): trailing spaces are not stored.
    Char {
        /// Characters, 0 to 255.
        length: u16,
        /// The collation; its character set is utf8mb4 or binary (CHAR of binary is BINARY(n), padded with zero bytes).
        collation: CollationId,
    },
    /// VARCHAR(length), or VARBINARY(length) with the collation binary.
    VarChar {
        /// Characters (or bytes) at most.
        length: u16,
        /// The collation.
        collation: CollationId,
    },
    /// TINYTEXT to LONGTEXT, or TINYBLOB to LONGBLOB with the collation binary.
    Text {
        /// The width of the length: 1 TINY, 2 plain, 3 MEDIUM, 4 LONG.
        length_bytes: u8,
        /// The collation.
        collation: CollationId,
    },
}

impl ColumnType {
    /// The collation of a string type; `None` for numbers.
    pub fn collation(self) -> Option<CollationId> {
        match self {
            ColumnType::Char { collation, .. }
            | ColumnType::VarChar { collation, .. }
            | ColumnType::Text { collation, .. } => Some(collation),
            ColumnType::Integer { .. } | ColumnType::Double => None,
        }
    }

    /// The bytes of the fixed part of a row that a value takes; `None` for types kept in the variable part.
    pub fn fixed_bytes(self) -> Option<usize> {
        match self {
            ColumnType::Integer { bytes, .. } => Some(usize::from(bytes)),
            ColumnType::Double => Some(8),
            _ => None,
        }
    }

    /// Whether the type is TEXT or BLOB of any width.
    pub fn is_text_or_blob(self) -> bool {
        matches!(self, ColumnType::Text { .. })
    }
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// The name as written.
    pub name: Box<str>,
    /// The type.
    pub column_type: ColumnType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// The default; `None` where a NOT NULL column has none.
    pub default: Option<Value>,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// Whether the column is the hidden key of a table without a primary key.
    pub hidden: bool,
    /// COMMENT.
    pub comment: Box<str>,
    /// The display width as written (`INT(11)`), which only SHOW prints.
    pub display_width: Option<u16>,
}

/// How an index is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// The primary key: the hash index of the partition, and an ordered index unless `USING HASH`.
    Primary {
        /// Whether the ordered index exists too.
        ordered: bool,
    },
    /// UNIQUE: entries in a hidden table of its own, and an ordered index local to each partition unless `USING HASH`.
    Unique {
        /// Whether the local ordered index exists too.
        ordered: bool,
        /// The hidden table: column 0 the key bytes, column 1 the base row's reference.
        entries: TableId,
    },
    /// A plain ordered index, local to each partition.
    Ordered,
}

/// Whether readers may use an index already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// Writers maintain it, readers must not use it yet.
    Building,
    /// In use.
    Online,
}

/// One index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDefinition {
    /// Stable within the table, never reused; 0 is the primary key.
    pub id: IndexId,
    /// The name; `PRIMARY` for the primary key.
    pub name: Box<str>,
    /// How it is kept.
    pub kind: IndexKind,
    /// The key columns in order.
    pub columns: Vec<ColumnIndex>,
    /// Whether readers may use it.
    pub state: IndexState,
}

impl IndexDefinition {
    /// Whether an ordered index exists for it in each partition.
    pub fn is_ordered(&self) -> bool {
        match self.kind {
            IndexKind::Primary { ordered } | IndexKind::Unique { ordered, .. } => ordered,
            IndexKind::Ordered => true,
        }
    }

    /// Whether two rows may not have the same key (NULLs apart).
    pub fn is_unique(&self) -> bool {
        !matches!(self.kind, IndexKind::Ordered)
    }
}

/// What a table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// A table that users see.
    Base,
    /// The entries of a unique index of `base`: column 0 VARBINARY key, column 1 VARBINARY row reference
    /// (partition as u16 big-endian, then the primary key bytes).
    UniqueEntries {
        /// The table that the index belongs to.
        base: TableId,
        /// The index.
        index: IndexId,
    },
}

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDefinition {
    /// Never reused.
    pub id: TableId,
    /// Raised by every change of the definition.
    pub version: SchemaVersion,
    /// The database.
    pub database: Box<str>,
    /// The name as written.
    pub name: Box<str>,
    /// What it is for.
    pub kind: TableKind,
    /// The columns in order, a hidden key column last.
    pub columns: Vec<ColumnDefinition>,
    /// The indexes; the first is the primary key.
    pub indexes: Vec<IndexDefinition>,
    /// The columns whose key bytes choose the partition; a subset of the primary key.
    pub partition_columns: Vec<ColumnIndex>,
    /// How many partitions; 1 to `limit::PARTITIONS_PER_TABLE_MAX`.
    pub partition_count: u16,
    /// Whether PARTITION BY KEY was written.
    pub partition_by_written: bool,
    /// The default collation.
    pub collation: CollationId,
    /// COMMENT.
    pub comment: Box<str>,
    /// The next index id to give.
    pub next_index: IndexId,
    /// The foreign keys in the order written.
    pub foreign_keys: Vec<ForeignKey>,
}

impl TableDefinition {
    /// The primary key.
    pub fn primary(&self) -> &IndexDefinition {
        &self.indexes[0]
    }

    /// The column of that name, case-insensitively, hidden ones left out.
    pub fn column(&self, name: &str) -> Option<ColumnIndex> {
        let position = self.columns.iter().position(|column| !column.hidden && column.name.eq_ignore_ascii_case(name));
        position.map(|position| ColumnIndex(position as u16))
    }

    /// The index of that name, case-insensitively.
    pub fn index_named(&self, name: &str) -> Option<&IndexDefinition> {
        self.indexes.iter().find(|index| index.name.eq_ignore_ascii_case(name))
    }

    /// The index of that id.
    pub fn index(&self, id: IndexId) -> Option<&IndexDefinition> {
        self.indexes.iter().find(|index| index.id == id)
    }

    /// The AUTO_INCREMENT column.
    pub fn auto_increment_column(&self) -> Option<ColumnIndex> {
        self.columns.iter().position(|column| column.auto_increment).map(|position| ColumnIndex(position as u16))
    }
}

/// One database.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseDefinition {
    /// The name.
    pub name: Box<str>,
    /// The default collation of its tables.
    pub collation: CollationId,
}

/// All databases and tables at one moment; shared and never changed. A change makes a new one.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    /// Raised by every change.
    pub version: u64,
    databases: BTreeMap<Box<str>, DatabaseDefinition>,
    tables: BTreeMap<TableId, Arc<TableLayout>>,
    names: BTreeMap<(Box<str>, Box<str>), TableId>,
}

/// A table's definition with what is derived from it once: the row format and the key formats.
#[derive(Clone, Debug)]
pub struct TableLayout {
    /// The definition.
    pub definition: TableDefinition,
    /// Where each column is in a row image.
    pub row_format: crate::row::RowFormat,
}

impl TableLayout {
    /// Derives the layout.
    pub fn new(definition: TableDefinition) -> TableLayout {
        let row_format = crate::row::RowFormat::new(&definition.columns);
        TableLayout { definition, row_format }
    }
}

impl Dictionary {
    /// The database of that exact name.
    pub fn database(&self, name: &str) -> Option<&DatabaseDefinition> {
        self.databases.get(name)
    }

    /// All databases by name.
    pub fn databases(&self) -> impl Iterator<Item = &DatabaseDefinition> {
        self.databases.values()
    }

    /// The table of that exact name (names of databases and tables are case-sensitive).
    pub fn table_named(&self, database: &str, name: &str) -> Option<&Arc<TableLayout>> {
        // The key type owns its strings; building one per statement shape is off the hot path.
        let id = self.names.get(&(Box::from(database), Box::from(name)))?;
        self.tables.get(id)
    }

    /// The table of that id.
    pub fn table(&self, id: TableId) -> Option<&Arc<TableLayout>> {
        self.tables.get(&id)
    }

    /// The tables that users see in a database, by name.
    pub fn tables_of<'a>(&'a self, database: &'a str) -> impl Iterator<Item = &'a Arc<TableLayout>> {
        self.names.iter().filter(move |(key, _)| &*key.0 == database).filter_map(|(_, id)| self.tables.get(id))
    }

    /// The foreign keys that name a table as their parent, with the tables that have them.
    pub fn children_of<'a>(
        &'a self,
        database: &'a str,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<TableLayout>, &'a ForeignKey)> {
        let with_keys = self.tables.values().filter(|layout| !layout.definition.foreign_keys.is_empty());
        let keys = with_keys.flat_map(|layout| layout.definition.foreign_keys.iter().map(move |key| (layout, key)));
        keys.filter(move |(_, key)| &*key.parent.0 == database && &*key.parent.1 == name)
    }

    /// All tables, hidden ones too, by id.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableLayout>> {
        self.tables.values()
    }

    /// The table with the highest id, hidden ones too: later ones were made after it.
    pub fn newest_table(&self) -> TableId {
        self.tables.last_key_value().map_or(TableId::default(), |(id, _)| *id)
    }

    /// Adds or replaces a database.
    pub fn put_database(&mut self, database: DatabaseDefinition) {
        self.databases.insert(database.name.clone(), database);
    }

    /// Takes a database out; its tables must be gone.
    pub fn remove_database(&mut self, name: &str) {
        self.databases.remove(name);
    }

    /// Adds or replaces a table.
    pub fn put_table(&mut self, table: TableDefinition) {
        if table.kind == TableKind::Base {
            self.names.insert((table.database.clone(), table.name.clone()), table.id);
        }
        self.tables.insert(table.id, Arc::new(TableLayout::new(table)));
    }

    /// Takes a table out.
    pub fn remove_table(&mut self, id: TableId) {
        if let Some(layout) = self.tables.remove(&id) {
            let definition = &layout.definition;
            self.names.remove(&(definition.database.clone(), definition.name.clone()));
        }
    }
}
