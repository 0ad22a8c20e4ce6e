//! Hot path: at most 120 instructions a signal of 128 bytes, including those that move it.
//!
//! The signals and requests that handlers emit, on their way to the same thread, another thread, another node
//! or the world.
//!
//! # Why full rings cannot stop a node
//!
//! 1. *A ring is always emptied by its consumer*, whatever else is full: a reserved signal is handled, a
//!    deferrable signal without space is deferred. At most half of a ring's capacity can be deferred from it,
//!    because a deferrable signal keeps its credit until it is handled. The content of a ring therefore waits
//!    for nothing but its consumer's next turn.
//! 2. *Handling never waits*: a signal that finds no slot or no credit goes to the backlog of its link.
//!    Reserved and deferrable signals wait in different backlogs, so a reserved signal never waits for a
//!    credit; by (1) its slot comes.
//! 3. *A deferred signal is handled eventually*: usually when all links have space for what it may emit. If
//!    the thread handled none for `stall_ns`, it handles some without space; each further stall in a row takes
//!    twice as many, up to a bound. In a circle of threads that all wait for each other's credits, each one
//!    therefore handles a deferred signal now and then, which returns a credit, and the circle moves.
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
use crate::world::{WorldEvent, WorldRequest};

/// Marks another node in place of a thread index.
const OTHER_NODE: u16 = u16::MAX - 1;

/// Maximum number of long-running signals that wait to be handled one a turn. Beyond it, the oldest is
/// handled in the next turn.
const LONG_MAX: usize = 64;

/// Room of a thread without links to other threads.
const SPACE_WITHOUT_LINKS: u64 = 1 << 32;

/// Collects what handlers emit. Other threads see none of it before the end of the turn.
pub struct Outbox<S> {
    own: Address,
    thread: u16,
    directory: Arc<Directory>,
    local: LocalQueue<Envelope<S>>,
    /// Local signals for the next turn.
    next_turn: VecDeque<Envelope<S>>,
    /// Local signals that take long, handled one a turn.
    long_running: VecDeque<Envelope<S>>,
    links: Vec<Option<Link<S>>>,
    requests: Vec<(Address, WorldRequest)>,
    remote: VecDeque<Envelope<S>>,
    /// Lower bound of the deferrable signals that any link accepts; refreshed when used up.
    space: u64,
    /// The space when every ring is empty.
    space_max: u64,
    backlog: usize,
    /// Whether deferred signals forbid any space.
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
    is_heavy: bool,
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

    /// Sends a signal that is handled in the next turn if it stays on this thread. Signals to other threads
    /// are published before that, and input that arrives meanwhile, also from sockets, goes first. A block
    /// uses this to continue long work: nobody waits for more than one step of it, and threads that share a
    /// piece of work run in parallel.
    pub fn send_next_turn(&mut self, to: Address, signal: S) {
        match self.stays(to) {
            true => self.next_turn.push_back(Envelope { to, from: self.own, signal }),
            false => self.send(to, signal),
        }
    }

    /// Like [`Outbox::send_next_turn`], for a signal whose handler takes long. It is handled once each
    /// earlier one had a turn of its own, or once [`LONG_MAX`] others wait behind it.
    pub fn send_long_running(&mut self, to: Address, signal: S) {
        if !self.stays(to) {
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

    fn stays(&self, to: Address) -> bool {
        let is_here = to.node == self.own.node && self.thread != Self::TEST_THREAD;
        is_here && self.directory.thread_or_none(to.module, to.instance) == self.thread
    }

    /// Takes nothing more from other threads in this turn. A handler that took long calls this, so that its
    /// output is published before similar work begins.
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

    /// A detached outbox finds no thread for any address, so every signal counts as local.
    const TEST_THREAD: u16 = Directory::NO_THREAD;

    /// Removes the signals sent to a detached outbox, in order.
    pub fn take_sent(&mut self) -> Vec<(Address, S)> {
        let local = std::iter::from_fn(|| self.local.pop());
        local
            .chain(self.remote.drain(..))
            .chain(self.next_turn.drain(..))
            .chain(self.long_running.drain(..))
            .map(|envelope| (envelope.to, envelope.signal))
            .collect()
    }

    /// Removes the requests made through a detached outbox, in order.
    pub fn take_requests(&mut self) -> Vec<WorldRequest> {
        self.requests.drain(..).map(|(_, request)| request).collect()
    }

    /// Sends to another thread if its ring is known to have space. Rare cases are in another function, so that
    /// this one saves no registers.
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
            return self.remote.push_back(envelope);
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
            None => self.wait(thread, class, priority, Parcel::Signal(envelope)),
        }
    }

    /// Sends a parcel of the kernel, with reserved space.
    fn post(&mut self, thread: u16, parcel: Parcel<S>) {
        let lane = self.lane(thread, Priority::Normal);
        match lane.ring.slot().filter(|_| lane.reserved.is_empty()) {
            Some(slot) => slot.fill(parcel),
            None => self.wait(thread, SignalClass::Reserved, Priority::Normal, parcel),
        }
    }

    /// Appends a parcel that found no slot or credit to the backlog.
    #[cold]
    fn wait(&mut self, thread: u16, class: SignalClass, priority: Priority, parcel: Parcel<S>) {
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
        let links: Vec<_> = links
            .into_iter()
            .map(|rings| {
                rings.map(|[normal, high]| Link { normal: Lane::new(normal), high: Lane::new(high), is_heavy: false })
            })
            .collect();
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

    /// Takes space for `signals` signals; always succeeds for 0. Fails if some link may lack the space. A need
    /// beyond the space of empty rings counts as that space, because it could never be met.
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

    /// Closes the space while a deferred signal waits, so that no other overtakes it, or opens it again.
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

    /// Number of local signals for later turns.
    #[inline]
    pub(crate) fn next_turn_len(&self) -> usize {
        self.next_turn.len() + self.long_running.len()
    }

    /// Number of local long-running signals for later turns.
    #[inline]
    pub(crate) fn long_running_len(&self) -> usize {
        self.long_running.len()
    }

    /// Moves signals for this turn to the local queue, at the beginning of the turn.
    #[inline]
    pub(crate) fn take_next_turn(&mut self) {
        while let Some(envelope) = self.next_turn.pop_front() {
            self.local.push(envelope);
        }
        if let Some(envelope) = self.long_running.pop_front() {
            self.local.push(envelope);
        }
    }

    /// Takes signals from other threads again.
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

    /// After a fatal hit: its point. Forgets the requests made after it.
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
        // The output was handed over so that this thread need not write it; a delegated turn would.
        if let (Parcel::Socket(SocketParcel::WriteOutput(_)), Some(Some(link))) =
            (&parcel, self.links.get_mut(usize::from(thread)))
        {
            link.is_heavy = true;
        }
        self.post(thread, parcel);
    }

    /// Moves backlogs into rings as far as there is space, and publishes all rings. Calls `published` with
    /// each thread that has new input and whether that is eligible for a delegated turn. Returns whether a
    /// backlog moved.
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
                let is_heavy = std::mem::take(&mut link.is_heavy) || fresh > INLINE_SIGNALS_MAX;
                published(thread as u16, !is_heavy);
            }
        }
        self.backlog -= moved;
        moved > 0
    }

    /// Whether other threads have taken everything sent to them.
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

    /// Returns how many parcels found a slot. Reserved ones go first, so that deferrable ones never take the
    /// last slots.
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
