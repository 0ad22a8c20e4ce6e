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
use crate::plan::{DigestNumber, OperationKind};

/// Maximum number of statements whose end is recorded individually at the end of the turn: those that began
/// in an earlier turn, and those whose kind differs from the turn's first statement. Statements beyond this
/// count as ended at the start of the turn.
const LATE_MAX: usize = 128;

/// The latencies of the statements of one sql block.
#[derive(Debug)]
pub(crate) struct Latencies {
    /// The kind of the first statement that began and ended in the current turn, and the number of such
    /// statements of this kind.
    kind: OperationKind,
    count: u32,
    late: Vec<(OperationKind, Time)>,
    /// One histogram for each kind, at the position of the kind's number. The first one stays empty.
    histograms: [Histogram; OperationKind::MEASURED.len() + 1],
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            kind: OperationKind::None,
            count: 0,
            late: Vec::with_capacity(LATE_MAX),
            histograms: std::array::from_fn(|_| Histogram::default()),
        }
    }
}

impl Latencies {
    /// Records a statement that began at `begun` and ended in the turn that began at `now`.
    #[inline]
    fn note(&mut self, kind: OperationKind, begun: Time, now: Time) {
        // The common case: statements of one kind that begin and end in the same turn are only counted.
        if begun == now && (self.count == 0 || kind == self.kind) {
            self.kind = kind;
            self.count += 1;
        } else {
            self.note_late(kind, begun, now);
        }
    }

    #[inline(never)]
    fn note_late(&mut self, kind: OperationKind, begun: Time, now: Time) {
        match self.late.len() < LATE_MAX {
            true => self.late.push((kind, begun)),
            false => self.histograms[kind as usize].record(now.since(begun).0, 1),
        }
    }

    #[inline]
    fn end_turn(&mut self, began: Time, ended: Time) {
        if self.count > 0 {
            let count = std::mem::take(&mut self.count);
            self.histograms[self.kind as usize].record(ended.since(began).0, count);
        }
        if !self.late.is_empty() {
            self.end_late(ended);
        }
    }

    #[inline(never)]
    fn end_late(&mut self, ended: Time) {
        for (kind, begun) in self.late.drain(..) {
            self.histograms[kind as usize].record(ended.since(begun).0, 1);
        }
    }
}

impl Engine {
    /// Records the end of the session's statement, which began at `begun`.
    #[inline]
    pub fn note_done(&mut self, session: &mut Session, begun: Time, now: Time) {
        let kind = std::mem::take(&mut session.operation);
        if kind != OperationKind::None {
            self.latencies.note(kind, begun, now);
        }
        let digest = std::mem::take(&mut session.digest);
        if digest != DigestNumber::default() {
            self.digests.note(digest, session, begun, now);
        }
        session.has_failed = false;
    }

    /// Ends the turn that began at `began`. Its statements are recorded with the end time `ended`.
    #[inline]
    pub fn end_turn(&mut self, began: Time, ended: Time) {
        self.latencies.end_turn(began, ended);
        self.digests.end_turn(began, ended);
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
    fn a_statement_lasts_until_the_end_of_its_last_turn() {
        let mut latencies = Latencies::default();
        let turn = Time(1_000);
        latencies.note(OperationKind::PointRead, turn, turn);
        latencies.note(OperationKind::PointRead, turn, turn);
        latencies.note(OperationKind::Update, turn, turn);
        latencies.note(OperationKind::PointRead, Time(400), turn);
        assert_eq!(counts(&latencies), [], "the turn is not over");
        latencies.end_turn(turn, Time(1_500));
        assert_eq!(counts(&latencies), [("point_read", 3, 500 + 500 + 1_100), ("update", 1, 500)]);
        latencies.end_turn(Time(2_000), Time(9_000));
        assert_eq!(counts(&latencies).len(), 2, "nothing was done in that turn");
    }

    #[test]
    fn no_statement_of_a_busy_turn_is_lost() {
        let mut latencies = Latencies::default();
        for statement in 0..1_000 {
            let kind = if statement % 2 == 0 { OperationKind::Commit } else { OperationKind::Insert };
            latencies.note(kind, Time(10), Time(20));
        }
        latencies.end_turn(Time(20), Time(30));
        assert_eq!(counts(&latencies).iter().map(|(_, count, _)| count).sum::<u64>(), 1_000);
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
