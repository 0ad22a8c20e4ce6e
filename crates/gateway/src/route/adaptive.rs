//! Hot path: at most 50 instructions per decision for a short read.
//!
//! The controller sends each read to the location with the lowest predicted cost. It computes with integers
//! and reads no clock: its inputs are measurements, its outputs decisions.
//!
//! The cost of a location is the delay that the read causes there: its own execution time, and the time by
//! which it delays other work of the thread. The *price* of a thread expresses the second part. A nanosecond
//! on a thread that is busy for a share p of the time delays later work by p / (1 - p) nanoseconds, as in a
//! queue with one server.
//!
//! A hand-over costs both threads signals and turns. It also adds a latency, which is measured separately for
//! threads that were executing, spinning and sleeping. In addition, a read waits for unanswered work that was
//! sent to the same thread earlier. That work is known, so the price covers only the remainder of the
//! thread's load.
//!
//! A small difference in cost does not move a read. Otherwise two equally busy threads would exchange their
//! work.

use junctor_kernel::KernelLimits;
use junctor_kernel::scheduler::load::ThreadState;
use junctor_signals::read_rows::BookedCost;

use super::estimate::Mean;

/// Maximum number of kinds of reads with separate estimates. Further kinds share them.
pub const KINDS_MAX: usize = 64;

/// One in this many decisions of a kind is measured.
const DECISIONS_PER_SAMPLE: u32 = 32;

/// Number of first decisions of a kind. All of them are measured, and they use the locations in turn.
const FIRST_DECISIONS: u32 = 8;

/// One in this many measured decisions tries a location other than the best. The first number applies if the
/// predicted cost there is at most 1.5 times the best, the second if at most 8 times, the third otherwise.
const EXPLORE_EVERY: [u32; 3] = [4, 64, 1_024];

/// Cost of a hand-over to each of the two threads, in nanoseconds: one signal sent, one received, and the
/// thread's share of additional turns. Measured: 9 microseconds for a read and its answer, including a
/// wake-up.
const HAND_OVER_NS: u64 = 1_500;

/// Additional cost to the own thread of waking a sleeping thread, in nanoseconds.
const WAKE_NS: u64 = 3_000;

/// Assumed latency of a hand-over before any measurement, for each [`ThreadState`], in nanoseconds.
const LATENCY_GUESS_NS: [u64; ThreadState::COUNT] = [4_000, 4_000, 2_000, 30_000, 100_000];

/// Another location must be cheaper than this thread by the read's own cost shifted right by this.
const STAY_SHIFT: u32 = 3;

/// Maximum difference in busy time, in thousandths, between two threads that count as equally busy.
const SAME_PER_MILLE: u32 = 100;

/// A read with at least this much work, 50 microseconds, goes to the queue of long-running work even on this
/// thread. The thread can then handle other requests first, and the next decision sees the queued work.
const LONG_READ_WORK: u64 = 50_000 >> BookedCost::UNIT_SHIFT;

/// Assumed time of one key or range before any measurement, in nanoseconds.
const UNIT_GUESS_NS: u64 = 1_000;

/// The price of an idle thread. Prices are in sixteenths.
pub const PRICE_ONE: u32 = 16;

/// Busy share in thousandths above which the price no longer rises.
const BUSY_PER_MILLE_MAX: u32 = 960;

/// Where a read can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadLocation {
    /// The query or ldm block on this thread.
    Here = 0,
    /// The owner ldm, on another thread.
    Owner = 1,
    /// A query block of another thread.
    Query = 2,
}

/// The present state of another thread that can run a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The thread's index.
    pub thread: u16,
    /// Number of signals that wait there.
    pub queue_length: u32,
    /// Whether it executes, spins or sleeps.
    pub state: ThreadState,
}

/// The recent load of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Busy share in thousandths.
    pub busy_per_mille: u32,
    /// Mean nanoseconds per signal of the thread.
    pub signal_ns: u64,
}

/// The other threads that can run a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteCandidates {
    /// The thread of the owner ldm, unless it is this thread.
    pub owner: Option<Candidate>,
    /// The thread of a query block, unless it is this thread.
    pub query: Option<Candidate>,
}

/// The candidates for one read.
struct Options {
    /// Whether this thread can run the read.
    here: bool,
    away: RemoteCandidates,
}

/// The decision for one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The location with the lowest predicted cost, or one to explore.
    pub location: ReadLocation,
    /// Whether the read is to be measured.
    pub is_sampled: bool,
    /// Pass this to [`Controller::release`] when the read is answered.
    pub booked_cost: BookedCost,
}

/// The measurement of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Index of the kind.
    pub kind: u8,
    /// Number of keys or ranges.
    pub units: u32,
    /// The thread that ran the read; `None` for this thread.
    pub away: Option<u16>,
    /// That thread's state when the read was sent.
    pub state: ThreadState,
    /// Nanoseconds of execution.
    pub service_ns: u64,
    /// Nanoseconds of unanswered work on that thread when the read was sent.
    pub waiting_ns: u64,
    /// Nanoseconds from sending to the answer.
    pub total_ns: u64,
}

/// Costs and decisions of one kind of reads.
#[derive(Clone, Copy, Debug)]
pub struct KindFigures {
    /// Mean nanoseconds of a key or range on this thread.
    pub here: Mean,
    /// Mean nanoseconds of a key or range on other threads.
    pub away: Mean,
    /// Number of decisions for each [`ReadLocation`].
    pub chosen: [u64; 3],
    /// Number of decisions for a location other than the best.
    pub explored: u64,
    /// Predicted additional cost of these decisions, in nanoseconds.
    pub regret_ns: u64,
    /// Decisions until the next measured one.
    until_sample: u32,
    /// Number of measured decisions.
    sampled: u32,
}

impl Default for KindFigures {
    fn default() -> KindFigures {
        let guess = Mean::guessed(UNIT_GUESS_NS);
        KindFigures { here: guess, away: guess, chosen: [0; 3], explored: 0, regret_ns: 0, until_sample: 1, sampled: 0 }
    }
}

/// The figures of a thread on which decisions are based.
#[derive(Clone, Copy, Debug)]
struct ThreadFigures {
    /// Cost of a hand-over by itself, by state of the thread: the cost to both threads at their prices, plus
    /// the latency.
    hand_over_ns: [u64; ThreadState::COUNT],
    /// Mean nanoseconds per signal of the thread.
    signal_ns: u64,
    price: u64,
    /// Unanswered work that was sent to the thread, in units of work.
    outstanding: u64,
    /// The long-running part of that work, for which a short read on this thread does not wait.
    long_outstanding: u64,
    /// Units of work of known cost that were sent to the thread since the last refresh.
    known_units: u64,
    /// Share of time that such work took recently, in thousandths.
    known_per_mille: u32,
}

/// One for each thread that a node can have, so that a masked index needs no bounds check.
const THREADS: usize = KernelLimits::THREADS_MAX.next_power_of_two();

impl ThreadFigures {
    #[inline(always)]
    fn under_way_ns(&self) -> u64 {
        self.outstanding << BookedCost::UNIT_SHIFT
    }

    /// Busy share of the thread that the work sent by this block does not explain, in thousandths.
    fn unknown_per_mille(&mut self, busy_per_mille: u32, elapsed_ns: u64) -> u32 {
        let known_ns = std::mem::take(&mut self.known_units) << BookedCost::UNIT_SHIFT;
        let now_per_mille = (known_ns.saturating_mul(1_000) / elapsed_ns.max(1)).min(1_000) as u32;
        self.known_per_mille = (self.known_per_mille + now_per_mille) / 2;
        busy_per_mille.saturating_sub(self.known_per_mille)
    }

    /// Cost of `work_ns` on this thread, minus the margin by which another location must be cheaper.
    #[inline(always)]
    fn cost_here(&self, work_ns: u64) -> u64 {
        let passes = if work_ns >> BookedCost::UNIT_SHIFT < LONG_READ_WORK { self.long_outstanding } else { 0 };
        let cost = priced(work_ns, self.price);
        (self.outstanding.saturating_sub(passes) << BookedCost::UNIT_SHIFT) + cost - (cost >> STAY_SHIFT)
    }

    /// Cost of `work_ns` after a hand-over. The thread's published queue includes some of the unanswered work
    /// that this block sent, so only the larger of the two counts.
    #[inline(always)]
    fn cost_away(&self, candidate: Candidate, work_ns: u64) -> u64 {
        let waiting_ns = (u64::from(candidate.queue_length) * self.signal_ns).max(self.under_way_ns());
        self.hand_over_ns[candidate.state as usize] + waiting_ns + priced(work_ns, self.price)
    }
}

/// The controller of one sql block.
#[derive(Debug)]
pub struct Controller {
    kinds: Box<[KindFigures; KINDS_MAX]>,
    /// The thread of this sql block.
    own: ThreadFigures,
    own_busy_per_mille: u32,
    /// The lowest cost of any hand-over.
    hand_over_ns_min: u64,
    /// All threads by index.
    threads: Box<[ThreadFigures; THREADS]>,
    /// Mean latency of a hand-over, by thread and state.
    latencies: Box<[[Mean; ThreadState::COUNT]]>,
    own_thread: u16,
}

impl Controller {
    /// Creates the controller of a block on the thread `own` of `threads`.
    pub fn new(own: u16, threads: usize) -> Controller {
        let thread = ThreadFigures {
            hand_over_ns: [0; ThreadState::COUNT],
            signal_ns: 0,
            price: u64::from(PRICE_ONE),
            outstanding: 0,
            long_outstanding: 0,
            known_units: 0,
            known_per_mille: 0,
        };
        let mut controller = Controller {
            kinds: Box::new([KindFigures::default(); KINDS_MAX]),
            own: thread,
            own_busy_per_mille: 0,
            hand_over_ns_min: 2 * HAND_OVER_NS,
            threads: Box::new([thread; THREADS]),
            latencies: vec![LATENCY_GUESS_NS.map(Mean::guessed); threads.clamp(1, THREADS)].into_boxed_slice(),
            own_thread: own,
        };
        (0..controller.latencies.len()).for_each(|thread| controller.price_hand_over(thread));
        controller
    }

    /// Chooses a location for a read of `units` keys or ranges, and books the read's cost there. Other
    /// threads are considered only if the read is long enough for a hand-over to pay, or if it is to be
    /// measured.
    #[inline]
    pub fn choose(&mut self, kind: u8, units: u32, here: bool, away: impl FnOnce() -> RemoteCandidates) -> Decision {
        let figures = &mut self.kinds[usize::from(kind) % KINDS_MAX];
        let here_ns = (figures.here.sixteenths() * u64::from(units)) >> 4;
        let here_cost = if here { self.own.cost_here(here_ns) } else { u64::MAX };
        if here_cost <= self.hand_over_ns_min && figures.until_sample > 1 {
            figures.until_sample -= 1;
            figures.chosen[ReadLocation::Here as usize] += 1;
            let booked_cost = BookedCost::new(self.own_thread, here_ns);
            self.own.outstanding += u64::from(booked_cost.work);
            return Decision { location: ReadLocation::Here, is_sampled: false, booked_cost };
        }
        self.compare(kind, units, [here_ns, here_cost], &Options { here, away: away() })
    }

    /// Books the cost of a read that was sent.
    #[inline]
    pub fn book(&mut self, booked_cost: BookedCost) {
        let is_own = booked_cost.thread == self.own_thread;
        let work = u64::from(booked_cost.work);
        let long = if is_long(booked_cost) { work } else { 0 };
        let figures = self.figures_mut(booked_cost.thread);
        figures.outstanding += work;
        figures.long_outstanding += long;
        figures.known_units += if is_own { long } else { work };
    }

    /// Removes the cost of a read that has been answered.
    #[inline]
    pub fn release(&mut self, booked_cost: BookedCost) {
        let work = u64::from(booked_cost.work);
        let long = if is_long(booked_cost) { work } else { 0 };
        let figures = self.figures_mut(booked_cost.thread);
        figures.outstanding = figures.outstanding.saturating_sub(work);
        figures.long_outstanding = figures.long_outstanding.saturating_sub(long);
    }

    /// Nanoseconds of unanswered work on a thread.
    pub fn under_way_ns(&self, thread: u16) -> u64 {
        self.figures(thread).under_way_ns()
    }

    /// Nanoseconds of unanswered work, apart from this read, that the read may have to wait for.
    pub fn waiting_ns(&self, booked_cost: BookedCost) -> u64 {
        let figures = self.figures(booked_cost.thread);
        let passes =
            if booked_cost.thread == self.own_thread && !is_long(booked_cost) { figures.long_outstanding } else { 0 };
        figures.outstanding.saturating_sub(passes + u64::from(booked_cost.work)) << BookedCost::UNIT_SHIFT
    }

    fn figures(&self, thread: u16) -> &ThreadFigures {
        if thread == self.own_thread { &self.own } else { &self.threads[usize::from(thread) % THREADS] }
    }

    #[inline(always)]
    fn figures_mut(&mut self, thread: u16) -> &mut ThreadFigures {
        if thread == self.own_thread { &mut self.own } else { &mut self.threads[usize::from(thread) % THREADS] }
    }

    #[inline(never)]
    fn compare(&mut self, kind: u8, units: u32, here: [u64; 2], options: &Options) -> Decision {
        let figures = &mut self.kinds[usize::from(kind) % KINDS_MAX];
        let [here_ns, mut cost] = here;
        let away_ns = (figures.away.sixteenths() * u64::from(units)) >> 4;
        let mut location = ReadLocation::Here;
        if let Some(owner) = options.away.owner {
            let owner_cost = self.threads[usize::from(owner.thread) % THREADS].cost_away(owner, away_ns);
            (cost, location) = if owner_cost < cost { (owner_cost, ReadLocation::Owner) } else { (cost, location) };
        }
        if let Some(query) = options.away.query {
            let query_cost = self.threads[usize::from(query.thread) % THREADS].cost_away(query, away_ns);
            location = if query_cost < cost { ReadLocation::Query } else { location };
        }
        figures.until_sample -= 1;
        let is_sampled = figures.until_sample == 0;
        if is_sampled {
            location = self.sample(kind, location, units, options);
        }
        self.kinds[usize::from(kind) % KINDS_MAX].chosen[location as usize] += 1;
        let booked_cost = match (location, options.away.owner, options.away.query) {
            (ReadLocation::Owner, Some(owner), _) => BookedCost::new(owner.thread, away_ns),
            (ReadLocation::Query, _, Some(query)) => BookedCost::new(query.thread, away_ns),
            _ => BookedCost::new(self.own_thread, here_ns),
        };
        self.book(booked_cost);
        Decision { location, is_sampled, booked_cost }
    }

    /// Updates the estimates with a measurement.
    pub fn observe(&mut self, measured: &Measurement) {
        let figures = &mut self.kinds[usize::from(measured.kind) % KINDS_MAX];
        let units = u64::from(measured.units.max(1));
        match measured.away {
            None => figures.here.add(measured.service_ns / units),
            Some(thread) => {
                figures.away.add(measured.service_ns / units);
                // Some of the unanswered work may already have been done. A sample therefore counts only if
                // most of its time has another explanation.
                if measured.waiting_ns > measured.total_ns / 2 {
                    return;
                }
                let thread = usize::from(thread) % self.latencies.len();
                let latency = &mut self.latencies[thread][measured.state as usize];
                latency.add(measured.total_ns.saturating_sub(measured.service_ns + measured.waiting_ns));
                self.price_hand_over(thread);
            }
        }
    }

    /// Sets a thread's recent load. The previous call was `elapsed_ns` ago. `weight`, in sixteenths, raises
    /// the price of a thread that should run fewer reads. Call this for the block's own thread first.
    pub fn set_load(&mut self, thread: u16, load: &Load, elapsed_ns: u64, weight: u32) {
        let Load { busy_per_mille, signal_ns } = *load;
        let busy_per_mille = self.figures_mut(thread).unknown_per_mille(busy_per_mille, elapsed_ns);
        let price = |busy_per_mille: u32| {
            let free = 1_000 - busy_per_mille.min(BUSY_PER_MILLE_MAX);
            u64::from((PRICE_ONE * 1_000 / free * weight) >> 4)
        };
        if thread == self.own_thread {
            (self.own.price, self.own_busy_per_mille) = (price(busy_per_mille), busy_per_mille);
            self.hand_over_ns_min = priced(HAND_OVER_NS, self.own.price) + HAND_OVER_NS;
        } else if usize::from(thread) < self.latencies.len() {
            let is_same = (self.own_busy_per_mille.saturating_sub(SAME_PER_MILLE)..self.own_busy_per_mille)
                .contains(&busy_per_mille);
            let figures = &mut self.threads[usize::from(thread) % THREADS];
            figures.price = if is_same { price(self.own_busy_per_mille) } else { price(busy_per_mille) };
            figures.signal_ns = signal_ns;
            self.price_hand_over(usize::from(thread));
        }
    }

    /// Costs and decisions of one kind of reads.
    pub fn kind(&self, kind: u8) -> &KindFigures {
        &self.kinds[usize::from(kind) % KINDS_MAX]
    }

    /// A thread's price, in sixteenths of the price of an idle thread.
    pub fn price(&self, thread: u16) -> u64 {
        if thread == self.own_thread { self.own.price } else { self.threads[usize::from(thread) % THREADS].price }
    }

    fn price_hand_over(&mut self, thread: usize) {
        let figures = &mut self.threads[thread % THREADS];
        let both_ns = priced(HAND_OVER_NS, self.own.price) + priced(HAND_OVER_NS, figures.price);
        for (cost, latency) in figures.hand_over_ns.iter_mut().zip(&self.latencies[thread]) {
            *cost = both_ns + latency.value();
        }
        figures.hand_over_ns[ThreadState::Sleeping as usize] += priced(WAKE_NS, self.own.price);
    }

    /// Decides a measured read: mostly for the best location, sometimes for another one, so that the
    /// estimates stay correct. The more expensive a location, the more rarely it is tried.
    #[cold]
    #[inline(never)]
    fn sample(&mut self, kind: u8, best: ReadLocation, units: u32, options: &Options) -> ReadLocation {
        let figures = &mut self.kinds[usize::from(kind) % KINDS_MAX];
        figures.sampled = figures.sampled.wrapping_add(1);
        let is_new = figures.sampled < FIRST_DECISIONS;
        figures.until_sample = if is_new { 1 } else { DECISIONS_PER_SAMPLE };
        let [here_ns, away_ns] = [figures.here, figures.away].map(|mean| (mean.sixteenths() * u64::from(units)) >> 4);
        let cost = |location: ReadLocation| match location {
            ReadLocation::Here => options.here.then(|| self.own.cost_here(here_ns)),
            ReadLocation::Owner | ReadLocation::Query => {
                let candidate = if location == ReadLocation::Owner { options.away.owner } else { options.away.query }?;
                let thread = &self.threads[usize::from(candidate.thread) % THREADS];
                Some(thread.cost_away(candidate, away_ns))
            }
        };
        let others = [ReadLocation::Here, ReadLocation::Owner, ReadLocation::Query]
            .into_iter()
            .filter(|location| *location != best);
        let others = others.filter_map(|location| Some((location, cost(location)?)));
        // Explore the location that was tried least often.
        let Some((other, other_cost)) = others.min_by_key(|(location, _)| figures.chosen[*location as usize]) else {
            return best;
        };
        let best_cost = cost(best).unwrap_or(0);
        let explore_every = match best_cost.max(1) {
            _ if is_new => 2,
            least if other_cost <= least + least / 2 => EXPLORE_EVERY[0],
            least if other_cost <= least * 8 => EXPLORE_EVERY[1],
            _ => EXPLORE_EVERY[2],
        };
        if !figures.sampled.is_multiple_of(explore_every) {
            return best;
        }
        figures.explored += 1;
        figures.regret_ns += other_cost.saturating_sub(best_cost);
        other
    }
}

/// Whether a read on this thread goes to the queue of long-running work.
#[inline(always)]
pub(crate) fn is_long(booked_cost: BookedCost) -> bool {
    u64::from(booked_cost.work) >= LONG_READ_WORK
}

/// `work_ns` at a price.
#[inline(always)]
fn priced(work_ns: u64, price: u64) -> u64 {
    (work_ns * price) >> 4
}
