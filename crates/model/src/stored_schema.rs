//! The schema as it lies on disk, in one long file because each structure of the schema has its stored twin
//! here: JSON with names of its own (`docs/format.md`, "Schema").
//!
//! The structures here repeat those of [`crate::schema`] on purpose. A field may be renamed there at any
//! time; a name here is part of the format. A reader refuses a version that it does not know, and fields that
//! it does not know.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::access::AccessChange;
use crate::collation::CollationId;
use crate::foreign_key::{ForeignKey, ReferentialAction};
use crate::id::{ColumnNumber, IndexId, SchemaVersion, TableId, TableOwner};
use crate::limit::PARTITIONS_PER_TABLE_MAX;
use crate::row::{AddedColumn, is_valid_addition};
use crate::schema::{
    CheckConstraint, ColumnDefinition, ColumnExpression, DatabaseDefinition, Dictionary, ExpressionKind,
    IndexAttributes, IndexDefinition, IndexKind, IndexState, Placement, Sharing, TableDefinition, TableKind,
    TableLayout, ViewAlgorithm, ViewCheck, ViewDefinition,
};
use crate::stored_type::StoredType;
use crate::stored_value::StoredValue;
use crate::table_options::{KeptOption, KeptOptions};
use crate::value::Value;

/// The version that is written.
pub const SCHEMA_FORMAT_VERSION: u32 = 1;

/// The difference of two dictionaries. From the empty one, it is the whole schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DictionaryChange {
    /// Version of the dictionary after the change.
    pub version: u64,
    /// Ids of tables from this one on were never used.
    pub next_table: TableId,
    /// Databases that are new or changed.
    pub databases: Vec<DatabaseDefinition>,
    /// Names of databases that are gone.
    pub databases_dropped: Vec<Box<str>>,
    /// Tables that are new or changed, hidden ones included.
    pub tables: Vec<TableDefinition>,
    /// Tables that are gone.
    pub tables_dropped: Vec<TableId>,
    /// Accounts that are new, changed or gone.
    pub access: AccessChange,
}

/// Why stored bytes are not a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredSchemaError {
    /// The bytes have a version that this program does not know.
    UnknownVersion(u32),
    /// The bytes do not describe a schema.
    Invalid(Box<str>),
}

impl fmt::Display for StoredSchemaError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredSchemaError::UnknownVersion(version) => {
                write!(formatter, "the stored schema has the unknown version {version}")
            }
            StoredSchemaError::Invalid(message) => write!(formatter, "the stored schema is invalid: {message}"),
        }
    }
}

impl std::error::Error for StoredSchemaError {}

impl DictionaryChange {
    /// The change from one dictionary to a later one.
    /// Temporary tables are left out.
    pub fn between(before: &Dictionary, after: &Dictionary, next_table: TableId) -> DictionaryChange {
        let is_kept = |layout: &&Arc<TableLayout>| !layout.definition.is_temporary();
        let is_new_database = |database: &&DatabaseDefinition| before.database(&database.name) != Some(*database);
        let databases_before = before.databases().filter(|database| after.database(&database.name).is_none());
        let tables_before = before.tables().filter(is_kept);
        let tables_before = tables_before.filter(|layout| after.table(layout.definition.id).is_none());
        let changed_tables = after.tables().filter(is_kept).filter(|layout| {
            let old = before.table(layout.definition.id);
            old.is_none_or(|old| !Arc::ptr_eq(old, layout) && old.definition != layout.definition)
        });
        DictionaryChange {
            version: after.version,
            next_table,
            databases: after.databases().filter(is_new_database).cloned().collect(),
            databases_dropped: databases_before.map(|database| database.name.clone()).collect(),
            tables: changed_tables.map(|layout| layout.definition.clone()).collect(),
            tables_dropped: tables_before.map(|layout| layout.definition.id).collect(),
            access: AccessChange::between(&before.access, &after.access),
        }
    }

    /// Makes the change in a dictionary.
    pub fn apply(self, dictionary: &mut Dictionary) {
        dictionary.version = self.version;
        // Removals first: a table that was renamed to the name of a dropped one keeps that name.
        self.tables_dropped.iter().for_each(|id| dictionary.remove_table(*id));
        for table in &self.tables {
            dictionary.remove_table(table.id);
        }
        self.databases.into_iter().for_each(|database| dictionary.put_database(database));
        self.tables.into_iter().for_each(|table| dictionary.put_table(table));
        self.databases_dropped.iter().for_each(|name| dictionary.remove_database(name));
        Arc::make_mut(&mut dictionary.access).apply(self.access);
    }

    /// The bytes on disk.
    pub fn encode(&self) -> Vec<u8> {
        // Encoding structures of strings, numbers and lists cannot fail.
        serde_json::to_vec(&StoredChange::from(self)).expect("a stored schema is JSON")
    }

    /// The change that the bytes describe.
    ///
    /// # Errors
    /// The version is unknown, or the bytes are not a schema.
    pub fn decode(bytes: &[u8]) -> Result<DictionaryChange, StoredSchemaError> {
        let invalid = |error: serde_json::Error| StoredSchemaError::Invalid(error.to_string().into());
        // The version decides how the other fields are read, so read only the version first.
        let StoredVersion { format } = serde_json::from_slice(bytes).map_err(invalid)?;
        if format != SCHEMA_FORMAT_VERSION {
            return Err(StoredSchemaError::UnknownVersion(format));
        }
        let stored: StoredChange = serde_json::from_slice(bytes).map_err(invalid)?;
        DictionaryChange::try_from(stored)
    }
}

impl From<&DictionaryChange> for StoredChange {
    fn from(change: &DictionaryChange) -> StoredChange {
        StoredChange {
            format: SCHEMA_FORMAT_VERSION,
            version: change.version,
            next_table: change.next_table.0,
            databases: change.databases.iter().map(StoredDatabase::from).collect(),
            databases_dropped: change.databases_dropped.clone(),
            tables: change.tables.iter().map(StoredTable::from).collect(),
            tables_dropped: change.tables_dropped.iter().map(|id| id.0).collect(),
            accounts: Some(change.access.clone()).filter(|access| *access != AccessChange::default()),
        }
    }
}

impl TryFrom<StoredChange> for DictionaryChange {
    type Error = StoredSchemaError;

    fn try_from(stored: StoredChange) -> Result<DictionaryChange, StoredSchemaError> {
        if stored.format != SCHEMA_FORMAT_VERSION {
            return Err(StoredSchemaError::UnknownVersion(stored.format));
        }
        let databases = stored.databases.into_iter().map(DatabaseDefinition::try_from);
        let tables = stored.tables.into_iter().map(TableDefinition::try_from);
        Ok(DictionaryChange {
            version: stored.version,
            next_table: TableId(stored.next_table),
            databases: databases.collect::<Result<_, _>>()?,
            databases_dropped: stored.databases_dropped,
            tables: tables.collect::<Result<_, _>>()?,
            tables_dropped: stored.tables_dropped.into_iter().map(TableId).collect(),
            access: stored.accounts.unwrap_or_default(),
        })
    }
}

#[derive(Deserialize)]
struct StoredVersion {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredChange {
    format: u32,
    version: u64,
    next_table: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    databases: Vec<StoredDatabase>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    databases_dropped: Vec<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tables: Vec<StoredTable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tables_dropped: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accounts: Option<AccessChange>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDatabase {
    name: Box<str>,
    collation: Box<str>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTable {
    id: u32,
    version: u32,
    database: Box<str>,
    name: Box<str>,
    /// The unique index whose entries the table holds: (base table, index).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entries_of: Option<(u32, u16)>,
    /// The table that an ALTER TABLE replaces by this one when the rows are copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaces: Option<u32>,
    /// Whether a CREATE TABLE ... SELECT has not filled the table yet.
    #[serde(default, skip_serializing_if = "is_false")]
    unfinished: bool,
    /// Whether the table is temporary. The log has no such table; other nodes of a cluster learn it.
    #[serde(default, skip_serializing_if = "is_false")]
    temporary: bool,
    /// The session that alone sees the table. It has ended when a log is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<u64>,
    columns: Vec<StoredColumn>,
    indexes: Vec<StoredIndex>,
    partition_columns: Vec<u16>,
    partition_count: u16,
    #[serde(default, skip_serializing_if = "is_false")]
    has_partition_clause: bool,
    /// In a cluster: the node group of the first partition, and how many groups take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node_groups: Option<(u8, u8)>,
    collation: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    comment: Box<str>,
    /// Names of options with their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    options: Vec<(Box<str>, u64)>,
    next_index: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    foreign_keys: Vec<StoredForeignKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<StoredCheck>,
    /// The query of a view. A view has no partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    view: Option<StoredView>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredView {
    query: Box<str>,
    #[serde(default, skip_serializing_if = "StoredAlgorithm::is_undefined")]
    algorithm: StoredAlgorithm,
    definer: Box<str>,
    #[serde(default, skip_serializing_if = "is_false")]
    invoker: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<StoredViewCheck>,
    #[serde(default, skip_serializing_if = "is_false")]
    has_columns: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    updatable: bool,
    collation: Box<str>,
}

#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredAlgorithm {
    #[default]
    Undefined,
    Merge,
    Temptable,
}

impl StoredAlgorithm {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_undefined(&self) -> bool {
        *self == StoredAlgorithm::Undefined
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredViewCheck {
    Cascaded,
    Local,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCheck {
    name: Box<str>,
    expression: Box<str>,
    #[serde(default, skip_serializing_if = "is_false")]
    not_enforced: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredColumn {
    name: Box<str>,
    r#type: StoredType,
    #[serde(default, skip_serializing_if = "is_false")]
    nullable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<StoredValue>,
    #[serde(default, skip_serializing_if = "is_false")]
    default_now: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expression: Option<StoredExpression>,
    #[serde(default, skip_serializing_if = "is_false")]
    on_update_now: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    auto_increment: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    hidden: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    invisible: bool,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    comment: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    display_width: Option<u16>,
    #[serde(default, skip_serializing_if = "is_false")]
    has_collation: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    added: Option<StoredAddition>,
}

/// The value of rows that were written before ALTER TABLE added the column.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAddition {
    order: u16,
    value: StoredValue,
}

/// The text of an expression, by its purpose.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredExpression {
    Default(Box<str>),
    Virtual(Box<str>),
    Stored(Box<str>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredIndex {
    id: u16,
    name: Box<str>,
    kind: StoredIndexKind,
    columns: Vec<u16>,
    #[serde(default, skip_serializing_if = "is_false")]
    building: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    invisible: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    descending: Vec<u16>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    comment: Box<str>,
    #[serde(default, skip_serializing_if = "is_false")]
    names_btree: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    key_block_size: u32,
    #[serde(default, skip_serializing_if = "is_false")]
    of_foreign_key: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum StoredIndexKind {
    Primary { ordered: bool },
    Unique { ordered: bool, entries: u32 },
    Ordered {},
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredForeignKey {
    name: Box<str>,
    columns: Vec<u16>,
    /// (database, table)
    parent: (Box<str>, Box<str>),
    parent_columns: Vec<Box<str>>,
    on_delete: StoredAction,
    on_update: StoredAction,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredAction {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

pub(crate) fn invalid(message: impl fmt::Display) -> StoredSchemaError {
    StoredSchemaError::Invalid(message.to_string().into())
}

pub(crate) fn collation(name: &str) -> Result<CollationId, StoredSchemaError> {
    CollationId::from_name(name).map_err(|_| invalid(format_args!("collation {name} is unknown")))
}

impl From<&DatabaseDefinition> for StoredDatabase {
    fn from(database: &DatabaseDefinition) -> StoredDatabase {
        StoredDatabase { name: database.name.clone(), collation: database.collation.name().into() }
    }
}

impl TryFrom<StoredDatabase> for DatabaseDefinition {
    type Error = StoredSchemaError;

    fn try_from(stored: StoredDatabase) -> Result<DatabaseDefinition, StoredSchemaError> {
        Ok(DatabaseDefinition { collation: collation(&stored.collation)?, name: stored.name })
    }
}

impl From<&TableDefinition> for StoredTable {
    fn from(table: &TableDefinition) -> StoredTable {
        StoredTable {
            id: table.id.0,
            version: table.version.0,
            database: table.database.clone(),
            name: table.name.clone(),
            entries_of: match table.kind {
                TableKind::Base | TableKind::Replacement { .. } | TableKind::View => None,
                TableKind::UniqueEntries { base, index } => Some((base.0, index.0)),
            },
            replaces: match table.kind {
                TableKind::Base | TableKind::UniqueEntries { .. } | TableKind::View => None,
                TableKind::Replacement { of } => Some(of.0),
            },
            unfinished: matches!(table.sharing, Sharing::Unfinished(_)),
            temporary: matches!(table.sharing, Sharing::Temporary(_)),
            owner: table.sharing.owner().map(|owner| owner.0),
            columns: table.columns.iter().map(StoredColumn::from).collect(),
            indexes: table.indexes.iter().map(StoredIndex::from).collect(),
            partition_columns: numbers(&table.partition_columns),
            partition_count: table.partition_count,
            has_partition_clause: table.has_partition_clause,
            node_groups: table.placement.map(|placement| (placement.first, placement.groups)),
            collation: table.collation.name().into(),
            comment: table.comment.clone(),
            options: table.options.iter().map(|(option, value)| (option.name().into(), value)).collect(),
            next_index: table.next_index.0,
            foreign_keys: table.foreign_keys.iter().map(StoredForeignKey::from).collect(),
            checks: table.checks.iter().map(StoredCheck::from).collect(),
            view: table.view.as_deref().map(StoredView::from),
        }
    }
}

impl TryFrom<StoredTable> for TableDefinition {
    type Error = StoredSchemaError;

    fn try_from(stored: StoredTable) -> Result<TableDefinition, StoredSchemaError> {
        let columns = stored.columns.into_iter().map(ColumnDefinition::try_from).collect::<Result<Vec<_>, _>>()?;
        let indexes: Vec<IndexDefinition> = stored.indexes.into_iter().map(IndexDefinition::from).collect();
        let foreign_keys: Vec<ForeignKey> = stored.foreign_keys.into_iter().map(ForeignKey::from).collect();
        let partition_columns = column_numbers(stored.partition_columns);
        let used = indexes.iter().flat_map(|index| &index.columns).chain(&partition_columns);
        let used = used.chain(foreign_keys.iter().flat_map(|key| &key.columns));
        // Later code accesses columns by position without a check, so refuse positions out of range here.
        if let Some(column) = used.into_iter().find(|column| usize::from(column.0) >= columns.len()) {
            return Err(invalid(format_args!("table {} has no column {}", stored.name, column.0)));
        }
        if !matches!(indexes.first().map(|index| index.kind), Some(IndexKind::Primary { .. })) {
            return Err(invalid(format_args!("table {} does not begin with a primary key", stored.name)));
        }
        let has_partitions = (1..=PARTITIONS_PER_TABLE_MAX).contains(&stored.partition_count);
        if has_partitions == stored.view.is_some() {
            return Err(invalid(format_args!("table {} has {} partitions", stored.name, stored.partition_count)));
        }
        if let Some((first, groups)) = stored.node_groups.filter(|(first, groups)| first >= groups) {
            return Err(invalid(format_args!("table {} begins in node group {first} of {groups}", stored.name)));
        }
        let owner = TableOwner(stored.owner.unwrap_or_default());
        Ok(TableDefinition {
            id: TableId(stored.id),
            version: SchemaVersion(stored.version),
            database: stored.database,
            name: stored.name,
            kind: match (stored.entries_of, stored.replaces) {
                (None, None) if stored.view.is_some() => TableKind::View,
                (None, None) => TableKind::Base,
                (None, Some(of)) => TableKind::Replacement { of: TableId(of) },
                (Some((base, index)), _) => TableKind::UniqueEntries { base: TableId(base), index: IndexId(index) },
            },
            sharing: match (stored.unfinished, stored.temporary) {
                (true, _) => Sharing::Unfinished(owner),
                (false, true) => Sharing::Temporary(owner),
                (false, false) => Sharing::Shared,
            },
            columns,
            indexes,
            partition_columns,
            partition_count: stored.partition_count,
            has_partition_clause: stored.has_partition_clause,
            placement: stored.node_groups.map(|(first, groups)| Placement { first, groups }),
            collation: collation(&stored.collation)?,
            comment: stored.comment,
            options: kept_options(&stored.options)?,
            next_index: IndexId(stored.next_index),
            foreign_keys,
            checks: stored.checks.into_iter().map(CheckConstraint::from).collect(),
            view: stored.view.map(ViewDefinition::try_from).transpose()?.map(Box::new),
        })
    }
}

fn kept_options(stored: &[(Box<str>, u64)]) -> Result<KeptOptions, StoredSchemaError> {
    let mut options = KeptOptions::default();
    for (name, value) in stored {
        let option = KeptOption::named(name).ok_or_else(|| invalid(format_args!("there is no table option {name}")))?;
        options.set(option, Some(*value));
    }
    Ok(options)
}

impl From<&ViewDefinition> for StoredView {
    fn from(view: &ViewDefinition) -> StoredView {
        StoredView {
            query: view.query.clone(),
            algorithm: match view.algorithm {
                ViewAlgorithm::Undefined => StoredAlgorithm::Undefined,
                ViewAlgorithm::Merge => StoredAlgorithm::Merge,
                ViewAlgorithm::Temptable => StoredAlgorithm::Temptable,
            },
            definer: view.definer.clone(),
            invoker: view.is_invoker,
            check: view.check.map(|check| match check {
                ViewCheck::Cascaded => StoredViewCheck::Cascaded,
                ViewCheck::Local => StoredViewCheck::Local,
            }),
            has_columns: view.has_columns,
            updatable: view.is_updatable,
            collation: view.collation.name().into(),
        }
    }
}

impl TryFrom<StoredView> for ViewDefinition {
    type Error = StoredSchemaError;

    fn try_from(stored: StoredView) -> Result<ViewDefinition, StoredSchemaError> {
        Ok(ViewDefinition {
            query: stored.query,
            algorithm: match stored.algorithm {
                StoredAlgorithm::Undefined => ViewAlgorithm::Undefined,
                StoredAlgorithm::Merge => ViewAlgorithm::Merge,
                StoredAlgorithm::Temptable => ViewAlgorithm::Temptable,
            },
            definer: stored.definer,
            is_invoker: stored.invoker,
            check: stored.check.map(|check| match check {
                StoredViewCheck::Cascaded => ViewCheck::Cascaded,
                StoredViewCheck::Local => ViewCheck::Local,
            }),
            has_columns: stored.has_columns,
            is_updatable: stored.updatable,
            collation: collation(&stored.collation)?,
        })
    }
}

fn numbers(columns: &[ColumnNumber]) -> Vec<u16> {
    columns.iter().map(|column| column.0).collect()
}

fn column_numbers(numbers: Vec<u16>) -> Vec<ColumnNumber> {
    numbers.into_iter().map(ColumnNumber).collect()
}

impl From<&CheckConstraint> for StoredCheck {
    fn from(check: &CheckConstraint) -> StoredCheck {
        StoredCheck { name: check.name.clone(), expression: check.expression.clone(), not_enforced: !check.enforced }
    }
}

impl From<StoredCheck> for CheckConstraint {
    fn from(stored: StoredCheck) -> CheckConstraint {
        CheckConstraint { name: stored.name, expression: stored.expression, enforced: !stored.not_enforced }
    }
}

impl From<&ColumnExpression> for StoredExpression {
    fn from(expression: &ColumnExpression) -> StoredExpression {
        let text = expression.text.clone();
        match expression.kind {
            ExpressionKind::Default => StoredExpression::Default(text),
            ExpressionKind::Virtual => StoredExpression::Virtual(text),
            ExpressionKind::Stored => StoredExpression::Stored(text),
        }
    }
}

impl From<StoredExpression> for ColumnExpression {
    fn from(stored: StoredExpression) -> ColumnExpression {
        let (text, kind) = match stored {
            StoredExpression::Default(text) => (text, ExpressionKind::Default),
            StoredExpression::Virtual(text) => (text, ExpressionKind::Virtual),
            StoredExpression::Stored(text) => (text, ExpressionKind::Stored),
        };
        ColumnExpression { text, kind }
    }
}

impl From<&ColumnDefinition> for StoredColumn {
    fn from(column: &ColumnDefinition) -> StoredColumn {
        StoredColumn {
            name: column.name.clone(),
            r#type: column.column_type.stored(),
            nullable: column.nullable,
            default: column.default.as_ref().map(StoredValue::from),
            default_now: column.default_now,
            expression: column.expression.as_ref().map(StoredExpression::from),
            on_update_now: column.on_update_now,
            auto_increment: column.auto_increment,
            hidden: column.hidden,
            invisible: column.invisible,
            comment: column.comment.clone(),
            display_width: column.display_width,
            has_collation: column.has_collation,
            added: column
                .added
                .as_ref()
                .map(|added| StoredAddition { order: added.order, value: StoredValue::from(&added.value) }),
        }
    }
}

impl TryFrom<StoredColumn> for ColumnDefinition {
    type Error = StoredSchemaError;

    fn try_from(stored: StoredColumn) -> Result<ColumnDefinition, StoredSchemaError> {
        let column = ColumnDefinition {
            column_type: stored.r#type.try_into()?,
            default: stored.default.map(Value::try_from).transpose()?,
            name: stored.name,
            nullable: stored.nullable,
            default_now: stored.default_now,
            expression: stored.expression.map(ColumnExpression::from),
            on_update_now: stored.on_update_now,
            auto_increment: stored.auto_increment,
            hidden: stored.hidden,
            invisible: stored.invisible,
            comment: stored.comment,
            display_width: stored.display_width,
            has_collation: stored.has_collation,
            added: None,
        };
        let Some(StoredAddition { order, value }) = stored.added else { return Ok(column) };
        let value = Value::try_from(value)?;
        if !is_valid_addition(&column, &value) {
            let text = format!("the value of rows without column '{}' is not of its type", column.name);
            return Err(StoredSchemaError::Invalid(text.into()));
        }
        Ok(ColumnDefinition { added: Some(Box::new(AddedColumn { order, value })), ..column })
    }
}

impl From<&IndexDefinition> for StoredIndex {
    fn from(index: &IndexDefinition) -> StoredIndex {
        StoredIndex {
            id: index.id.0,
            name: index.name.clone(),
            kind: match index.kind {
                IndexKind::Primary { ordered } => StoredIndexKind::Primary { ordered },
                IndexKind::Unique { ordered, entries } => StoredIndexKind::Unique { ordered, entries: entries.0 },
                IndexKind::Ordered => StoredIndexKind::Ordered {},
            },
            columns: numbers(&index.columns),
            building: index.state == IndexState::Building,
            invisible: index.attributes.invisible,
            descending: numbers(&index.attributes.descending),
            comment: index.attributes.comment.clone(),
            names_btree: index.attributes.names_btree,
            key_block_size: index.attributes.key_block_size,
            of_foreign_key: index.attributes.of_foreign_key,
        }
    }
}

impl From<StoredIndex> for IndexDefinition {
    fn from(stored: StoredIndex) -> IndexDefinition {
        IndexDefinition {
            id: IndexId(stored.id),
            name: stored.name,
            kind: match stored.kind {
                StoredIndexKind::Primary { ordered } => IndexKind::Primary { ordered },
                StoredIndexKind::Unique { ordered, entries } => {
                    IndexKind::Unique { ordered, entries: TableId(entries) }
                }
                StoredIndexKind::Ordered {} => IndexKind::Ordered,
            },
            columns: column_numbers(stored.columns),
            state: if stored.building { IndexState::Building } else { IndexState::Online },
            attributes: IndexAttributes {
                invisible: stored.invisible,
                descending: column_numbers(stored.descending),
                comment: stored.comment,
                names_btree: stored.names_btree,
                key_block_size: stored.key_block_size,
                of_foreign_key: stored.of_foreign_key,
            },
        }
    }
}

impl From<&ForeignKey> for StoredForeignKey {
    fn from(key: &ForeignKey) -> StoredForeignKey {
        StoredForeignKey {
            name: key.name.clone(),
            columns: numbers(&key.columns),
            parent: key.parent.clone(),
            parent_columns: key.parent_columns.clone(),
            on_delete: key.on_delete.into(),
            on_update: key.on_update.into(),
        }
    }
}

impl From<StoredForeignKey> for ForeignKey {
    fn from(stored: StoredForeignKey) -> ForeignKey {
        ForeignKey {
            name: stored.name,
            columns: column_numbers(stored.columns),
            parent: stored.parent,
            parent_columns: stored.parent_columns,
            on_delete: stored.on_delete.into(),
            on_update: stored.on_update.into(),
        }
    }
}

impl From<ReferentialAction> for StoredAction {
    fn from(action: ReferentialAction) -> StoredAction {
        match action {
            ReferentialAction::NoAction => StoredAction::NoAction,
            ReferentialAction::Restrict => StoredAction::Restrict,
            ReferentialAction::Cascade => StoredAction::Cascade,
            ReferentialAction::SetNull => StoredAction::SetNull,
        }
    }
}

impl From<StoredAction> for ReferentialAction {
    fn from(stored: StoredAction) -> ReferentialAction {
        match stored {
            StoredAction::NoAction => ReferentialAction::NoAction,
            StoredAction::Restrict => ReferentialAction::Restrict,
            StoredAction::Cascade => ReferentialAction::Cascade,
            StoredAction::SetNull => ReferentialAction::SetNull,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::DataType;

    fn table(id: u32, name: &str) -> TableDefinition {
        let collation = CollationId::DEFAULT;
        let key = ColumnDefinition {
            auto_increment: true,
            display_width: Some(11),
            ..ColumnDefinition::new("id", DataType::integer(4, true))
        };
        let label = ColumnDefinition {
            nullable: true,
            default: Some(Value::Bytes(b"a\x00\xff".to_vec())),
            comment: "with \"quotes\"".into(),
            ..ColumnDefinition::new("label", DataType::varchar(20, collation))
        };
        let index = |id, name: &str, kind, columns: &[u16]| {
            IndexDefinition::new(IndexId(id), name, kind, column_numbers(columns.to_vec()))
        };
        let mut by_label = index(2, "by_label", IndexKind::Ordered, &[1]);
        by_label.state = IndexState::Building;
        by_label.attributes.descending = column_numbers(vec![1]);
        by_label.attributes.comment = "labels".into();
        (by_label.attributes.names_btree, by_label.attributes.key_block_size) = (true, 4);
        let unique = IndexKind::Unique { ordered: true, entries: TableId(id + 1) };
        TableDefinition {
            id: TableId(id),
            version: SchemaVersion(3),
            database: "shop".into(),
            name: name.into(),
            kind: TableKind::Base,
            sharing: Sharing::Shared,
            columns: vec![
                key,
                label,
                ColumnDefinition {
                    added: Some(Box::new(AddedColumn { order: 2, value: Value::Double(0.5) })),
                    ..ColumnDefinition::new("amount", DataType::double())
                },
                ColumnDefinition::new("code", DataType::char(4, CollationId::BINARY)),
                ColumnDefinition {
                    expression: Some(ColumnExpression { text: "lower('B')".into(), kind: ExpressionKind::Default }),
                    ..ColumnDefinition::new("body", DataType::text_or_blob(3, collation))
                },
                ColumnDefinition {
                    expression: Some(ColumnExpression { text: "(`id` + 1)".into(), kind: ExpressionKind::Virtual }),
                    ..ColumnDefinition::new("next", DataType::integer(8, false))
                },
            ],
            indexes: vec![
                index(0, "PRIMARY", IndexKind::Primary { ordered: true }, &[0]),
                index(1, "by_code", unique, &[3]),
                by_label,
            ],
            partition_columns: column_numbers(vec![0]),
            partition_count: 8,
            has_partition_clause: true,
            placement: Some(Placement { first: 1, groups: 2 }),
            collation,
            comment: "goods".into(),
            options: kept_options(&[("MAX_ROWS".into(), 1_000), ("ROW_FORMAT".into(), 4)]).expect("known names"),
            next_index: IndexId(3),
            foreign_keys: vec![ForeignKey {
                name: "fk".into(),
                columns: column_numbers(vec![0]),
                parent: ("shop".into(), "parents".into()),
                parent_columns: vec!["id".into()],
                on_delete: ReferentialAction::Cascade,
                on_update: ReferentialAction::NoAction,
            }],
            checks: [true, false]
                .map(|enforced| {
                    let name = format!("{name}_chk_{enforced}").into();
                    CheckConstraint { name, expression: "(`id` > 0)".into(), enforced }
                })
                .into(),
            view: None,
        }
    }

    fn entries(id: u32, base: u32) -> TableDefinition {
        let kind = TableKind::UniqueEntries { base: TableId(base), index: IndexId(1) };
        TableDefinition { kind, foreign_keys: Vec::new(), ..table(id, "by_code") }
    }

    fn dictionary(version: u64, tables: Vec<TableDefinition>) -> Dictionary {
        let mut dictionary = Dictionary::default();
        dictionary.version = version;
        dictionary.put_database(DatabaseDefinition { name: "shop".into(), collation: CollationId::UTF8MB4_BIN });
        tables.into_iter().for_each(|table| dictionary.put_table(table));
        dictionary
    }

    fn definitions(dictionary: &Dictionary) -> Vec<TableDefinition> {
        dictionary.tables().map(|layout| layout.definition.clone()).collect()
    }

    /// Encodes a change, decodes it, and applies it to `before`.
    fn store_and_apply(before: &Dictionary, after: &Dictionary) -> Dictionary {
        let change = DictionaryChange::between(before, after, TableId(99));
        let read = DictionaryChange::decode(&change.encode()).unwrap();
        assert_eq!(read, change);
        let mut applied = before.clone();
        read.apply(&mut applied);
        applied
    }

    #[test]
    fn a_schema_decodes_to_itself() {
        let after = dictionary(7, vec![table(1, "goods"), entries(2, 1), table(5, "parents")]);
        let applied = store_and_apply(&Dictionary::default(), &after);
        assert_eq!(applied.version, 7);
        assert_eq!(definitions(&applied), definitions(&after));
        assert_eq!(applied.databases().collect::<Vec<_>>(), after.databases().collect::<Vec<_>>());
        assert_eq!(applied.table_named("shop", "goods").unwrap().definition.id, TableId(1));
        assert!(applied.table_named("shop", "by_code").is_none(), "hidden tables have no name");
    }

    #[test]
    fn a_stored_change_has_only_the_differences() {
        let before = dictionary(1, vec![table(1, "goods"), table(5, "parents")]);
        let mut after = before.clone();
        after.version = 2;
        after.remove_table(TableId(5));
        after.put_table(table(6, "orders"));
        let change = DictionaryChange::between(&before, &after, TableId(7));
        assert_eq!(change.tables.iter().map(|table| table.id).collect::<Vec<_>>(), [TableId(6)]);
        assert_eq!((change.tables_dropped, change.databases), (vec![TableId(5)], vec![]));
    }

    #[test]
    fn tables_may_exchange_their_names() {
        let before = dictionary(1, vec![table(1, "goods"), table(5, "parents")]);
        let after = dictionary(2, vec![table(1, "parents"), table(5, "goods")]);
        let applied = store_and_apply(&before, &after);
        assert_eq!(applied.table_named("shop", "goods").unwrap().definition.id, TableId(5));
        assert_eq!(applied.table_named("shop", "parents").unwrap().definition.id, TableId(1));
        let mut without = Dictionary::default();
        without.version = 3;
        without.put_database(DatabaseDefinition { name: "other".into(), collation: CollationId::BINARY });
        let applied = store_and_apply(&before, &without);
        assert_eq!((applied.tables().count(), applied.databases().count()), (0, 1));
    }

    /// The text of release 0.1. It must be read by every later release.
    #[test]
    fn the_stored_form_does_not_change() {
        let text = r#"{"format":1,"version":4,"next_table":9,
            "databases":[{"name":"shop","collation":"utf8mb4_bin"}],"tables":[{"id":1,"version":2,
            "database":"shop","name":"t","columns":[
            {"name":"a","type":{"integer":{"bytes":8,"unsigned":false}},"default":{"int":-5}},
            {"name":"b","type":{"varchar":{"length":7,"collation":"utf8mb4_0900_ai_ci"}},"nullable":true,
             "default":{"bytes":"00fF"}},
            {"name":"c","type":{"double":{}},"default":{"double_bits":4607182418800017408}},
            {"name":"d","type":{"text":{"length_bytes":2,"collation":"binary"}},"nullable":true,
             "default":{"null":{}}}],
            "indexes":[{"id":0,"name":"PRIMARY","kind":{"primary":{"ordered":true}},"columns":[0]},
            {"id":1,"name":"u","kind":{"unique":{"ordered":false,"entries":2}},"columns":[1]},
            {"id":2,"name":"o","kind":{"ordered":{}},"columns":[2,0],"building":true}],
            "partition_columns":[0],"partition_count":2,"collation":"utf8mb4_0900_ai_ci","next_index":3,
            "foreign_keys":[{"name":"f","columns":[1],"parent":["shop","p"],"parent_columns":["x"],
            "on_delete":"set_null","on_update":"restrict"}]}]}"#;
        let change = DictionaryChange::decode(text.as_bytes()).unwrap();
        let table = &change.tables[0];
        let defaults: Vec<Option<Value>> = table.columns.iter().map(|column| column.default.clone()).collect();
        let expected = [Value::Int(-5), Value::Bytes(vec![0, 255]), Value::Double(1.0), Value::Null];
        assert_eq!(defaults, expected.map(Some));
        assert_eq!(table.indexes[2].state, IndexState::Building);
        assert_eq!(table.foreign_keys[0].on_delete, ReferentialAction::SetNull);
        assert_eq!(DictionaryChange::decode(&change.encode()), Ok(change));
    }

    #[test]
    fn text_that_is_no_schema_is_refused() {
        let whole = DictionaryChange::between(&Dictionary::default(), &dictionary(1, vec![table(1, "t")]), TableId(2));
        let text = String::from_utf8(whole.encode()).unwrap();
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} is in {text}");
            DictionaryChange::decode(text.replace(from, to).as_bytes()).unwrap_err().to_string()
        };
        let unknown = refused("\"format\":1", "\"format\":2");
        assert_eq!(unknown, "the stored schema has the unknown version 2");
        for (from, to, message) in [
            ("\"partition_columns\":[0]", "\"partition_columns\":[6]", "no column 6"),
            ("\"partition_count\":8", "\"partition_count\":0", "0 partitions"),
            ("\"node_groups\":[1,2]", "\"node_groups\":[2,2]", "begins in node group 2 of 2"),
            ("\"bytes\":4", "\"bytes\":5", "5 bytes"),
            ("utf8mb4_bin", "utf9", "collation utf9"),
            ("6100ff", "6100f", "hexadecimal"),
            ("\"primary\":{\"ordered\":true}", "\"ordered\":{}", "primary key"),
            ("\"next_table\"", "\"later\":1,\"next_table\"", "unknown field"),
        ] {
            let found = refused(from, to);
            assert!(found.contains(message), "{found}");
        }
    }

    proptest! {
        #[test]
        fn values_are_stored_exactly(number: i64, large: u64, bits: u64, mantissa: i128, bytes: Vec<u8>) {
            let decimal = Value::Decimal(crate::decimal::new(mantissa, 9));
            let values = [Value::Int(number), Value::UInt(large), Value::Bytes(bytes), decimal];
            for value in values {
                let text = serde_json::to_vec(&StoredValue::from(&value)).unwrap();
                let read = Value::try_from(serde_json::from_slice::<StoredValue>(&text).unwrap());
                prop_assert_eq!(read, Ok(value));
            }
            let stored = StoredValue::from(&Value::Double(f64::from_bits(bits)));
            let Ok(Value::Double(read)) = Value::try_from(stored) else { panic!("a double is stored as one") };
            prop_assert_eq!(read.to_bits(), bits);
        }

        #[test]
        fn arbitrary_bytes_give_an_error_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(DictionaryChange::decode(&bytes).is_err());
        }
    }
}
