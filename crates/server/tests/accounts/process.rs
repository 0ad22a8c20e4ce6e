//! Logins to a server process: its first start, the password file, and starts without the checks of rights.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use junctor_bench::mysql::{ClientError, Connection};

use super::client::{Client, Login};

/// A server process, which is killed at the end.
struct Server {
    child: Child,
    address: SocketAddr,
    socket: PathBuf,
}

impl Server {
    fn start(folder: &Path, options: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_junctor"));
        let fixed = ["serve", "--port", "0", "--num-cpus", "2", "--no-cpu-binding", "--total-memory", "256M"];
        command.args(fixed).args(options).arg("--data-dir").arg(folder.join("data"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program runs");
        let out = child.stdout.take().expect("standard output is a pipe");
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("the program prints a line");
        let address = line.strip_prefix("ready: mysql ").and_then(|rest| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("no server: {line}")).parse().expect("an address");
        Server { child, address, socket: folder.join("data").join("mysql.sock") }
    }

    /// The error of a login of root without a password over TCP.
    fn tcp(&self) -> Result<String, u16> {
        Connection::open(self.address, "").and_then(|mut root| account(&mut root)).map_err(|error| error.errno())
    }

    /// The same over the Unix socket.
    fn socket(&self) -> Result<String, u16> {
        self.open_socket().and_then(|mut root| account(&mut root)).map_err(|error| error.errno())
    }

    fn open_socket(&self) -> Result<Connection<UnixStream>, ClientError> {
        Connection::log_in_over(UnixStream::connect(&self.socket).expect("the server listens"), "")
    }
}

impl Drop for Server {
    /// SIGKILL: what the server has answered must survive.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn account<S: std::io::Read + std::io::Write>(session: &mut Connection<S>) -> Result<String, ClientError> {
    Ok(session.query_value("SELECT CURRENT_USER()")?.unwrap_or_default())
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("accounts-{name}"));
    // A run that was interrupted may have left one.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

#[test]
fn a_first_start_has_root_without_a_password_on_this_machine_and_nobody_else() {
    let folder = folder("first");
    let server = Server::start(&folder, &[]);
    assert_eq!([server.tcp(), server.socket()], [Ok("root@localhost".to_owned()), Ok("root@localhost".to_owned())]);
    let mut root = server.open_socket().expect("root may log in");
    let count = root.query_value("SELECT COUNT(*) FROM mysql.user").expect("a number");
    assert_eq!(count.as_deref(), Some("1"));
    drop(server);
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn accounts_survive_a_kill_and_the_extra_port_checks_them() {
    let folder = folder("extra");
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let options = ["--extra-port", &port.to_string()];
    let server = Server::start(&folder, &options);
    let mut root = server.open_socket().expect("root may log in");
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT)",
        "CREATE USER u IDENTIFIED WITH mysql_native_password BY 'p' FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 1",
        "CREATE ROLE r",
        "GRANT SELECT ON d.* TO r",
        "GRANT r TO u",
        "SET DEFAULT ROLE r TO u",
    ] {
        root.query(statement).expect(statement);
    }
    drop(server);
    let server = Server::start(&folder, &options);
    let log_in = |address: SocketAddr, password| {
        loop {
            let stream = TcpStream::connect(address).expect("the server listens");
            match Client::log_in(stream, Login::new("u", password)).1.map_err(|fault| fault.errno) {
                // The extra port has one session, whose end the server learns in its own time.
                Err(1040) => std::thread::yield_now(),
                outcome => return outcome,
            }
        }
    };
    let extra = SocketAddr::new(server.address.ip(), port);
    for address in [server.address, extra] {
        let mut session = log_in(address, "p").expect("the user may log in");
        assert_eq!([session.errno("SELECT a FROM d.t"), session.errno("DELETE FROM d.t")], [0, 1142]);
    }
    // Failed logins count at both ports together.
    assert_eq!([log_in(extra, "x").err(), log_in(server.address, "x").err()], [Some(1045), Some(3955)]);
    assert_eq!([log_in(extra, "p").err(), log_in(server.address, "p").err()], [Some(3955); 2]);
    drop(server);
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_password_file_counts_once_and_skip_grant_tables_opens_the_socket_only() {
    let folder = folder("password");
    let file = folder.join("password");
    std::fs::write(&file, "a secret\nanother line\n").expect("a file can be written");
    let file = file.to_str().expect("a path");
    let denied = || [Err(1045), Err(1045)];
    let server = Server::start(&folder, &["--init-root-password-file", file]);
    assert_eq!([server.tcp(), server.socket()], denied());
    drop(server);
    let server = Server::start(&folder, &[]);
    assert_eq!([server.tcp(), server.socket()], denied(), "kill -9 has not removed the password");
    drop(server);
    let server = Server::start(&folder, &["--skip-grant-tables"]);
    assert_eq!(server.tcp(), Err(1045), "over TCP, accounts are checked as usual");
    assert_eq!(server.socket(), Ok("skip-grants user@SKIP-GRANTS HOST".to_owned()));
    let mut session = server.open_socket().expect("the socket is open");
    for statement in ["FLUSH PRIVILEGES", "ALTER USER root@localhost IDENTIFIED WITH caching_sha2_password BY ''"] {
        session.query(statement).expect(statement);
        if statement == "FLUSH PRIVILEGES" {
            assert_eq!([server.tcp(), server.socket()], denied(), "later logins are checked");
        }
    }
    assert_eq!([server.tcp(), server.socket()], [Ok("root@localhost".to_owned()), Ok("root@localhost".to_owned())]);
    drop(server);
    let server = Server::start(&folder, &["--init-root-password-file", file]);
    assert_eq!(server.tcp(), Ok("root@localhost".to_owned()), "the file counts at the first start only");
    drop(server);
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
