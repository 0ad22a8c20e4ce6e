//! Admission limits how many statements, and how many transactions with locks, one sql block lets into the
//! data plane at a time. A statement of a transaction with locks always passes, because others may wait for
//! those locks. All other statements wait in order of arrival, so that none starves. A waiting command holds
//! its bytes and the results of earlier statements of its text, and nothing else.

use std::collections::VecDeque;

use junctor_kernel::{require, verify};
use junctor_model::id::ConnectionId;

/// The tickets of one sql block, and the queue for them.
#[derive(Debug)]
pub struct Admission {
    admitted: usize,
    admitted_max: usize,
    waiting: VecDeque<ConnectionId>,
}

impl Admission {
    /// Creates the queue with `admitted_max` tickets, at least 1.
    pub fn new(admitted_max: usize) -> Admission {
        Admission { admitted: 0, admitted_max: admitted_max.max(1), waiting: VecDeque::new() }
    }

    /// Takes a ticket. Returns false if none is free, or if a connection already waits for one.
    pub fn try_enter(&mut self) -> bool {
        if self.admitted >= self.admitted_max || !self.waiting.is_empty() {
            return false;
        }
        self.admitted += 1;
        true
    }

    /// Queues a connection for a ticket. A connection may wait only once at a time, so the queue is never
    /// longer than the number of connections.
    pub fn wait(&mut self, connection: ConnectionId) {
        verify!(!self.waiting.contains(&connection), "a connection waits for one ticket");
        self.waiting.push_back(connection);
    }

    /// Returns a ticket.
    pub fn leave(&mut self) {
        require!(self.admitted > 0, "a ticket of admission is returned once");
        self.admitted -= 1;
    }

    /// Assigns a free ticket to the connection that has waited longest.
    pub fn admit_next(&mut self) -> Option<ConnectionId> {
        if self.admitted >= self.admitted_max {
            return None;
        }
        let connection = self.waiting.pop_front()?;
        self.admitted += 1;
        Some(connection)
    }

    /// Removes a connection from the queue.
    pub fn cancel_wait(&mut self, connection: ConnectionId) {
        self.waiting.retain(|waiting| *waiting != connection);
    }

    /// Returns the number of tickets in use, and of waiting connections.
    pub fn counts(&self) -> (usize, usize) {
        (self.admitted, self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_waiter_is_admitted_first() {
        let mut admission = Admission::new(1);
        assert!(admission.try_enter());
        assert!(!admission.try_enter());
        admission.wait(ConnectionId(2));
        admission.wait(ConnectionId(3));
        assert_eq!(admission.admit_next(), None);
        admission.leave();
        assert!(!admission.try_enter(), "a newcomer must not overtake");
        assert_eq!(admission.admit_next(), Some(ConnectionId(2)));
        admission.cancel_wait(ConnectionId(3));
        admission.leave();
        assert_eq!(admission.admit_next(), None);
        assert!(admission.try_enter());
    }
}
