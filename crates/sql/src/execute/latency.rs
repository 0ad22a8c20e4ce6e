//! Hot path: at most 40 instructions per statement.
//!
//! Measures the latencies of statements by kind.
//!
//! A statement lasts from the start of the turn that received its command to the end of the turn that
//! completed it. If this thread also writes the answer, that write is included. Only clock values that the
//! turns read anyway are used. Time that a statement waits for others in its turn counts, because its client
//! waits too.

use junctor_gateway::threads::Time;
use junctor_model::value::Value;

use super::engine::Engine;
use super::histogram::{Histogram, bounds_ns};
use super::session::Session;
use super::turn_ends::StatementCounters;
use crate::plan::OperationKind;

/// The latencies of the statements of one sql block.
#[derive(Debug)]
pub(crate) struct Latencies {
    /// One histogram for each kind, at the position of the kind's number. The first one stays empty.
    histograms: [Histogram; OperationKind::MEASURED.len() + 1],
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { histograms: std::array::from_fn(|_| Histogram::default()) }
    }
}

impl Latencies {
    #[inline]
    fn record(&mut self, kind: OperationKind, duration_ns: u64, count: u32) {
        if kind != OperationKind::None {
            self.histograms[kind as usize].record(duration_ns, count);
        }
    }
}

impl Engine {
    /// Records the end of the session's statement, which began at `begun`.
    #[inline]
    pub fn note_done(&mut self, session: &mut Session, begun: Time, now: Time) {
        let kind = std::mem::take(&mut session.operation);
        let counters = StatementCounters { kind, digest: std::mem::take(&mut session.digest) };
        if counters != StatementCounters::default() {
            self.digests.count(counters.digest, session);
            if !self.ends.note(counters, begun, now) {
                self.record(counters, now.since(begun).0, now);
            }
        }
        session.has_failed = false;
    }

    #[cold]
    fn record(&mut self, counters: StatementCounters, duration_ns: u64, now: Time) {
        self.latencies.record(counters.kind, duration_ns, 1);
        self.digests.record(counters.digest, duration_ns, 1, now);
    }

    /// Ends the turn that began at `began`. Its statements are recorded with the end time `ended`.
    #[inline]
    pub fn end_turn(&mut self, began: Time, ended: Time) {
        let Engine { ends, latencies, digests, .. } = self;
        ends.end_turn(began, ended, |counters, duration_ns, count| {
            latencies.record(counters.kind, duration_ns, count);
            digests.record(counters.digest, duration_ns, count, ended);
        });
    }

    /// This block's contribution to `junctor_info.operation_latency`, for the sql block that executes the
    /// query: one row for each kind of statement executed here.
    pub fn latency_rows(&self, instance: u16) -> Vec<Vec<Value>> {
        let kinds =
            OperationKind::MEASURED.iter().map(|(kind, name)| (name, &self.latencies.histograms[*kind as usize]));
        let seen = kinds.filter(|(_, histogram)| histogram.count() > 0);
        let row = |(name, histogram): (&&str, &Histogram)| {
            let numbers = histogram.to_numbers().into_iter().flat_map(u64::to_le_bytes).collect();
            vec![Value::UInt(u64::from(instance)), Value::Bytes(name.as_bytes().to_vec()), Value::Bytes(numbers)]
        };
        seen.map(row).collect()
    }
}

/// Decodes the rows of all sql blocks into instance, kind and histogram. The totals of the node come first;
/// their instance is `None`.
fn decode_rows(rows: &[Vec<Value>]) -> Vec<(Option<u64>, &'static str, Histogram)> {
    let read = |row: &Vec<Value>| match row.as_slice() {
        [Value::UInt(instance), Value::Bytes(name), Value::Bytes(numbers)] => {
            let numbers = numbers.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            Some((*instance, name.clone(), Histogram::from_numbers(numbers)))
        }
        _ => None,
    };
    let mut parts: Vec<_> = rows.iter().filter_map(read).collect();
    parts.sort_by_key(|(instance, ..)| *instance);
    let mut whole = Vec::new();
    let mut single = Vec::new();
    for (_, name) in OperationKind::MEASURED {
        let mut sum = Histogram::default();
        for (instance, _, histogram) in parts.iter().filter(|(_, kind, _)| kind == name.as_bytes()) {
            sum.merge(histogram);
            single.push((Some(*instance), name, histogram.clone()));
        }
        if sum.count() > 0 {
            whole.push((None, name, sum));
        }
    }
    whole.extend(single);
    whole
}

/// The rows of `junctor_info.operation_latency`.
pub(crate) fn summary_rows(rows: &[Vec<Value>]) -> Vec<Vec<Value>> {
    let row = |(instance, name, histogram): (Option<u64>, &str, Histogram)| {
        let quantiles_ns = [500, 950, 990, 999].map(|thousandths| histogram.quantile_ns(thousandths));
        let us = |time_ns: u64| Value::Double(time_ns as f64 / 1000.0);
        let mut row = vec![instance.map_or(Value::Null, Value::UInt), Value::Bytes(name.into())];
        row.extend([Value::UInt(histogram.count()), Value::UInt(histogram.sum_ns() / 1000)]);
        row.extend(quantiles_ns.map(us));
        row.push(us(histogram.max_ns()));
        row
    };
    decode_rows(rows).into_iter().map(row).collect()
}

/// The rows of `junctor_info.operation_latency_buckets`.
pub(crate) fn bucket_rows(rows: &[Vec<Value>]) -> Vec<Vec<Value>> {
    let of_one = |(instance, name, histogram): (Option<u64>, &'static str, Histogram)| {
        let buckets: Vec<_> = histogram.buckets().collect();
        buckets.into_iter().map(move |(bucket, count)| {
            let (from_ns, to_ns) = bounds_ns(bucket);
            let numbers = [from_ns, to_ns, count].map(Value::UInt);
            let mut row = vec![instance.map_or(Value::Null, Value::UInt), Value::Bytes(name.into())];
            row.extend(numbers);
            row
        })
    };
    decode_rows(rows).into_iter().flat_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(latencies: &Latencies) -> Vec<(&'static str, u64, u64)> {
        let seen = OperationKind::MEASURED.iter().map(|(kind, name)| (*name, &latencies.histograms[*kind as usize]));
        seen.filter(|(_, seen)| seen.count() > 0).map(|(name, seen)| (name, seen.count(), seen.sum_ns())).collect()
    }

    #[test]
    fn kinds_are_recorded_apart_and_statements_without_one_nowhere() {
        let mut latencies = Latencies::default();
        let recorded = [(OperationKind::PointRead, 2), (OperationKind::Update, 1), (OperationKind::None, 3)];
        recorded.iter().for_each(|(kind, count)| latencies.record(*kind, 500, *count));
        assert_eq!(counts(&latencies), [("point_read", 2, 1_000), ("update", 1, 500)]);
        assert_eq!(latencies.histograms[0].count(), 0);
    }

    #[test]
    fn latencies_are_listed_for_each_block_and_in_total() {
        let of = |instance: u64, name: &str, durations: &[u64]| {
            let mut histogram = Histogram::default();
            durations.iter().for_each(|duration| histogram.record(*duration, 1));
            let numbers = histogram.to_numbers().into_iter().flat_map(u64::to_le_bytes).collect();
            vec![Value::UInt(instance), Value::Bytes(name.into()), Value::Bytes(numbers)]
        };
        let rows = [of(1, "scan", &[7_000]), of(0, "scan", &[5_000, 9_000]), of(0, "commit", &[1_000])];
        let summary = summary_rows(&rows);
        let shown = |row: &Vec<Value>| {
            let instance = if let Value::UInt(instance) = row[0] { Some(instance) } else { None };
            let Value::Bytes(name) = &row[1] else { panic!("{row:?}") };
            (instance, String::from_utf8(name.clone()).expect("a name"), row[2].clone())
        };
        let expected = [
            (None, "scan", 3),
            (None, "commit", 1),
            (Some(0), "scan", 2),
            (Some(1), "scan", 1),
            (Some(0), "commit", 1),
        ];
        let expected = expected.map(|(instance, name, count)| (instance, name.to_string(), Value::UInt(count)));
        assert_eq!(summary.iter().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!(summary[0][3..5], [Value::UInt(21), Value::Double(7.167)]);
        assert_eq!(summary[0][8], Value::Double(9.0), "the longest");
        let buckets = bucket_rows(&rows);
        assert_eq!(buckets.len(), 3 + 1 + 2 + 1 + 1);
        assert_eq!(buckets[0][2..], [4_608, 5_119, 1].map(Value::UInt));
        assert_eq!(summary_rows(&[]).len() + bucket_rows(&[vec![Value::Null]]).len(), 0);
    }
}
