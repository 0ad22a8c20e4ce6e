use super::*;
use crate::fake_server::{self, FakeHost, FakeSignal, Misbehaviour};
use crate::statement::{Reply, Statement};
use junctor_kernel::simulated::{ClientSocket, Simulation};
use junctor_kernel::{Duration, NodeId};

struct Session {
    simulation: Simulation<FakeSignal, FakeHost>,
    socket: ClientSocket,
    client: Client,
}

fn log_in(seed: u64, prepares: bool, deprecates_eof: bool) -> Session {
    let mut simulation = fake_server::start(seed, Misbehaviour::default());
    let socket = simulation.connect(NodeId(1), 0).unwrap();
    let client = Client::new(ClientOptions { prepares, deprecates_eof, database: Some("sim") });
    let mut session = Session { simulation, socket, client };
    assert_eq!(session.event(), ClientEvent::LoggedIn);
    session
}

impl Session {
    fn event(&mut self) -> ClientEvent {
        for _ in 0..1_000 {
            let output = self.client.take_output();
            self.simulation.write(self.socket, &output);
            self.simulation.run_for(Duration::from_micros(10));
            let bytes = self.simulation.read(self.socket);
            if let Some(event) = self.client.feed(&bytes).unwrap().pop() {
                return event;
            }
        }
        panic!("no event");
    }

    fn ask(&mut self, statement: Statement) -> Reply {
        self.client.send(statement).unwrap();
        match self.event() {
            ClientEvent::Replied(reply) => reply,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_statement_gets_its_own_answer_in_both_forms_and_with_both_ends() {
    for mode in 0..4 {
        let mut session = log_in(mode, mode & 1 == 0, mode & 2 == 0);
        for round in 0..5 {
            let statement = Statement::with("SELECT ?, ?", [round.into(), (-round).into()]);
            assert_eq!(session.ask(statement).integers(), Ok(vec![vec![round, -round]]));
        }
        assert_eq!(session.ask(Statement::plain("fail")).errno(), 1064);
        assert_eq!(session.ask(Statement::plain("do")).affected_rows(), Ok(0));
        assert_eq!(session.ask(Statement::plain("SELECT 5")).integers(), Ok(vec![vec![5]]));
    }
}

#[test]
fn an_answer_with_a_wrong_sequence_number_is_a_fault() {
    let mut simulation = fake_server::start(1, Misbehaviour { misnumber_one_in: 1, ..Misbehaviour::default() });
    let socket = simulation.connect(NodeId(1), 0).unwrap();
    let mut client = Client::new(ClientOptions { prepares: false, deprecates_eof: true, database: None });
    simulation.run_for(Duration::from_millis(1));
    client.feed(&simulation.read(socket)).unwrap();
    simulation.write(socket, &client.take_output());
    simulation.run_for(Duration::from_millis(1));
    assert!(client.feed(&simulation.read(socket)).is_err());
}

#[test]
fn unsolicited_bytes_are_a_fault() {
    let mut session = log_in(3, false, true);
    assert!(session.client.feed(&[1, 0, 0, 0, 7]).is_err());
}

#[test]
fn one_statement_at_a_time_is_sent() {
    let mut session = log_in(4, false, true);
    session.client.send(Statement::plain("SELECT 1")).unwrap();
    assert!(session.client.send(Statement::plain("SELECT 2")).is_err());
}
