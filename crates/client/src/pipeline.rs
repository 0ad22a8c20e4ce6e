//! Hot path, budget 300 instructions a request besides its contents: the requests of a connection that are under way, in their order.
//!
//! Whoever waits for an answer also moves bytes when it is polled: it sends what is queued and takes what has come, for itself and for the
//! others. A transport wakes one task only: that of the mover, the first that has begun to wait. When it waits no more, the next one is
//! woken and becomes the mover. A future that was polled must be polled when its task is woken, or be dropped.
//!
//! Wakers are woken and dropped after the lock is left: either may run code that takes it.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::error::{Error, Result};
use super::transport::Transport;
use junctor_wire::frame::{self, next_frame};
use junctor_wire::{Reply, reply};

/// Bytes that wait to be sent beyond which a request waits before it is made.
const QUEUED_BYTES_MAX: usize = 1 << 20;
/// Room for a request.
const REQUEST_BYTES: usize = 1024;
/// A request shorter than this joins the one before it in a buffer.
const JOINED_BYTES_MAX: usize = 8 * 1024;

/// The requests of a connection.
pub(crate) struct Pipeline {
    state: Mutex<State>,
    /// Wakes the mover; the only one that the transport gets.
    waker: Waker,
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
    /// Requests that wait until there is room in the queue, each with its number among them.
    wants_room: Vec<(u64, Waker)>,
    room_count: u64,
    /// Who is woken when the transport has something.
    mover: Option<Waiter>,
    mover_waker: Arc<MoverWaker>,
    /// The transport wakes the mover when bytes come.
    is_registered: bool,
    /// To be woken, and to be dropped, when the lock is left. One is the rule, and needs no memory.
    woken: Option<Waker>,
    woken_too: Vec<Waker>,
    unused: Vec<Waker>,
    failure: Option<Error>,
    /// What the last answer said of the session.
    status: u8,
}

/// Somebody who waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiter {
    /// For the answer of that number.
    Answer(u32),
    /// For room, with the number among those.
    Room(u64),
}

/// The waker of the mover.
#[derive(Default)]
struct MoverWaker(Mutex<Option<Waker>>);

impl MoverWaker {
    fn set(&self, waker: Option<Waker>) -> Option<Waker> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), waker)
    }

    fn will_wake(&self, other: &Waker) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|waker| waker.will_wake(other))
    }
}

impl Wake for MoverWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The state while it is locked.
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
        let (woken, woken_too) = (state.woken.take(), std::mem::take(&mut state.woken_too));
        let unused = std::mem::take(&mut state.unused);
        drop(state);
        woken.into_iter().chain(woken_too).for_each(Waker::wake);
        drop(unused);
    }
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

/// Waits until there is room for another request.
pub(crate) struct Room<'p> {
    pipeline: &'p Pipeline,
    /// Its number among those that wait, once it does.
    number: Option<u64>,
}

impl Pipeline {
    pub(crate) fn new(transport: Box<dyn Transport>, received: Vec<u8>, answer_bytes_max: usize) -> Pipeline {
        let mover_waker = Arc::new(MoverWaker::default());
        Pipeline {
            waker: Waker::from(Arc::clone(&mover_waker)),
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
                room_count: 0,
                mover: None,
                mover_waker,
                is_registered: false,
                woken: None,
                woken_too: Vec::new(),
                unused: Vec::new(),
                failure: None,
                status: reply::STATUS_AUTOCOMMIT,
            }),
        }
    }

    fn lock(&self) -> Locked<'_> {
        // Nothing that can panic leaves the state half changed.
        Locked(Some(self.state.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Waits until there is room for another request.
    pub(crate) fn room(&self) -> Room<'_> {
        Room { pipeline: self, number: None }
    }

    /// Makes a request, to be sent when somebody waits: `emit` gets its number and appends it, or says that it is too long.
    ///
    /// # Errors
    /// It is too long, or the connection is lost.
    pub(crate) fn begin(self: &Arc<Pipeline>, emit: impl FnOnce(u32, &mut Vec<u8>) -> bool) -> Result<Answer> {
        let mut locked = self.lock();
        let state = &mut *locked;
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
            self.lock().send(&mut Context::from_waker(&self.waker));
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
            let received = self.transport.poll_receive(context);
            self.is_registered = received.is_pending();
            match received {
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
                    self.wake_for_room();
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
            if let Slot::Waiting(waker) = slot {
                self.woken_too.extend(waker.take());
            }
        }
        self.wake_for_room();
    }

    fn wake(&mut self, waker: Waker) {
        match self.woken {
            None => self.woken = Some(waker),
            Some(_) => self.woken_too.push(waker),
        }
    }

    fn wake_for_room(&mut self) {
        self.woken_too.extend(self.wants_room.drain(..).map(|(_, waker)| waker));
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
            self.wake(waker);
        }
        self.drop_taken();
    }

    fn drop_taken(&mut self) {
        while self.slots.pop_front_if(|slot| matches!(slot, Slot::Taken)).is_some() {
            self.first = self.first.wrapping_add(1);
            self.answered -= 1;
        }
    }

    /// Somebody is polled: it is the mover if there is none.
    fn begin_moving(&mut self, waiter: Waiter, waker: &Waker) {
        if *self.mover.get_or_insert(waiter) == waiter && !self.mover_waker.will_wake(waker) {
            let before = self.mover_waker.set(Some(waker.clone()));
            self.unused.extend(before);
        }
    }

    /// Somebody waits no more: if it was the mover, the first of those that still do is the next one.
    fn end_moving(&mut self, waiter: Waiter) {
        if self.mover.is_some_and(|mover| mover != waiter) {
            // What has come for others as well may have been taken by this one.
            if !self.is_registered {
                let waker = self.mover_waker.set(None);
                self.unused.extend(self.mover_waker.set(waker.clone()));
                waker.into_iter().for_each(|waker| self.wake(waker));
            }
            return;
        }
        self.mover = None;
        let before = self.mover_waker.set(None);
        self.unused.extend(before);
        let waiting = self.slots.iter().skip(self.answered).find_map(|slot| match slot {
            Slot::Waiting(waker) => waker.as_ref(),
            _ => None,
        });
        if let Some(waker) = waiting.or(self.wants_room.first().map(|(_, waker)| waker)).cloned() {
            self.wake(waker);
        }
    }
}

impl Future for Room<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let pipeline = self.pipeline;
        let mut locked = pipeline.lock();
        let state = &mut *locked;
        if state.queued_bytes > QUEUED_BYTES_MAX {
            let number = *self.number.get_or_insert_with(|| {
                state.room_count += 1;
                state.room_count
            });
            state.begin_moving(Waiter::Room(number), context.waker());
            state.exchange(&mut Context::from_waker(&pipeline.waker), None);
        }
        if let Some(failure) = &state.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        let Some(number) = self.number.filter(|_| state.queued_bytes > QUEUED_BYTES_MAX) else {
            return Poll::Ready(Ok(()));
        };
        match state.wants_room.iter_mut().find(|(other, _)| *other == number) {
            Some((_, waker)) if waker.will_wake(context.waker()) => {}
            Some((_, waker)) => state.unused.push(std::mem::replace(waker, context.waker().clone())),
            None => state.wants_room.push((number, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut locked = self.pipeline.lock();
        let state = &mut *locked;
        if let Some(place) = state.wants_room.iter().position(|(other, _)| *other == number) {
            let (_, waker) = state.wants_room.remove(place);
            state.unused.push(waker);
        }
        state.end_moving(Waiter::Room(number));
    }
}

impl Future for Answer {
    type Output = Result<Vec<u8>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Vec<u8>>> {
        let this = &mut *self;
        let mut locked = this.pipeline.lock();
        let state = &mut *locked;
        if !state.is_answered(this.number) {
            state.begin_moving(Waiter::Answer(this.number), context.waker());
            state.exchange(&mut Context::from_waker(&this.pipeline.waker), Some(this.number));
        }
        let place = this.number.wrapping_sub(state.first) as usize;
        let failure = state.failure.clone();
        let Some(slot) = state.slots.get_mut(place) else { return Poll::Ready(Err(Error::protocol("asked twice"))) };
        let answer = match std::mem::replace(slot, Slot::Taken) {
            Slot::Answered(bytes) => Ok(bytes),
            Slot::TooLong => Err(Error::value("The answer is longer than answer_bytes_max".into())),
            Slot::Waiting(before) => match failure {
                Some(failure) => {
                    state.unused.extend(before);
                    Err(failure)
                }
                None => {
                    let (waker, replaced) = match before {
                        Some(waker) if waker.will_wake(context.waker()) => (waker, None),
                        before => (context.waker().clone(), before),
                    };
                    *slot = Slot::Waiting(Some(waker));
                    state.unused.extend(replaced);
                    return Poll::Pending;
                }
            },
            Slot::Dropped | Slot::Taken => Err(Error::protocol("asked twice")),
        };
        if state.is_answered(this.number) {
            state.drop_taken();
        }
        state.end_moving(Waiter::Answer(this.number));
        drop(locked);
        this.is_done = true;
        Poll::Ready(answer)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut locked = self.pipeline.lock();
        let state = &mut *locked;
        let is_answered = state.is_answered(self.number);
        let place = self.number.wrapping_sub(state.first) as usize;
        if let Some(slot) = state.slots.get_mut(place) {
            let before = std::mem::replace(slot, if is_answered { Slot::Taken } else { Slot::Dropped });
            if let Slot::Waiting(Some(waker)) = before {
                state.unused.push(waker);
            }
        }
        if is_answered {
            state.drop_taken();
        }
        state.end_moving(Waiter::Answer(self.number));
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        formatter.debug_struct("Pipeline").field("under_way", &(state.slots.len() - state.answered)).finish()
    }
}

#[cfg(test)]
mod tests;
