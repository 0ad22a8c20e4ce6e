//! Starts Junctor as a process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::server::{self, command_killed_with_parent};
use super::{Server, TemporaryFolder};
use crate::failure::Explain;
use crate::{Failure, Outcome};

/// Options for starting a node.
#[derive(Clone, Debug, Default)]
pub struct JunctorOptions {
    /// The binary; `None` for `junctor` in the folder of this program.
    pub binary: Option<PathBuf>,
    /// Whether each commit is on disk before it is acknowledged. Otherwise the node keeps data in memory
    /// only.
    pub is_durable: bool,
    /// The data directory of a durable node, which outlives the node; `None` takes a temporary one.
    pub data_folder: Option<PathBuf>,
    /// Further options of `junctor serve`.
    pub arguments: Vec<String>,
    /// Lines of the configuration file, such as `NoOfFragmentLogFiles = 4`.
    pub settings: Vec<String>,
    /// A wrapper program with its options under which the binary runs, such as valgrind. Empty for none.
    pub wrapper: Vec<String>,
    /// Seconds within which the node must be ready; 0 means 60.
    pub ready_time_max_s: u64,
}

impl JunctorOptions {
    /// Adds `--thread-config`. Threads are not bound to CPUs.
    pub fn with_placement(&self, thread_config: &str) -> JunctorOptions {
        let mut options = self.clone();
        options.arguments.extend(["--no-cpu-binding", "--thread-config", thread_config].map(String::from));
        options
    }

    /// Adds options of `junctor serve`.
    pub fn with_arguments(&self, arguments: &[&str]) -> JunctorOptions {
        let mut options = self.clone();
        options.arguments.extend(arguments.iter().map(|argument| (*argument).to_string()));
        options
    }

    /// Adds lines of the configuration file.
    pub fn with_settings(&self, settings: &[&str]) -> JunctorOptions {
        let mut options = self.clone();
        options.settings.extend(settings.iter().map(|line| (*line).to_string()));
        options
    }

    /// The path of the binary.
    ///
    /// # Errors
    /// The binary does not exist.
    pub fn binary(&self) -> Outcome<PathBuf> {
        let path = match &self.binary {
            Some(path) => path.clone(),
            None => std::env::current_exe()?.with_file_name("junctor"),
        };
        if path.is_file() {
            Ok(path)
        } else {
            Err(Failure::new(format!("{} does not exist; build it first", path.display())))
        }
    }
}

/// Starts Junctor on a free port, with a new folder, and waits for its line `ready: mysql ADDRESS:PORT`.
///
/// # Errors
/// The server did not become ready. The error includes the end of its log.
pub fn start_junctor(options: &JunctorOptions) -> Outcome<Server> {
    start_junctor_observed(options, |_| {})
}

/// As [`start_junctor`]. `observe` gets the process id as soon as the process exists.
///
/// # Errors
/// As [`start_junctor`].
pub fn start_junctor_observed(options: &JunctorOptions, observe: impl FnOnce(u32)) -> Outcome<Server> {
    let folder = TemporaryFolder::new("junctor")?;
    let path = options.binary()?.to_string_lossy().into_owned();
    let binary = path.as_str();
    let mut words = options.wrapper.clone();
    words.extend([binary, "serve", "--port", "0"].map(String::from));
    if options.is_durable {
        let data = options.data_folder.clone().unwrap_or_else(|| folder.path().join("data"));
        words.extend(["--data-dir".into(), data.to_string_lossy().into_owned()]);
    } else {
        words.push("--in-memory".into());
    }
    if !options.settings.is_empty() {
        let file = folder.path().join("junctor.toml");
        fs::write(&file, options.settings.join("\n")).explain(file.display())?;
        words.extend(["--config".into(), file.to_string_lossy().into_owned()]);
    }
    words.extend(options.arguments.iter().cloned());
    let mut command = command_killed_with_parent(&words[0]);
    command.args(&words[1..]);
    let child = spawn("Junctor", &mut command, &folder)?;
    observe(child.id());
    await_ready_line("Junctor", child, "ready: mysql ", folder, options.ready_time_max_s)
}

/// Starts a server that prints `prefix ADDRESS:PORT` to standard output once it is ready.
///
/// # Errors
/// The server did not become ready. The error includes the end of its log.
pub fn start_with_ready_line(
    name: &'static str,
    mut command: Command,
    prefix: &'static str,
    folder: TemporaryFolder,
    time_max_s: u64,
) -> Outcome<Server> {
    let child = spawn(name, &mut command, &folder)?;
    await_ready_line(name, child, prefix, folder, time_max_s)
}

fn spawn(name: &str, command: &mut Command, folder: &TemporaryFolder) -> Outcome<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(folder.path().join("log"))?);
    command.spawn().explain(name)
}

fn await_ready_line(
    name: &'static str,
    mut child: Child,
    prefix: &'static str,
    folder: TemporaryFolder,
    time_max_s: u64,
) -> Outcome<Server> {
    let time_max = Duration::from_secs(if time_max_s == 0 { 60 } else { time_max_s });
    match ready_address(&mut child, prefix, time_max) {
        Some(address) => Ok(Server::new(name, address, child, folder)),
        None => {
            child.kill()?;
            let status = child.wait()?;
            Err(Failure::new(format!("{name} did not become ready ({status})\n{}", server::log_end(&folder))))
        }
    }
}

fn ready_address(child: &mut Child, prefix: &'static str, time_max: Duration) -> Option<SocketAddr> {
    let output = BufReader::new(child.stdout.take()?);
    let (sender, receiver) = mpsc::channel();
    // Read to the end, because a full pipe would block the server and a closed pipe would stop it.
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if let Some(rest) = line.strip_prefix(prefix) {
                let address = rest.split_whitespace().next().and_then(|word| word.parse().ok());
                let _ = sender.send(address);
            }
        }
    });
    receiver.recv_timeout(time_max).ok().flatten()
}
