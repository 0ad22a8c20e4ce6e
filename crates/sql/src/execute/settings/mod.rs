//! The settings of the node's sql blocks. They determine the initial values of the system variables.

mod login;
mod sending;
mod spinning;
mod thread_pool;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use junctor_gateway::ClientSecurity;
use junctor_gateway::route::ReadRule;
use junctor_gateway::threads::{SendSettings, SpinChoice};

pub use thread_pool::ThreadPoolSettings;

use crate::access::{AccountUsage, LoginSettings};
use crate::execute::engine::Engine;
use crate::execute::memory::QueryResources;
use crate::mysql_catalog::show::ThreadFacts;
use crate::mysql_catalog::variable::{GlobalChange, GlobalVariables, ServerFacts, find, text_of};
use crate::statistics::StatisticsBook;
use junctor_model::access::AccessControl;
use junctor_model::value::Value;
use junctor_signals::cluster_status::ClusterStatus;
use junctor_signals::connection_limits::{ConnectionLimit, ConnectionLimits, GroupFigures};
use junctor_signals::end_transaction::CommitDurability;
use junctor_signals::journal::{Journal, LogKind};

/// The name of the system variable that refuses logins over connections without TLS.
const SECURE_TRANSPORT: &str = "require_secure_transport";

/// The variables that switch logs.
const LOG_VARIABLES: [&str; 4] = ["general_log", "slow_query_log", "audit_log", "log_output"];

/// The variables that limit connections.
const CONNECTION_LIMITS: [(&str, ConnectionLimit); 5] = [
    ("connect_timeout", ConnectionLimit::LoginSeconds),
    ("extra_max_connections", ConnectionLimit::ExtraSessions),
    ("max_user_connections", ConnectionLimit::UserSessions),
    ("max_address_connections", ConnectionLimit::AddressConnections),
    ("max_connect_errors", ConnectionLimit::AddressErrors),
];

/// The name of the system variable that determines how reads are routed.
pub(crate) const READ_ROUTING: &str = "read_routing";

/// The settings of a node's sql blocks.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Version of the server, which VERSION() returns.
    pub server_version: String,
    /// Value of `version_comment`.
    pub version_comment: String,
    /// Port number of the MySQL protocol.
    pub port: u16,
    /// Name of the machine.
    pub hostname: String,
    /// Path of the folder with the node's files.
    pub data_directory: String,
    /// Where `junctor backup` keeps backups by default; empty without a default.
    pub backup_directory: String,
    /// The folder in which statements may read and write files, with a slash at the end; `None` refuses all.
    pub secure_file_priv: Option<Arc<str>>,
    /// UUID of the server in text form.
    pub server_uuid: String,
    /// Maximum number of concurrent connections.
    pub max_connections: u32,
    /// Maximum number of concurrent transactions with writes or locks.
    pub transactions_max: u32,
    /// Number of thread groups, which is that of sql blocks.
    pub thread_groups: u16,
    /// Maximum length of one command in bytes.
    pub max_allowed_packet: u32,
    /// Number of AUTO_INCREMENT values that are reserved together.
    pub auto_increment_prefetch: u64,
    /// Number of partitions in each node group of a table whose definition gives none.
    pub partition_count_default: u16,
    /// Maximum bytes of memory for sorting one statement's result.
    pub sort_buffer_bytes_max: usize,
    /// The beginning of the paths of temporary files; `None` if queries may write none.
    pub temporary_files: Option<Arc<str>>,
    /// The folder of temporary files, as `tmpdir` shows it; empty without one.
    pub temporary_folder: String,
    /// Initial maximum of the memory of all queries in bytes (`temptable_max_ram`).
    pub query_memory_bytes_max: u64,
    /// The memory and the temporary space that queries use.
    pub query_resources: Arc<QueryResources>,
    /// Initial lock wait timeout of new sessions, in seconds.
    pub lock_wait_timeout_s: u32,
    /// Initial rule for the routing of reads.
    pub read_routing: ReadRule,
    /// Initial value of `commit_durability`.
    pub commit_durability: CommitDurability,
    /// Initial choice of how threads spin.
    pub spin: SpinChoice,
    /// Initial settings of how threads send.
    pub send: SendSettings,
    /// Time limit of a login, in seconds.
    pub connect_timeout_s: u32,
    /// Maximum age of a transaction in new sessions, in seconds; 0 means no limit.
    pub transaction_timeout_s: u32,
    /// Whether a lock wait timeout rolls back the whole transaction (`innodb_rollback_on_timeout`) instead of
    /// the statement.
    pub lock_wait_timeout_ends_transaction: bool,
    /// Maximum number of prepared statements of one sql block.
    pub prepared_statements_max: usize,
    /// Predicted duration in microseconds from which a query runs on a `work` thread.
    pub work_query_us_min: u32,
    /// The node's threads, for `junctor_info.threads`.
    pub threads: Vec<ThreadFacts>,
    /// Figures about the cluster.
    pub cluster: Arc<ClusterStatus>,
    /// TLS for clients; `None` without it.
    pub security: Option<Arc<dyn ClientSecurity>>,
    /// The files of TLS: authority, certificate and private key. Empty if they are not files.
    pub tls_files: [String; 3],
    /// The variable `require_secure_transport`, which the recv blocks read.
    pub secure_transport_required: Arc<AtomicBool>,
    /// The limits of connections, which the recv blocks obey.
    pub connection_limits: Arc<ConnectionLimits>,
    /// Takes what the logs record.
    pub journal: Arc<Journal>,
    /// Which logs are on at the start.
    pub logs_on: Vec<LogKind>,
    /// `log_error`, `general_log_file`, `slow_query_log_file` and `audit_log_file`, in this order.
    pub log_files: [String; 4],
    /// Slots of the thread pool, by sql block.
    pub group_figures: Vec<Arc<GroupFigures>>,
    /// System variables that the configuration names, with their values as text.
    pub variables: Vec<(String, String)>,
    /// Path of the Unix socket; empty without one.
    pub socket: String,
    /// Port for administrators; 0 without one.
    pub extra_port: u16,
    /// Sessions of the extra port, at most.
    pub extra_max_connections: u32,
    /// Sessions of one user, at most; 0 has no limit.
    pub max_user_connections: u32,
    /// Connections from one address, at most; 0 has no limit.
    pub max_address_connections: u32,
    /// Broken logins in a row after which an address is refused.
    pub max_connect_errors: u64,
    /// Networks whose connections begin with a header of the PROXY protocol.
    pub proxy_protocol_networks: String,
    /// The variables that concern logins, which the recv blocks read.
    pub login: Arc<LoginSettings>,
    /// How much of their resources accounts have used.
    pub usage: Arc<AccountUsage>,
    /// The statistics of the values in tables.
    pub statistics: Arc<StatisticsBook>,
    /// The accounts of a new server, with those of the configuration.
    pub access: Arc<AccessControl>,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings {
            server_version: "8.0.36-junctor".into(),
            version_comment: "Junctor".into(),
            port: 3306,
            hostname: "localhost".into(),
            data_directory: "junctor-data".into(),
            backup_directory: String::new(),
            secure_file_priv: None,
            server_uuid: "00000000-0000-0000-0000-000000000000".into(),
            max_connections: 16_384,
            transactions_max: 4096,
            thread_groups: 1,
            max_allowed_packet: 64 << 20,
            auto_increment_prefetch: 32,
            partition_count_default: 2,
            sort_buffer_bytes_max: 256 << 20,
            temporary_files: None,
            temporary_folder: String::new(),
            query_memory_bytes_max: 1 << 30,
            query_resources: Arc::default(),
            lock_wait_timeout_s: 50,
            read_routing: ReadRule::default(),
            commit_durability: CommitDurability::default(),
            spin: SpinChoice::default(),
            send: SendSettings::default(),
            connect_timeout_s: 10,
            transaction_timeout_s: 0,
            lock_wait_timeout_ends_transaction: false,
            prepared_statements_max: junctor_model::limit::PREPARED_STATEMENTS_MAX,
            work_query_us_min: 2000,
            threads: Vec::new(),
            cluster: Arc::default(),
            security: None,
            tls_files: Default::default(),
            secure_transport_required: Arc::default(),
            connection_limits: Arc::new(ConnectionLimits::new(16_384)),
            journal: Arc::default(),
            logs_on: Vec::new(),
            log_files: Default::default(),
            group_figures: vec![Arc::default()],
            variables: Vec::new(),
            socket: String::new(),
            extra_port: 0,
            extra_max_connections: 1,
            max_user_connections: 0,
            max_address_connections: 0,
            max_connect_errors: ConnectionLimits::ERRORS_MAX,
            proxy_protocol_networks: String::new(),
            login: Arc::default(),
            usage: Arc::default(),
            statistics: Arc::default(),
            access: Arc::default(),
        }
    }
}

impl ServerSettings {
    /// The initial values of the system variables.
    pub(crate) fn globals(&self) -> GlobalVariables {
        let facts = ServerFacts {
            version: self.server_version.as_str().into(),
            version_comment: self.version_comment.as_str().into(),
            port: self.port,
            hostname: self.hostname.as_str().into(),
            socket: self.socket.as_str().into(),
            data_directory: self.data_directory.as_str().into(),
            backup_directory: self.backup_directory.as_str().into(),
            server_uuid: self.server_uuid.as_str().into(),
            max_connections: u64::from(self.max_connections),
            max_allowed_packet: u64::from(self.max_allowed_packet),
            has_tls: self.security.is_some(),
        };
        let mut globals = GlobalVariables::new(&facts);
        let file = |file: usize| Value::Bytes(self.tls_files[file].clone().into());
        let log_file = |file: usize| Value::Bytes(self.log_files[file].clone().into());
        let seconds = |seconds: u32| Value::UInt(u64::from(seconds));
        let values = [
            ("innodb_lock_wait_timeout", seconds(self.lock_wait_timeout_s)),
            ("innodb_rollback_on_timeout", Value::Int(i64::from(self.lock_wait_timeout_ends_transaction))),
            ("connect_timeout", seconds(self.connect_timeout_s)),
            ("transaction_timeout_s", seconds(self.transaction_timeout_s)),
            ("commit_durability", Value::Bytes(self.commit_durability.name().into())),
            (
                "innodb_flush_log_at_trx_commit",
                Value::UInt(if self.commit_durability == CommitDurability::Disk { 1 } else { 2 }),
            ),
            (READ_ROUTING, Value::Bytes(self.read_routing.name().into())),
            (SECURE_TRANSPORT, Value::Int(i64::from(self.secure_transport_required.load(Ordering::Relaxed)))),
            ("thread_pool_max_threads", Value::UInt(u64::from(self.transactions_max))),
            (
                "secure_file_priv",
                self.secure_file_priv.as_deref().map_or(Value::Null, |folder| Value::Bytes(folder.into())),
            ),
            ("thread_pool_size", Value::UInt(u64::from(self.thread_groups))),
            ("tmpdir", Value::Bytes(self.temporary_folder.clone().into())),
            ("temptable_max_ram", Value::UInt(self.query_memory_bytes_max)),
            ("tmp_table_size", Value::UInt(self.sort_buffer_bytes_max as u64)),
            ("general_log", self.is_log_on(LogKind::General)),
            ("slow_query_log", self.is_log_on(LogKind::Slow)),
            ("audit_log", self.is_log_on(LogKind::Audit)),
            ("log_error", log_file(0)),
            ("general_log_file", log_file(1)),
            ("slow_query_log_file", log_file(2)),
            ("audit_log_file", log_file(3)),
            ("extra_port", Value::UInt(u64::from(self.extra_port))),
            ("extra_max_connections", Value::UInt(u64::from(self.extra_max_connections))),
            ("max_user_connections", Value::UInt(u64::from(self.max_user_connections))),
            ("max_address_connections", Value::UInt(u64::from(self.max_address_connections))),
            ("max_connect_errors", Value::UInt(self.max_connect_errors)),
            ("proxy_protocol_networks", Value::Bytes(self.proxy_protocol_networks.clone().into())),
            ("ssl_ca", file(0)),
            ("ssl_cert", file(1)),
            ("ssl_key", file(2)),
        ];
        for (name, value) in values.into_iter().chain(spinning::values(&self.spin)).chain(sending::values(&self.send)) {
            if let Some(id) = find(name) {
                globals.apply(&GlobalChange { id, value });
            }
        }
        for (name, text) in &self.variables {
            // Each was checked when the configuration was read.
            let _ = globals.set_at_start(name, text);
        }
        globals.note_start();
        globals
    }
}

impl ServerSettings {
    fn is_log_on(&self, kind: LogKind) -> Value {
        Value::Int(i64::from(self.logs_on.contains(&kind)))
    }
}

impl Engine {
    /// Takes what the logs record.
    #[inline]
    pub fn journal(&self) -> &Journal {
        &self.settings.journal
    }

    /// Switches the logs as the variables say.
    pub(crate) fn apply_logs(&self) {
        let is_on = |name| matches!(self.globals.value_named(name), Value::Int(1) | Value::UInt(1));
        let outputs = text_of(&self.globals.value_named("log_output"));
        let has = |output: &str| outputs.split(',').any(|word| word == output);
        let has_output = !has("NONE");
        let journal = &self.settings.journal;
        journal.set_outputs(has("FILE"), has("TABLE"));
        journal.switch(LogKind::General, has_output && is_on("general_log"));
        journal.switch(LogKind::Slow, has_output && is_on("slow_query_log"));
        journal.switch(LogKind::Audit, is_on("audit_log"));
    }

    /// Lets the recv blocks know the variables of connections that `set` contains.
    pub(crate) fn apply_connection_settings<'a>(&self, set: impl Iterator<Item = &'a str>) {
        for name in set {
            if LOG_VARIABLES.contains(&name) {
                self.apply_logs();
            }
            if name == SECURE_TRANSPORT {
                let is_required = matches!(self.globals.value_named(name), Value::Int(1) | Value::UInt(1));
                self.settings.secure_transport_required.store(is_required, Ordering::Relaxed);
            }
            if let Some((_, limit)) = CONNECTION_LIMITS.iter().find(|(variable, _)| *variable == name)
                && let Value::UInt(value) = self.globals.value_named(name)
            {
                self.settings.connection_limits.set(*limit, value);
            }
        }
    }

    /// Counts a session that the server ends because of its client.
    pub fn count_aborted_client(&self) {
        self.settings.connection_limits.counts().aborted_clients.fetch_add(1, Ordering::Relaxed);
    }

    /// Where the thread group of an sql block publishes its slots.
    pub fn group_figures(&self, instance: u16) -> Arc<GroupFigures> {
        self.settings.group_figures.get(usize::from(instance)).cloned().unwrap_or_default()
    }

    /// Counts of connections and of the thread pool for SHOW STATUS.
    pub(crate) fn connection_status(&self) -> [(&'static str, u64); 13] {
        let counts = self.settings.connection_limits.counts();
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let (sessions, extra) = self.settings.connection_limits.sessions();
        let groups = self.settings.group_figures.iter().map(|figures| figures.read());
        let (slots, in_use) = groups.fold((0, 0), |(slots, used), group| (slots + group.0, used + group.1));
        [
            ("Aborted_clients", read(&counts.aborted_clients)),
            ("Aborted_connects", read(&counts.aborted)),
            ("Connection_control_delay_generated", self.settings.usage.delays()),
            ("Connection_errors_address", read(&counts.refused_addresses)),
            ("Connection_errors_displaced", read(&counts.displaced)),
            ("Connection_errors_host", read(&counts.refused_hosts)),
            ("Connection_errors_max_connections", read(&counts.refused_sessions)),
            ("Locked_connects", read(&counts.locked)),
            ("Max_used_connections", read(&counts.sessions_used_max)),
            ("Threads_connected", sessions + extra),
            // The session that asks runs at least.
            ("Threads_running", in_use.max(1)),
            ("Threadpool_idle_threads", slots.saturating_sub(in_use)),
            ("Threadpool_threads", slots),
        ]
    }
}
