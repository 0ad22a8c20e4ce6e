use super::{ActiveSnapshots, SnapshotError, SnapshotHandle, SnapshotRegistry, SnapshotWord};
use crate::commit_sequence::CommitSequence;
use junctor_model::id::CommitNumber;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use std::sync::Arc;

fn registry(threads: usize) -> Arc<SnapshotRegistry> {
    let sequence = Arc::new(CommitSequence::starting_after(CommitNumber(0)));
    Arc::new(SnapshotRegistry::new(sequence, threads))
}

fn snapshots(registry: &Arc<SnapshotRegistry>, thread: usize, snapshots_max: u32) -> ActiveSnapshots {
    ActiveSnapshots::new(SnapshotWord::claim(registry.clone(), thread).unwrap(), snapshots_max)
}

fn commit(registry: &SnapshotRegistry) {
    let number = registry.sequence().take(0).unwrap();
    registry.sequence().mark_applied(number, &mut |_, _| {}).unwrap();
}

#[test]
fn without_snapshots_the_horizon_is_the_stable_number() {
    let registry = registry(3);
    assert_eq!(registry.horizon(), CommitNumber(0));
    commit(&registry);
    assert_eq!(registry.horizon(), CommitNumber(1));
}

#[test]
fn the_oldest_snapshot_of_any_thread_holds_the_horizon() {
    let registry = registry(2);
    let (mut one, mut other) = (snapshots(&registry, 0, 8), snapshots(&registry, 1, 8));
    commit(&registry);
    let oldest = one.begin().unwrap();
    commit(&registry);
    let middle = other.begin().unwrap();
    let newest = one.begin().unwrap();
    commit(&registry);
    assert_eq!([oldest.number().0, middle.number().0, newest.number().0], [1, 2, 2]);
    assert_eq!(registry.horizon(), CommitNumber(1));
    one.end(oldest).unwrap();
    assert_eq!(registry.horizon(), CommitNumber(2));
    other.end(middle).unwrap();
    assert_eq!(registry.horizon(), CommitNumber(2));
    one.end(newest).unwrap();
    assert_eq!(registry.horizon(), CommitNumber(3));
}

#[test]
fn snapshots_of_other_nodes_hold_the_horizon() {
    let registry = registry(1);
    registry.limit_horizon(CommitNumber(2));
    for horizon in [0, 1, 2, 2] {
        assert_eq!(registry.horizon(), CommitNumber(horizon));
        commit(&registry);
    }
    registry.limit_horizon(CommitNumber(3));
    assert_eq!(registry.horizon(), CommitNumber(3));
}

#[test]
fn one_long_snapshot_costs_no_memory_for_the_short_ones_after_it() {
    let registry = registry(1);
    let mut active = snapshots(&registry, 0, 2);
    let long = active.begin().unwrap();
    for _ in 0..1000 {
        commit(&registry);
        let short = active.begin().unwrap();
        assert_eq!(active.begin(), Err(SnapshotError::TooManySnapshots));
        active.end(short).unwrap();
    }
    assert_eq!(active.oldest(), Some(CommitNumber(0)));
    assert_eq!(registry.horizon(), CommitNumber(0));
    active.end(long).unwrap();
    assert_eq!((active.count(), active.oldest()), (0, None));
    assert_eq!(registry.horizon(), CommitNumber(1000));
}

#[test]
fn a_handle_of_another_thread_ends_no_snapshot() {
    let registry = registry(2);
    let (mut one, mut other) = (snapshots(&registry, 0, 4), snapshots(&registry, 1, 4));
    let first = one.begin().unwrap();
    assert_eq!(other.end(first), Err(SnapshotError::NotActive));
    assert_eq!(one.count(), 1);
    assert_eq!(ActiveSnapshots::new(other.word, 0).begin(), Err(SnapshotError::TooManySnapshots));
}

#[test]
fn each_thread_has_one_snapshot_writer() {
    let registry = registry(1);
    let word = SnapshotWord::claim(registry.clone(), 0).unwrap();
    assert_eq!(SnapshotWord::claim(registry.clone(), 0).unwrap_err(), SnapshotError::ThreadClaimed);
    assert_eq!(SnapshotWord::claim(registry.clone(), 1).unwrap_err(), SnapshotError::NoSuchThread);
    drop(word);
    let mut active = ActiveSnapshots::new(SnapshotWord::claim(registry.clone(), 0).unwrap(), 1);
    let _left_open = active.begin().unwrap();
    commit(&registry);
    assert_eq!(registry.horizon(), CommitNumber(0));
    drop(active);
    assert_eq!(registry.horizon(), CommitNumber(1));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Commit,
    Begin,
    End(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![Just(Step::Commit), Just(Step::Begin), any::<prop::sample::Index>().prop_map(Step::End)]
}

proptest! {
    #[test]
    fn the_horizon_is_the_oldest_open_snapshot(script in prop::collection::vec(step(), 1..200)) {
        let registry = registry(1);
        let mut active = snapshots(&registry, 0, 6);
        let mut open: Vec<SnapshotHandle> = Vec::new();
        for step in script {
            match step {
                Step::Commit => commit(&registry),
                Step::Begin if open.len() == 6 => assert_eq!(active.begin(), Err(SnapshotError::TooManySnapshots)),
                Step::Begin => {
                    let handle = active.begin().unwrap();
                    assert_eq!(handle.number(), registry.sequence().stable());
                    open.push(handle);
                }
                Step::End(_) if open.is_empty() => {}
                Step::End(pick) => active.end(open.swap_remove(pick.index(open.len()))).unwrap(),
            }
            let oldest = open.iter().map(SnapshotHandle::number).min();
            assert_eq!(active.count(), open.len());
            assert_eq!(active.oldest(), oldest);
            assert_eq!(registry.horizon(), oldest.unwrap_or(registry.sequence().stable()));
        }
    }
}
