//! Starts Debian's MariaDB for comparisons.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::server::command_killed_with_parent;
use super::{Server, TemporaryFolder, command};
use crate::failure::Explain;
use crate::mysql::Connection;
use crate::{Failure, Outcome};

const READY_TIME_MAX: Duration = Duration::from_secs(300);
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Settings for every comparison: pooled threads, a log that is synced once a second, no binary log, no
/// performance schema.
pub(super) const ARGUMENTS: [&str; 13] = [
    "--innodb-buffer-pool-size=4G",
    "--thread-handling=pool-of-threads",
    "--innodb-flush-log-at-trx-commit=2",
    "--sync-binlog=0",
    "--skip-log-bin",
    "--performance-schema=OFF",
    "--max-connections=20000",
    "--skip-name-resolve",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
    "--max-prepared-stmt-count=1000000",
    "--innodb-log-file-size=1G",
    "--bind-address=127.0.0.1",
];

/// Loads of many connections come from several addresses of 127.0.0.0/8.
const LOOPBACK_ROOT: [&str; 2] =
    ["CREATE USER IF NOT EXISTS root@'127.%'", "GRANT ALL PRIVILEGES ON *.* TO root@'127.%' WITH GRANT OPTION"];

/// Starts MariaDB on a free port with a new data folder. User root has no password.
///
/// # Errors
/// MariaDB is not installed, or did not become ready. The error includes the end of its log.
pub fn start_mariadb(more_arguments: &[&str]) -> Outcome<Server> {
    let folder = TemporaryFolder::new("mariadb")?;
    let data = folder.path().join("data");
    start(folder, &data, more_arguments)
}

/// As [`start_mariadb`], with a data folder that outlives the server. It is created if it does not exist.
///
/// # Errors
/// As [`start_mariadb`].
pub fn start_mariadb_on(data_folder: &Path, more_arguments: &[&str]) -> Outcome<Server> {
    start(TemporaryFolder::new("mariadb")?, data_folder, more_arguments)
}

fn start(folder: TemporaryFolder, data_folder: &Path, more_arguments: &[&str]) -> Outcome<Server> {
    let data = format!("--datadir={}", data_folder.display());
    let user = format!("--user={}", user_name()?);
    if !data_folder.exists() {
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", &user, &data, "--auth-root-authentication-method=normal", "--skip-test-db"]);
        let finished = command::run(&mut install, READY_TIME_MAX)?;
        if !finished.status.success() {
            return Err(Failure::new(format!("mariadb-install-db: {}{}", finished.output, finished.errors)));
        }
    }
    let address = free_address()?;
    let mut daemon = command_killed_with_parent(&daemon_path());
    daemon.args(["--no-defaults", &user, &data]).args(ARGUMENTS).args(more_arguments);
    daemon.arg(format!("--port={}", address.port()));
    daemon.arg(format!("--socket={}", folder.path().join("socket").display()));
    daemon.arg(format!("--pid-file={}", folder.path().join("pid").display()));
    daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(folder.path().join("log"))?);
    let child = daemon.spawn().explain("mariadbd")?;
    let mut server = Server::new("MariaDB", address, child, folder);
    let end = Instant::now() + READY_TIME_MAX;
    loop {
        match Connection::open(address, "") {
            Ok(_) => {
                server.execute(&LOOPBACK_ROOT)?;
                return Ok(server);
            }
            Err(error) if Instant::now() > end => {
                return Err(Failure::new(format!("MariaDB did not become ready: {error}\n{}", server.log_end())));
            }
            Err(_) => server.require_alive()?,
        }
        thread::sleep(CHECK_INTERVAL);
    }
}

/// Debian installs daemons in a folder that is not in an ordinary user's search path.
pub(super) fn daemon_path() -> String {
    let debian = "/usr/sbin/mariadbd";
    if Path::new(debian).exists() { debian.into() } else { "mariadbd".into() }
}

/// A port on 127.0.0.1 that was free a moment ago.
fn free_address() -> Outcome<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn user_name() -> Outcome<String> {
    let finished = command::run(Command::new("id").arg("-un"), READY_TIME_MAX)?;
    Ok(finished.output.trim().to_string())
}
