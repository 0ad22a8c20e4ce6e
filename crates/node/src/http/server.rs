//! The server: one thread, a bounded number of connections, one request for each.
#![allow(clippy::disallowed_methods, reason = "deadlines are by the clock, outside every block")]

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use junctor_front::Readiness;
use junctor_kernel::Connector;
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

/// Interval at which it checks whether the metrics have been read, while a client waits for them.
const METRICS_POLL_MS: i64 = 5;

/// What the server knows of its node.
#[derive(Clone)]
pub struct Probe {
    /// Whether the node has opened to clients.
    pub readiness: Arc<Readiness>,
    /// Whether the node is being stopped.
    pub stopping: Arc<AtomicBool>,
    /// The phases of the start.
    pub progress: Arc<RestartProgress>,
    /// Whether the node belongs to a cluster.
    pub is_member: bool,
}

impl Probe {
    fn is_ready(&self) -> bool {
        self.obstacle().is_none()
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Why the node has not opened to clients, or stops; `None` otherwise. A node that has lost its cluster
    /// stays open: it takes clients, and answers their statements with errors.
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
    /// Listens, and starts the threads. One of them reads the metrics over connections of `connector`.
    ///
    /// # Errors
    /// The address cannot be listened at, or no thread can be started.
    pub fn start(address: SocketAddr, probe: Probe, connector: Connector) -> std::io::Result<HttpServer> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let ends = Arc::new(AtomicBool::new(false));
        // One reading of the metrics at a time.
        let (ask, asked) = sync_channel::<()>(1);
        let (answer, answers) = sync_channel::<String>(1);
        let reader = probe.clone();
        let metrics = std::thread::Builder::new().name("metrics".into());
        let metrics = metrics.spawn(move || read_metrics((&reader, &connector), &asked, &answer))?;
        let loop_ends = Arc::clone(&ends);
        let http = std::thread::Builder::new().name("http".into());
        let server = Server { listener, connections: VecDeque::new(), probe, ask, answers, is_reading: false };
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

fn read_metrics((probe, connector): (&Probe, &Connector), asked: &Receiver<()>, answer: &SyncSender<String>) {
    while asked.recv().is_ok() {
        let scrape = junctor_client::block_on(Scrape::read(connector, probe.is_ready()));
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
    /// Whether the metrics are being read. All clients that ask meanwhile get the same answer.
    is_reading: bool,
}

struct HttpConnection {
    stream: TcpStream,
    deadline: Instant,
    received: Vec<u8>,
    /// Until when the client waits for the metrics, and whether its answer has no body.
    awaits_metrics: Option<(Instant, bool)>,
    /// The answer, and how much of it is sent. `None` until there is one.
    answer: Option<(Vec<u8>, usize)>,
}

impl Server {
    fn run(mut self, ends: &AtomicBool) {
        while !ends.load(Ordering::Relaxed) {
            self.wait();
            self.accept();
            let metrics = self.answers.try_recv().ok();
            self.is_reading &= metrics.is_none();
            let mut connections = std::mem::take(&mut self.connections);
            connections.retain_mut(|connection| self.serve(connection, metrics.as_deref()));
            self.connections = connections;
        }
    }

    fn wait(&self) {
        let mut files = vec![PollFd::new(&self.listener, PollFlags::IN)];
        let is_polled = |connection: &&HttpConnection| connection.awaits_metrics.is_none();
        for connection in self.connections.iter().filter(is_polled) {
            let wanted = if connection.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
            files.push(PollFd::new(&connection.stream, wanted));
        }
        let has_waiting = files.len() <= self.connections.len();
        let interval_ms = if has_waiting { METRICS_POLL_MS } else { POLL_MS };
        let timeout = Timespec { tv_sec: 0, tv_nsec: interval_ms * 1_000_000 };
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
            let received = Vec::new();
            self.connections.push_back(HttpConnection {
                stream,
                deadline,
                received,
                awaits_metrics: None,
                answer: None,
            });
        }
    }

    /// Takes a connection forward, with metrics that have just been read. Returns whether it goes on.
    fn serve(&mut self, connection: &mut HttpConnection, metrics: Option<&str>) -> bool {
        let now = Instant::now();
        if now >= connection.deadline {
            return false;
        }
        if let Some((until, is_head)) = connection.awaits_metrics {
            let answer = match metrics {
                Some(text) => response(200, text, is_head),
                None if now < until => return true,
                None => response(503, "the node does not answer\n", is_head),
            };
            (connection.awaits_metrics, connection.answer) = (None, Some((answer, 0)));
        } else if connection.answer.is_none() {
            match connection.receive() {
                Ok(true) => {}
                Ok(false) => return true,
                Err(()) => return false,
            }
            let answer = match read(&connection.received) {
                Asked::Incomplete => return true,
                Asked::Path { path: "/metrics", is_head } if self.ask_metrics() => {
                    connection.awaits_metrics = Some((now + SCRAPE_MAX, is_head));
                    return true;
                }
                Asked::Path { path, is_head } => self.answer(path, is_head),
                Asked::Refused(status) => response(status, "", false),
            };
            connection.answer = Some((answer, 0));
        }
        connection.send()
    }

    fn answer(&self, path: &str, is_head: bool) -> Vec<u8> {
        match path {
            "/health" => response(200, "ok\n", is_head),
            "/health/live" => json(200, "live", None, is_head),
            "/health/ready" => match self.probe.obstacle() {
                None => json(200, "ready", None, is_head),
                Some(reason) => json(503, "not ready", Some(&reason), is_head),
            },
            "/ready" => match self.probe.obstacle() {
                None => response(200, "ready\n", is_head),
                Some(reason) => response(503, &format!("{reason}\n"), is_head),
            },
            "/metrics" => response(503, "the node does not answer\n", is_head),
            _ => response(404, "", is_head),
        }
    }

    /// Begins to read the metrics, unless that is under way. Returns whether an answer may come.
    fn ask_metrics(&mut self) -> bool {
        self.is_reading = self.is_reading || self.ask.try_send(()).is_ok();
        self.is_reading
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_is_answered_while_the_metrics_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let ((ask, asked), (answer, answers)) = (sync_channel(1), sync_channel(1));
        let (readiness, stopping, progress) = Default::default();
        let probe = Probe { readiness, stopping, progress, is_member: false };
        let server = Server { listener, connections: VecDeque::new(), probe, ask, answers, is_reading: false };
        let ends = Arc::new(AtomicBool::new(false));
        let server_ends = Arc::clone(&ends);
        let thread = std::thread::spawn(move || server.run(&server_ends));
        let request = |path: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
            stream
        };
        let answered = |mut stream: TcpStream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        let first = request("/metrics");
        asked.recv().unwrap();
        let second = request("/metrics");
        assert!(answered(request("/health/live")).ends_with("\r\n\r\n{\"status\":\"live\"}\n"));
        assert!(answered(request("/ready")).ends_with("\r\n\r\nstarting\n"));
        answer.send("figures\n".to_owned()).unwrap();
        for stream in [first, second] {
            assert!(answered(stream).ends_with("\r\n\r\nfigures\n"));
        }
        ends.store(true, Ordering::Relaxed);
        thread.join().unwrap();
    }
}
