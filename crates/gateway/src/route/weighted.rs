//! Weights of threads, adjusted to their load every 100 ms, and the rule that distributes reads by weights
//! alone. As in RonDB, the owner comes first while it has a share left, and then the others in turn.
//!
//! The figures come from RonDB's distribution of query work: load indicators from 1 to 5, weights up to 16,
//! four key reads in a row, and a scan that counts as five reads.

/// Maximum weight of a thread.
pub const WEIGHT_MAX: u32 = 16;

/// Weight of an owner at the start, and while the node is lightly loaded.
const OWNER_WEIGHT: u32 = 8;

/// Weight of any other thread at these times.
const OTHER_WEIGHT: u32 = 4;

/// The node is lightly loaded if the busy shares of the reading threads have a mean and a maximum below
/// these, in thousandths. Weights then return to their initial values.
const IDLE_PER_MILLE: [u32; 2] = [300, 400];

/// A thread with recv or tc should be less busy than the mean of the reading threads by this much, in
/// thousandths.
const MARGIN_PER_MILLE: i64 = 60;

/// Differences in thousandths that change no weight.
const TOLERANCE_PER_MILLE: i64 = 30;

/// Number of consecutive key reads that go to one thread.
const KEY_READS_IN_A_ROW: u32 = 4;

/// Cost of a scan, in key reads.
const SCAN_UNITS: u32 = 5;

/// Bounds of the factor on a thread's price, in sixteenths.
const FACTOR: [u32; 2] = [16, 64];

/// One thread's input to an adjustment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadBusy {
    /// Share of time spent executing or sending, in thousandths.
    pub busy_per_mille: u32,
    /// Mean number of signals per turn.
    pub signals_per_turn: u32,
    /// Whether it runs recv or tc, which must not become the bottleneck.
    pub keeps_free: bool,
    /// Whether it runs a block that can read.
    pub reads: bool,
    /// Whether it runs an ldm, which owns partitions.
    pub owns: bool,
}

/// The weights of all threads of a node.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    threads: Vec<ThreadWeight>,
}

#[derive(Clone, Copy, Debug)]
struct ThreadWeight {
    weight: u32,
    /// Factor on the thread's price, in sixteenths.
    factor: u32,
    /// Load indicator, from 1 to 5, which is the cost of one read.
    indicator: u32,
    /// Cost of the reads that the thread got in this round.
    used: u32,
}

impl Weights {
    /// A thread's weight, from 0 to 16.
    pub fn weight(&self, thread: u16) -> u32 {
        self.threads.get(usize::from(thread)).map_or(0, |one| one.weight)
    }

    /// The factor on a thread's price, in sixteenths. It exceeds 16 while a thread with recv or tc is too
    /// busy.
    pub fn factor(&self, thread: u16) -> u32 {
        self.threads.get(usize::from(thread)).map_or(FACTOR[0], |one| one.factor)
    }

    /// Adjusts the weights to the load of the threads. Call it every 100 ms.
    pub fn adjust(&mut self, busy: &[ThreadBusy]) {
        if self.threads.len() != busy.len() {
            let first =
                |one: &ThreadBusy| ThreadWeight { weight: first_weight(one), factor: FACTOR[0], indicator: 1, used: 0 };
            self.threads = busy.iter().map(first).collect();
        }
        let readers = || busy.iter().filter(|one| one.reads);
        let count = readers().count().max(1) as u64;
        let mean = (readers().map(|one| u64::from(one.busy_per_mille)).sum::<u64>() / count) as i64;
        let is_idle =
            mean < i64::from(IDLE_PER_MILLE[0]) && readers().all(|one| one.busy_per_mille < IDLE_PER_MILLE[1]);
        for (thread, one) in self.threads.iter_mut().zip(busy) {
            thread.indicator = indicator(one.signals_per_turn);
            if is_idle {
                (thread.weight, thread.factor) = (first_weight(one), FACTOR[0]);
                continue;
            }
            let margin = if one.keeps_free { MARGIN_PER_MILLE } else { 0 };
            let surplus = i64::from(one.busy_per_mille) - (mean - margin);
            let step = match surplus.abs() {
                gap if gap <= TOLERANCE_PER_MILLE => 0,
                gap if gap <= 150 => 1,
                _ => 2,
            };
            if surplus > 0 {
                thread.weight = thread.weight.saturating_sub(step).max(u32::from(one.reads));
            } else if one.reads {
                thread.weight = (thread.weight + step).min(WEIGHT_MAX);
            }
            let raise = one.keeps_free && surplus > TOLERANCE_PER_MILLE;
            thread.factor = match raise {
                true => (thread.factor + 2 * step).min(FACTOR[1]),
                false => thread.factor.saturating_sub(2).max(FACTOR[0]),
            };
        }
    }

    /// Uses up a thread's share for one read. Returns false if no share is left in this round.
    fn take(&mut self, thread: u16, reads: u32) -> bool {
        let Some(one) = self.threads.get_mut(usize::from(thread)) else { return false };
        if one.used >= one.weight * SHARE {
            return false;
        }
        one.used += one.indicator * reads;
        true
    }

    fn begin_round(&mut self) {
        self.threads.iter_mut().for_each(|one| one.used = 0);
    }
}

/// Cost of the reads that a thread may run in one round, per unit of its weight. A read costs the load
/// indicator of the thread.
const SHARE: u32 = 8;

/// The state of the rule in one sql block.
#[derive(Clone, Copy, Debug, Default)]
pub struct WeightedRule {
    /// The thread of the last read.
    last: Option<u16>,
    /// Number of key reads that still go to the same thread.
    repeats: u32,
    /// Position in `queries` at which the next search begins.
    next: usize,
}

impl WeightedRule {
    /// Chooses the thread for a read: the owner's, or one of `queries`, the threads with a query block.
    pub fn choose(&mut self, weights: &mut Weights, owner: u16, queries: &[u16], is_scan: bool) -> u16 {
        if !is_scan && self.repeats > 0 && self.last.is_some_and(|last| last == owner || queries.contains(&last)) {
            self.repeats -= 1;
            return self.last.unwrap_or(owner);
        }
        let reads = if is_scan { SCAN_UNITS } else { KEY_READS_IN_A_ROW };
        let chosen = self.find(weights, owner, queries, reads).unwrap_or_else(|| {
            weights.begin_round();
            self.find(weights, owner, queries, reads).unwrap_or(owner)
        });
        self.last = Some(chosen);
        self.repeats = if is_scan { 0 } else { KEY_READS_IN_A_ROW - 1 };
        chosen
    }

    fn find(&mut self, weights: &mut Weights, owner: u16, queries: &[u16], reads: u32) -> Option<u16> {
        if weights.take(owner, reads) {
            return Some(owner);
        }
        for step in 0..queries.len() {
            let position = (self.next + step) % queries.len();
            if weights.take(queries[position], reads) {
                self.next = position + 1;
                return Some(queries[position]);
            }
        }
        None
    }
}

fn first_weight(one: &ThreadBusy) -> u32 {
    match (one.owns, one.reads) {
        (true, _) => OWNER_WEIGHT,
        (false, true) => OTHER_WEIGHT,
        (false, false) => 0,
    }
}

/// The load indicator for this number of signals per turn.
fn indicator(signals_per_turn: u32) -> u32 {
    match signals_per_turn {
        0..16 => 1,
        16..24 => 2,
        24..34 => 3,
        34..48 => 4,
        _ => 5,
    }
}
