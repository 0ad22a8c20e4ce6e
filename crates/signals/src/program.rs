//! What a statement does to one table, planned once and shared by every execution: access path, filter, projection,
//! aggregates, assignments. Programs are immutable; signals carry them by reference count.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_expression::aggregate::AggregateKind;
use junctor_model::foreign_key::ForeignKeyWork;
use junctor_model::id::{ColumnIndex, IndexId};
use junctor_model::row::RowFormat;
use junctor_model::row_encoding::{ResultColumn, RowPlan};
use junctor_model::schema::TableLayout;

/// Which rows of a partition are looked at. Keys and bounds are in the request's input (see `input.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The rows of whole primary keys.
    PrimaryKeys,
    /// The rows of ranges of an ordered index, in key order within each range.
    IndexRanges {
        /// The index.
        index: IndexId,
        /// Whether to walk from the upper end down.
        descending: bool,
    },
    /// Every row, in no order.
    AllRows,
}

/// One column of a sort: the value and its direction.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// The value.
    pub value: Expression,
    /// DESC.
    pub descending: bool,
    /// Whether the result row has the same computed value, which says then what there is to say of it besides.
    pub is_said: bool,
}

/// One aggregate of the select list.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// COUNT, SUM, ...
    pub kind: AggregateKind,
    /// The argument; `None` for COUNT(*).
    pub argument: Option<Expression>,
    /// DISTINCT.
    pub distinct: bool,
}

/// The wire form of result rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowProtocol {
    /// COM_QUERY: every value as text.
    Text,
    /// COM_STMT_EXECUTE: every value in its binary form.
    Binary,
    /// For statements that go on working with the rows: a packet holds tagged values, in the form of
    /// `expression::parameter::append_value`, one after the other.
    Values,
}

/// The columns of a result: what to evaluate and how to say it.
#[derive(Clone, Debug)]
pub struct Projection {
    /// The values.
    pub values: Vec<Expression>,
    /// Their description on the wire.
    pub columns: Vec<ResultColumn>,
    /// How rows are said when every value is a column of the row, and described as one of its type.
    pub row_plan: Option<RowPlan>,
}

impl Projection {
    /// A projection of these values, with their description, over rows of any format.
    pub fn new(values: Vec<Expression>, columns: Vec<ResultColumn>) -> Projection {
        Projection { values, columns, row_plan: None }
    }

    /// The projection for rows of that format.
    pub fn with_format(mut self, format: &RowFormat) -> Projection {
        let indexes: Option<Vec<ColumnIndex>> = self.values.iter().map(Expression::as_column).collect();
        self.row_plan = indexes.and_then(|indexes| RowPlan::new(format, indexes.into_iter().zip(&self.columns)));
        self
    }
}

/// What leaves the partition for every accepted row.
#[derive(Clone, Debug)]
pub enum Output {
    /// Whole row packets, sequence number 0, ready for the connection's output.
    Packets(Projection),
    /// Sorted entries `[packet u32][sort key u16][distinct key u16]` and then these three byte strings in the order sort key,
    /// distinct key, packet; lengths little-endian. Keys compare as bytes, descending ones complemented.
    Entries {
        /// The result row.
        projection: Projection,
        /// ORDER BY; may be empty.
        sort: Vec<SortKey>,
        /// `Some` when equal rows are said once: the distinct key is that of the projected values at these positions, which
        /// are those that are no sort keys. Where a sort key had to be cut it is the byte 2 and the keys of all values.
        distinct: Option<Vec<u16>>,
    },
    /// One run of partial states, in the form of `expression::aggregate`, each after its u32 length.
    Aggregates(Vec<Aggregate>),
    /// `[image u32]` and the row image, for statements that go on working with rows.
    Images,
}

/// A read of one table. `protocol` is part of the request, so that text and prepared executions share the program.
#[derive(Clone, Debug)]
pub struct ReadProgram {
    /// The table, with the schema version that the plan was made for.
    pub table: Arc<TableLayout>,
    /// Which rows are looked at.
    pub access: Access,
    /// Which of them are accepted; `None` accepts all.
    pub filter: Option<Expression>,
    /// What leaves the partition.
    pub output: Output,
    /// Whether any expression reads a parameter; when not, none are sent.
    pub reads_parameters: bool,
    /// Whether what is cut or divided by zero is an error, because the statement writes under strict rules.
    pub is_strict: bool,
    /// Whether a key that no row has is said too, as an empty packet. For primary keys and plain columns only: then the packets are
    /// those of the keys, one for each, in their order.
    pub marks_missing: bool,
}

/// How strongly a locking read locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// FOR SHARE.
    Shared,
    /// FOR UPDATE, and every write.
    Exclusive,
}

/// What a locking read does at a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenLocked {
    /// It waits.
    Wait,
    /// NOWAIT: it fails with error 3572.
    Fail,
    /// SKIP LOCKED: it goes on without the row.
    Skip,
}

/// One assignment of UPDATE.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The column.
    pub column: ColumnIndex,
    /// The new value, evaluated over the row as the assignments before it left it.
    pub value: Expression,
}

/// What a write does to the rows that it finds.
#[derive(Clone, Debug)]
pub enum WriteAction {
    /// Inserts the row images of the input.
    Insert,
    /// As `Insert`; but the row that has a key already is locked exclusively before the error, because the statement goes on to
    /// change it. Shared locks of several such statements would keep each other from doing so.
    InsertOrClaim,
    /// Updates accepted rows.
    Update {
        /// In the order written.
        assignments: Vec<Assignment>,
        /// IGNORE: values that do not fit are stored as the nearest ones, with a warning.
        ignore: bool,
    },
    /// Deletes accepted rows.
    Delete,
    /// Locks accepted rows and answers as the read would.
    LockRead {
        /// How strongly.
        mode: LockMode,
        /// What happens at a row that another transaction has locked.
        when_locked: WhenLocked,
        /// What leaves the partition.
        output: Output,
        /// Whether what is cut or divided by zero is an error, because the statement goes on to write under strict rules.
        is_strict: bool,
    },
}

/// A write, or a locking read, of one table.
#[derive(Clone, Debug)]
pub struct WriteProgram {
    /// The table, with the schema version that the plan was made for.
    pub table: Arc<TableLayout>,
    /// The action.
    pub action: WriteAction,
    /// Which rows are looked at; `PrimaryKeys` for inserts.
    pub access: Access,
    /// Which of them are accepted.
    pub filter: Option<Expression>,
    /// Whether any expression reads a parameter.
    pub reads_parameters: bool,
    /// The hidden tables of the unique indexes whose entries the action may change, by index.
    pub unique_entries: Vec<(IndexId, Arc<TableLayout>)>,
    /// What foreign keys ask of the action; `None` where they ask nothing or are not checked.
    pub foreign_keys: Option<Arc<ForeignKeyWork>>,
    /// RETURNING of UPDATE and DELETE; whoever makes the images of an insert says them too.
    pub returning: Option<Returning>,
}

/// What a write answers of the rows that it accepts.
#[derive(Clone, Debug)]
pub struct Returning {
    /// What leaves the partition: of a deleted row as it was, of an updated one as it has become. Packets or entries.
    pub output: Output,
    /// Whether what is cut or divided by zero there is an error.
    pub is_strict: bool,
}
