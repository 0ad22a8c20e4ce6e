//! Explores every interleaving of a reader, a purger and a committer, including weak memory effects. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p junctor-storage --lib loom_tests`.

use super::{ActiveSnapshots, SnapshotRegistry, SnapshotWord};
use crate::commit_sequence::CommitSequence;
use junctor_model::id::CommitNumber;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

fn commit(sequence: &CommitSequence, number: CommitNumber) {
    sequence.mark_applied(number, &mut |_, _| {}).unwrap();
}

struct Scene {
    registry: Arc<SnapshotRegistry>,
    /// The horizon up to which the purger has freed versions.
    purged: Arc<AtomicU64>,
    number: CommitNumber,
}

impl Scene {
    fn new() -> Self {
        let sequence = Arc::new(CommitSequence::with_slots(CommitNumber(0), 2));
        let number = sequence.take(0).unwrap();
        let registry = Arc::new(SnapshotRegistry::new(sequence, 1));
        Self { registry, purged: Arc::new(AtomicU64::new(0)), number }
    }

    /// Loads `purged` while each snapshot is open, because a reader would then run into missing versions.
    fn spawn_reader(&self, snapshots: usize) -> thread::JoinHandle<()> {
        let (registry, purged) = (self.registry.clone(), self.purged.clone());
        thread::spawn(move || {
            let mut active = ActiveSnapshots::new(SnapshotWord::claim(registry, 0).unwrap(), 2);
            for _ in 0..snapshots {
                let handle = active.begin().unwrap();
                assert!(purged.load(Ordering::Relaxed) <= handle.number().0);
                active.end(handle).unwrap();
            }
        })
    }

    fn purge(&self) {
        self.purged.store(self.registry.horizon().0, Ordering::Relaxed);
    }
}

#[test]
fn a_purger_that_commits_first_stays_below_every_open_snapshot() {
    loom::model(|| {
        let scene = Scene::new();
        let reader = scene.spawn_reader(2);
        commit(scene.registry.sequence(), scene.number);
        scene.purge();
        reader.join().unwrap();
    });
}

/// The same test, but the purger's thread starts later, so that loom begins with the opposite order.
#[test]
fn a_purger_that_starts_late_stays_below_every_open_snapshot() {
    loom::model(|| {
        let scene = Arc::new(Scene::new());
        let reader = scene.spawn_reader(2);
        let purger = {
            let scene = scene.clone();
            thread::spawn(move || {
                commit(scene.registry.sequence(), scene.number);
                scene.purge();
            })
        };
        reader.join().unwrap();
        purger.join().unwrap();
    });
}

#[test]
fn a_purger_concurrent_with_a_commit_stays_below_every_open_snapshot() {
    loom::model(|| {
        let scene = Scene::new();
        let committer = {
            let (registry, number) = (scene.registry.clone(), scene.number);
            thread::spawn(move || commit(registry.sequence(), number))
        };
        let reader = scene.spawn_reader(1);
        scene.purge();
        reader.join().unwrap();
        committer.join().unwrap();
    });
}

#[test]
fn a_second_snapshot_of_a_thread_is_covered_by_its_first() {
    loom::model(|| {
        let scene = Scene::new();
        let reader = {
            let (registry, purged) = (scene.registry.clone(), scene.purged.clone());
            thread::spawn(move || {
                let mut active = ActiveSnapshots::new(SnapshotWord::claim(registry, 0).unwrap(), 2);
                let first = active.begin().unwrap();
                let second = active.begin().unwrap();
                assert!(first.number() <= second.number());
                active.end(first).unwrap();
                assert!(purged.load(Ordering::Relaxed) <= second.number().0);
                active.end(second).unwrap();
            })
        };
        commit(scene.registry.sequence(), scene.number);
        scene.purge();
        reader.join().unwrap();
    });
}

/// The protocol without the second load of stable. It shows that the tests above would detect the error.
#[test]
#[should_panic(expected = "the snapshot was purged")]
fn the_model_catches_a_reader_that_keeps_its_first_load() {
    loom::model(|| {
        let scene = Scene::new();
        let reader = {
            let (registry, purged) = (scene.registry.clone(), scene.purged.clone());
            thread::spawn(move || {
                let snapshot = registry.sequence().stable();
                let word = SnapshotWord::claim(registry, 0).unwrap();
                // `publish` itself refuses to lower the word.
                word.line().oldest.store(snapshot.0, Ordering::Release);
                fence(Ordering::SeqCst);
                assert!(purged.load(Ordering::Relaxed) <= snapshot.0, "the snapshot was purged");
            })
        };
        commit(scene.registry.sequence(), scene.number);
        scene.purge();
        reader.join().unwrap();
    });
}
