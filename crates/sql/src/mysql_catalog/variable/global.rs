//! Global values of the system variables.

use std::sync::Arc;

use junctor_model::stored_settings::PersistedSettings;
use junctor_model::value::Value;

use super::check::default_value;
use super::declare::{VariableId, find};
use super::session::put_deviation;

/// Properties of the server that are known at its start and that variables report.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// Result of VERSION().
    pub version: Box<str>,
    /// Value of `version_comment`.
    pub version_comment: Box<str>,
    /// TCP port of the MySQL protocol.
    pub port: u16,
    /// Host name of the machine.
    pub hostname: Box<str>,
    /// Path of the Unix socket; empty without one.
    pub socket: Box<str>,
    /// Path of the data directory.
    pub data_directory: Box<str>,
    /// Where `junctor backup` keeps backups by default; empty without a default.
    pub backup_directory: Box<str>,
    /// UUID of the server as text.
    pub server_uuid: Box<str>,
    /// Maximum number of connections.
    pub max_connections: u64,
    /// Maximum bytes of a MySQL packet.
    pub max_allowed_packet: u64,
    /// Whether clients may use TLS.
    pub has_tls: bool,
}

/// The global values. Only those that differ from the defaults of [`TABLE`](super::TABLE) are stored.
#[derive(Clone, Debug, Default)]
pub struct GlobalVariables {
    stored: Vec<(VariableId, Value)>,
    /// The values of SET PERSIST.
    pub(super) persisted: Arc<PersistedSettings>,
    /// `stored` at the start of the node.
    started: Arc<[(VariableId, Value)]>,
}

impl GlobalVariables {
    /// The defaults, except for the variables that report the server's properties.
    pub fn new(facts: &ServerFacts) -> GlobalVariables {
        let mut globals = GlobalVariables::default();
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        globals.put_named("version", text(&facts.version));
        globals.put_named("version_comment", text(&facts.version_comment));
        globals.put_named("port", Value::UInt(u64::from(facts.port)));
        globals.put_named("hostname", text(&facts.hostname));
        globals.put_named("socket", text(&facts.socket));
        globals.put_named("datadir", text(&facts.data_directory));
        globals.put_named("backup_data_dir", text(&facts.backup_directory));
        globals.put_named("server_uuid", text(&facts.server_uuid));
        globals.put_named("max_connections", Value::UInt(facts.max_connections));
        globals.put_named("max_allowed_packet", Value::UInt(facts.max_allowed_packet));
        if facts.has_tls {
            globals.put_named("have_ssl", text("YES"));
            globals.put_named("have_openssl", text("YES"));
        }
        globals
    }

    /// The value of a variable by name; NULL if the variable does not exist.
    pub fn value_named(&self, name: &str) -> Value {
        find(name).map_or(Value::Null, |id| self.value(id))
    }

    /// The values of SET PERSIST.
    pub fn persisted(&self) -> &PersistedSettings {
        &self.persisted
    }

    /// Replaces the values of SET PERSIST, which apply from the next start on.
    pub fn replace_persisted(&mut self, persisted: Arc<PersistedSettings>) {
        self.persisted = persisted;
    }

    /// Notes that the present values are those of the start.
    pub fn note_start(&mut self) {
        self.started = self.stored.clone().into();
    }

    /// The value of a variable at the start of the node, before those of SET PERSIST.
    pub(super) fn start_value(&self, id: VariableId) -> Value {
        value_of(&self.started, id)
    }

    pub(super) fn put_named(&mut self, name: &str, value: Value) {
        if let Some(id) = find(name) {
            self.put(id, value);
        }
    }

    pub(super) fn value(&self, id: VariableId) -> Value {
        value_of(&self.stored, id)
    }

    pub(super) fn put(&mut self, id: VariableId, value: Value) {
        put_deviation(&mut self.stored, id, value);
    }

    pub(super) fn deviations(&self) -> impl Iterator<Item = (VariableId, &Value)> {
        self.stored.iter().map(|(id, value)| (*id, value))
    }
}

fn value_of(stored: &[(VariableId, Value)], id: VariableId) -> Value {
    match stored.binary_search_by_key(&id, |(id, _)| *id) {
        Ok(position) => stored[position].1.clone(),
        Err(_) => default_value(id.variable()),
    }
}
