//! Two ends of a link on a network that does its worst.

use std::collections::VecDeque;

use super::super::hello::HelloReader;
use super::super::link::ATTEMPTS_MAX;
use super::*;
use crate::context::Duration;
use crate::random::Random;

/// A connection: bytes under way in both directions, and which ends believe it open.
struct Connection {
    id: u64,
    /// By receiver.
    bytes: [VecDeque<u8>; 2],
    open: [bool; 2],
    /// The initiator's bytes so far, for replays.
    recorded: Vec<u8>,
    /// Whether the acceptor has handed the connection to its link.
    is_routed: bool,
    reception: HelloReader,
}

struct Network {
    random: Random,
    now: Time,
    ends: [End; 2],
    connections: Vec<Connection>,
    connections_made: u64,
    recordings: Vec<Vec<u8>>,
    /// Whether the network still damages things. Later nothing is sent either, so that the queues empty.
    is_hostile: bool,
}

/// Maximum number of connections that the network keeps.
const CONNECTIONS_MAX: usize = 12;

impl Network {
    fn new(seed: u64) -> Self {
        let now = Time(1_000_000);
        Self {
            random: Random::new(seed),
            now,
            ends: [End::new((1, 5), 2, now), End::new((2, 6), 1, now)],
            connections: Vec::new(),
            connections_made: 0,
            recordings: Vec::new(),
            is_hostile: true,
        }
    }

    fn connect(&mut self) -> u64 {
        self.connections_made += 1;
        self.connections.push(Connection {
            id: self.connections_made,
            bytes: Default::default(),
            open: [true, true],
            recorded: Vec::new(),
            is_routed: false,
            reception: HelloReader::default(),
        });
        if self.connections.len() > CONNECTIONS_MAX {
            self.reset(0);
        }
        self.connections_made
    }

    fn nonce(&mut self) -> [u8; 32] {
        let mut nonce = [0; 32];
        self.random.bytes(&mut nonce);
        nonce
    }

    fn find(&mut self, id: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.id == id)
    }

    /// Carries out what an end wants.
    fn carry_out(&mut self, end: usize) {
        let actions = std::mem::take(&mut self.ends[end].actions);
        for (id, bytes) in actions.sends {
            self.put(end, id, &bytes);
        }
        for id in actions.closes {
            if let Some(connection) = self.find(id) {
                connection.open[end] = false;
            }
        }
        for event in actions.events {
            if matches!(event, LinkEvent::Dead(..)) {
                self.ends[end].sent = 0;
            }
            self.ends[end].events.push(event);
        }
        if actions.connect {
            let (id, nonce) = (self.connect(), self.nonce());
            let now = self.now;
            // The higher node's probe arrives at the lower node.
            if end == 1 {
                let mut flipped = Actions::default();
                self.ends[1].link.on_connecting(id, nonce, now, &mut flipped);
                for (id, bytes) in flipped.sends {
                    self.put(1, id, &bytes);
                }
            } else {
                let End { link, actions, .. } = &mut self.ends[0];
                link.on_connecting(id, nonce, now, actions);
                self.carry_out(0);
            }
        }
    }

    fn put(&mut self, end: usize, id: u64, bytes: &[u8]) {
        let Some(connection) = self.find(id) else { return };
        if connection.open[end] {
            connection.bytes[1 - end].extend(bytes);
            if end == 0 {
                connection.recorded.extend_from_slice(bytes);
            }
        }
    }

    /// Both ends lose a connection, each when it is told.
    fn reset(&mut self, position: usize) {
        let connection = self.connections.remove(position);
        self.recordings.push(connection.recorded);
        self.recordings.truncate(8);
        for end in 0..2 {
            if connection.open[end] {
                let End { link, actions, .. } = &mut self.ends[end];
                link.on_closed(connection.id, false, self.now, actions);
                self.carry_out(end);
            }
        }
    }

    /// Moves some bytes of one direction of a connection to their receiver.
    fn deliver(&mut self, position: usize, end: usize) {
        let nonce = self.nonce();
        let Some(connection) = self.connections.get_mut(position) else { return };
        let id = connection.id;
        let queue = &mut connection.bytes[end];
        if queue.is_empty() {
            // The receiver notices that its peer has closed.
            if !connection.open[1 - end] && connection.open[end] {
                connection.open[end] = false;
                let End { link, actions, .. } = &mut self.ends[end];
                link.on_closed(id, false, self.now, actions);
                self.carry_out(end);
            }
            return;
        }
        let length = 1 + self.random.below(queue.len() as u64) as usize;
        let mut bytes: Vec<u8> = queue.drain(..length).collect();
        if !connection.open[end] {
            return;
        }
        if self.is_hostile && self.random.one_in(40) {
            let bit = self.random.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let now = self.now;
        let mut input = bytes.as_slice();
        let begins = !connection.is_routed && !self.ends_at_own_attempt(position, end);
        if begins {
            // The acceptor reads the first message before it knows the link.
            let connection = &mut self.connections[position];
            match connection.reception.read(&mut input) {
                Ok(Some(message)) => {
                    connection.is_routed = true;
                    let End { link, actions, .. } = &mut self.ends[end];
                    link.on_hello(id, &message, (now, nonce), actions);
                }
                Ok(None) => return,
                Err(_) => {
                    connection.open[end] = false;
                    return;
                }
            }
        }
        self.ends[end].receive(id, input, now);
        self.carry_out(end);
    }

    /// Whether the bytes go to the end that made the connection.
    fn ends_at_own_attempt(&self, position: usize, end: usize) -> bool {
        let connection = &self.connections[position];
        // Node 1 records what it sends; a probe of node 2 has no recording.
        (end == 0) != connection.recorded.is_empty() || connection.is_routed
    }

    fn step(&mut self) {
        self.now = self.now.plus(Duration::from_micros(self.random.below(3_000)));
        let end = self.random.below(2) as usize;
        match self.random.below(20) {
            0..8 if !self.connections.is_empty() => {
                let position = self.random.below(self.connections.len() as u64) as usize;
                self.deliver(position, end);
            }
            8..12 if self.is_hostile => self.send(end),
            8..16 => {
                if let Some((id, bytes)) = self.ends[end].write(self.now) {
                    self.put(end, id, &bytes);
                }
            }
            16 => {
                let End { link, numbers, .. } = &mut self.ends[end];
                let granted = self.random.below(numbers.waiting + 1);
                numbers.waiting -= granted;
                link.channel().grant(granted);
            }
            17 if self.is_hostile && !self.connections.is_empty() && self.random.one_in(3) => {
                let position = self.random.below(self.connections.len() as u64) as usize;
                self.reset(position);
            }
            18 if self.is_hostile && !self.recordings.is_empty() && self.random.one_in(4) => {
                // A stranger connects to the acceptor and sends what it has recorded.
                let recording = self.random.below(self.recordings.len() as u64) as usize;
                let bytes = self.recordings[recording].clone();
                let id = self.connect();
                if let Some(connection) = self.find(id) {
                    connection.recorded.push(0);
                    connection.open[0] = false;
                    connection.bytes[1].extend(bytes);
                }
            }
            _ => {}
        }
        for end in 0..2 {
            let End { link, actions, .. } = &mut self.ends[end];
            link.poll(self.now, actions);
            self.carry_out(end);
        }
        assert!(self.connections.len() <= CONNECTIONS_MAX + ATTEMPTS_MAX);
    }

    fn send(&mut self, end: usize) {
        let class = if self.random.one_in(3) { SignalClass::Reserved } else { SignalClass::Deferrable };
        let length = if self.random.one_in(20) { 60_000 } else { 8 + self.random.below(300) as usize };
        let End { link, sent, .. } = &mut self.ends[end];
        if link.incarnation().is_some() && link.accepts(class) {
            push(link, *sent, length, class);
            *sent += 1;
        }
    }
}

#[test]
fn every_signal_arrives_once_and_in_order_on_the_worst_network() {
    let (mut resumed, mut damaged, mut delivered, mut refused) = (0, 0, 0, 0);
    for seed in 0..20 {
        let mut network = Network::new(seed);
        for _ in 0..6_000 {
            network.step();
        }
        network.is_hostile = false;
        let is_done = |network: &Network| {
            let [one, two] = &network.ends;
            one.numbers.next == two.sent && two.numbers.next == one.sent && one.link.is_up() && two.link.is_up()
        };
        let mut steps = 0;
        while !is_done(&network) {
            network.step();
            steps += 1;
            assert!(steps < 100_000, "seed {seed}: signals are stuck");
            if steps % 100 == 0 {
                for end in &mut network.ends {
                    let waiting = std::mem::take(&mut end.numbers.waiting);
                    end.link.channel().grant(waiting);
                }
            }
        }
        for end in &network.ends {
            assert_eq!(end.deaths(), 0, "seed {seed}: {:?}", end.events);
            let count = |wanted: fn(&LinkEvent) -> bool| end.events.iter().filter(|event| wanted(event)).count();
            resumed += count(|event| matches!(event, LinkEvent::Up { is_new: false, .. }));
            damaged += count(|event| matches!(event, LinkEvent::Damaged(_)));
            refused += count(|event| matches!(event, LinkEvent::RefusedStranger(_)));
            delivered += end.numbers.next;
        }
    }
    assert!(
        resumed > 100 && damaged > 10 && refused > 100 && delivered > 10_000,
        "{resumed} resumed, {damaged} damaged, {refused} refused, {delivered} delivered"
    );
}
