//! How busy each thread is: measured by the thread, published as words that only it writes.
//!
//! Time is read when a thread changes between executing, sending, spinning and sleeping, not per signal. Figures are
//! kept for slots of 50 ms, 1 s and 20 s, the last twenty of each. A reader may see a slot that is just being replaced
//! half old and half new; the figures steer and inform, nothing depends on their being exact.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::{Duration, Time};
use crate::sync::CachePadded;

/// Slots kept of each window.
pub const HISTORY_SLOTS: usize = 20;

const SLOT_NS: u64 = 50_000_000;

/// Slots of one window that make a slot of the next: 20 x 50 ms = 1 s, 20 x 1 s = 20 s.
const SLOTS_PER_NEXT: u64 = 20;

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadState {
    /// Running handlers, timers and queues.
    #[default]
    Executing = 0,
    /// Reading and writing sockets and files.
    Sending = 1,
    /// Looking for work instead of sleeping.
    Spinning = 2,
    /// Asleep.
    Sleeping = 3,
}

/// The length of the slots of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// 50 milliseconds.
    Moment = 0,
    /// One second.
    Second = 1,
    /// Twenty seconds.
    TwentySeconds = 2,
}

/// What a thread did in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Nanoseconds spent in handlers and queues.
    pub executing_ns: u64,
    /// Nanoseconds spent with sockets and files.
    pub sending_ns: u64,
    /// Nanoseconds spent looking for work.
    pub spinning_ns: u64,
    /// Nanoseconds asleep.
    pub sleeping_ns: u64,
    /// Signals handled.
    pub signals: u64,
    /// Turns in which at least one signal was handled.
    pub turns: u64,
    /// Signals and events that other threads handed over.
    pub hand_overs: u64,
}

impl Usage {
    const WORDS: usize = 7;

    fn to_words(self) -> [u64; Self::WORDS] {
        let Self { executing_ns, sending_ns, spinning_ns, sleeping_ns, signals, turns, hand_overs } = self;
        [executing_ns, sending_ns, spinning_ns, sleeping_ns, signals, turns, hand_overs]
    }

    fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [executing_ns, sending_ns, spinning_ns, sleeping_ns, signals, turns, hand_overs] = words;
        Self { executing_ns, sending_ns, spinning_ns, sleeping_ns, signals, turns, hand_overs }
    }

    fn add(&mut self, other: &Usage) {
        self.executing_ns += other.executing_ns;
        self.sending_ns += other.sending_ns;
        self.spinning_ns += other.spinning_ns;
        self.sleeping_ns += other.sleeping_ns;
        self.signals += other.signals;
        self.turns += other.turns;
        self.hand_overs += other.hand_overs;
    }

    fn state_ns(&mut self, state: ThreadState) -> &mut u64 {
        match state {
            ThreadState::Executing => &mut self.executing_ns,
            ThreadState::Sending => &mut self.sending_ns,
            ThreadState::Spinning => &mut self.spinning_ns,
            ThreadState::Sleeping => &mut self.sleeping_ns,
        }
    }

    /// Thousandths of the time in which the thread executed or sent; 0 for no time.
    pub fn busy_per_mille(&self) -> u32 {
        let busy = self.executing_ns + self.sending_ns;
        let all = busy + self.spinning_ns + self.sleeping_ns;
        (busy * 1000).checked_div(all).unwrap_or(0) as u32
    }
}

/// The figures of one thread as another thread sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadLoad {
    /// What it does.
    pub state: ThreadState,
    /// Since when.
    pub state_since: Time,
    /// Signals that wait in its own queues, at its last turn.
    pub queue_length: u32,
    /// How long it looks for work before it sleeps, now, in nanoseconds.
    pub spin_ns: u64,
    /// Everything up to the end of the last slot.
    pub total: Usage,
    /// The last complete 50 ms.
    pub moment: Usage,
    /// The last complete second.
    pub second: Usage,
    /// The last complete twenty seconds.
    pub twenty_seconds: Usage,
}

/// The published figures of all threads of a node.
#[derive(Debug)]
pub struct LoadBoard {
    threads: Box<[CachePadded<Published>]>,
}

#[derive(Debug, Default)]
struct Published {
    /// The state in the low two bits, the time of its start in units of 4 ns above.
    state: AtomicU64,
    queue_length: AtomicU64,
    /// How long the thread spins now, in nanoseconds.
    spin_ns: AtomicU64,
    total: [AtomicU64; Usage::WORDS],
    /// Slots ever completed, by window.
    completed: [AtomicU64; 3],
    slots: [[[AtomicU64; Usage::WORDS]; HISTORY_SLOTS]; 3],
}

impl LoadBoard {
    /// A board for so many threads.
    pub fn new(threads: usize) -> Self {
        Self { threads: (0..threads).map(|_| CachePadded(Published::default())).collect() }
    }

    /// How many threads there are.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Whether there is no thread.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Signals that wait in a thread's own queues, at its last turn; 0 for no such thread. One load.
    #[inline]
    pub fn queue_length(&self, thread: u16) -> u32 {
        self.threads.get(usize::from(thread)).map_or(0, |words| words.queue_length.load(Ordering::Relaxed) as u32)
    }

    /// What a thread does now; one load.
    #[inline]
    pub fn state(&self, thread: u16) -> ThreadState {
        self.threads.get(usize::from(thread)).map_or(ThreadState::Sleeping, |words| words.state_now().0)
    }

    /// All figures of a thread; none if there is no such thread.
    pub fn thread(&self, thread: u16) -> Option<ThreadLoad> {
        let words = self.threads.get(usize::from(thread))?;
        let (state, state_since) = words.state_now();
        Some(ThreadLoad {
            state,
            state_since,
            queue_length: words.queue_length.load(Ordering::Relaxed) as u32,
            spin_ns: words.spin_ns.load(Ordering::Relaxed),
            total: load_usage(&words.total),
            moment: words.slot_back(Window::Moment, 0),
            second: words.slot_back(Window::Second, 0),
            twenty_seconds: words.slot_back(Window::TwentySeconds, 0),
        })
    }

    /// The last [`HISTORY_SLOTS`] complete slots of a window, newest first; none if there is no such thread.
    pub fn history(&self, thread: u16, window: Window) -> Option<[Usage; HISTORY_SLOTS]> {
        let words = self.threads.get(usize::from(thread))?;
        Some(std::array::from_fn(|back| words.slot_back(window, back as u64)))
    }
}

impl Published {
    fn state_now(&self) -> (ThreadState, Time) {
        let word = self.state.load(Ordering::Relaxed);
        let state = match word & 3 {
            0 => ThreadState::Executing,
            1 => ThreadState::Sending,
            2 => ThreadState::Spinning,
            _ => ThreadState::Sleeping,
        };
        (state, Time(word & !3))
    }

    fn slot_back(&self, window: Window, back: u64) -> Usage {
        let completed = self.completed[window as usize].load(Ordering::Acquire);
        match completed.checked_sub(back + 1) {
            Some(position) => load_usage(&self.slots[window as usize][position as usize % HISTORY_SLOTS]),
            None => Usage::default(),
        }
    }
}

fn load_usage(words: &[AtomicU64; Usage::WORDS]) -> Usage {
    Usage::from_words(std::array::from_fn(|word| words[word].load(Ordering::Relaxed)))
}

fn store_usage(words: &[AtomicU64; Usage::WORDS], usage: Usage) {
    for (word, value) in words.iter().zip(usage.to_words()) {
        word.store(value, Ordering::Relaxed);
    }
}

/// The measuring side; one per thread.
#[derive(Debug)]
pub(crate) struct LoadMeter {
    board: std::sync::Arc<LoadBoard>,
    thread: usize,
    state: ThreadState,
    since: Time,
    slot_end: Time,
    /// The unfinished slot of each window.
    current: [Usage; 3],
    completed: [u64; 3],
    total: Usage,
}

impl LoadMeter {
    pub(crate) fn new(board: std::sync::Arc<LoadBoard>, thread: u16, now: Time) -> Self {
        Self {
            board,
            thread: usize::from(thread),
            state: ThreadState::Executing,
            since: now,
            slot_end: now.plus(Duration(SLOT_NS)),
            current: Default::default(),
            completed: Default::default(),
            total: Usage::default(),
        }
    }

    /// The thread does something else from `now` on.
    #[inline]
    pub(crate) fn enter(&mut self, state: ThreadState, now: Time) {
        while now >= self.slot_end {
            self.complete_slot();
        }
        *self.current[0].state_ns(self.state) += now.since(self.since).0;
        self.since = self.since.max(now);
        if state != self.state {
            self.state = state;
            self.board.threads[self.thread].state.store(now.0 & !3 | state as u64, Ordering::Relaxed);
        }
    }

    /// The thread spins so long from now on.
    pub(crate) fn set_spin(&mut self, spin: Duration) {
        self.board.threads[self.thread].spin_ns.store(spin.0, Ordering::Relaxed);
    }

    /// A turn has ended; `hand_overs` of what it handled came from other threads.
    #[inline]
    pub(crate) fn count_turn(&mut self, signals: u64, hand_overs: u64, queue_length: usize) {
        self.current[0].signals += signals;
        self.current[0].turns += u64::from(signals > 0);
        self.current[0].hand_overs += hand_overs;
        self.board.threads[self.thread].queue_length.store(queue_length as u64, Ordering::Relaxed);
    }

    #[cold]
    fn complete_slot(&mut self) {
        *self.current[0].state_ns(self.state) += self.slot_end.since(self.since).0;
        self.since = self.since.max(self.slot_end);
        self.slot_end = self.slot_end.plus(Duration(SLOT_NS));
        let words = &self.board.threads[self.thread];
        self.total.add(&self.current[0]);
        store_usage(&words.total, self.total);
        for window in 0..3 {
            let finished = std::mem::take(&mut self.current[window]);
            store_usage(&words.slots[window][self.completed[window] as usize % HISTORY_SLOTS], finished);
            self.completed[window] += 1;
            words.completed[window].store(self.completed[window], Ordering::Release);
            let Some(next) = self.current.get_mut(window + 1) else { break };
            next.add(&finished);
            if !self.completed[window].is_multiple_of(SLOTS_PER_NEXT) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    #[test]
    fn every_nanosecond_is_counted_once_in_every_window() {
        let board = Arc::new(LoadBoard::new(2));
        let mut meter = LoadMeter::new(board.clone(), 1, Time(0));
        for second in 0..40 {
            let start = second * 1000 * MILLISECOND;
            meter.enter(ThreadState::Executing, Time(start));
            meter.count_turn(10, 4, 3);
            meter.enter(ThreadState::Sending, Time(start + 200 * MILLISECOND));
            meter.enter(ThreadState::Sleeping, Time(start + 300 * MILLISECOND));
        }
        meter.enter(ThreadState::Executing, Time(40_000 * MILLISECOND));
        let load = board.thread(1).unwrap();
        assert_eq!(load.total.executing_ns, 40 * 200 * MILLISECOND);
        assert_eq!(load.total.sleeping_ns, 40 * 700 * MILLISECOND);
        assert_eq!((load.total.signals, load.total.turns, load.queue_length), (400, 40, 3));
        assert_eq!(load.total.hand_overs, 160);
        assert_eq!(load.moment, Usage { sleeping_ns: 50 * MILLISECOND, ..Usage::default() });
        assert_eq!((load.second.sending_ns, load.second.busy_per_mille()), (100 * MILLISECOND, 300));
        assert_eq!((load.twenty_seconds.signals, load.twenty_seconds.sending_ns), (200, 2000 * MILLISECOND));
        let moments = board.history(1, Window::Moment).unwrap();
        let asleep: u64 = moments.iter().map(|slot| slot.sleeping_ns).sum();
        assert_eq!(asleep, 700 * MILLISECOND);
        assert_eq!(board.thread(2), None);
    }

    #[test]
    fn the_state_and_its_start_are_seen_at_once() {
        let board = Arc::new(LoadBoard::new(1));
        let mut meter = LoadMeter::new(board.clone(), 0, Time(0));
        meter.enter(ThreadState::Spinning, Time(4_000));
        let load = board.thread(0).unwrap();
        assert_eq!((load.state, load.state_since), (ThreadState::Spinning, Time(4_000)));
    }
}
