//! Hot path: at most 130 instructions for a signal of 128 bytes to a block of the same thread, besides the handler's.
//!
//! The turn of one thread, the same in the real and in the simulated world.
//!
//! A turn is [`Engine::run`], then the world's part of it ([`Engine::carry_out`], sockets), then [`Engine::flush`].
//! Nothing that was sent in a turn is seen by another thread before the flush.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::address::Address;
use crate::block::{Host, Priority, Signal, SignalClass};
use crate::buffer::BufferPool;
use crate::context::{Context, Duration, Time};
use crate::directory::ThreadSeat;
use crate::envelope::{Envelope, Parcel, SocketParcel};
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
use crate::stamp::Stamps;
use crate::trace::{TraceNames, Tracer};
use crate::world::{WorldEvent, WorldRequest};

/// A turn takes no more from rings and timers after so many signals, so that other threads soon see what was sent, and
/// sockets are looked at.
const TURN_SIGNALS_MAX: u64 = 64;

/// A signal from a ring and everything that follows from it on this thread count as one piece of work down to this
/// depth; a block that keeps sending to itself is then interrupted by the rings.
const LOCAL_GENERATIONS_MAX: u32 = 16;

/// Room for so many signals is wanted before bytes are read from a socket.
const INPUT_EMIT_MAX: u16 = 64;

/// The most requests that are taken without room at one stall.
const STALL_BURST_MAX: u32 = 64;

const NORMAL: usize = 0;
const HIGH: usize = 1;

/// What of a thread is the same in both worlds.
pub(crate) struct Engine<S: Signal, H: Host<S>> {
    seat: ThreadSeat,
    host: H,
    outbox: Outbox<S>,
    incoming: Vec<Incoming<S>>,
    deferred: [VecDeque<Deferred<S>>; 2],
    timers: Timers,
    random: Random,
    stamps: Stamps,
    pub(crate) buffers: BufferPool,
    tracer: Tracer,
    digest: Option<u64>,
    pub(crate) load: LoadMeter,
    socket_parcels: Vec<SocketParcel>,
    events: Vec<(Address, WorldEvent)>,
    parcels: Vec<(u16, SocketParcel)>,
    now: Time,
    wall_clock_us: u64,
    handled: u64,
    /// Parcels taken from other threads in this turn.
    hand_overs: u64,
    /// The host is to be told when the last turn ended.
    turn_is_open: bool,
    quota: u64,
    waiting_max: usize,
    stall: Stall,
}

/// The popping ends of the rings from one other thread, normal and high.
struct Incoming<S> {
    rings: [Consumer<Parcel<S>>; 2],
}

/// A request that waits for room, and the ring that gets its credit back: the position in `incoming` and the
/// priority, or nothing if it came from this thread.
struct Deferred<S> {
    credit: Option<(u16, u8)>,
    envelope: Envelope<S>,
}

/// What is asked of a signal while it is still in its slot.
struct SignalHeader {
    to: Address,
    from: Address,
    number: u16,
    /// Room that it needs to be handled now: for a request what it may emit, at least 1, so that no request passes
    /// another that was set aside; nothing for a reply.
    room: u16,
}

impl SignalHeader {
    #[inline(always)]
    fn of<S: Signal>(envelope: &Envelope<S>) -> Self {
        let signal = &envelope.signal;
        let is_request = signal.class() == SignalClass::Deferrable;
        let room = if is_request { signal.emit_max().max(1) } else { 0 };
        Self { to: envelope.to, from: envelope.from, number: signal.number(), room }
    }
}

/// How long no request was taken for lack of room.
struct Stall {
    since: Time,
    after: Duration,
    burst: u32,
}

/// The ends of all rings that one thread holds.
pub(crate) struct ThreadRings<S> {
    /// By target thread; nothing for the thread itself.
    pub outgoing: Vec<Option<[Producer<Parcel<S>>; 2]>>,
    pub incoming: Vec<[Consumer<Parcel<S>>; 2]>,
}

/// Rings between all threads of a node, by thread.
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

/// The part of a world that carries out requests on the thread where sockets or files live.
pub(crate) trait World {
    /// A request about a socket that this thread owns.
    fn socket_request(&mut self, request: WorldRequest, services: &mut Services<'_>);

    /// A request about a file; the answer goes to `from`.
    fn file_request(&mut self, from: Address, request: WorldRequest, services: &mut Services<'_>);

    /// What another thread says about sockets.
    fn socket_parcel(&mut self, parcel: SocketParcel, services: &mut Services<'_>);

    /// All threads spin like this from now on.
    fn set_spinning(&mut self, settings: &SpinSettings);
    /// All threads send like this from now on.
    fn set_sending(&mut self, settings: &SendSettings);

    /// The node is asked to stop.
    fn stop(&mut self);
}

/// What a world may use while it carries out requests.
pub(crate) struct Services<'a> {
    pub buffers: &'a mut BufferPool,
    /// Events for blocks of this node.
    pub events: &'a mut Vec<(Address, WorldEvent)>,
    /// Parcels for threads of this node.
    pub parcels: &'a mut Vec<(u16, SocketParcel)>,
}

impl<S: Signal, H: Host<S>> Engine<S, H> {
    pub(crate) fn new(
        seat: ThreadSeat,
        host: H,
        rings: ThreadRings<S>,
        limits: &KernelLimits,
        (now, stamps): (Time, Stamps),
    ) -> Self {
        let waiting_max = limits.waiting_max as usize;
        let mut outbox = Outbox::new(seat.directory.clone(), seat.thread, rings.outgoing, waiting_max);
        for &(module, instance) in &seat.modules {
            outbox.deliver_event(seat.directory.address(module, instance), WorldEvent::Started);
        }
        Self {
            host,
            outbox,
            incoming: rings.incoming.into_iter().map(|rings| Incoming { rings }).collect(),
            deferred: Default::default(),
            timers: Timers::new(limits.timers_max),
            random: Random::new(seat.seed),
            stamps,
            buffers: BufferPool::new(limits.buffer_bytes_max),
            tracer: Tracer::new(&seat.name, limits.trace_entries, TraceNames::of::<S>()),
            digest: None,
            load: LoadMeter::new(Arc::clone(&seat.loads), seat.thread, now),
            socket_parcels: Vec::new(),
            events: Vec::new(),
            parcels: Vec::new(),
            now,
            wall_clock_us: 0,
            handled: 0,
            hand_overs: 0,
            turn_is_open: false,
            quota: u64::from(limits.quota.max(1)),
            waiting_max,
            stall: Stall { since: now, after: Duration(limits.stall_ns), burst: 1 },
            seat,
        }
    }

    /// Takes what is due and what has come. `first_ring` decides which other thread is served first. Returns how many
    /// signals were handled.
    pub(crate) fn run(&mut self, now: Time, wall_clock_us: u64, first_ring: usize) -> u64 {
        self.close_turn(now);
        self.now = now;
        self.wall_clock_us = wall_clock_us;
        self.handled = 0;
        self.outbox.take_later();
        self.drain_local();
        self.run_timers();
        // Long work of the thread's own does not keep it from taking what others have sent, and what was set aside does not
        // keep it from taking what came after.
        self.outbox.take_more();
        self.run_deferred();
        self.outbox.take_more();
        // Taken out so that a ring and the engine can be used side by side.
        let mut incoming = std::mem::take(&mut self.incoming);
        self.take_high(&mut incoming);
        let rings = incoming.len();
        for step in 0..rings {
            let position = (first_ring + step) % rings;
            if self.take(&mut incoming[position].rings[NORMAL], (position as u16, NORMAL as u8)) > 0 {
                self.take_high(&mut incoming);
            }
            if self.handled >= TURN_SIGNALS_MAX || self.outbox.takes_no_more() {
                break;
            }
        }
        self.incoming = incoming;
        self.handled
    }

    /// A turn that thread `from` makes while this one rests or is away: takes what `from` has sent, and nothing else, for it is only that
    /// which is known to be little. Returns how many signals were handled, which count for `from`.
    pub(crate) fn run_delegated(&mut self, now: Time, wall_clock_us: u64, from: u16) -> u64 {
        self.now = now;
        self.wall_clock_us = wall_clock_us;
        self.handled = 0;
        // Nothing is set aside yet.
        (self.stall.since, self.stall.burst) = (now, 1);
        self.outbox.take_more();
        let mut incoming = std::mem::take(&mut self.incoming);
        // By the other threads, in order.
        let position = usize::from(from) - usize::from(from > self.seat.thread);
        if let Some(Incoming { rings: [normal, high] }) = incoming.get_mut(position) {
            self.take(high, (position as u16, HIGH as u8));
            self.take(normal, (position as u16, NORMAL as u8));
        }
        self.incoming = incoming;
        let handled = self.handled;
        self.end_blocks_turn();
        self.handled = 0;
        self.release_rings();
        self.load.count_delegated_turn(std::mem::take(&mut self.hand_overs));
        handled
    }

    /// When the last turn began, which a lent turn changes.
    pub(crate) fn time(&self) -> (Time, u64) {
        (self.now, self.wall_clock_us)
    }

    pub(crate) fn set_time(&mut self, (now, wall_clock_us): (Time, u64)) {
        (self.now, self.wall_clock_us) = (now, wall_clock_us);
    }

    /// The thread does something else than the last turn from `now` on.
    #[inline]
    pub(crate) fn close_turn(&mut self, now: Time) {
        if std::mem::take(&mut self.turn_is_open) {
            self.host.turn_ended(self.now, now);
        }
    }

    /// Ends the part of the turn that handles signals. Returns how many signals the turn handled in all.
    pub(crate) fn end_turn(&mut self) -> u64 {
        self.end_blocks_turn();
        // What a signal from another thread will wait for: not for long work, of which there is one piece a turn.
        let queue_length = self.waiting() - self.outbox.long_len() + self.release_rings();
        self.load.count_turn(self.handled, std::mem::take(&mut self.hand_overs), queue_length);
        std::mem::take(&mut self.handled)
    }

    fn end_blocks_turn(&mut self) {
        if self.handled > 0 {
            self.turn_is_open = true;
            let first = self.seat.modules.first().copied().unwrap_or((ModuleId::new(0), 0));
            let own = self.seat.directory.address(first.0, first.1);
            let (host, mut context, outbox) = self.parts(own);
            host.end_turn(&mut context, outbox);
        }
    }

    /// Gives back what was taken from the rings. Returns what is left in them, as far as was seen.
    fn release_rings(&mut self) -> usize {
        let mut left = 0;
        for incoming in &mut self.incoming {
            // A sender that waits for room looks again by itself after at most a short sleep.
            let _ = incoming.rings[NORMAL].release() | incoming.rings[HIGH].release();
            left += (incoming.rings[NORMAL].seen() + incoming.rings[HIGH].seen()) as usize;
        }
        left
    }

    /// Carries out what was asked of the world, here or by sending it to the thread where it belongs.
    pub(crate) fn carry_out(&mut self, world: &mut impl World) {
        if !self.outbox.requests().is_empty() {
            let mut requests = std::mem::take(self.outbox.requests());
            for (from, request) in requests.drain(..) {
                self.carry_out_one(from, request, world);
            }
            // Nothing that carries out a request makes a new one, so the empty vector takes its place again.
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
        let directory = &self.seat.directory;
        let place = match &request {
            WorldRequest::StartTimer { after, token } => {
                return self.timers.start(self.now.plus(*after), from, *token);
            }
            WorldRequest::SetSpinning { settings } => return world.set_spinning(settings),
            WorldRequest::SetSending { settings } => return world.set_sending(settings),
            WorldRequest::Stop => return world.stop(),
            WorldRequest::SendBytes { socket, .. }
            | WorldRequest::CloseSocket { socket }
            | WorldRequest::PauseReading { socket }
            | WorldRequest::ResumeReading { socket } => directory.thread_of(ModuleId::SOCKETS, socket.owner()),
            _ => directory.thread_of(ModuleId::FILES, 0),
        };
        let place = place.unwrap_or(self.seat.thread);
        if place != self.seat.thread {
            return self.outbox.deliver_parcel(place, Parcel::Request(from, request));
        }
        let mut services =
            Services { buffers: &mut self.buffers, events: &mut self.events, parcels: &mut self.parcels };
        match request {
            WorldRequest::SendBytes { .. }
            | WorldRequest::CloseSocket { .. }
            | WorldRequest::PauseReading { .. }
            | WorldRequest::ResumeReading { .. } => world.socket_request(request, &mut services),
            _ => world.file_request(from, request, &mut services),
        }
    }

    /// Gives the world the means to make events, and delivers those.
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
            if thread == self.seat.thread {
                self.socket_parcels.push(parcel);
            } else {
                self.outbox.deliver_parcel(thread, Parcel::Socket(parcel));
            }
        }
    }

    /// Hands an event to its block, after all that waits on this thread, with what follows on this thread.
    pub(crate) fn deliver_now(&mut self, to: Address, event: WorldEvent) {
        self.outbox.deliver_event(to, event);
        self.drain_local();
    }

    /// Publishes what was sent; `published` gets each thread that has news, and whether that is little. Returns whether a backlog moved.
    pub(crate) fn flush(&mut self, published: impl FnMut(u16, bool)) -> bool {
        self.outbox.flush(published)
    }

    /// Whether work from outside may be begun: nothing waits, and there is room for what one read may lead to.
    pub(crate) fn accepts_work(&mut self) -> bool {
        self.outbox.has_room(INPUT_EMIT_MAX)
    }

    /// As [`Engine::accepts_work`], and takes the room, since the events of the world may be taken like replies.
    pub(crate) fn begin_input(&mut self) -> bool {
        self.outbox.take_room(INPUT_EMIT_MAX)
    }

    /// Whether something waits for room that other threads must make.
    pub(crate) fn is_blocked(&self) -> bool {
        self.outbox.backlog() > 0 || self.deferred_len() > 0
    }

    /// Whether there is something to do without news from anybody.
    pub(crate) fn has_local_work(&self) -> bool {
        self.outbox.local_len() > 0 || self.has_later_work() || !self.socket_parcels.is_empty()
    }

    /// Whether blocks have asked something of the world that was not carried out yet.
    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        self.outbox.has_requests()
    }

    /// Whether a block goes on with long work in the next turn.
    #[inline]
    pub(crate) fn has_later_work(&self) -> bool {
        self.outbox.later_len() > 0
    }

    /// Whether something has come from another thread.
    pub(crate) fn has_mail(&mut self) -> bool {
        self.incoming
            .iter_mut()
            .any(|incoming| incoming.rings[NORMAL].refresh() > 0 || incoming.rings[HIGH].refresh() > 0)
    }

    /// Whether nothing waits here and other threads have taken everything sent to them.
    pub(crate) fn is_quiet(&mut self) -> bool {
        !self.is_blocked() && !self.has_local_work() && !self.has_mail() && self.outbox.is_drained()
    }

    pub(crate) fn next_timer(&self) -> Option<Time> {
        self.timers.next_due()
    }

    /// Signals for other nodes.
    pub(crate) fn remote(&mut self) -> &mut VecDeque<Envelope<S>> {
        self.outbox.remote()
    }

    /// A signal that came from another node; handled in the next turn.
    pub(crate) fn receive(&mut self, envelope: Envelope<S>) {
        self.outbox.push_local(envelope);
    }

    /// Handles what waits in the local queue.
    pub(crate) fn run_local(&mut self) {
        self.drain_local();
    }

    /// The most signals taken from one ring in a turn from now on.
    pub(crate) fn set_quota(&mut self, quota: u64) {
        self.quota = quota.max(1);
    }

    pub(crate) fn seat(&self) -> &ThreadSeat {
        &self.seat
    }

    pub(crate) fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// From now on every delivered signal changes the digest.
    pub(crate) fn keep_digest(&mut self) {
        self.digest.get_or_insert(0);
    }

    /// The digest of the signals delivered since it was last taken.
    pub(crate) fn take_digest(&mut self) -> u64 {
        self.digest.as_mut().map_or(0, std::mem::take)
    }

    /// Whether the last turn left what others have sent, for something took long.
    #[inline]
    pub(crate) fn took_no_more(&self) -> bool {
        self.outbox.takes_no_more()
    }

    fn waiting(&self) -> usize {
        self.outbox.local_len() + self.outbox.later_len() + self.outbox.backlog() + self.deferred_len()
    }

    fn run_timers(&mut self) {
        while self.handled < TURN_SIGNALS_MAX
            && let Some((to, token)) = self.timers.take_due(self.now)
        {
            self.deliver_now(to, WorldEvent::Timer { token });
        }
    }

    /// Takes requests that were set aside, as far as there is room, or some of them without room after a stall.
    fn run_deferred(&mut self) {
        if self.deferred_len() == 0 {
            self.stall.since = self.now;
            self.stall.burst = 1;
            return;
        }
        self.outbox.close_room(false);
        let mut forced = 0;
        if self.now.since(self.stall.since) >= self.stall.after {
            forced = self.stall.burst;
            self.stall.burst = (self.stall.burst * 2).min(STALL_BURST_MAX);
        }
        for _ in 0..self.deferred_len().min(TURN_SIGNALS_MAX as usize) {
            let queue = if self.deferred[HIGH].is_empty() { NORMAL } else { HIGH };
            let Some(front) = self.deferred[queue].front() else { break };
            if !self.outbox.take_room(front.envelope.signal.emit_max().max(1)) {
                if forced == 0 {
                    break;
                }
                forced -= 1;
            }
            let Some(deferred) = self.deferred[queue].pop_front() else { break };
            self.stall.since = self.now;
            // What the handler sends to this thread waits behind the others that were set aside.
            self.outbox.close_room(self.deferred_len() > 0);
            let question = SignalHeader::of(&deferred.envelope);
            self.record(&question);
            self.call(&question, deferred.envelope.signal);
            self.finish(deferred.credit);
            self.drain_local();
            self.outbox.close_room(false);
            if self.outbox.takes_no_more() {
                break;
            }
        }
        self.outbox.close_room(self.deferred_len() > 0);
    }

    fn deferred_len(&self) -> usize {
        self.deferred[HIGH].len() + self.deferred[NORMAL].len()
    }

    fn take_high(&mut self, incoming: &mut [Incoming<S>]) {
        for (position, incoming) in incoming.iter_mut().enumerate() {
            self.take(&mut incoming.rings[HIGH], (position as u16, HIGH as u8));
        }
    }

    /// Takes up to a quota from one ring. Returns how many parcels.
    fn take(&mut self, ring: &mut Consumer<Parcel<S>>, credit: (u16, u8)) -> u64 {
        let available = ring.refresh().min(self.quota);
        let mut taken = 0;
        while taken < available {
            self.take_one(ring, credit);
            self.drain_local();
            taken += 1;
            if credit.1 == NORMAL as u8 && self.outbox.takes_no_more() {
                break;
            }
        }
        self.hand_overs += taken;
        taken
    }

    /// Takes the next parcel of a ring. It is looked at in its slot first, so that it is moved only once.
    #[inline(always)]
    fn take_one(&mut self, ring: &mut Consumer<Parcel<S>>, credit: (u16, u8)) {
        let question = |parcel: &Parcel<S>| match parcel {
            Parcel::Signal(envelope) => Some(SignalHeader::of(envelope)),
            _ => None,
        };
        let Some(Some(question)) = ring.inspect(question) else {
            return self.take_parcel(ring);
        };
        if self.outbox.take_room(question.room) {
            self.record(&question);
            if question.room > 0 {
                // Nothing is released before the turn ends.
                ring.finish_request();
            }
            let signal = match ring.take() {
                Parcel::Signal(envelope) => envelope.signal,
                // It was a signal when it was looked at. Dropping what cannot be would cost a copy of what is.
                other => return std::mem::forget(other),
            };
            self.call(&question, signal);
        } else if let Parcel::Signal(envelope) = ring.take() {
            self.defer(Deferred { credit: Some(credit), envelope });
        }
    }

    #[inline(never)]
    fn take_parcel(&mut self, ring: &mut Consumer<Parcel<S>>) {
        match ring.pop() {
            Some(Parcel::Event(to, event)) => self.outbox.deliver_event(to, event),
            Some(Parcel::Request(from, request)) => self.outbox.requests().push((from, request)),
            Some(Parcel::Socket(parcel)) => self.socket_parcels.push(parcel),
            Some(Parcel::Signal(_)) | None => {}
        }
    }

    /// Takes the next signal of the local queue, looked at in its slot first.
    #[inline(always)]
    fn take_local(&mut self) {
        let Some(front) = self.outbox.front_local() else { return };
        let question = SignalHeader::of(front);
        if self.outbox.take_room(question.room) {
            self.record(&question);
            let signal = self.outbox.take_local().signal;
            self.call(&question, signal);
        } else {
            let envelope = self.outbox.take_local();
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
        self.outbox.close_room(true);
    }

    fn finish(&mut self, credit: Option<(u16, u8)>) {
        if let Some((position, priority)) = credit {
            self.incoming[usize::from(position)].rings[usize::from(priority)].finish_request();
        }
    }

    #[inline]
    fn drain_local(&mut self) {
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
                self.take_local();
            }
        }
        require!(self.waiting() <= self.waiting_max, "{} signals wait", self.waiting());
    }

    #[inline(always)]
    fn record(&mut self, question: &SignalHeader) {
        self.tracer.record(self.now, question.to, question.from, question.number);
        if let Some(digest) = self.digest {
            self.digest = Some(self.digest_with(digest, question));
        }
        self.handled += 1;
    }

    #[inline(always)]
    fn call(&mut self, question: &SignalHeader, signal: S) {
        let (host, mut context, outbox) = self.parts(question.to);
        host.handle(question.to, question.from, signal, &mut context, outbox);
    }

    /// The host, its context and its outbox, set to act for the block `own`.
    #[inline]
    fn parts(&mut self, own: Address) -> (&mut H, Context<'_>, &mut Outbox<S>) {
        self.outbox.set_own(own);
        let context = Context {
            now: self.now,
            wall_clock_us: self.wall_clock_us,
            own,
            random: &mut self.random,
            buffers: &mut self.buffers,
            directory: &self.seat.directory,
            loads: &self.seat.loads,
            stamps: &mut self.stamps,
        };
        (&mut self.host, context, &mut self.outbox)
    }

    #[cold]
    fn digest_with(&self, digest: u64, question: &SignalHeader) -> u64 {
        let route = u64::from(question.to.to_bits()) << 32 | u64::from(question.from.to_bits());
        let thread = u64::from(self.seat.node.0) << 16 | u64::from(self.seat.thread);
        mix(mix(mix(mix(digest ^ self.now.0) ^ route) ^ thread) ^ u64::from(question.number))
    }
}
