//! Hot path: at most 300 instructions for a turn that handles only signals, not counting their handlers.
//!
//! A thread of a real node: it polls sockets, runs turns of its [`Engine`], writes output, spins and sleeps.

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
use crate::world::{FileLane, WorldEvent, WorldRequest};

use super::doorbell::Doorbell;
use super::file::{AnswerBox, FileQueues, Requester};
use super::foreign_output::ForeignOutput;
use super::sending::{AtomicSendSettings, Sending, recent_busy_per_mille};
use super::socket::{OutputCounts, Sockets};
use super::spinner::{AtomicSpinSettings, Awaits, Spinner};
use super::thread_slot::DetachedIo;
use super::thread_usage::Contention;
use crate::clock::Clock;

/// The poll's token for events of its waker.
pub(super) const WAKE_TOKEN: usize = usize::MAX;

/// Maximum number of signals that a busy thread handles between two polls of its sockets.
const SIGNALS_PER_POLL: u64 = 128;

/// Maximum sleep. A longer one would leave load figures and the wall clock outdated.
const SLEEP_MAX: Duration = Duration::from_millis(1_000);

/// Maximum sleep of a thread that waits for space in other threads' mailboxes. It must check again by itself,
/// because freeing space wakes nobody.
const BLOCKED_SLEEP: Duration = Duration::from_micros(100);

/// Maximum number of events from one poll.
const POLL_EVENTS: usize = 256;

/// State that all threads of a node share.
pub(super) struct Shared {
    pub(super) bells: Vec<Doorbell>,
    pub(super) clock: Clock,
    pub(super) loads: Arc<LoadBoard>,
    /// Asks blocks to finish their work; threads go on meanwhile.
    pub(super) stop: AtomicBool,
    /// Whether the node takes nothing more from other nodes. A node without links never does.
    pub(super) are_links_over: AtomicBool,
    /// Notified when a stop is requested.
    pub(super) stop_requested: (Mutex<()>, Condvar),
    /// Asks threads to end. Set once all threads are idle, or once the time for stopping is over.
    pub(super) halt: AtomicBool,
    /// Current spin settings.
    pub(super) spin: AtomicSpinSettings,
    /// Current send settings.
    pub(super) send: AtomicSendSettings,
    /// For each thread, the answers to its blocks' requests about files.
    pub(super) file_answers: Vec<CachePadded<AnswerBox>>,
    /// The reports of each thread during a stop; unused before.
    pub(super) activity: Vec<CachePadded<Activity>>,
}

/// Reports of a thread that is stopping.
#[derive(Default)]
pub(super) struct Activity {
    /// Whether the thread's last check found it idle.
    pub(super) idle: AtomicBool,
    /// Number of checks that found the thread busy.
    pub(super) busy_checks: std::sync::atomic::AtomicU64,
}

impl Shared {
    pub(super) fn request_stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake_all();
        // A waiter that tested `stop` before the store holds the lock until it waits. Locking here makes the
        // notification come after the waiter has begun to wait.
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

/// The sockets of one thread, its requests about files, and the output that it writes for other threads.
pub(super) struct RealWorld {
    pub(super) shared: Arc<Shared>,
    /// `None` while the thread writes without holding its slot, and for a thread without sockets.
    pub(super) sockets: Option<Box<Sockets>>,
    pub(super) foreign_output: ForeignOutput,
    pub(super) sending: Sending,
    pub(super) thread: u16,
    pub(super) files: FileQueues,
    /// Requests about files whose answers this thread has not taken yet.
    pub(super) file_requests: u64,
    /// Time of the next decision about sending or work of the links.
    pub(super) due: Time,
    /// When the links must do something; never on a thread without links.
    pub(super) wakes_by: Time,
}

impl World for RealWorld {
    fn socket_request(&mut self, request: WorldRequest, services: &mut Services<'_>) {
        // No request is carried out while the sockets are taken out for writing. On a thread without sockets,
        // the request names an instance that never existed.
        if let Some(sockets) = &mut self.sockets {
            sockets.carry_out(request, services);
        }
    }

    fn file_request(&mut self, from: Address, request: WorldRequest, services: &mut Services<'_>) {
        match self.files.submit(Requester { thread: self.thread, block: from }, request) {
            Ok(()) => self.file_requests += 1,
            Err(refusal) => services.events.push((from, refusal)),
        }
    }

    fn socket_parcel(&mut self, parcel: SocketParcel, services: &mut Services<'_>) {
        match (parcel, &mut self.sockets) {
            (SocketParcel::WriteOutput(batch), _) => self.foreign_output.take(batch, self.shared.clock.now()),
            (SocketParcel::Adopt(accepted), Some(sockets)) => {
                let (stream, peer, listener) = *accepted;
                sockets.adopt(stream, peer, listener, services);
            }
            (SocketParcel::AdoptLink(accepted), Some(sockets)) => {
                sockets.adopt_link(*accepted);
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

    fn end_links(&mut self) {
        self.shared.are_links_over.store(true, Ordering::Release);
        self.shared.wake_all();
    }

    fn stop(&mut self) {
        self.shared.request_stop();
    }

    fn halt(&mut self, message: &str) {
        crate::invariant::halt(message);
    }
}

impl RealWorld {
    fn has_input(&self) -> bool {
        self.sockets.as_deref().is_some_and(Sockets::has_input)
    }

    /// Whether connections of the same process have input that this thread has not seen.
    #[inline]
    fn has_ready_streams(&self) -> bool {
        self.sockets.as_deref().is_some_and(Sockets::has_ready_streams)
    }

    /// Whether requests about files are answered.
    #[inline]
    fn has_file_answers(&self) -> bool {
        self.shared.file_answers[usize::from(self.thread)].0.has_any()
    }

    #[cold]
    fn take_file_answers(&mut self, services: &mut Services<'_>) {
        let taken = self.shared.file_answers[usize::from(self.thread)].0.take(services.events);
        self.file_requests -= taken as u64;
    }

    fn has_output(&self) -> bool {
        self.sockets.as_deref().is_some_and(Sockets::has_output) || self.foreign_output.has_output()
    }

    fn is_written(&self) -> bool {
        self.sockets.as_deref().is_none_or(Sockets::is_written) && !self.foreign_output.has_output()
    }

    /// Writes the output of the thread's own sockets, or hands it to helper threads if `others_write`. Also
    /// writes output of other threads, as much as this thread's load allows; `is_idle` allows more. Output
    /// that is left is written in later turns.
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
        let counts = self.sockets.as_deref().map_or(&none, |sockets| &sockets.output_counts);
        self.sending.adjust(now, &self.shared.send, counts, &self.foreign_output);
    }
}

/// Reports which sockets are ready. Empty for a thread without sockets. The poller is not part of the
/// thread's slot, because the thread waits in the poll while another thread may hold the slot.
pub(super) struct Poller(Option<(Poll, Events)>);

impl Poller {
    pub(super) fn new(poll: Option<Poll>) -> Poller {
        Poller(poll.map(|poll| (poll, Events::with_capacity(POLL_EVENTS))))
    }

    fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Asks the operating system which sockets are ready, and waits for one up to `timeout`.
    /// [`Poller::deliver`] must follow before the next call.
    pub(super) fn wait(&mut self, timeout: Duration) {
        let Some((poll, events)) = &mut self.0 else { return };
        let timeout = std::time::Duration::from_nanos(timeout.0);
        if poll.poll(events, Some(timeout)).is_err() {
            // Interrupted by a POSIX signal. The next poll reports the sockets that are ready.
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

/// Why a spin, the polling for work before a sleep, ended.
enum SpinEnd {
    /// Work arrived. `polled` tells whether the spin polled the sockets. If it did not, the caller must not
    /// restart the count of signals since the last poll: a stream of signals could then starve the sockets.
    Work { polled: bool },
    /// A timer is due. A sleep would have ended at the same time.
    Timer,
    /// The spin time is over, or the node halts.
    Nothing,
}

/// A wake-up that the sender of inline-eligible signals holds back. The sender may instead handle the signals
/// itself, in a delegated turn: a turn that it runs in the sleeping thread's slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeferredWake {
    /// The thread to wake.
    pub(super) thread: u16,
    /// The thread that sent the signals.
    pub(super) from: u16,
}

/// The next action of a thread after a turn.
pub(super) enum Next {
    /// Run the next turn.
    Turn,
    /// Write output to sockets, then decide again.
    Write,
    /// Sleep at this location for at most this long, unless input arrived since the sleep was announced.
    Sleep(SleepLocation, Duration),
    /// Leave the loop; the node is halting.
    End,
}

/// The state of one thread of a node, which fills the thread's slot. The thread itself holds the slot while
/// it works. Another thread may borrow the slot while this one sleeps or writes.
pub(super) struct NodeThread<S: Signal, H: Host<S>> {
    pub(super) engine: Engine<S, H>,
    pub(super) world: RealWorld,
    pub(super) clock: Clock,
    pub(super) spinner: Spinner,
    pub(super) is_stopping: bool,
    /// Threads with newly published input that were not woken yet, and whether the input is inline-eligible:
    /// little enough work for a delegated turn.
    pub(super) published: Vec<(u16, bool)>,
    /// At most one wake-up is deferred at a time. The thread runs the delegated turn, or wakes the other
    /// thread, before it sleeps.
    pub(super) deferred_wake: Option<DeferredWake>,
    /// Whether the thread releases its slot while it writes, because it recently had to wait for a CPU.
    pub(super) detaches_io: bool,
    pub(super) contention: Contention,
    /// Whether the thread's recent load is so high that it leaves work to threads with spare time.
    pub(super) is_saturated: bool,
    /// Position of the mailbox served first in the next turn; rotates.
    pub(super) first_ring: usize,
    /// Signals handled since the last poll of sockets.
    pub(super) signals_since_poll: u64,
    /// Signals handled in the last turn.
    pub(super) handled: u64,
    /// Whether the last turn published signals that had waited for space in a mailbox, or its links delivered
    /// signals.
    pub(super) sent_backlog: bool,
    /// When the thread became idle.
    pub(super) idle_since: Time,
    /// When the current sleep ends if no input arrives.
    pub(super) sleeps_until: Time,
}

impl<S: Signal, H: Host<S>> NodeThread<S, H> {
    /// Runs one turn: handles due timers, signals and socket input, carries out requests, and publishes the
    /// signals that were sent.
    pub(super) fn turn(&mut self, poller: &mut Poller) {
        let now = self.clock.now();
        self.engine.load.enter(ThreadState::Executing, now);
        if now >= self.world.due {
            self.on_due(now);
        }
        let wall_us = self.clock.wall_us(now);
        // One step of long-running work can take a while, so poll the sockets after each step.
        let mut is_long = self.engine.continues_work_at(now);
        if self.world.has_file_answers() {
            self.engine.with_services(|services| self.world.take_file_answers(services));
        }
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
            // Input of in-memory connections arrives without a poll. Count it towards the next poll, or it
            // could starve the sockets.
            self.signals_since_poll += sockets.take_input(&mut self.engine);
        }
        // No handler runs after this, so all requests of the turn are known. Carrying out requests emits
        // events, so publish after that.
        self.handled = self.engine.end_handling();
        if self.is_stopping && self.handled > 0 {
            self.publish_work();
        }
        self.engine.carry_out(&mut self.world);
        self.sent_backlog = self.publish();
    }

    /// Does what is due: decisions about sending, and work of the links.
    #[cold]
    fn on_due(&mut self, now: Time) {
        if now >= self.world.sending.due() {
            self.world.adjust_sending(now);
            self.is_saturated =
                is_saturated(recent_busy_per_mille(&self.world.shared.loads, self.engine.assignment().thread, now));
            self.detaches_io = self.contention.is_contended(now);
        }
        self.world.due = self.world.sending.due();
        if self.engine.owns_links() {
            self.engine.want_link_work();
        }
    }

    /// Lets the links send, unless the thread is writing to its sockets: it then does so itself afterwards.
    /// Returns whether there are signals for blocks of this thread.
    #[cold]
    fn work_links(&mut self) -> bool {
        let now = self.clock.now();
        let Some(sockets) = &mut self.world.sockets else {
            require!(self.engine.owns_links(), "a node without links sends to itself only");
            return false;
        };
        self.engine.work_links(now, &mut **sockets);
        let closing = self.engine.with_services(|services| sockets.close_links(now, services));
        self.world.wakes_by = self.engine.links_due().min(closing);
        self.world.due = self.world.sending.due().min(self.world.wakes_by);
        self.engine.has_local_work()
    }

    /// Decides how the thread continues after a turn whose output was written.
    pub(super) fn after_turn(&mut self, poller: &mut Poller) -> Next {
        // Work that never ends cannot keep the node from ending.
        if self.is_stopping && self.world.shared.halt.load(Ordering::Acquire) {
            self.world.adjust_sending(self.clock.now());
            return Next::End;
        }
        // Another turn often finds more work. Skip that turn if cheap tests show that it would be empty.
        if self.sent_backlog
            || self.engine.has_local_work()
            || self.engine.has_requests()
            || self.handled > 0 && (self.engine.is_blocked() || self.engine.has_mail())
        {
            return Next::Turn;
        }
        if self.publish() {
            return Next::Turn;
        }
        if self.world.has_output() {
            return Next::Write;
        }
        if self.deferred_wake.is_some()
            || self.world.has_ready_streams()
            || self.world.has_file_answers()
            || self.world.has_input() && self.engine.accepts_work()
        {
            return Next::Turn;
        }
        if self.world.shared.halt.load(Ordering::Acquire) {
            // Publish the final load figures.
            self.world.adjust_sending(self.clock.now());
            return Next::End;
        }
        self.wait(poller)
    }

    /// Hands output to helpers, or writes the output of other threads. Returns the sockets if this thread
    /// must write its own output, which it may do without holding its slot.
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
        // Write while holding the slot, because output of and for other threads changes the slot's content.
        self.engine.with_services(|services| self.world.write_output(others_write, is_idle, services));
        if others_write || self.world.sockets.is_none() {
            self.publish();
        }
        None
    }

    /// Puts the sockets back after a write, and takes over the results of that write.
    #[inline]
    pub(super) fn end_write(&mut self, sockets: Box<Sockets>, detached_io: &mut DetachedIo) {
        self.world.sockets = Some(sockets);
        self.engine.with_services(|services| detached_io.give_to(services));
    }

    /// Whether work other than sending is waiting, judged by cheap tests and one poll.
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

    /// Publishes sent signals, and wakes sleeping receivers or defers the wake-up of one. Returns whether
    /// there is more work: signals were published that had waited for space, or the links delivered some.
    #[inline]
    fn publish(&mut self) -> bool {
        let has_arrivals = self.engine.has_link_work() && self.work_links();
        let published = &mut self.published;
        let moved = self.engine.flush(|thread, is_inline_eligible| published.push((thread, is_inline_eligible)));
        if !self.published.is_empty() {
            self.wake_receivers();
        }
        moved || has_arrivals
    }

    /// Wakes threads with newly published input. Defers at most one wake-up: work for several threads should
    /// run in parallel.
    fn wake_receivers(&mut self) {
        SleepCell::fence_before_wakeup();
        let shared = &self.world.shared;
        for (thread, is_inline_eligible) in self.published.drain(..) {
            let bell = &shared.bells[usize::from(thread)];
            match self.deferred_wake {
                None if is_inline_eligible && bell.cell.may_be_borrowed() => {
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

    /// Counts signals that this thread handled in another thread's slot.
    pub(super) fn count_delegated_turn(&mut self, signals: u64) {
        self.signals_since_poll += signals;
        self.engine.load.count_signals(signals);
    }

    /// Called on thread `from`, which has borrowed this thread's slot: runs a turn for the signals that
    /// `from` sent. `phase` says whether this thread sleeps or is detached. Returns the number of signals
    /// handled, and whether no work is left, so that the slot can be given back.
    pub(super) fn delegated_turn(&mut self, phase: IdlePhase, from: u16, may_write: bool) -> (u64, bool) {
        if !self.lends_turns() {
            return (0, false);
        }
        let now = self.clock.now();
        let wall_us = self.clock.wall_us(now);
        let own_time = self.engine.turn_times();
        let handled = self.engine.run_delegated(now, wall_us, from);
        if phase == IdlePhase::Detached {
            // The detached thread has taken its sockets along and is in the middle of its own turn. It will
            // carry out the requests itself.
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

    /// Called by the worker of a lane, which has borrowed the slot of this sleeping thread: runs a turn with
    /// the answers of the lane, up to the output that is to be written. Returns false if the thread must run
    /// the turn itself.
    pub(super) fn answered_turn(&mut self) -> bool {
        if !self.lends_turns() {
            return false;
        }
        let now = self.clock.now();
        let wall_us = self.clock.wall_us(now);
        self.engine.with_services(|services| self.world.take_file_answers(services));
        self.signals_since_poll += self.engine.run(now, wall_us, self.first_ring);
        self.first_ring = self.first_ring.wrapping_add(1);
        self.engine.end_handling();
        self.engine.carry_out(&mut self.world);
        self.publish();
        true
    }

    /// Ends [`NodeThread::answered_turn`]: writes the output. Returns whether no work is left, so that the
    /// slot can be given back.
    pub(super) fn end_answered_turn(&mut self) -> bool {
        // The next sync is more urgent than the answers of the last one. The thread writes them meanwhile.
        if self.world.files.has_requests(FileLane::Log) {
            return false;
        }
        if let Some(mut sockets) = self.begin_write(true, None) {
            self.engine.with_services(|services| sockets.write_output(services));
            self.world.sockets = Some(sockets);
            self.publish();
        }
        self.engine.report_turn_end(self.clock.now());
        self.deferred_wake.is_none() && self.prepare_sleep_if_quiet()
    }

    /// Whether another thread may run turns for this one. A stopping thread must see its own work, because it
    /// reports when it has become idle.
    fn lends_turns(&self) -> bool {
        !self.is_stopping && !self.engine.has_next_turn_work() && !self.engine.is_blocked()
    }

    /// On behalf of this thread, the borrower of its slot announces that it sleeps again. Returns false
    /// without an announcement if work is left that cannot wait until the sleep ends.
    fn prepare_sleep_if_quiet(&mut self) -> bool {
        if self.engine.has_local_work()
            || self.engine.has_requests()
            || self.engine.is_blocked()
            || self.world.has_output()
            || self.world.has_input()
            || self.engine.next_timer().is_some_and(|due| due < self.sleeps_until)
            || self.world.wakes_by < self.sleeps_until
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

    /// Whether anything arrived that must keep the thread from sleeping.
    fn has_wake_reason(&mut self) -> bool {
        let shared = &self.world.shared;
        let flags = (shared.stop.load(Ordering::Acquire), shared.halt.load(Ordering::Acquire));
        flags.0 != self.is_stopping
            || flags.1
            || self.engine.has_mail()
            || self.world.has_ready_streams()
            || self.world.has_file_answers()
    }

    fn check_for_stop(&mut self) {
        if !self.world.shared.stop.load(Ordering::Relaxed) {
            return;
        }
        match self.is_stopping {
            true => self.end_links(),
            false => self.begin_stop(),
        }
    }

    /// Reads the links of this thread no more once a block has asked for that.
    #[cold]
    fn end_links(&mut self) {
        if self.world.shared.are_links_over.load(Ordering::Acquire)
            && let Some(sockets) = &mut self.world.sockets
        {
            sockets.end_links();
        }
    }

    fn begin_stop(&mut self) {
        self.is_stopping = true;
        if let Some(sockets) = &mut self.world.sockets {
            sockets.stop_reading();
        }
        let directory = self.engine.assignment().directory.clone();
        for (module, instance) in self.engine.assignment().modules.clone() {
            self.engine.deliver_now(directory.address(module, instance), WorldEvent::Stopping);
        }
    }

    /// Spins until there may be work. If none arrives, announces a sleep.
    fn wait(&mut self, poller: &mut Poller) -> Next {
        let index = usize::from(self.engine.assignment().thread);
        let idle_since = self.clock.now();
        self.idle_since = idle_since;
        self.engine.report_turn_end(idle_since);
        let Shared { loads, spin, .. } = &*self.world.shared;
        let busy_per_mille = || loads.thread(index as u16).map_or(0, |load| load.moment.busy_per_mille());
        let awaits = if self.world.files.is_busy(FileLane::Log) { Awaits::Log } else { Awaits::Work };
        if self.spinner.begin_idle((idle_since, awaits), spin, busy_per_mille) {
            self.engine.load.set_spin(self.spinner.longest_spin());
        }
        // A spin does not watch for space in other threads' mailboxes, so a blocked thread does not spin.
        if self.spinner.spin().0 > 0 && !self.world.has_input() && !self.engine.is_blocked() {
            match self.spin_for_work(poller, idle_since) {
                SpinEnd::Work { polled } => {
                    match self.world.has_file_answers() {
                        true => self.spinner.end_idle_without_work(),
                        false => self.spinner.end_idle(idle_since, self.clock.now(), false),
                    }
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
        // Input is left unread only if space is lacking to pass it on. More input would not help then, so a
        // blocked thread does not wait in its poll.
        let is_blocked = self.engine.is_blocked() || self.world.has_input();
        let location = if poller.is_some() && !is_blocked { SleepLocation::Poll } else { SleepLocation::Cell };
        if is_blocked && self.engine.owns_links() {
            // Links are read even then: they bring what the thread waits for.
            poller.poll_now(self.world.sockets.as_deref_mut());
        }
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

    /// Called if a waker has revoked the announced sleep.
    #[cold]
    pub(super) fn on_sleep_cancelled(&mut self) {
        self.spinner.end_sleep(self.clock.now(), None);
    }

    /// Called after a sleep at `location`, once the thread holds its slot again.
    pub(super) fn after_sleep(&mut self, location: SleepLocation, poller: &mut Poller) {
        let shared = self.world.shared.clone();
        let bell = &shared.bells[usize::from(self.engine.assignment().thread)];
        if location == SleepLocation::Poll {
            poller.deliver(self.world.sockets.as_deref_mut());
        }
        let now = self.clock.now();
        self.spinner.end_sleep(now, bell.take_rang_at());
        let is_blocked = self.engine.is_blocked();
        let has_work = self.engine.has_mail() || self.world.has_ready_streams() || self.world.has_input();
        match has_work && !self.world.has_file_answers() {
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
        let timeout = self.world.wakes_by.since(now).min(timeout);
        self.engine.next_timer().map_or(timeout, |due| due.since(now).min(timeout))
    }

    /// Reports whether the thread is idle. [`super::node::RunningNode::stop`] waits until all threads are.
    fn publish_activity(&mut self, activity: &Activity) {
        let idle = self.engine.is_quiet() && self.world.is_written() && self.world.file_requests == 0;
        activity.busy_checks.fetch_add(u64::from(!idle), Ordering::Relaxed);
        activity.idle.store(idle, Ordering::Release);
    }

    /// Withdraws the idle report. A thread that finds work while it spins does not reach the place where the
    /// report is renewed.
    #[cold]
    fn publish_work(&mut self) {
        let activity = &self.world.shared.activity[usize::from(self.engine.assignment().thread)];
        activity.idle.store(false, Ordering::Release);
        activity.busy_checks.fetch_add(1, Ordering::Relaxed);
    }

    /// Polls for work for the spin time that the controller has chosen.
    fn spin_for_work(&mut self, poller: &mut Poller, start: Time) -> SpinEnd {
        self.engine.load.enter(ThreadState::Spinning, start);
        let spin = self.spinner.spin();
        let poll_interval = self.spinner.poll_interval().min(spin);
        let (mut polled_at, mut polled) = (start, false);
        loop {
            let now = loop {
                if self.engine.has_mail() || self.world.has_ready_streams() || self.world.has_file_answers() {
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
            if self.world.wakes_by <= now || self.engine.next_timer().is_some_and(|due| due <= now) {
                return SpinEnd::Timer;
            }
            if now.since(start) >= spin || self.world.shared.halt.load(Ordering::Relaxed) {
                return SpinEnd::Nothing;
            }
        }
    }
}
