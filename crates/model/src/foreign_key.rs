//! Foreign keys: their declaration, and the checks and cascades that a write to a table requires. These are
//! derived once per plan.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use crate::error::{Error, ErrorCode};
use crate::id::{ColumnNumber, IndexId, TableId};
use crate::key::append_value;
use crate::key_list::list_column;
use crate::quoted_name::quoted_name;
use crate::row::RowView;
use crate::schema::{
    ColumnDefinition, Dictionary, IndexDefinition, IndexKind, IndexState, TableDefinition, TableLayout,
};

pub use crate::foreign_key_rule::{
    check_foreign_key, check_key_name, check_parent, check_set_null, foreign_keys_of_expiring_rows,
};

/// The effect on child rows when their parent is deleted or its key changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferentialAction {
    /// The write of the parent is refused. Checked at the end of the statement, as RESTRICT is.
    #[default]
    NoAction,
    /// The write of the parent is refused.
    Restrict,
    /// The children are deleted or get the new key.
    Cascade,
    /// The columns of the children become NULL.
    SetNull,
}

impl ReferentialAction {
    /// The name in SQL and information_schema.
    pub fn name(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
        }
    }
}

/// A foreign key of a table. It refers to the parent by name, because the parent may be created later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// The name of the constraint.
    pub name: Box<str>,
    /// The columns of the child.
    pub columns: Vec<ColumnNumber>,
    /// (database, table) of the parent.
    pub parent: (Box<str>, Box<str>),
    /// The names of the parent's columns, one for each column of the child.
    pub parent_columns: Vec<Box<str>>,
    /// The action when the parent row is deleted.
    pub on_delete: ReferentialAction,
    /// The action when the parent's key changes.
    pub on_update: ReferentialAction,
}

/// How a key of the parent is looked up.
#[derive(Clone, Debug)]
pub enum ParentLookup {
    /// By the primary key.
    Primary,
    /// By the primary key in every partition: the table is not partitioned by the whole key, and the key has
    /// no ordered index.
    PrimaryAnywhere,
    /// By a unique key, whose entries are in this hidden table.
    Unique(Arc<TableLayout>),
    /// By this ordered index, whose keys begin with the columns.
    Range(IndexId),
}

/// A foreign key of the written table.
#[derive(Clone, Debug)]
pub struct ParentKey {
    /// The columns of the child.
    pub columns: Vec<ColumnNumber>,
    /// The columns of the child whose change requires a check of the parent: those of the index by which
    /// InnoDB would find the child, and those of its primary key.
    pub watched: Vec<ColumnNumber>,
    /// The parent, its columns and its lookup; `None` while the parent does not exist.
    pub parent: Option<ParentTable>,
    /// The constraint as errors show it.
    pub shown: Box<str>,
}

/// The parent of a foreign key.
#[derive(Clone, Debug)]
pub struct ParentTable {
    /// The parent's definition and row format.
    pub layout: Arc<TableLayout>,
    /// The referenced columns of the parent.
    pub columns: Vec<ColumnNumber>,
    /// How a key is looked up.
    pub lookup: ParentLookup,
}

/// A foreign key whose parent is the written table. The child may be another table or the same one.
#[derive(Clone, Debug)]
pub struct ChildKey {
    /// The columns of the parent.
    pub columns: Vec<ColumnNumber>,
    /// The child's definition and row format.
    pub child: Arc<TableLayout>,
    /// The referencing columns of the child.
    pub child_columns: Vec<ColumnNumber>,
    /// The child's ordered index that begins with those columns.
    pub index: IndexId,
    /// The action when the parent row is deleted.
    pub on_delete: ReferentialAction,
    /// The action when the parent's key changes.
    pub on_update: ReferentialAction,
    /// Whether child and parent are the same table, so that a row may reference itself.
    pub is_self: bool,
    /// The constraint as errors show it.
    pub shown: Box<str>,
}

/// The foreign keys that a write to a table must check. Keys that it cannot affect are left out.
#[derive(Clone, Debug, Default)]
pub struct ForeignKeyWork {
    /// Keys whose parents must exist.
    pub parents: Vec<ParentKey>,
    /// Keys whose children must not lose their parent.
    pub children: Vec<ChildKey>,
    /// The other tables that the write may read or change, cascades included. Set only in plans of
    /// statements.
    pub reachable: Vec<TableId>,
}

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWrite<'a> {
    /// Adds rows.
    Insert,
    /// Changes these columns.
    Update(&'a [ColumnNumber]),
    /// Deletes rows.
    Delete,
    /// Any of these, as REPLACE does.
    Any,
}

impl ForeignKeyWork {
    /// The foreign keys that a write must check; `None` if there are none.
    pub fn of(dictionary: &Dictionary, table: &TableDefinition, write: RowWrite<'_>) -> Option<ForeignKeyWork> {
        let touches = |columns: &[ColumnNumber]| match write {
            RowWrite::Update(changed) => columns.iter().any(|column| changed.contains(column)),
            RowWrite::Insert | RowWrite::Delete | RowWrite::Any => true,
        };
        let mut work = ForeignKeyWork::default();
        if write != RowWrite::Delete {
            let keys = table.foreign_keys.iter().map(|key| parent_key(dictionary, table, key));
            work.parents = keys.filter(|key| touches(&key.watched)).collect();
        }
        if write != RowWrite::Insert {
            for (child, key) in dictionary.children_of(table) {
                let found = child_key(table, child, key);
                work.children.extend(found.filter(|found| touches(&found.columns)));
            }
        }
        (!work.parents.is_empty() || !work.children.is_empty()).then_some(work)
    }

    /// Like `of`, and with the tables that cascades can reach.
    pub fn with_reachable_tables(
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

/// The other tables that a write to a table may read or change because of foreign keys. A table may be in
/// both sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelatedTables {
    /// Their rows may be read.
    pub read: BTreeSet<TableId>,
    /// Their rows may be read and changed.
    pub written: BTreeSet<TableId>,
}

/// Every table except `table` that a write to it may read or change because of foreign keys.
pub fn related_tables(dictionary: &Dictionary, table: &TableDefinition) -> RelatedTables {
    let own = table.id;
    let mut read = BTreeSet::new();
    // Only children are followed further: cascades change children, never parents.
    let mut written = BTreeSet::from([table.id]);
    let mut pending = vec![table];
    while let Some(table) = pending.pop() {
        for key in &table.foreign_keys {
            let parent = dictionary.table_named(&key.parent.0, &key.parent.1);
            read.extend(parent.map(|parent| parent.definition.id));
        }
        for (child, _) in dictionary.children_of(table) {
            if written.insert(child.definition.id) {
                pending.push(&child.definition);
            }
        }
    }
    read.remove(&own);
    // The caller knows the written table itself.
    written.remove(&own);
    RelatedTables { read, written }
}

impl ParentKey {
    /// A foreign key of a table, with its parent as it is now. Indexes in the state `Building` count too: the
    /// caller alters the table and has already filled them.
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

fn watched(table: &TableDefinition, key: &ForeignKey) -> Vec<ColumnNumber> {
    let of_index = supporting_index(table, &key.columns).map_or(&[][..], |index| &index.columns);
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
    let index = supporting_index(&child.definition, &key.columns)?;
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

/// The columns with these names; `None` if one is missing.
pub fn columns_named(table: &TableDefinition, names: &[Box<str>]) -> Option<Vec<ColumnNumber>> {
    names.iter().map(|name| table.column(name)).collect()
}

/// An online ordered index whose key begins with the columns, so that rows with given values can be found.
pub fn supporting_index<'a>(table: &'a TableDefinition, columns: &[ColumnNumber]) -> Option<&'a IndexDefinition> {
    let is_online = |index: &&IndexDefinition| index.state == IndexState::Online;
    // A row without elements has no entry in a multi-valued index.
    let has_all_rows = |index: &IndexDefinition| list_column(&table.columns, index).is_none();
    let mut online = table.indexes.iter().filter(is_online);
    online.find(|index| index.is_ordered() && index.columns.starts_with(columns) && has_all_rows(index))
}

/// How a key of these columns of the parent is looked up; `None` without a suitable index.
pub fn parent_lookup(
    dictionary: &Dictionary,
    table: &TableDefinition,
    columns: &[ColumnNumber],
) -> Option<ParentLookup> {
    let whole = |index: &&IndexDefinition| index.columns == columns && index.state == IndexState::Online;
    // A lookup of one partition or one unique entry is preferred to a range in every partition.
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
    supporting_index(table, columns).map(|index| ParentLookup::Range(index.id))
}

/// The parent's key that a child row references, from the child's columns `own` and the parent's columns
/// `others`. `None` if one of the values is NULL.
pub fn key_of_parent(
    row: RowView<'_>,
    own: &[ColumnNumber],
    columns: &[ColumnDefinition],
    others: &[ColumnNumber],
) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for (own, other) in own.iter().zip(others) {
        let value = row.column(*own);
        if value.is_null() {
            return None;
        }
        let column = &columns[usize::from(other.0)];
        append_value(column.column_type.key_part(), column.nullable, value, &mut key);
    }
    Some(key)
}

/// Error 1452 for a constraint in the form of [`shown`].
#[cold]
pub fn no_parent(shown: &str) -> Box<Error> {
    let message = format!("Cannot add or update a child row: a foreign key constraint fails ({shown})");
    Error::new(ErrorCode::NoReferencedRow, message)
}

/// The constraint as errors 1451 and 1452 show it.
pub fn shown(table: &TableDefinition, key: &ForeignKey) -> String {
    let mut text = format!("{}.{}, ", quoted_name(&table.database), quoted_name(&table.name));
    append_constraint(table, key, &mut text);
    text
}

/// Appends the constraint in the form of CREATE TABLE.
pub fn append_constraint(table: &TableDefinition, key: &ForeignKey, out: &mut String) {
    let names: Vec<String> =
        key.columns.iter().map(|column| quoted_name(&table.columns[usize::from(column.0)].name)).collect();
    let parent_names: Vec<String> = key.parent_columns.iter().map(|name| quoted_name(name)).collect();
    // Writing to a String cannot fail.
    let _ = write!(out, "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES ", quoted_name(&key.name), names.join(", "));
    if key.parent.0 != table.database {
        let _ = write!(out, "{}.", quoted_name(&key.parent.0));
    }
    let _ = write!(out, "{} ({})", quoted_name(&key.parent.1), parent_names.join(", "));
    for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        if action != ReferentialAction::NoAction {
            let _ = write!(out, " ON {event} {}", action.name());
        }
    }
}
