//! A server process.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{TemporaryFolder, command, measure};
use crate::mysql::Connection;
use crate::{Failure, Outcome};

const STOP_TIME_MAX: Duration = Duration::from_secs(300);

/// A running server. It is killed on drop unless it was stopped earlier.
pub struct Server {
    /// Name in reports.
    pub name: &'static str,
    /// The address on which it listens.
    pub address: SocketAddr,
    child: Child,
    folder: TemporaryFolder,
}

impl Server {
    /// Takes ownership of a server that is ready at `address` and has its files in `folder`.
    pub fn new(name: &'static str, address: SocketAddr, child: Child, folder: TemporaryFolder) -> Server {
        Server { name, address, child, folder }
    }

    /// Process id.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time used so far.
    ///
    /// # Errors
    /// The server has ended.
    pub fn cpu_time(&self) -> Outcome<Duration> {
        measure::cpu_time(self.process_id())
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// The server has ended.
    pub fn resident_bytes(&self) -> Outcome<u64> {
        measure::resident_bytes(self.process_id())
    }

    /// Connects as root without a database.
    ///
    /// # Errors
    /// The server refuses the connection.
    pub fn connect(&self) -> Outcome<Connection> {
        Ok(Connection::open(self.address, "")?)
    }

    /// Runs statements that return no rows.
    ///
    /// # Errors
    /// A statement fails; the later ones are not executed.
    pub fn execute(&self, statements: &[&str]) -> Outcome<()> {
        let mut connection = self.connect()?;
        for statement in statements {
            connection.query(statement)?;
        }
        Ok(())
    }

    /// Checks that the server still runs.
    ///
    /// # Errors
    /// The server has ended.
    pub fn require_alive(&mut self) -> Outcome<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(Failure::new(format!("{} ended: {status}\n{}", self.name, self.log_end()))),
        }
    }

    /// Stops the server with SIGTERM and waits until it has ended.
    ///
    /// # Errors
    /// The server did not stop, or stopped with an error.
    pub fn stop(mut self) -> Outcome<()> {
        self.require_alive()?;
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        match command::wait(&mut self.child, STOP_TIME_MAX)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Failure::new(format!("{} stopped with {status}\n{}", self.name, self.log_end()))),
            None => Err(Failure::new(format!("{} did not stop within {} s", self.name, STOP_TIME_MAX.as_secs()))),
        }
    }

    /// Ends the server with SIGKILL, which it cannot notice.
    ///
    /// # Errors
    /// The server has ended already.
    pub fn kill(mut self) -> Outcome<()> {
        self.end()
    }

    /// As [`Server::kill`]. The server's files stay, and it can be started again.
    ///
    /// # Errors
    /// As [`Server::kill`].
    pub fn end(&mut self) -> Outcome<()> {
        self.require_alive()?;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Takes the process that was started instead of one that has ended.
    pub fn start_again(&mut self, child: Child) {
        self.child = child;
    }

    /// The last lines of the server's log.
    pub fn log_end(&self) -> String {
        log_end(&self.folder)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This fails if the server has already ended, which is harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command whose process is killed when the thread that started it ends. A killed test program therefore
/// leaves no server behind.
pub fn command_killed_with_parent(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// The last lines of the file `log` in a folder.
pub fn log_end(folder: &TemporaryFolder) -> String {
    let log = fs::read(folder.path().join("log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
