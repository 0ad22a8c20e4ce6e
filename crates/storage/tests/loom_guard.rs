//! Explores every interleaving of an owner and two readers of the partition guard, including weak memory
//! effects: `RUSTFLAGS="--cfg loom" cargo test -p junctor-storage --test loom_guard --release`.
#![cfg(loom)]

use junctor_storage::guard::{OwnerToken, PartitionGuard, ReadGroup, ReaderSlot};
use loom::sync::Arc;
use loom::thread;

/// Two halves that are equal except while the owner writes. Loom itself also fails if a read overlaps a
/// write.
type Halves = (u32, u32);

struct Case {
    guard: Arc<PartitionGuard<Halves>>,
    token: OwnerToken,
    slots: Vec<ReaderSlot>,
}

fn case(slot_count: u8) -> Case {
    let (group, slots) = ReadGroup::new(slot_count);
    let token = OwnerToken::new();
    Case { guard: Arc::new(PartitionGuard::new(&token, &group, (0, 0))), token, slots }
}

fn write(halves: &mut Halves) {
    halves.0 += 1;
    halves.1 += 1;
}

/// Reads once. The two halves must be equal and not older than `seen`. Returns the newest value seen.
fn read(guard: &PartitionGuard<Halves>, slot: &ReaderSlot, seen: u32) -> u32 {
    match guard.read(slot, |halves| *halves) {
        Ok((first, second)) => {
            assert_eq!(first, second, "a half-written value");
            assert!(first >= seen, "an older value after a newer one");
            first
        }
        Err(_) => seen,
    }
}

fn spawn_reader(case: &mut Case, reads: u32) -> thread::JoinHandle<()> {
    let (guard, slot) = (Arc::clone(&case.guard), case.slots.pop().unwrap());
    thread::spawn(move || {
        let mut seen = 0;
        for _ in 0..reads {
            seen = read(&guard, &slot, seen);
        }
    })
}

#[test]
fn a_pending_owner_enters_and_never_runs_beside_two_readers() {
    loom::model(|| {
        let mut case = case(2);
        let readers = [spawn_reader(&mut case, 1), spawn_reader(&mut case, 1)];
        case.guard.begin_write(&mut case.token);
        loop {
            if let Some(mut halves) = case.guard.try_enter(&mut case.token) {
                write(&mut halves);
                break;
            }
            thread::yield_now();
        }
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(case.guard.owner_read(&case.token, |halves| *halves), (1, 1));
    });
}

#[test]
fn an_owner_that_only_tries_never_runs_beside_two_readers() {
    loom::model(|| {
        let mut case = case(2);
        let readers = [spawn_reader(&mut case, 1), spawn_reader(&mut case, 1)];
        let mut written = 0;
        if let Some(mut halves) = case.guard.try_write(&mut case.token) {
            write(&mut halves);
            written += 1;
        }
        for reader in readers {
            reader.join().unwrap();
        }
        // No reader is inside now, so the next try must succeed.
        write(&mut case.guard.try_write(&mut case.token).expect("no reader is inside"));
        assert_eq!(case.guard.owner_read(&case.token, |halves| *halves), (written + 1, written + 1));
    });
}

#[test]
fn a_reader_that_comes_back_between_two_writes_reads_whole_values_in_order() {
    loom::model(|| {
        let mut case = case(1);
        let reader = spawn_reader(&mut case, 2);
        for _ in 0..2 {
            if let Some(mut halves) = case.guard.try_write(&mut case.token) {
                write(&mut halves);
            }
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_cancelled_write_leaves_the_guard_open_and_the_owner_reads_beside_readers() {
    loom::model(|| {
        let mut case = case(2);
        let kept = case.slots.pop().unwrap();
        let reader = spawn_reader(&mut case, 1);
        case.guard.begin_write(&mut case.token);
        let (first, second) = case.guard.owner_read(&case.token, |halves| *halves);
        assert_eq!(first, second);
        case.guard.cancel_write(&mut case.token);
        reader.join().unwrap();
        assert_eq!(case.guard.read(&kept, |halves| *halves), Ok((0, 0)));
    });
}

#[test]
fn a_reader_sees_the_write_that_ended_before_its_read() {
    loom::model(|| {
        let mut case = case(1);
        let (guard, slot) = (Arc::clone(&case.guard), case.slots.pop().unwrap());
        case.guard.begin_write(&mut case.token);
        let reader = thread::spawn(move || {
            // The write began before this thread started, so the guard admits the reader only after the
            // write.
            if let Ok(halves) = guard.read(&slot, |halves| *halves) {
                assert_eq!(halves, (1, 1));
            }
        });
        write(&mut case.guard.try_enter(&mut case.token).expect("no reader was let in"));
        reader.join().unwrap();
    });
}
