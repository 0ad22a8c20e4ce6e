//! The columns of the tables of `performance_schema` whose rows are not figures by digest, with the names and
//! the order of MySQL 8.0.

use super::layout::{Field, FieldKind, field, int, long, number, text, unsigned};

/// The number of operations of a kind, and their times.
macro_rules! timed {
    ($kind:literal) => {
        [
            unsigned(concat!("COUNT_", $kind)),
            unsigned(concat!("SUM_TIMER_", $kind)),
            unsigned(concat!("MIN_TIMER_", $kind)),
            unsigned(concat!("AVG_TIMER_", $kind)),
            unsigned(concat!("MAX_TIMER_", $kind)),
        ]
    };
}

/// The columns of a table: several runs of them, one after the other.
macro_rules! columns {
    ($($run:expr),+ $(,)?) => {{
        const RUNS: &[&[Field]] = &[$($run),+];
        const COLUMNS: [Field; count_of(RUNS)] = joined(RUNS);
        &COLUMNS
    }};
}

const fn count_of(runs: &[&[Field]]) -> usize {
    let (mut count, mut run) = (0, 0);
    while run < runs.len() {
        count += runs[run].len();
        run += 1;
    }
    count
}

/// The columns of all runs, of which there are `COUNT`.
const fn joined<const COUNT: usize>(runs: &[&[Field]]) -> [Field; COUNT] {
    let mut columns = [unsigned(""); COUNT];
    let (mut filled, mut run) = (0, 0);
    while run < runs.len() {
        let mut at = 0;
        while at < runs[run].len() {
            columns[filled] = runs[run][at];
            filled += 1;
            at += 1;
        }
        run += 1;
    }
    columns
}

/// The number of all events of a row, and their times.
const ALL_WAITS: &[Field] = &[
    unsigned("COUNT_STAR"),
    unsigned("SUM_TIMER_WAIT"),
    unsigned("MIN_TIMER_WAIT"),
    unsigned("AVG_TIMER_WAIT"),
    unsigned("MAX_TIMER_WAIT"),
];

/// The sums of the statements of a row, after their number and times.
const STATEMENT_FIGURES: &[Field] = &[
    unsigned("SUM_LOCK_TIME"),
    unsigned("SUM_ERRORS"),
    unsigned("SUM_WARNINGS"),
    unsigned("SUM_ROWS_AFFECTED"),
    unsigned("SUM_ROWS_SENT"),
    unsigned("SUM_ROWS_EXAMINED"),
    unsigned("SUM_CREATED_TMP_DISK_TABLES"),
    unsigned("SUM_CREATED_TMP_TABLES"),
    unsigned("SUM_SELECT_FULL_JOIN"),
    unsigned("SUM_SELECT_FULL_RANGE_JOIN"),
    unsigned("SUM_SELECT_RANGE"),
    unsigned("SUM_SELECT_RANGE_CHECK"),
    unsigned("SUM_SELECT_SCAN"),
    unsigned("SUM_SORT_MERGE_PASSES"),
    unsigned("SUM_SORT_RANGE"),
    unsigned("SUM_SORT_ROWS"),
    unsigned("SUM_SORT_SCAN"),
    unsigned("SUM_NO_INDEX_USED"),
    unsigned("SUM_NO_GOOD_INDEX_USED"),
    unsigned("SUM_CPU_TIME"),
    unsigned("MAX_CONTROLLED_MEMORY"),
    unsigned("MAX_TOTAL_MEMORY"),
    unsigned("COUNT_SECONDARY"),
];

/// The columns with which an event begins.
const STARTED_EVENT: &[Field] = &[
    unsigned("THREAD_ID"),
    unsigned("EVENT_ID"),
    unsigned("END_EVENT_ID").or_null(),
    text("EVENT_NAME", 128),
    text("SOURCE", 64).or_null(),
    unsigned("TIMER_START").or_null(),
    unsigned("TIMER_END").or_null(),
    unsigned("TIMER_WAIT").or_null(),
];

/// The memory of a row.
const MEMORY_FIGURES: &[Field] = &[
    unsigned("COUNT_ALLOC"),
    unsigned("COUNT_FREE"),
    unsigned("SUM_NUMBER_OF_BYTES_ALLOC"),
    unsigned("SUM_NUMBER_OF_BYTES_FREE"),
    number("LOW_COUNT_USED"),
    number("CURRENT_COUNT_USED"),
    number("HIGH_COUNT_USED"),
    number("LOW_NUMBER_OF_BYTES_USED"),
    number("CURRENT_NUMBER_OF_BYTES_USED"),
    number("HIGH_NUMBER_OF_BYTES_USED"),
];

/// The reads, writes and other operations of the files of a row, after all of them.
const FILE_IO: &[Field] = columns![
    &timed!("READ"),
    &[number("SUM_NUMBER_OF_BYTES_READ")],
    &timed!("WRITE"),
    &[number("SUM_NUMBER_OF_BYTES_WRITE")],
    &timed!("MISC"),
];

/// The operations on the rows of a table, after all of them.
const TABLE_IO: &[Field] = columns![
    &timed!("READ"),
    &timed!("WRITE"),
    &timed!("FETCH"),
    &timed!("INSERT"),
    &timed!("UPDATE"),
    &timed!("DELETE"),
];

/// The object of a row.
const OBJECT: &[Field] =
    &[text("OBJECT_TYPE", 64).or_null(), text("OBJECT_SCHEMA", 64).or_null(), text("OBJECT_NAME", 64).or_null()];

pub(super) const THREADS: &[Field] = &[
    unsigned("THREAD_ID"),
    text("NAME", 128),
    text("TYPE", 10),
    unsigned("PROCESSLIST_ID").or_null(),
    text("PROCESSLIST_USER", 32).or_null(),
    text("PROCESSLIST_HOST", 255).or_null(),
    text("PROCESSLIST_DB", 64).or_null(),
    text("PROCESSLIST_COMMAND", 16).or_null(),
    number("PROCESSLIST_TIME").or_null(),
    text("PROCESSLIST_STATE", 64).or_null(),
    long("PROCESSLIST_INFO").or_null(),
    unsigned("PARENT_THREAD_ID").or_null(),
    text("ROLE", 64).or_null(),
    text("INSTRUMENTED", 3),
    text("HISTORY", 3),
    text("CONNECTION_TYPE", 16).or_null(),
    unsigned("THREAD_OS_ID").or_null(),
    text("RESOURCE_GROUP", 64).or_null(),
    text("EXECUTION_ENGINE", 9).or_null(),
    unsigned("CONTROLLED_MEMORY"),
    unsigned("MAX_CONTROLLED_MEMORY"),
    unsigned("TOTAL_MEMORY"),
    unsigned("MAX_TOTAL_MEMORY"),
    text("TELEMETRY_ACTIVE", 3),
];

pub(super) const DATA_LOCKS: &[Field] = &[
    text("ENGINE", 32),
    text("ENGINE_LOCK_ID", 128),
    unsigned("ENGINE_TRANSACTION_ID").or_null(),
    unsigned("THREAD_ID").or_null(),
    unsigned("EVENT_ID").or_null(),
    text("OBJECT_SCHEMA", 64).or_null(),
    text("OBJECT_NAME", 64).or_null(),
    text("PARTITION_NAME", 64).or_null(),
    text("SUBPARTITION_NAME", 64).or_null(),
    text("INDEX_NAME", 64).or_null(),
    unsigned("OBJECT_INSTANCE_BEGIN"),
    text("LOCK_TYPE", 32),
    text("LOCK_MODE", 32),
    text("LOCK_STATUS", 32),
    text("LOCK_DATA", 8192).or_null(),
];

pub(super) const DATA_LOCK_WAITS: &[Field] = &[
    text("ENGINE", 32),
    text("REQUESTING_ENGINE_LOCK_ID", 128),
    unsigned("REQUESTING_ENGINE_TRANSACTION_ID").or_null(),
    unsigned("REQUESTING_THREAD_ID").or_null(),
    unsigned("REQUESTING_EVENT_ID").or_null(),
    unsigned("REQUESTING_OBJECT_INSTANCE_BEGIN"),
    text("BLOCKING_ENGINE_LOCK_ID", 128),
    unsigned("BLOCKING_ENGINE_TRANSACTION_ID").or_null(),
    unsigned("BLOCKING_THREAD_ID").or_null(),
    unsigned("BLOCKING_EVENT_ID").or_null(),
    unsigned("BLOCKING_OBJECT_INSTANCE_BEGIN"),
];

pub(super) const METADATA_LOCKS: &[Field] = &[
    text("OBJECT_TYPE", 64),
    text("OBJECT_SCHEMA", 64).or_null(),
    text("OBJECT_NAME", 64).or_null(),
    text("COLUMN_NAME", 64).or_null(),
    unsigned("OBJECT_INSTANCE_BEGIN"),
    text("LOCK_TYPE", 32),
    text("LOCK_DURATION", 32),
    text("LOCK_STATUS", 32),
    text("SOURCE", 64).or_null(),
    unsigned("OWNER_THREAD_ID").or_null(),
    unsigned("OWNER_EVENT_ID").or_null(),
];

pub(super) const SETUP_ACTORS: &[Field] =
    &[text("HOST", 255), text("USER", 32), text("ROLE", 32), text("ENABLED", 3), text("HISTORY", 3)];

pub(super) const SETUP_CONSUMERS: &[Field] = &[text("NAME", 64), text("ENABLED", 3)];

pub(super) const SETUP_INSTRUMENTS: &[Field] = &[
    text("NAME", 128),
    text("ENABLED", 3),
    text("TIMED", 3).or_null(),
    text("PROPERTIES", 64),
    text("FLAGS", 64).or_null(),
    int("VOLATILITY"),
    long("DOCUMENTATION").or_null(),
];

pub(super) const SETUP_OBJECTS: &[Field] = &[
    text("OBJECT_TYPE", 9),
    text("OBJECT_SCHEMA", 64).or_null(),
    text("OBJECT_NAME", 64),
    text("ENABLED", 3),
    text("TIMED", 3),
];

pub(super) const SETUP_THREADS: &[Field] = &[
    text("NAME", 128),
    text("ENABLED", 3),
    text("HISTORY", 3),
    text("PROPERTIES", 64),
    int("VOLATILITY"),
    long("DOCUMENTATION").or_null(),
];

pub(super) const PERFORMANCE_TIMERS: &[Field] = &[
    text("TIMER_NAME", 11),
    number("TIMER_FREQUENCY").or_null(),
    number("TIMER_RESOLUTION").or_null(),
    number("TIMER_OVERHEAD").or_null(),
];

pub(super) const EVENTS_STATEMENTS: &[Field] = columns![
    STARTED_EVENT,
    &[
        unsigned("LOCK_TIME"),
        long("SQL_TEXT").or_null(),
        text("DIGEST", 64).or_null(),
        long("DIGEST_TEXT").or_null(),
        text("CURRENT_SCHEMA", 64).or_null()
    ],
    OBJECT,
    &[
        unsigned("OBJECT_INSTANCE_BEGIN").or_null(),
        int("MYSQL_ERRNO").or_null(),
        text("RETURNED_SQLSTATE", 5).or_null(),
        text("MESSAGE_TEXT", 128).or_null(),
        unsigned("ERRORS"),
        unsigned("WARNINGS"),
        unsigned("ROWS_AFFECTED"),
        unsigned("ROWS_SENT"),
        unsigned("ROWS_EXAMINED"),
        unsigned("CREATED_TMP_DISK_TABLES"),
        unsigned("CREATED_TMP_TABLES"),
        unsigned("SELECT_FULL_JOIN"),
        unsigned("SELECT_FULL_RANGE_JOIN"),
        unsigned("SELECT_RANGE"),
        unsigned("SELECT_RANGE_CHECK"),
        unsigned("SELECT_SCAN"),
        unsigned("SORT_MERGE_PASSES"),
        unsigned("SORT_RANGE"),
        unsigned("SORT_ROWS"),
        unsigned("SORT_SCAN"),
        unsigned("NO_INDEX_USED"),
        unsigned("NO_GOOD_INDEX_USED"),
        unsigned("NESTING_EVENT_ID").or_null(),
        text("NESTING_EVENT_TYPE", 11).or_null(),
        int("NESTING_EVENT_LEVEL").or_null(),
        unsigned("STATEMENT_ID").or_null(),
        unsigned("CPU_TIME"),
        unsigned("MAX_CONTROLLED_MEMORY"),
        unsigned("MAX_TOTAL_MEMORY"),
        text("EXECUTION_ENGINE", 9).or_null()
    ],
];

pub(super) const STATEMENTS_BY_EVENT: &[Field] = columns![&[text("EVENT_NAME", 128)], ALL_WAITS, STATEMENT_FIGURES,];

pub(super) const STATEMENTS_BY_ACCOUNT_BY_EVENT: &[Field] = columns![
    &[text("USER", 32).or_null(), text("HOST", 255).or_null(), text("EVENT_NAME", 128)],
    ALL_WAITS,
    STATEMENT_FIGURES,
];

pub(super) const STATEMENTS_BY_HOST_BY_EVENT: &[Field] =
    columns![&[text("HOST", 255).or_null(), text("EVENT_NAME", 128)], ALL_WAITS, STATEMENT_FIGURES,];

pub(super) const STATEMENTS_BY_USER_BY_EVENT: &[Field] =
    columns![&[text("USER", 32).or_null(), text("EVENT_NAME", 128)], ALL_WAITS, STATEMENT_FIGURES,];

pub(super) const STATEMENTS_BY_THREAD_BY_EVENT: &[Field] =
    columns![&[unsigned("THREAD_ID"), text("EVENT_NAME", 128)], ALL_WAITS, STATEMENT_FIGURES,];

pub(super) const STATEMENTS_BY_PROGRAM: &[Field] = columns![
    &[text("OBJECT_TYPE", 9), text("OBJECT_SCHEMA", 64), text("OBJECT_NAME", 64)],
    ALL_WAITS,
    &[
        unsigned("COUNT_STATEMENTS"),
        unsigned("SUM_STATEMENTS_WAIT"),
        unsigned("MIN_STATEMENTS_WAIT"),
        unsigned("AVG_STATEMENTS_WAIT"),
        unsigned("MAX_STATEMENTS_WAIT")
    ],
    STATEMENT_FIGURES,
];

pub(super) const EVENTS_STAGES: &[Field] = columns![
    STARTED_EVENT,
    &[
        unsigned("WORK_COMPLETED").or_null(),
        unsigned("WORK_ESTIMATED").or_null(),
        unsigned("NESTING_EVENT_ID").or_null(),
        text("NESTING_EVENT_TYPE", 11).or_null()
    ],
];

pub(super) const EVENTS_TRANSACTIONS: &[Field] = &[
    unsigned("THREAD_ID"),
    unsigned("EVENT_ID"),
    unsigned("END_EVENT_ID").or_null(),
    text("EVENT_NAME", 128),
    text("STATE", 11).or_null(),
    unsigned("TRX_ID").or_null(),
    text("GTID", 64).or_null(),
    int("XID_FORMAT_ID").or_null(),
    text("XID_GTRID", 130).or_null(),
    text("XID_BQUAL", 130).or_null(),
    text("XA_STATE", 64).or_null(),
    text("SOURCE", 64).or_null(),
    unsigned("TIMER_START").or_null(),
    unsigned("TIMER_END").or_null(),
    unsigned("TIMER_WAIT").or_null(),
    text("ACCESS_MODE", 10).or_null(),
    text("ISOLATION_LEVEL", 64).or_null(),
    text("AUTOCOMMIT", 3),
    unsigned("NUMBER_OF_SAVEPOINTS").or_null(),
    unsigned("NUMBER_OF_ROLLBACK_TO_SAVEPOINT").or_null(),
    unsigned("NUMBER_OF_RELEASE_SAVEPOINT").or_null(),
    unsigned("OBJECT_INSTANCE_BEGIN").or_null(),
    unsigned("NESTING_EVENT_ID").or_null(),
    text("NESTING_EVENT_TYPE", 11).or_null(),
];

pub(super) const EVENTS_WAITS: &[Field] = columns![
    STARTED_EVENT,
    &[
        field("SPINS", FieldKind::UnsignedInt).or_null(),
        text("OBJECT_SCHEMA", 64).or_null(),
        text("OBJECT_NAME", 512).or_null(),
        text("INDEX_NAME", 64).or_null(),
        text("OBJECT_TYPE", 64).or_null(),
        unsigned("OBJECT_INSTANCE_BEGIN"),
        unsigned("NESTING_EVENT_ID").or_null(),
        text("NESTING_EVENT_TYPE", 11).or_null(),
        text("OPERATION", 32),
        number("NUMBER_OF_BYTES").or_null(),
        field("FLAGS", FieldKind::UnsignedInt).or_null()
    ],
];

pub(super) const EVENTS_BY_EVENT: &[Field] = columns![&[text("EVENT_NAME", 128)], ALL_WAITS,];

pub(super) const TRANSACTIONS_BY_EVENT: &[Field] =
    columns![&[text("EVENT_NAME", 128)], ALL_WAITS, &timed!("READ_WRITE"), &timed!("READ_ONLY"),];

pub(super) const ERRORS_BY_ERROR: &[Field] = &[
    int("ERROR_NUMBER").or_null(),
    text("ERROR_NAME", 64).or_null(),
    text("SQL_STATE", 5).or_null(),
    unsigned("SUM_ERROR_RAISED"),
    unsigned("SUM_ERROR_HANDLED"),
    field("FIRST_SEEN", FieldKind::Timestamp).or_null(),
    field("LAST_SEEN", FieldKind::Timestamp).or_null(),
];

pub(super) const TABLE_IO_BY_TABLE: &[Field] = columns![OBJECT, ALL_WAITS, TABLE_IO,];

pub(super) const TABLE_IO_BY_INDEX: &[Field] =
    columns![OBJECT, &[text("INDEX_NAME", 64).or_null()], ALL_WAITS, TABLE_IO,];

pub(super) const TABLE_LOCKS_BY_TABLE: &[Field] = columns![
    OBJECT,
    ALL_WAITS,
    &timed!("READ"),
    &timed!("WRITE"),
    &timed!("READ_NORMAL"),
    &timed!("READ_WITH_SHARED_LOCKS"),
    &timed!("READ_HIGH_PRIORITY"),
    &timed!("READ_NO_INSERT"),
    &timed!("READ_EXTERNAL"),
    &timed!("WRITE_ALLOW_WRITE"),
    &timed!("WRITE_CONCURRENT_INSERT"),
    &timed!("WRITE_LOW_PRIORITY"),
    &timed!("WRITE_NORMAL"),
    &timed!("WRITE_EXTERNAL"),
];

pub(super) const FILES_BY_EVENT: &[Field] = columns![&[text("EVENT_NAME", 128)], ALL_WAITS, FILE_IO,];

pub(super) const FILES_BY_INSTANCE: &[Field] = columns![
    &[text("FILE_NAME", 512), text("EVENT_NAME", 128), unsigned("OBJECT_INSTANCE_BEGIN")],
    ALL_WAITS,
    FILE_IO,
];

pub(super) const FILE_INSTANCES: &[Field] =
    &[text("FILE_NAME", 512), text("EVENT_NAME", 128), field("OPEN_COUNT", FieldKind::UnsignedInt)];

pub(super) const MEMORY_BY_EVENT: &[Field] = columns![&[text("EVENT_NAME", 128)], MEMORY_FIGURES,];

pub(super) const MEMORY_BY_THREAD_BY_EVENT: &[Field] =
    columns![&[unsigned("THREAD_ID"), text("EVENT_NAME", 128)], MEMORY_FIGURES,];

pub(super) const CONNECTION_ATTRIBUTES: &[Field] = &[
    unsigned("PROCESSLIST_ID"),
    text("ATTR_NAME", 32),
    text("ATTR_VALUE", 1024).or_null(),
    int("ORDINAL_POSITION").or_null(),
];

pub(super) const USER_DEFINED_FUNCTIONS: &[Field] = &[
    text("UDF_NAME", 64),
    text("UDF_RETURN_TYPE", 20),
    text("UDF_TYPE", 20),
    text("UDF_LIBRARY", 1024).or_null(),
    number("UDF_USAGE_COUNT").or_null(),
];
