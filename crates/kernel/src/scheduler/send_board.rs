//! How each thread sends, published for other threads and for status tables. Only the thread itself writes
//! its words.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::context::Duration;
use crate::sync::CachePadded;

use super::send::SendState;

/// How one thread sends, as other threads see it. Counts are since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendStatus {
    /// State by base load, which is the load without writes.
    pub state: SendState,
    /// Whether the thread may write for others.
    pub may_help: bool,
    /// Number of threads to which it may hand output now.
    pub helpers: u16,
    /// How long its output is delayed to be sent together with later output.
    pub delay: Duration,
    /// Writes to its own sockets.
    pub own_writes: u64,
    /// Bytes queued for its own sockets, no matter which thread wrote them.
    pub own_bytes: u64,
    /// Batches handed to other threads.
    pub handed_over: u64,
    /// Number of times that output was delayed.
    pub delayed: u64,
    /// Writes for other threads.
    pub other_writes: u64,
    /// Bytes written for other threads.
    pub other_bytes: u64,
    /// Batches of other threads that this thread returned unwritten.
    pub refused: u64,
}

/// The send figures of all threads of a node.
#[derive(Debug)]
pub struct SendBoard {
    threads: Box<[CachePadded<[AtomicU64; WORDS]>]>,
}

const WORDS: usize = 9;

impl SendBoard {
    pub(crate) fn new(threads: usize) -> SendBoard {
        SendBoard { threads: (0..threads).map(|_| CachePadded(std::array::from_fn(|_| AtomicU64::new(0)))).collect() }
    }

    /// Figures of a thread; `None` for an unknown thread.
    pub fn thread(&self, thread: u16) -> Option<SendStatus> {
        let words: [u64; WORDS] = std::array::from_fn({
            let thread = self.threads.get(usize::from(thread))?;
            |word| thread.0[word].load(Ordering::Relaxed)
        });
        let [state, delay, own_writes, own_bytes, handed_over, delayed, other_writes, other_bytes, refused] = words;
        Some(SendStatus {
            state: SendState::from_number(state as u8 & 3),
            may_help: state >> 4 & 1 != 0,
            helpers: (state >> 8) as u16,
            delay: Duration(delay),
            own_writes,
            own_bytes,
            handed_over,
            delayed,
            other_writes,
            other_bytes,
            refused,
        })
    }

    /// State of a thread. One load.
    pub(crate) fn state(&self, thread: u16) -> SendState {
        let word = self.threads.get(usize::from(thread)).map_or(0, |words| words.0[0].load(Ordering::Relaxed));
        SendState::from_number(word as u8 & 3)
    }

    /// Publishes the figures of `thread`, which must be the calling thread.
    pub(crate) fn publish(&self, thread: u16, status: &SendStatus) {
        let Some(words) = self.threads.get(usize::from(thread)) else { return };
        let values = [
            status.state as u64 | u64::from(status.may_help) << 4 | u64::from(status.helpers) << 8,
            status.delay.0,
            status.own_writes,
            status.own_bytes,
            status.handed_over,
            status.delayed,
            status.other_writes,
            status.other_bytes,
            status.refused,
        ];
        for (word, value) in words.0.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_as_it_was_published() {
        let board = SendBoard::new(2);
        let status = SendStatus {
            state: SendState::High,
            may_help: true,
            helpers: 300,
            delay: Duration::from_micros(160),
            own_writes: 1,
            own_bytes: 2,
            handed_over: 3,
            delayed: 4,
            other_writes: 5,
            other_bytes: 6,
            refused: 7,
        };
        board.publish(1, &status);
        board.publish(2, &status);
        assert_eq!(board.thread(1), Some(status));
        assert_eq!(
            (board.state(1), board.state(0), board.state(2)),
            (SendState::High, SendState::Light, SendState::Light)
        );
        assert_eq!((board.thread(0), board.thread(2)), (Some(SendStatus::default()), None));
    }
}
