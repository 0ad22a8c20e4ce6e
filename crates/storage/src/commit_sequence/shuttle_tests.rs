//! Runs several threads through many operations, under random and priority schedules. Run with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p junctor-storage --lib shuttle_tests`.

use super::CommitSequence;
use junctor_model::id::CommitNumber;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

const THREADS: u16 = 3;
const TRANSACTIONS_PER_THREAD: usize = 12;
const NUMBERS: usize = THREADS as usize * TRANSACTIONS_PER_THREAD;

/// State shared by the threads; `applied`, `owners` and `reports` are indexed by number.
struct Scene {
    sequence: CommitSequence,
    /// Numbers that are taken and not yet marked. Any thread may mark any of them.
    unmarked: Mutex<Vec<CommitNumber>>,
    applied: Vec<AtomicBool>,
    owners: Vec<AtomicU64>,
    reports: Vec<AtomicU64>,
}

impl Scene {
    fn new() -> Self {
        Self {
            sequence: CommitSequence::with_slots(CommitNumber(0), 64),
            unmarked: Mutex::new(Vec::new()),
            applied: (0..=NUMBERS).map(|_| AtomicBool::new(false)).collect(),
            owners: (0..=NUMBERS).map(|_| AtomicU64::new(0)).collect(),
            reports: (0..=NUMBERS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn take(&self, owner: u16) {
        let number = self.sequence.take(owner).unwrap();
        self.owners[number.0 as usize].store(u64::from(owner), Ordering::SeqCst);
        self.unmarked.lock().unwrap().push(number);
    }

    fn mark_any(&self) {
        let number = {
            let mut unmarked = self.unmarked.lock().unwrap();
            if unmarked.is_empty() {
                return;
            }
            let index = thread_rng().gen_range(0..unmarked.len());
            unmarked.swap_remove(index)
        };
        self.applied[number.0 as usize].store(true, Ordering::SeqCst);
        let report = &mut |number: CommitNumber, owner: u16| {
            assert!(self.sequence.stable() >= number);
            assert_eq!(self.owners[number.0 as usize].load(Ordering::SeqCst), u64::from(owner));
            assert_eq!(self.reports[number.0 as usize].fetch_add(1, Ordering::SeqCst), 0);
        };
        self.sequence.mark_applied(number, report).unwrap();
        self.check_stable();
    }

    fn check_stable(&self) {
        let stable = self.sequence.stable().0 as usize;
        assert!((1..=stable).all(|number| self.applied[number].load(Ordering::SeqCst)));
    }
}

fn run_script() {
    let scene = Arc::new(Scene::new());
    let threads: Vec<_> = (0..THREADS)
        .map(|owner| {
            let scene = scene.clone();
            thread::spawn(move || {
                for _ in 0..TRANSACTIONS_PER_THREAD {
                    scene.take(owner);
                    scene.mark_any();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    while !scene.unmarked.lock().unwrap().is_empty() {
        scene.mark_any();
    }
    assert_eq!(scene.sequence.taken(), CommitNumber(NUMBERS as u64));
    assert_eq!(scene.sequence.stable(), CommitNumber(NUMBERS as u64));
    assert!(scene.reports[1..].iter().all(|reports| reports.load(Ordering::SeqCst) == 1));
}

#[test]
fn stable_passes_applied_numbers_only_and_each_once_under_random_schedules() {
    shuttle::check_random(run_script, 1000);
}

#[test]
fn stable_passes_applied_numbers_only_and_each_once_under_priority_schedules() {
    shuttle::check_pct(run_script, 1000, 4);
}
