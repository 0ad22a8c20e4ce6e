//! The tables of `performance_schema` that clients read: variables, sessions, locks, and statements by
//! digest. Events other than statements by digest are not collected, as `setup_consumers` says, so their
//! tables have no rows. A table whose rows exist but are not known to the server is absent.

use junctor_model::value::Value;
use junctor_signals::read_status::StatusTable;

use super::fact::ShowContext;
use super::layout::{Field, FieldKind, bytes, double, field, int, long, name, text, unsigned};
use super::performance_layout as layout;
use super::replication_layout;
use super::schema_layout::NAME_AND_VALUE;
use super::virtual_schema::{SchemaTable, VirtualSchema, nothing};
use crate::mysql_catalog::variable::{persisted_rows, variable_rows, variable_sources};

/// The table of the statements by digest.
pub const SUMMARY_BY_DIGEST: &str = "events_statements_summary_by_digest";
/// The table of their durations.
pub(super) const HISTOGRAM_BY_DIGEST: &str = "events_statements_histogram_by_digest";

/// Every table, sorted by name, with its columns and the function that computes its rows. The session adds
/// the rows of the tables for which [`digest_table`] or [`super::reported_rows`] has a status table.
const TABLES: &[SchemaTable] = &[
    ("data_lock_waits", layout::DATA_LOCK_WAITS, nothing),
    ("data_locks", layout::DATA_LOCKS, nothing),
    ("events_errors_summary_global_by_error", layout::ERRORS_BY_ERROR, nothing),
    ("events_stages_current", layout::EVENTS_STAGES, nothing),
    ("events_stages_history", layout::EVENTS_STAGES, nothing),
    ("events_stages_history_long", layout::EVENTS_STAGES, nothing),
    ("events_stages_summary_global_by_event_name", layout::EVENTS_BY_EVENT, nothing),
    ("events_statements_current", layout::EVENTS_STATEMENTS, nothing),
    ("events_statements_history", layout::EVENTS_STATEMENTS, nothing),
    ("events_statements_history_long", layout::EVENTS_STATEMENTS, nothing),
    (HISTOGRAM_BY_DIGEST, HISTOGRAM_FIELDS, nothing),
    ("events_statements_summary_by_account_by_event_name", layout::STATEMENTS_BY_ACCOUNT_BY_EVENT, nothing),
    (SUMMARY_BY_DIGEST, SUMMARY_FIELDS, nothing),
    ("events_statements_summary_by_host_by_event_name", layout::STATEMENTS_BY_HOST_BY_EVENT, nothing),
    ("events_statements_summary_by_program", layout::STATEMENTS_BY_PROGRAM, nothing),
    ("events_statements_summary_by_thread_by_event_name", layout::STATEMENTS_BY_THREAD_BY_EVENT, nothing),
    ("events_statements_summary_by_user_by_event_name", layout::STATEMENTS_BY_USER_BY_EVENT, nothing),
    ("events_statements_summary_global_by_event_name", layout::STATEMENTS_BY_EVENT, nothing),
    ("events_transactions_current", layout::EVENTS_TRANSACTIONS, nothing),
    ("events_transactions_history", layout::EVENTS_TRANSACTIONS, nothing),
    ("events_transactions_history_long", layout::EVENTS_TRANSACTIONS, nothing),
    ("events_transactions_summary_global_by_event_name", layout::TRANSACTIONS_BY_EVENT, nothing),
    ("events_waits_current", layout::EVENTS_WAITS, nothing),
    ("events_waits_history", layout::EVENTS_WAITS, nothing),
    ("events_waits_history_long", layout::EVENTS_WAITS, nothing),
    ("events_waits_summary_global_by_event_name", layout::EVENTS_BY_EVENT, nothing),
    ("file_instances", layout::FILE_INSTANCES, nothing),
    ("file_summary_by_event_name", layout::FILES_BY_EVENT, nothing),
    ("file_summary_by_instance", layout::FILES_BY_INSTANCE, nothing),
    ("global_status", NAME_AND_VALUE, status),
    ("global_variables", NAME_AND_VALUE, |facts| rows(variable_rows(true, facts.session))),
    ("memory_summary_by_thread_by_event_name", layout::MEMORY_BY_THREAD_BY_EVENT, nothing),
    ("memory_summary_global_by_event_name", layout::MEMORY_BY_EVENT, nothing),
    ("metadata_locks", layout::METADATA_LOCKS, nothing),
    ("performance_timers", layout::PERFORMANCE_TIMERS, timers),
    ("persisted_variables", NAME_AND_VALUE, |facts| rows(persisted_rows(facts.session.globals))),
    ("processlist", PROCESSES, nothing),
    ("session_account_connect_attrs", layout::CONNECTION_ATTRIBUTES, nothing),
    ("session_connect_attrs", layout::CONNECTION_ATTRIBUTES, nothing),
    ("session_status", NAME_AND_VALUE, status),
    ("session_variables", NAME_AND_VALUE, |facts| rows(variable_rows(false, facts.session))),
    ("setup_actors", layout::SETUP_ACTORS, |_| vec![["%", "%", "%", "YES", "NO"].map(bytes).to_vec()]),
    ("setup_consumers", layout::SETUP_CONSUMERS, consumers),
    ("setup_instruments", layout::SETUP_INSTRUMENTS, nothing),
    ("setup_objects", layout::SETUP_OBJECTS, nothing),
    ("setup_threads", layout::SETUP_THREADS, nothing),
    ("table_io_waits_summary_by_index_usage", layout::TABLE_IO_BY_INDEX, nothing),
    ("table_io_waits_summary_by_table", layout::TABLE_IO_BY_TABLE, nothing),
    ("table_lock_waits_summary_by_table", layout::TABLE_LOCKS_BY_TABLE, nothing),
    ("threads", layout::THREADS, nothing),
    ("user_defined_functions", layout::USER_DEFINED_FUNCTIONS, nothing),
    ("variables_info", VARIABLES_INFO, variables_info),
];

/// The columns of `information_schema.PROCESSLIST`, and the engine that executes the statement.
const PROCESSES: &[Field] = &[
    unsigned("ID"),
    text("USER", 32),
    text("HOST", 261),
    name("DB").or_null(),
    text("COMMAND", 16),
    int("TIME"),
    text("STATE", 64).or_null(),
    long("INFO").or_null(),
    text("EXECUTION_ENGINE", 9).or_null(),
];

const VARIABLES_INFO: &[Field] = &[
    text("VARIABLE_NAME", 64),
    text("VARIABLE_SOURCE", 12).or_null(),
    text("VARIABLE_PATH", 1024).or_null(),
    text("MIN_VALUE", 64).or_null(),
    text("MAX_VALUE", 64).or_null(),
    field("SET_TIME", FieldKind::Timestamp).or_null(),
    text("SET_USER", 32).or_null(),
    text("SET_HOST", 255).or_null(),
];

/// Times are in picoseconds.
pub(super) const SUMMARY_FIELDS: &[Field] = &[
    name("SCHEMA_NAME").or_null(),
    text("DIGEST", 64).or_null(),
    long("DIGEST_TEXT").or_null(),
    unsigned("COUNT_STAR"),
    unsigned("SUM_TIMER_WAIT"),
    unsigned("MIN_TIMER_WAIT"),
    unsigned("AVG_TIMER_WAIT"),
    unsigned("MAX_TIMER_WAIT"),
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
    field("FIRST_SEEN", FieldKind::Timestamp),
    field("LAST_SEEN", FieldKind::Timestamp),
    unsigned("QUANTILE_95"),
    unsigned("QUANTILE_99"),
    unsigned("QUANTILE_999"),
    long("QUERY_SAMPLE_TEXT").or_null(),
    field("QUERY_SAMPLE_SEEN", FieldKind::Timestamp),
    unsigned("QUERY_SAMPLE_TIMER_WAIT"),
];

pub(super) const HISTOGRAM_FIELDS: &[Field] = &[
    name("SCHEMA_NAME").or_null(),
    text("DIGEST", 64).or_null(),
    field("BUCKET_NUMBER", FieldKind::UnsignedInt),
    unsigned("BUCKET_TIMER_LOW"),
    unsigned("BUCKET_TIMER_HIGH"),
    unsigned("COUNT_BUCKET"),
    unsigned("COUNT_BUCKET_AND_LOWER"),
    double("BUCKET_QUANTILE"),
];

/// The status table that has the rows of a table, ignoring case.
pub fn digest_table(name: &str) -> Option<StatusTable> {
    match () {
        () if name.eq_ignore_ascii_case(SUMMARY_BY_DIGEST) => Some(StatusTable::StatementDigests),
        () if name.eq_ignore_ascii_case(HISTOGRAM_BY_DIGEST) => Some(StatusTable::StatementHistograms),
        () => None,
    }
}

/// The database.
pub(super) const SCHEMA: VirtualSchema =
    VirtualSchema { name: "performance_schema", parts: &[TABLES, replication_layout::TABLES] };

fn rows(variables: Vec<(&'static str, String)>) -> Vec<Vec<Value>> {
    variables.into_iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
}

fn status(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    facts.status.iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
}

/// The server collects statements by digest.
fn consumers(_: &ShowContext<'_>) -> Vec<Vec<Value>> {
    const OFF: [&str; 12] = [
        "events_stages_current",
        "events_stages_history",
        "events_stages_history_long",
        "events_statements_current",
        "events_statements_history",
        "events_statements_history_long",
        "events_transactions_current",
        "events_transactions_history",
        "events_transactions_history_long",
        "events_waits_current",
        "events_waits_history",
        "events_waits_history_long",
    ];
    let off = OFF.into_iter().map(|name| (name, "NO"));
    let on = [("global_instrumentation", "YES"), ("thread_instrumentation", "NO"), ("statements_digest", "YES")];
    off.chain(on).map(|(name, enabled)| [name, enabled].map(bytes).to_vec()).collect()
}

/// The figures of statements are in picoseconds, from a clock of nanoseconds. Other timers do not exist.
fn timers(_: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |name: &str| {
        let figures = match name {
            "NANOSECOND" => [Value::Int(1_000_000_000), Value::Int(1), Value::Null],
            _ => [Value::Null, Value::Null, Value::Null],
        };
        std::iter::once(bytes(name)).chain(figures).collect()
    };
    ["CYCLE", "NANOSECOND", "MICROSECOND", "MILLISECOND", "THREAD_CPU"].map(row).to_vec()
}

/// When and by whom a value was set is not kept.
fn variables_info(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |source: crate::mysql_catalog::variable::VariableSource| {
        let (min, max) = source.range.unwrap_or((0, 0));
        let mut row = vec![bytes(source.name), bytes(source.source), bytes("")];
        row.extend([min, max].map(|bound| bytes(bound.to_string())));
        row.extend([Value::Null, Value::Null, Value::Null]);
        row
    };
    variable_sources(facts.session.globals).into_iter().map(row).collect()
}
