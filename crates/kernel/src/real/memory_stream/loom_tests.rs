//! Sleeping and waking at both ends of an in-memory connection, under every order of memory accesses that the
//! memory model allows. A lost wake-up would leave a thread asleep for good, which the checker reports as a
//! deadlock. Run with `sh tests/interleavings.sh loom`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::end::connection;
use super::*;
use crate::buffer::{Buffer, BufferPool};
use crate::limit::KernelLimits;
use crate::scheduler::sleep::{SleepCell, SleepLocation};

/// The bell of a thread that sleeps in its cell.
struct CellBell(Arc<SleepCell>);

impl Bell for CellBell {
    fn ring(&self) {
        if self.0.claim_wakeup() == Some(SleepLocation::Cell) {
            self.0.wake_sleeper();
        }
    }
}

/// A client's thread that sleeps until it is woken.
struct Parker {
    is_woken: Mutex<bool>,
    bell: Condvar,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.bell.notify_one();
    }
}

/// Polls until there is a result, sleeping in between.
fn wait<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let parker = Arc::new(Parker { is_woken: Mutex::new(false), bell: Condvar::new() });
    let waker = Waker::from(parker.clone());
    loop {
        if let Poll::Ready(result) = poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        let mut is_woken = parker.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = parker.bell.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

/// The node's side of a connection.
struct NodeSide {
    end: NodeEnd,
    acceptor: Arc<Acceptor>,
    cell: Arc<SleepCell>,
    buffers: BufferPool,
}

impl NodeSide {
    /// Sleeps until the ready list is not empty, as a node's thread does, and takes it.
    fn wait_until_ready(&mut self) {
        let mut slots = Vec::new();
        loop {
            self.acceptor.take_ready(&mut slots);
            if !slots.is_empty() {
                return self.end.announce_space();
            }
            self.cell.prepare_sleep();
            if self.acceptor.is_pending() {
                self.cell.cancel_sleep();
            } else if self.cell.enter_sleep(SleepLocation::Cell) {
                self.cell.sleep(None);
                self.cell.reattach();
            }
        }
    }

    /// The next bytes; `None` once the client has closed.
    fn read(&mut self) -> Option<Buffer> {
        loop {
            if let Some(bytes) = self.end.read(16, &mut self.buffers) {
                return Some(bytes);
            }
            if self.end.is_ended() {
                return None;
            }
            if !self.end.has_input() {
                self.wait_until_ready();
            }
        }
    }

    fn send(&mut self, bytes: Buffer) -> HandOver {
        let mut queued_bytes = bytes.len();
        let mut queue = VecDeque::from([bytes]);
        loop {
            let result = self.end.hand_over(&mut queue, &mut queued_bytes);
            NodeEnd::fence_before_wake();
            self.end.wake_client();
            if result != HandOver::Full {
                return result;
            }
            while !self.end.has_space_or_registers() && !self.end.is_broken() {
                self.wait_until_ready();
            }
        }
    }
}

fn connect(buffers_max: u32) -> (MemoryStream, NodeSide) {
    let cell = Arc::new(SleepCell::new());
    let acceptor = Arc::new(Acceptor::new(1, Box::new(CellBell(cell.clone()))));
    let limits = KernelLimits { stream_buffers_max: buffers_max, ..KernelLimits::default() };
    let (stream, end) = connection(&acceptor, 0, &limits);
    (stream, NodeSide { end, acceptor, cell, buffers: BufferPool::new(0) })
}

fn check(preemptions: usize, case: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(case);
}

#[test]
fn a_request_wakes_the_node_and_its_answer_wakes_the_client() {
    check(3, || {
        let (mut stream, mut node_side) = connect(2);
        let client = thread::spawn(move || {
            stream.try_send(vec![1]).unwrap();
            wait(|context| stream.poll_receive(context))
        });
        assert_eq!(node_side.read(), Some(vec![1]));
        assert_eq!(node_side.send(vec![2]), HandOver::All);
        assert_eq!(client.join().unwrap(), Some(vec![2]));
    });
}

#[test]
fn a_client_that_waits_for_space_is_woken() {
    check(2, || {
        let (mut stream, mut node_side) = connect(2);
        let client = thread::spawn(move || {
            for byte in 0..3 {
                let mut bytes = vec![byte];
                wait(|context| stream.poll_send(context, &mut bytes)).unwrap();
            }
            stream
        });
        for byte in 0..3 {
            assert_eq!(node_side.read(), Some(vec![byte]));
        }
        drop(client.join().unwrap());
    });
}

#[test]
fn a_node_that_waits_for_space_is_woken() {
    check(2, || {
        let (mut stream, mut node_side) = connect(2);
        let client = thread::spawn(move || {
            for byte in 0..3 {
                assert_eq!(wait(|context| stream.poll_receive(context)), Some(vec![byte]));
            }
        });
        for byte in 0..3 {
            assert_eq!(node_side.send(vec![byte]), HandOver::All);
        }
        client.join().unwrap();
    });
}

#[test]
fn the_end_of_the_client_wakes_the_node_after_all_bytes() {
    check(3, || {
        let (mut stream, mut node_side) = connect(2);
        let client = thread::spawn(move || stream.try_send(vec![1]).unwrap());
        assert_eq!(node_side.read(), Some(vec![1]));
        assert_eq!(node_side.read(), None);
        client.join().unwrap();
    });
}

#[test]
fn the_end_of_the_node_wakes_the_client_after_all_bytes() {
    check(3, || {
        let (mut stream, mut node_side) = connect(2);
        let client = thread::spawn(move || {
            let received = wait(|context| stream.poll_receive(context));
            (received, wait(|context| stream.poll_receive(context)))
        });
        node_side.send(vec![1]);
        drop(node_side);
        assert_eq!(client.join().unwrap(), (Some(vec![1]), None));
    });
}
