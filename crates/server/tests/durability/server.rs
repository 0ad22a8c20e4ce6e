//! The real server as a child process.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use junctor_bench::mysql::Connection;

pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

/// An empty folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("restart-{name}"));
    // A run that was interrupted may have left one.
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The command that starts a server on a directory.
pub fn command(folder: &PathBuf) -> Command {
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

impl Server {
    pub fn start(folder: &PathBuf) -> Server {
        Server::start_with(folder, &[])
    }

    /// Starts with more options. They may not repeat those of [`command`].
    pub fn start_with(folder: &PathBuf, options: &[&str]) -> Server {
        let mut child = command(folder).args(options).spawn().expect("the program runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("standard output is a pipe");
        BufReader::new(out).read_line(&mut line).expect("the program prints a line");
        let Some(address) = line.strip_prefix("ready: mysql ").and_then(|rest| rest.split(' ').next()) else {
            let mut errors = String::new();
            child.stderr.take().expect("standard error is a pipe").read_to_string(&mut errors).expect("text");
            panic!("the server did not start: {line}{errors}");
        };
        let address = address.parse().expect("an address");
        Server { child, address }
    }

    pub fn session(&self) -> Connection<TcpStream> {
        Connection::open(self.address, "").expect("root may log in")
    }

    /// SIGKILL: nothing is written or answered any more.
    pub fn kill(mut self) {
        self.child.kill().expect("the server runs");
        self.child.wait().expect("the server has ended");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if `kill` has ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
