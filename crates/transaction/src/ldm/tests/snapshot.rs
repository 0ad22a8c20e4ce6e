//! Old snapshots under many updates.

use junctor_kernel::{Address, Duration, NodeId};
use junctor_model::error::ErrorCode;
use junctor_model::id::PartitionId;
use junctor_signals::Module;
use junctor_signals::program::{Access, Output};
use junctor_storage::snapshot::{ActiveSnapshots, SnapshotWord};

use super::{NONE, filled};
use crate::tests::harness::{Harness, K};

#[test]
fn backups_keep_the_versions_of_a_snapshot_until_it_ends() {
    let (mut harness, table) = filled(3, 1, 4);
    let mut active = ActiveSnapshots::new(SnapshotWord::claim(harness.snapshots(), 0).expect("a free word"), 4);
    let old = active.begin().expect("room for a snapshot");
    for _ in 0..5 {
        let program = table.add_to(K, Access::AllRows, 1);
        assert_eq!(harness.execute(NONE, true, &program, table.everything()).error, None);
    }
    let queues =
        |harness: &Harness| [1, 2, 3].map(|node| harness.ldm(Address::new(NodeId(node), Module::Ldm, 0)).purge_queue());
    harness.advance(Duration::from_seconds(1));
    assert_eq!(queues(&harness), [20; 3]);
    active.end(old).expect("the snapshot was in use");
    harness.advance(Duration::from_seconds(1));
    assert_eq!(queues(&harness), [0; 3]);
    harness.check_idle();
}

#[test]
fn a_snapshot_that_keeps_too_many_versions_is_refused_and_newer_ones_are_not() {
    let (mut harness, table) = filled(1, 1, 4);
    let registry = harness.snapshots();
    let mut active = ActiveSnapshots::new(SnapshotWord::claim(registry, 0).expect("a free word"), 4);
    let old = active.begin().expect("room for a snapshot");
    let read = table.reading(Access::PrimaryKeys, None, Output::Images);
    let update = table.add_to(K, Access::PrimaryKeys, 1);
    let owner = harness.owner(PartitionId { table: table.layout.definition.id, index: 0 });
    harness.ldm_mut(owner).set_old_versions_kept_min(200);
    let mut refused_after = None;
    let mut kept_max = 0;
    for round in 0..100 {
        for id in [1, 2, 3, 1, 1, 1, 1, 1, 1, 1] {
            assert_eq!(harness.execute(NONE, true, &update, table.keys(&[id])).error, None);
        }
        harness.advance(Duration::from_millis(200));
        kept_max = kept_max.max(harness.ldm(owner).purge_queue());
        let replies = harness.read(&read, table.keys(&[1]), old.number(), NONE);
        match &replies[0].error {
            None if refused_after.is_none() => {
                assert_eq!(table.rows_of(&replies[0].output), [(1, 10, Some(1))]);
            }
            None => panic!("what was refused is read again"),
            Some(error) => {
                assert_eq!((error.code, error.code.errno()), (ErrorCode::SnapshotTooOld, 1412));
                refused_after = refused_after.or(Some(round));
            }
        }
        let stable = harness.stable();
        let replies = harness.read(&read, table.keys(&[1]), stable, NONE);
        assert_eq!(replies[0].error, None);
    }
    assert!(refused_after.is_some_and(|rounds| rounds >= 20), "{refused_after:?}");
    assert!(kept_max <= 250, "{kept_max} old versions");
    active.end(old).expect("it was active");
    harness.advance(Duration::from_millis(500));
    harness.check();
    assert_eq!(harness.ldm(owner).purge_queue(), 0);
}
