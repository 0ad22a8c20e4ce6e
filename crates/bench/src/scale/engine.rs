//! Simulates threads as queues: each thread runs one task after the other, in simulated nanoseconds.
//!
//! A thread runs tasks in the order of arrival. A task that a thread gives to itself runs before all others,
//! as a local signal does. A task for another thread costs both the sender and the receiver CPU time, which
//! is called a hop. Waking a sleeping thread costs the sender CPU time and delays the task.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A unit of work for a request on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Number of the request.
    pub request: u32,
    /// Chosen by the caller; the engine does not interpret it.
    pub step: u32,
    /// Kind of work under which the time is reported, below [`KINDS_MAX`].
    pub kind: u8,
    /// Nanoseconds of work, without hops.
    pub service_ns: u64,
    /// Nanoseconds that it costs to receive the task from another thread. The engine sets this.
    pub hop_ns: u64,
}

/// Maximum number of kinds of work.
pub const KINDS_MAX: usize = 16;
/// The kind under which hops and wake-ups are reported.
pub const HOP_KIND: u8 = KINDS_MAX as u8 - 1;

/// The costs of crossing from one thread to another, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    /// Cost for the sender.
    pub out_ns: u64,
    /// Cost for the receiver.
    pub in_ns: u64,
    /// Cost for the sender of waking a sleeping thread.
    pub wake_ns: u64,
    /// Delay until a woken thread runs.
    pub wake_latency_ns: u64,
}

/// Where a task comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The thread with this index.
    Thread(usize),
    /// The network, which has no thread in the simulation.
    Network,
}

/// An event that [`Engine::next_event`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A thread has finished a task.
    Done(usize, Task),
    /// The delay of a request has ended.
    Arrived(u32),
    /// It is time to sample the loads.
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
    /// Nanoseconds that the thread has spent on sending since the end of its last task.
    debt_ns: u64,
    busy_ns: [u64; KINDS_MAX],
    /// Number of finished tasks.
    done: u64,
}

/// All threads, and the pending events.
#[derive(Clone, Debug)]
pub struct Engine {
    threads: Vec<Thread>,
    hops: Hops,
    /// Pending events by their time.
    due: BinaryHeap<Reverse<(u64, u64, Due)>>,
    sequence: u64,
    now_ns: u64,
}

impl Engine {
    /// Creates an engine at time zero, with all threads asleep.
    pub fn new(threads: usize, hops: Hops) -> Engine {
        Engine { threads: vec![Thread::default(); threads], hops, due: BinaryHeap::new(), sequence: 0, now_ns: 0 }
    }

    /// Current simulated time in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Adds a task to a thread's queue.
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

    /// Schedules the end of a delay of a request.
    pub fn delay(&mut self, request: u32, delay_ns: u64) {
        self.plan(delay_ns, Due::Arrive(request));
    }

    /// Schedules an [`Event::Tick`] after a delay.
    pub fn tick_after(&mut self, delay_ns: u64) {
        self.plan(delay_ns, Due::Tick);
    }

    /// Advances to the next event; `None` if nothing is pending. After [`Event::Done`], the caller submits
    /// the follow-up tasks and then calls [`Self::go_on`] for that thread.
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

    /// After [`Event::Done`], starts the thread's next task, or puts the thread to sleep.
    pub fn go_on(&mut self, thread: usize) {
        self.begin_next(thread);
    }

    /// Number of tasks that wait at a thread, not counting the running one.
    pub fn queue_length(&self, thread: usize) -> usize {
        self.threads[thread].queue.len() + self.threads[thread].local.len()
    }

    /// Whether a thread sleeps and no wake-up is on its way.
    pub fn sleeps(&self, thread: usize) -> bool {
        self.threads[thread].state == State::Asleep
    }

    /// Nanoseconds of each kind of work that a thread has begun.
    pub fn busy_ns(&self, thread: usize) -> [u64; KINDS_MAX] {
        self.threads[thread].busy_ns
    }

    /// Number of tasks that a thread has finished.
    pub fn done(&self, thread: usize) -> u64 {
        self.threads[thread].done
    }

    /// Number of threads.
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
                // The thread pays the cost of its sending before it sleeps.
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
        // Events at equal times keep the order in which they were scheduled, so equal seeds give equal runs.
        self.sequence += 1;
        self.due.push(Reverse((self.now_ns + delay_ns, self.sequence, due)));
    }
}
