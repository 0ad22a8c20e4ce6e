use std::sync::Arc;

use super::*;

#[test]
fn nothing_is_visible_before_it_is_published() {
    let (mut producer, mut consumer) = ring(4);
    producer.push(1).unwrap();
    assert_eq!((consumer.refresh(), consumer.pop()), (0, None));
    assert_eq!((producer.publish(), producer.publish()), (1, 0));
    assert_eq!((consumer.refresh(), consumer.pop(), consumer.pop()), (1, Some(1), None));
}

#[test]
fn a_full_ring_gives_the_item_back_until_slots_are_released() {
    let (mut producer, mut consumer) = ring(4);
    for item in 0..4 {
        producer.push(item).unwrap();
    }
    producer.publish();
    assert_eq!(producer.push(4), Err(4));
    consumer.refresh();
    assert_eq!(consumer.pop(), Some(0));
    assert_eq!(producer.push(4), Err(4));
    consumer.release();
    assert_eq!(producer.push(4), Ok(()));
}

#[test]
fn deferrable_items_take_at_most_half_until_they_are_finished() {
    let (mut producer, mut consumer) = ring(8);
    for item in 0..4 {
        producer.push_deferrable(item).unwrap();
    }
    assert_eq!(producer.push_deferrable(9), Err(9));
    for item in 4..8 {
        producer.push(item).unwrap();
    }
    producer.publish();
    consumer.refresh();
    while consumer.pop().is_some() {}
    consumer.release();
    assert_eq!(producer.push_deferrable(9), Err(9), "popped is not finished");
    consumer.finish_deferrable();
    consumer.release();
    assert_eq!((producer.push_deferrable(9), producer.credits()), (Ok(()), 0));
}

#[test]
fn items_left_in_the_ring_are_dropped_once() {
    let witness = Arc::new(());
    let (mut producer, mut consumer) = ring(8);
    for _ in 0..6 {
        producer.push(witness.clone()).unwrap();
    }
    producer.publish();
    consumer.refresh();
    drop(consumer.pop());
    producer.push(witness.clone()).unwrap();
    assert_eq!(Arc::strong_count(&witness), 7);
    drop(consumer);
    drop(producer);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn two_threads_pass_every_item_once_and_in_order() {
    const COUNT: u64 = 100_000;
    let (mut producer, mut consumer) = ring(16);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut next = 0;
            while next < COUNT {
                match producer.push(next) {
                    Ok(()) => next += 1,
                    Err(_) => std::thread::yield_now(),
                }
                if next % 3 == 0 || next == COUNT {
                    producer.publish();
                }
            }
        });
        let mut wanted = 0;
        while wanted < COUNT {
            if consumer.refresh() == 0 {
                std::thread::yield_now();
            }
            while let Some(item) = consumer.pop() {
                assert_eq!(item, wanted);
                wanted += 1;
            }
            consumer.release();
        }
    });
}
