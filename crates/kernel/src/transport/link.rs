//! Hot path: at most 200 instructions for a frame, not counting the channel's work.
//!
//! A link: one channel to another node with its connections, which come and go. The driver owns the sockets
//! and the clock; the link says when to connect, what to send and what to close.
//!
//! The node with the lower id makes the connections. After a reset it connects again at once, and the other
//! node probes: it connects too, only to learn whether the process still lives. Both go on until the channel
//! has a connection. A refused connection means that the process is gone; another incarnation in a hello
//! means that it was.
//!
//! An incarnation that is dead for this link never comes back: its frames may be lost.
//!
//! A link is up when both ends have a channel to the present incarnations. The end that makes the connection
//! knows it by the verdict, the other one by the first frame. Until then the other end may still have the
//! channel to an earlier incarnation, and drop signals for this one when that incarnation is evicted.

use std::fmt;
use std::sync::Arc;

use crate::address::NodeId;
use crate::block::SignalClass;
use crate::context::{Duration, Time};

use super::channel::{Arrival, BodyFault, Channel, ChannelFault};
use super::detection::HEARTBEAT_EVERY;
use super::frame::{FrameFault, FrameHeader, FrameKind, FrameReader};
use super::hello::{
    Acceptor, ChannelId, HelloReader, HelloSettings, Identity, Initiator, Nonce, Position, Refusal, Verdict, refuse,
};

/// A hello that takes longer is given up.
pub const HELLO_MAX: Duration = Duration::from_millis(2_000);

/// A connection that is silent for this long is closed, so that another one is tried.
pub const SILENCE_MAX: Duration = Duration::from_millis(1_000);

/// Maximum number of hellos under way on one link. One more ends the oldest.
pub const ATTEMPTS_MAX: usize = 4;

/// Maximum size of a record that arrives in parts, in bytes.
pub const RECORD_BYTES_MAX: usize = (1 << 30) + 64;

const RETRY_MIN: Duration = Duration::from_millis(1);
const RETRY_MAX: Duration = Duration::from_millis(500);

/// The driver's name for a connection; never used twice on a link.
pub type ConnectionId = u64;

/// Why the present incarnation of the other node is dead for this link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// The operating system refuses connections: the process is gone.
    Refused,
    /// Another incarnation of the node introduced itself.
    Restarted,
    /// This node's membership evicted it.
    Evicted,
    /// The other node holds this node's incarnation for dead.
    Fenced(Refusal),
    /// It is dead for another link.
    Elsewhere,
    /// It broke the protocol.
    Broken(ChannelFault),
}

/// Events that a link reports to its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// Frames flow. `is_new` tells whether the channel begins; otherwise it resumes after a reset.
    Up {
        /// The other node's incarnation.
        incarnation: u32,
        /// Whether no connection carried the channel before.
        is_new: bool,
    },
    /// The connection was lost. The channel resumes with the next one.
    Lost,
    /// The incarnation is dead for this link. Signals to it that had not arrived are dropped.
    Dead(u32, Death),
    /// The bytes of a connection were damaged; it is closed.
    Damaged(FrameFault),
    /// A stranger's hello was refused.
    RefusedStranger(Refusal),
    /// The other side refused the hello. Not proven before the end of the hello, so it may be anybody's word.
    RefusedByPeer(Refusal),
    /// The other side has proven that it has the cluster's key, and says that this incarnation was evicted.
    EvictedByPeer,
}

impl fmt::Display for Death {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => formatter.write_str("its process is gone"),
            Self::Restarted => formatter.write_str("it was started again"),
            Self::Evicted => formatter.write_str("it was evicted"),
            Self::Elsewhere => formatter.write_str("another link says so"),
            Self::Fenced(refusal) => write!(formatter, "it refuses this node: {refusal}"),
            Self::Broken(fault) => write!(formatter, "it broke the protocol: {fault}"),
        }
    }
}

/// Requests of a link to its driver, in addition to the output of [`Link::write`].
#[derive(Debug, Default)]
pub struct Actions {
    /// Open a connection to the other node, then call [`Link::on_connecting`].
    pub connect: bool,
    /// Messages of hellos, each for a connection.
    pub sends: Vec<(ConnectionId, Vec<u8>)>,
    /// Connections to close, after what is to be sent on them.
    pub closes: Vec<ConnectionId>,
    /// News, in order.
    pub events: Vec<LinkEvent>,
}

/// Handles what arrives on a link.
pub trait LinkSink {
    /// A channel to this incarnation begins. Later bodies were encoded in this version from the beginning.
    fn begin(&mut self, incarnation: u32, version: u16);

    /// Handles records of signals. Returns the bytes of deferrable signals that need not wait here; the
    /// driver grants the others when they no longer wait.
    ///
    /// # Errors
    /// A fault if the body does not consist of records.
    fn records(&mut self, header: &FrameHeader, body: &[u8]) -> Result<u64, ChannelFault>;

    /// The nodes that the other node hears, one bit for each.
    fn hears(&mut self, nodes: &[u8; 32]);
}

/// A link at one of its ends.
#[derive(Debug)]
pub struct Link {
    settings: Arc<HelloSettings>,
    peer: NodeId,
    channel_id: ChannelId,
    channel: Channel,
    /// The incarnation at the other end of the channel; 0 before the first hello and after a death.
    incarnation: u32,
    /// The incarnation with which frames have flowed in both directions.
    carried: u32,
    /// The version of the signals' encoding; 0 before the first hello.
    version: u16,
    /// Lower incarnations are refused.
    incarnation_min: u32,
    /// This incarnation and lower ones were evicted.
    evicted: u32,
    /// The beginning of a record that arrives in parts.
    parts: Vec<u8>,
    open: Option<Open>,
    attempts: Vec<Attempt>,
    /// When to connect, if at all.
    connect_at: Option<Time>,
    retry_after: Duration,
    heard: Time,
    sent: Time,
    peer_epoch: u32,
}

#[derive(Debug)]
struct Open {
    id: ConnectionId,
    frames: FrameReader,
    /// Whether the other end has the channel, too.
    is_mutual: bool,
}

/// A connection whose hello is under way.
#[derive(Debug)]
struct Attempt {
    id: ConnectionId,
    reader: HelloReader,
    stage: Stage,
    deadline: Time,
    /// The incarnation at the other end of the channel when the attempt began.
    incarnation: u32,
}

#[derive(Debug)]
enum Stage {
    /// Waits for the challenge.
    Initiated(Initiator),
    /// Waits for the verdict of this acceptor.
    Proven(Initiator, Identity),
    /// Waits for the proof.
    Accepted(Acceptor),
}

impl Link {
    /// A link to a node, without a connection. The node with the lower id connects at once.
    pub fn new(settings: Arc<HelloSettings>, peer: NodeId, channel_id: ChannelId, now: Time) -> Self {
        let connect_at = (settings.own.node < peer).then_some(now);
        Self {
            settings,
            peer,
            channel_id,
            channel: Channel::new(channel_id.channel),
            incarnation: 0,
            carried: 0,
            version: 0,
            incarnation_min: 1,
            evicted: 0,
            parts: Vec::new(),
            open: None,
            attempts: Vec::new(),
            connect_at,
            retry_after: RETRY_MIN,
            heard: now,
            sent: now,
            peer_epoch: 0,
        }
    }

    /// The other node.
    pub fn peer(&self) -> NodeId {
        self.peer
    }

    /// The other node's incarnation, or `None` if signals to it would be dropped.
    pub fn incarnation(&self) -> Option<u32> {
        Some(self.incarnation).filter(|&incarnation| incarnation != 0)
    }

    /// The version of the signals' encoding that both nodes speak; 0 before the first hello.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The channel, for sending and granting. Only while [`Link::incarnation`] is known.
    pub fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Whether a signal of this class may be sent now.
    pub fn accepts(&self, class: SignalClass) -> bool {
        self.channel.accepts(class)
    }

    /// The number of the channel.
    pub fn number(&self) -> u8 {
        self.channel_id.channel
    }

    /// Bytes that wait for an acknowledgement.
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.channel.unacknowledged_bytes() as u64
    }

    /// The number of the last frame that the present connection carries.
    pub fn last_written(&self) -> u64 {
        self.channel.last_written()
    }

    /// Bytes that deferrable signals may still use.
    pub fn credit_bytes(&self) -> u64 {
        self.channel.credit_bytes()
    }

    /// When the other node was last heard on this link.
    pub fn heard(&self) -> Time {
        self.heard
    }

    /// The highest membership epoch that the other node has told.
    pub fn peer_epoch(&self) -> u32 {
        self.peer_epoch
    }

    /// Whether frames flow.
    pub fn is_up(&self) -> bool {
        self.open.is_some()
    }

    /// The connection that carries the channel.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.open.as_ref().map(|open| open.id)
    }

    /// When [`Link::poll`] must be called at the latest.
    pub fn due(&self) -> Time {
        let open = self.open.as_ref().map(|_| self.sent.plus(HEARTBEAT_EVERY).min(self.heard.plus(SILENCE_MAX)));
        let attempts = self.attempts.iter().map(|attempt| attempt.deadline).min();
        let connect = self.connect_at.filter(|_| self.may_connect());
        open.into_iter().chain(attempts).chain(connect).min().unwrap_or(Time(u64::MAX))
    }

    fn may_connect(&self) -> bool {
        self.open.is_none() && !self.attempts.iter().any(|attempt| !matches!(attempt.stage, Stage::Accepted(_)))
    }

    fn is_initiator(&self) -> bool {
        self.settings.own.node < self.peer
    }

    /// Does what is due: gives up slow hellos and silent connections, and asks for a connection.
    pub fn poll(&mut self, now: Time, actions: &mut Actions) {
        let late = |attempt: &Attempt| attempt.deadline <= now;
        if self.attempts.iter().any(late) {
            actions.closes.extend(self.attempts.iter().filter(|attempt| late(attempt)).map(|attempt| attempt.id));
            self.attempts.retain(|attempt| !late(attempt));
            self.retry_later(now);
        }
        if let Some(open) = &self.open
            && now.since(self.heard) >= SILENCE_MAX
        {
            actions.closes.push(open.id);
            self.lose(now, actions);
        }
        if self.may_connect() && self.connect_at.is_some_and(|at| at <= now) {
            self.connect_at = None;
            actions.connect = true;
        }
    }

    /// The driver has begun to connect. The connection carries the bytes sent here once it is made.
    pub fn on_connecting(&mut self, id: ConnectionId, nonce: Nonce, now: Time, actions: &mut Actions) {
        let settings = HelloSettings::clone(&self.settings);
        let (initiator, hello) = Initiator::begin(settings, self.peer, self.channel_id, nonce);
        actions.sends.push((id, hello));
        self.add_attempt(id, Stage::Initiated(initiator), now, actions);
    }

    /// A connection begins with a hello to this link.
    pub fn on_hello(&mut self, id: ConnectionId, message: &[u8], (now, nonce): (Time, Nonce), actions: &mut Actions) {
        let accepted = Acceptor::on_hello(&self.settings, message, nonce).and_then(|(acceptor, challenge)| {
            if acceptor.peer().node != self.peer {
                return Err(Refusal::Stranger);
            }
            if self.is_initiator() {
                return Err(Refusal::Role);
            }
            if acceptor.channel() != self.channel_id {
                return Err(Refusal::Channels);
            }
            Ok((acceptor, challenge))
        });
        match accepted {
            Ok((acceptor, challenge)) => {
                actions.sends.push((id, challenge));
                self.add_attempt(id, Stage::Accepted(acceptor), now, actions);
            }
            Err(refusal) => {
                actions.sends.push((id, refuse(&self.settings, refusal)));
                actions.closes.push(id);
                if refusal != Refusal::Role {
                    actions.events.push(LinkEvent::RefusedStranger(refusal));
                }
            }
        }
    }

    fn add_attempt(&mut self, id: ConnectionId, stage: Stage, now: Time, actions: &mut Actions) {
        if self.attempts.len() == ATTEMPTS_MAX {
            actions.closes.push(self.attempts.remove(0).id);
        }
        let (deadline, incarnation) = (now.plus(HELLO_MAX), self.incarnation);
        self.attempts.push(Attempt { id, reader: HelloReader::default(), stage, deadline, incarnation });
    }

    /// A connection was closed, by the other side or because it broke. `is_refused` means that the operating
    /// system of the other node refused to make it.
    pub fn on_closed(&mut self, id: ConnectionId, is_refused: bool, now: Time, actions: &mut Actions) {
        if self.open.as_ref().is_some_and(|open| open.id == id) {
            return self.lose(now, actions);
        }
        let Some(position) = self.attempts.iter().position(|attempt| attempt.id == id) else { return };
        let attempt = self.attempts.remove(position);
        if !matches!(attempt.stage, Stage::Accepted(_)) {
            self.retry_later(now);
        }
        // A refusal may come late, when the next life has already been heard.
        if is_refused && self.open.is_none() && self.incarnation != 0 && self.incarnation == attempt.incarnation {
            self.die(Death::Refused, now, actions);
        }
    }

    /// No connection can be tried at present.
    pub fn on_not_connected(&mut self, now: Time) {
        self.retry_later(now);
    }

    /// Lower incarnations of the other node are dead for another link.
    pub fn bury(&mut self, incarnation_min: u32, now: Time, actions: &mut Actions) {
        self.incarnation_min = self.incarnation_min.max(incarnation_min);
        if self.incarnation != 0 && self.incarnation < incarnation_min {
            self.die(Death::Elsewhere, now, actions);
        }
    }

    /// This incarnation and lower ones of the other node are evicted.
    pub fn evict(&mut self, incarnation: u32, now: Time, actions: &mut Actions) {
        self.evicted = self.evicted.max(incarnation);
        self.incarnation_min = self.incarnation_min.max(self.evicted + 1);
        if self.incarnation != 0 && self.incarnation <= self.evicted {
            self.die(Death::Evicted, now, actions);
        }
    }

    /// Takes bytes of a connection.
    pub fn receive(
        &mut self,
        id: ConnectionId,
        mut input: &[u8],
        (now, epoch): (Time, u32),
        (actions, sink): (&mut Actions, &mut impl LinkSink),
    ) {
        while let Some(position) = self.attempts.iter().position(|attempt| attempt.id == id) {
            match self.attempts[position].reader.read(&mut input) {
                Ok(Some(message)) => {
                    let attempt = self.attempts.remove(position);
                    if let Err(refusal) = self.on_message(attempt, &message, (now, epoch), (actions, sink)) {
                        actions.closes.push(id);
                        actions.events.push(LinkEvent::RefusedStranger(refusal));
                        self.retry_later(now);
                    }
                }
                Ok(None) => return,
                Err(refusal) => {
                    self.attempts.remove(position);
                    actions.closes.push(id);
                    actions.events.push(LinkEvent::RefusedStranger(refusal));
                    self.retry_later(now);
                }
            }
        }
        if self.open.as_ref().is_some_and(|open| open.id == id) {
            self.receive_frames(input, now, actions, sink);
        }
    }

    /// Takes the next message of a hello.
    fn on_message(
        &mut self,
        Attempt { id, reader, stage, deadline, incarnation }: Attempt,
        message: &[u8],
        (now, epoch): (Time, u32),
        (actions, sink): (&mut Actions, &mut impl LinkSink),
    ) -> Result<(), Refusal> {
        match stage {
            Stage::Initiated(mut initiator) => {
                let named = initiator.peer_of(message);
                let verdict = match named.map_or(Ok(()), |peer| self.judge(peer.incarnation)) {
                    Ok(()) => {
                        let is_same = named.is_some_and(|peer| peer.incarnation == self.incarnation);
                        let received = if is_same { self.channel.received() } else { 0 };
                        Verdict::Accepted(Position { received, epoch })
                    }
                    Err(refusal) => Verdict::Refused(refusal),
                };
                let (peer, proof) = match initiator.on_challenge(message, verdict) {
                    Ok(answer) => answer,
                    Err(refusal) if named.is_none() => {
                        actions.closes.push(id);
                        if refusal != Refusal::Role {
                            actions.events.push(LinkEvent::RefusedByPeer(refusal));
                        }
                        self.retry_later(now);
                        return Ok(());
                    }
                    Err(refusal) => return Err(refusal),
                };
                actions.sends.push((id, proof));
                match verdict {
                    Verdict::Accepted(_) => {
                        let stage = Stage::Proven(initiator, peer);
                        self.attempts.push(Attempt { id, reader, stage, deadline, incarnation });
                    }
                    // The other node may make no connections itself. It learns the cause from this message.
                    Verdict::Refused(refusal) => return Err(refusal),
                }
            }
            Stage::Proven(mut initiator, peer) => match initiator.on_verdict(message)? {
                Verdict::Accepted(position) => {
                    self.judge(peer.incarnation)?;
                    let facts = (peer.incarnation, initiator.version(), position);
                    match self.adopt(id, facts, now, (actions, sink)) {
                        Ok(()) => self.note_mutual(actions),
                        Err(_) => actions.closes.push(id),
                    }
                }
                Verdict::Refused(refusal) => self.on_refused((id, peer.incarnation), refusal, now, actions),
            },
            Stage::Accepted(mut acceptor) => {
                let position = match acceptor.on_proof(message)? {
                    Verdict::Accepted(position) => position,
                    Verdict::Refused(refusal) => {
                        self.on_refused((id, acceptor.peer().incarnation), refusal, now, actions);
                        return Ok(());
                    }
                };
                let facts = (acceptor.peer().incarnation, acceptor.version(), position);
                let adopted = match self.judge(facts.0) {
                    Ok(()) => self.adopt(id, facts, now, (actions, sink)),
                    Err(refusal) => Err(refusal),
                };
                let verdict = match adopted {
                    Ok(()) => Verdict::Accepted(Position { received: self.channel.received(), epoch }),
                    Err(refusal) => {
                        actions.events.push(LinkEvent::RefusedStranger(refusal));
                        actions.closes.push(id);
                        Verdict::Refused(refusal)
                    }
                };
                actions.sends.push((id, acceptor.verdict(verdict)));
            }
        }
        Ok(())
    }

    /// The other side has proven who it is, and refuses this node.
    fn on_refused(
        &mut self,
        (id, incarnation): (ConnectionId, u32),
        refusal: Refusal,
        now: Time,
        actions: &mut Actions,
    ) {
        actions.closes.push(id);
        actions.events.push(LinkEvent::RefusedByPeer(refusal));
        self.retry_later(now);
        // Any life of the other node may know of an eviction.
        if refusal == Refusal::Evicted {
            actions.events.push(LinkEvent::EvictedByPeer);
        }
        if matches!(refusal, Refusal::Evicted | Refusal::Incarnation) && self.incarnation == incarnation {
            self.die(Death::Fenced(refusal), now, actions);
        }
    }

    /// Whether an incarnation may have a channel.
    fn judge(&self, incarnation: u32) -> Result<(), Refusal> {
        match incarnation {
            0 => Err(Refusal::Incarnation),
            _ if incarnation <= self.evicted => Err(Refusal::Evicted),
            _ if incarnation < self.incarnation_min => Err(Refusal::Incarnation),
            _ => Ok(()),
        }
    }

    /// Makes a connection whose hello succeeded the one that carries the channel.
    fn adopt(
        &mut self,
        id: ConnectionId,
        (incarnation, version, position): (u32, u16, Position),
        now: Time,
        (actions, sink): (&mut Actions, &mut impl LinkSink),
    ) -> Result<(), Refusal> {
        let is_new = incarnation != self.incarnation;
        if is_new && self.incarnation != 0 {
            self.die(Death::Restarted, now, actions);
        }
        if is_new {
            self.incarnation = incarnation;
            self.version = version;
            self.incarnation_min = incarnation;
            sink.begin(incarnation, version);
        }
        if let Err(fault) = self.channel.attach(position.received) {
            self.die(Death::Broken(fault), now, actions);
            return Err(Refusal::Incarnation);
        }
        let open = Open { id, frames: FrameReader::default(), is_mutual: false };
        if let Some(open) = self.open.replace(open) {
            actions.closes.push(open.id);
        }
        self.peer_epoch = self.peer_epoch.max(position.epoch);
        self.heard = now;
        // The first heartbeat is due at once: it tells the other side its credits.
        self.sent = Time(0);
        self.retry_after = RETRY_MIN;
        self.connect_at = None;
        Ok(())
    }

    /// The other end has the channel to this incarnation, over the present connection.
    fn note_mutual(&mut self, actions: &mut Actions) {
        if let Some(open) = self.open.as_mut().filter(|open| !open.is_mutual) {
            open.is_mutual = true;
            let is_new = std::mem::replace(&mut self.carried, self.incarnation) != self.incarnation;
            actions.events.push(LinkEvent::Up { incarnation: self.incarnation, is_new });
        }
    }

    fn receive_frames(&mut self, mut input: &[u8], now: Time, actions: &mut Actions, sink: &mut impl LinkSink) {
        while let Some(open) = &mut self.open {
            let id = open.id;
            let frame = match open.frames.read(&mut input) {
                Ok(Some(frame)) => frame,
                Ok(None) => return,
                Err(fault) => {
                    actions.closes.push(id);
                    actions.events.push(LinkEvent::Damaged(fault));
                    return self.lose(now, actions);
                }
            };
            self.heard = now;
            self.peer_epoch = self.peer_epoch.max(frame.header.epoch);
            let is_first = !open.is_mutual;
            let arrival = self.channel.on_frame(&frame.header, frame.body.len());
            let taken = arrival.and_then(|arrival| match (arrival, frame.header.kind) {
                (Arrival::Known, FrameKind::Heartbeat) => {
                    if let Ok(nodes) = frame.body.try_into() {
                        sink.hears(nodes);
                    }
                    Ok(0)
                }
                (Arrival::Known, _) => Ok(0),
                (Arrival::New, FrameKind::Part) => {
                    self.parts.extend_from_slice(frame.body);
                    if self.parts.len() > RECORD_BYTES_MAX { Err(ChannelFault::Body(BodyFault::Length)) } else { Ok(0) }
                }
                (Arrival::New, _) if self.parts.is_empty() => sink.records(&frame.header, frame.body),
                (Arrival::New, _) => {
                    self.parts.extend_from_slice(frame.body);
                    let parts = std::mem::take(&mut self.parts);
                    sink.records(&frame.header, &parts)
                }
            });
            match taken {
                Ok(granted) => {
                    self.channel.grant(granted);
                    if is_first {
                        self.note_mutual(actions);
                    }
                }
                Err(fault) => {
                    if fault.is_final() {
                        return self.die(Death::Broken(fault), now, actions);
                    }
                    actions.closes.push(id);
                    return self.lose(now, actions);
                }
            }
        }
    }

    /// Appends output for the present connection, about `bytes_max` bytes at most. Returns the connection.
    /// `hears` lists the nodes that this node hears, for a heartbeat.
    pub fn write(
        &mut self,
        (now, epoch): (Time, u32),
        hears: &[u8; 32],
        (output, bytes_max): (&mut Vec<u8>, usize),
        actions: &mut Actions,
    ) -> Option<ConnectionId> {
        let id = self.open.as_ref()?.id;
        match self.channel.write(epoch, bytes_max, output) {
            Ok(true) => self.sent = now,
            Ok(false) if self.is_heartbeat_due(now) => {
                self.channel.write_heartbeat(epoch, hears, output);
                self.sent = now;
            }
            Ok(false) => return None,
            Err(fault) => {
                self.die(Death::Broken(fault), now, actions);
                return None;
            }
        }
        Some(id)
    }

    /// Whether the next [`Link::write`] writes a heartbeat if it has nothing else.
    pub fn is_heartbeat_due(&self, now: Time) -> bool {
        now.since(self.sent) >= HEARTBEAT_EVERY || self.sent == Time(0)
    }

    /// Whether [`Link::write`] has frames or an urgent acknowledgement to write.
    pub fn has_output(&self) -> bool {
        self.open.is_some() && self.channel.has_output()
    }

    /// The connection is gone; the channel waits for the next one.
    fn lose(&mut self, now: Time, actions: &mut Actions) {
        if self.open.take().is_some() {
            actions.events.push(LinkEvent::Lost);
            self.connect_at = Some(now);
        }
    }

    /// The incarnation is dead for this link.
    fn die(&mut self, death: Death, now: Time, actions: &mut Actions) {
        let incarnation = std::mem::take(&mut self.incarnation);
        self.incarnation_min = self.incarnation_min.max(incarnation + 1);
        self.channel = Channel::new(self.channel_id.channel);
        self.parts = Vec::new();
        if let Some(open) = self.open.take() {
            actions.closes.push(open.id);
            self.connect_at = Some(now);
        }
        if !self.is_initiator() {
            self.connect_at = None;
        }
        actions.events.push(LinkEvent::Dead(incarnation, death));
    }

    /// Connects again after a pause, which doubles from one failure to the next. A probe is repeated too: the
    /// process may die after it has answered, or close the connection while it dies and refuse only later
    /// ones.
    fn retry_later(&mut self, now: Time) {
        if self.open.is_none() && (self.is_initiator() || self.incarnation != 0) {
            self.connect_at = Some(now.plus(self.retry_after));
            self.retry_after = Duration((self.retry_after.0 * 2).min(RETRY_MAX.0));
        }
    }
}
