//! The server: one thread, a bounded number of connections, one request for each.
#![allow(clippy::disallowed_methods, reason = "deadlines are by the clock, outside every block")]

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use junctor_front::Readiness;
use junctor_signals::restart_progress::{PhaseProgress, RestartProgress};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::metrics::Scrape;
use super::request::{Asked, HEAD_BYTES_MAX, read};

/// Maximum number of connections. One more takes the place of the oldest.
const CONNECTIONS_MAX: usize = 32;

/// Maximum duration of a connection.
const DEADLINE: Duration = Duration::from_secs(5);

/// Maximum time for reading the metrics.
const SCRAPE_MAX: Duration = Duration::from_secs(3);

/// Interval at which the thread checks whether it must end.
const POLL_MS: i64 = 200;

/// What the server knows of its node.
#[derive(Clone)]
pub struct Probe {
    /// Whether the node serves clients.
    pub readiness: Arc<Readiness>,
    /// Whether the node is being stopped.
    pub stopping: Arc<AtomicBool>,
    /// The phases of the start.
    pub progress: Arc<RestartProgress>,
    /// Whether the node belongs to a cluster.
    pub is_member: bool,
    /// Makes connections in memory.
    pub connector: junctor_kernel::Connector,
}

impl Probe {
    fn is_ready(&self) -> bool {
        self.readiness.is_open() && !self.is_stopping()
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Why the node does not serve clients; `None` if it does.
    fn obstacle(&self) -> Option<String> {
        if self.is_stopping() {
            return Some("stopping".to_owned());
        }
        if self.readiness.is_open() {
            return None;
        }
        let phase = self.progress.phases().find(|phase| phase.ended.is_none());
        Some(match phase {
            Some(PhaseProgress { phase, .. }) => format!("recovering: {}", phase.name()),
            None if self.is_member => "waiting for the cluster".to_owned(),
            None => "starting".to_owned(),
        })
    }
}

/// A running server. It ends when it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl HttpServer {
    /// Listens, and starts the threads.
    ///
    /// # Errors
    /// The address cannot be listened at, or no thread can be started.
    pub fn start(address: SocketAddr, probe: Probe) -> std::io::Result<HttpServer> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        // One reading of the metrics at a time.
        let (ask, asked) = sync_channel::<()>(1);
        let (answer, answers) = sync_channel::<String>(1);
        let reader = probe.clone();
        let metrics = std::thread::Builder::new().name("metrics".into());
        let metrics = metrics.spawn(move || read_metrics(&reader, &asked, &answer))?;
        let loop_ends = Arc::clone(&ends);
        let http = std::thread::Builder::new().name("http".into());
        let server = Server { listener, connections: VecDeque::new(), probe, ask, answers, is_answer_late: false };
        let http = http.spawn(move || server.run(&loop_ends))?;
        Ok(HttpServer { address, ends, threads: vec![http, metrics] })
    }

    /// The address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // The thread of the metrics ends with that of the server. It may wait for a node that does not
        // answer, so only the server's is awaited.
        if let Some(http) = self.threads.drain(..).next() {
            let _ = http.join();
        }
    }
}

fn read_metrics(probe: &Probe, asked: &Receiver<()>, answer: &SyncSender<String>) {
    while asked.recv().is_ok() {
        let scrape = junctor_client::block_on(Scrape::read(&probe.connector, probe.is_ready()));
        if answer.send(scrape.text()).is_err() {
            return;
        }
    }
}

struct Server {
    listener: TcpListener,
    connections: VecDeque<HttpConnection>,
    probe: Probe,
    ask: SyncSender<()>,
    answers: Receiver<String>,
    /// Whether an answer about metrics that nobody awaits is still to come.
    is_answer_late: bool,
}

struct HttpConnection {
    stream: TcpStream,
    deadline: Instant,
    received: Vec<u8>,
    /// The answer, and how much of it is sent. `None` until the request is complete.
    answer: Option<(Vec<u8>, usize)>,
}

impl Server {
    fn run(mut self, ends: &AtomicBool) {
        while !ends.load(Ordering::Relaxed) {
            self.wait();
            self.accept();
            let mut connections = std::mem::take(&mut self.connections);
            connections.retain_mut(|connection| self.serve(connection));
            self.connections = connections;
        }
    }

    fn wait(&self) {
        let mut files = vec![PollFd::new(&self.listener, PollFlags::IN)];
        for connection in &self.connections {
            let wanted = if connection.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
            files.push(PollFd::new(&connection.stream, wanted));
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: POLL_MS * 1_000_000 };
        // An interrupted poll is repeated by the loop.
        let _ = poll(&mut files, Some(&timeout));
    }

    fn accept(&mut self) {
        for _ in 0..CONNECTIONS_MAX {
            let Ok((stream, _)) = self.listener.accept() else { return };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.connections.len() == CONNECTIONS_MAX {
                self.connections.pop_front();
            }
            let deadline = Instant::now() + DEADLINE;
            self.connections.push_back(HttpConnection { stream, deadline, received: Vec::new(), answer: None });
        }
    }

    /// Takes a connection forward. Returns whether it goes on.
    fn serve(&mut self, connection: &mut HttpConnection) -> bool {
        if Instant::now() >= connection.deadline {
            return false;
        }
        if connection.answer.is_none() {
            match connection.receive() {
                Ok(true) => {}
                Ok(false) => return true,
                Err(()) => return false,
            }
            let answer = match read(&connection.received) {
                Asked::Incomplete => return true,
                Asked::Path { path, is_head } => self.answer(path, is_head),
                Asked::Refused(status) => response(status, "", false),
            };
            connection.answer = Some((answer, 0));
        }
        connection.send()
    }

    fn answer(&mut self, path: &str, is_head: bool) -> Vec<u8> {
        match path {
            "/health" => response(200, "ok\n", is_head),
            "/health/live" => json(200, "live", None, is_head),
            "/health/ready" => match self.probe.obstacle() {
                None => json(200, "ready", None, is_head),
                Some(reason) => json(503, "not ready", Some(&reason), is_head),
            },
            "/ready" if self.probe.is_ready() => response(200, "ready\n", is_head),
            "/ready" if self.probe.is_stopping() => response(503, "stopping\n", is_head),
            "/ready" => response(503, "recovering\n", is_head),
            "/metrics" => match self.metrics() {
                Some(text) => response(200, &text, is_head),
                None => response(503, "the node does not answer\n", is_head),
            },
            _ => response(404, "", is_head),
        }
    }

    fn metrics(&mut self) -> Option<String> {
        if std::mem::take(&mut self.is_answer_late) {
            // The last reading must end first.
            self.is_answer_late = self.answers.try_recv().is_err();
            if self.is_answer_late {
                return None;
            }
        }
        self.ask.try_send(()).ok()?;
        match self.answers.recv_timeout(SCRAPE_MAX) {
            Ok(text) => Some(text),
            Err(error) => {
                self.is_answer_late = error == RecvTimeoutError::Timeout;
                None
            }
        }
    }
}

impl HttpConnection {
    /// Reads what has arrived. Returns whether there is anything new; fails if the client is gone.
    fn receive(&mut self) -> Result<bool, ()> {
        let mut is_new = false;
        while self.received.len() <= HEAD_BYTES_MAX {
            let mut bytes = [0; 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(()),
                Ok(count) => {
                    self.received.extend_from_slice(&bytes[..count]);
                    is_new = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(()),
            }
        }
        Ok(is_new)
    }

    /// Sends as much of the answer as the client takes. Returns whether there is more.
    fn send(&mut self) -> bool {
        let Some((answer, sent)) = &mut self.answer else { return true };
        while *sent < answer.len() {
            match self.stream.write(&answer[*sent..]) {
                Ok(count) => *sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        false
    }
}

/// An answer in JSON. `reason` is a text of this program.
fn json(status: u16, state: &str, reason: Option<&str>, is_head: bool) -> Vec<u8> {
    let reason = reason.map(|reason| format!(",\"reason\":\"{reason}\"")).unwrap_or_default();
    let body = format!("{{\"status\":\"{state}\"{reason}}}\n");
    typed_response(status, "application/json", &body, is_head)
}

fn response(status: u16, body: &str, is_head: bool) -> Vec<u8> {
    typed_response(status, "text/plain; version=0.0.4; charset=utf-8", body, is_head)
}

fn typed_response(status: u16, content_type: &str, body: &str, is_head: bool) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        431 => "Request Header Fields Too Large",
        505 => "HTTP Version Not Supported",
        _ => "Service Unavailable",
    };
    let body = if body.is_empty() { format!("{status} {reason}\n") } else { body.to_owned() };
    let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{allow}\
         Connection: close\r\n\r\n",
        body.len()
    );
    let mut bytes = head.into_bytes();
    if !is_head {
        bytes.extend_from_slice(body.as_bytes());
    }
    bytes
}
