//! The kinds of statements with separate latency statistics.

/// The kind of a statement, by which `junctor_info.operation_latency` groups latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperationKind {
    /// Not measured: a ping, or a text that is not a statement.
    #[default]
    None,
    /// A query of at most one row by a whole unique key.
    PointRead,
    /// A query of several whole unique keys.
    BatchRead,
    /// A query of ranges of an index.
    RangeRead,
    /// A query that scans all rows.
    Scan,
    /// INSERT or REPLACE.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// COMMIT.
    Commit,
    /// ROLLBACK, except to a savepoint.
    Rollback,
    /// A change of the schema.
    Definition,
    /// Any other statement.
    Other,
}

impl OperationKind {
    /// The measured kinds and their names, in the order of their numbers.
    pub(crate) const MEASURED: [(OperationKind, &'static str); 11] = [
        (OperationKind::PointRead, "point_read"),
        (OperationKind::BatchRead, "batch_read"),
        (OperationKind::RangeRead, "range_read"),
        (OperationKind::Scan, "scan"),
        (OperationKind::Insert, "insert"),
        (OperationKind::Update, "update"),
        (OperationKind::Delete, "delete"),
        (OperationKind::Commit, "commit"),
        (OperationKind::Rollback, "rollback"),
        (OperationKind::Definition, "definition"),
        (OperationKind::Other, "other"),
    ];
}
