//! Hot path, budget 50 instructions a decision. The controller that gives each read the place where its predicted cost is
//! least: measurements in, decisions out, in integers, without a clock.
//!
//! The cost of a place is how much later everything is done if the read goes there: the time of the read itself, and what
//! it takes from others of the thread that does it. The second is the price of a thread: a nanosecond of a thread that is
//! busy a part p of the time delays what comes after it by p / (1 - p) nanoseconds more, as in a queue with one server. A
//! read that is handed over costs the own thread two signals, and is answered later by the latency of the hand-over, which
//! is measured apart for threads that were awake and that slept.

use junctor_kernel::Time;

use super::estimate::Mean;

/// Kinds of reads that are told apart; more share their estimates.
pub const KINDS_MAX: usize = 64;

/// Every so many decisions of a kind are measured.
const DECISIONS_PER_SAMPLE: u32 = 32;

/// Decisions of a new kind that go by turns to each place.
const FIRST_DECISIONS: u32 = 8;

/// How often another place than the best is tried: when it seems at most half as dear again, at most eight times as dear,
/// and dearer than that. Powers of two.
const EXPLORE_EVERY: [u32; 3] = [64, 1_024, 16_384];

/// What a hand-over costs the own thread, in nanoseconds: a signal sent and a signal taken.
const HAND_OVER_NS: u64 = 200;

/// What it costs in addition to wake a thread.
const WAKE_NS: u64 = 1_500;

/// Latency of a hand-over before any was measured: to a thread that is awake, and to one that sleeps.
const LATENCY_GUESS_NS: [u64; 2] = [2_000, 30_000];

/// The time of one key or range before any was measured.
const UNIT_GUESS_NS: u64 = 1_000;

/// Prices are in sixteenths: this is that of an idle thread.
pub const PRICE_ONE: u32 = 16;

/// The part of the time, in thousandths, above which a thread gets no dearer.
const BUSY_PER_MILLE_MAX: u32 = 960;

/// A place for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The query block of the own thread.
    Here = 0,
    /// The owner ldm, on another thread.
    Owner = 1,
    /// A query block of another thread.
    Query = 2,
}

/// What is known at once about another thread that may do a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its index.
    pub thread: u16,
    /// Signals that wait there.
    pub queue_length: u32,
    /// Whether it sleeps.
    pub sleeps: bool,
}

/// Where a read may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether the own thread can do it.
    pub here: bool,
    /// The thread of the owner ldm, when it is another one.
    pub owner: Option<Candidate>,
    /// The thread of a query block, when it is another one.
    pub query: Option<Candidate>,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Where the read goes.
    pub place: Place,
    /// Whether it is to be measured.
    pub is_sampled: bool,
}

/// What was measured of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The kind.
    pub kind: u8,
    /// Keys or ranges.
    pub units: u32,
    /// The thread that did it, if it was another one.
    pub away: Option<u16>,
    /// Whether that thread slept when the read was sent.
    pub slept: bool,
    /// Nanoseconds that it took there.
    pub service_ns: u64,
    /// Nanoseconds until the answer was here.
    pub total_ns: u64,
}

/// What a kind of reads has cost, and where its reads went.
#[derive(Clone, Copy, Debug)]
pub struct KindFigures {
    /// Nanoseconds a key or range in the own thread.
    pub here: Mean,
    /// Nanoseconds a key or range in other threads.
    pub away: Mean,
    /// Decisions for each [`Place`].
    pub chosen: [u64; 3],
    /// Decisions for another place than the best.
    pub explored: u64,
    /// How much those were predicted to cost more, in nanoseconds.
    pub regret_ns: u64,
    decisions: u32,
}

impl Default for KindFigures {
    fn default() -> KindFigures {
        let guess = Mean::guessed(UNIT_GUESS_NS);
        KindFigures { here: guess, away: guess, chosen: [0; 3], explored: 0, regret_ns: 0, decisions: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct ThreadFigures {
    /// Latency of a hand-over there: awake, asleep.
    latency: [Mean; 2],
    /// Nanoseconds that one of its signals takes.
    signal_ns: u64,
    price: u32,
    /// What was sent there in the turn that began then and is not seen in its queue yet, in nanoseconds.
    pending_ns: u64,
    pending_turn: Time,
}

impl ThreadFigures {
    #[inline]
    fn pending_ns(&self, turn: Time) -> u64 {
        if self.pending_turn == turn { self.pending_ns } else { 0 }
    }
}

/// The controller of one sql block.
#[derive(Debug)]
pub struct Controller {
    kinds: Box<[KindFigures]>,
    threads: Box<[ThreadFigures]>,
    own: usize,
}

impl Controller {
    /// The controller of a block on the thread `own` of so many.
    pub fn new(own: u16, threads: usize) -> Controller {
        let latency = LATENCY_GUESS_NS.map(Mean::guessed);
        let thread = ThreadFigures { latency, signal_ns: 0, price: PRICE_ONE, pending_ns: 0, pending_turn: Time(0) };
        let own = usize::from(own);
        let threads = vec![thread; threads.max(own + 1)].into_boxed_slice();
        Controller { kinds: vec![KindFigures::default(); KINDS_MAX].into_boxed_slice(), threads, own }
    }

    /// Gives a read of `units` keys or ranges a place; `turn` is the time at which the thread's turn began.
    #[inline]
    pub fn choose(&mut self, kind: u8, units: u32, options: &Options, turn: Time) -> Decision {
        let kind = usize::from(kind) % KINDS_MAX;
        let figures = &self.kinds[kind];
        let units = u64::from(units);
        let own = &self.threads[self.own];
        let mut costs = [u64::MAX; 3];
        if options.here {
            costs[0] = own.pending_ns(turn) + priced(figures.here.sixteenths() * units, own.price);
        }
        let away = figures.away.sixteenths() * units;
        for (place, candidate) in [(1, options.owner), (2, options.query)] {
            let Some(candidate) = candidate else { continue };
            let Some(thread) = self.threads.get(usize::from(candidate.thread)) else { continue };
            let waiting_ns = u64::from(candidate.queue_length) * thread.signal_ns + thread.pending_ns(turn);
            let hand_over_ns = if candidate.sleeps { HAND_OVER_NS + WAKE_NS } else { HAND_OVER_NS };
            let own_part = (hand_over_ns * u64::from(own.price)) >> 4;
            let latency = thread.latency[usize::from(candidate.sleeps)].value();
            costs[place] = own_part + latency + waiting_ns + priced(away, thread.price);
        }
        let best = least(&costs);
        let decision = self.decide(kind, &costs, best);
        self.note_pending(decision.place, kind, units, options, turn);
        decision
    }

    /// Takes a measurement.
    pub fn observe(&mut self, measured: &Measurement) {
        let figures = &mut self.kinds[usize::from(measured.kind) % KINDS_MAX];
        let units = u64::from(measured.units.max(1));
        match measured.away {
            None => figures.here.add(measured.service_ns / units),
            Some(thread) => {
                figures.away.add(measured.service_ns / units);
                let thread = usize::from(thread) % self.threads.len();
                let latency = &mut self.threads[thread].latency[usize::from(measured.slept)];
                latency.add(measured.total_ns.saturating_sub(measured.service_ns));
            }
        }
    }

    /// Takes how busy a thread was lately, in thousandths, and how long one of its signals took; `weight` raises the price of
    /// a thread that is to keep free of reads, in sixteenths.
    pub fn set_load(&mut self, thread: u16, busy_per_mille: u32, signal_ns: u64, weight: u32) {
        let Some(figures) = self.threads.get_mut(usize::from(thread)) else { return };
        let free = 1_000 - busy_per_mille.min(BUSY_PER_MILLE_MAX);
        figures.price = (PRICE_ONE * 1_000 / free * weight) >> 4;
        figures.signal_ns = signal_ns;
    }

    /// What a kind of reads has cost, and where its reads went.
    pub fn kind(&self, kind: u8) -> &KindFigures {
        &self.kinds[usize::from(kind) % KINDS_MAX]
    }

    /// The mean latency of a hand-over to a thread, awake and asleep, in nanoseconds, and the thread's price.
    pub fn thread(&self, thread: u16) -> Option<([u64; 2], u32)> {
        let figures = self.threads.get(usize::from(thread))?;
        Some((figures.latency.map(|mean| mean.value()), figures.price))
    }

    #[inline]
    fn decide(&mut self, kind: usize, costs: &[u64; 3], best: usize) -> Decision {
        let figures = &mut self.kinds[kind];
        figures.decisions = figures.decisions.wrapping_add(1);
        let mut chosen = best;
        let mut is_sampled = figures.decisions.is_multiple_of(DECISIONS_PER_SAMPLE);
        if is_sampled || figures.decisions <= FIRST_DECISIONS {
            chosen = explore(figures, costs, best);
            is_sampled = true;
        }
        figures.chosen[chosen] += 1;
        let place = [Place::Here, Place::Owner, Place::Query][chosen];
        Decision { place, is_sampled }
    }

    #[inline]
    fn note_pending(&mut self, place: Place, kind: usize, units: u64, options: &Options, turn: Time) {
        let figures = &self.kinds[kind];
        let (candidate, unit) = match place {
            Place::Here => (None, figures.here.sixteenths()),
            Place::Owner => (options.owner, figures.away.sixteenths()),
            Place::Query => (options.query, figures.away.sixteenths()),
        };
        let thread = candidate.map_or(self.own, |candidate| usize::from(candidate.thread));
        if let Some(thread) = self.threads.get_mut(thread) {
            thread.pending_ns = thread.pending_ns(turn) + ((unit * units) >> 4);
            thread.pending_turn = turn;
        }
    }
}

/// Sixteenths of nanoseconds at a price, in nanoseconds.
#[inline]
fn priced(sixteenths_ns: u64, price: u32) -> u64 {
    (sixteenths_ns * u64::from(price)) >> 8
}

#[inline]
fn least(costs: &[u64; 3]) -> usize {
    let first = usize::from(costs[1] < costs[0]);
    if costs[2] < costs[first] { 2 } else { first }
}

/// The best place, or now and then another one, so that the estimates stay true; the dearer, the more seldom.
#[cold]
fn explore(figures: &mut KindFigures, costs: &[u64; 3], best: usize) -> usize {
    let others = (0..3).filter(|place| *place != best && costs[*place] != u64::MAX);
    // The one that was tried least.
    let Some(other) = others.min_by_key(|place| figures.chosen[*place]) else { return best };
    let regret = costs[other] - costs[best];
    let every = match costs[best].max(1) {
        _ if figures.decisions <= FIRST_DECISIONS => 2,
        least if costs[other] <= least + least / 2 => EXPLORE_EVERY[0],
        least if costs[other] <= least * 8 => EXPLORE_EVERY[1],
        _ => EXPLORE_EVERY[2],
    };
    if !figures.decisions.is_multiple_of(every) {
        return best;
    }
    figures.explored += 1;
    figures.regret_ns += regret;
    other
}
