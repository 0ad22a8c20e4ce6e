//! When the silence of a node becomes suspicion.

use crate::context::{Duration, Time};

/// Time between two heartbeats of a channel that sends nothing else.
pub const HEARTBEAT_EVERY: Duration = Duration::from_millis(10);

/// A node that is silent for this long is suspected.
pub const SUSPECT_AFTER: Duration = Duration::from_millis(20);

/// A node that looks at its clock this much later than it wanted has stalled itself. It cannot tell whether
/// others were silent, so it begins to listen anew.
pub const OWN_STALL: Duration = Duration::from_millis(5);

/// Listens for one other node.
#[derive(Clone, Copy, Debug)]
pub struct Detector {
    listening_since: Time,
    /// The latest time at which the next check is wanted.
    due: Time,
    /// If the node is suspected: when it was last heard before that.
    silent_since: Option<Time>,
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
        Self { listening_since: now, due: now.plus(HEARTBEAT_EVERY), silent_since: None }
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
