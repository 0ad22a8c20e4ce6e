//! A statement's work on one table, planned once and shared by every execution: access path, filter,
//! projection, aggregates, assignments. Programs are immutable; signals carry them by reference count.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_expression::aggregate::AggregateKind;
use junctor_model::foreign_key::ForeignKeyWork;
use junctor_model::id::{ColumnNumber, CommitNumber, IndexId};
use junctor_model::row::RowFormat;
use junctor_model::row_encoding::{ResultColumn, RowPlan};
use junctor_model::schema::TableLayout;
use junctor_model::temporal::ValueRules;

use crate::key_filter::KeyFilter;

/// Which rows of a partition a statement visits. Keys and bounds are in the request's input (see `input.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Rows with given primary keys.
    PrimaryKeys,
    /// Rows in ranges of an ordered index, in key order within each range.
    IndexRanges {
        /// The index to scan.
        index: IndexId,
        /// Whether to scan from the upper end down.
        descending: bool,
    },
    /// All rows, in no defined order.
    AllRows,
}

/// One sort column: value and direction.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// The value to sort by.
    pub value: Expression,
    /// DESC.
    pub descending: bool,
    /// Whether the result row evaluates the same expression, so that the sort key need not repeat its
    /// warnings.
    pub is_in_result: bool,
}

/// One aggregate of the select list.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// COUNT, SUM, ...
    pub kind: AggregateKind,
    /// `None` for COUNT(*).
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
    /// Tagged values in the form of `expression::parameter::append_value`, for statements that continue to
    /// work with the rows.
    Values,
}

/// The columns of a result: their values and encoding.
#[derive(Clone, Debug)]
pub struct Projection {
    /// One expression for each column.
    pub values: Vec<Expression>,
    /// Their description on the wire.
    pub columns: Vec<ResultColumn>,
    /// The encoding of rows in which every value is a column of the table with that column's type.
    pub row_plan: Option<RowPlan>,
}

impl Projection {
    /// A projection of these values over rows of any format.
    pub fn new(values: Vec<Expression>, columns: Vec<ResultColumn>) -> Projection {
        Projection { values, columns, row_plan: None }
    }

    /// Adds the row plan for rows of this format, if one is possible.
    pub fn with_format(mut self, format: &RowFormat) -> Projection {
        let indexes: Option<Vec<ColumnNumber>> = self.values.iter().map(Expression::as_column).collect();
        self.row_plan = indexes.and_then(|indexes| RowPlan::new(format, indexes.into_iter().zip(&self.columns)));
        self
    }
}

/// Bytes of the lengths in front of an entry of [`Output::Entries`].
pub const ENTRY_HEADER_BYTES: usize = 8;

/// The form in which a partition returns its accepted rows.
#[derive(Clone, Debug)]
pub enum Output {
    /// Whole row packets with sequence number 0, ready for the connection's output.
    Packets(Projection),
    /// Sorted entries `[packet u32][sort key u16][distinct key u16]`, followed by sort key, distinct key and
    /// packet. Lengths are little-endian. Keys compare as bytes; descending ones are complemented.
    Entries {
        /// The result row.
        projection: Projection,
        /// ORDER BY; may be empty.
        sort: Vec<SortKey>,
        /// `Some` if equal rows are returned only once: the positions of the projected values that are not
        /// sort keys. The distinct key of an entry consists of the keys of these values. If a sort key was
        /// truncated, the distinct key is the byte 2 and the keys of all projected values.
        distinct: Option<Vec<u16>>,
    },
    /// One run of partial states in the form of `expression::aggregate`, each after its u32 length.
    Aggregates(Vec<Aggregate>),
    /// `[image u32]` and the row image, for statements that continue to work with the rows.
    Images,
    /// Groups of equal keys among the rows of one reply, each as a row packet of tagged values: the projected
    /// values of its first row, and the partial state of each aggregate as bytes. Groups with equal keys may
    /// follow in the same or in another reply.
    Groups {
        /// The values of the first row.
        projection: Projection,
        /// The keys.
        keys: Vec<Expression>,
        /// The aggregates, none with DISTINCT.
        aggregates: Vec<Aggregate>,
    },
}

/// A read of one table. The protocol is part of the request, so text and prepared executions share the
/// program.
#[derive(Clone, Debug)]
pub struct ReadProgram {
    /// The table, at the schema version of the plan.
    pub table: Arc<TableLayout>,
    /// Which rows to visit.
    pub access: Access,
    /// Which of them to accept; `None` accepts all.
    pub filter: Option<Expression>,
    /// Filters of joins. Rows that are not in all of them are left out. For reads of ranges and of all rows.
    pub key_filters: Vec<KeyFilter>,
    /// The form in which the accepted rows are returned.
    pub output: Output,
    /// Whether an expression reads a parameter. Otherwise none are sent.
    pub reads_parameters: bool,
    /// Whether truncation and division by zero are errors, because the statement writes under strict rules.
    pub is_strict: bool,
    /// Whether a key without a row is answered by an empty packet. For primary keys and plain columns only.
    /// The packets then correspond to the keys one by one, in order.
    pub marks_missing: bool,
    /// If set, the read returns the rows that have changed since this snapshot: the image of each row at that
    /// snapshot and the one at the read's own, either of them empty if the row does not exist there. The
    /// snapshot must still be active. For `Access::AllRows` and `Output::Images` without a filter only.
    pub changed_since: Option<CommitNumber>,
    /// The session's rules for days and times.
    pub rules: ValueRules,
}

impl ReadProgram {
    /// A read of all rows that it visits, without parameters.
    pub fn new(table: &Arc<TableLayout>, access: Access, output: Output) -> ReadProgram {
        ReadProgram {
            table: Arc::clone(table),
            access,
            filter: None,
            key_filters: Vec::new(),
            output,
            reads_parameters: false,
            is_strict: false,
            marks_missing: false,
            changed_since: None,
            rules: ValueRules::DEFAULT,
        }
    }
}

/// Strength of a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// FOR SHARE.
    Shared,
    /// FOR UPDATE, and every write.
    Exclusive,
}

/// How a locking read treats a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenLocked {
    /// Wait for the lock.
    Wait,
    /// NOWAIT: fail with error 3572.
    Fail,
    /// SKIP LOCKED: leave the row out.
    Skip,
    /// Wait until no other transaction has an uncommitted version of the row. The row is neither returned nor
    /// locked afterwards.
    AwaitWriter,
}

/// One assignment of UPDATE.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The column to set.
    pub column: ColumnNumber,
    /// The new value, evaluated over the row as earlier assignments left it.
    pub value: Expression,
    /// When the value is computed, and whether it is stored.
    pub kind: AssignmentKind,
}

/// When an assignment acts, and how. The kinds follow each other in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignmentKind {
    /// Sets the column.
    Always,
    /// Sets the column if the assignments before changed the row: ON UPDATE CURRENT_TIMESTAMP.
    IfChanged,
    /// Sets a generated column if the assignments before changed the row.
    Generated,
    /// Sets no column: a CHECK constraint, evaluated over the row if the assignments changed it.
    Check,
}

impl Assignment {
    /// A CHECK constraint of a changed row.
    pub fn check(condition: Expression) -> Assignment {
        Assignment { column: ColumnNumber(u16::MAX), value: condition, kind: AssignmentKind::Check }
    }
}

/// The action of a write on the rows that it visits.
#[derive(Clone, Debug)]
pub enum WriteAction {
    /// Inserts the row images of the input.
    Insert,
    /// As `Insert`, but an existing row with the key is locked exclusively before the duplicate error,
    /// because the statement changes it next. Several such statements with shared locks would deadlock.
    InsertOrClaim,
    /// Updates accepted rows.
    Update {
        /// In the order written.
        assignments: Vec<Assignment>,
        /// IGNORE, or no strict `sql_mode`: stores the nearest value that fits, with a warning.
        ignore: bool,
    },
    /// Deletes accepted rows.
    Delete {
        /// IGNORE, or no strict `sql_mode`: truncation in the condition is a warning.
        ignore: bool,
    },
    /// Locks accepted rows and returns them as a read would.
    LockRead {
        /// Shared or exclusive.
        mode: LockMode,
        /// How to treat rows locked by other transactions.
        when_locked: WhenLocked,
        /// The form in which the accepted rows are returned.
        output: Output,
        /// Whether truncation and division by zero are errors, because the statement goes on to write under
        /// strict rules.
        is_strict: bool,
    },
}

/// A write or a locking read of one table.
#[derive(Clone, Debug)]
pub struct WriteProgram {
    /// The table, at the schema version of the plan.
    pub table: Arc<TableLayout>,
    /// The action on accepted rows.
    pub action: WriteAction,
    /// Which rows to visit; `PrimaryKeys` for inserts.
    pub access: Access,
    /// Which of them to accept; `None` accepts all.
    pub filter: Option<Expression>,
    /// Whether an expression reads a parameter. Otherwise none are sent.
    pub reads_parameters: bool,
    /// The hidden tables of the unique indexes whose entries the action may change, by index.
    pub unique_entries: Vec<(IndexId, Arc<TableLayout>)>,
    /// Foreign keys that the action affects; `None` when there are none or they are not checked.
    pub foreign_keys: Option<Arc<ForeignKeyWork>>,
    /// RETURNING of UPDATE and DELETE. For an insert, the session returns the images that it has made.
    pub returning: Option<Returning>,
    /// The session's rules for days and times.
    pub rules: ValueRules,
}

impl WriteProgram {
    /// A write to all rows that it visits, without parameters, follow-ups and RETURNING.
    pub fn new(table: &Arc<TableLayout>, action: WriteAction, access: Access) -> WriteProgram {
        WriteProgram {
            table: Arc::clone(table),
            action,
            access,
            filter: None,
            reads_parameters: false,
            unique_entries: Vec::new(),
            foreign_keys: None,
            returning: None,
            rules: ValueRules::DEFAULT,
        }
    }
}

/// The rows that RETURNING returns.
#[derive(Clone, Debug)]
pub struct Returning {
    /// The values to return for each row: of deleted rows the old ones, of updated rows the new ones. Packets
    /// or entries.
    pub output: Output,
    /// Whether truncation and division by zero are errors here.
    pub is_strict: bool,
}
