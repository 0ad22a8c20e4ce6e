//! Foreign keys: as a table declares them, and what they mean for writes to it, found out once for each plan.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use crate::error::{Error, ErrorCode};
use crate::id::{ColumnIndex, IndexId, TableId};
use crate::key::append_value;
use crate::row::RowView;
use crate::schema::{
    ColumnDefinition, Dictionary, IndexDefinition, IndexKind, IndexState, TableDefinition, TableLayout,
};

pub use crate::foreign_key_rule::{check_foreign_key, check_key_name, check_parent};

/// What becomes of rows whose parent goes or gets another key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferentialAction {
    /// The parent stays; checked when the statement is done, as RESTRICT is.
    #[default]
    NoAction,
    /// The parent stays.
    Restrict,
    /// They go or get the new key.
    Cascade,
    /// Their columns become NULL.
    SetNull,
}

impl ReferentialAction {
    /// As SQL and information_schema write it.
    pub fn name(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
        }
    }
}

/// A foreign key of a table. The parent is known by name, for it may be made later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// The name of the constraint.
    pub name: Box<str>,
    /// The columns of the child.
    pub columns: Vec<ColumnIndex>,
    /// (database, table) of the parent.
    pub parent: (Box<str>, Box<str>),
    /// The names of the parent's columns, one for each of the child's.
    pub parent_columns: Vec<Box<str>>,
    /// When the parent row goes.
    pub on_delete: ReferentialAction,
    /// When its key changes.
    pub on_update: ReferentialAction,
}

/// How a key of the parent is found.
#[derive(Clone, Debug)]
pub enum ParentLookup {
    /// It is the primary key.
    Primary,
    /// It is the primary key, and every partition is asked: the table is partitioned by other columns than the whole key, and the
    /// key has no order.
    PrimaryAnywhere,
    /// It is a unique key, whose entries are in this hidden table.
    Unique(Arc<TableLayout>),
    /// It is the beginning of the keys of this ordered index.
    Range(IndexId),
}

/// A foreign key of the table that is written.
#[derive(Clone, Debug)]
pub struct ParentKey {
    /// The columns of the child.
    pub columns: Vec<ColumnIndex>,
    /// The columns of the child whose change has the parent looked for: those of the index by which InnoDB would find the child, and
    /// of its primary key.
    pub watched: Vec<ColumnIndex>,
    /// The parent, its columns and how a key is found; `None` while there is no such parent.
    pub parent: Option<ParentTable>,
    /// The constraint as errors show it.
    pub shown: Box<str>,
}

/// The parent of a foreign key.
#[derive(Clone, Debug)]
pub struct ParentTable {
    /// The table.
    pub layout: Arc<TableLayout>,
    /// Its columns.
    pub columns: Vec<ColumnIndex>,
    /// How a key is found.
    pub lookup: ParentLookup,
}

/// A foreign key of another table, or the same one, that names the table that is written.
#[derive(Clone, Debug)]
pub struct ChildKey {
    /// The columns of the parent.
    pub columns: Vec<ColumnIndex>,
    /// The child.
    pub child: Arc<TableLayout>,
    /// Its columns.
    pub child_columns: Vec<ColumnIndex>,
    /// Its ordered index that begins with them.
    pub index: IndexId,
    /// When the parent row goes.
    pub on_delete: ReferentialAction,
    /// When its key changes.
    pub on_update: ReferentialAction,
    /// Whether child and parent are one table, so that a row may name itself.
    pub is_self: bool,
    /// The constraint as errors show it.
    pub shown: Box<str>,
}

/// What writes to a table have to look after. Keys that a write cannot touch are left out.
#[derive(Clone, Debug, Default)]
pub struct ForeignKeyWork {
    /// Keys whose parents must exist.
    pub parents: Vec<ParentKey>,
    /// Keys whose children must not be left alone.
    pub children: Vec<ChildKey>,
    /// The tables besides the one written that the write may read or change, cascades included; only in plans of statements.
    pub reachable: Vec<TableId>,
}

/// What a write does to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWrite<'a> {
    /// It makes rows.
    Insert,
    /// It changes these columns.
    Update(&'a [ColumnIndex]),
    /// It takes rows away.
    Delete,
    /// It does any of these, as REPLACE does.
    Any,
}

impl ForeignKeyWork {
    /// What a write has to look after; `None` when there is nothing.
    pub fn of(dictionary: &Dictionary, table: &TableDefinition, write: RowWrite<'_>) -> Option<ForeignKeyWork> {
        let touches = |columns: &[ColumnIndex]| match write {
            RowWrite::Update(changed) => columns.iter().any(|column| changed.contains(column)),
            RowWrite::Insert | RowWrite::Delete | RowWrite::Any => true,
        };
        let mut work = ForeignKeyWork::default();
        if write != RowWrite::Delete {
            let keys = table.foreign_keys.iter().map(|key| parent_key(dictionary, table, key));
            work.parents = keys.filter(|key| touches(&key.watched)).collect();
        }
        if write != RowWrite::Insert {
            for (child, key) in dictionary.children_of(&table.database, &table.name) {
                let found = child_key(table, child, key);
                work.children.extend(found.filter(|found| touches(&found.columns)));
            }
        }
        (!work.parents.is_empty() || !work.children.is_empty()).then_some(work)
    }

    /// The same, with the tables that can be reached.
    pub fn with_reach(
        dictionary: &Dictionary,
        table: &TableDefinition,
        write: RowWrite<'_>,
    ) -> Option<Arc<ForeignKeyWork>> {
        let mut work = ForeignKeyWork::of(dictionary, table, write)?;
        let RelatedTables { read, written } = related_tables(dictionary, table);
        work.reachable = BTreeSet::from_iter(read.into_iter().chain(written)).into_iter().collect();
        Some(Arc::new(work))
    }
}

/// Tables besides one that a write of it may read or change by way of foreign keys; some may be among both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelatedTables {
    /// Their rows may be read.
    pub read: BTreeSet<TableId>,
    /// Their rows may be read and changed.
    pub written: BTreeSet<TableId>,
}

/// Every table that a write may read or change by way of foreign keys, `table` left out.
pub fn related_tables(dictionary: &Dictionary, table: &TableDefinition) -> RelatedTables {
    let own = table.id;
    let mut read = BTreeSet::new();
    let mut written = BTreeSet::from([table.id]);
    let mut coming = vec![table];
    while let Some(table) = coming.pop() {
        for key in &table.foreign_keys {
            let parent = dictionary.table_named(&key.parent.0, &key.parent.1);
            read.extend(parent.map(|parent| parent.definition.id));
        }
        for (child, _) in dictionary.children_of(&table.database, &table.name) {
            if written.insert(child.definition.id) {
                coming.push(&child.definition);
            }
        }
    }
    read.remove(&own);
    written.remove(&own);
    RelatedTables { read, written }
}

impl ParentKey {
    /// A foreign key of a table, with its parent as it is now. Indexes that are being built count, for who asks for a key
    /// of a table that is altered has filled them.
    pub fn of(dictionary: &Dictionary, table: &TableDefinition, key: &ForeignKey) -> ParentKey {
        let layout = dictionary.table_named(&key.parent.0, &key.parent.1);
        let parent = layout.and_then(|layout| {
            let mut definition = layout.definition.clone();
            definition.indexes.iter_mut().for_each(|index| index.state = IndexState::Online);
            parent_table(dictionary, layout, &definition, key)
        });
        ParentKey {
            columns: key.columns.clone(),
            watched: watched(table, key),
            parent,
            shown: shown(table, key).into(),
        }
    }
}

fn watched(table: &TableDefinition, key: &ForeignKey) -> Vec<ColumnIndex> {
    let of_index = key_index(table, &key.columns).map_or(&[][..], |index| &index.columns);
    let all = key.columns.iter().chain(of_index).chain(&table.primary().columns);
    all.copied().collect::<BTreeSet<_>>().into_iter().collect()
}

fn parent_key(dictionary: &Dictionary, table: &TableDefinition, key: &ForeignKey) -> ParentKey {
    let layout = dictionary.table_named(&key.parent.0, &key.parent.1);
    let parent = layout.and_then(|layout| parent_table(dictionary, layout, &layout.definition, key));
    ParentKey { columns: key.columns.clone(), watched: watched(table, key), parent, shown: shown(table, key).into() }
}

fn parent_table(
    dictionary: &Dictionary,
    layout: &Arc<TableLayout>,
    definition: &TableDefinition,
    key: &ForeignKey,
) -> Option<ParentTable> {
    let columns = columns_named(definition, &key.parent_columns)?;
    let lookup = parent_lookup(dictionary, definition, &columns)?;
    Some(ParentTable { layout: Arc::clone(layout), columns, lookup })
}

fn child_key(table: &TableDefinition, child: &Arc<TableLayout>, key: &ForeignKey) -> Option<ChildKey> {
    let index = key_index(&child.definition, &key.columns)?;
    Some(ChildKey {
        columns: columns_named(table, &key.parent_columns)?,
        child: Arc::clone(child),
        child_columns: key.columns.clone(),
        index: index.id,
        on_delete: key.on_delete,
        on_update: key.on_update,
        is_self: child.definition.id == table.id,
        shown: shown(&child.definition, key).into(),
    })
}

/// The columns of those names; `None` when one is missing.
pub fn columns_named(table: &TableDefinition, names: &[Box<str>]) -> Option<Vec<ColumnIndex>> {
    names.iter().map(|name| table.column(name)).collect()
}

/// The ordered index by which rows with given values of the columns are found: its key begins with them.
pub fn key_index<'a>(table: &'a TableDefinition, columns: &[ColumnIndex]) -> Option<&'a IndexDefinition> {
    let is_online = |index: &&IndexDefinition| index.state == IndexState::Online;
    table.indexes.iter().filter(is_online).find(|index| index.is_ordered() && index.columns.starts_with(columns))
}

/// How a key of these columns of a parent is found; `None` without an index.
pub fn parent_lookup(
    dictionary: &Dictionary,
    table: &TableDefinition,
    columns: &[ColumnIndex],
) -> Option<ParentLookup> {
    let whole = |index: &&IndexDefinition| index.columns == columns && index.state == IndexState::Online;
    for index in table.indexes.iter().filter(whole) {
        match index.kind {
            IndexKind::Primary { .. } if table.partition_columns == index.columns => {
                return Some(ParentLookup::Primary);
            }
            IndexKind::Unique { entries, .. } => {
                return dictionary.table(entries).map(|layout| ParentLookup::Unique(Arc::clone(layout)));
            }
            IndexKind::Primary { ordered: false } => return Some(ParentLookup::PrimaryAnywhere),
            IndexKind::Primary { ordered: true } | IndexKind::Ordered => {}
        }
    }
    key_index(table, columns).map(|index| ParentLookup::Range(index.id))
}

/// The key of the parent that a child row names, by the child's columns and the parent's; `None` when one of them is NULL.
pub fn key_of_parent(
    row: RowView<'_>,
    own: &[ColumnIndex],
    columns: &[ColumnDefinition],
    others: &[ColumnIndex],
) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for (own, other) in own.iter().zip(others) {
        let value = row.column(*own);
        if value.is_null() {
            return None;
        }
        let column = &columns[usize::from(other.0)];
        append_value(column.column_type, column.nullable, value, &mut key);
    }
    Some(key)
}

/// Error 1452 for a constraint as errors show it.
#[cold]
pub fn no_parent(shown: &str) -> Box<Error> {
    let message = format!("Cannot add or update a child row: a foreign key constraint fails ({shown})");
    Error::new(ErrorCode::NoReferencedRow, message)
}

/// The constraint as errors 1451 and 1452 show it.
pub fn shown(table: &TableDefinition, key: &ForeignKey) -> String {
    let mut text = format!("{}.{}, ", quoted(&table.database), quoted(&table.name));
    append_constraint(table, key, &mut text);
    text
}

/// Appends the constraint as CREATE TABLE has it.
pub fn append_constraint(table: &TableDefinition, key: &ForeignKey, out: &mut String) {
    let names: Vec<String> =
        key.columns.iter().map(|column| quoted(&table.columns[usize::from(column.0)].name)).collect();
    let parent_names: Vec<String> = key.parent_columns.iter().map(|name| quoted(name)).collect();
    // Writing to a String cannot fail.
    let _ = write!(out, "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES ", quoted(&key.name), names.join(", "));
    if key.parent.0 != table.database {
        let _ = write!(out, "{}.", quoted(&key.parent.0));
    }
    let _ = write!(out, "{} ({})", quoted(&key.parent.1), parent_names.join(", "));
    for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        if action != ReferentialAction::NoAction {
            let _ = write!(out, " ON {event} {}", action.name());
        }
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
