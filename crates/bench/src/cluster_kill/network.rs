//! A network of its own for each node: a namespace with one cable to a common bridge.
//!
//! The program itself runs in a namespace of its own, too, so that no interface of the machine changes. A
//! namespace lasts as long as a process holds it. Each is held by a process that ends with this program, so
//! nothing has to be removed, even after a kill.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Explain;
use crate::process::command;
use crate::process::server::command_killed_with_parent;
use crate::{Failure, Outcome};

/// The longest time of a change of the network.
const TIME_MAX: Duration = Duration::from_secs(20);
/// Most nodes with a network.
pub const NODES_MAX: u8 = 32;
/// Tells a program that it runs in the namespace already.
const INSIDE: &str = "JUNCTOR_BENCH_NAMESPACE";

/// The bridge, and the namespaces of the nodes, whose numbers start at 1.
pub struct Network {
    holders: Vec<Child>,
}

/// Replaces this process by the same command in a network namespace of its own, unless it has one.
///
/// # Errors
/// The system refuses the namespace.
pub fn enter() -> Outcome<()> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(());
    }
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--"]).arg(std::env::current_exe()?).args(std::env::args_os().skip(1));
    let failure = command.env(INSIDE, "1").exec();
    Err(Failure::new(format!("unshare, of the package util-linux: {failure}")))
}

/// The address of a node, or with 0 that of this program.
pub fn address(node: u8) -> String {
    format!("10.99.0.{}", if node == 0 { 254 } else { node })
}

fn ip(line: &str) -> Outcome<()> {
    run("ip", line.split(' '))
}

fn run<'a>(program: &str, words: impl Iterator<Item = &'a str>) -> Outcome<()> {
    let words: Vec<&str> = words.collect();
    let finished = command::run(Command::new(program).args(&words), TIME_MAX)?;
    match finished.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("{program} {}: {}", words.join(" "), finished.errors.trim()))),
    }
}

impl Network {
    /// Makes the network of some nodes.
    ///
    /// # Errors
    /// The system refuses an interface or a namespace.
    pub fn new(nodes: u8) -> Outcome<Network> {
        if nodes > NODES_MAX {
            return Err(Failure::new(format!("at most {NODES_MAX} nodes")));
        }
        ip("link set lo up")?;
        ip("link add nodes type bridge forward_delay 0")?;
        ip(&format!("addr add {}/24 dev nodes", address(0)))?;
        ip("link set nodes up")?;
        let mut network = Network { holders: Vec::new() };
        for node in 1..=nodes {
            network.holders.push(hold()?);
            let path = network.path(node);
            let process = network.holders[usize::from(node) - 1].id();
            ip(&format!("link add node{node} type veth peer name eth0 netns {process}"))?;
            ip(&format!("link set node{node} master nodes up"))?;
            for line in ["link set lo up", "link set eth0 up", &format!("addr add {}/24 dev eth0", address(node))] {
                run("nsenter", [path.as_str(), "--", "ip"].into_iter().chain(line.split(' ')))?;
            }
        }
        Ok(network)
    }

    /// The option of nsenter for the namespace of a node.
    fn path(&self, node: u8) -> String {
        format!("--net=/proc/{}/ns/net", self.holders[usize::from(node) - 1].id())
    }

    /// A command in the namespace of a node, which is killed when this thread ends.
    pub fn command(&self, node: u8, program: &str) -> Command {
        let mut command = command_killed_with_parent("nsenter");
        command.arg(self.path(node)).args(["--", program]);
        command
    }

    /// Pulls the cable of a node, or plugs it in.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn set_cable(&self, node: u8, is_in: bool) -> Outcome<()> {
        ip(&format!("link set node{node} {}", if is_in { "up" } else { "down" }))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            // It may have ended.
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// A process that does nothing in a new namespace.
fn hold() -> Outcome<Child> {
    let mut command = command_killed_with_parent("unshare");
    command.args(["--net", "--", "sleep", "infinity"]).stdin(Stdio::null());
    let holder = command.spawn().explain("unshare")?;
    let own = std::fs::read_link("/proc/self/ns/net")?;
    let end = Instant::now() + TIME_MAX;
    while std::fs::read_link(format!("/proc/{}/ns/net", holder.id())).explain("a namespace")? == own {
        if Instant::now() > end {
            return Err(Failure::new("unshare made no namespace"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(holder)
}
