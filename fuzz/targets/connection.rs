//! Connections of clients: whatever a client sends, and however it is cut, its connection gives commands to
//! its session, or ends. The first byte chooses the protocol, what comes first (nothing, an honest login, a
//! request for TLS, a balancer that must name the client), and the size of the pieces. Sessions answer every
//! command.
#![no_main]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use junctor_front::account::{Account, Accounts};
use junctor_front::{Networks, Protocol, RecvBlock, RecvSettings};
use junctor_kernel::simulated::Delivery;
use junctor_kernel::transport::security::ClientSecurity;
use junctor_kernel::{Address, Directory, Duration, NodeId, NodeLayout, SocketId, WorldEvent, WorldRequest, invariant};
use junctor_signals::Module;
use junctor_signals::client_command::{AfterReply, CommandReply};
use junctor_signals::connection_limits::ConnectionLimits;
use junctor_signals::inbox::{RecvSignal, Signal, SqlSignal};
use junctor_tls::client_tls::{CertificateFiles, ClientTls};
use libfuzzer_sys::fuzz_target;

const SOCKET: SocketId = SocketId::new(0, 0, 0);

/// An honest login of root without a password, and one that asks for TLS.
const LOGIN: &[u8] = &[38, 0, 0, 1, 0, 0x82, 0, 0];
const TLS_REQUEST: &[u8] = &[32, 0, 0, 1, 0, 0x8a, 0, 0];

fn security() -> Arc<dyn ClientSecurity> {
    static SECURITY: OnceLock<Arc<ClientTls>> = OnceLock::new();
    let open = || Arc::new(ClientTls::open(None, CertificateFiles::default()).expect("certificates"));
    let security: Arc<ClientTls> = Arc::clone(SECURITY.get_or_init(open));
    security
}

struct Recv {
    block: RecvBlock,
    delivery: Delivery<Signal>,
    own: Address,
    is_closed: bool,
    commands: usize,
}

impl Recv {
    fn new(protocol: Protocol, address: Ipv4Addr) -> Recv {
        let layout = NodeLayout::new(&[&[(Module::Recv, 0)], &[(Module::Sql, 0)]]);
        let directory = Directory::new(NodeId(1), &layout).expect("a layout");
        let own = directory.address(Module::Recv, 0);
        let mut delivery = Delivery::new();
        delivery.add_block(own, &layout, 1).expect("a layout");
        delivery.in_flight.clear();
        let mut accounts = Accounts::with_local_root();
        accounts.insert("anna", Account::with_password(b"secret"));
        let settings = RecvSettings {
            ids: (0, u32::MAX),
            server_version: "8.0".into(),
            accounts: Arc::new(accounts),
            security: Some(security()),
            secure_transport_required: Arc::default(),
            journal: Arc::default(),
            limits: Arc::new(ConnectionLimits::new(1)),
            logins_max: 1,
            proxy_networks: Networks::parse("192.0.2.0/24").expect("a network"),
            max_allowed_packet: 1 << 16,
            readiness: Arc::default(),
        };
        settings.readiness.open();
        let block = RecvBlock::new(own, &directory, settings);
        let mut recv = Recv { block, delivery, own, is_closed: false, commands: 0 };
        let peer = SocketAddr::from((address, 4000)).into();
        recv.world(WorldEvent::SocketOpened { socket: SOCKET, peer, listener: protocol.number() });
        recv
    }

    fn world(&mut self, event: WorldEvent) {
        let block = &mut self.block;
        let requests: Vec<_> = self
            .delivery
            .handle(self.own, |context, outbox| block.on_world(event, context, outbox))
            .into_iter()
            .collect();
        self.carry_out(requests);
        self.answer();
    }

    fn carry_out(&mut self, requests: Vec<WorldRequest>) {
        for request in requests {
            match request {
                WorldRequest::CloseSocket { .. } => self.is_closed = true,
                WorldRequest::StartTimer { after: Duration(0), token } if !self.is_closed => {
                    self.world(WorldEvent::Timer { token });
                }
                _ => {}
            }
        }
    }

    /// The session: it answers every signal with nothing.
    fn answer(&mut self) {
        while let Some(delivered) = self.delivery.take_next() {
            let connection = match delivered.signal {
                Signal::Sql(SqlSignal::OpenSession(opening)) => opening.connection,
                Signal::Sql(SqlSignal::ExecuteCommand(command)) => {
                    let payload = command.bytes.get(command.start as usize..command.end as usize);
                    assert!(payload.is_some_and(|payload| payload.len() <= 1 << 16));
                    self.commands += 1;
                    command.connection
                }
                Signal::Sql(SqlSignal::CloseSession(_)) => continue,
                other => panic!("{other:?}"),
            };
            let reply =
                CommandReply { connection, socket: SOCKET, packets: Vec::new(), after: AfterReply::NextCommand };
            let (block, signal) = (&mut self.block, RecvSignal::CommandReply(reply));
            let requests: Vec<_> = self
                .delivery
                .handle(self.own, |context, outbox| block.handle(signal, context, outbox))
                .into_iter()
                .collect();
            self.carry_out(requests);
        }
    }

    fn receive(&mut self, bytes: &[u8], piece: usize) {
        for piece in bytes.chunks(piece) {
            self.world(WorldEvent::Received { socket: SOCKET, bytes: piece.to_vec() });
        }
    }
}

fn commands(how: u8, bytes: &[u8], piece: usize) -> (usize, bool) {
    let address = if how >> 1 & 3 == 3 { Ipv4Addr::new(192, 0, 2, 7) } else { Ipv4Addr::LOCALHOST };
    let mut recv = Recv::new(if how & 1 == 0 { Protocol::MySql } else { Protocol::Native }, address);
    match (how & 1, how >> 1 & 3) {
        (0, 1) => recv.receive(&[LOGIN, &[0; 28], b"root\0\0"].concat(), 64),
        (0, 2) => recv.receive(&[TLS_REQUEST, &[0; 28]].concat(), 64),
        (1, 1) => {
            let mut login = Vec::new();
            let names =
                junctor_wire::request::Login { version: junctor_wire::VERSION, user: "root", proof: b"", database: "" };
            assert!(names.encode(&mut login), "the names are short");
            recv.receive(&login, 64);
        }
        _ => {}
    }
    recv.receive(bytes, piece);
    (recv.commands, recv.is_closed)
}

fuzz_target!(|bytes: &[u8]| {
    invariant::panic_on_failure();
    let Some((&how, bytes)) = bytes.split_first() else { return };
    let whole = commands(how, bytes, bytes.len().max(1));
    let in_pieces = commands(how, bytes, usize::from(how >> 3) + 1);
    // A check of a password ends between two pieces, or after the last one.
    if how & 7 != 0 {
        assert_eq!(whole, in_pieces, "the result does not depend on how bytes are cut");
    }
});
