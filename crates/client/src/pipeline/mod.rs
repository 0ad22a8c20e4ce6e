//! Hot path: at most 300 instructions per request, not counting the contents.
//!
//! The pipelined requests of a connection.
//!
//! The pipeline has no background task. A future that waits for a reply does the I/O when it is polled: it
//! sends queued requests and receives bytes, for itself and for all other waiting futures. A transport can
//! wake only one task: that of the leader, the future that began to wait first. When the leader no longer
//! waits, the pipeline wakes the next waiting future, which becomes the leader. A future that has been polled
//! must therefore be polled again when its task is woken, or be dropped.
//!
//! Wakers are woken and dropped after the lock is released, because both may run code that takes the lock.

mod waiting;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::error::{Error, Result};
use crate::transport::Transport;
use junctor_wire::frame::{self, next_frame};
use junctor_wire::{Reply, reply};

pub(crate) use waiting::{PendingReply, SpaceWait};

/// Number of queued bytes above which [`SpaceWait`] waits.
const QUEUED_BYTES_MAX: usize = 1 << 20;
/// Initial capacity of a send buffer in bytes.
const REQUEST_BYTES: usize = 1024;
/// A request is appended to the last send buffer if that has fewer bytes than this.
const BATCHED_BYTES_MAX: usize = 8 * 1024;

/// The requests of a connection in the order in which they were queued, and the transport.
pub(crate) struct Pipeline {
    state: Mutex<State>,
    /// Wakes the leader. The transport never sees another waker.
    waker: Waker,
}

struct State {
    transport: Box<dyn Transport>,
    /// Send buffers. The first one may be partly sent.
    queue: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    /// Received bytes. Those from `position` on belong to replies that are not complete yet. All frames
    /// before `scanned` are complete.
    received: Vec<u8>,
    position: usize,
    scanned: usize,
    /// The current reply exceeds `reply_bytes_max`, and its bytes are discarded as they arrive.
    is_oversized: bool,
    reply_bytes_max: usize,
    /// One slot for each request that has no reply yet, or whose reply has not been returned. The first slot
    /// belongs to the request with the number `first`.
    slots: VecDeque<Slot>,
    first: u32,
    /// Number of slots with a reply. Replies arrive in the order of the requests, so these slots are at the
    /// front.
    answered: usize,
    /// Futures that wait for space in the queue, each with its ticket.
    space_waiters: Vec<(u64, Waker)>,
    /// The last ticket that was issued.
    last_ticket: u64,
    /// The future whose task the transport wakes.
    leader: Option<Waiter>,
    leader_waker: Arc<LeaderWaker>,
    /// The transport will wake the leader when bytes arrive.
    is_registered: bool,
    /// Wakers to wake after the lock is released. Usually there is at most one, which needs no allocation.
    woken: Option<Waker>,
    more_woken: Vec<Waker>,
    /// Wakers to drop after the lock is released.
    discarded: Vec<Waker>,
    /// Why the connection can no longer be used.
    failure: Option<Error>,
    /// The session's status after the last reply, bits of `STATUS_...`.
    status: u8,
}

/// A waiting future.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiter {
    /// Waits for the reply to the request with this number.
    Reply(u32),
    /// Waits for space in the queue, with this ticket.
    Space(u64),
}

/// Forwards the transport's wake-ups to the current leader.
#[derive(Default)]
struct LeaderWaker(Mutex<Option<Waker>>);

impl LeaderWaker {
    fn set(&self, waker: Option<Waker>) -> Option<Waker> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), waker)
    }

    fn will_wake(&self, other: &Waker) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|waker| waker.will_wake(other))
    }
}

impl Wake for LeaderWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Clone the waker, so that the lock is released before the task's code runs.
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The locked state. Dropping it releases the lock, and then wakes and drops the collected wakers.
struct Locked<'a>(Option<MutexGuard<'a, State>>);

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.0.as_deref().expect("it is locked until it is dropped")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_deref_mut().expect("it is locked until it is dropped")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let Some(mut state) = self.0.take() else { return };
        let (woken, more_woken) = (state.woken.take(), std::mem::take(&mut state.more_woken));
        let discarded = std::mem::take(&mut state.discarded);
        drop(state);
        woken.into_iter().chain(more_woken).for_each(Waker::wake);
        drop(discarded);
    }
}

/// Replaces the transport of a closed connection.
struct ClosedTransport;

impl Transport for ClosedTransport {
    fn poll_send(&mut self, _context: &mut Context<'_>, _bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
    }

    fn poll_receive(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
    }
}

enum Slot {
    /// No reply yet. The waker belongs to the waiting task, once the task has polled.
    Waiting(Option<Waker>),
    /// No reply yet, and the reply will be discarded.
    Dropped,
    /// The frames of the reply.
    Answered(Vec<u8>),
    /// The reply exceeded `reply_bytes_max` and was discarded.
    Oversized,
    /// The reply was returned or discarded. The slot is removed once it is the first.
    Finished,
}

impl Pipeline {
    pub(crate) fn new(transport: Box<dyn Transport>, received: Vec<u8>, reply_bytes_max: usize) -> Pipeline {
        let leader_waker = Arc::new(LeaderWaker::default());
        Pipeline {
            waker: Waker::from(Arc::clone(&leader_waker)),
            state: Mutex::new(State {
                transport,
                queue: VecDeque::new(),
                queued_bytes: 0,
                received,
                position: 0,
                scanned: 0,
                is_oversized: false,
                reply_bytes_max,
                slots: VecDeque::new(),
                // The login had the number 0.
                first: 1,
                answered: 0,
                space_waiters: Vec::new(),
                last_ticket: 0,
                leader: None,
                leader_waker,
                is_registered: false,
                woken: None,
                more_woken: Vec::new(),
                discarded: Vec::new(),
                failure: None,
                status: reply::STATUS_AUTOCOMMIT,
            }),
        }
    }

    fn lock(&self) -> Locked<'_> {
        // A poisoned lock is harmless: no code that can panic leaves the state inconsistent.
        Locked(Some(self.state.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Waits until the queue has space for another request. Without this wait, a caller that never awaits
    /// replies could queue without bound.
    pub(crate) fn wait_for_space(&self) -> SpaceWait<'_> {
        SpaceWait { pipeline: self, ticket: None }
    }

    /// Queues a request, which is sent when a future waits. `encode` gets the request's number and appends
    /// the frame; it returns false if the request is too long.
    ///
    /// # Errors
    /// The request is too long, or the connection is lost.
    pub(crate) fn enqueue(
        self: &Arc<Pipeline>,
        encode: impl FnOnce(u32, &mut Vec<u8>) -> bool,
    ) -> Result<PendingReply> {
        let mut locked = self.lock();
        let state = &mut *locked;
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        let number = state.first.wrapping_add(state.slots.len() as u32);
        // Never append to the first buffer: it may be partly sent, and must then not change
        // (`Transport::poll_send`).
        let joins = state.queue.len() > 1 && state.queue.back().is_some_and(|last| last.len() < BATCHED_BYTES_MAX);
        if !joins {
            let buffer = state.transport.take_buffer(REQUEST_BYTES);
            state.queue.push_back(buffer);
        }
        let Some(buffer) = state.queue.back_mut() else { return Err(Error::too_long()) };
        let before = buffer.len();
        let is_whole = encode(number, buffer);
        state.queued_bytes += buffer.len() - before;
        if !is_whole {
            // `encode` appended nothing. Remove the empty buffer again.
            if !joins {
                state.queue.pop_back();
            }
            return Err(Error::too_long());
        }
        state.slots.push_back(Slot::Waiting(None));
        Ok(PendingReply { pipeline: Arc::clone(self), number, is_done: false })
    }

    /// Queues a request whose reply is discarded, and sends it immediately if the transport can take it.
    pub(crate) fn enqueue_and_discard(self: &Arc<Pipeline>, encode: impl FnOnce(u32, &mut Vec<u8>) -> bool) {
        if let Ok(answer) = self.enqueue(encode) {
            self.lock().send(&mut Context::from_waker(&self.waker));
            drop(answer);
        }
    }

    /// Closes the connection, even if statements and key readers still refer to it.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.fail(Error::lost("the connection was dropped"));
        state.transport = Box::new(ClosedTransport);
    }

    /// Returns the buffer of a reply to the transport for reuse.
    pub(crate) fn recycle_buffer(&self, bytes: Vec<u8>) {
        self.lock().transport.recycle_buffer(bytes);
    }

    /// The session's status after the last reply, bits of `STATUS_...`.
    pub(crate) fn status(&self) -> u8 {
        self.lock().status
    }

    /// Records the session's status that a reply reported.
    pub(crate) fn note_status(&self, status: u8) {
        self.lock().status = status;
    }
}

impl State {
    /// Sends queued requests and receives bytes until the reply to `wanted` has arrived or the transport has
    /// no more bytes.
    fn exchange(&mut self, context: &mut Context<'_>, wanted: Option<u32>) {
        self.send(context);
        while self.failure.is_none() && !wanted.is_some_and(|number| self.is_answered(number)) {
            let received = self.transport.poll_receive(context);
            self.is_registered = received.is_pending();
            match received {
                Poll::Pending => return,
                Poll::Ready(Ok(bytes)) if bytes.is_empty() => self.fail(Error::lost("the node closed the connection")),
                Poll::Ready(Ok(bytes)) => self.on_received(bytes),
                Poll::Ready(Err(error)) => self.fail(Error::lost(&error.to_string())),
            }
        }
    }

    fn send(&mut self, context: &mut Context<'_>) {
        while self.failure.is_none()
            && let Some(bytes) = self.queue.front_mut()
        {
            let length = bytes.len();
            match self.transport.poll_send(context, bytes) {
                Poll::Pending => return,
                Poll::Ready(Ok(())) => {
                    self.queued_bytes -= length;
                    if let Some(bytes) = self.queue.pop_front() {
                        self.transport.recycle_buffer(bytes);
                    }
                    self.wake_for_space();
                }
                // The node may have sent the reason before it closed the connection. Read it before failing.
                Poll::Ready(Err(error)) => {
                    while let Poll::Ready(Ok(bytes)) = self.transport.poll_receive(context) {
                        if bytes.is_empty() {
                            break;
                        }
                        self.on_received(bytes);
                    }
                    self.fail(Error::lost(&error.to_string()));
                }
            }
        }
    }

    fn is_answered(&self, number: u32) -> bool {
        (number.wrapping_sub(self.first) as usize) < self.answered
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        for slot in &mut self.slots {
            if let Slot::Waiting(waker) = slot {
                self.more_woken.extend(waker.take());
            }
        }
        self.wake_for_space();
    }

    fn wake(&mut self, waker: Waker) {
        match self.woken {
            None => self.woken = Some(waker),
            Some(_) => self.more_woken.push(waker),
        }
    }

    fn wake_for_space(&mut self) {
        self.more_woken.extend(self.space_waiters.drain(..).map(|(_, waker)| waker));
    }

    /// Appends received bytes and dispatches the complete replies.
    fn on_received(&mut self, bytes: Vec<u8>) {
        if self.position == self.received.len() {
            self.transport.recycle_buffer(std::mem::replace(&mut self.received, bytes));
            (self.position, self.scanned) = (0, 0);
        } else {
            self.received.extend_from_slice(&bytes);
            self.transport.recycle_buffer(bytes);
        }
        self.dispatch();
    }

    /// Moves complete replies into their slots.
    fn dispatch(&mut self) {
        while let Some((kind, length)) = frame::decode_header(&self.received[self.scanned..]) {
            let end = self.scanned + frame::HEADER_BYTES + length;
            if end > self.received.len() {
                break;
            }
            let last_at = std::mem::replace(&mut self.scanned, end);
            if reply::is_last(kind) {
                self.on_reply(last_at, end);
            } else if end - self.position > self.reply_bytes_max {
                self.is_oversized = true;
            }
            if self.is_oversized {
                self.position = self.scanned;
            }
        }
        // An incomplete frame may exceed the reply's limit by up to one payload; the reply is discarded once
        // the frame is complete.
        if self.received.len() - self.position > self.reply_bytes_max.saturating_add(frame::PAYLOAD_BYTES_MAX) {
            self.fail(Error::protocol("the reply is too long"));
        }
        // Move the part of a reply that has arrived to the front, so that the buffer reuses the space of
        // earlier replies.
        if self.position > 0 && self.position < self.received.len() {
            self.received.drain(..self.position);
            self.scanned -= self.position;
            self.position = 0;
        }
    }

    /// Handles a complete reply, whose last frame spans `last_at` to `end`.
    fn on_reply(&mut self, last_at: usize, end: usize) {
        let is_oversized = std::mem::take(&mut self.is_oversized);
        let start = std::mem::replace(&mut self.position, end);
        let replied = self.received.get(last_at + frame::HEADER_BYTES..).and_then(|bytes| bytes.first_chunk());
        let replied = replied.map(|number| u32::from_le_bytes(*number));
        let number = self.first.wrapping_add(self.answered as u32);
        if self.answered == self.slots.len() || replied != Some(number) {
            // An unsolicited error states why the node closes the connection. It has the number 0, which
            // otherwise only the login has.
            let unsolicited = next_frame(&self.received[last_at..]).and_then(|(frame, _)| Reply::parse(frame).ok());
            return self.fail(match unsolicited {
                Some((0, Reply::Failed { errno, sqlstate, message })) => Error::server(errno, sqlstate, message),
                _ => Error::protocol("replies out of order"),
            });
        }
        let slot = match &self.slots[self.answered] {
            // The caller gave up before the reply arrived.
            Slot::Dropped => Slot::Finished,
            _ if is_oversized => Slot::Oversized,
            // The usual case: the buffer holds exactly this reply, so it moves into the slot without a copy.
            _ if start == 0 && end == self.received.len() => {
                (self.position, self.scanned) = (0, 0);
                Slot::Answered(std::mem::take(&mut self.received))
            }
            _ => {
                let mut bytes = self.transport.take_buffer(end - start);
                bytes.extend_from_slice(&self.received[start..end]);
                Slot::Answered(bytes)
            }
        };
        let before = std::mem::replace(&mut self.slots[self.answered], slot);
        self.answered += 1;
        if let Slot::Waiting(Some(waker)) = before {
            self.wake(waker);
        }
        self.drop_finished();
    }

    /// Removes finished slots from the front.
    fn drop_finished(&mut self) {
        while self.slots.pop_front_if(|slot| matches!(slot, Slot::Finished)).is_some() {
            self.first = self.first.wrapping_add(1);
            self.answered -= 1;
        }
    }

    /// Called when a future is polled. The future becomes the leader if the pipeline has none.
    fn become_leader_if_none(&mut self, waiter: Waiter, waker: &Waker) {
        if *self.leader.get_or_insert(waiter) == waiter && !self.leader_waker.will_wake(waker) {
            let before = self.leader_waker.set(Some(waker.clone()));
            self.discarded.extend(before);
        }
    }

    /// Called when a future no longer waits. If that future was the leader, wakes the first future that still
    /// waits, which becomes the leader when it is polled.
    fn end_wait(&mut self, waiter: Waiter) {
        if self.leader.is_some_and(|leader| leader != waiter) {
            // This future may have received the bytes for which the leader had registered with the transport.
            // Only a poll of the leader registers it again, so wake the leader.
            if !self.is_registered {
                let waker = self.leader_waker.set(None);
                self.discarded.extend(self.leader_waker.set(waker.clone()));
                waker.into_iter().for_each(|waker| self.wake(waker));
            }
            return;
        }
        self.leader = None;
        let before = self.leader_waker.set(None);
        self.discarded.extend(before);
        let waiting = self.slots.iter().skip(self.answered).find_map(|slot| match slot {
            Slot::Waiting(waker) => waker.as_ref(),
            _ => None,
        });
        if let Some(waker) = waiting.or(self.space_waiters.first().map(|(_, waker)| waker)).cloned() {
            self.wake(waker);
        }
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        formatter.debug_struct("Pipeline").field("pending", &(state.slots.len() - state.answered)).finish()
    }
}

#[cfg(test)]
mod tests;
