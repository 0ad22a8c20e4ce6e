//! A single-threaded server that answers each statement with one row: its parameters, or the numbers in its
//! text.

use std::collections::BTreeMap;

use junctor_front::mysql::wire::column::{ColumnDefinition, ColumnFlags};
use junctor_front::mysql::wire::field::put_length_encoded_bytes;
use junctor_front::mysql::wire::greeting::{Greeting, NATIVE_PASSWORD, SALT_BYTES};
use junctor_front::mysql::wire::handshake_response::ClientAnswer;
use junctor_front::mysql::wire::parameter::{ColumnType, ParameterType, ParameterValue, decode_parameters};
use junctor_front::mysql::wire::reply::{
    ErrorReply, OkReply, PrepareReply, ResultEnd, columns_have_end, encode_column_count,
};
use junctor_front::mysql::wire::{Capabilities, Command, PacketReader, PacketWriter, StatusFlags};
use junctor_kernel::block::{Host, Priority, Signal, SignalClass};
use junctor_kernel::simulated::{Simulation, SimulationOptions};
use junctor_kernel::{Context, Endpoints, NodeLayout, Outbox, SocketId, WorldEvent, WorldRequest};
use junctor_node::placement::Module;

/// The faults of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misbehaviour {
    /// One in this many commands is never answered.
    pub forget_one_in: u64,
    /// One in this many commands is answered by closing the connection.
    pub close_one_in: u64,
    /// One in this many answers has a wrong sequence number.
    pub misnumber_one_in: u64,
}

/// An event of the world.
pub struct FakeSignal(pub WorldEvent);

impl Signal for FakeSignal {
    fn class(&self) -> SignalClass {
        SignalClass::Deferrable
    }

    fn priority(&self) -> Priority {
        Priority::Normal
    }

    fn emit_max(&self) -> u16 {
        4
    }

    fn name(&self) -> &'static str {
        "World"
    }

    fn number(&self) -> u16 {
        0
    }

    fn from_world(event: WorldEvent) -> Self {
        Self(event)
    }
}

#[derive(Default)]
pub struct FakeHost {
    misbehaviour: Misbehaviour,
    connections: BTreeMap<SocketId, Connection>,
}

struct Connection {
    reader: PacketReader,
    capabilities: Option<Capabilities>,
    statements: Vec<(usize, Vec<ParameterType>)>,
}

/// Starts a simulation of one fake server.
pub fn start(seed: u64, misbehaviour: Misbehaviour) -> Simulation<FakeSignal, FakeHost> {
    let options = SimulationOptions::new(seed);
    let mut simulation = Simulation::new(options, move |_| FakeHost { misbehaviour, ..FakeHost::default() });
    simulation.add_node(&NodeLayout::new(&[&[(Module::Main, 0), (Module::Recv, 0)]])).unwrap();
    simulation
}

impl Host<FakeSignal> for FakeHost {
    fn handle(&mut self, _: Endpoints, signal: FakeSignal, context: &mut Context<'_>, outbox: &mut Outbox<FakeSignal>) {
        match signal.0 {
            WorldEvent::SocketOpened { socket, .. } => {
                let mut bytes = Vec::new();
                let greeting = Greeting {
                    server_version: b"8.0.36-fake",
                    connection_id: 7,
                    salt: [1; SALT_BYTES],
                    capabilities: Capabilities::SERVER,
                    charset: 45,
                    status: StatusFlags::AUTOCOMMIT,
                    plugin: NATIVE_PASSWORD,
                };
                PacketWriter::new(&mut bytes, 0).packet(|out| greeting.encode(out));
                let reader = PacketReader::new(1, 1 << 20);
                self.connections.insert(socket, Connection { reader, capabilities: None, statements: Vec::new() });
                outbox.request(WorldRequest::SendBytes { socket, bytes });
            }
            WorldEvent::SocketClosed { socket, .. } => {
                self.connections.remove(&socket);
            }
            WorldEvent::Received { socket, bytes } => self.on_received(socket, &bytes, context, outbox),
            _ => {}
        }
    }
}

impl FakeHost {
    fn on_received(
        &mut self,
        socket: SocketId,
        mut input: &[u8],
        context: &mut Context<'_>,
        outbox: &mut Outbox<FakeSignal>,
    ) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        loop {
            let (payload, sequence) = match connection.reader.next_packet(&mut input).unwrap() {
                Some(packet) => (packet.payload.to_vec(), packet.reply_sequence()),
                None => return,
            };
            connection.reader.expect_sequence(0);
            if context.random.one_in(self.misbehaviour.forget_one_in) {
                continue;
            }
            let wrong = u8::from(context.random.one_in(self.misbehaviour.misnumber_one_in));
            let bytes = connection.answer(&payload, sequence + wrong);
            match bytes {
                Some(bytes) if !context.random.one_in(self.misbehaviour.close_one_in) => {
                    outbox.request(WorldRequest::SendBytes { socket, bytes });
                }
                _ => outbox.request(WorldRequest::CloseSocket { socket }),
            }
        }
    }
}

impl Connection {
    /// The bytes of the answer; `None` closes the connection.
    fn answer(&mut self, payload: &[u8], sequence: u8) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut out = PacketWriter::new(&mut bytes, sequence);
        let ok = OkReply { status: StatusFlags::AUTOCOMMIT, ..OkReply::default() };
        let Some(capabilities) = self.capabilities else {
            let ClientAnswer::Response(response) = ClientAnswer::parse(payload).unwrap() else { return None };
            assert_eq!(response.user, b"root");
            self.capabilities = Some(response.capabilities);
            out.packet(|out| ok.encode(out));
            return Some(bytes);
        };
        match Command::parse(payload, capabilities).unwrap() {
            Command::Query { statement: b"fail" } => {
                let error = ErrorReply { errno: 1064, sqlstate: *b"42000", message: b"requested failure" };
                out.packet(|out| error.encode(out));
            }
            Command::Query { statement: b"do" } => out.packet(|out| ok.encode(out)),
            Command::Query { statement } => {
                let text = String::from_utf8(statement.to_vec()).unwrap();
                let numbers = text.split(|character: char| !character.is_ascii_digit() && character != '-');
                result(&mut out, capabilities, numbers.filter_map(|number| number.parse().ok()).collect(), false);
            }
            Command::StmtPrepare { statement } => {
                let parameter_count = statement.iter().filter(|&&byte| byte == b'?').count();
                self.statements.push((parameter_count, Vec::new()));
                let reply = PrepareReply {
                    statement_id: self.statements.len() as u32,
                    column_count: parameter_count as u16,
                    parameter_count: parameter_count as u16,
                    warning_count: 0,
                };
                out.packet(|out| reply.encode(out));
                columns(&mut out, capabilities, parameter_count);
                columns(&mut out, capabilities, parameter_count);
            }
            Command::StmtExecute(execute) => {
                let (count, types) = &mut self.statements[execute.statement_id as usize - 1];
                let mut values = Vec::new();
                let mut sink = |_: usize, value: ParameterValue<'_>| match value {
                    ParameterValue::Signed(value) => values.push(value),
                    other => panic!("{other:?} is not an integer"),
                };
                decode_parameters(&execute.parameters, *count, types, |_| None, &mut sink).unwrap();
                result(&mut out, capabilities, values, true);
            }
            _ => return None,
        }
        Some(bytes)
    }
}

fn columns(out: &mut PacketWriter<'_>, capabilities: Capabilities, count: usize) {
    let column = ColumnDefinition {
        schema: b"",
        table: b"",
        org_table: b"",
        name: b"n",
        org_name: b"",
        charset: 63,
        length_bytes: 20,
        column_type: ColumnType::LongLong,
        flags: ColumnFlags::NUMBER,
        decimals: 0,
    };
    for _ in 0..count {
        out.packet(|out| column.encode(out));
    }
    if columns_have_end(capabilities) {
        out.packet(|out| ResultEnd::default().encode_eof(out));
    }
}

fn result(out: &mut PacketWriter<'_>, capabilities: Capabilities, values: Vec<i64>, is_binary: bool) {
    out.packet(|out| encode_column_count(values.len() as u16, out));
    columns(out, capabilities, values.len());
    out.packet(|out| {
        if is_binary {
            out.push(0);
            out.resize(out.len() + (values.len() + 9) / 8, 0);
        }
        for value in &values {
            match is_binary {
                true => out.extend_from_slice(&value.to_le_bytes()),
                false => put_length_encoded_bytes(out, value.to_string().as_bytes()),
            }
        }
    });
    out.packet(|out| ResultEnd::default().encode(capabilities, out));
}
