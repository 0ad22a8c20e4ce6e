//! Hot path: at most 20 instructions per statement.
//!
//! The statements that have ended in the current turn. Their durations are recorded when the turn is over,
//! with the clock value that the thread reads anyway.

use junctor_gateway::threads::Time;

use crate::plan::{DigestNumber, OperationKind};

/// Maximum number of statements that are recorded individually at the end of the turn. Those beyond it count
/// as ended at the start of the turn.
const LATE_MAX: usize = 1024;

/// The counters under which a statement is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StatementCounters {
    pub kind: OperationKind,
    pub digest: DigestNumber,
}

/// The statements of one sql block that have ended in the current turn.
#[derive(Debug)]
pub(crate) struct TurnEnds {
    /// The counters of the first statement that began and ended in the turn, and the number of such
    /// statements.
    same: StatementCounters,
    count: u32,
    /// The others: those that began in an earlier turn, and those with other counters.
    late: Vec<(StatementCounters, Time)>,
}

impl Default for TurnEnds {
    fn default() -> TurnEnds {
        TurnEnds { same: StatementCounters::default(), count: 0, late: Vec::with_capacity(LATE_MAX) }
    }
}

impl TurnEnds {
    /// Notes a statement that began at `begun` and ended in the turn that began at `now`. Returns false if
    /// there is no room for it.
    #[inline]
    #[must_use]
    pub(super) fn note(&mut self, counters: StatementCounters, begun: Time, now: Time) -> bool {
        // The common case: equal statements that begin and end in the same turn are only counted.
        if begun == now && (self.count == 0 || counters == self.same) {
            self.same = counters;
            self.count += 1;
            return true;
        }
        self.note_late(counters, begun)
    }

    #[inline(never)]
    fn note_late(&mut self, counters: StatementCounters, begun: Time) -> bool {
        let has_room = self.late.len() < LATE_MAX;
        if has_room {
            self.late.push((counters, begun));
        }
        has_room
    }

    /// Ends the turn that began at `began`. Calls `record` with the counters, the duration in nanoseconds and
    /// the number of statements.
    #[inline]
    pub(super) fn end_turn(&mut self, began: Time, ended: Time, mut record: impl FnMut(StatementCounters, u64, u32)) {
        if self.count > 0 {
            record(self.same, ended.since(began).0, std::mem::take(&mut self.count));
        }
        if !self.late.is_empty() {
            for (counters, begun) in self.late.drain(..) {
                record(counters, ended.since(begun).0, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(ends: &mut TurnEnds, began: u64, ended: u64) -> Vec<(u64, u64, u32)> {
        let mut found = Vec::new();
        ends.end_turn(Time(began), Time(ended), |counters, ns, count| found.push((counters.digest.0, ns, count)));
        found
    }

    #[test]
    fn equal_statements_of_a_turn_are_recorded_together() {
        let mut ends = TurnEnds::default();
        let (read, update) = (OperationKind::PointRead, OperationKind::Update);
        for (kind, digest, begun) in [(read, 1, 100), (read, 1, 100), (read, 1, 40), (read, 2, 100), (update, 1, 100)] {
            let counters = StatementCounters { kind, digest: DigestNumber(digest) };
            assert!(ends.note(counters, Time(begun), Time(100)));
        }
        assert_eq!(recorded(&mut ends, 100, 110), [(1, 10, 2), (1, 70, 1), (2, 10, 1), (1, 10, 1)]);
        assert_eq!(recorded(&mut ends, 110, 500), []);
    }

    #[test]
    fn a_busy_turn_has_a_bound() {
        let mut ends = TurnEnds::default();
        let note = |ends: &mut TurnEnds| ends.note(StatementCounters::default(), Time(5), Time(9));
        assert!((0..LATE_MAX).all(|_| note(&mut ends)) && !note(&mut ends));
        assert_eq!(recorded(&mut ends, 9, 10).len(), LATE_MAX);
        assert!(note(&mut ends) && ends.late.capacity() == LATE_MAX);
    }
}
