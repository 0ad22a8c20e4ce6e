//! Hot path: at most 130 instructions for a signal of 128 bytes to a block of the same thread, not counting
//! the handler.
//!
//! The turn of one thread, the same in a real and in a simulated node. The *world* is what differs between
//! the two: sockets, files and settings.
//!
//! A turn has three parts. [`Engine::run`] handles signals, [`Engine::carry_out`] carries out the requests of
//! blocks to the world, and [`Engine::flush`] publishes the signals that were sent. Other threads see nothing
//! of a turn before the flush.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::address::Address;
use crate::block::{Endpoints, Host, Priority, Signal, SignalClass};
use crate::buffer::BufferPool;
use crate::context::{Context, Duration, Time};
use crate::crash_point::{CrashPoint, CrashWatch};
use crate::directory::ThreadAssignment;
use crate::envelope::{Envelope, Parcel, SocketParcel};
use crate::invariant::fail;
use crate::limit::KernelLimits;
use crate::mailbox::{Consumer, Producer, ring};
use crate::module::ModuleId;
use crate::outbox::Outbox;
use crate::random::{Random, mix};
use crate::require;
use crate::scheduler::load::LoadMeter;
use crate::scheduler::send::SendSettings;
use crate::scheduler::spin::SpinSettings;
use crate::scheduler::timer::Timers;
use crate::trace::{TraceNames, Tracer};
use crate::turn_clock::TurnClock;
use crate::world::{WorldEvent, WorldRequest};

use super::engine_links::EngineLinks;
use super::pace::Pace;

/// After this many signals, a turn takes no more from mailbox rings and timers, so that other threads soon
/// see the turn's output and sockets are polled.
const TURN_SIGNALS_MAX: u64 = 64;

/// Maximum length of a chain of local signals, each sent by the handler of the one before, that is handled
/// before the rings are served again. Otherwise a block that keeps sending to itself would starve the rings.
const LOCAL_GENERATIONS_MAX: u32 = 16;

/// Space in other threads' mailboxes required before bytes are read from a socket, in signals.
const INPUT_EMIT_MAX: u16 = 64;

/// Maximum number of deferred signals handled without space in one stall.
const STALL_BURST_MAX: u32 = 64;

pub(super) const NORMAL: usize = 0;
pub(super) const HIGH: usize = 1;

/// The part of a thread that is the same in a real and in a simulated node.
pub(crate) struct Engine<S: Signal, H: Host<S>> {
    pub(super) assignment: ThreadAssignment,
    host: H,
    pub(super) outbox: Outbox<S>,
    pub(super) incoming: Vec<Incoming<S>>,
    deferred: [VecDeque<Deferred<S>>; 2],
    timers: Timers,
    random: Random,
    turn_clock: TurnClock,
    pub(crate) buffers: BufferPool,
    tracer: Tracer,
    digest: Option<u64>,
    pub(crate) load: LoadMeter,
    /// Received from other threads, for the world.
    socket_parcels: Vec<SocketParcel>,
    /// Emitted by the world, to be delivered to blocks.
    events: Vec<(Address, WorldEvent)>,
    /// Emitted by the world, to be sent to other threads.
    parcels: Vec<(u16, SocketParcel)>,
    turn_start: Time,
    wall_clock_us: u64,
    handled: u64,
    /// Parcels taken from other threads in this turn.
    hand_overs: u64,
    /// Whether [`Host::turn_ended`] is still to be called for the last turn.
    is_end_unreported: bool,
    /// Maximum number of signals taken from one ring in one turn.
    quota: u64,
    waiting_max: usize,
    stall: Stall,
    /// The pace of long-running signals.
    pace: Pace,
    pub(super) links: Option<EngineLinks<S>>,
}

/// The consuming ends of both rings from one other thread, by priority: [`NORMAL`] and [`HIGH`].
pub(super) struct Incoming<S> {
    pub(super) rings: [Consumer<Parcel<S>>; 2],
}

/// A deferrable signal that waits for space.
struct Deferred<S> {
    /// The ring that gets the signal's credit back: position in `incoming`, and priority. `None` if the
    /// signal came from this thread.
    credit: Option<(u16, u8)>,
    envelope: Envelope<S>,
}

/// The part of a signal that the scheduler reads while the signal is still in its ring.
struct SignalHeader {
    to: Address,
    from: Address,
    number: u16,
    /// Space needed to handle the signal now, in signals. A deferrable signal needs space for the signals
    /// that its handler may emit. The minimum of 1 keeps it from overtaking an earlier one that was deferred.
    /// A reserved signal needs none.
    space: u16,
}

impl SignalHeader {
    #[inline(always)]
    fn of<S: Signal>(envelope: &Envelope<S>) -> Self {
        let signal = &envelope.signal;
        let is_request = signal.class() == SignalClass::Deferrable;
        let space = if is_request { signal.emit_max().max(1) } else { 0 };
        Self { to: envelope.to, from: envelope.from, number: signal.number(), space }
    }
}

/// A stall is a time in which no deferred signal was handled.
struct Stall {
    /// When a deferred signal was last handled.
    since: Time,
    /// Duration of a stall after which deferred signals are handled without space.
    after: Duration,
    /// How many signals the next stall handles without space; doubles with each stall in a row.
    burst: u32,
}

/// All ring ends of one thread.
pub(crate) struct ThreadRings<S> {
    /// By receiving thread; `None` for the thread itself.
    pub outgoing: Vec<Option<[Producer<Parcel<S>>; 2]>>,
    /// From each other thread, in the order of their indexes.
    pub incoming: Vec<[Consumer<Parcel<S>>; 2]>,
}

/// Creates the mailbox rings between all threads of a node. The result is indexed by thread.
pub(crate) fn connect_threads<S: Signal>(threads: usize, limits: &KernelLimits) -> Vec<ThreadRings<S>> {
    let slots = limits.ring_slots_for(threads, size_of::<Parcel<S>>());
    let high_slots = limits.high_ring_slots.next_power_of_two().max(4);
    let empty = || ThreadRings { outgoing: Vec::with_capacity(threads), incoming: Vec::with_capacity(threads) };
    let mut all: Vec<ThreadRings<S>> = (0..threads).map(|_| empty()).collect();
    for from in 0..threads {
        for to in 0..threads {
            if from == to {
                all[from].outgoing.push(None);
                continue;
            }
            let (normal, high) = (ring(slots), ring(high_slots));
            all[from].outgoing.push(Some([normal.0, high.0]));
            all[to].incoming.push([normal.1, high.1]);
        }
    }
    all
}

/// Carries out blocks' requests: about sockets on the thread that owns them, about files on the thread of the
/// block. The real and the simulated node each implement this.
pub(crate) trait World {
    /// Carries out a request about a socket of this thread.
    fn socket_request(&mut self, request: WorldRequest, services: &mut Services<'_>);

    /// Begins a request about a file; the answer goes to `from`. Must not wait for a device.
    fn file_request(&mut self, from: Address, request: WorldRequest, services: &mut Services<'_>);

    /// Handles another thread's message about a socket.
    fn socket_parcel(&mut self, parcel: SocketParcel, services: &mut Services<'_>);

    /// Changes how all threads spin.
    fn set_spinning(&mut self, settings: &SpinSettings);
    /// Changes how all threads send.
    fn set_sending(&mut self, settings: &SendSettings);

    /// Takes nothing more from other nodes.
    fn end_links(&mut self);

    /// Begins the node's stop.
    fn stop(&mut self);

    /// Ends the node at once, for this reason.
    fn halt(&mut self, message: &str);
}

/// The resources of an engine that a world uses while it carries out requests.
pub(crate) struct Services<'a> {
    pub buffers: &'a mut BufferPool,
    /// Events for blocks of this node.
    pub events: &'a mut Vec<(Address, WorldEvent)>,
    /// Parcels for threads of this node.
    pub parcels: &'a mut Vec<(u16, SocketParcel)>,
}

impl<S: Signal, H: Host<S>> Engine<S, H> {
    pub(crate) fn new(
        assignment: ThreadAssignment,
        host: H,
        rings: ThreadRings<S>,
        limits: &KernelLimits,
        (now, turn_clock): (Time, TurnClock),
    ) -> Self {
        let waiting_max = limits.waiting_max as usize;
        let mut outbox = Outbox::new(assignment.directory.clone(), assignment.thread, rings.outgoing, waiting_max);
        for &(module, instance) in &assignment.modules {
            outbox.deliver_event(assignment.directory.address(module, instance), WorldEvent::Started);
        }
        Self {
            host,
            outbox,
            incoming: rings.incoming.into_iter().map(|rings| Incoming { rings }).collect(),
            deferred: Default::default(),
            timers: Timers::new(limits.timers_max),
            random: match turn_clock.is_real() {
                true => Random::with_system_secrets(assignment.seed),
                false => Random::new(assignment.seed),
            },
            turn_clock,
            buffers: BufferPool::new(limits.buffer_bytes_max),
            tracer: Tracer::new(&assignment.name, limits.trace_entries, TraceNames::of::<S>()),
            digest: None,
            load: LoadMeter::new(Arc::clone(&assignment.loads), assignment.thread, now),
            socket_parcels: Vec::new(),
            events: Vec::new(),
            parcels: Vec::new(),
            turn_start: now,
            wall_clock_us: 0,
            handled: 0,
            hand_overs: 0,
            is_end_unreported: false,
            quota: u64::from(limits.quota.max(1)),
            waiting_max,
            stall: Stall { since: now, after: Duration(limits.stall_ns), burst: 1 },
            pace: Pace::new(assignment.directory.is_background(assignment.thread)),
            links: None,
            assignment,
        }
    }

    /// Handles due timers, deferred signals and signals from other threads. `first_ring` says whose ring is
    /// served first. Returns the number of signals handled.
    pub(crate) fn run(&mut self, now: Time, wall_clock_us: u64, first_ring: usize) -> u64 {
        self.report_turn_end(now);
        self.turn_start = now;
        self.wall_clock_us = wall_clock_us;
        self.handled = 0;
        let runs_long = self.outbox.take_next_turn(self.pace.may_work(now));
        self.drain_local();
        if runs_long {
            self.note_long_work();
        }
        self.run_timers();
        // A handler that took long stops the intake of further signals. The intake resumes before deferred
        // signals and again before the rings, so that each of them makes progress in every turn.
        self.outbox.resume_intake();
        self.run_deferred();
        self.outbox.resume_intake();
        // Moved out, so that a ring and the engine can be borrowed at the same time.
        let mut incoming = std::mem::take(&mut self.incoming);
        self.drain_high_rings(&mut incoming);
        let rings = incoming.len();
        for step in 0..rings {
            let position = (first_ring + step) % rings;
            if self.drain_ring(&mut incoming[position].rings[NORMAL], (position as u16, NORMAL as u8)) > 0 {
                self.drain_high_rings(&mut incoming);
            }
            if self.handled >= TURN_SIGNALS_MAX || self.outbox.is_intake_stopped() {
                break;
            }
        }
        self.incoming = incoming;
        self.handled
    }

    /// A delegated turn: thread `from` runs it while this thread sleeps or writes to its sockets. The turn
    /// takes only signals that `from` sent, because only these are known to be little work. Returns the
    /// number of signals handled, which count for `from`.
    pub(crate) fn run_delegated(&mut self, now: Time, wall_clock_us: u64, from: u16) -> u64 {
        self.turn_start = now;
        self.wall_clock_us = wall_clock_us;
        self.handled = 0;
        // Delegation requires that nothing is deferred, so no stall is in progress.
        (self.stall.since, self.stall.burst) = (now, 1);
        self.outbox.resume_intake();
        let mut incoming = std::mem::take(&mut self.incoming);
        // `incoming` has no entry for the thread itself, so positions after it are one less than the index.
        let position = usize::from(from) - usize::from(from > self.assignment.thread);
        if let Some(Incoming { rings: [normal, high] }) = incoming.get_mut(position) {
            self.drain_ring(high, (position as u16, HIGH as u8));
            self.drain_ring(normal, (position as u16, NORMAL as u8));
        }
        self.incoming = incoming;
        let handled = self.handled;
        self.notify_host_before_publish();
        self.handled = 0;
        self.release_rings();
        self.load.count_delegated_turn(std::mem::take(&mut self.hand_overs));
        handled
    }

    /// When the current turn began, by the node's clock and by the wall clock.
    pub(crate) fn turn_times(&self) -> (Time, u64) {
        (self.turn_start, self.wall_clock_us)
    }

    /// Restores the times of a turn after a delegated turn has interrupted it.
    pub(crate) fn set_turn_times(&mut self, (now, wall_clock_us): (Time, u64)) {
        (self.turn_start, self.wall_clock_us) = (now, wall_clock_us);
    }

    /// Reports to the host that the last turn ended at `now`, unless it was empty or is reported already.
    #[inline]
    pub(crate) fn report_turn_end(&mut self, now: Time) {
        if std::mem::take(&mut self.is_end_unreported) {
            self.host.turn_ended(self.turn_start, now);
        }
    }

    /// Ends the part of the turn that handles signals. Returns the number of signals handled.
    pub(crate) fn end_handling(&mut self) -> u64 {
        self.notify_host_before_publish();
        // Number of signals that a signal arriving now would wait for. Long-running signals do not count,
        // because each turn handles only one of them.
        let queue_length = self.waiting() - self.outbox.long_running_len() + self.release_rings();
        self.load.count_turn(self.handled, std::mem::take(&mut self.hand_overs), queue_length);
        std::mem::take(&mut self.handled)
    }

    fn notify_host_before_publish(&mut self) {
        if self.handled > 0 {
            self.is_end_unreported = true;
            let first = self.assignment.modules.first().copied().unwrap_or((ModuleId::new(0), 0));
            let own = self.assignment.directory.address(first.0, first.1);
            let (host, mut context, outbox) = self.handler_parts(own);
            host.before_publish(&mut context, outbox);
        }
    }

    /// Releases the consumed slots of all rings. Returns the number of visible parcels left in the rings.
    fn release_rings(&mut self) -> usize {
        let mut left = 0;
        for incoming in &mut self.incoming {
            // A sender that waits for space checks again after a short sleep, so nobody needs to wake it.
            let _ = incoming.rings[NORMAL].release() | incoming.rings[HIGH].release();
            left += (incoming.rings[NORMAL].seen() + incoming.rings[HIGH].seen()) as usize;
        }
        left
    }

    /// Carries out the blocks' requests. Sends a request about a socket to the thread that owns the socket.
    pub(crate) fn carry_out(&mut self, world: &mut impl World) {
        if !self.outbox.requests().is_empty() {
            let mut requests = std::mem::take(self.outbox.requests());
            for (from, request) in requests.drain(..) {
                self.carry_out_one(from, request, world);
            }
            // Carrying out a request makes no new one, so the emptied vector goes back for reuse.
            *self.outbox.requests() = requests;
        }
        if !self.socket_parcels.is_empty() {
            let mut services =
                Services { buffers: &mut self.buffers, events: &mut self.events, parcels: &mut self.parcels };
            for parcel in self.socket_parcels.drain(..) {
                world.socket_parcel(parcel, &mut services);
            }
        }
        self.deliver_events();
    }

    fn carry_out_one(&mut self, from: Address, request: WorldRequest, world: &mut impl World) {
        let directory = &self.assignment.directory;
        let owner_thread = match &request {
            WorldRequest::StartTimer { after, token } => {
                return self.timers.start(self.turn_start.plus(*after), from, *token);
            }
            WorldRequest::SetSpinning { settings } => return world.set_spinning(settings),
            WorldRequest::SetSending { settings } => return world.set_sending(settings),
            WorldRequest::SetMembership { change } => return self.change_membership(*change),
            WorldRequest::EndLinks => return world.end_links(),
            WorldRequest::Stop => return world.stop(),
            WorldRequest::Halt { message } => return world.halt(message),
            WorldRequest::SendBytes { socket, .. }
            | WorldRequest::CloseSocket { socket }
            | WorldRequest::AbortSocket { socket }
            | WorldRequest::PauseReading { socket }
            | WorldRequest::ResumeReading { socket } => directory.thread_of(ModuleId::SOCKETS, socket.owner()),
            // Workers outside the node's threads carry out requests about files.
            _ => None,
        };
        let owner_thread = owner_thread.unwrap_or(self.assignment.thread);
        if owner_thread != self.assignment.thread {
            return self.outbox.deliver_parcel(owner_thread, Parcel::Request(from, request));
        }
        let mut services =
            Services { buffers: &mut self.buffers, events: &mut self.events, parcels: &mut self.parcels };
        match request {
            WorldRequest::SendBytes { .. }
            | WorldRequest::CloseSocket { .. }
            | WorldRequest::AbortSocket { .. }
            | WorldRequest::PauseReading { .. }
            | WorldRequest::ResumeReading { .. } => world.socket_request(request, &mut services),
            _ => world.file_request(from, request, &mut services),
        }
    }

    /// Runs `action` with the engine's resources, and delivers the events and parcels that it emits.
    pub(crate) fn with_services<R>(&mut self, action: impl FnOnce(&mut Services<'_>) -> R) -> R {
        let mut services =
            Services { buffers: &mut self.buffers, events: &mut self.events, parcels: &mut self.parcels };
        let result = action(&mut services);
        self.deliver_events();
        result
    }

    fn deliver_events(&mut self) {
        for (to, event) in self.events.drain(..) {
            self.outbox.deliver_event(to, event);
        }
        for (thread, parcel) in self.parcels.drain(..) {
            if thread == self.assignment.thread {
                self.socket_parcels.push(parcel);
            } else {
                self.outbox.deliver_parcel(thread, Parcel::Socket(parcel));
            }
        }
    }

    /// Queues an event behind the local signals, and handles the local queue.
    pub(crate) fn deliver_now(&mut self, to: Address, event: WorldEvent) {
        self.outbox.deliver_event(to, event);
        self.drain_local();
    }

    /// Publishes sent signals. Calls `published` with each thread that has new input, and whether that input
    /// is little enough work for a delegated turn. Returns whether signals that had waited for space were
    /// published.
    pub(crate) fn flush(&mut self, published: impl FnMut(u16, bool)) -> bool {
        self.outbox.flush(published)
    }

    /// Whether the thread may read from a socket: no signal waits for space, and there is space for the
    /// signals that one read may emit.
    pub(crate) fn accepts_work(&mut self) -> bool {
        self.outbox.has_space(INPUT_EMIT_MAX)
    }

    /// Like [`Engine::accepts_work`], and reserves the space: delivering an event of the world reserves none.
    pub(crate) fn begin_input(&mut self) -> bool {
        let is_accepted = self.outbox.reserve_space(INPUT_EMIT_MAX);
        if is_accepted {
            self.load.count_input();
        }
        is_accepted
    }

    /// Whether signals wait until other threads free space in their mailboxes.
    pub(crate) fn is_blocked(&self) -> bool {
        self.outbox.backlog() > 0 || self.deferred_len() > 0
    }

    /// Whether the thread has work that needs no further input.
    pub(crate) fn has_local_work(&self) -> bool {
        self.outbox.local_len() > 0 || self.has_next_turn_work() || !self.socket_parcels.is_empty()
    }

    /// Whether requests to the world wait to be carried out.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        self.outbox.has_requests()
    }

    /// Whether a block continues long work in the next turn.
    #[inline]
    pub(crate) fn has_next_turn_work(&self) -> bool {
        self.continues_work_at(self.turn_start)
    }

    /// Whether a block continues long work in a turn that begins at `now`.
    #[inline]
    pub(crate) fn continues_work_at(&self, now: Time) -> bool {
        self.outbox.next_turn_len() > 0 || self.outbox.long_running_len() > 0 && self.pace.may_work(now)
    }

    /// Whether long-running work waits for the end of a pause.
    fn has_paused_work(&self) -> bool {
        self.outbox.long_running_len() > 0 && !self.pace.may_work(self.turn_start)
    }

    fn note_long_work(&mut self) {
        let end = self.turn_clock.now(self.turn_start);
        self.pace.note_work((self.turn_start, end), || self.load.inputs_of_all());
    }

    /// Whether another thread has published parcels for this one.
    pub(crate) fn has_mail(&mut self) -> bool {
        self.incoming
            .iter_mut()
            .any(|incoming| incoming.rings[NORMAL].refresh() > 0 || incoming.rings[HIGH].refresh() > 0)
    }

    /// Whether no signal waits here, and other threads have taken all signals sent to them.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let has_work = self.has_local_work() || self.has_paused_work();
        !self.is_blocked() && !has_work && !self.has_mail() && self.outbox.is_drained()
    }

    /// When a timer is due, or a pause of long-running work ends.
    pub(crate) fn next_timer(&self) -> Option<Time> {
        let pause_end = self.has_paused_work().then(|| self.pace.resumes_at());
        self.timers.next_due().into_iter().chain(pause_end).min()
    }

    /// Signals for other nodes.
    pub(crate) fn remote(&mut self) -> &mut VecDeque<Envelope<S>> {
        self.outbox.remote()
    }

    /// Queues a signal from another node for the next turn.
    pub(crate) fn receive(&mut self, envelope: Envelope<S>) {
        self.outbox.push_local(envelope);
    }

    /// Handles the local queue.
    pub(crate) fn run_local(&mut self) {
        self.drain_local();
    }

    /// Sets the maximum number of signals that a turn takes from one ring; at least 1.
    pub(crate) fn set_quota(&mut self, quota: u64) {
        self.quota = quota.max(1);
    }

    pub(crate) fn assignment(&self) -> &ThreadAssignment {
        &self.assignment
    }

    pub(crate) fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// Counts the hits of crash points from now on.
    pub(crate) fn watch_crash_points(&mut self, watch: Arc<CrashWatch>) {
        self.outbox.watch_crash_points(watch);
    }

    /// The crash point that was hit fatally in this turn, if any. The turn's signals must then not be
    /// published. Only requests made before the hit are left.
    pub(crate) fn take_crash(&mut self) -> Option<CrashPoint> {
        self.outbox.take_crash()
    }

    /// Includes every signal delivered from now on in a digest.
    pub(crate) fn keep_digest(&mut self) {
        self.digest.get_or_insert(0);
    }

    /// The digest of the signals delivered since the last call.
    pub(crate) fn take_digest(&mut self) -> u64 {
        self.digest.as_mut().map_or(0, std::mem::take)
    }

    /// Whether the last turn left signals in the rings because a handler took long.
    #[inline]
    pub(crate) fn is_intake_stopped(&self) -> bool {
        self.outbox.is_intake_stopped()
    }

    fn waiting(&self) -> usize {
        self.outbox.local_len()
            + self.outbox.next_turn_len()
            + self.outbox.long_running_len()
            + self.outbox.backlog()
            + self.deferred_len()
    }

    fn run_timers(&mut self) {
        while self.handled < TURN_SIGNALS_MAX
            && let Some((to, token)) = self.timers.take_due(self.turn_start)
        {
            self.deliver_now(to, WorldEvent::Timer { token });
        }
    }

    /// Handles deferred signals as far as space allows. After a stall, handles a few without space.
    fn run_deferred(&mut self) {
        if self.deferred_len() == 0 {
            self.stall.since = self.turn_start;
            self.stall.burst = 1;
            return;
        }
        self.outbox.set_closed(false);
        let mut forced = 0;
        if self.turn_start.since(self.stall.since) >= self.stall.after {
            forced = self.stall.burst;
            self.stall.burst = (self.stall.burst * 2).min(STALL_BURST_MAX);
        }
        for _ in 0..self.deferred_len().min(TURN_SIGNALS_MAX as usize) {
            let queue = if self.deferred[HIGH].is_empty() { NORMAL } else { HIGH };
            let Some(front) = self.deferred[queue].front() else { break };
            if !self.outbox.reserve_space(front.envelope.signal.emit_max().max(1)) {
                if forced == 0 {
                    break;
                }
                forced -= 1;
            }
            let Some(deferred) = self.deferred[queue].pop_front() else { break };
            self.stall.since = self.turn_start;
            // While other signals stay deferred, a deferrable signal that this handler sends to its own
            // thread must not be handled before them.
            self.outbox.set_closed(self.deferred_len() > 0);
            let header = SignalHeader::of(&deferred.envelope);
            self.record(&header);
            self.dispatch(&header, deferred.envelope.signal);
            self.return_credit(deferred.credit);
            self.drain_local();
            self.outbox.set_closed(false);
            if self.outbox.is_intake_stopped() {
                break;
            }
        }
        self.outbox.set_closed(self.deferred_len() > 0);
    }

    fn deferred_len(&self) -> usize {
        self.deferred[HIGH].len() + self.deferred[NORMAL].len()
    }

    fn drain_high_rings(&mut self, incoming: &mut [Incoming<S>]) {
        for (position, incoming) in incoming.iter_mut().enumerate() {
            self.drain_ring(&mut incoming.rings[HIGH], (position as u16, HIGH as u8));
        }
    }

    /// Handles parcels of one ring, up to the quota. Returns their number.
    fn drain_ring(&mut self, ring: &mut Consumer<Parcel<S>>, credit: (u16, u8)) -> u64 {
        let available = ring.refresh().min(self.quota);
        let mut taken = 0;
        while taken < available {
            self.receive_one(ring, credit);
            self.drain_local();
            taken += 1;
            if credit.1 == NORMAL as u8 && self.outbox.is_intake_stopped() {
                break;
            }
        }
        self.hand_overs += taken;
        taken
    }

    /// Handles or defers the next parcel of a ring. Inspects the parcel in its slot first, because moving it
    /// out and then to the handler would copy it twice.
    #[inline(always)]
    fn receive_one(&mut self, ring: &mut Consumer<Parcel<S>>, credit: (u16, u8)) {
        let header = |parcel: &Parcel<S>| match parcel {
            Parcel::Signal(envelope) => Some(SignalHeader::of(envelope)),
            _ => None,
        };
        let Some(Some(header)) = ring.inspect(header) else {
            return self.receive_parcel(ring);
        };
        if self.outbox.reserve_space(header.space) {
            self.record(&header);
            if header.space > 0 {
                // The ring returns credits when it is released at the end of the turn, so the sender cannot
                // get this credit back before the signal is handled.
                ring.finish_deferrable();
            }
            let signal = match ring.take() {
                Parcel::Signal(envelope) => envelope.signal,
                // `inspect` saw a signal, so this cannot happen. Dropping `other` here would make the
                // compiler copy the parcel out of its slot.
                other => return std::mem::forget(other),
            };
            self.dispatch(&header, signal);
        } else if let Parcel::Signal(envelope) = ring.take() {
            self.defer(Deferred { credit: Some(credit), envelope });
        }
    }

    #[inline(never)]
    fn receive_parcel(&mut self, ring: &mut Consumer<Parcel<S>>) {
        match ring.pop() {
            Some(Parcel::Event(to, event)) => self.outbox.deliver_event(to, event),
            Some(Parcel::Remote(envelope)) => self.outbox.push_remote(*envelope),
            Some(Parcel::Request(from, request)) => self.outbox.requests().push((from, request)),
            Some(Parcel::Socket(parcel)) => self.socket_parcels.push(parcel),
            Some(Parcel::Signal(_)) | None => fail("the ring holds the parcel that was inspected", format_args!("")),
        }
    }

    /// Handles or defers the next signal of the local queue, inspected in its slot first.
    #[inline(always)]
    fn handle_local(&mut self) {
        let Some(front) = self.outbox.peek_local() else { return };
        let header = SignalHeader::of(front);
        if self.outbox.reserve_space(header.space) {
            self.record(&header);
            let signal = self.outbox.pop_local().signal;
            self.dispatch(&header, signal);
        } else {
            let envelope = self.outbox.pop_local();
            self.defer(Deferred { credit: None, envelope });
        }
    }

    #[cold]
    fn defer(&mut self, deferred: Deferred<S>) {
        let queue = match deferred.envelope.signal.priority() {
            Priority::Normal => NORMAL,
            Priority::High => HIGH,
        };
        self.deferred[queue].push_back(deferred);
        self.outbox.set_closed(true);
    }

    fn return_credit(&mut self, credit: Option<(u16, u8)>) {
        if let Some((position, priority)) = credit {
            self.incoming[usize::from(position)].rings[usize::from(priority)].finish_deferrable();
        }
    }

    #[inline]
    pub(super) fn drain_local(&mut self) {
        if self.outbox.local_len() > 0 {
            self.drain_generations();
        }
    }

    fn drain_generations(&mut self) {
        for _ in 0..LOCAL_GENERATIONS_MAX {
            let generation = self.outbox.local_len();
            if generation == 0 {
                return;
            }
            for _ in 0..generation {
                self.handle_local();
            }
        }
        require!(self.waiting() <= self.waiting_max, "the {} waiting signals stay within waiting_max", self.waiting());
    }

    #[inline(always)]
    fn record(&mut self, header: &SignalHeader) {
        self.tracer.record(self.turn_start, header.to, header.from, header.number);
        if let Some(digest) = self.digest {
            self.digest = Some(self.digest_with(digest, header));
        }
        self.handled += 1;
    }

    #[inline(always)]
    fn dispatch(&mut self, header: &SignalHeader, signal: S) {
        let (host, mut context, outbox) = self.handler_parts(header.to);
        host.handle(Endpoints { to: header.to, from: header.from }, signal, &mut context, outbox);
    }

    /// The arguments of a handler of the block `own`.
    #[inline]
    fn handler_parts(&mut self, own: Address) -> (&mut H, Context<'_>, &mut Outbox<S>) {
        self.outbox.set_own(own);
        let context = Context {
            turn_start: self.turn_start,
            wall_clock_us: self.wall_clock_us,
            own_address: own,
            random: &mut self.random,
            buffers: &mut self.buffers,
            directory: &self.assignment.directory,
            loads: &self.assignment.loads,
            turn_clock: &mut self.turn_clock,
        };
        (&mut self.host, context, &mut self.outbox)
    }

    #[cold]
    fn digest_with(&self, digest: u64, header: &SignalHeader) -> u64 {
        let route = u64::from(header.to.to_bits()) << 32 | u64::from(header.from.to_bits());
        let thread = u64::from(self.assignment.node.0) << 16 | u64::from(self.assignment.thread);
        mix(mix(mix(mix(digest ^ self.turn_start.0) ^ route) ^ thread) ^ u64::from(header.number))
    }
}
