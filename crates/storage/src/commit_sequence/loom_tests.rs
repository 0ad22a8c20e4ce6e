//! Explores every interleaving of two or three threads, including weak memory effects. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p junctor-storage --lib loom_tests`.

use super::CommitSequence;
use junctor_model::id::CommitNumber;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

type Reports = Vec<(u64, u16)>;

fn mark(sequence: &CommitSequence, number: CommitNumber) -> Reports {
    let mut reports = Vec::new();
    sequence
        .mark_applied(number, &mut |stable, owner| {
            assert!(sequence.stable() >= stable);
            reports.push((stable.0, owner));
        })
        .unwrap();
    reports
}

/// Explores all interleavings with at most `preemptions` preemptions. Without the bound, these scenes would
/// take hours.
fn check_with_preemptions(preemptions: usize, scene: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(scene);
}

/// Checks that every number from 1 on is reported once, with its owner, and that the stable number is the
/// last number taken.
fn check_end(sequence: &CommitSequence, mut reports: Reports, owners: &[u16]) {
    reports.sort_unstable();
    let numbers: Vec<u64> = reports.iter().map(|report| report.0).collect();
    assert_eq!(numbers, (1..=owners.len() as u64).collect::<Vec<_>>());
    let mut reported: Vec<u16> = reports.iter().map(|report| report.1).collect();
    let mut expected = owners.to_vec();
    reported.sort_unstable();
    expected.sort_unstable();
    assert_eq!(reported, expected);
    assert_eq!(sequence.stable(), sequence.taken());
    assert_eq!(sequence.stable(), CommitNumber(owners.len() as u64));
}

#[test]
fn two_threads_make_every_number_stable() {
    loom::model(|| {
        let sequence = Arc::new(CommitSequence::with_slots(CommitNumber(0), 2));
        let other = {
            let sequence = sequence.clone();
            thread::spawn(move || {
                let number = sequence.take(7).unwrap();
                (number, mark(&sequence, number))
            })
        };
        let number = sequence.take(8).unwrap();
        let mut reports = mark(&sequence, number);
        let (other_number, other_reports) = other.join().unwrap();
        reports.extend(other_reports);
        assert_ne!(number, other_number);
        let owner_of = |reported: u64| if reported == number.0 { 8 } else { 7 };
        assert!(reports.iter().all(|&(reported, owner)| owner == owner_of(reported)));
        check_end(&sequence, reports, &[7, 8]);
    });
}

#[test]
fn three_threads_that_mark_neighbours_report_each_number_once() {
    check_with_preemptions(3, || {
        let sequence = Arc::new(CommitSequence::with_slots(CommitNumber(0), 4));
        let numbers = [1, 2, 3].map(|owner| sequence.take(owner).unwrap());
        let others = [numbers[2], numbers[1]].map(|number| {
            let sequence = sequence.clone();
            thread::spawn(move || mark(&sequence, number))
        });
        let mut reports = mark(&sequence, numbers[0]);
        for other in others {
            reports.extend(other.join().unwrap());
        }
        check_end(&sequence, reports, &[1, 2, 3]);
    });
}

// The test starts the reader last, because loom remembers only the last load of each word. With an early
// reader, loom may miss executions in which the reader's first load runs late. A late load can nevertheless
// return an old value, as the memory model allows.
#[test]
fn a_reader_of_stable_sees_the_writes_before_the_marks() {
    check_with_preemptions(3, || {
        let sequence = Arc::new(CommitSequence::with_slots(CommitNumber(0), 2));
        let rows = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let numbers = [1, 2].map(|owner| sequence.take(owner).unwrap());
        let writers = [0, 1].map(|index| {
            let (sequence, rows, number) = (sequence.clone(), rows.clone(), numbers[index]);
            thread::spawn(move || {
                rows[index].store(number.0, Ordering::Relaxed);
                mark(&sequence, number);
            })
        });
        let reader = {
            let (sequence, rows) = (sequence.clone(), rows.clone());
            thread::spawn(move || {
                let snapshot = sequence.stable();
                for (row, number) in rows.iter().zip(numbers) {
                    let seen = row.load(Ordering::Relaxed);
                    assert!(number > snapshot || seen == number.0);
                }
            })
        };
        for writer in writers {
            writer.join().unwrap();
        }
        reader.join().unwrap();
        assert_eq!(sequence.stable(), numbers[1]);
    });
}

/// A thread that loaded an old stable number, and then finds the slot reused, must load the stable number
/// again.
#[test]
fn a_slot_in_use_again_does_not_hide_a_marked_number() {
    check_with_preemptions(3, || {
        let sequence = Arc::new(CommitSequence::with_slots(CommitNumber(0), 2));
        let numbers = [1, 2].map(|owner| sequence.take(owner).unwrap());
        let other = {
            let sequence = sequence.clone();
            thread::spawn(move || mark(&sequence, numbers[1]))
        };
        let mut reports = mark(&sequence, numbers[0]);
        assert_eq!(sequence.take(3), Ok(CommitNumber(3)));
        reports.extend(other.join().unwrap());
        assert_eq!(sequence.stable(), numbers[1]);
        reports.sort_unstable();
        assert_eq!(reports, [(1, 1), (2, 2)]);
    });
}

/// Two tcs with one admitted transaction each, on a ring of two slots. A tc that knows that its number is
/// stable always finds a slot for the next, and a reused slot does not confuse a slower thread.
#[test]
fn a_ring_of_the_admitted_size_is_never_full() {
    check_with_preemptions(2, || {
        let sequence = Arc::new(CommitSequence::with_slots(CommitNumber(0), 2));
        let run = |sequence: Arc<CommitSequence>, owner: u16| {
            let mut reports = Vec::new();
            let mut taken = 0;
            for _ in 0..2 {
                let number = sequence.take(owner).unwrap();
                taken += 1;
                reports.extend(mark(&sequence, number));
                if sequence.stable() < number {
                    break;
                }
            }
            (vec![owner; taken], reports)
        };
        let other = {
            let sequence = sequence.clone();
            thread::spawn(move || run(sequence, 1))
        };
        let (mut owners, mut reports) = run(sequence.clone(), 2);
        let (other_owners, other_reports) = other.join().unwrap();
        owners.extend(other_owners);
        reports.extend(other_reports);
        check_end(&sequence, reports, &owners);
    });
}

#[test]
fn a_number_never_has_the_owner_of_the_next_number_in_its_slot() {
    loom::model(|| {
        let sequence = Arc::new(CommitSequence::with_slots(CommitNumber(0), 2));
        let first = sequence.take(7).unwrap();
        let writer = {
            let sequence = sequence.clone();
            thread::spawn(move || {
                mark(&sequence, first);
                let second = sequence.take(8).unwrap();
                mark(&sequence, second);
                sequence.take(9).unwrap();
            })
        };
        if let Some(owner) = sequence.owner_unless_stable(first) {
            assert_eq!(owner, 7);
        }
        writer.join().unwrap();
        assert_eq!(sequence.owner_unless_stable(first), None);
    });
}
