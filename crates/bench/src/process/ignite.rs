//! Starts a cluster of two nodes of Apache Ignite 2 from Maven Central, and a program with its clients.
//!
//! Both are Java programs in `peers/ignite`. They are compiled into a folder beside that of this program.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::junctor::start_with_ready_line;
use super::server::{self, command_killed_with_parent};
use super::{Server, TemporaryFolder, command};
use crate::failure::Explain;
use crate::{Failure, Outcome};

/// The files from which the programs are compiled.
const FILES: [(&str, &str); 7] = [
    ("pom.xml", include_str!("../../peers/ignite/pom.xml")),
    ("jvm.options", include_str!("../../peers/ignite/jvm.options")),
    ("Node.java", include_str!("../../peers/ignite/Node.java")),
    ("Client.java", include_str!("../../peers/ignite/Client.java")),
    ("Table.java", include_str!("../../peers/ignite/Table.java")),
    ("Load.java", include_str!("../../peers/ignite/Load.java")),
    ("Service.java", include_str!("../../peers/ignite/Service.java")),
];
const BUILD_TIME_MAX: Duration = Duration::from_secs(300);
const READY_TIME_MAX_S: u64 = 120;
const NODES: usize = 2;
/// The ports of a node: of its neighbour, of messages, of clients.
const PORTS: usize = 3;

/// A running cluster. It is killed on drop.
pub struct Ignite {
    /// The nodes, which all serve clients.
    pub nodes: Vec<Server>,
    /// The program with the clients.
    pub clients: IgniteClients,
    ports: [[u16; PORTS]; NODES],
    programs: PathBuf,
}

/// A program with clients that does what it is told, and answers by lines.
pub struct IgniteClients {
    child: Child,
    input: ChildStdin,
    lines: Receiver<(Instant, String)>,
    folder: TemporaryFolder,
}

/// Compiles the programs, and starts the cluster and the program of its clients.
///
/// # Errors
/// Java or Maven is not installed, Maven cannot fetch Ignite, or a node did not become ready.
pub fn start_ignite() -> Outcome<Ignite> {
    let programs = build()?;
    let mut ports = [[0; PORTS]; NODES];
    for port in ports.iter_mut().flatten() {
        *port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    }
    let nodes = (0..NODES).map(|node| start_node(&programs, &ports, node, node + 1)).collect::<Outcome<Vec<_>>>()?;
    let clients = IgniteClients::start(&programs, &nodes)?;
    Ok(Ignite { nodes, clients, ports, programs })
}

impl Ignite {
    /// Starts a node that has ended, and waits until it has all rows.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_again(&mut self, node: usize) -> Outcome<()> {
        self.nodes[node] = start_node(&self.programs, &self.ports, node, NODES)?;
        Ok(())
    }
}

/// Fetches the libraries, and compiles the programs, unless this was done before. Returns their folder.
fn build() -> Outcome<PathBuf> {
    let folder = env::current_exe()?.with_file_name("ignite");
    let sources: String = FILES.iter().map(|(_, text)| *text).collect();
    let built = folder.join("built");
    if fs::read_to_string(&built).is_ok_and(|text| text == sources) {
        return Ok(folder);
    }
    // Libraries of an earlier version must not stay.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).explain(folder.display())?;
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "dependency:copy-dependencies", "-DoutputDirectory=lib"]);
    let mut compiler = Command::new("javac");
    compiler.args(["-cp", "lib/*", "-d", "classes"]);
    compiler.args(FILES.iter().map(|(name, _)| name).filter(|name| name.ends_with(".java")));
    for program in [&mut maven, &mut compiler] {
        let finished = command::run(program.current_dir(&folder), BUILD_TIME_MAX)?;
        if !finished.status.success() {
            let name = program.get_program().to_string_lossy();
            return Err(Failure::new(format!("{name}: {}{}", finished.output, finished.errors.trim())));
        }
    }
    fs::write(&built, sources)?;
    Ok(folder)
}

/// A Java program of the folder.
fn java(programs: &Path, class: &str) -> Command {
    let mut java = command_killed_with_parent("java");
    let place = |name: &str| programs.join(name).display().to_string();
    java.arg(format!("@{}", place("jvm.options")));
    java.arg("-cp").arg(format!("{}:{}/*", place("classes"), place("lib"))).arg(class);
    java
}

/// Starts a node, and waits until the cluster has so many members.
fn start_node(programs: &Path, ports: &[[u16; PORTS]; NODES], node: usize, members: usize) -> Outcome<Server> {
    let folder = TemporaryFolder::new("ignite")?;
    let mut java = java(programs, "Node");
    java.arg(format!("node-{node}")).arg(folder.path()).args(ports[node].map(|port| port.to_string()));
    java.arg(members.to_string()).args(ports.map(|[discovery, ..]| discovery.to_string()));
    start_with_ready_line("Apache Ignite", java, "ready: ", folder, READY_TIME_MAX_S)
}

impl IgniteClients {
    fn start(programs: &Path, nodes: &[Server]) -> Outcome<IgniteClients> {
        let folder = TemporaryFolder::new("ignite-clients")?;
        let mut java = java(programs, "Client");
        java.args(nodes.iter().map(|node: &Server| SocketAddr::to_string(&node.address)));
        java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(folder.path().join("log"))?);
        let mut child = java.spawn().explain("java")?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("the clients of Ignite have no pipes"));
        };
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Ok(IgniteClients { child, input, lines, folder })
    }

    /// Sends a command, whose answer [`IgniteClients::answer`] returns.
    ///
    /// # Errors
    /// The program has ended.
    pub fn send(&mut self, command: &str) -> Outcome<()> {
        writeln!(self.input, "{command}").explain("the clients of Ignite")
    }

    /// Calls `see` with the client of each acknowledgement that came, and when it came.
    ///
    /// # Errors
    /// The command has ended.
    pub fn take_acknowledgements(&self, mut see: impl FnMut(Instant, u32)) -> Outcome<()> {
        while let Ok((at, line)) = self.lines.try_recv() {
            match line.split_once(' ') {
                Some(("ack", client)) => see(at, client.parse()?),
                Some(("done" | "failed", _)) => return Err(self.failure(&line)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits for the answer of a command. Acknowledgements before it are left out.
    ///
    /// # Errors
    /// The command failed, or took longer.
    pub fn answer(&self, time_max: Duration) -> Outcome<String> {
        let end = Instant::now() + time_max;
        loop {
            let Ok((_, line)) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) else {
                return Err(self.failure("the clients of Ignite do not answer"));
            };
            match line.split_once(' ') {
                Some(("done", answer)) => return Ok(answer.into()),
                Some(("failed", _)) => return Err(self.failure(&line)),
                // Ignite prints lines of its own, too.
                _ => {}
            }
        }
    }

    fn failure(&self, line: &str) -> Failure {
        Failure::new(format!("{line}\n{}", server::log_end(&self.folder)))
    }

    /// Sends a command, and returns the numbers of its answer.
    ///
    /// # Errors
    /// The command failed, or took longer.
    pub fn ask(&mut self, command: &str, time_max: Duration) -> Outcome<Vec<u64>> {
        self.send(command)?;
        numbers(&self.answer(time_max)?).explain(command)
    }
}

/// The numbers of an answer.
///
/// # Errors
/// The answer has something else.
pub fn numbers(answer: &str) -> Outcome<Vec<u64>> {
    answer.split_whitespace().map(|word| Ok(word.parse()?)).collect()
}

impl Drop for IgniteClients {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
