//! Hot path: at most 120 instructions for a signal of 128 bytes, including those that move it.
//!
//! Collects the signals and requests of handlers. A signal goes to a block of the same thread, of another
//! thread or of another node; a request goes to the world: timers, sockets and files.
//!
//! # Why full rings cannot stop a node
//!
//! 1. *A consumer always empties its rings*, whatever else is full. It handles reserved signals, and it
//!    defers deferrable signals if their handlers might find no space to send. A deferrable signal keeps its
//!    credit until it is handled, and a ring has credits for half of its slots, so the number of signals
//!    deferred from a ring is bounded. The content of a ring therefore waits only for its consumer's next
//!    turn.
//! 2. *Handling never waits*: a signal that finds no slot or no credit goes to the backlog of its link.
//!    Reserved and deferrable signals wait in different backlogs, so a reserved signal never waits for a
//!    credit; by (1) it gets a slot.
//! 3. *A deferred signal is handled eventually*: usually when all links have space for what it may emit. If
//!    the thread handled none for `stall_ns`, it handles some without space; each further stall in a row
//!    doubles that number, up to a maximum. If threads wait for each other's credits in a cycle, each of them
//!    therefore handles a deferred signal from time to time. This returns a credit and resolves the cycle.
//! 4. *The number of waiting signals is bounded*: a thread with a backlog or deferred signals reads no
//!    socket, and other threads run out of credits towards it and stop reading theirs. The remaining work is
//!    what the blocks admitted, each piece a bounded number of signals. `waiting_max` lies above that;
//!    reaching it breaks an invariant.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::address::Address;
use crate::block::{Priority, Signal, SignalClass};
use crate::crash_point::{CrashPoint, CrashWatch};
use crate::directory::Directory;
use crate::envelope::{Envelope, Parcel, SocketParcel};
use crate::mailbox::{LocalQueue, Producer};
use crate::require;
use crate::scheduler::delegation::INLINE_SIGNALS_MAX;
use crate::transport::board::LinkRoutes;
use crate::world::{WorldEvent, WorldRequest};

/// Marks another node in place of a thread index.
const OTHER_NODE: u16 = u16::MAX - 1;

/// Maximum number of long-running signals that wait for a turn of their own. If more wait, the next turn also
/// handles the oldest of them.
const LONG_MAX: usize = 64;

/// Value of `Outbox::space_max` on a thread without links to other threads.
const SPACE_WITHOUT_LINKS: u64 = 1 << 32;

/// Collects what handlers emit. Other threads see none of it before the end of the turn.
pub struct Outbox<S> {
    own: Address,
    thread: u16,
    directory: Arc<Directory>,
    local: LocalQueue<Envelope<S>>,
    /// Local signals for the next turn, which handles all of them.
    next_turn: VecDeque<Envelope<S>>,
    /// Local signals that take long. Each turn handles one.
    long_running: VecDeque<Envelope<S>>,
    links: Vec<Option<Link<S>>>,
    requests: Vec<(Address, WorldRequest)>,
    remote: VecDeque<Envelope<S>>,
    /// Which thread owns which channel to other nodes; `None` without links.
    routes: Option<Arc<LinkRoutes>>,
    /// Whether the links of this thread have something to do at the end of the turn.
    has_link_work: bool,
    /// Number of signals of this thread in `backlog` that wait for credits of other nodes.
    link_backlog: usize,
    /// Number of deferrable signals that every link accepts at least; refreshed when used up.
    space: u64,
    /// The value of `space` when every ring is empty.
    space_max: u64,
    /// Number of signals in all backlogs.
    backlog: usize,
    /// Whether `space` counts as 0 because earlier signals are deferred.
    is_closed: bool,
    /// Whether this turn takes nothing more from other threads.
    is_intake_stopped: bool,
    waiting_max: usize,
    /// Only in simulations and tests of crashes.
    crash_watch: Option<Arc<CrashWatch>>,
    /// The point of a fatal hit, and the number of requests made before it.
    crashed: Option<(CrashPoint, usize)>,
}

/// The path to another thread: a ring and two backlogs for each priority.
struct Link<S> {
    normal: Lane<S>,
    high: Lane<S>,
    /// Whether the signals since the last flush are too much work for a delegated turn, even if they are few.
    /// In a delegated turn, the sender handles signals in place of the sleeping receiver.
    is_heavy: bool,
    /// Whether the sender or the receiver is a background thread, so that no signal is fit for such a turn.
    is_apart: bool,
}

struct Lane<S> {
    ring: Producer<Parcel<S>>,
    deferrable: VecDeque<Parcel<S>>,
    reserved: VecDeque<Parcel<S>>,
}

impl<S: Signal> Outbox<S> {
    /// Sends a signal to a block of this or another thread or node. The address must exist.
    #[inline]
    pub fn send(&mut self, to: Address, signal: S) {
        let is_here = to.node == self.own.node;
        let thread = if is_here { self.directory.thread_or_none(to.module, to.instance) } else { OTHER_NODE };
        let from = self.own;
        if thread == self.thread
            && let Some(slot) = self.local.slot()
        {
            slot.fill(Envelope { to, from, signal });
        } else {
            self.send_across_threads(thread, to, signal);
        }
    }

    /// Sends a signal that is handled in the next turn if it stays on this thread. A block uses this to
    /// continue long work in steps: input that arrives meanwhile is handled between two steps. This turn's
    /// signals to other threads are published before the next step, so threads that share a piece of work run
    /// in parallel.
    pub fn send_next_turn(&mut self, to: Address, signal: S) {
        match self.stays_on_thread(to) {
            true => self.next_turn.push_back(Envelope { to, from: self.own, signal }),
            false => self.send(to, signal),
        }
    }

    /// Like [`Outbox::send_next_turn`], for a signal whose handler takes long. A turn handles one such
    /// signal, the oldest, unless such work pauses. If more than [`LONG_MAX`] wait, the next turn handles the
    /// oldest in addition.
    pub fn send_long_running(&mut self, to: Address, signal: S) {
        if !self.stays_on_thread(to) {
            return self.send(to, signal);
        }
        if self.long_running.len() >= LONG_MAX {
            self.next_turn.extend(self.long_running.pop_front());
        }
        self.long_running.push_back(Envelope { to, from: self.own, signal });
    }

    /// Marks the signal just sent to this address as too much work for a delegated turn: if the receiving
    /// thread sleeps, it is woken.
    #[inline]
    pub fn mark_heavy(&mut self, to: Address) {
        let is_here = to.node == self.own.node;
        let thread = if is_here { self.directory.thread_or_none(to.module, to.instance) } else { OTHER_NODE };
        if let Some(Some(link)) = self.links.get_mut(usize::from(thread)) {
            link.is_heavy = true;
        }
    }

    fn stays_on_thread(&self, to: Address) -> bool {
        let is_here = to.node == self.own.node && self.thread != Self::TEST_THREAD;
        is_here && self.directory.thread_or_none(to.module, to.instance) == self.thread
    }

    /// Whether a signal came from another thread or node.
    #[inline]
    pub fn is_from_other_thread(&self, from: Address) -> bool {
        self.thread != Self::TEST_THREAD && !self.stays_on_thread(from)
    }

    /// Makes this turn take no more signals from other threads. A handler that took long calls this, so that
    /// its output is published before similar work begins.
    #[inline]
    pub fn stop_intake(&mut self) {
        self.is_intake_stopped = true;
    }

    /// Sends a request to the world. Requests are carried out at the end of the turn, in order.
    #[inline]
    pub fn request(&mut self, request: WorldRequest) {
        self.requests.push((self.own, request));
    }

    /// A point at which a test may end the node: nothing that the handler sends or requests after a fatal
    /// hit leaves the thread. Costs a branch if nobody watches the node's crash points.
    #[inline]
    pub fn crash_point(&mut self, point: CrashPoint) {
        if self.crash_watch.is_some() {
            self.hit_crash_point(point);
        }
    }

    #[cold]
    #[inline(never)]
    fn hit_crash_point(&mut self, point: CrashPoint) {
        // After the fatal hit the turn still runs to its end. Its later hits are not real.
        if self.crashed.is_none() && self.crash_watch.as_ref().is_some_and(|watch| watch.hit(point)) {
            self.crashed = Some((point, self.requests.len()));
        }
    }

    /// Address of the block whose handler runs.
    #[inline]
    pub fn own(&self) -> Address {
        self.own
    }

    /// An outbox outside any node, for tests of a single block. It keeps everything until
    /// [`Outbox::take_sent`] and [`Outbox::take_requests`].
    pub fn for_test(own: Address) -> Self {
        let layout = crate::directory::NodeLayout { threads: vec![crate::directory::ThreadLayout::default()] };
        match Directory::new(own.node, &layout) {
            Ok(directory) => {
                let mut outbox = Self::new(Arc::new(directory), 0, Vec::new(), usize::MAX);
                outbox.own = own;
                outbox.thread = Self::TEST_THREAD;
                outbox
            }
            Err(fault) => crate::invariant::fail("a layout of one thread is valid", format_args!("{fault}")),
        }
    }

    /// The thread of an outbox for tests. Its directory finds no thread for any address, so every signal
    /// counts as local.
    const TEST_THREAD: u16 = Directory::NO_THREAD;

    /// Removes the signals that were sent: the ordinary ones in order, then those for other nodes, those for
    /// the next turn, and the long-running ones. For tests.
    pub fn take_sent(&mut self) -> Vec<(Address, S)> {
        let local = std::iter::from_fn(|| self.local.pop());
        local
            .chain(self.remote.drain(..))
            .chain(self.next_turn.drain(..))
            .chain(self.long_running.drain(..))
            .map(|envelope| (envelope.to, envelope.signal))
            .collect()
    }

    /// Removes the requests that were made, in order. For tests.
    pub fn take_requests(&mut self) -> Vec<WorldRequest> {
        self.requests.drain(..).map(|(_, request)| request).collect()
    }

    /// Sends to another thread if its ring is known to have space. Rare cases are in a function of their own,
    /// so that this one need not save registers.
    #[inline(never)]
    fn send_across_threads(&mut self, thread: u16, to: Address, signal: S) {
        let from = self.own;
        if let Some(Some(link)) = self.links.get_mut(usize::from(thread)) {
            let lane = match signal.priority() {
                Priority::Normal => &mut link.normal,
                Priority::High => &mut link.high,
            };
            let credits = u64::from(signal.class() == SignalClass::Deferrable);
            if lane.deferrable.is_empty()
                && lane.reserved.is_empty()
                && let Some(slot) = lane.ring.slot_seen(credits)
            {
                return slot.fill(Parcel::Signal(Envelope { to, from, signal }));
            }
        }
        self.send_slowly(thread, to, signal);
    }

    #[cold]
    #[inline(never)]
    fn send_slowly(&mut self, thread: u16, to: Address, signal: S) {
        let envelope = Envelope { to, from: self.own, signal };
        if thread == OTHER_NODE {
            return self.send_to_node(envelope);
        }
        if thread == self.thread {
            return self.push_local(envelope);
        }
        require!(thread != Directory::NO_THREAD, "{} sends to an existing address, not {to}", self.own);
        let (class, priority) = (envelope.signal.class(), envelope.signal.priority());
        let lane = self.lane(thread, priority);
        let slot = match class {
            SignalClass::Deferrable if lane.deferrable.is_empty() => lane.ring.deferrable_slot(),
            SignalClass::Reserved if lane.reserved.is_empty() => lane.ring.slot(),
            _ => None,
        };
        match slot {
            Some(slot) => slot.fill(Parcel::Signal(envelope)),
            None => self.push_backlog(thread, class, priority, Parcel::Signal(envelope)),
        }
    }

    /// Puts a parcel into its ring, or into the backlog if no slot or credit is free.
    fn put(&mut self, thread: u16, (class, priority): (SignalClass, Priority), parcel: Parcel<S>) {
        let lane = self.lane(thread, priority);
        let slot = match class {
            SignalClass::Deferrable if lane.deferrable.is_empty() => lane.ring.deferrable_slot(),
            SignalClass::Reserved if lane.reserved.is_empty() => lane.ring.slot(),
            _ => None,
        };
        match slot {
            Some(slot) => slot.fill(parcel),
            None => self.push_backlog(thread, class, priority, parcel),
        }
    }

    /// Sends to another node, through the thread that owns the channel.
    fn send_to_node(&mut self, envelope: Envelope<S>) {
        let owner = self.routes.as_ref().map_or(self.thread, |routes| routes.thread_of(envelope.to));
        if owner == self.thread {
            self.has_link_work = true;
            return self.remote.push_back(envelope);
        }
        let (class, priority) = (envelope.signal.class(), envelope.signal.priority());
        self.put(owner, (class, priority), Parcel::Remote(Box::new(envelope)));
    }

    /// Sends one of the kernel's own messages to another thread, like a reserved signal.
    fn post(&mut self, thread: u16, parcel: Parcel<S>) {
        let lane = self.lane(thread, Priority::Normal);
        match lane.ring.slot().filter(|_| lane.reserved.is_empty()) {
            Some(slot) => slot.fill(parcel),
            None => self.push_backlog(thread, SignalClass::Reserved, Priority::Normal, parcel),
        }
    }

    /// Appends a parcel that found no slot or credit to the backlog.
    #[cold]
    fn push_backlog(&mut self, thread: u16, class: SignalClass, priority: Priority, parcel: Parcel<S>) {
        let lane = self.lane(thread, priority);
        match class {
            SignalClass::Deferrable => lane.deferrable.push_back(parcel),
            SignalClass::Reserved => lane.reserved.push_back(parcel),
        }
        self.backlog += 1;
        self.space = 0;
        require!(self.backlog <= self.waiting_max, "the backlog of {} signals stays within waiting_max", self.backlog);
    }

    #[inline]
    fn lane(&mut self, thread: u16, priority: Priority) -> &mut Lane<S> {
        match (self.links.get_mut(usize::from(thread)), priority) {
            (Some(Some(link)), Priority::Normal) => &mut link.normal,
            (Some(Some(link)), Priority::High) => &mut link.high,
            (_, _) => crate::invariant::fail("every other thread has a link", format_args!("thread {thread}")),
        }
    }
}

impl<S: Signal> Outbox<S> {
    /// `links` holds the normal and the high ring to every thread, and `None` for the thread itself.
    pub(crate) fn new(
        directory: Arc<Directory>,
        thread: u16,
        links: Vec<Option<[Producer<Parcel<S>>; 2]>>,
        waiting_max: usize,
    ) -> Self {
        let is_apart = |other: usize| directory.is_background(thread) || directory.is_background(other as u16);
        let link = |(other, rings): (usize, Option<[Producer<Parcel<S>>; 2]>)| {
            let [normal, high] = rings?;
            Some(Link { normal: Lane::new(normal), high: Lane::new(high), is_heavy: false, is_apart: is_apart(other) })
        };
        let links: Vec<_> = links.into_iter().enumerate().map(link).collect();
        let own = directory.address(crate::module::ModuleId::new(0), 0);
        let space_max = links.iter().flatten().map(|link| link.normal.ring.capacity() / 2).min();
        Self {
            own,
            thread,
            directory,
            local: LocalQueue::new(64),
            next_turn: VecDeque::new(),
            long_running: VecDeque::new(),
            links,
            requests: Vec::with_capacity(64),
            remote: VecDeque::new(),
            routes: None,
            has_link_work: false,
            link_backlog: 0,
            space: 0,
            space_max: space_max.unwrap_or(SPACE_WITHOUT_LINKS),
            backlog: 0,
            is_closed: false,
            is_intake_stopped: false,
            waiting_max,
            crash_watch: None,
            crashed: None,
        }
    }

    #[inline]
    pub(crate) fn set_own(&mut self, own: Address) {
        self.own = own;
    }

    /// Reserves space for `signals` signals on every link; always succeeds for 0. Fails if some link may lack
    /// the space. If even empty rings have less space than that, reserves all of their space.
    #[inline(always)]
    pub(crate) fn reserve_space(&mut self, signals: u16) -> bool {
        let wanted = u64::from(signals).min(self.space_max);
        if self.space < wanted && !self.find_space(wanted) {
            return false;
        }
        self.space -= wanted;
        true
    }

    /// Whether [`Outbox::reserve_space`] would succeed.
    pub(crate) fn has_space(&mut self, signals: u16) -> bool {
        let wanted = u64::from(signals).min(self.space_max);
        self.space >= wanted || self.find_space(wanted)
    }

    /// With `closed`, no space can be reserved, so that no signal overtakes one that is deferred.
    pub(crate) fn set_closed(&mut self, closed: bool) {
        self.is_closed = closed;
        self.space = 0;
    }

    #[inline(never)]
    fn find_space(&mut self, wanted: u64) -> bool {
        // The backlog is tested here and not where it is emptied, so that no space is found while anything
        // waits.
        self.space = if self.backlog == 0 && !self.is_closed { self.space_in_rings() } else { 0 };
        self.space >= wanted
    }

    fn space_in_rings(&mut self) -> u64 {
        let links = self.links.iter_mut().flatten();
        links.map(|link| link.normal.ring.credits().min(link.normal.ring.free())).min().unwrap_or(SPACE_WITHOUT_LINKS)
    }

    #[inline(always)]
    pub(crate) fn peek_local(&self) -> Option<&Envelope<S>> {
        self.local.front()
    }

    #[inline(always)]
    pub(crate) fn pop_local(&mut self) -> Envelope<S> {
        self.local.take()
    }

    pub(crate) fn push_local(&mut self, envelope: Envelope<S>) {
        self.local.push(envelope);
    }

    #[inline]
    pub(crate) fn local_len(&self) -> usize {
        self.local.len()
    }

    /// Number of local signals for the next turn, apart from long-running ones.
    #[inline]
    pub(crate) fn next_turn_len(&self) -> usize {
        self.next_turn.len()
    }

    /// Number of local long-running signals for later turns.
    #[inline]
    pub(crate) fn long_running_len(&self) -> usize {
        self.long_running.len()
    }

    /// At the beginning of a turn, moves the signals that were kept for this turn to the local queue. With
    /// `takes_long`, the oldest long-running one is among them; returns whether there was one.
    #[inline]
    pub(crate) fn take_next_turn(&mut self, takes_long: bool) -> bool {
        while let Some(envelope) = self.next_turn.pop_front() {
            self.local.push(envelope);
        }
        if !takes_long {
            return false;
        }
        let long = self.long_running.pop_front();
        let is_any = long.is_some();
        long.into_iter().for_each(|envelope| self.local.push(envelope));
        is_any
    }

    /// Reverses [`Outbox::stop_intake`].
    #[inline]
    pub(crate) fn resume_intake(&mut self) {
        self.is_intake_stopped = false;
    }

    /// Whether a handler called [`Outbox::stop_intake`] since [`Outbox::resume_intake`].
    #[inline(always)]
    pub(crate) fn is_intake_stopped(&self) -> bool {
        self.is_intake_stopped
    }

    pub(crate) fn backlog(&self) -> usize {
        self.backlog
    }

    /// Sends signals for other nodes through the threads that own their channels from now on.
    pub(crate) fn set_routes(&mut self, routes: Arc<LinkRoutes>) {
        self.routes = Some(routes);
    }

    /// Another thread's signal for another node, whose channel this thread owns.
    pub(crate) fn push_remote(&mut self, envelope: Envelope<S>) {
        self.has_link_work = true;
        self.remote.push_back(envelope);
    }

    /// Delivers a signal of another node to a block of this node.
    pub(crate) fn deliver_from_node(&mut self, envelope: Envelope<S>) {
        let thread = self.directory.thread_or_none(envelope.to.module, envelope.to.instance);
        require!(thread != Directory::NO_THREAD, "a link delivers to existing blocks, not to {}", envelope.to);
        if thread == self.thread {
            return self.push_local(envelope);
        }
        let (class, priority) = (envelope.signal.class(), envelope.signal.priority());
        self.put(thread, (class, priority), Parcel::Signal(envelope));
    }

    /// Whether the links of this thread have something to do at the end of the turn.
    #[inline]
    pub(crate) fn has_link_work(&self) -> bool {
        self.has_link_work
    }

    pub(crate) fn set_link_work(&mut self, has_link_work: bool) {
        self.has_link_work = has_link_work;
    }

    /// Counts the signals of this thread that wait for credits of other nodes. While there are any, the
    /// thread takes no new work.
    pub(crate) fn set_link_backlog(&mut self, waiting: usize) {
        self.backlog = self.backlog - self.link_backlog + waiting;
        self.link_backlog = waiting;
        if waiting > 0 {
            self.space = 0;
        }
    }

    /// The directory of this node.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Signals for other nodes.
    pub(crate) fn remote(&mut self) -> &mut VecDeque<Envelope<S>> {
        &mut self.remote
    }

    /// The requests of blocks to the world.
    #[inline]
    pub(crate) fn requests(&mut self) -> &mut Vec<(Address, WorldRequest)> {
        &mut self.requests
    }

    #[inline]
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Counts the hits of crash points from now on.
    pub(crate) fn watch_crash_points(&mut self, watch: Arc<CrashWatch>) {
        self.crash_watch = Some(watch);
    }

    /// Returns the point of a fatal hit, and drops the requests made after the hit.
    pub(crate) fn take_crash(&mut self) -> Option<CrashPoint> {
        let (point, requests) = self.crashed.take()?;
        self.requests.truncate(requests);
        Some(point)
    }

    /// Sends an event of the world to a block of this node.
    pub(crate) fn deliver_event(&mut self, to: Address, event: WorldEvent) {
        let thread = self.directory.thread_or_none(to.module, to.instance);
        require!(thread != Directory::NO_THREAD, "an event goes to an existing address, not {to}");
        if thread == self.thread {
            self.local.push(Envelope { to, from: to, signal: S::from_world(event) });
        } else {
            self.post(thread, Parcel::Event(to, event));
        }
    }

    /// Sends a parcel of the kernel to another thread.
    pub(crate) fn deliver_parcel(&mut self, thread: u16, parcel: Parcel<S>) {
        // The output was handed over so that this thread need not write it. In a delegated turn, this thread
        // would write it after all, so wake the helper.
        if let (Parcel::Socket(SocketParcel::WriteOutput(_)), Some(Some(link))) =
            (&parcel, self.links.get_mut(usize::from(thread)))
        {
            link.is_heavy = true;
        }
        self.post(thread, parcel);
    }

    /// Moves backlogs into rings as far as space allows, and publishes all rings. Calls `published` with each
    /// thread that has new input, and whether that input is little enough work for a delegated turn. Returns
    /// whether signals of a backlog were published.
    #[inline]
    pub(crate) fn flush(&mut self, mut published: impl FnMut(u16, bool)) -> bool {
        let mut moved = 0;
        let waits = self.backlog > 0;
        for (thread, link) in self.links.iter_mut().enumerate() {
            let Some(link) = link else { continue };
            if waits {
                moved += link.high.move_backlog() + link.normal.move_backlog();
            }
            let fresh = link.normal.ring.publish() + link.high.ring.publish();
            if fresh > 0 {
                let is_heavy = std::mem::take(&mut link.is_heavy) || link.is_apart || fresh > INLINE_SIGNALS_MAX;
                published(thread as u16, !is_heavy);
            }
        }
        self.backlog -= moved;
        moved > 0
    }

    /// Whether other threads have taken all signals sent to them.
    pub(crate) fn is_drained(&mut self) -> bool {
        let links = self.links.iter_mut().flatten();
        self.backlog == 0
            && self.remote.is_empty()
            && links.fold(true, |all, link| all & link.normal.ring.is_drained() & link.high.ring.is_drained())
    }
}

impl<S: Signal> Lane<S> {
    fn new(ring: Producer<Parcel<S>>) -> Self {
        Self { ring, deferrable: VecDeque::new(), reserved: VecDeque::new() }
    }

    /// Moves parcels of the backlogs into the ring. Returns their number. Reserved parcels go first, so that
    /// deferrable parcels never take the last slots.
    fn move_backlog(&mut self) -> usize {
        let mut moved = 0;
        while let Some(parcel) = self.reserved.pop_front() {
            if let Err(parcel) = self.ring.push(parcel) {
                self.reserved.push_front(parcel);
                break;
            }
            moved += 1;
        }
        while let Some(parcel) = self.deferrable.pop_front() {
            if let Err(parcel) = self.ring.push_deferrable(parcel) {
                self.deferrable.push_front(parcel);
                break;
            }
            moved += 1;
        }
        moved
    }
}
