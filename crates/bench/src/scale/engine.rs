//! The queues: threads that do one task after the other, and the order of everything in simulated nanoseconds.
//!
//! A thread takes tasks in the order in which they came; what a task sends to its own thread runs before the next one, as
//! local signals do. A task for another thread costs the sender and the receiver a part of a hop each; a thread that sleeps
//! must be woken, which costs the sender and takes time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Something to do on a thread for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The request, by its number.
    pub request: u32,
    /// What it is, for whoever made it.
    pub step: u32,
    /// The kind of work, for the figures: below [`KINDS_MAX`].
    pub kind: u8,
    /// Nanoseconds that it takes, without hops.
    pub service_ns: u64,
    /// Nanoseconds that taking it from another thread takes; set by the engine.
    pub hop_ns: u64,
}

/// Kinds of work that are told apart.
pub const KINDS_MAX: usize = 16;
/// The kind of hops and of waking.
pub const HOP_KIND: u8 = KINDS_MAX as u8 - 1;

/// What crossing between threads costs, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    /// The sender's part.
    pub out_ns: u64,
    /// The receiver's part.
    pub in_ns: u64,
    /// The sender's cost of waking a thread that sleeps.
    pub wake_ns: u64,
    /// How long it takes until a woken thread works.
    pub wake_latency_ns: u64,
}

/// Where a task comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// A task of that thread.
    Thread(usize),
    /// The network, which has no thread here.
    Network,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A task of a thread has been done.
    Done(usize, Task),
    /// A delay of a request is over.
    Arrived(u32),
    /// The time to look at the load has come.
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Finish(usize),
    Awake(usize),
    Arrive(u32),
    Tick,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Asleep,
    Waking,
    Busy,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    queue: VecDeque<Task>,
    local: VecDeque<Task>,
    current: Option<Task>,
    state: State,
    /// What sending has cost since the last task ended.
    debt_ns: u64,
    busy_ns: [u64; KINDS_MAX],
    done: u64,
}

/// All threads, and what is due.
#[derive(Clone, Debug)]
pub struct Engine {
    threads: Vec<Thread>,
    hops: Hops,
    due: BinaryHeap<Reverse<(u64, u64, Due)>>,
    sequence: u64,
    now_ns: u64,
}

impl Engine {
    /// So many threads, all asleep, at time zero.
    pub fn new(threads: usize, hops: Hops) -> Engine {
        Engine { threads: vec![Thread::default(); threads], hops, due: BinaryHeap::new(), sequence: 0, now_ns: 0 }
    }

    /// The time, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Gives a task to a thread.
    pub fn submit(&mut self, from: From, to: usize, mut task: Task) {
        if from == From::Thread(to) {
            task.hop_ns = 0;
            self.threads[to].local.push_back(task);
            return;
        }
        if let From::Thread(sender) = from {
            self.threads[sender].debt_ns += self.hops.out_ns;
            task.hop_ns = self.hops.in_ns;
        }
        self.threads[to].queue.push_back(task);
        if self.threads[to].state == State::Asleep {
            self.threads[to].state = State::Waking;
            if let From::Thread(sender) = from {
                self.threads[sender].debt_ns += self.hops.wake_ns;
            }
            self.plan(self.hops.wake_latency_ns, Due::Awake(to));
        }
    }

    /// Lets a request come back after a delay.
    pub fn delay(&mut self, request: u32, delay_ns: u64) {
        self.plan(delay_ns, Due::Arrive(request));
    }

    /// Asks for an [`Event::Tick`] after a delay.
    pub fn tick_after(&mut self, delay_ns: u64) {
        self.plan(delay_ns, Due::Tick);
    }

    /// Goes on to the next event; `None` when nothing is due any more. After [`Event::Done`] the caller submits what
    /// follows and then calls [`Self::go_on`] for the thread.
    pub fn next_event(&mut self) -> Option<Event> {
        while let Some(Reverse((time, _, due))) = self.due.pop() {
            self.now_ns = time;
            match due {
                Due::Finish(thread) => {
                    let task = self.threads[thread].current.take();
                    self.threads[thread].done += 1;
                    if let Some(task) = task {
                        return Some(Event::Done(thread, task));
                    }
                }
                Due::Awake(thread) => self.begin_next(thread),
                Due::Arrive(request) => return Some(Event::Arrived(request)),
                Due::Tick => return Some(Event::Tick),
            }
        }
        None
    }

    /// Lets a thread whose task was done begin the next one, or sleep.
    pub fn go_on(&mut self, thread: usize) {
        self.begin_next(thread);
    }

    /// Tasks that wait at a thread, without the one that it does.
    pub fn queue_length(&self, thread: usize) -> usize {
        self.threads[thread].queue.len() + self.threads[thread].local.len()
    }

    /// Whether a thread has nothing to do and is not being woken.
    pub fn sleeps(&self, thread: usize) -> bool {
        self.threads[thread].state == State::Asleep
    }

    /// Nanoseconds of each kind that a thread has worked or has begun to work.
    pub fn busy_ns(&self, thread: usize) -> [u64; KINDS_MAX] {
        self.threads[thread].busy_ns
    }

    /// Tasks that a thread has done.
    pub fn done(&self, thread: usize) -> u64 {
        self.threads[thread].done
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    fn begin_next(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        let debt_ns = std::mem::take(&mut thread.debt_ns);
        thread.busy_ns[usize::from(HOP_KIND)] += debt_ns;
        let Some(task) = thread.local.pop_front().or_else(|| thread.queue.pop_front()) else {
            thread.state = State::Asleep;
            if debt_ns > 0 {
                // What was sent is paid for before the thread sleeps.
                thread.state = State::Waking;
                self.plan(debt_ns, Due::Awake(index));
            }
            return;
        };
        thread.state = State::Busy;
        thread.busy_ns[usize::from(task.kind)] += task.service_ns;
        thread.busy_ns[usize::from(HOP_KIND)] += task.hop_ns;
        thread.current = Some(task);
        self.plan(debt_ns + task.hop_ns + task.service_ns, Due::Finish(index));
    }

    fn plan(&mut self, delay_ns: u64, due: Due) {
        // Equal times keep the order in which they were planned, so that equal seeds give equal runs.
        self.sequence += 1;
        self.due.push(Reverse((self.now_ns + delay_ns, self.sequence, due)));
    }
}
