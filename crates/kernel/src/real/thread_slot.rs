//! Hot path: at most 40 instructions a turn that neither writes nor has an errand.
//!
//! What belongs to each thread of a node, and who holds it: the thread itself while it works, or another that stands in for it.
//!
//! To wake a thread costs both sides more than most of what it is woken for. So who has sent little to a thread that sleeps does
//! it himself, and so does who has sent it to one that writes to its sockets, which it does without holding the rest: the writing often
//! takes its CPU, for it wakes a client. What belongs to a thread is no less its own for that: one holds it at a time, and nothing
//! that runs in it can tell.

use crate::block::{Host, Signal};
use crate::buffer::BufferPool;
use crate::invariant::fail;
use crate::scheduler::delegation::has_spare_time;
use crate::scheduler::run::Services;
use crate::scheduler::sleep::{Lease, ReturnOutcome, SleepLocation};
use crate::sync::{CachePadded, UnsafeCell};
use crate::world::WorldEvent;
use crate::{address::Address, envelope::SocketParcel};

use super::doorbell::Doorbell;
use super::sending::lately_per_mille;
use super::thread::{DeferredWake, Next, NodeThread, Poller, Shared};
use super::thread_usage::thread_usage;

/// For so many threads one stands in after a turn, one after the other, each for what came of the one before; the last is woken.
const DELEGATED_THREADS_MAX: u32 = 8;

/// Turns that are made for another thread before it is woken.
const DELEGATED_TURNS_MAX: u32 = 4;

/// Where what belongs to a thread stands; empty before the thread has begun and after it has ended.
type ThreadSlot<S, H> = CachePadded<UnsafeCell<Option<NodeThread<S, H>>>>;

/// What belongs to the threads of a node, each in its place.
///
/// # Safety
/// There is at most one [`SlotGuard`] of a place at a time: that of the thread itself, which is of no use from when the cell rests or is left
/// until it has come back; or that of another, from when the cell was borrowed until it is given back. The cell sees to that, and hands
/// over what was written.
pub(super) struct ThreadSlots<S: Signal, H: Host<S>>(Box<[ThreadSlot<S, H>]>);

// SAFETY: what stands in a place is reached by the one thread that holds it, and may be sent to it.
unsafe impl<S: Signal, H: Host<S>> Sync for ThreadSlots<S, H> where NodeThread<S, H>: Send {}

/// The right to reach what belongs to a thread.
struct SlotGuard<'a, S: Signal, H: Host<S>> {
    slot: &'a ThreadSlot<S, H>,
    bell: &'a Doorbell,
}

impl<S: Signal, H: Host<S>> SlotGuard<'_, S, H> {
    #[inline(always)]
    fn with<R>(&mut self, action: impl FnOnce(&mut NodeThread<S, H>) -> R) -> R {
        self.slot.with_mut(|slot| {
            // SAFETY: this is the one `SlotGuard` of the place that is of use, and it is borrowed.
            match unsafe { &mut *slot } {
                Some(guard) => action(guard),
                None => fail("a place that is held is filled", format_args!("{:?}", self.bell)),
            }
        })
    }

    /// For the thread itself: does something without holding the place.
    #[inline]
    fn detached(&mut self, action: impl FnOnce()) {
        self.bell.cell.detach();
        action();
        self.bell.cell.reattach();
    }

    /// For the thread itself, which has let go: sleeps without holding the place, unless there was news since. Returns whether it did.
    fn rest(&mut self, location: SleepLocation, sleep: impl FnOnce()) -> bool {
        let rests = self.bell.cell.begin_rest(location);
        if rests {
            sleep();
            self.bell.cell.reattach();
        }
        rests
    }

    /// For the thread itself: writes its output, if it is to do that, without holding the place if others have its CPU now and then. A
    /// thread that keeps its CPU is back before anybody could have done anything for it.
    #[inline]
    fn write(&mut self, is_idle: bool, poller: &mut Poller, detached_io: &mut DetachedIo) {
        let Some((mut sockets, detaches_io)) =
            self.with(|own| Some((own.begin_write(is_idle, Some(poller))?, own.detaches_io)))
        else {
            return;
        };
        match detaches_io && self.bell.may_be_delegated {
            true => self.detached(|| sockets.write_output(&mut detached_io.services())),
            false => sockets.write_output(&mut detached_io.services()),
        }
        self.with(|own| own.end_write(sockets, detached_io));
    }
}

impl<S: Signal, H: Host<S> + Send> ThreadSlots<S, H> {
    /// Empty places.
    pub(super) fn new(threads: usize) -> Self {
        ThreadSlots((0..threads).map(|_| CachePadded(UnsafeCell::new(None))).collect())
    }

    /// Runs a thread of a node, the calling one, until the node halts.
    pub(super) fn run(&self, mut own: NodeThread<S, H>, mut poller: Poller, idle_bytes_max: usize) {
        own.engine.load.watch_os(thread_usage);
        let (thread, shared) = (own.engine.seat().thread, own.world.shared.clone());
        let mut detached_io = DetachedIo::new(idle_bytes_max);
        let mut guard = SlotGuard { slot: &self.0[usize::from(thread)], bell: &shared.bells[usize::from(thread)] };
        // SAFETY: each thread runs once, and a cell that never rested was never borrowed.
        guard.slot.with_mut(|slot| unsafe { *slot = Some(own) });
        loop {
            guard.with(|own| own.turn(&mut poller));
            guard.with(|own| self.resolve_deferred_wake(own, &shared));
            guard.write(false, &mut poller, &mut detached_io);
            match guard.with(|own| own.after_turn(&mut poller)) {
                Next::Turn => {}
                Next::Write => guard.write(true, &mut poller, &mut detached_io),
                Next::Rest(location, longest) => {
                    let sleep = || match location {
                        SleepLocation::Elsewhere => poller.wait(longest),
                        SleepLocation::Cell => shared.bells[usize::from(thread)].cell.sleep(Some(longest)),
                    };
                    match guard.rest(location, sleep) {
                        true => guard.with(|own| own.end_rest(location, &mut poller)),
                        false => guard.with(|own| own.cancel_rest()),
                    }
                }
                Next::End => break,
            }
            // Of what was published after the turn.
            guard.with(|own| self.resolve_deferred_wake(own, &shared));
        }
        // SAFETY: the cell is awake and stays so. What belonged to the thread ends with it.
        drop(guard.slot.with_mut(|slot| unsafe { (*slot).take() }));
    }
}

impl<S: Signal, H: Host<S>> ThreadSlots<S, H> {
    /// Does what the calling thread sent to another that does not hold what belongs to it, or wakes that.
    #[inline]
    fn resolve_deferred_wake(&self, own: &mut NodeThread<S, H>, shared: &Shared) {
        if own.deferred_wake.is_some() {
            self.resolve_deferred_wakes(own, shared);
        }
    }

    #[inline(never)]
    fn resolve_deferred_wakes(&self, own: &mut NodeThread<S, H>, shared: &Shared) {
        for _ in 0..DELEGATED_THREADS_MAX {
            let Some(deferred_wake) = own.deferred_wake.take() else { return };
            let bell = &shared.bells[usize::from(deferred_wake.thread)];
            let leaves_it = own.is_saturated
                && has_spare_time(lately_per_mille(&shared.loads, deferred_wake.thread, own.clock.now()));
            let lease = if leaves_it { None } else { bell.cell.borrow() };
            match lease {
                Some(lease) => self.run_delegated_turns(deferred_wake, lease, bell, own),
                None => bell.wake(&own.clock),
            }
        }
        if let Some(deferred_wake) = own.deferred_wake.take() {
            shared.bells[usize::from(deferred_wake.thread)].wake(&own.clock);
        }
    }

    /// Makes turns for a thread that the caller has borrowed, and gives it back.
    fn run_delegated_turns(
        &self,
        deferred_wake: DeferredWake,
        lease: Lease,
        bell: &Doorbell,
        own: &mut NodeThread<S, H>,
    ) {
        let own_thread = own.engine.seat().thread;
        let may_write = own.world.sending.may_write_in_delegated_turns();
        let mut guard = SlotGuard { slot: &self.0[usize::from(deferred_wake.thread)], bell };
        for _ in 0..DELEGATED_TURNS_MAX {
            let is_done = guard.with(|other| {
                let (handled, is_done) = other.delegated_turn(lease, deferred_wake.from, may_write);
                own.count_delegated_turn(handled);
                // What is for the caller itself it sees when it looks, before it rests.
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
            if bell.cell.give_back(lease) != ReturnOutcome::Refused {
                return;
            }
            if bell.cell.is_awaited() {
                break;
            }
        }
        bell.give_back_awake(lease, &own.clock);
    }
}

/// What a thread uses and makes while it writes without holding what belongs to it.
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

    /// Gives all to the services of the thread.
    #[inline]
    pub(super) fn give_to(&mut self, services: &mut Services<'_>) {
        services.buffers.take_over(&mut self.buffers);
        services.events.append(&mut self.events);
        services.parcels.append(&mut self.parcels);
    }
}
