//! Hot path, budget 300 instructions a request besides its contents: the requests of a connection that are under way, in their order.
//!
//! Whoever waits for an answer also moves bytes: it sends what is queued and takes what has come, for itself and for the others. A
//! transport wakes one task only, so that a task which waits no more wakes the first of those that still do.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::error::{Error, Result};
use super::transport::Transport;
use crate::wire::frame::{self, next_frame};
use crate::wire::{Reply, reply};

/// Bytes that wait to be sent beyond which a request waits before it is made.
const QUEUED_BYTES_MAX: usize = 1 << 20;
/// Room for a request.
const REQUEST_BYTES: usize = 1024;
/// A request shorter than this joins the one before it in a buffer.
const JOINED_BYTES_MAX: usize = 8 * 1024;

/// The requests of a connection.
pub(crate) struct Pipeline {
    state: Mutex<State>,
}

struct State {
    transport: Box<dyn Transport>,
    /// What is to be sent.
    queue: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    /// What has come and is not dispatched, from `position` on; what lies before `scanned` are whole frames.
    received: Vec<u8>,
    position: usize,
    scanned: usize,
    /// The answer under way is longer than it may be: its bytes are dropped.
    is_too_long: bool,
    answer_bytes_max: usize,
    /// One for each request that is under way or whose answer is not taken; the first has the number `first`.
    slots: VecDeque<Slot>,
    first: u32,
    /// How many of the slots are answered.
    answered: usize,
    /// Requests that wait until there is room in the queue.
    wants_room: Vec<Waker>,
    failure: Option<Error>,
    /// What the last answer said of the session.
    status: u8,
}

/// The transport of a connection that was dropped.
struct Closed;

impl Transport for Closed {
    fn poll_send(&mut self, _context: &mut Context<'_>, _bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
    }

    fn poll_receive(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
    }
}

enum Slot {
    /// Nobody has waited for it yet, or this task does.
    Waiting(Option<Waker>),
    /// Nobody wants the answer.
    Dropped,
    Answered(Vec<u8>),
    /// The answer was too long.
    TooLong,
    Taken,
}

/// A request that was made: wait for its answer, or drop it to let the answer go by.
#[must_use]
pub(crate) struct Answer {
    pipeline: Arc<Pipeline>,
    number: u32,
    is_done: bool,
}

impl Pipeline {
    pub(crate) fn new(transport: Box<dyn Transport>, received: Vec<u8>, answer_bytes_max: usize) -> Pipeline {
        Pipeline {
            state: Mutex::new(State {
                transport,
                queue: VecDeque::new(),
                queued_bytes: 0,
                received,
                position: 0,
                scanned: 0,
                is_too_long: false,
                answer_bytes_max,
                slots: VecDeque::new(),
                first: 0,
                answered: 0,
                wants_room: Vec::new(),
                failure: None,
                status: reply::STATUS_AUTOCOMMIT,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for another request.
    pub(crate) async fn room(&self) -> Result<()> {
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            if state.queued_bytes > QUEUED_BYTES_MAX {
                state.exchange(context, None);
            }
            if let Some(failure) = &state.failure {
                return Poll::Ready(Err(failure.clone()));
            }
            if state.queued_bytes <= QUEUED_BYTES_MAX {
                return Poll::Ready(Ok(()));
            }
            state.wants_room.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Makes a request, to be sent when somebody waits: `emit` gets its number and appends it, or says that it is too long.
    ///
    /// # Errors
    /// It is too long, or the connection is lost.
    pub(crate) fn begin(self: &Arc<Pipeline>, emit: impl FnOnce(u32, &mut Vec<u8>) -> bool) -> Result<Answer> {
        let mut state = self.lock();
        let state = &mut *state;
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        let number = state.first.wrapping_add(state.slots.len() as u32);
        // The first one may be sent in part.
        let joins = state.queue.len() > 1 && state.queue.back().is_some_and(|last| last.len() < JOINED_BYTES_MAX);
        if !joins {
            let buffer = state.transport.buffer(REQUEST_BYTES);
            state.queue.push_back(buffer);
        }
        let Some(buffer) = state.queue.back_mut() else { return Err(Error::too_long()) };
        let before = buffer.len();
        let is_whole = emit(number, buffer);
        state.queued_bytes += buffer.len() - before;
        if !is_whole {
            if !joins {
                state.queue.pop_back();
            }
            return Err(Error::too_long());
        }
        state.slots.push_back(Slot::Waiting(None));
        Ok(Answer { pipeline: Arc::clone(self), number, is_done: false })
    }

    /// Makes a request whose answer nobody wants, and sends it if that can be done at once.
    pub(crate) fn begin_and_forget(self: &Arc<Pipeline>, emit: impl FnOnce(u32, &mut Vec<u8>) -> bool) {
        if let Ok(answer) = self.begin(emit) {
            self.lock().send(&mut Context::from_waker(Waker::noop()));
            drop(answer);
        }
    }

    /// Closes the connection, whatever statements and readers are left of it.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.fail(Error::lost("it was dropped"));
        state.transport = Box::new(Closed);
    }

    /// Takes back the buffer of an answer.
    pub(crate) fn give(&self, bytes: Vec<u8>) {
        self.lock().transport.give(bytes);
    }

    /// Bits of `STATUS_...` of the last answer.
    pub(crate) fn status(&self) -> u8 {
        self.lock().status
    }

    /// Takes note of what an answer said of the session.
    pub(crate) fn note_status(&self, status: u8) {
        self.lock().status = status;
    }
}

impl State {
    /// Sends what is queued and takes what has come, until the answer to `wanted` is there or the transport has no more.
    fn exchange(&mut self, context: &mut Context<'_>, wanted: Option<u32>) {
        self.send(context);
        while self.failure.is_none() && !wanted.is_some_and(|number| self.is_answered(number)) {
            match self.transport.poll_receive(context) {
                Poll::Pending => return,
                Poll::Ready(Ok(bytes)) if bytes.is_empty() => self.fail(Error::lost("it was closed")),
                Poll::Ready(Ok(bytes)) => self.take(bytes),
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
                        self.transport.give(bytes);
                    }
                    self.wants_room.drain(..).for_each(Waker::wake);
                }
                // What the node has said before it closed the connection may still be there.
                Poll::Ready(Err(error)) => {
                    while let Poll::Ready(Ok(bytes)) = self.transport.poll_receive(context) {
                        if bytes.is_empty() {
                            break;
                        }
                        self.take(bytes);
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
            if let Slot::Waiting(waker) = slot
                && let Some(waker) = waker.take()
            {
                waker.wake();
            }
        }
        self.wants_room.drain(..).for_each(Waker::wake);
    }

    /// Takes bytes that came.
    fn take(&mut self, bytes: Vec<u8>) {
        if self.position == self.received.len() {
            self.transport.give(std::mem::replace(&mut self.received, bytes));
            (self.position, self.scanned) = (0, 0);
        } else {
            self.received.extend_from_slice(&bytes);
            self.transport.give(bytes);
        }
        self.dispatch();
    }

    /// Gives whole answers to those that wait for them.
    fn dispatch(&mut self) {
        while let Some((kind, length)) = frame::head(&self.received[self.scanned..]) {
            let end = self.scanned + frame::HEAD_BYTES + length;
            if end > self.received.len() {
                break;
            }
            let last_at = std::mem::replace(&mut self.scanned, end);
            if reply::is_last(kind) {
                self.on_answer(last_at, end);
            } else if end - self.position > self.answer_bytes_max {
                self.is_too_long = true;
            }
            if self.is_too_long {
                self.position = self.scanned;
            }
        }
        if self.received.len() - self.position > self.answer_bytes_max.saturating_add(frame::PAYLOAD_BYTES_MAX) {
            self.fail(Error::protocol("it is too long"));
        }
        // What is dispatched or dropped need not be moved again and again.
        if self.position > 0 && self.position < self.received.len() {
            self.received.drain(..self.position);
            self.scanned -= self.position;
            self.position = 0;
        }
    }

    /// The answer that ends with this frame is whole.
    fn on_answer(&mut self, last_at: usize, end: usize) {
        let is_too_long = std::mem::take(&mut self.is_too_long);
        let start = std::mem::replace(&mut self.position, end);
        let said = self.received.get(last_at + frame::HEAD_BYTES..).and_then(|bytes| bytes.first_chunk());
        let said = said.map(|said| u32::from_le_bytes(*said));
        let number = self.first.wrapping_add(self.answered as u32);
        if self.answered == self.slots.len() || said != Some(number) {
            // What nobody has asked is why the node closes the connection. Its number is 0, that of the login, which comes first.
            let farewell = next_frame(&self.received[last_at..]).and_then(|(frame, _)| Reply::parse(frame).ok());
            return self.fail(match farewell {
                Some((0, Reply::Failed { errno, sqlstate, message })) => Error::server(errno, sqlstate, message),
                _ => Error::protocol("answers out of order"),
            });
        }
        let slot = match &self.slots[self.answered] {
            Slot::Dropped => Slot::Taken,
            _ if is_too_long => Slot::TooLong,
            _ if start == 0 && end == self.received.len() => {
                (self.position, self.scanned) = (0, 0);
                Slot::Answered(std::mem::take(&mut self.received))
            }
            _ => {
                let mut bytes = self.transport.buffer(end - start);
                bytes.extend_from_slice(&self.received[start..end]);
                Slot::Answered(bytes)
            }
        };
        let before = std::mem::replace(&mut self.slots[self.answered], slot);
        self.answered += 1;
        if let Slot::Waiting(Some(waker)) = before {
            waker.wake();
        }
        self.drop_taken();
    }

    fn drop_taken(&mut self) {
        while self.slots.pop_front_if(|slot| matches!(slot, Slot::Taken)).is_some() {
            self.first = self.first.wrapping_add(1);
            self.answered -= 1;
        }
    }

    /// Somebody waits no more: another one moves bytes from now on.
    fn wake_next(&mut self) {
        for slot in self.slots.iter_mut().skip(self.answered) {
            if let Slot::Waiting(waker) = slot
                && let Some(waker) = waker.take()
            {
                return waker.wake();
            }
        }
        self.wants_room.drain(..).for_each(Waker::wake);
    }
}

impl Future for Answer {
    type Output = Result<Vec<u8>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Vec<u8>>> {
        let this = &mut *self;
        let mut state = this.pipeline.lock();
        if !state.is_answered(this.number) {
            state.exchange(context, Some(this.number));
        }
        let place = this.number.wrapping_sub(state.first) as usize;
        let failure = state.failure.clone();
        let Some(slot) = state.slots.get_mut(place) else { return Poll::Ready(Err(Error::protocol("asked twice"))) };
        let answer = match std::mem::replace(slot, Slot::Taken) {
            Slot::Answered(bytes) => Ok(bytes),
            Slot::TooLong => Err(Error::value("The answer is longer than answer_bytes_max".into())),
            Slot::Waiting(_) => match failure {
                Some(failure) => Err(failure),
                None => {
                    *slot = Slot::Waiting(Some(context.waker().clone()));
                    return Poll::Pending;
                }
            },
            Slot::Dropped | Slot::Taken => Err(Error::protocol("asked twice")),
        };
        if state.is_answered(this.number) {
            state.drop_taken();
        }
        state.wake_next();
        drop(state);
        this.is_done = true;
        Poll::Ready(answer)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.pipeline.lock();
        let is_answered = state.is_answered(self.number);
        let place = self.number.wrapping_sub(state.first) as usize;
        if let Some(slot) = state.slots.get_mut(place) {
            *slot = if is_answered { Slot::Taken } else { Slot::Dropped };
        }
        if is_answered {
            state.drop_taken();
        }
        state.wake_next();
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        formatter.debug_struct("Pipeline").field("under_way", &(state.slots.len() - state.answered)).finish()
    }
}
