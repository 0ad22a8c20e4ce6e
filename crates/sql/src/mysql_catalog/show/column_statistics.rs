//! `information_schema.COLUMN_STATISTICS`: the histograms that UPDATE HISTOGRAM has made, in MySQL's JSON.

use junctor_model::schema::{ColumnDefinition, TableDefinition};
use junctor_model::temporal::{Temporal, TemporalKind, civil_of_days};
use junctor_model::types::Form;
use junctor_model::value::{Value, ValueRef};

use super::column_rows;
use super::fact::ShowContext;
use super::information_schema::stored_tables;
use super::layout::bytes;
use crate::statistics::{Bucket, RequestedHistogram};

/// The collation that MySQL states for columns without one.
const NUMBER_COLLATION: u16 = 8;

/// The rows of `COLUMN_STATISTICS`.
pub(super) fn column_statistics(facts: &ShowContext<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in stored_tables(facts) {
        let rights = facts.rights.on_table(&table.database, &table.name);
        for (column, histogram) in (facts.histograms)(table) {
            let definition = &table.columns[usize::from(column.0)];
            if column_rows::privileges(table, definition, &rights).is_none() {
                continue;
            }
            rows.push(row(table, definition, &histogram));
        }
    }
    rows
}

fn row(table: &TableDefinition, column: &ColumnDefinition, histogram: &RequestedHistogram) -> Vec<Value> {
    vec![bytes(&table.database), bytes(&table.name), bytes(&column.name), bytes(json_of(column, histogram))]
}

/// The histogram as MySQL prints it, with its order of members.
fn json_of(column: &ColumnDefinition, requested: &RequestedHistogram) -> String {
    let histogram = &requested.histogram;
    let bucket = |bucket: &Bucket| {
        let upper = json_value(bucket.upper.1.as_ref());
        let cumulative = number(bucket.cumulative);
        match histogram.is_singleton {
            true => format!("[{upper}, {cumulative}]"),
            false => {
                format!("[{}, {upper}, {cumulative}, {:.0}]", json_value(bucket.lower.1.as_ref()), bucket.distinct)
            }
        }
    };
    let buckets: Vec<String> = histogram.buckets.iter().map(bucket).collect();
    let collation = column.column_type.collation().map_or(NUMBER_COLLATION, |collation| collation.number());
    let kind = if histogram.is_singleton { "singleton" } else { "equi-height" };
    format!(
        "{{\"buckets\": [{}], \"data-type\": \"{}\", \"null-values\": {}, \"collation-id\": {collation}, \
         \"last-updated\": \"{}\", \"sampling-rate\": {}, \"histogram-type\": \"{kind}\", \
         \"number-of-buckets-specified\": {}}}",
        buckets.join(", "),
        data_type(column),
        number(requested.nulls),
        moment(requested.updated_us),
        number(requested.sampling_rate),
        requested.buckets,
    )
}

/// The name of a column's type in the JSON.
fn data_type(column: &ColumnDefinition) -> &'static str {
    match column.column_type.form() {
        Form::UInt | Form::Bit => "uint",
        Form::Decimal => "decimal",
        Form::Float | Form::Double => "double",
        Form::Temporal(TemporalKind::Date) => "date",
        Form::Temporal(TemporalKind::Time) => "time",
        Form::Temporal(TemporalKind::DateTime | TemporalKind::Timestamp) => "datetime",
        Form::Enum => "enum",
        Form::Set => "set",
        Form::Bytes => "string",
        _ => "int",
    }
}

/// A double of JSON: with a point.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.1}") } else { format!("{value}") }
}

fn json_value(value: ValueRef<'_>) -> String {
    let text = |value: ValueRef<'_>| {
        let mut text = Vec::new();
        match value {
            ValueRef::Decimal(number) => number.append_text(&mut text),
            ValueRef::Temporal(moment) => moment.append_text(&mut text),
            _ => {}
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    match value {
        ValueRef::Int(number) => number.to_string(),
        ValueRef::UInt(number) => number.to_string(),
        ValueRef::Double(value) => number(value),
        ValueRef::Float(value) => number(f64::from(value)),
        ValueRef::Decimal(_) => text(value),
        ValueRef::Temporal(Temporal { kind: TemporalKind::Year, .. }) => text(value),
        ValueRef::Temporal(moment) => {
            let digits = if moment.kind == TemporalKind::Date { 0 } else { 6 };
            format!("\"{}\"", text(ValueRef::Temporal(Temporal { digits, ..moment })))
        }
        ValueRef::Bit(bits) => bits.number.to_string(),
        ValueRef::Choice(choice) => choice.number.to_string(),
        ValueRef::Bytes(text) => format!("\"base64:type254:{}\"", base64(text)),
        ValueRef::Null | ValueRef::Json(_) => "null".to_owned(),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// A moment in UTC with microseconds.
fn moment(us: u64) -> String {
    let (day, of_day) = ((us / 86_400_000_000) as i64, us % 86_400_000_000);
    let (year, month, day) = civil_of_days(day);
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{fraction:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_base64() {
        let texts = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

    #[test]
    fn moments_have_microseconds() {
        assert_eq!(moment(1_540_198_800_000_001), "2018-10-22 09:00:00.000001");
    }
}
