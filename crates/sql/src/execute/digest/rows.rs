//! The rows of the digest tables of `performance_schema`: the figures of all sql blocks are added.

use std::collections::BTreeMap;

use junctor_model::temporal::Zone;
use junctor_model::value::Value;

use crate::execute::histogram::{Histogram, bounds_ns};
use crate::parse::digest_hash;
use crate::plan::{DigestKey, PlanWork, WORK_COUNTS};

/// Picoseconds in a nanosecond. The tables count in picoseconds, as in MySQL.
const PS_PER_NS: u64 = 1000;

/// The sums over the executions of a digest, apart from their durations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub errors: u64,
    pub warnings: u64,
    pub rows_affected: u64,
    pub rows_sent: u64,
    /// Rows of results that were sorted.
    pub sorted_rows: u64,
    /// In the order of [`PlanWork`].
    pub work: [u64; WORK_COUNTS],
}

impl Counts {
    /// Adds an execution of a plan.
    pub fn add_work(&mut self, work: PlanWork, rows: u64) {
        for (sum, count) in self.work.iter_mut().zip(work.0) {
            *sum += u64::from(count);
        }
        if work.has_sort() {
            self.sorted_rows += rows;
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let Counts { errors, warnings, rows_affected, rows_sent, sorted_rows, work } = self.clone();
        [errors, warnings, rows_affected, rows_sent, sorted_rows].into_iter().chain(work)
    }

    fn of_numbers(numbers: &mut impl Iterator<Item = u64>) -> Counts {
        let mut next = || numbers.next().unwrap_or(0);
        Counts {
            errors: next(),
            warnings: next(),
            rows_affected: next(),
            rows_sent: next(),
            sorted_rows: next(),
            work: std::array::from_fn(|_| next()),
        }
    }

    fn merge(&mut self, other: &Counts) {
        let sums: Vec<u64> = self.numbers().zip(other.numbers()).map(|(own, more)| own.saturating_add(more)).collect();
        *self = Counts::of_numbers(&mut sums.into_iter());
    }
}

/// The figures of a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Figures {
    /// `None` for the statements whose digest found no room.
    pub key: Option<DigestKey>,
    pub counts: Counts,
    pub min_ns: u64,
    /// Microseconds since 1970-01-01 UTC, as `last_seen_us`.
    pub first_seen_us: u64,
    pub last_seen_us: u64,
    pub durations: Histogram,
    /// The text of the first execution, and its duration in nanoseconds.
    pub sample: Option<(Box<str>, u64)>,
}

impl Figures {
    /// A row of the status table, which only [`Figures::decode`] understands.
    pub fn encode(&self) -> Vec<Value> {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let key = self.key.as_ref();
        let (sample, sample_ns) = self.sample.as_ref().map_or((Value::Null, 0), |(sample, ns)| (text(sample), *ns));
        let more = [self.min_ns, self.first_seen_us, self.last_seen_us, sample_ns];
        let packed =
            |numbers: &mut dyn Iterator<Item = u64>| Value::Bytes(numbers.flat_map(u64::to_le_bytes).collect());
        vec![
            key.and_then(|key| key.database.as_deref()).map_or(Value::Null, text),
            key.map_or(Value::Null, |key| text(&key.text)),
            packed(&mut self.counts.numbers().chain(more)),
            packed(&mut self.durations.to_numbers().into_iter()),
            sample,
        ]
    }

    fn decode(row: &[Value]) -> Option<Figures> {
        let [database, text, numbers, durations, sample] = row else { return None };
        let (Value::Bytes(numbers), Value::Bytes(durations)) = (numbers, durations) else { return None };
        let numbers_of = |bytes: &[u8]| -> Vec<u64> {
            bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect()
        };
        let mut numbers = numbers_of(numbers).into_iter();
        let counts = Counts::of_numbers(&mut numbers);
        let mut next = || numbers.next().unwrap_or(0);
        let [min_ns, first_seen_us, last_seen_us, sample_ns] = std::array::from_fn(|_| next());
        Some(Figures {
            key: text_of(text).map(|text| DigestKey { database: text_of(database), text }),
            counts,
            min_ns,
            first_seen_us,
            last_seen_us,
            durations: Histogram::from_numbers(numbers_of(durations).into_iter()),
            sample: text_of(sample).map(|sample| (sample, sample_ns)),
        })
    }

    /// Adds the figures of another sql block. The older sample stays.
    fn merge(&mut self, other: Figures) {
        self.counts.merge(&other.counts);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.last_seen_us = self.last_seen_us.max(other.last_seen_us);
        self.durations.merge(&other.durations);
        if other.first_seen_us < self.first_seen_us {
            self.first_seen_us = other.first_seen_us;
            self.sample = other.sample;
        }
    }
}

/// The rows of a digest table, from the figures of all sql blocks. Figures of one digest are added. Rows come
/// one at a time, so that the caller can do other work in between.
#[derive(Debug)]
pub(in crate::execute) struct DigestRows {
    form: RowForm,
    /// The figures that are not added yet.
    reported: std::vec::IntoIter<Vec<Value>>,
    /// By database and text. Those without a digest come first.
    merged: BTreeMap<Option<DigestKey>, Figures>,
    /// Further rows of the last digest.
    ready: std::vec::IntoIter<Vec<Value>>,
}

#[derive(Clone, Copy, Debug)]
enum RowForm {
    /// `events_statements_summary_by_digest`, with times in this zone.
    Summary(Zone),
    /// `events_statements_histogram_by_digest`.
    Histograms,
}

impl DigestRows {
    /// The rows of `events_statements_summary_by_digest`, with times in this zone.
    pub fn summary(reported: Vec<Vec<Value>>, zone: Zone) -> DigestRows {
        DigestRows::new(RowForm::Summary(zone), reported)
    }

    /// The rows of `events_statements_histogram_by_digest`: the buckets that are not empty.
    pub fn histograms(reported: Vec<Vec<Value>>) -> DigestRows {
        DigestRows::new(RowForm::Histograms, reported)
    }

    fn new(form: RowForm, reported: Vec<Vec<Value>>) -> DigestRows {
        let (merged, ready) = (BTreeMap::new(), Vec::new().into_iter());
        DigestRows { form, reported: reported.into_iter(), merged, ready }
    }

    /// Adds the figures of one digest of one block. Returns false if all are added.
    pub fn merge_next(&mut self) -> bool {
        let Some(row) = self.reported.next() else { return false };
        let Some(figures) = Figures::decode(&row) else { return true };
        match self.merged.get_mut(&figures.key) {
            Some(known) => known.merge(figures),
            None => {
                self.merged.insert(figures.key.clone(), figures);
            }
        }
        true
    }

    /// The next row, once all figures are added.
    pub fn next_row(&mut self) -> Option<Vec<Value>> {
        loop {
            if let Some(row) = self.ready.next() {
                return Some(row);
            }
            let (_, figures) = self.merged.pop_first()?;
            match self.form {
                RowForm::Summary(zone) => return Some(summary_row(figures, zone)),
                RowForm::Histograms => self.ready = histogram_rows(&figures).into_iter(),
            }
        }
    }
}

/// SCHEMA_NAME and DIGEST.
fn identity(figures: &Figures) -> [Value; 2] {
    let Some(key) = &figures.key else { return [Value::Null, Value::Null] };
    let database = key.database.as_deref().map_or(Value::Null, |name| Value::Bytes(name.into()));
    [database, Value::Bytes(digest_hash(&key.text).into_bytes())]
}

/// A row of `events_statements_summary_by_digest`.
fn summary_row(figures: Figures, zone: Zone) -> Vec<Value> {
    let moment = |at_us: u64| Value::Temporal(zone.date_time_at(at_us, 6));
    let ps = |ns: u64| Value::UInt(ns.saturating_mul(PS_PER_NS));
    let zero = || Value::UInt(0);
    let Counts { errors, warnings, rows_affected, rows_sent, sorted_rows, work } = &figures.counts;
    let [full_joins, full_range_joins, ranges, scans, sorted_ranges, sorted_scans, without_index] =
        work.map(Value::UInt);
    let durations = &figures.durations;
    let average_ns = durations.sum_ns() / durations.count().max(1);
    let quantiles = [950, 990, 999].map(|thousandths| ps(durations.quantile_ns(thousandths)));
    let text = figures.key.as_ref().map_or(Value::Null, |key| Value::Bytes(key.text.as_bytes().to_vec()));
    let mut row = Vec::from(identity(&figures));
    row.extend([text, Value::UInt(durations.count())]);
    row.extend([durations.sum_ns(), figures.min_ns, average_ns, durations.max_ns()].map(ps));
    // SUM_LOCK_TIME is not measured.
    row.push(zero());
    row.extend([errors, warnings, rows_affected, rows_sent].map(|sum| Value::UInt(*sum)));
    // ROWS_EXAMINED and temporary tables are not measured.
    row.extend([zero(), zero(), zero()]);
    // No range is checked again for each row, and no pass of a sort is counted.
    row.extend([full_joins, full_range_joins, ranges, zero(), scans, zero()]);
    row.extend([sorted_ranges, Value::UInt(*sorted_rows), sorted_scans, without_index, zero()]);
    // Neither time of the CPU nor memory is measured, and there is no secondary engine.
    row.extend([zero(), zero(), zero(), zero()]);
    row.extend([moment(figures.first_seen_us), moment(figures.last_seen_us)]);
    row.extend(quantiles);
    match figures.sample {
        Some((sample, sample_ns)) => {
            let sample = Value::Bytes(sample.as_bytes().to_vec());
            row.extend([sample, moment(figures.first_seen_us), ps(sample_ns)]);
        }
        None => row.extend([Value::Null, moment(figures.first_seen_us), zero()]),
    }
    row
}

/// The rows of a digest in `events_statements_histogram_by_digest`: the buckets that are not empty.
fn histogram_rows(figures: &Figures) -> Vec<Vec<Value>> {
    let mut lower = 0;
    let total = figures.durations.count().max(1) as f64;
    // A hash of the text, so it is made once.
    let identity = identity(figures);
    let row = |(bucket, count): (usize, u64)| {
        lower += count;
        let (from_ns, to_ns) = bounds_ns(bucket);
        // The end of a bucket is the beginning of the next one, as in MySQL.
        let bounds = [from_ns, to_ns + 1].map(|ns| Value::UInt(ns * PS_PER_NS));
        let mut row = Vec::from(identity.clone());
        row.push(Value::UInt(bucket as u64));
        row.extend(bounds);
        row.extend([Value::UInt(count), Value::UInt(lower), Value::Double(lower as f64 / total)]);
        row
    };
    figures.durations.buckets().map(row).collect()
}

fn text_of(value: &Value) -> Option<Box<str>> {
    match value {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into()),
        _ => None,
    }
}
