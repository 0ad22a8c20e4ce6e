//! Hot path, budget 50 instructions a decision for a short read. The controller that gives each read the place where its predicted cost is
//! least: measurements in, decisions out, in integers, without a clock.
//!
//! The cost of a place is how much later everything is done if the read goes there: the time of the read itself, and what
//! it takes from others of the thread that does it. The second is the price of a thread: a nanosecond of a thread that is
//! busy a part p of the time delays what comes after it by p / (1 - p) nanoseconds more, as in a queue with one server. A
//! read that is handed over costs both threads signals and turns, and is answered later by the latency of the hand-over,
//! which is measured apart for threads that worked, looked for work and slept. And wherever it goes it waits for what was
//! sent there before and is not answered yet: that is known, so only the rest of what a thread did makes its price. Where the difference is small, a read stays: two threads that are equally busy
//! would else exchange their work.

use junctor_kernel::KernelLimits;
use junctor_kernel::scheduler::load::ThreadState;
use junctor_signals::read_rows::Charge;

use super::estimate::Mean;

/// Kinds of reads that are told apart; more share their estimates.
pub const KINDS_MAX: usize = 64;

/// Every so many decisions of a kind are measured.
const DECISIONS_PER_SAMPLE: u32 = 32;

/// Decisions of a new kind that are measured one and all, and go by turns to each place.
const FIRST_DECISIONS: u32 = 8;

/// How many measured decisions come to one for another place than the best: when that seems at most half as dear again, at
/// most eight times as dear, and dearer than that.
const EXPLORE_EVERY: [u32; 3] = [4, 64, 1_024];

/// What a hand-over costs each of both threads, in nanoseconds: a signal sent, a signal taken, and their part of the turns that
/// there would not be without them. Measured: 9 microseconds for a read handed over and its answer, a wake-up included.
const HAND_OVER_NS: u64 = 1_500;

/// What it costs the own thread in addition to wake one that sleeps.
const WAKE_NS: u64 = 3_000;

/// Latency of a hand-over before any was measured, to a thread in each [`ThreadState`].
const LATENCY_GUESS_NS: [u64; ThreadState::COUNT] = [4_000, 4_000, 2_000, 30_000, 100_000];

/// Another place must be cheaper than the own thread by this part of the cost of the read itself, a power of two.
const STAY_SHIFT: u32 = 3;

/// A thread that is less busy than the own one by not more than this, in thousandths, is taken to be as busy.
const SAME_PER_MILLE: u32 = 100;

/// A read that takes so long, in units of work, waits in a queue even if it stays, so that the thread takes in what comes meanwhile: then its
/// work is under way by count. This is 50 microseconds.
const LONG_READ_WORK: u64 = 50_000 >> Charge::UNIT_SHIFT;

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
    /// What it does.
    pub state: ThreadState,
}

/// What a thread did lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The part of the time for which it worked, in thousandths.
    pub busy_per_mille: u32,
    /// Nanoseconds that one of its signals took.
    pub signal_ns: u64,
}

/// Other threads that may do a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Away {
    /// The thread of the owner ldm, when it is another one.
    pub owner: Option<Candidate>,
    /// The thread of a query block, when it is another one.
    pub query: Option<Candidate>,
}

/// Where a read may go.
struct Options {
    here: bool,
    away: Away,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Where the read goes.
    pub place: Place,
    /// Whether it is to be measured.
    pub is_sampled: bool,
    /// What [`Controller::discharge`] is to be told when the read was answered.
    pub charge: Charge,
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
    /// What that thread did when the read was sent.
    pub state: ThreadState,
    /// Nanoseconds that it took there.
    pub service_ns: u64,
    /// Nanoseconds of work under way there when it was sent.
    pub waiting_ns: u64,
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
    /// Decisions until one is measured.
    until_sample: u32,
    /// Decisions that were to be measured.
    sampled: u32,
}

impl Default for KindFigures {
    fn default() -> KindFigures {
        let guess = Mean::guessed(UNIT_GUESS_NS);
        KindFigures { here: guess, away: guess, chosen: [0; 3], explored: 0, regret_ns: 0, until_sample: 1, sampled: 0 }
    }
}

/// What a decision wants to know of a thread.
#[derive(Clone, Copy, Debug)]
struct ThreadFigures {
    /// What a hand-over there costs by itself, to a thread in each state: the parts of both threads at their prices, and the
    /// latency.
    hand_over_ns: [u64; ThreadState::COUNT],
    /// Nanoseconds that one of its signals takes.
    signal_ns: u64,
    price: u64,
    /// What was sent there and is not answered yet, in units of work.
    under_way: u64,
    /// The part of it that is long, which a short read that stays does not wait for.
    long_under_way: u64,
    /// Units of work sent there, of the kind that is seen under way, since the last look; and the part of the time that such
    /// work took lately, in thousandths.
    seen: u64,
    seen_per_mille: u32,
}

/// Of what a node may have at most, so that a masked index needs no check.
const THREADS: usize = KernelLimits::THREADS_MAX.next_power_of_two();

impl ThreadFigures {
    #[inline(always)]
    fn under_way_ns(&self) -> u64 {
        self.under_way << Charge::UNIT_SHIFT
    }

    /// How busy the thread was with what was not seen under way.
    fn unseen_per_mille(&mut self, busy_per_mille: u32, elapsed_ns: u64) -> u32 {
        let seen_ns = std::mem::take(&mut self.seen) << Charge::UNIT_SHIFT;
        let now_per_mille = (seen_ns.saturating_mul(1_000) / elapsed_ns.max(1)).min(1_000) as u32;
        self.seen_per_mille = (self.seen_per_mille + now_per_mille) / 2;
        busy_per_mille.saturating_sub(self.seen_per_mille)
    }

    /// The cost of `work_ns` that stays, less what another place must be cheaper.
    #[inline(always)]
    fn cost_here(&self, work_ns: u64) -> u64 {
        let passes = if work_ns >> Charge::UNIT_SHIFT < LONG_READ_WORK { self.long_under_way } else { 0 };
        let cost = priced(work_ns, self.price);
        (self.under_way.saturating_sub(passes) << Charge::UNIT_SHIFT) + cost - (cost >> STAY_SHIFT)
    }

    /// The cost of `work_ns` that is handed over. What waits there by the thread's own account is partly what is under way from
    /// here, so the larger one counts.
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
    /// The thread of the block.
    own: ThreadFigures,
    own_busy_per_mille: u32,
    /// No hand-over costs less.
    hand_over_ns_min: u64,
    /// The others.
    threads: Box<[ThreadFigures; THREADS]>,
    /// Latency of a hand-over to each thread in each state.
    latencies: Box<[[Mean; ThreadState::COUNT]]>,
    own_thread: u16,
}

impl Controller {
    /// The controller of a block on the thread `own` of so many.
    pub fn new(own: u16, threads: usize) -> Controller {
        let thread = ThreadFigures {
            hand_over_ns: [0; ThreadState::COUNT],
            signal_ns: 0,
            price: u64::from(PRICE_ONE),
            under_way: 0,
            long_under_way: 0,
            seen: 0,
            seen_per_mille: 0,
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

    /// Gives a read of `units` keys or ranges a place, and charges the place with it. The other threads are looked at only if
    /// the read takes so long here that a hand-over could pay, or if it is to be measured.
    #[inline]
    pub fn choose(&mut self, kind: u8, units: u32, here: bool, away: impl FnOnce() -> Away) -> Decision {
        let figures = &mut self.kinds[usize::from(kind) % KINDS_MAX];
        let here_ns = (figures.here.sixteenths() * u64::from(units)) >> 4;
        let here_cost = if here { self.own.cost_here(here_ns) } else { u64::MAX };
        if here_cost <= self.hand_over_ns_min && figures.until_sample > 1 {
            figures.until_sample -= 1;
            figures.chosen[Place::Here as usize] += 1;
            let charge = Charge::new(self.own_thread, here_ns);
            self.own.under_way += u64::from(charge.work);
            return Decision { place: Place::Here, is_sampled: false, charge };
        }
        self.compare(kind, units, [here_ns, here_cost], &Options { here, away: away() })
    }

    /// Something with this charge is under way.
    #[inline]
    pub fn charge(&mut self, charge: Charge) {
        let is_own = charge.thread == self.own_thread;
        let work = u64::from(charge.work);
        let long = if is_long(charge) { work } else { 0 };
        let figures = self.figures_mut(charge.thread);
        figures.under_way += work;
        figures.long_under_way += long;
        figures.seen += if is_own { long } else { work };
    }

    /// Something with this charge was answered.
    #[inline]
    pub fn discharge(&mut self, charge: Charge) {
        let work = u64::from(charge.work);
        let long = if is_long(charge) { work } else { 0 };
        let figures = self.figures_mut(charge.thread);
        figures.under_way = figures.under_way.saturating_sub(work);
        figures.long_under_way = figures.long_under_way.saturating_sub(long);
    }

    /// Nanoseconds of work under way on a thread.
    pub fn under_way_ns(&self, thread: u16) -> u64 {
        self.figures(thread).under_way_ns()
    }

    /// Nanoseconds of work under way for which something with this charge, which is one of it, may have to wait.
    pub fn waiting_ns(&self, charge: Charge) -> u64 {
        let figures = self.figures(charge.thread);
        let passes = if charge.thread == self.own_thread && !is_long(charge) { figures.long_under_way } else { 0 };
        figures.under_way.saturating_sub(passes + u64::from(charge.work)) << Charge::UNIT_SHIFT
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
        let mut place = Place::Here;
        if let Some(owner) = options.away.owner {
            let owner_cost = self.threads[usize::from(owner.thread) % THREADS].cost_away(owner, away_ns);
            (cost, place) = if owner_cost < cost { (owner_cost, Place::Owner) } else { (cost, place) };
        }
        if let Some(query) = options.away.query {
            let query_cost = self.threads[usize::from(query.thread) % THREADS].cost_away(query, away_ns);
            place = if query_cost < cost { Place::Query } else { place };
        }
        figures.until_sample -= 1;
        let is_sampled = figures.until_sample == 0;
        if is_sampled {
            place = self.sample(kind, place, units, options);
        }
        self.kinds[usize::from(kind) % KINDS_MAX].chosen[place as usize] += 1;
        let charge = match (place, options.away.owner, options.away.query) {
            (Place::Owner, Some(owner), _) => Charge::new(owner.thread, away_ns),
            (Place::Query, _, Some(query)) => Charge::new(query.thread, away_ns),
            _ => Charge::new(self.own_thread, here_ns),
        };
        self.charge(charge);
        Decision { place, is_sampled, charge }
    }

    /// Takes a measurement.
    pub fn observe(&mut self, measured: &Measurement) {
        let figures = &mut self.kinds[usize::from(measured.kind) % KINDS_MAX];
        let units = u64::from(measured.units.max(1));
        match measured.away {
            None => figures.here.add(measured.service_ns / units),
            Some(thread) => {
                figures.away.add(measured.service_ns / units);
                // Part of what was under way may have been done already: most of the time must be known otherwise.
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

    /// Takes how busy a thread was lately, in thousandths, and how long one of its signals took, `elapsed_ns` after the last time;
    /// `weight` raises the price of a thread that is to keep free of reads, in sixteenths. The own thread comes first.
    pub fn set_load(&mut self, thread: u16, load: &Load, elapsed_ns: u64, weight: u32) {
        let Load { busy_per_mille, signal_ns } = *load;
        let busy_per_mille = self.figures_mut(thread).unseen_per_mille(busy_per_mille, elapsed_ns);
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

    /// What a kind of reads has cost, and where its reads went.
    pub fn kind(&self, kind: u8) -> &KindFigures {
        &self.kinds[usize::from(kind) % KINDS_MAX]
    }

    /// The price of a thread, in sixteenths of that of an idle one.
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

    /// A decision that is to be measured: the best place, or now and then another one, so that the estimates stay true; the
    /// dearer that is, the more seldom.
    #[cold]
    #[inline(never)]
    fn sample(&mut self, kind: u8, best: Place, units: u32, options: &Options) -> Place {
        let figures = &mut self.kinds[usize::from(kind) % KINDS_MAX];
        figures.sampled = figures.sampled.wrapping_add(1);
        let is_new = figures.sampled < FIRST_DECISIONS;
        figures.until_sample = if is_new { 1 } else { DECISIONS_PER_SAMPLE };
        let [here_ns, away_ns] = [figures.here, figures.away].map(|mean| (mean.sixteenths() * u64::from(units)) >> 4);
        let cost = |place: Place| match place {
            Place::Here => options.here.then(|| self.own.cost_here(here_ns)),
            Place::Owner | Place::Query => {
                let candidate = if place == Place::Owner { options.away.owner } else { options.away.query }?;
                let thread = &self.threads[usize::from(candidate.thread) % THREADS];
                Some(thread.cost_away(candidate, away_ns))
            }
        };
        let others = [Place::Here, Place::Owner, Place::Query].into_iter().filter(|place| *place != best);
        let others = others.filter_map(|place| Some((place, cost(place)?)));
        // The one that was tried least.
        let Some((other, other_cost)) = others.min_by_key(|(place, _)| figures.chosen[*place as usize]) else {
            return best;
        };
        let best_cost = cost(best).unwrap_or(0);
        let every = match best_cost.max(1) {
            _ if is_new => 2,
            least if other_cost <= least + least / 2 => EXPLORE_EVERY[0],
            least if other_cost <= least * 8 => EXPLORE_EVERY[1],
            _ => EXPLORE_EVERY[2],
        };
        if !figures.sampled.is_multiple_of(every) {
            return best;
        }
        figures.explored += 1;
        figures.regret_ns += other_cost.saturating_sub(best_cost);
        other
    }
}

/// Whether a read that stays waits in a queue.
#[inline(always)]
pub(crate) fn is_long(charge: Charge) -> bool {
    u64::from(charge.work) >= LONG_READ_WORK
}

/// Nanoseconds at a price.
#[inline(always)]
fn priced(work_ns: u64, price: u64) -> u64 {
    (work_ns * price) >> 4
}
