//! The clients that run the sessions of the workloads.
//!
//! Each client polls its connection at times that the seed draws, like a program with other work to do. It
//! may disappear at any moment. Nothing may be lost: a statement without an answer within the timeout is a
//! violation, unless the connection ends.

use std::collections::BTreeMap;

use junctor_kernel::block::{Host, Signal};
use junctor_kernel::random::mix;
use junctor_kernel::simulated::{ClientSocket, Simulation};
use junctor_kernel::{Duration, NodeId, Random, Time};

use crate::client::{Client, ClientEvent, ClientOptions};
use crate::statement::Reply;
use crate::workload::{Step, Workload};

/// Maximum time from a session's first attempt to log in to its success, in one life of the nodes. A node
/// with a slow disk may recover for seconds.
const LOGIN_MAX: Duration = Duration::from_seconds(60);
/// MySQL's error for a device that is full. Most clients give up their connection then.
const DISK_FULL: u16 = 1021;
/// MySQL's error for a server that stops. All clients give up their connection then.
const SHUTDOWN: u16 = 1053;
/// Errors of a cluster that has lost nodes: the outcome of a COMMIT is unknown, no data node answers, or the
/// snapshot is lost. Clients give up their connection then.
const UNAVAILABLE: [u16; 3] = [1180, 1296, 1412];
/// Begins the message of error 1213 if a node has left the cluster.
const NODE_LEFT: &str = "A node of the cluster has left";

/// The behaviour of the clients.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// The nodes to connect to.
    pub nodes: Vec<NodeId>,
    /// Maximum time between two polls of a client, in microseconds.
    pub poll_us_max: u64,
    /// After one in this many writes to the server, the client disappears; 0 means never.
    pub vanish_one_in: u64,
    /// Maximum time until an answer arrives; a longer wait is a violation.
    pub answer_timeout: Duration,
    /// The default database of the connections.
    pub database: Option<&'static str>,
    /// Whether nodes are lost while others go on, which clients notice by errors.
    pub loses_nodes: bool,
}

impl FleetOptions {
    /// Maximum time between two attempts to connect, in microseconds. A cluster that has lost nodes may
    /// refuse clients for seconds.
    fn rest_us_max(&self) -> u64 {
        if self.loses_nodes { 60_000 } else { 2_000 }
    }
}

/// Statistics of the clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetReport {
    /// Number of statements answered.
    pub statements: u64,
    /// Number of error answers by MySQL's error number.
    pub errors: BTreeMap<u16, u64>,
    /// For each of these numbers, the node and the time of the first and of the last error, and a message.
    pub samples: BTreeMap<u16, ErrorSample>,
    /// Number of connections that ended after their login and before their session did.
    pub disconnects: u64,
    /// A hash of all bytes received, in order.
    pub observed: u64,
}

/// When and where an error came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSample {
    /// When and at which node it came first.
    pub first: (Time, NodeId),
    /// When and at which node it came last.
    pub last: (Time, NodeId),
    /// The first message.
    pub message: String,
}

impl FleetReport {
    fn note_error(&mut self, (errno, message): (u16, &str), node: NodeId, now: Time) {
        *self.errors.entry(errno).or_default() += 1;
        let first = (now, node);
        let sample = || ErrorSample { first, last: first, message: message.to_owned() };
        self.samples.entry(errno).or_insert_with(sample).last = first;
    }

    /// Adds the statistics of other clients.
    pub fn add(&mut self, other: &FleetReport) {
        self.statements += other.statements;
        self.disconnects += other.disconnects;
        for (&errno, count) in &other.errors {
            *self.errors.entry(errno).or_default() += count;
        }
        for (&errno, sample) in &other.samples {
            let known = self.samples.entry(errno).or_insert_with(|| sample.clone());
            known.last = known.last.max(sample.last);
        }
        self.observed = mix(self.observed ^ other.observed);
    }
}

/// Why [`Fleet::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetEnd {
    /// All sessions have ended.
    Finished,
    /// The nodes have ended. The sessions go on with the next call.
    NodesEnded,
}

/// Advances virtual time, and may interfere with the nodes meanwhile.
pub trait TimeDriver<S: Signal, H: Host<S>> {
    /// Advances time by at least `duration`.
    fn advance(&mut self, simulation: &mut Simulation<S, H>, duration: Duration);

    /// Whether the nodes have ended.
    fn have_nodes_ended(&self) -> bool {
        false
    }
}

/// Advances time without interference.
pub struct PlainDriver;

impl<S: Signal, H: Host<S>> TimeDriver<S, H> for PlainDriver {
    fn advance(&mut self, simulation: &mut Simulation<S, H>, duration: Duration) {
        simulation.run_for(duration);
    }
}

/// All clients of a run.
pub struct Fleet {
    options: FleetOptions,
    members: Vec<Member>,
    report: FleetReport,
}

struct Member {
    workload: usize,
    session: usize,
    client_options: ClientOptions,
    random: Random,
    connection: Option<(ClientSocket, Client)>,
    state: State,
    next_poll: Time,
    /// Time of the last byte sent or received.
    last_progress: Time,
    /// Time of the first attempt to log in since the last success, in the present life of the nodes.
    login_since: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Resting {
        until: Time,
    },
    LoggingIn,
    Ready {
        until: Time,
    },
    Waiting,
    /// COM_QUIT is sent; the server will close the connection.
    Leaving,
    Done,
}

impl Member {
    /// Whether the client waits for the server.
    fn waits(&self) -> bool {
        matches!(self.state, State::LoggingIn | State::Waiting | State::Leaving)
    }

    /// Waits a moment before the next attempt to connect.
    fn rest(&mut self, now: Time, longest_us: u64) {
        let pause = Duration::from_micros(self.random.below(longest_us));
        self.state = State::Resting { until: now.plus(pause) };
    }
}

impl Fleet {
    /// Creates one client for each session of the workloads. The seed determines the behaviour of each.
    pub fn new(options: FleetOptions, workloads: &[&mut dyn Workload], seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut members = Vec::new();
        for (workload, sessions) in workloads.iter().map(|workload| workload.sessions()).enumerate() {
            for session in 0..sessions {
                members.push(Member {
                    workload,
                    session,
                    client_options: ClientOptions {
                        prepares: random.one_in(2),
                        deprecates_eof: random.one_in(2),
                        database: options.database,
                    },
                    random: Random::new(random.word()),
                    connection: None,
                    state: State::Resting { until: Time(0) },
                    next_poll: Time(0),
                    last_progress: Time(0),
                    login_since: None,
                });
            }
        }
        Self { options, members, report: FleetReport::default() }
    }

    /// Statistics so far.
    pub fn report(&self) -> &FleetReport {
        &self.report
    }

    /// Runs until all sessions have ended, or the nodes have. `workloads` are those that the clients were
    /// made for.
    ///
    /// # Errors
    /// The first violation, with its session and statement.
    pub fn run<S: Signal, H: Host<S>>(
        &mut self,
        workloads: &mut [&mut dyn Workload],
        simulation: &mut Simulation<S, H>,
        driver: &mut impl TimeDriver<S, H>,
    ) -> Result<FleetEnd, String> {
        let start = simulation.now();
        for member in &mut self.members {
            member.next_poll = start.plus(Duration::from_micros(member.random.below(self.options.poll_us_max + 1)));
        }
        loop {
            let waiting = self.members.iter().filter(|member| member.state != State::Done);
            let Some(next) = waiting.map(|member| member.next_poll).min() else { return Ok(FleetEnd::Finished) };
            driver.advance(simulation, next.since(simulation.now()));
            if driver.have_nodes_ended() {
                self.lose_connections(workloads, simulation)?;
                return Ok(FleetEnd::NodesEnded);
            }
            for position in 0..self.members.len() {
                let member = &self.members[position];
                if member.state != State::Done && member.next_poll <= simulation.now() {
                    self.poll(position, workloads, simulation)?;
                }
            }
        }
    }

    /// Ends all connections. A client sees all answers that its machine had received, or none of them.
    fn lose_connections<S: Signal, H: Host<S>>(
        &mut self,
        workloads: &mut [&mut dyn Workload],
        simulation: &mut Simulation<S, H>,
    ) -> Result<(), String> {
        for position in 0..self.members.len() {
            let member = &mut self.members[position];
            // The rest of this life, the next recovery and its checks do not count.
            member.login_since = None;
            if member.connection.is_some() && member.random.one_in(2) {
                let received = self.receive(position, workloads, simulation);
                received.map_err(|fault| self.violation(position, workloads, &fault))?;
            }
            if let Some((socket, _)) = self.members[position].connection {
                simulation.close(socket);
                self.on_closed(position, workloads, simulation.now());
            }
        }
        Ok(())
    }

    fn poll<S: Signal, H: Host<S>>(
        &mut self,
        position: usize,
        workloads: &mut [&mut dyn Workload],
        simulation: &mut Simulation<S, H>,
    ) -> Result<(), String> {
        let now = simulation.now();
        let member = &mut self.members[position];
        let look = Duration::from_micros(1 + member.random.below(self.options.poll_us_max));
        // A client polls less often the longer it waits, so that waiting for a missing answer stays cheap.
        let waited = if member.waits() { now.since(member.last_progress) } else { Duration::ZERO };
        member.next_poll = now.plus(Duration(look.0 + waited.0 / 16));
        let outcome = self.receive(position, workloads, simulation);
        let outcome = outcome.and_then(|()| self.act(position, workloads, simulation));
        let outcome = outcome.and_then(|()| self.check_time(position, now));
        outcome.map_err(|fault| self.violation(position, workloads, &fault))
    }

    /// Reads from the socket, handles the events, and detects the end of the connection.
    fn receive<S: Signal, H: Host<S>>(
        &mut self,
        position: usize,
        workloads: &mut [&mut dyn Workload],
        simulation: &mut Simulation<S, H>,
    ) -> Result<(), String> {
        let now = simulation.now();
        let member = &mut self.members[position];
        let Some((socket, client)) = &mut member.connection else { return Ok(()) };
        let bytes = simulation.read(*socket);
        let is_open = simulation.is_open(*socket);
        if !bytes.is_empty() {
            member.last_progress = now;
        }
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
            self.report.observed = mix(self.report.observed ^ word);
        }
        let (awaited, node) = (client.awaited().cloned(), socket.node);
        let events = client.feed(&bytes).map_err(|fault| fault.to_string())?;
        for event in events {
            let member = &mut self.members[position];
            match event {
                ClientEvent::LoggedIn => {
                    member.state = State::Ready { until: now };
                    member.login_since = None;
                }
                ClientEvent::Refused { errno } => self.report.note_error((errno, ""), node, now),
                ClientEvent::Replied(reply) => {
                    member.state = State::Ready { until: now };
                    self.report.statements += 1;
                    if let Reply::Failed { errno, message } = &reply {
                        self.report.note_error((*errno, message), node, now);
                    }
                    let (workload, session) = (member.workload, member.session);
                    let is_full = reply.errno() == DISK_FULL && !workloads[workload].expects_full_disk();
                    // A COMMIT may fail so. Workloads take it for one whose outcome is unknown.
                    let has_left = matches!(&reply, Reply::Failed { message, .. } if message.starts_with(NODE_LEFT));
                    let is_lost = self.options.loses_nodes && UNAVAILABLE.contains(&reply.errno());
                    if is_full || has_left || is_lost || reply.errno() == SHUTDOWN {
                        let socket = member.connection.as_ref().map(|(socket, _)| *socket);
                        socket.into_iter().for_each(|socket| simulation.close(socket));
                        self.on_closed(position, workloads, now);
                        return Ok(());
                    }
                    let taken = workloads[workload].on_reply(session, &reply);
                    let statement = awaited.as_ref().map(|statement| statement.as_text()).unwrap_or_default();
                    taken.map_err(|fault| format!("{fault}; after: {statement}"))?;
                }
            }
        }
        if !is_open {
            self.on_closed(position, workloads, now);
        }
        Ok(())
    }

    fn on_closed(&mut self, position: usize, workloads: &mut [&mut dyn Workload], now: Time) {
        let member = &mut self.members[position];
        member.connection = None;
        if member.state == State::Leaving {
            member.state = State::Done;
            return;
        }
        // A node that starts or recovers refuses connections, of which the session need not know.
        if member.state != State::LoggingIn {
            self.report.disconnects += 1;
            workloads[member.workload].on_closed(member.session);
        }
        member.rest(now, self.options.rest_us_max());
    }

    /// Connects or sends the next statement if it is time to.
    fn act<S: Signal, H: Host<S>>(
        &mut self,
        position: usize,
        workloads: &mut [&mut dyn Workload],
        simulation: &mut Simulation<S, H>,
    ) -> Result<(), String> {
        let now = simulation.now();
        let member = &mut self.members[position];
        match member.state {
            State::Resting { until } if until <= now => {
                if now.since(*member.login_since.get_or_insert(now)) > LOGIN_MAX {
                    return Err(format!("no login within {} ms", LOGIN_MAX.as_millis()));
                }
                let nodes = &self.options.nodes;
                let drawn = if nodes.len() > 1 { member.random.below(nodes.len() as u64) as usize } else { 0 };
                if let Some(socket) = simulation.connect(nodes[drawn], 0) {
                    member.connection = Some((socket, Client::new(member.client_options)));
                    member.state = State::LoggingIn;
                    member.last_progress = now;
                } else {
                    member.rest(now, self.options.rest_us_max());
                }
            }
            State::Ready { until } if until <= now => self.step(position, workloads, now)?,
            _ => {}
        }
        let member = &mut self.members[position];
        let Some((socket, client)) = &mut member.connection else { return Ok(()) };
        let output = client.take_output();
        if !output.is_empty() {
            member.last_progress = now;
            write_in_pieces(simulation, *socket, &output, &mut member.random);
            if member.random.one_in(self.options.vanish_one_in) && member.state != State::Leaving {
                simulation.close(*socket);
                self.on_closed(position, workloads, now);
            }
        }
        Ok(())
    }

    /// Takes the next step of an idle session from the workload.
    fn step(&mut self, position: usize, workloads: &mut [&mut dyn Workload], now: Time) -> Result<(), String> {
        let member = &mut self.members[position];
        let Some((_, client)) = &mut member.connection else { return Ok(()) };
        match workloads[member.workload].next(member.session, &mut member.random) {
            Step::Run(statement) => {
                member.state = State::Waiting;
                client.send(statement).map_err(|fault| fault.to_string())?;
            }
            Step::Pause(duration) => member.state = State::Ready { until: now.plus(duration) },
            Step::Done => {
                client.quit();
                member.state = State::Leaving;
            }
        }
        Ok(())
    }

    fn check_time(&self, position: usize, now: Time) -> Result<(), String> {
        let member = &self.members[position];
        if !member.waits() || now.since(member.last_progress) <= self.options.answer_timeout {
            return Ok(());
        }
        let awaited = member.connection.as_ref().and_then(|(_, client)| client.awaited());
        let statement = awaited.map(|statement| statement.as_text()).unwrap_or_default();
        let (state, longest, since) = (member.state, self.options.answer_timeout.as_millis(), member.last_progress);
        Err(format!("no answer within {longest} ms, {state:?} since {since:?}: {statement}"))
    }

    fn violation(&self, position: usize, workloads: &[&mut dyn Workload], fault: &str) -> String {
        let member = &self.members[position];
        format!("{} session {}: {fault}", workloads[member.workload].name(), member.session)
    }
}

/// Runs the sessions of one workload to their end, without interference.
///
/// # Errors
/// As [`Fleet::run`].
pub fn run_alone<S: Signal, H: Host<S>>(
    options: FleetOptions,
    workload: &mut dyn Workload,
    seed: u64,
    simulation: &mut Simulation<S, H>,
) -> Result<FleetReport, String> {
    let mut workloads = [workload];
    let mut fleet = Fleet::new(options, &workloads, seed);
    fleet.run(&mut workloads, simulation, &mut PlainDriver)?;
    Ok(fleet.report)
}

/// Writes the bytes in one or two pieces, so that the server receives packets cut anywhere.
fn write_in_pieces<S: Signal, H: Host<S>>(
    simulation: &mut Simulation<S, H>,
    socket: ClientSocket,
    bytes: &[u8],
    random: &mut Random,
) {
    let cut = if random.one_in(4) { random.below(bytes.len() as u64) as usize } else { 0 };
    // The connection may be closed already. The next poll detects that.
    let _ = simulation.write(socket, &bytes[..cut]) && simulation.write(socket, &bytes[cut..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_server::{self, Misbehaviour};
    use crate::statement::{Reply, Statement};
    use crate::workload::Script;

    fn options() -> FleetOptions {
        FleetOptions {
            nodes: vec![NodeId(1)],
            poll_us_max: 100,
            vanish_one_in: 0,
            answer_timeout: Duration::from_seconds(1),
            database: None,
            loses_nodes: false,
        }
    }

    /// Each session selects its own numbers and counts the connections that it lost.
    struct Numbers {
        asked: Vec<i64>,
        lost: u32,
    }

    impl Workload for Numbers {
        fn name(&self) -> &'static str {
            "numbers"
        }

        fn setup(&self) -> Vec<Statement> {
            Vec::new()
        }

        fn sessions(&self) -> usize {
            self.asked.len()
        }

        fn next(&mut self, session: usize, _random: &mut Random) -> Step {
            match self.asked[session] {
                30 => Step::Done,
                asked => Step::Run(Statement::with("SELECT ?, ?", [(session as i64).into(), asked.into()])),
            }
        }

        fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
            assert_eq!(reply.integers()?, [[session as i64, self.asked[session]]]);
            self.asked[session] += 1;
            Ok(())
        }

        fn on_closed(&mut self, _session: usize) {
            self.lost += 1;
        }

        fn audit(&self) -> Vec<Statement> {
            Vec::new()
        }

        fn on_audit(&mut self, _position: usize, _reply: &Reply) -> Result<(), String> {
            Ok(())
        }
    }

    fn run(seed: u64, misbehaviour: Misbehaviour, options: FleetOptions) -> (Result<FleetReport, String>, Numbers) {
        let mut simulation = fake_server::start(seed, misbehaviour);
        let mut numbers = Numbers { asked: vec![0; 4], lost: 0 };
        let outcome = run_alone(options, &mut numbers, seed, &mut simulation);
        (outcome, numbers)
    }

    #[test]
    fn every_session_runs_to_its_end_and_equal_seeds_see_equal_bytes() {
        let report = run(1, Misbehaviour::default(), options()).0.unwrap();
        assert_eq!((report.statements, report.disconnects), (120, 0));
        assert_eq!(run(1, Misbehaviour::default(), options()).0, Ok(report.clone()));
        assert_ne!(run(2, Misbehaviour::default(), options()).0, Ok(report));
    }

    /// Ends the nodes after some steps.
    struct EndAfter(u32);

    impl<S: Signal, H: Host<S>> TimeDriver<S, H> for EndAfter {
        fn advance(&mut self, simulation: &mut Simulation<S, H>, duration: Duration) {
            simulation.run_for(duration);
            self.0 -= 1;
        }

        fn have_nodes_ended(&self) -> bool {
            self.0 == 0
        }
    }

    #[test]
    fn the_time_to_log_in_begins_anew_with_each_life_of_the_nodes() {
        let mut simulation = fake_server::start(1, Misbehaviour::default());
        let mut numbers = Numbers { asked: vec![0; 4], lost: 0 };
        let mut workloads: [&mut dyn Workload; 1] = [&mut numbers];
        let mut fleet = Fleet::new(options(), &workloads, 1);
        assert_eq!(fleet.run(&mut workloads, &mut simulation, &mut EndAfter(5)), Ok(FleetEnd::NodesEnded));
        assert!(fleet.members.iter().any(|member| member.state == State::LoggingIn || member.connection.is_none()));
        simulation.run_for(Duration(2 * LOGIN_MAX.0));
        assert_eq!(fleet.run(&mut workloads, &mut simulation, &mut PlainDriver), Ok(FleetEnd::Finished));
    }

    #[test]
    fn an_answer_that_never_comes_is_a_violation() {
        let (outcome, _) = run(1, Misbehaviour { forget_one_in: 20, ..Misbehaviour::default() }, options());
        assert!(outcome.unwrap_err().contains("no answer within"));
    }

    #[test]
    fn sessions_go_on_after_their_connections_are_closed() {
        let (outcome, numbers) = run(1, Misbehaviour { close_one_in: 10, ..Misbehaviour::default() }, options());
        assert_eq!(outcome.unwrap().disconnects, u64::from(numbers.lost));
        assert!(numbers.lost > 0 && numbers.asked == [30; 4]);
        let (outcome, numbers) = run(1, Misbehaviour::default(), FleetOptions { vanish_one_in: 10, ..options() });
        assert!(outcome.unwrap().disconnects > 0 && numbers.asked == [30; 4]);
    }

    #[test]
    fn a_script_ends_at_its_first_error() {
        let mut simulation = fake_server::start(1, Misbehaviour::default());
        let mut script = Script::new(["do", "fail", "do"].map(Statement::plain).to_vec());
        let outcome = run_alone(options(), &mut script, 1, &mut simulation);
        assert!(outcome.unwrap_err().contains("error 1064") && !script.is_complete());
    }
}
