//! The real server as a child process.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use junctor_bench::mysql::Connection;
use rustix::process::{Pid, Signal, kill_process};

/// A server that has lost its disk must end within this time.
const END_TIME_MAX: Duration = Duration::from_secs(60);

const SMALL_FILES: &str = "FileIo = \"plain\"\nFragmentLogFileSize = \"1M\"\nTimeBetweenLocalCheckpoints = 0\n";

pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

/// How a server ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// The text on standard error.
    pub errors: String,
}

/// An empty folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("restart-{name}"));
    // A run that was interrupted may have left one.
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder can be made");
    for entry in std::fs::read_dir(from).expect("the folder exists") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if !kind.is_socket() {
            std::fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}

/// The command that starts a server on a directory.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_junctor"));
    command.args([
        "serve",
        "--port",
        "0",
        "--num-cpus",
        "2",
        "--no-cpu-binding",
        "--total-memory",
        "512M",
        "--durable",
    ]);
    command.arg("--data-dir").arg(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Such a command with a log in files of 1 MiB, one checkpoint after the other, and plain system calls, which
/// `strace` can see.
pub fn small_files_command(folder: &Path) -> Command {
    command_with_settings(folder, SMALL_FILES)
}

/// Such a command with these lines in its configuration file.
pub fn command_with_settings(folder: &Path, settings: &str) -> Command {
    let path = folder.with_extension("toml");
    std::fs::write(&path, settings).expect("a file can be written");
    let mut command = command(folder);
    command.arg("--config").arg(path);
    command
}

impl Server {
    pub fn start(folder: &Path) -> Server {
        Server::start_with(folder, &[])
    }

    /// Starts with more options. They may not repeat those of [`command`].
    pub fn start_with(folder: &Path, options: &[&str]) -> Server {
        let mut command = command(folder);
        command.args(options);
        Server::spawn(command)
            .unwrap_or_else(|ended| panic!("the server did not start: {}: {}", ended.status, ended.errors))
    }

    /// Starts without a disk, although a directory is named.
    pub fn start_in_memory(folder: &Path) -> Server {
        let settings = "Diskless = true\n";
        let mut command = Command::new(env!("CARGO_BIN_EXE_junctor"));
        let durable = command_with_settings(folder, settings);
        command.args(durable.get_args().filter(|option| *option != "--durable"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Server::spawn(command).unwrap_or_else(|ended| panic!("the server did not start: {ended:?}"))
    }

    /// Starts a command that [`command`] made.
    pub fn spawn(mut command: Command) -> Result<Server, Ended> {
        let mut child = command.spawn().expect("the program runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("standard output is a pipe");
        BufReader::new(out).read_line(&mut line).expect("the program prints a line");
        match line.strip_prefix("ready: mysql ").and_then(|rest| rest.split(' ').next()) {
            Some(address) => Ok(Server { child, address: address.parse().expect("an address") }),
            None => Err(Ended::of(&mut child)),
        }
    }

    pub fn session(&self) -> Connection<TcpStream> {
        Connection::open(self.address, "").expect("root may log in")
    }

    /// SIGKILL: nothing is written or answered any more.
    pub fn kill(mut self) {
        self.child.kill().expect("the server runs");
        self.child.wait().expect("the server has ended");
    }

    /// SIGTERM: the server stops by itself. Returns how the server ended.
    pub fn stop(self) -> Ended {
        // Fails if the server has ended.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        self.end()
    }

    /// Waits until the server ends by itself. `None` if it has not ended after `time_max`.
    pub fn wait(&mut self, time_max: Duration) -> Option<Ended> {
        let start = Instant::now();
        while start.elapsed() < time_max {
            if self.child.try_wait().expect("the server is a child").is_some() {
                return Some(Ended::of(&mut self.child));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Waits until the server ends by itself, which it must.
    pub fn end(mut self) -> Ended {
        self.wait(END_TIME_MAX).expect("a server that answers no more ends")
    }
}

impl Ended {
    fn of(child: &mut Child) -> Ended {
        let mut errors = String::new();
        child.stderr.take().expect("standard error is a pipe").read_to_string(&mut errors).expect("text");
        Ended { status: child.wait().expect("the server is a child"), errors }
    }

    /// Whether a signal with this number ended the server.
    pub fn is_by_signal(&self, signal: i32) -> bool {
        std::os::unix::process::ExitStatusExt::signal(&self.status) == Some(signal)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if the server has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends SIGTERM to a process.
pub fn terminate(process: i32) {
    let process = Pid::from_raw(process).expect("the number of a process");
    kill_process(process, Signal::TERM).expect("the process runs");
}

/// Reads text until it contains `wanted`, or ends.
pub fn read_until(mut source: impl Read, wanted: &str) -> String {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let count = source.read(&mut part).unwrap_or(0);
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes);
        if count == 0 || text.contains(wanted) {
            return text.into_owned();
        }
    }
}

pub fn run(session: &mut Connection<TcpStream>, statements: &[&str]) {
    for statement in statements {
        if let Err(error) = session.query(statement) {
            panic!("{statement}: {error:?}");
        }
    }
}

pub fn rows(session: &mut Connection<TcpStream>, statement: &str) -> Vec<Vec<String>> {
    let result = session.query(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".into());
    result.rows.iter().map(|row| row.iter().map(text).collect()).collect()
}
