//! SHOW of the server's lists and of session state: engines, character sets, variables, plugins, grants,
//! warnings.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, Result};
use junctor_model::value::Value;

use super::create_text::ENGINE;
use super::fact::{ShowContext, WarningLevel};
use super::layout::{VirtualTable, bytes, number, text, unsigned};
use crate::parse::mysql_words;
use crate::parse::statement::{Limit, LimitValue};

/// The words of MySQL, sorted, and whether they are reserved.
pub(super) fn keyword_rows() -> Vec<Vec<Value>> {
    let row = |(word, is_reserved): (&str, bool)| vec![bytes(word), Value::Int(i64::from(is_reserved))];
    mysql_words().into_iter().map(row).collect()
}

/// Storage engines, as (name, support, comment, transactions, XA, savepoints).
pub(super) fn engine_rows() -> Vec<Vec<Value>> {
    let comment = "Distributed, in memory first, with snapshot reads";
    vec![[ENGINE, "DEFAULT", comment, "YES", "NO", "YES"].map(bytes).to_vec()]
}

/// Character sets, as (name, default collation, description, maximum bytes of a character).
pub(super) fn character_set_rows() -> Vec<(&'static str, &'static str, &'static str, i64)> {
    let mut sets = CharacterSet::ALL;
    sets.sort_by_key(|set| set.name());
    let row = |set: CharacterSet| {
        (set.name(), set.default_collation().name(), set.description(), set.max_bytes_per_character() as i64)
    };
    sets.into_iter().map(row).collect()
}

/// Collations that columns may have: name, character set, number, default, compiled, sort length, padding.
pub(super) fn collation_rows() -> Vec<Vec<Value>> {
    let mut collations = CollationId::ALL;
    collations.sort_by_key(|collation| collation.name());
    let row = |collation: CollationId| {
        vec![
            bytes(collation.name()),
            bytes(collation.character_set().name()),
            Value::UInt(u64::from(collation.number())),
            bytes(if collation.is_default() { "Yes" } else { "" }),
            bytes("Yes"),
            Value::UInt(sort_length(collation)),
            bytes(if collation.pads_with_spaces() { "PAD SPACE" } else { "NO PAD" }),
        ]
    };
    collations.into_iter().map(row).collect()
}

/// MySQL's column `Sortlen`.
fn sort_length(collation: CollationId) -> u64 {
    match collation.name() {
        "utf8mb4_0900_as_ci" => 0,
        name if name.ends_with("0900_ai_ci") || name.ends_with("0900_as_cs") => 0,
        "utf8mb4_ja_0900_as_cs_ks" => 24,
        "latin1_german2_ci" => 2,
        // The collations over UCA 4.0.0 and 5.2.0.
        _ if matches!(collation.number(), 224..=247 | 192 | 214) => 8,
        _ => 1,
    }
}

/// SHOW WARNINGS, or SHOW ERRORS with `only_errors`. Error 1235 for a parameter in LIMIT.
pub(super) fn show_warnings(only_errors: bool, limit: Option<Limit>, facts: &ShowContext<'_>) -> Result<VirtualTable> {
    let rows = |value: LimitValue| match value {
        LimitValue::Rows(rows) => Ok(usize::try_from(rows).unwrap_or(usize::MAX)),
        LimitValue::Parameter(_) => Err(Error::not_supported("SHOW WARNINGS with a parameter")),
    };
    let count_max = limit.map_or(Ok(usize::MAX), |limit| rows(limit.count))?;
    let skipped = limit.and_then(|limit| limit.offset).map_or(Ok(0), rows)?;
    let wanted = facts.warnings.iter().filter(|warning| !only_errors || warning.level == WarningLevel::Error);
    let row = |warning: &super::Warning| {
        vec![bytes(warning.level.name()), Value::UInt(u64::from(warning.code)), bytes(&warning.message)]
    };
    let fields = [text("Level", 7), unsigned("Code"), text("Message", 512)];
    Ok(VirtualTable::of_show(&fields, wanted.skip(skipped).take(count_max).map(row).collect()))
}

pub(super) fn show_warning_count(only_errors: bool, facts: &ShowContext<'_>) -> VirtualTable {
    let (field, count) = match only_errors {
        true => (number("@@session.error_count"), facts.session.error_count),
        false => (number("@@session.warning_count"), facts.session.warning_count),
    };
    VirtualTable::of_show(&[field], vec![vec![Value::Int(i64::from(count))]])
}

/// Plugins, as (name, status, type, library, license).
pub(super) fn plugin_rows() -> Vec<[Value; 5]> {
    let row = |name, kind| [bytes(name), bytes("ACTIVE"), bytes(kind), Value::Null, bytes("Apache-2.0")];
    vec![
        row("caching_sha2_password", "AUTHENTICATION"),
        row("mysql_native_password", "AUTHENTICATION"),
        row(ENGINE, "STORAGE ENGINE"),
    ]
}
