//! The kinds of statements whose latency is measured apart.

/// What a statement does with the data, as `junctor_info.operation_latency` tells it apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperationKind {
    /// Nothing that is measured: a ping, a text that is no statement.
    #[default]
    None,
    /// A query of at most one row, by a whole unique key.
    PointRead,
    /// A query of several whole unique keys.
    BatchRead,
    /// A query of ranges of an index.
    RangeRead,
    /// A query that looks at all rows.
    Scan,
    /// INSERT and REPLACE.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// COMMIT.
    Commit,
    /// ROLLBACK, not to a savepoint.
    Rollback,
    /// A change of the schema.
    Definition,
    /// Everything else.
    Other,
}

impl OperationKind {
    /// The measured kinds, in the order of their numbers.
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
