//! The command line.

use std::io::Write;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use clap::{Args, Parser, Subcommand};
use junctor_backup::{BackupError, BackupOptions, BackupSummary, CheckOptions, RestoreOptions, RestoreSummary};
use junctor_bench::{autobench, echo, lab};
use junctor_node::cluster_config::{MemberNode, Roles, is_address, parse_node};
use junctor_node::config_file;
use junctor_node::setting::{NodeConfig, default_data_directory, parse_bytes, parse_user};

use crate::admin::{self, AdminCommand};
use crate::backup_part::copy_parts;
use crate::dev::{self, DevOptions};
use crate::restart_report::RestartReport;

/// A process ends with this status when its supervisor is to start it again, as in MySQL.
pub const RESTART_STATUS: u8 = 16;

/// A distributed, in-memory first, key-value database with SQL.
#[derive(Debug, Parser)]
#[command(name = "junctor", version, about, max_term_width = 110)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node that serves MySQL clients. Each commit is on disk before it is acknowledged.
    #[command(after_help = SERVE_HELP)]
    Serve(Box<ServeOptions>),
    /// Run the benchmark of a directory with an autobench.conf: sysbench, DBT2, YCSB or the thread pool.
    #[command(after_help = BENCH_HELP)]
    Bench(autobench::BenchOptions),
    /// Answer every request with the same bytes: the echo server of `bench`.
    #[command(hide = true)]
    Echo(echo::EchoOptions),
    /// Compare thread configurations and read routing rules: throughput, latency, thread load, paired ratios.
    #[command(after_help = LAB_HELP)]
    Lab(lab::LabOptions),
    /// Copy the data of a running server to a store: a folder, or a bucket of an S3-compatible service.
    #[command(after_help = BACKUP_HELP)]
    Backup(BackupOptions),
    /// List the backups of a store.
    Backups {
        /// Where backups are kept: a folder, or s3://BUCKET/PREFIX
        #[arg(value_name = "STORE")]
        store: String,
    },
    /// Make a data directory from a backup.
    #[command(after_help = RESTORE_HELP)]
    Restore(RestoreOptions),
    /// Look for damage in the data directory of a stopped server. Changes nothing.
    #[command(after_help = CHECK_HELP)]
    Check(CheckOptions),
    /// Run a cluster of processes on this machine.
    #[command(after_help = DEV_HELP)]
    Dev(DevOptions),
    /// Prepare and operate the nodes of a cluster.
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Print every setting of the configuration file: name, default, allowed values, meaning.
    Settings,
}

const SERVE_HELP: &str = "\
When it serves, the node prints `ready: mysql ADDRESS:PORT ...` on standard output, with `socket PATH`,
`extra ADDRESS:PORT`, `native ADDRESS:PORT` and `http ADDRESS:PORT` if it has them. A node
of a cluster adds `links ADDRESS:PORT`; one without the role sql prints only that.
It logs to standard error, and stops cleanly on SIGTERM and SIGINT, also while it recovers its data. Status 0
is a clean stop, 1 a refused start or an incomplete stop, 16 the statement RESTART (also if the stop was incomplete),
and 3 a failed write or sync of the log, or the eviction from a cluster. After 16 and 3 the node must be started again.
User root has no password and may log in over loopback only.

Thread configurations, for --thread-config:
  recv={count=1},ldm={count=0},main={count=0},io={count=0}
      everything in one thread
  recv={count=4},ldm={count=0},main={count=0}
      every recv thread does all the work of its connections (the default below 8 CPUs)
  recv={count=2},ldm={count=1},query={count=1},tc={count=0},main={count=0}
      tc and sql in the recv threads, ldm and query in threads of their own
  main={count=1},rep={count=1},recv={count=1},sql={count=1},tc={count=1},ldm={count=1},query={count=1},\
  send={count=1},io={count=1}
      every module in a thread of its own
Each entry takes cpubind=LIST or cpuset=LIST, spintime=MICROSECONDS, thread_prio=0..10, realtime=0|1, nosend=0|1.

Try it:
  junctor serve --port 3307 &
  mysql -h 127.0.0.1 -P 3307 -u root";

const BENCH_HELP: &str = "\
With DATA_DIR_BASE in the file it starts a node; otherwise it uses the servers of SERVER_HOST and SERVER_PORT.
Results:
  DIR/sysbench_results/oltp_rw_0_0.res   output of sysbench (or in dbt2_results, ycsb_results)
  DIR/final_result.txt                   every result, means and standard deviations
Ctrl-C stops sysbench and the node.";

const LAB_HELP: &str = "\
It starts a node for each setup, fills them with the same tables, and measures them in turn. A node that is not being
measured is idle. docs/lab.md explains the output. Ctrl-C stops the nodes.

Try it:
  junctor lab --quick --json lab.json
  junctor lab --workloads in_list,range --setups ldm,receive,adaptive --repetitions 10";

const BACKUP_HELP: &str = "\
The server goes on meanwhile. The backup holds every commit that was on disk when it began, and is consistent at
one commit. It must run on the server's machine, as a user who may read the data directory. Without STORE it goes
to BackupDataDir of the server's configuration. Credentials, region and endpoint of an S3-compatible service come
from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL and AWS_ALLOW_HTTP.

Try it:
  junctor backup /var/backups/junctor
  junctor backup /var/backups/junctor --incremental
  junctor backups /var/backups/junctor";

const RESTORE_HELP: &str = "\
The directory recovers when a server starts with it.

Try it:
  junctor restore /var/backups/junctor new-data
  junctor restore /var/backups/junctor new-data --until '2026-01-31 12:00:00'
  junctor serve --data-dir new-data";

const CHECK_HELP: &str = "\
Prints each damaged place, and ends with status 1 if there is one. A start of the server finds the same damage:
it uses another copy, or refuses the directory, and never serves a wrong row.

Try it:
  junctor check junctor-data";

const DEV_HELP: &str = "\
It prints `node ID ROLE pid PID address HOST:PORT` for each process, and `ready: mysql HOST:PORT,...` when all serve.
A process that ends is started again, unless it ends with status 0, as after SHUTDOWN or SIGTERM. Ctrl-C stops them all; the next start continues from the directory.

Try it:
  junctor dev &
  mysql -h 127.0.0.1 -P PORT -u root -e 'SELECT * FROM junctor_info.nodes'";

#[derive(Debug, Args)]
struct ServeOptions {
    /// Configuration file in TOML; the options below override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen at [default: 127.0.0.1]
    #[arg(long, value_name = "ADDR")]
    listen: Option<IpAddr>,
    /// Port to listen at; 0 for any free port [default: 3306]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Port of the native protocol, for Rust clients; 0 for any free port [default: none]
    #[arg(long, value_name = "N")]
    native_port: Option<u16>,
    /// Unix socket for MySQL clients; empty for none [default: mysql.sock in the data directory]
    #[arg(long, value_name = "PATH")]
    socket: Option<String>,
    /// Folder in which statements may read and write files of the server [default: NULL, which refuses them]
    #[arg(long, value_name = "DIR")]
    secure_file_priv: Option<String>,
    /// Second port of the MySQL protocol, for administrators [default: none]
    #[arg(long, value_name = "N")]
    extra_port: Option<u16>,
    /// Port of /metrics, /health/live and /health/ready on 127.0.0.1; 0 for any free port [default: none]
    #[arg(long, value_name = "N")]
    http_port: Option<u16>,
    /// Networks of balancers, whose connections begin with a header of the PROXY protocol
    #[arg(long, value_name = "NETWORKS")]
    proxy_protocol_networks: Option<String>,
    /// Threads and their modules, in NDB's ThreadConfig grammar [default: by the number of CPUs]
    #[arg(long, value_name = "STR")]
    thread_config: Option<String>,
    /// Maximum number of CPUs that the automatic placement uses [default: all]
    #[arg(long, value_name = "N")]
    num_cpus: Option<u32>,
    /// Do not bind threads to CPUs; a ThreadConfig may then name CPUs that do not exist
    #[arg(long)]
    no_cpu_binding: bool,
    /// Memory for rows and indexes, such as 4G [default: 70 per cent of the memory allowed]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    total_memory: Option<u64>,
    /// Maximum number of client connections [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_connections: Option<u32>,
    /// Folder of the node's files [default: junctor in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Keep data in memory only: a stop loses it
    #[arg(long, conflicts_with = "durable")]
    in_memory: bool,
    /// The default; accepted for scripts of earlier versions
    #[arg(long, hide = true)]
    durable: bool,
    /// User who may log in from anywhere; may be given several times
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = user)]
    user: Vec<(String, String)>,
    /// File with the password that root@localhost gets at the first start; its first line counts
    #[arg(long, value_name = "FILE", conflicts_with = "node_id")]
    init_root_password_file: Option<PathBuf>,
    /// Give clients of the Unix socket all rights without a password, until FLUSH PRIVILEGES
    #[arg(long)]
    skip_grant_tables: bool,
    /// Refuse TLS. Without it, and without --ssl-cert, the node makes its own certificates
    #[arg(long, conflicts_with_all = ["ssl_ca", "ssl_cert", "ssl_key", "require_secure_transport"])]
    no_tls: bool,
    /// Refuse logins over connections without TLS
    #[arg(long)]
    require_secure_transport: bool,
    /// Authorities of the certificates that clients may show, in PEM
    #[arg(long, value_name = "FILE")]
    ssl_ca: Option<PathBuf>,
    /// Certificate of the server, in PEM
    #[arg(long, value_name = "FILE", requires = "ssl_key")]
    ssl_cert: Option<PathBuf>,
    /// Private key of --ssl-cert, in PEM
    #[arg(long, value_name = "FILE", requires = "ssl_cert")]
    ssl_key: Option<PathBuf>,
    /// Number of this node in its cluster [default: a node alone]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    node_id: Option<u8>,
    /// Roles of this node: data, sql, management, several with commas, or all [default: as in --node]
    #[arg(long, value_name = "ROLES", value_parser = roles)]
    role: Option<Roles>,
    /// A node of the cluster; given for each of them, this one included
    #[arg(long, value_name = "ID ROLES HOST:PORT [DOMAIN]", value_parser = node)]
    node: Vec<MemberNode>,
    /// Ask this member for the nodes of the cluster, in place of --node
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    join: Option<String>,
    /// Name of the cluster [default: junctor]
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// File with the key of the cluster, as `junctor admin key` makes it
    #[arg(long, value_name = "FILE")]
    cluster_key_file: Option<String>,
    /// Where this node listens for the other nodes [default: as in --node]
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    link_address: Option<String>,
    /// Location domain of this node, if --node does not name it
    #[arg(long, value_name = "NAME")]
    location_domain: Option<String>,
    /// Replicas of each partition [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    replicas: Option<u8>,
    /// A supervisor starts this process again when it ends with status 16, which RESTART asks for
    #[arg(long)]
    supervised: bool,
    /// Stop when the process that started this one ends
    #[arg(long, hide = true)]
    end_with_parent: bool,
}

fn roles(text: &str) -> Result<Roles, String> {
    let allowed = "data, sql, management, several of them with commas, or all; data,added in an added group, \
                   data,added:G for one more replica of node group G";
    Roles::named(text).ok_or_else(|| allowed.into())
}

fn node(text: &str) -> Result<MemberNode, String> {
    parse_node(text).ok_or_else(|| "\"ID ROLES HOST:PORT [DOMAIN]\", such as \"1 data 10.0.0.1:4100\"".into())
}

fn address(text: &str) -> Result<String, String> {
    if is_address(text) { Ok(text.to_owned()) } else { Err("HOST:PORT".into()) }
}

fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text)
        .filter(|size| *size >= 64 << 20)
        .ok_or_else(|| "a size of at least 64M, such as 512M or 4G".into())
}

/// The first line of a file with a password. Errors: the file cannot be read, or the line is empty.
pub fn first_line(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(format!("{} has no password in its first line", file.display())),
    }
}

fn user(text: &str) -> Result<(String, String), String> {
    parse_user(text).ok_or_else(|| "NAME:PASSWORD with a name of 1 to 32 characters".into())
}

/// Runs the program.
pub fn run() -> ExitCode {
    match CommandLine::parse().command {
        Command::Settings => {
            print!("{}", junctor_node::setting::settings_page());
            ExitCode::SUCCESS
        }
        Command::Bench(options) => exit_code(autobench::run(&options)),
        Command::Echo(options) => exit_code(echo::run(&options)),
        Command::Lab(options) => exit_code(lab::run(&options)),
        Command::Serve(options) => serve(*options).unwrap_or_else(|error| exit_code(Err(error))),
        Command::Backup(options) => exit_code(backup(&options)),
        Command::Backups { store } => exit_code(list_backups(&store)),
        Command::Restore(options) => exit_code(restore(&options)),
        Command::Check(options) => check(&options),
        Command::Dev(options) => exit_code(dev::run(&options)),
        Command::Admin(command) => exit_code(admin::run(&command)),
    }
}

fn exit_code<E: std::fmt::Display>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("junctor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn configuration(options: ServeOptions) -> Result<NodeConfig, Box<dyn std::error::Error>> {
    let variable = |name: &str| std::env::var(name).ok();
    let (state_home, home) = (variable("XDG_STATE_HOME"), variable("HOME"));
    let mut config = NodeConfig {
        // The environment may name no folder. Then an option must.
        data_directory: default_data_directory(state_home.as_deref(), home.as_deref()).unwrap_or_default(),
        is_durable: true,
        ..NodeConfig::default()
    };
    if let Some(path) = &options.config {
        config_file::read_file(path, &mut config)?;
    }
    if let Some(address) = options.listen {
        config.listen_address = address;
    }
    if let Some(port) = options.port {
        config.port = port;
    }
    if options.native_port.is_some() {
        config.native_port = options.native_port;
    }
    config.socket = options.socket.or(config.socket.take());
    config.secure_file_priv = options.secure_file_priv.or(config.secure_file_priv.take());
    config.extra_port = options.extra_port.unwrap_or(config.extra_port);
    config.http_port = options.http_port.or(config.http_port);
    if let Some(networks) = options.proxy_protocol_networks {
        config.proxy_protocol_networks = networks;
    }
    if options.thread_config.is_some() {
        config.thread_config = options.thread_config;
    }
    if options.num_cpus.is_some() {
        config.cpu_count_max = options.num_cpus;
    }
    if options.no_cpu_binding {
        config.cpu_binding = false;
    }
    if options.total_memory.is_some() {
        config.total_memory_bytes = options.total_memory;
    }
    if let Some(connections) = options.max_connections {
        config.max_connections = connections;
    }
    if options.in_memory {
        config.is_durable = false;
    } else if options.durable {
        config.is_durable = true;
    }
    if let Some(folder) = options.data_dir {
        config.data_directory = folder;
        config.file_system_path = None;
    }
    if config.data_directory.is_empty() && config.file_system_path.is_none() && config.is_durable {
        return Err("no folder for the data: set HOME or XDG_STATE_HOME, or use --data-dir or --in-memory".into());
    }
    config.users.extend(options.user);
    if let Some(file) = options.init_root_password_file {
        config.root_password = Some(first_line(&file)?);
    }
    config.skips_grants |= options.skip_grant_tables;
    config.is_supervised |= options.supervised;
    config.has_tls &= !options.no_tls;
    config.secure_transport_required |= options.require_secure_transport;
    let files = &mut config.tls_files;
    files.authority = options.ssl_ca.or(files.authority.take());
    files.certificate = options.ssl_cert.or(files.certificate.take());
    files.key = options.ssl_key.or(files.key.take());
    let cluster = &mut config.cluster;
    cluster.node_id = options.node_id.or(cluster.node_id);
    cluster.role = options.role.or(cluster.role);
    if !options.node.is_empty() {
        cluster.nodes = options.node;
    }
    cluster.join = options.join.or(cluster.join.take());
    cluster.name = options.cluster_name.unwrap_or(std::mem::take(&mut cluster.name));
    cluster.key_file = options.cluster_key_file.or(cluster.key_file.take());
    cluster.link_address = options.link_address.or(cluster.link_address.take());
    cluster.location_domain = options.location_domain.unwrap_or(std::mem::take(&mut cluster.location_domain));
    cluster.replicas = options.replicas.unwrap_or(cluster.replicas);
    Ok(config)
}

fn backup(options: &BackupOptions) -> Result<(), BackupError> {
    let BackupSummary { name, bytes, stored_bytes } = junctor_backup::backup(options)?;
    println!("backup {name}: {bytes} bytes of data, {stored_bytes} bytes added to the store");
    Ok(())
}

fn list_backups(store: &str) -> Result<(), BackupError> {
    println!("{:24} {:24} {:20} {:>16}", "backup", "base", "until (UTC)", "bytes");
    for [name, base, until, bytes] in junctor_backup::list(store)? {
        println!("{name:24} {base:24} {until:20} {bytes:>16}");
    }
    Ok(())
}

fn restore(options: &RestoreOptions) -> Result<(), BackupError> {
    let RestoreSummary { name, last_commit, until } = junctor_backup::restore(options)?;
    let folder = options.data_dir.display();
    println!("restored backup {name} to {folder}: the last commit is {last_commit}, of {until} UTC");
    Ok(())
}

fn check(options: &CheckOptions) -> ExitCode {
    let report = match junctor_backup::check(options) {
        Ok(report) => report,
        Err(error) => return exit_code(Err(error)),
    };
    for note in &report.notes {
        println!("{note}");
    }
    for damage in &report.damage {
        println!("damaged: {damage}");
    }
    println!("{}: {} damaged places", options.data_dir.display(), report.damage.len());
    if report.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a node until a signal or a statement stops it. Returns the status of the process.
#[expect(clippy::disallowed_methods, reason = "threads that wait for signals and copy files, outside of the node")]
fn serve(options: ServeOptions) -> Result<ExitCode, Box<dyn std::error::Error>> {
    if options.end_with_parent {
        dev::end_with_parent()?;
    }
    let config = configuration(options)?;
    let mut stop = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT])?;
    let mut report = RestartReport::new();
    let mut reason = None;
    let server = junctor_node::start_and_report(&config, &mut |progress| {
        report.report(progress);
        reason = reason.or_else(|| stop.pending().next());
        if reason.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    report.finish();
    let Some(server) = server else {
        eprintln!("level=info stopping signal={}", reason.unwrap_or_default());
        eprintln!("level=info stopped before the data was recovered; the next start recovers it");
        return Ok(ExitCode::SUCCESS);
    };
    for line in server.notices() {
        eprintln!("level=notice {line}");
    }
    let mut out = std::io::stdout();
    let mysql = server.address().map(|address| format!(" mysql {address}")).unwrap_or_default();
    let native = server.native_address().map(|address| format!(" native {address}")).unwrap_or_default();
    let socket = server.socket().map(|path| format!(" socket {}", path.display())).unwrap_or_default();
    let extra = server.extra_address().map(|address| format!(" extra {address}")).unwrap_or_default();
    let http = server.http_address().map(|address| format!(" http {address}")).unwrap_or_default();
    let links = server.link_address().map(|address| format!(" links {address}")).unwrap_or_default();
    writeln!(out, "ready:{mysql}{socket}{extra}{native}{http}{links} placement: {}", server.placement())?;
    out.flush()?;
    if let Some(node) = config.cluster.node_id {
        let (desk, folder) = (server.backup_desk(), PathBuf::from(config.data_folder()));
        std::thread::spawn(move || copy_parts(&desk, node, folder));
    }
    let stopper = server.stop_handle();
    let (signals, caught) = (stop.handle(), Arc::new(AtomicI32::new(0)));
    let signal = Arc::clone(&caught);
    let watch = std::thread::spawn(move || {
        if let Some(number) = reason.or_else(|| stop.forever().next()) {
            signal.store(number, Ordering::Relaxed);
            stopper.request_stop();
        }
    });
    server.wait_for_stop_request();
    let wants_restart = server.wants_restart();
    match caught.load(Ordering::Relaxed) {
        0 => eprintln!("level=info stopping statement={}", if wants_restart { "RESTART" } else { "SHUTDOWN" }),
        number => eprintln!("level=info stopping signal={number}"),
    }
    let stopped = server.stop();
    signals.close();
    // The thread never panics and returns nothing.
    let _ = watch.join();
    match stopped {
        // The supervisor must start the process again all the same.
        Err(error) if wants_restart => eprintln!("level=error the stop is incomplete: {error}"),
        stopped => {
            stopped?;
            eprintln!("level=info stopped");
        }
    }
    Ok(if wants_restart { ExitCode::from(RESTART_STATUS) } else { ExitCode::SUCCESS })
}
