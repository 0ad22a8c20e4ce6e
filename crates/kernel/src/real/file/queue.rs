//! Requests on their way to the worker of a lane, and answers on their way back to the threads of the node.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::vec::Drain;

use crate::address::Address;
use crate::world::{FileLane, WorldEvent, WorldRequest};

/// The block that made a request, and its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::real) struct Requester {
    pub(in crate::real) thread: u16,
    pub(in crate::real) block: Address,
}

/// The answer to a request.
#[derive(Debug)]
pub(in crate::real) struct Answer {
    pub(in crate::real) to: Requester,
    pub(in crate::real) event: WorldEvent,
}

/// Receives the answers of all lanes. An answer after the end of its thread is lost.
pub(in crate::real) trait AnswerSink: Send + Sync {
    /// Passes the answers of a lane to the threads of their receivers, and lets these threads go on. Called
    /// by the worker of the lane.
    fn deliver(&self, lane: FileLane, answers: Drain<'_, Answer>);
}

/// The waiting requests of one lane. Any thread adds, the worker of the lane removes.
#[derive(Debug)]
pub(super) struct LaneQueue {
    state: Mutex<QueueState>,
    /// Whether requests wait; written under the lock of `state`.
    has_requests: AtomicBool,
    /// Whether requests wait, or the worker carries one out; written under the lock of `state`.
    is_busy: AtomicBool,
    bell: Condvar,
    /// For a worker that waits in an io_uring: the event counter to write instead of ringing `bell`.
    waker: Option<Arc<OwnedFd>>,
    requests_max: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    requests: VecDeque<(Requester, WorldRequest)>,
    /// Whether the worker waits until a request wakes it.
    is_waiting: bool,
    is_stopped: bool,
}

/// The next work of a lane's worker.
pub(super) enum NextWork {
    Request(Requester, WorldRequest),
    Nothing,
    /// The worker should end. Requests that still wait are not carried out.
    Stop,
}

impl LaneQueue {
    pub(super) fn new(requests_max: u32, waker: Option<Arc<OwnedFd>>) -> Self {
        Self {
            state: Mutex::default(),
            has_requests: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            bell: Condvar::new(),
            waker,
            requests_max: requests_max as usize,
        }
    }

    /// Appends a request, and wakes the worker. Gives the request back if the queue is full or stopped.
    pub(super) fn push(&self, from: Requester, request: WorldRequest) -> Result<(), WorldRequest> {
        let mut state = self.state();
        if state.is_stopped || state.requests.len() >= self.requests_max {
            return Err(request);
        }
        state.requests.push_back((from, request));
        self.has_requests.store(true, Ordering::Relaxed);
        self.is_busy.store(true, Ordering::Relaxed);
        let wakes = std::mem::take(&mut state.is_waiting);
        // Release the lock first, because the woken worker needs it.
        drop(state);
        if wakes {
            self.wake();
        }
        Ok(())
    }

    fn wake(&self) {
        match &self.waker {
            // Fails only if the counter is at its maximum, and then the worker wakes up anyway.
            Some(waker) => _ = rustix::io::write(waker, &1_u64.to_ne_bytes()),
            None => self.bell.notify_one(),
        }
    }

    /// Called by a worker before it waits in its io_uring. From now on, a new request writes the waker.
    /// Returns false if a request or a stop has already arrived.
    pub(super) fn announce_wait(&self) -> bool {
        let mut state = self.state();
        state.is_waiting = state.requests.is_empty() && !state.is_stopped;
        self.is_busy.store(!state.is_waiting, Ordering::Relaxed);
        state.is_waiting
    }

    /// Called by a worker that no longer waits.
    pub(super) fn end_wait(&self) {
        self.state().is_waiting = false;
    }

    /// Removes the oldest request. Waits for one if `may_wait`.
    pub(super) fn take(&self, may_wait: bool) -> NextWork {
        let mut state = self.state();
        loop {
            if state.is_stopped {
                return NextWork::Stop;
            }
            if let Some((from, request)) = state.requests.pop_front() {
                self.has_requests.store(!state.requests.is_empty(), Ordering::Relaxed);
                return NextWork::Request(from, request);
            }
            if !may_wait {
                return NextWork::Nothing;
            }
            state.is_waiting = true;
            self.is_busy.store(false, Ordering::Relaxed);
            state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether requests wait that the worker has not begun. A cheap test; exact for the worker itself.
    pub(super) fn has_requests(&self) -> bool {
        self.has_requests.load(Ordering::Relaxed)
    }

    /// Whether the worker has work. A hint.
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    /// The requester of the oldest request, if that is a sync.
    pub(super) fn next_sync(&self) -> Option<Requester> {
        match self.state().requests.front() {
            Some((from, WorldRequest::SyncFile { .. })) => Some(*from),
            _ => None,
        }
    }

    /// Drops all requests and makes the worker end.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        state.requests.clear();
        self.has_requests.store(false, Ordering::Relaxed);
        drop(state);
        self.wake();
    }

    #[cfg(all(test, not(loom), not(shuttle)))]
    pub(super) fn is_empty(&self) -> bool {
        self.state().requests.is_empty()
    }

    #[cfg(all(test, not(loom), not(shuttle)))]
    pub(super) fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers for the blocks of one thread. Workers of lanes add, the thread removes.
#[derive(Debug, Default)]
pub(in crate::real) struct AnswerBox {
    /// Whether `answers` has any; written under its lock.
    has_any: AtomicBool,
    answers: Mutex<Vec<(Address, WorldEvent)>>,
}

impl AnswerBox {
    /// Adds an answer. The caller must then wake the thread.
    pub(in crate::real) fn push(&self, to: Address, event: WorldEvent) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push((to, event));
        self.has_any.store(true, Ordering::Release);
    }

    /// A cheap test, which a thread repeats while it spins and before it sleeps.
    #[inline(always)]
    pub(in crate::real) fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Acquire)
    }

    /// Moves all answers to `events`. Returns how many.
    #[cold]
    pub(in crate::real) fn take(&self, events: &mut Vec<(Address, WorldEvent)>) -> usize {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_any.store(false, Ordering::Relaxed);
        let count = answers.len();
        events.append(&mut answers);
        count
    }
}
