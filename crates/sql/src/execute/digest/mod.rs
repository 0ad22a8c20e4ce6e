//! Hot path: at most 60 instructions per statement.
//!
//! Counts the statements of one sql block by digest, for `performance_schema`.
//!
//! A plan in a cache, and a prepared statement, have the number of their digest, so an execution neither
//! normalises its text nor looks it up. Durations are those of [`super::latency`].

mod rows;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use junctor_gateway::threads::Time;
use junctor_model::value::Value;
use junctor_signals::read_status::STATUS_ROWS_MAX;

use super::histogram::Histogram;
use super::session::Session;
use crate::parse::{Dialect, without_passwords};
use crate::plan::{DigestKey, DigestNumber, PlanWork, PreparedStatement};
pub(super) use rows::DigestRows;
use rows::{Counts, Figures};

/// Maximum number of rows, which is `performance_schema_digests_size`. The first one counts the statements
/// whose digest finds no room. A row takes about 3 KiB, and at most 5 KiB.
const ROWS_MAX: usize = STATUS_ROWS_MAX;
/// Maximum length of the text of a sample in bytes, which is `performance_schema_max_sql_text_length`.
const SAMPLE_BYTES_MAX: usize = 1024;
/// Number of digests that one step encodes or forgets, which takes tens of microseconds.
const STEP_DIGESTS: usize = 32;
/// Number of texts without a cached plan whose digests are known; a power of two.
const RECENT_TEXTS: usize = 64;
/// Maximum length of such a text in bytes.
const RECENT_BYTES_MAX: usize = 512;

/// The counts of the digests of one sql block.
#[derive(Debug)]
pub(crate) struct StatementDigests {
    rows: Vec<DigestRow>,
    /// The number of the first row; the others follow it. TRUNCATE removes the rows and raises it, so that
    /// the numbers of removed rows are never used again.
    first: u64,
    numbers: BTreeMap<Arc<DigestKey>, DigestNumber>,
    /// Digests of texts without a cached plan, by the hash of the text.
    recent: Vec<Option<RecentText>>,
}

#[derive(Debug)]
struct DigestRow {
    counts: Counts,
    /// The counts that each execution of the newest plan adds.
    work: PlanWork,
    min_ns: u64,
    first_seen: Time,
    last_seen: Time,
    durations: Histogram,
    /// `None` for the first row.
    key: Option<Arc<DigestKey>>,
    sample: Box<str>,
    /// Duration of the sample; `None` until it has ended.
    sample_ns: Option<u64>,
}

/// The properties of a text that decide its digest.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct TextKey<'a> {
    pub text: &'a [u8],
    pub database: Option<&'a str>,
    pub dialect: Dialect,
}

#[derive(Debug)]
struct RecentText {
    text: Box<[u8]>,
    database: Option<Box<str>>,
    dialect: Dialect,
    number: DigestNumber,
}

impl StatementDigests {
    /// Digests whose numbers begin with `first`.
    pub fn from_number(first: u64) -> StatementDigests {
        let mut recent = Vec::new();
        recent.resize_with(RECENT_TEXTS, || None);
        StatementDigests {
            rows: vec![DigestRow::new(None, "".into(), Time(0))],
            first,
            numbers: BTreeMap::new(),
            recent,
        }
    }

    /// Whether the digest is still counted under this number.
    #[inline]
    pub fn has(&self, number: DigestNumber) -> bool {
        (number.0.wrapping_sub(self.first) as usize) < self.rows.len()
    }

    /// The number of a digest. A digest that is new gets a row with this text as its sample; it counts in the
    /// first row if there is no room.
    pub fn number_of(&mut self, key: &Arc<DigestKey>, sample: impl FnOnce() -> String, now: Time) -> DigestNumber {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        if self.rows.len() >= ROWS_MAX {
            return DigestNumber(self.first);
        }
        let mut sample = sample();
        let end = (0..=SAMPLE_BYTES_MAX.min(sample.len())).rev().find(|end| sample.is_char_boundary(*end));
        sample.truncate(end.unwrap_or(0));
        let number = DigestNumber(self.first + self.rows.len() as u64);
        self.rows.push(DigestRow::new(Some(Arc::clone(key)), sample.into(), now));
        self.numbers.insert(Arc::clone(key), number);
        number
    }

    /// The number of the digest of a prepared statement, which this block does not count yet.
    #[cold]
    pub fn number_of_prepared(&mut self, statement: &PreparedStatement, dialect: Dialect, now: Time) -> DigestNumber {
        let Some(key) = &statement.digest.key else { return DigestNumber::default() };
        let sample = || String::from_utf8_lossy(&without_passwords(&statement.text, dialect)).into_owned();
        let number = self.number_of(key, sample, now);
        statement.digest.set_number(number);
        if let Some(plan) = &statement.plan {
            self.note_plan(number, PlanWork::of(plan));
        }
        number
    }

    /// The digest of a text that was executed lately.
    pub fn recent(&self, key: TextKey<'_>) -> Option<DigestNumber> {
        let known = self.recent[recent_place(key)].as_ref()?;
        let is_same = *known.text == *key.text && known.database.as_deref() == key.database;
        (is_same && known.dialect == key.dialect && self.has(known.number)).then_some(known.number)
    }

    /// Notes the digest of a text without a cached plan.
    pub fn note_recent(&mut self, key: TextKey<'_>, number: DigestNumber) {
        if key.text.len() <= RECENT_BYTES_MAX {
            let TextKey { text, database, dialect } = key;
            let known = RecentText { text: text.into(), database: database.map(Box::from), dialect, number };
            self.recent[recent_place(key)] = Some(known);
        }
    }

    /// Notes a new plan of a digest. The row of the digests without room has no plan of its own.
    pub fn note_plan(&mut self, number: DigestNumber, work: PlanWork) {
        if number.0 == self.first {
            return;
        }
        if let Some(row) = self.row(number) {
            row.work = work;
        }
    }

    /// Counts a statement of the session, apart from its duration.
    #[inline]
    pub fn count(&mut self, number: DigestNumber, session: &Session) {
        if let Some(row) = self.row(number) {
            row.count(session);
        }
    }

    /// Records `count` statements that lasted `duration_ns` each and ended at `now`.
    #[inline]
    pub fn record(&mut self, number: DigestNumber, duration_ns: u64, count: u32, now: Time) {
        if let Some(row) = self.row(number) {
            row.record(duration_ns, count, now);
        }
    }

    #[inline]
    fn row(&mut self, number: DigestNumber) -> Option<&mut DigestRow> {
        self.rows.get_mut(number.0.wrapping_sub(self.first) as usize)
    }

    /// Begins to encode the figures of all digests, for [`DigestRows`].
    pub fn begin_read(&self) -> DigestTask {
        DigestTask(Task::Read { next: self.first, rows: Vec::new() })
    }

    /// Forgets all digests: TRUNCATE. The task releases their memory.
    pub fn begin_clear(&mut self) -> DigestTask {
        self.first += self.rows.len() as u64;
        let rows = std::mem::replace(&mut self.rows, vec![DigestRow::new(None, "".into(), Time(0))]);
        DigestTask(Task::Release { rows, numbers: std::mem::take(&mut self.numbers) })
    }

    /// Runs the next step of a task. Returns its rows after the last step. `now` is the time at which the
    /// wall clock showed `wall_clock_us`.
    pub fn run_step(&self, task: &mut DigestTask, now: Time, wall_clock_us: u64) -> Option<Vec<Vec<Value>>> {
        match &mut task.0 {
            Task::Read { next, rows } => {
                if *next < self.first {
                    // TRUNCATE has forgotten what was read.
                    rows.clear();
                    *next = self.first;
                }
                let at = (*next - self.first) as usize;
                let moment = |at: Time| wall_clock_us.saturating_sub(now.0.saturating_sub(at.0) / 1000);
                let part = self.rows.iter().skip(at).take(STEP_DIGESTS);
                let seen = part.filter(|row| row.durations.count() > 0);
                rows.extend(seen.map(|row| row.figures(&moment).encode()));
                *next = self.first + (at + STEP_DIGESTS) as u64;
                (at + STEP_DIGESTS >= self.rows.len()).then(|| std::mem::take(rows))
            }
            Task::Release { rows, numbers } => {
                rows.truncate(rows.len().saturating_sub(STEP_DIGESTS));
                for _ in 0..STEP_DIGESTS {
                    numbers.pop_first();
                }
                (rows.is_empty() && numbers.is_empty()).then(Vec::new)
            }
        }
    }
}

/// A read of all digests, or the release of forgotten ones. It runs in steps, because the other work of the
/// thread waits until a step ends.
#[derive(Debug)]
pub struct DigestTask(Task);

#[derive(Debug)]
enum Task {
    /// The number of the next digest, and the encoded figures of those before it.
    Read {
        next: u64,
        rows: Vec<Vec<Value>>,
    },
    Release {
        rows: Vec<DigestRow>,
        numbers: BTreeMap<Arc<DigestKey>, DigestNumber>,
    },
}

impl DigestRow {
    fn new(key: Option<Arc<DigestKey>>, sample: Box<str>, now: Time) -> DigestRow {
        DigestRow {
            counts: Counts::default(),
            work: PlanWork::default(),
            min_ns: u64::MAX,
            first_seen: now,
            last_seen: now,
            durations: Histogram::default(),
            key,
            sample,
            sample_ns: None,
        }
    }

    /// Counts a statement of the session, apart from its duration.
    #[inline]
    fn count(&mut self, session: &Session) {
        let counts = &mut self.counts;
        if session.has_failed {
            counts.errors += 1;
            return;
        }
        counts.warnings += u64::from(session.warning_count);
        match u64::try_from(session.row_count) {
            Ok(affected) => counts.rows_affected += affected,
            Err(_) => counts.rows_sent += session.found_rows,
        }
        if self.work != PlanWork::default() {
            counts.add_work(self.work, session.found_rows);
        }
    }

    #[inline]
    fn record(&mut self, duration_ns: u64, count: u32, now: Time) {
        if self.durations.count() == 0 {
            self.begin(duration_ns, now);
        }
        self.durations.record(duration_ns, count);
        self.min_ns = self.min_ns.min(duration_ns);
        self.last_seen = now;
    }

    /// The first execution, which is that of the sample unless another session was faster.
    #[cold]
    fn begin(&mut self, duration_ns: u64, now: Time) {
        if self.key.is_none() {
            self.first_seen = now;
            return;
        }
        self.sample_ns = Some(duration_ns);
    }

    fn figures(&self, moment: &impl Fn(Time) -> u64) -> Figures {
        Figures {
            key: self.key.as_deref().cloned(),
            counts: self.counts.clone(),
            min_ns: self.min_ns,
            first_seen_us: moment(self.first_seen),
            last_seen_us: moment(self.last_seen),
            durations: self.durations.clone(),
            sample: self.sample_ns.map(|sample_ns| (self.sample.clone(), sample_ns)),
        }
    }
}

fn recent_place(key: TextKey<'_>) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() as usize & (RECENT_TEXTS - 1)
}

#[cfg(test)]
mod tests;
