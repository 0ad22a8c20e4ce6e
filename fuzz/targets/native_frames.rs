//! Native frames. Requests and replies: any bytes are refused or are a message, and a request that was decoded
//! is encoded to the same message. A driver whose node sends any bytes returns errors. A node whose session
//! sends any requests goes on. The first byte chooses which of them takes the rest.
#![no_main]

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use junctor_client::{Connection, Options, Transport, block_on};
use junctor_front::Protocol;
use junctor_node::NodeConfig;
use junctor_node::start::{RunningServer, start};
use junctor_wire::reply::{self, Greeting};
use junctor_wire::request::{Login, kind, parse_values};
use junctor_wire::{Reply, Request, VERSION, frame, next_frame};
use libfuzzer_sys::fuzz_target;

const PREPARE: &[&str] = &[
    "CREATE DATABASE IF NOT EXISTS f",
    "CREATE TABLE IF NOT EXISTS f.a (id INT PRIMARY KEY, n INT, s VARCHAR(20), d DECIMAL(10,2), t DATETIME)",
    "CREATE TABLE IF NOT EXISTS f.b (s VARCHAR(10), d DATE, n INT, PRIMARY KEY (s, d))",
    "INSERT IGNORE INTO f.a VALUES (1, 10, 'one', 1.5, '2020-01-01'), (2, NULL, 'two', -2, NULL)",
    "INSERT IGNORE INTO f.b VALUES ('k', '2020-01-01', 1)",
];

static SERVER: Mutex<Option<RunningServer>> = Mutex::new(None);

/// A node that sends these bytes, piece by piece, and takes everything.
struct Hostile(Vec<Vec<u8>>);

impl Transport for Hostile {
    fn poll_send(&mut self, _: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        bytes.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        Poll::Ready(Ok(self.0.pop().unwrap_or_default()))
    }
}

fn requests(bytes: &[u8]) {
    let Some((&kind, payload)) = bytes.split_first() else { return };
    let _ = Login::parse(payload);
    let (number, request) = Request::parse(kind, payload);
    let Ok(Some(request)) = request else { return };
    if let Request::Execute { count, values, .. } = request {
        let mut pushed = 0;
        let parsed = parse_values(count, values, &mut |_| pushed += 1);
        assert!(parsed.is_err() || pushed == usize::from(count));
    }
    let mut again = Vec::new();
    assert!(request.encode(number, &mut again), "a request of a short frame fits into one");
    let (frame, _) = next_frame(&again).expect("a whole frame");
    // Doubles that are no numbers differ from themselves, so texts are compared.
    let decoded = Request::parse(frame.kind, frame.payload);
    assert_eq!(format!("{decoded:?}"), format!("{:?}", (number, Ok::<_, ()>(Some(request)))));
}

fn replies(bytes: &[u8]) {
    let _ = Greeting::parse(bytes);
    let mut rest = bytes;
    while let Some((frame, after)) = next_frame(rest) {
        if let Ok((_, Reply::KeyRows(_) | Reply::Prepared { .. })) = Reply::parse(frame) {}
        rest = after;
    }
}

/// The driver: its login and the requests behind it end, whatever the node sends.
fn driver(how: u8, bytes: &[u8]) {
    let mut sent = Vec::new();
    if how & 8 == 0 {
        Greeting { version: VERSION, connection: 1, salt: [5; 20], server_version: "8.0" }.encode(&mut sent);
        let done = reply::Done { status: 1, warnings: 0, affected_rows: 0, last_insert_id: 0, info: "" };
        reply::encode_done(0, &done, &mut sent);
    }
    sent.extend_from_slice(bytes);
    let mut pieces: Vec<Vec<u8>> = sent.chunks(usize::from(how >> 4) * 16 + 1).map(<[u8]>::to_vec).collect();
    pieces.reverse();
    let work = async {
        let options = Options::new("root").reply_bytes_max(1 << 16);
        let Ok(connection) = Connection::open(Box::new(Hostile(pieces)), &options).await else { return };
        if let Ok(rows) = connection.query("SELECT 1", &[]).await {
            for row in &rows {
                for index in 0..rows.columns().len() {
                    let _ = row.get::<i64>(index);
                    let _ = row.get::<&str>(index);
                }
            }
        }
        let _ = connection.query("SELECT ?", &[&1]).await;
        if let Ok(reader) = connection.key_reader("f.a", &["n"]).await {
            if let Ok(found) = reader.read_many(&[1, 2]).await {
                let _ = found.get(0).map(|row| row.get::<i64>("n"));
                let _ = found.get(1).map(|row| row.get::<&str>("n"));
            }
        }
    };
    let outcome = pin!(work).poll(&mut Context::from_waker(Waker::noop()));
    assert!(outcome.is_ready(), "a node that has closed the connection is not waited for");
}

fn with_server(work: impl FnOnce(&RunningServer)) {
    let mut server = SERVER.lock().unwrap_or_else(|error| error.into_inner());
    let server = server.get_or_insert_with(|| {
        let config = NodeConfig {
            listens: false,
            thread_config: Some("recv={count=1},ldm={count=0},main={count=0},io={count=0}".into()),
            total_memory_bytes: Some(256 << 20),
            cpu_binding: false,
            ..NodeConfig::default()
        };
        let server = start(&config).expect("a node");
        block_on(async {
            let connection = server.connector().open(&Options::new("root")).await.expect("a session");
            for statement in PREPARE {
                connection.query(statement, &[]).await.expect("a table");
            }
        });
        server
    });
    work(server);
}

/// A session that sends honest preparations and then these bytes as requests. Texts are those of this target:
/// hostile ones are the matter of another.
fn session(bytes: &[u8]) {
    let mut sent = Vec::new();
    let login = Login { version: VERSION, user: "root", proof: b"", database: "f" };
    let prepared = [
        Request::Prepare { handle: 1, text: "SELECT * FROM a WHERE id = ? AND s > ?" },
        Request::PrepareReader { reader: 1, database: "f", table: "a", columns: vec!["n", "s"] },
        Request::PrepareReader { reader: 2, database: "f", table: "b", columns: vec!["n"] },
    ];
    assert!(login.encode(&mut sent));
    for (number, request) in (1..).zip(&prepared) {
        assert!(request.encode(number, &mut sent));
    }
    let (mut rest, mut frames) = (bytes, 0);
    while let Some((frame, after)) = next_frame(rest)
        && frames < 16
    {
        if !matches!(frame.kind, kind::RUN_TEXT | kind::PREPARE) {
            sent.extend_from_slice(&rest[..frame::HEADER_BYTES + frame.payload.len()]);
        }
        (rest, frames) = (after, frames + 1);
    }
    // An unknown kind of request closes nothing, a malformed one does.
    let ping = sent.len();
    assert!(Request::Ping.encode(u32::MAX, &mut sent) && sent.len() > ping);
    with_server(|server| {
        let Ok(mut stream) = server.connector().connect(Protocol::Native) else { return };
        block_on(async {
            let mut is_sent = false;
            let mut received = Vec::new();
            loop {
                if !is_sent {
                    let sending = std::future::poll_fn(|context| stream.poll_send(context, &mut sent));
                    is_sent = sending.await.is_ok();
                    if !is_sent {
                        return;
                    }
                }
                let Some(bytes) = std::future::poll_fn(|context| stream.poll_receive(context)).await else { return };
                received.extend_from_slice(&bytes);
                while let Some((frame, rest)) = next_frame(&received) {
                    let is_pong = frame.payload.starts_with(&u32::MAX.to_le_bytes());
                    let length = received.len() - rest.len();
                    if is_pong && reply::is_last(frame.kind) {
                        return;
                    }
                    received.drain(..length);
                }
            }
        });
        // The next session is served.
        block_on(async {
            let connection = server.connector().open(&Options::new("root")).await.expect("a session");
            connection.ping().await.expect("an answer");
        });
    });
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, bytes)) = bytes.split_first() else { return };
    match how & 3 {
        0 => requests(bytes),
        1 => replies(bytes),
        2 => driver(how, bytes),
        _ => session(bytes),
    }
});
