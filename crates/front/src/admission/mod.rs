//! Admission: a bound on the statements and on the transactions with locks that one sql block lets into the data plane at
//! once. Statements of such transactions always go first, since others may wait for their locks; the others wait in arrival order,
//! so that none starves. What waits holds its command's bytes, results of statements before it in its text, and nothing else.

use std::collections::VecDeque;

use junctor_model::id::ConnectionId;

/// The queue of one sql block.
#[derive(Debug)]
pub struct Admission {
    admitted: usize,
    admitted_max: usize,
    waiting: VecDeque<ConnectionId>,
}

impl Admission {
    /// Lets `admitted_max` (at least 1) in at once.
    pub fn new(admitted_max: usize) -> Admission {
        Admission { admitted: 0, admitted_max: admitted_max.max(1), waiting: VecDeque::new() }
    }

    /// Takes a ticket; false when none is free or others wait already.
    pub fn try_enter(&mut self) -> bool {
        if self.admitted >= self.admitted_max || !self.waiting.is_empty() {
            return false;
        }
        self.admitted += 1;
        true
    }

    /// Waits for a ticket. A connection waits at most once, so the queue is as long as connections are many.
    pub fn wait(&mut self, connection: ConnectionId) {
        self.waiting.push_back(connection);
    }

    /// Gives a ticket back.
    pub fn leave(&mut self) {
        self.admitted = self.admitted.saturating_sub(1);
    }

    /// The connection that has waited longest, with a ticket, if one is free.
    pub fn admit_next(&mut self) -> Option<ConnectionId> {
        if self.admitted >= self.admitted_max {
            return None;
        }
        let connection = self.waiting.pop_front()?;
        self.admitted += 1;
        Some(connection)
    }

    /// Forgets a connection that waits.
    pub fn forget(&mut self, connection: ConnectionId) {
        self.waiting.retain(|waiting| *waiting != connection);
    }

    /// Tickets out, and connections waiting.
    pub fn counts(&self) -> (usize, usize) {
        (self.admitted, self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waited_longest_goes_first_and_nobody_overtakes() {
        let mut admission = Admission::new(1);
        assert!(admission.try_enter());
        assert!(!admission.try_enter());
        admission.wait(ConnectionId(2));
        admission.wait(ConnectionId(3));
        assert_eq!(admission.admit_next(), None);
        admission.leave();
        assert!(!admission.try_enter(), "a newcomer must not overtake");
        assert_eq!(admission.admit_next(), Some(ConnectionId(2)));
        admission.forget(ConnectionId(3));
        admission.leave();
        assert_eq!(admission.admit_next(), None);
        assert!(admission.try_enter());
    }
}
