//! Hot path: at most 40 instructions for a turn that neither writes nor defers a wake-up.
//!
//! The thread slots of a node. A slot holds the state of one thread: its blocks, mailboxes, timers and
//! sockets. One thread at a time holds a slot: the thread itself while it works, or another thread that runs
//! a delegated turn. Block code cannot tell which of the two runs it.
//!
//! Waking a thread often costs both sides more than the work for which it is woken. A sender of little work
//! therefore runs the sleeping thread's turn itself. A sender also runs turns for a thread that is writing to
//! its sockets: a write may wake a client that takes over the writer's CPU, so a thread releases its slot
//! while it writes. For the same reason the worker of the log's files runs the turn of a thread that sleeps
//! until its sync has ended.

use std::sync::Arc;
use std::vec::Drain;

use crate::block::{Host, Signal};
use crate::buffer::BufferPool;
use crate::invariant::fail;
use crate::scheduler::delegation::has_spare_time;
use crate::scheduler::run::Services;
use crate::scheduler::sleep::{IdlePhase, ReturnOutcome, SleepCell, SleepLocation};
use crate::sync::{CachePadded, UnsafeCell};
use crate::world::{FileLane, WorldEvent};
use crate::{address::Address, envelope::SocketParcel};

use super::doorbell::Doorbell;
use super::file::{Answer, AnswerSink};
use super::sending::recent_busy_per_mille;
use super::thread::{DeferredWake, Next, NodeThread, Poller, Shared};
use super::thread_usage::thread_usage;

/// Maximum number of threads in a chain of delegated turns, in which each turn handles signals that the turn
/// before it sent. The next thread of a longer chain is woken.
const DELEGATED_THREADS_MAX: u32 = 8;

/// Maximum number of turns run in a borrowed slot before its thread is woken.
const DELEGATED_TURNS_MAX: u32 = 4;

/// Holds a thread's state. Empty before the thread begins and after it ends.
type ThreadSlot<S, H> = CachePadded<UnsafeCell<Option<NodeThread<S, H>>>>;

/// The slots of a node's threads, by index.
///
/// # Safety
/// At most one [`SlotGuard`] of a slot is in use at any time. The thread's own guard is not in use from
/// [`enter_sleep`] or [`detach`] until [`reattach`] returns. Another thread's guard is in use from [`borrow`]
/// until [`give_back`]. The cell ensures that these times do not overlap, and its atomics make the writes of
/// one holder visible to the next.
///
/// [`enter_sleep`]: crate::scheduler::sleep::SleepCell::enter_sleep
/// [`detach`]: crate::scheduler::sleep::SleepCell::detach
/// [`reattach`]: crate::scheduler::sleep::SleepCell::reattach
/// [`borrow`]: crate::scheduler::sleep::SleepCell::borrow
/// [`give_back`]: crate::scheduler::sleep::SleepCell::give_back
pub(super) struct ThreadSlots<S: Signal, H: Host<S>> {
    slots: Box<[ThreadSlot<S, H>]>,
    shared: Arc<Shared>,
}

// SAFETY: only the one thread that holds a slot reaches its content, which may be sent to that thread.
unsafe impl<S: Signal, H: Host<S>> Sync for ThreadSlots<S, H> where NodeThread<S, H>: Send {}

/// Access to a slot for a thread that holds it, as the slot's sleep cell says.
struct SlotGuard<'a, S: Signal, H: Host<S>> {
    slot: &'a ThreadSlot<S, H>,
    bell: &'a Doorbell,
}

impl<S: Signal, H: Host<S>> SlotGuard<'_, S, H> {
    #[inline(always)]
    fn with<R>(&mut self, action: impl FnOnce(&mut NodeThread<S, H>) -> R) -> R {
        self.slot.with_mut(|slot| {
            // SAFETY: this is the one `SlotGuard` of the slot that is in use, and it is borrowed exclusively.
            match unsafe { &mut *slot } {
                Some(guard) => action(guard),
                None => fail("a slot that is held is filled", format_args!("{:?}", self.bell)),
            }
        })
    }

    /// For the thread itself: runs `action` without holding the slot.
    #[inline]
    fn run_detached(&mut self, action: impl FnOnce()) {
        self.bell.cell.detach();
        action();
        self.bell.cell.reattach();
    }

    /// For the thread itself, after [`crate::scheduler::sleep::SleepCell::prepare_sleep`]: sleeps without
    /// holding the slot, unless input arrived since. Returns whether it slept.
    fn sleep(&mut self, location: SleepLocation, sleep: impl FnOnce()) -> bool {
        let sleeps = self.bell.cell.enter_sleep(location);
        if sleeps {
            sleep();
            self.bell.cell.reattach();
        }
        sleeps
    }

    /// Called by the slot's own thread: writes its output if necessary. If other threads compete for the CPU,
    /// the slot is released during the write. Otherwise the write ends before another thread could run a turn
    /// in the slot, and keeping the slot saves the cost of detaching.
    #[inline]
    fn write(&mut self, is_idle: bool, poller: &mut Poller, detached_io: &mut DetachedIo) {
        let Some((mut sockets, detaches_io)) =
            self.with(|own| Some((own.begin_write(is_idle, Some(poller))?, own.detaches_io)))
        else {
            return;
        };
        match detaches_io {
            true => self.run_detached(|| sockets.write_output(&mut detached_io.services())),
            false => sockets.write_output(&mut detached_io.services()),
        }
        self.with(|own| own.end_write(sockets, detached_io));
    }
}

impl<S: Signal, H: Host<S> + Send> ThreadSlots<S, H> {
    /// Empty slots of this number of threads.
    pub(super) fn new(threads: usize, shared: Arc<Shared>) -> Self {
        ThreadSlots { slots: (0..threads).map(|_| CachePadded(UnsafeCell::new(None))).collect(), shared }
    }

    /// Runs the calling thread's turns until the node halts.
    pub(super) fn run(&self, mut own: NodeThread<S, H>, mut poller: Poller, idle_bytes_max: usize) {
        own.engine.load.watch_os(thread_usage);
        let (thread, shared) = (own.engine.assignment().thread, &*self.shared);
        let mut detached_io = DetachedIo::new(idle_bytes_max);
        let mut guard = SlotGuard { slot: &self.slots[usize::from(thread)], bell: &shared.bells[usize::from(thread)] };
        // SAFETY: each thread runs once, and nobody can have borrowed the slot of a thread that never slept.
        guard.slot.with_mut(|slot| unsafe { *slot = Some(own) });
        loop {
            guard.with(|own| own.turn(&mut poller));
            guard.with(|own| self.resolve_deferred_wake(own));
            guard.write(false, &mut poller, &mut detached_io);
            match guard.with(|own| own.after_turn(&mut poller)) {
                Next::Turn => {}
                Next::Write => guard.write(true, &mut poller, &mut detached_io),
                Next::Sleep(location, timeout) => {
                    let sleep = || match location {
                        SleepLocation::Poll => poller.wait(timeout),
                        SleepLocation::Cell => shared.bells[usize::from(thread)].cell.sleep(Some(timeout)),
                    };
                    match guard.sleep(location, sleep) {
                        true => guard.with(|own| own.after_sleep(location, &mut poller)),
                        false => guard.with(|own| own.on_sleep_cancelled()),
                    }
                }
                Next::End => break,
            }
            // Signals published after the turn may have deferred another wake-up.
            guard.with(|own| self.resolve_deferred_wake(own));
        }
        // SAFETY: the cell is awake and stays so, hence nobody borrows the slot.
        drop(guard.slot.with_mut(|slot| unsafe { (*slot).take() }));
    }
}

impl<S: Signal, H: Host<S>> ThreadSlots<S, H> {
    /// If the calling thread has deferred a wake-up, runs the delegated turn or wakes the other thread.
    #[inline]
    fn resolve_deferred_wake(&self, own: &mut NodeThread<S, H>) {
        if own.deferred_wake.is_some() {
            self.resolve_deferred_wakes(own);
        }
    }

    #[inline(never)]
    fn resolve_deferred_wakes(&self, own: &mut NodeThread<S, H>) {
        let shared = &*self.shared;
        for _ in 0..DELEGATED_THREADS_MAX {
            let Some(deferred_wake) = own.deferred_wake.take() else { return };
            let bell = &shared.bells[usize::from(deferred_wake.thread)];
            let is_left_to_thread = own.is_saturated
                && has_spare_time(recent_busy_per_mille(&shared.loads, deferred_wake.thread, own.clock.now()));
            let phase = if is_left_to_thread { None } else { bell.cell.borrow() };
            match phase {
                Some(phase) => self.run_delegated_turns(deferred_wake, phase, bell, own),
                None => bell.wake(&own.clock),
            }
        }
        if let Some(deferred_wake) = own.deferred_wake.take() {
            shared.bells[usize::from(deferred_wake.thread)].wake(&own.clock);
        }
    }

    /// Runs turns in a slot that the caller has borrowed, and gives the slot back.
    fn run_delegated_turns(
        &self,
        deferred_wake: DeferredWake,
        phase: IdlePhase,
        bell: &Doorbell,
        own: &mut NodeThread<S, H>,
    ) {
        let own_thread = own.engine.assignment().thread;
        let may_write = own.world.sending.may_write_in_delegated_turns();
        let mut guard = SlotGuard { slot: &self.slots[usize::from(deferred_wake.thread)], bell };
        for _ in 0..DELEGATED_TURNS_MAX {
            let is_done = guard.with(|other| {
                let (handled, is_done) = other.delegated_turn(phase, deferred_wake.from, may_write);
                own.count_delegated_turn(handled);
                // If the delegated turn has itself deferred a wake-up, the caller takes it over. Only one
                // wake-up can stay deferred, so an earlier one for a third thread happens now. A wake-up of
                // the caller is dropped: the caller checks its mailboxes before it sleeps.
                if let Some(next) = other.deferred_wake.take().filter(|next| next.thread != own_thread)
                    && let Some(earlier) =
                        own.deferred_wake.replace(next).filter(|earlier| earlier.thread != next.thread)
                {
                    own.world.shared.bells[usize::from(earlier.thread)].wake(&own.clock);
                }
                is_done
            });
            if !is_done {
                break;
            }
            if bell.cell.give_back(phase) != ReturnOutcome::Refused {
                return;
            }
            // The thread is awake and waits for its slot, so it can continue by itself.
            if bell.cell.is_awaited() {
                break;
            }
        }
        bell.give_back_awake(phase, &own.clock);
    }

    /// Lets a thread go on that has got answers about files. If it sleeps, the calling worker may run its
    /// turn.
    fn go_on(&self, thread: usize, lane: FileLane) {
        SleepCell::fence_before_wakeup();
        let bell = &self.shared.bells[thread];
        // The answers of other lanes may be much work.
        match if lane == FileLane::Log { bell.cell.borrow() } else { None } {
            Some(phase @ IdlePhase::Asleep(_)) => self.run_answered_turns(thread, phase),
            // The thread reattaches and then checks for answers.
            Some(phase @ IdlePhase::Detached) => _ = bell.cell.give_back(phase),
            None => bell.wake(&self.shared.clock),
        }
    }

    /// Runs turns in the slot of a sleeping thread, which the calling worker has borrowed, and gives the slot
    /// back.
    fn run_answered_turns(&self, thread: usize, phase: IdlePhase) {
        let bell = &self.shared.bells[thread];
        let mut guard = SlotGuard { slot: &self.slots[thread], bell };
        for _ in 0..DELEGATED_TURNS_MAX {
            let is_done = guard.with(|own| {
                own.answered_turn() && {
                    self.resolve_deferred_wake(own);
                    own.end_answered_turn()
                }
            });
            if !is_done {
                break;
            }
            if bell.cell.give_back(phase) != ReturnOutcome::Refused {
                return;
            }
            if bell.cell.is_awaited() {
                break;
            }
        }
        bell.give_back_awake(phase, &self.shared.clock);
    }
}

impl<S: Signal, H: Host<S> + Send> AnswerSink for ThreadSlots<S, H> {
    fn deliver(&self, lane: FileLane, answers: Drain<'_, Answer>) {
        let mut last = None;
        for Answer { to, event } in answers {
            let thread = usize::from(to.thread);
            self.shared.file_answers[thread].0.push(to.block, event);
            if let Some(earlier) = last.replace(thread).filter(|earlier| *earlier != thread) {
                self.go_on(earlier, lane);
            }
        }
        if let Some(thread) = last {
            self.go_on(thread, lane);
        }
    }
}

/// The resources and results of a thread while it writes without holding its slot.
pub(super) struct DetachedIo {
    buffers: BufferPool,
    events: Vec<(Address, WorldEvent)>,
    parcels: Vec<(u16, SocketParcel)>,
}

impl DetachedIo {
    fn new(idle_bytes_max: usize) -> DetachedIo {
        DetachedIo { buffers: BufferPool::new(idle_bytes_max), events: Vec::new(), parcels: Vec::new() }
    }

    fn services(&mut self) -> Services<'_> {
        Services { buffers: &mut self.buffers, events: &mut self.events, parcels: &mut self.parcels }
    }

    /// Moves buffers, events and parcels to the thread's own services.
    #[inline]
    pub(super) fn give_to(&mut self, services: &mut Services<'_>) {
        services.buffers.take_over(&mut self.buffers);
        services.events.append(&mut self.events);
        services.parcels.append(&mut self.parcels);
    }
}
