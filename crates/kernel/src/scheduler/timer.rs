//! The timers of one thread. A binary heap suffices, because there are few timers: a block has one for a
//! whole list of deadlines, and checks the list when the timer fires.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::address::Address;
use crate::context::Time;
use crate::require;

/// Running timers, earliest first. Timers due at the same time fire in the order in which they were started.
#[derive(Debug)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64, Address, u64)>>,
    started: u64,
    running_max: usize,
}

impl Timers {
    pub(crate) fn new(running_max: u32) -> Self {
        Self { heap: BinaryHeap::new(), started: 0, running_max: running_max as usize }
    }

    pub(crate) fn start(&mut self, due: Time, to: Address, token: u64) {
        require!(
            self.heap.len() < self.running_max,
            "the {} timers of a thread stay within timers_max",
            self.heap.len()
        );
        self.heap.push(Reverse((due, self.started, to, token)));
        self.started += 1;
    }

    /// Removes the earliest timer that is due at `now`. Returns its block and token.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Time) -> Option<(Address, u64)> {
        if self.next_due()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, to, token))| (to, token))
    }

    #[inline]
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((due, ..))| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::NodeId;
    use crate::module::ModuleId;

    #[test]
    fn timers_fire_in_order_of_time_and_then_of_start() {
        let to = Address::new(NodeId(1), ModuleId::new(2), 0);
        let mut timers = Timers::new(8);
        for (due, token) in [(30, 1), (10, 2), (10, 3), (20, 4)] {
            timers.start(Time(due), to, token);
        }
        let mut fired = Vec::new();
        while let Some((_, token)) = timers.take_due(Time(20)) {
            fired.push(token);
        }
        assert_eq!((fired, timers.next_due()), (vec![2, 3, 4], Some(Time(30))));
    }
}
