//! The mailbox under every order of memory accesses that the memory model allows. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p junctor-kernel --release --test loom_mailbox`.
#![cfg(loom)]

use junctor_kernel::mailbox::ring;
use loom::model::Builder;
use loom::thread;

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

#[test]
fn items_arrive_whole_and_in_order() {
    model(|| {
        let (mut producer, mut consumer) = ring::<Box<u32>>(2);
        let sender = thread::spawn(move || {
            for item in 0..3 {
                while producer.push(Box::new(item)).is_err() {
                    producer.publish();
                    thread::yield_now();
                }
            }
            producer.publish();
        });
        let mut wanted = 0;
        while wanted < 3 {
            if consumer.refresh() == 0 {
                thread::yield_now();
            }
            while let Some(item) = consumer.pop() {
                assert_eq!(*item, wanted);
                wanted += 1;
            }
            consumer.release();
        }
        sender.join().unwrap();
    });
}

#[test]
fn a_batch_is_seen_from_its_first_item_on_or_not_at_all() {
    model(|| {
        let (mut producer, mut consumer) = ring::<u32>(4);
        let sender = thread::spawn(move || {
            producer.push(1).unwrap();
            producer.push(2).unwrap();
            producer.publish();
            producer.push(3).unwrap();
        });
        let seen = consumer.refresh();
        assert!([0, 2, 3].contains(&seen), "half a batch of {seen}");
        for item in 0..seen {
            assert_eq!(consumer.pop(), Some(item as u32 + 1));
        }
        sender.join().unwrap();
    });
}

#[test]
fn a_credit_comes_back_only_after_its_request_was_finished() {
    model(|| {
        // Two slots give one credit, hence one deferrable item at a time.
        let (mut producer, mut consumer) = ring::<u32>(2);
        let sender = thread::spawn(move || {
            for item in 0..2 {
                while producer.push_deferrable(item).is_err() {
                    thread::yield_now();
                }
                producer.publish();
            }
        });
        for wanted in 0..2 {
            while consumer.refresh() == 0 {
                thread::yield_now();
            }
            assert_eq!(consumer.pop(), Some(wanted));
            consumer.release();
            assert_eq!(consumer.refresh(), 0, "a second request without a credit");
            consumer.finish_deferrable();
            consumer.release();
        }
        sender.join().unwrap();
    });
}

#[test]
fn items_that_were_never_popped_are_dropped_once() {
    model(|| {
        let (mut producer, mut consumer) = ring::<loom::sync::Arc<()>>(4);
        let witness = loom::sync::Arc::new(());
        let (first, second) = (witness.clone(), witness.clone());
        let sender = thread::spawn(move || {
            producer.push(first).unwrap();
            producer.publish();
            producer.push(second).unwrap();
        });
        consumer.refresh();
        drop(consumer.pop());
        drop(consumer);
        sender.join().unwrap();
        assert_eq!(loom::sync::Arc::strong_count(&witness), 1);
    });
}
