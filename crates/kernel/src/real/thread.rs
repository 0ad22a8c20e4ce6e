//! Hot path: at most 300 instructions a turn with nothing but signals.
//!
//! What surrounds the turn of a thread in the real world: sockets, sending, spinning, sleeping.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use mio::{Events, Poll};

use crate::address::Address;
use crate::block::{Host, Signal};
use crate::context::{Duration, Time};
use crate::envelope::SocketParcel;
use crate::require;
use crate::scheduler::delegation::is_saturated;
use crate::scheduler::load::{LoadBoard, ThreadState};
use crate::scheduler::run::{Engine, Services, World};
use crate::scheduler::send::{OwnOutput, SendSettings};
use crate::scheduler::sleep::{Lease, SleepCell, SleepLocation};
use crate::scheduler::spin::SpinSettings;
use crate::sync::CachePadded;
use crate::world::{WorldEvent, WorldRequest};

use super::assistant::Assistant;
use super::doorbell::Doorbell;
use super::file::Files;
use super::sending::{SendWord, Sending, lately_per_mille};
use super::socket::{OutputCounts, Sockets};
use super::spinner::{SpinWord, Spinner};
use super::thread_slot::DetachedIo;
use super::thread_usage::Contention;
use crate::clock::Clock;

/// The poll's token for being woken.
pub(super) const WAKE_TOKEN: usize = usize::MAX;

/// Signals after which sockets are looked at although there is other work.
const SIGNALS_PER_POLL: u64 = 128;

/// The longest sleep, so that load figures and the wall clock never get old.
const SLEEP_MAX: Duration = Duration::from_millis(1_000);

/// The longest sleep of a thread that waits for room in other threads' rings, which do not wake it.
const BLOCKED_SLEEP: Duration = Duration::from_micros(100);

/// Events taken from one poll.
const POLL_EVENTS: usize = 256;

/// What all threads of a node share.
pub(super) struct Shared {
    pub(super) bells: Vec<Doorbell>,
    pub(super) clock: Clock,
    pub(super) loads: Arc<LoadBoard>,
    /// Blocks shall end what is begun.
    pub(super) stop: AtomicBool,
    /// Rung when a stop is asked for.
    pub(super) stop_bell: (Mutex<()>, Condvar),
    /// Threads shall end.
    pub(super) halt: AtomicBool,
    /// How threads spin.
    pub(super) spin: SpinWord,
    /// How threads send.
    pub(super) send: SendWord,
    /// For each thread, whether it had nothing to do when it last looked, and how often it had something.
    pub(super) activity: Vec<CachePadded<Activity>>,
}

#[derive(Default)]
pub(super) struct Activity {
    pub(super) idle: AtomicBool,
    pub(super) turns: std::sync::atomic::AtomicU64,
}

impl Shared {
    pub(super) fn request_stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake_all();
        // A waiter that looked before the store holds the lock until it waits, so it is woken.
        drop(self.stop_bell.0.lock());
        self.stop_bell.1.notify_all();
    }

    pub(super) fn wake_all(&self) {
        SleepCell::fence_before_claim();
        for bell in &self.bells {
            bell.wake(&self.clock);
        }
    }
}

/// Sockets and files of one thread.
pub(super) struct RealWorld {
    pub(super) shared: Arc<Shared>,
    /// Not here while the thread writes and others may do the rest of its work.
    pub(super) sockets: Option<Box<Sockets>>,
    pub(super) assistant: Assistant,
    pub(super) sending: Sending,
    pub(super) files: Files,
}

impl World for RealWorld {
    fn socket_request(&mut self, request: WorldRequest, services: &mut Services<'_>) {
        // Otherwise a block sent to a socket of a recv instance that never was: while the sockets are away nothing is carried out.
        if let Some(sockets) = &mut self.sockets {
            sockets.carry_out(request, services);
        }
    }

    fn file_request(&mut self, from: Address, request: WorldRequest, services: &mut Services<'_>) {
        self.files.carry_out(from, request, services);
    }

    fn socket_parcel(&mut self, parcel: SocketParcel, services: &mut Services<'_>) {
        match (parcel, &mut self.sockets) {
            (SocketParcel::WriteOutput(batch), _) => self.assistant.take(batch, self.shared.clock.now()),
            (SocketParcel::Adopt(accepted), Some(sockets)) => {
                let (stream, peer, listener) = *accepted;
                sockets.adopt(stream, peer, listener, services);
            }
            (SocketParcel::OutputReturned(batch), Some(sockets)) => sockets.take_back(batch, services),
            (parcel, None) => require!(false, "{parcel:?} came to a thread without sockets"),
        }
    }

    fn set_spinning(&mut self, settings: &SpinSettings) {
        self.shared.spin.store(settings);
    }

    fn set_sending(&mut self, settings: &SendSettings) {
        self.shared.send.store(settings);
    }

    fn stop(&mut self) {
        self.shared.request_stop();
    }
}

impl RealWorld {
    fn has_input(&self) -> bool {
        self.sockets.as_deref().is_some_and(Sockets::has_input)
    }

    /// Whether clients of this process have told something that was not looked at yet.
    #[inline]
    fn has_ready_streams(&self) -> bool {
        self.sockets.as_deref().is_some_and(Sockets::has_ready_streams)
    }

    fn has_output(&self) -> bool {
        self.sockets.as_deref().is_some_and(Sockets::has_output) || self.assistant.has_output()
    }

    fn is_written(&self) -> bool {
        self.sockets.as_deref().is_none_or(Sockets::is_written) && !self.assistant.has_output()
    }

    /// Writes the output of own sockets, or gives it to helpers if `others_write`, and what others gave to this thread, as far as its load
    /// allows. What is left when the thread `is_idle` is written later, in its next turns.
    fn write_output(&mut self, others_write: bool, is_idle: bool, services: &mut Services<'_>) {
        if let Some(sockets) = &mut self.sockets
            && sockets.has_output()
        {
            match others_write {
                false => sockets.write_output(services),
                true => sockets.hand_over(&mut self.sending, is_idle, self.shared.clock.now(), services),
            }
        }
        if self.assistant.has_output() {
            let now = self.shared.clock.now();
            self.assistant.write_output(self.sending.helping_state(), is_idle, now, services);
        }
    }

    #[cold]
    fn adjust_sending(&mut self, now: Time) {
        let none = OutputCounts::default();
        let counts = self.sockets.as_deref().map_or(&none, |sockets| &sockets.written);
        self.sending.adjust(now, &self.shared.send, counts, &self.assistant);
    }
}

/// What tells a thread which of its sockets are ready; nothing if it has none. It stays with the thread itself, who waits in it while
/// others may hold the rest of what belongs to it.
pub(super) struct Poller(Option<(Poll, Events)>);

impl Poller {
    pub(super) fn new(poll: Option<Poll>) -> Poller {
        Poller(poll.map(|poll| (poll, Events::with_capacity(POLL_EVENTS))))
    }

    fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Asks the operating system which sockets are ready, waiting up to `longest`. Who asks must [`Poller::wake_receivers`] it before asking again.
    pub(super) fn wait(&mut self, longest: Duration) {
        let Some((poll, events)) = &mut self.0 else { return };
        let timeout = std::time::Duration::from_nanos(longest.0);
        if poll.poll(events, Some(timeout)).is_err() {
            // Interrupted by a signal; what is ready is told at the next poll.
            events.clear();
        }
    }

    /// Tells the sockets what was learnt.
    fn wake_receivers(&mut self, sockets: Option<&mut Sockets>) {
        let (Some((_, events)), Some(sockets)) = (&mut self.0, sockets) else { return };
        for event in events.iter().filter(|event| event.token().0 != WAKE_TOKEN) {
            let closed = event.is_read_closed() || event.is_error();
            sockets.on_ready(event.token().0, event.is_readable(), event.is_writable(), closed);
        }
        events.clear();
    }

    /// Looks which sockets are ready.
    fn poll_now(&mut self, sockets: Option<&mut Sockets>) {
        self.wait(Duration::ZERO);
        self.wake_receivers(sockets);
    }
}

/// What came of looking for work.
enum Spun {
    /// There is some. The sockets may not have been looked at yet, and a stream of signals must not keep it so.
    Work {
        polled: bool,
    },
    /// A timer is due, which a sleep would have told as well.
    Timer,
    Nothing,
}

/// A little work that was published for a thread that does not hold what belongs to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeferredWake {
    pub(super) thread: u16,
    /// Who sent it.
    pub(super) from: u16,
}

/// What a thread does after a turn.
pub(super) enum Next {
    /// The next turn.
    Turn,
    /// It writes what waits for its sockets.
    Write,
    /// It rests there, for so long at most, unless there was news since it let go.
    Rest(SleepLocation, Duration),
    /// It ends.
    End,
}

/// What belongs to one thread of a node. The thread holds it while it works; while it rests or writes, another may.
pub(super) struct NodeThread<S: Signal, H: Host<S>> {
    pub(super) engine: Engine<S, H>,
    pub(super) world: RealWorld,
    pub(super) clock: Clock,
    pub(super) spinner: Spinner,
    pub(super) is_stopping: bool,
    /// Threads to which something was published and which have not been told, and whether it is little.
    pub(super) published: Vec<(u16, bool)>,
    /// What this thread is to do for another, or to wake that for.
    pub(super) deferred_wake: Option<DeferredWake>,
    /// Whether it is away while it writes: others had its CPU lately when it could have run.
    pub(super) detaches_io: bool,
    pub(super) contention: Contention,
    /// Whether it was so busy lately that it leaves work to threads that have time.
    pub(super) is_saturated: bool,
    /// The ring from another thread that is looked at first in the next turn.
    pub(super) first_ring: usize,
    /// Signals handled since the sockets were looked at.
    pub(super) unpolled: u64,
    /// Signals handled in the last turn, and whether a backlog moved.
    pub(super) handled: u64,
    pub(super) moved: bool,
    /// Since when it has nothing to do.
    pub(super) idle_since: Time,
    /// Until when it rests, unless something comes.
    pub(super) rests_until: Time,
}

impl<S: Signal, H: Host<S>> NodeThread<S, H> {
    /// Takes what has come and does it, and publishes what is to be told to other threads.
    pub(super) fn turn(&mut self, poller: &mut Poller) {
        let now = self.clock.now();
        self.engine.load.enter(ThreadState::Executing, now);
        if now >= self.world.sending.due() {
            self.world.adjust_sending(now);
            self.is_saturated =
                is_saturated(lately_per_mille(&self.world.shared.loads, self.engine.seat().thread, now));
            self.detaches_io = self.contention.is_contended(now);
        }
        let wall_us = self.clock.wall_us(now);
        // Steps of long work take long, so the sockets are looked at after each.
        let mut is_long = self.engine.has_later_work();
        self.unpolled += self.engine.run(now, wall_us, self.first_ring);
        is_long |= self.engine.took_no_more();
        self.first_ring = self.first_ring.wrapping_add(1);
        self.check_for_stop();
        if self.unpolled >= SIGNALS_PER_POLL || is_long {
            poller.poll_now(self.world.sockets.as_deref_mut());
            self.unpolled = 0;
        }
        if let Some(sockets) = &mut self.world.sockets
            && (sockets.has_ready_streams() || sockets.has_input())
        {
            // Connections in memory are read without a poll, and must not keep sockets from being looked at.
            self.unpolled += sockets.take_input(&mut self.engine);
        }
        self.handled = self.engine.end_turn();
        if self.is_stopping && self.handled > 0 {
            self.publish_work();
        }
        self.engine.carry_out(&mut self.world);
        self.moved = self.publish();
    }

    /// What to do after a turn whose output was written.
    pub(super) fn after_turn(&mut self, poller: &mut Poller) -> Next {
        // After a turn that did something there is often more; where a look tells that there is not, an empty turn is
        // saved.
        if self.moved
            || self.engine.has_local_work()
            || self.engine.has_requests()
            || self.handled > 0 && (self.engine.is_blocked() || self.engine.has_mail())
        {
            return Next::Turn;
        }
        self.publish();
        if self.world.has_output() {
            return Next::Write;
        }
        if self.deferred_wake.is_some()
            || self.world.has_ready_streams()
            || self.world.has_input() && self.engine.accepts_work()
        {
            return Next::Turn;
        }
        if self.world.shared.halt.load(Ordering::Acquire) {
            // The last figures.
            self.world.adjust_sending(self.clock.now());
            return Next::End;
        }
        self.wait(poller)
    }

    /// Prepares to write output, or leaves that to others. Returns the sockets if it is for this thread to write to them, which it does
    /// without the rest of what belongs to it.
    #[inline]
    pub(super) fn begin_write(&mut self, is_idle: bool, poller: Option<&mut Poller>) -> Option<Box<Sockets>> {
        if !self.world.has_output() {
            return None;
        }
        if poller.is_some() {
            self.engine.load.enter(ThreadState::Sending, self.clock.now());
        }
        let others_write = match self.world.sending.own_output() {
            OwnOutput::Write => false,
            OwnOutput::HandOver => true,
            OwnOutput::WriteBeforeSleep => !is_idle && self.has_more_work(poller),
        };
        if !others_write && !self.world.assistant.has_output() {
            return self.world.sockets.take();
        }
        // What is lent or given back is waited for.
        self.engine.with_services(|services| self.world.write_output(others_write, is_idle, services));
        if others_write || self.world.sockets.is_none() {
            self.publish();
        }
        None
    }

    /// The thread has written.
    #[inline]
    pub(super) fn end_write(&mut self, sockets: Box<Sockets>, detached_io: &mut DetachedIo) {
        self.world.sockets = Some(sockets);
        self.engine.with_services(|services| detached_io.give_to(services));
    }

    /// Whether there is other work than sending, as far as a look tells.
    #[cold]
    fn has_more_work(&mut self, poller: Option<&mut Poller>) -> bool {
        if self.engine.has_local_work() || self.engine.has_mail() || self.world.has_input() {
            return true;
        }
        if let Some(poller) = poller {
            poller.poll_now(self.world.sockets.as_deref_mut());
        }
        self.world.has_input()
    }

    /// Publishes what was sent and wakes those who sleep, but for one for which this thread, or the one that makes this turn for it, may
    /// stand in. Returns whether a backlog moved.
    #[inline]
    fn publish(&mut self) -> bool {
        let published = &mut self.published;
        let moved = self.engine.flush(|thread, is_inline_eligible| published.push((thread, is_inline_eligible)));
        require!(self.engine.remote().is_empty(), "a signal for another node, and no way to it");
        if !self.published.is_empty() {
            self.wake_receivers();
        }
        moved
    }

    /// Tells of what was published. Work for several threads is done at the same time, so only one of them is stood in for.
    fn wake_receivers(&mut self) {
        SleepCell::fence_before_claim();
        let shared = &self.world.shared;
        for (thread, is_inline_eligible) in self.published.drain(..) {
            let bell = &shared.bells[usize::from(thread)];
            match self.deferred_wake {
                None if is_inline_eligible && bell.may_be_delegated && bell.cell.may_be_borrowed() => {
                    self.deferred_wake = Some(DeferredWake { thread, from: self.engine.seat().thread });
                }
                Some(deferred_wake) if deferred_wake.thread == thread && is_inline_eligible => {}
                Some(deferred_wake) if deferred_wake.thread == thread => {
                    self.deferred_wake = None;
                    bell.wake(&self.clock);
                }
                _ => bell.wake(&self.clock),
            }
        }
    }

    /// This thread has handled so many signals in a turn of another.
    pub(super) fn count_delegated_turn(&mut self, signals: u64) {
        self.unpolled += signals;
        self.engine.load.count_signals(signals);
    }

    /// A turn that thread `from` makes, with what it has sent, while this one does what the lease says. Returns how many signals were
    /// handled, and whether there is nothing left to do.
    pub(super) fn delegated_turn(&mut self, lease: Lease, from: u16, may_write: bool) -> (u64, bool) {
        // A thread that is told to stop tells when it has come to rest, and must see its work itself.
        if self.is_stopping || self.engine.has_later_work() || self.engine.is_blocked() {
            return (0, false);
        }
        let now = self.clock.now();
        let wall_us = self.clock.wall_us(now);
        let own_time = self.engine.time();
        let handled = self.engine.run_delegated(now, wall_us, from);
        if lease == Lease::Detached {
            // The sockets are not here, and the turn that the thread has made is not over.
            self.publish();
            self.engine.set_time(own_time);
            return (handled, true);
        }
        self.engine.carry_out(&mut self.world);
        self.publish();
        if may_write && let Some(mut sockets) = self.begin_write(true, None) {
            self.engine.with_services(|services| sockets.write_output(services));
            self.world.sockets = Some(sockets);
            self.publish();
        }
        self.engine.close_turn(self.clock.now());
        (handled, self.prepare_rest_if_quiet())
    }

    /// Lets go of a thread that was lent, if it may rest until the time that it rests anyway.
    fn prepare_rest_if_quiet(&mut self) -> bool {
        if self.engine.has_local_work()
            || self.engine.has_requests()
            || self.engine.is_blocked()
            || self.world.has_output()
            || self.world.has_input()
            || self.engine.next_timer().is_some_and(|due| due < self.rests_until)
        {
            return false;
        }
        let shared = self.world.shared.clone();
        let cell = &shared.bells[usize::from(self.engine.seat().thread)].cell;
        cell.prepare_rest();
        if self.has_wake_reason() {
            cell.cancel_rest();
            return false;
        }
        true
    }

    /// Whether anything came that ends a rest.
    fn has_wake_reason(&mut self) -> bool {
        let shared = &self.world.shared;
        let flags = (shared.stop.load(Ordering::Acquire), shared.halt.load(Ordering::Acquire));
        flags.0 != self.is_stopping || flags.1 || self.engine.has_mail() || self.world.has_ready_streams()
    }

    fn check_for_stop(&mut self) {
        if self.is_stopping || !self.world.shared.stop.load(Ordering::Relaxed) {
            return;
        }
        self.is_stopping = true;
        if let Some(sockets) = &mut self.world.sockets {
            sockets.stop_reading();
        }
        let directory = self.engine.seat().directory.clone();
        for (module, instance) in self.engine.seat().modules.clone() {
            self.engine.deliver_now(directory.address(module, instance), WorldEvent::Stopping);
        }
    }

    /// Spins, and then lets go, until there may be something to do.
    fn wait(&mut self, poller: &mut Poller) -> Next {
        let index = usize::from(self.engine.seat().thread);
        let idle_since = self.clock.now();
        self.idle_since = idle_since;
        self.engine.close_turn(idle_since);
        let Shared { loads, spin, .. } = &*self.world.shared;
        let busy_per_mille = || loads.thread(index as u16).map_or(0, |load| load.moment.busy_per_mille());
        if self.spinner.begin_idle(idle_since, spin, busy_per_mille) {
            self.engine.load.set_spin(self.spinner.spin());
        }
        // Who waits for room in other rings would not see it come while spinning.
        if self.spinner.spin().0 > 0 && !self.world.has_input() && !self.engine.is_blocked() {
            match self.spin_for_work(poller, idle_since) {
                Spun::Work { polled } => {
                    self.spinner.end_idle(idle_since, self.clock.now(), false);
                    if polled {
                        self.unpolled = 0;
                    }
                    return Next::Turn;
                }
                Spun::Timer => {
                    self.spinner.end_idle_without_work();
                    self.unpolled = 0;
                    return Next::Turn;
                }
                Spun::Nothing => {}
            }
        }
        let shared = self.world.shared.clone();
        if self.is_stopping {
            self.publish_activity(&shared.activity[index]);
        }
        let cell = &shared.bells[index].cell;
        // With input still to be read, it is room that is lacking; and new input is of no use then.
        let is_blocked = self.engine.is_blocked() || self.world.has_input();
        let place = if poller.is_some() && !is_blocked { SleepLocation::Elsewhere } else { SleepLocation::Cell };
        cell.prepare_rest();
        if self.has_wake_reason() {
            cell.cancel_rest();
            return Next::Turn;
        }
        let now = self.clock.now();
        let longest = self.longest_sleep(now, is_blocked);
        self.rests_until = now.plus(longest);
        self.engine.load.enter(if is_blocked { ThreadState::BufferFull } else { ThreadState::Sleeping }, now);
        self.spinner.begin_sleep(now);
        Next::Rest(place, longest)
    }

    /// The thread did not sleep after all.
    #[cold]
    pub(super) fn cancel_rest(&mut self) {
        self.spinner.end_sleep(self.clock.now(), None);
    }

    /// The thread has come back from a sleep there.
    pub(super) fn end_rest(&mut self, place: SleepLocation, poller: &mut Poller) {
        let shared = self.world.shared.clone();
        let bell = &shared.bells[usize::from(self.engine.seat().thread)];
        if place == SleepLocation::Elsewhere {
            poller.wake_receivers(self.world.sockets.as_deref_mut());
        }
        let now = self.clock.now();
        self.spinner.end_sleep(now, bell.take_rung());
        let is_blocked = self.engine.is_blocked();
        match self.engine.has_mail() || self.world.has_ready_streams() || self.world.has_input() {
            _ if is_blocked => {}
            true => self.spinner.end_idle(self.idle_since, now, true),
            false => self.spinner.end_idle_without_work(),
        }
        if place == SleepLocation::Elsewhere {
            self.unpolled = 0;
        }
    }

    fn longest_sleep(&self, now: Time, is_blocked: bool) -> Duration {
        let longest = if is_blocked { BLOCKED_SLEEP } else { SLEEP_MAX };
        self.engine.next_timer().map_or(longest, |due| due.since(now).min(longest))
    }

    /// While the node stops, whoever asked for it looks at this until all threads have come to rest.
    fn publish_activity(&mut self, activity: &Activity) {
        let idle = self.engine.is_quiet() && self.world.is_written();
        activity.turns.fetch_add(u64::from(!idle), Ordering::Relaxed);
        activity.idle.store(idle, Ordering::Release);
    }

    /// Takes back that the thread had come to rest: one that spins may work on without sleeping in between.
    #[cold]
    fn publish_work(&mut self) {
        let activity = &self.world.shared.activity[usize::from(self.engine.seat().thread)];
        activity.idle.store(false, Ordering::Release);
        activity.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Looks for work for the chosen time.
    fn spin_for_work(&mut self, poller: &mut Poller, start: Time) -> Spun {
        self.engine.load.enter(ThreadState::Spinning, start);
        let spin = self.spinner.spin();
        let call = self.spinner.call().min(spin);
        let (mut polled_at, mut polled) = (start, false);
        loop {
            let now = loop {
                if self.engine.has_mail() || self.world.has_ready_streams() {
                    return Spun::Work { polled };
                }
                std::hint::spin_loop();
                let now = self.clock.now();
                if now.since(polled_at) >= call {
                    break now;
                }
            };
            polled_at = now;
            poller.poll_now(self.world.sockets.as_deref_mut());
            polled = true;
            if self.world.has_output() || self.world.has_input() {
                return Spun::Work { polled };
            }
            if self.engine.next_timer().is_some_and(|due| due <= now) {
                return Spun::Timer;
            }
            if now.since(start) >= spin || self.world.shared.halt.load(Ordering::Relaxed) {
                return Spun::Nothing;
            }
        }
    }
}
