//! How busy each thread is. Each thread measures itself and publishes its figures in words that only this
//! thread writes.
//!
//! A thread reads the clock when it changes between executing, sending, spinning and sleeping, not for each
//! signal. A slot is an interval with its figures. Slots last 50 ms, 1 s or 20 s, and the last twenty of each
//! length are kept. A reader may see a slot half old and half new while it is replaced: the figures serve
//! controllers and status tables, and correctness never depends on them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::{Duration, Time};
use crate::sync::CachePadded;

use super::send_board::SendBoard;

/// Number of slots kept for each window.
pub const HISTORY_SLOTS: usize = 20;

const SLOT_NS: u64 = 50_000_000;

/// Number of slots of one length that make one slot of the next length: 20 x 50 ms = 1 s, 20 x 1 s = 20 s.
const SLOTS_PER_NEXT: u64 = 20;

/// The activity of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadState {
    /// Runs handlers, timers and queues.
    #[default]
    Executing = 0,
    /// Writes to sockets.
    Sending = 1,
    /// Polling for work instead of sleeping.
    Spinning = 2,
    /// Asleep.
    Sleeping = 3,
    /// Asleep briefly, until other threads make space in their rings.
    BufferFull = 4,
}

impl ThreadState {
    /// Number of states.
    pub const COUNT: usize = 5;
}

/// Length of the slots of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// 50 milliseconds.
    Moment = 0,
    /// One second.
    Second = 1,
    /// Twenty seconds.
    TwentySeconds = 2,
}

/// Activity of a thread over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Nanoseconds in handlers and queues.
    pub executing_ns: u64,
    /// Nanoseconds in writes to sockets.
    pub sending_ns: u64,
    /// Nanoseconds polling for work.
    pub spinning_ns: u64,
    /// Nanoseconds asleep.
    pub sleeping_ns: u64,
    /// Nanoseconds asleep because rings of other threads were full.
    pub buffer_full_ns: u64,
    /// Nanoseconds in user mode, as the operating system counts them; 0 if unknown.
    pub os_user_ns: u64,
    /// Nanoseconds in system mode, as the operating system counts them; 0 if unknown.
    pub os_system_ns: u64,
    /// Signals handled, including those that this thread handled for sleeping threads.
    pub signals: u64,
    /// Turns that handled at least one signal.
    pub turns: u64,
    /// Signals received from other threads.
    pub hand_overs: u64,
    /// Turns of this thread that other threads ran.
    pub delegated_turns: u64,
    /// Number of times that the thread gave up its CPU to wait.
    pub voluntary_switches: u64,
    /// Number of times that the operating system preempted the thread.
    pub involuntary_switches: u64,
}

impl Usage {
    const WORDS: usize = 13;

    fn to_words(self) -> [u64; Self::WORDS] {
        [
            self.executing_ns,
            self.sending_ns,
            self.spinning_ns,
            self.sleeping_ns,
            self.buffer_full_ns,
            self.os_user_ns,
            self.os_system_ns,
            self.signals,
            self.turns,
            self.hand_overs,
            self.delegated_turns,
            self.voluntary_switches,
            self.involuntary_switches,
        ]
    }

    fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [executing_ns, sending_ns, spinning_ns, sleeping_ns, buffer_full_ns, os_user_ns, os_system_ns, rest @ ..] =
            words;
        let [signals, turns, hand_overs, delegated_turns, voluntary_switches, involuntary_switches] = rest;
        Self {
            executing_ns,
            sending_ns,
            spinning_ns,
            sleeping_ns,
            buffer_full_ns,
            os_user_ns,
            os_system_ns,
            signals,
            turns,
            hand_overs,
            delegated_turns,
            voluntary_switches,
            involuntary_switches,
        }
    }

    pub(crate) fn add(&mut self, other: &Usage) {
        let (own, other) = (self.to_words(), other.to_words());
        *self = Self::from_words(std::array::from_fn(|word| own[word] + other[word]));
    }

    /// Total time covered, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        self.executing_ns + self.sending_ns + self.spinning_ns + self.sleeping_ns + self.buffer_full_ns
    }

    fn state_ns(&mut self, state: ThreadState) -> &mut u64 {
        match state {
            ThreadState::Executing => &mut self.executing_ns,
            ThreadState::Sending => &mut self.sending_ns,
            ThreadState::Spinning => &mut self.spinning_ns,
            ThreadState::Sleeping => &mut self.sleeping_ns,
            ThreadState::BufferFull => &mut self.buffer_full_ns,
        }
    }

    /// Thousandths of the time spent executing or sending; 0 if no time is covered.
    pub fn busy_per_mille(&self) -> u32 {
        let busy = self.executing_ns + self.sending_ns;
        (busy * 1000).checked_div(self.elapsed_ns()).unwrap_or(0) as u32
    }
}

/// The figures of one thread, as other threads see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadLoad {
    /// The current activity.
    pub state: ThreadState,
    /// When the current activity began.
    pub state_since: Time,
    /// Signals that waited for the thread after its last turn, not counting long-running ones.
    pub queue_length: u32,
    /// Current spin time before a sleep, in nanoseconds.
    pub spin_ns: u64,
    /// Sum since the start, up to the end of the last complete slot.
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
    sending: SendBoard,
}

#[derive(Debug, Default)]
struct Published {
    /// State in the low three bits. Above it, the time when it began, in units of 8 ns.
    state: AtomicU64,
    queue_length: AtomicU64,
    /// Current spin time, in nanoseconds.
    spin_ns: AtomicU64,
    /// Number of times that input was taken from a socket.
    inputs: AtomicU64,
    total: [AtomicU64; Usage::WORDS],
    /// Slots completed since the start, by window.
    completed: [AtomicU64; 3],
    slots: [[[AtomicU64; Usage::WORDS]; HISTORY_SLOTS]; 3],
}

impl LoadBoard {
    /// A board for `threads` threads, all figures 0.
    pub fn new(threads: usize) -> Self {
        let published = (0..threads).map(|_| CachePadded(Published::default())).collect();
        Self { threads: published, sending: SendBoard::new(threads) }
    }

    /// A board with these figures, whose history has only the last 50 ms slot. For tests of controllers.
    pub fn of(threads: &[ThreadLoad]) -> Self {
        let board = Self::new(threads.len());
        for (words, load) in board.threads.iter().zip(threads) {
            words.state.store(load.state_since.0 & !7 | load.state as u64, Ordering::Relaxed);
            words.queue_length.store(u64::from(load.queue_length), Ordering::Relaxed);
            words.spin_ns.store(load.spin_ns, Ordering::Relaxed);
            store_usage(&words.total, load.total);
            store_usage(&words.slots[Window::Moment as usize][0], load.moment);
            words.completed[Window::Moment as usize].store(1, Ordering::Release);
        }
        board
    }

    /// The send figures of the same threads.
    pub fn sending(&self) -> &SendBoard {
        &self.sending
    }

    /// Number of times that the threads have taken input from a socket.
    pub fn inputs(&self) -> u64 {
        self.threads.iter().map(|words| words.inputs.load(Ordering::Relaxed)).sum()
    }

    /// Number of threads.
    pub fn len(&self) -> usize {
        self.threads.len()
    }

    /// Whether the node has no thread.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Signals that waited for a thread after its last turn, not counting long-running ones; 0 for an unknown
    /// thread. One load.
    #[inline]
    pub fn queue_length(&self, thread: u16) -> u32 {
        self.threads.get(usize::from(thread)).map_or(0, |words| words.queue_length.load(Ordering::Relaxed) as u32)
    }

    /// Current state of a thread. One load.
    #[inline]
    pub fn state(&self, thread: u16) -> ThreadState {
        self.threads.get(usize::from(thread)).map_or(ThreadState::Sleeping, |words| words.state_now().0)
    }

    /// Current state of a thread, and when it began.
    pub(crate) fn state_since(&self, thread: u16) -> (ThreadState, Time) {
        self.threads.get(usize::from(thread)).map_or_else(Default::default, |words| words.state_now())
    }

    /// Number of slots of this length that a thread has completed since its start.
    pub(crate) fn completed(&self, thread: u16, window: Window) -> u64 {
        let words = self.threads.get(usize::from(thread));
        words.map_or(0, |words| words.completed[window as usize].load(Ordering::Acquire))
    }

    /// All figures of a thread; `None` for an unknown thread.
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

    /// The last [`HISTORY_SLOTS`] complete slots of this length, newest first; `None` for an unknown thread.
    pub fn history(&self, thread: u16, window: Window) -> Option<[Usage; HISTORY_SLOTS]> {
        let words = self.threads.get(usize::from(thread))?;
        Some(std::array::from_fn(|back| words.slot_back(window, back as u64)))
    }
}

impl Published {
    fn state_now(&self) -> (ThreadState, Time) {
        let word = self.state.load(Ordering::Relaxed);
        let state = match word & 7 {
            0 => ThreadState::Executing,
            1 => ThreadState::Sending,
            2 => ThreadState::Spinning,
            3 => ThreadState::Sleeping,
            _ => ThreadState::BufferFull,
        };
        (state, Time(word & !7))
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

/// The operating system's counts for a thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OsUsage {
    pub user_ns: u64,
    pub system_ns: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

/// Reads the operating system's counts once per completed slot, so at most every 50 ms.
#[derive(Debug)]
struct OsMeter {
    /// Reads the counts of the calling thread.
    ask: fn() -> OsUsage,
    seen: OsUsage,
    /// Time not yet attributed to a slot.
    user_left_ns: u64,
    system_left_ns: u64,
}

impl OsMeter {
    /// Reads the counts. Adds switches to `slot` and keeps the time for [`OsMeter::fill`].
    fn sample(&mut self, slot: &mut Usage) {
        let now = (self.ask)();
        let seen = std::mem::replace(&mut self.seen, now);
        self.user_left_ns += now.user_ns.saturating_sub(seen.user_ns);
        self.system_left_ns += now.system_ns.saturating_sub(seen.system_ns);
        slot.voluntary_switches += now.voluntary_switches.saturating_sub(seen.voluntary_switches);
        slot.involuntary_switches += now.involuntary_switches.saturating_sub(seen.involuntary_switches);
    }

    /// Attributes CPU time to a completed slot, at most the slot's length. If several slots are completed
    /// together, the first ones get the time: a thread that slept through them ran in the first, and one that
    /// ran all the time fills each.
    fn fill(&mut self, slot: &mut Usage) {
        slot.os_user_ns = self.user_left_ns.min(SLOT_NS);
        slot.os_system_ns = self.system_left_ns.min(SLOT_NS - slot.os_user_ns);
        self.user_left_ns -= slot.os_user_ns;
        self.system_left_ns -= slot.os_system_ns;
    }
}

/// Measures one thread and publishes its figures.
#[derive(Debug)]
pub(crate) struct LoadMeter {
    board: std::sync::Arc<LoadBoard>,
    thread: usize,
    state: ThreadState,
    since: Time,
    slot_end: Time,
    /// The incomplete slot of each window.
    current: [Usage; 3],
    completed: [u64; 3],
    total: Usage,
    /// `None` in a simulated world.
    os: Option<OsMeter>,
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
            os: None,
        }
    }

    /// Reads the operating system's counts with `ask` from now on. Must be called on the thread that is
    /// measured.
    pub(crate) fn watch_os(&mut self, ask: fn() -> OsUsage) {
        self.os = Some(OsMeter { ask, seen: ask(), user_left_ns: 0, system_left_ns: 0 });
    }

    /// Called when the thread changes to `state` at `now`.
    #[inline]
    pub(crate) fn enter(&mut self, state: ThreadState, now: Time) {
        if now >= self.slot_end {
            self.complete_slots(now);
        }
        *self.current[0].state_ns(self.state) += now.since(self.since).0;
        self.since = self.since.max(now);
        if state != self.state {
            self.state = state;
            self.board.threads[self.thread].state.store(now.0 & !7 | state as u64, Ordering::Relaxed);
        }
    }

    /// Counts that input was taken from a socket. Only this thread writes the word.
    #[inline]
    pub(crate) fn count_input(&mut self) {
        let inputs = &self.board.threads[self.thread].inputs;
        inputs.store(inputs.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Number of times that the threads of the node have taken input from a socket.
    pub(crate) fn inputs_of_all(&self) -> u64 {
        self.board.inputs()
    }

    /// Publishes the thread's spin time.
    pub(crate) fn set_spin(&mut self, spin: Duration) {
        self.board.threads[self.thread].spin_ns.store(spin.0, Ordering::Relaxed);
    }

    /// Counts a turn with this many signals, `hand_overs` of them from other threads.
    #[inline]
    pub(crate) fn count_turn(&mut self, signals: u64, hand_overs: u64, queue_length: usize) {
        self.current[0].signals += signals;
        self.current[0].hand_overs += hand_overs;
        self.current[0].turns += u64::from(signals > 0);
        self.board.threads[self.thread].queue_length.store(queue_length as u64, Ordering::Relaxed);
    }

    /// Counts a turn that another thread ran for this one, with `hand_overs` signals from this thread's
    /// rings.
    pub(crate) fn count_delegated_turn(&mut self, hand_overs: u64) {
        self.current[0].hand_overs += hand_overs;
        self.current[0].delegated_turns += u64::from(hand_overs > 0);
    }

    /// Counts signals that this thread handled in delegated turns for others.
    pub(crate) fn count_signals(&mut self, signals: u64) {
        self.current[0].signals += signals;
    }

    #[cold]
    fn complete_slots(&mut self, now: Time) {
        if let Some(os) = &mut self.os {
            os.sample(&mut self.current[0]);
        }
        while now >= self.slot_end {
            if let Some(os) = &mut self.os {
                os.fill(&mut self.current[0]);
            }
            self.complete_slot();
        }
    }

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
    fn cpu_time_of_the_operating_system_is_counted_in_its_slots() {
        const SLOT: u64 = SLOT_NS;
        fn usage(user_ns: u64, system_ns: u64, switches: u64) -> OsUsage {
            OsUsage { user_ns, system_ns, voluntary_switches: switches, involuntary_switches: 2 * switches }
        }
        let board = Arc::new(LoadBoard::new(1));
        let mut meter = LoadMeter::new(board.clone(), 0, Time(0));
        let user_ns = || board.history(0, Window::Moment).unwrap().map(|slot| slot.os_user_ns);
        meter.watch_os(|| usage(1_000, 500, 7));
        // The thread ran for 10 ms and slept through the rest of three slots.
        meter.enter(ThreadState::Sleeping, Time(10 * MILLISECOND));
        meter.os.as_mut().unwrap().ask = || usage(1_000 + 8 * MILLISECOND, 500 + 2 * MILLISECOND, 8);
        meter.enter(ThreadState::Executing, Time(3 * SLOT));
        let history = board.history(0, Window::Moment).unwrap();
        assert_eq!((history[2].os_user_ns, history[2].os_system_ns), (8 * MILLISECOND, 2 * MILLISECOND));
        assert_eq!((history[2].voluntary_switches, history[2].involuntary_switches), (1, 2));
        assert_eq!(user_ns()[..2], [0, 0]);
        // The thread ran for two slots without a time stamp in between.
        meter.os.as_mut().unwrap().ask = || usage(1_000 + 98 * MILLISECOND, 500 + 12 * MILLISECOND, 8);
        meter.enter(ThreadState::Executing, Time(5 * SLOT));
        assert_eq!(user_ns()[..2], [40 * MILLISECOND, 50 * MILLISECOND]);
        let total = board.thread(0).unwrap().total;
        assert_eq!((total.os_user_ns, total.os_system_ns), (98 * MILLISECOND, 12 * MILLISECOND));
        assert_eq!((total.voluntary_switches, total.elapsed_ns()), (1, 5 * SLOT));
    }

    #[test]
    fn waiting_for_space_is_distinguished_from_sleeping() {
        let board = Arc::new(LoadBoard::new(1));
        let mut meter = LoadMeter::new(board.clone(), 0, Time(0));
        meter.enter(ThreadState::BufferFull, Time(8_000));
        let load = board.thread(0).unwrap();
        assert_eq!((load.state, load.state_since), (ThreadState::BufferFull, Time(8_000)));
        meter.enter(ThreadState::Sleeping, Time(SLOT_NS / 2));
        meter.enter(ThreadState::Executing, Time(SLOT_NS));
        let total = board.thread(0).unwrap().total;
        assert_eq!([total.buffer_full_ns, total.sleeping_ns], [SLOT_NS / 2 - 8_000, SLOT_NS / 2]);
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
