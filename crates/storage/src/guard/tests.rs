use std::panic::{AssertUnwindSafe, catch_unwind};

use junctor_model::limit::READER_SLOTS_MAX;

use super::{Busy, OwnerToken, PartitionGuard, ReadGroup, ReaderSlot};

fn guard(slot_count: u8) -> (PartitionGuard<Vec<u32>>, OwnerToken, Vec<ReaderSlot>) {
    let (group, slots) = ReadGroup::new(slot_count);
    let token = OwnerToken::new();
    (PartitionGuard::new(&token, &group, vec![1]), token, slots)
}

#[test]
fn a_read_sees_what_the_owner_wrote() {
    let (guard, mut token, slots) = guard(2);
    guard.try_write(&mut token).unwrap().push(2);
    assert_eq!(guard.read(&slots[0], Vec::clone), Ok(vec![1, 2]));
    assert_eq!(guard.read(&slots[1], Vec::len), Ok(2));
    assert_eq!(guard.owner_read(&token, Vec::len), 2);
}

#[test]
fn reads_fail_while_a_write_is_pending_or_running() {
    let (guard, mut token, slots) = guard(1);
    guard.begin_write(&mut token);
    assert!(guard.is_write_pending());
    assert_eq!(guard.read(&slots[0], Vec::len), Err(Busy));
    let mut write = guard.try_enter(&mut token).unwrap();
    write.push(2);
    assert_eq!(guard.read(&slots[0], Vec::len), Err(Busy));
    drop(write);
    assert!(!guard.is_write_pending());
    assert_eq!(guard.read(&slots[0], Vec::len), Ok(2));
}

#[test]
fn a_cancelled_write_lets_readers_in() {
    let (guard, mut token, slots) = guard(1);
    guard.begin_write(&mut token);
    guard.begin_write(&mut token);
    guard.cancel_write(&mut token);
    assert_eq!(guard.read(&slots[0], Vec::len), Ok(1));
}

#[test]
fn the_owner_may_read_while_its_write_is_pending() {
    let (guard, mut token, slots) = guard(1);
    let read = guard.read(&slots[0], |_| {
        guard.begin_write(&mut token);
        guard.owner_read(&token, Vec::len)
    });
    assert_eq!(read, Ok(1));
    assert!(guard.try_enter(&mut token).is_some());
}

#[test]
fn the_owner_cannot_write_while_a_slot_is_taken_and_a_failed_try_has_no_effect() {
    let (guard, mut token, slots) = guard(2);
    let outcome = guard.read(&slots[1], |_| {
        assert!(guard.try_write(&mut token).is_none());
        assert!(!guard.is_write_pending());
        assert!(guard.try_enter(&mut token).is_none());
        assert!(guard.is_write_pending());
        // A second try while a write is pending must not admit readers.
        assert!(guard.try_write(&mut token).is_none());
        assert!(guard.is_write_pending());
        guard.read(&slots[0], Vec::len)
    });
    assert_eq!(outcome, Ok(Err(Busy)));
    assert!(guard.try_enter(&mut token).is_some());
}

#[test]
fn a_nested_read_of_one_slot_keeps_the_owner_out() {
    let (guard, mut token, slots) = guard(1);
    let outcome = guard.read(&slots[0], |_| {
        guard.begin_write(&mut token);
        let inner = guard.read(&slots[0], Vec::len);
        (inner, guard.try_enter(&mut token).is_none())
    });
    assert_eq!(outcome, Ok((Ok(1), true)));
}

#[test]
fn a_panic_of_a_reader_or_writer_frees_the_guard() {
    let (guard, mut token, slots) = guard(1);
    let read = catch_unwind(AssertUnwindSafe(|| guard.read(&slots[0], |_| panic!("a reader's fault"))));
    assert!(read.is_err());
    let write = catch_unwind(AssertUnwindSafe(|| {
        let _write = guard.try_write(&mut token).expect("the panicking reader's slot is free");
        panic!("a writer's fault");
    }));
    assert!(write.is_err());
    assert_eq!(guard.read(&slots[0], Vec::len), Ok(1));
}

#[test]
fn one_token_and_one_slot_serve_many_partitions() {
    let (group, slots) = ReadGroup::new(1);
    let mut token = OwnerToken::new();
    let (first, second) = (PartitionGuard::new(&token, &group, 1), PartitionGuard::new(&token, &group, 2));
    first.begin_write(&mut token);
    assert_eq!(first.read(&slots[0], |value| *value), Err(Busy));
    assert_eq!(second.read(&slots[0], |value| *value), Ok(2));
    *second.try_write(&mut token).unwrap() += 1;
    *first.try_enter(&mut token).unwrap() += 1;
    let sum = first.read(&slots[0], |a| second.read(&slots[0], |b| a + b).unwrap());
    assert_eq!(sum, Ok(5));
}

#[test]
fn a_token_or_slot_of_another_group_stops_the_node() {
    let (guard, mut token, slots) = guard(1);
    let (_, strange_slots) = ReadGroup::new(1);
    let mut strange_token = OwnerToken::new();
    let stops = |action: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(action)).is_err();
    assert!(stops(&mut || _ = guard.read(&strange_slots[0], Vec::len)));
    assert!(stops(&mut || _ = guard.owner_read(&strange_token, Vec::len)));
    assert!(stops(&mut || drop(guard.try_write(&mut strange_token))));
    assert!(stops(&mut || drop(guard.try_enter(&mut strange_token))));
    assert!(stops(&mut || guard.begin_write(&mut strange_token)));
    assert!(stops(&mut || guard.cancel_write(&mut strange_token)));
    assert!(!guard.is_write_pending());
    assert_eq!(guard.read(&slots[0], Vec::len), Ok(1));
    assert!(guard.try_write(&mut token).is_some());
}

#[test]
fn a_group_has_each_slot_once_and_not_too_many() {
    let slots_max = READER_SLOTS_MAX as u8;
    let (_, slots) = ReadGroup::new(slots_max);
    assert_eq!(slots.iter().map(ReaderSlot::number).collect::<Vec<_>>(), (0..slots_max).collect::<Vec<_>>());
    assert!(catch_unwind(|| ReadGroup::new(slots_max + 1)).is_err());
}
