//! The server's values of the system variables.

use junctor_model::value::Value;

use super::check::default_value;
use super::declare::{VariableId, find};
use super::session::put_deviation;

/// What the server knows of itself when it starts.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// VERSION().
    pub version: Box<str>,
    /// `version_comment`.
    pub version_comment: Box<str>,
    /// The TCP port of the MySQL protocol.
    pub port: u16,
    /// The machine's name.
    pub hostname: Box<str>,
    /// The path of the Unix socket; empty without one.
    pub socket: Box<str>,
    /// Where the data is.
    pub data_directory: Box<str>,
    /// The server's UUID as text.
    pub server_uuid: Box<str>,
    /// Most connections.
    pub max_connections: u64,
    /// Most bytes of a packet.
    pub max_allowed_packet: u64,
    /// Whether connections can be encrypted.
    pub has_tls: bool,
}

/// The server's values: what differs from the defaults of the table.
#[derive(Clone, Debug, Default)]
pub struct GlobalVariables {
    stored: Vec<(VariableId, Value)>,
}

impl GlobalVariables {
    /// The defaults of the table, with what the server knows of itself.
    pub fn new(facts: &ServerFacts) -> GlobalVariables {
        let mut globals = GlobalVariables::default();
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        globals.put_named("version", text(&facts.version));
        globals.put_named("version_comment", text(&facts.version_comment));
        globals.put_named("port", Value::UInt(u64::from(facts.port)));
        globals.put_named("hostname", text(&facts.hostname));
        globals.put_named("socket", text(&facts.socket));
        globals.put_named("datadir", text(&facts.data_directory));
        globals.put_named("server_uuid", text(&facts.server_uuid));
        globals.put_named("max_connections", Value::UInt(facts.max_connections));
        globals.put_named("max_allowed_packet", Value::UInt(facts.max_allowed_packet));
        if facts.has_tls {
            globals.put_named("have_ssl", text("YES"));
            globals.put_named("have_openssl", text("YES"));
        }
        globals
    }

    /// The value of the variable of that name, or NULL if there is none.
    pub fn value_named(&self, name: &str) -> Value {
        find(name).map_or(Value::Null, |id| self.value(id))
    }

    pub(super) fn put_named(&mut self, name: &str, value: Value) {
        if let Some(id) = find(name) {
            self.put(id, value);
        }
    }

    pub(super) fn value(&self, id: VariableId) -> Value {
        match self.stored.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(position) => self.stored[position].1.clone(),
            Err(_) => default_value(id.variable()),
        }
    }

    pub(super) fn put(&mut self, id: VariableId, value: Value) {
        put_deviation(&mut self.stored, id, value);
    }

    pub(super) fn deviations(&self) -> impl Iterator<Item = (VariableId, &Value)> {
        self.stored.iter().map(|(id, value)| (*id, value))
    }
}
