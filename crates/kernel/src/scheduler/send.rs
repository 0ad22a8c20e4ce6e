//! Which thread writes a thread's output to its sockets. These are controllers that compute with integers
//! from measurements; they read no clock.
//!
//! A thread is in one of four states: light, medium, high or overloaded. The state follows from the thread's
//! *base load*: the share of time in which it executes, not counting its writes. A light thread writes its
//! own output immediately. A medium or high thread leaves output to *helpers*, other threads that write for
//! it, while more work waits, and writes before it sleeps. An overloaded thread leaves all output to helpers.
//! The state of a helper determines how it writes for others: a light one writes immediately, a medium or
//! high one writes one socket's output before it sleeps, and an overloaded one returns the output unwritten.
//!
//! Source: RonDB's adaptive send assistance (states, smoothing, extra helpers, adaptive send delay).

use crate::context::Duration;
use crate::scheduler::load::Window;

/// Base load, in thousandths, from which a thread is medium, high and overloaded.
const LEVELS_PER_MILLE: [u32; 3] = [300, 600, 750];

/// Base load, in thousandths, from which a thread is overloaded even if the send threads are busy.
const OVERLOAD_PER_MILLE: u32 = 850;

/// Load of the send threads, in thousandths, from which a thread below [`OVERLOAD_PER_MILLE`] stays high
/// instead of overloaded. Handing output to saturated send threads would not help.
const SENDERS_BUSY_PER_MILLE: u32 = 750;

/// Sum of warnings that changes a thread's state: for a thread with its own CPU, and for one that shares its
/// CPUs. The measured load is less reliable on a shared CPU.
const THRESHOLDS: [i32; 2] = [20 * WARNING, 200 * WARNING];

/// Weight of one warning. A completed window whose load disagrees with the thread's state adds half a warning
/// if it is 50 ms long, 10 warnings if it is a second long, and 30 if it is twenty seconds long.
const WARNING: i32 = 2;

/// For the first and the second extra helper: the load of the present helpers, in thousandths, from which the
/// extra helper joins, and the load below which it leaves.
const HELPERS_PER_MILLE: [(u32, u32); 2] = [(750, 600), (850, 700)];

/// For the medium and the full delay of output: the CPU time of all threads for sending, in thousandths of
/// one CPU, from which the delay begins, and the CPU time below which it ends.
const DELAY_PER_MILLE: [(u32, u32); 2] = [(1_250, 800), (1_500, 950)];

/// Medium delay in per cent of the full delay.
const DELAY_MEDIUM_PERCENT: u64 = 80;

/// Minimum number of threads of a node that delays output.
const DELAY_THREADS_MIN: usize = 6;

/// A socket with more queued bytes than this is never delayed.
pub const DELAY_BYTES_MAX: usize = 20 << 10;

/// Minimum time between two wake-ups of one sleeping helper by one thread.
pub const WAKE_EVERY: Duration = Duration::from_micros(100);

/// Maximum time that a busy helper keeps output before it writes it.
pub const KEEP_MAX: Duration = Duration::from_micros(200);

/// When threads write for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendAssistance {
    /// Depending on their load.
    #[default]
    Adaptive = 0,
    /// Send threads write everything. Without send threads each thread writes the output of its own sockets.
    Never = 1,
    /// Threads with sockets hand over all output, as if they were overloaded.
    Always = 2,
}

impl SendAssistance {
    /// Every value, in the order of its number.
    pub const ALL: [SendAssistance; 3] = [SendAssistance::Adaptive, SendAssistance::Never, SendAssistance::Always];

    /// Name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            SendAssistance::Adaptive => "adaptive",
            SendAssistance::Never => "never",
            SendAssistance::Always => "always",
        }
    }

    /// The value with this name; case-insensitive.
    pub fn named(name: &str) -> Option<SendAssistance> {
        SendAssistance::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }
}

/// The user's settings for sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendSettings {
    /// When threads write for each other.
    pub assistance: SendAssistance,
    /// MaxSendDelay: maximum time that output waits for more output, in microseconds; 0 disables the delay.
    pub delay_us_max: u32,
}

impl SendSettings {
    /// Maximum of MaxSendDelay, in microseconds.
    pub const DELAY_US_MAX: u32 = 11_000;
}

/// State of a thread by its load without writes. The variants say what the thread does with its own output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SendState {
    /// Writes immediately.
    #[default]
    Light = 0,
    /// Writes before it sleeps.
    Medium = 1,
    /// Like medium.
    High = 2,
    /// Leaves all output to helpers.
    Overload = 3,
}

impl SendState {
    /// Every state, by rising load.
    pub const ALL: [SendState; 4] = [SendState::Light, SendState::Medium, SendState::High, SendState::Overload];

    /// Name in status tables.
    pub const fn name(self) -> &'static str {
        match self {
            SendState::Light => "LIGHT",
            SendState::Medium => "MEDIUM",
            SendState::High => "HIGH",
            SendState::Overload => "OVERLOAD",
        }
    }

    /// The state with this number; overload for any larger number.
    pub const fn from_number(number: u8) -> SendState {
        match number {
            0 => SendState::Light,
            1 => SendState::Medium,
            2 => SendState::High,
            _ => SendState::Overload,
        }
    }

    /// The state for one measurement of the base load, in thousandths. `senders_per_mille` is the load of the
    /// send threads; `None` without send threads.
    fn of_load(base_per_mille: u32, senders_per_mille: Option<u32>) -> SendState {
        let level = LEVELS_PER_MILLE.iter().filter(|limit| base_per_mille >= **limit).count();
        let senders_are_busy = senders_per_mille.is_some_and(|busy| busy >= SENDERS_BUSY_PER_MILLE);
        match SendState::from_number(level as u8) {
            SendState::Overload if base_per_mille < OVERLOAD_PER_MILLE && senders_are_busy => SendState::High,
            state => state,
        }
    }
}

/// The smoothed state of one thread. Windows whose load disagrees with the state add up as warnings. Enough
/// warnings change the state by one step.
#[derive(Clone, Debug)]
pub struct SendController {
    state: SendState,
    warnings: i32,
    threshold: i32,
}

impl SendController {
    /// `is_exclusive` tells whether the thread has a CPU to itself.
    pub fn new(is_exclusive: bool) -> SendController {
        let [exclusive, shared] = THRESHOLDS;
        SendController {
            state: SendState::default(),
            warnings: 0,
            threshold: if is_exclusive { exclusive } else { shared },
        }
    }

    /// The current state.
    #[inline]
    pub fn state(&self) -> SendState {
        self.state
    }

    /// Evaluates a completed window: the thread's base load and the load of the send threads, in thousandths.
    /// The latter is `None` without send threads.
    pub fn observe(&mut self, window: Window, base_per_mille: u32, senders_per_mille: Option<u32>) {
        let weight = match window {
            Window::Moment => WARNING / 2,
            Window::Second => 10 * WARNING,
            Window::TwentySeconds => 30 * WARNING,
        };
        let wanted = SendState::of_load(base_per_mille, senders_per_mille);
        let distance = wanted as i32 - self.state as i32;
        if distance == 0 {
            // A window that agrees with the state cancels earlier warnings.
            self.warnings -= self.warnings.clamp(-weight, weight);
            return;
        }
        self.warnings += distance * weight;
        if self.warnings.abs() >= self.threshold {
            self.state = SendState::from_number((self.state as i32 + self.warnings.signum()) as u8);
            self.warnings = 0;
        }
    }
}

/// Number of helpers in addition to those that may always help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtraHelpers(usize);

impl ExtraHelpers {
    /// Adjusts the number to the present helpers' load over the last 200 ms, in thousandths. Returns the new
    /// number.
    pub fn adjust(&mut self, busy_per_mille: u32) -> usize {
        self.0 = with_hysteresis(self.0, busy_per_mille, &HELPERS_PER_MILLE);
        self.0
    }
}

/// How long output is delayed to be sent together with later output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendDelay(usize);

impl SendDelay {
    /// Adjusts the delay to the CPU time that all threads spent on sending over the last 200 ms, in
    /// thousandths of one CPU. Returns the new delay.
    pub fn adjust(
        &mut self,
        settings: &SendSettings,
        sending_per_mille: u32,
        threads: usize,
        send_threads: usize,
    ) -> Duration {
        self.0 = with_hysteresis(self.0, sending_per_mille, &DELAY_PER_MILLE);
        let may_delay =
            settings.assistance != SendAssistance::Never && send_threads > 0 && threads >= DELAY_THREADS_MIN;
        let longest_ns = u64::from(settings.delay_us_max) * 1_000;
        match self.0 {
            _ if !may_delay => Duration::ZERO,
            0 => Duration::ZERO,
            1 => Duration(longest_ns * DELAY_MEDIUM_PERCENT / 100),
            _ => Duration(longest_ns),
        }
    }
}

/// Steps up when the load reaches the first limit of a step, and down when it falls below the second limit.
fn with_hysteresis(now: usize, per_mille: u32, limits: &[(u32, u32); 2]) -> usize {
    let wanted = limits.iter().filter(|(from, _)| per_mille >= *from).count();
    let kept = limits.iter().take(now).take_while(|(_, until)| per_mille >= *until).count();
    wanted.max(kept)
}

/// Share of the time left by a helper's own work, in thousandths, that it may spend on writing before it is
/// chosen last. Its state does not show this, because the state covers only its own work.
const SATURATED_PER_MILLE: u32 = 850;

/// Step of load, in thousandths, within which helpers of equal state count as equally loaded.
const BUSY_STEP_PER_MILLE: u32 = 250;

/// A thread that may write for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Index of the thread.
    pub thread: u16,
    /// Whether it is a dedicated send thread.
    pub is_sender: bool,
    /// Whether its own blocks seldom have work.
    pub is_mostly_idle: bool,
    /// State by its own work, without writes.
    pub state: SendState,
    /// Load over the last 200 ms, in thousandths.
    pub busy_per_mille: u32,
    /// Time spent on writing over the last 200 ms, in thousandths of the time that its own work left.
    pub writing_per_mille: u32,
}

impl Candidate {
    /// A smaller rank is better; equal ranks are equally good.
    fn rank(&self) -> (bool, SendState, bool, u32) {
        let is_saturated = self.writing_per_mille >= SATURATED_PER_MILLE;
        (is_saturated, self.state, !self.is_mostly_idle, self.busy_per_mille / BUSY_STEP_PER_MILLE)
    }
}

/// A thread that chooses helpers for its output.
#[derive(Clone, Copy, Debug)]
pub struct HelpedThread {
    /// State by its own work.
    pub state: SendState,
    /// Number of helpers in addition to those that the state requires.
    pub extra: usize,
    /// The thread's number among the threads with sockets, from 0.
    pub position_among_peers: usize,
}

/// Chooses a thread's helpers, in the order of their use: the send threads, and `extra` other threads. If the
/// node has no send threads, an overloaded thread gets `1 + extra` other threads as helpers. With
/// [`SendAssistance::Never`], only send threads are helpers.
///
/// The thread is number `position_among_peers` among the threads with sockets. All of these see the same
/// loads and would choose the same helpers. Each therefore starts with a different one among equals.
pub fn choose_helpers(settings: &SendSettings, thread: HelpedThread, candidates: &[Candidate], helpers: &mut Vec<u16>) {
    let HelpedThread { state, extra, position_among_peers } = thread;
    helpers.clear();
    helpers.extend(candidates.iter().filter(|candidate| candidate.is_sender).map(|candidate| candidate.thread));
    let first = position_among_peers % helpers.len().max(1);
    helpers.rotate_left(first);
    let state = match settings.assistance {
        SendAssistance::Adaptive => state,
        SendAssistance::Never => return,
        SendAssistance::Always => SendState::Overload,
    };
    // Without send threads, all possible helpers have other work, so only an overloaded thread uses them.
    if state == SendState::Light || helpers.is_empty() && state != SendState::Overload {
        return helpers.clear();
    }
    let others = if helpers.is_empty() { 1 + extra } else { extra };
    // A thread that is as loaded as this one cannot help.
    let mut able: Vec<&Candidate> =
        candidates.iter().filter(|candidate| !candidate.is_sender && candidate.state < state).collect();
    able.sort_by_key(|candidate| (candidate.rank(), candidate.thread));
    for equals in able.chunk_by_mut(|left, right| left.rank() == right.rank()) {
        equals.rotate_left(position_among_peers % equals.len());
    }
    helpers.extend(able.into_iter().take(others).map(|candidate| candidate.thread));
}

/// The way in which a thread sends the output for its own sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnOutput {
    /// The thread writes it.
    Write,
    /// The thread writes it if it has no other work; otherwise helpers write it.
    WriteBeforeSleep,
    /// Helpers write it.
    HandOver,
}

/// Decides what a thread in this state does with its own output.
pub fn own_output(settings: &SendSettings, state: SendState, has_helpers: bool) -> OwnOutput {
    match state {
        _ if !has_helpers => OwnOutput::Write,
        _ if settings.assistance != SendAssistance::Adaptive => OwnOutput::HandOver,
        SendState::Light => OwnOutput::Write,
        SendState::Medium | SendState::High => OwnOutput::WriteBeforeSleep,
        SendState::Overload => OwnOutput::HandOver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: SendSettings = SendSettings { assistance: SendAssistance::Adaptive, delay_us_max: 0 };
    const OFF: SendSettings = SendSettings { assistance: SendAssistance::Never, delay_us_max: 0 };
    const ALWAYS: SendSettings = SendSettings { assistance: SendAssistance::Always, delay_us_max: 0 };

    /// Observes `seconds` seconds of constant load: for each, twenty windows of 50 ms and one of a second.
    fn play(controller: &mut SendController, base_per_mille: u32, senders: Option<u32>, seconds: u32) {
        for _ in 0..seconds {
            (0..20).for_each(|_| controller.observe(Window::Moment, base_per_mille, senders));
            controller.observe(Window::Second, base_per_mille, senders);
        }
    }

    fn after(base_per_mille: u32, senders: Option<u32>, seconds: u32) -> SendState {
        let mut controller = SendController::new(true);
        play(&mut controller, base_per_mille, senders, seconds);
        controller.state()
    }

    #[test]
    fn each_load_leads_to_its_send_state() {
        let states =
            [(0, SendState::Light), (299, SendState::Light), (300, SendState::Medium), (599, SendState::Medium)];
        let higher = [(600, SendState::High), (749, SendState::High), (850, SendState::Overload)];
        for (load, state) in states.into_iter().chain(higher) {
            assert_eq!(after(load, None, 10), state, "{load}");
            assert_eq!(after(load, Some(990), 10), state, "{load}");
        }
    }

    #[test]
    fn a_nearly_overloaded_thread_writes_itself_only_when_send_threads_are_busy() {
        assert_eq!(after(800, None, 10), SendState::Overload);
        assert_eq!(after(800, Some(749), 10), SendState::Overload);
        assert_eq!(after(800, Some(750), 10), SendState::High);
        assert_eq!(after(850, Some(990), 10), SendState::Overload);
    }

    #[test]
    fn the_state_changes_after_a_second_of_load_but_not_after_a_few_windows() {
        let mut controller = SendController::new(true);
        (0..6).for_each(|_| controller.observe(Window::Moment, 500, None));
        assert_eq!(controller.state(), SendState::Light);
        play(&mut controller, 0, None, 1);
        assert_eq!(controller.warnings, 0, "quiet takes the warnings back");
        play(&mut controller, 500, None, 1);
        assert_eq!(controller.state(), SendState::Medium);
    }

    #[test]
    fn a_load_that_fluctuates_around_a_limit_keeps_the_state() {
        let mut controller = SendController::new(true);
        for turn in 0..400 {
            controller.observe(Window::Moment, if turn % 2 == 0 { 280 } else { 320 }, None);
            if turn % 20 == 19 {
                controller.observe(Window::Second, 299, None);
            }
            assert_eq!(controller.state(), SendState::Light, "{turn}");
        }
    }

    #[test]
    fn a_thread_that_shares_cpus_changes_state_ten_times_as_slowly() {
        let (mut exclusive, mut shared) = (SendController::new(true), SendController::new(false));
        let seconds = |controller: &mut SendController| {
            (1..).find(|_| {
                play(controller, 1_000, None, 1);
                controller.state() == SendState::Overload
            })
        };
        let (soon, late) = (seconds(&mut exclusive).unwrap(), seconds(&mut shared).unwrap());
        assert!(soon <= 2 && (10..=20).contains(&late), "{soon} {late}");
    }

    #[test]
    fn the_state_falls_as_slowly_as_it_rises() {
        let mut controller = SendController::new(true);
        play(&mut controller, 1_000, None, 5);
        assert_eq!(controller.state(), SendState::Overload);
        play(&mut controller, 0, None, 5);
        assert_eq!(controller.state(), SendState::Light);
    }

    #[test]
    fn helpers_are_requested_and_released_with_hysteresis() {
        let mut helpers = ExtraHelpers::default();
        let trace = [(740, 0), (750, 1), (610, 1), (599, 0), (860, 2), (700, 2), (699, 1), (850, 2), (500, 0)];
        for (busy, wanted) in trace {
            assert_eq!(helpers.adjust(busy), wanted, "{busy}");
        }
    }

    #[test]
    fn output_is_delayed_only_if_a_large_node_with_send_threads_sends_much() {
        let settings = SendSettings { delay_us_max: 200, ..ON };
        let mut delay = SendDelay::default();
        let trace = [(1_200, 0), (1_250, 160), (900, 160), (1_600, 200), (960, 200), (940, 160), (790, 0)];
        for (sending, wanted_us) in trace {
            assert_eq!(delay.adjust(&settings, sending, 6, 1).as_micros(), wanted_us, "{sending}");
        }
        for (settings, threads, senders) in [(settings, 5, 1), (settings, 6, 0), (ON, 6, 1)] {
            assert_eq!(SendDelay::default().adjust(&settings, 2_000, threads, senders), Duration::ZERO);
        }
    }

    fn candidate(thread: u16, state: SendState, busy_per_mille: u32) -> Candidate {
        Candidate { thread, is_sender: false, is_mostly_idle: false, state, busy_per_mille, writing_per_mille: 0 }
    }

    fn chosen(settings: &SendSettings, state: SendState, candidates: &[Candidate], extra: usize) -> Vec<u16> {
        chosen_by(0, settings, state, candidates, extra)
    }

    fn chosen_by(
        position_among_peers: usize,
        settings: &SendSettings,
        state: SendState,
        candidates: &[Candidate],
        extra: usize,
    ) -> Vec<u16> {
        let mut helpers = vec![99];
        choose_helpers(settings, HelpedThread { state, extra, position_among_peers }, candidates, &mut helpers);
        helpers
    }

    #[test]
    fn threads_that_see_the_same_loads_start_with_different_helpers() {
        let idle = [2, 3, 4].map(|thread| candidate(thread, SendState::Light, 10 * u32::from(thread)));
        let first = |position_among_peers| chosen_by(position_among_peers, &ON, SendState::Overload, &idle, 0)[0];
        assert_eq!([0, 1, 2, 3].map(first), [2, 3, 4, 2]);
        assert_eq!(chosen_by(1, &ON, SendState::Overload, &idle, 2), [3, 4, 2]);
        // This applies among equals only. A busier candidate, or one in a higher state, comes after the
        // others for every thread.
        let busy = [candidate(1, SendState::Light, 600), candidate(5, SendState::Medium, 0)];
        let all: Vec<Candidate> = busy.into_iter().chain(idle).collect();
        for position_among_peers in 0..5 {
            let order = chosen_by(position_among_peers, &ON, SendState::Overload, &all, 9);
            assert_eq!(order[3..], [1, 5], "{position_among_peers}");
        }
        let senders = [6, 7].map(|thread| Candidate { is_sender: true, ..candidate(thread, SendState::Light, 0) });
        assert_eq!(
            [0, 1, 2]
                .map(|position_among_peers| chosen_by(position_among_peers, &OFF, SendState::Light, &senders, 0)[0]),
            [6, 7, 6]
        );
    }

    #[test]
    fn a_helper_that_writes_all_the_time_is_chosen_last() {
        let main = Candidate {
            is_mostly_idle: true,
            writing_per_mille: SATURATED_PER_MILLE - 1,
            ..candidate(0, SendState::Light, 860)
        };
        let others = [candidate(2, SendState::Light, 200), candidate(3, SendState::High, 700)];
        let order =
            |main: Candidate, extra| chosen(&ON, SendState::Overload, &[&[main], others.as_slice()].concat(), extra);
        assert_eq!(order(main, 2), [0, 2, 3]);
        let saturated = Candidate { writing_per_mille: SATURATED_PER_MILLE, ..main };
        assert_eq!((order(saturated, 2), order(saturated, 0)), (vec![2, 3, 0], vec![2]));
        assert_eq!(chosen(&ON, SendState::Overload, &[saturated], 0), [0], "there is nobody else");
    }

    #[test]
    fn send_threads_are_chosen_first_then_the_idlest_other_threads() {
        let sender = Candidate { is_sender: true, ..candidate(7, SendState::Overload, 900) };
        let main = Candidate { is_mostly_idle: true, ..candidate(0, SendState::Light, 10) };
        let candidates = [main, candidate(2, SendState::Light, 5), candidate(3, SendState::High, 700), sender];
        assert_eq!(chosen(&ON, SendState::Medium, &candidates, 0), [7]);
        assert_eq!(chosen(&ON, SendState::Medium, &candidates, 2), [7, 0, 2]);
        assert_eq!(chosen(&ON, SendState::Light, &candidates, 2), [0_u16; 0], "it writes itself");
        let others = &candidates[..3];
        assert_eq!(chosen(&ON, SendState::Overload, others, 0), [0]);
        assert_eq!(chosen(&ON, SendState::Overload, others, 2), [0, 2, 3]);
        assert_eq!(chosen(&ON, SendState::High, others, 2), [0_u16; 0], "without send threads it writes itself");
        let with_sender = [candidate(3, SendState::High, 700), sender];
        assert_eq!(chosen(&ON, SendState::High, &with_sender, 2), [7], "3 is as loaded itself");
    }

    #[test]
    fn without_assistance_only_send_threads_write_for_others() {
        let sender = Candidate { is_sender: true, ..candidate(7, SendState::Light, 0) };
        let candidates = [candidate(0, SendState::Light, 0), sender];
        for state in SendState::ALL {
            assert_eq!(chosen(&OFF, state, &candidates, 2), [7]);
            assert_eq!(chosen(&OFF, state, &candidates[..1], 2), [0_u16; 0]);
            assert_eq!(chosen(&ALWAYS, state, &candidates, 0), [7]);
            assert_eq!(chosen(&ALWAYS, state, &candidates[..1], 0), [0]);
            assert_eq!(own_output(&OFF, state, true), OwnOutput::HandOver);
            assert_eq!(own_output(&ALWAYS, state, true), OwnOutput::HandOver);
            assert_eq!(own_output(&OFF, state, false), OwnOutput::Write);
        }
    }

    #[test]
    fn a_lightly_loaded_thread_writes_its_output_and_an_overloaded_one_only_without_helpers() {
        let wanted = [OwnOutput::Write, OwnOutput::WriteBeforeSleep, OwnOutput::WriteBeforeSleep, OwnOutput::HandOver];
        for (state, wanted) in SendState::ALL.into_iter().zip(wanted) {
            assert_eq!(own_output(&ON, state, true), wanted);
            assert_eq!(own_output(&ON, state, false), OwnOutput::Write);
            assert_eq!(SendState::from_number(state as u8), state);
        }
    }

    #[test]
    fn names_equal_those_of_the_settings() {
        for assistance in SendAssistance::ALL {
            assert_eq!(SendAssistance::named(&assistance.name().to_ascii_uppercase()), Some(assistance));
        }
        assert_eq!(SendAssistance::named("often"), None);
    }
}
