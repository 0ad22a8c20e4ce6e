//! Sleep, wake and delegated turns under every order of memory accesses that the memory model allows. A lost
//! wake-up would leave the sleeper asleep for good, which the checker reports as a deadlock. The checker also
//! reports two threads that hold one slot. Run with `RUSTFLAGS="--cfg loom" cargo test -p junctor-kernel
//! --release --test loom_sleep`.
#![cfg(loom)]

use junctor_kernel::Duration;
use junctor_kernel::mailbox::{Consumer, Producer, ring};
use junctor_kernel::scheduler::sleep::{IdlePhase, ReturnOutcome, SleepCell, SleepLocation};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A sender's steps: publish, fence, wake a thread that announced a sleep.
fn send(producer: &mut Producer<u32>, cell: &SleepCell) {
    producer.push(1).unwrap();
    producer.publish();
    SleepCell::fence_before_wakeup();
    if cell.claim_wakeup() == Some(SleepLocation::Cell) {
        cell.wake_sleeper();
    }
}

/// A receiver's steps: announce a sleep, check, sleep. Returns the item that it took.
fn receive(consumers: &mut [Consumer<u32>], cell: &SleepCell) -> u32 {
    loop {
        let taken = take(consumers);
        if taken > 0 {
            return taken;
        }
        cell.prepare_sleep();
        if consumers.iter_mut().any(|consumer| consumer.refresh() > 0) {
            cell.cancel_sleep();
        } else if cell.enter_sleep(SleepLocation::Cell) {
            cell.sleep(None);
            cell.reattach();
        }
    }
}

fn take(consumers: &mut [Consumer<u32>]) -> u32 {
    let mut taken = 0;
    for consumer in consumers {
        consumer.refresh();
        while let Some(item) = consumer.pop() {
            taken += item;
        }
        consumer.release();
    }
    taken
}

#[test]
fn input_of_one_sender_always_wakes() {
    loom::model(|| {
        let cell = Arc::new(SleepCell::new());
        let (mut producer, consumer) = ring(2);
        let senders_cell = cell.clone();
        let sender = thread::spawn(move || send(&mut producer, &senders_cell));
        assert_eq!(receive(&mut [consumer], &cell), 1);
        sender.join().unwrap();
    });
}

#[test]
fn input_of_two_senders_wakes_exactly_once() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let cell = Arc::new(SleepCell::new());
        let mut consumers = Vec::new();
        let mut senders = Vec::new();
        for _ in 0..2 {
            let (mut producer, consumer) = ring(2);
            consumers.push(consumer);
            let cell = cell.clone();
            senders.push(thread::spawn(move || send(&mut producer, &cell)));
        }
        let mut taken = 0;
        while taken < 2 {
            taken += receive(&mut consumers, &cell);
        }
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

/// A thread's state: the consuming end of a ring from each other thread, and the sum of taken items.
struct SlotContent {
    consumers: Vec<Consumer<u32>>,
    taken: u32,
    wanted: u32,
}

/// A thread whose state others may borrow.
struct BorrowableThread {
    cell: SleepCell,
    content: UnsafeCell<SlotContent>,
}

// SAFETY: the cell admits one holder at a time, which is what this test checks.
unsafe impl Sync for BorrowableThread {}
// SAFETY: as above.
unsafe impl Send for BorrowableThread {}

impl BorrowableThread {
    fn new(consumers: Vec<Consumer<u32>>) -> Arc<BorrowableThread> {
        let wanted = consumers.len() as u32;
        Arc::new(BorrowableThread {
            cell: SleepCell::new(),
            content: UnsafeCell::new(SlotContent { consumers, taken: 0, wanted }),
        })
    }

    /// For the holder.
    fn hold<R>(&self, action: impl FnOnce(&mut SlotContent) -> R) -> R {
        // SAFETY: callers hold the state by the cell's rules; the checker reports violations.
        self.content.with_mut(|content| action(unsafe { &mut *content }))
    }

    /// Takes what has arrived. Returns whether that was the last.
    fn take(&self) -> bool {
        self.hold(|content| {
            content.taken += take(&mut content.consumers);
            content.taken == content.wanted
        })
    }

    fn has_input(&self) -> bool {
        self.hold(|content| content.consumers.iter_mut().any(|consumer| consumer.refresh() > 0))
    }

    /// The thread's steps: take items, announce a sleep, check, sleep, reattach.
    fn receive_all(&self) {
        while !self.take() {
            self.sleep_if_idle(None);
        }
    }

    /// Like `receive_all`, but the first sleep ends by itself.
    fn receive_and_wake(&self) {
        let mut timeout = Some(Duration::ZERO);
        while !self.take() {
            self.sleep_if_idle(timeout.take());
        }
    }

    fn sleep_if_idle(&self, timeout: Option<Duration>) {
        self.cell.prepare_sleep();
        if self.has_input() {
            self.cell.cancel_sleep();
        } else if self.cell.enter_sleep(SleepLocation::Cell) {
            self.cell.sleep(timeout);
            self.cell.reattach();
        }
    }

    /// Like `receive_all`, but the thread also detaches and reattaches.
    fn receive_and_detach(&self) {
        loop {
            if self.take() {
                return;
            }
            self.cell.detach();
            self.cell.reattach();
            if self.take() {
                return;
            }
            self.sleep_if_idle(None);
        }
    }

    /// The steps of a sender: it publishes an item. Then it borrows the slot and takes the item for the
    /// sleeping thread, or wakes that thread. After the last item, the thread is left awake, because it waits
    /// for nothing more.
    fn send(&self, producer: &mut Producer<u32>) {
        producer.push(1).unwrap();
        producer.publish();
        SleepCell::fence_before_wakeup();
        let Some(phase) = self.cell.borrow() else {
            if self.cell.claim_wakeup() == Some(SleepLocation::Cell) {
                self.cell.wake_sleeper();
            }
            return;
        };
        loop {
            let is_last = self.take();
            if let IdlePhase::Detached = phase {
                // The thread reattaches and checks by itself.
                self.cell.give_back(phase);
                return;
            }
            self.cell.prepare_sleep();
            if is_last || self.has_input() {
                self.cell.cancel_sleep();
                if is_last {
                    if self.cell.give_back_awake() {
                        self.cell.wake_sleeper();
                    }
                    return;
                }
            } else if self.cell.give_back(phase) != ReturnOutcome::Refused {
                return;
            }
        }
    }
}

fn check_borrowed(senders: u32, receive: fn(&BorrowableThread)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = (senders > 1).then_some(2);
    builder.check(move || {
        let (mut producers, mut consumers) = (Vec::new(), Vec::new());
        for _ in 0..senders {
            let (producer, consumer) = ring(2);
            producers.push(producer);
            consumers.push(consumer);
        }
        let thread_state = BorrowableThread::new(consumers);
        let senders: Vec<_> = producers
            .into_iter()
            .map(|mut producer| {
                let thread_state = thread_state.clone();
                thread::spawn(move || thread_state.send(&mut producer))
            })
            .collect();
        receive(&thread_state);
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

#[test]
fn a_borrower_is_the_only_holder_and_loses_nothing() {
    check_borrowed(1, BorrowableThread::receive_all);
}

#[test]
fn one_of_two_senders_borrows_and_nothing_is_lost() {
    check_borrowed(2, BorrowableThread::receive_all);
}

#[test]
fn a_thread_that_wakes_while_borrowed_waits_for_its_state() {
    check_borrowed(1, BorrowableThread::receive_and_wake);
}

#[test]
fn a_thread_that_wakes_while_two_senders_publish_loses_nothing() {
    check_borrowed(2, BorrowableThread::receive_and_wake);
}

#[test]
fn a_borrower_of_a_detached_thread_is_the_only_holder_and_loses_nothing() {
    check_borrowed(1, BorrowableThread::receive_and_detach);
}

#[test]
fn one_of_two_senders_borrows_a_detached_thread_and_nothing_is_lost() {
    check_borrowed(2, BorrowableThread::receive_and_detach);
}
