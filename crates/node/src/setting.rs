//! Every setting of a node in one table, which is long because each has its explanation beside it.
//! A setting of NDB keeps NDB's name; the others are snake_case with the unit last.
//! `docs/generated/settings.md` is printed from this table.

use junctor_storage::log::SegmentSize;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use junctor_cluster::CheckpointSettings;
use junctor_cluster::member::{MemberNode, Roles};
use junctor_front::Networks;
use junctor_gateway::route::ReadRule;
use junctor_kernel::{FileBackend, SendAssistance, SendSettings, SpinChoice, SpinMethod};
use junctor_signals::end_transaction::CommitDurability;
use junctor_signals::journal::LogKind;
use junctor_tls::client_tls::CertificateFiles;
use junctor_transaction::log::SEGMENTS_MAX_DEFAULT;

use crate::cluster_config::{ClusterConfig, is_address, parse_node};

/// The configuration of a node, with checked values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Whether the node opens ports. An embedded node may open none, so this is no setting of the file.
    pub listens: bool,
    /// The address of all listeners.
    pub listen_address: IpAddr,
    /// The port of the MySQL protocol; 0 takes a free one.
    pub port: u16,
    /// The port of the native protocol; 0 takes a free one, `None` opens none.
    pub native_port: Option<u16>,
    /// `ThreadConfig`; `None` chooses the placement by the number of CPUs.
    pub thread_config: Option<String>,
    /// Maximum number of CPUs that the automatic placement uses; `None` uses all.
    pub cpu_count_max: Option<u32>,
    /// Whether threads are bound to CPUs.
    pub cpu_binding: bool,
    /// Memory for data in bytes; `None` takes 70 per cent of what the machine or its cgroup allows.
    pub total_memory_bytes: Option<u64>,
    /// Maximum number of client connections.
    pub max_connections: u32,
    /// The version in the greeting and in VERSION().
    pub server_version: String,
    /// Users in addition to root: name and password.
    pub users: Vec<(String, String)>,
    /// The password of root@localhost on a new server; `None` leaves it without one.
    pub root_password: Option<String>,
    /// Whether clients of the Unix socket have all rights without a password, until FLUSH PRIVILEGES.
    pub skips_grants: bool,
    /// Whether a supervisor starts the process again when it ends with the status for a restart.
    pub is_supervised: bool,
    /// Whether clients may use TLS.
    pub has_tls: bool,
    /// Files of certificates; without them the node makes its own.
    pub tls_files: CertificateFiles,
    /// Whether clients must use TLS.
    pub secure_transport_required: bool,
    /// Path of the Unix socket for MySQL clients. `None` takes `mysql.sock` in the folder of a durable node;
    /// an empty text opens none.
    pub socket: Option<String>,
    /// The port of `/metrics`, `/health/live` and `/health/ready`; `None` opens none, 0 takes a free one.
    pub http_port: Option<u16>,
    /// The address of this port.
    pub http_address: IpAddr,
    /// System variables that have no setting of their own, with their values as text. A configuration file
    /// may name any that SET GLOBAL can change.
    pub variables: Vec<(String, String)>,
    /// Logs that are on at the start.
    pub logs_on: Vec<LogKind>,
    /// `log_error`, `general_log_file`, `slow_query_log_file` and `audit_log_file`, in this order.
    pub log_files: [Option<String>; 4],
    /// Whether error log and audit log have a JSON object in each line.
    pub has_json_logs: bool,
    /// The port for administrators; 0 opens none.
    pub extra_port: u16,
    /// Maximum number of connections of the extra port.
    pub extra_max_connections: u32,
    /// Maximum number of connections of one user; 0 has no limit.
    pub max_user_connections: u32,
    /// Maximum number of connections from one address; 0 has no limit.
    pub max_address_connections: u32,
    /// Broken logins in a row after which an address is refused.
    pub max_connect_errors: u64,
    /// Maximum number of connections that have not logged in.
    pub max_pending_logins: u32,
    /// Networks whose connections begin with a header of the PROXY protocol.
    pub proxy_protocol_networks: String,
    /// The folder of the node's files, unless `file_system_path` names one.
    pub data_directory: String,
    /// `FileSystemPath`: the folder of the node's files; `None` takes `data_directory`.
    pub file_system_path: Option<String>,
    /// The folder to which `log` in the node's folder is a link; `None` changes nothing.
    pub log_directory: Option<String>,
    /// The folder to which `checkpoint` in the node's folder is a link; `None` changes nothing.
    pub checkpoint_directory: Option<String>,
    /// `BackupDataDir`: where `junctor backup` keeps backups if its command line names no store.
    pub backup_directory: Option<String>,
    /// The folder in which statements may read and write files; `None` refuses all.
    pub secure_file_priv: Option<String>,
    /// The folder of temporary files; `NULL` for none. Without it, the folder `tmp` of the node's files or,
    /// in memory only, the folder of the system.
    pub temporary_directory: Option<String>,
    /// The folder of temporary files and the beginning of their paths; `None` if queries may write none. The
    /// start of a node finds it.
    pub temporary_files: Option<(String, String)>,
    /// How files are read and written.
    pub file_backend: FileBackend,
    /// Whether data survives a stop. The default is that of a node inside a program; `junctor serve` sets it
    /// unless it is started with `--in-memory`.
    pub is_durable: bool,
    /// Size of the log's files. A data directory keeps the size with which it was created.
    pub log_segment_size: SegmentSize,
    /// Maximum number of the log's files.
    pub log_segments_max: u64,
    /// Maximum time that a write waits for space in the log, in seconds.
    pub redo_over_commit_limit_s: u32,
    /// When commits are acknowledged, for new sessions.
    pub commit_durability: CommitDurability,
    /// Maximum time between two syncs of commits that no client awaits, in milliseconds.
    pub time_between_global_checkpoints_ms: u64,
    /// When checkpoints begin, and how fast they write.
    pub checkpoints: CheckpointSettings,
    /// Maximum length of a command in bytes.
    pub max_allowed_packet_bytes: u32,
    /// Maximum number of concurrent transactions with writes or locks.
    pub transactions_max: u32,
    /// Partitions of a table whose definition names no number.
    pub partitions_per_node: u16,
    /// Predicted duration in microseconds from which a query runs on a `work` thread.
    pub work_query_us_min: u32,
    /// Maximum wait for a row lock, in seconds.
    pub lock_wait_timeout_s: u32,
    /// Maximum duration of a login, in seconds.
    pub connect_timeout_s: u32,
    /// Maximum age of an open transaction, in seconds; 0 is unlimited.
    pub transaction_timeout_s: u32,
    /// Whether the timeout of a row lock rolls back the whole transaction, not only the statement.
    pub lock_wait_timeout_ends_transaction: bool,
    /// AUTO_INCREMENT numbers that a thread reserves at a time.
    pub auto_increment_prefetch: u32,
    /// Maximum memory for sorting the result of one statement, in bytes.
    pub sort_memory_bytes_max: u64,
    /// Where reads run.
    pub read_routing: ReadRule,
    /// Spinning of idle threads.
    pub spin: SpinChoice,
    /// The threads that write output to sockets, and when.
    pub send: SendSettings,
    /// The node's place in a cluster; the default for a node alone.
    pub cluster: ClusterConfig,
}

impl Default for NodeConfig {
    fn default() -> NodeConfig {
        NodeConfig {
            listens: true,
            listen_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 3306,
            native_port: None,
            thread_config: None,
            cpu_count_max: None,
            cpu_binding: true,
            total_memory_bytes: None,
            max_connections: 16_384,
            server_version: "8.0.36-junctor".into(),
            users: Vec::new(),
            root_password: None,
            skips_grants: false,
            is_supervised: false,
            has_tls: true,
            tls_files: CertificateFiles::default(),
            secure_transport_required: false,
            socket: None,
            http_port: None,
            http_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            variables: Vec::new(),
            logs_on: Vec::new(),
            log_files: Default::default(),
            has_json_logs: false,
            extra_port: 0,
            extra_max_connections: 1,
            max_user_connections: 0,
            max_address_connections: 0,
            max_connect_errors: 100,
            max_pending_logins: 1024,
            proxy_protocol_networks: String::new(),
            data_directory: "junctor-data".into(),
            file_system_path: None,
            log_directory: None,
            checkpoint_directory: None,
            backup_directory: None,
            secure_file_priv: None,
            temporary_directory: None,
            temporary_files: None,
            file_backend: FileBackend::default(),
            is_durable: false,
            log_segment_size: SegmentSize::default(),
            log_segments_max: SEGMENTS_MAX_DEFAULT,
            redo_over_commit_limit_s: 20,
            commit_durability: CommitDurability::Disk,
            time_between_global_checkpoints_ms: 2000,
            checkpoints: CheckpointSettings::default(),
            max_allowed_packet_bytes: 64 << 20,
            transactions_max: 4096,
            partitions_per_node: 2,
            work_query_us_min: 2000,
            lock_wait_timeout_s: 50,
            connect_timeout_s: 10,
            transaction_timeout_s: 0,
            lock_wait_timeout_ends_transaction: false,
            auto_increment_prefetch: 32,
            sort_memory_bytes_max: 256 << 20,
            read_routing: ReadRule::default(),
            spin: SpinChoice::default(),
            send: SendSettings::default(),
            cluster: ClusterConfig::default(),
        }
    }
}

/// Maximum length of the path of a Unix socket in bytes, which is that of Linux.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

impl NodeConfig {
    /// The path of the Unix socket; `None` if the node opens none.
    pub fn socket_path(&self) -> Option<PathBuf> {
        if !self.listens {
            return None;
        }
        match &self.socket {
            Some(path) if path.is_empty() => None,
            Some(path) => Some(absolute(Path::new(path))),
            None if self.is_durable => Some(absolute(&Path::new(self.data_folder()).join("mysql.sock"))),
            None => None,
        }
    }
}

impl NodeConfig {
    fn switch_log(&mut self, kind: LogKind, is_on: bool) {
        self.logs_on.retain(|on| *on != kind);
        if is_on {
            self.logs_on.push(kind);
        }
    }

    /// The paths of the logs, in the order of [`NodeConfig::log_files`]. A log without one goes to standard
    /// error.
    pub fn log_paths(&self) -> [Option<PathBuf>; 4] {
        let defaults = [None, Some("general.log"), Some("slow.log"), Some("audit.log")];
        let mut paths = [None, None, None, None];
        for ((path, named), default) in paths.iter_mut().zip(&self.log_files).zip(defaults) {
            *path = match (named, default) {
                (Some(named), _) => Some(absolute(Path::new(named))),
                (None, Some(default)) if self.is_durable => {
                    Some(absolute(&Path::new(self.data_folder()).join(default)))
                }
                (None, _) => None,
            };
        }
        paths
    }
}

/// The path in a form that is meaningful in any working directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A value from a file or the command line.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// A number.
    Integer(i64),
    /// Text. Numbers and sizes may also be given as text.
    Text(String),
    /// A truth value.
    Boolean(bool),
    /// A list of texts.
    List(Vec<String>),
}

/// The type and range of a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// Text; the string describes it for users. `Setting::check_text` has the rules.
    Text(&'static str),
    /// `true` or `false`.
    Boolean,
    /// A whole number, with minimum and maximum.
    Count(u64, u64),
    /// A size in bytes, with minimum and maximum. Users may write the units K, M, G and T.
    Bytes(u64, u64),
    /// A list of `NAME:PASSWORD`.
    Users,
    /// A list of `ID ROLES HOST:PORT [DOMAIN]`.
    Nodes,
    /// A setting of NDB without an effect yet, with the reason. Every value is refused.
    Reserved(&'static str),
}

/// One setting.
pub struct Setting {
    /// The name in the file.
    pub name: &'static str,
    /// Its values.
    pub kind: SettingKind,
    /// The default, as users read it.
    pub default: &'static str,
    /// Its meaning, as users read it.
    pub meaning: &'static str,
    set: fn(&mut NodeConfig, Checked),
}

/// A value that passed its setting's check.
enum Checked {
    Text(String),
    Boolean(bool),
    Number(u64),
    Users(Vec<(String, String)>),
    Nodes(Vec<MemberNode>),
}

macro_rules! setting {
    ($name:literal, $kind:expr, $default:literal, $meaning:literal, $variant:ident($value:ident) => |$config:ident| $body:expr) => {
        Setting {
            name: $name,
            kind: $kind,
            default: $default,
            meaning: $meaning,
            set: |$config, checked| {
                if let Checked::$variant($value) = checked {
                    $body
                }
            },
        }
    };
}

macro_rules! reserved {
    ($name:literal, $reason:expr, $meaning:literal) => {
        Setting {
            name: $name,
            kind: SettingKind::Reserved($reason),
            default: "none",
            meaning: $meaning,
            set: |_, _| (),
        }
    };
}

const GIB: u64 = 1 << 30;

/// Why settings of disk columns are refused.
const NO_DISK_COLUMNS: &str = "columns on disk are not supported yet";

/// The table.
pub static SETTINGS: &[Setting] = &[
    setting!("listen_address", SettingKind::Text("an IP address"), "127.0.0.1", "The address at which the node listens.",
        Text(value) => |config| if let Ok(address) = value.parse() { config.listen_address = address }),
    setting!("port", SettingKind::Count(0, 65_535), "3306", "The port of the MySQL protocol; 0 takes a free one.",
        Number(value) => |config| config.port = value as u16),
    setting!("native_port", SettingKind::Count(0, 65_535), "none",
        "The port of the native protocol, for clients in Rust; 0 takes a free one. Without it the protocol is off.",
        Number(value) => |config| config.native_port = Some(value as u16)),
    setting!("ThreadConfig", SettingKind::Text("entries such as ldm={count=2,cpubind=0-1}"), "automatic",
        "The threads and their modules, in NDB's grammar with the module sql added.",
        Text(value) => |config| config.thread_config = Some(value)),
    setting!("NumCPUs", SettingKind::Count(0, 1024), "0", "Maximum number of CPUs that the automatic placement uses; 0 uses all.",
        Number(value) => |config| config.cpu_count_max = (value > 0).then_some(value as u32)),
    setting!("cpu_binding", SettingKind::Boolean, "true", "Whether threads are bound to their CPUs.",
        Boolean(value) => |config| config.cpu_binding = value),
    setting!("TotalMemory", SettingKind::Bytes(64 << 20, 1024 * GIB), "70 % of the memory allowed",
        "Memory for rows and indexes. The address space is reserved at start; pages are touched when used.",
        Number(value) => |config| config.total_memory_bytes = Some(value)),
    setting!("max_connections", SettingKind::Count(1, 100_000), "16384",
        "Maximum number of client connections; lowered with a notice if the limit of open files is lower.",
        Number(value) => |config| config.max_connections = value as u32),
    setting!("server_version", SettingKind::Text("text of 1 to 60 characters"), "8.0.36-junctor",
        "The version that the server reports. Clients choose their statements by it.",
        Text(value) => |config| config.server_version = value),
    setting!("users", SettingKind::Users, "[]",
        "Users in addition to root, as NAME:PASSWORD. User root has no password and may log in over loopback only.",
        Users(value) => |config| config.users = value),
    setting!("tls", SettingKind::Boolean, "true",
        "Whether clients of the MySQL protocol may use TLS. Without ssl_cert and ssl_key, the node makes certificates in DataDir/tls at its first start.",
        Boolean(value) => |config| config.has_tls = value),
    setting!("require_secure_transport", SettingKind::Boolean, "false", "Whether logins over connections without TLS are refused, with error 3159.",
        Boolean(value) => |config| config.secure_transport_required = value),
    setting!("socket", SettingKind::Text("a path, or empty for none"), "mysql.sock in DataDir",
        "The Unix socket for MySQL clients. Everybody on the machine who may enter its folder can connect. A node in memory only has none by default.",
        Text(value) => |config| config.socket = Some(value)),
    setting!("http_port", SettingKind::Count(0, 65_535), "none",
        "The port of /metrics (for Prometheus), /health/live and /health/ready over HTTP; 0 takes a free one. It has no login.",
        Number(value) => |config| config.http_port = Some(value as u16)),
    setting!("http_address", SettingKind::Text("an IP address"), "127.0.0.1", "The address of http_port.",
        Text(value) => |config| if let Ok(address) = value.parse() { config.http_address = address }),
    setting!("general_log", SettingKind::Boolean, "false", "Whether every command is written to general_log_file. The variable changes it at run time, as in the next two.",
        Boolean(value) => |config| config.switch_log(LogKind::General, value)),
    setting!("slow_query_log", SettingKind::Boolean, "false", "Whether statements that take long_query_time or more are written to slow_query_log_file.",
        Boolean(value) => |config| config.switch_log(LogKind::Slow, value)),
    setting!("audit_log", SettingKind::Boolean, "false",
        "Whether connections, and changes of schema, rights and settings are written to audit_log_file.",
        Boolean(value) => |config| config.switch_log(LogKind::Audit, value)),
    setting!("log_error", SettingKind::Text("a path"), "standard error", "The file of the error log.",
        Text(value) => |config| config.log_files[0] = Some(value)),
    setting!("general_log_file", SettingKind::Text("a path"), "general.log in DataDir", "The file of the general log. A node in memory only writes it to standard error by default, as the next two.",
        Text(value) => |config| config.log_files[1] = Some(value)),
    setting!("slow_query_log_file", SettingKind::Text("a path"), "slow.log in DataDir", "The file of the slow query log.",
        Text(value) => |config| config.log_files[2] = Some(value)),
    setting!("audit_log_file", SettingKind::Text("a path"), "audit.log in DataDir", "The file of the audit log.",
        Text(value) => |config| config.log_files[3] = Some(value)),
    setting!("log_format", SettingKind::Text("text or json"), "text", "The form of the lines of error log and audit log.",
        Text(value) => |config| config.has_json_logs = value == "json"),
    setting!("extra_port", SettingKind::Count(0, 65_535), "0",
        "A second port of the MySQL protocol for administrators; 0 opens none. Its connections do not count in max_connections, and pass the queues of the thread pool.",
        Number(value) => |config| config.extra_port = value as u16),
    setting!("extra_max_connections", SettingKind::Count(1, 100_000), "1", "Maximum number of connections of extra_port.",
        Number(value) => |config| config.extra_max_connections = value as u32),
    setting!("max_user_connections", SettingKind::Count(0, 4_294_967_295), "0", "Maximum number of connections of one user, with error 1203; 0 has no limit.",
        Number(value) => |config| config.max_user_connections = value as u32),
    setting!("max_address_connections", SettingKind::Count(0, 100_000), "0", "Maximum number of connections from one address, with error 1040; 0 has no limit.",
        Number(value) => |config| config.max_address_connections = value as u32),
    setting!("max_connect_errors", SettingKind::Count(1, 4_294_967_295), "100",
        "Broken logins in a row after which an address is refused with error 1129, until FLUSH HOSTS. The loopback is never refused.",
        Number(value) => |config| config.max_connect_errors = value),
    setting!("max_pending_logins", SettingKind::Count(16, 100_000), "1024",
        "Maximum number of connections that have not logged in. One more takes the place of the oldest of them.",
        Number(value) => |config| config.max_pending_logins = value as u32),
    setting!("proxy_protocol_networks", SettingKind::Text("networks such as 10.0.0.0/8,fd00::/8, or *"), "none",
        "Networks of balancers, with commas between them. Connections from them begin with a header of HAProxy's PROXY protocol, version 1 or 2, which names the client. `localhost` stands for the Unix socket.",
        Text(value) => |config| config.proxy_protocol_networks = value),
    setting!("ssl_ca", SettingKind::Text("a path"), "DataDir/tls/ca.pem", "The authorities of the certificates that clients may show, in PEM.",
        Text(value) => |config| config.tls_files.authority = Some(value.into())),
    setting!("ssl_cert", SettingKind::Text("a path"), "DataDir/tls/server-cert.pem", "The certificate of the server, in PEM, with those that lead to its authority.",
        Text(value) => |config| config.tls_files.certificate = Some(value.into())),
    setting!("ssl_key", SettingKind::Text("a path"), "DataDir/tls/server-key.pem", "The private key of ssl_cert, in PEM.",
        Text(value) => |config| config.tls_files.key = Some(value.into())),
    setting!("DataDir", SettingKind::Text("a path"), "junctor in the user's state directory",
        "The folder of the node's files. The state directory is $XDG_STATE_HOME, or ~/.local/state.",
        Text(value) => |config| config.data_directory = value),
    setting!("Diskless", SettingKind::Boolean, "false", "Whether data is kept in memory only. A stop loses it.",
        Boolean(value) => |config| config.is_durable = !value),
    setting!("FileSystemPath", SettingKind::Text("a path"), "DataDir", "The folder of the node's files, by NDB's name. It overrides DataDir.",
        Text(value) => |config| config.file_system_path = Some(value)),
    reserved!(
        "FileSystemPathDD",
        NO_DISK_COLUMNS,
        "Reserved for the folder of the data files and undo files of columns on disk."
    ),
    reserved!(
        "FileSystemPathDataFiles",
        NO_DISK_COLUMNS,
        "Reserved for the folder of the data files of columns on disk."
    ),
    reserved!(
        "FileSystemPathUndoFiles",
        NO_DISK_COLUMNS,
        "Reserved for the folder of the undo files of columns on disk."
    ),
    setting!("log_directory", SettingKind::Text("a path"), "log in DataDir",
        "The folder of the log, to which DataDir gets a link. On a device of its own, syncs of the log do not wait for checkpoints.",
        Text(value) => |config| config.log_directory = Some(value)),
    setting!("checkpoint_directory", SettingKind::Text("a path"), "checkpoint in DataDir", "The folder of the checkpoints, to which DataDir gets a link.",
        Text(value) => |config| config.checkpoint_directory = Some(value)),
    setting!("BackupDataDir", SettingKind::Text("a path, or s3://BUCKET/PREFIX"), "none",
        "Where `junctor backup` keeps backups if its command line names no store. A folder on a device of its own survives the loss of the others.",
        Text(value) => |config| config.backup_directory = Some(value)),
    setting!("secure_file_priv", SettingKind::Text("a path, or NULL"), "NULL",
        "The folder in which INTO OUTFILE, INTO DUMPFILE, LOAD DATA INFILE and LOAD_FILE find the files of the server. NULL refuses them. It must be apart from DataDir.",
        Text(value) => |config| config.secure_file_priv = Some(value)),
    setting!("tmpdir", SettingKind::Text("a path, or NULL"), "tmp in DataDir",
        "The folder of the temporary files of queries whose rows exceed their memory. A node in memory takes that of the system. With NULL such queries fail with error 1041.",
        Text(value) => |config| config.temporary_directory = Some(value)),
    setting!("commit_durability", SettingKind::Text("disk or memory"), "disk",
        "When commits of new sessions are acknowledged: once they are on disk, or once they are in memory. A crash can lose commits of the second kind that are younger than TimeBetweenGlobalCheckpoints.",
        Text(value) => |config| if let Some(one) = CommitDurability::named(&value) { config.commit_durability = one }),
    setting!("TimeBetweenGlobalCheckpoints", SettingKind::Count(20, 32_000), "2000",
        "Maximum time in milliseconds until commits that no client awaits are synced to disk.",
        Number(value) => |config| config.time_between_global_checkpoints_ms = value),
    setting!("max_allowed_packet_bytes", SettingKind::Bytes(1024, GIB), "64M", "Maximum length of a command.",
        Number(value) => |config| config.max_allowed_packet_bytes = value as u32),
    setting!("MaxNoOfConcurrentTransactions", SettingKind::Count(16, 32_768), "4096",
        "Maximum number of concurrent transactions with writes or locks; further statements wait for a slot of the thread pool.",
        Number(value) => |config| config.transactions_max = value as u32),
    setting!("PartitionsPerNode", SettingKind::Count(1, 256), "2", "Partitions of a table whose definition names no number, in each node group.",
        Number(value) => |config| config.partitions_per_node = value as u16),
    setting!("work_query_us_min", SettingKind::Count(0, 1_000_000_000), "2000",
        "Predicted duration in microseconds from which a query of several tables, or with groups, runs on a thread of the kind work while many requests arrive (more than two a millisecond). With 0 every such query does, always. A node without such threads (ThreadConfig) ignores it.",
        Number(value) => |config| config.work_query_us_min = value as u32),
    setting!("lock_wait_timeout_s", SettingKind::Count(1, 1_073_741_824), "50",
        "Maximum wait for a row lock, in seconds (innodb_lock_wait_timeout of new sessions).",
        Number(value) => |config| config.lock_wait_timeout_s = value as u32),
    setting!("connect_timeout_s", SettingKind::Count(1, 31_536_000), "10", "Maximum duration of a login, in seconds.",
        Number(value) => |config| config.connect_timeout_s = value as u32),
    setting!("transaction_timeout_s", SettingKind::Count(0, 31_536_000), "0",
        "Maximum age of an open transaction, in seconds, for new sessions; 0 is unlimited. An older one is rolled back and its connection closed.",
        Number(value) => |config| config.transaction_timeout_s = value as u32),
    setting!("lock_wait_timeout_ends_transaction", SettingKind::Boolean, "false",
        "Whether the timeout of a row lock rolls back the whole transaction (innodb_rollback_on_timeout).",
        Boolean(value) => |config| config.lock_wait_timeout_ends_transaction = value),
    setting!("auto_increment_prefetch", SettingKind::Count(1, 65_536), "32",
        "AUTO_INCREMENT numbers that a thread reserves at a time.",
        Number(value) => |config| config.auto_increment_prefetch = value as u32),
    setting!("sort_memory_bytes_max", SettingKind::Bytes(32 << 10, 64 * GIB), "256M",
        "Maximum memory of one statement for sorting its result without joins and groups (error 1038 beyond it), and for what cannot leave memory in other queries (error 1041). It is also the initial value of tmp_table_size.",
        Number(value) => |config| config.sort_memory_bytes_max = value),
    setting!("read_routing", SettingKind::Text("adaptive, local, owner or weights"), "adaptive",
        "Where reads run: where the predicted cost is lowest, in the session's thread, in the owner ldm, or by weights of the threads.",
        Text(value) => |config| if let Some(rule) = ReadRule::named(&value) { config.read_routing = rule }),
    setting!("FileIo", SettingKind::Text("auto, plain or io_uring"), "auto",
        "System calls for files: io_uring where it pays and works (auto), none of it (plain), or io_uring for everything if it works.",
        Text(value) => |config| if let Some(backend) = FileBackend::named(&value) { config.file_backend = backend }),
    setting!("TimeBetweenLocalCheckpoints", SettingKind::Count(0, 31), "24",
        "A checkpoint begins when the log has grown by 4 bytes times two to this power: 24 is 64 MiB. It begins earlier when the log is filled to 25 per cent.",
        Number(value) => |config| config.checkpoints.growth_log2_words = value as u32),
    setting!("MinDiskWriteSpeed", SettingKind::Bytes(1 << 20, 1024 * GIB), "10M",
        "Minimum speed of checkpoints in bytes per second.",
        Number(value) => |config| config.checkpoints.bytes_per_second_min = value),
    setting!("MaxDiskWriteSpeed", SettingKind::Bytes(1 << 20, 1024 * GIB), "200M",
        "Maximum speed of checkpoints in bytes per second, as long as the log is filled to less than 60 per cent.",
        Number(value) => |config| config.checkpoints.bytes_per_second_max = value),
    setting!("MaxDiskWriteSpeedOwnRestart", SettingKind::Bytes(1 << 20, 1024 * GIB), "1G",
        "Maximum speed of checkpoints in bytes per second while the log is filled to 60 per cent or more.",
        Number(value) => |config| config.checkpoints.bytes_per_second_max_restart = value),
    setting!("MaxDiskWriteSpeedOtherNodeRestart", SettingKind::Bytes(1 << 20, 1024 * GIB), "50M",
        "Maximum speed of checkpoints in bytes per second while another data node starts. Accepted and checked; a node alone never needs it.",
        Number(_value) => |_config| ()),
    setting!("EnableRedoControl", SettingKind::Boolean, "true",
        "Whether the speed of checkpoints follows the growth of the log, the load and the latency of syncs. If off, it is MaxDiskWriteSpeed.",
        Boolean(value) => |config| config.checkpoints.is_redo_controlled = value),
    setting!("RecoveryWork", SettingKind::Count(25, 100), "60",
        "Garbage that checkpoint files may contain, in per cent of their other bytes. Beyond it, checkpoints write the rest of a file again and delete the file.",
        Number(value) => |config| config.checkpoints.recovery_work_percent = value as u32),
    setting!("FragmentLogFileSize", SettingKind::Bytes(1 << 20, GIB), "64M",
        "Size of each file of the log, rounded down to whole blocks of 4 KiB. A data directory keeps the size that it was created with.",
        Number(value) => |config| if let Some(size) = SegmentSize::of_bytes(value & !4095) { config.log_segment_size = size }),
    setting!("NoOfFragmentLogFiles", SettingKind::Count(3, u32::MAX as u64), "16",
        "Maximum number of files of the log. Above 85 per cent of their size, new writes wait until a checkpoint has freed a part of the log. A transaction that needs more than half of the log fails with error 1297.",
        Number(value) => |config| config.log_segments_max = value),
    setting!("RedoOverCommitLimit", SettingKind::Count(1, 4_294_967_039), "20",
        "Time in seconds that a statement or a commit waits for space in the log. Then it fails with error 1297.",
        Number(value) => |config| config.redo_over_commit_limit_s = value as u32),
    setting!("SpinMethod",
        SettingKind::Text("StaticSpinning, CostBasedSpinning, LatencyOptimisedSpinning or DatabaseMachineSpinning"), "CostBasedSpinning",
        "How threads spin before they sleep: for a fixed time, or as long as measurement shows that it pays.",
        Text(value) => |config| if let Some(method) = SpinMethod::named(&value) { config.spin.method = method }),
    setting!("SchedulerSpinTimer", SettingKind::Count(0, 500), "0",
        "Spin time of StaticSpinning in microseconds; spintime of a thread's ThreadConfig overrides it.",
        Number(value) => |config| config.spin.timer_us = value as u32),
    setting!("EnableAdaptiveSpinning", SettingKind::Boolean, "true", "If off, every method spins for the fixed time.",
        Boolean(value) => |config| config.spin.enable_adaptive = value),
    setting!("AllowedSpinOverhead", SettingKind::Count(0, 10_000), "0",
        "CPU time that may be spent per latency gained, in per cent: 200 spends two microseconds to gain one; 0 takes the method's value.",
        Number(value) => |config| config.spin.overhead_percent = (value > 0).then_some(value as u32)),
    setting!("SpintimePerCall", SettingKind::Count(300, 8_000), "1000", "Interval between two checks for work, in nanoseconds.",
        Number(value) => |config| config.spin.poll_interval_ns = value as u32),
    setting!("SendAssistance", SettingKind::Text("adaptive, never or always"), "adaptive",
        "Whether recv threads hand output to send threads and idle threads: by load (adaptive); only to send threads, and then all of it (never); or always.",
        Text(value) => |config| if let Some(one) = SendAssistance::named(&value) { config.send.assistance = one }),
    setting!("MaxSendDelay", SettingKind::Count(0, SendSettings::DELAY_US_MAX as u64), "0",
        "Maximum time in microseconds that output is held back to be sent with more, under high send load and with send threads; 0 disables it.",
        Number(value) => |config| config.send.delay_us_max = value as u32),
    setting!("node_id", SettingKind::Count(1, 255), "none", "The number of this node in its cluster. Without it the node is alone.",
        Number(value) => |config| config.cluster.node_id = Some(value as u8)),
    setting!("role", SettingKind::Text("data, sql, management, several of them with commas, or all; data,added in an added group, data,added:G for one more replica of node group G"), "as in nodes",
        "What this node does for the cluster: holds data, serves clients, votes.",
        Text(value) => |config| config.cluster.role = Roles::named(&value)),
    setting!("cluster_name", SettingKind::Text("text"), "junctor", "The name of the cluster, the same on all of its nodes.",
        Text(value) => |config| config.cluster.name = value),
    setting!("cluster_key_file", SettingKind::Text("a path"), "none",
        "The file with the cluster's key, 64 hexadecimal digits, the same on all nodes. A node without the key is refused.",
        Text(value) => |config| config.cluster.key_file = Some(value)),
    setting!("nodes", SettingKind::Nodes, "[]",
        "The nodes of the cluster, the same list on all of them. HOST:PORT is where a node listens for the others. A domain names a place: nodes in one place are near.",
        Nodes(value) => |config| config.cluster.nodes = value),
    setting!("join", SettingKind::Text("HOST:PORT"), "none",
        "The address of a member in its list of nodes. This node asks it for the settings that all nodes share, in place of nodes.",
        Text(value) => |config| config.cluster.join = Some(value)),
    setting!("link_address", SettingKind::Text("HOST:PORT"), "as in nodes", "Where this node listens for the other nodes.",
        Text(value) => |config| config.cluster.link_address = Some(value)),
    setting!("location_domain", SettingKind::Text("text"), "as in nodes", "The location domain of a node that `nodes` does not name.",
        Text(value) => |config| config.cluster.location_domain = value),
    setting!("NoOfReplicas", SettingKind::Count(1, 4), "2", "Replicas of each partition: as many data nodes form a group, in the order of their numbers. Data nodes with the role added:G are further replicas of group G.",
        Number(value) => |config| config.cluster.replicas = value as u8),
    setting!("links_per_node", SettingKind::Count(1, 8), "1", "Connections between two nodes, the same on all of them.",
        Number(value) => |config| config.cluster.channels = value as u8),
    setting!("node_silence_max_ms", SettingKind::Count(20, 60_000), "400",
        "Longest silence in milliseconds after which a data node is evicted; down to a quarter of it if its messages came regularly. A node whose process ends is evicted at once.",
        Number(value) => |config| config.cluster.silence_max_ms = value as u32),
    setting!("node_cut_max_ms", SettingKind::Count(0, 60_000), "0",
        "Time in milliseconds until a data node is evicted whose system answers no connection any more, after 25 ms of silence.",
        Number(value) => |config| config.cluster.cut_max_ms = value as u32),
    setting!("node_standstill_max_ms", SettingKind::Count(100, 600_000), "5000",
        "Time in milliseconds after which a data node is evicted that applies or syncs no commits while others do.",
        Number(value) => |config| config.cluster.standstill_max_ms = value as u32),
    setting!("StartPartialTimeout", SettingKind::Count(0, 3_600_000), "30000",
        "Time in milliseconds that a start of all data nodes waits for missing ones, if the others have all data.",
        Number(value) => |config| config.cluster.partial_start_ms = value as u32),
    setting!("tls_authority", SettingKind::Text("a path"), "none",
        "The certificate of the cluster's authority in PEM. With it links are encrypted; `junctor admin certificate` makes it.",
        Text(value) => |config| config.cluster.tls[0] = Some(value)),
    setting!("tls_certificate", SettingKind::Text("a path"), "none", "The certificate of this node in PEM.",
        Text(value) => |config| config.cluster.tls[1] = Some(value)),
    setting!("tls_private_key", SettingKind::Text("a path"), "none", "The private key of this node's certificate in PEM.",
        Text(value) => |config| config.cluster.tls[2] = Some(value)),
];

impl Setting {
    /// The setting with this name.
    pub fn named(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// Checks a value and stores it in the configuration.
    ///
    /// # Errors
    /// The value is not allowed. The text names the setting and lists the allowed values.
    pub fn apply(&self, value: &SettingValue, config: &mut NodeConfig) -> Result<(), String> {
        let checked = self.check(value).ok_or_else(|| self.refusal())?;
        (self.set)(config, checked);
        Ok(())
    }

    /// Why a value is not allowed.
    pub fn refusal(&self) -> String {
        match self.kind {
            SettingKind::Reserved(reason) => {
                format!("'{}' would have no effect: {reason}; remove the setting", self.name)
            }
            _ => format!("wrong value for '{}'; allowed: {}", self.name, self.allowed()),
        }
    }

    /// The allowed values as users read them.
    pub fn allowed(&self) -> String {
        match self.kind {
            SettingKind::Text(what) => what.to_string(),
            SettingKind::Boolean => "true or false".to_string(),
            SettingKind::Count(from, to) => format!("a whole number from {from} to {to}"),
            SettingKind::Bytes(from, to) => format!("a size from {} to {}", show_bytes(from), show_bytes(to)),
            SettingKind::Users => "a list of \"NAME:PASSWORD\"".to_string(),
            SettingKind::Nodes => {
                "a list of \"ID ROLES HOST:PORT [DOMAIN]\", with roles such as data, sql, management, data,sql, all, \
                 or data,added for a node of an added group, or data,added:G for one more replica of node group G"
                    .to_string()
            }
            SettingKind::Reserved(reason) => format!("nothing: {reason}"),
        }
    }

    fn check(&self, value: &SettingValue) -> Option<Checked> {
        match (self.kind, value) {
            (SettingKind::Text(_), SettingValue::Text(text)) => self.check_text(text),
            (SettingKind::Boolean, SettingValue::Boolean(value)) => Some(Checked::Boolean(*value)),
            (SettingKind::Count(from, to), value) => {
                number(value).filter(|n| (from..=to).contains(n)).map(Checked::Number)
            }
            (SettingKind::Bytes(from, to), value) => {
                bytes(value).filter(|n| (from..=to).contains(n)).map(Checked::Number)
            }
            (SettingKind::Users, SettingValue::List(users)) => {
                users.iter().map(|user| parse_user(user)).collect::<Option<_>>().map(Checked::Users)
            }
            (SettingKind::Nodes, SettingValue::List(nodes)) => {
                nodes.iter().map(|node| parse_node(node)).collect::<Option<_>>().map(Checked::Nodes)
            }
            _ => None,
        }
    }

    fn check_text(&self, text: &str) -> Option<Checked> {
        let good = match self.name {
            "listen_address" | "http_address" => text.parse::<IpAddr>().is_ok(),
            "log_format" => matches!(text, "text" | "json"),
            "socket" => true,
            "proxy_protocol_networks" => Networks::parse(text).is_ok(),
            "commit_durability" => CommitDurability::named(text).is_some(),
            "read_routing" => ReadRule::named(text).is_some(),
            "FileIo" => FileBackend::named(text).is_some(),
            "SpinMethod" => SpinMethod::named(text).is_some(),
            "role" => Roles::named(text).is_some(),
            "join" | "link_address" => is_address(text),
            "SendAssistance" => SendAssistance::named(text).is_some(),
            "server_version" => {
                (1..=60).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
            }
            _ => !text.is_empty(),
        };
        good.then(|| Checked::Text(text.to_string()))
    }
}

impl NodeConfig {
    /// The folder of the node's files.
    pub fn data_folder(&self) -> &str {
        self.file_system_path.as_deref().unwrap_or(&self.data_directory)
    }
}

/// The folder of the data of `junctor serve`, if no option names one: `junctor` in the user's state
/// directory. `None` without `XDG_STATE_HOME` and `HOME`. The XDG Base Directory Specification requires
/// absolute paths and ignores others.
pub fn default_data_directory(state_home: Option<&str>, home: Option<&str>) -> Option<String> {
    let absolute = |path: Option<&'_ str>| path.filter(|path| path.starts_with('/')).map(str::to_owned);
    let state = absolute(state_home).or_else(|| Some(format!("{}/.local/state", absolute(home)?)))?;
    Some(format!("{}/junctor", state.trim_end_matches('/')))
}

/// Reads `NAME:PASSWORD`. The name has 1 to 32 characters, as in MySQL.
pub fn parse_user(text: &str) -> Option<(String, String)> {
    let (name, password) = text.split_once(':')?;
    let good = !name.is_empty() && name.chars().count() <= 32;
    good.then(|| (name.to_string(), password.to_string()))
}

fn number(value: &SettingValue) -> Option<u64> {
    match value {
        SettingValue::Integer(number) => u64::try_from(*number).ok(),
        SettingValue::Text(text) => text.parse().ok(),
        _ => None,
    }
}

fn bytes(value: &SettingValue) -> Option<u64> {
    match value {
        SettingValue::Text(text) => parse_bytes(text),
        value => number(value),
    }
}

/// Reads a size such as `512M`, `4G`, or a plain number of bytes.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return text.parse().ok(),
    };
    let number: u64 = text[..text.len() - 1].trim_end().parse().ok()?;
    number.checked_mul(1 << shift)
}

/// Formats a size with the largest unit that divides it.
pub fn show_bytes(bytes: u64) -> String {
    for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// The page `docs/generated/settings.md`.
pub fn settings_page() -> String {
    use std::fmt::Write;
    let mut page = String::from(
        "# Settings\n\nPrinted from the table in `crates/node/src/setting.rs`; do not edit. `junctor serve --config FILE` reads settings from a TOML\nfile; options of the command line override them.\n\n| name | default | allowed | meaning |\n|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            setting.name,
            setting.default,
            setting.allowed(),
            setting.meaning
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, size) in [("1", 1), ("64K", 65_536), ("2g", 2 << 30), ("3 M", 3 << 20)] {
            assert_eq!(parse_bytes(text), Some(size), "{text}");
        }
        for text in ["", "K", "-1", "1.5G", "99999999999T", "12X"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
        assert_eq!(show_bytes(256 << 20), "256M");
    }

    #[test]
    fn a_value_outside_its_range_is_refused_with_the_range() {
        let mut config = NodeConfig::default();
        let setting = Setting::named("port").expect("port is a setting");
        let refusal = setting.apply(&SettingValue::Integer(70_000), &mut config).expect_err("70000 is no port");
        assert_eq!(refusal, "wrong value for 'port'; allowed: a whole number from 0 to 65535");
        setting.apply(&SettingValue::Integer(3307), &mut config).expect("3307 is a port");
        assert_eq!(config.port, 3307);
    }

    #[test]
    fn data_lies_in_the_users_state_directory_by_default() {
        let of = |state, home| default_data_directory(state, home);
        assert_eq!(of(Some("/s/"), Some("/home/u")).as_deref(), Some("/s/junctor"));
        assert_eq!(of(None, Some("/home/u")).as_deref(), Some("/home/u/.local/state/junctor"));
        assert_eq!(of(Some("relative"), Some("/root")).as_deref(), Some("/root/.local/state/junctor"));
        assert_eq!(of(None, None), None);
    }

    #[test]
    fn folders_have_settings_and_those_of_columns_on_disk_are_refused() {
        let mut config = NodeConfig::default();
        let mut set = |name: &str, value: &str| {
            let setting = Setting::named(name).expect("a setting");
            setting.apply(&SettingValue::Text(value.into()), &mut config).map(|()| config.data_folder().to_owned())
        };
        assert_eq!(set("DataDir", "/a").as_deref(), Ok("/a"));
        assert_eq!(set("FileSystemPath", "/b").as_deref(), Ok("/b"));
        assert_eq!(set("DataDir", "/c").as_deref(), Ok("/b"));
        for name in ["FileSystemPathDD", "FileSystemPathDataFiles", "FileSystemPathUndoFiles"] {
            let refusal = set(name, "/d").expect_err("it is reserved");
            let reason = "columns on disk are not supported yet; remove the setting";
            assert_eq!(refusal, format!("'{name}' would have no effect: {reason}"));
        }
        set("BackupDataDir", "/e").expect("a folder");
        assert_eq!(config.backup_directory.as_deref(), Some("/e"));
    }

    #[test]
    fn every_setting_is_named_once() {
        for (position, setting) in SETTINGS.iter().enumerate() {
            assert!(SETTINGS[position + 1..].iter().all(|other| other.name != setting.name), "{}", setting.name);
        }
    }
}
