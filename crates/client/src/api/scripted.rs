//! A node of few words, for tests of what a client does: it answers what the test says, one answer for each request, and takes bytes
//! while the test lets it.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::connection::{Connection, Options};
use super::transport::Transport;
use crate::wire::reply::{self, Done, Greeting};
use crate::wire::{SALT_BYTES, VERSION, next_frame};

/// The line to it.
#[derive(Clone, Default)]
pub(super) struct Line(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    sent: Vec<u8>,
    received: VecDeque<Vec<u8>>,
    is_stopped: bool,
    /// Requests that were sent and have no answer yet.
    asked: usize,
    /// The number of the next answer.
    number: u32,
}

/// A connection that is logged in.
pub(super) fn connected() -> (Line, Connection) {
    let line = Line::default();
    let greeting = Greeting { version: VERSION, connection: 1, salt: [5; SALT_BYTES], server_version: "8.0" };
    let mut bytes = Vec::new();
    greeting.emit(&mut bytes);
    line.lock().received.push_back(bytes);
    line.lock().asked = 1;
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
    pub(super) fn answer(&self, emit: impl FnOnce(u32, &mut Vec<u8>)) {
        let mut state = self.lock();
        let mut bytes = Vec::new();
        emit(state.number, &mut bytes);
        state.number += 1;
        state.received.push_back(bytes);
    }

    /// Appends that it is done.
    pub(super) fn done(number: u32, out: &mut Vec<u8>) {
        reply::emit_done(number, &Done { status: 1, warnings: 0, affected_rows: 0, last_insert_id: 0, info: "" }, out);
    }

    /// Appends an error.
    pub(super) fn failed(errno: u16) -> impl FnOnce(u32, &mut Vec<u8>) {
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
        while let Some((_, behind)) = next_frame(rest) {
            (state.asked, rest) = (state.asked + 1, behind);
        }
        state.sent.append(bytes);
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        let mut state = self.lock();
        if state.asked == 0 {
            return Poll::Pending;
        }
        let bytes = state.received.pop_front();
        state.asked -= usize::from(bytes.is_some());
        bytes.map_or(Poll::Pending, |bytes| Poll::Ready(Ok(bytes)))
    }
}
