//! A scripted node for tests of the driver. It answers each request with the next reply that the test queued,
//! except the closing of a statement, which it answers itself. A test can stop it from accepting bytes.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::connection::{Connection, Options};
use super::transport::Transport;
use junctor_wire::reply::{self, Done, Greeting};
use junctor_wire::request::kind;
use junctor_wire::{SALT_BYTES, VERSION, next_frame};

/// The node. It is also the transport to itself.
#[derive(Clone, Default)]
pub(super) struct ScriptedNode(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    sent: Vec<u8>,
    /// The first bytes that the client receives; `None` afterwards.
    greeting: Option<Vec<u8>>,
    answers: VecDeque<Emit>,
    is_stopped: bool,
    /// Kinds of the received requests that have no reply yet.
    unanswered: VecDeque<u8>,
    /// The request number that the next reply carries.
    number: u32,
}

/// Appends the reply to the request with this number.
type Emit = Box<dyn FnOnce(u32, &mut Vec<u8>) + Send>;

/// A scripted node and a connection that is logged in.
pub(super) fn connected() -> (ScriptedNode, Connection) {
    let node = ScriptedNode::default();
    let greeting = Greeting { version: VERSION, connection: 1, salt: [5; SALT_BYTES], server_version: "8.0" };
    let mut bytes = Vec::new();
    greeting.encode(&mut bytes);
    node.lock().greeting = Some(bytes);
    node.answer(ScriptedNode::done);
    let options = Options::new("ann");
    let connection =
        poll(pin!(Connection::open(Box::new(node.clone()), &options))).expect("it is answered").expect("it may log in");
    node.lock().sent.clear();
    (node, connection)
}

/// Polls a future once.
pub(super) fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

impl ScriptedNode {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics with the lock")
    }

    /// From now on, accepts no bytes.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
    }

    /// Accepts bytes again.
    pub(super) fn resume(&self) {
        self.lock().is_stopped = false;
    }

    /// Queues a reply: `encode` appends it for the request number that it is given.
    pub(super) fn answer(&self, encode: impl FnOnce(u32, &mut Vec<u8>) + Send + 'static) {
        self.lock().answers.push_back(Box::new(encode));
    }

    /// Appends a reply without rows.
    pub(super) fn done(number: u32, out: &mut Vec<u8>) {
        reply::encode_done(
            number,
            &Done { status: 1, warnings: 0, affected_rows: 0, last_insert_id: 0, info: "" },
            out,
        );
    }

    /// Creates an error reply.
    pub(super) fn failed(errno: u16) -> impl FnOnce(u32, &mut Vec<u8>) + Send {
        move |number, out| reply::encode_failed(number, errno, *b"HY000", "", out)
    }

    /// Appends the reply to the preparation of a statement without parameters.
    pub(super) fn prepared(number: u32, out: &mut Vec<u8>) {
        reply::encode_prepared(number, 0, &[], out);
    }

    /// The printable text that was sent since the login. Dots replace all other bytes.
    pub(super) fn sent(&self) -> String {
        let mut text = String::new();
        for byte in &self.lock().sent {
            match byte {
                b' '..=b'~' => text.push(char::from(*byte)),
                _ if text.ends_with("...") => {}
                _ => text.push_str("..."),
            }
        }
        text
    }
}

impl Transport for ScriptedNode {
    fn poll_send(&mut self, _context: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        if state.is_stopped {
            return Poll::Pending;
        }
        let mut rest = bytes.as_slice();
        while let Some((frame, behind)) = next_frame(rest) {
            state.unanswered.push_back(frame.kind);
            rest = behind;
        }
        state.sent.append(bytes);
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        let mut state = self.lock();
        if let Some(greeting) = state.greeting.take() {
            return Poll::Ready(Ok(greeting));
        }
        let encode = match state.unanswered.front() {
            None => return Poll::Pending,
            Some(&kind::CLOSE) => Some(Box::new(ScriptedNode::done) as Emit),
            Some(_) => state.answers.pop_front(),
        };
        let Some(encode) = encode else { return Poll::Pending };
        state.unanswered.pop_front();
        let mut bytes = Vec::new();
        encode(state.number, &mut bytes);
        state.number += 1;
        Poll::Ready(Ok(bytes))
    }
}
