//! Hot path: at most 300 instructions a turn with nothing but signals.
//!
//! The surroundings of a thread's turn in the real world: sockets, sending, spinning and sleeping.

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
use crate::scheduler::sleep::{IdlePhase, SleepCell, SleepLocation};
use crate::scheduler::spin::SpinSettings;
use crate::sync::CachePadded;
use crate::world::{WorldEvent, WorldRequest};

use super::doorbell::Doorbell;
use super::file::Files;
use super::foreign_output::ForeignOutput;
use super::sending::{AtomicSendSettings, Sending, recent_busy_per_mille};
use super::socket::{OutputCounts, Sockets};
use super::spinner::{AtomicSpinSettings, Spinner};
use super::thread_slot::DetachedIo;
use super::thread_usage::Contention;
use crate::clock::Clock;

/// The poll's token for being woken.
pub(super) const WAKE_TOKEN: usize = usize::MAX;

/// Signals after which sockets are polled although there is other work.
const SIGNALS_PER_POLL: u64 = 128;

/// Maximum sleep, so that load figures and the wall clock stay current.
const SLEEP_MAX: Duration = Duration::from_millis(1_000);

/// Maximum sleep of a thread that waits for space in other threads' rings. Making space wakes nobody.
const BLOCKED_SLEEP: Duration = Duration::from_micros(100);

/// Maximum number of events from one poll.
const POLL_EVENTS: usize = 256;

/// State that all threads of a node share.
pub(super) struct Shared {
    pub(super) bells: Vec<Doorbell>,
    pub(super) clock: Clock,
    pub(super) loads: Arc<LoadBoard>,
    /// Asks blocks to finish their work.
    pub(super) stop: AtomicBool,
    /// Notified when a stop is requested.
    pub(super) stop_requested: (Mutex<()>, Condvar),
    /// Asks threads to end.
    pub(super) halt: AtomicBool,
    /// Current spin settings.
    pub(super) spin: AtomicSpinSettings,
    /// Current send settings.
    pub(super) send: AtomicSendSettings,
    /// For each thread, whether it was idle at its last check, and how often it was not. Used during a stop
    /// only.
    pub(super) activity: Vec<CachePadded<Activity>>,
}

#[derive(Default)]
pub(super) struct Activity {
    pub(super) idle: AtomicBool,
    pub(super) busy_checks: std::sync::atomic::AtomicU64,
}

impl Shared {
    pub(super) fn request_stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake_all();
        // A waiter that tested `stop` before the store holds the lock until it waits. Taking the lock here
        // ensures that the notification comes after that.
        drop(self.stop_requested.0.lock());
        self.stop_requested.1.notify_all();
    }

    pub(super) fn wake_all(&self) {
        SleepCell::fence_before_wakeup();
        for bell in &self.bells {
            bell.wake(&self.clock);
        }
    }
}

/// Sockets and files of one thread.
pub(super) struct RealWorld {
    pub(super) shared: Arc<Shared>,
    /// Taken out while the thread writes with its I/O detached.
    pub(super) sockets: Option<Box<Sockets>>,
    pub(super) foreign_output: ForeignOutput,
    pub(super) sending: Sending,
    pub(super) files: Files,
}

impl World for RealWorld {
    fn socket_request(&mut self, request: WorldRequest, services: &mut Services<'_>) {
        // Without sockets, the request names an instance that never existed: while sockets are detached
        // nothing is carried out here.
        if let Some(sockets) = &mut self.sockets {
            sockets.carry_out(request, services);
        }
    }

    fn file_request(&mut self, from: Address, request: WorldRequest, services: &mut Services<'_>) {
        self.files.carry_out(from, request, services);
    }

    fn socket_parcel(&mut self, parcel: SocketParcel, services: &mut Services<'_>) {
        match (parcel, &mut self.sockets) {
            (SocketParcel::WriteOutput(batch), _) => self.foreign_output.take(batch, self.shared.clock.now()),
            (SocketParcel::Adopt(accepted), Some(sockets)) => {
                let (stream, peer, listener) = *accepted;
                sockets.adopt(stream, peer, listener, services);
            }
            (SocketParcel::OutputReturned(batch), Some(sockets)) => sockets.take_back(batch, services),
            (parcel, None) => require!(false, "a message about sockets goes to a thread with sockets: {parcel:?}"),
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

    /// Whether in-memory connections have input that this thread has not seen.
    #[inline]
    fn has_ready_streams(&self) -> bool {
        self.sockets.as_deref().is_some_and(Sockets::has_ready_streams)
    }

    fn has_output(&self) -> bool {
        self.sockets.as_deref().is_some_and(Sockets::has_output) || self.foreign_output.has_output()
    }

    fn is_written(&self) -> bool {
        self.sockets.as_deref().is_none_or(Sockets::is_written) && !self.foreign_output.has_output()
    }

    /// Writes the output of the thread's own sockets, or hands it to helpers if `others_write`. Also writes
    /// output of other threads, as far as this thread's load allows. Output that remains although the thread
    /// `is_idle` is written in later turns.
    fn write_output(&mut self, others_write: bool, is_idle: bool, services: &mut Services<'_>) {
        if let Some(sockets) = &mut self.sockets
            && sockets.has_output()
        {
            match others_write {
                false => sockets.write_output(services),
                true => sockets.hand_over(&mut self.sending, is_idle, self.shared.clock.now(), services),
            }
        }
        if self.foreign_output.has_output() {
            let now = self.shared.clock.now();
            self.foreign_output.write_output(self.sending.helping_state(), is_idle, now, services);
        }
    }

    #[cold]
    fn adjust_sending(&mut self, now: Time) {
        let none = OutputCounts::default();
        let counts = self.sockets.as_deref().map_or(&none, |sockets| &sockets.written);
        self.sending.adjust(now, &self.shared.send, counts, &self.foreign_output);
    }
}

/// Reports which sockets are ready; `None` for a thread without sockets. It stays with the thread itself,
/// which waits in it while another thread may hold its slot.
pub(super) struct Poller(Option<(Poll, Events)>);

impl Poller {
    pub(super) fn new(poll: Option<Poll>) -> Poller {
        Poller(poll.map(|poll| (poll, Events::with_capacity(POLL_EVENTS))))
    }

    fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Asks the operating system which sockets are ready, waiting up to `timeout`. [`Poller::deliver`] must
    /// follow before the next call.
    pub(super) fn wait(&mut self, timeout: Duration) {
        let Some((poll, events)) = &mut self.0 else { return };
        let timeout = std::time::Duration::from_nanos(timeout.0);
        if poll.poll(events, Some(timeout)).is_err() {
            // Interrupted by a signal. The next poll reports what is ready.
            events.clear();
        }
    }

    /// Passes the reported events to the sockets.
    fn deliver(&mut self, sockets: Option<&mut Sockets>) {
        let (Some((_, events)), Some(sockets)) = (&mut self.0, sockets) else { return };
        for event in events.iter().filter(|event| event.token().0 != WAKE_TOKEN) {
            let closed = event.is_read_closed() || event.is_error();
            sockets.on_ready(event.token().0, event.is_readable(), event.is_writable(), closed);
        }
        events.clear();
    }

    /// Polls without waiting and passes the events on.
    fn poll_now(&mut self, sockets: Option<&mut Sockets>) {
        self.wait(Duration::ZERO);
        self.deliver(sockets);
    }
}

/// Why a spin ended.
enum SpinEnd {
    /// Work arrived. If `polled` is false, the sockets were not polled, and a stream of signals must not keep
    /// it so.
    Work {
        polled: bool,
    },
    /// A timer is due; a sleep would have ended then as well.
    Timer,
    Nothing,
}

/// A wake-up held back, because the sender may run the delegated turn for the little work that it published.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeferredWake {
    pub(super) thread: u16,
    /// The sender.
    pub(super) from: u16,
}

/// The next action of a thread after a turn.
pub(super) enum Next {
    /// Run the next turn.
    Turn,
    /// Write output to sockets.
    Write,
    /// Rest at this location for at most this long, unless input arrived since the rest was announced.
    Sleep(SleepLocation, Duration),
    /// End.
    End,
}

/// The state of one thread of a node. The thread holds it while it works; another may while it rests or
/// writes.
pub(super) struct NodeThread<S: Signal, H: Host<S>> {
    pub(super) engine: Engine<S, H>,
    pub(super) world: RealWorld,
    pub(super) clock: Clock,
    pub(super) spinner: Spinner,
    pub(super) is_stopping: bool,
    /// Threads with newly published input that were not woken yet, and whether the input is eligible for a
    /// delegated turn.
    pub(super) published: Vec<(u16, bool)>,
    /// The thread for which this one will run a turn, or which it will wake.
    pub(super) deferred_wake: Option<DeferredWake>,
    /// Whether it writes without holding its slot, because it recently waited for a CPU.
    pub(super) detaches_io: bool,
    pub(super) contention: Contention,
    /// Whether its recent load makes it leave work to threads with spare time.
    pub(super) is_saturated: bool,
    /// Rotates which other thread's ring is served first.
    pub(super) first_ring: usize,
    /// Signals handled since the last poll of sockets.
    pub(super) signals_since_poll: u64,
    /// Signals handled in the last turn; below, whether a backlog moved.
    pub(super) handled: u64,
    pub(super) sent_backlog: bool,
    /// When the thread became idle.
    pub(super) idle_since: Time,
    /// When the present rest ends without input.
    pub(super) sleeps_until: Time,
}

impl<S: Signal, H: Host<S>> NodeThread<S, H> {
    /// Handles due and received work, and publishes its output.
    pub(super) fn turn(&mut self, poller: &mut Poller) {
        let now = self.clock.now();
        self.engine.load.enter(ThreadState::Executing, now);
        if now >= self.world.sending.due() {
            self.world.adjust_sending(now);
            self.is_saturated =
                is_saturated(recent_busy_per_mille(&self.world.shared.loads, self.engine.assignment().thread, now));
            self.detaches_io = self.contention.is_contended(now);
        }
        let wall_us = self.clock.wall_us(now);
        // A step of long work takes long, so sockets are polled after each.
        let mut is_long = self.engine.has_next_turn_work();
        self.signals_since_poll += self.engine.run(now, wall_us, self.first_ring);
        is_long |= self.engine.is_intake_stopped();
        self.first_ring = self.first_ring.wrapping_add(1);
        self.check_for_stop();
        if self.signals_since_poll >= SIGNALS_PER_POLL || is_long {
            poller.poll_now(self.world.sockets.as_deref_mut());
            self.signals_since_poll = 0;
        }
        if let Some(sockets) = &mut self.world.sockets
            && (sockets.has_ready_streams() || sockets.has_input())
        {
            // In-memory connections need no poll, so they count here: otherwise they could keep sockets from
            // being polled.
            self.signals_since_poll += sockets.take_input(&mut self.engine);
        }
        // Handlers make requests until here, so they are carried out after this. They emit events, so
        // publishing comes last.
        self.handled = self.engine.end_handling();
        if self.is_stopping && self.handled > 0 {
            self.publish_work();
        }
        self.engine.carry_out(&mut self.world);
        self.sent_backlog = self.publish();
    }

    /// Decides how the thread continues after a turn whose output was written.
    pub(super) fn after_turn(&mut self, poller: &mut Poller) -> Next {
        // Another turn often finds more work. These cheap tests avoid an empty turn where they show that
        // there is none.
        if self.sent_backlog
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
            // Publish the final figures.
            self.world.adjust_sending(self.clock.now());
            return Next::End;
        }
        self.wait(poller)
    }

    /// Hands output to helpers or prepares to write it. Returns the sockets if this thread must write to
    /// them, which it does without holding its slot.
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
        if !others_write && !self.world.foreign_output.has_output() {
            return self.world.sockets.take();
        }
        // Keep the slot: batches from and for other threads change this thread's state.
        self.engine.with_services(|services| self.world.write_output(others_write, is_idle, services));
        if others_write || self.world.sockets.is_none() {
            self.publish();
        }
        None
    }

    /// Puts the sockets back after a write.
    #[inline]
    pub(super) fn end_write(&mut self, sockets: Box<Sockets>, detached_io: &mut DetachedIo) {
        self.world.sockets = Some(sockets);
        self.engine.with_services(|services| detached_io.give_to(services));
    }

    /// Whether work other than sending waits, as far as cheap tests and a poll show.
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

    /// Publishes sent signals and wakes sleeping receivers. At most one wake is deferred, for a delegated
    /// turn. Returns whether a backlog moved.
    #[inline]
    fn publish(&mut self) -> bool {
        let published = &mut self.published;
        let moved = self.engine.flush(|thread, is_inline_eligible| published.push((thread, is_inline_eligible)));
        require!(
            self.engine.remote().is_empty(),
            "signals go to this node only, because there is no transport to others"
        );
        if !self.published.is_empty() {
            self.wake_receivers();
        }
        moved
    }

    /// Wakes threads with newly published input. Work for several threads should run in parallel, so at most
    /// one wake is deferred.
    fn wake_receivers(&mut self) {
        SleepCell::fence_before_wakeup();
        let shared = &self.world.shared;
        for (thread, is_inline_eligible) in self.published.drain(..) {
            let bell = &shared.bells[usize::from(thread)];
            match self.deferred_wake {
                None if is_inline_eligible && bell.may_be_delegated && bell.cell.may_be_borrowed() => {
                    self.deferred_wake = Some(DeferredWake { thread, from: self.engine.assignment().thread });
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

    /// Counts signals that this thread handled in a delegated turn for another.
    pub(super) fn count_delegated_turn(&mut self, signals: u64) {
        self.signals_since_poll += signals;
        self.engine.load.count_signals(signals);
    }

    /// Runs a turn for this thread on thread `from`, with the signals that `from` sent, while this thread
    /// does what the phase says. Returns how many signals were handled, and whether no work is left.
    pub(super) fn delegated_turn(&mut self, phase: IdlePhase, from: u16, may_write: bool) -> (u64, bool) {
        // A stopping thread must see its own work, because it reports when it has become idle.
        if self.is_stopping || self.engine.has_next_turn_work() || self.engine.is_blocked() {
            return (0, false);
        }
        let now = self.clock.now();
        let wall_us = self.clock.wall_us(now);
        let own_time = self.engine.turn_times();
        let handled = self.engine.run_delegated(now, wall_us, from);
        if phase == IdlePhase::Detached {
            // The sockets are with the thread, and its own turn is not over. It carries out requests itself.
            self.publish();
            self.engine.set_turn_times(own_time);
            return (handled, true);
        }
        self.engine.carry_out(&mut self.world);
        self.publish();
        if may_write && let Some(mut sockets) = self.begin_write(true, None) {
            self.engine.with_services(|services| sockets.write_output(services));
            self.world.sockets = Some(sockets);
            self.publish();
        }
        self.engine.report_turn_end(self.clock.now());
        (handled, self.prepare_sleep_if_quiet())
    }

    /// Announces a rest for a borrowed thread, if nothing requires it to be awake before its rest ends
    /// anyway.
    fn prepare_sleep_if_quiet(&mut self) -> bool {
        if self.engine.has_local_work()
            || self.engine.has_requests()
            || self.engine.is_blocked()
            || self.world.has_output()
            || self.world.has_input()
            || self.engine.next_timer().is_some_and(|due| due < self.sleeps_until)
        {
            return false;
        }
        let shared = self.world.shared.clone();
        let cell = &shared.bells[usize::from(self.engine.assignment().thread)].cell;
        cell.prepare_sleep();
        if self.has_wake_reason() {
            cell.cancel_sleep();
            return false;
        }
        true
    }

    /// Whether anything arrived that ends a rest.
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
        let directory = self.engine.assignment().directory.clone();
        for (module, instance) in self.engine.assignment().modules.clone() {
            self.engine.deliver_now(directory.address(module, instance), WorldEvent::Stopping);
        }
    }

    /// Spins, and then announces a rest, until there may be work.
    fn wait(&mut self, poller: &mut Poller) -> Next {
        let index = usize::from(self.engine.assignment().thread);
        let idle_since = self.clock.now();
        self.idle_since = idle_since;
        self.engine.report_turn_end(idle_since);
        let Shared { loads, spin, .. } = &*self.world.shared;
        let busy_per_mille = || loads.thread(index as u16).map_or(0, |load| load.moment.busy_per_mille());
        if self.spinner.begin_idle(idle_since, spin, busy_per_mille) {
            self.engine.load.set_spin(self.spinner.spin());
        }
        // Room in other threads' rings is not among the things that a spin watches.
        if self.spinner.spin().0 > 0 && !self.world.has_input() && !self.engine.is_blocked() {
            match self.spin_for_work(poller, idle_since) {
                SpinEnd::Work { polled } => {
                    self.spinner.end_idle(idle_since, self.clock.now(), false);
                    if polled {
                        self.signals_since_poll = 0;
                    }
                    return Next::Turn;
                }
                SpinEnd::Timer => {
                    self.spinner.end_idle_without_work();
                    self.signals_since_poll = 0;
                    return Next::Turn;
                }
                SpinEnd::Nothing => {}
            }
        }
        let shared = self.world.shared.clone();
        if self.is_stopping {
            self.publish_activity(&shared.activity[index]);
        }
        let cell = &shared.bells[index].cell;
        // Input that is still unread means that space is lacking; further input would not help then.
        let is_blocked = self.engine.is_blocked() || self.world.has_input();
        let location = if poller.is_some() && !is_blocked { SleepLocation::Poll } else { SleepLocation::Cell };
        cell.prepare_sleep();
        if self.has_wake_reason() {
            cell.cancel_sleep();
            return Next::Turn;
        }
        let now = self.clock.now();
        let timeout = self.longest_sleep(now, is_blocked);
        self.sleeps_until = now.plus(timeout);
        self.engine.load.enter(if is_blocked { ThreadState::BufferFull } else { ThreadState::Sleeping }, now);
        self.spinner.begin_sleep(now);
        Next::Sleep(location, timeout)
    }

    /// The announced rest was revoked.
    #[cold]
    pub(super) fn on_sleep_cancelled(&mut self) {
        self.spinner.end_sleep(self.clock.now(), None);
    }

    /// The thread has woken from a rest at `location`.
    pub(super) fn after_sleep(&mut self, location: SleepLocation, poller: &mut Poller) {
        let shared = self.world.shared.clone();
        let bell = &shared.bells[usize::from(self.engine.assignment().thread)];
        if location == SleepLocation::Poll {
            poller.deliver(self.world.sockets.as_deref_mut());
        }
        let now = self.clock.now();
        self.spinner.end_sleep(now, bell.take_rang_at());
        let is_blocked = self.engine.is_blocked();
        match self.engine.has_mail() || self.world.has_ready_streams() || self.world.has_input() {
            _ if is_blocked => {}
            true => self.spinner.end_idle(self.idle_since, now, true),
            false => self.spinner.end_idle_without_work(),
        }
        if location == SleepLocation::Poll {
            self.signals_since_poll = 0;
        }
    }

    fn longest_sleep(&self, now: Time, is_blocked: bool) -> Duration {
        let timeout = if is_blocked { BLOCKED_SLEEP } else { SLEEP_MAX };
        self.engine.next_timer().map_or(timeout, |due| due.since(now).min(timeout))
    }

    /// Reports to [`super::node::RunningNode::stop`], which waits until all threads are idle.
    fn publish_activity(&mut self, activity: &Activity) {
        let idle = self.engine.is_quiet() && self.world.is_written();
        activity.busy_checks.fetch_add(u64::from(!idle), Ordering::Relaxed);
        activity.idle.store(idle, Ordering::Release);
    }

    /// Revokes the idle report: a spinning thread may continue without a sleep in between.
    #[cold]
    fn publish_work(&mut self) {
        let activity = &self.world.shared.activity[usize::from(self.engine.assignment().thread)];
        activity.idle.store(false, Ordering::Release);
        activity.busy_checks.fetch_add(1, Ordering::Relaxed);
    }

    /// Polls for work for the chosen time.
    fn spin_for_work(&mut self, poller: &mut Poller, start: Time) -> SpinEnd {
        self.engine.load.enter(ThreadState::Spinning, start);
        let spin = self.spinner.spin();
        let poll_interval = self.spinner.poll_interval().min(spin);
        let (mut polled_at, mut polled) = (start, false);
        loop {
            let now = loop {
                if self.engine.has_mail() || self.world.has_ready_streams() {
                    return SpinEnd::Work { polled };
                }
                std::hint::spin_loop();
                let now = self.clock.now();
                if now.since(polled_at) >= poll_interval {
                    break now;
                }
            };
            polled_at = now;
            poller.poll_now(self.world.sockets.as_deref_mut());
            polled = true;
            if self.world.has_output() || self.world.has_input() {
                return SpinEnd::Work { polled };
            }
            if self.engine.next_timer().is_some_and(|due| due <= now) {
                return SpinEnd::Timer;
            }
            if now.since(start) >= spin || self.world.shared.halt.load(Ordering::Relaxed) {
                return SpinEnd::Nothing;
            }
        }
    }
}
