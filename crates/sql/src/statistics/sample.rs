//! Rows of a table, and what they say about its columns.
//!
//! A sample consists of chunks of rows that are stored one after the other. The first rows of the chunks are
//! a sample of single rows: they tell how often values recur in the whole table. All rows together tell how
//! often a value recurs among its neighbours, as with the lines of an order.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::vec::IntoIter;

use junctor_expression::aggregate::append_distinct_key;
use junctor_model::collation::CollationId;
use junctor_model::id::ColumnNumber;
use junctor_model::value::{Value, ValueRef};
use junctor_signals::key_filter::hash_of;

use super::histogram::{Counted, Histogram, Position, position_of};

/// Mixes the hashes of several columns into one.
const COMBINED_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
/// Number of rows in a chunk.
pub const CHUNK_ROWS: u32 = 8;
/// Bounds of the number of rows in a sample, and of their values.
const ROWS_MAX: usize = 16_384;
const ROWS_MIN: usize = 256;
const VALUES_MAX: usize = 1 << 17;
/// A sample that has so many times as many rows as planned, because the table has grown, takes no more.
const GROWTH_MAX: usize = 4;
/// Maximum number of buckets in a histogram that nobody has asked for.
const BUCKETS: usize = 64;
/// Number of values that are sorted together.
const RUN_VALUES: usize = 512;
/// Number of values that one step merges.
const MERGED_VALUES: usize = 1024;
/// The share of rows of a table from which on the number of different values grows with the table.
const GROWING: f64 = 0.1;
/// Bytes of a text that the sample keeps.
const TEXT_BYTES_MAX: usize = 64;

/// Maximum number of rows of a sample with so many columns.
pub fn sample_rows_max(columns: usize) -> usize {
    (VALUES_MAX / columns.max(1)).clamp(ROWS_MIN, ROWS_MAX)
}

/// The statistics of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// The share of rows with NULL.
    pub nulls: f64,
    /// The estimated number of different values in the whole table, without NULL.
    pub distinct: f64,
    /// The values.
    pub histogram: Histogram,
}

/// The statistics of the values in a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableProfile {
    /// The number of rows of the table.
    pub rows: u64,
    /// The share of rows in the sample.
    pub sampling_rate: f64,
    /// The columns that were sampled.
    pub columns: BTreeMap<ColumnNumber, ColumnStatistics>,
    /// The estimated number of different values of several columns: of the first ones of an index.
    pub prefixes: BTreeMap<Box<[ColumnNumber]>, f64>,
}

impl TableProfile {
    /// The number of different values, or combinations of values, of these columns in a table that now has so
    /// many rows, without NULL. `None` if they were not counted.
    pub fn distinct(&self, columns: &[ColumnNumber], rows: f64) -> Option<f64> {
        let distinct = match columns {
            [column] => self.columns.get(column)?.distinct,
            columns => *self.prefixes.get(columns)?,
        };
        let then = (self.rows as f64).max(1.0);
        let distinct = if distinct > GROWING * then { distinct * rows / then } else { distinct };
        Some(distinct.min(rows))
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let of_columns: usize =
            self.columns.values().map(|column| size_of_val(column) + column.histogram.bytes()).sum();
        size_of::<TableProfile>()
            + of_columns
            + self.prefixes.keys().map(|columns| 32 + size_of_val(&**columns)).sum::<usize>()
    }
}

/// The histogram of a column with as many buckets as a statement wants.
pub type WantedBuckets = BTreeMap<ColumnNumber, usize>;

/// A value of the sample.
#[derive(Debug)]
struct Entry {
    /// `None` for values of several columns, which only have a hash.
    position: Option<Position>,
    hash: u64,
    leads: bool,
    value: Value,
}

/// The values of a column, or of several columns.
#[derive(Debug, Default)]
struct SampledColumn {
    /// Sorted lists.
    runs: Vec<Vec<Entry>>,
    /// Values that are not sorted yet.
    unsorted: Vec<Entry>,
    nulls: usize,
    merge: Option<Merge>,
    /// The number of different values, once all are in one list.
    distinct: Option<f64>,
}

/// Two lists of which one is being made.
#[derive(Debug)]
struct Merge {
    left: Peekable<IntoIter<Entry>>,
    right: Peekable<IntoIter<Entry>>,
    merged: Vec<Entry>,
}

/// A sample that is being collected.
#[derive(Debug)]
pub struct Sampler {
    columns: Vec<(ColumnNumber, CollationId, SampledColumn)>,
    prefixes: Vec<(Box<[ColumnNumber]>, SampledColumn)>,
    wanted: WantedBuckets,
    rows: usize,
    profile: TableProfile,
    histograms: BTreeMap<ColumnNumber, Histogram>,
}

impl Sampler {
    /// A sample of these columns, with the number of different values of these lists of columns. `wanted` has
    /// the numbers of buckets that a statement has asked for.
    pub fn new(
        columns: &[(ColumnNumber, CollationId)],
        prefixes: &[Box<[ColumnNumber]>],
        wanted: &WantedBuckets,
    ) -> Sampler {
        Sampler {
            columns: columns.iter().map(|(number, collation)| (*number, *collation, Default::default())).collect(),
            prefixes: prefixes.iter().map(|columns| (columns.clone(), Default::default())).collect(),
            wanted: wanted.clone(),
            rows: 0,
            profile: TableProfile::default(),
            histograms: BTreeMap::new(),
        }
    }

    /// Whether the table has grown so much that the sample takes no more rows.
    pub fn is_full(&self) -> bool {
        self.rows >= GROWTH_MAX * sample_rows_max(self.columns.len())
    }

    /// Adds a row with the values of the columns. Returns the memory that it takes in bytes.
    pub fn add<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) -> usize {
        let leads = self.rows.is_multiple_of(CHUNK_ROWS as usize);
        self.rows += 1;
        let mut bytes = 0;
        let mut hashes = Vec::with_capacity(self.columns.len());
        let mut key = Vec::new();
        for ((_, collation, column), value) in self.columns.iter_mut().zip(values) {
            key.clear();
            append_distinct_key(value, *collation, &mut key);
            let hash = hash_of(&key);
            hashes.push(hash);
            match position_of(value, *collation) {
                None => column.nulls += 1,
                Some(position) => {
                    bytes += size_of::<Entry>() + bytes_of(value);
                    let value = shortened(value);
                    column.unsorted.push(Entry { position: Some(position), hash, leads, value });
                }
            }
        }
        for (columns, values) in &mut self.prefixes {
            let place = |column| self.columns.iter().position(|(number, ..)| number == column);
            let of_columns = columns.iter().filter_map(|column| hashes.get(place(column)?).copied());
            let hash =
                of_columns.fold(0, |hash: u64, other| hash.rotate_left(21).wrapping_mul(COMBINED_FACTOR) ^ other);
            bytes += size_of::<Entry>();
            values.unsorted.push(Entry { position: None, hash, leads, value: Value::Null });
        }
        bytes
    }

    /// Sorts the rows that were added, once they are enough for a list.
    pub fn end_batch(&mut self) {
        let columns = self.columns.iter_mut().map(|(.., column)| column);
        let all = columns.chain(self.prefixes.iter_mut().map(|(_, values)| values));
        all.filter(|column| column.unsorted.len() >= RUN_VALUES).for_each(SampledColumn::end_run);
    }

    /// Does a bounded part of the work after the last row: the table has so many rows. Returns whether all is
    /// done.
    pub fn finish_step(&mut self, rows: u64) -> bool {
        let rows = rows.max(self.rows as u64);
        self.profile.rows = rows;
        self.profile.sampling_rate = if rows == 0 { 1.0 } else { self.rows as f64 / rows as f64 };
        if let Some((number, _, column)) = self.columns.last_mut() {
            let number = *number;
            if !column.merge_step() {
                return false;
            }
            let Some(distinct) = column.distinct else {
                let entries = column.runs.first().map_or(&[][..], Vec::as_slice);
                column.distinct = Some(distinct_values(entries, (self.rows, rows), column.nulls));
                return false;
            };
            let counted = counted(column.runs.pop().unwrap_or_default());
            let growth = distinct / (counted.len() as f64).max(1.0);
            let histogram = |buckets| Histogram::of_values(&counted, self.rows, buckets, growth.max(1.0));
            if let Some(buckets) = self.wanted.get(&number) {
                self.histograms.insert(number, histogram(*buckets));
            }
            let nulls = column.nulls as f64 / (self.rows as f64).max(1.0);
            let statistics = ColumnStatistics { nulls, distinct, histogram: histogram(BUCKETS) };
            self.profile.columns.insert(number, statistics);
            self.columns.pop();
            return false;
        }
        if let Some((columns, values)) = self.prefixes.last_mut() {
            if !values.merge_step() {
                return false;
            }
            let entries = values.runs.pop().unwrap_or_default();
            let distinct = distinct_values(&entries, (self.rows, rows), 0);
            self.profile.prefixes.insert(std::mem::take(columns), distinct);
            self.prefixes.pop();
            return false;
        }
        true
    }

    /// The result, and the histograms that a statement has asked for.
    pub fn into_profile(self) -> (TableProfile, BTreeMap<ColumnNumber, Histogram>) {
        (self.profile, self.histograms)
    }
}

impl SampledColumn {
    fn end_run(&mut self) {
        let mut run = std::mem::take(&mut self.unsorted);
        if !run.is_empty() {
            run.sort_by(order);
            self.runs.push(run);
        }
    }

    /// Does a part of merging the two shortest lists. Returns whether one list, or none, is left.
    fn merge_step(&mut self) -> bool {
        self.end_run();
        if self.merge.is_none() && self.runs.len() < 2 {
            return true;
        }
        let mut merge = self.merge.take().unwrap_or_else(|| {
            self.runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
            let mut shortest = || self.runs.pop().unwrap_or_default().into_iter().peekable();
            let (left, right) = (shortest(), shortest());
            Merge { merged: Vec::with_capacity(left.len() + right.len()), left, right }
        });
        match merge.step() {
            true => self.runs.push(merge.merged),
            false => self.merge = Some(merge),
        }
        false
    }
}

impl Merge {
    /// Returns whether all values are merged.
    fn step(&mut self) -> bool {
        for _ in 0..MERGED_VALUES {
            let from_left = match (self.left.peek(), self.right.peek()) {
                (Some(one), Some(other)) => order(one, other).is_le(),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return true,
            };
            self.merged.extend(if from_left { self.left.next() } else { self.right.next() });
        }
        false
    }
}

fn order(left: &Entry, right: &Entry) -> std::cmp::Ordering {
    let by_position = left.position.partial_cmp(&right.position).unwrap_or(std::cmp::Ordering::Equal);
    by_position.then(left.hash.cmp(&right.hash))
}

/// The values in order with their numbers of rows.
fn counted(entries: Vec<Entry>) -> Vec<Counted> {
    let mut values: Vec<Counted> = Vec::new();
    for Entry { position, value, .. } in entries {
        let Some(position) = position else { continue };
        match values.last_mut().filter(|last| last.position == position) {
            Some(last) => last.rows += 1,
            None => values.push(Counted { position, value, rows: 1 }),
        }
    }
    values
}

/// The estimated number of different values in a table of `rows` rows, given the sorted values of `sampled`
/// of them, without `nulls` rows that have none.
fn distinct_values(entries: &[Entry], (sampled, rows): (usize, u64), nulls: usize) -> f64 {
    let groups = entries.chunk_by(|left, right| left.hash == right.hash && left.position == right.position);
    let (mut seen, mut leading, mut once) = (0_usize, 0_usize, 0_usize);
    let mut leaders = 0;
    for group in groups {
        seen += 1;
        let of_group = group.iter().filter(|entry| entry.leads).count();
        leaders += of_group;
        leading += usize::from(of_group > 0);
        once += usize::from(of_group == 1);
    }
    let seen = seen as f64;
    if sampled as u64 >= rows {
        return seen;
    }
    let share = 1.0 - nulls as f64 / sampled.max(1) as f64;
    let total = rows as f64 * share;
    if leaders == 0 {
        return seen.max(1.0).min(total.max(1.0));
    }
    // The estimator of Haas and Stokes for single rows ("Estimating the number of classes in a finite
    // population", 1998), which PostgreSQL uses too.
    let (leaders, leading, once) = (leaders as f64, leading as f64, once as f64);
    let single = leaders * leading / (leaders - once + once * leaders / total.max(leaders));
    // A value that recurs among its neighbours does so in the whole table.
    let among_neighbours = seen / entries.len().max(1) as f64;
    let crowded = if once >= 0.9 * leaders { total * among_neighbours } else { f64::INFINITY };
    single.min(crowded).clamp(seen, total.max(seen))
}

/// Bytes of memory of the position and the value of a text, apart from the entry.
fn bytes_of(value: ValueRef<'_>) -> usize {
    if matches!(value, ValueRef::Bytes(_)) { 2 * TEXT_BYTES_MAX } else { 0 }
}

fn shortened(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Bytes(text) => Value::Bytes(text[..text.len().min(TEXT_BYTES_MAX)].to_vec()),
        value => value.to_value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The profile of a column with this value in each row, of which every `step`th chunk is sampled.
    fn profile(rows: u64, step: u64, value: impl Fn(u64) -> ValueRef<'static>) -> TableProfile {
        let column = ColumnNumber(3);
        let pair: Box<[ColumnNumber]> = Box::new([column, ColumnNumber(4)]);
        let columns = [(column, CollationId::BINARY), (ColumnNumber(4), CollationId::BINARY)];
        let mut sampler = Sampler::new(&columns, &[pair], &WantedBuckets::new());
        for row in (0..rows).filter(|row| (row / u64::from(CHUNK_ROWS)) % step == 0) {
            sampler.add([value(row), ValueRef::Int((row % 2) as i64)].into_iter());
            if row % 200 == 0 {
                sampler.end_batch();
            }
        }
        sampler.end_batch();
        while !sampler.finish_step(rows) {}
        sampler.into_profile().0
    }

    fn distinct(rows: u64, step: u64, value: impl Fn(u64) -> ValueRef<'static>) -> f64 {
        profile(rows, step, value).columns[&ColumnNumber(3)].distinct
    }

    /// A number that depends on the row without an order.
    fn scattered(row: u64) -> u64 {
        hash_of(&row.to_le_bytes())
    }

    #[test]
    fn the_values_of_a_whole_table_are_counted() {
        let profile = profile(1000, 1, |row| match row % 4 {
            0 => ValueRef::Null,
            other => ValueRef::Int(other as i64 * 10),
        });
        let column = &profile.columns[&ColumnNumber(3)];
        assert_eq!((column.distinct, column.nulls, profile.sampling_rate), (3.0, 0.25, 1.0));
        assert!(column.histogram.is_singleton);
        assert_eq!(column.histogram.equal(&Position::Number(20.0)), 0.25);
        assert_eq!(profile.prefixes[&[ColumnNumber(3), ColumnNumber(4)][..]], 4.0);
    }

    #[test]
    fn distinct_values_are_estimated_from_a_sample() {
        let rows = 800_000;
        let within = |estimate: f64, low: f64, high: f64| assert!((low..=high).contains(&estimate), "{estimate}");
        within(distinct(rows, 50, |row| ValueRef::Int(row as i64)), 400_000.0, 800_000.0);
        within(distinct(rows, 50, |row| ValueRef::Int((scattered(row) % 5000) as i64)), 3500.0, 6500.0);
        within(distinct(rows, 50, |row| ValueRef::Int((scattered(row) % 20) as i64)), 20.0, 20.0);
        // Four neighbours have each value.
        within(distinct(rows, 50, |row| ValueRef::Int(row as i64 / 4)), 150_000.0, 400_000.0);
    }
}
