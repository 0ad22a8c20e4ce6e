use super::{COMMIT_SEQUENCE_SLOTS, CommitSequence, CommitSequenceError};
use junctor_model::id::CommitNumber;
use proptest::prelude::{any, prop, proptest};
use std::collections::BTreeMap;

fn mark(sequence: &CommitSequence, number: u64) -> Vec<(u64, u16)> {
    let mut reported = Vec::new();
    sequence.mark_applied(CommitNumber(number), &mut |number, owner| reported.push((number.0, owner))).unwrap();
    reported
}

fn mark_error(sequence: &CommitSequence, number: u64) -> CommitSequenceError {
    sequence.mark_applied(CommitNumber(number), &mut |_, _| panic!("nothing became stable")).unwrap_err()
}

#[test]
fn numbers_are_dense_from_the_start_on() {
    let sequence = CommitSequence::starting_after(CommitNumber(41));
    assert_eq!(sequence.stable(), CommitNumber(41));
    assert_eq!(sequence.taken(), CommitNumber(41));
    assert_eq!(sequence.take(0), Ok(CommitNumber(42)));
    assert_eq!(sequence.take(1), Ok(CommitNumber(43)));
    assert_eq!(sequence.taken(), CommitNumber(43));
    assert_eq!(sequence.stable(), CommitNumber(41));
}

#[test]
fn published_numbers_are_read_like_own_ones() {
    let sequence = CommitSequence::starting_after(CommitNumber(0));
    sequence.publish(CommitNumber(7), CommitNumber(5));
    assert_eq!((sequence.taken(), sequence.stable()), (CommitNumber(7), CommitNumber(5)));
    sequence.publish(CommitNumber(7), CommitNumber(7));
    assert_eq!(sequence.stable(), CommitNumber(7));
}

#[test]
fn stable_waits_for_the_gap_and_then_passes_all_at_once() {
    let sequence = CommitSequence::starting_after(CommitNumber(0));
    for owner in [10, 20, 30, u16::MAX] {
        sequence.take(owner).unwrap();
    }
    assert_eq!(mark(&sequence, 3), []);
    assert_eq!(mark(&sequence, 2), []);
    assert_eq!(sequence.stable(), CommitNumber(0));
    assert_eq!(mark(&sequence, 1), [(1, 10), (2, 20), (3, 30)]);
    assert_eq!(sequence.stable(), CommitNumber(3));
    assert_eq!(mark(&sequence, 4), [(4, u16::MAX)]);
}

#[test]
fn stable_has_reached_a_number_when_it_is_reported() {
    let sequence = CommitSequence::starting_after(CommitNumber(0));
    let number = sequence.take(0).unwrap();
    let mut stable_seen = None;
    sequence.mark_applied(number, &mut |_, _| stable_seen = Some(sequence.stable())).unwrap();
    assert_eq!(stable_seen, Some(number));
}

#[test]
fn a_full_ring_refuses_and_uses_up_no_number() {
    let sequence = CommitSequence::starting_after(CommitNumber(7));
    for _ in 0..COMMIT_SEQUENCE_SLOTS {
        sequence.take(0).unwrap();
    }
    let last = 7 + COMMIT_SEQUENCE_SLOTS as u64;
    assert_eq!(sequence.take(0), Err(CommitSequenceError::Full));
    assert_eq!(sequence.taken(), CommitNumber(last));
    mark(&sequence, 9);
    assert_eq!(sequence.take(0), Err(CommitSequenceError::Full));
    assert_eq!(mark(&sequence, 8), [(8, 0), (9, 0)]);
    assert_eq!(sequence.take(5), Ok(CommitNumber(last + 1)));
    assert_eq!(sequence.take(5), Ok(CommitNumber(last + 2)));
    assert_eq!(sequence.take(5), Err(CommitSequenceError::Full));
}

#[test]
fn the_largest_number_is_taken_once() {
    let sequence = CommitSequence::starting_after(CommitNumber(u64::MAX - 1));
    assert_eq!(sequence.take(3), Ok(CommitNumber(u64::MAX)));
    assert_eq!(sequence.take(3), Err(CommitSequenceError::Exhausted));
    assert_eq!(mark(&sequence, u64::MAX), [(u64::MAX, 3)]);
    assert_eq!(sequence.stable(), CommitNumber(u64::MAX));
    assert_eq!(sequence.take(3), Err(CommitSequenceError::Exhausted));
}

#[test]
fn a_number_is_marked_once_and_only_after_it_was_taken() {
    let sequence = CommitSequence::with_slots(CommitNumber(0), 4);
    assert_eq!(mark_error(&sequence, 0), CommitSequenceError::AlreadyApplied);
    assert_eq!(mark_error(&sequence, 1), CommitSequenceError::NotTaken);
    sequence.take(0).unwrap();
    sequence.take(0).unwrap();
    for never_taken in [3, 4, 5, 6, 1 << 47 | 1, u64::MAX] {
        assert_eq!(mark_error(&sequence, never_taken), CommitSequenceError::NotTaken, "{never_taken}");
    }
    mark(&sequence, 2);
    assert_eq!(mark_error(&sequence, 2), CommitSequenceError::AlreadyApplied);
    mark(&sequence, 1);
    assert_eq!(mark_error(&sequence, 1), CommitSequenceError::AlreadyApplied);
    for _ in 0..4 {
        sequence.take(0).unwrap();
    }
    assert_eq!(mark_error(&sequence, 1), CommitSequenceError::AlreadyApplied);
    assert_eq!(sequence.stable(), CommitNumber(2));
}

proptest! {
    /// Compares random sequences of takes and marks with a simple model, a map from number to (owner,
    /// applied). The sequences start close to the points where the bits kept in a slot wrap.
    #[test]
    fn any_script_agrees_with_a_map(
        start in prop::sample::select(vec![0, 5, (1 << 47) - 3, (1 << 48) - 9, u64::MAX - 1000]),
        script in prop::collection::vec((any::<bool>(), any::<u16>(), any::<prop::sample::Index>()), 1..300),
    ) {
        let slots = 8;
        let sequence = CommitSequence::with_slots(CommitNumber(start), slots);
        let mut under_way: BTreeMap<u64, (u16, bool)> = BTreeMap::new();
        let (mut taken, mut stable) = (start, start);
        for (take, owner, pick) in script {
            if take {
                let expected = if under_way.len() == slots {
                    Err(CommitSequenceError::Full)
                } else {
                    taken += 1;
                    under_way.insert(taken, (owner, false));
                    Ok(CommitNumber(taken))
                };
                assert_eq!(sequence.take(owner), expected);
            } else if !under_way.is_empty() {
                let number = *under_way.keys().nth(pick.index(under_way.len())).unwrap();
                if under_way[&number].1 {
                    assert_eq!(mark_error(&sequence, number), CommitSequenceError::AlreadyApplied);
                    continue;
                }
                under_way.insert(number, (under_way[&number].0, true));
                let mut expected = Vec::new();
                while let Some((owner, true)) = under_way.get(&(stable + 1)).copied() {
                    stable += 1;
                    under_way.remove(&stable);
                    expected.push((stable, owner));
                }
                assert_eq!(mark(&sequence, number), expected);
            }
            assert_eq!(sequence.stable(), CommitNumber(stable));
            assert_eq!(sequence.taken(), CommitNumber(taken));
        }
    }
}

#[test]
fn a_number_has_an_owner_until_it_is_stable() {
    let sequence = CommitSequence::starting_after(CommitNumber(5));
    let [first, second] = [3, 4].map(|owner| sequence.take(owner).unwrap());
    mark(&sequence, second.0);
    assert_eq!(sequence.owner_unless_stable(CommitNumber(5)), None);
    assert_eq!([first, second].map(|number| sequence.owner_unless_stable(number)), [Some(3), Some(4)]);
    mark(&sequence, first.0);
    assert_eq!([first, second].map(|number| sequence.owner_unless_stable(number)), [None, None]);
}
