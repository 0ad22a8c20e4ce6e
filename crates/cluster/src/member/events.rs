//! The last events of a node's membership, for `junctor_info.events`. Each node keeps its own.

use std::collections::VecDeque;

use junctor_kernel::{NodeId, Time};
use junctor_model::value::Value;

/// Number of events that a node keeps. An event of 100 bytes makes 50 KiB.
const EVENTS_MAX: usize = 512;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// All connections to a life of a node are open.
    Linked,
    /// A life of a node is gone, for this node.
    Lost,
    /// A connection was refused.
    Refused,
    /// A node leads the voters.
    Leader,
    /// The voter of a node was replaced.
    Voter,
    /// The leader evicts nodes, or a node learns that it was evicted.
    Evicted,
    /// The leader changes the membership in another way.
    Admitted,
    /// A membership was installed.
    Epoch,
    /// This node copies rows.
    Copy,
    /// A node stops by request.
    Stopping,
}

impl EventKind {
    fn name(self) -> &'static str {
        match self {
            EventKind::Linked => "LINKED",
            EventKind::Lost => "LOST",
            EventKind::Refused => "REFUSED",
            EventKind::Leader => "LEADER",
            EventKind::Voter => "VOTER",
            EventKind::Evicted => "EVICTED",
            EventKind::Admitted => "ADMITTED",
            EventKind::Epoch => "EPOCH",
            EventKind::Copy => "COPY",
            EventKind::Stopping => "STOPPING",
        }
    }
}

#[derive(Debug)]
struct Event {
    at: Time,
    kind: EventKind,
    text: Box<str>,
}

/// The last events. The oldest one gives way.
#[derive(Debug, Default)]
pub(super) struct Events {
    kept: VecDeque<Event>,
    /// Number of events that were ever noted.
    count: u64,
}

impl Events {
    pub fn note(&mut self, at: Time, kind: EventKind, text: &str) {
        if self.kept.len() == EVENTS_MAX {
            self.kept.pop_front();
        }
        self.count += 1;
        self.kept.push_back(Event { at, kind, text: text.into() });
    }

    /// The rows of the status table: node, number of the event, microseconds since 1970, kind, text.
    pub fn rows(&self, own: NodeId, now: Time, wall_clock_us: u64) -> Vec<Vec<Value>> {
        let first = self.count - self.kept.len() as u64;
        let row = |(position, event): (u64, &Event)| {
            let at_us = wall_clock_us.saturating_sub(now.since(event.at).as_micros());
            let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
            let number = Value::UInt(first + position + 1);
            vec![Value::UInt(own.0.into()), number, Value::UInt(at_us), text(event.kind.name()), text(&event.text)]
        };
        (0..).zip(&self.kept).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_events_are_kept_with_their_times() {
        let mut events = Events::default();
        for number in 0..EVENTS_MAX as u64 + 3 {
            events.note(Time(number * 1_000_000), EventKind::Epoch, &number.to_string());
        }
        let now = Time((EVENTS_MAX as u64 + 2) * 1_000_000);
        let rows = events.rows(NodeId(4), now, 9_000_000_000);
        assert_eq!(rows.len(), EVENTS_MAX);
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let first_us = 9_000_000_000 - (EVENTS_MAX as u64 - 1) * 1000;
        assert_eq!(rows[0], [Value::UInt(4), Value::UInt(4), Value::UInt(first_us), text("EPOCH"), text("3")]);
        assert_eq!(rows[EVENTS_MAX - 1][2], Value::UInt(9_000_000_000));
    }
}
