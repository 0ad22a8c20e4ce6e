//! Admission: the thread pool of the MySQL servers, on a pipeline (`docs/decisions/0040-thread-pool.md`).
//!
//! The sessions of one sql block are a thread group. A *slot* is the right of a transaction to be in the data
//! plane, what a worker thread is in those servers. A group has a number of slots, which a controller adapts
//! ([`concurrency`]), and two queues for them: one of high and one of low priority. A waiting command holds
//! its bytes and the results of earlier statements of its text, and nothing else.

pub mod concurrency;

use std::collections::VecDeque;
use std::sync::Arc;

use junctor_kernel::{Duration, Time, require, verify};
use junctor_model::id::ConnectionId;
use junctor_signals::connection_limits::GroupFigures;
use junctor_sql::HighPriorityMode;

use concurrency::{ConcurrencyController, Sample};

/// A sample has at least so many finished transactions, or lasts [`SAMPLE_MAX`].
const SAMPLE_COUNT_MIN: u32 = 256;
const SAMPLE_MIN: Duration = Duration::from_millis(100);
const SAMPLE_MAX: Duration = Duration::from_millis(1000);
/// Classes of durations for each doubling.
const CLASSES_PER_DOUBLING: usize = 8;
/// Classes of durations in microseconds: below 2 to the 32nd.
const DURATION_CLASSES: usize = 30 * CLASSES_PER_DOUBLING;

/// The queue of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Statements of transactions that are under way, before all others.
    High,
    /// Statements that begin a transaction.
    Low,
}

/// The settings of a group: the system variables `thread_pool_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// The mode of new sessions.
    pub mode: HighPriorityMode,
    /// Fixed number of slots; `None` if the controller chooses.
    pub slots: Option<usize>,
    /// Maximum number of slots, those of stalls included.
    pub slots_max: usize,
    /// Slots of stalls that remain when the stall is over.
    pub oversubscribe: usize,
    /// Time without an admission after which a group with waiting commands is stalled.
    pub stall_limit: Duration,
    /// Time without waiting commands after which a group forgets its stalls and what its controller learnt.
    pub idle_timeout: Duration,
    /// Time after which a waiting command moves to the queue of high priority.
    pub kickup: Duration,
}

/// What happened in a group since the start of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupStatistics {
    /// Commands admitted from the queue of high priority.
    pub dequeued_high: u64,
    /// Commands admitted from the queue of low priority.
    pub dequeued_low: u64,
    /// Commands moved from low to high priority because they had waited for long.
    pub kicked_up: u64,
    /// Stalls found.
    pub stalls: u64,
    /// Slots added because of stalls.
    pub stall_slots: u64,
    /// Total time that admitted commands have waited, in microseconds.
    pub waited_us: u64,
    /// Changes of the number of slots by the controller.
    pub adjustments: u64,
    /// Slots lent by sessions that waited for a row lock.
    pub loans: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    connection: ConnectionId,
    since: Time,
}

/// A command that waits, for `junctor_info.thread_pool_queues`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The queue.
    pub priority: Priority,
    /// The connection of the command.
    pub connection: ConnectionId,
    /// When the command was queued.
    pub since: Time,
}

/// The measurement that becomes the next sample of the controller.
#[derive(Debug)]
struct Measurement {
    began: Time,
    finished: u32,
    durations: [u32; DURATION_CLASSES],
}

/// The slots of one group, and the queues for them.
#[derive(Debug)]
pub struct ThreadGroup {
    /// What `SHOW STATUS` of any session reports.
    figures: Arc<GroupFigures>,
    settings: GroupSettings,
    /// Slots in use, without lent ones.
    admitted: usize,
    /// Sessions that have lent their slot, because their statement waits for a lock.
    lent: usize,
    /// Number of slots without those of stalls.
    slots: usize,
    /// Slots added because of stalls.
    extra: usize,
    high: VecDeque<Waiter>,
    low: VecDeque<Waiter>,
    controller: ConcurrencyController,
    /// Set while commands wait.
    measurement: Option<Measurement>,
    last_admission: Time,
    last_wait: Time,
    statistics: GroupStatistics,
}

impl ThreadGroup {
    /// Creates a group.
    pub fn new(settings: GroupSettings, figures: Arc<GroupFigures>) -> ThreadGroup {
        let mut group = ThreadGroup {
            figures,
            settings,
            admitted: 0,
            lent: 0,
            slots: 1,
            extra: 0,
            high: VecDeque::new(),
            low: VecDeque::new(),
            controller: ConcurrencyController::new(settings.slots_max),
            measurement: None,
            last_admission: Time(0),
            last_wait: Time(0),
            statistics: GroupStatistics::default(),
        };
        group.configure(settings);
        group
    }

    /// Changes the settings. Later calls of [`admit_next`](Self::admit_next) admit commands that wait.
    pub fn configure(&mut self, settings: GroupSettings) {
        let settings = GroupSettings { slots_max: settings.slots_max.max(1), ..settings };
        let of_controller = |settings: &GroupSettings| (settings.slots_max, settings.slots, settings.mode);
        if of_controller(&settings) != of_controller(&self.settings) {
            // Numbers of transactions and numbers of statements at once do not compare.
            self.controller = ConcurrencyController::new(settings.slots_max);
        }
        self.settings = settings;
        self.choose_slots();
    }

    fn choose_slots(&mut self) {
        let slots = self.settings.slots.unwrap_or_else(|| self.controller.admitted_max());
        self.slots = slots.clamp(1, self.settings.slots_max);
        self.publish();
    }

    #[inline]
    fn publish(&self) {
        self.figures.publish(self.slots + self.extra, self.admitted);
    }

    #[inline]
    fn has_free_slot(&self) -> bool {
        self.admitted < self.slots + self.extra && self.admitted + self.lent < self.settings.slots_max
    }

    /// Takes a slot. Returns false if none is free, or if a command of the same or a higher priority waits.
    #[inline]
    pub fn try_enter(&mut self, priority: Priority) -> bool {
        let is_first = self.high.is_empty() && (priority == Priority::High || self.low.is_empty());
        if !is_first || !self.has_free_slot() {
            return false;
        }
        self.admitted += 1;
        self.publish();
        true
    }

    /// Queues a connection for a slot. A connection may wait only once at a time, so the queues are never
    /// longer than the number of connections.
    pub fn wait(&mut self, connection: ConnectionId, priority: Priority, now: Time) {
        verify!(self.waiting().all(|waiting| waiting.connection != connection), "a connection waits for one slot");
        if !self.has_waiters() {
            if now.since(self.last_wait) >= self.settings.idle_timeout {
                self.extra = 0;
                self.controller.forget();
            }
            self.last_admission = now;
            self.measurement = Some(Measurement { began: now, finished: 0, durations: [0; DURATION_CLASSES] });
        }
        let queue = match priority {
            Priority::High => &mut self.high,
            Priority::Low => &mut self.low,
        };
        queue.push_back(Waiter { connection, since: now });
    }

    /// Returns a slot that was taken at `admitted_at`.
    #[inline]
    pub fn leave(&mut self, admitted_at: Time, now: Time) {
        require!(self.admitted > 0, "a slot is returned once");
        self.admitted -= 1;
        self.publish();
        if let Some(measurement) = &mut self.measurement {
            measurement.finished += 1;
            let class = duration_class(now.since(admitted_at).0 / 1000);
            measurement.durations[class.min(DURATION_CLASSES - 1)] += 1;
        }
        if self.extra > self.settings.oversubscribe {
            self.extra -= 1;
            self.publish();
        }
    }

    /// Returns the slot of a session whose statement waits for a lock, until [`take_back`](Self::take_back).
    pub fn lend(&mut self) {
        require!(self.admitted > 0, "only a slot in use can be lent");
        self.admitted -= 1;
        self.lent += 1;
        self.statistics.loans += 1;
        self.publish();
    }

    /// Takes a lent slot back. More slots than there are may be in use for a moment.
    pub fn take_back(&mut self) {
        require!(self.lent > 0, "a slot is taken back once");
        self.lent -= 1;
        self.admitted += 1;
        self.publish();
    }

    /// Gives a free slot to a waiting command: to the oldest of high priority, otherwise to the oldest of low
    /// priority.
    #[inline]
    pub fn admit_next(&mut self, now: Time) -> Option<ConnectionId> {
        if !self.has_waiters() || !self.has_free_slot() {
            return None;
        }
        let (waiter, count) = match self.high.pop_front() {
            Some(waiter) => (waiter, &mut self.statistics.dequeued_high),
            None => (self.low.pop_front()?, &mut self.statistics.dequeued_low),
        };
        *count += 1;
        self.statistics.waited_us += now.since(waiter.since).0 / 1000;
        self.admitted += 1;
        self.publish();
        self.last_admission = now;
        self.last_wait = now;
        if !self.has_waiters() {
            self.measurement = None;
        }
        Some(waiter.connection)
    }

    /// Removes a connection from its queue.
    pub fn cancel_wait(&mut self, connection: ConnectionId) {
        self.high.retain(|waiter| waiter.connection != connection);
        self.low.retain(|waiter| waiter.connection != connection);
        if !self.has_waiters() {
            self.measurement = None;
        }
    }

    /// Whether commands wait. The owner then calls [`on_timer`](Self::on_timer) again and again.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        !self.low.is_empty() || !self.high.is_empty()
    }

    /// Called every [`timer_interval`](Self::timer_interval) while commands wait: looks for stalls, for
    /// commands that have waited for long, and for a better number of slots.
    pub fn on_timer(&mut self, now: Time) {
        self.kick_up(now);
        if self.has_waiters() && !self.has_free_slot() && now.since(self.last_admission) >= self.settings.stall_limit {
            // Each stall in a row doubles the slots of stalls.
            let total_max = self.settings.slots_max.saturating_sub(self.slots);
            let extra = (self.extra * 2).max(1).min(total_max);
            self.statistics.stalls += 1;
            self.statistics.stall_slots += extra.saturating_sub(self.extra) as u64;
            self.extra = extra;
            self.publish();
            self.last_admission = now;
        }
        self.sample(now);
    }

    fn kick_up(&mut self, now: Time) {
        while let Some(waiter) = self.low.pop_front_if(|waiter| now.since(waiter.since) >= self.settings.kickup) {
            self.high.push_back(waiter);
            self.statistics.kicked_up += 1;
        }
    }

    fn sample(&mut self, now: Time) {
        let Some(measurement) = &mut self.measurement else { return };
        let lasted = now.since(measurement.began);
        let is_complete = lasted >= SAMPLE_MIN && measurement.finished >= SAMPLE_COUNT_MIN || lasted >= SAMPLE_MAX;
        if !is_complete {
            return;
        }
        let sample = Sample {
            throughput: f64::from(measurement.finished) * 1e9 / lasted.0 as f64,
            latency_p99: percentile_99(&measurement.durations, measurement.finished),
        };
        *measurement = Measurement { began: now, finished: 0, durations: [0; DURATION_CLASSES] };
        if self.settings.slots.is_none() {
            self.controller.learn(&sample);
            let before = self.slots;
            self.choose_slots();
            self.statistics.adjustments += u64::from(before != self.slots);
        }
    }

    /// Time between two calls of [`on_timer`](Self::on_timer).
    pub fn timer_interval(&self) -> Duration {
        let shortest = self.settings.stall_limit.min(self.settings.kickup).min(SAMPLE_MIN);
        Duration((shortest.0 / 2).max(Duration::from_millis(5).0))
    }

    /// Time without an admission after which the group is stalled.
    pub fn stall_limit(&self) -> Duration {
        self.settings.stall_limit
    }

    /// Returns the number of slots in use, and of waiting connections.
    pub fn counts(&self) -> (usize, usize) {
        (self.admitted, self.high.len() + self.low.len())
    }

    /// Returns the number of slots, and of those that stalls have added.
    pub fn slots(&self) -> (usize, usize) {
        (self.slots, self.extra)
    }

    /// Whether the last admission is longer ago than the stall limit while commands wait.
    pub fn is_stalled(&self, now: Time) -> bool {
        self.has_waiters() && now.since(self.last_admission) >= self.settings.stall_limit
    }

    /// The waiting commands in the order in which they will be admitted.
    pub fn waiting(&self) -> impl Iterator<Item = Waiting> {
        let of = |priority| move |it: &Waiter| Waiting { priority, connection: it.connection, since: it.since };
        self.high.iter().map(of(Priority::High)).chain(self.low.iter().map(of(Priority::Low)))
    }

    /// What happened since the start of the node.
    pub fn statistics(&self) -> &GroupStatistics {
        &self.statistics
    }
}

/// The end of the class that has the 99th percentile.
fn percentile_99(classes: &[u32; DURATION_CLASSES], count: u32) -> Duration {
    let rank = u64::from(count) * 99 / 100;
    let mut seen = 0;
    let class = classes.iter().position(|in_class| {
        seen += u64::from(*in_class);
        seen > rank
    });
    Duration(1000 * class_end(class.unwrap_or(0)))
}

/// The class of a duration in microseconds. Each class up to 7 has one duration; each doubling above has 8
/// classes of equal width.
fn duration_class(microseconds: u64) -> usize {
    match (microseconds / CLASSES_PER_DOUBLING as u64).checked_ilog2() {
        None => microseconds as usize,
        Some(shift) => shift as usize * CLASSES_PER_DOUBLING + (microseconds >> shift) as usize,
    }
}

/// The first duration in microseconds above a class.
fn class_end(class: usize) -> u64 {
    let shift = (class / CLASSES_PER_DOUBLING).saturating_sub(1);
    ((class - shift * CLASSES_PER_DOUBLING + 1) as u64) << shift
}

#[cfg(test)]
mod tests;
