//! Runs an owner and two readers through many operations on the partition guard, under random schedules:
//! `RUSTFLAGS="--cfg shuttle" cargo test -p junctor-storage --test shuttle_guard --release`.
#![cfg(shuttle)]

use junctor_storage::guard::{OwnerToken, PartitionGuard, ReadGroup, ReaderSlot};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;

const WRITES: u32 = 12;
const READS: u32 = 20;
const SCHEDULES: usize = 3_000;

/// The guarded data. Its fields are equal between writes.
#[derive(Default)]
struct Rows {
    first: u32,
    second: u32,
}

#[derive(Default)]
struct Inside {
    readers: AtomicU32,
    writers: AtomicU32,
}

fn write(rows: &mut Rows, inside: &Inside) {
    assert_eq!(inside.writers.fetch_add(1, Ordering::SeqCst), 0);
    assert_eq!(inside.readers.load(Ordering::SeqCst), 0, "a writer beside a reader");
    rows.first += 1;
    thread::yield_now();
    rows.second += 1;
    assert_eq!(inside.readers.load(Ordering::SeqCst), 0, "a writer beside a reader");
    inside.writers.fetch_sub(1, Ordering::SeqCst);
}

fn look(rows: &Rows, inside: &Inside) -> u32 {
    inside.readers.fetch_add(1, Ordering::SeqCst);
    let first = rows.first;
    thread::yield_now();
    assert_eq!(first, rows.second, "a half-written value");
    assert_eq!(inside.writers.load(Ordering::SeqCst), 0, "a reader beside a writer");
    inside.readers.fetch_sub(1, Ordering::SeqCst);
    first
}

fn owner(guard: &PartitionGuard<Rows>, mut token: OwnerToken, inside: &Inside) {
    let mut written = 0;
    while written < WRITES {
        let entered = match written % 3 {
            // Only tries to enter.
            0 => guard.try_write(&mut token),
            // Announces a write, reads while readers are still inside, and then tries to enter.
            1 => {
                guard.begin_write(&mut token);
                guard.owner_read(&token, |rows| assert_eq!(rows.first, rows.second));
                guard.try_enter(&mut token)
            }
            // Cancels an announced write once, and then announces it again.
            _ => {
                guard.begin_write(&mut token);
                thread::yield_now();
                guard.cancel_write(&mut token);
                guard.try_enter(&mut token)
            }
        };
        if let Some(mut rows) = entered {
            write(&mut rows, inside);
            written += 1;
        } else {
            thread::yield_now();
        }
    }
    guard.owner_read(&token, |rows| assert_eq!((rows.first, rows.second), (WRITES, WRITES)));
}

fn reader(guard: &PartitionGuard<Rows>, slot: &ReaderSlot, inside: &Inside) {
    let mut seen = 0;
    for turn in 0..READS {
        let outcome = guard.read(slot, |rows| {
            let outer = look(rows, inside);
            if turn % 4 == 0 {
                // A nested read always succeeds and sees the same value.
                assert_eq!(guard.read(slot, |rows| look(rows, inside)), Ok(outer));
            }
            outer
        });
        if let Ok(now) = outcome {
            assert!(now >= seen, "an older value after a newer one");
            seen = now;
        }
    }
}

fn script() {
    let (group, slots) = ReadGroup::new(2);
    let token = OwnerToken::new();
    let guard = Arc::new(PartitionGuard::new(&token, &group, Rows::default()));
    let inside = Arc::new(Inside::default());
    let readers: Vec<_> = slots
        .into_iter()
        .map(|slot| {
            let (guard, inside) = (Arc::clone(&guard), Arc::clone(&inside));
            thread::spawn(move || reader(&guard, &slot, &inside))
        })
        .collect();
    owner(&guard, token, &inside);
    for reader in readers {
        reader.join().unwrap();
    }
}

#[test]
fn random_schedules_keep_readers_and_the_owner_apart() {
    shuttle::check_random(script, SCHEDULES);
}

#[test]
fn schedules_with_few_preemptions_keep_readers_and_the_owner_apart() {
    shuttle::check_pct(script, SCHEDULES, 4);
}
