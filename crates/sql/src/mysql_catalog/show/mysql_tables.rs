//! The tables of the database `mysql` that are not about accounts or logs: time zones, and what Junctor does
//! not have. The latter have no rows.

use junctor_model::temporal::zone_names;
use junctor_model::value::Value;

use super::fact::ShowContext;
use super::layout::{Field, bytes, count, int, long, number, text, unsigned};
use super::virtual_schema::{SchemaTable, nothing};

/// The tables, sorted by name.
pub(super) const TABLES: &[SchemaTable] = &[
    ("component", COMPONENT, nothing),
    ("func", FUNC, nothing),
    ("gtid_executed", GTID_EXECUTED, nothing),
    ("help_category", HELP_CATEGORY, nothing),
    ("help_keyword", HELP_KEYWORD, nothing),
    ("help_relation", HELP_RELATION, nothing),
    ("help_topic", HELP_TOPIC, nothing),
    ("plugin", PLUGIN, nothing),
    ("servers", SERVERS, nothing),
    ("time_zone", TIME_ZONE, time_zones),
    ("time_zone_leap_second", LEAP_SECOND, nothing),
    ("time_zone_name", TIME_ZONE_NAME, time_zone_names),
];

const TIME_ZONE: &[Field] = &[unsigned("Time_zone_id"), text("Use_leap_seconds", 1)];

const TIME_ZONE_NAME: &[Field] = &[text("Name", 64), unsigned("Time_zone_id")];

const LEAP_SECOND: &[Field] = &[number("Transition_time"), int("Correction")];

const FUNC: &[Field] = &[text("name", 64), int("ret"), text("dl", 128), text("type", 9)];

const PLUGIN: &[Field] = &[text("name", 64), text("dl", 128)];

const COMPONENT: &[Field] = &[unsigned("component_id"), unsigned("component_group_id"), long("component_urn")];

const SERVERS: &[Field] = &[
    text("Server_name", 64),
    text("Host", 255),
    text("Db", 64),
    text("Username", 64),
    text("Password", 64),
    int("Port"),
    text("Socket", 64),
    text("Wrapper", 64),
    text("Owner", 64),
];

const GTID_EXECUTED: &[Field] = &[text("source_uuid", 36), number("interval_start"), number("interval_end")];

const HELP_TOPIC: &[Field] = &[
    unsigned("help_topic_id"),
    text("name", 64),
    unsigned("help_category_id"),
    long("description"),
    long("example"),
    long("url"),
];

const HELP_CATEGORY: &[Field] =
    &[unsigned("help_category_id"), text("name", 64), unsigned("parent_category_id").or_null(), long("url")];

const HELP_KEYWORD: &[Field] = &[unsigned("help_keyword_id"), text("name", 64)];

const HELP_RELATION: &[Field] = &[unsigned("help_topic_id"), unsigned("help_keyword_id")];

/// The named zones of the server. Clients test for rows to learn whether CONVERT_TZ knows names.
fn time_zones(_: &ShowContext<'_>) -> Vec<Vec<Value>> {
    (1..=zone_names().len()).map(|number| vec![count(number), bytes("N")]).collect()
}

fn time_zone_names(_: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let names = zone_names().into_iter();
    (1..).zip(names).map(|(number, name)| vec![bytes(name), count(number)]).collect()
}
