//! A node of few words, for tests of what a client does: it answers each request with the next thing that the test says, but closings of
//! statements, which it answers by itself, and takes bytes while the test lets it.

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

/// The line to it.
#[derive(Clone, Default)]
pub(super) struct Line(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    sent: Vec<u8>,
    /// What was said before the first request.
    greeting: Option<Vec<u8>>,
    answers: VecDeque<Emit>,
    is_stopped: bool,
    /// The kinds of the requests that were sent and have no answer yet.
    asked: VecDeque<u8>,
    /// The number of the next answer.
    number: u32,
}

/// Appends an answer to the request of a number.
type Emit = Box<dyn FnOnce(u32, &mut Vec<u8>) + Send>;

/// A connection that is logged in.
pub(super) fn connected() -> (Line, Connection) {
    let line = Line::default();
    let greeting = Greeting { version: VERSION, connection: 1, salt: [5; SALT_BYTES], server_version: "8.0" };
    let mut bytes = Vec::new();
    greeting.emit(&mut bytes);
    line.lock().greeting = Some(bytes);
    line.answer(Line::done);
    let options = Options::new("ann");
    let connection =
        poll(pin!(Connection::open(Box::new(line.clone()), &options))).expect("it is answered").expect("it may log in");
    line.lock().sent.clear();
    (line, connection)
}

/// Polls once.
pub(super) fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics")
    }

    /// Takes no bytes from now on.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
    }

    /// Takes bytes again.
    pub(super) fn go_on(&self) {
        self.lock().is_stopped = false;
    }

    /// The next answer is what `emit` appends for the number that it is given.
    pub(super) fn answer(&self, emit: impl FnOnce(u32, &mut Vec<u8>) + Send + 'static) {
        self.lock().answers.push_back(Box::new(emit));
    }

    /// Appends that it is done.
    pub(super) fn done(number: u32, out: &mut Vec<u8>) {
        reply::emit_done(number, &Done { status: 1, warnings: 0, affected_rows: 0, last_insert_id: 0, info: "" }, out);
    }

    /// Appends an error.
    pub(super) fn failed(errno: u16) -> impl FnOnce(u32, &mut Vec<u8>) + Send {
        move |number, out| reply::emit_failed(number, errno, *b"HY000", "", out)
    }

    /// Appends that a statement is prepared.
    pub(super) fn prepared(number: u32, out: &mut Vec<u8>) {
        reply::emit_prepared(number, 0, &[], out);
    }

    /// The text that was sent since the login, with dots in place of all else.
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

impl Transport for Line {
    fn poll_send(&mut self, _context: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        if state.is_stopped {
            return Poll::Pending;
        }
        let mut rest = bytes.as_slice();
        while let Some((frame, behind)) = next_frame(rest) {
            state.asked.push_back(frame.kind);
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
        let emit = match state.asked.front() {
            None => return Poll::Pending,
            Some(&kind::CLOSE) => Some(Box::new(Line::done) as Emit),
            Some(_) => state.answers.pop_front(),
        };
        let Some(emit) = emit else { return Poll::Pending };
        state.asked.pop_front();
        let mut bytes = Vec::new();
        emit(state.number, &mut bytes);
        state.number += 1;
        Poll::Ready(Ok(bytes))
    }
}
