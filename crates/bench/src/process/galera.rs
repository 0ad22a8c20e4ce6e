//! Starts a cluster of Debian's MariaDB with Galera: two nodes with all data, and an arbitrator that votes.

use std::env;
use std::ffi::OsString;
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
/// The program by which a node that joins gets the data of another.
const COPY: &str = "wsrep_sst_rsync";
const READY_TIME_MAX: Duration = Duration::from_secs(120);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const NODES: usize = 2;
/// Root's rsync serves files as this user, so the nodes run as it.
const USER_OF_ROOT: &str = "nobody";

/// A running cluster. It is killed on drop.
pub struct Galera {
    /// The nodes, which all serve clients.
    pub nodes: Vec<Server>,
    /// Starts a node again, which then joins the others.
    commands: Vec<Command>,
    arbitrator: Child,
    /// Where the arbitrator writes its view of the group.
    _folder: TemporaryFolder,
}

/// Parts of the start that all nodes share.
struct Common<'a> {
    /// The addresses of the group.
    members: String,
    /// The user that runs them.
    user: String,
    search_path: OsString,
    more_arguments: &'a [&'a str],
}

/// Starts the nodes on free ports with new data folders. User root has no password.
///
/// # Errors
/// MariaDB, Galera, garbd or rsync is not installed, or a node did not become ready.
pub fn start_galera(more_arguments: &[&str]) -> Outcome<Galera> {
    if !Path::new(PROVIDER).exists() {
        return Err(Failure::new(format!("{PROVIDER} is missing")));
    }
    let mut group = [0; NODES];
    for group_port in &mut group {
        *group_port = free_port()?;
    }
    let members = format!("gcomm://{}", group.map(|port| format!("127.0.0.1:{port}")).join(","));
    let common = Common { members, user: user()?, search_path: search_path()?, more_arguments };
    let (mut nodes, mut commands) = (Vec::new(), Vec::new());
    for (number, group_port) in group.into_iter().enumerate() {
        let folder = common.new_folder()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let transfer_ports = [free_port()?, free_port()?];
        let daemon = || common.daemon(&folder, address, group_port, transfer_ports);
        let child = match number {
            0 => daemon()?.arg("--wsrep-new-cluster").spawn(),
            _ => daemon()?.spawn(),
        };
        commands.push(daemon()?);
        let mut node = Server::new("MariaDB with Galera", address, child.explain("mariadbd")?, folder);
        await_size(&mut node, number + 1)?;
        nodes.push(node);
    }
    let folder = TemporaryFolder::new("garbd")?;
    let mut arbitrator = command_killed_with_parent("garbd");
    arbitrator.current_dir(folder.path());
    arbitrator.args(["--address", &common.members, "--group", "bench"]);
    arbitrator.arg("--options").arg(format!("gmcast.listen_addr=tcp://127.0.0.1:{}", free_port()?));
    arbitrator.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let arbitrator = arbitrator.spawn().explain("garbd, of the package galera-arbitrator-4")?;
    let mut galera = Galera { nodes, commands, arbitrator, _folder: folder };
    galera.await_all()?;
    Ok(galera)
}

impl Galera {
    /// Starts a node that has ended, and waits until all nodes serve.
    ///
    /// # Errors
    /// They do not.
    pub fn start_again(&mut self, node: usize) -> Outcome<()> {
        let child = self.commands[node].spawn().explain("mariadbd")?;
        self.nodes[node].start_again(child);
        self.await_all()
    }

    fn await_all(&mut self) -> Outcome<()> {
        self.nodes.iter_mut().try_for_each(|node| await_size(node, NODES + 1))
    }
}

impl Common<'_> {
    /// Makes a folder with the data of a new node.
    fn new_folder(&self) -> Outcome<TemporaryFolder> {
        let folder = TemporaryFolder::new("galera")?;
        if rustix::process::geteuid().is_root() {
            run(Command::new("chown").arg(&self.user).arg(folder.path()))?;
        }
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        install.arg(format!("--user={}", self.user));
        install.arg(format!("--datadir={}", folder.path().join("data").display()));
        // The user of the nodes may not write where this program may.
        run(install.env("TMPDIR", folder.path()))?;
        Ok(folder)
    }

    /// The command of a node. Its ports of transfers are those for all data, and for the newest writes.
    fn daemon(
        &self,
        folder: &TemporaryFolder,
        address: SocketAddr,
        group_port: u16,
        transfer_ports: [u16; 2],
    ) -> Outcome<Command> {
        let [all, newest] = transfer_ports;
        let mut daemon = command_killed_with_parent(&daemon_path());
        daemon.arg("--no-defaults").arg(format!("--user={}", self.user)).args(ARGUMENTS);
        daemon.args(["--wsrep-on=ON", "--wsrep-cluster-name=bench", "--wsrep-sst-method=rsync"]);
        daemon.args(["--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-slave-threads=4"]);
        daemon.arg(format!("--wsrep-provider={PROVIDER}"));
        daemon.arg(format!("--wsrep-cluster-address={}", self.members));
        daemon.arg(format!("--wsrep-node-address=127.0.0.1:{group_port}"));
        daemon.arg(format!("--wsrep-sst-receive-address=127.0.0.1:{all}"));
        daemon.arg(format!(
            "--wsrep-provider-options=base_port={group_port};gmcast.listen_addr=tcp://127.0.0.1:{group_port};\
             ist.recv_addr=127.0.0.1:{newest}"
        ));
        daemon.arg(format!("--port={}", address.port()));
        for (option, file) in [("datadir", "data"), ("socket", "socket"), ("pid-file", "pid")] {
            daemon.arg(format!("--{option}={}", folder.path().join(file).display()));
        }
        daemon.args(self.more_arguments).env("TMPDIR", folder.path()).env("PATH", &self.search_path);
        let log = File::options().create(true).append(true).open(folder.path().join("log"))?;
        daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Ok(daemon)
    }
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Runs a program that must succeed.
fn run(program: &mut Command) -> Outcome<()> {
    let name = program.get_program().to_string_lossy().into_owned();
    let finished = command::run(program, READY_TIME_MAX)?;
    match finished.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("{name}: {}{}", finished.output, finished.errors.trim()))),
    }
}

/// The user that runs the nodes.
fn user() -> Outcome<String> {
    if rustix::process::geteuid().is_root() {
        return Ok(USER_OF_ROOT.into());
    }
    let finished = command::run(Command::new("id").arg("-un"), READY_TIME_MAX)?;
    Ok(finished.output.trim().into())
}

/// The folders of programs, with the one in which `tests/install-tools.sh` puts the programs of a package
/// that would install a service.
fn search_path() -> Outcome<OsString> {
    let unpacked = env::current_exe()?.with_file_name("../galera/usr/bin");
    let mut folders: Vec<_> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    folders.push(unpacked);
    if !folders.iter().any(|folder| folder.join(COPY).is_file()) {
        return Err(Failure::new(format!("{COPY} is missing")));
    }
    Ok(env::join_paths(folders)?)
}

/// Waits until a node serves in a cluster of this many members.
fn await_size(node: &mut Server, size: usize) -> Outcome<()> {
    let end = Instant::now() + READY_TIME_MAX;
    loop {
        let query = "SELECT CONCAT(VARIABLE_VALUE, (SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE \
                     VARIABLE_NAME = 'wsrep_ready')) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = \
                     'wsrep_cluster_size'";
        let seen = node.connect().and_then(|mut session| Ok(session.query_value(query)?));
        if seen.as_ref().is_ok_and(|seen| *seen == Some(format!("{size}ON"))) {
            return Ok(());
        }
        node.require_alive()?;
        if Instant::now() > end {
            let log = node.log_end();
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
