//! When the silence of a node becomes suspicion.

use crate::context::{Duration, Time};

/// Time between two heartbeats of a channel that sends nothing else.
pub const HEARTBEAT_EVERY: Duration = Duration::from_millis(10);

/// A node that is silent for this long is suspected.
pub const SUSPECT_AFTER: Duration = Duration::from_millis(20);

/// A node that looks at its clock this much later than it wanted has stalled itself. It cannot tell whether
/// others were silent, so it begins to listen anew.
pub const OWN_STALL: Duration = Duration::from_millis(5);

/// A node that is silent for this long is probed: the system of a node that lives answers connections, even
/// while the process gets no processor or is stopped.
pub const PROBE_AFTER: Duration = Duration::from_millis(15);

/// Shortest time without an answer after which a probed node counts as unreachable.
pub const PROBE_WAIT_MIN: Duration = Duration::from_millis(10);

/// Longest time without an answer until a probed node counts as unreachable: one slow answer, whose packets
/// were lost, must not blind this node for ever.
const PROBE_WAIT_MAX: Duration = Duration::from_millis(100);

/// An answer may take this many times as long as the slowest one before.
const PROBE_WAIT_FACTOR: u64 = 4;

/// Time until the next probe of a silent node. Later ones of a node that answers come after half of the
/// silence, because a stopped process does not take its connections.
const PROBE_AGAIN: Duration = Duration::from_millis(20);

/// The first probe, which shows whether probes reach the other node at all, is given up after this time.
const FIRST_PROBE_MAX: Duration = Duration::from_seconds(2);

/// The gaps between frames of another node are remembered for this time at least, and for twice as long at
/// most.
const GAPS_KEPT: Duration = Duration::from_seconds(30);

/// The longest gap that is assumed before any was seen.
const FIRST_GAP: Duration = Duration::from_millis(20);

/// Listens for one other node.
#[derive(Clone, Copy, Debug)]
pub struct Detector {
    listening_since: Time,
    /// The latest time at which the next check is wanted.
    due: Time,
    /// If the node is suspected: when it was last heard before that.
    silent_since: Option<Time>,
    /// The longest gaps between frames, of this period and the one before.
    gaps: [Duration; 2],
    gaps_since: Time,
}

/// A change of opinion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// The node has been silent for [`SUSPECT_AFTER`].
    Suspected,
    /// A suspected node was heard.
    Heard,
}

impl Detector {
    /// Begins to listen.
    pub fn new(now: Time) -> Self {
        Self {
            listening_since: now,
            due: now.plus(HEARTBEAT_EVERY),
            silent_since: None,
            gaps: [FIRST_GAP; 2],
            gaps_since: now,
        }
    }

    /// Takes over the longest gap between frames of the node since the last call.
    pub fn note_gap(&mut self, now: Time, gap: Duration) {
        if now.since(self.gaps_since) >= GAPS_KEPT {
            (self.gaps, self.gaps_since) = ([Duration(0), self.gaps[0]], now);
        }
        self.gaps[0] = self.gaps[0].max(gap);
    }

    /// The longest gap between frames of the node lately. A busy machine or network makes it long.
    pub fn longest_gap(&self) -> Duration {
        self.gaps[0].max(self.gaps[1])
    }

    /// For how long the node is silent while this one listens.
    pub fn silence(&self, now: Time, heard: Time) -> Duration {
        now.since(heard.max(self.listening_since))
    }

    /// To be called by [`Detector::due`]. `heard` is when the node was last heard. Returns the opinion if it
    /// has changed.
    pub fn check(&mut self, now: Time, heard: Time) -> Option<Opinion> {
        if now.since(self.due) >= OWN_STALL {
            self.listening_since = now;
        }
        let due = heard.max(self.listening_since).plus(SUSPECT_AFTER);
        self.due = if now < due { due.min(now.plus(HEARTBEAT_EVERY)) } else { now.plus(HEARTBEAT_EVERY) };
        match self.silent_since {
            // A suspicion ends when the node is heard, not when this node begins to listen anew.
            Some(before) if heard > before => {
                self.silent_since = None;
                Some(Opinion::Heard)
            }
            None if now >= due => {
                self.silent_since = Some(heard);
                Some(Opinion::Suspected)
            }
            _ => None,
        }
    }

    /// When to check at the latest.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Whether the node is suspected.
    pub fn is_suspected(&self) -> bool {
        self.silent_since.is_some()
    }
}

/// Probes one other node while it is silent. The system answers a connection without the process, so a
/// missing answer is the fault of the network or the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe {
    stage: Stage,
    /// The slowest answer. `None` before the first one: a firewall may let no connection through.
    slowest: Option<Duration>,
    /// Whether the last probe had no answer.
    is_unreachable: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// No probe was made yet.
    #[default]
    New,
    /// The node is heard.
    Idle,
    /// A probe is under way. It has to be late twice, because its answer may wait behind this look.
    Asked {
        since: Time,
        is_late: bool,
    },
    /// The system of the node lives.
    Answered {
        at: Time,
    },
    Unanswered {
        at: Time,
    },
    /// No connection could be tried, which says nothing about the node.
    NotMade {
        at: Time,
    },
    /// Probes do not reach the node, although it is heard.
    Useless,
}

/// The next action of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// Connect to the node.
    Begin,
    /// Close the connection.
    End,
    /// Close the connection: the node is unreachable.
    Unreachable,
}

impl Probe {
    /// To be called by [`Probe::due`]. `silence` is for how long the node is silent.
    pub fn check(&mut self, now: Time, silence: Duration) -> Option<ProbeStep> {
        let (next, step) = match self.stage {
            Stage::Useless => return None,
            Stage::NotMade { at } if now.since(at) < PROBE_AGAIN => return None,
            Stage::New | Stage::NotMade { .. } if self.slowest.is_none() => {
                (Stage::Asked { since: now, is_late: false }, ProbeStep::Begin)
            }
            Stage::Asked { since, .. } if self.slowest.is_none() => {
                if now.since(since) < FIRST_PROBE_MAX {
                    return None;
                }
                (Stage::Useless, ProbeStep::End)
            }
            Stage::Asked { .. } if silence < PROBE_AFTER => (Stage::Idle, ProbeStep::End),
            Stage::Asked { since, .. } if now.since(since) < self.wait() => return None,
            Stage::Asked { since, is_late: false } => {
                self.stage = Stage::Asked { since, is_late: true };
                return None;
            }
            Stage::Asked { .. } => {
                self.is_unreachable = true;
                (Stage::Unanswered { at: now }, ProbeStep::Unreachable)
            }
            _ if silence < PROBE_AFTER => {
                self.stage = Stage::Idle;
                return None;
            }
            Stage::Answered { at } if now.since(at) < PROBE_AGAIN.max(Duration(silence.0 / 2)) => return None,
            Stage::Unanswered { at } if now.since(at) < PROBE_AGAIN => return None,
            _ => (Stage::Asked { since: now, is_late: false }, ProbeStep::Begin),
        };
        self.stage = next;
        Some(step)
    }

    /// The system of the node has answered. Returns whether it did not before.
    pub fn on_answer(&mut self, now: Time) -> bool {
        let Stage::Asked { since, .. } = self.stage else { return false };
        self.slowest = self.slowest.max(Some(now.since(since)));
        self.stage = Stage::Answered { at: now };
        std::mem::take(&mut self.is_unreachable)
    }

    /// The probe that is under way could not be made, because this node lacks a descriptor or a port, or it
    /// ended for another reason than the other node.
    pub fn not_made(&mut self, now: Time) {
        if let Stage::Asked { .. } = self.stage {
            self.stage = Stage::NotMade { at: now };
        }
    }

    fn wait(&self) -> Duration {
        let usual = Duration(self.slowest.unwrap_or_default().0.saturating_mul(PROBE_WAIT_FACTOR));
        usual.max(PROBE_WAIT_MIN).min(PROBE_WAIT_MAX)
    }

    /// When to check at the latest. `heard` is when the node was last heard.
    pub fn due(&self, now: Time, heard: Time) -> Time {
        match self.stage {
            Stage::New => now,
            Stage::Idle => heard.plus(PROBE_AFTER).max(now.plus(Duration::from_millis(1))),
            Stage::Asked { since, .. } if self.slowest.is_none() => since.plus(FIRST_PROBE_MAX),
            Stage::Asked { since, .. } => since.plus(self.wait()).max(now.plus(Duration::from_millis(1))),
            Stage::Answered { at } | Stage::Unanswered { at } | Stage::NotMade { at } => {
                at.plus(PROBE_AGAIN).max(now.plus(Duration::from_millis(1)))
            }
            Stage::Useless => Time(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }

    #[test]
    fn silence_is_suspicion_until_the_node_is_heard() {
        let mut detector = Detector::new(ms(0));
        assert_eq!(detector.check(ms(10), ms(9)), None);
        assert_eq!(detector.check(ms(20), ms(9)), None);
        assert_eq!(detector.check(detector.due(), ms(9)), Some(Opinion::Suspected));
        assert_eq!(detector.check(ms(39), ms(9)), None);
        assert_eq!(detector.check(ms(41), ms(40)), Some(Opinion::Heard));
        assert!(!detector.is_suspected());
    }

    #[test]
    fn a_node_that_stalled_itself_listens_anew() {
        let mut detector = Detector::new(ms(0));
        assert_eq!(detector.check(ms(10), ms(10)), None);
        // The check was due at 20.
        assert_eq!(detector.check(ms(60), ms(10)), None);
        assert_eq!(detector.check(ms(70), ms(10)), None);
        assert_eq!(detector.check(ms(80), ms(10)), Some(Opinion::Suspected));
        // A stall does not absolve.
        assert_eq!(detector.check(ms(300), ms(10)), None);
        assert!(detector.is_suspected());
        assert_eq!(detector.check(ms(301), ms(300)), Some(Opinion::Heard));
    }

    /// A probe that was answered once, 1 ms after the beginning.
    fn answered() -> Probe {
        let mut probe = Probe::default();
        assert_eq!(probe.check(ms(0), Duration(0)), Some(ProbeStep::Begin));
        probe.on_answer(ms(1));
        assert_eq!(probe.check(ms(2), Duration(0)), None);
        probe
    }

    const fn silent(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_silent_node_whose_system_does_not_answer_is_unreachable() {
        let mut probe = answered();
        assert_eq!(probe.check(ms(114), silent(14)), None);
        assert_eq!(probe.check(ms(115), silent(15)), Some(ProbeStep::Begin));
        assert_eq!(probe.check(ms(124), silent(24)), None);
        // The answer may have come together with this look.
        assert_eq!(probe.check(ms(125), silent(25)), None);
        assert_eq!(probe.due(ms(125), ms(100)), ms(126));
        assert_eq!(probe.check(ms(126), silent(26)), Some(ProbeStep::Unreachable));
        assert_eq!(probe.check(ms(127), silent(27)), None);
        // The network is repaired, while the process still stands.
        assert_eq!(probe.due(ms(127), ms(100)), ms(146));
        assert_eq!(probe.check(ms(145), silent(45)), None);
        assert_eq!(probe.check(ms(146), silent(46)), Some(ProbeStep::Begin));
        assert_eq!(probe.check(ms(156), silent(56)), None);
        assert_eq!(probe.check(ms(157), silent(57)), Some(ProbeStep::Unreachable));
        assert_eq!(probe.check(ms(177), silent(77)), Some(ProbeStep::Begin));
        assert!(probe.on_answer(ms(178)), "that is news");
        assert_eq!(probe.check(ms(260), silent(160)), Some(ProbeStep::Begin));
        assert!(!probe.on_answer(ms(261)));
        // It is heard again, and silent once more.
        assert_eq!(probe.check(ms(300), silent(1)), None);
        assert_eq!(probe.check(ms(315), silent(16)), Some(ProbeStep::Begin));
    }

    #[test]
    fn a_silent_node_whose_system_answers_is_probed_again() {
        let mut probe = answered();
        assert_eq!(probe.check(ms(115), silent(15)), Some(ProbeStep::Begin));
        probe.on_answer(ms(116));
        assert_eq!(probe.check(ms(135), silent(35)), None);
        assert_eq!(probe.check(ms(136), silent(36)), Some(ProbeStep::Begin));
        assert_eq!(probe.check(ms(137), silent(0)), Some(ProbeStep::End));
    }

    #[test]
    fn answers_may_take_four_times_as_long_as_the_slowest_one() {
        for (slowest, wait) in [(20, 80), (30, 100), (1_500, 100)] {
            let mut probe = Probe::default();
            assert_eq!(probe.check(ms(0), Duration(0)), Some(ProbeStep::Begin));
            probe.on_answer(ms(slowest));
            assert_eq!(probe.check(ms(1_900), Duration(0)), None);
            assert_eq!(probe.check(ms(2_000), silent(20)), Some(ProbeStep::Begin));
            assert_eq!(probe.check(ms(1_999 + wait), silent(19 + wait)), None);
            assert_eq!(probe.check(ms(2_000 + wait), silent(20 + wait)), None);
            assert_eq!(probe.check(ms(2_001 + wait), silent(21 + wait)), Some(ProbeStep::Unreachable));
        }
    }

    #[test]
    fn probes_that_never_reached_a_node_prove_nothing() {
        let mut probe = Probe::default();
        assert_eq!(probe.check(ms(0), Duration(0)), Some(ProbeStep::Begin));
        assert_eq!(probe.check(ms(1000), silent(900)), None);
        assert_eq!(probe.check(ms(2000), silent(1900)), Some(ProbeStep::End));
        assert_eq!(probe.check(ms(3000), silent(2900)), None);
    }

    #[test]
    fn a_probe_that_could_not_be_made_proves_nothing_and_is_repeated() {
        let mut probe = answered();
        assert_eq!(probe.check(ms(115), silent(15)), Some(ProbeStep::Begin));
        probe.not_made(ms(115));
        assert_eq!(probe.due(ms(115), ms(100)), ms(135));
        assert_eq!(probe.check(ms(134), silent(34)), None);
        assert_eq!(probe.check(ms(135), silent(35)), Some(ProbeStep::Begin));
        assert_eq!(probe.check(ms(145), silent(45)), None);
        assert_eq!(probe.check(ms(146), silent(46)), Some(ProbeStep::Unreachable));

        let mut first = Probe::default();
        assert_eq!(first.check(ms(0), Duration(0)), Some(ProbeStep::Begin));
        first.not_made(ms(1));
        assert_eq!(first.check(ms(20), Duration(0)), None);
        assert_eq!(first.check(ms(21), Duration(0)), Some(ProbeStep::Begin));
        first.on_answer(ms(22));
        assert_eq!(first.check(ms(30), silent(15)), None);
        assert_eq!(first.check(ms(42), silent(27)), Some(ProbeStep::Begin));
    }

    #[test]
    fn long_gaps_are_remembered_for_a_while() {
        let mut detector = Detector::new(ms(0));
        assert_eq!(detector.longest_gap(), FIRST_GAP);
        detector.note_gap(ms(10), silent(70));
        detector.note_gap(ms(29_000), silent(12));
        detector.note_gap(ms(31_000), silent(11));
        assert_eq!(detector.longest_gap(), silent(70));
        detector.note_gap(ms(62_000), silent(12));
        assert_eq!(detector.longest_gap(), silent(12));
    }

    #[test]
    fn the_checks_come_in_time_for_a_suspicion() {
        let mut detector = Detector::new(ms(0));
        let mut now = ms(0);
        while !detector.is_suspected() {
            now = detector.due();
            detector.check(now, ms(3));
            assert!(now <= ms(23));
        }
        assert_eq!(now, ms(23));
    }
}
