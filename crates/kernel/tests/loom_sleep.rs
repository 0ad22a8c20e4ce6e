//! Sleep and wake under every order of memory accesses that the memory model allows: a lost wake-up would leave the
//! sleeper asleep for good, which the checker reports as a deadlock. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p junctor-kernel --release --test loom_sleep`.
#![cfg(loom)]

use junctor_kernel::mailbox::{Consumer, Producer, ring};
use junctor_kernel::scheduler::sleep::{SleepCell, SleepPlace};
use loom::sync::Arc;
use loom::thread;

/// What a thread does to send: publish, fence, wake whoever announced sleep.
fn send(producer: &mut Producer<u32>, cell: &SleepCell) {
    producer.push(1).unwrap();
    producer.publish();
    SleepCell::fence_before_claim();
    if cell.claim() == Some(SleepPlace::Cell) {
        cell.ring();
    }
}

/// What a thread does to wait: announce, look, sleep. Returns what it took.
fn receive(consumers: &mut [Consumer<u32>], cell: &SleepCell) -> u32 {
    loop {
        let taken = take(consumers);
        if taken > 0 {
            return taken;
        }
        cell.announce(SleepPlace::Cell);
        if consumers.iter_mut().any(|consumer| consumer.refresh() > 0) {
            cell.cancel();
            continue;
        }
        cell.sleep(None);
        cell.cancel();
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
fn news_of_one_sender_always_wakes() {
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
fn news_of_two_senders_always_wake_and_nobody_is_woken_twice() {
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
