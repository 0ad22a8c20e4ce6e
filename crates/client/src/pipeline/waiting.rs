//! Hot path, within the budget of 300 instructions per request in `mod.rs`.
//!
//! The futures that wait for a reply or for space in the queue.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Pipeline, QUEUED_BYTES_MAX, Slot, Waiter};
use crate::error::{Error, Result};

/// Detail of the error if a future is polled after it returned its result.
const POLLED_TWICE: &str = "the reply was already taken";

/// The pending reply to a request. Await it, or drop it to discard the reply.
#[must_use]
pub(crate) struct PendingReply {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) number: u32,
    /// Whether the reply was returned, so that `drop` has nothing to do.
    pub(super) is_done: bool,
}

/// Waits until the queue has space for another request.
pub(crate) struct SpaceWait<'p> {
    pub(super) pipeline: &'p Pipeline,
    /// Issued when the future first has to wait.
    pub(super) ticket: Option<u64>,
}

impl Future for SpaceWait<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let pipeline = self.pipeline;
        let mut locked = pipeline.lock();
        let state = &mut *locked;
        if state.queued_bytes > QUEUED_BYTES_MAX {
            let ticket = *self.ticket.get_or_insert_with(|| {
                state.last_ticket += 1;
                state.last_ticket
            });
            state.become_leader_if_none(Waiter::Space(ticket), context.waker());
            state.exchange(&mut Context::from_waker(&pipeline.waker), None);
        }
        if let Some(failure) = &state.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        let Some(ticket) = self.ticket.filter(|_| state.queued_bytes > QUEUED_BYTES_MAX) else {
            return Poll::Ready(Ok(()));
        };
        match state.space_waiters.iter_mut().find(|(other, _)| *other == ticket) {
            Some((_, waker)) if waker.will_wake(context.waker()) => {}
            Some((_, waker)) => state.discarded.push(std::mem::replace(waker, context.waker().clone())),
            None => state.space_waiters.push((ticket, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for SpaceWait<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut locked = self.pipeline.lock();
        let state = &mut *locked;
        if let Some(index) = state.space_waiters.iter().position(|(other, _)| *other == ticket) {
            let (_, waker) = state.space_waiters.remove(index);
            state.discarded.push(waker);
        }
        state.end_wait(Waiter::Space(ticket));
    }
}

impl Future for PendingReply {
    type Output = Result<Vec<u8>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Vec<u8>>> {
        let this = &mut *self;
        let mut locked = this.pipeline.lock();
        let state = &mut *locked;
        if !state.is_answered(this.number) {
            state.become_leader_if_none(Waiter::Reply(this.number), context.waker());
            state.exchange(&mut Context::from_waker(&this.pipeline.waker), Some(this.number));
        }
        let index = this.number.wrapping_sub(state.first) as usize;
        let failure = state.failure.clone();
        let Some(slot) = state.slots.get_mut(index) else { return Poll::Ready(Err(Error::protocol(POLLED_TWICE))) };
        let answer = match std::mem::replace(slot, Slot::Finished) {
            Slot::Answered(bytes) => Ok(bytes),
            Slot::Oversized => Err(Error::value("The reply is longer than reply_bytes_max".into())),
            Slot::Waiting(before) => match failure {
                Some(failure) => {
                    state.discarded.extend(before);
                    Err(failure)
                }
                None => {
                    let (waker, replaced) = match before {
                        Some(waker) if waker.will_wake(context.waker()) => (waker, None),
                        before => (context.waker().clone(), before),
                    };
                    *slot = Slot::Waiting(Some(waker));
                    state.discarded.extend(replaced);
                    return Poll::Pending;
                }
            },
            Slot::Dropped | Slot::Finished => Err(Error::protocol(POLLED_TWICE)),
        };
        // After a failure the slot has no reply; `drop_finished` counts each removed slot as answered.
        if state.is_answered(this.number) {
            state.drop_finished();
        }
        state.end_wait(Waiter::Reply(this.number));
        drop(locked);
        this.is_done = true;
        Poll::Ready(answer)
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut locked = self.pipeline.lock();
        let state = &mut *locked;
        let is_answered = state.is_answered(self.number);
        let index = self.number.wrapping_sub(state.first) as usize;
        if let Some(slot) = state.slots.get_mut(index) {
            // If the reply is still to come, keep its slot, or the numbers of later replies would not match.
            let before = std::mem::replace(slot, if is_answered { Slot::Finished } else { Slot::Dropped });
            if let Slot::Waiting(Some(waker)) = before {
                state.discarded.push(waker);
            }
        }
        if is_answered {
            state.drop_finished();
        }
        state.end_wait(Waiter::Reply(self.number));
    }
}
