//! A small program of blocks for the kernel's own tests: echo, balls thrown between threads, a timer and a
//! file.

use std::collections::BTreeMap;

use crate::address::{Address, NodeId};
use crate::block::{Endpoints, Host, Priority, Signal, SignalClass};
use crate::buffer::{Buffer, BufferPool};
use crate::context::{Context, Duration};
use crate::crash_point::CrashPoint;
use crate::directory::ThreadAssignment;
use crate::file_buffer::FileBuffer;
use crate::module::ModuleId;
use crate::outbox::Outbox;
use crate::transport::board::LinkNews;
use crate::wire_signal::{DecodeError, EncodeError, LinkMaker, WireSignal};
use crate::world::{FileId, FileLane, FileMode, FileOutcome, SocketId, WorldEvent, WorldRequest};

/// Starts the node's timer, file and long work.
pub(crate) const STARTER: ModuleId = ModuleId::new(0);
/// Has no work of its own.
pub(crate) const IDLE: ModuleId = ModuleId::new(1);
/// Returns bytes to their sender.
pub(crate) const ECHO: ModuleId = ModuleId::new(2);
/// Throws balls and sends numbered signals.
pub(crate) const PLAYER: ModuleId = ModuleId::new(3);

/// Before an echo is sent to its client.
pub(crate) const BEFORE_SEND: CrashPoint = CrashPoint::new(1);
/// After an echo was sent to its client.
pub(crate) const AFTER_SEND: CrashPoint = CrashPoint::new(2);

#[derive(Debug)]
pub(crate) enum ToySignal {
    World(WorldEvent),
    /// Asks ECHO 0 to return the bytes.
    Echo(SocketId, Buffer),
    EchoReply(SocketId, Buffer),
    /// A ball. Its handler throws it on to a random place until no hops are left.
    Ball(u32),
    /// A ball has ended.
    BallEnded,
    /// One of a sequence that must arrive in order.
    Numbered(u32),
    /// Long work with this many steps left.
    Step(u32),
    /// A signal whose handler takes long.
    Long,
    /// News of a link, for the watcher.
    Link(LinkNews),
}

impl Signal for ToySignal {
    fn class(&self) -> SignalClass {
        match self {
            Self::EchoReply(..) | Self::BallEnded | Self::Step(_) | Self::Link(_) => SignalClass::Reserved,
            Self::World(WorldEvent::FileDone { .. }) => SignalClass::Reserved,
            Self::World(_) | Self::Echo(..) | Self::Ball(_) | Self::Numbered(_) | Self::Long => SignalClass::Deferrable,
        }
    }

    fn priority(&self) -> Priority {
        if matches!(self, Self::BallEnded) { Priority::High } else { Priority::Normal }
    }

    fn emit_max(&self) -> u16 {
        if matches!(self, Self::Ball(_)) { 2 } else { 1 }
    }

    fn name(&self) -> &'static str {
        Self::name_of_number(self.number()).unwrap_or_default()
    }

    fn number(&self) -> u16 {
        match self {
            Self::World(_) => 0,
            Self::Echo(..) => 1,
            Self::EchoReply(..) => 2,
            Self::Ball(_) => 3,
            Self::BallEnded => 4,
            Self::Numbered(_) => 5,
            Self::Step(_) => 6,
            Self::Long => 7,
            Self::Link(_) => 8,
        }
    }

    fn from_world(event: WorldEvent) -> Self {
        Self::World(event)
    }

    fn simulated_links() -> Option<LinkMaker<Self>> {
        Some(LinkMaker::newest())
    }

    fn from_link(news: LinkNews) -> Option<Self> {
        Some(Self::Link(news))
    }

    fn name_of_number(number: u16) -> Option<&'static str> {
        ["World", "Echo", "EchoReply", "Ball", "BallEnded", "Numbered", "Step", "Long", "Link"]
            .get(usize::from(number))
            .copied()
    }
}

impl WireSignal for ToySignal {
    type Encoder = ();
    type Decoder = ();

    const VERSIONS: std::ops::RangeInclusive<u16> = 1..=1;

    fn layouts(version: u16) -> u64 {
        u64::from(version)
    }

    fn encoder(_version: u16) {}

    fn decoder(_version: u16) {}

    fn encode(&self, _link: &mut (), out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let number = match self {
            Self::Ball(number) | Self::Numbered(number) => *number,
            other => crate::invariant::fail("the signal crosses nodes", format_args!("{other:?}")),
        };
        out.push(self.number() as u8);
        out.extend_from_slice(&number.to_le_bytes());
        Ok(())
    }

    fn decode(_link: &mut (), bytes: &[u8], _buffers: &mut BufferPool) -> Result<Self, DecodeError> {
        let (tag, rest) = bytes.split_first().ok_or(DecodeError::Truncated)?;
        let (number, rest) = rest.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
        let number = u32::from_le_bytes(*number);
        match tag {
            _ if !rest.is_empty() => Err(DecodeError::Trailing),
            3 => Ok(Self::Ball(number)),
            5 => Ok(Self::Numbered(number)),
            _ => Err(DecodeError::UnknownSignal(u16::from(*tag))),
        }
    }

    fn is_for(&self, module: ModuleId) -> bool {
        module == PLAYER
    }
}

/// The work that the toy blocks do at start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ToyPlan {
    /// Balls that each PLAYER throws.
    pub balls: u32,
    /// Hops of each ball.
    pub hops: u32,
    /// Number of nodes that balls are thrown between, if more than one.
    pub nodes: u8,
    /// Numbered signals that each PLAYER sends to each PLAYER.
    pub numbered: u32,
    /// Steps of the long work that STARTER begins.
    pub steps: u32,
    /// Long signals that STARTER sends to itself and to the first PLAYER.
    pub longs: u32,
    /// How often STARTER's timer fires.
    pub ticks: u32,
    /// Whether STARTER writes, syncs and reads a file.
    pub writes_file: bool,
    /// Whether a ball goes back to the block that threw it.
    pub returns: bool,
    /// Balls that a PLAYER throws to each PLAYER of a node when the link to it is up.
    pub linked_balls: u32,
    /// Numbered signals, likewise.
    pub linked_numbers: u32,
    /// Whether STARTER stops the node once balls, ticks and file are done.
    pub stops: bool,
}

/// The blocks of a thread, and their counts.
#[derive(Debug)]
pub(crate) struct ToyHost {
    pub assignment: ThreadAssignment,
    pub plan: ToyPlan,
    pub started: u32,
    pub opened: u32,
    pub closed: u32,
    pub balls_handled: u64,
    pub balls_ended: u32,
    pub ticks: u32,
    pub file: Option<FileId>,
    pub file_read: Option<Buffer>,
    pub blocked: u32,
    pub drained: u32,
    pub stopping: bool,
    pub steps: u32,
    /// Steps of this turn, and of the turn with the most.
    pub steps_of_turn: (u32, u32),
    pub longs: u32,
    /// Like `steps_of_turn`.
    pub longs_of_turn: (u32, u32),
    /// News of links.
    pub news: Vec<LinkNews>,
    /// The next number from each sender.
    pub numbers: BTreeMap<Address, u32>,
}

impl ToyHost {
    pub(crate) fn new(assignment: ThreadAssignment, plan: ToyPlan) -> Self {
        Self {
            assignment,
            plan,
            started: 0,
            opened: 0,
            closed: 0,
            balls_handled: 0,
            balls_ended: 0,
            ticks: 0,
            file: None,
            file_read: None,
            blocked: 0,
            drained: 0,
            stopping: false,
            steps: 0,
            steps_of_turn: (0, 0),
            longs: 0,
            longs_of_turn: (0, 0),
            news: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }

    fn on_started(&mut self, own: Address, context: &mut Context<'_>, outbox: &mut Outbox<ToySignal>) {
        self.started += 1;
        if own.module == PLAYER {
            for _ in 0..self.plan.balls {
                self.throw(self.plan.hops, context, outbox);
            }
            for number in 0..self.plan.numbered {
                for instance in 0..context.directory.instances(PLAYER) {
                    outbox.send(context.directory.address(PLAYER, instance), ToySignal::Numbered(number));
                }
            }
        }
        if own.module == STARTER && self.plan.steps > 0 {
            outbox.send(own, ToySignal::Step(self.plan.steps));
        }
        if own.module == STARTER {
            for _ in 0..self.plan.longs {
                outbox.send_long_running(own, ToySignal::Long);
                outbox.send(context.directory.address(PLAYER, 0), ToySignal::Long);
            }
            outbox.request(WorldRequest::StartTimer { after: Duration::from_millis(1), token: 1 });
            if self.plan.writes_file {
                let (lane, is_direct) = (FileLane::Log, false);
                outbox.request(WorldRequest::CreateFolder { path: "folder".into(), lane, token: 0 });
                let (path, mode) = ("folder/toy.bin".into(), FileMode::CreateEmpty);
                outbox.request(WorldRequest::OpenFile { path, mode, lane, is_direct, token: 0 });
                outbox.request(WorldRequest::SyncFolder { path: "folder".into(), lane, token: 0 });
                outbox.request(WorldRequest::SyncFolder { path: "".into(), lane, token: 0 });
            }
        }
    }

    fn on_file_done(&mut self, outcome: FileOutcome, bytes: FileBuffer, outbox: &mut Outbox<ToySignal>) {
        match outcome {
            FileOutcome::Opened { file, .. } => {
                self.file = Some(file);
                let (hello, word) = (b"hello "[..].into(), b"file"[..].into());
                outbox.request(WorldRequest::WriteFile { file, offset: 0, bytes: hello, token: 1 });
                outbox.request(WorldRequest::WriteFile { file, offset: 6, bytes: word, token: 1 });
                outbox.request(WorldRequest::SyncFile { file, token: 1 });
            }
            FileOutcome::Synced => {
                let Some(file) = self.file else { return };
                let bytes = FileBuffer::new();
                outbox.request(WorldRequest::ReadFile { file, offset: 0, length: 100, bytes, token: 2 });
                outbox.request(WorldRequest::CloseFile { file, token: 3 });
            }
            FileOutcome::Read { .. } => self.file_read = Some(bytes.to_vec()),
            _ => {}
        }
    }

    fn throw(&self, hops: u32, context: &mut Context<'_>, outbox: &mut Outbox<ToySignal>) {
        let instance = context.random.below(u64::from(context.directory.instances(PLAYER))) as u16;
        let mut to = context.directory.address(PLAYER, instance);
        if self.plan.nodes > 1 {
            to.node = NodeId(1 + context.random.below(u64::from(self.plan.nodes)) as u8);
        }
        outbox.send(to, ToySignal::Ball(hops));
    }

    fn on_link_up(&self, node: NodeId, context: &Context<'_>, outbox: &mut Outbox<ToySignal>) {
        for instance in 0..context.directory.instances(PLAYER) {
            let to = Address::new(node, PLAYER, instance);
            for _ in 0..self.plan.linked_balls {
                outbox.send(to, ToySignal::Ball(self.plan.hops));
            }
            for number in 0..self.plan.linked_numbers {
                outbox.send(to, ToySignal::Numbered(number));
            }
        }
    }

    fn stop_if_done(&self, context: &Context<'_>, outbox: &mut Outbox<ToySignal>) {
        let balls = self.plan.balls * u32::from(context.directory.instances(PLAYER));
        let file = !self.plan.writes_file || self.file_read.is_some();
        if self.plan.stops && self.balls_ended == balls && self.ticks >= self.plan.ticks && file {
            outbox.request(WorldRequest::Stop);
        }
    }
}

impl Host<ToySignal> for ToyHost {
    fn handle(
        &mut self,
        Endpoints { to, from }: Endpoints,
        signal: ToySignal,
        context: &mut Context<'_>,
        outbox: &mut Outbox<ToySignal>,
    ) {
        assert!(self.assignment.modules.contains(&(to.module, to.instance)));
        match signal {
            ToySignal::World(WorldEvent::Started) => self.on_started(to, context, outbox),
            ToySignal::World(WorldEvent::Stopping) => {
                self.stopping = true;
                outbox.request(WorldRequest::EndLinks);
            }
            ToySignal::World(WorldEvent::Timer { token }) => {
                self.ticks += 1;
                if !self.stopping {
                    outbox.request(WorldRequest::StartTimer { after: Duration::from_millis(1), token: token + 1 });
                }
                self.stop_if_done(context, outbox);
            }
            ToySignal::World(WorldEvent::SocketOpened { .. }) => self.opened += 1,
            ToySignal::World(WorldEvent::SocketClosed { .. }) => self.closed += 1,
            ToySignal::World(WorldEvent::SendBlocked { .. }) => self.blocked += 1,
            ToySignal::World(WorldEvent::SendDrained { .. }) => self.drained += 1,
            ToySignal::World(WorldEvent::Received { socket, bytes }) => {
                outbox.send(context.directory.address(ECHO, 0), ToySignal::Echo(socket, bytes));
            }
            ToySignal::World(WorldEvent::FileDone { result, bytes, .. }) => {
                self.on_file_done(result.unwrap(), bytes, outbox);
            }
            ToySignal::Echo(socket, bytes) => outbox.send(from, ToySignal::EchoReply(socket, bytes)),
            ToySignal::EchoReply(socket, bytes) => {
                let quits = bytes.ends_with(b"quit\n");
                outbox.crash_point(BEFORE_SEND);
                outbox.request(WorldRequest::SendBytes { socket, bytes });
                outbox.crash_point(AFTER_SEND);
                if quits {
                    outbox.request(WorldRequest::CloseSocket { socket });
                }
            }
            ToySignal::Ball(0) => outbox.send(context.directory.address(STARTER, 0), ToySignal::BallEnded),
            ToySignal::Ball(hops) => {
                self.balls_handled += 1;
                match self.plan.returns {
                    true => outbox.send(from, ToySignal::Ball(hops - 1)),
                    false => self.throw(hops - 1, context, outbox),
                }
            }
            ToySignal::BallEnded => self.balls_ended += 1,
            ToySignal::Link(news) => {
                self.news.push(news);
                if let LinkNews::Up { node, .. } = news {
                    self.on_link_up(node, context, outbox);
                }
            }
            ToySignal::Numbered(number) => {
                let wanted = self.numbers.entry(from).or_default();
                // A node counts from 0 again in its next life.
                *wanted = if number == 0 { 0 } else { *wanted };
                assert_eq!(number, *wanted, "from {from} to {to}");
                *wanted += 1;
            }
            ToySignal::Long => {
                self.longs += 1;
                self.longs_of_turn.0 += 1;
                outbox.stop_intake();
            }
            ToySignal::Step(left) => {
                self.steps += 1;
                self.steps_of_turn.0 += 1;
                if left > 1 {
                    outbox.send_next_turn(outbox.own(), ToySignal::Step(left - 1));
                }
            }
        }
    }

    fn before_publish(&mut self, _context: &mut Context<'_>, _outbox: &mut Outbox<ToySignal>) {
        let (last, most) = self.steps_of_turn;
        self.steps_of_turn = (0, most.max(last));
        let (last, most) = self.longs_of_turn;
        self.longs_of_turn = (0, most.max(last));
    }
}
