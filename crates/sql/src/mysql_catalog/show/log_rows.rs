//! The tables `mysql.general_log` and `mysql.slow_log`: what the journal keeps of both logs.

use junctor_model::temporal::{Parts, Temporal, TemporalKind};
use junctor_model::value::Value;
use junctor_signals::journal::{Entry, LogEvent};

use super::fact::ShowContext;
use super::layout::{Field, FieldKind, bytes, field, int, text, unsigned};
use crate::mysql_catalog::variable::unsigned_of;

/// The largest TIME.
const HOURS_MAX: u64 = 838;

pub(super) const GENERAL_LOG: &[Field] = &[
    field("event_time", FieldKind::Timestamp),
    field("user_host", FieldKind::MediumText),
    unsigned("thread_id"),
    field("server_id", FieldKind::UnsignedInt),
    text("command_type", 64),
    field("argument", FieldKind::MediumBlob),
];

/// Times of locks and examined rows are not measured, and are 0.
pub(super) const SLOW_LOG: &[Field] = &[
    field("start_time", FieldKind::Timestamp),
    field("user_host", FieldKind::MediumText),
    field("query_time", FieldKind::Time),
    field("lock_time", FieldKind::Time),
    int("rows_sent"),
    int("rows_examined"),
    text("db", 512),
    int("last_insert_id"),
    int("insert_id"),
    field("server_id", FieldKind::UnsignedInt),
    field("sql_text", FieldKind::MediumBlob),
    unsigned("thread_id"),
];

pub(super) fn general_log(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let row = |entry: &Entry| match &entry.event {
        LogEvent::Command(client, command, argument) => Some(vec![
            moment(entry.wall_clock_us, facts),
            bytes(client.user_host()),
            Value::UInt(client.connection.into()),
            server_id(facts),
            bytes(command),
            Value::Bytes(argument.to_vec()),
        ]),
        _ => None,
    };
    facts.journal.general.entries().iter().filter_map(|entry| row(entry)).collect()
}

pub(super) fn slow_log(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let int = |value: u64| Value::Int(i64::try_from(value).unwrap_or(i64::MAX).min(i32::MAX.into()));
    let row = |entry: &Entry| match &entry.event {
        LogEvent::Slow(client, statement, sql_text) => Some(vec![
            moment(entry.wall_clock_us.saturating_sub(statement.took_us), facts),
            bytes(client.user_host()),
            duration(statement.took_us),
            duration(0),
            int(statement.rows_sent),
            int(0),
            bytes(&statement.database),
            int(statement.last_insert_id),
            int(0),
            server_id(facts),
            Value::Bytes(sql_text.to_vec()),
            Value::UInt(client.connection.into()),
        ]),
        _ => None,
    };
    facts.journal.slow.entries().iter().filter_map(|entry| row(entry)).collect()
}

fn server_id(facts: &ShowContext<'_>) -> Value {
    Value::UInt(unsigned_of(&facts.session.globals.value_named("server_id")))
}

fn moment(wall_clock_us: u64, facts: &ShowContext<'_>) -> Value {
    Value::Temporal(facts.session.variables.value_rules().zone().date_time_at(wall_clock_us, 6))
}

fn duration(microseconds: u64) -> Value {
    let seconds = microseconds / 1_000_000;
    let parts = match seconds / 3600 {
        hours @ 0..=HOURS_MAX => Parts {
            hour: hours as u16,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            microsecond: (microseconds % 1_000_000) as u32,
            ..Parts::default()
        },
        _ => Parts { hour: HOURS_MAX as u16, minute: 59, second: 59, ..Parts::default() },
    };
    Value::Temporal(Temporal::from_parts(TemporalKind::Time, 6, &parts))
}
