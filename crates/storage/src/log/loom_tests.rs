//! The log's two readings, with weak memory effects. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p junctor-storage --lib loom_tests`.

use super::FormedRecords;
use crate::commit_sequence::CommitSequence;
use junctor_model::id::CommitNumber;
use loom::sync::Arc;
use loom::thread;

/// A participant forms the record of its number as the stream's first, and then marks the number.
fn commit(sequence: &CommitSequence, formed: &FormedRecords, stream: usize) -> CommitNumber {
    let number = sequence.take(0).unwrap();
    formed.publish(stream, 1);
    sequence.mark_applied(number, &mut |_, _| {}).unwrap();
    number
}

#[test]
fn a_stable_commit_has_a_counted_record() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let shared = Arc::new((CommitSequence::with_slots(CommitNumber(0), 2), FormedRecords::new(2)));
        let log = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (sequence, formed) = &*shared;
                let stable = sequence.stable();
                (stable, [formed.count(0), formed.count(1)])
            })
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || commit(&shared.0, &shared.1, 1))
        };
        let own = commit(&shared.0, &shared.1, 0);
        let other = other.join().unwrap();
        let (stable, counts) = log.join().unwrap();
        assert!(own > stable || counts[0] == 1, "commit {own} is stable at {stable}, and its record is not counted");
        assert!(
            other > stable || counts[1] == 1,
            "commit {other} is stable at {stable}, and its record is not counted"
        );
    });
}
