//! The ways into a node: Unix socket, the port for administrators, and balancers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use junctor_node::NodeConfig;
use junctor_node::start::{RunningServer, start};
use junctor_signals::journal::LogKind;

/// A session of the MySQL protocol.
struct Client<S>(S);

impl<S: Read + Write> Client<S> {
    /// Logs in as root without a password. The error is that of the server.
    fn log_in(stream: S) -> Result<Client<S>, (u16, String)> {
        let mut client = Client(stream);
        client.answer()?;
        let login = [&[0, 0x82, 0, 0][..], &[0; 28], b"root\0\0"].concat();
        client.send(1, &login);
        client.answer()?;
        Ok(client)
    }

    fn send(&mut self, sequence: u8, payload: &[u8]) {
        let packet = [&(payload.len() as u32).to_le_bytes()[..3], &[sequence], payload].concat();
        self.0.write_all(&packet).expect("the server reads");
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.0.read_exact(&mut header).expect("a packet");
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.0.read_exact(&mut payload).expect("a packet");
        payload
    }

    /// The next packet, unless it is an error.
    fn answer(&mut self) -> Result<Vec<u8>, (u16, String)> {
        let payload = self.packet();
        match payload.as_slice() {
            [0xFF, low, high, text @ ..] => {
                Err((u16::from_le_bytes([*low, *high]), String::from_utf8_lossy(text).into_owned()))
            }
            _ => Ok(payload),
        }
    }

    /// Runs a statement without rows. Returns the number of its error, 0 for none.
    fn run(&mut self, statement: &str) -> u16 {
        self.send(0, &[b"\x03", statement.as_bytes()].concat());
        self.answer().err().map_or(0, |error| error.0)
    }

    /// The values of a query with one row.
    fn row(&mut self, query: &str) -> Vec<String> {
        self.send(0, &[b"\x03", query.as_bytes()].concat());
        let columns = usize::from(self.answer().expect("a result")[0]);
        for _ in 0..=columns {
            self.packet();
        }
        let row = self.packet();
        self.packet();
        let mut rest = row.as_slice();
        let mut values = Vec::new();
        while let [length, after @ ..] = rest {
            let (value, next) = after.split_at(usize::from(*length));
            values.push(String::from_utf8_lossy(value).into_owned());
            rest = next;
        }
        values
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("junctor-edges-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn node(change: impl FnOnce(&mut NodeConfig)) -> RunningServer {
    let mut config = NodeConfig {
        port: 0,
        cpu_binding: false,
        cpu_count_max: Some(2),
        total_memory_bytes: Some(64 << 20),
        has_tls: false,
        ..NodeConfig::default()
    };
    change(&mut config);
    start(&config).expect("the node starts")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn a_client_logs_in_over_the_unix_socket() {
    let folder = folder("socket");
    let path = folder.join("mysql.sock");
    let text = path.to_string_lossy().into_owned();
    let node = node(|config| {
        config.socket = Some(text.clone());
        // Nobody but the two processes can read a Unix socket.
        config.secure_transport_required = true;
    });
    assert_eq!(node.socket(), Some(path.as_path()));
    let mut client = Client::log_in(UnixStream::connect(&path).expect("it listens")).expect("root may log in");
    assert_eq!(client.row("SELECT USER(), @@socket"), ["root@localhost", &text]);
    let refused = Client::log_in(TcpStream::connect(node.address().expect("it listens")).expect("it listens"));
    assert_eq!(refused.err().map(|error| error.0), Some(3159));
    assert_eq!(node.stop(), Ok(()));
    assert!(!path.exists(), "the socket goes with its node");
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn a_path_that_cannot_be_used_refuses_the_start() {
    let folder = folder("refused");
    let path = folder.join("file");
    std::fs::write(&path, "text").expect("a file");
    let config = NodeConfig { port: 0, socket: Some(path.to_string_lossy().into_owned()), ..NodeConfig::default() };
    let error = start(&config).err().expect("a file is in the way").to_string();
    assert!(error.contains("exists and is no socket"), "{error}");
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn the_extra_port_and_its_sessions_are_outside_of_all_queues() {
    let port = free_port();
    let node = node(|config| {
        config.max_connections = 1;
        config.extra_port = port;
        config.extra_max_connections = 2;
    });
    let connect = |address| Client::log_in(TcpStream::connect(address).expect("it listens"));
    let address = node.address().expect("it listens");
    let extra = node.extra_address().expect("it listens");
    assert_eq!(extra.port(), port);
    let mut crowd = connect(address).expect("the only connection");
    assert_eq!(connect(address).err().map(|error| error.0), Some(1040));
    let mut root = connect(extra).expect("the extra port");
    let status = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = ";
    let mut value = |name: &str| root.row(&format!("{status}'{name}'")).remove(0);
    assert_eq!(value("Threads_connected"), "2");
    assert!(value("Threadpool_threads").parse::<u32>().expect("a number") > 0);
    assert_eq!(value("Connection_errors_max_connections"), "1");
    assert_eq!(crowd.row("SELECT @@extra_max_connections"), ["2"]);
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn the_client_of_a_balancer_is_the_one_in_its_header() {
    let node = node(|config| config.proxy_protocol_networks = "127.0.0.0/8".into());
    let address = node.address().expect("it listens");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"PROXY TCP4 203.0.113.9 192.0.2.7 5000 3306\r\n").expect("it reads");
    // Root may log in from this machine only, and the client is not on it. The decoy of an unknown account
    // needs a method that this client does not have.
    assert_eq!(Client::log_in(stream).err().map(|error| error.0), Some(1251));
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"PROXY TCP4 127.0.0.1 192.0.2.7 5000 3306\r\n").expect("it reads");
    assert!(Client::log_in(stream).is_ok());
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it reads");
    let mut received = Vec::new();
    // A closed connection may be a reset, since the server has not read everything.
    let _ = stream.read_to_end(&mut received);
    assert_eq!(received, b"");
    assert_eq!(node.stop(), Ok(()));
}

/// The answer to a request over HTTP.
fn http(node: &RunningServer, request: &str) -> String {
    let mut stream = TcpStream::connect(node.http_address().expect("it listens")).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    // A refused request may end in a reset, after its answer.
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn http_serves_health_readiness_and_metrics() {
    let node = node(|config| config.http_port = Some(0));
    let get = |path: &str| http(&node, &format!("GET {path} HTTP/1.1\r\nHost: node\r\n\r\n"));
    assert!(get("/health").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(get("/ready").ends_with("\r\n\r\nready\n"));
    assert!(get("/health/live").ends_with("\r\n\r\n{\"status\":\"live\"}\n"));
    assert!(get("/health/ready").starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"));
    assert!(get("/nowhere").starts_with("HTTP/1.1 404 "));
    let metrics = get("/metrics");
    for line in [
        "\njunctor_ready 1\n",
        "\njunctor_scrape_failed_queries 0\n",
        "\n# TYPE junctor_sql_questions_total counter\n",
        "\njunctor_recv_connections_total{instance=\"0\"} ",
        "\njunctor_status_threads_connected 0\n",
        "\njunctor_thread_pool_slots{group_id=\"0\"} ",
    ] {
        assert!(metrics.contains(line), "{line:?} in {metrics}");
    }
    assert!(http(&node, "POST /metrics HTTP/1.1\r\nHost: node\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(http(&node, "\x16\x03\x01").starts_with("HTTP/1.1 400 "));
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn the_logs_have_what_was_done_and_no_password() {
    let folder = folder("logs");
    let path = |name: &str| Some(folder.join(name).to_string_lossy().into_owned());
    let node = node(|config| {
        config.log_files = [path("error"), path("general"), path("slow"), path("audit")];
        config.logs_on = vec![LogKind::Audit];
        config.has_json_logs = true;
    });
    let connect = || TcpStream::connect(node.address().expect("it listens")).expect("it listens");
    let mut root = Client::log_in(connect()).expect("root may log in");
    assert_eq!(root.run("SET GLOBAL slow_query_log = ON, GLOBAL long_query_time = 0"), 0);
    let mut other = Client::log_in(connect()).expect("root may log in");
    assert_eq!(other.run("CREATE DATABASE d"), 0);
    assert_eq!(other.run("DROP TABLE d.nothing"), 1051);
    assert_eq!(other.row("SELECT 'not in the general log'"), ["not in the general log"]);
    assert_eq!(root.run("SET GLOBAL general_log = ON"), 0);
    assert_ne!(other.run("ALTER USER nobody IDENTIFIED BY 'topsecret'"), 0);
    assert_eq!(other.row("SELECT 'in the general log'"), ["in the general log"]);
    assert_eq!(root.run("FLUSH LOGS"), 0);
    assert_eq!(root.run("FLUSH TABLES WITH NOTHING"), 1235);
    drop(other);
    assert_eq!(node.stop(), Ok(()));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let (general, slow, audit) = (read("general"), read("slow"), read("audit"));
    assert!(general.contains("Query\tSELECT 'in the general log'\n"), "{general}");
    assert!(!general.contains("not in the general log"), "{general}");
    assert!(general.contains("ALTER USER nobody IDENTIFIED BY <secret>"), "{general}");
    assert!(slow.contains("# Query_time: 0.0") && slow.contains("SELECT 'not in the general log';\n"), "{slow}");
    for part in [
        r#""event":"connect","connection":1,"user":"root","host":"localhost","error":0"#,
        r#""error":0,"text":"CREATE DATABASE d""#,
        r#""error":1051,"text":"DROP TABLE d.nothing""#,
        r#""event":"settings""#,
        r#""event":"rights""#,
    ] {
        assert!(audit.contains(part), "{part} in {audit}");
    }
    for log in [&general, &slow, &audit, &read("error")] {
        assert!(!log.contains("topsecret"), "{log}");
    }
    std::fs::remove_dir_all(folder).expect("the folder");
}
