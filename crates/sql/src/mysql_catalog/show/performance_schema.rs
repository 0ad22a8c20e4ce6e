//! The tables of `performance_schema` that clients read: system variables, status variables, sessions.

use junctor_model::value::Value;
use junctor_signals::read_status::StatusTable;

use super::fact::ShowContext;
use super::layout::{Field, FieldKind, bytes, double, field, long, name, text, unsigned};
use super::schema_layout::{NAME_AND_VALUE, PROCESSLIST};
use super::virtual_schema::{SchemaTable, VirtualSchema};
use crate::mysql_catalog::variable::{persisted_rows, variable_rows, variable_sources};

/// The table of the statements by digest.
pub const SUMMARY_BY_DIGEST: &str = "events_statements_summary_by_digest";
/// The table of their durations.
pub(super) const HISTOGRAM_BY_DIGEST: &str = "events_statements_histogram_by_digest";

/// Every table, sorted by name, with its columns and the function that computes its rows. The session adds
/// the rows of `processlist`, and of the tables for which [`digest_table`] has a status table.
const TABLES: &[SchemaTable] = &[
    (HISTOGRAM_BY_DIGEST, HISTOGRAM_FIELDS, |_| Vec::new()),
    (SUMMARY_BY_DIGEST, SUMMARY_FIELDS, |_| Vec::new()),
    ("global_status", NAME_AND_VALUE, status),
    ("global_variables", NAME_AND_VALUE, |facts| rows(variable_rows(true, facts.session))),
    ("persisted_variables", NAME_AND_VALUE, |facts| rows(persisted_rows(facts.session.globals))),
    ("processlist", PROCESSLIST, |_| Vec::new()),
    ("session_status", NAME_AND_VALUE, status),
    ("session_variables", NAME_AND_VALUE, |facts| rows(variable_rows(false, facts.session))),
    ("variables_info", VARIABLES_INFO, variables_info),
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
pub(super) const SCHEMA: VirtualSchema = VirtualSchema { name: "performance_schema", tables: TABLES };

fn rows(variables: Vec<(&'static str, String)>) -> Vec<Vec<Value>> {
    variables.into_iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
}

fn status(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    facts.status.iter().map(|(name, value)| vec![bytes(name), bytes(value)]).collect()
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
