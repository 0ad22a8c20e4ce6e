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
use crate::scheduler::run::Services;
use crate::scheduler::sleep::{GivenBack, Lease, SleepPlace};
use crate::scheduler::stand_in::is_free;
use crate::sync::{CachePadded, UnsafeCell};
use crate::world::WorldEvent;
use crate::{address::Address, envelope::SocketParcel};

use super::doorbell::Doorbell;
use super::sending::lately_per_mille;
use super::thread::{Errand, Next, NodeThread, Poller, Shared};
use super::thread_usage::thread_usage;

/// For so many threads one stands in after a turn, one after the other, each for what came of the one before; the last is woken.
const STAND_INS_MAX: u32 = 8;

/// Turns that are made for another thread before it is woken.
const TURNS_MAX: u32 = 4;

/// Where what belongs to a thread stands; empty before the thread has begun and after it has ended.
type Place<S, H> = CachePadded<UnsafeCell<Option<NodeThread<S, H>>>>;

/// What belongs to the threads of a node, each in its place.
///
/// # Safety
/// There is at most one [`Held`] of a place at a time: that of the thread itself, which is of no use from when the cell rests or is left
/// until it has come back; or that of another, from when the cell was borrowed until it is given back. The cell sees to that, and hands
/// over what was written.
pub(super) struct Places<S: Signal, H: Host<S>>(Box<[Place<S, H>]>);

// SAFETY: what stands in a place is reached by the one thread that holds it, and may be sent to it.
unsafe impl<S: Signal, H: Host<S>> Sync for Places<S, H> where NodeThread<S, H>: Send {}

/// The right to reach what belongs to a thread.
struct Held<'a, S: Signal, H: Host<S>> {
    place: &'a Place<S, H>,
    bell: &'a Doorbell,
}

impl<S: Signal, H: Host<S>> Held<'_, S, H> {
    #[inline(always)]
    fn with<R>(&mut self, action: impl FnOnce(&mut NodeThread<S, H>) -> R) -> R {
        self.place.with_mut(|place| {
            // SAFETY: this is the one `Held` of the place that is of use, and it is borrowed.
            match unsafe { &mut *place } {
                Some(held) => action(held),
                None => fail("a place that is held is filled", format_args!("{:?}", self.bell)),
            }
        })
    }

    /// For the thread itself: does something without holding the place.
    #[inline]
    fn leave(&mut self, action: impl FnOnce()) {
        self.bell.cell.leave();
        action();
        self.bell.cell.come_back();
    }

    /// For the thread itself, which has let go: sleeps without holding the place, unless there was news since. Returns whether it did.
    fn rest(&mut self, place: SleepPlace, sleep: impl FnOnce()) -> bool {
        let rests = self.bell.cell.rest(place);
        if rests {
            sleep();
            self.bell.cell.come_back();
        }
        rests
    }

    /// For the thread itself: writes its output, if it is to do that, without holding the place if others have its CPU now and then. A
    /// thread that keeps its CPU is back before anybody could have done anything for it.
    #[inline]
    fn write(&mut self, is_idle: bool, poller: &mut Poller, aside: &mut Aside) {
        let Some((mut sockets, leaves)) = self.with(|own| Some((own.begin_write(is_idle, Some(poller))?, own.leaves)))
        else {
            return;
        };
        match leaves && self.bell.may_be_lent {
            true => self.leave(|| sockets.write_output(&mut aside.services())),
            false => sockets.write_output(&mut aside.services()),
        }
        self.with(|own| own.end_write(sockets, aside));
    }
}

impl<S: Signal, H: Host<S> + Send> Places<S, H> {
    /// Empty places.
    pub(super) fn new(threads: usize) -> Self {
        Places((0..threads).map(|_| CachePadded(UnsafeCell::new(None))).collect())
    }

    /// Runs a thread of a node, the calling one, until the node halts.
    pub(super) fn run(&self, mut own: NodeThread<S, H>, mut poller: Poller, idle_bytes_max: usize) {
        own.engine.load.watch_os(thread_usage);
        let (thread, shared) = (own.engine.seat().thread, own.world.shared.clone());
        let mut aside = Aside::new(idle_bytes_max);
        let mut held = Held { place: &self.0[usize::from(thread)], bell: &shared.bells[usize::from(thread)] };
        // SAFETY: each thread runs once, and a cell that never rested was never borrowed.
        held.place.with_mut(|place| unsafe { *place = Some(own) });
        loop {
            held.with(|own| own.turn(&mut poller));
            held.with(|own| self.run_errand(own, &shared));
            held.write(false, &mut poller, &mut aside);
            match held.with(|own| own.after_turn(&mut poller)) {
                Next::Turn => {}
                Next::Write => held.write(true, &mut poller, &mut aside),
                Next::Rest(place, longest) => {
                    let sleep = || match place {
                        SleepPlace::Elsewhere => poller.wait(longest),
                        SleepPlace::Cell => shared.bells[usize::from(thread)].cell.sleep(Some(longest)),
                    };
                    match held.rest(place, sleep) {
                        true => held.with(|own| own.end_rest(place, &mut poller)),
                        false => held.with(|own| own.go_on()),
                    }
                }
                Next::End => break,
            }
            // Of what was published after the turn.
            held.with(|own| self.run_errand(own, &shared));
        }
        // SAFETY: the cell is awake and stays so. What belonged to the thread ends with it.
        drop(held.place.with_mut(|place| unsafe { (*place).take() }));
    }
}

impl<S: Signal, H: Host<S>> Places<S, H> {
    /// Does what the calling thread sent to another that does not hold what belongs to it, or wakes that.
    #[inline]
    fn run_errand(&self, own: &mut NodeThread<S, H>, shared: &Shared) {
        if own.errand.is_some() {
            self.run_errands(own, shared);
        }
    }

    #[inline(never)]
    fn run_errands(&self, own: &mut NodeThread<S, H>, shared: &Shared) {
        for _ in 0..STAND_INS_MAX {
            let Some(errand) = own.errand.take() else { return };
            let bell = &shared.bells[usize::from(errand.thread)];
            let leaves_it = own.is_full && is_free(lately_per_mille(&shared.loads, errand.thread, own.clock.now()));
            let lease = if leaves_it { None } else { bell.cell.borrow() };
            match lease {
                Some(lease) => self.stand_in_for(errand, lease, bell, own),
                None => bell.wake(&own.clock),
            }
        }
        if let Some(errand) = own.errand.take() {
            shared.bells[usize::from(errand.thread)].wake(&own.clock);
        }
    }

    /// Makes turns for a thread that the caller has borrowed, and gives it back.
    fn stand_in_for(&self, errand: Errand, lease: Lease, bell: &Doorbell, own: &mut NodeThread<S, H>) {
        let own_thread = own.engine.seat().thread;
        let may_write = own.world.sending.may_write_in_lent_turns();
        let mut held = Held { place: &self.0[usize::from(errand.thread)], bell };
        for _ in 0..TURNS_MAX {
            let is_done = held.with(|other| {
                let (handled, is_done) = other.lent_turn(lease, errand.from, may_write);
                own.note_lent_turn(handled);
                // What is for the caller itself it sees when it looks, before it rests.
                if let Some(next) = other.errand.take().filter(|next| next.thread != own_thread)
                    && let Some(earlier) = own.errand.replace(next).filter(|earlier| earlier.thread != next.thread)
                {
                    own.world.shared.bells[usize::from(earlier.thread)].wake(&own.clock);
                }
                is_done
            });
            if !is_done {
                break;
            }
            if bell.cell.give_back(lease) != GivenBack::No {
                return;
            }
            if bell.cell.is_wanted() {
                break;
            }
        }
        bell.give_back_awake(lease, &own.clock);
    }
}

/// What a thread uses and makes while it writes without holding what belongs to it.
pub(super) struct Aside {
    buffers: BufferPool,
    events: Vec<(Address, WorldEvent)>,
    parcels: Vec<(u16, SocketParcel)>,
}

impl Aside {
    fn new(idle_bytes_max: usize) -> Aside {
        Aside { buffers: BufferPool::new(idle_bytes_max), events: Vec::new(), parcels: Vec::new() }
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
