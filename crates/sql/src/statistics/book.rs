//! The statistics of all tables, for all sql blocks of a node. Part of the closed list of invariant 2:
//! planning of queries of several tables and ANALYZE TABLE take the lock, for one table.
//!
//! The book also has the list of tables that should be sampled.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use junctor_model::id::{ColumnNumber, TableId};
use junctor_model::schema::TableDefinition;

use super::histogram::Histogram;
use super::sample::TableProfile;

/// Tables whose statistics are kept, and their bytes. Beyond these, the statistics that were made first are
/// forgotten. Statistics of dropped tables stay until then.
const TABLES_MAX: usize = 1024;
const BYTES_MAX: usize = 32 << 20;

/// A histogram that UPDATE HISTOGRAM has made.
#[derive(Clone, Debug)]
pub struct RequestedHistogram {
    /// The values.
    pub histogram: Histogram,
    /// The share of rows with NULL.
    pub nulls: f64,
    /// The number of buckets in the statement.
    pub buckets: usize,
    /// The share of rows in the sample.
    pub sampling_rate: f64,
    /// Microseconds since 1970 at which it was made.
    pub updated_us: u64,
}

/// The statistics of a table.
#[derive(Debug, Default)]
struct Analysed {
    /// The version of the definition.
    version: u32,
    /// Microseconds since 1970 at which it was sampled.
    updated_us: u64,
    /// The statistics of its values.
    profile: Arc<TableProfile>,
    /// The histograms of `information_schema.COLUMN_STATISTICS`.
    requested: BTreeMap<ColumnNumber, Arc<RequestedHistogram>>,
    /// Bytes of all of these.
    bytes: usize,
}

/// Tables that wait to be sampled, at most.
const WANTED_MAX: usize = 256;
/// A table is sampled again when its number of rows has changed by this share, and by so many rows.
const CHANGED_SHARE: f64 = 0.1;
const CHANGED_ROWS: u64 = 100;
/// Age in microseconds from which on a sample is taken again, because rows may have changed that their number
/// does not show.
const AGE_MAX_US: u64 = 600_000_000;
/// Pause in microseconds between two samples of a table, also if the first one fails.
const PAUSE_US: u64 = 10_000_000;

/// The tables to sample, and whether a block samples one.
#[derive(Debug, Default)]
struct Refresh {
    /// The tables with their numbers of rows.
    wanted: BTreeMap<TableId, u64>,
    /// When samples were begun, for as long as the pause.
    begun: BTreeMap<TableId, u64>,
    is_running: bool,
}

/// The statistics of the tables of a node.
#[derive(Debug, Default)]
pub struct StatisticsBook {
    tables: Mutex<BTreeMap<TableId, Analysed>>,
    refresh: Mutex<Refresh>,
    /// How often statistics have changed.
    version: AtomicU64,
    /// How often statistics of a table were read or changed.
    accesses: AtomicU64,
}

impl StatisticsBook {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TableId, Analysed>> {
        self.accesses.fetch_add(1, Ordering::Relaxed);
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refresh(&self) -> MutexGuard<'_, Refresh> {
        self.refresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a query uses a table that has so many rows now. It is sampled if its statistics are old.
    pub fn note_use(&self, table: &TableDefinition, rows: u64, now_us: u64) {
        let tables = self.lock();
        let known = tables.get(&table.id).filter(|analysed| analysed.version == table.version.0);
        let is_current = known.is_some_and(|analysed| {
            let change = rows.abs_diff(analysed.profile.rows);
            let is_same = change < CHANGED_ROWS || (change as f64) < CHANGED_SHARE * analysed.profile.rows as f64;
            is_same && now_us.saturating_sub(analysed.updated_us) < AGE_MAX_US
        });
        drop(tables);
        if is_current {
            return;
        }
        let mut refresh = self.refresh();
        refresh.begun.retain(|_, begun_us| now_us.saturating_sub(*begun_us) < PAUSE_US);
        if refresh.wanted.len() < WANTED_MAX && !refresh.begun.contains_key(&table.id) {
            refresh.wanted.insert(table.id, rows);
        }
    }

    /// Whether a table should be sampled now.
    pub fn wants_refresh(&self) -> bool {
        let refresh = self.refresh();
        !refresh.is_running && !refresh.wanted.is_empty()
    }

    /// Takes the next table to sample, with its number of rows. `None` while another one is sampled.
    pub fn begin_refresh(&self, now_us: u64) -> Option<(TableId, u64)> {
        let mut refresh = self.refresh();
        if refresh.is_running {
            return None;
        }
        let (table, rows) = refresh.wanted.pop_first()?;
        refresh.is_running = true;
        refresh.begun.insert(table, now_us);
        Some((table, rows))
    }

    /// A sample has ended.
    pub fn end_refresh(&self) {
        self.refresh().is_running = false;
    }

    /// How often statistics of a table were read or changed.
    pub fn accesses(&self) -> u64 {
        self.accesses.load(Ordering::Relaxed)
    }

    /// How often statistics have changed.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The statistics of a table.
    pub fn profile(&self, table: &TableDefinition) -> Option<Arc<TableProfile>> {
        let tables = self.lock();
        let analysed = tables.get(&table.id)?;
        (analysed.version == table.version.0).then(|| Arc::clone(&analysed.profile))
    }

    /// The histograms that statements have asked for.
    pub fn requested(&self, table: &TableDefinition) -> BTreeMap<ColumnNumber, Arc<RequestedHistogram>> {
        let tables = self.lock();
        let analysed = tables.get(&table.id).filter(|analysed| analysed.version == table.version.0);
        analysed.map(|analysed| analysed.requested.clone()).unwrap_or_default()
    }

    /// Replaces the statistics of a table, and adds histograms to those that statements have asked for.
    pub fn put(
        &self,
        (table, now_us): (&TableDefinition, u64),
        profile: TableProfile,
        histograms: BTreeMap<ColumnNumber, RequestedHistogram>,
    ) {
        let mut tables = self.lock();
        let analysed = tables.entry(table.id).or_default();
        if analysed.version != table.version.0 {
            *analysed = Analysed { version: table.version.0, ..Analysed::default() };
        }
        analysed.profile = Arc::new(profile);
        analysed.updated_us = now_us;
        let histograms = histograms.into_iter().map(|(column, histogram)| (column, Arc::new(histogram)));
        analysed.requested.extend(histograms);
        let of_requested: usize = analysed.requested.values().map(|requested| requested.histogram.bytes()).sum();
        analysed.bytes = analysed.profile.bytes() + of_requested;
        let mut bytes: usize = tables.values().map(|analysed| analysed.bytes).sum();
        while tables.len() > TABLES_MAX || bytes > BYTES_MAX {
            let oldest = tables.iter().min_by_key(|(_, analysed)| analysed.updated_us).map(|(table, _)| *table);
            let Some(removed) = oldest.and_then(|oldest| tables.remove(&oldest)) else { break };
            bytes -= removed.bytes;
        }
        drop(tables);
        self.refresh().wanted.remove(&table.id);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Removes a histogram that a statement has asked for. Returns whether there was one.
    pub fn remove_histogram(&self, table: &TableDefinition, column: ColumnNumber) -> bool {
        let mut tables = self.lock();
        let analysed = tables.get_mut(&table.id).filter(|analysed| analysed.version == table.version.0);
        analysed.is_some_and(|analysed| analysed.requested.remove(&column).is_some())
    }
}

#[cfg(test)]
mod tests {
    use junctor_model::id::IndexId;
    use junctor_model::schema::{IndexDefinition, IndexKind};
    use junctor_model::value::Value;

    use super::*;
    use crate::statistics::{Bucket, ColumnStatistics, Position};

    fn table(id: u32) -> TableDefinition {
        let index = IndexDefinition::new(IndexId(0), "PRIMARY", IndexKind::Primary { ordered: false }, Vec::new());
        TableDefinition::new(TableId(id), ("d", "t"), Vec::new(), vec![index])
    }

    fn of_rows(rows: u64) -> TableProfile {
        TableProfile { rows, ..TableProfile::default() }
    }

    fn put(book: &StatisticsBook, table: &TableDefinition, now_us: u64, profile: TableProfile) {
        book.put((table, now_us), profile, BTreeMap::new());
    }

    #[test]
    fn a_table_is_wanted_when_it_has_changed_or_its_sample_is_old() {
        let (book, t) = (StatisticsBook::default(), table(1));
        book.note_use(&t, 1000, 0);
        assert!(book.wants_refresh());
        assert_eq!(book.begin_refresh(0), Some((TableId(1), 1000)));
        assert!(!book.wants_refresh());
        put(&book, &t, 0, of_rows(1000));
        book.end_refresh();
        let wants = |rows, now_us| {
            book.note_use(&t, rows, now_us);
            std::mem::take(&mut book.refresh().wanted).contains_key(&t.id)
        };
        assert!(!wants(5000, PAUSE_US - 1), "a sample has just begun");
        assert!(!wants(1099, PAUSE_US) && !wants(901, PAUSE_US));
        assert!(wants(1100, PAUSE_US) && wants(900, PAUSE_US));
        assert!(!wants(1000, AGE_MAX_US - 1) && wants(1000, AGE_MAX_US));
    }

    #[test]
    fn the_statistics_of_another_definition_are_not_used() {
        let (book, mut t) = (StatisticsBook::default(), table(1));
        let before = book.version();
        put(&book, &t, 0, of_rows(7));
        assert_ne!(book.version(), before);
        assert_eq!(book.profile(&t).expect("a profile").rows, 7);
        t.version.0 += 1;
        assert_eq!(book.profile(&t), None);
    }

    #[test]
    fn the_oldest_statistics_make_room() {
        let end = (Position::Number(0.0), Value::Int(0));
        let bucket = Bucket { lower: end.clone(), upper: end, cumulative: 1.0, distinct: 1.0 };
        let buckets = vec![bucket; BYTES_MAX * 2 / 5 / size_of::<Bucket>()];
        let large = || {
            let histogram = Histogram { buckets: buckets.clone(), is_singleton: true };
            let statistics = ColumnStatistics { nulls: 0.0, distinct: 1.0, histogram };
            TableProfile { columns: [(ColumnNumber(0), statistics)].into(), ..of_rows(1) }
        };
        let book = StatisticsBook::default();
        for (id, now_us) in [(1, 30), (2, 10), (3, 20), (4, 40)] {
            put(&book, &table(id), now_us, large());
        }
        assert_eq!([1, 2, 3, 4].map(|id| book.profile(&table(id)).is_some()), [true, false, false, true]);
    }
}
