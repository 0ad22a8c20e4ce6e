//! Feeds the send controllers of one thread with measurements, and keeps their decisions: which thread writes
//! its output, and how long output is delayed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::{Duration, Time};
use crate::directory::{Directory, ThreadLayout};
use crate::module::ModuleId;
use crate::scheduler::load::{HISTORY_SLOTS, LoadBoard, ThreadState, Usage, Window};
use crate::scheduler::send::{
    Candidate, ExtraHelpers, HelpedThread, OwnOutput, SendAssistance, SendController, SendDelay, SendSettings,
    SendState, WAKE_EVERY, choose_helpers, own_output,
};
use crate::scheduler::send_board::SendStatus;

use super::foreign_output::ForeignOutput;
use super::socket::OutputCounts;

/// Time between two decisions.
const ADJUST_EVERY: Duration = Duration::from_millis(50);

/// Number of 50 ms slots over which the load of other threads is averaged.
const LOAD_SLOTS: usize = 4;

/// The send settings of all threads, packed into one atomic word. Every block that serves clients may write
/// the word, an exception to the rule that a shared word has one writer. This is safe because the last store
/// wins, a reader never sees parts of two settings, and the word publishes no other data, so relaxed order
/// suffices.
#[derive(Debug)]
pub(super) struct AtomicSendSettings(AtomicU64);

impl AtomicSendSettings {
    pub(super) fn new(settings: &SendSettings) -> AtomicSendSettings {
        let word = AtomicSendSettings(AtomicU64::new(0));
        word.store(settings);
        word
    }

    pub(super) fn store(&self, settings: &SendSettings) {
        let word = settings.assistance as u64 | u64::from(settings.delay_us_max) << 32;
        self.0.store(word, Ordering::Relaxed);
    }

    fn load(&self) -> SendSettings {
        let word = self.0.load(Ordering::Relaxed);
        let assistance = SendAssistance::ALL.get(usize::from(word as u8)).copied().unwrap_or_default();
        SendSettings { assistance, delay_us_max: (word >> 32) as u32 }
    }
}

/// A thread that writes for this one.
struct Helper {
    thread: u16,
    /// Whether it is a dedicated send thread, which may always be woken.
    is_sender: bool,
    /// When this thread last woke the helper with output.
    woken: Time,
}

/// The send state of one thread.
pub(super) struct Sending {
    thread: u16,
    /// Position among the threads with sockets.
    position_among_peers: usize,
    loads: Arc<LoadBoard>,
    /// Threads that may write for this one: index, whether it is a send thread, whether it is mostly idle.
    candidates: Vec<(u16, bool, bool)>,
    is_sender: bool,
    may_help: bool,
    /// Whether the thread writes only the output of its own sockets.
    nosend: bool,
    settings: SendSettings,
    controller: SendController,
    extra: ExtraHelpers,
    send_delay: SendDelay,
    /// Number of completed slots of each length that the controller has evaluated.
    seen: [u64; 3],
    /// Time of the next decision.
    due: Time,
    helpers: Vec<Helper>,
    own_output: OwnOutput,
    delay: Duration,
}

impl Sending {
    pub(super) fn new(directory: &Directory, thread: u16, loads: Arc<LoadBoard>) -> Sending {
        let layouts = directory.threads();
        let own = &layouts[usize::from(thread)];
        let is_exclusive = matches!(own.cpus.as_slice(), [cpu] if layouts.iter().filter(|other| other.cpus.contains(cpu)).count() == 1);
        let has_sockets = carries(own, ModuleId::SOCKETS);
        let others = (0..).zip(layouts).filter(|(other, layout)| *other != thread && may_help(layout));
        let candidates = match has_sockets {
            true => {
                others.map(|(other, layout)| (other, carries(layout, ModuleId::SEND), layout.is_mostly_idle)).collect()
            }
            false => Vec::new(),
        };
        Sending {
            thread,
            position_among_peers: layouts
                .iter()
                .take(usize::from(thread))
                .filter(|layout| carries(layout, ModuleId::SOCKETS))
                .count(),
            loads,
            candidates,
            is_sender: carries(own, ModuleId::SEND),
            may_help: may_help(own),
            nosend: own.nosend,
            settings: SendSettings::default(),
            controller: SendController::new(is_exclusive),
            extra: ExtraHelpers::default(),
            send_delay: SendDelay::default(),
            seen: [0; 3],
            due: Time(0),
            helpers: Vec::new(),
            own_output: OwnOutput::Write,
            delay: Duration::ZERO,
        }
    }

    /// When to call [`Sending::adjust`] next.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// The way in which the thread sends its own output at present.
    #[inline]
    pub(super) fn own_output(&self) -> OwnOutput {
        self.own_output
    }

    /// How long output is delayed to be sent together with later output.
    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    /// The state that determines how this thread writes for others. A send thread always counts as light.
    pub(super) fn helping_state(&self) -> SendState {
        if self.is_sender { SendState::Light } else { self.controller.state() }
    }

    /// The helper that writes the output of the socket in slot `index`; `None` if this thread must write it.
    /// A socket keeps its helper as long as the list of helpers is the same, so that its cache lines stay
    /// with one CPU. A sleeping helper with other duties is woken at most once in [`WAKE_EVERY`].
    pub(super) fn helper_for(&mut self, index: u32, now: Time) -> Option<u16> {
        let senders = self.helpers.iter().take_while(|helper| helper.is_sender).count();
        let first = index as usize % self.helpers.len().max(1);
        let always = index as usize % senders.max(1);
        for position in [first, always] {
            let helper = self.helpers.get_mut(position)?;
            let sleeps = self.loads.state(helper.thread) == ThreadState::Sleeping;
            if !sleeps || helper.is_sender {
                return Some(helper.thread);
            }
            if helper.woken == now || now.since(helper.woken).0 >= WAKE_EVERY.0 {
                helper.woken = now;
                return Some(helper.thread);
            }
        }
        None
    }

    /// Whether this thread also writes the output of delegated turns, which it runs for sleeping threads.
    pub(super) fn may_write_in_delegated_turns(&self) -> bool {
        !self.nosend && self.controller.state() != SendState::Overload
    }

    /// Makes all decisions from the load board's figures at `now`, and publishes them.
    pub(super) fn adjust(
        &mut self,
        now: Time,
        word: &AtomicSendSettings,
        counts: &OutputCounts,
        foreign_output: &ForeignOutput,
    ) {
        self.due = now.plus(ADJUST_EVERY);
        self.settings = word.load();
        let senders = self.candidates.iter().filter(|(_, is_sender, _)| *is_sender);
        let sender_count = senders.clone().count();
        let senders_busy = senders.map(|(thread, ..)| busy_per_mille(&self.loads, *thread, now)).max();
        self.observe(senders_busy);
        let state = self.controller.state();
        // Threads without sockets have no candidates.
        if !self.candidates.is_empty() {
            self.choose(state, now);
            let threads = self.loads.len();
            let sending: u32 = (0..threads as u16).map(|thread| sending_per_mille(&self.loads, thread, now)).sum();
            self.delay = self.send_delay.adjust(&self.settings, sending, threads, sender_count);
            self.own_output = own_output(&self.settings, state, !self.helpers.is_empty());
        }
        self.loads.sending().publish(
            self.thread,
            &SendStatus {
                state,
                may_help: self.may_help,
                helpers: self.helpers.len() as u16,
                delay: self.delay,
                own_writes: counts.writes,
                own_bytes: counts.bytes,
                handed_over: counts.handed_over,
                delayed: counts.delayed,
                other_writes: foreign_output.writes,
                other_bytes: foreign_output.bytes,
                refused: foreign_output.refused,
            },
        );
    }

    /// Feeds the controller with the slots completed since the last call.
    fn observe(&mut self, senders_busy: Option<u32>) {
        for window in [Window::Moment, Window::Second, Window::TwentySeconds] {
            let completed = self.loads.completed(self.thread, window);
            let unseen = completed - std::mem::replace(&mut self.seen[window as usize], completed);
            if unseen == 0 {
                continue;
            }
            let history = self.loads.history(self.thread, window).unwrap_or_default();
            for slot in history.iter().take(unseen.min(HISTORY_SLOTS as u64) as usize).rev() {
                self.controller.observe(window, executing_per_mille(slot), senders_busy);
            }
        }
    }

    fn choose(&mut self, state: SendState, now: Time) {
        let loads = &self.loads;
        let candidates: Vec<Candidate> = self
            .candidates
            .iter()
            .map(|&(thread, is_sender, is_mostly_idle)| Candidate {
                thread,
                is_sender,
                is_mostly_idle,
                state: if is_asleep(loads, thread, now) { SendState::Light } else { loads.sending().state(thread) },
                busy_per_mille: busy_per_mille(loads, thread, now),
                writing_per_mille: writing_per_mille(&recent_usage(loads, thread, now)),
            })
            .collect();
        // Without send threads, use the time that the present helpers spend on writing.
        let helps = |candidate: &&Candidate| self.helpers.iter().any(|helper| helper.thread == candidate.thread);
        let senders = candidates.iter().filter(|candidate| candidate.is_sender);
        let busiest = match senders.map(|sender| sender.busy_per_mille).max() {
            Some(busy) => busy,
            None => candidates.iter().filter(helps).map(|helper| helper.writing_per_mille).max().unwrap_or(0),
        };
        let extra = self.extra.adjust(busiest);
        let mut chosen = Vec::new();
        let own = HelpedThread { state, extra, position_among_peers: self.position_among_peers };
        choose_helpers(&self.settings, own, &candidates, &mut chosen);
        let is_sender = |thread| candidates.iter().any(|candidate| candidate.thread == thread && candidate.is_sender);
        self.helpers =
            chosen.into_iter().map(|thread| Helper { thread, is_sender: is_sender(thread), woken: Time(0) }).collect();
    }
}

fn carries(layout: &ThreadLayout, module: ModuleId) -> bool {
    layout.modules.iter().any(|(other, _)| *other == module)
}

/// Whether a thread may write for others. Threads with sockets have enough to write themselves, threads for
/// files leave their CPUs to the file workers, and `nosend` excludes others.
fn may_help(layout: &ThreadLayout) -> bool {
    !layout.nosend
        && !carries(layout, ModuleId::SOCKETS)
        && !carries(layout, ModuleId::FILES)
        && !layout.modules.is_empty()
}

/// Whether a thread has slept for so long that its published figures are outdated.
fn is_asleep(loads: &LoadBoard, thread: u16, now: Time) -> bool {
    let (state, since) = loads.state_since(thread);
    state == ThreadState::Sleeping && now.since(since).0 > LOAD_SLOTS as u64 * ADJUST_EVERY.0
}

/// Load in the last complete 50 ms, in thousandths; 0 if the figures are outdated because the thread sleeps.
pub(super) fn recent_busy_per_mille(loads: &LoadBoard, thread: u16, now: Time) -> u32 {
    if is_asleep(loads, thread, now) { 0 } else { loads.thread(thread).map_or(0, |load| load.moment.busy_per_mille()) }
}

/// Published activity of the last 200 ms; all figures are 0 if they are outdated because the thread sleeps.
fn recent_usage(loads: &LoadBoard, thread: u16, now: Time) -> Usage {
    let mut usage = Usage::default();
    if is_asleep(loads, thread, now) {
        return usage;
    }
    let history = loads.history(thread, Window::Moment).unwrap_or_default();
    history.iter().take(LOAD_SLOTS).for_each(|slot| usage.add(slot));
    usage
}

fn busy_per_mille(loads: &LoadBoard, thread: u16, now: Time) -> u32 {
    recent_usage(loads, thread, now).busy_per_mille()
}

fn sending_per_mille(loads: &LoadBoard, thread: u16, now: Time) -> u32 {
    let usage = recent_usage(loads, thread, now);
    per_mille(usage.sending_ns, &usage)
}

/// Time spent on writing, in thousandths of the time that the thread's own work left.
fn writing_per_mille(usage: &Usage) -> u32 {
    (usage.sending_ns * 1_000).checked_div(usage.elapsed_ns() - usage.executing_ns).unwrap_or(0) as u32
}

fn executing_per_mille(usage: &Usage) -> u32 {
    per_mille(usage.executing_ns, usage)
}

fn per_mille(part_ns: u64, usage: &Usage) -> u32 {
    (part_ns * 1_000).checked_div(usage.elapsed_ns()).unwrap_or(0) as u32
}
