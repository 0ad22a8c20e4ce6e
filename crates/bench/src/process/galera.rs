//! Starts a cluster of Debian's MariaDB with Galera: two nodes with all data, and an arbitrator that votes.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::mariadb::{ARGUMENTS, daemon_path};
use super::server::command_killed_with_parent;
use super::{Server, TemporaryFolder, command};
use crate::failure::Explain;
use crate::{Failure, Outcome};

const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
const READY_TIME_MAX: Duration = Duration::from_secs(120);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const NODES: usize = 2;

/// A running cluster. It is killed on drop.
pub struct Galera {
    /// The nodes, which all serve clients.
    pub nodes: Vec<Server>,
    arbitrator: Child,
}

/// Starts the nodes on free ports with new data folders. User root has no password.
///
/// # Errors
/// MariaDB, Galera, garbd or rsync is not installed, or a node did not become ready.
pub fn start_galera(more_arguments: &[&str]) -> Outcome<Galera> {
    if !Path::new(PROVIDER).exists() {
        return Err(Failure::new("Galera is not installed: packages galera-4, galera-arbitrator-4, rsync"));
    }
    let port = || -> Outcome<u16> { Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port()) };
    let mut group = [0; NODES];
    for group_port in &mut group {
        *group_port = port()?;
    }
    let members = format!("gcomm://{}", group.map(|port| format!("127.0.0.1:{port}")).join(","));
    let mut nodes = Vec::new();
    for (number, group_port) in group.into_iter().enumerate() {
        let folder = TemporaryFolder::new("galera")?;
        let data = folder.path().join("data");
        let user = own_folder(folder.path())?;
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", &user, "--auth-root-authentication-method=normal", "--skip-test-db"]);
        // The user of the nodes may not write where this program may.
        install.arg(format!("--datadir={}", data.display())).env("TMPDIR", folder.path());
        let finished = command::run(&mut install, READY_TIME_MAX)?;
        if !finished.status.success() {
            return Err(Failure::new(format!("mariadb-install-db: {}{}", finished.output, finished.errors)));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port()?));
        let mut daemon = command_killed_with_parent(&daemon_path());
        daemon.args(["--no-defaults", &user]).args(ARGUMENTS);
        daemon.args(["--wsrep-on=ON", "--wsrep-cluster-name=bench", "--wsrep-sst-method=rsync"]);
        daemon.args(["--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-slave-threads=4"]);
        daemon.arg(format!("--wsrep-provider={PROVIDER}")).arg(format!("--wsrep-cluster-address={members}"));
        daemon.arg(format!("--wsrep-node-address=127.0.0.1:{group_port}"));
        daemon.arg(format!("--wsrep-sst-receive-address=127.0.0.1:{}", port()?));
        daemon.arg(format!(
            "--wsrep-provider-options=base_port={group_port};gmcast.listen_addr=tcp://127.0.0.1:{group_port};\
             ist.recv_addr=127.0.0.1:{}",
            port()?
        ));
        daemon.arg(format!("--datadir={}", data.display())).arg(format!("--port={}", address.port()));
        daemon.arg(format!("--socket={}", folder.path().join("socket").display()));
        daemon.arg(format!("--pid-file={}", folder.path().join("pid").display()));
        daemon.args(more_arguments).env("TMPDIR", folder.path());
        if number == 0 {
            daemon.arg("--wsrep-new-cluster");
        }
        daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(folder.path().join("log"))?);
        let child = daemon.spawn().explain("mariadbd")?;
        nodes.push(Server::new("MariaDB with Galera", address, child, folder));
        await_size(&mut nodes, number + 1)?;
    }
    let mut arbitrator = command_killed_with_parent("garbd");
    arbitrator.args(["--address", &members, "--group", "bench"]);
    arbitrator.arg("--options").arg(format!("gmcast.listen_addr=tcp://127.0.0.1:{}", port()?));
    arbitrator.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let arbitrator = arbitrator.spawn().explain("garbd, of the package galera-arbitrator-4")?;
    let mut galera = Galera { nodes, arbitrator };
    await_size(&mut galera.nodes, NODES + 1)?;
    Ok(galera)
}

/// Gives the folder to the user that runs the nodes: root's rsync would serve it as nobody. Returns the
/// option of MariaDB.
fn own_folder(folder: &Path) -> Outcome<String> {
    if !rustix::process::geteuid().is_root() {
        let finished = command::run(Command::new("id").arg("-un"), READY_TIME_MAX)?;
        return Ok(format!("--user={}", finished.output.trim()));
    }
    let finished = command::run(Command::new("chown").arg("mysql").arg(folder), READY_TIME_MAX)?;
    match finished.status.success() {
        true => Ok("--user=mysql".into()),
        false => Err(Failure::new(format!("chown: {}", finished.errors.trim()))),
    }
}

/// Waits until the last node serves in a cluster of this many members.
fn await_size(nodes: &mut [Server], size: usize) -> Outcome<()> {
    let end = Instant::now() + READY_TIME_MAX;
    let Some(last) = nodes.last_mut() else { return Ok(()) };
    loop {
        let query = "SELECT CONCAT(VARIABLE_VALUE, (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE \
                     VARIABLE_NAME = 'wsrep_ready')) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = \
                     'wsrep_cluster_size'";
        let seen = last.connect().and_then(|mut session| Ok(session.query_value(query)?));
        if seen.as_ref().is_ok_and(|seen| *seen == Some(format!("{size}ON"))) {
            return Ok(());
        }
        last.require_alive()?;
        if Instant::now() > end {
            let log = last.log_end();
            return Err(Failure::new(format!("Galera has no {size} members: {:?}\n{log}", seen.ok())));
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

impl Drop for Galera {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.arbitrator.kill();
        let _ = self.arbitrator.wait();
    }
}
