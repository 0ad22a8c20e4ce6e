//! Hot path: at most 250 instructions for a signal to or from another node, not counting its encoding.
//!
//! The links of one thread: the channels that the thread owns, with the states of the signals' encoding and
//! the signals that wait. The same for real and simulated nodes, which lend it their sockets.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::address::{Address, NodeId};
use crate::block::{Endpoints, Priority, Signal, SignalClass};
use crate::buffer::{Buffer, BufferPool};
use crate::context::{Duration, Time};
use crate::envelope::Envelope;
use crate::module::ModuleId;
use crate::outbox::Outbox;
use crate::sync::CachePadded;
use crate::sync::atomic::Ordering;
use crate::wire_signal::{EncodeError, WireSignal, append_record, signal_number, take_record};

use super::board::{LinkBoard, LinkNews, LinkRoutes};
use super::channel::{BodyFault, ChannelFault};
use super::detection::{Detector, Opinion, Probe, ProbeStep};
use super::figures::{ChannelFigures, ChannelWords, LinkFigures, ROUND_TRIP_EVERY};
use super::frame::FrameHeader;
use super::hello::{ChannelId, ClusterKey, HelloSettings, Identity, Nonce, Refusal, refuse, route};
use super::link::{Actions, ConnectionId, Link, LinkEvent, LinkSink};
use super::security::SecurityFault;

/// A socket gets no more frames while it has this many bytes to send. The rest waits in the channel.
const QUEUED_BYTES_MAX: usize = 256 << 10;

/// Space for signals to other threads that a signal from another node needs before it is delivered.
const ARRIVAL_SPACE: u16 = 64;

/// After a stall, some signals are delivered without space. This many at most.
const STALL_BURST_MAX: u32 = 64;

/// How soon a thread looks again if signals wait for credits or space.
const WAITING_PAUSE: Duration = Duration::from_micros(100);

/// Identity, key, peers and routes, which all links of a node share.
#[derive(Debug)]
pub(crate) struct LinkSetup {
    /// This node.
    pub own: Identity,
    pub key: ClusterKey,
    /// The other nodes.
    pub peers: Vec<NodeId>,
    pub routes: Arc<LinkRoutes>,
    pub board: Arc<LinkBoard>,
    pub figures: LinkFigures,
    /// The block that gets news of links.
    pub watcher: (ModuleId, u16),
    /// See [`crate::KernelLimits::stall_ns`].
    pub stall_after: Duration,
}

/// The sockets that carry links.
pub(crate) trait LinkSockets {
    /// Begins to connect to a node. `None` if that is impossible at present.
    fn connect(&mut self, node: NodeId) -> Option<ConnectionId>;

    /// Begins to connect to a node, only to learn whether its system answers.
    fn probe(&mut self, node: NodeId) -> Option<ConnectionId>;

    /// Queues bytes.
    fn send(&mut self, id: ConnectionId, bytes: Buffer, buffers: &mut BufferPool);

    /// Closes a connection once its output is written.
    fn close(&mut self, id: ConnectionId);

    /// Bytes that are queued and not written.
    fn queued_bytes(&self, id: ConnectionId) -> usize;

    /// The round trip of a connection, if it is measured.
    fn round_trip(&self, id: ConnectionId) -> Option<Duration>;

    /// Random bytes fit for secrets.
    fn nonce(&mut self) -> Nonce;
}

/// What arrives at the links of a thread.
pub(crate) enum LinkInput<'a> {
    /// The first message of a connection, which belongs to a channel of this thread.
    Hello(ConnectionId, &'a [u8], Nonce),
    /// Bytes of a connection.
    Bytes(ConnectionId, &'a [u8]),
    /// The system of the other node has answered a probe.
    Answered(ConnectionId),
    /// A connection is closed. The flag says that the other system refused to make it.
    Closed(ConnectionId, bool),
    /// A connection is refused before its hello, and will be closed.
    Refused(ConnectionId, SecurityFault),
}

/// The links of a thread, whatever its signals are.
pub(crate) trait Transport<S: Signal>: Send {
    /// Takes input, and delivers the signals in it.
    fn receive(&mut self, input: LinkInput<'_>, now: Time, outbox: &mut Outbox<S>, buffers: &mut BufferPool);

    /// Sends the signals of the outbox to other nodes, and does what is due.
    fn work(&mut self, now: Time, outbox: &mut Outbox<S>, buffers: &mut BufferPool, sockets: &mut dyn LinkSockets);

    /// When [`Transport::work`] must be called at the latest.
    fn due(&self) -> Time;

    /// The senders of deferrable signals that do not wait any more, since the last call.
    fn take_sent(&mut self) -> &mut Vec<(Address, Priority)>;
}

/// The [`Transport`] of signals that can be encoded.
pub(crate) struct ThreadLinks<S: WireSignal> {
    setup: Arc<LinkSetup>,
    settings: Arc<HelloSettings>,
    thread: u16,
    links: Vec<ThreadLink<S>>,
    due: Time,
    sent: Vec<(Address, Priority)>,
    /// When a signal that waited for space was last delivered.
    delivered_at: Time,
    burst: u32,
    /// Hellos that belong to no link: the answers, and the connections to close.
    strangers: Vec<(ConnectionId, Vec<u8>)>,
    news: Vec<LinkNews>,
}

/// One channel of this thread.
struct ThreadLink<S: WireSignal> {
    link: Link,
    channel: u8,
    connections: Vec<ConnectionId>,
    ends: Ends<S>,
    waiting: Waiting<S>,
    /// On the thread of channel 0.
    detector: Option<Listening>,
    actions: Actions,
    figures: ChannelFigures,
}

/// The watch of a thread over another node, for all channels.
struct Listening {
    detector: Detector,
    probe: Probe,
    /// The connection of the probe.
    connection: Option<ConnectionId>,
}

/// Signals to another node that wait: deferrable ones for credits, and all while another channel to the node
/// is connected and this one is not yet.
struct Waiting<S> {
    /// In order, each with whether this thread sent it.
    reserved: VecDeque<(Envelope<S>, bool)>,
    /// Likewise.
    deferrable: VecDeque<(Envelope<S>, bool)>,
    /// Number of signals that this thread sent.
    own: usize,
}

impl<S: Signal> Waiting<S> {
    fn new() -> Self {
        Self { reserved: VecDeque::new(), deferrable: VecDeque::new(), own: 0 }
    }

    fn queue(&mut self, class: SignalClass) -> &mut VecDeque<(Envelope<S>, bool)> {
        match class {
            SignalClass::Reserved => &mut self.reserved,
            SignalClass::Deferrable => &mut self.deferrable,
        }
    }

    fn has(&self, class: SignalClass) -> bool {
        match class {
            SignalClass::Reserved => !self.reserved.is_empty(),
            SignalClass::Deferrable => !self.deferrable.is_empty(),
        }
    }

    fn push(&mut self, envelope: Envelope<S>, is_own: bool) {
        self.own += usize::from(is_own);
        self.queue(envelope.signal.class()).push_back((envelope, is_own));
    }

    fn pop(&mut self, class: SignalClass) -> Option<Envelope<S>> {
        let (envelope, is_own) = self.queue(class).pop_front()?;
        self.own -= usize::from(is_own);
        Some(envelope)
    }
}

/// Both states of a channel's encoding, and what arrived on it.
struct Ends<S: WireSignal> {
    own: NodeId,
    peer: NodeId,
    encoder: S::Encoder,
    decoder: S::Decoder,
    /// Signals that arrived, with the credits to be returned once they are delivered.
    arrived: VecDeque<(Envelope<S>, u64)>,
}

/// [`Ends`] with what decoding needs.
struct Receiver<'a, S: WireSignal> {
    ends: &'a mut Ends<S>,
    buffers: &'a mut BufferPool,
    outbox: &'a mut Outbox<S>,
}

impl<S: WireSignal> Ends<S> {
    /// A life of the other node begins. The signals that wait are of the life before.
    fn begin(&mut self, version: u16, buffers: &mut BufferPool) {
        self.lose_arrived(buffers);
        (self.encoder, self.decoder) = (S::encoder(version), S::decoder(version));
    }

    /// Drops the signals that wait for space at their receivers.
    fn lose_arrived(&mut self, buffers: &mut BufferPool) {
        for (envelope, _) in self.arrived.drain(..) {
            envelope.signal.recycle(buffers);
        }
    }
}

impl<S: WireSignal> LinkSink for Receiver<'_, S> {
    fn begin(&mut self, _incarnation: u32, version: u16) {
        self.ends.begin(version, self.buffers);
    }

    fn records(&mut self, header: &FrameHeader, body: &[u8]) -> Result<u64, ChannelFault> {
        let mut credits = u64::from(header.deferrable);
        let mut rest = body;
        for _ in 0..header.signals {
            let before = rest.len();
            let number = signal_number(rest);
            let record = take_record::<S>(&mut rest, &mut self.ends.decoder, self.buffers);
            let (Endpoints { to, from }, signal) =
                record.map_err(|error| ChannelFault::Body(BodyFault::Signal(number, error)))?;
            let exists = self.outbox.directory().thread_of(to.module, to.instance).is_some();
            if to.node != self.ends.own || from.node != self.ends.peer || !exists {
                return Err(ChannelFault::Body(BodyFault::Address(number)));
            }
            let envelope = Envelope { to, from, signal };
            if envelope.signal.class() == SignalClass::Reserved {
                self.outbox.deliver_from_node(envelope);
            } else {
                let cost = credits.min((before - rest.len()) as u64);
                credits -= cost;
                self.ends.arrived.push_back((envelope, cost));
            }
        }
        if rest.is_empty() { Ok(credits) } else { Err(ChannelFault::Body(BodyFault::Length)) }
    }

    fn hears(&mut self, _nodes: &[u8; 32]) {}
}

impl<S: WireSignal> ThreadLinks<S> {
    /// The links of a thread; `None` if it owns no channel.
    pub(crate) fn of_thread(setup: Arc<LinkSetup>, thread: u16, now: Time) -> Option<Box<dyn Transport<S>>> {
        let version = *S::VERSIONS.end();
        let settings = Arc::new(HelloSettings {
            own: setup.own,
            key: setup.key.clone(),
            versions: (*S::VERSIONS.start(), version),
            layouts: S::layouts,
        });
        let channels = setup.routes.channels();
        let mut links = Vec::new();
        for channel in (0..channels).filter(|&channel| setup.routes.owner(channel) == Some(thread)) {
            for &peer in &setup.peers {
                let id = ChannelId { channel, channels };
                let words = setup.figures.channel(peer, channel);
                links.push(ThreadLink::new(Link::new(settings.clone(), peer, id, now), words, setup.own.node));
            }
        }
        // Without peers, strangers must be refused all the same.
        if (0..channels).all(|channel| setup.routes.owner(channel) != Some(thread)) {
            return None;
        }
        Some(Box::new(Self {
            setup,
            settings,
            thread,
            links,
            due: now,
            sent: Vec::new(),
            delivered_at: now,
            burst: 1,
            strangers: Vec::new(),
            news: Vec::new(),
        }))
    }

    fn position_of(&self, id: ConnectionId) -> Option<usize> {
        self.links.iter().position(|link| link.connections.contains(&id))
    }

    /// Delivers signals that wait for space. Returns whether some still wait.
    fn deliver(&mut self, now: Time, outbox: &mut Outbox<S>) -> bool {
        let mut waits = false;
        let is_stalled = now.since(self.delivered_at) >= self.setup.stall_after;
        let mut forced = if is_stalled { self.burst } else { 0 };
        for link in &mut self.links {
            while !link.ends.arrived.is_empty() {
                if !outbox.reserve_space(ARRIVAL_SPACE) {
                    if forced == 0 {
                        waits = true;
                        break;
                    }
                    forced -= 1;
                }
                let Some((envelope, cost)) = link.ends.arrived.pop_front() else { break };
                outbox.deliver_from_node(envelope);
                link.link.channel().grant(cost);
                self.delivered_at = now;
            }
        }
        if waits && is_stalled {
            self.burst = (self.burst * 2).min(STALL_BURST_MAX);
        } else if !waits {
            (self.burst, self.delivered_at) = (1, now);
        }
        waits
    }

    /// Moves the signals of the outbox to their channels.
    fn send(&mut self, outbox: &mut Outbox<S>, buffers: &mut BufferPool) {
        let (epoch, board) = (self.setup.board.epoch(), &self.setup.board);
        for link in &mut self.links {
            link.send_waiting(epoch, board, buffers, (&mut self.sent, &mut self.news));
        }
        while let Some(envelope) = outbox.remote().pop_front() {
            let channel = self.setup.routes.channel_of(envelope.to);
            let is_wanted = |link: &&mut ThreadLink<S>| link.channel == channel && link.link.peer() == envelope.to.node;
            let class = envelope.signal.class();
            match self.links.iter_mut().find(is_wanted) {
                Some(link) if link.link.incarnation().is_some() && link.accepts(class) => {
                    link.encode(envelope, epoch, buffers, (&mut self.sent, &mut self.news));
                }
                Some(link) if link.link.incarnation().is_some() || board.is_known(envelope.to.node) => {
                    let sender = outbox.directory().thread_of(envelope.from.module, envelope.from.instance);
                    link.waiting.push(envelope, sender == Some(self.thread));
                }
                // The node is dead or was never there. The membership tells the sender.
                _ => drop_signal(envelope, buffers, &mut self.sent),
            }
        }
    }

    /// Ends a link whose other incarnation is evicted or dead for another channel, before anything is sent.
    fn bury(&mut self, position: usize, now: Time, buffers: &mut BufferPool) {
        let ThreadLink { link, actions, .. } = &mut self.links[position];
        link.evict(self.setup.board.evicted(link.peer()), now, actions);
        link.bury(self.setup.board.incarnation_min(link.peer()), now, actions);
        self.tell_events(position, buffers);
    }

    /// Lets one link do what is due, and carries out what it wants.
    fn drive(&mut self, position: usize, now: Time, buffers: &mut BufferPool, sockets: &mut dyn LinkSockets) {
        let board = &self.setup.board;
        let own_epoch = board.epoch();
        let link = &mut self.links[position];
        let peer = link.link.peer();
        link.link.poll(now, &mut link.actions);
        if std::mem::take(&mut link.actions.connect) {
            match sockets.connect(peer) {
                Some(id) => {
                    link.connections.push(id);
                    link.link.on_connecting(id, sockets.nonce(), now, &mut link.actions);
                }
                None => link.link.on_not_connected(now),
            }
        }
        for (id, message) in link.actions.sends.drain(..) {
            sockets.send(id, message, buffers);
        }
        if link.link.is_up() {
            board.hear(peer, link.link.heard(), link.link.peer_epoch());
            let hears = if link.link.is_heartbeat_due(now) { board.hears(now) } else { [0; 32] };
            while let Some(id) = link.link.connection()
                && sockets.queued_bytes(id) < QUEUED_BYTES_MAX
            {
                let mut output = buffers.take(512);
                let (written, before) = ((&mut output, QUEUED_BYTES_MAX), link.link.last_written());
                if link.link.write((now, own_epoch), &hears, written, &mut link.actions).is_none() {
                    buffers.give(output);
                    break;
                }
                link.figures.sent_bytes += output.len() as u64;
                link.figures.sent_frames += link.link.last_written() - before;
                sockets.send(id, output, buffers);
                if !link.link.has_output() {
                    break;
                }
            }
        }
        for id in link.actions.closes.drain(..) {
            link.connections.retain(|&known| known != id);
            sockets.close(id);
        }
        link.show_figures(now, &*sockets);
        self.tell_events(position, buffers);
        self.detect(position, now, sockets);
    }

    /// Passes on what a link reports.
    fn tell_events(&mut self, position: usize, buffers: &mut BufferPool) {
        let link = &mut self.links[position];
        let (node, board) = (link.link.peer(), &self.setup.board);
        for event in link.actions.events.drain(..) {
            match event {
                LinkEvent::Up { incarnation, .. } => {
                    if board.connect(node, link.channel, incarnation, self.setup.routes.channels()) {
                        let version = link.link.version();
                        self.news.push(LinkNews::Up { node, incarnation, version });
                    }
                }
                LinkEvent::Lost | LinkEvent::Damaged(_) => {
                    board.connect(node, link.channel, 0, self.setup.routes.channels());
                }
                LinkEvent::Dead(incarnation, death) => {
                    board.connect(node, link.channel, 0, self.setup.routes.channels());
                    // Signals that wait for space are lost with their sender. Otherwise the next life of the
                    // node could get the answers. Once it has begun, those that wait are its own.
                    if link.link.incarnation().is_none() {
                        link.ends.lose_arrived(buffers);
                    }
                    // A later incarnation must not get what waited for this one.
                    for class in [SignalClass::Reserved, SignalClass::Deferrable] {
                        while let Some(envelope) = link.waiting.pop(class) {
                            drop_signal(envelope, buffers, &mut self.sent);
                        }
                    }
                    if board.bury(node, incarnation) {
                        self.news.push(LinkNews::Dead { node, incarnation, death });
                    }
                }
                LinkEvent::EvictedByPeer => self.news.push(LinkNews::Evicted { node }),
                LinkEvent::RefusedStranger(refusal) | LinkEvent::RefusedByPeer(refusal) => {
                    let is_own = matches!(event, LinkEvent::RefusedStranger(_));
                    if board.refuse(node, refusal, is_own) {
                        self.news.push(LinkNews::Refused { node, refusal, is_own });
                    }
                }
            }
        }
    }

    /// Suspects and probes a silent node. One thread does it for all channels.
    fn detect(&mut self, position: usize, now: Time, sockets: &mut dyn LinkSockets) {
        let link = &mut self.links[position];
        if link.channel != 0 {
            return;
        }
        let node = link.link.peer();
        if link.link.incarnation().is_none() {
            let connection = link.detector.take().and_then(|listening| listening.connection);
            connection.into_iter().for_each(|id| sockets.close(id));
            return;
        }
        let board = &self.setup.board;
        let listening = link.detector.get_or_insert_with(|| {
            // The time since the life before is no gap.
            board.take_gap(node);
            Listening { detector: Detector::new(now), probe: Probe::default(), connection: None }
        });
        let Listening { detector, probe, connection } = listening;
        let heard = board.heard(node);
        detector.note_gap(now, board.take_gap(node));
        let opinion = detector.check(now, heard);
        self.news.extend(opinion.map(|opinion| match opinion {
            Opinion::Suspected => LinkNews::Suspected { node, longest_gap: detector.longest_gap() },
            Opinion::Heard => LinkNews::Heard { node },
        }));
        match probe.check(now, detector.silence(now, heard)) {
            Some(ProbeStep::Begin) => {
                *connection = sockets.probe(node);
                if connection.is_none() {
                    probe.not_made(now);
                }
            }
            Some(step) => {
                connection.take().into_iter().for_each(|id| sockets.close(id));
                if step == ProbeStep::Unreachable {
                    self.news.push(LinkNews::Unreachable { node });
                }
            }
            None => {}
        }
    }

    /// A probe has ended. A refusal counts as no answer: a firewall may have begun to refuse probes of a
    /// process that lives. The connections of one that has ended are reset, so that the link notices it at
    /// once.
    fn end_probe(&mut self, id: ConnectionId, is_answered: bool, is_refused: bool, now: Time) {
        let is_probed = |link: &&mut ThreadLink<S>| {
            link.detector.as_ref().is_some_and(|listening| listening.connection == Some(id))
        };
        let Some(link) = self.links.iter_mut().find(is_probed) else { return };
        let Some(listening) = &mut link.detector else { return };
        listening.connection = None;
        if is_answered {
            if listening.probe.on_answer(now) {
                self.news.push(LinkNews::Reachable { node: link.link.peer() });
            }
            link.actions.closes.push(id);
        } else if !is_refused {
            listening.probe.not_made(now);
        }
    }

    fn tell_news(&mut self, outbox: &mut Outbox<S>) {
        let (module, instance) = self.setup.watcher;
        let to = outbox.directory().address(module, instance);
        for news in self.news.drain(..) {
            if let Some(signal) = S::from_link(news) {
                outbox.deliver_from_node(Envelope { to, from: to, signal });
            }
        }
    }
}

impl<S: WireSignal> Transport<S> for ThreadLinks<S> {
    fn receive(&mut self, input: LinkInput<'_>, now: Time, outbox: &mut Outbox<S>, buffers: &mut BufferPool) {
        outbox.set_link_work(true);
        match input {
            LinkInput::Hello(id, message, nonce) => {
                let found = route(message).and_then(|(node, channel)| {
                    self.links.iter_mut().find(|link| link.link.peer() == node && link.channel == channel.channel)
                });
                match found {
                    Some(link) => {
                        link.connections.push(id);
                        link.link.on_hello(id, message, (now, nonce), &mut link.actions);
                    }
                    None => {
                        self.strangers.push((id, refuse(&self.settings, Refusal::Stranger)));
                        let node = route(message).map_or(NodeId(0), |(node, _)| node);
                        if self.setup.board.refuse(node, Refusal::Stranger, true) {
                            self.news.push(LinkNews::Refused { node, refusal: Refusal::Stranger, is_own: true });
                        }
                    }
                }
            }
            LinkInput::Answered(id) => self.end_probe(id, true, false, now),
            LinkInput::Closed(id, is_refused) => {
                self.end_probe(id, false, is_refused, now);
                let Some(position) = self.position_of(id) else { return };
                let link = &mut self.links[position];
                link.connections.retain(|&known| known != id);
                link.link.on_closed(id, is_refused, now, &mut link.actions);
                self.tell_events(position, buffers);
            }
            LinkInput::Refused(id, SecurityFault { refusal, is_own }) => {
                // Nobody knows who a connection is that was not made here.
                let node = self.position_of(id).map_or(NodeId(0), |position| self.links[position].link.peer());
                if self.setup.board.refuse(node, refusal, is_own) {
                    self.news.push(LinkNews::Refused { node, refusal, is_own });
                }
            }
            LinkInput::Bytes(id, bytes) => {
                let Some(position) = self.position_of(id) else { return };
                let ThreadLink { link, ends, actions, figures, .. } = &mut self.links[position];
                figures.received_bytes += bytes.len() as u64;
                let epoch = self.setup.board.epoch();
                let mut receiver = Receiver { ends, buffers, outbox };
                link.receive(id, bytes, (now, epoch), (actions, &mut receiver));
                self.tell_events(position, buffers);
                self.deliver(now, outbox);
            }
        }
    }

    fn work(&mut self, now: Time, outbox: &mut Outbox<S>, buffers: &mut BufferPool, sockets: &mut dyn LinkSockets) {
        outbox.set_link_work(false);
        for (id, message) in self.strangers.drain(..) {
            sockets.send(id, message, buffers);
            sockets.close(id);
        }
        for position in 0..self.links.len() {
            self.bury(position, now, buffers);
        }
        let is_full = self.deliver(now, outbox);
        self.send(outbox, buffers);
        let mut due = Time(u64::MAX);
        for position in 0..self.links.len() {
            self.drive(position, now, buffers, sockets);
            let link = &self.links[position];
            due = due.min(link.link.due());
            if let Some(Listening { detector, probe, .. }) = &link.detector {
                due = due.min(detector.due()).min(probe.due(now, self.setup.board.heard(link.link.peer())));
            }
            if link.link.has_output() {
                // The socket is full. Nobody reports when it has space again.
                due = due.min(now.plus(WAITING_PAUSE));
            }
        }
        self.due = if is_full { due.min(now.plus(WAITING_PAUSE)) } else { due };
        // A link that has just died has no waiting signals any more, and may have no further work.
        outbox.set_link_backlog(self.links.iter().map(|link| link.waiting.own).sum());
        self.tell_news(outbox);
    }

    fn due(&self) -> Time {
        self.due
    }

    fn take_sent(&mut self) -> &mut Vec<(Address, Priority)> {
        &mut self.sent
    }
}

impl<S: WireSignal> ThreadLink<S> {
    fn new(link: Link, words: Arc<CachePadded<ChannelWords>>, own: NodeId) -> Self {
        let version = *S::VERSIONS.end();
        let (encoder, decoder) = (S::encoder(version), S::decoder(version));
        let ends = Ends { own, peer: link.peer(), encoder, decoder, arrived: VecDeque::new() };
        let (connections, actions) = (Vec::new(), Actions::default());
        let figures = ChannelFigures::new(words);
        let channel = link.number();
        Self { link, channel, connections, ends, waiting: Waiting::new(), detector: None, actions, figures }
    }

    /// Writes the figures of the channel.
    fn show_figures(&mut self, now: Time, sockets: &dyn LinkSockets) {
        let ChannelFigures { words, sent_bytes, received_bytes, sent_frames, sent_signals, round_trip_at } =
            &mut self.figures;
        let connection = self.link.connection();
        words.is_connected.store(u32::from(connection.is_some()), Ordering::Relaxed);
        words.sent_bytes.store(*sent_bytes, Ordering::Relaxed);
        words.received_bytes.store(*received_bytes, Ordering::Relaxed);
        words.sent_frames.store(*sent_frames, Ordering::Relaxed);
        words.sent_signals.store(*sent_signals, Ordering::Relaxed);
        let (unacknowledged, credits) = (self.link.unacknowledged_bytes(), self.link.credit_bytes());
        words.unacknowledged_bytes.store(unacknowledged, Ordering::Relaxed);
        words.credit_bytes.store(credits, Ordering::Relaxed);
        if let Some(id) = connection.filter(|_| now >= *round_trip_at) {
            *round_trip_at = now.plus(ROUND_TRIP_EVERY);
            let measured = sockets.round_trip(id).map_or(0, |time| time.0);
            words.round_trip_ns.store(measured, Ordering::Relaxed);
        }
    }

    /// Whether a signal of this class may be sent now, and overtakes none of its class.
    fn accepts(&self, class: SignalClass) -> bool {
        !self.waiting.has(class) && self.link.accepts(class)
    }

    /// Sends waiting signals as far as credits allow. Reserved signals need none.
    fn send_waiting(
        &mut self,
        epoch: u32,
        board: &LinkBoard,
        buffers: &mut BufferPool,
        (sent, news): (&mut Vec<(Address, Priority)>, &mut Vec<LinkNews>),
    ) {
        let is_dead = self.link.incarnation().is_none();
        if is_dead && board.is_known(self.link.peer()) {
            return;
        }
        for class in [SignalClass::Reserved, SignalClass::Deferrable] {
            while (is_dead || self.link.accepts(class))
                && let Some(envelope) = self.waiting.pop(class)
            {
                match is_dead {
                    true => drop_signal(envelope, buffers, sent),
                    false => self.encode(envelope, epoch, buffers, (&mut *sent, &mut *news)),
                }
            }
        }
    }

    /// Adds a signal to the channel.
    fn encode(
        &mut self,
        envelope: Envelope<S>,
        epoch: u32,
        buffers: &mut BufferPool,
        (sent, news): (&mut Vec<(Address, Priority)>, &mut Vec<LinkNews>),
    ) {
        let Envelope { to, from, signal } = envelope;
        let class = signal.class();
        if class == SignalClass::Deferrable {
            sent.push((from, signal.priority()));
        }
        let encoder = &mut self.ends.encoder;
        let append = |out: &mut Vec<u8>| append_record(Endpoints { to, from }, &signal, encoder, out);
        if let Err(error) = self.link.channel().push(class, epoch, append) {
            let name = match error {
                EncodeError::UnknownToPeer { name, .. } => name,
                EncodeError::TooLong => signal.name(),
            };
            news.push(LinkNews::Unknown { node: to.node, name });
        } else {
            self.figures.sent_signals += 1;
        }
        signal.recycle(buffers);
    }
}

/// Drops a signal whose receiver is dead.
fn drop_signal<S: WireSignal>(
    Envelope { from, signal, .. }: Envelope<S>,
    buffers: &mut BufferPool,
    sent: &mut Vec<(Address, Priority)>,
) {
    if signal.class() == SignalClass::Deferrable {
        sent.push((from, signal.priority()));
    }
    signal.recycle(buffers);
}

#[cfg(all(test, not(loom), not(shuttle)))]
mod tests {
    use super::*;
    use crate::toy::ToySignal;
    use crate::transport::link::Death;
    use crate::transport::tests::restarted_link;

    /// One link, from node 1 to node 2.
    fn one_link() -> ThreadLinks<ToySignal> {
        let (own, peer) = (NodeId(1), NodeId(2));
        let setup = LinkSetup {
            own: Identity { cluster: 1, node: own, incarnation: 1 },
            key: ClusterKey([1; 32]),
            peers: vec![peer],
            routes: Arc::new(LinkRoutes::new(vec![0])),
            board: Arc::new(LinkBoard::new()),
            figures: LinkFigures::default(),
            watcher: (ModuleId::SOCKETS, 0),
            stall_after: Duration(0),
        };
        let settings = HelloSettings { own: setup.own, key: setup.key.clone(), versions: (1, 1), layouts: u64::from };
        let id = ChannelId { channel: 0, channels: 1 };
        let link = Link::new(Arc::new(settings.clone()), peer, id, Time(0));
        ThreadLinks {
            links: vec![ThreadLink::new(link, Arc::default(), own)],
            setup: Arc::new(setup),
            settings: Arc::new(settings),
            thread: 0,
            due: Time(0),
            sent: Vec::new(),
            delivered_at: Time(0),
            burst: 1,
            strangers: Vec::new(),
            news: Vec::new(),
        }
    }

    #[test]
    fn a_refused_probe_is_no_answer_and_leaves_the_connection_alone() {
        let at = |millis: u64| Time(millis * 1_000_000);
        let silence = Duration::from_millis(30);
        for (is_refused, step) in [(true, Some(ProbeStep::Unreachable)), (false, Some(ProbeStep::Begin))] {
            let mut probe = Probe::default();
            probe.check(at(0), Duration(0));
            probe.on_answer(at(1));
            assert_eq!(probe.check(at(50), silence), Some(ProbeStep::Begin));
            let mut links = one_link();
            let detector = Detector::new(at(0));
            links.links[0].detector = Some(Listening { detector, probe, connection: Some(7) });
            links.end_probe(7, false, is_refused, at(51));
            assert!(links.links[0].actions.closes.is_empty());
            let listening = links.links[0].detector.as_mut().unwrap();
            assert_eq!(listening.connection, None);
            listening.probe.check(at(61), silence);
            assert_eq!(listening.probe.check(at(71), silence), step);
        }
    }

    #[test]
    fn signals_that_wait_for_space_are_lost_with_the_life_that_sent_them() {
        let (own, peer) = (NodeId(1), NodeId(2));
        let mut links = one_link();
        let at = |node| Address::new(node, ModuleId::SOCKETS, 0);
        let waiting = Envelope { to: at(own), from: at(peer), signal: ToySignal::Ball(7) };
        links.links[0].ends.arrived.push_back((waiting, 4));
        links.links[0].actions.events.push(LinkEvent::Dead(1, Death::Restarted));
        links.tell_events(0, &mut BufferPool::new(0));
        assert!(links.links[0].ends.arrived.is_empty());
        assert!(matches!(links.news[..], [LinkNews::Dead { incarnation: 1, .. }]));
    }

    #[test]
    fn signals_of_a_new_life_outlive_the_news_that_the_one_before_is_dead() {
        let mut links = one_link();
        links.links[0].link = restarted_link();
        let at = |node| Address::new(NodeId(node), ModuleId::SOCKETS, 0);
        let waiting = || Envelope { to: at(2), from: at(1), signal: ToySignal::Ball(7) };
        links.links[0].ends.arrived.push_back((waiting(), 4));
        // The new life begins: what waits is of the one before.
        links.links[0].ends.begin(1, &mut BufferPool::new(0));
        assert!(links.links[0].ends.arrived.is_empty());
        links.links[0].ends.arrived.push_back((waiting(), 4));
        links.links[0].actions.events.push(LinkEvent::Dead(5, Death::Restarted));
        links.tell_events(0, &mut BufferPool::new(0));
        assert_eq!(links.links[0].ends.arrived.len(), 1);
    }
}
