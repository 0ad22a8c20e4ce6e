//! One leader at a time does the I/O, and no waiting task is forgotten.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use junctor_wire::Request;

/// Bytes that the node has sent, and the waker of the task that waits for them.
#[derive(Default)]
struct Inbox {
    received: VecDeque<Vec<u8>>,
    waker: Option<Waker>,
}

/// A transport that keeps one waker and wakes the waker that it replaces, as async-io does.
#[derive(Clone, Default)]
struct OneWaker(Arc<Mutex<Inbox>>);

impl OneWaker {
    /// Answers the request of this task. Requests count from 1.
    fn answer(&self, task: u32) {
        let mut bytes = Vec::new();
        reply::encode_failed(task + 1, 1000, *b"HY000", "", &mut bytes);
        let mut line = self.0.lock().expect("no test panics with the lock");
        line.received.push_back(bytes);
        let waker = line.waker.take();
        drop(line);
        waker.expect("a task waits").wake();
    }
}

impl Transport for OneWaker {
    fn poll_send(&mut self, _context: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        bytes.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        let mut line = self.0.lock().expect("no test panics with the lock");
        if let Some(bytes) = line.received.pop_front() {
            return Poll::Ready(Ok(bytes));
        }
        match line.waker.replace(context.waker().clone()) {
            Some(before) if !before.will_wake(context.waker()) => before.wake(),
            _ => {}
        }
        Poll::Pending
    }
}

/// A task that waits for a reply, and counts its wake-ups.
struct Task {
    answer: Option<PendingReply>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Task {
    fn new(pipeline: &Arc<Pipeline>) -> Task {
        let answer = pipeline.enqueue(|number, out| Request::Ping.encode(number, out)).expect("the request fits");
        Task { answer: Some(answer), wakes: Arc::default() }
    }

    /// Polls the reply. Returns whether it has arrived.
    fn poll(&mut self) -> bool {
        self.wakes.0.store(0, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.wakes));
        let Some(answer) = &mut self.answer else { return true };
        let is_answered = Pin::new(answer).poll(&mut Context::from_waker(&waker)).is_ready();
        if is_answered {
            self.answer = None;
        }
        is_answered
    }

    fn is_woken(&self) -> bool {
        self.wakes.0.load(Ordering::Relaxed) > 0
    }
}

fn tasks() -> (OneWaker, Arc<Pipeline>, [Task; 3]) {
    let line = OneWaker::default();
    let pipeline = Arc::new(Pipeline::new(Box::new(line.clone()), Vec::new(), 1000));
    let tasks = [(); 3].map(|()| Task::new(&pipeline));
    (line, pipeline, tasks)
}

#[test]
fn waiting_tasks_do_not_wake_each_other() {
    let (_line, _pipeline, mut tasks) = tasks();
    for task in &mut tasks {
        assert!(!task.poll());
    }
    assert!(tasks.iter().all(|task| !task.is_woken()));
}

#[test]
fn the_first_waiting_task_is_woken_and_wakes_the_next_when_it_is_done() {
    let (line, _pipeline, mut tasks) = tasks();
    tasks.iter_mut().for_each(|task| assert!(!task.poll()));
    for number in 0..3 {
        line.answer(number as u32);
        assert!(tasks[number].is_woken());
        assert!(tasks[number].poll());
        if let Some(next) = tasks.get_mut(number + 1) {
            assert!(next.is_woken());
            assert!(!next.poll());
        }
    }
}

#[test]
fn a_dropped_task_wakes_the_next_even_if_it_was_woken_itself() {
    let (line, _pipeline, mut tasks) = tasks();
    tasks.iter_mut().for_each(|task| assert!(!task.poll()));
    line.answer(0);
    tasks[0].answer = None;
    assert!(tasks[1].is_woken());
    // This task was woken, but is dropped before it is polled.
    tasks[1].answer = None;
    assert!(tasks[2].is_woken());
    assert!(!tasks[2].poll());
    line.answer(1);
    assert!(!tasks[2].poll());
    line.answer(2);
    assert!(tasks[2].is_woken() && tasks[2].poll());
}

#[test]
fn a_task_that_receives_the_reply_of_another_wakes_it() {
    let (line, _pipeline, mut tasks) = tasks();
    tasks.iter_mut().for_each(|task| assert!(!task.poll()));
    line.answer(0);
    // The second task is polled first, although its own reply has not arrived.
    assert!(!tasks[1].poll());
    assert!(tasks[0].is_woken() && tasks[0].poll());
    assert!(tasks[1].is_woken() && !tasks[1].poll());
    line.answer(1);
    assert!(tasks[1].is_woken() && tasks[1].poll());
}
